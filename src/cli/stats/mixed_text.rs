//! Text of a mixed model with a formula.
use crate::cli::values::counted;
use std::fmt::{self, Write as _};

use super::glmm::IntervalMethod;
use super::mixed::MixedReport;
use super::number_format::{decimal, end, p_value, table};
use super::one_intercept::{CrossCheck, MANY_ROWS, OneIntercept, RANDOM_SD};
use earnest_stats::mixed::{Family, Marginal, Method, MixedCoefficient, MixedFit};

/// Prints a fit as tables.
pub(super) fn print(report: &MixedReport<'_>, output: &mut String) -> fmt::Result {
    let fitted = report.fit;
    for step in report.choice {
        writeln!(output, "{step}")?;
    }
    match report.family {
        Family::Binomial => writeln!(output, "logit P {}", report.formula)?,
        Family::Gaussian => writeln!(output, "{}", report.formula)?,
    }
    writeln!(output, "{}", heading(fitted))?;
    write!(output, "{}, {} different", counted(fitted.rows, "row"), fitted.cells)?;
    if report.rows_dropped > 0 {
        let by_column: Vec<String> = report.missing.iter().map(|(name, count)| format!("{name} {count}")).collect();
        write!(
            output,
            "; {} dropped with missing values ({})",
            counted(report.rows_dropped, "row"),
            by_column.join(", ")
        )?;
    }
    writeln!(output)?;
    for (name, reference) in &report.references {
        writeln!(output, "{name}: reference level {reference}; `--reference {name}=LEVEL` chooses another")?;
    }
    if !fitted.is_usable() {
        return without_numbers(report, output);
    }
    if let Some(basis) = fitted.basis_in_words() {
        writeln!(output, "{basis}")?;
    }
    writeln!(output)?;
    coefficients(report, output)?;
    random(fitted, output)?;
    if let Some(one) = &report.one_intercept {
        one_intercept(one, fitted, output)?;
    }
    if let (Some(value), Some(aic), Some(bic)) = (fitted.minus_two_log_likelihood, fitted.aic, fitted.bic) {
        let name = if fitted.method == Method::Restricted { "REML criterion" } else { "-2 log L" };
        writeln!(output, "{name} {value:.4}, AIC {aic:.2}, BIC {bic:.2}")?;
    }
    for found in &report.marginal {
        marginal(found, report.family, output)?;
    }
    if let Some(reason) = &report.no_marginal {
        writeln!(output, "\nno marginal effects: {reason}")?;
    }
    if !report.tests.is_empty() {
        writeln!(output, "\nlikelihood-ratio tests")?;
        let mut rows = vec![["", "chi squared", "df", "p"].map(str::to_owned).to_vec()];
        rows.extend(report.tests.iter().map(|test| {
            let statistic = format!("{:.2}", test.statistic);
            vec![test.term.clone(), statistic, test.degrees_of_freedom.to_string(), p_value(Some(test.p))]
        }));
        write!(output, "{}", table(rows))?;
    }
    if !report.contrasts.is_empty() {
        writeln!(output, "\ncontrasts")?;
        let mut rows = vec![
            ["", "estimate", "std. error", &interval_heading(report.level), "z", "p", "Holm", "BH"]
                .map(str::to_owned)
                .to_vec(),
        ];
        rows.extend(report.contrasts.iter().map(|one| {
            vec![
                one.name.clone(),
                decimal(Some(one.estimate)),
                decimal(Some(one.standard_error)),
                format!("[{:.4}, {:.4}]", one.low, one.high),
                format!("{:.2}", one.z),
                p_value(Some(one.p)),
                p_value(Some(one.holm)),
                p_value(Some(one.benjamini_hochberg)),
            ]
        }));
        write!(output, "{}", table(rows))?;
        adjusted_for(report.contrasts.len(), "contrasts", output)?;
    }
    if let Some(found) = &report.penalised {
        penalised(found, report, output)?;
    }
    writeln!(output, "\n{}", report.method)?;
    intervals_missing(report, output)?;
    for diagnosis in &fitted.diagnoses {
        writeln!(output, "warning: {diagnosis}")?;
    }
    for note in report.notes {
        writeln!(output, "warning: {note}")?;
    }
    Ok(())
}

