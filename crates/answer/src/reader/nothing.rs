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
    none.add(F::NoneBias);
    none.set(F::NoneRefused, refuses);
    none.set(F::NoneTruncated, scan.truncated && !ended);
    let best = mentions.iter().map(|mention| mention.features.tier()).max().unwrap_or(0);
    none.set(F::NoneNoResult, best < 2);
    none.set(F::NoneOnlyChecks, best == 0);
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
    let last_said = mentions.iter().rev().find(|mention| mention.features.tier() >= best.clamp(1, 2));
    let sure = mentions.iter().rposition(|mention| mention.features.tier() >= 2 && !mention.features.has(F::Unsure));
    let unsure: Vec<&Mention> = mentions
        .iter()
        .skip(sure.map_or(0, |sure| sure + 1))
        .filter(|mention| mention.features.has(F::Unsure))
        .collect();
    none.set(F::NoneContradicted, mentions.iter().any(|mention| mention.features.has(F::Contradicted)));
    none.set(
        F::NoneRivals,
        last_said.is_some_and(|mention| {
            mention.features.any(&[F::RivalBehind, F::RivalBefore])
                || mention.features.has(F::InList) && mention.features.tier() == 4
        }),
    );
    none.set(F::NoneWithdrawn, mentions.iter().any(|mention| mention.features.has(F::WithdrawnBare)));
    none.set(F::NoneDepends, refusal::is_open(scan.tokens.text));
    let bare = scan.tokens.tokens.iter().all(|token| {
        matches!(
            token.kind,
            Kind::Number(_)
                | Kind::Comma
                | Kind::Stop
                | Kind::Question
                | Kind::Line
                | Kind::Bullet
                | Kind::Close
                | Kind::Bold
                | Kind::Semicolon
                | Kind::Other
                | Kind::End
        )
    });
    let different = |listed: &[&Mention]| listed.windows(2).any(|two| !scan.same(two[0].at, two[1].at));
    none.set(F::NoneUnsure, different(&unsure));
    none.set(F::NoneBareList, bare && different(&mentions.iter().collect::<Vec<_>>()));
    none.set(
        F::NoneGuesses,
        best < 4
            && different(
                &mentions
                    .iter()
                    .filter(|mention| {
                        mention.features.any(&[F::Bullet, F::Question])
                            && mention.features.has(F::BeginsSentence)
                            && mention.features.has(F::EndsSentence)
                    })
                    .collect::<Vec<_>>(),
            ),
    );
    let operation = last.is_some_and(|piece| {
        let numbers: Vec<usize> = piece.range.clone().filter(|&at| matches!(scan.kind(at), Kind::Number(_))).collect();
        let bracketed = |at: usize| {
            piece.range.clone().take_while(|&other| other < at).filter(|&other| scan.kind(other) == Kind::Open).count()
                > piece
                    .range
                    .clone()
                    .take_while(|&other| other < at)
                    .filter(|&other| scan.kind(other) == Kind::Close)
                    .count()
        };
        numbers.last().is_some_and(|&at| {
            !(scan.is_alone(at) || bracketed(at) && numbers.iter().any(|&other| scan.is_alone(other)))
        })
    });
    // "14 = 72 / 5" is no operation without a result.
    let done = mentions.iter().any(|mention| mention.features.any(&[F::AskedEquation, F::ResultFirst]));
    none.set(F::NoneOperation, operation && !done);
    // "Call 911": nothing speaks of the question, and nothing is stated.
    let asked = [F::AskedOne, F::AskedTwo, F::AskedThree, F::AskedUnit];
    let related = |mention: &Mention| mention.features.any(&asked) || mention.features.tier() > 1;
    none.set(F::NoneUnrelated, !mentions.is_empty() && !mentions.iter().any(related));
    let empty = scan.tokens.tokens.windows(2).any(|two| two[0].kind == Kind::BoxOpen && two[1].kind == Kind::BoxClose);
    let null = (0..scan.tokens.tokens.len()).any(|at| {
        scan.tokens.means(at, Meaning::ANSWER)
            && scan.kind(at + 1) == Kind::Quote
            && scan.kind(at + 2) == Kind::Colon
            && scan.is(at + 3, &["null", "none"])
    });
    none.set(F::NoneEmptyBox, empty || null);
    let seeks = last.is_some_and(|piece| !scan.has_number(&piece.range) && scan.seeks(&piece.range));
    none.set(F::NoneSeeks, seeks && best < 4);
    none.set(F::NoneProgram, scan.tokens.tokens.iter().any(|token| token.kind == Kind::Program));
    none.set(F::NoneOptions, !scan.options.is_empty());
    none.set(F::NoneContested, mentions.iter().any(|mention| mention.features.any(&[F::Contradicted, F::BoxList])));
    none.set(
        F::NoneCutDeclared,
        mentions.iter().any(|mention| mention.features.has(F::Cut) && mention.features.tier() >= 3),
    );
}
