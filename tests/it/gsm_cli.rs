//! GSM-Symbolic at the command line, on questions drawn from our own templates.
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

fn earnest(folder: &Path, words: &[&str], data: Option<&Path>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    command.current_dir(folder).stdin(Stdio::null()).args(words);
    for name in
        ["EARNEST_MODEL", "EARNEST_RESULTS", "EARNEST_DATA", "HF_HOME", "XDG_CACHE_HOME", "HUGGINGFACE_HUB_CACHE"]
    {
        command.env_remove(name);
    }
    command.env("HF_HUB_CACHE", folder.join("hub"));
    if let Some(data) = data {
        command.env("EARNEST_DATA", data);
    }
    command.output().unwrap()
}

fn stdout(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn refused(output: &Output, code: i32, words: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{text}");
    for word in words {
        assert!(text.contains(word), "{word}: {text}");
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn questions_are_generated_as_apples_files_are() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let three = lines(&stdout(&earnest(at, &["generate", "gsm-symbolic", "--per-template", "3"], None)));
    assert_eq!(three.len(), 48);
    for key in
        ["id", "instance", "question", "answer", "original_id", "original_question", "original_answer", "variables"]
    {
        assert!(three.iter().all(|row| row.get(key).is_some()), "{key}");
    }
    let two = lines(&stdout(&earnest(at, &["generate", "gsm-symbolic", "--per-template", "2", "--only", "4-5"], None)));
    assert_eq!(two, [&three[12..14], &three[15..17]].concat());
    let other = ["generate", "gsm-symbolic", "--per-template", "3", "--seed", "2"];
    assert_ne!(lines(&stdout(&earnest(at, &other, None))), three);
    refused(&earnest(at, &["generate", "gsm-symbolic", "--only", "99"], None), 2, &["no template with the number 99"]);
    refused(&earnest(at, &["generate", "gsm-symbolic", "--templates", "."], None), 2, &["no template files"]);
    std::fs::write(at.join("broken.json"), "{}").unwrap();
    refused(
        &earnest(at, &["generate", "gsm-symbolic", "--templates", "broken.json"], None),
        2,
        &["broken.json", "question"],
    );
}

/// A data folder with the layout of Apple's repository, drawn from our templates, and completions for it: the wrong number for
/// every variant of template 1, the right one for the rest.
fn study(at: &Path) -> usize {
    let data = at.join("data");
    std::fs::create_dir(&data).unwrap();
    let generate =
        ["generate", "gsm-symbolic", "--per-template", "2", "--only", "0-3", "-o", "data/GSM_symbolic.jsonl"];
    stdout(&earnest(at, &generate, None));
    let mut completions = Vec::new();
    let rows = lines(&std::fs::read_to_string(data.join("GSM_symbolic.jsonl")).unwrap());
    let answer = |text: &Value| text.as_str().unwrap().rsplit("#### ").next().unwrap().to_owned();
    for row in &rows {
        let (id, instance) = (row["id"].as_u64().unwrap(), row["instance"].as_u64().unwrap());
        let right = answer(&row["answer"]);
        let said = if id == 1 { "1234.5" } else { &right };
        completions.push(json!({"item": format!("gsm/main/{id}/{instance}"), "completion": format!("The final answer is {said}.\n\nQ:")}));
        completions.push(json!({"item": format!("simple-code/main/{id}/{instance}"), "completion": format!("\n    return {said}\n")}));
        if instance == 0 {
            let original = answer(&row["original_answer"]);
            completions
                .push(json!({"item": format!("gsm/base/{id}/-1"), "completion": format!("So it is {original}")}));
            completions
                .push(json!({"item": format!("simple-code/base/{id}/-1"), "completion": "\n    return apples\n"}));
        }
    }
    let text: String = completions.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(at.join("completions.jsonl"), text).unwrap();
    completions.len()
}

#[test]
fn a_run_finds_its_questions_again_or_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    assert_eq!(study(at), 24);
    let import = [
        "import",
        "gsm-symbolic",
        "--data",
        "data",
        "--prompt",
        "gsm,simple-code",
        "--name",
        "imported",
        "--completions",
        "completions.jsonl",
        "--json",
    ];
    let document: Value = serde_json::from_str(&stdout(&earnest(at, &import, None))).unwrap();
    let rows = document["summary"]["rows"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["gsm base", "gsm main", "simple-code base", "simple-code main", "all"]);
    let value = |row: usize, name: &str| {
        let values = rows[row]["values"].as_array().unwrap();
        values.iter().find(|pair| pair[0] == name).map(|pair| pair[1]["estimate"].as_f64().unwrap())
    };
    assert_eq!((value(0, "study"), value(1, "study")), (Some(1.0), Some(0.75)));
    assert_eq!((value(1, "minus base"), value(1, "study_strict")), (Some(-0.25), Some(0.0)));
    // The code was run: `apples` is no name, the numbers are right.
    assert_eq!((value(2, "study"), value(3, "study")), (Some(0.0), Some(0.75)));
    let notes = document["summary"]["notes"].to_string();
    assert!(notes.contains("not the published GSM-Symbolic main set"), "{notes}");
    assert!(notes.contains("simple-code base: 4 of 4 wrong: name_error 4."), "{notes}");
    let options = &document["manifest"]["settings"]["suite_options"];
    assert_eq!(options["source"]["files"][0]["sha256"].as_str().unwrap().len(), 64);
    assert!(options["prompt_sha256"]["simple-code"].is_string());
    let unchanged = stdout(&earnest(at, &["score", "imported"], None));
    assert!(unchanged.contains("No score changed"), "{unchanged}");
    let card = stdout(&earnest(at, &["samples", "imported", "--reason", "name_error"], None));
    assert!(card.contains("return apples"), "{card}");
    assert!(card.contains("reason      NameError: name 'apples' is not defined"), "{card}");
    let card = stdout(&earnest(at, &["samples", "imported", "--task", "gsm", "--limit", "1"], None));
    assert!(card.contains("(27)") && card.contains("strict wrong (nothing)"), "{card}");

    std::fs::rename(at.join("data"), at.join("moved")).unwrap();
    let lost = earnest(at, &["score", "imported"], None);
    refused(&lost, 4, &["is not there", "EARNEST_DATA"]);
    assert!(stdout(&earnest(at, &["score", "imported"], Some(&at.join("moved")))).contains("No score changed"));
    let file = at.join("moved/GSM_symbolic.jsonl");
    let changed = std::fs::read_to_string(&file).unwrap().replacen("\"instance\":0", "\"instance\":5", 1);
    std::fs::write(&file, changed).unwrap();
    refused(&earnest(at, &["score", "imported"], Some(&file)), 4, &["has another content", "EARNEST_DATA"]);
}

#[test]
fn wrong_command_lines_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("c.jsonl"), "{\"item\": \"gsm/base/0/-1\", \"completion\": \"27\"}\n").unwrap();
    let import = |suite: &str, words: &[&str]| {
        let mut all = vec!["import", suite, "--name", "x", "--completions", "c.jsonl"];
        all.extend(words);
        earnest(at, &all, None)
    };
    refused(&import("gsm-symbolic", &[]), 2, &["apple/GSM-Symbolic", "earnest data fetch", "gsm-mini"]);
    refused(&import("gsm-symbolic", &["--data", "nowhere"]), 2, &["no file or folder nowhere", "earnest data fetch"]);
    refused(&import("gsm-symbolic", &["--data", "."]), 2, &["no questions of the set main", "GSM_symbolic.jsonl"]);
    refused(&import("gsm-symbolic", &["--data", "c.jsonl"]), 2, &["cannot use c.jsonl", "line 1"]);
    refused(&import("gsm-symbolic", &["--per-template", "3"]), 2, &["gsm-symbolic has no --per-template"]);
    refused(&import("gsm-mini", &["--data", "."]), 2, &["gsm-mini has no --data"]);
    refused(&import("gsm-mini", &["--tasks", "gsm"]), 2, &["has no --tasks", "--prompt"]);
    refused(&import("gsm-mini", &["--sets", "p3"]), 2, &["\"p3\" is not a set"]);
    refused(&import("gsm-mini", &["--sets", "p1"]), 2, &["no questions of the set p1"]);
    refused(&import("gsm-mini", &["--prompt", "gms"]), 2, &["no prompt gms", "simple-code"]);
    refused(&import("gsm-mini", &["--templates", "90"]), 2, &["no template 90"]);
    refused(&import("gsm-mini", &["--python", "/usr/bin/python3"]), 2, &["no prompt asks for one"]);
    refused(&import("arithmetic-bench", &["--instances", "3"]), 2, &["arithmetic-bench has no --instances"]);
    // A limited import of the mini suite needs no data at all.
    stdout(&import("gsm-mini", &["--limit", "1"]));
}

