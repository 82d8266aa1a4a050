//! `earnest view`: what its pages hold, and who gets them. `scripts/view-browser.sh` tries them in a browser.
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::program::*;

const SMALL: [&str; 7] = ["--lengths", "1..2", "--per-length", "2", "--max-tokens", "6", "--quiet"];

/// A running viewer, which is ended with it.
pub(crate) struct Viewed {
    child: Child,
    /// `127.0.0.1:PORT`.
    pub host: String,
    /// `/TOKEN/`.
    pub base: String,
}

impl Drop for Viewed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn view(folder: &Path, words: &[&str]) -> Viewed {
    viewed(earnest(folder).arg("view").args(words))
}

fn viewed(command: &mut Command) -> Viewed {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on http://").unwrap_or_else(|| panic!("{line:?}")).to_owned();
    let (host, path) = address.split_once('/').unwrap();
    let token = path.split('/').next().unwrap();
    assert!(token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{address}");
    Viewed { child, host: host.to_owned(), base: format!("/{token}/") }
}

impl Viewed {
    /// Status, head and body of an address below the token.
    fn get(&self, path: &str) -> (u16, String, String) {
        self.ask(&format!("{}{path}", self.base), &self.host)
    }

    pub fn page(&self, path: &str) -> String {
        let (status, _, body) = self.get(path);
        assert_eq!(status, 200, "{path}: {body}");
        // The templates' engine escapes slashes too.
        body.replace("&#x2f;", "/")
    }

    pub fn ask(&self, path: &str, host: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_owned(), body.to_owned())
    }
}

/// Two runs that asked alike, and a third with another temperature.
fn three_runs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for more in [&["--dtype", "f32"][..], &["--dtype", "bf16"], &["--dtype", "f32", "--temperature", "1"]] {
        let output = tiny_run(folder.path(), &[&SMALL[..], more].concat());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
    }
    folder
}

fn names(folder: &Path) -> Vec<String> {
    store(folder).runs().unwrap().into_iter().map(|run| run.manifest.run).collect()
}

