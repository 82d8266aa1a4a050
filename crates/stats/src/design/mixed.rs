//! Variance of a template's difference under a logistic mixed model, by numerical integration.
use serde::Serialize;

use super::{DesignSize, VarianceParts};
use crate::power::{Direction, PowerError, Rates, require};

/// Step and reach of the trapezoidal rule over a standard normal variable. For functions like these its error falls exponentially with
/// the step: a hundredth of a hundredth of a point at a standard deviation of 4.
const STEP: f64 = 0.4;
const REACH: i32 = 16;

/// Number of differences that are tried, evenly from 0 to the largest possible one.
const STEPS: u32 = 32;

/// Normal random effects of a group on the logit scale, in treatment coding as mixed models report them: the first condition has the
/// intercept, the second the intercept and the slope.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct RandomEffects {
    pub intercept_sd: f64,
    pub slope_sd: f64,
    /// Correlation of intercept and slope.
    pub correlation: f64,
}

impl RandomEffects {
    fn check(&self, names: [&'static str; 3]) -> Result<(), PowerError> {
        let sd = |value: f64| (0.0..=10.0).contains(&value);
        require(names[0], self.intercept_sd, sd(self.intercept_sd), "a standard deviation from 0 to 10")?;
        require(names[1], self.slope_sd, sd(self.slope_sd), "a standard deviation from 0 to 10")?;
        require(names[2], self.correlation, (-1.0..=1.0).contains(&self.correlation), "a number from -1 to 1")
    }

    /// Variance of the effects in the second condition.
    fn second_variance(&self) -> f64 {
        let RandomEffects { intercept_sd, slope_sd, correlation } = *self;
        intercept_sd.powi(2) + slope_sd.powi(2) + 2.0 * correlation * intercept_sd * slope_sd
    }

    /// Effects in both conditions with their weights.
    fn points(&self) -> Vec<(f64, f64, f64)> {
        let rest = (1.0 - self.correlation * self.correlation).max(0.0).sqrt();
        let mut points = Vec::new();
        for (z, weight) in normal(self.intercept_sd > 0.0 || (self.slope_sd > 0.0 && self.correlation != 0.0)) {
            for (other, other_weight) in normal(self.slope_sd > 0.0 && rest > 0.0) {
                let first = self.intercept_sd * z;
                let slope = self.slope_sd * (self.correlation * z + rest * other);
                points.push((first, first + slope, weight * other_weight));
            }
        }
        points
    }
}

/// Points and weights of a standard normal variable; the point 0 alone if nothing `varies`.
fn normal(varies: bool) -> Vec<(f64, f64)> {
    if !varies {
        return vec![(0.0, 1.0)];
    }
    let points = (-REACH..=REACH).map(|index| f64::from(index) * STEP);
    let weighted: Vec<(f64, f64)> = points.map(|z| (z, (-0.5 * z * z).exp())).collect();
    let total: f64 = weighted.iter().map(|(_, weight)| weight).sum();
    weighted.into_iter().map(|(z, weight)| (z, weight / total)).collect()
}

pub(super) fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Two conditions under a logistic mixed model with random effects of templates and of questions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MixedDesign {
    /// Accuracy of the first condition, the mean over templates and questions (not that of a typical template).
    pub accuracy: f64,
    /// Difference of the second condition's accuracy.
    pub effect: f64,
    pub template: RandomEffects,
    pub question: RandomEffects,
    /// True if both conditions have the same questions, as two models do; originals and variants have their own.
    pub shared_questions: bool,
}

impl MixedDesign {
    /// Checks the ranges of all values.
    pub fn check(&self) -> Result<(), PowerError> {
        let (first, second) = (self.accuracy, self.accuracy + self.effect);
        require("accuracy", first, first > 0.0 && first < 1.0, "a number between 0 and 1")?;
        require("accuracy plus effect", second, second > 0.0 && second < 1.0, "more than 0 and less than 1")?;
        self.template.check(["intercept SD", "slope SD", "correlation"])?;
        self.question.check(["question SD", "question slope SD", "question correlation"])
    }

    /// Fixed effects of the two conditions: the logits at which the mean accuracies are those of the design.
    pub(super) fn fixed_effects(&self) -> [f64; 2] {
        let first = self.template.intercept_sd.powi(2) + self.question.intercept_sd.powi(2);
        let second = self.template.second_variance() + self.question.second_variance();
        [fixed_effect(self.accuracy, first.sqrt()), fixed_effect(self.accuracy + self.effect, second.max(0.0).sqrt())]
    }

