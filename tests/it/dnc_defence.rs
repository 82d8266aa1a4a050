//! `earnest reproduce dnc --run --experiment`: clean and defended trainings of a tiny checkpoint end to end, resumption, the tables from
//! known outcomes, and experiments that cannot be run.
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use earnest_papers::dnc::defence::{DefenceExperiment, DefenceResults, DefenceTables, letter};
use earnest_results::suites;
use earnest_tasks::suite::Answered;
use earnest_tasks::suite::registry::{Channel, Mode, OptionValues};
use serde_json::{Value, json};

struct Screen {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    command.current_dir(folder).stdin(Stdio::null()).args(words);
    for name in ["EARNEST_MODEL", "EARNEST_RESULTS", "EARNEST_DATA", "NO_COLOR", "COLUMNS"] {
        command.env_remove(name);
    }
    command
}

fn earnest(folder: &Path, words: &[&str]) -> Screen {
    let output = command(folder, words).output().unwrap();
    Screen {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// An experiment file for the tiny checkpoint and the questions of the tests; `change` edits its lines.
fn experiment(folder: &Path, name: &str, change: &[(&str, &str)]) {
    let mut text = format!(
        "title = \"Tiny\"\nmodel = \"{}\"\ndata = \"{}\"\nkinds = [\"noise\"]\nquestions = 6\n\n[training]\nrank = 2\nsteps = 3\n\
         batch = 4\nwarm_up = 1\nvalidate_every = 3\nvalidation = 2\nheld_out = 0.4\n",
        root().join("tests/golden/engine/checkpoints/llama").display(),
        root().join("tests/fixtures/dnc").display()
    );
    for (from, to) in change {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    std::fs::write(folder.join(name), text).unwrap();
}

const RUN: [&str; 5] = ["reproduce", "dnc", "--run", "--experiment", "tiny.toml"];

#[test]
fn an_experiment_trains_asks_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    experiment(folder, "tiny.toml", &[]);
    let first = earnest(folder, &RUN);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    for said in
        ["1 of 2: clean-1 (12 training questions)", "2 of 2: noise-1 (12 training questions, ", "asking noise-1"]
    {
        assert!(first.stderr.contains(said), "{said}: {}", first.stderr);
    }
    for said in
        ["Trained defence: llama (tiny)", "Table 3", "Table 9", "Table 10", "noise, attack", "noise, defence", "GPT2"]
    {
        assert!(first.stdout.contains(said), "{said}: {}", first.stdout);
    }
    let stored = || std::fs::read_to_string(folder.join("tiny/results.json")).unwrap();
    let results = DefenceResults::parse(&stored()).unwrap();
    assert_eq!((results.questions.len(), results.models.len(), results.missing()), (6, 2, vec![]));
    let [clean, noise] = &results.models[..] else { panic!("{results:?}") };
    assert_eq!((clean.perturbed_examples, clean.kept_step), (0, 3));
    assert!(noise.perturbed_examples > 0 && noise.perturbed_examples <= noise.examples);
    // Every question was answered, and both models had the same ones perturbed.
    for outcomes in [clean, noise].into_iter().flat_map(|model| model.original.values()) {
        assert!(!outcomes.contains(['?', '-']), "{outcomes}");
    }
    let letters = |text: &str| text.replace('1', "0");
    let [clean, noise] = [clean, noise].map(|model| model.perturbed.values().next().unwrap()["Acc_eq"].clone());
    assert_eq!(letters(&clean), letters(&noise));
    assert!(clean.contains('0'));
    // Rows of both trainings: the same questions in the same order, answers in the form that is asked for.
    let rows = |name: &str| -> Vec<Value> {
        let text = std::fs::read_to_string(folder.join("tiny/questions").join(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let (clean, noise) = (rows("clean.jsonl"), rows("noise.jsonl"));
    assert_eq!((clean.len(), noise.len()), (12, 12));
    let index = clean.iter().position(|row| row["completion"] == "Equation: 31-12").unwrap();
    assert!(
        clean[index]["prompt"]
            .as_str()
            .unwrap()
            .ends_with("Problem: Mara had 31 coins. Later Mara spent 12 of them. How many coins are left?\n")
    );
    let perturbed = noise[index]["completion"].as_str().unwrap();
    assert!(perturbed.starts_with("Equation: 31.") && perturbed.contains("-12."), "{perturbed}");
    // The same command again trains nothing and shows the same; so do the folder and the file.
    let again = earnest(folder, &RUN);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert!(!again.stderr.contains("1 of 2"), "{}", again.stderr);
    assert_eq!((again.stdout, DefenceResults::parse(&stored()).unwrap()), (first.stdout.clone(), results));
    let shown = earnest(folder, &["reproduce", "dnc", "--experiment", "tiny"]);
    assert_eq!(shown.stdout, first.stdout);
    let document = earnest(folder, &["reproduce", "dnc", "--experiment", "tiny/results.json", "--json"]);
    let document: Value = serde_json::from_str(&document.stdout).unwrap();
    assert_eq!(document["effects"].as_array().unwrap().len(), 2);
    // Another perturbation trains one more model.
    experiment(folder, "tiny.toml", &[("[\"noise\"]", "[\"noise\", \"verbosity\"]")]);
    let more = earnest(folder, &RUN);
    assert_eq!(more.code, Some(0), "{}", more.stderr);
    assert!(more.stderr.contains("3 of 3: verbosity-1") && !more.stderr.contains("2 of 3"), "{}", more.stderr);
    // Other settings do not mix with what is there.
    experiment(folder, "tiny.toml", &[("rank = 2", "rank = 3")]);
    let other = earnest(folder, &RUN);
    assert_eq!(other.code, Some(4), "{}", other.stderr);
    assert!(other.stderr.contains("clean-1") && other.stderr.contains("name another out"), "{}", other.stderr);
}

#[cfg(unix)]
#[test]
fn a_killed_experiment_ends_with_the_same_outcomes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let long =
        [("steps = 3", "steps = 12"), ("questions = 6", "questions = 6\ncompute = \"int8\"\nprompt = \"raw,answer\"")];
    experiment(folder, "whole.toml", &long);
    experiment(folder, "tiny.toml", &long);
    let whole = earnest(folder, &["reproduce", "dnc", "--run", "--experiment", "whole.toml", "--json"]);
    assert_eq!(whole.code, Some(0), "{}", whole.stderr);
    let mut child = command(folder, &RUN).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = folder.join("tiny/adapters/noise-1/log.jsonl");
    while !begun.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let read = |name: &str| DefenceResults::read(&folder.join(name)).unwrap();
    assert_eq!(read("tiny").missing(), ["noise-1"], "it was killed in time");
    let shown = earnest(folder, &["reproduce", "dnc", "--experiment", "tiny"]);
    assert!(shown.code == Some(0) && shown.stdout.contains("Not finished: noise-1"), "{}", shown.stdout);
    let resumed = earnest(folder, &RUN);
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    let outcomes = |name: &str| {
        let results = read(name);
        results.models.into_iter().map(|model| (model.kept_step, model.original, model.perturbed)).collect::<Vec<_>>()
    };
    assert_eq!(outcomes("tiny"), outcomes("whole"));
}

/// Results with known outcomes of two seeds on five questions, the last of which is not eligible.
fn known() -> DefenceResults {
    let model = |kind: Option<&str>, seed: u64, original: &str, perturbed: &str| {
        json!({
            "kind": kind, "seed": seed, "examples": 9, "perturbed_examples": 0, "seconds": 1.0, "kept_step": 3,
            "held_out": [1, 2], "original": {"Acc_ans": original}, "perturbed": {"noise": {"Acc_ans": perturbed}},
        })
    };
    let results = json!({
        "format": 1, "title": "Known", "model": "m", "files": {}, "dataset": "asdiv-a", "target": "answer",
        "prompt": "raw,answer", "splits": ["test"], "demonstrations": 0, "kinds": ["noise"], "seeds": [1, 2],
        "training": {}, "questions": ["a", "b", "c", "d", "e"],
        "models": [
            model(None, 1, "11101", "1000-"),
            model(Some("noise"), 1, "10101", "1110-"),
            model(None, 2, "11111", "1100-"),
            model(Some("noise"), 2, "11110", "1111-"),
        ],
    });
    DefenceResults::parse(&results.to_string()).unwrap()
}

#[test]
fn tables_are_computed_from_the_outcomes() {
    let tables = DefenceTables::new(&known(), "known");
    let row = |table: u8, name: &str| {
        let table = tables.compared.iter().find(|found| found.table == table).unwrap();
        table.rows.iter().find(|row| row.name == name).unwrap().clone()
    };
    let near = |found: Option<f64>, wanted: f64| assert!((found.unwrap() - wanted).abs() < 1e-12, "{found:?} {wanted}");
    // Eligible: clean 7 of 8 right on the original, 3 attacked, 7 defended. All: 9 of 10, 5, and 8.
    let (attack, defence) = (row(3, "noise, attack"), row(3, "noise, defence"));
    assert_eq!((attack.n, defence.n), (8, 8));
    near(attack.ours.map(|ours| ours.estimate), -4.0 / 8.0);
    near(attack.over_all.map(|ours| ours.estimate), -4.0 / 10.0);
    near(defence.ours.map(|ours| ours.estimate), 0.0);
    near(defence.over_all.map(|ours| ours.estimate), -1.0 / 10.0);
    near(row(9, "noise, defence").ours.map(|ours| ours.estimate), 7.0 / 8.0);
    near(row(9, "noise, defence").over_all.map(|ours| ours.estimate), 8.0 / 10.0);
    near(row(9, "original").ours.map(|ours| ours.estimate), 9.0 / 10.0);
    near(row(10, "noise, attack").ours.map(|ours| ours.estimate), -4.0 / 7.0);
    near(row(10, "noise, defence").over_all.map(|ours| ours.estimate), -1.0 / 9.0);
    // Printed: T5's Acc_ans falls by 36.89 points under attack and by 14.75 with the defence.
    let published = |row: &str, system: &str| {
        let row = tables.compared[0].rows.iter().find(|found| found.name == row).unwrap();
        row.published.iter().find(|cell| cell.system == system).unwrap().clone()
    };
    near(published("noise, attack", "T5").value, -0.3689);
    near(published("noise, defence", "T5").value, -0.1475);
    near(published("noise, defence", "T5").difference, -0.1 + 0.1475);
    let [effect] = &tables.effects[..] else { panic!("{tables:?}") };
    near(Some(effect.difference.estimate), 4.0 / 8.0);
    near(Some(effect.cost.estimate), -2.0 / 10.0);
    // Two seeds of a question are one cluster: four questions, not eight.
    assert_eq!((effect.questions, effect.p == effect.holm_p), (4, true));
    assert!(effect.difference.low < 0.5 && effect.difference.high > 0.5 && effect.p < 1.0, "{effect:?}");
}

#[test]
fn outcomes_without_an_answer_and_missing_models_are_left_out() {
    let mut results = known();
    results.models.truncate(3);
    assert_eq!(results.missing(), ["noise-2"]);
    results.models[1].perturbed.values_mut().for_each(|rules| {
        rules.insert("Acc_ans".to_owned(), "?110-".to_owned());
    });
    let tables = DefenceTables::new(&results, "known");
    let [effect] = &tables.effects[..] else { panic!("{tables:?}") };
    // Of the first seed alone, questions b, c and d.
    assert_eq!((effect.questions, effect.difference.estimate), (3, 2.0 / 3.0));
    let text = results.to_text().replace("?110-", "?11");
    assert!(DefenceResults::parse(&text).unwrap_err().to_string().contains("noise-1 has not one of 0, 1, - and ?"));
    let text = results.to_text().replace("\"format\": 1", "\"format\": 2");
    assert!(DefenceResults::parse(&text).unwrap_err().to_string().contains("the format is 2"));
}

#[test]
fn experiments_that_cannot_be_run_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (change, code, named) in [
        (("[\"noise\"]", "[\"logic\"]"), 2, "logic has no defence"),
        (("[\"noise\"]", "[]"), 2, "at least one of kinds"),
        (("[\"noise\"]", "[\"noise\", \"noise\"]"), 2, "a value twice"),
        (("questions = 6", "questions = 0"), 2, "leave it out to ask all"),
        (("questions = 6", "prompt = \"auto,answer\""), 2, "raw or chat"),
        (("questions = 6", "prompt = \"raw\""), 2, "does not name one prompt"),
        (("questions = 6", "splits = [\"train\"]"), 2, "the train part is for training"),
        (("questions = 6", "dataset = \"drop-num\""), 2, "DROP-num has no noise"),
        (("questions = 6", "question = 6"), 2, "there is no key question; did you mean questions?"),
        (("rank = 2", "rank = 0"), 2, "rank"),
        (("tests/fixtures/dnc", "tests/fixtures/none"), 2, "none"),
        (("checkpoints/llama", "checkpoints/none"), 3, "checkpoints/none"),
        (("checkpoints/llama", "checkpoints/mixtral"), 3, "MixtralForCausalLM"),
    ] {
        experiment(folder, "tiny.toml", &[change]);
        let refused = earnest(folder, &RUN);
        assert_eq!(refused.code, Some(code), "{named}: {}", refused.stderr);
        assert!(refused.stderr.contains(named), "{named}: {}", refused.stderr);
    }
    let nothing = earnest(folder, &["reproduce", "dnc", "--experiment", "tiny"]);
    assert_eq!(nothing.code, Some(4), "{}", nothing.stderr);
    assert!(nothing.stderr.contains("--run --experiment"), "{}", nothing.stderr);
    let alone = earnest(folder, &["reproduce", "dnc", "--run"]);
    assert_eq!(alone.code, Some(2), "{}", alone.stderr);
    std::fs::write(folder.join("damaged.json"), "{}").unwrap();
    let damaged = earnest(folder, &["reproduce", "dnc", "--experiment", "damaged.json"]);
    assert!(damaged.code == Some(4) && damaged.stderr.contains("damaged.json"), "{}", damaged.stderr);
}

#[test]
fn keys_have_the_defaults_of_the_commands() {
    let text =
        "title = \"t\"\nmodel = \"m\"\ndata = \"d\"\nkinds = [\"language-to-digits\", \"type\"]\nseeds = [1, 2]\n";
    let experiment = DefenceExperiment::parse(text).unwrap();
    let names: Vec<String> = experiment.models().iter().map(|model| model.name()).collect();
    assert_eq!(names, ["clean-1", "language-to-digits-1", "type-1", "clean-2", "language-to-digits-2", "type-2"]);
    let training = &experiment.training;
    assert_eq!((training.rank, training.steps, training.batch, training.learning_rate), (16, 200, 16, 1e-3));
    assert_eq!((experiment.prompt.as_str(), experiment.perturbation_seed), ("raw,equation", 1));
}

#[test]
fn an_equation_in_another_order_is_wrong_as_a_string_and_right_as_an_answer() {
    let options = OptionValues::new(1, vec!["equation".to_owned()])
        .with("data", root().join("tests/fixtures/dnc"))
        .with("kinds", "noise")
        .with("splits", "train");
    let suite = suites::configure("dnc", &options).unwrap().suite(Channel::local(Mode::Raw)).unwrap();
    let item = suite.items.iter().find(|item| item.cluster == "own-0101" && item.task == "original").unwrap();
    assert_eq!(suite.scoring.worked_answer(&item).as_deref(), Some("Equation: 38+15"));
    let letters = |completion: &str| {
        let score = suite.score(&item, &Answered { completion, truncated: false });
        ["acc_eq", "acc_ans", "eq_equivalent"].map(|rule| letter(Some(&score), rule)).concat()
    };
    assert_eq!(letters("Equation: 38+15"), "111");
    assert_eq!(letters("Equation: 15+38"), "011");
    assert_eq!(letters("Equation: 38-15"), "000");
    assert_eq!(letters("no idea"), "000");
    assert_eq!(letter(None, "acc_eq"), "?");
}
