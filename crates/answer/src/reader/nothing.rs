//! Evidence for a completion's giving no answer.

use super::feature::{Feature as F, Features};
use super::mention::Mention;
use super::piece::Piece;
use super::refusal;
use super::scan::Scan;
use super::token::Kind;
use super::vocabulary::{Meaning, any_of};

/// Collects the evidence for there being no answer.
pub(super) fn nothing(
    scan: &Scan<'_>,
    pieces: &[Piece],
    mentions: &[Mention],
    ended: bool,
    refuses: bool,
    none: &mut Features,
) {
    none.set(F::NoneRefused, refuses);
    none.set(F::NoneTruncated, scan.truncated && !ended);
    let best = mentions.iter().map(|mention| mention.features.tier()).max().unwrap_or(0);
    let last = pieces.last();
    // "Should I take 4 weeks? Let me know."
    let asks = |piece: &Piece| piece.asks && !scan.states(&piece.range) && !scan.is_offer(&piece.range);
    let before_last = pieces.len().checked_sub(2).map(|at| &pieces[at]);
    let waits = last.is_some_and(|piece| !scan.has_number(&piece.range)) && before_last.is_some_and(asks);
    let open = best < 2 || best == 2 && last.is_some_and(|piece| scan.asks_back(&piece.range));
    none.set(F::NoneAsks, (last.is_some_and(asks) || waits) && open);
    none.set(F::NoneDepends, refusal::is_open(scan.text));
    let operation = last.is_some_and(|Piece { range, .. }| {
        let numbers = || range.clone().filter(|&at| scan.is_number(at));
        let bracketed =
            |at: usize| scan.count(&(range.start..at), Kind::Open) > scan.count(&(range.start..at), Kind::Close);
        let alone = |at: usize| scan.is_alone(at) || bracketed(at) && numbers().any(|other| scan.is_alone(other));
        numbers().next_back().is_some_and(|at| !alone(at))
    });
    // "14 = 72 / 5" is no operation without a result.
    let done = mentions.iter().any(|mention| mention.features.any(&[F::AskedEquation, F::ResultFirst]));
    none.set(F::NoneOperation, operation && !done);
    let is_bare = |kind: Kind| {
        use Kind::{Bold, Bullet, Close, Comma, End, Line, Number, Other, Question, Semicolon, Stop};
        matches!(kind, Number(_) | Comma | Stop | Question | Line | Bullet | Close | Bold | Semicolon | Other | End)
    };
    let bare = scan.tokens.tokens.iter().all(|token| is_bare(token.kind));
    let apart = |two: &[Mention]| !scan.same(two[0].at, two[1].at);
    let several = mentions.windows(2).filter(|two| apart(two)).count() >= 2;
    let beside = mentions.windows(2).any(|two| apart(two) && two[0].piece == two[1].piece);
    none.set(F::NoneBareList, bare && (several || beside));
    // "So the answer is" and nothing more; "Adding these together", where the text is cut.
    let goes_on = |piece: &Piece| {
        let range = &piece.range;
        let last = range.end - 1;
        let leads = scan.kind(last) == Kind::Colon || scan.means(last, any_of![LINK, GIVES]) || scan.is(last, "of");
        let doing = |at: usize| scan.slice(at).len() > 5 && scan.slice(at).ends_with("ing");
        let begins =
            scan.opens_with(range, 1, any_of![CONCLUDES, PLANS]) || scan.words(range).next().is_some_and(doing);
        let asks = scan.restates(range);
        // "If you also want to know" is no step of the work.
        let aside = scan.words(range).any(|at| scan.is_if(at) || scan.is(at, "another"));
        !aside && !scan.has_number(range) && (leads || asks || begins && scan.truncated)
    };
    let said = mentions.iter().rev().find(|mention| mention.features.tier() > 0);
    none.set(F::NoneContradicted, said.is_some_and(|mention| mention.features.has(F::Contradicted)));
    none.set(F::NoneOpen, !ended && last.is_some_and(goes_on));
    // "Call 911": nothing speaks of the question, and nothing is stated.
    let asked = [F::AskedOne, F::AskedTwo, F::AskedThree, F::AskedUnit];
    let related = |mention: &Mention| {
        mention.features.any(&asked) || mention.features.tier() > 1 && !mention.features.has(F::StrangeUnit)
    };
    none.set(F::NoneUnrelated, !mentions.is_empty() && !mentions.iter().any(related));
    let empty = scan.tokens.tokens.windows(2).any(|two| two[0].kind == Kind::BoxOpen && two[1].kind == Kind::BoxClose);
    let null = (0..scan.tokens.tokens.len()).any(|at| {
        scan.means(at, Meaning::ANSWER)
            && scan.kind(at + 1) == Kind::Quote
            && scan.kind(at + 2) == Kind::Colon
            && scan.is(at + 3, "null none")
    });
    none.set(F::NoneEmptyBox, empty || null);
}
