//! `earnest study`: the example of docs/studies.md, mistakes in the file, interruption, parts, and models that fail.
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use earnest_results::Status;
use earnest_results::store::Store;
use serde_json::Value;

use crate::program::{code, copy_of_tiny, document, earnest, edit_json, run_in, stderr, stdout, store};

/// The program with the cache of the built-in model inside the folder.
fn study(folder: &Path, words: &[&str]) -> std::process::Output {
    command(folder, words).output().unwrap()
}

fn command(folder: &Path, words: &[&str]) -> std::process::Command {
    let mut command = earnest(folder);
    command.args(["study", "study.toml"]).args(words).env("EARNEST_CACHE", folder.join("cache"));
    command
}

fn write(folder: &Path, text: &str) {
    std::fs::write(folder.join("study.toml"), text).unwrap();
}

/// The complete example of the page.
fn example() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/studies.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut blocks = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.find(|block| block.starts_with("# study.toml")).unwrap().to_owned()
}

/// Two models on two tasks, small.
const SMALL: &str = r#"
name = "small"
limit = 12
[models.plain]
model = "built-in"
[models.int8]
model = "built-in"
compute = "int8"
[tasks.sums]
suite = "arithmetic-bench"
options = { tasks = "add,sub", lengths = "1..4", per-length = 3 }
[tasks.copies]
suite = "arithmetic-bench"
options = { tasks = ["copy"], lengths = "1..4" }
[generation]
max_tokens = 8
[[compare]]
"#;

fn loads(text: &str) -> usize {
    text.matches("loading the weights").count()
}

