//! Systems that cannot confine programs: nothing is run, unless the user permits it or isolates it. A filter of system calls in the
//! program's process plays the kernel without landlock, seccomp and the rest.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use serde_json::{Value, json};

/// A part that the kernel of a test lacks.
#[derive(Debug, Clone, Copy)]
enum Lacking {
    Landlock,
    Seccomp,
    NoNewPrivileges,
    Limits,
}

/// Calls that fail with this error, where these conditions hold.
fn refusal(lacking: Lacking) -> (u32, Vec<(i64, Vec<SeccompRule>)>) {
    let argument = |number: u8, length, comparison, value| {
        let condition = SeccompCondition::new(number, length, comparison, value).unwrap();
        vec![SeccompRule::new(vec![condition]).unwrap()]
    };
    let prctl = |option: i32| argument(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, option as u64);
    match lacking {
        Lacking::Landlock => (libc::ENOSYS as u32, (444..=446).map(|call| (call, Vec::new())).collect()),
        Lacking::Seccomp => {
            (libc::ENOSYS as u32, vec![(libc::SYS_seccomp, Vec::new()), (libc::SYS_prctl, prctl(libc::PR_SET_SECCOMP))])
        }
        Lacking::NoNewPrivileges => (libc::EINVAL as u32, vec![(libc::SYS_prctl, prctl(libc::PR_SET_NO_NEW_PRIVS))]),
        // Setting limits, not reading them.
        Lacking::Limits => {
            let set = argument(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0);
            (libc::EPERM as u32, vec![(libc::SYS_prlimit64, set)])
        }
    }
}

/// Runs the program on a kernel that lacks these parts.
fn earnest_on(lacking: &[Lacking], folder: &Path, words: &[&str]) -> Output {
    let filters: Vec<BpfProgram> = lacking
        .iter()
        .map(|&lacking| {
            let (error, calls) = refusal(lacking);
            let calls: BTreeMap<i64, Vec<SeccompRule>> = calls.into_iter().collect();
            let architecture = std::env::consts::ARCH.try_into().unwrap();
            let refused = SeccompAction::Errno(error);
            let filter = SeccompFilter::new(calls, SeccompAction::Allow, refused, architecture).unwrap();
            filter.try_into().unwrap()
        })
        .collect();
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    command.current_dir(folder).args(words).stdin(Stdio::null()).env_remove("EARNEST_RESULTS");
    command.env("THE_API_KEY", "sk-secret");
    // SAFETY: the closure makes system calls alone; the filters were made before the fork. That of `seccomp` itself is the last.
    unsafe {
        command.pre_exec(move || {
            filters.iter().try_for_each(|filter| seccompiler::apply_filter(filter).map_err(std::io::Error::other))
        });
    }
    command.output().unwrap()
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn doctor(lacking: &[Lacking], words: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let output = earnest_on(lacking, folder.path(), &[&["doctor", "--json"], words].concat());
    assert!(output.status.success(), "{:?}", texts(&output));
    serde_json::from_slice::<Value>(&output.stdout).unwrap()["sandbox"].take()
}

fn python() -> Option<&'static str> {
    let found = Path::new("/usr/bin/python3").exists();
    if !found {
        eprintln!("not checked with CPython: there is no /usr/bin/python3");
    }
    found.then_some("/usr/bin/python3")
}

#[test]
fn every_part_that_is_missing_is_named_and_nothing_runs() {
    let cases = [
        (vec![Lacking::Landlock], vec!["landlock (this kernel does not have it)"]),
        (vec![Lacking::Seccomp], vec!["seccomp (Function not implemented"]),
        (vec![Lacking::Landlock, Lacking::Seccomp], vec!["landlock", "seccomp"]),
        (vec![Lacking::NoNewPrivileges], vec!["no-new-privileges (Invalid argument"]),
        (vec![Lacking::Limits], vec!["resource limits (RLIMIT_AS: Operation not permitted"]),
    ];
    for (lacking, named) in cases {
        for words in [Vec::new(), python().map_or_else(Vec::new, |python| vec!["--python", python])] {
            let found = doctor(&lacking, &words);
            assert_eq!(found["report"], Value::Null, "{lacking:?}: {found}");
            let problem = found["problem"].as_str().unwrap();
            assert!(named.iter().all(|name| problem.contains(name)), "{lacking:?}: {problem}");
            let help = found["help"].as_str().unwrap();
            assert!(help.contains("--unconfined") && help.contains("--sandbox-command"), "{help}");
            // Permitted, it runs with what is left.
            let permitted = doctor(&lacking, &[&words[..], &["--unconfined"]].concat());
            let missing = permitted["report"]["confinement"]["missing"].as_array().unwrap();
            assert!(missing.len() >= named.len(), "{lacking:?}: {permitted}");
        }
    }
    let whole = doctor(&[], &[]);
    let confinement = &whole["report"]["confinement"];
    assert!(confinement["landlock"].as_u64() >= Some(1) && confinement["seccomp"] == true, "{whole}");
    assert!(confinement["limits"] == true && confinement["no_new_privileges"] == true, "{whole}");
    assert_eq!((confinement.get("missing"), whole["report"]["reached"].as_array().unwrap().len()), (None, 0));
}

