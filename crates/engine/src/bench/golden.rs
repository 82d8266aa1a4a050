//! An engine against what a reference implementation recorded for small checkpoints.
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::device::ids;
use super::throughput::BenchError;
use crate::{Completion, Engine, Event, Logprobs, Request, RequestId};

/// Tokens of a step whose log-probabilities are recorded.
const LISTED: usize = 20;

/// A recorded file: prompts with logits and greedy continuations.
#[derive(Debug, Deserialize)]
pub struct Recorded {
    /// Prompts, in order.
    pub prompts: Vec<RecordedPrompt>,
}

/// Reasons why a recorded file can not be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordedError {
    /// It can not be read.
    #[error("{file}: {error}")]
    Read {
        /// Path of the file.
        file: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// It is not a recorded file.
    #[error("{file}: {error}")]
    Parse {
        /// Path of the file.
        file: String,
        /// The parser's error.
        error: serde_json::Error,
    },
}

/// One prompt.
#[derive(Debug, Deserialize)]
pub struct RecordedPrompt {
    /// Token ids.
    pub ids: Vec<u32>,
    /// The largest logits after the prompt: (id, logit), the largest first.
    pub logits_last: Vec<(u32, f64)>,
    /// Tokens of greedy decoding.
    pub greedy: Vec<u32>,
    /// Lead of the best logit at each token.
    pub margins: Vec<f64>,
    /// Of all logits after the prompt; none where this program recorded them.
    #[serde(default)]
    pub logits_stats: Option<LogitsStats>,
}

/// Statistics of a row of logits.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct LogitsStats {
    /// Standard deviation.
    pub std: f64,
}

/// Comparison of an engine with a record of one checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GoldenResult {
    /// Name of the checkpoint.
    pub name: String,
    /// Number of prompts.
    pub prompts: usize,
    /// Largest difference of a logit's distance to the largest one.
    pub largest_difference: f64,
    /// Greedy tokens compared.
    pub tokens: usize,
    /// Largest lead of a greedy token that differed; 0 if none did.
    pub largest_lost_margin: f64,
    /// All greedy tokens are the recorded ones.
    pub exact: bool,
}

impl Recorded {
    /// Reads a `golden.json`.
    ///
    /// # Errors
    /// [`RecordedError`] names the file.
    pub fn read(path: &Path) -> Result<Recorded, RecordedError> {
        let file = || path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| RecordedError::Read { file: file(), error })?;
        serde_json::from_str(&text).map_err(|error| RecordedError::Parse { file: file(), error })
    }

    /// Largest standard deviation of the logits after a prompt; none if they were not recorded.
    pub fn spread(&self) -> Option<f64> {
        self.prompts.iter().filter_map(|prompt| prompt.logits_stats).map(|stats| stats.std).reduce(f64::max)
    }
}

/// `count` prompts of random ids: `shared` common ones, then about `own` further ones (from 70 % to 130 %, as questions differ).
pub fn random_prompts(count: usize, shared: usize, own: usize, vocab: usize) -> Vec<Vec<u32>> {
    let common = ids(0, shared, vocab);
    let length = |i: usize| (own * (70 + i * 37 % 61) / 100).max(1);
    (0..count).map(|i| [&common[..], &ids(2_000_000 + i, length(i), vocab)].concat()).collect()
}

/// Records an engine's greedy decoding of prompts, `new` tokens each, for comparison with another engine.
pub fn record(engine: &mut dyn Engine, prompts: &[Vec<u32>], new: usize) -> Result<Recorded, BenchError> {
    for (i, ids) in prompts.iter().enumerate() {
        let logprobs = Logprobs { top: LISTED, prompt_from: None };
        let request = Request { logprobs, ..Request::greedy(RequestId(i as u64), ids.clone(), new) };
        engine.submit(request).map_err(|why| BenchError::Rejected { prompt: i, why })?;
    }
    let recorded = finished(engine, prompts.len())?.into_iter().zip(prompts).map(|(completion, ids)| {
        let listed = completion.logprobs.unwrap_or_default();
        let lead = |top: &[(u32, f32)]| match top {
            [first, second, ..] => f64::from(first.1) - f64::from(second.1),
            _ => f64::INFINITY,
        };
        RecordedPrompt {
            ids: ids.clone(),
            // Of log-probabilities only distances are compared, which are those of the logits.
            logits_last: listed
                .first()
                .map(|l| l.top.iter().map(|&(id, x)| (id, f64::from(x))).collect())
                .unwrap_or_default(),
            greedy: completion.ids,
            margins: listed.iter().map(|l| lead(&l.top)).collect(),
            logits_stats: None,
        }
    });
    Ok(Recorded { prompts: recorded.collect() })
}

