//! `glmm`: fits of the mixed models against independent exact results, probes of the objective, lme4's cbpp, and lme4's
//! own default results with the lme4-compatible option.
//!
//! The folder is enumerated: a new `<set>.csv` with results of the same layout is checked without a change here.
use std::collections::BTreeMap;
use std::path::Path;

use earnest_stats::mixed::lme4::{self, DEFAULT_TOLERANCE, Lme4Objective, Lme4Options, finite_differences};
use earnest_stats::mixed::{
    INTERCEPT, IntegralChoice, MixedData, MixedError, MixedFit, MixedOptions, limit, minus_two_log_likelihood,
    unrefused,
};
use serde_json::Value;

use super::files;
use super::report::FileReport;

/// Standard errors from here on mean only "huge": the set is separated (README of the folder).
const HUGE_ERROR: f64 = 100.0;

type Row = Result<(), String>;

/// Files of results that are not of a set.
const PROBES: &str = "results/objective_probes.json";
const CBPP: &str = "results/cbpp.json";

/// Checks every file of `<root>/glmm`. A missing file that others need is reported as absent; files that do not need it are
/// still checked.
pub fn check(root: &Path) -> Vec<FileReport> {
    let folder = root.join("glmm");
    if !folder.is_dir() {
        return vec![FileReport::absent("glmm")];
    }
    let mut reports = Vec::new();
    let exact = files::names(&folder.join("results/exact"), ".json");
    if exact.is_empty() {
        reports.push(FileReport::absent("glmm/results/exact"));
    }
    for name in &exact {
        reports.push(check_set(&folder, &format!("results/exact/{name}"), exact_rows));
    }
    for name in files::names(&folder.join("results"), ".json") {
        let file = format!("results/{name}");
        if file != PROBES && file != CBPP {
            reports.push(check_set(&folder, &file, lme4_rows));
        }
    }
    reports.extend(check_probes(&folder));
    reports.push(if files::is_there(&folder.join(CBPP)) {
        check_file(&folder, CBPP, cbpp_rows)
    } else {
        FileReport::absent(format!("glmm/{CBPP}"))
    });
    // Sets without lme4's results. Exact results are not named: there is none where there is no estimate (README).
    for set in files::names(&folder, ".csv") {
        let stem = set.trim_end_matches(".csv");
        if stem != "cbpp" && !files::is_there(&folder.join(format!("results/{stem}.json"))) {
            reports.push(FileReport::absent(format!("glmm/results/{stem}.json")));
        }
    }
    reports
}

/// The probes, and the probed sets whose data are absent.
fn check_probes(folder: &Path) -> Vec<FileReport> {
    let path = folder.join(PROBES);
    if !files::is_there(&path) {
        return vec![FileReport::absent(format!("glmm/{PROBES}"))];
    }
    let probes = json(&path).ok();
    let points = probes.as_ref().and_then(|probes| probes.get("points")?.as_object());
    let sets: Vec<&String> = points.into_iter().flat_map(|points| points.keys()).collect();
    let is_absent = |set: &&&String| !files::is_there(&folder.join(format!("{set}.csv")));
    let mut reports: Vec<FileReport> = sets
        .iter()
        .filter(is_absent)
        .map(|set| FileReport::absent(format!("glmm/{set}.csv (for glmm/{PROBES})")))
        .collect();
    // Nothing can be checked if no set is there; a file that names no set, or is no JSON, is wrong.
    if sets.is_empty() || reports.len() < sets.len() {
        reports.push(check_file(folder, PROBES, probe_rows));
    }
    reports
}

/// Rows of a file of results: the folder, the file's stem, its content.
type Rows = fn(&Path, &str, &Value) -> Result<Vec<Row>, String>;

/// A file of results of one set; absent if the set's data are.
fn check_set(folder: &Path, file: &str, rows: Rows) -> FileReport {
    let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    if files::is_there(&folder.join(format!("{stem}.csv"))) {
        check_file(folder, file, rows)
    } else {
        FileReport::absent(format!("glmm/{stem}.csv (for glmm/{file})"))
    }
}

