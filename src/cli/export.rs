//! `earnest export`.
use super::values::counted;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::error::CliError;
use super::output::{output_file, write_file};
use super::printer::Printer;
use super::{Exit, results};
use earnest_papers::gsm_symbolic::numbers_of;
use earnest_report::export::{CsvTexts, LmEval, Outcomes, write_csv, write_jsonl, write_parquet};
use earnest_results::{Rows, StoredRun, WithoutTexts};

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One JSON object per sample, with everything that is stored
    Jsonl,
    /// One row per sample, RFC 4180
    Csv,
    /// One row per sample, gzip, with the manifest in the metadata
    Parquet,
    /// Results JSON and samples in the schema of lm-evaluation-harness, in a folder
    LmEval,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest export RUN --format parquet -o samples.parquet
  earnest export RUN --format csv | head
  earnest export RUN --format lm-eval -o lm-eval-results
  earnest export RUN --format jsonl --without-texts -o samples.jsonl
  earnest export RUN --format parquet --outcomes -o published/RUN.parquet   (`--results published` reads it)")]
pub struct ExportArgs {
    /// The run; a part of its name is enough
    #[arg(value_name = "RUN")]
    pub run: String,

    /// The format
    #[arg(long, short, value_name = "FORMAT", value_enum)]
    pub format: ExportFormat,

    /// The file, or - for standard output, the default of jsonl and csv; for lm-eval a folder
    #[arg(long, short, value_name = "FILE", value_parser = output_file())]
    pub output: Option<PathBuf>,

    /// Leave out questions and prompts, e.g. if their licence forbids redistribution
    #[arg(long)]
    pub without_texts: bool,

    /// With --format parquet: ids, covariates and scores alone, without questions, completions and expected answers. Commands read a
    /// folder of such files as a results folder
    #[arg(long, conflicts_with = "without_texts")]
    pub outcomes: bool,

    /// With --format csv: leave texts that begin with =, +, -, @, a tab or a carriage return as they are. By default a quote (')
    /// stands before them, so that a spreadsheet does not compute them; `earnest import` takes it away again
    #[arg(long)]
    pub raw_cells: bool,

    /// Folder for results
    #[arg(
        long,
        value_name = "DIR",
        env = "EARNEST_RESULTS",
        hide_env_values = true,
        default_value = "earnest-results"
    )]
    pub results: PathBuf,
}

/// True for `-`.
fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

impl ExportArgs {
    /// The file or folder; standard output for texts where none is named.
    fn output(&self) -> Result<&Path, CliError> {
        match (self.format, self.output.as_deref()) {
            (ExportFormat::LmEval, output) if output.is_none_or(is_standard_output) => {
                Err(CliError::usage("lm-eval results are several files, which standard output cannot take")
                    .help("name a folder: -o FOLDER"))
            }
            (ExportFormat::Parquet, None) => Err(CliError::usage("Parquet is no text for a terminal")
                .help("name a file: -o samples.parquet; -o - writes to standard output")),
            (_, output) => Ok(output.unwrap_or(Path::new("-"))),
        }
    }
}

/// Exports a run.
pub fn execute(args: &ExportArgs, printer: Printer) -> Result<Exit, CliError> {
    let output = args.output()?;
    if args.outcomes && args.format != ExportFormat::Parquet {
        return Err(CliError::usage("--outcomes is for --format parquet"));
    }
    let run = StoredRun::open(&args.results, &args.run)?;
    let plain = WithoutTexts(&run);
    let rows: &dyn Rows = if args.without_texts { &plain } else { &run };
    let texts = match (args.raw_cells, args.format) {
        (false, _) => CsvTexts::Neutral,
        (true, ExportFormat::Csv) => CsvTexts::Raw,
        (true, _) => return Err(CliError::usage("--raw-cells is about the texts of --format csv")),
    };
    let mut count = 0;
    match args.format {
        ExportFormat::LmEval => return lm_eval(args, output, &run, printer),
        ExportFormat::Jsonl => write_file(output, |mut out| {
            count = write_jsonl(rows, &mut out)?;
            Ok(())
        })?,
        ExportFormat::Csv => write_file(output, |mut out| {
            count = write_csv(rows, texts, &mut out)?;
            Ok(())
        })?,
        ExportFormat::Parquet if args.outcomes => {
            let facts = numbers_of(&run).and_then(|numbers| serde_json::to_value(numbers).ok());
            let facts = facts.filter(|_| matches!(run.manifest.settings.suite.as_str(), "gsm-symbolic" | "gsm-mini"));
            let outcomes = Outcomes::of(&run)?;
            write_file(output, |out| {
                count = outcomes.write(facts.as_ref(), out)?;
                Ok(())
            })?;
        }
        ExportFormat::Parquet => write_file(output, |out| {
            let mut manifest = run.manifest.clone();
            if args.without_texts {
                manifest.first_prompt = None;
            }
            count = write_parquet(rows, &manifest, out)?;
            Ok(())
        })?,
    }
    let place = if is_standard_output(output) { "standard output".into() } else { output.display().to_string() };
    printer.remark(&format!("{place}: {}", counted(count, "sample")));
    Ok(Exit::Success)
}

fn lm_eval(args: &ExportArgs, output: &Path, run: &StoredRun, printer: Printer) -> Result<Exit, CliError> {
    let mut document = LmEval::of(run, !args.without_texts, &mut results::Messages(printer))?;
    let folder = document.write(output)?;
    printer.remark(&format!(
        "{}: {} and {} of samples",
        folder.display(),
        document.results_file,
        counted(document.samples.len(), "file")
    ));
    Ok(Exit::Success)
}
