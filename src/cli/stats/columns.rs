//! Columns of rows by name, decoded and checked field by field.
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;

use earnest_tasks::suite::registry::OptionError;
use earnest_tasks::suite::task::usual::is_missing;
use thiserror::Error;

use super::source::{EachRow, Source};
use crate::cli::error::CliError;
use crate::cli::values::counted;

/// Maximum number of levels of a factor; more usually mean a wrong column or a malformed number.
const MAX_LEVELS: usize = 64;

/// Failure to read columns.
#[derive(Debug, Error)]
pub enum ColumnError {
    /// The file cannot be opened.
    #[error("cannot open {}: {source}", path.display())]
    Open { path: PathBuf, source: io::Error },
    /// The file is not CSV.
    #[error("cannot read {}: {source}", path.display())]
    Csv { path: PathBuf, source: csv::Error },
    /// The rows of a file of another format cannot be read.
    #[error("{0}")]
    Rows(OptionError),
    /// The file has no header line.
    #[error("{} is empty: expected a first line with column names", path.display())]
    Empty { path: PathBuf },
    /// A column does not exist.
    #[error("{from} has no column `{name}`; its columns are: {present}")]
    Missing { from: String, name: String, present: String },
    /// Two columns have the same name.
    #[error("{from} has more than one column `{name}`")]
    Ambiguous { from: String, name: String },
    /// A field has the wrong type.
    #[error("{place}: column `{column}` is `{field}`, expected {expected}")]
    Field { place: String, column: String, field: String, expected: String },
    /// A factor has too many levels.
    #[error(
        "{place}: column `{column}` has more than {MAX_LEVELS} different labels, from `{first}` to `{field}`; a fixed effect \
         needs numbers or few labels; use --group for groups"
    )]
    TooManyLevels { place: String, column: String, first: String, field: String },
    /// A stored run cannot be read.
    #[error("{}", .0.message)]
    Run(Box<CliError>),
    /// A run is named twice.
    #[error("--run names {run} twice")]
    Twice { run: String },
    /// Columns hold nothing in the rows asked for.
    #[error(
        "{} {} of {from} {} no value in {rows}; leave {} out, or fill in the values",
        if columns.len() == 1 { "column" } else { "columns" },
        quoted(columns),
        if columns.len() == 1 { "has" } else { "have" },
        if columns.len() == 1 { "it" } else { "them" }
    )]
    NoValues { from: String, columns: Vec<String>, rows: String },
    /// Every row lacks a value in some column.
    #[error(
        "no row of {from} has a value in every column: {missing} of {rows}; leave out a column, or fill in the values"
    )]
    NoCompleteRow { from: String, missing: String, rows: String },
    /// There are no rows.
    #[error("no rows to fit or compare: {reason}")]
    NoRows { reason: String },
    /// Stored runs have no rows.
    #[error("{from} has no samples yet")]
    NoSamples { from: String },
    /// A name is ambiguous between kinds of columns.
    #[error("`{name}` is a {first} and a {second} of the samples; use {first}_{name} or {second}_{name}")]
    Alike { name: String, first: &'static str, second: &'static str },
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A finite number.
    Number,
    /// 0 or 1, `true` or `false`.
    Binary,
    /// Any text; encoded as the index of its first appearance.
    Label,
    /// Labels of clusters; a row without one is a cluster of its own.
    Cluster,
    /// Texts by which rows are told apart; rows without one are alike.
    Key,
    /// Numbers or labels, decided by the first value; all others must be of the same kind.
    Either,
    /// Labels, at most [`MAX_LEVELS`] different ones.
    Factor,
}

/// Treatment of rows with missing values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// Drop the whole row.
    DropRow,
    /// Drop the value from its column only, so that columns may differ in length.
    DropValue,
}

/// Labels, counts and notes of the rows read.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Survey {
    /// Labels by index, for columns of labels.
    pub(super) labels: Vec<Vec<String>>,
    /// For columns of [`Kind::Either`]: true if they hold labels.
    pub(super) is_label: Vec<bool>,
    /// Rows that match `--where`.
    pub(super) rows: usize,
    /// Rows dropped for missing values.
    pub(super) dropped: usize,
    /// Missing values by column name.
    pub(super) missing: BTreeMap<String, usize>,
    /// Missing values that are NaN, by column name.
    pub(super) not_numbers: BTreeMap<String, usize>,
    /// Remarks on the source.
    pub(super) notes: Vec<String>,
}

