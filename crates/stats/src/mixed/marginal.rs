//! Marginal effects: probabilities averaged over the random effects and over the rows.
use std::collections::HashMap;

use serde::Serialize;

use super::MixedError;
use super::data::{Family, MixedData};
use super::design::Values;
use super::frame::Column;
use super::laplace::logistic;
use super::result::MixedFit;
use super::rule::of_normal;
use super::theta::Theta;
use crate::matrix::Matrix;
use crate::multiplicity::{benjamini_hochberg, holm};

/// Levels of a factor, averaged over all rows as if they had each level, with their comparisons.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Marginal {
    /// None for the average over all rows as they are.
    pub factor: Option<String>,
    pub confidence: f64,
    pub levels: Vec<MarginalLevel>,
    pub differences: Vec<MarginalDifference>,
}

/// The mean response at a level: a probability, or in the response's unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MarginalLevel {
    pub level: String,
    pub mean: f64,
    pub standard_error: f64,
    pub low: f64,
    pub high: f64,
}

/// A level minus another one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MarginalDifference {
    pub level: String,
    pub against: String,
    /// Of the mean responses, by the delta method.
    pub difference: f64,
    pub standard_error: f64,
    pub low: f64,
    pub high: f64,
    /// Of the linear predictor: the logarithm of an odds ratio.
    pub log_odds: f64,
    pub log_odds_error: f64,
    pub z: f64,
    pub p: f64,
    /// p value adjusted for all comparisons of the factor, by Holm's method and by Benjamini and Hochberg's.
    pub holm: f64,
    pub benjamini_hochberg: f64,
    /// Number of comparisons of the factor.
    pub family_size: usize,
}

/// A level's mean and its derivatives.
struct Averaged {
    mean: f64,
    /// By (theta, coefficients).
    slope: Vec<f64>,
    /// Mean row of the design.
    row: Vec<f64>,
}

/// Marginal means of a factor's levels and all pairwise differences; without a factor, the mean over all rows.
///
/// The integral over the random effects of new groups is one-dimensional, because their sum is normal, and done by the trapezoidal rule;
/// standard errors are by the delta method.
pub fn marginal(
    data: &MixedData,
    fit: &MixedFit,
    factor: Option<&str>,
    confidence: f64,
) -> Result<Marginal, MixedError> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(MixedError::Confidence { level: confidence });
    }
    let Some(beta) = fit.estimates() else {
        return Err(MixedError::NotEstimated {
            reason: "the model has no finite estimates, so no marginal effects".into(),
        });
    };
    if data.family == Family::Binomial && fit.joint.is_empty() {
        return Err(MixedError::NotEstimated {
            reason: "the fit has no covariance, so marginal effects have no errors".into(),
        });
    }
    let levels: Vec<(String, Option<u32>)> = match factor {
        None => vec![("(all rows)".to_owned(), None)],
        Some(name) => match data.frame.column(name)? {
            Column::Labels(labels) if data.formula.fixed.variables.iter().any(|known| known == name) => {
                labels.levels.iter().cloned().zip((0..).map(Some)).collect()
            }
            _ => {
                let present = factors(data).join(", ");
                return Err(MixedError::NoParameter { name: name.to_owned(), present });
            }
        },
    };
    for (name, level) in &levels {
        if let Some(column) = inestimable(data, factor.zip(*level))? {
            let reason = format!(
                "marginal effects are not defined: {column} could not be estimated, and some rows with {} at {name} would need it",
                factor.unwrap_or_default()
            );
            return Err(MixedError::NotEstimated { reason });
        }
    }
    let z = fit.reach(confidence);
    let averaged: Vec<Averaged> = levels
        .iter()
        .map(|(_, level)| averaged(data, fit, &beta, factor.zip(*level)))
        .collect::<Result<_, MixedError>>()?;
    let error = |slope: &[f64]| fit.variance(slope).max(0.0).sqrt();
    let binomial = data.family == Family::Binomial;
    let level = |((name, _), averaged): (&(String, Option<u32>), &Averaged)| {
        let standard_error = error(&averaged.slope);
        let (low, high) = if binomial {
            // Symmetric in log odds, so that the interval stays between 0 and 1.
            let odds = (averaged.mean / (1.0 - averaged.mean)).ln();
            let reach = z * standard_error / (averaged.mean * (1.0 - averaged.mean));
            (logistic(odds - reach).1, logistic(odds + reach).1)
        } else {
            (averaged.mean - z * standard_error, averaged.mean + z * standard_error)
        };
        MarginalLevel { level: name.clone(), mean: averaged.mean, standard_error, low, high }
    };
    let found = levels.iter().zip(&averaged).map(level).collect();
    let mut differences = Vec::new();
    for high in 1..averaged.len() {
        for low in 0..high {
            let minus =
                |left: &[f64], right: &[f64]| left.iter().zip(right).map(|(left, right)| left - right).collect();
            let slope: Vec<f64> = minus(&averaged[high].slope, &averaged[low].slope);
            let row: Vec<f64> = minus(&averaged[high].row, &averaged[low].row);
            let difference = averaged[high].mean - averaged[low].mean;
            let standard_error = error(&slope);
            let log_odds: f64 = row.iter().zip(&beta).map(|(row, beta)| row * beta).sum();
            let log_odds_error = fit.variance_of_coefficients(&row).max(0.0).sqrt();
            let statistic = difference / standard_error;
            differences.push(MarginalDifference {
                level: levels[high].0.clone(),
                against: levels[low].0.clone(),
                difference,
                standard_error,
                low: difference - z * standard_error,
                high: difference + z * standard_error,
                log_odds,
                log_odds_error,
                z: statistic,
                p: fit.two_sided(statistic),
                holm: f64::NAN,
                benjamini_hochberg: f64::NAN,
                family_size: averaged.len() * (averaged.len() - 1) / 2,
            });
        }
    }
    differences.sort_by_key(|one| levels.iter().position(|(name, _)| *name == one.against));
    let p_values: Vec<f64> = differences.iter().map(|one| one.p).collect();
    if let (Ok(by_holm), Ok(by_share)) = (holm(&p_values), benjamini_hochberg(&p_values)) {
        for (one, (by_holm, by_share)) in differences.iter_mut().zip(by_holm.into_iter().zip(by_share)) {
            (one.holm, one.benjamini_hochberg) = (by_holm, by_share);
        }
    }
    Ok(Marginal { factor: factor.map(str::to_owned), confidence, levels: found, differences })
}

