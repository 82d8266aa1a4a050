//! The perturbations as intended: numbers are found as a person finds them, an edit
//! touches the number that is meant and no other, answers are recomputed exactly, and a question that would become nonsense
//! is left out with the reason.
use std::sync::LazyLock;

use num_traits::{One, Signed, Zero};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use regex::Regex;
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::annotation::{AnnotationError, Annotations, values};
use super::calendar::{could_be_a_year, names_a_time_or_place};
use super::expression::{Expression, Operand, exact, plain};
use super::extra::{DonorPool, inserted, insertion_offset};
use super::kind::Kind;
use super::mention::{Attached, Number, is_prose, mentions, reference_mentions};
use super::perturbation::{Edit, Field, Perturbed, apply};
use super::problem::{Problem, Remainder, value_of};
use super::sentence::sentence_starts;
use super::written::stated;
use earnest_answer::number::Fraction;
use earnest_answer::number::words::{exact_words, words_in};

/// Reason for a question being left out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Ineligible {
    #[error("it writes no number in digits that could be edited")]
    NoDigits,
    #[error("it writes no number in words")]
    NoWords,
    #[error("it has no formula, so the answer to other numbers is unknown")]
    NoFormula,
    #[error("its formula cannot be read")]
    UnreadableFormula,
    #[error("operand {0} is not written in digits in the text")]
    Invisible(String),
    #[error("operand {0} stands only where no quantity does: a year, a date, a label, a range or the like")]
    ByName(String),
    #[error("operand {0} stands several times, so that it is unclear which one is meant")]
    Ambiguous(String),
    #[error("operand {0} is not a whole number")]
    NotWhole(String),
    #[error("it is a division with a remainder")]
    Remainder,
    #[error("it divides, and other numbers would not go in evenly")]
    Division,
    #[error("no draw gave positive values that are nowhere else in the text")]
    NoDraw,
    #[error(
        "no sentence of another question counts something, 1 or more, and shares neither a name nor a number with it"
    )]
    NoDonor,
    #[error("nobody has annotated it")]
    NotAnnotated,
    #[error("its data set has no {0}")]
    NotOfDataset(Kind),
    #[error(transparent)]
    Annotation(#[from] AnnotationError),
}

/// Context of a perturbation beside the question.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub seed: u64,
    /// Number of an independent draw, from 0.
    pub draw: u32,
    pub donors: &'a DonorPool,
    pub annotations: &'a Annotations,
    /// An amount before what it describes has its unit in the singular: `a fifty dollar note`. The suite's questions have the plural,
    /// as those of its earlier runs.
    pub describes: bool,
}

/// Draws until giving up.
const TRIES: usize = 200;

/// The perturbed question.
///
/// # Errors
/// Reason for its being left out.
pub fn perturb(kind: Kind, problem: &Problem, context: Context<'_>) -> Result<Perturbed, Ineligible> {
    let mut random = Stream::new(kind, &problem.id, context);
    match kind {
        Kind::Language => to_words(problem, context.describes),
        Kind::LanguageToDigits => to_digits(problem),
        Kind::Type if problem.formula.is_none() => type_everywhere(problem),
        Kind::Type => operands(kind, problem, &mut random),
        Kind::Noise | Kind::Distribution => operands(kind, problem, &mut random),
        Kind::Verbosity => verbosity(problem, &mut random),
        Kind::Extra => extra(problem, context.donors, &mut random),
        Kind::Logic | Kind::Order => {
            let annotation = context.annotations.get(kind, &problem.id).ok_or(Ineligible::NotAnnotated)?;
            Ok(annotation.apply(problem)?)
        }
    }
}

/// Random numbers of one question and perturbation: a stream of their own, so that no other question moves them.
struct Stream {
    random: ChaCha8Rng,
    spare: Option<f64>,
}

