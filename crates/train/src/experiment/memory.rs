//! What models that learn digits by heart keep: bits a parameter, and what is left after other digits were learnt
//! (Arithmetic-Bench, A.4 and A.5).
use super::cell::CellChoice;
use super::results::{ExperimentResults, ModelResult, SeedMean};

/// Bits of a decimal digit.
const BITS_OF_A_DIGIT: f64 = std::f64::consts::LOG2_10;

/// A task before its name, see [`crate::TrainingTask`].
const MEMORISE: &str = "memorise:";

/// What models of one kind keep of one constant; means over seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// What was trained.
    pub choice: CellChoice,
    /// Of which constant.
    pub task: String,
    /// Digits that were to be remembered.
    pub digits: usize,
    /// Parameters, with the embedding of those tokens only that occur.
    pub parameters: usize,
    /// Share of digits that are right at the end; one of ten is by chance.
    pub recalled: SeedMean,
    /// Bits of the right digits a parameter, as the paper counts them: chance is not taken off.
    pub bits: SeedMean,
    /// Share right in the last validation before other tasks took their place, if any did.
    pub before: Option<SeedMean>,
}

/// The memories of an experiment.
pub fn memories(results: &ExperimentResults) -> Vec<Memory> {
    let mut all = Vec::new();
    for choice in results.choices() {
        let models: Vec<&ModelResult> = results.seeds_of(choice).collect();
        let Some(first) = models.first() else { continue };
        for score in first.scores.iter().filter(|score| score.task.starts_with(MEMORISE)) {
            let shares: Vec<f64> = models
                .iter()
                .filter_map(|model| model.score(&score.task, score.length))
                .map(|score| score.exact_match)
                .collect();
            let parameters = first.parameters + first.used_tokens * first.width;
            let bits = |share: &f64| share * score.length as f64 * BITS_OF_A_DIGIT / parameters as f64;
            let bits: Vec<f64> = shares.iter().map(bits).collect();
            let before: Vec<f64> = models.iter().filter_map(|model| before(model, &score.task)).collect();
            let (Some(recalled), Some(bits)) = (SeedMean::of(&shares), SeedMean::of(&bits)) else { continue };
            all.push(Memory {
                choice: choice.clone(),
                task: score.task.clone(),
                digits: score.length,
                parameters,
                recalled,
                bits,
                before: SeedMean::of(&before),
            });
        }
    }
    all
}

/// The share right in the last validation before the tasks changed.
fn before(model: &ModelResult, task: &str) -> Option<f64> {
    let change = model.then.as_ref()?.after * model.batch as u64;
    let point = model.course.iter().rfind(|point| point.seen <= change)?;
    point.exact.iter().find(|score| score.task == task).map(|score| score.exact_match)
}

#[cfg(test)]
mod tests {
    use super::super::evaluation::LengthScore;
    use super::super::results::{CoursePoint, CourseScore, RESULTS_FORMAT};
    use super::*;
    use crate::NextTasks;

    #[test]
    fn bits_and_what_is_left() {
        let choice = CellChoice {
            task: "memorise:pi".into(),
            tokenizer: "1".into(),
            position: "rope".into(),
            format: "plain".into(),
            size: "1,8,16,1,1".into(),
            label: String::new(),
        };
        let point = |seen, share| CoursePoint {
            seen,
            loss: 1.0,
            exact: vec![CourseScore { task: "memorise:pi".into(), length: 100, exact_match: share }],
        };
        let model = |seed, share| ModelResult {
            choice: choice.clone(),
            seed,
            grids: vec!["sizes".into()],
            then: Some(NextTasks { tasks: vec!["memorise:e".into()], after: 8 }),
            parameters: 200,
            vocabulary: 277,
            used_tokens: 15,
            width: 8,
            steps: 16,
            batch: 10,
            seconds: 1.0,
            scores: vec![LengthScore {
                task: "memorise:pi".into(),
                length: 100,
                learnt: true,
                questions: 100,
                exact_match: share,
                digit_match: None,
                dlength: None,
            }],
            course: vec![point(40, 0.6), point(80, 0.9), point(160, share)],
        };
        let results = ExperimentResults {
            format: RESULTS_FORMAT,
            title: "a test".into(),
            seeds: vec![1, 2],
            questions: 100,
            planned: 2,
            models: vec![model(1, 0.2), model(2, 0.4)],
        };
        let all = memories(&results);
        let [memory] = &all[..] else { panic!("one kind of model") };
        assert_eq!((memory.digits, memory.parameters), (100, 320));
        assert!((memory.recalled.mean - 0.3).abs() < 1e-12);
        // 30 digits of 3.3219 bits in 320 parameters.
        assert!((memory.bits.mean - 0.311_43).abs() < 1e-5, "{memory:?}");
        assert_eq!(memory.before.unwrap().mean, 0.9);
        assert_eq!(ExperimentResults::parse(&results.to_text()).unwrap(), results);
    }
}
