//! `earnest serve`, end to end: the protocol, bad requests, hostile ones, and the end.
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::loopback::http::{exchange, get, parsed, post};
use crate::loopback::{Server, earnest, tiny, tiny_chat};

/// The head of a request for completions, without its length.
const HEAD: &str = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";

/// The chunks of a stream, which must end as one ends; HTTP's framing is taken off.
fn stream(address: &str, path: &str, body: &Value) -> Vec<Value> {
    let (status, framed) = post(address, path, &body.to_string());
    assert_eq!(status, 200, "{framed}");
    let (mut rest, mut whole) = (framed.as_str(), String::new());
    loop {
        let (length, after) = rest.split_once("\r\n").unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        whole.push_str(&after[..length]);
        rest = after[length..].strip_prefix("\r\n").unwrap();
        if length == 0 {
            break;
        }
    }
    assert_eq!(rest, "");
    let mut events: Vec<&str> =
        whole.split_terminator("\n\n").map(|event| event.strip_prefix("data: ").unwrap()).collect();
    assert_eq!(events.pop(), Some("[DONE]"));
    events.iter().map(|event| serde_json::from_str(event).unwrap()).collect()
}

#[test]
fn streams_say_what_whole_answers_say() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &tiny(), None);
    let ask = |body: &Value| parsed(post(&server.address, "/v1/completions", &body.to_string())).1;
    let plain = json!({
        "prompt": ["1+1=", "23+5=", "7*8="], "n": 2, "max_tokens": 24, "temperature": 1.2, "seed": 3,
        "return_token_ids": true
    });
    let text = ask(&plain)["choices"][0]["text"].as_str().unwrap().to_owned();
    // A stop string that begins as something that often comes, so that text must be kept back, and one that does come.
    let middle: String = text.chars().skip(text.chars().count() / 2).take(3).collect();
    let first: String = text.chars().take(1).collect();
    for stop in [json!([]), json!([middle]), json!([format!("{first}never seen"), "\u{1}"])] {
        let mut body = plain.clone();
        body["stop"] = stop.clone();
        let whole = ask(&body);
        body["stream"] = json!(true);
        let chunks = stream(&server.address, "/v1/completions", &body);
        assert!(chunks.iter().all(|chunk| chunk["id"] == chunks[0]["id"] && chunk.get("usage").is_none()));
        for (index, choice) in whole["choices"].as_array().unwrap().iter().enumerate() {
            let parts: Vec<&Value> =
                chunks.iter().map(|chunk| &chunk["choices"][0]).filter(|part| part["index"] == index).collect();
            let joined: String = parts.iter().map(|part| part["text"].as_str().unwrap()).collect();
            assert_eq!(joined, choice["text"].as_str().unwrap(), "{stop}");
            let ids: Vec<Value> = parts.iter().flat_map(|part| part["token_ids"].as_array().unwrap().clone()).collect();
            assert_eq!(json!(ids), choice["token_ids"], "{stop}");
            assert_eq!(parts[0]["prompt_token_ids"], choice["prompt_token_ids"]);
            let (end, before) = parts.split_last().unwrap();
            assert_eq!(end["finish_reason"], choice["finish_reason"], "{stop}");
            assert!(before.iter().all(|part| part["finish_reason"].is_null() && part.get("earnest_finish").is_none()));
        }
    }
    // Clients of HTTP/1.0 read to the end of the connection.
    let body = json!({"prompt": "1+1=", "max_tokens": 3, "temperature": 0, "stream": true}).to_string();
    let request = format!(
        "POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let (status, events) = exchange(&server.address, &request);
    assert_eq!(status, 200);
    assert!(events.starts_with("data: {") && events.ends_with("data: [DONE]\n\n"), "{events}");
    // What is refused before the first event has its status.
    let mut wrong = plain;
    wrong["stream"] = json!(true);
    wrong["max_tokens"] = json!(100_000);
    let (status, reply) = parsed(post(&server.address, "/v1/completions", &wrong.to_string()));
    assert_eq!((status, &reply["error"]["type"]), (400, &json!("invalid_request_error")), "{reply}");
    // A client that reads one event and leaves takes the rest back: the server goes on for others.
    let long = json!({"prompt": "1+1=", "max_tokens": 400, "temperature": 1.0, "stream": true, "ignore_eos": true})
        .to_string();
    let mut leaving = TcpStream::connect(&server.address).unwrap();
    let request = format!("{HEAD}Content-Length: {}\r\n\r\n{long}", long.len());
    leaving.write_all(request.as_bytes()).unwrap();
    let mut some = [0; 300];
    leaving.read_exact(&mut some).unwrap();
    drop(leaving);
    assert_eq!(get(&server.address, "/health").0, 200);
    assert_eq!(ask(&json!({"prompt": "1+1=", "max_tokens": 2}))["choices"].as_array().unwrap().len(), 1);
}

