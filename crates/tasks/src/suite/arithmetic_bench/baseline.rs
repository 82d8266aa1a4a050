//! Chance baselines: exact probabilities of the generator, no simulation.
use num_bigint::BigUint;
use num_traits::ToPrimitive;

use super::Task;

/// Probabilities that a question of one task and length is answered without working on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Baseline {
    /// The answer is one of the operands, so that repeating them is enough: `b = 1` in `mul_1` and `div_1`, palindromes in
    /// `rev`, everything in `copy`. (In `sub` the operand stands behind a minus in `a-b`; it counts here all the same.)
    pub echo: f64,
    /// The answer is the most frequent one of its length; only for `count`, whose answers are few at every length.
    pub constant: Option<f64>,
    /// The answer is `0` or `(0)`.
    pub zero: f64,
}

/// The baselines of a task at a length (from 1 to 100).
pub fn baseline(task: Task, n: usize) -> Baseline {
    let constant = (task == Task::Count).then(|| zeros_mode(n));
    Baseline { echo: echo(task, n), constant, zero: zero(task, n) }
}

/// Count of the numbers with exactly `n` digits.
fn numbers(n: usize) -> f64 {
    9.0 * 10f64.powi(n as i32 - 1)
}

fn echo(task: Task, n: usize) -> f64 {
    match task {
        Task::Copy => 1.0,
        // The first half of a palindrome is free.
        Task::Rev => 0.1f64.powi(n as i32 / 2),
        Task::Add | Task::Add1 | Task::Box | Task::Length | Task::Count => 0.0,
        // a - b = b for every b whose double has n digits: 4/9 of them, with one a each.
        Task::Sub => 4.0 / 9.0 / numbers(n),
        Task::Sub1 => match n {
            1 => 4.0 / 81.0,
            2 => 5.0 / 810.0,
            _ => 0.0,
        },
        // One factor is 1.
        Task::Mul | Task::Mul1 if n == 1 => 17.0 / 81.0,
        Task::Mul => 0.0,
        Task::Mul1 => 1.0 / 9.0,
        Task::Div => division_echo(n),
        // b = 1, or floor(a / b) = b > 1, which is b² <= a < b² + b: possible up to two digits.
        Task::Div1 => {
            let (low, high) = match n {
                1 => (1, 9),
                2 => (10, 99),
                _ => return 1.0 / 9.0,
            };
            let squares = (2..=9).flat_map(|b| b * b..b * b + b).filter(|a| (low..=high).contains(a)).count();
            1.0 / 9.0 + squares as f64 / (9.0 * numbers(n))
        }
        // Only the number 1.
        Task::Space | Task::B2d => f64::from(n == 1),
        Task::D2b => f64::from(n == 1) / 9.0,
    }
}

/// Pairs of `2n` and `n` digits with floor(a / b) = b (that is b² <= a < b² + b), or with b = 1, among all pairs.
fn division_echo(n: usize) -> f64 {
    let ten = |exponent: usize| BigUint::from(10u8).pow(exponent as u32);
    let (lowest, end) = (ten(2 * n - 1), ten(n));
    // From the smallest b with b² >= lowest on, all b values of a are in range, since b² + b <= 10^n (10^n - 1).
    let first = (&lowest - 1u8).sqrt() + 1u8;
    let sum = (&end * (&end - 1u8) - &first * (&first - 1u8)) / 2u8;
    // The b before it has some, if b² + b > lowest.
    let last = &first * (&first - 1u8);
    let partial = if last > lowest { last - &lowest } else { BigUint::ZERO };
    let pairs = numbers(2 * n) * numbers(n);
    let identity = if n == 1 { 1.0 / 9.0 } else { 0.0 };
    // At most about 10^200 at n = 100: well inside the range of f64.
    (sum + partial).to_f64().unwrap_or(f64::INFINITY) / pairs + identity
}

