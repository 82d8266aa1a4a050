//! `glmm_formula`: mixed models from formulas against lme4 and an independent Laplace criterion. One row a fit; tolerances are
//! the vectors' own (README of the folder).
//!
//! The folder is enumerated: a new `results/NAME.json` with its `NAME.csv` is checked without a change here.
use std::path::Path;

use earnest_stats::mixed::{
    Column, Family, Formula, Frame, IntegralChoice, MixedData, MixedFit, MixedOptions, fit, marginal,
};
use serde_json::Value;

use super::files;
use super::report::FileReport;

type Row = Result<(), String>;

/// Checks every file of `<root>/glmm_formula/results`.
pub fn check(root: &Path) -> Vec<FileReport> {
    let folder = root.join("glmm_formula");
    let mut names = files::names(&folder.join("results"), ".json");
    // Rates of simulated studies are no fits.
    names.retain(|name| name != "false_positive_rate.json");
    if names.is_empty() {
        return vec![FileReport::absent("glmm_formula")];
    }
    names.iter().map(|name| check_file(&folder, name)).collect()
}

fn check_file(folder: &Path, name: &str) -> FileReport {
    let label = format!("glmm_formula/results/{name}");
    let data = folder.join(name).with_extension("csv");
    if !files::is_there(&data) {
        return FileReport::absent(format!("glmm_formula/{} (for {label})", name.replace(".json", ".csv")));
    }
    let read = files::read(&folder.join("results").join(name)).map_err(|error| error.to_string());
    let rows = read
        .and_then(|text| serde_json::from_str::<Value>(&text).map_err(|error| error.to_string()))
        .and_then(|golden| rows(&data, &golden));
    match rows {
        Ok(rows) => FileReport::checked(label, rows),
        Err(error) => FileReport::unreadable(label, error),
    }
}

fn rows(path: &Path, golden: &Value) -> Result<Vec<Row>, String> {
    let frame = read_csv(path)?;
    if number(golden, "rows")? != frame.rows() as f64 {
        return Err(format!("`rows` is {}, the CSV has {}", golden["rows"], frame.rows()));
    }
    if text(golden, "link")? != "logit" {
        return Err(format!("unknown link {}", golden["link"]));
    }
    let response = text(golden, "response")?;
    let fits = list(golden, "fits")?;
    let row = |entry: &Value| {
        let id = entry.get("id").and_then(Value::as_str).unwrap_or("?").to_owned();
        check_fit(&frame, response, entry).map_err(|error| format!("{id}: {error}"))
    };
    Ok(fits.iter().map(row).collect())
}

/// Columns of a CSV: numbers if every field is one, else labels.
fn read_csv(path: &Path) -> Result<Frame, String> {
    let content = files::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut reader = csv::Reader::from_reader(content.as_bytes());
    let names: Vec<String> = reader.headers().map_err(|error| error.to_string())?.iter().map(str::to_owned).collect();
    let mut fields = vec![Vec::new(); names.len()];
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        fields.iter_mut().zip(record.iter()).for_each(|(column, field)| column.push(field.to_owned()));
    }
    let mut frame = Frame::new();
    for (name, fields) in names.iter().zip(&fields) {
        let numbers: Option<Vec<f64>> = fields.iter().map(|field| field.parse().ok()).collect();
        match numbers {
            Some(numbers) => frame.number(name, numbers),
            None => frame.texts(name, fields.iter().map(String::as_str)),
        }
        .map_err(|error| error.to_string())?;
    }
    Ok(frame)
}

fn number(value: &Value, key: &str) -> Result<f64, String> {
    value.get(key).and_then(Value::as_f64).ok_or_else(|| format!("`{key}` is no number"))
}

fn text<'v>(value: &'v Value, key: &str) -> Result<&'v str, String> {
    value.get(key).and_then(Value::as_str).ok_or_else(|| format!("`{key}` is no text"))
}

fn list<'v>(value: &'v Value, key: &str) -> Result<&'v [Value], String> {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).ok_or_else(|| format!("`{key}` is no list"))
}

fn texts(value: &Value, key: &str) -> Result<Vec<String>, String> {
    let text = |entry: &Value| entry.as_str().map(str::to_owned).ok_or_else(|| format!("`{key}` holds no text"));
    list(value, key)?.iter().map(text).collect()
}

fn numbers(value: &Value, key: &str) -> Result<Vec<f64>, String> {
    let number = |entry: &Value| entry.as_f64().ok_or_else(|| format!("`{key}` holds no number"));
    list(value, key)?.iter().map(number).collect()
}

