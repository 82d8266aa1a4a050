//! GGUF files in parts, as `llama-gguf-split` writes them.
use std::path::{Path, PathBuf};

use candle_core::quantized::gguf_file::Value;
use earnest_models::checkpoint::Checkpoint;

use crate::gguf_files::{Gguf, convert};

const PARTS: usize = 3;

fn name(folder: &Path, part: usize) -> PathBuf {
    folder.join(format!("m-{part:05}-of-{PARTS:05}.gguf"))
}

/// The tensors in three parts; only the first has the metadata.
fn split(gguf: &Gguf) -> Vec<Gguf> {
    let number = |n: usize| Value::U16(n as u16);
    let mut parts: Vec<Gguf> = (0..PARTS).map(|_| Gguf::default()).collect();
    parts[0].metadata = gguf.metadata.clone();
    for (index, part) in parts.iter_mut().enumerate() {
        part.set("split.no", number(index));
        part.set("split.count", number(PARTS));
        part.set("split.tensors.count", Value::I32(gguf.tensors.len() as i32));
        let mine = gguf.tensors.iter().enumerate().filter(|(place, _)| place % PARTS == index);
        part.tensors = mine.map(|(_, (name, tensor))| (name.clone(), tensor.clone())).collect();
    }
    parts
}

fn write(folder: &Path, parts: &[Gguf]) {
    parts.iter().enumerate().for_each(|(index, part)| part.write(&name(folder, index + 1)));
}

fn refusal(path: &Path) -> String {
    Checkpoint::open(path).map(|_| ()).expect_err("it has to be refused").to_string()
}

#[test]
fn parts_are_one_model() {
    let (gguf, source) = convert("llama", "llama");
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(at, &split(&gguf));
    let found = Checkpoint::open(&name(at, 1)).unwrap();
    for (parameter, shape) in source.config.parameters() {
        assert_eq!(found.tensor(parameter, &shape).unwrap(), source.tensor(parameter, &shape).unwrap(), "{parameter}");
        assert!(found.source_of(parameter).contains("-of-00003.gguf"), "{}", found.source_of(parameter));
    }
    // All of them are hashed.
    assert_eq!(found.files(), (1..=PARTS).map(|part| name(at, part)).collect::<Vec<_>>());
}

#[test]
fn parts_that_do_not_belong_together_are_named() {
    let (gguf, _) = convert("llama", "llama");
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let parts = split(&gguf);
    write(at, &parts);
    let says = |path: &Path, words: &[&str]| {
        let error = refusal(path);
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    says(&name(at, 2), &["m-00002-of-00003.gguf", "it is part 2 of 3", "name the first one", "m-00001-of-00003.gguf"]);
    std::fs::copy(name(at, 1), at.join("other.gguf")).unwrap();
    says(&at.join("other.gguf"), &["other.gguf", "the first of 3 parts", "-00001-of-00003.gguf"]);
    // The same part twice.
    std::fs::copy(name(at, 2), name(at, 3)).unwrap();
    says(&name(at, 1), &["m-00003-of-00003.gguf", "it is not part 3 of 3"]);
    std::fs::remove_file(name(at, 3)).unwrap();
    says(&name(at, 1), &["m-00003-of-00003.gguf", "fetch"]);
    // A tensor in two parts, and one in none.
    let mut twice = split(&gguf);
    let (name_of, tensor) =
        parts[0].tensors.iter().next().map(|(name, tensor)| (name.clone(), tensor.clone())).unwrap();
    twice[2].tensors.insert(name_of.clone(), tensor);
    write(at, &twice);
    says(&name(at, 1), &["m-00003-of-00003.gguf", &name_of, "in another part"]);
    let mut fewer = split(&gguf);
    fewer[1].tensors.pop_first();
    write(at, &fewer);
    says(&name(at, 1), &["m-00001-of-00003.gguf", "it says that all parts have"]);
}
