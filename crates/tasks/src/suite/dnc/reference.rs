//! The perturbations bit for bit as the authors' program makes them, its bugs included (spec section 3). For conformance; what
//! is reported uses the corrected ones.
//!
//! The program seeds nothing, so its published sets cannot be made again; with the same state of both generators its output is
//! this one's.
use std::collections::HashMap;

use num_bigint::BigInt;

use super::kind::Kind;
use super::mention::{Mention, reference_mentions};
use super::perturbation::{Edit, Field, Perturbed, apply, rewritten};
use super::problem::Problem;
use crate::suite::python_random::PythonRandom;
use earnest_answer::number::words::number_words;
use earnest_answer::python::python_eval;

/// Both generators that the program draws from.
#[derive(Clone)]
pub struct ReferenceRandom {
    /// Python's `random`: digits of Noise.
    digits: PythonRandom,
    /// `numpy.random`: offsets of Distribution, distractors of Verbosity.
    normals: PythonRandom,
}

impl ReferenceRandom {
    /// Both seeded alike, as `random.seed(seed); numpy.random.seed(seed)` does.
    pub fn new(seed: u32) -> Self {
        ReferenceRandom { digits: PythonRandom::new(&seed.to_string()), normals: PythonRandom::numpy(seed) }
    }

    /// `random.choice` of ten digits.
    pub fn digit(&mut self) -> u32 {
        self.below(10)
    }

    /// `random.randrange(bound)`.
    pub fn below(&mut self, bound: u32) -> u32 {
        self.digits.below(bound)
    }

    /// `numpy.random.normal(mean, deviation)`.
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        self.normals.normal(mean, deviation)
    }

    /// The same, cut towards zero.
    fn offset(&mut self, mean: f64, deviation: f64) -> i64 {
        self.normal(mean, deviation) as i64
    }
}

/// True if the authors have a program for it; the other perturbations are the same in both modes.
pub fn has_program(kind: Kind) -> bool {
    matches!(kind, Kind::Language | Kind::Type | Kind::Noise | Kind::Distribution | Kind::Verbosity)
}

/// The filter of Type, Noise and Distribution on ASDiv-a: whole operands, all of them mentions of the body, all different, and
/// no blank in the formula.
pub fn is_simple(problem: &Problem) -> bool {
    let operands = problem.reference_operands();
    let mentions = reference_mentions(&problem.body);
    let formula = problem.formula.as_deref().unwrap_or_default();
    operands.iter().all(|operand| !operand.contains('.'))
        && operands.iter().all(|operand| mentions.iter().any(|mention| mention.text == *operand))
        && operands.iter().enumerate().all(|(index, operand)| !operands[..index].contains(operand))
        && !formula.contains(' ')
}

/// Perturbs a question as the program does; none where its filter leaves the question out, there is no such program (Extra,
/// Logic, Order), or evaluating the formula raises an error.
pub fn perturb(kind: Kind, problem: &Problem, random: &mut ReferenceRandom) -> Option<Perturbed> {
    let Some(formula) = &problem.formula else {
        return without_formula(kind, problem, random);
    };
    // The program unpacks two sides, before it draws anything, and fails where there are more or fewer.
    if formula.matches('=').count() != 1 {
        return None;
    }
    let (problem_edits, formula) = match kind {
        Kind::Language => (words(problem), problem.formula.clone()),
        Kind::Verbosity => (verbosity(problem, random), problem.formula.clone()),
        Kind::Type | Kind::Noise | Kind::Distribution => {
            if !is_simple(problem) {
                return None;
            }
            operands(kind, problem, random)?
        }
        Kind::Extra | Kind::Logic | Kind::Order | Kind::LanguageToDigits => return None,
    };
    let mut after = apply(problem, &problem_edits);
    if let (Some(formula), Some(original)) = (formula, &problem.formula) {
        recompute(&mut after, original, &formula)?;
    }
    Some(Perturbed {
        kind,
        problem: after,
        edits: problem_edits,
        reason: "passes the reference's filter".to_owned(),
        provenance: None,
    })
}

/// DROP and TAT-QA: every paragraph and the question by themselves; tables and answers stay.
fn without_formula(kind: Kind, problem: &Problem, random: &mut ReferenceRandom) -> Option<Perturbed> {
    if !matches!(kind, Kind::Language | Kind::Type | Kind::Verbosity) {
        return None;
    }
    let mut after = problem.clone();
    let paragraphs: Vec<String> = problem.body.split('\n').map(|text| perturb_text(kind, text, random)).collect();
    after.body = paragraphs.join("\n");
    after.question = perturb_text(kind, &problem.question, random);
    let reason = "the reference has no filter here".to_owned();
    Some(Perturbed { kind, edits: rewritten(problem, &after), problem: after, reason, provenance: None })
}

