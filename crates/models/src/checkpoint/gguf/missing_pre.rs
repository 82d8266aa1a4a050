//! Pre-tokenizers that a vocabulary of a GGUF file may have, for files that do not name one that is known here.
//!
//! Merges stay within the pieces of a text, so a token that a scheme splits was not made with that scheme. What is left is seldom one
//! scheme; the tokens of a well-known family decide then, and otherwise the user has to.
use std::sync::LazyLock;

use regex::Regex;
use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer};

use super::pretokenizer::{self, NamedScheme, Splitting};

/// A vocabulary has tokens that its own scheme would split, taken over from elsewhere: up to one in this many.
const STRAY: usize = 1000;
/// A vocabulary of this many tokens has some with two digits, unless digits are split from each other.
const LARGE: usize = 10_000;

/// A family whose files are older than `tokenizer.ggml.pre`, known by tokens that nothing else has at these ids.
struct Family {
    name: &'static str,
    architecture: &'static str,
    scheme: &'static str,
    tokens: &'static [(usize, &'static str)],
}

const FAMILIES: [Family; 5] = [
    Family {
        name: "Llama 3",
        architecture: "llama",
        scheme: "llama-bpe",
        tokens: &[(128_000, "<|begin_of_text|>"), (128_006, "<|start_header_id|>"), (128_009, "<|eot_id|>")],
    },
    Family {
        name: "Qwen 1.5 and 2",
        architecture: "qwen2",
        scheme: "qwen2",
        tokens: &[(151_643, "<|endoftext|>"), (151_644, "<|im_start|>"), (151_645, "<|im_end|>")],
    },
    Family { name: "Phi-2", architecture: "phi2", scheme: "phi-2", tokens: &[(50_256, "<|endoftext|>")] },
    Family {
        name: "StarCoder 2",
        architecture: "starcoder2",
        scheme: "starcoder",
        tokens: &[(0, "<|endoftext|>"), (1, "<fim_prefix>"), (2, "<fim_middle>")],
    },
    Family {
        name: "SmolLM",
        architecture: "llama",
        scheme: "smollm",
        tokens: &[(0, "<|endoftext|>"), (1, "<|im_start|>"), (2, "<|im_end|>"), (4, "<reponame>")],
    },
];

/// Combining marks. Qwen's vocabularies were made with them inside words and are used with a scheme that splits them off.
static MARK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\p{M}").expect("the pattern is a constant and the tests use it"));

/// The texts of the tokens that a vocabulary's merges make, without white space alone, whose split depends on what follows, and without
/// words with combining marks.
pub(in crate::checkpoint) struct Merged(Vec<String>);

impl Merged {
    /// Takes the texts of tokens; those of one character show nothing.
    pub(in crate::checkpoint) fn new(texts: impl Iterator<Item = String>) -> Self {
        let shows = |text: &String| text.chars().nth(1).is_some() && !text.trim().is_empty() && !MARK.is_match(text);
        Merged(texts.filter(shows).collect())
    }

    /// Returns the schemes that may have made these tokens.
    pub(in crate::checkpoint) fn allowed(&self) -> tokenizers::Result<Vec<&'static NamedScheme>> {
        let two_digits = |text: &String| text.as_bytes().windows(2).any(|pair| pair.iter().all(u8::is_ascii_digit));
        let splits_digits = self.0.len() >= LARGE && !self.0.iter().any(two_digits);
        let mut judged: Vec<(Splitting, bool)> = Vec::new();
        let mut allowed = Vec::new();
        for scheme in pretokenizer::candidates().filter(|scheme| !splits_digits || scheme.splits_digits()) {
            let known = judged.iter().find(|(splitting, _)| *splitting == scheme.splitting()).map(|(_, fits)| *fits);
            let fits = match known {
                Some(fits) => fits,
                None => self.broken_by(scheme)?.is_none(),
            };
            judged.push((scheme.splitting(), fits));
            if fits {
                allowed.push(scheme);
            }
        }
        Ok(allowed)
    }

    /// Returns a token that shows that a scheme did not make these, if they do.
    pub(in crate::checkpoint) fn broken_by(&self, scheme: &NamedScheme) -> tokenizers::Result<Option<&str>> {
        let pre_tokenizer = scheme.build()?.pre_tokenizer;
        let mut left = self.0.len() / STRAY;
        for text in &self.0 {
            let mut pieces = PreTokenizedString::from(text.as_str());
            pre_tokenizer.pre_tokenize(&mut pieces)?;
            if pieces.get_splits(OffsetReferential::Original, OffsetType::Byte).len() == 1 {
                continue;
            }
            if left == 0 {
                return Ok(Some(text));
            }
            left -= 1;
        }
        Ok(None)
    }
}

