//! The NUPA suite's screens as snapshots, its reproduction of the paper from imported completions, and error messages.
//! `INSTA_UPDATE=always cargo test --release --test it nupa_screens` updates the snapshots.
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use earnest_papers::nupa::{EvaluatedRun, ReferenceRow, compare, plan, render, render_plan};
use earnest_results::store::{Filter, Store};
use earnest_tasks::suite::nupa::{Adapter, Lengths, NupaOptions, NupaSuite};
use earnest_tasks::suite::{Item, Items};
use insta::{Settings, assert_snapshot};
use serde_json::{Value, json};

fn tiny() -> PathBuf {
    let golden = std::env::var_os("EARNEST_GOLDEN")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden"), PathBuf::from);
    golden.join("engine/checkpoints/llama")
}

fn run(folder: &Path, words: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    command.current_dir(folder).stdin(Stdio::null()).args(words);
    for name in ["EARNEST_MODEL", "EARNEST_RESULTS", "NO_COLOR", "COLUMNS"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// Exit code, stdout and stderr of a command.
fn screen(folder: &Path, words: &[&str]) -> String {
    let (code, stdout, stderr) = run(folder, words);
    let mut text = format!("exit {code}\n");
    for (name, part) in [("stdout", stdout), ("stderr", stderr)] {
        if !part.is_empty() {
            write!(text, "--- {name}\n{part}").unwrap();
        }
    }
    text
}

fn settings() -> Settings {
    let mut settings = Settings::clone_current();
    settings.add_filter(r"-[0-9a-f]{8}\b", "-[hash]");
    settings.add_filter(&regex::escape(&tiny().display().to_string()), "[tiny checkpoint]");
    settings
}

fn length(item: &Item) -> u64 {
    item.covariates["length"].as_u64().unwrap()
}

const TASKS: &str = "add_Integer,max_Float,floordiv_Integer,mod_Integer";

/// Imports a responder: right up to six digits, beyond them one digit short.
fn import(folder: &Path, name: &str, shots: usize, lengths: &str) {
    let options = NupaOptions {
        tasks: TASKS.split(',').map(|task| task.parse().unwrap()).collect(),
        lengths: if lengths == "reference" {
            Lengths::Reference
        } else {
            Lengths::Chosen(lengths.split(',').map(|length| length.parse().unwrap()).collect())
        },
        per_length: 1,
        shots,
        seed: 1,
        ..NupaOptions::default()
    };
    let mut lines = String::new();
    for (number, item) in NupaSuite::new(options).unwrap().iter().enumerate() {
        let answer = if length(&item) <= 6 { item.gold.as_str() } else { &item.gold[1..] };
        let completion = format!(" {answer}");
        // By id and by operands in turn.
        let line = if number % 2 == 0 {
            json!({"item": item.id, "completion": completion})
        } else {
            json!({"task": item.task, "a": item.covariates["a"], "b": item.covariates["b"], "completion": completion})
        };
        writeln!(lines, "{line}").unwrap();
    }
    std::fs::write(folder.join("completions.jsonl"), lines).unwrap();
    let shots = shots.to_string();
    let words = ["import", "nupa", "--tasks", TASKS, "--lengths", lengths, "--per-length", "1", "--shots", &shots];
    let told = screen(folder, &[&words[..], &["--name", name, "--completions", "completions.jsonl"]].concat());
    assert!(told.starts_with("exit 0"), "{told}");
}

#[test]
fn a_run_stands_beside_the_paper() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    import(at, "Llama-3.1-8B", 0, "reference");
    let (code, text, said) = run(at, &["reproduce", "nupa", "--json", "--figures", "figures"]);
    assert_eq!(code, 0, "{said}");
    let found: Value = serde_json::from_str(&text).unwrap();
    let ours = &found["runs"][0];
    assert_eq!((&ours["row"], &ours["limits"]), (&json!("Llama-3.1-8B"), &json!([])));
    let tables: Vec<u64> =
        ours["tables"].as_array().unwrap().iter().map(|table| table["table"].as_u64().unwrap()).collect();
    // Table 3 has no row of this model.
    assert_eq!(tables, [7, 8, 9, 10]);
    let cell = |table: usize, task: &str, column: &str| {
        let cells = ours["tables"][table]["cells"].as_array().unwrap();
        let wanted = |cell: &&Value| cell["task"].as_str().unwrap().starts_with(task) && cell["column"] == column;
        cells.iter().find(wanted).unwrap_or_else(|| panic!("no {task} {column}")).clone()
    };
    let learned = cell(0, "add_Integer", "well_learned");
    let number = |value: &Value| value.as_f64().unwrap();
    assert_eq!(number(&learned["ours"]["ref"]["estimate"]), 6.0);
    assert_eq!(number(&learned["published"]["value"]["estimate"]), 4.0);
    assert_eq!(number(&learned["difference"]["estimate"]), 2.0);
    assert_eq!((&learned["lengths"], &learned["published_lengths"]), (&json!(18), &json!(18)));
    let short = cell(3, "add_Integer", "S");
    assert_eq!(number(&short["ours"]["strict"]["estimate"]), 1.0);
    assert!((number(&short["difference"]["estimate"]) - 0.05).abs() < 1e-12);
    assert_eq!(short["reading"], "no_difference_shown");
    // One question at each of the 40 lengths from 61 on is none right of 40, where the paper has 36 %.
    let long = cell(3, "max_Float", "XL");
    assert_eq!((number(&long["ours"]["ref"]["estimate"]), &long["reading"]), (0.0, &json!("differs")));
    for table in ours["tables"].as_array().unwrap() {
        for cell in table["cells"].as_array().unwrap() {
            let [ours, published, difference] =
                [&cell["ours"]["ref"], &cell["published"]["value"], &cell["difference"]]
                    .map(|value| number(&value["estimate"]));
            assert!((ours - published - difference).abs() < 1e-12, "{cell}");
        }
    }
    let figures: Vec<String> = ours["figures"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|figure| figure["primary"] == true)
        .map(|figure| format!("{} {}", figure["figures"], figure["metric"].as_str().unwrap()))
        .collect();
    assert_eq!(figures, ["[2,5] exact_match", "[6] digit_match", "[7] log2_dlength"]);
    let rows = ours["figures"][0]["rows"].as_array().unwrap();
    let row =
        rows.iter().find(|row| row["task"].as_str().unwrap().starts_with("max_Float") && row["range"] == "L").unwrap();
    assert_eq!((number(&row["dlength"]["estimate"]), number(&row["log2_dlength"]["estimate"])), (1.0, 1.0));
    let drawings: Vec<String> = std::fs::read_dir(at.join("figures"))
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    assert_eq!(drawings.len(), 6, "three figures of two representations");
    for text in drawings {
        assert!(
            text.starts_with("<?xml")
                && !text.contains("NaN")
                && text.matches("<g").count() == text.matches("</g>").count()
        );
    }
    settings().bind(|| assert_snapshot!("reproduce", screen(at, &["reproduce", "nupa"])));
    // The same at the widths that terminals have, and no line wider than they are.
    let store = Store::open(&at.join("earnest-results")).unwrap();
    let record = store.runs().unwrap().remove(0);
    let mut run = EvaluatedRun::new(record.manifest.clone()).unwrap();
    for sample in store.samples(&record, Filter::default()) {
        run.add(&sample.unwrap());
    }
    let comparison = compare(&[run], &ReferenceRow::OwnModel);
    settings().bind(|| {
        for width in [80, 120] {
            let text = render(&comparison, true, width);
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{} columns: {line}", line.chars().count());
            }
            assert_snapshot!(format!("reproduce_{width}"), text);
        }
    });
}

