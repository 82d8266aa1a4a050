//! `earnest view` with more than a page holds, clients that leave, and connections that are held open.
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::program::*;
use crate::view::{Viewed, view};

/// Largest page.
const MOST: usize = 16 << 20;

/// A log of lm-evaluation-harness with so many scorers, whose one answer is this.
fn log(folder: &Path, model: &str, scorers: usize, answer: &str) {
    std::fs::create_dir_all(folder).unwrap();
    const TIME: &str = "2026-11-22T16-37-42.543437";
    let scores = |filter: &str, value: f64| -> Map<String, Value> {
        (0..scorers).map(|scorer| (format!("m{scorer}{filter}"), json!(value))).collect()
    };
    let names: Vec<String> = (0..scorers).map(|scorer| format!("m{scorer}")).collect();
    let results = json!({
        "results": {"t": scores(",none", 1.0)}, "configs": {"t": {"task": "t"}}, "versions": {"t": 1}, "n-shot": {"t": 0},
        "config": {"model": "hf", "model_args": format!("pretrained={model}")}, "model_name": model
    });
    let mut sample = json!({
        "doc_id": 0, "doc": {"id": "q0", "question": "What is 1 + 1?"}, "target": "2",
        "arguments": {"gen_args_0": {"arg_0": "What is 1 + 1?", "arg_1": " x"}},
        "resps": [[answer]], "filtered_resps": [answer], "filter": "none", "metrics": names
    });
    sample.as_object_mut().unwrap().extend(scores("", 1.0));
    std::fs::write(folder.join(format!("results_{TIME}.json")), results.to_string()).unwrap();
    std::fs::write(folder.join(format!("samples_t_{TIME}.jsonl")), format!("{sample}\n")).unwrap();
}

fn succeeds(folder: &Path, words: &[&str]) {
    let output = run_in(folder, words);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
}

fn names(folder: &Path) -> Vec<String> {
    store(folder).runs().unwrap().into_iter().map(|run| run.manifest.run).collect()
}

#[test]
fn many_scorers_and_long_texts_are_a_page_of_bounded_size() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    log(&at.join("scorers"), "M", 700, "2");
    log(&at.join("text"), "T", 1, &format!("begin {} end", "\"1\" ".repeat(500_000)));
    succeeds(at, &["import", "scorers", "text", "--quiet"]);
    let named = |word: &str| names(at).into_iter().find(|name| name.contains(word)).unwrap();
    let run = named("-M-");
    let viewed = view(at, &[]);
    let list = viewed.page(&format!("run/{run}/samples"));
    assert!(list.len() < 100_000 && list.contains("two of the 700 scorers"), "{} bytes", list.len());
    let disagree = viewed.page(&format!("run/{run}/samples?scorer=m1%2Cnone&against=m699%2Cnone"));
    assert!(disagree.contains("No sample matches") && disagree.contains("value=\"m699,none\""), "{disagree}");
    let sample = viewed.page(&format!("run/{run}/sample?item=q0"));
    assert!(sample.contains("200 more scorers are not shown here"), "{} bytes", sample.len());
    let sample = viewed.page(&format!("run/{}/sample?item=q0", named("-T-")));
    assert!(sample.len() < MOST && sample.contains("begin ") && sample.contains(" end<"), "{} bytes", sample.len());
    assert!(sample.contains("951,434 bytes are left out here"), "{} bytes", sample.len());
    // Every quotation mark, which CSV doubles, takes six bytes in HTML: three such texts are beyond any page.
    let text = "\"\"".repeat(1 << 20);
    std::fs::write(at.join("t.csv"), format!("id,q,c,t,s\nx,\"{text}\",\"{text}\",\"{text}\",1\n")).unwrap();
    let columns = "id=id,question=q,completion=c,target=t,score=s";
    succeeds(at, &["import", "t.csv", "--columns", columns, "--task", "t", "--model-name", "N", "--quiet"]);
    let run = named("-N-");
    let (status, _, body) = viewed.ask(&format!("{}run/{run}/sample?item=x", viewed.base), &viewed.host);
    assert!(
        status == 422 && body.contains("larger than 16 MiB") && body.len() < 10_000,
        "{status}: {} bytes",
        body.len()
    );
}

