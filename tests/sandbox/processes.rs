//! No process is left behind. The test looks at all children of its process, so it runs in a separate one.
#![cfg(target_os = "linux")]

use std::time::{Duration, Instant};

use earnest_sandbox::{Number, Outcome, Pool, Settings};

/// Living processes (no zombies) and zombies whose parent is `parent`.
fn children(parent: u32) -> (Vec<u32>, Vec<u32>) {
    let (mut living, mut zombies) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name in brackets may hold anything.
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        let fields: Vec<&str> = rest.split(' ').collect();
        if fields[1].parse() == Ok(parent) {
            if fields[0] == "Z" { zombies.push(pid) } else { living.push(pid) }
        }
    }
    (living, zombies)
}

fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')))
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Kills a process that the test found below its own. False if it had just ended.
fn kill(pid: u32) -> bool {
    std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).output().unwrap().status.success()
}

#[test]
fn workers_are_replaced_and_nothing_is_left() {
    let own = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::in_a_process_of_its_own", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    assert!(own.status.success(), "{}", String::from_utf8_lossy(&own.stderr));
}

#[test]
#[ignore = "counts the children of its process: the other test starts it"]
fn in_a_process_of_its_own() {
    let me = std::process::id();
    let settings = Settings {
        wall: Duration::from_secs(20),
        memory: 128 << 20,
        workers: 2,
        ..Settings::new(env!("CARGO_BIN_EXE_earnest"))
    };
    let pool = Pool::new(settings).unwrap();
    let fine = || assert_eq!(pool.run("def f():\n    return 1", "f"), Outcome::Number(Number::Int("1".into())));
    fine();
    let workers = children(me).0;
    assert_eq!(workers.len(), 1, "one worker as long as one is enough");
    assert_eq!(children(workers[0]), (Vec::new(), Vec::new()), "samples are gone when they are answered");

    // Killed while idle: nobody notices.
    assert!(kill(workers[0]));
    wait_until("the worker dies", || !lives(workers[0]));
    fine();
    assert_eq!(children(me).1, Vec::<u32>::new(), "no zombie");

    // Killed at work: the sample is lost, and its process with it; a second one that runs beside it is not.
    std::thread::scope(|scope| {
        let lost = scope.spawn(|| pool.run("def f():\n    while 1: pass", "f"));
        let mut sample = None;
        wait_until("the sample runs", || {
            sample = children(me).0.into_iter().find_map(|worker| Some((worker, *children(worker).0.first()?)));
            sample.is_some()
        });
        let (worker, sample) = sample.unwrap();
        fine();
        assert!(kill(worker));
        assert!(matches!(lost.join().unwrap(), Outcome::Crashed(_)));
        wait_until("the sample dies with its worker", || !lives(sample));
    });
    fine();

    // Killed sample: a crash of that one.
    std::thread::scope(|scope| {
        let lost = scope.spawn(|| pool.run("def f():\n    while 1: pass", "f"));
        // On a busy machine the first child seen may be that of the last answer, which is just ending.
        wait_until("the sample is killed", || {
            for sample in children(me).0.into_iter().flat_map(|worker| children(worker).0) {
                kill(sample);
            }
            lost.is_finished()
        });
        assert_eq!(lost.join().unwrap(), Outcome::Crashed("signal 9".into()));
    });
    fine();

    let workers = children(me).0;
    assert!((1..=2).contains(&workers.len()), "{workers:?}");
    let start = Instant::now();
    drop(pool);
    assert!(start.elapsed() < Duration::from_secs(10));
    assert!(workers.iter().all(|&worker| !lives(worker)));
    assert_eq!(children(me), (Vec::new(), Vec::new()));
}
