//! Options of `earnest train lora`, and the settings of a new or resumed training.
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};

use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::models::{HubArgs, locate};
use crate::cli::printer::Printer;
use crate::cli::train::number_model::{StoredArg, Weighted};
use earnest_digest::input;
use earnest_models::checkpoint::WeightFormat;
use earnest_train::{
    AdamWSettings, AdapterSettings, Base, BaseRecord, FormatSettings, LoraData, LoraSettings, PromptForm, Retrofit,
    TARGETS,
};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest train lora --model SmolLM2.gguf --out tuned --tasks add_Integer --lengths 1-4 --steps 200 --merge tuned-merged
  earnest run nupa --model tuned-merged --prompt raw --tasks add_Integer --lengths 1-6
  earnest train lora --model SmolLM2.gguf --out traced --style rule-following --tasks digit_max_Integer --lengths 1-3
  earnest train lora --model SmolLM2.gguf --out nope --nope --reversal int --zero-padding --tasks add_Integer --lengths 1-6
  earnest perturb train.jsonl --kinds all -o attacked.jsonl
  earnest train lora --model base --out defended --pairs attacked.jsonl --prompt chat --held-out 0.2
  earnest train lora --out tuned --resume                    continues after Ctrl-C, a kill or a power cut
  earnest train merge --model SmolLM2.gguf --adapter tuned --out tuned-merged

The folder then holds the adapters with the best validation in PEFT's format (adapter_config.json, adapter_model.safetensors), \
the settings (training.json) and a log (log.jsonl). Prompts are the same as in `earnest run` with the same --prompt and --style; \
the loss counts the tokens of answers and their end, not of prompts. Validation is exact match on questions of the split \
`valid`; the first one is of the model as loaded. `run nupa` asks the split `test`, which shares no question with the others.

Supported families are Llama, Mistral, Qwen 2 and 3, SmolLM3 and Gemma, from a Hugging Face folder or a GGUF file. Training runs \
on the CPU in 32-bit floats.")]
pub struct LoraArgs {
    /// Folder for the adapters
    #[arg(long, short, value_name = "DIR")]
    pub out: PathBuf,