/// The first aliased column that rows with a factor at one level would need: other columns do not determine it there as they do
/// in the data.
fn inestimable(data: &MixedData, changed: Option<(&str, u32)>) -> Result<Option<String>, MixedError> {
    let Some((name, level)) = changed.filter(|_| !data.aliased.is_empty()) else { return Ok(None) };
    let values = Values::of(&data.frame, &data.formula.fixed)?;
    let variables = &data.formula.fixed.variables;
    let own = variables.iter().position(|known| known == name).map(|slot| (slot, level));
    let row = |cell: usize, changed| -> Vec<f64> {
        data.columns.iter().map(|column| values.value(column, cell, changed)).collect()
    };
    let mut products = Matrix::zeros(data.columns.len());
    (0..data.cells()).for_each(|cell| products.add_outer(1.0, &row(cell, None)));
    let Some(inverse) = products.cholesky().map(|factor| factor.inverse()) else { return Ok(None) };
    for column in &data.aliased {
        let mut sums = vec![0.0; data.columns.len()];
        for cell in 0..data.cells() {
            let value = values.value(column, cell, None);
            sums.iter_mut().zip(row(cell, None)).for_each(|(sum, x)| *sum += value * x);
        }
        let weights = inverse.times(&sums);
        let largest = (0..data.cells()).map(|cell| values.value(column, cell, None).abs()).fold(1.0, f64::max);
        let is_off = |cell: usize| {
            let determined: f64 = row(cell, own).iter().zip(&weights).map(|(x, weight)| x * weight).sum();
            (values.value(column, cell, own) - determined).abs() > 1e-6 * largest
        };
        if (0..data.cells()).any(is_off) {
            return Ok(Some(column.name.clone()));
        }
    }
    Ok(None)
}

/// Factors among the fixed effects.
pub fn factors(data: &MixedData) -> Vec<String> {
    let is_factor = |name: &&String| matches!(data.frame.column(name), Ok(Column::Labels(_)));
    data.formula.fixed.variables.iter().filter(is_factor).cloned().collect()
}

