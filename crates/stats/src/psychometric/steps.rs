//! Steps of a curve: neighbouring lengths with one share of right answers.
use serde::{Deserialize, Serialize};

use super::isotonic::Counted;
use crate::{Z95, wilson};

/// Neighbouring lengths whose answers do not tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Shortest and longest length that was asked.
    pub from: usize,
    pub to: usize,
    pub right: usize,
    pub asked: usize,
    /// Share of right answers, with Wilson's 95 % interval.
    pub share: f64,
    pub low: f64,
    pub high: f64,
}

/// Twice the logarithm of the likelihood ratio from which two neighbours are two steps: the 5 % level of a place that is known. Steps are described where
/// something else has shown that the curve does not fit, and each has its interval.
const APART: f64 = 3.84;

/// Steps of counts by ascending length: neighbours are joined, those that differ least first, until all that are left differ.
pub fn steps(counts: &[Counted]) -> Vec<Step> {
    let asked = counts.iter().filter(|one| one.asked > 0);
    // From, to, right, asked.
    let mut steps: Vec<[usize; 4]> = asked.map(|one| [one.length, one.length, one.right, one.asked]).collect();
    while let Some((index, difference)) = least_different(&steps)
        && difference < APART
    {
        let [_, to, right, asked] = steps.remove(index + 1);
        let step = &mut steps[index];
        *step = [step[0], to, step[2] + right, step[3] + asked];
    }
    let step = |[from, to, right, asked]: [usize; 4]| {
        let found = wilson(right as f64, asked as f64, Z95)?;
        Some(Step { from, to, right, asked, share: found.value, low: found.low, high: found.high })
    };
    steps.into_iter().filter_map(step).collect()
}

/// The step that differs least from the next one, the first of several, with twice the logarithm of the likelihood ratio.
fn least_different(steps: &[[usize; 4]]) -> Option<(usize, f64)> {
    let ln = |right: usize, asked: usize| {
        let part = |count: usize| if count == 0 { 0.0 } else { count as f64 * libm::log(count as f64 / asked as f64) };
        part(right) + part(asked - right)
    };
    let difference = |pair: &[[usize; 4]]| {
        let [[_, _, right, asked], [_, _, next_right, next_asked]] = [pair[0], pair[1]];
        2.0 * (ln(right, asked) + ln(next_right, next_asked) - ln(right + next_right, asked + next_asked))
    };
    steps.windows(2).map(difference).enumerate().min_by(|one, other| one.1.total_cmp(&other.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(of: &[(usize, usize, usize)]) -> Vec<(usize, usize, usize, usize)> {
        let counts: Vec<Counted> = of.iter().map(|&(length, right, asked)| Counted { length, right, asked }).collect();
        steps(&counts).iter().map(|step| (step.from, step.to, step.right, step.asked)).collect()
    }

    #[test]
    fn a_plateau_is_a_step_between_two() {
        let plateau = [(1, 5, 5), (3, 9, 10), (4, 6, 9), (8, 5, 9), (12, 6, 9), (13, 0, 6), (17, 0, 5)];
        assert_eq!(found(&plateau), [(1, 3, 14, 15), (4, 12, 17, 27), (13, 17, 0, 11)]);
        let bump = [(1, 0, 6), (4, 0, 6), (6, 6, 6), (9, 5, 6), (14, 0, 6), (19, 1, 6)];
        assert_eq!(found(&bump), [(1, 4, 0, 12), (6, 9, 11, 12), (14, 19, 1, 12)]);
    }

    #[test]
    fn what_does_not_differ_is_one_step() {
        assert_eq!(found(&[(1, 3, 6), (2, 0, 0), (5, 4, 6), (9, 2, 6)]), [(1, 9, 9, 18)]);
        assert_eq!(found(&[]), []);
    }
}
