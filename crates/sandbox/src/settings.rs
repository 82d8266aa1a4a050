//! Settings of a sandbox.
use std::path::PathBuf;
use std::time::Duration;

/// Settings of a [`Pool`](super::Pool).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Worker executable: a program whose `main` begins with [`serve_if_worker`](super::serve_if_worker).
    pub program: PathBuf,
    /// CPython 3 executable that runs samples; `None` for the embedded interpreter.
    pub python: Option<PathBuf>,
    /// Command around every worker, which isolates it where the system cannot.
    pub command: Option<SandboxCommand>,
    /// Permits programs to run although parts of the confinement are missing.
    pub unconfined: bool,
    /// Maximum number of samples that run concurrently.
    pub workers: usize,
    /// Wall-clock limit of a sample.
    pub wall: Duration,
    /// Address space of a sample beyond the interpreter's own, in bytes.
    pub memory: u64,
}

impl Settings {
    /// Default wall-clock limit. Ordinary solutions take a millisecond.
    pub const WALL: Duration = Duration::from_secs(10);
    /// Default memory limit, in bytes.
    pub const MEMORY: u64 = 512 << 20;

    /// Returns the default limits, one worker per core, and this worker executable.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Settings {
            program: program.into(),
            python: None,
            command: None,
            unconfined: false,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            wall: Self::WALL,
            memory: Self::MEMORY,
        }
    }

    /// Returns the default settings with the running program as the worker; its `main` must begin with
    /// [`serve_if_worker`](super::serve_if_worker).
    ///
    /// # Errors
    /// If the path of the running program cannot be determined.
    pub fn of_this_program() -> std::io::Result<Self> {
        Ok(Self::new(std::env::current_exe()?))
    }
}

/// Placeholder of the worker's executable in a [`SandboxCommand`].
const PROGRAM: &str = "{program}";
/// Placeholder of the argument that makes the executable a worker.
const WORKER: &str = "{worker}";

/// Command that starts a worker in an isolation of the user's: words as a shell splits them, with quotes and backslashes and
/// nothing else of a shell.
///
/// `{program}` stands for this executable and `{worker}` for the argument that makes it a worker; without `{worker}` both are
/// appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxCommand {
    text: String,
    words: Vec<String>,
}

/// Text that is not a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    #[error("the command is empty")]
    Empty,
    #[error("the quote {0} is not closed")]
    Quote(char),
}

impl std::str::FromStr for SandboxCommand {
    type Err = CommandError;

    fn from_str(text: &str) -> Result<Self, CommandError> {
        let words = words(text)?;
        if words.first().is_none_or(String::is_empty) {
            return Err(CommandError::Empty);
        }
        Ok(SandboxCommand { text: text.trim().to_owned(), words })
    }
}

impl std::fmt::Display for SandboxCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl SandboxCommand {
    /// Returns the words that start a worker.
    pub(super) fn of_worker(&self, program: &str, argument: &str) -> Vec<String> {
        let fill = |word: &String| word.replace(PROGRAM, program).replace(WORKER, argument);
        let mut words: Vec<String> = self.words.iter().map(fill).collect();
        if !self.words.iter().any(|word| word.contains(WORKER)) {
            words.extend([program.to_owned(), argument.to_owned()]);
        }
        words
    }
}

/// Splits a text into words.
fn words(text: &str) -> Result<Vec<String>, CommandError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(letters.next()),
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    match quote {
        Some(open) => Err(CommandError::Quote(open)),
        None => {
            words.extend(word);
            Ok(words)
        }
    }
}
