//! The prompt for a reader of answers: its numbers, its example, the quantity that it asks for.

use std::hash::Hasher;
use std::ops::Range;
use std::sync::LazyLock;

use super::asks::{Ask, Asks};
use super::language::language_of;
use super::numeral::{Spelling, Style};
use super::piece::{Piece, pieces};
use super::scan::NO_UNIT;
use super::token::{Kind, Number, Tokens, is_among, is_wide};
use super::value::{self, is_digits};
use super::vocabulary::{ByWord, Fnv, Meaning, any_of};
use super::{Asked, Form};
use crate::number::words::{Language, scale};

/// The one of the given numbers that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extreme {
    Largest,
    Smallest,
}

/// A prompt, read.
#[derive(Debug)]
pub struct Question {
    pub form: Form,
    /// Notation of numbers in completions.
    pub style: Style,
    pub language: Language,
    /// Numbers that the question is about, in order.
    pub operands: Vec<String>,
    /// Numbers that show a format (`like 123`).
    pub examples: Vec<String>,
    pub extreme: Option<Extreme>,
    pub asks_year: bool,
    pub asks_remainder: bool,
    /// A part of a whole.
    pub asks_fraction: bool,
    /// Scale words that the question or its table states, so that they are units and multiply nothing.
    pub scales: Vec<usize>,
    /// Words for the unit that is asked for, in lower case.
    pub units: Vec<String>,
    /// It ends with `=`, so that a completion may go on with the number alone.
    pub open_ended: bool,
    /// It is the turn of a chat, whose answer does not go on with lines of its own pattern.
    pub is_chat: bool,
    /// It asks by an instruction, not by a story.
    pub instructs: bool,
    /// Names in the last sentence of a story.
    pub names: Vec<String>,
    /// Names in all of it, as far as a capital letter within its sentences tells.
    pub all_names: Vec<String>,
    /// Beginnings of the words of the sentence that asks, but for those that every question has.
    asked: Vec<String>,
    /// It asks for what is left, or for what is gone.
    pub asks_left: Option<bool>,
    /// It asks for a rate: "How many km per hour", "in km/h".
    pub asks_rate: bool,
    /// It asks for those that do not: "How many are not green?"
    pub denies: bool,
    /// Those of them that stand in its main clause, as bits: "how many were sold if 9 came home".
    pub main: u64,
    /// The prompt in lower case, and what its phrases ask for.
    lower: String,
    asks: Asks,
    /// Three neighbouring words of it, hashed.
    trigrams: Vec<u64>,
    /// Its sentences and the rows of its tables, hashed.
    sentences: Vec<u64>,
}

/// Words of a prompt that are looked at, from its end: tables of data sets are long.
const LONGEST: usize = 6_000;

/// Markers behind which the last question of a chat stands.
const TURNS: &str = "<|im_start|>user <|start_header_id|>user<|end_header_id|> <start_of_turn>user <|start|>user<|message|> \
                     <|User|> <\u{ff5c}User\u{ff5c}> [INST]";

/// Markers with which a turn of a chat ends.
const TURN_ENDS: &str = "<|im_end|> <|eot_id|> <end_of_turn> <|end|> <\u{ff5c}Assistant\u{ff5c}> <|Assistant|> [/INST]";

