//! The host's code for a GPU against stand-ins of NVIDIA's libraries (cuda_twin/libraries.c): kernels compute nothing there, but calls a
//! driver would refuse end the process, and leaks are counted.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]
use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

#[path = "../cuda_twin/stand_ins.rs"]
mod stand_ins;
use stand_ins::words;

fn libraries() -> Option<TempDir> {
    stand_ins::libraries(Path::new(env!("CARGO_MANIFEST_DIR")))
}

fn earnest(libraries: &TempDir, variables: &[(&str, &str)], args: &[&str]) -> Output {
    stand_ins::run(env!("CARGO_BIN_EXE_earnest"), Path::new(env!("CARGO_MANIFEST_DIR")), libraries, variables, args)
}

#[test]
fn a_device_that_can_not_be_used_is_refused_in_words() {
    let Some(at) = libraries() else { return };
    let results = at.path().join("results");
    let run = ["run", "arithmetic-bench", "--limit", "2", "--max-tokens", "2", "--results", results.to_str().unwrap()];
    for (variables, device, parts) in [
        (("MOCK_DEVICES", "2"), "cuda:9", ["there is no cuda:9", "2 GPUs, cuda:0 to cuda:1"]),
        (("MOCK_MODE", "3"), "cuda", ["Exclusive_Process", "another process"]),
        (("MOCK_DEVICES", "0"), "cuda", ["finds no usable GPU", "earnest doctor"]),
    ] {
        let refused = earnest(&at, &[variables], &[&run[..], &["--device", device]].concat());
        let text = words(&refused);
        assert_eq!(refused.status.code(), Some(5), "{text}");
        assert!(parts.iter().all(|part| text.contains(part)) && text.contains("--device cpu"), "{text}");
    }
    // What `auto` finds in use it leaves alone, and says so.
    let auto = earnest(&at, &[("MOCK_MODE", "3")], &[&run[..], &["--device", "auto"]].concat());
    assert!(auto.status.success() && words(&auto).contains("the GPU is not used"), "{}", words(&auto));
}

#[test]
fn variants_name_the_arithmetic_that_they_change() {
    let Some(at) = libraries() else { return };
    let results = at.path().join("results");
    let fixed = ["run", "arithmetic-bench", "--device", "cuda", "--limit", "3", "--max-tokens", "4", "--json"];
    let more = ["--results", results.to_str().unwrap(), "--cuda-variant", "wgmma", "--dtype", "bf16"];
    let ended = earnest(&at, &[], &[&fixed[..], &more].concat());
    let document: serde_json::Value = serde_json::from_slice(&ended.stdout).expect("a document");
    assert_eq!(document["manifest"]["settings"]["engine"], "native-cuda-batch-invariant-wgmma");
    assert_eq!(document["manifest"]["engine"]["options"]["variants"], serde_json::json!(["wgmma"]));
    let unknown = earnest(&at, &[], &["run", "arithmetic-bench", "--cuda-variant", "fast"]);
    assert!(unknown.status.code() == Some(2) && words(&unknown).contains("wgmma"), "{}", words(&unknown));
}

#[test]
fn a_run_is_named_after_the_products_it_was_computed_with() {
    let Some(at) = libraries() else { return };
    let run = |cublaslt: &str, more: &[&str]| {
        let results = at.path().join(format!("results-{cublaslt}-{}", more.len()));
        let fixed = ["run", "arithmetic-bench", "--device", "cuda", "--limit", "3", "--max-tokens", "4", "--json"];
        let at_results = ["--results", results.to_str().unwrap()];
        let ended = earnest(&at, &[("MOCK_CUBLASLT", cublaslt)], &[&fixed[..], &at_results, more].concat());
        let document: serde_json::Value = serde_json::from_slice(&ended.stdout).expect("a document");
        let manifest = &document["manifest"];
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let engine = text(&manifest["settings"]["engine"]);
        (engine, text(&manifest["engine"]["options"]["products"]), text(&manifest["run"]), words(&ended))
    };
    let (engine, products, library_run, _) = run("0", &[]);
    assert_eq!((engine.as_str(), products.as_str()), ("native-cuda-cublaslt", "cublasLt"));
    let (engine, products, own_run, text) = run("1", &[]);
    assert_eq!((engine.as_str(), products.as_str()), ("native-cuda-batch-invariant", "own"));
    assert!(text.contains("libcublasLt.so.13: cublasLtCreate failed: CUBLAS_STATUS_NOT_INITIALIZED"), "{text}");
    assert_ne!(library_run, own_run);
    // What stands in for cublasLt is what strictness asks for: the same arithmetic, the same run.
    assert_eq!(run("0", &["--batch-invariant"]).2, own_run);
}

