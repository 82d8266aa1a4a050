//! Task files whose templates set out to end the program: every one is an error with the file and the limit, exit code 2 and no panic.
use std::fmt::Write as _;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use crate::program::*;

/// Longest time that one of them may take on a busy machine.
const LONGEST: Duration = Duration::from_secs(20);

fn questions(folder: &Path, rows: usize) {
    let mut text = String::new();
    for row in 0..rows {
        writeln!(text, "{{\"question\": \"{row} + 1 =\", \"answer\": \"{}\", \"n\": {row}}}", row + 1).unwrap();
    }
    std::fs::write(folder.join("q.jsonl"), text).unwrap();
}

fn task(folder: &Path, name: &str, keys: &str, prompt: &str) {
    let text = format!("name = \"t\"\n[questions]\npath = \"q.jsonl\"\n{keys}\n[prompt]\n{prompt}\n");
    std::fs::write(folder.join(name), text).unwrap();
}

/// Checks a task file within limits of time; the program's output.
#[track_caller]
fn checked(folder: &Path, name: &str) -> Output {
    let begun = Instant::now();
    let output = run_in(folder, &["tasks", "check", name]);
    assert!(begun.elapsed() < LONGEST, "{name}: {:?}", begun.elapsed());
    let said = stderr(&output);
    assert!(!said.contains("panicked") && !said.contains("overflowed") && said.len() < 3000, "{name}: {said}");
    output
}

#[track_caller]
fn refused(folder: &Path, name: &str, words: &[&str]) {
    let output = checked(folder, name);
    let said = format!("{}{}", stdout_of(&output), stderr(&output));
    assert!(matches!(code(&output), 1 | 2), "{name}: {:?} {said}", output.status);
    for word in words {
        assert!(said.contains(word), "{name}: no {word:?} in {said}");
    }
}

fn stdout_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Templates, and words that their errors have.
fn templates() -> Vec<(String, &'static str)> {
    let set = |value: &str, count: usize, step: &str, shown: &str| {
        format!(
            "{{% set s = namespace(x={value}) %}}{{% for i in range({count}) %}}{{% set s.x = {step} %}}{{% endfor %}}{{{{ {shown} }}}}"
        )
    };
    let chain = |first: &str, more: &str| format!("{{{{ {first}{} }}}}", more.repeat(50_000));
    vec![
        (chain("1", "*1"), "32768"),
        (chain("n", "['a']"), "32768"),
        (chain("n", "|string"), "32768"),
        (chain("1", " or 0"), "32768"),
        (format!("{{{{ {}1 }}}}", "not ".repeat(50_000)), "32768"),
        (format!("{{% if 0 %}}{}x{{% endif %}}", "{% elif 0 %}".repeat(50_000)), "32768"),
        ("x".repeat((1 << 20) + 1), "1048577 bytes"),
        (set("'ab'", 60, "s.x ~ s.x", "s.x"), "memory"),
        ("{{ '%9999999999d'|format(n) }}".to_owned(), "memory"),
        ("{{ '{:<9999999999}'.format(n) }}".to_owned(), "memory"),
        ("{{ 'a\\nb'|indent(9999999999) }}".to_owned(), "memory"),
        ("{{ range(90000)|join('b' * 90000)|length }}".to_owned(), "memory"),
        (format!("{{{{ {} }}}}", set("[]", 90, "[s.x]", "s.x|tojson")), "syntax"),
        (
            "{% for i in range(9000) %}{% for j in range(9000) %}y{% endfor %}{% endfor %}".to_owned(),
            "1000000 instructions",
        ),
        ("{% for i in range(2000) %}{{ 'abcdefgh' * 100 }}{% endfor %}".to_owned(), "longer than 10"),
    ]
}

#[test]
fn a_template_as_prompt_cannot_end_the_program() {
    let folder = tempfile::tempdir().unwrap();
    questions(folder.path(), 3);
    for (number, (template, word)) in templates().into_iter().enumerate() {
        let name = format!("p{number}.toml");
        task(folder.path(), &name, "", &format!("template = \"{}\"", template.replace('"', "\\\"")));
        refused(folder.path(), &name, &[word]);
    }
}

#[test]
fn nor_can_an_expression_of_any_key() {
    let folder = tempfile::tempdir().unwrap();
    questions(folder.path(), 3);
    let deep = format!("{{{{ 1{} }}}}", "+1".repeat(50_000));
    let keys = ["question", "answer", "solution", "id", "cluster", "pair", "task", "choices", "covariates.c"];
    for key in keys {
        let name = format!("{key}.toml");
        task(folder.path(), &name, &format!("{key} = \"{deep}\""), "");
        refused(folder.path(), &name, &["32768", &format!("{key}.toml, line 4")]);
        task(folder.path(), &name, &format!("{key} = \"{{{{ '%9999999999d'|format(n) }}}}\""), "");
        refused(folder.path(), &name, &["1024 MiB of memory", "q.jsonl, line 1", &format!("{key}.toml, line 4")]);
    }
    task(folder.path(), "system.toml", "", &format!("system = \"{deep}\""));
    refused(folder.path(), "system.toml", &["32768"]);
    let examples = format!("[examples]\ncount = 1\nanswer = \"{deep}\"");
    task(folder.path(), "examples.toml", "", &examples);
    refused(folder.path(), "examples.toml", &["32768"]);
}

