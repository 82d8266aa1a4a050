//! Ordinary logistic regression: the model at zero random variance.
use super::data::GlmmData;
use super::likelihood::{logistic, softplus};
use crate::matrix::{Matrix, dot};

/// A logistic regression in standardised columns.
#[derive(Debug, Clone)]
pub(super) struct Logistic {
    pub(super) beta: Vec<f64>,
    /// Without binomial coefficients.
    pub(super) minus_two_log_likelihood: f64,
    pub(super) converged: bool,
}

/// Fits by Newton's method with step halving (the log-likelihood is concave). On separated data it stops, unconverged,
/// where the likelihood is flat to rounding.
pub(super) fn fit(data: &GlmmData) -> Logistic {
    let columns = data.columns();
    let mut beta = vec![0.0; columns];
    let mut value = minus_two_log_likelihood(data, &beta);
    let mut converged = false;
    for _ in 0..100 {
        let mut gradient = vec![0.0; columns];
        let mut information = Matrix::zeros(columns);
        for cell in 0..data.cells() {
            let x = data.cell(cell);
            let mean = logistic(dot(x, &beta));
            let trials = data.trials()[cell];
            let residual = data.successes()[cell] - trials * mean;
            gradient.iter_mut().zip(x).for_each(|(sum, x)| *sum += residual * x);
            information.add_outer(trials * mean * (1.0 - mean), x);
        }
        let Some(factor) = information.cholesky() else { break };
        let step = factor.solve(&gradient);
        if dot(&step, &gradient) < 1e-20 * (1.0 + value) {
            converged = true;
            break;
        }
        let mut length = 1.0;
        let accepted = loop {
            let next: Vec<f64> = beta.iter().zip(&step).map(|(beta, step)| beta + length * step).collect();
            let next_value = minus_two_log_likelihood(data, &next);
            if next_value <= value {
                beta = next;
                let decreased = next_value < value;
                value = next_value;
                break decreased;
            }
            length *= 0.5;
            if length < 1e-10 {
                break false;
            }
        };
        if !accepted {
            converged = dot(&step, &gradient) < 1e-12 * (1.0 + value);
            break;
        }
    }
    Logistic { beta, minus_two_log_likelihood: value, converged }
}

fn minus_two_log_likelihood(data: &GlmmData, beta: &[f64]) -> f64 {
    let log_likelihood: f64 = (0..data.cells())
        .map(|cell| {
            let eta = dot(data.cell(cell), beta);
            let (successes, trials) = (data.successes()[cell], data.trials()[cell]);
            successes * softplus(-eta) + (trials - successes) * softplus(eta)
        })
        .sum();
    2.0 * log_likelihood
}