/// Rows of numbers; null is NaN.
fn matrix(value: &Value, key: &str) -> Result<Vec<Vec<f64>>, String> {
    let wrong = || format!("`{key}` is no matrix");
    let number = |entry: &Value| if entry.is_null() { Ok(f64::NAN) } else { entry.as_f64().ok_or_else(wrong) };
    let rows = list(value, key)?.iter().map(|row| row.as_array().ok_or_else(wrong)?.iter().map(number).collect());
    let rows = rows.collect::<Result<Vec<Vec<f64>>, String>>()?;
    if rows.iter().all(|row| row.len() == rows.len()) { Ok(rows) } else { Err(wrong()) }
}

fn close(what: &str, computed: f64, golden: f64, tolerance: f64) -> Row {
    if (computed - golden).abs() <= tolerance {
        return Ok(());
    }
    Err(format!("{what}: computed {computed:.9}, golden {golden:.9}, tolerance {tolerance:.1e}"))
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, computed: T, golden: T) -> Row {
    if computed == golden { Ok(()) } else { Err(format!("{what}: computed {computed:?}, golden {golden:?}")) }
}

fn check_fit(frame: &Frame, response: &str, entry: &Value) -> Row {
    let points = number(entry, "nAGQ")?;
    let known = points == 1.0 || points >= 9.0 && points.fract() == 0.0;
    if text(entry, "family")? != "binomial(logit)" || !known {
        return Err(format!("unknown kind of fit: {} with nAGQ {}", entry["family"], entry["nAGQ"]));
    }
    // Quadrature with enough points is one number, however many there are.
    let integral = if points == 1.0 { IntegralChoice::Laplace } else { IntegralChoice::QUADRATURE };
    let formula: Formula = text(entry, "formula")?.parse().map_err(|error| format!("{error}"))?;
    same("response", formula.response.as_str(), response)?;
    for (name, levels) in entry.get("levels").and_then(Value::as_object).ok_or("`levels` is no object")? {
        let golden: Vec<&str> = levels.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let Ok(Column::Labels(labels)) = frame.column(name) else { return Err(format!("`{name}` has no levels")) };
        same(name, labels.levels.iter().map(String::as_str).collect(), golden)?;
    }
    let data = MixedData::new(&formula, frame, Family::Binomial).map_err(|error| error.to_string())?;
    if points > 1.0 && !data.has_one_effect() {
        return Err(format!("nAGQ is {points}, and there are several random effects"));
    }
    let fitted =
        fit(&data, &MixedOptions { integral, ..MixedOptions::default() }).map_err(|error| error.to_string())?;
    if !fitted.converged {
        return Err(format!("not converged: {:?}", fitted.diagnoses));
    }
    same("n_obs", fitted.rows as f64, number(entry, "n_obs")?)?;
    same("n_par", fitted.parameters as f64, number(entry, "n_par")?)?;
    same("dropped columns", fitted.dropped.clone(), texts(entry, "dropped_columns")?)?;
    same("singular", Some(fitted.singular), entry.get("singular").and_then(Value::as_bool))?;
    let tolerance = entry.get("tolerance").ok_or("`tolerance` is missing")?;
    if text(tolerance, "se_is")? != "relative" {
        return Err("`se_is` is unknown".into());
    }
    check_likelihood(&fitted, entry, number(tolerance, "deviance")?)?;
    check_fixed(&fitted, entry, number(tolerance, "se")?)?;
    check_random(&fitted, entry, tolerance)?;
    check_modes(&fitted, entry, number(tolerance, "modes")?)?;
    check_marginal(&data, &fitted, entry, number(tolerance, "marginal")?)
}

fn check_likelihood(fitted: &MixedFit, entry: &Value, tolerance: f64) -> Row {
    let value = fitted.minus_two_log_likelihood.ok_or("no likelihood")?;
    close("deviance", value, number(entry, "deviance")?, tolerance)?;
    close("-2 log L", value, number(entry, "minus2loglik")?, tolerance)?;
    close("log L", -0.5 * value, number(entry, "loglik")?, tolerance)?;
    close("AIC", fitted.aic.ok_or("no AIC")?, number(entry, "aic")?, tolerance)?;
    close("BIC", fitted.bic.ok_or("no BIC")?, number(entry, "bic")?, tolerance)?;
    // Not stationary at the optimum: a thousandth of a standard error moves it by some hundredths.
    let golden = number(entry, "conditional_deviance")?;
    close("conditional deviance", fitted.conditional_deviance.ok_or("none")?, golden, 1e-4 * golden)
}

