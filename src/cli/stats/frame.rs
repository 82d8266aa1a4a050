//! Columns of a mixed model with a formula.

use super::columns::{self, ColumnError, Kind, Missing, Survey};
use super::source::{Pair, Source};
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
) -> anyhow::Result<(Frame, Survey)> {
    let named = options.factor.iter().map(|name| ("--factor", name));
    for (option, name) in named.chain(options.reference.iter().map(|pair| ("--reference", &pair.column))) {
        anyhow::ensure!(
            others.iter().any(|(known, _)| known == name),
            "{option} names `{name}`, which is not in the formula"
        );
    }
    let kind = if options.family == Family::Binomial { Kind::Binary } else { Kind::Number };
    let mut wanted = vec![(response, kind)];
    wanted.extend(others);
    let columns = columns::read(source, &wanted, Missing::DropRow)?;
    let mut survey = columns.survey;
    let mut frame = Frame::new();
    let remarks = survey.remarks();
    let fits = |error: MixedError| anyhow::Error::from(error).context(format!("cannot fit {}{remarks}", source.name()));
    for (index, ((name, _), values)) in wanted.iter().zip(columns.values).enumerate() {
        if survey.is_label[index] {
            let labels = std::mem::take(&mut survey.labels[index]);
            // A table with more than u32::MAX different labels would not fit into memory.
            frame.labels(name, values.into_iter().map(|code| code as u32).collect(), labels).map_err(&fits)?;
        } else {
            frame.number(name, values).map_err(&fits)?;
        }
    }
    for pair in options.reference {
        frame.reference(&pair.column, &pair.value).map_err(&fits)?;
    }
    Ok((frame, survey))
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
pub(super) fn has_column(source: &Source<'_>, name: &str) -> anyhow::Result<bool> {
    match columns::scan(source, &[(name, Kind::Label)], Missing::DropValue, &mut |_| {}) {
        Ok(_) => Ok(true),
        // A column without values tells no rows apart.
        Err(ColumnError::Missing { .. } | ColumnError::NoValues { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
