//! Numbers in words, in the languages that models answer in.
use std::sync::LazyLock;

use super::numeral::Spelling;
use super::token::{Kind, Number, Token, Tokens};
use super::vocabulary::{ByWord, Meaning, lower_ascii, meaning as meaning_of};

/// The language of a text, as far as numbers are written differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    English,
    German,
    French,
    Spanish,
    Portuguese,
    Italian,
    /// Another one that writes decimals with a comma.
    CommaDecimal,
    Other,
}

impl Language {
    /// True where decimals are written with a comma.
    pub fn has_decimal_comma(self) -> bool {
        !matches!(self, Language::English | Language::Other)
    }
}

/// Short words that tell a language; those that two of them share are left out.
const TELLING: [(Language, &str); 7] = [
    (
        Language::English,
        "the is are of and to in answer so we have has you with that it for this was be equals total number",
    ),
    (
        Language::German,
        "der die das ist und nicht ein eine ergibt beträgt antwort also sind von zu lautet summe ergebnis kostet zusammen wir rest hat mehr wie viele insgesamt gibt für im auf mit",
    ),
    (Language::French, "le la les est et une réponse donc des du il y dans sont somme résultat coûte nous reste avec"),
    (
        Language::Spanish,
        "cuánto cuánta cuántos cuántas qué entre el los las es y una respuesta la del se en por son suma resultado cuesta entonces total número tiene",
    ),
    (Language::Portuguese, "os é um uma resposta soma resultado então são da tem na custa portanto"),
    (Language::Italian, "il lo gli è un una risposta la somma risultato quindi sono di che costa"),
    (
        Language::CommaDecimal,
        "het een en antwoord är svaret och wynik jest odpowiedź to odpověď cevap ve sonuç jawabannya adalah",
    ),
];

/// Telling words and the places of their languages in [`TELLING`], as bits.
static LANGUAGES: LazyLock<ByWord<u8>> = LazyLock::new(|| {
    let mut languages: ByWord<u8> = ByWord::default();
    for (place, (_, words)) in TELLING.iter().enumerate() {
        for word in words.split(' ') {
            *languages.entry(word).or_default() |= 1 << place;
        }
    }
    languages
});

/// Words of a text that are looked at to tell its language.
const LOOKED_AT: usize = 60;

/// The language of a completion; where it has too few words, that of its question.
pub fn language(completion: &str, question: &str) -> Language {
    told_by(completion).or_else(|| told_by(question)).unwrap_or(Language::English)
}

/// The language that the short words of a text tell.
fn told_by(text: &str) -> Option<Language> {
    let mut counts = [0usize; TELLING.len()];
    let mut cyrillic = 0;
    let mut other = 0;
    let words = text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    for word in words.take(LOOKED_AT) {
        let first = word.chars().next().unwrap_or(' ') as u32;
        if (0x400..0x530).contains(&first) {
            cyrillic += 1;
        } else if first >= 0x530 && !(0x1e00..0x2000).contains(&first) {
            other += 1;
        } else if word.len() <= 12 {
            let mut buffer = [0u8; 12];
            let found = lower_ascii(word, &mut buffer)
                .map_or_else(|| LANGUAGES.get(word.to_lowercase().as_str()), |lower| LANGUAGES.get(lower));
            if let Some(languages) = found {
                for (place, count) in counts.iter_mut().enumerate() {
                    *count += usize::from(languages >> place & 1);
                }
                // Most texts are English, and soon say so.
                if counts[0] >= 4 && counts[1..].iter().all(|&count| count + 2 < counts[0]) {
                    return Some(Language::English);
                }
            }
        }
    }
    if cyrillic > 0 {
        return Some(Language::CommaDecimal);
    }
    let (place, &most) = counts.iter().enumerate().rev().max_by_key(|(_, count)| **count)?;
    if other > most {
        return Some(Language::Other);
    }
    // One word may be another language's too. English wins a tie: its words are the most common ones in prompts.
    let enough = if counts[0] == most { 1 } else { 2 };
    (most >= enough).then(|| if counts[0] == most { Language::English } else { TELLING[place].0 })
}

