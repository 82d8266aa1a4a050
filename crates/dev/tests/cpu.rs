//! `earnest-dev` on the CPU.
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const LLAMA: &str = "tests/golden/engine/checkpoints/llama";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn earnest_dev(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest-dev"));
    command.args(args).current_dir(root()).env_remove("EARNEST_CUDA_LIBRARIES");
    command.output().unwrap()
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

#[test]
fn an_engine_is_compared_with_another_way_of_computing() {
    let sizes = ["--prompts", "4", "--shared", "70", "--own", "20", "--new", "3", "--device", "cpu"];
    let ask = |more: &[&str]| earnest_dev(&[&["agreement", "--model", LLAMA], &sizes[..], more].concat());
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
    let refused = earnest_dev(&["kernels", "--device", "cpu"]);
    assert_eq!(refused.status.code(), Some(2), "{}", words(&refused));
    assert!(words(&refused).contains("--device cuda"), "{}", words(&refused));
}

#[test]
fn recorded_logits_are_compared_and_a_tolerance_that_is_too_small_fails() {
    let fine = earnest_dev(&["golden", LLAMA, "--device", "cpu"]);
    assert!(fine.status.success() && words(&fine).contains("greedy texts equal"), "{}", words(&fine));
    let strict = earnest_dev(&["golden", LLAMA, "--device", "cpu", "--tolerance", "1e-12"]);
    assert!(!strict.status.success() && words(&strict).contains("NOT all within"), "{}", words(&strict));
}

#[test]
fn a_device_is_measured() {
    let sizes = ["--decode", "1,3", "--decode-context", "40", "--decode-steps", "12", "--prefill", "1,2"];
    let workloads = ["--shared", "6,64,10,4", "--short", "5,12,3", "--json"];
    let measured = earnest_dev(&[&["device", "--model", LLAMA, "--device", "cpu"], &sizes[..], &workloads].concat());
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
