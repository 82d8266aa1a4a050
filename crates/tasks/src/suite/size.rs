//! Bound on the size of a run, checked before anything of that size is made.

/// Largest number of samples of a run, and of items of a suite: ten times the largest benchmarks in use. Indices in a plan are
/// stored in 32 bits, and matching and resuming keep a few bytes of memory for each.
pub const MAX_SAMPLES: usize = 10_000_000;

/// Rows that any file may have.
const ROWS: u64 = 1_000_000;

/// Further ones for each byte of the file: rows that differ have more than half a byte, even compressed.
const ROWS_FACTOR: u64 = 2;

/// Most rows of a file of so many bytes: each takes microseconds, whatever the file spends on it.
pub fn most_rows(bytes: u64) -> u64 {
    ROWS.saturating_add(bytes.saturating_mul(ROWS_FACTOR)).min(MAX_SAMPLES as u64)
}

/// The limit of [`most_rows`] in words.
pub fn most_rows_in_words(bytes: u64) -> String {
    match most_rows(bytes) {
        most if most == MAX_SAMPLES as u64 => format!("{most}"),
        _ => format!("{ROWS} and {ROWS_FACTOR} for each of its {bytes} bytes"),
    }
}

/// A run or a suite beyond [`MAX_SAMPLES`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause} makes {asked} samples; a run has at most {MAX_SAMPLES}")]
pub struct TooManySamples {
    /// Option, key or row that asks for them, with its value.
    pub cause: String,
    /// Number of samples, at most [`u128::MAX`].
    pub asked: u128,
}

/// Checks the product of `factors` against [`MAX_SAMPLES`]; `cause` is what the user has written.
///
/// # Errors
/// [`TooManySamples`].
pub fn check_size(cause: impl FnOnce() -> String, factors: &[usize]) -> Result<(), TooManySamples> {
    let asked = factors.iter().fold(1_u128, |product, &factor| product.saturating_mul(factor as u128));
    match asked <= MAX_SAMPLES as u128 {
        true => Ok(()),
        false => Err(TooManySamples { cause: cause(), asked }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_file_are_bounded_by_its_bytes() {
        assert_eq!((most_rows(0), most_rows(500_000)), (1_000_000, 2_000_000));
        assert_eq!((most_rows(4_500_000), most_rows(u64::MAX)), (10_000_000, 10_000_000));
        assert_eq!(most_rows_in_words(7), "1000000 and 2 for each of its 7 bytes");
        assert_eq!(most_rows_in_words(u64::MAX), "10000000");
    }

    #[test]
    fn the_product_decides_and_does_not_overflow() {
        assert_eq!(check_size(|| unreachable!(), &[MAX_SAMPLES, 1]), Ok(()));
        assert_eq!(check_size(|| unreachable!(), &[usize::MAX, 0]), Ok(()));
        let error = check_size(|| "--samples 3".into(), &[MAX_SAMPLES, 3]).unwrap_err();
        assert_eq!(error.to_string(), "--samples 3 makes 30000000 samples; a run has at most 10000000");
        assert!(check_size(String::new, &[usize::MAX; 3]).is_err());
    }
}
