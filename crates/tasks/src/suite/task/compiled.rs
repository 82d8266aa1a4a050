//! A task ready to make items: the task file with everything settled that it leaves open.
use std::sync::Arc;

use serde_json::{Map, Value};

use super::choice::CHOICES;
use super::choices::{Choices, letter};
use super::columns::{NoText, Parts, Problem, text};
use super::definition::Definition;
use super::reader::{RowReader, Taken, Wanted};
use super::row_id::row_id;
use super::scorer::{Method, Scorer};
use super::scorer_spec::Scored;
use super::usual;
use super::wrong::Wrong;
use crate::nearest;
use crate::suite::registry::Row;
use crate::suite::{Budget, Item, Segments, Shot};

/// Budgets where the task file has none.
const BUDGET: Budget = Budget { answer: 512, thinking: 16_384 };

/// Question asked of base models where there is no template, and what their answers must not go on with.
const RAW_QUESTION: &str = "Question: ";
const RAW_ANSWER: &str = "Answer:";
const RAW_STOP: &str = "\nQuestion:";

/// Ends of a sentence, and what may stand after them.
const SENTENCE_ENDS: [char; 6] = ['.', '?', '!', '\u{3002}', '\u{ff1f}', '\u{ff01}'];
const CLOSING: [char; 6] = ['"', '\'', ')', ']', '\u{201d}', '\u{2019}'];
/// End of a question whose answer is the rest of its line.
const EQUALS: char = '=';

/// Sentence after the choices of a conversation.
const CHOOSE: &str = "Answer with the letter of the right choice.";

/// Settings beside the task file that determine its items.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Setting {
    /// Name where the file has none.
    pub name: String,
    /// Name of the prompt.
    pub prompt: Option<String>,
    pub chat: bool,
    /// Base models get sentences as questions to be answered, and answers end where the next question would begin.
    pub framed: bool,
    /// Scorer that decides, if another one than the file's.
    pub scorer: Option<String>,
    /// Rows of the examples, one more than are shown where the item itself may be among them.
    pub examples: Vec<Map<String, Value>>,
}

/// A task that makes items of rows.
pub(super) struct Task {
    pub name: String,
    pub version: String,
    pub scorers: Vec<Scorer>,
    /// Scorer that decides; none for perplexities.
    pub chosen: Option<String>,
    /// Scorer that decides by the file.
    pub usual: Option<String>,
    /// Text between prompt and continuation.
    pub delimiter: String,
    /// Base models get questions without a template in the program's frame.
    pub framed: bool,
    definition: Definition,
    chat: bool,
    pub reader: Arc<RowReader>,
    /// Examples with the questions by which an item knows that it is one itself.
    shots: Vec<(String, Shot)>,
}

/// The scorers of a task, and those that decide.
pub(super) struct Scorers {
    pub scorers: Vec<Scorer>,
    /// Scorer that decides by the file.
    pub usual: Option<String>,
    /// Scorer that decides; none for perplexities.
    pub chosen: Option<String>,
}

impl Scorers {
    /// Compiles the scorers of a task file; `scorer` names the one that decides, if another one than the file's.
    ///
    /// # Errors
    /// The text of the task file that is wrong, and the reason.
    pub(super) fn of(definition: &Definition, scorer: Option<&String>) -> Result<Self, Wrong> {
        let scorers = definition.scorers.iter().map(Scorer::new).collect::<Result<Vec<_>, _>>()?;
        let names: Vec<&str> = scorers.iter().flat_map(Scorer::names).collect();
        check(&scorers, &names)?;
        let named = |name: &String| match names.contains(&name.as_str()) {
            true => Ok(name.clone()),
            false => {
                let reason = format!("there is no scorer {name}; there are {}", names.join(", "));
                Err(Wrong::new(name.as_str(), reason))
            }
        };
        let first = names.first().map(|name| (*name).to_owned());
        let usual = definition.chosen.as_ref().map(named).transpose()?.or(first);
        let chosen = scorer.map(named).transpose()?.or(usual.clone());
        Ok(Scorers { scorers, usual, chosen })
    }
}

