//! The model of stored runs when no formula is given: the maximal one that the design supports.
use super::columns::{Kind, Survey};
use super::failed::not_fitted;
use super::frame::{self, ColumnOptions};
use super::mixed::{Common, Fitted};
use super::one_intercept::CrossCheck;
use super::source::Source;
use crate::cli::error::CliError;
use earnest_stats::analysis::{DefaultModel, default_model};
use earnest_stats::mixed::{Column, Family, Frame, IntegralChoice, Terms};

/// Columns that are conditions where they vary, in this order, if no fixed effects are named.
const CONDITIONS: [&str; 4] = ["model", "prompt", RUN, "variant"];

/// Conditions that tell runs apart.
const SETTINGS: [&str; 2] = ["model", "prompt"];

/// Condition of runs that differ in neither, but e.g. in the temperature.
const RUN: &str = "run";

/// Grouping columns of stored runs, the widest first.
const GROUPS: [&str; 2] = ["cluster", "item"];

/// Chooses and fits the model of stored runs.
pub(super) fn choose(
    source: &Source<'_>,
    response: &str,
    fixed: &[String],
    common: Common<'_>,
) -> Result<Fitted, CliError> {
    let mut named: Vec<String> = if fixed.is_empty() { conditions(source)? } else { fixed.to_vec() };
    let mut columns: Vec<(&str, Kind)> = Vec::new();
    for name in &named {
        let kind = if common.factor.contains(name) { Kind::Factor } else { Kind::Either };
        columns.push((name, kind));
    }
    columns.extend(
        GROUPS.iter().filter(|group| !named.iter().any(|name| name == *group)).map(|group| (*group, Kind::Label)),
    );
    let options = ColumnOptions { family: Family::Binomial, factor: common.factor, reference: common.reference };
    let (frame, survey) = frame::read(source, response, &columns, options)?;
    // Runs of one model and prompt differ in settings that are no column.
    if fixed.is_empty() && named.iter().any(|name| SETTINGS.contains(&name.as_str()) && varies(&frame, name)) {
        named.retain(|name| name != RUN);
    }
    let terms = effects(&frame, &named, fixed.is_empty());
    let groups: Vec<&str> =
        GROUPS.into_iter().filter(|group| !terms.variables.iter().any(|name| name == group)).collect();
    let model =
        default_model(&frame, response, &terms, &groups).map_err(|error| not_fitted(source, &survey, &error))?;
    let survey = Survey { labels: Vec::new(), ..survey };
    let DefaultModel { data, fit, choice, .. } = model;
    let compared = data.has_one_effect() && fit.is_usable();
    let cross_check = if compared { CrossCheck::Done } else { CrossCheck::NotApplicable };
    let integral = IntegralChoice::Automatic;
    Ok(Fitted { frame, survey, data, fit, choice, is_default: true, integral, cross_check })
}

/// Conditions that the source has.
fn conditions(source: &Source<'_>) -> Result<Vec<String>, CliError> {
    let mut found = Vec::new();
    for name in CONDITIONS {
        if frame::has_column(source, name)? {
            found.push(name.to_owned());
        }
    }
    Ok(found)
}

/// Main effects of the columns; without those of one value if nobody named them.
fn effects(frame: &Frame, named: &[String], chosen: bool) -> Terms {
    let kept = named.iter().filter(|name| !chosen || varies(frame, name));
    kept.fold(Terms::intercept(), |terms, name| terms.with(name))
}

fn varies(frame: &Frame, name: &str) -> bool {
    match frame.column(name) {
        Ok(Column::Labels(labels)) => labels.levels.len() > 1,
        Ok(Column::Number(values)) => values.iter().any(|value| *value != values[0]),
        Err(_) => true,
    }
}
