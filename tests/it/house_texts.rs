//! Texts in the code: libraries name settings and the program its options; pages are templates.
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};

use crate::house::{after_item, crates, files, is_of_tests};
use crate::unsafe_code::root;

/// A text in the code, and the function or macro to which it is given, if that is so.
struct Text {
    said: String,
    to: String,
}

/// Texts of a file outside of its tests and its documentation; those of attributes, such as messages of errors, are among them.
fn texts(file: &Path) -> Vec<Text> {
    let tokens: TokenStream = std::fs::read_to_string(file).unwrap().parse().unwrap();
    let mut found = Vec::new();
    collect(tokens.into_iter().collect(), "", &mut found);
    found
}

fn collect(tokens: Vec<TokenTree>, to: &str, found: &mut Vec<Text>) {
    let mut index = 0;
    while index < tokens.len() {
        match &tokens[index] {
            TokenTree::Punct(sign) if sign.as_char() == '#' => {
                // `#[...]`, or `#![...]` of the whole file.
                let is_inner = matches!(tokens.get(index + 1), Some(TokenTree::Punct(sign)) if sign.as_char() == '!');
                index += usize::from(is_inner);
                let attribute = tokens.get(index + 1).map(ToString::to_string).unwrap_or_default();
                if is_of_tests(&attribute) {
                    index = after_item(&tokens, index + 2);
                    continue;
                }
                if attribute.starts_with("[doc") {
                    index += 1;
                }
            }
            TokenTree::Literal(literal) => {
                let said = literal.to_string();
                if said.contains('"') {
                    found.push(Text { said, to: to.to_owned() });
                }
            }
            TokenTree::Group(group) => {
                let called = tokens[..index].iter().rev().find_map(|token| match token {
                    TokenTree::Punct(sign) if sign.as_char() == '!' => None,
                    TokenTree::Ident(name) => Some(Some(name.to_string())),
                    _ => Some(None),
                });
                collect(group.stream().into_iter().collect(), &called.flatten().unwrap_or_default(), found);
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
        index += 1;
    }
}

/// Options of other tools.
const OF_OTHERS: [&str; 5] = ["log_samples", "log-samples", "save-details", "merge", "tensor-parallel-size"];

/// Commands that texts of libraries name with their options.
const COMMANDS: [&str; 13] = [
    "data",
    "export",
    "generate",
    "import",
    "models",
    "profile",
    "reproduce",
    "run",
    "runs",
    "samples",
    "score",
    "stats",
    "suites",
];

/// True for a text with an option that is neither all that the text has, with values, nor in a command that can be copied.
fn names_an_option(said: &str) -> bool {
    let inner = said.trim_start_matches(['b', 'c', 'r', '#']).trim_matches(['"', '#']).replace("\\n", "\n");
    // An argument, or the end of a command: options with at most one value each.
    let mut words = inner.split_whitespace().map(|word| word.starts_with("--")).peekable();
    let is_argument =
        words.peek() == Some(&true) && !words.clone().zip(words.skip(1)).any(|pair| pair == (false, false));
    // An option of a command that can be copied stands behind its name, in the same quotes.
    let in_command = |before: &str| {
        let quoted = before.rfind('`').map_or(before, |at| &before[at + 1..]);
        let mut words = quoted.split_whitespace().skip_while(|word| *word != "earnest");
        words.next().is_some() && words.next().is_some_and(|name| COMMANDS.contains(&name))
    };
    let mut options = inner.match_indices("--").filter(|(at, _)| {
        let (before, name) = (&inner[..*at], &inner[at + 2..]);
        let begins = before.is_empty() || before.ends_with([' ', '`', '(', '=', '\n', ',', '[', '\'', '"']);
        begins
            && name.starts_with(|letter: char| letter.is_ascii_lowercase())
            // A colour of a page.
            && !before.ends_with("var(")
            && !OF_OTHERS.contains(&name.split(|letter: char| !letter.is_ascii_lowercase() && !"-_".contains(letter)).next().unwrap_or_default())
            && !in_command(before)
    });
    options.next().is_some() && !is_argument
}

#[test]
fn libraries_name_settings_and_the_program_its_options() {
    let mut wrong = Vec::new();
    for (_, folder) in crates().into_iter().filter(|(name, _)| name != "earnest" && name != "dev") {
        for file in files(&folder) {
            for Text { said, .. } in texts(&file) {
                if names_an_option(&said) {
                    wrong.push(format!("{}: {said}", file.strip_prefix(root()).unwrap().display()));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "a library names a setting (`top_k`), and the program adds its option:\n{}",
        wrong.join("\n")
    );
}

/// Elements of pages; SVG, which figures are made of, has none of these.
const ELEMENTS: [&str; 36] = [
    "div", "p", "td", "th", "tr", "table", "tbody", "thead", "span", "section", "details", "summary", "ul", "ol", "li",
    "h1", "h2", "h3", "body", "figure", "nav", "em", "strong", "code", "pre", "br", "hr", "img", "form", "input",
    "button", "label", "select", "head", "html", "script",
];

/// True for a text with a tag of a page.
fn has_html(said: &str) -> bool {
    said.split('<').skip(1).any(|rest| {
        let name = rest.trim_start_matches('/');
        let end = name.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(name.len());
        ELEMENTS.contains(&&name[..end]) && name[end..].starts_with([' ', '>'])
    })
}

#[test]
fn pages_are_templates() {
    let mut wrong = Vec::new();
    for (_, folder) in crates() {
        for file in files(&folder) {
            for Text { said, .. } in texts(&file) {
                if has_html(&said) {
                    wrong.push(format!("{}: {said}", file.strip_prefix(root()).unwrap().display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "HTML is written by a template, which escapes what it is given:\n{}", wrong.join("\n"));
}

#[test]
fn options_and_tags_are_found() {
    for said in [
        "\"use --top-k 3\"",
        "\"`--seed`\"",
        "r#\"leave --quiet out\"#",
        "\"a line\\n--json is one\"",
        "\"--seed is a number\"",
        "\"give '--seed', or [--limit]\"",
        "\"an earnest without --top-k\"",
        "\"`earnest run` with --seed\"",
    ] {
        assert!(names_an_option(said), "{said}");
    }
    for said in [
        "\"--std=c++17\"",
        "\" --lengths reference --wording {wording} --json\"",
        "\"`earnest run --from RUN` begins\"",
        "\"a -- b\"",
        "\"var(--ink)\"",
        "\"2--3\"",
        "\"`--log_samples` writes\"",
    ] {
        assert!(!names_an_option(said), "{said}");
    }
    assert!(has_html("\"<td class=\\\"num\\\">{}</td>\"") && has_html("\"</p>\""));
    assert!(!has_html("\"<path d=\\\"M0\\\"/>\"") && !has_html("\"a < p and p > b\""));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lib.rs");
    std::fs::write(
        &file,
        "//! \"none\"\n#[error(\"first\")] struct E; /// \"none\"\nfn f() { write!(out, \"second\"); } #[cfg(test)] mod tests { const A: &str = \"third\"; }",
    )
    .unwrap();
    let found = texts(&file);
    let said: Vec<(&str, &str)> = found.iter().map(|text| (text.said.as_str(), text.to.as_str())).collect();
    assert_eq!(said, [("\"first\"", "error"), ("\"second\"", "write")]);
}