/// What a number word adds to the number that it stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// 0 to 99.
    Small(u64),
    /// Multiplies what stands before it (hundred, thousand): a power of ten.
    Power(u32),
    /// `dozen`
    Dozen,
    /// Joins parts and begins none (and).
    Joint,
    /// `point`
    Point,
    /// A denominator: half, third, quarter.
    Over(u64),
}

const ENGLISH: &[(&str, Part)] = &[
    ("zero", Part::Small(0)),
    ("one", Part::Small(1)),
    ("two", Part::Small(2)),
    ("three", Part::Small(3)),
    ("four", Part::Small(4)),
    ("five", Part::Small(5)),
    ("six", Part::Small(6)),
    ("seven", Part::Small(7)),
    ("eight", Part::Small(8)),
    ("nine", Part::Small(9)),
    ("ten", Part::Small(10)),
    ("eleven", Part::Small(11)),
    ("twelve", Part::Small(12)),
    ("thirteen", Part::Small(13)),
    ("fourteen", Part::Small(14)),
    ("fifteen", Part::Small(15)),
    ("sixteen", Part::Small(16)),
    ("seventeen", Part::Small(17)),
    ("eighteen", Part::Small(18)),
    ("nineteen", Part::Small(19)),
    ("twenty", Part::Small(20)),
    ("thirty", Part::Small(30)),
    ("forty", Part::Small(40)),
    ("fourty", Part::Small(40)),
    ("fifty", Part::Small(50)),
    ("sixty", Part::Small(60)),
    ("seventy", Part::Small(70)),
    ("eighty", Part::Small(80)),
    ("ninety", Part::Small(90)),
    ("hundred", Part::Power(2)),
    ("thousand", Part::Power(3)),
    ("million", Part::Power(6)),
    ("billion", Part::Power(9)),
    ("trillion", Part::Power(12)),
    ("quadrillion", Part::Power(15)),
    ("lakh", Part::Power(5)),
    ("crore", Part::Power(7)),
    ("dozen", Part::Dozen),
    ("and", Part::Joint),
    ("point", Part::Point),
    ("half", Part::Over(2)),
    ("halves", Part::Over(2)),
    ("third", Part::Over(3)),
    ("thirds", Part::Over(3)),
    ("quarter", Part::Over(4)),
    ("quarters", Part::Over(4)),
    ("fourth", Part::Over(4)),
    ("fourths", Part::Over(4)),
    ("fifth", Part::Over(5)),
    ("fifths", Part::Over(5)),
    ("sixth", Part::Over(6)),
    ("sixths", Part::Over(6)),
    ("seventh", Part::Over(7)),
    ("sevenths", Part::Over(7)),
    ("eighth", Part::Over(8)),
    ("eighths", Part::Over(8)),
    ("ninth", Part::Over(9)),
    ("ninths", Part::Over(9)),
    ("tenth", Part::Over(10)),
    ("tenths", Part::Over(10)),
    ("eleventh", Part::Over(11)),
    ("elevenths", Part::Over(11)),
    ("twelfth", Part::Over(12)),
    ("twelfths", Part::Over(12)),
    ("thirteenths", Part::Over(13)),
    ("fourteenths", Part::Over(14)),
    ("fifteenth", Part::Over(15)),
    ("fifteenths", Part::Over(15)),
    ("sixteenth", Part::Over(16)),
    ("sixteenths", Part::Over(16)),
    ("twentieth", Part::Over(20)),
    ("twentieths", Part::Over(20)),
    ("hundredth", Part::Over(100)),
    ("hundredths", Part::Over(100)),
    ("thousandths", Part::Over(1000)),
];

