//! HTTP/1.1 as far as the protocol needs it: bodies with a length, connections that stay open, limits on everything.
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::problem::Problem;

/// Most bytes and lines of a request's head.
const LONGEST_HEAD: usize = 32 << 10;
const MOST_HEADERS: usize = 64;
/// How long a client may take to read a part of an answer.
const WRITING: Duration = Duration::from_secs(30);

/// A request.
#[derive(Debug, PartialEq)]
pub(super) struct Incoming {
    pub method: String,
    /// Without the query.
    pub path: String,
    /// The value of `Authorization`.
    pub authorization: Option<String>,
    pub body: Vec<u8>,
    /// The client wants to use the connection again.
    pub keep: bool,
    /// It speaks HTTP/1.1, in which an answer may come in chunks.
    pub chunks: bool,
}

/// Why there is no request.
#[derive(Debug)]
pub(super) enum NoRequest {
    /// The client closed the connection, or was silent too long before it began.
    Closed,
    /// What it sent is answered with this, then the connection is closed.
    Problem(Problem),
}

/// A connection and what was read of it too early.
pub(super) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// The client of the last request reads chunks (HTTP/1.1).
    chunks: bool,
}

/// What a connection's reads may cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub longest_body: usize,
    /// Between two requests.
    pub idle: Duration,
    /// From a request's first byte to its last.
    pub whole: Duration,
}

impl Connection {
    pub fn new(stream: TcpStream) -> Connection {
        Connection { stream, buffer: Vec::new(), chunks: false }
    }