fn check_fixed(fitted: &MixedFit, entry: &Value, relative: f64) -> Row {
    let golden = list(entry, "fixed")?;
    let names: Result<Vec<&str>, String> = golden.iter().map(|one| text(one, "name")).collect();
    same("fixed effects", fitted.coefficients.iter().map(|one| one.name.as_str()).collect(), names?)?;
    for (computed, golden) in fitted.coefficients.iter().zip(golden) {
        let name = &computed.name;
        let tolerance = number(golden, "tolerance")?;
        let estimate = computed.estimate.ok_or_else(|| format!("{name} has no estimate"))?;
        close(&format!("{name} estimate"), estimate, number(golden, "estimate")?, tolerance)?;
        let error = number(golden, "se_hessian")?;
        let own = computed.standard_error.ok_or_else(|| format!("{name} has no standard error"))?;
        close(&format!("{name} standard error"), own, error, relative * error)?;
        let fixed_theta = number(golden, "se_rx")?;
        let own = computed.standard_error_fixed_theta.ok_or_else(|| format!("{name} has no standard error"))?;
        close(&format!("{name} standard error, theta fixed"), own, fixed_theta, relative * fixed_theta)?;
        let z = number(golden, "z_hessian")?;
        let reach = tolerance / error + 1.01 * relative * z.abs();
        close(&format!("{name} z"), computed.z.ok_or("no z")?, z, reach)?;
        let density = (-0.5 * (z.abs() - reach).max(0.0).powi(2)).exp() / (2.0 * std::f64::consts::PI).sqrt();
        close(&format!("{name} p"), computed.p.ok_or("no p")?, number(golden, "p_hessian")?, 2.0 * density * reach)?;
    }
    for (key, computed) in [("vcov_hessian", &fitted.covariance), ("vcov_rx", &fitted.covariance_fixed_theta)] {
        let golden = matrix(entry, key)?;
        same(key, computed.len(), golden.len())?;
        for (row, line) in golden.iter().enumerate() {
            for (column, value) in line.iter().enumerate() {
                let reach = 2.0 * relative * (golden[row][row] * golden[column][column]).sqrt();
                close(&format!("{key} {row} {column}"), computed[row][column], *value, reach)?;
            }
        }
    }
    Ok(())
}

/// A term of ours as the vectors have them: uncorrelated effects are terms of their own.
struct Term<'f> {
    group: &'f str,
    groups: usize,
    terms: &'f [String],
    sd: &'f [f64],
    covariance: Vec<Vec<f64>>,
    correlation: Option<&'f Vec<Vec<Option<f64>>>>,
}

fn terms(fitted: &MixedFit) -> Vec<Term<'_>> {
    let mut found = Vec::new();
    for effect in &fitted.random {
        let whole = effect.correlation.is_some() || effect.terms.len() == 1;
        let size = if whole { effect.terms.len() } else { 1 };
        for start in (0..effect.terms.len()).step_by(size) {
            let own = start..start + size;
            found.push(Term {
                group: &effect.group,
                groups: effect.groups,
                terms: &effect.terms[own.clone()],
                sd: &effect.sd[own.clone()],
                covariance: effect.covariance[own.clone()].iter().map(|row| row[own.clone()].to_vec()).collect(),
                correlation: effect.correlation.as_ref(),
            });
        }
    }
    found
}

fn check_random(fitted: &MixedFit, entry: &Value, tolerance: &Value) -> Row {
    let golden = list(entry, "random")?;
    let computed = terms(fitted);
    same("number of random terms", computed.len(), golden.len())?;
    // Null where a standard deviation is nearly 0; nothing is compared then.
    let correlation = tolerance.get("corr").ok_or("`corr` has no tolerance")?.as_f64();
    let mut theta = Vec::new();
    for golden in golden {
        let (group, names) = (text(golden, "group")?, texts(golden, "terms")?);
        let own = computed.iter().find(|one| one.group == group && *one.terms == names[..]);
        let own = own.ok_or_else(|| format!("no random effects {names:?} of {group}"))?;
        same(&format!("groups of {group}"), own.groups as f64, number(golden, "n_groups")?)?;
        let (sd, reach) = (numbers(golden, "sd")?, numbers(golden, "sd_tolerance")?);
        let covariance = matrix(golden, "cov")?;
        if [sd.len(), reach.len(), covariance.len()] != [names.len(); 3] {
            return Err(format!("random effects of {group}: lengths differ"));
        }
        for (index, name) in names.iter().enumerate() {
            close(&format!("SD of {name} by {group}"), own.sd[index], sd[index], reach[index])?;
        }
        let factor = numbers(golden, "theta")?;
        check_theta(&factor, &covariance, number(golden, "rank")?).map_err(|error| format!("{group}: {error}"))?;
        theta.extend(factor);
        let recorded = golden.get("corr").ok_or("`corr` is missing")?;
        if recorded.is_null() != (names.len() == 1) {
            return Err(format!("`corr` of {group}: {recorded}"));
        }
        let recorded = if recorded.is_null() { None } else { Some(matrix(golden, "corr")?) };
        for row in 0..names.len() {
            for column in 0..names.len() {
                let place = format!("{group}, {} and {}", names[row], names[column]);
                let extra = correlation.unwrap_or(2.0) * sd[row] * sd[column];
                let linear = reach[row] * sd[column] + reach[column] * sd[row] + reach[row] * reach[column];
                let value = covariance[row][column];
                close(&format!("covariance of {place}"), own.covariance[row][column], value, linear + extra)?;
                let Some(golden) = recorded.as_ref().and_then(|recorded| recorded.get(row)?.get(column).copied())
                else {
                    continue;
                };
                let implied = value / (sd[row] * sd[column]);
                if !golden.is_nan() && (golden - implied).abs() > 1e-6 {
                    return Err(format!("correlation of {place} is not that of the covariance"));
                }
                if let (Some(reach), false) = (correlation, golden.is_nan()) {
                    let own = own.correlation.and_then(|own| own[row][column]);
                    close(&format!("correlation of {place}"), own.ok_or("no correlation")?, golden, reach)?;
                }
            }
        }
    }
    let whole = numbers(entry, "theta")?;
    if whole.len() == theta.len() && whole.iter().zip(&theta).all(|(left, right)| (left - right).abs() < 1e-9) {
        return Ok(());
    }
    Err("`theta` is not that of the terms".into())
}

