//! Registration of all tasks of the user.
use crate::counted;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::compiled::{Scorers, Setting, Task};
use super::definition::{Definition, PromptMode};
use super::pass::{GIVEN_UP, Passed};
use super::reader::{BATCH, LimitReached, RowReader, Sources, Taken, Unusable, Wanted};
use super::scorer_spec::{ScorerKind, ScorerSpec};
use super::suite::{TaskSuite, left_out};
use super::{examples, keys, source};
use crate::suite::Suite;
use crate::suite::registry::{
    BuiltIn, Card, Channel, Choice, Host, Mode, OptionError, OptionSpec, OptionValues, Programs, Rows,
};

/// Help for a command line without a file.
const USAGE: &str = "earnest run questions.jsonl";

const OPTIONS: [OptionSpec; 5] = [
    OptionSpec::path("file", "FILE", "Questions (JSONL, JSON, CSV, TSV or Parquet), or a task file (TOML)"),
    OptionSpec::flag("skip-bad-rows", "Leave rows out that cannot be read or asked, and count them"),
    OptionSpec::PROMPT,
    OptionSpec::SEED,
    OptionSpec::scorer(
        "Scorer that decides what is right, of the task file's scorers; all are stored [default: the first]",
    ),
];

/// Registration of all tasks of the user.
pub struct Registration;

impl BuiltIn for Registration {
    fn card(&self) -> Card {
        Card {
            options: &OPTIONS,
            ..Card::new(
                "task",
                "1.4",
                "Your own questions",
                "your file",
                "your own questions: JSONL, CSV, Parquet, or a task file",
            )
        }
    }

    fn tasks(&self) -> Vec<String> {
        Vec::new()
    }

    fn items(&self) -> Option<usize> {
        None
    }

    fn check_prompts(&self, _: &[String]) -> Result<(), OptionError> {
        // The task file has their names.
        Ok(())
    }

    fn configure(&self, values: &OptionValues, host: &dyn Host) -> Result<Box<dyn Choice>, OptionError> {
        Ok(Box::new(Configured::new(values, host)?))
    }

    fn chosen(&self, options: &Value) -> Vec<String> {
        let Ok(stored) = Stored::deserialize(options) else { return Vec::new() };
        let names = Scorers::of(&stored.task_file, stored.scorer.as_ref());
        names.ok().and_then(|names| names.chosen).into_iter().collect()
    }

    fn stored(&self, options: &Value, host: &dyn Host) -> Result<Suite, OptionError> {
        let stored = Stored::deserialize(options).map_err(OptionError::unreadable)?;
        let rows = source::again(&stored.files, &stored.task_file.questions, stored.skip_bad_rows, host)?;
        let Stored { task_file, name, chat, framed, prompt, scorer, examples, skip_bad_rows: skip, .. } = stored;
        let setting = Setting { name, prompt, chat, framed, scorer, examples };
        let sources = Sources::of(&task_file, &task_file.prompt(setting.prompt.as_deref())?);
        let reader = RowReader::new(&sources, host).map_err(|error| OptionError::unreadable(error.reason()))?;
        let task = Task::new(task_file, &setting, Arc::new(reader));
        let task = task.map_err(OptionError::unreadable)?;
        let passed = Passed::over(&task, rows.as_ref());
        let passed = Arc::new(passed.map_err(|limit| OptionError::unreadable(limit.to_string()))?);
        passed.check(rows.as_ref(), skip).map_err(|error| OptionError::unreadable(error.message))?;
        Ok(Suite::new(TaskSuite {
            task,
            rows,
            passed,
            setting,
            skip,
            programs: host.programs(None),
            unread: OnceLock::new(),
        }))
    }
}

/// Options of a stored run.
#[derive(Debug, Deserialize)]
struct Stored {
    task_file: Definition,
    files: Vec<source::StoredFile>,
    name: String,
    chat: bool,
    /// Absent where questions get no frame.
    #[serde(default)]
    framed: bool,
    #[serde(default)]
    prompt: Option<String>,
    #[serde(rename = "profile", default)]
    scorer: Option<String>,
    #[serde(default)]
    examples: Vec<Map<String, Value>>,
    #[serde(default)]
    skip_bad_rows: bool,
}

