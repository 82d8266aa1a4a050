//! Tables of a study: its plan and its results.
use super::reasons::by_text;
use crate::cli::offered;
use crate::cli::tally::clock;
use crate::cli::values::counted;
use earnest_eval::study::{Adjustment, Dimension, Estimate};
use earnest_report::study::{Coordinates, Family, MixedModel, MixedModelResult, StudyResults};
use earnest_report::{Table, keys, p_sentence, p_text, wrap, wrap_lines};
use earnest_results::{Shard, ends};
use earnest_stats::PairedTest;

/// The runs in their order with their cost; prose is wrapped at `width` columns.
pub fn plan(estimate: &Estimate, width: usize) -> String {
    let prompts = several(estimate.runs.iter().map(|run| run.prompt.as_str()));
    let mut names = vec!["model", "task"];
    names.extend(prompts.then_some("prompt"));
    let left = names.len();
    names.extend(["samples", "left", "prompt tokens", "new tokens", "time"]);
    let mut table = Table::with_left(left, names);
    for run in &estimate.runs {
        let mut cells = vec![run.model.clone(), run.task.clone()];
        cells.extend(prompts.then(|| run.prompt.clone()));
        match run.problem {
            Some(_) => cells.extend(["-"; 5].map(str::to_owned)),
            None => {
                cells.extend([run.samples.to_string(), run.left.to_string()]);
                cells.extend(costs(run.prompt_tokens, run.new_tokens, run.at_most, run.seconds));
            }
        }
        table.row(cells);
    }
    table.rule();
    let mut cells = vec!["all".to_owned()];
    cells.resize(left, String::new());
    let samples = estimate.runs.iter().map(|run| run.samples).sum::<usize>();
    cells.extend([samples.to_string(), estimate.samples.to_string()]);
    cells.extend(costs(estimate.prompt_tokens, estimate.new_tokens, estimate.at_most, estimate.seconds));
    table.row(cells);
    let mut text =
        format!("{}: {}\n\n{}", estimate.study, counted(estimate.runs.len(), "run"), table.render_within(width));
    plan_remarks(estimate).iter().for_each(|remark| text.push_str(&wrap(remark, width, "* ")));
    text
}

fn costs(prompt_tokens: f64, new_tokens: f64, at_most: bool, seconds: Option<f64>) -> [String; 3] {
    let most = if at_most { "<= " } else { "" };
    let time = seconds.map_or_else(|| "?".to_owned(), |seconds| format!("{most}{}", clock(seconds)));
    [count(prompt_tokens), format!("{most}{}", count(new_tokens)), time]
}

/// A large number with three digits, e.g. `4.21 M`.
fn count(number: f64) -> String {
    let units = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match units.iter().find(|(unit, _)| number >= *unit) {
        None => format!("{number:.0}"),
        Some((unit, name)) => {
            let value = number / unit;
            let digits = if value >= 100.0 {
                0
            } else if value >= 10.0 {
                1
            } else {
                2
            };
            format!("{value:.digits$} {name}")
        }
    }
}

fn plan_remarks(estimate: &Estimate) -> Vec<String> {
    let mut remarks = estimate.notes.clone();
    if estimate.samples == 0 && estimate.runs.iter().all(|run| run.problem.is_none()) {
        remarks.push("Every run is finished; nothing is left to ask.".to_owned());
        return remarks;
    }
    if estimate.at_most {
        remarks.push("<= is a limit: the model has no earlier run whose answers tell their length.".to_owned());
    }
    if estimate.runs.iter().any(|run| run.prompt_tokens_estimated && run.left > 0) {
        remarks.push("Prompts for endpoints without a tokenizer are estimated at 4 bytes a token.".to_owned());
    }
    let mut seen: Vec<&str> = Vec::new();
    for run in estimate.runs.iter().filter(|run| run.left > 0) {
        if !seen.contains(&run.model.as_str()) {
            seen.push(&run.model);
            remarks.push(match &run.rate {
                Some(rate) => format!("{}: {}", run.model, rate.describe()),
                None => format!("{}: no earlier run on this machine tells its rate; --measure measures it", run.model),
            });
        }
    }
    // A model that cannot be opened has the same problem in each of its runs, and so have several of one file.
    let problems = estimate.runs.iter().filter_map(|run| Some((run.model.as_str(), run.problem.as_deref()?)));
    remarks.extend(by_text(problems, " cannot be run: ").iter().map(|problem| keys(problem)));
    remarks
}

