//! Messages about GPUs where there is none.
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
    let results = tempfile::tempdir().unwrap();
    let run = ["run", "arithmetic-bench", "--limit", "2", "--results", results.path().to_str().unwrap()];
    let refused = earnest(&[&run[..], &["--device", "cuda"]].concat());
    let text = words(&refused);
    assert_eq!(refused.status.code(), Some(5), "{text}");
    assert!(text.contains("cannot compute on a GPU") && text.contains("NVIDIA's driver"), "{text}");
    assert!(text.contains("--device cpu") && text.contains("EARNEST_CUDA_LIBRARIES"), "{text}");
    let auto = earnest(&[&run[..], &["--device", "auto", "--json"]].concat());
    let document: serde_json::Value = serde_json::from_slice(&auto.stdout).unwrap();
    assert_eq!(document["manifest"]["settings"]["engine"], "native");
}

#[test]
fn devices_that_make_no_sense_are_usage_errors() {
    for (args, part) in [
        (["--device", "gpu"], "auto, cpu, cuda or cuda:N"),
        (["--device", "cuda:x"], "auto, cpu, cuda or cuda:N"),
        (["--devices", "0,1"], "one process per GPU"),
        (["--devices", "0,1"], "--tensor-parallel-size 2"),
    ] {
        let refused = earnest(&[&["bench", "engine", "--model", LLAMA], &args[..]].concat());
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
        assert!(words(&refused).contains(part), "{args:?}: {}", words(&refused));
    }
}