/// Log-probabilities of every token after each prompt, by id.
pub fn distributions(engine: &mut dyn Engine, prompts: &[Vec<u32>], vocab: usize) -> Result<Vec<Vec<f32>>, BenchError> {
    for (i, ids) in prompts.iter().enumerate() {
        let logprobs = Logprobs { top: vocab, prompt_from: None };
        let request = Request { logprobs, ..Request::greedy(RequestId(i as u64), ids.clone(), 1) };
        engine.submit(request).map_err(|why| BenchError::Rejected { prompt: i, why })?;
    }
    let by_id = |completion: Completion| {
        let mut row = vec![f32::NAN; vocab];
        for &(id, x) in completion.logprobs.iter().flatten().flat_map(|listed| &listed.top) {
            row[id as usize] = x;
        }
        row
    };
    Ok(finished(engine, prompts.len())?.into_iter().map(by_id).collect())
}

/// Root mean square of the differences of two engines' log-probabilities, in units of the reference's spread; both are taken about their mean in a row,
/// as logits are known but for a constant. About 1.4 if they have nothing to do with each other.
pub fn error_of_spread(reference: &[Vec<f32>], rows: &[Vec<f32>]) -> f64 {
    let square = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.iter().map(|x| (x - mean).powi(2)).sum::<f64>()
    };
    let (mut error, mut spread) = (0.0, 0.0);
    for (expected, got) in reference.iter().zip(rows) {
        let expected: Vec<f64> = expected.iter().map(|x| f64::from(*x)).collect();
        spread += square(&expected);
        error += square(&expected.iter().zip(got).map(|(x, y)| f64::from(*y) - x).collect::<Vec<_>>());
    }
    if error == 0.0 { 0.0 } else { (error / spread).sqrt() }
}

/// Waits for requests 0 to `count`.
fn finished(engine: &mut dyn Engine, count: usize) -> Result<Vec<Completion>, BenchError> {
    let mut done: Vec<Option<Completion>> = vec![None; count];
    loop {
        let events = engine.poll()?;
        if events.is_empty() {
            break;
        }
        for event in events {
            match event {
                Event::Finished(completion) => {
                    let index = completion.id.0 as usize;
                    done[index] = Some(*completion);
                }
                Event::Failed { id, error, .. } => return Err(BenchError::Failed(id.0, error)),
                _ => {}
            }
        }
    }
    match done.iter().filter(|c| c.is_none()).count() {
        0 => Ok(done.into_iter().flatten().collect()),
        lost => Err(BenchError::Lost(lost)),
    }
}

