//! Matching of completions with a suite's samples.
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use earnest_tasks::suite::registry::{Channel, Choice, GivenQuestion};
use earnest_tasks::suite::{Item, Suite};

use super::completions::CompletionLine;
use crate::EvalError;
use earnest_results::Plan;

/// Returns a suite of the file's own questions if its lines name operands, not items, and the suite's own questions lack some of
/// them, as with a published data set; none otherwise, and where the suite cannot take other questions.
pub(super) fn suite_of_file(
    choice: &dyn Choice,
    suite: &Suite,
    channel: Channel,
    path: &Path,
    lines: &[(usize, CompletionLine)],
) -> Result<Option<Suite>, EvalError> {
    let mut questions: Vec<GivenQuestion> = Vec::new();
    let mut numbers: Vec<usize> = Vec::new();
    let mut missing = HashSet::new();
    for (number, line) in lines {
        let (None, Some(task), Some(a)) = (&line.item, &line.task, &line.a) else { return Ok(None) };
        let question = GivenQuestion { task: task.clone(), a: a.clone(), b: line.b.clone() };
        if missing.insert(question.clone()) {
            questions.push(question);
            numbers.push(*number);
        }
    }
    let own = match choice.given(channel, &questions) {
        Ok(own) => own,
        Err(error) => {
            // One by one, to name the first line with an impossible question.
            for (question, number) in questions.iter().zip(&numbers) {
                choice
                    .given(channel, std::slice::from_ref(question))
                    .map_err(|error| EvalError::line(path, *number, error.message))?;
            }
            return Err(error.into());
        }
    };
    for item in suite.items.iter() {
        let Some(a) = operand(&item, "a") else { continue };
        let b = operand(&item, "b");
        missing.remove(&GivenQuestion { task: item.task, a, b });
        if missing.is_empty() {
            return Ok(None);
        }
    }
    Ok(own)
}

/// An item's question as far as a line can name it.
struct Question {
    task: String,
    a: Option<String>,
    b: Option<String>,
}

/// Returns the lines by index in the plan.
pub(super) fn place(
    path: &Path,
    suite: &Suite,
    plan: Plan,
    lines: Vec<(usize, CompletionLine)>,
) -> Result<BTreeMap<usize, CompletionLine>, EvalError> {
    let mut by_id: HashMap<String, usize> = HashMap::new();
    let mut questions: Vec<Question> = Vec::new();
    let mut by_operands: HashMap<(String, String, Option<String>), Vec<usize>> = HashMap::new();
    for (index, item) in suite.items.iter().take(plan.items(suite)).enumerate() {
        let (a, b) = (operand(&item, "a"), operand(&item, "b"));
        if let Some(a) = &a {
            by_operands.entry((item.task.clone(), a.clone(), b.clone())).or_default().push(index);
        }
        by_id.insert(item.id, index);
        questions.push(Question { task: item.task, a, b });
    }
    let mut placed: BTreeMap<usize, CompletionLine> = BTreeMap::new();
    for (number, line) in lines {
        let items = match (&line.item, &line.task, &line.a) {
            (Some(id), _, _) => by_id.get(id).map(std::slice::from_ref).unwrap_or_default(),
            (None, Some(task), Some(a)) => {
                by_operands.get(&(task.clone(), a.clone(), line.b.clone())).map(Vec::as_slice).unwrap_or_default()
            }
            _ => {
                let message = "name the \"item\", or the \"task\" with its operand \"a\" (and \"b\")";
                return Err(EvalError::line(path, number, message));
            }
        };
        if let (Some(id), Some(question)) = (&line.item, items.first().and_then(|&item| questions.get(item)))
            && let Some(contradiction) = contradiction(&line, question)
        {
            return Err(EvalError::line(path, number, format!("{id} has {contradiction}"))
                .hint("the options of the items, the setting `seed` among them, must be those of the questions that were asked"));
        }
        let sample_of = |item: usize| item * plan.samples as usize + line.sample as usize;
        // The same operands can be drawn twice; such items are filled in order.
        let free = items.iter().map(|&item| sample_of(item)).find(|sample| !placed.contains_key(sample));
        match free {
            Some(sample) => drop(placed.insert(sample, line)),
            None if items.is_empty() => {
                let name = line.item.as_deref().or(line.task.as_deref()).unwrap_or_default();
                let message = format!("{} has no such item ({name}) under these options", suite.scoring.name());
                return Err(EvalError::line(path, number, message)
                    .hint("the options of the items (`earnest suites` lists them) must be those of the questions"));
            }
            None => {
                let message = "an earlier line has this sample already; number an item's completions with \"sample\"";
                return Err(EvalError::line(path, number, message));
            }
        }
    }
    Ok(placed)
}

/// Describes the first field of a line that contradicts the item it names.
fn contradiction(line: &CompletionLine, question: &Question) -> Option<String> {
    let task = Some(question.task.clone());
    let fields = [("task", &line.task, &task), ("a", &line.a, &question.a), ("b", &line.b, &question.b)];
    let (name, given, own) = fields.into_iter().find(|(_, given, own)| given.is_some() && given != own)?;
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    Some(format!("{} as its \"{name}\" under these options, not {}", value(own), value(given)))
}

fn operand(item: &Item, name: &str) -> Option<String> {
    Some(item.covariates.get(name)?.as_str()?.to_owned())
}