#[test]
fn many_tasks_are_shown_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (mut questions, mut completions) = (String::new(), String::new());
    for number in 0..600 {
        let question = json!({"id": format!("q{number}"), "question": "1 + 1", "answer": "2", "task": format!("task{number}"), "length": number});
        writeln!(questions, "{question}").unwrap();
        writeln!(completions, "{}", json!({"item": format!("q{number}"), "completion": "It is 2."})).unwrap();
    }
    std::fs::write(at.join("many.jsonl"), questions).unwrap();
    std::fs::write(at.join("c.jsonl"), completions).unwrap();
    for name in ["A", "B"] {
        let words = ["import", "task", "--file", "many.jsonl", "--completions", "c.jsonl", "--quiet", "--name", name];
        succeeds(at, &words);
    }
    let runs = names(at);
    let viewed = view(at, &[]);
    let rows = |page: &str| page.matches("<th scope=\"row\">").count();
    let first = viewed.page(&format!("run/{}", runs[0]));
    assert!(rows(&first) == 501 && first.contains("?from=500") && first.contains("earnest report"), "{}", rows(&first));
    let rest = viewed.page(&format!("run/{}?from=500", runs[0]));
    assert!(rows(&rest) == 101 && !rest.contains("?from=500\""), "{}", rows(&rest));
    let samples = viewed.page(&format!("run/{}/samples?task=task599", runs[0]));
    assert!(samples.contains("one of 600 tasks") && samples.matches("class=\"line\"").count() == 1, "{samples}");
    let compared = viewed.page(&format!("compare?a={}&b={}", runs[0], runs[1]));
    assert!(compared.contains("100 more tasks are not shown here"), "{}", compared.len());
}

#[test]
fn many_runs_are_several_pages() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let rows: String = (0..305).map(|number| format!("q,{number},1\n")).collect();
    std::fs::write(at.join("t.csv"), format!("id,task,s\n{rows}")).unwrap();
    succeeds(at, &["import", "t.csv", "--columns", "id=id,task=task,score=s", "--model-name", "M", "--quiet"]);
    let viewed = view(at, &[]);
    let runs = |page: &str| page.matches("<td class=\"num rank\"").count();
    let first = viewed.page("");
    assert!(first.contains("300 of 305 runs") && runs(&first) == 300, "{}", runs(&first));
    let older = viewed.page("?newer=300");
    assert!(older.contains("5 of 305 runs") && runs(&older) == 5, "{}", runs(&older));
    assert!(viewed.page("?newer=18446744073709551615").contains("0 of 305 runs"));
}

/// A request that is not read to its end.
fn begun(viewed: &Viewed, head: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&viewed.host).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

#[test]
fn clients_that_leave_or_never_ask_keep_nobody_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // Words in another order: the search for the fewest that differ takes many seconds.
    let words = |mut state: u64| -> String {
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            format!("{} ", (state >> 33) % 4)
        };
        (0..45_000).map(|_| next()).collect()
    };
    log(&at.join("a"), "A", 1, &words(1));
    log(&at.join("b"), "B", 1, &words(2));
    succeeds(at, &["import", "a", "b", "--quiet"]);
    let runs = names(at);
    let viewed = view(at, &[]);
    let (host, base) = (&viewed.host, &viewed.base);
    let pair = format!("GET {base}pair?a={}&b={}&item=q0 HTTP/1.1\r\nHost: {host}\r\n\r\n", runs[0], runs[1]);
    let abandoned: Vec<TcpStream> = (0..6).map(|_| begun(&viewed, &pair)).collect();
    let start = Instant::now();
    viewed.page("");
    drop(abandoned);
    viewed.page(&format!("pair?a={}&b={}&item=q0", runs[0], runs[1]));
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());

    // More heads than there are connections: the oldest is closed for the newest.
    let mut halves: Vec<TcpStream> = (0..80).map(|_| begun(&viewed, "GET / HTTP/1.1\r\nHost: local")).collect();
    viewed.page("");
    assert_eq!(halves[0].read(&mut [0; 1]).unwrap_or(0), 0);

    let two = format!("GET {base} HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    let mut reply = String::new();
    begun(&viewed, &two).read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 400") && reply.contains("more than one Host"), "{reply}");
}

#[test]
fn a_parameter_that_is_wrong_is_named_with_what_it_takes() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    log(&at.join("a"), "A", 1, "2");
    succeeds(at, &["import", "a", "--quiet"]);
    let run = &names(at)[0];
    let viewed = view(at, &[]);
    for (page, words) in [
        ("?newer=x".to_owned(), ["the value of `newer`", "a number from 0"]),
        ("?newer=-1".to_owned(), ["`newer`", "a number from 0"]),
        ("?newer=1&newer=2".to_owned(), ["`newer`", "give it once"]),
        ("compare".to_owned(), ["`a` is missing", "the name of a run"]),
        (format!("pair?a={run}&b={run}"), ["`item` is missing", "the name of an item"]),
        (format!("pair?a={run}&b={run}&item=q0&n=99999999999"), ["`n`", "a number from 0"]),
        (format!("run/{run}?from=1e3"), ["`from`", "a number from 0"]),
        (format!("run/{run}/sample?item=q0&bare=yes"), ["`bare`", "true or false"]),
        (format!("run/{run}/samples?task=a&task=b"), ["`task`", "give it once"]),
    ] {
        let (status, _, body) = viewed.ask(&format!("{}{page}", viewed.base), &viewed.host);
        assert_eq!(status, 400, "{page}: {body}");
        assert!(words.iter().all(|word| body.contains(word)) && !body.contains("eserialize"), "{page}: {body}");
    }
}
