//! The fuzz targets over their corpora, and over simple mutations of them: the same ones every time.
use std::path::Path;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

#[path = "../../fuzz/src/targets.rs"]
pub mod targets;

use targets::{Scratch, TARGETS};

/// Mutations of each file: some seconds in all. `scripts/fuzz.sh` makes millions, and `EARNEST_FUZZ_MUTATIONS` sets another number where
/// there is no nightly toolchain.
const MUTATIONS: usize = 40;

fn mutations() -> usize {
    let set = std::env::var("EARNEST_FUZZ_MUTATIONS").ok();
    set.map_or(MUTATIONS, |number| number.parse().expect("EARNEST_FUZZ_MUTATIONS is a number"))
}

/// Pieces that turn up where formats end: numbers at their limits, open brackets, characters that are no text.
const PIECES: [&[u8]; 16] = [
    b"\0",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"-1",
    b"0",
    b"18446744073709551616",
    b"1e999",
    b"null",
    b"[",
    b"{",
    b"\"",
    b"\\",
    b"\n",
    b"\xc3\xa9",
    b"\xed\xa0\x80",
    b"{{",
];

/// Returns the corpus of a target by name, in the order of the names.
fn corpus(name: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    let read = |path: &std::path::PathBuf| {
        (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap())
    };
    files.iter().map(read).collect()
}

/// Changes a few places of a file.
fn mutate(bytes: &[u8], others: &[(String, Vec<u8>)], random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..random.random_range(1..4) {
        let at = random.random_range(0..=bytes.len());
        let end = (at + random.random_range(0..32)).min(bytes.len());
        match random.random_range(0..6) {
            0 if at < bytes.len() => bytes[at] = random.next_u32() as u8,
            1 if at < bytes.len() => bytes[at] ^= 1 << random.random_range(0..8),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            4 => {
                let piece = PIECES[random.random_range(0..PIECES.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
            _ => {
                let other = &others[random.random_range(0..others.len())].1;
                let from = random.random_range(0..=other.len());
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
        }
    }
    bytes
}

/// Runs a part of the targets: tests run side by side.
fn run(names: &[&str]) {
    let scratch = Scratch::new();
    for target in TARGETS.iter().filter(|target| names.contains(&target.name)) {
        let files = corpus(target.name);
        assert!(!files.is_empty(), "{} has no corpus", target.name);
        for (index, (_, bytes)) in files.iter().enumerate() {
            (target.run)(&scratch, bytes);
            let mut random = ChaCha8Rng::seed_from_u64(index as u64);
            for _ in 0..mutations() {
                (target.run)(&scratch, &mutate(bytes, &files, &mut random));
            }
        }
    }
}

#[test]
fn every_target_has_a_program_and_a_corpus() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let names = |folder: &str, ending: &str| {
        let files = std::fs::read_dir(fuzz.join(folder)).unwrap();
        let mut names: Vec<String> = files.map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
        names.iter_mut().for_each(|name| *name = name.trim_end_matches(ending).to_owned());
        names.sort();
        names
    };
    let mut all: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    all.sort_unstable();
    assert_eq!(names("corpus", ""), all);
    assert_eq!(names("fuzz_targets", ".rs"), all);
    for target in all {
        let program = std::fs::read_to_string(fuzz.join(format!("fuzz_targets/{target}.rs"))).unwrap();
        assert!(program.contains(&format!("{target:?}")), "{target}");
    }
    let size: usize = TARGETS.iter().flat_map(|target| corpus(target.name)).map(|(_, bytes)| bytes.len()).sum();
    assert!(size < 600_000, "the corpora have {size} bytes");
}

#[test]
fn checkpoints() {
    run(&["gguf", "safetensors", "index", "config"]);
}

#[test]
fn tokenizers_and_templates() {
    run(&["tokenizer", "template"]);
}

#[test]
fn results() {
    run(&["rows", "store"]);
}

#[test]
fn tables() {
    run(&["parquet"]);
}

#[test]
fn texts() {
    run(&["http", "logs", "task", "answer"]);
}

#[test]
fn archives() {
    run(&["eval_log"]);
}