/// Heading of a fit: the method, and convergence.
fn heading(fitted: &MixedFit) -> String {
    let converged = if fitted.converged { "fully converged" } else { "not converged" };
    match fitted.method {
        _ if !fitted.is_usable() => "no fit".to_owned(),
        Method::Laplace => format!("Laplace approximation, {converged}"),
        Method::Quadrature => format!("{}-point adaptive quadrature, {converged}", fitted.points),
        Method::Lme4 => "lme4's default objective and optimiser, for comparison only; where the objective jumps, rounding decides where the \
                         search ends, here as in lme4"
            .to_owned(),
        Method::MaximumLikelihood => "maximum likelihood".to_owned(),
        Method::Restricted => "REML".to_owned(),
    }
}

/// The reasons for a fit without numbers, and the penalised one where there is one.
fn without_numbers(report: &MixedReport<'_>, output: &mut String) -> fmt::Result {
    writeln!(output)?;
    for diagnosis in report.fit.diagnoses.iter().filter(|one| one.is_fatal()) {
        writeln!(output, "{diagnosis}")?;
    }
    if report.intervals.iter().any(Option::is_some) {
        writeln!(output)?;
        coefficients(report, output)?;
    }
    if let Some(penalised) = &report.penalised {
        self::penalised(penalised, report, output)?;
        writeln!(output, "\n{}", report.method)?;
    }
    intervals_missing(report, output)?;
    for diagnosis in report.fit.diagnoses.iter().filter(|one| !one.is_fatal()) {
        writeln!(output, "warning: {diagnosis}")?;
    }
    for note in report.notes {
        writeln!(output, "warning: {note}")?;
    }
    Ok(())
}

