//! mistral.rs, asked in the safe way, gives the native engine's tokens on tiny checkpoints of several families.
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use earnest_engine::cpu::{CpuEngine, Options};
use earnest_engine::endpoint::{self, Address, Api, Concurrency, EndpointEngine, Retry};
use earnest_engine::{
    Completion, Engine, Event, FinishReason, Input, Logprobs, Request, RequestId, Sampling, SamplingKey,
};
use earnest_mistralrs::MistralRs;
use earnest_models::checkpoint::Checkpoint;

/// Tiny checkpoints of every family that the program takes.
const FAMILIES: [&str; 9] = [
    "llama",
    "llama31-ropescaling",
    "mistral-full",
    "mistral-sliding",
    "mixtral",
    "qwen2",
    "qwen3",
    "phi3",
    "phi3-longrope",
];

/// A golden checkpoint with a tokenizer that has a name for every logit, which mistral.rs needs.
fn checkpoint(family: &str, folder: &Path) -> PathBuf {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/engine/checkpoints").join(family);
    let copy = folder.join(family);
    std::fs::create_dir(&copy).unwrap();
    for entry in std::fs::read_dir(golden).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    let read = |name: &str| -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(copy.join(name)).unwrap()).unwrap()
    };
    let mut tokenizer = read("tokenizer.json");
    let vocab = tokenizer["model"]["vocab"].as_object_mut().unwrap();
    let size = read("config.json")["vocab_size"].as_u64().unwrap();
    let taken: Vec<u64> = vocab.values().map(|id| id.as_u64().unwrap()).collect();
    for id in (0..size).filter(|id| !taken.contains(id)) {
        vocab.insert(format!("filler{id}"), id.into());
    }
    std::fs::write(copy.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    // mistral.rs knows the form that configurations had before transformers 5; these have plain rotary angles in either.
    let mut config = read("config.json");
    let fields = config.as_object_mut().unwrap();
    if let Some(rope) = fields.remove("rope_parameters") {
        assert_eq!(rope["rope_type"], "default");
        fields.insert("rope_theta".into(), rope["rope_theta"].clone());
        std::fs::write(copy.join("config.json"), config.to_string()).unwrap();
    }
    copy
}

/// Greedy and drawn ones, of different lengths, with log-probabilities, and one that a stop string ends.
fn requests(stop: Option<&str>) -> Vec<Request> {
    let prompts: [&[u32]; 4] =
        [&[1, 20, 33, 41, 60, 7], &[1, 300], &[1, 5, 9, 9, 9, 80, 81, 82, 83, 84, 100], &[1, 44]];
    let mut requests = Vec::new();
    for (number, prompt) in prompts.into_iter().enumerate() {
        for sampling in [Sampling::GREEDY, Sampling { temperature: 0.8, top_p: 0.95, ..Sampling::GREEDY }] {
            requests.push(Request {
                id: RequestId(requests.len() as u64),
                input: Input::Ids(prompt.to_vec()),
                sampling,
                sampling_key: SamplingKey([number as u8; 32]),
                stop_strings: stop.map(str::to_owned).into_iter().collect(),
                keep_stop: false,
                stop_ids: vec![2],
                max_tokens: 20 + number,
                logprobs: Logprobs { top: 2, prompt_from: None },
            });
        }
    }
    requests
}

/// Submits all at once and waits for every completion.
fn completions(engine: &mut dyn Engine, requests: Vec<Request>) -> BTreeMap<u64, Completion> {
    let count = requests.len();
    for request in requests {
        engine.submit(request).unwrap();
    }
    let mut found = BTreeMap::new();
    while found.len() < count {
        for event in engine.poll().unwrap() {
            match event {
                Event::Finished(completion) => assert!(found.insert(completion.id.0, *completion).is_none()),
                Event::Failed { id, error, .. } => panic!("request {} failed: {error}", id.0),
                _ => {}
            }
        }
    }
    assert!(engine.poll().unwrap().iter().all(|event| matches!(event, Event::Progress { .. })));
    found
}

fn assert_same(family: &str, ours: &BTreeMap<u64, Completion>, theirs: &BTreeMap<u64, Completion>) {
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.values().zip(theirs.values()) {
        let id = ours.id.0;
        assert_eq!(theirs.ids, ours.ids, "{family}, request {id}");
        assert_eq!((&theirs.text, theirs.finish), (&ours.text, ours.finish), "{family}, request {id}");
        assert_eq!(theirs.prompt_tokens, ours.prompt_tokens);
        let (ours, theirs) = (ours.logprobs.as_ref().unwrap(), theirs.logprobs.as_ref().unwrap());
        assert_eq!(theirs.len(), ours.len());
        for (ours, theirs) in ours.iter().zip(theirs) {
            assert!((ours.chosen - theirs.chosen).abs() < 1e-3, "{family}, request {id}: {ours:?} {theirs:?}");
        }
    }
}

fn native(path: &Path) -> CpuEngine {
    let checkpoint = Checkpoint::open(path).unwrap();
    CpuEngine::load(&checkpoint, Options { threads: Some(1), kv_memory: Some(64 << 20), ..Options::default() }).unwrap()
}

