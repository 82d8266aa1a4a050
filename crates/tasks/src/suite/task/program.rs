//! Programs that models write as answers.
use std::sync::LazyLock;

use regex::Regex;

use super::scorer::{float, same};
use crate::answer::{CodeOutcome, CodeRunner, Program};
use crate::suite::FailureClass;
use crate::suite::gsm_symbolic::answer::code::{classify, extract};

/// Relative difference of doubles that are the same number but for rounding.
const ROUNDING: f64 = 1e-9;

static FENCED: LazyLock<Regex> = LazyLock::new(|| compiled(r"(?s)```(?:[Pp]ython3?|py)?[ \t]*\n(.*?)(?:```|\z)"));
static FUNCTION: LazyLock<Regex> = LazyLock::new(|| compiled(r"(?m)^def[ \t]+(\w+)\(\)[^\n]*:"));
static IMPORT: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"(?m)^([ \t]*)import[ \t]+(\w+)(?:[ \t]+as[ \t]+(\w+))?[ \t]*$"));
static FROM: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"(?m)^([ \t]*)from[ \t]+(\w+)[ \t]+import[ \t]+([\w, \t]+?)[ \t]*$"));

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns are constants and the tests use each of them")
}

/// Outcome of a program.
pub(super) struct Run {
    pub number: Option<String>,
    pub failure: FailureClass,
    pub reason: Option<String>,
}

/// Runs the program of a completion: its last code block, or all of it, and in it the named function or the last one without
/// parameters. A completion without a function continues a prompt that ends with `def solution():`.
pub(super) fn run(visible: &str, function: Option<&str>, runner: &dyn CodeRunner) -> Run {
    let Some(program) = program(visible, function) else {
        return Run { number: None, failure: FailureClass::NoFunction, reason: None };
    };
    let outcome = runner.run(&program);
    let number = match &outcome {
        CodeOutcome::Number(number) => Some(number.text.clone()),
        _ => None,
    };
    let reason = match &outcome {
        CodeOutcome::Other(class) => Some(format!("it returned a value of type {class}")),
        CodeOutcome::Raised { message, .. } => Some(message.clone()),
        CodeOutcome::Crashed(how) | CodeOutcome::Unavailable(how) => Some(how.clone()),
        _ => None,
    };
    let failure = if number.is_some() { FailureClass::Wrong } else { classify(&outcome).into() };
    Run { number, failure, reason }
}

/// True if a result is the expected number, exactly or but for the rounding of doubles.
pub(super) fn agrees(found: &str, gold: Option<&str>) -> bool {
    let Some(gold) = gold else { return false };
    let close = || {
        let (found, gold) = (float(found)?, float(gold)?);
        Some((found - gold).abs() <= ROUNDING * gold.abs().max(1.0))
    };
    let is_double = found.contains(['.', 'e', 'E']);
    same(found, gold) || (is_double && close().unwrap_or(false))
}

fn program(visible: &str, function: Option<&str>) -> Option<Program> {
    let fenced = FENCED.captures_iter(visible).last().and_then(|found| found.get(1));
    let code = fenced.map_or(visible, |code| code.as_str());
    let names: Vec<&str> =
        FUNCTION.captures_iter(code).filter_map(|found| found.get(1)).map(|name| name.as_str()).collect();
    let name = match function {
        Some(wanted) => names.iter().copied().find(|name| *name == wanted),
        None => names.last().copied(),
    };
    match name {
        Some(name) => Some(Program { source: without_imports(code), function: name.to_owned() }),
        None => extract(code),
    }
}

/// Replaces imports, which programs in the sandbox cannot do, by the modules that are there already.
fn without_imports(code: &str) -> String {
    let code = IMPORT.replace_all(code, |found: &regex::Captures<'_>| match found.get(3) {
        Some(other) => format!("{}{} = {}", &found[1], other.as_str(), &found[2]),
        None => format!("{}pass", &found[1]),
    });
    let replaced = FROM.replace_all(&code, |found: &regex::Captures<'_>| {
        let names: Vec<String> = found[3]
            .split(',')
            .map(|name| {
                let words: Vec<&str> = name.split_whitespace().collect();
                match words[..] {
                    [name] => format!("{name} = {}.{name}", &found[2]),
                    [name, "as", other] => format!("{other} = {}.{name}", &found[2]),
                    _ => "pass".to_owned(),
                }
            })
            .collect();
        format!("{}{}", &found[1], names.join("; "))
    });
    replaced.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found() {
        let found = |said: &str| program(said, None).map(|program| (program.source, program.function));
        let (source, function) = found(
            "Here:\n```python\nimport math\ndef f(x):\n    return x\ndef answer():\n    return f(math.pi)\n```\nDone.",
        )
        .unwrap();
        assert_eq!(function, "answer");
        assert!(source.starts_with("pass\ndef f(x)") && !source.contains("Done"), "{source}");
        assert_eq!(found("\n    return 1\nprint(2)").unwrap().1, "solution");
        assert_eq!(found("no program"), None);
        let two = "def a():\n    return 1\ndef b():\n    return 2\n";
        assert_eq!(program(two, Some("a")).unwrap().function, "a");
        assert_eq!(found(two).unwrap().1, "b");
    }

    #[test]
    fn imports_become_names() {
        assert_eq!(
            without_imports("import math as m\nfrom math import sqrt, ceil as c\n    import os"),
            "m = math\nsqrt = math.sqrt; c = math.ceil\n    pass"
        );
    }

    #[test]
    fn results_are_compared_exactly_but_for_rounding() {
        assert!(agrees("18", Some("18")) && agrees("18.0", Some("18")) && agrees("0.30000000000000004", Some("0.3")));
        assert!(!agrees("18.1", Some("18")) && !agrees("1000000000000", Some("1000000000001")) && !agrees("1", None));
    }
}
