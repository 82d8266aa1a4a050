//! The embedded interpreter's library: every name of the modules that programs are given, and what their functions return.
//! `library.txt` has the expressions and the results of the whole library, before its native modules were reduced.
#![cfg(unix)]

use std::time::Duration;

use earnest_sandbox::{Number, Outcome, Pool, Settings};

const PAGE: &str = include_str!("library.txt");

/// Evaluates each text with all of Python's builtins and returns one line for each, as bytes of an integer.
const PROGRAM: &str = r#"
def f():
    b = fractions.sys.modules["builtins"]

    def near(*values):
        # The last places are those of the machine's C library.
        one = lambda value: f"{value.real:.12g}{value.imag:+.12g}j" if b.isinstance(value, complex) else f"{value:.12g}"
        return " ".join(map(one, values))

    scope = dict(
        array=array, cmath=cmath, decimal=decimal, fractions=fractions, math=math, numbers=numbers, random=random, typing=typing,
        D=decimal.Decimal, F=fractions.Fraction, seeded=random.Random, near=near,
    )
    lines = []
    for text in TEXTS:
        try:
            lines.append(b.ascii(b.eval(text, scope)))
        except b.BaseException as error:
            lines.append(b.type(error).__name__ + ": " + b.ascii(str(error))[1:-1])
    return int.from_bytes("\n".join(lines).encode(), "big")
"#;

/// The bytes of an integer as text.
fn text(hexadecimal: &str) -> String {
    let even = "0".repeat(hexadecimal.len() % 2) + hexadecimal;
    let bytes = (0..even.len()).step_by(2).map(|at| u8::from_str_radix(&even[at..at + 2], 16).unwrap());
    String::from_utf8(bytes.collect()).unwrap()
}

#[test]
fn names_and_functions_of_the_modules() {
    let expressions: Vec<&str> = PAGE.lines().filter_map(|line| line.strip_prefix(">>> ")).collect();
    let program = PROGRAM.replace("TEXTS", &serde_json::to_string(&expressions).unwrap());
    let settings =
        Settings { wall: Duration::from_secs(120), workers: 1, ..Settings::new(env!("CARGO_BIN_EXE_earnest")) };
    let outcome = Pool::new(settings).unwrap().run(&program, "f");
    let Outcome::Number(Number::Int(hexadecimal)) = outcome else { panic!("{outcome:?}") };
    let found = text(&hexadecimal);
    let mut results = found.lines();
    // The page with the results found.
    let mut page = String::new();
    for line in PAGE.lines().filter(|line| line.starts_with("# ") || line.starts_with(">>> ")) {
        page += &format!("{line}\n");
        if line.starts_with(">>> ") {
            page += &format!("{}\n", results.next().unwrap());
        }
    }
    assert_eq!(results.next(), None);
    if page != PAGE {
        let path = std::env::temp_dir().join("earnest-library.txt");
        std::fs::write(&path, &page).unwrap();
        let differences = page.lines().zip(PAGE.lines()).filter(|(found, expected)| found != expected);
        differences.for_each(|(found, expected)| println!("found    {found}\nexpected {expected}"));
        panic!("{} has what was found", path.display());
    }
}
