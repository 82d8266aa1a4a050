//! Paired differences of accuracies.
use std::collections::HashMap;

use serde::Serialize;

use super::pairing::Pair;
use earnest_results::scores::ItemScore;
use earnest_stats::{
    Answers, PairedAnswers, PairedCounts, PairedDesign, PairedTest, PairedVerdict, Rates, mcnemar, paired_verdict,
    t_reach,
};

/// Fewest differing pairs for which a detectable difference is given: five that all differ in one direction have p = 0.0625 by McNemar's
/// exact test.
const FEWEST_DIFFERING: usize = 6;

/// A difference of accuracies, `run - baseline`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// `all`, the task, or the kind of perturbation.
    pub name: String,
    pub items: usize,
    pub clusters: usize,
    /// Items without a label of their cluster, where others have one: each is its own.
    pub without_label: usize,
    pub baseline: f64,
    pub run: f64,
    pub difference: f64,
    /// 95 % interval that contains 0 if and only if `p` is at least 0.05; none with fewer than two clusters.
    pub interval: Option<(f64, f64)>,
    /// p value by `test`.
    pub p: Option<f64>,
    /// Test behind `p` and the intervals; none with fewer than two clusters.
    pub test: Option<PairedTest>,
    /// Reason for that test, a clause; the sides are "the baseline" and "the run".
    pub test_reason: Option<String>,
    /// Standard error of `p`, where it is by Monte Carlo.
    pub p_error: Option<f64>,
    /// p value of the t test that is robust to clusters, whether or not it is `p`.
    pub cluster_t_p: Option<f64>,
    /// p value adjusted by Holm's method over the family: the chance of any false positive among them.
    pub p_holm: Option<f64>,
    /// p value adjusted by the method of Benjamini and Hochberg over the same family: the share of false ones among those that hold.
    pub p_bh: Option<f64>,
    /// Number of tests in the family.
    pub family: usize,
    /// Members of the family: `runs`, `tasks`, `perturbations` or `differences`; none of a test that was not adjusted.
    pub family_of: Option<&'static str>,
    /// Simultaneous 95 % interval over the family (Bonferroni).
    pub simultaneous_interval: Option<(f64, f64)>,
    /// McNemar's exact p value, where every item was asked once in both runs; assumes independent items.
    pub mcnemar_p: Option<f64>,
    /// Number of pairs with different outcomes, or different shares.
    pub differing: usize,
    /// Smallest detectable difference (80 % power, 5 % level) of the t test, from the observed standard error; at least what the exact
    /// test of as many clusters needs. None without a standard error, if fewer than six pairs differ, or if it exceeds the largest
    /// difference possible from the baseline.
    pub detectable: Option<f64>,
    /// The same where it is a drop that is possible from the baseline.
    pub detectable_drop: Option<f64>,
    /// The same where it is a rise that is possible from the baseline.
    pub detectable_rise: Option<f64>,
    /// Smallest detectable difference at the Bonferroni-adjusted level of the family.
    pub detectable_in_family: Option<f64>,
    /// Discordance: share of items with different outcomes; the mean absolute difference of shares with several samples an item.
    pub disagreement: f64,
    /// Smallest detectable difference from the number of items, the clusters and the discordance alone, at intracluster
    /// correlation 0.
    pub detectable_before: Option<f64>,
    /// Smallest detectable difference at intracluster correlation 1, the other extreme.
    pub detectable_before_alike: Option<f64>,
    /// True if every number is a share from 0 to 1; others are shown as they are.
    pub shares: bool,
    /// Standard error of the difference that is robust to clusters, with the factor `G / (G - 1)`.
    pub standard_error: Option<f64>,
    /// Standard error of the difference of independent items.
    pub naive_error: Option<f64>,
    #[serde(skip)]
    pub(super) verdict: Option<PairedVerdict>,
}

impl Difference {
    /// Returns the smallest detectable difference at these rates, if one is possible and enough pairs differ to say.
    pub(super) fn smallest_detectable(&self, rates: Rates) -> Option<f64> {
        // A standard error of a few differing pairs is no measure of what others would show.
        self.reached(rates).filter(|_| self.differing >= FEWEST_DIFFERING)
    }

