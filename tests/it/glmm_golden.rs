//! The golden subject `glmm` on spoilt and missing files, and a user's call where lme4 collapses.
use std::path::PathBuf;

use crate::golden_subjects::{files, glmm, report};

/// A folder with one set, its exact results changed by `spoil`.
fn copy_of(set: &str, spoil: impl Fn(&str) -> String) -> tempfile::TempDir {
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/glmm");
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("glmm");
    std::fs::create_dir_all(target.join("results/exact")).unwrap();
    // Another name: nothing may depend on those known.
    std::fs::write(target.join("99_unseen.csv"), files::read(&source.join(format!("{set}.csv"))).unwrap()).unwrap();
    let exact = files::read(&source.join(format!("results/exact/{set}.json"))).unwrap();
    std::fs::write(target.join("results/exact/99_unseen.json"), spoil(&exact)).unwrap();
    folder
}

fn failures(folder: &tempfile::TempDir) -> Vec<String> {
    glmm::check(folder.path()).into_iter().flat_map(|report| report.failures().to_vec()).collect()
}

#[test]
fn unseen_sets_are_checked_and_spoilt_values_fail() {
    let set = "real_llama31_70b";
    let whole = copy_of(set, str::to_owned);
    let reports = glmm::check(whole.path());
    let seen = reports.iter().find(|report| report.file == "glmm/results/exact/99_unseen.json").unwrap();
    assert_eq!((seen.total(), seen.failures().len()), (4, 0));
    for (from, to) in [
        ("-0.871986450385473", "-0.872187"),
        ("0.250010951283715", "0.250311"),
        ("2206.14997174995", "2206.149975"),
        ("1.39167573775104", "1.394"),
        ("\"variant\"", "\"wariant\""),
        ("\"q1\"", "\"q2\""),
    ] {
        let spoilt = copy_of(set, |text| {
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        });
        assert!(!failures(&spoilt).is_empty(), "{from} -> {to}");
    }
    assert!(!failures(&copy_of(set, |text| text[..text.len() / 2].to_owned())).is_empty());
    // A separation that is not one, and one that is not seen.
    assert!(!failures(&copy_of(set, |text| text.replacen("0.250010951283715", "null", 1))).is_empty());
    assert!(!failures(&copy_of("12_base_all_wrong", |text| text.replace("22072.", "0."))).is_empty());
}

/// A folder with the sets that the degenerate probe and cbpp need.
fn small_folder() -> tempfile::TempDir {
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/glmm");
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("glmm");
    std::fs::create_dir_all(target.join("results/exact")).unwrap();
    let sets = ["30_degenerate_both_seed1141", "21_constant_response", "14_tiny_5x4"];
    let of_sets = sets
        .iter()
        .flat_map(|set| [format!("{set}.csv"), format!("results/{set}.json"), format!("results/exact/{set}.json")]);
    let others = ["results/objective_probes.json", "results/cbpp.json"].map(str::to_owned);
    for file in of_sets.chain(others).filter(|file| files::is_there(&source.join(file))) {
        std::fs::write(target.join(&file), files::read(&source.join(&file)).unwrap()).unwrap();
    }
    folder
}

#[test]
fn any_file_may_be_absent_and_the_others_are_checked() {
    let whole = small_folder();
    let reports = glmm::check(whole.path());
    let names = |reports: &[report::FileReport]| -> Vec<String> {
        reports.iter().filter(|report| !report.is_absent()).map(|report| report.file.clone()).collect()
    };
    assert!(reports.iter().all(|report| report.failures().is_empty() && (report.total() > 0) != report.is_absent()));
    // Probed sets that the small folder lacks.
    assert_eq!(reports.iter().filter(|report| report.is_absent()).count(), 4);
    let every = names(&reports);
    assert_eq!(every.len(), 7, "{every:?}");
    for (file, without) in [
        ("results/objective_probes.json", 6),
        ("results/cbpp.json", 6),
        ("results/exact/14_tiny_5x4.json", 6),
        ("results/14_tiny_5x4.json", 6),
        ("results/21_constant_response.json", 6),
        // Both of its results, and the only set of the small folder that is probed.
        ("30_degenerate_both_seed1141.csv", 4),
    ] {
        let folder = small_folder();
        std::fs::remove_file(folder.path().join("glmm").join(file)).unwrap();
        let reports = glmm::check(folder.path());
        let failures: Vec<_> = reports.iter().flat_map(|report| report.failures().to_vec()).collect();
        assert!(failures.is_empty(), "{file}: {failures:?}");
        let checked = names(&reports);
        assert_eq!(checked.len(), without, "{file}: {checked:?}");
        assert!(checked.iter().all(|name| every.contains(name)));
        // Exact results are missing by nature where there is no estimate.
        let absent = reports.iter().filter(|report| report.is_absent() && report.file.contains(file)).count();
        let is_named = absent > 0 || file.contains("exact");
        assert!(is_named, "{file} is not named as absent");
        let rows = |name: &str| reports.iter().find(|report| report.file == name).map_or(0, |report| report.total());
        assert!(file.contains("14_tiny") || rows("glmm/results/14_tiny_5x4.json") == 2);
    }
}