fn check_file(folder: &Path, file: &str, rows: Rows) -> FileReport {
    let label = format!("glmm/{file}");
    let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    match json(&folder.join(file)).and_then(|value| rows(folder, &stem, &value)) {
        Ok(rows) => FileReport::checked(label, rows),
        Err(error) => FileReport::unreadable(label, error),
    }
}

fn json(path: &Path) -> Result<Value, String> {
    let text = files::read(path).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// Columns of a CSV by name; a missing value is NaN.
struct Table(BTreeMap<String, Vec<f64>>);

impl Table {
    fn read(path: &Path) -> Result<Table, String> {
        let content = files::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut reader = csv::Reader::from_reader(content.as_bytes());
        let names: Vec<String> =
            reader.headers().map_err(|error| error.to_string())?.iter().map(str::to_owned).collect();
        let mut columns = vec![Vec::new(); names.len()];
        for record in reader.records() {
            let record = record.map_err(|error| error.to_string())?;
            for (column, field) in columns.iter_mut().zip(record.iter()) {
                let value = if field.is_empty() { Ok(f64::NAN) } else { field.parse::<f64>() };
                column.push(value.map_err(|error| format!("`{field}`: {error}"))?);
            }
        }
        Ok(Table(names.into_iter().zip(columns).collect()))
    }

    fn column(&self, name: &str) -> Result<&[f64], String> {
        self.0.get(name).map(Vec::as_slice).ok_or_else(|| format!("the CSV has no column `{name}`"))
    }

    /// `correct ~ fixed + (1 | id)`, without the rows where a fixed effect is missing.
    fn model(&self, fixed: &[String]) -> Result<MixedData, String> {
        self.data(fixed)?.map_err(|error| error.to_string())
    }

    /// The same; the inner result says whether the rows are a model.
    fn data(&self, fixed: &[String]) -> Result<Result<MixedData, MixedError>, String> {
        let columns = fixed.iter().map(|name| self.column(name)).collect::<Result<Vec<_>, _>>()?;
        let response = self.column("correct")?;
        let kept: Vec<usize> =
            (0..response.len()).filter(|&row| columns.iter().all(|column| column[row].is_finite())).collect();
        let pick = |column: &[f64]| kept.iter().map(|&row| column[row]).collect::<Vec<f64>>();
        let picked: Vec<Vec<f64>> = columns.iter().map(|column| pick(column)).collect();
        let named: Vec<(&str, &[f64])> =
            fixed.iter().map(String::as_str).zip(picked.iter().map(Vec::as_slice)).collect();
        let group: Vec<u64> = pick(self.column("id")?).iter().map(|id| id.to_bits()).collect();
        Ok(MixedData::of_columns(&pick(response), &named, &group))
    }
}

/// The fit by so many points, refused or not; of separated rows what the others determine.
fn fitted(data: &MixedData, points: usize) -> Result<MixedFit, String> {
    let integral = if points == 1 { IntegralChoice::Laplace } else { IntegralChoice::Quadrature { points } };
    let options = MixedOptions { integral, ..MixedOptions::default() };
    let found = unrefused(data, &options).map_err(|error| error.to_string())?;
    let limit = limit(data, &options).map_err(|error| error.to_string())?;
    Ok(match &limit {
        Some(limit) => found.with_limit(limit),
        None => found,
    })
}

fn number(value: &Value, path: &str) -> Result<f64, String> {
    path.split('/')
        .try_fold(value, |value, key| value.get(key))
        .and_then(Value::as_f64)
        .ok_or_else(|| format!("`{path}` is no number"))
}

fn close(what: &str, computed: Option<f64>, golden: f64, tolerance: f64) -> Row {
    match computed {
        Some(computed) if (computed - golden).abs() <= tolerance => Ok(()),
        Some(computed) => Err(format!("{what}: computed {computed:.9}, golden {golden:.9}, tolerance {tolerance:.1e}")),
        None => Err(format!("{what}: not computed, golden {golden}")),
    }
}

fn coefficients(entry: &Value) -> Result<Vec<(String, f64, Option<f64>)>, String> {
    let object = entry.get("coef").and_then(Value::as_object).ok_or("`coef` is no object")?;
    let read = |(name, value): (&String, &Value)| {
        let error = value.get("std_err").ok_or("`std_err` is missing")?;
        let error = if error.is_null() { None } else { Some(error.as_f64().ok_or("`std_err` is no number")?) };
        Ok((name.clone(), number(value, "estimate")?, error))
    };
    let mut found = object.iter().map(read).collect::<Result<Vec<_>, String>>()?;
    // JSON objects are unordered; the design's order must not matter, the intercept is implied.
    found.sort_by_key(|(name, _, _)| (name != INTERCEPT, name != "variant"));
    if found.is_empty() { Err("`coef` is empty".into()) } else { Ok(found) }
}

fn fixed_names(golden: &[(String, f64, Option<f64>)]) -> Vec<String> {
    golden.iter().map(|(name, _, _)| name.clone()).filter(|name| name != INTERCEPT).collect()
}

/// Exact results: one row a model and a number of points.
fn exact_rows(folder: &Path, stem: &str, value: &Value) -> Result<Vec<Row>, String> {
    let table = Table::read(&folder.join(format!("{stem}.csv")))?;
    let mut rows = Vec::new();
    for (model, entries) in value.as_object().ok_or("no object")? {
        let Some(entries) = entries.as_object() else { continue };
        for (points, entry) in entries {
            let check = || {
                let points = points.strip_prefix('q').and_then(|points| points.parse().ok()).ok_or("unknown key")?;
                exact_row(&table, entry, points)
            };
            rows.push(check().map_err(|error: String| format!("{model} {points}: {error}")));
        }
    }
    Ok(rows)
}

fn exact_row(table: &Table, entry: &Value, points: usize) -> Row {
    let golden = coefficients(entry)?;
    let data = table.model(&fixed_names(&golden))?;
    let fitted = fitted(&data, points)?;
    let undefined = |error: Option<f64>| error.is_none_or(|error| error > HUGE_ERROR);
    let separated = golden.iter().any(|(_, _, error)| undefined(*error));
    if separated != fitted.is("separation") {
        return Err(format!("separated {separated}, diagnoses {:?}", fitted.diagnoses));
    }
    let theta = number(entry, "theta")?;
    if (theta < 1e-4) != fitted.is("singular") {
        return Err(format!("random SD {theta}, diagnoses {:?}", fitted.diagnoses));
    }
    if fitted.is("not-converged") || fitted.is("indefinite-hessian") {
        return Err(format!("diagnoses {:?}", fitted.diagnoses));
    }
    for (name, estimate, error) in &golden {
        let computed = fitted.coefficient(name).ok_or_else(|| format!("no coefficient `{name}`"))?;
        if undefined(*error) {
            if computed.estimate.is_some() || computed.standard_error.is_some() {
                return Err(format!("{name} has no finite estimate, computed {computed:?}"));
            }
            continue;
        }
        let error = error.unwrap_or(f64::NAN);
        close(&format!("{name} estimate"), computed.estimate, *estimate, 1e-4)?;
        close(&format!("{name} standard error"), computed.standard_error, error, 1e-3_f64.min(1e-3 * error))?;
        let (z, p) = (estimate / error, number(entry, &format!("coef/{name}/p"))?);
        close(&format!("{name} z"), computed.z, z, 1e-3 * z.abs().max(1.0))?;
        close(&format!("{name} p"), computed.p, p, 1e-3)?;
    }
    close("random SD", fitted.deviation(), theta, 1e-3)?;
    // Separated sets are given where the optimiser stopped, which is only near the supremum.
    let tolerance = if separated { 1e-4 } else { 1e-6 };
    close("-2 log L", fitted.minus_two_log_likelihood, number(entry, "minus2logLik")?, tolerance)
}

/// Probes: one row a data set, model and point, then the degenerate probe.
fn probe_rows(folder: &Path, _: &str, value: &Value) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for (set, models) in value.get("points").and_then(Value::as_object).ok_or("`points` is no object")? {
        let path = folder.join(format!("{set}.csv"));
        if !files::is_there(&path) {
            // Reported as absent.
            continue;
        }
        let table = Table::read(&path)?;
        for (model, points) in models.as_object().ok_or("no models")? {
            let points = points.as_array().ok_or("no points")?;
            let mut objective = None;
            for (index, point) in points.iter().enumerate() {
                let row = probe_row(&table, point, &mut objective);
                rows.push(row.map_err(|error| format!("{set} {model} point {index}: {error}")));
            }
        }
    }
    if let Some(probe) = value.get("degenerate_probe") {
        degenerate_rows(folder, probe, &mut rows)?;
    }
    Ok(rows)
}