impl Survey {
    /// Sentence on the rows without a label of this cluster column.
    pub(super) fn without_label(&self, column: &str) -> Option<String> {
        let count = self.missing.get(column).copied().filter(|count| *count > 0)?;
        let verbs = if count == 1 { "has no `" } else { "have no `" };
        let each = if count == 1 { "it is" } else { "each is" };
        Some(format!("{} {verbs}{column}`; {each} a cluster of its own", counted(count, "row")))
    }

    /// Names the columns of numbers with NaN in them: a program that could not compute a number wrote it, and left nothing out by choice.
    fn name_not_numbers(&mut self) {
        for (name, count) in &self.not_numbers {
            let (verb, it) = if *count == 1 { ("is", "it counts") } else { ("are", "they count") };
            let values = counted(*count, "value");
            self.notes.push(format!(
                "{values} of `{name}` {verb} NaN, no number: {it} as missing; see what wrote NaN, and put the number there or leave the cell empty"
            ));
        }
    }

    /// Remarks for the message of a failed fit: those on the source, and the rows left out.
    pub(super) fn remarks(&self) -> String {
        let lacking: Vec<String> = self.missing.iter().map(|(name, count)| format!("`{name}` lacks {count}")).collect();
        let left_out = (self.dropped > 0).then(|| {
            let were = if self.dropped == 1 { "was" } else { "were" };
            format!("{} of {} {were} left out: {}", self.dropped, counted(self.rows, "row"), lacking.join(", "))
        });
        self.notes.iter().chain(&left_out).map(|remark| format!(" ({remark})")).collect()
    }

    /// Checks that there are rows, that every wanted column has a value in one of them, and that a row is left if incomplete ones are
    /// dropped. `asked` is the condition on the rows, or empty.
    fn check(&self, from: &str, wanted: &[(&str, Kind)], asked: &str) -> Result<(), ColumnError> {
        if self.rows == 0 {
            let reason = match asked {
                "" => format!("{from} has column names and nothing below them"),
                asked => format!("no row has {asked} in {from}"),
            };
            return Err(ColumnError::NoRows { reason });
        }
        let rows = match asked {
            "" => counted(self.rows, "row"),
            asked => format!("{} with {asked}", counted(self.rows, "row")),
        };
        let from = from.to_owned();
        let lacking = |name: &str| self.missing.get(name).copied().unwrap_or(0);
        let mut empty: Vec<String> = Vec::new();
        for (name, _) in wanted.iter().filter(|(name, _)| lacking(name) == self.rows) {
            if !empty.iter().any(|known| known == name) {
                empty.push((*name).to_owned());
            }
        }
        if !empty.is_empty() {
            let is_nan = |name: &String| self.not_numbers.get(name).is_some_and(|count| *count == self.rows);
            let rows = if empty.iter().all(is_nan) { format!("{rows}, where all are NaN") } else { rows };
            return Err(ColumnError::NoValues { from, columns: empty, rows });
        }
        if self.dropped == self.rows {
            let counts: Vec<String> =
                self.missing.iter().map(|(name, count)| format!("`{name}` lacks {count}")).collect();
            return Err(ColumnError::NoCompleteRow { from, missing: counts.join(", "), rows });
        }
        Ok(())
    }
}

/// Columns in the requested order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Columns {
    /// Values; labels as indices.
    pub(super) values: Vec<Vec<f64>>,
    pub(super) survey: Survey,
}

impl Columns {
    /// Indices of a label column as group numbers.
    pub(super) fn groups(&self, column: usize) -> Vec<u64> {
        self.values[column].iter().map(|index| *index as u64).collect()
    }
}

/// Reads these columns in one pass.
pub(super) fn read(source: &Source<'_>, wanted: &[(&str, Kind)], missing: Missing) -> Result<Columns, ColumnError> {
    let mut values = vec![Vec::new(); wanted.len()];
    let survey = scan(source, wanted, missing, &mut |row| collect(&mut values, row))?;
    Ok(Columns { values, survey })
}

fn collect(values: &mut [Vec<f64>], row: &[f64]) {
    for (column, value) in values.iter_mut().zip(row).filter(|(_, value)| !value.is_nan()) {
        column.push(*value);
    }
}

