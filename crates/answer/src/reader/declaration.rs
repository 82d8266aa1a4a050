//! Statements: boxes, tags, announcements, bold type, lines of a number alone, plain sentences.
use std::ops::Range;

use super::Form;
use super::decide::{State, Statement, Strength};
use super::numeral::Spelling;
use super::piece::{LONGEST, Piece};
use super::reading::Mark;
use super::statement::{Rank, Stated};
use super::token::{Kind, Tokens};
use super::vocabulary::Meaning;

impl<'a> State<'a> {
    /// Statements that say themselves that they are the answer, in order.
    pub(super) fn declarations(&self, piece: &Piece, following: &[Piece]) -> Vec<Statement> {
        let mut found = Vec::new();
        let range = piece.range.clone();
        let mut at = range.start;
        while at < range.end {
            let mut next = at + 1;
            match self.kind(at) {
                Kind::BoxOpen => {
                    let end = self.matching(at, Kind::BoxOpen, Kind::BoxClose);
                    if let Some(stated) = self.boxed(at + 1..end) {
                        found.push(Statement { stated, strength: Strength::Declared, mark: Mark::Boxed, at });
                    }
                    next = end.max(next);
                }
                Kind::AnswerOpen => {
                    let end = self.matching(at, Kind::AnswerOpen, Kind::AnswerClose);
                    let stated = self.statements.marked(at + 1..end);
                    found.push(Statement { stated, strength: Strength::Declared, mark: Mark::Marker, at });
                    next = end.max(next);
                }
                Kind::Hashes => {
                    let stated = self.statements.marked(at + 1..range.end);
                    found.push(Statement { stated, strength: Strength::Declared, mark: Mark::Marker, at });
                    next = range.end;
                }
                Kind::Word(meaning) if meaning.has(Meaning::ANSWER.with(Meaning::RESULT)) => {
                    if let Some((statement, end)) = self.declared(at, piece, following, meaning) {
                        found.push(statement);
                        next = end.max(next);
                    }
                }
                Kind::Word(meaning) if meaning.has(Meaning::LINK) => {
                    if let Some(statement) = self.confirmed(at, &range) {
                        found.push(statement);
                    }
                }
                Kind::Bold => {
                    let end = (at + 1..range.end).find(|&end| self.kind(end) == Kind::Bold);
                    if let Some(end) = end {
                        if let Some(statement) = self.bold(at, end) {
                            found.push(statement);
                            next = end + 1;
                        } else if !(at + 1..end).any(|at| self.tokens.means(at, Meaning::ANSWER.with(Meaning::RESULT)))
                        {
                            next = end + 1;
                        }
                    }
                }
                _ => {}
            }
            at = next;
        }
        found
    }

    /// The token that closes what opens at `at`; the end of the text where nothing does.
    pub(super) fn matching(&self, at: usize, open: Kind, close: Kind) -> usize {
        let mut depth = 0usize;
        let limit = (at + 2 * LONGEST).min(self.tokens.tokens.len());
        for inner in at..limit {
            let kind = self.kind(inner);
            if kind == open {
                depth += 1;
            } else if kind == close {
                depth -= 1;
                if depth == 0 {
                    return inner;
                }
            }
        }
        limit
    }

    /// Reads the content of a box; none where it is empty.
    pub(super) fn boxed(&self, range: Range<usize>) -> Option<Stated> {
        // A box that the budget cut states nothing.
        if self.truncated && range.end >= self.tokens.tokens.len() && self.kind(range.end) != Kind::BoxClose {
            return Some(Stated::Cut(None));
        }
        let sentence = self.statements.sentence(range.clone());
        match sentence.stated {
            Stated::Number(_) | Stated::Rivals(..) if sentence.rank > Rank::Context => {
                Some(self.listed(range, sentence.stated))
            }
            _ => match self.statements.marked(range) {
                Stated::Nothing => None,
                stated => Some(stated),
            },
        }
    }

