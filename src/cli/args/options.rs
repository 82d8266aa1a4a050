//! Groups of options that several commands share, and the settings that they become.
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::DeviceList;
use crate::cli::catalogue;
use crate::cli::error::CliError;
use crate::cli::models::HubArgs;
use crate::cli::results_folder::DEFAULT_RESULTS;
use crate::cli::values::{ByteSize, Prompts, one_of};
use earnest_engine::cuda::Variants;
use earnest_eval::evaluate::{EndOfSequence, GenerationSettings};
use earnest_eval::model::{BUILT_IN, DeviceChoice, EngineSettings, LARGER_THAN_A_GPU};
use earnest_results::ThinkingRequest;
use earnest_tasks::suite::ThinkingText;

/// `--seed`.
#[derive(Debug, Clone, Copy, Args)]
pub struct SeedArgs {
    /// Seed of the items and of sampling
    #[arg(long, value_name = "SEED", default_value_t = 1, help_heading = "Items")]
    pub seed: u64,
}

/// A model and its prompt format.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Model")]
pub struct ModelArgs {
    /// Model: a name from `earnest models list`, org/repo@<40-digit commit>, a Hugging Face folder or a GGUF file
    #[arg(long, value_name = "MODEL", env = "EARNEST_MODEL", hide_env_values = true, default_value = BUILT_IN)]
    pub model: PathBuf,

    /// Prompt format: `chat` uses the checkpoint's chat template, `raw` plain text, `auto` chat if there is a template; for
    /// suites with several prompts also their names, e.g. `all` or `raw,simple-code` [default: auto]
    #[arg(long, value_name = "PROMPT")]
    pub prompt: Option<Prompts>,

    #[command(flatten)]
    pub hub: HubArgs,
}

/// Decoding and token budgets.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Generation")]
pub struct GenerationArgs {
    /// Sampling temperature; 0 is greedy decoding, which keeps runs comparable [default: 0]
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    pub temperature: Option<f32>,

    /// Number of top tokens to sample from; 0 means all [default: 0]
    #[arg(long, value_name = "K")]
    pub top_k: Option<usize>,

    /// Probability mass of the most probable tokens to sample from [default: 1]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub top_p: Option<f32>,

    /// Smallest probability of a sampled token, relative to the most probable one [default: 0]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub min_p: Option<f32>,

    /// Divisor of the logits of tokens seen before; 1 means no penalty [default: 1]
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    pub repetition_penalty: Option<f32>,

    /// Start from the decoding recommended by the list of models (`earnest models show NAME`), else by the checkpoint's
    /// generation_config; the options above override it
    #[arg(long)]
    pub recommended: bool,

    /// Limit of new tokens per completion, instead of the suite's budget
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<usize>,

    /// Tokens that end a completion: all that the checkpoint names, or only the tokenizer's end-of-sequence token, as in the
    /// GSM-Symbolic study (models that end turns with another token then run on) [default: all]
    #[arg(long, value_name = "WHICH", value_parser = one_of(&[
        ("all", "", EndOfSequence::All),
        ("tokenizer", "", EndOfSequence::Tokenizer),
    ]))]
    pub eos: Option<EndOfSequence>,

    /// Thinking mode: sets the chat template's enable_thinking, where it has one, and the suite's larger budget for models that
    /// think first; auto leaves both to the template
    #[arg(long, value_name = "WHEN", value_parser = thinking(), default_value = "auto")]
    pub thinking: ThinkingRequest,

    /// Thinking text in scoring
    #[arg(long, value_name = "HOW", default_value = "strip", value_parser = one_of(&[
        ("strip", "Score only the text after the thinking", ThinkingText::Stripped),
        ("keep", "Score the thinking too", ThinkingText::Kept),
    ]))]
    pub thinking_text: ThinkingText,
}

/// Parser of `--thinking`.
pub fn thinking() -> impl TypedValueParser<Value = ThinkingRequest> {
    one_of(&[("auto", "", ThinkingRequest::Auto), ("on", "", ThinkingRequest::On), ("off", "", ThinkingRequest::Off)])
}

impl GenerationArgs {
    /// The settings, with the seed from `--seed`.
    pub fn settings(&self, seed: u64) -> GenerationSettings {
        GenerationSettings {
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            repetition_penalty: self.repetition_penalty,
            recommended: self.recommended,
            max_tokens: self.max_tokens,
            eos: self.eos.unwrap_or_default(),
            thinking: self.thinking,
            seed,
        }
    }
}

/// Limits of the engine, none of which changes an answer, and its device.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Engine")]
pub struct EngineArgs {
    /// Maximum batch size in sequences [default: chosen by the engine]
    #[arg(long, value_name = "N")]
    pub max_batch: Option<usize>,

