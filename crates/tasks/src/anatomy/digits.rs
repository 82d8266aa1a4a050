//! Comparisons of an answer's digits with the expected ones.
use super::Written;

/// Digits from which some of a longer number are told from chance.
const FEWEST: usize = 3;

/// True if a run of neighbouring digits of `expected` is missing and all others are there in order. At least half of them or three are there:
/// fewer say nothing.
pub fn is_dropped(expected: &str, answer: &str) -> bool {
    let (long, short) = (expected.as_bytes(), answer.as_bytes());
    let enough = 2 * short.len() >= long.len() || short.len() >= FEWEST;
    if short.is_empty() || short.len() >= long.len() || !enough {
        return false;
    }
    let ahead = long.iter().zip(short).take_while(|(a, b)| a == b).count();
    let behind = long.iter().rev().zip(short.iter().rev()).take_while(|(a, b)| a == b).count();
    ahead + behind >= short.len()
}

/// True if a run of neighbouring digits of `expected` stands there twice or more in a row, and all others once.
pub fn is_repeated(expected: &str, answer: &str) -> bool {
    let (short, long) = (expected.as_bytes(), answer.as_bytes());
    if short.is_empty() || long.len() <= short.len() || long.len() > 4 * short.len() {
        return false;
    }
    let surplus = long.len() - short.len();
    // A run of `width` digits that begins at `start` is there `surplus / width` more times.
    (1..=surplus.min(short.len())).filter(|width| surplus.is_multiple_of(*width)).any(|width| {
        (0..=short.len() - width).any(|start| {
            let run = &short[start..start + width];
            let rest = &long[start..start + width + surplus];
            long[..start] == short[..start]
                && rest.chunks(width).all(|chunk| chunk == run)
                && long[start + width + surplus..] == short[start + width..]
        })
    })
}

/// True if both have the same digits equally often, in another order.
pub fn is_reordered(expected: &str, answer: &str) -> bool {
    let counts = |digits: &str| {
        let mut counts = [0_usize; 256];
        digits.bytes().for_each(|digit| counts[usize::from(digit)] += 1);
        counts
    };
    expected != answer && expected.len() == answer.len() && counts(expected) == counts(answer)
}

/// Digits of an expected number, aligned at the point: true where the answer has another digit or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongPositions {
    /// Digits before the point, the units first.
    pub whole: Vec<bool>,
    /// Digits after it, from left to right.
    pub decimals: Vec<bool>,
}

/// Compares the digits of a number, or of the significand of one with an exponent, with those of an answer at the same places.
pub fn wrong_positions(expected: &Written, answer: &Written) -> WrongPositions {
    let mut given = answer.whole.bytes().rev();
    let whole = expected.whole.bytes().rev().map(|digit| given.next() != Some(digit)).collect();
    let mut given = answer.decimals.bytes();
    let decimals = expected.decimals.bytes().map(|digit| given.next() != Some(digit)).collect();
    WrongPositions { whole, decimals }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_and_repeated_runs() {
        assert!(is_dropped("12345", "1245") && is_dropped("12345", "345") && is_dropped("12345", "1235"));
        assert!(!is_dropped("12345", "135"), "two runs are missing");
        assert!(!is_dropped("12345", "15") && !is_dropped("12345", "12345") && !is_dropped("12345", "1244"));
        assert!(is_dropped("1234567890", "123") && is_dropped("1234567890", "890"), "three say something");
        assert!(!is_dropped("1234567890", "12"));
        assert!(!is_repeated("12345", "1223345") && is_repeated("12345", "122345"));
        assert!(!is_repeated("12345", "12323345") && is_repeated("12345", "1232345"));
        assert!(is_repeated("12", "1212") && is_repeated("12", "1222") && !is_repeated("12", "12"));
        assert!(!is_repeated("12345", "123455678"));
    }

    #[test]
    fn orders_and_positions() {
        assert!(is_reordered("1230", "3210") && !is_reordered("123", "123") && !is_reordered("123", "1234"));
        let positions = |expected, answer| {
            let [expected, answer] = [expected, answer].map(|text| Written::parse(text).unwrap());
            let found = wrong_positions(&expected, &answer);
            (found.whole, found.decimals)
        };
        assert_eq!(positions("1234", "1334"), (vec![false, false, true, false], vec![]));
        assert_eq!(positions("1234", "34"), (vec![false, false, true, true], vec![]));
        assert_eq!(positions("12", "912"), (vec![false, false], vec![]));
        // The point is where numbers are aligned.
        assert_eq!(positions("81.5", "3481.52"), (vec![false, false], vec![false]));
        assert_eq!(positions("3.25e7", "-3.5e6"), (vec![false], vec![true, true]));
    }
}
