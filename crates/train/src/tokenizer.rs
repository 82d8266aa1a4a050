//! Tokenizers of number models: digits in groups of one, two or three, everything else by merges learnt from the questions'
//! own words (Number Cookbook, A.4.2).
use std::collections::HashMap;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::tokenizer::{Model, Trainer};

use super::TrainError;
use earnest_models::checkpoint::digit_places::{self, MARKS, PLACES};
use earnest_tasks::suite::nupa::DigitSource;

/// Longest run of digits after a point that is cut from the left; longer ones do not occur in any suite.
const LONGEST_DECIMALS: usize = 120;

/// Special tokens: padding, beginning, end.
pub(super) const SPECIAL: [&str; 3] = ["<|pad|>", "<|begin|>", "<|end|>"];
/// Ids of [`SPECIAL`].
pub(super) const PAD: u32 = 0;
pub(super) const BEGIN: u32 = 1;
pub(super) const END: u32 = 2;

/// How runs of digits are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DigitGroups {
    /// Greedy from the left.
    LeftToRight,
    /// Integers from the right, so that groups are places of a value; decimals from the left (the paper's "aligned").
    #[default]
    RightAligned,
    /// In training, groups of random length up to the longest; in use, right-aligned ("random tokenizer").
    Random,
    /// Single digits, each a token with its place in its number: the 3 of 35 and the 3 of 350 are two tokens. Not in the paper;
    /// what it calls index hints, written by the tokenizer instead of the prompt. Digits of places from 10^12 on have none.
    Places,
}

/// The byte-level alphabet shows [`MARKS`] as this character and the following ones.
const SHOWN_MARKS: u32 = 0x010E;

/// A mark as the vocabulary shows it.
fn shown_mark(place: usize) -> char {
    char::from_u32(SHOWN_MARKS + place as u32).expect("a letter of Latin Extended-A")
}

/// What a tokenizer is made of.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenizerSettings {
    /// Digits a token holds at most: 1, 2 or 3. Every string of that many digits is a token, leading zeros included.
    pub digits: usize,
    /// How longer runs are cut.
    #[serde(default)]
    pub groups: DigitGroups,
    /// Most tokens that hold words.
    #[serde(default = "default_words")]
    pub words: usize,
}

fn default_words() -> usize {
    1024
}

/// Parts of a number that hints tell apart: integer parts, decimals, exponents.
const HINT_LETTERS: [char; 3] = ['i', 'd', 'e'];
/// Largest alphabet of index hints, each of which is three tokens.
pub(super) const MOST_HINTS: usize = 1000;

/// The length of the index hint that a text begins with, as [`earnest_tasks::suite::nupa::NumberFormat`] writes it: `<i27>`.
pub(super) fn hint_length(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('<')?.strip_prefix(HINT_LETTERS)?;
    let digits = inside.find(|c: char| !c.is_ascii_digit())?;
    (digits > 0 && inside[digits..].starts_with('>')).then_some(digits + 3)
}

/// The place of the first index hint in a text, and its length.
fn find_hint(text: &str) -> Option<(usize, usize)> {
    text.match_indices('<').find_map(|(place, _)| Some((place, hint_length(&text[place..])?)))
}

/// A tokenizer for training, and the file that everybody else reads.
pub struct NumberTokenizer {
    settings: TokenizerSettings,
    /// `tokenizer.json`
    json: Value,
    inner: tokenizers::Tokenizer,
    digits: HashMap<String, u32>,
    /// Ids of index hints.
    hints: HashMap<String, u32>,
    /// Ids of digits by place and value, if places have tokens.
    places: Vec<[u32; 10]>,
    /// Ids of texts between numbers that were met before; there are few of them.
    words: Mutex<HashMap<String, Vec<u32>>>,
}

impl NumberTokenizer {
    /// Learns the words of `texts`; digits are no part of words.
    ///
    /// # Errors
    /// [`TrainError::Setting`] for groups other than of 1 to 3 digits.
    pub fn learn<'a>(
        settings: &TokenizerSettings,
        texts: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, TrainError> {
        Self::learn_hinted(settings, None, texts)
    }