#[test]
fn the_example_of_the_page_is_asked_compared_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let text = example();
    write(folder.path(), &text);
    let plan = document(&study(folder.path(), &["--dry-run", "--json"]));
    assert_eq!((plan["runs"].as_array().unwrap().len(), plan["samples"].as_u64()), (4, Some(320)));
    assert!(plan["prompt_tokens"].as_f64().unwrap() > 320.0 && plan["at_most"] == true, "{plan}");
    assert!(!folder.path().join("earnest-results").exists(), "a dry run leaves nothing behind");

    let first = study(folder.path(), &[]);
    let (out, err) = (stdout(&first), stderr(&first));
    assert_eq!(code(&first), 0, "{err}");
    assert!(out.contains("Paired differences between models") && out.contains("adjusts for the 2 tests"), "{out}");
    assert!(out.contains("Hochberg's (BH)"), "{out}");
    for columns in [80, 100, 140] {
        let shown = command(folder.path(), &[]).env("COLUMNS", columns.to_string()).output().unwrap();
        let wide = stdout(&shown).lines().find(|line| line.chars().count() > columns).map(str::to_owned);
        assert_eq!(wide, None, "{columns} columns");
        assert!(stdout(&shown).lines().any(|line| line.ends_with("McNemar")), "nothing is dropped: {}", stdout(&shown));
    }
    assert!(out.contains("Mixed model: logit P correct ~ model + task + (1 | length)"), "{out}");
    assert!(out.contains("modelsampled") && out.contains("* model: differences from greedy."), "{out}");
    // The plan comes before the first run, the report's path after the last.
    assert!(err.find("decoding: 4 runs").unwrap() < err.find("greedy on sums").unwrap(), "{err}");
    assert!(err.contains("decoding.html: 320 samples of 4 runs"), "{err}");
    assert_eq!(loads(&err), 2, "each model is loaded once: {err}");
    let page = std::fs::read_to_string(folder.path().join("earnest-results/decoding.html")).unwrap();
    for label in ["greedy on sums", "sampled on sums", "greedy on extremes", "sampled on extremes"] {
        assert!(page.contains(label), "{label}");
    }

    // The same command uses the finished runs and says the same.
    let again = study(folder.path(), &[]);
    assert_eq!((stdout(&again), loads(&stderr(&again))), (out, 0));
    let results = document(&study(folder.path(), &["--json", "--quiet"]));
    assert!(results["runs"].as_array().unwrap().iter().all(|run| run["accuracy"].as_f64().is_some_and(|a| a > 0.3)));
    let differences = results["comparisons"][0]["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 2);
    let p = |index: usize, name: &str| differences[index]["difference"][name].as_f64().unwrap();
    for (index, found) in differences.iter().enumerate() {
        assert_eq!(found["difference"]["items"], 80);
        assert!(p(index, "p_holm") >= p(index, "p"));
    }
    let smaller = if p(0, "p") <= p(1, "p") { 0 } else { 1 };
    assert!((p(smaller, "p_holm") - (2.0 * p(smaller, "p")).min(1.0)).abs() < 1e-12, "one family of two");
    assert_eq!(results["comparisons"][0]["family_size"], 2);
    let share = |index: usize| differences[index]["difference"]["p_bh"].as_f64().unwrap();
    assert!((share(1 - smaller) - p(1 - smaller, "p")).abs() < 1e-12, "the largest stays as it is");
    assert!((share(smaller) - (2.0 * p(smaller, "p")).min(p(1 - smaller, "p"))).abs() < 1e-12);
    let fit = &results["mixed_models"][0]["fit"];
    assert_eq!((fit["rows"].as_u64(), fit["random"][0]["groups"].as_u64()), (Some(320), Some(8)));
    assert!(results["report"].as_str().unwrap().ends_with("decoding.html"));
    // Without a formula the maximal model that the design supports, and with slopes any formula.
    for (formula, found) in [
        ("", "correct ~ model + (1"),
        (
            "formula = 'correct ~ model * task + (1 + model | length)'",
            "correct ~ model + task + model:task + (1 + model | length)",
        ),
    ] {
        let (head, tail) = text.split_at(text.find("[[mixed_model]]").unwrap());
        let rest: Vec<&str> = tail.lines().filter(|line| !line.starts_with("formula")).skip(1).collect();
        write(folder.path(), &format!("{head}[[mixed_model]]\n{formula}\n{}\n", rest.join("\n")));
        let results = document(&study(folder.path(), &["--json", "--quiet"]));
        let model = &results["mixed_models"][0];
        assert!(model["formula"].as_str().unwrap().starts_with(found), "{model}");
        assert_eq!(model["fit"]["rows"], 320);
        // Without lengths the models differ in one direction in every question that tells them apart, so that the odds have no limit.
        match formula.is_empty() {
            true => assert_eq!(model["fit"]["diagnoses"][0]["kind"], "group-separation", "{model}"),
            false => assert!(model["marginal"][0]["differences"][0]["difference"].is_f64(), "{model}"),
        }
    }
    // What the study says of two runs is what `compare` says.
    let runs: Vec<&str> =
        ["greedy", "sampled"].map(|model| name(&results, model, "sums").as_str().unwrap()).into_iter().collect();
    let compared = document(&run_in(folder.path(), &["compare", runs[0], runs[1], "--json"]));
    assert_eq!(compared[0]["overall"]["p"], differences[0]["difference"]["p"]);
    let cost = document(&study(folder.path(), &["--dry-run", "--json"]));
    assert_eq!((cost["samples"].as_u64(), cost["seconds"].as_f64()), (Some(0), Some(0.0)), "nothing is left");
}

/// Name of the stored run of a model and task.
fn name<'r>(results: &'r Value, model: &str, task: &str) -> &'r Value {
    let mut runs = results["runs"].as_array().unwrap().iter();
    &runs.find(|run| run["model"] == model && run["task"] == task).unwrap()["run"]
}