#[test]
fn completions_of_text_and_of_ids() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &tiny(), None);
    let ask = |body: Value| parsed(post(&server.address, "/v1/completions", &body.to_string()));
    let greedy = json!({"prompt": "12+30=", "max_tokens": 5, "temperature": 0, "return_token_ids": true});
    let (status, reply) = ask(greedy.clone());
    assert_eq!(status, 200, "{reply}");
    assert_eq!((&reply["object"], &reply["model"]), (&json!("text_completion"), &json!("llama")));
    let choice = &reply["choices"][0];
    let ids = choice["prompt_token_ids"].clone();
    assert_eq!(ids[0], 1, "one BOS, which the tokenizer adds");
    assert_ne!(ids[1], 1);
    assert_eq!(reply["usage"]["prompt_tokens"], ids.as_array().unwrap().len());
    assert_eq!(choice["token_ids"].as_array().unwrap().len(), 5);
    // The same ids give the same text.
    let mut by_ids = greedy.clone();
    by_ids["prompt"] = ids;
    assert_eq!(ask(by_ids).1["choices"][0]["text"], choice["text"]);
    // Several prompts, several completions of each, in order; a seed repeats itself, and the two of one prompt differ.
    let several = json!({"prompt": ["1+1=", "2+2="], "n": 2, "max_tokens": 6, "temperature": 1.5, "seed": 7});
    let (_, first) = ask(several.clone());
    let texts = |reply: &Value| -> Vec<String> {
        reply["choices"].as_array().unwrap().iter().map(|choice| choice["text"].to_string()).collect()
    };
    assert_eq!(texts(&first).len(), 4);
    assert_eq!(texts(&ask(several).1), texts(&first));
    assert_ne!(texts(&first)[0], texts(&first)[1]);
    let indices: Vec<u64> =
        first["choices"].as_array().unwrap().iter().map(|choice| choice["index"].as_u64().unwrap()).collect();
    assert_eq!(indices, [0, 1, 2, 3]);
    // Log-probabilities of the greedy choice are the largest.
    let (_, scored) = ask(
        json!({"prompt": "12+30=", "max_tokens": 3, "temperature": 0, "logprobs": 2, "return_tokens_as_token_ids": true}),
    );
    let logprobs = &scored["choices"][0]["logprobs"];
    for index in 0..3 {
        let chosen = logprobs["token_logprobs"][index].as_f64().unwrap();
        let top = logprobs["top_logprobs"][index].as_object().unwrap();
        assert_eq!(top.len(), 2);
        assert!(top.values().all(|value| value.as_f64().unwrap() <= chosen), "{logprobs}");
        assert!(logprobs["tokens"][index].as_str().unwrap().starts_with("token_id:"));
    }
    let (_, named) = ask(json!({"prompt": "12+30=", "max_tokens": 3, "temperature": 0, "logprobs": 1}));
    let text: Vec<char> = named["choices"][0]["text"].as_str().unwrap().chars().collect();
    let offsets = named["choices"][0]["logprobs"]["text_offset"].as_array().unwrap();
    let offsets: Vec<usize> = offsets.iter().map(|offset| offset.as_u64().unwrap() as usize).collect();
    assert!(offsets.len() == 3 && offsets[0] == 0 && offsets.is_sorted() && offsets[2] <= text.len(), "{offsets:?}");
    // A stop string that occurs ends the text before it.
    let whole = choice["text"].as_str().unwrap();
    let stop: String = whole.chars().skip(1).take(1).collect();
    let mut stopped = greedy;
    stopped["stop"] = json!([stop]);
    let (_, reply) = ask(stopped.clone());
    assert_eq!(reply["choices"][0]["text"].as_str().unwrap(), whole.split_once(&stop).unwrap().0);
    assert_eq!(reply["choices"][0]["earnest_finish"], "stop_string");
    // Wanted, it ends the text itself.
    stopped["include_stop_str_in_output"] = json!(true);
    let (_, reply) = ask(stopped);
    let kept = format!("{}{stop}", whole.split_once(&stop).unwrap().0);
    assert_eq!(reply["choices"][0]["text"].as_str().unwrap(), kept);
}

