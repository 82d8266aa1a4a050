//! Built-in suites on this machine: their data files, their programs, and the suites of stored runs.
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use crate::{ModeRequest, Reporter, ResultsError, RunEvent, RunNotice, RunSettings, SandboxRunner, by_cluster};
use earnest_rows::{FileError, ParquetFile};

use earnest_answer::{CodeOutcome, CodeRunner, Program};
use earnest_digest::input;
use earnest_isolation::{Job, Limited};
use earnest_models::hub::{Cache, Commit, Environment, RepoId};
use earnest_sandbox::{Confinement, Pool, SandboxCommand, SandboxError, Settings};
use earnest_tasks::suite::Suite;
use earnest_tasks::suite::quoted::shortened;
use earnest_tasks::suite::registry::{
    BuiltIn, Channel, Choice, DATA_VARIABLE, ErrorKind, Host, HostError, OptionError, OptionValues, Programs,
    ProgramsRecord, RowSource, Rows, find, find_stored,
};

/// A built-in suite with checked options.
pub struct ConfiguredSuite {
    pub registration: &'static dyn BuiltIn,
    /// Suite before its channel to the model is known.
    pub choice: Box<dyn Choice>,
}

impl ConfiguredSuite {
    /// Returns the prompt mode where none is asked for.
    pub fn default_mode(&self) -> ModeRequest {
        self.choice.mode().or(self.registration.card().mode).map_or(ModeRequest::Auto, ModeRequest::from)
    }

    /// Returns the suite for a channel to a model.
    ///
    /// # Errors
    /// If the options do not fit the channel, or the data cannot be read.
    pub fn suite(&self, channel: Channel) -> Result<Suite, OptionError> {
        self.choice.suite(channel)
    }
}

/// Checks the options of a built-in suite and finds its data; its model-written programs run confined or not at all.
///
/// # Errors
/// If there is no such suite, its options are impossible, or its data are missing.
pub fn configure(name: &str, values: &OptionValues) -> Result<ConfiguredSuite, ResultsError> {
    LocalHost::default().configure(name, values)
}

/// Returns the suite of a stored run: its items, scored by the current scorers; its model-written programs run confined or not at all.
///
/// # Errors
/// Unknown suite, unreadable options, or missing or changed data.
pub fn stored(settings: &RunSettings) -> Result<Suite, OptionError> {
    LocalHost::default().stored(settings)
}

/// Returns the names of a run's deciding scorers without reading its data; none for unknown suites or options.
pub fn chosen(settings: &RunSettings) -> Vec<String> {
    let suite = find_stored(&settings.suite, &settings.suite_options);
    suite.map_or_else(Vec::new, |suite| suite.chosen(&settings.suite_options))
}

/// Characters of a stored run's interpreter in a message.
const LONGEST_SHOWN: usize = 200;

/// Memory for the rows of a suite's Parquet file, in bytes. The largest, of GSM-Symbolic, take 10 MB.
const MOST_ROWS: u64 = 256 << 20;

/// Files, the Hugging Face cache and the sandbox of this machine. The default one runs model-written programs confined or not at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LocalHost {
    /// Private, so that nothing loosens it once suites hold programs of this host.
    policy: ProgramPolicy,
    /// True for the host of a stored run's suite, whose options are not the user's.
    is_of_stored: bool,
}

impl LocalHost {
    /// Creates a host with a policy for the model-written programs of its suites.
    pub fn new(policy: ProgramPolicy) -> Self {
        LocalHost { policy, is_of_stored: false }
    }

    /// True if programs run in an isolation of the user's.
    pub fn has_command(&self) -> bool {
        self.policy.command.is_some()
    }

    fn sandbox(&self, python: Option<&Path>) -> LazySandbox {
        let python = python.map(Path::to_owned);
        LazySandbox { python, policy: self.policy.clone(), is_of_stored: self.is_of_stored, pool: OnceLock::new() }
    }

    /// Checks the options of a built-in suite and finds its data.
    ///
    /// # Errors
    /// As [`configure`].
    pub fn configure(&self, name: &str, values: &OptionValues) -> Result<ConfiguredSuite, ResultsError> {
        let Some(registration) = find(name) else {
            return Err(ResultsError::setting(format!("there is no suite {name}")).hint("`earnest suites` lists them"));
        };
        registration.check_prompts(&values.prompts)?;
        Ok(ConfiguredSuite { registration, choice: registration.configure(values, self)? })
    }