impl Question {
    /// Reads the prompt.
    pub fn new(asked: &Asked<'_>, completion: &str) -> Self {
        let (prompt, is_chat) = last_turn(asked.prompt);
        let language = language_of(completion, prompt);
        let form = asked.form;
        let lower = prompt.to_lowercase();
        let asks = Asks::of(&lower);
        let has = |ask: Ask| asks.has(ask);
        // The prompt's own numbers need its language only where a separator stands in one.
        let separates = |three: &[u8]| matches!(three, [b'0'..=b'9', b',' | b'.', b'0'..=b'9']);
        let separated = prompt.as_bytes().windows(3).any(separates);
        let decimal_comma = separated && language_of(prompt, "").has_decimal_comma();
        let question_style = Style { decimal_comma, ..Style::default() };
        let tokens = Tokens::new(prompt, question_style, Language::English);
        let in_words = tokens.numbers.iter().all(|number| number.spelling == Spelling::Words);
        let (mut operands, mut examples) = (Vec::new(), Vec::new());
        for at in 0..tokens.tokens.len() {
            let Some(number) = tokens.number(at) else { continue };
            // "Add two numbers": words of an instruction are no operands, unless it has no others.
            if form != Form::Number && number.spelling == Spelling::Words && !in_words {
                continue;
            }
            if is_example(&tokens, at) { &mut examples } else { &mut operands }.push(number.text.clone());
        }
        let extreme = match () {
            () if has(Ask::Digits) => None,
            () if has(Ask::Largest) => Some(Extreme::Largest),
            () => has(Ask::Smallest).then_some(Extreme::Smallest),
        };
        let decimal_comma =
            language.has_decimal_comma() || has_decimal_comma(prompt) || writes_points(completion, &operands);
        let story = Some(prompt).filter(|_| form == Form::Number);
        let (asked, main, clause) = asked_words(&tokens);
        Question {
            form,
            style: Style {
                decimal_comma,
                integer: form == Form::Integer,
                decimals: matches!(form, Form::Float | Form::Scientific),
                spaced: has(Ask::Spaces) && form == Form::Integer,
                point_groups: form == Form::Integer
                    && !prompt.contains('/')
                    && !has(Ask::Division)
                    && operands.iter().all(|operand| is_digits(operand))
                    && operands.iter().any(|operand| operand.len() > 3),
                binary: has(Ask::Binary),
                counts: has(Ask::Counts),
                ranks: has(Ask::Rank) && form == Form::Number,
                fraction: form == Form::Fraction || has(Ask::Part) || has(Ask::Simplest),
            },
            language,
            extreme,
            asks_year: form == Form::Number && has(Ask::Year),
            asks_remainder: has(Ask::Remainder) || has(Ask::Rest) && form == Form::Integer,
            asks_fraction: has(Ask::Part) || has(Ask::Simplest),
            scales: scales(&tokens),
            units: units(&tokens),
            open_ended: !is_chat && lower.trim_end().ends_with('='),
            is_chat,
            instructs: form != Form::Number,
            trigrams: trigrams(&tokens),
            sentences: sentences(&tokens),
            names: story.map_or_else(Vec::new, names),
            all_names: story.map_or_else(Vec::new, all_names),
            asked,
            main,
            asks_rate: clause
                .clone()
                .any(|at| tokens.kind(at) == Kind::Operator('/') || tokens.is(at, "per each every speed rate")),
            denies: clause.clone().any(|at| is_negation(tokens.slice(at))),
            asks_left: side(&tokens, clause),
            operands,
            examples,
            lower,
            asks,
        }
    }

    /// True if a phrase of the prompt asks for something.
    pub fn asks(&self, ask: Ask) -> bool {
        self.asks.has(ask)
    }

    /// True if a number of the completion is one that the question gives.
    pub fn gives(&self, number: &Number) -> bool {
        let plain = number.text.trim_start_matches('-');
        self.operands.iter().any(|operand| {
            if self.instructs && operand.contains('/') {
                // The value of `6300/75` is its answer, no given number.
                return operand == plain || operand.split('/').any(|part| part == plain);
            }
            is_same(operand, &number.text) || is_same(operand, plain)
        })
    }

    /// True if a number is the prompt's example of a format.
    pub fn is_example(&self, number: &Number) -> bool {
        self.examples.iter().any(|example| is_same(example, &number.text))
    }

    /// True if numbers are those of the question, in its order.
    pub fn is_asked_operation(&self, numbers: &[&Number]) -> bool {
        // The first operation of a story is not its last.
        if !self.instructs {
            return false;
        }
        fn plain(text: &str) -> &str {
            text.trim_start_matches('-')
        }
        // Numbers of the instruction ("in the range [1, 10)") stand before the operands.
        let operands = &self.operands[self.operands.len().saturating_sub(numbers.len())..];
        if numbers.len() == operands.len() && numbers.len() >= 2 {
            // In a repeated `a-b` the sign of the second may read as part of it.
            return numbers.iter().zip(operands).all(|(number, operand)| is_same(plain(&number.text), plain(operand)));
        }
        match (numbers, &self.operands[..]) {
            // One operand that is converted: 13/16 = 0.8125.
            ([one], [operand]) => is_same(&one.text, operand),
            // 52995/6 reads as one fraction on either side.
            ([one], [top, bottom]) => one.text == format!("{top}/{bottom}"),
            ([top, bottom], [operand]) => *operand == format!("{}/{}", top.text, bottom.text),
            _ => false,
        }
    }

