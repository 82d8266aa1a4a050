//! Pre-tokenizers of byte-level vocabularies in GGUF files (`tokenizer.ggml.pre`).
//!
//! Names and grouping are llama.cpp's; the expressions are those of the original tokenizers, which llama.cpp rewrites for
//! its own matcher.
use tokenizers::PreTokenizerWrapper;
use tokenizers::SplitDelimiterBehavior;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};

const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN35: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// DeepSeek-V3: up to three digits, Chinese and Japanese, the rest.
const DEEPSEEK3: [&str; 3] = [
    r"\p{N}{1,3}",
    r"[一-龥぀-ゟ゠-ヿ]+",
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##,
];
/// Groups of three digits from the right, as in the smaller Cohere models.
const DIGITS_FROM_THE_RIGHT: &str = r"\d{1,3}(?=(?:\d{3})*\b)";
/// llama.cpp's default for files without a scheme: four splits in sequence.
const UNNAMED: [&str; 4] = [
    r"[\p{P}\$\+<=>\^~\|]+",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",
    r"\p{N}+",
    r"[0-9][0-9][0-9]",
];

const SUPPORTED: &str = "default, gpt-2, phi-2, olmo, mpt, exaone4, granite-docling, smollm, starcoder, refact, command-r, codeshell, \
     exaone, llama-bpe, llama3, falcon3, pixtral, dbrx, smaug-bpe, chatglm-bpe, glm4, qwen2, deepseek-r1-qwen, stablelm2, hunyuan, megrez, \
     qwen35, tekken, gpt-4o, llama4, deepseek-v3, hunyuan-dense and tiny_aya";

/// A pre-tokenizer and the settings that come with it.
pub(super) struct Scheme {
    pub(super) pre_tokenizer: PreTokenizerWrapper,
    /// A word of the vocabulary becomes one token without merging.
    pub(super) whole_words_first: bool,
    /// Texts begin with BOS by default.
    pub(super) adds_bos: bool,
}

/// Returns the scheme of this name.
pub(super) fn scheme(name: &str) -> Result<Scheme, String> {
    let plain = |pre_tokenizer| Scheme { pre_tokenizer, whole_words_first: false, adds_bos: false };
    Ok(match name {
        "default" => plain(splits(&UNNAMED)?),
        "gpt-2" | "phi-2" | "olmo" | "mpt" | "exaone4" | "granite-docling" => {
            plain(ByteLevel::new(false, false, true).into())
        }
        "smollm" | "starcoder" | "refact" | "command-r" | "codeshell" | "exaone" => {
            let digits = Digits::new(true).into();
            plain(Sequence::new(vec![digits, ByteLevel::new(false, false, true).into()]).into())
        }
        "llama-bpe" | "llama3" | "llama-v3" | "falcon3" | "pixtral" => {
            Scheme { pre_tokenizer: splits(&[LLAMA3])?, whole_words_first: true, adds_bos: true }
        }
        "dbrx" | "smaug-bpe" | "chatglm-bpe" => plain(splits(&[LLAMA3])?),
        "glm4" => Scheme { whole_words_first: true, ..plain(splits(&[LLAMA3])?) },
        "qwen2" | "deepseek-r1-qwen" | "stablelm2" | "hunyuan" | "megrez" => plain(splits(&[QWEN2])?),
        "qwen35" => plain(splits(&[QWEN35])?),
        "tekken" => Scheme { pre_tokenizer: splits(&[TEKKEN])?, whole_words_first: true, adds_bos: true },
        "gpt-4o" | "llama4" => plain(splits(&[GPT4O])?),
        "deepseek-v3" | "hunyuan-dense" => plain(splits(&DEEPSEEK3)?),
        "tiny_aya" => plain(splits(&[DIGITS_FROM_THE_RIGHT, GPT4O])?),
        other => return Err(format!("tokenizer.ggml.pre is {other}; supported values are {SUPPORTED}")),
    })
}

fn splits(expressions: &[&str]) -> Result<PreTokenizerWrapper, String> {
    let mut steps: Vec<PreTokenizerWrapper> = Vec::new();
    for expression in expressions {
        let pattern = SplitPattern::Regex(expression.to_string());
        let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false).map_err(|e| e.to_string())?;
        steps.push(split.into());
    }
    steps.push(ByteLevel::new(false, false, false).into());
    Ok(Sequence::new(steps).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer};

    fn split(name: &str, text: &str) -> Vec<String> {
        let mut pieces = PreTokenizedString::from(text);
        scheme(name).unwrap().pre_tokenizer.pre_tokenize(&mut pieces).unwrap();
        let all = pieces.get_splits(OffsetReferential::Original, OffsetType::Byte);
        all.into_iter().map(|(piece, ..)| piece.replace('Ġ', " ").replace('Ċ', "\n")).collect()
    }

    #[test]
    fn numbers_are_split_as_each_family_does() {
        assert_eq!(split("llama-bpe", "is 12345.6"), ["is", " ", "123", "45", ".", "6"]);
        assert_eq!(split("qwen2", "is 123"), ["is", " ", "1", "2", "3"]);
        assert_eq!(split("smollm", "is 12 "), ["is", " ", "1", "2", " "]);
        assert_eq!(split("gpt-2", "is 12345"), ["is", " 12345"]);
        assert_eq!(split("default", "is 12345"), ["is", " ", "123", "45"]);
    }

    #[test]
    fn white_space_is_split_as_the_originals_do() {
        assert_eq!(split("llama-bpe", "a  b\n\n c"), ["a", " ", " b", "\n\n", " c"]);
        assert_eq!(split("gpt-2", "a  b\n\nc"), ["a", " ", " b", "\n", "\n", "c"]);
    }

    #[test]
    fn recent_families_split_as_their_tokenizers_do() {
        // Marks stay with their letters, digits are alone.
        assert_eq!(split("qwen35", "e\u{301}t 12").len(), 4);
        assert_eq!(split("qwen2", "e\u{301}t 12").len(), 5);
        for glm in ["glm4", "chatglm-bpe", "dbrx"] {
            assert_eq!(split(glm, "I'M 12345"), ["I", "'M", " ", "123", "45"]);
            assert!(!scheme(glm).unwrap().adds_bos);
        }
        assert_eq!(split("exaone4", "is 12345"), ["is", " 12345"]);
        assert_eq!(split("llama4", "isn't HelloWorld 12345"), ["isn't", " Hello", "World", " ", "123", "45"]);
        // Punctuation takes the letters after it.
        assert_eq!(split("deepseek-v3", "x.y (1234)"), ["x", ".y", " (", "123", "4", ")"]);
        assert_eq!(split("hunyuan-dense", "a\n\n b"), ["a", "\n\n", " b"]);
        assert_eq!(split("tiny_aya", "is 12345"), ["is", " ", "12", "345"]);
        assert!(scheme("glm4").unwrap().whole_words_first && !scheme("chatglm-bpe").unwrap().whole_words_first);
    }

    #[test]
    fn an_unknown_scheme_is_refused_by_name() {
        let error = scheme("mystery").err().unwrap();
        assert!(error.contains("mystery") && error.contains("llama-bpe"), "{error}");
    }
}
