//! Options that trainings share.
use clap::{Args, Command, Id};
use earnest_train::{AdamWSettings, StoredType};

/// Settings of the optimiser but for its learning rate.
#[derive(Debug, Args)]
pub struct OptimiserArgs {
    /// Largest norm of the gradients; larger ones are scaled down to it
    #[arg(long, value_name = "NORM", default_value_t = AdamWSettings::default().clip, help_heading = "Training")]
    pub clip: f64,

    /// Weight decay of matrices
    #[arg(long, value_name = "RATE", default_value_t = AdamWSettings::default().weight_decay, help_heading = "Training")]
    pub weight_decay: f64,

    /// AdamW's decay rate of the second moment
    #[arg(long, value_name = "BETA", default_value_t = AdamWSettings::default().beta2, help_heading = "Training")]
    pub beta2: f64,
}

impl OptimiserArgs {
    pub fn settings(&self) -> AdamWSettings {
        AdamWSettings {
            clip: self.clip,
            weight_decay: self.weight_decay,
            beta2: self.beta2,
            ..AdamWSettings::default()
        }
    }
}

/// Element types of written weights, for `--store`.
pub const STORED: &[(&str, &str, StoredType)] =
    &[("f32", "", StoredType::F32), ("bf16", "", StoredType::Bf16), ("f16", "", StoredType::F16)];

/// Names of the options of a structure, for those that exclude them all.
pub fn names_of<T: Args>() -> Vec<Id> {
    T::augment_args(Command::new("")).get_arguments().map(|option| option.get_id().clone()).collect()
}