#[test]
fn rows_are_there_only_where_a_run_asks_the_papers_quantity() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    import(at, "Qwen2-7B", 5, "3,7,12");
    import(at, "Some-Model", 0, "3,7,12");
    let json = |words: &[&str]| -> Value {
        let (code, text, said) = run(at, &[&["reproduce", "nupa", "--json"], words].concat());
        assert_eq!(code, 0, "{said}");
        serde_json::from_str(&text).unwrap()
    };
    let found = json(&["nupa-Qwen2-7B"]);
    let tables = found["runs"][0]["tables"].as_array().unwrap();
    assert!(tables.len() == 1 && tables[0]["table"] == 10, "five-shot runs have Table 10 only");
    let cells = tables[0]["cells"].as_array().unwrap();
    // XL is not asked, and single lengths of a range are not its mean.
    assert!(cells.iter().all(|cell| cell["column"] != "XL" && cell["reading"] == "not_comparable"));
    assert_eq!(found["runs"][0]["figures"][0]["figures"], json!([8]));
    let alone = json(&["nupa-Some-Model"]);
    assert_eq!((&alone["runs"][0]["row"], &alone["runs"][0]["tables"]), (&Value::Null, &json!([])));
    let beside = json(&["nupa-Some-Model", "--beside", "gpt-4o"]);
    assert_eq!(beside["runs"][0]["row"], "GPT-4o");
    let limits = beside["runs"][0]["limits"].to_string();
    assert!(limits.contains("another model"), "{limits}");
    let tables: Vec<u64> =
        beside["runs"][0]["tables"].as_array().unwrap().iter().map(|table| table["table"].as_u64().unwrap()).collect();
    // GPT-4o is in Table 3, of which mod at seven digits is asked, and not in Table 10.
    assert_eq!(tables, [3, 7, 8, 9]);
    let cells = beside["runs"][0]["tables"][0]["cells"].as_array().unwrap();
    assert!(cells.len() == 1 && cells[0]["column"] == "7" && cells[0]["reading"] == "not_comparable", "{cells:?}");
    settings().bind(|| {
        assert_snapshot!("reproduce_beside_unknown", screen(at, &["reproduce", "nupa", "--beside", "Llama-9"]));
        assert_snapshot!("reproduce_no_such_run", screen(at, &["reproduce", "nupa", "nothing"]));
    });
}