    /// Likewise, with a token of its own for every index hint of an alphabet (three for each place: integer parts, decimals and
    /// exponents have their own). Hints are no words, and the digits in them are no digits.
    ///
    /// # Errors
    /// [`TrainError::Setting`] for groups other than of 1 to 3 digits, and for groups that hints can not stand before.
    pub fn learn_hinted<'a>(
        settings: &TokenizerSettings,
        hints: Option<usize>,
        texts: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, TrainError> {
        check_hints(settings, hints)?;
        if !(1..=3).contains(&settings.digits) {
            return Err(wrong(format!("a token holds 1, 2 or 3 digits, not {}", settings.digits)));
        }
        if settings.groups == DigitGroups::Places && settings.digits != 1 {
            return Err(wrong("tokens with a place hold one digit".into()));
        }
        let (word_tokens, merges) = words(texts, settings.words)?;
        let mut vocabulary: Vec<String> = SPECIAL.map(str::to_owned).to_vec();
        for width in 1..=settings.digits {
            vocabulary.extend((0..10usize.pow(width as u32)).map(|value| format!("{value:0width$}")));
        }
        if settings.groups == DigitGroups::Places {
            let marked = |place| (0..10).map(move |digit| format!("{}{digit}", shown_mark(place)));
            vocabulary.extend((0..PLACES).flat_map(marked));
        }
        let mut bytes: Vec<String> = ByteLevel::alphabet().into_iter().map(String::from).collect();
        bytes.sort_unstable();
        vocabulary.extend(bytes.into_iter().filter(|byte| !byte.bytes().all(|b| b.is_ascii_digit())));
        let known: std::collections::HashSet<String> = vocabulary.iter().cloned().collect();
        vocabulary.extend(word_tokens.into_iter().filter(|token| !known.contains(token)));
        // Behind all others, so that a tokenizer without hints is what it always was.
        let begin = vocabulary.len();
        for letter in HINT_LETTERS {
            vocabulary.extend((0..hints.unwrap_or(0)).map(|place| format!("<{letter}{place}>")));
        }
        let json = file(settings, &vocabulary, begin, &merges);
        Self::from_json(settings.clone(), json)
    }

    /// A tokenizer from its file, for a training that is continued.
    ///
    /// # Errors
    /// [`TrainError::Setting`] if the file is not one of these.
    pub fn from_json(settings: TokenizerSettings, json: Value) -> Result<Self, TrainError> {
        let inner: tokenizers::Tokenizer =
            serde_json::from_value(json.clone()).map_err(|error| wrong(format!("tokenizer.json: {error}")))?;
        let digits = inner.get_vocab(false).into_iter().filter(|(token, _)| token.bytes().all(|b| b.is_ascii_digit()));
        let digits = digits.collect();
        let vocabulary = inner.get_vocab(true).into_iter();
        let hints = vocabulary.filter(|(token, _)| hint_length(token) == Some(token.len())).collect();
        let mut places = Vec::new();
        if settings.groups == DigitGroups::Places {
            for place in 0..PLACES {
                let mut ids = [0; 10];
                for (digit, id) in ids.iter_mut().enumerate() {
                    let token = format!("{}{digit}", shown_mark(place));
                    *id = inner.token_to_id(&token).ok_or_else(|| wrong(format!("there is no token {token:?}")))?;
                }
                places.push(ids);
            }
        }
        Ok(NumberTokenizer { settings, json, digits, hints, inner, places, words: Mutex::default() })
    }

