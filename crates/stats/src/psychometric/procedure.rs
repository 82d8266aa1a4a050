//! The procedure: which lengths to ask next, when to stop, and what was found.
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::crossing::{Crossing, crossing, for_good};
use super::isotonic::{Counted, MonotoneTest, monotone};
use super::{Curves, Limit, Posterior, ShapeCheck, Step, steps};

/// Questions of a round.
pub const BATCH: usize = 6;

/// Levels of the limits: 90, 50 and 10 % of the way from chance to certainty.
pub const LEVELS: [f64; 3] = [0.9, 0.5, 0.1];

/// Answers before the procedure may stop by the width of the interval.
const FEWEST: usize = 2 * BATCH;

/// Level of the test of falling curves. It is looked at after each round, and for every skill.
const NOT_MONOTONE: f64 = 0.006;

/// Level below which intervals do not assume falling alone: that of all doubts would widen many intervals of curves that fall.
const UNSURE: f64 = 0.04;

/// Level below which falling is in doubt: lengths with few answers are asked until it is not.
const DOUBTED: f64 = 0.2;

/// Level of the check of the shape, and that from which a misfit is beyond doubt: between them questions go on.
const MISFIT: f64 = 0.1;
const SURE_MISFIT: f64 = 0.02;

/// Lengths that are asked where success does not fall with the length.
const COMPARED: usize = 8;

/// Octaves by which an end beyond the range counts as being outside it.
const BEYOND: f64 = 0.5;

/// Lengths from `first` to `last`, all of them up to 10 and then in steps of a seventh: no two neighbours differ by more than a limit can
/// be told to.
pub fn ladder(first: usize, last: usize) -> Vec<usize> {
    let mut lengths = Vec::new();
    let mut length = first;
    while length < last {
        lengths.push(length);
        length = (length + 1).max((length as f64 * 8.0 / 7.0).round() as usize);
    }
    if first <= last {
        lengths.push(last);
    }
    lengths
}

/// Estimate of a psychometric curve: its limits, answers by length and tests of its shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Limits of [`LEVELS`], with intervals that hold for curves of any shape that falls ([`crossing`]). Estimates are medians of the posterior within
    /// them; where the family does not fit, those of the best curve that never grows. Where success does not fall with the length, the lengths from which it stays below ([`for_good`]).
    pub limits: Vec<Limit>,
    /// Answers by length, of those asked.
    pub counts: Vec<Counted>,
    /// Test of the assumption that success falls with the length.
    pub monotone: MonotoneTest,
    /// False if the assumption does not hold.
    pub falls: bool,
    /// Check of the family of curves.
    pub check: ShapeCheck,
    /// False if the answers fall otherwise than the curves of the family, or do not fall: [`Measured::steps`] say how.
    pub fits: bool,
    /// Steps of the curve, by ascending length; empty where the family fits.
    pub steps: Vec<Step>,
    /// True if the interval is narrow enough; otherwise the budget ended the measurement, or more questions are wanted.
    pub narrow: bool,
}

impl Measured {
    /// False for a limit of a curve that grows and is above the level at the longest lengths: it never falls through for good.
    pub fn has_limit(&self, limit: &Limit) -> bool {
        self.falls || limit.estimate.is_finite()
    }

    /// Limit of the level nearest to this one.
    pub fn limit(&self, level: f64) -> Option<&Limit> {
        let off = |limit: &&Limit| ((limit.level - level).abs() * 1e6) as i64;
        self.limits.iter().min_by_key(off)
    }
}

/// An adaptive measurement. What it asks next depends on the answers so far and on nothing else.
#[derive(Debug, Clone)]
pub struct Procedure {
    curves: Arc<Curves>,
    /// Right and all answers by length.
    counts: Vec<(usize, usize)>,
    /// Questions asked, those without an answer included.
    asked: usize,
    /// Most questions.
    budget: usize,
    /// Largest ratio of the ends of the interval of the 50 % limit.
    width: f64,
}

impl Procedure {
    /// A measurement with at most `budget` questions, which ends when the 95 % interval of the 50 % limit spans a factor of at most
    /// `width`, or one digit.
    pub fn new(curves: &Arc<Curves>, budget: usize, width: f64) -> Self {
        Procedure { curves: Arc::clone(curves), counts: vec![(0, 0); curves.lengths().len()], asked: 0, budget, width }
    }

