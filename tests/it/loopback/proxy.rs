//! A proxy with faults, for tests.
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Fault that a proxy causes for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Closes the connection without a reply.
    Refuse,
    /// Sends half of the server's answer.
    CutReply,
    TooMany,
    ServerError,
    /// Silent for longer than the client waits.
    Silent,
    Malformed,
    Truncated,
    WrongModel,
    /// 400 with the client's own `Authorization` in its message.
    EchoKey,
    /// Delays the answer.
    Late,
}

/// A proxy whose faults depend on how many requests for completions it has seen.
pub struct Proxy {
    pub address: String,
    pub seen: Arc<AtomicUsize>,
    /// Answer of `/version`; the server's own if none.
    pub version: Arc<Mutex<Option<String>>>,
    stop: Arc<AtomicBool>,
}

impl Proxy {
    pub fn start(target: &str, fault: impl Fn(usize) -> Fault + Send + Sync + 'static) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (seen, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, stopped, target) = (Arc::clone(&seen), Arc::clone(&stop), target.to_owned());
        let fault = Arc::new(fault);
        let version: Arc<Mutex<Option<String>>> = Arc::default();
        let says = Arc::clone(&version);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let (count, target, fault) = (Arc::clone(&count), target.clone(), Arc::clone(&fault));
                let says = Arc::clone(&says);
                std::thread::spawn(move || relay(stream.unwrap(), &target, &count, fault.as_ref(), &says));
            }
        });
        Proxy { address, seen, version, stop }
    }

    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(&self.address);
    }
}

/// One request, one connection.
fn relay(
    mut client: TcpStream,
    target: &str,
    count: &AtomicUsize,
    fault: &dyn Fn(usize) -> Fault,
    version: &Mutex<Option<String>>,
) {
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let Some(request) = read_request(&mut client) else { return };
    let head = String::from_utf8_lossy(&request).into_owned();
    let fault = if head.starts_with("POST") { fault(count.fetch_add(1, Ordering::SeqCst)) } else { Fault::None };
    let answer = |client: &mut TcpStream, status: &str, extra: &str, body: &str| {
        let length = body.len();
        let reply = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{extra}Connection: close\r\n\r\n{body}");
        let _ = client.write_all(reply.as_bytes());
    };
    let says = version.lock().unwrap().clone();
    if let (Some(version), true) = (says, head.starts_with("GET /version ")) {
        return answer(&mut client, "200 OK", "", &serde_json::json!({"version": version}).to_string());
    }
    match fault {
        Fault::Refuse => return,
        Fault::TooMany => {
            return answer(
                &mut client,
                "429 Too Many Requests",
                "Retry-After: 0.1\r\n",
                r#"{"error": {"message": "slow down"}}"#,
            );
        }
        Fault::ServerError => return answer(&mut client, "500 Internal Server Error", "", "<html>oops</html>"),
        Fault::Silent => return std::thread::sleep(Duration::from_secs(4)),
        Fault::Malformed => {
            return answer(&mut client, "200 OK", "Content-Type: application/json\r\n", "{\"choices\": [{\"tex");
        }
        Fault::EchoKey => {
            let line =
                head.lines().find(|line| line.to_ascii_lowercase().starts_with("authorization")).unwrap_or("none");
            let body = serde_json::json!({"error": {"message": format!("bad request with {line}")}}).to_string();
            return answer(&mut client, "400 Bad Request", "", &body);
        }
        Fault::Late => std::thread::sleep(Duration::from_millis(60)),
        Fault::None | Fault::CutReply | Fault::Truncated | Fault::WrongModel => {}
    }
    let mut server = TcpStream::connect(target).unwrap();
    let closing = head_without_keep_alive(&request);
    server.write_all(&closing).unwrap();
    let mut reply = Vec::new();
    let _ = server.read_to_end(&mut reply);
    match fault {
        Fault::CutReply => {
            let _ = client.write_all(&reply[..reply.len() / 2]);
            let _ = client.shutdown(Shutdown::Both);
        }
        Fault::Truncated => {
            // A whole reply whose JSON ends in the middle.
            let text = String::from_utf8(reply).unwrap();
            let body = text.split_once("\r\n\r\n").unwrap().1;
            answer(&mut client, "200 OK", "Content-Type: application/json\r\n", &body[..body.len() / 2]);
        }
        Fault::WrongModel => {
            let text = String::from_utf8(reply).unwrap();
            let body = text.split_once("\r\n\r\n").unwrap().1;
            let mut parsed: serde_json::Value = serde_json::from_str(body).unwrap();
            parsed["model"] = "somebody-else".into();
            parsed["choices"][0]["text"] = "999".into();
            answer(&mut client, "200 OK", "Content-Type: application/json\r\n", &parsed.to_string());
        }
        _ => {
            let _ = client.write_all(&reply);
        }
    }
}

fn read_request(client: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        let count = client.read(&mut part).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&part[..count]);
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(bytes);
            }
        }
    }
}

fn head_without_keep_alive(request: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(request.to_vec()).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let head: Vec<&str> = head.lines().filter(|line| !line.to_ascii_lowercase().starts_with("connection:")).collect();
    format!("{}\r\nConnection: close\r\n\r\n{body}", head.join("\r\n")).into_bytes()
}