fn numbers(value: &Value, key: &str) -> Result<Vec<f64>, String> {
    let list = value.get(key).and_then(Value::as_array).ok_or_else(|| format!("`{key}` is no list"))?;
    list.iter().map(|entry| entry.as_f64().ok_or_else(|| format!("`{key}` has no number"))).collect()
}

fn probe_row(table: &Table, point: &Value, objective: &mut Option<Lme4Objective>) -> Row {
    let beta = numbers(point, "beta")?;
    let fixed: Vec<String> =
        ["variant", "gamma_c"].iter().take(beta.len() - 1).map(|name| (*name).to_owned()).collect();
    let data = table.model(&fixed)?;
    let theta = number(point, "theta")?;
    for (key, points) in [("laplace", 1), ("agq5", 5), ("agq25", 25)] {
        let computed = minus_two_log_likelihood(&data, theta, &beta, points).map_err(|error| error.to_string())?;
        close(key, Some(computed), number(point, key)?, 1e-6)?;
    }
    let objective = match objective {
        Some(known) => known,
        None => objective.insert(lme4_objective(&data)?),
    };
    let mut parameters = vec![theta];
    parameters.extend(beta);
    // The frozen predictor comes from our own first stage here, whose last digits are not lme4's.
    let golden = number(point, "lme4_default_objective")?;
    close("lme4's objective", Some(objective.value(&parameters)), golden, 1e-3)
}

