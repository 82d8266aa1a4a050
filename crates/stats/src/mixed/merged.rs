//! Groups that are copies of each other, as one group.
//!
//! With few answers a group most groups of the largest grouping factor have the same cells as others. Their modes are then equal at all
//! parameters. The `m` spherical effects of such groups turn into one along their sum and `m - 1` across it. The first sees all answers
//! through a design that is divided by the square root of `m`; the others touch nothing else, and add `m - 1` times the group's own
//! block to the logarithm of the determinant. Laplace's criterion and its derivatives are those of the whole data.
use std::collections::HashMap;

use super::data::MixedData;

/// Mean cells of a group from which no other one is looked for that has the same.
const MANY_CELLS: usize = 16;

impl MixedData {
    /// The data with equal groups of the first grouping factor as one, for Laplace's criterion only. None where groups have many cells, and so are
    /// hardly ever equal.
    pub(super) fn merged(&self) -> Option<MixedData> {
        let first = self.groupings.first().filter(|first| self.cells() < MANY_CELLS * first.levels.len())?;
        let mut cells_of: Vec<Vec<(u32, usize)>> = vec![Vec::new(); first.levels.len()];
        let mut index_of: HashMap<Vec<u64>, u32> = HashMap::new();
        for cell in 0..self.cells() {
            let next = index_of.len() as u32;
            let index = *index_of.entry(self.key(cell)).or_insert(next);
            cells_of[first.of_cell[cell] as usize].push((index, cell));
        }
        let mut kept: Vec<(Vec<usize>, f64)> = Vec::new();
        let mut slot_of: HashMap<Vec<u32>, usize> = HashMap::new();
        for mut cells in cells_of.into_iter().filter(|cells| !cells.is_empty()) {
            cells.sort_unstable();
            let next = kept.len();
            let slot = *slot_of.entry(cells.iter().map(|(index, _)| *index).collect()).or_insert(next);
            match kept.get_mut(slot) {
                Some((_, copies)) => *copies += 1.0,
                None => kept.push((cells.into_iter().map(|(_, cell)| cell).collect(), 1.0)),
            }
        }
        Some(self.with_copies(&kept))
    }

    /// Values, answers and groups of a cell, without its group of the first grouping factor.
    fn key(&self, cell: usize) -> Vec<u64> {
        let groups = self.groupings.iter().skip(1).map(|grouping| u64::from(grouping.of_cell[cell]));
        let answers = [self.weight[cell], self.total[cell]];
        let random = self.groupings.iter().flat_map(|grouping| grouping.cell(cell));
        let values = self.fixed.cell(cell).iter().chain(random).chain(&answers);
        groups.chain(values.map(|value| value.to_bits())).collect()
    }

    /// The data of some groups of the first grouping factor: their cells and the number of groups like them.
    fn with_copies(&self, kept: &[(Vec<usize>, f64)]) -> MixedData {
        let cells: Vec<usize> = kept.iter().flat_map(|(cells, _)| cells).copied().collect();
        let copies: Vec<f64> = kept.iter().flat_map(|(cells, copies)| vec![*copies; cells.len()]).collect();
        let mut merged = MixedData { frame: self.frame.picked(&cells), ..self.clone() };
        let times = |values: &[f64]| cells.iter().zip(&copies).map(|(&cell, copies)| copies * values[cell]).collect();
        (merged.weight, merged.total) = (times(&self.weight), times(&self.total));
        merged.fixed.values = cells.iter().flat_map(|&cell| self.fixed.cell(cell)).copied().collect();
        for (grouping, own) in merged.groupings.iter_mut().zip(&self.groupings) {
            grouping.of_cell = cells.iter().map(|&cell| own.of_cell[cell]).collect();
            grouping.design = cells.iter().flat_map(|&cell| own.cell(cell)).copied().collect();
        }
        let (first, own) = (&mut merged.groupings[0], &self.groupings[0]);
        first.levels = kept.iter().map(|(cells, _)| own.levels[own.of_cell[cells[0]] as usize].clone()).collect();
        first.copies = kept.iter().map(|(_, copies)| *copies).collect();
        first.of_cell =
            kept.iter().enumerate().flat_map(|(group, (cells, _))| vec![group as u32; cells.len()]).collect();
        for (cell, copies) in copies.iter().enumerate() {
            first.design[cell * first.width..(cell + 1) * first.width]
                .iter_mut()
                .for_each(|value| *value /= copies.sqrt());
        }
        merged
    }
}
