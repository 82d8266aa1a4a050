//! Power by simulation: studies drawn from a mixed model and analysed as they would be.
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::mixed::logistic;
use super::{DesignSize, MixedDesign};
use crate::distribution::normal_quantile;
use crate::power::{PowerError, require};
use crate::{clustered_mean, paired_difference};

/// Columns of a simulated study, one row an answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SimulatedStudy {
    /// 1 for right answers, else 0.
    pub correct: Vec<f64>,
    /// 0 for the first condition, 1 for the second.
    pub condition: Vec<f64>,
    pub template: Vec<u64>,
    /// Question, unique over templates; shared questions have one number in both conditions.
    pub question: Vec<u64>,
}

/// Test of a study: a p value of no difference, or none if the study has none. The place for any other test, such as that of a mixed
/// model with random slopes.
pub type Analysis = dyn Fn(&SimulatedStudy) -> Option<f64> + Sync;

/// The paired test over templates: Student's t of their mean differences.
pub fn paired_cluster_test(study: &SimulatedStudy) -> Option<f64> {
    let mut sums: Vec<[(f64, f64); 2]> = Vec::new();
    for ((correct, condition), template) in study.correct.iter().zip(&study.condition).zip(&study.template) {
        let index = *template as usize;
        if sums.len() <= index {
            sums.resize(index + 1, [(0.0, 0.0); 2]);
        }
        let (sum, count) = &mut sums[index][usize::from(*condition > 0.0)];
        (*sum, *count) = (*sum + correct, *count + 1.0);
    }
    let mean = |condition: usize| sums.iter().map(|sums| sums[condition].0 / sums[condition].1).collect::<Vec<f64>>();
    let templates: Vec<u64> = (0..sums.len() as u64).collect();
    paired_difference(&mean(0), &mean(1), &templates).ok().map(|difference| difference.p())
}

impl MixedDesign {
    /// Draws the study with this number; it depends on the seed and the number only.
    pub fn study(&self, size: DesignSize, seed: u64, number: u64) -> SimulatedStudy {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(number);
        let fixed = self.fixed_effects();
        let mut study = SimulatedStudy::default();
        let conditions = 2 * size.answers();
        study.correct.reserve(conditions);
        study.condition.reserve(conditions);
        study.template.reserve(conditions);
        study.question.reserve(conditions);
        let mut question = 0;
        for template in 0..size.templates as u64 {
            let of_template = effects(&self.template, &mut random);
            for _ in 0..size.questions {
                let of_question = effects(&self.question, &mut random);
                let others = if self.shared_questions { of_question } else { effects(&self.question, &mut random) };
                for (condition, own) in [of_question[0], others[1]].into_iter().enumerate() {
                    let rate = logistic(fixed[condition] + of_template[condition] + own);
                    for _ in 0..size.samples {
                        study.correct.push(f64::from(u8::from(random.random::<f64>() < rate)));
                        study.condition.push(condition as f64);
                        study.template.push(template);
                        study.question.push(question);
                    }
                    question += u64::from(!self.shared_questions);
                }
                question += u64::from(self.shared_questions);
            }
        }
        study
    }
}

/// Effects of a group in both conditions.
fn effects(sds: &super::RandomEffects, random: &mut ChaCha8Rng) -> [f64; 2] {
    let mut normal = || normal_quantile(random.random_range(f64::EPSILON..1.0));
    let (first, other) = (normal(), normal());
    let rest = (1.0 - sds.correlation * sds.correlation).max(0.0).sqrt();
    let intercept = sds.intercept_sd * first;
    [intercept, intercept + sds.slope_sd * (sds.correlation * first + rest * other)]
}

