//! Backoff of failed exchanges.
use std::time::{Duration, SystemTime};

use crate::SamplingKey;

/// Retry policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retry {
    /// Tries after the first.
    pub times: u32,
    /// Longest wait before the first of them; it doubles with each further one.
    pub first: Duration,
    /// No wait is longer, whatever the endpoint asks for.
    pub longest: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Retry { times: 8, first: Duration::from_millis(500), longest: Duration::from_secs(120) }
    }
}

impl Retry {
    /// The wait before try `attempt` (from 1): exponential, between half and all of it, drawn from the request's key, so that
    /// many requests that failed together do not come back together and a run waits the same each time it is repeated. The
    /// endpoint's own `Retry-After` is a lower bound.
    pub fn wait(&self, attempt: u32, key: SamplingKey, asked: Option<Duration>) -> Duration {
        let whole = self.first.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1))).min(self.longest);
        let mut seed = key.0.to_vec();
        seed.extend(attempt.to_le_bytes());
        let drawn = earnest_digest::sha256(&seed);
        let fraction = f64::from(u32::from_le_bytes([drawn[0], drawn[1], drawn[2], drawn[3]])) / f64::from(u32::MAX);
        let own = whole.mul_f64(0.5 + 0.5 * fraction);
        own.max(asked.unwrap_or_default()).min(self.longest)
    }
}

/// The header `Retry-After`: seconds, or a date of HTTP.
pub(super) fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return (seconds.is_finite() && seconds >= 0.0).then(|| Duration::from_secs_f64(seconds.min(1e6)));
    }
    let due = SystemTime::UNIX_EPOCH + Duration::from_secs(http_date(value)?);
    Some(due.duration_since(now).unwrap_or_default())
}

/// Seconds since 1970 of a date such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, IMF-fixdate).
fn http_date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, rest) = text.split_once(", ")?;
    let words: Vec<&str> = rest.split(' ').collect();
    let [day, month, year, time, "GMT"] = words[..] else { return None };
    let (day, year): (u64, u64) = (day.parse().ok()?, year.parse().ok()?);
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let clock: Vec<u64> = time.split(':').map(str::parse).collect::<Result<_, _>>().ok()?;
    let [hour, minute, second] = clock[..] else { return None };
    if !(1970..10_000).contains(&year) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Days since 1970 of a date in the Gregorian calendar, with years that begin in March.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
    const DAYS_TO_1970: u64 = 719_468;
    Some(((days - DAYS_TO_1970) * 24 + hour) * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_stay_within_bounds() {
        let retry = Retry { times: 9, first: Duration::from_secs(1), longest: Duration::from_secs(10) };
        let key = SamplingKey([7; 32]);
        for (attempt, whole) in [(1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 10.0), (40, 10.0)] {
            let wait = retry.wait(attempt, key, None).as_secs_f64();
            assert!((whole / 2.0..=whole).contains(&wait), "{attempt}: {wait}");
        }
        assert_eq!(retry.wait(3, key, None), retry.wait(3, key, None));
        assert_ne!(retry.wait(3, key, None), retry.wait(3, SamplingKey([8; 32]), None));
        assert_eq!(retry.wait(1, key, Some(Duration::from_secs(7))), Duration::from_secs(7));
        assert_eq!(retry.wait(1, key, Some(Duration::from_secs(7000))), Duration::from_secs(10));
    }

    #[test]
    fn both_forms_of_retry_after() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(retry_after(" 3 ", at(0)), Some(Duration::from_secs(3)));
        assert_eq!(retry_after("0.25", at(0)), Some(Duration::from_millis(250)));
        // date -u -d '1994-11-06 08:49:37' +%s
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(retry_after(date, at(784_111_770)), Some(Duration::from_secs(7)));
        assert_eq!(retry_after(date, at(784_111_778)), Some(Duration::ZERO));
        // date -u -d '2024-02-29 00:00:00' +%s
        assert_eq!(http_date("Thu, 29 Feb 2024 00:00:00 GMT"), Some(1_709_164_800));
        for wrong in [
            "",
            "-1",
            "nan",
            "soon",
            "Sun, 06 Foo 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Nov 1 08:49:37 GMT",
        ] {
            assert_eq!(retry_after(wrong, at(0)), None, "{wrong}");
        }
    }
}
