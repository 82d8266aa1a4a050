//! Arithmetic-Bench from items to tables, with made-up responders whose scores are known.
use earnest_tasks::suite::arithmetic_bench::{ArithmeticBench, Options, Task};
use earnest_tasks::suite::{Answered, Interval, Item, Items, Score, Scored, Scoring, Summary, SummaryRow};

fn bench(change: impl FnOnce(&mut Options)) -> ArithmeticBench {
    let mut options = Options { per_length: 2, ..Options::default() };
    change(&mut options);
    ArithmeticBench::new(options).unwrap()
}

fn run_on(
    bench: &ArithmeticBench,
    items: impl Iterator<Item = Item>,
    responder: impl Fn(&Item) -> Vec<String>,
) -> Summary {
    let mut judged: Vec<(Item, Score, bool)> = Vec::new();
    for item in items {
        for completion in responder(&item) {
            let truncated = completion.ends_with('…');
            judged.push((
                item.clone(),
                bench.score(&item, &Answered { completion: &completion, truncated }),
                truncated,
            ));
        }
    }
    let samples: Vec<Scored<'_>> = judged
        .iter()
        .map(|(item, score, truncated)| Scored { item, score, tokens: 7, truncated: *truncated })
        .collect();
    bench.summarise(&samples)
}

fn run(bench: &ArithmeticBench, responder: impl Fn(&Item) -> String) -> Summary {
    run_on(bench, bench.iter(), |item| vec![responder(item)])
}

fn row<'s>(summary: &'s Summary, name: &str) -> &'s SummaryRow {
    summary.rows.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no row {name}"))
}

fn value(row: &SummaryRow, name: &str) -> Interval {
    row.values.iter().find(|(column, _)| column == name).unwrap_or_else(|| panic!("no column {name}")).1
}

fn number(row: &SummaryRow, name: &str) -> f64 {
    row.numbers.iter().find(|(column, _)| column == name).unwrap_or_else(|| panic!("no number {name}")).1
}

fn length(item: &Item) -> u64 {
    item.covariates["length"].as_u64().unwrap()
}

#[test]
fn a_perfect_responder_scores_one_everywhere() {
    let bench = bench(|_| ());
    let summary = run(&bench, |item| item.gold.clone());
    let names: Vec<&str> = summary.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names.len(), 16 + 2 + 1);
    assert_eq!(names[6..10], ["mul_1", "mul_1, b > 1", "div_1", "div_1, b > 1"]);
    assert_eq!(names.last(), Some(&"all"));
    for row in &summary.rows {
        for column in
            ["boundary", "compat", "last_number", "final", "boundary, mean over lengths", "boundary, lengths 1-3"]
        {
            let value = value(row, column);
            assert_eq!((value.estimate, value.high), (1.0, 1.0), "{} {column}", row.name);
            assert!(value.low > 0.5 && value.low < 1.0);
        }
        assert!((number(row, "digit match"), number(row, "length error"), number(row, "truncated")) == (1.0, 0.0, 0.0));
    }
    for task in Task::ALL {
        assert_eq!(number(row(&summary, task.id()), "area under curve"), 1.0);
        assert_eq!(number(row(&summary, task.id()), "all lengths >= 0.9 up to"), 100.0);
        let series: Vec<_> = summary.series.iter().filter(|series| series.task == task.id()).collect();
        assert_eq!(series.len(), 4);
        assert!(
            series.iter().all(|s| s.points.len() == 100 && s.points.iter().all(|p| p.1 == 2 && p.2.estimate == 1.0))
        );
    }
    assert_eq!(row(&summary, "all").n, 3_200);
}

#[test]
fn a_step_curve_has_its_area_its_reach_and_a_narrow_interval() {
    let bench = bench(|o| (o.tasks, o.per_length) = (vec![Task::Add], 10));
    let summary = run(&bench, |item| if length(item) <= 30 { item.gold.clone() } else { "1".into() });
    let row = row(&summary, "add");
    assert_eq!(number(row, "all lengths >= 0.9 up to"), 30.0);
    assert!((number(row, "area under curve") - 29.5 / 99.0).abs() < 1e-12);
    let (wilson, stratified) = (value(row, "boundary"), value(row, "boundary, mean over lengths"));
    assert!((wilson.estimate - 0.3).abs() < 1e-12 && (wilson.low - 0.272).abs() < 1e-3);
    assert!((stratified.estimate - 0.3).abs() < 1e-12);
    assert!(stratified.low < 0.3 && stratified.high > 0.3 && stratified.high - stratified.low < 0.01);
    // The cluster-robust error knows that lengths stand or fall together: ten items of a length are one.
    assert!((number(row, "cluster-robust se") - (0.21f64 / 99.0).sqrt()).abs() < 1e-9);
    assert_eq!(value(row, "boundary, lengths 1-3").estimate, 1.0);
    assert!((value(row, "boundary, lengths 4+").estimate - 27.0 / 97.0).abs() < 1e-12);
}

