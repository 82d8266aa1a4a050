//! `earnest stats`, end to end: arguments in, text or JSON out.
use std::fs;

use serde_json::Value;

use crate::program::{code, golden_table, run_in, stderr, stdout};

/// Exit code and standard output, or standard error where nothing was printed.
fn stats(arguments: &[&str]) -> Result<(i32, String), String> {
    let folder = tempfile::tempdir().unwrap();
    let output = run_in(folder.path(), &[&["stats"], arguments].concat());
    if output.stdout.is_empty() { Err(stderr(&output)) } else { Ok((code(&output), stdout(&output))) }
}

fn golden(name: &str) -> String {
    golden_table("glmm", name)
}

fn file(folder: &tempfile::TempDir, text: &str) -> String {
    let path = folder.path().join("data.csv");
    fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

#[test]
fn a_model_is_printed_with_its_intervals() {
    let data = golden("01_typical.csv");
    let arguments =
        ["glmm", &data, "--response", "correct", "--fixed", "variant,gamma_c", "--group", "id", "--ci", "profile"];
    let (code, text) = stats(&arguments).unwrap();
    assert_eq!(code, 0);
    assert!(text.starts_with("logit P correct ~ variant + gamma_c + (1 | id)\nLaplace approximation"), "{text}");
    assert!(text.contains("5100 rows, ") && text.contains("id                 100  (Intercept)"), "{text}");
    let variant = text.lines().find(|line| line.starts_with("variant")).unwrap();
    for number in ["-1.0171", "0.3140", "-3.24", "0.001", "profile"] {
        assert!(variant.contains(number), "{variant}");
    }
    assert!(!text.contains("warning"), "{text}");
}

#[test]
fn json_has_the_same_numbers() {
    let data = golden("real_llama31_8b.csv");
    let (_, text) = stats(&[
        "glmm",
        &data,
        "--response",
        "correct",
        "--fixed",
        "variant",
        "--group",
        "id",
        "--nagq",
        "25",
        "--json",
    ])
    .unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    let variant = &value["fit"]["coefficients"][1];
    assert_eq!(variant["name"], "variant");
    assert!((variant["estimate"].as_f64().unwrap() + 0.208382609).abs() < 1e-6);
    assert!((variant["standard_error"].as_f64().unwrap() - 0.322213782).abs() < 1e-5);
    assert_eq!(value["intervals"][1]["method"], "wald");
    assert_eq!(value["fit"]["objective"]["converged"]["points"], 25);
}

#[test]
fn the_artefact_is_shown_on_request_and_named() {
    let data = golden("30_degenerate_both_seed1141.csv");
    let arguments = ["glmm", &data, "--response", "correct", "--fixed", "variant", "--group", "id"];
    let (_, honest) = stats(&arguments).unwrap();
    assert!(honest.contains("0.3248") && !honest.contains("degenerate"), "{honest}");
    let (_, artefact) = stats(&[&arguments[..], &["--objective", "lme4"]].concat()).unwrap();
    assert!(artefact.contains("0.0004") && artefact.contains("warning: degenerate standard errors"), "{artefact}");
}

#[test]
fn data_without_estimates_get_a_diagnosis_and_an_exit_code() {
    for (name, warning) in
        [("21_constant_response.csv", "every outcome is 1"), ("13_all_or_nothing.csv", "groups are all or nothing")]
    {
        let data = golden(name);
        let (code, text) =
            stats(&["glmm", &data, "--response", "correct", "--fixed", "variant", "--group", "id"]).unwrap();
        assert_eq!(code, 1, "{name}");
        assert!(text.contains(warning), "{name}: {text}");
    }
    let one = golden("22_one_template.csv");
    let error = stats(&["glmm", &one, "--response", "correct", "--fixed", "variant", "--group", "id"]).unwrap_err();
    assert!(error.contains("`id` is the same in every row"), "{error}");
    // A separated coefficient has a one-sided profile interval, the others their numbers.
    let data = golden("11_base_all_correct.csv");
    let (code, text) =
        stats(&["glmm", &data, "--response", "correct", "--fixed", "variant,gamma_c", "--group", "id"]).unwrap();
    assert_eq!(code, 0);
    assert!(
        text.contains("[-inf, ")
            && text.contains("separated: (Intercept), variant predict some")
            && text.contains("-0.1911"),
        "{text}"
    );
}

/// A fit whose effects all run away has no other number either, in both spellings, and what cannot be made of it is said beside it.
#[test]
fn a_separated_fit_keeps_no_number_and_is_not_lost() {
    let data = golden("11_base_all_correct.csv");
    for model in [
        &["--response", "correct", "--fixed", "variant", "--group", "id"][..],
        &["--formula", "correct ~ variant + (1|id)"],
    ] {
        let asked = [&["glmm", data.as_str()], model, &["--drop", "all", "--contrast", "variant=1"]].concat();
        let (code, text) = stats(&asked).unwrap();
        assert_eq!(code, 1, "{text}");
        assert!(text.contains("no likelihood-ratio tests: ") && text.contains("no contrasts: "), "{text}");
        assert!(
            text.contains("variant: the lower end is infinite: separation") && text.contains("penalised fit"),
            "{text}"
        );
        let (_, json) = stats(&[&asked[..], &["--json"]].concat()).unwrap();
        let report: Value = serde_json::from_str(&json).unwrap();
        for name in ["random_sd", "random_sd_error", "minus_two_log_likelihood"] {
            assert_eq!(report["fit"][name], Value::Null, "{name}");
        }
        assert!(report["variance_test"].is_null() && report["intervals"][1]["high"].is_number(), "{report}");
    }
}

#[test]
fn bad_files_get_errors_that_name_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let glmm = |text: &str| {
        let data = file(&folder, text);
        stats(&["glmm", &data, "--response", "correct", "--fixed", "variant", "--group", "id"]).unwrap_err()
    };
    assert!(glmm("id,variant\n1,0\n").contains("no column `correct`; its columns are: id, variant"));
    assert!(glmm("id,variant,correct\n1,0,1\n1,1,2\n").contains("line 3: column `correct` is `2`, expected 0 or 1"));
    assert!(
        glmm("id,variant,correct\n1,0,1\n1,x,1\n")
            .contains("line 3: column `variant` is `x`, expected a finite number")
    );
    assert!(glmm("id,variant,correct\n1,x,1\n1,0,1\n").contains("line 3: column `variant` is `0`, expected a label"));
    assert!(glmm("id,variant,correct\n1,x,1\n2,x,0\n").contains("column `variant` is x in every row"));
    assert!(glmm("id;variant;correct\n1;0;1\n").contains("separated by semicolons, expected commas"));
    assert!(glmm("").contains("is empty"));
    assert!(glmm("id,variant,correct\n").contains("no rows to fit"));
    assert!(glmm("id,variant,correct\n1,,1\n").contains("column `variant`"));
    assert!(glmm("id,variant,correct\n1,3,1\n2,3,0\n").contains("column `variant` is 3 in every row"));
    let even = golden("14_tiny_5x4.csv");
    let error = stats(&["glmm", &even, "--response", "correct", "--group", "id", "--nagq", "4"]).unwrap_err();
    assert!(error.contains("expected an odd number from 1"), "{error}");
    let error = stats(&["glmm", "/no/such.csv", "--response", "correct", "--group", "id"]).unwrap_err();
    assert!(error.contains("cannot open /no/such.csv"), "{error}");
}

