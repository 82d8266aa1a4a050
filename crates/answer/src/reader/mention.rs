//! Mentions of numbers, and what their sentences say about each: its marks, its expression, the words before it, its clause.
use std::ops::Range;

use super::asks::Ask;
use super::feature::{Feature as F, Features, these};
use super::numeral::Spelling;
use super::piece::Piece;
use super::question::side;
use super::reading::Mark;
use super::scan::Scan;
use super::token::{Kind, is_among};
use super::vocabulary::{Meaning, any_of};

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

impl Mention {
    /// Adds a feature that words or signs around the number mark it with.
    pub(super) fn mark_as(&mut self, feature: F) {
        self.features.add(feature);
        self.mark = Mark::Marker;
    }
}

/// Farthest token that is looked at before a number for what leads to it.
pub(super) const NEAR: usize = 14;

/// A sentence, with what holds of all its numbers.
struct Sentence {
    range: Range<usize>,
    features: Features,
    restates: bool,
    colons: usize,
    /// The end of the question that it says again: a colon, or the comma of ", which is".
    restated: usize,
    turn: usize,
    /// Its word for a check behind a comma or colon, and for a conclusion behind other words.
    check: usize,
    follows: Option<usize>,
    /// It begins with the one who speaks: "I'd need".
    speaker: bool,
    /// A hypothesis: before its turn, behind it.
    hypothetical: [bool; 2],
}

