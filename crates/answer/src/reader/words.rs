//! Joins number words into numbers, in the languages that models answer in.
use super::numeral::{Spelling, Style};
use super::token::{Kind, Number, Token, Tokens, is_among};
use super::value::is_digits;
use super::vocabulary::{Meaning, any_of, meaning as meaning_of};
use crate::number::words::{Language, Part, part, scale, value};

/// Joins number words into numbers and multiplies digits by a power of ten in words behind them.
pub fn join(tokens: &mut Tokens<'_>, language: Language, style: Style) {
    let mut at = 0;
    let mut joined: Vec<Token> = Vec::with_capacity(tokens.tokens.len());
    while at < tokens.tokens.len() {
        let (mut token, mut next) = (tokens.tokens[at], at + 1);
        match token.kind {
            Kind::Number(index) => {
                // "40 per cent", "65 percent"
                tokens.numbers[index].percent |= tokens.is(at + 1, "percent prozent percentage")
                    || tokens.is(at + 1, "per pour por") && tokens.is(at + 2, "cent ciento cento");
                if let Some((text, spelling, behind)) = mixed(tokens, at, language).or_else(|| in_coins(tokens, at)) {
                    (token.end, next) = (tokens.tokens[behind - 1].end, behind);
                    let number = &mut tokens.numbers[index];
                    (number.text, number.spelling, number.end) = (text, spelling, token.end);
                }
            }
            Kind::Word(meaning) => {
                if let Some((number, behind)) = in_words(tokens, at, language, style, meaning, joined.last()) {
                    // The word for the sign belongs to the number.
                    joined.pop_if(|last| last.kind.means(Meaning::MINUS) && last.start == number.start);
                    token = Token {
                        kind: Kind::Number(tokens.numbers.len()),
                        start: number.start,
                        end: number.end,
                        ..token
                    };
                    tokens.numbers.push(number);
                    next = behind;
                }
            }
            _ => {}
        }
        joined.push(token);
        at = next;
    }
    tokens.tokens = joined;
}

/// "12 dollars and 50 cents" as one number, and the token behind it.
fn in_coins(tokens: &Tokens<'_>, at: usize) -> Option<(String, Spelling, usize)> {
    const COINS: &str = "dollar euro pound rupee franc real";
    const CENTS: &str = "cent pence penny centime paise centavo";
    let names = |at: usize, words: &str| {
        let word = tokens.slice(at);
        words.split(' ').any(|one| word.get(..one.len()).is_some_and(|stem| stem.eq_ignore_ascii_case(one)))
    };
    let (whole, cents) = (&tokens.number(at)?.text, &tokens.number(at + 3)?.text);
    let coins = tokens.means(at + 2, Meaning::AND)
        && names(at + 1, COINS)
        && names(at + 4, CENTS)
        && cents.len() <= 2
        && is_digits(cents)
        && is_digits(whole.trim_start_matches('-'));
    coins.then(|| (format!("{whole}.{cents:0>2}"), Spelling::Decimal, at + 4))
}

/// Articles before a fraction: "un tercio".
const ARTICLES: &str = "un une una um uma";

