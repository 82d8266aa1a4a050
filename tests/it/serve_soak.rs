//! `earnest serve` under many clients, good and bad ones: all good ones are answered, and the memory stays bounded.
//!
//! A few seconds here. By hand, ten minutes of 200 clients, with what the server used:
//! `EARNEST_SOAK_SECONDS=600 EARNEST_SOAK_CLIENTS=200 cargo test --release --test it -- serve_soak --nocapture`.
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::loopback::http::{request, split};
use crate::loopback::{Server, tiny};

/// Memory for requests that the server is given.
const REQUEST_MEMORY: usize = 64 << 20;

/// What the server may use beside that: the model, its cache, buffers of connections, a few texts while they are tokenised, and what the allocator keeps.
const BESIDE: usize = 160 << 20;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// A sequence of numbers that differs between clients and is the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(120))).unwrap();
    stream
}

/// One question on a connection of its own; the texts of its choices, or what was answered instead.
fn ask(address: &str, body: &Value) -> Result<Vec<String>, String> {
    let mut stream = connect(address);
    stream.write_all(request("/v1/completions", &body.to_string()).as_bytes()).map_err(|error| error.to_string())?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).map_err(|error| format!("{error} after {reply:?}"))?;
    let Some((200, body)) = split(&reply) else { return Err(reply) };
    let body: Value = serde_json::from_str(&body).map_err(|error| error.to_string())?;
    let choices = body["choices"].as_array().ok_or_else(|| body.to_string())?;
    Ok(choices.iter().map(|choice| choice["text"].as_str().unwrap_or_default().to_owned()).collect())
}

fn question(number: u64) -> Value {
    json!({"prompt": format!("{number}+{number}="), "max_tokens": 4, "temperature": 0.9, "seed": number, "n": 2})
}

/// Does harm in one of many ways, and never minds the answer.
fn misbehave(address: &str, numbers: &mut Numbers) {
    let mut stream = connect(address);
    let _ = stream.set_read_timeout(Some(Duration::from_millis(300 + numbers.below(3000))));
    let large = || "1 + 2 = 3, ".repeat(300_000);
    let head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let post = |body: String| request("/v1/completions", &body);
    let bytes = match numbers.below(14) {
        0 => String::new(),
        1 => head.to_owned(),
        2 => format!("{head}Content-Length: 100\r\n\r\n{{"),
        3 => format!("{head}Content-Length: 8000000\r\n\r\n{}", "[".repeat(1 << 20)),
        4 => post(format!("{{\"prompt\": \"1\", \"n\": 256, \"stop\": [{}\"x\"]}}", "\"x\",".repeat(700_000))),
        5 => post(json!({"prompt": large(), "n": 256, "echo": true}).to_string()),
        6 => post(format!("{{\"prompt\": [{}7], \"n\": 256}}", "7,".repeat(1_000_000))),
        7 => "\x16\x03\x01\x02\x00\x01\x00\u{1}garbage".repeat(5000),
        8 => request("/v1/completions", "{\"prompt\": \"1\"}").replace("localhost", "evil.example"),
        9 => request("/v1/completions", "{\"prompt\": \"1\"}").replace("application/json", "text/plain"),
        10 => format!("GET /health HTTP/1.1\r\n{}", "a: b\r\n".repeat(20_000)),
        // Many answers that are not read, and one that is left in the middle.
        11 => request("/v1/models", "").replace("Connection: close\r\n", "").repeat(500),
        12 => post(
            json!({"prompt": "1", "n": 64, "max_tokens": 200, "logprobs": 5, "ignore_eos": true, "stream": true})
                .to_string(),
        ),
        _ => post(json!({"prompt": "1+1=", "n": 8, "max_tokens": 64, "echo": true, "logprobs": 20}).to_string()),
    };
    let _ = stream.write_all(bytes.as_bytes());
    if numbers.below(3) == 0 {
        let _ = stream.shutdown(Shutdown::Write);
    }
    let _ = stream.read(&mut [0; 200]);
}

#[test]
fn good_clients_are_answered_among_bad_ones() {
    let seconds = setting("EARNEST_SOAK_SECONDS", 8);
    let clients = setting("EARNEST_SOAK_CLIENTS", 24);
    let folder = tempfile::tempdir().unwrap();
    let memory = format!("{}MiB", REQUEST_MEMORY >> 20);
    let words = ["--request-memory", memory.as_str(), "--kv-memory", "32MiB"];
    let server = Server::start_with(folder.path(), &tiny(), None, &words);
    let expected: Vec<Vec<String>> = (0..20).map(|number| ask(&server.address, &question(number)).unwrap()).collect();

    let end = Instant::now() + Duration::from_secs(seconds);
    let (good, bad) = (AtomicU64::new(0), AtomicU64::new(0));
    let longest = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for client in 0..clients {
            let (address, expected, good, bad, longest) = (&server.address, &expected, &good, &bad, &longest);
            scope.spawn(move || {
                let mut numbers = Numbers(client + 1);
                while Instant::now() < end {
                    // Every second client is a good one.
                    if client % 2 == 0 {
                        let number = numbers.below(20);
                        let begun = Instant::now();
                        let answer = ask(address, &question(number));
                        assert_eq!(answer.as_ref(), Ok(&expected[number as usize]), "question {number}");
                        longest.fetch_max(begun.elapsed().as_millis() as u64, Ordering::Relaxed);
                        good.fetch_add(1, Ordering::Relaxed);
                    } else {
                        misbehave(address, &mut numbers);
                        bad.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let (good, bad) = (good.into_inner(), bad.into_inner());
    assert!(good >= clients / 2 && bad >= clients / 2, "{good} good ones, {bad} bad ones");
    assert_eq!(ask(&server.address, &question(3)).as_ref(), Ok(&expected[3]));
    println!(
        "{seconds} s, {clients} clients: {good} good ones, all answered, {bad} bad ones; longest answer {longest:?} ms"
    );
    #[cfg(target_os = "linux")]
    {
        let peak = server.peak_memory();
        println!("peak memory {} MiB, of which {} MiB are for requests", peak >> 20, REQUEST_MEMORY >> 20);
        assert!(peak < REQUEST_MEMORY + BESIDE, "{} MiB", peak >> 20);
    }
}
