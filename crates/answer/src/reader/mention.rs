//! Mentions of numbers, and what their sentences say about each: its marks, its expression, the words before it, its clause.
use std::ops::Range;

use super::Form;
use super::feature::{Feature as F, Features};
use super::numeral::Spelling;
use super::piece::{LONGEST, Piece};
use super::question::Extreme;
use super::reading::Mark;
use super::scan::Scan;
use super::token::Kind;
use super::vocabulary::Meaning;

/// A number of a completion that may be its answer.
#[derive(Debug, Clone)]
pub(super) struct Mention {
    /// Its token.
    pub(super) at: usize,
    /// Its sentence.
    pub(super) piece: usize,
    pub(super) mark: Mark,
    pub(super) features: Features,
}

/// Farthest token that is looked at before a number for what leads to it.
const NEAR: usize = 14;

impl Scan<'_> {
    /// The mentions of a sentence, in order.
    pub(super) fn mentions(&self, index: usize, pieces: &[Piece]) -> Vec<Mention> {
        let piece = &pieces[index];
        let range = piece.range.clone();
        let mut found: Vec<Mention> = Vec::new();
        let whole = self.features_of_piece(piece);
        let mut depth = 0usize;
        let mut elaborates = false;
        let restates = self.restates(&range);
        let colons = range.clone().filter(|&at| self.kind(at) == Kind::Colon).count();
        for at in range.clone() {
            match self.kind(at) {
                Kind::Open if self.is_answer_in_brackets(at, range.start) => {}
                Kind::Open => depth += 1,
                Kind::Close => depth = depth.saturating_sub(1),
                Kind::Colon if self.kind(at - usize::from(at > range.start)) != Kind::Quote => {
                    elaborates |= colons == 1 && found.iter().any(|mention| mention.at + 6 > at && (mention.at > range.start || mention.features.has(F::HasUnit)))
                }
                Kind::Number(_) if self.is_candidate(at) && self.is_alone(at) => {
                    let mut features = whole;
                    features.set(F::Hypothetical, self.is_hypothetical(&self.turn(&range, at)));
                    features.set(F::Restates, restates && range.clone().take_while(|&before| before < at).all(|at| self.kind(at) != Kind::Colon));
                    features.set(F::SaidWrong, self.is_said_wrong(at, &range));
                    self.expression(at, &range, &mut features);
                    self.form(at, &mut features);
                    self.cue(at, &range, &mut features);
                    self.clause(at, &range, &mut features);
                    features.set(F::InBrackets, depth > 0 && !self.question.asks_brackets);
                    features.set(F::Elaborates, elaborates && !(features.has(F::EqualsLast) && features.has(F::EndsSentence)));
                    features.set(F::Example, self.is_example(at));
                    features.set(F::Cut, self.is_cut(at));
                    features.set(F::Choice, self.options.iter().any(|(_, option)| *option == at));
                    found.push(Mention { at, piece: index, mark: Mark::Sentence, features });
                }
                _ => {}
            }
        }
        self.marks(piece, &mut found);
        self.by_itself(piece, &mut found);
        for mention in found.iter_mut().filter(|mention| mention.features.has(F::OtherPart)) {
            mention.features.remove(&[F::NamesTarget]);
        }
        self.comparison(&range, &mut found);
        self.order(&range, &mut found);
        found
    }

    /// The part of a sentence up to or from its turn ", but", in which a number stands.
    fn turn(&self, range: &Range<usize>, at: usize) -> Range<usize> {
        let turn = range.clone().find(|&word| {
            matches!(self.kind(word), Kind::Comma | Kind::Other) && self.is(word + 1, &["but", "aber", "mais", "pero", "mas", "ma", "however", "instead"])
        });
        match turn {
            Some(turn) if at > turn => turn..range.end,
            Some(turn) => range.start..turn,
            None => range.clone(),
        }
    }

    /// "6 is wrong", "31 cannot be right"
    fn is_said_wrong(&self, at: usize, range: &Range<usize>) -> bool {
        const WRONG: [&str; 20] = [
            "wrong", "incorrect", "impossible", "mistaken", "off", "falsch", "faux", "fausse", "incorrecto", "incorrecta", "errado", "errada", "sbagliato", "sbagliata", "fout", "fel",
            "неверно", "błędne", "yanlış", "salah",
        ];
        let (behind, _) = self.behind(at);
        let linked = behind < range.end && (self.tokens.means(behind, Meaning::LINK) || self.is(behind, &["cannot", "can't", "can"]));
        let words = || (behind + 1..range.end.min(behind + 4)).take_while(|&at| matches!(self.kind(at), Kind::Word(_)));
        let denied = words().any(|at| self.tokens.means(at, Meaning::DENIES)) || self.is(behind, &["cannot", "can't", "isn't"]);
        linked && (words().any(|at| self.is(at, &WRONG)) || denied && words().any(|at| self.is(at, &["right", "correct", "richtig", "correcto"])))
    }

    /// What holds of every number of a sentence.
    fn features_of_piece(&self, piece: &Piece) -> Features {
        let range = &piece.range;
        let mut features = Features::default();
        let follows = self.opens_with(range, 2, Meaning::FOLLOWS);
        features.set(F::Follows, follows);
        features.set(F::Concludes, !follows && self.opens_with(range, 2, Meaning::CONCLUDES));
        match self.question.shares(self.tokens, range.clone()) {
            0 => {}
            1 => features.add(F::AskedOne),
            2 => features.add(F::AskedTwo),
            _ => features.add(F::AskedThree),
        }
        let is_if = self.words(range).any(|at| self.is_if(at));
        features.set(F::IfWould, is_if && self.words(range).any(|at| self.is(at, &["would", "could"])));
        features.set(F::Unsure, self.words(range).any(|at| self.tokens.means(at, Meaning::UNSURE)));
        let begins_with_number = matches!(self.kind(range.start), Kind::Number(_));
        features.set(F::Offer, !begins_with_number && self.opens_with(range, 2, Meaning::OFFER));
        features.set(F::Check, self.is_check(range));
        features.set(F::Question, piece.asks);

        features.set(F::Plans, self.opens_with(range, 4, Meaning::PLANS));
        let marker = |at: usize| self.markers.get(at).copied().unwrap_or(false);
        features.set(F::Bullet, self.kind(range.start) == Kind::Bullet || marker(range.start) || range.start >= 2 && marker(range.start - 2) && matches!(self.kind(range.start - 1), Kind::Stop | Kind::Close));
        features.set(F::Heading, piece.heading);
        features.set(F::AfterRule, piece.after_rule);
        features.set(F::Corrects, self.corrects(range));
        let echo = self.echo(range);
        features.set(F::Echoes, echo >= 2);
        features.set(F::EchoesMuch, echo >= 5);
        features.set(F::EchoesAll, echo >= 8);
        features
    }

    /// The side of an equation that a number is.
    fn expression(&self, at: usize, range: &Range<usize>, features: &mut Features) {
        let (behind, has_unit) = self.behind(at);
        let mut behind = behind;
        while behind < range.end && self.kind(behind) == Kind::Close {
            behind += 1;
        }
        let equals_behind = behind < range.end && self.kind(behind) == Kind::Equals;
        let mut before = at;
        while before > range.start
            && (self.is_mark(before - 1)
                || matches!(self.kind(before - 1), Kind::Open | Kind::Line)
                || self.tokens.means(before - 1, Meaning::FILLER))
        {
            before -= 1;
        }
        let equals_before = before > 0 && self.kind(before - 1) == Kind::Equals;
        features.set(F::HasUnit, has_unit);
        if equals_before {
            let about = self.tokens.slice(before - 1);
            features.set(F::About, about.starts_with(['≈', '≃', '≅']) || about.starts_with("\\approx"));
            features.add(if equals_behind { F::EqualsMiddle } else { F::EqualsLast });
            features.set(F::Computed, !equals_behind && (range.start..before - 1).rev().take(12).any(|at| matches!(self.kind(at), Kind::Operator(_))));
            features.set(F::AskedEquation, self.is_asked_equation(before - 1, range.start));
        } else if equals_behind {
            features.add(F::EqualsLeft);
            let number = (behind + 1..range.end.min(behind + 6)).find(|&at| matches!(self.kind(at), Kind::Number(_)));
            features.set(F::LeftOfOperation, number.is_some_and(|number| self.operates_behind(number)));
        }
    }

    /// True if the operation that was asked for stands on the left of an equation's first sign.
    fn is_asked_equation(&self, equals: usize, start: usize) -> bool {
        let mut first = equals;
        let mut left = equals;
        let mut steps = 0;
        while left > start && steps < 60 && (self.kind(left - 1) == Kind::Equals || self.is_left_side(left - 1)) {
            left -= 1;
            steps += 1;
            if self.kind(left) == Kind::Equals {
                first = left;
            }
        }
        let numbers: Vec<_> = (left..first).filter_map(|at| self.number(at)).collect();
        self.question.is_asked_operation(&numbers)
    }

    /// Whether a number is written and counted as was asked.
    fn form(&self, at: usize, features: &mut Features) {
        let Some(number) = self.number(at) else { return };
        let question = self.question;
        if question.instructs {
            let fits = question.is_in_form(number);
            features.add(if fits { F::InForm } else { F::OutOfForm });
        }
        let unit = self.tokens.slice(at + 1);
        if self.is_unit(at + 1) {
            let asked = question.asks_unit(unit);
            features.set(F::AskedUnit, asked);
            features.set(F::OtherUnit, !asked && question.asks_some_unit());
            features.set(F::GivenUnit, !asked && question.asks_some_unit() && question.counts_givens_in(unit));
        }
        features.set(F::PercentAsked, number.percent && question.asks_percent);
        features.set(F::PercentOdd, number.percent && !question.asks_percent);
        features.set(F::CountedTwice, features.has(F::AskedUnit) && question.counts_givens_in(unit));
        let times = self.is(at + 1, &["time", "times", "occurrence", "occurrences", "digit", "digits", "mal", "fois", "veces", "vezes", "volte", "раз", "раза"]);
        features.set(F::Times, times && (question.asks_times || question.asks_quotient));
        let small = number.text.parse::<u64>().is_ok_and(|value| value <= 12);
        let counts = number.spelling == Spelling::Words && number.text == "0" || self.is(at, &["once", "twice", "thrice"]);
        features.set(F::CountWord, counts);
        features.set(F::SmallWord, number.spelling == Spelling::Words && small && !counts);
        features.set(F::Ordinal, number.ordinal && !question.asks_rank);
        features.set(F::OrdinalAsked, number.ordinal && question.asks_rank);
        let year = number.spelling == Spelling::Integer && number.text.len() == 4 && number.text.starts_with(['1', '2']) && !features.has(F::AskedUnit);
        features.set(F::YearAsked, year && question.asks_year);
        features.set(F::YearOdd, question.looks_up && year != question.asks_year);
    }

    /// The word or sign before a number that says what it is.
    fn cue(&self, at: usize, range: &Range<usize>, features: &mut Features) {
        let start = range.start.max(at.saturating_sub(NEAR));
        let mut before = at;
        let mut filler = false;
        let cue = loop {
            if before == start {
                break if before == range.start { F::CueStart } else { F::CueOther };
            }
            before -= 1;
            match self.kind(before) {
                Kind::Bold | Kind::Quote | Kind::Other | Kind::BoxOpen | Kind::Open | Kind::Bullet | Kind::Heading | Kind::Ellipsis => {}
                Kind::Arrow => break F::CueArrow,
                Kind::Equals => break F::CueLink,
                Kind::Colon => break F::CueColon,
                Kind::Comma => break F::CueComma,
                Kind::Word(meaning) => {
                    let word = self.tokens.slice(before);
                    let is = |words: &[&str]| words.iter().any(|one| word.eq_ignore_ascii_case(one));
                    if is(&["of", "de", "von", "di", "van"]) {
                        let total = before > start && self.tokens.means(before - 1, Meaning::TOTALS.with(Meaning::RESULT));
                        let (behind, _) = self.behind(at);
                        let operands = self.tokens.means(behind, Meaning::AND) || self.kind(behind) == Kind::Comma;
                        let amount = before > start && self.is(before - 1, &["difference", "increase", "decrease", "total", "sum", "remainder", "change", "profit", "loss", "average", "mean", "product", "quotient", "gain", "summe", "differenz", "total", "somme", "différence", "diferencia"]);
                        break match (total && operands, amount) {
                            (true, _) => F::CueTotal,
                            (_, true) => F::CueGives,
                            _ => F::CueOf,
                        };
                    }
                    if is(&["exactly", "precisely", "only", "just", "genau", "exactement"]) {
                        features.add(F::CueExactly);
                    }
                    if is(&["with"]) && before > start && self.is(before - 1, &["go", "going", "stick", "left", "leaves", "ends", "up"])
                        || is(&["by"]) && before > start && self.is(before - 1, &["increased", "decreased", "rose", "fell", "grew", "dropped"])
                    {
                        break F::CueGives;
                    }
                    if is(&["to"]) && before > start && self.is(before - 1, &["comes", "come", "amounts", "amount", "equal", "equals", "adds", "up", "sums", "simplifies", "reduces", "rounds", "works", "evaluates", "corresponds", "down", "out", "converts"]) {
                        break F::CueGives;
                    }
                    // "Il y a 14 jours", "elle a 9 ans"
                    if is(&["a"]) && before > start && self.is(before - 1, &["y", "il", "elle", "on", "qui", "en"]) {
                        break F::CueGives;
                    }
                    // "more expensive by $7" where the difference was asked for
                    if is(&["to"]) && before > start && self.is(before - 1, &["than"]) {
                        break F::CueThan;
                    }
                    // "takes in $184", "looking at 47"
                    if is(&["in"]) && before > start && self.is(before - 1, &["takes", "take", "brings", "bring", "took", "brought"])
                        || is(&["at"]) && before > start && self.is(before - 1, &["looking", "stands", "stood", "stand", "put"])
                    {
                        break F::CueGives;
                    }
                    // "I settle on 144"
                    if is(&["on", "at", "for", "auf"]) && before > start && self.is(before - 1, &["settle", "settled", "land", "landed", "arrive", "arrived", "end", "ended", "go"]) {
                        break F::CueGives;
                    }
                    if is(&["by", "um"]) && self.question.asks_difference {
                        break F::CueGives;
                    }
                    if is(&["by", "um"]) {
                        break F::CueBy;
                    }
                    if is(&["with", "mit", "avec", "con", "com"]) && before > range.start + 1 {
                        break F::CueWith;
                    }
                    if is(&["to", "bis"]) {
                        break F::CueTo;
                    }
                    if is(&["than", "als", "que"]) {
                        break F::CueThan;
                    }
                    if meaning.has(Meaning::LINK) {
                        break F::CueLink;
                    }
                    if meaning.has(Meaning::GIVES) {
                        break F::CueGives;
                    }
                    if meaning.has(Meaning::CONCLUDES) {
                        break F::CueConcludes;
                    }
                    if meaning.has(Meaning::OR) {
                        break F::CueOr;
                    }
                    if meaning.has(Meaning::AND) {
                        break F::CueAnd;
                    }
                    if meaning.has(Meaning::ANSWER) {
                        break F::CueResult;
                    }
                    if meaning.has(Meaning::FILLER) && !filler_ends(before, start, self) {
                        filler = true;
                        continue;
                    }
                    if meaning.has(Meaning::CONTEXT.with(Meaning::PREMISE)) {
                        break F::CueContext;
                    }
                    if meaning.has(Meaning::RESULT) {
                        break F::CueResult;
                    }
                    if filler && meaning.has(Meaning::SUBJECT) {
                        continue;
                    }
                    break F::CueOther;
                }
                _ => break F::CueOther,
            }
        };
        features.add(cue);
        // "there are three 7s", not "the two numbers"
        if matches!(cue, F::CueLink | F::CueGives | F::CueColon | F::CueConcludes) {
            features.remove(&[F::SmallWord]);
        }
        let subject = (start..before).rev().take(3).any(|at| self.tokens.means(at, Meaning::SUBJECT))
            || self.tokens.means(before, Meaning::SUBJECT);
        features.set(F::SubjectVerb, subject && matches!(cue, F::CueLink | F::CueGives | F::CueOther));
        let denied = (start..at).rev().take(4).take_while(|&at| !matches!(self.kind(at), Kind::Number(_) | Kind::Comma | Kind::Colon)).any(|before| {
            self.kind(before) == Kind::Unequal
                || self.tokens.means(before, Meaning::DENIES) && !self.is(before, &["no", "but", "sondern", "sino"])
        });
        features.set(F::Denied, denied);
        // "not 12 but 15", "not 12: it was 15"
        let contrast = self.is(before, &["but", "sondern", "sino", "mais", "ma"])
            || !denied && (range.start..at).any(|at| self.kind(at) == Kind::Unequal || self.tokens.means(at, Meaning::DENIES) && !self.is(at, &["no", "but"]));
        features.set(F::Contrast, contrast);
        let target = matches!(cue, F::CueLink | F::CueColon | F::CueResult)
            && (range.start..at)
                .rev()
                .take_while(|&at| !matches!(self.kind(at), Kind::Number(_)) || cue != F::CueResult)
                .any(|at| matches!(self.kind(at), Kind::Word(_)) && self.question.names_target(self.tokens.slice(at)));
        features.set(F::NamesTarget, target);
    }

    /// The part of a sentence in which a number stands: its subject, a reason, a premise, one of a pair.
    fn clause(&self, at: usize, range: &Range<usize>, features: &mut Features) {
        // From the last comma, sign or verb before the number.
        let start = range.start.max(at.saturating_sub(3 * NEAR));
        let mut verb = false;
        let mut clause = at;
        while clause > start {
            let meaning = self.tokens.meaning(clause - 1);
            match self.kind(clause - 1) {
                Kind::Comma | Kind::Colon | Kind::Arrow | Kind::Open => break,
                Kind::Word(_) if meaning.has(Meaning::REASON) => {
                    features.add(F::InReason);
                    break;
                }
                Kind::Word(_) if meaning.has(Meaning::IF) && self.is_if(clause - 1) => {
                    features.add(F::InIf);
                    break;
                }
                // "after 30 minutes" where minutes were asked for
                Kind::Word(_) if clause == at && features.has(F::AskedUnit) => {}
                Kind::Word(_) if !verb && self.begins_premise(clause - 1, range.start) => {
                    features.add(F::InPremise);
                    break;
                }
                Kind::Word(_) if meaning.has(Meaning::LINK.with(Meaning::GIVES)) => verb = true,
                Kind::Equals => verb = true,
                _ => {}
            }
            clause -= 1;
        }
        // A reason that began before the last comma goes on, unless a conclusion was drawn.
        if !features.has(F::InReason) {
            let reason = (range.start + 1..clause).rev().take(24).find(|&at| self.tokens.means(at, Meaning::REASON.with(Meaning::CONCLUDES)));
            features.set(F::InReason, reason.is_some_and(|at| self.tokens.means(at, Meaning::REASON) && at > range.start + 2));
        }
        // "Because there are 2 trains, ..." comes before what it is the reason for; "21, because 7 take 3" after it.
        if features.has(F::InReason) {
            let reason = (range.start..at).rev().find(|&at| self.tokens.means(at, Meaning::REASON)).unwrap_or(at);
            features.set(F::ReasonFirst, self.words(&(range.start..reason)).count() <= 1 && !(range.start..reason).any(|at| matches!(self.kind(at), Kind::Number(_))));
        }
        if features.has(F::SmallWord) && matches!(self.kind(at + 1), Kind::Comma | Kind::Stop | Kind::Colon) && (at == 0 || matches!(self.kind(at - 1), Kind::Line | Kind::Bold)) {
            features.remove(&[F::SmallWord]);
        }
        let (behind, _) = self.behind(at);
        let opens = |at: usize| {
            matches!(self.kind(at), Kind::Word(m) if m.has(Meaning::CONCLUDES.with(Meaning::FILLER))) || self.is_mark(at) || matches!(self.kind(at), Kind::Comma | Kind::Bullet)
        };
        let begins = (range.start..at).all(opens);
        features.set(F::BeginsSentence, begins);
        let verb_behind = behind < range.end
            && (self.tokens.means(behind, Meaning::LINK.with(Meaning::GIVES)) || (at + 1..behind).any(|at| self.is_unit(at)) && matches!(self.kind(behind), Kind::Word(_)));
        features.set(F::IsSubject, begins && verb_behind);
        features.set(F::TotalsBehind, behind < range.end && (self.tokens.means(behind, Meaning::TOTALS) || (at + 1..range.end.min(behind + 4)).any(|at| self.tokens.means(at, Meaning::TOTALS))));
        let ends = (behind..range.end).all(|at| self.is_mark(at) || matches!(self.kind(at), Kind::Close | Kind::Bar | Kind::Ellipsis));
        features.set(F::EndsSentence, ends);
        let each = |at: usize| self.is(at, &["each", "apiece", "per", "chacun", "chacune", "jeweils", "pro", "cadauno", "ciascuno"]) || self.is(at, &["cada"]) && self.is(at + 1, &["uno", "una"]);
        features.set(F::EachBehind, each(behind) || each(at + 1) || behind > at + 1 && each(behind - 1));
        features.set(F::Trails, self.kind(at + 1) == Kind::Ellipsis);
        let of = (at.saturating_sub(2)..at).find(|&before| self.is(before, &["of", "de", "von", "der", "di"]) && before >= range.start);
        features.set(F::AnyOf, of.is_some_and(|of| of > range.start && self.is(of - 1, &["any", "one", "each", "every", "either", "some", "none", "all", "both", "eine", "einer", "jede", "jeder", "uno", "una", "un", "une", "chacun", "cada"])));
        features.set(F::NoneOf, features.has(F::CountWord) && features.has(F::BeginsSentence) && self.is(at + 1, &["of", "de", "der", "von", "di"]));
        features.set(F::OfMany, self.is(at + 1, &["of", "from", "out", "von", "de", "di"]));
        self.pair(at, range, features);
        // The words of the question in the clause itself.
        let from = (range.start..at).rev().find(|&at| matches!(self.kind(at), Kind::Comma | Kind::Colon)).unwrap_or(range.start);
        let to = (at + 1..range.end).find(|&at| matches!(self.kind(at), Kind::Comma | Kind::Colon)).unwrap_or(range.end);
        features.set(F::ClauseAsked, self.question.shares(self.tokens, from..to) >= 2);
        // "Ana is 18 and Ben is 36"
        let asked = |at: usize| self.question.asks_about(self.tokens.slice(at));
        let name = (range.start..at).rev().take(8).take_while(|&at| !matches!(self.kind(at), Kind::Number(_))).find(|&at| {
            matches!(self.kind(at), Kind::Word(_)) && self.question.is_name(self.tokens.slice(at))
        });
        features.set(F::NamedAsked, name.is_some_and(asked));
        features.set(F::NamedOther, name.is_some_and(|at| !asked(at)) && self.question.asks_about_someone());
        features.set(F::OtherPart, self.is_of_other_part(at, range));
        if self.is_range_side(at, range) {
            features.add(F::RangeSide);
        }
    }

    /// True if a word begins a clause that the answer only rests on: "after", "having", a verb in -ing at the beginning.
    fn begins_premise(&self, at: usize, start: usize) -> bool {
        if self.tokens.means(at, Meaning::PREMISE) {
            if self.question.asks_difference && self.is(at, &["by"]) {
                return false;
            }
            let within = self.is(at, &["with", "mit", "avec", "con", "com", "by", "for", "of", "von"]);
            return !within || at == start || matches!(self.kind(at - 1), Kind::Comma);
        }
        let first = (start..at).all(|before| !matches!(self.kind(before), Kind::Word(m) if !m.has(Meaning::CONCLUDES)) && !matches!(self.kind(before), Kind::Number(_)));
        first && self.tokens.slice(at).len() > 5 && self.tokens.slice(at).to_ascii_lowercase().ends_with("ing")
    }

    /// Numbers beside a number that have its standing: "84 or 85", "2, 3 and 5".
    fn pair(&self, at: usize, range: &Range<usize>, features: &mut Features) {
        let is_number = |at: usize| at >= range.start && at < range.end && matches!(self.kind(at), Kind::Number(_));
        let (behind, has_unit) = self.behind(at);
        let mut next = behind;
        while self.kind(next) == Kind::Comma && next < range.end {
            next += 1;
        }
        let or = self.tokens.means(next, Meaning::OR);
        let and = self.tokens.means(next, Meaning::AND);
        if next < range.end && (or || and) {
            let mut other = next + 1;
            // "exactly $139.93, or roughly $140"
            let about = or && self.is(other, &["about", "roughly", "around", "approximately", "nearly", "almost", "rund", "etwa", "environ", "unos"]);
            // A list that the end of the text cuts.
            if other >= range.end && self.truncated && range.end + 1 >= self.tokens.tokens.len() {
                features.add(F::InList);
            }
            while other < range.end && (self.is_mark(other) || self.tokens.means(other, Meaning::FILLER)) {
                other += 1;
            }
            if is_number(other) && self.is_alone(other) && !about && !self.same(at, other) {
                let (_, other_unit) = self.behind(other);
                let units = has_unit && other_unit && !self.tokens.slice(at + 1).eq_ignore_ascii_case(self.tokens.slice(other + 1));
                features.set(if or && !units { F::RivalBehind } else { F::InList }, !units);
            }
        }
        let mut previous = at;
        while previous > range.start && (self.is_mark(previous - 1) || self.tokens.means(previous - 1, Meaning::FILLER)) {
            previous -= 1;
        }
        if previous > range.start && self.tokens.means(previous - 1, Meaning::OR.with(Meaning::AND)) {
            let or = self.tokens.means(previous - 1, Meaning::OR);
            let mut other = previous - 1;
            let mut words = 0;
            while other > range.start && !is_number(other) && (words < UNITS || self.is_mark(other)) {
                words += usize::from(self.is_unit(other));
                if other < previous - 1 && !self.is_unit(other) && !self.is_mark(other) && self.kind(other) != Kind::Comma {
                    break;
                }
                other -= 1;
            }
            if is_number(other) && self.is_alone(other) && !self.same(at, other) {
                let both = self.is_unit(other + 1) && self.is_unit(at + 1) && !self.tokens.slice(other + 1).eq_ignore_ascii_case(self.tokens.slice(at + 1));
                features.set(if or { F::RivalBefore } else { F::InList }, !both);
            }
        }
        // Three and more with commas between.
        let percent = |at: usize| self.number(at).is_some_and(|number| number.percent);
        let joined = |at: usize| matches!(self.kind(at), Kind::Comma | Kind::Ellipsis | Kind::Arrow) || self.tokens.means(at, Meaning::AND.with(Meaning::OR)) || at >= range.end;
        let mut behind = behind;
        while self.kind(behind) == Kind::Bold {
            behind += 1;
        }
        let comma_behind = self.kind(behind) == Kind::Comma && is_number(behind + 1) && percent(at) == percent(behind + 1) && joined(self.behind(behind + 1).0);
        let comma_before = at > range.start + 1 && self.kind(at - 1) == Kind::Comma && (is_number(at - 2) || self.is_unit(at - 2) && is_number(at.saturating_sub(3)));
        features.set(F::InList, comma_behind || comma_before || features.has(F::InList));
    }

    /// "2–3", "between 100 and 110", "12 to 18".
    fn is_range_side(&self, at: usize, range: &Range<usize>) -> bool {
        let joins = |at: usize| matches!(self.kind(at), Kind::Other | Kind::Operator('-')) && self.tokens.slice(at).starts_with(['–', '—', '-', '~']) || self.is(at, &["to", "bis", "through", "à", "a"]);
        let side = |other: usize, sign: usize| other >= range.start && other < range.end && matches!(self.kind(other), Kind::Number(_)) && joins(sign);
        side(at + 2, at + 1)
            || at >= range.start + 2 && side(at - 2, at - 1) && !self.is(at - 1, &["a", "à"])
            || (range.start..at).rev().take(6).take_while(|&at| self.kind(at) != Kind::Comma).any(|at| self.is(at, &["between", "zwischen", "entre", "tra"]))
    }

    /// One number in brackets behind words or signs that lead to a result.
    fn is_answer_in_brackets(&self, open: usize, start: usize) -> bool {
        matches!(self.kind(open + 1), Kind::Number(_))
            && self.kind(open + 2) == Kind::Close
            && (open == start
                || match self.kind(open - 1) {
                    Kind::Colon | Kind::Equals | Kind::Arrow => true,
                    Kind::Word(meaning) => meaning.has(Meaning::LINK.with(Meaning::GIVES)),
                    _ => false,
                })
    }

    /// The remainder where the quotient was asked for, and the other way round.
    fn is_of_other_part(&self, at: usize, range: &Range<usize>) -> bool {
        let question = self.question;
        if question.asks_remainder == question.asks_quotient {
            return false;
        }
        for before in (range.start..at).rev().take(4) {
            match self.kind(before) {
                Kind::Word(_) if self.is(before, &["remainder", "rest", "reste", "resto", "r"]) => return !question.asks_remainder,
                Kind::Word(_) if self.is(before, &["quotient"]) => return question.asks_remainder,
                Kind::Number(_) | Kind::Comma | Kind::Stop => return false,
                _ => {}
            }
        }
        false
    }

    /// Boxes, tags, announcements and bold type.
    fn marks(&self, piece: &Piece, found: &mut [Mention]) {
        let range = piece.range.clone();
        let mut open = None;
        for at in range.clone().filter(|&at| self.kind(at) == Kind::Bold) {
            match open.take() {
                Some(open) => self.bold(&range, open, at, found),
                None if self.closes(at) => {}
                None => open = Some(at),
            }
        }
        // "**36 seats.**"
        if let Some(open) = open
            && self.kind(range.end) == Kind::Stop
            && self.kind(range.end + 1) == Kind::Bold
        {
            self.bold(&range, open, range.end, found);
        }
        let mut at = range.start;
        while at < range.end {
            let mut next = at + 1;
            match self.kind(at) {
                Kind::BoxOpen => {
                    let end = self.matching(at, Kind::BoxOpen, Kind::BoxClose);
                    let inside: Vec<usize> = within(found, at, end);
                    for (nth, &index) in inside.iter().enumerate() {
                        let features = &mut found[index].features;
                        features.add(F::Boxed);
                        let last = nth + 1 == inside.len();
                        features.set(F::BoxedResult, last && !features.has(F::EqualsLeft) || features.has(F::EqualsLast));
                        features.set(F::BoxList, inside.len() > 1 && features.has(F::InList));
                        found[index].mark = Mark::Boxed;
                    }
                    next = at + 1;
                }
                Kind::AnswerOpen => {
                    let end = self.matching(at, Kind::AnswerOpen, Kind::AnswerClose);
                    self.mark(found, at, end, F::Tagged);
                }
                Kind::Hashes => {
                    self.mark(found, at, range.end, F::Hashes);
                }
                Kind::Word(meaning) if meaning.has(Meaning::ANSWER.with(Meaning::RESULT)) => {
                    next = self.declared(at, piece, found, meaning).max(next);
                }
                Kind::Word(meaning) if meaning.has(Meaning::LINK) => self.confirmed(at, &range, found),
                _ => {}
            }
            at = next;
        }
    }

    /// True if the mark of bold type at a token ends it: a space follows, none stands before.
    fn closes(&self, at: usize) -> bool {
        let ends = matches!(self.kind(at + 1), Kind::Line | Kind::End | Kind::Stop | Kind::Comma | Kind::Colon);
        !self.tokens.is_spaced(at) && at > 0 && self.kind(at - 1) != Kind::Line && (self.tokens.is_spaced(at + 1) || ends)
    }

    fn mark(&self, found: &mut [Mention], from: usize, to: usize, feature: F) {
        for index in within(found, from, to) {
            found[index].features.add(feature);
            found[index].mark = Mark::Marker;
        }
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

    /// "The answer is", "Answer:", "final result", `"answer":` and the numbers behind them; the first token behind.
    fn declared(&self, at: usize, piece: &Piece, found: &mut [Mention], meaning: Meaning) -> usize {
        let range = &piece.range;
        let is_answer = meaning.has(Meaning::ANSWER);
        let key = self.is_key(at);
        let sought = (range.start.max(at.saturating_sub(2))..at).any(|before| self.tokens.means(before, Meaning::SEEKS));
        let (mut next, mut led, mut colon, mut unknown, mut of) = (at + 1, false, false, 0, false);
        while next < range.end {
            match self.kind(next) {
                Kind::Number(_) if of && !led => {}
                Kind::Number(_) | Kind::BoxOpen | Kind::AnswerOpen => break,
                Kind::Colon => (led, colon) = (true, true),
                Kind::Equals | Kind::Arrow => led = true,
                Kind::Word(meaning) if meaning.has(Meaning::LINK) => led = true,
                Kind::Word(meaning) if meaning.has(Meaning::ANSWER.with(Meaning::RESULT)) && !led => return next,
                // "Final check:"
                Kind::Word(meaning) if meaning.has(Meaning::CHECKS) => return at + 1,
                Kind::Word(meaning) if meaning.has(Meaning::DENIES.with(Meaning::EXAMPLE).with(Meaning::OR)) => {}
                // "The answer to 744 + 543 is"
                Kind::Word(meaning) if meaning.has(Meaning::CONTEXT) || self.is(next, &["to"]) => {
                    if led { unknown += 1 } else { of = true }
                }
                Kind::Word(meaning) if meaning.has(Meaning::FILLER.with(Meaning::CONCLUDES).with(Meaning::MINUS).with(Meaning::GIVES)) => {}
                Kind::Word(_) if self.tokens.slice(next).len() == 1 => {}
                Kind::Word(_) => unknown += if led { 2 } else { 1 },
                Kind::Operator(_) | Kind::Comma if !of => unknown += 2,
                _ => {}
            }
            if unknown > if colon && is_answer { 9 } else { 3 } {
                return at + 1;
            }
            next += 1;
        }
        if next >= range.end {
            return at + 1;
        }
        let follows = is_answer && next <= at + 3 && unknown == 0;
        if sought && !led || !(led || follows) {
            return at + 1;
        }
        let begins = piece.begins_line && self.words(range).take_while(|&word| word < at).all(|word| self.tokens.means(word, Meaning::FILLER.with(Meaning::CONCLUDES).with(Meaning::RESULT)));
        let feature = if key {
            if is_answer { F::KeyAnswer } else { F::KeyOther }
        } else if is_answer {
            F::Declared
        } else if colon && begins {
            F::LabelResult
        } else {
            return at + 1;
        };
        let end = self.up_to_next_declaration(next, range.end, is_answer);
        let inside = within(found, next.saturating_sub(1), end);
        for (nth, &index) in inside.iter().enumerate() {
            let result = found[index].features.has(F::EqualsLast) && !found[index].features.has(F::InBrackets);
            found[index].features.add(if nth == 0 || result { feature } else { F::DeclaredBehind });
            found[index].mark = Mark::Marker;
        }
        next
    }

    /// `"result":`
    fn is_key(&self, at: usize) -> bool {
        at > 0 && self.kind(at - 1) == Kind::Quote && self.kind(at + 1) == Kind::Quote && self.kind(at + 2) == Kind::Colon
    }

    /// An announcement reaches to the next one, and within JSON to the next key.
    fn up_to_next_declaration(&self, from: usize, end: usize, is_answer: bool) -> usize {
        (from + 1..end)
            .find(|&at| {
                let key = self.kind(at) == Kind::Comma && self.kind(at + 1) == Kind::Quote && matches!(self.kind(at + 2), Kind::Word(_));
                let again = is_answer && self.tokens.means(at, Meaning::ANSWER) && self.tokens.means(at + 1, Meaning::LINK);
                key || again || self.kind(at) == Kind::Bar
            })
            .unwrap_or(end)
    }

    /// "17 is the answer", "so 4207 is correct".
    fn confirmed(&self, at: usize, range: &Range<usize>, found: &mut [Mention]) {
        let mut word = at + 1;
        while word < range.end
            && (self.tokens.means(word, Meaning::FILLER) && !self.tokens.means(word, Meaning::CONFIRMS) || self.kind(word) == Kind::Bold)
        {
            word += 1;
        }
        if word >= range.end || !self.tokens.means(word, Meaning::CONFIRMS) || (word + 1 < range.end && matches!(self.kind(word + 1), Kind::Word(_))) {
            return;
        }
        let number = (range.start..at).rev().find(|&at| !matches!(self.kind(at), Kind::Bold | Kind::Quote | Kind::Close | Kind::BoxClose) && !self.is_unit(at));
        for mention in found.iter_mut().filter(|mention| Some(mention.at) == number) {
            mention.features.add(F::Confirmed);
            mention.mark = Mark::Marker;
        }
    }

    /// Bold type around a number.
    fn bold(&self, range: &Range<usize>, open: usize, close: usize, found: &mut [Mention]) {
        let words = (open + 1..close).filter(|&at| matches!(self.kind(at), Kind::Word(_))).count();
        if words > 10 {
            return;
        }
        let label = self.kind(close - 1) == Kind::Colon || self.kind(close + 1) == Kind::Colon;
        let inside = within(found, open, close);
        // A sentence that is bold as a whole says nothing of its last number.
        let all = (open == range.start || self.kind(open - 1) == Kind::Bullet) && close + 1 >= range.end;
        for (nth, &index) in inside.iter().enumerate() {
            let last = nth + 1 == inside.len();
            let unit = self.behind(found[index].at).0 >= close;
            let alone = inside.len() == 1 && unit && (open + 1..found[index].at).all(|at| !matches!(self.kind(at), Kind::Word(_)));
            found[index].features.add(if label { F::BoldLabel } else if alone { F::Bold } else if last || all { F::BoldSentence } else { continue });
            if !label && found[index].mark == Mark::Sentence {
                found[index].mark = Mark::Bold;
            }
        }
    }

    /// A number that is all of its line, or with which a completion begins.
    fn by_itself(&self, piece: &Piece, found: &mut [Mention]) {
        let range = &piece.range;
        if !piece.begins_line {
            return;
        }
        let passes = |at: usize| {
            matches!(
                self.kind(at),
                Kind::Bold | Kind::Quote | Kind::Open | Kind::Arrow | Kind::Equals | Kind::Bullet | Kind::Heading | Kind::Colon | Kind::Bar | Kind::Other | Kind::BoxOpen | Kind::Greater | Kind::Ellipsis
            )
        };
        let Some(first) = range.clone().find(|&at| !passes(at)) else { return };
        let Some(index) = found.iter().position(|mention| mention.at == first) else { return };
        let mut end = first + 1;
        let mut words = 0;
        while end < range.end {
            match self.kind(end) {
                Kind::Bold | Kind::Quote | Kind::Close | Kind::Check | Kind::Bar | Kind::Other | Kind::BoxClose | Kind::Less | Kind::Ellipsis => {}
                Kind::Word(m) if words < 3 && !m.has(Meaning::LINK.with(Meaning::GIVES).with(Meaning::UP).with(Meaning::DOWN).with(Meaning::AND).with(Meaning::OR)) => words += 1,
                Kind::Greater => {}
                _ => break,
            }
            end += 1;
        }
        let ends = |at: usize| matches!(self.kind(at), Kind::Line | Kind::End | Kind::Rule | Kind::Program);
        let line_ends = ends(range.end) || ends(range.end + 1) || self.kind(range.end + 1) == Kind::Bold && ends(range.end + 2);
        let alone = end == range.end && (words == 0 || line_ends) || self.kind(end) == Kind::Open && self.tokens.is_spaced(end);
        let begins_text = (0..first).all(|at| passes(at) || self.kind(at) == Kind::Line);
        let whole = alone && begins_text && (range.end..self.tokens.tokens.len()).all(|at| ends(at) || self.kind(at) == Kind::Stop || self.is_mark(at));
        let features = &mut found[index].features;
        features.set(F::Whole, whole);
        features.set(F::LineAlone, alone && !whole);
        features.set(F::Highlighted, self.kind(range.start) == Kind::Greater && alone);
        // A raw completion goes on behind the "=" of its prompt.
        let goes_on = begins_text
            && self.question.open_ended
            && !self.question.is_chat
            && !matches!(self.kind(first + 1), Kind::Equals | Kind::Operator(_) | Kind::Less | Kind::Greater)
            && !(matches!(self.kind(first + 1), Kind::Colon | Kind::Comma) && self.kind(first + 1) != Kind::Line && matches!(self.kind(first + 2), Kind::Number(_)))
            && !self.tokens.means(first + 1, Meaning::LINK.with(Meaning::GIVES).with(Meaning::UP).with(Meaning::DOWN).with(Meaning::AND).with(Meaning::OPERATOR));
        features.set(F::Continues, goes_on);
        if whole || alone || goes_on {
            let mark = &mut found[index].mark;
            if *mark == Mark::Sentence {
                *mark = Mark::OnlyNumber;
            }
        }
    }

    /// Where the mentions stand in their sentence.
    fn order(&self, range: &Range<usize>, found: &mut [Mention]) {
        let table = range.clone().filter(|&at| self.kind(at) == Kind::Bar).count() >= 2;
        let totals = table && range.clone().any(|at| self.tokens.means(at, Meaning::TOTALS.with(Meaning::ANSWER)));
        let asked = found.iter().any(|mention| mention.features.tier() > 0 && mention.features.has(F::AskedUnit));
        for mention in found.iter_mut().filter(|mention| asked && mention.features.has(F::HasUnit) && !mention.features.has(F::AskedUnit)) {
            mention.features.add(F::BesideAsked);
        }
        // Numbers that are about something else do not count.
        let count = found.iter().filter(|mention| mention.features.tier() > 0).count();
        let others = found.len() - count;
        let mut nth = 0;
        for mention in found.iter_mut() {
            if mention.features.tier() > 0 {
                mention.features.set(F::OnlyOfSentence, count == 1);
                mention.features.set(F::OnlyBesideOthers, count == 1 && others > 0);
                mention.features.set(F::FirstOfSentence, count > 1 && nth == 0);
                mention.features.set(F::LastOfSentence, count > 1 && nth + 1 == count);
                nth += 1;
            }
            if table {
                mention.features.add(if nth == count { F::TableLast } else { F::TableOther });
                mention.features.set(F::TableTotal, nth == count && totals);
            }
        }
    }

    /// "comes out ahead", "wins"
    fn wins(&self, at: usize) -> bool {
        self.is(at, &["wins", "winner", "ahead", "gewinnt", "gagne", "gana", "vince"])
    }

    /// Of two compared numbers the one that a comparison makes the extreme that was asked for: "9.11 is smaller than 9.9".
    fn comparison(&self, range: &Range<usize>, found: &mut [Mention]) {
        let Some(extreme) = self.question.extreme else { return };
        let compares = |&at: &usize| match self.kind(at) {
            Kind::Less | Kind::Greater => true,
            Kind::Word(meaning) => meaning.has(Meaning::UP.with(Meaning::DOWN)),
            _ => false,
        };
        // "-7 比 -12 大"
        let than = range.clone().find(|&at| self.tokens.slice(at).ends_with('比'));
        if let Some(than) = than {
            let up = (than..range.end).any(|at| self.tokens.slice(at).contains(['大', '多', '高', '长', '重']));
            let subject = found.iter().rposition(|mention| mention.at < than);
            let other = found.iter().position(|mention| mention.at > than);
            if let (Some(subject), Some(other)) = (subject, other) {
                let (chosen, left) = if up == (extreme == Extreme::Largest) { (subject, other) } else { (other, subject) };
                found[chosen].features.add(F::Compared);
                found[left].features.add(F::NotCompared);
            }
            return;
        }
        let mut all = range.clone().filter(compares).peekable();
        if all.peek().is_none() {
            // "3/7 comes out ahead"
            let wins = range.clone().find(|&at| self.wins(at));
            let winner = wins.and_then(|at| found.iter().rposition(|mention| mention.at < at));
            if let Some(winner) = winner {
                found[winner].features.add(F::Compared);
            }
            return;
        }
        for at in all {
            self.compared_by(at, range, extreme, found);
        }
    }

    /// What one word or sign that compares says of the numbers beside it.
    fn compared_by(&self, at: usize, range: &Range<usize>, extreme: Extreme, found: &mut [Mention]) {
        let up = self.kind(at) == Kind::Greater || self.tokens.means(at, Meaning::UP);
        let wanted = up == (extreme == Extreme::Largest);
        let (which, other_way) = if wanted { (F::Compared, F::NotCompared) } else { (F::NotCompared, F::Compared) };
        let ends = |at: &usize| matches!(self.kind(*at), Kind::Comma | Kind::Colon) && !matches!(self.kind(at + 1), Kind::Number(_));
        let from = (range.start..at).rev().find(ends).unwrap_or(range.start);
        let to = (at + 1..range.end).find(ends).unwrap_or(range.end);
        if (from..at).any(|before| self.tokens.means(before, Meaning::DENIES)) {
            return;
        }
        // "the larger one is 0.6"
        let link = (at + 1..to.min(at + 5))
            .take_while(|&at| !matches!(self.kind(at), Kind::Number(_)) && !self.is(at, &["than"]))
            .find(|&at| self.tokens.means(at, Meaning::LINK) || self.kind(at) == Kind::Colon);
        let open = |mention: &Mention| !mention.features.has(F::InReason);
        if let Some(named) = link.and_then(|link| found.iter().position(|mention| mention.at > link && mention.at < to)) {
            if open(&found[named]) {
                found[named].features.add(which);
            }
            return;
        }
        let subject = found.iter().rposition(|mention| mention.at < at && mention.at >= from);
        let other = found.iter().position(|mention| mention.at > at && mention.at < to);
        if let Some(subject) = subject.filter(|&subject| open(&found[subject])) {
            found[subject].features.add(which);
            if let Some(other) = other {
                found[other].features.add(other_way);
            }
        }
    }
}

