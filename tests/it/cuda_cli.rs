//! Messages about GPUs, and `dev golden` and `dev device` on the CPU.
use std::path::Path;
use std::process::{Command, Output};

fn earnest(args: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    command.args(args).current_dir(root).env_remove("EARNEST_DEVICE").env_remove("EARNEST_CUDA_LIBRARIES");
    command.output().unwrap()
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

const LLAMA: &str = "tests/golden/engine/checkpoints/llama";

#[test]
fn without_a_driver_a_gpu_is_refused_by_name_and_auto_takes_the_cpu() {
    if Path::new("/proc/driver/nvidia/version").exists() {
        eprintln!("skipped: there is a driver here, so the message without one can not be had");
        return;
    }
    let refused = earnest(&["dev", "golden", LLAMA, "--device", "cuda"]);
    let text = words(&refused);
    assert_eq!(refused.status.code(), Some(5), "{text}");
    assert!(text.contains("cannot compute on a GPU") && text.contains("NVIDIA's driver"), "{text}");
    assert!(text.contains("--device cpu") && text.contains("EARNEST_CUDA_LIBRARIES"), "{text}");
    let auto = earnest(&["dev", "golden", LLAMA, "--device", "auto", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&auto.stdout).unwrap();
    assert!(document["passed"].as_bool().unwrap() && document["devices"][0].as_str().unwrap().starts_with("CPU"));
}

#[test]
fn an_engine_is_compared_with_another_way_of_computing() {
    let sizes = ["--prompts", "4", "--shared", "70", "--own", "20", "--new", "3", "--device", "cpu"];
    let ask = |more: &[&str]| earnest(&[&["dev", "agreement", "--model", LLAMA], &sizes[..], more].concat());
    let exact = ask(&["--reference", "no-prefix-cache", "--tolerance", "0", "--json"]);
    let d: serde_json::Value = serde_json::from_slice(&exact.stdout).unwrap();
    assert!(exact.status.success() && d["result"]["tokens"] == 12 && d["result"]["exact"] == true, "{d}");
    assert!(d["distinct_tokens"].as_u64().unwrap() > 3, "{d}");
    // Two arithmetics: not the same to the last bit.
    let rounded = ask(&["--reference", "cpu", "--quant", "q8_0", "--compute", "int8", "--tolerance", "10"]);
    assert!(rounded.status.success() && words(&rounded).contains("within 10"), "{}", words(&rounded));
    let beside = ask(&["--reference", "default-compute", "--compute", "int8", "--tolerance", "10", "--json"]);
    let d: serde_json::Value = serde_json::from_slice(&beside.stdout).unwrap();
    assert!(beside.status.success() && d["result"]["largest_difference"].as_f64().unwrap() > 0.0, "{d}");
    let long = ask(&["--reference", "cpu", "--new", "100000"]);
    assert_eq!(long.status.code(), Some(2), "{}", words(&long));
}

#[test]
fn kernels_are_checked_on_a_gpu_only() {
    let refused = earnest(&["bench", "kernels", "--device", "cpu"]);
    assert_eq!(refused.status.code(), Some(2), "{}", words(&refused));
    assert!(words(&refused).contains("--device cuda"), "{}", words(&refused));
}

/// Runs a command of the acceptance script with this program.
fn acceptance(command: &str, work: &Path, options: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut script = Command::new("python3");
    script.args(["scripts/gpu_acceptance.py", command, "--binary", env!("CARGO_BIN_EXE_earnest"), "--work"]).arg(work);
    script.args(options).current_dir(root).env_remove("EARNEST_DEVICE").env_remove("EARNEST_KERNELS").env_remove("OUT");
    script.env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap()
}

fn can_run_the_script() -> bool {
    let there = Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    let can = cfg!(target_os = "linux") && there;
    if !can {
        eprintln!("skipped: the acceptance script needs python3");
    }
    can
}

/// Steps and verdicts of the summary in the last line.
fn verdicts(ended: &Output) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    let last = text.lines().last().unwrap_or_default();
    let summary: serde_json::Value = serde_json::from_str(last).unwrap_or_else(|_| panic!("{}", words(ended)));
    let field = |item: &serde_json::Value, name: &str| item[name].as_str().unwrap().to_owned();
    summary["items"].as_array().unwrap().iter().map(|i| (field(i, "step"), field(i, "verdict"))).collect()
}

fn count(list: &[(String, String)], verdict: &str) -> usize {
    list.iter().filter(|(_, own)| own == verdict).count()
}

#[test]
fn without_a_gpu_the_acceptance_says_so() {
    if !can_run_the_script() || Path::new("/proc/driver/nvidia/version").exists() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ended = acceptance("correctness", folder.path(), &[]);
    assert_eq!(ended.status.code(), Some(4), "{}", words(&ended));
    assert!(words(&ended).contains("no GPU can be used: NVIDIA's driver"), "{}", words(&ended));
    let unknown = acceptance("correctness", folder.path(), &["--tiny"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", words(&unknown));
}

#[test]
fn the_first_command_of_the_acceptance_runs_and_goes_on_where_it_was_cut() {
    if !can_run_the_script() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Four steps, then a command whose time is over before another can start.
    let some = acceptance("correctness", folder.path(), &["--dry-run", "--only", "golden"]);
    assert!(some.status.success(), "{}", words(&some));
    let late = acceptance("correctness", folder.path(), &["--dry-run", "--seconds", "5"]);
    let cut = verdicts(&late);
    assert!(late.status.code() == Some(3) && count(&cut, "not run") == cut.len() - 4, "{}", words(&late));
    let whole = acceptance("correctness", folder.path(), &["--dry-run"]);
    let tried = verdicts(&whole);
    let failed: Vec<_> = tried.iter().filter(|(_, verdict)| verdict == "FAIL").collect();
    assert!(failed.is_empty() && whole.status.code() == Some(3), "{failed:?} {}", words(&whole));
    // compute-sanitizer has nothing to check; without a C compiler there are no stand-ins for kernels and three profiles either.
    assert_eq!((cut.len(), tried.len()), (42, 42), "{}", words(&whole));
    assert!(matches!(count(&tried, "not run"), 16 | 20), "{}", words(&whole));
    // What was done before the cut was not done again.
    assert_eq!(String::from_utf8_lossy(&whole.stdout).matches("done before").count(), 4, "{}", words(&whole));
    // Another command of the same program repeats nothing, and the summary has what is known.
    let summary = acceptance("summary", folder.path(), &[]);
    assert_eq!(verdicts(&summary).len(), 42, "{}", words(&summary));
}

#[test]
fn the_other_commands_of_the_acceptance_run() {
    if !can_run_the_script() {
        return;
    }
    for command in ["variants", "numbers"] {
        let folder = tempfile::tempdir().unwrap();
        let ended = acceptance(command, folder.path(), &["--dry-run"]);
        let tried = verdicts(&ended);
        let failed: Vec<_> = tried.iter().filter(|(_, verdict)| verdict == "FAIL").collect();
        assert!(failed.is_empty() && tried.len() >= 8, "{command}: {failed:?} {}", words(&ended));
        assert!(matches!(ended.status.code(), Some(0 | 3)), "{command}: {}", words(&ended));
    }
}

#[test]
fn devices_that_make_no_sense_are_usage_errors() {
    for (args, part) in [
        (["--device", "gpu"], "auto, cpu, cuda or cuda:N"),
        (["--device", "cuda:x"], "auto, cpu, cuda or cuda:N"),
        (["--devices", "0,1"], "one process per GPU"),
        (["--devices", "0,1"], "--tensor-parallel-size 2"),
    ] {
        let refused = earnest(&[&["dev", "golden", LLAMA], &args[..]].concat());
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
        assert!(words(&refused).contains(part), "{args:?}: {}", words(&refused));
    }
}

#[test]
fn recorded_logits_are_compared_and_a_tolerance_that_is_too_small_fails() {
    let fine = earnest(&["dev", "golden", LLAMA, "--device", "cpu"]);
    assert!(fine.status.success() && words(&fine).contains("greedy texts equal"), "{}", words(&fine));
    let strict = earnest(&["dev", "golden", LLAMA, "--device", "cpu", "--tolerance", "1e-12"]);
    assert!(!strict.status.success() && words(&strict).contains("NOT all within"), "{}", words(&strict));
}

#[test]
fn a_device_is_measured() {
    let sizes = ["--decode", "1,3", "--decode-context", "40", "--decode-steps", "12", "--prefill", "1,2"];
    let workloads = ["--shared", "6,64,10,4", "--short", "5,12,3", "--json"];
    let measured = earnest(&[&["dev", "device", "--model", LLAMA, "--device", "cpu"], &sizes[..], &workloads].concat());
    assert!(measured.status.success(), "{}", words(&measured));
    let d: serde_json::Value = serde_json::from_slice(&measured.stdout).unwrap();
    assert_eq!(d["decode"].as_array().unwrap().len(), 2);
    for r in d["decode"].as_array().unwrap() {
        assert!(r["steps"].as_u64().unwrap() >= 12, "{r}");
        assert!(r["step_s"].as_f64().unwrap() > 0.0 && r["fraction"].as_f64().unwrap() > 0.0, "{r}");
    }
    let prefill: Vec<_> = d["prefill"].as_array().unwrap().iter().map(|r| r["batch"].as_u64().unwrap()).collect();
    assert_eq!(prefill, [1, 2]);
    assert!(d["prefill"][1]["tokens_per_s"].as_f64().unwrap() > 0.0);
    assert_eq!((d["shared"]["prompts"].as_u64(), d["short"]["prompts"].as_u64()), (Some(6), Some(5)));
    // The common beginning is computed once.
    assert!(d["shared"]["prefilled_tokens"].as_u64().unwrap() < 64 + 6 * 20);
}
