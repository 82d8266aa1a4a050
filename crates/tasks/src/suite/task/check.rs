//! Check of a task: what would be asked, and what is wrong.
use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;
use serde_json::Value;

use super::columns::{Parts, text};
use super::compiled::{Made, Task};
use super::pass::{GIVEN_UP, NotAsked};
use super::reader::{Found, Wanted};
use super::registration::Configured;
use super::scorer::{Scorer, same_number};
use super::{gold, hash, usual};
use crate::suite::registry::{Choice, Host, HostError, Mode, OptionError, OptionValues, Row, Rows};
use crate::suite::{Item, Segments};

/// Findings of one kind that are shown.
const SHOWN: usize = 3;

/// Different values of a covariate that are counted.
const MOST_VALUES: usize = 1_000;

/// Characters of a question's beginning in a message.
const BEGINNING: usize = 60;

/// Report on a task: the questions that a run would ask, and faults.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    pub task: String,
    pub version: String,
    /// Files with their rows.
    pub files: Vec<CheckedFile>,
    /// Questions that would be asked.
    pub questions: usize,
    pub clusters: usize,
    /// Questions without a label of their cluster, where others have one: each is its own.
    pub without_label: usize,
    /// Questions by task, where there are several.
    pub tasks: BTreeMap<String, usize>,
    /// Scorers, the one that decides first.
    #[serde(rename = "rules")]
    pub scorers: Vec<String>,
    /// Scorer that decides; none for perplexities.
    #[serde(rename = "primary")]
    pub chosen: Option<String>,
    /// Kinds of the answers (`3 numbers and 1 text`), where they chose the scorers: none are named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen_for: Option<String>,
    /// Scorer that decides in raw prompts, where it is another one.
    #[serde(rename = "primary_raw", skip_serializing_if = "Option::is_none")]
    pub chosen_raw: Option<String>,
    /// Worked examples before each question.
    pub examples: usize,
    pub covariates: Vec<Covariate>,
    /// Names of further prompts.
    pub prompts: Vec<String>,
    /// `chat`, `raw` or `auto`.
    pub mode: String,
    pub first: Option<First>,
    /// Faults, most important first.
    pub findings: Vec<Finding>,
}

/// A file of questions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckedFile {
    pub path: String,
    pub sha256: String,
    pub rows: usize,
}

/// A covariate with the kind of its values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Covariate {
    pub name: String,
    /// `number`, `text`, `truth value`, `list` or `mixed`.
    pub kind: String,
    /// Different values; none if there are more than are counted.
    pub values: Option<usize>,
    /// Questions that have it.
    pub questions: usize,
}

/// The first question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct First {
    pub id: String,
    pub gold: String,
    /// Prompt as text; of a conversation the turns under each other.
    pub prompt: String,
    /// Texts whose log-likelihoods are scored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub continuations: Vec<String>,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Rows, questions or columns with what is wrong with them.
    pub what: String,
    pub count: usize,
    /// The first of them, with their places.
    pub first: Vec<String>,
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, what: &str, message: impl FnOnce() -> String) {
        let index = self.0.iter().position(|finding| finding.what == what).unwrap_or_else(|| {
            self.0.push(Finding { what: what.to_owned(), count: 0, first: Vec::new() });
            self.0.len() - 1
        });
        let finding = &mut self.0[index];
        finding.count += 1;
        if finding.first.len() < SHOWN {
            finding.first.push(message());
        }
    }
}

/// What a row says, before it is an item.
struct Said {
    question: String,
    answer: Option<String>,
    solution: Option<String>,
}

impl Said {
    fn of(parts: &Parts) -> Said {
        Said {
            question: parts.question.clone().unwrap_or_default(),
            answer: parts.answer.as_ref().and_then(|answer| text(answer).ok()),
            solution: parts.solution.clone(),
        }
    }
}

/// Values of a covariate so far.
#[derive(Default)]
struct Seen {
    kinds: HashSet<&'static str>,
    values: HashSet<u64>,
    questions: usize,
}

