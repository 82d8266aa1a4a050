//! Times of logs.
use std::time::{Duration, UNIX_EPOCH};

use earnest_results::timestamp;

/// Seconds since 1970 as RFC 3339; none outside the years that have four digits.
pub(super) fn rfc_3339(seconds: f64) -> Option<String> {
    (0.0..253_402_300_800.0).contains(&seconds).then(|| timestamp(UNIX_EPOCH + Duration::from_secs_f64(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_dates() {
        assert_eq!(rfc_3339(1_795_365_289.816).as_deref(), Some("2026-11-22T16:34:49Z"));
        assert_eq!(rfc_3339(-1.0), None);
        assert_eq!(rfc_3339(f64::NAN), None);
    }
}
