//! The GSM-Symbolic study from rows: simulated answers give finite tables; models without an estimate are named.
use earnest_papers::gsm_symbolic::{
    ErrorClass, Evaluation, NumberDistribution, Observation, Study, StudyRun, TableModels, drawings, render_summary,
    render_tables,
};
use earnest_tasks::suite::gsm_symbolic::Prompt;

use crate::golden_subjects::files;

/// SplitMix64: tests need no more.
struct Dice(u64);

impl Dice {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().max(1e-300).ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Answers of the study's shape: 100 templates, an original and `instances` variants each.
fn simulated(model: &str, prompt: Prompt, effect: f64, instances: i64, seed: u64) -> Evaluation {
    let mut dice = Dice(seed);
    let mut evaluation = Evaluation::new(model, prompt);
    for template in 0..100 {
        let level = 0.4 + 2.0 * dice.normal();
        for instance in -1..instances {
            let variant = instance >= 0;
            let gamma = 5.0 + 2.0 * dice.normal();
            let odds = level + if variant { effect } else { 0.0 } - 0.2 * (gamma - 5.0);
            let correct = dice.uniform() < 1.0 / (1.0 + (-odds).exp());
            let class = if dice.uniform() < 0.8 { ErrorClass::Wrong } else { ErrorClass::NameError };
            evaluation.rows.push(Observation {
                template: format!("t{template}"),
                instance,
                variant,
                correct,
                // Two originals have no number, as in the data.
                gamma: (variant || template > 1).then_some(gamma),
                failure: (!correct).then_some(class),
            });
        }
    }
    evaluation
}

fn run(model: &str) -> StudyRun {
    StudyRun {
        run: format!("run-{model}"),
        model: model.into(),
        prompts: vec![Prompt::Gsm],
        questions: vec![],
        limits: vec![],
    }
}

/// Half a minute by itself: every table of eleven runs, each with its mixed models.
#[test]
fn simulated_answers_fill_every_table_and_figure() {
    let mut evaluations: Vec<Evaluation> = Prompt::ALL
        .into_iter()
        .flat_map(|prompt| [simulated("phi-2", prompt, -1.8, 10, 3), simulated("a model of mine", prompt, 0.0, 10, 4)])
        .collect();
    evaluations.push(simulated("gemma-2b", Prompt::Gsm, -1.5, 10, 5));
    let numbers = NumberDistribution::new(&[1.0, 2.0, 30.0], &[5.0, 60.0, 700.0]);
    let study = Study::new(vec![run("phi-2")], evaluations, Some(numbers));
    assert_eq!(study.tables.iter().map(|table| table.number).collect::<Vec<_>>(), (2..=15).collect::<Vec<u8>>());
    for table in &study.tables {
        let ours = |name: &'static str| table.rows.iter().filter(move |row| row.name == name);
        let expected = if table.number >= 14 { 5 } else { 1 };
        assert_eq!(ours("phi-2").count(), expected, "table {}", table.number);
        for row in ours("phi-2").chain(ours("a model of mine")) {
            assert!(row.cells.iter().all(|cell| cell.ours.is_some_and(f64::is_finite)), "{} {row:?}", table.number);
        }
        for cell in ours("phi-2").flat_map(|row| &row.cells) {
            assert_eq!(cell.difference.is_some(), cell.published.and_then(|p| p.value()).is_some());
        }
        // A model that the paper lacks stands in the tables too, where it belongs.
        assert!(ours("a model of mine").count() > 0, "table {}", table.number);
        assert!(ours("a model of mine").flat_map(|row| &row.cells).all(|cell| cell.published.is_none()));
    }
    // Both drops are found, the strongest first; the model without an effect is not.
    assert_eq!(study.selection.ours, ["phi-2", "gemma-2b"]);
    assert_eq!(study.selection.published.len(), 10);
    assert!(!study.selection.published_without_artefacts.contains(&"gemma-2-2b".to_owned()));
    // Holm over prompts and over models are different families.
    let fifteen = &study.tables[13];
    let row = fifteen.rows.iter().find(|row| row.name == "phi-2" && row.series.as_deref() == Some("gsm")).unwrap();
    let [_, p, by_row, by_column] = [0, 1, 2, 3].map(|index| row.cells[index].ours.unwrap());
    assert!(p <= by_row && p <= by_column && p < 0.01);
    let figure_7 = study.figures.iter().find(|figure| figure.number == 7).unwrap();
    assert!(figure_7.rows.iter().take(11).all(|row| row.cells[1].ours.is_some()));
    let summary = render_summary(&study, 100);
    assert!(summary.lines().count() <= 60 && !summary.contains("NaN"), "{summary}");
    assert!(summary.contains("a model of mine") && !summary.contains("Mathstral-7B-v0.1  "), "{summary}");
    for width in [80, 100, 140] {
        let text = render_summary(&study, width);
        let lines: usize = text.lines().map(|line| line.chars().count().div_ceil(width).max(1)).sum();
        assert!(lines <= if width < 100 { 66 } else { 60 }, "{lines} at {width}: {text}");
        assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
    }
    let own = render_tables(&study, TableModels::Ours, 100);
    assert!(own.contains("\nTable 15: ") && !own.contains("gemma-7b-it  "), "{own}");
    let text = render_tables(&study, TableModels::All, 100);
    assert!(text.contains("gemma-7b-it  "), "{text}");
    for number in 2..=15 {
        assert!(text.contains(&format!("\nTable {number}: ")), "{number}");
    }
    assert!(!text.contains("NaN") && !text.contains("inf "), "{text}");
    let names: Vec<String> = drawings(&study).iter().map(|figure| figure.name.clone()).collect();
    for number in 1..=11 {
        assert!(names.contains(&format!("gsm-symbolic-figure-{number}")), "{names:?}");
    }
    assert!(drawings(&study).iter().all(|figure| !figure.standalone().contains("NaN")));
    serde_json::to_string(&study).unwrap();
}

/// A minute by itself: as many mixed models as the paper has, for the screen must hold them all.
#[test]
fn the_summary_of_all_models_and_prompts_is_a_screen() {
    let models = earnest_papers::gsm_symbolic::published::odds_ratios(Prompt::Gsm).iter();
    let names: Vec<&str> = models.map(|row| row.model.as_str()).collect();
    let mut evaluations = Vec::new();
    for (index, name) in names.iter().enumerate() {
        for prompt in Prompt::ALL.into_iter().take(if index < 6 { 5 } else { 1 }) {
            let mut evaluation = simulated(name, prompt, -0.5, 3, index as u64);
            evaluation
                .harder
                .insert("p1".to_owned(), evaluation.rows.iter().filter(|row| row.variant).cloned().collect());
            evaluations.push(evaluation);
        }
    }
    let notes = ["The originals are GSM-Base: all 100 known GSM8K questions."];
    let runs = names.iter().map(|name| StudyRun {
        questions: notes.map(str::to_owned).to_vec(),
        limits: (0..3).map(|limit| format!("has limit {limit} that only {name} has")).collect(),
        ..run(name)
    });
    let study = Study::new(runs.collect(), evaluations, None);
    assert!(study.analyses.len() > 40);
    let text = render_summary(&study, 100);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.lines().count() <= 60, "{} lines: {text}", text.lines().count());
    assert!(text.contains("more: --tables") && text.contains("Questions of ours: originals published"), "{text}");
}

