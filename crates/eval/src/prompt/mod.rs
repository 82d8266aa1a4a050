//! Rendering of prompts: segments to text to token ids. Nothing else renders prompts.

mod checkpoint;
mod continuation;
mod prompter;
mod prompts;
mod remote;
mod source;
mod thinking;

pub use continuation::Continuation;
pub use prompter::{PromptError, Prompter, Rendered, Wire, tokenise};
pub use prompts::Prompts;
pub use remote::Remote;
pub use source::PromptSource;
pub use thinking::WithThinking;
