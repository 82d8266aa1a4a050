//! The log of a training.
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use super::TrainError;
use super::folder::put;
use super::progress::TrainEvent;

/// `log.jsonl`: an event a line.
pub(super) struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    /// Opens the log of a training that has made `step` steps; what an interrupted session wrote after its last saved state is
    /// dropped, because it will be done again.
    pub(super) fn open(folder: &Path, step: u64) -> Result<Self, TrainError> {
        let path = folder.join("log.jsonl");
        let failed = |source| TrainError::File { path: path.clone(), source };
        let mut kept = Vec::new();
        if step > 0 && path.exists() {
            for line in BufReader::new(File::open(&path).map_err(failed)?).lines() {
                let line = line.map_err(failed)?;
                // A line that was cut by a kill is the last one, and after the state.
                let Ok(event) = serde_json::from_str::<TrainEvent>(&line) else { break };
                let at = match &event {
                    TrainEvent::Step { step, .. } | TrainEvent::Saved { step } => *step,
                    TrainEvent::Validated(validation) => validation.step,
                };
                if at > step {
                    break;
                }
                kept.extend_from_slice(line.as_bytes());
                kept.push(b'\n');
            }
        }
        put(&path, &kept)?;
        let file = File::options().append(true).open(&path).map_err(failed)?;
        Ok(Log { path, file })
    }

    pub(super) fn write(&mut self, event: &TrainEvent, report: &mut dyn FnMut(&TrainEvent)) -> Result<(), TrainError> {
        let mut line = serde_json::to_string(event).expect("an event is JSON");
        line.push('\n');
        self.file.write_all(line.as_bytes()).map_err(|source| TrainError::File { path: self.path.clone(), source })?;
        report(event);
        Ok(())
    }
}
