//! The client of the hub, the only code here that opens connections.
use std::io::Read;
use std::time::Duration;

use serde::Deserialize;

use crate::address::Address;
use crate::json::{self, Wanted};

use super::{Commit, Environment, Hash, HubError, Listing, RemoteFile, RepoId, Token};

/// Timeout of a read from the hub.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Largest accepted listing, in bytes.
const MAX_LISTING_BYTES: u64 = 64 << 20;
/// Most values of a listing that are kept: five a file, and a few.
const MAX_LISTING_VALUES: usize = 1_000_000;
/// Fields of a listing that are read.
const LISTING_FIELDS: [&str; 11] =
    ["id", "sha", "siblings", "rfilename", "size", "blobId", "lfs", "sha256", "gated", "cardData", "license"];

/// A client of the hub. Cannot be created in offline mode.
#[derive(Debug)]
pub struct Remote {
    agent: ureq::Agent,
    endpoint: String,
    token: Option<Token>,
}

/// The current state of a revision.
#[derive(Debug, Clone, PartialEq)]
pub struct Revision {
    pub listing: Listing,
    /// The licence in the model card.
    pub licence: Option<String>,
    pub gated: bool,
    /// The name to which the hub led on, if the repository has moved.
    pub moved: Option<String>,
}

/// The fields used of `GET /api/models/<repo>/revision/<revision>?blobs=true`.
#[derive(Debug, Deserialize)]
struct Info {
    id: Option<String>,
    sha: Option<String>,
    #[serde(default)]
    siblings: Vec<Sibling>,
    #[serde(default)]
    gated: serde_json::Value,
    #[serde(rename = "cardData", default)]
    card: serde_json::Value,
}

#[derive(Debug, Deserialize)]
struct Sibling {
    rfilename: String,
    size: Option<u64>,
    #[serde(rename = "blobId")]
    blob_id: Option<String>,
    lfs: Option<Lfs>,
}

#[derive(Debug, Deserialize)]
struct Lfs {
    sha256: String,
    size: u64,
}

/// The response to a download.
pub(super) struct Body {
    /// Offset of its first byte; 0 if the hub does not resume.
    pub(super) start: u64,
    pub(super) reader: Box<dyn Read>,
}

impl Remote {
    /// Creates a client of the hub that the environment names; nothing is sent yet. `purpose` is the subject of the error in
    /// offline mode, e.g. "fetching org/repo".
    ///
    /// # Errors
    /// [`HubError::Offline`], [`HubError::BadEndpoint`].
    pub fn new(environment: &Environment, purpose: &str) -> Result<Remote, HubError> {
        if let Some(reason) = environment.offline {
            return Err(HubError::Offline { purpose: purpose.to_owned(), reason });
        }
        let endpoint = environment.endpoint.clone();
        let address = Address::parse(&endpoint).map_err(|reason| HubError::BadEndpoint { reason })?;
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // The token goes to the hub, never to the storage that it redirects to.
            .redirect_auth_headers(ureq::config::RedirectAuthHeaders::Never)
            .max_redirects(5)
            .timeout_connect(Some(Duration::from_secs(30)))
            .timeout_recv_response(Some(READ_TIMEOUT))
            .timeout_per_read(Some(READ_TIMEOUT))
            .user_agent(concat!("earnest/", env!("CARGO_PKG_VERSION")));
        // What stays on this machine goes through no proxy, which would see the token.
        let agent = if address.is_loopback() { agent.proxy(None) } else { agent }.build();
        let agent = crate::agent(agent);
        // Without encryption, a token is sent to this machine only.
        let token = environment.token.clone().filter(|_| !address.exposes_keys());
        Ok(Remote { agent, endpoint, token })
    }

    /// Returns the address of a repository's page.
    pub fn page(&self, repo: &RepoId) -> String {
        format!("{}/{repo}", self.endpoint)
    }

