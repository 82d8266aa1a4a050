//! `earnest serve` and clients that mean it no good: each of these once took it down, kept others out, or reached it from a web page.
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::loopback::http::{exchange, get, parsed, post, request};
use crate::loopback::{Server, earnest, tiny, tiny_chat};

const COMPLETIONS: &str = "/v1/completions";
const SMALL: &str = r#"{"prompt": "1+1=", "max_tokens": 2, "temperature": 0}"#;

/// Sends a head and no body, and returns the status of the answer.
fn head_alone(address: &str, head: &str) -> u16 {
    let begun = Instant::now();
    let status = exchange(address, &format!("{head}\r\n\r\n")).0;
    // Far less than the server would wait for the body.
    assert!(begun.elapsed() < Duration::from_secs(15), "{head}: {:?}", begun.elapsed());
    status
}

#[cfg(target_os = "linux")]
#[test]
fn large_requests_cost_little_before_they_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &tiny_chat(folder.path()), None);
    assert_eq!(post(&server.address, COMPLETIONS, SMALL).0, 200);
    let before = server.peak_memory();
    let long = "1 + 2 = 3, ".repeat(5_000_000 / 11);
    let many = "\"x\",".repeat(1_900_000);
    let ids = "7,".repeat(3_500_000);
    let chat = json!({"messages": [{"role": "user", "content": &long}]}).to_string();
    let cases = [
        (COMPLETIONS, format!(r#"{{"prompt": "1+1=", "n": 256, "stop": [{many}"x"]}}"#), "at most 4"),
        (COMPLETIONS, format!(r#"{{"prompt": "1+1=", "n": 256, "stop_token_ids": [{ids}7]}}"#), "stop_token_ids"),
        (COMPLETIONS, format!(r#"{{"prompt": "1+1=", "n": 256, "logit_bias": [{ids}7]}}"#), "logit_bias"),
        (COMPLETIONS, format!(r#"{{"prompt": "1+1=", "n": 256, "stop": "{long}"}}"#), "at most 4"),
        (COMPLETIONS, format!(r#"{{"prompt": [{many}"x"], "n": 256}}"#), "prompt"),
        (COMPLETIONS, format!(r#"{{"prompt": [{ids}7], "n": 256}}"#), "context"),
        (COMPLETIONS, json!({"prompt": &long, "n": 256}).to_string(), "context"),
        ("/v1/chat/completions", chat, "context"),
        (COMPLETIONS, format!(r#"{{"prompt": "1", "unknown": {}1{}}}"#, "[".repeat(400_000), "]".repeat(400_000)), ""),
    ];
    for (path, body, said) in &cases {
        let begun = Instant::now();
        let (status, reply) = post(&server.address, path, body);
        // Nesting in a field that nobody reads is of no concern.
        let expected = if said.is_empty() { 200 } else { 400 };
        assert!(status == expected && reply.contains(said), "{said}: {status} {reply}");
        assert!(begun.elapsed() < Duration::from_secs(30), "{said}: {:?}", begun.elapsed());
    }
    let taken = server.peak_memory() - before;
    assert!(taken < 96 << 20, "{} MiB", taken >> 20);
    assert_eq!(post(&server.address, COMPLETIONS, SMALL).0, 200);
}

#[test]
fn heads_are_checked_before_bodies() {
    let folder = tempfile::tempdir().unwrap();
    let server =
        Server::start_with(folder.path(), &tiny(), Some("sesame-sesame"), &["--allowed-host", "Proxy.example"]);
    let key = "Authorization: Bearer sesame-sesame";
    let json = "Content-Type: application/json\r\nContent-Length: 8000000";
    let post = "POST /v1/completions HTTP/1.1\r\nHost: localhost";
    for (head, status) in [
        (format!("{post}\r\n{json}"), 401),
        (format!("{post}\r\n{json}\r\nAuthorization: Bearer sesame"), 401),
        (format!("{post}\r\n{json}\r\nAuthorization: sesame-sesame"), 401),
        // What a page in a browser can send without asking first.
        (format!("{post}\r\n{key}\r\nContent-Type: text/plain\r\nContent-Length: 8000000"), 415),
        (format!("{post}\r\n{key}\r\nContent-Type: text/plain; x=application/json\r\nContent-Length: 8000000"), 415),
        (format!("{post}\r\n{key}\r\nContent-Length: 8000000"), 415),
        (format!("{post}\r\n{key}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 80"), 415),
        (format!("{post}\r\n{key}\r\nContent-Type: application/json\r\nContent-Length: 9000000"), 413),
        (format!("OPTIONS{}\r\nOrigin: http://localhost:3000\r\nConnection: close\r\n{key}", &post[4..]), 405),
    ] {
        assert_eq!(head_alone(&server.address, &head), status, "{head}");
    }
    let ask = |lines: &str| {
        head_alone(&server.address, &format!("GET /v1/models HTTP/1.1\r\n{lines}\r\nConnection: close\r\n{key}"))
    };
    for host in ["localhost", "LOCALHOST:8000", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:80", "proxy.example:8000"] {
        assert_eq!(ask(&format!("Host: {host}")), 200, "{host}");
    }
    for host in [
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "xlocalhost",
        "192.0.2.1",
        "0.0.0.0",
        "[2001:db8::1]",
        "proxy.example.evil",
    ] {
        assert_eq!(ask(&format!("Host: {host}")), 403, "{host}");
        // Nor is the health of the server their business.
        let health = format!("GET /health HTTP/1.1\r\nHost: {host}\r\nConnection: close");
        assert_eq!(head_alone(&server.address, &health), 403, "{host}");
    }
    for (lines, status) in [
        ("X: y", 400),
        ("Host: localhost\r\nHost: localhost", 400),
        ("Host: localhost@evil.example", 403),
        ("Host: a b", 400),
        ("Host: localhost\r\nOrigin: http://localhost:3000", 200),
        ("Host: localhost\r\nOrigin: https://127.0.0.1", 200),
        ("Host: localhost\r\nOrigin: https://proxy.example", 200),
        ("Host: localhost\r\nOrigin: https://evil.example", 403),
        ("Host: localhost\r\nOrigin: http://localhost.evil.example", 403),
        ("Host: localhost\r\nOrigin: null", 403),
        ("Host: localhost\r\nOrigin: localhost", 403),
    ] {
        assert_eq!(ask(lines), status, "{lines}");
    }
    let absolute = |host: &str| {
        let line = format!("GET http://{host}/v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{key}");
        head_alone(&server.address, &line)
    };
    assert_eq!([absolute("localhost"), absolute("evil.example")], [200, 403]);
}

#[test]
fn other_addresses_want_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let model = tiny();
    let words = ["serve", "--host", "0.0.0.0", "--port", "0", "--model", model.to_str().unwrap()];
    let output = earnest(folder.path(), &words).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("EARNEST_SERVE_KEY") && said.contains("0.0.0.0"), "{said}");
    let output = earnest(folder.path(), &["serve", "--allowed-host", "http://box.example:80"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--allowed-host"), "{output:?}");
    // With one, any name of the machine is right.
    let server = Server::start_with(folder.path(), &model, Some("sesame-sesame"), &["--host", "0.0.0.0"]);
    let ask = |lines: &str| {
        let address = server.address.replace("0.0.0.0", "127.0.0.1");
        let head = format!("GET /v1/models HTTP/1.1\r\nHost: box.example\r\n{lines}Connection: close\r\n\r\n");
        exchange(&address, &head).0
    };
    assert_eq!([ask(""), ask("Authorization: Bearer sesame-sesame\r\n")], [401, 200]);
}

#[test]
fn slow_clients_keep_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &tiny(), None);
    let starts = [
        // Nothing at all, half a head, and half a body.
        "",
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n",
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
    ];
    for start in starts {
        let slow: Vec<TcpStream> = (0..520)
            .map(|_| {
                let mut stream = TcpStream::connect(&server.address).unwrap();
                stream.write_all(start.as_bytes()).unwrap();
                stream
            })
            .collect();
        let begun = Instant::now();
        for _ in 0..5 {
            assert_eq!(post(&server.address, COMPLETIONS, SMALL).0, 200, "{start}");
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{start}: {:?}", begun.elapsed());
        drop(slow);
    }
    let (_, metrics) = get(&server.address, "/metrics");
    let evicted = metrics.lines().find_map(|line| line.strip_prefix("earnest_connections_evicted_total ")).unwrap();
    assert!(evicted.parse::<u64>().unwrap() > 0, "{metrics}");
}

#[test]
fn requests_share_a_budget_of_memory() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &tiny(), None, &["--request-memory", "1MiB"]);
    // A megabyte would need eight.
    let (status, reply) =
        parsed(post(&server.address, COMPLETIONS, &json!({"prompt": "1".repeat(1 << 20)}).to_string()));
    assert_eq!(status, 413, "{reply}");
    assert!(reply.to_string().contains("`request_memory`"), "{reply}");
    // So would log-probabilities of many choices.
    let wide = json!({"prompt": "1+1=", "n": 200, "max_tokens": 100, "logprobs": 20, "temperature": 1}).to_string();
    assert_eq!(post(&server.address, COMPLETIONS, &wide).0, 413);
    // One that does not end takes most of it.
    let large = json!({"prompt": "1+1=", "max_tokens": 2, "user": "u".repeat(100_000)}).to_string();
    let whole = request(COMPLETIONS, &large);
    let mut unfinished = TcpStream::connect(&server.address).unwrap();
    unfinished.write_all(&whole.as_bytes()[..50_000]).unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    let used = || {
        let (_, metrics) = get(&server.address, "/metrics");
        let used = metrics.lines().find_map(|line| line.strip_prefix("earnest_request_memory_bytes ")).unwrap();
        used.parse::<usize>().unwrap()
    };
    while used() == 0 {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(10));
    }
    // Small ones do not wait for it; a large one does, and is told to come back.
    assert_eq!(post(&server.address, COMPLETIONS, SMALL).0, 200);
    let mut waiting = TcpStream::connect(&server.address).unwrap();
    waiting.write_all(whole.as_bytes()).unwrap();
    let mut reply = String::new();
    waiting.read_to_string(&mut reply).unwrap();
    assert!(
        reply.starts_with("HTTP/1.1 429") && reply.to_ascii_lowercase().contains("\r\nretry-after: 1\r\n"),
        "{reply}"
    );
    drop(unfinished);
    assert_eq!(post(&server.address, COMPLETIONS, &large).0, 200);
    assert_eq!(used(), 0);
}

#[test]
fn models_and_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &tiny(), None, &["--served-name", "org/tiny llama"]);
    let (status, models) = parsed(get(&server.address, "/v1/models"));
    assert_eq!((status, &models["data"][0]["id"]), (200, &json!("org/tiny llama")));
    let (status, model) = parsed(get(&server.address, "/v1/models/org/tiny%20llama"));
    assert_eq!((status, &model), (200, &models["data"][0]));
    let (status, unknown) = parsed(get(&server.address, "/v1/models/gpt-x"));
    assert_eq!((status, &unknown["error"]["code"]), (404, &json!("model_not_found")));
    assert_eq!(get(&server.address, "/health/").0, 200);
    let (status, reply) = parsed(post(&server.address, "/v1/models", "{}"));
    assert_eq!(status, 405, "{reply}");

    assert_eq!(post(&server.address, COMPLETIONS, SMALL).0, 200);
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let (status, metrics) = get(&server.address, "/metrics");
        assert_eq!(status, 200);
        // The engine's own counters follow its next step.
        if metrics.contains("\nearnest_generated_tokens_total 2\n") {
            for line in [
                "earnest_http_responses_total{status=\"200\"} ",
                "# TYPE earnest_completions_total counter\nearnest_completions_total 1\n",
                "# TYPE earnest_kv_blocks gauge\n",
                "earnest_http_responses_total{status=\"404\"} 1\n",
            ] {
                assert!(metrics.contains(line), "{line}: {metrics}");
            }
            break;
        }
        assert!(Instant::now() < deadline, "{metrics}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
