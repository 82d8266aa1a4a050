//! Joins number words into numbers, in the languages that models answer in.
use super::numeral::{Spelling, Style};
use super::token::{Kind, Number, Token, Tokens, is_among};
use super::vocabulary::{Meaning, any_of, meaning as meaning_of};
use crate::number::words::{Language, Part, part, scale, value};

/// Joins number words into numbers and multiplies digits by a power of ten in words behind them.
pub fn join(tokens: &mut Tokens<'_>, language: Language, style: Style) {
    let mut at = 0;
    let mut joined: Vec<Token> = Vec::with_capacity(tokens.tokens.len());
    while at < tokens.tokens.len() {
        let found = match tokens.tokens[at].kind {
            Kind::Word(meaning) => in_words(tokens, at, language, style, meaning, joined.last()),
            _ => None,
        };
        mark_percent(tokens, at);
        if let Some((text, next)) = mixed(tokens, at, language)
            && let Kind::Number(index) = tokens.tokens[at].kind
        {
            let end = tokens.tokens[next - 1].end;
            let number = &mut tokens.numbers[index];
            (number.text, number.spelling, number.end) = (text, Spelling::Fraction, end);
            number.touches_end = end == tokens.text.len();
            joined.push(Token { end, ..tokens.tokens[at] });
            at = next;
            continue;
        }
        if let Some(cents) = in_coins(tokens, at, &mut joined) {
            at = cents;
            continue;
        }
        match found {
            Some((number, next)) => {
                let start = number.start;
                // The word for the sign belongs to the number.
                if joined.last().is_some_and(|last| last.kind.means(Meaning::MINUS) && last.start == start) {
                    joined.pop();
                }
                joined.push(Token {
                    kind: Kind::Number(tokens.numbers.len()),
                    start,
                    end: number.end,
                    spaced: tokens.tokens[at].spaced,
                });
                tokens.numbers.push(number);
                at = next;
            }
            None => {
                joined.push(tokens.tokens[at]);
                at += 1;
            }
        }
    }
    tokens.tokens = joined;
}

/// "40 per cent", "65 percent".
fn mark_percent(tokens: &mut Tokens<'_>, at: usize) {
    let Kind::Number(index) = tokens.tokens[at].kind else { return };
    let is = |at: usize, words: &str| tokens.is(at, words);
    let percent =
        is(at + 1, "percent prozent percentage") || is(at + 1, "per pour por") && is(at + 2, "cent ciento cento");
    if percent {
        tokens.numbers[index].percent = true;
    }
}

/// "12 dollars and 50 cents" as one number: where its first part stands; the token behind it.
fn in_coins(tokens: &mut Tokens<'_>, at: usize, joined: &mut Vec<Token>) -> Option<usize> {
    const COINS: &str = "dollar euro pound rupee franc real";
    const CENTS: &str = "cent pence penny centime paise centavo";
    let names = |at: usize, words: &str| {
        let word = tokens.slice(at);
        words.split(' ').any(|one| word.get(..one.len()).is_some_and(|stem| stem.eq_ignore_ascii_case(one)))
    };
    let (Kind::Number(whole), Kind::Number(part)) = (tokens.kind(at), tokens.kind(at + 3)) else { return None };
    let and = tokens.kind(at + 2).means(Meaning::AND);
    if !(and && names(at + 1, COINS) && names(at + 4, CENTS)) {
        return None;
    }
    let cents = tokens.numbers[part].text.clone();
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if cents.len() > 2 || !digits(&cents) || !digits(tokens.numbers[whole].text.trim_start_matches('-')) {
        return None;
    }
    let end = tokens.numbers[part].end;
    let number = &mut tokens.numbers[whole];
    number.text = format!("{}.{cents:0>2}", number.text);
    number.spelling = Spelling::Decimal;
    number.end = end;
    joined.push(Token { end, ..tokens.tokens[at] });
    Some(at + 4)
}

