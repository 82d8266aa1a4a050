//! A task as a suite: items from rows, in order, and their scores.
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, json};

use super::columns::Problem;
use super::compiled::{Setting, Task};
use super::definition::{Definition, Texts};
use super::pass::{NotAsked, Passed};
use super::reader::{Taken, Wanted};
use super::{STORED_KEY, hash, likelihood, scorer, summary, usual};
use crate::suite::registry::{Programs, Row, Rows};
use crate::suite::{Answered, Item, Items, Score, Scored, Scoring, Summary};

/// Questions of the user.
pub(super) struct TaskSuite {
    pub task: Task,
    pub rows: Arc<dyn Rows>,
    pub passed: Arc<Passed>,
    pub setting: Setting,
    /// Bad rows were left out on request.
    pub skip: bool,
    pub programs: Arc<dyn Programs>,
    /// Reason for the items having ended too early.
    pub unread: OnceLock<String>,
}

/// Items that are made ahead where rows are taken apart in batches.
const ITEMS: usize = 64;

/// A file in the manifest: `place` is no part of a run's identity.
pub(super) const PLACE: &str = "place";

impl TaskSuite {
    /// Items of these rows, in their order, up to the first that cannot be made.
    fn some(&self, rows: &[u32]) -> VecDeque<Result<Item, NotAsked>> {
        let mut items = VecDeque::with_capacity(rows.len());
        let numbers = rows.iter().map(|row| *row as usize);
        let ended = self.task.reader.each(self.rows.as_ref(), numbers, Wanted::Item, |number, found| {
            items.push_back(found.map_err(NotAsked::from).and_then(|(row, taken)| self.item(number, row, taken)));
        });
        items.extend(ended.err().map(|limit| Err(limit.into())));
        items
    }

    fn item(&self, number: usize, found: &Row, taken: Result<Taken, Problem>) -> Result<Item, NotAsked> {
        let made = taken.and_then(|taken| self.task.item(found, taken));
        let made = made.map_err(|problem| NotAsked::at(found, problem))?;
        let mut item = made.item;
        if self.passed.labelled && !made.labelled {
            item.cluster = usual::own_cluster(&item.cluster);
        }
        // Equal questions are told apart by their rows, and are one cluster.
        if made.digest && self.passed.repeated.contains(&hash::of(&item.id)) {
            item.id = format!("{}-{}", item.id, number + 1);
        }
        Ok(item)
    }

    /// Notes about rows that are not asked.
    pub(super) fn left_out(&self) -> Vec<String> {
        left_out(self.rows.as_ref(), &self.passed)
    }
}

/// Sentences about rows that are not asked.
pub(super) fn left_out(rows: &dyn Rows, passed: &Passed) -> Vec<String> {
    let (unreadable, messages) = rows.skipped();
    let all = messages.iter().chain(&passed.problems);
    let count = unreadable + passed.left_out;
    match (count, all.clone().next()) {
        (0, _) => Vec::new(),
        (1, Some(only)) => vec![format!("1 row was left out: {only}")],
        (_, Some(first)) => vec![format!("{count} rows were left out; the first: {first}")],
        (_, None) => vec![format!("{count} rows were left out")],
    }
}

impl Items for TaskSuite {
    fn iter(&self) -> Box<dyn Iterator<Item = Item> + Send + '_> {
        // A file that was changed since the pass ends the questions; the run asks for the reason.
        let keep = |reason: NotAsked| {
            // The first reason stays.
            let _ = self.unread.set(reason.to_string());
        };
        let mut batches = self.passed.order.chunks(self.task.reader.batch().min(ITEMS));
        let mut ready = VecDeque::new();
        Box::new(std::iter::from_fn(move || {
            if ready.is_empty() {
                ready = self.some(batches.next()?);
            }
            ready.pop_front()?.map_err(keep).ok()
        }))
    }

    fn unread(&self) -> Option<String> {
        self.unread.get().cloned()
    }

    fn len(&self) -> usize {
        self.passed.order.len()
    }
}

impl Scoring for TaskSuite {
    fn name(&self) -> &str {
        &self.task.name
    }

    fn version(&self) -> &str {
        &self.task.version
    }

    fn options(&self) -> Value {
        let definition = stored(self.task.definition(), self.setting.prompt.as_deref());
        let definition = serde_json::to_value(definition).unwrap_or_default();
        let files: Vec<Value> = self
            .rows
            .files()
            .iter()
            .map(|file| json!({PLACE: file.path.display().to_string(), "sha256": file.sha256, "rows": file.rows}))
            .collect();
        let Setting { prompt, chat, scorer, examples, .. } = &self.setting;
        let mut options = Map::new();
        // Places of files are no part of a run's identity, but a task file may use that word for something else.
        let content = json!([definition, examples]).to_string();
        options.insert("sha256".into(), earnest_digest::hex(&earnest_digest::sha256(content.as_bytes())).into());
        options.insert(STORED_KEY.into(), definition);
        options.insert("files".into(), files.into());
        options.insert("name".into(), self.task.name.as_str().into());
        options.insert("chat".into(), (*chat).into());
        if self.task.framed {
            options.insert("framed".into(), true.into());
        }
        options.extend(prompt.as_ref().map(|prompt| ("prompt".to_owned(), prompt.as_str().into())));
        if !examples.is_empty() {
            options.insert("examples".into(), examples.iter().cloned().map(Value::Object).collect());
        }
        if self.skip {
            options.insert("skip_bad_rows".into(), true.into());
        }
        let scorer = scorer.as_ref().filter(|scorer| Some(*scorer) != self.task.usual.as_ref());
        options.extend(scorer.map(|scorer| ("profile".to_owned(), scorer.as_str().into())));
        Value::Object(options)
    }

    fn score(&self, item: &Item, answered: &Answered<'_>) -> Score {
        let chosen = self.task.chosen.as_deref().unwrap_or_default();
        match self.task.scorers.iter().any(scorer::Scorer::is_likelihood) {
            true => likelihood::score(&self.task.scorers, chosen, &self.task.delimiter, item, answered),
            false => scorer::score(&self.task.scorers, chosen, item, answered, self.programs.as_ref()),
        }
    }

    fn programs(&self) -> Option<&dyn Programs> {
        self.task.runs_programs().then_some(self.programs.as_ref())
    }

    fn scorers(&self) -> Vec<&str> {
        self.task.scorers.iter().flat_map(|scorer| scorer.names()).collect()
    }

    fn chosen(&self) -> Vec<&str> {
        self.task.chosen.iter().map(String::as_str).collect()
    }

    fn summarise(&self, samples: &[Scored<'_>]) -> Summary {
        let mut summary = summary::of(samples, self.task.chosen.as_deref(), &self.scorers());
        summary.notes.extend(self.left_out());
        summary
    }
}

/// The part of a task file that determines the items: without places and digests of files, which the manifest has beside it, and
/// without other prompts than the chosen one.
fn stored(definition: &Definition, prompt: Option<&str>) -> Definition {
    let mut definition = definition.clone();
    match prompt {
        Some(chosen) => {
            definition.prompt = None;
            definition.prompts.retain(|name, _| name == chosen);
        }
        None if definition.prompt.is_some() => definition.prompts.clear(),
        None => {}
    }
    definition.questions.path = Texts::None;
    definition.questions.sha256 = Texts::None;
    if let Some(examples) = &mut definition.examples {
        examples.path = None;
        examples.format = None;
        examples.list = Vec::new();
    }
    definition
}
