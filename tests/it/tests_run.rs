//! Every test that is written is run: files of this folder are modules, and crates with tests of their own have a test target.
use std::path::Path;

use crate::unsafe_code::rust_files;

#[test]
fn every_file_of_tests_is_a_module() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let main = std::fs::read_to_string(folder.join("main.rs")).unwrap();
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let is_test = path.extension().is_some_and(|ending| ending == "rs") && name != "main";
        assert!(!is_test || main.contains(&format!("mod {name};\n")), "tests/it/{name}.rs is not a module of main.rs");
        count += usize::from(is_test);
    }
    assert!(count > 80, "{count}");
}

#[test]
fn every_crate_with_tests_of_its_own_runs_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut with_tests = 0;
    for entry in std::fs::read_dir(root.join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let mut files = Vec::new();
        rust_files(&folder.join("src"), &mut files);
        let has_tests = |file: &std::path::PathBuf| std::fs::read_to_string(file).unwrap().contains("#[cfg(test)]");
        let Some(file) = files.iter().find(|file| has_tests(file)) else { continue };
        with_tests += 1;
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let is_off = manifest.lines().any(|line| line.replace(' ', "") == "test=false");
        assert!(!is_off, "{} has tests, but its Cargo.toml does not run them", file.display());
    }
    assert!(with_tests > 5, "{with_tests}");
}
