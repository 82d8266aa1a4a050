//! Log-likelihoods of given continuations: through the runner with both kinds of engines, and against transformers.
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex};

use earnest_engine::cpu::{CpuEngine, Options};
use earnest_engine::endpoint::{Address, Api};
use earnest_engine::{Engine, FinishReason, Input, Logprobs, Request, RequestId, Sampling, Statistics};
use earnest_eval::evaluate::{EvaluationSettings, ModelSession};
use earnest_eval::model::{Device, EndpointSource, LocatedModel, ModelSource};
use earnest_eval::prompt::{PromptSource, Prompter};
use earnest_eval::run::Runner;
use earnest_eval::{EvalError, prompt};
use earnest_models::checkpoint::Checkpoint;
use earnest_models::hub::HubSettings;
use earnest_results::store::{Filter, Store};
use earnest_results::{Ended, FailureKind, Generation, ModeRequest, Plan, Sample, Stored, score_completions};
use earnest_tasks::suite::{ContinuationScore, Item, Likelihoods, Segments, Suite};

use crate::endpoint::unknown_server;
use crate::loopback::{Server, tiny_chat};
use crate::support::{Choices, Fate, Letters, Scripted, manifest};

fn embedded() -> Checkpoint {
    Checkpoint::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("embedded/earnest-abacus-1.4m")).unwrap()
}

/// A whole run of a suite in a folder.
fn run(results: &Path, suite: &Suite, source: &dyn PromptSource, engine: &mut dyn Engine) -> Vec<Sample> {
    let plan = Plan { limit: None, samples: 1, shard: None };
    let generation =
        Generation { sampling: Sampling::GREEDY, seed: 1, stop_ids: vec![0], max_tokens: None, thinking: false };
    let store = Store::create(results).unwrap();
    let _lock = store.lock("run").unwrap();
    let run = store.begin(&manifest("run", suite, plan), plan.len(suite)).unwrap();
    let progress = store.progress(&run).unwrap();
    let prompter = Prompter::new(source, ModeRequest::Raw).unwrap();
    let runner = Runner {
        run: "run",
        suite,
        plan,
        prompter: &prompter,
        generation: &generation,
        fail_on_error: None,
        stop: &AtomicBool::new(false),
    };
    let ended = runner.run(engine, &mut store.writer(&run), &progress, &mut ()).unwrap();
    assert_eq!(ended, Ended::Finished);
    store.samples(&run, Filter::default()).collect::<Result<_, _>>().unwrap()
}

/// Rows of a run with an engine's options, without what depends on the batch, and the engine's counters.
fn native(checkpoint: &Checkpoint, suite: &Suite, options: Options) -> (Vec<Sample>, Statistics) {
    let folder = tempfile::tempdir().unwrap();
    let mut engine = CpuEngine::load(checkpoint, options).unwrap();
    let mut samples = run(folder.path(), suite, checkpoint, &mut engine);
    for completion in samples.iter_mut().filter_map(|sample| sample.completion.as_mut()) {
        assert!(completion.timings.prefill_s > 0.0 && completion.timings.decode_s == 0.0);
        (completion.cached_tokens, completion.timings) = Default::default();
    }
    (samples, engine.statistics())
}

/// Every token of every continuation by the definition: the log-softmax of the logits after what is before it.
fn by_definition(checkpoint: &Checkpoint, item: &Item) -> Vec<(f64, usize)> {
    let options = Options { threads: Some(1), kv_memory: Some(1 << 24), prefix_cache: false, ..Options::default() };
    let mut engine = CpuEngine::load(checkpoint, options).unwrap();
    let raw = item.segments.raw.as_ref().unwrap();
    let context = checkpoint.encode_prompt(raw.trim_end()).unwrap().len();
    let spaces = &raw[raw.trim_end().len()..];
    let score = |continuation: &String| {
        let ids = checkpoint.encode_prompt(&format!("{}{spaces}{continuation}", raw.trim_end())).unwrap();
        let mut sum = 0.0;
        for index in context..ids.len() {
            let logits = engine.logits_after(&ids[..index], 1).unwrap();
            let top = logits.iter().copied().fold(f32::MIN, f32::max);
            let normaliser: f64 = logits.iter().map(|&logit| f64::from(logit - top).exp()).sum();
            sum += f64::from(logits[ids[index] as usize] - top) - normaliser.ln();
        }
        (sum, ids.len() - context)
    };
    item.continuations.iter().map(score).collect()
}

