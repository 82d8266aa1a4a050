//! GSM-Symbolic and its re-evaluation ("Being Statistically Earnest"): word problems whose names and numbers vary, five prompts,
//! and how far a model's accuracy moves with them.
//!
//! | files | contents |
//! |---|---|
//! | `template/` | the published template language: values and expressions with Python's semantics and, beside them, without rounding; search; rendering. No Python is involved |
//! | `rows`, `recognise` | questions in the layout of Apple's files; recognition of the published sets by hashes of the originals, of 98 questions of main and of p2, and by K-S distance (nothing is known of p1) |
//! | `prompt`, `clean_up` | the study's five prompts to the byte; spaces as its tokenizers leave them |
//! | `answer/` | the study's two extractors, and two of our own |
//! | `large_numbers` | gamma, the integers of Figure 7, its bins |
//! | `options`, `suite` | base and variants in pairs, template by template, so that any beginning has both under every prompt |
//! | `scoring`, `summary` | the study's scorer with others beside it; differences paired by template; classes of failure |
//! | `drawn`, `mini` | rows drawn from templates; 16 templates of this project (`prompts/gsm-mini`), which need no download |
//!
//! # Data
//!
//! Questions come from `--data`, a commit of the dataset in the Hugging Face cache (`--revision`) or `EARNEST_DATA`, and are pinned by SHA-256. The
//! place of a file is in the options, and the settings' hash leaves it out: parts of a run from machines with other folders are merged. A stored
//! run finds its questions there or where `EARNEST_DATA` says, with the same content, or is refused by name.
//!
//! # Draws
//!
//! Conditions connect variables to parts; each part is drawn by rejection, which makes every solution equally likely. Where 20,000 draws fail,
//! all its solutions are enumerated (conditions are checked as soon as their variables have values) and one of them is taken, so rare ones are
//! found and impossible conditions are proved to be so. A draw whose final answer differs between Python's arithmetic and exact arithmetic
//! (`int(0.29 * 100)` is 28) is not used.
//!
//! # Stop strings
//!
//! Stop strings of this suite stay in the completion (`Item::keep_stop`), because the study's labels depend on them: a completion that is a
//! stop string alone is `empty_after_trim`, and babbling is seen by it. The study compares the last ten tokens, prompt included; so its first
//! token can complete a stop string that begins in the prompt. Here such a completion goes on, and extraction cuts it at the same place.

pub mod answer;
pub mod large_numbers;
pub mod template;

mod clean_up;
mod data;
mod drawn;
mod generator;
mod mini;
mod options;
mod prompt;
mod recognise;
mod registration;
mod rows;
mod scoring;
mod suite;
mod summary;

pub use drawn::{DrawError, DrawnRow, draw};
pub use mini::{grown_templates, own_templates};
pub use options::{DataFile, Options, OptionsError, Scorer, Source};
pub use prompt::{Prompt, TrailingSpace, UnknownPrompt};
pub use recognise::{Identity, PUBLISHED_KS, describes_questions};
pub use registration::{CHOOSING, Mini, Symbolic, Templates, TemplatesError};
pub use rows::{Row, RowError, Set, UnknownSet, base, checked, parse};
pub use suite::GsmSymbolic;
