//! Built-in suites on this machine: their data files, their programs, and the suites of stored runs.
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Map, Value};

use crate::EvalError;
use crate::prompt::ModeRequest;
use crate::run::store::{Store, legacy_folders};
use crate::run::{Reporter, RunEvent, RunSettings, SandboxRunner};
use earnest_models::hub::{Cache, Commit, Environment, RepoId};
use earnest_sandbox::{Pool, SandboxError, Settings};
use earnest_tasks::answer::gsm::{CodeOutcome, CodeRunner, Program};
use earnest_tasks::suite::Suite;
use earnest_tasks::suite::registry::{
    BuiltIn, Choice, DATA_VARIABLE, ErrorKind, Host, OptionError, OptionValues, Programs, check_prompts, find,
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
        self.registration.card().mode.map_or(ModeRequest::Auto, ModeRequest::from)
    }
}

/// Checks the options of a built-in suite and finds its data.
///
/// # Errors
/// If there is no such suite, its options are impossible, or its data are missing.
pub fn configure(name: &str, values: &OptionValues) -> Result<ConfiguredSuite, EvalError> {
    let Some(registration) = find(name) else {
        return Err(EvalError::setting(format!("there is no suite {name}")).hint("`earnest suites` lists them"));
    };
    check_prompts(&registration.card(), &values.prompts)?;
    Ok(ConfiguredSuite { registration, choice: registration.configure(values, &LocalHost)? })
}

/// The suite of a stored run: the items it asked, scored by today's rules.
///
/// # Errors
/// If there is no such suite, its options cannot be read, or its data are missing or changed.
pub fn stored(settings: &RunSettings) -> Result<Box<dyn Suite>, OptionError> {
    let Some(suite) = find(&settings.suite) else {
        let message = format!("this earnest has no suite {}", settings.suite);
        return Err(OptionError::data(message).help("`earnest suites` lists those it has"));
    };
    let suite = suite.stored(&settings.suite_options, &LocalHost).map_err(|error| {
        if error.kind != ErrorKind::Unreadable {
            return error;
        }
        OptionError::data(format!("the options of a run of {} cannot be read: {error}", settings.suite))
            .help("its data was moved or changed, or it was written by another version of earnest")
    })?;
    Ok(settings.thinking_text.of(suite))
}

/// Opens results, which may be new, and takes runs of earlier versions over.
pub fn create_results(folder: &Path, reporter: &mut dyn Reporter) -> Result<Store, EvalError> {
    let store = Store::create(folder)?;
    for run in legacy_folders(folder)? {
        let (name, rows) = store.take_over(&run, |manifest| -> Result<_, EvalError> {
            let suite = stored(&manifest.settings)?;
            let walk = manifest.plan().walk(suite.as_ref());
            Ok(walk.map(|planned| ((planned.item.id, planned.sample), planned.index)).collect())
        })?;
        reporter.event(&RunEvent::Message(format!(
            "took {name} ({rows} samples) over from an earlier version's folder, which is now in {}",
            folder.join("taken-over").display()
        )));
    }
    Ok(store)
}

/// Names of the rules that decide in a run, without reading its data; none where its suite or options are not known.
pub fn primary(settings: &RunSettings) -> Vec<String> {
    let rules = find(&settings.suite).map_or_else(Vec::new, |suite| suite.primary(&settings.suite_options));
    rules.into_iter().map(str::to_owned).collect()
}

/// Files, the Hugging Face cache and the sandbox of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalHost;

impl Host for LocalHost {
    fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn is_folder(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn absolute(&self, path: &Path) -> Result<PathBuf, String> {
        std::fs::canonicalize(path).map_err(|error| error.to_string())
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, String> {
        std::fs::read(path).map_err(|error| error.to_string())
    }

    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, String> {
        let entries = std::fs::read_dir(folder).map_err(|error| error.to_string())?;
        let found: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
        let mut found = found.map_err(|error| error.to_string())?;
        found.sort();
        Ok(found)
    }

    fn parquet_rows(&self, path: &Path) -> Result<Vec<Map<String, Value>>, String> {
        let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
        let reader = SerializedFileReader::new(file).map_err(|error| error.to_string())?;
        let rows = reader.get_row_iter(None).map_err(|error| error.to_string())?;
        rows.map(|row| {
            let columns = row.map_err(|error| error.to_string())?.into_columns();
            Ok(columns.into_iter().filter_map(|(name, field)| Some((name, json(field)?))).collect())
        })
        .collect()
    }

    fn moved(&self) -> Option<PathBuf> {
        std::env::var_os(DATA_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    fn cached_dataset(&self, dataset: &str) -> Vec<(String, PathBuf)> {
        let cache = Cache::of(&Environment::read(true));
        let (Ok(cache), Ok(repo)) = (cache, RepoId::parse(dataset)) else { return Vec::new() };
        let snapshots = cache.dataset_snapshots(&repo).into_iter();
        snapshots.map(|(commit, folder)| (commit.as_str().to_owned(), folder)).collect()
    }

    fn commit(&self, revision: &str) -> Result<String, String> {
        Commit::parse(revision).map(|commit| commit.as_str().to_owned())
    }

    fn programs(&self, python: Option<&Path>) -> Arc<dyn Programs> {
        Arc::new(LazySandbox { python: python.map(Path::to_owned), pool: OnceLock::new() })
    }
}

/// A text or an integer; other fields are left out.
fn json(field: Field) -> Option<Value> {
    Some(match field {
        Field::Str(text) => text.into(),
        Field::Byte(value) => value.into(),
        Field::Short(value) => value.into(),
        Field::Int(value) => value.into(),
        Field::Long(value) => value.into(),
        Field::UByte(value) => value.into(),
        Field::UShort(value) => value.into(),
        Field::UInt(value) => value.into(),
        Field::ULong(value) => value.into(),
        _ => return None,
    })
}

/// The sandbox, started when the first program is to be run: most commands on stored runs run none.
struct LazySandbox {
    python: Option<PathBuf>,
    pool: OnceLock<Result<SandboxRunner, String>>,
}

impl LazySandbox {
    fn open(&self) -> Result<SandboxRunner, OptionError> {
        let settings = Settings::of_this_program()
            .map_err(|error| OptionError::programs(format!("cannot find this program's file: {error}")))?;
        let pool = Pool::new(Settings { python: self.python.clone(), ..settings }).map_err(|error| {
            let plain = match error {
                SandboxError::Python { .. } => OptionError::usage(&error),
                _ => OptionError::programs(&error),
            };
            OptionError { help: error.help(), ..plain }
        })?;
        Ok(SandboxRunner(pool))
    }
}

impl CodeRunner for LazySandbox {
    fn run(&self, program: &Program) -> CodeOutcome {
        match self.pool.get_or_init(|| self.open().map_err(|error| error.message)) {
            Ok(pool) => pool.run(program),
            Err(reason) => CodeOutcome::Unavailable(reason.clone()),
        }
    }
}

impl Programs for LazySandbox {
    fn start(&self) -> Result<(), OptionError> {
        if !matches!(self.pool.get(), Some(Ok(_))) {
            // Only a pool that was started in between would be there already.
            let _ = self.pool.set(Ok(self.open()?));
        }
        Ok(())
    }
}
