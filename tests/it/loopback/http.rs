//! Raw exchanges with a server, for tests.
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// One exchange of raw bytes: status and body.
pub fn exchange(address: &str, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // A server that refuses early may close before it has read all of a long request.
    let _ = stream.write_all(request.as_bytes());
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    split(&reply).unwrap_or_else(|| panic!("{reply:?}"))
}

/// Status and body of a reply.
pub fn split(reply: &str) -> Option<(u16, String)> {
    let status = reply.split(' ').nth(1)?.parse().ok()?;
    Some((status, reply.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default()))
}

/// A request for one answer, of JSON.
pub fn request(path: &str, body: &str) -> String {
    let length = body.len();
    let head = "Host: localhost\r\nContent-Type: application/json\r\nConnection: close";
    format!("POST {path} HTTP/1.1\r\n{head}\r\nContent-Length: {length}\r\n\r\n{body}")
}

pub fn post(address: &str, path: &str, body: &str) -> (u16, String) {
    exchange(address, &request(path, body))
}

pub fn get(address: &str, path: &str) -> (u16, String) {
    exchange(address, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
}

pub fn parsed((status, body): (u16, String)) -> (u16, Value) {
    (status, serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}")))
}
