//! A suite's segments become text, then token ids: here and nowhere else.

mod checkpoint;
mod mode;
mod prompter;
mod source;

pub use mode::{Mode, ModeRequest};
pub use prompter::{PromptError, Prompter, Rendered};
pub use source::PromptSource;
