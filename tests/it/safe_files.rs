//! Files that a command may not touch: results, locks, models, its inputs, and anything that a stored name leads to.
use std::path::Path;
use std::process::Output;

use crate::program::*;
use earnest_results::store::FILE_NAME;

const SMALL: [&str; 7] = ["--lengths", "1..2", "--per-length", "1", "--max-tokens", "6", "--quiet"];

fn one_run() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let output = tiny_run(folder.path(), &SMALL);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let run = only_run(folder.path()).manifest.run;
    (folder, run)
}

fn refused(output: &Output, why: &str) {
    let said = stderr(output);
    assert!(code(output) == 2 && said.contains(why), "{} {said}", code(output));
}

/// All files below a folder with their content.
fn content(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => all.push((path.display().to_string(), std::fs::read(path).unwrap())),
            }
        }
    }
    all.sort();
    all
}

#[test]
fn no_output_replaces_results_models_or_inputs() {
    let (folder, run) = one_run();
    let at = folder.path();
    let run = run.as_str();
    std::fs::write(at.join("rows.csv"), "correct,model,item\n1,a,x\n0,a,y\n1,b,x\n0,b,z\n").unwrap();
    std::fs::write(at.join("questions.jsonl"), "{\"question\":\"Ann has 5 pens. How many?\",\"answer\":\"5\"}\n")
        .unwrap();
    std::fs::write(at.join("memory.toml"), "").unwrap();
    let model = copy_of_tiny(at);
    let weights = model.join("model.safetensors");
    let weights = weights.to_str().unwrap();
    let before = content(at);
    let results = format!("earnest-results/{FILE_NAME}");
    let lock = format!("earnest-results/locks/{run}.lock");
    for output in [&results, &lock, weights, "./copy/config.json"] {
        for words in [
            &["export", run, "-f", "csv", "-o"][..],
            &["export", run, "-f", "parquet", "-o"],
            &["report", run, "-o"],
            &["generate", "arithmetic-bench", "-o"],
            &["profile", "--events"],
            &["profile", "-o"],
            &["perturb", "questions.jsonl", "--kinds", "type", "-o"],
            &["study", "questions.jsonl", "-o"],
            &["train", "memory", "memory.toml", "--summary"],
            &["train", "experiment", "memory.toml", "--summary"],
            &["stats", "glmm", "rows.csv", "--formula", "correct ~ model + (1|item)", "--predictions"],
            &["bench", "engine", "--dump"],
        ] {
            refused(&run_in(at, &[words, &[output]].concat()), "and nothing may replace it");
        }
    }
    let read_and_written = [
        &["perturb", "questions.jsonl", "--kinds", "type", "-o", "./questions.jsonl"][..],
        &["study", "questions.jsonl", "--output=questions.jsonl"],
        &["stats", "glmm", "rows.csv", "--formula", "correct ~ model", "--predictions", "rows.csv"],
        &["train", "memory", "memory.toml", "--summary", "memory.toml"],
        &["report", run, "-o", "rows.csv", "--figures", "rows.csv"],
    ];
    for words in read_and_written {
        refused(&run_in(at, words), "would overwrite it");
    }
    assert_eq!(content(at), before, "nothing has changed");
    // A file that a task file names is an input too.
    let questions = std::fs::read(at.join("questions.jsonl")).unwrap();
    let task = "name = \"t\"\n[questions]\npath = \"questions.jsonl\"\nquestion = \"question\"\nanswer = \"answer\"\n";
    std::fs::write(at.join("t.toml"), task).unwrap();
    let study = "name = \"s\"\n[models.m]\nmodel = \"built-in\"\n[tasks.t]\nfile = \"t.toml\"\n";
    std::fs::write(at.join("s.toml"), study).unwrap();
    for output in ["questions.jsonl", "t.toml", "s.toml"] {
        refused(&run_in(at, &["study", "s.toml", "-o", output]), "would overwrite it");
    }
    assert_eq!(std::fs::read(at.join("questions.jsonl")).unwrap(), questions);
    assert_eq!(std::fs::read_to_string(at.join("t.toml")).unwrap(), task);
    // What is no such file is replaced as before, also where a format is called like it.
    for _ in 0..2 {
        let exported = run_in(at, &["export", run, "--format", "csv", "-o", "csv"]);
        assert_eq!(code(&exported), 0, "{}", stderr(&exported));
    }
    std::fs::write(at.join("old.csv"), "old").unwrap();
    let exported = run_in(at, &["export", run, "-f", "csv", "-o", "old.csv"]);
    assert!(code(&exported) == 0 && std::fs::read(at.join("old.csv")).unwrap().len() > 3, "{}", stderr(&exported));
}

