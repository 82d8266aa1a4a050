//! Answers that are compared with each other.

/// Scores of the answers to one question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answers {
    /// Sum of the scores; the number of right ones.
    pub sum: f64,
    /// Number of answers, at least 1.
    pub count: u32,
}

impl Answers {
    /// Mean score.
    pub fn mean(&self) -> f64 {
        self.sum / f64::from(self.count.max(1))
    }
}

/// Questions that are compared with each other: one on each side, or an original and its variants.
#[derive(Debug, Clone, PartialEq)]
pub struct PairedAnswers {
    /// Cluster to which the pair belongs.
    pub cluster: u64,
    pub first: Vec<Answers>,
    pub second: Vec<Answers>,
}

impl PairedAnswers {
    /// One question, answered by both sides.
    pub fn single(cluster: u64, first: Answers, second: Answers) -> Self {
        PairedAnswers { cluster, first: vec![first], second: vec![second] }
    }

    /// Difference of the means over questions, second minus first.
    pub(super) fn change(&self) -> f64 {
        mean(&self.second) - mean(&self.first)
    }

    /// True if the sides have as many questions and answers, so that they may be exchanged.
    pub(super) fn is_balanced(&self) -> bool {
        let counts = |side: &[Answers]| {
            let mut counts: Vec<u32> = side.iter().map(|answers| answers.count).collect();
            counts.sort_unstable();
            counts
        };
        counts(&self.first) == counts(&self.second)
    }

    /// True if both sides answered one question, perhaps not as often.
    pub(super) fn is_single(&self) -> bool {
        self.first.len() == 1 && self.second.len() == 1
    }
}

/// Mean over questions of a side.
pub(super) fn mean(side: &[Answers]) -> f64 {
    side.iter().map(Answers::mean).sum::<f64>() / side.len().max(1) as f64
}