#[test]
fn every_mistake_is_listed_with_its_line_before_anything_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "sampels = 1\n\n[models.plain]\nmodel = \"built-in\"\ncompute = \"int9\"\n\n[tasks.sums]\nsuite = \
         \"arithmetic-bensh\"\n\n[tasks.copies]\nsuite = \"arithmetic-bench\"\noptions = { task = \"copy\", per-length = \"x\" \
         }\nlimit = 0\n\n[[mixed_model]]\nformula = \"correct ~ model\"\n",
    );
    let refused = study(folder.path(), &[]);
    let err = stderr(&refused);
    assert_eq!(code(&refused), 2, "{err}");
    for said in [
        "study.toml has 7 mistakes",
        "line 1, sampels: there is no key sampels here (did you mean samples?)",
        "line 5, models.plain.compute: int9 is none of f32, int8, a8, bf16, fp8",
        "line 8, tasks.sums.suite: there is no suite arithmetic-bensh (did you mean arithmetic-bench?)",
        "line 12, tasks.copies.options.task: there is no key task here (did you mean tasks?)",
        "line 12, tasks.copies.options.per-length: per-length x: expected a whole number",
        "line 13, tasks.copies.limit: limit = 0 leaves nothing to ask",
        "line 16, mixed-model.formula: `correct ~ model` has no random intercept",
    ] {
        assert!(err.contains(said), "{said} is not in\n{err}");
    }
    // What the suites, the models and the tests say comes together too.
    let text = SMALL
        .replace("tasks = [\"copy\"]", "tasks = [\"copi\"]")
        .replace("[models.int8]\nmodel = \"built-in\"", "[models.int8]\nmodel = \"gone.gguf\"")
        .replace("[[compare]]", "[[compare]]\nbaseline = \"plane\"");
    write(folder.path(), &text);
    let refused = study(folder.path(), &[]);
    let err = stderr(&refused);
    assert_eq!(code(&refused), 2, "{err}");
    for said in ["has 3 mistakes", "gone.gguf", "unknown arithmetic-bench task `copi`", "there is no model plane"] {
        assert!(err.contains(said), "{said} is not in\n{err}");
    }
    // A study has keys where a command has options.
    write(folder.path(), &SMALL.replace("max_tokens = 8", "max_tokens = 0"));
    let err = stderr(&study(folder.path(), &[]));
    assert!(err.contains("`max-tokens` must be at least 1") && !err.contains("--max-tokens"), "{err}");
    // The same run under two names.
    write(folder.path(), &SMALL.replace("compute = \"int8\"", ""));
    let refused = study(folder.path(), &["--dry-run"]);
    assert_eq!(code(&refused), 2);
    assert!(stderr(&refused).contains("plain on sums and int8 on sums are the same run"), "{}", stderr(&refused));
    for (text, said) in [("name = \n[models.x\n", "line 2: "), ("", "there are no models"), ("name = \"a/b\"", "a/b")] {
        write(folder.path(), text);
        let refused = study(folder.path(), &[]);
        assert_eq!(code(&refused), 2);
        assert!(stderr(&refused).contains(said), "{}", stderr(&refused));
    }
    assert!(!folder.path().join("earnest-results").exists());
    std::fs::remove_file(folder.path().join("study.toml")).unwrap();
    assert!(stderr(&study(folder.path(), &[])).contains("study.toml cannot be read"));
}

