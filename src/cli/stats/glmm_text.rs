//! Text of a mixed model with one random intercept.
use crate::cli::values::counted;
use std::io::Write;

use super::columns::Survey;
use super::glmm::{CROSS_CHECKED_ROWS, CrossCheck, IntervalMethod, RANDOM_SD, Report};
use super::number_format::{decimal, end, p_value, table};
use earnest_stats::glmm::Objective;

/// Prints a fit as tables.
pub(super) fn print(report: &Report<'_>, survey: &Survey, output: &mut dyn Write) -> anyhow::Result<()> {
    let fitted = report.fit;
    for step in report.choice {
        writeln!(output, "{step}")?;
    }
    let terms: Vec<&str> = report.fixed.iter().map(String::as_str).collect();
    let terms = if terms.is_empty() { "1".to_owned() } else { terms.join(" + ") };
    writeln!(output, "logit P({} = 1) ~ {terms} + (1 | {})", report.response, report.group)?;
    let objective = match fitted.objective {
        Objective::Converged { points: 1 } => "Laplace approximation, fully converged".to_owned(),
        Objective::Converged { points } => format!("adaptive Gauss-Hermite quadrature, {points} points"),
        Objective::Lme4 { .. } => "lme4's default objective and optimiser, for comparison only; where the objective jumps, rounding decides where the search \
             ends, here as in lme4"
            .to_owned(),
    };
    writeln!(output, "{objective}")?;
    write!(output, "{} in {}", counted(fitted.rows, "row"), counted(fitted.groups, "group"))?;
    if survey.dropped > 0 {
        let by_column: Vec<String> = report.missing.iter().map(|(name, count)| format!("{name} {count}")).collect();
        write!(output, "; {} dropped with missing values ({})", counted(survey.dropped, "row"), by_column.join(", "))?;
    }
    writeln!(output)?;
    for labels in &report.labels {
        writeln!(
            output,
            "{}: reference level {}; `--reference {}=LEVEL` chooses another",
            labels.column, labels.reference, labels.column
        )?;
    }
    writeln!(output)?;
    let level = format!("{} % interval", (report.level * 1e6).round() / 1e4);
    let mut rows = vec![
        ["", "log odds", "std. error", "z", "p", "odds ratio", level.as_str(), "method"].map(str::to_owned).to_vec(),
    ];
    for (coefficient, interval) in fitted.coefficients.iter().zip(&report.intervals) {
        let (span, method) = match interval {
            Some(found) => (
                format!("[{}, {}]", end(found.low, "-inf"), end(found.high, "inf")),
                if found.method == IntervalMethod::Wald { "Wald" } else { "profile" },
            ),
            None => ("-".to_owned(), "-"),
        };
        rows.push(vec![
            coefficient.name.clone(),
            decimal(coefficient.estimate),
            decimal(coefficient.standard_error),
            coefficient.z.map_or_else(|| "-".to_owned(), |z| format!("{z:.2}")),
            p_value(coefficient.p),
            decimal(coefficient.estimate.map(f64::exp)),
            span,
            method.to_owned(),
        ]);
    }
    write!(output, "{}", table(rows))?;
    writeln!(output)?;
    if let (Some(sd), Some(variance)) = (fitted.random_sd, fitted.random_variance()) {
        write!(output, "random intercept of {}: SD {sd:.4}, variance {variance:.4}", report.group)?;
        if let Some(error) = fitted.random_sd_error {
            write!(output, ", std. error of the SD {error:.4}")?;
        }
        if let Some(found) = &report.random_sd_interval {
            write!(output, ", profile [{}, {}]", end(found.low, "0"), end(found.high, "inf"))?;
        }
        writeln!(output)?;
    }
    if let Some(test) = &report.variance_test {
        writeln!(
            output,
            "variance between groups: likelihood ratio {:.2}, p {} (boundary mixture)",
            test.statistic,
            p_value(Some(test.p))
        )?;
    }
    if let (Some(deviance), Some(aic), Some(bic)) = (fitted.minus_two_log_likelihood, fitted.aic(), fitted.bic()) {
        writeln!(output, "-2 log L {deviance:.4}, AIC {aic:.2}, BIC {bic:.2}")?;
    }
    if let Some(found) = &report.bootstrap {
        let counts = found.counts;
        writeln!(
            output,
            "cluster bootstrap of {}: std. error {:.4}, bias {:.4}, percentile [{:.4}, {:.4}]{}",
            fitted.coefficients.get(1).map_or("", |coefficient| coefficient.name.as_str()),
            found.standard_error,
            found.bias,
            found.percentile.0,
            found.percentile.1,
            found.bca.map(|(low, high)| format!(", BCa [{low:.4}, {high:.4}]")).unwrap_or_default()
        )?;
        writeln!(
            output,
            "  resamples: {} clean, {} singular, {} not converged, {} without an estimate",
            counts.clean, counts.singular, counts.not_converged, counts.failed
        )?;
    }
    let rows = fitted.coefficients.iter().map(|coefficient| coefficient.name.as_str()).zip(&report.intervals);
    for (name, interval) in rows.chain([(RANDOM_SD, &report.random_sd_interval)]) {
        let Some(interval) = interval else { continue };
        if let Some(points) = interval.points {
            writeln!(
                output,
                "{name}: interval by {points}-point quadrature, because the Laplace approximation overrates values far from the fit"
            )?;
        }
        for (end, open) in [("lower", interval.low_open), ("upper", interval.high_open)] {
            if let Some(open) = open {
                writeln!(output, "{name}: the {end} end is infinite: {open}")?;
            }
        }
    }
    for missing in &report.no_interval {
        writeln!(output, "{}: no interval: {}", missing.parameter, missing.reason)?;
    }
    match report.cross_check {
        CrossCheck::Done | CrossCheck::NotApplicable => {}
        CrossCheck::SkippedAsAsked => {
            writeln!(output, "not compared with 25-point quadrature (--cross-check never)")?;
        }
        CrossCheck::SkippedForSize => writeln!(
            output,
            "not compared with 25-point quadrature: more than {CROSS_CHECKED_ROWS} different rows; `--cross-check always` \
             compares anyway, `--nagq 25` fits with it"
        )?,
    }
    for diagnosis in &fitted.diagnoses {
        writeln!(output, "warning: {diagnosis}")?;
    }
    for note in report.notes {
        writeln!(output, "warning: {note}")?;
    }
    Ok(())
}