    /// True if a number is written as was asked; any number answers a word problem.
    pub fn is_in_form(&self, number: &Number) -> bool {
        match self.form {
            Form::Integer | Form::Float if number.percent => false,
            Form::Integer => matches!(number.spelling, Spelling::Integer | Spelling::Words | Spelling::Spaced),
            Form::Float => number.spelling == Spelling::Decimal,
            Form::Fraction => number.spelling == Spelling::Fraction,
            Form::Scientific => number.spelling == Spelling::Scientific,
            Form::Number => true,
        }
    }

    /// True if a word names the unit that was asked for.
    pub fn asks_unit(&self, word: &str) -> bool {
        let lower = word.to_lowercase();
        let stem = |word: &str| word.trim_end_matches('s').to_owned();
        let mut short = SHORT_UNITS.split('|').filter_map(|unit| unit.split_once(' '));
        let written_out = short.find(|(short, _)| *short == lower).map_or("", |(_, stems)| stems);
        let names = |unit: &String| {
            written_out.split_whitespace().any(|stem| unit.starts_with(stem))
                || begins_wide(unit) && lower.starts_with(unit.as_str())
                || stem(unit) == stem(&lower)
                || (unit.len() >= 3 && lower == unit[..unit.floor_char_boundary(3)])
        };
        !lower.is_empty() && self.units.iter().any(names)
    }

    /// True if the beginning of a word stands in the prompt.
    pub fn knows(&self, word: &str) -> bool {
        let lower = word.to_lowercase();
        let mut signs = [("dollar", '$'), ("euro", '€'), ("pound", '£'), ("rupee", '₹')].into_iter();
        // "120 dollars" where the question has $15
        lower.len() < 3
            || signs.any(|(currency, sign)| lower.starts_with(currency) && self.lower.contains(sign))
            || stems(&lower).iter().any(|stem| self.lower.contains(stem.as_str()))
    }

    /// The words of the sentence that asks which a word is, as bits.
    pub fn asked_words(&self, word: &str) -> u64 {
        let bit = |stem: &String| self.asked.iter().position(|asked| asked == stem).map_or(0, |at| 1 << at);
        stems(word).iter().map(bit).fold(0, |words, bit| words | bit)
    }

    /// True if a word names what an instruction asks for.
    pub fn names_target(&self, word: &str) -> bool {
        let mut targets = TARGETS.split('|').filter_map(|target| target.split_once(':'));
        self.instructs && targets.any(|(phrase, nouns)| is_among(word, nouns) && self.lower.contains(phrase))
    }

    /// True if a sentence is one of the question's own.
    pub fn says(&self, sentence: &str) -> bool {
        self.sentences.contains(&sentence_hash(sentence))
    }

    /// True if three neighbouring words are the question's.
    pub fn echoes(&self, words: [&str; 3]) -> bool {
        self.trigrams.contains(&hash(words))
    }
}

fn is_same(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    match (plain_parts(a), plain_parts(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a.len() < 40 && b.len() < 40 && value::same(a, b),
    }
}

/// Whole part and decimals of a number without a sign, an exponent or a fraction bar, without zeros that say nothing; none of
/// digits after a leading zero, which are compared as text.
fn plain_parts(text: &str) -> Option<(&str, &str)> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let padded = whole.len() > 1 && whole.starts_with('0');
    let plain = is_digits(whole) && is_digits(decimals) && !whole.is_empty() && !padded;
    plain.then(|| (whole, decimals.trim_end_matches('0')))
}