/// Passes rows of values to `each` without keeping them; with [`Missing::DropValue`] a missing value is NaN.
pub(super) fn scan(
    source: &Source<'_>,
    wanted: &[(&str, Kind)],
    missing: Missing,
    each: &mut dyn FnMut(&[f64]),
) -> Result<Survey, ColumnError> {
    let conditions: Vec<&str> = source.only.iter().map(|pair| pair.value.as_str()).collect();
    let names: Vec<&str> =
        wanted.iter().map(|(name, _)| *name).chain(source.only.iter().map(|pair| pair.column.as_str())).collect();
    let mut notes = Vec::new();
    let mut survey = decode(wanted, &conditions, missing, each, |row| source.walk(&names, &mut notes, row))?;
    survey.notes = notes;
    survey.name_not_numbers();
    let asked: Vec<String> = source.only.iter().map(|pair| format!("{}={}", pair.column, pair.value)).collect();
    survey.check(&source.name(), wanted, &asked.join(" and "))?;
    Ok(survey)
}

fn decode(
    wanted: &[(&str, Kind)],
    conditions: &[&str],
    missing: Missing,
    each: &mut dyn FnMut(&[f64]),
    walk: impl FnOnce(&mut EachRow<'_>) -> Result<(), ColumnError>,
) -> Result<Survey, ColumnError> {
    let mut survey =
        Survey { labels: vec![Vec::new(); wanted.len()], is_label: vec![false; wanted.len()], ..Survey::default() };
    let mut decoders: Vec<Decoder<'_>> = wanted.iter().map(|(name, kind)| Decoder::new(name, *kind)).collect();
    let mut values = vec![f64::NAN; wanted.len()];
    walk(&mut |fields, place| {
        let (fields, checked) = fields.split_at(wanted.len());
        if checked.iter().zip(conditions).any(|(field, wanted)| field != wanted) {
            return Ok(());
        }
        survey.rows += 1;
        let mut complete = true;
        for (index, (field, (name, _))) in fields.iter().zip(wanted).enumerate() {
            if is_missing(field) && wanted[index].1 != Kind::Key {
                complete &= wanted[index].1 == Kind::Cluster;
                // A column may be wanted twice, as a group and as an effect.
                if !wanted[..index].iter().any(|(known, _)| known == name) {
                    *survey.missing.entry((*name).to_owned()).or_default() += 1;
                    if field.trim().eq_ignore_ascii_case("nan") {
                        *survey.not_numbers.entry((*name).to_owned()).or_default() += 1;
                    }
                }
            }
        }
        if !complete && missing == Missing::DropRow {
            survey.dropped += 1;
            return Ok(());
        }
        for ((value, field), decoder) in values.iter_mut().zip(fields).zip(&mut decoders) {
            *value = match is_missing(field) {
                true if decoder.kind == Kind::Key => decoder.label("", place)?,
                true => decoder.missing(),
                false => decoder.value(field, place)?,
            };
        }
        each(&values);
        Ok(())
    })?;
    for (index, decoder) in decoders.into_iter().enumerate() {
        survey.is_label[index] = decoder.is_label == Some(true);
        survey.labels[index] = decoder.labels;
        // Among labels it is a missing label, as pandas writes it.
        if decoder.is_label != Some(false) {
            survey.not_numbers.remove(wanted[index].0);
        }
    }
    Ok(survey)
}

/// Decoder of one column's fields.
struct Decoder<'w> {
    name: &'w str,
    kind: Kind,
    is_label: Option<bool>,
    index_of: HashMap<String, usize>,
    labels: Vec<String>,
}

impl<'w> Decoder<'w> {
    fn new(name: &'w str, kind: Kind) -> Self {
        let is_label = match kind {
            Kind::Number | Kind::Binary => Some(false),
            Kind::Label | Kind::Cluster | Kind::Key | Kind::Factor => Some(true),
            Kind::Either => None,
        };
        Decoder { name, kind, is_label, index_of: HashMap::new(), labels: Vec::new() }
    }

    /// Value of a missing field.
    fn missing(&mut self) -> f64 {
        if self.kind != Kind::Cluster {
            return f64::NAN;
        }
        self.labels.push(String::new());
        (self.labels.len() - 1) as f64
    }

    fn value(&mut self, field: &str, place: &dyn Fn() -> String) -> Result<f64, ColumnError> {
        let wrong = |expected: String| ColumnError::Field {
            place: place(),
            column: self.name.to_owned(),
            field: field.to_owned(),
            expected,
        };
        let number = || field.parse().ok().filter(|value: &f64| value.is_finite());
        match self.kind {
            Kind::Number => number().ok_or_else(|| wrong("a finite number".into())),
            Kind::Binary => binary(field).ok_or_else(|| wrong("0 or 1".into())),
            Kind::Label | Kind::Cluster | Kind::Key | Kind::Factor => self.label(field, place),
            Kind::Either => {
                let numeric = field.parse::<f64>().is_ok();
                let name = self.name;
                match (*self.is_label.get_or_insert(!numeric), numeric) {
                    (false, _) => number().ok_or_else(|| {
                        wrong(format!(
                            "a finite number as in earlier rows (`--factor {name}` treats all values as labels)"
                        ))
                    }),
                    (true, true) => Err(wrong(format!(
                        "a label as in earlier rows (`--factor {name}` treats numbers as labels too)"
                    ))),
                    (true, false) => self.label(field, place),
                }
            }
        }
    }