/// The recorded factor must be that of the recorded covariance: our own is compared as a covariance.
fn check_theta(theta: &[f64], covariance: &[Vec<f64>], rank: f64) -> Row {
    let size = covariance.len();
    if theta.len() != size * (size + 1) / 2 {
        return Err("`theta` has another length".into());
    }
    let mut lower = vec![vec![0.0; size]; size];
    let mut values = theta.iter();
    for column in 0..size {
        for row in lower.iter_mut().skip(column) {
            row[column] = *values.next().ok_or("`theta` is short")?;
        }
    }
    for row in 0..size {
        for column in 0..size {
            let product: f64 = lower[row].iter().zip(&lower[column]).map(|(left, right)| left * right).sum();
            close("covariance of theta", product, covariance[row][column], 1e-6)?;
        }
    }
    let pivots = (0..size).filter(|&index| lower[index][index] > 1e-4).count();
    same("rank", pivots as f64, rank)
}

fn check_modes(fitted: &MixedFit, entry: &Value, tolerance: f64) -> Row {
    let golden = list(entry, "conditional_modes")?;
    same("terms of conditional modes", golden.len(), list(entry, "random")?.len())?;
    for golden in golden {
        let (group, names) = (text(golden, "group")?, texts(golden, "terms")?);
        let holds = |one: &&earnest_stats::mixed::GroupModes| {
            one.group == group && names.iter().all(|name| one.terms.contains(name))
        };
        let own = fitted.modes().iter().find(holds).ok_or_else(|| format!("no modes {names:?} of {group}"))?;
        let groups = list(golden, "groups")?;
        if groups.is_empty() {
            return Err(format!("no modes of {group}"));
        }
        for golden in groups {
            let level = text(golden, "level")?;
            let index = own.levels.iter().position(|known| known == level);
            let index = index.ok_or_else(|| format!("{group} has no level {level}"))?;
            let modes = numbers(golden, "modes")?;
            same("modes", modes.len(), names.len())?;
            for (name, mode) in names.iter().zip(modes) {
                let column = own.terms.iter().position(|known| known == name).ok_or("no such term")?;
                close(&format!("{name} of {group} {level}"), own.modes[index][column], mode, tolerance)?;
            }
        }
    }
    Ok(())
}

fn check_marginal(data: &MixedData, fitted: &MixedFit, entry: &Value, tolerance: f64) -> Row {
    let golden = entry.get("marginal").ok_or("`marginal` is missing")?;
    let levels = golden.get("levels").and_then(Value::as_array);
    let Some(levels) = levels.filter(|levels| !levels.is_empty()) else {
        // Not recorded where a cell is empty; ours must refuse it too.
        return match marginal(data, fitted, None, 0.95) {
            Err(_) if !fitted.dropped.is_empty() => Ok(()),
            _ => Err("`marginal` is empty".into()),
        };
    };
    let factor = golden.get("factor").and_then(Value::as_str);
    let computed = marginal(data, fitted, factor, 0.95).map_err(|error| error.to_string())?;
    let names: Result<Vec<&str>, String> = levels.iter().map(|level| text(level, "level")).collect();
    same("levels", computed.levels.iter().map(|level| level.level.as_str()).collect(), names?)?;
    for (computed, golden) in computed.levels.iter().zip(levels) {
        close(&format!("marginal {}", computed.level), computed.mean, number(golden, "prob")?, tolerance)?;
    }
    Ok(())
}