fn zero(task: Task, n: usize) -> f64 {
    match task {
        Task::Sub => 1.0 / numbers(n),
        Task::Sub1 if n == 1 => 1.0 / 9.0,
        // a < b
        Task::Div1 if n == 1 => 36.0 / 81.0,
        // No zero behind the first digit.
        Task::Count => 0.9f64.powi(n as i32 - 1),
        _ => 0.0,
    }
}

/// The largest probability of the binomial distribution of zeros: `n - 1` places, one in ten.
fn zeros_mode(n: usize) -> f64 {
    let places = n as f64 - 1.0;
    let mut probability = 0.9f64.powf(places);
    let mut best = probability;
    for k in 0..n.saturating_sub(1) {
        probability *= (places - k as f64) / (k as f64 + 1.0) / 9.0;
        best = best.max(probability);
    }
    best
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::{Base, Question};
    use super::*;

    /// All questions of a small cell.
    fn all(task: Task, n: usize) -> Vec<Question> {
        let digits = task.operand_digits(n);
        let range = |count: usize| 10u32.pow(count as u32 - 1)..10u32.pow(count as u32);
        let firsts: Vec<String> = match digits.base {
            Base::Decimal => range(digits.a).map(|a| a.to_string()).collect(),
            Base::Binary => (1u32 << (n - 1)..1 << n).map(|a| format!("{a:b}")).collect(),
        };
        let ask = |a: &String, b: Option<String>| Question::new(task, a, b.as_deref()).unwrap();
        match digits.b {
            None => firsts.iter().map(|a| ask(a, None)).collect(),
            Some(count) => firsts.iter().flat_map(|a| range(count).map(move |b| ask(a, Some(b.to_string())))).collect(),
        }
    }

    #[test]
    fn baselines_are_what_counting_gives() {
        for task in Task::ALL {
            let lengths = match task {
                Task::Add | Task::Sub | Task::Mul => 1..=2,
                Task::Div => 1..=1,
                Task::Add1 | Task::Sub1 | Task::Mul1 | Task::Div1 => 1..=3,
                _ => 1..=4,
            };
            for n in lengths {
                let questions = all(task, n);
                let share = |count: usize| count as f64 / questions.len() as f64;
                let mut counts: HashMap<String, usize> = HashMap::new();
                for question in &questions {
                    *counts.entry(question.answer()).or_default() += 1;
                }
                let echo =
                    questions.iter().filter(|q| q.answer() == q.a() || Some(q.answer().as_str()) == q.b()).count();
                let zero = ["0", "(0)"].iter().filter_map(|zero| counts.get(*zero)).sum();
                let mode = counts.values().copied().max().unwrap();
                let got = baseline(task, n);
                assert!((got.echo - share(echo)).abs() < 1e-12, "{task} {n}: echo {} {}", got.echo, share(echo));
                assert!((got.zero - share(zero)).abs() < 1e-12, "{task} {n}: zero");
                assert!(got.constant.is_none_or(|c| (c - share(mode)).abs() < 1e-12), "{task} {n}: constant");
            }
        }
    }

    #[test]
    fn division_echo_at_two_digits() {
        let pairs: u32 =
            (10..100u32).map(|b| (b * b..b * b + b).filter(|a| (1000..10_000).contains(a)).count() as u32).sum();
        assert!((baseline(Task::Div, 2).echo - f64::from(pairs) / (9000.0 * 90.0)).abs() < 1e-15);
        let last = baseline(Task::Div, 100).echo;
        assert!(last > 0.0 && last < 1e-99);
    }

    #[test]
    fn averages_over_all_lengths() {
        let average = |value: fn(usize) -> f64| (1..=100).map(value).sum::<f64>() / 100.0;
        // Known: 24.6 % and 10.0 % for `count`, 1.2 % palindromes.
        assert!((average(|n| baseline(Task::Count, n).constant.unwrap()) - 0.246).abs() < 5e-4);
        assert!((average(|n| baseline(Task::Count, n).zero) - 0.1).abs() < 5e-4);
        assert!((average(|n| baseline(Task::Rev, n).echo) - 0.0122).abs() < 5e-5);
    }
}
