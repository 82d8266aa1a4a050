//! Lengths at which two models are told apart, and the shared questions there.
//!
//! Two models whose limits were measured are compared by questions that both get and neither had: at lengths between their limits, where one is
//! mostly right and the other mostly wrong. Skills, lengths and the direction of the test depend on the earlier answers alone, so that a paired test of the
//! new ones holds its level whatever was chosen, and its p value can be combined with the one of the earlier answers.
use super::Limit;
use crate::distribution::binomial_half_lower;
use crate::{PairedCounts, holm};

/// Shared questions of a skill.
pub const SHARED_OF_SKILL: usize = 24;

/// Shared questions of the last skill, for which fewer are left.
pub const FEWEST_OF_SKILL: usize = 12;

/// Level at which a difference holds, after Holm's adjustment.
pub const DIFFERENCE_LEVEL: f64 = 0.05;

/// Two 50 % limits on the lengths that can be asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Between {
    /// Both estimates are below the shortest length.
    Floor,
    /// Both estimates are beyond the longest length.
    Ceiling,
    /// Lengths to ask, ascending: those between the two estimates where the intervals are apart, else those that either interval holds; the nearest one
    /// where there is none of them.
    Lengths(Vec<usize>),
}

impl Between {
    /// Places two limits on ascending lengths, of which there must be one.
    pub fn of(one: &Limit, other: &Limit, lengths: &[usize]) -> Between {
        let (shortest, longest) = (lengths[0] as f64, lengths[lengths.len() - 1] as f64);
        let both = |is: &dyn Fn(f64) -> bool| is(one.estimate) && is(other.estimate);
        if both(&|estimate| estimate < shortest) {
            return Between::Floor;
        }
        if both(&|estimate| estimate > longest) {
            return Between::Ceiling;
        }
        let overlap = one.low <= other.high && other.low <= one.high;
        let (from, to) = match overlap {
            true => (one.low.min(other.low), one.high.max(other.high)),
            false => (one.estimate.min(other.estimate), one.estimate.max(other.estimate)),
        };
        let inside: Vec<usize> =
            lengths.iter().copied().filter(|&length| (from..=to).contains(&(length as f64))).collect();
        let nearest = || {
            let middle = libm::sqrt(from.clamp(shortest, longest) * to.clamp(shortest, longest));
            let off = |length: &usize| libm::fabs(libm::log2(*length as f64 / middle));
            lengths.iter().copied().min_by(|left, right| off(left).total_cmp(&off(right))).into_iter().collect()
        };
        Between::Lengths(if inside.is_empty() { nearest() } else { inside })
    }
}

/// Shares out so many questions over a family of skills by the p values of their earlier answers, in rising order: [`SHARED_OF_SKILL`] each, and to the
/// last skill what is left, if it is half of that. 0 for skills that get none, which are also those whose difference holds without a shared answer.
pub fn share_out(questions: usize, earlier: &[f64]) -> Vec<usize> {
    // As they count in the end, so that a skill has one chance to hold, whether it is asked or not.
    let unasked: Vec<f64> = earlier.iter().map(|&p| with_shared(p, &PairedCounts::default())).collect();
    let holds: Vec<bool> = holm(&unasked).unwrap_or_default().iter().map(|&p| p < DIFFERENCE_LEVEL).collect();
    let mut open: Vec<usize> = (0..holds.len()).filter(|&skill| !holds[skill]).collect();
    open.sort_by(|&left, &right| earlier[left].total_cmp(&earlier[right]));
    let mut counts = vec![0; earlier.len()];
    let mut left = questions;
    for skill in open {
        let count = left.min(SHARED_OF_SKILL);
        if count < FEWEST_OF_SKILL {
            break;
        }
        counts[skill] = count;
        left -= count;
    }
    counts
}

/// p value of a difference by earlier answers and shared ones: Fisher's combination of the p value of the earlier ones with that of McNemar's exact test
/// of the pairs, one-sided in the direction of the earlier limits. The first model of the pairs is the one with the longer limit. Where there are no pairs, their p
/// value is 1: all skills of a comparison that asks shared questions are combined, or those that hold early would be tested twice.
pub fn with_shared(earlier: f64, pairs: &PairedCounts) -> f64 {
    let (with, against) = (pairs.first_only, pairs.second_only);
    let shared = binomial_half_lower(against, with + against).min(1.0);
    let product = (earlier * shared).clamp(f64::MIN_POSITIVE, 1.0);
    (product * (1.0 - libm::log(product))).min(1.0)
}

