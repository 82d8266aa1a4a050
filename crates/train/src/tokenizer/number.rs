//! The tokenizer of number models.
use std::collections::HashMap;
use std::sync::Mutex;

use serde_json::Value;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

use super::file::{SPECIAL, tokenizer_json, vocabulary_mark};
use super::hints::{HINT_LETTERS, check_hints, find_hint, hint_length};
use super::settings::{DigitGroups, TokenizerSettings};
use super::words::learn_words;
use crate::TrainError;
use earnest_models::checkpoint::digit_places::PLACES;
use earnest_tasks::suite::nupa::DigitSource;

/// Tokenizer for training, with the `tokenizer.json` that inference reads.
pub struct NumberTokenizer {
    settings: TokenizerSettings,
    /// `tokenizer.json`
    json: Value,
    inner: tokenizers::Tokenizer,
    /// Ids of groups of digits.
    digits: HashMap<String, u32>,
    /// Ids of index hints.
    hints: HashMap<String, u32>,
    /// Ids of digits by place and value; empty unless places have tokens.
    places: Vec<[u32; 10]>,
    /// Cached ids of texts between numbers, of which there are few.
    words: Mutex<HashMap<String, Vec<u32>>>,
}

impl NumberTokenizer {
    /// Learns a tokenizer from `texts`; digits are never part of words.
    ///
    /// # Errors
    /// [`TrainError::Setting`] unless groups have 1 to 3 digits.
    pub fn learn<'a>(
        settings: &TokenizerSettings,
        texts: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, TrainError> {
        Self::learn_hinted(settings, None, texts)
    }

    /// Learns a tokenizer with one token for every index hint of an alphabet of `hints` positions: three for each, since integer
    /// parts, decimals and exponents have separate hints. Hints are not learnt as words or digits.
    ///
    /// # Errors
    /// [`TrainError::Setting`] unless groups have 1 to 3 digits and are compatible with hints.
    pub fn learn_hinted<'a>(
        settings: &TokenizerSettings,
        hints: Option<usize>,
        texts: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, TrainError> {
        check_hints(settings, hints)?;
        if !(1..=3).contains(&settings.digits) {
            return Err(invalid(format!("a token cannot hold {} digits; choose 1, 2 or 3", settings.digits)));
        }
        if settings.groups == DigitGroups::Places && settings.digits != 1 {
            return Err(invalid("`places` needs tokens of one digit".into()));
        }
        let (word_tokens, merges) = learn_words(texts, settings.words)?;
        let mut vocabulary: Vec<String> = SPECIAL.map(str::to_owned).to_vec();
        for width in 1..=settings.digits {
            vocabulary.extend((0..10usize.pow(width as u32)).map(|value| format!("{value:0width$}")));
        }
        if settings.groups == DigitGroups::Places {
            let marked = |place| (0..10).map(move |digit| format!("{}{digit}", vocabulary_mark(place)));
            vocabulary.extend((0..PLACES).flat_map(marked));
        }
        let mut bytes: Vec<String> = ByteLevel::alphabet().into_iter().map(String::from).collect();
        bytes.sort_unstable();
        vocabulary.extend(bytes.into_iter().filter(|byte| !byte.bytes().all(|b| b.is_ascii_digit())));
        let known: std::collections::HashSet<String> = vocabulary.iter().cloned().collect();
        vocabulary.extend(word_tokens.into_iter().filter(|token| !known.contains(token)));
        // After all others, so that they do not change the ids of a tokenizer without hints.
        let first_hint = vocabulary.len();
        for letter in HINT_LETTERS {
            vocabulary.extend((0..hints.unwrap_or(0)).map(|place| format!("<{letter}{place}>")));
        }
        let json = tokenizer_json(settings, &vocabulary, first_hint, &merges);
        Self::from_json(settings.clone(), json)
    }