/// The number that begins with the word at `at`, and the first token behind it.
fn in_words(
    tokens: &Tokens<'_>,
    at: usize,
    language: Language,
    style: Style,
    meaning: Meaning,
    before: Option<&Token>,
) -> Option<(Number, usize)> {
    // Behind digits a power of ten is their scale.
    let scales = || before.is_some_and(|token| token.kind.is_number()) && scale(tokens.slice(at)).is_some();
    // "move the decimal point one place"
    let decimal = || {
        before.is_some_and(|token| is_among(&tokens.text[token.start..token.end], "decimal")) && tokens.is(at, "point")
    };
    if meaning.has(Meaning::AND) || scales() || decimal() {
        return None;
    }
    let token = tokens.tokens[at];
    let count = if style.counts { counted(tokens, at, before, language) } else { None };
    let rank = if style.ranks { ranked(tokens, at) } else { None };
    if let Some(text) = count.or(rank) {
        let number = in_words_at(text.to_owned(), token.start, token.end);
        return Some((Number { ordinal: count.is_none(), ..number }, at + 1));
    }
    // Most words are no number.
    let compounds = matches!(language, Language::German | Language::Italian | Language::CommaDecimal)
        || language == Language::Other && !tokens.slice(at).is_ascii();
    let first = tokens.slice(at).split('-').next().unwrap_or_default();
    let hyphenated = tokens.slice(at).contains('-') && meaning_of(first).has(Meaning::NUMERAL);
    if !(compounds || hyphenated || meaning.has(Meaning::NUMERAL)) {
        return None;
    }
    let (parts, mut next) = parts(tokens, at, language, Vec::new()).filter(|(_, next)| *next > at)?;
    // "coma dos manzanas"
    if parts.first() == Some(&Part::Point) && language != Language::English {
        return None;
    }
    // "one" is rarely a number, ordinals never.
    if parts == [Part::Small(1)] {
        let idle = tokens.is(next, "of by can more another is should must way could the");
        let may = before.is_none_or(|token| match token.kind {
            Kind::Word(meaning) => meaning.has(any_of![LINK, GIVES, ANSWER, CONTEXT]),
            kind => matches!(kind, Kind::Line | Kind::Colon | Kind::Bold | Kind::Equals | Kind::BoxOpen | Kind::Open),
        });
        if idle || !may {
            return None;
        }
    }
    // An ordinal, unless something is divided: "one ninth".
    let romance = language.is_romance();
    let (mut text, ordinal) = match parts[..] {
        // Elsewhere than in English words of halves and thirds stand alone for other things: "la media", "al terzo posto".
        [Part::Over(_)]
            if romance && !before.is_some_and(|token| is_among(&tokens.text[token.start..token.end], ARTICLES)) =>
        {
            return None;
        }
        [Part::Over(rank)]
            if !romance && language != Language::German && rank != 2 && rank != 4
                || rank == 4 && tokens.is(at, "fourth") =>
        {
            (rank.to_string(), true)
        }
        // "twenty-fifth"
        [Part::Small(tens @ 20..), Part::Over(rank @ 1..10)] if next == at + 1 && tens % 10 == 0 => {
            ((tens + rank).to_string(), true)
        }
        _ => (value(&parts)?, false),
    };
    // "five over eight"
    if tokens.is(next, "over")
        && let [Part::Small(top)] = parts[..]
        && let Some(Part::Small(bottom @ 1..)) = part(&tokens.slice(next + 1).to_lowercase(), language)
    {
        text = format!("{top}/{bottom}");
        next += 2;
    }
    // "cinq litres et demi"
    if is_digits(&text)
        && !ordinal
        && let Some((half, behind)) = with_fraction(tokens, next, parts, language)
    {
        (text, next) = (half, behind);
    }
    let minus = before.filter(|token| token.kind.means(Meaning::MINUS));
    let text = if minus.is_some() { format!("-{text}") } else { text };
    let start = minus.map_or(token.start, |minus| minus.start);
    let number = in_words_at(text, start, tokens.tokens[next - 1].end);
    Some((Number { percent: tokens.is(next, "percent"), ordinal, ..number }, next))
}

/// A number in words between two bytes.
fn in_words_at(text: String, start: usize, end: usize) -> Number {
    Number { text, spelling: Spelling::Words, percent: false, name: false, ordinal: false, start, end }
}

