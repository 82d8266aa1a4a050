//! Groups that are copies of each other, as one group.
//!
//! With few answers a group most groups of the largest grouping factor have the same cells as others. Their modes are then equal at all
//! parameters. The `m` spherical effects of such groups turn into one along their sum and `m - 1` across it. The first sees all answers
//! through a design that is divided by the square root of `m`; the others touch nothing else, and add `m - 1` times the group's own
//! block to the logarithm of the determinant. Laplace's criterion and its derivatives are those of the whole data. Groups of a wider factor
//! with equal groups inside are one in the same way, all their effects together.
use std::collections::HashMap;
use std::hash::Hash;

use super::data::MixedData;

/// Mean cells of a group from which no other one is looked for that has the same.
const MANY_CELLS: usize = 16;

impl MixedData {
    /// The data with equal groups of the first grouping factor as one, for Laplace's criterion only; with two factors, also equal groups of the
    /// second. None where groups have many cells, and so are hardly ever equal.
    pub(super) fn merged(&self) -> Option<MixedData> {
        let first = self.groupings.first().filter(|first| self.cells() < MANY_CELLS * first.levels.len())?;
        let mut cells_of: Vec<Vec<(u32, usize)>> = vec![Vec::new(); first.levels.len()];
        let mut keys = Numbers::<Vec<u64>>::default();
        for cell in 0..self.cells() {
            let groups = self.groupings.iter().skip(1).map(|grouping| u64::from(grouping.of_cell[cell]));
            let key = groups.chain(self.key(cell)).collect();
            cells_of[first.of_cell[cell] as usize].push((keys.of(key), cell));
        }
        let merged = self.with_copies(&equal(cells_of), 1);
        Some(merged.with_equal_wider_groups().unwrap_or(merged))
    }

    /// Merged data with equal groups of the second of two factors as one. None where a group of the first is in several of them, and there are no
    /// copies then.
    fn with_equal_wider_groups(&self) -> Option<MixedData> {
        let [inner, outer] = &self.groupings[..] else { return None };
        let mut outer_of = vec![None; inner.levels.len()];
        let mut groups: Vec<Vec<(u32, usize)>> = vec![Vec::new(); inner.levels.len()];
        let mut keys = Numbers::<Vec<u64>>::default();
        for cell in 0..self.cells() {
            let (group, wider) = (inner.of_cell[cell] as usize, outer.of_cell[cell]);
            if *outer_of[group].get_or_insert(wider) != wider {
                return None;
            }
            let copies = inner.copies[group].to_bits();
            groups[group].push((keys.of(self.key(cell).chain([copies]).collect()), cell));
        }
        let mut inside: Vec<Vec<(u32, usize)>> = vec![Vec::new(); outer.levels.len()];
        let mut kinds = Numbers::default();
        for (mut cells, wider) in groups.into_iter().zip(outer_of) {
            cells.sort_unstable();
            let kind = kinds.of(cells.iter().map(|(key, _)| *key).collect::<Vec<u32>>());
            inside[wider? as usize].extend(cells.into_iter().map(|(_, cell)| (kind, cell)));
        }
        Some(self.with_copies(&equal(inside), 2))
    }

    /// Values and answers of a cell, without its groups.
    fn key(&self, cell: usize) -> impl Iterator<Item = u64> {
        let answers = [self.weight[cell], self.total[cell]];
        let random = self.groupings.iter().flat_map(move |grouping| grouping.cell(cell));
        self.fixed.cell(cell).iter().chain(random).copied().chain(answers).map(f64::to_bits)
    }

    /// The data of these cells, and the number of times that each list of them stands for. Lists hold whole groups of the first `factors` grouping
    /// factors.
    fn with_copies(&self, kept: &[(Vec<usize>, f64)], factors: usize) -> MixedData {
        let cells: Vec<usize> = kept.iter().flat_map(|(cells, _)| cells).copied().collect();
        let copies: Vec<f64> = kept.iter().flat_map(|(cells, copies)| vec![*copies; cells.len()]).collect();
        let mut merged = MixedData { frame: self.frame.picked(&cells), ..self.clone() };
        let times = |values: &[f64]| cells.iter().zip(&copies).map(|(&cell, copies)| copies * values[cell]).collect();
        (merged.weight, merged.total) = (times(&self.weight), times(&self.total));
        merged.fixed.values = cells.iter().flat_map(|&cell| self.fixed.cell(cell)).copied().collect();
        for (index, (grouping, own)) in merged.groupings.iter_mut().zip(&self.groupings).enumerate() {
            grouping.of_cell = cells.iter().map(|&cell| own.of_cell[cell]).collect();
            grouping.design = cells.iter().flat_map(|&cell| own.cell(cell)).copied().collect();
            if index >= factors {
                continue;
            }
            let mut groups = Numbers::default();
            (grouping.levels, grouping.copies) = (Vec::new(), Vec::new());
            for (cell, copies) in copies.iter().enumerate() {
                let old = grouping.of_cell[cell] as usize;
                grouping.of_cell[cell] = groups.of(old);
                if groups.count() > grouping.levels.len() {
                    grouping.levels.push(own.levels[old].clone());
                    grouping.copies.push(copies * own.copies[old]);
                }
                let design = &mut grouping.design[cell * grouping.width..(cell + 1) * grouping.width];
                design.iter_mut().for_each(|value| *value /= copies.sqrt());
            }
        }
        merged
    }
}

/// Numbers of things by first appearance.
struct Numbers<T>(HashMap<T, u32>);

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Numbers(HashMap::new())
    }
}

impl<T: Eq + Hash> Numbers<T> {
    fn of(&mut self, thing: T) -> u32 {
        let next = self.count() as u32;
        *self.0.entry(thing).or_insert(next)
    }

    fn count(&self) -> usize {
        self.0.len()
    }
}

/// Cells of the groups that differ, by the kinds of their cells, and how many groups are like each.
fn equal(groups: Vec<Vec<(u32, usize)>>) -> Vec<(Vec<usize>, f64)> {
    let mut kept: Vec<(Vec<usize>, f64)> = Vec::new();
    let mut numbers = Numbers::default();
    for mut cells in groups.into_iter().filter(|cells| !cells.is_empty()) {
        cells.sort_unstable();
        let number = numbers.of(cells.iter().map(|(kind, _)| *kind).collect::<Vec<u32>>()) as usize;
        match kept.get_mut(number) {
            Some((_, copies)) => *copies += 1.0,
            None => kept.push((cells.into_iter().map(|(_, cell)| cell).collect(), 1.0)),
        }
    }
    kept
}
