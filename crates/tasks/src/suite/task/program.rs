//! Programs that models write as answers.
use std::sync::LazyLock;

use regex::Regex;

use super::scorer::{float, same_number};
use crate::suite::FailureClass;
use crate::suite::gsm_symbolic::answer::code::{classify, extract};
use earnest_answer::{CodeOutcome, CodeRunner, Program};

/// Relative difference of doubles that are the same number but for rounding.
const ROUNDING: f64 = 1e-9;

static FENCED: LazyLock<Regex> = LazyLock::new(|| compiled(r"(?s)```[^\n`]*\n(.*?)(?:```|\z)"));
static FUNCTION: LazyLock<Regex> = LazyLock::new(|| compiled(r"(?m)^def[ \t]+(\w+)\([ \t]*\)[^\n]*:"));
static MAIN: LazyLock<Regex> = LazyLock::new(|| compiled(r"(?s)(?:^|\n)if[ \t]+__name__[ \t]*==.*\z"));
static IMPORT: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"(?m)^([ \t]*)import[ \t]+(\w+(?:[ \t]+as[ \t]+\w+)?(?:[ \t]*,[ \t]*\w+(?:[ \t]+as[ \t]+\w+)?)*)[ \t]*$")
});
static FROM: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"(?m)^([ \t]*)from[ \t]+(\w+)[ \t]+import[ \t]+(\*|[\w, \t]+?)[ \t]*$"));

/// Names of Python's module `math`, for `from math import *`, which no function may say.
const MATH: &str = "acos,acosh,asin,asinh,atan,atan2,atanh,ceil,comb,copysign,cos,cosh,degrees,dist,e,erf,erfc,exp,expm1,fabs,\
    factorial,floor,fmod,frexp,fsum,gamma,gcd,hypot,inf,isclose,isfinite,isinf,isnan,isqrt,lcm,ldexp,lgamma,log,log10,log1p,\
    log2,modf,nan,perm,pi,pow,prod,radians,remainder,sin,sinh,sqrt,tan,tanh,tau,trunc";

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
    same_number(found, gold) || (is_double && close().unwrap_or(false))
}

fn program(visible: &str, function: Option<&str>) -> Option<Program> {
    let visible = visible.replace("\r\n", "\n");
    let fenced: Vec<String> =
        FENCED.captures_iter(&visible).filter_map(|found| found.get(1)).map(|code| dedented(code.as_str())).collect();
    // A block after the program shows its output or its use.
    let blocks = if fenced.is_empty() { vec![visible] } else { fenced };
    let found = blocks.iter().rev().find_map(|code| Some((code, named(code, function)?)));
    match found {
        Some((code, name)) => Some(Program { source: enclosed(code, name), function: ENCLOSING.to_owned() }),
        None => extract(blocks.last()?),
    }
}

/// The function to call: the one of this name, or the last one without parameters.
fn named<'a>(code: &'a str, function: Option<&str>) -> Option<&'a str> {
    let mut names = FUNCTION.captures_iter(code).filter_map(|found| found.get(1)).map(|name| name.as_str());
    match function {
        Some(wanted) => names.find(|name| *name == wanted),
        None => names.last(),
    }
}

/// Code without the white space that all its lines begin with.
fn dedented(code: &str) -> String {
    let lines = code.lines().filter(|line| !line.trim().is_empty());
    let common = lines.map(|line| line.len() - line.trim_start_matches([' ', '\t']).len()).min().unwrap_or(0);
    code.lines().map(|line| line.get(common..).unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Name of the function around a program.
const ENCLOSING: &str = "enclosing_program";

/// The program inside a function that calls the named one: in the sandbox, functions and constants of a program's top level do not
/// see each other, those of a function do. What stands under `if __name__` is left out.
fn enclosed(code: &str, name: &str) -> String {
    let code = without_imports(&MAIN.replace(code, "\n"));
    let mut source = format!("def {ENCLOSING}():\n");
    for line in code.lines() {
        if !line.trim().is_empty() {
            source.push_str("    ");
            source.push_str(line);
        }
        source.push('\n');
    }
    source + "    return " + name + "()\n"
}

/// Replaces imports, which programs in the sandbox cannot do, by the modules that are there already.
fn without_imports(code: &str) -> String {
    let code = IMPORT.replace_all(code, |found: &regex::Captures<'_>| {
        let names = found[2].split(',').filter_map(|module| {
            let words: Vec<&str> = module.split_whitespace().collect();
            match words[..] {
                [module, "as", other] => Some(format!("{other} = {module}")),
                _ => None,
            }
        });
        let names: Vec<String> = names.collect();
        format!("{}{}", &found[1], if names.is_empty() { "pass".to_owned() } else { names.join("; ") })
    });
    let replaced = FROM.replace_all(&code, |found: &regex::Captures<'_>| {
        let wanted = match (&found[2], &found[3]) {
            ("math", "*") => MATH,
            (_, wanted) => wanted,
        };
        let names: Vec<String> = wanted
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
        assert_eq!(function, ENCLOSING);
        assert!(
            source.starts_with("def enclosing_program():\n    pass\n    def f(x):\n        return x\n"),
            "{source}"
        );
        assert!(source.ends_with("    return answer()\n") && !source.contains("Done"), "{source}");
        let shown = "``` python\r\ndef solution( ):\r\n    return 3\r\nif __name__ == '__main__':\r\n    print(solution())\r\n```\nOutput:\n```\n3\n```";
        let (source, _) = found(shown).unwrap();
        assert_eq!(source, "def enclosing_program():\n    def solution( ):\n        return 3\n    return solution()\n");
        let indented = "1. So:\n   ```py\n   def f():\n       return 4\n   ```";
        assert!(found(indented).unwrap().0.contains("\n    def f():\n        return 4\n"));
        assert_eq!(found("\n    return 1\nprint(2)").unwrap().1, "solution");
        assert_eq!(found("no program"), None);
        let two = "def a():\n    return 1\ndef b():\n    return 2\n";
        assert!(program(two, Some("a")).unwrap().source.ends_with("return a()\n"));
        assert!(found(two).unwrap().0.ends_with("return b()\n"));
    }

    #[test]
    fn imports_become_names() {
        assert_eq!(
            without_imports(
                "import math as m, random\nimport math, os\nfrom math import sqrt, ceil as c\n    import os"
            ),
            "m = math\npass\nsqrt = math.sqrt; c = math.ceil\n    pass"
        );
    }

    #[test]
    fn all_names_of_math_can_be_imported() {
        let code = without_imports("from math import *\ndef f():\n    return sqrt(4)");
        assert!(code.contains("; sqrt = math.sqrt;") && code.contains("pi = math.pi"), "{code}");
        assert_eq!(without_imports("from os import *"), "* = os.*", "no module of the sandbox: a syntax error");
    }

    #[test]
    fn results_are_compared_exactly_but_for_rounding() {
        assert!(agrees("18", Some("18")) && agrees("18.0", Some("18")) && agrees("0.30000000000000004", Some("0.3")));
        assert!(!agrees("18.1", Some("18")) && !agrees("1000000000000", Some("1000000000001")) && !agrees("1", None));
    }
}