/// The results: accuracies, differences, mixed models.
pub fn results(results: &StudyResults, shard: Option<Shard>, width: usize) -> String {
    let mut text = format!("{}\n\n{}", results.study, accuracies(results, width));
    let mut remarks =
        vec!["Accuracies in per cent with 95 % intervals that are robust to clusters of items.".to_owned()];
    if let Some(shard) = shard {
        remarks.push(format!(
            "These are the rows of part {shard}. When all parts are finished, `earnest merge` joins them, and the same command \
             without --shard compares the runs."
        ));
    }
    remarks.iter().for_each(|remark| text.push_str(&wrap(&offered::here(remark), width, "* ")));
    for family in &results.comparisons {
        match family.differences.is_empty() {
            true => text.push_str(&no_differences(results, family, width)),
            false => text.push_str(&differences(family, width)),
        }
    }
    for model in &results.mixed_models {
        text.push_str(&mixed_model(model, width));
    }
    if !results.notes.is_empty() {
        text.push('\n');
        results.notes.iter().for_each(|note| text.push_str(&wrap(note, width, "* ")));
    }
    wrap_lines(&text, width)
}

fn accuracies(results: &StudyResults, width: usize) -> String {
    let prompts = several(results.runs.iter().map(|run| run.place.prompt.as_str()));
    let mut names = vec!["task"];
    names.extend(prompts.then_some("prompt"));
    names.push("model");
    let left = names.len();
    names.extend(["samples", "accuracy %", "95 % interval", "cut off", "failed"]);
    let mut table = Table::with_left(left, names);
    // By task and prompt, so that the models stand below each other.
    let mut runs: Vec<_> = results.runs.iter().collect();
    let index = |name: &str, of: fn(&Coordinates) -> &str| {
        results.runs.iter().position(|run| of(&run.place) == name).unwrap_or(usize::MAX)
    };
    runs.sort_by_key(|run| (index(&run.place.task, |at| &at.task), index(&run.place.prompt, |at| &at.prompt)));
    for run in runs {
        let mut cells = vec![run.place.task.clone()];
        cells.extend(prompts.then(|| run.place.prompt.clone()));
        cells.push(run.place.model.clone());
        match &run.totals {
            Some(totals) => cells.extend([
                totals.recorded.to_string(),
                run.accuracy.map_or_else(dash, |accuracy| format!("{:.1}", 100.0 * accuracy)),
                interval(run.low.zip(run.high), 1),
                totals.truncated.to_string(),
                totals.failed.to_string(),
            ]),
            None => cells.extend(["-", run.status].map(str::to_owned)),
        }
        table.row(cells);
    }
    table.render_within(width)
}

/// The reason for having no table of differences, in sentences.
fn no_differences(results: &StudyResults, family: &Family, width: usize) -> String {
    let (between, one) = (dimension_name(family.between), singular(family.between));
    let finished: Vec<&Coordinates> =
        results.runs.iter().filter(|run| run.totals.is_some()).map(|run| &run.place).collect();
    let (done, all) = (finished.len(), results.runs.len());
    let has_baseline = |name: &str| finished.iter().any(|place| place.along(family.between) == name);
    let apart = format!("differ in their {one} alone and have an item in common");
    let why = match &family.baseline {
        Some(name) if !has_baseline(name) => format!("no run of the {one} {name} is finished"),
        _ if done == all => format!("no two runs {apart}"),
        _ if done < 2 => format!("{done} of {all} runs is finished"),
        _ => format!("{done} of {all} runs are finished, and no two of them {apart}"),
    };
    format!("\n{}", wrap(&format!("No differences between {between}: {why}."), width, "* "))
}

/// The word of a study's file for a dimension: `models`.
fn dimension_name(wanted: Dimension) -> &'static str {
    Dimension::NAMES.iter().find(|(_, one)| *one == wanted).map_or("", |(name, _)| *name)
}