/// Survey of the rows of a task: their columns, clusters and faults.
struct Survey<'a> {
    task: &'a Task,
    rows: &'a dyn Rows,
    /// A row has a label of its cluster.
    labelled: bool,
    findings: Findings,
    covariates: BTreeMap<String, Seen>,
    /// Columns; true where a row has something in it.
    columns: BTreeMap<String, bool>,
    clusters: HashSet<u64>,
    tasks: BTreeMap<String, usize>,
    /// Last row by the hash of an id, and by that of what is asked.
    ids: HashMap<u64, usize>,
    asked: HashMap<u64, usize>,
    questions: usize,
    without_label: usize,
    pairs: Pairs,
    /// The first row that could be read before and cannot be any more.
    unread: Option<HostError>,
}

impl<'a> Survey<'a> {
    /// Nothing yet but the rows that are not among the first `last`, or that cannot be read at all.
    fn new(task: &'a Task, rows: &'a dyn Rows, labelled: bool, last: usize) -> Self {
        let mut findings = Findings::default();
        let (unreadable, messages) = rows.skipped();
        for index in 0..unreadable {
            findings.add("rows that cannot be read", || messages.get(index).cloned().unwrap_or_default());
        }
        if last < rows.len() {
            findings.add("rows that were not looked at", || super::pass::not_looked_at(rows.len() - last));
        }
        Survey {
            task,
            rows,
            labelled,
            findings,
            covariates: BTreeMap::new(),
            columns: BTreeMap::new(),
            clusters: HashSet::new(),
            tasks: BTreeMap::new(),
            ids: HashMap::new(),
            asked: HashMap::new(),
            questions: 0,
            without_label: 0,
            pairs: Pairs::default(),
            unread: None,
        }
    }

    /// Adds a row.
    fn add(&mut self, number: usize, found: Found<'_>) {
        let (row, taken) = match found {
            Ok(found) => found,
            Err(error) => {
                self.unread.get_or_insert(error);
                return;
            }
        };
        let said = taken.as_ref().ok().map(|taken| Said::of(&taken.parts));
        for (name, value) in &row.values {
            let filled = !value.is_null() && value.as_str().is_none_or(|text| !text.trim().is_empty());
            *self.columns.entry(name.clone()).or_default() |= filled;
        }
        match taken.and_then(|taken| self.task.item(row, taken)) {
            Ok(made) => self.add_item(number, row, said.as_ref(), made),
            Err(problem) => {
                let what = match problem.part {
                    "answer" => "questions without a usable answer",
                    "question" => "rows without a question",
                    "choices" => "questions without usable choices",
                    _ => "rows that cannot be asked",
                };
                self.findings.add(what, || NotAsked::at(row, problem).to_string());
            }
        }
    }

    /// Adds the item of a row, unless another one has its id.
    fn add_item(&mut self, number: usize, row: &Row, said: Option<&Said>, made: Made) {
        let (mut item, lacks_label) = (made.item, self.labelled && !made.labelled);
        if lacks_label {
            item.cluster = usual::own_cluster(&item.cluster);
        }
        let rows = self.rows;
        let place = |earlier: usize| rows.row(earlier).map(|row| row.place).unwrap_or_default();
        if !made.digest
            && let Some(earlier) = self.ids.insert(hash::of(&item.id), number)
        {
            self.findings.add("ids that occur twice", || {
                format!("{}: {} is also the id of {}", row.place, item.id, place(earlier))
            });
            return;
        }
        if let Some(earlier) = self.asked.insert(content(&item), number) {
            let beginning: String = item.segments.question.chars().take(BEGINNING).collect();
            self.findings.add("questions that repeat an earlier one", || {
                format!("{}: {beginning:?}, as in {}", row.place, place(earlier))
            });
        }
        if let Some(message) = from_text(self.task, said, row, &item) {
            self.findings.add("answers that are no plain numbers, and what is read of them", || message);
        }
        if let Some(message) = unread(self.task, said, row, &item) {
            self.findings.add("reference solutions that end with another answer, as the reader sees it", || message);
        }
        self.pairs.add(row, &item);
        self.questions += 1;
        self.without_label += usize::from(lacks_label);
        self.clusters.insert(hash::of(&item.cluster));
        *self.tasks.entry(item.task).or_default() += 1;
        for (name, value) in &item.covariates {
            let seen = self.covariates.entry(name.clone()).or_default();
            seen.questions += 1;
            seen.kinds.insert(kind(value));
            if seen.values.len() <= MOST_VALUES {
                seen.values.insert(hash::of(&value.to_string()));
            }
        }
    }