#[test]
fn labels_among_the_fixed_effects_are_compared_with_a_reference() {
    let folder = tempfile::tempdir().unwrap();
    // The golden set, with words for 0 and 1 and a third kind of row that is drawn from the first.
    let text = fs::read_to_string(golden("01_typical.csv")).unwrap();
    let mut words = String::from("id,kind,size,correct\n");
    for (index, line) in text.lines().skip(1).enumerate() {
        let fields: Vec<&str> = line.split(',').collect();
        let kind = if fields[1] == "0" { "original" } else { "variant" };
        words.push_str(&format!("{},{kind},{},{}\n", fields[0], (index / 51 + index) % 3, fields[3]));
    }
    let data = file(&folder, &words);
    let model = ["glmm", &data, "--response", "correct", "--group", "id", "--fixed"];
    let (_, text) = stats(&[&model[..], &["kind"]].concat()).unwrap();
    assert!(text.contains("kind: reference level original"), "{text}");
    let line = text.lines().find(|line| line.starts_with("kindvariant")).unwrap();
    assert!(line.contains("-1.1701") && line.contains("0.3050"), "{line}");
    let (_, text) = stats(&[&model[..], &["kind", "--reference", "kind=variant"]].concat()).unwrap();
    let line = text.lines().find(|line| line.starts_with("kindoriginal")).unwrap();
    assert!(line.contains(" 1.1701") && line.contains("0.3050"), "{line}");
    let (_, text) =
        stats(&[&model[..], &["kind,size", "--factor", "size", "--reference", "size=1", "--json"]].concat()).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    let names: Vec<&str> =
        value["fit"]["coefficients"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["(Intercept)", "kindvariant", "size0", "size2"]);
    assert_eq!(value["labels"][1]["reference"], "1");
    let (_, text) = stats(&[&model[..], &["kind", "--where", "size=2"]].concat()).unwrap();
    assert!(text.contains("1700 rows, "), "{text}");

    let error = |more: &[&str]| stats(&[&model[..], more].concat()).unwrap_err();
    assert!(error(&["kind", "--reference", "kind=x"]).contains("no level `x`; its levels are: original, variant"));
    assert!(error(&["size", "--reference", "size=1"]).contains("holds numbers, which have no reference level"));
    assert!(error(&["kind", "--reference", "size=1"]).contains("`size`, which is not among the fixed effects"));
    assert!(error(&["kind", "--reference", "kind"]).contains("is not COLUMN=VALUE"));
    assert!(error(&["kind,kind"]).contains("names `kind` twice"));
    assert!(error(&["id"]).contains("`id` is the group"));
    assert!(error(&["correct"]).contains("`correct` is the response"));
    assert!(error(&["kind", "--where", "size=9"]).contains("no row has size=9"));
    assert!(error(&["kind", "--level", "2"]).contains("--level is 2"));
    assert!(error(&["kind", "--bootstrap", "0"]).contains("--bootstrap 0"));
}