/// The parts of a number from the word at `at` on, behind those that stand before it, and the first token behind them.
fn parts(tokens: &Tokens<'_>, at: usize, language: Language, before: Vec<Part>) -> Option<(Vec<Part>, usize)> {
    let (mut parts, mut next) = (before, at);
    let behind = |at: usize| part(&tokens.slice(at + 1).to_lowercase(), language);
    while tokens.kind(next).is_word() {
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
                        is_among(piece, "a an") && matches!(parts.last(), None | Some(Part::Joint | Part::Over(2)));
                    // "trente et un": elsewhere it is an article.
                    let one = is_among(piece, ARTICLES)
                        && matches!(parts[..], [.., Part::Small(20..) | Part::Power(_), Part::Joint]);
                    // "a hundred", "a dozen", "a half": the article counts one where a power follows.
                    let other = || if one { Some(Part::Small(1)) } else { article.then_some(Part::Joint) };
                    part(piece, language).or_else(other)
                })
                .collect()
        });
        let Some(found) = found.filter(|found: &Vec<Part>| !found.is_empty()) else { break };
        if parts.is_empty() && found[0] == Part::Joint {
            if !matches!(behind(next), Some(Part::Power(_) | Part::Dozen | Part::Over(2..=4))) {
                return None;
            }
            parts.push(Part::Small(1));
        } else if pairs(&parts, &found) && !matches!(behind(next), Some(Part::Over(_))) {
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
fn mixed(tokens: &Tokens<'_>, at: usize, language: Language) -> Option<(String, Spelling, usize)> {
    let number = tokens.number(at)?;
    let whole: u64 = number.text.trim_start_matches('-').parse().ok().filter(|&whole| whole < 1_000_000)?;
    let operand = |number: &&Number| number.spelling == Spelling::Integer && number.text.len() <= 3;
    // "7 over 2"
    if tokens.is(at + 1, "over")
        && operand(&number)
        && let Some(bottom) = tokens.number(at + 2).filter(operand)
        && !["days", "weeks", "months", "years", "hours", "minutes", "games"].contains(&tokens.slice(at + 3))
    {
        return Some((format!("{}/{}", number.text, bottom.text), Spelling::Fraction, at + 3));
    }
    if number.spelling != Spelling::Integer {
        return None;
    }
    let (text, next) = with_fraction(tokens, at + 1, vec![Part::Small(whole)], language)?;
    let minus = if number.text.starts_with('-') { "-" } else { "" };
    Some((format!("{minus}{text}"), Spelling::Fraction, next))
}

/// The number of some parts with a fraction in words behind them, or a half behind their unit: "3 kilomètres et demi"; and the first token
/// behind it.
fn with_fraction(tokens: &Tokens<'_>, at: usize, mut whole: Vec<Part>, language: Language) -> Option<(String, usize)> {
    let and = |at: usize| tokens.means(at, Meaning::AND);
    let unit = usize::from(!and(at) && tokens.kind(at).is_word());
    let joint = at + unit;
    if !and(joint) {
        return None;
    }
    let article = tokens.is(joint + 1, "un una uma ein eine");
    let behind = joint + 1 + usize::from(article);
    whole.push(Part::Joint);
    let (parts, next) = parts(tokens, behind, language, whole)?;
    let halves = unit == 0 || matches!(parts[..], [.., Part::Over(2)]) && !tokens.is(next, "of");
    let text = value(&parts).filter(|text| next > behind && text.contains('/') && halves)?;
    Some((text, next))
}

/// Several parts in one word: "dreieinhalb"; in Arabic what "and" stands before, and the ten of eleven to nineteen.
fn in_one_word(word: &str, before: &[Part], language: Language) -> Option<Vec<Part>> {
    if language == Language::German {
        let whole = word.strip_suffix("einhalb").filter(|whole| !whole.is_empty());
        let whole = if word == "anderthalb" { Part::Small(1) } else { part(whole?, language)? };
        return Some(vec![whole, Part::Joint, Part::Over(2)]);
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
fn counted(tokens: &Tokens<'_>, at: usize, before: Option<&Token>, language: Language) -> Option<&'static str> {
    let is = |at: usize, words: &str| tokens.is(at, words);
    let begins = before.is_none_or(|token| {
        matches!(token.kind, Kind::Line | Kind::Stop | Kind::Colon | Kind::Open | Kind::Bold | Kind::Comma)
            || token.kind.means(any_of![CONCLUDES, AND])
    });
    let linked = before.is_some_and(|token| token.kind.means(any_of![LINK, GIVES]));
    let ends = |at: usize| matches!(tokens.kind(at), Kind::Stop | Kind::Line | Kind::Comma);
    let joins = any_of![TOTALS, LINK, GIVES];
    let remains = || (at + 1..at + 8).take_while(|&at| !ends(at)).any(|at| tokens.means(at, joins));
    // "once in the row", not "once upon a time" and "twice as many"
    let times = || {
        let next = at + 1;
        !tokens.kind(next).is_word() || tokens.means(next, Meaning::CONTEXT) || is(next, "altogether overall there")
    };
    let denied = |at: usize| tokens.slice(at).to_ascii_lowercase().ends_with("n't") || is(at, "not never");
    const NONE: &str = "none nobody nothing ninguno ninguna nada nadie keine keiner keines nichts niemand aucun aucune nessuno \
         nessuna nenhum nenhuma";
    Some(match () {
        () if is(at, NONE) && (begins || linked) && !is(at + 1, "in about else to") => "0",
        () if is(at, "no")
            && (language != Language::English
                || is(
                    at + 1,
                    "access idea way information data need reason doubt clue problem estimate entry mention value figure number answer",
                )) =>
        {
            return None;
        }
        () if is(at, "no") && (linked || begins && tokens.kind(at + 1).is_word() && remains()) => "0",
        // "He doesn't have any left."
        () if is(at, "any")
            && (at.saturating_sub(4)..at).any(denied)
            && (remains() || !tokens.kind(at + 1).is_word()) =>
        {
            "0"
        }
        () if is(at, "once") && times() => "1",
        () if is(at, "twice") && times() => "2",
        () if is(at, "thrice") && times() => "3",
        () => return None,
    })
}

/// The first three ranks in words, which are other things elsewhere: "First, we add".
fn ranked(tokens: &Tokens<'_>, at: usize) -> Option<&'static str> {
    const RANKS: [(&str, &str); 3] = [
        ("1", "first erste erster ersten premier première primero primera primeiro primeira primo prima"),
        ("2", "second zweite zweiter zweiten deuxième seconde segundo segunda secondo seconda"),
        ("3", "dritte dritter dritten troisième tercero tercera terceiro terceira terzo terza"),
    ];
    let lower = tokens.slice(at).to_lowercase();
    let opens = at == 0 || !tokens.kind(at - 1).is_word();
    let (rank, _) = RANKS.iter().find(|(_, words)| is_among(&lower, words))?;
    (!(opens && matches!(tokens.kind(at + 1), Kind::Comma | Kind::Colon))).then_some(*rank)
}

#[cfg(test)]
mod tests {
    use super::super::numeral::Style;
    use super::*;

    #[test]
    fn numbers_in_words_of_several_languages() {
        const ENGLISH: &str = "forty-two=42|one hundred and seven=107|two point seven five=2.75|minus forty-eight=-48|\
             negative four hundred forty-six=-446|six and a half=13/2|three quarters=3/4|a dozen=12|\
             three thousand two hundred five=3205|one half=1/2|zero=0|one of the most=|one cat and two dogs=1 2";
        for (language, cases) in [
            (Language::English, ENGLISH),
            (Language::German, "sechsunddreißig=36|zweihundertfünf=205"),
            (Language::French, "quatre-vingt-dix-sept=97"),
            (Language::Spanish, "treinta y cinco=35"),
            (Language::Italian, "centoventitré=123"),
            (Language::Other, "六十三=63|一共有本书="),
        ] {
            for (text, expected) in cases.split('|').map(|case| case.split_once('=').unwrap()) {
                let tokens = Tokens::new(text, Style::default(), language);
                let found = (0..tokens.tokens.len()).filter_map(|at| tokens.number(at));
                let found: Vec<&str> = found.map(|number| number.text.as_str()).collect();
                assert_eq!(found.join(" "), expected, "{text}");
            }
        }
    }
}
