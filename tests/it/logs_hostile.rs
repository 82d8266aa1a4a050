//! Logs that were made to do harm: an answer or an error with the file and the limit, in little memory, and nothing that harms the results.
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::fuzz_corpora::targets::archive_of;
use crate::program::{code, document, earnest, run_in, stderr, stdout};

const TIME: &str = "2026-05-02T08-00-00.000000";

/// Runs the program with 1 GiB of address space and 64 open files.
fn bounded(folder: &Path, words: &[&str]) -> Output {
    let script = format!("ulimit -v 1048576; ulimit -n 64; exec timeout 60 {} \"$@\"", env!("CARGO_BIN_EXE_earnest"));
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh"]).args(words).current_dir(folder).env_remove("EARNEST_RESULTS");
    command.output().unwrap()
}

/// Imports `log` and expects an error with these words, and no results.
fn refused(folder: &Path, words: &[&str]) {
    let output = bounded(folder, &["import", "log"]);
    let said = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(code(&output), 2, "{said}");
    assert!(words.iter().all(|word| said.contains(word)), "no {words:?} in {}", &said[..said.len().min(2000)]);
    assert!(said.len() < 5000, "an error of {} bytes", said.len());
    let listed = run_in(folder, &["runs", "list", "--json"]);
    assert!(code(&listed) != 0 || document(&listed)["runs"].as_array().is_none_or(Vec::is_empty));
}

