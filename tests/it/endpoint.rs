//! `--engine openai` against a real server process, also through a proxy with faults: no sample is lost, none is doubled, and
//! every answer is the one that the native engine gives.
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use earnest_results::store::{Filter, Store};
use earnest_results::{Sample, Status};

use serde_json::json;

use crate::loopback::proxy::{Fault, Proxy};
use crate::loopback::{Server, earnest, tiny, tiny_chat};

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Twelve questions, two samples each, drawn and cut at four tokens.
const QUESTIONS: [&str; 14] = [
    // Endpoints have another usual one than engines here.
    "--profile",
    "boundary",
    "--tasks",
    "add,sub",
    "--lengths",
    "1..3",
    "--per-length",
    "2",
    "--max-tokens",
    "4",
    "--temperature",
    "0.9",
    "--samples",
    "2",
];

fn run(folder: &Path, words: &[&str]) -> Output {
    earnest(folder, &["run", "arithmetic-bench", "--quiet"]).args(QUESTIONS).args(words).output().unwrap()
}

fn native(folder: &Path, model: &Path, words: &[&str]) -> Vec<Sample> {
    let output =
        run(folder, &[&["--threads", "1", "--results", "native", "--model", model.to_str().unwrap()], words].concat());
    assert!(output.status.success(), "{}", text(&output));
    samples(&folder.join("native"))
}

/// Samples of a folder's only run, in order, without fields that differ between sessions.
fn samples(results: &Path) -> Vec<Sample> {
    let store = Store::open(results).unwrap();
    let runs = store.runs().unwrap();
    assert_eq!(runs.len(), 1, "one run is expected");
    let samples: Vec<Sample> = store.samples(&runs[0], Filter::default()).collect::<Result<_, _>>().unwrap();
    samples.into_iter().map(plain).collect()
}

fn plain(mut sample: Sample) -> Sample {
    sample.run = String::new();
    if let Some(completion) = &mut sample.completion {
        completion.timings = Default::default();
        completion.cached_tokens = 0;
    }
    sample
}

/// Texts and lengths of samples, for endpoints that tokenise.
fn answers(samples: &[Sample]) -> Vec<(String, u32, String, Vec<u32>, usize)> {
    let one = |sample: &Sample| {
        let completion = sample.completion.clone().unwrap();
        (sample.item.clone(), sample.sample, completion.text, completion.ids, sample.prompt_tokens)
    };
    samples.iter().map(one).collect()
}

#[test]
fn answers_are_those_of_the_native_engine() {
    let folder = tempfile::tempdir().unwrap();
    let model = tiny_chat(folder.path());
    let server = Server::start(folder.path(), &model, None);
    let url = format!("http://{}/v1", server.address);
    let base = ["--engine", "openai", "--base-url", &url, "--results"];
    for (prompt, name) in [("raw", "ids-raw"), ("chat", "ids-chat")] {
        let expected = native(folder.path(), &model, &["--prompt", prompt]);
        std::fs::remove_dir_all(folder.path().join("native")).unwrap();
        assert_eq!(expected.len(), 24);
        let tokenizer = ["--prompt", prompt, "--tokenizer", model.to_str().unwrap()];
        let output = run(folder.path(), &[&base[..], &[name], &tokenizer].concat());
        assert!(output.status.success(), "{}", text(&output));
        assert_eq!(samples(&folder.path().join(name)), expected, "{prompt} as ids");
        // Without a tokenizer here, the endpoint makes the same ids of text and messages.
        let remote = format!("remote-{prompt}");
        let output = run(folder.path(), &[&base[..], &[remote.as_str(), "--prompt", prompt]].concat());
        assert!(output.status.success(), "{}", text(&output));
        assert_eq!(answers(&samples(&folder.path().join(remote))), answers(&expected), "{prompt} as it is");
    }
    // Thinking switched off is another prompt, here and at the endpoint.
    let off = native(folder.path(), &model, &["--prompt", "chat", "--thinking", "off"]);
    let output = run(folder.path(), &[&base[..], &["off", "--thinking", "off"]].concat());
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(answers(&samples(&folder.path().join("off"))), answers(&off));
    assert_ne!(off[0].prompt_tokens, samples(&folder.path().join("remote-chat"))[0].prompt_tokens);
    let store = Store::open(&folder.path().join("off")).unwrap();
    assert_eq!(store.runs().unwrap()[0].manifest.settings.enable_thinking, Some(false));
}

