//! The integers of the questions (Figure 7).
use serde::{Deserialize, Serialize};

use crate::gsm_symbolic::published::NUMBER_BINS;
use earnest_stats::kolmogorov_smirnov::{KsMethod, kolmogorov_smirnov};
use earnest_tasks::suite::gsm_symbolic::large_numbers::{binned, integers};

/// Comparison of the integers in GSM-Base and GSM-Variants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NumberDistribution {
    pub base_integers: usize,
    pub variant_integers: usize,
    /// Shares by bin of [`NUMBER_BINS`], per cent.
    pub base_shares: Vec<f64>,
    pub variant_shares: Vec<f64>,
    /// Cumulative shares: (number, per cent of base up to it, per cent of variants), from -5 to 105 as in the figure.
    pub cumulative: Vec<(i32, f64, f64)>,
    /// Two-sample Kolmogorov-Smirnov, two-sided; absent if one side has no integer.
    pub statistic: Option<f64>,
    pub p: Option<f64>,
}

impl NumberDistribution {
    /// Compares the integers of questions, given with their sets; questions of sets other than base and main are ignored.
    pub fn of_questions<'a>(questions: impl IntoIterator<Item = (Option<&'a str>, &'a str)>) -> Self {
        let (mut base, mut variants) = (Vec::new(), Vec::new());
        for (set, question) in questions {
            match set {
                Some("base") => base.extend(integers(question)),
                Some("main") => variants.extend(integers(question)),
                _ => {}
            }
        }
        Self::new(&base, &variants)
    }

    /// Compares two samples of integers.
    pub fn new(base: &[f64], variants: &[f64]) -> Self {
        let test = kolmogorov_smirnov(base, variants, KsMethod::Auto).ok();
        let up_to = |values: &[f64], limit: f64| {
            let below = values.iter().filter(|value| **value <= limit).count();
            if values.is_empty() { 0.0 } else { 100.0 * below as f64 / values.len() as f64 }
        };
        NumberDistribution {
            base_integers: base.len(),
            variant_integers: variants.len(),
            base_shares: binned(base).map(|share| 100.0 * share).to_vec(),
            variant_shares: binned(variants).map(|share| 100.0 * share).to_vec(),
            cumulative: (-5..=105).map(|x| (x, up_to(base, f64::from(x)), up_to(variants, f64::from(x)))).collect(),
            statistic: test.as_ref().map(|test| test.statistic),
            p: test.as_ref().map(|test| test.p),
        }
    }
}

/// Label of a bin.
pub(super) fn bin_name(bin: usize) -> String {
    match NUMBER_BINS.get(bin + 1) {
        Some(high) => format!("[{}, {high})", NUMBER_BINS[bin]),
        None => format!("{} and more", NUMBER_BINS[bin]),
    }
}