    /// Two numbers with a comma between them in a box are a list.
    pub(super) fn listed(&self, range: Range<usize>, stated: Stated) -> Stated {
        let Stated::Number(at) = stated else { return stated };
        let comma = at.checked_sub(1).filter(|&before| before > range.start && self.kind(before) == Kind::Comma);
        match comma
            .and_then(|comma| comma.checked_sub(1))
            .filter(|&other| other >= range.start && self.statements.is_candidate(other))
        {
            Some(other) if self.statements.is_alone(other) => Stated::Rivals(other, at),
            _ => stated,
        }
    }

    /// "The answer is", "Answer:", "final result", `"answer":` and what stands behind them; also the first token behind.
    pub(super) fn declared(
        &self,
        at: usize,
        piece: &Piece,
        following: &[Piece],
        meaning: Meaning,
    ) -> Option<(Statement, usize)> {
        let is_answer = meaning.has(Meaning::ANSWER);
        let sought = at.checked_sub(1).is_some_and(|one| {
            let two = one.saturating_sub(1);
            [one, two]
                .into_iter()
                .any(|before| before >= piece.range.start && self.tokens.means(before, Meaning::SEEKS))
        });
        let end = piece.range.end;
        // How far the number may stand behind, and whether something led to it.
        let mut next = at + 1;
        let mut led = false;
        let mut unknown = 0;
        let mut of = false;
        while next < end {
            match self.kind(next) {
                Kind::Number(_) if of && !led => {}
                Kind::Number(_) | Kind::BoxOpen | Kind::AnswerOpen => break,
                Kind::Colon | Kind::Equals | Kind::Arrow => led = true,
                Kind::Word(meaning) if meaning.has(Meaning::LINK) => led = true,
                Kind::Word(meaning) if meaning.has(Meaning::ANSWER.with(Meaning::RESULT)) && !led => return None,
                Kind::Word(meaning) if meaning.has(Meaning::DENIES.with(Meaning::EXAMPLE).with(Meaning::OR)) => {}
                Kind::Word(meaning) if meaning.has(Meaning::CONTEXT) || self.is_to(next) => {
                    // "The answer to 744 + 543 is"
                    if led {
                        unknown += 1;
                    } else {
                        of = true;
                    }
                }
                Kind::Word(meaning)
                    if meaning
                        .has(Meaning::FILLER.with(Meaning::CONCLUDES).with(Meaning::MINUS).with(Meaning::GIVES)) => {}
                Kind::Word(_) if self.tokens.slice(next).len() == 1 => {}
                Kind::Word(_) => {
                    if led {
                        unknown += 2;
                    } else {
                        unknown += 1;
                    }
                }
                Kind::Operator(_) | Kind::Comma if !of => unknown += 2,
                _ => {}
            }
            if unknown > 3 {
                return None;
            }
            next += 1;
        }
        if sought && !led {
            return None;
        }
        // "The correct option is C."
        if is_answer
            && next >= end
            && led
            && let Some(number) = (at + 1..end).rev().find_map(|at| self.statements.option(self.tokens.slice(at)))
        {
            let statement =
                Statement { stated: Stated::Number(number), strength: Strength::Declared, mark: Mark::Marker, at };
            return Some((statement, end));
        }
        let label = is_answer || piece.begins_line && self.is_first_word(at, piece) || self.is_key(at);
        let strength = if is_answer {
            Strength::Declared
        } else if label {
            // Of a story's labels the one that the question names: "Sum: 60", "Mean: 20".
            let named = self.question.instructs || self.question.mentions(self.tokens.slice(at));
            if named { Strength::Shown } else { Strength::Result }
        } else {
            return None;
        };
        if next < end {
            // "The total weight is" is a sentence like others, "Total: 43" a label.
            if !is_answer && !(at + 1..next).any(|at| self.kind(at) == Kind::Colon) && !self.is_key(at) {
                return None;
            }
            let follows = is_answer && next <= at + 3 && unknown == 0;
            if !(led || follows) {
                return None;
            }
            let range = self.up_to_next_declaration(next, end, is_answer);
            let stated = self.statements.marked(range.clone());
            return Some((Statement { stated, strength, mark: Mark::Marker, at }, range.end));
        }
        // Nothing but the words on this line: the next one has the number. A heading "Solution" has the working behind it.
        let working = ["solution", "lösung", "solución", "solução", "soluzione"]
            .iter()
            .any(|word| self.tokens.slice(at).eq_ignore_ascii_case(word));
        let bare = is_answer && (led || unknown == 0) && !sought && !working;
        let line_ends = matches!(self.kind(end), Kind::Line | Kind::Rule) || self.kind(end) == Kind::Stop && led;
        if !(bare && line_ends && unknown <= 1) {
            return None;
        }
        let next = following.iter().find(|piece| !piece.range.is_empty())?;
        let short =
            self.words(next).count() <= 6 || (self.is_mathematical_line(next) && self.has_number(next.range.clone()));
        if !short || next.asks {
            return None;
        }
        let stated = self.boxed(next.range.clone())?;
        Some((Statement { stated, strength, mark: Mark::Marker, at }, end))
    }