#[test]
fn an_endpoint_is_asked_and_nothing_is_said_that_it_does_not_tell() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &tiny(), None);
    let url = format!("http://{}/v1", server.address);
    let words =
        ["run", "arithmetic-bench", "--tasks", "add", "--lengths", "1", "--per-length", "1", "--max-tokens", "4"];
    let base =
        ["--prompt", "raw", "--engine", "openai", "--base-url", &url, "--results", "r", "--events", "events.jsonl"];
    let output = earnest(folder.path(), &[&words[..], &base].concat()).output().unwrap();
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains(&format!("asking the endpoint at {url}")), "{said}");
    for wrong in ["loading the weights", "opening the checkpoint", "not told"] {
        assert!(!said.contains(wrong), "{wrong}: {said}");
    }
    let events = std::fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
    assert!(events.contains("probing_endpoint") && events.contains("asking_endpoint"), "{events}");
    assert!(!events.contains("loading_weights") && !events.contains("opening_checkpoint"), "{events}");
    // Texts that a model continues end with the line of their answer.
    let run = Store::open(&folder.path().join("r")).unwrap().runs().unwrap().remove(0);
    assert_eq!(run.manifest.settings.suite_options["ends"], "answer_line");
    let page =
        earnest(folder.path(), &["report", "--results", "r", "-o", "page.html", &run.manifest.run]).output().unwrap();
    assert!(page.status.success(), "{}", text(&page));
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(!page.contains("weights not told") && !page.contains("context 0"));
}

#[test]
fn endpoints_are_read_by_their_final_answer() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &tiny(), None);
    let url = format!("http://{}/v1", server.address);
    let words = ["run", "arithmetic-bench", "--quiet", "--tasks", "add", "--lengths", "1", "--per-length", "1"];
    let base = ["--max-tokens", "4", "--prompt", "raw", "--engine", "openai", "--base-url", &url, "--results", "usual"];
    let output = earnest(folder.path(), &[&words[..], &base].concat()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let settings = &Store::open(&folder.path().join("usual")).unwrap().runs().unwrap()[0].manifest.settings;
    assert_eq!(settings.suite_options["profile"], "final");
}

#[test]
fn faults_lose_and_double_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let expected = native(folder.path(), &tiny(), &[]);
    let server = Server::start(folder.path(), &tiny(), None);
    const FAULTS: [Fault; 11] = [
        Fault::Refuse,
        Fault::None,
        Fault::CutReply,
        Fault::TooMany,
        Fault::ServerError,
        Fault::None,
        Fault::Malformed,
        Fault::Truncated,
        Fault::WrongModel,
        Fault::Late,
        Fault::TooMany,
    ];
    // The sixth exchange is silent as well: once, because it costs the client's whole patience.
    let proxy =
        Proxy::start(&server.address, |number| if number == 5 { Fault::Silent } else { FAULTS[number % FAULTS.len()] });
    let url = proxy.url();
    let model = tiny();
    let words = [
        "--engine",
        "openai",
        "--base-url",
        &url,
        "--results",
        "faults",
        "--tokenizer",
        model.to_str().unwrap(),
        "--concurrency",
        "4",
        "--retries",
        "40",
        "--longest-wait",
        "0.3",
        "--request-timeout",
        "2",
    ];
    let output = run(folder.path(), &words);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(samples(&folder.path().join("faults")), expected);
    assert!(proxy.seen.load(Ordering::SeqCst) > expected.len(), "the proxy had faults");
    let run = &Store::open(&folder.path().join("faults")).unwrap().runs().unwrap()[0];
    let engine = run.manifest.engine.as_ref().unwrap();
    assert!(engine.statistics.retries > 0);
    assert_eq!(engine.card.engine, "openai");
    assert!(engine.card.version.starts_with("earnest 0."), "{}", engine.card.version);
    assert_eq!(engine.card.context, 512);
    assert!(engine.card.devices[0].contains("llama at http://127.0.0.1:"), "{:?}", engine.card.devices);
    let ids: usize = expected.iter().map(|sample| sample.completion.as_ref().unwrap().ids.len()).sum();
    assert_eq!(engine.statistics.decoded_tokens, ids as u64, "usage counts every answer once");
}

