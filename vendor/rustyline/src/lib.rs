//! The interface of a line editor that RustPython's prompt compiles with. The sandbox has no terminal, and nothing asks for a line.
use std::marker::PhantomData;
use std::path::Path;

use error::ReadlineError;

/// Result of the editor.
pub type Result<T> = std::result::Result<T, ReadlineError>;

/// Errors of the editor.
pub mod error {
    /// Reason for there being no line.
    #[derive(Debug)]
    #[non_exhaustive]
    pub enum ReadlineError {
        Io(std::io::Error),
        Eof,
        Interrupted,
        #[cfg(unix)]
        Errno(nix::Error),
        Signal(()),
    }

    impl std::fmt::Display for ReadlineError {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "no line: {self:?}")
        }
    }

    impl std::error::Error for ReadlineError {}
}

/// Lines of before.
pub mod history {
    /// None of them.
    pub struct DefaultHistory;
}

/// A completer of words.
pub trait Helper {}

impl Helper for () {}

/// An editor at the end of its input.
pub struct Editor<H, I>(PhantomData<(H, I)>);

impl<H: Helper, I> Editor<H, I> {
    pub fn with_config(_: Config) -> Result<Self> {
        Ok(Editor(PhantomData))
    }

    pub fn set_helper(&mut self, _: Option<H>) {}

    pub fn bind_sequence(&mut self, _: KeyEvent, _: EventHandler) {}

    pub fn load_history(&mut self, _: &Path) -> Result<()> {
        Ok(())
    }

    pub fn save_history(&mut self, _: &Path) -> Result<()> {
        Ok(())
    }

    pub fn add_history_entry(&mut self, _: &str) -> Result<bool> {
        Ok(false)
    }

    pub fn readline(&mut self, _: &str) -> Result<String> {
        Err(ReadlineError::Eof)
    }
}

/// Settings, which are accepted, and their builder.
pub struct Config;

impl Config {
    pub fn builder() -> Self {
        Config
    }

    pub fn completion_type(self, _: CompletionType) -> Self {
        self
    }

    pub fn tab_stop(self, _: u8) -> Self {
        self
    }

    pub fn bracketed_paste(self, _: bool) -> Self {
        self
    }

    pub fn build(self) -> Self {
        self
    }
}

/// How completions are shown.
pub enum CompletionType {
    List,
}

/// A key.
pub struct KeyEvent;

impl KeyEvent {
    pub fn new(_: char, _: Modifiers) -> Self {
        KeyEvent
    }
}

/// Keys held beside a key.
pub struct Modifiers;

impl Modifiers {
    pub const CTRL: Self = Modifiers;
}

/// What a key does.
pub enum EventHandler {
    Simple(Cmd),
}

/// An edit.
pub enum Cmd {
    Insert(usize, String),
}
