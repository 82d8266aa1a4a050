//! Adaptive Gauss-Hermite quadrature of a binomial model's likelihood with exact derivatives, for models with one random effect a group.
//!
//! With `eta = x' beta + lambda z u`, `u ~ N(0, 1)`, and a group's log integrand `l(u) = log p(y | beta, u) - u^2 / 2` the criterion is
//! `-2 sum_groups log(sigma sum_k w_k exp(l(m + sigma n_k)))` with `m` the mode of `l`, `sigma^-2 = -l''(m)` and the rule's nodes `n_k` and
//! weights `w_k` (Pinheiro and Bates 1995, section 2.4): that of lme4 with `nAGQ` points. Nodes move with the parameters, and so do the
//! derivatives.
use std::collections::{BTreeMap, HashMap};

use super::data::MixedData;
use super::laplace::{Criterion, Laplace, logistic};
use super::layout::Layout;
use super::optimum::Mixed;
use super::rule::Rule;
use super::theta::Theta;
use crate::matrix::Matrix;

/// Points of the rule where none are asked for.
pub(super) const POINTS: usize = 25;

/// Newton steps for a mode, and the squared step at which it is found.
const MOST_STEPS: usize = 100;
const FOUND: f64 = 1e-24;

/// A cell of a group: its row of the fixed effects, its value of the random effect's column, its answers and the right ones.
#[derive(Debug, Clone, Copy)]
struct Cell {
    row: usize,
    z: f64,
    weight: f64,
    total: f64,
}

/// Groups whose cells are the same, which have the same integral.
#[derive(Debug)]
struct Pattern {
    /// A cell of each group.
    groups: Vec<usize>,
    cells: Vec<Cell>,
    /// Mode of the last evaluation, where the next search starts.
    mode: f64,
}

/// The criterion over (theta, coefficients of the orthonormal columns).
#[derive(Debug)]
pub(super) struct Quadrature<'d> {
    /// For starts, and for the prior of the coefficients.
    pub(super) laplace: Laplace<'d>,
    rule: Rule,
    patterns: Vec<Pattern>,
}

/// The integral of a group, with its derivatives, at given parameters.
struct Integral {
    /// Its logarithm.
    value: f64,
    /// Derivative by the deviation, and by the fixed part of every cell's predictor.
    by_lambda: f64,
    by_cell: Vec<f64>,
}

impl MixedData {
    /// True if the only random effect is one number a group.
    pub fn has_one_effect(&self) -> bool {
        matches!(&self.groupings[..], [grouping] if grouping.width == 1)
    }

    /// True if the only random effect is an intercept a group.
    pub fn has_one_intercept(&self) -> bool {
        self.has_one_effect() && self.groupings[0].blocks[0].columns[0].pieces.is_empty()
    }
}

impl<'d> Quadrature<'d> {
    /// The criterion of a model with one random effect a group.
    pub(super) fn new(data: &'d MixedData, layout: &'d Layout, points: usize) -> Self {
        let grouping = &data.groupings[0];
        let mut groups: BTreeMap<u32, (usize, Vec<Cell>)> = BTreeMap::new();
        let mut row_of: HashMap<Vec<u64>, usize> = HashMap::new();
        for cell in 0..data.cells() {
            let bits = data.fixed.cell(cell).iter().map(|x| x.to_bits()).collect();
            let row = *row_of.entry(bits).or_insert(cell);
            let (z, weight, total) = (grouping.cell(cell)[0], data.weight[cell], data.total[cell]);
            let (_, cells) = groups.entry(grouping.of_cell[cell]).or_insert((cell, Vec::new()));
            cells.push(Cell { row, z, weight, total });
        }
        let mut patterns: Vec<Pattern> = Vec::new();
        let mut pattern_of: HashMap<Vec<[u64; 4]>, usize> = HashMap::new();
        for (first, mut cells) in groups.into_values() {
            let key = |cell: &Cell| [cell.row as u64, cell.z.to_bits(), cell.weight.to_bits(), cell.total.to_bits()];
            cells.sort_by_key(key);
            let index = *pattern_of.entry(cells.iter().map(key).collect()).or_insert(patterns.len());
            match patterns.get_mut(index) {
                Some(known) => known.groups.push(first),
                None => patterns.push(Pattern { groups: vec![first], cells, mode: 0.0 }),
            }
        }
        Quadrature { laplace: Laplace::new(data, layout), rule: Rule::of(points), patterns }
    }
}