#[test]
fn an_endpoint_that_never_recovers_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &tiny(), None);
    let hasty = ["--retries", "1", "--longest-wait", "0.05", "--concurrency", "2", "--samples", "1"];
    let outcome = |fault: Fault, results: &str| {
        let proxy = Proxy::start(&server.address, move |_| fault);
        let url = proxy.url();
        let words = ["--engine", "openai", "--base-url", &url, "--prompt", "raw", "--results", results];
        let words: Vec<&str> = QUESTIONS[..12].iter().chain(&words).chain(&hasty).copied().collect();
        let output = earnest(folder.path(), &["run", "arithmetic-bench", "--quiet"]).args(words).output().unwrap();
        (output.status.code(), text(&output))
    };
    // One that gives no usable reply to anybody ends the run with its last word, and no sample is marked.
    for (fault, results, said) in [
        (Fault::ServerError, "errors", "HTTP 500: <html>oops</html>"),
        (Fault::Malformed, "malformed", "not JSON"),
        (Fault::WrongModel, "wrong-model", "somebody-else answered, but llama was asked"),
    ] {
        let (code, text) = outcome(fault, results);
        assert_eq!(code, Some(5), "{text}");
        assert!(text.contains("gives no usable answer") && text.contains(said), "{text}");
        assert_eq!(samples(&folder.path().join(results)), []);
    }
    // An endpoint that nobody can reach ends the run, and no sample is marked.
    let (code, text) = outcome(Fault::Refuse, "gone");
    assert_eq!(code, Some(5), "{text}");
    assert!(text.contains("gives no answer") && text.contains("after 2 tries"), "{text}");
    assert_eq!(samples(&folder.path().join("gone")), []);
    // One that cuts every reply, too; what happens is said while it is tried, with the reason.
    let (code, text) = outcome(Fault::CutReply, "cut");
    assert_eq!(code, Some(5), "{text}");
    let news = text.lines().find(|line| line.contains("retry 1 of 1 in")).unwrap_or_else(|| panic!("{text}"));
    assert!(news.contains("http://127.0.0.1:") && text.contains("gives no answer"), "{text}");
    assert_eq!(samples(&folder.path().join("cut")), []);
}

#[test]
fn three_silent_exchanges_end_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &tiny(), None);
    let proxy = Proxy::start(&server.address, |_| Fault::Silent);
    let url = proxy.url();
    let words = ["--engine", "openai", "--base-url", &url, "--prompt", "raw", "--results", "silent"];
    let output = run(folder.path(), &[&words[..], &["--concurrency", "2", "--request-timeout", "0.5"]].concat());
    assert_eq!(output.status.code(), Some(5), "{}", text(&output));
    assert!(
        text(&output).contains("no answer in time") && text(&output).contains("after 3 tries"),
        "{}",
        text(&output)
    );
    let seen = proxy.seen.load(Ordering::SeqCst);
    // The question at the beginning, two requests three times each, and what was sent before the end was known.
    assert!(seen <= 10, "{seen} exchanges\n{}", text(&output));
    assert_eq!(samples(&folder.path().join("silent")), []);
}