    /// Returns the suite of a stored run: its items, scored by the current scorers.
    ///
    /// # Errors
    /// As [`stored`].
    pub fn stored(&self, settings: &RunSettings) -> Result<Suite, OptionError> {
        let Some(suite) = find_stored(&settings.suite, &settings.suite_options) else {
            let message = format!("this version of earnest has no suite {}", settings.suite);
            return Err(OptionError::data(message).help("`earnest suites` lists them"));
        };
        let host = LocalHost { is_of_stored: true, ..self.clone() };
        let suite = suite.stored(&settings.suite_options, &host).map_err(|error| {
            if error.kind != ErrorKind::Unreadable {
                return error;
            }
            OptionError::data(format!("the options of a run of {} cannot be read: {error}", settings.suite))
                .help("the data were moved or changed, or another version of earnest wrote the run")
        })?;
        let suite = Suite { thinking: settings.thinking_text, ..suite };
        Ok(match settings.until {
            Some(_) => by_cluster(&suite, settings.limit, settings.generation.seed),
            None => suite,
        })
    }
}

impl Host for LocalHost {
    fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn is_folder(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn absolute(&self, path: &Path) -> Result<PathBuf, HostError> {
        std::fs::canonicalize(path).map_err(HostError::failed)
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, HostError> {
        input::read(path, input::MOST_DOCUMENT).map_err(HostError::failed)
    }

    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, HostError> {
        let entries = std::fs::read_dir(folder).map_err(HostError::failed)?;
        let found: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
        let mut found = found.map_err(HostError::failed)?;
        found.sort();
        Ok(found)
    }

    fn parquet_rows(&self, path: &Path) -> Result<Vec<Map<String, Value>>, HostError> {
        let unread = |error: FileError| match error {
            FileError::Input { source, .. } => HostError::failed(source),
            FileError::Line { problem, .. } | FileError::Unread { problem, .. } => HostError::failed(problem),
        };
        let file = ParquetFile::open(path).map_err(unread)?;
        let (mut found, mut held) = (Vec::new(), 0_u64);
        let mut each = |_: u64, mut row: Map<String, Value>| -> Result<(), FileError> {
            row.retain(|_, value| value.is_string() || value.is_i64() || value.is_u64());
            let text = |value: &Value| value.as_str().map_or(0, str::len);
            held += 128 + row.iter().map(|(name, value)| 128 + (name.len() + text(value)) as u64).sum::<u64>();
            if held > MOST_ROWS {
                let message = format!("its rows need more than {} MiB of memory, which is the limit", MOST_ROWS >> 20);
                return Err(FileError::unread(path, message));
            }
            found.push(row);
            Ok(())
        };
        file.rows(path, &|_, _| true, &mut each).map_err(unread)?;
        Ok(found)
    }

    fn rows(&self, source: &RowSource) -> Result<Arc<dyn Rows>, OptionError> {
        earnest_rows::read(source)
    }

    fn moved(&self) -> Option<PathBuf> {
        std::env::var_os(DATA_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    fn cached_dataset(&self, dataset: &str) -> Vec<(String, PathBuf)> {
        let cache = Cache::from_environment(&Environment::read(true));
        let (Ok(cache), Ok(repo)) = (cache, RepoId::dataset(dataset)) else { return Vec::new() };
        let snapshots = cache.dataset_snapshots(&repo).into_iter();
        snapshots.map(|(commit, folder)| (commit.as_str().to_owned(), folder)).collect()
    }

    fn commit(&self, revision: &str) -> Result<String, HostError> {
        Commit::parse(revision).map(|commit| commit.as_str().to_owned()).map_err(HostError::failed)
    }

    fn limited(&self, job: &'static Job, settings: Vec<u8>, memory: u64) -> Limited {
        Limited::new(job, settings, memory)
    }

    fn programs(&self, python: Option<&Path>) -> Arc<dyn Programs> {
        Arc::new(self.sandbox(python))
    }
}

/// Confinement of model-written programs; the default permits none that is not confined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramPolicy {
    /// Command around the interpreter that isolates it where the system cannot.
    pub command: Option<SandboxCommand>,
    /// Permits programs to run although parts of the confinement are missing.
    pub unconfined: bool,
    /// Interpreter that may be started because a stored run names it. It is started without limits, and the run may be somebody else's.
    pub stored_python: Option<PathBuf>,
}

/// Starts the interpreter of a suite whose scoring runs model-written programs, with a warning if they are not confined; returns
/// the interpreter and its confinement, none for other suites.
///
/// # Errors
/// If it cannot be started, or its programs cannot be confined.
pub fn start_programs(suite: &Suite, reporter: &mut dyn Reporter) -> Result<Option<ProgramsRecord>, OptionError> {
    let Some(programs) = suite.scoring.programs() else { return Ok(None) };
    programs.start()?;
    let record = programs.record();
    if let Some(record) = record.as_ref().filter(|record| record.is_unconfined()) {
        reporter.event(&RunEvent::notice(RunNotice::Unconfined { missing: record.missing.clone() }));
    }
    Ok(record)
}

/// A sandbox that starts with the first program, because most commands on stored runs execute none.
struct LazySandbox {
    python: Option<PathBuf>,
    policy: ProgramPolicy,
    is_of_stored: bool,
    pool: OnceLock<Result<SandboxRunner, OptionError>>,
}

impl LazySandbox {
    fn settings(&self) -> Result<Settings, OptionError> {
        let settings = Settings::of_this_program()
            .map_err(|error| OptionError::programs(format!("cannot find this program's file: {error}")))?;
        let ProgramPolicy { command, unconfined, stored_python } = self.policy.clone();
        if let Some(python) =
            self.python.as_ref().filter(|python| self.is_of_stored && stored_python.as_ref() != Some(python))
        {
            let named = shortened(&python.display().to_string(), LONGEST_SHOWN);
            return Err(OptionError::usage(format!("{named}, which only the stored run names, is not started"))
                .help("if you trust it, name it by the setting `allow_python` too"));
        }
        Ok(Settings { python: self.python.clone(), command, unconfined, ..settings })
    }

    fn open(&self) -> Result<SandboxRunner, OptionError> {
        let settings = self.settings()?;
        let pool = Pool::new(settings).map_err(|error| {
            let plain = match error {
                SandboxError::Python { .. } | SandboxError::NoInterpreter => OptionError::usage(&error),
                _ => OptionError::programs(&error),
            };
            OptionError { help: error.help(), ..plain }
        })?;
        Ok(SandboxRunner(pool))
    }
}

/// Interpreter and confinement of a pool, for a manifest.
fn record(pool: &Pool) -> ProgramsRecord {
    let (report, settings) = (pool.report(), pool.settings());
    let Confinement { landlock, seccomp, no_new_privileges, limits, command, missing } = &report.confinement;
    let mut measures: Vec<String> = landlock.iter().map(|abi| format!("landlock ABI {abi}")).collect();
    for (name, is_on) in [("seccomp", seccomp), ("no new privileges", no_new_privileges), ("resource limits", limits)] {
        measures.extend(is_on.then(|| name.to_owned()));
    }
    ProgramsRecord {
        interpreter: report.interpreter.clone(),
        measures,
        wall_s: settings.wall.as_secs_f64(),
        memory: settings.memory,
        command: command.clone(),
        missing: missing.iter().map(ToString::to_string).collect(),
    }
}

impl CodeRunner for LazySandbox {
    fn run(&self, program: &Program) -> CodeOutcome {
        match self.pool.get_or_init(|| self.open()) {
            Ok(pool) => pool.run(program),
            Err(error) => CodeOutcome::Unavailable(error.message.clone()),
        }
    }
}

impl Programs for LazySandbox {
    fn start(&self) -> Result<(), OptionError> {
        self.pool.get_or_init(|| self.open()).as_ref().map(drop).map_err(OptionError::clone)
    }

    fn record(&self) -> Option<ProgramsRecord> {
        self.pool.get()?.as_ref().ok().map(|runner| record(&runner.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_hosts_of_a_process_have_two_policies() {
        let open = LocalHost::new(ProgramPolicy { unconfined: true, ..ProgramPolicy::default() });
        let command = Some("bwrap --unshare-all".parse().unwrap());
        let isolated = ProgramPolicy { command, ..ProgramPolicy::default() };
        let (isolated, closed) = (LocalHost::new(isolated), LocalHost::default());
        let settings = |host: &LocalHost| host.sandbox(None).settings().unwrap();
        assert!(settings(&open).unconfined && settings(&open).command.is_none());
        assert!(!settings(&isolated).unconfined && settings(&isolated).command.is_some());
        // Neither of the others has loosened the one that was given no policy.
        assert!(!settings(&closed).unconfined && settings(&closed).command.is_none());
    }

    #[test]
    fn an_interpreter_that_only_a_stored_run_names_is_not_started() {
        let [python, other] = ["/bin/python3", "/bin/other"].map(Path::new);
        let host = |allowed: Option<&Path>, is_of_stored| {
            let policy = ProgramPolicy { stored_python: allowed.map(Path::to_owned), ..ProgramPolicy::default() };
            LocalHost { is_of_stored, ..LocalHost::new(policy) }
        };
        let settings = |host: LocalHost, python| host.sandbox(python).settings();
        for refused in [host(None, true), host(Some(other), true)] {
            let error = settings(refused, Some(python)).unwrap_err();
            assert!(error.to_string().contains("/bin/python3") && error.help.is_some(), "{error}");
        }
        for permitted in [host(Some(python), true), host(None, false)] {
            assert_eq!(settings(permitted, Some(python)).unwrap().python.as_deref(), Some(python));
        }
        // The embedded one is this program's own.
        assert!(settings(host(None, true), None).unwrap().python.is_none());
    }
}
