//! Arguments about other tools' logs.
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use super::args::ResultsArgs;
use earnest_logs::{FindOptions, TableColumns};

/// `earnest import PATH…`, which the command line turns into `import-logs`.
#[derive(Debug, Args)]
#[command(
    override_usage = "earnest import <PATH>... [OPTIONS]",
    after_help = "Examples:
  earnest import lm-eval-results                      every model and task in the folder
  earnest import logs/*.eval --scorer match --cluster template
  earnest import batch_output.jsonl batch_input.jsonl --answers answers.csv
  earnest import scores.csv --columns id=question_id,question=text,score=acc --task gsm --model-name my-model
  earnest import variants.csv --columns id=id,score=right,task=kind,pair=original --model-name my-model

Recognised by content: lm-evaluation-harness (samples with their results), Inspect (.eval, .json), lighteval (details and results), \
OpenAI batch files with their requests, the exports of earnest (jsonl, parquet, csv, lm-eval), and plain tables with --columns. \
A log that was imported before is skipped. Exit code 1: --keep-going left something out."
)]
pub struct ImportLogsArgs {
    /// Files and folders of logs; folders with everything in them
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,

    /// Scorer that decides, of those of the log, e.g. exact_match,flexible-extract; a metric or filter alone is enough where it
    /// is the only one [default: the tool's first]
    #[arg(long = "scorer", alias = "primary", value_name = "NAME")]
    pub chosen: Option<String>,

    /// Field of the documents whose equal values make a cluster of items that are not independent, e.g. template [default:
    /// cluster, where they have it]
    #[arg(long, value_name = "FIELD")]
    pub cluster: Option<String>,

    /// Expected answers for logs without scores: a file (CSV, JSON lines, Parquet) with id (or custom_id) and answer; the
    /// completions are scored by `final`
    #[arg(long, value_name = "FILE")]
    pub answers: Option<PathBuf>,

    #[command(flatten)]
    pub columns: ColumnsArgs,

    /// Name of the task where a log does not say it
    #[arg(long, value_name = "NAME")]
    pub task: Option<String>,

    /// Name of the model where a log does not say it
    #[arg(long, value_name = "NAME")]
    pub model_name: Option<String>,

    /// Leave out what cannot be read, and list it
    #[arg(long)]
    pub keep_going: bool,

    #[command(flatten)]
    pub results: ResultsArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

impl ImportLogsArgs {
    /// Settings of the search.
    pub fn find(&self) -> FindOptions {
        FindOptions {
            columns: self.columns.table(),
            model: self.model_name.clone(),
            task: self.task.clone(),
            keep_going: self.keep_going,
            ..FindOptions::default()
        }
    }
}

/// `--columns`.
#[derive(Debug, Clone, Default, Args)]
pub struct ColumnsArgs {
    /// Columns of a plain table (CSV, Parquet), e.g. id=question_id,question=text,score=acc,score=f1; known: id, question,
    /// prompt, completion, score, answer, target, model, task, epoch, error, pair (id of the original that a row is a variant of,
    /// empty for an original). Other columns are fields of the documents
    #[arg(long, value_name = "NAME=COLUMN,...", value_delimiter = ',')]
    columns: Vec<Column>,
}

impl ColumnsArgs {
    /// The columns; none if the option is not given.
    pub fn table(&self) -> Option<TableColumns> {
        if self.columns.is_empty() {
            return None;
        }
        let mut table = TableColumns::default();
        for Column { part, name } in self.columns.iter().cloned() {
            match part {
                Part::Score => table.scores.push(name),
                Part::Id => table.id = Some(name),
                Part::Question => table.question = Some(name),
                Part::Prompt => table.prompt = Some(name),
                Part::Completion => table.completion = Some(name),
                Part::Answer => table.answer = Some(name),
                Part::Target => table.target = Some(name),
                Part::Model => table.model = Some(name),
                Part::Task => table.task = Some(name),
                Part::Epoch => table.epoch = Some(name),
                Part::Error => table.error = Some(name),
                Part::Pair => table.pair = Some(name),
            }
        }
        Some(table)
    }
}

/// A column of a plain table and its meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    part: Part,
    name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Id,
    Question,
    Prompt,
    Completion,
    Score,
    Answer,
    Target,
    Model,
    Task,
    Epoch,
    Error,
    Pair,
}

const PARTS: [(&str, Part); 12] = [
    ("id", Part::Id),
    ("question", Part::Question),
    ("prompt", Part::Prompt),
    ("completion", Part::Completion),
    ("score", Part::Score),
    ("answer", Part::Answer),
    ("target", Part::Target),
    ("model", Part::Model),
    ("task", Part::Task),
    ("epoch", Part::Epoch),
    ("error", Part::Error),
    ("pair", Part::Pair),
];

impl FromStr for Column {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || PARTS.map(|(name, _)| name).join(", ");
        let Some((part, column)) = text.split_once('=') else {
            return Err(format!("'{text}' is not NAME=COLUMN, e.g. score=acc"));
        };
        let column = column.trim().to_owned();
        match PARTS.iter().find(|(name, _)| *name == part.trim()) {
            Some((_, part)) if !column.is_empty() => Ok(Column { part: *part, name: column }),
            Some(_) => Err(format!("'{text}' names no column")),
            None => Err(format!("a table has no {}; the names are {}", part.trim(), names())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_named_by_their_meaning() {
        let columns = |text: &str| text.split(',').map(str::parse).collect::<Result<Vec<Column>, _>>();
        let found = ColumnsArgs { columns: columns("id=qid,score=acc,score=f1,epoch=run").unwrap() }.table().unwrap();
        assert_eq!((found.id.as_deref(), found.epoch.as_deref()), (Some("qid"), Some("run")));
        assert_eq!((found.scores.as_slice(), found.question), (&["acc".to_owned(), "f1".to_owned()][..], None));
        assert_eq!(ColumnsArgs::default().table(), None);
        for wrong in ["id", "id=", "points=x"] {
            assert!(columns(wrong).is_err(), "{wrong}");
        }
    }
}