/// A task whose file and questions were read.
pub(super) struct Configured {
    pub definition: Definition,
    pub rows: Arc<dyn Rows>,
    pub passed: Arc<Passed>,
    pub setting: Setting,
    reader: Arc<RowReader>,
    pub skip: bool,
    /// The scorers are those of the questions, because the task file has none.
    pub usual: Option<Usual>,
    /// Kinds of the answers that chose them.
    kinds: Kinds,
    /// Text and path of the task file, for messages.
    file: Option<(String, PathBuf)>,
    programs: Arc<dyn Programs>,
}

/// Kind of the expected answers, which settles the scorers where the user does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usual {
    Choices,
    /// Numbers; answers that none can be read from are texts.
    Numbers,
    /// Texts, and some numbers among them.
    Mixed,
    Texts,
}

/// Answers of a file by their kinds.
#[derive(Debug, Clone, Copy, Default)]
struct Kinds {
    choices: usize,
    /// Plain numbers, and solutions that mark one.
    numbers: usize,
    /// Numbers with a unit.
    counts: usize,
    texts: usize,
}

impl Kinds {
    fn with(self, other: Self) -> Self {
        Kinds {
            choices: self.choices + other.choices,
            numbers: self.numbers + other.numbers,
            counts: self.counts + other.counts,
            texts: self.texts + other.texts,
        }
    }

    fn usual(self) -> Usual {
        let Kinds { choices, numbers, counts, texts } = self;
        match () {
            () if choices > 0 && choices >= numbers + counts + texts => Usual::Choices,
            () if numbers == 0 => Usual::Texts,
            () if numbers + counts >= texts => Usual::Numbers,
            () => Usual::Mixed,
        }
    }

    /// `3 numbers and 1 text`.
    fn words(self) -> String {
        let all = [
            (self.choices, "question with choices", "questions with choices"),
            (self.numbers, "number", "numbers"),
            (self.counts, "number with a unit", "numbers with units"),
            (self.texts, "text", "texts"),
        ];
        let there = all.into_iter().filter(|(count, ..)| *count > 0);
        let words: Vec<String> =
            there.map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many })).collect();
        match &words[..] {
            [] => "none".to_owned(),
            [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
            [only, ..] => only.clone(),
        }
    }
}

impl Usual {
    fn scorers(self, chat: bool) -> Vec<ScorerSpec> {
        match self {
            Usual::Choices if chat => vec![ScorerSpec::of(ScorerKind::Choice)],
            Usual::Choices => vec![ScorerSpec::of(ScorerKind::Likelihood)],
            Usual::Numbers => {
                let mut final_ = ScorerSpec::of(ScorerKind::Final);
                final_.0.texts = Some(true);
                vec![final_]
            }
            Usual::Mixed => {
                let mut final_ = ScorerSpec::of(ScorerKind::Final);
                (final_.0.texts, final_.0.plain) = (Some(true), Some(true));
                let contains = Usual::Texts.scorers(chat).pop();
                [final_].into_iter().chain(contains).collect()
            }
            Usual::Texts => {
                let mut exact = ScorerSpec::of(ScorerKind::Exact);
                let mut contains = ScorerSpec::of(ScorerKind::Contains);
                for spec in [&mut exact, &mut contains] {
                    spec.0.ignore_case = Some(true);
                    spec.0.ignore_punctuation = Some(true);
                }
                vec![exact, contains]
            }
        }
    }
}

impl Configured {
    /// Reads a task and checks every question.
    pub(super) fn new(values: &OptionValues, host: &dyn Host) -> Result<Self, OptionError> {
        let configured = Self::read(values, host)?;
        configured.passed.check(configured.rows.as_ref(), configured.skip)?;
        Ok(configured)
    }