/// A new folder with a copy of the kernels' sources.
fn kernels(at: &TempDir) -> std::path::PathBuf {
    let (from, to) =
        (Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/engine/src/cuda/kernels"), at.path().join("kernels"));
    std::fs::create_dir(&to).unwrap();
    for file in std::fs::read_dir(from).unwrap().flatten() {
        let name = file.file_name().into_string().unwrap();
        if name.ends_with(".cu") || name.ends_with(".cuh") {
            std::fs::copy(file.path(), to.join(name)).unwrap();
        }
    }
    to
}

#[test]
fn doctor_names_the_kernels_inside_the_program() {
    let Some(at) = libraries() else { return };
    std::fs::remove_file(at.path().join("libnvrtc.so.13")).unwrap();
    let doctor = earnest(&at, &[], &["doctor"]);
    assert!(words(&doctor).contains("kernels for sm_90 by nvrtc-12.9, NVRTC none"), "{}", words(&doctor));
}

#[test]
fn modified_kernels_are_another_engine() {
    let Some(at) = libraries() else { return };
    let folder = kernels(&at);
    let results = at.path().join("results");
    let run = |variables: &[(&str, &str)]| {
        let fixed = ["run", "arithmetic-bench", "--device", "cuda", "--limit", "2", "--max-tokens", "2", "--json"];
        earnest(&at, variables, &[&fixed[..], &["--results", results.to_str().unwrap()]].concat())
    };
    let engine = |output: &Output| {
        let document: serde_json::Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", words(output)));
        let manifest = &document["manifest"];
        (
            manifest["settings"]["engine"].as_str().unwrap().to_owned(),
            manifest["engine"]["options"]["modified_kernels"].clone(),
        )
    };
    let named = ("EARNEST_KERNELS", folder.to_str().unwrap());
    // The same texts are no other kernels.
    assert_eq!(engine(&run(&[named])), ("native-cuda-cublaslt".to_owned(), serde_json::Value::Null));
    let layers = folder.join("layers.cu");
    let text = std::fs::read_to_string(&layers).unwrap();
    std::fs::write(&layers, text + "// changed\n").unwrap();
    let modified = run(&[named]);
    let (name, digest) = engine(&modified);
    let digest = digest.as_str().unwrap().to_owned();
    assert_eq!((name, digest.len()), (format!("native-cuda-cublaslt+kernels-{digest}"), 12));
    // Its run goes on with these kernels only.
    let document: serde_json::Value = serde_json::from_slice(&modified.stdout).unwrap();
    let name = document["manifest"]["run"].as_str().unwrap();
    let other = earnest(&at, &[], &["run", "--from", name, "--results", results.to_str().unwrap()]);
    assert_eq!(other.status.code(), Some(2), "{}", words(&other));
    assert!(words(&other).contains("computed with other kernels"), "{}", words(&other));
    std::fs::remove_file(folder.join("product.cu")).unwrap();
    let incomplete = run(&[named]);
    assert_eq!(incomplete.status.code(), Some(2), "{}", words(&incomplete));
    assert!(words(&incomplete).contains("product.cu can not be read"), "{}", words(&incomplete));
}

#[test]
fn a_process_that_fails_is_named_with_its_device_and_the_others_are_kept() {
    let Some(at) = libraries() else { return };
    let results = at.path().join("results");
    let run = |gpus: &str| {
        let fixed = ["run", "arithmetic-bench", "--devices", "0,1", "--limit", "6", "--max-tokens", "2"];
        earnest(&at, &[("MOCK_DEVICES", gpus)], &[&fixed[..], &["--results", results.to_str().unwrap()]].concat())
    };
    let failed = run("1");
    let text = words(&failed);
    assert_eq!(failed.status.code(), Some(5), "{text}");
    assert!(text.contains("the process on cuda:1 failed") && text.contains("there is no cuda:1"), "{text}");
    assert!(text.contains("the same command continues"), "{text}");
    let joined = run("2");
    assert!(joined.status.success() && words(&joined).contains("2 parts joined, 6 samples"), "{}", words(&joined));
}