    /// True if the client is gone. Must not be called while a request is being read.
    pub fn is_gone(&self) -> bool {
        let mut byte = [0];
        let quick = self.stream.set_nonblocking(true);
        let peeked = self.stream.peek(&mut byte);
        let back = self.stream.set_nonblocking(false);
        if quick.is_err() || back.is_err() {
            return true;
        }
        match peeked {
            Ok(0) => true,
            Ok(_) => false,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }

    /// Reads more; false at the end of the stream.
    fn fill(&mut self, until: Instant) -> Result<bool, NoRequest> {
        let left = until.saturating_duration_since(Instant::now());
        let late = || NoRequest::Problem(Problem::transport(408, "the request took too long to arrive"));
        if left.is_zero() {
            return Err(late());
        }
        self.stream.set_read_timeout(Some(left)).map_err(|_| NoRequest::Closed)?;
        let mut part = [0; 16 << 10];
        match self.stream.read(&mut part) {
            Ok(0) => Ok(false),
            Ok(count) => {
                self.buffer.extend_from_slice(&part[..count]);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Err(late()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(_) => Err(NoRequest::Closed),
        }
    }

    /// Reads the next request.
    pub fn read(&mut self, reading: Reading) -> Result<Incoming, NoRequest> {
        if self.buffer.is_empty() {
            match self.fill(Instant::now() + reading.idle) {
                Ok(true) => {}
                Ok(false) | Err(_) => return Err(NoRequest::Closed),
            }
        }
        let until = Instant::now() + reading.whole;
        let (mut incoming, head, length, expects) = loop {
            if let Some(parsed) = parse(&self.buffer, reading.longest_body).map_err(NoRequest::Problem)? {
                break parsed;
            }
            if self.buffer.len() > LONGEST_HEAD {
                let message = format!("the head of the request is longer than {LONGEST_HEAD} bytes");
                return Err(NoRequest::Problem(Problem::transport(431, message)));
            }
            if !self.fill(until)? {
                return Err(NoRequest::Closed);
            }
        };
        if expects && self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").is_err() {
            return Err(NoRequest::Closed);
        }
        while self.buffer.len() < head + length {
            if !self.fill(until)? {
                return Err(NoRequest::Closed);
            }
        }
        let rest = self.buffer.split_off(head + length);
        incoming.body = self.buffer.split_off(head);
        self.buffer = rest;
        self.chunks = incoming.chunks;
        Ok(incoming)
    }

    /// Answers with JSON.
    pub fn json(
        &mut self,
        status: u16,
        body: &serde_json::Value,
        retry_after: Option<u32>,
        keep: bool,
    ) -> io::Result<()> {
        let body = body.to_string();
        self.answer(status, "application/json", &body, retry_after, keep)
    }

    /// Begins an answer that comes event by event.
    pub fn begin_events(&mut self, keep: bool) -> io::Result<()> {
        // Clients of HTTP/1.0 know no chunks: the end of the connection is the end of the answer, and `keep` is false.
        let framing = if self.chunks { "Transfer-Encoding: chunked\r\n" } else { "" };
        let connection = if keep && self.chunks { "keep-alive" } else { "close" };
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n{framing}Connection: {connection}\r\n\r\n"
        );
        self.stream.set_write_timeout(Some(WRITING))?;
        // Events are small and somebody waits for each.
        self.stream.set_nodelay(true)?;
        self.stream.write_all(head.as_bytes())
    }

    /// Sends an event at once.
    pub fn event(&mut self, data: &str) -> io::Result<()> {
        let event = format!("data: {data}\n\n");
        let framed = if self.chunks { format!("{:x}\r\n{event}\r\n", event.len()) } else { event };
        self.stream.write_all(framed.as_bytes())?;
        self.stream.flush()
    }

    /// Ends an answer of events.
    pub fn end_events(&mut self) -> io::Result<()> {
        if self.chunks {
            self.stream.write_all(b"0\r\n\r\n")?;
        }
        self.stream.flush()
    }

    fn answer(&mut self, status: u16, kind: &str, body: &str, retry_after: Option<u32>, keep: bool) -> io::Result<()> {
        let retry_after = retry_after.map(|seconds| format!("Retry-After: {seconds}\r\n")).unwrap_or_default();
        let connection = if keep { "keep-alive" } else { "close" };
        let head = format!(
            "HTTP/1.1 {status} {}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{retry_after}Connection: {connection}\r\n\r\n",
            reason(status),
            body.len()
        );
        self.stream.set_write_timeout(Some(WRITING))?;
        self.stream.write_all(head.as_bytes())?;
        self.stream.write_all(body.as_bytes())?;
        self.stream.flush()
    }

    /// Takes what the client is still sending, so that closing does not make its system throw the answer away.
    pub fn drain(&mut self) {
        const MOST: usize = 16 << 20;
        let until = Instant::now() + Duration::from_secs(2);
        let mut taken = 0;
        if self.stream.shutdown(std::net::Shutdown::Write).is_err() {
            return;
        }
        while taken < MOST && Instant::now() < until {
            self.buffer.clear();
            match self.fill(until) {
                Ok(true) => taken += self.buffer.len(),
                _ => return,
            }
        }
    }
}

/// Reads the head; none if it is not whole yet. Gives the request, the lengths of head and body, and whether the client waits
/// for a word before it sends the body.
fn parse(bytes: &[u8], longest_body: usize) -> Result<Option<(Incoming, usize, usize, bool)>, Problem> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let head = match request.parse(bytes) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(Problem::transport(431, format!("the request has more than {MOST_HEADERS} headers")));
        }
        Err(error) => return Err(Problem::transport(400, format!("this is no HTTP request: {error}"))),
    };
    let text = |value: &[u8]| String::from_utf8_lossy(value).trim().to_owned();
    let mut length: Option<usize> = None;
    let mut authorization = None;
    let chunks = request.version == Some(1);
    let mut keep = chunks;
    let mut expects = false;
    for header in request.headers.iter() {
        let value = text(header.value);
        match header.name.to_ascii_lowercase().as_str() {
            "content-length" => {
                let parsed = value.parse().ok().filter(|_| value.bytes().all(|byte| byte.is_ascii_digit()));
                let parsed = parsed.ok_or_else(|| Problem::transport(400, "Content-Length is no number"))?;
                // Two lengths that differ are a way to smuggle a second request past a proxy.
                if length.is_some_and(|other| other != parsed) {
                    return Err(Problem::transport(400, "the request has two lengths"));
                }
                length = Some(parsed);
            }
            "transfer-encoding" => {
                return Err(Problem::transport(411, "send the body with a Content-Length, not in chunks"));
            }
            "authorization" => authorization = Some(value),
            "connection" => match value.to_ascii_lowercase().as_str() {
                "close" => keep = false,
                "keep-alive" => keep = true,
                _ => {}
            },
            "expect" => expects = value.eq_ignore_ascii_case("100-continue"),
            _ => {}
        }
    }
    let length = length.unwrap_or(0);
    if length > longest_body {
        return Err(Problem::transport(413, format!("the body has {length} bytes, more than {longest_body}")));
    }
    let path = request.path.unwrap_or_default().split('?').next().unwrap_or_default().to_owned();
    let method = request.method.unwrap_or_default().to_owned();
    let expects = expects && bytes.len() < head + length;
    Ok(Some((Incoming { method, path, authorization, body: Vec::new(), keep, chunks }, head, length, expects)))
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(bytes: &[u8]) -> Option<u16> {
        match parse(bytes, 100) {
            Ok(Some(_)) => Some(200),
            Ok(None) => None,
            Err(problem) => Some(problem.status),
        }
    }

    #[test]
    fn heads() {
        let whole = b"POST /v1/completions?x=1 HTTP/1.1\r\nContent-Length: 2\r\nauthorization: Bearer k\r\n\r\n{}";
        let (incoming, head, length, expects) = parse(whole, 100).unwrap().unwrap();
        assert_eq!(
            (incoming.method.as_str(), incoming.path.as_str(), incoming.keep),
            ("POST", "/v1/completions", true)
        );
        assert_eq!(
            (incoming.authorization.as_deref(), head, length, expects),
            (Some("Bearer k"), whole.len() - 2, 2, false)
        );
        for end in 0..whole.len() - 2 {
            assert!(parse(&whole[..end], 100).unwrap().is_none(), "{end}");
        }
        let old = parse(b"GET / HTTP/1.0\r\n\r\n", 100).unwrap().unwrap();
        assert!(!old.0.keep && !old.0.chunks && incoming.chunks);
    }

    #[test]
    fn hostile_heads() {
        assert_eq!(status(b"\x16\x03\x01\x02\x00\x01\x00"), Some(400));
        assert_eq!(status(b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), Some(400));
        assert_eq!(status(b"POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n"), Some(400));
        assert_eq!(status(b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"), Some(400));
        assert_eq!(status(b"POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n"), Some(413));
        assert_eq!(status(b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n"), Some(400));
        assert_eq!(status(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), Some(411));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(MOST_HEADERS + 1));
        assert_eq!(status(many.as_bytes()), Some(431));
    }
}