/// Imports `log` and returns what `import --json` says.
fn imported(folder: &Path) -> Value {
    let output = bounded(folder, &["import", "log", "--json"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    document(&output)
}

fn line(document: usize, more: Value) -> Value {
    let mut line = json!({
        "doc_id": document, "doc": {"id": format!("q{document}"), "question": format!("{document}+1?")}, "target": "1",
        "arguments": {"gen_args_0": {"arg_0": "x"}}, "resps": [["1"]], "filtered_resps": ["1"], "filter": "none",
        "metrics": ["acc"], "acc": 1.0,
    });
    line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    line
}

/// Writes a log of lm-evaluation-harness with these lines and this model.
fn lm_eval(folder: &Path, lines: &[Value], model: &str, scorers: &[&str]) {
    let log = folder.join("log");
    fs::create_dir_all(&log).unwrap();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(log.join(format!("samples_t_{TIME}.jsonl")), text).unwrap();
    let mut results =
        json!({"results": {"t": {"alias": "t"}}, "configs": {"t": {}}, "config": {"model": "hf"}, "model_name": model});
    for scorer in scorers {
        results["results"]["t"][scorer] = 0.5.into();
    }
    fs::write(log.join(format!("results_{TIME}.json")), results.to_string()).unwrap();
}

/// Header and sample of a log of Inspect.
fn inspect() -> (Value, Value) {
    let header = json!({
        "version": 2, "status": "success", "eval": {"task": "t", "model": "m"},
        "results": {"scores": [{"name": "match", "scorer": "match", "metrics": {"accuracy": {"value": 1}}}]},
    });
    let sample = json!({
        "id": 1, "epoch": 1, "input": "q", "target": "a", "output": {"completion": "a"}, "scores": {"match": {"value": "C"}},
    });
    (header, sample)
}

fn eval(folder: &Path, header: &Value, samples: &[Value]) {
    let parts: Vec<String> = std::iter::once(header).chain(samples).map(Value::to_string).collect();
    fs::create_dir_all(folder.join("log")).unwrap();
    fs::write(folder.join("log/a.eval"), archive_of(parts.join("\0").as_bytes())).unwrap();
}

/// A list of a megabyte that takes a hundred as values.
fn dense() -> Value {
    json!(vec![json!({"": 0}); 110_000])
}

#[test]
fn values_that_take_more_memory_than_bytes_are_refused() {
    let words = &["64 MiB of memory"];
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (header, sample) = inspect();
    let with = |value: &Value, key: &str| {
        let mut value = value.clone();
        value[key] = dense();
        value
    };
    for (header, samples) in [
        (with(&header, "metadata"), vec![sample.clone()]),
        (header.clone(), vec![sample.clone(), with(&sample, "input")]),
    ] {
        eval(folder, &header, &samples);
        refused(folder, &[words[0], "a.eval"]);
        let mut document = header;
        document["samples"] = samples.into();
        fs::remove_file(folder.join("log/a.eval")).unwrap();
        fs::write(folder.join("log/a.json"), document.to_string()).unwrap();
        refused(folder, &[words[0], "a.json"]);
        fs::remove_file(folder.join("log/a.json")).unwrap();
    }
    // What no one reads is passed over.
    eval(folder, &header, &[with(&sample, "events")]);
    assert_eq!(imported(folder)["imported"].as_array().unwrap().len(), 1);
    fs::remove_dir_all(folder.join("earnest-results")).unwrap();
    fs::remove_file(folder.join("log/a.eval")).unwrap();
    lm_eval(folder, &[line(0, json!({})), line(1, json!({"doc": {"id": "q1", "x": dense()}}))], "m", &["acc,none"]);
    refused(folder, &[words[0], "samples_t", "line 2"]);
    lm_eval(folder, &[line(0, json!({}))], "m", &["acc,none"]);
    let results = folder.join("log").join(format!("results_{TIME}.json"));
    let text = fs::read_to_string(&results).unwrap();
    fs::write(&results, text.replacen('{', &format!("{{\"x\": {}, ", dense()), 1)).unwrap();
    refused(folder, &[words[0], "results_"]);
    fs::remove_file(folder.join("log").join(format!("samples_t_{TIME}.jsonl"))).unwrap();
    fs::write(
        &results,
        format!("{{\"config_general\": {{}}, \"results\": {{}}, \"versions\": {{\"x\": {}}}}}", dense()),
    )
    .unwrap();
    refused(folder, &[words[0], "results_"]);
    fs::remove_dir_all(folder.join("log")).unwrap();
    fs::create_dir(folder.join("log")).unwrap();
    let row = json!({"run": "r", "suite": "s", "item": "i", "sample": 0, "task": "t", "verdict": {"correct": true}, "covariates": dense()});
    fs::write(folder.join("log/a.jsonl"), row.to_string()).unwrap();
    refused(folder, &["64 MiB of memory", "a.jsonl, line 1"]);
}

#[test]
fn attachments_that_are_named_often_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let (header, mut sample) = inspect();
    let name = "0123456789abcdef0123456789abcdef";
    sample["output"]["completion"] = format!("attachment://{name} ").repeat(1_000).into();
    sample["attachments"] = json!({name: "a".repeat(100_000)});
    eval(folder.path(), &header, &[sample]);
    refused(folder.path(), &["a.eval", "attachments", "64 MiB"]);
}

#[test]
fn scorers_filters_and_names_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let scores = |names: &[String]| -> Value {
        let mut more: Value =
            names.iter().map(|name| (name.clone(), json!(1.0))).collect::<serde_json::Map<_, _>>().into();
        more["metrics"] = json!(names);
        more
    };
    let named =
        |count: usize, from: usize| -> Vec<String> { (0..count).map(|number| format!("m{}", from + number)).collect() };
    // In one line, over many, and as parts of one score.
    lm_eval(folder, &[line(0, scores(&named(1_001, 0)))], "m", &["m0,none"]);
    refused(folder, &["samples_t", "1000 scorers"]);
    let lines: Vec<Value> = (0..11).map(|number| line(number, scores(&named(100, 100 * number)))).collect();
    lm_eval(folder, &lines, "m", &["m0,none"]);
    refused(folder, &["samples_t", "sample q10", "1000 scorers"]);
    let parts: Value =
        named(1_001, 0).into_iter().map(|name| (name, json!(1))).collect::<serde_json::Map<_, _>>().into();
    lm_eval(folder, &[line(0, json!({"acc": parts}))], "m", &["acc,none"]);
    refused(folder, &["samples_t", "sample q0", "1000 scorers"]);
    let many: Vec<String> = named(1_001, 0).iter().map(|name| format!("{name},none")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    lm_eval(folder, &[line(0, json!({}))], "m", &many);
    refused(folder, &["results_", "1000 scorers"]);
    // A filter for every third of the lines, and none named.
    let filtered = |count: usize, name: &dyn Fn(usize) -> Value| -> Vec<Value> {
        (0..3 * count).map(|number| line(number % 3, json!({"filter": name(number / 3)}))).collect()
    };
    lm_eval(folder, &filtered(257, &|number| format!("f{number}").into()), "m", &["acc,none"]);
    refused(folder, &["samples_t", "line 769", "256 filters"]);
    lm_eval(folder, &filtered(257, &|_| Value::Null), "m", &["acc,none"]);
    refused(folder, &["samples_t", "line 769", "256"]);
    let long = "n".repeat(1_001);
    lm_eval(folder, &[line(0, json!({}))], &long, &["acc,none"]);
    refused(folder, &["the name of its model has 1001 bytes", "1000"]);
    lm_eval(folder, &[line(0, json!({}))], &"n".repeat(2_000_000), &["acc,none"]);
    refused(folder, &["the name of its model is too long", "1000"]);
    lm_eval(folder, &[line(0, json!({"filter": long}))], "m", &["acc,none"]);
    refused(folder, &["samples_t", "the name of its filter has 1001 bytes"]);
    lm_eval(folder, &[line(0, scores(&[long]))], "m", &[]);
    refused(folder, &["samples_t", "the name of a scorer has", "1000"]);
    lm_eval(folder, &[line(0, json!({"doc": {"id": "i".repeat(100_001)}}))], "m", &["acc,none"]);
    refused(folder, &["samples_t", "an id has 100001 bytes", "100000"]);
    let fields = |count: usize| -> Value {
        named(count, 0).into_iter().map(|name| (name, json!(1))).collect::<serde_json::Map<_, _>>().into()
    };
    lm_eval(folder, &[line(0, json!({"doc": fields(1_001)}))], "m", &["acc,none"]);
    refused(folder, &["samples_t", "its document has 1001 fields", "1000"]);
    // As many as there may be, with fewer open files than filters; and a name that no file's name can have.
    lm_eval(folder, &filtered(200, &|number| format!("f{number}").into()), &"n".repeat(900), &["acc,f0"]);
    assert_eq!(imported(folder)["imported"][0]["items"], 3);
    let output = bounded(folder, &["export", "t-n", "--format", "lm-eval", "-o", "out"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
}

#[test]
fn filters_with_a_line_of_one_document_each_take_no_memory_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let short = |document: usize, filter: usize| json!({"doc_id": document, "doc": {}, "filter": filter.to_string(), "resps": [], "acc": 1});
    let mut lines: Vec<Value> = (0..40_000).map(|document| short(document, 0)).collect();
    lines.extend((1..256).map(|filter| short(39_999, filter)));
    lm_eval(folder.path(), &lines, "m", &["acc,0"]);
    refused(folder.path(), &["samples_t", "nearly every document"]);
}

#[test]
fn scores_are_numbers_of_which_means_are_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for score in [json!(1e308), json!(-1e300), json!("1e101"), json!({"part": 1e101})] {
        lm_eval(folder, &[line(0, json!({"acc": score}))], "m", &["acc,none"]);
        refused(folder, &["samples_t", "sample q0: the score acc,none", "1e100"]);
    }
    let lines: Vec<Value> = (0..4).map(|number| line(number, json!({"acc": 1e99}))).collect();
    lm_eval(folder, &lines, "m", &["acc,none"]);
    assert_eq!(imported(folder)["imported"][0]["mean"], 1e99);
    for words in [&["runs", "list"][..], &["runs", "show", "t-m"]] {
        let said = stdout(&run_in(folder, words));
        assert!(!said.contains("inf") && !said.contains("0000000000"), "{said}");
    }
}

#[test]
fn what_is_kept_of_settings_is_bounded_and_said() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (mut header, sample) = inspect();
    header["metadata"] = json!({"text": "a".repeat(3 << 20), "small": 1});
    header["tags"] = json!(vec!["t".repeat(1000); 1200]);
    header["eval"]["task_args"] = json!({"kept": "yes"});
    eval(folder, &header, &[sample]);
    let output = bounded(folder, &["import", "log"]);
    let said = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(code(&output), 0, "{said}");
    assert!(
        said.contains("left out of what is kept") && said.contains("1024 KiB") && said.contains("tags ("),
        "{said}"
    );
    assert!(fs::metadata(folder.join("earnest-results/earnest.sqlite")).unwrap().len() < 1 << 20);
    let shown = stdout(&run_in(folder, &["runs", "show", "t-m", "--json"]));
    assert!(shown.contains("left out: a text of 3145728 bytes") && shown.contains("\"kept\""), "{shown}");
}