    pub(super) fn is_to(&self, at: usize) -> bool {
        self.tokens.slice(at).eq_ignore_ascii_case("to")
    }

    pub(super) fn is_mathematical_line(&self, piece: &Piece) -> bool {
        self.words(piece).count() <= 2
    }

    pub(super) fn is_first_word(&self, at: usize, piece: &Piece) -> bool {
        self.words(piece)
            .take_while(|&word| word < at)
            .all(|word| self.tokens.means(word, Meaning::FILLER.with(Meaning::CONCLUDES).with(Meaning::RESULT)))
    }

    /// `"result":`
    pub(super) fn is_key(&self, at: usize) -> bool {
        at > 0
            && self.kind(at - 1) == Kind::Quote
            && self.kind(at + 1) == Kind::Quote
            && self.kind(at + 2) == Kind::Colon
    }

    /// A statement reaches to the next one, and within JSON to the next key.
    pub(super) fn up_to_next_declaration(&self, from: usize, end: usize, is_answer: bool) -> Range<usize> {
        let stop = (from + 1..end).find(|&at| {
            let key = self.kind(at) == Kind::Comma
                && self.kind(at + 1) == Kind::Quote
                && matches!(self.kind(at + 2), Kind::Word(_));
            let again = is_answer
                && self.tokens.means(at, Meaning::ANSWER)
                && self.has_number(at..end)
                && self.has_number(from..at)
                && self.tokens.means(at + 1, Meaning::LINK);
            key || again || self.kind(at) == Kind::Bar && self.has_number(from..at)
        });
        from..stop.unwrap_or(end)
    }

    /// "17 is the answer", "so 4207 is correct".
    pub(super) fn confirmed(&self, at: usize, range: &Range<usize>) -> Option<Statement> {
        let mut word = at + 1;
        while word < range.end
            && (self.tokens.means(word, Meaning::FILLER) && !self.tokens.means(word, Meaning::CONFIRMS)
                || self.kind(word) == Kind::Bold)
        {
            word += 1;
        }
        if word >= range.end || !self.tokens.means(word, Meaning::CONFIRMS) {
            return None;
        }
        // Nothing else behind it: "is the right number of" is no confirmation.
        let number =
            (range.start..at).rev().find(|&at| !matches!(self.kind(at), Kind::Bold | Kind::Quote | Kind::Close))?;
        let alone = self.statements.is_candidate(number) && self.statements.is_alone(number);
        alone.then_some(Statement {
            stated: Stated::Number(number),
            strength: Strength::Declared,
            mark: Mark::Marker,
            at: number,
        })
    }

