//! Byte-level BPE of the words between numbers.
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::tokenizer::{Model, Trainer};

use super::hints::without_hints;
use super::number::invalid;
use crate::TrainError;

/// Tokens of a byte-level BPE in the order of their ids, and its merges in order of priority.
type Words = (Vec<String>, Vec<(String, String)>);

/// Learns at most `max` tokens, and their merges, from the texts between numbers, most frequent first.
///
/// # Errors
/// [`TrainError::Setting`] with the message of the BPE trainer.
pub(super) fn learn_words<'a>(texts: impl IntoIterator<Item = &'a str>, max: usize) -> Result<Words, TrainError> {
    let pieces: Vec<String> = texts
        .into_iter()
        .map(without_hints)
        .flat_map(|text| text.split(|c: char| c.is_ascii_digit()).map(str::to_owned).collect::<Vec<_>>())
        .filter(|piece| !piece.is_empty())
        .collect();
    let mut alphabet: Vec<char> = ByteLevel::alphabet().into_iter().collect();
    alphabet.sort_unstable();
    let trainer = BpeTrainer::builder()
        .show_progress(false)
        .min_frequency(2)
        .vocab_size(alphabet.len() + max)
        .initial_alphabet(alphabet.into_iter().collect())
        .build();
    let mut trainer = TrainerWrapper::BpeTrainer(trainer);
    let byte_level = |text: &str| -> tokenizers::Result<Vec<String>> {
        let mut one = tokenizers::PreTokenizedString::from(text);
        tokenizers::PreTokenizer::pre_tokenize(&ByteLevel::new(false, false, false), &mut one)?;
        let splits = one.get_splits(tokenizers::OffsetReferential::Normalized, tokenizers::OffsetType::Byte);
        Ok(splits.into_iter().map(|(piece, ..)| piece.to_owned()).collect())
    };
    let failed = |error: tokenizers::Error| invalid(error.to_string());
    trainer.feed(pieces.iter().map(String::as_str), byte_level).map_err(failed)?;
    let mut model = tokenizers::models::ModelWrapper::BPE(BPE::default());
    trainer.train(&mut model).map_err(failed)?;
    let saved = serde_json::to_value(&model).map_err(|error| invalid(error.to_string()))?;
    let mut tokens: Vec<(u32, String)> = model.get_vocab().into_iter().map(|(token, id)| (id, token)).collect();
    tokens.sort_unstable();
    let merges: Vec<(String, String)> =
        serde_json::from_value(saved["merges"].clone()).map_err(|error| invalid(error.to_string()))?;
    Ok((tokens.into_iter().map(|(_, token)| token).collect(), merges))
}