impl Pattern {
    /// Finds the mode of the log integrand, which is concave; none where the predictor is no number.
    fn find_mode(&mut self, lambda: f64, fixed: &[f64]) -> Option<()> {
        let value = |u: f64| {
            self.cells.iter().zip(fixed).map(|(cell, fixed)| cell.log(fixed + lambda * cell.z * u)).sum::<f64>()
                - 0.5 * u * u
        };
        let mut mode = if value(self.mode).is_finite() { self.mode } else { 0.0 };
        let mut here = value(mode);
        for _ in 0..MOST_STEPS {
            let (mut slope, mut curvature) = (-mode, 1.0);
            for (cell, fixed) in self.cells.iter().zip(fixed) {
                let mean = logistic(fixed + lambda * cell.z * mode).1;
                slope += lambda * cell.z * (cell.total - cell.weight * mean);
                curvature += (lambda * cell.z).powi(2) * cell.weight * mean * (1.0 - mean);
            }
            let step = slope / curvature;
            if !step.is_finite() {
                return None;
            }
            let mut length = 1.0;
            loop {
                let (trial, reached) = (mode + length * step, value(mode + length * step));
                if reached >= here - 1e-13 * here.abs() || length < 1e-6 {
                    (mode, here) = (trial, reached);
                    break;
                }
                length *= 0.5;
            }
            if step * step * curvature < FOUND {
                break;
            }
        }
        self.mode = mode;
        here.is_finite().then_some(())
    }

    /// The logarithm of the integral at the mode that was found, with its derivatives.
    fn integrate(&self, rule: &Rule, lambda: f64, fixed: &[f64]) -> Integral {
        let mode = self.mode;
        // At the mode: curvature, its derivative by u, and by cell weight and third derivative.
        let (mut curvature, mut turn) = (1.0, 0.0);
        let mut at_mode = Vec::with_capacity(self.cells.len());
        for (cell, fixed) in self.cells.iter().zip(fixed) {
            let mean = logistic(fixed + lambda * cell.z * mode).1;
            let weight = cell.weight * mean * (1.0 - mean);
            let third = weight * (1.0 - 2.0 * mean);
            curvature += (lambda * cell.z).powi(2) * weight;
            turn += (lambda * cell.z).powi(3) * third;
            at_mode.push((cell.total - cell.weight * mean, weight, third));
        }
        let sigma = curvature.sqrt().recip();
        let points = rule.nodes.len();
        let mut logs = Vec::with_capacity(points);
        let mut residuals = vec![0.0; points * self.cells.len()];
        for (node, residuals) in rule.nodes.iter().zip(residuals.chunks_exact_mut(self.cells.len())) {
            let u = mode + sigma * node;
            let mut log = -0.5 * u * u;
            for ((cell, fixed), residual) in self.cells.iter().zip(fixed).zip(residuals) {
                let eta = fixed + lambda * cell.z * u;
                log += cell.log(eta);
                *residual = cell.total - cell.weight * logistic(eta).1;
            }
            logs.push(log);
        }
        let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let parts: Vec<f64> =
            logs.iter().zip(&rule.weights).map(|(log, weight)| weight * (log - largest).exp()).collect();
        let sum: f64 = parts.iter().sum();
        // Over the nodes, in proportion to their parts: what moves the mode and the width, and the parameters themselves.
        let (mut by_mode, mut by_sigma, mut by_lambda) = (0.0, 0.0, 0.0);
        let mut by_cell = vec![0.0; self.cells.len()];
        for ((part, node), residuals) in parts.iter().zip(&rule.nodes).zip(residuals.chunks_exact(self.cells.len())) {
            let (share, u) = (part / sum, mode + sigma * node);
            let along: f64 = self.cells.iter().zip(residuals).map(|(cell, residual)| cell.z * residual).sum();
            let slope = lambda * along - u;
            by_mode += share * slope;
            by_sigma += share * slope * node;
            by_lambda += share * along * u;
            by_cell.iter_mut().zip(residuals).for_each(|(into, residual)| *into += share * residual);
        }
        by_sigma += sigma.recip();
        let narrower = -0.5 * sigma.powi(3);
        // By the deviation.
        let (mut mode_by, mut curvature_by) = (0.0, 0.0);
        for (cell, (residual, weight, third)) in self.cells.iter().zip(&at_mode) {
            mode_by += cell.z * residual - lambda * cell.z * cell.z * mode * weight;
            curvature_by += cell.z * cell.z * (2.0 * lambda * weight + lambda * lambda * third * cell.z * mode);
        }
        mode_by /= curvature;
        by_lambda += by_mode * mode_by + by_sigma * narrower * (curvature_by + turn * mode_by);
        // By the fixed part of every cell's predictor.
        for ((cell, (_, weight, third)), into) in self.cells.iter().zip(&at_mode).zip(&mut by_cell) {
            let mode_by = -lambda * cell.z * weight / curvature;
            let curvature_by = (lambda * cell.z).powi(2) * third;
            *into += by_mode * mode_by + by_sigma * narrower * (curvature_by + turn * mode_by);
        }
        Integral { value: sigma.ln() + largest + sum.ln(), by_lambda, by_cell }
    }
}

