//! Tasks of the user: questions from a file, asked and scored as a task file says.
//!
//! `definition` is the task file, `reader` takes a row apart by its columns and templates, `compiled` makes an item of that, `pass` does so once for all rows before a run, and
//! `scorer` and `likelihood` score what comes back.
mod check;
mod choice;
mod choices;
mod columns;
mod compiled;
mod definition;
mod examples;
mod expression;
mod gold;
mod hash;
mod keys;
mod likelihood;
mod order;
mod pass;
mod program;
mod read_again;
mod reader;
mod reader_job;
mod registration;
pub mod row_id;
mod scorer;
mod scorer_spec;
mod source;
mod suite;
mod summary;
mod template;
pub mod usual;
mod wrong;

pub use check::{Check, CheckedFile, Covariate, Finding, First, check};
pub use definition::Definition;
/// Serves as the process for the templates of task files and never returns, if it was started as one; otherwise records that this
/// program can be one. It must come before anything else in `main` that reads arguments.
pub fn serve_if_worker() {
    earnest_isolation::serve_if_worker(&[&reader_job::JOB]);
}

pub use read_again::{TARGETS, read_again};
pub use registration::Registration;

#[cfg(test)]
mod tests;

/// Key in the options of a stored run by which a task of the user is recognised, whatever its name.
pub const STORED_KEY: &str = "task_file";

/// Text of a new task file with this name, and the questions beside it.
pub fn example(name: &str) -> (String, &'static str) {
    (
        include_str!("new.toml")
            .replace("NAME.jsonl", &format!("{name}.jsonl"))
            .replace("NAME.toml", &format!("{name}.toml"))
            .replace("\"NAME\"", &format!("\"{name}\"")),
        include_str!("new.jsonl"),
    )
}

/// True for a name that a task can have.
pub fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && name.chars().all(plain) && !name.starts_with(['.', '-'])
}
