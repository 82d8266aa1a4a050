//! Which number a stretch of text states: equations, sentences, comparisons.
use std::ops::Range;

use super::numeral::Spelling;
use super::question::{Extreme, Question};
use super::token::{Kind, Number, Tokens};
use super::value;
use super::vocabulary::Meaning;
use super::words;

/// What a stretch of text states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stated {
    /// The token of a number.
    Number(usize),
    /// Two numbers of equal standing.
    Rivals(usize, usize),
    /// An operation without its result.
    Unevaluated,
    /// The number that would be stated is cut by the end of the text: its token, where digits of it are there.
    Cut(Option<usize>),
    Nothing,
}

/// How strongly a sentence states its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// It cannot be what is stated: an operand, a label, a number that is denied.
    Not,
    /// Context: a given number, an aside, "in 3 days".
    Context,
    /// Nothing tells.
    Neutral,
    /// A result: behind "=", "is", "gives", "so".
    Result,
}

/// What a sentence states and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sentence {
    pub stated: Stated,
    pub rank: Rank,
    /// The result of the operation that was asked for.
    pub asked: bool,
}

/// Texts with the roles of their numbers.
pub struct Statements<'a> {
    pub question: &'a Question,
    pub tokens: &'a Tokens<'a>,
    /// The token budget ended the text.
    truncated: bool,
    /// By token: a number that no sentence can state.
    excluded: Vec<bool>,
    /// Letters and numbers of options that the completion lists.
    options: Vec<(char, usize)>,
}

/// Most words of a unit.
const UNIT_WORDS: usize = 3;

/// Meanings that no word of a unit has.
const NO_UNIT: Meaning = Meaning::LINK
    .with(Meaning::GIVES)
    .with(Meaning::CONTEXT)
    .with(Meaning::ANSWER)
    .with(Meaning::REASON)
    .with(Meaning::CONCLUDES)
    .with(Meaning::OR)
    .with(Meaning::AND)
    .with(Meaning::IF)
    .with(Meaning::DENIES)
    .with(Meaning::OPERATOR)
    .with(Meaning::CORRECTS)
    .with(Meaning::TOTALS)
    .with(Meaning::UP)
    .with(Meaning::DOWN)
    .with(Meaning::FILLER);

impl<'a> Statements<'a> {
    /// Finds the roles of all numbers.
    pub fn new(question: &'a Question, tokens: &'a Tokens<'a>, truncated: bool) -> Self {
        let mut statements = Statements { question, tokens, truncated, excluded: vec![false; tokens.tokens.len()], options: Vec::new() };
        statements.exclude_list_markers();
        statements.exclude_options();
        for at in 0..tokens.tokens.len() {
            if let Some(number) = tokens.number(at) {
                let given_back = number.spelling == Spelling::Fraction
                    && matches!(question.form, super::Form::Integer | super::Form::Float | super::Form::Scientific)
                    && question.is_asked_operation(&[number]);
                let excluded = number.name
                    || given_back
                    || number.spelling == Spelling::None
                    || statements.is_label(at)
                    || statements.is_denied(at)
                    || statements.is_quoted_example(at);
                statements.excluded[at] |= excluded;
            }
        }
        statements
    }

    fn kind(&self, at: usize) -> Kind {
        self.tokens.kind(at)
    }

    /// True if a number can be stated.
    pub fn is_candidate(&self, at: usize) -> bool {
        matches!(self.kind(at), Kind::Number(_)) && !self.excluded[at]
    }