impl Cell {
    /// `log p(y | eta)` but for the binomial coefficient.
    fn log(&self, eta: f64) -> f64 {
        self.total * eta - self.weight * logistic(eta).0
    }
}

impl Quadrature<'_> {
    /// By group, a cell of it and the derivatives of its log-likelihood by (theta, coefficients of the orthonormal columns).
    pub(super) fn scores(&mut self, at: &[f64]) -> Option<Vec<(usize, Vec<f64>)>> {
        let mut found = Vec::new();
        for index in 0..self.patterns.len() {
            let integral = self.integral(index, at)?;
            let pattern = &self.patterns[index];
            let mut score = vec![0.0; at.len()];
            score[0] = integral.by_lambda;
            for (cell, slope) in pattern.cells.iter().zip(&integral.by_cell) {
                let row = self.laplace.system.data.fixed.cell(cell.row);
                score[1..].iter_mut().zip(row).for_each(|(into, x)| *into += slope * x);
            }
            found.extend(pattern.groups.iter().map(|&group| (group, score.clone())));
        }
        Some(found)
    }

    /// The integral of a pattern's groups.
    fn integral(&mut self, index: usize, at: &[f64]) -> Option<Integral> {
        let data = self.laplace.system.data;
        let pattern = &mut self.patterns[index];
        let predictor = |cell: &Cell| data.fixed.cell(cell.row).iter().zip(&at[1..]).map(|(x, beta)| x * beta).sum();
        let fixed: Vec<f64> = pattern.cells.iter().map(predictor).collect();
        pattern.find_mode(at[0], &fixed)?;
        Some(pattern.integrate(&self.rule, at[0], &fixed))
    }
}

impl Criterion for Quadrature<'_> {
    fn evaluate(&mut self, at: &[f64], mut gradient: Option<&mut [f64]>) -> Option<f64> {
        let data = self.laplace.system.data;
        let mut value = 0.0;
        if let Some(gradient) = gradient.as_deref_mut() {
            gradient.fill(0.0);
        }
        for index in 0..self.patterns.len() {
            let integral = self.integral(index, at)?;
            let pattern = &self.patterns[index];
            let groups = pattern.groups.len() as f64;
            value -= 2.0 * groups * integral.value;
            let Some(gradient) = gradient.as_deref_mut() else { continue };
            gradient[0] -= 2.0 * groups * integral.by_lambda;
            for (cell, slope) in pattern.cells.iter().zip(&integral.by_cell) {
                let row = data.fixed.cell(cell.row);
                gradient[1..].iter_mut().zip(row).for_each(|(into, x)| *into -= 2.0 * groups * slope * x);
            }
        }
        value += self.laplace.penalty(&at[1..], gradient.as_deref_mut().map(|gradient| &mut gradient[1..]));
        let finite =
            value.is_finite() && gradient.is_none_or(|gradient| gradient.iter().all(|slope| slope.is_finite()));
        finite.then_some(value)
    }
}