/// Two machines with the same questions at different places work on parts of one run.
#[test]
fn parts_of_a_run_are_joined_wherever_the_questions_lie() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    study(at);
    let other = at.join("elsewhere");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::copy(at.join("data/GSM_symbolic.jsonl"), other.join("GSM_symbolic.jsonl")).unwrap();
    let import = |data: &str, results: &str| {
        let words = ["import", "gsm-symbolic", "--data", data, "--prompt", "gsm", "--sets", "main", "--name", "m"];
        let lines = std::fs::read_to_string(at.join("completions.jsonl")).unwrap();
        let main: String =
            lines.lines().filter(|line| line.contains("gsm/main")).map(|line| format!("{line}\n")).collect();
        std::fs::write(at.join("main.jsonl"), main).unwrap();
        let more = ["--completions", "main.jsonl", "--results", results, "--json"];
        let document: Value =
            serde_json::from_str(&stdout(&earnest(at, &[&words[..], &more[..]].concat(), None))).unwrap();
        let manifest = &document["manifest"];
        let place = manifest["settings"]["suite_options"]["source"]["files"][0]["place"].as_str().unwrap().to_owned();
        (place, manifest["settings_sha256"].clone(), manifest["run"].clone())
    };
    let (here, there) = (import("data", "here"), import("elsewhere", "there"));
    assert_ne!(here.0, there.0);
    assert_eq!((here.1, here.2), (there.1, there.2), "one hash, one name");
    let merged = earnest(at, &["merge", "there", "--results", "here"], None);
    stdout(&merged);
    assert!(String::from_utf8_lossy(&merged.stderr).contains("nothing to copy"), "equal runs are one");
    // Another content is another run.
    let file = other.join("GSM_symbolic.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}\n")).unwrap();
    assert_ne!(import("elsewhere", "third").1, import("data", "fourth").1);
}