#[test]
fn a_killed_study_is_continued_to_the_same_result() {
    let folder = tempfile::tempdir().unwrap();
    let text = SMALL.replace("limit = 12", "limit = 200").replace("\"1..4\" }", "\"1..20\" }");
    write(folder.path(), &text);
    let results = folder.path().join("earnest-results");
    let rows = || -> usize {
        let Ok(store) = Store::open(&results) else { return 0 };
        let runs = store.runs().unwrap_or_default();
        runs.iter().filter_map(|run| Some(store.progress(run).ok()?.settled())).sum()
    };
    let mut child = command(folder.path(), &["-q"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while rows() == 0 && child.try_wait().unwrap().is_none() && began.elapsed() < Duration::from_secs(120) {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = rows();
    assert!(before > 0, "nothing was asked");

    let continued = study(folder.path(), &["--json"]);
    assert_eq!(code(&continued), 0, "{}", stderr(&continued));
    assert!(stderr(&continued).contains("continuing: ") || before % 24 == 0, "{}", stderr(&continued));
    let found = document(&continued);
    let whole = tempfile::tempdir().unwrap();
    write(whole.path(), &text);
    let whole = document(&study(whole.path(), &["--json", "-q"]));
    let accuracy = |document: &Value| -> Vec<Value> {
        document["runs"].as_array().unwrap().iter().map(|run| run["accuracy"].clone()).collect()
    };
    assert_eq!(accuracy(&found), accuracy(&whole));
    assert_eq!(found["comparisons"], whole["comparisons"]);
    assert!(store(folder.path()).runs().unwrap().iter().all(|run| run.manifest.status == Status::Finished));
}

#[test]
fn parts_are_merged_and_then_compared() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), SMALL);
    for part in ["1/2", "2/2"] {
        let output = study(folder.path(), &["--shard", part, "-q"]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let out = stdout(&output);
        assert!(out.contains(&format!("part {part}")) && !out.contains("Paired differences"), "{out}");
    }
    // Nobody asks all items again.
    let early = study(folder.path(), &[]);
    assert_eq!(code(&early), 2);
    assert!(stderr(&early).contains("4 of 4 runs did not finish"), "{}", stderr(&early));
    assert!(stderr(&early).contains("help: `earnest merge` merges them"), "{}", stderr(&early));
    assert_eq!(code(&run_in(folder.path(), &["merge"])), 0);
    let merged = study(folder.path(), &["--json"]);
    assert_eq!((code(&merged), loads(&stderr(&merged))), (0, 0), "{}", stderr(&merged));
    let whole = tempfile::tempdir().unwrap();
    write(whole.path(), SMALL);
    assert_eq!(document(&merged)["comparisons"], document(&study(whole.path(), &["--json", "-q"]))["comparisons"]);
}

#[test]
fn a_model_that_fails_does_not_keep_the_others_from_their_runs() {
    let folder = tempfile::tempdir().unwrap();
    let damaged = copy_of_tiny(folder.path());
    std::fs::write(damaged.join("model.safetensors"), "no weights").unwrap();
    let models =
        "[models.damaged]\nmodel = \"copy\"\n[models.down]\nendpoint = \"http://127.0.0.1:1/v1\"\nretries = 0\n";
    write(folder.path(), &SMALL.replace("[models.plain]", &format!("{models}[models.plain]")));
    let output = study(folder.path(), &["--json"]);
    let err = stderr(&output);
    assert_eq!(code(&output), 3, "the code of the first failure: {err}");
    assert!(err.contains("damaged on sums failed") && err.contains("down on sums failed"), "{err}");
    assert!(err.contains("4 of 8 runs did not finish"), "{err}");
    let results = document(&output);
    let states: Vec<&str> =
        results["runs"].as_array().unwrap().iter().map(|run| run["status"].as_str().unwrap()).collect();
    let expected = ["failed", "not run", "failed", "not run", "finished", "finished", "finished", "finished"];
    assert_eq!(states, expected);
    assert_eq!(results["comparisons"][0]["differences"].as_array().unwrap().len(), 2, "plain with int8, on both tasks");
    // In words too, and the plan says it before.
    let shown = study(folder.path(), &[]);
    assert!(stdout(&shown).contains("not run"), "{}", stdout(&shown));
    assert!(stderr(&shown).contains("down cannot be run: "), "{}", stderr(&shown));
}

#[test]
fn a_study_with_nothing_to_compare_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let damaged = copy_of_tiny(folder.path());
    std::fs::write(damaged.join("model.safetensors"), "no weights").unwrap();
    write(
        folder.path(),
        &SMALL.replace("[models.int8]\nmodel = \"built-in\"\ncompute = \"int8\"", "[models.int8]\nmodel = \"copy\""),
    );
    let output = study(folder.path(), &[]);
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    let said =
        "No differences between models: 2 of 4 runs are finished, and no two of them differ in their model alone";
    assert!(flat(&output).contains(said) && !stdout(&output).contains("Paired differences"), "{}", stdout(&output));
    let results = document(&study(folder.path(), &["--json", "-q"]));
    assert_eq!(results["comparisons"][0]["differences"], Value::Array(Vec::new()));
    // The page of the finished runs explains no differences either.
    let page = std::fs::read_to_string(folder.path().join("earnest-results/small.html")).unwrap();
    assert!(page.contains("plain on sums") && !page.contains("Differences are paired"));
    assert!(!page.contains("<section id=\"differences\">"));
}