    /// The content of `tokenizer.json`.
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.inner.get_vocab_size(true)
    }

    /// False: the bytes alone are 256.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Tokens that are a digit and a place, as (id, digit, place).
    pub(super) fn placed_digits(&self) -> impl Iterator<Item = (u32, usize, usize)> {
        let one = |(place, ids): (usize, &[u32; 10])| {
            let ids = *ids;
            (0..10).map(move |digit| (ids[digit], digit, place))
        };
        self.places.iter().enumerate().flat_map(one)
    }

    /// A text's ids without special tokens, as they are in use.
    ///
    /// # Errors
    /// [`TrainError::Setting`] with what the tokenizer says.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TrainError> {
        let encoded = self.inner.encode_fast(text, false).map_err(|error| wrong(error.to_string()))?;
        Ok(encoded.get_ids().to_vec())
    }

    /// A text's ids as they are in training: with random groups, `random` draws their lengths; otherwise those of
    /// [`NumberTokenizer::encode`], without its regular expressions.
    ///
    /// # Errors
    /// As [`NumberTokenizer::encode`].
    pub fn encode_for_training(&self, text: &str, random: &mut DigitSource) -> Result<Vec<u32>, TrainError> {
        let widest = self.settings.digits;
        let single = widest == 1;
        if !single && self.settings.groups != DigitGroups::Random {
            return self.encode(text);
        }
        let mut ids = Vec::new();
        let mut rest = text;
        while let Some((place, length)) = find_hint(rest).filter(|_| !self.hints.is_empty()) {
            let (before, hint) = rest.split_at(place);
            let (hint, after) = hint.split_at(length);
            // One beyond the alphabet is no token, and spelled as it is in use.
            let Some(&id) = self.hints.get(hint) else { return self.encode(text) };
            self.encode_unhinted(before, random, &mut ids)?;
            ids.push(id);
            rest = after;
        }
        self.encode_unhinted(rest, random, &mut ids)?;
        Ok(ids)
    }

    /// Appends the ids of a text without hints.
    fn encode_unhinted(&self, text: &str, random: &mut DigitSource, ids: &mut Vec<u32>) -> Result<(), TrainError> {
        let widest = self.settings.digits;
        let single = widest == 1;
        let mut rest = text;
        while !rest.is_empty() {
            let other = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            let (words, after) = rest.split_at(other);
            if !words.is_empty() {
                self.encode_words(words, ids)?;
            }
            let run = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
            let (mut digits, next) = after.split_at(run);
            while !digits.is_empty() {
                let most = widest.min(digits.len()) as u64;
                let width = if single { 1 } else { 1 + random.below(most) as usize };
                let (group, left) = digits.split_at(width);
                ids.push(match self.places.get(left.len()) {
                    Some(place) => place[usize::from(group.as_bytes()[0] - b'0')],
                    None => self.digits[group],
                });
                digits = left;
            }
            rest = next;
        }
        Ok(())
    }

    /// Appends the ids of a text without digits.
    fn encode_words(&self, words: &str, ids: &mut Vec<u32>) -> Result<(), TrainError> {
        let mut known = self.words.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if !known.contains_key(words) {
            known.insert(words.to_owned(), self.encode(words)?);
        }
        ids.extend_from_slice(&known[words]);
        Ok(())
    }
}

fn wrong(problem: String) -> TrainError {
    TrainError::Setting { setting: "tokenizer", problem }
}

/// Refuses alphabets of hints and groups of digits that do not go together.
///
/// # Errors
/// [`TrainError::Setting`].
pub(super) fn check_hints(settings: &TokenizerSettings, hints: Option<usize>) -> Result<(), TrainError> {
    let refused = |problem: String| Err(TrainError::Setting { setting: "index_hints", problem });
    match (hints, settings.groups) {
        (None, _) => Ok(()),
        (Some(hints), _) if !(1..=MOST_HINTS).contains(&hints) => {
            refused(format!("an alphabet has 1 to {MOST_HINTS} hints, not {hints}"))
        }
        (Some(_), DigitGroups::Places) => {
            refused("the tokens of `places` know their place already; leave hints out, or choose other groups".into())
        }
        (Some(_), DigitGroups::Random) if settings.digits > 1 => refused(
            "a hint stands before every token, and random groups have no fixed tokens; choose other groups".into(),
        ),
        (Some(_), _) => Ok(()),
    }
}

/// A text without its index hints.
fn unhinted(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((place, length)) = find_hint(rest) {
        out.push_str(&rest[..place]);
        rest = &rest[place + length..];
    }
    out + rest
}