fn lme4_objective(data: &MixedData) -> Result<Lme4Objective, String> {
    Lme4Objective::new(data, DEFAULT_TOLERANCE, None).map_err(|error| error.to_string())
}

fn degenerate_rows(folder: &Path, probe: &Value, rows: &mut Vec<Row>) -> Result<(), String> {
    let set = probe.get("dataset").and_then(Value::as_str).ok_or("`dataset` is no string")?;
    let path = folder.join(format!("{set}.csv"));
    if !files::is_there(&path) {
        return Ok(());
    }
    let table = Table::read(&path)?;
    let optimum = numbers(probe, "optimum")?;
    let fixed: Vec<String> =
        ["variant", "gamma_c"].iter().take(optimum.len() - 2).map(|name| (*name).to_owned()).collect();
    let data = table.model(&fixed)?;
    let mut objective = lme4_objective(&data)?;
    let first = objective.first_stage()[0];
    rows.push(close("random SD of the first stage", Some(first), number(probe, "theta_nAGQ0")?, 1e-4));

    // The recorded predictor, so that the objective itself is compared.
    let ids = table.column("id")?;
    let mut order: Vec<u64> = Vec::new();
    for id in ids {
        if !order.contains(&id.to_bits()) {
            order.push(id.to_bits());
        }
    }
    let mut frozen = BTreeMap::new();
    for entry in probe.get("lp0").and_then(Value::as_array).ok_or("`lp0` is no list")? {
        let group = order.iter().position(|id| *id == number(entry, "id").unwrap_or(f64::NAN).to_bits());
        frozen.insert((group.ok_or("unknown id")?, number(entry, "variant")? as i64), number(entry, "lp0")?);
    }
    // Covariates come back through a scale: 0 and 1 up to rounding.
    objective.freeze(|group, x| frozen.get(&(group, x[0].round() as i64)).copied().unwrap_or(f64::NAN));
    for entry in probe.get("grid").and_then(Value::as_array).ok_or("`grid` is no list")? {
        let check = || {
            let index = number(entry, "param_index_1theta_2intercept_3variant")? as usize;
            let mut at = optimum.clone();
            *at.get_mut(index.wrapping_sub(1)).ok_or("no such parameter")? += 1e-4 * number(entry, "steps_of_1e4")?;
            let exact = minus_two_log_likelihood(&data, at[0], &at[1..], 1).map_err(|error| error.to_string())?;
            close("Laplace", Some(exact), number(entry, "laplace_exact")?, 1e-6)?;
            close("lme4's objective", Some(objective.value(&at)), number(entry, "lme4_default_tol1e7")?, 1e-6)
        };
        rows.push(check().map_err(|error: String| format!("{set} grid: {error}")));
    }
    let derivatives = probe.get("derivs").ok_or("`derivs` is missing")?;
    let (gradient, hessian) = finite_differences(&mut |at| objective.value(at), &optimum);
    for (index, golden) in numbers(derivatives, "gradient")?.iter().enumerate() {
        rows.push(close("lme4's gradient", gradient.get(index).copied(), *golden, 1e-3 * golden.abs()));
    }
    for (index, golden) in derivatives.get("hessian").and_then(Value::as_array).ok_or("no Hessian")?.iter().enumerate()
    {
        let golden = golden.get(index).and_then(Value::as_f64).ok_or("no diagonal")?;
        rows.push(close("lme4's Hessian", hessian.get(index).map(|row| row[index]), golden, 1e-3 * golden.abs()));
    }
    Ok(())
}