#[cfg(unix)]
#[test]
fn a_folder_is_what_is_below_it() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    lm_eval(folder, &[line(0, json!({}))], "m", &["acc,none"]);
    fs::rename(folder.join("log"), folder.join("outside")).unwrap();
    let log = folder.join("log");
    lm_eval(folder, &[line(0, json!({}))], "other", &["acc,none"]);
    fs::create_dir(log.join("deep")).unwrap();
    symlink("../..", log.join("deep/loop")).unwrap();
    symlink("..", log.join("deep/above")).unwrap();
    symlink("../outside", log.join("out")).unwrap();
    symlink("nowhere", log.join("nothing")).unwrap();
    symlink("/dev/zero", log.join("zero.json")).unwrap();
    symlink("/proc/kmsg", log.join("x.jsonl")).unwrap();
    assert!(Command::new("mkfifo").arg(log.join("pipe.jsonl")).status().unwrap().success());
    let output = bounded(folder, &["import", "log"]);
    let said = (stdout(&output) + &stderr(&output)).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(code(&output), 0, "{said}");
    assert!(
        said.contains("t of unknown version on other log of lm-evaluation-harness")
            && said.contains("5 links that do not lead to something in the folder"),
        "{said}"
    );
    assert!(said.contains("log/pipe.jsonl is left out: it is no regular file"), "{said}");
    // Those that are named themselves.
    for path in ["log/pipe.jsonl", "log/zero.json", "/proc/kmsg", "/proc"] {
        let output = bounded(folder, &["import", path]);
        let said = stderr(&output);
        assert_eq!(code(&output), 2, "{path}: {said}");
        assert!(said.contains("regular file") || said.contains("no log in"), "{path}: {said}");
    }
    // A snapshot of Hugging Face's cache is made of links to the files beside it, and to nothing else.
    let (snapshot, blobs) =
        (folder.join("hub/datasets--a--b/snapshots/c/run"), folder.join("hub/datasets--a--b/blobs"));
    fs::create_dir_all(&snapshot).unwrap();
    fs::create_dir_all(&blobs).unwrap();
    for (number, entry) in fs::read_dir(folder.join("outside")).unwrap().enumerate() {
        let path = entry.unwrap().path();
        fs::copy(&path, blobs.join(number.to_string())).unwrap();
        symlink(format!("../../../blobs/{number}"), snapshot.join(path.file_name().unwrap())).unwrap();
    }
    symlink("../../../../../log", snapshot.join("other")).unwrap();
    let output = bounded(folder, &["import", "hub/datasets--a--b/snapshots/c", "--results", "of-hub"]);
    let said = stdout(&output) + &stderr(&output);
    assert!(said.contains("log of lm-evaluation-harness") && said.contains("run/other is left out"), "{said}");
    symlink("outside", folder.join("named")).unwrap();
    assert!(stdout(&bounded(folder, &["import", "named"])).contains("log of lm-evaluation-harness"));
}

