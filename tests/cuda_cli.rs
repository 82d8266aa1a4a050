//! What a user reads who asks for a GPU, and `bench golden` and `bench device` on the CPU.
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
    let refused = earnest(&["bench", "golden", LLAMA, "--device", "cuda"]);
    let text = words(&refused);
    assert_eq!(refused.status.code(), Some(5), "{text}");
    assert!(text.contains("cannot compute on a GPU") && text.contains("NVIDIA's driver"), "{text}");
    assert!(text.contains("--device cpu") && text.contains("EARNEST_CUDA_LIBRARIES"), "{text}");
    let auto = earnest(&["bench", "golden", LLAMA, "--device", "auto", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&auto.stdout).unwrap();
    assert!(document["passed"].as_bool().unwrap() && document["devices"][0].as_str().unwrap().starts_with("CPU"));
}

#[test]
fn devices_that_make_no_sense_are_usage_errors() {
    for (args, part) in [
        (["--device", "gpu"], "auto, cpu, cuda or cuda:N"),
        (["--device", "cuda:x"], "auto, cpu, cuda or cuda:N"),
        (["--devices", "0,1"], "one program for each GPU"),
    ] {
        let refused = earnest(&[&["bench", "golden", LLAMA], &args[..]].concat());
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
        assert!(words(&refused).contains(part), "{args:?}: {}", words(&refused));
    }
}

#[test]
fn recorded_logits_are_compared_and_a_tolerance_that_is_too_small_fails() {
    let fine = earnest(&["bench", "golden", LLAMA, "--device", "cpu"]);
    assert!(fine.status.success() && words(&fine).contains("greedy texts equal"), "{}", words(&fine));
    let strict = earnest(&["bench", "golden", LLAMA, "--device", "cpu", "--tolerance", "1e-12"]);
    assert!(!strict.status.success() && words(&strict).contains("NOT all within"), "{}", words(&strict));
}

#[test]
fn a_device_is_measured() {
    let sizes = ["--decode", "1,3", "--decode-context", "40", "--decode-steps", "12", "--prefill", "2"];
    let workloads = ["--shared", "6,64,10,4", "--short", "5,12,3", "--json"];
    let measured =
        earnest(&[&["bench", "device", "--model", LLAMA, "--device", "cpu"], &sizes[..], &workloads].concat());
    assert!(measured.status.success(), "{}", words(&measured));
    let d: serde_json::Value = serde_json::from_slice(&measured.stdout).unwrap();
    assert_eq!(d["decode"].as_array().unwrap().len(), 2);
    for r in d["decode"].as_array().unwrap() {
        assert!(r["step_s"].as_f64().unwrap() > 0.0 && r["fraction"].as_f64().unwrap() > 0.0, "{r}");
    }
    assert!(d["prefill"]["tokens_per_s"].as_f64().unwrap() > 0.0);
    assert_eq!((d["shared"]["prompts"].as_u64(), d["short"]["prompts"].as_u64()), (Some(6), Some(5)));
    // The common beginning is computed once.
    assert!(d["shared"]["prefilled_tokens"].as_u64().unwrap() < 64 + 6 * 20);
}