/// The last question of a chat; the whole prompt where there are no turns, and false.
fn last_turn(prompt: &str) -> (&str, bool) {
    let start = TURNS.split(' ').filter_map(|turn| prompt.rfind(turn).map(|at| at + turn.len())).max();
    let text = &prompt[start.unwrap_or(0)..];
    // The template goes on behind the turn, and has words of no language.
    let ends = TURN_ENDS.split(' ').filter_map(|end| text.find(end)).min();
    let text = &text[..ends.filter(|_| start.is_some()).unwrap_or(text.len())];
    (&text[text.ceil_char_boundary(text.len().saturating_sub(LONGEST))..], start.is_some())
}

/// True if a number of the prompt stands behind words that make it an example.
fn is_example(tokens: &Tokens<'_>, at: usize) -> bool {
    (at.saturating_sub(3)..at).any(|before| {
        tokens.means(before, Meaning::EXAMPLE)
            && (before..at).all(|between| !matches!(tokens.kind(between), Kind::Stop | Kind::Number(_)))
    })
}

/// True if a completion writes a given number with points between its groups: `4.250` for 4250.
fn writes_points(completion: &str, operands: &[String]) -> bool {
    let large = operands.iter().filter(|operand| (4..=6).contains(&operand.len()) && is_digits(operand));
    let mut groups = large.map(|operand| operand.split_at(operand.len() - 3));
    groups.any(|(thousands, rest)| completion.contains(&format!("{thousands}.{rest}")))
}

/// Decimals with a comma or groups with a point among the prompt's own numbers: `3,45`, `12.450,50`.
fn has_decimal_comma(prompt: &str) -> bool {
    let behind = |separator: char| {
        let digit_before = |at: usize| prompt[..at].ends_with(|c: char| c.is_ascii_digit());
        prompt
            .match_indices(separator)
            .filter(move |&(at, _)| digit_before(at))
            .map(|(at, _)| &prompt.as_bytes()[at + 1..])
    };
    let groups = |behind: &[u8]| {
        let group = |from: usize| behind.get(from..from + 3).is_some_and(|group| group.iter().all(u8::is_ascii_digit));
        group(0) && behind.get(3) == Some(&b'.') && group(4)
    };
    let decimals = |behind: &[u8]| {
        let digits = behind.iter().take(4).take_while(|b| b.is_ascii_digit()).count();
        (digits == 1 || digits == 2) && behind.get(digits) != Some(&b',')
    };
    behind('.').any(groups) || behind(',').any(decimals)
}

/// Words with a capital letter in the last question of a story, but for its first.
fn names(prompt: &str) -> Vec<String> {
    let end = prompt.rfind(['?', '？']).unwrap_or(prompt.len());
    let start = prompt[..end].rfind(['.', '\n', ';', '!', ',']).map_or(0, |at| at + 1);
    let words = prompt[start..end].split(|c: char| !c.is_alphabetic()).filter(|word| word.len() > 1);
    words.skip(1).filter(|word| word.starts_with(char::is_uppercase)).map(str::to_owned).collect()
}

/// Beginnings of a word by which its forms are compared; pairs of characters of a script that does not separate words.
fn stems(word: &str) -> Vec<String> {
    const LETTERS: usize = 5;
    let lower = word.to_lowercase();
    if begins_wide(&lower) {
        let characters: Vec<char> = lower.chars().take(40).collect();
        return characters.windows(2).map(|two| two.iter().collect()).collect();
    }
    let lower = lower.strip_suffix("'s").unwrap_or(&lower);
    let lower = BASES.get(lower).copied().unwrap_or(lower);
    // "keeps" is "keep" again.
    let lower = lower.strip_suffix('s').filter(|stem| stem.len() > 2 && !stem.ends_with('s')).unwrap_or(lower);
    vec![lower.chars().take(LETTERS).collect()]
}

/// Irregular verbs of English in the past, which a question asks for by their base: "How many did it lose?"
const PAST: &str = "lost lose bought buy sold sell gave give given give kept keep left leave ate eat eaten eat got get made make paid pay \
    spent spend took take taken take won win drew draw saw see seen see found find ran run wrote write drove drive rode \
    ride sent send built build caught catch brought bring held hold went go came come grew grow threw throw fell fall";

