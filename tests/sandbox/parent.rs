//! The parent is killed: no worker and no program survives it.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use earnest_sandbox::{Pool, Settings};

/// Names the interpreter of the process that holds a pool; empty is the embedded one.
const PYTHON: &str = "EARNEST_TEST_HOLDER_PYTHON";

/// Far longer than the test: the programs end because their parent is gone.
const WALL: Duration = Duration::from_secs(3_600);
const PATIENCE: Duration = Duration::from_secs(120);

/// Started by the other test in a separate process: a pool with two programs that never end.
#[test]
#[ignore = "never ends: the other test starts and kills it"]
fn holder() {
    let python = std::env::var_os(PYTHON).filter(|python| !python.is_empty()).map(PathBuf::from);
    let settings = Settings { python, wall: WALL, workers: 2, ..Settings::new(env!("CARGO_BIN_EXE_earnest")) };
    let pool = Pool::new(settings).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| pool.run("def f():\n    while 1: pass", "f"));
        }
    });
}

/// Living processes whose parent is `parent`.
fn children(parent: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|&pid| state(pid).is_some_and(|(_, its)| its == parent)).collect()
}

/// A process's state and its parent; none if it is gone or a zombie.
fn state(pid: u32) -> Option<(char, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next().filter(|&state| state != 'Z' && state != 'X')?;
    Some((state, fields.next()?.parse().ok()?))
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn nothing_survives_a_killed_parent() {
    let cpython = Path::new("/usr/bin/python3");
    for python in [Path::new(""), cpython].into_iter().filter(|python| python.as_os_str().is_empty() || python.exists())
    {
        let mut holder = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "parent::holder", "--ignored"])
            .env(PYTHON, python)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (mut workers, mut programs) = (Vec::new(), Vec::new());
        wait_until("two programs run in two workers", || {
            assert_eq!(holder.try_wait().unwrap(), None, "the holder ended by itself");
            workers = children(holder.id());
            programs = workers.iter().flat_map(|&worker| children(worker)).collect();
            workers.len() == 2 && programs.len() == 2
        });
        // SIGKILL: nothing of the holder's own runs any more.
        holder.kill().unwrap();
        holder.wait().unwrap();
        let left = || workers.iter().chain(&programs).filter(|&&pid| state(pid).is_some()).count();
        wait_until("workers and programs end with their parent", || left() == 0);
    }
}
