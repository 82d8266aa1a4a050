//! Classes of answers that no mistake explains exactly: what they are made of, and how near they come to the right number.
use num_bigint::BigInt;
use num_traits::Signed;

use super::{Calculation, ErrorClass, Written, Wrong};

/// Digits of a number from which its beginning or end alone is told from chance.
const PIECE: usize = 3;

/// Digits of a piece of an operand that others follow.
const JOINED: usize = 2;

/// The twentieth part of a number: an answer that is as near is off by a little.
const LITTLE: u32 = 20;

/// Times that a run of digits stands in a row in an answer that goes round, and the digits that it has there at least.
const ROUNDS: usize = 3;
const ROUND_DIGITS: usize = 4;

/// Longest run of digits that an answer goes round in.
const LONGEST_RUN: usize = 4;

/// A number by its parts: whole and decimals, significand and exponent, or numerator and denominator.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Number {
    Decimal(Written),
    Power(Written, i64),
    Fraction(String, String),
}

impl Number {
    fn parse(text: &str) -> Option<Self> {
        if let Some((above, below)) = text.split_once('/') {
            let digits = |part: &str| {
                let digits = part.trim_matches([' ', '(', ')']).trim_start_matches(['-', '\u{2212}']).to_owned();
                (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(digits)
            };
            return Some(Number::Fraction(digits(above)?, digits(below)?));
        }
        let number = Written::parse(text)?;
        Some(match number.exponent {
            Some(exponent) => Number::Power(number, exponent),
            None => Number::Decimal(number),
        })
    }

    /// The digits that say how much it is: without those of an exponent or a denominator.
    fn significand(&self) -> String {
        match self {
            Number::Decimal(number) | Number::Power(number, _) => number.digits(),
            Number::Fraction(above, _) => above.clone(),
        }
    }

    /// Digits of all parts, but for those of an exponent.
    fn length(&self) -> usize {
        match self {
            Number::Decimal(number) | Number::Power(number, _) => number.digits().len(),
            Number::Fraction(above, below) => above.len() + below.len(),
        }
    }
}

/// The class of a wrong answer that no exact rule explains.
pub(super) fn near(wrong: &Wrong<'_>, answer: &str) -> ErrorClass {
    let (Some(expected), Some(given)) = (Number::parse(wrong.expected), Number::parse(answer)) else {
        return ErrorClass::Other;
    };
    let is_zero = |number: &Number| number.significand().bytes().all(|digit| digit == b'0');
    if is_zero(&given) && !is_zero(&expected) {
        return ErrorClass::Zero;
    }
    if wrong.shown.is_some_and(|shown| Number::parse(shown).as_ref() == Some(&given)) {
        return ErrorClass::Example;
    }
    // Before loops: a rounded number may end with many zeros.
    if is_rounded(&expected, &given) {
        return ErrorClass::Rounded;
    }
    if goes_round(&given.significand()) && !goes_round(&expected.significand()) {
        return ErrorClass::Loop;
    }
    if is_mixed(wrong, answer) {
        return ErrorClass::Mixed;
    }
    if std::mem::discriminant(&expected) != std::mem::discriminant(&given) {
        return ErrorClass::Kind;
    }
    if has_right_part(&expected, &given) {
        return ErrorClass::Part;
    }
    if let Some(class) = by_positions(&expected, &given) {
        return class;
    }
    if is_piece(wrong, &given) {
        return ErrorClass::Piece;
    }
    if is_close(&expected, &given) {
        return ErrorClass::Close;
    }
    let (right, read) = (expected.length(), given.length());
    if 2 * read <= right && read + 2 <= right {
        ErrorClass::Short
    } else if read >= 2 * right && read >= right + 2 {
        ErrorClass::Long
    } else {
        ErrorClass::Other
    }
}

/// True if the answer is the right number with fewer digits, rounded or cut, or one with more decimals that is so rounded to the right one.
fn is_rounded(expected: &Number, given: &Number) -> bool {
    let (one, other) = match (expected, given) {
        (Number::Decimal(one), Number::Decimal(other)) => (one, other),
        (Number::Power(one, power), Number::Power(other, of)) if power == of => (one, other),
        _ => return false,
    };
    let digits = |number: &Written| number.digits().trim_end_matches('0').to_owned();
    let (one_digits, other_digits) = (digits(one), digits(other));
    let (short, long) = match one_digits.len() < other_digits.len() {
        // The zeros of a whole number are digits like others: 11 is not 10 before it was rounded.
        true if other.decimals.len() > one.decimals.len() => (&one_digits, &other_digits),
        true => return false,
        false => (&other_digits, &one_digits),
    };
    let is_alike = one.negative == other.negative && one.whole.len() == other.whole.len();
    if !is_alike || short.is_empty() || short.len() == long.len() {
        return false;
    }
    let number = |digits: &str| BigInt::parse_bytes(digits.as_bytes(), 10);
    let cut = number(&long[..short.len()]);
    cut.zip(number(short)).is_some_and(|(cut, short)| cut == short || cut + 1 == short)
}

/// True if the answer begins as one operand and ends as the other, or its digits are beginnings and ends of operands, one after another.
fn is_mixed(wrong: &Wrong<'_>, answer: &str) -> bool {
    let (Some(a), Some(b)) = (wrong.a, wrong.b) else { return false };
    let count = |text: &[u8]| text.iter().filter(|byte| byte.is_ascii_digit()).count();
    let text = answer.as_bytes();
    if wrong.calculation == Calculation::Count || count(text) < 2 {
        return false;
    }
    let crosses = [(a, b), (b, a)].into_iter().any(|(first, second)| {
        let ahead = first.bytes().zip(text).take_while(|(one, other)| one == *other).count();
        let behind = second.bytes().rev().zip(text.iter().rev()).take_while(|(one, other)| one == *other).count();
        count(&text[..ahead]) > 0 && count(&text[text.len() - behind..]) > 0 && ahead + behind >= text.len()
    });
    // Not of fractions, whose parts are short, nor with exponents.
    let significand = |text: &str| Number::parse(text).filter(|number| !matches!(number, Number::Fraction(..)));
    let significand = |text: &str| significand(text).map(|number| number.significand());
    let joined = || Some(is_joined(&significand(answer)?, &[significand(a)?, significand(b)?]));
    crosses || joined() == Some(true)
}

/// True if digits are two or more pieces, each the beginning or the end of an operand and of two digits at least.
fn is_joined(digits: &str, operands: &[String]) -> bool {
    let longest = operands.iter().map(String::len).max().unwrap_or(0);
    // Pieces up to each position, 0 where there are none.
    let mut pieces = vec![0_usize; digits.len() + 1];
    for start in 0..digits.len() {
        if start > 0 && pieces[start] == 0 {
            continue;
        }
        for end in start + JOINED..=digits.len().min(start + longest) {
            let piece = &digits[start..end];
            if operands.iter().any(|operand| operand.starts_with(piece) || operand.ends_with(piece)) {
                pieces[end] = pieces[end].max(pieces[start] + 1);
            }
        }
    }
    pieces[digits.len()] > 1
}

/// True if a run of one to four digits stands three times or more in a row, and this is at least half of the digits.
fn goes_round(digits: &str) -> bool {
    let digits = digits.as_bytes();
    (1..=LONGEST_RUN).any(|run| {
        // Digits in a row that equal the one a run before.
        let mut longest = 0;
        let mut now = 0;
        for index in run..digits.len() {
            now = if digits[index] == digits[index - run] { now + 1 } else { 0 };
            longest = longest.max(now);
        }
        let all = longest + run;
        longest > 0 && all >= (ROUNDS * run).max(ROUND_DIGITS) && 2 * all >= digits.len()
    })
}

/// True if one of both parts is right: numerator or denominator, the exponent, or two digits or more before or after the point.
fn has_right_part(expected: &Number, given: &Number) -> bool {
    match (expected, given) {
        (Number::Fraction(above, below), Number::Fraction(over, under)) => above == over || below == under,
        (Number::Power(one, power), Number::Power(other, of)) => power == of && one.negative == other.negative,
        (Number::Decimal(one), Number::Decimal(other)) => {
            let is = |right: &str, read: &str| right.len() > 1 && right == read;
            !one.decimals.is_empty()
                && one.negative == other.negative
                && (is(&one.whole, &other.whole) || is(&one.decimals, &other.decimals))
        }
        _ => false,
    }
}

/// One digit wrong of three or more, or at least half of the digits and two of them right, each at its position from the point.
fn by_positions(expected: &Number, given: &Number) -> Option<ErrorClass> {
    // Numerators and denominators end at their right ends, digits after the point begin at their left ends.
    let parts: Vec<(String, String, bool)> = match (expected, given) {
        (Number::Decimal(one), Number::Decimal(other)) if one.negative == other.negative => {
            vec![(one.whole.clone(), other.whole.clone(), true), (one.decimals.clone(), other.decimals.clone(), false)]
        }
        (Number::Fraction(above, below), Number::Fraction(over, under)) => {
            vec![(above.clone(), over.clone(), true), (below.clone(), under.clone(), true)]
        }
        _ => return None,
    };
    let (mut right, mut all) = (0, 0);
    for (one, other, from_right) in &parts {
        let count = |one: &mut dyn Iterator<Item = u8>, other: &mut dyn Iterator<Item = u8>| {
            one.zip(other).filter(|(one, other)| one == other).count()
        };
        right += match from_right {
            true => count(&mut one.bytes().rev(), &mut other.bytes().rev()),
            false => count(&mut one.bytes(), &mut other.bytes()),
        };
        all += one.len().max(other.len());
    }
    if all >= 3 && right + 1 == all {
        Some(ErrorClass::Digit)
    } else {
        (right >= 2 && 2 * right >= all).then_some(ErrorClass::Digits)
    }
}

/// True if the answer has the first or the last digits of an operand, three at least and half of its own; if it has the exponent, the significand,
/// the numerator or the denominator of one; if it is the first digit of a number whose digits are counted.
fn is_piece(wrong: &Wrong<'_>, given: &Number) -> bool {
    let operands = [wrong.a, wrong.b].map(|operand| operand.and_then(Number::parse));
    if wrong.calculation == Calculation::Count {
        let first = operands[0].as_ref().map(Number::significand);
        return first.is_some_and(|first| first.len() > 1 && first[..1] == given.significand());
    }
    let read = given.significand();
    operands.iter().flatten().any(|operand| match (operand, given) {
        (Number::Fraction(above, below), Number::Fraction(over, under)) => {
            (above.len() > 1 && above == over) || (below.len() > 1 && below == under)
        }
        (Number::Power(_, power), Number::Power(_, of)) if power == of => true,
        _ => {
            let whole = operand.significand();
            let ahead = whole.bytes().zip(read.bytes()).take_while(|(one, other)| one == other).count();
            let behind = whole.bytes().rev().zip(read.bytes().rev()).take_while(|(one, other)| one == other).count();
            let shared = ahead.max(behind);
            shared >= PIECE && 2 * shared >= read.len()
        }
    })
}

/// True if the answer is off by one, of numbers without decimals, or by a twentieth of the right one at most.
fn is_close(expected: &Number, given: &Number) -> bool {
    let whole = |digits: &str| BigInt::parse_bytes(digits.as_bytes(), 10).unwrap_or_default();
    let (right, read, unit) = match (expected, given) {
        (Number::Decimal(one), Number::Decimal(other)) => {
            let places = one.decimals.len().max(other.decimals.len());
            let (Some(right), Some(read)) = (one.scaled(places), other.scaled(places)) else { return false };
            (right, read, BigInt::from(u8::from(places == 0)))
        }
        (Number::Fraction(above, below), Number::Fraction(over, under)) => {
            (whole(above) * whole(under), whole(over) * whole(below), BigInt::ZERO)
        }
        _ => return false,
    };
    let off = (&right - read).abs();
    off <= unit || off * LITTLE <= right.abs()
}

#[cfg(test)]
mod tests {
    use super::super::classify;
    use super::*;
    use ErrorClass as E;

