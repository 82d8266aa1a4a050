//! Texts of the library crates as this program says them: settings become options, and commands that read stored runs name the results
//! folder that this command was given.
use std::path::Path;

use earnest_report::in_folder;
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
    in_folder(&options(text), &given())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_that_of_the_words() {
        let option = |words: &[&str]| option(words.iter().map(|word| (*word).to_owned()));
        assert_eq!(option(&["runs", "list", "--results", "my runs"]), " --results 'my runs'");
        assert_eq!(option(&["runs", "list", "--results=r/s", "--json"]), " --results r/s");
        assert_eq!(option(&["runs", "list", "--json"]), "");
        assert_eq!(option(&["show", "--", "--results", "r"]), "");
    }
}
