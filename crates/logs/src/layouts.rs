//! Layouts of logs by version of their tool: those that are read, and those that are refused by name. The table in docs/logs.md has them.
use earnest_results::LogCard;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::data_type::{ByteArray, ByteArrayType};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use serde_json::{Value, json};

use super::*;
use crate::LogError;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/logs").join(name)
}

/// The only log of a folder with its samples.
fn read(path: &Path) -> Result<(LogCard, Vec<LogSample>), LogError> {
    let mut found = find(&[path.to_owned()], &FindOptions::default())?;
    assert_eq!(found.logs.len(), 1, "{}", path.display());
    let log = found.logs.remove(0);
    let mut samples = Vec::new();
    log.samples(&mut |sample| {
        samples.push(sample);
        Ok(())
    })?;
    Ok((log.card, samples))
}

fn refusal(path: &Path) -> (String, String) {
    let error = read(path).map(|(card, _)| card).unwrap_err();
    (error.to_string(), error.help().unwrap_or_default())
}

fn means(samples: &[LogSample]) -> Vec<(String, f64)> {
    let mut sums: Vec<(String, f64, usize)> = Vec::new();
    for score in samples.iter().flat_map(|sample| &sample.scores) {
        let Some(number) = score.number() else { continue };
        match sums.iter_mut().find(|(name, ..)| *name == score.scorer) {
            Some(sum) => (sum.1, sum.2) = (sum.1 + number, sum.2 + 1),
            None => sums.push((score.scorer.clone(), number, 1)),
        }
    }
    sums.into_iter().map(|(name, sum, count)| (name, sum / count as f64)).collect()
}

/// A copy of a fixture with a file changed.
fn changed(name: &str, ending: &str, change: impl Fn(String) -> String) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(fixture(name)).unwrap() {
        let from = entry.unwrap().path();
        let text = fs::read_to_string(&from).unwrap();
        let text = if from.to_string_lossy().ends_with(ending) { change(text) } else { text };
        fs::write(folder.path().join(from.file_name().unwrap()), text).unwrap();
    }
    let path = folder.path().to_owned();
    (folder, path)
}

