//! LoRA on a pretrained checkpoint (Number Cookbook, sections 4.3 and 5, A.4.5): settings, base checkpoint with retrofits, data,
//! trainer, adapter folders in PEFT's layout, and merged checkpoint folders.

mod adapter_folder;
mod base;
mod config_keys;
mod data;
mod fine_tuned;
mod merge;
mod pairs;
mod settings;
mod trainer;

pub use adapter_folder::AdapterFolder;
pub use base::{Base, Retrofit};
pub use fine_tuned::FineTuned;
pub use merge::{Merged, merge};
pub use settings::{BaseRecord, LoraData, LoraSettings, LoraTraining, PromptForm};
pub use trainer::LoraTrainer;