/// Programs that reach out, by the item that they answer; the third returns the number of bytes of the parent's environment that
/// are its key.
fn hostile(folder: &Path, port: u16) -> Vec<Value> {
    // Spelled so that the suite's list of forbidden words does not find it.
    let open = "fractions.sys.modules['builtins'].__dict__['op' + 'en']";
    let bodies = [
        format!("return len({open}('/etc/passwd').read())"),
        format!("random._os.unlink({:?})\n    return 1", folder.join("victim")),
        format!(
            "parent = {open}('/proc/' + str(random._os.getppid()) + '/stat').read().rsplit(') ', 1)[1].split()[1]\n    \
             found = {open}('/proc/' + parent + '/environ', 'rb').read()\n    return len('sk-secret') * (b'sk-secret' in found)"
        ),
        format!(
            "s = fractions.sys.modules['builtins'].__dict__['__import__']('_socket')\n    c = s.socket()\n    \
             c.connect(('127.0.0.1', {port}))\n    return 1"
        ),
    ];
    bodies
        .iter()
        .enumerate()
        .map(|(index, body)| json!({"item": format!("simple-code/main/{index}/0"), "completion": format!("\n    {body}\n")}))
        .collect()
}

/// Scores hostile programs on such a kernel.
fn score(lacking: &[Lacking], folder: &Path, words: &[&str]) -> Output {
    let import = ["import", "gsm-mini", "--per-template", "1", "--prompt", "simple-code", "--name", "m"];
    let rest = ["--completions", "programs.jsonl", "--json"];
    earnest_on(lacking, folder, &[&import[..], &rest, words].concat())
}

/// Completions, a file to delete and a listener to reach.
fn prepare() -> (tempfile::TempDir, TcpListener) {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    std::fs::write(folder.path().join("victim"), "42").unwrap();
    let lines = hostile(folder.path(), listener.local_addr().unwrap().port());
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(folder.path().join("programs.jsonl"), lines).unwrap();
    (folder, listener)
}

fn is_reached(folder: &Path, listener: &TcpListener) -> bool {
    !folder.join("victim").exists() || listener.accept().is_ok()
}

