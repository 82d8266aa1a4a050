//! Receivers of a session's events: the terminal, and a file of JSON lines for `--events`.
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::Exit;
use super::error::CliError;
use super::interrupt::stop_on_signal;
use super::offered;
use super::output;
use super::printer::Printer;
use super::progress::Progress;
use earnest_results::{Ended, Expected, Level, Notice, Reporter, RunEvent, Stage, timestamp};

/// Version of the line format.
const EVENT_FORMAT: u32 = 1;

/// Interval of progress lines.
const PROGRESS_PERIOD: Duration = Duration::from_secs(1);

/// All receivers of a session's events.
pub struct Reporters {
    printer: Printer,
    progress: Option<Progress>,
    file: Option<EventFile>,
}

impl Reporters {
    /// Creates the progress display on stderr, and opens the file if one is named. The file is appended to, so that a continued run
    /// keeps its events.
    pub fn new(printer: Printer, events: Option<&Path>) -> Result<Self, CliError> {
        let file = events.map(EventFile::open).transpose()?;
        let mut reporters = Reporters::on_terminal(printer);
        reporters.file = file;
        Ok(reporters)
    }

    /// Creates the progress display alone.
    pub fn on_terminal(printer: Printer) -> Self {
        Reporters { printer, progress: Some(Progress::new(printer)), file: None }
    }

    /// Runs a function that prints with the progress bar suspended.
    fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.progress {
            Some(progress) => progress.aside(print),
            None => print(),
        }
    }

    /// Ends the display and warns if events could not be written.
    fn close(&mut self) {
        drop(self.progress.take());
        if let Some(file) = self.file.take()
            && let Err((path, error)) = file.finish()
        {
            self.printer.warning(&format!("{} is incomplete: {error}", path.display()));
        }
    }
}

impl Reporter for Reporters {
    fn event(&mut self, event: &RunEvent<'_>) {
        match event {
            RunEvent::Notice(notice) => {
                let text = offered::here(&notice.to_string());
                match notice.level() {
                    Level::Message => self.aside(|| self.printer.message(&text)),
                    Level::Warning => self.aside(|| self.printer.warning(&text)),
                    // The progress display prints it.
                    Level::Engine => {}
                }
            }
            // Until here a signal may end the process at once: nothing would be lost.
            RunEvent::Started { .. } => {
                if let Err(error) = stop_on_signal() {
                    self.aside(|| self.printer.warning(&error.message));
                }
            }
            _ => {}
        }
        if let Some(progress) = &mut self.progress {
            progress.event(event);
        }
        if let Some(file) = &mut self.file {
            file.event(event);
        }
    }
}

impl Drop for Reporters {
    fn drop(&mut self) {
        self.close();
    }
}

/// File of events.
struct EventFile {
    path: PathBuf,
    file: BufWriter<File>,
    last_progress: Option<Instant>,
    last_hash: bool,
    failure: Option<io::Error>,
}

impl EventFile {
    fn open(path: &Path) -> Result<Self, CliError> {
        // Again, now that the questions have been read: they may be this file.
        output::check(Some(path))?;
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map_err(|error| CliError::new(Exit::Results, format!("cannot write {}: {error}", path.display())))?;
        let mut file = BufWriter::new(file);
        // A killed process may have left half a line.
        if ends_within_a_line(path) {
            file.write_all(b"\n")
                .map_err(|error| CliError::new(Exit::Results, format!("cannot write {}: {error}", path.display())))?;
        }
        Ok(EventFile { path: path.to_owned(), file, last_progress: None, last_hash: false, failure: None })
    }

    fn write(&mut self, name: &str, fields: Value) {
        let mut line = json!({ "format": EVENT_FORMAT, "event": name, "at": timestamp(SystemTime::now()) });
        if let (Value::Object(line), Value::Object(fields)) = (&mut line, fields) {
            line.extend(fields);
        }
        // Flushed for readers that follow the file.
        if let Err(error) = writeln!(self.file, "{line}").and_then(|()| self.file.flush()) {
            self.failure.get_or_insert(error);
        }
    }

