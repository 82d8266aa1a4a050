//! Options of suites as data: programs build command lines from them, suites read the given values.
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use serde::de::DeserializeOwned;

use crate::suite::MAX_SAMPLES;

/// Former spellings of `--scorer` of suites, which old command lines have.
const FORMER_SCORER: [&str; 2] = ["rule", "profile"];

/// Description of one option.
#[derive(Debug, Clone, Copy)]
pub struct OptionSpec {
    /// Name in settings, e.g. `per-length`.
    pub name: &'static str,
    /// Name on the command line without its dashes; mostly the same.
    pub long: &'static str,
    /// Name of the value in help texts, e.g. `N`.
    pub value: &'static str,
    /// Help sentence, with the default where there is one.
    pub help: &'static str,
    /// Kind of value.
    pub kind: OptionKind,
    /// Heading in help texts; none is the suite's own.
    pub heading: Option<&'static str>,
    /// Options that cannot be given together with this one.
    pub excludes: &'static [&'static str],
    /// Options that have to be given together with this one.
    pub needs: &'static [&'static str],
    /// Value where the option is given without one; none if it must have one.
    pub missing: Option<&'static str>,
    /// Former names, which are still read.
    pub aliases: &'static [&'static str],
    /// True if help texts leave it out.
    pub hidden: bool,
}

/// Kind of an option's value.
#[derive(Debug, Clone, Copy)]
pub enum OptionKind {
    /// No value.
    Flag,
    /// Any text that passes the check.
    Text(fn(&str) -> Result<(), OptionError>),
    /// Texts separated by commas.
    List,
    /// An integer from 0 to this one.
    Integer(u64),
    /// One of these names.
    Choice(&'static [&'static str]),
    /// Some of these names, separated by commas.
    Choices(&'static [&'static str]),
    /// A file or folder.
    Path,
    /// An option that every suite has: the program reads it. It is listed as one of those that select this suite's items.
    Shared,
}

impl OptionSpec {
    /// Seed of the items, as [`OptionValues::seed`].
    pub const SEED: OptionSpec = OptionSpec::new("seed", "SEED", "Seed of the items", OptionKind::Shared);

    /// Prompts, as [`OptionValues::prompts`].
    pub const PROMPT: OptionSpec = OptionSpec::new("prompt", "PROMPT", "Prompts of the suite", OptionKind::Shared);

    /// The deciding scorer, as [`OptionValues::scorer`]: `--scorer` on the command line, and `profile` in stored settings; `help` names the
    /// scorers and the default.
    pub const fn scorer(help: &'static str) -> Self {
        let spec = OptionSpec::new("profile", "NAME", help, OptionKind::Text(anything));
        OptionSpec { long: "scorer", heading: Some("Scoring"), aliases: &FORMER_SCORER, ..spec }
    }

    const fn new(name: &'static str, value: &'static str, help: &'static str, kind: OptionKind) -> Self {
        OptionSpec {
            name,
            long: name,
            value,
            help,
            kind,
            heading: None,
            excludes: &[],
            needs: &[],
            missing: None,
            aliases: &[],
            hidden: false,
        }
    }

    /// An option without a value.
    pub const fn flag(name: &'static str, help: &'static str) -> Self {
        OptionSpec::new(name, "", help, OptionKind::Flag)
    }

    /// Any text.
    pub const fn text(name: &'static str, value: &'static str, help: &'static str) -> Self {
        OptionSpec::new(name, value, help, OptionKind::Text(anything))
    }

    /// A text that `check` accepts; its error is about the text and does not name the option.
    pub const fn checked(
        name: &'static str,
        value: &'static str,
        help: &'static str,
        check: fn(&str) -> Result<(), OptionError>,
    ) -> Self {
        OptionSpec::new(name, value, help, OptionKind::Text(check))
    }

    /// Texts separated by commas.
    pub const fn list(name: &'static str, value: &'static str, help: &'static str) -> Self {
        OptionSpec::new(name, value, help, OptionKind::List)
    }

    /// An integer that is not negative, and no larger than a run.
    pub const fn integer(name: &'static str, value: &'static str, help: &'static str) -> Self {
        OptionSpec::new(name, value, help, OptionKind::Integer(MAX_SAMPLES as u64))
    }