#[test]
fn what_runs_say_of_a_claim_names_models_and_doubts() {
    let drop = simulated("falls", Prompt::Gsm, -1.8, 20, 3);
    let none = simulated("stays", Prompt::Gsm, 0.0, 20, 4);
    let study = Study::new(vec![run("falls")], vec![drop, none], None);
    let said = study.said();
    assert_eq!(said.len(), 3, "no run has asked for code: {said:?}");
    let (conclusion, text) = &said[0];
    assert!(conclusion.contains("cost some models accuracy"), "{conclusion}");
    assert!(
        text.starts_with("Falls: falls (p ")
            && text.contains("not shown for 1 model, where the t test over templates finds "),
        "{text}"
    );
    assert!(said[2].1.contains("falls on gsm (p "), "{said:?}");
    assert!(Study::new(vec![], vec![], None).said().is_empty());
}

#[test]
fn fits_without_numbers_are_named() {
    let mut constant = simulated("constant", Prompt::Gsm, 0.0, 5, 6);
    constant.rows.iter_mut().for_each(|row| row.correct = false);
    let mut separated = simulated("separated", Prompt::Gsm, 0.0, 5, 7);
    separated.rows.iter_mut().filter(|row| !row.variant).for_each(|row| row.correct = true);
    let mut only_base = simulated("only base", Prompt::Gsm, 0.0, 5, 8);
    only_base.rows.retain(|row| !row.variant);
    let empty = Evaluation::new("empty", Prompt::Gsm);
    let plain = simulated("plain", Prompt::Gsm, -1.5, 5, 9);
    let study = Study::new(vec![], vec![constant, separated, only_base, empty, plain], None);
    let problem = |model: &str| study.analysis(model, Prompt::Gsm).unwrap().glmm1.problem().map(str::to_owned);
    assert_eq!(problem("constant").as_deref(), Some("constant-response"));
    assert_eq!(problem("separated").as_deref(), Some("separation"));
    assert_eq!(problem("only base").as_deref(), Some("no-model"));
    assert_eq!(problem("empty").as_deref(), Some("no-model"));
    assert_eq!(problem("plain"), None);
    let table = &study.tables[1];
    for model in ["constant", "separated", "only base", "empty"] {
        let row = table.rows.iter().find(|row| row.name == model).unwrap();
        assert!(row.cells.iter().all(|cell| cell.ours.is_none()), "{row:?}");
        assert!(row.remarks.iter().any(|remark| remark.contains("no estimate")), "{row:?}");
    }
    // The family has five models, of which one has a p value.
    let plain = study.tables[0].rows.iter().find(|row| row.name == "plain").unwrap();
    let (p, holm) = (plain.cells[3].ours.unwrap(), plain.cells[4].ours.unwrap());
    assert!((holm - (5.0 * p).min(1.0)).abs() < 1e-12);
    assert!(render_tables(&study, TableModels::Ours, 100).contains("ours has no estimate: separation"));
}