/// Runs every prompt, all in flight together.
pub fn compare(engine: &mut dyn Engine, name: &str, recorded: &Recorded) -> Result<GoldenResult, BenchError> {
    let count = recorded.prompts.len();
    for (i, p) in recorded.prompts.iter().enumerate() {
        let refused = |why| BenchError::Rejected { prompt: i, why };
        // Once for the logits, once as they are usually decoded.
        let logprobs = Logprobs { top: p.logits_last.len(), prompt_from: None };
        let first = Request { logprobs, ..Request::greedy(RequestId(i as u64), p.ids.clone(), 1) };
        engine.submit(first).map_err(refused)?;
        let whole = Request::greedy(RequestId((count + i) as u64), p.ids.clone(), p.greedy.len());
        engine.submit(whole).map_err(refused)?;
    }
    let done = finished(engine, 2 * count)?;
    let mut result = GoldenResult {
        name: name.to_owned(),
        prompts: count,
        largest_difference: 0.0,
        tokens: 0,
        largest_lost_margin: 0.0,
        exact: true,
    };
    for (i, p) in recorded.prompts.iter().enumerate() {
        let top = done[i].logprobs.as_ref().and_then(|l| l.first()).map(|l| l.top.as_slice()).unwrap_or_default();
        let Some(&(best, best_logit)) = p.logits_last.first() else { continue };
        let of = |id: u32| top.iter().find(|t| t.0 == id).map(|t| f64::from(t.1));
        for &(id, logit) in &p.logits_last {
            // One that fell out of the list is at least as small as the list's last.
            let smallest = top.last().map_or(f64::NAN, |t| f64::from(t.1));
            let ours = of(id).unwrap_or(smallest) - of(best).unwrap_or(smallest);
            let difference = (ours - (logit - best_logit)).abs();
            if difference.is_nan() || difference > result.largest_difference {
                result.largest_difference = if difference.is_nan() { f64::INFINITY } else { difference };
            }
        }
        let ids = &done[count + i].ids;
        let same = ids.iter().zip(&p.greedy).take_while(|(a, b)| a == b).count();
        result.tokens += same;
        if same < p.greedy.len() {
            result.exact = false;
            let margin = p.margins.get(same).copied().unwrap_or(f64::INFINITY);
            result.largest_lost_margin = result.largest_lost_margin.max(margin);
        }
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::{CpuEngine, Options};
    use earnest_models::checkpoint::Checkpoint;

    #[test]
    fn an_engine_agrees_with_what_it_computed_itself() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/engine/checkpoints/llama");
        let checkpoint = Checkpoint::open(&folder).unwrap();
        let prompts = random_prompts(5, 70, 20, checkpoint.config.vocab_size);
        assert!(prompts.iter().all(|p| p[..70] == prompts[0][..70] && (84..=96).contains(&p.len())));
        let load = |prefix_cache| CpuEngine::load(&checkpoint, Options { prefix_cache, ..Options::default() }).unwrap();
        let mut recorded = record(&mut load(false), &prompts, 6).unwrap();
        let found = compare(&mut load(true), "llama", &recorded).unwrap();
        assert_eq!((found.exact, found.largest_difference, found.tokens), (true, 0.0, 30), "{found:?}");
        let rows =
            |prefix_cache| distributions(&mut load(prefix_cache), &prompts, checkpoint.config.vocab_size).unwrap();
        let (mut these, those) = (rows(true), rows(false));
        assert_eq!(error_of_spread(&those, &these), 0.0);
        let mass = |row: &Vec<f32>| row.iter().map(|x| f64::from(*x).exp()).sum::<f64>();
        assert!(these.iter().all(|row| (mass(row) - 1.0).abs() < 1e-5), "every token has its log-probability");
        // A constant is no difference; another prompt's row is.
        these[0].iter_mut().for_each(|x| *x += 0.5);
        assert!(error_of_spread(&those, &these) < 1e-6);
        these.rotate_left(1);
        let error = error_of_spread(&those, &these);
        assert!((0.1..1.6).contains(&error), "{error}");
        recorded.prompts[3].greedy[1] += 1;
        let found = compare(&mut load(true), "llama", &recorded).unwrap();
        assert!(!found.exact && found.largest_lost_margin == recorded.prompts[3].margins[1], "{found:?}");
    }

    #[test]
    fn published_quantisations_are_computed_as_recorded() {
        for name in ["llama-awq-gemm", "llama-fp8-block128", "llama-fp8-compressed-tensors", "llama-gptq-desc-act"] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/engine/checkpoints").join(name);
            let recorded = Recorded::read(&folder.join("golden.json")).unwrap();
            let checkpoint = Checkpoint::open(&folder).unwrap();
            assert!(checkpoint.is_quantised(), "{name}");
            let found =
                compare(&mut CpuEngine::load(&checkpoint, Options::default()).unwrap(), name, &recorded).unwrap();
            assert!(found.exact && found.largest_difference < 1e-4 && found.prompts == 6, "{found:?}");
        }
    }

    #[test]
    fn the_cpu_engine_is_the_recorded_one_and_a_changed_record_is_noticed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/engine/checkpoints/qwen2");
        let mut recorded = Recorded::read(&folder.join("golden.json")).unwrap();
        let mut native = CpuEngine::load(&Checkpoint::open(&folder).unwrap(), Options::default()).unwrap();
        let found = compare(&mut native, "qwen2", &recorded).unwrap();
        assert!(found.exact && found.largest_difference < 1e-4 && found.tokens > 20, "{found:?}");
        recorded.prompts[0].greedy[2] += 1;
        recorded.prompts[0].logits_last[4].1 += 0.5;
        let found = compare(&mut native, "qwen2", &recorded).unwrap();
        assert!(!found.exact && found.largest_difference > 0.4 && found.largest_lost_margin > 0.0, "{found:?}");
    }
}
