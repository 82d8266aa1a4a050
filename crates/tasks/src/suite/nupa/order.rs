//! Order of a task's questions.
use super::cell::{Cell, Question};
use super::{LengthRange, NupaOptions, TASKS, TaskId};
use crate::suite::item_order::{ItemOrder, in_proportion, spread};

/// A task's lengths in their order. Of the second one any beginning has every range in its share of the lengths, and each range's lengths
/// spread over it. Each task begins at another place, so that already the first question of each task makes a picture of all lengths.
/// The first order takes the shortest of each range, then the second shortest, ...
pub(super) fn in_order(order: ItemOrder, task: TaskId, lengths: &[usize]) -> Vec<usize> {
    let mut ranges: [Vec<usize>; 4] = Default::default();
    for &length in lengths {
        if let Some(range) = LengthRange::of(length, task.longest()) {
            ranges[range as usize].push(length);
        }
    }
    match order {
        ItemOrder::One => {
            let rows = ranges.iter().map(Vec::len).max().unwrap_or(0);
            (0..rows).flat_map(|row| ranges.iter().filter_map(move |range| range.get(row).copied())).collect()
        }
        ItemOrder::Two => {
            let mut lengths = in_proportion(&ranges.map(|range| spread(&range)));
            let index = TASKS.iter().position(|one| *one == task).unwrap_or(0);
            let begin = index.checked_rem(lengths.len()).unwrap_or(0);
            lengths.rotate_left(begin);
            lengths
        }
    }
}

/// One task's questions: all lengths once, then all lengths again, ...
pub(super) struct TaskQuestions {
    cells: Vec<(usize, Cell)>,
    position: usize,
    round: usize,
    rounds: usize,
}

impl TaskQuestions {
    pub(super) fn new(options: &NupaOptions, task: TaskId) -> Self {
        let cells = in_order(options.order, task, &options.lengths_of(task))
            .into_iter()
            .filter_map(|length| {
                let cell = Cell::new(task, length, options.split, options.pairs, options.seed).ok()?;
                Some((length, cell))
            })
            .collect();
        TaskQuestions { cells, position: 0, round: 0, rounds: options.per_length }
    }
}

impl Iterator for TaskQuestions {
    type Item = (usize, Question);
    fn next(&mut self) -> Option<Self::Item> {
        while self.round < self.rounds && !self.cells.is_empty() {
            if self.position == self.cells.len() {
                self.position = 0;
                self.round += 1;
                continue;
            }
            let (length, cell) = &mut self.cells[self.position];
            self.position += 1;
            if let Some(question) = cell.next() {
                return Some((*length, question));
            }
        }
        None
    }
}
