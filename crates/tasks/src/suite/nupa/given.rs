//! Questions of a file instead of drawn ones: lines with task and operands, or the file of the authors' text data set.
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::options::{Lengths, NupaOptions, QuestionFile};
use super::order::in_order;
use super::suite::answerable;
use super::{NupaError, Question, TASKS, TaskId, prompt, reference_answer};
use crate::suite::dnc::records;
use crate::suite::registry::{DATA_VARIABLE, Host, OptionError};

/// Reason for a question of the file not being asked.
#[derive(Debug, thiserror::Error)]
enum GivenError {
    #[error(transparent)]
    Question(#[from] NupaError),
    #[error("the answer is {given:?}, but {right} is right")]
    WrongAnswer { given: String, right: String },
    #[error("`{column}` is {value}; numbers are written as texts, e.g. \"1.50\"")]
    NotText { column: &'static str, value: Value },
}

/// A question of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Asked {
    task: TaskId,
    length: usize,
    /// The operands spelt out, with `#2`, `#3` ... where the file repeats a question.
    id: String,
}

/// Reads the questions of `path` into the options, whose tasks, lengths and number for each length choose among them. Without
/// `tasks`, the tasks are those of the file; without `per_length`, all questions are taken.
///
/// # Errors
/// If the file cannot be read, a question is impossible, an answer is not right, or nothing is chosen.
pub(super) fn read(
    options: &mut NupaOptions,
    path: &Path,
    tasks: bool,
    per_length: bool,
    host: &dyn Host,
) -> Result<(), OptionError> {
    let failed = |error: &dyn Display| OptionError::usage(format!("cannot read {}: {error}", path.display()));
    let bytes = host.read(path).map_err(|error| failed(&error))?;
    let place = host.absolute(path).map_err(|error| failed(&error))?;
    let asked = questions(&path.display().to_string(), &bytes)?;
    options.questions = Some(QuestionFile { place: place.display().to_string(), sha256: sha256(&bytes) });
    if !tasks {
        options.tasks = TASKS.into_iter().filter(|task| asked.iter().any(|one| one.task == *task)).collect();
    }
    if !per_length {
        options.per_length = usize::MAX;
    }
    let (given, longest) = chosen(&asked, options);
    if given.is_empty() {
        return Err(OptionError::usage(format!(
            "{} has no questions of the tasks and lengths that are asked for",
            path.display()
        )));
    }
    options.given = given;
    options.per_length = options.per_length.min(longest);
    Ok(())
}

/// Reads the questions of a stored run's options again, where they were or where [`DATA_VARIABLE`] says they are now.
///
/// # Errors
/// If there is no file with the same content.
pub(super) fn read_again(options: &mut NupaOptions, host: &dyn Host) -> Result<(), OptionError> {
    let Some(file) = options.questions.clone() else { return Ok(()) };
    let was = PathBuf::from(&file.place);
    let moved = host.moved().map(|now| match (host.is_folder(&now), was.file_name()) {
        (true, Some(name)) => now.join(name),
        _ => now,
    });
    for path in [Some(was), moved].into_iter().flatten() {
        let Ok(bytes) = host.read(&path) else { continue };
        if sha256(&bytes) == file.sha256 {
            options.given = chosen(&questions(&path.display().to_string(), &bytes)?, options).0;
            return Ok(());
        }
    }
    Err(OptionError::data(format!(
        "the questions of the run (SHA-256 {}...) are not in {}, or they were changed",
        file.sha256.get(..12).unwrap_or(&file.sha256),
        file.place
    ))
    .help(format!("set {DATA_VARIABLE} to the file, or its folder, that has them now")))
}

/// Ids of the chosen questions in an order of which any beginning is balanced, and the most of them in a task and length.
fn chosen(asked: &[Asked], options: &NupaOptions) -> (Vec<String>, usize) {
    let is_chosen = |task: TaskId, length: usize| match &options.lengths {
        Lengths::All => true,
        Lengths::Reference => task.in_reference_range(length),
        Lengths::Chosen(chosen) => chosen.contains(&length),
    };
    let mut cells: BTreeMap<TaskId, BTreeMap<usize, Vec<&str>>> = BTreeMap::new();
    for Asked { task, length, id } in asked {
        if options.tasks.contains(task) && is_chosen(*task, *length) {
            let cell = cells.entry(*task).or_default().entry(*length).or_default();
            if cell.len() < options.per_length {
                cell.push(id);
            }
        }
    }
    let most = cells.values().flat_map(BTreeMap::values).map(Vec::len).max().unwrap_or(0);
    let by_task: Vec<Vec<&str>> = options
        .tasks
        .iter()
        .filter_map(|task| Some((task, cells.get(task)?)))
        .map(|(task, cells)| {
            let lengths: Vec<usize> = cells.keys().copied().collect();
            let mut order = in_order(options.order, *task, &lengths);
            // The authors' file has a few questions beyond the task's longest.
            order.extend(lengths.iter().filter(|length| !order.contains(length)).copied().collect::<Vec<_>>());
            let round = |round: usize| order.iter().filter_map(move |length| cells[length].get(round).copied());
            (0..most).flat_map(round).collect()
        })
        .collect();
    let rounds = by_task.iter().map(Vec::len).max().unwrap_or(0);
    let ids = (0..rounds).flat_map(|round| by_task.iter().filter_map(move |ids| ids.get(round)));
    (ids.map(|id| (*id).to_owned()).collect(), most)
}

/// The questions of a file, each checked.
fn questions(name: &str, bytes: &[u8]) -> Result<Vec<Asked>, OptionError> {
    let mut asked = Vec::new();
    let mut repeats: HashMap<String, usize> = HashMap::new();
    let mut add = |task: TaskId, a: &str, b: Option<&str>, answer: Option<&str>| -> Result<(), GivenError> {
        let question = Question::from_operands(task, a, b)?;
        answerable(&question)?;
        if let Some(answer) = answer
            && answer != question.answer
            && reference_answer(task, a, b).as_deref() != Ok(answer)
        {
            return Err(GivenError::WrongAnswer { given: answer.to_owned(), right: question.answer });
        }
        let operands = b.map_or_else(|| a.to_owned(), |b| format!("{a},{b}"));
        let id = format!("{task}:{operands}");
        let count = repeats.entry(id.clone()).or_default();
        *count += 1;
        let id = if *count > 1 { format!("{id}#{count}") } else { id };
        asked.push(Asked { task, length: question.length, id });
        Ok(())
    };
    let refused = |place: &str, why: &dyn Display| OptionError::usage(format!("{name}, {place}: {why}"));
    if is_of_the_authors(bytes) {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let text = std::str::from_utf8(bytes)
            .map_err(|error| OptionError::usage(format!("{name}: byte {} is not UTF-8", error.valid_up_to() + 1)))?;
        let tasks: Pairs<Pairs<Vec<Text<'_>>>> =
            serde_json::from_str(text).map_err(|error| OptionError::usage(format!("{name}: {error}")))?;
        for (task_name, lengths) in tasks.0 {
            for (length, texts) in lengths.0 {
                for (number, Text(line)) in texts.iter().enumerate() {
                    let place = || match line_of(text, line) {
                        Some(line) => format!("line {line}"),
                        None => format!("{task_name}, length {length}, text {}", number + 1),
                    };
                    let task: TaskId = task_name.parse().map_err(|error| refused(&place(), &error))?;
                    let Some((a, b, answer)) = prompt::operands(task, line) else {
                        let why = format!("{line:?} is not a question of {task} with its answer");
                        return Err(refused(&place(), &why));
                    };
                    add(task, a, b, Some(answer.trim())).map_err(|why| refused(&place(), &why))?;
                }
            }
        }
    } else {
        for record in records(bytes).map_err(|error| OptionError::usage(format!("{name}: {error}")))?.into_rows() {
            let row = record.value.map_err(|error| refused(&record.place, &error))?;
            let row = row.as_object().ok_or_else(|| refused(&record.place, &"it is not a JSON object"))?;
            let number = |column: &'static str| column_of(row, column).map_err(|why| refused(&record.place, &why));
            let task = number("task")?.ok_or_else(|| refused(&record.place, &"it has no `task`"))?;
            let task: TaskId = task.parse().map_err(|error| refused(&record.place, &error))?;
            let a = number("a")?.ok_or_else(|| refused(&record.place, &"it has no `a`, the first operand"))?;
            let (b, answer) = (number("b")?, number("answer")?);
            add(task, &a, b.as_deref(), answer.as_deref()).map_err(|why| refused(&record.place, &why))?;
        }
    }
    if asked.is_empty() {
        return Err(OptionError::usage(format!("{name} has no questions")));
    }
    Ok(asked)
}

/// A column with a number, as text; none where it is missing or null.
fn column_of<'a>(row: &'a Map<String, Value>, name: &'static str) -> Result<Option<Cow<'a, str>>, GivenError> {
    match row.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.into())),
        Some(Value::Number(number)) if number.is_u64() => Ok(Some(number.to_string().into())),
        Some(other) => Err(GivenError::NotText { column: name, value: other.clone() }),
    }
}

