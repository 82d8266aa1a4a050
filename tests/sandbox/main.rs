//! Tests of the sandbox: in a separate executable, since they measure time and kill processes.

mod arithmetic;
mod confinement;
mod cpython;
mod hostile;
mod library;
mod outcome;
mod parent;
mod processes;
mod speed;

// A subject uses a part of what the golden vectors' own program needs.
#[allow(dead_code)]
#[path = "../golden_subjects/mod.rs"]
mod golden_subjects;
