//! Questions of the profile's own: word problems with long numbers, and numbers in sentences.
use crate::suite::gsm_symbolic::template::Template;
use crate::suite::gsm_symbolic::{grown_templates, own_templates};
use crate::suite::nupa::DigitSource;
use earnest_answer::number::words::exact_words;

use super::skill::IN_SENTENCE;

/// A question with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub question: String,
    pub answer: String,
    /// Questions with the same cluster are alike.
    pub cluster: String,
}

/// Whole number of so many digits, the first not 0.
fn number(random: &mut DigitSource, digits: usize) -> String {
    let mut text = String::with_capacity(digits);
    random.nonzero_digit(&mut text);
    random.digits(digits - 1, &mut text);
    text
}

/// A word problem whose numbers have so many digits, from one of gsm-mini's templates: the next one that has such a question.
pub(super) fn word_problem(seed: u64, digits: usize, index: usize) -> Option<Asked> {
    let templates: Vec<Template> = own_templates().ok()?;
    let grown = grown_templates();
    let key = format!("profile word problem {digits}/{index} seed {seed}");
    let (template, instance) = (index..index + grown.len()).find_map(|turn| {
        let (template, variables) = grown[turn % grown.len()];
        Some((template, templates.get(template)?.with_digits(variables, digits, &key)?))
    })?;
    let answer = instance.answer.rsplit_once("####")?.1.trim().to_owned();
    Some(Asked { question: instance.question, answer, cluster: format!("word_problems/{template}") })
}

/// A number in English words, to be written in digits.
pub(super) fn from_words(seed: u64, digits: usize, index: usize) -> Option<Asked> {
    let mut random = DigitSource::named(&format!("profile from words {digits}/{index} seed {seed}"));
    let answer = number(&mut random, digits);
    let words = exact_words(&answer)?;
    let question = format!("Write this number in digits, without separators: {words} =");
    Some(Asked { question, answer, cluster: format!("from_words/{digits}/{index}") })
}

/// Things that a sentence counts, and the places that have them.
const THINGS: [&str; 8] = ["screws", "nails", "hooks", "bolts", "hinges", "washers", "rivets", "brackets"];
const PLACES: [&str; 4] = ["warehouse", "workshop", "shop", "depot"];

/// A sentence with three numbers, one of which is asked for.
pub(super) fn in_text(seed: u64, digits: usize, index: usize) -> Option<Asked> {
    let mut random = DigitSource::named(&format!("profile in text {digits}/{index} seed {seed}"));
    let mut things = THINGS.to_vec();
    let mut numbers: Vec<String> = Vec::new();
    while numbers.len() < IN_SENTENCE {
        let next = number(&mut random, digits);
        if !numbers.contains(&next) {
            numbers.push(next);
        }
    }
    let things: Vec<&str> =
        (0..IN_SENTENCE).map(|_| things.remove(random.below(things.len() as u64) as usize)).collect();
    let place = PLACES[random.below(PLACES.len() as u64) as usize];
    let asked = random.below(IN_SENTENCE as u64) as usize;
    let question = format!(
        "A {place} has {} {}, {} {} and {} {}. The number of {} in the {place} =",
        numbers[0], things[0], numbers[1], things[1], numbers[2], things[2], things[asked]
    );
    Some(Asked { question, answer: numbers[asked].clone(), cluster: format!("in_text/{digits}/{index}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_length_that_is_asked_for() {
        for digits in [1, 2, 5, 18] {
            let asked = from_words(1, digits, 3).unwrap();
            assert_eq!(asked.answer.len(), digits, "{asked:?}");
            let asked = in_text(1, digits, 3).unwrap();
            assert!(asked.answer.len() == digits && asked.question.contains(&asked.answer), "{asked:?}");
        }
        assert_eq!(in_text(1, 5, 0), in_text(1, 5, 0));
        assert_ne!(in_text(1, 5, 0), in_text(2, 5, 0));
        assert!(from_words(1, 3, 0).unwrap().question.contains("hundred"));
    }

    #[test]
    fn word_problems_grow() {
        for index in 0..grown_templates().len() {
            for digits in [2, 6, 20] {
                let asked = word_problem(7, digits, index).unwrap_or_else(|| panic!("{index} with {digits} digits"));
                let longest = |text: &str| text.split(|c: char| !c.is_ascii_digit()).map(str::len).max().unwrap_or(0);
                assert_eq!(longest(&asked.question), digits.max(2), "{asked:?}");
                assert!(asked.answer.bytes().all(|byte| byte.is_ascii_digit()), "{asked:?}");
            }
        }
        // Some templates have no question with one digit.
        assert!((0..grown_templates().len()).all(|index| word_problem(7, 1, index).is_some()));
        assert_ne!(word_problem(7, 6, 0), word_problem(7, 6, 8), "another instance of the template");
    }
}