#[test]
fn rows_are_the_same_bits_in_any_batch_and_a_shared_prefix_is_computed_once() {
    let checkpoint = embedded();
    let preamble = "Add two numbers: 12 + 30 = 42\nAdd two numbers: 98 + 7 = 105\n";
    let suite = Suite::new(Choices { items: 24, preamble });
    let options = |threads, max_batch, prefix_cache| Options {
        threads: Some(threads),
        kv_memory: Some(1 << 26),
        max_batch,
        prefix_cache,
        ..Options::default()
    };
    let (expected, alone) = native(&checkpoint, &suite, options(1, 1, false));
    assert_eq!(alone.cached_tokens, 0);
    for (item, sample) in suite.items.iter().zip(&expected) {
        let completion = sample.completion.as_ref().unwrap();
        assert_eq!((completion.finish, completion.ids.len()), (FinishReason::Eos, 0));
        assert_eq!((sample.budget, sample.max_tokens, sample.clipped()), (0, 0, false));
        let scores = sample.likelihoods().unwrap().0;
        assert_eq!(
            scores.iter().map(|score| &score.text).collect::<Vec<_>>(),
            item.continuations.iter().collect::<Vec<_>>()
        );
        assert!(scores.iter().all(|score| score.logprob < 0.0 && score.tokens > 0));
    }
    for number in [0, 2] {
        let item = suite.items.iter().nth(number).unwrap();
        let scores = expected[number].likelihoods().unwrap().0;
        for (score, (logprob, tokens)) in scores.iter().zip(by_definition(&checkpoint, &item)) {
            assert!(
                (score.logprob - logprob).abs() < 1e-4 && score.tokens == tokens,
                "{score:?} is {logprob}, {tokens}"
            );
        }
    }
    let block = u64::try_from(32 * checkpoint.config.layers.len() * checkpoint.config.num_kv_heads).unwrap()
        * 4
        * (checkpoint.config.head_dim + checkpoint.config.head_dim.next_multiple_of(16)) as u64;
    for (name, options) in [
        ("batch of 7", options(2, 7, true)),
        ("batch of 64, no cache", options(2, 64, false)),
        ("small budget", Options { token_budget: 70, ..options(1, 64, true) }),
        ("nearly full", Options { kv_memory: Some(12 * block), ..options(2, 64, true) }),
        ("batch of 64", options(1, 64, true)),
    ] {
        let (rows, statistics) = native(&checkpoint, &suite, options);
        assert_eq!(rows, expected, "{name}: the batch shows");
        assert_eq!((statistics.decoded_tokens, statistics.running), (0, 0));
        if name == "batch of 64" {
            // The preamble once, each question once, and for each continuation its tokens but the last, with the token before it.
            let own: usize = expected
                .iter()
                .map(|sample| sample.likelihoods().unwrap().0.iter().map(|score| score.tokens).sum::<usize>())
                .sum();
            let preamble = checkpoint.encode_prompt(preamble).unwrap().len();
            let questions: usize = expected.iter().map(|sample| sample.prompt_tokens - preamble).sum();
            let computed = statistics.prefilled_tokens as usize;
            assert!(computed <= preamble + questions + own, "{computed} computed: {preamble} + {questions} + {own}");
            assert!(alone.prefilled_tokens as usize > 3 * computed);
        }
    }
}

#[test]
fn stored_likelihoods_score_again() {
    let checkpoint = embedded();
    let suite = Suite::new(Choices { items: 12, preamble: "" });
    let (rows, _) = native(&checkpoint, &suite, Options { kv_memory: Some(1 << 26), ..Options::default() });
    let right = rows.iter().filter(|sample| sample.score.as_ref().unwrap().correct).count();
    assert!(right >= 10, "the model adds numbers of two digits: {right} of 12");
    let items: Vec<Item> = suite.items.iter().collect();
    let stored: Vec<Stored<'_>> = items
        .iter()
        .zip(&rows)
        .map(|(item, row)| Stored {
            item,
            completion: &row.completion.as_ref().unwrap().text,
            truncated: row.truncated(),
        })
        .collect();
    // The marker of a prompt that opens the thinking goes before generated text only.
    for opened in [None, Some("<think>")] {
        let scores = score_completions(&suite, opened, &stored);
        for (score, row) in scores.iter().zip(&rows) {
            assert!(score.agrees_with(row.score.as_ref().unwrap()), "{}", row.item);
        }
    }
}

/// Rows of two items with a scripted engine.
fn scripted(engine: &mut Scripted<'_>) -> Vec<Sample> {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &Suite::new(Choices { items: 2, preamble: "" }), &Letters, engine)
}