#[test]
fn chance_responders_meet_their_printed_baselines() {
    let bench =
        bench(|o| (o.tasks, o.per_length) = (vec![Task::Count, Task::Mul1, Task::Div1, Task::Rev, Task::Copy], 40));
    let summary = run(&bench, |item| match item.task.as_str() {
        "count" => "(0)".into(),
        _ => ["a", "b"].iter().filter_map(|n| item.covariates.get(*n)?.as_str()).collect::<Vec<_>>().join("; "),
    });
    for (task, chance) in [
        ("count", "chance: always 0"),
        ("mul_1", "chance: operands repeated"),
        ("div_1", "chance: operands repeated"),
        ("rev", "chance: operands repeated"),
        ("copy", "chance: operands repeated"),
    ] {
        let row = row(&summary, task);
        let (score, chance) = (value(row, "boundary").estimate, number(row, chance));
        // Four standard errors of 4,000 items.
        assert!((score - chance).abs() <= 4.0 * (chance * (1.0 - chance) / 4_000.0).sqrt(), "{task}: {score} {chance}");
    }
    assert!((number(row(&summary, "count"), "chance: best constant") - 0.246).abs() < 5e-4);
    let without = value(row(&summary, "mul_1, b > 1"), "boundary").estimate;
    assert!(without < 0.003, "without b = 1 and beyond one digit there is nothing to echo: {without}");
    let note = summary.notes.iter().find(|note| note.starts_with("count:")).unwrap();
    assert!(note.contains("24.6 %") && note.contains("10.0 %") && note.contains("not above"), "{note}");
}

#[test]
fn partial_runs_and_several_samples() {
    let bench = bench(|o| o.lengths = "1-3".parse().unwrap());
    // 37 items: all tasks at lengths 1 and 3, five at length 2; each answered right once and wrong twice.
    let summary = run_on(&bench, bench.iter().take(37), |item| vec![item.gold.clone(), "x".into(), "thinking…".into()]);
    let add = row(&summary, "add");
    assert_eq!((add.n, number(add, "items"), value(add, "boundary").estimate), (9, 3.0, 1.0 / 3.0));
    assert_eq!(number(add, "truncated"), 1.0 / 3.0);
    assert!(add.values.iter().all(|(name, _)| name != "boundary, lengths 4+"));
    assert_eq!(number(row(&summary, "d2b"), "items"), 2.0);
    assert!(summary.notes.iter().any(|note| note.contains("several samples")));
    // Nine samples of three items are three values, not nine.
    let interval = value(add, "boundary");
    assert!(interval.high - interval.low > 0.7, "{interval:?}");

    let empty = bench.summarise(&[]);
    assert!(empty.rows.is_empty() && empty.series.is_empty() && empty.notes.is_empty());
}

#[test]
fn thinking_has_its_own_columns_and_curves() {
    let bench = bench(|o| o.tasks = vec![Task::Mul]);
    let half = |item: &Item| item.covariates["index"] == 0;
    let summary =
        run(
            &bench,
            |item| {
                if half(item) { format!("<think>{}</think>I do not know.", item.gold) } else { item.gold.clone() }
            },
        );
    let row = row(&summary, "mul");
    assert_eq!(value(row, "boundary").estimate, 0.5);
    assert_eq!(value(row, "boundary_with_thinking").estimate, 1.0);
    assert_eq!(summary.series.len(), 7);
    let plain = run(&bench, |item| item.gold.clone());
    assert!(plain.rows[0].values.iter().all(|(name, _)| !name.contains("thinking")));
}

#[test]
fn samples_of_another_suite_are_left_out_and_counted() {
    let bench = bench(|o| o.tasks = vec![Task::Add]);
    let strange = bench.iter().take(3).enumerate().map(|(i, mut item)| {
        match i {
            0 => item.task = "power".into(),
            1 => drop(item.covariates.remove("length")),
            _ => {}
        }
        item
    });
    let summary = run_on(&bench, strange, |item| vec![item.gold.clone()]);
    assert_eq!(row(&summary, "all").n, 1);
    assert!(summary.notes.iter().any(|note| note.starts_with("2 samples")));
}
