//! Plan of the study's runs: models, prompts, tokens and device hours.
use serde::Serialize;

use crate::gsm_symbolic::published::{Model, models, number_effects};
use earnest_tasks::suite::gsm_symbolic::Prompt;

/// Size of one prompt's questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PromptSize {
    pub prompt: Prompt,
    pub questions: usize,
    /// Tokens of all prompts, and of all prompts with the shared prefix computed once.
    pub tokens: u64,
    pub tokens_after_prefix: u64,
    /// True if a tokenizer counted them, false for an estimate.
    pub counted: bool,
}

/// Assumptions behind an estimate of time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Assumptions {
    /// Device that the rates below belong to.
    pub device: String,
    /// UTF-8 bytes per token, by Mistral's tokenizers on these prompts.
    pub bytes_per_token: f64,
    /// Mean bytes per question of GSM-Symbolic.
    pub bytes_per_question: f64,
    /// New tokens per answer until `Q:` or EOS.
    pub tokens_per_answer: f64,
    /// Cap of new tokens per answer; the study's by default.
    pub most_tokens_per_answer: u64,
    /// Batch size of decoding.
    pub batch: f64,
    /// Achieved arithmetic and memory throughput, at 2 operations and 2 bytes per parameter.
    pub flop_per_second: f64,
    pub bytes_per_second: f64,
    /// True for rates measured on a device, false for those of a data sheet.
    pub measured: bool,
}

impl Default for Assumptions {
    fn default() -> Self {
        Assumptions {
            device: "one H200 in bf16, at 40 % of 990 TFLOP/s and 60 % of 4.8 TB/s".to_owned(),
            bytes_per_token: 3.2,
            bytes_per_question: 244.0,
            tokens_per_answer: 150.0,
            most_tokens_per_answer: CAP,
            batch: 128.0,
            flop_per_second: 0.4 * 990e12,
            bytes_per_second: 0.6 * 4.8e12,
            measured: false,
        }
    }
}

impl Assumptions {
    /// Assumptions from the measured rates of a model with `parameters` parameters; time is assumed proportional to them. `prefilled`
    /// tokens took `prefill_s` seconds, and each decoding step of `batch` sequences `step_s`.
    pub fn measured(device: String, parameters: f64, prefilled: f64, prefill_s: f64, batch: f64, step_s: f64) -> Self {
        Assumptions {
            device,
            batch,
            flop_per_second: 2.0 * parameters * prefilled / prefill_s,
            bytes_per_second: 2.0 * parameters / step_s,
            measured: true,
            ..Assumptions::default()
        }
    }
}

/// Bytes of the five prompts without the question.
const PROMPT_BYTES: [f64; 5] = [2517.0, 2586.0, 4160.0, 4089.0, 5706.0];

/// A planned run of one model on one prompt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedRun {
    pub model: String,
    pub repository: String,
    pub commit: String,
    pub prompt: Prompt,
    /// 1: all models on the GSM prompt; 2: the selected models on the other prompts.
    pub phase: u8,
    pub questions: usize,
    pub prompt_tokens: u64,
    pub new_tokens: u64,
    /// Upper bound of new tokens: the cap for every answer.
    pub most_new_tokens: u64,
    pub hours: f64,
}

/// The study's matrix.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyPlan {
    pub assumptions: Assumptions,
    pub runs: Vec<PlannedRun>,
    pub hours: f64,
    pub notes: Vec<String>,
}

/// Cap of new tokens per answer in the study.
const CAP: u64 = 1024;

impl PromptSize {
    /// Estimates a size without a tokenizer.
    pub fn estimate(prompt: Prompt, questions: usize, assumptions: &Assumptions) -> Self {
        let question = assumptions.bytes_per_question / assumptions.bytes_per_token;
        let shared = PROMPT_BYTES[prompt as usize] / assumptions.bytes_per_token;
        let n = questions as f64;
        PromptSize {
            prompt,
            questions,
            tokens: (n * (shared + question)) as u64,
            tokens_after_prefix: (shared + n * question) as u64,
            counted: false,
        }
    }
}