#[test]
fn one_failed_continuation_fails_its_sample_alone() {
    let whole = scripted(&mut Scripted::new());
    assert!(whole.iter().all(|sample| sample.failure.is_none()));
    let scores = whole[0].likelihoods().unwrap().0;
    // " 21" after "Add two numbers: 10 + 11 =", a token each character.
    let logprob = [' ', '2', '1'].map(|character| f64::from(-1.0 / (1.0 + f32::from(character as u16)))).iter().sum();
    assert_eq!(scores[0], ContinuationScore { text: " 21".into(), logprob, tokens: 3 });
    assert_eq!(whole[0].prompt_tokens, "Add two numbers: 10 + 11 =".len());
    assert_eq!(whole[0].completion.as_ref().unwrap().timings.prefill_s, 1.0, "four requests of a quarter");
    // One of them fails once: it is asked again, alone.
    let fails = |times, retryable| Scripted {
        fate: Box::new(move |prompt| match prompt.ends_with("= 22") {
            true => Fate::Fail { times, retryable },
            false => Fate::Answer,
        }),
        ..Scripted::new()
    };
    let mut again = fails(1, true);
    assert_eq!(scripted(&mut again), whole);
    assert_eq!(again.asked.len(), 9);
    for (times, retryable) in [(2, true), (1, false)] {
        let rows = scripted(&mut fails(times, retryable));
        let failure = rows[0].failure.as_ref().unwrap();
        assert_eq!((failure.kind, failure.retryable, &rows[0].completion), (FailureKind::Engine, retryable, &None));
        assert_eq!(rows[1], whole[1]);
    }
    let mut refuses = Scripted {
        fate: Box::new(|prompt| if prompt.ends_with("22") { Fate::Refuse } else { Fate::Answer }),
        ..Scripted::new()
    };
    let rows = scripted(&mut refuses);
    assert_eq!(rows[0].failure.as_ref().unwrap().kind, FailureKind::Refused);
    assert_eq!(rows[1], whole[1]);
}

#[test]
fn nothing_is_cut_off_a_prompt_that_is_too_long() {
    // The longest continuation of the first item just fits, that of the second does not.
    let longest = "Add two numbers: 10 + 11 = 21007".len();
    let rows = scripted(&mut Scripted { context: longest, ..Scripted::new() });
    assert!(rows[0].failure.is_none());
    let failure = rows[1].failure.as_ref().unwrap();
    assert_eq!(failure.kind, FailureKind::BeyondContext);
    assert_eq!(
        failure.message,
        "the prompt with its longest continuation has 33 tokens, more than the context of 32 tokens"
    );
}

/// The only run of an evaluation.
fn evaluated(folder: &Path, name: &str, model: ModelSource, prompt: ModeRequest) -> Result<Vec<Sample>, EvalError> {
    let suite = Suite::new(Choices { items: 6, preamble: "Dés : 1 + 1 = 2\n" });
    let settings = EvaluationSettings { prompt, ..EvaluationSettings::new(suite, model, folder.join(name)) };
    let evaluated = ModelSession::open(&settings)?.evaluate(&settings, &mut ())?;
    let samples: Result<Vec<Sample>, _> = evaluated.store.samples(&evaluated.run, Filter::default()).collect();
    Ok(samples.unwrap())
}

/// Log-likelihoods and token counts of rows, with the lengths of their prompts.
fn scores(rows: &[Sample]) -> Vec<(String, Likelihoods, usize)> {
    let one = |row: &Sample| (row.item.clone(), row.likelihoods().unwrap(), row.prompt_tokens);
    rows.iter().map(one).collect()
}

