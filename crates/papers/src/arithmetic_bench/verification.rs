//! Undetected errors of a verification by a second computation (Arithmetic-Bench, 3.2), observed in runs with several samples per
//! item.
use std::collections::BTreeMap;

use serde::Serialize;

use earnest_stats::clustered_mean;
use earnest_tasks::suite::Interval;

/// Scored answer of one sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScoredAnswer {
    pub(super) correct: bool,
    /// Text that was read as the answer.
    pub(super) text: Option<String>,
}

/// Errors of one task, first alone and then verified by a second sample of the same item.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verification {
    pub run: String,
    pub task: String,
    /// Items with at least two samples.
    pub items: usize,
    /// Probability of a wrong answer: the paper's p.
    pub wrong: f64,
    /// Probability that two samples of an item are both wrong; p² if errors were independent.
    pub both_wrong: f64,
    /// Probability that two wrong answers are the same: the paper's q; none if no item has two wrong answers.
    pub same: Option<f64>,
    /// The paper's p²q.
    pub formula: Option<f64>,
    /// Observed probability of two equal wrong answers, with the 95 % interval over items.
    pub undetected: Interval,
}

impl Verification {
    /// Computes the probabilities from the answers to each item, every pair of samples of an item counting alike; `None` with
    /// fewer than two items that have two samples.
    pub(super) fn of(run: &str, task: &str, items: &BTreeMap<String, Vec<ScoredAnswer>>) -> Option<Self> {
        let (mut wrong, mut both, mut same) = (Vec::new(), Vec::new(), Vec::new());
        for answers in items.values().filter(|answers| answers.len() >= 2) {
            let false_answers: Vec<&ScoredAnswer> = answers.iter().filter(|answer| !answer.correct).collect();
            let pairs = |n: usize| (n * n.saturating_sub(1) / 2) as f64;
            let all = pairs(answers.len());
            let mut alike = 0;
            for (at, answer) in false_answers.iter().enumerate() {
                // Two samples without an answer do not confirm each other.
                alike += false_answers[..at].iter().filter(|o| o.text.is_some() && o.text == answer.text).count();
            }
            wrong.push(false_answers.len() as f64 / answers.len() as f64);
            both.push(pairs(false_answers.len()) / all);
            same.push(alike as f64 / all);
        }
        let clusters: Vec<u64> = (0..wrong.len() as u64).collect();
        let observed = clustered_mean(&same, &clusters).ok()?;
        let (low, high) = observed.interval(0.95);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let (wrong, both_wrong) = (mean(&wrong), mean(&both));
        let same = (both_wrong > 0.0).then(|| observed.mean / both_wrong);
        Some(Verification {
            run: run.to_owned(),
            task: task.to_owned(),
            items: clusters.len(),
            wrong,
            both_wrong,
            same,
            formula: same.map(|same| wrong * wrong * same),
            undetected: Interval { estimate: observed.mean, low: low.max(0.0), high: high.min(1.0) },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(texts: &[Option<&str>]) -> Vec<ScoredAnswer> {
        let answer = |text: &Option<&str>| ScoredAnswer { correct: *text == Some("6"), text: text.map(str::to_owned) };
        texts.iter().map(answer).collect()
    }

    #[test]
    fn errors_that_depend_on_the_item_are_more_often_undetected() {
        let items = BTreeMap::from([
            ("a".to_owned(), answers(&[Some("6"), Some("6")])),
            ("b".to_owned(), answers(&[Some("6"), Some("5")])),
            ("c".to_owned(), answers(&[Some("5"), Some("5")])),
            ("d".to_owned(), answers(&[Some("5"), Some("4")])),
            // No answer twice, three pairs of which one is alike, and an item with one sample.
            ("e".to_owned(), answers(&[None, None])),
            ("f".to_owned(), answers(&[Some("1"), Some("1"), Some("2")])),
            ("g".to_owned(), answers(&[Some("1")])),
        ]);
        let found = Verification::of("run", "mul", &items).unwrap();
        assert_eq!(found.items, 6);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(near(found.wrong, 4.5 / 6.0) && near(found.both_wrong, 4.0 / 6.0), "{found:?}");
        let undetected = (1.0 + 1.0 / 3.0) / 6.0;
        assert!(near(found.undetected.estimate, undetected) && near(found.same.unwrap(), undetected / (4.0 / 6.0)));
        assert!(near(found.formula.unwrap(), 0.75 * 0.75 * found.same.unwrap()));
        assert!(found.undetected.low == 0.0 && found.undetected.high > 0.4);
    }

    #[test]
    fn nothing_is_said_without_repeated_items_or_errors() {
        let single = BTreeMap::from([("a".to_owned(), answers(&[Some("5")])), ("b".to_owned(), answers(&[Some("5")]))]);
        assert_eq!(Verification::of("run", "mul", &single), None);
        let right = |name: &str| (name.to_owned(), answers(&[Some("6"), Some("6")]));
        let found = Verification::of("run", "mul", &BTreeMap::from([right("a"), right("b")])).unwrap();
        assert_eq!((found.wrong, found.same, found.formula), (0.0, None, None));
    }
}
