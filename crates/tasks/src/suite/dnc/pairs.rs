//! Outcomes by question, and comparisons of pairs.
use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::kind::Kind;
use super::suite::Cell;
use super::summary::unknown;
use super::target::Target;
use crate::suite::{Interval, Scored};
use earnest_stats::bootstrap::Outcome as Resampled;
use earnest_stats::{
    Answers, PairedAnswers, PairedCounts, PairedDesign, Rates, Z95, cluster_bootstrap, cluster_robust_se, mcnemar,
    paired_score_interval, paired_verdict, wilson,
};

/// Outcome of an item: means over its samples.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome {
    pub question: String,
    pub target: Target,
    pub set: u32,
    pub draw: u32,
    pub cell: Cell,
    pub kind: Option<Kind>,
    correct: f64,
    /// Shares right by the other scorers.
    pub scorers: BTreeMap<String, f64>,
    pub unparsed: Option<f64>,
    pub truncated: f64,
    /// Share of right equations with a right answer beside them.
    pub faithful: Option<f64>,
    samples: f64,
}

impl Outcome {
    pub(super) fn correct(&self) -> f64 {
        self.correct
    }

    pub(super) fn scorer(&self, name: &str) -> f64 {
        self.scorers.get(name).copied().unwrap_or(f64::NAN)
    }
}

/// Two outcomes on one question.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair<'a> {
    pub first: &'a Outcome,
    pub second: &'a Outcome,
}

/// Difference between two outcomes on the same questions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairedChange {
    pub delta: Interval,
    pub p: f64,
    pub questions: usize,
    /// Pairs right first and wrong then, and the other way round; sums of differences where outcomes are means.
    pub lost: f64,
    pub gained: f64,
    /// Smallest difference that so many questions with this discordance show (80 % power, 5 % level); NaN if none is.
    pub detectable: f64,
}

/// The outcomes of all items, in the order of the samples.
pub(super) fn gather(samples: &[Scored<'_>]) -> Vec<Outcome> {
    let mut indices: HashMap<&str, usize> = HashMap::new();
    let mut outcomes: Vec<Outcome> = Vec::new();
    for sample in samples {
        let at = match indices.get(sample.item.id.as_str()) {
            Some(at) => *at,
            None => {
                let Some(outcome) = empty(sample) else { continue };
                indices.insert(&sample.item.id, outcomes.len());
                outcomes.push(outcome);
                outcomes.len() - 1
            }
        };
        let outcome = &mut outcomes[at];
        let score = sample.score;
        outcome.samples += 1.0;
        let share = 1.0 / outcome.samples;
        let mix = |mean: &mut f64, value: f64| *mean += (value - *mean) * share;
        mix(&mut outcome.correct, f64::from(score.correct));
        mix(&mut outcome.truncated, f64::from(sample.truncated));
        for (mean, name) in [(&mut outcome.unparsed, "unparsed"), (&mut outcome.faithful, "faithful")] {
            if let Some(value) = score.metrics.get(name) {
                mix(mean.get_or_insert(value), value);
            }
        }
        for (scorer, right) in score.scorers.iter() {
            mix(outcome.scorers.entry(scorer.to_owned()).or_insert(0.0), f64::from(right));
        }
    }
    outcomes
}

fn empty(sample: &Scored<'_>) -> Option<Outcome> {
    let covariates = &sample.item.covariates;
    let text = |name: &str| covariates.get(name).and_then(Value::as_str);
    let number =
        |name: &str| covariates.get(name).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
    let cells = [Cell::Original, Cell::Attack, Cell::Defence, Cell::Cost];
    Some(Outcome {
        question: sample.item.cluster.clone(),
        target: Target::ALL.into_iter().find(|target| Some(target.name()) == text("target"))?,
        set: number("demonstration_set")?,
        draw: number("draw")?,
        cell: cells.into_iter().find(|cell| Some(cell.name()) == text("cell"))?,
        kind: text("kind").and_then(|name| name.parse().ok()),
        correct: 0.0,
        scorers: BTreeMap::new(),
        unparsed: None,
        truncated: 0.0,
        faithful: None,
        samples: 0.0,
    })
}

/// The share of right outcomes, as [`right_share`] has it.
pub(super) fn accuracy(outcomes: &[&Outcome], value: impl Fn(&Outcome) -> f64) -> Interval {
    right_share(outcomes.iter().map(|outcome| (outcome.question.as_str(), value(outcome))))
}

/// The share of right outcomes of (question, outcome), with Wilson's interval. Where a question has several outcomes (draws, example
/// sets, a capability's two perturbations) the interval is that of as many independent questions as the cluster-robust error is worth: at
/// least one of all of them, at most the number of outcomes; where all outcomes are alike, the number of questions.
pub fn right_share<'a>(outcomes: impl IntoIterator<Item = (&'a str, f64)>) -> Interval {
    let values: Vec<(&str, f64)> = outcomes.into_iter().filter(|(_, value)| value.is_finite()).collect();
    let count = values.len() as f64;
    let mean = values.iter().map(|(_, value)| value).sum::<f64>() / count;
    let questions: std::collections::HashSet<&str> = values.iter().map(|(question, _)| *question).collect();
    let questions = questions.len() as f64;
    let effective = if questions == count {
        count
    } else {
        let spread = mean * (1.0 - mean);
        match cluster_robust_se(values.iter().copied()) {
            // Questions whose own outcomes even out have no error between them; the outcomes still count no more than they are.
            Some(error) if spread > 1e-12 => (spread / (error * error)).clamp(1.0, count),
            _ => questions,
        }
    };
    match wilson(mean * effective, effective, Z95) {
        Some(found) => Interval { estimate: found.value, low: found.low, high: found.high },
        None => unknown(),
    }
}

