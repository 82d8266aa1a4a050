//! The last commitment of a completion: statements in order, each with how strongly it says that it is the answer.
use std::ops::Range;

use super::piece::{Piece, pieces};
use super::question::Question;
use super::reading::{Answer, Mark, NoAnswer, Reading};
use super::statement::{Stated, Statements};
use super::token::{Kind, Tokens};
use super::value;
use super::vocabulary::Meaning;
use crate::number::words::{scale, scaled};

/// The strength of a statement's claim to be the answer, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    /// A number that nothing makes a result.
    Mentioned,
    /// A number of a sentence.
    Said,
    /// The result of an equation or a sentence.
    Result,
    /// A number that stands by itself, bold type, the result of what was asked.
    Shown,
    /// Words, a box or a tag that say that it is the answer.
    Declared,
}

/// A number that a completion states.
#[derive(Debug, Clone, Copy)]
pub(super) struct Statement {
    pub(super) stated: Stated,
    pub(super) strength: Strength,
    pub(super) mark: Mark,
    /// The token at which it begins.
    pub(super) at: usize,
}

/// Most rivals that are told, and most that are looked at for that.
const MOST_RIVALS: usize = 8;
const MOST_LOOKED_AT: usize = 64;

/// Phrases that say that there is no answer.
const UNDETERMINED: [&str; 22] = [
    "no way to know",
    "not told",
    "not stated",
    "not given",
    "not mentioned",
    "not provided",
    "not specified",
    "does not give",
    "doesn't say",
    "does not say",
    "cannot be determined",
    "can't be determined",
    "cannot determine",
    "can't determine",
    "not enough information",
    "insufficient information",
    "impossible to determine",
    "impossible to say",
    "does not state",
    "is missing",
    "both are valid",
    "both are possible",
];

/// The answer of a text without thinking.
pub fn decide(question: &Question, text: &str, truncated: bool) -> Reading {
    if text.trim().is_empty() {
        return Reading::none(NoAnswer::Empty);
    }
    let tokens = Tokens::new(text, question.style, question.language);
    let statements = Statements::new(question, &tokens, truncated);
    let pieces = pieces(&tokens);
    let mut state = State {
        question,
        tokens: &tokens,
        statements: &statements,
        truncated,
        best: None,
        reopened: false,
        withdrawn: None,
        contested: None,
        rivals: Vec::new(),
        unevaluated: false,
        cut: false,
        restated: false,
        example_stated: false,
        looped: false,
        ended: false,
        last_piece: 0,
    };
    state.follow(&pieces);
    state.finish(&pieces)
}

/// The statements read so far and the one that holds.
pub(super) struct State<'a> {
    pub(super) question: &'a Question,
    pub(super) tokens: &'a Tokens<'a>,
    pub(super) statements: &'a Statements<'a>,
    pub(super) truncated: bool,
    pub(super) best: Option<Statement>,
    /// The statement that holds was withdrawn: the next one replaces it.
    reopened: bool,
    /// The statement before that.
    withdrawn: Option<Statement>,
    /// Two statements of equal standing, neither withdrawn.
    contested: Option<(usize, usize)>,
    /// Tokens of other numbers that were stated.
    rivals: Vec<usize>,
    unevaluated: bool,
    cut: bool,
    /// The last conclusion says only the question again.
    restated: bool,
    /// The prompt's own example was stated as an answer, other than as a result.
    example_stated: bool,
    /// A line that states the answer stands there twice.
    looped: bool,
    /// Another question follows: the answer to the first is whole.
    ended: bool,
    last_piece: usize,
}

