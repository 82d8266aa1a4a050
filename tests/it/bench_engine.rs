//! `earnest bench engine` on a tiny checkpoint: output, arguments refused before loading, and Ctrl-C.

use crate::bench_program::{Running, outcome};
use serde_json::Value;

fn engine(words: &[&str]) -> (i32, String, String) {
    outcome("engine", words)
}

#[test]
fn a_workload_is_measured_and_prompts_that_do_not_fit_are_refused_before_loading() {
    let (code, stdout, stderr) =
        engine(&["--workload", "zero-shot", "--prompts", "1", "--new-tokens", "1", "--repeat", "1"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("zero-shot: 1 prompt, 1 new token each") && stdout.contains("one repetition"), "{stdout}");
    let (code, _, stderr) = engine(&["--workload", "zero-shot", "--new-tokens", "99999"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("context") && stderr.contains("--new-tokens") && !stderr.contains("loading"), "{stderr}");
}

#[test]
fn the_roofline_of_a_sweep_is_never_exceeded_by_far() {
    let words = ["--sweep", "--batch", "2,1", "--prompt-tokens", "16", "--shared", "0", "--new-tokens", "4", "--json"];
    // Whatever else runs here may take the processor while the peaks are measured: one quiet moment is enough.
    let within = (0..5).any(|_| {
        let (code, stdout, stderr) = engine(&words);
        assert_eq!(code, 0, "{stderr}");
        let d: Value = serde_json::from_str(&stdout).unwrap();
        let loads = d["sweep"].as_array().unwrap();
        assert_eq!(loads.iter().map(|load| load["batch"].as_u64().unwrap()).collect::<Vec<_>>(), [2, 1]);
        // The tiny model's weights are read from a cache, and so are the bytes that its bandwidth is measured with.
        assert!(d["peaks"]["buffer_bytes"].as_u64().unwrap() < 64 << 20, "{}", d["peaks"]);
        let shares = loads.iter().flat_map(|load| [&load["prefill_of_roofline"], &load["decode_of_roofline"]]);
        shares.map(|share| share.as_f64().unwrap()).all(|share| share > 0.0 && share <= 1.0)
    });
    assert!(within);
    let (code, _, stderr) = engine(&["--sweep", "--prompt-tokens", "100000"]);
    assert!(code == 2 && stderr.contains("nothing to measure"), "{stderr}");
}

#[test]
fn what_was_measured_before_ctrl_c_is_printed() {
    const REPEAT: usize = 1000;
    let repeat = REPEAT.to_string();
    let words = ["--workload", "zero-shot", "--prompts", "2", "--new-tokens", "2", "--repeat", &repeat, "--json"];
    let running = Running::until("engine", &words, "measuring");
    // Long enough for a repetition of two short prompts.
    std::thread::sleep(std::time::Duration::from_secs(1));
    let (code, text, rest) = running.interrupt();
    let d: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("no document: {rest}"));
    let repetitions = d["measurements"][0]["repetitions"].as_array().unwrap().len();
    match code {
        130 => {
            assert!((1..REPEAT).contains(&repetitions), "{repetitions}");
            assert!(rest.contains(&format!("interrupted: {repetitions} of {REPEAT} repetitions")), "{rest}");
        }
        // A machine that does all of it in the meantime was not interrupted.
        code => assert_eq!((code, repetitions), (0, REPEAT), "{rest}"),
    }
}

#[test]
fn a_sweep_that_was_stopped_says_so() {
    let words = ["--sweep", "--batch", "1", "--prompt-tokens", "16", "--shared", "0", "--repeat", "1000"];
    let (code, stdout, rest) = Running::until("engine", &words, "measuring batch").interrupt();
    // A load that was not repeated as often as was asked is no load that was measured.
    assert_eq!(code, 130, "{rest}");
    assert!(stdout.is_empty() && rest.contains("0 of 1 loads were measured"), "{rest}");
}
