//! Texts of the library crates as this program says them: settings become options, and commands that read stored runs name the results
//! folder that this command was given.
use std::path::Path;

pub use earnest_report::options;

use super::results_folder;

/// Words of this command behind the program's name.
pub fn words() -> impl Iterator<Item = String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned())
}

/// The option that names the results folder of this command; nothing if it was given none, or the one that is found without it.
pub fn given() -> String {
    option(words())
}

fn option(words: impl Iterator<Item = String>) -> String {
    let mut words = words.take_while(|word| word != "--");
    let mut folder = None;
    while let Some(word) = words.next() {
        match word.strip_prefix("--results") {
            Some("") => folder = words.next(),
            Some(rest) => folder = rest.strip_prefix('=').map(str::to_owned).or(folder),
            None => {}
        }
    }
    folder.map_or_else(String::new, |folder| results_folder::option(Path::new(&folder)))
}

/// A text of a library crate whose settings are options, and whose offered commands name the results folder of this command.
pub fn here(text: &str) -> String {
    with(&options(text), &given())
}

/// A text with an option behind the commands in it that read stored runs: those between backticks, or the text as a whole.
fn with(text: &str, option: &str) -> String {
    let whole = |command: &str| match reads_results(command) {
        true => format!("{command}{option}"),
        false => command.to_owned(),
    };
    if text.starts_with("earnest ") && !text.contains(['`', '\n']) {
        return whole(text);
    }
    // A name with a backtick: nothing tells commands from the text between them.
    if text.matches('`').count() % 2 == 1 {
        return text.to_owned();
    }
    let parts = text.split('`').enumerate();
    parts.map(|(index, part)| if index % 2 == 1 { whole(part) } else { part.to_owned() }).collect::<Vec<_>>().join("`")
}

/// True of a command that can be run as it stands, or with a name in place of its capitals, on stored runs, and names no folder. The mere
/// name of a command, such as `earnest samples`, is none.
fn reads_results(command: &str) -> bool {
    let mut words = command.split_whitespace();
    if words.next() != Some("earnest") || command.contains("--results") {
        return false;
    }
    let name = words.next().unwrap_or_default();
    let rest: Vec<&str> = words.collect();
    match (name, rest.as_slice()) {
        ("resume" | "merge", _) | ("runs", ["list" | "verify", ..] | [_, _, ..]) => true,
        // `earnest run --from` is the name of an option.
        ("run", [.., last]) => *last != "--from",
        ("profile", [_, ..]) => true,
        ("samples" | "compare" | "score" | "export" | "report", [first, ..]) => !first.starts_with('-'),
        ("stats", rest) => rest.contains(&"--run"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offered_commands_name_the_folder() {
        let with = |text| with(text, " --results r");
        for (text, expected) in [
            (
                "the same command continues the run, and so does `earnest resume a-1`",
                "the same command continues the run, and so does `earnest resume a-1 --results r`",
            ),
            ("`earnest samples a-1 --wrong` shows them", "`earnest samples a-1 --wrong --results r` shows them"),
            ("`earnest run --from a-1` repeats it", "`earnest run --from a-1 --results r` repeats it"),
            ("`earnest runs list` lists them", "`earnest runs list --results r` lists them"),
            ("`earnest runs verify` scores again", "`earnest runs verify --results r` scores again"),
            ("earnest run --from a-1", "earnest run --from a-1 --results r"),
        ] {
            assert_eq!(with(text), expected);
        }
        for plain in [
            "`earnest samples` shows both",
            "`earnest runs delete` and `earnest run --from` first read it",
            "`earnest models list` lists models",
            "`earnest runs list --results s` lists them",
            "a ` b `earnest resume` c",
            "give more of it\n  earnest runs show a-1  # samples 1",
        ] {
            assert_eq!(with(plain), plain);
        }
    }

    #[test]
    fn the_folder_is_that_of_the_words() {
        let option = |words: &[&str]| option(words.iter().map(|word| (*word).to_owned()));
        assert_eq!(option(&["runs", "list", "--results", "my runs"]), " --results 'my runs'");
        assert_eq!(option(&["runs", "list", "--results=r/s", "--json"]), " --results r/s");
        assert_eq!(option(&["runs", "list", "--json"]), "");
        assert_eq!(option(&["show", "--", "--results", "r"]), "");
    }
}
