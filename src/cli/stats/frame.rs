//! Columns of a mixed model with a formula.

use super::columns::{self, ColumnError, Kind, Missing, Survey};
use super::failed::{about, require};
use super::source::{Pair, Source};
use crate::cli::error::CliError;
use earnest_stats::mixed::{Family, Formula, Frame, MixedError};

/// Options on single columns.
#[derive(Debug, Clone, Copy)]
pub(super) struct ColumnOptions<'a> {
    pub(super) family: Family,
    /// Columns whose numbers are labels.
    pub(super) factor: &'a [String],
    pub(super) reference: &'a [Pair],
}

/// Reads these columns into a frame: the response as numbers, groups as labels, others as they are.
pub(super) fn read(
    source: &Source<'_>,
    response: &str,
    others: &[(&str, Kind)],
    options: ColumnOptions<'_>,
) -> Result<(Frame, Survey), CliError> {
    gather(source, response, others, options, usize::MAX)
}

/// As [`read`]; of many rows equal ones are merged into counts.
pub(super) fn read_counts(
    source: &Source<'_>,
    response: &str,
    others: &[(&str, Kind)],
    options: ColumnOptions<'_>,
) -> Result<(Frame, Survey), CliError> {
    gather(source, response, others, options, FIRST_LIMIT)
}

/// As [`read`]; equal rows are merged once more than `limit` are there.
fn gather(
    source: &Source<'_>,
    response: &str,
    others: &[(&str, Kind)],
    options: ColumnOptions<'_>,
    limit: usize,
) -> Result<(Frame, Survey), CliError> {
    let named = options.factor.iter().map(|name| ("--factor", name));
    for (option, name) in named.chain(options.reference.iter().map(|pair| ("--reference", &pair.column))) {
        require(others.iter().any(|(known, _)| known == name), || {
            format!("{option} names `{name}`, which is not in the formula")
        })?;
    }
    let kind = if options.family == Family::Binomial { Kind::Binary } else { Kind::Number };
    let mut wanted = vec![(response, kind)];
    wanted.extend(others);
    let mut rows = Rows::new(wanted.len(), limit);
    let mut survey = columns::scan(source, &wanted, Missing::DropRow, &mut |row| rows.push(row))?;
    let (columns, counts) = rows.finish();
    let mut frame = Frame::new();
    let remarks = survey.remarks();
    let fits = |error: MixedError| about(format!("cannot fit {}{remarks}", source.name()), &error);
    for (index, ((name, _), values)) in wanted.iter().zip(columns).enumerate() {
        if survey.is_label[index] {
            let labels = std::mem::take(&mut survey.labels[index]);
            // A table with more than u32::MAX different labels would not fit into memory.
            frame.labels(name, values.into_iter().map(|code| code as u32).collect(), labels).map_err(&fits)?;
        } else {
            frame.number(name, values).map_err(&fits)?;
        }
    }
    if let Some(counts) = counts {
        frame.counted(counts);
    }
    for pair in options.reference {
        frame.reference(&pair.column, &pair.value).map_err(&fits)?;
    }
    Ok((frame, survey))
}

/// Rows that are gathered before equal ones are merged for the first time.
const FIRST_LIMIT: usize = 1 << 18;

/// Rows as they come. Beyond a limit equal ones are merged into counts now and then, so that memory grows with the different rows and not with
/// the rows: ten million answers to a hundred templates under two conditions are four hundred counts.
struct Rows {
    width: usize,
    /// Row-major.
    values: Vec<f64>,
    /// Times of each row and the number of the first of them; empty before the first merge.
    merged: Vec<(f64, u64)>,
    pushed: u64,
    limit: usize,
}

impl Rows {
    fn new(width: usize, limit: usize) -> Self {
        Rows { width, values: Vec::new(), merged: Vec::new(), pushed: 0, limit }
    }

    fn len(&self) -> usize {
        self.values.len() / self.width
    }

    fn push(&mut self, row: &[f64]) {
        if self.len() >= self.limit {
            self.merge();
            // Mostly different rows: merging must not cost more than gathering.
            self.limit = self.limit.max(2 * self.len());
        }
        self.values.extend_from_slice(row);
        self.pushed += 1;
    }