    /// Adds what only all rows together show.
    ///
    /// # Errors
    /// If a row could not be read any more.
    fn finish(mut self) -> Result<Self, OptionError> {
        if let Some(error) = self.unread.take() {
            return Err(OptionError::usage(error));
        }
        std::mem::take(&mut self.pairs).find(&mut self.findings);
        for (name, _) in self.columns.iter().filter(|(_, filled)| !**filled) {
            self.findings.add("columns that are empty in all rows", || name.clone());
        }
        Ok(self)
    }
}

/// Reads a task as a run would and checks every question.
///
/// # Errors
/// If it cannot be read at all.
pub fn check(values: &OptionValues, host: &dyn Host) -> Result<Check, OptionError> {
    let configured = Configured::read(values, host)?;
    let mode = configured.mode();
    let chat = mode != Some(Mode::Raw);
    let task = configured.task(chat)?;
    let rows = configured.rows.as_ref();
    if rows.is_empty() {
        configured.passed.check(rows, false)?;
    }
    // None of the first rows can be asked: the pass over the rows has ended there.
    let last = if configured.passed.order.is_empty() { rows.len().min(GIVEN_UP) } else { rows.len() };
    let mut survey = Survey::new(&task, rows, configured.passed.labelled, last);
    let added = task.reader.each(rows, 0..last, Wanted::Item, |number, found| survey.add(number, found));
    added.map_err(|limit| configured.limited(&limit))?;
    let Survey { findings, covariates, clusters, tasks, questions, without_label, .. } = survey.finish()?;
    let suite = configured.suite(crate::suite::registry::Channel::local(if chat { Mode::Chat } else { Mode::Raw }));
    let first = suite.ok().and_then(|suite| suite.items.iter().next()).map(|item| First {
        prompt: prompt_text(&item.segments),
        id: item.id,
        gold: item.gold,
        continuations: item.continuations,
    });
    let raw = configured.task(false)?.chosen.filter(|raw| mode.is_none() && Some(raw) != task.chosen.as_ref());
    let mut scorers: Vec<String> = task.scorers.iter().flat_map(Scorer::names).map(str::to_owned).collect();
    scorers.sort_by_key(|name| Some(name) != task.chosen.as_ref());
    let file = |file: &crate::suite::registry::RowFile| CheckedFile {
        path: file.path.display().to_string(),
        sha256: file.sha256.clone(),
        rows: file.rows,
    };
    Ok(Check {
        files: rows.files().iter().map(file).collect(),
        questions,
        clusters: clusters.len(),
        without_label,
        tasks: if tasks.len() > 1 { tasks } else { BTreeMap::new() },
        scorers,
        chosen: task.chosen.clone(),
        chosen_for: configured.chosen_for(),
        chosen_raw: raw,
        examples: task.shown(),
        covariates: covariates.into_iter().map(covariate).collect(),
        prompts: task.definition().prompts.keys().cloned().collect(),
        mode: mode.map_or_else(|| "auto".to_owned(), |mode| mode.to_string()),
        first,
        findings: findings.0,
        task: task.name,
        version: task.version,
    })
}

/// Questions and the originals that they name.
#[derive(Default)]
struct Pairs {
    /// By hash of an id, true if the question names an original.
    names_one: HashMap<u64, bool>,
    /// Place, id and named original of each question that names one.
    named: Vec<[String; 3]>,
}

