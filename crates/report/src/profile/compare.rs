//! Differences between two models, skill by skill.
use serde::Serialize;

use earnest_stats::holm;
use earnest_stats::psychometric::Limit;
use earnest_tasks::suite::profile::{Family, Skill, same_curve};

use super::NumeracyProfile;

/// Level at which a difference holds.
const LEVEL: f64 = 0.05;

/// Two models in a skill.
#[derive(Debug, Clone, Serialize)]
pub struct LimitDifference {
    pub task: String,
    pub family: Family,
    pub title: String,
    /// 50 % limits of the first and the second model.
    pub limits: [Limit; 2],
    /// p value of the likelihood ratio test of one curve of success by length for both.
    pub p: f64,
    /// The same after Holm's adjustment over all skills that are compared.
    pub p_holm: f64,
    /// True if it is below 5 %.
    pub holds: bool,
}

/// Name of one of several profiles: its model, or its run where another is of the same model.
pub(super) fn label<'a>(profiles: &[&'a NumeracyProfile], index: usize) -> &'a str {
    let profile = profiles[index];
    let is_same = |(other, one): (usize, &&NumeracyProfile)| other != index && one.model == profile.model;
    if profiles.iter().enumerate().any(is_same) { &profile.run } else { &profile.model }
}

/// Compares all skills that fall with the length in both, in the order of skills.
pub fn differences(one: &NumeracyProfile, other: &NumeracyProfile) -> Vec<LimitDifference> {
    let mut found = Vec::new();
    for mine in &one.results {
        let Some(theirs) = other.results.iter().find(|theirs| theirs.skill == mine.skill) else { continue };
        let limits = [mine, theirs].map(|result| result.measured.limit(0.5).copied());
        if let (Some(p), [Some(first), Some(second)]) = (same_curve(mine, theirs), limits) {
            found.push((mine.skill, [first, second], p));
        }
    }
    let p_values: Vec<f64> = found.iter().map(|(_, _, p)| *p).collect();
    // Probabilities are between 0 and 1.
    let adjusted = holm(&p_values).unwrap_or(p_values);
    let difference = |((skill, limits, p), p_holm): ((&'static Skill, [Limit; 2], f64), f64)| LimitDifference {
        task: skill.task.clone(),
        family: skill.family,
        title: skill.title.clone(),
        limits,
        p,
        p_holm,
        holds: p_holm < LEVEL,
    };
    found.into_iter().zip(adjusted).map(difference).collect()
}