#[test]
fn prompts_that_a_server_cannot_answer_are_failed_samples() {
    let folder = tempfile::tempdir().unwrap();
    // It answers the short question, and so it is there.
    let (fingerprint, asked) = (Arc::new(Mutex::new("fp_1")), Arc::new(AtomicUsize::new(0)));
    let url = unknown_server(fingerprint, Arc::clone(&asked), |body| body.contains("\"prompt\":\"1\""));
    let words = ["--engine", "openai", "--base-url", &url, "--prompt", "raw", "--results", "poison", "--retries", "0"];
    let output = run(folder.path(), &words);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let rows = samples(&folder.path().join("poison"));
    assert_eq!(rows.len(), 24);
    for row in rows {
        let failure = row.failure.unwrap();
        assert!(failure.retryable && failure.message.contains("HTTP 500: too much"), "{}", failure.message);
    }
}

#[test]
fn a_killed_run_continues() {
    let folder = tempfile::tempdir().unwrap();
    let expected = native(folder.path(), &tiny(), &[]);
    let server = Server::start(folder.path(), &tiny(), None);
    let proxy = Proxy::start(&server.address, |_| Fault::Late);
    let (url, model) = (proxy.url(), tiny());
    let words = [
        "--engine",
        "openai",
        "--base-url",
        &url,
        "--results",
        "killed",
        "--tokenizer",
        model.to_str().unwrap(),
        "--concurrency",
        "1",
        "--per-minute",
        "1500",
    ];
    let mut child =
        earnest(folder.path(), &["run", "arithmetic-bench", "--quiet"]).args(QUESTIONS).args(words).spawn().unwrap();
    let results = folder.path().join("killed");
    let begun = Instant::now();
    // Rows are written once a second at the latest.
    let some = loop {
        assert!(begun.elapsed() < Duration::from_secs(60), "no row in a minute");
        std::thread::sleep(Duration::from_millis(20));
        let rows = Store::open(&results).ok().and_then(|store| {
            let run = store.runs().ok()?.into_iter().next()?;
            store.count(&run).ok()
        });
        if let Some(rows) = rows.filter(|rows| *rows > 0) {
            break rows;
        }
    };
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(some < expected.len(), "it was killed in the middle");
    let asked_before = proxy.seen.load(Ordering::SeqCst);
    let output = earnest(folder.path(), &["resume", "--quiet", "--results", "killed"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(samples(&results), expected);
    let asked = proxy.seen.load(Ordering::SeqCst) - asked_before;
    // One request may have been on its way when the process died, and be counted late.
    assert!(asked <= expected.len() - some + 1, "{asked} asked again, {some} were there");
    let run = &Store::open(&results).unwrap().runs().unwrap()[0];
    assert_eq!((run.manifest.sessions, run.manifest.status), (2, Status::Finished));
    // Another endpoint, or another name there, is another run.
    let other = format!("http://{}/v1", server.address);
    let output = run_at(folder.path(), &other);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(Store::open(&results).unwrap().runs().unwrap().len(), 2);
}

#[test]
fn an_upgraded_server_is_another_run() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &tiny(), None);
    // The upgrade, when it is to come in the middle: an exchange is cut, and what answers afterwards is new.
    type Says = Arc<Mutex<Option<String>>>;
    let cut: Arc<Mutex<Option<Says>>> = Arc::default();
    let cutting = Arc::clone(&cut);
    let proxy = Proxy::start(&server.address, move |number| match cutting.lock().unwrap().take_if(|_| number > 15) {
        Some(version) => {
            *version.lock().unwrap() = Some("3.0".into());
            Fault::Refuse
        }
        None => Fault::None,
    });
    let says = |version: &str| *proxy.version.lock().unwrap() = Some(version.to_owned());
    let url = proxy.url();
    let words =
        ["--engine", "openai", "--base-url", &url, "--prompt", "raw", "--results", "upgraded", "--concurrency", "1"];
    let short = |more: &[&str]| {
        let words = [&QUESTIONS[..12], &words, more].concat();
        let output = earnest(folder.path(), &["run", "arithmetic-bench", "--quiet"]).args(words).output().unwrap();
        (output.status.code(), text(&output))
    };
    let runs = || Store::open(&folder.path().join("upgraded")).unwrap().runs().unwrap();
    says("1.0");
    assert_eq!(short(&["--limit", "8"]).0, Some(0));
    assert_eq!(short(&["--limit", "8"]).0, Some(0));
    assert_eq!(runs().len(), 1, "the same server continues the run");
    let first = runs()[0].manifest.clone();
    assert_eq!(first.settings.endpoint.as_ref().unwrap().server.as_deref(), Some("earnest 1.0"));
    says("2.0");
    let resumed = earnest(folder.path(), &["resume", "--results", "upgraded", &first.run]).output().unwrap();
    assert!(!resumed.status.success());
    assert!(text(&resumed).contains("earnest 1.0") && text(&resumed).contains("earnest 2.0"), "{}", text(&resumed));
    // Cut in its middle: rows of the second server are there, none of the third.
    *cut.lock().unwrap() = Some(Arc::clone(&proxy.version));
    let asked = proxy.seen.load(Ordering::SeqCst);
    assert_eq!(asked, 8);
    let (code, said) = short(&["--limit", "12"]);
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("was earnest 2.0") && said.contains("is earnest 3.0 now"), "{said}");
    let second = runs().pop().unwrap();
    assert_eq!(runs().len(), 2);
    assert_eq!(second.manifest.status, Status::Interrupted);
    let store = Store::open(&folder.path().join("upgraded")).unwrap();
    assert_eq!(store.count(&second).unwrap(), 8, "what was answered before the cut");
    assert_eq!(short(&["--limit", "12"]).0, Some(0));
    assert_eq!(runs().len(), 3);
    assert_eq!(store.count(&second).unwrap(), 8);
}

