//! Sentences, and the part that each plays: a conclusion, a check, a question, an offer, the beginning of another exercise.
use std::ops::Range;

use super::numeral::Spelling;
use super::scan::Scan;
use super::token::{Kind, Number, Tokens};
use super::vocabulary::{Meaning, any_of};
use crate::number::words::Language;

/// A sentence: a range of tokens.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) range: Range<usize>,
    /// It ends with a question mark.
    pub(super) asks: bool,
    /// It begins a line.
    pub(super) begins_line: bool,
    /// It is a heading: it begins with the mark of one, or is bold and ends with a colon.
    pub(super) heading: bool,
}

/// Longest sentence, in tokens: longer ones are divided, so that no text takes more than linear time.
pub(super) const LONGEST: usize = 300;

/// Divides a text into sentences.
pub(super) fn pieces(tokens: &Tokens<'_>) -> Vec<Piece> {
    let (mut pieces, mut start, mut begins_line) = (Vec::new(), 0, true);
    for at in 0..=tokens.tokens.len() {
        let kind = tokens.kind(at);
        let line = matches!(kind, Kind::Line | Kind::Rule | Kind::Program | Kind::End);
        let sentence = line || matches!(kind, Kind::Stop | Kind::Question | Kind::Semicolon);
        if !sentence && at - start < LONGEST {
            continue;
        }
        if at > start {
            let heading = tokens.kind(start) == Kind::Heading;
            pieces.push(Piece { range: start..at, asks: kind == Kind::Question, begins_line, heading });
            begins_line = false;
        }
        begins_line |= line;
        // What is divided for its length loses nothing.
        start = if sentence { at + 1 } else { at };
    }
    pieces
}