#[test]
fn pages_show_runs_samples_and_comparisons() {
    let folder = three_runs();
    let runs = names(folder.path());
    let viewed = view(folder.path(), &[]);
    let first = viewed.page("");
    for run in &runs {
        assert!(first.contains(run.as_str()), "{first}");
    }
    assert!(first.contains("arithmetic-bench") && first.contains("finished"));
    let run = viewed.page(&format!("run/{}", runs[0]));
    assert!(run.contains("<figure") && run.contains("95 % interval") && run.contains("earnest-results"), "{run}");
    let (_, _, progress) = viewed.get(&format!("run/{}/progress", runs[0]));
    let progress: serde_json::Value = serde_json::from_str(&progress).unwrap();
    assert_eq!((&progress["status"], &progress["recorded"]), (&"finished".into(), &progress["planned"]));

    // From a cell of the heat map to its samples.
    let cell = run.split("samples?task=").nth(1).unwrap().split('"').next().unwrap().replace("&amp;", "&");
    let of_cell = viewed.page(&format!("run/{}/samples?task={cell}", runs[0]));
    assert!(cell.contains("covariate=length%3D") && of_cell.contains(">2 samples</output>"), "{cell}: {of_cell}");

    // A list, its filters, and one of its samples.
    let list = viewed.page(&format!("run/{}/samples", runs[0]));
    assert_eq!(list.matches("class=\"line\"").count(), 50, "a page has 50 samples");
    let next = list.split("id=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap().replace("&amp;", "&");
    let second = viewed.page(&format!("run/{}/samples{next}", runs[0]));
    assert!(second.contains("class=\"line\"") && !second.contains(first_item(&list)));
    let of_task = viewed.page(&format!("run/{}/samples?task=add&outcome=", runs[0]));
    assert!(of_task.contains("add%2F") && !of_task.contains("mul%2F"), "{of_task}");
    let asked = viewed.page(&format!("run/{}/samples?question=0&task=add", runs[0]));
    let shown = asked.matches("class=\"line\"").count();
    assert!(shown > 0 && shown < list.matches("class=\"line\"").count(), "{asked}");
    let (_, _, count) = viewed.get(&format!("run/{}/count?task=add&question=0", runs[0]));
    assert_eq!(serde_json::from_str::<serde_json::Value>(&count).unwrap()["count"], shown);
    let all = run_in(folder.path(), &["samples", &runs[0], "--json"]);
    let all = stdout(&all).lines().count();
    let (_, _, count) = viewed.get(&format!("run/{}/count", runs[0]));
    assert_eq!(serde_json::from_str::<serde_json::Value>(&count).unwrap()["count"], all);
    let item = first_item(&list).to_owned();
    let path = format!("run/{}/sample?item={}&n=0", runs[0], item.replace('/', "%2F"));
    let sample = viewed.page(&path);
    let expected = run_in(folder.path(), &["samples", &runs[0], "--item", &item, "--json"]);
    let expected = document(&expected);
    assert!(sample.contains(&item) && sample.contains(expected["gold"].as_str().unwrap()), "{sample}");
    assert!(viewed.page(&format!("{path}&bare=true")).starts_with("<article"));
    let by_token = viewed.page(&format!("{path}&tokens=true"));
    let ids = expected["completion"]["ids"].as_array().unwrap();
    let tokens = usize::try_from(expected["prompt_tokens"].as_u64().unwrap()).unwrap() + ids.len();
    assert_eq!(by_token.matches("<span title=\"token ").count(), tokens, "{by_token}");
    assert!(by_token.contains(&format!("<span title=\"token {}\">", ids[0])) && !sample.contains("title=\"token "));

    let compared = viewed.page(&format!("compare?a={}&b={}", runs[0], runs[1]));
    let json = document(&run_in(folder.path(), &["compare", &runs[0], &runs[1], "--json"]));
    let items = json[0]["items"].as_u64().unwrap();
    assert!(compared.contains(&format!("{items} common items")), "{compared}");
    let differences = viewed.page(&format!("differences?base={}", runs[0]));
    assert!(differences.contains(&runs[1]) && differences.contains("Holm"), "{differences}");
    // Only runs that asked alike are ranked with each other.
    assert!(!differences.contains(&runs[2]), "{differences}");
    // What differs is a label, and those that asked alike have ranks.
    assert_eq!(first.matches("<section").count(), 1, "{first}");
    assert!(first.contains("<span class=\"tag\">temperature 1"), "{first}");
    assert_eq!(first.matches("Of 2 runs that asked the same questions").count(), 2, "{first}");
    let none = viewed.page("?q=nonsense");
    assert!(none.contains("No run matches.") && !none.contains("<section"), "{none}");
    assert!(viewed.page("?suite=arithmetic-bench&sort=newest").contains(&runs[2]));
    let pair = viewed.page(&format!("pair?a={}&b={}&item={}", runs[0], runs[1], item.replace('/', "%2F")));
    assert_eq!(pair.matches("class=\"completion\"").count(), 2, "{pair}");
}

#[test]
fn outcome_files_are_viewed_without_their_texts() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(code(&tiny_run(folder.path(), &SMALL)), 0);
    let run = &names(folder.path())[0];
    std::fs::create_dir(folder.path().join("published")).unwrap();
    let file = format!("published/{run}.parquet");
    let export = ["export", run, "--format", "parquet", "--outcomes", "-o", &file];
    let cache = folder.path().join("cache");
    let cached = |words: &[&str]| {
        let mut command = earnest(folder.path());
        command.args(words).env("EARNEST_CACHE", &cache);
        command
    };
    let output = cached(&export).output().unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let viewed = viewed(&mut cached(&["view", "published"]));
    let board = viewed.page("");
    assert!(board.contains("published") && board.contains(run.as_str()), "{board}");
    let list = viewed.page(&format!("run/{run}/samples"));
    let sample = viewed.page(&format!("run/{run}/sample?item={}", first_item(&list)));
    assert!(sample.contains("files of outcomes have scores alone") && !sample.contains("(nothing)"), "{sample}");
    assert!(!sample.contains("Token by token"), "{sample}");
}

