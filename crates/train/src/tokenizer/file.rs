//! `tokenizer.json` of a number tokenizer.
use serde_json::{Value, json};

use super::settings::{DigitGroups, TokenizerSettings};
use earnest_models::checkpoint::digit_places::{self, MARKS, PLACES};

/// Longest run of decimals that is grouped from the left; no suite has longer ones.
const MAX_DECIMALS: usize = 120;

/// Special tokens: padding, beginning of sequence, end of sequence.
pub(crate) const SPECIAL: [&str; 3] = ["<|pad|>", "<|begin|>", "<|end|>"];
/// Ids of [`SPECIAL`].
pub(crate) const PAD: u32 = 0;
pub(crate) const BEGIN: u32 = 1;
pub(crate) const END: u32 = 2;

/// First character for [`MARKS`] in the byte-level alphabet; the others follow.
pub(super) const VOCABULARY_MARKS: u32 = 0x010E;

/// Mark of a place in the byte-level vocabulary.
pub(super) fn vocabulary_mark(index: usize) -> char {
    char::from_u32(VOCABULARY_MARKS + index as u32).expect("a letter of Latin Extended-A")
}

/// Regular expression that isolates groups of digits.
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
            // Look-behinds of fixed length, because regular expression engines differ in the others.
            let lookbehinds = (0..MAX_DECIMALS / width).map(|groups| match groups {
                0 => r"(?<=\.)".to_owned(),
                groups => format!(r"(?<=\.\d{{{}}})", groups * width),
            });
            let decimals: Vec<String> = lookbehinds.collect();
            format!(r"(?:{})\d{{1,{width}}}|\d{{1,{width}}}(?=(?:\d{{{width}}})*(?!\d))", decimals.join("|"))
        }
    }
}

/// Decoder, which removes the place marks.
fn decoder(settings: &TokenizerSettings) -> Value {
    let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
    if settings.groups != DigitGroups::Places {
        return bytes;
    }
    let unmark = |place| json!({"type": "Replace", "pattern": {"String": vocabulary_mark(place)}, "content": ""});
    json!({"type": "Sequence", "decoders": (0..PLACES).map(unmark).chain([bytes]).collect::<Vec<_>>()})
}

/// Builds `tokenizer.json`; tokens from id `hints` on are index hints.
pub(super) fn tokenizer_json(
    settings: &TokenizerSettings,
    vocabulary: &[String],
    hints: usize,
    merges: &[(String, String)],
) -> Value {
    let ids: serde_json::Map<String, Value> =
        vocabulary.iter().enumerate().map(|(id, token)| (token.clone(), json!(id))).collect();
    // Added tokens are extracted before pre-tokenization, so the digits of a hint stay in one token.
    let special = SPECIAL.iter().enumerate().map(|(id, content)| (id, *content, true));
    let hint_tokens = vocabulary.iter().enumerate().skip(hints).map(|(id, content)| (id, content.as_str(), false));
    let added = special.chain(hint_tokens).map(|(id, content, special)| {
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
            // Groups of digits are tokens that no merge produces.
            "ignore_merges": true,
            "vocab": ids,
            "merges": merges.iter().map(|(left, right)| json!([left, right])).collect::<Vec<_>>(),
        },
    })
}
