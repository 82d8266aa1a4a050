//! The subset of HTTP/1.1 that the protocol needs: bodies with a Content-Length, keep-alive, chunked events, limits on everything.
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::error::ApiError;

/// Largest head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 32 << 10;
const MAX_HEADERS: usize = 64;
/// Timeout of a write to a client that does not read.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// A request.
#[derive(Debug, PartialEq)]
pub(super) struct HttpRequest {
    pub method: String,
    /// Without the query.
    pub path: String,
    /// The value of `Authorization`.
    pub authorization: Option<String>,
    pub body: Vec<u8>,
    /// The client keeps the connection open for another request.
    pub keep_alive: bool,
    /// The client speaks HTTP/1.1, so a response may be chunked.
    pub chunked: bool,
}

/// Reasons why no request could be read.
#[derive(Debug)]
pub(super) enum ReadError {
    /// The client closed the connection or sent nothing for too long.
    Closed,
    /// The request is invalid or exceeds a limit; the connection is closed after the error is sent.
    Invalid(ApiError),
}

/// A client's connection and its read buffer.
pub(super) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// The latest request allows a chunked response.
    chunked: bool,
}

/// Limits on reading a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadLimits {
    pub max_body_bytes: usize,
    /// Timeout between two requests.
    pub idle: Duration,
    /// Timeout from a request's first byte to its last.
    pub request: Duration,
}

impl Connection {
    pub fn new(stream: TcpStream) -> Connection {
        Connection { stream, buffer: Vec::new(), chunked: false }
    }

    /// True if the client has disconnected. Must not be called while a request is being read.
    pub fn is_closed(&self) -> bool {
        let mut byte = [0];
        let set = self.stream.set_nonblocking(true);
        let peeked = self.stream.peek(&mut byte);
        let reset = self.stream.set_nonblocking(false);
        if set.is_err() || reset.is_err() {
            return true;
        }
        match peeked {
            Ok(0) => true,
            Ok(_) => false,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }

    /// Reads more into the buffer; false at the end of the stream.
    fn fill(&mut self, deadline: Instant) -> Result<bool, ReadError> {
        let left = deadline.saturating_duration_since(Instant::now());
        let timed_out = || ReadError::Invalid(ApiError::transport(408, "timed out while reading the request"));
        if left.is_zero() {
            return Err(timed_out());
        }
        self.stream.set_read_timeout(Some(left)).map_err(|_| ReadError::Closed)?;
        let mut part = [0; 16 << 10];
        match self.stream.read(&mut part) {
            Ok(0) => Ok(false),
            Ok(count) => {
                self.buffer.extend_from_slice(&part[..count]);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Err(timed_out())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(_) => Err(ReadError::Closed),
        }
    }

    /// Reads the next request.
    pub fn read(&mut self, limits: ReadLimits) -> Result<HttpRequest, ReadError> {
        if self.buffer.is_empty() {
            match self.fill(Instant::now() + limits.idle) {
                Ok(true) => {}
                Ok(false) | Err(_) => return Err(ReadError::Closed),
            }
        }
        let deadline = Instant::now() + limits.request;
        let Head { mut request, head, length, expects_continue } = loop {
            if let Some(parsed) = parse(&self.buffer, limits.max_body_bytes).map_err(ReadError::Invalid)? {
                break parsed;
            }
            if self.buffer.len() > MAX_HEAD_BYTES {
                let message = format!("the request head exceeds {MAX_HEAD_BYTES} bytes");
                return Err(ReadError::Invalid(ApiError::transport(431, message)));
            }
            if !self.fill(deadline)? {
                return Err(ReadError::Closed);
            }
        };
        if expects_continue && self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").is_err() {
            return Err(ReadError::Closed);
        }
        while self.buffer.len() < head + length {
            if !self.fill(deadline)? {
                return Err(ReadError::Closed);
            }
        }
        let rest = self.buffer.split_off(head + length);
        request.body = self.buffer.split_off(head);
        self.buffer = rest;
        self.chunked = request.chunked;
        Ok(request)
    }

    /// Sends a JSON response.
    pub fn send_json(
        &mut self,
        status: u16,
        body: &serde_json::Value,
        retry_after: Option<u32>,
        keep_alive: bool,
    ) -> io::Result<()> {
        let body = body.to_string();
        let retry_after = retry_after.map(|seconds| format!("Retry-After: {seconds}\r\n")).unwrap_or_default();
        let connection = if keep_alive { "keep-alive" } else { "close" };
        let head = format!(
            "HTTP/1.1 {status} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{retry_after}Connection: {connection}\r\n\r\n",
            reason(status),
            body.len()
        );
        self.stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        self.stream.write_all(head.as_bytes())?;
        self.stream.write_all(body.as_bytes())?;
        self.stream.flush()
    }

    /// Sends the head of a response of server-sent events.
    pub fn begin_events(&mut self, keep_alive: bool) -> io::Result<()> {
        // HTTP/1.0 has no chunks: the end of the connection ends the response, and `keep_alive` is false.
        let framing = if self.chunked { "Transfer-Encoding: chunked\r\n" } else { "" };
        let connection = if keep_alive && self.chunked { "keep-alive" } else { "close" };
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n{framing}Connection: {connection}\r\n\r\n"
        );
        self.stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        // Events are small, and clients wait for each.
        self.stream.set_nodelay(true)?;
        self.stream.write_all(head.as_bytes())
    }

