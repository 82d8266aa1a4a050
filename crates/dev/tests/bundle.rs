//! The bundle for a machine with a GPU: its size, and its steps on stand-ins of NVIDIA's libraries, which compute nothing.
#![cfg(target_os = "linux")]
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// False where a program is missing that only the scripts need.
fn can_run() -> bool {
    let missing = |name: &&str| Command::new(name).arg("--version").output().is_err();
    match ["python3", "strip", "bash", "cc"].iter().find(|name| missing(name)) {
        Some(name) => eprintln!("skipped: the scripts for a GPU need {name}"),
        None => return true,
    }
    false
}

/// Makes a bundle with this program.
fn bundle(to: &Path) -> Output {
    let mut script = Command::new(root().join("scripts/gpu/bundle.sh"));
    script.arg(to).env("EARNEST_DEV", env!("CARGO_BIN_EXE_earnest-dev")).env("PYTHONDONTWRITEBYTECODE", "1");
    script.output().unwrap()
}

/// The steps of a dry run from a checkout or a bundle: (name, verdict, what was said).
fn dry_run(run: &Path, out: &Path, variables: &[(&str, &str)], options: &[&str]) -> (Vec<[String; 3]>, Output) {
    let mut script = Command::new(run);
    script.args(["--dry-run", "--out"]).arg(out).args(options).current_dir(out.parent().unwrap());
    script.env_remove("EARNEST_CUDA_LIBRARIES").env_remove("EARNEST_KERNELS").env_remove("OUT");
    script.env("PYTHONDONTWRITEBYTECODE", "1").envs(variables.iter().copied());
    let ended = script.output().unwrap();
    let rows = std::fs::read_to_string(out.join("steps.jsonl")).unwrap_or_default();
    let rows = rows.lines().map(|line| {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        ["step", "verdict", "said"].map(|field| row[field].as_str().unwrap().to_owned())
    });
    (rows.collect(), ended)
}

fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { size(&path) } else { path.metadata().unwrap().len() }).sum()
}

/// 64 MiB travel, of which a program and its inputs leave room for results of an earlier machine.
#[test]
fn a_bundle_is_small_and_all_of_its_steps_run() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (to, out) = (folder.path().join("bundle"), folder.path().join("out"));
    let made = bundle(&to);
    assert!(made.status.success(), "{}", words(&made));
    let (program, all) = (to.join("earnest-dev.xz").metadata().unwrap().len(), size(&to));
    assert!(program <= 10 << 20 && all <= 40 << 20, "the program takes {program} bytes of {all}");
    assert!(to.join("kernels/common.cuh").is_file() && to.join("checkpoints/llama/golden.json").is_file());
    let again = bundle(&to);
    assert!(again.status.code() == Some(2) && words(&again).contains("is not empty"), "{}", words(&again));
    let (steps, ended) = dry_run(&to.join("run.sh"), &out, &[], &[]);
    let failed: Vec<_> = steps.iter().filter(|step| step[1] == "FAIL").collect();
    assert!(failed.is_empty() && ended.status.success(), "{failed:?} {}", words(&ended));
    for name in
        ["environment", "kernels", "golden bf16", "racecheck wgmma", "8B", "8B profile", "agreement fp8", "0.5B"]
    {
        assert!(steps.iter().any(|step| step[0] == name && step[1] == "pass"), "{name}: {}", words(&ended));
    }
    let of = |name: &str| &steps.iter().find(|step| step[0] == name).unwrap()[2];
    assert!(of("kernels").starts_with("85 lines, 85 wrong") && of("8B").contains("ragged 6 prompts"), "{}", of("8B"));
    // Everything that was measured comes back in one file.
    assert!(out.join("results.tar.xz").metadata().unwrap().len() > 1000);
}

#[test]
fn the_second_call_is_shorter() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = ["--program", env!("CARGO_BIN_EXE_earnest-dev"), "--second"];
    let (steps, ended) = dry_run(&root().join("scripts/gpu/run.sh"), &folder.path().join("out"), &[], &program);
    assert!(ended.status.success() && steps.len() < 30, "{}", words(&ended));
    // What tells most comes before the sanitizers, which take what is left.
    let at = |name: &str| steps.iter().position(|step| step[0] == name).unwrap();
    assert!(at("golden bf16") < at("8B") && at("8B") < at("memcheck kernels"), "{}", words(&ended));
}