/// Runs the program itself: stored runs are in a folder.
fn earnest(folder: &std::path::Path, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_earnest"));
    command.current_dir(folder).stdin(std::process::Stdio::null()).args(words);
    for name in ["EARNEST_MODEL", "EARNEST_RESULTS", "EARNEST_GSM_DATA"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Two stored runs of twelve templates with six variants each, answered by a pattern. The second one's answers to variants
/// are wrong more often, and every fourth right answer continues with another question: not strictly right.
fn stored(at: &std::path::Path) {
    fs::create_dir(at.join("data")).unwrap();
    let generate = "generate gsm-symbolic --per-template 6 --only 0-11 -o data/GSM_symbolic.jsonl";
    assert_eq!(earnest(at, &generate.split(' ').collect::<Vec<_>>()).0, Some(0));
    let rows: Vec<Value> = fs::read_to_string(at.join("data/GSM_symbolic.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let answer = |text: &Value| text.as_str().unwrap().rsplit("#### ").next().unwrap().to_owned();
    for (name, hard) in [("first", 3), ("second", 6)] {
        let mut lines = String::new();
        let mut add = |item: String, right: &str, level: u64| {
            let die = ((level * 2_654_435_761) >> 7) % 11;
            let said = if die < hard { "1234.5" } else { right };
            let rest = if die.is_multiple_of(4) { "\n\nQ: Another question?" } else { "" };
            let line = serde_json::json!({ "item": item, "completion": format!("The final answer is {said}.{rest}") });
            lines.push_str(&format!("{line}\n"));
        };
        for row in &rows {
            let (id, instance) = (row["id"].as_u64().unwrap(), row["instance"].as_u64().unwrap());
            add(format!("gsm/main/{id}/{instance}"), &answer(&row["answer"]), 31 * id + instance);
            if instance == 0 {
                add(format!("gsm/base/{id}/-1"), &answer(&row["original_answer"]), 7 * id + 1);
            }
        }
        fs::write(at.join("completions.jsonl"), lines).unwrap();
        let import = ["import", "gsm-symbolic", "--data", "data", "--prompt", "gsm", "--name", name];
        let (code, _, error) = earnest(at, &[&import[..], &["--completions", "completions.jsonl"]].concat());
        assert_eq!(code, Some(0), "{error}");
    }
}

#[test]
fn stored_runs_are_analysed_like_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    stored(at);
    let json = |words: &[&str]| -> Value {
        let (_, text, error) = earnest(at, &[&["stats"], words, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{words:?}: {text}{error}"))
    };
    let from_run = json(&["glmm", "--run", "first", "--fixed", "variant,gamma"]);
    assert_eq!(from_run["response"], "correct");
    assert_eq!(from_run["group"], "cluster");
    // The same rows as an exported CSV file give the same numbers; the default model of few clusters has the t distribution.
    let (code, _, error) = earnest(at, &["export", "first", "--format", "csv", "-o", "first.csv"]);
    assert_eq!(code, Some(0), "{error}");
    let file = ["glmm", "first.csv", "--response", "correct", "--group", "cluster"];
    let from_file = json(&[&file[..], &["--fixed", "covariate_variant,covariate_gamma"]].concat());
    for index in 0..3 {
        let of = |report: &Value, field: &str| report["fit"]["coefficients"][index][field].as_f64().unwrap();
        assert_eq!(of(&from_run, "estimate"), of(&from_file, "estimate"), "{index}");
        assert_eq!(of(&from_run, "standard_error"), of(&from_file, "standard_error"), "{index}");
        let freedom = from_run["fit"]["robust"]["degrees_of_freedom"].as_f64().unwrap();
        let p = earnest_stats::distribution::student_two_sided(of(&from_run, "z"), freedom);
        assert!((of(&from_run, "p") - p).abs() < 1e-12 && p > of(&from_file, "p"), "{index}: {p}");
    }
    assert_eq!(from_run["fit"]["rows"], from_file["fit"]["rows"]);
    let strict = json(&["glmm", "--run", "first", "--response", "strict", "--fixed", "variant"]);
    assert_ne!(strict["fit"]["coefficients"][0]["estimate"], from_run["fit"]["coefficients"][0]["estimate"]);
    let both = json(&["glmm", "--run", "first,second", "--fixed", "model,variant", "--group", "template"]);
    assert_eq!(both["fit"]["rows"], 168);
    assert_eq!(both["labels"][0]["reference"], "first");
    assert!(both["fit"]["coefficients"][1]["estimate"].as_f64().unwrap() < 0.0, "{both}");
    let some = json(&["glmm", "--run", "first,second", "--fixed", "model", "--where", "set=main"]);
    assert_eq!(some["fit"]["rows"], 144);

    let paired = json(&["compare", "--run", "first,second"]);
    assert_eq!(paired["difference"]["observations"], 84);
    assert!(paired["difference"]["mean"].as_f64().unwrap() < 0.0);
    let rules = json(&["compare", "--run", "first", "--first", "study", "--second", "study_strict"]);
    assert!(rules["difference"]["mean"].as_f64().unwrap() < 0.0, "{rules}");
    let numbers = json(&["ks", "--run", "first", "--value", "gamma", "--by", "variant"]);
    assert!(numbers["test"]["statistic"].as_f64().unwrap() > 0.0);
    let family = json(&["holm", "--run", "first,second"]);
    assert_eq!(family["family"].as_array().unwrap().len(), 2);
    assert!(family["family"][0]["holm"].as_f64() >= family["family"][0]["p"].as_f64());

    let refused = |words: &[&str], says: &[&str]| {
        let (code, _, error) = earnest(at, &[&["stats"], words].concat());
        assert_eq!(code, Some(2), "{words:?}: {error}");
        for text in says {
            assert!(error.contains(text), "{words:?}: {error}");
        }
    };
    refused(&["glmm", "--run", "third"], &["third"]);
    refused(&["glmm", "--run", "first", "--fixed", "size"], &["no column `size`", "gamma", "strict"]);
    refused(&["glmm", "--run", "first,first"], &["names", "twice"]);
    // A part of a name is enough to name a run, so this is one run twice.
    refused(&["holm", "--run", "first,firs"], &["names", "twice"]);
    refused(&["glmm", "first.csv", "--run", "first"], &["cannot be used with"]);
    refused(&["glmm"], &["<FILE>"]);
    refused(&["compare", "--run", "first"], &["names 1 run; name two"]);
    refused(&["compare", "--run", "first,second", "--first", "study"], &["--second"]);
    refused(
        &["glmm", "--run", "first", "--response", "task"],
        &["item gsm/", "column `task` is `gsm`, expected 0 or 1"],
    );
}

#[test]
fn missing_values_are_dropped_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = fs::read_to_string(golden("14_tiny_5x4.csv")).unwrap();
    text.push_str("9,1,NA,1\n9,1,0.5,\n");
    let data = file(&folder, &text);
    let (_, text) =
        stats(&["glmm", &data, "--response", "correct", "--fixed", "variant,gamma_c", "--group", "id"]).unwrap();
    assert!(
        text.contains("; 2 rows dropped with missing values (correct 1, gamma_c 1)")
            && text.starts_with("logit P correct"),
        "{text}"
    );
}

#[test]
fn a_column_without_values_is_named_by_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let data = file(&folder, "a,b,none,label,x,y\n1,0,NA,s,1,\n0,1,,t,,2\n1,1,null,s,3,\n0,0,NaN,t,,4\n");
    let commands: [&[&str]; 9] = [
        &["glmm", &data, "--formula", "a ~ b + none + (1|label)"],
        &["glmm", &data, "--formula", "a ~ b + (1|none)"],
        &["glmm", &data, "--formula", "none ~ b + (1|label)"],
        &["glmm", &data, "--response", "a", "--fixed", "b,none", "--group", "label"],
        &["compare", &data, "--first", "a", "--second", "b", "--group", "none"],
        &["compare", &data, "--first", "a", "--second", "none", "--group", "label"],
        &["ks", &data, "--columns", "x,none"],
        &["ks", &data, "--value", "none", "--by", "label"],
        &["correlate", &data, "--columns", "none,x"],
    ];
    for command in commands {
        let error = stats(command).unwrap_err();
        assert!(error.contains("column `none`") && error.contains("no value in 4 rows"), "{command:?}: {error}");
    }
    let error = stats(&["holm", "--file", &data, "--p", "none"]).unwrap_err();
    assert!(error.contains("column `none`"), "{error}");
    // Neither column is empty, and no row has both.
    for command in [
        &["correlate", &data, "--columns", "x,y"][..],
        &["glmm", &data, "--formula", "a ~ x + y + (1|label)"],
        &["glmm", &data, "--response", "a", "--fixed", "x,y", "--group", "label"],
    ] {
        let error = stats(command).unwrap_err();
        assert!(error.contains("`x` lacks 2, `y` lacks 2 of 4 rows"), "{command:?}: {error}");
    }
}

#[test]
fn a_row_without_a_cluster_label_is_its_own_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let data = file(&folder, "one,two,t\n1,0,a\n1,1,a\n0,0,b\n1,0,b\n0,1,\n1,1,NA\n0,1,N/A\n,1,b\n");
    let command = ["compare", &data, "--first", "one", "--second", "two", "--group", "t"];
    let (_, text) = stats(&command).unwrap();
    assert!(text.contains("7 pairs in 5 clusters of `t` (1 row dropped)"), "{text}");
    assert!(text.contains("warning: 3 rows have no `t`; each is a cluster of its own"), "{text}");
    let (_, text) = stats(&[&command[..], &["--json"]].concat()).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&value["difference"]["clusters"], &value["rows_dropped"]), (&5.into(), &1.into()));
    assert_eq!(value["notes"][0], "3 rows have no `t`; each is a cluster of its own");
}

