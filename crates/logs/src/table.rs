//! Plain tables, whose columns the user names.
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use earnest_tasks::suite::registry::Row;
use earnest_tasks::suite::task::usual;
use earnest_tasks::{agreeing, counted};
use serde_json::{Map, Value};

use super::fault::LogFault;
use super::json::is_not_finite;
use super::limits::{MOST_LOGS, check_copies};
use super::log::{FindOptions, Log, TableColumns};
use super::rows::{RowsFile, Source};
use super::sample::{LogPrompt, LogSample, LogScore};
use crate::LogError;
use earnest_results::{LogCard, LogStatus, Tool};

/// The task of a table that names none.
const TASK: &str = "table";

impl TableColumns {
    /// Names of all columns that have a meaning.
    fn named(&self) -> impl Iterator<Item = &str> {
        let single = [
            &self.id,
            &self.question,
            &self.prompt,
            &self.completion,
            &self.answer,
            &self.target,
            &self.model,
            &self.task,
            &self.epoch,
            &self.error,
            &self.pair,
        ];
        single.into_iter().flatten().chain(&self.scores).map(String::as_str)
    }
}

/// A column's text; none where the cell is empty or missing.
fn cell(row: &Row, column: Option<&str>) -> Option<String> {
    row.text(column?).filter(|text| !text.is_empty()).map(std::borrow::Cow::into_owned)
}

/// The logs of a table: one for each model and task.
pub(super) fn logs(path: &Path, format: &str, options: &FindOptions) -> Result<Vec<Log>, LogError> {
    let Some(columns) = &options.columns else {
        return Err(LogError::unread(path, "it is a table whose columns are not named")
            .hint("name them: the setting `columns = id=...,completion=...,score=...`"));
    };
    if columns.id.is_none() && columns.question.is_none() {
        return Err(LogError::setting("the columns have neither an id nor a question, so that nothing can be paired")
            .hint("name one: the setting `columns = id=...` or the setting `columns = question=...`"));
    }
    let file = RowsFile::read(path, format, options)?;
    let mut groups: BTreeMap<(String, String), Group> = BTreeMap::new();
    let mut ids: HashSet<String> = HashSet::new();
    let mut variants: HashSet<String> = HashSet::new();
    let mut first_epoch: Option<i64> = None;
    let mut names: Option<Vec<String>> = None;
    file.each(&mut |number, row| {
        // Rows of JSON have the columns that they have; those of a table have all.
        let known = names.get_or_insert_with(|| row.values.keys().cloned().collect());
        if number == 0
            && let Some(missing) = columns.named().find(|name| !row.values.contains_key(*name))
        {
            let message = format!("there is no column `{missing}`; there are {}", known.join(", "));
            return Err(LogError::unread(path, message));
        }
        let model = cell(&row, columns.model.as_deref()).or_else(|| options.model.clone());
        let Some(model) = model else {
            return Err(file
                .error(&row, "it does not say which model it is of")
                .hint("name the model: the setting `model_name = NAME`, or its column"));
        };
        let task = cell(&row, columns.task.as_deref()).or_else(|| options.task.clone());
        let log = (model, task.unwrap_or_else(|| TASK.to_owned()));
        if groups.len() == MOST_LOGS && !groups.contains_key(&log) {
            let reason = format!("it is of another model or task, and a table may have {MOST_LOGS} models and tasks");
            return Err(file.error(&row, reason));
        }
        let group = groups.entry(log).or_default();
        group.rows.push(number);
        if columns.pair.is_some() {
            let (own, named) = (id(&row, columns), original(&row, columns));
            variants.extend(own.clone().filter(|_| named.is_some()));
            ids.extend(own);
            group.originals.extend(named);
        }
        if let Some(epoch) = cell(&row, columns.epoch.as_deref()) {
            let epoch =
                epoch.parse::<i64>().map_err(|_| file.error(&row, format!("the repeat {epoch} is no whole number")))?;
            first_epoch = Some(first_epoch.map_or(epoch, |first| first.min(epoch)));
        }
        Ok(())
    })?;
    let log = |(index, ((model, task), group)): (usize, ((String, String), Group))| {
        let Group { rows, originals } = group;
        let mut card = LogCard::new(Tool::Table, model, task, LogStatus::Unknown);
        card.notes.extend(columns.pair.as_deref().and_then(|pair| not_there(pair, &originals, &ids)));
        card.notes.extend(columns.pair.as_deref().and_then(|pair| variants_of_variants(pair, &originals, &variants)));
        card.files = vec![path.to_owned()];
        card.scorers.clone_from(&columns.scores);
        let columns = columns.clone();
        let read = move |row: &Row, _: &LogCard| sample(row, &columns, first_epoch.unwrap_or(0));
        let count_repeats = options.columns.as_ref().is_some_and(|columns| columns.epoch.is_none());
        let meanings = options.columns.as_ref().and_then(|columns| columns.pair.as_deref());
        let meanings = meanings.map_or_else(String::new, |pair| format!("pair={pair}"));
        let source =
            Source { file: file.clone(), rows, read: Box::new(read), count_repeats, meanings, first: index == 0 };
        Log { card, source: Box::new(source), keep_going: options.keep_going }
    };
    Ok(groups.into_iter().enumerate().map(log).collect())
}

