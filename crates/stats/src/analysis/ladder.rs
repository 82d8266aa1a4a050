//! Simpler models where a fit is singular or refused.
use std::collections::BTreeMap;

use crate::mixed::{
    Column, Family, Formula, Frame, INTERCEPT, MixedData, MixedDiagnosis, MixedError, MixedFit, MixedOptions,
    RandomEffect, RandomTerm, Terms, refusals, refused, unrefused,
};
use crate::verdict::enough_answers;

/// Standard deviation of intercepts, in log odds, beyond which groups are nearly all right or all wrong, and the mean number of
/// answers a group below which such a deviation cannot be estimated.
const ALL_OR_NOTHING: f64 = 3.5;
const FEW_ANSWERS: usize = 4;

/// Outcomes of the rarer kind that each variance and correlation of the random effects needs: the rule of ten events a variable (Peduzzi et al.
/// 1996). Below it searches end, after minutes, at infinite variances.
const EVENTS: usize = 10;

/// Steps down from the maximal model.
const MOST_STEPS: usize = 12;

/// A step down to a simpler model.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub why: String,
    pub formula: Formula,
    /// True if the data do vary in what is left out, but the model cannot show it.
    pub varies: bool,
}

/// The first model on the way down from a formula whose fit is neither singular nor refused; or the last one, which then is refused.
#[derive(Debug, Clone)]
pub struct ChosenModel {
    pub formula: Formula,
    pub data: MixedData,
    /// Without numbers where it is refused.
    pub fit: MixedFit,
    pub steps: Vec<Step>,
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.why, self.formula)
    }
}

/// Fits a formula, and while it is singular a simpler one: perfectly correlated effects become uncorrelated, effects without
/// variation are left out, from the last term to the first. Fixed effects stay.
pub fn fit_stepping_down(formula: &Formula, frame: &Frame, family: Family) -> Result<ChosenModel, MixedError> {
    let mut formula = formula.clone();
    let mut steps = Vec::new();
    if let Some(step) = without_detail(&formula, frame, family)? {
        formula = step.formula.clone();
        steps.push(step);
    }
    loop {
        let data = MixedData::new(&formula, frame, family)?;
        let options = MixedOptions::default();
        let fitted = unrefused(&data, &options)?;
        let reasons = refusals(&data, &fitted, &options);
        let next = if !fitted.is_usable() || steps.len() >= MOST_STEPS {
            None
        } else {
            simpler(&formula, &fitted)
                .or_else(|| reasons.iter().find_map(|reason| without_runaway(&formula, &fitted, reason)))
        };
        match next {
            Some(step) => {
                formula = step.formula.clone();
                steps.push(step);
            }
            None => {
                let fit = if reasons.is_empty() { fitted } else { refused(&data, &fitted, reasons) };
                return Ok(ChosenModel { formula, data, fit, steps });
            }
        }
    }
}

/// Outcomes of the rarer kind.
#[derive(Clone, Copy)]
struct Rarer {
    events: usize,
    kind: &'static str,
}

impl Rarer {
    fn of(right: usize, all: usize) -> Self {
        let wrong = all - right;
        if right <= wrong { Rarer { events: right, kind: "right" } } else { Rarer { events: wrong, kind: "wrong" } }
    }
}

/// A level of a fixed factor with so few answers of one kind that its differences have an exact test: column, level, answers. Numbers of two
/// values are a factor too.
fn rarest_level(
    formula: &Formula,
    frame: &Frame,
    outcomes: &[f64],
) -> Result<Option<(String, String, Rarer)>, MixedError> {
    let mut found: Option<(String, String, Rarer)> = None;
    for name in &formula.fixed.variables {
        let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        let mut count = |level: &str, outcome: f64| {
            if !counts.contains_key(level) {
                counts.insert(level.to_owned(), (0, 0));
            }
            if let Some((right, all)) = counts.get_mut(level) {
                *right += usize::from(outcome == 1.0);
                *all += 1;
            }
        };
        match frame.column(name)? {
            Column::Labels(labels) => {
                let rows = labels.codes.iter().zip(outcomes);
                rows.for_each(|(code, outcome)| count(&labels.levels[*code as usize], *outcome));
            }
            Column::Number(values) => {
                let first = values[0];
                let Some(second) = values.iter().find(|value| **value != first) else { continue };
                if values.iter().any(|value| *value != first && value != second) {
                    continue;
                }
                values.iter().zip(outcomes).for_each(|(value, outcome)| count(&value.to_string(), *outcome));
            }
        }
        for (level, (right, all)) in counts {
            let one = Rarer::of(right, all);
            let is_rarest = found.as_ref().is_none_or(|(.., fewest)| one.events < fewest.events);
            if (one.events as f64) < enough_answers(all as f64) && is_rarest {
                found = Some((name.clone(), level, one));
            }
        }
    }
    Ok(found)
}

/// The formula with random intercepts of the narrowest groups only, where outcomes of one kind are too few for more.
fn without_detail(formula: &Formula, frame: &Frame, family: Family) -> Result<Option<Step>, MixedError> {
    let (Family::Binomial, Column::Number(outcomes)) = (family, frame.column(&formula.response)?) else {
        return Ok(None);
    };
    let parameters = MixedData::new(formula, frame, family)?.covariances();
    let is_intercept = |term: &&RandomTerm| term.effects.intercept && term.group.len() == 1;
    let Some(narrowest) = formula.random.iter().rfind(is_intercept) else { return Ok(None) };
    let all = Rarer::of(outcomes.iter().filter(|outcome| **outcome == 1.0).count(), outcomes.len());
    let why = if all.events < EVENTS * parameters {
        let Rarer { events, kind } = all;
        format!("{events} {kind} answers are fewer than ten for each of {parameters} variances and correlations")
    } else if let Some((name, level, Rarer { events, kind })) = rarest_level(formula, frame, outcomes)? {
        format!("{events} {kind} answers where {name} is {level} are few")
    } else {
        return Ok(None);
    };
    let why = format!("{why}, so only the groups of {} are let vary", narrowest.group_name());
    let step = intercepts_only(formula, &narrowest.group, why);
    Ok((step.formula != *formula).then_some(step))
}

