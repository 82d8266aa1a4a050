//! `earnest-dev` on stand-ins of NVIDIA's libraries, where kernels compute nothing.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]
use std::path::{Path, PathBuf};
use std::process::Output;

use tempfile::TempDir;

#[path = "../../../tests/cuda_twin/stand_ins.rs"]
mod stand_ins;
use stand_ins::words;

const LLAMA: &str = "tests/golden/engine/checkpoints/llama";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn libraries() -> Option<TempDir> {
    stand_ins::libraries(&root())
}

/// Memory and handles that the last process had left when it ended.
fn left(libraries: &TempDir) -> String {
    std::fs::read_to_string(libraries.path().join("report")).unwrap()
}

fn dev(libraries: &TempDir, variables: &[(&str, &str)], args: &[&str]) -> Output {
    stand_ins::run(env!("CARGO_BIN_EXE_earnest-dev"), &root(), libraries, variables, args)
}

#[test]
fn every_call_is_one_that_a_driver_takes_and_everything_is_given_back() {
    let Some(at) = libraries() else { return };
    let all = "tests/golden/engine/checkpoints";
    for options in [&["--dtype", "bf16"][..], &["--dtype", "f32"], &["--quant", "q8_0"], &["--batch-invariant"]] {
        let ended = dev(&at, &[], &[&["golden", all, "--device", "cuda"], options].concat());
        let text = words(&ended);
        // The kernels compute nothing, which has to be noticed.
        assert_eq!(ended.status.code(), Some(5), "{text}");
        assert!(text.contains("NOT all within") && text.contains("Mock 0"), "{text}");
        let own = options.contains(&"--batch-invariant");
        assert!(text.contains(if own { "products by own kernels" } else { "products by cublasLt 130100" }), "{text}");
        assert!(left(&at).starts_with("memory 0 handles 0 "), "{options:?}: {}", left(&at));
    }
    let checked = dev(&at, &[], &["kernels"]);
    assert_eq!(checked.status.code(), Some(5), "{}", words(&checked));
    assert!(words(&checked).contains("85 checks, 85 wrong"), "{}", words(&checked));
    assert!(left(&at).starts_with("memory 0 handles 0 "), "{}", left(&at));
    // A consumer card: heads above 128 are left out of the checks, and nothing asks for more shared memory than there is.
    let smaller = dev(&at, &[("MOCK_SHARED", "101376")], &["kernels"]);
    assert!(words(&smaller).contains("82 checks, 82 wrong"), "{}", words(&smaller));
}

#[test]
fn warp_groups_make_calls_that_a_driver_takes_and_are_refused_elsewhere() {
    let Some(at) = libraries() else { return };
    let mixture = "tests/golden/engine/checkpoints/gpt-oss-mxfp4";
    let fixed = ["--device", "cuda", "--cuda-variant", "wgmma"];
    for (model, options) in [(LLAMA, &["--dtype", "bf16"][..]), (LLAMA, &["--quant", "q8_0"]), (mixture, &[])] {
        let ended = dev(&at, &[], &[&["golden", model], &fixed[..], options].concat());
        assert_eq!(ended.status.code(), Some(5), "{}", words(&ended));
        assert!(left(&at).starts_with("memory 0 handles 0 "), "{model} {options:?}: {}", left(&at));
    }
    let refused = dev(&at, &[("MOCK_MAJOR", "10")], &[&["golden", LLAMA], &fixed[..], &["--dtype", "bf16"]].concat());
    let text = words(&refused);
    assert!(refused.status.code() == Some(5) && text.contains("9.0, and Mock 0 has 10.0"), "{text}");
    assert!(left(&at).starts_with("memory 0 handles 0 "), "{}", left(&at));
}

