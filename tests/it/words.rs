//! Words of every help text and screen: one word for one thing. Fails where a former word comes back.
use std::fs;
use std::path::Path;

use regex::Regex;

use crate::program::run_in;

/// Words for what has another name, and that name.
const FORMER: [(&str, &str); 8] = [
    (r"rules?", "scorer"),
    (r"matchers?", "scorer"),
    (r"verdicts?", "score"),
    (r"readings?", "score, or finding"),
    (r"primary", "scorer"),
    (r"profiles?", "scorer, or numeracy profile"),
    (r"places?", "index or position"),
    (r"flights?|flown|landed", "in flight, finished"),
];

/// Former spellings of `--scorer`, which work and are hidden.
const OPTIONS: &str = r"(^|[^\w-])--(rule|primary|profile|matcher|verdict|reading|reader)\b";

/// Phrases with these words that mean something else, and what.
const ALLOWED: [(&str, &str); 26] = [
    (r"rule[- ]following", "prompts of the NUPA Test with a rule given as a program"),
    (r"rules? (that is )?given as a (Python )?program", "the NUPA Test's rules"),
    (r"following a rule", "the NUPA Test's rules"),
    (r"(trace of a|follows the) rule", "the NUPA Test's rules"),
    (r"all that have (a rule|one)", "the NUPA Test's rules"),
    (r"with rules", "the NUPA Test's rules"),
    (r"rules? (with their|and question|as a program|texts|exists?|work|supports?)\b", "the NUPA Test's rules"),
    (r"rules exist for", "the NUPA Test's rules"),
    (r"(the|its) rule's trace", "the NUPA Test's rules"),
    (r"its rule as a program", "the NUPA Test's rules"),
    (r"follow that rule", "the paper's rule for digit limits"),
    (r"trapezoidal rule", "numerical integration"),
    (r"has a rule instead of examples", "the NUPA Test's rules"),
    (r"[Nn]umeracy profiles?", "the instrument"),
    (r"in flight", "today's word"),
    (r"[Pp]rofile (likelihood|intervals?|\[)", "statistics"),
    (r"- profile:|--ci profile", "intervals by profile likelihood"),
    (r"penalised likelihoods? and its profile", "statistics"),
    (r"(earnest|run|generate|show|import|reproduce) profile\b", "a command or the suite of numeracy profiles"),
    (r"\bprofile (\(version|up to how many|Measure up to)", "the suite or the command in a list"),
    (r"(run|dnc|suites? are|show), profile,", "the command or the suite in a list"),
    (r"suite profile\b", "the suite of numeracy profiles"),
    (r"reading (a|the|from)\b", "the verb"),
    (r"in (the )?place of|takes? (the|its) place|in its place", "instead of"),
    (r"decimal places?|\bplaces\)", "digits of a number, and the tokenizer of this name"),
    (r"- places:|or places\b|, places\b", "the tokenizer of this name"),
];

/// Snapshots of files rather than of screens: rows with stored names, and a shell's script.
const FILES: [&str; 4] = ["export_", "completions", "_json", "samples_json"];

/// Words of these texts that have another name, with what stands around them.
fn former_words(text: &str) -> Vec<String> {
    let join = |parts: &[(&str, &str)]| parts.iter().map(|part| part.0).collect::<Vec<_>>().join("|");
    // Names between backticks are stored names, columns, commands; a word with a dot or dash beside it is part of a file's name.
    let names = Regex::new(r"`[^`\n]*`|\S*[./_]\w\S*").unwrap();
    let options = Regex::new(OPTIONS).unwrap();
    let allowed = Regex::new(&join(&ALLOWED)).unwrap();
    // Rows in JSON have stored names.
    let lines = text.lines().filter(|line| !line.starts_with('{')).collect::<Vec<_>>().join(" ");
    let plain = lines.replace("\\-", "-").split_whitespace().collect::<Vec<_>>().join(" ");
    let mut found: Vec<String> =
        options.find_iter(&plain).map(|option| around(&plain, option.start(), "--scorer")).collect();
    // Sentences of the program end with a dot before a blank, so that a name with a dot within it is no sentence.
    let rest = allowed.replace_all(&plain, "~");
    let rest = names.replace_all(&rest, "~");
    let rest = allowed.replace_all(&rest, "~");
    for (word, today) in FORMER {
        let word = Regex::new(&format!(r"(?i)\b({word})\b")).unwrap();
        let whole = |at: &regex::Match<'_>| {
            let before = rest[..at.start()].chars().next_back();
            let after = rest[at.end()..].chars().next();
            before != Some('-') && after != Some('-')
        };
        found.extend(word.find_iter(&rest).filter(whole).map(|at| around(&rest, at.start(), today)));
    }
    found
}

