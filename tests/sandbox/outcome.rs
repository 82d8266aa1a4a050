//! Outcomes: the answer of every kind, answers that a program forges, and the values of large integers.
#![cfg(unix)]

use std::path::Path;

use earnest_sandbox::{ATTEMPTS, Number, Outcome, Pool, Settings, succeeding_attempts};

fn settings() -> Settings {
    Settings { workers: 1, ..Settings::new(env!("CARGO_BIN_EXE_earnest")) }
}

fn run(pool: &Pool, body: &str) -> Outcome {
    pool.run(&format!("def f():\n    {body}"), "f")
}

#[test]
fn answers_of_every_kind() {
    let pool = Pool::new(settings()).unwrap();
    assert_eq!(run(&pool, "return"), Outcome::None);
    assert_eq!(run(&pool, "return 1 < 2"), Outcome::Number(Number::Bool(true)));
    let Outcome::Number(int) = run(&pool, "return -255") else { panic!("an integer") };
    assert_eq!((int.to_f64(), int.to_string().as_str()), (-255.0, "-255"));
    let Outcome::Number(float) = run(&pool, "return 1e-07") else { panic!("a float") };
    assert_eq!(float.to_f64(), 1e-7);
    assert!(matches!(run(&pool, "return x"), Outcome::Raised(exception) if exception.family == "NameError"));
    // As CPython 3.11: later versions raise a SyntaxError.
    for body in ["return 1\0", "x = 'a\0b'\n    return 1"] {
        let outcome = run(&pool, body);
        assert!(matches!(&outcome, Outcome::Raised(exception) if exception.family == "ValueError"), "{outcome:?}");
    }
}

/// A program in CPython can write to the pipe of its answer.
#[test]
fn damaged_answers_are_crashes() {
    let python = Path::new("/usr/bin/python3");
    if !python.exists() {
        eprintln!("not checked: there is no {}", python.display());
        return;
    }
    let pool = Pool::new(Settings { python: Some(python.into()), ..settings() }).unwrap();
    let forge = |written: &str| run(&pool, &format!("random._os.write(1, b'{written}')\n    random._os._exit(0)"));
    assert_eq!(forge(r"noise\x1eearnest\x1fint\x1f2a\x1e"), Outcome::Number(Number::Int("2a".into())));
    assert_eq!(forge(r"\x1eearnest\x1fraised\x1fMemoryError\x1f\x1e"), Outcome::MemoryLimit);
    for answer in ["", "int", r"int\x1fxyz", r"float\x1fone", r"raised\x1fNameError", r"unknown\x1f1"] {
        let outcome = forge(&format!(r"\x1eearnest\x1f{answer}\x1e"));
        assert!(matches!(outcome, Outcome::Crashed(_)), "{answer:?}: {outcome:?}");
    }
    let outcome = forge(r"\x1eearnest\x1fnone\x1f");
    assert!(matches!(outcome, Outcome::Crashed(_)), "an answer without an end: {outcome:?}");
}

#[test]
fn large_integers_have_a_value_and_a_text() {
    let large = Number::Int("1".to_owned() + &"0".repeat(300));
    assert!(large.to_f64().is_infinite());
    assert_eq!(large.to_string().len(), 362);
    let huge = Number::Int("-f".to_owned() + &"0".repeat(20_000));
    assert_eq!(huge.to_f64(), f64::NEG_INFINITY);
    assert!(huge.to_string().starts_with("-0xf00"));
    assert!(Number::Float("nan".into()).to_f64().is_nan());
}

/// So that a refusal inside the sandbox is the sandbox's.
#[test]
fn all_attempts_succeed_outside() {
    assert_eq!(succeeding_attempts(), ATTEMPTS);
}