    /// Parts of the variance of a template's mean difference.
    pub fn parts(&self) -> Result<VarianceParts, PowerError> {
        self.check()?;
        let [first, second] = self.fixed_effects();
        let questions = self.question.points();
        let (mut squares, mut question, mut sample) = (0.0, 0.0, 0.0);
        for (of_first, of_second, weight) in self.template.points() {
            // Means over the questions of a template, of both accuracies, their squares and their product.
            let (mut mean, mut square, mut product) = ([0.0; 2], [0.0; 2], 0.0);
            for (own_first, own_second, weight) in &questions {
                let rates = [logistic(first + of_first + own_first), logistic(second + of_second + own_second)];
                for condition in [0, 1] {
                    mean[condition] += weight * rates[condition];
                    square[condition] += weight * rates[condition] * rates[condition];
                }
                product += weight * rates[0] * rates[1];
            }
            let difference = mean[1] - mean[0];
            squares += weight * difference * difference;
            question += weight
                * if self.shared_questions {
                    square[0] + square[1] - 2.0 * product - difference * difference
                } else {
                    square[0] - mean[0] * mean[0] + square[1] - mean[1] * mean[1]
                };
            sample += weight * (mean[0] - square[0] + mean[1] - square[1]);
        }
        let template = squares - self.effect * self.effect;
        // What is left of parts that are zero is rounding.
        Ok(VarianceParts { template: template.max(0.0), question: question.max(0.0), sample })
    }

    /// Direction of the effect; a rise if there is none.
    pub fn direction(&self) -> Direction {
        Direction::of(self.effect)
    }

