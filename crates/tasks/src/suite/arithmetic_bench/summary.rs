//! Tables, curves and notes.
use super::score::{BOUNDARY, COMPAT, LAST_NUMBER, WITH_THINKING, scorers};
use super::table::{Group, ItemScores, gather};
use super::{Options, Scorer, Task, baseline};
use crate::suite::{FailureClass, Interval, Scored, Series, Summary, SummaryRow};
use crate::{agreeing, counted};

/// End of the names of rows without the questions whose second operand is 1.
pub(super) const WITHOUT_ONE: &str = ", b > 1";

/// Summarises any subset of the items, with any number of samples each.
///
/// Rows: one a task; behind `mul_1` and `div_1` the same without `b = 1`; then `all`. Accuracies count items (several
/// samples of an item make one value) and carry Wilson intervals; `SCORER, mean over lengths` of the deciding scorer weighs every length
/// equally and carries the stratified interval. A column without items (lengths 1-3 of a run on longer ones) is left out.
pub(super) fn summarise(options: &Options, samples: &[Scored<'_>]) -> Summary {
    let (items, left_out) = gather(samples);
    let scorer = options.scorer;
    let thinking = samples.iter().any(|sample| sample.score.metrics.get("thinking") == Some(1.0));
    let mut summary = Summary { rows: Vec::new(), series: Vec::new(), notes: Vec::new() };
    for task in Task::ALL {
        let group = Group::select(&items, |item| item.task == task);
        if group.0.is_empty() {
            continue;
        }
        let mut row = row(task.id(), &group, scorer, thinking);
        row.numbers.extend(curve_numbers(&group, options));
        row.numbers.extend(chances(&group));
        summary.notes.extend(chance_note(task, &group, scorer));
        summary.rows.push(row);
        if matches!(task, Task::Mul1 | Task::Div1) {
            let rest = group.filter(|item| item.b_is_one == Some(false));
            if !rest.0.is_empty() {
                summary.rows.push(self::row(&format!("{task}{WITHOUT_ONE}"), &rest, scorer, thinking));
            }
        }
        summary.series.extend(curves(task, &group, scorer, thinking));
    }
    let all = Group::select(&items, |_| true);
    if !all.0.is_empty() {
        summary.rows.push(row("all", &all, scorer, thinking));
    }
    summary.notes.extend(general_notes(&items, left_out, thinking));
    summary
}

fn row(name: &str, group: &Group<'_, '_>, scorer: Scorer, thinking: bool) -> SummaryRow {
    let short = group.filter(|item| item.length <= 3);
    let long = group.filter(|item| item.length > 3);
    let chosen = scorer.name();
    let accuracy = |name: &str| (name.to_owned(), group.accuracy(name));
    let mut values: Vec<_> = scorers(scorer).into_iter().map(accuracy).collect();
    values.extend([
        (format!("{chosen}, mean over lengths"), group.mean_over_cells(chosen)),
        (format!("{chosen}, lengths 1-3"), short.accuracy(chosen)),
        (format!("{chosen}, lengths 4+"), long.accuracy(chosen)),
    ]);
    if thinking {
        values.extend(WITH_ALL.map(|name| accuracy(&format!("{name}{WITH_THINKING}"))));
    }
    let failure =
        |class: &FailureClass| group.mean(|sample| Some(f64::from(sample.score.failure.as_ref() == Some(class))));
    let metric = |name: &'static str| group.mean(move |sample| sample.score.metrics.get(name));
    let numbers = [
        ("items", Some(group.0.len() as f64)),
        ("cluster-robust se", group.cluster_robust_se()),
        ("truncated", group.mean(|sample| Some(f64::from(sample.truncated)))),
        ("empty", failure(&FailureClass::Empty)),
        ("refusal", failure(&FailureClass::Refusal)),
        ("operands repeated", metric("echo")),
        ("digit match", metric("digit_match")),
        ("length error", metric("length_error")),
        ("distinct candidates", metric("distinct_candidates")),
        ("tokens", group.mean(|sample| Some(sample.tokens as f64))),
    ];
    SummaryRow {
        name: name.to_owned(),
        n: group.samples().count(),
        values: values.into_iter().filter_map(|(name, value)| Some((name, value?))).collect(),
        numbers: numbers.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect(),
    }
}

/// The scorers that also score answers with their thinking.
const WITH_ALL: [&str; 3] = [BOUNDARY, COMPAT, LAST_NUMBER];

/// Area under the curve, and how far it stays high.
fn curve_numbers(group: &Group<'_, '_>, options: &Options) -> Vec<(String, f64)> {
    let curve = group.curve(options.scorer.name());
    vec![
        ("area under curve".to_owned(), area(&curve)),
        ("all lengths >= 0.9 up to".to_owned(), reach(&curve, options.lengths.as_slice()) as f64),
    ]
}

/// The area under accuracy by length (trapezoids), divided by the range of lengths: 1 for a model that is always right. A
/// single length has its accuracy.
fn area(curve: &[(usize, usize, Interval)]) -> f64 {
    match curve {
        [] => 0.0,
        [(_, _, only)] => only.estimate,
        [(first, ..), .., (last, ..)] => {
            let trapezoids = curve
                .windows(2)
                .map(|pair| (pair[1].0 - pair[0].0) as f64 * (pair[0].2.estimate + pair[1].2.estimate) / 2.0);
            trapezoids.sum::<f64>() / (last - first) as f64
        }
    }
}

/// The largest length such that it and every shorter selected length have an accuracy of at least 0.9; 0 if the first has
/// not. A length without samples ends the search: nothing is known about it.
fn reach(curve: &[(usize, usize, Interval)], lengths: &[usize]) -> usize {
    let accuracy = |length: usize| curve.iter().find(|point| point.0 == length).map(|point| point.2.estimate);
    // A tolerance, since nine of ten need not be 0.9 in binary when samples are averaged.
    let high = |length: &usize| accuracy(*length).is_some_and(|accuracy| accuracy >= 0.9 - 1e-9);
    lengths.iter().copied().take_while(high).last().unwrap_or(0)
}

/// Baselines at the lengths of the group's items.
fn chances(group: &Group<'_, '_>) -> Vec<(String, f64)> {
    vec![
        ("chance: operands repeated".to_owned(), group.expectation(|task, n| baseline(task, n).echo)),
        ("chance: best constant".to_owned(), best_constant(group)),
        ("chance: always 0".to_owned(), group.expectation(|task, n| baseline(task, n).zero)),
    ]
}

/// For `count` the best constant given the length; for `length`, where that would be the answer, one constant for all.
/// Zero for the other tasks, whose answers are too many to guess.
fn best_constant(group: &Group<'_, '_>) -> f64 {
    let total = group.0.len() as f64;
    let largest = group.cells().filter(|(task, ..)| *task == Task::Length).map(|(.., cell)| cell.0.len()).max();
    match largest {
        Some(cell) => cell as f64 / total,
        None => group.expectation(|task, n| baseline(task, n).constant.unwrap_or(0.0)),
    }
}

fn chance_note(task: Task, group: &Group<'_, '_>, scorer: Scorer) -> Option<String> {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let echo = percent(group.expectation(|task, n| baseline(task, n).echo));
    let score = group.accuracy(scorer.name())?.estimate;
    let (floor, text) = match task {
        Task::Count => {
            let constant = best_constant(group);
            let zero = percent(group.expectation(|task, n| baseline(task, n).zero));
            let best = percent(constant);
            (constant, format!("count: always answering (0) scores {zero}, the best constant for each length {best}"))
        }
        Task::Length => {
            let constant = best_constant(group);
            (constant, format!("length: one constant for all lengths scores {}", percent(constant)))
        }
        Task::Mul1 | Task::Div1 => {
            let floor = group.expectation(|task, n| baseline(task, n).echo);
            let text =
                format!("{task}: repeating the operands scores {echo}, mostly where b = 1; see the row without it");
            (floor, text)
        }
        Task::Rev => {
            let floor = group.expectation(|task, n| baseline(task, n).echo);
            (floor, format!("rev: repeating the number scores {echo}, by palindromes"))
        }
        _ => return None,
    };
    let remark = if score <= floor { "; the score here is not above that" } else { "" };
    Some(format!("{text} (exact, for the lengths of these items){remark}."))
}

fn general_notes(items: &[ItemScores<'_>], left_out: usize, thinking: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if items.iter().any(|item| item.length <= 3) {
        notes.push(
            "At lengths 1 to 3 a long response can contain the answer by accident; they are shown apart from the others."
                .to_owned(),
        );
    }
    if items.iter().any(|item| item.samples.len() > 1) {
        notes.push("Items have several samples; intervals count items, not samples.".to_owned());
    }
    if thinking {
        notes.push(
            "Thinking is not part of the answer; the columns with_thinking score it too, as the paper may have done."
                .to_owned(),
        );
    }
    if left_out > 0 {
        notes.push(format!(
            "{} of no task of this suite or without a length {} left out.",
            counted(left_out, "sample"),
            agreeing(left_out, "is", "are")
        ));
    }
    notes
}

fn curves(task: Task, group: &Group<'_, '_>, scorer: Scorer, thinking: bool) -> Vec<Series> {
    let with_thinking = WITH_ALL.map(|name| format!("{name}{WITH_THINKING}"));
    let plain = scorers(scorer).into_iter().map(str::to_owned);
    let all_names = plain.chain(with_thinking.into_iter().filter(|_| thinking));
    let series = |scorer: String| Series {
        points: group.curve(&scorer).into_iter().map(|(length, n, value)| (length as f64, n, value)).collect(),
        name: format!("{scorer} accuracy by length"),
        task: task.to_string(),
    };
    all_names.map(series).filter(|series| !series.points.is_empty()).collect()
}
