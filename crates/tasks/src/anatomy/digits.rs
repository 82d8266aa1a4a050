//! Comparisons of an answer's digits with the expected ones.

/// True if a run of neighbouring digits of `expected` is missing and all others are there in order. At least half of them are there:
/// fewer say nothing.
pub fn is_dropped(expected: &str, answer: &str) -> bool {
    let (long, short) = (expected.as_bytes(), answer.as_bytes());
    if short.is_empty() || short.len() >= long.len() || 2 * short.len() < long.len() {
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

/// Positions of the expected digits from the right, the units first: true where the answer has another digit or none.
pub fn wrong_positions(expected: &str, answer: &str) -> Vec<bool> {
    let mut given = answer.bytes().rev();
    expected.bytes().rev().map(|digit| given.next() != Some(digit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_and_repeated_runs() {
        assert!(is_dropped("12345", "1245") && is_dropped("12345", "345") && is_dropped("12345", "1235"));
        assert!(!is_dropped("12345", "135"), "two runs are missing");
        assert!(!is_dropped("12345", "15") && !is_dropped("12345", "12345") && !is_dropped("12345", "1244"));
        assert!(!is_repeated("12345", "1223345") && is_repeated("12345", "122345"));
        assert!(!is_repeated("12345", "12323345") && is_repeated("12345", "1232345"));
        assert!(is_repeated("12", "1212") && is_repeated("12", "1222") && !is_repeated("12", "12"));
        assert!(!is_repeated("12345", "123455678"));
    }

    #[test]
    fn orders_and_positions() {
        assert!(is_reordered("1230", "3210") && !is_reordered("123", "123") && !is_reordered("123", "1234"));
        assert_eq!(wrong_positions("1234", "1334"), [false, false, true, false]);
        assert_eq!(wrong_positions("1234", "34"), [false, false, true, true]);
        assert_eq!(wrong_positions("12", "912"), [false, false]);
    }
}