    /// The difference that the observed standard error reaches at these rates, if it is possible.
    fn reached(&self, rates: Rates) -> Option<f64> {
        // A zero error only means that nothing differed in this sample.
        let verdict = self.verdict.as_ref()?;
        let error = verdict.planning_error();
        let size = t_reach(verdict.robust.degrees_of_freedom + 1.0, rates.alpha, rates.power) * error;
        let least = match verdict.test {
            PairedTest::ClusterT => 0.0,
            _ => fewest_clusters(self.clusters, rates)? * self.clusters as f64 / self.items as f64,
        };
        let size = size.max(least);
        (error > 0.0 && (self.has_room(size, false) || self.has_room(size, true))).then_some(size)
    }

    /// True if the baseline leaves room for a rise, or a drop, of this size.
    pub(super) fn has_room(&self, size: f64, rise: bool) -> bool {
        !self.shares || size <= if rise { 1.0 - self.baseline } else { self.baseline }
    }

    /// The smallest detectable difference in a direction.
    fn detectable_towards(&self, rise: bool) -> Option<f64> {
        self.detectable.filter(|size| self.has_room(*size, rise))
    }

    /// True if fewer pairs differ than the exact test needs to find a difference at 5 % at all.
    pub fn has_few_differing(&self) -> bool {
        self.differing < FEWEST_DIFFERING && (self.differing == 0 || self.reached(Rates::default()).is_some())
    }

    /// Returns the interval at a confidence level, clipped to -1 and 1.
    pub(super) fn interval_at(&self, level: f64) -> Option<(f64, f64)> {
        let (low, high) = self.verdict.as_ref()?.interval(level)?;
        Some(if self.shares { (low.max(-1.0), high.min(1.0)) } else { (low, high) })
    }

    /// Formats a difference: in points, or as it is where the numbers are no shares.
    pub fn size(&self, value: f64) -> String {
        if self.shares { format!("{:.1} points", 100.0 * value) } else { format!("{value:.3}") }
    }

    /// Returns the smallest detectable difference in points for a table, with its sign if only one direction is possible: `-` without a standard error, `few` if too few pairs differ to
    /// say, `none` if no difference is detectable.
    pub fn detectable_text(&self) -> String {
        match (self.interval, self.detectable) {
            (None, _) => "-".to_owned(),
            (Some(_), None) if self.has_few_differing() => "few".to_owned(),
            (Some(_), None) => "none".to_owned(),
            (Some(_), Some(size)) if self.shares => {
                let sign = match (self.detectable_drop, self.detectable_rise) {
                    (None, Some(_)) => "+",
                    (Some(_), None) => "-",
                    _ => "",
                };
                format!("{sign}{:.1}", 100.0 * size)
            }
            (Some(_), Some(size)) => format!("{size:.3}"),
        }
    }
}