    fn label(&mut self, field: &str, place: &dyn Fn() -> String) -> Result<f64, ColumnError> {
        // Looked up before it is copied: most labels are repeats.
        if let Some(&index) = self.index_of.get(field) {
            return Ok(index as f64);
        }
        let index = self.labels.len();
        if !matches!(self.kind, Kind::Label | Kind::Cluster | Kind::Key) && index == MAX_LEVELS {
            return Err(ColumnError::TooManyLevels {
                place: place(),
                column: self.name.to_owned(),
                first: self.labels[0].clone(),
                field: field.to_owned(),
            });
        }
        self.index_of.insert(field.to_owned(), index);
        self.labels.push(field.to_owned());
        Ok(index as f64)
    }
}

fn binary(field: &str) -> Option<f64> {
    if field.eq_ignore_ascii_case("true") {
        return Some(1.0);
    }
    if field.eq_ignore_ascii_case("false") {
        return Some(0.0);
    }
    field.parse().ok().filter(|value| *value == 0.0 || *value == 1.0)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::source::walk_csv;
    use super::*;

    fn parse_where(
        text: &str,
        wanted: &[(&str, Kind)],
        missing: Missing,
        only: &[(&str, &str)],
    ) -> Result<Columns, String> {
        let mut values = vec![Vec::new(); wanted.len()];
        let names: Vec<&str> =
            wanted.iter().chain(&[]).map(|(name, _)| *name).chain(only.iter().map(|o| o.0)).collect();
        let conditions: Vec<&str> = only.iter().map(|(_, value)| *value).collect();
        let survey = decode(wanted, &conditions, missing, &mut |row| collect(&mut values, row), |each| {
            walk_csv(text.as_bytes(), Path::new("data.csv"), &names, each)
        });
        Ok(Columns { survey: survey.map_err(|error| error.to_string())?, values })
    }

    fn parse(text: &str, wanted: &[(&str, Kind)], missing: Missing) -> Result<Columns, String> {
        parse_where(text, wanted, missing, &[])
    }

    const WANTED: [(&str, Kind); 3] = [("correct", Kind::Binary), ("gamma", Kind::Number), ("id", Kind::Label)];

    #[test]
    fn columns_are_found_by_name_and_incomplete_rows_dropped() {
        let text = "\u{feff}id,extra,gamma,correct\na,1,0.5,1\nb,2,,0\n\"a\",3, -2e1 ,False\n,4,1,1\n";
        let found = parse(text, &WANTED, Missing::DropRow).unwrap();
        assert_eq!(found.values, [vec![1.0, 0.0], vec![0.5, -20.0], vec![0.0, 0.0]]);
        assert_eq!((found.survey.rows, found.survey.dropped), (4, 2));
        assert_eq!(found.survey.missing, BTreeMap::from([("gamma".to_owned(), 1), ("id".to_owned(), 1)]));
        assert_eq!(found.survey.labels[2], ["a"]);
        let ragged = parse(text, &[("gamma", Kind::Number)], Missing::DropValue).unwrap();
        assert_eq!((ragged.values[0].len(), ragged.survey.dropped), (3, 0));
        let some = parse_where(text, &WANTED[..1], Missing::DropRow, &[("id", "a")]).unwrap();
        assert_eq!((some.values[0].as_slice(), some.survey.rows), ([1.0, 0.0].as_slice(), 2));
    }

    #[test]
    fn a_row_without_a_cluster_is_its_own_and_a_row_without_a_value_is_dropped() {
        let wanted = [("right", Kind::Binary), ("t", Kind::Cluster)];
        let found = parse("right,t\n1,a\n0,NA\n1,\n0,a\n,b\n", &wanted, Missing::DropRow).unwrap();
        assert_eq!(found.groups(1), [0, 1, 2, 0]);
        assert_eq!((found.survey.rows, found.survey.dropped), (5, 1));
        assert_eq!(found.survey.without_label("t").unwrap(), "2 rows have no `t`; each is a cluster of its own");
        assert_eq!(found.survey.without_label("right").unwrap(), "1 row has no `right`; it is a cluster of its own");
        assert_eq!(found.survey.remarks(), " (1 of 5 rows was left out: `right` lacks 1, `t` lacks 2)");
    }

    #[test]
    fn errors_name_the_place_and_what_was_expected() {
        let wanted = &WANTED;
        let error = |text: &str| parse(text, wanted, Missing::DropRow).unwrap_err();
        assert!(error("").contains("is empty"));
        assert!(error("id,gamma\n").contains("no column `correct`; its columns are: id, gamma"));
        assert!(error("id;gamma;correct\n").contains("separated by semicolons, expected commas"));
        assert!(error("id,gamma,correct,id\n").contains("more than one column `id`"));
        let message = error("id,gamma,correct\na,1,1\nb,1,2\n");
        assert!(message.contains("line 3: column `correct` is `2`, expected 0 or 1"), "{message}");
        assert!(error("id,gamma,correct\na,inf,1\n").contains("`inf`, expected a finite number"));
        assert!(error("id,gamma,correct\na,1\n").contains("data.csv"));
    }

    #[test]
    fn a_column_has_numbers_or_labels() {
        let read = |text: &str, kind| parse(text, &[("x", kind)], Missing::DropRow);
        let labels = read("x\nb\na\nb\n", Kind::Either).unwrap();
        assert_eq!((labels.survey.is_label[0], labels.values[0].as_slice()), (true, [0.0, 1.0, 0.0].as_slice()));
        let numbers = read("x\n2\n-1e3\n", Kind::Either).unwrap();
        assert_eq!((numbers.survey.is_label[0], numbers.values[0].as_slice()), (false, [2.0, -1000.0].as_slice()));
        let error = read("x\n2\nb\n", Kind::Either).unwrap_err();
        assert!(error.contains("line 3: column `x` is `b`, expected a finite number") && error.contains("--factor x"));
        assert!(read("x\nb\n2\n", Kind::Either).unwrap_err().contains("expected a label"));
        assert!(read("x\n2\n-inf\n", Kind::Either).unwrap_err().contains("expected a finite number"));
        assert_eq!(read("x\n2\n1\n", Kind::Factor).unwrap().survey.labels[0], ["2", "1"]);
        let many: String = std::iter::once("x\n".to_owned()).chain((0..65).map(|row| format!("l{row}\n"))).collect();
        let error = read(&many, Kind::Either).unwrap_err();
        assert!(error.contains("line 66") && error.contains("more than 64 different labels"), "{error}");
        assert_eq!(read(&many, Kind::Label).unwrap().survey.labels[0].len(), 65);
    }

    #[test]
    fn columns_and_rows_without_values_are_named() {
        let checked = |text: &str, missing, asked: &str| {
            let only: Vec<(&str, &str)> = asked.split_once('=').into_iter().collect();
            let found = parse_where(text, &WANTED, missing, &only).unwrap();
            found.survey.check("data.csv", &WANTED, asked).map_err(|error| error.to_string())
        };
        let table = "id,gamma,correct\na,NA,1\nb,,0\nb,null,1\n";
        for missing in [Missing::DropRow, Missing::DropValue] {
            assert_eq!(
                checked(table, missing, "").unwrap_err(),
                "column `gamma` of data.csv has no value in 3 rows; leave it out, or fill in the values"
            );
        }
        let error = checked("id,gamma,correct\na,,NaN\nb,1,0\n", Missing::DropRow, "id=a").unwrap_err();
        assert!(
            error.starts_with("columns `correct`, `gamma` of data.csv have no value in 1 row with id=a"),
            "{error}"
        );
        let error = checked("id,gamma,correct\na,1,\nb,,0\n,2,1\nc,3,NA\n", Missing::DropRow, "").unwrap_err();
        assert_eq!(
            error,
            "no row of data.csv has a value in every column: `correct` lacks 2, `gamma` lacks 1, `id` lacks 1 of 4 rows; \
             leave out a column, or fill in the values"
        );
        assert!(checked("id,gamma,correct\n", Missing::DropRow, "").unwrap_err().contains("nothing below them"));
        assert!(checked(table, Missing::DropRow, "id=z").unwrap_err().contains("no row has id=z in data.csv"));
        // Enough is there.
        assert_eq!(checked("id,gamma,correct\na,1,1\n,,\n", Missing::DropRow, ""), Ok(()));
    }
}