    /// Merges equal rows; those that are left stand in the order of their first ones.
    fn merge(&mut self) {
        let known = self.merged.len();
        let first = self.pushed - (self.len() - known) as u64;
        self.merged.extend((first..self.pushed).map(|number| (1.0, number)));
        let row = |index: usize| &self.values[index * self.width..(index + 1) * self.width];
        let compare = |left: &usize, right: &usize| {
            let pairs = row(*left).iter().zip(row(*right));
            pairs.map(|(left, right)| left.total_cmp(right)).find(|order| order.is_ne()).unwrap_or(left.cmp(right))
        };
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_unstable_by(compare);
        let mut kept: Vec<(usize, f64, u64)> = Vec::new();
        for index in order {
            let (count, number) = self.merged[index];
            match kept.last_mut() {
                // 0 and -0 are neighbours, and one.
                Some((last, times, first)) if row(*last) == row(index) => {
                    *times += count;
                    *first = number.min(*first);
                }
                _ => kept.push((index, count, number)),
            }
        }
        kept.sort_unstable_by_key(|(.., number)| *number);
        let values = kept.iter().flat_map(|(index, ..)| row(*index).iter().copied()).collect();
        self.merged = kept.iter().map(|&(_, count, number)| (count, number)).collect();
        self.values = values;
    }

    /// The columns, and the times of each row if rows were merged.
    fn finish(mut self) -> (Vec<Vec<f64>>, Option<Vec<f64>>) {
        if !self.merged.is_empty() {
            self.merge();
        }
        let column = |column: usize| self.values.iter().skip(column).step_by(self.width).copied().collect();
        let columns = (0..self.width).map(column).collect();
        (columns, (!self.merged.is_empty()).then(|| self.merged.iter().map(|(count, _)| *count).collect()))
    }
}

/// Columns of a formula beside the response. A column that is a group and nothing else holds any number of labels.
pub(super) fn kinds<'f>(formula: &'f Formula, factor: &[String]) -> Vec<(&'f str, Kind)> {
    let is_effect = |name: &str| {
        let random = formula.random.iter().flat_map(|term| &term.effects.variables);
        formula.fixed.variables.iter().chain(random).any(|known| known == name)
    };
    let kind = |name: &str| match (is_effect(name), factor.iter().any(|known| known == name)) {
        (false, _) => Kind::Label,
        (true, true) => Kind::Factor,
        (true, false) => Kind::Either,
    };
    formula.variables().into_iter().map(|name| (name, kind(name))).collect()
}

/// True if the source has a column with values; errors but a missing or empty column are passed on.
pub(super) fn has_column(source: &Source<'_>, name: &str) -> Result<bool, CliError> {
    match columns::scan(source, &[(name, Kind::Label)], Missing::DropValue, &mut |_| {}) {
        Ok(_) => Ok(true),
        // A column without values tells no rows apart.
        Err(ColumnError::Missing { .. } | ColumnError::NoValues { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_between_pushes_changes_nothing() {
        let row = |number: u32| [f64::from(number % 2), f64::from(number % 7), f64::from(number % 3)];
        let mut merged = Rows::new(3, 64);
        (0..1_000).for_each(|number| merged.push(&row(number)));
        assert!(merged.len() <= 128);
        let (columns, counts) = merged.finish();
        let counts = counts.unwrap();
        assert_eq!((counts.len(), counts.iter().sum::<f64>()), (42, 1_000.0));
        // In the order of the first rows.
        let expected: Vec<f64> = (0..42).map(|number| row(number)[1]).collect();
        assert_eq!(columns[1], expected);
        assert_eq!(counts[0], (0..1_000).filter(|number| row(*number) == row(0)).count() as f64);
        let mut few = Rows::new(3, 64);
        (0..10).for_each(|number| few.push(&row(number)));
        let (columns, counts) = few.finish();
        assert_eq!((columns[0].len(), counts), (10, None));
    }
}
