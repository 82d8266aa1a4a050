//! A hub on this machine: the part of the Hugging Face hub's HTTP interface that fetching uses, with faults on demand.
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};

/// A file of the hub.
#[derive(Clone)]
pub struct HubFile {
    pub bytes: Vec<u8>,
    /// Stored as a large file: announced by SHA-256 and served by redirection.
    pub large: bool,
}

/// Faults of the hub.
#[derive(Clone, Default)]
pub struct Faults {
    /// Status of every response, with the hub's error code.
    pub refuse: Option<(u16, &'static str)>,
    /// A gated repository: requests for it without a token are refused.
    pub gated: Option<&'static str>,
    /// Former names of the repository: requests for them are redirected, as the hub does after a move.
    pub moved: Vec<&'static str>,
    /// The commit that it claims to answer for.
    pub claims: Option<String>,
    /// So many downloads end after so many bytes.
    pub cuts: usize,
    pub cut_after: usize,
    /// Downloads have one bit changed.
    pub corrupt: bool,
    /// Ranges are ignored.
    pub no_ranges: bool,
    /// A pause before each answer with a file.
    pub slow_ms: u64,
    /// Answers of this status before the first good download.
    pub failures: usize,
}

#[derive(Default)]
struct State {
    repo: String,
    commit: String,
    files: BTreeMap<String, HubFile>,
    faults: Faults,
    /// Request lines, and the headers that matter.
    seen: Vec<Seen>,
}

/// A request that came.
#[derive(Clone, Debug)]
pub struct Seen {
    pub path: String,
    pub range: Option<String>,
    pub authorization: Option<String>,
}

pub struct FakeHub {
    pub endpoint: String,
    state: Arc<Mutex<State>>,
    stop: Arc<AtomicBool>,
    address: std::net::SocketAddr,
}

impl FakeHub {
    pub fn start(repo: &str, commit: &str, files: BTreeMap<String, HubFile>) -> FakeHub {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state =
            Arc::new(Mutex::new(State { repo: repo.to_owned(), commit: commit.to_owned(), files, ..State::default() }));
        let stop = Arc::new(AtomicBool::new(false));
        let (shared, ending) = (Arc::clone(&state), Arc::clone(&stop));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ending.load(Ordering::Relaxed) {
                    return;
                }
                let shared = Arc::clone(&shared);
                // A client that goes away is no fault of the hub.
                std::thread::spawn(move || serve(stream, &shared).ok());
            }
        });
        FakeHub { endpoint: format!("http://{address}"), state, stop, address }
    }

    pub fn faults(&self, faults: Faults) {
        self.state.lock().unwrap().faults = faults;
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.state.lock().unwrap().seen.clone()
    }

    pub fn forget(&self) {
        self.state.lock().unwrap().seen.clear();
    }
}

impl Drop for FakeHub {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for connections.
        TcpStream::connect(self.address).ok();
    }
}

pub fn sha256(bytes: &[u8]) -> String {
    earnest_digest::hex(&Sha256::digest(bytes))
}

pub fn git_sha1(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("blob");
    std::fs::write(&path, bytes).unwrap();
    earnest_digest::git_blob_sha1_file(&path, |_| ()).unwrap()
}