/// An item with what its id was made of.
pub(super) struct Made {
    pub item: Item,
    /// The id is a digest of the question, which another row may have too.
    pub digest: bool,
    /// The expected answer is no number where most are, and compared as a text.
    pub text: bool,
    /// The row says to which cluster the item belongs.
    pub labelled: bool,
}

impl Task {
    /// Compiles a task that takes rows apart with this reader. Its scorers must be settled.
    ///
    /// # Errors
    /// The text of the task file that is wrong, and the reason.
    pub(super) fn new(definition: Definition, setting: &Setting, reader: Arc<RowReader>) -> Result<Self, Wrong> {
        let Scorers { scorers, usual, chosen } = Scorers::of(&definition, setting.scorer.as_ref())?;
        let delimiter = scorers.iter().find_map(|scorer| match &scorer.method {
            Method::Likelihood { delimiter, .. } | Method::Perplexity { delimiter } => Some(delimiter.clone()),
            _ => None,
        });
        let blank = || if setting.chat { String::new() } else { " ".to_owned() };
        // Examples have their own frame, and continuations are scored after what the user wrote.
        let framed = setting.framed
            && !setting.chat
            && !reader.has_question()
            && definition.examples.is_none()
            && !scorers.iter().any(Scorer::is_likelihood);
        let mut task = Task {
            name: definition.name.clone().unwrap_or_else(|| setting.name.clone()),
            version: definition.version.clone().unwrap_or_else(|| "1".to_owned()),
            delimiter: delimiter.flatten().unwrap_or_else(blank),
            scorers,
            chosen,
            usual,
            framed,
            chat: setting.chat,
            reader,
            shots: Vec::new(),
            definition,
        };
        task.collect_shots(&setting.examples)?;
        Ok(task)
    }

    /// Makes the examples of rows, each question once; rows that cannot be examples are passed over while there are enough.
    fn collect_shots(&mut self, rows: &[Map<String, Value>]) -> Result<(), Wrong> {
        // Without rows only the names of its scores are wanted.
        let Some(examples) = self.definition.examples.as_ref().filter(|_| !rows.is_empty()) else { return Ok(()) };
        let wanted = examples.count.unwrap_or(rows.len());
        let mut refused = None;
        let example = |(index, row): (usize, &Map<String, Value>)| Row {
            place: format!("example {}", index + 1),
            values: row.clone(),
            ..Row::default()
        };
        let rows: Vec<Row> = rows.iter().enumerate().map(example).collect();
        let taken = self.reader.take(rows.iter(), Wanted::Example);
        let taken = taken.map_err(|limit| Wrong::new(self.reader.only_template.clone().unwrap_or_default(), limit))?;
        for (row, taken) in rows.iter().zip(taken) {
            match taken.and_then(|taken| self.shot(&row.values, taken)) {
                Ok((key, _)) if self.shots.iter().any(|(known, _)| *known == key) => {}
                Ok(shot) => self.shots.push(shot),
                Err(problem) => {
                    refused.get_or_insert(format!("{}: {problem}", row.place));
                }
            }
            // One more than wanted, because an item is not its own example.
            if self.shots.len() > wanted {
                break;
            }
        }
        if self.shots.len() >= wanted {
            return Ok(());
        }
        let found = self.shots.len();
        let few = || {
            format!("[examples] asks for {wanted}, and there are {found} different questions among the rows for them")
        };
        Err(Wrong::new("", refused.unwrap_or_else(few)))
    }

    /// The task file.
    pub(super) fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Examples that an item has.
    pub(super) fn shown(&self) -> usize {
        let examples = self.definition.examples.as_ref();
        examples.map_or(0, |examples| examples.count.unwrap_or(self.shots.len()))
    }

