//! The cluster bootstrap: resamples whole clusters, so any dependence inside them is kept.
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::Serialize;
use thiserror::Error;

use super::distribution::{normal_cdf, normal_quantile};
use super::mixed::{MixedData, MixedError, MixedFit, MixedOptions, fit, limit};

/// Most resamples: beyond, an interval gains no digit that is shown.
pub const MOST_RESAMPLES: usize = 10_000_000;

/// Reason for a bootstrap having no result.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum BootstrapError {
    /// Clusters vary between resamples only if there are two.
    #[error("{clusters} clusters: a cluster bootstrap needs at least two")]
    TooFewClusters { clusters: usize },
    /// Too few resamples to take quantiles of.
    #[error("{resamples} resamples, expected at least 2")]
    TooFewResamples { resamples: usize },
    /// More resamples than memory or patience holds.
    #[error("{resamples} resamples, expected at most {MOST_RESAMPLES}")]
    TooManyResamples { resamples: usize },
    /// The statistic of the data themselves is not defined.
    #[error("the statistic has no value on the data themselves")]
    Undefined,
    /// Less than half of the resamples have a value.
    #[error("only {usable} of {resamples} resamples have a value of the statistic")]
    NothingUsable { usable: usize, resamples: usize },
    /// The confidence level is unusable.
    #[error("confidence level {level}, expected a number between 0 and 1, e.g. 0.95")]
    Confidence { level: f64 },
    /// A model option is unusable.
    #[error(transparent)]
    Model(#[from] MixedError),
}

/// Result of a resample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    Value(f64),
    /// A value at the boundary of the parameters (singular): kept apart.
    Singular(f64),
    /// The fit did not converge.
    NotConverged,
    /// There is no value (separation, constant response).
    Failed,
}

/// Counts of the outcomes; nothing is dropped silently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct OutcomeCounts {
    /// Ordinary values.
    pub clean: usize,
    /// Values of singular fits; they are part of the intervals, as the resample is legitimate data.
    pub singular: usize,
    /// Fits that did not converge.
    pub not_converged: usize,
    /// Resamples without a value.
    pub failed: usize,
}

/// Bootstrap intervals.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bootstrap {
    /// The statistic on the data.
    pub estimate: f64,
    /// Mean of the resamples' values minus the estimate.
    pub bias: f64,
    /// Their standard deviation (n - 1).
    pub standard_error: f64,
    /// Their skewness.
    pub skewness: f64,
    /// Percentile interval.
    pub percentile: (f64, f64),
    /// Bias-corrected and accelerated interval (Efron 1987); absent if the jackknife or the correction is not defined.
    pub bca: Option<(f64, f64)>,
    /// Resamples by outcome.
    pub counts: OutcomeCounts,
}

/// Resamples clusters with replacement. `statistic` gets the drawn cluster indices (a cluster may occur several times, and
/// each copy is then a cluster of its own) and is called in parallel; results depend on the seed only.
pub fn cluster_bootstrap(
    clusters: usize,
    resamples: usize,
    seed: u64,
    level: f64,
    statistic: impl Fn(&[usize]) -> Outcome + Sync,
) -> Result<Bootstrap, BootstrapError> {
    if clusters < 2 {
        return Err(BootstrapError::TooFewClusters { clusters });
    }
    if resamples < 2 {
        return Err(BootstrapError::TooFewResamples { resamples });
    }
    if resamples > MOST_RESAMPLES {
        return Err(BootstrapError::TooManyResamples { resamples });
    }
    if !(level > 0.0 && level < 1.0) {
        return Err(BootstrapError::Confidence { level });
    }
    let value = |outcome: Outcome| match outcome {
        Outcome::Value(value) | Outcome::Singular(value) if value.is_finite() => Some(value),
        _ => None,
    };
    let everything: Vec<usize> = (0..clusters).collect();
    let estimate = value(statistic(&everything)).ok_or(BootstrapError::Undefined)?;
    let outcomes: Vec<Outcome> = (0..resamples as u64)
        .into_par_iter()
        .map(|resample| {
            // A stream for each resample: the draws do not depend on which thread made them.
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            random.set_stream(resample);
            let drawn: Vec<usize> = (0..clusters).map(|_| below(&mut random, clusters)).collect();
            statistic(&drawn)
        })
        .collect();
    let mut counts = OutcomeCounts::default();
    for outcome in &outcomes {
        match outcome {
            Outcome::Value(value) if value.is_finite() => counts.clean += 1,
            Outcome::Singular(value) if value.is_finite() => counts.singular += 1,
            Outcome::NotConverged => counts.not_converged += 1,
            _ => counts.failed += 1,
        }
    }
    let mut values: Vec<f64> = outcomes.into_iter().filter_map(value).collect();
    if values.len() < 2 || 2 * values.len() < resamples {
        return Err(BootstrapError::NothingUsable { usable: values.len(), resamples });
    }
    values.sort_unstable_by(f64::total_cmp);
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let moment = |power: i32| values.iter().map(|value| (value - mean).powi(power)).sum::<f64>() / count;
    let standard_error = (moment(2) * count / (count - 1.0)).sqrt();
    let tail = 0.5 * (1.0 - level);
    let jackknife: Option<Vec<f64>> = everything
        .par_iter()
        .map(|left_out| {
            let kept: Vec<usize> = everything.iter().copied().filter(|cluster| cluster != left_out).collect();
            value(statistic(&kept))
        })
        .collect();
    Ok(Bootstrap {
        estimate,
        bias: mean - estimate,
        standard_error,
        skewness: if moment(2) > 0.0 { moment(3) / moment(2).powf(1.5) } else { 0.0 },
        percentile: (quantile(&values, tail), quantile(&values, 1.0 - tail)),
        bca: jackknife.and_then(|jackknife| bca(&values, estimate, &jackknife, tail)),
        counts,
    })
}