impl Stream {
    fn new(kind: Kind, id: &str, context: Context<'_>) -> Self {
        let address = format!("dnc draws 1\nseed {}\nkind {kind}\ndraw {}\nid {id}\n", context.seed, context.draw);
        Stream { random: ChaCha8Rng::from_seed(Sha256::digest(address).into()), spare: None }
    }

    fn below(&mut self, bound: u64) -> u64 {
        // The bias of a product is below 2^-60 for the bounds here.
        ((u128::from(self.random.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    fn unit(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A normal number cut towards zero (Marsaglia's polar method; libm, so that every machine draws the same).
    fn normal(&mut self, mean: f64, deviation: f64) -> i64 {
        let standard = self.spare.take().unwrap_or_else(|| {
            loop {
                let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
                let square = x * x + y * y;
                if square < 1.0 && square != 0.0 {
                    let factor = libm::sqrt(-2.0 * libm::log(square) / square);
                    self.spare = Some(factor * x);
                    return factor * y;
                }
            }
        });
        (mean + deviation * standard) as i64
    }
}

fn perturbed(kind: Kind, problem: &Problem, edits: Vec<Edit>, reason: impl Into<String>) -> Perturbed {
    Perturbed { kind, problem: apply(problem, &edits), edits, reason: reason.into(), provenance: None }
}

/// The numbers of both fields that may be edited. Without a formula nothing says which numbers matter, so whatever could be a
/// year is left alone, and so is what the table repeats: the question must still match it. Dates, years behind a preposition or a
/// month, hours of a clock and numbers of notes and products are names in any set, whatever the formula does with them.
fn numbers(problem: &Problem) -> Vec<(Field, Number)> {
    let table: Vec<Fraction> = problem.table.as_deref().map(values).unwrap_or_default();
    let of = |field: Field, text: &str| -> Vec<(Field, Number)> {
        let usable = |number: &Number| {
            !(problem.formula.is_none() && could_be_a_year(number))
                && is_prose(text, number)
                && !names_a_time_or_place(text, number)
                && value_of(number).is_some_and(|value| !table.contains(&value))
        };
        mentions(text).into_iter().filter(usable).map(|number| (field, number)).collect()
    };
    let mut found = of(Field::Body, &problem.body);
    found.extend(of(Field::Question, &problem.question));
    found
}

fn text_of(problem: &Problem, field: Field) -> &str {
    match field {
        Field::Body => &problem.body,
        Field::Question => &problem.question,
    }
}

/// A number joined to what follows: `5-year-old`, `$2 million`.
fn is_joined(text: &str, number: &Number) -> bool {
    let after = &text[number.end..];
    let scaled =
        |word: &str| after.trim_start().strip_prefix(word).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric));
    after.starts_with('-') || ["hundred", "thousand", "million", "billion", "trillion"].into_iter().any(scaled)
}

/// Words behind which an amount before a noun describes it: `a $50 note`, `two $20 bills`.
const COUNTING: [&str; 18] = [
    "a", "an", "another", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "each",
    "every", "several", "many", "some",
];

/// Things that are called by their amount behind any word: `the $50 note`.
const CALLED: [&str; 14] = [
    "note",
    "notes",
    "bill",
    "bills",
    "coin",
    "coins",
    "banknote",
    "banknotes",
    "ticket",
    "tickets",
    "voucher",
    "coupon",
    "gift",
    "prize",
];

/// Words that an amount does not describe.
const FOLLOWING: [&str; 35] = [
    "and", "or", "for", "to", "in", "on", "per", "each", "every", "from", "of", "a", "an", "the", "more", "less", "at",
    "with", "if", "when", "but", "is", "was", "are", "were", "that", "which", "than", "as", "by", "after", "before",
    "off", "he", "she",
];

/// True for an amount between these bytes that describes the noun behind it.
fn describes_noun(text: &str, start: usize, end: usize) -> bool {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphabetic()).collect::<String>().to_lowercase();
    let Some(next) = text[end..].strip_prefix(' ').map(word).filter(|word| !word.is_empty()) else { return false };
    let before = text[..start].strip_suffix(' ').unwrap_or_default();
    let before = before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    let counted = COUNTING.contains(&before.as_str()) || before.parse::<u64>().is_ok();
    CALLED.contains(&next.as_str()) || counted && !FOLLOWING.contains(&next.as_str())
}

fn to_words(problem: &Problem, describes: bool) -> Result<Perturbed, Ineligible> {
    let mut edits = Vec::new();
    let starts = [&problem.body, &problem.question].map(|text| sentence_starts(text));
    for (field, number) in numbers(problem) {
        let text = text_of(problem, field);
        let Some(words) = exact_words(&number.text) else { continue };
        let one = number.plain().trim_start_matches('-').parse() == Ok(1.0);
        let described = || match number.attached {
            Attached::Currency(sign) => describes_noun(text, number.start - sign.len_utf8(), number.end),
            _ => false,
        };
        let singular_unit = one || describes && described();
        let unit = |singular: &str, plural: &str| format!("{words} {}", if singular_unit { singular } else { plural });
        let (start, end, words) = match number.attached {
            Attached::Percent => (number.start, number.end + 1, format!("{words} percent")),
            Attached::Currency(_) if is_joined(text, &number) => continue,
            Attached::Currency(sign) => {
                // `$5 dollars` says its unit already.
                let said = ["dollar", "euro", "pound", "yen"]
                    .into_iter()
                    .any(|unit| text[number.end..].trim_start().to_lowercase().starts_with(unit));
                let words = match sign {
                    _ if said => words,
                    '$' => unit("dollar", "dollars"),
                    '€' => unit("euro", "euros"),
                    '£' => unit("pound", "pounds"),
                    _ => format!("{words} yen"),
                };
                (number.start - sign.len_utf8(), number.end, words)
            }
            Attached::Nothing => (number.start, number.end, words),
        };
        let opens = match text[..start].trim_start().is_empty() {
            // A body that ends in a comma goes on in the question.
            true => field == Field::Body || problem.body.trim_end().ends_with(['.', '!', '?']),
            false => starts[usize::from(field == Field::Question)].binary_search(&start).is_ok(),
        };
        edits.push(Edit {
            field,
            start,
            from: text[start..end].to_owned(),
            to: if opens { capitalised(&words) } else { words },
        });
    }
    if edits.is_empty() {
        return Err(Ineligible::NoDigits);
    }
    Ok(perturbed(Kind::Language, problem, edits, "it writes numbers in digits"))
}

fn capitalised(words: &str) -> String {
    let mut characters = words.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

fn to_digits(problem: &Problem) -> Result<Perturbed, Ineligible> {
    let mut edits = Vec::new();
    for (field, text) in [(Field::Body, &problem.body), (Field::Question, &problem.question)] {
        for word in words_in(text) {
            // `2 hundred` is no number in words, but one in digits with a scale.
            if text[..word.start].trim_end().ends_with(|c: char| c.is_ascii_digit()) {
                continue;
            }
            edits.push(Edit { field, start: word.start, from: text[word.start..word.end].to_owned(), to: word.digits });
        }
    }
    if edits.is_empty() {
        return Err(Ineligible::NoWords);
    }
    Ok(perturbed(Kind::LanguageToDigits, problem, edits, "it writes numbers in words"))
}

/// Type where no formula says which numbers are operands: every whole one.
fn type_everywhere(problem: &Problem) -> Result<Perturbed, Ineligible> {
    let edits: Vec<Edit> = numbers(problem)
        .into_iter()
        .filter(|(field, number)| number.is_integer() && !is_joined(text_of(problem, *field), number))
        .map(|(field, number)| Edit { field, start: number.start, to: format!("{}.0", number.text), from: number.text })
        .collect();
    if edits.is_empty() {
        return Err(Ineligible::NoDigits);
    }
    Ok(perturbed(Kind::Type, problem, edits, "it writes whole numbers in digits"))
}

/// Number of times that a value stands in a text in words.
fn in_words(text: &str, value: &Fraction) -> usize {
    let said = words_in(text).iter().filter(|word| exact(&word.digits).as_ref() == Some(value)).count();
    let one = plain(value) == "1";
    let lone = |word: &str| word.eq_ignore_ascii_case("one");
    said + if one { text.split(|c: char| !c.is_alphanumeric()).filter(|word| lone(word)).count() } else { 0 }
}

/// True if a value stands anywhere in digits, as a quantity or not.
fn stands(problem: &Problem, value: &Fraction) -> bool {
    let stands = |text: &str| mentions(text).iter().any(|number| value_of(number).as_ref() == Some(value));
    stands(&problem.body) || stands(&problem.question)
}

/// The operands with the one place where each of them stands.
fn visible_operands<'a>(
    problem: &Problem,
    expression: &'a Expression,
) -> Result<Vec<(&'a Operand, Field, Number)>, Ineligible> {
    let numbers = numbers(problem);
    let operands = expression.operands();
    let mut found = Vec::new();
    for operand in &operands {
        let name = || operand.text.clone();
        if operands.iter().filter(|other| other.value == operand.value).count() > 1 {
            return Err(Ineligible::Ambiguous(name()));
        }
        let places: Vec<&(Field, Number)> =
            numbers.iter().filter(|(_, number)| value_of(number).as_ref() == Some(&operand.value)).collect();
        let words = in_words(&problem.body, &operand.value) + in_words(&problem.question, &operand.value);
        match places.as_slice() {
            [] if stands(problem, &operand.value) => return Err(Ineligible::ByName(name())),
            [] => return Err(Ineligible::Invisible(name())),
            [(field, number)] if words == 0 => {
                if !number.is_integer() || operand.text.contains('.') {
                    return Err(Ineligible::NotWhole(name()));
                }
                if is_joined(text_of(problem, *field), number) {
                    return Err(Ineligible::Invisible(name()));
                }
                found.push((*operand, *field, number.clone()));
            }
            _ => return Err(Ineligible::Ambiguous(name())),
        }
    }
    if found.is_empty() { Err(Ineligible::NoDigits) } else { Ok(found) }
}

/// Type, Noise and Distribution on operands.
fn operands(kind: Kind, problem: &Problem, random: &mut Stream) -> Result<Perturbed, Ineligible> {
    let left = problem.left_side().ok_or(Ineligible::NoFormula)?;
    let expression = Expression::parse(left).map_err(|_| Ineligible::UnreadableFormula)?;
    let remainder = problem.remainder != Remainder::Exact
        || problem.formula.as_deref().is_some_and(|formula| formula.split('=').nth(1).is_some_and(|r| r.contains('r')));
    if kind.changes_values() && remainder {
        return Err(Ineligible::Remainder);
    }
    if kind == Kind::Distribution && expression.divides() {
        return Err(Ineligible::Division);
    }
    let visible = visible_operands(problem, &expression)?;
    let others: Vec<Fraction> = values(&format!("{}\n{}", problem.body, problem.question));
    for _ in 0..TRIES {
        // What is written in the text, in the formula, and its value, an operand each.
        let mut changed: Vec<(String, String, Fraction)> = Vec::new();
        for (operand, _, number) in &visible {
            let (mention, formula) = match kind {
                Kind::Type => (format!("{}.0", number.text), format!("{}.0", operand.text)),
                Kind::Noise => {
                    let digit = 1 + random.below(9);
                    (format!("{}.{digit}", number.text), format!("{}.{digit}", operand.text))
                }
                _ => {
                    let offset = Fraction::from(num_bigint::BigInt::from(random.normal(1000.0, 300.0)));
                    let moved = plain(&(&operand.value + &offset));
                    (moved.clone(), moved)
                }
            };
            let value = exact(&formula).ok_or(Ineligible::UnreadableFormula)?;
            changed.push((mention, formula, value));
        }
        let new: Vec<&Fraction> = changed.iter().map(|(.., value)| value).collect();
        if kind.changes_values() {
            let mut number = |operand: &Operand| {
                changed.get(operand.index).map_or_else(|| operand.value.clone(), |(.., v)| v.clone())
            };
            let fresh = new.iter().enumerate().all(|(at, value)| !others.contains(value) && !new[..at].contains(value));
            if !fresh || !expression.is_positive_with(&mut number) {
                continue;
            }
        }
        let edits = visible
            .iter()
            .zip(&changed)
            .map(|((_, field, number), (to, ..))| Edit {
                field: *field,
                start: number.start,
                from: number.text.clone(),
                to: to.clone(),
            })
            .collect();
        let mut found = perturbed(kind, problem, edits, "its operands are whole and each stands once in the text");
        let left = rewrite(left, &changed);
        let value = Expression::parse(&left)
            .ok()
            .and_then(|expression| expression.value().ok())
            .ok_or(Ineligible::UnreadableFormula)?;
        if kind.changes_values() {
            found.problem.answer = with_value(&problem.answer, &value);
        }
        let right = problem.formula.as_deref().and_then(|formula| formula.split_once('='));
        found.problem.formula = Some(match right {
            None => left,
            Some(_) if kind.changes_values() => format!("{left}={}", plain(&value)),
            Some((_, right)) => format!("{left}={right}"),
        });
        return Ok(found);
    }
    Err(Ineligible::NoDraw)
}

/// The left side with other numbers in the places of its numbers; brackets and operators as they were written.
fn rewrite(left: &str, changed: &[(String, String, Fraction)]) -> String {
    let mut text = String::new();
    let mut rest = left;
    let is_number = |c: char| c.is_ascii_digit() || c == '.' || c == ',';
    for (_, formula, _) in changed {
        let Some(start) = rest.find(is_number) else { break };
        let end = rest[start..].find(|c| !is_number(c)).map_or(rest.len(), |length| start + length);
        text.push_str(&rest[..start]);
        text.push_str(formula);
        rest = &rest[end..];
    }
    text + rest
}

/// The answer text with another number at its beginning; the unit stays.
fn with_value(answer: &str, value: &Fraction) -> String {
    let (start, end) = stated(answer).map_or((0, answer.len()), |found| (found.start, found.end));
    format!("{}{}{}", &answer[..start], plain(value), &answer[end..])
}

fn verbosity(problem: &Problem, random: &mut Stream) -> Result<Perturbed, Ineligible> {
    let mut taken = values(&format!("{}\n{}", problem.body, problem.question));
    taken.extend(problem.gold());
    taken.extend(problem.stated_answer());
    if let Some(expression) = problem.expression() {
        taken.extend(expression.operands().iter().map(|operand| operand.value.clone()));
    }
    // In the text `one` may be a number.
    taken.push(Fraction::from(num_bigint::BigInt::one()));
    taken.extend(problem.table.as_deref().map(values).unwrap_or_default());
    let mut edits = Vec::new();
    let places = numbers(problem);
    // From the right, as the reference draws.
    for (field, number) in places.iter().rev().filter(|(field, _)| *field == Field::Body) {
        if is_joined(&problem.body, number) {
            continue;
        }
        let value = (0..TRIES)
            .map(|_| Fraction::from(num_bigint::BigInt::from(random.normal(100.0, 30.0))))
            .find(|value| value.numerator().is_positive() && !value.numerator().is_zero() && !taken.contains(value))
            .ok_or(Ineligible::NoDraw)?;
        let sign = if number.attached == Attached::Percent { "%" } else { "" };
        let to = format!("{}{sign} (not {}{sign})", number.text, plain(&value));
        edits.push(Edit { field: *field, start: number.start, from: format!("{}{sign}", number.text), to });
        taken.push(value);
    }
    if edits.is_empty() {
        return Err(Ineligible::NoDigits);
    }
    Ok(perturbed(Kind::Verbosity, problem, edits, "its body writes numbers in digits"))
}

/// Digits joined to digits: fractions, scores, dates, ranges.
static JOINED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[0-9]\s?[/:\x{2013}\x{2014}-]\s?[0-9]").expect("the pattern is a constant and the tests use it")
});

/// True if a sentence counts something that could be taken for an operand: a quantity in digits that is no year, date or label, every
/// number of it at least 1, and no fraction or score beside it.
fn is_distractor(sentence: &str) -> bool {
    let counts = |number: &Number| {
        is_prose(sentence, number) && !could_be_a_year(number) && !names_a_time_or_place(sentence, number)
    };
    let one = Fraction::from(num_bigint::BigInt::one());
    mentions(sentence).iter().any(counts)
        && values(sentence).iter().all(|value| *value >= one)
        && !JOINED.is_match(sentence)
}

fn extra(problem: &Problem, donors: &DonorPool, random: &mut Stream) -> Result<Perturbed, Ineligible> {
    let mut taken = values(&format!("{}\n{}", problem.body, problem.question));
    taken.extend(problem.gold());
    if let Some(expression) = problem.expression() {
        taken.extend(expression.operands().iter().map(|operand| operand.value.clone()));
    }
    taken.extend(problem.table.as_deref().map(values).unwrap_or_default());
    let strange = |index: &usize| {
        let sentence = &donors.donors()[*index].sentence;
        // Parts of what is no quantity, too: `21-14`.
        let mut numbers = values(sentence);
        numbers.extend(reference_mentions(sentence).iter().filter_map(|part| exact(part.text.trim_end_matches('%'))));
        is_distractor(sentence) && !numbers.iter().any(|value| taken.contains(value))
    };
    let eligible: Vec<usize> = donors.eligible(problem).into_iter().filter(strange).collect();
    if eligible.is_empty() {
        return Err(Ineligible::NoDonor);
    }
    let chosen = &donors.donors()[eligible[random.below(eligible.len() as u64) as usize]];
    let to = inserted(&problem.body, &chosen.sentence);
    let edit = Edit { field: Field::Body, start: insertion_offset(&problem.body), from: String::new(), to };
    let reason = format!("the sentence of {} shares neither a name nor a number with it", chosen.id);
    Ok(perturbed(Kind::Extra, problem, vec![edit], reason))
}

#[cfg(test)]
mod tests {
    use super::super::extra::Donor;
    use super::*;

