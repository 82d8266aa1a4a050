//! Tasks of the user: questions from a file, asked and scored as a task file says.
pub mod row_id;
pub mod usual;

use serde_json::Value;

use super::Suite;
use super::registry::{BuiltIn, Card, Choice, Host, OptionError, OptionSpec, OptionValues};

/// Key in the options of a stored run by which a task of the user is recognised, whatever its name.
pub const STORED_KEY: &str = "task_file";

const OPTIONS: [OptionSpec; 2] = [
    OptionSpec::path("file", "FILE", "Questions (JSONL, JSON, CSV, TSV or Parquet), or a task file (TOML)"),
    OptionSpec::SEED,
];

/// Registration of all tasks of the user.
pub struct Registration;

impl BuiltIn for Registration {
    fn card(&self) -> Card {
        Card {
            options: &OPTIONS,
            ..Card::new(
                "task",
                "1.0",
                "Your own questions",
                "your file",
                "your own questions: JSONL, CSV, Parquet, or a task file",
            )
        }
    }

    fn tasks(&self) -> Vec<String> {
        Vec::new()
    }

    fn items(&self) -> Option<usize> {
        None
    }

    fn configure(&self, _values: &OptionValues, _host: &dyn Host) -> Result<Box<dyn Choice>, OptionError> {
        Err(OptionError::usage("task needs a file of questions").help("earnest run questions.jsonl"))
    }

    fn primary(&self, _options: &Value) -> Vec<String> {
        Vec::new()
    }

    fn stored(&self, _options: &Value, _host: &dyn Host) -> Result<Box<dyn Suite>, OptionError> {
        Err(OptionError::unreadable("tasks of the user are not read yet"))
    }
}