#[test]
fn a_fault_is_looked_for_instead_of_measuring() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let run = root().join("scripts/gpu/run.sh");
    let options = ["--program", env!("CARGO_BIN_EXE_earnest-dev"), "--only", "kernels"];
    let (steps, ended) = dry_run(&run, &folder.path().join("out"), &[("MOCK_FAIL_AT", "40")], &options);
    assert_eq!(ended.status.code(), Some(1), "{}", words(&ended));
    let verdicts: Vec<[&str; 2]> = steps.iter().map(|step| [step[0].as_str(), step[1].as_str()]).collect();
    assert_eq!(verdicts[..2], [["kernels", "FAIL"], ["kernels with waiting", "FAIL"]], "{}", words(&ended));
    let [_, _, said] = &steps[1];
    assert!(said.contains("CUDA_ERROR_ILLEGAL_ADDRESS") && said.contains("blocks of"), "{said}");
    // Recorded steps are found too, with and without waiting.
    let of_a_step = ["--program", env!("CARGO_BIN_EXE_earnest-dev"), "--only", "golden bf16 batch"];
    let (steps, ended) = dry_run(&run, &folder.path().join("step"), &[("MOCK_FAIL_AT", "200")], &of_a_step);
    assert!(steps.len() == 2 && steps.iter().all(|step| step[1] == "FAIL"), "{}", words(&ended));
    assert!(steps[1][2].contains(", in ") && steps[1][2].contains("blocks of"), "{}", steps[1][2]);
    // Nothing that was checked is no success, and neither is a time that is over.
    for options in [&["--seconds", "1"][..], &["--only", "nonsense"]] {
        let out = folder.path().join(options[1]);
        let (steps, nothing) = dry_run(&run, &out, &[], &[&["--program", "/bin/true"], options].concat());
        assert!(nothing.status.code() == Some(1) && steps.iter().all(|step| step[1] != "pass"), "{}", words(&nothing));
    }
    let again = dry_run(&run, &folder.path().join("step"), &[], &of_a_step).1;
    assert!(words(&again).contains("name a new folder with --out"), "{}", words(&again));
}

/// The words of compute-sanitizer, as an H200 gave them: what is a finding, what is clean, and what says nothing.
#[test]
fn the_words_of_a_sanitizer_are_understood() {
    if !can_run() {
        return;
    }
    let check = r#"import sys, tempfile, types
source = open('scripts/gpu/steps.py').read().rsplit('main()', 1)[0]
steps = types.ModuleType('steps')
steps.__file__ = 'scripts/gpu/steps.py'
exec(compile(source, 'steps.py', 'exec'), steps.__dict__)
folder = tempfile.mkdtemp()
class S:
    dry = False
    def path(self, step, end): return folder + '/' + end
def judged(code, *lines):
    open(folder + '/out', 'w').write(chr(10).join(lines))
    open(folder + '/err', 'w').close()
    return steps.sanitized(S(), None, code)[0]
line = '{"name":"a","passed":true}'
assert judged(0, line, '========= ERROR SUMMARY: 0 errors') is True
assert judged(5, '========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)', line) is True
assert judged('time', line) is True and judged('time') is None
assert judged('time', line, '========= Internal Sanitizer Error: The Sanitizer failed to handle a hardware exception') is False
assert judged('time', line, '{"name":"b","passed":false,"broken":"CUDA_ERROR_ILLEGAL_ADDRESS"}') is False
assert judged('time', line, '========= Uninitialized __global__ memory read of size 2 bytes') is False
assert judged(9, line, '========= ERROR SUMMARY: 3 errors') is False
print('fine')"#;
    let mut script = Command::new("python3");
    let ended = script.args(["-c", check]).current_dir(root()).env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap();
    assert!(words(&ended).ends_with("fine\n"), "{}", words(&ended));
}

/// benches/results/gpu.md has the tables of its command.
#[test]
fn the_page_of_the_measurements_has_what_its_command_prints() {
    if !can_run() {
        return;
    }
    let page = std::fs::read_to_string(root().join("benches/results/gpu.md")).unwrap();
    let mut script = Command::new("python3");
    script.args(["scripts/gpu/table.py", "benches/results/gpu/h200-last.jsonl"]).current_dir(root());
    let printed = script.env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap();
    let text = String::from_utf8(printed.stdout.clone()).unwrap();
    let missing: Vec<&str> = text.lines().filter(|line| !page.contains(line)).collect();
    assert!(missing.is_empty() && text.lines().count() > 60, "{missing:?} {}", words(&printed));
}
