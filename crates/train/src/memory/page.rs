//! Checks that docs/training/memorise.md says what docs/training/memory.json holds, and that the program still computes it.
use std::sync::atomic::AtomicBool;

use super::{Ending, KindResults, MemoryFile, MemoryResults, train_model};
use crate::experiment::SeedMean;

const PAGE: &str = include_str!("../../../../docs/training/memorise.md");
const LOG: &str = include_str!("../../../../docs/training/memory.json");
const FILE: &str = include_str!("../../../../docs/training/memory.toml");

fn results() -> MemoryResults {
    MemoryResults::parse(LOG).unwrap()
}

/// Mean and 95 % interval over seeds.
fn shown(mean: &SeedMean, factor: f64, digits: usize) -> String {
    let interval = mean.interval().unwrap();
    let [estimate, low, high] =
        [interval.estimate, interval.low, interval.high].map(|value| format!("{:.digits$}", factor * value));
    format!("{estimate} [{low}, {high}]")
}

fn table(heading: &str, rows: &[Vec<String>]) -> String {
    let columns = heading.split('|').count() - 2;
    let rule = format!("|{}\n", " --: |".repeat(columns));
    let rows: String = rows.iter().map(|row| format!("| {} |\n", row.join(" | "))).collect();
    format!("{heading}\n{rule}{rows}")
}

fn capacity(results: &MemoryResults) -> String {
    let heading = "| digits | parameters | bits to store per parameter | learning rate | right, % | paper's count | net of chance | information | cycles |";
    let kinds = ["capacity", "capacity, more digits"].into_iter().flat_map(|name| results.of(name));
    let row = |kind: &KindResults| {
        let (settings, stored) = (&kind.settings, kind.stored(0, "pi").unwrap());
        let load = settings.digits as f64 * std::f64::consts::LOG2_10 / settings.parameters as f64;
        let (least, most) = kind.cycles().unwrap();
        vec![
            settings.digits.to_string(),
            settings.parameters.to_string(),
            format!("{load:.2}"),
            kind.search.rate.to_string(),
            shown(&stored.right, 100.0, 1),
            shown(&stored.gross, 1.0, 2),
            shown(&stored.net, 1.0, 2),
            shown(&stored.information, 1.0, 2),
            format!("{least} to {most}"),
        ]
    };
    table(heading, &kinds.map(row).collect::<Vec<_>>())
}

fn forgetting(results: &MemoryResults) -> String {
    let heading = "| digits of each | parameters | bits to store per parameter, both | learning rate | π after π, % | π after e, % | e after e, % | both at once: π, % | e, % |";
    let row = |kind: &KindResults| {
        let settings = &kind.settings;
        let joint = results
            .kinds
            .iter()
            .find(|other| other.settings.learn == ["pi+e"] && other.settings.digits == settings.digits)
            .unwrap();
        assert_eq!(joint.settings.parameters, settings.parameters);
        let load = 2.0 * settings.digits as f64 * std::f64::consts::LOG2_10 / settings.parameters as f64;
        let right = |kind: &KindResults, phase, source| shown(&kind.stored(phase, source).unwrap().right, 100.0, 1);
        vec![
            settings.digits.to_string(),
            settings.parameters.to_string(),
            format!("{load:.2}"),
            kind.search.rate.to_string(),
            right(kind, 0, "pi"),
            right(kind, 1, "pi"),
            right(kind, 1, "e"),
            right(joint, 0, "pi"),
            right(joint, 0, "e"),
        ]
    };
    let kinds = results.kinds.iter().filter(|kind| kind.settings.learn == ["pi", "e"]);
    table(heading, &kinds.map(row).collect::<Vec<_>>())
}

fn products(results: &MemoryResults) -> String {
    let heading = "| parameters | hidden units | learning rate | trainings | all 81 right | right, mean of 81 | ended without a gain |";
    let row = |kind: &KindResults| {
        let stored = kind.stored(0, "table").unwrap();
        vec![
            kind.settings.parameters.to_string(),
            kind.settings.width.to_string(),
            kind.search.rate.to_string(),
            kind.models.len().to_string(),
            kind.perfect().to_string(),
            format!("{:.1}", 81.0 * stored.right.mean),
            kind.ended(Ending::NothingGained).to_string(),
        ]
    };
    table(heading, &results.of("multiplication table").map(row).collect::<Vec<_>>())
}

#[test]
fn the_page_has_the_numbers_of_the_log() {
    let results = results();
    for table in [capacity(&results), forgetting(&results), products(&results)] {
        assert!(PAGE.contains(&table), "docs/training/memorise.md should have\n{table}");
    }
    // No further table, and none with other rows.
    let rows = PAGE.lines().filter(|line| line.starts_with('|')).count();
    let of = |text: String| text.lines().count();
    assert_eq!(rows, of(capacity(&results)) + of(forgetting(&results)) + of(products(&results)));
}

#[test]
fn the_log_is_that_of_the_file() {
    let (results, file) = (results(), MemoryFile::parse(FILE).unwrap());
    let settings: Vec<_> = results.kinds.iter().map(|kind| kind.settings.clone()).collect();
    assert_eq!(settings, file.kinds);
    let trained: usize = results.kinds.iter().map(|kind| kind.models.len()).sum();
    assert_eq!((trained, results.planned), (file.trainings(), file.trainings()));
}

#[test]
fn the_program_computes_what_the_log_says() {
    let results = results();
    for name in ["table-1x6", "pi-300-2x4"] {
        let kind = results.kinds.iter().find(|kind| kind.settings.name() == name).unwrap();
        let model = &kind.models[0];
        let never = AtomicBool::new(false);
        let again = train_model(&kind.settings, model.seed, kind.search.rate, &never, &mut |_, _| ()).unwrap();
        assert_eq!(again.as_ref(), Some(model), "{name}");
    }
}
