//! The answer among the mentions of a completion: evidence is weighed, and the number with the most of it is the answer, unless there is
//! more evidence for there being none.
use std::collections::HashMap;

use super::feature::{Feature as F, Features};
use super::mention::Mention;
use super::piece::{Piece, pieces};
use super::question::Question;
use super::reading::{Answer, Mark, NoAnswer, Reading};
use super::scan::Scan;
use super::token::{Kind, Tokens};
use super::value;
use super::vocabulary::Meaning;
use crate::number::words::{scale, scaled};

/// Most rivals that are told.
const MOST_RIVALS: usize = 8;

/// Phrases that say that there is no answer.
const UNDETERMINED: &[&str] = &[
    "no way to know", "not told", "not stated", "not given", "not mentioned", "not provided", "not specified", "does not give", "doesn't give", "doesn't say",
    "does not say", "cannot be determined", "can't be determined", "cannot determine", "can't determine", "not enough information", "insufficient information",
    "impossible to determine", "impossible to say", "does not state", "is missing", "both are valid", "both are possible", "there isn't one", "there is no such",
    "no such number", "does not exist", "doesn't exist", "not possible to", "isn't enough", "is not enough", "can't tell", "cannot tell", "can't say", "cannot say",
    "is undefined", "no unique", "would need to know", "need more information", "without knowing", "both work", "both are", "either is", "either works", "says nothing about",
    "nicht bestimmen", "nicht genug", "nicht angegeben", "steht nicht", "nicht bekannt", "lässt sich nicht", "keine angabe", "dazu fehl", "beides ist", "beides wäre",
    "impossible de", "pas assez", "pas indiqu", "me manque", "ne précise pas", "ne peux pas", "non si ricava", "non fornisce", "non ci sono dati", "dati insufficienti", "pas précis", "ne sait pas", "ne peut pas", "ne dit pas", "les deux sont", "les deux convien",
    "no se puede", "no se indica", "no se dice", "no dice", "no sabemos", "no es posible", "no lo dice", "ambas son", "ambos son",
    "non lo dice", "non è indicat", "non si può", "non è possibile", "non dice", "entrambi sono", "entrambe sono",
    "não é possível", "não dá para", "não informa", "não diz", "não há nenhum", "não há como", "falta inform",
    "无法", "不能确定", "没有给出", "没有提供", "没有说明", "不知道", "未给出", "都成立", "都可以", "書かれていない", "書かれておらず", "求めることができ", "求められません", "わかりません", "分かりません", "できません",
    "주어지지 않", "알 수 없", "계산할 수 없", "할 수 없", "недостаточно", "не указан", "не сказано", "невозможно", "неизвестн", "нельзя", "не могу", "لا أستطيع", "غير مذكور", "لا يمكن", "غير معروف", "لم يذكر",
    "नहीं दिया", "पता नहीं", "संभव नहीं", "verilmemiş", "bilinmiyor", "mümkün değil", "belirtilmemiş", "nie podano", "nie wiadomo", "nie da się", "brak informacji", "nie można",
    "niet gegeven", "niet te zeggen", "staat er niet", "niet bekend", "không thể", "không cho biết", "tidak disebutkan", "tidak bisa", "tidak dapat", "framgår inte", "går inte att",
];

/// Phrases that leave the answer open.
const DEPENDS: [&str; 12] = [
    "depends on", "it depends", "depending on", "kommt darauf an", "hängt davon ab", "dépend ", "depende ", "dipende ", "取决于", "zależy", "зависит", "によって",
];

/// Phrases of a text that gives no answer.
const REFUSES: [&str; 10] = [
    "i can't", "i cannot", "i can not", "i'm sorry", "i am sorry", "unable to", "not able to", "i don't", "i do not", "as an ai",
];

/// A completion's mentions with what speaks for each, and what speaks for there being no answer.
#[derive(Debug)]
pub(super) struct Evidence {
    pub(super) mentions: Vec<Mention>,
    pub(super) none: Features,
    /// Another question follows: the answer to the first is whole.
    ended: bool,
}

/// The answer of a text without thinking.
pub(super) fn decide(question: &Question, text: &str, truncated: bool) -> Reading {
    if text.trim().is_empty() {
        return Reading::none(NoAnswer::Empty);
    }
    let tokens = Tokens::new(text, question.style, question.language);
    let scan = Scan::new(question, &tokens, truncated);
    let evidence = evidence(&scan);
    conclude(&scan, &evidence)
}