/// The number that begins with the word at `at`, and the first token behind it.
fn in_words(
    tokens: &Tokens<'_>,
    at: usize,
    language: Language,
    style: Style,
    meaning: Meaning,
    before: Option<&Token>,
) -> Option<(Number, usize)> {
    if meaning.has(Meaning::AND) {
        return None;
    }
    // Behind digits a power of ten is their scale.
    if before.is_some_and(|token| matches!(token.kind, Kind::Number(_))) && scale(tokens.slice(at)).is_some() {
        return None;
    }
    if style.counts
        && let Some(number) = counted(tokens, at, before, language)
    {
        return Some((number, at + 1));
    }
    if style.ranks
        && let Some(rank) = ranked(tokens, at)
    {
        return Some((spelt(tokens, at, rank, true), at + 1));
    }
    // Most words are no number.
    let compounds = matches!(language, Language::German | Language::Italian | Language::CommaDecimal)
        || language == Language::Other && !tokens.slice(at).is_ascii();
    let first = tokens.slice(at).split('-').next().unwrap_or_default();
    let hyphenated = tokens.slice(at).contains('-') && meaning_of(first).has(Meaning::NUMERAL);
    if !(compounds || hyphenated || meaning.has(Meaning::NUMERAL)) {
        return None;
    }
    let (parts, next) = parts(tokens, at, language, Vec::new())?;
    if next == at {
        return None;
    }
    // "one" is rarely a number, ordinals never.
    if parts == [Part::Small(1)] {
        let follows = tokens.slice(next).to_lowercase();
        let idle = matches!(
            follows.as_str(),
            "of" | "by" | "can" | "more" | "another" | "is" | "should" | "must" | "way" | "could" | "the"
        );
        let alone = !idle
            && matches!(
                before.map(|token| token.kind),
                None | Some(Kind::Line | Kind::Colon | Kind::Bold | Kind::Equals | Kind::BoxOpen | Kind::Open)
                    | Some(Kind::Word(_))
            );
        let by = before
            .is_some_and(|token| matches!(token.kind, Kind::Word(m) if !m.has(any_of![LINK, GIVES, ANSWER, CONTEXT])));
        if !alone || by {
            return None;
        }
    }
    // An ordinal, unless something is divided: "one ninth".
    let mut ordinal = false;
    let mut next = next;
    let mut text = match parts[..] {
        // Elsewhere than in English words of halves and thirds stand alone for other things: "la media", "al terzo posto".
        [Part::Over(_)] if language.is_romance() && !before.is_some_and(|token| is_article(tokens, token)) => {
            return None;
        }
        [Part::Over(rank)]
            if !language.is_romance() && language != Language::German && rank != 2 && rank != 4
                || rank == 4 && tokens.is(at, "fourth") =>
        {
            ordinal = true;
            rank.to_string()
        }
        // "twenty-fifth"
        [Part::Small(tens @ 20..), Part::Over(rank @ 1..10)] if next == at + 1 && tens % 10 == 0 => {
            ordinal = true;
            (tens + rank).to_string()
        }
        _ => value(&parts)?,
    };
    // "five over eight"
    if tokens.is(next, "over")
        && let [Part::Small(top)] = parts[..]
        && let Some(Part::Small(bottom @ 1..)) = part(&tokens.slice(next + 1).to_lowercase(), language)
    {
        text = format!("{top}/{bottom}");
        next += 2;
    }
    let token = tokens.tokens[at];
    let minus = before.filter(|token| token.kind.means(Meaning::MINUS));
    let text = if minus.is_some() { format!("-{text}") } else { text };
    let start = minus.map_or(token.start, |minus| minus.start);
    let number = in_words_at(tokens, text, start, tokens.tokens[next - 1].end);
    Some((Number { percent: tokens.is(next, "percent"), ordinal, ..number }, next))
}

/// A number in words between two bytes.
fn in_words_at(tokens: &Tokens<'_>, text: String, start: usize, end: usize) -> Number {
    let touches_end = end == tokens.text.len();
    Number { text, spelling: Spelling::Words, percent: false, name: false, ordinal: false, touches_end, start, end }
}

/// The parts of a number from the word at `at` on, behind those that stand before it, and the first token behind them.
fn parts(tokens: &Tokens<'_>, at: usize, language: Language, before: Vec<Part>) -> Option<(Vec<Part>, usize)> {
    let (mut parts, mut next) = (before, at);
    while let Kind::Word(_) = tokens.kind(next) {
        let word = tokens.slice(next);
        if word.len() > 60 || parts.len() > 40 {
            break;
        }
        let lower = word.to_lowercase();
        let pieces = || lower.split('-').filter(|piece| !piece.is_empty());
        let found = in_one_word(&lower, &parts, language).or_else(|| {
            pieces()
                .map(|piece| {
                    let article =
                        matches!(piece, "a" | "an") && matches!(parts.last(), None | Some(Part::Joint | Part::Over(2)));
                    // "trente et un": elsewhere it is an article.
                    let one = matches!(piece, "un" | "une" | "um" | "uma" | "una")
                        && matches!(parts[..], [.., Part::Small(20..) | Part::Power(_), Part::Joint]);
                    // "a hundred", "a dozen", "a half": the article counts one where a power follows.
                    part(piece, language)
                        .or_else(|| one.then_some(Part::Small(1)))
                        .or_else(|| article.then_some(Part::Joint))
                })
                .collect()
        });
        let Some(found) = found.filter(|found: &Vec<Part>| !found.is_empty()) else { break };
        if parts.is_empty() && found[0] == Part::Joint {
            let follows = part(&tokens.slice(next + 1).to_lowercase(), language);
            if !matches!(follows, Some(Part::Power(_) | Part::Dozen | Part::Over(2..=4))) {
                return None;
            }
            parts.push(Part::Small(1));
        } else if pairs(&parts, &found)
            && !matches!(part(&tokens.slice(next + 1).to_lowercase(), language), Some(Part::Over(_)))
        {
            break;
        } else {
            parts.extend(found);
        }
        next += 1;
    }
    // What joins stands between parts only.
    while next > at && matches!(parts.last(), Some(Part::Joint | Part::Point)) {
        parts.pop();
        next -= 1;
    }
    (!parts.is_empty()).then_some((parts, next))
}

