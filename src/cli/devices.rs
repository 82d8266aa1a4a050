//! `earnest run --devices`: one process per device, each with a part of the items, and their parts joined.
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;

use super::Exit;
use super::args::device_name;
use super::error::CliError;
use super::interrupt::{ask_to_stop, stop_on_signal};
use super::printer::Printer;
use super::run_part::PartSettings;
use earnest_eval::model::{DeviceChoice, EngineSettings};
use earnest_results::Shard;

/// Interval at which the processes are looked at.
const PERIOD: Duration = Duration::from_millis(100);
/// Interval of lines where stderr is no terminal.
const PLAIN_PERIOD: Duration = Duration::from_secs(10);

/// Evaluates a part of a run in a process on every device, by the settings of one part with the others' shard and device, and returns
/// when all parts are stored.
///
/// # Errors
/// The error of the first process that failed, with its device; what the others stored is kept, and the same command continues.
pub fn run_parts(
    devices: &[DeviceChoice],
    settings: &PartSettings,
    results: &Path,
    printer: Printer,
) -> Result<(), CliError> {
    let stop = stop_on_signal()?;
    // A new folder of a name that nobody can have prepared; only settings and events are in it, and it goes when it is dropped.
    let folder = tempfile::Builder::new().prefix("earnest-devices-").tempdir().map_err(|error| {
        let message = format!("cannot write to {}: {error}", std::env::temp_dir().display());
        CliError::new(Exit::Results, message)
    })?;
    let folder = folder.path();
    let mut parts = Vec::new();
    for (index, &device) in devices.iter().enumerate() {
        let settings = of_part(settings, device, Shard { part: index + 1, of: devices.len() });
        match Part::start(&settings, results, folder) {
            Ok(part) => parts.push(part),
            Err(error) => {
                parts.iter_mut().for_each(Part::stop);
                parts.into_iter().for_each(|part| drop(part.end()));
                return Err(error);
            }
        }
    }
    let mut display = Display::new(printer);
    while parts.iter_mut().any(Part::is_running) {
        if stop.load(Ordering::Relaxed) {
            parts.iter_mut().for_each(Part::stop);
        }
        parts.iter_mut().for_each(Part::read_events);
        display.show(&parts);
        std::thread::sleep(PERIOD);
    }
    display.end();
    let ended: Vec<Ended> = parts.into_iter().map(Part::end).collect();
    let mut said: Vec<&str> = Vec::new();
    for warning in ended.iter().flat_map(|part| &part.warnings) {
        // Every process says the same of the model.
        if !said.contains(&warning.as_str()) {
            said.push(warning);
            printer.warning(warning);
        }
    }
    let failed: Vec<&Ended> = ended.iter().filter(|part| part.has_failed()).collect();
    let Some(first) = failed.first() else { return Ok(()) };
    if stop.load(Ordering::Relaxed) {
        return Err(CliError::new(Exit::Interrupted, "stopped; what every device has done is stored")
            .help("the same command continues"));
    }
    for part in &failed[1..] {
        printer.warning(&part.sentence());
    }
    let help = first.help.as_ref().map_or(String::new(), |help| format!("{help}; "));
    let next = format!("{help}what every device has done is stored, and the same command continues");
    Err(CliError::new(first.exit(), first.sentence()).help(next))
}

/// Settings of the part of a device.
fn of_part(settings: &PartSettings, device: DeviceChoice, shard: Shard) -> PartSettings {
    let engine = EngineSettings { device, ..settings.engine.clone() };
    PartSettings { shard, engine, ..settings.clone() }
}

/// A process.
struct Part {
    device: String,
    child: Child,
    errors: JoinHandle<Vec<String>>,
    events: PathBuf,
    read: u64,
    stopped: bool,
    planned: usize,
    done: usize,
    correct: usize,
}

/// A process that has ended.
struct Ended {
    device: String,
    code: Option<i32>,
    error: Option<String>,
    help: Option<String>,
    warnings: Vec<String>,
}

impl Part {
    fn start(settings: &PartSettings, results: &Path, folder: &Path) -> Result<Part, CliError> {
        let device = settings.engine.device;
        let failed = |error: std::io::Error| {
            CliError::new(Exit::Engine, format!("cannot start the process for {}: {error}", device_name(device)))
        };
        let file = |ending: &str| folder.join(format!("{}.{ending}", settings.shard.part));
        let (given, events) = (file("json"), file("jsonl"));
        let text = serde_json::to_vec(settings).map_err(|error| failed(error.into()))?;
        std::fs::write(&given, text).map_err(failed)?;
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        // What `EARNEST_DEVICE` would choose is in the settings.
        command.args(["--quiet", "run-part"]).arg(&given).env_remove("EARNEST_DEVICE");
        command.arg("--results").arg(results).arg("--events").arg(&events);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // Ctrl-C on a terminal reaches this process only, which passes it on once.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(failed)?;
        let stderr = child.stderr.take();
        let errors = std::thread::Builder::new().spawn(move || {
            stderr.map_or_else(Vec::new, |pipe| BufReader::new(pipe).lines().map_while(Result::ok).collect())
        });
        let errors = errors.map_err(|error| {
            // Nobody would wait for it.
            child.kill().and_then(|()| child.wait()).ok();
            failed(error)
        })?;
        let device = device_name(device);
        Ok(Part { device, child, errors, events, read: 0, stopped: false, planned: 0, done: 0, correct: 0 })
    }