/// lme4's cbpp example: binomial counts by herd and period. One row a fit.
fn cbpp_rows(_: &Path, _: &str, value: &Value) -> Result<Vec<Row>, String> {
    let entries = value.get("data").and_then(Value::as_array).ok_or("`data` is no list")?;
    let text = |entry: &Value, key: &str| -> Result<u64, String> {
        let field = entry.get(key).ok_or_else(|| format!("`{key}` is missing"))?;
        let text = field.as_str().map(str::to_owned).unwrap_or_else(|| field.to_string());
        text.parse().map_err(|_| format!("`{key}`: {text}"))
    };
    let (mut incidence, mut size, mut herd, mut period) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for entry in entries {
        incidence.push(number(entry, "incidence")?);
        size.push(number(entry, "size")?);
        herd.push(text(entry, "herd")?);
        period.push(text(entry, "period")?);
    }
    let levels: Vec<(String, Vec<f64>)> = (2..=4)
        .map(|level| (format!("period{level}"), period.iter().map(|p| f64::from(u8::from(*p == level))).collect()))
        .collect();
    let data = expand(&incidence, &size, &levels, &herd)?;
    let counts: Vec<(f64, f64)> = incidence.into_iter().zip(size).collect();
    let mut rows = Vec::new();
    for (name, entry) in value.get("fits").and_then(Value::as_object).ok_or("`fits` is no object")? {
        rows.push(cbpp_row(&data, &counts, name, entry).map_err(|error| format!("{name}: {error}")));
    }
    Ok(rows)
}

/// A row for every animal.
fn expand(successes: &[f64], trials: &[f64], fixed: &[(String, Vec<f64>)], group: &[u64]) -> Result<MixedData, String> {
    let (mut response, mut groups) = (Vec::new(), Vec::new());
    let mut columns = vec![Vec::new(); fixed.len()];
    for row in 0..successes.len() {
        for trial in 0..trials[row] as usize {
            response.push(f64::from(u8::from((trial as f64) < successes[row])));
            groups.push(group[row]);
            columns.iter_mut().zip(fixed).for_each(|(column, (_, values))| column.push(values[row]));
        }
    }
    let named: Vec<(&str, &[f64])> =
        fixed.iter().map(|(name, _)| name.as_str()).zip(columns.iter().map(Vec::as_slice)).collect();
    MixedData::of_columns(&response, &named, &groups).map_err(|error| error.to_string())
}

