//! Arithmetic-Bench: sixteen tasks on integers of 1 to 100 digits and how accuracy falls with the length.
//!
//! Source: "Arithmetic-Bench: Evaluating Multi-Step Reasoning in LLMs with Basic Arithmetic" (submission to ICLR 2026, no
//! public code). Items follow its Algorithm 1 and Tables 1 to 3, the scorer `compat` its section 3.3.

mod baseline;
mod bench;
mod brackets;
mod draw;
mod options;
mod question;
mod registration;
mod score;
mod summary;
mod table;
mod task;

pub use baseline::{Baseline, baseline};
pub(in crate::suite) use bench::ends_of_answer_line;
pub use bench::{ArithmeticBench, CHAT_VERSION, QUESTIONS_VERSION, VERSION};
pub(crate) use brackets::bracketed;
pub use options::{Ends, Lengths, LengthsError, Options, OptionsError, Scorer};
pub(crate) use question::prompt;
pub use question::{OperandError, Question};
pub use registration::Registration;
pub use task::{Base, OperandDigits, Task, UnknownTask};
