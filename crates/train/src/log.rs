//! Log of a training.
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use super::TrainError;
use super::folder::write_atomic;
use super::progress::TrainEvent;

/// Writer of `log.jsonl`, one event per line.
pub(super) struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    /// Opens the log of a training with `step` completed steps. Events after that step are dropped: an interrupted session wrote
    /// them after its last saved state, and the steps will be repeated.
    pub(super) fn open(folder: &Path, step: u64) -> Result<Self, TrainError> {
        let path = folder.join("log.jsonl");
        let failed = |source| TrainError::File { path: path.clone(), source };
        let mut kept = Vec::new();
        if step > 0 && path.exists() {
            for line in BufReader::new(earnest_digest::input::open(&path).map_err(failed)?).lines() {
                let line = line.map_err(failed)?;
                // A line truncated by a kill is the last one, and later than the state.
                let Ok(event) = serde_json::from_str::<TrainEvent>(&line) else { break };
                let at = match &event {
                    TrainEvent::Step { step, .. } | TrainEvent::Restarted { step, .. } | TrainEvent::Saved { step } => {
                        *step
                    }
                    TrainEvent::Validated(validation) => validation.step,
                };
                // A restart belongs to the step after it.
                let repeated = matches!(event, TrainEvent::Restarted { .. }) && at == step;
                if at > step || repeated {
                    break;
                }
                kept.extend_from_slice(line.as_bytes());
                kept.push(b'\n');
            }
        }
        write_atomic(&path, &kept)?;
        let file = File::options().append(true).open(&path).map_err(failed)?;
        Ok(Log { path, file })
    }

    /// Appends an event and passes it to the reporter.
    pub(super) fn write(&mut self, event: &TrainEvent, report: &mut dyn FnMut(&TrainEvent)) -> Result<(), TrainError> {
        let mut line = serde_json::to_string(event).expect("an event is JSON");
        line.push('\n');
        self.file.write_all(line.as_bytes()).map_err(|source| TrainError::File { path: self.path.clone(), source })?;
        report(event);
        Ok(())
    }
}