/// Leaves of hints before every digit those before every token that the digits are cut into (Number Cookbook, section 4.2: hints
/// stand before tokens), counted in tokens from the same start.
pub(super) fn hints_before_tokens(settings: &TokenizerSettings, text: &str) -> String {
    if settings.digits == 1 {
        return text.to_owned();
    }
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while !rest.is_empty() {
        let Some(begin) = hint_length(rest) else {
            let next = find_hint(rest).map_or(rest.len(), |(place, _)| place);
            out.push_str(&rest[..next]);
            rest = &rest[next..];
            continue;
        };
        let letter = rest[1..].chars().next().unwrap_or('i');
        let (mut indices, mut digits): (Vec<usize>, String) = Default::default();
        let mut next = Some(begin);
        while let Some(length) = next {
            indices.push(rest[2..length - 1].parse().unwrap_or(0));
            rest = &rest[length..];
            let run = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            digits.push_str(&rest[..run]);
            rest = &rest[run..];
            next = hint_length(rest).filter(|_| rest[1..].starts_with(letter));
        }
        let start = indices.iter().copied().min().unwrap_or(0);
        let rising = indices.first() < indices.last();
        let from_left = settings.groups == DigitGroups::LeftToRight || letter == 'd';
        let first = match digits.len() % settings.digits {
            rest if rest > 0 && !from_left => rest,
            _ => settings.digits.min(digits.len()),
        };
        let mut groups = vec![&digits[..first]];
        let mut left = &digits[first..];
        while !left.is_empty() {
            let (group, after) = left.split_at(settings.digits.min(left.len()));
            groups.push(group);
            left = after;
        }
        for (place, group) in groups.iter().enumerate() {
            let index = start + if rising { place } else { groups.len() - 1 - place };
            out.push_str(&format!("<{letter}{index}>{group}"));
        }
    }
    out
}

/// The tokens of a byte-level BPE in the order of their ids, and its merges in the order in which they apply.
type Words = (Vec<String>, Vec<(String, String)>);

/// Tokens and merges of the texts between numbers, most frequent first.
fn words<'a>(texts: impl IntoIterator<Item = &'a str>, most: usize) -> Result<Words, TrainError> {
    let pieces: Vec<String> = texts
        .into_iter()
        .map(unhinted)
        .flat_map(|text| text.split(|c: char| c.is_ascii_digit()).map(str::to_owned).collect::<Vec<_>>())
        .filter(|piece| !piece.is_empty())
        .collect();
    let mut alphabet: Vec<char> = ByteLevel::alphabet().into_iter().collect();
    alphabet.sort_unstable();
    let trainer = BpeTrainer::builder()
        .show_progress(false)
        .min_frequency(2)
        .vocab_size(alphabet.len() + most)
        .initial_alphabet(alphabet.into_iter().collect())
        .build();
    let mut trainer = TrainerWrapper::BpeTrainer(trainer);
    let byte_level = |text: &str| -> tokenizers::Result<Vec<String>> {
        let mut one = tokenizers::PreTokenizedString::from(text);
        tokenizers::PreTokenizer::pre_tokenize(&ByteLevel::new(false, false, false), &mut one)?;
        let splits = one.get_splits(tokenizers::OffsetReferential::Normalized, tokenizers::OffsetType::Byte);
        Ok(splits.into_iter().map(|(piece, ..)| piece.to_owned()).collect())
    };
    let failed = |error: tokenizers::Error| wrong(error.to_string());
    trainer.feed(pieces.iter().map(String::as_str), byte_level).map_err(failed)?;
    let mut model = tokenizers::models::ModelWrapper::BPE(BPE::default());
    trainer.train(&mut model).map_err(failed)?;
    let saved = serde_json::to_value(&model).map_err(|error| wrong(error.to_string()))?;
    let mut tokens: Vec<(u32, String)> = model.get_vocab().into_iter().map(|(token, id)| (id, token)).collect();
    tokens.sort_unstable();
    let merges: Vec<(String, String)> =
        serde_json::from_value(saved["merges"].clone()).map_err(|error| wrong(error.to_string()))?;
    Ok((tokens.into_iter().map(|(_, token)| token).collect(), merges))
}