fn differences(family: &Family, width: usize) -> String {
    let others: Vec<Dimension> =
        Dimension::NAMES.iter().map(|(_, other)| *other).filter(|other| *other != family.between).collect();
    // Coordinates that are the same in all rows need no column.
    let shown: Vec<Dimension> = others
        .into_iter()
        .filter(|other| several(family.differences.iter().map(|one| one.run.along(*other))))
        .collect();
    let mut names: Vec<&str> = shown.iter().map(|dimension| singular(*dimension)).collect();
    names.extend(["A", "B"]);
    let left = names.len();
    names.extend(["items", "A %", "B %", "change", "95 % interval", "p"]);
    let adjusted = family.adjust == Adjustment::Holm;
    names.extend(if adjusted { &["p Holm", "p BH"][..] } else { &[] });
    names.push("McNemar p");
    let mut table = Table::with_left(left, names);
    for one in &family.differences {
        let found = &one.difference;
        let mut cells: Vec<String> = shown.iter().map(|dimension| one.run.along(*dimension).to_owned()).collect();
        cells.extend([&one.baseline, &one.run].map(|place| place.along(family.between).to_owned()));
        cells.extend([
            found.items.to_string(),
            format!("{:.1}", 100.0 * found.baseline),
            format!("{:.1}", 100.0 * found.run),
            format!("{:+.1}", 100.0 * found.difference),
            found.interval.map_or_else(dash, |(low, high)| {
                format!("[{}]", ends((100.0 * low, 100.0 * high), 0.0, 1, true).join(", "))
            }),
            found.p.map_or_else(dash, p_text),
        ]);
        if adjusted {
            cells.extend([found.p_holm, found.p_bh].map(|p| p.map_or_else(dash, p_text)));
        }
        cells.push(found.mcnemar_p.map_or_else(dash, p_text));
        table.row(cells);
    }
    let between = dimension_name(family.between);
    let mut text = format!("\nPaired differences between {between}\n\n{}", table.render_within(width));
    let holm = match family.family_size {
        tests @ 2.. => format!(
            " Holm's method adjusts for the {tests} tests of this table, and so does Benjamini and Hochberg's (BH), which bounds the \
             share of false findings."
        ),
        _ => String::new(),
    };
    let tested = || family.differences.iter().filter_map(|one| one.difference.test);
    let exact = tested().filter(|test| *test != PairedTest::ClusterT).count();
    let how = match tested().count() {
        all if exact == 0 || all == 0 => "by the t test, robust to clusters of items".to_owned(),
        all if exact == all => "exact, because few answers are right or wrong, or few clusters differ".to_owned(),
        all => format!(
            "by the t test, robust to clusters of items, and in {exact} of {all} rows exact, where few answers are right or wrong or few \
             clusters differ"
        ),
    };
    text.push_str(&wrap(
        &format!(
            "Changes from A to B in points, paired by item; intervals and p are {how}. McNemar's exact test takes items as \
             independent.{holm}"
        ),
        width,
        "* ",
    ));
    text
}

fn mixed_model(model: &MixedModelResult, width: usize) -> String {
    let tasks = if model.tasks.is_empty() { String::new() } else { format!(", tasks {}", model.tasks.join(", ")) };
    let mut text = format!("\nMixed model: logit P {}{tasks}\n\n", model.formula);
    match &model.outcome {
        MixedModel::Impossible { problem } => {
            text.push_str(&wrap(&keys(&format!("It cannot be fitted: {problem}.")), width, "* "));
        }
        MixedModel::Mixed { .. } => text.push_str(&fitted(&model.outcome, width)),
    }
    text
}

