//! `earnest train number-model`.
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Serialize;

use super::next::{Learnt, next};
use super::progress::{Progress, table};
use super::rate::{RateArg, search};
use super::shared_args::{OptimiserArgs, STORED, names_of, read_settings};
use super::threads::{choose_threads, warn_of_warm_up};
use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::interrupt::stop_on_signal;
use crate::cli::printer::Printer;
use crate::cli::values::one_of;
use earnest_eval::model::as_model;
use earnest_models::hub::HubSettings;
use earnest_train::{
    AnswerStyle, Criterion, DigitGroups, FormatSettings, Goal, PositionEncoding, RateSearch, Size, SplitVersion,
    StoredType, TRIAL_RATES, TokenizerSettings, TrainOutcome, TrainSettings, Trainer, Validation, lock_folder,
};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest train number-model --out add-rope --tasks add_Integer --lengths 1-4 --beyond 5-8 --steps 2000
  earnest train number-model --out add-nope --tasks add_Integer --lengths 1-4 --position nope --steps 2000
  earnest train number-model --out three --tasks add_Integer,max_Float --lengths 1-8 --digits 3 --size 5m --steps 10000
  earnest train number-model --out reversed --tasks add_Integer --lengths 1-6 --reversal int --zero-padding --steps 4000
  earnest train number-model --out add-rope --resume        continues after Ctrl-C, a kill or a power cut
  earnest run nupa --model add-rope --tasks add_Integer --lengths 1-8

The folder then holds an ordinary checkpoint (config.json, model.safetensors, tokenizer.json), the settings (training.json) \
and a log (log.jsonl: every step, every validation); during training also its state. The same settings give the same model on \
the same kind of machine.

Tasks and lengths named twice are drawn twice as often: --lengths 1-4,3,4,4.")]
pub struct NumberModelArgs {
    /// Folder for the model
    #[arg(long, short, value_name = "DIR")]
    pub out: PathBuf,

    /// Continue the unfinished training in the folder with its settings
    #[arg(long, conflicts_with = "settings", conflicts_with_all = names_of::<NewModelArgs>())]
    pub resume: bool,

    /// training.json with the settings; excludes all options but --out
    #[arg(long, value_name = "FILE", conflicts_with_all = names_of::<NewModelArgs>())]
    pub settings: Option<PathBuf>,

    #[command(flatten)]
    pub new: NewModelArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Settings of a new training, which are stored in `training.json`.
#[derive(Debug, Args)]
pub struct NewModelArgs {
    /// Size: 0.3m, 1.3m, 5m, or 0.1b, 0.9b and 3b of the paper's Table 11; or five numbers: layers, width, feed-forward width,
    /// heads, key/value heads, e.g. 3,192,512,6,2
    #[arg(long, value_name = "SIZE", default_value = "0.3m", value_parser = size, help_heading = "Model")]
    pub size: Size,

    /// Position encoding
    #[arg(long, value_name = "ENCODING", default_value = "rope", value_parser = one_of(POSITIONS), help_heading = "Model")]
    pub position: PositionEncoding,

    /// Maximum number of digits per token
    #[arg(long, value_name = "1|2|3", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=3), help_heading = "Model")]
    pub digits: u8,

    /// Grouping of longer runs of digits into tokens; `places` makes a digit and its position in the number one token
    #[arg(long, value_name = "HOW", default_value = "right-aligned", value_parser = one_of(GROUPS), help_heading = "Model")]
    pub groups: DigitGroups,

    /// Maximum number of word tokens in the vocabulary
    #[arg(long, value_name = "N", default_value_t = defaults().tokenizer.words, help_heading = "Model")]
    pub words: usize,

    /// Longest sequence in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = defaults().context, help_heading = "Model")]
    pub context: usize,

