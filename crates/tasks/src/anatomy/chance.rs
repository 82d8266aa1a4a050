//! Chance of a class of errors: how often wrong answers that know nothing of a mistake fall into it.
use num_bigint::BigInt;

use super::{Calculation, ErrorClass, Wrong, classify};
use crate::suite::nupa::DigitSource;
use earnest_answer::number::Fraction;

/// Kind of wrong answers that are drawn at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RandomWrong {
    /// A random number with as many digits as the right one.
    SameLength,
    /// A random number with one digit more or less.
    OtherLength,
    /// The right number with one digit replaced by a random one.
    OneDigit,
}

impl RandomWrong {
    /// All, random numbers first.
    pub const ALL: [RandomWrong; 3] = [RandomWrong::SameLength, RandomWrong::OtherLength, RandomWrong::OneDigit];

    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            RandomWrong::SameLength => "random, right length",
            RandomWrong::OtherLength => "random, other length",
            RandomWrong::OneDigit => "one random digit",
        }
    }

    /// A wrong answer; `expected` has a digit that is not 0. Differences have a random sign, unless a digit is replaced.
    fn draw(self, random: &mut DigitSource, calculation: Calculation, expected: &str) -> String {
        let (sign, digits) = expected.strip_prefix('-').map_or(("", expected), |digits| ("-", digits));
        loop {
            let drawn = match self {
                RandomWrong::SameLength => like(random, digits, None),
                RandomWrong::OtherLength => {
                    // Of the significand, the numerator or the denominator; of a power, not of its exponent.
                    let parts = if digits.contains('/') { 2 } else { 1 };
                    let other = random.below(parts) as usize;
                    like(random, digits, Some(other))
                }
                RandomWrong::OneDigit => one_digit(random, digits),
            };
            let sign = match self {
                RandomWrong::OneDigit => sign,
                _ if calculation == Calculation::Subtract => ["", "-"][usize::from(random.chance(1, 2))],
                _ => sign,
            };
            let answer = format!("{sign}{drawn}");
            if answer != expected {
                return answer;
            }
        }
    }
}

/// A random number in the form of another: every part has as many digits, but for one that has one more or less.
fn like(random: &mut DigitSource, text: &str, other: Option<usize>) -> String {
    let mut drawn = String::with_capacity(text.len() + 1);
    let mut rest = text;
    let mut part = 0;
    while !rest.is_empty() {
        let end = rest.find(|one: char| !one.is_ascii_digit()).unwrap_or(rest.len());
        // Digits after a point are the same part as those before it, and take its change of length.
        let decimals = rest[end..].strip_prefix('.').map(|after| {
            let end = after.find(|one: char| !one.is_ascii_digit()).unwrap_or(after.len());
            &after[..end]
        });
        let length = end + decimals.map_or(0, str::len);
        let length = match other {
            Some(changed) if changed == part => {
                let longer = random.chance(1, 2) || length == 1;
                if longer { length + 1 } else { length - 1 }
            }
            _ => length,
        };
        let digits = number(random, length);
        match decimals {
            Some(_) if length > 1 => drawn += &format!("{}.{}", &digits[..1], &digits[1..]),
            _ => drawn += &digits,
        }
        rest = &rest[end + decimals.map_or(0, |decimals| decimals.len() + 1)..];
        if let Some(sign) = rest.chars().next() {
            drawn.push(sign);
            rest = &rest[sign.len_utf8()..];
        }
        part += 1;
    }
    drawn
}

/// Numbers that chance is measured for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    Whole,
    /// Numerator and denominator have the digits.
    Fractions,
    /// Numbers with an exponent, whose significand has the digits.
    Powers,
}