/// The pattern that isolates groups of digits.
fn pattern(settings: &TokenizerSettings) -> String {
    let width = settings.digits;
    if settings.groups == DigitGroups::Places {
        return format!(r"[\x{{{MARKS:02x}}}-\x{{{:02x}}}]?\d", usize::from(MARKS) + PLACES - 1);
    }
    if width == 1 {
        return r"\d".to_owned();
    }
    match settings.groups {
        DigitGroups::Places => unreachable!("handled above"),
        DigitGroups::LeftToRight => format!(r"\d{{1,{width}}}"),
        DigitGroups::RightAligned | DigitGroups::Random => {
            // Look-behinds of one length each, because engines of regular expressions differ in the others.
            let places = (0..LONGEST_DECIMALS / width).map(|groups| match groups {
                0 => r"(?<=\.)".to_owned(),
                groups => format!(r"(?<=\.\d{{{}}})", groups * width),
            });
            let decimals: Vec<String> = places.collect();
            format!(r"(?:{})\d{{1,{width}}}|\d{{1,{width}}}(?=(?:\d{{{width}}})*(?!\d))", decimals.join("|"))
        }
    }
}

/// Takes the marks away again.
fn decoder(settings: &TokenizerSettings) -> Value {
    let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
    if settings.groups != DigitGroups::Places {
        return bytes;
    }
    let unmark = |place| json!({"type": "Replace", "pattern": {"String": shown_mark(place)}, "content": ""});
    json!({"type": "Sequence", "decoders": (0..PLACES).map(unmark).chain([bytes]).collect::<Vec<_>>()})
}