    /// Reads a task; questions that cannot be asked are counted.
    pub(super) fn read(values: &OptionValues, host: &dyn Host) -> Result<Self, OptionError> {
        let Some(path) = values.path("file") else {
            return Err(OptionError::usage("task needs a file of questions").help(USAGE));
        };
        let skip = values.has("skip-bad-rows");
        let source::Opened { definition, rows, folder, file } = source::open(path, skip, host)?;
        let prompt = match &values.prompts[..] {
            [] => None,
            [one] => Some(one.clone()),
            _ => {
                return Err(OptionError::usage("a task is asked with one prompt at a time")
                    .help("name one with the setting `prompt`"));
            }
        };
        let chosen = definition.prompt(prompt.as_deref())?;
        let reader = RowReader::new(&Sources::of(&definition, &chosen), host).map_err(|unusable| match unusable {
            Unusable::Text(wrong) => in_file(file.as_ref(), &wrong.text, &wrong.reason),
            Unusable::Limit(limit) => in_file(file.as_ref(), "", &limit.to_string()).help(LIMITS),
        })?;
        let mode = chosen.mode;
        let scorer = values.text("profile")?.map(str::to_owned);
        let examples = match &definition.examples {
            None => Vec::new(),
            Some(wanted) => examples::rows(wanted, &folder, rows.as_ref(), values.seed, host)?,
        };
        let name = source::name_of(path);
        let setting = Setting { name, prompt, chat: mode != Some(PromptMode::Raw), framed: true, scorer, examples };
        let mut configured = Configured {
            definition,
            passed: Arc::default(),
            setting,
            reader: Arc::new(reader),
            skip,
            usual: None,
            kinds: Kinds::default(),
            file,
            rows,
            programs: host.programs(None),
        };
        configured.settle()?;
        let task = configured.task(configured.setting.chat)?;
        let passed = Passed::over(&task, configured.rows.as_ref());
        configured.passed = Arc::new(passed.map_err(|limit| configured.limited(&limit))?);
        Ok(configured)
    }

    /// Settles scorers that the task file leaves open, by all answers: numbers, texts, both or choices.
    fn settle(&mut self) -> Result<(), OptionError> {
        if !self.definition.scorers.is_empty() {
            return Ok(());
        }
        let kind = |taken: Taken| -> Kinds {
            let parts = taken.parts;
            if parts.answer.is_none() && parts.solution.is_none() {
                return Kinds::default();
            }
            if parts.choices.is_some() {
                return Kinds { choices: 1, ..Kinds::default() };
            }
            let answer = match (&parts.answer, &parts.solution) {
                (Some(answer), _) => super::columns::text(answer).unwrap_or_default(),
                (None, solution) => solution.clone().unwrap_or_default(),
            };
            let none = Kinds::default();
            match () {
                () if super::gold::says_number(&answer) => Kinds { numbers: 1, ..none },
                () if super::gold::counts_something(&answer) => Kinds { counts: 1, ..none },
                () => Kinds { texts: 1, ..none },
            }
        };
        let of = |numbers: &[usize]| -> Result<Kinds, LimitReached> {
            let mut kinds = Kinds::default();
            self.reader.each(self.rows.as_ref(), numbers.iter().copied(), Wanted::Parts, |_, found| {
                if let Ok((_, Ok(taken))) = found {
                    kinds = kinds.with(kind(taken));
                }
            })?;
            Ok(kinds)
        };
        let over = |rows: std::ops::Range<usize>| -> Result<Kinds, OptionError> {
            let numbers: Vec<usize> = rows.collect();
            let kinds = numbers.par_chunks(BATCH).map(of).try_reduce(Kinds::default, |a, b| Ok(a.with(b)));
            kinds.map_err(|limit| self.limited(&limit))
        };
        let (count, first) = (self.rows.len(), self.rows.len().min(GIVEN_UP));
        let mut kinds = over(0..first)?;
        // A file without an answer so far is given up by the pass over its rows.
        if kinds.choices + kinds.numbers + kinds.counts + kinds.texts > 0 {
            kinds = kinds.with(over(first..count)?);
        }
        self.usual = Some(kinds.usual());
        self.kinds = kinds;
        Ok(())
    }

