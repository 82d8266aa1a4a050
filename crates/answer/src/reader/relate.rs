//! Relations between the mentions of a text: later ones, withdrawn ones, contradictions.
use std::collections::HashMap;

use super::asks::Ask;
use super::feature::{Feature as F, these};
use super::mention::Mention;
use super::piece::Piece;
use super::scan::Scan;
use super::token::Kind;
use super::value;
use super::vocabulary::{Meaning, any_of};

/// Sets the features that depend on the other mentions of a text.
pub(super) fn relate(scan: &Scan<'_>, pieces: &[Piece], mentions: &mut [Mention], corrected_at: &[usize], cut: bool) {
    let keys: Vec<usize> = keys(scan, mentions);
    // What is said to be wrong is so wherever it stood before.
    let is_wrong = |&index: &usize| mentions[index].features.has(F::SaidWrong);
    let wrong: HashMap<usize, usize> = (0..mentions.len()).filter(is_wrong).map(|index| (keys[index], index)).collect();
    for (index, mention) in mentions.iter_mut().enumerate() {
        mention.features.set(F::Refuted, wrong.get(&keys[index]).is_some_and(|&last| last > index));
    }
    // "0.6, which is 60%" says one thing twice.
    for index in 1..mentions.len() {
        let (before, mention) = (&mentions[index - 1], &mentions[index]);
        let again = mention.piece == before.piece && scan.is_percentage_of(before.at, mention.at);
        mentions[index].features.set(F::Restates, again && !scan.question.asks(Ask::Percent));
    }
    // A number that the end of the text cuts states nothing against others.
    let tier = |mention: &Mention| if mention.features.has(F::Cut) { 0 } else { mention.features.tier() };
    let tiers: Vec<u8> = mentions.iter().map(tier).collect();
    let mut telling = mentions.iter().zip(&tiers).filter(|(_, tier)| **tier > 0).map(|(mention, _)| mention.piece);
    let first = telling.next();
    let last = telling.next_back().or(first);
    let count = mentions.len();
    // The last mention of each tier with another value, behind and before.
    let (earlier, later) = (sweep(&keys, &tiers, 0..count), sweep(&keys, &tiers, (0..count).rev()));
    // The number that all mentions from each on have, if they have one; the numbers of lists behind each.
    let mut uniform: Vec<Option<usize>> = vec![None; count];
    let mut bullets = vec![0usize; count + 1];
    for index in (0..count).rev() {
        uniform[index] = (index + 1 == count || uniform[index + 1] == Some(keys[index])).then_some(keys[index]);
        bullets[index] = bullets[index + 1] + usize::from(mentions[index].features.has(F::Bullet));
    }
    // Two numbers that are all of their lines.
    let mut lines = (0..count).filter(|&index| mentions[index].features.has(F::LineAlone)).map(|index| keys[index]);
    let first_line = lines.next();
    let other_line = lines.find(|&key| Some(key) != first_line);
    // The last result of a computation, and where its sentence goes on behind it.
    let is_result = |Mention { features, .. }: &Mention| {
        features.has(F::EqualsLast) && !features.any(these![InBrackets Check CheckSection Hypothetical])
    };
    let last_result = mentions.iter().rposition(is_result).map(|result| {
        // "60 min = 1 hour" where minutes were asked for
        let piece = mentions[result].piece;
        let asked = |Mention { piece: own, features, .. }: &Mention| {
            *own == piece && features.has(F::EqualsMiddle) && features.has(F::AskedUnit)
        };
        let other = mentions[result].features.has(F::OtherUnit);
        mentions[..result].iter().rposition(asked).filter(|_| other).unwrap_or(result)
    });
    for index in 0..count {
        let mention = &mentions[index];
        let (piece, at, tier, mut features) = (mention.piece, mention.at, tiers[index], mention.features);
        features.set(F::LastSentence, Some(piece) == last && first != last);
        if let Some(result) = last_result {
            features.set(F::LastResult, index == result);
            let again = index != result && keys[index] == keys[result] && mentions[result].piece == piece;
            features.set(F::StatesResult, again);
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
        let corrects = |piece: usize| corrected_at.binary_search(&piece).is_ok();
        let corrected = |word| scan.means(word, Meaning::CORRECTS);
        let within = || index + 1 < count && (at + 1..pieces[piece].range.end).any(corrected);
        // "Actually, that number is wrong. I would need to start again."
        let gone = next.is_some_and(|&at| behind == Some(count) && scan.has_meaning(&pieces[at].range, Meaning::WRONG));
        features.set(F::Corrected, other || gone || corrects(piece) && within());
        features.set(F::Reopened, (corrects(piece) || piece > 0 && corrects(piece - 1)) && index > 0);
        features.set(F::ListFollows, !features.has(F::Bullet) && bullets[index + 1] >= 2);
        let explained = mentions[count - 1].features.has(F::Explained);
        features.set(F::ExplainFollows, explained && !features.has(F::Explained));
        features.set(F::CutLow, cut && tier <= 2);
        // "She saves 135 euros a year. Besides she could", where the text is cut.
        let asked = features.any(these![AskedUnit AskedTwo AskedThree]) && !features.has(F::EqualsLast);
        let said = tier == 2 || tier == 1 && features.any(these![OnlyOfSentence AskedUnit]);
        features.set(F::CutStated, cut && said && asked && piece + 1 < pieces.len());
        features.set(F::CutAfter, cut && piece + 1 < pieces.len());
        let differs = |key: Option<usize>| key.is_some_and(|key| key != keys[index]);
        let other_line = differs(first_line) || differs(other_line);
        features.set(F::OtherLines, features.has(F::LineAlone) && other_line);
        if let Some(&by_tier) = [F::Tier0, F::Tier1, F::Tier2].get(usize::from(tier)) {
            features.add(by_tier);
        }
        // Where a number stands says nothing for one that is about something else.
        if tier == 0 {
            features.remove(these![
                AfterResult AskedUnit EndsSentence BeginsSentence LastOfSentence OnlyOfSentence LastSentence OnlySentence
                CueLink CueGives CueConcludes CueColon CueWith CueTo CueOther CueComma CueContext Times AskedOne AskedTwo
                AskedThree Concludes SegmentMost SegmentLess HasUnit OtherUnit StrangeUnit SideAsked SideOther NamedAsked OrdinalAsked PercentAsked
            ]);
        }
        mentions[index].features = features;
    }
    contradict(scan, pieces, mentions, &keys);
}

/// By mention, whether one of each tier with another value came before in an order.
fn sweep(keys: &[usize], tiers: &[u8], order: impl Iterator<Item = usize>) -> Vec<[bool; 5]> {
    let mut seen = vec![[false; 5]; keys.len()];
    // Two different values of a tier are enough to know that one of them is another.
    let mut known: [[Option<usize>; 2]; 5] = [[None; 2]; 5];
    for index in order {
        for (tier, values) in known.iter().enumerate() {
            seen[index][tier] = values.iter().flatten().any(|&value| value != keys[index]);
        }
        match &mut known[tiers[index] as usize] {
            [first @ None, _] => *first = Some(keys[index]),
            [Some(first), other] if *first != keys[index] => *other = Some(keys[index]),
            _ => {}
        }
    }
    seen
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
            let same = values.iter().rev().take(LOOKED_AT).position(|value| value::same(value, text));
            let key = same.map_or(values.len(), |back| values.len() - 1 - back);
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
        let mut between = first.at + 1..second.at;
        let leads = between.len() > 12
            || between.any(|at| {
                matches!(scan.kind(at), Kind::Number(_) | Kind::Equals | Kind::Arrow | Kind::Bullet | Kind::Rule)
                    || scan.means(at, any_of![CONCLUDES, CORRECTS, CHECKS])
                    || scan.is(at, "final finally")
            });
        if !leads {
            contested.extend(pair);
        }
    }
    // "The total price is 58. The total price is 62."
    let words = |mention: &Mention| -> Vec<&str> {
        let range = &pieces[mention.piece].range;
        scan.words(range).map(|at| scan.slice(at)).collect()
    };
    for index in 1..mentions.len() {
        let (first, second) = (&mentions[index - 1], &mentions[index]);
        let apart = first.piece + 1 == second.piece && keys[index - 1] != keys[index];
        let single = |mention: &Mention| mention.features.tier() == 2 && mention.features.any(these![OnlyOfSentence]);
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