    /// Element type of the written weights; training is in f32
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = one_of(STORED), help_heading = "Model")]
    pub store: StoredType,

    /// NUPA or Arithmetic-Bench tasks, separated by commas, e.g. add_Integer,arithmetic-bench:copy
    #[arg(
        long,
        value_name = "TASKS",
        value_delimiter = ',',
        default_value = "add_Integer",
        help_heading = "Questions"
    )]
    pub tasks: Vec<String>,

    /// Styles, separated by commas: the question, answered at once, or the question with its rule as a program, answered with the program's
    /// trace (question, rule-following)
    #[arg(long, value_name = "STYLES", value_delimiter = ',', default_value = "question", help_heading = "Questions")]
    pub style: Vec<AnswerStyle>,

    /// Training lengths
    #[arg(long, value_name = "LENGTHS", default_value = "1-8", help_heading = "Questions")]
    pub lengths: Weighted,

    /// Longer lengths for validation only
    #[arg(long, value_name = "LENGTHS", help_heading = "Questions")]
    pub beyond: Option<Weighted>,

    /// Minimum length of the shorter operand: half of the longer one's, or any
    #[arg(long, value_name = "HOW", default_value = "half", value_parser = PossibleValuesParser::new(["half", "any"]), help_heading = "Questions")]
    pub short_operand: String,

    /// Digits to write backwards: of integers and integer parts, of decimals, of each part, or of the total text
    #[arg(long, value_name = "PARTS", default_value = "none", value_parser = PossibleValuesParser::new(["none", "int", "dec", "each", "total"]), help_heading = "Questions")]
    pub reversal: String,

    /// Pad the operands with zeros, part by part, to the longer one's length
    #[arg(long, help_heading = "Questions")]
    pub zero_padding: bool,

    /// Index hints before every digit token of the operands, from an alphabet of N; each hint is one token
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "30", help_heading = "Questions")]
    pub index_hints: Option<usize>,

    /// Seed of the weights and questions
    #[arg(long, value_name = "SEED", default_value_t = defaults().seed, help_heading = "Training")]
    pub seed: u64,

    /// Number of optimiser steps; with --until, the most of them
    #[arg(long, value_name = "N", default_value_t = defaults().steps, help_heading = "Training")]
    pub steps: u64,

    /// Criterion that ends the training at a validation: "accuracy 95 %" for exact match averaged over the trained lengths, "every length 95 %" for
    /// the lowest of them
    #[arg(long, value_name = "CRITERION", help_heading = "Training")]
    pub until: Option<Goal>,

    /// Restarts with other weights, each of as many steps, if --until is not reached
    #[arg(long, value_name = "N", default_value_t = 0, requires = "until", help_heading = "Training")]
    pub restarts: u64,

    /// Questions per step
    #[arg(long, value_name = "N", default_value_t = defaults().batch, help_heading = "Training")]
    pub batch: usize,

    /// Peak learning rate, with cosine decay to zero; `search` tries several in short trainings and takes the one of the lowest
    /// validation loss
    #[arg(long, value_name = "RATE|search", default_value = "0.002", help_heading = "Training")]
    pub learning_rate: RateArg,

    /// Steps of a trial of --learning-rate search [default: a tenth of --steps, at least 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Training")]
    pub trial_steps: Option<u64>,

    /// Warm-up steps, in which the learning rate rises to its peak
    #[arg(long, value_name = "N", default_value_t = defaults().warm_up, help_heading = "Training")]
    pub warm_up: u64,

    #[command(flatten)]
    pub optimiser: OptimiserArgs,

    /// Steps between validations; each saves the state, and the model if it is the best so far (with random groups always,
    /// because validation knows only one of several spellings)
    #[arg(long, value_name = "N", default_value_t = defaults().validate_every, help_heading = "Training")]
    pub validate_every: u64,

    /// Validation questions per task and length
    #[arg(long, value_name = "N", default_value_t = defaults().validation, help_heading = "Training")]
    pub validation: usize,

    /// Number of parts of a batch computed in parallel, at most one per core
    #[arg(long, value_name = "N", default_value_t = defaults().parts, help_heading = "Training")]
    pub parts: usize,
}

/// Defaults of the settings, but for those that are text.
fn defaults() -> TrainSettings {
    TrainSettings::default()
}

const POSITIONS: &[(&str, &str, PositionEncoding)] = &[
    ("rope", "Rotary embedding", PositionEncoding::Rope),
    ("nope", "No encoding, only the causal mask", PositionEncoding::Nope),
    ("alibi", "Attention penalty, linear in the distance", PositionEncoding::Alibi),
    (
        "alibi-reversed",
        "The same with the sign of the paper's program, which favours distant tokens; for the CPU only",
        PositionEncoding::AlibiReversed,
    ),
];

const GROUPS: &[(&str, &str, DigitGroups)] = &[
    ("left-to-right", "", DigitGroups::LeftToRight),
    ("right-aligned", "", DigitGroups::RightAligned),
    ("random", "", DigitGroups::Random),
    ("places", "", DigitGroups::Places),
];

/// Lengths in which repeats count: `1-4,3,4`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weighted(pub Vec<usize>);

impl std::str::FromStr for Weighted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        use crate::cli::values::Lengths;
        let mut all = Vec::new();
        for part in text.split(',') {
            match part.parse::<Lengths>().map_err(|error| error.to_string())? {
                Lengths::Chosen(chosen) => all.extend(chosen),
                Lengths::All | Lengths::Reference => return Err("write numbers and ranges, e.g. 1-8".into()),
            }
        }
        Ok(Weighted(all))
    }
}