#[test]
fn prompts_are_echoed_with_their_log_probabilities() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &tiny(), None);
    let ask = |body: Value| {
        let (status, reply) = parsed(post(&server.address, "/v1/completions", &body.to_string()));
        assert_eq!(status, 200, "{reply}");
        reply
    };
    // Characters of several tokens in the middle.
    let prompt = "Prix : 3 € 🥚 = 12";
    let scored = ask(json!({"prompt": prompt, "echo": true, "logprobs": 1, "max_tokens": 0, "return_token_ids": true}));
    let choice = &scored["choices"][0];
    assert_eq!((&choice["text"], &choice["finish_reason"]), (&json!(prompt), &json!("length")));
    assert_eq!(scored["usage"]["completion_tokens"], 0);
    let list = |name: &str| choice["logprobs"][name].as_array().unwrap().clone();
    let (tokens, values, offsets) = (list("tokens"), list("token_logprobs"), list("text_offset"));
    let count = choice["prompt_token_ids"].as_array().unwrap().len();
    assert_eq!([tokens.len(), values.len(), offsets.len(), list("top_logprobs").len()], [count; 4]);
    assert!(values[0].is_null() && values[1..].iter().all(|value| value.as_f64().unwrap() < 0.0));
    // The most probable token and the one that stands there, which has the log-probability of the list.
    let top = list("top_logprobs");
    assert!(top[0].is_null());
    for ((token, value), listed) in tokens.iter().zip(&values).zip(&top).skip(1) {
        let listed = listed.as_object().unwrap();
        let best = listed.values().map(|value| value.as_f64().unwrap()).fold(f64::NEG_INFINITY, f64::max);
        assert!((1..=2).contains(&listed.len()) && best >= value.as_f64().unwrap(), "{listed:?}");
        assert!(listed[token.as_str().unwrap()].as_f64() >= value.as_f64(), "{listed:?}");
    }
    // After BOS, which is no part of the text.
    let joined: String = tokens[1..].iter().map(|token| token.as_str().unwrap()).collect();
    assert_eq!(joined, prompt);
    let mut at = 0;
    for (token, offset) in tokens[1..].iter().zip(&offsets[1..]) {
        assert_eq!(offset, at);
        at += token.as_str().unwrap().chars().count();
    }
    // With new tokens after it, the prompt's own are the same.
    let longer = ask(json!({"prompt": prompt, "echo": true, "logprobs": 2, "max_tokens": 3, "temperature": 0}));
    let plain = ask(json!({"prompt": prompt, "logprobs": 2, "max_tokens": 3, "temperature": 0}));
    let longer = &longer["choices"][0];
    let text = format!("{prompt}{}", plain["choices"][0]["text"].as_str().unwrap());
    assert_eq!(longer["text"], text);
    let after = plain["choices"][0]["logprobs"]["token_logprobs"].as_array().unwrap();
    assert_eq!(longer["logprobs"]["token_logprobs"], json!([&values[..], &after[..]].concat()));
    assert_eq!(longer["logprobs"]["text_offset"][count], prompt.chars().count());
    assert!(longer["logprobs"]["top_logprobs"][count].is_object());
    // Without log-probabilities, only the text.
    let text_only = ask(json!({"prompt": prompt, "echo": true, "max_tokens": 3, "temperature": 0}));
    assert_eq!((&text_only["choices"][0]["text"], &text_only["choices"][0]["logprobs"]), (&json!(text), &Value::Null));
}