const FRENCH: &[(&str, Part)] = &[
    ("zéro", Part::Small(0)),
    ("deux", Part::Small(2)),
    ("trois", Part::Small(3)),
    ("quatre", Part::Small(4)),
    ("cinq", Part::Small(5)),
    ("six", Part::Small(6)),
    ("sept", Part::Small(7)),
    ("huit", Part::Small(8)),
    ("neuf", Part::Small(9)),
    ("dix", Part::Small(10)),
    ("onze", Part::Small(11)),
    ("douze", Part::Small(12)),
    ("treize", Part::Small(13)),
    ("quatorze", Part::Small(14)),
    ("quinze", Part::Small(15)),
    ("seize", Part::Small(16)),
    ("vingt", Part::Small(20)),
    ("vingts", Part::Small(20)),
    ("trente", Part::Small(30)),
    ("quarante", Part::Small(40)),
    ("cinquante", Part::Small(50)),
    ("soixante", Part::Small(60)),
    ("septante", Part::Small(70)),
    ("huitante", Part::Small(80)),
    ("nonante", Part::Small(90)),
    ("cent", Part::Power(2)),
    ("cents", Part::Power(2)),
    ("mille", Part::Power(3)),
    ("million", Part::Power(6)),
    ("millions", Part::Power(6)),
    ("milliard", Part::Power(9)),
    ("milliards", Part::Power(9)),
    ("et", Part::Joint),
];

const SPANISH: &[(&str, Part)] = &[
    ("cero", Part::Small(0)),
    ("uno", Part::Small(1)),
    ("dos", Part::Small(2)),
    ("tres", Part::Small(3)),
    ("cuatro", Part::Small(4)),
    ("cinco", Part::Small(5)),
    ("seis", Part::Small(6)),
    ("siete", Part::Small(7)),
    ("ocho", Part::Small(8)),
    ("nueve", Part::Small(9)),
    ("diez", Part::Small(10)),
    ("once", Part::Small(11)),
    ("doce", Part::Small(12)),
    ("trece", Part::Small(13)),
    ("catorce", Part::Small(14)),
    ("quince", Part::Small(15)),
    ("dieciséis", Part::Small(16)),
    ("diecisiete", Part::Small(17)),
    ("dieciocho", Part::Small(18)),
    ("diecinueve", Part::Small(19)),
    ("veinte", Part::Small(20)),
    ("veintiuno", Part::Small(21)),
    ("veintidós", Part::Small(22)),
    ("veintitrés", Part::Small(23)),
    ("veinticuatro", Part::Small(24)),
    ("veinticinco", Part::Small(25)),
    ("veintiséis", Part::Small(26)),
    ("veintisiete", Part::Small(27)),
    ("veintiocho", Part::Small(28)),
    ("veintinueve", Part::Small(29)),
    ("treinta", Part::Small(30)),
    ("cuarenta", Part::Small(40)),
    ("cincuenta", Part::Small(50)),
    ("sesenta", Part::Small(60)),
    ("setenta", Part::Small(70)),
    ("ochenta", Part::Small(80)),
    ("noventa", Part::Small(90)),
    ("cien", Part::Power(2)),
    ("ciento", Part::Power(2)),
    ("doscientos", Part::Small(200)),
    ("trescientos", Part::Small(300)),
    ("cuatrocientos", Part::Small(400)),
    ("quinientos", Part::Small(500)),
    ("seiscientos", Part::Small(600)),
    ("setecientos", Part::Small(700)),
    ("ochocientos", Part::Small(800)),
    ("novecientos", Part::Small(900)),
    ("mil", Part::Power(3)),
    ("millón", Part::Power(6)),
    ("millones", Part::Power(6)),
    ("y", Part::Joint),
];

