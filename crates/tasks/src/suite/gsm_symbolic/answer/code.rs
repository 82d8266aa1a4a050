//! The study's extraction of a Python function (its section 3.2), and what its result counts as. Running it is somebody
//! else's work: see [`CodeRunner`](earnest_answer::CodeRunner).
use std::sync::LazyLock;

use regex::Regex;

use super::{Label, trim};
use earnest_answer::python::{is_blank, pattern};
use earnest_answer::{CodeOutcome, Program};

static FUNCTION: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^def ({w}+)\(\):{s}*\n((?:{s}+.*|\n)+)"));
static IMPORT: LazyLock<Regex> = LazyLock::new(|| pattern(r"^{s}*(from {w}+ )?import {w}+"));
static FORBIDDEN: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"open\(.*\)|eval\(.*\)|exec\(.*\)|__import__\(.*\)|[gs]etattr\(.*\)"));

/// End of the study's prompts, which a completion continues.
const HEADER: &str = "def solution():\n";

/// The function that a completion contains or continues, with its imports blanked and cut before the first line that is
/// not indented; or why there is none that may run.
///
/// # Errors
/// [`Label::NoFunction`] and [`Label::ForbiddenString`].
pub fn program(response: &str) -> Result<Program, Label> {
    let found = extract(response).ok_or(Label::NoFunction)?;
    if FORBIDDEN.is_match(&found.source) { Err(Label::ForbiddenString) } else { Ok(found) }
}

/// The function whether or not it may run; none if there is none.
///
/// The traps are the study's: a header is added whether or not the completion has its own, so that an unindented beginning
/// is no function unless another header follows at the beginning of a line; blank lines are a body.
pub fn extract(response: &str) -> Option<Program> {
    let text = format!("{HEADER}{}", trim(response));
    let captures = FUNCTION.captures(&text)?;
    let function = captures.get(1)?.as_str().to_owned();
    let mut kept: Vec<&str> = Vec::new();
    for line in captures.get_match().as_str().split('\n') {
        let line = if IMPORT.is_match(line) { "" } else { line };
        if !kept.is_empty() && !is_blank(line) && !line.starts_with([' ', '\t']) {
            break;
        }
        kept.push(line);
    }
    Some(Program { source: kept.join("\n"), function })
}

/// The label of an outcome, in the study's order of precedence: exceptions by class, then the type of the value.
pub fn classify(outcome: &CodeOutcome) -> Label {
    match outcome {
        CodeOutcome::Number(_) => Label::Code,
        CodeOutcome::None => Label::NoneReturned,
        CodeOutcome::Other(_) => Label::NotANumber,
        CodeOutcome::Raised { class, .. } => match class.as_str() {
            "SyntaxError" => Label::SyntaxError,
            "NameError" => Label::NameError,
            "AttributeError" => Label::AttributeError,
            "ZeroDivisionError" => Label::ZeroDivisionError,
            "TypeError" | "ValueError" => Label::TypeValueError,
            "MemoryError" => Label::MemoryLimit,
            _ => Label::Unclassified,
        },
        CodeOutcome::TimeLimit => Label::TimeLimit,
        CodeOutcome::MemoryLimit => Label::MemoryLimit,
        CodeOutcome::Crashed(_) => Label::Crash,
        CodeOutcome::Unavailable(_) => Label::SandboxUnavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(response: &str) -> Result<String, Label> {
        program(response).map(|program| program.source)
    }

    #[test]
    fn functions_are_found_where_the_study_finds_them() {
        assert_eq!(source("\n    return 1\nprint(2)").unwrap(), "def solution():\n\n    return 1");
        assert_eq!(source("return 1"), Err(Label::NoFunction));
        assert_eq!(source("return 1\ndef other():\n    return 2").unwrap(), "def other():\n    return 2");
        assert_eq!(source("x\ndef other(x):\n    return 2"), Err(Label::NoFunction));
        assert_eq!(source("x\ndef other() -> int:\n    return 2"), Err(Label::NoFunction));
        assert_eq!(source(""), Err(Label::NoFunction));
        assert_eq!(source("\n\n\nQ:").unwrap(), "def solution():\n\n\n\n");
        // After a blank line the pattern takes an unindented line for a body, which the cut then removes.
        assert_eq!(source("\nreturn 1").unwrap(), "def solution():\n");
        assert_eq!(program("x\ndef ümläut():\n\treturn 1").unwrap().function, "ümläut");
    }

    #[test]
    fn imports_are_blanked_only_at_the_beginning_of_a_line() {
        assert_eq!(source("\n    from math import ceil\n    return 1").unwrap(), "def solution():\n\n\n    return 1");
        for kept in ["from math import *", "from x.y import z", "x = 1; import os", "importance = 1", "if 1: import os"]
        {
            assert!(source(&format!("\n    {kept}\n    return 1")).unwrap().contains(kept), "{kept}");
        }
    }

    #[test]
    fn forbidden_strings_are_searched_in_what_is_kept() {
        for refused in ["open('x')", "reopen()", "evaluate = eval(x)", "hasattr = getattr(x, y)", "__import__('os')"] {
            assert_eq!(source(&format!("\n    {refused}")), Err(Label::ForbiddenString), "{refused}");
        }
        for allowed in ["open", "eval (x)", "delattr(x)", "open(\n    )"] {
            assert!(source(&format!("\n    {allowed}")).is_ok(), "{allowed}");
        }
        assert!(source("\n    return 1\nopen('x')").is_ok(), "cut off");
    }

    #[test]
    fn long_texts_take_linear_time() {
        assert!(source(&"\n    x = 1\n\n\n".repeat(50_000)).is_ok());
        assert!(source(&"\n".repeat(500_000)).is_ok());
        assert_eq!(source(&("x".to_owned() + &"\ndef f()".repeat(100_000))), Err(Label::NoFunction));
    }
}