fn size(text: &str) -> Result<Size, String> {
    let names = || Size::NAMED.map(|(name, _)| name).join(", ");
    let size = Size::parse(text).ok_or_else(|| format!("expected one of {}, or five numbers", names()))?;
    size.check().map_err(|error| error.to_string())?;
    Ok(size)
}

impl NumberModelArgs {
    /// The settings of a new training; a rate that is searched stays `rate`.
    fn new_settings(&self, rate: f64) -> TrainSettings {
        TrainSettings {
            size: self.new.size,
            position: self.new.position,
            tokenizer: TokenizerSettings {
                digits: usize::from(self.new.digits),
                groups: self.new.groups,
                words: self.new.words,
            },
            tasks: self.new.tasks.clone(),
            styles: self.new.style.clone(),
            then: None,
            lengths: self.new.lengths.0.clone(),
            beyond: self.new.beyond.as_ref().map(|lengths| lengths.0.clone()).unwrap_or_default(),
            format: FormatSettings {
                reversal: self.new.reversal.clone(),
                zero_padding: self.new.zero_padding,
                index_hints: self.new.index_hints,
            },
            any_shorter_operand: self.new.short_operand == "any",
            splits: SplitVersion::Two,
            seed: self.new.seed,
            batch: self.new.batch,
            steps: self.new.steps,
            learning_rate: if let RateArg::Rate(rate) = self.new.learning_rate { rate } else { rate },
            until: self.new.until.map(|Goal { accuracy, every_length }| Criterion {
                accuracy,
                every_length,
                restarts: self.new.restarts,
            }),
            warm_up: self.new.warm_up,
            optimiser: self.new.optimiser.settings(),
            validate_every: self.new.validate_every,
            validation: self.new.validation,
            context: self.new.context,
            parts: self.new.parts,
            stored: self.new.store,
        }
    }

    /// The settings of the training: those of the unfinished one in the folder, or new ones.
    ///
    /// # Errors
    /// The folder does not fit the options.
    fn settings(&self, rate: f64) -> Result<TrainSettings, CliError> {
        let in_folder = |name: &str| self.out.join(name);
        // Files that no training wrote: a model in several files, or a log of something else.
        let names = ["config.json", "tokenizer.json", "generation_config.json", "log.jsonl"];
        let foreign = !in_folder("training.json").exists() && names.iter().any(|name| in_folder(name).exists());
        let model = in_folder("model.safetensors").exists();
        // A training killed before it saved its first state leaves a log that ends early.
        let cut_off = in_folder("training.json").exists() && log_ends_early(&self.out)?;
        let unfinished = in_folder("state.json").exists() || (cut_off && (model || self.resume));
        if self.resume {
            if !unfinished {
                let message = format!("{} holds no unfinished training", self.out.display());
                return Err(CliError::new(Exit::Results, message).help("leave --resume out to begin a new training"));
            }
            return read_settings(&in_folder("training.json"));
        }
        if unfinished {
            let message = format!("{} already holds an unfinished training", self.out.display());
            return Err(CliError::new(Exit::Results, message).help("continue it with --resume, or name another folder"));
        }
        if foreign {
            let message =
                format!("{} has files that this training did not write and would replace", self.out.display());
            return Err(CliError::new(Exit::Results, message).help("name another folder"));
        }
        if model {
            let message = format!("{} already holds a model", self.out.display());
            return Err(CliError::new(Exit::Results, message).help("name another folder"));
        }
        self.settings.as_deref().map_or_else(|| Ok(self.new_settings(rate)), read_settings)
    }
}

/// True if the folder's log stops before the last step.
fn log_ends_early(folder: &Path) -> Result<bool, CliError> {
    let settings: TrainSettings = read_settings(&folder.join("training.json"))?;
    let done = settings.is_complete(&earnest_train::experiment::events(folder)?);
    Ok(!done && folder.join("log.jsonl").exists())
}

/// The JSON document.
#[derive(Serialize)]
struct Outcome<'a> {
    folder: &'a Path,
    parameters: usize,
    settings: &'a TrainSettings,
    steps: u64,
    /// Restarts of a training that missed its criterion.
    restarts: u64,
    /// True if the criterion was met; none without one.
    criterion_is_met: Option<bool>,
    /// Trials of the learning rate, if it was searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    search: Option<RateSearch>,
    seconds: f64,
    validation: Option<&'a Validation>,
}

