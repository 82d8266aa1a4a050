//! Order of items: round-robin over groups, so that every beginning is balanced.
use std::collections::HashMap;

/// Rows of a group.
struct Group {
    /// Number of the group, in the order in which groups appear.
    number: u32,
    size: u32,
    seen: u32,
}

/// Sorts rows so that one of each group comes first, then a second one; rows of one round keep their order. With `rotate`, each group
/// begins one row later than the group before, so that a round has rows of all kinds where every group has the same kinds in the same order,
/// as perturbations of questions have.
pub(super) fn round_robin(order: &mut [u32], rotate: bool, group: impl Fn(u32) -> u64) {
    let mut groups: HashMap<u64, Group> = HashMap::new();
    for &row in order.iter() {
        let number = groups.len() as u32;
        groups.entry(group(row)).or_insert(Group { number, size: 0, seen: 0 }).size += 1;
    }
    let mut rounds: Vec<(u32, u32)> = order
        .iter()
        .filter_map(|&row| {
            let group = groups.get_mut(&group(row))?;
            let first = if rotate { group.number % group.size } else { 0 };
            let round = (group.seen + group.size - first) % group.size;
            group.seen += 1;
            Some((round, row))
        })
        .collect();
    // Stable, so that a round keeps the order of before.
    rounds.sort_by_key(|(round, _)| *round);
    for (index, (_, row)) in order.iter_mut().zip(rounds) {
        *index = row;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_are_balanced() {
        let groups = [0, 0, 0, 1, 1, 2, 1, 2];
        let mut order: Vec<u32> = (0..8).collect();
        round_robin(&mut order, false, |row| groups[row as usize]);
        assert_eq!(order, [0, 3, 5, 1, 4, 7, 2, 6]);
        let mut order: Vec<u32> = (0..8).collect();
        round_robin(&mut order, true, |row| groups[row as usize]);
        assert_eq!(order, [0, 4, 5, 1, 6, 7, 2, 3]);
        let mut alone: Vec<u32> = vec![2, 0, 1];
        round_robin(&mut alone, true, u64::from);
        assert_eq!(alone, [2, 0, 1]);
    }
}
