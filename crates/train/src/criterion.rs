//! Criterion that ends a training before its last step.
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::progress::Validation;

/// Accuracy that ends a training, and the restarts if it is not reached.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Criterion {
    pub accuracy: Accuracy,
    /// True if every trained length of every task must reach the accuracy, false for their mean.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub every_length: bool,
    /// Restarts with other weights, each of as many steps, while the accuracy is not reached.
    #[serde(default)]
    pub restarts: u64,
}

impl Criterion {
    /// Returns the exact match of a validation that is compared with the accuracy.
    pub fn score(&self, validation: &Validation) -> f64 {
        if self.every_length { validation.lowest() } else { validation.exact() }
    }

    /// Returns true if a validation meets the criterion.
    pub fn is_met(&self, validation: &Validation) -> bool {
        self.score(validation) >= self.accuracy.0
    }
}

/// Criterion as it is written: `accuracy 95 %`, averaged over the trained lengths, or `every length 95 %`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    pub accuracy: Accuracy,
    /// True if every trained length must reach it.
    pub every_length: bool,
}

impl FromStr for Goal {
    type Err = UnknownCriterion;

    fn from_str(text: &str) -> Result<Self, UnknownCriterion> {
        match text.trim().strip_prefix("every length") {
            None => Ok(Goal { accuracy: text.parse()?, every_length: false }),
            Some(rest) => {
                let accuracy = format!("accuracy{rest}").parse().map_err(|_| UnknownCriterion(text.to_owned()))?;
                Ok(Goal { accuracy, every_length: true })
            }
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.accuracy.to_string();
        match text.strip_prefix("accuracy") {
            Some(share) if self.every_length => write!(f, "every length{share}"),
            _ => f.pad(&text),
        }
    }
}

impl Criterion {
    /// Returns the criterion without the restarts.
    pub fn goal(&self) -> Goal {
        Goal { accuracy: self.accuracy, every_length: self.every_length }
    }
}

/// Exact match of a validation, averaged over the trained lengths: `accuracy 95 %`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Accuracy(pub f64);

/// Text that is not a criterion.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a criterion such as \"accuracy 95 %\" or \"every length 95 %\" (above 0, at most 100)")]
pub struct UnknownCriterion(String);

impl FromStr for Accuracy {
    type Err = UnknownCriterion;

