//! Order of items: round-robin over groups, so that every beginning is balanced.
use std::collections::HashMap;

/// Sorts rows so that the first of each group come first, then the second ones; rows of one round keep their order.
pub(super) fn round_robin(order: &mut [u32], group: impl Fn(u32) -> u64) {
    let mut seen: HashMap<u64, u32> = HashMap::new();
    let mut rounds: Vec<(u32, u32)> = order
        .iter()
        .map(|&row| {
            let round = seen.entry(group(row)).or_insert(0);
            *round += 1;
            (*round, row)
        })
        .collect();
    // Stable, so that a round keeps the order of before.
    rounds.sort_by_key(|(round, _)| *round);
    for (place, (_, row)) in order.iter_mut().zip(rounds) {
        *place = row;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_are_balanced() {
        let groups = [0, 0, 0, 1, 1, 2, 1, 2];
        let mut order: Vec<u32> = (0..8).collect();
        round_robin(&mut order, |row| groups[row as usize]);
        assert_eq!(order, [0, 3, 5, 1, 4, 7, 2, 6]);
        let mut alone: Vec<u32> = vec![2, 0, 1];
        round_robin(&mut alone, u64::from);
        assert_eq!(alone, [2, 0, 1]);
    }
}