impl Scan<'_> {
    /// The mentions of a sentence, in order.
    pub(super) fn mentions(&self, index: usize, pieces: &[Piece]) -> Vec<Mention> {
        let piece = &pieces[index];
        let sentence = self.sentence(piece);
        let range = piece.range.clone();
        let mut found: Vec<Mention> = Vec::new();
        let (mut depth, mut elaborates, mut stated_before_colon, mut computed_at) = (0usize, false, false, None);
        for at in range.clone() {
            match self.kind(at) {
                Kind::Open if self.is_answer_in_brackets(at, range.start) => {}
                Kind::Open => depth += 1,
                Kind::Close => depth = depth.saturating_sub(1),
                Kind::Colon if self.kind(at - usize::from(at > range.start)) != Kind::Quote => {
                    let near = || found.iter().filter(|mention| mention.at + 6 > at);
                    let led = |Mention { features, .. }: &Mention| {
                        features.any(these![CueLink CueGives EqualsLast]) && !features.has(F::EqualsLeft)
                    };
                    let behind = |mention: &Mention| mention.at > range.start || mention.features.has(F::HasUnit);
                    stated_before_colon |= near().any(led);
                    elaborates |= sentence.colons == 1 && near().any(behind);
                }
                Kind::Word(_) if self.is(at, "who whose") && at > range.start && self.kind(at - 1) == Kind::Comma => {
                    elaborates |= !found.is_empty()
                }
                Kind::Number(_) if !self.excluded[at] && self.is_alone(at) => {
                    let mut features = self.features_at(at, &sentence);
                    // "163 min, i.e. 2 h 43 min"
                    let mut near = range.start.max(at.saturating_sub(6))..at;
                    let again = near.find(|&before| self.is(before, "i.e i.e. d.h d.h.")).is_some_and(|before| {
                        // "2 h 15 min, i.e. 135 min" where minutes were asked for
                        let first = self.past(before, at, |at| !self.is_number(at));
                        !self.question.asks_unit(self.slice(first + 1))
                    });
                    let brackets =
                        at > range.start && self.kind(at - 1) == Kind::Open && self.kind(at + 1) == Kind::Close;
                    let asks_brackets = self.question.asks(Ask::Brackets);
                    // "It is 132: the first number is 18, and the second one is 30."
                    let closes = features.has(F::EndsSentence);
                    let aside = elaborates && !(features.any(these![EqualsLast CueColon]) && closes);
                    let behind = features.any(these![EqualsLast BeginsSentence]) || features.has(F::CueColon) && closes;
                    features.set(F::Restates, again && found.iter().any(|mention| mention.features.has(F::AskedUnit)));
                    features.set(F::Tagged, asks_brackets && brackets && !features.has(F::Denied));
                    features.set(F::InBrackets, depth > 0 && !asks_brackets && !features.has(F::PercentAsked));
                    features.set(F::Elaborates, aside);
                    features.set(F::ExplainsBehind, aside && stated_before_colon && !behind);
                    if features.any(these![EqualsLast EqualsMiddle]) {
                        computed_at = Some(at);
                    } else if let Some(computed) = computed_at {
                        features.set(F::AfterResult, (computed + 1..at).all(|at| !self.goes_on(at)));
                    }
                    found.push(Mention { at, piece: index, mark: Mark::Sentence, features });
                }
                _ => {}
            }
        }
        self.marks(piece, &mut found);
        self.by_itself(piece, &mut found);
        self.checks_within(&range, &mut found);
        for mention in found.iter_mut().filter(|mention| mention.features.has(F::OtherPart)) {
            mention.features.remove(these![NamesTarget]);
        }
        // "Because there are 2 trains and 3 buses, 5 leave": what its reason is for stands behind.
        let concluded = found.iter().any(|mention| !mention.features.has(F::InReason) && mention.features.tier() > 0);
        for mention in found.iter_mut().filter(|_| concluded) {
            mention.features.remove(these![ReasonFirst]);
        }
        self.comparison(&range, &mut found);
        self.order(&range, &mut found);
        // "The digits are 1, 0, 1, 1"
        let many = found.iter().filter(|mention| mention.features.has(F::InList)).count() >= 4;
        for mention in found.iter_mut().filter(|mention| many && mention.features.has(F::InList)) {
            mention.features.add(F::ManyListed);
        }
        if let Some(last) = found.last_mut().filter(|_| self.is_result_row(index, pieces)) {
            last.features.add(F::TableTotal);
        }
        found
    }

    /// Marks what checks the answer behind it in its own sentence: "The answer is 84, and 84 / 12 = 7", "84: infatti 12 × 7 = 84".
    fn checks_within(&self, range: &Range<usize>, found: &mut [Mention]) {
        let states =
            |features: Features| features.any(these![Declared BoxedResult Tagged]) && !features.has(F::EqualsLast);
        let Some(stated) = found.iter().position(|mention| states(mention.features)) else { return };
        let said = found[stated].at;
        let again = |at: usize| self.is_number(at) && self.same(at, said) && !self.is_alone(at);
        // "The price is 30, so 50 - 30 = 20" goes on.
        let goes_on = |at: &usize| !self.means(*at, Meaning::FOLLOWS);
        let check = (said + 1..range.end).take_while(goes_on).find(|&at| again(at));
        for mention in found.iter_mut().skip(stated + 1) {
            mention.features.set(F::CheckWithin, check.is_some_and(|check| mention.at > check));
        }
    }

    /// Features of a number from its own sentence, but for its marks and the numbers beside it.
    fn features_at(&self, at: usize, sentence: &Sentence) -> Features {
        let range = &sentence.range;
        let mut features = sentence.features;
        features.set(F::Restates, sentence.restates && at < sentence.restated);
        features.set(F::AfterTurn, at > sentence.turn);
        features.set(F::BeforeTurn, at < sentence.turn && sentence.turn < range.end);
        features.set(F::SaidWrong, self.is_said_wrong(at, range));
        self.expression(at, range, &mut features);
        // What was computed is said, whatever it would be for.
        let computed = features.has(F::Computed);
        if computed {
            features.remove(these![IfWould Unsure Plans]);
        }
        features.set(F::Hypothetical, !computed && sentence.hypothetical[usize::from(at >= sentence.turn)]);
        self.form(at, &mut features);
        self.cue(at, range, &mut features);
        self.clause(at, range, &mut features);
        // "Add 14: 84": what the step comes to.
        if features.any(these![CueColon EqualsLast]) && features.has(F::EndsSentence) {
            features.remove(these![Plans]);
        }
        features.set(F::Check, at > sentence.check);
        // "A coffee costs 1.30, so five cost 6.50"
        features.set(F::FollowsWithin, sentence.follows.is_some_and(|follows| at > follows));
        features.set(F::BeforeFollows, sentence.follows.is_some_and(|follows| at < follows));
        // "I'd need 1 more fact"
        let stated = [F::AskedUnit, F::CueLink, F::CueGives, F::EqualsLast, F::CueConcludes, F::CueColon];
        features.set(F::SpeakerOther, sentence.speaker && !features.any(&stated));
        // "I would need about 5 minutes for that"
        let needs = (range.start..at).rev().take(4).any(|at| self.is(at, "need needs take takes require"));
        let other = features.has(F::HasUnit) && !features.any(these![AskedUnit EqualsLast]);
        features.set(F::Needs, sentence.speaker && needs && other);
        // "The reference answer is 61, but I get 60"
        if features.has(F::AfterTurn) && self.opens_with(&(sentence.turn + 1..range.end), 3, Meaning::TO_YOU) {
            features.remove(these![Check]);
        }
        features.set(F::Example, self.is_example(at));
        features.set(F::Cut, self.is_cut(at));
        features.set(F::Choice, self.options.binary_search_by_key(&at, |&(_, option)| option).is_ok());
        features
    }

    /// The only row of a table whose last column is a result: "| a | b | sum |".
    fn is_result_row(&self, index: usize, pieces: &[Piece]) -> bool {
        let bars = |piece: &Piece| self.count(&piece.range, Kind::Bar);
        let is_row = |piece: &Piece| bars(piece) >= 2 && self.has_number(&piece.range);
        if !is_row(&pieces[index]) || pieces.get(index + 1).is_some_and(is_row) {
            return false;
        }
        // Between the names of the columns and the row stands a line of dashes.
        let names = |piece: &&Piece| bars(piece) >= 2 && self.words(&piece.range).next().is_some();
        pieces[..index].iter().rev().take(2).find(names).is_some_and(|header| {
            let last = self.words(&header.range).last();
            !self.has_number(&header.range) && last.is_some_and(|at| self.means(at, any_of![ANSWER, RESULT, TOTALS]))
        })
    }

    /// The question's own sentence or row of a table once more.
    fn repeats(&self, range: &Range<usize>) -> bool {
        let tokens = &self.tokens.tokens;
        let text = &self.tokens.text[tokens[range.start].start..tokens[range.end - 1].end];
        let long = self.words(range).count() >= 4 || self.count(range, Kind::Bar) > 0;
        long && self.question.says(text)
    }

    /// Looks up once the properties that all numbers of a sentence share.
    fn sentence(&self, piece: &Piece) -> Sentence {
        let range = piece.range.clone();
        let turn = self.turn(&range);
        let checks = |at: usize| {
            self.means(at, Meaning::CHECKS)
                && matches!(self.kind(at - 1), Kind::Comma | Kind::Colon | Kind::Semicolon | Kind::Other | Kind::Open)
        };
        // "The question asks for 7305000 in scientific notation, which is 7.305e6"
        let ends_restated = |at: usize| {
            let relative = self.is(at + 1, "which") && self.means(at + 2, Meaning::LINK);
            let concludes = self.kind(at) == Kind::Comma && (relative || self.means(at + 1, Meaning::FOLLOWS));
            concludes || self.kind(at) == Kind::Colon
        };
        let hypothetical = |part: Range<usize>| !part.is_empty() && self.is_hypothetical(&part);
        Sentence {
            features: self.features_of_piece(piece),
            restates: self.restates(&range) || self.repeats(&range),
            colons: self.count(&range, Kind::Colon),
            restated: range.clone().find(|&at| ends_restated(at)).unwrap_or(range.end),
            turn,
            check: (range.start + 1..range.end).find(|&at| checks(at)).unwrap_or(range.end),
            follows: self.words(&range).skip(2).find(|&at| self.means(at, Meaning::FOLLOWS)),
            speaker: self.words(&range).take(4).any(|at| self.is(at, "i i'm i'd i'll me my ich mir je yo eu io mi")),
            hypothetical: [hypothetical(range.start..turn), hypothetical(turn..range.end)],
            range,
        }
    }

    /// The turn of a sentence, ", but"; its end where there is none.
    pub(super) fn turn(&self, range: &Range<usize>) -> usize {
        let turns =
            |&at: &usize| matches!(self.kind(at), Kind::Comma | Kind::Other) && self.means(at + 1, Meaning::TURNS);
        range.clone().find(turns).unwrap_or(range.end)
    }

    /// A sign or word behind which a sentence says something new about its result.
    pub(super) fn goes_on(&self, at: usize) -> bool {
        use Kind::{Arrow, Bar, Bold, Colon, Comma, Open, Other};
        matches!(self.kind(at), Comma | Colon | Arrow | Open | Bold | Bar | Other)
            || self.means(at, any_of![CONCLUDES, LINK, OR, AND])
            || self.is(at, "which leaving leaves giving gives")
            || self.is(at, "r rest remainder") && self.is_number(at + 1)
    }

    /// "6 is wrong", "31 cannot be right"
    pub(super) fn is_said_wrong(&self, at: usize, range: &Range<usize>) -> bool {
        let (behind, _) = self.behind(at);
        let linked = behind < range.end && (self.means(behind, Meaning::LINK) || self.is(behind, "cannot can't can"));
        let words = || (behind + 1..range.end.min(behind + 4)).take_while(|&at| self.is_word(at));
        let denied = words().any(|at| self.means(at, Meaning::DENIES)) || self.is(behind, "cannot can't isn't");
        linked
            && (words().any(|at| self.means(at, Meaning::WRONG))
                || denied && words().any(|at| self.is(at, "right correct richtig correcto")))
    }

    /// Features of every number of a sentence.
    pub(super) fn features_of_piece(&self, piece: &Piece) -> Features {
        let range = &piece.range;
        let mut features = Features::default();
        let follows = self.opens_with(range, 2, Meaning::FOLLOWS);
        features.set(F::Concludes, !follows && self.opens_with(range, 2, Meaning::CONCLUDES));
        if let Some(shared) = self.shares(range).count_ones().checked_sub(1) {
            features.add([F::AskedOne, F::AskedTwo, F::AskedThree][shared.min(2) as usize]);
        }
        // "With a second hose it would take only 25."
        let is_if = self.is(range.start, "with without") || self.words(range).any(|at| self.is_if(at));
        features.set(F::IfWould, is_if && self.words(range).any(|at| self.is(at, "would could")));
        features.set(F::Unsure, self.has_meaning(range, Meaning::UNSURE));
        features.set(F::Offer, !self.is_number(range.start) && self.opens_with(range, 2, Meaning::OFFER));
        features.set(F::Check, self.is_check(range));
        features.set(F::Question, piece.asks && !self.states(range));
        // "To solve this problem, start with"
        let comma = self.past(range.start, range.end, |at| self.kind(at) != Kind::Comma);
        let aim = self.is(range.start, "to") && self.means(comma + 1, Meaning::PLANS);
        features.set(F::Plans, aim || self.opens_with(range, 4, Meaning::PLANS));
        let marker = |at: usize| self.markers.get(at).copied().unwrap_or(false);
        let first = range.start;
        let numbered = first >= 2 && marker(first - 2) && matches!(self.kind(first - 1), Kind::Stop | Kind::Close);
        // "80×6=480円だからです。"
        let last = self.slice(range.end - 1);
        features
            .set(F::InReason, ["からです", "ためです", "때문입니다", "때문이다"].iter().any(|end| last.ends_with(end)));
        features.set(F::Bullet, self.kind(first) == Kind::Bullet || marker(first) || numbered);
        features
    }

    /// Marks first, last and only numbers of a sentence.
    pub(super) fn order(&self, range: &Range<usize>, found: &mut [Mention]) {
        let table = self.count(range, Kind::Bar) >= 2;
        let totals = table && self.has_meaning(range, any_of![TOTALS, ANSWER]);
        let asked = found.iter().any(|mention| mention.features.tier() > 0 && mention.features.has(F::AskedUnit));
        let percent = found.iter().any(|mention| mention.features.has(F::PercentAsked));
        for Mention { features, .. } in found.iter_mut() {
            let beside = asked && features.has(F::HasUnit) && !features.any(these![AskedUnit EqualsLast]);
            features.set(F::BesideAsked, beside || percent && !features.has(F::PercentAsked));
        }
        self.segments(range, found);
        // "12 plums with 4 litres": what stands behind a preposition, behind a number that does not.
        let denies = self.question.denies;
        let adjunct = |Mention { features, .. }: &Mention| {
            features.any(these![CueContext CueWith])
                && !features.has(F::EqualsLast)
                && !(denies && features.has(F::SideAsked))
        };
        let first = found.iter().position(|mention| mention.features.tier() > 0 && !adjunct(mention));
        let (mut last, mut whole) = (false, false);
        for mention in found.iter_mut().skip(first.map_or(usize::MAX, |first| first + 1)) {
            // "for 5 apples and 5 oranges"
            last = adjunct(mention) && !mention.features.has(F::AskedUnit)
                || last && self.means(mention.at - 1, Meaning::AND);
            mention.features.set(F::Adjunct, last);
            // "of the 36 muffins and 24 scones"
            whole = mention.features.has(F::WholeOf) || whole && self.means(mention.at - 1, Meaning::AND);
            mention.features.set(F::WholeOf, whole);
        }
        // Numbers that are about something else do not count.
        let count = found.iter().filter(|mention| mention.features.tier() > 0).count();
        let mut nth = 0;
        for Mention { features, .. } in found.iter_mut() {
            if features.tier() > 0 {
                nth += 1;
                features.set(F::OnlyOfSentence, count == 1);
                features.set(F::LastOfSentence, count > 1 && nth == count);
            }
            if table {
                features.add(if nth == count { F::TableLast } else { F::TableOther });
                features.set(F::TableTotal, nth == count && totals);
            }
        }
    }

    /// Compares how many of the question's words stand in the part of the sentence around each number.
    fn segments(&self, range: &Range<usize>, found: &mut [Mention]) {
        let ends = |at: usize| {
            matches!(self.kind(at), Kind::Comma | Kind::Colon | Kind::Open | Kind::Close | Kind::Arrow | Kind::Bar)
                || self.means(at, any_of![AND, OR, REASON, IF])
                || self.is(at, "but while whereas after before so aber mais pero ma mas") && self.is_word(at)
        };
        let part = |at: usize| {
            let from = (range.start..at).rev().find(|&at| ends(at)).map_or(range.start, |at| at + 1);
            from..(at + 1..range.end).find(|&at| ends(at)).unwrap_or(range.end)
        };
        if found.len() > 12 {
            return;
        }
        // "7 remain, 5 are gone" where what is left was asked for
        if let Some(left) = self.question.asks_left {
            for mention in found.iter_mut() {
                if let Some(side) = side(self.tokens, part(mention.at)) {
                    mention.features.add(if side == left { F::SideAsked } else { F::SideOther });
                }
            }
        }
        // "21 came and 9 didn't" where those that did not were asked for
        let denied = self.question.denies && found.iter().any(|mention| mention.features.has(F::SideAsked));
        for mention in found.iter_mut().filter(|mention| denied && !mention.features.has(F::SideAsked)) {
            mention.features.add(F::SideOther);
        }
        let computed = |mention: &Mention| mention.features.any(these![EqualsLast EqualsMiddle EqualsLeft]);
        if found.len() < 2 || found.iter().any(computed) {
            return;
        }
        let parts: Vec<Range<usize>> = found.iter().map(|mention| part(mention.at)).collect();
        let shares: Vec<u32> = parts.iter().map(|part| (self.shares(part) & self.question.main).count_ones()).collect();
        for (index, mention) in found.iter_mut().enumerate() {
            let others = (0..parts.len()).filter(|&other| parts[other] != parts[index]).map(|other| shares[other]);
            let Some(most) = others.max() else { continue };
            // "8 are green and 11 aren't" where green ones were not asked for: the side says more than the words.
            let sides = mention.features.any(these![SideAsked SideOther]);
            mention.features.set(F::SegmentMost, !sides && shares[index] > most);
            mention.features.set(F::SegmentLess, !sides && shares[index] < most);
        }
    }

    /// Compares the form and the unit of a number with those that were asked for.
    pub(super) fn form(&self, at: usize, features: &mut Features) {
        let Some(number) = self.number(at) else { return };
        let question = self.question;
        if question.instructs {
            features.add(if question.is_in_form(number) { F::InForm } else { F::OutOfForm });
        }
        let unit = self.slice(at + 1);
        // "4 pounds of candy"
        let of = || self.means(at + 2, Meaning::OF) && question.asks_unit(self.slice(at + 3));
        // "540 L at 18 L/min"
        let rate = !question.asks_rate && (self.kind(at + 2) == Kind::Operator('/') || self.is(at + 2, "per"));
        let asked = self.is_unit(at + 1) && !rate && (question.asks_unit(unit) || of());
        let other = self.is_unit(at + 1) && !asked;
        features.set(F::AskedUnit, asked);
        features.set(F::PercentAsked, number.percent && question.asks(Ask::Percent));
        features.set(F::OtherUnit, other && !question.units.is_empty());
        features.set(F::StrangeUnit, other && !question.knows(unit));
        let compares = self.is(at + 2, "as more less the than faster longer larger");
        let times = !compares && self.means(at + 1, Meaning::TIMES);
        features.set(F::Times, times && (question.asks(Ask::Times) || question.asks(Ask::Quotient)));
        let small = number.text.parse::<u64>().is_ok_and(|value| value <= 12);
        let counts = number.spelling == Spelling::Words && number.text == "0" || self.is(at, "once twice thrice");
        features.set(F::CountWord, counts);
        let rank = number.ordinal && question.asks(Ask::Rank);
        if number.spelling == Spelling::Words && small && !counts && !asked && !rank && !features.has(F::Times) {
            features.add(if is_among(&number.text, "1 2 3") { F::SmallWord } else { F::SmallNumeral });
        }
        features.set(F::Ordinal, number.ordinal && !rank);
        features.set(F::OrdinalAsked, rank);
        let four = number.spelling == Spelling::Integer && number.text.len() == 4;
        let year = four && number.text.starts_with(['1', '2']) && !asked;
        features.set(F::YearAsked, year && question.asks_year);
    }
}