    /// Requests the current state of a revision: its commit, and its files with sizes and hashes.
    ///
    /// # Errors
    /// No connection, no access, no such revision, or an answer that is not a listing.
    pub fn revision(&self, repo: &RepoId, revision: &str) -> Result<Revision, HubError> {
        let url = format!("{}/api/{}/revision/{}?blobs=true", self.endpoint, repo.in_api(), encode(revision, true));
        let mut response = self.get(&url, None)?;
        self.check(response.status().as_u16(), code(&response), repo, revision, None, &url)?;
        let malformed = |what: String| HubError::BadListing { url: url.clone(), what };
        let text = response.body_mut().with_config().limit(MAX_LISTING_BYTES).read_to_vec().map_err(|error| {
            malformed(match error {
                ureq::Error::BodyExceedsLimit(limit) => {
                    format!("it is longer than {limit} bytes, the most that a listing may have")
                }
                other => other.to_string(),
            })
        })?;
        let wanted = Wanted { fields: &LISTING_FIELDS, whole: &[], values: MAX_LISTING_VALUES };
        let listing = json::read(&text, wanted).map_err(|error| malformed(error.to_string()))?;
        let info: Info = serde_json::from_value(listing).map_err(|error| malformed(error.to_string()))?;
        let sha = info.sha.unwrap_or_default();
        let commit = Commit::parse(&sha).map_err(|_| malformed(format!("its commit is '{sha}'")))?;
        let hexadecimal = revision.len() >= 7 && revision.chars().all(|c| c.is_ascii_hexdigit());
        if hexadecimal && !commit.as_str().starts_with(&revision.to_ascii_lowercase()) {
            return Err(HubError::WrongCommit {
                repo: repo.to_string(),
                requested: revision.to_owned(),
                got: commit.to_string(),
            });
        }
        let files = info.siblings.into_iter().map(|sibling| {
            let name = sibling.rfilename;
            let (hash, size) = match (sibling.lfs, sibling.blob_id, sibling.size) {
                (Some(lfs), ..) => {
                    (Hash::from_etag(&lfs.sha256).filter(|hash| matches!(hash, Hash::Sha256(_))), Some(lfs.size))
                }
                (None, Some(blob), size) => {
                    (Hash::from_etag(&blob).filter(|hash| matches!(hash, Hash::GitSha1(_))), size)
                }
                _ => (None, None),
            };
            match (hash, size) {
                (Some(hash), Some(size)) => Ok(RemoteFile { path: name, size, hash }),
                _ => Err(malformed(format!("{name} has no size or hash"))),
            }
        });
        let listing = Listing { repo: repo.to_string(), commit, files: files.collect::<Result<_, _>>()? };
        let gated = !matches!(info.gated, serde_json::Value::Null | serde_json::Value::Bool(false));
        let licence = info.card.get("license").and_then(|licence| licence.as_str()).map(str::to_owned);
        let other = |name: &String| {
            !repo.to_string().trim_start_matches("datasets/").eq_ignore_ascii_case(name.trim_start_matches("datasets/"))
        };
        let moved = info.id.filter(other);
        Ok(Revision { listing, licence, gated, moved })
    }

    /// Requests a file's bytes from `start` on. Requested by commit, so the content cannot change between attempts.
    pub(super) fn open(&self, repo: &RepoId, commit: &Commit, file: &RemoteFile, start: u64) -> Result<Body, HubError> {
        let url = format!("{}/{repo}/resolve/{commit}/{}", self.endpoint, encode(&file.path, false));
        let response = self.get(&url, (start > 0).then_some(start))?;
        let status = response.status().as_u16();
        if status == 416 {
            // The partial file is longer than the file itself: start again.
            return if start > 0 { self.open(repo, commit, file, 0) } else { Err(HubError::Status { url, status }) };
        }
        self.check(status, code(&response), repo, commit.as_str(), Some(&file.path), &url)?;
        if let Some(got) = header(&response, "x-repo-commit").filter(|got| *got != commit.as_str()) {
            return Err(HubError::WrongCommit {
                repo: repo.to_string(),
                requested: commit.to_string(),
                got: got.to_owned(),
            });
        }
        let continued = status == 206
            && header(&response, "content-range")
                .and_then(|range| range.strip_prefix("bytes ")?.split_once('-')?.0.parse().ok())
                == Some(start);
        if status == 206 && !continued {
            return Err(HubError::Unreachable {
                url,
                what: "it answered with another range than the requested one".into(),
            });
        }
        let start = if continued { start } else { 0 };
        Ok(Body { start, reader: Box::new(response.into_body().into_reader()) })
    }

    fn get(&self, url: &str, start: Option<u64>) -> Result<ureq::http::Response<ureq::Body>, HubError> {
        // A compressed response has another length than the file.
        let mut request = self.agent.get(url).header("Accept-Encoding", "identity");
        if let Some(token) = &self.token {
            request = request.header("Authorization", token.header());
        }
        if let Some(start) = start {
            request = request.header("Range", format!("bytes={start}-"));
        }
        request.call().map_err(|error| HubError::Unreachable { url: url.to_owned(), what: reason(&error) })
    }

