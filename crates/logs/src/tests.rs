//! Logs that are damaged, hostile, or lack a part.
use earnest_results::Tool;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::zip::tests::archive;
use super::*;
use crate::LogError;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/logs")
}

fn keep_going() -> FindOptions {
    FindOptions { keep_going: true, ..FindOptions::default() }
}

/// Logs with ids of their samples, and errors.
type ReadLogs = (Vec<(Log, Vec<String>)>, Vec<String>);

fn read(paths: &[&Path], options: &FindOptions) -> Result<ReadLogs, LogError> {
    let paths: Vec<PathBuf> = paths.iter().map(|path| path.to_path_buf()).collect();
    let found = find(&paths, options)?;
    let mut errors: Vec<String> = found.refused.iter().map(LogError::to_string).collect();
    let mut logs = Vec::new();
    for log in found.logs {
        let mut ids = Vec::new();
        let refused = log.samples(&mut |sample| {
            ids.push(sample.id);
            Ok(())
        })?;
        errors.extend(refused.first.iter().map(LogError::to_string));
        log.sha256()?;
        logs.push((log, ids));
    }
    Ok((logs, errors))
}

fn refusal(paths: &[&Path]) -> String {
    read(paths, &FindOptions::default()).map(|_| ()).unwrap_err().to_string()
}

/// A copy of a folder.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

const STAMP: &str = "2026-11-22T16-35-15.540337";

/// A folder with a log of lm-evaluation-harness.
fn lm_eval_folder(lines: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let results = r#"{"results": {"t": {"alias": "t", "sample_len": 2, "acc,none": 0.5, "acc_stderr,none": "N/A"}},
        "configs": {"t": {"output_type": "generate_until"}}, "config": {"model": "hf", "model_args": "pretrained=org/m,token=hf_x"}}"#;
    fs::write(folder.path().join(format!("results_{STAMP}.json")), results).unwrap();
    let samples = folder.path().join(format!("samples_t_{STAMP}.jsonl"));
    fs::write(&samples, lines).unwrap();
    (folder, samples)
}

fn line(number: u32, score: &str) -> String {
    format!(
        r#"{{"doc_id": {number}, "doc": {{"question": "q"}}, "target": "1", "resps": [["1"]], "filtered_resps": ["1"], "filter": "none", "metrics": ["acc"], "acc": {score}}}"#
    )
}

#[test]
fn every_golden_log_of_a_folder_is_found() {
    let (logs, errors) = read(&[&golden()], &FindOptions::default()).unwrap();
    assert!(errors.is_empty());
    let of = |tool| logs.iter().filter(|(log, _)| log.card.tool == tool).count();
    let expected = [(Tool::LmEval, 6), (Tool::Inspect, 11), (Tool::Lighteval, 6), (Tool::OpenaiBatch, 3)];
    assert_eq!(expected.map(|(tool, _)| of(tool)), expected.map(|(_, count)| count));
    // One log, packed in two ways, is the same.
    let mut sums: Vec<(String, &Path)> =
        logs.iter().map(|(log, _)| (log.sha256().unwrap(), log.card.files[0].as_path())).collect();
    sums.sort();
    let same: Vec<_> = sums.windows(2).filter(|pair| pair[0].0 == pair[1].0).collect();
    assert_eq!(same.len(), 1, "{same:?}");
    assert!(same[0].iter().any(|(_, path)| path.ends_with("mcq_deflate.eval")));
}

#[test]
fn a_file_brings_the_files_that_belong_to_it() {
    let (folder, samples) = lm_eval_folder(&format!("{}\n{}\n", line(0, "1.0"), line(1, "0.0")));
    for path in [samples, folder.path().join(format!("results_{STAMP}.json")), folder.path().to_owned()] {
        let (logs, _) = read(&[&path], &FindOptions::default()).unwrap();
        let card = &logs[0].0.card;
        assert_eq!(
            (card.model.as_str(), card.files.len(), card.scorers.as_slice()),
            ("org/m", 2, &["acc,none".to_owned()][..])
        );
        assert_eq!(card.reported[1].value, "N/A");
        assert!(!format!("{card:?}").contains("hf_x"), "secrets are left out");
    }
}