/// True for an object of objects: the authors' data set is `{"<task>": {"<length>": ["<question> = <answer>", ...]}}`.
fn is_of_the_authors(bytes: &[u8]) -> bool {
    let mut opened = bytes.split(|byte| *byte == b'{');
    let before = opened.next().unwrap_or_default();
    let blank = |bytes: &[u8]| bytes.trim_ascii().is_empty();
    let is_first = blank(before.strip_prefix(b"\xef\xbb\xbf").unwrap_or(before));
    let key = opened.next().unwrap_or_default().trim_ascii();
    let is_one_key = key.ends_with(b":") && key.iter().filter(|byte| **byte == b'"').count() == 2;
    is_first && is_one_key && opened.next().is_some()
}

/// Number of the line in which a part of the text stands; none for a copy.
fn line_of(text: &str, part: &str) -> Option<usize> {
    let offset = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    Some(text.as_bytes().get(..offset)?.iter().filter(|byte| **byte == b'\n').count() + 1)
}

/// A text that is not copied unless it has escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Members of a JSON object in their order.
struct Pairs<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = Pairs<T>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object: tasks, in them lengths, in them a list of questions with their answers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Pairs<T>, A::Error> {
                let mut found = Vec::new();
                while let Some(member) = members.next_entry()? {
                    found.push(member);
                }
                Ok(Pairs(found))
            }
        }

        deserializer.deserialize_map(Members(PhantomData))
    }
}

