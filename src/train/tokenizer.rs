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
use crate::suite::nupa::DigitSource;

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

/// Places that have tokens of their own.
const PLACES: usize = 12;
/// The mark of place p is the byte `MARKS + p`, a control character that no text has; the byte-level alphabet shows it as
/// this character and the following ones.
const MARKS: u8 = 0x0E;
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

/// A tokenizer for training, and the file that everybody else reads.
pub struct NumberTokenizer {
    settings: TokenizerSettings,
    /// `tokenizer.json`
    json: Value,
    inner: tokenizers::Tokenizer,
    digits: HashMap<String, u32>,
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
        let json = file(settings, &vocabulary, &merges);
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
        Ok(NumberTokenizer { settings, json, digits, inner, places, words: Mutex::default() })
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
        while !rest.is_empty() {
            let other = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            let (words, after) = rest.split_at(other);
            if !words.is_empty() {
                self.encode_words(words, &mut ids)?;
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
        Ok(ids)
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

/// The tokens of a byte-level BPE in the order of their ids, and its merges in the order in which they apply.
type Words = (Vec<String>, Vec<(String, String)>);

/// Tokens and merges of the texts between numbers, most frequent first.
fn words<'a>(texts: impl IntoIterator<Item = &'a str>, most: usize) -> Result<Words, TrainError> {
    let pieces: Vec<String> = texts
        .into_iter()
        .flat_map(|text| text.split(|c: char| c.is_ascii_digit()))
        .filter(|piece| !piece.is_empty())
        .map(str::to_owned)
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

/// Writes the mark of its place before each digit, the highest place first: the digits behind it then still stand together. One
/// rule a place and digit, because the library loses count of positions where a match is empty.
fn normalizer(settings: &TokenizerSettings) -> Value {
    if settings.groups != DigitGroups::Places {
        return Value::Null;
    }
    let marks = format!(r"\x{MARKS:02x}-\x{:02x}", usize::from(MARKS) + PLACES - 1);
    let mark = |(place, digit): (usize, usize)| {
        json!({
            "type": "Replace",
            "pattern": {"Regex": format!(r"{digit}(?=[0-9]{{{place}}}(?![0-9{marks}]))")},
            "content": format!("{}{digit}", char::from(MARKS + place as u8)),
        })
    };
    let all = (0..PLACES).rev().flat_map(|place| (0..10).map(move |digit| (place, digit)));
    json!({"type": "Sequence", "normalizers": all.map(mark).collect::<Vec<_>>()})
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

fn file(settings: &TokenizerSettings, vocabulary: &[String], merges: &[(String, String)]) -> Value {
    let ids: serde_json::Map<String, Value> =
        vocabulary.iter().enumerate().map(|(id, token)| (token.clone(), json!(id))).collect();
    let added = SPECIAL.iter().enumerate().map(|(id, content)| {
        json!({
            "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true,
        })
    });
    let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added.collect::<Vec<_>>(),
        "normalizer": normalizer(settings),
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
    fn other_widths_are_refused() {
        let settings = TokenizerSettings { digits: 4, groups: DigitGroups::default(), words: 8 };
        assert!(NumberTokenizer::learn(&settings, TEXTS).is_err());
    }
}