#[test]
fn products_in_8_bit_floats_make_calls_that_a_driver_takes_and_are_refused_by_older_devices() {
    let Some(at) = libraries() else { return };
    let mixture = "tests/golden/engine/checkpoints/gpt-oss-mxfp4";
    for (model, more) in [(LLAMA, &[][..]), (LLAMA, &["--cuda-variant", "wgmma"]), (mixture, &["--batch-invariant"])] {
        let fixed = ["golden", model, "--device", "cuda", "--compute", "fp8"];
        let ended = dev(&at, &[], &[&fixed[..], more].concat());
        assert_eq!(ended.status.code(), Some(5), "{}", words(&ended));
        assert!(words(&ended).contains("NOT all within"), "{model} {more:?}: {}", words(&ended));
        assert!(left(&at).starts_with("memory 0 handles 0 "), "{model} {more:?}: {}", left(&at));
    }
    let asked = ["golden", LLAMA, "--device", "cuda", "--compute", "fp8"];
    let refused = dev(&at, &[("MOCK_MAJOR", "8"), ("MOCK_MINOR", "6")], &asked);
    let text = words(&refused);
    assert!(refused.status.code() == Some(5) && text.contains("8.9") && text.contains("Mock 0 has 8.6"), "{text}");
    let on_cpu = dev(&at, &[], &["golden", LLAMA, "--device", "cpu", "--compute", "fp8"]);
    assert!(on_cpu.status.code() == Some(2) && words(&on_cpu).contains("on a GPU only"), "{}", words(&on_cpu));
}

#[test]
fn the_kernels_inside_the_program_need_no_compiler() {
    let Some(at) = libraries() else { return };
    std::fs::remove_file(at.path().join("libnvrtc.so.13")).unwrap();
    let golden = ["golden", LLAMA, "--device", "cuda", "--dtype", "bf16"];
    let computed = dev(&at, &[], &golden);
    let text = words(&computed);
    assert!(computed.status.code() == Some(5) && text.contains("NOT all within"), "{text}");
    assert!(text.contains("kernels for sm_90 by nvrtc-12.9"), "{text}");
    // A driver that refuses them, and nothing to compile others with.
    let refused = dev(&at, &[("MOCK_EMBEDDED", "0")], &golden);
    let text = words(&refused);
    assert_eq!(refused.status.code(), Some(5), "{text}");
    assert!(text.contains("NVRTC") && text.contains("the driver refuses those inside the program"), "{text}");
}

#[test]
fn where_the_driver_refuses_the_kernels_inside_the_program_they_are_compiled() {
    let Some(at) = libraries() else { return };
    let compiled = dev(&at, &[("MOCK_EMBEDDED", "0")], &["golden", LLAMA, "--device", "cuda"]);
    assert!(words(&compiled).contains("NOT all within"), "{}", words(&compiled));
    let kept = std::fs::read_dir(at.path().join("cache/kernels")).unwrap().count();
    assert!(kept >= 2, "compiled kernels are kept: {kept}");
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
    let fixed = ["profile", "--model", LLAMA, "--device", "cuda", "--dtype", "bf16", "--save", save.to_str().unwrap()];
    let measured = dev(&at, &[], &[&fixed[..], &sizes, &["--json"]].concat());
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
            rows.iter().filter(|row| row["kernel"] == "join_norm").all(|row| row["bytes"].as_u64().unwrap() > 0),
            "{rows:?}"
        );
    }
    let saved: serde_json::Value = serde_json::from_slice(&std::fs::read(&save).unwrap()).unwrap();
    assert_eq!(saved["profile"].as_array().unwrap().len(), 3);
    assert!(left(&at).starts_with("memory 0 handles 0 "), "{}", left(&at));
    let table = dev(&at, &[], &[&fixed[..], &sizes].concat());
    assert!(words(&table).contains("by the device's events") && words(&table).contains("of peak"), "{}", words(&table));
    let cpu = dev(&at, &[], &["profile", "--model", LLAMA, "--device", "cpu"]);
    assert!(cpu.status.code() == Some(2) && words(&cpu).contains("add --device cuda"), "{}", words(&cpu));
}

