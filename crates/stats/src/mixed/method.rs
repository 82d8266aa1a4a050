//! A paragraph on the model for a paper's method section.
use super::data::{Family, MixedData};
use super::result::{Errors, Method, MixedFit, RobustBasis};
use super::rule::FINE_POINTS;

/// Sentences that say how a model was fitted, with its numbers.
pub fn method_paragraph(data: &MixedData, fit: &MixedFit, confidence: f64) -> String {
    if let Some(reason) = fit.refusal() {
        return format!("The model {} has no estimates: {reason}.", fit.formula);
    }
    let level = (confidence * 1e4).round() / 1e2;
    let groups: Vec<String> = data
        .groupings
        .iter()
        .map(|grouping| format!("{} levels of {}", grouping.levels.len(), grouping.name))
        .collect();
    let kind = match data.family {
        Family::Binomial => "a mixed-effects logistic regression",
        Family::Gaussian => "a linear mixed-effects model",
    };
    let how = match fit.method {
        Method::Laplace => {
            "by maximum likelihood, the random effects integrated out by Laplace's approximation".to_owned()
        }
        Method::Quadrature if fit.points == FINE_POINTS => format!(
            "by maximum likelihood, the random effects integrated out by an adaptive trapezoidal rule of {FINE_POINTS} points"
        ),
        Method::Quadrature => format!(
            "by maximum likelihood, the random effects integrated out by adaptive Gauss-Hermite quadrature with {} points",
            fit.points
        ),
        Method::Lme4 => "by the default objective of lme4 1.1, whose inner loop is not converged".to_owned(),
        Method::MaximumLikelihood => "by maximum likelihood".to_owned(),
        Method::Restricted => "by restricted maximum likelihood (REML)".to_owned(),
    };
    let search = match fit.method {
        Method::Lme4 => "",
        _ => ", with analytic gradients until a further Newton step would lower the deviance by less than 1e-8",
    };
    let mut text = format!(
        "We fitted {kind} to {} {} ({}), {}, {how}{search} (earnest {}).",
        fit.rows,
        if data.family == Family::Binomial { "answers" } else { "values" },
        groups.join(", "),
        fit.formula,
        env!("CARGO_PKG_VERSION")
    );
    if !data.formula.fixed.terms.is_empty() {
        text.push_str(" Factors have treatment contrasts.");
    }
    if let Some(prior) = &fit.prior {
        text.push_str(&format!(" Estimates are penalised by a prior, {prior}, because the data are separated."));
    }
    if let Some(basis) = &fit.robust {
        let RobustBasis { clusters, group, .. } = basis;
        let degrees = basis.degrees_in_words();
        text.push_str(&match fit.errors {
            Errors::Robust => format!(
                " Standard errors are robust: the sandwich estimator over {clusters} clusters of {group}, with Student's t of \
                 {degrees} degrees of freedom; of every number the model's error counts where it is the larger one."
            ),
            Errors::Model => format!(
                " Intervals and tests have Student's t of {degrees} degrees of freedom, for {clusters} clusters of {group}."
            ),
        });
    }
    text.push_str(match data.family {
        Family::Binomial if fit.errors == Errors::Robust => {
            " Marginal effects are probabilities averaged over the rows and over the random effects of new groups (Gauss-Hermite \
             quadrature), with delta-method intervals."
        }
        Family::Binomial if fit.method == Method::Lme4 => " Standard errors come from finite differences of that objective.",
        Family::Binomial => {
            " Standard errors come from the Hessian of the deviance in all parameters; marginal effects are probabilities \
             averaged over the rows and over the random effects of new groups (Gauss-Hermite quadrature), with \
             delta-method intervals."
        }
        Family::Gaussian => " Standard errors are conditional on the estimated variances.",
    });
    text.push_str(&format!(" Intervals are {level} % Wald intervals unless profile likelihood is named; p values are two-sided, and those of \
                            pairwise comparisons are adjusted by Holm's method and by Benjamini and Hochberg's."));
    if fit.singular {
        text.push_str(" The estimated covariance of the random effects is singular.");
    }
    if !fit.dropped.is_empty() {
        text.push_str(&format!(" Aliased columns were left out: {}.", fit.dropped.join(", ")));
    }
    text
}
