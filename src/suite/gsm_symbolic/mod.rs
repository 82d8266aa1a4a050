//! GSM-Symbolic and its re-evaluation ("Being Statistically Earnest"): word problems whose names and numbers vary, five prompts,
//! and how far a model's accuracy moves with them.

pub mod large_numbers;
pub mod published;
pub mod template;

mod clean_up;
mod drawn;
mod mini;
mod options;
mod prompt;
mod recognise;
mod rows;
mod scoring;
mod suite;
mod summary;

pub use drawn::{DrawError, DrawnRow, draw};
pub use mini::own_templates;
pub use options::{DataFile, Options, OptionsError, Profile, Source};
pub use prompt::{Prompt, TrailingSpace, UnknownPrompt};
pub use recognise::{Identity, PUBLISHED_KS};
pub use rows::{Row, RowError, Set, UnknownSet, base, checked, parse};
pub use suite::GsmSymbolic;
