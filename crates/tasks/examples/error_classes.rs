//! False positive rates of the classes of errors: how often wrong answers that know nothing of a mistake fall into each.
//!
//! `cargo run --release -p earnest-tasks --example error_classes -- [answers] [seed]` prints the Markdown of `benches/results/profile.md`. Wrong
//! answers are of three kinds: a random number of the right length, the right answer with one random digit replaced, and a random number of
//! another length. All digits of a class are alike, so what is counted is chance.
use earnest_tasks::anatomy::{Calculation, ErrorClass, Wrong, classify};
use num_bigint::BigInt;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const LENGTHS: [usize; 7] = [1, 2, 3, 4, 6, 10, 20];

/// Classes that random digits can fall into.
const CLASSES: [ErrorClass; 10] = [
    ErrorClass::Sign,
    ErrorClass::Operation,
    ErrorClass::Operand,
    ErrorClass::Carry,
    ErrorClass::Borrow,
    ErrorClass::Neighbour,
    ErrorClass::Shifted,
    ErrorClass::Order,
    ErrorClass::Dropped,
    ErrorClass::Repeated,
];

fn number(random: &mut ChaCha8Rng, digits: usize) -> String {
    let first = char::from(b'1' + random.random_range(0..9_u8));
    std::iter::once(first).chain((1..digits).map(|_| char::from(b'0' + random.random_range(0..10_u8)))).collect()
}

fn value(text: &str) -> BigInt {
    text.parse().expect("digits are a number")
}

/// A kind of wrong answers.
#[derive(Clone, Copy)]
enum Kind {
    SameLength,
    OneDigit,
    OtherLength,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::SameLength => "random, right length",
            Kind::OneDigit => "one random digit",
            Kind::OtherLength => "random, other length",
        }
    }

    fn wrong(self, random: &mut ChaCha8Rng, expected: &str) -> String {
        let (sign, digits) = expected.strip_prefix('-').map_or(("", expected), |digits| ("-", digits));
        loop {
            let answer = match self {
                Kind::SameLength => number(random, digits.len()),
                Kind::OneDigit => {
                    let mut answer = digits.as_bytes().to_vec();
                    let place = random.random_range(0..answer.len());
                    answer[place] = b'0' + random.random_range(0..10_u8);
                    String::from_utf8(answer).expect("digits are text")
                }
                Kind::OtherLength => {
                    let longer = random.random_range(0..2) == 0 || digits.len() == 1;
                    number(random, if longer { digits.len() + 1 } else { digits.len() - 1 })
                }
            };
            if answer != digits {
                return format!("{sign}{answer}");
            }
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let answers: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(20_000);
    let seed: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    println!("{answers} wrong answers a row, seed {seed}; per cent that fall into a class (0.00 is none).\n");
    let names: Vec<&str> = CLASSES.iter().map(|class| class.name()).collect();
    println!("| task | digits | wrong answers | {} | none |", names.join(" | "));
    println!("|---|---:|---|{}---:|", "---:|".repeat(CLASSES.len()));
    for (name, calculation) in [
        ("a + b", Calculation::Add),
        ("a - b", Calculation::Subtract),
        ("a * b", Calculation::Multiply),
        ("copy", Calculation::Other),
    ] {
        for length in LENGTHS {
            for kind in [Kind::SameLength, Kind::OneDigit, Kind::OtherLength] {
                let mut counts = [0_usize; CLASSES.len()];
                let mut other = 0;
                for _ in 0..answers {
                    let (a, b) = (number(&mut random, length), number(&mut random, length));
                    let expected = match calculation {
                        Calculation::Add => (value(&a) + value(&b)).to_string(),
                        Calculation::Subtract => (value(&a) - value(&b)).to_string(),
                        Calculation::Multiply => (value(&a) * value(&b)).to_string(),
                        _ => a.clone(),
                    };
                    let answer = kind.wrong(&mut random, &expected);
                    let b = Some(b.as_str()).filter(|_| calculation != Calculation::Other);
                    let wrong = Wrong { calculation, a: Some(&a), b, expected: &expected, answer: Some(&answer) };
                    let found = classify(&wrong).class;
                    match CLASSES.iter().position(|class| *class == found) {
                        Some(place) => counts[place] += 1,
                        None => other += usize::from(found == ErrorClass::Other),
                    }
                }
                let share = |count: usize| format!("{:.2}", 100.0 * count as f64 / answers as f64);
                let shares: Vec<String> = counts.iter().map(|&count| share(count)).collect();
                println!("| {name} | {length} | {} | {} | {} |", kind.name(), shares.join(" | "), share(other));
            }
        }
    }
}
