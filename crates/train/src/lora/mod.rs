//! LoRA on a loaded checkpoint (Number Cookbook, sections 4.3 and 5, A.4.5): the settings, the base with its retrofits, what
//! is learnt, the training, and what it writes: an adapter folder in PEFT's layout, and a merged checkpoint folder.

mod adapter_folder;
mod base;
mod config_keys;
mod data;
mod merge;
mod pairs;
mod settings;
mod trainer;

pub use adapter_folder::AdapterFolder;
pub use base::{Base, Retrofit};
pub use merge::{Merged, merge};
pub use settings::{BaseRecord, LoraData, LoraSettings, PromptForm};
pub use trainer::LoraTrainer;