/// Compares the second outcomes of pairs with the first.
pub(super) fn compare(pairs: &[Pair<'_>], value: impl Fn(&Outcome) -> f64) -> PairedChange {
    let values = pairs.iter().map(|pair| (pair.first.question.as_str(), value(pair.first), value(pair.second)));
    paired_change(values)
}

/// The change from the first to the second of pairs of outcomes: (question, first, second), each outcome 0, 1 or a mean of such; pairs
/// with an unknown one are left out. With one pair a question the interval is Tango's score interval and p McNemar's exact one;
/// otherwise both are those of the verdict over questions ([`paired_verdict`]).
pub fn paired_change<'a>(pairs: impl IntoIterator<Item = (&'a str, f64, f64)>) -> PairedChange {
    let values: Vec<(f64, f64, &str)> = pairs
        .into_iter()
        .map(|(question, first, second)| (first, second, question))
        .filter(|(first, second, _)| first.is_finite() && second.is_finite())
        .collect();
    let mut names: HashMap<&str, u64> = HashMap::new();
    let clusters: Vec<u64> = values
        .iter()
        .map(|(.., question)| {
            let next = names.len() as u64;
            *names.entry(question).or_insert(next)
        })
        .collect();
    let n = values.len() as f64;
    let (mut lost, mut gained) = (0.0, 0.0);
    for (first, second, _) in &values {
        lost += (first - second).max(0.0);
        gained += (second - first).max(0.0);
    }
    let estimate = (gained - lost) / n;
    let single = names.len() == values.len() && values.iter().all(|(a, b, _)| a.fract() == 0.0 && b.fract() == 0.0);
    let (interval, p) = if values.is_empty() {
        (None, 1.0)
    } else if single {
        let counts = PairedCounts::of(values.iter().map(|(first, second, _)| (*first > 0.5, *second > 0.5)));
        (paired_score_interval(&counts, 0.95), mcnemar(&counts).exact_p)
    } else {
        let one = |sum: f64| Answers { sum, count: 1 };
        let pairs: Vec<PairedAnswers> = values
            .iter()
            .zip(&clusters)
            .map(|((first, second, _), cluster)| PairedAnswers::single(*cluster, one(*first), one(*second)))
            .collect();
        match paired_verdict(&pairs) {
            // A p value that underflows is small, not zero.
            Ok(found) => (found.interval(0.95), found.p.max(f64::MIN_POSITIVE)),
            Err(_) => (None, 1.0),
        }
    };
    let discordance = ((lost + gained) / n).clamp(0.0, 1.0);
    // With no discordant pair a tenth is assumed.
    let design = PairedDesign {
        discordance: if discordance > 0.0 { discordance } else { 0.1 },
        cluster_size: 1.0,
        intracluster: 0.0,
    };
    // An effect as large as the discordance itself means that no effect is detectable: there is no number to show.
    let detectable = match design.detectable_effect(names.len() as f64, Rates::default()) {
        Ok(effect) if effect < design.discordance => effect,
        _ => f64::NAN,
    };
    let delta = match interval {
        _ if values.is_empty() => unknown(),
        Some((low, high)) => Interval { estimate, low: low.max(-1.0), high: high.min(1.0) },
        None => Interval { estimate, low: -1.0, high: 1.0 },
    };
    PairedChange { delta, p, questions: names.len(), lost, gained, detectable }
}