    /// Smallest difference, upwards or downwards as the design's is, that is found with the power of the rates; none if no possible
    /// one is. It is looked for in steps of a 32nd of the largest, which is not always the easiest to find: where the second accuracy
    /// comes close to 0 or 1, the templates' differences vary as their first accuracies do.
    pub fn detectable_effect(&self, size: DesignSize, rates: Rates) -> Result<Option<f64>, PowerError> {
        rates.check()?;
        let sign = if self.effect < 0.0 { -1.0 } else { 1.0 };
        let power = |effect: f64| -> Result<f64, PowerError> {
            let design = MixedDesign { effect: sign * effect, ..*self };
            design.parts()?.power(effect, size, rates.alpha)
        };
        let tried =
            |step: u32| self.direction().room(self.accuracy) * (1.0 - 1e-6) * f64::from(step) / f64::from(STEPS);
        let mut step = 1;
        while power(tried(step))? < rates.power {
            if step == STEPS {
                return Ok(None);
            }
            step += 1;
        }
        let (mut low, mut high) = (tried(step - 1), tried(step));
        while high - low > 1e-6 {
            let middle = 0.5 * (low + high);
            if power(middle)? < rates.power { low = middle } else { high = middle }
        }
        Ok(Some(high))
    }
}

/// Logit at which the mean of the logistic function over a normal variable of this SD is the accuracy.
fn fixed_effect(accuracy: f64, sd: f64) -> f64 {
    let points = normal(sd > 0.0);
    let mean = |centre: f64| points.iter().map(|(z, weight)| weight * logistic(centre + sd * z)).sum::<f64>();
    let (mut low, mut high) = (-200.0, 200.0);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if mean(middle) < accuracy { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn design(template: RandomEffects, question: RandomEffects, shared_questions: bool) -> MixedDesign {
        MixedDesign { accuracy: 0.7, effect: 0.05, template, question, shared_questions }
    }

    #[test]
    fn without_random_effects_only_answers_vary() {
        let none = RandomEffects::default();
        let parts = design(none, none, true).parts().unwrap();
        assert!(parts.template < 1e-15 && parts.question < 1e-15, "{parts:?}");
        assert!((parts.sample - (0.7 * 0.3 + 0.75 * 0.25)).abs() < 1e-12);
        let [first, second] = design(none, none, true).fixed_effects();
        assert!((first - (0.7_f64 / 0.3).ln()).abs() < 1e-12 && (second - (0.75_f64 / 0.25).ln()).abs() < 1e-12);
    }

    // Python, Simpson's rule with 100 intervals from -8 to 8 over each of the three normal variables, fixed effects by bisection.
    #[test]
    fn integrals_are_those_of_another_rule() {
        let template = RandomEffects { intercept_sd: 1.5, slope_sd: 0.7, correlation: -0.3 };
        let question = RandomEffects { intercept_sd: 0.8, ..RandomEffects::default() };
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        let [first, second] = design(template, question, true).fixed_effects();
        near(first, 1.263_734_357_615_312_8);
        near(second, 1.607_595_213_783_331_4);
        for (shared, of_question) in [(true, 0.001_288_087_076_952_655), (false, 0.031_004_323_940_409_317)] {
            let parts = design(template, question, shared).parts().unwrap();
            near(parts.template, 0.011_744_864_215_582_46);
            near(parts.question, of_question);
            near(parts.sample, 0.275_603_940_127_800_54);
        }
    }

    #[test]
    fn parts_add_up() {
        let template = RandomEffects { intercept_sd: 1.5, slope_sd: 0.7, correlation: -0.3 };
        let question = RandomEffects { intercept_sd: 0.8, slope_sd: 0.4, correlation: 0.2 };
        let shared = design(template, question, true).parts().unwrap();
        let own = design(template, question, false).parts().unwrap();
        assert!((shared.template - own.template).abs() < 1e-15 && (shared.sample - own.sample).abs() < 1e-15);
        assert!(own.question > shared.question, "shared questions cancel: {own:?} {shared:?}");
        // The law of total variance: all of an answer's variance is p (1 - p) of the mean accuracy.
        let of_answers = 0.7 * 0.3 + 0.75 * 0.25;
        let none = RandomEffects::default();
        let uncorrelated = RandomEffects { intercept_sd: 1e-9, ..none };
        let only_questions = design(uncorrelated, question, false).parts().unwrap();
        assert!((only_questions.question + only_questions.sample - of_answers).abs() < 1e-9, "{only_questions:?}");
        // Intercepts that both conditions share leave nothing but their curvature.
        let level = design(RandomEffects { slope_sd: 0.0, ..template }, none, true).parts().unwrap();
        assert!(level.template < 0.001 && shared.template > 0.003, "{level:?} {shared:?}");
    }

    #[test]
    fn the_detectable_effect_has_the_power_that_is_asked_for() {
        let template = RandomEffects { intercept_sd: 1.5, slope_sd: 0.7, correlation: 0.0 };
        let size = DesignSize { templates: 100, questions: 20, samples: 1 };
        for effect in [0.01, -0.01] {
            let design = MixedDesign { effect, ..design(template, RandomEffects::default(), true) };
            let found = design.detectable_effect(size, Rates::default()).unwrap().unwrap();
            let at = MixedDesign { effect: effect.signum() * found, ..design };
            let power = at.parts().unwrap().power(found, size, 0.05).unwrap();
            assert!((power - 0.8).abs() < 1e-4, "{found} {power}");
        }
        let small = DesignSize { templates: 2, questions: 1, samples: 1 };
        assert_eq!(design(template, template, true).detectable_effect(small, Rates::default()).unwrap(), None);
    }

    #[test]
    fn a_drop_is_found_although_one_to_zero_is_not() {
        let template = RandomEffects { intercept_sd: 4.0, ..RandomEffects::default() };
        let design = MixedDesign { accuracy: 0.1, effect: -0.01, ..design(template, RandomEffects::default(), false) };
        let size = DesignSize { templates: 40, questions: 50, samples: 1 };
        let power =
            |effect: f64| MixedDesign { effect: -effect, ..design }.parts().unwrap().power(effect, size, 0.05).unwrap();
        let found = design.detectable_effect(size, Rates::default()).unwrap().unwrap();
        assert!((power(found) - 0.8).abs() < 1e-3 && power(0.1 - 1e-7) < 0.79, "{found} {}", power(0.1 - 1e-7));
    }

    #[test]
    fn impossible_values_are_refused_by_name() {
        let none = RandomEffects::default();
        let name = |design: MixedDesign| match design.parts() {
            Err(PowerError::Range { name, .. }) => name,
            found => panic!("{found:?}"),
        };
        let good = design(none, none, true);
        assert_eq!(name(MixedDesign { accuracy: 1.0, ..good }), "accuracy");
        assert_eq!(name(MixedDesign { effect: 0.3, ..good }), "accuracy plus effect");
        assert_eq!(name(MixedDesign { effect: f64::NAN, ..good }), "accuracy plus effect");
        assert_eq!(name(MixedDesign { template: RandomEffects { slope_sd: -1.0, ..none }, ..good }), "slope SD");
        assert_eq!(name(MixedDesign { question: RandomEffects { intercept_sd: 11.0, ..none }, ..good }), "question SD");
        assert_eq!(name(MixedDesign { template: RandomEffects { correlation: 1.1, ..none }, ..good }), "correlation");
    }
}