#[test]
fn plans() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // Commands name the model: by a short name, so that their lines break in the same places everywhere.
    std::os::unix::fs::symlink(tiny(), folder.path().join("tiny")).unwrap();
    let model = "tiny";
    settings().bind(|| {
        assert_snapshot!("reproduce_plan", screen(at, &["reproduce", "nupa", "--plan"]));
        let words = ["reproduce", "nupa", "--plan", "--model", model, "--prompt", "raw", "--rate", "1000"];
        assert_snapshot!("reproduce_plan_rate", screen(at, &words));
        let plan = plan(Adapter::Completion, None).unwrap().at_rate(None);
        assert_snapshot!("reproduce_plan_80", render_plan(&plan, 80));
        assert_snapshot!("reproduce_rate_alone", screen(at, &["reproduce", "nupa", "--rate", "5"]));
    });
    // A rate that a run measured.
    let words = ["run", "nupa", "--model", model, "--threads", "1", "--tasks", "add_Integer", "--lengths", "1"];
    let (code, _, said) = run(at, &[&words[..], &["--per-length", "2", "--budget", "2", "--quiet"]].concat());
    assert_eq!(code, 0, "{said}");
    let (code, text, said) = run(at, &["reproduce", "nupa", "--plan", "--model", model, "--json"]);
    assert_eq!(code, 0, "{said}");
    let plan: Value = serde_json::from_str(&text).unwrap();
    assert!(plan["rate"]["source"].as_str().unwrap().starts_with("measured in run nupa-"), "{}", plan["rate"]);
    let row = &plan["rows"][0];
    let number = |name: &str| row[name].as_f64().unwrap();
    let expected = (number("prompt_tokens") + number("answer_tokens"))
        / plan["rate"]["new_tokens_per_second"].as_f64().unwrap()
        / 3600.0;
    assert!((row["hours"][0].as_f64().unwrap() - expected).abs() < 1e-9 * expected);
}

#[test]
fn help() {
    let folder = tempfile::tempdir().unwrap();
    settings().bind(|| {
        for (name, words) in [
            ("generate", &["generate", "nupa", "--help"][..]),
            ("rf_lengths", &["rf-lengths", "--help"]),
            ("reproduce", &["reproduce", "nupa", "--help"]),
        ] {
            assert_snapshot!(format!("help_{name}"), screen(folder.path(), words));
        }
    });
}

#[test]
fn rule_lengths() {
    let model = tiny();
    let words = [
        "rf-lengths",
        "--model",
        model.to_str().unwrap(),
        "--tasks",
        "mod_Integer,length_Integer",
        "--context",
        "4000",
    ];
    let folder = tempfile::tempdir().unwrap();
    settings().bind(|| assert_snapshot!("rf_lengths", screen(folder.path(), &words)));
}

/// Every mistake is answered with the valid choices, before a model is opened.
#[test]
fn mistakes() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let asked = |more: &[&str]| screen(at, &[&["run", "nupa", "--model", "none"], more].concat());
    let generated = |more: &[&str]| screen(at, &[&["generate", "nupa"], more].concat());
    settings().bind(|| {
        assert_snapshot!("wrong_task", asked(&["--tasks", "add_Complex"]));
        assert_snapshot!("wrong_task_without_rule", asked(&["--style", "rule-following", "--tasks", "count_Integer"]));
        let mut text = String::new();
        for options in [
            &["--tasks", "add_Integer,add_Integer"][..],
            &["--tasks", "released,add_Integer"],
            &["--tasks", ""],
            &["--lengths", "0"],
            &["--lengths", "101"],
            &["--tasks", "add_Integer", "--lengths", "21"],
            &["--tasks", "add_Integer,max_Integer", "--lengths", "50"],
            &["--lengths", "5-3"],
            &["--lengths", "many"],
            &["--per-length", "0"],
            &["--shots", "9"],
            &["--shots", "5", "--split", "train"],
            &["--shots", "5", "--style", "rule-following"],
            &["--reference", "--short-operand", "any"],
            &["--reference", "--hard-floats", "equal"],
            &["--budget", "0"],
            &["--budget", "lots"],
            &["--split", "dev"],
            &["--scorer", "lenient"],
            &["--style", "free"],
            &["--prompt", "zero-shot"],
        ] {
            writeln!(text, "$ run nupa {}\n{}", options.join(" "), asked(options)).unwrap();
        }
        assert_snapshot!("mistakes_run", text);
        let mut text = String::new();
        for options in [
            &["--tasks", "max_Integer", "--lengths", "50", "--index-hints"][..],
            &["--hints-from-high-digit"],
            &["--text", "rule-following", "--zero-padding"],
            &["--tasks", "add_Integer", "--lengths", "40"],
            &["--reversal", "sideways"],
            &["--per-length", "0"],
            &["--reference", "--short-operand", "any"],
            &["-o", "no/such/folder/train.jsonl"],
        ] {
            writeln!(text, "$ generate nupa {}\n{}", options.join(" "), generated(options)).unwrap();
        }
        assert_snapshot!("mistakes_generate", text);
    });
}