    /// The item of a row that was taken apart for one.
    ///
    /// # Errors
    /// The part that is missing or wrong.
    pub(super) fn item(&self, row: &Row, taken: Taken) -> Result<Made, Problem> {
        let Taken { parts, question, system, .. } = taken;
        let row = &row.values;
        let right = self.right(&parts)?;
        let asked = self.asked(row, &parts, question)?;
        let expected = self.expected(row, &parts, right, &asked)?;
        let own = parts.id.as_ref().filter(|id| !id.trim().is_empty());
        if parts.id.is_some() && own.is_none() {
            return Err(Problem::new("id", NoText::Empty));
        }
        let id = own.cloned().unwrap_or_else(|| row_id(parts.question.as_deref().unwrap_or(&asked).trim()));
        let system = match system {
            Some(text) => Some(text?),
            None => parts.system.clone(),
        };
        let own_question = parts.question.as_deref().unwrap_or(&asked);
        let others = self.shots.iter().filter(|(question, _)| question != own_question);
        let shots: Vec<Shot> = others.take(self.shown()).map(|(_, shot)| shot.clone()).collect();
        let raw = (!self.chat).then(|| self.raw(system.as_deref(), &shots, &asked));
        let generation = &self.definition.generation;
        let usual_stop = match &raw {
            Some(raw) if !self.reader.has_question() && raw.ends_with(RAW_ANSWER) => vec![RAW_STOP.to_owned()],
            Some(raw) if self.framed && raw.trim_end().ends_with(EQUALS) => vec!["\n".to_owned()],
            _ => Vec::new(),
        };
        let original = parts.pair.map(|pair| pair.trim().to_owned()).filter(|pair| !usual::is_missing(pair));
        if let Some(original) = original.as_ref().filter(|original| **original == id) {
            let message =
                format!("the row names itself ({original}) as its original; leave that empty for an original");
            return Err(Problem { part: "pair", message });
        }
        let mut covariates = parts.covariates;
        covariates.extend(original.map(|pair| (usual::PAIR.to_owned(), Value::from(pair))));
        if let Some(choices) = parts.choices.as_ref().filter(|_| self.needs_choices()) {
            covariates.insert(CHOICES.to_owned(), choices.texts.clone().into());
        }
        let labelled = parts.cluster.is_some();
        let item = Item {
            cluster: parts.cluster.unwrap_or_else(|| id.clone()),
            id,
            task: parts.task.unwrap_or_else(|| self.name.clone()),
            covariates,
            continuations: self.continuations(parts.choices.as_ref(), &expected),
            gold: expected,
            // Prompts side by side ask the same question.
            segments: Segments {
                unmasked: parts.question.filter(|question| *question != asked),
                system,
                shots,
                question: asked,
                raw,
                thinking: None,
                mode: None,
            },
            budget: Budget {
                answer: generation.max_tokens.unwrap_or(BUDGET.answer),
                thinking: generation.thinking_tokens.unwrap_or(BUDGET.thinking),
            },
            stop_strings: generation.stop.clone().unwrap_or(usual_stop),
            keep_stop: false,
        };
        let as_text = |scorer: &Scorer| scorer.takes_texts() && scorer.number(&item.gold, "").is_none();
        let text = self.scorers.iter().any(as_text);
        Ok(Made { digest: own.is_none(), text, labelled, item })
    }

    fn needs_choices(&self) -> bool {
        self.scorers.iter().any(Scorer::needs_choices)
    }

    /// True if the choices are scored by their letters.
    fn by_letter(&self) -> bool {
        self.scorers.iter().any(|scorer| match scorer.method {
            Method::Choice => true,
            Method::Likelihood { of, .. } => of == Scored::Letter,
            _ => false,
        })
    }

    /// Index of the right choice; none for a task without choices.
    fn right(&self, parts: &Parts) -> Result<Option<usize>, Problem> {
        if !self.needs_choices() {
            return Ok(None);
        }
        let Some(choices) = &parts.choices else {
            return Err(Problem::new("choices", "there are none"));
        };
        let answer = parts.answer.as_ref().ok_or_else(no_answer)?;
        choices.right(answer, self.reader.gold).map(Some).map_err(|error| Problem::new("answer", error))
    }