    fn class(calculation: Calculation, (a, b): (&str, &str), expected: &str, answer: &str) -> ErrorClass {
        let operand = |text| Some(text).filter(|text: &&str| !text.is_empty());
        let shown = Some("123");
        classify(&Wrong { calculation, a: operand(a), b: operand(b), expected, answer: operand(answer), shown }).class
    }

    /// Checks the classes of answers to a sum.
    fn assert_classes_of_a_sum(cases: &[(&str, ErrorClass)]) {
        for &(answer, expected) in cases {
            assert_eq!(class(Calculation::Add, ("4795", "618"), "5413", answer), expected, "{answer}");
        }
    }

    #[test]
    fn sums_are_told_by_what_they_are_made_of() {
        assert_classes_of_a_sum(&[
            ("0", E::Zero),
            ("000", E::Zero),
            ("123", E::Example),
            ("5400", E::Rounded),
            ("5420", E::Rounded),
            ("5000", E::Rounded),
            ("121212", E::Loop),
            ("7777", E::Loop),
            ("4718", E::Mixed),
            ("479518", E::Mixed),
            ("618618", E::Mixed),
            ("7.2e3", E::Kind),
            ("7/13", E::Kind),
            ("5513", E::Digit),
            ("95413", E::Digit),
            ("5488", E::Digits),
            ("47951", E::Piece),
            ("5600", E::Close),
            ("9", E::Short),
            ("98765432", E::Long),
            ("2987", E::Other),
        ]);
    }