#[test]
fn a_column_that_varies_only_in_rows_left_out_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let data = file(&folder, "a,b,x,t\n1,,1,s\n0,NA,2,s\n1,1,0,s\n0,2,0,t\n1,3,0,t\n0,4,0,t\n");
    for command in [
        &["glmm", &data, "--formula", "a ~ x + b + (1|t)"][..],
        &["glmm", &data, "--response", "a", "--fixed", "x,b", "--group", "t"],
    ] {
        let error = stats(command).unwrap_err();
        assert!(error.contains("`x`") && error.contains("2 of 6 rows were left out: `b` lacks 2"), "{error}");
    }
}

#[test]
fn the_small_tests_answer() {
    let (_, text) = stats(&["holm", "0.01", "0.04", "0.03"]).unwrap();
    assert_eq!(
        text.lines().skip(1).collect::<Vec<_>>(),
        [
            "1  0.0100  0.0300         yes  0.0300         yes",
            "2  0.0400  0.0600          no  0.0400         yes",
            "3  0.0300  0.0600          no  0.0400         yes",
            "adjusted for 3 tests by Holm and by Benjamini and Hochberg (BH)",
        ]
    );
    let (_, text) = stats(&["holm", "0.01", "0.04", "0.03", "--json"]).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&value["family_size"], &value["family"][1]["family_size"]), (&3.into(), &3.into()));
    let second = &value["family"][1];
    assert_eq!((&second["significant"], &second["significant_benjamini_hochberg"]), (&false.into(), &true.into()));
    near(&second["benjamini_hochberg"], 0.04, 1e-15);
    assert!(stats(&["holm", "1.5"]).unwrap_err().contains("p value 1.5 at position 1"));

    let folder = tempfile::tempdir().unwrap();
    let data = file(&folder, "a,b,label,p\n1,4,x,0.01\n2,5,y,0.2\n3,6,x,0.03\n,7,y,1\n");
    let (_, text) = stats(&["ks", &data, "--columns", "a,b"]).unwrap();
    assert_eq!(
        text,
        "a (n 3) against b (n 4)\nD 1.000000 at 3, p 5.714286e-2 (two-sided, exact)\nmissing values dropped: a 1\n"
    );
    let (_, text) = stats(&["ks", &data, "--value", "b", "--by", "label", "--json"]).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["test"]["statistic"], 0.5);
    assert!(stats(&["ks", &data, "--columns", "a"]).unwrap_err().contains("expected two"));
    assert!(stats(&["ks", &data, "--value", "b", "--by", "p"]).unwrap_err().contains("4 different labels"));
    let (_, text) = stats(&["holm", "--file", &data, "--p", "p", "--label", "label"]).unwrap();
    assert!(text.contains("x  0.0100  0.0400"), "{text}");

    let data = file(&folder, "one,two,id\n1,0,a\n1,1,a\n0,0,b\n1,0,b\n0,1,c\n1,1,c\n");
    let (_, text) = stats(&["compare", &data, "--first", "one", "--second", "two", "--group", "id"]).unwrap();
    assert!(text.starts_with("two minus one: -0.1667") && text.contains("6 pairs in 3 clusters"), "{text}");
    assert!(text.contains("only one 2, only two 1"), "{text}");
    assert!(!text.contains("NaN"), "{text}");

    let (_, text) = stats(&["power", "paired", "--effect", "0.05", "--discordance", "0.2"]).unwrap();
    assert!(text.starts_with("626 questions detect an accuracy difference of 0.0500"), "{text}");
    let (_, text) =
        stats(&["power", "clustered", "--clusters", "100", "--accuracy", "0.5", "--intracluster", "0.6", "--json"])
            .unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert!((value["effect"].as_f64().unwrap() - 0.0904).abs() < 2e-4, "{text}");
    assert!(stats(&["power", "paired", "--discordance", "0.2"]).is_err());
    let (_, fall) = stats(&["power", "paired", "--effect", "-0.05", "--discordance", "0.2"]).unwrap();
    assert!(fall.starts_with("626 questions detect an accuracy difference of -0.0500"), "{fall}");
    // Four clusters of 157 have three degrees of freedom, so they detect less than 626 single questions.
    let (_, few) =
        stats(&["power", "paired", "--items", "628", "--discordance", "0.2", "--cluster-size", "157", "--json"])
            .unwrap();
    let few: Value = serde_json::from_str(&few).unwrap();
    assert!(few["effect"].as_f64().unwrap() > 0.07, "{few}");
    assert!(stats(&["power", "paired", "--items", "10.5", "--discordance", "0.2"]).unwrap_err().contains("10.5"));
}

