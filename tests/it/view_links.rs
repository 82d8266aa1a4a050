//! `earnest view`: every address on its pages is one that it answers, whatever tasks, items, scorers and runs are called.
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;

use serde_json::json;

use crate::program::*;
use crate::view::{Viewed, view};

/// Names with everything that means something in an address, in HTML or in JSON.
const NAMES: [&str; 16] = [
    "a,b",
    "mul, b > 1",
    "x < y",
    "1 + 1",
    "a&b",
    "50 %",
    "%2C",
    "#1",
    "it's",
    "\"said\"",
    "a/b",
    "../up",
    "a=b;c?d",
    "back\\slash",
    "\u{6570}\u{5b66} \u{2264} 3",
    "wrong",
];

fn good(folder: &Path, words: &[&str]) {
    let output = run_in(folder, words);
    assert_eq!(code(&output), 0, "{words:?}: {}", stderr(&output));
}

/// Two runs of questions whose tasks and ids are [`NAMES`], as completions of a model with such a name.
fn own_questions(folder: &Path) {
    let (mut questions, mut completions) = (String::new(), [String::new(), String::new()]);
    for (index, name) in NAMES.iter().enumerate() {
        let row = json!({"id": format!("{name} {index}"), "task": name, "question": format!("What is {index} + 1?"), "answer": index + 1});
        questions += &format!("{row}\n");
        for (model, lines) in completions.iter_mut().enumerate() {
            let said = ["The answer is 3.", "3 or 4", ""][(index + model) % 3];
            *lines += &format!("{}\n", json!({"item": format!("{name} {index}"), "completion": said}));
        }
    }
    std::fs::write(folder.join("own.jsonl"), questions).unwrap();
    for (model, lines) in completions.iter().enumerate() {
        let file = format!("c{model}.jsonl");
        std::fs::write(folder.join(&file), lines).unwrap();
        let name = format!("a,b & {model} + \"c\" % # \u{6570}");
        good(folder, &["import", "own.jsonl", "--completions", &file, "--name", &name, "--quiet"]);
    }
}

/// Text of an attribute without the escapes of HTML.
fn unescaped(text: &str) -> String {
    let pairs = [("&#x2f;", "/"), ("&#x27;", "'"), ("&#39;", "'"), ("&quot;", "\""), ("&lt;", "<"), ("&gt;", ">")];
    let text = pairs.into_iter().fold(text.to_owned(), |text, (escape, plain)| text.replace(escape, plain));
    text.replace("&amp;", "&")
}

/// Values of an attribute in a piece of a page.
fn values(page: &str, attribute: &str) -> Vec<String> {
    let opening = format!(" {attribute}=\"");
    let pieces = page.split(&opening).skip(1);
    pieces.map(|piece| unescaped(piece.split('"').next().unwrap())).collect()
}

/// A value as a browser's form sends it.
fn sent(value: &str) -> String {
    value.bytes().map(|byte| if byte == b' ' { "+".to_owned() } else { format!("%{byte:02X}") }).collect()
}

/// Addresses on a page: links, and what its menus would ask for.
fn addresses(path: &str, page: &str) -> Vec<String> {
    let own = path.split('?').next().unwrap();
    let mut found = values(page, "href");
    found.extend(values(page, "data-progress"));
    for menu in page.split("<select ").skip(1) {
        let menu = menu.split("</select>").next().unwrap();
        let name = menu.split("name=\"").nth(1).unwrap().split('"').next().unwrap();
        if name != "a" {
            found.extend(values(menu, "value").iter().map(|value| format!("{own}?{name}={}", sent(value))));
        }
    }
    let absolute = |address: String| if address.starts_with('?') { format!("{own}{address}") } else { address };
    found.into_iter().map(absolute).collect()
}

/// Pages of samples and pairs of one run that are opened; the others are alike.
const ALIKE: usize = 2 * NAMES.len();

