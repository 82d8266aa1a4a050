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
    // A profile has no other device, and says why there is none before it loads anything.
    let profile = earnest(&["dev", "gpu-profile", "--model", LLAMA]);
    let text = words(&profile);
    assert!(profile.status.code() == Some(5) && text.contains("NVIDIA's driver"), "{text}");
    assert!(!text.contains("loading"), "{text}");
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

/// A command of the acceptance script with this program.
fn script(command: &str, work: &Path) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut script = Command::new("python3");
    script.args(["scripts/gpu_acceptance.py", command, "--binary", env!("CARGO_BIN_EXE_earnest"), "--work"]).arg(work);
    script.current_dir(root).env_remove("EARNEST_DEVICE").env_remove("EARNEST_KERNELS").env_remove("OUT");
    // The committed reference checkpoints: a folder with others makes other numbers of them.
    script.env("PYTHONDONTWRITEBYTECODE", "1").env_remove("EARNEST_GOLDEN");
    script
}

/// Runs a command of the acceptance script with this program.
fn acceptance(command: &str, work: &Path, options: &[&str]) -> Output {
    script(command, work).args(options).output().unwrap()
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
    assert_eq!((cut.len(), tried.len()), (59, 59), "{}", words(&whole));
    assert!(matches!(count(&tried, "not run"), 32 | 36), "{}", words(&whole));
    // What was done before the cut was not done again.
    assert_eq!(String::from_utf8_lossy(&whole.stdout).matches("done before").count(), 4, "{}", words(&whole));
    // Another command of the same program repeats nothing, and the summary has what is known.
    let summary = acceptance("summary", folder.path(), &[]);
    assert_eq!(verdicts(&summary).len(), 59, "{}", words(&summary));
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
        let point = if command == "numbers" { "speed-fp8" } else { "variant-fp8-agrees" };
        assert!(tried.iter().any(|(step, _)| step == point), "{command} has {point}: {}", words(&ended));
    }
}

#[test]
fn results_of_an_earlier_machine_are_taken_over_if_its_gpu_is_of_this_kind() {
    if !can_run_the_script() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let run = |work: &str, more: &[&str]| {
        let mut script = script("correctness", &at(work));
        script.args(["--dry-run", "--only", "golden"]).args(more).env("OUT", at("out")).output().unwrap()
    };
    std::fs::create_dir(at("out")).unwrap();
    let first = run("first", &[]);
    assert!(first.status.success(), "{}", words(&first));
    let archive = at("earlier.tar.gz");
    std::fs::copy(at("out").join("gpu-acceptance.tar.gz"), &archive).unwrap();
    let resume = ["--resume", archive.to_str().unwrap()];
    let taken = run("second", &resume);
    let text = words(&taken);
    assert!(taken.status.success() && text.contains("4 results taken over"), "{text}");
    assert_eq!(text.matches("done before").count(), 4, "{text}");
    assert!(at("second/results/golden-f32.json").is_file(), "documents are there for who compares with them");
    // Once more they are known, and nothing is lost.
    assert!(words(&run("second", &resume)).contains("0 results taken over"));
    let other = at("other.tar.gz");
    let change = "import io, json, sys, tarfile
with tarfile.open(sys.argv[1]) as old, tarfile.open(sys.argv[2], 'w:gz') as new:
    for member in old:
        data = old.extractfile(member).read()
        if member.name == 'steps.jsonl':
            rows = [dict(json.loads(line), machine='cuda:0 NVIDIA H200, 140 GiB') for line in data.splitlines()]
            data = '\\n'.join(map(json.dumps, rows)).encode()
        member.size = len(data)
        new.addfile(member, io.BytesIO(data))";
    let changed = Command::new("python3").args(["-c", change]).args([&archive, &other]).output().unwrap();
    assert!(changed.status.success(), "{}", words(&changed));
    std::fs::write(at("damaged.tar.gz"), b"no archive").unwrap();
    for (name, part) in [
        ("other.tar.gz", "results of cuda:0 NVIDIA H200, and this machine has"),
        ("damaged.tar.gz", "can not be taken over"),
    ] {
        let refused = run("third", &["--resume", at(name).to_str().unwrap()]);
        assert!(refused.status.code() == Some(2) && words(&refused).contains(part), "{name}: {}", words(&refused));
    }
}

