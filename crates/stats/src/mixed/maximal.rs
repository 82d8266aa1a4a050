//! The default model: the maximal random effects that a design supports, stepped down where the fit is singular.
use std::collections::HashMap;

use super::MixedError;
use super::data::{Family, MixedData};
use super::diagnosis::MixedDiagnosis;
use super::fit::{MixedOptions, unrefused};
use super::formula::{Formula, RandomTerm, Terms};
use super::frame::{Column, Frame};
use super::refusal::refusals;
use super::result::MixedFit;
use super::summary::refused;

/// Levels up to which a factor's effects vary by slopes of their own; more vary by `(1 | factor:group)`, whose one variance
/// does not grow with the levels.
const MOST_SLOPES: usize = 3;

/// Rows that a group needs of a level, and groups that need them.
const ROWS: usize = 2;
const PART: f64 = 0.5;
const GROUPS: usize = 5;

/// Different values up to which a number is a condition and not a covariate.
const MOST_VALUES: usize = 10;

/// Standard deviation of intercepts, in log odds, beyond which groups are nearly all right or all wrong, and the mean number of
/// answers a group below which such a deviation cannot be estimated.
const ALL_OR_NOTHING: f64 = 3.5;
const FEW_ANSWERS: usize = 4;

/// Steps down from the maximal model.
const MOST_STEPS: usize = 12;

/// A model that was chosen, with what was chosen and why.
#[derive(Debug, Clone)]
pub struct ChosenModel {
    pub formula: Formula,
    pub data: MixedData,
    pub fit: MixedFit,
    /// Sentences about the design and every step down.
    pub steps: Vec<String>,
}

/// The maximal formula for a design: random intercepts of every group that repeats, and slopes of every fixed effect that varies
/// within groups and repeats there. `groups` are the candidate grouping columns, the widest first.
///
/// An effect gets a slope if at least half of the groups (and five) have at least two of its levels with two rows each; an
/// interaction needs all combinations. A number of many values is a covariate and gets none. The second result says what was chosen.
pub fn maximal_formula(
    frame: &Frame,
    response: &str,
    fixed: &Terms,
    groups: &[&str],
) -> Result<(Formula, Vec<String>), MixedError> {
    let mut notes = Vec::new();
    let mut random: Vec<RandomTerm> = Vec::new();
    let mut kept: Vec<(&str, Vec<u32>)> = Vec::new();
    for &group in groups {
        let labels = frame.as_labels(group)?;
        let counts = counts(&labels.codes, labels.levels.len());
        let repeated = counts.iter().filter(|count| **count >= ROWS).count();
        if labels.levels.len() < 2 {
            notes.push(format!("{group} is the same in every row and is left out"));
        } else if let Some((wider, _)) = kept.iter().find(|(_, codes)| same_groups(codes, &labels.codes)) {
            notes.push(format!("{group} and {wider} are the same groups"));
        } else if (repeated as f64) < PART * labels.levels.len() as f64 {
            notes.push(format!(
                "most groups of {group} have one row only, so their variation cannot be told from chance"
            ));
        } else {
            if let Some((wider, _)) = kept.iter().find(|(_, codes)| is_nested(&labels.codes, codes)) {
                notes.push(format!("{group} is nested in {wider}"));
            }
            kept.push((group, labels.codes));
        }
    }
    for (group, codes) in &kept {
        let mut effects = Terms::intercept();
        let mut wide = Vec::new();
        for term in &fixed.terms {
            let name = fixed.name(term);
            let names: Vec<&str> = term.iter().map(|&index| fixed.variables[index].as_str()).collect();
            match support(frame, &names, codes)? {
                Support::Slope => effects = effects.with_product(&names),
                Support::Wide if names.len() == 1 => wide.push(names[0].to_owned()),
                Support::Wide => notes.push(format!("{name} has too many levels to vary by {group}")),
                Support::None(reason) => notes.push(format!("{name} does not vary by {group}: {reason}")),
            }
        }
        random.push(RandomTerm { effects, group: vec![(*group).to_owned()], independent: false });
        for factor in wide {
            notes.push(format!(
                "{factor} has more than {MOST_SLOPES} levels and varies by {group} as (1 | {factor}:{group})"
            ));
            random.push(RandomTerm::intercept(&[&factor, group]));
        }
    }
    if random.is_empty() {
        return Err(MixedError::NotEstimated {
            reason: format!(
                "nothing repeats within {}, so there is no random effect to estimate; a plain comparison of proportions needs none",
                groups.join(" or ")
            ),
        });
    }
    let formula = Formula { response: response.to_owned(), fixed: fixed.clone(), random };
    notes.insert(0, format!("maximal model that the design supports: {formula}"));
    Ok((formula, notes))
}