#[test]
fn tokens_are_those_of_the_native_engine() {
    let folder = tempfile::tempdir().unwrap();
    for family in FAMILIES {
        let path = checkpoint(family, folder.path());
        let mut native = native(&path);
        let mut mistralrs = MistralRs::load(&path).unwrap();
        let ours = completions(&mut native, requests(None));
        assert!(ours.values().any(|completion| completion.ids.len() > 10), "{family}: long enough to tell");
        assert_same(family, &ours, &completions(&mut mistralrs, requests(None)));
        // A stop string that occurs: the second half of a text that was generated.
        let text = &ours[&0].text;
        let middle = text.char_indices().nth(text.chars().count() / 2).unwrap().0;
        let stop = &text[middle..];
        let ours = completions(&mut native, requests(Some(stop)));
        assert_eq!(ours[&0].finish, FinishReason::StopString, "{family}");
        assert_same(family, &ours, &completions(&mut mistralrs, requests(Some(stop))));
        assert_eq!(mistralrs.statistics().waiting + mistralrs.statistics().running, 0);
    }
}

#[test]
fn requests_are_refused_and_cancelled_as_by_the_native_engine() {
    let folder = tempfile::tempdir().unwrap();
    let path = checkpoint("llama", folder.path());
    let (mut native, mut mistralrs) = (native(&path), MistralRs::load(&path).unwrap());
    let wrong = [
        Request::greedy(RequestId(1), vec![], 4),
        Request::greedy(RequestId(1), vec![1], 0),
        Request::greedy(RequestId(1), vec![1, 512], 4),
        Request::greedy(RequestId(1), vec![1; 500], 13),
        Request {
            sampling: Sampling { temperature: -1.0, ..Sampling::GREEDY },
            ..Request::greedy(RequestId(1), vec![1], 4)
        },
        Request { input: Input::Text("1+1=".into()), ..Request::greedy(RequestId(1), vec![1], 4) },
    ];
    for request in wrong {
        let refusal = native.submit(request.clone()).unwrap_err();
        assert_eq!(mistralrs.submit(request).unwrap_err(), refusal);
    }
    // One runs, one waits; both are taken back, and the next is answered as if they had never been.
    for id in [1, 2] {
        mistralrs.submit(Request::greedy(RequestId(id), vec![1, 30, 31], 500)).unwrap();
    }
    let again = mistralrs.submit(Request::greedy(RequestId(2), vec![1], 4));
    assert!(again.is_err(), "the id is in flight");
    while mistralrs.statistics().decoded_tokens == 0 {
        mistralrs.poll().unwrap();
    }
    assert!(mistralrs.cancel(RequestId(1)) && mistralrs.cancel(RequestId(2)));
    assert!(!mistralrs.cancel(RequestId(1)) && !mistralrs.cancel(RequestId(9)));
    let ended: Vec<Completion> = mistralrs
        .poll()
        .unwrap()
        .into_iter()
        .filter_map(|event| if let Event::Finished(completion) = event { Some(*completion) } else { None })
        .collect();
    assert!(ended.iter().all(|completion| completion.finish == FinishReason::Cancelled));
    assert_eq!(ended.iter().map(|completion| completion.id.0).collect::<Vec<_>>(), [1, 2]);
    assert!(!ended[0].ids.is_empty() && ended[1].ids.is_empty());
    let ours = completions(&mut native, requests(None));
    assert_same("llama", &ours, &completions(&mut mistralrs, requests(None)));
}

#[test]
fn families_that_differ_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for family in ["gemma", "gemma2", "phi2"] {
        let error = MistralRs::load(&checkpoint(family, folder.path())).err().unwrap().to_string();
        assert!(error.contains("is not among those"), "{error}");
    }
}

#[test]
fn a_token_that_mistralrs_cannot_name_fails_its_request_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = checkpoint("llama", folder.path());
    // The published tokenizer of the golden checkpoint has fewer tokens than the model has logits.
    let golden =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/engine/checkpoints/llama/tokenizer.json");
    std::fs::copy(golden, path.join("tokenizer.json")).unwrap();
    let (mut native, mut mistralrs) = (native(&path), MistralRs::load(&path).unwrap());
    let ours = completions(&mut native, requests(None));
    let known = Checkpoint::open(&path).unwrap().tokenizer.vocab_size() as u32;
    let mut failed = 0;
    for request in requests(None) {
        let id = request.id.0;
        mistralrs.submit(request).unwrap();
        let ended = loop {
            let ended = mistralrs.poll().unwrap().into_iter().find(|event| !matches!(event, Event::Progress { .. }));
            if let Some(ended) = ended {
                break ended;
            }
        };
        // The last token is never fed back, so it needs no name.
        let fed = &ours[&id].ids[..ours[&id].ids.len() - 1];
        match ended {
            Event::Finished(completion) => {
                assert!(fed.iter().all(|token| *token < known));
                assert_eq!(completion.ids, ours[&id].ids);
            }
            Event::Failed { error, retryable, .. } => {
                assert!(fed.iter().any(|token| *token >= known), "{error}");
                assert!(error.contains("is not in mistral.rs's tokenizer") && !retryable, "{error}");
                failed += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(failed > 0, "the random model draws such tokens");
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_program_answers_as_run_asks_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = checkpoint("llama", folder.path());
    let mut child = Command::new(env!("CARGO_BIN_EXE_earnest-mistralrs"))
        .arg("--model")
        .arg(&path)
        .args(["--port", "0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let _running = Running(child);
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line:?}"));
    let mut engine = EndpointEngine::connect(endpoint::Options {
        address: Address::parse(&format!("{address}/v1")).unwrap(),
        key: None,
        model: None,
        api: Api::Completions,
        concurrency: Concurrency { requests: 4, per_minute: None },
        retry: Retry::default(),
        timeout: Duration::from_secs(60),
        context: None,
        enable_thinking: None,
    })
    .unwrap();
    assert!(engine.card().version.contains("mistral.rs 0.8.1"), "{}", engine.card().version);
    let mut native = native(&path);
    assert_same("llama", &completions(&mut native, requests(None)), &completions(&mut engine, requests(None)));
}
