//! Runs the golden subject `glmm` by itself.
use std::path::PathBuf;

#[path = "golden_subjects/glmm.rs"]
mod glmm;

mod report {
    //! What the harness of all subjects offers, as far as this subject needs it.
    pub struct FileReport {
        pub file: String,
        pub total: usize,
        pub failures: Vec<String>,
        pub absent: bool,
    }

    impl FileReport {
        pub fn absent(file: impl Into<String>) -> Self {
            FileReport { file: file.into(), total: 0, failures: Vec::new(), absent: true }
        }

        pub fn checked(file: impl Into<String>, rows: impl IntoIterator<Item = Result<(), String>>) -> Self {
            let rows: Vec<_> = rows.into_iter().collect();
            let total = rows.len();
            FileReport {
                file: file.into(),
                total,
                failures: rows.into_iter().filter_map(Result::err).collect(),
                absent: false,
            }
        }

        pub fn unreadable(file: impl Into<String>, why: impl std::fmt::Display) -> Self {
            FileReport { file: file.into(), total: 0, failures: vec![why.to_string()], absent: false }
        }
    }
}

fn root() -> PathBuf {
    std::env::var_os("EARNEST_GOLDEN")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden"), PathBuf::from)
}

#[test]
fn every_file_passes() {
    let reports = glmm::check(&root());
    let mut failed = false;
    for report in &reports {
        if report.absent {
            println!("golden {}: absent", report.file);
            continue;
        }
        println!("golden {}: {}/{}", report.file, report.total - report.failures.len().min(report.total), report.total);
        for failure in &report.failures {
            println!("    {failure}");
        }
        failed |= report.total == 0 || !report.failures.is_empty();
    }
    assert!(!failed && !reports.is_empty());
}