// Numbers as in crates/stats/src/power/clustered.rs.
#[test]
fn power_has_a_direction() {
    let study = ["power", "clustered", "--accuracy", "0.02", "--intracluster", "0.1", "--second-size", "10"];
    let power = |words: &[&str]| stats(&[&study, words].concat());
    let json = |words: &[&str]| -> (i32, Value) {
        let (code, text) = power(&[words, &["--json"]].concat()).unwrap();
        (code, serde_json::from_str(&text).unwrap())
    };
    let none = "no drop from 0.02 is detected, not even one to 0, which needs 387 templates";
    let (code, text) = power(&["--clusters", "100"]).unwrap();
    assert_eq!(
        (code, text.as_str()),
        (
            0,
            "100 templates detect a rise in accuracy of 0.0439 (4.39 percentage points) with power 0.8 at level 0.05\n\
             No drop from 0.02 is detected, not even one to 0, which needs 387 templates\n\
             This is the power of the t test over templates. With 2 right originals, as expected, compare judges by an exact test, which finds a drop \
             more often than this says and a rise less often (docs/statistics.md)\n"
        )
    );
    let (_, found) = json(&["--clusters", "100"]);
    assert_eq!((&found["direction"], &found["directions"][0]["reason"]), (&"rise".into(), &none.into()));
    assert_eq!((&found["directions"][0]["effect"], &found["reason"]), (&Value::Null, &Value::Null));
    near(&found["effect"], 0.043_946, 2e-6);
    // Asked about drops alone, there is no number.
    let (code, found) = json(&["--clusters", "100", "--direction", "drop"]);
    assert_eq!((code, &found["effect"], &found["size"]), (1, &Value::Null, &100.0.into()));
    assert_eq!((&found["reason"], &found["direction"]), (&none.into(), &"drop".into()));
    let (_, text) = power(&["--clusters", "100", "--direction", "drop"]).unwrap();
    assert!(
        text.starts_with("100 templates detect no drop in accuracy with power 0.8 at level 0.05\nNo drop"),
        "{text}"
    );
    // Both directions have numbers, or one alone has room.
    let (_, text) = power(&["--clusters", "600"]).unwrap();
    let beside = "A drop from 0.02 is detected if it is 0.0156 (1.56 percentage points), a rise if it is 0.0166 (1.66";
    assert!(text.contains("an accuracy difference of 0.0166") && text.contains(beside), "{text}");
    let (_, text) = power(&["--effect", "0.02"]).unwrap();
    assert!(text.starts_with("423 templates") && text.contains("A drop from 0.02 needs 387 templates, a rise 423\n"));
    let (_, text) = power(&["--effect", "0.05"]).unwrap();
    assert!(text.contains("detect a rise in accuracy of 0.0500"), "{text}");
    assert!(text.contains("A drop of 0.05 is impossible: no drop from an accuracy of 0.02 exceeds 0.02\n"), "{text}");
    // Wrong answers are the rare ones; where both kinds are many, the t test judges.
    let high = ["power", "clustered", "--clusters", "200", "--accuracy", "0.97", "--intracluster", "0.1"];
    let (_, text) = stats(&high).unwrap();
    assert!(text.contains("With 6 wrong originals") && text.contains("finds a rise more often"), "{text}");
    let (_, text) = stats(&[&high[..5], &["0.5"], &high[6..]].concat()).unwrap();
    assert!(!text.contains("exact test"), "{text}");
    let (_, found) = json(&["--effect", "-0.01"]);
    assert_eq!(
        (&found["size"], &found["effect"], &found["direction"]),
        (&1470.0.into(), &(-0.01).into(), &"drop".into())
    );
    assert!(power(&["--effect", "-0.05"]).unwrap_err().contains("a drop of 0.05 is impossible"));
    assert!(power(&["--effect", "-0.01", "--direction", "rise"]).unwrap_err().contains("is a drop, and --direction"));

    let paired = ["power", "paired", "--discordance", "0.2", "--accuracy", "0.02", "--effect", "0.05"];
    let (_, text) = stats(&paired).unwrap();
    assert_eq!(
        text,
        "626 questions detect a rise in accuracy of 0.0500 (5.00 percentage points) with power 0.8 at level 0.05\n\
         No drop from 0.02 is possible where one alone is right on 0.2 of the questions\n"
    );
    assert!(stats(&[&paired[..], &["--direction", "drop"]].concat()).unwrap_err().contains("no drop from 0.02"));
    let few = ["power", "paired", "--discordance", "0.2", "--items", "10", "--json"];
    let (code, text) = stats(&few).unwrap();
    let found: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &found["effect"], found["reason"].is_string()), (1, &Value::Null, true), "{text}");
}