/// A uniform integer below `limit`, without modulo bias.
pub(crate) fn below(random: &mut ChaCha8Rng, limit: usize) -> usize {
    let limit = limit as u64;
    let reject_from = u64::MAX - u64::MAX % limit;
    loop {
        let drawn = random.next_u64();
        if drawn < reject_from {
            return (drawn % limit) as usize;
        }
    }
}

/// The quantile of sorted values, linear between order statistics (numpy's default).
fn quantile(sorted: &[f64], probability: f64) -> f64 {
    let position = probability.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (position - below as f64) * (sorted[above] - sorted[below])
}

fn bca(sorted: &[f64], estimate: f64, jackknife: &[f64], tail: f64) -> Option<(f64, f64)> {
    let count = sorted.len() as f64;
    // Ties count half, as for discrete statistics all of them would else fall on one side.
    let smaller = sorted.iter().filter(|value| **value < estimate).count() as f64;
    let equal = sorted.iter().filter(|value| **value == estimate).count() as f64;
    let correction = normal_quantile((smaller + 0.5 * equal) / count);
    let mean = jackknife.iter().sum::<f64>() / jackknife.len() as f64;
    let sum = |power: i32| jackknife.iter().map(|value| (mean - value).powi(power)).sum::<f64>();
    let acceleration = if sum(2) > 0.0 { sum(3) / (6.0 * sum(2).powf(1.5)) } else { 0.0 };
    let end = |probability: f64| {
        let z = correction + normal_quantile(probability);
        let adjusted = correction + z / (1.0 - acceleration * z);
        adjusted.is_finite().then(|| quantile(sorted, normal_cdf(adjusted)))
    };
    Some((end(tail)?, end(1.0 - tail)?))
}