    fn from_str(text: &str) -> Result<Self, UnknownCriterion> {
        let percent = text.trim().strip_prefix("accuracy").and_then(|rest| rest.trim().strip_suffix('%'));
        percent
            .and_then(|percent| percent.trim().parse::<f64>().ok())
            .filter(|percent| *percent > 0.0 && *percent <= 100.0)
            .map(|percent| Accuracy(percent / 100.0))
            .ok_or_else(|| UnknownCriterion(text.to_owned()))
    }
}

impl fmt::Display for Accuracy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "accuracy {} %", (1e6 * self.0).round() / 1e4)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::{AnswerStyle, CellScore, Size, TokenizerSettings, TrainEvent, TrainOutcome, TrainSettings, Trainer};

    /// A training of a second: the first digits of pi.
    pub(crate) fn tiny() -> TrainSettings {
        TrainSettings {
            size: Size { layers: 1, hidden: 16, intermediate: 32, heads: 2, kv_heads: 1 },
            tokenizer: TokenizerSettings { words: 8, ..TokenizerSettings::default() },
            tasks: vec!["memorise:pi".into()],
            lengths: vec![4],
            batch: 8,
            steps: 16,
            learning_rate: 1e-2,
            warm_up: 2,
            validate_every: 8,
            validation: 4,
            context: 32,
            parts: 1,
            ..TrainSettings::default()
        }
    }

    fn train(settings: &TrainSettings, folder: &Path, stop_after: Option<u64>) -> (TrainOutcome, u64) {
        let mut trainer = Trainer::open(settings.clone(), folder).unwrap();
        let stop = AtomicBool::new(false);
        let ended = trainer.run(&stop, &mut |event| {
            if let TrainEvent::Step { step, .. } = event {
                stop.store(stop_after == Some(*step), Ordering::Relaxed);
            }
        });
        (ended.unwrap(), trainer.steps_done())
    }

    fn restarts(events: &[TrainEvent]) -> Vec<(u64, u64)> {
        let restart = |event: &TrainEvent| match event {
            TrainEvent::Restarted { step, restart } => Some((*step, *restart)),
            _ => None,
        };
        events.iter().filter_map(restart).collect()
    }

    #[test]
    fn a_training_ends_when_its_criterion_is_met() {
        let place = tempfile::tempdir().unwrap();
        let until = Some(Criterion { accuracy: Accuracy(1.0), every_length: false, restarts: 0 });
        let settings = TrainSettings { steps: 800, until, ..tiny() };
        let (ended, steps) = train(&settings, place.path(), None);
        assert_eq!(ended, TrainOutcome::Finished);
        assert!(steps < 800 && steps.is_multiple_of(8), "{steps}");
        let events = crate::experiment::events(place.path()).unwrap();
        assert!(settings.is_complete(&events));
        // The same log is not that of a complete training without the criterion, or with one that it does not meet.
        assert!(!TrainSettings { until: None, ..settings.clone() }.is_complete(&events));
        let before: Vec<TrainEvent> = events.into_iter().filter(|e| !matches!(e, TrainEvent::Validated(_))).collect();
        assert!(!settings.is_complete(&before));
    }

    #[test]
    fn a_training_that_misses_its_criterion_restarts_and_resumes() {
        let (place, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let until = Some(Criterion { accuracy: Accuracy(1.0), every_length: false, restarts: 2 });
        // At this rate nothing is learnt.
        let settings = TrainSettings { learning_rate: 1e-9, until, ..tiny() };
        assert_eq!(train(&settings, place.path(), None), (TrainOutcome::Finished, 48));
        let events = crate::experiment::events(place.path()).unwrap();
        assert_eq!(restarts(&events), [(16, 1), (32, 2)]);
        assert!(settings.is_complete(&events));
        let rates: Vec<f64> = [1, 2, 16, 17, 33].iter().map(|step| settings.rate(*step)).collect();
        assert_eq!((rates[0], rates[1]), (rates[3], 1e-9));
        assert!(rates[2] < 1e-15 && rates[4] == rates[0], "every attempt has its own schedule: {rates:?}");

        // Stopped at the end of an attempt and within one.
        assert_eq!(train(&settings, other.path(), Some(16)), (TrainOutcome::Stopped, 16));
        assert_eq!(train(&settings, other.path(), Some(20)), (TrainOutcome::Stopped, 20));
        assert_eq!(train(&settings, other.path(), None), (TrainOutcome::Finished, 48));
        let events = crate::experiment::events(other.path()).unwrap();
        assert_eq!(restarts(&events), [(16, 1), (32, 2)]);
        let weights = |folder: &Path| std::fs::read(folder.join("model.safetensors")).unwrap();
        assert!(weights(place.path()) == weights(other.path()));
    }

    #[test]
    fn criteria_are_read_as_they_are_shown() {
        for text in ["accuracy 95 %", "accuracy 99.5 %", "accuracy 100 %"] {
            assert_eq!(text.parse::<Accuracy>().unwrap().to_string(), text);
        }
        for text in ["accuracy 95 %", "every length 95 %"] {
            assert_eq!(text.parse::<Goal>().unwrap().to_string(), text);
        }
        assert!("every length".parse::<Goal>().is_err() && "every length 0 %".parse::<Goal>().is_err());
        let cell = |length, learnt, exact| CellScore {
            task: "add_Integer".into(),
            style: AnswerStyle::Question,
            length,
            learnt,
            questions: 10,
            exact,
        };
        let cells = vec![cell(1, true, 10), cell(2, true, 9), cell(3, false, 0)];
        let validation = Validation { step: 8, loss: 0.1, cells };
        let met = |every_length| Criterion { accuracy: Accuracy(0.95), every_length, restarts: 0 }.is_met(&validation);
        assert!(met(false) && !met(true));
        assert_eq!("accuracy 95%".parse::<Accuracy>().unwrap(), Accuracy(0.95));
        for text in ["95 %", "accuracy 0 %", "accuracy 101 %", "accuracy 0.95", "accuracy NaN %", "loss 1 %"] {
            assert!(text.parse::<Accuracy>().is_err(), "{text}");
        }
    }
}