#[test]
fn the_acceptance_is_packed_into_one_archive_that_needs_nothing_else() {
    let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok_and(|o| o.status.success());
    if !can_run_the_script() || !is_there("strip") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (archive, out) = (folder.path().join("packed.tar.xz"), folder.path().join("there"));
    // A small program in the place of this one, which takes half a minute to compress.
    let packed =
        script("pack", &folder.path().join("work")).args(["--binary", "/bin/true"]).arg(&archive).output().unwrap();
    assert!(packed.status.success() && words(&packed).contains("tar xf packed.tar.xz"), "{}", words(&packed));
    let unpacked = Command::new("python3").args(["-m", "tarfile", "-e"]).args([&archive, &out]).output().unwrap();
    assert!(unpacked.status.success(), "{}", words(&unpacked));
    let root = out.join("earnest-acceptance");
    let own = Command::new(root.join("target/release/earnest")).output().unwrap();
    assert!(own.status.success(), "the program is where the script looks for it");
    assert!(root.join("crates/engine/src/cuda/kernels/common.cuh").is_file(), "sources for EARNEST_KERNELS");
    // With the real program, from another folder.
    let mut script = Command::new("python3");
    script.arg(root.join("scripts/gpu_acceptance.py")).args(["correctness", "--dry-run", "--only", "golden-f32"]);
    script
        .args(["--binary", env!("CARGO_BIN_EXE_earnest")])
        .current_dir(folder.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env_remove("EARNEST_GOLDEN");
    let ended = script.env_remove("EARNEST_DEVICE").env_remove("EARNEST_KERNELS").env_remove("OUT").output().unwrap();
    assert!(ended.status.success() && count(&verdicts(&ended), "pass") == 2, "{}", words(&ended));
}

/// compute-sanitizer's checks run beside the others, and end when profiles need the GPU: what was done counts, the rest is told.
#[test]
fn steps_beside_others_end_in_time_and_the_rest_is_known() {
    if !can_run_the_script() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let check = "import argparse, functools, sys, time
sys.path.insert(0, 'scripts/acceptance')
from harness import Beside, Session
s = Session(argparse.Namespace(command='correctness', dry=True, seconds=60, only='', again=False, real='', variant='', work=sys.argv[1], binary=sys.executable))
step = lambda name, seconds: functools.partial(s.act, name, name, lambda: (s.run(name, ['sh', '-c', f'sleep {seconds} & wait'], 50) == 0, ''), name)
steps = [step('short', 0), step('long', 40), step('later', 0)]
beside = Beside(s, steps)
while 'short' not in s.known: time.sleep(0.01)
before = time.monotonic()
left = beside.end(keep=59)
assert left == steps[1:], left
assert time.monotonic() - before < 20, 'the long one was ended'
assert s.known['short']['verdict'] == 'pass' and s.known['long']['verdict'] == 'not run' and 'later' not in s.known, s.known
assert 'alone' in s.known['long']['detail'] and not s.children
for one in left[1:]: one()
assert s.known['later']['verdict'] == 'pass'
assert Beside(s, [step('all', 0)]).end(keep=1) == []
print('fine')";
    let mut script = Command::new("python3");
    script.args(["-c", check]).arg(folder.path()).current_dir(env!("CARGO_MANIFEST_DIR"));
    let ended =
        script.env("PYTHONDONTWRITEBYTECODE", "1").env_remove("OUT").env_remove("EARNEST_GOLDEN").output().unwrap();
    assert!(words(&ended).ends_with("fine\n"), "{}", words(&ended));
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