#[test]
fn wrong_addresses_say_so_and_lead_back() {
    let folder = three_runs();
    let run = names(folder.path()).remove(0);
    let other = names(folder.path()).remove(1);
    let viewed = view(folder.path(), &[]);
    let to_run = format!("/run/{run}\">The run</a>");
    let to_both = format!("compare?a={run}&amp;b={other}\">The comparison</a>");
    for (address, status, says, back) in [
        ("?foo=1".to_owned(), 400, "there is no `foo` in the address of this page", ""),
        ("nonsense".to_owned(), 404, "there is no such page", ""),
        (format!("run/{run}/sample/nope"), 404, "there is no such page", &to_run),
        (format!("run/{run}?form=1"), 400, "it takes `from` (a number from 0)", &to_run),
        (format!("run/{run}/samples?task=gone"), 422, "gone", &to_run),
        (format!("run/{run}/sample?item=gone"), 404, "has no sample 0 of the item gone", &to_run),
        ("run/gone/samples".to_owned(), 404, "there is no run gone", ""),
        ("run/gone/samples?form=1".to_owned(), 400, "there is no `form`", ""),
        ("run/%ff/samples".to_owned(), 400, "not UTF-8", ""),
        (format!("compare?a={run}&b=gone&form=1"), 400, "there is no `form`", ""),
        (format!("compare?a={run}&b={other}&task=gone"), 404, "no common items of the task gone", &to_both),
        (format!("compare?a={run}&b=gone&task=add"), 404, "there is no run gone", ""),
        (format!("pair?a={run}&b={other}&item=gone"), 404, "gone", &to_both),
    ] {
        let (found, _, page) = viewed.get(&address);
        assert_eq!(found, status, "{address}");
        assert!(page.contains(says) && page.contains(">All runs</a>"), "{address}: {page}");
        let leads = ["The run</a>", "The comparison</a>"].map(|word| page.contains(word));
        assert_eq!(leads.contains(&true), !back.is_empty(), "{address}: {page}");
        assert!(page.contains(back), "{address} leads to {back}: {page}");
    }
}

#[test]
fn a_profile_has_limits_instead_of_a_share() {
    let folder = tempfile::tempdir().unwrap();
    let model = tiny().display().to_string();
    let words = ["profile", "--model", &model, "--skills", "add_Integer,copy", "--budget", "6", "--max-tokens", "4"];
    let output = run_in(folder.path(), &words);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let run = names(folder.path()).remove(0);
    let viewed = view(folder.path(), &[]);
    let first = viewed.page("");
    assert!(first.contains(">digit limits</span>") && !first.contains("class=\"share\""), "{first}");
    let page = viewed.page(&format!("run/{run}"));
    assert!(page.contains("Digit limits") && page.contains("50 % limit, digits"), "{page}");
    assert!(!page.contains("class=\"share\"") && page.contains(">add_Integer</a>"), "{page}");
    let (_, _, progress) = viewed.get(&format!("run/{run}/progress"));
    let progress: serde_json::Value = serde_json::from_str(&progress).unwrap();
    assert_eq!(progress["accuracy"], serde_json::Value::Null);
}

/// Item of the first line of a list.
fn first_item(list: &str) -> &str {
    let line = list.split("class=\"head\"").nth(1).unwrap();
    line.split("<small>").nth(1).unwrap().split(['<', ' ']).next().unwrap()
}

