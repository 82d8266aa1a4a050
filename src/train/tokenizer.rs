//! Tokenizers of number models: digits in groups of one, two or three, everything else by merges learnt from the questions'
//! own words (Number Cookbook, A.4.2).
use std::collections::HashMap;

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
        let (word_tokens, merges) = words(texts, settings.words)?;
        let mut vocabulary: Vec<String> = SPECIAL.map(str::to_owned).to_vec();
        for width in 1..=settings.digits {
            vocabulary.extend((0..10usize.pow(width as u32)).map(|value| format!("{value:0width$}")));
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
        Ok(NumberTokenizer { settings, json, digits: digits.collect(), inner })
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

    /// A text's ids without special tokens, as they are in use.
    ///
    /// # Errors
    /// [`TrainError::Setting`] with what the tokenizer says.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TrainError> {
        let encoded = self.inner.encode_fast(text, false).map_err(|error| wrong(error.to_string()))?;
        Ok(encoded.get_ids().to_vec())
    }

    /// A text's ids as they are in training: with random groups, `random` draws their lengths.
    ///
    /// # Errors
    /// As [`NumberTokenizer::encode`].
    pub fn encode_for_training(&self, text: &str, random: &mut DigitSource) -> Result<Vec<u32>, TrainError> {
        if self.settings.groups != DigitGroups::Random {
            return self.encode(text);
        }
        let mut ids = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let other = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            let (words, after) = rest.split_at(other);
            if !words.is_empty() {
                ids.extend(self.encode(words)?);
            }
            let run = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
            let (mut digits, next) = after.split_at(run);
            while !digits.is_empty() {
                let most = self.settings.digits.min(digits.len()) as u64;
                let (group, left) = digits.split_at(1 + random.below(most) as usize);
                ids.push(self.digits[group]);
                digits = left;
            }
            rest = next;
        }
        Ok(ids)
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
    if width == 1 {
        return r"\d".to_owned();
    }
    match settings.groups {
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
        "normalizer": null,
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
        "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
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
