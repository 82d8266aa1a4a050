//! Column arithmetic with carries and borrows left out.

/// Carries or borrows that an answer leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed {
    /// Fewest that explain the answer.
    pub count: usize,
    /// Position of the first of them from the right: 1 is out of the units.
    pub first: usize,
}

/// Explanation of the columns so far for one carry: missed ones and the first of them.
type State = Option<(usize, usize)>;

fn better(old: State, new: (usize, usize)) -> State {
    Some(old.map_or(new, |old| old.min(new)))
}

/// Digits from the right.
fn columns(digits: &[u8]) -> impl Iterator<Item = u8> {
    digits.iter().rev().map(|digit| digit - b'0')
}

fn digit(digits: &[u8], index: usize) -> u8 {
    columns(digits).nth(index).unwrap_or(0)
}

fn trimmed(digits: &str) -> &[u8] {
    let rest = digits.trim_start_matches('0');
    if rest.is_empty() { b"0" } else { rest.as_bytes() }
}

/// Explains an answer by columns, where `column` gives the digit and the carry of a column for an incoming carry. A carry that is due may be left
/// out; nothing else may differ.
fn explain(answer: &str, longest: usize, largest_carry: u8, column: impl Fn(usize, u8) -> (u8, u8)) -> Option<Missed> {
    let answer = trimmed(answer);
    if answer.len() > longest + 1 {
        return None;
    }
    // By incoming carry.
    let mut states: Vec<State> = vec![None; usize::from(largest_carry) + 1];
    states[0] = Some((0, 0));
    // One more column takes the last carry.
    for index in 0..=longest {
        let wanted = digit(answer, index);
        let mut next: Vec<State> = vec![None; states.len()];
        for (carry, state) in states.iter().enumerate() {
            let Some((count, first)) = *state else { continue };
            let (written, due) = column(index, carry as u8);
            if written != wanted {
                continue;
            }
            next[usize::from(due)] = better(next[usize::from(due)], (count, first));
            if due > 0 {
                let first = if count == 0 { index + 1 } else { first };
                next[0] = better(next[0], (count + 1, first));
            }
        }
        states = next;
    }
    let (count, first) = states[0]?;
    (count > 0).then_some(Missed { count, first })
}

/// Explains a wrong sum of two numbers in digits by carries that were left out.
pub fn missed_carries(a: &str, b: &str, answer: &str) -> Option<Missed> {
    let (a, b) = (trimmed(a), trimmed(b));
    explain(answer, a.len().max(b.len()), 1, |place, carry| {
        let sum = digit(a, place) + digit(b, place) + carry;
        (sum % 10, sum / 10)
    })
}

/// Explains a wrong difference of two numbers in digits, the larger first, by borrows that were left out.
pub fn missed_borrows(a: &str, b: &str, answer: &str) -> Option<Missed> {
    let (a, b) = (trimmed(a), trimmed(b));
    explain(answer, a.len().max(b.len()), 1, |place, borrow| {
        let (above, below) = (digit(a, place), digit(b, place) + borrow);
        if above >= below { (above - below, 0) } else { (above + 10 - below, 1) }
    })
}

/// Explains a wrong product of a number and a digit by carries that were left out.
pub fn missed_carries_of_product(a: &str, digit_of: u8, answer: &str) -> Option<Missed> {
    let a = trimmed(a);
    explain(answer, a.len(), 8, |place, carry| {
        let product = digit(a, place) * digit_of + carry;
        (product % 10, product / 10)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carries_are_found_with_their_position() {
        // 95 + 47 = 142.
        assert_eq!(missed_carries("95", "47", "132"), Some(Missed { count: 1, first: 1 }));
        assert_eq!(missed_carries("95", "47", "42"), Some(Missed { count: 1, first: 2 }));
        assert_eq!(missed_carries("95", "47", "32"), Some(Missed { count: 2, first: 1 }));
        assert_eq!(missed_carries("95", "47", "142"), None, "the right answer misses nothing");
        assert_eq!(missed_carries("95", "47", "143"), None);
        assert_eq!(missed_carries("999", "1", "990"), Some(Missed { count: 1, first: 1 }));
        assert_eq!(missed_carries("999", "1", "0"), Some(Missed { count: 1, first: 3 }));
        assert_eq!(missed_carries("12", "34", "45"), None, "nothing is carried");
        assert_eq!(missed_carries("95", "47", "100132"), None);
    }

    #[test]
    fn borrows_are_found_with_their_position() {
        // 503 - 47 = 456.
        assert_eq!(missed_borrows("503", "47", "466"), Some(Missed { count: 1, first: 1 }));
        assert_eq!(missed_borrows("503", "47", "556"), Some(Missed { count: 1, first: 2 }));
        assert_eq!(missed_borrows("503", "47", "456"), None);
        assert_eq!(missed_borrows("55", "32", "24"), None);
    }

    #[test]
    fn carries_of_products_are_larger() {
        // 68 * 7 = 476.
        assert_eq!(missed_carries_of_product("68", 7, "426"), Some(Missed { count: 1, first: 1 }));
        assert_eq!(missed_carries_of_product("68", 7, "76"), Some(Missed { count: 1, first: 2 }));
        assert_eq!(missed_carries_of_product("68", 7, "476"), None);
        assert_eq!(missed_carries_of_product("11", 7, "78"), None);
    }
}