impl<'a> Scan<'a> {
    /// The words of a sentence.
    pub(super) fn words(&self, range: &Range<usize>) -> impl Iterator<Item = usize> + 'a {
        let tokens = self.tokens;
        range.clone().filter(move |&at| tokens.kind(at).is_word())
    }

    pub(super) fn has_number(&self, range: &Range<usize>) -> bool {
        range.clone().any(|at| self.is_number(at))
    }

    /// True if a word of a sentence has one of the meanings.
    pub(super) fn has_meaning(&self, range: &Range<usize>, meaning: Meaning) -> bool {
        range.clone().any(|at| self.means(at, meaning))
    }

    /// True if one of the first words of a sentence has one of the meanings.
    pub(super) fn opens_with(&self, range: &Range<usize>, words: usize, meaning: Meaning) -> bool {
        self.words(range).take(words).any(|at| self.means(at, meaning))
    }

    /// True if a word is an "if". Spanish and French have "se" for "itself", Italian has "si" for it.
    pub(super) fn is_if(&self, at: usize) -> bool {
        if !self.means(at, Meaning::IF) {
            return false;
        }
        let begins = at == 0 || !matches!(self.kind(at - 1), Kind::Word(_) | Kind::Number(_));
        match self.question.language {
            Language::Italian | Language::Portuguese if self.is(at, "se") => begins,
            Language::Italian if self.is(at, "si") => false,
            _ => !self.is(at, "se"),
        }
    }

    /// A hypothesis: nothing is stated there.
    pub(super) fn is_hypothetical(&self, range: &Range<usize>) -> bool {
        let ifs = self.words(range).filter(|&at| self.is_if(at)).count();
        let were = || self.has_meaning(range, Meaning::WERE);
        let would = || self.has_meaning(range, Meaning::WOULD);
        // "Had the first number been 136"
        let inverted =
            |at: usize| self.is(at, "had were should") && (at == range.start || self.kind(at - 1) == Kind::Comma);
        // "Käme der Zug um 9:35 Uhr an, wären es 80 Minuten"
        let german = self.is(range.start, "käme wäre wären hätte hätten gäbe");
        if german || self.words(range).any(inverted) && would() {
            return true;
        }
        // "Si la voiture consommait 8 litres, il faudrait 36 litres."
        let conditional = |at: usize| {
            let word = self.slice(at).to_lowercase();
            ["rait", "raient", "rebbe", "rebbero", "ría", "rían"].iter().any(|ending| word.ends_with(ending))
                || self.is(at, "seria seriam teria custaria daria ficaria receberia pagaria skulle")
        };
        if ifs == 1 && self.question.language != Language::English && self.words(range).any(conditional) {
            return true;
        }
        // "24 if the gift was 3 coins, and 27 if it was none"
        let woulds = self.words(range).filter(|&at| self.is(at, "would could might")).count();
        let had = || self.words(range).any(|at| self.is(at, "had")) && would();
        // "If it cost $200, for example, she would need 10 weeks."
        let example = || self.words(range).any(|at| self.is(at, "example instance say suppose")) && would();
        ifs >= 2 || woulds >= 2 || ifs == 1 && (were() && would() || had() || example())
    }

    /// A tick behind an equation or a comparison; one beside a number or an answer in bold type checks nothing.
    fn is_ticked(&self, range: &Range<usize>) -> bool {
        let tick = range.clone().find(|&at| self.kind(at) == Kind::Check);
        let compares = range
            .clone()
            .any(|at| matches!(self.kind(at), Kind::Equals | Kind::Less | Kind::Greater | Kind::Operator(_)));
        let marked = range.clone().any(|at| self.kind(at) == Kind::Bold || self.means(at, Meaning::ANSWER));
        tick.is_some_and(|tick| compares && !(marked && self.slice(tick) == "✅"))
    }

    /// A check, a note, a remark in brackets: no new answer.
    pub(super) fn is_check(&self, range: &Range<usize>) -> bool {
        let (first, last) = (self.kind(range.start), self.kind(range.end - 1));
        let bracketed = first == Kind::Open && last == Kind::Close && range.len() > 3;
        let mut first_words = self.words(range).take(5).take_while(|&at| range.start == at || !self.is_number(at - 1));
        bracketed
            || self.is_ticked(range)
            || self.is(range.start, "estimate estimation überschlag estimación approximation")
                && self.kind(range.start + 1) == Kind::Colon
            || self.is_of_mistake(range)
            || self.is(range.start, "by") && self.is(range.start + 1, "the") && self.is(range.start + 2, "way")
            || first_words.any(|at| self.means(at, Meaning::CHECKS))
    }

    /// True if a sentence warns: "A common mistake is to answer 92."
    pub(super) fn is_of_mistake(&self, range: &Range<usize>) -> bool {
        let mistake =
            |at: usize| self.is(at, "common typical frequent") && self.is(at + 1, "mistake error pitfall trap");
        range.clone().any(mistake)
    }

    /// True if a question offers more: "Would you like to see the steps?"
    pub(super) fn is_offer(&self, range: &Range<usize>) -> bool {
        let offers = |at: usize| {
            self.means(at, Meaning::OFFERS)
                || self.is(at, "do may can") && self.is(at + 1, "you i") && !self.is(at + 2, "mean")
        };
        let opens = self.words(range).next().is_some_and(offers);
        let slice = &self.tokens.text[self.tokens.tokens[range.start].start..self.tokens.tokens[range.end - 1].end];
        if ["需要", "要不要", "もっと", "必要ですか", "드릴까요", "할까요"].iter().any(|phrase| slice.contains(phrase))
        {
            return true;
        }
        opens && self.opens_with(range, 8, Meaning::TO_YOU) || self.opens_with(range, 2, Meaning::OFFER)
    }

    /// A heading over what the question gives: "Understanding the problem", "Given:".
    pub(super) fn is_about_givens(&self, range: &Range<usize>) -> bool {
        let gives = |at: usize| {
            self.means(at, Meaning::GIVENS)
                || self.is(at, "what") && self.is(at + 1, "we is") && self.is(at + 2, "know given")
        };
        !self.has_meaning(range, Meaning::ANSWER) && self.words(range).take(4).any(gives)
    }

    /// A sentence that says the question again: "So the question is how many days 4 painters need", "You asked about 6 hens".
    pub(super) fn restates(&self, range: &Range<usize>) -> bool {
        let asked = |at: usize| self.means(at, Meaning::ASKED) && self.is(at + 1, "how what for to combien wie");
        if self.count(range, Kind::Equals) == 0 && self.words(range).any(asked) {
            return true;
        }
        let mut words = self.words(range).take(6);
        words.any(|at| {
            self.is(at, "asked told") && self.is(at + 1, "to")
                || self.is(at, "question problem text prompt puzzle")
                    && self.is(at + 1, "gives tells says states asks mentions")
                || self.is(at, "question frage pregunta domanda pergunta вопрос pytanie")
                    && self.means(at + 1, Meaning::LINK)
                || self.is(at, "need want have trying")
                    && self.is(at + 1, "to")
                    && self.is(at + 2, "find know determine")
                    && self.count(range, Kind::Equals) == 0
                || self.is(at, "wants") && self.is(at + 2, "know find calculate")
                || at > range.start && self.is(at, "told") && self.is(at - 1, "are were is been")
                || self.means(at, Meaning::ASKED)
                    && self.count(range, Kind::Equals) == 0
                    && !(range.start..at).rev().take(3).any(|at| self.is(at, "whom whose which"))
        })
    }

    /// An announcement that ends with a question mark: "The answer is 42?"
    pub(super) fn states(&self, range: &Range<usize>) -> bool {
        let first = self.words(range).next();
        let inverted = first.is_none_or(|at| {
            self.means(at, Meaning::LINK) || self.is(at, "could can would should shall what how which do does")
        });
        !inverted && self.opens_with(range, 4, Meaning::ANSWER) && self.has_number(range)
    }

    /// A question to which an answer is needed: "How many stickers did you buy?"
    pub(super) fn asks_back(&self, range: &Range<usize>) -> bool {
        self.words(range)
            .any(|at| self.means(at, Meaning::INTERROGATIVE) || self.is(at, "could can") && self.is(at + 1, "you"))
    }

    /// True if a sentence withdraws what was said.
    pub(super) fn corrects(&self, range: &Range<usize>) -> bool {
        // "This is wrong."
        let wrong = !self.has_number(range)
            && self.opens_with(range, 2, Meaning::SUBJECT)
            && self.words(range).any(|at| self.is(at, "wrong incorrect falsch faux incorrecto errado sbagliato"));
        let withdraws = |at: usize| {
            self.means(at, Meaning::CORRECTS) && !self.is(at.saturating_sub(1), "common typical")
                || self.is(at, "hold") && self.is(at + 1, "on")
        };
        wrong || self.words(range).any(withdraws)
    }

    /// True if three words are neighbours in the question.
    fn echoes(&self, three: &[usize]) -> bool {
        self.question.echoes([three[0], three[1], three[2]].map(|at| self.slice(at)))
    }

    /// The share of a sentence's neighbouring words that are the question's, three by three, in eighths.
    pub(super) fn echo(&self, range: &Range<usize>) -> usize {
        let words: Vec<usize> = range.clone().filter(|&at| self.is_any_word(at)).take(40).collect();
        let echoed = words.windows(3).filter(|three| self.echoes(three)).count();
        if words.len() < 5 { 0 } else { 8 * echoed / (words.len() - 2) }
    }

    /// True where a completion goes on with another question, exercise, turn or line of the same pattern.
    pub(super) fn begins_another_question(&self, piece: &Piece, answered: bool) -> bool {
        let range = &piece.range;
        if range.start > 0 && self.kind(range.start - 1) == Kind::End {
            return answered;
        }
        let opens = |at| matches!(self.kind(at), Kind::Heading | Kind::Bold | Kind::Other | Kind::Bullet);
        let at = self.past(range.start, range.end, opens);
        if piece.begins_line && self.means(at, Meaning::ASKS) {
            let next = self.past(at + 1, range.end, |at| self.is_number(at) || self.kind(at) == Kind::Bold);
            let numbered = next > at + 1 && self.is_number(at + 1);
            let colon = self.kind(next) == Kind::Colon;
            let marked = piece.heading || self.kind(range.start) == Kind::Bold;
            let short = self.is(at, "q question");
            // A completion may begin with the question that was asked.
            let given = |at| self.number(at).is_none_or(|number| self.question.gives(number));
            let same = if self.has_number(range) { range.clone().all(given) } else { self.echo(range) >= 4 };
            let ours = !answered && same;
            if !ours && (colon && (answered || short) || answered && (marked || numbered)) {
                return true;
            }
        }
        if piece.begins_line
            && range.len() == 1
            && self.is_number(range.start)
            && self.kind(range.end) == Kind::Stop
            && self.is_exercise(range.end + 1)
        {
            return true;
        }
        // The instruction again, with other numbers.
        if !answered || !self.question.instructs {
            return false;
        }
        let words: Vec<usize> = range.clone().filter(|&at| self.is_any_word(at)).take(12).collect();
        if !words.windows(3).any(|three| three[2] - three[0] <= 4 && self.echoes(three)) {
            return false;
        }
        // Numbers that nothing leads to are operands: of this question or of another.
        let open = |&at: &usize| self.is_number(at) && !self.leads_to(at, range.start);
        let stated = |number: &&Number| number.spelling != Spelling::Words && !self.question.is_example(number);
        let operands = range.clone().filter(open).filter_map(|at| self.number(at)).filter(stated);
        let mut operands = operands.peekable();
        if operands.peek().is_none() {
            return !self.has_number(range);
        }
        operands.any(|number| !self.question.gives(number))
    }

    /// True if an exercise stands between a token and the end of its line: "12. What is 6 * 9?" is the next of a row, "60. Does that help?"
    /// and "60. Would you like to try 15 * 5?" go on with the answer.
    fn is_exercise(&self, start: usize) -> bool {
        let ends = |at: usize| matches!(self.kind(at), Kind::Line | Kind::Question);
        let range = start..self.past(start, start + LONGEST, |at| !ends(at));
        let figures = |number: &Number| number.spelling != Spelling::Words;
        self.kind(range.end) == Kind::Question
            && range.clone().any(|at| self.number(at).is_some_and(figures))
            && !self.is_offer(&range)
    }

    /// The next line of a row of exercises, behind the operation that was asked for: "71 - 35 = 36".
    pub(super) fn is_next_exercise(&self, piece: &Piece) -> bool {
        let range = &piece.range;
        let plain = |at: usize| {
            matches!(self.kind(at), Kind::Number(_) | Kind::Operator(_) | Kind::Equals | Kind::Question | Kind::Bullet)
        };
        let given = |at| self.number(at).is_some_and(|number| self.question.gives(number));
        piece.begins_line
            && self.question.instructs
            && !self.question.is_chat
            && self.count(range, Kind::Equals) == 1
            && range.clone().filter(|&at| self.is_number(at)).count() >= 2
            && range.clone().all(|at| plain(at) && !given(at))
    }

    /// True if a word or sign that leads to a result stands before a number.
    fn leads_to(&self, number: usize, start: usize) -> bool {
        (start..number).rev().take(4).take_while(|&at| !self.is_number(at)).any(|at| {
            matches!(self.kind(at), Kind::Equals | Kind::Arrow) || self.means(at, any_of![LINK, GIVES, ANSWER])
        })
    }
}