impl<'a> State<'a> {
    fn follow(&mut self, pieces: &[Piece]) {
        let mut checking = false;
        for (index, piece) in pieces.iter().enumerate() {
            let has_best = self.best.is_some();
            if index > 0 && self.begins_another_question(piece, has_best) {
                self.ended = true;
                return;
            }
            self.last_piece = index;
            if piece.heading {
                checking = has_best && self.words(piece).take(3).any(|at| self.tokens.means(at, Meaning::CHECKS));
            }
            let first_content = index == 0;
            if has_best && self.corrects(piece) {
                self.reopened = true;
                self.withdrawn = self.best;
            }
            if self.is_question_or_guess(piece) {
                continue;
            }
            if self.restates(piece) {
                self.restated = true;
                continue;
            }
            let aside = has_best && (checking || self.is_aside(piece));
            // "Hmm, is it really 2380? ... Yes."
            if self.confirms(piece) && self.withdrawn.is_some() {
                self.best = self.withdrawn.take();
                self.reopened = false;
                continue;
            }
            let mut found = false;
            for statement in self.declarations(piece, pieces.get(index + 1..).unwrap_or_default()) {
                found |= matches!(statement.stated, Stated::Number(_) | Stated::Rivals(..));
                if !(aside && statement.strength < Strength::Declared) {
                    self.take(statement);
                }
            }
            if found || aside {
                continue;
            }
            if let Some(statement) = self.sentence(piece, first_content) {
                // Behind a rule stands what is not the text's own.
                if has_best
                    && piece.after_rule
                    && (statement.strength < Strength::Shown || statement.mark == Mark::OnlyNumber)
                    && !self.is_given_commitment()
                {
                    continue;
                }
                self.looped |= self.says_again(piece, &statement, pieces);
                self.take(statement);
            }
        }
    }

    pub(super) fn kind(&self, at: usize) -> Kind {
        self.tokens.kind(at)
    }