/// A server of a kind that is not known, which tells its fingerprint with every answer and nothing else. Bodies that it does not take
/// get a 500.
pub fn unknown_server(
    fingerprint: Arc<Mutex<&'static str>>,
    asked: Arc<AtomicUsize>,
    takes: impl Fn(&str) -> bool + Send + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut first, mut length) = (String::new(), 0);
            reader.read_line(&mut first).unwrap();
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap() > 2 {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let mut status = "200 OK";
            let reply = if first.starts_with("GET /v1/models ") {
                json!({"data": [{"id": "m", "owned_by": "acme"}]})
            } else if !takes(&String::from_utf8(body).unwrap()) {
                status = "500 Internal Server Error";
                json!({"error": {"message": "too much"}})
            } else {
                asked.fetch_add(1, Ordering::SeqCst);
                json!({
                    "model": "m", "system_fingerprint": *fingerprint.lock().unwrap(),
                    "choices": [{"text": "42", "finish_reason": "stop"}], "usage": {"completion_tokens": 1}
                })
            };
            let reply = reply.to_string();
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", reply.len());
            stream.write_all((head + &reply).as_bytes()).unwrap();
        }
    });
    format!("http://{address}/v1")
}

#[test]
fn a_changed_fingerprint_is_another_run() {
    let folder = tempfile::tempdir().unwrap();
    let (fingerprint, asked) = (Arc::new(Mutex::new("fp_1")), Arc::new(AtomicUsize::new(0)));
    let url = unknown_server(Arc::clone(&fingerprint), Arc::clone(&asked), |_| true);
    let ask = || {
        let output =
            run(folder.path(), &["--engine", "openai", "--base-url", &url, "--prompt", "raw", "--results", "prints"]);
        assert!(output.status.success(), "{}", text(&output));
        Store::open(&folder.path().join("prints")).unwrap().runs().unwrap()
    };
    assert_eq!(ask().len(), 1);
    // 24 samples, and one token to learn the fingerprint.
    assert_eq!(asked.load(Ordering::SeqCst), 25);
    assert_eq!(ask().len(), 1);
    *fingerprint.lock().unwrap() = "fp_2";
    let runs = ask();
    assert_eq!(runs.len(), 2);
    let servers: Vec<_> =
        runs.iter().map(|run| run.manifest.settings.endpoint.as_ref().unwrap().server.clone().unwrap()).collect();
    assert_eq!(servers, ["unknown server fingerprint fp_1", "unknown server fingerprint fp_2"]);
    assert!(runs[1].manifest.engine.as_ref().unwrap().card.devices[0].ends_with("fingerprint fp_2"));
}