    /// Sends an event.
    pub fn send_event(&mut self, data: &str) -> io::Result<()> {
        let event = format!("data: {data}\n\n");
        let framed = if self.chunked { format!("{:x}\r\n{event}\r\n", event.len()) } else { event };
        self.stream.write_all(framed.as_bytes())?;
        self.stream.flush()
    }

    /// Ends a response of events.
    pub fn end_events(&mut self) -> io::Result<()> {
        if self.chunked {
            self.stream.write_all(b"0\r\n\r\n")?;
        }
        self.stream.flush()
    }

    /// Reads and discards what the client is still sending: closing with unread data would reset the connection, and the client
    /// might lose the response.
    pub fn drain(&mut self) {
        const MAX_BYTES: usize = 16 << 20;
        let deadline = Instant::now() + Duration::from_secs(2);
        let mut discarded = 0;
        if self.stream.shutdown(std::net::Shutdown::Write).is_err() {
            return;
        }
        while discarded < MAX_BYTES && Instant::now() < deadline {
            self.buffer.clear();
            match self.fill(deadline) {
                Ok(true) => discarded += self.buffer.len(),
                _ => return,
            }
        }
    }
}

/// A parsed head.
struct Head {
    /// The request, without its body.
    request: HttpRequest,
    /// Bytes of the head.
    head: usize,
    /// Bytes of the body.
    length: usize,
    /// The client waits for `100 Continue` before it sends the body.
    expects_continue: bool,
}

/// Parses a head; none if it is incomplete.
fn parse(bytes: &[u8], max_body_bytes: usize) -> Result<Option<Head>, ApiError> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let head = match request.parse(bytes) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(ApiError::transport(431, format!("the request has more than {MAX_HEADERS} headers")));
        }
        Err(error) => return Err(ApiError::transport(400, format!("invalid HTTP request: {error}"))),
    };
    let text = |value: &[u8]| String::from_utf8_lossy(value).trim().to_owned();
    let mut length: Option<usize> = None;
    let mut authorization = None;
    let chunked = request.version == Some(1);
    let mut keep_alive = chunked;
    let mut expects_continue = false;
    for header in request.headers.iter() {
        let value = text(header.value);
        match header.name.to_ascii_lowercase().as_str() {
            "content-length" => {
                let parsed = value.parse().ok().filter(|_| value.bytes().all(|byte| byte.is_ascii_digit()));
                let parsed = parsed.ok_or_else(|| ApiError::transport(400, "Content-Length is not a number"))?;
                // Conflicting lengths could smuggle a second request past a proxy.
                if length.is_some_and(|other| other != parsed) {
                    return Err(ApiError::transport(400, "the request has conflicting Content-Length headers"));
                }
                length = Some(parsed);
            }
            "transfer-encoding" => {
                return Err(ApiError::transport(
                    411,
                    "chunked request bodies are not supported: send a Content-Length",
                ));
            }
            "authorization" => authorization = Some(value),
            "connection" => match value.to_ascii_lowercase().as_str() {
                "close" => keep_alive = false,
                "keep-alive" => keep_alive = true,
                _ => {}
            },
            "expect" => expects_continue = value.eq_ignore_ascii_case("100-continue"),
            _ => {}
        }
    }
    let length = length.unwrap_or(0);
    if length > max_body_bytes {
        return Err(ApiError::transport(413, format!("the body has {length} bytes; the limit is {max_body_bytes}")));
    }
    let path = request.path.unwrap_or_default().split('?').next().unwrap_or_default().to_owned();
    let method = request.method.unwrap_or_default().to_owned();
    let expects_continue = expects_continue && bytes.len() < head + length;
    let request = HttpRequest { method, path, authorization, body: Vec::new(), keep_alive, chunked };
    Ok(Some(Head { request, head, length, expects_continue }))
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
