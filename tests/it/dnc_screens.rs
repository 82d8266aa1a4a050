//! DNC at the command line, on questions written for these tests: screens as snapshots, and runs through the engine.
//! `INSTA_UPDATE=always cargo test --release --test it dnc_screens` updates the snapshots.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use earnest_tasks::suite::dnc::{
    Asked, Data, Dataset, Dnc, Kind, Options, PromptShape, Split, masked, read, read_annotations,
};
use earnest_tasks::suite::{ItemOrder, Items, Scoring};
use insta::{Settings, assert_snapshot};
use serde_json::Value;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/dnc")
}

fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/engine/checkpoints/llama")
}

struct Screen {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Screen {
    fn text(&self) -> String {
        let mut text = format!("exit {}\n", self.code);
        for (name, part) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !part.is_empty() {
                text.push_str(&format!("--- {name}\n{part}"));
            }
        }
        text
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

fn earnest(folder: &Path, words: &[&str]) -> Screen {
    with(folder, words, &[])
}

fn with(folder: &Path, words: &[&str], variables: &[(&str, &Path)]) -> Screen {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    command.current_dir(folder).stdin(Stdio::null()).args(words);
    for name in ["EARNEST_MODEL", "EARNEST_RESULTS", "EARNEST_DATA", "NO_COLOR", "COLUMNS"] {
        command.env_remove(name);
    }
    for (name, value) in variables {
        command.env(name, value);
    }
    let output = command.output().unwrap();
    Screen {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn settings(folder: &Path) -> Settings {
    let mut settings = Settings::clone_current();
    for path in [folder.canonicalize().unwrap(), folder.to_owned()] {
        settings.add_filter(&regex::escape(&path.display().to_string()), "[folder]");
    }
    settings.add_filter(&regex::escape(&fixtures().display().to_string()), "[fixtures]");
    settings.add_filter(r"-[0-9a-f]{8}\b", "-[hash]");
    settings.add_filter(r"\b[0-9a-f]{64}\b", "[hash]");
    settings
}

/// A copy of the fixtures that a test may change.
fn data() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("asdiv-a")).unwrap();
    for name in ["asdiv-a/testset.json", "asdiv-a/trainset.json", "asdiv-a.annotations.jsonl", "malformed.jsonl"] {
        std::fs::copy(fixtures().join(name), folder.path().join(name)).unwrap();
    }
    folder
}

fn suite(change: impl Fn(&mut Options)) -> Dnc {
    let mut parts = BTreeMap::new();
    for (split, name) in [(Split::Test, "testset"), (Split::Train, "trainset")] {
        let bytes = std::fs::read(fixtures().join(format!("asdiv-a/{name}.json"))).unwrap();
        let found = read(Dataset::AsdivA, &bytes).unwrap();
        assert_eq!((found.malformed.len(), found.problems.is_empty()), (0, false));
        parts.insert(split, found.problems);
    }
    let bytes = std::fs::read(fixtures().join("asdiv-a.annotations.jsonl")).unwrap();
    let (annotations, malformed) = read_annotations(&bytes, |id| {
        parts.values().flatten().find(|problem| problem.id == id).map_or(Asked::Nowhere, Asked::Here)
    })
    .unwrap();
    assert_eq!(malformed, []);
    let mut options = Options { shape: PromptShape::Raw, ..Options::default() };
    change(&mut options);
    Dnc::new(options, Data { parts, annotations, notes: Vec::new() }).unwrap()
}

#[test]
fn passages_are_drawn_and_runs_of_before_keep_the_order_of_the_file() {
    let file = std::fs::read(fixtures().join("asdiv-a/testset.json")).unwrap();
    let file: Vec<String> = read(Dataset::AsdivA, &file).unwrap().problems.into_iter().map(|one| one.id).collect();
    let (today, before) = (suite(|_| ()), suite(|options| options.order = ItemOrder::One));
    assert_eq!((today.version(), before.version()), ("6.3", "5.3"));
    let clusters = |suite: &Dnc| {
        let mut found: Vec<String> = suite.iter().map(|item| item.cluster).collect();
        found.dedup();
        found
    };
    let (drawn, given) = (clusters(&today), clusters(&before));
    let index = |id: &String| file.iter().position(|known| known == id).unwrap();
    assert!(given.iter().map(index).is_sorted() && !drawn.iter().map(index).is_sorted(), "{drawn:?}");
    // Everything of a question stays together, and the questions are the same.
    assert_eq!(drawn.iter().collect::<BTreeSet<_>>().len(), drawn.len());
    let by_id = |suite: &Dnc| suite.iter().map(|item| (item.id.clone(), item)).collect::<BTreeMap<_, _>>();
    assert_eq!(by_id(&today), by_id(&before));
    let options = today.options();
    assert_eq!((&options["order"], before.options().get("order")), (&2.into(), None));
    assert_eq!(serde_json::from_value::<Options>(before.options()).unwrap().order, ItemOrder::One);
}

#[cfg(unix)]
#[test]
fn standard_input_is_not_overwritten() {
    let folder = data();
    let path = folder.path().join("rows.jsonl");
    let rows = "{\"id\":\"a\",\"question\":\"Ann has 5 pens. How many?\",\"answer\":\"5\"}\n";
    std::fs::write(&path, rows).unwrap();
    std::fs::hard_link(&path, folder.path().join("link.jsonl")).unwrap();
    let piped = |output: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
        command.current_dir(folder.path()).stdin(std::fs::File::open(&path).unwrap());
        let output = command.args(["perturb", "-", "--kinds", "language", "-o", output]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for name in ["rows.jsonl", "link.jsonl"] {
        let (code, said) = piped(name);
        assert!(code == Some(2) && said.contains("standard input, and writing would overwrite it"), "{code:?} {said}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), rows);
    }
    let (code, said) = piped("other.jsonl");
    assert!(code == Some(0) && said.contains("1 perturbed row in other.jsonl, from 1 question\n"), "{code:?} {said}");
}

#[test]
fn perturbed_rows_say_what_changed() {
    let folder = data();
    let at = folder.path();
    settings(at).bind(|| {
        let words = ["perturb", "asdiv-a/testset.json", "--kinds", "language,noise,verbosity", "--seed", "3"];
        assert_snapshot!("perturb", earnest(at, &words).text());
        assert_snapshot!("help_perturb", earnest(at, &["perturb", "--help"]).text());
        assert_snapshot!("perturb_malformed", earnest(at, &["perturb", "malformed.jsonl"]).text());
        let skip =
            ["perturb", "malformed.jsonl", "--malformed", "skip", "--kinds", "type,noise", "--ineligible", "keep"];
        assert_snapshot!("perturb_skip", earnest(at, &skip).text());
        assert_snapshot!("perturb_unknown", earnest(at, &["perturb", "malformed.jsonl", "--kinds", "tipe"]).text());
        let field = ["perturb", "asdiv-a/testset.json", "--body-field", "Story"];
        assert_snapshot!("perturb_field", earnest(at, &field).text());
    });
    let reference = [
        "perturb",
        "asdiv-a/testset.json",
        "--kinds",
        "type",
        "--mode",
        "reference",
        "--ineligible",
        "keep",
        "-o",
        "out.jsonl",
    ];
    assert_eq!(earnest(at, &reference).code, 0);
    let rows = std::fs::read_to_string(at.join("out.jsonl")).unwrap();
    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 10);
    let perturbed: Vec<bool> = rows.iter().map(|row| row["dnc"]["perturbed"].as_bool().unwrap()).collect();
    assert!(perturbed.is_sorted_by(|a, b| a >= b), "perturbed rows come first: {perturbed:?}");
    assert_eq!(rows[0]["Formula"], "24.0+38.0=62.0");
}

#[test]
fn rows_keep_their_bytes_and_contradictions_are_named() {
    let folder = data();
    let at = folder.path();
    let rows = [
        "oops",
        r#"{"id":12345678901234567890123,"Body":"Ann had 147 pies and 56 more.","Question":"How many?","Answer":203,"Formula":"147+56=203","price":1.10}"#,
        r#"{"id":2,"Body":"B 147, 56","Question":"Q?","Answer":203,"Formula":"147+56=999"}"#,
        r#"{"id":3,"Body":"B 147, 56","Question":"Q?","Answer":"abc"}"#,
        r#"{"id":4,"Body":"B 147, 56","Question":"Q?","Answer":null}"#,
        r#"{"id":5,"Body":"B 147, 56","Question":"Q?","Answer":"1e400"}"#,
        r#"{"id":6,"Body":"B 147, 56","Question":"Q?","id":7}"#,
        r#"{"id":8,"Body":"B 147, 56","Question":"Q?","dnc":"mine"}"#,
    ];
    std::fs::write(at.join("rows.jsonl"), rows.join("\n")).unwrap();
    let refused = earnest(at, &["perturb", "rows.jsonl", "--kinds", "type"]);
    assert!(
        refused.code == 2 && refused.stderr.contains("7 malformed rows: rows.jsonl, line 1: not JSON"),
        "{}",
        refused.text()
    );
    let skipped = earnest(at, &["perturb", "rows.jsonl", "--kinds", "type", "--malformed", "skip"]);
    // The id is that of the perturbed row.
    let kept = r#"{"id":"12345678901234567890123~type","Body":"Ann had 147.0 pies and 56.0 more.","Question":"How many?","Answer":203,"Formula":"147.0+56.0=203","price":1.10,"dnc":{"#;
    assert!(skipped.code == 0 && skipped.stdout.starts_with(kept), "{}", skipped.text());
    for said in [
        "line 3: formula",
        "line 4: answer \"abc\"",
        "line 5: field `Answer`",
        "line 6: answer \"1e400\"",
        "and 2 more",
    ] {
        assert!(skipped.stderr.contains(said), "{said}: {}", skipped.stderr);
    }
    // White space between the parts goes; texts, numbers and keys stay as they are written.
    std::fs::write(
        at.join("spaced.json"),
        "[ { \"id\" : 1e0,\n \"Body\":\"Ann had 5 pies.\" , \"Question\":\"How many?\", \"x\" : [ 1.50 , \"\\u00e9  b\" ] } ]",
    )
    .unwrap();
    let spaced = earnest(at, &["perturb", "spaced.json", "--kinds", "type"]);
    let kept_tokens =
        r#"{"id":"1e0~type","Body":"Ann had 5.0 pies.","Question":"How many?","x":[1.50,"\u00e9  b"],"dnc":{"#;
    assert!(spaced.stdout.starts_with(kept_tokens), "{}", spaced.text());
    // What is read is not overwritten, whatever it is called.
    std::fs::hard_link(at.join("spaced.json"), at.join("link.json")).unwrap();
    let before = std::fs::read(at.join("spaced.json")).unwrap();
    for output in ["spaced.json", "./spaced.json", "link.json"] {
        let refused = earnest(at, &["perturb", "spaced.json", "--kinds", "type", "-o", output]);
        assert!(refused.code == 2 && refused.stderr.contains("would overwrite it"), "{}", refused.text());
    }
    assert_eq!(std::fs::read(at.join("spaced.json")).unwrap(), before);
    let empty = earnest(at, &["perturb", "rows.jsonl", "--kinds", ""]);
    assert!(empty.code == 2 && empty.stderr.contains("its name is empty"), "{}", empty.text());
    // Standard input is a file like any other.
    let mut child = Command::new(env!("CARGO_BIN_EXE_earnest"))
        .args(["perturb", "-", "--kinds", "type"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), rows[1].as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && String::from_utf8(output.stdout).unwrap().starts_with(kept));
}

#[test]
fn annotations_are_checked_before_anything_is_asked() {
    let folder = data();
    let at = folder.path();
    let model = tiny();
    let path = at.join("asdiv-a.annotations.jsonl");
    let sound = std::fs::read_to_string(&path).unwrap();
    for (from, to, said) in [
        ("\"38-24=14\"", "\"38-24=15\"", "the left side is 14"),
        ("\"14 (rolls)\"", "\"15 (rolls)\"", "is not the value of formula"),
        ("\"logic\", \"id\": \"own-0001\"", "\"logic\", \"id\": \"own-9999\"", "there is no question own-9999"),
    ] {
        assert!(sound.contains(from), "{from}");
        std::fs::write(&path, sound.replacen(from, to, 1)).unwrap();
        let run = earnest(at, &["run", "dnc", "--data", ".", "--model", model.to_str().unwrap()]);
        assert!(run.code == 2 && run.stderr.contains(said) && run.stderr.contains("line 3"), "{}", run.text());
        let perturbed = earnest(
            at,
            &["perturb", "asdiv-a/testset.json", "--annotations", path.to_str().unwrap(), "--kinds", "logic"],
        );
        assert!(perturbed.code == 2 && perturbed.stderr.contains(said), "{}", perturbed.text());
    }
}

#[test]
fn other_encodings_are_named() {
    let folder = data();
    let at = folder.path();
    std::fs::write(at.join("utf16.jsonl"), [0xff, 0xfe, 0x7b, 0x00]).unwrap();
    std::fs::write(at.join("latin.json"), b"[{\"question\": \"caf\xe9\"}]").unwrap();
    let mut marked = b"\xef\xbb\xbf".to_vec();
    marked.extend(std::fs::read(at.join("asdiv-a/testset.json")).unwrap());
    std::fs::write(at.join("marked.json"), marked).unwrap();
    let utf16 = earnest(at, &["perturb", "utf16.jsonl"]);
    assert!(utf16.code == 2 && utf16.stderr.contains("iconv -f UTF-16LE"), "{}", utf16.text());
    let latin = earnest(at, &["perturb", "latin.json"]);
    assert!(latin.code == 2 && latin.stderr.contains("byte 19 is not UTF-8"), "{}", latin.text());
    assert_eq!(earnest(at, &["perturb", "marked.json", "--kinds", "type"]).code, 0);
}

#[test]
fn mistakes_are_answered_with_the_next_step() {
    let folder = data();
    let at = folder.path();
    let model = tiny();
    let run = |more: &[&str]| {
        let mut words = vec!["run", "dnc", "--model", model.to_str().unwrap()];
        words.extend(more);
        earnest(at, &words).text()
    };
    settings(at).bind(|| {
        assert_snapshot!("run_without_data", run(&[]));
        assert_snapshot!("run_other_folder", run(&["--data", "asdiv-a/nowhere"]));
        assert_snapshot!("run_no_part", run(&["--data", ".", "--splits", "valid"]));
        assert_snapshot!("run_no_drop", run(&["--data", ".", "--dataset", "drop-num"]));
        assert_snapshot!("run_defence_alone", run(&["--data", ".", "--defence"]));
        let mut rows: Vec<Value> =
            serde_json::from_slice(&std::fs::read(at.join("asdiv-a/testset.json")).unwrap()).unwrap();
        rows[2].as_object_mut().unwrap().remove("Question");
        rows[4]["Answer"] = "24 (pages)".into();
        std::fs::write(at.join("asdiv-a/testset.json"), serde_json::to_string(&rows).unwrap()).unwrap();
        assert_snapshot!("run_malformed", run(&["--data", "."]));
    });
    let other = earnest(at, &["run", "arithmetic-bench", "--model", "x", "--kinds", "all"]);
    assert!(other.code == 2 && other.stderr.contains("which is an option of dnc"), "{}", other.text());
}

/// Completions of a model that is right on originals and wrong on every second perturbed question.
fn completions(suite: &Dnc) -> String {
    let mut text = String::new();
    for (number, item) in suite.iter().enumerate() {
        let (_, answer) = item.gold.rsplit_once('=').unwrap();
        let answer = answer.rsplit_once(" rounded up to ").map_or(answer, |(_, rounded)| rounded);
        let wrong = item.task != "original" && number % 2 == 0;
        let completion = if wrong { "Answer: 1".to_owned() } else { format!("Answer: {answer}") };
        text.push_str(&serde_json::json!({"item": item.id, "completion": completion}).to_string());
        text.push('\n');
    }
    text
}

#[test]
fn results_are_paired_and_beside_the_paper() {
    let folder = data();
    let at = folder.path();
    std::fs::write(at.join("completions.jsonl"), completions(&suite(|_| ()))).unwrap();
    let words = ["import", "dnc", "--data", ".", "--name", "half", "--completions", "completions.jsonl"];
    let imported = earnest(at, &words);
    settings(at).bind(|| {
        assert_snapshot!("import", imported.text());
        assert_snapshot!("reproduce", earnest(at, &["reproduce", "dnc"]).text());
    });
    let document = earnest(at, &["reproduce", "dnc", "--json"]).json();
    let table = document["compared"].as_array().unwrap().iter().find(|table| table["table"] == 3).unwrap();
    let row = table["rows"].as_array().unwrap().iter().find(|row| row["name"] == "type").unwrap();
    // 5 of 8 eligible pairs lost, of 10 questions asked; T5 lost 11.48 points.
    let cell = &row["published"][0];
    assert_eq!(
        (cell["system"].as_str(), cell["value"].as_f64().map(|v| (1e4 * v).round())),
        (Some("T5"), Some(-1148.0))
    );
    assert!((row["over_all"]["estimate"].as_f64().unwrap() + 0.5).abs() < 1e-9, "{row}");
    assert!((cell["difference"].as_f64().unwrap() + 0.5 - 0.1148).abs() < 1e-9, "{row}");
    // The Defense rows are those of our own experiment.
    assert!(!document["missing"].to_string().contains("defence"), "{}", document["missing"]);
    let trained = document["defence"]["compared"].as_array().unwrap().iter().find(|table| table["table"] == 3).unwrap();
    let defended = trained["rows"].as_array().unwrap().iter().find(|row| row["name"] == "verbosity, defence").unwrap();
    assert!(defended["ours"]["estimate"].is_number() && defended["published"][0]["value"].is_number(), "{defended}");
    // The stored run needs its data: moved, changed, found again.
    std::fs::create_dir(at.join("elsewhere")).unwrap();
    std::fs::rename(at.join("asdiv-a"), at.join("elsewhere/asdiv-a")).unwrap();
    let annotations = "asdiv-a.annotations.jsonl";
    std::fs::copy(at.join(annotations), at.join("elsewhere").join(annotations)).unwrap();
    let lost = earnest(at, &["runs", "show", "half"]);
    let again = earnest(at, &["score", "half"]);
    assert!(
        again.code == 4 && again.stderr.contains("cannot be read") && again.stderr.contains("EARNEST_DATA"),
        "{}",
        again.text()
    );
    assert_eq!(lost.code, 0, "its results are stored with it: {}", lost.text());
    let moved = with(at, &["score", "half"], &[("EARNEST_DATA", &at.join("elsewhere"))]);
    assert_eq!(moved.code, 0, "{}", moved.text());
    std::fs::write(at.join("elsewhere").join(annotations), "{}\n").unwrap();
    let changed = with(at, &["score", "half"], &[("EARNEST_DATA", &at.join("elsewhere"))]);
    assert!(changed.code == 4 && changed.stderr.contains("has changed"), "{}", changed.text());
}

#[test]
fn the_engine_answers_and_the_table_has_deltas() {
    let folder = data();
    let at = folder.path();
    let model = tiny();
    let mut words =
        vec!["run", "dnc", "--data", ".", "--model", model.to_str().unwrap(), "--prompt", "raw,answer,equation"];
    words.extend(["--kinds", "all", "--limit", "40", "--max-tokens", "4", "--json"]);
    let run = earnest(at, &words);
    assert!(run.code == 0 || run.code == 1, "{}", run.text());
    let document = run.json();
    let rows = document["summary"]["rows"].as_array().unwrap();
    let attack = rows.iter().find(|row| row["name"] == "language, answer").unwrap_or_else(|| panic!("{}", run.text()));
    assert_eq!((&attack["values"][0][0], &attack["values"][1][0]), (&"accuracy".into(), &"delta".into()));
    assert!(attack["numbers"].as_array().unwrap().iter().any(|number| number[0] == "Holm p"));
    // The same command reports the finished run; nothing is asked twice.
    let again = earnest(at, &words);
    assert!(again.stderr.contains("was finished at"), "{}", again.text());
    // What --limit does not reach is named, not silently absent.
    let few = ["run", "dnc", "--data", ".", "--model", model.to_str().unwrap(), "--prompt", "raw,answer"];
    let short = earnest(at, &[&few[..], &["--limit", "3", "--max-tokens", "4", "--json"]].concat()).json();
    let notes = short["summary"]["notes"].to_string();
    let named = "Not in the table: noise, distribution, verbosity, extra, logic, order. None of the 1 questions";
    assert!(notes.contains(named), "{notes}");
}

#[test]
fn prompts_are_what_the_settings_say() {
    let defended = suite(|options| {
        options.demonstrations = 4;
        options.defence = true;
        options.kinds = vec![Kind::Type, Kind::Verbosity];
        options.demonstration_sets = 2;
    });
    let items: Vec<_> = defended.iter().collect();
    assert_eq!(items.len(), defended.len());
    let ids: std::collections::BTreeSet<&str> = items.iter().map(|item| item.id.as_str()).collect();
    assert_eq!(ids.len(), items.len(), "ids are unique");
    for item in items.iter().filter(|item| item.cluster == "own-0001") {
        let cell = item.covariates["cell"].as_str().unwrap();
        let shots = &item.segments.shots;
        assert_eq!(shots.len(), 4);
        let marked =
            shots.iter().filter(|shot| shot.question.contains(".0 ") || shot.question.contains("(not ")).count();
        assert_eq!(marked, if matches!(cell, "defence" | "cost") { 4 } else { 0 }, "{cell}");
        let changed = item.segments.question.contains(".0 ") || item.segments.question.contains("(not ");
        assert_eq!(changed, matches!(cell, "attack" | "defence"), "{cell}");
        assert!(item.segments.raw.as_ref().unwrap().starts_with("Solve the problem."));
    }
    // The same example questions stand in every cell of a set, in the same order.
    let sets = |cell: &str, set: u64| -> Vec<String> {
        let item =
            items.iter().find(|i| i.covariates["cell"] == cell && i.covariates["demonstration_set"] == set).unwrap();
        item.segments.shots.iter().map(|shot| shot.question.split_whitespace().next().unwrap().to_owned()).collect()
    };
    assert_eq!(sets("original", 0), sets("defence", 0));
    assert_ne!(sets("original", 0), sets("original", 1));
}

#[test]
fn replaced_numbers_hide_what_only_numbers_changed() {
    assert_eq!(masked("Two of 3.").0, "[NUM1] of [NUM2].");
    let suite = suite(|options| {
        options.numbers = earnest_tasks::suite::dnc::Numbers::Replace;
        options.targets = vec![earnest_tasks::suite::dnc::Target::Equation];
    });
    let kinds: std::collections::BTreeSet<String> = suite.iter().map(|item| item.task.clone()).collect();
    for kind in [Kind::Type, Kind::Noise, Kind::Distribution] {
        assert!(suite.eligible(kind) > 0 && !kinds.contains(kind.name()), "{kind} would repeat the original's prompt");
    }
    assert!(kinds.contains("verbosity") && kinds.contains("extra"));
    // The results give that reason, and no other one.
    let score = earnest_tasks::suite::Score::default();
    let items: Vec<_> = suite.iter().collect();
    let scored: Vec<_> = items
        .iter()
        .map(|item| earnest_tasks::suite::Scored { item, score: &score, tokens: 1, truncated: false })
        .collect();
    let notes = suite.summarise(&scored).notes.join("\n");
    assert!(notes.contains("Not in the table: type, noise, distribution. With the numbers replaced"), "{notes}");
    assert!(!notes.contains("has that perturbation"), "{notes}");
    for item in suite.iter() {
        // What the prompt says of its numbers is so.
        let said = item.segments.system.as_deref().unwrap_or_default().contains("[NUM1]");
        assert_eq!(said, item.segments.question.contains("[NUM1]"), "{}", item.segments.question);
        assert_eq!(earnest_answer::number::words::words_in(&item.segments.question), [], "{}", item.segments.question);
        assert!(
            !item.segments.question.contains(|c: char| c.is_ascii_digit() && c != '2')
                || item.segments.question.contains("[NUM")
        );
    }
}

#[test]
fn reference_mode_is_the_reference_on_the_whole_part() {
    let reference = suite(|options| options.mode = earnest_tasks::suite::dnc::Mode::Reference);
    let kinds: Vec<usize> = Kind::EIGHT.iter().map(|kind| reference.eligible(*kind)).collect();
    // Language and Verbosity take every question; Type, Noise and Distribution those that the reference's filter passes.
    assert_eq!((kinds[0], kinds[4]), (10, 10));
    assert!(kinds[1] == kinds[2] && kinds[2] == kinds[3] && kinds[1] < 10);
    assert_eq!((kinds[6], kinds[7]), (2, 2));
}

#[test]
fn equations_stand_beside_every_table() {
    let folder = data();
    let at = folder.path();
    for (numbers, wanted) in [("token", &[3, 6, 7, 8, 9, 10][..]), ("replace", &[6])] {
        let replaced = numbers == "replace";
        let suite = suite(|options| {
            options.targets = vec![earnest_tasks::suite::dnc::Target::Equation];
            options.numbers = if replaced {
                earnest_tasks::suite::dnc::Numbers::Replace
            } else {
                earnest_tasks::suite::dnc::Numbers::Token
            };
        });
        // The original's equation is right; of the perturbed ones every second is.
        let lines: Vec<String> = suite
            .iter()
            .enumerate()
            .map(|(index, item)| {
                let left = item.gold.split('=').next().unwrap_or_default().to_owned();
                let said = if item.task == "original" || index % 2 == 0 { left } else { "1+1".to_owned() };
                serde_json::json!({"item": item.id, "completion": format!("Equation: {said}")}).to_string()
            })
            .collect();
        std::fs::write(at.join("equations.jsonl"), lines.join("\n")).unwrap();
        let words = ["import", "dnc", "--data", ".", "--prompt", "equation", "--numbers", numbers, "--name", numbers];
        let imported = earnest(at, &[&words[..], &["--completions", "equations.jsonl"]].concat());
        assert_eq!(imported.code, 0, "{}", imported.text());
        let document = earnest(at, &["reproduce", "dnc", numbers, "--json"]).json();
        for table in wanted {
            // Tables 7 and 8 are printed for the equation alone.
            let metrics = if let 7 | 8 = *table { &["Acc_eq"][..] } else { &["Acc_eq", "Acc_ans"] };
            for metric in metrics {
                let found: Vec<&Value> = document["compared"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter(|compared| compared["table"] == *table && compared["metric"] == *metric)
                    .collect();
                assert!(!found.is_empty(), "Table {table}, {metric}");
                for row in found.iter().flat_map(|compared| compared["rows"].as_array().unwrap()) {
                    assert!(row["ours"]["estimate"].is_number(), "Table {table}, {metric}: {row}");
                    // Table 6 alone has a single system; languages to digits are in no table.
                    assert!(!row["published"].as_array().unwrap().is_empty(), "Table {table}, {metric}: {row}");
                }
            }
        }
    }
}