#[test]
fn every_layout_of_the_table_is_read() {
    type Expected<'a> = (&'a str, &'a str, usize, &'a [(&'a str, f64)]);
    let all: [Expected<'_>; 6] = [
        ("lm-eval-0.4.3/org__small", "org/small", 5, &[("exact_match,strict", 0.4), ("exact_match,flexible", 0.8)]),
        ("lm-eval-0.4.1", "org/small", 5, &[("exact_match,strict", 0.4), ("exact_match,flexible", 0.8)]),
        ("lm-eval-0.4.1-choice", "org/small", 4, &[("acc,none", 0.5), ("acc_norm,none", 0.75)]),
        ("inspect-1", "local/early", 3, &[("match", 0.5)]),
        ("inspect-2", "local/later", 2, &[("match", 0.5)]),
        ("openai-batch", "m", 3, &[]),
    ];
    for (name, model, count, scores) in all {
        let (card, samples) = read(&fixture(name)).unwrap();
        assert_eq!((card.model.as_str(), samples.len()), (model, count), "{name}");
        let scores: Vec<(String, f64)> = scores.iter().map(|(name, mean)| ((*name).to_owned(), *mean)).collect();
        assert_eq!(means(&samples), scores, "{name}");
        for reported in card.reported.iter().filter(|one| !one.metric.contains("stderr") && one.scorer != "grades") {
            let own = scores.iter().find(|(name, _)| *name == reported.scorer).map(|(_, mean)| *mean);
            assert_eq!(reported.value.as_f64(), own, "{name}: {}", reported.metric);
        }
        assert!(
            samples.iter().all(|sample| !sample.completions.is_empty() || !sample.likelihoods.is_empty()),
            "{name}"
        );
    }
    let (card, _) = read(&fixture("inspect-1")).unwrap();
    assert_eq!(card.started.as_deref(), Some("2024-05-02T08:00:00"), "the zone is not known and none is made up");
}

#[test]
fn lines_without_filters_are_refused_where_the_results_do_not_confirm_them() {
    const OLD: &str = "lm-eval-0.4.3/org__small";
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let begin = "its lines name no filter, as those of versions before 0.4.6, and ";
    let refused = |ending: &str, change: &dyn Fn(String) -> String, reason: &str| {
        let (_folder, path) = changed(OLD, ending, change);
        let (error, help) = refusal(&path);
        assert!(error.contains(&format!("{begin}{reason}")) && error.contains("samples_sums_"), "{error}");
        assert!(help.contains("0.4.6 or later"), "{help}");
    };
    refused(
        ".json",
        &|text| text.replace("\"exact_match,strict\": 0.4", "\"exact_match,strict\": 0.6"),
        "in the order of the results' filters (strict, flexible) the mean exact_match of strict is 0.4000, where the results have 0.6000",
    );
    // The blocks in the other order.
    let swapped = |text: String| [&lines(&text)[5..], &lines(&text)[..5]].concat().join("\n");
    refused(
        ".jsonl",
        &swapped,
        "in the order of the results' filters (strict, flexible) the mean exact_match of strict is 0.8000",
    );
    refused(
        ".jsonl",
        &|text| lines(&text)[..9].join("\n"),
        "documents stand 1 to 2 times, where the results have 2 filters",
    );
    refused(".jsonl", &|text| lines(&text)[..5].join("\n"), "documents stand once, where the results have 2 filters");
    refused(".jsonl", &|text| format!("{text}{}", lines(&text)[0]), "documents stand 2 to 3 times");
    refused(".jsonl", &|text| text.replacen("\"doc_id\": 4", "\"filter\": \"strict\", \"doc_id\": 4", 1), "others do");
    refused(
        ".json",
        &|text| text.replace("\"exact_match,flexible\": 0.8", "\"exact_match,flexible\": \"N/A\""),
        "the results have no mean of the filter flexible",
    );
    // Without results nothing says which filters there are.
    let (_folder, path) = changed(OLD, ".none", |text| text);
    fs::remove_file(path.join("results_2024-05-02T08-00-00.000000.json")).unwrap();
    let options = FindOptions { model: Some("m".into()), ..FindOptions::default() };
    let found = find(std::slice::from_ref(&path), &options).unwrap();
    let error = found.logs[0].samples(&mut |_| Ok(())).unwrap_err();
    assert!(error.to_string().contains(&format!("{begin}documents stand several times")), "{error}");
    assert!(error.help().unwrap().contains("results_TIME.json"));
    // One filter needs no name.
    let text = fs::read_to_string(path.join("samples_sums_2024-05-02T08-00-00.000000.jsonl")).unwrap();
    fs::write(path.join("samples_sums_2024-05-02T08-00-00.000000.jsonl"), lines(&text)[..5].join("\n")).unwrap();
    let found = find(&[path], &options).unwrap();
    assert_eq!(found.logs[0].card.scorers, ["exact_match"]);
    let mut count = 0;
    found.logs[0]
        .samples(&mut |sample| {
            count += sample.scores.len();
            Ok(())
        })
        .unwrap();
    assert_eq!(count, 5);
}

#[test]
fn unknown_layouts_of_inspect_are_refused_with_their_version() {
    let refused = |name: &str, change: &dyn Fn(&mut Value), reason: &str| {
        let (_folder, path) = changed(name, ".json", |text| {
            let mut log: Value = serde_json::from_str(&text).unwrap();
            change(&mut log);
            log.to_string()
        });
        let (error, help) = refusal(&path);
        assert!(error.contains(reason) && help.contains("inspect log convert"), "{error}: {help}");
    };
    refused("inspect-2", &|log| log["version"] = json!(3), "version 3 of its format, which is not known");
    refused("inspect-2", &|log| log["version"] = json!("2b"), "version \"2b\" of its format");
    let renamed = |log: &mut Value, from: &str| {
        for sample in log["samples"].as_array_mut().unwrap() {
            let scores = sample.as_object_mut().unwrap().remove(from).unwrap();
            sample["verdicts"] = scores;
        }
    };
    refused(
        "inspect-2",
        &|log| renamed(log, "scores"),
        "scores by match, grades, but none of its samples has `scores`",
    );
    refused("inspect-1", &|log| renamed(log, "score"), "in version 1 of its format, in a layout that is not known");
    // A later version may have anything in it: its version is said all the same.
    refused(
        "inspect-2",
        &|log| {
            log["version"] = json!(3);
            log["results"] = json!([1]);
            log["eval"] = json!("changed");
            log["samples"] = json!({"1": {}});
        },
        "version 3 of its format, which is not known",
    );
    let known = "in version 2 of its format, in a layout that is not known: ";
    let odd = |change: &dyn Fn(&mut Value), reason: &str| refused("inspect-2", change, &format!("{known}{reason}"));
    odd(
        &|log| {
            for sample in log["samples"].as_array_mut().unwrap() {
                let scores: Vec<Value> = sample["scores"].as_object().unwrap().values().cloned().collect();
                sample["scores"] = scores.into();
            }
        },
        "in its samples `scores` is a list, not an object by scorer",
    );
    odd(
        &|log| log["samples"][0]["scores"] = json!({"match": 1.0}),
        "in its samples the score of match is a number, not an object with a `value`",
    );
    odd(&|log| log["results"]["scores"] = json!({"match": {}}), "its `results.scores` is an object, not a list");
    odd(&|log| log["results"] = json!([]), "its `results` are a list, not an object");
    odd(&|log| log["results"]["scores"][0]["metrics"] = json!([0.5]), "its `results` are not of the expected form");
    odd(&|log| log["eval"] = json!([]), "its header is not of the expected form");
    odd(&|log| log["samples"] = json!({"1": {"id": 1}}), "its `samples` are no list");
    let first = "in version 1 of its format, in a layout that is not known: ";
    let early = |scorer: Value, reason: &str| {
        let change = move |log: &mut Value| log["results"]["scorer"] = scorer.clone();
        refused("inspect-1", &change, &format!("{first}{reason}"));
    };
    early(json!([{"name": "match"}]), "its `results.scorer` is a list, not an object with a `name`");
    early(json!({}), "its `results.scorer` has no `name`");
    early(json!("match"), "its `results.scorer` is a text, not an object with a `name`");
    // A log that failed before anything was scored is read as it is.
    let (_folder, path) = changed("inspect-2", ".json", |text| {
        let mut log: Value = serde_json::from_str(&text).unwrap();
        renamed(&mut log, "scores");
        log["results"] = Value::Null;
        log["status"] = "error".into();
        log.to_string()
    });
    assert_eq!(read(&path).unwrap().1.len(), 2);
}

#[test]
fn unknown_layouts_in_archives_of_inspect_are_named_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.eval");
    let header = |version: u32, results: &str| {
        format!(
            r#"{{"version": {version}, "status": "success", "eval": {{"model": "m", "task": "t"}}, "results": {results}}}"#
        )
    };
    let none = r#"{"scores": []}"#;
    let good = r#"{"id": "a", "epoch": 1, "input": "q", "scores": {"s": {"value": "C"}}}"#;
    let listed = r#"{"id": "a", "epoch": 1, "input": "q", "scores": [{"value": "C"}]}"#;
    let begin = "it is a log of Inspect in version";
    for (header, sample, reason) in [
        (header(7, "[]"), good, format!("{begin} 7 of its format, which is not known")),
        (
            header(2, r#"{"scorer": []}"#),
            good,
            format!("{begin} 2 of its format, in a layout that is not known: its `results.scorer` is"),
        ),
        (
            header(2, r#"{"scores": [{}]}"#),
            good,
            format!("{begin} 2 of its format, in a layout that is not known: its header.json is"),
        ),
        (
            header(2, none),
            listed,
            format!("{begin} 2 of its format, in a layout that is not known: in its samples `scores` is a list"),
        ),
    ] {
        let entries = [("header.json", header.as_bytes()), ("samples/a_epoch_1.json", sample.as_bytes())];
        fs::write(&path, super::zip::tests::archive(&entries)).unwrap();
        let (error, help) = refusal(&path);
        assert!(error.contains(&reason) && help.contains("inspect log convert"), "{error}: {help}");
    }
    fs::write(&path, super::zip::tests::archive(&[("start.json", b"{}")])).unwrap();
    let (error, help) = refusal(&path);
    assert!(
        error.contains("an archive of Inspect, but it has neither header.json") && help.contains("logs.md"),
        "{error}"
    );
}

#[test]
fn an_unknown_layout_ends_the_import_of_a_folder_of_known_ones() {
    let folder = tempfile::tempdir().unwrap();
    let good = fs::read_to_string(fixture("inspect-1/2024-05-02T08-00-00_sums_early.json")).unwrap();
    fs::write(folder.path().join("a.json"), &good).unwrap();
    fs::write(folder.path().join("b.json"), good.replace("\"version\": 1", "\"version\": 9")).unwrap();
    let paths = [folder.path().to_owned()];
    let error = find(&paths, &FindOptions::default()).unwrap_err().to_string();
    assert!(error.contains("b.json") && error.contains("version 9"), "{error}");
    let found = find(&paths, &FindOptions { keep_going: true, ..FindOptions::default() }).unwrap();
    assert_eq!((found.logs.len(), found.refused.len()), (1, 1));
}

#[test]
fn what_lm_eval_0_3_wrote_is_named_and_a_table_where_its_columns_are() {
    let folder = tempfile::tempdir().unwrap();
    let rows = json!([
        {"doc_id": 0, "prompt_0": "1 + 1 =", "logit_0": -0.5, "truth": " 2", "acc": "1.0", "acc_norm": "0.0"},
        {"doc_id": 1, "prompt_0": "1 + 2 =", "logit_0": -2.5, "truth": " 3", "acc": "0.0", "acc_norm": "0.0"},
    ]);
    let path = folder.path().join("sums_write_out_info.json");
    fs::write(&path, serde_json::to_string_pretty(&rows).unwrap()).unwrap();
    for place in [folder.path(), &path] {
        let (error, help) = refusal(place);
        assert!(
            error.contains("a write-out file of lm-evaluation-harness 0.3") && error.contains("sums_write_out"),
            "{error}"
        );
        assert!(help.contains("0.4.6 or later") && help.contains("`columns = id=doc_id"), "{help}");
    }
    let name = |name: &str| Some(name.to_owned());
    let columns = TableColumns {
        id: name("doc_id"),
        prompt: name("prompt_0"),
        target: name("truth"),
        scores: vec!["acc".into()],
        ..TableColumns::default()
    };
    let options =
        FindOptions { columns: Some(columns), model: name("m"), task: name("sums"), ..FindOptions::default() };
    let found = find(std::slice::from_ref(&path), &options).unwrap();
    let mut scores = Vec::new();
    found.logs[0]
        .samples(&mut |sample| {
            scores.extend(sample.scores.iter().map(|score| score.number().unwrap()));
            Ok(())
        })
        .unwrap();
    assert_eq!(scores, [1.0, 0.0]);
    // Its results say that there are no samples, and not to ask for them in a way that it does not have.
    fs::remove_file(&path).unwrap();
    let path = folder.path().join("results.json");
    let results = json!({"results": {"sums": {"acc": 0.5, "acc_stderr": 0.1}}, "versions": {"sums": 0}, "config": {"model": "hf-causal"}});
    fs::write(&path, results.to_string()).unwrap();
    let (error, help) = refusal(&path);
    assert!(
        error.contains("results of lm-evaluation-harness 0.3 or earlier") && help.contains("0.4.6"),
        "{error}: {help}"
    );
}

#[test]
fn lines_without_the_scores_of_their_results_are_refused() {
    const OLD: &str = "lm-eval-0.4.1-choice";
    let nested = |text: String| {
        let mut lines: Value = serde_json::from_str(&text).unwrap();
        for line in lines.as_array_mut().unwrap() {
            let line = line.as_object_mut().unwrap();
            let scores: Vec<Value> = ["acc", "acc_norm"].into_iter().filter_map(|name| line.remove(name)).collect();
            line.insert("scores".to_owned(), scores.into());
        }
        lines.to_string()
    };
    let (_folder, path) = changed(OLD, ".jsonl", nested);
    let (error, help) = refusal(&path);
    assert!(
        error.contains("its results have scores by acc,none, acc_norm,none, but none of its lines has one of them"),
        "{error}"
    );
    assert!(
        error.contains("lm-evaluation-harness's samples that is not known") && help.contains("docs/logs.md"),
        "{error}"
    );
    // Metrics with their values are no list of names.
    let by_name = |text: String| {
        let mut lines: Value = serde_json::from_str(&text).unwrap();
        for line in lines.as_array_mut().unwrap() {
            line["metrics"] = json!({"acc": 1.0});
        }
        lines.to_string()
    };
    let (_folder, path) = changed(OLD, ".jsonl", by_name);
    let (error, _) = refusal(&path);
    assert!(
        error.contains("lm-evaluation-harness's samples that is not known") && error.contains("expected form"),
        "{error}"
    );
}

#[test]
fn other_columns_of_lighteval_are_named_by_the_name_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str| {
        let path = folder.path().join(name);
        fs::write(&path, parquet("message m { required binary question (UTF8); required binary verdict (UTF8); }"))
            .unwrap();
        path
    };
    let (error, help) = refusal(&write("details_t_2024-05-02T08-00-00.000000.parquet"));
    assert!(error.contains("a layout of lighteval that is not known") && help.contains("docs/logs.md"), "{error}");
    let (error, _) = refusal(&write("details.parquet"));
    assert!(error.contains("it is no log that earnest knows"), "{error}");
}

/// A Parquet file with one row of texts.
fn parquet(schema: &str) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(WriterProperties::default())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    while let Some(mut column) = group.next_column().unwrap() {
        column.typed::<ByteArrayType>().write_batch(&[ByteArray::from("1")], None, None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.into_inner().unwrap()
}

#[test]
fn earlier_details_of_lighteval_are_named() {
    let schema = "message m { required binary full_prompt (UTF8); required binary num_effective_few_shots (UTF8); required binary metrics (UTF8); }";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("details_t_2024-05-02T08-00-00.000000.parquet");
    fs::write(&path, parquet(schema)).unwrap();
    for place in [folder.path(), &path] {
        let (error, help) = refusal(place);
        assert!(error.contains("lighteval's details in an earlier layout") && help.contains("`columns = "), "{error}");
    }
    // Its columns can be named as those of a table.
    let name = |name: &str| Some(name.to_owned());
    let columns = TableColumns { id: name("full_prompt"), scores: vec!["metrics".into()], ..TableColumns::default() };
    let options = FindOptions { columns: Some(columns), model: name("m"), ..FindOptions::default() };
    assert_eq!(find(&[path], &options).unwrap().logs.len(), 1);
}
