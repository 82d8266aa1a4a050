//! Dates and times as ISO 8601 writes them.

const DAY: i128 = 86_400_000_000_000;

/// A date from days since 1 January 1970.
pub(super) fn date(days: i64) -> String {
    // Years that begin in March, so that a leap day is the last day of its year.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// A time of day from nanoseconds since midnight.
pub(super) fn time_of_day(nanoseconds: i128) -> String {
    let (seconds, fraction) = (nanoseconds.div_euclid(1_000_000_000), nanoseconds.rem_euclid(1_000_000_000));
    let mut text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction > 0 {
        text.push_str(format!(".{fraction:09}").trim_end_matches('0'));
    }
    text
}

/// A date and time from nanoseconds since 1970, with `Z` if it is in UTC.
pub fn timestamp(nanoseconds: i128, utc: bool) -> String {
    // A 64-bit time in milliseconds is 292 million years at most.
    let days = nanoseconds.div_euclid(DAY) as i64;
    format!("{}T{}{}", date(days), time_of_day(nanoseconds.rem_euclid(DAY)), if utc { "Z" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_iso_8601() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(-1), "1969-12-31");
        assert_eq!(date(19_782), "2024-02-29");
        assert_eq!(date(19_783), "2024-03-01");
        assert_eq!(date(-719_528), "0000-01-01");
        assert_eq!(date(2_932_896), "9999-12-31");
        assert_eq!(time_of_day(0), "00:00:00");
        assert_eq!(time_of_day(86_399_999_999_999), "23:59:59.999999999");
        assert_eq!(timestamp(1_709_210_096_789_000_000, true), "2024-02-29T12:34:56.789Z");
        assert_eq!(timestamp(-1, false), "1969-12-31T23:59:59.999999999");
    }
}
