//! Documents of files that earnest wrote: every sample of a document has its own scores.
use std::collections::HashMap;

use serde_json::{Map, Value};

use super::super::fault::LogFault;
use super::super::json::{id_text, parse, plain};
use super::super::limits::{check_copies, check_scores};
use super::super::records::Place;
use super::super::sample::{LogSample, LogScore};
use super::line::Line;
use earnest_results::{LogCard, OWN};

/// Ending of the metric that has the score of every sample.
const REPEATS: &str = "_repeats";

/// Returns the samples of a document from the lines of its filters, with the names that the scorers had in the run.
///
/// # Errors
/// The place of a line that cannot be read, and the reason.
pub(super) fn samples<'a>(
    card: &LogCard,
    names: &HashMap<String, String>,
    own_ids: bool,
    lines: impl Iterator<Item = (&'a str, Place, Vec<u8>)>,
) -> Result<Vec<LogSample>, (Place, LogFault)> {
    let mut samples: Vec<LogSample> = Vec::new();
    let (mut explanations, mut readings) = (Vec::new(), Vec::new());
    for (filter, index, bytes) in lines {
        let failed = |fault: LogFault| (index, fault);
        let mut line = parse::<Line<true>>(&bytes).map_err(failed)?;
        let metrics = line.metrics.take().unwrap_or_default();
        check_scores(metrics.len()).map_err(failed)?;
        let rest = std::mem::take(&mut line.rest);
        let filtered = line.filtered.take();
        if samples.is_empty() {
            let facts = rest.get(OWN).and_then(Value::as_object).cloned().unwrap_or_default();
            let list = |name: &str| facts.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
            let objects = |name: &str| -> Vec<Map<String, Value>> {
                list(name).into_iter().map(|one| one.as_object().cloned().unwrap_or_default()).collect()
            };
            (explanations, readings) = (objects("explanations"), objects("readings"));
            let id = if own_ids { id_text(&line.doc["id"]) } else { None };
            samples = of_document(line, id, &list("samples"), &list("errors")).map_err(failed)?;
        }
        let mut leads = true;
        for metric in &metrics {
            if metric.strip_suffix(REPEATS).is_some_and(|of| metrics.iter().any(|other| other == of)) {
                continue;
            }
            let scorer = format!("{metric},{filter}");
            let scorer = names.get(&scorer).unwrap_or(&scorer);
            let repeats = rest.get(&format!("{metric}{REPEATS}")).and_then(Value::as_array);
            let values: Vec<&Value> = match repeats.filter(|values| values.len() == samples.len()) {
                Some(values) => values.iter().collect(),
                None => rest.get(metric).into_iter().collect(),
            };
            for (at, (sample, value)) in samples.iter_mut().zip(values).enumerate() {
                if value.is_null() {
                    continue;
                }
                let of_filter = || filtered.get(at).filter(|answer| !answer.is_null()).map(plain);
                let answer = match readings.get(at).and_then(|of| of.get(scorer)) {
                    Some(answer) => Some(answer).filter(|answer| !answer.is_null()).map(plain),
                    None if leads || readings.is_empty() => of_filter(),
                    None => None,
                };
                let explanation = explanations.get(at).and_then(|of| of.get(scorer)).map(plain);
                sample.scores.push(LogScore { scorer: scorer.clone(), value: value.clone(), answer, explanation });
            }
            leads = false;
        }
    }
    let index = |score: &LogScore| card.scorers.iter().position(|known| *known == score.scorer).unwrap_or(usize::MAX);
    samples.iter_mut().for_each(|sample| sample.scores.sort_by_key(index));
    Ok(samples)
}

/// The samples of a document without their scores; `numbers` are those of its repeats, where there are several.
///
/// # Errors
/// The reason, where the document is too long to stand in as many samples.
fn of_document(
    line: Line<true>,
    id: Option<String>,
    numbers: &[Value],
    errors: &[Value],
) -> Result<Vec<LogSample>, LogFault> {
    // In a list of their own, in order of the samples.
    let responses: Vec<Value> = match line.responses.get(0) {
        Some(Value::Array(responses)) => responses.clone(),
        _ => Vec::new(),
    };
    let mut document = line.sample(id, false);
    document.document.remove("prompt_ids_sha256");
    let error = |at: usize| errors.get(at).filter(|error| !error.is_null()).map(plain);
    if numbers.len() < 2 {
        return Ok(vec![LogSample { error: error(0), ..document }]);
    }
    let likelihoods = std::mem::take(&mut document.likelihoods);
    let completions = std::mem::take(&mut document.completions);
    check_copies("the document", document.memory(), numbers.len())?;
    let texts = completions.is_empty() || responses.len() == numbers.len();
    let one = |(at, number): (usize, &Value)| LogSample {
        epoch: number.as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or(0),
        completions: match texts {
            true => responses.get(at).and_then(Value::as_str).map(str::to_owned).into_iter().collect(),
            false => completions.get(at).cloned().into_iter().collect(),
        },
        // Each continuation has one of every sample.
        likelihoods: likelihoods.iter().skip(at).step_by(numbers.len()).cloned().collect(),
        error: error(at),
        ..document.clone()
    };
    Ok(numbers.iter().enumerate().map(one).collect())
}
