//! Texts with places, and what they become.
use std::collections::HashMap;

use super::document::without_marks;
use super::evaluate::{Precision, Scope};
use super::expression::{Expression, parse};
use super::fault::{TemplateError, TemplateFault};
use super::value::{EvalError, Value};

/// A part of a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    Text(String),
    /// `{var,default}` in a question: prints the text of the drawn value.
    Variable(usize),
    /// `{expr}` in an answer: prints the value.
    Expression(Expression),
}

impl Piece {
    /// The pieces of a question.
    pub fn question(text: &str, indices: &HashMap<&str, usize>) -> Result<Vec<Piece>, TemplateError> {
        split(text, "the question", |inner| {
            let name = inner.split(',').next().unwrap_or_default().trim().trim_start_matches('$');
            let index = indices.get(name).ok_or_else(|| TemplateFault::NotInInit(name.to_owned()))?;
            Ok(Piece::Variable(*index))
        })
    }

    /// The pieces of a worked answer.
    pub fn answer(text: &str, variable: &dyn Fn(&str) -> Option<Expression>) -> Result<Vec<Piece>, TemplateError> {
        split(text, "the answer", |inner| parse(inner, variable).map(Piece::Expression))
    }

    /// The expressions behind the last `####`; none without one.
    pub fn finals(pieces: &[Piece]) -> Option<Vec<Expression>> {
        let last = pieces.iter().rposition(|piece| matches!(piece, Piece::Text(text) if text.contains("####")))?;
        let expression = |piece: &Piece| match piece {
            Piece::Expression(expression) => Some(expression.clone()),
            _ => None,
        };
        Some(pieces[last..].iter().filter_map(expression).collect())
    }

    /// The variable it prints, in a question.
    pub fn index(&self) -> Option<usize> {
        match self {
            Piece::Variable(index) => Some(*index),
            _ => None,
        }
    }
}

fn split(
    text: &str,
    whole: &str,
    mut piece: impl FnMut(&str) -> Result<Piece, TemplateFault>,
) -> Result<Vec<Piece>, TemplateError> {
    let failed = |place: String, fault| TemplateError { place, fault };
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (inner, after) = after.split_once('}').ok_or_else(|| failed(whole.to_owned(), TemplateFault::Unclosed))?;
        if !before.is_empty() {
            pieces.push(Piece::Text(before.to_owned()));
        }
        pieces.push(piece(inner).map_err(|fault| failed(format!("`{{{inner}}}` in {whole}"), fault))?);
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Ok(pieces)
}

/// Substitutes (in questions with a capital where a sentence begins), then collapses runs of spaces, then removes calculator marks (after which a double space can stand where a
/// mark was).
pub(super) fn render(pieces: &[Piece], variables: &[Option<Value>]) -> Result<String, EvalError> {
    let scope = Scope { variables, precision: Precision::Python };
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(literal) => text.push_str(literal),
            Piece::Variable(index) => {
                let value = scope.value(&Expression::Variable(*index))?;
                let is_text = matches!(value, Value::Text(_) | Value::Item(..));
                let shown = value.shown();
                text.push_str(&if is_text && begins_sentence(&text) { capitalised(&shown) } else { shown });
            }
            Piece::Expression(expression) => text.push_str(&scope.value(expression)?.to_string()),
        }
    }
    Ok(without_marks(&collapsed(&text)))
}

/// True at the beginning and after `.` with one space; the released questions show that `?` does not count.
fn begins_sentence(before: &str) -> bool {
    before.is_empty() || before.ends_with(". ")
}

/// The first word with its first letter upper-case and the others lower-case ("DeShawn" becomes "Deshawn"), the other words as
/// they are ("Sunnyside High").
fn capitalised(text: &str) -> String {
    let (word, rest) = text.split_at(text.find(' ').unwrap_or(text.len()));
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().collect::<String>());
    first.unwrap_or_default() + &letters.as_str().to_lowercase() + rest
}

fn collapsed(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut after_space = false;
    for letter in text.chars() {
        if letter == ' ' && after_space {
            continue;
        }
        after_space = letter == ' ';
        result.push(letter);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_begin_with_capitals() {
        let pieces = [
            Piece::Variable(0),
            Piece::Text(" runs.  ".into()),
            Piece::Variable(0),
            Piece::Text(". ".into()),
            Piece::Variable(0),
            Piece::Text(" and ".into()),
            Piece::Variable(0),
        ];
        let text = render(&pieces, &[Some(Value::text("DeShawn"))]).unwrap();
        // Two spaces are no sentence's end when the name is put in; they collapse later.
        assert_eq!(text, "Deshawn runs. DeShawn. Deshawn and DeShawn");
    }

    #[test]
    fn marks_leave_their_surroundings() {
        let pieces = [Piece::Text("2 * 3 =  <<2*3=6>> 6  a".into())];
        assert_eq!(render(&pieces, &[]).unwrap(), "2 * 3 =  6 a");
        assert_eq!(without_marks("<<a"), "<<a");
    }
}