fn run_at(folder: &Path, url: &str) -> Output {
    let model = tiny();
    run(
        folder,
        &["--engine", "openai", "--base-url", url, "--results", "killed", "--tokenizer", model.to_str().unwrap()],
    )
}

#[test]
fn keys_open_and_do_not_show() {
    const KEY: &str = "sk-hunter2-hunter2-hunter2";
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &tiny(), Some(KEY));
    let url = format!("http://{}/v1", server.address);
    let words = ["--engine", "openai", "--base-url", &url, "--prompt", "raw", "--events", "events.jsonl", "--new"];
    let command = |key: Option<(&str, &str)>, words: &[&str]| {
        let mut command = earnest(folder.path(), &["run", "arithmetic-bench"]);
        command.args(QUESTIONS).args(words).envs(key);
        command.output().unwrap()
    };
    let refused = command(None, &words);
    assert_eq!(refused.status.code(), Some(5));
    assert!(text(&refused).contains("401") && text(&refused).contains("EARNEST_API_KEY"), "{}", text(&refused));
    let wrong = command(Some(("OPENAI_API_KEY", "sk-wrong-wrong-wrong")), &words);
    assert_eq!(wrong.status.code(), Some(5));
    assert!(!text(&wrong).contains("sk-wrong"), "{}", text(&wrong));
    let mut outputs = Vec::new();
    for variable in ["EARNEST_API_KEY", "OPENAI_API_KEY"] {
        let output = command(Some((variable, KEY)), &words);
        assert!(output.status.success(), "{}", text(&output));
        outputs.push(output);
    }
    // A server that quotes the key in its errors, which become rows.
    let proxy = Proxy::start(&server.address, |_| Fault::EchoKey);
    let through = proxy.url();
    let hasty = ["--engine", "openai", "--base-url", &through, "--prompt", "raw", "--retries", "0", "--new"];
    let output = command(Some(("EARNEST_API_KEY", KEY)), &hasty);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    outputs.push(output);
    let failed = earnest(folder.path(), &["samples", "--failed", "--json"]).output().unwrap();
    outputs.push(failed);
    for output in &outputs {
        assert!(!text(output).contains("hunter2"), "{}", text(output));
    }
    let mut files = 0;
    let mut folders = vec![folder.path().to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            files += 1;
            let bytes = std::fs::read(&path).unwrap();
            assert!(!bytes.windows(7).any(|part| part == b"hunter2"), "{}", path.display());
        }
    }
    assert!(files >= 2, "the store and the events are there");
    let in_url = command(None, &["--engine", "openai", "--base-url", "http://me:hunter2@127.0.0.1:1/v1"]);
    assert_eq!(in_url.status.code(), Some(2));
    assert!(!text(&in_url).contains("hunter2"), "{}", text(&in_url));
}

#[test]
fn what_cannot_work_is_said_before_it_begins() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &tiny(), None);
    let url = format!("http://{}/v1", server.address);
    let said = |words: &[&str]| {
        let output = run(folder.path(), words);
        (output.status.code().unwrap(), text(&output))
    };
    let openai = ["--engine", "openai", "--base-url", &url];
    let cases: [(&[&str], i32, &str); 9] = [
        (
            &["--engine", "openai", "--base-url", "http://example.com/v1", "--offline"],
            2,
            "--offline allows no connection",
        ),
        (
            &[openai.as_slice(), &["--prompt", "raw", "--model-name", "gpt-x"]].concat(),
            5,
            "no model gpt-x; it has llama",
        ),
        (
            &["--engine", "openai", "--base-url", "http://127.0.0.1:9/v1", "--prompt", "raw"],
            5,
            "cannot use the endpoint",
        ),
        (&["--engine", "openai", "--base-url", "127.0.0.1:9"], 2, "is not an endpoint address"),
        (&["--base-url", &url], 2, "--base-url needs --engine openai"),
        (&[openai.as_slice(), &["--model", "x"]].concat(), 2, "--model is for models that run here"),
        (&[openai.as_slice(), &["--api", "completions", "--prompt", "chat"]].concat(), 2, "needs --tokenizer"),
        (&[openai.as_slice(), &["--recommended", "--prompt", "raw"]].concat(), 2, "--tokenizer"),
        (&[openai.as_slice(), &["--concurrency", "0"]].concat(), 2, "outside 1 to 1024"),
    ];
    for (words, code, expected) in cases {
        let (found, text) = said(words);
        assert_eq!(found, code, "{words:?}: {text}");
        assert!(text.contains(expected), "{words:?}: {text}");
    }
    // The loopback is no network.
    let (code, text) = said(&[openai.as_slice(), &["--prompt", "raw", "--offline"]].concat());
    assert_eq!(code, 0, "{text}");
}