/// Returns the one scheme that is beyond doubt among the allowed ones, and why it is.
pub(in crate::checkpoint) fn without_doubt(
    allowed: &[&'static NamedScheme],
    architecture: &str,
    tokens: &[String],
) -> Option<(&'static str, String)> {
    let has = |(id, token): &(usize, &str)| tokens.get(*id).is_some_and(|there| there == token);
    let families = FAMILIES.iter().filter(|family| family.architecture == architecture);
    let family = families.into_iter().find(|family| family.tokens.iter().all(has));
    if let Some(family) = family {
        let scheme = pretokenizer::named(family.scheme)?;
        return allowed.contains(&scheme).then(|| (family.scheme, format!("its tokens are those of {}", family.name)));
    }
    match allowed {
        [only] => {
            Some((only.name(), "it alone of those known here keeps the tokens of the vocabulary whole".to_owned()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(texts: &[&str]) -> Vec<&'static str> {
        let merged = Merged::new(texts.iter().map(|text| (*text).to_owned()));
        merged.allowed().unwrap().into_iter().map(NamedScheme::name).collect()
    }

    #[test]
    fn tokens_rule_out_the_schemes_that_split_them() {
        // Nothing in it tells schemes apart.
        assert_eq!(allowed(&["an", " the", "."]).len(), pretokenizer::candidates().count());
        let three = allowed(&["12", "123", "an"]);
        assert!(three.contains(&"llama-bpe") && three.contains(&"gpt-2") && !three.contains(&"smollm"), "{three:?}");
        assert!(!three.contains(&"qwen2") && !three.contains(&"default"));
        // A letter after a bracket is one piece in Llama 3's expression and two in GPT-2's, a change of case is two in GPT-4o's.
        assert_eq!(allowed(&["12", "(s", "toString"]), ["llama-bpe", "dbrx", "glm4", "deepseek-v3"]);
        assert_eq!(allowed(&[" 12", "2016"]), ["gpt-2"]);
        assert!(allowed(&[" 12", "(s"]).is_empty());
        // White space alone shows nothing, and neither do one character and a mark.
        let marked = ["\n \n  ", "(", "é", "\u{e17}\u{e35}\u{e48}", "e\u{301}t"];
        assert_eq!(allowed(&marked).len(), pretokenizer::candidates().count());
        // Between Qwen 2 and 3.5 they would decide.
        let qwen = [&marked[..], &["(s", "get", ");\n"]].concat();
        assert!(allowed(&qwen).contains(&"qwen2") && allowed(&qwen).contains(&"qwen35"));
    }

    #[test]
    fn large_vocabularies_show_by_what_they_lack_and_forgive_a_few_strays() {
        let words = |count: usize| (0..count).map(|number| format!("ab{}", letters(number)));
        let names = |texts: Vec<String>| {
            let merged = Merged::new(texts.into_iter());
            merged.allowed().unwrap().into_iter().map(NamedScheme::name).collect::<Vec<_>>()
        };
        let all = pretokenizer::candidates().count();
        assert_eq!(names(words(LARGE - 1).collect()).len(), all);
        assert_eq!(names(words(LARGE).collect()), ["smollm", "qwen2", "qwen35", "tekken"]);
        let stray = |count: usize| words(5000).chain((0..count).map(|number| format!("{}", 10 + number))).collect();
        assert!(names(stray(5)).contains(&"qwen2"));
        assert!(!names(stray(6)).contains(&"qwen2") && names(stray(6)).contains(&"llama-bpe"));
    }

    fn letters(mut number: usize) -> String {
        let mut text = String::new();
        while number > 0 {
            text.push(char::from(b'a' + (number % 26) as u8));
            number /= 26;
        }
        text
    }

    #[test]
    fn a_family_is_known_by_its_tokens_and_nothing_else_is_guessed() {
        let schemes = |names: &[&str]| names.iter().map(|name| pretokenizer::named(name).unwrap()).collect::<Vec<_>>();
        let mut tokens = vec![String::new(); 128_256];
        for (id, token) in FAMILIES[0].tokens {
            tokens[*id] = (*token).to_owned();
        }
        let (llama, qwen) = (schemes(&["dbrx", "llama-bpe"]), schemes(&["qwen2", "smollm"]));
        let (name, why) = without_doubt(&llama, "llama", &tokens).unwrap();
        assert_eq!((name, why.as_str()), ("llama-bpe", "its tokens are those of Llama 3"));
        // Another architecture, merges that this family does not have, another token at the place of one.
        assert_eq!(without_doubt(&llama, "granite", &tokens), None);
        assert_eq!(without_doubt(&qwen, "llama", &tokens), None);
        assert_eq!(without_doubt(&schemes(&["smollm"]), "llama", &tokens), None);
        tokens[128_009] = "<|other|>".to_owned();
        assert_eq!(without_doubt(&llama, "llama", &tokens), None);
        assert_eq!(without_doubt(&schemes(&["gpt-2"]), "llama", &tokens).unwrap().0, "gpt-2");
        assert_eq!(without_doubt(&[], "llama", &tokens), None);
        // Every family's scheme is a known one.
        assert!(FAMILIES.iter().all(|family| pretokenizer::named(family.scheme).is_some()));
    }
}
