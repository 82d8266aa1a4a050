//! Options of `earnest train lora`, and the settings of a new or resumed training.
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::models::{HubArgs, locate};
use crate::cli::printer::Printer;
use crate::cli::train::number_model::Weighted;
use crate::cli::train::shared_args::{OptimiserArgs, STORED, names_of, read_settings};
use crate::cli::values::one_of;
use earnest_models::checkpoint::WeightFormat;
use earnest_train::{
    AdapterSettings, Base, BaseRecord, FormatSettings, LoraData, LoraSettings, LoraTraining, PromptForm, Retrofit,
    StoredType,
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
    #[arg(long, conflicts_with_all = names_of::<TrainingArgs>())]
    pub resume: bool,

    /// Folder for an ordinary checkpoint with the adapters merged, written at the end
    #[arg(long, value_name = "DIR")]
    pub merge: Option<PathBuf>,

    /// Element type of the merged weights
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = one_of(STORED))]
    pub store: StoredType,

    #[command(flatten)]
    pub new: TrainingArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Settings of a new training, which are stored in `training.json`.
#[derive(Debug, Args)]
pub struct TrainingArgs {
    /// Rank of the adapters
    #[arg(long, value_name = "N", default_value_t = defaults().rank, help_heading = "Adapters")]
    pub rank: usize,

    /// Scale of the adapters: alpha / rank
    #[arg(long, value_name = "ALPHA", default_value_t = defaults().alpha, help_heading = "Adapters")]
    pub alpha: f64,

    /// Matrices that get an adapter
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_values_t = defaults().targets, help_heading = "Adapters")]
    pub targets: Vec<String>,

    /// Dropout rate of an adapter's inputs
    #[arg(long, value_name = "SHARE", default_value_t = defaults().dropout, help_heading = "Adapters")]
    pub dropout: f64,

    /// Remove the rotary embedding (NoPE, Table 18); the result is a SmolLM3ForCausalLM without it
    #[arg(long, help_heading = "Retrofits")]
    pub nope: bool,

    /// Tokenise numbers as single digits (Table 18); the written tokenizer does the same
    #[arg(long, help_heading = "Retrofits")]
    pub single_digits: bool,

    #[command(flatten)]
    pub questions: QuestionArgs,

    /// Prompt format: plain text, or the checkpoint's chat template
    #[arg(long, value_name = "PROMPT", default_value = "raw", value_parser = one_of(PROMPTS), help_heading = "Questions")]
    pub prompt: PromptForm,

    /// File of prompts and completions to train on instead, in any format and with any usual column that `earnest run` reads
    #[arg(long, value_name = "FILE", conflicts_with_all = names_of::<QuestionArgs>(), help_heading = "Pairs of your own")]
    pub pairs: Option<PathBuf>,

    /// Fraction of the rows held out for validation
    #[arg(long, value_name = "SHARE", default_value_t = defaults().held_out, requires = "pairs", help_heading = "Pairs of your own")]
    pub held_out: f64,

    /// Field with the prompt [default: as in `earnest run`: question (after body, passage or context), problem, prompt, ...]
    #[arg(long, value_name = "FIELD", requires = "pairs", help_heading = "Pairs of your own")]
    pub prompt_field: Option<String>,

    /// Field with the completion [default: completion, answer, gold, target, ..., solution or response]
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
    #[arg(long, value_name = "N", default_value_t = defaults().steps, help_heading = "Training")]
    pub steps: u64,

    /// Examples per step
    #[arg(long, value_name = "N", default_value_t = defaults().batch, help_heading = "Training")]
    pub batch: usize,

    /// Gradient accumulation: number of pieces a batch is computed in; more take less memory
    #[arg(long, value_name = "N", default_value_t = defaults().accumulate, help_heading = "Training")]
    pub accumulate: usize,

    /// Number of parts of a piece computed in parallel, at most one per core
    #[arg(long, value_name = "N", default_value_t = defaults().parts, help_heading = "Training")]
    pub parts: usize,

    /// Peak learning rate, with cosine decay to zero
    #[arg(long, value_name = "RATE", default_value_t = defaults().learning_rate, help_heading = "Training")]
    pub learning_rate: f64,

    /// Warm-up steps, in which the learning rate rises to its peak
    #[arg(long, value_name = "N", default_value_t = defaults().warm_up, help_heading = "Training")]
    pub warm_up: u64,

    #[command(flatten)]
    pub optimiser: OptimiserArgs,

    /// Steps between validations; each saves the state, and the adapters if they are the best so far
    #[arg(long, value_name = "N", default_value_t = defaults().validate_every, help_heading = "Training")]
    pub validate_every: u64,

    /// Validation questions per task and length, or held-out rows in total
    #[arg(long, value_name = "N", default_value_t = defaults().validation, help_heading = "Training")]
    pub validation: usize,

    /// Longest sequence in tokens; longer traces are skipped, other longer examples are an error [default: 1024, or the
    /// checkpoint's context if that is shorter]
    #[arg(long, value_name = "TOKENS", help_heading = "Training")]
    pub context: Option<usize>,
}