/// Rows of a model and task.
#[derive(Default)]
struct Group {
    /// Indices of the rows.
    rows: Vec<u32>,
    /// Originals that they name, in their order.
    originals: Vec<String>,
}

/// Id of a row, without spaces around it; without one, its question.
fn id(row: &Row, columns: &TableColumns) -> Option<String> {
    trimmed(row, columns.id.as_deref()).or_else(|| cell(row, columns.question.as_deref()))
}

/// Id of the original that a row names; none for an original.
fn original(row: &Row, columns: &TableColumns) -> Option<String> {
    trimmed(row, columns.pair.as_deref()).filter(|name| !usual::is_missing(name))
}

/// A cell without spaces around it, which tables of other programs pad their columns with.
fn trimmed(row: &Row, column: Option<&str>) -> Option<String> {
    cell(row, column).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Says how many rows name an original that the table does not have.
fn not_there(column: &str, originals: &[String], ids: &HashSet<String>) -> Option<String> {
    let missing: Vec<&String> = originals.iter().filter(|name| !ids.contains(*name)).collect();
    let first = missing.first()?;
    let count = missing.len();
    Some(format!(
        "of {} with an original in `{column}`, {count} {} one that is no id of the table (the first: {first}); they are compared where \
         the other run has it",
        counted(originals.len(), "row"),
        agreeing(count, "names", "name")
    ))
}

/// Says how many rows name an original that names another one.
fn variants_of_variants(column: &str, originals: &[String], variants: &HashSet<String>) -> Option<String> {
    let named: Vec<&String> = originals.iter().filter(|name| variants.contains(*name)).collect();
    let first = named.first()?;
    Some(format!(
        "of {} with an original in `{column}`, {} {} one that is a variant itself (the first: {first}); nothing is compared with it: name the \
         original of both",
        counted(originals.len(), "row"),
        named.len(),
        agreeing(named.len(), "names", "name")
    ))
}

fn sample(row: &Row, columns: &TableColumns, first_epoch: i64) -> Result<LogSample, LogFault> {
    let cell = |column: &Option<String>| cell(row, column.as_deref());
    let question = cell(&columns.question);
    let Some(id) = id(row, columns) else {
        return Err(LogFault::NoQuestion);
    };
    let original = match (&columns.pair, original(row, columns)) {
        (Some(column), Some(original)) if original == id => {
            return Err(LogFault::OwnOriginal { id, column: column.clone() });
        }
        (Some(_), original) => Some(original.unwrap_or_else(|| id.clone())),
        (None, _) => None,
    };
    let answer = cell(&columns.answer);
    let error = cell(&columns.error);
    check_copies("the answer", answer.as_ref().map_or(0, String::len), columns.scores.len())?;
    let mut scores = Vec::new();
    for column in &columns.scores {
        let Some(value) = score(row, column)? else { continue };
        scores.push(LogScore { scorer: column.clone(), value, answer: answer.clone(), explanation: None });
    }
    // An empty completion is one, unless the row says that there is none.
    let text = columns.completion.as_ref().and_then(|column| row.text(column)).map(std::borrow::Cow::into_owned);
    let completion = text.filter(|text| !text.is_empty() || error.is_none());
    let epoch = cell(&columns.epoch).and_then(|epoch| epoch.parse::<i64>().ok()).map_or(0, |epoch| epoch - first_epoch);
    let named: Vec<&str> = columns.named().collect();
    let own = |(name, value): (&String, &Value)| {
        (!named.contains(&name.as_str()) && !value.is_null()).then(|| (name.clone(), value.clone()))
    };
    Ok(LogSample {
        id,
        original,
        epoch: u32::try_from(epoch).map_err(|_| LogFault::Epoch(epoch))?,
        document: row.values.iter().filter_map(own).collect::<Map<_, _>>(),
        question,
        prompt: cell(&columns.prompt).map(LogPrompt::Text),
        targets: cell(&columns.target).into_iter().collect(),
        completions: completion.into_iter().collect(),
        scores,
        error,
        ..LogSample::default()
    })
}

/// A score: a number, a truth value, or a grade as text; none where the cell is empty.
fn score(row: &Row, column: &str) -> Result<Option<Value>, LogFault> {
    let no_mean = |value: String| LogFault::NoMean { scorer: column.to_owned(), value };
    let value = match row.values.get(column) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => {
            let text = text.trim();
            match (text.to_ascii_lowercase().as_str(), text.parse::<f64>()) {
                ("", _) => return Ok(None),
                ("true", _) => Value::Bool(true),
                ("false", _) => Value::Bool(false),
                (_, Ok(number)) if !number.is_finite() => {
                    return Err(no_mean(text.to_owned()));
                }
                (_, Ok(number)) => serde_json::from_str(text).unwrap_or_else(|_| number.into()),
                (_, Err(_)) => text.into(),
            }
        }
        Some(value) => value.clone(),
    };
    match is_not_finite(&value) {
        true => Err(no_mean(value.to_string())),
        false => Ok(Some(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> FindOptions {
        let name = |name: &str| Some(name.to_owned());
        let columns = TableColumns {
            id: name("q"),
            completion: name("text"),
            scores: vec!["right".into(), "f1".into()],
            model: name("model"),
            error: name("error"),
            ..TableColumns::default()
        };
        FindOptions { columns: Some(columns), ..FindOptions::default() }
    }

    fn read(text: &str, options: &FindOptions) -> Result<Vec<(LogCard, Vec<LogSample>)>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.csv");
        std::fs::write(&path, text).unwrap();
        let logs = logs(&path, "csv", options).map_err(|error| error.to_string())?;
        let mut all = Vec::new();
        for log in logs {
            let mut samples = Vec::new();
            log.samples(&mut |sample| {
                samples.push(sample);
                Ok(())
            })
            .map_err(|error| error.to_string())?;
            all.push((log.card, samples));
        }
        Ok(all)
    }

    #[test]
    fn a_table_is_a_log_for_each_model() {
        let text = "q,model,text,right,f1,error,topic\n1,b,x,true,0.5,,t\n1,a,,1,,,\n1,b,\"y,z\",False,1e-3,,t\n2,b,,,,broke,\n";
        let logs = read(text, &options()).unwrap();
        assert_eq!(logs.len(), 2);
        let (card, samples) = &logs[1];
        assert_eq!((card.model.as_str(), card.task.as_str(), card.scorers.len()), ("b", "table", 2));
        let scores = |sample: &LogSample| sample.scores.iter().map(|score| score.number().unwrap()).collect::<Vec<_>>();
        assert_eq!(samples.iter().map(scores).collect::<Vec<_>>(), [vec![1.0, 0.5], vec![0.0, 0.001], vec![]]);
        assert_eq!(
            samples.iter().map(|sample| (sample.id.as_str(), sample.epoch)).collect::<Vec<_>>(),
            [("1", 0), ("1", 1), ("2", 0)]
        );
        assert_eq!(samples[0].document["topic"], "t");
        assert_eq!((samples[2].error.as_deref(), samples[2].completions.len()), (Some("broke"), 0));
        assert_eq!(logs[0].1[0].completions, [""]);
    }

    #[test]
    fn rows_name_their_originals() {
        let mut options = options();
        let columns = options.columns.as_mut().unwrap();
        (columns.scores, columns.error, columns.pair) = (vec!["right".into()], None, Some("of".into()));
        let text = "q,model,text,right,of\n1,a,,1,\n1v,a,,0,1\n2v,a,,0,2\n3,a,,1,NA\n1,b,,1,\n1v,b,,1,1\n";
        let logs = read(text, &options).unwrap();
        let originals = |(_, samples): &(LogCard, Vec<LogSample>)| {
            samples.iter().map(|sample| sample.original.clone().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(logs.iter().map(originals).collect::<Vec<_>>(), [vec!["1", "1", "2", "3"], vec!["1", "1"]]);
        assert!(!logs[0].1[1].document.contains_key("of"));
        assert_eq!(
            logs[0].0.notes,
            [
                "of 2 rows with an original in `of`, 1 names one that is no id of the table (the first: 2); they are compared where the \
              other run has it"
            ]
        );
        assert!(logs[1].0.notes.is_empty());
        // Columns that are padded to a width.
        let padded = read("q,model,text,right,of\n1   ,a,,1,\n1v  ,a,,0,1  \n", &options).unwrap();
        assert_eq!((originals(&padded[0]), padded[0].0.notes.len()), (vec!["1".to_owned(), "1".to_owned()], 0));
        let chain = read("q,model,text,right,of\n1,a,,1,\n1v,a,,0,1\n1vv,a,,0,1v\n", &options).unwrap();
        assert!(
            chain[0].0.notes[0].contains("1 names one that is a variant itself (the first: 1v)"),
            "{:?}",
            chain[0].0.notes
        );
        let itself = read("q,model,text,right,of\n1,a,,1,\n2,a,,1,2\n", &options).unwrap_err();
        assert!(itself.contains("line 3: the row names itself (2) as its original in `of`"), "{itself}");
    }

    #[test]
    fn tables_that_cannot_be_read_are_refused_with_the_row() {
        let error = |text: &str| read(text, &options()).unwrap_err();
        assert!(error("q,model,text,right,f1,error\n1,a,x,nan,1,\n").contains("line 2: the score right is nan"));
        assert!(error("q,model,text,right,error\n1,a,x,1,\n").contains("there is no column `f1`"));
        assert!(error("q,model,text,right,f1,error\n1,,x,1,1,\n").contains("line 2: it does not say which model"));
    }
}