    /// The expected answer in the form that the scorers compare with.
    fn expected(
        &self,
        row: &Map<String, Value>,
        parts: &Parts,
        right: Option<usize>,
        asked: &str,
    ) -> Result<String, Problem> {
        if let (Some(index), Some(choices)) = (right, &parts.choices) {
            return Ok(if self.by_letter() { letter(index) } else { choices.texts[index].clone() });
        }
        let answer = match (&parts.answer, &parts.solution) {
            (Some(answer), _) => text(answer).map_err(|reason| Problem::new("answer", reason))?,
            (None, Some(solution)) => solution.clone(),
            (None, None) => return Err(none_of("answer", &usual::ANSWER, row)),
        };
        if answer.trim().is_empty() {
            return Err(no_answer());
        }
        let chosen = self.scorers.iter().find(|scorer| Some(&scorer.name) == self.usual.as_ref());
        let Some(chosen) = chosen.filter(|chosen| chosen.needs_number()) else { return Ok(answer) };
        match chosen.number(&answer, parts.question.as_deref().unwrap_or(asked)) {
            Some(number) => Ok(number),
            None if chosen.takes_texts() => Ok(answer),
            None => {
                let shown: String = answer.chars().take(60).collect();
                Err(Problem { part: "answer", message: format!("no number can be read from {shown:?}") })
            }
        }
    }

