//! Values as texts, by the library: its work grows with the square of a decimal's digits, and it panics on dates of no calendar.
use earnest_isolation::caught;
use parquet::record::Field;

use super::reason::Damage;

/// Largest decimal in bytes, 154 digits. The largest of pandas and Arrow have 32.
const MOST_DECIMAL: usize = 64;

/// Most digits of a decimal after the point.
const MOST_SCALE: i32 = 154;

/// The text of a value.
///
/// # Errors
/// Kind of a value that has no text, or one beyond the limits.
pub(crate) fn text(field: &Field) -> Result<String, Damage> {
    check(field)?;
    caught(|| field.to_string()).map_err(|reason| Damage(format!("a value that cannot be written: {reason}")))
}

fn check(field: &Field) -> Result<(), Damage> {
    match field {
        Field::Decimal(decimal) if decimal.data().len() > MOST_DECIMAL => {
            Err(Damage(format!("a decimal of {} bytes; up to {MOST_DECIMAL} are read", decimal.data().len())))
        }
        Field::Decimal(decimal) if decimal.scale() > MOST_SCALE => Err(Damage(format!(
            "a decimal with {} digits after the point; up to {MOST_SCALE} are read",
            decimal.scale()
        ))),
        Field::Group(row) => row.get_column_iter().try_for_each(|(_, field)| check(field)),
        Field::ListInternal(list) => list.elements().iter().try_for_each(check),
        Field::MapInternal(map) => {
            map.entries().iter().try_for_each(|(key, value)| check(key).and_then(|()| check(value)))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use parquet::data_type::{ByteArray, Decimal};

    use super::*;

    fn decimal(bytes: usize, scale: i32) -> Field {
        Field::Decimal(Decimal::from_bytes(ByteArray::from(vec![0x12; bytes]), 1_000, scale))
    }

    #[test]
    fn decimals_have_as_many_digits_as_honest_ones() {
        assert_eq!(text(&decimal(2, 2)).unwrap(), "46.26");
        assert_eq!(text(&decimal(64, 154)).unwrap().len(), "0.".len() + 154);
        assert_eq!(text(&decimal(65, 2)).unwrap_err().to_string(), "a decimal of 65 bytes; up to 64 are read");
        assert_eq!(
            text(&decimal(2, 155)).unwrap_err().to_string(),
            "a decimal with 155 digits after the point; up to 154 are read"
        );
    }

    #[test]
    fn dates_of_no_calendar_are_an_error() {
        assert_eq!(text(&Field::Date(1)).unwrap(), "1970-01-02");
        assert!(text(&Field::Date(i32::MAX)).unwrap_err().to_string().starts_with("a value that cannot be written: "));
    }
}