#[test]
fn values_are_bounded_in_levels_and_bytes() {
    let folder = tempfile::tempdir().unwrap();
    questions(folder.path(), 3);
    let nested = format!("{}n{}", "[".repeat(70), "]".repeat(70));
    task(folder.path(), "deep.toml", &format!("covariates.c = \"{{{{ {nested} }}}}\""), "");
    refused(folder.path(), "deep.toml", &["more than 64 levels"]);
    task(folder.path(), "long.toml", "covariates.c = \"{{ range(90000)|list + range(90000)|list }}\"", "");
    refused(folder.path(), "long.toml", &["1048920 bytes"]);
}

#[test]
fn the_row_that_reaches_a_limit_is_named_and_the_others_do_not_matter() {
    let folder = tempfile::tempdir().unwrap();
    questions(folder.path(), 400);
    let template = "template = \"{% if n == 300 %}{{ '%9999999999d'|format(n) }}{% endif %}{{ question }}\"";
    task(folder.path(), "one.toml", "", template);
    refused(folder.path(), "one.toml", &["q.jsonl, line 301", "1024 MiB of memory", "one.toml, line 6"]);
    // An error of the template itself is the row's own.
    task(folder.path(), "own.toml", "", "template = \"{% if n == 300 %}{{ nowhere }}{% endif %}{{ question }}\"");
    let output = checked(folder.path(), "own.toml");
    assert!(stdout_of(&output).contains("399 questions"), "{}", stdout_of(&output));
    assert!(stdout_of(&output).contains("line 301: prompt: there is no column nowhere"), "{}", stdout_of(&output));
}

#[test]
fn ordinary_templates_are_rendered_in_the_process_as_before() {
    let folder = tempfile::tempdir().unwrap();
    questions(folder.path(), 700);
    let keys = "answer = \"{{ answer.strip() }}\"\ncovariates.odd = \"{{ n % 2 == 1 }}\"\nid = \"{{ 'row-' ~ n }}\"";
    task(folder.path(), "t.toml", keys, "template = \"Q: {{ question }} A:\"\nmode = \"raw\"");
    let output = checked(folder.path(), "t.toml");
    let said = stdout_of(&output);
    assert!(output.status.success(), "{said}{}", stderr(&output));
    for word in ["700 questions", "odd (truth value, 2 values)", "| Q: 0 + 1 = A:", "row-0", "expected \"1\""] {
        assert!(said.contains(word), "no {word:?} in {said}");
    }
}

#[test]
fn a_long_question_is_shown_in_part() {
    let folder = tempfile::tempdir().unwrap();
    let row = format!("{{\"question\": \"{}\", \"answer\": 1}}\n", "long ".repeat(100_000));
    std::fs::write(folder.path().join("q.jsonl"), row).unwrap();
    let output = checked(folder.path(), "q.jsonl");
    assert!(output.status.success() && output.stdout.len() < 20_000, "{} bytes", output.stdout.len());
    assert!(stdout_of(&output).contains("5000"), "{}", stdout_of(&output));
}

#[test]
fn errors_repeat_the_beginning_of_what_is_long_and_the_first_of_many() {
    let folder = tempfile::tempdir().unwrap();
    questions(folder.path(), 3);
    let scorer = |scorer: &str| format!("scorers = [{scorer}]");
    let long = "x".repeat(100_000);
    let names = |count: usize| -> String {
        (0..count).map(|number| format!("[prompts.p{number}]\ntemplate = \"Q: {{{{ question }}}}\"\n")).collect()
    };
    for (number, (keys, word)) in [
        (format!("scorers = [{{ kind = \"regex\", pattern = '{}' }}]", "(".repeat(200_000)), "(...\" does not compile"),
        (scorer(&format!("{{ kind = \"{long}\" }}")), "x...\""),
        (
            scorer(&format!("{{ kind = \"exact\", name = \"{}\" }}", "ä".repeat(100_000))),
            "ä...\" is not made of letters",
        ),
        (format!("answer = \"{long}\""), "x..."),
        (format!("{long} = 1"), "there is no key xxx"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("t{number}.toml");
        let keys = if number < 3 {
            format!("{keys}\n[questions]\npath = \"q.jsonl\"")
        } else {
            format!("[questions]\npath = \"q.jsonl\"\n{keys}")
        };
        std::fs::write(folder.path().join(&name), format!("name = \"t\"\n{keys}\n")).unwrap();
        refused(folder.path(), &name, &[word]);
    }
    std::fs::write(
        folder.path().join("n.toml"),
        format!("name = \"t\"\n[questions]\npath = \"q.jsonl\"\n{}", names(3_000)),
    )
    .unwrap();
    let output = run_in(folder.path(), &["run", "./n.toml", "--limit", "1"]);
    let said = stderr(&output);
    assert_eq!(code(&output), 2, "{said}");
    assert!(said.contains("and 2980 more") && said.len() < 3000, "{} bytes: {said:.3000}", said.len());
}
