//! `earnest export`.
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::error::CliError;
use super::printer::Printer;
use super::stored::{StoredRun, write_file};
use super::{Exit, catalogue};
use crate::report::ReportError;
use crate::report::export::{LmEval, write_csv, write_jsonl, write_parquet};

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One JSON object a line, everything that is stored
    Jsonl,
    /// One row a sample, RFC 4180
    Csv,
    /// One row a sample, gzip, the manifest in the metadata
    Parquet,
    /// Results JSON and samples in the schema of lm-evaluation-harness, in a folder
    LmEval,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest export RUN --format parquet -o samples.parquet
  earnest export RUN --format csv -o - | head
  earnest export RUN --format lm-eval -o lm-eval-results")]
pub struct ExportArgs {
    /// The run, by name or by a beginning of it that only one run has
    #[arg(value_name = "RUN")]
    pub run: String,

    /// The format
    #[arg(long, short, value_name = "FORMAT", value_enum)]
    pub format: ExportFormat,

    /// The file, - for standard output; for lm-eval a folder
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,

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

/// Writes a run in another format.
pub fn execute(args: &ExportArgs, printer: Printer) -> Result<Exit, CliError> {
    let run = StoredRun::open(&args.results, &args.run)?;
    let mut count = 0;
    let place = match args.format {
        ExportFormat::LmEval => {
            if args.output == Path::new("-") {
                return Err(CliError::usage("lm-eval results are several files: name a folder with -o"));
            }
            return lm_eval(args, &run, printer);
        }
        ExportFormat::Jsonl => write_file(&args.output, |mut out| {
            count = write_jsonl(&run, &mut out)?;
            Ok(())
        }),
        ExportFormat::Csv => write_file(&args.output, |mut out| {
            count = write_csv(&run, &mut out)?;
            Ok(())
        }),
        ExportFormat::Parquet => write_file(&args.output, |out| {
            count = write_parquet(&run, &run.manifest, out)?;
            Ok(())
        }),
    };
    place?;
    printer.message(&format!("{}: {count} samples", args.output.display()));
    Ok(Exit::Success)
}

fn lm_eval(args: &ExportArgs, run: &StoredRun, printer: Printer) -> Result<Exit, CliError> {
    let settings = &run.manifest.settings;
    let suite = catalogue::stored(settings)?;
    let mut questions: HashMap<String, String> = HashMap::new();
    let mut planned: BTreeMap<String, usize> = BTreeMap::new();
    let limit = settings.limit.unwrap_or(usize::MAX);
    for (place, item) in suite.items().enumerate() {
        *planned.entry(item.task.clone()).or_default() += 1;
        if place < limit {
            questions.insert(item.id, item.segments.question);
        }
    }
    let document = LmEval::new(&run.manifest, &planned, run, &|item| questions.get(item).cloned())?;
    let folder = args.output.join(&document.folder);
    std::fs::create_dir_all(&folder).map_err(|source| ReportError::Write { path: folder.clone(), source })?;
    let failed = |error: serde_json::Error| ReportError::Format { format: "lm-eval", reason: error.to_string() };
    write_file(&folder.join(&document.results_file), |out| {
        serde_json::to_writer_pretty(out, &document.results).map_err(failed)
    })?;
    for task in &document.samples {
        write_file(&folder.join(&task.file), |out| {
            task.lines.iter().try_for_each(|line| {
                serde_json::to_writer(&mut *out, line).map_err(failed)?;
                out.write_all(b"\n").map_err(|error| failed(serde_json::Error::io(error)))
            })
        })?;
    }
    printer.message(&format!(
        "{}: {} and {} files of samples",
        folder.display(),
        document.results_file,
        document.samples.len()
    ));
    Ok(Exit::Success)
}