impl Pairs {
    fn add(&mut self, row: &Row, item: &Item) {
        let original = item.covariates.get(usual::PAIR).and_then(Value::as_str);
        self.names_one.insert(hash::of(&item.id), original.is_some());
        self.named.extend(original.map(|original| [row.place.clone(), item.id.clone(), original.to_owned()]));
    }

    /// Originals of another file are none of this one's; where some are here, all should be.
    fn find(self, findings: &mut Findings) {
        if !self.named.iter().any(|[_, _, original]| self.names_one.contains_key(&hash::of(original))) {
            return;
        }
        for [place, id, original] in &self.named {
            match self.names_one.get(&hash::of(original)) {
                Some(false) => {}
                Some(true) => findings
                    .add("originals that are variants themselves, so that nothing is compared with them", || {
                        format!("{place}: {id} names {original}, which names another original")
                    }),
                None => findings.add("originals that are no question of the file", || {
                    format!("{place}: {id} names {original}, which is no id")
                }),
            }
        }
    }
}

/// Hash of what is asked.
fn content(item: &Item) -> u64 {
    let choices = item.covariates.get(super::choice::CHOICES).map(Value::to_string).unwrap_or_default();
    hash::of(&format!("{}\n{choices}\n{}", item.segments.question, item.continuations.join("\n")))
}

fn covariate((name, seen): (String, Seen)) -> Covariate {
    let kind = match seen.kinds.len() {
        1 => seen.kinds.into_iter().next().unwrap_or_default(),
        _ => "mixed",
    };
    let values = (seen.values.len() <= MOST_VALUES).then_some(seen.values.len());
    Covariate { name, kind: kind.to_owned(), values, questions: seen.questions }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Number(_) => "number",
        Value::Bool(_) => "truth value",
        Value::String(_) | Value::Null => "text",
        Value::Array(_) | Value::Object(_) => "list",
    }
}

/// An expected answer from which a number is taken although it neither is one nor marks one.
fn from_text(task: &Task, said: Option<&Said>, row: &Row, item: &Item) -> Option<String> {
    let chosen = task.scorers.iter().find(|scorer| Some(&scorer.name) == task.chosen.as_ref())?;
    let answer = said?.answer.clone()?;
    if !chosen.needs_number() || gold::says_number(&answer) || answer == item.gold {
        return None;
    }
    let beginning: String = answer.chars().take(BEGINNING).collect();
    Some(format!("{}: {beginning:?} is read as {}", row.place, item.gold))
}

/// A reference solution from which the reader takes another number than the answer.
fn unread(task: &Task, said: Option<&Said>, row: &Row, item: &Item) -> Option<String> {
    let chosen = task.scorers.iter().find(|scorer| Some(&scorer.name) == task.chosen.as_ref())?;
    if !chosen.needs_number() {
        return None;
    }
    let Said { question, answer, solution } = said?;
    let (solution, expected) = match (solution, answer) {
        (Some(solution), Some(_)) => (solution.clone(), item.gold.clone()),
        // The answer is itself a solution that says where its result is.
        (_, Some(answer)) => (answer.clone(), gold::plain(answer.rsplit_once("####")?.1)?),
        _ => return None,
    };
    let read = gold::solution(&solution, question);
    match read {
        Some(read) if same_number(&read, &expected) => None,
        Some(read) => Some(format!("{}: {read} is read, {expected} is the answer", row.place)),
        None => Some(format!("{}: nothing is read, {expected} is the answer", row.place)),
    }
}

/// Prompt as text; of a conversation the turns under each other.
fn prompt_text(segments: &Segments) -> String {
    if let Some(raw) = &segments.raw {
        return raw.clone();
    }
    let system = segments.system.iter().map(|text| format!("[system]\n{text}"));
    let shots = segments.shots.iter().map(|shot| format!("[user]\n{}\n[assistant]\n{}", shot.question, shot.answer));
    let turns: Vec<String> = system.chain(shots).chain([format!("[user]\n{}", segments.question)]).collect();
    turns.join("\n")
}