/// The Hugging Face cache, as its own programs fill it: files of a commit are links to blobs.
#[test]
fn the_dataset_is_found_in_the_cache_by_its_commit() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    study(at);
    let (one, two) = ("a".repeat(40), "b".repeat(40));
    let dataset = at.join("hub/datasets--apple--GSM-Symbolic");
    let snapshot = |commit: &str| {
        let main = dataset.join("snapshots").join(commit).join("main");
        std::fs::create_dir_all(&main).unwrap();
        std::fs::create_dir_all(dataset.join("blobs")).unwrap();
        std::fs::copy(at.join("data/GSM_symbolic.jsonl"), dataset.join("blobs/0123")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("../../../blobs/0123", main.join("test.jsonl")).unwrap();
        #[cfg(not(unix))]
        std::fs::copy(dataset.join("blobs/0123"), main.join("test.jsonl")).unwrap();
    };
    let import = |name: &str, more: &[&str]| {
        let words =
            ["import", "gsm-symbolic", "--prompt", "gsm,simple-code", "--completions", "completions.jsonl", "--json"];
        earnest(at, &[&words[..], &["--name", name], more].concat(), None)
    };
    refused(&import("m", &[]), 2, &["cannot be shipped", "earnest data fetch gsm-symbolic"]);
    snapshot(&one);
    let found: Value = serde_json::from_str(&stdout(&import("m", &[]))).unwrap();
    let place = &found["manifest"]["settings"]["suite_options"]["source"]["files"][0]["place"];
    assert_eq!(place, &format!("apple/GSM-Symbolic@{one}/main/test.jsonl"));
    let notes = found["summary"]["notes"].to_string();
    assert!(notes.contains("The originals are not GSM-Base: 0 of 4"), "{notes}");
    assert!(stdout(&earnest(at, &["score", "gsm-symbolic-m"], None)).contains("No score changed"));
    snapshot(&two);
    refused(&import("n", &[]), 2, &["the cache has 2 commits", "--revision", &one, &two]);
    let pinned: Value = serde_json::from_str(&stdout(&import("n", &["--revision", &two]))).unwrap();
    let place = &pinned["manifest"]["settings"]["suite_options"]["source"]["files"][0]["place"];
    assert_eq!(place, &format!("apple/GSM-Symbolic@{two}/main/test.jsonl"));
    refused(
        &import("o", &["--revision", &"c".repeat(40)]),
        2,
        &["has no commit cccc", "earnest data fetch", "--revision cccc"],
    );
    refused(&import("o", &["--revision", "main"]), 2, &["does not pin the questions", "40 hexadecimal digits"]);
    refused(&import("o", &["--revision", &one, "--data", "data"]), 2, &["cannot be used with"]);
    // Gone from the cache, the run says what it misses; the same file elsewhere will do.
    std::fs::remove_dir_all(&dataset).unwrap();
    refused(&earnest(at, &["score", "gsm-symbolic-n"], None), 4, &["apple/GSM-Symbolic@bbbb", "EARNEST_DATA"]);
    assert!(stdout(&earnest(at, &["score", "gsm-symbolic-n"], Some(&at.join("data")))).contains("No score changed"));
}

