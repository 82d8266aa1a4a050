//! `earnest train lora`.
use earnest_eval::model::LocatedModel;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::merge::{merged_line, write_merged};
use super::next::{Learnt, next};
use super::number_model::{StoredArg, Weighted};
use super::progress::{Progress, overall, table};
use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::interrupt::stop_on_signal;
use crate::cli::models::HubArgs;
use crate::cli::printer::Printer;
use earnest_models::checkpoint::WeightFormat;
use earnest_train::{
    AdamWSettings, AdapterFolder, AdapterSettings, Base, BaseRecord, FormatSettings, LoraData, LoraSettings,
    LoraTrainer, PromptForm, Retrofit, Schedule, TARGETS, TrainError, TrainEvent, TrainOutcome, Validation,
    lock_folder,
};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest train lora --model SmolLM2.gguf --out tuned --tasks add_Integer --lengths 1-4 --steps 200 --merge tuned-merged
  earnest run nupa --model tuned-merged --prompt raw --tasks add_Integer --lengths 1-6
  earnest train lora --model SmolLM2.gguf --out traced --style rule-following --tasks digit_max_Integer --lengths 1-3
  earnest train lora --model SmolLM2.gguf --out nope --nope --reversal int --zero-padding --tasks add_Integer --lengths 1-6
  earnest perturb train.jsonl --kinds all -o attacked.jsonl
  earnest train lora --model base --out defended --pairs attacked.jsonl --prompt chat --held-out 0.2
  earnest train lora --out tuned --resume                    goes on where Ctrl-C, a kill or a power cut ended it
  earnest train merge --model SmolLM2.gguf --adapter tuned --out tuned-merged

The folder then holds adapters as PEFT has them (adapter_config.json, adapter_model.safetensors), those of the best validation; \
the settings (training.json) and a log (log.jsonl). Prompts are those that `earnest run` writes with the same --prompt and \
--style; of answers, the tokens and the end are learnt, of prompts nothing. Validation is exact match on questions of the part \
`valid`; the first is of the model as it was loaded. `run nupa` asks the part `test`, which shares no question with the others.

Decoders of the families Llama, Mistral, Qwen 2 and 3, SmolLM3 and Gemma can be adapted, from a Hugging Face folder or a GGUF \
file; others are refused by name. Training runs on the CPU in 32-bit floats.")]
pub struct LoraArgs {
    /// The folder of the adapters
    #[arg(long, short, value_name = "DIR")]
    pub out: PathBuf,

    /// The model: a name of `earnest models list`, org/repo@<40-digit commit>, a Hugging Face folder or a GGUF file
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

    /// Go on with the unfinished training in the folder, with its settings
    #[arg(long, conflicts_with_all = FIXED)]
    pub resume: bool,

    /// When all is done, write the model with its adapters merged as an ordinary checkpoint folder
    #[arg(long, value_name = "DIR")]
    pub merge: Option<PathBuf>,

    /// Element type of the merged weights
    #[arg(long, value_name = "TYPE", value_enum, default_value_t = StoredArg::F32)]
    pub store: StoredArg,

    /// Rows of an adapter's first factor
    #[arg(long, value_name = "N", default_value_t = 16, help_heading = "Adapters")]
    pub rank: usize,

    /// An adapter counts alpha / rank times
    #[arg(long, value_name = "ALPHA", default_value_t = 32.0, help_heading = "Adapters")]
    pub alpha: f64,