    /// Creates a tokenizer from its file, to resume a training.
    ///
    /// # Errors
    /// [`TrainError::Setting`] if the file was not written by [`NumberTokenizer`].
    pub fn from_json(settings: TokenizerSettings, json: Value) -> Result<Self, TrainError> {
        let inner: tokenizers::Tokenizer =
            serde_json::from_value(json.clone()).map_err(|error| invalid(format!("tokenizer.json: {error}")))?;
        let digits = inner.get_vocab(false).into_iter().filter(|(token, _)| token.bytes().all(|b| b.is_ascii_digit()));
        let digits = digits.collect();
        let vocabulary = inner.get_vocab(true).into_iter();
        let hints = vocabulary.filter(|(token, _)| hint_length(token) == Some(token.len())).collect();
        let mut places = Vec::new();
        if settings.groups == DigitGroups::Places {
            for index in 0..PLACES {
                let mut ids = [0; 10];
                for (digit, id) in ids.iter_mut().enumerate() {
                    let token = format!("{}{digit}", vocabulary_mark(index));
                    *id = inner
                        .token_to_id(&token)
                        .ok_or_else(|| invalid(format!("tokenizer.json has no token {token:?}")))?;
                }
                places.push(ids);
            }
        }
        Ok(NumberTokenizer { settings, json, digits, hints, inner, places, words: Mutex::default() })
    }

    /// Content of `tokenizer.json`.
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// Size of the vocabulary.
    pub fn len(&self) -> usize {
        self.inner.get_vocab_size(true)
    }

    /// Always false: the vocabulary holds at least the 256 bytes.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Tokens that hold a digit with its place, as (id, digit, place).
    pub(crate) fn placed_digits(&self) -> impl Iterator<Item = (u32, usize, usize)> {
        self.places
            .iter()
            .enumerate()
            .flat_map(|(index, ids)| ids.iter().enumerate().map(move |(digit, id)| (*id, digit, index)))
    }

    /// Encodes a text as in inference, without special tokens.
    ///
    /// # Errors
    /// [`TrainError::Setting`] with the tokenizer's message.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TrainError> {
        let encoded = self.inner.encode_fast(text, false).map_err(|error| invalid(error.to_string()))?;
        Ok(encoded.get_ids().to_vec())
    }

    /// Encodes a text as in training: with random groups, `random` draws their lengths; otherwise the result is that of
    /// [`NumberTokenizer::encode`], computed without regular expressions.
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
        while let Some((at, length)) = find_hint(rest).filter(|_| !self.hints.is_empty()) {
            let (before, hint) = rest.split_at(at);
            let (hint, after) = hint.split_at(length);
            // A hint beyond the alphabet has no token: it is encoded as plain text.
            let Some(&id) = self.hints.get(hint) else { return self.encode(text) };
            self.encode_unhinted(before, random, &mut ids)?;
            ids.push(id);
            rest = after;
        }
        self.encode_unhinted(rest, random, &mut ids)?;
        Ok(ids)
    }

    /// Encodes a text without hints, appending to `ids`.
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
                let max = widest.min(digits.len()) as u64;
                let width = if single { 1 } else { 1 + random.below(max) as usize };
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

    /// Encodes a text without digits, appending to `ids`.
    fn encode_words(&self, words: &str, ids: &mut Vec<u32>) -> Result<(), TrainError> {
        let mut known = self.words.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if !known.contains_key(words) {
            known.insert(words.to_owned(), self.encode(words)?);
        }
        ids.extend_from_slice(&known[words]);
        Ok(())
    }
}

/// Error in the tokenizer's settings or file.
pub(super) fn invalid(problem: String) -> TrainError {
    TrainError::Setting { setting: "tokenizer", problem }
}

#[cfg(test)]
mod tests {
    use super::super::file::VOCABULARY_MARKS;
    use super::super::hints::{MAX_HINTS, hints_before_tokens, without_hints};
    use super::*;

    const TEXTS: [&str; 3] = ["Add two numbers: 12 + 34 =", "Add two numbers: 1.5 + 2.25 =", "Count: 7 in 77 ="];

    fn tokenizer(digits: usize, groups: DigitGroups) -> NumberTokenizer {
        NumberTokenizer::learn(&TokenizerSettings { digits, groups, words: 64 }, TEXTS).unwrap()
    }