/// The step to random intercepts of one factor's groups and nothing else. Such a model has a quadrature, and errors over wider groups show what it
/// leaves out; Laplace's approximation of more than one factor is far off where few answers tell groups apart.
fn intercepts_only(formula: &Formula, group: &[String], why: String) -> Step {
    let only = RandomTerm { effects: Terms::intercept(), group: group.to_vec(), independent: false };
    Step { why, formula: Formula { random: vec![only], ..formula.clone() }, varies: true }
}

/// The next simpler formula and the reason.
fn simpler(formula: &Formula, fitted: &MixedFit) -> Option<Step> {
    let index_of = |group: &str, terms: &[String]| {
        formula.random.iter().rposition(|term| {
            let intercept = terms.iter().any(|name| name == INTERCEPT);
            term.group_name() == group && (!intercept || term.effects.intercept)
        })
    };
    if formula.random.len() > 1
        && let Some(effect) = fitted.random.iter().find(|effect| is_all_or_nothing(effect, fitted.rows))
        && let Some(index) = index_of(&effect.group, &effect.terms)
        && formula.random[index].effects.terms.is_empty()
    {
        let why = format!(
            "nearly all groups of {} are all right or all wrong, which an approximation over several random effects misses, so only \
             they are let vary",
            effect.group
        );
        return Some(intercepts_only(formula, &formula.random[index].group, why));
    }
    for diagnosis in fitted.diagnoses.iter().rev() {
        match diagnosis {
            MixedDiagnosis::ZeroVariance { group, term } => {
                let Some(index) = index_of(group, std::slice::from_ref(term)) else { continue };
                let mut next = formula.clone();
                let own = &mut next.random[index];
                if term == INTERCEPT {
                    // The last random effect stays: a model without any is another kind.
                    if !own.effects.terms.is_empty() || formula.random.len() == 1 {
                        continue;
                    }
                    next.random.remove(index);
                    let why = format!("the groups of {group} do not vary, so its random effect is left out");
                    return Some(Step { why, formula: next, varies: false });
                }
                let (name, rest) = without_effect(&own.effects, term)?;
                own.effects = rest;
                own.independent &= !own.effects.terms.is_empty();
                let why = format!("{name} does not vary by {group} and is left out there");
                return Some(Step { why, formula: next, varies: false });
            }
            MixedDiagnosis::PerfectCorrelation { group, terms } => {
                let Some(index) = index_of(group, terms) else { continue };
                let mut next = formula.clone();
                if next.random[index].independent {
                    continue;
                }
                next.random[index].independent = true;
                let why = format!("effects by {group} are perfectly correlated, so correlations are left out");
                return Some(Step { why, formula: next, varies: false });
            }
            _ => {}
        }
    }
    by_quadrature(formula, fitted)
}

/// The step to the narrowest groups' intercepts alone, where these alone show that Laplace's approximation moves an effect.
fn by_quadrature(formula: &Formula, fitted: &MixedFit) -> Option<Step> {
    let poor = |one: &MixedDiagnosis| match one {
        MixedDiagnosis::PoorLaplace { group, alone: Some(found), .. } => Some((group.clone(), found.clone())),
        _ => None,
    };
    let (group, found) = fitted.diagnoses.iter().find_map(poor)?;
    let of_group = |term: &&RandomTerm| term.group_name() == group && term.group.len() == 1 && term.effects.intercept;
    let narrowest = formula.random.iter().find(of_group)?;
    let why = format!(
        "with so few answers for each {group} Laplace's approximation is off ({} moves by {:.1} standard errors by quadrature), so only the groups of \
         {group} are let vary",
        found.coefficient, found.standard_errors
    );
    let step = intercepts_only(formula, &narrowest.group, why);
    (step.formula != *formula).then_some(step)
}

/// The formula without a random effect of a fit that is refused: the slope that ran away; else the slope with the largest deviation;
/// without slopes, the intercepts of the narrowest groups. The intercepts of the widest groups stay.
fn without_runaway(formula: &Formula, fitted: &MixedFit, reason: &MixedDiagnosis) -> Option<Step> {
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
        for (term, sd) in effect.terms.iter().zip(&effect.sd).filter(|(term, _)| *term != INTERCEPT) {
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
        let why = format!("the effects of {name} by {group} are left out, {why}");
        return Some(Step { why, formula: next, varies: true });
    }
    if formula.random.len() < 2 {
        return None;
    }
    let narrowest = fitted.random.iter().max_by_key(|effect| effect.groups)?;
    let index = formula.random.iter().rposition(|term| term.group_name() == narrowest.group)?;
    let mut next = formula.clone();
    next.random.remove(index);
    let why = format!("the random effect of {} is left out, {why}", narrowest.group);
    Some(Step { why, formula: next, varies: true })
}

/// True for intercepts of groups of few answers that nearly always agree.
fn is_all_or_nothing(effect: &RandomEffect, rows: usize) -> bool {
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