#[test]
fn a_stored_name_never_leads_out_of_the_folder() {
    let (folder, run) = one_run();
    let at = folder.path();
    let outside = at.join("outside");
    std::fs::create_dir(&outside).unwrap();
    let names = [
        "../outside/x".to_owned(),
        outside.join("y").display().to_string(),
        ".hidden".into(),
        "a b".into(),
        "n".repeat(300),
        String::new(),
    ];
    for name in names {
        let copy = tempfile::tempdir_in(at).unwrap();
        let results = copy.path().join("r");
        std::fs::create_dir(&results).unwrap();
        let file = results.join(FILE_NAME);
        rusqlite::Connection::open(at.join("earnest-results").join(FILE_NAME))
            .unwrap()
            .execute("VACUUM INTO ?", [file.to_str().unwrap()])
            .unwrap();
        // A stranger can make seals that fit.
        let changed = "UPDATE runs SET name = ?1, manifest = json_set(manifest, '$.run', ?1)";
        rusqlite::Connection::open(&file).unwrap().execute(changed, [&name]).unwrap();
        reseal(&results);
        let results = results.to_str().unwrap();
        for words in [
            &[
                "run",
                "arithmetic-bench",
                "--model",
                tiny().to_str().unwrap(),
                "--results",
                results,
                "--lengths",
                "1..2",
                "--per-length",
                "1",
                "--max-tokens",
                "6",
            ][..],
            &["runs", "list", "--results", results],
            &["runs", "delete", &name, "--results", results, "--yes"],
            &["score", "--results", results, "--save", "--", &name],
        ] {
            let output = run_in(copy.path(), words);
            assert!(code(&output) != 0, "{words:?}: {}", stdout(&output));
        }
        let listed = run_in(copy.path(), &["runs", "list", "--results", results]);
        assert!(
            code(&listed) == 4 && stderr(&listed).contains("name") && stderr(&listed).len() < 1000,
            "{}",
            stderr(&listed)
        );
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0, "{name}");
        assert!(std::fs::read_dir(copy.path()).unwrap().all(|entry| entry.unwrap().file_name() == "r"), "{name}");
    }
    // The name in the column and that of the manifest are one.
    let file = at.join("earnest-results").join(FILE_NAME);
    rusqlite::Connection::open(&file).unwrap().execute("UPDATE runs SET name = 'other'", []).unwrap();
    reseal(&at.join("earnest-results"));
    let listed = run_in(at, &["runs", "list"]);
    assert!(code(&listed) == 4 && stderr(&listed).contains(&format!("it is of the run {run}")), "{}", stderr(&listed));
}

#[cfg(unix)]
#[test]
fn links_in_a_results_folder_are_not_followed() {
    let (folder, run) = one_run();
    let at = folder.path();
    std::fs::write(at.join("mine.txt"), "mine").unwrap();
    let page = at.join(format!("earnest-results/{run}.html"));
    std::fs::remove_file(&page).ok();
    std::os::unix::fs::symlink(at.join("mine.txt"), &page).unwrap();
    let again = tiny_run(at, &SMALL[..6]);
    assert_eq!(code(&again), 0, "{}", stderr(&again));
    assert_eq!(std::fs::read_to_string(at.join("mine.txt")).unwrap(), "mine");
    assert!(page.symlink_metadata().unwrap().is_file(), "{}", stderr(&again));
    let lock = at.join(format!("earnest-results/locks/{run}.lock"));
    std::fs::remove_file(&lock).unwrap();
    std::os::unix::fs::symlink(at.join("made"), &lock).unwrap();
    let locked = tiny_run(at, &SMALL);
    assert!(code(&locked) == 4 && stderr(&locked).contains("symbolic link"), "{}", stderr(&locked));
    assert!(!at.join("made").exists());
}