#[test]
fn wrong_rows_are_named_by_their_line_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    for text in [
        "a,b,g\n1,0,x\n\n\n7,1,z\n",
        "a,b,g\r\n1,0,x\r\n0,1,y\r\n0,1,y\r\n7,1,z\r\n",
        "a,b,g\n1,0,x\n0,1,\"y\ny\"\n7,1,z",
    ] {
        let data = file(&folder, text);
        let error = stats(&["glmm", &data, "--response", "a", "--fixed", "b", "--group", "g"]).unwrap_err();
        assert!(error.contains("line 5: column `a` is `7`"), "{text:?}: {error}");
    }
}

#[test]
fn what_cannot_be_computed_is_refused_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let data = file(&folder, "a,b,g\n1,0,x\n0,1e308,x\n1,0,y\n0,1e308,y\n");
    let model = ["glmm", &data, "--response", "a", "--group", "g"];
    let error = stats(&[&model[..], &["--fixed", "b"]].concat()).unwrap_err();
    assert!(error.contains("column `b` holds 1e308"), "{error}");
    let typical = golden("01_typical.csv");
    let bootstrap = ["--response", "correct", "--fixed", "variant", "--group", "id", "--bootstrap", "100000000000"];
    let error = stats(&[&["glmm", typical.as_str()], &bootstrap[..]].concat()).unwrap_err();
    assert!(error.contains("100000000000 resamples, expected at most"), "{error}");
    let two = file(&folder, "one,two\n1,2\n");
    let error = stats(&["ks", &two, "--columns", "one,two", "--method", "asymptotic"]).unwrap_err();
    assert!(error.contains("1 and 1 values are too few"), "{error}");
}

/// 20,000 groups of five: sums over so many groups round more than a fixed bound on the gradient allows.
#[test]
fn many_small_groups_are_not_called_unconverged() {
    let folder = tempfile::tempdir().unwrap();
    for seed in [1_u64, 2, 3] {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut text = String::from("y,x,g\n");
        for group in 0..20_000 {
            let level: f64 = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
            for row in 0..5 {
                let x = row % 2;
                let odds = 0.3 + level - 0.5 * f64::from(x);
                let y = u8::from(uniform() < 1.0 / (1.0 + (-odds).exp()));
                text.push_str(&format!("{y},{x},{group}\n"));
            }
        }
        let data = file(&folder, &text);
        let words =
            ["glmm", &data, "--response", "y", "--fixed", "x", "--group", "g", "--cross-check", "never", "--json"];
        let (_, text) = stats(&words).unwrap();
        let report: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(report["fit"]["diagnoses"].as_array().unwrap().len(), 0, "{}", report["fit"]["diagnoses"]);
        let slope = &report["fit"]["coefficients"][1];
        let (estimate, error) = (slope["estimate"].as_f64().unwrap(), slope["standard_error"].as_f64().unwrap());
        assert!((estimate + 0.5).abs() < 4.0 * error, "{estimate} {error}");
    }
}

/// The interval of every parameter of `correct ~ variant + gamma_c + (1 | id)` on a golden set, or the reason that there is none.
fn profiles(name: &str, more: &[&str]) -> (Value, String) {
    let data = golden(name);
    let fixed =
        ["glmm", &data, "--response", "correct", "--fixed", "variant,gamma_c", "--group", "id", "--ci", "profile"];
    let (_, text) = stats(&[&fixed[..], more].concat()).unwrap();
    let (_, json) = stats(&[&fixed[..], more, &["--json"]].concat()).unwrap();
    (serde_json::from_str(&json).unwrap(), text)
}

fn near(found: &Value, expected: f64, tolerance: f64) {
    let found = found.as_f64().unwrap_or(f64::NAN);
    assert!((found - expected).abs() < tolerance, "{found} instead of {expected}");
}

#[test]
fn separated_data_keep_every_profile_interval_that_exists() {
    // Base all right: the 5,000 rows of variants alone determine gamma_c and the random SD. The ends are those of an
    // independent Laplace profile of these rows (BFGS and Nelder-Mead of scipy).
    let (json, text) = profiles("11_base_all_correct.csv", &[]);
    assert_eq!(json["no_interval"].as_array().unwrap().len(), 0, "{text}");
    let [intercept, variant, gamma] = [0, 1, 2].map(|index| &json["intervals"][index]);
    near(&gamma["low"], -0.332177, 1e-4);
    near(&gamma["high"], -0.050635, 1e-4);
    near(&json["random_sd_interval"]["low"], 2.228364, 1e-4);
    near(&json["random_sd_interval"]["high"], 3.129796, 1e-4);
    assert!(gamma["low_open"].is_null() && gamma["high_open"].is_null());
    for (separated, finite, infinite, reason) in
        [(intercept, "low", "high", "high_open"), (variant, "high", "low", "low_open")]
    {
        assert!(separated[finite].is_number() && separated[infinite].is_null(), "{separated}");
        assert_eq!(separated[reason], "separated");
    }
    for line in [
        "(Intercept): the upper end is infinite: separation",
        "variant: the lower end is infinite: separation",
        "[-inf, ",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let sd = text.lines().find(|line| line.starts_with("SD between id")).unwrap();
    assert!(sd.contains("profile [2.2284, 3.1298]"), "{sd}");
    // The rest of the numbers is of the rest of the rows, and the screen says so.
    assert!(text.contains("is of the 5000 other rows in 100 groups, which are not predicted"), "{text}");
    let separation = &json["fit"]["diagnoses"][0];
    assert_eq!((&separation["rows"], &separation["rows_left"]), (&Value::from(100), &Value::from(5000)));

    let (json, text) = profiles("12_base_all_wrong.csv", &[]);
    assert_eq!(json["no_interval"].as_array().unwrap().len(), 0, "{text}");
    assert!(json["intervals"][2]["low"].is_number() && json["random_sd_interval"]["high"].is_number());
    assert!(json["intervals"][1]["low"].is_number() && json["intervals"][1]["high_open"] == "separated");

    // Hardly any success: Laplace's approximation takes large random SDs for better than its fit, so quadrature has the word.
    let (json, text) = profiles("real_olmo_1b_base_all_wrong.csv", &[]);
    assert_eq!(json["no_interval"].as_array().unwrap().len(), 0, "{text}");
    near(&json["intervals"][1]["low"], -2.0743, 0.01);
    assert_eq!(json["intervals"][1]["high_open"], "separated");
    let deviation = &json["random_sd_interval"];
    assert!(deviation["points"] == 25 && text.contains("random SD: interval by 25-point quadrature"), "{text}");
    near(&json["intervals"][2]["low"], -0.3486, 1e-3);
    assert!(json["random_sd_interval"]["high"].is_number(), "{text}");
}

#[test]
fn what_has_no_profile_says_why() {
    let (json, text) = profiles("13_all_or_nothing.csv", &[]);
    let missing = json["no_interval"].as_array().unwrap();
    assert_eq!(missing.len(), 4);
    assert_eq!(missing[3]["parameter"], "random SD");
    assert!(text.contains("variant: no interval: the fit has no likelihood, see its diagnoses"), "{text}");
    let (_, text) = profiles("11_base_all_correct.csv", &["--objective", "lme4"]);
    assert!(text.contains("the converged fit has no estimates: separated"), "{text}");
    let (_, text) = profiles("01_typical.csv", &["--objective", "lme4"]);
    assert!(text.contains("gamma_c: no interval: a profile interval needs a smooth likelihood"), "{text}");
    // Complete separation has intervals with one end, although it has no estimate.
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..40).map(|row| format!("{},{},{}\n", row % 8, row % 2, row % 2)).collect();
    let data = file(&folder, &format!("id,variant,correct\n{rows}"));
    let arguments = ["glmm", &data, "--response", "correct", "--fixed", "variant", "--group", "id", "--ci", "profile"];
    let (code, text) = stats(&arguments).unwrap();
    assert_eq!(code, 1);
    assert!(
        text.contains("variant predict all outcomes perfectly") && text.contains("variant: the upper end is infinite"),
        "{text}"
    );
    assert!(text.contains(", inf]") && text.contains("random SD: no interval: every row is predicted"), "{text}");
}