const PORTUGUESE: &[(&str, Part)] = &[
    ("zero", Part::Small(0)),
    ("dois", Part::Small(2)),
    ("duas", Part::Small(2)),
    ("três", Part::Small(3)),
    ("quatro", Part::Small(4)),
    ("cinco", Part::Small(5)),
    ("seis", Part::Small(6)),
    ("sete", Part::Small(7)),
    ("oito", Part::Small(8)),
    ("nove", Part::Small(9)),
    ("dez", Part::Small(10)),
    ("onze", Part::Small(11)),
    ("doze", Part::Small(12)),
    ("treze", Part::Small(13)),
    ("catorze", Part::Small(14)),
    ("quatorze", Part::Small(14)),
    ("quinze", Part::Small(15)),
    ("dezesseis", Part::Small(16)),
    ("dezessete", Part::Small(17)),
    ("dezoito", Part::Small(18)),
    ("dezenove", Part::Small(19)),
    ("vinte", Part::Small(20)),
    ("trinta", Part::Small(30)),
    ("quarenta", Part::Small(40)),
    ("cinquenta", Part::Small(50)),
    ("sessenta", Part::Small(60)),
    ("setenta", Part::Small(70)),
    ("oitenta", Part::Small(80)),
    ("noventa", Part::Small(90)),
    ("cem", Part::Power(2)),
    ("cento", Part::Power(2)),
    ("duzentos", Part::Small(200)),
    ("trezentos", Part::Small(300)),
    ("mil", Part::Power(3)),
    ("milhão", Part::Power(6)),
    ("milhões", Part::Power(6)),
    ("e", Part::Joint),
];

/// Units and tens of German and Italian, whose numbers are written in one word.
const GERMAN: &[(&str, u64)] = &[
    ("null", 0),
    ("eins", 1),
    ("ein", 1),
    ("zwei", 2),
    ("drei", 3),
    ("vier", 4),
    ("fünf", 5),
    ("sechzehn", 16),
    ("siebzehn", 17),
    ("sechzig", 60),
    ("siebzig", 70),
    ("sechs", 6),
    ("sieben", 7),
    ("acht", 8),
    ("neun", 9),
    ("zehn", 10),
    ("elf", 11),
    ("zwölf", 12),
    ("dreizehn", 13),
    ("vierzehn", 14),
    ("fünfzehn", 15),
    ("achtzehn", 18),
    ("neunzehn", 19),
    ("zwanzig", 20),
    ("dreißig", 30),
    ("dreissig", 30),
    ("vierzig", 40),
    ("fünfzig", 50),
    ("achtzig", 80),
    ("neunzig", 90),
];

const ITALIAN: &[(&str, u64)] = &[
    ("zero", 0),
    ("due", 2),
    ("tre", 3),
    ("tré", 3),
    ("quattro", 4),
    ("cinque", 5),
    ("sei", 6),
    ("sette", 7),
    ("otto", 8),
    ("nove", 9),
    ("dieci", 10),
    ("undici", 11),
    ("dodici", 12),
    ("tredici", 13),
    ("quattordici", 14),
    ("quindici", 15),
    ("sedici", 16),
    ("diciassette", 17),
    ("diciotto", 18),
    ("diciannove", 19),
    ("venti", 20),
    ("vent", 20),
    ("trenta", 30),
    ("trent", 30),
    ("quaranta", 40),
    ("quarant", 40),
    ("cinquanta", 50),
    ("cinquant", 50),
    ("sessanta", 60),
    ("sessant", 60),
    ("settanta", 70),
    ("settant", 70),
    ("ottanta", 80),
    ("ottant", 80),
    ("novanta", 90),
    ("novant", 90),
];

fn part(word: &str, language: Language) -> Option<Part> {
    let of = |table: &[(&str, Part)]| table.iter().find(|(name, _)| *name == word).map(|(_, part)| *part);
    match language {
        Language::French => of(FRENCH),
        Language::Spanish => of(SPANISH),
        Language::Portuguese => of(PORTUGUESE),
        Language::German => compound(word, GERMAN, "und", &[("hundert", 100), ("tausend", 1000)]).map(Part::Small),
        Language::Italian => {
            compound(word, ITALIAN, "", &[("cento", 100), ("mila", 1000), ("mille", 1000)]).map(Part::Small)
        }
        Language::English | Language::CommaDecimal | Language::Other => of(ENGLISH),
    }
}

