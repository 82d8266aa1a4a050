//! Bound on the size of a run, checked before anything of that size is made.

/// Largest number of samples of a run, and of items of a suite: ten times the largest benchmarks in use. Places in a plan are
/// stored in 32 bits, and matching and resuming keep a few bytes of memory for each.
pub const MAX_SAMPLES: usize = 10_000_000;

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
    fn the_product_decides_and_does_not_overflow() {
        assert_eq!(check_size(|| unreachable!(), &[MAX_SAMPLES, 1]), Ok(()));
        assert_eq!(check_size(|| unreachable!(), &[usize::MAX, 0]), Ok(()));
        let error = check_size(|| "--samples 3".into(), &[MAX_SAMPLES, 3]).unwrap_err();
        assert_eq!(error.to_string(), "--samples 3 makes 30000000 samples; a run has at most 10000000");
        assert!(check_size(String::new, &[usize::MAX; 3]).is_err());
    }
}