    /// Model: a name from `earnest models list`, org/repo@<40-digit commit>, a Hugging Face folder or a GGUF file
    #[arg(
        long,
        value_name = "MODEL",
        env = "EARNEST_MODEL",
        hide_env_values = true,
        required_unless_present = "resume"
    )]
    pub model: Option<PathBuf>,

    #[command(flatten)]
    pub hub: HubArgs,

    /// Continue the unfinished training in the folder with its settings
    #[arg(long, conflicts_with_all = FIXED)]
    pub resume: bool,

    /// Folder for an ordinary checkpoint with the adapters merged, written at the end
    #[arg(long, value_name = "DIR")]
    pub merge: Option<PathBuf>,

    /// Element type of the merged weights
    #[arg(long, value_name = "TYPE", value_enum, default_value_t = StoredArg::F32)]
    pub store: StoredArg,

    /// Rank of the adapters
    #[arg(long, value_name = "N", default_value_t = 16, help_heading = "Adapters")]
    pub rank: usize,

    /// Scale of the adapters: alpha / rank
    #[arg(long, value_name = "ALPHA", default_value_t = 32.0, help_heading = "Adapters")]
    pub alpha: f64,

    /// Matrices that get an adapter
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_values_t = TARGETS.map(str::to_owned), help_heading = "Adapters")]
    pub targets: Vec<String>,

    /// Dropout rate of an adapter's inputs
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Adapters")]
    pub dropout: f64,

    /// Remove the rotary embedding (NoPE, Table 18); the result is a SmolLM3ForCausalLM without it
    #[arg(long, help_heading = "Retrofits")]
    pub nope: bool,

    /// Tokenise numbers as single digits (Table 18); the written tokenizer does the same
    #[arg(long, help_heading = "Retrofits")]
    pub single_digits: bool,

    /// Digits to write backwards: of integers and integer parts, of decimals, of each part, or of the total text
    #[arg(long, value_name = "PARTS", default_value = "none", value_parser = PossibleValuesParser::new(["none", "int", "dec", "each", "total"]), help_heading = "Retrofits")]
    pub reversal: String,

    /// Pad the operands with zeros, part by part, to the longer one's length
    #[arg(long, help_heading = "Retrofits")]
    pub zero_padding: bool,

    /// Index hints before every digit of the operands, from an alphabet of N
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "30", help_heading = "Retrofits")]
    pub index_hints: Option<usize>,

    /// NUPA or Arithmetic-Bench tasks, separated by commas, e.g. add_Integer,arithmetic-bench:copy
    #[arg(
        long,
        value_name = "TASKS",
        value_delimiter = ',',
        default_value = "add_Integer",
        help_heading = "Questions"
    )]
    pub tasks: Vec<String>,

    /// Training lengths; a length named twice is drawn twice as often
    #[arg(long, value_name = "LENGTHS", default_value = "1-4", help_heading = "Questions")]
    pub lengths: Weighted,

    /// Longer lengths for validation only
    #[arg(long, value_name = "LENGTHS", help_heading = "Questions")]
    pub beyond: Option<Weighted>,

    /// Answer style: directly, or by following a rule given as a Python program (RF-CoT)
    #[arg(long, value_name = "STYLE", default_value = "direct", value_parser = PossibleValuesParser::new(["direct", "rule-following"]), help_heading = "Questions")]
    pub style: String,

    /// Minimum length of the shorter operand: half of the longer one's, or any
    #[arg(long, value_name = "HOW", default_value = "half", value_parser = PossibleValuesParser::new(["half", "any"]), help_heading = "Questions")]
    pub short_operand: String,

    /// Prompt format: plain text, or the checkpoint's chat template
    #[arg(long, value_name = "PROMPT", value_enum, default_value_t = PromptArg::Raw, help_heading = "Questions")]
    pub prompt: PromptArg,

    /// File of JSON lines with prompts and completions to train on instead, e.g. from `earnest perturb` or `earnest generate`
    #[arg(long, value_name = "FILE", conflicts_with_all = OF_QUESTIONS, help_heading = "Pairs of your own")]
    pub pairs: Option<PathBuf>,

    /// Fraction of the rows held out for validation
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, requires = "pairs", help_heading = "Pairs of your own")]
    pub held_out: f64,

    /// Field with the prompt [default: prompt, question, Question (after Body, passage or context), problem or instruction]
    #[arg(long, value_name = "FIELD", requires = "pairs", help_heading = "Pairs of your own")]
    pub prompt_field: Option<String>,

    /// Field with the completion [default: completion, answer, Answer, response or gold]
    #[arg(long, value_name = "FIELD", requires = "pairs", help_heading = "Pairs of your own")]
    pub completion_field: Option<String>,

    /// System message; in a raw prompt, its first line
    #[arg(long, value_name = "TEXT", requires = "pairs", help_heading = "Pairs of your own")]
    pub system: Option<String>,

    /// Separator of a raw prompt and its completion if neither has white space there; \n is a line break [default: a space]
    #[arg(
        long,
        value_name = "TEXT",
        default_value = " ",
        hide_default_value = true,
        requires = "pairs",
        help_heading = "Pairs of your own"
    )]
    pub separator: String,

    /// Seed of the adapters, questions and dropout
    #[arg(long, value_name = "SEED", default_value_t = 1, help_heading = "Training")]
    pub seed: u64,

    /// Number of optimiser steps
    #[arg(long, value_name = "N", default_value_t = 200, help_heading = "Training")]
    pub steps: u64,

    /// Examples per step
    #[arg(long, value_name = "N", default_value_t = 16, help_heading = "Training")]
    pub batch: usize,

    /// Gradient accumulation: number of pieces a batch is computed in; more take less memory
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Training")]
    pub accumulate: usize,

    /// Number of parts of a piece computed in parallel, at most one per core
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Training")]
    pub parts: usize,

    /// Peak learning rate, with cosine decay to zero
    #[arg(long, value_name = "RATE", default_value_t = 1e-3, help_heading = "Training")]
    pub learning_rate: f64,

    /// Warm-up steps, in which the learning rate rises to its peak
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Training")]
    pub warm_up: u64,

    /// Largest norm of the gradients; larger ones are scaled down to it
    #[arg(long, value_name = "NORM", default_value_t = 1.0, help_heading = "Training")]
    pub clip: f64,

    /// Weight decay
    #[arg(long, value_name = "RATE", default_value_t = 0.01, help_heading = "Training")]
    pub weight_decay: f64,

    /// AdamW's decay rate of the second moment
    #[arg(long, value_name = "BETA", default_value_t = 0.999, help_heading = "Training")]
    pub beta2: f64,

    /// Steps between validations; each saves the state, and the adapters if they are the best so far
    #[arg(long, value_name = "N", default_value_t = 50, help_heading = "Training")]
    pub validate_every: u64,

    /// Validation questions per task and length, or held-out rows in total
    #[arg(long, value_name = "N", default_value_t = 20, help_heading = "Training")]
    pub validation: usize,

    /// Longest sequence in tokens; longer traces are skipped, other longer examples are an error [default: 1024, or the
    /// checkpoint's context if that is shorter]
    #[arg(long, value_name = "TOKENS", help_heading = "Training")]
    pub context: Option<usize>,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Default of `--context`, in tokens.
const DEFAULT_CONTEXT: usize = 1024;

/// Options stored in `training.json`.
const FIXED: [&str; 34] = [
    "rank",
    "alpha",
    "targets",
    "dropout",
    "nope",
    "single_digits",
    "reversal",
    "zero_padding",
    "index_hints",
    "tasks",
    "lengths",
    "beyond",
    "style",
    "short_operand",
    "prompt",
    "pairs",
    "held_out",
    "prompt_field",
    "completion_field",
    "system",
    "separator",
    "seed",
    "steps",
    "batch",
    "accumulate",
    "parts",
    "learning_rate",
    "warm_up",
    "clip",
    "weight_decay",
    "beta2",
    "validate_every",
    "validation",
    "context",
];