/// Resamples of the relative change.
const RESAMPLES: usize = 1_000;

/// The change relative to the first accuracy, with the percentile interval of a bootstrap over questions.
pub(super) fn relative(pairs: &[Pair<'_>], right: impl Fn(&Outcome) -> f64) -> Interval {
    relative_change(pairs.iter().map(|pair| (pair.first.question.as_str(), right(pair.first), right(pair.second))))
}

/// The change of (question, first, second) relative to the first accuracy, with the percentile interval of a bootstrap over questions.
pub fn relative_change<'a>(pairs: impl IntoIterator<Item = (&'a str, f64, f64)>) -> Interval {
    let mut by_question: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for (question, first, second) in pairs {
        let sums = by_question.entry(question).or_default();
        sums.0 += first;
        sums.1 += second;
    }
    let sums: Vec<(f64, f64)> = by_question.into_values().collect();
    let statistic = |drawn: &[usize]| {
        let (first, second) = drawn
            .iter()
            .filter_map(|index| sums.get(*index))
            .fold((0.0, 0.0), |total, sums| (total.0 + sums.0, total.1 + sums.1));
        if first > 0.0 { Resampled::Value(second / first - 1.0) } else { Resampled::NotConverged }
    };
    match cluster_bootstrap(sums.len(), RESAMPLES, 1, 0.95, statistic) {
        Ok(found) => Interval { estimate: found.estimate, low: found.percentile.0, high: found.percentile.1 },
        Err(_) => unknown(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(question: usize, cell: Cell, draw: u32, correct: bool) -> Outcome {
        Outcome {
            question: format!("q{question}"),
            target: Target::Answer,
            set: 0,
            draw,
            cell,
            kind: (cell == Cell::Attack).then_some(Kind::Noise),
            correct: f64::from(correct),
            scorers: BTreeMap::new(),
            unparsed: None,
            truncated: 0.0,
            faithful: None,
            samples: 1.0,
        }
    }

    #[test]
    fn one_pair_a_question_is_tested_exactly() {
        // 9 lost, 3 gained, 65 alike.
        let first: Vec<Outcome> = (0..77).map(|q| outcome(q, Cell::Original, 0, !(9..12).contains(&q))).collect();
        let second: Vec<Outcome> = (0..77).map(|q| outcome(q, Cell::Attack, 0, q >= 9)).collect();
        let pairs: Vec<Pair<'_>> = first.iter().zip(&second).map(|(first, second)| Pair { first, second }).collect();
        let found = compare(&pairs, Outcome::correct);
        assert!((found.delta.estimate + 6.0 / 77.0).abs() < 1e-12);
        assert!((found.delta.low + 0.176_309_927_4).abs() < 1e-6 && (found.delta.high - 0.011_752_920_6).abs() < 1e-6);
        // scipy.stats.binomtest(3, 12).pvalue
        assert!((found.p - 0.145_996_093_75).abs() < 1e-12, "{}", found.p);
        assert_eq!((found.lost, found.gained, found.questions), (9.0, 3.0, 77));
        let change = relative(&pairs, Outcome::correct);
        assert!((change.estimate - (68.0 / 74.0 - 1.0)).abs() < 1e-12 && change.low < change.estimate);
    }

    #[test]
    fn several_draws_of_a_question_are_one_cluster() {
        let first: Vec<Outcome> = (0..20).map(|q| outcome(q, Cell::Original, 0, true)).collect();
        let draws: Vec<Outcome> =
            (0..100).map(|index| outcome(index % 20, Cell::Attack, (index / 20) as u32, index % 20 >= 5)).collect();
        let pairs: Vec<Pair<'_>> = draws
            .iter()
            .map(|second| Pair { first: &first[second.question[1..].parse::<usize>().unwrap()], second })
            .collect();
        let found = compare(&pairs, Outcome::correct);
        // The error is that of 20 questions, not of 100 pairs: 5 of 20 lost, whatever the number of draws.
        assert_eq!((found.questions, found.delta.estimate), (20, -0.25));
        let error = (0.25f64 * 0.75 / 19.0).sqrt();
        assert!((found.delta.high - found.delta.low) > 3.8 * error, "{:?}", found.delta);
        // Five questions that differ in one direction, whatever the number of draws: 2 of 2^5 exchanges.
        assert_eq!(found.p, 0.0625);
        assert!(found.delta.high == 0.0, "{:?}", found.delta);
    }

    #[test]
    fn outcomes_of_one_question_are_not_independent() {
        let once: Vec<Outcome> = (0..40).map(|q| outcome(q, Cell::Attack, 0, q % 4 != 0)).collect();
        let often: Vec<Outcome> =
            (0..200).map(|index| outcome(index % 40, Cell::Attack, (index / 40) as u32, index % 4 != 0)).collect();
        let of = |outcomes: &[Outcome]| accuracy(&outcomes.iter().collect::<Vec<_>>(), Outcome::correct);
        let (single, repeated) = (of(&once), of(&often));
        // Five equal answers to a question say as much as one, up to the small-sample factor 40/39.
        assert_eq!((single.estimate, repeated.estimate), (0.75, 0.75));
        let width = |found: &Interval| found.high - found.low;
        assert!((width(&repeated) / width(&single) - (40.0f64 / 39.0).sqrt()).abs() < 0.01, "{single:?} {repeated:?}");
        // All right: forty questions, not two hundred.
        let right: Vec<Outcome> = (0..200).map(|index| outcome(index % 40, Cell::Attack, 0, true)).collect();
        let known = of(&right);
        assert!((known.low - 40.0 / (40.0 + 1.959_964_f64.powi(2))).abs() < 1e-6, "{known:?}");
        // Independent outcomes within questions are not worth more than they are.
        let apart: Vec<Outcome> = (0..80).map(|index| outcome(index / 2, Cell::Attack, 0, index % 2 == 0)).collect();
        let found = of(&apart);
        let plain = wilson(40.0, 80.0, Z95).unwrap();
        assert!((found.low - plain.low).abs() < 1e-12 && (found.high - plain.high).abs() < 1e-12);
    }

    #[test]
    fn agreement_and_nothing_have_honest_intervals() {
        let first: Vec<Outcome> = (0..10).map(|q| outcome(q, Cell::Original, 0, true)).collect();
        let pairs: Vec<Pair<'_>> = first.iter().map(|first| Pair { first, second: first }).collect();
        let found = compare(&pairs, Outcome::correct);
        assert!(found.delta.estimate == 0.0 && found.delta.low < -0.2 && found.delta.high > 0.2 && found.p == 1.0);
        assert!(compare(&[], Outcome::correct).delta.estimate.is_nan());
    }
}