/// A number in one word: `sechsunddreißig`, `zweihundertfünf`, `centoventitré`.
fn compound(word: &str, units: &[(&str, u64)], and: &str, powers: &[(&str, u64)]) -> Option<u64> {
    if word.len() > 60 {
        return None;
    }
    let mut rest = word;
    let (mut total, mut group, mut unit) = (0u64, 0u64, None::<u64>);
    let mut any = false;
    while !rest.is_empty() {
        if let Some((name, power)) = powers.iter().find(|(name, _)| rest.starts_with(name)) {
            rest = &rest[name.len()..];
            if *power == 100 {
                group = unit.take().unwrap_or(1).checked_mul(100)?;
            } else {
                total = (group + unit.take().unwrap_or(u64::from(group == 0))).checked_mul(*power)?;
                group = 0;
            }
            any = true;
            continue;
        }
        if !and.is_empty()
            && let Some(behind) = rest.strip_prefix(and)
            && any
        {
            rest = behind;
            continue;
        }
        let (name, value) =
            units.iter().filter(|(name, _)| rest.starts_with(name)).max_by_key(|(name, _)| name.len())?;
        rest = &rest[name.len()..];
        unit = Some(unit.unwrap_or(0) + value);
        any = true;
    }
    // "ein" alone is an article.
    let value = total + group + unit.unwrap_or(0);
    (any && !matches!(word, "ein" | "un")).then_some(value)
}

/// Number words of the languages that write them apart.
pub fn numerals() -> impl Iterator<Item = &'static str> {
    [ENGLISH, FRENCH, SPANISH, PORTUGUESE].into_iter().flatten().map(|(word, _)| *word).chain(["a", "an"])
}

