//! Accuracy and tokens against a cap on thinking, paired by question.
use std::collections::BTreeMap;

use serde::Serialize;

use earnest_stats::mcnemar::{PairedCounts, mcnemar};
use earnest_stats::{Z95, holm, paired_score_interval, wilson};
use earnest_tasks::suite::profile::{ThinkingBudgets, ThinkingTask, cap_of, cap_text};

use earnest_results::Sample;

/// Level at which a difference holds.
const LEVEL: f64 = 0.05;

/// Questions of a kind under every cap.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ThinkingResult {
    pub kind: ThinkingTask,
    /// Digits of the numbers.
    pub length: usize,
    /// Without thinking, where the model can be kept from it, then by ascending cap.
    pub caps: Vec<CapResult>,
    /// Index in `caps` from which on no larger cap gains anything that holds.
    pub enough: usize,
}

/// Questions under a cap. An answer that ended by itself is the answer under every larger cap.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CapResult {
    /// Tokens; none without thinking.
    pub cap: Option<usize>,
    pub asked: usize,
    pub right: usize,
    /// Accuracy with Wilson's 95 % interval.
    pub accuracy: f64,
    pub low: f64,
    pub high: f64,
    /// Answers that the cap ended.
    pub cut: usize,
    /// Mean tokens and seconds of an answer, from its request's first scheduled token to its last one.
    pub tokens: f64,
    pub seconds: f64,
    /// Right answers a thousand tokens and a second; none without either.
    pub right_per_thousand_tokens: Option<f64>,
    pub right_per_second: Option<f64>,
    /// Gain of the largest cap over this one; none for the largest.
    pub gain: Option<Gain>,
}

/// Difference of two caps, paired by question.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gain {
    pub difference: f64,
    /// Tango's 95 % interval.
    pub low: f64,
    pub high: f64,
    /// Exact p value of McNemar's test after Holm's adjustment over the caps.
    pub p_holm: f64,
    /// True if it is below 5 %.
    pub holds: bool,
}

/// An answer under a cap.
#[derive(Debug, Clone, Copy)]
struct CappedAnswer {
    right: bool,
    /// The token budget or the context ended it.
    cut: bool,
    /// A larger cap would have let it go on.
    goes_on: bool,
    tokens: usize,
    seconds: f64,
}

/// Answers to the questions of a kind, by the number of the question.
type Answers = BTreeMap<u64, CappedAnswer>;

/// Answers as they are read.
#[derive(Default)]
pub(super) struct ThinkingAnswers {
    /// By kind and question: the answers by cap, that without thinking first.
    answers: BTreeMap<ThinkingTask, BTreeMap<u64, BTreeMap<Option<usize>, CappedAnswer>>>,
    lengths: BTreeMap<ThinkingTask, usize>,
}

impl ThinkingAnswers {
    pub(super) fn add(&mut self, kind: ThinkingTask, length: usize, sample: &Sample) {
        let pair = sample.covariates.get("pair").and_then(serde_json::Value::as_u64);
        let (Some(pair), Some(cap)) = (pair, cap_of(&sample.covariates)) else { return };
        let (Some(score), Some(completion)) = (&sample.score, &sample.completion) else { return };
        let answer = CappedAnswer {
            right: score.correct,
            cut: sample.truncated(),
            goes_on: sample.truncated() && !sample.clipped(),
            tokens: completion.tokens(),
            seconds: completion.timings.prefill_s + completion.timings.decode_s,
        };
        self.lengths.insert(kind, length);
        self.answers.entry(kind).or_default().entry(pair).or_default().insert(cap, answer);
    }

