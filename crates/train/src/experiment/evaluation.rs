//! Evaluation of a trained model with the engine: exact match, digit match and dlength by length, on questions of the split
//! `test`.
use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cell::GridCell;
use super::error::EvaluationError;
use crate::{AnswerStyle, QuestionStream, TextPair, TrainError, TrainingQuestion, TrainingTask};
use earnest_engine::cpu::{CpuEngine, Options};
use earnest_engine::{Engine, EngineError, Event, Request, RequestId};
use earnest_models::checkpoint::Checkpoint;
use earnest_tasks::suite::nupa::{DigitSet, LONGEST_SHARED, Metrics, Split, SplitVersion, measure};

/// Version of [`Evaluation`]'s JSON format.
pub const EVALUATION_FORMAT: u32 = 1;

/// Tokens of an answer beyond the length of the expected one.
const SURPLUS: usize = 8;

/// Scores of a trained model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// [`EVALUATION_FORMAT`].
    pub format: u32,
    /// Requested questions per task and length; a small cell has fewer.
    pub questions: usize,
    /// Distinct tokens in prompts and expected answers, without the end token.
    pub used_tokens: usize,
    /// Scores by task and length.
    pub scores: Vec<LengthScore>,
}

/// Scores of one task and length, as means over the questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LengthScore {
    /// Name of the task.
    pub task: String,
    /// Digits of the longer operand, as the suite counts them.
    pub length: usize,
    #[serde(default, skip_serializing_if = "AnswerStyle::is_question")]
    pub style: AnswerStyle,
    /// True if training covers the length.
    pub learnt: bool,
    /// True if every question of the length may have been in training, so that the score is not one of generalisation: short questions, whose
    /// answers can only be learnt one by one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_train: bool,
    /// Number of questions.
    pub questions: usize,
    pub exact_match: f64,
    /// Digit match; tasks of the NUPA Test only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digit_match: Option<f64>,
    /// Difference in digits, summed over the parts of a number; tasks of the NUPA Test only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dlength: Option<f64>,
}

/// Question with its prompt and expected answer.
struct TestQuestion {
    question: TrainingQuestion,
    style: AnswerStyle,
    learnt: bool,
    in_train: bool,
    prompt: String,
    /// Answer in the model's number format.
    expected: String,
}

/// Evaluates the model in a folder. The number of threads does not affect the answers.
///
/// # Errors
/// [`EvaluationError`].
pub(super) fn evaluate(
    cell: &GridCell,
    folder: &Path,
    questions: usize,
    threads: Option<usize>,
) -> Result<Evaluation, EvaluationError> {
    let test = test_questions(cell, questions)?;
    let checkpoint = Checkpoint::open(folder)?;
    let options = Options { threads, kv_memory: Some(1 << 28), ..Options::default() };
    let mut engine = CpuEngine::load(&checkpoint, options)?;
    let stop_ids: Vec<u32> = checkpoint.tokenizer.eos().into_iter().collect();
    let mut used = BTreeSet::new();
    for (number, question) in test.iter().enumerate() {
        let encode = |text: &str, begin| checkpoint.tokenizer.encode(text, begin);
        let (prompt, expected) = (encode(&question.prompt, true)?, encode(&question.expected, false)?);
        used.extend(prompt.iter().chain(&expected).copied());
        let request = Request::greedy(RequestId(number as u64), prompt, expected.len() + SURPLUS);
        engine.submit(Request { stop_ids: stop_ids.clone(), ..request }).map_err(EngineError::from)?;
    }
    let mut answers = vec![String::new(); test.len()];
    loop {
        let events = engine.poll()?;
        if events.is_empty() {
            break;
        }
        for event in events {
            if let Event::Finished(completion) = event {
                answers[completion.id.0 as usize] = completion.text;
            }
        }
    }
    Ok(Evaluation {
        format: EVALUATION_FORMAT,
        questions,
        used_tokens: used.len(),
        scores: mean_scores(cell, &test, &answers)?,
    })
}

/// Generates the test questions, by length and task.
fn test_questions(cell: &GridCell, questions: usize) -> Result<Vec<TestQuestion>, TrainError> {
    let settings = &cell.settings;
    let mut test = Vec::new();
    let training = QuestionStream::new(settings.evaluation_stream(&settings.lengths)?, Split::Train)?;
    for lengths in [&settings.lengths, &settings.beyond] {
        if lengths.is_empty() {
            continue;
        }
        let stream = QuestionStream::new(settings.evaluation_stream(lengths)?, Split::Test)?;
        for style in AnswerStyle::ALL.into_iter().filter(|style| settings.styles.contains(style)) {
            for (number, question) in stream.first_questions(questions).into_iter().enumerate() {
                let text = style.pair(&question, stream.text(&question, number as u64)?)?;
                let learnt = training.contains(question.task(), question.length());
                let in_train = learnt && settings.splits == SplitVersion::Two && question.length() <= LONGEST_SHARED;
                let TextPair { prompt, answer: expected } = text;
                test.push(TestQuestion { question, style, learnt, in_train, prompt, expected });
            }
        }
    }
    Ok(test)
}

/// Scores the answers and averages them by task and length.
fn mean_scores(cell: &GridCell, test: &[TestQuestion], answers: &[String]) -> Result<Vec<LengthScore>, TrainError> {
    let format = cell.settings.format.number_format()?;
    let mut scores: Vec<LengthScore> = Vec::new();
    for (question, answer) in test.iter().zip(answers) {
        let (exact, metrics) = score(question, answer.trim(), &|text| format.restore_answer(text));
        let (task, length) = (question.question.task().to_string(), question.question.length());
        let style = question.style;
        let index = scores.iter().position(|score| (&score.task, score.style, score.length) == (&task, style, length));
        let index = index.unwrap_or_else(|| {
            let zero = metrics.map(|_| 0.0);
            scores.push(LengthScore {
                task,
                length,
                style,
                learnt: question.learnt,
                in_train: question.in_train,
                questions: 0,
                exact_match: 0.0,
                digit_match: zero,
                dlength: zero,
            });
            scores.len() - 1
        });
        let score = &mut scores[index];
        score.questions += 1;
        score.exact_match += f64::from(u8::from(exact));
        if let Some(metrics) = metrics {
            *score.digit_match.get_or_insert_default() += metrics.digit_match;
            *score.dlength.get_or_insert_default() += metrics.dlength as f64;
        }
    }
    for score in &mut scores {
        let questions = score.questions as f64;
        score.exact_match /= questions;
        score.digit_match = score.digit_match.map(|sum| sum / questions);
        score.dlength = score.dlength.map(|sum| sum / questions);
    }
    Ok(scores)
}

/// Scores an answer: exact match, and the digit metrics of a NUPA task.
fn score(question: &TestQuestion, answer: &str, restore: &dyn Fn(&str) -> String) -> (bool, Option<Metrics>) {
    let form = match question.question.task() {
        TrainingTask::Nupa(task) => task.answer_form(),
        TrainingTask::ArithmeticBench(_) | TrainingTask::Memorise(_) => {
            return (answer == question.expected.trim(), None);
        }
    };
    let gold = question.question.answer();
    let plain = match question.style {
        AnswerStyle::Question => restore(answer),
        AnswerStyle::RuleFollowing => {
            answer.rsplit_once("So the answer is ").map_or("", |(_, last)| last).trim().to_owned()
        }
    };
    let metrics = measure(form, DigitSet::Ascii, &gold, &plain);
    // Exact match compares the text: digit metrics ignore other characters.
    (plain == gold, metrics)
}
