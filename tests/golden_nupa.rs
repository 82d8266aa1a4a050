//! The NUPA golden vectors as an ordinary test.
use std::path::PathBuf;

#[path = "golden_subjects/nupa.rs"]
mod nupa;

/// What the check of one file found.
pub struct FileReport {
    pub file: String,
    pub passed: usize,
    pub total: usize,
    pub failures: Vec<String>,
}

#[test]
fn nupa_vectors_pass() {
    let root = std::env::var_os("EARNEST_GOLDEN")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden"), PathBuf::from);
    for report in nupa::check(&root) {
        println!("golden {}: {}/{}", report.file, report.passed, report.total);
        assert!(report.total > 0, "{} has no rows", report.file);
        assert_eq!(
            report.passed,
            report.total,
            "{}: {:#?}",
            report.file,
            &report.failures[..report.failures.len().min(20)]
        );
    }
}