#[test]
fn a_device_that_breaks_names_the_kernel_and_a_new_process_goes_on() {
    let Some(at) = libraries() else { return };
    let rows = |variables: &[(&str, &str)], args: &[&str]| {
        let ended = dev(&at, variables, args);
        let text = String::from_utf8(ended.stdout.clone()).unwrap();
        let rows: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (ended.status.code(), rows, words(&ended))
    };
    // The 40th launch fails, and everything after it in that process.
    let once = at.path().join("once");
    let broken = [("MOCK_FAIL_AT", "40"), ("MOCK_FAIL_ONCE", once.to_str().unwrap())];
    let (code, checks, text) = rows(&broken, &["kernels", "--json"]);
    let named: Vec<&serde_json::Value> = checks.iter().filter(|row| row.get("broken").is_some()).collect();
    assert_eq!((code, checks.len(), named.len()), (Some(5), 86, 1), "{text}");
    let said = named[0]["broken"].as_str().unwrap();
    assert!(said.contains("CUDA_ERROR_ILLEGAL_ADDRESS") && said.contains("launches, of which the last was"), "{said}");
    assert!(said.contains("blocks of") && said.contains("EARNEST_CUDA_SYNC=1"), "{said}");
    assert_eq!(checks.last().unwrap()["checks"], 85);
    // With waiting, the launch itself is named.
    std::fs::remove_file(&once).unwrap();
    let waiting = [broken[0], broken[1], ("EARNEST_CUDA_SYNC", "1")];
    let (_, checks, _) = rows(&waiting, &["kernels", "--json"]);
    let said = checks.iter().find_map(|row| row["broken"].as_str()).unwrap();
    assert!(said.contains(", in ") && said.contains("blocks of") && !said.contains("one of"), "{said}");
    // A wait would end a record, so there is none inside.
    let recorded = dev(&at, &[("EARNEST_CUDA_SYNC", "1")], &["golden", LLAMA, "--device", "cuda", "--dtype", "bf16"]);
    assert!(recorded.status.code() == Some(5) && words(&recorded).contains("NOT all within"), "{}", words(&recorded));
    // A checkpoint is named, and those after it are compared.
    std::fs::remove_file(&once).unwrap();
    let folder = "tests/golden/engine/checkpoints";
    let golden = ["golden", folder, "--device", "cuda", "--dtype", "bf16", "--rounding", "--json"];
    let (code, rows, text) = rows(&broken, &golden);
    let named: Vec<usize> = (0..rows.len()).filter(|&i| rows[i].get("broken").is_some()).collect();
    assert!(code == Some(5) && named == [0] && rows.len() == 26, "{text}");
    assert!(rows[0]["checkpoint"] == "gemma" && rows[25]["wrong"].as_u64().unwrap() > 1, "{text}");
}

#[test]
fn random_weights_are_loaded_by_copies_on_the_device() {
    let Some(at) = libraries() else { return };
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
    let workloads = ["--shared", "6,64,10,4", "--ragged", "6,64,10,12", "--short", "5,12,3", "--json"];
    let fixed = ["device", "--random", "tiny", "--device", "cuda"];
    let measured = dev(&at, &[], &[&fixed[..], &sizes, &workloads].concat());
    let d: serde_json::Value =
        serde_json::from_slice(&measured.stdout).unwrap_or_else(|_| panic!("{}", words(&measured)));
    assert_eq!((&d["model"], d["decode"].as_array().unwrap().len()), (&"random tiny".into(), 2));
    // Requests that end one by one take more steps than those that end together.
    assert!(d["ragged"]["steps"].as_u64() > d["shared"]["steps"].as_u64(), "{d}");
    assert!(left(&at).starts_with("memory 0 handles 0 "), "{}", left(&at));
    let unknown = dev(&at, &[], &["device", "--random", "llama-9"]);
    assert!(unknown.status.code() == Some(2) && words(&unknown).contains("llama-3-8b"), "{}", words(&unknown));
    let neither = dev(&at, &[], &["device"]);
    assert!(neither.status.code() == Some(2) && words(&neither).contains("--random"), "{}", words(&neither));
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
        let output = dev(&at, &[("MOCK_PTXAS", &words)], &["assemble", architecture]);
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
