//! A mixed model of all perturbations of a target: logit P(right) = perturbation (original is the reference) + example set +
//! question, the questions' intercepts random (spec section 9).
use super::kind::Kind;
use super::pairs::Outcome;
use super::suite::Cell;
use earnest_stats::mixed::{
    Family, Formula, Frame, IntegralChoice, MixedData, MixedError, MixedFit, MixedOptions, RandomTerm, Terms, fit,
};

/// Nodes of the quadrature.
const POINTS: usize = 21;

/// A perturbation's effect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Effect {
    pub kind: Kind,
    pub log_odds: f64,
    /// Standard error of the log odds.
    pub error: f64,
    pub p: f64,
    /// Change of the probability, averaged over questions.
    pub marginal: f64,
}

/// The effects, and what to know of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Effects {
    effects: Vec<Effect>,
    pub note: Option<String>,
}

impl Effects {
    pub(super) fn of(&self, kind: Kind) -> Option<&Effect> {
        self.effects.iter().find(|effect| effect.kind == kind)
    }
}

/// Fits the model to the original and attacked questions.
pub(super) fn effects(outcomes: &[&Outcome]) -> Effects {
    let used: Vec<&&Outcome> = outcomes
        .iter()
        .filter(|outcome| matches!(outcome.cell, Cell::Original | Cell::Attack) && outcome.correct().fract() == 0.0)
        .collect();
    let mut kinds: Vec<Kind> = used.iter().filter_map(|outcome| outcome.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut sets: Vec<u32> = used.iter().map(|outcome| outcome.set).collect();
    sets.sort_unstable();
    sets.dedup();
    let mut questions: Vec<&str> = used.iter().map(|outcome| outcome.question.as_str()).collect();
    questions.sort_unstable();
    questions.dedup();
    if kinds.is_empty() || questions.len() < 2 {
        return Effects::default();
    }
    let column =
        |is: &dyn Fn(&Outcome) -> bool| used.iter().map(|outcome| f64::from(is(outcome))).collect::<Vec<f64>>();
    let mut columns: Vec<(String, Vec<f64>)> = Vec::new();
    for kind in &kinds {
        columns.push((kind.name().to_owned(), column(&|outcome| outcome.kind == Some(*kind))));
    }
    for set in sets.iter().skip(1) {
        columns.push((format!("examples {}", set + 1), column(&|outcome| outcome.set == *set)));
    }
    let fitted = || -> Result<MixedFit, MixedError> {
        let mut frame = Frame::new();
        frame.number("right", used.iter().map(|outcome| outcome.correct()).collect())?;
        frame.texts("question", used.iter().map(|outcome| outcome.question.as_str()))?;
        for (name, values) in &columns {
            frame.number(name, values.clone())?;
        }
        let formula = Formula {
            response: "right".to_owned(),
            fixed: columns.iter().fold(Terms::intercept(), |terms, (name, _)| terms.with(name)),
            random: vec![RandomTerm::intercept(&["question"])],
        };
        let integral = IntegralChoice::Quadrature { points: POINTS };
        fit(&MixedData::new(&formula, &frame, Family::Binomial)?, &MixedOptions { integral, ..MixedOptions::default() })
    };
    let found = match fitted() {
        Ok(found) => found,
        Err(error) => {
            return Effects { note: Some(format!("The mixed model has no estimate: {error}.")), ..Effects::default() };
        }
    };
    let estimate = |name: &str| found.coefficient(name).and_then(|coefficient| coefficient.estimate);
    let base = found.coefficients.first().and_then(|intercept| intercept.estimate);
    let sets_mean =
        columns.iter().skip(kinds.len()).filter_map(|(name, _)| estimate(name)).sum::<f64>() / sets.len() as f64;
    let effects = kinds
        .iter()
        .filter_map(|kind| {
            let coefficient = found.coefficient(kind.name())?;
            let log_odds = coefficient.estimate?;
            let marginal = match (base, found.deviation()) {
                (Some(base), Some(sd)) => {
                    mean_probability(base + sets_mean + log_odds, sd) - mean_probability(base + sets_mean, sd)
                }
                _ => f64::NAN,
            };
            Some(Effect {
                kind: *kind,
                log_odds,
                error: coefficient.standard_error.unwrap_or(f64::NAN),
                p: coefficient.p.unwrap_or(f64::NAN),
                marginal,
            })
        })
        .collect();
    let note = (!found.diagnoses.is_empty()).then(|| {
        let said: Vec<String> = found.diagnoses.iter().map(ToString::to_string).collect();
        format!("The mixed model: {}. The exact tests stand without it.", said.join("; ").trim_end_matches('.'))
    });
    Effects { effects, note }
}

/// The mean of 1 / (1 + exp(-x)) over x normal, by the trapezoidal rule over eight standard deviations on either side, which is
/// exact to many digits for so smooth a function.
fn mean_probability(mean: f64, sd: f64) -> f64 {
    const STEPS: i32 = 200;
    let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
    if sd <= 0.0 {
        return logistic(mean);
    }
    let (mut sum, mut weights) = (0.0, 0.0);
    for step in -STEPS..=STEPS {
        let z = 8.0 * f64::from(step) / f64::from(STEPS);
        let weight = (-0.5 * z * z).exp();
        weights += weight;
        sum += weight * logistic(mean + sd * z);
    }
    sum / weights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marginal_probabilities_lie_between_the_conditional_one_and_a_half() {
        assert!((mean_probability(0.0, 3.0) - 0.5).abs() < 1e-12);
        assert!((mean_probability(1.5, 0.0) - 0.817_574_476_193_643_6).abs() < 1e-12);
        // R: integrate(function(u) plogis(1.5 + u) * dnorm(u, 0, 2), -Inf, Inf)
        let found = mean_probability(1.5, 2.0);
        assert!(0.70 < found && found < 0.75, "{found}");
    }
}