impl Mixed for Quadrature<'_> {
    fn theta(&self) -> &Theta {
        self.laplace.theta()
    }

    fn start(&mut self, deviation: f64) -> Option<(Vec<f64>, Matrix)> {
        self.patterns.iter_mut().for_each(|pattern| pattern.mode = 0.0);
        self.laplace.start(deviation)
    }

    fn parameters(&self) -> usize {
        self.laplace.parameters()
    }

    fn set_units(&mut self, units: &[f64]) {
        self.laplace.set_units(units);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::simulated;
    use super::super::{
        Family, Formula, Frame, IntegralChoice, Method, MixedOptions, fit, profile_interval, robust_errors,
    };
    use super::*;

    fn of(formula: &str, frame: &Frame) -> MixedData {
        let formula: Formula = formula.parse().unwrap();
        MixedData::new(&formula, frame, Family::Binomial).unwrap()
    }

    fn by_quadrature() -> MixedOptions {
        MixedOptions { integral: IntegralChoice::QUADRATURE, ..MixedOptions::default() }
    }

    /// Two runs' answers to questions: both right, neither, one of them.
    fn pairs(counts: [usize; 4]) -> Frame {
        let outcomes = [(1.0, 1.0), (0.0, 0.0), (1.0, 0.0), (0.0, 1.0)];
        let rows = outcomes.iter().zip(counts).flat_map(|(&outcome, count)| std::iter::repeat_n(outcome, count));
        let (mut question, mut run, mut right) = (Vec::new(), Vec::new(), Vec::new());
        for (index, (a, b)) in rows.enumerate() {
            question.extend([format!("q{index}"), format!("q{index}")]);
            run.extend(["a", "b"]);
            right.extend([a, b]);
        }
        let mut frame = Frame::new();
        frame.texts("question", question.iter().map(String::as_str)).unwrap();
        frame.texts("run", run.iter().copied()).unwrap();
        frame.number("right", right).unwrap();
        frame
    }

    #[test]
    fn two_answers_a_question_have_the_odds_ratio_of_the_discordant_pairs() {
        // With a saturated model of pairs the ratio is that of those that differ (Lindsay, Clogg and Grego 1991).
        let data = of("right ~ run + (1 | question)", &pairs([120, 66, 9, 25]));
        let fitted = fit(&data, &MixedOptions::default()).unwrap();
        assert!(fitted.converged && fitted.method == Method::Quadrature, "{fitted:?}");
        let effect = fitted.coefficient("runb").unwrap();
        assert!((effect.estimate.unwrap().exp() / (25.0 / 9.0) - 1.0).abs() < 0.002, "{effect:?}");
        // lme4 1.1-31 with nAGQ = 50.
        assert!((effect.estimate.unwrap() - 1.021674).abs() < 2e-3, "{effect:?}");
        assert!((effect.standard_error.unwrap() - 0.3887492).abs() < 2e-3, "{effect:?}");
        let laplace = MixedOptions { integral: IntegralChoice::Laplace, ..MixedOptions::default() };
        let laplace = fit(&data, &laplace).unwrap().coefficient("runb").unwrap().estimate.unwrap();
        assert!(laplace.exp() < 2.4, "{}", laplace.exp());
    }

    /// Questions that are nearly always both right or both wrong need more than 25 points. The saturated model's -2 log L bounds that of the
    /// fit, and its odds ratio is that of the discordant pairs.
    #[test]
    fn large_deviations_get_the_points_that_they_need() {
        for counts in [[300.0, 200.0, 9.0, 25.0], [150.0, 100.0, 5.0, 15.0]] {
            let data = of("right ~ run + (1 | question)", &pairs(counts.map(|count: f64| count as usize)));
            let fitted = fit(&data, &MixedOptions::default()).unwrap();
            let questions: f64 = counts.iter().sum();
            let bound: f64 = counts.iter().map(|count| -2.0 * count * (count / questions).ln()).sum();
            let ratio = fitted.coefficient("runb").unwrap().estimate.unwrap().exp();
            assert!((ratio / (counts[3] / counts[2]) - 1.0).abs() < 1e-3, "{ratio} {fitted:?}");
            assert!((fitted.minus_two_log_likelihood.unwrap() - bound).abs() < 1e-3, "{bound} {fitted:?}");
            let coarse = fit(&data, &by_quadrature()).unwrap();
            assert!(coarse.is("few-points") && fitted.points > 25, "{coarse:?}");
        }
    }

    #[test]
    fn derivatives_are_those_of_the_criterion() {
        let frame = simulated(15, 3, 11);
        for formula in ["correct ~ model*variant + (1 | template)", "correct ~ model + (0 + variant | template)"] {
            let data = of(formula, &frame);
            if !data.has_one_effect() {
                continue;
            }
            let layout = Layout::new(&data).unwrap();
            let mut criterion = Quadrature::new(&data, &layout, POINTS);
            for deviation in [0.4, 3.0] {
                let (mut at, _) = criterion.start(deviation).unwrap();
                at.iter_mut().enumerate().for_each(|(index, value)| *value += 0.05 * index as f64);
                let mut gradient = vec![0.0; at.len()];
                criterion.evaluate(&at, Some(&mut gradient)).unwrap();
                for index in 0..at.len() {
                    let mut at_distance = |distance: f64| {
                        let mut moved = at.clone();
                        moved[index] += distance;
                        criterion.evaluate(&moved, None).unwrap()
                    };
                    let step = 1e-4;
                    let numeric = (8.0 * (at_distance(step) - at_distance(-step))
                        - (at_distance(2.0 * step) - at_distance(-2.0 * step)))
                        / (12.0 * step);
                    assert!(
                        (gradient[index] - numeric).abs() < 1e-6 * (1.0 + numeric.abs()),
                        "{formula} {deviation} {index}: {} {numeric}",
                        gradient[index]
                    );
                }
                let sum = criterion.scores(&at).unwrap().iter().fold(vec![0.0; at.len()], |mut sum, (_, score)| {
                    sum.iter_mut().zip(score).for_each(|(sum, score)| *sum -= 2.0 * score);
                    sum
                });
                assert!(sum.iter().zip(&gradient).all(|(sum, slope)| (sum - slope).abs() < 1e-8 * (1.0 + slope.abs())));
            }
        }
    }

    #[test]
    fn profile_and_robust_errors_are_of_the_same_likelihood() {
        let frame = pairs([40, 60, 20, 35]);
        let data = of("right ~ run + (1 | question)", &frame);
        let fitted = fit(&data, &by_quadrature()).unwrap();
        let interval = profile_interval(&data, &fitted, "runb", 0.95).unwrap();
        let estimate = fitted.coefficients[1].estimate.unwrap();
        assert!(interval.low.unwrap() < estimate && estimate < interval.high.unwrap());
        let (_, cluster) = data.clusters().unwrap();
        let robust = robust_errors(&data, &fitted, cluster).unwrap();
        let wald = fitted.coefficients[1].standard_error.unwrap();
        assert!((robust[1] / wald - 1.0).abs() < 0.05, "{robust:?} {wald}");
    }

    #[test]
    fn many_rows_are_fitted_in_no_time() {
        let data = of("right ~ run + (1 | question)", &pairs([30_000, 40_000, 8_000, 9_000]));
        let begun = std::time::Instant::now();
        let fitted = fit(&data, &by_quadrature()).unwrap();
        assert!(fitted.converged && begun.elapsed().as_secs() < 20, "{:?} {fitted:?}", begun.elapsed());
    }
}