#[test]
fn numbers_that_could_not_be_computed_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let data = file(&folder, "one,two,id,of\n1,0,a,x\n1,nan,a,\n0,0,b,nan\n1,0,b,y\nNaN,1,c,\n0,,c,z\n1,1,c,x\n");
    let named = "1 value of `two` is NaN, no number: it counts as missing";
    let words = ["compare", &data, "--first", "one", "--second", "two", "--group", "id"];
    let (_, text) = stats(&words).unwrap();
    assert!(text.contains("1 value of `one` is NaN") && text.contains(named) && !text.contains("`of`"), "{text}");
    let (_, json) = stats(&[&words[..], &["--json"]].concat()).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["notes"].to_string().contains(named) && json["rows_dropped"] == 3, "{json}");
    let none = folder.path().join("none.csv").to_string_lossy().into_owned();
    fs::write(&none, "one,two,id\n1,nan,a\n0,NaN,b\n").unwrap();
    let said = stats(&["compare", &none, "--first", "one", "--second", "two", "--group", "id"]).unwrap_err();
    assert!(said.contains("column `two`") && said.contains("in 2 rows, where all are NaN"), "{said}");
    // Labels are not numbers: one that is not there is missing, and no result of a computation.
    let model = ["glmm", &data, "--response", "one", "--fixed", "of", "--group", "id"];
    let said = stats(&model).map_or_else(|error| error, |(_, text)| text);
    assert!(said.contains("1 value of `one` is NaN") && !said.contains("`of` is NaN"), "{said}");
}

#[test]
fn the_cross_check_is_done_left_out_and_named() {
    let data = golden("01_typical.csv");
    let fixed = ["glmm", &data, "--response", "correct", "--fixed", "variant", "--group", "id"];
    let check = |more: &[&str]| {
        let (_, text) = stats(&[&fixed[..], more].concat()).unwrap();
        let (_, json) = stats(&[&fixed[..], more, &["--json"]].concat()).unwrap();
        let json: Value = serde_json::from_str(&json).unwrap();
        (
            json["cross_check"].as_str().unwrap().to_owned(),
            text.contains("not compared with 25-point quadrature (--cross-check never)"),
        )
    };
    assert_eq!(check(&[]), ("done".to_owned(), false));
    assert_eq!(check(&["--cross-check", "always"]), ("done".to_owned(), false));
    assert_eq!(check(&["--cross-check", "never"]), ("skipped-as-asked".to_owned(), true));
    assert_eq!(check(&["--nagq", "25"]), ("not-applicable".to_owned(), false));
    // More than 100,000 different rows in large groups: left out unasked, and said.
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..100_200_u64)
        .map(|row| format!("{},{},{}\n", row % 60, row as f64 / 1e5, u8::from((row * 2_654_435_761) % 97 < 40)))
        .collect();
    let large = file(&folder, &format!("id,x,correct\n{rows}"));
    let (_, text) = stats(&["glmm", &large, "--response", "correct", "--fixed", "x", "--group", "id"]).unwrap();
    assert!(text.contains("more than 100000 different rows, in large groups; `--cross-check always`"), "{text}");
}