#[test]
fn a_test_without_result_stays_in_the_family() {
    let mut constant = simulated("constant", Prompt::Gsm, 0.0, 5, 6);
    constant.rows.iter_mut().for_each(|row| row.correct = false);
    let one = simulated("one", Prompt::Gsm, -1.5, 5, 9);
    let other = simulated("other", Prompt::Gsm, -1.0, 5, 10);
    let study = Study::new(vec![], vec![one, constant, other], None);
    let p_values = |model: &str| {
        let row = study.tables[0].rows.iter().find(|row| row.name == model).unwrap();
        (row.cells[3].ours, row.cells[4].ours)
    };
    assert_eq!(p_values("constant"), (None, None));
    let mut found = ["one", "other"].map(p_values).map(|(raw, holm)| (raw.unwrap(), holm.unwrap()));
    found.sort_by(|left, right| left.0.total_cmp(&right.0));
    let [(low, low_holm), (high, high_holm)] = found;
    // Three tests, though one has no result: the smaller p three times, the larger one twice.
    assert!(low > 0.0 && 3.0 * low < 2.0 * high && 2.0 * high < 1.0, "{found:?}");
    assert!((low_holm / low - 3.0).abs() < 1e-12 && (high_holm / high - 2.0).abs() < 1e-12, "{found:?}");
}

#[test]
fn an_lme4_artefact_of_our_rows_is_flagged_beside_the_converged_fit() {
    // Rows of a golden set on which lme4's defaults collapse.
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/glmm/30_degenerate_both_seed1141.csv");
    let mut evaluation = Evaluation::new("gemma-2-2b", Prompt::Gsm);
    let mut instance = 0;
    for record in csv::Reader::from_reader(files::read(&path).unwrap().as_bytes()).records() {
        let record = record.unwrap();
        let variant = record[1].parse::<f64>().unwrap() == 1.0;
        instance = if variant { instance + 1 } else { -1 };
        evaluation.rows.push(Observation {
            template: record[0].to_owned(),
            instance,
            variant,
            correct: record[3].parse::<f64>().unwrap() == 1.0,
            gamma: record[2].parse().ok(),
            failure: None,
        });
    }
    let study = Study::new(vec![], vec![evaluation], None);
    let analysis = study.analysis("gemma-2-2b", Prompt::Gsm).unwrap();
    for fit in [&analysis.glmm1, &analysis.glmm2] {
        assert!(fit.lme4.as_ref().unwrap().degenerate && !fit.degenerate, "{fit:?}");
        assert!(fit.variant.unwrap().standard_error > 0.3);
    }
    assert!(study.selection.ours.is_empty());
    assert_eq!(study.selection.ours_by_lme4, ["gemma-2-2b"]);
    let row = study.tables[1].rows.iter().find(|row| row.name == "gemma-2-2b").unwrap();
    assert!(row.remarks.iter().any(|remark| remark.contains("published fit is an artefact")));
    assert!(row.remarks.iter().any(|remark| remark.contains("degenerate fit of our rows")), "{row:?}");
    let listing = &study.listing_6.ours[0];
    assert!(listing.lme4_spread > 0.0 && listing.converged_spread < 1e-3, "{listing:?}");
}
