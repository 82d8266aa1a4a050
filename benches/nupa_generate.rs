//! Items per second of the generator, as JSON lines, one thread.
use divan::counter::ItemsCount;
use earnest_tasks::suite::nupa::{Lengths, NumberFormat, PairRules, Split, TaskId, TextStyle, TrainingSet, Wording};

const LINES: usize = 20_000;

const CASES: [(&str, usize); 6] = [
    ("max_Integer", 20),
    ("max_Integer", 100),
    ("digit_add_Float", 100),
    ("length_Integer", 20),
    ("add_Integer", 8),
    ("multiply_hard_Float", 8),
];

fn main() {
    divan::main();
}

fn generate(bencher: divan::Bencher<'_, '_>, (name, length): (&str, usize), split: Split) {
    let task: TaskId = name.parse().expect("a task of the suite");
    let set = TrainingSet {
        tasks: vec![task],
        lengths: Lengths::Chosen(vec![length]),
        per_length: LINES,
        split,
        seed: 0,
        pairs: PairRules::default(),
        wording: Wording::Corrected,
        format: NumberFormat::default(),
        style: TextStyle::Question,
    };
    let mut buffer = Vec::new();
    bencher.counter(ItemsCount::new(LINES)).bench_local(|| {
        buffer.clear();
        for line in set.lines().expect("possible options") {
            line.write_json(&mut buffer);
        }
        buffer.len()
    });
}

#[divan::bench(args = CASES.map(|case| format!("{} {}", case.0, case.1)), sample_count = 10, sample_size = 1)]
fn train(bencher: divan::Bencher<'_, '_>, case: &str) {
    generate(bencher, parse(case), Split::Train);
}

#[divan::bench(args = CASES.map(|case| format!("{} {}", case.0, case.1)), sample_count = 10, sample_size = 1)]
fn test(bencher: divan::Bencher<'_, '_>, case: &str) {
    generate(bencher, parse(case), Split::Test);
}

fn parse(case: &str) -> (&str, usize) {
    let (name, length) = case.split_once(' ').expect("cases are a name and a length");
    (name, length.parse().expect("lengths are numbers"))
}