    /// Memory for the KV cache, e.g. 2GiB or 512MiB [default: chosen by the engine]
    #[arg(long, value_name = "SIZE")]
    pub kv_memory: Option<ByteSize>,

    /// Number of CPU threads, at most one per core [default: all cores]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,

    /// Turn the prefix cache off: compute every prompt from its first token
    #[arg(long)]
    pub no_prefix_cache: bool,

    /// Device: auto (a GPU that is ready, else the CPU), cpu, cuda or cuda:N; part of a run's settings, because devices round
    /// differently [default: auto]
    #[arg(long, value_name = "DEVICE", env = "EARNEST_DEVICE", hide_env_values = true, value_parser = str::parse::<DeviceChoice>)]
    pub device: Option<DeviceChoice>,

    /// Batch-invariant arithmetic on a GPU: a request's bits do not depend on its batch, as is always so on the CPU. Part of a
    /// run's settings
    #[arg(long)]
    pub batch_invariant: bool,

    /// Variants of the computation on a GPU that are not the default; those with other bits are part of a run's settings
    #[arg(long, value_name = "NAME,NAME", value_parser = str::parse::<Variants>, hide = true)]
    pub cuda_variant: Option<Variants>,

    /// GPUs instead of --device, e.g. 0,1: a process each for a part of the run
    // Shown by the commands that take it.
    #[arg(long, value_name = "N,N", value_parser = str::parse::<DeviceList>, hide = true)]
    pub devices: Option<DeviceList>,
}

impl EngineArgs {
    /// The settings of one device: the first of several.
    ///
    /// # Errors
    /// As [`settings`](EngineArgs::settings).
    pub fn first_settings(&self) -> Result<EngineSettings, CliError> {
        let first = self.devices.as_ref().and_then(|list| list.0.first().copied());
        // EARNEST_DEVICE is the usual device, which --devices may replace; --device beside it is a mistake.
        let usual = std::env::var("EARNEST_DEVICE").ok().and_then(|text| text.parse::<DeviceChoice>().ok());
        if first.is_some() && self.device.is_some() && self.device != usual {
            return Err(CliError::usage("--device and --devices both name devices; leave one out"));
        }
        EngineArgs { devices: None, device: first.or(self.device), ..self.clone() }.settings()
    }

    /// The settings.
    ///
    /// # Errors
    /// A limit leaves nothing to compute, or one model is to run on several GPUs.
    pub fn settings(&self) -> Result<EngineSettings, CliError> {
        if self.devices.is_some() {
            return Err(CliError::usage(
                "--devices is for `earnest run` with a suite: one process per GPU, each with the whole model",
            )
            .help(format!("name one GPU with --device cuda:N; {}", LARGER_THAN_A_GPU)));
        }
        if self.device == Some(DeviceChoice::Cpu) && self.cuda_variant.is_some_and(|variants| !variants.is_empty()) {
            return Err(CliError::usage("--cuda-variant changes the computation on a GPU, and --device is cpu"));
        }
        let settings = EngineSettings {
            max_batch: self.max_batch,
            kv_memory: self.kv_memory.map(|size| size.0),
            threads: self.threads,
            prefix_cache: !self.no_prefix_cache,
            device: self.device.unwrap_or_default(),
            batch_invariant: self.batch_invariant,
            cuda_variants: self.cuda_variant.unwrap_or_default(),
        };
        settings.check()?;
        Ok(settings)
    }
}

/// Parser of `--threads`: at least one.
pub fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least 1 thread is needed; leave the option out for all cores".to_owned()),
        Ok(threads) => Ok(threads),
        Err(_) => Err(format!("{text} is not a number of threads")),
    }
}

/// The results folder.
#[derive(Debug, Clone, Args)]
pub struct ResultsArgs {
    /// Results folder
    #[arg(
        long = "results",
        value_name = "DIR",
        env = "EARNEST_RESULTS",
        hide_env_values = true,
        default_value = DEFAULT_RESULTS,
        help_heading = "Results"
    )]
    pub folder: PathBuf,
}

/// `--metric`.
#[derive(Debug, Clone, Default, Args)]
pub struct TableArgs {
    /// Table to print, for suites that have several, or `all`; a finished run prints another one at once [default: the first, shortened to one screen]
    #[arg(long, value_name = "METRIC", value_parser = tables(), help_heading = "Results")]
    pub metric: Option<String>,
}

/// Names of tables.
fn tables() -> PossibleValuesParser {
    PossibleValuesParser::new(catalogue::tables().into_iter().chain(["all"]))
}
