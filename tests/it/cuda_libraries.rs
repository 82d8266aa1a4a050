//! The host's code for a GPU against stand-ins of NVIDIA's libraries (cuda_twin/libraries.c): kernels compute nothing there, but calls a
//! driver would refuse end the process, and leaks are counted.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

const LLAMA: &str = "tests/golden/engine/checkpoints/llama";

/// A folder with the libraries, or none where there is no C compiler.
fn libraries() -> Option<TempDir> {
    let named = std::env::var("CC").ok();
    let works = |name: &String| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    let Some(compiler) = named.into_iter().chain(["cc", "gcc", "clang"].map(String::from)).find(works) else {
        eprintln!("skipped: the stand-ins of CUDA's libraries need a C compiler");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    for (number, name) in [(1, "libcuda.so.1"), (2, "libnvrtc.so.13"), (3, "libcublasLt.so.13")] {
        let made = Command::new(&compiler)
            .args(["-shared", "-fPIC", "-O1", "-fvisibility=hidden", "-w", &format!("-DLIBRARY={number}"), "-o"])
            .arg(folder.path().join(name))
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda_twin/libraries.c"))
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    Some(folder)
}

fn earnest(libraries: &TempDir, variables: &[(&str, &str)], args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR")).env_remove("EARNEST_DEVICE");
    command.env("EARNEST_CUDA_LIBRARIES", libraries.path()).env("EARNEST_CACHE", libraries.path().join("cache"));
    command.env("MOCK_REPORT", libraries.path().join("report"));
    for (name, value) in variables {
        command.env(name, value);
    }
    command.output().unwrap()
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// Memory and handles that the last process had left when it ended.
fn left(libraries: &TempDir) -> String {
    std::fs::read_to_string(libraries.path().join("report")).unwrap()
}

#[test]
fn a_device_that_can_not_be_used_is_refused_in_words() {
    let Some(at) = libraries() else { return };
    let golden = ["bench", "golden", LLAMA, "--device"];
    for (variables, device, parts) in [
        (("MOCK_DEVICES", "2"), "cuda:9", ["there is no cuda:9", "2 GPUs, cuda:0 to cuda:1"]),
        (("MOCK_MODE", "3"), "cuda", ["Exclusive_Process", "another process"]),
        (("MOCK_DEVICES", "0"), "cuda", ["finds no usable GPU", "earnest doctor"]),
    ] {
        let refused = earnest(&at, &[variables], &[&golden[..], &[device]].concat());
        let text = words(&refused);
        assert_eq!(refused.status.code(), Some(5), "{text}");
        assert!(parts.iter().all(|part| text.contains(part)) && text.contains("--device cpu"), "{text}");
    }
    // What `auto` finds in use it leaves alone, and says so.
    let auto = earnest(&at, &[("MOCK_MODE", "3")], &["bench", "golden", LLAMA, "--device", "auto"]);
    assert!(auto.status.success() && words(&auto).contains("the GPU is not used"), "{}", words(&auto));
}

#[test]
fn every_call_is_one_that_a_driver_takes_and_everything_is_given_back() {
    let Some(at) = libraries() else { return };
    let all = "tests/golden/engine/checkpoints";
    for options in [&["--dtype", "bf16"][..], &["--dtype", "f32"], &["--quant", "q8_0"], &["--batch-invariant"]] {
        let ended = earnest(&at, &[], &[&["bench", "golden", all, "--device", "cuda"], options].concat());
        let text = words(&ended);
        // The kernels compute nothing, which has to be noticed.
        assert_eq!(ended.status.code(), Some(5), "{text}");
        assert!(text.contains("NOT all within") && text.contains("Mock 0"), "{text}");
        let own = options.contains(&"--batch-invariant");
        assert!(text.contains(if own { "products by own kernels" } else { "products by cublasLt 130100" }), "{text}");
        assert!(left(&at).starts_with("memory 0 handles 0 "), "{options:?}: {}", left(&at));
    }
    let checked = earnest(&at, &[], &["bench", "kernels"]);
    assert_eq!(checked.status.code(), Some(5), "{}", words(&checked));
    assert!(words(&checked).contains("85 checks, 85 wrong"), "{}", words(&checked));
    assert!(left(&at).starts_with("memory 0 handles 0 "), "{}", left(&at));
    // A consumer card: heads above 128 are left out of the checks, and nothing asks for more shared memory than there is.
    let smaller = earnest(&at, &[("MOCK_SHARED", "101376")], &["bench", "kernels"]);
    assert!(words(&smaller).contains("82 checks, 82 wrong"), "{}", words(&smaller));
}

#[test]
fn variants_make_calls_that_a_driver_takes_and_name_the_arithmetic_they_change() {
    let Some(at) = libraries() else { return };
    let mixture = "tests/golden/engine/checkpoints/gpt-oss-mxfp4";
    let all = "attention-warps,fused-norms,graphs,vector-dequantise,tuned-products,fused-dequantise";
    for (model, options) in [(LLAMA, &["--dtype", "bf16"][..]), (LLAMA, &["--quant", "q8_0"]), (mixture, &[])] {
        let fixed = ["bench", "golden", model, "--device", "cuda", "--cuda-variant", all];
        let ended = earnest(&at, &[], &[&fixed[..], options].concat());
        assert_eq!(ended.status.code(), Some(5), "{}", words(&ended));
        assert!(left(&at).starts_with("memory 0 handles 0 "), "{model} {options:?}: {}", left(&at));
    }
    // The stand-in has three algorithms for every shape.
    let choices = at.path().join("cache/kernels/cublaslt-130100-Mock-0.tsv");
    let choices = std::fs::read_to_string(choices).unwrap();
    assert!(choices.lines().count() > 5 && choices.lines().all(|line| line.ends_with(['0', '1', '2'])), "{choices}");
    for (variant, engine) in [
        ("graphs,fused-norms", "native-cuda-cublaslt"),
        ("tuned-products", "native-cuda-cublaslt-tuned"),
        (all, "native-cuda-cublaslt-tuned-fused-dequantise"),
        ("graphs,wgmma", "native-cuda-batch-invariant-wgmma"),
    ] {
        let results = at.path().join(format!("results-{engine}"));
        let fixed = ["run", "arithmetic-bench", "--device", "cuda", "--limit", "3", "--max-tokens", "4", "--json"];
        let more = ["--results", results.to_str().unwrap(), "--cuda-variant", variant];
        let ended = earnest(&at, &[], &[&fixed[..], &more].concat());
        let document: serde_json::Value = serde_json::from_slice(&ended.stdout).expect("a document");
        assert_eq!(document["manifest"]["settings"]["engine"], engine);
        let named = document["manifest"]["engine"]["options"]["variants"].as_array().unwrap().len();
        assert_eq!(named, variant.split(',').count(), "{document}");
    }
    // Choices that cannot be kept end the command in words, before it computes, with nothing left behind.
    let tuned = ["bench", "golden", LLAMA, "--device", "cuda", "--cuda-variant", "tuned-products", "--dtype", "bf16"];
    let unkept = earnest(&at, &[("EARNEST_CACHE", "/proc/nowhere")], &tuned);
    assert_eq!(unkept.status.code(), Some(5), "{}", words(&unkept));
    assert!(words(&unkept).contains("cannot be kept in /proc/nowhere"), "{}", words(&unkept));
    assert!(left(&at).starts_with("memory 0 handles 0 "), "{}", left(&at));
    // The only variant that a device can lack.
    let hopper = ["bench", "golden", LLAMA, "--device", "cuda", "--cuda-variant", "wgmma", "--dtype", "bf16"];
    let refused = earnest(&at, &[("MOCK_MAJOR", "10")], &hopper);
    assert!(
        refused.status.code() == Some(5) && words(&refused).contains("9.0, and Mock 0 has 10.0"),
        "{}",
        words(&refused)
    );
    assert!(left(&at).starts_with("memory 0 handles 0 "), "{}", left(&at));
    let unknown = earnest(&at, &[], &["run", "arithmetic-bench", "--cuda-variant", "fast"]);
    assert!(unknown.status.code() == Some(2) && words(&unknown).contains("attention-warps"), "{}", words(&unknown));
}

#[test]
fn products_in_8_bit_floats_make_calls_that_a_driver_takes_and_are_refused_by_older_devices() {
    let Some(at) = libraries() else { return };
    let mixture = "tests/golden/engine/checkpoints/gpt-oss-mxfp4";
    for (model, more) in [(LLAMA, &[][..]), (LLAMA, &["--cuda-variant", "wgmma"]), (mixture, &["--batch-invariant"])] {
        let fixed = ["bench", "golden", model, "--device", "cuda", "--compute", "fp8"];
        let ended = earnest(&at, &[], &[&fixed[..], more].concat());
        assert_eq!(ended.status.code(), Some(5), "{}", words(&ended));
        assert!(words(&ended).contains("NOT all within"), "{model} {more:?}: {}", words(&ended));
        assert!(left(&at).starts_with("memory 0 handles 0 "), "{model} {more:?}: {}", left(&at));
    }
    let asked = ["bench", "golden", LLAMA, "--device", "cuda", "--compute", "fp8"];
    let refused = earnest(&at, &[("MOCK_MAJOR", "8"), ("MOCK_MINOR", "6")], &asked);
    let text = words(&refused);
    assert!(refused.status.code() == Some(5) && text.contains("8.9") && text.contains("Mock 0 has 8.6"), "{text}");
    let on_cpu = earnest(&at, &[], &["bench", "golden", LLAMA, "--device", "cpu", "--compute", "fp8"]);
    assert!(on_cpu.status.code() == Some(2) && words(&on_cpu).contains("on a GPU only"), "{}", words(&on_cpu));
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
fn the_kernels_inside_the_program_need_no_compiler() {
    let Some(at) = libraries() else { return };
    std::fs::remove_file(at.path().join("libnvrtc.so.13")).unwrap();
    let golden = ["dev", "golden", LLAMA, "--device", "cuda", "--dtype", "bf16"];
    let computed = earnest(&at, &[], &golden);
    let text = words(&computed);
    assert!(computed.status.code() == Some(5) && text.contains("NOT all within"), "{text}");
    assert!(text.contains("kernels for sm_90 by nvrtc-12.9"), "{text}");
    let doctor = earnest(&at, &[], &["doctor"]);
    assert!(words(&doctor).contains("kernels for sm_90 by nvrtc-12.9, NVRTC none"), "{}", words(&doctor));
    // A driver that refuses them, and nothing to compile others with.
    let refused = earnest(&at, &[("MOCK_EMBEDDED", "0")], &golden);
    let text = words(&refused);
    assert_eq!(refused.status.code(), Some(5), "{text}");
    assert!(text.contains("NVRTC") && text.contains("the driver refuses those inside the program"), "{text}");
}

#[test]
fn where_the_driver_refuses_the_kernels_inside_the_program_they_are_compiled() {
    let Some(at) = libraries() else { return };
    let compiled = earnest(&at, &[("MOCK_EMBEDDED", "0")], &["dev", "golden", LLAMA, "--device", "cuda"]);
    assert!(words(&compiled).contains("NOT all within"), "{}", words(&compiled));
    let kept = std::fs::read_dir(at.path().join("cache/kernels")).unwrap().count();
    assert!(kept >= 2, "compiled kernels are kept: {kept}");
}

/// End of `scripts/cuda-assemble.sh` with a compiler that reports slow kernels, so that none becomes slow unnoticed.
#[test]
fn kernels_that_spill_or_wait_for_their_products_end_their_assembly() {
    let Some(at) = libraries() else { return };
    let assembled = |architecture: &str, kernel: &str, spilled: u32, more: &str| {
        let words = format!(
            "ptxas info    : Compiling entry function 'earnest_{kernel}' for '{architecture}'\n    \
             900 bytes stack frame, {spilled} bytes spill stores, {spilled} bytes spill loads\n\
             ptxas info    : Used 200 registers, 128 bytes smem\n{more}"
        );
        let output = earnest(&at, &[("MOCK_PTXAS", &words)], &["doctor", "--assemble", architecture]);
        (output.status.code(), self::words(&output))
    };
    let (code, text) = assembled("sm_90", "norm", 0, "");
    assert!(code == Some(0) && text.contains("layers-bf16 norm") && text.contains("200 registers"), "{text}");
    let (code, text) = assembled("sm_90", "attend_tall", 768, "");
    assert!(code == Some(0) && text.contains("768 bytes spilled"), "{text}");
    for (kernel, spilled) in [("norm", 8), ("attend_tall", 776)] {
        let (code, text) = assembled("sm_90", kernel, spilled, "");
        assert_eq!(code, Some(5), "{text}");
        // Every unit is assembled and named, not only the first.
        for unit in ["layers-bf16", "product-f16-q4k"] {
            assert!(text.contains(&format!("sm_90 {unit}: {kernel} spills {spilled} bytes a thread")), "{text}");
        }
    }
    let waits = "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ill formed pipeline stage\n";
    let (code, text) = assembled("sm_90a", "wgmma_192", 0, waits);
    assert!(
        code == Some(5) && text.contains("sm_90a wgmma-bf16-dense: ptxas info") && text.contains("serialized"),
        "{text}"
    );
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
fn a_profile_has_the_launches_of_every_measurement() {
    let Some(at) = libraries() else { return };
    let save = at.path().join("saved.json");
    let sizes = [
        "--decode",
        "1,3",
        "--decode-context",
        "40",
        "--decode-steps",
        "12",
        "--prefill",
        "2",
        "--prefill-length",
        "64",
    ];
    let fixed = [
        "dev",
        "gpu-profile",
        "--model",
        LLAMA,
        "--device",
        "cuda",
        "--dtype",
        "bf16",
        "--save",
        save.to_str().unwrap(),
    ];
    let measured = earnest(&at, &[], &[&fixed[..], &sizes, &["--json"]].concat());
    let document: serde_json::Value =
        serde_json::from_slice(&measured.stdout).unwrap_or_else(|_| panic!("{}", words(&measured)));
    assert_eq!(document["peaks"]["clock"], "device-events");
    let phases = document["profile"].as_array().unwrap();
    let names: Vec<&str> = phases.iter().map(|phase| phase["phase"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "decode, batch 1, prompts of 40 tokens",
            "decode, batch 3, prompts of 40 tokens",
            "prefill, 2 prompts of 64 tokens"
        ]
    );
    for phase in phases {
        let profile = &phase["profile"];
        let steps = profile["steps"].as_u64().unwrap();
        let rows = profile["rows"].as_array().unwrap();
        let of = |kernel: &str| -> u64 {
            let rows = rows.iter().filter(|row| row["kernel"] == kernel);
            rows.map(|row| row["launches"].as_u64().unwrap()).sum()
        };
        assert!(steps > 0 && of("embed") == steps && of("choose") <= steps && of("cublasLt") > 4 * steps, "{profile}");
        // The stand-in's work takes a microsecond.
        let launches: u64 = rows.iter().map(|row| row["launches"].as_u64().unwrap()).sum();
        let busy = profile["busy_s"].as_f64().unwrap() * steps as f64;
        assert!((busy - 1e-6 * launches as f64).abs() < 1e-9 * launches as f64, "{busy} {launches}");
        assert!(
            rows.iter().filter(|row| row["kernel"] == "norm").all(|row| row["bytes"].as_u64().unwrap() > 0),
            "{rows:?}"
        );
    }
    let saved: serde_json::Value = serde_json::from_slice(&std::fs::read(&save).unwrap()).unwrap();
    assert_eq!(saved["profile"].as_array().unwrap().len(), 3);
    assert!(left(&at).starts_with("memory 0 handles 0 "), "{}", left(&at));
    let table = earnest(&at, &[], &[&fixed[..], &sizes].concat());
    assert!(words(&table).contains("by the device's events") && words(&table).contains("of peak"), "{}", words(&table));
    let cpu = earnest(&at, &[], &["dev", "gpu-profile", "--model", LLAMA, "--device", "cpu"]);
    assert!(cpu.status.code() == Some(2) && words(&cpu).contains("needs a GPU"), "{}", words(&cpu));
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