/// Perturbs a text of DROP or TAT-QA as the program does: no filter, every last occurrence of a number. Only Language, Type and
/// Verbosity are made of them; other kinds leave the text as it is.
pub fn perturb_text(kind: Kind, text: &str, random: &mut ReferenceRandom) -> String {
    let mut problem = Problem::plain(text);
    let edits = match kind {
        Kind::Language => words(&problem),
        Kind::Verbosity => verbosity(&problem, random),
        Kind::Type => last_mentions(text).iter().map(|mention| edit(mention, format!("{}.0", mention.text))).collect(),
        _ => Vec::new(),
    };
    problem = apply(&problem, &edits);
    problem.body
}

/// Every question of a data set in order, as the program's driver walks it: one pair of generators for all, the converter
/// called twice for each question that it keeps (once to see whether it yields something, once for the result), and where it
/// yields nothing the question itself. Perturbed questions come first, then the rest.
pub fn perturb_all<'a>(
    kind: Kind,
    problems: impl IntoIterator<Item = &'a Problem>,
    seed: u32,
) -> (Vec<(usize, Perturbed)>, Vec<usize>) {
    let mut random = ReferenceRandom::new(seed);
    let (mut kept, mut rest) = (Vec::new(), Vec::new());
    for (index, problem) in problems.into_iter().enumerate() {
        let tried = perturb(kind, problem, &mut random).is_some();
        match tried.then(|| perturb(kind, problem, &mut random)).flatten() {
            Some(perturbed) => kept.push((index, perturbed)),
            None => rest.push(index),
        }
    }
    (kept, rest)
}

/// The reference keeps mentions in a map from text to offset, so only the last of equal ones is edited.
fn last_mentions(text: &str) -> Vec<Mention> {
    let mentions = reference_mentions(text);
    let mut last: HashMap<&str, usize> = HashMap::new();
    for (index, mention) in mentions.iter().enumerate() {
        last.insert(&mention.text, index);
    }
    mentions
        .iter()
        .enumerate()
        .filter(|(index, mention)| last[mention.text.as_str()] == *index)
        .map(|(_, m)| m.clone())
        .collect()
}

fn edit(mention: &Mention, to: String) -> Edit {
    Edit { field: Field::Body, start: mention.start, from: mention.text.clone(), to }
}

fn words(problem: &Problem) -> Vec<Edit> {
    // What the library refuses (thousands commas, per cent) stays as it is.
    last_mentions(&problem.body)
        .iter()
        .filter_map(|mention| Some(edit(mention, number_words(&mention.text)?)))
        .collect()
}

fn verbosity(problem: &Problem, random: &mut ReferenceRandom) -> Vec<Edit> {
    let mentions = last_mentions(&problem.body);
    mentions
        .iter()
        .rev()
        .map(|mention| edit(mention, format!("{} (not {})", mention.text, random.offset(100.0, 30.0))))
        .collect()
}

/// Operands from left to right in the formula; their texts are replaced in the body and in the formula, where they are mentions
/// too. None where the program raises an error: an operand that is no mention (`5--3`), or no integer where one is moved.
fn operands(kind: Kind, problem: &Problem, random: &mut ReferenceRandom) -> Option<(Vec<Edit>, Option<String>)> {
    let mut changed: Vec<(String, String)> = Vec::new();
    for operand in problem.reference_operands() {
        let to = match kind {
            Kind::Type => format!("{operand}.0"),
            Kind::Noise => format!("{operand}.{}", random.digit()),
            _ => (operand.parse::<BigInt>().ok()? + random.offset(1000.0, 300.0)).to_string(),
        };
        changed.push((operand, to));
    }
    let (left, right) = problem.formula.as_deref()?.split_once('=')?;
    let (of_body, of_formula) = (last_mentions(&problem.body), last_mentions(left));
    let mention = |mentions: &[Mention], operand: &str| mentions.iter().find(|found| found.text == operand).cloned();
    let mut edits = Vec::new();
    let mut moved = Vec::new();
    for (operand, to) in &changed {
        edits.push(edit(&mention(&of_body, operand)?, to.clone()));
        moved.push((mention(&of_formula, operand)?, to));
    }
    moved.sort_by_key(|(mention, _)| std::cmp::Reverse(mention.start));
    let mut formula = left.to_owned();
    for (mention, to) in moved {
        formula.replace_range(mention.start..mention.end, to);
    }
    Some((edits, Some(format!("{formula}={right}"))))
}

/// The formula's right side becomes what Python makes of the left one, and so does every occurrence of the old right side in
/// the answer.
fn recompute(after: &mut Problem, original: &str, formula: &str) -> Option<()> {
    let (_, old) = original.split_once('=')?;
    let left = formula.split_once('=').map_or(formula, |(left, _)| left);
    let value = python_eval(left).ok()?.text().ok()?;
    after.formula = Some(format!("{left}={value}"));
    after.answer = after.answer.replace(old, &value);
    Some(())
}
