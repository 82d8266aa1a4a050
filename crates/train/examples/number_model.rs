//! Trains a small model on one-digit and two-digit addition for a few steps:
//! `cargo run --release -p earnest-train --example number_model -- FOLDER`.
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use earnest_train::{Size, TrainError, TrainEvent, TrainSettings, Trainer};

fn main() -> Result<(), TrainError> {
    let folder = std::env::args_os().nth(1).map_or_else(|| std::env::temp_dir().join("number-model"), PathBuf::from);
    let settings = TrainSettings {
        size: Size { layers: 2, hidden: 48, intermediate: 96, heads: 4, kv_heads: 2 },
        tasks: vec!["add_Integer".into()],
        lengths: vec![1, 2],
        beyond: vec![3],
        any_shorter_operand: true,
        batch: 32,
        steps: 40,
        learning_rate: 3e-3,
        warm_up: 5,
        validate_every: 20,
        validation: 20,
        context: 128,
        ..TrainSettings::default()
    };
    let mut trainer = Trainer::open(settings, &folder)?;
    println!("{} parameters", trainer.parameter_count());
    trainer.run(&AtomicBool::new(false), &mut |event| {
        if let TrainEvent::Validated(validation) = event {
            println!("step {}: loss {:.3}, exact match {:.2}", validation.step, validation.loss, validation.exact());
        }
    })?;
    println!("wrote {}", folder.display());
    Ok(())
}
