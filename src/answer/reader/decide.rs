//! The last commitment of a completion: statements in order, each with how strongly it says that it is the answer.
use std::ops::Range;

use super::numeral::Spelling;
use super::question::Question;
use super::reading::{Answer, Mark, NoAnswer, Reading};
use super::statement::{Rank, Stated, Statements};
use super::token::{Kind, Tokens};
use super::value;
use super::vocabulary::Meaning;
use super::words;
use super::Form;

/// How strongly a statement says that it is the answer, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
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
struct Statement {
    stated: Stated,
    strength: Strength,
    mark: Mark,
    /// The token at which it begins.
    at: usize,
}

/// A sentence: a range of tokens.
#[derive(Debug, Clone)]
struct Piece {
    range: Range<usize>,
    /// It ends with a question mark.
    asks: bool,
    /// It begins a line.
    begins_line: bool,
    /// A rule or a heading stands before it.
    heading: bool,
    after_rule: bool,
}

/// Longest sentence, in tokens: longer ones are divided, so that no text takes more than linear time.
const LONGEST: usize = 300;

/// Phrases that say that there is no answer.
const UNDETERMINED: [&str; 12] = [
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
        contested: None,
        rivals: Vec::new(),
        unevaluated: false,
        cut: false,
        restated: false,
        looped: false,
        ended: false,
        last_piece: 0,
    };
    state.follow(&pieces);
    state.finish(&pieces)
}

/// Divides a text into sentences.
fn pieces(tokens: &Tokens<'_>) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut start = 0;
    let (mut begins_line, mut after_rule) = (true, false);
    for at in 0..=tokens.tokens.len() {
        let kind = if at < tokens.tokens.len() { tokens.kind(at) } else { Kind::Line };
        let ends = match kind {
            Kind::Line | Kind::Rule | Kind::Program | Kind::End | Kind::Stop | Kind::Question | Kind::Semicolon => true,
            _ => at - start >= LONGEST,
        };
        if !ends {
            continue;
        }
        if at > start {
            let heading = matches!(tokens.kind(start), Kind::Heading);
            pieces.push(Piece { range: start..at, asks: kind == Kind::Question, begins_line, heading, after_rule });
            begins_line = false;
        }
        if matches!(kind, Kind::Line | Kind::Rule | Kind::Program | Kind::End) {
            begins_line = true;
        }
        after_rule |= kind == Kind::Rule;
        // What is divided for its length loses nothing.
        let divided = !matches!(
            kind,
            Kind::Line | Kind::Rule | Kind::Program | Kind::End | Kind::Stop | Kind::Question | Kind::Semicolon
        );
        start = if divided { at } else { at + 1 };
    }
    pieces
}