/// The tiny checkpoint with another chat template.
fn with_template(folder: &Path, template: &str) -> PathBuf {
    let place = folder.join(template.trim_end_matches(".jinja"));
    std::fs::create_dir(&place).unwrap();
    for entry in std::fs::read_dir(tiny()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), place.join(entry.file_name())).unwrap();
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chat_templates").join(template);
    std::fs::copy(source, place.join("chat_template.jinja")).unwrap();
    place
}

#[test]
fn a_template_without_a_system_role_gets_the_text_in_the_first_user_turn() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let words = [
        "--tasks",
        "add_Integer",
        "--lengths",
        "2",
        "--per-length",
        "2",
        "--budget",
        "2",
        "--threads",
        "1",
        "--prompt",
        "chat",
    ];
    for (template, folded) in
        [("gemma.jinja", true), ("mistral_strict.jinja", true), ("silent.jinja", true), ("qwen3.jinja", false)]
    {
        let model = with_template(at, template);
        let results = at.join(format!("{template}-results"));
        let fixed = ["run", "nupa", "--model", model.to_str().unwrap(), "--results", results.to_str().unwrap()];
        let (code, _, said) = run(at, &[&fixed[..], &words].concat());
        assert_eq!(code, 0, "{template}: {said}");
        assert_eq!(said.matches("does not support system messages").count(), usize::from(folded), "{template}: {said}");
        let store = Store::open(&results).unwrap();
        let record = store.runs().unwrap().remove(0);
        let settings = serde_json::to_value(&record.manifest.settings).unwrap();
        let place = settings.get("system").and_then(Value::as_str);
        assert_eq!(place, folded.then_some("first_user_turn"), "{template}");
        let prompt = record.manifest.first_prompt.unwrap().text;
        assert_eq!(prompt.contains(".\n\nDirectly return the answer"), folded, "{template}: {prompt}");
        assert!(prompt.contains("You are a capable math assistant"), "{template}: {prompt}");
        // It is the same run when it is asked for again.
        let (code, _, said) = run(at, &[&fixed[..], &words].concat());
        assert!(code == 0 && said.contains("this run was finished"), "{template}: {said}");
        drop(store);
    }
}

#[test]
fn questions_of_another_data_set_become_a_run_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let lines = [
        json!({"task": "add_Integer", "a": "744", "b": "543", "completion": " 1287"}),
        json!({"task": "add_Integer", "a": "7", "b": "5", "completion": " 13"}),
        json!({"task": "length_Integer", "a": "12345", "completion": " 5"}),
        json!({"task": "add_Integer", "a": "744", "b": "543", "sample": 1, "completion": "The answer is 1287."}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(at.join("own.jsonl"), text).unwrap();
    let words = ["import", "nupa", "--name", "api", "--completions", "own.jsonl", "--json"];
    let (code, text, said) = run(at, &words);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("the file's own 3"), "{said}");
    let found: Value = serde_json::from_str(&text).unwrap();
    let all = found["summary"]["rows"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&all["name"], &all["n"]), (&json!("all"), &json!(4)));
    assert_eq!(all["values"][0][1]["estimate"], 0.75);
    // It is read and scored again like any other.
    let (code, text, said) = run(at, &["score", "nupa-api", "--json"]);
    assert!(code == 0 && !text.is_empty(), "{said}");
    std::fs::write(
        at.join("bad.jsonl"),
        "{\"task\": \"mod_Integer\", \"a\": \"7\", \"b\": \"0\", \"completion\": \"1\"}\n",
    )
    .unwrap();
    let (code, _, said) = run(at, &["import", "nupa", "--name", "api", "--completions", "bad.jsonl"]);
    assert!(code == 2 && said.contains("bad.jsonl line 1"), "{said}");
}