    fn finish(mut self) -> Result<(), (PathBuf, io::Error)> {
        let flushed = self.file.flush();
        match self.failure.take().map_or(flushed, Err) {
            Ok(()) => Ok(()),
            Err(error) => Err((self.path.clone(), error)),
        }
    }
}

/// True for a file whose last byte is not a line feed; false for pipes and devices.
fn ends_within_a_line(path: &Path) -> bool {
    let last = || -> io::Result<u8> {
        if !std::fs::metadata(path)?.is_file() {
            return Ok(b'\n');
        }
        let mut file = File::open(path)?;
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        Ok(last[0])
    };
    // An empty file has no last byte.
    last().is_ok_and(|last| last != b'\n')
}

/// The facts of a notice with its level, and its sentence as the terminal has it.
fn facts(notice: &Notice) -> Value {
    let mut facts = json!(notice);
    facts["level"] = json!(notice.level());
    facts["text"] = json!(offered::here(&notice.to_string()));
    facts
}

impl Reporter for EventFile {
    fn event(&mut self, event: &RunEvent<'_>) {
        match event {
            RunEvent::Preparing(Stage::OpeningCheckpoint) => {
                self.write("preparing", json!({ "stage": "opening_checkpoint" }));
            }
            RunEvent::Preparing(Stage::HashingFiles { total, .. }) => {
                if !std::mem::replace(&mut self.last_hash, true) {
                    self.write("preparing", json!({ "stage": "hashing_files", "bytes": total }));
                }
            }
            RunEvent::Preparing(Stage::LoadingWeights) => {
                self.write("preparing", json!({ "stage": "loading_weights" }))
            }
            RunEvent::Preparing(Stage::ProbingEndpoint(endpoint)) => {
                self.write("preparing", json!({ "stage": "probing_endpoint", "endpoint": endpoint }));
            }
            RunEvent::Preparing(Stage::AskingEndpoint(endpoint)) => {
                self.write("preparing", json!({ "stage": "asking_endpoint", "endpoint": endpoint }));
            }
            RunEvent::Expected(Expected { seconds, at_most, source }) => {
                self.write("expected", json!({ "seconds": seconds, "at_most": at_most, "source": source }));
            }
            RunEvent::Started { run, planned, progress, card, .. } => self.write(
                "started",
                json!({ "run": run, "planned": planned, "recorded": progress.settled(), "engine": card }),
            ),
            RunEvent::Progress { statistics, .. } => {
                if self.last_progress.is_none_or(|last| last.elapsed() >= PROGRESS_PERIOD) {
                    self.last_progress = Some(Instant::now());
                    self.write("progress", json!({ "statistics": statistics }));
                }
            }
            RunEvent::Sample(sample) => self.write(
                "sample",
                json!({
                    "item": sample.item,
                    "sample": sample.sample,
                    "task": sample.task,
                    "correct": sample.score.as_ref().map(|score| score.correct),
                    "reason": sample.score.as_ref().and_then(|score| score.failure.as_ref()),
                    "finish": sample.completion.as_ref().map(|completion| completion.finish),
                    "tokens": sample.completion.as_ref().map(|completion| completion.tokens()),
                    "failure": sample.failure,
                }),
            ),
            RunEvent::Notice(notice) => {
                let event = match notice.level() {
                    Level::Message => "message",
                    Level::Warning => "warning",
                    Level::Engine => "notice",
                };
                self.write(event, facts(notice));
            }
            RunEvent::Stopping => self.write("stopping", json!({})),
            RunEvent::Ended(ended) => {
                let (outcome, failed) = match ended {
                    Some(Ended::Finished) => ("finished", None),
                    Some(Ended::Decided) => ("decided", None),
                    Some(Ended::Stopped) => ("stopped", None),
                    Some(Ended::TooManyFailures { failed }) => ("too_many_failures", Some(failed)),
                    None => ("error", None),
                };
                self.write("ended", json!({ "outcome": outcome, "failed": failed }));
            }
        }
    }
}