fn serve(stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let mut seen = Seen { path: path.clone(), range: None, authorization: None };
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 || header.trim().is_empty() {
            break;
        }
        let (name, value) = header.split_once(':').unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "range" => seen.range = Some(value.trim().to_owned()),
            "authorization" => seen.authorization = Some(value.trim().to_owned()),
            _ => {}
        }
    }
    let range = seen.range.clone();
    let has_token = seen.authorization.is_some();
    let (faults, repo, commit, files, cut, failing) = {
        let mut state = state.lock().unwrap();
        state.seen.push(seen);
        let download = path.starts_with("/cdn/");
        let failing = download && state.faults.failures > 0;
        if failing {
            state.faults.failures -= 1;
        }
        let cut = download && !failing && state.faults.cuts > 0;
        if cut {
            state.faults.cuts -= 1;
        }
        (state.faults.clone(), state.repo.clone(), state.commit.clone(), state.files.clone(), cut, failing)
    };
    let claims = faults.claims.clone().unwrap_or_else(|| commit.clone());
    let mut out = stream;
    let mut answer = |status: &str, headers: &[(&str, String)], body: &[u8], announced: usize| -> std::io::Result<()> {
        let mut head = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {announced}\r\n");
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        out.write_all(head.as_bytes())?;
        out.write_all(b"\r\n")?;
        out.write_all(body)?;
        out.flush()
    };
    if let Some((status, code)) = faults.refuse {
        return answer(&format!("{status} No"), &[("X-Error-Code", code.to_owned())], b"no", 2);
    }
    if let Some(old) = faults.moved.iter().find(|old| path.contains(&format!("/{old}/"))) {
        let place = path.replacen(&format!("/{old}/"), &format!("/{repo}/"), 1);
        return answer("307 Temporary Redirect", &[("Location", place)], b"", 0);
    }
    if faults.gated.is_some_and(|gated| !has_token && path.contains(gated)) {
        return answer("401 No", &[("X-Error-Code", "GatedRepo".to_owned())], b"no", 2);
    }
    let plain = path.split('?').next().unwrap_or_default();
    let kind = if repo.starts_with("datasets/") { "" } else { "models/" };
    if let Some(revision) = plain.strip_prefix(&format!("/api/{kind}{repo}/revision/")) {
        if revision != "main" && !commit.starts_with(revision) {
            return answer("404 Not Found", &[("X-Error-Code", "RevisionNotFound".to_owned())], b"", 0);
        }
        let siblings: Vec<serde_json::Value> = files
            .iter()
            .map(|(name, file)| {
                let size = file.bytes.len();
                let mut sibling = serde_json::json!({"rfilename": name, "size": size, "blobId": git_sha1(&file.bytes)});
                if file.large {
                    sibling["lfs"] =
                        serde_json::json!({"sha256": sha256(&file.bytes), "size": size, "pointerSize": 130});
                }
                sibling
            })
            .collect();
        let info = serde_json::json!({"id": repo, "sha": claims, "gated": false, "siblings": siblings,
            "cardData": {"license": "apache-2.0"}});
        let body = info.to_string();
        return answer("200 OK", &[("Content-Type", "application/json".to_owned())], body.as_bytes(), body.len());
    }
    if let Some(name) = plain.strip_prefix(&format!("/{repo}/resolve/{commit}/")) {
        let Some(file) = files.get(name) else {
            return answer("404 Not Found", &[("X-Error-Code", "EntryNotFound".to_owned())], b"", 0);
        };
        let revision = ("X-Repo-Commit", claims);
        if file.large {
            return answer("302 Found", &[revision, ("Location", format!("/cdn/{name}"))], b"", 0);
        }
        return answer("200 OK", &[revision], &file.bytes, file.bytes.len());
    }
    let Some(file) = plain.strip_prefix("/cdn/").and_then(|name| files.get(name)) else {
        return answer("404 Not Found", &[("X-Error-Code", "RepoNotFound".to_owned())], b"", 0);
    };
    std::thread::sleep(std::time::Duration::from_millis(faults.slow_ms));
    if failing {
        return answer("503 Service Unavailable", &[], b"", 0);
    }
    let mut bytes = file.bytes.clone();
    if faults.corrupt
        && let Some(byte) = bytes.last_mut()
    {
        *byte ^= 1;
    }
    let start = range
        .filter(|_| !faults.no_ranges)
        .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok());
    let (status, mut headers, body) = match start {
        Some(start) if start >= bytes.len() => return answer("416 Range Not Satisfiable", &[], b"", 0),
        Some(start) => {
            let range = format!("bytes {start}-{}/{}", bytes.len() - 1, bytes.len());
            ("206 Partial Content", vec![("Content-Range", range)], &bytes[start..])
        }
        None => ("200 OK", vec![], &bytes[..]),
    };
    headers.push(("ETag", format!("\"{}\"", sha256(&file.bytes))));
    let sent = if cut { &body[..faults.cut_after.min(body.len())] } else { body };
    answer(status, &headers, sent, body.len())
}