/// Gathers the evidence of a text.
pub(super) fn evidence(scan: &Scan<'_>) -> Evidence {
    let pieces = pieces(scan.tokens);
    let mut mentions: Vec<Mention> = Vec::new();
    let mut none = Features::default();
    let mut ended = false;
    let mut last_piece = 0;
    let (mut section, mut headed, mut corrected_at): (bool, bool, Vec<usize>) = (false, false, Vec::new());
    let mut answered = false;
    let mut chosen = None;
    let mut given = false;
    let mut asked_done = false;
    let (mut depth, mut explained, mut refused): (usize, bool, Option<usize>) = (0, false, None);
    for (index, piece) in pieces.iter().enumerate() {
        if scan.begins_another_question(piece, answered) {
            ended = true;
            break;
        }
        last_piece = index;
        let range = &piece.range;
        let title = piece.heading || piece.begins_line && scan.kind(range.end - 1) == Kind::Colon || piece.begins_line && scan.kind(range.start) == Kind::Bold;
        if title {
            let checks = scan.opens_with(range, 3, Meaning::CHECKS);
            if piece.heading || checks {
                section = answered && checks;
            }
        }
        if title {
            given = scan.is_about_givens(range);
        }
        if scan.corrects(range) {
            corrected_at.push(index);
        }
        let mut found = scan.mentions(index, &pieces);
        let explains = answered && piece.begins_line && scan.words(range).any(|at| scan.tokens.means(at, Meaning::EXPLAINS)) && found.iter().all(|mention| mention.features.tier() < 2);
        explained |= explains;
        let lower = || scan.tokens.text[scan.tokens.tokens[range.start].start..scan.tokens.tokens[range.end - 1].end].to_lowercase();
        if range.len() > 2 {
            let lower = lower();
            if UNDETERMINED.iter().any(|phrase| lower.contains(phrase)) {
                refused = Some(index);
            }
        }
        if piece.begins_line {
            depth = 0;
        }
        for mention in &mut found {
            mention.features.set(F::AfterAsked, asked_done);
            if given {
                mention.features.add(F::Restates);
            }
            // "If she also worked on Sunday, it would be $240." behind the answer
            if answered && mention.features.has(F::IfWould) {
                mention.features.add(F::Hypothetical);
            }
            mention.features.set(F::Explained, explained);
            mention.features.set(F::AfterRefusal, refused.is_some_and(|at| at < index));
            mention.features.set(F::BeforeRefusal, refused == Some(index));
            if depth > 0 {
                mention.features.add(F::InBrackets);
            }
            mention.features.set(F::CheckSection, section);
            mention.features.set(F::Headed, headed && piece.begins_line);
            if headed && piece.begins_line {
                mention.mark = if mention.mark == Mark::Boxed { Mark::Boxed } else { Mark::Marker };
            }
        }
        chosen = scan.chosen_option(range).or(chosen);
        headed = found.is_empty() && (headed && scan.words(range).next().is_none() || heads(scan, piece));
        for at in range.clone() {
            match scan.kind(at) {
                Kind::Open => depth += 1,
                Kind::Close => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        asked_done |= scan.question.instructs && found.iter().any(|mention| !mention.features.any(&[F::RivalBehind, F::RivalBefore, F::InList]) && mention.features.any(&[F::Continues, F::Whole]) && mention.features.has(F::InForm) || mention.features.has(F::AskedEquation) && mention.features.has(F::EqualsLast));
        answered |= found.iter().any(|mention| {
            let tier = mention.features.tier();
            tier >= 2 || tier == 1 && mention.features.any(&[F::OnlyOfSentence, F::EndsSentence])
        });
        mentions.extend(found);
    }
    for mention in mentions.iter_mut().filter(|mention| Some(mention.at) == chosen) {
        mention.features.add(F::Chosen);
        mention.mark = Mark::Marker;
    }
    let range = ..pieces.len().min(last_piece + 1);
    relate(scan, &pieces[range], &mut mentions, &corrected_at, scan.truncated && !ended);
    none.set(F::NoneAnswered, asked_done);
    none.set(F::NoneDeclaredNothing, headed);
    nothing(scan, &pieces[..pieces.len().min(last_piece + 1)], &mentions, ended, &mut none);
    Evidence { mentions, none, ended }
}

/// A line that says that the answer stands on the next one: "**Answer:**", "### Final answer".
fn heads(scan: &Scan<'_>, piece: &Piece) -> bool {
    let range = &piece.range;
    let working = scan.words(range).any(|at| scan.is(at, &["solution", "lösung", "solución", "solução", "soluzione", "step", "steps"]));
    let names = scan.words(range).any(|at| scan.tokens.means(at, Meaning::ANSWER));
    let sought = scan.words(range).any(|at| scan.tokens.means(at, Meaning::SEEKS));
    piece.begins_line && !piece.asks && names && !working && !sought && scan.words(range).count() <= 6
}

/// What the mentions of a text say about each other.
fn relate(scan: &Scan<'_>, pieces: &[Piece], mentions: &mut [Mention], corrected_at: &[usize], cut: bool) {
    let keys: Vec<usize> = keys(scan, mentions);
    // What is said to be wrong is so wherever it stood before.
    for index in 0..mentions.len() {
        if mentions[index].features.has(F::SaidWrong) {
            for earlier in (0..index).filter(|&earlier| keys[earlier] == keys[index]).collect::<Vec<_>>() {
                mentions[earlier].features.add(F::Refuted);
            }
        }
    }
    let tiers: Vec<u8> = mentions.iter().map(|mention| mention.features.tier()).collect();
    let with_numbers: Vec<usize> = {
        let mut places: Vec<usize> = mentions.iter().zip(&tiers).filter(|(_, tier)| **tier > 0).map(|(mention, _)| mention.piece).collect();
        places.dedup();
        places
    };
    let (first, last) = (with_numbers.first().copied(), with_numbers.last().copied());
    let second_last = with_numbers.len().checked_sub(2).and_then(|at| with_numbers.get(at)).copied();
    let count = mentions.len();
    // The last mention of each tier with another value, behind and before.
    let mut earlier: Vec<[bool; 5]> = vec![[false; 5]; count];
    let mut later: Vec<[bool; 5]> = vec![[false; 5]; count];
    sweep(&keys, &tiers, 0..count, &mut earlier);
    sweep(&keys, &tiers, (0..count).rev(), &mut later);
    let mut by_value: HashMap<usize, usize> = HashMap::new();
    for (key, tier) in keys.iter().zip(&tiers) {
        if *tier >= 2 {
            *by_value.entry(*key).or_default() += 1;
        }
    }
    let others: Vec<bool> = mentions.iter().map(|mention| !scan.is_example(mention.at)).collect();
    let last_other = others.iter().rposition(|&other| other);
    let first_plain = (0..count).find(|&index| tiers[index] >= 2 && !mentions[index].features.has(F::Bullet));
    // The last result of a computation, and where its sentence goes on behind it.
    let is_result = |mention: &Mention| mention.features.has(F::EqualsLast) && !mention.features.any(&[F::InBrackets, F::Check, F::CheckSection, F::Hypothetical]);
    let last_result = mentions.iter().rposition(is_result);
    for index in 0..count {
        let mention = &mentions[index];
        let (piece, at) = (mention.piece, mention.at);
        let tier = tiers[index];
        let mut features = mention.features;
        features.set(F::LastSentence, Some(piece) == last && first != last);
        if let Some(result) = last_result {
            features.set(F::LastResult, index == result);
            features.set(F::ComputedLast, index == result && features.has(F::Computed) && Some(piece) == last);
            features.set(F::AfterResult, index > result && mentions[result].piece == piece);
        }
        features.set(F::SecondLast, Some(piece) == second_last && first != second_last);
        features.set(F::FirstSentence, Some(piece) == first && first != last);
        features.set(F::OnlySentence, Some(piece) == first && first == last);
        features.set(F::EarlierDeclared, earlier[index][4]);
        features.set(F::LaterDeclared, later[index][4]);
        features.set(F::EarlierShown, earlier[index][3]);
        features.set(F::LaterShown, later[index][3]);
        features.set(F::LaterResult, later[index][2]);
        features.set(F::LaterSaid, later[index][1]);
        features.set(F::LaterNone, !later[index][1..].iter().any(|&later| later));
        let times = by_value.get(&keys[index]).copied().unwrap_or(0);
        features.set(F::Supported, times > usize::from(tier >= 2));
        features.set(F::Repeated, times >= 4);
        features.set(F::LaterOther, features.has(F::Example) && last_other.is_some_and(|other| other > index));
        // A correction in a later sentence, with another number behind it, or in this one behind the number.
        let withdrawn = corrected_at.iter().any(|&place| {
            place > piece && mentions[index + 1..].iter().zip(&keys[index + 1..]).any(|(mention, &key)| mention.piece >= place && key != keys[index])
                || place == piece && (at + 1..pieces[piece].range.end).any(|word| scan.tokens.means(word, Meaning::CORRECTS)) && mentions.get(index + 1).is_some()
        });
        features.set(F::Corrected, withdrawn);
        let reopened = corrected_at.iter().any(|&place| place <= piece && place + 1 >= piece) && index > 0;
        features.set(F::Reopened, reopened);
        let bare = corrected_at.iter().any(|&place| place > piece) && mentions.get(index + 1).is_none();
        features.set(F::WithdrawnBare, bare);
        let bullet = features.has(F::Bullet);
        let is_bullet = |mention: &Mention| mention.features.has(F::Bullet);
        features.set(F::ListAfter, bullet && first_plain.is_some_and(|plain| plain < index));
        features.set(F::ListFollows, !bullet && mentions.get(index + 1..).unwrap_or_default().iter().filter(|mention| is_bullet(mention)).count() >= 2);
        features.set(F::ExplainFollows, !features.has(F::Explained) && mentions.last().is_some_and(|last| last.features.has(F::Explained)));
        features.set(F::TextCut, cut);
        features.set(F::CutLow, cut && tier <= 2);
        features.set(F::CutAfter, cut && Some(piece) != last);
        features.set(F::OtherLines, features.has(F::LineAlone) && tiers.iter().enumerate().any(|(other, _)| other != index && keys[other] != keys[index] && mentions[other].features.has(F::LineAlone)));
        features.add([F::Tier0, F::Tier1, F::Tier2, F::Tier3, F::Tier4][usize::from(tier)]);
        // Where a number stands says nothing for one that is about something else.
        if tier == 0 {
            features.remove(&[
                F::EndsSentence, F::BeginsSentence, F::LastOfSentence, F::OnlyOfSentence, F::LastSentence, F::OnlySentence, F::LaterNone, F::CueLink, F::CueGives,
                F::CueConcludes, F::CueColon, F::CueStart, F::CueWith, F::CueTo, F::CueBy, F::CueOther, F::CueOf, F::CueComma, F::CueAnd, F::CueContext, F::CueResult,
                F::SubjectVerb, F::IsSubject, F::AskedOne, F::AskedTwo, F::AskedThree, F::ClauseAsked, F::Follows, F::Concludes,
            ]);
        }
        mentions[index].features = features;
    }
    contradict(scan, mentions, &keys);
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
fn keys(scan: &Scan<'_>, mentions: &[Mention]) -> Vec<usize> {
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
            let same = values.iter().rev().take(LOOKED_AT).position(|value| value::same(value, text)).map(|back| values.len() - 1 - back);
            let key = same.unwrap_or(values.len());
            values.push(text);
            known.insert(text, key);
            key
        })
        .collect()
}

/// Two announcements one behind the other, with nothing that would lead from the first to the second.
fn contradict(scan: &Scan<'_>, mentions: &mut [Mention], keys: &[usize]) {
    let announced: Vec<usize> = (0..mentions.len()).filter(|&index| mentions[index].features.tier() >= 3).collect();
    let mut contested: Vec<usize> = Vec::new();
    for pair in announced.windows(2) {
        let (first, second) = (&mentions[pair[0]], &mentions[pair[1]]);
        if keys[pair[0]] == keys[pair[1]] || first.mark != second.mark || first.piece == second.piece || first.features.tier() != second.features.tier() || second.features.has(F::Reopened) {
            continue;
        }
        let between = first.at + 1..second.at;
        if between.len() > 12 {
            continue;
        }
        let leads = between.clone().any(|at| {
            matches!(scan.kind(at), Kind::Number(_) | Kind::Equals | Kind::Arrow | Kind::Bullet | Kind::Rule)
                || scan.tokens.means(at, Meaning::CONCLUDES.with(Meaning::CORRECTS).with(Meaning::CHECKS))
                || scan.is(at, &["final", "finally"])
        });
        if !leads {
            contested.extend(pair);
        }
    }
    for index in contested {
        mentions[index].features.add(F::Contradicted);
    }
}

/// What speaks for there being no answer.
fn nothing(scan: &Scan<'_>, pieces: &[Piece], mentions: &[Mention], ended: bool, none: &mut Features) {
    none.add(F::NoneBias);
    let lower = scan.tokens.text.to_lowercase();
    none.set(F::NoneRefused, UNDETERMINED.iter().any(|phrase| lower.contains(phrase)));
    none.set(F::NoneTruncated, scan.truncated && !ended);
    let best = mentions.iter().map(|mention| mention.features.tier()).max().unwrap_or(0);
    none.set(F::NoneNoResult, best < 2);
    none.set(F::NoneOnlyChecks, best == 0);
    let last = pieces.last();
    // "Should I take 4 weeks? Let me know."
    let asks = |piece: &Piece| piece.asks && !scan.is_offer(&piece.range);
    let before_last = pieces.len().checked_sub(2).map(|at| &pieces[at]);
    let waits = last.is_some_and(|piece| !scan.has_number(&piece.range)) && before_last.is_some_and(asks);
    none.set(F::NoneAsks, (last.is_some_and(asks) || waits) && best < 3);
    let last_said = mentions.iter().rev().find(|mention| mention.features.tier() >= best.clamp(1, 2));
    let sure = mentions.iter().rposition(|mention| mention.features.tier() >= 2 && !mention.features.has(F::Unsure));
    let unsure: Vec<&Mention> = mentions.iter().skip(sure.map_or(0, |sure| sure + 1)).filter(|mention| mention.features.has(F::Unsure)).collect();
    none.set(F::NoneContradicted, mentions.iter().any(|mention| mention.features.has(F::Contradicted)));
    none.set(F::NoneRivals, last_said.is_some_and(|mention| mention.features.any(&[F::RivalBehind, F::RivalBefore]) || mention.features.has(F::InList) && mention.features.tier() == 4));
    none.set(F::NoneWithdrawn, mentions.iter().any(|mention| mention.features.has(F::WithdrawnBare)));
    none.set(F::NoneDepends, DEPENDS.iter().any(|phrase| lower.contains(phrase)));
    let bare = scan.tokens.tokens.iter().all(|token| matches!(token.kind, Kind::Number(_) | Kind::Comma | Kind::Stop | Kind::Question | Kind::Line | Kind::Bullet | Kind::Close | Kind::Bold | Kind::Semicolon | Kind::Other | Kind::End));
    let different = |listed: &[&Mention]| listed.windows(2).any(|two| !scan.same(two[0].at, two[1].at));
    none.set(F::NoneUnsure, different(&unsure));
    none.set(F::NoneBareList, bare && different(&mentions.iter().collect::<Vec<_>>()));
    none.set(F::NoneGuesses, best < 4 && different(&mentions.iter().filter(|mention| mention.features.any(&[F::Bullet, F::Question]) && mention.features.has(F::BeginsSentence) && mention.features.has(F::EndsSentence)).collect::<Vec<_>>()));
    let operation = last.is_some_and(|piece| {
        let numbers: Vec<usize> = piece.range.clone().filter(|&at| matches!(scan.kind(at), Kind::Number(_))).collect();
        let bracketed = |at: usize| piece.range.clone().take_while(|&other| other < at).filter(|&other| scan.kind(other) == Kind::Open).count() > piece.range.clone().take_while(|&other| other < at).filter(|&other| scan.kind(other) == Kind::Close).count();
        numbers.last().is_some_and(|&at| !scan.is_alone(at) && !(bracketed(at) && numbers.iter().any(|&other| scan.is_alone(other))))
    });
    none.set(F::NoneOperation, operation);
    let empty = scan.tokens.tokens.windows(2).any(|two| two[0].kind == Kind::BoxOpen && two[1].kind == Kind::BoxClose);
    let null = (0..scan.tokens.tokens.len()).any(|at| scan.tokens.means(at, Meaning::ANSWER) && scan.kind(at + 1) == Kind::Quote && scan.kind(at + 2) == Kind::Colon && scan.is(at + 3, &["null", "none"]));
    none.set(F::NoneEmptyBox, empty || null);
    let seeks = last.is_some_and(|piece| !scan.has_number(&piece.range) && scan.seeks(&piece.range));
    none.set(F::NoneSeeks, seeks && best < 4);
    none.set(F::NoneProgram, scan.tokens.tokens.iter().any(|token| token.kind == Kind::Program));
    none.set(F::NoneOptions, !scan.options.is_empty());
    none.set(F::NoneContested, mentions.iter().any(|mention| mention.features.any(&[F::Contradicted, F::BoxList])));
    none.set(F::NoneCutDeclared, mentions.iter().any(|mention| mention.features.has(F::Cut) && mention.features.tier() >= 3));
}

/// The reading that the evidence comes to.
fn conclude(scan: &Scan<'_>, evidence: &Evidence) -> Reading {
    let text = |mention: &Mention| scan.number(mention.at).map(|number| number.text.clone());
    let mut reading = Reading::none(NoAnswer::NoNumber);
    let stated = evidence.mentions.iter().filter(|mention| mention.features.tier() >= 3);
    reading.example_echoed = stated.clone().any(|mention| mention.features.has(F::Example) && mention.mark != Mark::Sentence);
    // The evidence for a value is that of all its mentions.
    let keys = keys(scan, &evidence.mentions);
    let weights: Vec<f64> = evidence.mentions.iter().map(|mention| mention.features.score().exp()).collect();
    let mut sums: HashMap<usize, f64> = HashMap::new();
    for (key, weight) in keys.iter().zip(&weights) {
        *sums.entry(*key).or_default() += weight;
    }
    let best = (0..weights.len()).map(|index| (&evidence.mentions[index], sums[&keys[index]], weights[index])).fold(None, |best: Option<(&Mention, f64, f64)>, new| match best {
        Some(best) if (best.1, best.2) > (new.1, new.2) => Some(best),
        _ => Some(new),
    });
    let best = best.map(|(mention, sum, _)| (mention, sum));
    let none = evidence.none.score().exp();
    let chosen = best.filter(|(_, score)| *score > none).map(|(mention, _)| mention).filter(|mention| !mention.features.has(F::Cut));
    reading.answers_example = chosen.is_some_and(|mention| mention.features.has(F::Example));
    let answered = chosen.and_then(text);
    for rival in stated.filter(|mention| !mention.features.has(F::Example)).filter_map(text) {
        let known = reading.rivals.contains(&rival) || answered.as_ref().is_some_and(|answer| value::same(answer, &rival));
        if !known && reading.rivals.len() < MOST_RIVALS {
            reading.rivals.push(rival);
        }
    }
    reading.answer = match chosen {
        Some(mention) => match scan.number(mention.at) {
            Some(number) => Ok(Answer { text: canonical(scan, mention.at), span: number.start..number.end, mark: mention.mark }),
            None => Err(NoAnswer::NoNumber),
        },
        None => Err(reason(scan, evidence, best.map(|(mention, _)| mention))),
    };
    reading
}

/// The reason for there being no answer.
fn reason(scan: &Scan<'_>, evidence: &Evidence, best: Option<&Mention>) -> NoAnswer {
    let lower = scan.tokens.text.to_lowercase();
    let rivals = best.is_some_and(|mention| mention.features.any(&[F::RivalBefore, F::RivalBehind, F::Contradicted, F::BoxList, F::OtherLines]));
    match () {
        () if evidence.none.has(F::NoneRefused) => NoAnswer::Refused,
        () if rivals => NoAnswer::Rivals,
        () if scan.truncated && !evidence.ended => NoAnswer::Truncated,
        () if REFUSES.iter().any(|phrase| lower.contains(phrase)) => NoAnswer::Refused,
        () if !scan.tokens.numbers.is_empty() => NoAnswer::Unevaluated,
        () => NoAnswer::NoNumber,
    }
}

/// A number's text with a power of ten in words behind it multiplied in, unless the question's own numbers are in it.
pub(super) fn canonical(scan: &Scan<'_>, at: usize) -> String {
    let Some(number) = scan.number(at) else { return String::new() };
    // "5 degrees below zero"
    let below = (at + 1..at + 4).any(|word| scan.is(word, &["below"]) && scan.is(word + 1, &["zero"]));
    if below && !number.text.starts_with('-') {
        return format!("-{}", number.text);
    }
    if let Kind::Word(_) = scan.kind(at + 1)
        && let Some(power) = scale(scan.tokens.slice(at + 1))
        && !scan.question.states_scale(power)
        && let Some(scaled) = scaled(&number.text, power)
    {
        return scaled;
    }
    number.text.clone()
}