/// Trains.
pub fn execute(args: &NumberModelArgs, printer: Printer) -> Result<Exit, CliError> {
    let unsearched = TRIAL_RATES[0];
    args.settings(unsearched)?.check()?;
    let _lock = lock_folder(&args.out)?;
    // Another process may have finished it before the lock was acquired.
    let settings = args.settings(unsearched)?;
    choose_threads(settings.parts, settings.size.parameters());
    let new = !args.resume && args.settings.is_none();
    let stop = stop_on_signal()?;
    let (settings, search) = if new && args.new.learning_rate == RateArg::Search {
        let steps = args.new.trial_steps.unwrap_or((settings.steps / 10).max(50));
        let search = search(&settings, steps, &args.out, &stop, printer)?;
        (args.settings(search.rate)?, Some(search))
    } else {
        (settings, None)
    };
    let mut trainer = Trainer::open(settings.clone(), &args.out)?;
    let from = match trainer.steps_done() {
        0 => String::new(),
        done => format!(", continuing after step {done}"),
    };
    let parameters = trainer.parameter_count();
    printer
        .message(&format!("{parameters} parameters, {} steps of {} questions{from}", settings.steps, settings.batch));
    if settings.has_ambiguous_tokenization() {
        printer.message(
            "validation accepts only the right-aligned one of the spellings in training: its exact match is a lower bound, and \
             the newest model is kept",
        );
    }
    warn_of_warm_up(printer, settings.schedule());
    let started = Instant::now();
    let mut progress = Progress::new(printer, settings.total_steps());
    let ended = trainer.run(&stop, &mut |event| progress.event(event))?;
    let steps = trainer.steps_done();
    if ended == TrainOutcome::Stopped {
        let message = format!("interrupted after step {steps} of {}; the state is saved", settings.total_steps());
        let help = format!("`earnest train number-model --out {} --resume` continues", args.out.display());
        return Err(CliError::new(Exit::Interrupted, message).help(help));
    }
    let validation = progress.last();
    if args.json {
        printer.json(&Outcome {
            folder: &args.out,
            parameters: trainer.parameter_count(),
            settings: &settings,
            steps,
            restarts: trainer.restarts(),
            criterion_is_met: settings.until.map(|_| trainer.criterion_is_met()),
            search,
            seconds: started.elapsed().as_secs_f64(),
            validation,
        })?;
        return Ok(Exit::Success);
    }
    let mut text = validation.map(table).unwrap_or_default();
    if settings.has_ambiguous_tokenization() {
        text.push_str(
            "Exact match is a lower bound: it accepts only the right-aligned one of the spellings in training.\n",
        );
    }
    if let Some(until) = settings.until {
        let met = if trainer.criterion_is_met() { "reached" } else { "not reached" };
        text.push_str(&format!(
            "The criterion ({}) was {met} in {steps} steps, {} restarts.\n",
            until.goal(),
            trainer.restarts()
        ));
    }
    let kept = if settings.keeps_last() { "newest model" } else { "model with the best validation" };
    text.push_str(&format!("\nThe {kept} is in {}.\n", args.out.display()));
    let mut tasks = settings.training_tasks()?;
    tasks.extend(settings.next_tasks()?);
    let lengths = settings.lengths.iter().chain(&settings.beyond).copied().collect();
    let learnt = Learnt { tasks, lengths, format: &settings.format };
    text.push_str(&next(&as_model(&args.out, &HubSettings::default()), &learnt, ""));
    printer.result(&text)?;
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;

    #[test]
    fn sizes_are_names_or_numbers() {
        assert_eq!(size("0.1B").unwrap().hidden, 1024);
        assert_eq!(
            size("3,192,512,6,2").unwrap(),
            Size { layers: 3, hidden: 192, intermediate: 512, heads: 6, kv_heads: 2 }
        );
        for wrong in ["7b", "3,192,512,6", "3,192,512,6,2,1", "3,192,x,6,2", "3,190,512,6,2"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_settings_without_options_are_the_usual_ones() {
        let command = NumberModelArgs::augment_args(clap::Command::new("number-model"));
        let given = command.try_get_matches_from(["number-model", "--out", "model"]).unwrap();
        let args = NumberModelArgs::from_arg_matches(&given).unwrap();
        assert_eq!(args.new_settings(0.0), TrainSettings::default());
    }

    #[test]
    fn lengths_keep_repeats() {
        assert_eq!("1-3,3,2".parse::<Weighted>().unwrap().0, [1, 2, 3, 3, 2]);
        assert!("all".parse::<Weighted>().is_err() && "0".parse::<Weighted>().is_err());
    }
}