    /// The number of a token that is one.
    pub fn number(&self, at: usize) -> Option<&'a Number> {
        self.tokens.number(at)
    }

    /// True if the end of the text cuts a number.
    pub fn is_cut(&self, at: usize) -> bool {
        let Some(number) = self.number(at) else { return false };
        if !self.truncated {
            return false;
        }
        // "87." may be the beginning of 87.5 where decimals were asked for.
        let rest = self.tokens.text[number.end..].trim_end_matches(['*', '`', '$', '}']);
        if rest == "." {
            return matches!(self.question.form, super::Form::Float | super::Form::Scientific);
        }
        // The beginning of a group, an exponent or a denominator.
        rest.len() <= 8 && rest.chars().all(|c| matches!(c, ',' | 'e' | 'E' | '/' | '^' | '-' | '+' | '×' | '\\' | '_' | '{'))
    }

    fn same(&self, a: usize, b: usize) -> bool {
        match (self.number(a), self.number(b)) {
            (Some(a), Some(b)) => a.text == b.text || value::same(&a.text, &b.text),
            _ => false,
        }
    }

    /// `1.`, `2)` and `(3)` at the beginnings of lines that count upwards.
    fn exclude_list_markers(&mut self) {
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
            let more = !matches!(tokens.kind(at + 2), Kind::Line | Kind::End | Kind::Rule) && at + 2 < tokens.tokens.len();
            let small = number.text.len() <= 2 && number.spelling == Spelling::Integer;
            if !(closes && more && small) || tokens.text.as_bytes().get(number.end).is_none_or(|b| !matches!(b, b'.' | b')')) {
                continue;
            }
            let Ok(value) = number.text.parse::<u32>() else { continue };
            // A completion may go on with the number that was asked for.
            if value == 1 && !(self.question.open_ended && first.is_none() && at == 0) {
                first = Some(at);
                expected = 2;
                // One point alone is a list only where words follow.
                self.excluded[at] = matches!(tokens.kind(at + 2), Kind::Word(_) | Kind::Bold);
            } else if value == expected && expected > 1 {
                if let Some(first) = first.take() {
                    self.excluded[first] = true;
                }
                self.excluded[at] = true;
                expected += 1;
            } else if !(self.question.open_ended && at == 0) && matches!(tokens.kind(at + 2), Kind::Number(_)) && at > 0 && value != 1 {
                // `2. 71+49=?`
                self.excluded[at] = true;
            }
        }
    }

    /// `A) 81`, `(b) 93`, `C. 97` at the beginnings of lines: none of them is stated, but a letter may choose one.
    fn exclude_options(&mut self) {
        let tokens = self.tokens;
        let mut line_start = true;
        let mut found: Vec<(char, usize)> = Vec::new();
        for at in 0..tokens.tokens.len() {
            match tokens.kind(at) {
                Kind::Line => line_start = true,
                Kind::Open | Kind::Bold | Kind::Bullet if line_start => {}
                Kind::Word(_) if line_start => {
                    line_start = false;
                    let letter = tokens.slice(at).chars().next().filter(|c| tokens.slice(at).len() == 1 && ('a'..='h').contains(&c.to_ascii_lowercase()));
                    let mut number = at + 2;
                    while matches!(tokens.kind(number), Kind::Bold | Kind::Close) {
                        number += 1;
                    }
                    let closed = matches!(tokens.kind(at + 1), Kind::Close | Kind::Stop | Kind::Colon | Kind::Other);
                    if let Some(letter) = letter
                        && closed
                        && matches!(tokens.kind(number), Kind::Number(_))
                    {
                        found.push((letter.to_ascii_lowercase(), number));
                    }
                }
                _ => line_start = false,
            }
        }
        if found.len() >= 2 {
            for &(_, number) in &found {
                self.excluded[number] = true;
            }
            self.options = found;
        }
    }

    /// The number of an option by its letter.
    pub fn option(&self, letter: &str) -> Option<usize> {
        let letter = letter.chars().next().filter(|_| letter.len() == 1)?.to_ascii_lowercase();
        self.options.iter().find(|(option, _)| *option == letter).map(|(_, number)| *number)
    }

    /// Step 2, page 112, 3 significant figures, 12 May.
    fn is_label(&self, at: usize) -> bool {
        let before = at.checked_sub(1).map_or(Meaning::default(), |before| self.tokens.meaning(before));
        let label = before.has(Meaning::LABEL) && !before.has(Meaning::ANSWER);
        let no = label && at.checked_sub(1).is_some_and(|before| self.tokens.slice(before).eq_ignore_ascii_case("no"));
        let hashed = matches!(at.checked_sub(1).map(|before| self.tokens.slice(before)), Some("#" | "§" | "№" | "©"));
        let behind = self.tokens.slice(at + 1);
        let figures = ["significant", "sig", "decimal", "decimals"].iter().any(|word| behind.eq_ignore_ascii_case(word));
        let month = before.has(Meaning::MONTH) && self.tokens.slice(at - 1).len() > 2 || {
            self.tokens.means(at + 1, Meaning::MONTH) && behind.starts_with(char::is_uppercase)
        };
        // The year behind "12 May".
        let year = at >= 2
            && self.tokens.means(at - 1, Meaning::MONTH)
            && self.tokens.slice(at - 1).starts_with(char::is_uppercase);
        (label && !no) || hashed || figures || (month && self.number(at).is_some_and(|n| n.text.len() <= 4)) || year
    }

    /// "not 47", "instead of 47", "rather than 47", "≠ 47".
    fn is_denied(&self, at: usize) -> bool {
        let mut before = at;
        for _ in 0..3 {
            let Some(next) = before.checked_sub(1) else { return false };
            before = next;
            match self.kind(before) {
                Kind::Unequal => return true,
                Kind::Word(meaning) if meaning.has(Meaning::DENIES) => {
                    return !self.tokens.slice(before).eq_ignore_ascii_case("no");
                }
                Kind::Word(meaning) if meaning.has(Meaning::FILLER.with(Meaning::CONTEXT)) => {}
                Kind::Bold | Kind::Quote => {}
                _ => return false,
            }
        }
        false
    }

    /// The prompt's own example behind "like" or "format" in its sentence.
    fn is_quoted_example(&self, at: usize) -> bool {
        let Some(number) = self.number(at) else { return false };
        self.question.is_example(number)
            && (at.saturating_sub(12)..at)
                .rev()
                .take_while(|&before| !matches!(self.kind(before), Kind::Stop | Kind::Line | Kind::Number(_)))
                .any(|before| self.tokens.means(before, Meaning::EXAMPLE))
    }

    fn is_mark(&self, at: usize) -> bool {
        matches!(self.kind(at), Kind::Bold | Kind::Quote | Kind::Check | Kind::Other | Kind::BoxOpen | Kind::BoxClose)
    }

    fn is_unit(&self, at: usize) -> bool {
        matches!(self.kind(at), Kind::Word(meaning) if !meaning.has(NO_UNIT))
    }

    /// The first token behind a number, its marks and its unit, and whether there was a unit.
    fn behind(&self, number: usize) -> (usize, bool) {
        let mut at = number + 1;
        let mut words = 0;
        loop {
            if self.is_mark(at) {
                at += 1;
            } else if words < UNIT_WORDS && self.is_unit(at) && !(words == 0 && self.is_variable(at)) {
                words += 1;
                at += 1;
            } else if words > 0 && self.kind(at) == Kind::Operator('/') && self.is_unit(at + 1) {
                // km/h
                at += 2;
            } else {
                return (at, words > 0);
            }
        }
    }

    /// A letter that touches the number before it (`6x`), or stands for one.
    fn is_variable(&self, at: usize) -> bool {
        matches!(self.kind(at), Kind::Word(_)) && matches!(self.tokens.slice(at), "x" | "y" | "z" | "n" | "a" | "b" | "X") && !self.tokens.is_spaced(at)
    }

    /// True if an operand begins at a token.
    fn is_operand(&self, at: usize) -> bool {
        match self.kind(at) {
            Kind::Number(_) | Kind::Open | Kind::BoxOpen => true,
            Kind::Word(_) => self.tokens.slice(at).len() == 1,
            Kind::Bold => matches!(self.kind(at + 1), Kind::Number(_) | Kind::Open),
            _ => false,
        }
    }

    /// True if an operation goes on behind a number.
    fn operates_behind(&self, number: usize) -> bool {
        if self.is_variable(number + 1) {
            return true;
        }
        let mut at = number + 1;
        while matches!(self.kind(at), Kind::Bold | Kind::Quote) {
            at += 1;
        }
        if self.kind(at) == Kind::Open && !self.tokens.is_spaced(at) && matches!(self.kind(at + 1), Kind::Number(_)) {
            return true;
        }
        let (mut at, has_unit) = self.behind(number);
        while self.kind(at) == Kind::Close {
            at += 1;
        }
        match self.kind(at) {
            // "5 apples - 3 of them red" is an aside.
            Kind::Operator('-') if has_unit && self.tokens.is_spaced(at) && self.tokens.is_spaced(at + 1) => {
                matches!(self.kind(at + 1), Kind::Number(_)) && self.equals_follows(at + 1)
            }
            Kind::Operator('^') => true,
            Kind::Operator(_) => self.is_operand(at + 1) || (self.truncated && at + 1 >= self.tokens.tokens.len()),
            Kind::Word(meaning) if meaning.has(Meaning::OPERATOR) => {
                let next = if self.tokens.slice(at + 1).eq_ignore_ascii_case("by") { at + 2 } else { at + 1 };
                matches!(self.kind(next), Kind::Number(_))
            }
            _ => false,
        }
    }

    fn equals_follows(&self, number: usize) -> bool {
        let (at, _) = self.behind(number);
        self.kind(at) == Kind::Equals
    }

    /// True if an operation stands before a number.
    fn operates_before(&self, number: usize) -> bool {
        let Some(mut at) = number.checked_sub(1) else { return false };
        while matches!(self.kind(at), Kind::Bold | Kind::Quote | Kind::Open | Kind::BoxOpen) {
            match at.checked_sub(1) {
                Some(next) => at = next,
                None => return false,
            }
        }
        match self.kind(at) {
            // A dash between words and a number.
            Kind::Operator('-') => {
                let dash = self.tokens.is_spaced(at) && self.tokens.is_spaced(at + 1);
                let before = at.checked_sub(1).map(|before| self.kind(before));
                let operand = matches!(before, Some(Kind::Number(_) | Kind::Close | Kind::Bold));
                let letter = matches!(before, Some(Kind::Word(_))) && self.tokens.slice(at - 1).len() == 1;
                operand || letter || (!dash && matches!(before, Some(Kind::Word(_))))
                    || (dash && matches!(before, Some(Kind::Word(_))) && self.equals_follows(number))
            }
            Kind::Operator(_) => true,
            Kind::Word(meaning) if meaning.has(Meaning::OPERATOR) => {
                let before = at.checked_sub(1).map(|before| self.kind(before));
                matches!(before, Some(Kind::Number(_) | Kind::Close))
            }
            Kind::Word(_) if self.tokens.slice(at).eq_ignore_ascii_case("by") => {
                at.checked_sub(1).is_some_and(|before| self.tokens.means(before, Meaning::OPERATOR))
            }
            _ => false,
        }
    }

    /// True if words or signs that lead to a result stand before a number.
    pub fn is_result(&self, at: usize, start: usize) -> bool {
        let (rank, cue) = self.cue(at, start);
        rank == Rank::Result && cue != Some(Kind::Colon)
    }

    /// True if words of a unit stand behind a number.
    pub fn has_unit(&self, at: usize) -> bool {
        let word = self.tokens.slice(at + 1);
        self.behind(at).1 && word.len() > 1 && word.is_ascii() && words::scale(word).is_none()
    }

    /// True if a number is all of an expression.
    pub fn is_alone(&self, number: usize) -> bool {
        !self.operates_before(number) && !self.operates_behind(number)
    }

    /// The number that stands alone directly behind a token.
    fn alone_behind(&self, mut at: usize, end: usize) -> Option<usize> {
        at += 1;
        while at < end && (self.is_mark(at) || self.kind(at) == Kind::Open || self.kind(at) == Kind::Line && self.kind(at + 1) != Kind::Line || self.tokens.means(at, Meaning::FILLER)) {
            at += 1;
        }
        (at < end && matches!(self.kind(at), Kind::Number(_)) && !self.operates_behind(at)).then_some(at)
    }

    /// The number that stands alone directly before a token.
    fn alone_before(&self, at: usize, start: usize) -> Option<usize> {
        let mut number = at.checked_sub(1)?;
        let mut words = 0;
        while number > start && (self.is_mark(number) || (self.is_unit(number) && words < UNIT_WORDS)) {
            words += usize::from(self.is_unit(number));
            number -= 1;
        }
        (number >= start && self.is_candidate(number) && !self.operates_before(number)).then_some(number)
    }

    /// True if a token can stand in an equation.
    fn is_mathematical(&self, at: usize) -> bool {
        match self.kind(at) {
            Kind::Number(_) | Kind::Operator(_) | Kind::Open | Kind::Close | Kind::Equals | Kind::Bold | Kind::BoxOpen | Kind::BoxClose => true,
            Kind::Word(meaning) => meaning.has(Meaning::OPERATOR) || self.tokens.slice(at).len() == 1 || !meaning.has(NO_UNIT),
            _ => false,
        }
    }

    /// The result of the equations of a stretch: of the last chain of equal sides, the side that is a number alone, as was asked
    /// for where there is a choice. Also whether the chain is the operation that was asked for.
    fn equation(&self, range: Range<usize>) -> Option<(Stated, bool)> {
        let mut found = None;
        let mut at = range.start;
        while let Some(first) = (at..range.end).find(|&at| self.kind(at) == Kind::Equals) {
            // The left side.
            let mut start = first;
            while start > at && self.is_left_side(start - 1) {
                start -= 1;
            }
            // Where the chain ends.
            let mut last = first;
            let mut end = first + 1;
            while end < range.end && (self.is_mathematical(end) || (self.kind(end) == Kind::Line && end == last + 1)
                || self.tokens.means(end, Meaning::FILLER) && end <= last + 2)
            {
                if self.kind(end) == Kind::Equals {
                    last = end;
                }
                end += 1;
            }
            if let Some(result) = self.chain(start, first, last, end.max(first + 1)) {
                found = Some(result);
            }
            at = end.max(first + 1);
        }
        found
    }

    /// Numbers, operators and what may stand among them on the left: a function's comma, "and" between operands.
    fn is_left_side(&self, at: usize) -> bool {
        match self.kind(at) {
            Kind::Comma => matches!(self.kind(at + 1), Kind::Number(_)) && at > 0 && matches!(self.kind(at - 1), Kind::Number(_)),
            Kind::Word(meaning) if meaning.has(Meaning::AND) => {
                at > 0 && matches!(self.kind(at - 1), Kind::Number(_)) && matches!(self.kind(at + 1), Kind::Number(_))
            }
            Kind::Equals => false,
            _ => self.is_mathematical(at),
        }
    }

    fn chain(&self, start: usize, first: usize, last: usize, end: usize) -> Option<(Stated, bool)> {
        let left: Vec<&Number> = (start..first).filter_map(|at| self.number(at)).collect();
        let asked = self.question.is_asked_operation(&left);
        let sides: Vec<usize> = (first..=last)
            .filter(|&at| self.kind(at) == Kind::Equals)
            .filter_map(|equals| self.alone_behind(equals, end))
            .filter(|&side| self.is_candidate(side))
            .collect();
        // The last side decides whether the chain was finished.
        let last_side = self.alone_behind(last, end);
        if let Some(side) = last_side.filter(|&side| self.is_cut(side)) {
            return Some((Stated::Cut(Some(side)), asked));
        }
        let fits = |&&side: &&usize| self.number(side).is_some_and(|number| self.question.is_in_form(number));
        let in_unit = |&&side: &&usize| self.question.asks_unit(self.tokens.slice(side + 1));
        let percent = |&&side: &&usize| self.question.asks_percent && self.number(side).is_some_and(|number| number.percent);
        if let Some(&side) = sides
            .iter()
            .rev()
            .find(percent)
            .or_else(|| sides.iter().rev().find(in_unit))
            .or_else(|| sides.iter().rev().filter(|_| self.question.instructs).find(fits))
            .or_else(|| sides.last())
        {
            let asked = asked && self.number(side).is_some_and(|number| self.question.is_in_form(number));
            // A chain that goes on with an operation after its last number ends with nothing.
            let open = last_side.is_none() && !sides.is_empty() && self.numbers_follow(last, end) && !asked;
            return Some((if open { Stated::Unevaluated } else { Stated::Number(side) }, asked));
        }
        // `1287 = 744 + 543`
        if self.numbers_follow(last, end)
            && let Some(side) = self.alone_before(first, start)
            && self.number(side).is_some_and(|number| !self.question.gives(number) || self.question.selects)
        {
            let right: Vec<&Number> = (first..end).filter_map(|at| self.number(at)).collect();
            return Some((Stated::Number(side), self.question.is_asked_operation(&right)));
        }
        Some((Stated::Unevaluated, false))
    }

    fn numbers_follow(&self, at: usize, end: usize) -> bool {
        (at..end).any(|at| matches!(self.kind(at), Kind::Number(_)))
    }

    /// How strongly a number is stated by what stands around it, outside of equations.
    fn rank(&self, at: usize, range: &Range<usize>, depth: usize) -> Rank {
        let Some(number) = self.number(at) else { return Rank::Not };
        if !self.is_candidate(at) || !self.is_alone(at) || self.is_of_other_part(at, range) {
            return Rank::Not;
        }
        let (mut rank, cue) = self.cue(at, range.start);
        let (behind, _) = self.behind(at);
        if self.tokens.means(behind, Meaning::TOTALS) && behind < range.end && rank == Rank::Neutral {
            rank = Rank::Result;
        }
        // "Repeat until the number is 0."
        if (range.start..at).any(|at| ["until", "unless", "till"].iter().any(|word| self.tokens.slice(at).eq_ignore_ascii_case(word))) {
            rank = rank.min(Rank::Context);
        }
        if (rank == Rank::Neutral || self.question.looks_up) && self.is_unit(at + 1) && self.question.asks_unit(self.tokens.slice(at + 1)) {
            rank = Rank::Result;
        }
        // "So in 5 hours she covers 400 km."
        let concludes = (range.start..at.min(range.start + 2)).any(|at| self.tokens.means(at, Meaning::CONCLUDES));
        if rank == Rank::Neutral && concludes {
            rank = Rank::Result;
        }
        if depth > 0 {
            rank = rank.min(Rank::Context);
        }
        if self.question.gives(number) && !self.question.selects && cue != Some(Kind::Equals) && !self.is_count(at) {
            // "The reverse of 6 is 6": said of another number, a given one is a result.
            let linked = matches!(cue, Some(Kind::Word(meaning)) if meaning.has(Meaning::LINK));
            let counts = self.question.style.counts && number.text.len() <= 2;
            let said_of = linked && (counts || (range.start..at).any(|before| matches!(self.kind(before), Kind::Number(_))));
            // "Therefore, 6,120 more came": all that the conclusion says.
            let only = concludes && range.clone().filter(|&at| matches!(self.kind(at), Kind::Number(_))).count() == 1;
            let said_of = said_of || (only && !self.question.instructs);
            if self.question.looks_up {
                rank = rank.min(Rank::Neutral);
            } else if !said_of {
                rank = rank.min(Rank::Context);
            }
        }
        if number.percent && !self.question.asks_percent {
            rank = rank.min(Rank::Context);
        }
        if number.percent && self.question.asks_percent && rank == Rank::Neutral {
            rank = Rank::Result;
        }
        // Number words are often mere words, but for those that answer how many.
        if number.spelling == Spelling::Words && rank == Rank::Neutral && number.text.len() < 3 {
            rank = if self.is_count(at) { Rank::Result } else { Rank::Context };
        }
        rank
    }

    /// "none", "no", "once", "twice".
    fn is_count(&self, at: usize) -> bool {
        ["none", "no", "nobody", "nothing", "once", "twice", "thrice"].iter().any(|word| self.tokens.slice(at).eq_ignore_ascii_case(word))
    }

    /// What stands before a number and how it ranks it.
    fn cue(&self, at: usize, start: usize) -> (Rank, Option<Kind>) {
        let mut before = at;
        let mut adverbs = 0;
        while before > start {
            before -= 1;
            match self.kind(before) {
                Kind::Bold | Kind::Quote | Kind::Other | Kind::BoxOpen | Kind::Open => {}
                kind @ (Kind::Equals | Kind::Arrow | Kind::Colon) => return (Rank::Result, Some(kind)),
                kind @ Kind::Word(meaning) => {
                    if meaning.has(Meaning::LINK.with(Meaning::GIVES).with(Meaning::CONCLUDES).with(Meaning::ANSWER)) {
                        return (Rank::Result, Some(kind));
                    }
                    // "a total of 84"
                    let of = self.tokens.slice(before).eq_ignore_ascii_case("of") || self.tokens.slice(before).eq_ignore_ascii_case("de");
                    if of && before > start && self.tokens.means(before - 1, Meaning::TOTALS.with(Meaning::RESULT)) {
                        return (Rank::Result, Some(kind));
                    }
                    // "from 48.2 in 2021 to 53.9"
                    if self.tokens.slice(before).eq_ignore_ascii_case("to")
                        && (start..before).any(|at| self.tokens.slice(at).eq_ignore_ascii_case("from"))
                    {
                        return (Rank::Context, Some(kind));
                    }
                    if meaning.has(Meaning::FILLER) && adverbs < 4 {
                        adverbs += 1;
                        continue;
                    }
                    // "Divide the number by 2", "divisible by 3"
                    let by = self.tokens.slice(before).eq_ignore_ascii_case("by")
                        && (start..before).any(|at| {
                            let word = self.tokens.slice(at);
                            word.len() >= 5 && (word[..word.floor_char_boundary(5)].eq_ignore_ascii_case("divid") || word[..word.floor_char_boundary(5)].eq_ignore_ascii_case("multi") || word[..word.floor_char_boundary(5)].eq_ignore_ascii_case("divis"))
                        });
                    if meaning.has(Meaning::CONTEXT) || by {
                        return (Rank::Context, Some(kind));
                    }
                    if meaning.has(Meaning::RESULT) {
                        return (Rank::Result, Some(kind));
                    }
                    return (Rank::Neutral, Some(kind));
                }
                kind => return (Rank::Neutral, Some(kind)),
            }
        }
        (Rank::Neutral, None)
    }

    /// The remainder where the quotient was asked for, and the other way round.
    fn is_of_other_part(&self, at: usize, range: &Range<usize>) -> bool {
        let question = self.question;
        if question.asks_remainder == question.asks_quotient && !question.asks_remainder {
            return false;
        }
        let mut before = at;
        for _ in 0..4 {
            if before <= range.start {
                return false;
            }
            before -= 1;
            match self.kind(before) {
                Kind::Word(_) => {
                    let word = self.tokens.slice(before).to_lowercase();
                    match word.as_str() {
                        "remainder" | "rest" | "reste" | "resto" | "r" => return !question.asks_remainder,
                        "quotient" => return question.asks_remainder,
                        _ => {}
                    }
                }
                Kind::Number(_) | Kind::Comma | Kind::Stop => return false,
                _ => {}
            }
        }
        false
    }

    /// What a sentence states: the result of its equations or the last of its numbers that are stated most strongly.
    pub fn sentence(&self, range: Range<usize>) -> Sentence {
        let nothing = Sentence { stated: Stated::Nothing, rank: Rank::Not, asked: false };
        let range = self.from_correction(range);
        if let Some(chosen) = self.comparison(&range) {
            return Sentence { stated: Stated::Number(chosen), rank: Rank::Result, asked: true };
        }
        let equation = self.equation(range.clone());
        if let Some(none) = self.counts_none(&range) {
            return Sentence { stated: Stated::Number(none), rank: Rank::Result, asked: false };
        }
        // By rank, and numbers that are not given before those that are.
        let mut best: Option<(Rank, bool, usize)> = None;
        let mut depth = 0usize;
        let mut candidates = 0;
        let mut unevaluated = false;
        let mut elaborates = false;
        for at in range.clone() {
            match self.kind(at) {
                Kind::Open => depth += 1,
                Kind::Close => depth = depth.saturating_sub(1),
                // "He pays 43: 28 for ropes and 15 for hooks."
                Kind::Colon => elaborates |= matches!(best, Some((Rank::Result, true, _))),
                Kind::Number(_) => {
                    let depth = depth + usize::from(elaborates);
                    let rank = if self.is_in_equation(at) { Rank::Not } else { self.rank(at, &range, depth) };
                    candidates += usize::from(rank > Rank::Not);
                    unevaluated |= self.is_candidate(at) && !self.is_alone(at);
                    let new = self.number(at).is_some_and(|number| !self.question.gives(number));
                    if rank > Rank::Not && best.is_none_or(|(most, was_new, _)| (rank, new) >= (most, was_new)) {
                        best = Some((rank, new, at));
                    }
                }
                _ => {}
            }
        }
        // Everything in brackets: the depth was no aside.
        let result = match equation {
            Some((Stated::Number(side), asked)) => match best {
                // "= 6.94, round up → 7 boxes": a later result of the same sentence.
                Some((Rank::Result, _, at)) if at > side && !self.is_reason_before(side, at) => {
                    Sentence { stated: Stated::Number(at), rank: Rank::Result, asked }
                }
                _ => Sentence { stated: Stated::Number(side), rank: Rank::Result, asked },
            },
            Some((cut @ Stated::Cut(_), asked)) => Sentence { stated: cut, rank: Rank::Result, asked },
            _ => match best {
                Some((rank, _, at)) => Sentence { stated: Stated::Number(at), rank, asked: false },
                None if unevaluated || equation.is_some() => Sentence { stated: Stated::Unevaluated, ..nothing },
                None => return nothing,
            },
        };
        let result = match result.stated {
            Stated::Number(at) if result.rank == Rank::Result && self.names_what_was_asked(&range, at) => Sentence { asked: true, ..result },
            _ => result,
        };
        if let Stated::Number(at) = result.stated {
            if self.is_cut(at) {
                return Sentence { stated: Stated::Cut(Some(at)), ..result };
            }
            let behind = self.question.instructs.then(|| self.rival_behind(at, &range)).flatten().filter(|&other| other != at);
            if let Some(other) = behind.or_else(|| self.rival(at, &range, candidates)) {
                return Sentence { stated: Stated::Rivals(other, at), ..result };
            }
        }
        result
    }

    /// "None of the digits is a 5", where a number of things was asked for.
    fn counts_none(&self, range: &Range<usize>) -> Option<usize> {
        let first = range.clone().find(|&at| matches!(self.kind(at), Kind::Number(_) | Kind::Word(_)))?;
        (self.number(first)?.text == "0" && self.is_count(first)).then_some(first)
    }

    /// "The binary representation of 12 is", where a binary number was asked for.
    fn names_what_was_asked(&self, range: &Range<usize>, number: usize) -> bool {
        let linked = matches!(self.cue(number, range.start).1, Some(Kind::Word(meaning)) if meaning.has(Meaning::LINK));
        linked
            && self.number(number).is_some_and(|number| self.question.is_in_form(number))
            && (range.start..number).any(|at| matches!(self.kind(at), Kind::Word(_)) && self.question.names_target(self.tokens.slice(at)))
    }

    /// True if a number stands on a side of an equation.
    fn is_in_equation(&self, at: usize) -> bool {
        let (behind, _) = self.behind(at);
        let mut before = at;
        while before > 0 && (self.is_mark(before - 1) || self.kind(before - 1) == Kind::Open || self.tokens.means(before - 1, Meaning::FILLER)) {
            before -= 1;
        }
        self.kind(behind) == Kind::Equals || (before > 0 && self.kind(before - 1) == Kind::Equals)
    }

    /// "because" and the like between two tokens.
    fn is_reason_before(&self, from: usize, to: usize) -> bool {
        (from..to).any(|at| self.tokens.means(at, Meaning::REASON) || self.kind(at) == Kind::Open)
    }

    /// The part behind the last correction, if a number stands there.
    pub fn from_correction(&self, range: Range<usize>) -> Range<usize> {
        let corrected = range.clone().rev().find(|&at| {
            let no = self.tokens.slice(at).eq_ignore_ascii_case("no") && self.kind(at + 1) == Kind::Comma;
            let but = self.tokens.slice(at).eq_ignore_ascii_case("but") && range.clone().take_while(|&before| before < at).any(|before| self.tokens.means(before, Meaning::DENIES));
            let corrects = self.tokens.means(at, Meaning::CORRECTS) || no || but;
            corrects && (at..range.end).any(|behind| self.is_candidate(behind))
                && (range.start..at).any(|before| matches!(self.kind(before), Kind::Number(_)))
        });
        corrected.map_or(range.start, |at| at + 1)..range.end
    }

    /// A number beside the chosen one that has the same standing: "84 or 85", "2 and 3".
    fn rival(&self, at: usize, range: &Range<usize>, candidates: usize) -> Option<usize> {
        let mut before = at.checked_sub(1)?;
        let either = range.clone().any(|at| self.tokens.means(at, Meaning::SEVERAL));
        while before > range.start && (self.is_mark(before) || self.tokens.means(before, Meaning::FILLER)) {
            before -= 1;
        }
        let joins = |at: usize| self.tokens.means(at, Meaning::OR) || (self.tokens.means(at, Meaning::AND) && candidates <= 2);
        let listed = either && self.kind(before) == Kind::Comma;
        if before <= range.start || !(joins(before) || listed) {
            return None;
        }
        let mut number = before - 1;
        let mut words = 0;
        while number > range.start && (self.is_mark(number) || self.kind(number) == Kind::Comma || (self.is_unit(number) && words < UNIT_WORDS)) {
            words += usize::from(self.is_unit(number));
            number -= 1;
        }
        let different = self.is_candidate(number) && self.is_alone(number) && !self.same(number, at);
        // A unit of its own makes it another spelling: "1 hour or 60 minutes".
        let both_units = self.is_unit(number + 1) && self.is_unit(at + 1) && !self.tokens.slice(number + 1).eq_ignore_ascii_case(self.tokens.slice(at + 1));
        if !different || both_units {
            return None;
        }
        let given = |at: usize| self.number(at).is_some_and(|number| self.question.gives(number));
        let and = self.tokens.means(before, Meaning::AND);
        // "6 and 7 apples" in a story is no list of guesses; two numbers and nothing else are.
        let bare = range.clone().filter(|&at| matches!(self.kind(at), Kind::Word(_))).count() <= 2;
        (given(number) == given(at) && (!and || bare)).then_some(number)
    }

    /// Of two given numbers the one that a comparison makes the extreme that was asked for: "9.11 is smaller than 9.9".
    fn comparison(&self, range: &Range<usize>) -> Option<usize> {
        let extreme = self.question.extreme?;
        let compares = |&at: &usize| match self.kind(at) {
            Kind::Less | Kind::Greater => true,
            Kind::Word(meaning) => meaning.has(Meaning::UP.with(Meaning::DOWN)),
            _ => false,
        };
        range.clone().filter(compares).find_map(|at| self.compared(at, range, extreme))
    }

    /// What the comparison at a token says of the numbers around it.
    fn compared(&self, at: usize, range: &Range<usize>, extreme: Extreme) -> Option<usize> {
        let up = match self.kind(at) {
            Kind::Greater => true,
            Kind::Less => false,
            _ => self.tokens.means(at, Meaning::UP),
        };
        let denied = (range.start..at).any(|before| self.tokens.means(before, Meaning::DENIES));
        let subject = (range.start..at).rev().find(|&at| self.is_candidate(at))?;
        let number = self.number(subject)?;
        if !self.question.gives(number) || denied {
            return None;
        }
        let than = (at..range.end).find(|&at| self.is_candidate(at) && self.number(at).is_some_and(|number| self.question.gives(number)));
        let wants_up = extreme == Extreme::Largest;
        if up == wants_up { Some(subject) } else { than.filter(|&other| !self.same(other, subject)) }
    }

    /// What stands behind words that say that this is the answer, up to the end of its sentence.
    pub fn marked(&self, range: Range<usize>) -> Stated {
        let range = self.from_correction(range);
        let Some(first) = range.clone().find(|&at| self.is_candidate(at)) else {
            let number = range.clone().any(|at| matches!(self.kind(at), Kind::Number(_)));
            return if number { Stated::Unevaluated } else { Stated::Nothing };
        };
        // What is said in brackets or as a reason is not the statement.
        let mut end = range.end;
        for at in first + 1..range.end {
            let aside = self.kind(at) == Kind::Open && self.tokens.is_spaced(at) && !matches!(self.kind(at - 1), Kind::Operator(_) | Kind::Equals | Kind::Comma);
            if aside || self.tokens.means(at, Meaning::REASON) {
                end = at;
                break;
            }
        }
        let range = range.start..end;
        let equation = self.equation(range.clone());
        let mut stated = match equation {
            Some((Stated::Number(side), _)) if self.is_in_equation(first) || !self.is_alone(first) || side == first => Some(side),
            Some((cut @ Stated::Cut(_), _)) => return cut,
            _ => self.is_alone(first).then_some(first),
        };
        if stated.is_none() && equation.is_none_or(|(stated, _)| stated == Stated::Unevaluated) {
            // "26 × 14, which gives 364" is still a result; "64891-91064" is none.
            let later = range.clone().filter(|&at| at > first && self.rank(at, &range, 0) == Rank::Result && !self.is_in_equation(at)).last();
            match later {
                Some(later) => stated = Some(later),
                None => return Stated::Unevaluated,
            }
        }
        let Some(mut at) = stated else { return Stated::Nothing };
        // The sentence goes on to another result: "12 apples per day, for 7 days that is 84".
        for later in at + 1..range.end {
            if self.is_candidate(later) && !self.is_in_equation(later) && self.rank(later, &range, 0) == Rank::Result && self.is_new_result(at, later) {
                at = later;
            }
        }
        if let Some((Stated::Number(side), _)) = equation
            && side > at
            && self.is_new_result(at, side)
        {
            at = side;
        }
        if self.is_cut(at) {
            return Stated::Cut(Some(at));
        }
        match self.rival_behind(at, &range) {
            Some(other) if other == at => Stated::Cut(None),
            Some(other) => Stated::Rivals(at, other),
            None => Stated::Number(at),
        }
    }

    /// A later number of a statement replaces an earlier one where a verb or a conclusion leads to it.
    fn is_new_result(&self, from: usize, to: usize) -> bool {
        let is_leading = |at: usize| {
            self.tokens.means(at, Meaning::GIVES.with(Meaning::CONCLUDES)) || matches!(self.kind(at), Kind::Arrow)
                || ["that", "it", "this", "which"].iter().any(|word| self.tokens.slice(at).eq_ignore_ascii_case(word)) && self.tokens.means(at + 1, Meaning::LINK.with(Meaning::GIVES))
        };
        (from..to).any(is_leading) && !(from..to).any(|at| self.tokens.means(at, Meaning::OR) || self.kind(at) == Kind::Open)
    }

    /// "84 or 85" behind a statement's number.
    fn rival_behind(&self, at: usize, range: &Range<usize>) -> Option<usize> {
        let (mut next, has_unit) = self.behind(at);
        while self.kind(next) == Kind::Comma {
            next += 1;
        }
        let or = self.tokens.means(next, Meaning::OR);
        let and = self.tokens.means(next, Meaning::AND);
        let list = self.kind(next - 1) == Kind::Comma && matches!(self.kind(next), Kind::Number(_));
        if !(or || and || list) || next >= range.end {
            return None;
        }
        let mut other = if list { next } else { next + 1 };
        while self.is_mark(other) || self.tokens.means(other, Meaning::FILLER) {
            other += 1;
        }
        // The end of the text cuts the second.
        if other >= self.tokens.tokens.len() && self.truncated {
            return Some(at);
        }
        let different = other < range.end && self.is_candidate(other) && self.is_alone(other) && !self.same(other, at);
        let (end, other_unit) = self.behind(other);
        // "5 apples and 3 pears" and "1 hour or 60 minutes" are told apart by their units.
        let units = has_unit && other_unit && !self.tokens.slice(at + 1).eq_ignore_ascii_case(self.tokens.slice(other + 1));
        let finished = end >= range.end || matches!(self.kind(end), Kind::Stop | Kind::Line | Kind::Close | Kind::BoxClose | Kind::Comma);
        (different && !(units && or) && (or || finished)).then_some(other)
    }
}