#[test]
fn sets_are_named_and_differences_are_only_explained_where_there_are_some() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    study(at);
    std::fs::copy(at.join("data/GSM_symbolic.jsonl"), at.join("data/GSM_p1.jsonl")).unwrap();
    std::fs::copy(at.join("data/GSM_symbolic.jsonl"), at.join("data/GSM_p2.jsonl")).unwrap();
    let lines = std::fs::read_to_string(at.join("completions.jsonl")).unwrap();
    let notes = |suite: &str, set: &str, more: &[&str]| {
        let of_set = lines.lines().filter(|line| line.contains("\"gsm/main"));
        let text: String = of_set.map(|line| line.replace("gsm/main", &format!("gsm/{set}")) + "\n").collect();
        std::fs::write(at.join("set.jsonl"), text).unwrap();
        let words = ["import", suite, "--prompt", "gsm", "--sets", set, "--completions", "set.jsonl", "--name", set];
        let document: Value =
            serde_json::from_str(&stdout(&earnest(at, &[&words[..], more, &["--json"]].concat(), None))).unwrap();
        document["summary"]["notes"].to_string()
    };
    for (set, sentence) in [
        ("main", "not the published GSM-Symbolic main set"),
        ("p1", "p1 has 8 questions of 4 templates; nothing is known here"),
        ("p2", "p2 is not the published set (8 questions of 4 templates)"),
    ] {
        let said = notes("gsm-symbolic", set, &["--data", "data"]);
        assert!(said.contains(sentence), "{said}");
        assert!(!said.contains("minus base") && !said.contains("The originals"), "{said}");
    }
    let mini = notes("gsm-mini", "main", &["--per-template", "2"]);
    assert!(!mini.contains("minus base") && !mini.contains("published"), "{mini}");
}

#[test]
fn an_items_prompt_need_not_be_said_twice() {
    let folder = tempfile::tempdir().unwrap();
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/engine/checkpoints/llama");
    let show = |words: &[&str]| {
        let all = [&["show", "gsm-mini", "--model", model.to_str().unwrap(), "--json"], words].concat();
        earnest(folder.path(), &all, None)
    };
    for words in [["--task", "simple-code"], ["--item", "simple-code/base/0/-1"]] {
        let text = stdout(&show(&words));
        let shown: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&shown["task"], &shown["item"]), (&json!("simple-code"), &json!("simple-code/base/0/-1")));
        assert_eq!((&shown["stop_strings"], &shown["keep_stop"]), (&json!(["\nQ:", " Q:"]), &json!(true)));
        assert!(!text.contains("\\u0000"), "{text}");
        let digest = |field: &str| shown[field].as_str().unwrap().len();
        assert_eq!((digest("ids_sha256"), digest("text_sha256")), (64, 64));
        assert_ne!(shown["ids_sha256"], shown["text_sha256"]);
    }
    refused(&show(&["--prompt", "gsm", "--task", "simple-code"]), 2, &["no task simple-code"]);
}