fn counts(codes: &[u32], levels: usize) -> Vec<usize> {
    let mut counts = vec![0; levels];
    codes.iter().for_each(|&code| counts[code as usize] += 1);
    counts
}

/// True if every group of the first is within one group of the second.
fn is_nested(inner: &[u32], outer: &[u32]) -> bool {
    let mut of: HashMap<u32, u32> = HashMap::new();
    inner.iter().zip(outer).all(|(inner, outer)| of.entry(*inner).or_insert(*outer) == outer)
}

fn same_groups(left: &[u32], right: &[u32]) -> bool {
    is_nested(left, right) && is_nested(right, left)
}

/// Support of a design for an effect that varies between groups.
enum Support {
    Slope,
    /// It varies, but has many levels.
    Wide,
    None(&'static str),
}

fn support(frame: &Frame, names: &[&str], groups: &[u32]) -> Result<Support, MixedError> {
    let mut combination = vec![0_u64; frame.rows()];
    let (mut combinations, mut widest) = (1_usize, 0);
    for name in names {
        let labels = match frame.column(name)? {
            Column::Labels(labels) => labels.clone(),
            Column::Number(values) => {
                let mut different: Vec<f64> = Vec::new();
                for value in values {
                    if !different.contains(value) {
                        different.push(*value);
                    }
                    if different.len() > MOST_VALUES {
                        return Ok(Support::None("it is a covariate; a formula can give it a slope"));
                    }
                }
                frame.as_labels(name)?
            }
        };
        combinations *= labels.levels.len();
        if matches!(frame.column(name)?, Column::Labels(_)) {
            widest = widest.max(labels.levels.len());
        }
        for (value, code) in combination.iter_mut().zip(&labels.codes) {
            *value = *value * labels.levels.len() as u64 + u64::from(*code);
        }
    }
    let mut by_group: HashMap<u32, HashMap<u64, usize>> = HashMap::new();
    for (group, combination) in groups.iter().zip(combination) {
        *by_group.entry(*group).or_default().entry(combination).or_default() += 1;
    }
    let needed = if names.len() == 1 { 2.min(combinations) } else { combinations };
    if !by_group.values().any(|counts| counts.len() >= needed) {
        return Ok(Support::None("it has one value in each"));
    }
    let repeats = |counts: &&HashMap<u64, usize>| counts.values().filter(|count| **count >= ROWS).count() >= needed;
    let supported = by_group.values().filter(repeats).count();
    if supported < GROUPS || (supported as f64) < PART * by_group.len() as f64 {
        return Ok(Support::None("too few of its levels repeat there"));
    }
    Ok(if widest > MOST_SLOPES { Support::Wide } else { Support::Slope })
}

/// Fits a formula, and while it is singular a simpler one: perfectly correlated effects become uncorrelated, effects without
/// variation are left out, from the last term to the first. Fixed effects stay.
pub fn fit_stepping_down(formula: &Formula, frame: &Frame, family: Family) -> Result<ChosenModel, MixedError> {
    let mut formula = formula.clone();
    let mut steps = Vec::new();
    loop {
        let data = MixedData::new(&formula, frame, family)?;
        let fitted = unrefused(&data, &MixedOptions::default())?;
        let reasons = refusals(&data, &fitted);
        let next = if !fitted.is_usable() || steps.len() >= MOST_STEPS {
            None
        } else {
            simpler(&formula, &fitted)
                .or_else(|| reasons.iter().find_map(|reason| without_runaway(&formula, &fitted, reason)))
        };
        match next {
            Some((next, why)) => {
                steps.push(format!("{why}: {next}"));
                formula = next;
            }
            None => {
                let fit = if reasons.is_empty() { fitted } else { refused(&data, &fitted, reasons) };
                return Ok(ChosenModel { formula, data, fit, steps });
            }
        }
    }
}

/// The next simpler formula and the reason.
fn simpler(formula: &Formula, fitted: &MixedFit) -> Option<(Formula, String)> {
    let place_of = |group: &str, terms: &[String]| {
        formula.random.iter().rposition(|term| {
            let intercept = terms.iter().any(|name| name == super::INTERCEPT);
            term.group_name() == group && (!intercept || term.effects.intercept)
        })
    };
    if formula.random.len() > 1
        && let Some(effect) = fitted.random.iter().find(|effect| is_all_or_nothing(effect, fitted.rows))
        && let Some(place) = place_of(&effect.group, &effect.terms)
        && formula.random[place].effects.terms.is_empty()
    {
        let mut next = formula.clone();
        next.random.remove(place);
        let group = &effect.group;
        let why = format!(
            "nearly all of {group} are all right or all wrong, so with so few answers each their variance has no usable estimate, \
             and they are left out"
        );
        return Some((next, why));
    }
    for diagnosis in fitted.diagnoses.iter().rev() {
        match diagnosis {
            MixedDiagnosis::ZeroVariance { group, term } => {
                let Some(place) = place_of(group, std::slice::from_ref(term)) else { continue };
                let mut next = formula.clone();
                let own = &mut next.random[place];
                if term == super::INTERCEPT {
                    // The last random effect stays: a model without any is another kind.
                    if !own.effects.terms.is_empty() || formula.random.len() == 1 {
                        continue;
                    }
                    next.random.remove(place);
                    return Some((
                        next,
                        format!("the groups of {group} do not vary, so its random effect is left out"),
                    ));
                }
                let (name, rest) = without_effect(&own.effects, term)?;
                own.effects = rest;
                own.independent &= !own.effects.terms.is_empty();
                return Some((next, format!("{name} does not vary by {group} and is left out there")));
            }
            MixedDiagnosis::PerfectCorrelation { group, terms } => {
                let Some(place) = place_of(group, terms) else { continue };
                let mut next = formula.clone();
                if next.random[place].independent {
                    continue;
                }
                next.random[place].independent = true;
                return Some((
                    next,
                    format!("effects by {group} are perfectly correlated, so correlations are left out"),
                ));
            }
            _ => {}
        }
    }
    None
}

/// The formula without a random effect of a fit that is refused: the slope that ran away; else the slope with the largest deviation;
/// without slopes, the intercepts of the narrowest groups. The intercepts of the widest groups stay.
fn without_runaway(formula: &Formula, fitted: &MixedFit, reason: &MixedDiagnosis) -> Option<(Formula, String)> {
    let why = match reason {
        MixedDiagnosis::LargeVariance { group, term, sd } => {
            format!("because the SD of {term} by {group} is {sd:.1} log odds, more than outcomes can show")
        }
        MixedDiagnosis::MissedShare { .. } => "because the fit misses the observed share of right answers".to_owned(),
        _ => return None,
    };
    let ran_away = |group: &str, name: &str| matches!(reason, MixedDiagnosis::LargeVariance { group: own, term, .. } if own == group && term == name);
    let mut slopes: Vec<(bool, f64, &str, &str)> = Vec::new();
    for effect in &fitted.random {
        for (term, sd) in effect.terms.iter().zip(&effect.sd).filter(|(term, _)| *term != super::INTERCEPT) {
            slopes.push((ran_away(&effect.group, term), *sd, &effect.group, term));
        }
    }
    slopes.sort_by(|left, right| right.0.cmp(&left.0).then(right.1.total_cmp(&left.1)));
    for (_, _, group, column) in slopes {
        let without = |term: &RandomTerm| without_effect(&term.effects, column).filter(|_| term.group_name() == group);
        let Some(index) = formula.random.iter().rposition(|term| without(term).is_some()) else { continue };
        let (name, rest) = without(&formula.random[index])?;
        let mut next = formula.clone();
        let own = &mut next.random[index];
        own.effects = rest;
        own.independent &= !own.effects.terms.is_empty();
        if own.effects.terms.is_empty() && !own.effects.intercept {
            if formula.random.len() == 1 {
                return None;
            }
            next.random.remove(index);
        }
        return Some((next, format!("the effects of {name} by {group} are left out, {why}")));
    }
    if formula.random.len() < 2 {
        return None;
    }
    let narrowest = fitted.random.iter().max_by_key(|effect| effect.groups)?;
    let index = formula.random.iter().rposition(|term| term.group_name() == narrowest.group)?;
    let mut next = formula.clone();
    next.random.remove(index);
    Some((next, format!("the random effect of {} is left out, {why}", narrowest.group)))
}

/// True for intercepts of groups of few answers that nearly always agree.
fn is_all_or_nothing(effect: &super::RandomEffect, rows: usize) -> bool {
    effect.terms.len() == 1 && effect.sd[0] > ALL_OR_NOTHING && rows < FEW_ANSWERS * effect.groups
}

/// The product whose columns include one of a name, and the effects without it.
fn without_effect(effects: &Terms, column: &str) -> Option<(String, Terms)> {
    // Interactions have the longest names, so the longest match is the product itself.
    let parts = column.split(':').count();
    let matches = |term: &&Vec<usize>| {
        term.len() == parts
            && term.iter().zip(column.split(':')).all(|(&index, part)| part.starts_with(&effects.variables[index]))
    };
    let term = effects.terms.iter().filter(matches).max_by_key(|term| effects.name(term).len())?;
    let name = effects.name(term);
    Some((name.clone(), effects.dropped(&name)?))
}
