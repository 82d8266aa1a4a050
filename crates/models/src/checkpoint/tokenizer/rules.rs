//! Rules for `tokenizer.json`, beyond those of the library that reads it: nothing random, nothing that ends the program, and a bound on
//! how much longer a text may become.
use super::fault::TokenizerFault;
use serde_json::Value;
use tokenizers::{ModelWrapper, Tokenizer};

/// Largest factor by which normalising may lengthen a text: encoding takes some 20 times the memory of the longest form of a text.
/// ALBERT's normaliser, the most of the published ones, has about 2000 by this count.
const MAX_GROWTH: u64 = 4096;

/// Largest factor by which pre-tokenising may, after it.
const MAX_PRE_TOKENIZER_GROWTH: u64 = 64;

/// Checks a tokenizer before its first text. The error names the key.
pub(in crate::checkpoint) fn check(tokenizer: &Tokenizer) -> Result<(), TokenizerFault> {
    // Sampling of Unigram is not read from files.
    if let ModelWrapper::BPE(bpe) = tokenizer.get_model()
        && let Some(dropout) = bpe.dropout.filter(|dropout| *dropout != 0.0)
    {
        return Err(TokenizerFault::Dropout(dropout));
    }
    let bounded = |step: Value, part: &'static str, limit: u64| match grows(&step, part)? {
        growth if growth > limit => Err(TokenizerFault::Growth { part, growth, limit }),
        _ => Ok(()),
    };
    bounded(json(tokenizer.get_normalizer())?, "normalizer", MAX_GROWTH)?;
    bounded(json(tokenizer.get_pre_tokenizer())?, "pre_tokenizer", MAX_PRE_TOKENIZER_GROWTH)?;
    grows(&json(tokenizer.get_decoder())?, "decoder")?;
    template_tokens(&json(tokenizer.get_post_processor())?, "post_processor")
}

fn json(part: Option<&impl serde::Serialize>) -> Result<Value, TokenizerFault> {
    serde_json::to_value(part).map_err(|error| TokenizerFault::Said(error.to_string()))
}

/// Returns an upper bound of the factor by which a step lengthens a text.
fn grows(step: &Value, key: &str) -> Result<u64, TokenizerFault> {
    // What other programs name as marks of digits is one known step here, whose factor is 2, not 2 to the number of its rules.
    if *step == super::super::digit_places::normalizer() {
        return Ok(2);
    }
    let text = |name: &str| step.get(name).and_then(Value::as_str);
    let length = |name: &str| text(name).map_or(0, |text| text.len() as u64);
    Ok(match text("type").unwrap_or_default() {
        "Sequence" => {
            let mut factor = 1u64;
            let lists =
                ["normalizers", "pretokenizers", "decoders"].map(|list| Some((list, step.get(list)?.as_array()?)));
            for (list, steps) in lists.into_iter().flatten() {
                for (index, inner) in steps.iter().enumerate() {
                    factor = factor.saturating_mul(grows(inner, &format!("{key}.{list}[{index}]"))?);
                }
            }
            factor
        }
        "Replace" => {
            let pattern = step.get("pattern").and_then(|pattern| pattern.get("String")).and_then(Value::as_str);
            match pattern {
                Some("") => return Err(TokenizerFault::EmptyPattern(key.to_owned())),
                Some(pattern) => length("content").div_ceil(pattern.len() as u64).max(1),
                // A match may be one byte.
                None => length("content").max(1),
            }
        }
        "Prepend" => 1 + length("prepend"),
        "Precompiled" => longest_replacement(text("precompiled_charsmap").unwrap_or_default(), key)?.max(1),
        // Of one code point, in bytes of UTF-8.
        "NFKC" | "NFKD" => 11,
        "NFC" | "NFD" => 4,
        "Lowercase" => 3,
        "BertNormalizer" => 12,
        "ByteLevel" => 2,
        "Metaspace" => 4,
        "FixedLength" if step.get("length").and_then(Value::as_u64) == Some(0) => {
            return Err(TokenizerFault::NoLength(key.to_owned()));
        }
        _ => 1,
    })
}