fn sha256(bytes: &[u8]) -> String {
    earnest_digest::hex(&earnest_digest::sha256(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::registry::{BuiltIn, Channel, HostError, Mode, OptionValues};
    use crate::suite::{Item, Suite};

    /// A host with one file.
    struct One(String);

    impl Host for One {
        fn read(&self, _: &Path) -> Result<Vec<u8>, HostError> {
            Ok(self.0.clone().into_bytes())
        }

        fn absolute(&self, path: &Path) -> Result<PathBuf, HostError> {
            Ok(Path::new("/data").join(path))
        }
    }

    fn suite(text: &str, change: &[(&str, &str)]) -> Result<Suite, OptionError> {
        let values = OptionValues::new(1, Vec::new()).with("questions", "q.json");
        let values = change.iter().fold(values, |values, (name, value)| values.with(name, *value));
        let choice = super::super::Registration.configure(&values, &One(text.to_owned()))?;
        choice.suite(Channel::local(Mode::Raw))
    }

    fn refused(text: &str) -> String {
        suite(text, &[]).map(|suite| suite.items.len()).unwrap_err().message
    }

    const LINES: &str = r#"{"task": "add_Integer_Integer_Integer", "a": "744", "b": "543", "answer": "1287", "index": 3}
{"task": "add_Integer", "a": 5, "b": "6", "answer": null}

{"task": "to_float_Fraction_none_Float", "a": "1/8", "b": null}
{"task": "add_Integer", "a": "744", "b": "543"}
"#;

    const AUTHORS: &str = r#"{
  "add_Integer_Integer_Integer": {
    "3": [
      "Directly return the answer as an integer without any comma separator, like 123 . Add two numbers: 744 + 543 = 1287",
      "Directly return the answer as an integer without any comma separator, like 123 . Add two numbers: 100 + 200 = 300"
    ]
  },
  "sig_Integer_int_ScientificNotation": {
    "5": [
      "Directly return the answer as a scientific notation without any comma separator, like 1.23e4 . The float part should be in the range [1, 10). Convert the number to scientific notation: 15501 and keep significant figures as 2 = 1.5e4"
    ]
  }
}"#;

    #[test]
    fn lines_of_operands_are_asked_and_found_again() {
        let own = suite(LINES, &[]).unwrap();
        let items: Vec<Item> = own.items.iter().collect();
        let ids: Vec<&str> = items.iter().map(|item| item.id.as_str()).collect();
        let add = "add_Integer_Integer_Integer";
        let expected = [
            format!("{add}:744,543"),
            "to_float_Fraction_none_Float:1/8".to_owned(),
            format!("{add}:5,6"),
            format!("{add}:744,543#2"),
        ];
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        let mut wanted: Vec<&str> = expected.iter().map(String::as_str).collect();
        wanted.sort_unstable();
        assert_eq!(sorted, wanted);
        assert_ne!(items[0].task, items[1].task, "tasks take turns");
        let repeated = items.iter().find(|item| item.id.ends_with("#2")).unwrap();
        assert_eq!((repeated.cluster.as_str(), repeated.gold.as_str()), (expected[0].as_str(), "1287"));
        assert_eq!(own.items.len(), 4);
        let options = own.scoring.options();
        assert_eq!(options["questions"]["place"], "/data/q.json");
        assert_eq!((&options["per_length"], options.get("given")), (&2.into(), None));
        let again = super::super::Registration.stored(&options, &One(LINES.to_owned())).unwrap();
        assert!(again.items.iter().eq(items));
        let changed = super::super::Registration.stored(&options, &One(LINES.replace('5', "6"))).map(|_| ());
        assert!(changed.unwrap_err().message.contains("were changed"));
    }

    #[test]
    fn the_authors_file_is_read_with_its_own_answers() {
        let own = suite(AUTHORS, &[]).unwrap();
        let items: Vec<Item> = own.items.iter().collect();
        assert_eq!(items.iter().map(|item| item.gold.as_str()).collect::<Vec<_>>(), ["1287", "1.6e4", "300"]);
        assert_eq!(items[1].covariates["reference_gold"], "1.5e4");
        assert_eq!(suite(AUTHORS, &[("tasks", "sig_Integer")]).unwrap().items.len(), 1);
        assert_eq!(suite(AUTHORS, &[("lengths", "3"), ("per-length", "1")]).unwrap().items.len(), 1);
        assert!(suite(AUTHORS, &[("tasks", "mod_Integer")]).is_err());
    }

    #[test]
    fn mistakes_name_file_and_line() {
        for (text, said) in [
            (LINES.replace("\"6\"", "\"x\""), "q.json, line 2: "),
            (LINES.replace("1287", "1288"), "q.json, line 1: the answer is \"1288\", but 1287 is right"),
            (LINES.replace("\"a\": \"1/8\"", "\"a\": 1.5"), "q.json, line 4: `a` is 1.5; numbers are written as texts"),
            (LINES.replace("\"task\": \"to", "\"kind\": \"to"), "q.json, line 4: it has no `task`"),
            (AUTHORS.replace("= 300", "= 301"), "q.json, line 5: the answer is \"301\""),
            (AUTHORS.replace("Add two numbers: 100", "Add numbers: 100"), "q.json, line 5: \"Directly"),
            (AUTHORS.replace("sig_Integer_int", "sig_Natural_int"), "q.json, line 10: there is no NUPA task"),
            ("{}".to_owned(), "q.json, "),
            (String::new(), "q.json: it has no rows"),
        ] {
            let found = refused(&text);
            assert!(found.starts_with(said), "{found}\nexpected {said}");
        }
    }
}