#[test]
fn hostile_programs_are_refused_without_confinement_and_say_so_with_permission() {
    let Some(python) = python() else { return };
    let (folder, listener) = prepare();
    let at = folder.path();
    let old_kernel = [Lacking::Landlock, Lacking::Seccomp];
    let refused = score(&old_kernel, at, &["--python", python]);
    let (said, why) = texts(&refused);
    assert_eq!(refused.status.code(), Some(5), "{why}");
    assert!(
        said.is_empty() && why.contains("landlock") && why.contains("seccomp") && why.contains("--unconfined"),
        "{why}"
    );
    assert!(!is_reached(at, &listener) && !at.join("earnest-results").exists());

    // Where the kernel confines, each of them raises.
    let confined = score(&[], at, &["--python", python]);
    assert!(confined.status.success(), "{:?}", texts(&confined));
    assert!(!is_reached(at, &listener));
    let document: Value = serde_json::from_slice(&confined.stdout).unwrap();
    let sandbox = &document["manifest"]["sandbox"];
    assert!(sandbox["interpreter"].as_str().unwrap().starts_with("CPython 3."), "{sandbox}");
    assert!(sandbox["measures"][0].as_str().unwrap().starts_with("landlock ABI ") && sandbox.get("missing").is_none());
    let (shown, _) = texts(&earnest_on(&[], at, &["runs", "show", "m"]));
    assert!(shown.contains("sandbox   CPython 3.") && shown.contains("seccomp"), "{shown}");
    let (samples, _) = texts(&earnest_on(&[], at, &["samples", "m", "--json"]));
    assert_eq!(samples.lines().count(), 4);
    assert!(samples.lines().all(|line| line.contains("Error")), "{samples}");

    // With permission they run, and do what the warning says.
    std::fs::remove_dir_all(at.join("earnest-results")).unwrap();
    let permitted = score(&old_kernel, at, &["--python", python, "--unconfined"]);
    let (said, warned) = texts(&permitted);
    assert!(permitted.status.success(), "{warned}");
    assert!(warned.contains("unconfined") && warned.contains("landlock"), "{warned}");
    assert!(!at.join("victim").exists() && listener.accept().is_ok(), "the warning is true");
    let document: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(document["manifest"]["sandbox"]["missing"].as_array().unwrap().len(), 2, "{said}");
    let (shown, _) = texts(&earnest_on(&[], at, &["runs", "show", "m"]));
    assert!(shown.contains("UNCONFINED, missing landlock"), "{shown}");
    let page = earnest_on(&[], at, &["report", "m", "-o", "report.html"]);
    assert!(page.status.success(), "{:?}", texts(&page));
    assert!(std::fs::read_to_string(at.join("report.html")).unwrap().contains("UNCONFINED"));
    // Scoring again runs the programs too, and verifying does without where it cannot.
    let refused = earnest_on(&old_kernel, at, &["score", "m", "--allow-python", python]);
    let (out, err) = texts(&refused);
    assert!(!refused.status.success() && out.is_empty() && err.contains("landlock"), "{out}{err}");
    let verified = earnest_on(&old_kernel, at, &["runs", "verify", "--allow-python", python]);
    let (out, err) = texts(&verified);
    assert!(verified.status.success() && out.contains("(not scored again)") && err.contains("landlock"), "{out}{err}");
    // An interpreter that only the stored run names is not started.
    let verified = earnest_on(&[], at, &["runs", "verify"]);
    let (out, err) = texts(&verified);
    assert!(verified.status.success() && out.contains("(not scored again)") && err.contains(python), "{out}{err}");
}

fn isolation() -> Option<PathBuf> {
    let works = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "--net", "--pid", "--ipc", "--fork", "true"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !works {
        eprintln!("not checked: this system has no user namespaces for `unshare`");
    }
    works.then(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sandbox/isolate.sh"))
}

#[test]
fn a_command_isolates_where_the_kernel_cannot() {
    let old_kernel = [Lacking::Landlock, Lacking::Seccomp];
    // A command that isolates nothing is no way on.
    let open = doctor(&old_kernel, &["--sandbox-command", "env"]);
    let problem = open["problem"].as_str().unwrap();
    for reached in ["/etc/passwd of this machine", "over the network", "the processes of this machine"] {
        assert!(problem.contains("isolation") && problem.contains(reached), "{problem}");
    }
    let broken = doctor(&[], &["--sandbox-command", "sh -c 'echo no such image >&2; exit 7'"]);
    let problem = broken["problem"].as_str().unwrap();
    assert!(problem.contains("no such image") && problem.contains("exit status: 7"), "{problem}");
    let missing = doctor(&[], &["--sandbox-command", "no-such-command --flag"]);
    assert!(missing["problem"].as_str().unwrap().contains("no-such-command"), "{missing}");

    let Some(script) = isolation() else { return };
    let script = format!("'{}'", script.display());
    for kernel in [&old_kernel[..], &[]] {
        let found = doctor(kernel, &["--sandbox-command", &script]);
        assert_eq!(found["problem"], Value::Null, "{found}");
        assert_eq!(found["report"]["confinement"]["command"], *script);
        assert_eq!(found["report"]["reached"].as_array().unwrap().len(), 0, "{found}");
    }
    let Some(python) = python() else { return };
    let (folder, listener) = prepare();
    let at = folder.path();
    let isolated = score(&old_kernel, at, &["--python", python, "--sandbox-command", &script]);
    let (said, warned) = texts(&isolated);
    assert!(isolated.status.success(), "{warned}");
    assert!(!warned.contains("unconfined") && !is_reached(at, &listener), "{warned}");
    let document: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(document["manifest"]["sandbox"]["command"], *script, "{said}");
    let (samples, _) = texts(&earnest_on(&[], at, &["samples", "m", "--json"]));
    assert!(samples.lines().all(|line| line.contains("Error")), "{samples}");
}
