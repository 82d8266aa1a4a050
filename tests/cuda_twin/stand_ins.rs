//! Stand-ins of NVIDIA's libraries (libraries.c), for tests of programs: kernels compute nothing there, but calls a driver would refuse end the process,
//! and leaks are counted.
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// A folder with the libraries, or none where there is no C compiler. `root` is the repository.
pub fn libraries(root: &Path) -> Option<TempDir> {
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
            .arg(root.join("tests/cuda_twin/libraries.c"))
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    Some(folder)
}

/// Runs a program with the libraries, in the repository.
pub fn run(program: &str, root: &Path, libraries: &TempDir, variables: &[(&str, &str)], args: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(args).current_dir(root).env_remove("EARNEST_DEVICE").env_remove("EARNEST_KERNELS");
    command.env("EARNEST_CUDA_LIBRARIES", libraries.path()).env("EARNEST_CACHE", libraries.path().join("cache"));
    command.env("MOCK_REPORT", libraries.path().join("report"));
    for (name, value) in variables {
        command.env(name, value);
    }
    command.output().unwrap()
}

/// Everything that a program wrote.
pub fn words(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}
