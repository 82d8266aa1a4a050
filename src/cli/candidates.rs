//! Commands for the runs that a name could mean.
use super::error::{Ambiguous, CliError};
use super::{args, offered};
use earnest_results::quoted;

impl CliError {
    /// The error as it is printed: a name of several runs is answered with this command for each of them, and commands that it offers name the
    /// results folder that this one was given.
    pub fn for_this_command(self) -> Self {
        let found = self.ambiguous.as_deref();
        let help = match found {
            Some(Ambiguous { name, runs, labels }) => Some(candidates(name, runs, labels, offered::words())),
            None => self.help,
        };
        CliError { message: offered::here(&self.message), help: help.map(|help| offered::here(&help)), ..self }
    }
}

/// Lines of several runs each, at most.
const LINES: usize = 12;

/// The runs that a name could mean, a line each, as the whole command where the name is an argument of it. A name that is given several
/// times stands for as many runs.
fn candidates(name: &str, runs: &[String], labels: &[String], arguments: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = arguments.collect();
    let indices = indices(name, &words);
    let most = if indices.len() < 2 { usize::MAX } else { LINES };
    let choices = match indices.is_empty() {
        true => Vec::new(),
        false => choices(runs.len(), indices.len(), most.saturating_add(1)),
    };
    let mut lines: Vec<String> = Vec::new();
    for choice in choices.iter().take(most) {
        let chosen = |at: usize| indices.iter().position(|&index| index == at).map(|number| &runs[choice[number]]);
        let replaced = words.iter().enumerate().map(|(at, word)| quoted(chosen(at).unwrap_or(word)));
        let said: Vec<&str> = choice.iter().map(|&run| labels.get(run).map_or("", String::as_str)).collect();
        lines.push(format!("\n  earnest {}  # {}", replaced.collect::<Vec<_>>().join(" "), said.join(" | ")));
    }
    match choices.len() {
        0 => lines.extend(runs.iter().zip(labels).map(|(run, label)| format!("\n  {run}  # {label}"))),
        all if all > most => lines.push("\n  and so on".to_owned()),
        _ => {}
    }
    format!(
        "give more of the name, or its last part; `earnest runs list` shows when each began and how it ended{}",
        lines.concat()
    )
}

/// Indices of a name among the words of a command: those that are no option's value, else the first.
fn indices(name: &str, words: &[String]) -> Vec<usize> {
    // A run may be called like the command.
    let begin = words_of_command(words);
    let all: Vec<usize> = (begin..words.len()).filter(|&at| words[at] == name).collect();
    let is_value = |at: &usize| {
        let before = at.checked_sub(1).map(|before| words[before].as_str());
        before.is_some_and(|option| option.starts_with('-') && takes_value(words, option))
    };
    let own: Vec<usize> = all.iter().copied().filter(|at| !is_value(at)).collect();
    if own.is_empty() { all.into_iter().take(1).collect() } else { own }
}

/// The number of words at the beginning that name the command.
fn words_of_command(words: &[String]) -> usize {
    let mut command = args::definition();
    let is_command = |word: &&String| match command.find_subcommand(word).cloned() {
        Some(inner) => {
            command = inner;
            true
        }
        None => false,
    };
    words.iter().take_while(is_command).count()
}

/// True of an option that takes a value, in the command that the words name.
fn takes_value(words: &[String], option: &str) -> bool {
    let mut command = args::definition();
    let mut is_taken = false;
    for word in std::iter::once("").chain(words.iter().map(String::as_str)) {
        if let Some(inner) = command.find_subcommand(word).cloned() {
            command = inner;
        } else if !word.is_empty() {
            continue;
        }
        let found = command.get_arguments().find(|argument| {
            let long = argument.get_long().is_some_and(|long| option.strip_prefix("--") == Some(long));
            long || argument.get_short().is_some_and(|short| option.strip_prefix('-') == Some(&short.to_string()))
        });
        is_taken |= found.is_some_and(|argument| argument.get_action().takes_values());
    }
    is_taken
}

/// The first ways, at most so many, to choose `count` of these in their order; none if there are fewer of them.
fn choices(of: usize, count: usize, most: usize) -> Vec<Vec<usize>> {
    let mut all = Vec::new();
    let mut choice: Vec<usize> = (0..count).collect();
    while count <= of && all.len() < most {
        all.push(choice.clone());
        // The last one that can move on, with the others behind it.
        let Some(moved) = (0..count).rev().find(|&index| choice[index] + count < of + index) else { break };
        let begin = choice[moved] + 1;
        choice.splice(moved.., (begin..).take(count - moved));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_in_order() {
        assert_eq!(choices(3, 2, 9), [[0, 1], [0, 2], [1, 2]]);
        assert_eq!(choices(3, 1, 2), [[0], [1]]);
        assert_eq!(choices(2, 2, 9), [[0, 1]]);
        assert!(choices(2, 3, 9).is_empty());
    }

    #[test]
    fn candidates_are_commands() {
        let runs = ["nupa-a-12".to_owned(), "nupa-b-34".to_owned()];
        let labels = ["samples 1".to_owned(), "samples 2".to_owned()];
        let words = |text: &str| text.split('|').map(str::to_owned).collect::<Vec<_>>().into_iter();
        let help = candidates("nupa", &runs, &labels, words("runs|show|nupa|--results|my results"));
        assert!(help.ends_with("\n  earnest runs show nupa-a-12 --results 'my results'  # samples 1\n  earnest runs show nupa-b-34 --results 'my results'  # samples 2"), "{help}");
        let help = candidates("nupa", &runs, &labels, words("compare|nupa|--all|nupa|--scorer|nupa"));
        assert!(
            help.ends_with("ended\n  earnest compare nupa-a-12 --all nupa-b-34 --scorer nupa  # samples 1 | samples 2"),
            "{help}"
        );
        let three = words("compare|nupa|nupa|nupa");
        assert!(
            candidates("nupa", &runs, &labels, three)
                .ends_with("ended\n  nupa-a-12  # samples 1\n  nupa-b-34  # samples 2")
        );
        let help = candidates("nupa", &runs, &labels, words("run|--from|nupa"));
        assert!(help.ends_with("\n  earnest run --from nupa-b-34  # samples 2"), "{help}");
        let profiles = ["profile-a-12".to_owned(), "profile-b-34".to_owned()];
        let help = candidates("profile", &profiles, &labels, words("profile|profile"));
        assert!(help.ends_with("\n  earnest profile profile-b-34  # samples 2"), "{help}");
        let many: Vec<String> = (0..8).map(|number| format!("nupa-{number}")).collect();
        let help = candidates("nupa", &many, &many, words("compare|nupa|nupa"));
        assert!(help.contains("\n  earnest compare nupa-0 nupa-1  #") && help.ends_with("\n  and so on"), "{help}");
        let help = candidates("nupa", &runs, &labels, words("compare|other/nupa"));
        assert!(help.ends_with("\n  nupa-a-12  # samples 1\n  nupa-b-34  # samples 2"), "{help}");
        assert!(candidates("a'b", &runs, &labels, words("show|a'b|it's")).contains(r"'it'\''s'"));
    }
}
