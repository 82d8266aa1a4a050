//! Completions of another program, read by the scorer [`FINAL`] without a task file.
use serde_json::Value;

use super::choice;
use super::choices::letter;
use super::scorer::{self, Method, Scorer};
use crate::suite::registry::{Host, NoHost};
use crate::suite::{Answered, FINAL, Item, Score};

/// Scores a completion by the scorer [`FINAL`] alone: the choice that it makes where the item has choices, else the number that it
/// states, or its text where no number is expected. Without scores where nothing can be read: log-likelihoods, and items without an
/// expected answer, or with one that is none of their choices.
pub fn read_again(item: &Item, answered: &Answered<'_>) -> Score {
    let others = item.covariates.get(TARGETS).and_then(Value::as_array);
    let others = others.into_iter().flatten().filter_map(Value::as_str).filter(|target| *target != item.gold);
    let first = read_one(item, answered);
    let right = |score: &Score| score.scorers.get(FINAL) == Some(true);
    if right(&first) {
        return first;
    }
    let of = |target: &str| read_one(&Item { gold: target.to_owned(), ..item.clone() }, answered);
    others.map(of).find(right).unwrap_or(first)
}

/// Covariate with all expected answers, where there are several; one of them suffices.
pub const TARGETS: &str = "targets";

fn read_one(item: &Item, answered: &Answered<'_>) -> Score {
    if item.gold.trim().is_empty() || !item.continuations.is_empty() {
        return Score::default();
    }
    let choices = choice::texts(item);
    if choices.is_empty() {
        return by(Method::Final { texts: true, plain: false }, item, answered);
    }
    match right_letter(&item.gold, &choices) {
        Some(gold) => by(Method::Choice, &Item { gold, ..item.clone() }, answered),
        None => Score::default(),
    }
}

fn by(method: Method, item: &Item, answered: &Answered<'_>) -> Score {
    let scorer = Scorer { name: FINAL.to_owned(), method };
    scorer::score(&[scorer], FINAL, item, answered, NoHost.programs(None).as_ref())
}

/// Letter of the right choice: the one with this text, letter, or number from 0.
fn right_letter(gold: &str, choices: &[String]) -> Option<String> {
    let gold = gold.trim();
    let by_text = choices.iter().position(|choice| choice.trim() == gold);
    let by_letter = || (0..choices.len()).find(|&index| letter(index) == gold.trim_matches(['(', ')', '.']));
    let by_number = || gold.parse::<usize>().ok().filter(|&index| index < choices.len());
    by_text.or_else(by_letter).or_else(by_number).map(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(item: &Item, completion: &str) -> Option<bool> {
        read_again(item, &Answered { completion, truncated: false }).scorers.get(FINAL)
    }

    #[test]
    fn numbers_texts_and_choices_are_read() {
        let number = Item::plain("1", "t", "How much is 9 + 9?", "18");
        assert_eq!(read(&number, "9 + 9 = 18. The answer is 18."), Some(true));
        assert_eq!(read(&number, "The answer is 17."), Some(false));
        let text = Item::plain("2", "t", "Capital of France?", "Paris");
        assert_eq!((read(&text, " paris."), read(&text, "Rome")), (Some(true), Some(false)));
        let choices: Vec<&str> = vec!["ice", "honey", "5"];
        for (gold, right) in [("honey", "B"), (" honey", "B"), ("B", "B"), ("1", "B"), ("5", "C"), ("(C)", "C")] {
            let mut item = Item::plain("3", "t", "Which?", gold);
            item.covariates.insert("choices".into(), choices.clone().into());
            assert_eq!(read(&item, &format!("ANSWER: {right}")), Some(true), "{gold}");
            assert_eq!(read(&item, "ANSWER: A"), Some(false), "{gold}");
        }
    }

    #[test]
    fn one_of_several_answers_suffices() {
        let mut item = Item::plain("1", "t", "Capital?", "Paris");
        item.covariates.insert(TARGETS.into(), vec!["Paris", "Lutetia"].into());
        assert_eq!(
            (read(&item, "Lutetia"), read(&item, "paris"), read(&item, "Rome")),
            (Some(true), Some(true), Some(false))
        );
    }

    #[test]
    fn what_cannot_be_read_has_no_score() {
        assert_eq!(read(&Item::plain("1", "t", "q", " "), "5"), None);
        let mut other = Item::plain("2", "t", "q", "bread");
        other.covariates.insert("choices".into(), vec!["ice", "honey"].into());
        assert_eq!(read(&other, "A"), None);
        let likelihoods = Item { continuations: vec!["a".into()], ..Item::plain("3", "t", "q", "a") };
        assert_eq!(read(&likelihoods, "a"), None);
    }
}
