//! Numbers that no sentence can state: list markers, options, labels, dates, arguments of functions, the prompt's example.
use std::ops::Range;

use super::asks::Ask;
use super::numeral::Spelling;
use super::scan::Scan;
use super::token::Kind;
use super::vocabulary::{Meaning, any_of};

impl Scan<'_> {
    /// `1.`, `2)` and `(3)` at the beginnings of lines that count upwards.
    pub(super) fn exclude_list_markers(&mut self) {
        let tokens = self.tokens;
        let (mut expected, mut first, mut line_start) = (1u32, None::<usize>, true);
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
            let behind = tokens.kind(at + 2);
            let ends = at + 2 >= tokens.tokens.len();
            let cut = self.truncated && ends && expected > 2 && number.text.parse() == Ok(expected);
            let more = cut || !ends && !matches!(behind, Kind::Line | Kind::End | Kind::Rule);
            let small = number.text.len() <= 2 && number.spelling == Spelling::Integer;
            let marked = matches!(tokens.text.as_bytes().get(number.end), Some(b'.' | b')'));
            if !(closes && more && small && marked) {
                continue;
            }
            let Ok(value) = number.text.parse::<u32>() else { continue };
            // A completion may go on with the number that was asked for.
            if value == 1 {
                (first, expected) = (Some(at), 2);
                // One point alone is a list only where words follow.
                self.excluded[at] =
                    !(self.question.open_ended && at == 0) && (behind.is_word() || behind == Kind::Bold);
            } else if value == expected && expected > 1 {
                for marker in first.take().into_iter().chain([at]) {
                    self.excluded[marker] = true;
                }
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
        let (mut line_start, mut found) = (true, Vec::new());
        for at in 0..tokens.tokens.len() {
            match tokens.kind(at) {
                Kind::Line => line_start = true,
                Kind::Open | Kind::Bold | Kind::Bullet if line_start => {}
                Kind::Word(_) if line_start && self.is(at, "option choice opción opção") => {}
                Kind::Word(_) if line_start => {
                    line_start = false;
                    let letter = letter(tokens.slice(at)).filter(|letter| ('a'..='h').contains(letter));
                    let passes = |at: &usize| matches!(tokens.kind(*at), Kind::Bold | Kind::Close);
                    let number = (at + 2..).find(|at| !passes(at)).unwrap_or(at);
                    let closed = matches!(tokens.kind(at + 1), Kind::Close | Kind::Stop | Kind::Colon | Kind::Other);
                    found.extend(letter.filter(|_| closed && self.is_number(number)).map(|letter| (letter, number)));
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
        let option = |at: usize| {
            let letter = letter(self.slice(at)).filter(|_| at != names)?;
            self.options.iter().find(|(option, _)| *option == letter).map(|(_, number)| *number)
        };
        range.clone().rev().find_map(option)
    }

    /// Step 2, page 112, 3 significant figures, 12 May.
    pub(super) fn is_label(&self, at: usize) -> bool {
        let before = at.wrapping_sub(1);
        let (word, behind) = (self.slice(before), self.slice(at + 1));
        // "day 6" where a day was asked for
        let position = self.question.asks(Ask::DigitAt) && self.is(before, "position index");
        let asked = at > 0 && self.question.asked_words(word) != 0 && !position;
        let label =
            self.means(before, Meaning::LABEL) && !self.means(before, Meaning::ANSWER) && !self.is(before, "no");
        let hashed = matches!(word, "#" | "§" | "№" | "©");
        let figures = self.is(at + 1, "significant sig decimal decimals")
            || self.is(at + 1, "token tokens") && self.question.asked_words("token") == 0;
        let behind_month = self.means(before, Meaning::MONTH);
        // "On which day of March does it end?" "On 16 March"
        let month_asked = self.question.asks(Ask::Rank)
            && (self.question.asked_words(word) != 0 || self.question.asked_words(behind) != 0);
        let month = behind_month && word.len() > 2
            || self.means(at + 1, Meaning::MONTH) && behind.starts_with(char::is_uppercase);
        // The year behind "12 May".
        let year =
            !month_asked && !self.question.asks_year && at >= 2 && behind_month && word.starts_with(char::is_uppercase);
        let longest = if self.question.asks_year { 2 } else { 4 };
        // "42 half dozens"
        let unit = self.is(at, "half quarter halbe demi") && at > 0 && self.is_number(before) && self.is_word(at + 1);
        // "The result is below zero."
        let bound = self.is(at, "zero null") && self.is(before, "below above under than unter über sotto bajo");
        // "I can help you add those two numbers"
        let things = self.is(at, "two three both") && self.is(at + 1, "numbers values fractions integers decimals");
        // "the fourth quarter", "the second half"
        let nth = self.is(before, "first second third fourth last final this next")
            || self.number(before).is_some_and(|number| number.ordinal);
        label && !asked
            || hashed
            || figures
            || unit
            || bound
            || things && self.question.instructs && !self.question.style.counts
            || year
            || month && !month_asked && self.number(at).is_some_and(|number| number.text.len() <= longest)
            || nth && self.is(at, "quarter half")
    }

    /// An argument of a function: `range(5)`, `max(3, 7)`.
    pub(super) fn is_argument(&self, at: usize) -> bool {
        const LONGEST: usize = 12;
        let inside = |at: usize| {
            matches!(self.kind(at), Kind::Number(_) | Kind::Comma | Kind::Operator(_) | Kind::Quote | Kind::Equals)
        };
        let Some(open) = (at.saturating_sub(LONGEST)..at).rev().find(|&at| !inside(at)) else { return false };
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
        let ends = |at: usize| matches!(self.kind(at), Kind::Stop | Kind::Line | Kind::Number(_));
        let mut before = (at.saturating_sub(12)..at).rev().take_while(|&at| !ends(at));
        self.is_example(at) && before.any(|before| self.means(before, Meaning::EXAMPLE))
    }
}

/// The letter of a word that is no more than one, in lower case.
fn letter(word: &str) -> Option<char> {
    word.chars().next().filter(|_| word.len() == 1).map(|letter| letter.to_ascii_lowercase())
}