#[test]
fn a_folder_with_the_name_of_a_model_is_not_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::create_dir(at.join("earnest-abacus-1.4m")).unwrap();
    std::fs::write(at.join("nupa"), "").unwrap();
    let run = run_in(at, &["run", "nupa", "--limit", "20", "--quiet", "--json"]);
    let said = stderr(&run);
    assert!(code(&run) == 0 && said.contains("here is ./earnest-abacus-1.4m"), "{said}");
    let path = run_in(at, &["run", "nupa", "--limit", "20", "--model", "./earnest-abacus-1.4m"]);
    assert!(code(&path) == 3 && stderr(&path).contains("config.json"), "{}", stderr(&path));
    // A name of the list means the list's model, which is not in the cache here.
    std::fs::create_dir(at.join("gemma-2b")).unwrap();
    let cache = at.join("cache");
    let listed = earnest(at)
        .env("HF_HOME", &cache)
        .args(["run", "nupa", "--limit", "20", "--model", "gemma-2b"])
        .output()
        .unwrap();
    assert!(code(&listed) == 3 && stderr(&listed).contains("earnest models fetch gemma-2b"), "{}", stderr(&listed));
}

#[cfg(unix)]
#[test]
fn arguments_need_not_be_utf_8() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let bytes = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    for command in
        ["", "run", "runs", "samples", "compare", "export", "stats", "models", "train", "view", "perturb", "study"]
    {
        let words = [command].into_iter().filter(|word| !word.is_empty());
        let output = earnest(folder.path()).args(words).arg(bytes).output().unwrap();
        assert!((1..=4).contains(&code(&output)), "{command}: {} {}", code(&output), stderr(&output));
        assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{command}");
    }
    let option = earnest(folder.path()).args(["samples", "x", "--grep"]).arg(bytes).output().unwrap();
    assert_eq!(code(&option), 2);
}

#[test]
fn the_same_run_begun_twice_at_once_is_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let model = tiny();
    let begin = |quiet: &str| {
        let words = ["run", "arithmetic-bench", "--threads", "1", "--lengths", "1..6", "--per-length", "4", "--model"];
        earnest(folder.path()).args(words).arg(&model).arg(quiet).spawn().unwrap()
    };
    let mut both = [begin("--quiet"), begin("-q")];
    let ends: Vec<_> = both.iter_mut().map(|one| one.wait().unwrap().code()).collect();
    // The second one found the run of the first, at work or finished.
    assert!(ends.contains(&Some(0)) && ends.iter().all(|end| matches!(end, Some(0 | 4))), "{ends:?}");
    only_run(folder.path());
}

#[test]
fn a_log_imported_twice_at_once_is_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for log in 0..12 {
        let rows: String = (0..6).map(|row| format!("q{row},{log},{}\n", row % 2)).collect();
        std::fs::write(at.join(format!("log{log}.csv")), format!("question,completion,score\n{rows}")).unwrap();
    }
    let paths: Vec<String> = (0..12).map(|log| format!("log{log}.csv")).collect();
    let begin = || {
        let fixed =
            ["import", "--columns", "question=question,completion=completion,score=score", "--model-name", "m", "-q"];
        earnest(at)
            .args(fixed)
            .args(&paths)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    let all = [begin(), begin(), begin()];
    for one in all {
        let output = one.wait_with_output().unwrap();
        assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    }
    assert_eq!(store(at).runs().unwrap().len(), 12);
}

#[test]
fn a_training_replaces_no_files_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for name in ["config.json", "log.jsonl", "tokenizer.json"] {
        let out = at.join(name.replace('.', "-"));
        std::fs::create_dir(&out).unwrap();
        std::fs::write(out.join(name), "mine").unwrap();
        let words = [
            "train",
            "number-model",
            "--tasks",
            "add_Integer",
            "--lengths",
            "1",
            "--steps",
            "1",
            "--out",
            out.to_str().unwrap(),
        ];
        let output = run_in(at, &words);
        assert!(code(&output) == 4 && stderr(&output).contains("did not write"), "{}", stderr(&output));
        assert_eq!(content(&out).len(), 1, "{name}");
        assert_eq!(std::fs::read_to_string(out.join(name)).unwrap(), "mine");
    }
    // The file of an experiment in its own folder, by another name of it.
    let file = at.join("experiment.toml");
    let text = "title = \"t\"\nseeds = [1]\nquestions = 1\n[training]\ntask = \"length_Integer\"\nsize = \"1,32,64,2,1\"\nlengths = \"2\"\n\
        steps = 1\nbatch = 8\nvalidate_every = 1\nvalidation = 1\nwords = 64\nparts = 1\n[[grid]]\nname = \"one\"\n";
    std::fs::write(&file, text).unwrap();
    std::os::unix::fs::symlink(at, at.join("same")).unwrap();
    let output = run_in(at, &["train", "experiment", "experiment.toml", "--out", at.join("same").to_str().unwrap()]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}