/// Settings of generated questions, which `--pairs` excludes.
#[derive(Debug, Args)]
pub struct QuestionArgs {
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
}

/// Defaults of the settings.
fn defaults() -> LoraTraining {
    LoraTraining::default()
}

const PROMPTS: &[(&str, &str, PromptForm)] = &[("raw", "", PromptForm::Raw), ("chat", "", PromptForm::Chat)];

impl LoraArgs {
    fn data(&self) -> Result<LoraData, CliError> {
        let Some(file) = &self.new.pairs else {
            return Ok(LoraData::Questions {
                tasks: self.new.questions.tasks.clone(),
                lengths: self.new.questions.lengths.0.clone(),
                beyond: self.new.questions.beyond.as_ref().map(|lengths| lengths.0.clone()).unwrap_or_default(),
                format: FormatSettings {
                    reversal: self.new.questions.reversal.clone(),
                    zero_padding: self.new.questions.zero_padding,
                    index_hints: self.new.questions.index_hints,
                },
                any_shorter_operand: self.new.questions.short_operand == "any",
                rule_following: self.new.questions.style == "rule-following",
            });
        };
        let sha256 = earnest_digest::sha256_file(file, |_| {})
            .map_err(|error| CliError::usage(format!("cannot read {}: {error}", file.display())))?;
        Ok(LoraData::Pairs {
            file: file.clone(),
            sha256,
            held_out: self.new.held_out,
            prompt_field: self.new.prompt_field.clone(),
            completion_field: self.new.completion_field.clone(),
            system: self.new.system.clone(),
            separator: self.new.separator.replace("\\n", "\n"),
        })
    }

    fn new_settings(&self, given: &Path, printer: Printer) -> Result<LoraSettings, CliError> {
        let path = locate(given, &self.hub, WeightFormat::default(), printer)?.path().to_owned();
        // Absolute, so that `--resume` finds it from another folder.
        let path = std::path::absolute(&path).unwrap_or(path);
        let retrofit = Retrofit { nope: self.new.nope, single_digits: self.new.single_digits };
        let mut settings = LoraSettings {
            base: BaseRecord {
                model: given.display().to_string(),
                path,
                files: Default::default(),
                allow_config: self.hub.allow_config.clone(),
            },
            retrofit,
            adapters: AdapterSettings {
                rank: self.new.rank,
                alpha: self.new.alpha,
                targets: self.new.targets.clone(),
                dropout: self.new.dropout,
            },
            data: self.data()?,
            prompt: self.new.prompt,
            seed: self.new.seed,
            batch: self.new.batch,
            accumulate: self.new.accumulate,
            parts: self.new.parts,
            steps: self.new.steps,
            learning_rate: self.new.learning_rate,
            warm_up: self.new.warm_up,
            optimiser: self.new.optimiser.settings(),
            validate_every: self.new.validate_every,
            validation: self.new.validation,
            context: self.new.context.unwrap_or(defaults().context),
        };
        settings.check()?;
        let base = Base::open_allowing(&settings.base.path, &settings.base.allow_config, retrofit)?;
        if self.new.context.is_none() {
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
            let mut settings: LoraSettings = read_settings(&in_folder("training.json"))?;
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