fn cbpp_row(data: &MixedData, counts: &[(f64, f64)], name: &str, entry: &Value) -> Row {
    let expanded = name.starts_with("bernoulli_");
    let points = name.trim_start_matches("bernoulli_").trim_start_matches("nAGQ").trim_end_matches("_tight");
    let points: usize = points.parse().map_err(|_| "unknown name")?;
    if points == 0 {
        let objective = lme4_objective(data)?;
        for (index, golden) in cbpp_coefficients(entry)?.iter().enumerate() {
            close("first stage estimate", objective.first_stage().get(index + 1).copied(), golden.0, 1e-3)?;
        }
        return close("first stage SD", Some(objective.first_stage()[0]), number(entry, "ranef_sd")?, 1e-3);
    }
    // Laplace is compared with lme4's default results, which lag (README): errors of 2 %. An even number of points has no
    // fit of ours; with 9 or more, one more point moves nothing above these tolerances.
    let (odd, error_tolerance) = if points == 1 { (1, 0.02) } else { (points + 1 - points % 2, 1e-3) };
    let fitted = fitted(data, odd)?;
    for ((golden, error), computed) in cbpp_coefficients(entry)?.iter().zip(&fitted.coefficients) {
        close(&format!("{} estimate", computed.name), computed.estimate, *golden, 1e-3)?;
        let what = format!("{} standard error", computed.name);
        close(&what, computed.standard_error, *error, error_tolerance * error)?;
    }
    close("random SD", fitted.deviation(), number(entry, "ranef_sd")?, 1e-3)?;
    let mut golden = -2.0 * number(entry, "logLik")?;
    // Of counts lme4's Laplace has the binomial coefficients; with quadrature what it keeps is relative to the saturated model (README).
    if !expanded {
        golden += if points == 1 { binomial_coefficients(counts) } else { saturated(counts) };
    }
    close("-2 log L", fitted.minus_two_log_likelihood, golden, 1e-2)
}

/// Twice the sum of the logarithms of the binomial coefficients.
fn binomial_coefficients(counts: &[(f64, f64)]) -> f64 {
    let of = |&(successes, trials): &(f64, f64)| {
        (0..successes as usize).map(|index| ((trials - index as f64) / (index as f64 + 1.0)).ln()).sum::<f64>()
    };
    2.0 * counts.iter().map(of).sum::<f64>()
}

/// Minus twice the log-likelihood of a model with a parameter for every row, without binomial coefficients.
fn saturated(counts: &[(f64, f64)]) -> f64 {
    counts
        .iter()
        .map(|&(successes, trials)| {
            let term = |count: f64| if count > 0.0 { count * (count / trials).ln() } else { 0.0 };
            -2.0 * (term(successes) + term(trials - successes))
        })
        .sum()
}

fn cbpp_coefficients(entry: &Value) -> Result<Vec<(f64, f64)>, String> {
    let list = entry.get("coef").and_then(Value::as_array).ok_or("`coef` is no list")?;
    list.iter().map(|entry| Ok((number(entry, "Estimate")?, number(entry, "Std. Error")?))).collect()
}