    /// Adds a question of this length, which the procedure must have asked; none for one that has no answer.
    pub fn add(&mut self, length: usize, right: Option<bool>) {
        self.asked += 1;
        let index = self.curves.lengths().iter().position(|&one| one == length);
        if let (Some(index), Some(right)) = (index, right) {
            self.counts[index].0 += usize::from(right);
            self.counts[index].1 += 1;
        }
    }

    /// Questions asked.
    pub fn asked(&self) -> usize {
        self.asked
    }

    fn posterior(&self) -> Posterior {
        let mut posterior = Posterior::new(&self.curves);
        for (index, &(right, asked)) in self.counts.iter().enumerate() {
            if asked > 0 {
                posterior.add(index, right, asked - right);
            }
        }
        posterior
    }

    fn counted(&self) -> Vec<Counted> {
        let counts = self.curves.lengths().iter().zip(&self.counts);
        counts
            .filter(|(_, (_, asked))| *asked > 0)
            .map(|(&length, &(right, asked))| Counted { length, right, asked })
            .collect()
    }

    /// Result so far.
    pub fn measured(&self) -> Measured {
        self.measure(&self.posterior())
    }

    fn measure(&self, posterior: &Posterior) -> Measured {
        let counts = self.counted();
        let (test, check) = (monotone(&counts), posterior.check(&counts));
        let falls = test.p > NOT_MONOTONE;
        let fits = falls && check.p >= MISFIT;
        let limit = |expected: Limit| {
            let Crossing { estimate, low, high } = self.crossing(&counts, expected.level, test.p);
            // A median outside the interval is an artefact of the family.
            let estimate = if fits { expected.estimate.clamp(low, high) } else { estimate };
            Limit { level: expected.level, estimate, low, high }
        };
        let limits: Vec<Limit> = posterior.limits(&LEVELS).into_iter().map(limit).collect();
        let narrow = self.is_narrow(limits[1].low, limits[1].high);
        let steps = if fits { Vec::new() } else { steps(&counts) };
        Measured { limits, counts, monotone: test, falls, check, fits, steps, narrow }
    }

    /// Crossing of a level of success above chance; `p` is that of the test of the assumption that success never grows. Where that is unlikely, the interval has
    /// both: that of a curve that never grows, and that of any curve.
    fn crossing(&self, counts: &[Counted], level: f64, p: f64) -> Crossing {
        let (lengths, chance) = (self.curves.lengths(), self.curves.chance());
        let range = (lengths[0], lengths[lengths.len() - 1]);
        let share = chance + (1.0 - chance) * level;
        if p <= NOT_MONOTONE {
            return for_good(counts, share, range);
        }
        let falling = crossing(counts, share, range);
        if p > UNSURE {
            return falling;
        }
        let any = for_good(counts, share, range);
        Crossing { low: falling.low.min(any.low), high: falling.high.max(any.high), ..falling }
    }

    fn is_narrow(&self, low: f64, high: f64) -> bool {
        let lengths = self.curves.lengths();
        let (first, last) = (lengths[0] as f64, lengths[lengths.len() - 1] as f64);
        let (below, beyond) = (first * libm::exp2(-BEYOND), last * libm::exp2(BEYOND));
        let (low, high) = (low.clamp(below, beyond), high.clamp(below, beyond));
        high <= low * self.width || high - low <= 1.0
    }

    /// Lengths of the next questions; none once the interval is narrow enough or the budget is spent.
    pub fn next(&self) -> Vec<usize> {
        let left = self.budget.saturating_sub(self.asked).min(BATCH);
        let lengths = self.curves.lengths();
        if left == 0 {
            return Vec::new();
        }
        if self.asked == 0 {
            return (0..left).map(|index| lengths[spread(index, left, lengths.len())]).collect();
        }
        let counts = self.counted();
        // In doubt of the limits, lengths are compared: a confident limit may rest on a wrong curve.
        if monotone(&counts).p <= DOUBTED {
            return self.fewest(left);
        }
        let posterior = self.posterior();
        let half = self.crossing(&counts, LEVELS[1], 1.0);
        if self.asked >= FEWEST && self.is_narrow(half.low, half.high) {
            let p = posterior.check(&counts).p;
            if !(SURE_MISFIT..MISFIT).contains(&p) {
                return Vec::new();
            }
        }
        let mut indices = posterior.most_informative(left.saturating_sub(1));
        indices.push(covering(self.asked / BATCH, lengths.len()));
        indices.into_iter().map(|index| lengths[index]).collect()
    }