#[test]
fn prompts_are_crossed_with_models_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let copy = copy_of_tiny(folder.path());
    edit_json(&copy.join("tokenizer_config.json"), |config| {
        config["chat_template"] = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}".into();
    });
    write(
        folder.path(),
        "[models.tiny]\nmodel = \"copy\"\n[tasks.sums]\nsuite = \"arithmetic-bench\"\noptions = { lengths = \"1..2\", per-length \
         = 1 }\nprompts = [\"raw\", \"chat\"]\n[generation]\nmax-tokens = 4\n[[compare]]\nbetween = \"prompts\"\nbaseline = \
         \"chat\"\n",
    );
    let output = study(folder.path(), &[]);
    let (out, err) = (stdout(&output), stderr(&output));
    assert_eq!(code(&output), 0, "{err}");
    assert!(out.contains("Paired differences between prompts"), "{out}");
    assert!(err.contains("tiny on sums, raw") && err.contains("tiny on sums, chat"), "{err}");
    assert_eq!(loads(&err), 1, "one model is loaded once for both prompts");
    let results = document(&study(folder.path(), &["--json", "-q"]));
    let [difference] = results["comparisons"][0]["differences"].as_array().unwrap().as_slice() else {
        panic!("{results}")
    };
    assert_eq!((&difference["baseline"]["prompt"], &difference["run"]["prompt"]), (&"chat".into(), &"raw".into()));
    // A model without a template has no chat prompt; its other prompt is asked all the same.
    edit_json(&copy.join("tokenizer_config.json"), |config| {
        config.as_object_mut().unwrap().remove("chat_template");
    });
    let output = study(folder.path(), &["--results", "other"]);
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert!(stderr(&output).contains("1 of 2 runs did not finish"), "{}", stderr(&output));
}

/// Standard output without its line breaks.
fn flat(output: &std::process::Output) -> String {
    stdout(output).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A study of a model with a chat template and one without.
fn mixed(folder: &Path, prompts: &str) {
    let text = "[models.chats]\nmodel = \"copy\"\n[models.plain]\nmodel = \"built-in\"\n[tasks.sums]\nsuite = \"arithmetic-bench\"\n\
                options = { tasks = \"add,sub\", lengths = \"1..3\", per-length = 2 }\n[generation]\nmax-tokens = 4\n[[compare]]\n";
    write(folder, &text.replace("[generation]", &format!("{prompts}\n[generation]")));
}

#[test]
fn all_models_are_asked_alike_unless_the_study_says_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let copy = copy_of_tiny(folder.path());
    edit_json(&copy.join("tokenizer_config.json"), |config| {
        config["chat_template"] = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}".into();
    });
    let forms = |results: &Value| -> Vec<String> {
        let form = |run: &Value| {
            let shown = run_in(folder.path(), &["runs", "show", run["run"].as_str().unwrap(), "--json"]);
            document(&shown)["manifest"]["settings"]["prompt_mode"].as_str().unwrap().to_owned()
        };
        results["runs"].as_array().unwrap().iter().map(form).collect()
    };
    mixed(folder.path(), "");
    let said = "all models are asked raw, because plain has no chat template";
    let planned = run_in(folder.path(), &["study", "study.toml", "--dry-run"]);
    assert!(flat(&planned).contains(said), "{}{}", stdout(&planned), stderr(&planned));
    let screen = study(folder.path(), &[]);
    assert!(flat(&screen).contains(said), "{}", stdout(&screen));
    let results = document(&study(folder.path(), &["--json", "-q"]));
    assert_eq!(forms(&results), ["raw", "raw"]);
    let both =
        |results: &Value| ["chats", "plain"].map(|model| name(results, model, "sums").as_str().unwrap().to_owned());
    let [chats, plain] = both(&results);
    let alike = document(&run_in(folder.path(), &["compare", &chats, &plain, "--json"]));
    assert!(alike[0].get("asked_differently").is_none(), "{alike}");

    mixed(folder.path(), "prompts = \"auto\"");
    let results = document(&study(folder.path(), &["--json", "-q"]));
    assert_eq!(forms(&results), ["chat", "raw"]);
    assert!(!results["notes"].to_string().contains("asked raw"), "{results}");
    // The verdict on two such runs says it, with the command for the one that was asked by chat, on whichever side it stands.
    let [chats, plain] = both(&results);
    for (runs, letters) in [([&chats, &plain], ["A", "B"]), ([&plain, &chats], ["B", "A"])] {
        let said = format!("asked differently, {} by its chat template and {} raw", letters[0], letters[1]);
        let command = "`earnest run arithmetic-bench --model copy --prompt raw`";
        let screen = run_in(folder.path(), &["compare", runs[0], runs[1]]);
        let text = flat(&screen);
        assert!(text.contains(&said) && text.contains(command), "{text}");
        let found = document(&run_in(folder.path(), &["compare", runs[0], runs[1], "--json"]));
        assert!(found[0]["asked_differently"].as_str().unwrap().contains(&said), "{found}");
        // Each has a scorer of its own by default; both are compared by `final`, whose numbers are those of the verdict.
        assert_eq!(found[0]["primary"], serde_json::json!([["final"], ["final"]]));
        let own = ["A", "B"].map(|letter| if letter == letters[0] { "final" } else { "boundary" });
        assert_eq!(found[0]["own_primary"], serde_json::json!([[own[0]], [own[1]]]));
        let by_final = found[0]["rules"].as_array().unwrap().iter().find(|rule| rule["name"] == "final").unwrap();
        for side in ["baseline", "run"] {
            let [one, other] = [&found[0]["overall"][side], &by_final[side]].map(|number| number.as_f64().unwrap());
            assert!((one - other).abs() < 1e-12, "{found}");
        }
        let by = format!("by default A is scored by {} and B by {}.", own[0], own[1]);
        assert!(text.contains("Compared by final, which both have;") && text.contains(&by), "{text}");
    }
    // So does the study, with the accuracies and differences of its runs.
    let scorers: Vec<&Value> = results["runs"].as_array().unwrap().iter().map(|run| &run["scorer"]).collect();
    assert_eq!(scorers, ["final", "final"]);
    assert!(results["notes"].to_string().contains("all are scored by final here"), "{results}");
    let found = document(&run_in(folder.path(), &["compare", &chats, &plain, "--json"]));
    let difference = &results["comparisons"][0]["differences"][0]["difference"];
    for (side, run) in [("baseline", 0), ("run", 1)] {
        let of_run = results["runs"][run]["accuracy"].as_f64().unwrap();
        for number in [&found[0]["overall"][side], &difference[side]] {
            assert!((number.as_f64().unwrap() - of_run).abs() < 1e-12, "{results}");
        }
    }
}