/// Lines on the only random effect: its error and intervals, the test of its variance, the bootstrap.
fn one_intercept(one: &OneIntercept, fitted: &MixedFit, output: &mut String) -> fmt::Result {
    let mut known: Vec<String> = Vec::new();
    known.extend(fitted.deviation_error().map(|error| format!("std. error {error:.4}")));
    known.extend(
        one.random_sd_interval
            .as_ref()
            .map(|found| format!("profile [{}, {}]", end(found.low, "0"), end(found.high, "inf"))),
    );
    if !known.is_empty() {
        writeln!(output, "SD between {}: {}", one.group, known.join(", "))?;
    }
    if let Some(test) = &one.variance_test {
        let p = p_value(Some(test.p));
        writeln!(
            output,
            "variance between {}: likelihood ratio {:.2}, p {p} (boundary mixture)",
            one.group, test.statistic
        )?;
    }
    if let Some(found) = &one.bootstrap {
        let counts = found.counts;
        writeln!(
            output,
            "bootstrap of {} over {}: std. error {:.4}, bias {:.4}, percentile [{:.4}, {:.4}]{}",
            fitted.coefficients.get(1).map_or("", |coefficient| coefficient.name.as_str()),
            one.group,
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
        let lost = counts.not_converged + counts.failed;
        if 20 * lost > lost + counts.clean + counts.singular {
            writeln!(output, "  warning: resamples without a value are left out, which makes the error too small")?;
        }
    }
    Ok(())
}

/// Intervals that are open, by another method, or missing, with the reasons.
fn intervals_missing(report: &MixedReport<'_>, output: &mut String) -> fmt::Result {
    let Some(one) = &report.one_intercept else { return Ok(()) };
    let names = report.fit.coefficients.iter().map(|coefficient| coefficient.name.as_str());
    for (name, interval) in names.zip(&report.intervals).chain([(RANDOM_SD, &one.random_sd_interval)]) {
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
    for missing in &one.no_interval {
        writeln!(output, "{}: no interval: {}", missing.parameter, missing.reason)?;
    }
    match one.cross_check {
        CrossCheck::Done | CrossCheck::NotApplicable => {}
        CrossCheck::SkippedAsAsked => writeln!(output, "not compared with 25-point quadrature (--cross-check never)")?,
        CrossCheck::SkippedForSize => writeln!(
            output,
            "not compared with 25-point quadrature: more than {MANY_ROWS} different rows, in large groups; `--cross-check always` compares anyway"
        )?,
    }
    Ok(())
}

fn interval_heading(level: f64) -> String {
    format!("{} % interval", (level * 1e6).round() / 1e4)
}

fn coefficients(report: &MixedReport<'_>, output: &mut String) -> fmt::Result {
    let binomial = report.family == Family::Binomial;
    let heading = interval_heading(report.level);
    let mut rows = vec![if binomial {
        ["", "log odds", "std. error", "z", "p", &heading, "method", "odds ratio", &heading].map(str::to_owned).to_vec()
    } else {
        ["", "estimate", "std. error", "z", "p", &heading, "method"].map(str::to_owned).to_vec()
    }];
    for (one, interval) in report.fit.coefficients.iter().zip(&report.intervals) {
        let (span, method) = match interval {
            Some(found) => (
                format!("[{}, {}]", end(found.low, "-inf"), end(found.high, "inf")),
                match found.method {
                    IntervalMethod::Profile => "profile",
                    IntervalMethod::Wald if is_of_scatter(one) => "robust",
                    IntervalMethod::Wald => "Wald",
                },
            ),
            None => ("-".to_owned(), "-"),
        };
        let mut row = vec![
            one.name.clone(),
            decimal(one.estimate),
            decimal(one.standard_error),
            one.z.map_or_else(|| "-".to_owned(), |z| format!("{z:.2}")),
            p_value(one.p),
        ];
        row.extend([span, method.to_owned()]);
        if binomial {
            let ratio =
                |value: Option<f64>, open: &str| value.map_or_else(|| open.to_owned(), |value| ratio(value.exp()));
            row.push(ratio(one.estimate, "-"));
            row.push(match interval {
                Some(found) => format!("[{}, {}]", ratio(found.low, "0"), ratio(found.high, "inf")),
                None => "-".to_owned(),
            });
        }
        rows.push(row);
    }
    write!(output, "{}", table(rows))?;
    writeln!(output)?;
    Ok(())
}

/// True if a robust error is that of the scatter, and not the model's as the larger one.
fn is_of_scatter(one: &MixedCoefficient) -> bool {
    one.standard_error.zip(one.standard_error_model).is_some_and(|(error, model)| error > model * (1.0 + 1e-9))
}

/// A ratio of odds: decimal where that is short.
fn ratio(value: f64) -> String {
    if (1e-3..1e5).contains(&value) { format!("{value:.4}") } else { format!("{value:.3e}") }
}

fn random(fitted: &MixedFit, output: &mut String) -> fmt::Result {
    if fitted.random.is_empty() {
        // Separated: nothing was estimated.
        return Ok(());
    }
    let mut rows = vec![["random effects", "groups", "", "SD", "correlations"].map(str::to_owned).to_vec()];
    for effect in &fitted.random {
        for (index, term) in effect.terms.iter().enumerate() {
            let group = if index == 0 { effect.group.clone() } else { String::new() };
            let groups = if index == 0 { effect.groups.to_string() } else { String::new() };
            let correlations = effect.correlation.as_ref().map_or_else(String::new, |all| {
                let known = |value: &Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"));
                all[index][..index].iter().map(known).collect::<Vec<_>>().join(" ")
            });
            rows.push(vec![group, groups, term.clone(), decimal(Some(effect.sd[index])), correlations]);
        }
    }
    if let Some(sd) = fitted.residual_sd {
        rows.push(vec!["residual".into(), String::new(), String::new(), decimal(Some(sd)), String::new()]);
    }
    write!(output, "{}", table(rows))?;
    writeln!(output)?;
    Ok(())
}

fn marginal(found: &Marginal, family: Family, output: &mut String) -> fmt::Result {
    // Probabilities are read as percent, their differences as percentage points.
    let (scale, unit) = if family == Family::Binomial { (100.0, "%") } else { (1.0, "mean") };
    let number = |value: f64| format!("{:.*}", if scale > 1.0 { 2 } else { 4 }, scale * value);
    let heading = interval_heading(found.confidence);
    let name = found.factor.as_deref().unwrap_or("all rows");
    let over = if family == Family::Binomial { " and the random effects of new groups" } else { "" };
    writeln!(output, "\n{name}, averaged over the rows{over}")?;
    let mut rows = vec![["", unit, "std. error", &heading].map(str::to_owned).to_vec()];
    rows.extend(found.levels.iter().map(|level| {
        let span = format!("[{}, {}]", number(level.low), number(level.high));
        vec![level.level.clone(), number(level.mean), number(level.standard_error), span]
    }));
    write!(output, "{}", table(rows))?;
    if found.differences.is_empty() {
        return Ok(());
    }
    let points = if family == Family::Binomial { "points" } else { "difference" };
    let mut rows = vec![["", points, &heading, "z", "p", "Holm", "BH"].map(str::to_owned).to_vec()];
    rows.extend(found.differences.iter().map(|one| {
        vec![
            format!("{} - {}", one.level, one.against),
            number(one.difference),
            format!("[{}, {}]", number(one.low), number(one.high)),
            format!("{:.2}", one.z),
            p_value(Some(one.p)),
            p_value(Some(one.holm)),
            p_value(Some(one.benjamini_hochberg)),
        ]
    }));
    write!(output, "{}", table(rows))?;
    adjusted_for(found.differences.len(), &format!("differences of {name}"), output)
}

/// A line that names the family of adjusted p values, where there are several.
fn adjusted_for(size: usize, family: &str, output: &mut String) -> fmt::Result {
    if size > 1 {
        writeln!(output, "Holm and BH (Benjamini-Hochberg): p adjusted for the {size} {family}")?;
    }
    Ok(())
}

fn penalised(fitted: &MixedFit, report: &MixedReport<'_>, output: &mut String) -> fmt::Result {
    let prior = fitted.prior.as_deref().unwrap_or_default();
    writeln!(
        output,
        "\npenalised fit, prior {prior}; p and intervals of what has the prior are by the penalised likelihood and its profile"
    )?;
    let heading = interval_heading(report.level);
    let mut rows = vec![["", "log odds", "p", &heading, "method", "odds ratio", &heading].map(str::to_owned).to_vec()];
    for (one, interval) in fitted.coefficients.iter().zip(&report.penalised_intervals) {
        let (span, method, odds) = match interval {
            Some(found) => (
                format!("[{}, {}]", end(found.low, "-inf"), end(found.high, "inf")),
                if found.method == IntervalMethod::Wald { "Wald" } else { "profile" },
                format!(
                    "[{}, {}]",
                    found.low.map_or_else(|| "0".to_owned(), |low| ratio(low.exp())),
                    found.high.map_or_else(|| "inf".to_owned(), |high| ratio(high.exp()))
                ),
            ),
            None => ("-".to_owned(), "-", "-".to_owned()),
        };
        rows.push(vec![
            one.name.clone(),
            decimal(one.estimate),
            p_value(one.p),
            span,
            method.to_owned(),
            one.estimate.map_or_else(|| "-".to_owned(), |estimate| ratio(estimate.exp())),
            odds,
        ]);
    }
    write!(output, "{}", table(rows))?;
    Ok(())
}