/// Estimates the difference over these pairs; family fields are those of a single test.
pub(super) fn difference(name: &str, pairs: &[&Pair<'_>]) -> Difference {
    let first: Vec<f64> = pairs.iter().map(|pair| pair.baseline()).collect();
    let second: Vec<f64> = pairs.iter().map(|pair| pair.run()).collect();
    let mut numbers: HashMap<&str, u64> = HashMap::new();
    let clusters: Vec<u64> = pairs
        .iter()
        .map(|pair| {
            let next = numbers.len() as u64;
            *numbers.entry(pair.cluster()).or_insert(next)
        })
        .collect();
    // An empty sum is -0.0.
    let mean = |values: &[f64]| (values.iter().sum::<f64>() + 0.0) / values.len().max(1) as f64;
    let answers = |scores: &[&ItemScore]| -> Vec<Answers> {
        scores.iter().map(|score| Answers { sum: score.sum, count: score.samples }).collect()
    };
    let paired: Vec<PairedAnswers> = pairs
        .iter()
        .zip(&clusters)
        .map(|(pair, cluster)| PairedAnswers {
            cluster: *cluster,
            first: answers(&pair.first),
            second: answers(&pair.second),
        })
        .collect();
    let verdict = paired_verdict(&paired).ok();
    let robust = verdict.as_ref().map(|verdict| verdict.robust);
    let is = |test: fn(f64) -> bool| first.iter().chain(&second).all(|value| test(*value));
    let shares = is(|value| (0.0..=1.0).contains(&value));
    // Fractions are neither right nor wrong.
    let once = pairs.iter().all(|pair| pair.is_single()) && is(|value| value == 0.0 || value == 1.0);
    let counts = PairedCounts::of(pairs.iter().map(|pair| (pair.baseline() > 0.0, pair.run() > 0.0)));
    let changes: Vec<f64> = first.iter().zip(&second).map(|(first, second)| (second - first).abs()).collect();
    let design = Design { changes: &changes, clusters: &clusters };
    let mut difference = Difference {
        name: name.to_owned(),
        items: pairs.len(),
        clusters: numbers.len(),
        without_label: pairs.iter().filter(|pair| pair.lacks_label()).count(),
        baseline: mean(&first),
        run: mean(&second),
        difference: mean(&second) - mean(&first),
        interval: None,
        p: verdict.as_ref().filter(|verdict| verdict.has_p()).map(|verdict| verdict.p),
        test: verdict.as_ref().filter(|verdict| verdict.has_p()).map(|verdict| verdict.test),
        test_reason: verdict.as_ref().map(|verdict| verdict.reason.clause(["the baseline", "the run"])),
        p_error: verdict.as_ref().and_then(|verdict| verdict.p_error),
        cluster_t_p: robust.filter(|robust| robust.standard_error > 0.0 || robust.mean == 0.0).map(|robust| robust.p()),
        p_holm: None,
        p_bh: None,
        family: 1,
        family_of: None,
        simultaneous_interval: None,
        mcnemar_p: (once && !pairs.is_empty()).then(|| mcnemar(&counts).exact_p),
        differing: changes.iter().filter(|change| **change != 0.0).count(),
        detectable: None,
        detectable_drop: None,
        detectable_rise: None,
        detectable_in_family: None,
        disagreement: mean(&changes),
        detectable_before: design.smallest_detectable(0.0).filter(|_| shares),
        detectable_before_alike: design.smallest_detectable(1.0).filter(|_| shares),
        shares,
        standard_error: robust.map(|robust| robust.standard_error),
        naive_error: robust.map(|robust| robust.naive_error),
        verdict,
    };
    difference.interval = difference.interval_at(0.95);
    difference.detectable = difference.smallest_detectable(Rates::default());
    difference.detectable_drop = difference.detectable_towards(false);
    difference.detectable_rise = difference.detectable_towards(true);
    (difference.simultaneous_interval, difference.detectable_in_family) = (difference.interval, difference.detectable);
    difference
}

/// Share of clusters that must differ, all in one direction, for an exact test by sign flips to find it at these rates; none if there are
/// too few clusters. Two of `2^k` exchanges of `k` clusters that differ in one direction are as far.
fn fewest_clusters(clusters: usize, rates: Rates) -> Option<f64> {
    let needed = (2.0 / rates.alpha).log2().floor() as usize + 1;
    if needed > clusters {
        return None;
    }
    let power = |share: f64| 1.0 - binomial_lower(needed - 1, clusters, share);
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if power(middle) < rates.power { low = middle } else { high = middle }
    }
    Some(high)
}

/// Probability of at most `most` successes.
fn binomial_lower(most: usize, count: usize, share: f64) -> f64 {
    let mut probability = (1.0 - share).powi(count as i32);
    let mut sum = probability;
    for successes in 1..=most {
        probability *= (count + 1 - successes) as f64 / successes as f64 * share / (1.0 - share).max(f64::MIN_POSITIVE);
        sum += probability;
    }
    sum
}

/// Paired design: absolute differences by item, and the clusters of the items.
struct Design<'a> {
    changes: &'a [f64],
    clusters: &'a [u64],
}

impl Design<'_> {
    /// Returns the smallest detectable difference at this intracluster correlation.
    fn smallest_detectable(&self, intracluster: f64) -> Option<f64> {
        let count = self.changes.len() as f64;
        let disagreement = self.changes.iter().sum::<f64>() / count;
        let square = self.changes.iter().map(|change| change * change).sum::<f64>() / count;
        let mut sizes: HashMap<u64, f64> = HashMap::new();
        for cluster in self.clusters {
            *sizes.entry(*cluster).or_default() += 1.0;
        }
        // The variance grows with the sum of squared cluster sizes.
        let mut squares: Vec<f64> = sizes.into_values().map(|size| size * size).collect();
        squares.sort_unstable_by(f64::total_cmp);
        let cluster_size = squares.iter().sum::<f64>() / count;
        // Differences of shares are scaled to the variance and range of single answers (-1, 0 and 1).
        let scale = disagreement / square;
        let design = PairedDesign { discordance: (disagreement * scale).min(1.0), cluster_size, intracluster };
        let effect = design.detectable_effect(count, Rates::default()).ok()?;
        // No difference exceeds the discordance.
        (effect < design.discordance).then_some(effect / scale)
    }
}