fn averaged(
    data: &MixedData,
    fit: &MixedFit,
    beta: &[f64],
    changed: Option<(&str, u32)>,
) -> Result<Averaged, MixedError> {
    let theta = Theta::new(data);
    let count = theta.len();
    let factors = theta.factors(&fit.at[..count]);
    let fixed = Values::of(&data.frame, &data.formula.fixed)?;
    let slot = |variables: &[String]| {
        changed.and_then(|(name, level)| Some((variables.iter().position(|known| known == name)?, level)))
    };
    let own = slot(&data.formula.fixed.variables);
    let mut random = Vec::new();
    for grouping in &data.groupings {
        for block in &grouping.blocks {
            let effects = &data.formula.random[block.term].effects;
            random.push((grouping, block, Values::of(&data.frame, effects)?, slot(&effects.variables)));
        }
    }
    // Rows of equal columns are one.
    let mut index_of: HashMap<Vec<u64>, usize> = HashMap::new();
    let mut different: Vec<(f64, Vec<f64>, Vec<f64>)> = Vec::new();
    for cell in 0..data.cells() {
        let x: Vec<f64> = data.columns.iter().map(|column| fixed.value(column, cell, own)).collect();
        let mut z = Vec::new();
        for (grouping, block, values, changed) in &random {
            let columns = block.columns.iter().enumerate();
            z.extend(
                columns
                    .map(|(index, column)| values.value(column, cell, *changed) / grouping.scale[block.start + index]),
            );
        }
        let key = x.iter().chain(&z).map(|value| value.to_bits()).collect();
        let slot = *index_of.entry(key).or_insert(different.len());
        if slot == different.len() {
            different.push((0.0, x, z));
        }
        different[slot].0 += data.weight[cell];
    }
    // Nodes for the deviation of the last row: mostly all rows have one.
    let mut rule = (f64::NAN, Vec::new());
    let mut found = Averaged { mean: 0.0, slope: vec![0.0; count + beta.len()], row: vec![0.0; beta.len()] };
    for (rows, x, z) in &different {
        let share = rows / data.rows as f64;
        let eta: f64 = x.iter().zip(beta).map(|(x, beta)| x * beta).sum();
        found.row.iter_mut().zip(x).for_each(|(row, x)| *row += share * x);
        if data.family == Family::Gaussian {
            found.mean += share * eta;
            found.slope[count..].iter_mut().zip(x).for_each(|(slope, x)| *slope += share * x);
            continue;
        }
        // Lambda' z, by slot of the random effects' columns.
        let mut carried: Vec<(usize, usize, f64, f64)> = Vec::new();
        let mut at = 0;
        for (grouping, block, ..) in &random {
            let factor = data.groupings.iter().position(|other| other.name == grouping.name).unwrap_or_default();
            let size = block.columns.len();
            let own = &z[at..at + size];
            at += size;
            for (column, value) in own.iter().enumerate() {
                let slot = block.start + column;
                let lambda = |row: usize| factors[factor][(block.start + row) * grouping.width + slot];
                carried.push((factor, slot, own.iter().enumerate().map(|(row, z)| lambda(row) * z).sum(), *value));
            }
        }
        let variance: f64 = carried.iter().map(|(_, _, carried, _)| carried * carried).sum();
        let deviation = variance.sqrt();
        let (mut mean, mut first, mut second) = (0.0, 0.0, 0.0);
        if rule.0 != deviation {
            rule = (deviation, of_normal(deviation));
        }
        for (node, weight) in &rule.1 {
            let (_, probability) = logistic(eta + deviation * node);
            let slope = probability * (1.0 - probability);
            mean += weight * probability;
            first += weight * slope;
            // Half the expected second derivative is the derivative by the variance (Stein's identity).
            second += weight * slope * (1.0 - 2.0 * probability);
        }
        found.mean += share * mean;
        found.slope[count..].iter_mut().zip(x).for_each(|(slope, x)| *slope += share * first * x);
        for (index, entry) in theta.entries.iter().enumerate() {
            let of = |slot: usize| carried.iter().find(|one| (one.0, one.1) == (entry.factor, slot));
            if let (Some((.., z)), Some((_, _, carried, _))) = (of(entry.row), of(entry.column)) {
                found.slope[index] += share * second * z * carried;
            }
        }
    }
    Ok(found)
}