    /// A process whose state cannot be read counts as ended; waiting for it then says why.
    fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn stop(&mut self) {
        if !std::mem::replace(&mut self.stopped, true) {
            ask_to_stop(&mut self.child);
        }
    }

    /// Reads the events that were written since the last time.
    fn read_events(&mut self) {
        let mut text = String::new();
        let read = File::open(&self.events).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.read))?;
            file.read_to_string(&mut text)
        });
        // A file that is not there yet, or ends within a character, is read later.
        if read.is_err() {
            return;
        }
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        self.read += whole as u64;
        for line in text[..whole].lines() {
            let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
            match event["event"].as_str() {
                Some("started") => {
                    self.planned = event["planned"].as_u64().unwrap_or(0) as usize;
                    self.done = event["recorded"].as_u64().unwrap_or(0) as usize;
                }
                Some("sample") => {
                    self.done += 1;
                    self.correct += usize::from(event["correct"] == true);
                }
                _ => {}
            }
        }
    }

    fn end(mut self) -> Ended {
        let code = self.child.wait().ok().and_then(|status| status.code());
        let lines = self.errors.join().unwrap_or_default();
        let after = |word: &str| lines.iter().rev().find_map(|line| line.strip_prefix(word)).map(str::to_owned);
        // A process that did not end by itself has no such line: its last one says most.
        let error = after("error: ").or_else(|| lines.iter().rev().find(|line| !line.trim().is_empty()).cloned());
        let warnings = lines.iter().filter_map(|line| line.strip_prefix("warning: ")).map(str::to_owned).collect();
        Ended { device: self.device, code, error, help: after("help: "), warnings }
    }
}

impl Ended {
    /// Samples that failed for good are a result.
    fn has_failed(&self) -> bool {
        !matches!(self.code, Some(0 | 1))
    }

    fn exit(&self) -> Exit {
        let known = [Exit::Usage, Exit::Model, Exit::Results, Exit::Engine, Exit::TooManyFailures, Exit::Interrupted];
        known.into_iter().find(|exit| Some(i32::from(exit.code())) == self.code).unwrap_or(Exit::Engine)
    }

    fn sentence(&self) -> String {
        let how = match self.code {
            Some(_) => String::new(),
            None => " was killed".to_owned(),
        };
        let error = self.error.as_ref().map_or(String::new(), |error| format!(": {error}"));
        match how.is_empty() && error.is_empty() {
            true => format!("the process on {} failed with exit code {}", self.device, self.code.unwrap_or_default()),
            false if how.is_empty() => format!("the process on {} failed{error}", self.device),
            false => format!("the process on {}{how}{error}", self.device),
        }
    }
}

/// One line of progress for all processes.
struct Display {
    printer: Printer,
    bar: Option<ProgressBar>,
    begun: Option<(Instant, usize)>,
    last: Instant,
}

impl Display {
    fn new(printer: Printer) -> Display {
        let bar = (!printer.is_quiet() && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
            bar.set_style(ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar
        });
        Display { printer, bar, begun: None, last: Instant::now() }
    }

    fn show(&mut self, parts: &[Part]) {
        let done: usize = parts.iter().map(|part| part.done).sum();
        if self.begun.is_none() && parts.iter().all(|part| part.planned > 0) {
            self.begun = Some((Instant::now(), done));
        }
        let elapsed = self.begun.map(|(start, before)| (start.elapsed(), done - before.min(done)));
        match &self.bar {
            Some(bar) => bar.set_message(line(parts, elapsed)),
            None if self.last.elapsed() >= PLAIN_PERIOD => {
                self.last = Instant::now();
                self.printer.message(&line(parts, elapsed));
            }
            None => {}
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Figures of all parts; `elapsed` is the time since all have begun and the samples done in it.
fn line(parts: &[Part], elapsed: Option<(Duration, usize)>) -> String {
    let (planned, done) = (parts.iter().map(|p| p.planned).sum::<usize>(), parts.iter().map(|p| p.done).sum::<usize>());
    let each: Vec<String> = parts
        .iter()
        .map(|part| match part.planned {
            0 => format!("{} loading", part.device),
            planned => format!("{} {}/{planned}", part.device, part.done),
        })
        .collect();
    let correct: usize = parts.iter().map(|part| part.correct).sum();
    let rate =
        elapsed.filter(|(time, new)| time.as_secs_f64() > 1.0 && *new > 0).map_or(String::new(), |(time, new)| {
            let per_second = new as f64 / time.as_secs_f64();
            let left = (planned - done.min(planned)) as f64 / per_second;
            format!(", {correct} right so far, {per_second:.1}/s, {left:.0} s left")
        });
    format!("{done}/{planned}  {}{rate}", each.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_process_is_named_with_its_message() {
        let ended = |code, error: Option<&str>| Ended {
            device: "cuda:1".into(),
            code,
            error: error.map(str::to_owned),
            help: None,
            warnings: vec![],
        };
        let failed = ended(Some(5), Some("the device has no 5 bytes left"));
        assert_eq!(failed.sentence(), "the process on cuda:1 failed: the device has no 5 bytes left");
        assert_eq!((failed.exit(), failed.has_failed()), (Exit::Engine, true));
        assert_eq!(ended(None, None).sentence(), "the process on cuda:1 was killed");
        assert_eq!(ended(Some(3), None).sentence(), "the process on cuda:1 failed with exit code 3");
        assert!(!ended(Some(1), None).has_failed());
    }
}