    /// One of the names.
    pub const fn choice(
        name: &'static str,
        value: &'static str,
        help: &'static str,
        names: &'static [&'static str],
    ) -> Self {
        OptionSpec::new(name, value, help, OptionKind::Choice(names))
    }

    /// Some of the names, separated by commas.
    pub const fn choices(
        name: &'static str,
        value: &'static str,
        help: &'static str,
        names: &'static [&'static str],
    ) -> Self {
        OptionSpec::new(name, value, help, OptionKind::Choices(names))
    }

    /// A file or folder.
    pub const fn path(name: &'static str, value: &'static str, help: &'static str) -> Self {
        OptionSpec::new(name, value, help, OptionKind::Path)
    }

    /// The option under a heading that programs share, e.g. `Items`.
    pub const fn under(self, heading: &'static str) -> Self {
        OptionSpec { heading: Some(heading), ..self }
    }

    /// The option, refused together with others.
    pub const fn excluding(self, excludes: &'static [&'static str]) -> Self {
        OptionSpec { excludes, ..self }
    }

    /// The option, refused without others.
    pub const fn needing(self, needs: &'static [&'static str]) -> Self {
        OptionSpec { needs, ..self }
    }

    /// The option, whose value may be left out.
    pub const fn missing(self, value: &'static str) -> Self {
        OptionSpec { missing: Some(value), ..self }
    }

    /// The option with former names.
    pub const fn alias(self, aliases: &'static [&'static str]) -> Self {
        OptionSpec { aliases, ..self }
    }

    /// The option, left out of help texts.
    pub const fn hidden(self) -> Self {
        OptionSpec { hidden: true, ..self }
    }

    /// True if the suite reads it itself.
    pub fn is_own(&self) -> bool {
        !matches!(self.kind, OptionKind::Shared)
    }
}

fn anything(_: &str) -> Result<(), OptionError> {
    Ok(())
}

/// Kind of an error of a suite, from which programs choose their exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Impossible options.
    Usage,
    /// Rows of a file cannot be used, and are not to be skipped.
    BadRows,
    /// Options of a stored run cannot be read; the message is the reason alone.
    Unreadable,
    /// Data of a stored run are missing or changed.
    Data,
    /// Programs cannot be run here.
    Programs,
}

/// Error of a suite's options or data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct OptionError {
    pub kind: ErrorKind,
    /// One sentence that names the option or file.
    pub message: String,
    /// Next step, where there is one.
    pub help: Option<String>,
}

impl OptionError {
    /// Impossible options.
    pub fn usage(message: impl Display) -> Self {
        OptionError { kind: ErrorKind::Usage, message: message.to_string(), help: None }
    }

    /// Rows of a file that cannot be used, and are not to be skipped.
    pub fn bad_rows(message: impl Display) -> Self {
        OptionError { kind: ErrorKind::BadRows, ..Self::usage(message) }
    }

    /// Options of a stored run that cannot be read, for this reason.
    pub fn unreadable(reason: impl Display) -> Self {
        OptionError { kind: ErrorKind::Unreadable, ..Self::usage(reason) }
    }

    /// Data of a stored run that are missing or changed.
    pub fn data(message: impl Display) -> Self {
        OptionError { kind: ErrorKind::Data, ..Self::usage(message) }
    }

    /// Programs that cannot be run.
    pub fn programs(message: impl Display) -> Self {
        OptionError { kind: ErrorKind::Programs, ..Self::usage(message) }
    }

    /// The error with a next step.
    pub fn help(self, help: impl Into<String>) -> Self {
        OptionError { help: Some(help.into()), ..self }
    }
}

/// Option values as given. An option that was not given has no value; defaults are the suite's.
#[derive(Debug, Clone, Default)]
pub struct OptionValues {
    /// Seed of the items.
    pub seed: u64,
    /// Names of the suite's prompts.
    pub prompts: Vec<String>,
    given: BTreeMap<String, Vec<OsString>>,
}

impl OptionValues {
    /// No option given.
    pub fn new(seed: u64, prompts: Vec<String>) -> Self {
        OptionValues { seed, prompts, given: BTreeMap::new() }
    }

    /// Adds an option; a flag has no value.
    pub fn set(&mut self, name: &str, values: Vec<OsString>) {
        self.given.insert(name.to_owned(), values);
    }

