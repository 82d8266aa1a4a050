//! Checks that docs/training/memorise.md says what docs/training/memory.json holds, and that the program still computes it.
use std::sync::atomic::AtomicBool;

use super::{Ending, KindResults, MemoryFile, MemoryResults, train_model};
use crate::experiment::{ExperimentResults, Memorisation, SeedMean, memorisation};

const PAGE: &str = include_str!("../../../../docs/training/memorise.md");
const LOG: &str = include_str!("../../../../docs/training/memory.json");
const DECODERS: &str = include_str!("../../../../docs/training/memory-decoder.json");
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

fn decoders() -> String {
    let heading = "| digits | parameters | bits to store per parameter | right, % | paper's count | net of chance |";
    let row = |kind: &Memorisation| {
        let load = kind.digits as f64 * std::f64::consts::LOG2_10 / kind.parameters as f64;
        let net = SeedMean { mean: load * (kind.recalled.mean - 0.1), ..kind.bits };
        vec![
            kind.digits.to_string(),
            kind.parameters.to_string(),
            format!("{load:.2}"),
            shown(&kind.recalled, 100.0, 1),
            shown(&kind.bits, 1.0, 2),
            shown(&net, 1.0, 2),
        ]
    };
    let found = memorisation(&ExperimentResults::parse(DECODERS).unwrap());
    assert!(found.iter().all(|kind| kind.recalled.seeds == 5));
    table(heading, &found.iter().map(row).collect::<Vec<_>>())
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

/// Numbers of the page's text.
fn sentences(results: &MemoryResults) -> Vec<String> {
    let kind = |name: &str| results.kinds.iter().find(|kind| kind.settings.name() == name).unwrap();
    let stored = |name: &str| kind(name).stored(0, "pi").unwrap();
    let more = |mean: &SeedMean, other: &SeedMean| {
        let difference = mean.minus(other).unwrap();
        format!("{:.2} [{:.2}, {:.2}]", difference.estimate, difference.low, difference.high)
    };
    let [smallest, middle, many] = ["pi-300-2x4", "pi-300-2x8", "pi-1000-2x8"].map(stored);
    let beyond = [smallest, middle, many];
    let range = |values: &mut dyn Iterator<Item = f64>| {
        let values: Vec<f64> = values.collect();
        let (low, high) = (values.iter().fold(f64::MAX, |a, b| a.min(*b)), values.iter().fold(0f64, |a, b| a.max(*b)));
        format!("{low:.2} to {high:.2}")
    };
    let net = range(&mut beyond.iter().flat_map(|stored| [stored.net.mean, stored.information.mean]));
    let paper = range(&mut beyond.iter().map(|stored| stored.gross.mean));
    let information = more(&middle.information, &smallest.information);
    let digits = more(&many.information, &middle.information);
    let split = |text: &str| text.split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let ((first, first_interval), (second, second_interval)) = (split(&information), split(&digits));
    let perfect = |width: usize| kind(&format!("table-1x{width}")).perfect();
    assert_eq!([4, 5, 6, 8].map(perfect), [0, 1, 7, 20]);
    let most = results.kinds.iter().filter_map(KindResults::cycles).map(|(_, most)| most).max().unwrap();
    assert!(most < 30, "a training reached the 30 cycles");
    vec![
        format!("hold {net} bits a parameter, by the paper's count {paper}."),
        format!(
            "410 parameters hold {first} bits of information a parameter more than 194 parameters {first_interval}"
        ),
        format!("hold {second} bits a parameter more of 1,000 digits than of 300 {second_interval}"),
        format!("differs by {} between 300 and 1,000 digits", more(&many.gross, &middle.gross)),
        "209 parameters hold the whole table in one of 20 trainings, 247 in seven, 323 in all".to_owned(),
    ]
}

#[test]
fn the_page_has_the_numbers_of_the_log() {
    let results = results();
    let tables = [capacity(&results), decoders(), forgetting(&results), products(&results)];
    for table in &tables {
        assert!(PAGE.contains(table), "docs/training/memorise.md should have\n{table}");
    }
    for sentence in sentences(&results) {
        assert!(PAGE.contains(&sentence), "docs/training/memorise.md should have {sentence:?}");
    }
    // No further table, and none with other rows.
    let rows = PAGE.lines().filter(|line| line.starts_with('|')).count();
    assert_eq!(rows, tables.iter().map(|table| table.lines().count()).sum::<usize>());
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
fn the_larger_file_can_be_run() {
    let file = MemoryFile::parse(include_str!("../../../../docs/training/memory-large.toml")).unwrap();
    let parameters: Vec<usize> = file.kinds.iter().map(|kind| kind.parameters).collect();
    assert_eq!(parameters, [938, 1594, 2378, 7434, 14_218, 23_050]);
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