/// A decimal moved by a power of ten.
pub fn scaled(text: &str, power: usize) -> Option<String> {
    let (sign, unsigned) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, decimals) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    if !whole.bytes().chain(decimals.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let digits = format!("{whole}{decimals:0<power$}");
    let point = whole.len() + power;
    let (whole, decimals) = digits.split_at(point.min(digits.len()));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let decimals = decimals.trim_end_matches('0');
    Some(if decimals.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{decimals}") })
}

/// Powers of ten in words behind a number in digits.
pub fn scale(word: &str) -> Option<usize> {
    let lower = word.to_lowercase();
    Some(match lower.as_str() {
        "thousand" | "tausend" | "mille" | "mil" => 3,
        "lakh" | "lakhs" => 5,
        "million" | "millions" | "millionen" | "millones" | "milhões" | "mio" | "mn" => 6,
        "crore" | "crores" => 7,
        "billion" | "billions" | "milliarden" | "milliards" | "bn" => 9,
        "trillion" | "trillions" => 12,
        _ => return None,
    })
}

/// Chinese and Japanese numerals in a run of characters: place, length and value, where at least two stand together or nothing
/// else does.
pub fn wide_number(run: &str) -> Option<(usize, usize, String)> {
    const DIGITS: &str = "零一二三四五六七八九";
    let value = |c: char| match c {
        '〇' => Some(0u64),
        '两' | '兩' => Some(2),
        c => DIGITS.chars().position(|digit| digit == c).map(|value| value as u64),
    };
    let power = |c: char| match c {
        '十' => Some(10u64),
        '百' => Some(100),
        '千' => Some(1000),
        '万' | '萬' => Some(10_000),
        '亿' | '億' => Some(100_000_000),
        _ => None,
    };
    let is_numeral = |c: char| value(c).is_some() || power(c).is_some();
    let start = run.find(is_numeral)?;
    let tail = &run[start..];
    let length = tail.find(|c| !is_numeral(c)).unwrap_or(tail.len());
    let numeral = &tail[..length];
    let count = numeral.chars().count();
    let behind_link = run[..start].ends_with(['是', '为', '為', '有', 'は']);
    if count > 16 || (count < 2 && !(length == run.len() || behind_link && length == tail.len())) {
        return None;
    }
    if !numeral.chars().any(|c| power(c).is_some()) {
        // Digit by digit: 二〇一九.
        let digits: Option<String> =
            numeral.chars().map(|c| value(c).map(|digit| char::from(b'0' + digit as u8))).collect();
        return Some((start, length, digits?));
    }
    let (mut total, mut section, mut unit) = (0u64, 0u64, 0u64);
    for c in numeral.chars() {
        match (value(c), power(c)) {
            (Some(digit), _) => unit = digit,
            (_, Some(power)) if power >= 10_000 => {
                total = (total + section + unit).max(1).checked_mul(power)?;
                (section, unit) = (0, 0);
            }
            (_, Some(power)) => {
                section += unit.max(1) * power;
                unit = 0;
            }
            _ => return None,
        }
    }
    Some((start, length, (total + section + unit).to_string()))
}

/// Joins number words into numbers and multiplies digits by a power of ten in words behind them.
pub fn join(tokens: &mut Tokens<'_>, language: Language, counts: bool) {
    let mut at = 0;
    let mut joined: Vec<Token> = Vec::with_capacity(tokens.tokens.len());
    while at < tokens.tokens.len() {
        let found = match tokens.tokens[at].kind {
            Kind::Word(meaning) => in_words(tokens, at, language, counts, meaning, joined.last()),
            _ => None,
        };
        mark_percent(tokens, at);
        if let Some(cents) = in_coins(tokens, at, &mut joined) {
            at = cents;
            continue;
        }
        match found {
            Some((number, next)) => {
                let start = number.start;
                // The word for the sign belongs to the number.
                if joined.last().is_some_and(|last| {
                    matches!(last.kind, Kind::Word(m) if m.has(Meaning::MINUS)) && last.start == start
                }) {
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
    let is = |at: usize, word: &str| tokens.slice(at).eq_ignore_ascii_case(word);
    let percent = ["percent", "prozent", "percentage"].iter().any(|word| is(at + 1, word))
        || (["per", "pour", "por"].iter().any(|word| is(at + 1, word))
            && ["cent", "ciento", "cento"].iter().any(|word| is(at + 2, word)));
    if percent {
        tokens.numbers[index].percent = true;
    }
}

/// "12 dollars and 50 cents" as one number: where its first part stands; the token behind it.
fn in_coins(tokens: &mut Tokens<'_>, at: usize, joined: &mut Vec<Token>) -> Option<usize> {
    const COINS: [&str; 6] = ["dollar", "euro", "pound", "rupee", "franc", "real"];
    const CENTS: [&str; 6] = ["cent", "pence", "penny", "centime", "paise", "centavo"];
    let names = |at: usize, words: &[&str]| {
        let word = tokens.slice(at);
        words.iter().any(|one| word.get(..one.len()).is_some_and(|stem| stem.eq_ignore_ascii_case(one)))
    };
    let (Kind::Number(whole), Kind::Number(part)) = (tokens.kind(at), tokens.kind(at + 3)) else { return None };
    let and = matches!(tokens.kind(at + 2), Kind::Word(meaning) if meaning.has(Meaning::AND));
    if !(and && names(at + 1, &COINS) && names(at + 4, &CENTS)) {
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
    counts: bool,
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
    if counts
        && matches!(language, Language::English | Language::Other)
        && let Some(number) = counted(tokens, at, before)
    {
        return Some((number, at + 1));
    }
    // Most words are no number.
    let compounds = matches!(language, Language::German | Language::Italian);
    let first = tokens.slice(at).split('-').next().unwrap_or_default();
    let hyphenated = tokens.slice(at).contains('-') && meaning_of(first).has(Meaning::NUMERAL);
    if !(compounds || hyphenated || meaning.has(Meaning::NUMERAL)) {
        return None;
    }
    let mut parts: Vec<Part> = Vec::new();
    let mut next = at;
    while let Kind::Word(_) = tokens.kind(next) {
        let word = tokens.slice(next);
        if word.len() > 60 {
            break;
        }
        let lower = word.to_lowercase();
        let found: Option<Vec<Part>> = lower
            .split('-')
            .filter(|piece| !piece.is_empty())
            .map(|piece| {
                part(piece, language).or_else(|| {
                    // "a hundred", "a dozen", "a half": the article counts one where a power follows.
                    (piece == "a" || piece == "an")
                        .then_some(Part::Joint)
                        .filter(|_| matches!(parts.last(), None | Some(Part::Joint | Part::Over(2))))
                })
            })
            .collect();
        let Some(found) = found.filter(|found| !found.is_empty()) else { break };
        if parts.is_empty() && matches!(found[0], Part::Joint) {
            let follows = part(&tokens.slice(next + 1).to_lowercase(), language);
            if !matches!(follows, Some(Part::Power(_) | Part::Dozen | Part::Over(2..=4))) {
                return None;
            }
            parts.push(Part::Small(1));
        } else {
            parts.extend(found);
        }
        next += 1;
        if parts.len() > 40 {
            break;
        }
    }
    // What joins stands between parts only.
    while parts.last().is_some_and(|part| matches!(part, Part::Joint | Part::Point)) {
        parts.pop();
        next -= 1;
    }
    if parts.is_empty() || next == at {
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
        let by = before.is_some_and(|token| matches!(token.kind, Kind::Word(m) if !m.has(Meaning::LINK.with(Meaning::GIVES).with(Meaning::ANSWER).with(Meaning::CONTEXT))));
        if !alone || by {
            return None;
        }
    }
    // An ordinal, unless something is divided: "one ninth".
    if matches!(parts[..], [Part::Over(bottom)] if bottom != 2 && bottom != 4) {
        return None;
    }
    let text = value(&parts)?;
    let token = tokens.tokens[at];
    let minus = before.filter(|token| matches!(token.kind, Kind::Word(m) if m.has(Meaning::MINUS)));
    let negative = minus.is_some();
    let end = tokens.tokens[next - 1].end;
    let number = Number {
        text: if negative { format!("-{text}") } else { text },
        spelling: Spelling::Words,
        percent: tokens.slice(next).eq_ignore_ascii_case("percent"),
        name: false,
        touches_end: end == tokens.text.len(),
        start: minus.map_or(token.start, |minus| minus.start),
        end,
    };
    Some((number, next))
}

/// Words that are a number where a number of things was asked for: "none", "there are no", "twice".
fn counted(tokens: &Tokens<'_>, at: usize, before: Option<&Token>) -> Option<Number> {
    let word = tokens.slice(at);
    let is = |words: &[&str]| words.iter().any(|one| word.eq_ignore_ascii_case(one));
    let begins = before
        .is_none_or(|token| matches!(token.kind, Kind::Line | Kind::Stop | Kind::Colon | Kind::Open | Kind::Bold));
    let linked =
        before.is_some_and(|token| matches!(token.kind, Kind::Word(m) if m.has(Meaning::LINK.with(Meaning::GIVES))));
    let text = match () {
        () if is(&["none", "nobody", "nothing"]) && (begins || linked) => "0",
        () if is(&["no"]) && linked => "0",
        () if is(&["once"]) => "1",
        () if is(&["twice"]) => "2",
        () if is(&["thrice"]) => "3",
        () => return None,
    };
    let token = tokens.tokens[at];
    Some(Number {
        text: text.to_owned(),
        spelling: Spelling::Words,
        percent: false,
        name: false,
        touches_end: token.end == tokens.text.len(),
        start: token.start,
        end: token.end,
    })
}

/// The value of number words, as a spelling.
fn value(parts: &[Part]) -> Option<String> {
    let point = parts.iter().position(|part| *part == Part::Point);
    let (whole, decimals) = match point {
        Some(point) => (&parts[..point], Some(&parts[point + 1..])),
        None => (parts, None),
    };
    // "half a million"
    if let [Part::Over(2), Part::Joint, Part::Power(power)] | [Part::Over(2), Part::Power(power)] = whole {
        return Some((10u64.checked_pow(*power)? / 2).to_string());
    }
    let (mut total, mut group, mut over) = (0u64, 0u64, None);
    let mut last_small = None;
    for (place, part) in whole.iter().enumerate() {
        match *part {
            Part::Small(value) => {
                // "four twenty": French for eighty; elsewhere two numbers beside each other, which is none.
                group = match last_small {
                    Some(4) if value == 20 => group - 4 + 80,
                    // "dix-sept"
                    Some(10) if (7..=9).contains(&value) => group.checked_add(value)?,
                    Some(last)
                        if last < 20 && last != 0 && value < 100
                            || value >= 20 && last >= 20 && value < 100 && last != 60 && last != 80 =>
                    {
                        return None;
                    }
                    _ => group.checked_add(value)?,
                };
                last_small = Some(if group % 100 == 80 && value == 20 { 80 } else { value });
            }
            Part::Power(2) => {
                group = group.max(1).checked_mul(100)?;
                last_small = None;
            }
            Part::Power(power) => {
                total = total.checked_add(group.max(1).checked_mul(10u64.checked_pow(power)?)?)?;
                group = 0;
                last_small = None;
            }
            Part::Dozen => {
                group = group.max(1).checked_mul(12)?;
                last_small = None;
            }
            Part::Joint => last_small = last_small.filter(|_| false),
            Part::Over(bottom) => {
                over = Some((bottom, place));
                break;
            }
            Part::Point => return None,
        }
    }
    let number = total.checked_add(group)?;
    if let Some((bottom, place)) = over {
        if place + 1 != whole.len() || decimals.is_some() {
            return None;
        }
        // "six and a half", "two and three quarters"; otherwise what stands before it is the numerator.
        let joint = whole[..place].iter().rposition(|part| *part == Part::Joint);
        let numerator = |parts: &[Part]| if parts.is_empty() { Some(1) } else { value(parts)?.parse::<u64>().ok() };
        return match joint {
            Some(joint) if joint > 0 => {
                let whole_part: u64 = value(&whole[..joint])?.parse().ok()?;
                let top = numerator(&whole[joint + 1..place])?;
                Some(format!("{}/{bottom}", whole_part.checked_mul(bottom)?.checked_add(top)?))
            }
            _ => Some(format!("{}/{bottom}", numerator(&whole[..place])?)),
        };
    }
    match decimals {
        None => Some(number.to_string()),
        Some(parts) => {
            let digits: Option<String> = parts
                .iter()
                .map(|part| match part {
                    Part::Small(value) => Some(value.to_string()),
                    _ => None,
                })
                .collect();
            digits.filter(|digits| !digits.is_empty()).map(|digits| format!("{number}.{digits}"))
        }
    }
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

    #[test]
    fn scales() {
        assert_eq!(scaled("8.9", 9).as_deref(), Some("8900000000"));
        assert_eq!(scaled("1.23456", 3).as_deref(), Some("1234.56"));
        assert_eq!(scaled("-2", 6).as_deref(), Some("-2000000"));
        assert_eq!(scaled("1/2", 3), None);
    }

    #[test]
    fn languages_are_told_by_short_words() {
        assert_eq!(language("Die Summe beträgt 1.284,5.", ""), Language::German);
        assert_eq!(language("La réponse est 0,375", ""), Language::French);
        assert_eq!(language("The answer is 5", "Die Summe"), Language::English);
        assert_eq!(language("3,5", "Ein Brot kostet 3,45 Euro. Was kosten die Brote?"), Language::German);
        assert_eq!(language("一共有63本书", ""), Language::Other);
    }
}
