//! Numbers that no sentence can state: list markers, options, labels, dates, arguments of functions, the prompt's example.
use std::ops::Range;

use super::numeral::Spelling;
use super::scan::Scan;
use super::token::Kind;
use super::vocabulary::{Meaning, any_of};

impl Scan<'_> {
    /// `1.`, `2)` and `(3)` at the beginnings of lines that count upwards.
    pub(super) fn exclude_list_markers(&mut self) {
        let tokens = self.tokens;
        let mut expected = 1u32;
        let mut first: Option<usize> = None;
        let mut line_start = true;
        for at in 0..tokens.tokens.len() {
            match tokens.kind(at) {
                Kind::Line | Kind::Rule | Kind::Program => {
                    line_start = true;
                    continue;
                }
                Kind::Bullet | Kind::Heading | Kind::Bold | Kind::Open if line_start => continue,
                _ => {}
            }
            if !std::mem::take(&mut line_start) {
                continue;
            }
            let Some(number) = tokens.number(at) else { continue };
            let closes = matches!(tokens.kind(at + 1), Kind::Stop | Kind::Close);
            let cut =
                self.truncated && at + 2 >= tokens.tokens.len() && expected > 2 && number.text.parse() == Ok(expected);
            let more = cut
                || !matches!(tokens.kind(at + 2), Kind::Line | Kind::End | Kind::Rule) && at + 2 < tokens.tokens.len();
            let small = number.text.len() <= 2 && number.spelling == Spelling::Integer;
            if !(closes && more && small)
                || tokens.text.as_bytes().get(number.end).is_none_or(|b| !matches!(b, b'.' | b')'))
            {
                continue;
            }
            let Ok(value) = number.text.parse::<u32>() else { continue };
            // A completion may go on with the number that was asked for.
            if value == 1 {
                first = Some(at);
                expected = 2;
                // One point alone is a list only where words follow.
                self.excluded[at] =
                    !(self.question.open_ended && at == 0) && matches!(tokens.kind(at + 2), Kind::Word(_) | Kind::Bold);
            } else if value == expected && expected > 1 {
                if let Some(first) = first.take() {
                    self.excluded[first] = true;
                }
                self.excluded[at] = true;
                expected += 1;
            } else if at > 0 && self.is_number(at + 2) {
                // `2. 71+49=?`
                self.excluded[at] = true;
            }
        }
    }

    /// `A) 81`, `(b) 93`, `Option C: 97` at the beginnings of lines: none of them is stated, but a letter may choose one.
    pub(super) fn find_options(&mut self) {
        let tokens = self.tokens;
        let mut line_start = true;
        let mut found: Vec<(char, usize)> = Vec::new();
        for at in 0..tokens.tokens.len() {
            match tokens.kind(at) {
                Kind::Line => line_start = true,
                Kind::Open | Kind::Bold | Kind::Bullet if line_start => {}
                Kind::Word(_) if line_start && self.is(at, "option choice opción opção") => {}
                Kind::Word(_) if line_start => {
                    line_start = false;
                    let letter = letter(tokens.slice(at)).filter(|letter| ('a'..='h').contains(letter));
                    let mut number = at + 2;
                    while matches!(tokens.kind(number), Kind::Bold | Kind::Close) {
                        number += 1;
                    }
                    let closed = matches!(tokens.kind(at + 1), Kind::Close | Kind::Stop | Kind::Colon | Kind::Other);
                    if closed && self.is_number(number) {
                        found.extend(letter.map(|letter| (letter, number)));
                    }
                }
                _ => line_start = false,
            }
        }
        if found.len() >= 2 {
            self.options = found;
        }
    }

    /// The number of the option that a sentence chooses: "The correct option is C."
    pub(super) fn chosen_option(&self, range: &Range<usize>) -> Option<usize> {
        let names = self.words(range).find(|&at| self.means(at, any_of![ANSWER, CONFIRMS]))?;
        // "Option C: 36" only lists it.
        let lists = self.is(names, "option choice opción opção");
        if lists && !self.words(range).any(|at| self.means(at, any_of![LINK, CONFIRMS]) && at != names) {
            return None;
        }
        (range.clone()).rev().filter(|&at| at != names).find_map(|at| self.option(self.slice(at)))
    }

    /// The number of an option by its letter.
    fn option(&self, letter: &str) -> Option<usize> {
        let letter = self::letter(letter)?;
        self.options.iter().find(|(option, _)| *option == letter).map(|(_, number)| *number)
    }

    /// Step 2, page 112, 3 significant figures, 12 May.
    pub(super) fn is_label(&self, at: usize) -> bool {
        let before = at.checked_sub(1).map_or(Meaning::default(), |before| self.tokens.meaning(before));
        // "day 6" where a day was asked for
        let asked = at > 0 && self.question.asked_words(self.slice(at - 1)) != 0;
        let label = before.has(Meaning::LABEL) && !before.has(Meaning::ANSWER) && !asked;
        let no = label && at.checked_sub(1).is_some_and(|before| self.is(before, "no"));
        let hashed = matches!(at.checked_sub(1).map(|before| self.slice(before)), Some("#" | "§" | "№" | "©"));
        let behind = self.slice(at + 1);
        let figures = self.is(at + 1, "significant sig decimal decimals");
        let month = before.has(Meaning::MONTH) && self.slice(at - 1).len() > 2 || {
            self.means(at + 1, Meaning::MONTH) && behind.starts_with(char::is_uppercase)
        };
        // The year behind "12 May".
        let year = !self.question.asks_year
            && at >= 2
            && self.means(at - 1, Meaning::MONTH)
            && self.slice(at - 1).starts_with(char::is_uppercase);
        // "the fourth quarter", "the second half"
        let part = self.is(at, "quarter half")
            && at.checked_sub(1).is_some_and(|before| {
                self.is(before, "first second third fourth last final this next")
                    || self.number(before).is_some_and(|number| number.ordinal)
            });
        part || (label && !no)
            || hashed
            || figures
            || (month && self.number(at).is_some_and(|n| n.text.len() <= if self.question.asks_year { 2 } else { 4 }))
            || year
    }

    /// An argument of a function: `range(5)`, `max(3, 7)`.
    pub(super) fn is_argument(&self, at: usize) -> bool {
        const LONGEST: usize = 12;
        let Some(open) = (at.saturating_sub(LONGEST)..at).rev().find(|&before| {
            !matches!(self.kind(before), Kind::Number(_) | Kind::Comma | Kind::Operator(_) | Kind::Quote | Kind::Equals)
        }) else {
            return false;
        };
        self.kind(open) == Kind::Open
            && !self.is_spaced(open)
            && open > 0
            && self.is_word(open - 1)
            && self.slice(open - 1).is_ascii()
            && !self.means(open - 1, any_of![ANSWER, LINK])
            && self.tokens.text.as_bytes().get(self.tokens.tokens[open].start) == Some(&b'(')
    }

    /// The prompt's own example behind "like" or "format" in its sentence.
    pub(super) fn is_quoted_example(&self, at: usize) -> bool {
        self.is_example(at)
            && (at.saturating_sub(12)..at)
                .rev()
                .take_while(|&before| !matches!(self.kind(before), Kind::Stop | Kind::Line | Kind::Number(_)))
                .any(|before| self.means(before, Meaning::EXAMPLE))
    }
}

/// The letter of a word that is no more than one, in lower case.
fn letter(word: &str) -> Option<char> {
    word.chars().next().filter(|_| word.len() == 1).map(|letter| letter.to_ascii_lowercase())
}