/// Returns the length of the longest text that a map of SentencePiece puts in the place of another: base64 of the size of an index, the
/// index, and texts that end with a zero byte.
fn longest_replacement(base64: &str, key: &str) -> Result<u64, TokenizerFault> {
    let damaged = || TokenizerFault::DamagedMap(key.to_owned());
    let map = decoded(base64).ok_or_else(damaged)?;
    let (size, rest) = map.split_first_chunk::<4>().ok_or_else(damaged)?;
    let texts = rest.get(u32::from_le_bytes(*size) as usize..).ok_or_else(damaged)?;
    Ok(texts.split(|byte| *byte == 0).map(|text| text.len() as u64).max().unwrap_or(0))
}

/// Decodes base64 with padding.
fn decoded(base64: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(base64.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for byte in base64.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}

/// Checks that every special token that a template of the post-processor adds is one that it defines.
fn template_tokens(step: &Value, key: &str) -> Result<(), TokenizerFault> {
    let list = |name: &str| step.get(name).and_then(Value::as_array).into_iter().flatten().enumerate();
    for (index, inner) in list("processors") {
        template_tokens(inner, &format!("{key}.processors[{index}]"))?;
    }
    for form in ["single", "pair"] {
        for (index, piece) in list(form) {
            let token = piece.get("SpecialToken").and_then(|token| token.get("id")).and_then(Value::as_str);
            let Some(token) = token else { continue };
            if step.get("special_tokens").is_none_or(|defined| defined.get(token).is_none()) {
                let place = format!("{key}.{form}[{index}]");
                return Err(TokenizerFault::UndefinedToken { place, token: token.to_owned() });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn growth_multiplies_over_a_sequence() {
        let replace = |pattern: &str, content: &str| json!({"type": "Replace", "pattern": {"String": pattern}, "content": content});
        let steps =
            json!({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, replace(" ", "▁")]});
        assert_eq!(grows(&steps, "normalizer"), Ok(12));
        let doubling = json!({"type": "Sequence", "normalizers": vec![replace("a", "aa"); 80]});
        assert_eq!(grows(&doubling, "normalizer"), Ok(u64::MAX));
        let empty = json!({"type": "Sequence", "normalizers": [replace("a", "b"), replace("", "x")]});
        let error = grows(&empty, "normalizer").unwrap_err().to_string();
        assert!(error.contains("`normalizer.normalizers[1].pattern` is empty"), "{error}");
        assert_eq!(grows(&crate::checkpoint::digit_places::normalizer(), "normalizer"), Ok(2));
        assert_eq!(grows(&Value::Null, "normalizer"), Ok(1));
    }

    #[test]
    fn a_map_of_characters_is_measured() {
        // printf '\x04\0\0\0IIIIabc\0de\0' | base64
        assert_eq!(longest_replacement("BAAAAElJSUlhYmMAZGUA", "k"), Ok(3));
        for damaged in ["", "AAA", "!!!!", "/////w=="] {
            assert_eq!(longest_replacement(damaged, "k"), Err(TokenizerFault::DamagedMap("k".to_owned())), "{damaged}");
        }
        assert_eq!(decoded("aGVsbG8="), Some(b"hello".to_vec()));
    }

    #[test]
    fn tokens_of_a_template_have_to_be_defined() {
        let step = json!({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}], "special_tokens": {}});
        let steps = json!({"type": "Sequence", "processors": [step]});
        let error = template_tokens(&steps, "post_processor").unwrap_err().to_string();
        assert!(error.contains("post_processor.processors[0].single[0]") && error.contains("<s>"), "{error}");
        assert_eq!(template_tokens(&Value::Null, "post_processor"), Ok(()));
    }
}