    /// Bold type around a number.
    pub(super) fn bold(&self, open: usize, close: usize) -> Option<Statement> {
        let range = open + 1..close;
        let words = range.clone().filter(|&at| matches!(self.kind(at), Kind::Word(_))).count();
        if words > 8 || self.kind(close - 1) == Kind::Colon || self.kind(close + 1) == Kind::Colon {
            return None;
        }
        let sentence = self.statements.sentence(range.clone());
        let at = match sentence.stated {
            Stated::Number(at) => at,
            _ => return None,
        };
        // An operand in bold type is one still.
        if !self.statements.is_alone(at) && words == 0 {
            return None;
        }
        let given = self.statements.is_given(at) && !self.question.selects;
        let strength = if given { Strength::Said } else { Strength::Shown };
        Some(Statement { stated: Stated::Number(at), strength, mark: Mark::Bold, at: open })
    }

    /// Reads the statement of a sentence that does not say that it is the answer.
    pub(super) fn sentence(&self, piece: &Piece, first: bool) -> Option<Statement> {
        let range = piece.range.clone();
        if let Some(statement) = self.by_itself(piece, first) {
            return Some(statement);
        }
        let table = range.clone().filter(|&at| self.kind(at) == Kind::Bar).count() >= 2;
        let range = if table { self.last_cell(&range) } else { range };
        let sentence = self.statements.sentence(range.clone());
        let mut strength = match sentence.rank {
            _ if sentence.asked => Strength::Shown,
            Rank::Result => Strength::Result,
            Rank::Neutral => Strength::Said,
            Rank::Context | Rank::Not => Strength::Mentioned,
        };
        if table && matches!(sentence.stated, Stated::Number(_)) {
            strength = strength.max(Strength::Result);
        }
        if let Stated::Number(at) = sentence.stated {
            let number = self.statements.number(at)?;
            let given = self.statements.is_given(at) && !self.question.selects;
            if given && (sentence.rank < Rank::Neutral || sentence.rank < Rank::Result && !self.question.looks_up) {
                return None;
            }
            // "A quarter is one of four parts"
            if number.spelling == Spelling::Words && sentence.rank < Rank::Neutral {
                return None;
            }
            if self.question.instructs && sentence.rank < Rank::Neutral {
                return None;
            }
            // An instruction asks for a number, not for a number of things: "It has 4 digits."
            let counted = self.statements.has_unit(at) && !self.question.style.counts && !sentence.asked;
            if self.question.instructs && counted && !self.question.asks_digits && !has_equation(self.tokens, &range) {
                return None;
            }
            // To an instruction a number in another form that nothing makes a result is no answer.
            if self.question.instructs
                && strength <= Strength::Said
                && !self.question.is_in_form(number)
                && self.question.form != Form::Integer
            {
                return None;
            }
        }
        (sentence.stated != Stated::Nothing).then_some(Statement {
            stated: sentence.stated,
            strength,
            mark: Mark::Sentence,
            at: range.start,
        })
    }

    /// The last cell of a table's row that holds something.
    pub(super) fn last_cell(&self, range: &Range<usize>) -> Range<usize> {
        let mut end = range.end;
        while end > range.start && !matches!(self.kind(end - 1), Kind::Number(_) | Kind::Word(_)) {
            end -= 1;
        }
        let start = (range.start..end).rev().find(|&at| self.kind(at) == Kind::Bar).map_or(range.start, |bar| bar + 1);
        start..end
    }