    fn continuations(&self, choices: Option<&Choices>, expected: &str) -> Vec<String> {
        let with = |text: &str| format!("{}{text}", self.delimiter);
        match self.scorers.first().map(|scorer| &scorer.method) {
            Some(Method::Perplexity { .. }) => vec![with(expected)],
            Some(Method::Likelihood { of, .. }) => {
                let texts = choices.map_or(&[][..], |choices| &choices.texts);
                let part = |(index, text): (usize, &String)| match of {
                    Scored::Text => with(text),
                    Scored::Letter => with(&letter(index)),
                };
                texts.iter().enumerate().map(part).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Text of a question by the template, or by the usual one.
    fn asked(
        &self,
        row: &Map<String, Value>,
        parts: &Parts,
        templated: Option<Result<String, Problem>>,
    ) -> Result<String, Problem> {
        if let Some(text) = templated {
            return text;
        }
        let question = match &parts.question {
            Some(question) if !question.trim().is_empty() => question.as_str(),
            None if self.scorers.iter().all(|scorer| matches!(scorer.method, Method::Perplexity { .. })) => {
                return Ok(String::new());
            }
            Some(_) => return Err(Problem::new("question", NoText::Empty)),
            None => {
                return Err(none_of("question", &usual::QUESTION, row));
            }
        };
        let options = parts.choices.as_ref().filter(|_| self.by_letter()).map(Choices::lettered);
        Ok(match (self.chat, options) {
            (true, None) => question.to_owned(),
            (true, Some(options)) => format!("{question}\n\n{options}\n\n{CHOOSE}"),
            // Nothing is put around a question that the user wrote for base models: one that they can continue, or that has a frame.
            (false, None) if self.definition.examples.is_none() && !(self.framed && is_sentence(question)) => {
                question.to_owned()
            }
            (false, None) => format!("{RAW_QUESTION}{question}\n{RAW_ANSWER}"),
            (false, Some(options)) => format!("{RAW_QUESTION}{question}\n{options}\n{RAW_ANSWER}"),
        })
    }

    /// An example of a row that was taken apart for one, and its question.
    fn shot(&self, row: &Map<String, Value>, taken: Taken) -> Result<(String, Shot), Problem> {
        let Taken { parts, question, answer, .. } = taken;
        let answer = match answer {
            Some(text) => text?,
            None if self.needs_choices() => self.expected(row, &parts, self.right(&parts)?, "")?,
            None => {
                let answer = parts.answer.as_ref().map(text).or_else(|| parts.solution.clone().map(Ok));
                let answer = answer.ok_or_else(no_answer)?;
                answer.map_err(|reason| Problem::new("answer", reason))?
            }
        };
        // A turn of a conversation has no space in front, which a text to continue needs.
        let answer = if self.chat { answer.trim().to_owned() } else { answer };
        let asked = self.asked(row, &parts, question)?;
        Ok((parts.question.unwrap_or_else(|| asked.clone()), Shot { question: asked, answer }))
    }

    /// Text of a raw prompt: system message, examples and question.
    fn raw(&self, system: Option<&str>, shots: &[Shot], asked: &str) -> String {
        let separator = self.definition.examples.as_ref().and_then(|examples| examples.separator.as_deref());
        let separator = separator.unwrap_or("\n\n");
        let joint = |question: &str| if question.ends_with(char::is_whitespace) { "" } else { " " };
        let shots = shots.iter().map(|shot| format!("{}{}{}", shot.question, joint(&shot.question), shot.answer));
        let pieces: Vec<String> =
            system.map(str::to_owned).into_iter().chain(shots).chain([asked.to_owned()]).collect();
        pieces.join(separator)
    }

    /// True if it runs programs that models write.
    pub(super) fn runs_programs(&self) -> bool {
        self.scorers.iter().any(|scorer| matches!(scorer.method, Method::Python { .. }))
    }
}

/// True for a question that ends as a sentence does, so that a base model would continue with anything but the answer, and that has no
/// frame of its own.
fn is_sentence(question: &str) -> bool {
    let own_frame = ["Question:", "Q:"].iter().any(|frame| question.trim_start().starts_with(frame));
    !own_frame && question.trim_end().trim_end_matches(CLOSING).ends_with(SENTENCE_ENDS)
}

fn no_answer() -> Problem {
    Problem { part: "answer", message: "there is none".to_owned() }
}

/// The problem of a row without a column of any of the usual names, with the column that may be meant.
fn none_of(part: &'static str, usual: &[&str], row: &Map<String, Value>) -> Problem {
    // A column that is there and has nothing in it is not a slip of its name.
    if let Some(empty) = usual.iter().find(|name| row.contains_key(**name)) {
        return Problem { part, message: format!("the column {empty} has none") };
    }
    let columns = row.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let near = row.keys().find_map(|column| Some((column, nearest(column, usual.iter().copied())?)));
    // A blank beside a name is seen in quotes only.
    let shown = |column: &str| {
        let plain = column.chars().all(|c| c.is_alphanumeric() || c.is_ascii_punctuation());
        if plain { column.to_owned() } else { format!("{column:?}") }
    };
    let meant = near.map_or_else(String::new, |(column, name)| format!("; is {} meant to be {name}?", shown(column)));
    Problem { part, message: format!("there is none; the columns are {columns}{meant}") }
}

/// Checks scorers against each other.
fn check(scorers: &[Scorer], names: &[&str]) -> Result<(), Wrong> {
    for (index, name) in names.iter().enumerate() {
        if names[..index].contains(name) {
            let message = format!("two scorers have the name {name}; give one of them another name");
            return Err(Wrong::new(*name, message));
        }
    }
    let (scored, generated): (Vec<&Scorer>, Vec<&Scorer>) = scorers.iter().partition(|scorer| scorer.is_likelihood());
    if let ([one, ..], [other, ..]) = (&scored[..], &generated[..]) {
        let message = format!(
            "{} scores given texts and {} what the model writes; one task can do one of them",
            one.name, other.name
        );
        return Err(Wrong::new(one.name.as_str(), message));
    }
    if scored.len() > 1 {
        let message = "likelihood and perplexity cannot be scored in one task";
        return Err(Wrong::new(scored[1].name.as_str(), message));
    }
    Ok(())
}