struct State<'a> {
    question: &'a Question,
    tokens: &'a Tokens<'a>,
    statements: &'a Statements<'a>,
    truncated: bool,
    best: Option<Statement>,
    /// What was said was withdrawn, and what follows replaces it.
    reopened: bool,
    /// Two statements of equal standing, neither withdrawn.
    contested: Option<(usize, usize)>,
    /// Tokens of other numbers that were stated.
    rivals: Vec<usize>,
    unevaluated: bool,
    cut: bool,
    /// The last conclusion says only the question again.
    restated: bool,
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
            if self.is_question_or_guess(piece) {
                continue;
            }
            if self.restates(piece) {
                self.restated = true;
                continue;
            }
            let aside = has_best && (checking || self.is_aside(piece));
            if has_best && self.corrects(piece) {
                self.reopened = true;
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
                if has_best && piece.after_rule && (statement.strength < Strength::Shown || statement.mark == Mark::OnlyNumber) {
                    continue;
                }
                self.looped |= self.says_again(piece, &statement, pieces);
                self.take(statement);
            }
        }
    }

    fn kind(&self, at: usize) -> Kind {
        self.tokens.kind(at)
    }

    fn words(&self, piece: &Piece) -> impl Iterator<Item = usize> + 'a {
        let tokens = self.tokens;
        piece.range.clone().filter(move |&at| matches!(tokens.kind(at), Kind::Word(_)))
    }

    fn has_number(&self, range: Range<usize>) -> bool {
        range.into_iter().any(|at| matches!(self.kind(at), Kind::Number(_)))
    }

    /// A question, a hypothesis, a list of guesses: nothing is stated there.
    fn is_question_or_guess(&self, piece: &Piece) -> bool {
        if piece.asks {
            // `744+543=? 1287` is divided at the mark, what follows it is read.
            return true;
        }
        let has = |word: &str| self.words(piece).any(|at| self.tokens.slice(at).eq_ignore_ascii_case(word));
        let hypothetical = self.words(piece).any(|at| self.tokens.means(at, Meaning::IF)) && (has("would") || has("were") || has("could"));
        hypothetical
    }

    /// True if a line was there before with the same statement.
    fn says_again(&self, piece: &Piece, statement: &Statement, pieces: &[Piece]) -> bool {
        let Some(best) = self.best.filter(|_| matches!(statement.stated, Stated::Number(_))) else { return false };
        let text = |piece: &Piece| {
            let (first, last) = (piece.range.start, piece.range.end - 1);
            self.tokens.tokens.get(first).zip(self.tokens.tokens.get(last)).map(|(first, last)| &self.tokens.text[first.start..last.end])
        };
        let earlier = pieces.partition_point(|piece| piece.range.end <= best.at);
        piece.begins_line && pieces.get(earlier).is_some_and(|earlier| earlier.range.start != piece.range.start && text(earlier) == text(piece))
    }

    /// A conclusion of nothing but the question's own numbers and words.
    fn restates(&self, piece: &Piece) -> bool {
        if !self.words(piece).take(2).any(|at| self.tokens.means(at, Meaning::CONCLUDES)) || self.question.selects {
            return false;
        }
        let numbers: Vec<_> = piece.range.clone().filter_map(|at| self.statements.number(at)).collect();
        if numbers.len() < 2 || numbers.iter().any(|number| !self.question.gives(number)) {
            return false;
        }
        let words: Vec<usize> = self.words(piece).collect();
        let echoes = |three: &&[usize]| {
            self.question.echoes([self.tokens.slice(three[0]), self.tokens.slice(three[1]), self.tokens.slice(three[2])])
        };
        words.windows(3).filter(echoes).count() >= 3
    }

    /// A check, a reason, a remark in brackets: no new answer.
    fn is_aside(&self, piece: &Piece) -> bool {
        let first = self.kind(piece.range.start);
        let last = self.kind(piece.range.end - 1);
        let begun = piece.range.start > 0 && self.kind(piece.range.start) == Kind::Open;
        if first == Kind::Open && (last == Kind::Close || begun) && piece.range.len() > 3 {
            return true;
        }
        if piece.range.clone().any(|at| self.kind(at) == Kind::Check) {
            return true;
        }
        self.words(piece).take(5).any(|at| {
            let meaning = self.tokens.meaning(at);
            meaning.has(Meaning::CHECKS)
        })
    }

    fn corrects(&self, piece: &Piece) -> bool {
        let said = |at: usize| {
            self.tokens.means(at, Meaning::CORRECTS)
                || self.tokens.slice(at).eq_ignore_ascii_case("hold") && self.tokens.slice(at + 1).eq_ignore_ascii_case("on")
        };
        self.words(piece).any(said)
    }

    /// True where a completion goes on with another question, exercise, turn or line of the same pattern.
    fn begins_another_question(&self, piece: &Piece, has_best: bool) -> bool {
        let before = piece.range.start.checked_sub(1).map(|at| self.kind(at));
        if before == Some(Kind::End) {
            return has_best;
        }
        if piece.begins_line || has_best {
            let mut at = piece.range.start;
            while matches!(self.kind(at), Kind::Heading | Kind::Bold | Kind::Other | Kind::Bullet) {
                at += 1;
            }
            let asks = self.tokens.means(at, Meaning::ASKS);
            let mut next = at + 1;
            let short = self.tokens.slice(at).eq_ignore_ascii_case("q") || self.tokens.slice(at).eq_ignore_ascii_case("question");
            while matches!(self.kind(next), Kind::Number(_) | Kind::Bold) {
                next += 1;
            }
            let numbered = next > at + 1 && matches!(self.kind(at + 1), Kind::Number(_));
            let colon = self.kind(next) == Kind::Colon;
            let heading = piece.heading || matches!(self.kind(piece.range.start), Kind::Bold);
            if piece.begins_line && asks && (colon && (has_best || short) || heading && has_best || numbered && has_best) {
                return true;
            }
        }
        // The instruction again, with other numbers.
        if !has_best || !self.question.instructs {
            return false;
        }
        let words: Vec<usize> = self.words(piece).take(12).collect();
        let echoes = words.windows(3).any(|three| {
            three[2] - three[0] <= 4
                && self.question.echoes([self.tokens.slice(three[0]), self.tokens.slice(three[1]), self.tokens.slice(three[2])])
        });
        if !echoes {
            return false;
        }
        // Numbers that nothing leads to are operands. The same ones are the same question, other ones are another's, none are the
        // instruction, whose question follows.
        let mut numbers = piece
            .range
            .clone()
            .filter(|&at| matches!(self.kind(at), Kind::Number(_)) && !self.statements.is_result(at, piece.range.start))
            .filter_map(|at| self.statements.number(at))
            .filter(|number| number.spelling != Spelling::Words)
            .filter(|number| !self.question.examples.iter().any(|example| value::same(example, &number.text)))
            .peekable();
        if numbers.peek().is_none() {
            return !self.has_number(piece.range.clone()) && !self.is_example_commitment();
        }
        numbers.any(|number| !self.question.gives(number))
    }

    /// True if what was stated so far is the prompt's own example.
    fn is_example_commitment(&self) -> bool {
        let Some(Statement { stated: Stated::Number(at), .. }) = self.best else { return false };
        self.statements.number(at).is_some_and(|number| self.question.is_example(number))
    }

    /// Statements that say themselves that they are the answer, in order.
    fn declarations(&self, piece: &Piece, following: &[Piece]) -> Vec<Statement> {
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
                        } else if !(at + 1..end).any(|at| self.tokens.means(at, Meaning::ANSWER.with(Meaning::RESULT))) {
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
    fn matching(&self, at: usize, open: Kind, close: Kind) -> usize {
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

    /// What a box holds; none where it is empty.
    fn boxed(&self, range: Range<usize>) -> Option<Stated> {
        // A box that the budget cut states nothing.
        if self.truncated && range.end >= self.tokens.tokens.len() && self.kind(range.end) != Kind::BoxClose {
            return Some(Stated::Cut(None));
        }
        let sentence = self.statements.sentence(range.clone());
        match sentence.stated {
            Stated::Number(_) | Stated::Rivals(..) if sentence.rank > Rank::Context => Some(self.listed(range, sentence.stated)),
            _ => match self.statements.marked(range) {
                Stated::Nothing => None,
                stated => Some(stated),
            },
        }
    }

    /// Two numbers with a comma between them in a box are a list.
    fn listed(&self, range: Range<usize>, stated: Stated) -> Stated {
        let Stated::Number(at) = stated else { return stated };
        let comma = at.checked_sub(1).filter(|&before| before > range.start && self.kind(before) == Kind::Comma);
        match comma.and_then(|comma| comma.checked_sub(1)).filter(|&other| other >= range.start && self.statements.is_candidate(other)) {
            Some(other) if self.statements.is_alone(other) => Stated::Rivals(other, at),
            _ => stated,
        }
    }

    /// "The answer is", "Answer:", "final result", `"answer":` and what stands behind them; also the first token behind.
    fn declared(&self, at: usize, piece: &Piece, following: &[Piece], meaning: Meaning) -> Option<(Statement, usize)> {
        let is_answer = meaning.has(Meaning::ANSWER);
        let sought = at.checked_sub(1).is_some_and(|one| {
            let two = one.saturating_sub(1);
            [one, two].into_iter().any(|before| before >= piece.range.start && self.tokens.means(before, Meaning::SEEKS))
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
                Kind::Word(meaning) if meaning.has(Meaning::FILLER.with(Meaning::CONCLUDES).with(Meaning::MINUS).with(Meaning::GIVES)) => {}
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
        if is_answer && next >= end && led
            && let Some(number) = (at + 1..end).rev().find_map(|at| self.statements.option(self.tokens.slice(at)))
        {
            let statement = Statement { stated: Stated::Number(number), strength: Strength::Declared, mark: Mark::Marker, at };
            return Some((statement, end));
        }
        let label = is_answer || piece.begins_line && self.is_first_word(at, piece) || self.is_key(at);
        let strength = if is_answer { Strength::Declared } else if label { Strength::Shown } else { return None };
        if next < end {
            // "The total weight is" is a sentence like others, "Total: 43" a label.
            if !is_answer && !(at + 1..next).any(|at| self.kind(at) == Kind::Colon) && !self.is_key(at) {
                return None;
            }
            if !led && !(is_answer && next <= at + 3 && unknown == 0) {
                return None;
            }
            let range = self.up_to_next_declaration(next, end, is_answer);
            let stated = self.statements.marked(range.clone());
            return Some((Statement { stated, strength, mark: Mark::Marker, at }, range.end));
        }
        // Nothing but the words on this line: the next one has the number. A heading "Solution" has the working behind it.
        let working = ["solution", "lösung", "solución", "solução", "soluzione"].iter().any(|word| self.tokens.slice(at).eq_ignore_ascii_case(word));
        let bare = is_answer && (led || unknown == 0) && !sought && !working;
        let line_ends = matches!(self.kind(end), Kind::Line | Kind::Rule) || self.kind(end) == Kind::Stop && led;
        if !(bare && line_ends && unknown <= 1) {
            return None;
        }
        let next = following.iter().find(|piece| !piece.range.is_empty())?;
        let short = self.words(next).count() <= 6 || (self.is_mathematical_line(next) && self.has_number(next.range.clone()));
        if !short || next.asks {
            return None;
        }
        let stated = match self.boxed(next.range.clone()) {
            Some(stated) => stated,
            None => return None,
        };
        Some((Statement { stated, strength, mark: Mark::Marker, at }, end))
    }

    fn is_to(&self, at: usize) -> bool {
        self.tokens.slice(at).eq_ignore_ascii_case("to")
    }

    fn is_mathematical_line(&self, piece: &Piece) -> bool {
        self.words(piece).count() <= 2
    }

    fn is_first_word(&self, at: usize, piece: &Piece) -> bool {
        self.words(piece).take_while(|&word| word < at).all(|word| {
            self.tokens.means(word, Meaning::FILLER.with(Meaning::CONCLUDES).with(Meaning::RESULT))
        })
    }

    /// `"result":`
    fn is_key(&self, at: usize) -> bool {
        at > 0 && self.kind(at - 1) == Kind::Quote && self.kind(at + 1) == Kind::Quote && self.kind(at + 2) == Kind::Colon
    }

    /// A statement reaches to the next one, and within JSON to the next key.
    fn up_to_next_declaration(&self, from: usize, end: usize, is_answer: bool) -> Range<usize> {
        let stop = (from + 1..end).find(|&at| {
            let key = self.kind(at) == Kind::Comma && self.kind(at + 1) == Kind::Quote && matches!(self.kind(at + 2), Kind::Word(_));
            let again = is_answer && self.tokens.means(at, Meaning::ANSWER) && self.has_number(at..end) && self.has_number(from..at)
                && self.tokens.means(at + 1, Meaning::LINK);
            key || again || self.kind(at) == Kind::Bar && self.has_number(from..at)
        });
        from..stop.unwrap_or(end)
    }

    /// "17 is the answer", "so 4207 is correct".
    fn confirmed(&self, at: usize, range: &Range<usize>) -> Option<Statement> {
        let mut word = at + 1;
        while word < range.end && (self.tokens.means(word, Meaning::FILLER) && !self.tokens.means(word, Meaning::CONFIRMS) || self.kind(word) == Kind::Bold) {
            word += 1;
        }
        if word >= range.end || !self.tokens.means(word, Meaning::CONFIRMS) {
            return None;
        }
        // Nothing else behind it: "is the right number of" is no confirmation.
        let number = (range.start..at).rev().find(|&at| !matches!(self.kind(at), Kind::Bold | Kind::Quote | Kind::Close))?;
        let alone = self.statements.is_candidate(number) && self.statements.is_alone(number);
        alone.then_some(Statement { stated: Stated::Number(number), strength: Strength::Declared, mark: Mark::Marker, at: number })
    }

    /// Bold type around a number.
    fn bold(&self, open: usize, close: usize) -> Option<Statement> {
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
        let number = self.statements.number(at)?;
        let given = self.question.gives(number) && !self.question.selects;
        let strength = if given { Strength::Said } else { Strength::Shown };
        Some(Statement { stated: Stated::Number(at), strength, mark: Mark::Bold, at: open })
    }

    /// What a sentence states that does not say that it is the answer.
    fn sentence(&self, piece: &Piece, first: bool) -> Option<Statement> {
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
            let given = self.question.gives(number) && !self.question.selects;
            if given && (sentence.rank < Rank::Neutral || sentence.rank < Rank::Result && !self.question.looks_up) {
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
            if self.question.instructs && strength <= Strength::Said && !self.question.is_in_form(number) && self.question.form != Form::Integer {
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
    fn last_cell(&self, range: &Range<usize>) -> Range<usize> {
        let mut end = range.end;
        while end > range.start && !matches!(self.kind(end - 1), Kind::Number(_) | Kind::Word(_)) {
            end -= 1;
        }
        let start = (range.start..end).rev().find(|&at| self.kind(at) == Kind::Bar).map_or(range.start, |bar| bar + 1);
        start..end
    }

    /// A number that is all of its line, or with which a completion begins.
    fn by_itself(&self, piece: &Piece, first: bool) -> Option<Statement> {
        let statements = self.statements;
        if !piece.begins_line {
            return None;
        }
        let mut at = piece.range.start;
        while at < piece.range.end
            && matches!(self.kind(at), Kind::Bold | Kind::Quote | Kind::Open | Kind::Arrow | Kind::Equals | Kind::Bullet | Kind::Heading | Kind::Colon | Kind::Bar | Kind::Other)
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
        let whole = end == piece.range.end || self.kind(end) == Kind::Open && self.tokens.is_spaced(end);
        if whole && statements.is_alone(at) {
            let verb = (at..end).any(|at| self.tokens.means(at, Meaning::LINK.with(Meaning::GIVES).with(Meaning::UP).with(Meaning::DOWN)));
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
            let given = |at: usize| statements.number(at).is_some_and(|number| self.question.gives(number));
            if given(at) && given(at + 2) {
                return statement(Stated::Unevaluated);
            }
            return statement(Stated::Rivals(at, at + 2));
        }
        // A raw completion goes on behind the "=" of its prompt.
        if first && self.question.open_ended && statements.is_alone(at) {
            let echo = self.tokens.means(at + 1, Meaning::AND.with(Meaning::OPERATOR)) || self.kind(at + 1) == Kind::Equals;
            let behind = at + 1;
            if !echo && matches!(self.kind(behind), Kind::Comma | Kind::Word(_) | Kind::Semicolon | Kind::Colon | Kind::Question | Kind::Open) {
                let verb = self.tokens.means(behind, Meaning::LINK.with(Meaning::GIVES).with(Meaning::UP).with(Meaning::DOWN));
                if !verb {
                    return statement(Stated::Number(at));
                }
            }
        }
        None
    }

    fn value_of(&self, statement: &Statement) -> Option<&'a str> {
        match statement.stated {
            Stated::Number(at) => self.statements.number(at).map(|number| number.text.as_str()),
            _ => None,
        }
    }

    /// Weighs a statement against the one that holds.
    fn take(&mut self, new: Statement) {
        if matches!(new.stated, Stated::Number(_)) {
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
            Stated::Number(at) => self.statements.number(at).is_some_and(|number| self.question.is_example(number)),
            _ => false,
        };
        let replaces = if self.reopened || (example && new.strength >= Strength::Result) {
            true
        } else if new.strength != best.strength {
            new.strength > best.strength
        } else if new_example && new.strength <= Strength::Shown {
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
                // Lines of single numbers: in a raw completion the first answers, elsewhere they are guesses.
                Strength::Shown if best.mark == Mark::OnlyNumber && new.mark == Mark::OnlyNumber => {
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
            if best.strength >= Strength::Shown && let Stated::Number(at) = best.stated {
                self.rivals.push(at);
            }
            self.best = Some(new);
            self.reopened = false;
            self.contested = None;
        } else if new.strength >= Strength::Shown && let Stated::Number(at) = new.stated {
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
        // A line that only begins with digits says nothing yet.
        let says = new.mark != Mark::OnlyNumber && strength > Strength::Result;
        if best.strength < strength || (best.strength == strength && !again && says) {
            self.cut = true;
            self.best = None;
        }
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
        let example_echoed = (0..self.tokens.tokens.len())
            .any(|at| self.statements.number(at).is_some_and(|number| self.question.is_example(number)));
        let mut reading = Reading::none(NoAnswer::NoNumber);
        reading.example_echoed = example_echoed;
        let answer = self.best.and_then(|best| match best.stated {
            Stated::Number(at) => Some((best, at)),
            _ => None,
        });
        let mut rivals: Vec<usize> = self.rivals.clone();
        if let Some((a, b)) = self.contested {
            rivals.extend([a, b]);
        }
        let chosen = answer.filter(|_| self.contested.is_none()).map(|(_, at)| at);
        let mut values: Vec<String> = Vec::new();
        for rival in rivals.into_iter().filter_map(text) {
            let known = values.contains(&rival) || chosen.and_then(text).is_some_and(|chosen| value::same(&chosen, &rival));
            if !known && values.len() < 8 {
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
        let lower;
        let undetermined = {
            lower = self.tokens.text.to_ascii_lowercase();
            UNDETERMINED.iter().any(|phrase| lower.contains(phrase))
        };
        let Some((best, at)) = answer else {
            let has_number = !self.tokens.numbers.is_empty();
            return Err(match () {
                () if self.cut => NoAnswer::Truncated,
                () if undetermined => NoAnswer::Refused,
                () if self.truncated && !self.unevaluated => NoAnswer::Truncated,
                () if self.unevaluated => NoAnswer::Unevaluated,
                () if refuses(&lower) => NoAnswer::Refused,
                () if has_number => NoAnswer::Unevaluated,
                () => NoAnswer::NoNumber,
            });
        };
        if self.restated && best.strength <= Strength::Result {
            return Err(NoAnswer::Unevaluated);
        }
        if undetermined && best.strength < Strength::Declared {
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
        if let Kind::Word(_) = self.kind(at + 1)
            && let Some(power) = words::scale(self.tokens.slice(at + 1))
            && !self.question.states_scale(power)
            && let Some(scaled) = words::scaled(&number.text, power)
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
                || self.words(piece).any(|at| WORKING.iter().any(|word| self.tokens.slice(at).eq_ignore_ascii_case(word)))
        };
        concludes && !behind.is_empty() && !behind.iter().any(goes_on)
    }
}

fn has_equation(tokens: &Tokens<'_>, range: &Range<usize>) -> bool {
    range.clone().any(|at| matches!(tokens.kind(at), Kind::Equals))
}

/// True if a text without an answer says that it gives none.
fn refuses(lower: &str) -> bool {
    ["i can't", "i cannot", "i can not", "i'm sorry", "i am sorry", "unable to", "not able to", "i don't", "i do not", "as an ai"]
        .iter()
        .any(|phrase| lower.contains(phrase))
}
