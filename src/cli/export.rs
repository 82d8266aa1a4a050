//! `earnest export`.
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::error::CliError;
use super::printer::Printer;
use super::prompt_again::{Again, Prompt};
use super::stored::{StoredRun, write_file};
use super::{Exit, catalogue};
use crate::prompt::{ModeRequest, Prompter, Remote};
use crate::report::ReportError;
use crate::report::export::{Asked, LmEval, write_csv, write_jsonl, write_parquet};
use crate::suite::{Item, gsm_symbolic};

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
    let mut items: HashMap<String, Item> = HashMap::new();
    let mut planned: BTreeMap<String, usize> = BTreeMap::new();
    let limit = settings.limit.unwrap_or(usize::MAX);
    for (place, item) in suite.items().enumerate() {
        *planned.entry(item.task.clone()).or_default() += 1;
        if place < limit {
            items.insert(item.id.clone(), item);
        }
    }
    let again = Again::of(&run.manifest);
    let source = again.source();
    let prompter = again.prompter(source.as_deref());
    let plain = Prompter::new(&Remote::Text, ModeRequest::Raw)?;
    // A task's first prompt is held against its row to the token; the others are made the same way.
    let mut as_asked: HashMap<String, bool> = HashMap::new();
    let mut bare = None;
    let document = LmEval::new(&run.manifest, &planned, run, &mut |sample| {
        let item = items.get(&sample.item)?;
        let first = || match again.prompt(prompter.as_ref(), item, sample) {
            Prompt::Asked(_) | Prompt::Unchecked(..) => true,
            Prompt::Pieces(reason) => {
                bare = bare.take().or(reason);
                false
            }
        };
        let known = *as_asked.entry(sample.task.clone()).or_insert_with(first);
        let prompt = prompter.as_ref().filter(|_| known).and_then(|prompter| prompter.text(&item.segments).ok());
        Some(Asked {
            question: item.segments.question.clone(),
            prompt: prompt.or_else(|| plain.text(&item.segments).ok()).unwrap_or_default(),
            stop_strings: item.stop_strings.clone(),
            shots: if settings.suite.starts_with("gsm-") {
                gsm_symbolic::Prompt::EXAMPLES
            } else {
                item.segments.shots.len()
            },
        })
    })?;
    if let Some(reason) = bare {
        printer.warning(&format!("the prompts are without the chat template that was around them, because {reason}"));
    }
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