/// The program that `--engine mistralrs` starts; a served native model stands in for it.
#[cfg(unix)]
#[test]
fn an_engine_in_a_process_of_its_own() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let expected = native(folder.path(), &tiny(), &[]);
    let program = folder.path().join("stand-in");
    let script = format!("#!/bin/sh\nexec '{}' serve --threads 1 --quiet \"$@\"\n", env!("CARGO_BIN_EXE_earnest"));
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let model = tiny();
    let command = |program: &Path| {
        let mut command = earnest(folder.path(), &["run", "arithmetic-bench", "--quiet", "--engine", "mistralrs"]);
        command.args(QUESTIONS).args(["--results", "process", "--model", model.to_str().unwrap()]);
        command.env("EARNEST_MISTRALRS", program).output().unwrap()
    };
    let output = command(&program);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(samples(&folder.path().join("process")), expected);
    let run = &Store::open(&folder.path().join("process")).unwrap().runs().unwrap()[0];
    assert_eq!(run.manifest.settings.engine, "mistralrs");
    std::fs::remove_dir_all(folder.path().join("process")).unwrap();
    // An architecture that only mistral.rs has: the native engine names both ways, and this one works and says what it is not.
    let foreign = folder.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    for entry in std::fs::read_dir(&model).unwrap().flatten() {
        std::fs::copy(entry.path(), foreign.join(entry.file_name())).unwrap();
    }
    let config = std::fs::read_to_string(foreign.join("config.json")).unwrap();
    std::fs::write(foreign.join("config.json"), config.replace("LlamaForCausalLM", "PhiMoEForCausalLM")).unwrap();
    let mut run = earnest(folder.path(), &["run", "arithmetic-bench", "--model", "foreign"]);
    let output = run.args(QUESTIONS).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    for part in ["PhiMoEForCausalLM is not supported", "--engine mistralrs with --model foreign", "--engine openai"] {
        assert!(text(&output).contains(part), "{part}: {}", text(&output));
    }
    let serve = env!("CARGO_BIN_EXE_earnest");
    let script =
        format!("#!/bin/sh\nexec '{serve}' serve --threads 1 --quiet --port 0 --model '{}'\n", model.display());
    std::fs::write(&program, script).unwrap();
    let mut run = earnest(folder.path(), &["run", "arithmetic-bench", "--engine", "mistralrs", "--model", "foreign"]);
    run.args(QUESTIONS).args(["--results", "process"]).env("EARNEST_MISTRALRS", &program);
    let output = run.output().unwrap();
    assert!(output.status.success() && text(&output).contains("not verified by us"), "{}", text(&output));
    assert_eq!(samples(&folder.path().join("process")), expected);
    let run = &Store::open(&folder.path().join("process")).unwrap().runs().unwrap()[0];
    assert_eq!(run.manifest.model.architecture, "PhiMoEForCausalLM");
    assert!(run.manifest.settings.model_files.iter().any(|file| file.name == "model.safetensors"));
    std::fs::remove_dir_all(folder.path().join("process")).unwrap();
    let output = command(Path::new("/nonexistent/earnest-mistralrs"));
    assert_eq!(output.status.code(), Some(5));
    assert!(text(&output).contains("docs/engines.md"), "{}", text(&output));
}