/// True if "and" stands between two numbers and not within one: "two and three" beside "twenty and three", "cento e dois".
fn pairs(parts: &[Part], found: &[Part]) -> bool {
    matches!(parts, [.., Part::Small(1..20), Part::Joint]) && matches!(found, [Part::Small(_)])
}

/// The number of digits with a fraction in words behind it: "3 and a half", "3 y medio"; and the first token behind.
fn mixed(tokens: &Tokens<'_>, at: usize, language: Language) -> Option<(String, usize)> {
    let Kind::Number(index) = tokens.kind(at) else { return None };
    let number = &tokens.numbers[index];
    let whole: u64 = number.text.trim_start_matches('-').parse().ok().filter(|&whole| whole < 1_000_000)?;
    let operand = |number: &Number| number.spelling == Spelling::Integer && number.text.len() <= 3;
    // "7 over 2"
    if tokens.slice(at + 1).eq_ignore_ascii_case("over")
        && let Kind::Number(bottom) = tokens.kind(at + 2)
        && operand(number)
        && operand(&tokens.numbers[bottom])
        && !["days", "weeks", "months", "years", "hours", "minutes", "games"].contains(&tokens.slice(at + 3))
    {
        return Some((format!("{}/{}", number.text, tokens.numbers[bottom].text), at + 3));
    }
    let and = |at: usize| matches!(tokens.kind(at), Kind::Word(meaning) if meaning.has(Meaning::AND));
    // "3 kilomètres et demi": a half follows the unit.
    let unit = usize::from(!and(at + 1) && matches!(tokens.kind(at + 1), Kind::Word(_)));
    let joint = at + 1 + unit;
    if !and(joint) || !matches!(number.spelling, Spelling::Integer) {
        return None;
    }
    let article = tokens.is(joint + 1, "un una uma ein eine");
    let behind = joint + 1 + usize::from(article);
    let (parts, next) = parts(tokens, behind, language, vec![Part::Small(whole), Part::Joint])?;
    let halves =
        unit == 0 || matches!(parts[..], [.., Part::Over(2)]) && !tokens.slice(next).eq_ignore_ascii_case("of");
    let text = value(&parts).filter(|text| next > behind && text.contains('/') && halves)?;
    Some((if number.text.starts_with('-') { format!("-{text}") } else { text }, next))
}

/// True for the article before a fraction: "un tercio", "ein Drittel".
fn is_article(tokens: &Tokens<'_>, token: &Token) -> bool {
    let word = &tokens.text[token.start..token.end];
    is_among(word, "un une una um uma")
}

/// Several parts in one word: "dreieinhalb"; in Arabic what "and" stands before, and the ten of eleven to nineteen.
fn in_one_word(word: &str, before: &[Part], language: Language) -> Option<Vec<Part>> {
    if language == Language::German {
        let whole =
            word.strip_suffix("einhalb").map(|whole| if whole.is_empty() { None } else { part(whole, language) });
        return match whole {
            Some(whole) => Some(vec![whole?, Part::Joint, Part::Over(2)]),
            None => (word == "anderthalb").then(|| vec![Part::Small(1), Part::Joint, Part::Over(2)]),
        };
    }
    if language != Language::Other || word.is_ascii() {
        return None;
    }
    if matches!(word, "عشر" | "عشرة") && matches!(before.last(), Some(Part::Small(1..=9))) {
        return Some(vec![Part::Joint, Part::Small(10)]);
    }
    let second = part(word.strip_prefix('و')?, language)?;
    Some(if before.is_empty() { vec![second] } else { vec![Part::Joint, second] })
}