#[test]
fn bad_lines_are_named_and_the_others_are_read() {
    let good = line(0, "1.0");
    for (bad, reason) in [
        (line(1, "NaN"), "line 2: the score acc is NaN"),
        (line(1, "1.0")[..40].to_owned(), "line 2: it "),
        ("{}".to_owned(), "line 2: the line has no doc_id"),
        (good.clone(), "line 2: the document 0 of the filter none stands in line 1 already"),
    ] {
        let (folder, samples) = lm_eval_folder(&format!("{good}\n{bad}\n"));
        let said = refusal(&[&samples]);
        assert!(said.contains(reason) && said.contains("samples_t_"), "{said}");
        let (logs, errors) = read(&[folder.path()], &keep_going()).unwrap();
        // A document of which one score is no number has its others.
        let whole: &[&str] = if bad.contains("NaN") { &["0", "1"] } else { &["0"] };
        assert_eq!(
            (logs[0].1.as_slice(), errors.len()),
            (whole.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>().as_slice(), 1)
        );
    }
    let large = line(0, "1.0").replace("\"doc_id\": 0", "\"doc_id\": 1180591620717411303424");
    let (_folder, samples) = lm_eval_folder(&format!("{large}\n"));
    assert!(refusal(&[&samples]).contains("too large to be told from others"));
    // Older results count the documents elsewhere.
    let (folder, samples) = lm_eval_folder(&format!("{good}\n"));
    let results = folder.path().join(format!("results_{STAMP}.json"));
    let older = fs::read_to_string(&results).unwrap().replace(r#""sample_len": 2, "#, "");
    let older = older.replacen('{', r#"{"n-samples": {"t": {"original": 9, "effective": 3}}, "#, 1);
    fs::write(&results, older).unwrap();
    assert!(refusal(&[&samples]).contains("it has 1 of the 3 documents that its results are about"));
    let (_folder, samples) = lm_eval_folder(&format!("{good}\n"));
    assert!(refusal(&[&samples]).contains("it has 1 of the 2 documents that its results are about"));
    let long = FindOptions { longest: 150, ..FindOptions::default() };
    let (_folder, samples) = lm_eval_folder(&format!("{good}\n{}\n", line(1, "0.0")));
    let said = read(&[&samples], &long).map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("line") || said.contains("results"), "{said}");
}

#[test]
fn missing_results_are_said_and_a_name_stands_in() {
    let (folder, samples) = lm_eval_folder(&format!("{}\n", line(0, "1.0")));
    fs::remove_file(folder.path().join(format!("results_{STAMP}.json"))).unwrap();
    assert!(refusal(&[&samples]).contains("its results file (results_TIME.json of the same time) is missing"));
    let named = FindOptions { model: Some("m".into()), ..FindOptions::default() };
    let (logs, _) = read(&[&samples], &named).unwrap();
    assert_eq!((logs[0].0.card.model.as_str(), logs[0].0.card.scorers.as_slice()), ("m", &["acc,none".to_owned()][..]));
    let (folder, samples) = lm_eval_folder(&format!("{}\n", line(0, "1.0")));
    fs::remove_file(samples).unwrap();
    assert!(refusal(&[folder.path()]).contains("it has no samples beside it"));
}

#[test]
fn hostile_archives_are_refused() {
    let header = br#"{"status": "success", "eval": {"model": "m", "task": "t"}, "results": {"scores": []}}"#;
    let sample = br#"{"id": "a", "epoch": 1, "input": "q", "scores": {"s": {"value": "C"}}}"#;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.eval");
    let good = ("samples/a_epoch_1.json", &sample[..]);
    for (entry, reason) in [
        (("samples/../../a_epoch_1.json", &sample[..]), "its name leads out of the archive"),
        (("/samples/a_epoch_1.json", &sample[..]), "its name leads out of the archive"),
        (("samples/b_epoch_1.json", &sample[..20]), "entry samples/b_epoch_1.json: it ends"),
        (("samples/b_epoch_1.json", &b"{}"[..]), "entry samples/b_epoch_1.json: the sample has no id"),
    ] {
        fs::write(&path, archive(&[("header.json", header), good, entry])).unwrap();
        let said = refusal(&[&path]);
        assert!(said.contains(reason), "{said}");
        let (logs, errors) = read(&[&path], &keep_going()).unwrap();
        assert_eq!((logs[0].1.as_slice(), errors.len()), (&["a".to_owned()][..], 1));
    }
    // Fewer samples than the log counts.
    let counted = br#"{"status": "success", "eval": {"model": "m", "task": "t"}, "results": {"total_samples": 3, "completed_samples": 3, "scores": []}}"#;
    fs::write(&path, archive(&[("header.json", counted), good])).unwrap();
    let (logs, _) = read(&[&path], &keep_going()).unwrap();
    assert!(
        logs[0].0.card.notes[0].contains("has 1 of the 3 samples that were completed"),
        "{:?}",
        logs[0].0.card.notes
    );
    // A small archive of a large entry.
    fs::write(&path, archive(&[("header.json", header), ("samples/b_epoch_1.json", &vec![b' '; 4 << 20])])).unwrap();
    let small = FindOptions { longest: 1 << 20, ..FindOptions::default() };
    let said = read(&[&path], &small).map(|_| ()).unwrap_err().to_string();
    assert!(
        said.contains("entry samples/b_epoch_1.json: the sample has 4194304 bytes, more than the 1048576 bytes"),
        "{said}"
    );
    let whole = archive(&[("header.json", header), good]);
    fs::write(&path, &whole[..whole.len() - 30]).unwrap();
    assert!(refusal(&[&path]).contains("cut off"));
    fs::write(&path, archive(&[("header.json", header)])).unwrap();
    assert!(refusal(&[&path]).contains("the log has no samples"));
}

#[test]
fn what_is_no_log_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    fs::write(&path, "hello").unwrap();
    assert!(refusal(&[&path]).contains("it is no log that earnest knows"));
    let said = refusal(&[folder.path()]);
    assert!(said.contains("there is no log in") && said.contains("notes.txt is no log"), "{said}");
    assert!(refusal(&[&folder.path().join("none")]).contains("cannot read"));
}

