//! Rows of a batch in the residual stream of a plain decoder.
use crate::Example;

/// Computed rows of a batch: the common prefix once, then the rest of every example without its last token, which predicts nothing.
/// There is no padding.
#[derive(Debug)]
pub(super) struct Rows {
    /// Token of every row.
    pub(super) ids: Vec<u32>,
    /// Position of every row.
    pub(super) positions: Vec<u32>,
    /// Rows that predict a target, in the order of the targets. The last layer computes no other queries.
    pub(super) predicting: Vec<u32>,
    pub(super) targets: Vec<u32>,
    /// Examples, and before them the prefix.
    pub(super) segments: Vec<Segment>,
}

/// Consecutive rows that see each other and the common prefix.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    /// First row.
    pub(super) start: usize,
    /// Number of rows.
    pub(super) count: usize,
    /// Rows of the prefix that these see.
    pub(super) shared: usize,
    /// First of the predicting rows among all predicting rows, their number, and the position of the first.
    pub(super) predicting: (usize, usize, usize),
}

/// Queries of a segment in a layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Queries {
    /// First row in the matrix of queries.
    pub(super) start: usize,
    /// Number of queries.
    pub(super) count: usize,
    /// Position of the first one.
    pub(super) first: usize,
}

impl Segment {
    /// Returns the number of keys.
    pub(super) fn keys(&self) -> usize {
        self.shared + self.count
    }

    #[inline(always)]
    pub(super) fn key_row(&self, key: usize) -> usize {
        if key < self.shared { key } else { self.start + key - self.shared }
    }

    /// Returns the queries in a layer before the last one, or in the last one.
    pub(super) fn queries(&self, last: bool) -> Queries {
        let (start, count, first) = self.predicting;
        match last {
            true => Queries { start, count, first },
            false => Queries { start: self.start, count: self.count, first: self.shared },
        }
    }
}

impl Rows {
    /// Lays out a batch.
    pub(super) fn new(examples: &[Example]) -> Self {
        let first = examples.iter().map(|example| example.prompt - 1).min().unwrap_or(0);
        let shared = match examples {
            [one, others @ ..] if !others.is_empty() => {
                (0..first).take_while(|&at| others.iter().all(|example| example.ids[at] == one.ids[at])).count()
            }
            _ => 0,
        };
        let mut rows = Rows {
            ids: Vec::new(),
            positions: Vec::new(),
            predicting: Vec::new(),
            targets: Vec::new(),
            segments: Vec::new(),
        };
        if shared > 0 {
            rows.ids.extend(&examples[0].ids[..shared]);
            rows.positions.extend(0..shared as u32);
            rows.segments.push(Segment { start: 0, count: shared, shared: 0, predicting: (0, 0, 0) });
        }
        for Example { ids, prompt } in examples {
            let (start, last) = (rows.ids.len(), ids.len() - 1);
            let predicting = (rows.targets.len(), ids.len() - prompt, prompt - 1);
            rows.ids.extend(&ids[shared..last]);
            rows.positions.extend(shared as u32..last as u32);
            rows.predicting.extend((prompt - 1..last).map(|at| (start + at - shared) as u32));
            rows.targets.extend(&ids[*prompt..]);
            rows.segments.push(Segment { start, count: last - shared, shared, predicting });
        }
        rows
    }
}
