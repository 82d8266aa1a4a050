//! Order of a command line: the suite's name before all options.
use std::ffi::OsString;

use clap::{Arg, Command};

use super::command::with_suites;
use super::usage_error::has_suites;

/// Moves the name of the suite in front of the command's options, so that options of both may stand before it. A file of questions
/// in the suite's place becomes `task --file FILE`.
///
/// Clap itself reads options before a subcommand as those of the command. Command lines that name no suite, or have an
/// option that nobody knows, come back as they are: clap explains them.
pub fn suite_first(mut words: Vec<OsString>, definition: &Command) -> Vec<OsString> {
    let mut command = definition;
    let mut index = 1;
    if let Some(position) = logs_of(&words, definition) {
        words[position] = LOGS.into();
        return words;
    }
    while !has_suites(command) {
        let Some(word) = words.get(index).and_then(|word| word.to_str()) else { return words };
        let options = command.get_arguments().chain(definition.get_arguments());
        match (option(word, options), command.find_subcommand(word)) {
            (Some(consumed), _) => index += consumed,
            (None, Some(found)) => {
                command = found;
                index += 1;
            }
            (None, None) => return words,
        }
    }
    let command = with_suites(command.clone());
    let mut position = index;
    // The name of a file need not be UTF-8.
    while let Some(word) = words.get(position).map(|word: &OsString| word.to_string_lossy().into_owned()) {
        let word = word.as_str();
        if command.find_subcommand(word).is_some() {
            let suite = words.remove(position);
            words.insert(index, suite);
            return words;
        }
        let suites = command.get_subcommands().flat_map(Command::get_arguments);
        let options = suites.chain(command.get_arguments()).chain(definition.get_arguments());
        match option(word, options) {
            Some(consumed) => position += consumed,
            None if is_file_of_questions(word) => {
                let file = words.remove(position);
                let task = ["task".into(), "--file".into(), file];
                words.splice(index..index, task);
                return words;
            }
            None => return words,
        }
    }
    words
}

/// Command that imports logs: `import` is called so if its first argument is a path.
const LOGS: &str = "import-logs";

/// Index of the word `import` where the first argument after it is no suite, so that logs are named. Options of completions alone
/// leave it to clap, which explains an unknown suite.
fn logs_of(words: &[OsString], definition: &Command) -> Option<usize> {
    let [import, logs] = ["import", LOGS].map(|name| definition.find_subcommand(name));
    let (import, logs) = (import?, logs?);
    let mut index = 1;
    loop {
        let word = words.get(index)?.to_str()?;
        match option(word, definition.get_arguments()) {
            Some(consumed) => index += consumed,
            None if word == "import" => break,
            None => return None,
        }
    }
    let found = index;
    index += 1;
    let own = ["--completions", "--name"];
    let is_own = |word: &OsString| {
        let word = word.to_str().unwrap_or_default();
        own.iter().any(|own| word == *own || word.strip_prefix(own).is_some_and(|rest| rest.starts_with('=')))
    };
    if words.iter().skip(index).any(is_own) {
        return None;
    }
    let with_suites = with_suites(import.clone());
    while let Some(word) = words.get(index) {
        // A path need not be UTF-8.
        let Some(word) = word.to_str() else { return Some(found) };
        let suites = with_suites.get_subcommands().flat_map(Command::get_arguments);
        let options = logs.get_arguments().chain(suites).chain(definition.get_arguments());
        match option(word, options) {
            Some(consumed) => index += consumed,
            None if with_suites.find_subcommand(word).is_some() => return None,
            None if word.starts_with('-') && word != "-" => index += 1,
            None => return Some(found),
        }
    }
    None
}

/// Endings of files of questions and of task files.
const ENDINGS: [&str; 8] = [".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".toml", ".gz"];

/// True for a word in a suite's place that names a file, whether it exists or not.
fn is_file_of_questions(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    !word.starts_with('-')
        && (word.contains(['/', '\\', '*'])
            || ENDINGS.iter().any(|ending| lower.ends_with(ending))
            || std::path::Path::new(word).is_file())
}

/// Number of words that an option takes, its value included; none if the word is not one of these options.
fn option<'a>(word: &str, mut options: impl Iterator<Item = &'a Arg>) -> Option<usize> {
    let (found, attached) = match word.strip_prefix("--") {
        Some(long) => {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let named = |arg: &&Arg| {
                arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
            };
            (options.find(named)?, value.is_some())
        }
        None => {
            let short = word.strip_prefix('-')?;
            let named = |arg: &&Arg| arg.get_short().is_some_and(|letter| short.starts_with(letter));
            (options.find(named)?, short.chars().count() > 1)
        }
    };
    let takes_value =
        found.get_action().takes_values() && found.get_num_args().is_none_or(|range| range.min_values() > 0);
    Some(if takes_value && !attached { 2 } else { 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(line: &str) -> String {
        let definition = crate::cli::args::definition();
        let words = suite_first(line.split(' ').map(OsString::from).collect(), &definition);
        words.join(std::ffi::OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn suites_come_before_options() {
        for (given, expected) in [
            ("earnest run --tasks add nupa --limit 3", "earnest run nupa --tasks add --limit 3"),
            ("earnest -q run --json --limit=3 --kinds all dnc", "earnest -q run dnc --json --limit=3 --kinds all"),
            (
                "earnest import --completions c.jsonl --name nupa nupa",
                "earnest import nupa --completions c.jsonl --name nupa",
            ),
            ("earnest models quant-check --model x dnc", "earnest models quant-check dnc --model x"),
            ("earnest run nupa --model dnc", "earnest run nupa --model dnc"),
            ("earnest run --no-such nupa", "earnest run --no-such nupa"),
            ("earnest import folder nupa", "earnest import-logs folder nupa"),
            ("earnest -q import --scorer nupa a.eval b", "earnest -q import-logs --scorer nupa a.eval b"),
            ("earnest import --json ./nupa", "earnest import-logs --json ./nupa"),
            ("earnest import nuppa --completions c --name n", "earnest import nuppa --completions c --name n"),
            ("earnest import --json", "earnest import --json"),
            ("earnest import --no-such", "earnest import --no-such"),
            ("earnest runs import", "earnest runs import"),
            ("earnest runs list", "earnest runs list"),
            ("earnest run q.jsonl --limit 3", "earnest run task --file q.jsonl --limit 3"),
            (
                "earnest run --limit 3 --skip-bad-rows data/q",
                "earnest run task --file data/q --limit 3 --skip-bad-rows",
            ),
            ("earnest show my.toml", "earnest show task --file my.toml"),
            ("earnest run my-task", "earnest run my-task"),
            ("earnest report run/a.jsonl", "earnest report run/a.jsonl"),
        ] {
            assert_eq!(ordered(given), expected);
        }
    }
}
