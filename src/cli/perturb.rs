//! `earnest perturb`.
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::error::CliError;
use super::output::{output_file, write_file};
use super::printer::Printer;
use super::values::counted;
use super::{Exit, results};
use earnest_eval::perturb::{PerturbSettings, PerturbedSet, QuestionSource, perturb};
use earnest_results::RowsError;
use earnest_tasks::suite::dnc::{Fields, Kind, Mode, kinds};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest perturb questions.jsonl --kinds language,verbosity --seed 7 -o perturbed.jsonl
  earnest perturb gsm_symbolic.jsonl --kinds all --question-field question --answer-field answer -o attacked.jsonl
  earnest perturb testset.json --kinds noise --mode reference --ineligible keep -o attack.jsonl
  head -100 questions.jsonl | earnest perturb - --kinds type > typed.jsonl
  earnest run questions.jsonl && earnest run perturbed.jsonl && earnest compare questions perturbed

Rows are JSON lines, a JSON array, CSV, TSV or Parquet, files also with .gz. An output row is its input row on one line with the new texts and a field `dnc`, which tells what \
was changed and why the question was eligible; numbers, texts and keys of all other fields are unchanged (1.50 stays 1.50). It has an \
id of its own and the fields `pair` (the original's id), `cluster` and `perturbation`: `earnest run` asks the output file as it is, and \
`earnest compare` pairs its run with a run of the originals. Noise and \
distribution change the answer and need a formula. A row whose equation or answer contradicts itself is malformed.")]
pub struct PerturbArgs {
    /// The questions; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Perturbations, separated by commas: language, type, noise, distribution, verbosity, extra, logic, order,
    /// language-to-digits; `all` is the first eight
    #[arg(long, value_name = "KINDS", value_delimiter = ',', default_value = "all")]
    pub kinds: Vec<String>,

    /// Random seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,

    /// Number of independent draws of each random perturbation
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub draws: u32,

    /// Perturbations as intended, or bit for bit as the authors' program makes them
    #[arg(long, value_name = "MODE", value_enum, default_value_t = ModeArg::Fixed)]
    pub mode: ModeArg,

    /// File of Logic and Order annotations (docs/dnc.md)
    #[arg(long, value_name = "FILE")]
    pub annotations: Option<PathBuf>,

    /// Questions that are not eligible for a perturbation: leave them out, or write them unperturbed
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = IneligibleArg::Skip)]
    pub ineligible: IneligibleArg,

    /// Malformed rows: refuse the file, or skip them with a warning
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = MalformedArg::Refuse)]
    pub malformed: MalformedArg,

    /// Write to this file instead of standard output; it appears under its name once it is complete
    #[arg(long, short, value_name = "FILE", value_parser = output_file())]
    pub output: Option<PathBuf>,

    /// Field with the id of a question (without it: @ID, id, uid or query_id, else a hash of the question)
    #[arg(long, value_name = "FIELD", help_heading = "Fields")]
    pub id_field: Option<String>,

    /// Field with the story [default: Body, body, passage or context; without one, all but the question's last sentence]
    #[arg(long, value_name = "FIELD", help_heading = "Fields")]
    pub body_field: Option<String>,

    /// Field with the question [default: Question, question, problem or prompt]
    #[arg(long, value_name = "FIELD", help_heading = "Fields")]
    pub question_field: Option<String>,

    /// Field with the answer: a number, or a text that begins with a number or ends in #### and a number [default: Answer, answer or gold]
    #[arg(long, value_name = "FIELD", help_heading = "Fields")]
    pub answer_field: Option<String>,

    /// Field with the equation, e.g. 5+7=12 [default: Formula, formula or equation]
    #[arg(long, value_name = "FIELD", help_heading = "Fields")]
    pub formula_field: Option<String>,

    /// Field for the description of the perturbation; no input row may have it [default: dnc]
    #[arg(long, value_name = "FIELD", help_heading = "Fields")]
    pub about_field: Option<String>,
}

/// `--mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ModeArg {
    Fixed,
    Reference,
}

impl From<ModeArg> for Mode {
    fn from(arg: ModeArg) -> Self {
        match arg {
            ModeArg::Fixed => Mode::Fixed,
            ModeArg::Reference => Mode::Reference,
        }
    }
}

/// `--malformed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MalformedArg {
    Refuse,
    Skip,
}

/// `--ineligible`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum IneligibleArg {
    Skip,
    Keep,
}

impl PerturbArgs {
    fn settings(&self) -> Result<PerturbSettings, CliError> {
        let kinds = kinds(&self.kinds).map_err(|error| CliError::usage(error.to_string()))?;
        let questions = match self.file.as_os_str() == "-" {
            true => QuestionSource::StandardInput,
            false => QuestionSource::File(self.file.clone()),
        };
        Ok(PerturbSettings {
            fields: Fields {
                id: self.id_field.clone(),
                body: self.body_field.clone(),
                question: self.question_field.clone(),
                answer: self.answer_field.clone(),
                formula: self.formula_field.clone(),
                about: self.about_field.clone(),
            },
            annotations: self.annotations.clone(),
            mode: self.mode.into(),
            seed: self.seed,
            draws: self.draws,
            keep_ineligible: self.ineligible == IneligibleArg::Keep,
            skip_malformed: self.malformed == MalformedArg::Skip,
            ..PerturbSettings::new(questions, kinds)
        })
    }
}

/// Perturbs questions, writes the rows and prints how many there are.
pub fn execute(args: &PerturbArgs, printer: Printer) -> Result<Exit, CliError> {
    let settings = args.settings()?;
    // Also with --quiet: a warning names the rows that are left out.
    let set = perturb(&settings, &mut results::Messages(printer))?;
    let complete = match &args.output {
        None => printer.stream(|out| set.write(out))?,
        Some(path) => {
            write_file(path, |out| set.write(out).map_err(|source| RowsError::Write { path: path.clone(), source }))?;
            true
        }
    };
    if complete {
        printer.message(counts(&set, &settings.kinds, args.output.as_deref()).trim_end());
    }
    if set.perturbed.is_empty() {
        printer.warning("no question was perturbed");
    }
    Ok(Exit::Success)
}

/// Counts of perturbed rows and of ineligible questions, a line for each kind.
fn counts(set: &PerturbedSet, kinds: &[Kind], output: Option<&Path>) -> String {
    let place = output.map_or_else(String::new, |path| format!(" in {}", path.display()));
    let total: usize = set.perturbed.values().sum();
    let mut text = format!("{}{place}, from {}\n", counted(total, "perturbed row"), counted(set.questions, "question"));
    for kind in kinds {
        text.push_str(&format!("{kind}: {}", set.perturbed.get(kind).copied().unwrap_or(0)));
        let ineligible: Vec<String> = set
            .ineligible
            .iter()
            .filter(|((of, _), _)| of == kind)
            .map(|((_, reason), count)| format!("{count} left out: {reason}"))
            .collect();
        if !ineligible.is_empty() {
            text.push_str(&format!(" ({})", ineligible.join("; ")));
        }
        text.push('\n');
    }
    text
}