/// The text around an index, and today's word.
fn around(text: &str, at: usize, today: &str) -> String {
    let begin = text[..at].char_indices().rev().nth(40).map_or(0, |(index, _)| index);
    let end = text[at..].char_indices().nth(50).map_or(text.len(), |(index, _)| at + index);
    format!("\"{}\": say {today}", &text[begin..end])
}

/// Names of the commands and suites that a help text lists.
fn listed(help: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_list = false;
    for line in help.lines() {
        if !line.starts_with(' ') {
            is_list = line.ends_with("Commands:") || line == "Suites:";
            continue;
        }
        let name =
            line.strip_prefix("  ").and_then(|rest| rest.split_whitespace().next().filter(|_| !rest.starts_with(' ')));
        found.extend(name.filter(|name| is_list && *name != "help").map(str::to_owned));
    }
    found
}

/// Help texts of a command and of all below it, by the words that print them.
fn helps(folder: &Path, command: &[String], texts: &mut Vec<(String, String)>) {
    let words: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
    let output = run_in(folder, &words);
    assert!(output.status.success(), "{words:?}");
    let help = String::from_utf8(output.stdout).unwrap();
    for name in listed(&help) {
        helps(folder, &[command, &[name]].concat(), texts);
    }
    texts.push((words.join(" "), help));
}

/// Lists what is wrong in the texts.
fn wrong(texts: &[(String, String)]) -> String {
    let lines =
        texts.iter().flat_map(|(name, text)| former_words(text).into_iter().map(move |one| format!("{name}: {one}")));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn help_has_one_word_for_one_thing() {
    let folder = tempfile::tempdir().unwrap();
    let mut texts = Vec::new();
    helps(folder.path(), &[], &mut texts);
    // `earnest import PATH --help` is a command of its own.
    let logs = run_in(folder.path(), &["import", "logs", "--help"]);
    texts.push(("import logs --help".to_owned(), String::from_utf8(logs.stdout).unwrap()));
    assert!(texts.len() > 60, "only {} help texts were found", texts.len());
    let wrong = wrong(&texts);
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn screens_have_one_word_for_one_thing() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/snapshots");
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if FILES.iter().any(|file| name.contains(file)) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let screen = text.splitn(3, "---\n").nth(2).unwrap_or_default().to_owned();
        texts.push((name, screen));
    }
    assert!(texts.len() > 150, "only {} screens were found", texts.len());
    texts.sort();
    let wrong = wrong(&texts);
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn former_words_are_found() {
    for text in [
        "Scored by the primary rule",
        "Compare by this\n          rule instead",
        "0.0 % right, by rule strict",
        "--rule takes final",
        "`earnest score RUN --save --rule final` scores it",
        "there is no profile yet",
        "its place in the list",
        "3 requests landed",
        "Readings differ",
    ] {
        assert!(!former_words(text).is_empty(), "{text}");
    }
    for text in [
        "earnest profile --model model.gguf -o profile.html",
        "The numeracy profile of a model",
        "Ask for following a rule given as a Python program, rule-following",
        "profile likelihood, `profile` and `matcher_strict`",
        "--style rule-following",
        "it takes the place of the first",
    ] {
        assert_eq!(former_words(text), Vec::<String>::new(), "{text}");
    }
}