#[test]
fn only_the_token_opens_pages_and_no_other_site_gets_them() {
    let folder = three_runs();
    let run = names(folder.path()).remove(0);
    let viewed = view(folder.path(), &[&run]);
    for path in ["/", "/run/x", &format!("/{}/", "0".repeat(32)), &format!("/{}/run/{run}", "0".repeat(32))] {
        let (status, _, body) = viewed.ask(path, &viewed.host);
        assert!(status == 404 && !body.contains(&run), "{path}: {status} {body}");
    }
    let (status, _, body) = viewed.ask(&viewed.base, "evil.example");
    assert!(status == 403 && !body.contains(&run), "{status} {body}");
    let (_, head, _) = viewed.get("");
    let head = head.to_lowercase();
    for header in [
        "content-security-policy: default-src 'none'",
        "referrer-policy: no-referrer",
        "x-content-type-options: nosniff",
    ] {
        assert!(head.contains(header), "{head}");
    }
    // Nothing writes.
    let mut stream = TcpStream::connect(&viewed.host).unwrap();
    write!(
        stream,
        "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        viewed.base, viewed.host
    )
    .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 405"), "{reply}");
}

#[test]
fn texts_of_models_are_no_markup_and_what_is_not_there_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let completions = folder.path().join("c.jsonl");
    let hostile = "<script>alert(1)</script> <think>so & so</think> The answer is 7.";
    let line = serde_json::json!({"a": "3", "b": "4", "task": "add_Integer", "completion": hostile});
    std::fs::write(&completions, format!("{line}\n")).unwrap();
    let model = "<b>model</b>";
    let words = ["import", "nupa", "--completions", completions.to_str().unwrap(), "--name", model, "--quiet"];
    let output = run_in(folder.path(), &words);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let run = names(folder.path()).remove(0);
    let viewed = view(folder.path(), &[]);
    let segment: String = run.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let list = viewed.page(&format!("run/{segment}/samples"));
    let item = first_item(&list).to_owned();
    let sample = viewed.page(&format!("run/{segment}/sample?item={}", item.replace('/', "%2F")));
    for page in [viewed.page(""), viewed.page(&format!("run/{segment}")), list, sample.clone()] {
        assert!(!page.contains("<script>alert") && !page.contains("<b>model"), "{page}");
    }
    assert!(sample.contains("class=\"thinking\"") && sample.contains("so &amp; so"), "{sample}");
    assert!(sample.contains("<mark title=\"read by") && sample.contains(">7<sup>"), "the reading is marked: {sample}");

    for (path, status, word) in [
        ("run/none".to_owned(), 404, "there is no run none"),
        (format!("run/{segment}/samples?task=nonsense"), 422, "nonsense"),
        (format!("run/{segment}/samples?after=x"), 400, "not a number"),
        (format!("run/{segment}/samples?disagree=one"), 400, "joined by a comma"),
        (format!("run/{segment}/samples?covariate=length"), 400, "joined by ="),
        (format!("run/{segment}/samples?covariate=length%3D99"), 422, "length = 99"),
        (format!("run/{segment}/samples?outcome=error:nonsense"), 400, "no class of errors"),
        ("?sort=nonsense".to_owned(), 400, "best, newest or model"),
        ("?suite=nonsense".to_owned(), 404, "nonsense"),
        (format!("run/{segment}/sample?item=nonsense"), 404, "nonsense"),
        (format!("compare?a={segment}&b=none"), 404, "there is no run none"),
    ] {
        let (found, _, body) = viewed.get(&path);
        assert!(found == status && body.contains(word), "{path}: {found} {body}");
    }
}

#[test]
fn wrong_places_are_refused_before_anything_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let none = run_in(folder.path(), &["view"]);
    assert!(code(&none) == 4 && stderr(&none).contains("there are no results"), "{}", stderr(&none));
    let runs = three_runs();
    let unknown = run_in(runs.path(), &["view", "nonsense"]);
    assert_eq!(code(&unknown), code(&run_in(runs.path(), &["runs", "show", "nonsense"])));
    assert!(stderr(&unknown).contains("there is no run nonsense"), "{}", stderr(&unknown));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let refused = run_in(runs.path(), &["view", "--port", &port]);
    assert!(code(&refused) == 5 && stderr(&refused).contains("--port"), "{}", stderr(&refused));
}
