//! Prompt and completion pairs in a file of rows: every format and every usual column that a run of questions reads.
use std::path::Path;

use earnest_tasks::suite::registry::{ErrorKind, OptionError, Row, RowSource};
use earnest_tasks::suite::task::usual;

use crate::{TextPair, TrainError};

/// Field names given by the user; `None` for the usual names.
pub(super) struct PairFields<'a> {
    pub(super) prompt: Option<&'a str>,
    pub(super) completion: Option<&'a str>,
}

/// Reason why a row is not a pair.
#[derive(Debug, thiserror::Error)]
enum RowError {
    #[error("the field {0} is neither a text nor a number")]
    Type(String),
    #[error("there is no field {0}")]
    Missing(String),
    #[error("none of the fields {} is present; name the field to use", .0.join(", "))]
    NoDefault(Vec<&'static str>),
    #[error("prompt and completion must not be empty")]
    Empty,
}

/// Most bytes of all pairs, which are held in memory.
const MOST_PAIRS: usize = 4 << 30;

/// Reads the pairs of a file, in order.
///
/// # Errors
/// [`TrainError::Pairs`] with the file, and with the first row that is not a pair.
pub(super) fn read(path: &Path, fields: &PairFields<'_>) -> Result<Vec<TextPair>, TrainError> {
    let source = RowSource { paths: vec![path.to_owned()], ..RowSource::default() };
    let rows = earnest_rows::read(&source).map_err(|mut error| {
        // Rows that are skipped would be missed in a training, which has no such setting.
        if error.kind == ErrorKind::BadRows {
            error.help = Some("mend or delete the rows, and start again".to_owned());
        }
        TrainError::Pairs(error)
    })?;
    let invalid = |problem: String| TrainError::Pairs(OptionError::usage(problem));
    let (mut pairs, mut bytes) = (Vec::with_capacity(rows.len()), 0);
    for number in 0..rows.len() {
        let row = rows.row(number).map_err(|error| invalid(error.to_string()))?;
        let pair = pair(&row, fields).map_err(|error| invalid(format!("{}: {error}", row.place)))?;
        bytes += pair.prompt.len() + pair.answer.len();
        if bytes > MOST_PAIRS {
            return Err(invalid(format!("{}: its pairs have more than {} GiB", path.display(), MOST_PAIRS >> 30)));
        }
        pairs.push(pair);
    }
    Ok(pairs)
}

fn pair(row: &Row, fields: &PairFields<'_>) -> Result<TextPair, RowError> {
    let completions = std::iter::once(usual::COMPLETION).chain(usual::ANSWER).chain(usual::SOLUTION);
    let prompt = field(row, fields.prompt, &usual::QUESTION)?;
    let answer = field(row, fields.completion, &completions.chain([usual::RESPONSE]).collect::<Vec<_>>())?;
    // A question needs the passage that stands in a column of its own.
    let passage = match fields.prompt {
        None => usual::BODY.iter().find_map(|name| row.text(name)),
        Some(_) => None,
    };
    let prompt = match passage {
        Some(passage) => usual::asked(Some(&passage), &prompt),
        None => prompt,
    };
    if prompt.is_empty() || answer.is_empty() {
        return Err(RowError::Empty);
    }
    Ok(TextPair { prompt, answer })
}

/// Returns the named field, or the first usual one of the row that has a value, as text; numbers as they are written.
fn field(row: &Row, named: Option<&str>, usual: &[&'static str]) -> Result<String, RowError> {
    let is_present = |name: &&str| row.values.get(*name).is_some_and(|value| !value.is_null());
    let name = match named {
        Some(name) if row.values.contains_key(name) => name,
        Some(name) => return Err(RowError::Missing(name.to_owned())),
        None => match usual.iter().copied().find(is_present) {
            Some(name) => name,
            None => return Err(RowError::NoDefault(usual.to_vec())),
        },
    };
    row.text(name).map(|text| text.into_owned()).ok_or_else(|| RowError::Type(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use earnest_results::suites::LocalHost;
    use earnest_tasks::suite::registry::{BuiltIn, Channel, Mode, OptionValues};
    use earnest_tasks::suite::task::Registration;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn rows(text: &str, fields: &PairFields<'_>) -> Result<Vec<TextPair>, String> {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("pairs.jsonl");
        std::fs::write(&path, text).unwrap();
        read(&path, fields).map_err(|error| error.to_string())
    }

    const DEFAULTS: PairFields<'_> = PairFields { prompt: None, completion: None };

    #[test]
    fn default_names_are_found_and_passages_come_first() {
        let text = "{\"prompt\": \"1+1=\", \"completion\": \"2\"}\n\n\
                    {\"Body\": \"Tom has 5 pens.\", \"Question\": \"How many?\", \"Answer\": 5.0, \"dnc\": {}}\n";
        let found = rows(text, &DEFAULTS).unwrap();
        assert_eq!(found[0], TextPair { prompt: "1+1=".into(), answer: "2".into() });
        assert_eq!(found[1], TextPair { prompt: "Tom has 5 pens. How many?".into(), answer: "5.0".into() });
        let fields = PairFields { prompt: Some("Body"), completion: Some("Question") };
        let named = rows(text.lines().last().unwrap(), &fields).unwrap();
        assert_eq!(named[0].answer, "How many?");
    }

    #[test]
    fn rows_that_are_not_pairs_are_named() {
        for (text, why) in [
            ("", "the file is empty"),
            ("{\"prompt\": \"a\"}", "line 1: none of the fields completion"),
            ("{\"prompt\": \"a\", \"completion\": \"b\"}\n[1]", "line 2"),
            ("{\"prompt\": \"a\", \"completion\": [1]}", "neither a text nor a number"),
            ("{\"prompt\": \"\", \"completion\": \"b\"}", "must not be empty"),
        ] {
            let failed = rows(text, &DEFAULTS).unwrap_err();
            assert!(failed.contains(why), "{failed}");
        }
        let failed = rows("{\"prompt\": \"a\"}", &PairFields { prompt: Some("ask"), completion: None }).unwrap_err();
        assert!(failed.contains("no field ask"), "{failed}");
    }

    /// The questions and answers of a file as a run asks them.
    fn asked(path: &Path) -> Result<Vec<TextPair>, OptionError> {
        let values = OptionValues::new(1, Vec::new()).with("file", path);
        let channel = Channel::local(Mode::Chat);
        let suite = Registration.configure(&values, &LocalHost::default()).and_then(|choice| choice.suite(channel))?;
        Ok(suite.items.iter().map(|item| TextPair { prompt: item.segments.question, answer: item.gold }).collect())
    }

    #[test]
    fn files_that_a_run_reads_are_read_and_files_that_it_refuses_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(b"question,answer\n1+1=?,2\n").unwrap();
        let readable = [
            file("a.jsonl", b"{\"Question\": \"1+1=?\", \"target\": 2}\n\n{\"problem\": \"2+2=?\", \"gold\": \"4\"}\n"),
            file("b.json", b"[{\"context\": \"Tom has 5 pens.\", \"query\": \"How many?\", \"expected\": 5}]"),
            file("c.csv", b"id,prompt,label\n1,\"3,5 or 4?\",4\n2,1+2=?,3\n"),
            file("d.tsv", b"input\toutput\n1+1=?\t2\n"),
            file("e.csv.gz", &packer.finish().unwrap()),
        ];
        for path in readable {
            let pairs = read(&path, &DEFAULTS).unwrap();
            assert_eq!(pairs, asked(&path).unwrap(), "{}", path.display());
        }
        let refused = [
            file("a.txt", b"{\"question\": \"1+1=?\", \"answer\": 2}\n"),
            file("b.csv", b"question;answer\n1+1=?;2\n"),
            file("c.csv", b"question,answer\n1+1=?,2,3\n"),
            file("d.jsonl", b"{\"question\": \"1+1=?\", \"answer\": 2\n"),
            file("e.parquet", b"PAR1"),
            file("f.jsonl", b""),
        ];
        for path in refused {
            let TrainError::Pairs(error) = read(&path, &DEFAULTS).unwrap_err() else { panic!("{}", path.display()) };
            let of_a_run = asked(&path).unwrap_err();
            assert_eq!((error.kind, error.message), (of_a_run.kind, of_a_run.message));
        }
    }
}