/// `tokenizer.json`; the tokens from `hints` on are index hints.
fn file(settings: &TokenizerSettings, vocabulary: &[String], hints: usize, merges: &[(String, String)]) -> Value {
    let ids: serde_json::Map<String, Value> =
        vocabulary.iter().enumerate().map(|(id, token)| (token.clone(), json!(id))).collect();
    // Added tokens are taken out of a text before it is cut, so the digits of a hint are never seen.
    let specials = SPECIAL.iter().enumerate().map(|(id, content)| (id, *content, true));
    let hinted = vocabulary.iter().enumerate().skip(hints).map(|(id, content)| (id, content.as_str(), false));
    let added = specials.chain(hinted).map(|(id, content, special)| {
        json!({
            "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": special,
        })
    });
    let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added.collect::<Vec<_>>(),
        "normalizer": match settings.groups {
            DigitGroups::Places => digit_places::normalizer(),
            DigitGroups::LeftToRight | DigitGroups::RightAligned | DigitGroups::Random => Value::Null,
        },
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": pattern(settings)}, "behavior": "Isolated", "invert": false},
                byte_level,
            ],
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": SPECIAL[1], "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [
                {"SpecialToken": {"id": SPECIAL[1], "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
                {"Sequence": {"id": "B", "type_id": 0}},
            ],
            "special_tokens": {SPECIAL[1]: {"id": SPECIAL[1], "ids": [BEGIN], "tokens": [SPECIAL[1]]}},
        },
        "decoder": decoder(settings),
        "model": {
            "type": "BPE",
            "dropout": null,
            "unk_token": null,
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": false,
            "byte_fallback": false,
            // Groups of digits are tokens without merges that lead to them.
            "ignore_merges": true,
            "vocab": ids,
            "merges": merges.iter().map(|(left, right)| json!([left, right])).collect::<Vec<_>>(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 3] = ["Add two numbers: 12 + 34 =", "Add two numbers: 1.5 + 2.25 =", "Count: 7 in 77 ="];

    fn tokenizer(digits: usize, groups: DigitGroups) -> NumberTokenizer {
        NumberTokenizer::learn(&TokenizerSettings { digits, groups, words: 64 }, TEXTS).unwrap()
    }

    fn groups(tokenizer: &NumberTokenizer, text: &str) -> Vec<String> {
        tokenizer.encode(text).unwrap().into_iter().map(|id| tokenizer.inner.id_to_token(id).unwrap()).collect()
    }

    #[test]
    fn digits_are_cut_as_asked() {
        assert_eq!(groups(&tokenizer(1, DigitGroups::RightAligned), "1234"), ["1", "2", "3", "4"]);
        assert_eq!(groups(&tokenizer(3, DigitGroups::LeftToRight), "1234567"), ["123", "456", "7"]);
        let aligned = tokenizer(3, DigitGroups::RightAligned);
        assert_eq!(groups(&aligned, "1234567"), ["1", "234", "567"]);
        assert_eq!(groups(&aligned, "12.34567"), ["12", ".", "345", "67"]);
        assert_eq!(groups(&aligned, "1234.0071"), ["1", "234", ".", "007", "1"]);
        assert_eq!(groups(&tokenizer(2, DigitGroups::RightAligned), "12345/678"), ["1", "23", "45", "/", "6", "78"]);
    }

    #[test]
    fn places_are_tokens_and_texts_come_back() {
        let tokenizer = tokenizer(1, DigitGroups::Places);
        let shown = |text: &str| -> Vec<String> {
            let place = |token: String| match token.chars().next() {
                Some(mark) if (SHOWN_MARKS..SHOWN_MARKS + PLACES as u32).contains(&u32::from(mark)) => {
                    format!("{}@{}", &token[mark.len_utf8()..], u32::from(mark) - SHOWN_MARKS)
                }
                _ => token,
            };
            groups(&tokenizer, text).into_iter().map(place).collect()
        };
        assert_eq!(shown("307"), ["3@2", "0@1", "7@0"]);
        assert_eq!(shown("12/5"), ["1@1", "2@0", "/", "5@0"]);
        let long = "98765432101234";
        let expected: Vec<String> = (0..14)
            .map(|i| if i < 2 { long[i..=i].to_owned() } else { format!("{}@{}", &long[i..=i], 13 - i) })
            .collect();
        assert_eq!(shown(long), expected);
        let mut random = DigitSource::named("test");
        for text in ["Add two numbers: 12 + 34 = 46", "12+345=?", long, "0.25, 7\n\t8 9", "Ünïcode 1e5"] {
            let ids = tokenizer.encode(text).unwrap();
            assert_eq!(tokenizer.inner.decode(&ids, false).unwrap(), text);
            assert_eq!(tokenizer.encode_for_training(text, &mut random).unwrap(), ids, "{text}");
        }
        assert!(
            NumberTokenizer::learn(&TokenizerSettings { digits: 2, groups: DigitGroups::Places, words: 8 }, TEXTS)
                .is_err()
        );
    }

    #[test]
    fn words_are_few_tokens_and_every_text_comes_back() {
        let tokenizer = tokenizer(1, DigitGroups::RightAligned);
        assert!(groups(&tokenizer, "Add two numbers: ").len() <= 2, "{:?}", groups(&tokenizer, "Add two numbers: "));
        for text in ["Add two numbers: 12 + 34 = 46", "other words 0.5, Ünïcode\n\t≈ 3", "", "<|end|> is no end"] {
            let ids = tokenizer.encode(text).unwrap();
            assert_eq!(tokenizer.inner.decode(&ids, false).unwrap(), text);
        }
        assert_eq!(tokenizer.json(), self::tokenizer(1, DigitGroups::RightAligned).json());
    }

    #[test]
    fn random_groups_spell_the_same_text() {
        let tokenizer = tokenizer(3, DigitGroups::Random);
        let mut random = DigitSource::named("test");
        let text = "Add two numbers: 123456789 + 1.23456 =";
        let mut seen = std::collections::HashSet::new();
        for _ in 0..50 {
            let ids = tokenizer.encode_for_training(text, &mut random).unwrap();
            assert_eq!(tokenizer.inner.decode(&ids, false).unwrap(), text);
            seen.insert(ids);
        }
        assert!(seen.len() > 40);
    }

    #[test]
    fn a_hint_is_one_token_and_stands_before_tokens() {
        let texts = ["Add two numbers: <i3>1<i2>2 + <i2>4 =", "Add two numbers: <i9>1.<d9>5 + <i9>2.<d9>2<d10>5 ="];
        let long = "Add two numbers: <i27>6<i26>5<i25>4<i24>3.<d24>1<d25>2<d26>3<d27>4 + <i24>2 =";
        for (digits, text) in [
            (1, long),
            (3, "Add two numbers: <i25>6<i24>543.<d24>123<d25>4 + <i24>2 ="),
            (2, "Add two numbers: <i25>65<i24>43.<d24>12<d25>34 + <i24>2 ="),
        ] {
            let settings = TokenizerSettings { digits, groups: DigitGroups::RightAligned, words: 64 };
            let tokenizer = NumberTokenizer::learn_hinted(&settings, Some(30), texts).unwrap();
            assert_eq!(hints_before_tokens(&settings, long), text);
            let pieces = groups(&tokenizer, text);
            let expected: Vec<&str> = match digits {
                1 => "<i27> 6 <i26> 5 <i25> 4 <i24> 3 . <d24> 1 <d25> 2 <d26> 3 <d27> 4",
                2 => "<i25> 65 <i24> 43 . <d24> 12 <d25> 34",
                _ => "<i25> 6 <i24> 543 . <d24> 123 <d25> 4",
            }
            .split(' ')
            .collect();
            let from = pieces.iter().position(|piece| piece.starts_with("<i")).unwrap();
            assert_eq!(pieces[from..][..expected.len()], expected);
            assert_eq!(pieces[pieces.len() - 3..][..2], ["<i24>", "2"], "{pieces:?}");
            let ids = tokenizer.encode(text).unwrap();
            let mut random = DigitSource::named("test");
            assert_eq!(tokenizer.encode_for_training(text, &mut random).unwrap(), ids);
            assert_eq!(tokenizer.inner.decode(&ids, true).unwrap(), text, "hints are no special tokens");
            // Words are what they are without hints, and no token is another than before.
            let plain = NumberTokenizer::learn(&settings, texts.map(unhinted).each_ref().map(String::as_str)).unwrap();
            assert_eq!(tokenizer.len(), plain.len() + 90);
            let unhinted_ids = plain.encode("Add two numbers: 12 + 4 =").unwrap();
            assert_eq!(tokenizer.encode("Add two numbers: 12 + 4 =").unwrap(), unhinted_ids);
            let again = NumberTokenizer::from_json(settings.clone(), tokenizer.json().clone()).unwrap();
            assert_eq!(again.encode_for_training(text, &mut random).unwrap(), ids);
        }
    }

    #[test]
    fn hints_are_counted_in_tokens_of_their_part() {
        let of = |groups, text: &str| hints_before_tokens(&TokenizerSettings { digits: 3, groups, words: 8 }, text);
        let reversed = "<i5>1<i6>2<i7>3<i8>4/<i5>9";
        assert_eq!(of(DigitGroups::RightAligned, reversed), "<i5>1<i6>234/<i5>9");
        assert_eq!(of(DigitGroups::LeftToRight, "<i8>1<i7>2<i6>3<i5>4"), "<i6>123<i5>4");
        assert_eq!(of(DigitGroups::RightAligned, "12 < 345, <x> <i>"), "12 < 345, <x> <i>");
    }

    #[test]
    fn hints_that_make_no_sense_are_refused() {
        for (digits, groups, hints) in [
            (1, DigitGroups::Places, 30),
            (2, DigitGroups::Random, 30),
            (1, DigitGroups::RightAligned, 0),
            (1, DigitGroups::RightAligned, MOST_HINTS + 1),
        ] {
            let settings = TokenizerSettings { digits, groups, words: 8 };
            assert!(NumberTokenizer::learn_hinted(&settings, Some(hints), TEXTS).is_err(), "{settings:?} {hints}");
        }
    }

    #[test]
    fn other_widths_are_refused() {
        let settings = TokenizerSettings { digits: 4, groups: DigitGroups::default(), words: 8 };
        assert!(NumberTokenizer::learn(&settings, TEXTS).is_err());
    }
}