/// Calculations that chance is measured for: sums, differences, products, one of two operands, the number of digits, and copying, which stands for all
/// that only digits are compared of. What a sum of powers has for an answer is drawn.
pub const CALCULATIONS: [(&str, Calculation, Numbers); 9] = [
    ("a + b", Calculation::Add, Numbers::Whole),
    ("a - b", Calculation::Subtract, Numbers::Whole),
    ("a * b", Calculation::Multiply, Numbers::Whole),
    ("larger of a, b", Calculation::Choose, Numbers::Whole),
    ("digits of a", Calculation::Count, Numbers::Whole),
    ("copy", Calculation::Other, Numbers::Whole),
    ("fractions, a + b", Calculation::Add, Numbers::Fractions),
    ("fractions, a - b", Calculation::Subtract, Numbers::Fractions),
    ("powers, a + b", Calculation::Add, Numbers::Powers),
];

/// Random wrong answers that are drawn for a given one, of each kind.
const DRAWS: usize = 50;

/// Drawn answers that are right are drawn again, at most so often: of one digit there are nine others.
const REDRAWN: usize = 20;

/// Chance of each class beside its share: how often wrong answers fall into it that know nothing of the mistake, in place of the given ones.
///
/// For each given answer, numbers of its form with random digits are drawn (as many digits before and after the point, its sign), and right answers
/// with one digit replaced. So chance is that of the questions and lengths that are counted. Answers whose class does not depend on digits count as
/// answers that never fall into any other.
#[derive(Debug, Clone, PartialEq)]
pub struct Chance {
    answers: f64,
    random: [f64; CLASSES],
    one_digit: [f64; CLASSES],
}

const CLASSES: usize = ErrorClass::ALL.len();

impl Default for Chance {
    fn default() -> Self {
        Chance { answers: 0.0, random: [0.0; CLASSES], one_digit: [0.0; CLASSES] }
    }
}

impl Chance {
    /// Chance for one wrong answer of this class; what is drawn depends on `name` alone.
    pub fn of(wrong: &Wrong<'_>, class: ErrorClass, name: &str) -> Self {
        let mut found = Chance { answers: 1.0, ..Chance::default() };
        let Some(given) = wrong.answer.filter(|_| class.depends_on_digits()) else { return found };
        let mut random = DigitSource::named(&format!("chance of errors {name}"));
        for _ in 0..DRAWS {
            let count = |counts: &mut [f64; CLASSES], drawn: Option<String>| {
                let Some(drawn) = drawn else { return };
                let class = classify(&Wrong { answer: Some(&drawn), ..*wrong }).class;
                counts[class as usize] += 1.0 / DRAWS as f64;
            };
            count(&mut found.random, redrawn(wrong.expected, || in_form(&mut random, given)));
            count(&mut found.one_digit, redrawn(wrong.expected, || one_digit(&mut random, wrong.expected)));
        }
        found
    }

    /// Adds the answers of another.
    pub fn add(&mut self, other: &Chance) {
        self.answers += other.answers;
        for (ours, theirs) in [(&mut self.random, &other.random), (&mut self.one_digit, &other.one_digit)] {
            ours.iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours += theirs);
        }
    }

    /// Share of random wrong answers in a class, from 0 to 1: the larger one of both kinds, of random digits alone where the class says how near an
    /// answer is. None of classes that do not depend on digits, and without answers.
    pub fn share(&self, class: ErrorClass) -> Option<f64> {
        let index = class as usize;
        let random = self.random[index];
        let most = if class.is_near() { random } else { random.max(self.one_digit[index]) };
        (self.answers > 0.0 && class.depends_on_digits()).then(|| most / self.answers)
    }
}

/// The first drawn answer that is not the right one.
fn redrawn(expected: &str, mut draw: impl FnMut() -> String) -> Option<String> {
    (0..REDRAWN).map(|_| draw()).find(|drawn| drawn != expected)
}

