//! Addresses of servers, an endpoint's or a hub's, and an endpoint's key: one reading of a host, so that what is taken for this machine
//! is the same everywhere.
use std::fmt;
use std::net::IpAddr;

/// The text that stands where a key was.
const REDACTED: &str = "[key]";

/// A key. It has no `Display`, its `Debug` hides it, and it can not be serialised.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret([key])")
    }
}

impl Secret {
    /// A key that can stand in a header.
    pub fn new(key: &str) -> Result<Secret, AddressError> {
        let key = key.trim();
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(AddressError::Key);
        }
        Ok(Secret(key.to_owned()))
    }

    /// The value of the `Authorization` header.
    pub fn authorization(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// A message without the key, whoever put it in: servers quote wrong keys in their errors.
    pub fn redact(&self, text: &str) -> String {
        text.replace(&self.0, REDACTED)
    }

    /// A model's text without the key. Placeholders such as `EMPTY` or `none` are no secrets and may be words of a text.
    pub fn redact_text(&self, text: String) -> String {
        const SHORTEST: usize = 8;
        if self.0.len() >= SHORTEST && text.contains(&self.0) { self.redact(&text) } else { text }
    }
}

/// A server's address, e.g. `http://127.0.0.1:8000/v1`. It holds no secret: user names, passwords and queries are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Without a slash at the end.
    base: String,
    host: String,
}

/// Addresses and keys that can not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not an address of an endpoint.
    #[error("{0} is not an endpoint address: write for instance http://127.0.0.1:8000/v1")]
    Malformed(String),
    /// The address itself is not repeated, because it holds a secret.
    #[error("the address of the endpoint holds a user name or password: put the key into EARNEST_API_KEY instead")]
    Credentials,
    /// The address has a query or a fragment.
    #[error("the address of the endpoint ends in a query or a fragment, which may hold a key: leave it out")]
    Query,
    /// The key has characters that a header can not hold.
    #[error("the key in EARNEST_API_KEY or OPENAI_API_KEY has characters that a header can not hold")]
    Key,
}

impl Address {
    /// Reads an address.
    pub fn parse(text: &str) -> Result<Address, AddressError> {
        let malformed = || AddressError::Malformed(text.to_owned());
        let base = text.trim().trim_end_matches('/');
        let rest = base.strip_prefix("http://").or_else(|| base.strip_prefix("https://"));
        let Some(rest) = rest else {
            // What stands before an `@` may be a password, whatever the scheme is.
            return Err(if text.contains('@') { AddressError::Credentials } else { malformed() });
        };
        if base.contains(['?', '#']) {
            return Err(AddressError::Query);
        }
        let authority = rest.split('/').next().unwrap_or_default();
        if authority.contains('@') {
            return Err(AddressError::Credentials);
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(bracketed) => {
                let (host, after) = bracketed.split_once(']').ok_or_else(malformed)?;
                if !(after.is_empty() || after.starts_with(':')) {
                    return Err(malformed());
                }
                (host, after.strip_prefix(':'))
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        let port_is_sound = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
        if host.is_empty() || !port_is_sound || !base.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(malformed());
        }
        Ok(Address { base: base.to_owned(), host: host.to_ascii_lowercase() })
    }

    /// The address as given.
    pub fn as_str(&self) -> &str {
        &self.base
    }

    /// The address of one of the protocol's paths, e.g. `models`.
    pub fn path(&self, path: &str) -> String {
        format!("{}/{path}", self.base)
    }

    /// The address of a path beside the protocol's, e.g. `version`: of `http://host/v1` that is `http://host/version`.
    pub fn beside(&self, path: &str) -> String {
        format!("{}/{path}", self.base.strip_suffix("/v1").unwrap_or(&self.base))
    }

    /// True if nothing leaves this machine.
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// True if a key would travel in the clear through a network.
    pub fn exposes_keys(&self) -> bool {
        self.base.starts_with("http://") && !self.is_loopback()
    }

    /// True for the provider whose newer models only take `max_completion_tokens`.
    pub fn is_openai(&self) -> bool {
        self.host == "api.openai.com"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let address = Address::parse(" http://127.0.0.1:8000/v1/ ").unwrap();
        assert_eq!(address.path("models"), "http://127.0.0.1:8000/v1/models");
        assert_eq!(address.beside("version"), "http://127.0.0.1:8000/version");
        let loopback = |text: &str| Address::parse(text).unwrap().is_loopback();
        assert!(loopback("http://localhost:1/v1") && loopback("http://[::1]:80/v1") && loopback("https://127.8.0.1"));
        assert!(
            !loopback("http://127.0.0.1.example.com/v1")
                && !loopback("http://10.0.0.1")
                && !loopback("http://0.0.0.0:1")
        );
        assert!(Address::parse("http://10.0.0.1/v1").unwrap().exposes_keys());
        assert!(!Address::parse("https://10.0.0.1/v1").unwrap().exposes_keys());
        for wrong in [
            "",
            "host:80",
            "ftp://host",
            "http://",
            "http:///v1",
            "http://h:0",
            "http://h:99999",
            "http://a b",
            "http://[::1",
            "http://[::1].example.com",
            "http://[::1]x:80",
            "http://127.0.0.1:80.example.com",
        ] {
            assert!(matches!(Address::parse(wrong), Err(AddressError::Malformed(_))), "{wrong}");
        }
    }

    #[test]
    fn secrets_do_not_come_out_of_addresses() {
        for wrong in [
            "http://me:hunter2@host/v1",
            "https://hunter2@host",
            "hunter2@host",
            "http://host/v1?key=hunter2",
            "http://host#hunter2",
        ] {
            let error = Address::parse(wrong).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{wrong}");
        }
    }

    #[test]
    fn secrets_do_not_show() {
        let secret = Secret::new("sk-hunter2-hunter2\n").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret([key])");
        assert_eq!(
            secret.redact("Incorrect API key provided: sk-hunter2-hunter2."),
            "Incorrect API key provided: [key]."
        );
        assert_eq!(secret.redact_text("a sk-hunter2-hunter2".into()), "a [key]");
        assert_eq!(Secret::new("EMPTY").unwrap().redact_text("EMPTY".into()), "EMPTY");
        assert!(Secret::new("").is_err() && Secret::new("a\r\nb").is_err() && Secret::new("é").is_err());
    }
}