#[test]
fn endpoints_give_the_bits_of_the_native_engine() {
    let folder = tempfile::tempdir().unwrap();
    let path = tiny_chat(folder.path());
    let located = || LocatedModel::find(&path, &HubSettings::default(), Default::default()).unwrap();
    let server = Server::start(folder.path(), &path, None);
    let endpoint = |api, tokenizer| {
        ModelSource::Endpoint(EndpointSource {
            address: Address::parse(&format!("http://{}/v1", server.address)).unwrap(),
            model: None,
            api,
            tokenizer,
            context: None,
        })
    };
    for prompt in [ModeRequest::Raw, ModeRequest::Chat] {
        let local = ModelSource::Local { model: located(), device: Device::Cpu, note: None };
        let native = evaluated(folder.path(), &format!("native-{prompt:?}"), local, prompt).unwrap();
        assert_eq!(native.len(), 6);
        let by_ids = endpoint(Api::Completions, Some(located()));
        let rows = evaluated(folder.path(), &format!("ids-{prompt:?}"), by_ids, prompt).unwrap();
        assert_eq!(scores(&rows), scores(&native), "{prompt:?} as ids");
    }
    let native = evaluated(
        folder.path(),
        "native",
        ModelSource::Local { model: located(), device: Device::Cpu, note: None },
        ModeRequest::Raw,
    );
    let rows = evaluated(folder.path(), "text", endpoint(Api::Completions, None), ModeRequest::Raw).unwrap();
    assert_eq!(scores(&rows), scores(&native.unwrap()), "as text");
    // The chat API has none, which is said before anything is asked.
    let refused = evaluated(folder.path(), "chat", endpoint(Api::Chat, None), ModeRequest::Chat).unwrap_err();
    assert!(refused.to_string().contains("the chat API gives no log-likelihoods"), "{refused}");
    assert!(refused.help().unwrap().contains("`api = completions`"));
    assert!(!folder.path().join("chat").exists());
}

#[test]
fn an_endpoint_without_log_probabilities_is_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let url = unknown_server(Arc::new(Mutex::new("fp_1")), asked, |_| true);
    let model = ModelSource::Endpoint(EndpointSource {
        address: Address::parse(&url).unwrap(),
        model: None,
        api: Api::Completions,
        tokenizer: None,
        context: None,
    });
    let refused = evaluated(folder.path(), "none", model, ModeRequest::Raw).unwrap_err();
    assert!(refused.to_string().contains("log-likelihoods need /v1/completions with echo and logprobs"), "{refused}");
    assert!(refused.help().unwrap().contains("must offer echo with logprobs"));
    assert!(!folder.path().join("none").exists());
}

/// Largest difference to transformers in f32, with the weights of the same file.
const LARGEST: f64 = 1e-4;

#[test]
fn smollm2_agrees_with_transformers() {
    let Some(folder) = std::env::var_os("EARNEST_MODELS") else {
        eprintln!("skipped: EARNEST_MODELS is not set, so SmolLM2's log-likelihoods are not tested");
        return;
    };
    let checkpoint = Checkpoint::open(&PathBuf::from(folder).join("SmolLM2-135M-Instruct.Q4_1.gguf")).unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/likelihoods/smollm2_135m.json");
    let rows: Vec<serde_json::Value> = serde_json::from_str(&std::fs::read_to_string(golden).unwrap()).unwrap();
    let mut engine = CpuEngine::load(&checkpoint, Options { kv_memory: Some(1 << 28), ..Options::default() }).unwrap();
    let prompter = Prompter::new(&checkpoint, ModeRequest::Raw).unwrap();
    let mut expected = Vec::new();
    for row in &rows {
        let scores: Vec<ContinuationScore> = serde_json::from_value(row["scores"].clone()).unwrap();
        let context = row["context"].as_str().unwrap();
        let item = Item {
            segments: Segments { raw: Some(context.into()), ..Segments::question("") },
            continuations: scores.iter().map(|score| score.text.clone()).collect(),
            ..Item::plain(context, "t", "", "")
        };
        let continuations: Vec<prompt::Continuation> = prompter.render_item(&item).unwrap().1;
        for (prompt::Continuation { whole, from }, score) in continuations.into_iter().zip(scores) {
            let Input::Ids(ids) = whole else { panic!("a checkpoint tokenises") };
            let id = RequestId(expected.len() as u64);
            let logprobs = Logprobs { top: 0, prompt_from: Some(from) };
            engine.submit(Request { logprobs, ..Request::greedy(id, ids, 0) }).unwrap();
            expected.push(score);
        }
    }
    let mut compared = 0;
    loop {
        let events = engine.poll().unwrap();
        if events.is_empty() {
            break;
        }
        for event in events {
            let earnest_engine::Event::Finished(completion) = event else { continue };
            let (score, found) = (&expected[completion.id.0 as usize], completion.prompt_logprobs.unwrap());
            let sum: f64 = found.iter().map(|token| f64::from(token.chosen)).sum();
            assert_eq!(found.len(), score.tokens, "{:?} is tokenised differently", score.text);
            assert!((sum - score.logprob).abs() < LARGEST, "{:?}: {sum}, transformers {}", score.text, score.logprob);
            compared += 1;
        }
    }
    assert_eq!(compared, expected.len());
    assert!(compared > 10);
}