/// Follows every address from the first page on; returns those of one run's lists.
fn crawl(viewed: &Viewed) -> BTreeSet<String> {
    let mut seen = BTreeSet::from([viewed.base.clone()]);
    let mut waiting = VecDeque::from([viewed.base.clone()]);
    let mut alike = std::collections::BTreeMap::<String, usize>::new();
    while let Some(path) = waiting.pop_front() {
        let (status, _, page) = viewed.ask(&path, &viewed.host);
        assert_eq!(status, 200, "{path}: {page}");
        for address in addresses(&path, &page) {
            let local = address.starts_with(&viewed.base);
            assert!(local || address == "data:,", "{address} on {path} leads elsewhere");
            if !local || !seen.insert(address.clone()) {
                continue;
            }
            if address.contains("/sample?") || address.contains("/pair?") {
                let times = alike.entry(address.split('?').next().unwrap().to_owned()).or_default();
                *times += 1;
                if *times > ALIKE {
                    continue;
                }
            }
            waiting.push_back(address);
        }
    }
    seen
}

#[test]
fn every_address_of_every_page_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    own_questions(at);
    // Suites with rows that are no tasks: `mul_1, b > 1`, `gsm base`.
    let few = ["--max-tokens", "4", "--quiet"];
    for words in [
        &["arithmetic-bench", "--tasks", "mul_1,div_1,add", "--lengths", "2..3", "--per-length", "2"][..],
        &["gsm-mini", "--limit", "6"],
        &["nupa", "--tasks", "add_Integer,max:Float", "--lengths", "2", "--per-length", "2"],
    ] {
        let model = tiny().display().to_string();
        let output = run_in(at, &[&["run"], words, &few, &["--threads", "1", "--model", &model]].concat());
        // Long prompts do not fit into the context of this model, which is an outcome too.
        assert!(code(&output) <= 1, "{words:?}: {}", stderr(&output));
    }
    // Scorers with a comma in their names: `exact_match,strict-match`.
    let logs = golden().join("logs/lm-eval/logs/gemma-3-270m-Q4_K_M");
    good(at, &["import", logs.to_str().unwrap(), "--quiet"]);

    let viewed = view(at, &[]);
    let seen = crawl(&viewed);
    let lists: Vec<&String> = seen.iter().filter(|address| address.contains("/samples?")).collect();
    for name in NAMES {
        let wanted = format!("task={}", sent(name));
        assert!(lists.iter().any(|address| address.ends_with(&wanted)), "no menu has {name}");
    }
    assert!(lists.iter().any(|address| address.contains("disagree=")), "rules that disagree are tried");
    let class = format!("outcome={}", sent("class:"));
    assert!(lists.iter().any(|address| address.contains(&class)), "classes of wrong answers are tried");
    assert!(seen.iter().any(|address| address.contains("/pair?")), "pairs are tried");
    assert!(seen.len() > 150, "{}", seen.len());
}

#[test]
fn filters_select_what_their_menu_says() {
    let folder = tempfile::tempdir().unwrap();
    own_questions(folder.path());
    let run = store(folder.path()).runs().unwrap().remove(0).manifest.run;
    let viewed = view(folder.path(), &[]);
    let list = |query: &str| viewed.page(&format!("run/{}/samples?{query}", sent(&run).replace('+', "%20")));
    let lines = |query: &str| list(query).matches("class=\"line\"").count();
    for name in NAMES {
        assert_eq!(lines(&format!("task={}", sent(name))), 1, "{name}");
    }
    let page = list("");
    // A word stands once in a menu, in the spelling of the badges.
    let menu = page.split("name=\"outcome\"").nth(1).unwrap().split("</select>").next().unwrap();
    let words: Vec<&str> = menu.split("</option>").filter_map(|option| option.rsplit('>').next()).collect();
    let once: BTreeSet<&&str> = words.iter().filter(|word| !word.trim().is_empty()).collect();
    assert_eq!(once.len(), words.iter().filter(|word| !word.trim().is_empty()).count(), "{words:?}");
    assert!(words.iter().all(|word| !word.contains('_') && !word.contains("budget")), "{words:?}");
    // Wrong answers of all classes, and those of none of the named ones.
    let (wrong, other) = (lines("outcome=wrong"), lines("outcome=class%3Awrong"));
    assert!(other > 0 && other < wrong, "{other} of {wrong}");
    assert_eq!(lines("outcome=empty"), lines("outcome=class%3Aempty"));
}