/// Words that are a number where a number of things was asked for: "none", "there are no", "no apples are left", "twice".
fn counted(tokens: &Tokens<'_>, at: usize, before: Option<&Token>, language: Language) -> Option<Number> {
    let is = |at: usize, words: &str| tokens.is(at, words);
    let begins = before.is_none_or(|token| {
        matches!(token.kind, Kind::Line | Kind::Stop | Kind::Colon | Kind::Open | Kind::Bold | Kind::Comma)
            || token.kind.means(any_of![CONCLUDES, AND])
    });
    let linked = before.is_some_and(|token| token.kind.means(any_of![LINK, GIVES]));
    let remains = || {
        (at + 1..at + 8)
            .take_while(|&at| !matches!(tokens.kind(at), Kind::Stop | Kind::Line | Kind::Comma))
            .any(|at| tokens.means(at, any_of![TOTALS, LINK, GIVES]))
    };
    // "once in the row", not "once upon a time" and "twice as many"
    let times = || !matches!(tokens.kind(at + 1), Kind::Word(m) if !m.has(Meaning::CONTEXT) && !is(at + 1, "altogether overall there"));
    let denied = || {
        (at.saturating_sub(4)..at)
            .any(|before| tokens.slice(before).to_ascii_lowercase().ends_with("n't") || is(before, "not never"))
    };
    const NONE: &str = "none nobody nothing ninguno ninguna nada nadie keine keiner keines nichts niemand aucun aucune nessuno \
         nessuna nenhum nenhuma";
    let text = match () {
        () if is(at, NONE) && (begins || linked) => "0",
        () if is(at, "no")
            && (language != Language::English
                || is(at + 1, "access idea way information data need reason doubt clue problem")) =>
        {
            return None;
        }
        () if is(at, "no") && (linked || begins && matches!(tokens.kind(at + 1), Kind::Word(_)) && remains()) => "0",
        // "He doesn't have any left."
        () if is(at, "any") && denied() && (remains() || !matches!(tokens.kind(at + 1), Kind::Word(_))) => "0",
        () if is(at, "once") && times() => "1",
        () if is(at, "twice") && times() => "2",
        () if is(at, "thrice") && times() => "3",
        () => return None,
    };
    Some(spelt(tokens, at, text, false))
}

/// The first three ranks in words, which are other things elsewhere: "First, we add".
fn ranked(tokens: &Tokens<'_>, at: usize) -> Option<&'static str> {
    const RANKS: [(&str, &str); 3] = [
        ("1", "first erste erster ersten premier première primero primera primeiro primeira primo prima"),
        ("2", "second zweite zweiter zweiten deuxième seconde segundo segunda secondo seconda"),
        ("3", "dritte dritter dritten troisième tercero tercera terceiro terceira terzo terza"),
    ];
    let lower = tokens.slice(at).to_lowercase();
    let opens = at == 0 || !matches!(tokens.kind(at - 1), Kind::Word(_));
    let names = |words: &str| words.split(' ').any(|word| word == lower);
    let rank = RANKS.iter().find(|(_, words)| names(words)).map(|(rank, _)| *rank);
    rank.filter(|_| !(opens && matches!(tokens.kind(at + 1), Kind::Comma | Kind::Colon)))
}

/// A number that one word is.
fn spelt(tokens: &Tokens<'_>, at: usize, text: &str, ordinal: bool) -> Number {
    let token = tokens.tokens[at];
    Number { ordinal, ..in_words_at(tokens, text.to_owned(), token.start, token.end) }
}

#[cfg(test)]
mod tests {
    use super::super::numeral::Style;
    use super::*;

    fn numbers(text: &str, language: Language) -> Vec<String> {
        let tokens = Tokens::new(text, Style::default(), language);
        tokens
            .tokens
            .iter()
            .filter_map(|token| match token.kind {
                Kind::Number(index) => Some(tokens.numbers[index].text.clone()),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn english() {
        for (text, expected) in [
            ("forty-two", "42"),
            ("one hundred and seven", "107"),
            ("two point seven five", "2.75"),
            ("minus forty-eight", "-48"),
            ("negative four hundred forty-six", "-446"),
            ("six and a half", "13/2"),
            ("three quarters", "3/4"),
            ("a dozen", "12"),
            ("three thousand two hundred five", "3205"),
            ("one half", "1/2"),
            ("zero", "0"),
        ] {
            assert_eq!(numbers(text, Language::English), [expected], "{text}");
        }
        assert_eq!(numbers("one of the most", Language::English), [""; 0]);
        assert_eq!(numbers("one cat and two dogs", Language::English), ["1", "2"]);
    }

    #[test]
    fn other_languages() {
        assert_eq!(numbers("sechsunddreißig", Language::German), ["36"]);
        assert_eq!(numbers("zweihundertfünf", Language::German), ["205"]);
        assert_eq!(numbers("quatre-vingt-dix-sept", Language::French), ["97"]);
        assert_eq!(numbers("treinta y cinco", Language::Spanish), ["35"]);
        assert_eq!(numbers("centoventitré", Language::Italian), ["123"]);
        assert_eq!(numbers("六十三", Language::Other), ["63"]);
        assert_eq!(numbers("一共有本书", Language::Other), [""; 0]);
    }
}