/// Coefficients and averaged differences of a model.
fn fitted(model: &MixedModel, width: usize) -> String {
    let MixedModel::Mixed { fit, intervals, references, rows, dropped, variance_p, marginal, choice } = model else {
        return String::new();
    };
    if let Some(reason) = fit.refusal() {
        let steps = choice.iter().skip(1).map(|step| format!("{step}."));
        return std::iter::once(format!("It cannot be fitted: {reason}."))
            .chain(steps)
            .fold(String::new(), |text, remark| text + &wrap(&remark, width, "* "));
    }
    let mut table = Table::with_left(1, ["", "log odds", "std. error", "z", "p", "odds ratio", "95 % interval"]);
    for (one, found) in fit.coefficients.iter().zip(intervals) {
        let decimal = |value: Option<f64>| value.map_or_else(dash, |value| format!("{value:.4}"));
        table.row(vec![
            one.name.clone(),
            decimal(one.estimate),
            decimal(one.standard_error),
            one.z.map_or_else(dash, |z| format!("{z:.2}")),
            one.p.map_or_else(dash, p_text),
            decimal(one.estimate.map(f64::exp)),
            found.map_or_else(dash, |(low, high)| format!("[{}]", ends((low, high), 0.0, 4, false).join(", "))),
        ]);
    }
    let mut text = table.render_within(width);
    let differences: Vec<_> = marginal.iter().flat_map(|one| &one.differences).collect();
    if !differences.is_empty() {
        let mut table =
            Table::with_left(1, ["averaged over the random effects", "points", "95 % interval", "p Holm", "p BH"]);
        for one in differences {
            table.row(vec![
                format!("{} - {}", one.level, one.against),
                format!("{:+.1}", 100.0 * one.difference),
                format!("[{}]", ends((100.0 * one.low, 100.0 * one.high), 0.0, 1, true).join(", ")),
                p_text(one.holm),
                p_text(one.benjamini_hochberg),
            ]);
        }
        text.push('\n');
        text.push_str(&table.render_within(width));
    }
    let without = if *dropped > 0 { format!("; {dropped} without a value in some column") } else { String::new() };
    let mut remarks = vec![format!("{}{without}. Intervals are in log odds.", counted(*rows, "row"))];
    remarks.extend(fit.basis_in_words().map(|basis| format!("Intervals and p have {basis}.")));
    for effect in &fit.random {
        let each = effect.terms.iter().zip(&effect.sd).map(|(term, sd)| format!("{term} {sd:.4}"));
        let each = each.collect::<Vec<_>>().join(", ");
        let p = variance_p.map_or_else(String::new, |p| format!(", {} (likelihood ratio)", p_sentence(p)));
        remarks.push(format!("SDs between {} groups of {}: {each}{p}.", effect.groups, effect.group));
    }
    for found in marginal.iter().filter(|found| found.differences.len() > 1) {
        let factor = found.factor.as_deref().unwrap_or("all rows");
        let tests = found.differences.len();
        remarks.push(format!(
            "p Holm and p BH (Benjamini-Hochberg) are adjusted for the {tests} differences of {factor}."
        ));
    }
    remarks.extend(choice.iter().skip(1).map(|step| format!("{step}.")));
    remarks.extend(references.iter().map(|(column, level)| format!("{column}: differences from {level}.")));
    remarks.extend(fit.diagnoses.iter().map(|diagnosis| format!("Warning: {diagnosis}.")));
    remarks.iter().for_each(|remark| text.push_str(&wrap(remark, width, "* ")));
    text
}

fn dash() -> String {
    "-".to_owned()
}

fn interval(bounds: Option<(f64, f64)>, digits: usize) -> String {
    bounds.map_or_else(dash, |(low, high)| format!("[{:.digits$}, {:.digits$}]", 100.0 * low, 100.0 * high))
}

fn singular(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Models => "model",
        Dimension::Tasks => "task",
        Dimension::Prompts => "prompt",
    }
}

/// True if there are different names.
fn several<'a>(mut names: impl Iterator<Item = &'a str>) -> bool {
    let first = names.next();
    names.any(|name| Some(name) != first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_report::study::RunResult;
    use earnest_results::Totals;

    #[test]
    fn counts_have_three_digits() {
        let texts = [0.0, 999.0, 1_234.0, 45_678.0, 4_210_000.0, 3.1e11].map(count);
        assert_eq!(texts, ["0", "999", "1.23 k", "45.7 k", "4.21 M", "310 G"]);
    }

    #[test]
    fn a_comparison_of_nothing_says_why() {
        let run = |model: &str, task: &str, finished: bool| RunResult {
            place: Coordinates { model: model.into(), task: task.into(), prompt: "auto".into() },
            status: if finished { "finished" } else { "failed" },
            run: None,
            error: None,
            totals: finished.then(Totals::default),
            scorer: None,
            accuracy: None,
            low: None,
            high: None,
            scored: 0,
        };
        let said = |runs: Vec<RunResult>, baseline: Option<&str>| {
            let family = Family {
                between: Dimension::Models,
                baseline: baseline.map(str::to_owned),
                adjust: Adjustment::Holm,
                family_size: 0,
                differences: Vec::new(),
            };
            let found = StudyResults {
                format: 1,
                study: "small".into(),
                runs,
                comparisons: vec![family],
                mixed_models: Vec::new(),
                notes: Vec::new(),
                report: None,
            };
            let text = results(&found, None, 80);
            assert!(!text.contains("Paired differences") && !text.contains("McNemar"), "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            words.split_once("* No differences between models: ").unwrap().1.to_owned()
        };
        let failed = || run("broken", "sums", false);
        assert_eq!(said(vec![run("a", "sums", true), failed()], None), "1 of 2 runs is finished.");
        assert_eq!(
            said(vec![run("a", "sums", true), failed()], Some("broken")),
            "no run of the model broken is finished."
        );
        let apart = "differ in their model alone and have an item in common.";
        let two = || vec![run("a", "sums", true), run("b", "copies", true)];
        assert_eq!(said(two(), None), format!("no two runs {apart}"));
        let three = two().into_iter().chain([failed()]).collect();
        assert_eq!(said(three, None), format!("2 of 3 runs are finished, and no two of them {apart}"));
    }
}