    /// Matrices that get an adapter
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_values_t = TARGETS.map(str::to_owned), help_heading = "Adapters")]
    pub targets: Vec<String>,

    /// Share of an adapter's inputs that a step leaves out
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Adapters")]
    pub dropout: f64,

    /// Take the rotary embedding away (NoPE, Table 18); what is written is a SmolLM3ForCausalLM without it
    #[arg(long, help_heading = "Retrofits")]
    pub nope: bool,

    /// Cut numbers into single digits (Table 18); what is written has a tokenizer that does
    #[arg(long, help_heading = "Retrofits")]
    pub single_digits: bool,

    /// Digits written backwards: of integers and integer parts, of decimals, of each part, or of the total text
    #[arg(long, value_name = "PARTS", default_value = "none", value_parser = PossibleValuesParser::new(["none", "int", "dec", "each", "total"]), help_heading = "Retrofits")]
    pub reversal: String,

    /// Pad the operands with zeros, part by part, to the longer one
    #[arg(long, help_heading = "Retrofits")]
    pub zero_padding: bool,

    /// Put a hint of its place before every digit of the operands, from an alphabet of N hints
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "30", help_heading = "Retrofits")]
    pub index_hints: Option<usize>,

    /// NUPA tasks, separated by commas, and tasks of Arithmetic-Bench, e.g. add_Integer,arithmetic-bench:copy
    #[arg(
        long,
        value_name = "TASKS",
        value_delimiter = ',',
        default_value = "add_Integer",
        help_heading = "Questions"
    )]
    pub tasks: Vec<String>,

    /// Lengths that are learnt; one named twice is asked twice as often
    #[arg(long, value_name = "LENGTHS", default_value = "1-4", help_heading = "Questions")]
    pub lengths: Weighted,

    /// Longer ones that are only validated
    #[arg(long, value_name = "LENGTHS", help_heading = "Questions")]
    pub beyond: Option<Weighted>,

    /// Answer at once, or follow a rule that is given as a Python program (RF-CoT)
    #[arg(long, value_name = "STYLE", default_value = "direct", value_parser = PossibleValuesParser::new(["direct", "rule-following"]), help_heading = "Questions")]
    pub style: String,

    /// Length of the shorter operand: at least half of the longer one's, or any
    #[arg(long, value_name = "RULE", default_value = "half", value_parser = PossibleValuesParser::new(["half", "any"]), help_heading = "Questions")]
    pub short_operand: String,

    /// Write prompts as bare text, or with the checkpoint's chat template
    #[arg(long, value_name = "PROMPT", value_enum, default_value_t = PromptArg::Raw, help_heading = "Questions")]
    pub prompt: PromptArg,

    /// Learn prompts and completions of a file of JSON lines instead, e.g. one of `earnest perturb` or `earnest generate`
    #[arg(long, value_name = "FILE", conflicts_with_all = OF_QUESTIONS, help_heading = "Pairs of your own")]
    pub pairs: Option<PathBuf>,

    /// Share of the rows that is validated instead of learnt
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, requires = "pairs", help_heading = "Pairs of your own")]
    pub held_out: f64,

    /// Field with the prompt [default: prompt, question, Question (after Body, passage or context), problem or instruction]
    #[arg(long, value_name = "FIELD", requires = "pairs", help_heading = "Pairs of your own")]
    pub prompt_field: Option<String>,

    /// Field with the completion [default: completion, answer, Answer, response or gold]
    #[arg(long, value_name = "FIELD", requires = "pairs", help_heading = "Pairs of your own")]
    pub completion_field: Option<String>,

    /// A system message; of a raw prompt, its first line
    #[arg(long, value_name = "TEXT", requires = "pairs", help_heading = "Pairs of your own")]
    pub system: Option<String>,

    /// What stands between a raw prompt and its completion where neither has white space; \n is a line break [default: a space]
    #[arg(
        long,
        value_name = "TEXT",
        default_value = " ",
        hide_default_value = true,
        requires = "pairs",
        help_heading = "Pairs of your own"
    )]
    pub separator: String,

    /// Seed of adapters, questions and dropout
    #[arg(long, value_name = "SEED", default_value_t = 1, help_heading = "Training")]
    pub seed: u64,

    /// Steps
    #[arg(long, value_name = "N", default_value_t = 200, help_heading = "Training")]
    pub steps: u64,

    /// Examples of a step
    #[arg(long, value_name = "N", default_value_t = 16, help_heading = "Training")]
    pub batch: usize,

    /// Pieces that a batch is computed in, one after the other; more take less memory
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Training")]
    pub accumulate: usize,

    /// Parts of a piece that are computed at the same time; more parts than cores are of no use
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Training")]
    pub parts: usize,

    /// Highest learning rate; it falls along a cosine to zero
    #[arg(long, value_name = "RATE", default_value_t = 1e-3, help_heading = "Training")]
    pub learning_rate: f64,

    /// Steps in which the rate rises to its highest
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Training")]
    pub warm_up: u64,

    /// Gradients are scaled down to this norm
    #[arg(long, value_name = "NORM", default_value_t = 1.0, help_heading = "Training")]
    pub clip: f64,

    /// Weight decay
    #[arg(long, value_name = "RATE", default_value_t = 0.01, help_heading = "Training")]
    pub weight_decay: f64,

    /// AdamW's decay of the second moment
    #[arg(long, value_name = "BETA", default_value_t = 0.999, help_heading = "Training")]
    pub beta2: f64,

    /// Steps between validations; at each the state is saved, and the adapters if they are the best so far
    #[arg(long, value_name = "N", default_value_t = 50, help_heading = "Training")]
    pub validate_every: u64,

    /// Questions of each task and length in a validation, or held-out rows in all
    #[arg(long, value_name = "N", default_value_t = 20, help_heading = "Training")]
    pub validation: usize,

    /// Longest sequence in tokens; traces that are longer are passed over, other examples refused [default: 1024, or as many
    /// as the checkpoint has positions for]
    #[arg(long, value_name = "TOKENS", help_heading = "Training")]
    pub context: Option<usize>,

    /// Print the outcome as JSON
    #[arg(long)]
    pub json: bool,
}

