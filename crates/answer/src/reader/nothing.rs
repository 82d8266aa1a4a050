//! Evidence for a completion's giving no answer.

use super::feature::{Feature as F, Features};
use super::mention::Mention;
use super::piece::Piece;
use super::refusal;
use super::scan::Scan;
use super::token::Kind;
use super::vocabulary::Meaning;

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
    none.set(
        F::NoneAsks,
        (last.is_some_and(asks) || waits)
            && (best < 2 || best == 2 && last.is_some_and(|piece| scan.asks_back(&piece.range))),
    );
    none.set(F::NoneDepends, refusal::is_open(scan.tokens.text));
    let operation = last.is_some_and(|piece| {
        let numbers: Vec<usize> = piece.range.clone().filter(|&at| scan.is_number(at)).collect();
        let bracketed = |at: usize| {
            let count = |kind: Kind| (piece.range.start..at).filter(|&other| scan.kind(other) == kind).count();
            count(Kind::Open) > count(Kind::Close)
        };
        numbers.last().is_some_and(|&at| {
            !(scan.is_alone(at) || bracketed(at) && numbers.iter().any(|&other| scan.is_alone(other)))
        })
    });
    // "14 = 72 / 5" is no operation without a result.
    let done = mentions.iter().any(|mention| mention.features.any(&[F::AskedEquation, F::ResultFirst]));
    none.set(F::NoneOperation, operation && !done);
    let bare = scan.tokens.tokens.iter().all(|token| match token.kind {
        Kind::Number(_) | Kind::Comma | Kind::Stop | Kind::Question | Kind::Line | Kind::Bullet | Kind::Close => true,
        Kind::Bold | Kind::Semicolon | Kind::Other | Kind::End => true,
        _ => false,
    });
    let apart = |two: &[Mention]| !scan.same(two[0].at, two[1].at);
    let several = mentions.windows(2).filter(|two| apart(two)).count() >= 2;
    let beside = mentions.windows(2).any(|two| apart(two) && two[0].piece == two[1].piece);
    none.set(F::NoneBareList, bare && (several || beside));
    // "So the answer is" and nothing more; "Adding these together", where the text is cut.
    let goes_on = |piece: &Piece| {
        let range = &piece.range;
        let last = range.end - 1;
        let leads = scan.kind(last) == Kind::Colon
            || scan.tokens.means(last, Meaning::LINK.with(Meaning::GIVES))
            || scan.is(last, "of");
        let begins = scan.opens_with(range, 1, Meaning::CONCLUDES.with(Meaning::PLANS))
            || scan
                .words(range)
                .next()
                .is_some_and(|at| scan.tokens.slice(at).len() > 5 && scan.tokens.slice(at).ends_with("ing"));
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