/// Random digits in the place of those of a number; zeros at the beginning of a longer run stay.
fn in_form(random: &mut DigitSource, given: &str) -> String {
    let mut drawn = String::with_capacity(given.len());
    let mut before = None;
    let mut ones = given.chars().peekable();
    while let Some(one) = ones.next() {
        let begins = !before.is_some_and(|before: char| before.is_ascii_digit() || before == '.');
        let goes_on = ones.peek().is_some_and(|next| next.is_ascii_digit() || *next == '.');
        match one {
            '0' if begins && goes_on => drawn.push('0'),
            '0'..='9' if begins && goes_on => random.nonzero_digit(&mut drawn),
            '0'..='9' => random.digits(1, &mut drawn),
            other => drawn.push(other),
        }
        before = Some(one);
    }
    drawn
}

/// A number with one random digit replaced by a random one.
fn one_digit(random: &mut DigitSource, number: &str) -> String {
    let indices: Vec<usize> =
        number.char_indices().filter(|(_, one)| one.is_ascii_digit()).map(|(index, _)| index).collect();
    if indices.is_empty() {
        return number.to_owned();
    }
    let index = indices[random.below(indices.len() as u64) as usize];
    format!("{}{}{}", &number[..index], random.below(10), &number[index + 1..])
}

/// Shares of the classes, in per cent and in the order of [`ErrorClass::ALL`], among `answers` random wrong answers to a calculation on operands
/// of so many digits.
pub fn simulate(
    (calculation, numbers): (Calculation, Numbers),
    digits: usize,
    kind: RandomWrong,
    answers: usize,
    seed: u64,
) -> Vec<f64> {
    let name = format!("chance of errors {calculation:?} {numbers:?} {digits} {kind:?} seed {seed}");
    let mut random = DigitSource::named(&name);
    let mut counts = [0_usize; ErrorClass::ALL.len()];
    let mut left = answers;
    while left > 0 {
        let (a, b) = (operand(&mut random, numbers, digits), operand(&mut random, numbers, digits));
        let Some(expected) = expected(&mut random, calculation, numbers, (&a, &b), digits) else { continue };
        left -= 1;
        let answer = kind.draw(&mut random, calculation, &expected);
        let b = Some(b.as_str()).filter(|_| !matches!(calculation, Calculation::Other | Calculation::Count));
        let found =
            classify(&Wrong { calculation, a: Some(&a), b, expected: &expected, answer: Some(&answer), shown: None });
        counts[found.class as usize] += 1;
    }
    counts.iter().map(|&count| 100.0 * count as f64 / answers.max(1) as f64).collect()
}

fn operand(random: &mut DigitSource, numbers: Numbers, digits: usize) -> String {
    match numbers {
        Numbers::Whole => number(random, digits),
        Numbers::Fractions => format!("{}/{}", number(random, digits), number(random, digits)),
        Numbers::Powers => {
            let significand = number(random, digits);
            let point = if digits > 1 { "." } else { "" };
            format!("{}{point}{}e{}", &significand[..1], &significand[1..], number(random, 2))
        }
    }
}

/// The right answer; none where it is 0, of which no digit can be told.
fn expected(
    random: &mut DigitSource,
    calculation: Calculation,
    numbers: Numbers,
    (a, b): (&str, &str),
    digits: usize,
) -> Option<String> {
    let whole = |text: &str| BigInt::parse_bytes(text.as_bytes(), 10).unwrap_or_default();
    let result = match (numbers, calculation) {
        (Numbers::Whole, Calculation::Add) => (whole(a) + whole(b)).to_string(),
        (Numbers::Whole, Calculation::Subtract) => (whole(a) - whole(b)).to_string(),
        (Numbers::Whole, Calculation::Multiply) => (whole(a) * whole(b)).to_string(),
        (Numbers::Whole, Calculation::Choose) => whole(a).max(whole(b)).to_string(),
        (Numbers::Whole, Calculation::Count) => a.len().to_string(),
        (Numbers::Fractions, Calculation::Add) => (&Fraction::parse(a).ok()? + &Fraction::parse(b).ok()?).to_string(),
        (Numbers::Fractions, Calculation::Subtract) => {
            (&Fraction::parse(a).ok()? - &Fraction::parse(b).ok()?).to_string()
        }
        (Numbers::Powers, Calculation::Add) => operand(random, numbers, digits),
        _ => a.to_owned(),
    };
    let is_zero = result.split('/').next().is_some_and(|part| part.bytes().all(|byte| byte == b'0'));
    (!is_zero).then_some(result)
}

