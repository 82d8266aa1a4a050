//! In which order a task's questions come.
use super::cell::{Cell, Question};
use super::{LengthRange, NupaOptions, TaskId};

/// The lengths in an order of which any beginning covers all ranges: the first of each, then the second of each, ...
pub(super) fn interleaved(lengths: &[usize], longest: usize) -> Vec<usize> {
    let mut ranges: [Vec<usize>; 4] = Default::default();
    for &length in lengths {
        if let Some(range) = LengthRange::of(length, longest) {
            ranges[range as usize].push(length);
        }
    }
    let rows = ranges.iter().map(Vec::len).max().unwrap_or(0);
    (0..rows).flat_map(|row| ranges.iter().filter_map(move |range| range.get(row).copied())).collect()
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
        let cells = interleaved(&options.lengths_of(task), task.longest())
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