/// Tokens of a sequence, unless the command line says otherwise.
const MOST_CONTEXT: usize = 1024;

/// What `training.json` says.
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

/// What a file of pairs has no use for.
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

    fn chosen(&self, given: &Path) -> Result<LoraSettings, CliError> {
        let path = LocatedModel::find(given, &self.hub.settings(), WeightFormat::default())?.path().to_owned();
        // From another folder, `--resume` should still find it.
        let path = std::path::absolute(&path).unwrap_or(path);
        let retrofit = Retrofit { nope: self.nope, single_digits: self.single_digits };
        let mut settings = LoraSettings {
            base: BaseRecord { model: given.display().to_string(), path, files: Default::default() },
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
            context: self.context.unwrap_or(MOST_CONTEXT),
        };
        settings.check()?;
        let base = Base::open(&settings.base.path, retrofit)?;
        if self.context.is_none() {
            settings.context = settings.context.min(base.checkpoint().config.max_positions);
        }
        settings.base.files = base.digests()?;
        Ok(settings)
    }

    /// The settings, once it is clear that the folder takes them.
    fn settings(&self) -> Result<LoraSettings, CliError> {
        let in_folder = |name: &str| self.out.join(name);
        let unfinished = in_folder("state.json").exists();
        let Some(given) = self.model.as_deref().filter(|_| !self.resume) else {
            if !unfinished {
                let message = format!("{} holds no unfinished training", self.out.display());
                return Err(CliError::new(Exit::Results, message)
                    .help("a finished one is complete; leave --resume out to begin one"));
            }
            let path = in_folder("training.json");
            let failed = |what: String| CliError::new(Exit::Results, format!("cannot read {}: {what}", path.display()));
            let text = std::fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
            let mut settings: LoraSettings = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
            if let Some(given) = &self.model {
                // It may have moved; its files tell whether it is the same.
                settings.base.path =
                    LocatedModel::find(given, &self.hub.settings(), WeightFormat::default())?.path().to_owned();
            }
            return Ok(settings);
        };
        if unfinished {
            let message = format!("{} holds an unfinished training", self.out.display());
            return Err(CliError::new(Exit::Results, message).help("go on with --resume, or name another folder"));
        }
        if in_folder("adapter_model.safetensors").exists() || in_folder("config.json").exists() {
            let message = format!("{} holds adapters or a model", self.out.display());
            return Err(CliError::new(Exit::Results, message).help("name another folder"));
        }
        self.chosen(given)
    }
}

/// The outcome for `--json`.
#[derive(Serialize)]
struct Outcome<'a> {
    folder: &'a Path,
    merged: Option<&'a Path>,
    parameters: usize,
    settings: &'a LoraSettings,
    steps: u64,
    seconds: f64,
    before: Option<&'a Validation>,
    /// Some validation had more exact answers than the checkpoint as it was loaded.
    better_than_before: Option<bool>,
    validation: Option<&'a Validation>,
}

