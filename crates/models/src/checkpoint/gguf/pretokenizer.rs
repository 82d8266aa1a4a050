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

/// Splitting of a text by the pre-tokenizer of a scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::checkpoint) enum Splitting {
    /// GPT-2's own expression.
    Gpt2,
    /// Every digit alone, then GPT-2's expression.
    DigitsThenGpt2,
    /// These expressions, one after another.
    Expressions(&'static [&'static str]),
}

/// Digits of a number that a scheme leaves together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Numbers {
    DigitByDigit,
    UpToThree,
    UpToThreeFromTheRight,
    Whole,
}

impl Numbers {
    fn words(self) -> &'static str {
        match self {
            Numbers::DigitByDigit => "digit by digit",
            Numbers::UpToThree => "in groups of up to three digits",
            Numbers::UpToThreeFromTheRight => "in groups of three digits from the right",
            Numbers::Whole => "not at all",
        }
    }
}

/// A scheme and the names that it has in files.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::checkpoint) struct NamedScheme {
    names: &'static [&'static str],
    splitting: Splitting,
    numbers: Numbers,
    whole_words_first: bool,
    adds_bos: bool,
}

impl NamedScheme {
    const fn plain(names: &'static [&'static str], splitting: Splitting, numbers: Numbers) -> Self {
        NamedScheme { names, splitting, numbers, whole_words_first: false, adds_bos: false }
    }

    /// A scheme whose vocabulary has words that no merge makes.
    const fn whole_words(self) -> Self {
        NamedScheme { whole_words_first: true, ..self }
    }

    const fn with_bos(self) -> Self {
        NamedScheme { adds_bos: true, ..self }
    }
}

use Numbers::{DigitByDigit, UpToThree, UpToThreeFromTheRight, Whole};
use Splitting::{DigitsThenGpt2, Expressions, Gpt2};

static SCHEMES: [NamedScheme; 12] = [
    NamedScheme::plain(&[FALLBACK], Expressions(&UNNAMED), UpToThree),
    NamedScheme::plain(&["gpt-2", "phi-2", "olmo", "mpt", "exaone4", "granite-docling"], Gpt2, Whole),
    NamedScheme::plain(
        &["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone"],
        DigitsThenGpt2,
        DigitByDigit,
    ),
    NamedScheme::plain(&["llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"], Expressions(&[LLAMA3]), UpToThree)
        .whole_words()
        .with_bos(),
    NamedScheme::plain(&["dbrx", "smaug-bpe", "chatglm-bpe"], Expressions(&[LLAMA3]), UpToThree),
    NamedScheme::plain(&["glm4"], Expressions(&[LLAMA3]), UpToThree).whole_words(),
    NamedScheme::plain(
        &["qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan", "megrez"],
        Expressions(&[QWEN2]),
        DigitByDigit,
    ),
    NamedScheme::plain(&["qwen35"], Expressions(&[QWEN35]), DigitByDigit),
    NamedScheme::plain(&["tekken"], Expressions(&[TEKKEN]), DigitByDigit).whole_words().with_bos(),
    NamedScheme::plain(&["gpt-4o", "llama4"], Expressions(&[GPT4O]), UpToThree),
    NamedScheme::plain(&["deepseek-v3", "hunyuan-dense"], Expressions(&DEEPSEEK3), UpToThree),
    NamedScheme::plain(&["tiny_aya"], Expressions(&[DIGITS_FROM_THE_RIGHT, GPT4O]), UpToThreeFromTheRight),
];

/// The name under which llama.cpp splits what names no scheme; no model was trained with it.
const FALLBACK: &str = "default";

/// Returns the scheme of this name.
pub(in crate::checkpoint) fn named(name: &str) -> Option<&'static NamedScheme> {
    SCHEMES.iter().find(|scheme| scheme.names.contains(&name))
}

/// Returns the schemes that models were trained with.
pub(in crate::checkpoint) fn candidates() -> impl Iterator<Item = &'static NamedScheme> {
    SCHEMES.iter().filter(|scheme| scheme.names != [FALLBACK])
}

/// Returns every known name.
pub(in crate::checkpoint) fn names() -> impl Iterator<Item = &'static str> {
    SCHEMES.iter().flat_map(|scheme| scheme.names).copied()
}

/// Returns every known name, for messages.
pub(in crate::checkpoint) fn known_names() -> String {
    names().collect::<Vec<_>>().join(", ")
}

