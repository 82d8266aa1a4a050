//! Tasks of the user: questions from a file, asked and scored as a task file says.
//!
//! `definition` is the task file, `compiled` makes an item of a row by it, `pass` does so once for all rows before a run, and
//! `scorer` and `likelihood` score what comes back.
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
mod registration;
pub mod row_id;
mod scorer;
mod source;
mod suite;
mod summary;
mod template;
pub mod usual;

pub use definition::Definition;
pub use registration::Registration;

/// Key in the options of a stored run by which a task of the user is recognised, whatever its name.
pub const STORED_KEY: &str = "task_file";