/// Mentions between two tokens.
pub(super) fn within(found: &mut [Mention], from: usize, to: usize) -> &mut [Mention] {
    let end = found.partition_point(|mention| mention.at < to);
    let start = found.partition_point(|mention| mention.at <= from).min(end);
    &mut found[start..end]
}

impl Features {
    /// The strength of the claim to be the answer: 4 for one that says so itself, 3 for one that is shown, 2 for a result, 1 for a number of
    /// a sentence, 0 for one that is about something else.
    pub(super) fn tier(&self) -> u8 {
        if self.any(these![Check CheckSection Offer Question Restates Hypothetical]) {
            let marked = self.any(these![Boxed Tagged Hashes Declared]);
            return if marked && !self.any(these![Question Hypothetical]) { 4 } else { 0 };
        }
        if (self.any(these![Denied NotCompared SaidWrong Refuted])
            || self.has(F::InReason) && !self.has(F::ReasonFirst)
            || self.has(F::InIf) && !self.has(F::EqualsLast)
            || self.has(F::InPremise) && !self.any(these![CueGives EqualsLast]))
            && !self.any(these![Boxed Tagged Bold])
        {
            return 0;
        }
        let about = self
            .any(these![AfterResult PartOf Operand ExplainsBehind Former Foreign OtherPart Needs Prefix InAsk])
            || self.has(F::Ordinal) && self.has(F::HasUnit) && !self.has(F::CueLink);
        if about && !self.any(these![Boxed Tagged Bold Declared EqualsLast])
            || self.any(these![Operand Foreign OtherPart]) && !self.any(these![Boxed Tagged Bold])
        {
            return 0;
        }
        if self.has(F::Choice) && !self.has(F::Chosen) {
            return 1;
        }
        if self.any(these![BoxedResult Tagged Hashes Declared Confirmed Headed KeyAnswer Chosen]) {
            return 4;
        }
        let shown = these![Whole LineAlone Bold BoldSentence AskedEquation LabelResult Continues Compared NamesTarget];
        if self.any(shown) && !self.has(F::InBrackets) {
            return 3;
        }
        let results = these![EqualsLast ResultFirst CueLink CueGives CueConcludes CueArrow CueTotal CueColon];
        if self.any(results) && !self.any(these![InBrackets Elaborates]) {
            return 2;
        }
        u8::from(!self.has(F::InBrackets))
    }
}