    /// Results of the kinds that were asked.
    pub(super) fn results(&self, budgets: Option<&ThinkingBudgets>) -> Vec<ThinkingResult> {
        let Some(budgets) = budgets else { return Vec::new() };
        let caps: Vec<Option<usize>> = std::iter::once(None).chain(budgets.caps.iter().copied().map(Some)).collect();
        let result = |(&kind, questions): (&ThinkingTask, &BTreeMap<u64, BTreeMap<Option<usize>, CappedAnswer>>)| {
            let under = |cap: &Option<usize>| {
                let answers = questions.iter().filter_map(|(pair, answers)| Some((*pair, answer(answers, *cap)?)));
                (*cap, answers.collect::<Answers>())
            };
            let all: Vec<_> = caps.iter().map(under).filter(|(_, answers)| !answers.is_empty()).collect();
            let (_, largest) = all.last()?;
            let gains = gains(&all, largest);
            let row = |(of, gain): (&(Option<usize>, Answers), Option<Gain>)| capped(of.0, &of.1, gain);
            let last = std::iter::once(None);
            let rows: Vec<CapResult> =
                all.iter().zip(gains.into_iter().map(Some).chain(last)).filter_map(row).collect();
            let gained = |row: &CapResult| row.gain.is_some_and(|gain| gain.holds && gain.difference > 0.0);
            let enough = rows.iter().position(|row| !gained(row))?;
            Some(ThinkingResult { kind, length: *self.lengths.get(&kind)?, caps: rows, enough })
        };
        self.answers.iter().filter_map(result).collect()
    }
}

/// The answer under a cap: that of the largest cap up to it, if it ended by itself or was asked under this one.
fn answer(answers: &BTreeMap<Option<usize>, CappedAnswer>, cap: Option<usize>) -> Option<CappedAnswer> {
    if cap.is_none() {
        return answers.get(&None).copied();
    }
    let (asked, answer) = answers.range(Some(0)..=cap).next_back()?;
    (*asked == cap || !answer.goes_on).then_some(*answer)
}

/// Gains of the largest cap over each other one.
fn gains(all: &[(Option<usize>, Answers)], largest: &Answers) -> Vec<Gain> {
    let mut p_values = Vec::new();
    let mut found = Vec::new();
    for (_, answers) in &all[..all.len() - 1] {
        let pairs = answers.iter().filter_map(|(pair, answer)| Some((answer.right, largest.get(pair)?.right)));
        let counts = PairedCounts::of(pairs);
        let pairs = counts.both + counts.first_only + counts.second_only + counts.neither;
        let (low, high) = paired_score_interval(&counts, 0.95).unwrap_or((-1.0, 1.0));
        let difference = (counts.second_only as f64 - counts.first_only as f64) / pairs.max(1) as f64;
        p_values.push(mcnemar(&counts).exact_p);
        found.push(Gain { difference, low, high, p_holm: 1.0, holds: false });
    }
    let adjusted = holm(&p_values).unwrap_or(p_values);
    let with_p = |(gain, p_holm): (Gain, f64)| Gain { p_holm, holds: p_holm < LEVEL, ..gain };
    found.into_iter().zip(adjusted).map(with_p).collect()
}

fn capped(cap: Option<usize>, answers: &Answers, gain: Option<Gain>) -> Option<CapResult> {
    let (asked, right) = (answers.len(), answers.values().filter(|answer| answer.right).count());
    let accuracy = wilson(right as f64, asked as f64, Z95)?;
    let tokens: usize = answers.values().map(|answer| answer.tokens).sum();
    let seconds: f64 = answers.values().map(|answer| answer.seconds).sum();
    let per = |amount: f64| (amount > 0.0).then(|| right as f64 / amount);
    Some(CapResult {
        cap,
        asked,
        right,
        accuracy: accuracy.value,
        low: accuracy.low,
        high: accuracy.high,
        cut: answers.values().filter(|answer| answer.cut).count(),
        tokens: tokens as f64 / asked as f64,
        seconds: seconds / asked as f64,
        right_per_thousand_tokens: per(tokens as f64 / 1_000.0),
        right_per_second: per(seconds),
        gain,
    })
}

impl ThinkingResult {
    /// Name of the questions: `products of 3 digits`.
    pub fn name(&self) -> String {
        let digits = if self.length == 1 { "digit" } else { "digits" };
        format!("{} of {} {digits}", self.kind.title(), self.length)
    }

