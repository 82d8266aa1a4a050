//! Environment variables of the hub: cache folder, endpoint, token, offline mode.
use std::fmt;
use std::path::PathBuf;

/// A token. It is never printed: neither `Debug` nor any error shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Trims and wraps a token; none if it is empty or has characters that no token has.
    pub fn new(text: &str) -> Option<Token> {
        let text = text.trim();
        // A control character could split the header in which the token is sent.
        let valid = !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
        valid.then(|| Token(text.to_owned()))
    }

    /// Returns the value of the `Authorization` header.
    pub(super) fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(not shown)")
    }
}

/// The settings of the hub, read once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// Folder of the cache.
    pub cache: Option<PathBuf>,
    /// `HF_ENDPOINT`, without a slash at its end.
    pub endpoint: String,
    pub token: Option<Token>,
    /// The setting that forbids connections, if any.
    pub offline: Option<OfflineReason>,
}

/// Settings that forbid connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfflineReason {
    /// `--offline`.
    Flag,
    /// `HF_HUB_OFFLINE`.
    HfHubOffline,
    /// `TRANSFORMERS_OFFLINE`.
    TransformersOffline,
}

impl fmt::Display for OfflineReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OfflineReason::Flag => "the setting `offline`",
            OfflineReason::HfHubOffline => "HF_HUB_OFFLINE",
            OfflineReason::TransformersOffline => "TRANSFORMERS_OFFLINE",
        })
    }
}

/// Largest file of a token, in bytes; tokens have about 40.
const MAX_TOKEN: u64 = 64 << 10;

/// The public hub.
const ENDPOINT: &str = "https://huggingface.co";

impl Environment {
    /// Reads the variables of `huggingface_hub`: `HF_HUB_CACHE`, `HF_HOME`, `HF_ENDPOINT`, `HF_TOKEN`, `HF_TOKEN_PATH`,
    /// `HF_HUB_OFFLINE`; `offline` is `--offline`.
    pub fn read(offline: bool) -> Environment {
        Environment::from(offline, &|name| std::env::var(name).ok(), std::env::home_dir())
    }

    fn from(offline: bool, variable: &dyn Fn(&str) -> Option<String>, home: Option<PathBuf>) -> Environment {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let path = |name: &str| {
            set(name).map(|value| match (value.strip_prefix("~/"), &home) {
                (Some(rest), Some(home)) => home.join(rest),
                _ => PathBuf::from(value),
            })
        };
        let hf_home = path("HF_HOME")
            .or_else(|| path("XDG_CACHE_HOME").map(|cache| cache.join("huggingface")))
            .or_else(|| home.clone().map(|home| home.join(".cache/huggingface")));
        let cache = path("HF_HUB_CACHE")
            .or_else(|| path("HUGGINGFACE_HUB_CACHE"))
            .or_else(|| hf_home.clone().map(|home| home.join("hub")));
        let token = ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"]
            .iter()
            .find_map(|name| set(name).and_then(|text| Token::new(&text)))
            .or_else(|| {
                let file = path("HF_TOKEN_PATH").or_else(|| hf_home.map(|home| home.join("token")))?;
                Token::new(&super::own::read_at_most(&file, MAX_TOKEN).ok()?)
            });
        let on = |name: &str| {
            set(name).is_some_and(|value| ["1", "on", "yes", "true"].contains(&value.to_ascii_lowercase().as_str()))
        };
        let offline = match (offline, on("HF_HUB_OFFLINE"), on("TRANSFORMERS_OFFLINE")) {
            (true, ..) => Some(OfflineReason::Flag),
            (_, true, _) => Some(OfflineReason::HfHubOffline),
            (_, _, true) => Some(OfflineReason::TransformersOffline),
            _ => None,
        };
        let endpoint = set("HF_ENDPOINT").unwrap_or_else(|| ENDPOINT.to_owned());
        Environment { cache, endpoint: endpoint.trim_end_matches('/').to_owned(), token, offline }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(offline: bool, variables: &[(&str, &str)]) -> Environment {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        Environment::from(offline, &find, Some("/home/u".into()))
    }

    #[test]
    fn the_cache_is_where_the_hub_puts_it() {
        let cache = |variables: &[(&str, &str)]| read(false, variables).cache.unwrap();
        assert_eq!(cache(&[]), PathBuf::from("/home/u/.cache/huggingface/hub"));
        assert_eq!(cache(&[("XDG_CACHE_HOME", "/x")]), PathBuf::from("/x/huggingface/hub"));
        assert_eq!(cache(&[("HF_HOME", "/h"), ("XDG_CACHE_HOME", "/x")]), PathBuf::from("/h/hub"));
        assert_eq!(cache(&[("HF_HUB_CACHE", "/c"), ("HF_HOME", "/h")]), PathBuf::from("/c"));
        assert_eq!(cache(&[("HF_HUB_CACHE", ""), ("HF_HOME", "~/h")]), PathBuf::from("/home/u/h/hub"));
    }

    #[test]
    fn offline_is_taken_from_anywhere() {
        assert_eq!(read(false, &[]).offline, None);
        assert_eq!(read(false, &[("HF_HUB_OFFLINE", "0")]).offline, None);
        for value in ["1", "ON", "true", "Yes"] {
            assert_eq!(read(false, &[("HF_HUB_OFFLINE", value)]).offline, Some(OfflineReason::HfHubOffline));
        }
        assert_eq!(read(true, &[]).offline, Some(OfflineReason::Flag));
    }

    #[test]
    fn a_token_is_never_shown() {
        let found = read(false, &[("HF_TOKEN", " hf_secret\n"), ("HF_ENDPOINT", "http://127.0.0.1:1/")]);
        assert_eq!(found.token, Token::new("hf_secret"));
        assert!(!format!("{found:?}").contains("hf_secret"));
        assert_eq!(found.endpoint, "http://127.0.0.1:1");
        assert_eq!(Token::new("a\r\nX: y"), None);
        assert_eq!(Token::new("  "), None);
    }

    #[test]
    fn a_token_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), "hf_from_file\n").unwrap();
        let home = folder.path().to_str().unwrap();
        assert_eq!(read(false, &[("HF_HOME", home)]).token, Token::new("hf_from_file"));
        let other = folder.path().join("token");
        assert_eq!(read(false, &[("HF_TOKEN_PATH", other.to_str().unwrap())]).token, Token::new("hf_from_file"));
    }
}
