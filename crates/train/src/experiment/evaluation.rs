//! A finished model asked by the engine: exact match, digit match and dlength by length, on questions of the part `test`.
use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cell::GridCell;
use crate::{QuestionStream, TrainingQuestion, TrainingTask};
use earnest_engine::cpu::{CpuEngine, Options};
use earnest_engine::{Engine, Event, Request, RequestId};
use earnest_models::checkpoint::Checkpoint;
use earnest_tasks::suite::nupa::{DigitSet, Metrics, Split, measure};

/// Version of [`Evaluation`]'s JSON form.
pub const EVALUATION_FORMAT: u32 = 1;

/// Tokens that an answer may have beyond those of the right one.
const SURPLUS: usize = 8;

/// How a model did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// [`EVALUATION_FORMAT`].
    pub format: u32,
    /// Questions asked of each task and length, where there are as many.
    pub questions: usize,
    /// Different tokens in prompts and right answers; the one that ends an answer is not among them.
    pub used_tokens: usize,
    /// By task and length.
    pub scores: Vec<LengthScore>,
}

/// A task at a length. Means are over the questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LengthScore {
    /// The task.
    pub task: String,
    /// Digits of the longer operand, as its suite counts them.
    pub length: usize,
    /// The length was learnt.
    pub learnt: bool,
    /// Questions.
    pub questions: usize,
    /// Share answered exactly.
    pub exact_match: f64,
    /// Mean share of right digits; tasks of the NUPA Test only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digit_match: Option<f64>,
    /// Mean difference in digits, a sum over the parts of a number; tasks of the NUPA Test only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dlength: Option<f64>,
}

struct Asked {
    question: TrainingQuestion,
    learnt: bool,
    prompt: String,
    /// The right answer in the model's format.
    expected: String,
}

/// Asks the model in a folder. `threads` of the engine change no answer.
///
/// # Errors
/// What can not be loaded or asked, in a sentence.
pub(super) fn evaluate(
    cell: &GridCell,
    folder: &Path,
    questions: usize,
    threads: Option<usize>,
) -> Result<Evaluation, String> {
    let asked = ask(cell, questions)?;
    let checkpoint = Checkpoint::open(folder).map_err(|error| error.to_string())?;
    let options = Options { threads, kv_memory: Some(1 << 28), ..Options::default() };
    let mut engine = CpuEngine::load(&checkpoint, options).map_err(|error| error.to_string())?;
    let stop_ids: Vec<u32> = checkpoint.tokenizer.eos().into_iter().collect();
    let mut used = BTreeSet::new();
    for (number, asked) in asked.iter().enumerate() {
        let encode = |text: &str, begin| checkpoint.tokenizer.encode(text, begin).map_err(|error| error.to_string());
        let (prompt, expected) = (encode(&asked.prompt, true)?, encode(&asked.expected, false)?);
        used.extend(prompt.iter().chain(&expected).copied());
        let request = Request::greedy(RequestId(number as u64), prompt, expected.len() + SURPLUS);
        engine.submit(Request { stop_ids: stop_ids.clone(), ..request }).map_err(|error| format!("{error:?}"))?;
    }
    let mut answers = vec![String::new(); asked.len()];
    loop {
        let events = engine.poll().map_err(|error| error.to_string())?;
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
        scores: score(cell, &asked, &answers)?,
    })
}

/// The questions, by length and task.
fn ask(cell: &GridCell, questions: usize) -> Result<Vec<Asked>, String> {
    let settings = &cell.settings;
    let mut asked = Vec::new();
    let learnt = settings
        .asked(&settings.lengths)
        .and_then(|stream| QuestionStream::new(stream, Split::Train))
        .map_err(|error| error.to_string())?;
    for lengths in [&settings.lengths, &settings.beyond] {
        if lengths.is_empty() {
            continue;
        }
        let stream = settings.asked(lengths).and_then(|stream| QuestionStream::new(stream, Split::Test));
        let stream = stream.map_err(|error| error.to_string())?;
        for (number, question) in stream.fixed(questions).into_iter().enumerate() {
            let text = stream.text(&question, number as u64).map_err(|error| error.to_string())?;
            let learnt = learnt.asks(question.task(), question.length());
            asked.push(Asked { question, learnt, prompt: text.prompt, expected: text.answer });
        }
    }
    Ok(asked)
}

fn score(cell: &GridCell, asked: &[Asked], answers: &[String]) -> Result<Vec<LengthScore>, String> {
    let format = cell.settings.format.number_format().map_err(|error| error.to_string())?;
    let mut scores: Vec<LengthScore> = Vec::new();
    for (asked, answer) in asked.iter().zip(answers) {
        let (exact, measured) = judge(asked, answer.trim(), &|text| format.restore_answer(text));
        let (task, length) = (asked.question.task().to_string(), asked.question.length());
        let place = scores.iter().position(|score| score.task == task && score.length == length);
        let place = place.unwrap_or_else(|| {
            let none = measured.map(|_| 0.0);
            let learnt = asked.learnt;
            let digit_match = none;
            scores.push(LengthScore {
                task,
                length,
                learnt,
                questions: 0,
                exact_match: 0.0,
                digit_match,
                dlength: none,
            });
            scores.len() - 1
        });
        let score = &mut scores[place];
        score.questions += 1;
        score.exact_match += f64::from(u8::from(exact));
        if let Some(measured) = measured {
            *score.digit_match.get_or_insert_default() += measured.digit_match;
            *score.dlength.get_or_insert_default() += measured.dlength as f64;
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

/// Whether an answer is exactly right, and how near it is.
fn judge(asked: &Asked, answer: &str, restore: &dyn Fn(&str) -> String) -> (bool, Option<Metrics>) {
    let form = match asked.question.task() {
        TrainingTask::Nupa(task) => task.answer_form(),
        TrainingTask::ArithmeticBench(_) | TrainingTask::Memorise(_) => return (answer == asked.expected.trim(), None),
    };
    let right = asked.question.answer();
    let plain = restore(answer);
    let measured = measure(form, DigitSet::Ascii, &right, &plain);
    // Digits alone would forgive other characters between them.
    (plain == right, measured)
}