    /// Kinds of the answers, which chose the scorers; none if the task file names them.
    pub(super) fn chosen_for(&self) -> Option<String> {
        self.usual.map(|_| self.kinds.words())
    }

    /// The task for one form of prompts.
    pub(super) fn task(&self, chat: bool) -> Result<Task, OptionError> {
        let mut definition = self.definition.clone();
        if let Some(usual) = self.usual {
            definition.scorers = usual.scorers(chat);
            // A number can be asked for as a text, and the other way round.
            if let Some(scorer) = &self.setting.scorer
                && let Some(kind) = ScorerKind::ALL.into_iter().find(|kind| kind.name() == scorer)
                && !definition.scorers.iter().any(|spec| spec.0.kind.as_deref() == Some(kind.name()))
                && matches!(
                    kind,
                    ScorerKind::Final
                        | ScorerKind::Exact
                        | ScorerKind::Contains
                        | ScorerKind::Choice
                        | ScorerKind::Likelihood
                )
            {
                definition.scorers = vec![ScorerSpec::of(kind)];
            }
        }
        let setting = Setting { chat, ..self.setting.clone() };
        let task = Task::new(definition, &setting, Arc::clone(&self.reader));
        task.map_err(|wrong| in_file(self.file.as_ref(), &wrong.text, &wrong.reason))
    }

    /// The error of a limit that the templates reach.
    pub(super) fn limited(&self, limit: &LimitReached) -> OptionError {
        in_file(self.file.as_ref(), self.reader.only_template.as_deref().unwrap_or_default(), &limit.to_string())
            .help(LIMITS)
    }
}

/// Help for a limit that was reached.
const LIMITS: &str = "docs/security.md lists the limits of templates";

/// An error with its place in the task file, if there is one.
fn in_file(file: Option<&(String, PathBuf)>, text: &str, reason: &str) -> OptionError {
    OptionError::usage(match file {
        Some((file, path)) => format!("{}{}: {reason}", path.display(), keys::place_of(file, text)),
        None => reason.to_owned(),
    })
}

impl Choice for Configured {
    fn suite(&self, channel: Channel) -> Result<Suite, OptionError> {
        let chat = channel.mode == Mode::Chat;
        let task = self.task(chat)?;
        if task.runs_programs() {
            // Better now than after the first hour.
            self.programs.start()?;
        }
        Ok(Suite::new(TaskSuite {
            task,
            rows: Arc::clone(&self.rows),
            passed: Arc::clone(&self.passed),
            setting: Setting { chat, ..self.setting.clone() },
            skip: self.skip,
            programs: Arc::clone(&self.programs),
            unread: OnceLock::new(),
        }))
    }

    fn mode(&self) -> Option<Mode> {
        let prompt = self.definition.prompt(self.setting.prompt.as_deref()).ok()?;
        let likelihood = self.definition.scorers.iter().any(|spec| {
            let kind = spec.0.kind.as_deref().unwrap_or_default();
            ScorerKind::ALL.into_iter().any(|known| known.name() == kind && known.is_likelihood())
        });
        match prompt.mode {
            // Likelihoods are of texts to continue, as in the lm-evaluation-harness.
            None if likelihood => Some(Mode::Raw),
            mode => mode.and_then(PromptMode::mode),
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = left_out(self.rows.as_ref(), &self.passed);
        if let texts @ 1.. = self.passed.texts {
            let all = self.passed.order.len();
            let (are, they) = if texts == 1 {
                ("is not a number", "it is compared as text")
            } else {
                ("are not numbers", "they are compared as texts")
            };
            notes.push(format!("{texts} of {} {are}; {they}", counted(all, "answer")));
        }
        notes
    }
}

/// Folder of a file.
pub(super) fn folder_of(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}