#[test]
fn spoilt_probes_and_lme4_results_fail() {
    for (file, from, to) in [
        // The degenerate probe's value, its recorded predictor, a probed set's value, cbpp, lme4's artefact.
        ("results/objective_probes.json", "\"laplace_exact\":", "\"laplace\":"),
        ("results/objective_probes.json", "3232.1", "3232.3"),
        ("results/objective_probes.json", "\"agq25\":", "\"agq26\":"),
        ("results/cbpp.json", "-1.39", "-1.42"),
        ("results/cbpp.json", "\"fits\"", "\"fit\""),
        ("results/30_degenerate_both_seed1141.json", "0.000436181141304197", "0.336"),
        ("results/21_constant_response.json", "Response is constant", "grouping factors must have > 1 sampled level"),
    ] {
        let folder = small_folder();
        let path = folder.path().join("glmm").join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file} has no {from}");
        std::fs::write(&path, text.replace(from, to)).unwrap();
        assert!(!failures(&folder).is_empty(), "{file}: {from} -> {to}");
    }
}

#[test]
fn an_absent_folder_is_absent() {
    let folder = tempfile::tempdir().unwrap();
    assert!(glmm::check(folder.path()).iter().all(|report| report.is_absent()));
}

/// Fits as a user calls them, on data sets where lme4 collapses: lme4's numbers without its recorded first stage.
#[test]
fn a_users_call_gives_what_lme4_gives_where_it_collapses() {
    use earnest_stats::mixed::MixedData;
    use earnest_stats::mixed::lme4::{Lme4Options, fit};
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/glmm");
    for (set, with_gamma) in [
        ("30_degenerate_both_seed1141", false),
        ("30_degenerate_both_seed1141", true),
        ("30_degenerate_glmm1_seed1039", false),
        ("31_degenerate_glmm2_only_seed1018", true),
        ("real_llama31_8b_instruct", false),
        ("real_llama31_8b_instruct", true),
        ("13_all_or_nothing", true),
    ] {
        let path = folder.join(format!("{set}.csv"));
        let (mut response, mut variant, mut gamma, mut id) = (vec![], vec![], vec![], vec![]);
        for record in csv::Reader::from_reader(files::read(&path).unwrap().as_bytes()).records() {
            let record = record.unwrap();
            let metric: Option<f64> = record[2].parse().ok();
            if with_gamma && metric.is_none() {
                continue;
            }
            id.push(record[0].to_owned());
            variant.push(record[1].parse::<f64>().unwrap());
            gamma.push(metric.unwrap_or(0.0));
            response.push(record[3].parse::<f64>().unwrap());
        }
        let groups: Vec<u64> = id.iter().map(|one| id.iter().position(|other| other == one).unwrap() as u64).collect();
        let mut fixed: Vec<(&str, &[f64])> = vec![("variant", &variant)];
        if with_gamma {
            fixed.push(("gamma_c", &gamma));
        }
        let data = MixedData::of_columns(&response, &fixed, &groups).unwrap();
        let fitted = fit(&data, Lme4Options::default()).unwrap();
        let ours = fitted.coefficient("variant").unwrap();
        let recorded = files::read(&folder.join(format!("results/{set}.json"))).unwrap();
        let recorded: serde_json::Value = serde_json::from_str(&recorded).unwrap();
        let model = if with_gamma { "glmm2" } else { "glmm1" };
        let golden = &recorded[model]["default"]["coef"]["variant"];
        let (estimate, error) = (golden["estimate"].as_f64().unwrap(), golden["std_err"].as_f64().unwrap());
        let (found, found_error) = (ours.estimate.unwrap(), ours.standard_error.unwrap());
        assert!((found - estimate).abs() < 1e-3, "{set} {model}: {found} instead of {estimate}");
        assert!((found_error - error).abs() < 0.01 * error, "{set} {model}: {found_error} instead of {error}");
    }
}