    fn found(kind: Kind, problem: &Problem, donors: &DonorPool) -> Result<Perturbed, Ineligible> {
        perturb(
            kind,
            problem,
            Context { seed: 1, draw: 0, donors, annotations: &Annotations::default(), describes: false },
        )
    }

    fn sum(body: &str, formula: &str) -> Problem {
        Problem { formula: Some(formula.into()), question: "How many?".into(), ..Problem::plain(body) }
    }

    #[test]
    fn distractors_count_something() {
        for sentence in [
            "Zed had 30 shells.",
            "In 1990 Zed sold 7 of 8 hats.",
            "It fell by 12% and 3.5 kg.",
            "He is in the 2nd of 9 rows.",
        ] {
            assert!(is_distractor(sentence), "{sentence}");
        }
        for sentence in [
            "It was -5 degrees and 30 people came.",
            "He scored 0 and 30.",
            "A quarter equals $0.25.",
            "He scored zero of 30.",
            "They met on May 30.",
            "Zed was born in 1990.",
            "They won 21-14 after 5 games.",
            "He ate 5/6 of 30 pies.",
            "The Boeing 747 flew.",
            "They met at 12:30.",
            "Nobody came.",
        ] {
            assert!(!is_distractor(sentence), "{sentence}");
        }
    }