    fn groups(tokenizer: &NumberTokenizer, text: &str) -> Vec<String> {
        tokenizer.encode(text).unwrap().into_iter().map(|id| tokenizer.inner.id_to_token(id).unwrap()).collect()
    }

    #[test]
    fn digits_are_grouped_as_configured() {
        assert_eq!(groups(&tokenizer(1, DigitGroups::RightAligned), "1234"), ["1", "2", "3", "4"]);
        assert_eq!(groups(&tokenizer(3, DigitGroups::LeftToRight), "1234567"), ["123", "456", "7"]);
        let aligned = tokenizer(3, DigitGroups::RightAligned);
        assert_eq!(groups(&aligned, "1234567"), ["1", "234", "567"]);
        assert_eq!(groups(&aligned, "12.34567"), ["12", ".", "345", "67"]);
        assert_eq!(groups(&aligned, "1234.0071"), ["1", "234", ".", "007", "1"]);
        assert_eq!(groups(&tokenizer(2, DigitGroups::RightAligned), "12345/678"), ["1", "23", "45", "/", "6", "78"]);
    }

    #[test]
    fn places_are_tokens_and_texts_round_trip() {
        let tokenizer = tokenizer(1, DigitGroups::Places);
        let placed = |text: &str| -> Vec<String> {
            let place = |token: String| match token.chars().next() {
                Some(mark) if (VOCABULARY_MARKS..VOCABULARY_MARKS + PLACES as u32).contains(&u32::from(mark)) => {
                    format!("{}@{}", &token[mark.len_utf8()..], u32::from(mark) - VOCABULARY_MARKS)
                }
                _ => token,
            };
            groups(&tokenizer, text).into_iter().map(place).collect()
        };
        assert_eq!(placed("307"), ["3@2", "0@1", "7@0"]);
        assert_eq!(placed("12/5"), ["1@1", "2@0", "/", "5@0"]);
        let long = "98765432101234";
        let expected: Vec<String> = (0..14)
            .map(|i| if i < 2 { long[i..=i].to_owned() } else { format!("{}@{}", &long[i..=i], 13 - i) })
            .collect();
        assert_eq!(placed(long), expected);
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
    fn words_are_few_tokens_and_texts_round_trip() {
        let tokenizer = tokenizer(1, DigitGroups::RightAligned);
        assert!(groups(&tokenizer, "Add two numbers: ").len() <= 2, "{:?}", groups(&tokenizer, "Add two numbers: "));
        for text in ["Add two numbers: 12 + 34 = 46", "other words 0.5, Ünïcode\n\t≈ 3", "", "<|end|> is no end"] {
            let ids = tokenizer.encode(text).unwrap();
            assert_eq!(tokenizer.inner.decode(&ids, false).unwrap(), text);
        }
        assert_eq!(tokenizer.json(), self::tokenizer(1, DigitGroups::RightAligned).json());
    }

    #[test]
    fn random_groups_decode_to_the_same_text() {
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
    fn hints_are_single_tokens_before_tokens() {
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
            assert_eq!(tokenizer.inner.decode(&ids, true).unwrap(), text, "hints are not special tokens");
            // Words are what they are without hints, and no token is another than before.
            let plain =
                NumberTokenizer::learn(&settings, texts.map(without_hints).each_ref().map(String::as_str)).unwrap();
            assert_eq!(tokenizer.len(), plain.len() + 90);
            let unhinted_ids = plain.encode("Add two numbers: 12 + 4 =").unwrap();
            assert_eq!(tokenizer.encode("Add two numbers: 12 + 4 =").unwrap(), unhinted_ids);
            let again = NumberTokenizer::from_json(settings.clone(), tokenizer.json().clone()).unwrap();
            assert_eq!(again.encode_for_training(text, &mut random).unwrap(), ids);
        }
    }

    #[test]
    fn incompatible_hints_are_refused() {
        for (digits, groups, hints) in [
            (1, DigitGroups::Places, 30),
            (2, DigitGroups::Random, 30),
            (1, DigitGroups::RightAligned, 0),
            (1, DigitGroups::RightAligned, MAX_HINTS + 1),
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