/// Plans the paper's matrix for these sizes (one per prompt): twenty models on the GSM prompt, its ten selected ones on the others.
pub fn plan(sizes: &[PromptSize], assumptions: Assumptions) -> StudyPlan {
    let mut runs = Vec::new();
    for size in sizes {
        let selected =
            |model: &&Model| size.prompt == Prompt::Gsm || number_effects().iter().any(|row| row.model == model.name());
        runs.extend(models().iter().filter(selected).map(|model| run(model, size, &assumptions)));
    }
    runs.sort_by_key(|run| run.phase);
    let hours = if assumptions.measured {
        format!(
            "Hours are scaled by the number of parameters, which is inaccurate for quantised and for much larger models, from rates \
             measured on {}: {:.2} TFLOP/s for prompts, with the shared prefix computed once; {:.1} GB/s of weights (2 bytes per parameter) \
             for each of (answers x tokens / {}) steps; loading is excluded.",
            assumptions.device,
            assumptions.flop_per_second / 1e12,
            assumptions.bytes_per_second / 1e9,
            assumptions.batch
        )
    } else {
        format!(
            "Hours are a lower bound for {}: 2 x parameters x tokens / {:.0} TFLOP/s for prompts, with the shared prefix computed \
             once, plus one read of the weights (2 bytes per parameter) at {:.1} TB/s for each of (answers x tokens / {}) steps; KV \
             cache, loading and scheduling are excluded. The setting `model = MODEL` with the setting `measure` measures this machine.",
            assumptions.device,
            assumptions.flop_per_second / 1e12,
            assumptions.bytes_per_second / 1e12,
            assumptions.batch
        )
    };
    let mut notes = vec![
        hours,
        format!(
            "Answers are assumed to have {} tokens on average; the cap is {}, which models that never write `Q:` or EOS reach.",
            assumptions.tokens_per_answer, assumptions.most_tokens_per_answer
        ),
        "The setting `run` proceeds model by model: it loads a model once, runs the GSM prompt, decides from the answers whether the model \
         belongs to the second phase, and then runs the other four prompts; a model whose runs are finished is not loaded."
            .to_owned(),
        "The first phase decides the second: the plan assumes the paper's ten models, of which gemma-2-2b is there only because \
         of the artefact of lme4's inner tolerance."
            .to_owned(),
        "The study itself took about 1,000 hours on A40 and V100 cards, one answer at a time.".to_owned(),
    ];
    if sizes.iter().any(|size| !size.counted) {
        notes.push(format!(
            "Prompt tokens are estimated with {} bytes per token and {} bytes per question; the setting `model = PATH` with the setting \
             `data` counts them.",
            assumptions.bytes_per_token, assumptions.bytes_per_question
        ));
    }
    StudyPlan { hours: runs.iter().map(|run| run.hours).sum(), assumptions, runs, notes }
}

fn run(model: &Model, size: &PromptSize, assumptions: &Assumptions) -> PlannedRun {
    let (parameters, answers) = (model.billions() * 1e9, size.questions as f64);
    let prefill = 2.0 * parameters * size.tokens_after_prefix as f64 / assumptions.flop_per_second;
    let steps = (answers / assumptions.batch).ceil() * assumptions.tokens_per_answer;
    let decode = steps * 2.0 * parameters / assumptions.bytes_per_second;
    PlannedRun {
        model: model.name().to_owned(),
        repository: model.repository.clone(),
        commit: model.commit.clone(),
        prompt: size.prompt,
        phase: if size.prompt == Prompt::Gsm { 1 } else { 2 },
        questions: size.questions,
        prompt_tokens: size.tokens,
        new_tokens: (answers * assumptions.tokens_per_answer) as u64,
        most_new_tokens: size.questions as u64 * assumptions.most_tokens_per_answer,
        hours: (prefill + decode) / 3600.0,
    }
}