    #[test]
    fn distractors_are_strange_to_the_table() {
        let donor = |id: &str, sentence: &str| Donor { id: id.into(), sentence: sentence.into() };
        let donors =
            DonorPool::of(vec![donor("a", "Zed had 30 shells."), donor("b", "Zed had -5 shells and 31 caps.")]);
        let mut asked = Problem { answer: "3".into(), ..Problem::plain("Costs grew by 12.") };
        assert!(found(Kind::Extra, &asked, &donors).unwrap().problem.body.ends_with("12. Zed had 30 shells."));
        asked.table = Some("| Costs | 30 |".into());
        assert_eq!(found(Kind::Extra, &asked, &donors), Err(Ineligible::NoDonor));
    }

    #[test]
    fn names_that_the_formula_uses_are_not_edited() {
        let donors = DonorPool::default();
        for (body, formula) in [
            ("She was born in 1990 and wed 25 years later.", "1990+25=2015"),
            ("In March 1990 there were 25 cats.", "1990+25=2015"),
            ("They met on March 6 and 7 and ate 25 pies.", "7+25=32"),
            ("The Boeing 747 has 25 rows.", "747+25=772"),
            ("Children aged 5 – 7 ate 25 pies.", "5+25=30"),
        ] {
            for kind in [Kind::Type, Kind::Noise, Kind::Distribution] {
                let found = found(kind, &sum(body, formula), &donors);
                assert!(matches!(found, Err(Ineligible::ByName(_))), "{kind}: {body}: {found:?}");
            }
        }
        assert!(found(Kind::Type, &sum("She sold 1990 pens and 25 caps.", "1990+25=2015"), &donors).is_ok());
    }