    #[test]
    fn exact_mistakes_go_before_near_answers() {
        // Each is also near: three digits of four are right, or the answer begins as an operand.
        assert_classes_of_a_sum(&[
            ("5403", E::Carry),
            ("5431", E::Order),
            ("541", E::Dropped),
            ("54413", E::Repeated),
            ("4795", E::Operand),
            ("4177", E::Operation),
            ("10975", E::Neighbour),
        ]);
        assert_eq!(class(Calculation::Subtract, ("503", "47"), "456", "466"), E::Borrow);
        assert_eq!(class(Calculation::Subtract, ("503", "47"), "456", "457"), E::Digit);
        // A rounded number that ends with a run of zeros, and zero before everything that is near.
        assert_eq!(class(Calculation::Add, ("61234", "20111"), "81345", "80000"), E::Rounded);
        assert_eq!(class(Calculation::Other, ("7", ""), "1", "0"), E::Zero);
    }

    #[test]
    fn parts_of_fractions_powers_and_decimals() {
        let fraction = |answer| class(Calculation::Add, ("3/8", "2/5"), "31/40", answer);
        assert_eq!(
            [fraction("31/47"), fraction("9/40"), fraction("3/5"), fraction("0/40"), fraction("4")],
            [E::Part, E::Part, E::Mixed, E::Zero, E::Kind]
        );
        let longer = |answer| class(Calculation::Add, ("33/58", "2/7"), "347/406", answer);
        assert_eq!([longer("91/58"), longer("348/407"), longer("357/416")], [E::Piece, E::Digits, E::Digits]);
        let power = |answer| class(Calculation::Add, ("3.4e33", "5.1e32"), "3.91e33", answer);
        assert_eq!(
            [power("3.2e33"), power("5.1e33"), power("4e33"), power("9.2e32"), power("778")],
            [E::Part, E::Mixed, E::Rounded, E::Piece, E::Kind]
        );
        let significant = |answer| class(Calculation::Other, ("638", "2"), "6.4e2", answer);
        assert_eq!([significant("6.38e2"), significant("6.58e2")], [E::Rounded, E::Part]);
        let decimal = |answer| class(Calculation::Multiply, ("1.5", "9.5"), "14.25", answer);
        assert_eq!(
            [decimal("14.6"), decimal("23.25"), decimal("14.3"), decimal("14.9e1"), decimal("13.9")],
            [E::Part, E::Part, E::Rounded, E::Kind, E::Close]
        );
    }

    #[test]
    fn counts_are_off_by_one_or_the_first_digit() {
        let length = |answer| class(Calculation::Count, ("4795.381204", ""), "10", answer);
        assert_eq!(
            [length("11"), length("9"), length("4"), length("8"), length("479")],
            [E::Close, E::Close, E::Piece, E::Other, E::Other],
            "11 is not rounded to 10"
        );
    }

    #[test]
    fn digits_go_round_from_three_times_on() {
        for digits in ["4444", "121212", "1099999999", "123123123", "0427427427427"] {
            assert!(goes_round(digits), "{digits}");
        }
        for digits in ["", "444", "1212", "123123", "5999", "9876541111", "2718281828"] {
            assert!(!goes_round(digits), "{digits}");
        }
    }

    #[test]
    fn long_answers_are_read_in_time() {
        let answer = "4795618".repeat(280);
        assert_eq!(class(Calculation::Add, ("4795", "618"), "5413", &answer), E::Mixed);
    }
}