/// Returns these schemes' names, by what becomes of a number.
pub(in crate::checkpoint) fn described(schemes: &[&NamedScheme]) -> String {
    let mut kinds: Vec<Numbers> = schemes.iter().map(|scheme| scheme.numbers).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let part = |kind: &Numbers| {
        let names = schemes.iter().filter(|scheme| scheme.numbers == *kind).flat_map(|scheme| scheme.names).copied();
        format!("{} ({})", names.collect::<Vec<_>>().join(", "), kind.words())
    };
    let parts: Vec<String> = kinds.iter().map(part).collect();
    parts.join("; ")
}

/// A pre-tokenizer and the settings that come with it.
pub(in crate::checkpoint) struct Scheme {
    pub(in crate::checkpoint) pre_tokenizer: PreTokenizerWrapper,
    /// A word of the vocabulary becomes one token without merging.
    pub(in crate::checkpoint) whole_words_first: bool,
    /// Texts begin with BOS by default.
    pub(in crate::checkpoint) adds_bos: bool,
}

impl NamedScheme {
    /// The first of the scheme's names.
    pub(in crate::checkpoint) fn name(&self) -> &'static str {
        self.names[0]
    }

    /// Returns its splitting of a text.
    pub(in crate::checkpoint) fn splitting(&self) -> Splitting {
        self.splitting
    }

    /// True if it keeps no two digits together.
    pub(in crate::checkpoint) fn splits_digits(&self) -> bool {
        self.numbers == DigitByDigit
    }

    pub(in crate::checkpoint) fn build(&self) -> tokenizers::Result<Scheme> {
        let (whole_words_first, adds_bos) = (self.whole_words_first, self.adds_bos);
        Ok(Scheme { pre_tokenizer: self.splitting.build()?, whole_words_first, adds_bos })
    }
}

impl Splitting {
    fn build(self) -> tokenizers::Result<PreTokenizerWrapper> {
        let gpt2 = || PreTokenizerWrapper::from(ByteLevel::new(false, false, true));
        Ok(match self {
            Gpt2 => gpt2(),
            DigitsThenGpt2 => Sequence::new(vec![Digits::new(true).into(), gpt2()]).into(),
            Expressions(expressions) => splits(expressions)?,
        })
    }
}

fn splits(expressions: &[&str]) -> tokenizers::Result<PreTokenizerWrapper> {
    let mut steps: Vec<PreTokenizerWrapper> = Vec::new();
    for expression in expressions {
        let pattern = SplitPattern::Regex(expression.to_string());
        steps.push(Split::new(pattern, SplitDelimiterBehavior::Isolated, false)?.into());
    }
    steps.push(ByteLevel::new(false, false, false).into());
    Ok(Sequence::new(steps).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer};

    fn scheme(name: &str) -> Scheme {
        named(name).unwrap().build().unwrap()
    }

    fn split(name: &str, text: &str) -> Vec<String> {
        let mut pieces = PreTokenizedString::from(text);
        scheme(name).pre_tokenizer.pre_tokenize(&mut pieces).unwrap();
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
            assert!(!scheme(glm).adds_bos);
        }
        assert_eq!(split("exaone4", "is 12345"), ["is", " 12345"]);
        assert_eq!(split("llama4", "isn't HelloWorld 12345"), ["isn't", " Hello", "World", " ", "123", "45"]);
        // Punctuation takes the letters after it.
        assert_eq!(split("deepseek-v3", "x.y (1234)"), ["x", ".y", " (", "123", "4", ")"]);
        assert_eq!(split("hunyuan-dense", "a\n\n b"), ["a", "\n\n", " b"]);
        assert_eq!(split("tiny_aya", "is 12345"), ["is", " ", "12", "345"]);
        assert!(scheme("glm4").whole_words_first && !scheme("chatglm-bpe").whole_words_first);
    }

    #[test]
    fn names_are_known_once_and_an_unknown_one_is_none() {
        assert!(named("mystery").is_none());
        let names: Vec<&str> = SCHEMES.iter().flat_map(|scheme| scheme.names).copied().collect();
        assert!(names.iter().all(|name| names.iter().filter(|other| *other == name).count() == 1));
        assert!(known_names().contains("llama-bpe, llama3"));
    }

    #[test]
    fn the_words_on_numbers_are_those_of_the_expressions() {
        let pieces = |scheme: &NamedScheme| split(scheme.names[0], "12345");
        for scheme in &SCHEMES {
            let expected = match scheme.numbers {
                DigitByDigit => vec!["1", "2", "3", "4", "5"],
                UpToThree => vec!["123", "45"],
                UpToThreeFromTheRight => vec!["12", "345"],
                Whole => vec!["12345"],
            };
            assert_eq!(pieces(scheme), expected, "{:?}", scheme.names);
        }
    }
}