    /// A number that is all of its line, or with which a completion begins.
    pub(super) fn by_itself(&self, piece: &Piece, first: bool) -> Option<Statement> {
        let statements = self.statements;
        if !piece.begins_line {
            return None;
        }
        let mut at = piece.range.start;
        while at < piece.range.end
            && matches!(
                self.kind(at),
                Kind::Bold
                    | Kind::Quote
                    | Kind::Open
                    | Kind::Arrow
                    | Kind::Equals
                    | Kind::Bullet
                    | Kind::Heading
                    | Kind::Colon
                    | Kind::Bar
                    | Kind::Other
            )
        {
            at += 1;
        }
        if !statements.is_candidate(at) || at >= piece.range.end {
            return None;
        }
        let mark = Mark::OnlyNumber;
        let statement = |stated| Some(Statement { stated, strength: Strength::Shown, mark, at });
        let mut end = at + 1;
        let mut words = 0;
        while end < piece.range.end {
            match self.kind(end) {
                Kind::Bold | Kind::Quote | Kind::Close | Kind::Check | Kind::Bar | Kind::Other => {}
                Kind::Word(_) if words < 3 => words += 1,
                _ => break,
            }
            end += 1;
        }
        // Words behind it are its unit where the line ends: "61 years old together." may begin a story.
        let line_ends = matches!(self.kind(piece.range.end), Kind::Line | Kind::End | Kind::Rule)
            || matches!(self.kind(piece.range.end + 1), Kind::Line | Kind::End | Kind::Rule);
        let whole = end == piece.range.end && (words == 0 || line_ends)
            || self.kind(end) == Kind::Open && self.tokens.is_spaced(end);
        if whole && statements.is_alone(at) {
            let verb = (at..end).any(|at| {
                self.tokens.means(at, Meaning::LINK.with(Meaning::GIVES).with(Meaning::UP).with(Meaning::DOWN))
            });
            if verb {
                return None;
            }
            if statements.is_cut(at) {
                return statement(Stated::Cut(Some(at)));
            }
            return statement(Stated::Number(at));
        }
        // Numbers and nothing else: one said again and again, or a list of guesses.
        let numbers: Vec<usize> = piece.range.clone().filter(|&at| matches!(self.kind(at), Kind::Number(_))).collect();
        if numbers.len() >= 2 && piece.range.clone().all(|at| matches!(self.kind(at), Kind::Number(_) | Kind::Comma)) {
            let whole: Vec<usize> = numbers.into_iter().filter(|&at| !statements.is_cut(at)).collect();
            let text = |at: usize| statements.number(at).map(|number| number.text.as_str());
            let other = whole.iter().copied().find(|&other| text(other) != text(at));
            return statement(other.map_or(Stated::Number(at), |other| Stated::Rivals(at, other)));
        }
        // "2 and 3", "84 or 85": a list of guesses, unless it is the question's own pair.
        let joint = self.tokens.means(at + 1, Meaning::AND.with(Meaning::OR)) || self.kind(at + 1) == Kind::Comma;
        let pair = joint && statements.is_candidate(at + 2) && matches!(self.kind(at + 2), Kind::Number(_));
        let ends = at + 3 >= piece.range.end;
        if pair && ends {
            let given = |at: usize| statements.is_given(at);
            if given(at) && given(at + 2) {
                return statement(Stated::Unevaluated);
            }
            return statement(Stated::Rivals(at, at + 2));
        }
        // A raw completion goes on behind the "=" of its prompt.
        if first && self.question.open_ended && statements.is_alone(at) {
            let echo =
                self.tokens.means(at + 1, Meaning::AND.with(Meaning::OPERATOR)) || self.kind(at + 1) == Kind::Equals;
            let behind = at + 1;
            if !echo
                && matches!(
                    self.kind(behind),
                    Kind::Comma | Kind::Word(_) | Kind::Semicolon | Kind::Colon | Kind::Question | Kind::Open
                )
            {
                let verb =
                    self.tokens.means(behind, Meaning::LINK.with(Meaning::GIVES).with(Meaning::UP).with(Meaning::DOWN));
                if !verb {
                    return statement(Stated::Number(at));
                }
            }
        }
        None
    }
}

fn has_equation(tokens: &Tokens<'_>, range: &Range<usize>) -> bool {
    range.clone().any(|at| matches!(tokens.kind(at), Kind::Equals))
}
