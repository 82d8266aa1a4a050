//! Entries of `--allow-config`: keys of a configuration that are let through, and the name of a GGUF file's pre-tokenizer.
use super::gguf;

/// Key of the pre-tokenizer of a byte-level vocabulary.
pub const PRE_TOKENIZER_KEY: &str = "tokenizer.ggml.pre";

/// Mistakes in the entries of `--allow-config`, or of `allow-config` in a study file, which no checkpoint could mend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllowError {
    /// Two entries name the pre-tokenizer differently.
    #[error("allow-config names the pre-tokenizer twice: {PRE_TOKENIZER_KEY}={first} and {PRE_TOKENIZER_KEY}={second}")]
    Twice { first: String, second: String },
    /// The key has no name behind it.
    #[error("allow-config {entry}: the name is missing")]
    NoName { entry: String },
    /// Another key than that of the pre-tokenizer has a name behind it, or is spelt like it.
    #[error("allow-config {entry}: {key} {what}")]
    Key { entry: String, key: String, what: &'static str, value: Option<String> },
    /// No pre-tokenizer has this name.
    #[error("allow-config {PRE_TOKENIZER_KEY}={name}: there is no pre-tokenizer {name}")]
    UnknownName { name: String },
}

impl AllowError {
    /// Returns the next step for the user.
    pub fn help(&self) -> String {
        let known = || format!("known are {}", gguf::pretokenizer::known_names());
        match self {
            AllowError::Twice { .. } => {
                "leave one out: it is for all files that name none. In a study, `allow-config` of a model names its own"
                    .to_owned()
            }
            AllowError::NoName { .. } => format!(
                "write the setting `allow_config = {PRE_TOKENIZER_KEY}=NAME`, for a GGUF file that names none or an unknown one; {}",
                known()
            ),
            AllowError::Key { key, value, .. } if is_alike(key) => {
                let name = value.as_deref().filter(|name| !name.is_empty()).unwrap_or("NAME");
                format!("did you mean {PRE_TOKENIZER_KEY}={name}?")
            }
            AllowError::Key { key, .. } => format!(
                "write the setting `allow_config = {key}` to let a key of config.json through; {PRE_TOKENIZER_KEY}=NAME names a pre-tokenizer"
            ),
            AllowError::UnknownName { name } => match nearest(name, gguf::pretokenizer::names()) {
                Some(near) => format!("did you mean {PRE_TOKENIZER_KEY}={near}? {}", known()),
                None => known(),
            },
        }
    }
}

/// Returns the name of the pre-tokenizer among the entries, if there is one.
///
/// # Errors
/// [`AllowError`]: the first entry that no checkpoint could have, and two names.
pub fn named_pre_tokenizer(allow: &[String]) -> Result<Option<&str>, AllowError> {
    let mut found: Option<&str> = None;
    for entry in allow {
        let (key, name) = parts(entry);
        if key != PRE_TOKENIZER_KEY {
            // No key of a configuration has a name behind it.
            if name.is_some() || is_alike(key) {
                let what = match name {
                    Some(_) => "takes no name",
                    None => "is no key of a configuration",
                };
                let value = name.map(str::to_owned);
                return Err(AllowError::Key { entry: entry.clone(), key: key.to_owned(), what, value });
            }
            continue;
        }
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Err(AllowError::NoName { entry: entry.clone() });
        };
        if gguf::pretokenizer::named(name).is_none() {
            return Err(AllowError::UnknownName { name: name.to_owned() });
        }
        match found {
            Some(first) if first != name => {
                return Err(AllowError::Twice { first: first.to_owned(), second: name.to_owned() });
            }
            _ => found = Some(name),
        }
    }
    Ok(found)
}

/// True for an entry that names a pre-tokenizer.
pub fn is_pre_tokenizer(entry: &str) -> bool {
    parts(entry).0 == PRE_TOKENIZER_KEY
}

/// Returns the key of an entry and the name behind it.
fn parts(entry: &str) -> (&str, Option<&str>) {
    entry.split_once('=').map_or((entry, None), |(key, name)| (key, Some(name)))
}

/// True for a key that is spelt like that of the pre-tokenizer.
fn is_alike(key: &str) -> bool {
    let plain = key.to_lowercase().replace(['-', '_'], ".");
    plain == "pre" || plain.starts_with(PRE_TOKENIZER_KEY) || strsim::osa_distance(&plain, PRE_TOKENIZER_KEY) <= SLIPS
}

/// Most letters in which a slip of the key differs from it.
const SLIPS: usize = 3;

/// Returns the name that is most like another one; none if all are too far from it.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    let close = known.map(|other| (strsim::osa_distance(&wanted, other), other)).min()?;
    (close.0 <= (wanted.chars().count() / 2).clamp(1, 3)).then_some(close.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(allow: &[&str]) -> Result<Option<String>, AllowError> {
        let allow: Vec<String> = allow.iter().map(|entry| (*entry).to_owned()).collect();
        named_pre_tokenizer(&allow).map(|name| name.map(str::to_owned))
    }

    #[test]
    fn one_name_is_taken_and_other_keys_are_left_alone() {
        assert_eq!(named(&[]), Ok(None));
        assert_eq!(named(&["hidden_twist", "rope_scaling.twist", "pretraining_tp"]), Ok(None));
        let twice = ["tokenizer.ggml.pre=smollm", "hidden_twist", "tokenizer.ggml.pre=smollm"];
        assert_eq!(named(&twice), Ok(Some("smollm".to_owned())));
    }

    #[test]
    fn every_mistake_has_its_words_and_its_next_step() {
        for (allow, words, help) in [
            (
                &["tokenizer.ggml.pre=smollm", "tokenizer.ggml.pre=llama-bpe"][..],
                "twice: tokenizer.ggml.pre=smollm and tokenizer.ggml.pre=llama-bpe",
                "leave one out",
            ),
            (&["tokenizer.ggml.pre"], "tokenizer.ggml.pre: the name is missing", "tokenizer.ggml.pre=NAME"),
            (&["tokenizer.ggml.pre="], "the name is missing", "known are default, gpt-2"),
            (
                &["tokenizer.gmml.pre=smollm"],
                "tokenizer.gmml.pre takes no name",
                "did you mean tokenizer.ggml.pre=smollm?",
            ),
            (&["tokenizer.ggml-pre"], "is no key of a configuration", "did you mean tokenizer.ggml.pre=NAME?"),
            (&["tokenizer.ggml.pre:smollm"], "is no key of a configuration", "did you mean tokenizer.ggml.pre=NAME?"),
            (&["pre=smollm"], "pre takes no name", "did you mean tokenizer.ggml.pre=smollm?"),
            (
                &["hidden_twist=3"],
                "hidden_twist takes no name",
                "write the setting `allow_config = hidden_twist` to let",
            ),
            (
                &["tokenizer.ggml.pre=smolm"],
                "there is no pre-tokenizer smolm",
                "did you mean tokenizer.ggml.pre=smollm?",
            ),
            (
                &["tokenizer.ggml.pre=Llama-bpe"],
                "no pre-tokenizer Llama-bpe",
                "did you mean tokenizer.ggml.pre=llama-bpe?",
            ),
            (&["tokenizer.ggml.pre=nosuchthing"], "no pre-tokenizer nosuchthing", "known are default"),
        ] {
            let error = named(allow).unwrap_err();
            assert!(error.to_string().contains(words) && error.help().contains(help), "{error}: {}", error.help());
        }
    }
}