/// Trains.
pub fn execute(args: &LoraArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    if let Some(folder) = args.merge.as_deref() {
        super::merge::check_folder(folder)?;
    }
    let mut settings = args.settings()?;
    let _lock = lock_folder(&args.out)?;
    if args.resume {
        // Another process may have finished it before the lock was free.
        settings = args.settings()?;
    }
    super::one_thread_a_part(settings.parts);
    if !quiet {
        printer.message("loading the weights");
    }
    let mut trainer = LoraTrainer::open(settings.clone(), &args.out)?;
    if !quiet {
        let from = match trainer.steps_done() {
            0 => String::new(),
            done => format!(", going on after step {done}"),
        };
        let (parameters, architecture) = (trainer.parameter_count(), &trainer.base().checkpoint().config.architecture);
        printer.message(&format!(
            "{architecture} with {parameters} parameters of adapters, {} steps of {} examples{from}",
            settings.steps, settings.batch
        ));
    }
    let Schedule { peak, warm_up, steps, .. } = settings.schedule();
    let reached = (warm_up > steps).then(|| peak * steps as f64 / warm_up as f64);
    super::warn_of_warm_up(printer, warm_up, peak, reached);
    let stop = stop_on_signal()?;
    let begun = Instant::now();
    let mut progress = Progress::new(printer, quiet, settings.steps);
    let ended = trainer.run(&stop, &mut |event| progress.event(event))?;
    let steps = trainer.steps_done();
    if ended == TrainOutcome::Stopped {
        let message = format!("interrupted after step {steps} of {}; the state is saved", settings.steps);
        let help = format!("`earnest train lora --out {} --resume` goes on", args.out.display());
        return Err(CliError::new(Exit::Interrupted, message).help(help));
    }
    // From the log, which also has the validations of earlier sessions.
    let validations: Vec<Validation> = earnest_train::experiment::events(&args.out)?
        .into_iter()
        .filter_map(|event| if let TrainEvent::Validated(found) = event { Some(found) } else { None })
        .collect();
    let before = validations.iter().find(|found| found.step == 0);
    let better = before.map(|before| validations.iter().any(|found| found.exact() > before.exact()));
    let mut merged_text = String::new();
    if let Some(folder) = &args.merge {
        let adapters = AdapterFolder::open(&args.out)?;
        let merged = write_merged(trainer.base(), Some(&adapters), folder, args.store)?;
        merged_text = merged_line(&merged, folder);
    }
    if args.json {
        printer.json(&Outcome {
            folder: &args.out,
            merged: args.merge.as_deref(),
            parameters: trainer.parameter_count(),
            settings: &settings,
            steps,
            seconds: begun.elapsed().as_secs_f64(),
            before,
            better_than_before: better,
            validation: progress.last(),
        })?;
        return Ok(Exit::Success);
    }
    printer.result(&text(args, &settings, before, progress.last(), better, &merged_text)?)?;
    Ok(Exit::Success)
}

fn text(
    args: &LoraArgs,
    settings: &LoraSettings,
    before: Option<&Validation>,
    last: Option<&Validation>,
    better: Option<bool>,
    merged: &str,
) -> Result<String, CliError> {
    let mut text = last.map(table).unwrap_or_default();
    for (when, validation) in [("before", before), ("after", last)] {
        if let Some(line) = validation.and_then(overall) {
            text.push_str(&format!("{when}: {line}\n"));
        }
    }
    text.push_str(&format!("\n{} holds the adapters with the best validation.\n", args.out.display()));
    if better == Some(false) && before.is_some_and(|before| !before.cells.is_empty()) {
        text.push_str("No validation had more exact answers than the checkpoint as it was loaded: by this measure they are no gain.\n");
    }
    text.push_str(merged);
    let model = settings.base.model.as_str();
    match &args.merge {
        None => text.push_str(&format!(
            "Next: earnest train merge --model {model} --adapter {} --out DIR\n",
            args.out.display()
        )),
        Some(folder) => {
            let prompt = match settings.prompt {
                PromptForm::Raw => "raw",
                PromptForm::Chat => "chat",
            };
            let style = match &settings.data {
                LoraData::Questions { rule_following: true, .. } => " --style rule-following",
                _ => "",
            };
            let options = format!(" --prompt {prompt}{style}");
            match &settings.data {
                LoraData::Questions { tasks, lengths, beyond, format, .. } => {
                    let tasks = tasks.iter().map(|task| task.parse()).collect::<Result<_, TrainError>>()?;
                    let lengths = lengths.iter().chain(beyond).copied().collect();
                    let learnt = Learnt { tasks, lengths, format };
                    text.push_str(&next(&folder.display().to_string(), &learnt, &options));
                }
                LoraData::Pairs { .. } => {
                    text.push_str(&format!("Next: earnest run nupa --model {}{options}\n", folder.display()));
                }
            }
        }
    }
    Ok(text)
}
