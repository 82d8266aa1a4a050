//! Options that trainings share.
use clap::{Args, Command, Id};
use earnest_train::AdamWSettings;

/// Settings of the optimiser but for its learning rate.
#[derive(Debug, Args)]
pub struct OptimiserArgs {
    /// Largest norm of the gradients; larger ones are scaled down to it
    #[arg(long, value_name = "NORM", default_value_t = 1.0, help_heading = "Training")]
    pub clip: f64,

    /// Weight decay of matrices
    #[arg(long, value_name = "RATE", default_value_t = 0.01, help_heading = "Training")]
    pub weight_decay: f64,

    /// AdamW's decay rate of the second moment
    #[arg(long, value_name = "BETA", default_value_t = 0.999, help_heading = "Training")]
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

/// Names of the options of a structure, for those that exclude them all.
pub fn names_of<T: Args>() -> Vec<Id> {
    T::augment_args(Command::new("")).get_arguments().map(|option| option.get_id().clone()).collect()
}