/// Options of generated questions, which `--pairs` excludes.
const OF_QUESTIONS: [&str; 8] =
    ["tasks", "lengths", "beyond", "style", "short_operand", "reversal", "zero_padding", "index_hints"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PromptArg {
    Raw,
    Chat,
}

impl LoraArgs {
    fn data(&self) -> Result<LoraData, CliError> {
        let Some(file) = &self.pairs else {
            return Ok(LoraData::Questions {
                tasks: self.tasks.clone(),
                lengths: self.lengths.0.clone(),
                beyond: self.beyond.as_ref().map(|lengths| lengths.0.clone()).unwrap_or_default(),
                format: FormatSettings {
                    reversal: self.reversal.clone(),
                    zero_padding: self.zero_padding,
                    index_hints: self.index_hints,
                },
                any_shorter_operand: self.short_operand == "any",
                rule_following: self.style == "rule-following",
            });
        };
        let sha256 = earnest_digest::sha256_file(file, |_| {})
            .map_err(|error| CliError::usage(format!("cannot read {}: {error}", file.display())))?;
        Ok(LoraData::Pairs {
            file: file.clone(),
            sha256,
            held_out: self.held_out,
            prompt_field: self.prompt_field.clone(),
            completion_field: self.completion_field.clone(),
            system: self.system.clone(),
            separator: self.separator.replace("\\n", "\n"),
        })
    }

    fn new_settings(&self, given: &Path, printer: Printer) -> Result<LoraSettings, CliError> {
        let path = locate(given, &self.hub, WeightFormat::default(), printer)?.path().to_owned();
        // Absolute, so that `--resume` finds it from another folder.
        let path = std::path::absolute(&path).unwrap_or(path);
        let retrofit = Retrofit { nope: self.nope, single_digits: self.single_digits };
        let mut settings = LoraSettings {
            base: BaseRecord {
                model: given.display().to_string(),
                path,
                files: Default::default(),
                allow_config: self.hub.allow_config.clone(),
            },
            retrofit,
            adapters: AdapterSettings {
                rank: self.rank,
                alpha: self.alpha,
                targets: self.targets.clone(),
                dropout: self.dropout,
            },
            data: self.data()?,
            prompt: match self.prompt {
                PromptArg::Raw => PromptForm::Raw,
                PromptArg::Chat => PromptForm::Chat,
            },
            seed: self.seed,
            batch: self.batch,
            accumulate: self.accumulate,
            parts: self.parts,
            steps: self.steps,
            learning_rate: self.learning_rate,
            warm_up: self.warm_up,
            optimiser: AdamWSettings {
                clip: self.clip,
                weight_decay: self.weight_decay,
                beta2: self.beta2,
                ..AdamWSettings::default()
            },
            validate_every: self.validate_every,
            validation: self.validation,
            context: self.context.unwrap_or(DEFAULT_CONTEXT),
        };
        settings.check()?;
        let base = Base::open_allowing(&settings.base.path, &settings.base.allow_config, retrofit)?;
        if self.context.is_none() {
            settings.context = settings.context.min(base.checkpoint().config.max_positions);
        }
        settings.base.files = base.digests()?;
        Ok(settings)
    }

    /// The settings of the training: those of the unfinished one in the folder, or new ones.
    ///
    /// # Errors
    /// The folder does not fit the options.
    pub(super) fn settings(&self, printer: Printer) -> Result<LoraSettings, CliError> {
        let in_folder = |name: &str| self.out.join(name);
        let unfinished = in_folder("state.json").exists();
        let Some(given) = self.model.as_deref().filter(|_| !self.resume) else {
            if !unfinished {
                let message = format!("{} holds no unfinished training", self.out.display());
                return Err(CliError::new(Exit::Results, message).help("leave --resume out to begin a new training"));
            }
            let path = in_folder("training.json");
            let failed = |what: String| CliError::new(Exit::Results, format!("cannot read {}: {what}", path.display()));
            let text = input::read_text(&path, input::MOST_SETTINGS).map_err(|error| failed(error.to_string()))?;
            let mut settings: LoraSettings = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
            if let Some(given) = &self.model {
                // It may have moved; the digests of its files are compared later.
                settings.base.path = locate(given, &self.hub, WeightFormat::default(), printer)?.path().to_owned();
            }
            return Ok(settings);
        };
        if unfinished {
            let message = format!("{} already holds an unfinished training", self.out.display());
            return Err(CliError::new(Exit::Results, message).help("continue it with --resume, or name another folder"));
        }
        if in_folder("adapter_model.safetensors").exists() || in_folder("config.json").exists() {
            let message = format!("{} already holds adapters or a model", self.out.display());
            return Err(CliError::new(Exit::Results, message).help("name another folder"));
        }
        if in_folder("log.jsonl").exists() && !in_folder("training.json").exists() {
            let message =
                format!("{} has a log.jsonl that is of no training and would be replaced", self.out.display());
            return Err(CliError::new(Exit::Results, message).help("name another folder"));
        }
        self.new_settings(given, printer)
    }
}
