//! `earnest stats glmm --formula` and the default model of stored runs, end to end.
use std::fs;

use serde_json::Value;

use crate::program::{code, golden_table, run_in, stderr, stdout};

/// Exit code, standard output and standard error of `earnest stats glmm`.
fn glmm(arguments: &[&str]) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let output = run_in(folder.path(), &[&["stats", "glmm"], arguments].concat());
    (code(&output), stdout(&output), stderr(&output))
}

fn json(arguments: &[&str]) -> Value {
    let (_, text, error) = glmm(&[arguments, &["--json"]].concat());
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{arguments:?}: {text}{error}"))
}

fn golden(name: &str) -> String {
    golden_table("glmm_formula", name)
}

const CROSSED: &str = "correct ~ model*variant + (1|item) + (1|template)";

#[test]
fn a_formula_is_fitted_and_everything_about_it_said() {
    let folder = tempfile::tempdir().unwrap();
    let (plot, rows) = (folder.path().join("plot.svg"), folder.path().join("rows.csv"));
    let (plot, rows) = (plot.to_str().unwrap(), rows.to_str().unwrap());
    let data = golden("s03_crossed.csv");
    let files = ["--plot", plot, "--predictions", rows, "--drop", "all", "--contrast", "modelphi=1,variantsymbolic=-1"];
    let (code, text, error) = glmm(&[&[data.as_str(), "--formula", CROSSED], &files[..]].concat());
    assert_eq!(code, 0, "{error}");
    for part in [
        "logit P correct ~ model + variant + model:variant + (1 | item) + (1 | template)",
        "2400 rows",
        "model: reference level llama",
        "template            30  (Intercept)  0.7554",
        "phi - llama",
        "likelihood-ratio tests",
        "model:variant",
        "contrasts",
        "We fitted a mixed-effects logistic regression to 2400 answers (30 levels of template, 20 levels of item)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(fs::read_to_string(plot).unwrap().contains("odds ratio with 95 % interval"));
    let lines = fs::read_to_string(rows).unwrap();
    assert!(lines.starts_with("model,variant,item,template,rows,observed,conditional,population\n"), "{lines}");
    assert_eq!(lines.lines().count(), 1 + 2400);
}

#[test]
fn json_has_every_number() {
    let data = golden("s06_gamma_slope.csv");
    let formula = "correct ~ variant + gamma + (1+gamma||template)";
    let found = json(&[&data, "--formula", formula, "--ci", "profile", "--reference", "variant=symbolic"]);
    assert_eq!(found["references"][0][1], "symbolic");
    assert_eq!(found["fit"]["coefficients"][1]["name"], "variantbase");
    assert_eq!(found["fit"]["random"][0]["correlation"], Value::Null);
    assert_eq!(found["intervals"][1]["method"], "profile");
    let ratio = &found["odds_ratios"][1];
    let at = |value: &Value| value.as_f64().unwrap();
    assert!(at(&ratio["low"]) < at(&ratio["odds_ratio"]) && at(&ratio["odds_ratio"]) < at(&ratio["high"]));
    let difference = &found["marginal"][0]["differences"][0];
    assert!(at(&difference["low"]) < at(&difference["difference"]) && at(&difference["p"]) <= at(&difference["holm"]));
    assert_eq!((&difference["family_size"], &difference["benjamini_hochberg"]), (&1.into(), &difference["p"]));
    assert!(found["method"].as_str().unwrap().contains("Laplace"));
}

#[test]
fn linear_models_are_fitted_by_reml_or_likelihood() {
    let data = golden("s06_gamma_slope.csv");
    let model = [data.as_str(), "--formula", "gamma ~ variant + (1|template)", "--family", "gaussian"];
    let (reml, likelihood) = (json(&model), json(&[&model[..], &["--ml"]].concat()));
    assert_eq!((&reml["fit"]["method"], &likelihood["fit"]["method"]), (&Value::from("REML"), &Value::from("ML")));
    let sd = |report: &Value| report["fit"]["residual_sd"].as_f64().unwrap();
    assert!(sd(&reml) > 0.9 && sd(&reml) != sd(&likelihood));
    let (code, _, error) = glmm(&[&model[..], &["--plot", "x.svg"]].concat());
    assert!(code == 2 && error.contains("odds ratios, which a gaussian model has not"), "{error}");
}

#[test]
fn separated_data_get_a_penalised_fit_beside_the_refused_one() {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(golden("s09_near_separation.csv")).unwrap();
    let index = text.lines().next().unwrap().split(',').position(|name| name == "correct").unwrap();
    let spoilt = text.lines().map(|line| {
        let mut fields: Vec<&str> = line.split(',').collect();
        if fields.contains(&"phi") {
            fields[index] = "1";
        }
        fields.join(",") + "\n"
    });
    let path = folder.path().join("data.csv");
    fs::write(&path, spoilt.collect::<String>()).unwrap();
    let model = [path.to_str().unwrap(), "--formula", "correct ~ model + (1|item)"];
    let (code, text, _) = glmm(&model);
    assert_eq!(code, 1);
    assert!(text.contains("separated: modelphi predicts some outcomes perfectly"), "{text}");
    assert!(text.contains("no fit\n") && !text.contains("fully converged"), "{text}");
    assert!(text.contains("penalised fit, prior log-F(1,1) on modelphi"), "{text}");
    let found = json(&model);
    assert_eq!(found["fit"]["coefficients"][0]["estimate"], Value::Null);
    let phi = &found["penalised"]["coefficients"][2];
    assert!(phi["estimate"].as_f64().unwrap() > 2.0 && phi["p"].as_f64().unwrap() < 0.01, "{phi}");
    let interval = &found["penalised_intervals"][2];
    assert_eq!(interval["method"], "profile");
    assert!(
        interval["low"].as_f64().unwrap() > 0.0 && interval["high"].as_f64() > phi["estimate"].as_f64(),
        "{interval}"
    );
    assert_eq!(found["penalised_intervals"][1]["method"], "wald");
}

#[test]
fn an_intercept_only_model_that_misses_a_slope_is_warned_of() {
    let data = golden("s01_variant_slope.csv");
    let (_, text, _) = glmm(&[&data, "--response", "correct", "--fixed", "variant", "--group", "template"]);
    assert!(text.contains("0.0440 by the model and 0.0762 by the scatter between groups of template"), "{text}");
    assert!(text.contains("(1+variant|group)"), "{text}");
    let (_, text, _) = glmm(&[&data, "--formula", "correct ~ variant + (1|template)"]);
    // A formula has the model's error, as lme4 does, with a warning, unless the larger one is asked for.
    assert!(text.contains("variantsymbolic has 0.0440 by the model and 0.0762") && text.contains("--robust"), "{text}");
    let found = json(&[&data, "--formula", "correct ~ variant + (1|template)"]);
    assert_eq!((&found["errors"], &found["fit"]["robust"]), (&"model".into(), &Value::Null));
    let found = json(&[&data, "--formula", "correct ~ variant + (1|template)", "--robust"]);
    assert_eq!((&found["errors"], &found["fit"]["robust"]["group"]), (&"robust".into(), &"template".into()));
    let effect = &found["fit"]["coefficients"][1];
    let error = |name: &str| (1e4 * effect[name].as_f64().unwrap()).round();
    assert_eq!((error("standard_error"), error("standard_error_model")), (762.0, 440.0));
    let found = json(&[&data, "--formula", "correct ~ variant + (1+variant|template)"]);
    assert_eq!((&found["errors"], &found["fit"]["robust"]), (&"model".into(), &Value::Null));
}

#[test]
fn mistakes_are_named_with_what_to_do() {
    let data = golden("s03_crossed.csv");
    let refused = |arguments: &[&str]| {
        let (code, _, error) = glmm(&[&[data.as_str()], arguments].concat());
        assert_eq!(code, 2, "{arguments:?}: {error}");
        error
    };
    let error = refused(&["--formula", "correct ~ model + (1|item"]);
    assert!(error.contains("this `(` is never closed\n  correct ~ model + (1|item\n                    ^"), "{error}");
    assert!(refused(&["--formula", "correct ~ size + (1|item)"]).contains("no column `size`"));
    assert!(refused(&["--formula", "correct ~ model"]).contains("no random effect; add one, e.g. (1 |"));
    assert!(refused(&["--formula", CROSSED, "--fixed", "model"]).contains("cannot be used with"));
    assert!(refused(&["--formula", CROSSED, "--nagq", "25"]).contains("one random intercept"));
    assert!(refused(&["--formula", CROSSED, "--ml"]).contains("--family gaussian"));
    assert!(refused(&["--formula", CROSSED, "--drop", "size"]).contains("no term `size`"));
    assert!(refused(&["--formula", CROSSED, "--contrast", "modelphi"]).contains("is not NAME=WEIGHT"));
    assert!(refused(&["--formula", CROSSED, "--contrast", "phi=1"]).contains("no estimate of `phi`"));
    assert!(refused(&["--formula", CROSSED, "--reference", "model=gemma"]).contains("its levels are: llama, phi"));
    assert!(refused(&["--formula", CROSSED, "--reference", "size=1"]).contains("not in the formula"));
    assert!(refused(&["--formula", CROSSED, "--level", "95"]).contains("--level is 95"));
    assert!(
        refused(&["--response", "correct", "--group", "item", "--contrast", "phi=1"]).contains("no estimate of `phi`")
    );
}