    /// Sentence about where more thinking stops helping.
    pub fn verdict(&self) -> String {
        let Some(enough) = self.caps.get(self.enough) else { return String::new() };
        let largest = self.caps.last().map_or(String::new(), |last| cap_text(last.cap));
        let Some(gain) = enough.gain else { return format!("more thinking helps up to {largest} tokens") };
        let [difference, low, high] = [gain.difference, gain.low, gain.high].map(|value| 100.0 * value);
        let points = format!("{difference:+.0} points [{low:+.0}, {high:+.0}]");
        match (enough.cap, gain.holds) {
            (None, true) => format!("thinking loses: {points} with {largest} tokens"),
            (None, false) => format!("thinking gains nothing that holds: {points} with {largest} tokens"),
            (Some(_), true) => format!("more than {} tokens lose: {points} with {largest}", cap_text(enough.cap)),
            (Some(_), false) => {
                format!("more than {} tokens gain nothing that holds: {points} with {largest}", cap_text(enough.cap))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_tasks::suite::profile::Way;

    fn budgets() -> ThinkingBudgets {
        ThinkingBudgets { caps: vec![64, 256, 1_024], way: Way::Steps }
    }

    fn answered(answers: &[(u64, Option<usize>, bool, bool, usize)]) -> ThinkingAnswers {
        let mut found = ThinkingAnswers::default();
        found.lengths.insert(ThinkingTask::Products, 3);
        for &(pair, cap, right, cut, tokens) in answers {
            let answer = CappedAnswer { right, cut, goes_on: cut, tokens, seconds: tokens as f64 / 10.0 };
            let questions = found.answers.entry(ThinkingTask::Products).or_default();
            questions.entry(pair).or_default().insert(cap, answer);
        }
        found
    }

    #[test]
    fn answers_that_ended_count_under_larger_caps() {
        let mut rows = Vec::new();
        for pair in 0..20 {
            rows.push((pair, None, pair < 2, false, 5));
            // A fourth ends at once, half under 256 tokens, the rest never.
            let ends = pair < 5;
            rows.push((pair, Some(64), ends, !ends, if ends { 40 } else { 64 }));
            if !ends {
                rows.push((pair, Some(256), pair < 15, pair >= 15, if pair < 15 { 200 } else { 256 }));
            }
            if pair >= 15 {
                rows.push((pair, Some(1_024), false, true, 1_024));
            }
        }
        let [found] = &answered(&rows).results(Some(&budgets()))[..] else { panic!("one kind") };
        let shown: Vec<_> = found.caps.iter().map(|row| (row.cap, row.asked, row.right, row.cut)).collect();
        let expected = [(None, 20, 2, 0), (Some(64), 20, 5, 15), (Some(256), 20, 15, 5), (Some(1_024), 20, 15, 5)];
        assert_eq!(shown, expected);
        assert_eq!(found.caps[2].tokens, (5.0 * 40.0 + 10.0 * 200.0 + 5.0 * 256.0) / 20.0);
        assert_eq!(found.caps[0].right_per_thousand_tokens, Some(20.0));
        assert_eq!(found.caps[0].right_per_second, Some(0.2));
        let gain = found.caps[1].gain.unwrap();
        assert!(gain.holds && gain.difference == 0.5 && gain.low > 0.2, "{gain:?}");
        assert_eq!((found.enough, found.caps[3].gain), (2, None));
        assert!(found.verdict().starts_with("more than 256 tokens gain nothing that holds: +0 points"));
    }

    #[test]
    fn what_is_missing_is_left_out_and_losses_are_said() {
        // The second question has no answer under the second cap: the run was interrupted.
        let rows = [(0, Some(64), true, false, 9), (1, Some(64), false, true, 64)];
        let [found] = &answered(&rows).results(Some(&budgets()))[..] else { panic!("one kind") };
        let asked: Vec<_> = found.caps.iter().map(|row| (row.cap, row.asked)).collect();
        assert_eq!(asked, [(Some(64), 2), (Some(256), 1), (Some(1_024), 1)]);
        let worse: Vec<_> =
            (0..24).flat_map(|pair| [(pair, None, true, false, 4), (pair, Some(64), pair < 8, false, 40)]).collect();
        let [found] = &answered(&worse).results(Some(&budgets()))[..] else { panic!("one kind") };
        assert_eq!(found.enough, 0);
        assert!(found.verdict().starts_with("thinking loses: -67 points"), "{}", found.verdict());
        assert!(ThinkingAnswers::default().results(Some(&budgets())).is_empty());
    }
}