#[test]
fn files_without_end_are_not_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("log")).unwrap();
    for (name, start) in [
        ("results_2026-11-22T16-52-29.556809.json", "{\"config_general\": {\"model_name\": \"m\"}, \"results\": {"),
        ("results_2026-11-22T16-52-29.556809.json", "{\"configs\": {\"model_name\": \"m\"}, \"results\": {"),
        ("a.eval", "PK\u{3}\u{4}"),
    ] {
        let path = folder.join("log").join(name);
        fs::write(&path, start).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_len(16 << 30).unwrap();
        refused(folder, &[name]);
        fs::remove_file(path).unwrap();
    }
    assert!(!earnest(folder).args(["import", "log"]).output().unwrap().status.success());
}

#[test]
fn a_text_of_a_sample_is_bounded_and_many_large_ones_take_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (header, mut sample) = inspect();
    sample["output"] = json!({"choices": [{"message": {"role": "assistant", "content": "a"}}]});
    const COMPLETION: &str = "/output/choices/0/message/content";
    let long = "word ".repeat((9 << 20) / 5);
    let numbered = |number: usize, place: &str, text: &str| {
        let mut sample = sample.clone();
        sample["id"] = number.into();
        *sample.pointer_mut(place).unwrap() = text.into();
        sample
    };
    for (place, word) in [(COMPLETION, "completion"), ("/target", "expected answer"), ("/scores/match/value", "score")]
    {
        eval(folder, &header, &[numbered(1, "/id", "1"), numbered(2, place, &long)]);
        refused(folder, &["a.eval, sample 2", word, "8 MiB"]);
    }
    fs::remove_file(folder.join("log/a.eval")).unwrap();
    lm_eval(
        folder,
        &[line(0, json!({})), line(1, json!({"resps": [[long]], "filtered_resps": ["1"]}))],
        "m",
        &["acc,none"],
    );
    refused(folder, &["samples_t", "sample q1", "completion", "8 MiB"]);
    fs::remove_dir_all(folder.join("log")).unwrap();
    // Questions are cut, and honest completions are kept.
    let samples: Vec<Value> = (0..12)
        .map(|number| match number % 2 {
            0 => numbered(number, "/input", &long),
            _ => numbered(number, COMPLETION, &long[..7 << 20]),
        })
        .collect();
    eval(folder, &header, &samples);
    let output = bounded(folder, &["import", "log"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stderr(&output).contains("6 questions are stored without their end"), "{}", stderr(&output));
    for words in [&["runs", "list"][..], &["runs", "show", "t-m"], &["samples", "t-m", "--limit", "2"]] {
        let output = bounded(folder, words);
        assert_eq!(code(&output), 0, "{words:?}: {}", stderr(&output));
    }
    // Read a few at a time, none is lost.
    let output = bounded(folder, &["export", "t-m", "-f", "jsonl", "-o", "t.jsonl"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(fs::read_to_string(folder.join("t.jsonl")).unwrap().lines().count(), 12);
}

#[test]
fn an_import_of_many_logs_is_a_short_screen_and_a_whole_document() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let rows: String = (0..150).map(|number| format!("model-{number},q,1\n")).collect();
    fs::write(folder.join("t.csv"), format!("model,id,score\n{rows}")).unwrap();
    let words = ["import", "t.csv", "--columns", "model=model,id=id,score=score", "--task", "t", "--results"];
    let output = run_in(folder, &[&words[..], &["a"]].concat());
    let said = stdout(&output);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(said.contains("150 logs imported") && said.lines().count() <= 40, "{said}");
    let shown = said.split("\nnext: ").next().unwrap().matches("t-model-").count();
    assert!(shown > 20 && said.contains(&format!("And {} more logs", 150 - shown)), "{said}");
    let output = run_in(folder, &[&words[..], &["b", "--json"]].concat());
    assert_eq!(document(&output)["imported"].as_array().unwrap().len(), 150);
    // All are there already.
    let output = run_in(folder, &[&words[..], &["a"]].concat());
    assert_eq!(stderr(&output).matches("has this log already").count(), 100, "{}", stderr(&output));
    assert!(stderr(&output).contains("50 more logs are known already"), "{}", stderr(&output));
}