/// lme4's default results with the lme4-compatible option; sets without an exact result must get a diagnosis instead of
/// numbers. One row a model.
fn lme4_rows(folder: &Path, stem: &str, value: &Value) -> Result<Vec<Row>, String> {
    let table = Table::read(&folder.join(format!("{stem}.csv")))?;
    let exact = folder.join(format!("results/exact/{stem}.json"));
    let exact: Option<Value> = match files::is_there(&exact) {
        true => Some(json(&exact)?),
        false => None,
    };
    let mut rows = Vec::new();
    for (model, fixed) in [("glmm1", vec!["variant"]), ("glmm2", vec!["variant", "gamma_c"])] {
        let Some(entry) = value.get(model) else { continue };
        let fixed: Vec<String> = fixed.into_iter().map(str::to_owned).collect();
        let check = || -> Row {
            let default = entry.get("default").ok_or("`default` is missing")?;
            let said = default.get("error").and_then(Value::as_str);
            let data = match table.data(&fixed)? {
                Err(MixedError::OneGroup { .. }) if said == Some("grouping factors must have > 1 sampled level") => {
                    return Ok(());
                }
                data => data.map_err(|error| error.to_string())?,
            };
            let Some(exact) = exact.as_ref().and_then(|exact| exact.get(model)) else {
                // Undefined, or its exact result is not part of this copy: either the diagnosis or lme4's numbers. An
                // error of lme4's leaves the diagnosis only.
                return undefined_row(&data, default).or_else(|undefined| {
                    if default.get("error").is_some_and(Value::is_string) {
                        return Err(undefined);
                    }
                    lme4_row(&data, entry).map_err(|numbers| format!("neither {undefined} nor {numbers}"))
                });
            };
            let separated = coefficients(exact.get("q1").ok_or("`q1` is missing")?)?
                .iter()
                .any(|(_, _, error)| error.is_none_or(|error| error > HUGE_ERROR));
            // Where lme4's search stopped on a function without minimum is nobody's number.
            if separated {
                return undefined_row(&data, default);
            }
            lme4_row(&data, entry)
        };
        rows.push(check().map_err(|error| format!("{model}: {error}")));
    }
    Ok(rows)
}

/// A set without finite estimates: the diagnosis that lme4's error names, else separation of some kind.
fn undefined_row(data: &MixedData, default: &Value) -> Row {
    let fitted = fitted(data, 1)?;
    let has = |word: &str| {
        if fitted.is(word) { Ok(()) } else { Err(format!("no diagnosis `{word}`: {:?}", fitted.diagnoses)) }
    };
    match default.get("error").and_then(Value::as_str) {
        Some("Response is constant") => has("constant-response")?,
        _ => has("separation").or_else(|_| has("group-separation"))?,
    }
    match fitted.coefficient("variant") {
        Some(variant) if variant.estimate.is_none() && variant.standard_error.is_none() => Ok(()),
        other => Err(format!("a number where there is none: {other:?}")),
    }
}

/// A user's call must give lme4's numbers. Where it does not, the first stage must end where lme4's does, up to the width within
/// which rounding decides, and lme4's own end of it must lead to lme4's numbers.
fn lme4_row(data: &MixedData, entry: &Value) -> Row {
    let default = entry.get("default").ok_or("`default` is missing")?;
    let first = lme4_objective(data)?.first_stage()[0];
    let recorded = entry.get("nAGQ0").and_then(|fit| fit.get("theta")).and_then(Value::as_f64);
    if let Some(recorded) = recorded {
        close("random SD of the first stage", Some(first), recorded, 3e-6 * recorded.max(1.0))?;
    }
    lme4_end(data, default, None).or_else(|own| {
        let recorded = recorded.ok_or_else(|| own.clone())?;
        println!("    rounding decides: {own}");
        lme4_end(data, default, Some(recorded)).map_err(|other| format!("{own}; from lme4's first stage: {other}"))
    })
}

fn lme4_end(data: &MixedData, default: &Value, first_stage: Option<f64>) -> Row {
    let golden = coefficients(default)?;
    let options = Lme4Options { first_stage, ..Lme4Options::default() };
    let fitted = lme4::fit(data, options).map_err(|error| error.to_string())?;
    for (name, estimate, error) in &golden {
        let computed = fitted.coefficient(name).ok_or_else(|| format!("no coefficient `{name}`"))?;
        let error = error.ok_or("no standard error")?;
        close(&format!("{name} estimate"), computed.estimate, *estimate, 1e-3)?;
        close(&format!("{name} standard error"), computed.standard_error, error, 0.01 * error)?;
    }
    let artefact = golden.iter().any(|(_, _, error)| error.is_some_and(|error| error < 0.01));
    if artefact == fitted.is("degenerate-errors") { Ok(()) } else { Err(format!("artefact {artefact}: {fitted:?}")) }
}
