//! Designs before data: templates x questions x samples for the paired difference of two conditions (models, prompts, or originals and
//! variants), from stated random effects or from a pilot.
//!
//! The test that is made afterwards is the paired one over clusters ([`crate::clustered_mean`]): with as many questions in every
//! template, Student's t of the templates' mean differences. Its variance has three parts, which more templates, more questions of a
//! template, and more samples of a question divide ([`VarianceParts`]).

mod mixed;
mod pilot;
mod search;
mod simulate;

use serde::Serialize;

pub use mixed::{MixedDesign, RandomEffects};
pub use pilot::{PilotItem, pilot_parts};
pub use search::{Costs, FoundDesign, Limits, cheapest};
pub use simulate::{Analysis, SimulatedStudy, paired_cluster_test, simulated_power};

use crate::clustered::t_power;
use crate::distribution::student_quantile;
use crate::power::{PowerError, Rates, require};
use crate::t_reach;

/// Numbers of a design.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DesignSize {
    pub templates: usize,
    /// Questions of a template; of each condition, if the conditions have their own.
    pub questions: usize,
    /// Samples of a question in each condition.
    pub samples: usize,
}

impl DesignSize {
    /// Answers of each condition.
    pub fn answers(&self) -> usize {
        self.templates.saturating_mul(self.questions).saturating_mul(self.samples)
    }

    fn check(&self) -> Result<(), PowerError> {
        require("templates", self.templates as f64, self.templates >= 2, "at least 2")?;
        require("questions", self.questions as f64, self.questions >= 1, "at least 1")?;
        require("samples", self.samples as f64, self.samples >= 1, "at least 1")
    }
}

/// Parts of the variance of a template's mean difference, squared differences of accuracies as fractions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct VarianceParts {
    /// Of the templates' true differences: only more templates help.
    pub template: f64,
    /// Of the questions' true differences within a template; divided by the number of questions.
    pub question: f64,
    /// Of the answers to a question; divided by questions and samples.
    pub sample: f64,
}

impl VarianceParts {
    /// Variance of a template's mean difference.
    pub fn of_template(&self, size: DesignSize) -> f64 {
        let (questions, samples) = (size.questions as f64, size.samples as f64);
        self.template + (self.question + self.sample / samples) / questions
    }

    /// Standard error of the mean difference.
    pub fn standard_error(&self, size: DesignSize) -> f64 {
        (self.of_template(size) / size.templates as f64).sqrt()
    }

    /// Probability that the two-sided t test over templates finds a difference of this size.
    pub fn power(&self, effect: f64, size: DesignSize, alpha: f64) -> Result<f64, PowerError> {
        size.check()?;
        require("alpha", alpha, alpha > 0.0 && alpha < 1.0, "a number between 0 and 1")?;
        let error = self.standard_error(size);
        if error == 0.0 {
            return Ok(if effect == 0.0 { alpha } else { 1.0 });
        }
        let freedom = size.templates as f64 - 1.0;
        // Beyond this many standard errors the power is 1 in all digits.
        Ok(t_power((effect.abs() / error).min(1e3), freedom, student_quantile(1.0 - 0.5 * alpha, freedom)))
    }

    /// Smallest difference that is found with the power of the rates, if the parts do not depend on it.
    pub fn detectable_effect(&self, size: DesignSize, rates: Rates) -> Result<f64, PowerError> {
        size.check()?;
        rates.check()?;
        Ok(t_reach(size.templates as f64, rates.alpha, rates.power) * self.standard_error(size))
    }
}