    #[test]
    fn amounts_before_a_noun_have_a_singular_unit() {
        let said = |body: &str, describes: bool| {
            let annotations = Annotations::default();
            let donors = DonorPool::default();
            let context = Context { seed: 1, draw: 0, donors: &donors, annotations: &annotations, describes };
            perturb(Kind::Language, &Problem::plain(body), context).unwrap().problem.body
        };
        for (body, words) in [
            ("He pays with a $50 note.", "He pays with a fifty dollar note."),
            ("She has two \u{20ac}20 bills.", "She has two twenty euro bills."),
            ("He lost his $5 bill.", "He lost his five dollar bill."),
            ("It is an $80 camera.", "It is an eighty dollar camera."),
            ("He has $50 and a cap.", "He has fifty dollars and a cap."),
            ("He gave the $50 to Ann.", "He gave the fifty dollars to Ann."),
            ("Caps cost $5 each.", "Caps cost five dollars each."),
        ] {
            assert_eq!(said(body, true), words);
        }
        assert_eq!(said("He pays with a $50 note.", false), "He pays with a fifty dollars note.");
    }

    #[test]
    fn words_begin_sentences_with_a_capital_and_nothing_else() {
        let donors = DonorPool::default();
        for (body, words) in [
            ("Met at 3 p.m. 7 left.", "Met at 3 p.m. seven left."),
            ("About 3.5 kg vs. 30 dogs sat. 4 ran.", "About three point five kg vs. thirty dogs sat. Four ran."),
            ("Approx. 5 came. $3 is all! 2", "Approx. five came. Three dollars is all! Two"),
        ] {
            assert_eq!(found(Kind::Language, &Problem::plain(body), &donors).unwrap().problem.body, words);
        }
        let asked = |body: &str| Problem { question: "5 of what?".into(), ..Problem::plain(body) };
        let question = |body: &str| found(Kind::Language, &asked(body), &donors).unwrap().problem.question;
        assert_eq!((question("He ran,"), question("He ran.")), ("five of what?".into(), "Five of what?".into()));
    }
}