/// A number whose first digit is not 0.
fn number(random: &mut DigitSource, digits: usize) -> String {
    let mut text = String::with_capacity(digits);
    random.nonzero_digit(&mut text);
    random.digits(digits.saturating_sub(1), &mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum<'a>(a: &'a str, b: &'a str, expected: &'a str, answer: &'a str) -> Wrong<'a> {
        Wrong { calculation: Calculation::Add, a: Some(a), b: Some(b), expected, answer: Some(answer), shown: None }
    }

    #[test]
    fn random_numbers_have_the_form_of_the_answer() {
        let mut random = DigitSource::named("form");
        for given in ["-12.50", "0.07", "1.25e7", "31/40", "(7)", "00123", "9"] {
            let form = |text: &str| text.replace(|one: char| one.is_ascii_digit(), "d");
            let drawn: Vec<String> = (0..200).map(|_| in_form(&mut random, given)).collect();
            assert!(drawn.iter().all(|drawn| form(drawn) == form(given)), "{given}: {drawn:?}");
            let zeros = |text: &str| text.starts_with("00");
            assert!(drawn.iter().all(|drawn| !zeros(drawn) || zeros(given)), "{given}: {drawn:?}");
            assert!(drawn.iter().any(|other| *other != drawn[0]), "{given}");
        }
    }

    #[test]
    fn chance_is_that_of_the_counted_answers() {
        let near = Chance::of(&sum("4795", "618", "5413", "5513"), ErrorClass::Digit, "one");
        assert_eq!(near, Chance::of(&sum("4795", "618", "5413", "5513"), ErrorClass::Digit, "one"));
        // A right sum with one digit replaced is one with a digit wrong: that is the class itself, and no chance of it.
        assert!(near.share(ErrorClass::Digit).unwrap() < 0.1, "{near:?}");
        // A carry that was left out is such a digit, too: one in nine of one less, where something is carried.
        let carry = near.share(ErrorClass::Carry).unwrap();
        assert!(carry > 0.0 && carry < 0.25, "{near:?}");
        assert_eq!(near.share(ErrorClass::Truncated), None);
        assert_eq!(Chance::default().share(ErrorClass::Digit), None);
        // An answer that was cut off is no number by chance.
        let mut both = near.clone();
        both.add(&Chance::of(&sum("4795", "618", "5413", "54"), ErrorClass::Truncated, "two"));
        assert_eq!(both.share(ErrorClass::Carry), Some(carry / 2.0));
    }

    #[test]
    fn chance_of_answers_agrees_with_that_of_random_operands() {
        let mut random = DigitSource::named("agreement");
        let mut found = Chance::default();
        for index in 0..400 {
            let [a, b, answer] = [0; 3].map(|_| number(&mut random, 2));
            let whole = |text: &str| text.parse::<u32>().unwrap();
            let expected = (whole(&a) + whole(&b)).to_string();
            // Of the right length, as in the other one.
            let answer = if expected.len() == 3 { format!("1{answer}") } else { answer };
            found.add(&Chance::of(&sum(&a, &b, &expected, &answer), ErrorClass::Other, &index.to_string()));
        }
        let shares = simulate((Calculation::Add, Numbers::Whole), 2, RandomWrong::SameLength, 20_000, 1);
        for class in [ErrorClass::Digits, ErrorClass::Close, ErrorClass::Rounded, ErrorClass::Part, ErrorClass::Other] {
            let (ours, theirs) = (100.0 * found.share(class).unwrap(), shares[class as usize]);
            assert!((ours - theirs).abs() < 1.5, "{class}: {ours} and {theirs}");
        }
    }
}
