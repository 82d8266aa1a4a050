//! Compares the program with golden vectors: `EARNEST_GOLDEN` names their folder (default: `tests/golden`).
//!
//! Every subject reports each of its files as `golden <file>: <passed>/<total>` or, if it is missing, as
//! `golden <file>: absent`, which is not a failure. A row that disagrees, cannot be read or is of an unknown kind fails, and so
//! does a file without rows: nothing is skipped. A text file may be compressed: `<file>.gz` is read where `<file>` is not there,
//! and reported by the plain name. The program accepts the usual arguments of `cargo test`; a test is a subject.
//!
//! To add a subject, write `tests/golden_subjects/<subject>.rs` with `pub fn check(root: &Path) -> Vec<FileReport>` (see
//! `report.rs` for its fields) and name it here, in [`SUBJECTS`], and as a module beside it.

use std::path::PathBuf;
use std::process::ExitCode;

mod golden_subjects;

use golden_subjects::runner::{self, Subject};
use golden_subjects::{answers, arithmetic_bench, dnc, engine, glmm, glmm_formula, gsm, logs, nupa};

const SUBJECTS: &[Subject] = &[
    Subject { name: "answers", check: answers::check },
    Subject { name: "arithmetic_bench", check: arithmetic_bench::check },
    Subject { name: "dnc", check: dnc::check },
    Subject { name: "engine", check: engine::check },
    Subject { name: "glmm", check: glmm::check },
    Subject { name: "glmm_formula", check: glmm_formula::check },
    Subject { name: "gsm", check: gsm::check },
    Subject { name: "logs", check: logs::check },
    Subject { name: "nupa", check: nupa::check },
];

fn main() -> ExitCode {
    let root = std::env::var_os("EARNEST_GOLDEN")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden"), PathBuf::from);
    runner::run(SUBJECTS, &root, std::env::args().skip(1))
}
