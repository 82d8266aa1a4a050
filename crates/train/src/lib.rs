//! Training on one machine: small decoders from scratch on streams of number questions, and LoRA adapters of pretrained
//! checkpoints (section 3 and appendix A.4 of the Number Cookbook). Training has a separate, differentiable decoder; its output
//! are ordinary checkpoint folders, which the engine loads like any other.

mod adapter;
mod batch;
mod criterion;
mod decoder;
mod error;
pub mod experiment;
mod folder;
mod frozen;
mod fused;
mod grouping;
mod kernels;
mod log;
mod lora;
mod loss;
mod memorise;
pub mod memory;
mod norm;
mod optimiser;
mod parameters;
mod plain;
mod positions;
mod progress;
mod schedule;
mod search;
mod settings;
mod shape;
mod state;
mod step;
mod stream;
mod style;
mod task;
mod tokenizer;
mod toml_place;
mod trainer;

pub use adapter::{Adapter, AdapterSettings, TARGETS};
pub use batch::{Batch, Example};
pub use criterion::{Accuracy, Criterion, Goal, UnknownCriterion};
pub use decoder::Decoder;
pub use earnest_tasks::suite::nupa::SplitVersion;
pub use error::TrainError;
pub(crate) use folder::write_atomic;
pub use folder::{StoredType, lock_folder, write_model};
pub use lora::{
    AdapterFolder, Base, BaseRecord, FineTuned, LoraData, LoraSettings, LoraTrainer, LoraTraining, Merged, PromptForm,
    Retrofit, merge,
};
pub use loss::{answer_loss, answer_scores};
pub use memorise::{Constant, DigitQuestion, UnknownConstant};
pub use optimiser::{AdamW, AdamWSettings, MissingMoment};
pub use parameters::{Gradients, Parameters};
pub use progress::{CellScore, TrainEvent, Validation};
pub use schedule::Schedule;
pub use search::{RateSearch, RateTrial, TRIAL_RATES, search_rate};
pub use settings::{FormatSettings, NextTasks, TrainSettings};
pub use shape::{PositionEncoding, Size};
pub use stream::{QuestionStream, StreamSettings, TextPair};
pub use style::{AnswerStyle, UnknownStyle};
pub use task::{TrainingQuestion, TrainingTask};
pub use tokenizer::{DigitGroups, NumberTokenizer, TokenizerSettings};
pub use trainer::{TrainOutcome, Trainer};