#[test]
fn chat_models_health_and_streams() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &tiny_chat(folder.path()), None);
    assert_eq!(parsed(get(&server.address, "/health")), (200, json!({"status": "ok"})));
    let (_, models) = parsed(get(&server.address, "/v1/models"));
    assert_eq!(models["data"][0]["id"], "tiny-chat");
    assert_eq!(models["data"][0]["max_model_len"], 512);
    let (_, version) = parsed(get(&server.address, "/version"));
    assert!(version["version"].as_str().unwrap().contains("native"));
    let body = json!({
        "model": "tiny-chat", "messages": [{"role": "user", "content": [{"type": "text", "text": "1+1?"}]}],
        "max_tokens": 4, "temperature": 0, "logprobs": true, "top_logprobs": 2
    });
    let (status, reply) = parsed(post(&server.address, "/v1/chat/completions", &body.to_string()));
    assert_eq!(status, 200, "{reply}");
    let message = &reply["choices"][0]["message"];
    assert_eq!(message["role"], "assistant");
    assert_eq!(reply["choices"][0]["logprobs"]["content"][0]["top_logprobs"].as_array().unwrap().len(), 2);
    let mut streamed = body.clone();
    streamed["stream"] = json!(true);
    streamed["stream_options"] = json!({"include_usage": true});
    let chunks = stream(&server.address, "/v1/chat/completions", &streamed);
    let last = chunks.last().unwrap();
    assert_eq!(last["usage"]["total_tokens"], reply["usage"]["total_tokens"]);
    assert!(chunks[0]["usage"].is_null() && chunks[0]["choices"][0]["delta"]["role"] == "assistant");
    let parts = &chunks[..chunks.len() - 1];
    let joined: String = parts.iter().map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().unwrap()).collect();
    assert_eq!(joined, message["content"].as_str().unwrap());
    let probabilities: Vec<Value> =
        parts.iter().flat_map(|chunk| chunk["choices"][0]["logprobs"]["content"].as_array().unwrap().clone()).collect();
    assert_eq!(json!(probabilities), reply["choices"][0]["logprobs"]["content"]);
    assert!(parts.len() >= 3, "four tokens come in several parts: {parts:?}");
    // The streamed one found the prompt in the cache.
    assert!(last["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64() > Some(0));
}

#[test]
fn bad_requests_get_openais_errors() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &tiny(), None);
    let long: Vec<u32> = vec![5; 600];
    let cases = [
        ("{", 400, "not JSON"),
        ("[]", 400, "not a JSON object"),
        ("{}", 400, "prompt"),
        (r#"{"prompt": 5}"#, 400, "prompt"),
        (r#"{"prompt": []}"#, 400, "empty"),
        (r#"{"prompt": [1, "a"]}"#, 400, "prompt"),
        (r#"{"prompt": [99999]}"#, 400, "vocabulary"),
        (r#"{"prompt": [-1]}"#, 400, "prompt"),
        (r#"{"prompt": "a", "model": "gpt-x"}"#, 404, "not served here"),
        (r#"{"prompt": "a", "temperature": "hot"}"#, 400, "temperature"),
        (r#"{"prompt": "a", "temperature": -1}"#, 400, "temperature"),
        (r#"{"prompt": "a", "top_p": 0}"#, 400, "top_p"),
        (r#"{"prompt": "a", "max_tokens": 0}"#, 400, "max_tokens"),
        (r#"{"prompt": "a", "max_tokens": 18446744073709551615}"#, 400, "context"),
        (r#"{"prompt": "a", "n": 0}"#, 400, "n:"),
        (r#"{"prompt": "a", "n": 1000000}"#, 400, "n:"),
        (r#"{"prompt": "a", "logprobs": 50}"#, 400, "logprobs"),
        (r#"{"prompt": "a", "echo": 1}"#, 400, "echo"),
        (r#"{"prompt": "a", "echo": true, "stream": true}"#, 400, "echo"),
        (r#"{"prompt": "a", "echo": true, "max_tokens": 0}"#, 400, "max_tokens"),
        (r#"{"prompt": "a", "presence_penalty": 1}"#, 400, "presence_penalty"),
        (r#"{"prompt": "a", "seed": 1.5}"#, 400, "seed"),
        (r#"{"prompt": "a", "sampling_key": "00"}"#, 400, "sampling_key"),
        (r#"{"prompt": "a", "stop": 3}"#, 400, "stop"),
        (r#"{"prompt": "a", "stop": ["1", "2", "3", "4", "5"]}"#, 400, "at most 4"),
        (r#"{"prompt": "a", "stop": ["1", 2]}"#, 400, "stop"),
        (r#"{"prompt": "a", "stop_token_ids": [1, -2]}"#, 400, "stop_token_ids"),
        (r#"{"prompt": [[1], [2, "a"]]}"#, 400, "prompt"),
        (r#"{"prompt": "a", "response_format": {"type": "json_object"}}"#, 400, "response_format"),
        (r#"{"prompt": "a", "tools": [{"type": "function"}]}"#, 400, "tools"),
        (r#"{"prompt": "a"} trailing"#, 400, "not JSON"),
    ];
    for (body, status, said) in cases {
        let (found, reply) = parsed(post(&server.address, "/v1/completions", body));
        assert_eq!(found, status, "{body}: {reply}");
        let message = reply["error"]["message"].as_str().unwrap();
        assert!(message.contains(said), "{body}: {message}");
        assert!(reply["error"]["type"].is_string());
    }
    let too_long = json!({"prompt": long}).to_string();
    assert_eq!(post(&server.address, "/v1/completions", &too_long).0, 400);
    // The tiny model has no chat template.
    let (status, reply) =
        parsed(post(&server.address, "/v1/chat/completions", r#"{"messages": [{"role": "user", "content": "a"}]}"#));
    assert_eq!(status, 400);
    assert!(reply.to_string().contains("no chat template"), "{reply}");
    assert_eq!(get(&server.address, "/v1/completions").0, 405);
    assert_eq!(get(&server.address, "/v1/nothing").0, 404);
    assert_eq!(get(&server.address, "/../../etc/passwd").0, 404);
    assert_eq!(exchange(&server.address, "nonsense\r\n\r\n").0, 400);
    assert_eq!(exchange(&server.address, &format!("{HEAD}Content-Length: 9000000000\r\n\r\n")).0, 413);
    // After all this it still works, and a connection that is kept serves twice.
    let body = r#"{"prompt": "a", "max_tokens": 2}"#;
    let once = format!("{HEAD}Content-Length: {}\r\n\r\n{body}", body.len());
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    for _ in 0..2 {
        stream.write_all(once.as_bytes()).unwrap();
        let mut buffer = [0; 4096];
        let mut reply = String::new();
        while !reply.ends_with('}') {
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "the connection was closed: {reply}");
            reply.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
        }
        assert!(reply.starts_with("HTTP/1.1 200 OK"), "{reply}");
    }
}

#[test]
fn heads_are_parsed_and_hostile_ones_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &tiny(), None);
    let many = format!("GET /health HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "a: b\r\n".repeat(64));
    for (head, status) in [
        ("\x16\x03\x01\x02\x00\x01\x00", 400),
        ("POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400),
        ("POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: +1\r\n\r\n", 400),
        ("POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        ("POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\n", 400),
        (&format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n"), 411),
        (&many, 431),
        // A connection of HTTP/1.0 ends with the response.
        ("GET /health HTTP/1.0\r\n\r\n", 200),
    ] {
        assert_eq!(exchange(&server.address, head).0, status, "{head:?}");
    }
    // A query is not part of the path, and header names may have any case; the head may arrive byte by byte.
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.set_nodelay(true).unwrap();
    let head = "POST /v1/completions?x=1 HTTP/1.1\r\nHOST: localhost\r\nCONTENT-LENGTH: 2\r\ncontent-TYPE: Application/JSON; charset=utf-8";
    for byte in format!("{head}\r\nconnection: Close\r\n\r\n{{}}").bytes() {
        stream.write_all(&[byte]).unwrap();
    }
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 400") && reply.contains("prompt: "), "{reply}");
    // Without chunks, only the end of the connection ends a stream, whatever the client says about keeping it.
    let body = r#"{"prompt": "1+1=", "max_tokens": 3, "temperature": 0, "stream": true}"#;
    let request = format!(
        "POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\nConnection: keep-alive\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let begun = Instant::now();
    let (status, events) = exchange(&server.address, &request);
    assert!(status == 200 && events.ends_with("data: [DONE]\n\n"), "{events}");
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[test]
fn many_clients_at_once_get_what_each_gets_alone() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &tiny(), None);
    let ask = |number: usize| {
        let body =
            json!({"prompt": format!("{number}+{number}="), "max_tokens": 12, "temperature": 0.8, "seed": number})
                .to_string();
        parsed(post(&server.address, "/v1/completions", &body)).1["choices"][0]["text"].as_str().unwrap().to_owned()
    };
    let alone: Vec<String> = (0..24).map(ask).collect();
    let together: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..24).map(|number| scope.spawn(move || ask(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(together, alone);
}

#[test]
fn keys_are_asked_of_clients() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &tiny(), Some("sesame-sesame"));
    let with = |key: &str| {
        let head = format!("GET /v1/models HTTP/1.1\r\nHost: localhost\r\n{key}Connection: close\r\n\r\n");
        exchange(&server.address, &head).0
    };
    assert_eq!(with(""), 401);
    assert_eq!(with("Authorization: Bearer sesame\r\n"), 401);
    assert_eq!(with("Authorization: Bearer sesame-sesame\r\n"), 200);
    assert_eq!(get(&server.address, "/health").0, 200);
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_it_cleanly() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &tiny(), None);
    // A request that would take long is in flight, and a client that sends nothing is connected.
    let idle = TcpStream::connect(&server.address).unwrap();
    let address = server.address.clone();
    let busy = std::thread::spawn(move || {
        let body =
            json!({"prompt": "1", "max_tokens": 500, "temperature": 1, "n": 200, "ignore_eos": true}).to_string();
        post(&address, "/v1/completions", &body).0
    });
    std::thread::sleep(Duration::from_millis(400));
    let begun = Instant::now();
    Command::new("kill").args(["-INT", &server.child.id().to_string()]).status().unwrap();
    let status = server.child.wait().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(20), "it took {:?}", begun.elapsed());
    assert_eq!(status.code(), Some(0));
    let answered = busy.join().unwrap();
    assert!(answered == 503 || answered == 200, "{answered}");
    drop(idle);
}

#[test]
fn a_taken_port_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &tiny(), None);
    let port = server.address.rsplit(':').next().unwrap();
    let output =
        earnest(folder.path(), &["serve", "--port", port, "--model", tiny().to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(port) && said.contains("--port"), "{said}");
}