#[test]
fn an_endpoint_without_raw_prompts_leaves_each_model_its_own_form() {
    let folder = tempfile::tempdir().unwrap();
    mixed(folder.path(), "");
    let text = std::fs::read_to_string(folder.path().join("study.toml")).unwrap();
    let endpoint = "[models.chats]\nendpoint = \"http://127.0.0.1:1/v1\"\napi = \"chat\"\nmodel = \"m\"\nretries = 0\n";
    write(folder.path(), &text.replace("[models.chats]\nmodel = \"copy\"\n", endpoint));
    let planned = run_in(folder.path(), &["study", "study.toml", "--dry-run"]);
    let said = "plain is asked raw and chats by its chat template, because plain has none and the endpoint of chats takes no raw prompts";
    assert!(flat(&planned).contains(said), "{}{}", stdout(&planned), stderr(&planned));
}

#[test]
fn models_of_one_unusable_checkpoint_have_its_error_once_each() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken");
    std::fs::create_dir(&broken).unwrap();
    std::fs::write(broken.join("config.json"), "{").unwrap();
    let models: String = (1..=3)
        .map(|n| format!("[models.m{n}]\nmodel = \"broken\"\n[models.m{n}.generation]\nmax-tokens = {n}\n"))
        .collect();
    let good = "[models.good]\nmodel = \"built-in\"\n[models.other]\nmodel = \"earnest-abacus-1.4m\"\n\
                [models.other.generation]\nmax-tokens = 3\n";
    write(folder.path(), &format!("{models}{good}[tasks.t]\nsuite = \"nupa\"\nlimit = 2\n"));
    let output = study(folder.path(), &["--dry-run", "--json"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let estimate: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let problems: Vec<&Value> = estimate["runs"].as_array().unwrap().iter().map(|run| &run["problem"]).collect();
    assert_eq!(problems.len(), 5);
    assert!(problems[..3].iter().all(|problem| *problem == problems[0] && problem.is_string()), "{problems:?}");
    assert!(problems[3..].iter().all(|problem| problem.is_null()), "{problems:?}");
}