    /// Maps a status to an error about this repository.
    fn check(
        &self,
        status: u16,
        code: Option<String>,
        repo: &RepoId,
        revision: &str,
        file: Option<&str>,
        url: &str,
    ) -> Result<(), HubError> {
        let (repository, with_token) = (repo.to_string(), self.token.is_some());
        // Without a token the hub answers 401 for gated, private and missing repositories alike; only its error code differs.
        let certain = code.as_deref() == Some("GatedRepo") || status == 403;
        let gated = || HubError::Gated { repo: repository.clone(), status, with_token, page: self.page(repo), certain };
        match (status, code.as_deref()) {
            (200 | 206, _) => Ok(()),
            (401 | 403, Some("GatedRepo")) | (403, _) => Err(gated()),
            (401, Some("RepoNotFound")) => Err(HubError::NoRepository { repo: repository, with_token }),
            (401, _) if with_token => Err(HubError::BadToken { repo: repository }),
            (401, _) => Err(gated()),
            (404, Some("RevisionNotFound")) => {
                Err(HubError::NoSuchRevision { repo: repository, revision: revision.to_owned() })
            }
            (404, Some("EntryNotFound")) => Err(HubError::NoSuchFile {
                repo: repository,
                revision: revision.to_owned(),
                file: file.unwrap_or_default().to_owned(),
            }),
            (404, _) if file.is_none() => Err(HubError::NoRepository { repo: repository, with_token }),
            (404, _) => Err(HubError::NoSuchFile {
                repo: repository,
                revision: revision.to_owned(),
                file: file.unwrap_or_default().to_owned(),
            }),
            _ => Err(HubError::Status { url: url.to_owned(), status }),
        }
    }
}

fn header<'a>(response: &'a ureq::http::Response<ureq::Body>, name: &str) -> Option<&'a str> {
    response.headers().get(name).and_then(|value| value.to_str().ok())
}

fn code(response: &ureq::http::Response<ureq::Body>) -> Option<String> {
    header(response, "x-error-code").map(str::to_owned)
}

/// Describes a failed connection, never the request, which carries the token.
fn reason(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => error.to_string(),
        ureq::Error::Timeout(which) => format!("no answer in time ({which})"),
        ureq::Error::HostNotFound => "unknown host".to_owned(),
        other => other.to_string(),
    }
}

/// Percent-encodes all but unreserved characters, and slashes only if `slashes` is set.
fn encode(text: &str, slashes: bool) -> String {
    use std::fmt::Write;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || (byte == b'/' && !slashes) {
            out.push(byte.into());
        } else {
            write!(out, "%{byte:02X}").expect("writing to a String cannot fail");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offline_mode_has_no_client() {
        let mut environment = Environment::read(true);
        environment.offline = Some(super::super::OfflineReason::Flag);
        let refused = Remote::new(&environment, "fetching a/b").unwrap_err();
        assert_eq!(refused.to_string(), "fetching a/b needs the network, which the setting `offline` forbids");
    }

    #[test]
    fn tokens_are_not_sent_in_the_clear() {
        let environment = |endpoint: &str| Environment {
            cache: None,
            endpoint: endpoint.to_owned(),
            token: Token::new("hf_secret"),
            offline: None,
        };
        let sent = |endpoint: &str| Remote::new(&environment(endpoint), "x").unwrap().token.is_some();
        assert!(sent("https://huggingface.co") && sent("http://127.0.0.1:8000") && sent("http://localhost:1"));
        assert!(sent("http://[::1]:80") && sent("https://localhost.evil.example"));
        for elsewhere in [
            "http://mirror.example",
            "http://localhost.evil.example",
            "http://localhost-evil.example",
            "http://127.0.0.1.evil.example:80/localhost",
            "http://[::ffff:10.0.0.1]",
            "http://evil.example/http://localhost",
        ] {
            assert!(!sent(elsewhere), "{elsewhere}");
        }
        for wrong in [
            "ftp://x",
            "https://",
            "HTTP://mirror.example",
            "http://localhost@evil.example",
            "http://a:hunter2@localhost",
            "http://127.0.0.1:80.evil.example",
            "http://[::1].evil.example",
            "http://localhost#.evil.example",
        ] {
            let error = Remote::new(&environment(wrong), "x").unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{wrong}");
        }
        assert!(!format!("{:?}", Remote::new(&environment("https://a.b"), "x").unwrap()).contains("hf_secret"));
    }

    #[test]
    fn addresses_are_encoded() {
        assert_eq!(encode("refs/pr/1", true), "refs%2Fpr%2F1");
        assert_eq!(encode("a b/c?d#e%.json", false), "a%20b/c%3Fd%23e%25.json");
    }
}