/// Share of simulated studies in which a test finds the difference at this level, with its Monte Carlo standard error. Studies without a p
/// value find nothing.
pub fn simulated_power(
    design: &MixedDesign,
    size: DesignSize,
    alpha: f64,
    studies: u64,
    seed: u64,
    analysis: &Analysis,
) -> Result<(f64, f64), PowerError> {
    design.check()?;
    size.check()?;
    require("alpha", alpha, alpha > 0.0 && alpha < 1.0, "a number between 0 and 1")?;
    require("simulated studies", studies as f64, studies >= 2, "at least 2")?;
    let found = |number: u64| analysis(&design.study(size, seed, number)).is_some_and(|p| p < alpha);
    let found: Vec<f64> = (0..studies).into_par_iter().map(|number| f64::from(u8::from(found(number)))).collect();
    let labels: Vec<u64> = (0..studies).collect();
    let share = clustered_mean(&found, &labels).expect("there are two studies, and a share of each");
    Ok((share.mean, share.standard_error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::{PilotItem, RandomEffects, pilot_parts};

    fn design(shared_questions: bool, question_slope: f64) -> MixedDesign {
        MixedDesign {
            accuracy: 0.6,
            effect: 0.07,
            template: RandomEffects { intercept_sd: 1.5, slope_sd: 0.7, correlation: -0.3 },
            question: RandomEffects { intercept_sd: 0.8, slope_sd: question_slope, correlation: 0.2 },
            shared_questions,
        }
    }

    /// Variances of templates' mean differences in many simulated templates, against the integrals.
    #[test]
    fn simulation_and_formula_agree() {
        for (shared, slope) in [(true, 0.0), (true, 0.6), (false, 0.4)] {
            let design = design(shared, slope);
            let parts = design.parts().unwrap();
            for (questions, samples) in [(1, 1), (4, 1), (3, 4)] {
                let size = DesignSize { templates: 20_000, questions, samples };
                let study = design.study(size, 5, 1);
                let mut sums = vec![0.0; size.templates];
                for ((correct, condition), template) in study.correct.iter().zip(&study.condition).zip(&study.template)
                {
                    sums[*template as usize] += if *condition > 0.0 { *correct } else { -correct };
                }
                let differences: Vec<f64> = sums.iter().map(|sum| sum / (questions * samples) as f64).collect();
                let count = size.templates as f64;
                let mean = differences.iter().sum::<f64>() / count;
                let moment = |power: i32| differences.iter().map(|d| (d - mean).powi(power)).sum::<f64>() / count;
                let (variance, error) = (moment(2), ((moment(4) - moment(2).powi(2)) / count).sqrt());
                assert!((mean - design.effect).abs() < 4.0 * (variance / count).sqrt(), "{mean}");
                let expected = parts.of_template(size);
                assert!((variance - expected).abs() < 4.0 * error, "{variance} {expected} +- {error} of {size:?}");
            }
        }
    }

    #[test]
    fn the_power_of_the_test_is_that_of_the_formula() {
        for (shared, effect) in [(true, 0.07), (false, 0.1), (true, 0.0)] {
            let design = MixedDesign { effect, ..design(shared, 0.3) };
            let size = DesignSize { templates: 60, questions: 6, samples: 2 };
            let (found, error) = simulated_power(&design, size, 0.05, 2000, 3, &paired_cluster_test).unwrap();
            let expected = design.parts().unwrap().power(effect, size, 0.05).unwrap();
            assert!((found - expected).abs() < 4.0 * error, "{found} {expected} +- {error}");
            assert!(effect == 0.0 || (0.3..0.97).contains(&expected), "{expected}");
        }
    }

    #[test]
    fn any_test_can_analyse_the_studies() {
        let size = DesignSize { templates: 5, questions: 2, samples: 3 };
        let seen = |study: &SimulatedStudy| {
            assert_eq!((study.correct.len(), study.question.len()), (60, 60));
            let questions: std::collections::BTreeSet<u64> = study.question.iter().copied().collect();
            Some(if questions.len() == 10 { 0.01 } else { 1.0 })
        };
        assert_eq!(simulated_power(&design(true, 0.0), size, 0.05, 10, 1, &seen).unwrap(), (1.0, 0.0));
        // Own questions are twice as many.
        assert_eq!(simulated_power(&design(false, 0.0), size, 0.05, 10, 1, &seen).unwrap(), (0.0, 0.0));
        assert_eq!(simulated_power(&design(true, 0.0), size, 0.05, 10, 1, &|_| None).unwrap().0, 0.0);
        assert!(simulated_power(&design(true, 0.0), size, 0.05, 1, 1, &|_| None).is_err());
    }

    #[test]
    fn a_pilot_has_the_parts_of_its_design() {
        let design = design(true, 0.6);
        let parts = design.parts().unwrap();
        for samples in [1, 4] {
            let size = DesignSize { templates: 4000, questions: 5, samples };
            let study = design.study(size, 9, 0);
            let mut items: Vec<PilotItem> = Vec::new();
            for (row, correct) in study.correct.iter().enumerate() {
                let question = study.question[row] as usize;
                if items.len() <= question {
                    items.push(PilotItem { cluster: study.template[row], first: (0, 0), second: (0, 0) });
                }
                let item = &mut items[question];
                let counts = if study.condition[row] > 0.0 { &mut item.second } else { &mut item.first };
                *counts = (counts.0 + *correct as u32, counts.1 + 1);
            }
            // Unequal sizes: every third question is missing in every second template.
            let kept = |item: &(usize, &PilotItem)| item.1.cluster.is_multiple_of(2) || !item.0.is_multiple_of(3);
            let items: Vec<PilotItem> = items.iter().enumerate().filter(kept).map(|(_, item)| *item).collect();
            let (found, separate) = pilot_parts(&items).unwrap();
            let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.12;
            assert!(near(found.template, parts.template), "{found:?} {parts:?}");
            assert_eq!(separate, samples > 1);
            if separate {
                assert!(
                    near(found.sample, parts.sample) && near(found.question, parts.question),
                    "{found:?} {parts:?}"
                );
            } else {
                assert!(near(found.question, parts.question + parts.sample), "{found:?} {parts:?}");
            }
        }
        let one = PilotItem { cluster: 1, first: (1, 1), second: (0, 1) };
        assert!(pilot_parts(&[one, one]).is_err());
        // Clusters of one question have no variance inside.
        let alone: Vec<PilotItem> =
            (0..10).map(|cluster| PilotItem { cluster, first: (u32::from(cluster < 3), 1), ..one }).collect();
        let (parts, _) = pilot_parts(&alone).unwrap();
        assert!(parts.question == 0.0 && parts.template > 0.0);
    }
}
