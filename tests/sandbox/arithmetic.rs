//! Float arithmetic of the embedded interpreter, where RustPython differs from CPython. The expected values are CPython's.
#![cfg(unix)]

use std::sync::OnceLock;

use earnest_sandbox::{Number, Outcome, Pool, Settings};

fn run(body: &str) -> Outcome {
    static POOL: OnceLock<Pool> = OnceLock::new();
    let pool = POOL.get_or_init(|| Pool::new(Settings::new(env!("CARGO_BIN_EXE_earnest"))).unwrap());
    pool.run(&format!("def f():\n    {}", body.replace('\n', "\n    ")), "f")
}

fn float(body: &str) -> f64 {
    match run(body) {
        Outcome::Number(number @ Number::Float(_)) => number.to_f64(),
        other => panic!("{body}: {other:?}"),
    }
}

fn raised(body: &str, family: &str) -> bool {
    matches!(run(body), Outcome::Raised(exception) if exception.family == family)
}

/// A float as Python source.
fn source(value: f64) -> String {
    if value.is_finite() { format!("{value:?}") } else { format!("float('{value}')") }
}

#[test]
fn quotients_and_remainders() {
    for (value, divisor, quotient, remainder) in [
        (1.0, 0.1, 9.0, 0.09999999999999995),
        (7.5, 2.0, 3.0, 1.5),
        (-7.5, 2.0, -4.0, 0.5),
        (7.5, -2.0, -4.0, -0.5),
        (258.0, 863e-7, 2989571.0, 2.2700000012759e-05),
        (5.0, f64::INFINITY, 0.0, 5.0),
        (110.0, -10.0, -11.0, -0.0),
    ] {
        let (value, divisor) = (source(value), source(divisor));
        assert_eq!(float(&format!("x = {value}\nreturn x // {divisor}")), quotient, "{value} // {divisor}");
        assert_eq!(float(&format!("x = {value}\nreturn divmod(x, {divisor})[0]")), quotient, "{value} // {divisor}");
        for body in ["return x % y", "return divmod(x, y)[1]"].map(|body| format!("x, y = {value}, {divisor}\n{body}"))
        {
            let rest = float(&body);
            assert!((rest - remainder).abs() < 1e-12, "{body}: {rest}");
            assert_eq!(rest.is_sign_negative(), remainder.is_sign_negative(), "{body}");
        }
    }
    assert_eq!(float("return 1.0 // 0.1"), 9.0);
    assert_eq!(float("x = 1\nreturn x // 0.1"), 9.0);
    assert_eq!(float("x = -7.5\nreturn x % 2"), 0.5);
    assert_eq!(float("x = 2.0\nreturn x ** 0.5"), 2f64.sqrt());
    assert!(raised("x = 0.0\nreturn 1 % x", "ZeroDivisionError"));
    assert!(raised("x = 10.0\nreturn x ** 400", "ArithmeticError"));
    assert!(raised("return 1.5 % 'a'", "TypeError"));
}

#[test]
fn rounding() {
    for (value, digits, expected) in [
        (6.755, 2, 6.75),
        (2.675, 2, 2.67),
        (1.005, 2, 1.0),
        (0.5, 0, 0.0),
        (1.5, 0, 2.0),
        (-2.5, 0, -2.0),
        (0.125, 2, 0.12),
        (5.015, 2, 5.01),
        (25.0, -1, 20.0),
        (35.0, -1, 40.0),
        (25.5, -1, 30.0),
        (15.0, -1, 20.0),
        (149.99, -2, 100.0),
        (-250.0, -2, -200.0),
        (1234567.0, -3, 1235000.0),
        (1e300, -299, 1e300),
        (1.5e300, -300, 2e300),
        (1e22, -400, 0.0),
        (1e-7, 400, 1e-7),
        (0.49999999999999994, 0, 0.0),
    ] {
        assert_eq!(float(&format!("return round({value:?}, {digits})")), expected, "round({value:?}, {digits})");
    }
    assert!(raised(&format!("return round({:?}, -308)", f64::MAX), "ArithmeticError"));
    assert!(float("return round(-0.4, 0)").is_sign_negative());
    assert!(float("return round(float('nan'), 2)").is_nan());
    assert_eq!(run("return round(2.5) + round(0.49999999999999994)"), Outcome::Number(Number::Int("2".into())));
}