/// Bootstraps a coefficient of a mixed model with one grouping factor: every copy of a group is a group of its own and the model is refitted
/// (specification, section 7).
pub fn bootstrap_model(
    data: &MixedData,
    options: &MixedOptions,
    coefficient: &str,
    resamples: usize,
    seed: u64,
    level: f64,
) -> Result<Bootstrap, BootstrapError> {
    // Options are checked once here, so that a failure below can only be the data's.
    fit(data, options)?;
    cluster_bootstrap(data.first_groups(), resamples, seed, level, |groups| {
        let Ok(drawn) = data.resampled(groups) else { return Outcome::Failed };
        // A column that does not vary in a resample leaves the others with another meaning.
        if drawn.columns() != data.columns() {
            return Outcome::Failed;
        }
        let refitted = || -> Result<MixedFit, MixedError> {
            let found = fit(&drawn, options)?;
            Ok(match limit(&drawn, options)? {
                Some(limit) => found.with_limit(&limit),
                None => found,
            })
        };
        let Ok(found) = refitted() else { return Outcome::Failed };
        match found.coefficient(coefficient).and_then(|coefficient| coefficient.estimate) {
            None => Outcome::Failed,
            Some(_) if found.is("not-converged") || found.is("indefinite-hessian") => Outcome::NotConverged,
            Some(value) if found.singular => Outcome::Singular(value),
            Some(value) => Outcome::Value(value),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn means() -> Vec<f64> {
        (0..60).map(|i| f64::from((i * 37 + 11) % 61).powi(2) / 400.0).collect()
    }

    fn mean_of(values: &[f64]) -> impl Fn(&[usize]) -> Outcome + Sync + '_ {
        |drawn| Outcome::Value(drawn.iter().map(|&index| values[index]).sum::<f64>() / drawn.len() as f64)
    }

    #[test]
    fn the_error_of_a_mean_is_the_textbook_one() {
        let values = means();
        let found = cluster_bootstrap(60, 4000, 7, 0.95, mean_of(&values)).unwrap();
        let mean = values.iter().sum::<f64>() / 60.0;
        let expected = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 60.0 / 60.0).sqrt();
        assert!((found.standard_error / expected - 1.0).abs() < 0.04, "{found:?} {expected}");
        assert_eq!(found.counts, OutcomeCounts { clean: 4000, ..OutcomeCounts::default() });
        // The values are skewed to the right, so is the accelerated interval.
        let (low, high) = found.bca.unwrap();
        assert!(low > found.percentile.0 && high > found.percentile.1, "{found:?}");
    }

    #[test]
    fn a_seed_gives_the_same_numbers_and_another_seed_others() {
        let values = means();
        let run = |seed| cluster_bootstrap(60, 200, seed, 0.9, mean_of(&values)).unwrap();
        assert_eq!(run(1), run(1));
        assert_ne!(run(1).percentile, run(2).percentile);
    }

    #[test]
    fn failures_are_counted_and_too_many_are_an_error() {
        let some = cluster_bootstrap(10, 300, 3, 0.95, |drawn| match drawn {
            whole if whole.len() == 10 && whole.windows(2).all(|pair| pair[0] < pair[1]) => Outcome::Value(1.0),
            [0, ..] => Outcome::Failed,
            [1, ..] => Outcome::NotConverged,
            [2, ..] => Outcome::Singular(1.5),
            drawn => Outcome::Value(drawn[1] as f64),
        })
        .unwrap();
        let counts = some.counts;
        assert!(counts.failed > 0 && counts.not_converged > 0 && counts.singular > 0, "{counts:?}");
        assert_eq!(counts.clean + counts.failed + counts.not_converged + counts.singular, 300);
        let whole = |drawn: &[usize]| drawn.windows(2).all(|pair| pair[0] < pair[1]);
        let none = |drawn: &[usize]| if whole(drawn) { Outcome::Value(0.0) } else { Outcome::Failed };
        assert!(matches!(cluster_bootstrap(10, 50, 3, 0.95, none), Err(BootstrapError::NothingUsable { .. })));
        assert_eq!(cluster_bootstrap(1, 50, 3, 0.95, none), Err(BootstrapError::TooFewClusters { clusters: 1 }));
        assert_eq!(cluster_bootstrap(5, 50, 3, 0.95, |_| Outcome::Failed), Err(BootstrapError::Undefined));
    }

    #[test]
    fn a_resampled_model_agrees_with_its_wald_error() {
        // 40 groups, a clear effect; the bootstrap error of the coefficient is near the model's.
        let (mut response, mut variant, mut group) = (Vec::new(), Vec::new(), Vec::new());
        let mut random = ChaCha8Rng::seed_from_u64(5);
        for template in 0..40_u64 {
            let level = (template % 9) as f64 * 0.4 - 1.6;
            for question in 0..20 {
                let condition = f64::from(u8::from(question % 2 == 0));
                let probability = 1.0 / (1.0 + (-(level + 0.8 * condition)).exp());
                response.push(f64::from(u8::from(random.next_u64() as f64 / u64::MAX as f64 <= probability)));
                variant.push(condition);
                group.push(template);
            }
        }
        let data = MixedData::of_columns(&response, &[("variant", &variant)], &group).unwrap();
        let options = MixedOptions::default();
        let single = fit(&data, &options).unwrap();
        let found = bootstrap_model(&data, &options, "variant", 200, 1, 0.95).unwrap();
        let wald = single.coefficient("variant").unwrap().standard_error.unwrap();
        assert!((found.standard_error / wald - 1.0).abs() < 0.3, "{found:?} {wald}");
        assert_eq!(Some(found.estimate), single.coefficient("variant").unwrap().estimate);
        assert!(found.bca.is_some() && found.counts.clean >= 195, "{found:?}");
    }
}
