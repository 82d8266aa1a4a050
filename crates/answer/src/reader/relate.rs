//! Relations between the mentions of a text: later ones, withdrawn ones, contradictions.
use std::collections::HashMap;

use super::feature::{Feature as F, these};
use super::mention::Mention;
use super::piece::Piece;
use super::scan::Scan;
use super::token::Kind;
use super::value;
use super::vocabulary::Meaning;

/// Sets the features that depend on the other mentions of a text.
pub(super) fn relate(scan: &Scan<'_>, pieces: &[Piece], mentions: &mut [Mention], corrected_at: &[usize], cut: bool) {
    let keys: Vec<usize> = keys(scan, mentions);
    // What is said to be wrong is so wherever it stood before.
    let mut wrong: HashMap<usize, usize> = HashMap::new();
    wrong.extend(
        (0..mentions.len())
            .filter(|&index| mentions[index].features.has(F::SaidWrong))
            .map(|index| (keys[index], index)),
    );
    for (index, mention) in mentions.iter_mut().enumerate() {
        mention.features.set(F::Refuted, wrong.get(&keys[index]).is_some_and(|&last| last > index));
    }
    // "0.6, which is 60%" says one thing twice.
    for index in 1..mentions.len() {
        let (before, mention) = (&mentions[index - 1], &mentions[index]);
        let again = !scan.question.asks_percent
            && mention.piece == before.piece
            && scan.is_percentage_of(before.at, mention.at);
        if again {
            mentions[index].features.add(F::Restates);
        }
    }
    // A number that the end of the text cuts states nothing against others.
    let tier = |mention: &Mention| if mention.features.has(F::Cut) { 0 } else { mention.features.tier() };
    let tiers: Vec<u8> = mentions.iter().map(tier).collect();
    let with_numbers: Vec<usize> = {
        let mut pieces: Vec<usize> =
            mentions.iter().zip(&tiers).filter(|(_, tier)| **tier > 0).map(|(mention, _)| mention.piece).collect();
        pieces.dedup();
        pieces
    };
    let (first, last) = (with_numbers.first().copied(), with_numbers.last().copied());
    let count = mentions.len();
    // The last mention of each tier with another value, behind and before.
    let mut earlier: Vec<[bool; 5]> = vec![[false; 5]; count];
    let mut later: Vec<[bool; 5]> = vec![[false; 5]; count];
    sweep(&keys, &tiers, 0..count, &mut earlier);
    sweep(&keys, &tiers, (0..count).rev(), &mut later);
    // The number that all mentions from each on have, if they have one; the numbers of lists behind each.
    let mut uniform: Vec<Option<usize>> = vec![None; count];
    let mut bullets = vec![0usize; count + 1];
    for index in (0..count).rev() {
        uniform[index] = (index + 1 == count || uniform[index + 1] == Some(keys[index])).then_some(keys[index]);
        bullets[index] = bullets[index + 1] + usize::from(mentions[index].features.has(F::Bullet));
    }
    // Two numbers that are all of their lines.
    let mut lines: [Option<usize>; 2] = [None; 2];
    for index in (0..count).filter(|&index| mentions[index].features.has(F::LineAlone)) {
        match lines {
            [None, _] => lines[0] = Some(keys[index]),
            [Some(first), None] if first != keys[index] => lines[1] = Some(keys[index]),
            _ => {}
        }
    }
    // The last result of a computation, and where its sentence goes on behind it.
    let is_result = |mention: &Mention| {
        mention.features.has(F::EqualsLast)
            && !mention.features.any(&[F::InBrackets, F::Check, F::CheckSection, F::Hypothetical])
    };
    let last_result = mentions.iter().rposition(is_result).map(|result| {
        // "60 min = 1 hour" where minutes were asked for
        let asked = |mention: &Mention| {
            mention.piece == mentions[result].piece
                && mention.features.has(F::EqualsMiddle)
                && mention.features.has(F::AskedUnit)
        };
        let other = mentions[result].features.has(F::OtherUnit);
        mentions[..result].iter().rposition(asked).filter(|_| other).unwrap_or(result)
    });
    for index in 0..count {
        let mention = &mentions[index];
        let (piece, at) = (mention.piece, mention.at);
        let tier = tiers[index];
        let mut features = mention.features;
        features.set(F::LastSentence, Some(piece) == last && first != last);
        if let Some(result) = last_result {
            features.set(F::LastResult, index == result);
            features.set(
                F::StatesResult,
                index != result && keys[index] == keys[result] && mentions[result].piece == piece,
            );
        }
        features.set(F::OnlySentence, Some(piece) == first && first == last);
        features.set(F::EarlierDeclared, earlier[index][4]);
        features.set(F::LaterDeclared, later[index][4]);
        features.set(F::EarlierShown, earlier[index][3]);
        features.set(F::LaterShown, later[index][3]);
        features.set(F::LaterResult, later[index][2]);
        // A correction in a later sentence, with another number behind it, or in this one behind the number.
        let next = corrected_at.get(corrected_at.partition_point(|&corrected| corrected <= piece));
        let behind = next.map(|&corrected| mentions.partition_point(|mention| mention.piece < corrected));
        let other = behind.and_then(|from| uniform.get(from)).is_some_and(|key| *key != Some(keys[index]));
        let withdrawn = other
            || corrected_at.binary_search(&piece).is_ok_and(|_| {
                (at + 1..pieces[piece].range.end).any(|word| scan.tokens.means(word, Meaning::CORRECTS))
                    && mentions.get(index + 1).is_some()
            });
        features.set(F::Corrected, withdrawn);
        let corrects = |piece: usize| corrected_at.binary_search(&piece).is_ok();
        let reopened = (corrects(piece) || piece > 0 && corrects(piece - 1)) && index > 0;
        features.set(F::Reopened, reopened);
        features.set(F::ListFollows, !features.has(F::Bullet) && bullets[index + 1] >= 2);
        features.set(
            F::ExplainFollows,
            !features.has(F::Explained) && mentions.last().is_some_and(|last| last.features.has(F::Explained)),
        );
        features.set(F::CutLow, cut && tier <= 2);
        // "She saves 135 euros a year. Besides she could", where the text is cut.
        let asked = features.any(&[F::AskedUnit, F::AskedTwo, F::AskedThree]) && !features.has(F::EqualsLast);
        let said = tier == 2 || tier == 1 && features.has(F::OnlyOfSentence);
        features.set(F::CutStated, cut && said && asked && piece + 1 < pieces.len());
        features.set(F::CutAfter, cut && piece + 1 < pieces.len());
        features
            .set(F::OtherLines, features.has(F::LineAlone) && lines.iter().flatten().any(|&key| key != keys[index]));
        if let Some(&by_tier) = [F::Tier0, F::Tier1, F::Tier2].get(usize::from(tier)) {
            features.add(by_tier);
        }
        // Where a number stands says nothing for one that is about something else.
        if tier == 0 {
            features.remove(these![
                AfterResult AskedUnit EndsSentence BeginsSentence LastOfSentence OnlyOfSentence LastSentence OnlySentence
                CueLink CueGives CueConcludes CueColon CueWith CueTo CueOther CueComma CueContext Times AskedOne AskedTwo
                AskedThree Concludes
            ]);
        }
        mentions[index].features = features;
    }
    contradict(scan, pieces, mentions, &keys);
}

