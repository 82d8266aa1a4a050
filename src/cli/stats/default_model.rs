//! The model of stored runs when no formula is given: the maximal one that the design supports.
use super::columns::{Kind, Survey};
use super::frame::{self, ColumnOptions};
use super::mixed::{Common, Fitted};
use super::source::Source;
use anyhow::Context;
use earnest_stats::analysis::{DefaultModel, default_model, maximal_formula};
use earnest_stats::mixed::{Column, Errors, Family, Formula, Frame, Method, MixedError, RandomTerm, Terms};

/// Columns that are conditions where they vary, in this order, if no fixed effects are named.
const CONDITIONS: [&str; 4] = ["model", "prompt", RUN, "variant"];

/// Conditions that tell runs apart.
const SETTINGS: [&str; 2] = ["model", "prompt"];

/// Condition of runs that differ in neither, but e.g. in the temperature.
const RUN: &str = "run";

/// Grouping columns of stored runs, the widest first.
const GROUPS: [&str; 2] = ["cluster", "item"];

/// A model that was chosen.
pub(super) enum Chosen {
    /// One random intercept by Laplace's approximation.
    Simple(Simple),
    Mixed(Box<Fitted>),
}

/// A model with one random intercept.
pub(super) struct Simple {
    pub(super) fixed: Vec<String>,
    /// Column of groups.
    pub(super) group: String,
    pub(super) choice: Vec<String>,
}

/// Chooses and fits the model of stored runs.
pub(super) fn choose(
    source: &Source<'_>,
    response: &str,
    fixed: &[String],
    common: Common<'_>,
) -> anyhow::Result<Chosen> {
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
    let fixed: Vec<String> = terms.variables.clone();
    let groups: Vec<&str> = GROUPS.into_iter().filter(|group| !fixed.iter().any(|name| name == group)).collect();
    if let Err(MixedError::NotEstimated { .. }) = maximal_formula(&frame, response, &terms, &groups) {
        // Nothing repeats within a group.
        return Ok(Chosen::Simple(Simple { fixed, group: GROUPS[0].to_owned(), choice: Vec::new() }));
    }
    let model = default_model(&frame, response, &terms, &groups)
        .with_context(|| format!("cannot fit {}{}", source.name(), survey.remarks()))?;
    // Where Laplace's approximation and the model's errors stand, the engine of one intercept has the same numbers and tells more.
    let stands = model.fit.is_usable() && model.fit.method == Method::Laplace && model.fit.errors == Errors::Model;
    if let Some(group) = simple(&model.formula).filter(|_| stands) {
        return Ok(Chosen::Simple(Simple { fixed, group, choice: model.choice }));
    }
    let survey = Survey { labels: Vec::new(), ..survey };
    let DefaultModel { data, fit, choice, .. } = model;
    Ok(Chosen::Mixed(Box::new(Fitted { frame, survey, data, fit, choice })))
}

/// The group of a formula with one random intercept.
fn simple(formula: &Formula) -> Option<String> {
    match &formula.random[..] {
        [RandomTerm { effects, group, .. }] if effects.terms.is_empty() && group.len() == 1 => Some(group[0].clone()),
        _ => None,
    }
}

/// Conditions that the source has.
fn conditions(source: &Source<'_>) -> anyhow::Result<Vec<String>> {
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