/// Questions at each of ascending lengths, spread evenly: every length as often as the others or once more, the middle ones first; of more lengths than
/// questions, some as far apart as possible.
pub fn spread_over(questions: usize, lengths: &[usize]) -> Vec<(usize, usize)> {
    if questions == 0 || lengths.is_empty() {
        return Vec::new();
    }
    if questions < lengths.len() {
        let index = |turn: usize| ((2 * turn + 1) * lengths.len()) / (2 * questions);
        return (0..questions).map(|turn| (lengths[index(turn)], 1)).collect();
    }
    let (each, more) = (questions / lengths.len(), questions % lengths.len());
    let first = (lengths.len() - more) / 2;
    let count = |index: usize| each + usize::from((first..first + more).contains(&index));
    lengths.iter().enumerate().map(|(index, &length)| (length, count(index))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::chi_squared_upper;

    const TEN: [usize; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

    fn limit(low: f64, estimate: f64, high: f64) -> Limit {
        Limit { level: 0.5, estimate, low, high }
    }

    fn lengths(one: Limit, other: Limit) -> Vec<usize> {
        let found = Between::of(&one, &other, &TEN);
        assert_eq!(Between::of(&other, &one, &TEN), found, "either order");
        match found {
            Between::Lengths(lengths) => lengths,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lengths_are_between_limits_that_are_apart_and_in_intervals_that_overlap() {
        assert_eq!(lengths(limit(1.5, 2.0, 2.5), limit(4.7, 5.5, 6.0)), [2, 3, 4, 5]);
        assert_eq!(lengths(limit(4.4, 5.0, 5.8), limit(4.7, 5.5, 6.3)), [5, 6]);
        // One model knows nothing, or all that is asked.
        assert_eq!(lengths(limit(0.0, 0.0, 1.1), limit(3.1, 3.5, 4.2)), [1, 2, 3]);
        assert_eq!(lengths(limit(7.5, 8.0, 9.0), limit(9.5, f64::INFINITY, f64::INFINITY)), [8, 9, 10]);
        assert_eq!(lengths(limit(0.0, 0.0, 0.0), limit(0.0, 1.4, 1.8)), [1]);
        // Nothing can be asked between them: the length that is nearest to both.
        assert_eq!(lengths(limit(5.1, 5.2, 5.3), limit(5.5, 5.7, 5.8)), [5]);
        assert_eq!(lengths(limit(5.1, 5.4, 5.5), limit(5.7, 5.8, 5.9)), [6]);
    }

    #[test]
    fn what_neither_or_both_can_do_is_not_asked() {
        let (floor, ceiling) = (limit(0.0, 0.0, 1.6), limit(8.0, f64::INFINITY, f64::INFINITY));
        assert_eq!(Between::of(&floor, &floor, &TEN), Between::Floor);
        assert_eq!(Between::of(&ceiling, &ceiling, &TEN), Between::Ceiling);
        assert_eq!(lengths(floor, ceiling), TEN);
    }

    #[test]
    fn questions_go_to_the_skills_that_differ_most_and_are_open() {
        assert_eq!(share_out(36, &[0.9, 0.03, 0.2]), [0, 24, 12]);
        assert_eq!(share_out(35, &[0.9, 0.03, 0.2]), [0, 24, 0], "too few for a skill");
        assert_eq!(share_out(400, &[0.9, 0.03, 0.2]), [24, 24, 24]);
        // What holds already, combined as it will be, needs no question: 0.0028 (1 - ln 0.0028) is 0.0193, and three times that 0.058.
        assert_eq!(share_out(400, &[0.9, 0.002, 0.2]), [24, 0, 24]);
        assert_eq!(share_out(400, &[0.9, 0.0028, 0.2]), [24, 24, 24]);
        assert_eq!((share_out(400, &[]), share_out(0, &[0.5])), (vec![], vec![0]));
        let many: Vec<f64> = (0..50).map(|index| 1.0 - f64::from(index) / 60.0).collect();
        let shared = share_out(400, &many);
        assert_eq!((shared.iter().sum::<usize>(), shared[32], shared[33], shared[34]), (400, 0, 16, 24));
    }

    // Fisher's method: the upper tail of chi squared with 4 degrees of freedom at -2 ln(p q), which is p q (1 - ln(p q)).
    #[test]
    fn shared_answers_add_to_the_earlier_ones() {
        let p = |earlier, with, against| {
            with_shared(earlier, &PairedCounts { both: 3, first_only: with, second_only: against, neither: 1 })
        };
        let product: f64 = 0.02 * 9.0 / 256.0;
        assert!((p(0.02, 7, 1) - chi_squared_upper(-2.0 * product.ln(), 4.0)).abs() < 1e-12);
        assert!((p(1.0, 0, 0) - 1.0).abs() < 1e-12 && (p(0.01, 0, 0) - 0.01 * (1.0 - 0.01_f64.ln())).abs() < 1e-12);
        // Against the direction of the limits there is no evidence.
        assert!(p(0.02, 1, 7) > p(0.02, 4, 4) && p(0.02, 4, 4) > p(0.02, 7, 1));
        assert!((0.0..1e-300).contains(&p(0.0, 24, 0)));
    }

    #[test]
    fn questions_are_spread_over_lengths() {
        assert_eq!(spread_over(12, &[2, 3, 4]), [(2, 4), (3, 4), (4, 4)]);
        assert_eq!(spread_over(14, &[2, 3, 4, 5]), [(2, 3), (3, 4), (4, 4), (5, 3)]);
        assert_eq!(spread_over(3, &TEN), [(2, 1), (6, 1), (9, 1)]);
        assert_eq!(spread_over(10, &TEN).len(), 10);
        assert_eq!((spread_over(0, &TEN), spread_over(5, &[])), (Vec::new(), Vec::new()));
    }
}
