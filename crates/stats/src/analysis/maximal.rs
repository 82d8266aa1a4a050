//! The maximal random effects that a design supports.
use std::collections::HashMap;

use crate::mixed::{Column, Formula, Frame, MixedError, RandomTerm, Terms};

/// Levels up to which a factor's effects vary by slopes of their own; more vary by `(1 | factor:group)`, whose one variance
/// does not grow with the levels.
const MOST_SLOPES: usize = 3;

/// Rows that a group needs of a level, and groups that need them.
const ROWS: usize = 2;
const PART: f64 = 0.5;
const GROUPS: usize = 5;

/// Different values up to which a number is a condition and not a covariate.
const MOST_VALUES: usize = 10;

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
        } else if let Some((wider, _)) = kept.iter_mut().find(|(_, codes)| same_groups(codes, &labels.codes)) {
            notes.push(format!("{group} and {wider} are the same groups"));
            // The narrower name says more: questions that are clusters of their own are questions.
            *wider = group;
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

pub(super) fn same_groups(left: &[u32], right: &[u32]) -> bool {
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