    /// These values and an option with one value.
    pub fn with(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.set(name, vec![value.into()]);
        self
    }

    /// True if the option was given: a flag's value.
    pub fn has(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// True if some of the options were given.
    pub fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.has(name))
    }

    /// Names of the options that were given.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.given.keys().map(String::as_str)
    }

    fn first(&self, name: &str) -> Option<&OsStr> {
        self.given.get(name)?.first().map(OsString::as_os_str)
    }

    /// Text of an option.
    ///
    /// # Errors
    /// If it is not UTF-8.
    pub fn text(&self, name: &str) -> Result<Option<&str>, OptionError> {
        let Some(value) = self.first(name) else { return Ok(None) };
        value
            .to_str()
            .map(Some)
            .ok_or_else(|| OptionError::usage(format!("setting `{}`: the value is not UTF-8", setting(name))))
    }

    /// Texts of a list.
    ///
    /// # Errors
    /// If one is not UTF-8.
    pub fn list(&self, name: &str) -> Result<Option<Vec<&str>>, OptionError> {
        let Some(values) = self.given.get(name) else { return Ok(None) };
        let refused = || OptionError::usage(format!("setting `{}`: a value is not UTF-8", setting(name)));
        values.iter().map(|value| value.to_str().ok_or_else(refused)).collect::<Result<_, _>>().map(Some)
    }

    /// A value of any type that reads text. Messages of the type's own error should say what is possible.
    ///
    /// # Errors
    /// If the type refuses the text.
    pub fn parsed<T>(&self, name: &str) -> Result<Option<T>, OptionError>
    where
        T: FromStr,
        T::Err: Display,
    {
        let Some(text) = self.text(name)? else { return Ok(None) };
        text.parse()
            .map(Some)
            .map_err(|error| OptionError::usage(format!("setting `{} = {text}`: {error}", setting(name))))
    }

    pub fn path(&self, name: &str) -> Option<&Path> {
        self.first(name).map(Path::new)
    }

    /// The requested scorer, by one of the `possible` names.
    ///
    /// # Errors
    /// If the suite has no such scorer.
    pub fn scorer<P: DeserializeOwned>(&self, suite: &str, possible: &[&str]) -> Result<Option<P>, OptionError> {
        let Some(name) = self.text("profile")? else { return Ok(None) };
        check_scorer(suite, name, possible)?;
        serde_json::from_value(name.into())
            .map(Some)
            .map_err(|error| OptionError::usage(format!("setting `scorer = {name}`: {error}")))
    }
}

/// Name of the setting of an option.
fn setting(option: &str) -> String {
    option.replace('-', "_")
}

/// Refuses a scorer that is not among the possible ones.
///
/// # Errors
/// One that names them.
pub fn check_scorer(suite: &str, name: &str, possible: &[&str]) -> Result<(), OptionError> {
    if possible.contains(&name) {
        return Ok(());
    }
    Err(OptionError::usage(format!("{suite} has no scorer {name}"))
        .help(format!("the setting `scorer` takes {}", possible.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_by_type() {
        let mut values = OptionValues::new(7, Vec::new()).with("count", "12").with("data", "a/b");
        values.set("exact", Vec::new());
        values.set("kinds", vec!["one".into(), "two".into()]);
        assert!(values.has("exact") && !values.has("other") && values.has_any(&["other", "count"]));
        assert_eq!(values.parsed::<usize>("count"), Ok(Some(12)));
        assert_eq!(values.parsed::<usize>("other"), Ok(None));
        assert_eq!(values.list("kinds"), Ok(Some(vec!["one", "two"])));
        assert_eq!(values.path("data"), Some(Path::new("a/b")));
        let wrong = values.parsed::<bool>("count").unwrap_err();
        assert!(wrong.message.starts_with("setting `count = 12`: "), "{wrong}");
    }

    #[test]
    fn unknown_profiles_are_answered_with_the_known_ones() {
        let values = OptionValues::default().with("profile", "best");
        let error = values.scorer::<String>("toy", &["final", "strict"]).unwrap_err();
        assert_eq!(error.message, "toy has no scorer best");
        assert_eq!(error.help.as_deref(), Some("the setting `scorer` takes final, strict"));
        assert_eq!(OptionValues::default().scorer::<String>("toy", &[]), Ok(None));
    }
}
