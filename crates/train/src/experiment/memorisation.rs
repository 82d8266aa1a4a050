//! Memorisation of digits: bits per parameter, and forgetting after a second phase (Arithmetic-Bench, A.4 and A.5).
use super::cell::CellChoice;
use super::results::{ExperimentResults, ModelResult, SeedMean};
use crate::task::MEMORISE;

/// Bits per decimal digit.
const BITS_PER_DIGIT: f64 = std::f64::consts::LOG2_10;

/// Memorisation of one constant by one kind of model, as means over seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct Memorisation {
    /// Values of the axes.
    pub choice: CellChoice,
    /// Task of the constant, `memorise:NAME`.
    pub task: String,
    /// Number of digits to memorise.
    pub digits: usize,
    /// Parameters, with the embeddings of those tokens that occur.
    pub parameters: usize,
    /// Share of correct digits at the end; 0.1 is chance.
    pub recalled: SeedMean,
    /// Bits of correct digits per parameter, as the paper counts them: not corrected for chance.
    pub bits: SeedMean,
    /// Share of correct digits in the last validation of the first phase, if there is a second one.
    pub before: Option<SeedMean>,
}

/// Computes the memorisation of all models of an experiment.
pub fn memorisation(results: &ExperimentResults) -> Vec<Memorisation> {
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
            let bits = |share: &f64| share * score.length as f64 * BITS_PER_DIGIT / parameters as f64;
            let bits: Vec<f64> = shares.iter().map(bits).collect();
            let before: Vec<f64> = models.iter().filter_map(|model| before(model, &score.task)).collect();
            let (Some(recalled), Some(bits)) = (SeedMean::of(&shares), SeedMean::of(&bits)) else { continue };
            all.push(Memorisation {
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

/// Share of correct digits in the last validation of the first phase.
fn before(model: &ModelResult, task: &str) -> Option<f64> {
    let change = model.then.as_ref()?.after * model.batch as u64;
    let point = model.learning_curve.iter().rfind(|point| point.seen <= change)?;
    point.exact.iter().find(|score| score.task == task).map(|score| score.exact_match)
}

#[cfg(test)]
mod tests {
    use super::super::evaluation::LengthScore;
    use super::super::results::{CurvePoint, CurveScore, RESULTS_FORMAT};
    use super::*;
    use crate::NextTasks;

    #[test]
    fn bits_and_forgetting() {
        let choice = CellChoice {
            task: "memorise:pi".into(),
            tokenizer: "1".into(),
            position: "rope".into(),
            format: "plain".into(),
            size: "1,8,16,1,1".into(),
            label: String::new(),
        };
        let point = |seen, share| CurvePoint {
            seen,
            loss: 1.0,
            exact: vec![CurveScore { task: "memorise:pi".into(), length: 100, exact_match: share }],
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
            restarts: 0,
            batch: 10,
            seconds: 1.0,
            scores: vec![LengthScore {
                task: "memorise:pi".into(),
                style: crate::AnswerStyle::Question,
                length: 100,
                learnt: true,
                in_train: false,
                questions: 100,
                exact_match: share,
                digit_match: None,
                dlength: None,
            }],
            learning_curve: vec![point(40, 0.6), point(80, 0.9), point(160, share)],
        };
        let results = ExperimentResults {
            format: RESULTS_FORMAT,
            title: "a test".into(),
            seeds: vec![1, 2],
            questions: 100,
            planned: 2,
            models: vec![model(1, 0.2), model(2, 0.4)],
        };
        let all = memorisation(&results);
        let [memory] = &all[..] else { panic!("one kind of model") };
        assert_eq!((memory.digits, memory.parameters), (100, 320));
        assert!((memory.recalled.mean - 0.3).abs() < 1e-12);
        // 30 digits of 3.3219 bits in 320 parameters.
        assert!((memory.bits.mean - 0.311_43).abs() < 1e-5, "{memory:?}");
        assert_eq!(memory.before.unwrap().mean, 0.9);
        assert_eq!(ExperimentResults::parse(&results.to_text()).unwrap(), results);
    }
}