    /// Of lengths spread over the range, those with the fewest answers.
    fn fewest(&self, count: usize) -> Vec<usize> {
        let lengths = self.curves.lengths();
        let compared = COMPARED.min(lengths.len());
        let mut answers: Vec<(usize, usize)> = (0..compared)
            .map(|index| spread(index, compared, lengths.len()))
            .map(|index| (self.counts[index].1, index))
            .collect();
        let mut chosen = Vec::with_capacity(count);
        for _ in 0..count {
            let Some(least) = answers.iter_mut().min() else { break };
            least.0 += 1;
            chosen.push(lengths[least.1]);
        }
        chosen
    }
}

/// Place of the `number`-th of `count` lengths spread evenly over a ladder, the ends left out where there are others.
fn spread(number: usize, count: usize, lengths: usize) -> usize {
    (2 * number + 1) * lengths / (2 * count)
}

/// Place of a round's covering question: the van der Corput sequence in base 2, of which any beginning covers the ladder.
fn covering(round: usize, lengths: usize) -> usize {
    let share = round.reverse_bits() as f64 / (usize::MAX as f64 + 1.0);
    ((share * lengths as f64) as usize).min(lengths - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks until the procedure stops; answers are right where `right` says so of the length and the number of its question.
    fn run(chance: f64, last: usize, budget: usize, right: impl Fn(usize, usize) -> bool) -> (Procedure, Measured) {
        let curves = Curves::new(&ladder(1, last), chance).unwrap();
        let mut procedure = Procedure::new(&curves, budget, 1.5);
        let mut seen = std::collections::BTreeMap::new();
        loop {
            let lengths = procedure.next();
            if lengths.is_empty() {
                let measured = procedure.measured();
                return (procedure, measured);
            }
            for length in lengths {
                let number = seen.entry(length).or_insert(0_usize);
                *number += 1;
                procedure.add(length, Some(right(length, *number)));
            }
        }
    }

    #[test]
    fn ladders_cover_their_range() {
        assert_eq!(ladder(1, 12), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        let long = ladder(1, 100);
        assert_eq!((long[0], long[long.len() - 1]), (1, 100));
        assert!(long.len() < 30 && long.windows(2).all(|pair| pair[0] < pair[1]), "{long:?}");
        assert_eq!((ladder(3, 3), ladder(4, 3)), (vec![3], Vec::new()));
    }

    #[test]
    fn a_step_is_found_with_few_questions() {
        let (procedure, measured) = run(0.0, 100, 60, |length, _| length <= 17);
        assert!(procedure.asked() <= 30, "{}", procedure.asked());
        let limit = measured.limit(0.5).unwrap();
        assert!(measured.falls && measured.narrow && limit.low < 18.5 && limit.high > 16.5, "{limit:?}");
    }

    #[test]
    fn nothing_and_everything_end_soon() {
        let (none, measured) = run(0.0, 20, 60, |_, _| false);
        assert!(none.asked() <= 24 && measured.limit(0.5).unwrap().estimate < 1.0, "{measured:?}");
        let (all, measured) = run(0.0, 100, 60, |_, _| true);
        assert!(all.asked() <= 24 && measured.limit(0.5).unwrap().estimate == f64::INFINITY, "{measured:?}");
    }

    #[test]
    fn what_grows_again_is_noticed_and_compared_by_length() {
        let (procedure, measured) = run(0.0, 20, 48, |length, _| length > 6);
        assert!(!measured.falls && !measured.fits, "{measured:?}");
        // Success is never below the level for good.
        assert!(measured.limit(0.5).is_some_and(|limit| limit.estimate == f64::INFINITY && limit.low > 6.0));
        assert_eq!(procedure.asked(), 48, "the whole budget is used");
        assert!(measured.counts.iter().filter(|one| one.asked >= 3).count() >= 6, "{:?}", measured.counts);
    }

    #[test]
    fn a_plateau_is_found_and_said_in_steps() {
        // All to 3 digits, three of five to 12, nothing beyond.
        let right = |length, number: usize| length <= 3 || length <= 12 && matches!(number % 5, 0 | 2 | 3);
        let (_, measured) = run(0.0, 20, 96, right);
        assert!(measured.falls && !measured.fits && measured.check.p < MISFIT, "{measured:?}");
        let steps: Vec<(usize, usize)> = measured.steps.iter().map(|step| (step.from, step.to)).collect();
        assert!(steps.len() >= 3 && steps[0].1 == 3, "{steps:?}");
        let limits = [0, 2].map(|index| (measured.limits[index].low, measured.limits[index].high));
        assert!(limits[0].0 <= 3.0 && limits[0].1 >= 4.0 && limits[1].0 <= 12.0 && limits[1].1 >= 13.0, "{limits:?}");
        let (_, smooth) = run(0.0, 20, 48, |length, number| (number * 7) % 20 >= length);
        assert!(smooth.fits && smooth.steps.is_empty(), "{smooth:?}");
    }

    #[test]
    fn estimates_lie_within_their_intervals() {
        for seed in 0..12 {
            let right = |length: usize, number: usize| (length * 37 + number * 61 + seed * 13) % 23 > length;
            let (_, measured) = run([0.0, 0.5][seed % 2], 20, 48, right);
            for limit in &measured.limits {
                assert!(limit.low <= limit.estimate && limit.estimate <= limit.high, "{measured:?}");
            }
        }
    }

    #[test]
    fn questions_go_on_while_the_shape_is_in_doubt() {
        let curves = Curves::new(&ladder(1, 20), 0.0).unwrap();
        let mut procedure = Procedure::new(&curves, 1_000, 1.5);
        // The 50 % limit is clear; three of four from 3 to 8 digits begin to look unlike the curves.
        let right = |length: usize, number: usize| length < 3 || length < 9 && number % 4 != 2;
        let (mut doubted, mut ended) = (0, 0);
        for number in 0..10 {
            for length in 1..=11 {
                procedure.add(length, Some(right(length, number)));
                let measured = procedure.measured();
                if number > 2 && measured.narrow {
                    let is_doubted = (SURE_MISFIT..MISFIT).contains(&measured.check.p);
                    assert_eq!(procedure.next().is_empty(), !is_doubted, "{measured:?}");
                    *if is_doubted { &mut doubted } else { &mut ended } += 1;
                }
            }
        }
        assert!(doubted > 0 && ended > 0, "{doubted} {ended}");
    }

    #[test]
    fn an_interval_has_what_may_lie_beyond_a_likely_rise() {
        let curves = Curves::new(&ladder(1, 20), 0.0).unwrap();
        let mut procedure = Procedure::new(&curves, 1_000, 1.5);
        for (length, right, asked) in [(1, 2, 5), (3, 0, 7), (4, 3, 4), (5, 0, 5), (7, 0, 5), (9, 0, 5)] {
            (0..asked).for_each(|number| procedure.add(length, Some(number < right)));
        }
        let measured = procedure.measured();
        assert!(measured.falls && measured.monotone.p <= UNSURE, "{measured:?}");
        let falling = crossing(&measured.counts, 0.5, (1, 20));
        let half = measured.limits[1];
        assert!(falling.high < half.high && half.low == falling.low, "{falling:?} {half:?}");
    }

    #[test]
    fn the_same_answers_ask_the_same() {
        let answers = |length: usize, number: usize| (length * 31 + number * 17) % 10 >= length;
        let (one, first) = run(0.0, 20, 36, answers);
        let (other, second) = run(0.0, 20, 36, answers);
        assert_eq!((one.counts, first), (other.counts, second));
    }

    #[test]
    fn questions_without_an_answer_use_the_budget_alone() {
        let curves = Curves::new(&ladder(1, 20), 0.0).unwrap();
        let mut procedure = Procedure::new(&curves, 8, 1.5);
        let first = procedure.next();
        first.iter().for_each(|&length| procedure.add(length, None));
        assert_eq!((procedure.asked(), procedure.measured().counts.len()), (BATCH, 0));
        assert_eq!(procedure.next().len(), 2);
    }
}