/// Files of logs below the golden folder that are changed, each with the folder that is searched.
fn victims() -> Vec<(&'static str, PathBuf)> {
    let mut victims = Vec::new();
    for (folder, endings) in [
        ("lm-eval/logs/hf-gemma", &["jsonl", "json"][..]),
        ("lm-eval/logs/gemma-3-270m-Q4_K_M", &["jsonl"]),
        ("inspect/repacked", &["eval"]),
        ("inspect/logs", &["eval", "json"]),
        ("lighteval", &["parquet", "json"]),
        ("openai-batch", &["jsonl"]),
    ] {
        let mut folders = vec![golden().join(folder)];
        let mut files = Vec::new();
        while let Some(at) = folders.pop() {
            for entry in fs::read_dir(at).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|end| endings.contains(&end.to_str().unwrap_or_default())) {
                    files.push(path);
                }
            }
        }
        files.retain(|path| {
            !path.ends_with("expected.json") && !path.parent().is_some_and(|parent| parent.ends_with("data"))
        });
        files.sort();
        victims.extend(files.into_iter().map(|file| (folder, file)));
    }
    victims
}

#[derive(Debug, Clone)]
enum Change {
    Set(prop::sample::Index, u8),
    Insert(prop::sample::Index, &'static str),
    Remove(prop::sample::Index, usize),
    Repeat(prop::sample::Index, usize),
    Cut(prop::sample::Index),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let at = any::<prop::sample::Index>;
    let words = ["\"", "{", "}", "[", "]", "NaN", "\\ud800", "\n", "null", "1e999", "\u{0}", "-1", "attachment://"];
    let one = prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        (at(), prop::sample::select(words.to_vec())).prop_map(|(at, word)| Change::Insert(at, word)),
        (at(), 1..200usize).prop_map(|(at, length)| Change::Remove(at, length)),
        (at(), 1..200usize).prop_map(|(at, length)| Change::Repeat(at, length)),
        at().prop_map(Change::Cut),
    ];
    prop::collection::vec(one, 1..4)
}

fn changed(bytes: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for change in changes {
        if out.is_empty() {
            break;
        }
        let length = out.len();
        match change {
            Change::Set(at, byte) => out[at.index(length)] = *byte,
            Change::Insert(at, word) => drop(out.splice(at.index(length)..at.index(length), word.bytes())),
            Change::Remove(at, count) => drop(out.drain(at.index(length)..(at.index(length) + count).min(length))),
            Change::Repeat(at, count) => {
                let piece = out[at.index(length)..(at.index(length) + count).min(length)].to_vec();
                out.splice(at.index(length)..at.index(length), piece);
            }
            Change::Cut(at) => out.truncate(at.index(length)),
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 64, ..ProptestConfig::default() })]
    #[test]
    fn changed_logs_never_panic(victim in any::<prop::sample::Index>(), changes in changes()) {
        let victims = victims();
        let (folder, file) = &victims[victim.index(victims.len())];
        let copied = tempfile::tempdir().unwrap();
        // The file with what it needs around it; the others of a large folder are left out.
        let from = golden().join(folder);
        let target = copied.path().join(file.strip_prefix(&from).unwrap());
        if *folder == "inspect/logs" || *folder == "inspect/repacked" {
            fs::create_dir_all(target.parent().unwrap()).unwrap();
        } else {
            copy(&from, copied.path());
        }
        let bytes = fs::read(file).unwrap();
        fs::write(&target, changed(&bytes, &changes)).unwrap();
        // Errors are fine, in words.
        if let Err(error) = read(&[copied.path()], &keep_going()) {
            prop_assert!(!error.to_string().is_empty());
        }
        if let Err(error) = read(&[copied.path()], &FindOptions::default()) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
