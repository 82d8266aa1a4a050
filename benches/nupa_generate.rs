//! Items per second of the generator, as JSON lines, one thread.
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use earnest::suite::nupa::{NumberFormat, PairRules, Split, TaskId, TextStyle, TrainingSet, Wording};

const LINES: usize = 20_000;

fn generate(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("nupa_generate");
    group.throughput(Throughput::Elements(LINES as u64)).sample_size(10);
    let cases = [("max_Integer", 20), ("max_Integer", 100), ("digit_add_Float", 100), ("length_Integer", 20)];
    for (name, length) in cases.into_iter().chain([("add_Integer", 8), ("multiply_hard_Float", 8)]) {
        let task: TaskId = name.parse().expect("a task of the suite");
        for split in [Split::Train, Split::Test] {
            let set = TrainingSet {
                tasks: vec![task],
                lengths: vec![length],
                per_length: LINES,
                split,
                seed: 0,
                pairs: PairRules::default(),
                wording: Wording::Corrected,
                format: NumberFormat::default(),
                style: TextStyle::Question,
            };
            let mut buffer = Vec::new();
            group.bench_function(format!("{name}/{length}/{split}"), |bencher| {
                bencher.iter(|| {
                    buffer.clear();
                    for line in set.lines().expect("possible options") {
                        serde_json::to_writer(&mut buffer, &line).expect("writing to memory");
                        buffer.push(b'\n');
                    }
                    buffer.len()
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, generate);
criterion_main!(benches);