static BASES: LazyLock<ByWord<&str>> = LazyLock::new(|| {
    let words: Vec<&str> = PAST.split(' ').collect();
    words.chunks_exact(2).map(|two| (two[0], two[1])).collect()
});

/// Beginnings of the words of the last sentence that asks; of the last sentence where none does.
fn asked_words(tokens: &Tokens<'_>) -> (Vec<String>, u64, Range<usize>) {
    const MOST: usize = 40;
    let ends = |at: usize| matches!(tokens.kind(at), Kind::Stop | Kind::Question | Kind::Line);
    let all = || (0..tokens.tokens.len()).rev();
    let tells = |&at: &usize| tokens.kind(at).is_number() || tokens.slice(at).len() > 2;
    let asks = all().find(|&at| tokens.kind(at) == Kind::Question);
    let end = asks.or_else(|| all().find(tells).map(|at| at + 1)).unwrap_or(0);
    let start = (0..end).rev().find(|&at| ends(at)).map_or(0, |at| at + 1);
    let common = any_of![FILLER, LINK, CONTEXT, SUBJECT, AND, OR, IF, OPERATOR, CONCLUDES];
    let tells = |&at: &usize| {
        let Kind::Word(meaning) = tokens.kind(at) else { return false };
        let word = tokens.slice(at);
        let total = meaning.has(any_of![TOTALS, RESULT, GIVES]);
        let says_nothing = meaning.has(common) && !total || meaning.has(Meaning::COMMON);
        begins_wide(word) || word.chars().count() >= 3 && !says_nothing
    };
    let asked = first_of((start..end).filter(tells).flat_map(|at| stems(tokens.slice(at))), MOST);
    let from = (start..end).find(|&at| tokens.means(at, any_of![INTERROGATIVE, COUNTED])).unwrap_or(start);
    let leaves = |&at: &usize| {
        tokens.kind(at) == Kind::Comma || tokens.means(at, Meaning::IF) || tokens.is(at, "after before when given")
    };
    let to = (from + 1..end).find(leaves).unwrap_or(end);
    let main = (from..to).flat_map(|at| stems(tokens.slice(at)));
    let bits = main.filter_map(|stem| asked.iter().position(|asked| *asked == stem)).fold(0, |bits, at| bits | 1 << at);
    (asked, bits, from..to)
}

/// True for "not", and for a verb with it: "aren't".
pub(super) fn is_negation(word: &str) -> bool {
    word.ends_with("n't") || word.ends_with("n’t") || is_among(word, "not nicht pas non niet")
}

