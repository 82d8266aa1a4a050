//! Table 18: fine-tuned checkpoints.
use serde::Serialize;

use super::document::Section3Result;
use crate::nupa::training_tables::PublishedTraining;
use earnest_stats::{Z95, wilson};
use earnest_tasks::suite::Interval;
use earnest_tasks::suite::nupa::{DigitLimit, LengthRange, LimitRule, MetricName, digit_limit};
use earnest_train::experiment::SeedMean;
use earnest_train::{AnswerStyle, CellScore, FineTuned};

/// Longest length of the table's tasks.
const LONGEST: usize = 20;

/// Exact match of a fine-tuned checkpoint on the questions of one task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FineTunedResult {
    /// The variant as the table names it, and the checkpoint.
    pub variant: String,
    pub model: String,
    pub seed: u64,
    pub steps: u64,
    pub task: String,
    /// Lengths with their questions and right answers.
    pub lengths: Vec<LengthCount>,
    /// Right answers of the trained lengths, with Wilson's interval over questions: how much another training would differ it does not say.
    pub learnt: Option<Interval>,
}

/// Right answers of a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LengthCount {
    pub length: usize,
    pub learnt: bool,
    pub questions: usize,
    pub exact: usize,
}

/// The results of all trainings, by training and task.
pub(super) fn fine_tuned_results(trainings: &[FineTuned]) -> Vec<FineTunedResult> {
    let mut all = Vec::new();
    for training in trainings {
        let mut tasks: Vec<&str> = Vec::new();
        for cell in asked(training) {
            if !tasks.contains(&cell.task.as_str()) {
                tasks.push(&cell.task);
            }
        }
        for task in tasks {
            let cells = asked(training).filter(|cell| cell.task == task);
            let lengths: Vec<LengthCount> = cells
                .map(|cell| LengthCount {
                    length: cell.length,
                    learnt: cell.learnt,
                    questions: cell.questions,
                    exact: cell.exact,
                })
                .collect();
            let learnt = lengths.iter().filter(|one| one.learnt);
            let (exact, questions) =
                learnt.fold((0, 0), |(exact, questions), one| (exact + one.exact, questions + one.questions));
            all.push(FineTunedResult {
                variant: training.variant(),
                model: training.model.clone(),
                seed: training.seed,
                steps: training.steps,
                task: task.to_owned(),
                lengths,
                learnt: wilson(exact as f64, questions as f64, Z95).map(|found| Interval {
                    estimate: found.value,
                    low: found.low,
                    high: found.high,
                }),
            });
        }
    }
    all
}

/// Cells that answer the question itself.
fn asked(training: &FineTuned) -> impl Iterator<Item = &CellScore> {
    training.cells.iter().filter(|cell| cell.style == AnswerStyle::Question && cell.questions > 0)
}

/// Ours for a cell of the table: by checkpoint, over its trainings.
pub(super) fn fine_tuned_cell(trainings: &[FineTuned], published: &PublishedTraining) -> Vec<Section3Result> {
    let mut models: Vec<&str> = Vec::new();
    for training in trainings.iter().filter(|training| training.variant() == published.variant) {
        if !models.contains(&training.model.as_str()) {
            models.push(&training.model);
        }
    }
    let of_model = |model: &str| {
        let own =
            trainings.iter().filter(|training| training.model == model && training.variant() == published.variant);
        let found: Vec<(usize, f64)> = own.filter_map(|training| value(training, published)).collect();
        let values: Vec<f64> = found.iter().map(|(_, value)| *value).collect();
        let length = found.iter().map(|(length, _)| *length).max()?;
        Some(Section3Result { model: model.to_owned(), length, value: SeedMean::of(&values)? })
    };
    models.into_iter().filter_map(of_model).collect()
}

/// A training's longest length and its number for a column: the mean exact match of a range's lengths, or a digit limit. A limit that may lie
/// beyond the lengths that were asked is none.
fn value(training: &FineTuned, published: &PublishedTraining) -> Option<(usize, f64)> {
    let mut means: Vec<(usize, f64)> = asked(training)
        .filter(|cell| cell.task == published.task)
        .map(|cell| (cell.length, cell.exact as f64 / cell.questions as f64))
        .collect();
    means.sort_by_key(|(length, _)| *length);
    let limit = match published.column.as_str() {
        "wld" => DigitLimit::WellLearned,
        "ppd" => DigitLimit::PerformancePreserving,
        column => {
            let in_range = |length: usize| LengthRange::of(length, LONGEST).is_some_and(|range| range.name() == column);
            let own: Vec<(usize, f64)> = means.into_iter().filter(|(length, _)| in_range(*length)).collect();
            let mean = own.iter().map(|(_, mean)| mean).sum::<f64>() / own.len() as f64;
            return own.last().map(|(length, _)| (*length, mean));
        }
    };
    let &(longest, last) = means.last()?;
    let is_open = longest < LONGEST && MetricName::ExactMatch.passes(limit, last);
    let digits = digit_limit(MetricName::ExactMatch, limit, LimitRule::Published, &means);
    (!is_open).then_some((longest, digits as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nupa::training_tables::published_trainings;
    use earnest_train::{FormatSettings, Retrofit};

    fn training(seed: u64, exact: &[usize]) -> FineTuned {
        let cell = |(index, exact): (usize, &usize)| CellScore {
            task: "add_Integer".to_owned(),
            style: AnswerStyle::Question,
            length: index + 1,
            learnt: index < 4,
            questions: 20,
            exact: *exact,
        };
        FineTuned {
            model: "m".to_owned(),
            retrofit: Retrofit::default(),
            format: FormatSettings::default(),
            seed,
            steps: 60,
            cells: exact.iter().enumerate().map(cell).collect(),
        }
    }

    fn ours(trainings: &[FineTuned], column: &str) -> Option<(f64, usize, usize)> {
        let of = |one: &&PublishedTraining| {
            (one.table, one.task.as_str(), one.variant.as_str(), one.column.as_str())
                == (18, "add_Integer", "FT", column)
        };
        let published = published_trainings().iter().find(of).unwrap();
        let found = fine_tuned_cell(trainings, published);
        assert!(found.len() < 2);
        found.first().map(|one| (one.value.mean, one.length, one.value.seeds))
    }

    #[test]
    fn ranges_are_means_and_limits_need_a_length_that_fails() {
        let one = [training(1, &[20, 18, 10, 4, 1])];
        assert_eq!(ours(&one, "S"), Some((0.65, 4, 1)));
        assert_eq!(ours(&one, "M"), Some((0.05, 5, 1)));
        assert_eq!(ours(&one, "L"), None);
        assert_eq!((ours(&one, "wld"), ours(&one, "ppd")), (Some((2.0, 5, 1)), Some((4.0, 5, 1))));
        let able = [training(1, &[20, 20, 20, 20, 19])];
        assert_eq!((ours(&able, "wld"), ours(&able, "ppd")), (None, None));
        let two = [training(1, &[20, 20, 10, 10]), training(2, &[20, 20, 20, 20])];
        assert_eq!(ours(&two, "S"), Some((0.875, 4, 2)));
    }

    #[test]
    fn results_are_counted_by_task_over_the_trained_lengths() {
        let found = fine_tuned_results(&[training(1, &[20, 18, 10, 4, 1])]);
        assert_eq!((found.len(), found[0].variant.as_str(), found[0].lengths.len()), (1, "FT", 5));
        let learnt = found[0].learnt.as_ref().unwrap();
        assert_eq!(learnt.estimate, 52.0 / 80.0);
        assert!(learnt.low < 0.6 && learnt.high > 0.7);
    }
}
