//! Correlations that the paper states without numbers (4.5 and A.3), computed from its tables.
use serde::Serialize;

use crate::arithmetic_bench::published::{Table, tables};
use earnest_stats::{Coefficient, Correlation, correlation};

/// Correlation of two published columns over models.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedCorrelation {
    /// The two columns, the second with the tables.
    pub of: [String; 2],
    /// Pearson's r.
    pub pearson: Correlation,
    /// Spearman's rho.
    pub spearman: Correlation,
}

/// Computes the correlations: multiplication with AIME 2024 (Table 5), main tasks with sub-tasks (Tables 4 and 6, means).
pub(super) fn correlations() -> Vec<PublishedCorrelation> {
    let [main, multiplication, sub] = tables();
    let mean = |table: &Table, model: &str| {
        let values = table.values.get(model)?.values();
        Some(values.sum::<f64>() / table.values.get(model)?.len() as f64)
    };
    let aime: Vec<(f64, f64)> =
        multiplication.aime.iter().filter_map(|(model, aime)| Some((mean(multiplication, model)?, *aime))).collect();
    let tasks: Vec<(f64, f64)> =
        main.values.keys().filter_map(|model| Some((mean(main, model)?, mean(sub, model)?))).collect();
    [("mul", "AIME 2024 (Table 5)", aime), ("main", "sub-tasks (Tables 4, 6)", tasks)]
        .into_iter()
        .filter_map(|(first, second, pairs)| {
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let coefficient = |coefficient| correlation(&a, &b, coefficient).ok();
            Some(PublishedCorrelation {
                of: [first.to_owned(), second.to_owned()],
                pearson: coefficient(Coefficient::Pearson)?,
                spearman: coefficient(Coefficient::Spearman)?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_correlations_are_there() {
        let [aime, tasks] = &correlations()[..] else { panic!("two correlations") };
        assert_eq!((aime.pearson.n, tasks.pearson.n), (6, 21));
        assert!((aime.pearson.value - 0.972_692).abs() < 1e-6 && (aime.spearman.value - 0.753_702).abs() < 1e-6);
        // Six models do not show a monotone relation.
        assert!(aime.spearman.interval.unwrap().0 < 0.0 && tasks.spearman.interval.unwrap().0 > 0.0, "{tasks:?}");
    }
}