/// True where words speak of what is left, false where they speak of what is gone.
pub(super) fn side(tokens: &Tokens<'_>, range: Range<usize>) -> Option<bool> {
    let has = |meaning: Meaning| range.clone().any(|at| tokens.means(at, meaning));
    match (has(Meaning::REMAINS), has(Meaning::GONE)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

/// True for a word in a script that does not separate words.
fn begins_wide(word: &str) -> bool {
    word.starts_with(is_wide)
}

/// The first of some words, without repetition.
fn first_of(words: impl Iterator<Item = String>, most: usize) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in words {
        if found.len() < most && !found.contains(&word) {
            found.push(word);
        }
    }
    found
}

/// Words with a capital letter in a story, wherever they stand.
fn all_names(prompt: &str) -> Vec<String> {
    const MOST: usize = 40;
    let words = prompt.split(|c: char| !c.is_alphabetic()).map(str::to_owned);
    first_of(words.filter(|word| word.len() > 2 && word.starts_with(char::is_uppercase)), MOST)
}

/// Powers of ten that a table or question states for all its numbers: "(in millions)", "in thousands".
fn scales(tokens: &Tokens<'_>) -> Vec<usize> {
    let stated = |&at: &usize| {
        let behind_in = (at.saturating_sub(3)..at).any(|before| tokens.is(before, "in"));
        let before = tokens.kind(at.wrapping_sub(1));
        (behind_in || before == Kind::Open) && !before.is_number()
    };
    (0..tokens.tokens.len()).filter(stated).filter_map(|at| scale(tokens.slice(at))).collect()
}

/// Phrases of instructions, and the quantities that they ask for, as answers name them.
const TARGETS: &str = "number of digits:digits|count the number:count times occurrences occurrence|to decimal:decimal|to binary:binary|\
     add two:sum|subtract two:difference|multiply two:product|remainder:remainder modulus|integer division:quotient|\
     divide two:quotient remainder|reverse:reverse reversed|maximal:maximum maximal larger largest greater|\
     minimal:minimum minimal smaller smallest|to float:float decimal";

/// Words behind "how many", "in" and "how much": what the answer is counted in.
fn units(tokens: &Tokens<'_>) -> Vec<String> {
    let lower = |at: usize| tokens.slice(at).to_lowercase();
    let words: Vec<usize> = (0..tokens.tokens.len()).filter(|&at| tokens.kind(at).is_word()).collect();
    let mut units = Vec::new();
    for pair in words.windows(2) {
        let (before, at) = (pair[0], pair[1]);
        // "combien de jours", "how many of these towns"
        let names = |at: &usize| !tokens.is(*at, "the these those his her their them");
        let named = if tokens.is(at, "de of d") { (at + 1..at + 4).find(names) } else { Some(at) };
        let unit = named.map_or_else(String::new, lower);
        let named = !tokens.means(at, NO_UNIT) && !is_among(&unit, "all total");
        if at == before + 1 && named && tokens.means(before, Meaning::COUNTED) && unit.len() > 1 {
            units.push(unit);
        }
        // "2.5小时行驶多少千米"
        for asks in ["多少", "几", "몇", "何"] {
            for run in [tokens.slice(before), tokens.slice(at)] {
                let unit = run.split_once(asks).and_then(|(_, unit)| unit.chars().next());
                let unit = unit.map(|c| c.to_lowercase().to_string());
                units.extend(unit.filter(|unit| !units.contains(unit)));
            }
        }
    }
    units
}

/// Short forms of units, and how the units begin, between strokes.
const SHORT_UNITS: &str = "ft feet foot|lb pound|lbs pound|oz ounce|yd yard|mi mile|l litr liter|ml millil|km kilom quilôm chilom|m metr meter mètre|cm centim zentim|mm millim|\
     kg kilog kilo quilo chilo|g gram|h hour stund heure hora ore|hr hour|hrs hour|min minut|mins minut|\
     s second sekund segund|sec second|t ton|€ euro";

/// The words in lower case, hashed.
fn hash(words: [&str; 3]) -> u64 {
    let mut hasher = Fnv::default();
    for word in words {
        word.bytes().for_each(|byte| hasher.write(&[byte.to_ascii_lowercase()]));
        hasher.write(&[0]);
    }
    hasher.finish()
}

/// The sentences of a prompt, hashed.
fn sentences(tokens: &Tokens<'_>) -> Vec<u64> {
    let text = |piece: &Piece| {
        // "Q: There are 15 goats."
        let label = tokens.means(piece.range.start, Meaning::ASKS) && tokens.kind(piece.range.start + 1) == Kind::Colon;
        let start = (piece.range.start + if label { 2 } else { 0 }).min(piece.range.end - 1);
        let (first, last) = (tokens.tokens[start], tokens.tokens[piece.range.end - 1]);
        sentence_hash(&tokens.text[first.start..last.end])
    };
    pieces(tokens).iter().map(text).collect()
}

/// The hash of a sentence in lower case, whatever spaces it has.
fn sentence_hash(sentence: &str) -> u64 {
    let mut hasher = Fnv::default();
    for word in sentence.split_whitespace() {
        hasher.write(word.to_lowercase().as_bytes());
        hasher.write_u8(0);
    }
    hasher.finish()
}

fn trigrams(tokens: &Tokens<'_>) -> Vec<u64> {
    let words: Vec<&str> =
        (0..tokens.tokens.len()).filter(|&at| tokens.is_any_word(at)).map(|at| tokens.slice(at)).collect();
    words.windows(3).map(|three| hash([three[0], three[1], three[2]])).collect()
}