#[test]
fn errors_of_the_program_say_their_cause_once() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_earnest"))
        .args(["stats", "glmm", "/no/such.csv", "--response", "correct", "--group", "id"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text.matches("No such file").count(), 1, "{text}");
    let folder = tempfile::tempdir().unwrap();
    let data = file(&folder, "id,correct\na,1\nb\n");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_earnest"))
        .args(["stats", "glmm", &data, "--response", "correct", "--group", "id"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.matches("found record with 1 field").count(), 1, "{text}");
}

#[test]
fn a_design_is_chosen_from_random_effects() {
    let model =
        ["power", "design", "--effect", "0.05", "--accuracy", "0.6", "--intercept-sd", "1.5", "--slope-sd", "0.7"];
    let design = |words: &[&str]| -> Value {
        let (code, text) = stats(&[&model, words, &["--json"]].concat()).unwrap();
        assert_eq!(code, 0);
        serde_json::from_str(&text).unwrap()
    };
    let found = design(&["--questions", "10"]);
    let (templates, power) = (found["size"]["templates"].as_u64().unwrap(), found["power"].as_f64().unwrap());
    assert!(found["size"]["questions"] == 10 && (0.8..0.85).contains(&power), "{found}");
    // One template fewer is too few.
    let fewer = design(&["--questions", "10", "--samples", "1", "--templates", &(templates - 1).to_string()]);
    assert!(fewer["power"].as_f64().unwrap() < 0.8 || found["size"]["samples"] != 1, "{fewer}");
    // Formula and simulation agree.
    let checked = design(&["--questions", "10", "--templates", "60", "--simulate", "400"]);
    let (simulated, formula) = (&checked["simulated"], checked["power"].as_f64().unwrap());
    let error = simulated["standard_error"].as_f64().unwrap();
    assert!((simulated["power"].as_f64().unwrap() - formula).abs() < 4.0 * error, "{checked}");
    // Templates that cost are saved by asking more questions of each.
    let dear = design(&["--template-cost", "100"]);
    assert!(dear["size"]["templates"].as_u64().unwrap() < templates, "{dear}");
    let (_, text) = stats(&[&model[..], &["--templates", "100", "--questions", "50"]].concat()).unwrap();
    for words in [
        "This design: 100 templates x 50 questions x 1 sample,",
        "Power 0.",
        "Smallest difference found with power 0.8",
        "points, a rise\n",
    ] {
        assert!(text.contains(words), "{text}");
    }
    // A drop has less room than a rise here, and 20 templates of one question find none.
    let (_, text) = stats(&[
        "power",
        "design",
        "--effect",
        "-0.01",
        "--accuracy",
        "0.02",
        "--templates",
        "20",
        "--questions",
        "1",
        "--json",
    ])
    .unwrap();
    let found: Value = serde_json::from_str(&text).unwrap();
    let reason = "no possible drop from an accuracy of 0.02 is found with power 0.8";
    assert_eq!((&found["detectable"], &found["detectable_reason"]), (&Value::Null, &reason.into()), "{found}");
    let refused = |words: &[&str]| stats(&[&["power", "design"], words].concat()).unwrap_err();
    // A number may begin with its point.
    assert!(refused(&["--effect", "-.03", "--accuracy", "0.02"]).contains("accuracy plus effect is -0.01, expected"));
    assert!(refused(&["--effect", "0.05"]).contains("--accuracy"));
    assert!(refused(&["--effect", "0.5", "--accuracy", "0.6"]).contains("accuracy plus effect is 1.1"));
    assert!(refused(&["--effect", "0.05", "--accuracy", "0.6", "--slope-sd", "-1"]).contains("slope SD is -1"));
    let none = refused(&["--effect", "0.01", "--accuracy", "0.6", "--slope-sd", "1", "--most-templates", "20"]);
    assert!(none.contains("no design of at most 20 templates"), "{none}");
}

#[test]
fn a_design_is_chosen_from_a_pilot() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // 30 templates of 4 questions; the second model is right on more of them, by template.
    let lines = |right: &dyn Fn(usize) -> bool| {
        let row = |n: usize| {
            let completion = if right(n) { n.to_string() } else { "no".to_owned() };
            format!("{{\"item\": \"q{n}\", \"completion\": \"{completion}\"}}\n")
        };
        (0..120).map(row).collect::<String>()
    };
    let questions: String = (0..120)
        .map(|n| {
            format!(
                "{{\"id\": \"q{n}\", \"question\": \"Repeat {n}\", \"answer\": \"{n}\", \"cluster\": \"t{}\"}}\n",
                n / 4
            )
        })
        .collect();
    fs::write(at.join("questions.jsonl"), questions).unwrap();
    fs::write(at.join("earlier.jsonl"), lines(&|n| n % 3 == 0)).unwrap();
    fs::write(at.join("later.jsonl"), lines(&|n| n % 3 == 0 || n / 4 % 5 == 0)).unwrap();
    for name in ["earlier", "later"] {
        let file = format!("{name}.jsonl");
        let output = run_in(at, &["import", "questions.jsonl", "--completions", &file, "--name", name]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
    }
    let pilot = ["stats", "power", "design", "--run", "earlier", "--run", "later", "--effect", "0.1"];
    let output = run_in(at, &[&pilot[..], &["--json"]].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let found: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&found["pilot"]["templates"], &found["pilot"]["questions"]), (&30.into(), &120.into()));
    assert_eq!((&found["size"]["samples"], &found["pilot"]["repeated"]), (&1.into(), &false.into()));
    let part = |name: &str| found["variance"][name].as_f64().unwrap();
    assert!(part("template") > 0.02 && part("question") > 0.0, "{found}");
    let text = stdout(&run_in(at, &pilot));
    assert!(text.contains("120 questions in 30 templates") && text.contains("The cheapest design: "), "{text}");
    // A third is right: there is no drop by half.
    near(&found["pilot"]["accuracy"], 1.0 / 3.0, 1e-12);
    let beyond = run_in(at, &["stats", "power", "design", "--run", "earlier,later", "--effect", "-0.5"]);
    assert!(stderr(&beyond).contains("a drop of 0.5 is impossible"), "{}", stderr(&beyond));
    let refused = |words: &[&str]| stderr(&run_in(at, words));
    assert!(refused(&[&pilot[..], &["--samples", "2"]].concat()).contains("asked every question once"));
    assert!(refused(&["stats", "power", "design", "--run", "earlier", "--effect", "0.1"]).contains("give --run A,B"));
    let gone = refused(&["stats", "power", "design", "--run", "earlier", "--run", "gone", "--effect", "0.1"]);
    assert!(gone.contains("there is no run gone"), "{gone}");
}