/// Most words of a unit between two numbers of a pair.
const UNITS: usize = 4;

/// True where the words before a filler word make it part of something else.
fn filler_ends(at: usize, start: usize, scan: &Scan<'_>) -> bool {
    at > start && scan.tokens.means(at - 1, Meaning::REASON)
}

/// Mentions between two tokens.
fn within(found: &[Mention], from: usize, to: usize) -> Vec<usize> {
    (0..found.len()).filter(|&index| found[index].at > from && found[index].at < to).collect()
}

impl Features {
    /// The strength of the claim to be the answer: 4 for one that says so itself, 3 for one that is shown, 2 for a result, 1 for a number of
    /// a sentence, 0 for one that is about something else.
    pub(super) fn tier(&self) -> u8 {
        if self.any(&[F::Check, F::CheckSection, F::Offer, F::Question, F::Restates, F::Hypothetical, F::ExampleQuoted]) {
            return if self.any(&[F::Boxed, F::Tagged, F::Hashes, F::Declared]) && !self.any(&[F::Question, F::Hypothetical]) { 4 } else { 0 };
        }
        if (self.any(&[F::Denied, F::NotCompared, F::SaidWrong, F::Refuted]) || self.has(F::InReason) && !self.has(F::ReasonFirst) || self.has(F::InIf) && !self.has(F::EqualsLast) || self.has(F::InPremise) && !self.any(&[F::CueGives, F::EqualsLast])) && !self.any(&[F::Boxed, F::Tagged, F::Bold]) {
            return 0;
        }
        if self.has(F::Choice) && !self.has(F::Chosen) {
            return 1;
        }
        if self.any(&[F::BoxedResult, F::Tagged, F::Hashes, F::Declared, F::Confirmed, F::Headed, F::KeyAnswer, F::Chosen]) {
            return 4;
        }
        if self.any(&[F::Whole, F::LineAlone, F::Bold, F::BoldSentence, F::AskedEquation, F::LabelResult, F::Continues, F::Compared, F::NamesTarget]) && !self.has(F::InBrackets) {
            return 3;
        }
        if self.any(&[F::EqualsLast, F::CueLink, F::CueGives, F::CueConcludes, F::CueArrow, F::CueTotal, F::CueColon]) && !self.any(&[F::InBrackets, F::Elaborates]) {
            return 2;
        }
        u8::from(!self.has(F::InBrackets))
    }
}

/// True for forms of a number that an instruction asks for.
pub(super) fn instructs(form: Form) -> bool {
    form != Form::Number
}