/// By mention, whether one of each tier with another value came before in an order.
fn sweep(keys: &[usize], tiers: &[u8], order: impl Iterator<Item = usize>, seen: &mut [[bool; 5]]) {
    // Two different values of a tier are enough to know that one of them is another.
    let mut known: [[Option<usize>; 2]; 5] = [[None; 2]; 5];
    for index in order {
        for (tier, values) in known.iter().enumerate() {
            seen[index][tier] = values.iter().flatten().any(|&value| value != keys[index]);
        }
        let values = &mut known[tiers[index] as usize];
        if values[0].is_none() {
            values[0] = Some(keys[index]);
        } else if values[0] != Some(keys[index]) {
            values[1] = Some(keys[index]);
        }
    }
}

/// A number for each value: mentions of one value have the same.
pub(super) fn keys(scan: &Scan<'_>, mentions: &[Mention]) -> Vec<usize> {
    let mut known: HashMap<&str, usize> = HashMap::new();
    let mut values: Vec<&str> = Vec::new();
    mentions
        .iter()
        .map(|mention| {
            let text = scan.number(mention.at).map_or("", |number| number.text.as_str());
            if let Some(&key) = known.get(text) {
                return key;
            }
            // Other spellings of one value are few; long texts have many numbers, and are not searched for them.
            const LOOKED_AT: usize = 16;
            let same = values
                .iter()
                .rev()
                .take(LOOKED_AT)
                .position(|value| value::same(value, text))
                .map(|back| values.len() - 1 - back);
            let key = same.unwrap_or(values.len());
            values.push(text);
            known.insert(text, key);
            key
        })
        .collect()
}

/// Two announcements one behind the other, with nothing that would lead from the first to the second.
fn contradict(scan: &Scan<'_>, pieces: &[Piece], mentions: &mut [Mention], keys: &[usize]) {
    let announced: Vec<usize> = (0..mentions.len()).filter(|&index| mentions[index].features.tier() >= 3).collect();
    let mut contested: Vec<usize> = Vec::new();
    for pair in announced.windows(2) {
        let (first, second) = (&mentions[pair[0]], &mentions[pair[1]]);
        if keys[pair[0]] == keys[pair[1]]
            || first.mark != second.mark
            || first.piece == second.piece
            || first.features.tier() != second.features.tier()
            || second.features.has(F::Reopened)
        {
            continue;
        }
        let between = first.at + 1..second.at;
        if between.len() > 12 {
            continue;
        }
        let leads = between.clone().any(|at| {
            matches!(scan.kind(at), Kind::Number(_) | Kind::Equals | Kind::Arrow | Kind::Bullet | Kind::Rule)
                || scan.tokens.means(at, Meaning::CONCLUDES.with(Meaning::CORRECTS).with(Meaning::CHECKS))
                || scan.is(at, "final finally")
        });
        if !leads {
            contested.extend(pair);
        }
    }
    // "The total price is 58. The total price is 62."
    let words = |mention: &Mention| -> Vec<&str> {
        let range = &pieces[mention.piece].range;
        range.clone().filter(|&at| matches!(scan.kind(at), Kind::Word(_))).map(|at| scan.slice(at)).collect()
    };
    for index in 1..mentions.len() {
        let (first, second) = (&mentions[index - 1], &mentions[index]);
        let apart = first.piece + 1 == second.piece && keys[index - 1] != keys[index];
        let single = |mention: &Mention| mention.features.tier() == 2 && mention.features.any(&[F::OnlyOfSentence]);
        if apart && single(first) && single(second) && !second.features.has(F::Reopened) {
            let words = [words(first), words(second)];
            if words[0].len() >= 3 && words[0] == words[1] {
                contested.extend([index - 1, index]);
            }
        }
    }
    for index in contested {
        mentions[index].features.add(F::Contradicted);
    }
}