    pub(super) fn words(&self, piece: &Piece) -> impl Iterator<Item = usize> + 'a {
        let tokens = self.tokens;
        piece.range.clone().filter(move |&at| matches!(tokens.kind(at), Kind::Word(_)))
    }

    pub(super) fn has_number(&self, range: Range<usize>) -> bool {
        range.into_iter().any(|at| matches!(self.kind(at), Kind::Number(_)))
    }

    /// True if what was stated so far is a number that the question gives.
    fn is_given_commitment(&self) -> bool {
        matches!(self.best, Some(Statement { stated: Stated::Number(at), .. }) if self.statements.is_given(at))
    }

    /// True if what was stated so far is the prompt's own example.
    pub(super) fn is_example_commitment(&self) -> bool {
        let Some(Statement { stated: Stated::Number(at), .. }) = self.best else { return false };
        self.statements.is_example(at)
    }

    fn value_of(&self, statement: &Statement) -> Option<&'a str> {
        match statement.stated {
            Stated::Number(at) => self.statements.number(at).map(|number| number.text.as_str()),
            _ => None,
        }
    }

    /// Weighs a statement against the one that holds.
    fn take(&mut self, new: Statement) {
        if let Stated::Number(at) = new.stated {
            self.example_stated |= self.statements.is_example(at) && new.mark != Mark::Sentence;
            self.restated = false;
        }
        match new.stated {
            Stated::Nothing => return,
            Stated::Unevaluated => {
                self.unevaluated = true;
                return;
            }
            Stated::Cut(token) => {
                self.take_cut(&new, token);
                return;
            }
            Stated::Rivals(a, b) => {
                if self.best.is_none_or(|best| best.strength <= new.strength) || self.reopened {
                    self.contested = Some((a, b));
                    self.best = Some(new);
                }
                return;
            }
            Stated::Number(_) => {}
        }
        let Some(best) = self.best else {
            self.best = Some(new);
            return;
        };
        let (Some(value), Some(old)) = (self.value_of(&new), self.value_of(&best)) else {
            // Rivals give way to a later statement that is as strong.
            if new.strength >= best.strength || self.reopened {
                self.contested = None;
                self.best = Some(new);
            }
            return;
        };
        if value::same(value, old) {
            if new.strength > best.strength {
                self.best = Some(new);
            }
            self.contested = None;
            self.reopened = false;
            return;
        }
        let example = self.is_example_commitment();
        let new_example = match new.stated {
            Stated::Number(at) => self.statements.is_example(at),
            _ => false,
        };
        // Figures one below the other: the operands, then the result.
        let is_operand = |statement: &Statement| match statement.stated {
            Stated::Number(at) => self.statements.is_given(at) && !self.question.selects,
            _ => false,
        };
        let column = is_operand(&best) && !is_operand(&new) && self.question.instructs;
        let replaces = if self.reopened || (example && new.strength >= Strength::Result) {
            true
        } else if new.strength != best.strength {
            new.strength > best.strength
        } else if new_example && (new.strength <= Strength::Said || new.mark == Mark::OnlyNumber) {
            false
        } else {
            match new.strength {
                Strength::Declared => {
                    if self.contradicts(&best, &new) {
                        if let (Stated::Number(a), Stated::Number(b)) = (best.stated, new.stated) {
                            self.contested = Some((a, b));
                        }
                        return;
                    }
                    true
                }
                // "The minimal number is 4/9. The minimal number is 3/7."
                Strength::Shown if self.says_otherwise(&best, &new) => {
                    if let (Stated::Number(a), Stated::Number(b)) = (best.stated, new.stated) {
                        self.contested = Some((a, b));
                    }
                    return;
                }
                // Lines of single numbers: in a raw completion the first answers, elsewhere they are guesses.
                Strength::Shown if best.mark == Mark::OnlyNumber && new.mark == Mark::OnlyNumber && !column => {
                    if self.question.is_chat
                        && let (Stated::Number(a), Stated::Number(b)) = (best.stated, new.stated)
                    {
                        self.contested = Some((a, b));
                    }
                    return;
                }
                _ => true,
            }
        };
        if replaces {
            if best.strength >= Strength::Shown
                && let Stated::Number(at) = best.stated
            {
                self.rivals.push(at);
            }
            self.best = Some(new);
            self.reopened = false;
            self.contested = None;
        } else if new.strength >= Strength::Shown
            && let Stated::Number(at) = new.stated
        {
            self.rivals.push(at);
        }
    }

    /// A statement that the budget cut withdraws what was said with no more strength, unless it is about to say the same again.
    fn take_cut(&mut self, new: &Statement, token: Option<usize>) {
        let strength = new.strength;
        let digits = token.and_then(|at| self.statements.number(at)).map(|number| number.text.as_str());
        let Some(best) = self.best else {
            self.cut = true;
            return;
        };
        let again = match (digits, self.value_of(&best)) {
            (Some(digits), Some(value)) => value.starts_with(digits),
            _ => true,
        };
        // Only of a bare number: what was said in a sentence was said.
        let says = best.mark == Mark::OnlyNumber && new.mark != Mark::OnlyNumber && strength > Strength::Result;
        if best.strength < strength || (best.strength == strength && !again && says) {
            self.cut = true;
            self.best = None;
        }
    }

    /// True for sentences of the same words with another number.
    fn says_otherwise(&self, best: &Statement, new: &Statement) -> bool {
        let words = |statement: &Statement| {
            let begins = statement.at..self.tokens.tokens.len().min(statement.at + 8);
            let text = |at: usize| self.tokens.slice(at).to_lowercase();
            begins.take_while(|&at| matches!(self.kind(at), Kind::Word(_))).map(text).collect::<Vec<_>>()
        };
        let (old, again) = (words(best), words(new));
        old.len() >= 3 && old == again
    }

    /// Two declarations one behind the other, with nothing that would lead from the first to the second.
    fn contradicts(&self, best: &Statement, new: &Statement) -> bool {
        let Stated::Number(first) = best.stated else { return false };
        if best.mark != new.mark {
            return false;
        }
        let between = first + 1..new.at;
        let leads = between.clone().any(|at| {
            matches!(self.kind(at), Kind::Number(_) | Kind::Equals | Kind::Arrow)
                || self.tokens.means(at, Meaning::CONCLUDES.with(Meaning::CORRECTS).with(Meaning::CHECKS))
                || self.tokens.slice(at).eq_ignore_ascii_case("final")
        });
        let words = between.filter(|&at| matches!(self.kind(at), Kind::Word(_))).count();
        !leads && words <= 4
    }

    /// The reading that the statements come to.
    fn finish(self, pieces: &[Piece]) -> Reading {
        let text = |at: usize| self.statements.number(at).map(|number| number.text.clone());
        let mut reading = Reading::none(NoAnswer::NoNumber);
        reading.example_echoed = self.example_stated;
        let answer = self.best.and_then(|best| match best.stated {
            Stated::Number(at) => Some((best, at)),
            _ => None,
        });
        let mut rivals: Vec<usize> = self.rivals.clone();
        if let Some((a, b)) = self.contested {
            rivals.extend([a, b]);
        }
        let chosen = answer.filter(|_| self.contested.is_none()).map(|(_, at)| at);
        reading.answers_example = chosen.is_some_and(|at| self.statements.is_example(at));
        let answered = chosen.and_then(text);
        let mut values: Vec<String> = Vec::new();
        // The prompt's example is an echo, no rival.
        for rival in
            rivals.into_iter().filter(|&at| !self.statements.is_example(at)).take(MOST_LOOKED_AT).filter_map(text)
        {
            let known = values.contains(&rival) || answered.as_ref().is_some_and(|answer| value::same(answer, &rival));
            if !known && values.len() < MOST_RIVALS {
                values.push(rival);
            }
        }
        reading.rivals = values;
        reading.answer = self.answer(answer, pieces);
        reading
    }

    fn answer(&self, answer: Option<(Statement, usize)>, pieces: &[Piece]) -> Result<Answer, NoAnswer> {
        if self.contested.is_some() {
            return Err(NoAnswer::Rivals);
        }
        let lower = || self.tokens.text.to_ascii_lowercase();
        let undetermined = || {
            let lower = lower();
            UNDETERMINED.iter().any(|phrase| lower.contains(phrase))
        };
        let Some((best, at)) = answer else {
            let has_number = !self.tokens.numbers.is_empty();
            return Err(match () {
                () if self.cut => NoAnswer::Truncated,
                () if undetermined() => NoAnswer::Refused,
                () if self.truncated && !self.unevaluated => NoAnswer::Truncated,
                () if self.unevaluated => NoAnswer::Unevaluated,
                () if refuses(&lower()) => NoAnswer::Refused,
                () if has_number => NoAnswer::Unevaluated,
                () => NoAnswer::NoNumber,
            });
        };
        if self.restated && best.strength <= Strength::Result {
            return Err(NoAnswer::Unevaluated);
        }
        if best.strength < Strength::Shown && undetermined() {
            return Err(NoAnswer::Refused);
        }
        let whole = self.ended || self.looped;
        if self.truncated && !whole && best.strength <= Strength::Result && !self.was_concluded(&best, pieces) {
            return Err(NoAnswer::Truncated);
        }
        if self.cut && best.strength < Strength::Shown {
            return Err(NoAnswer::Truncated);
        }
        let Some(number) = self.statements.number(at) else { return Err(NoAnswer::NoNumber) };
        Ok(Answer { text: self.canonical(at), span: number.start..number.end, mark: best.mark })
    }

    /// A number's text with a power of ten in words behind it multiplied in, unless the question's own numbers are in it.
    fn canonical(&self, at: usize) -> String {
        let Some(number) = self.statements.number(at) else { return String::new() };
        // "5 degrees below zero"
        let below = (at + 1..at + 4).any(|word| {
            self.tokens.slice(word).eq_ignore_ascii_case("below")
                && self.tokens.slice(word + 1).eq_ignore_ascii_case("zero")
        });
        if below && !number.text.starts_with('-') {
            return format!("-{}", number.text);
        }
        if let Kind::Word(_) = self.kind(at + 1)
            && let Some(power) = scale(self.tokens.slice(at + 1))
            && !self.question.states_scale(power)
            && let Some(scaled) = scaled(&number.text, power)
        {
            return scaled;
        }
        number.text.clone()
    }

    /// True if a cut text had come to its end: a conclusion with something behind it that goes on with no further working.
    fn was_concluded(&self, best: &Statement, pieces: &[Piece]) -> bool {
        let Some(place) = pieces.iter().position(|piece| piece.range.contains(&best.at)) else { return false };
        let piece = &pieces[place];
        let concludes = self.words(piece).take(3).any(|at| self.tokens.means(at, Meaning::CONCLUDES))
            || piece.range.clone().any(|at| self.tokens.means(at, Meaning::TOTALS));
        let behind = pieces.get(place + 1..self.last_piece + 1).unwrap_or_default();
        let goes_on = |piece: &Piece| {
            const WORKING: [&str; 8] = ["now", "next", "need", "find", "let", "calculate", "then", "finally"];
            self.has_number(piece.range.clone())
                || self
                    .words(piece)
                    .any(|at| WORKING.iter().any(|word| self.tokens.slice(at).eq_ignore_ascii_case(word)))
        };
        concludes && !behind.is_empty() && !behind.iter().any(goes_on)
    }
}

/// True if a text without an answer says that it gives none.
fn refuses(lower: &str) -> bool {
    [
        "i can't",
        "i cannot",
        "i can not",
        "i'm sorry",
        "i am sorry",
        "unable to",
        "not able to",
        "i don't",
        "i do not",
        "as an ai",
    ]
    .iter()
    .any(|phrase| lower.contains(phrase))
}
