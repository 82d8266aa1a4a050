//! `earnest export`.
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::error::CliError;
use super::printer::Printer;
use super::stored::{StoredRun, write_file};
use super::{Exit, catalogue};
use earnest_eval::prompt::{ModeRequest, Prompter, Remote};
use earnest_eval::report::export::{LmEval, write_csv, write_jsonl, write_parquet};
use earnest_eval::report::{ReportError, Row, Rows, WithoutTexts};
use earnest_eval::run::Sample;
use earnest_eval::run::store::StoredQuestion;
use earnest_tasks::suite::Item;

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
  earnest export RUN --format lm-eval -o lm-eval-results
  earnest export RUN --format jsonl --without-texts -o samples.jsonl")]
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

    /// Leave questions and prompts out, e.g. where the licence of the questions lets nobody pass them on
    #[arg(long)]
    pub without_texts: bool,

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
    let plain = WithoutTexts(&run);
    let rows: &dyn Rows = if args.without_texts { &plain } else { &run };
    let mut count = 0;
    let place = match args.format {
        ExportFormat::LmEval => {
            if args.output == Path::new("-") {
                return Err(CliError::usage("lm-eval results are several files: name a folder with -o"));
            }
            return lm_eval(args, &run, printer);
        }
        ExportFormat::Jsonl => write_file(&args.output, |mut out| {
            count = write_jsonl(rows, &mut out)?;
            Ok(())
        }),
        ExportFormat::Csv => write_file(&args.output, |mut out| {
            count = write_csv(rows, &mut out)?;
            Ok(())
        }),
        ExportFormat::Parquet => write_file(&args.output, |out| {
            count = write_parquet(rows, &run.manifest, out)?;
            Ok(())
        }),
    };
    place?;
    printer.message(&format!("{}: {count} samples", args.output.display()));
    Ok(Exit::Success)
}

/// Rows of a run of a version that stored no questions, with those of its suite.
struct OfSuite<'a> {
    run: &'a StoredRun,
    items: HashMap<String, Item>,
}

impl OfSuite<'_> {
    /// The pieces of a prompt, one a line.
    fn asked(&self, sample: &Sample) -> Option<StoredQuestion> {
        let item = self.items.get(&sample.item)?.clone();
        let plain = Prompter::new(&Remote::Text, ModeRequest::Raw).and_then(|plain| plain.text(&item.segments));
        Some(StoredQuestion { item, prompt: plain.ok() })
    }
}

impl Rows for OfSuite<'_> {
    fn walk(&self, row: &mut dyn FnMut(&Sample) -> Result<(), ReportError>) -> Result<(), ReportError> {
        self.run.walk(row)
    }

    fn walk_asked(&self, row: &mut dyn FnMut(&Row) -> Result<(), ReportError>) -> Result<(), ReportError> {
        self.run.walk(&mut |sample| row(&Row { sample: sample.clone(), asked: self.asked(sample) }))
    }
}

/// The suite's items by task, those that the run did not ask included, and as stored where the suite cannot be had.
fn planned(run: &StoredRun) -> Result<BTreeMap<String, usize>, CliError> {
    let mut planned: BTreeMap<String, usize> = BTreeMap::new();
    let mut count = |task: &str| *planned.entry(task.to_owned()).or_default() += 1;
    match catalogue::stored(&run.manifest.settings) {
        Ok(suite) => suite.items().for_each(|item| count(&item.task)),
        Err(_) => run.each_question(|item| count(&item.task))?,
    }
    Ok(planned)
}

fn lm_eval(args: &ExportArgs, run: &StoredRun, printer: Printer) -> Result<Exit, CliError> {
    let settings = &run.manifest.settings;
    let of_suite;
    let rows: &dyn Rows = if run.has_questions()? {
        run
    } else {
        let mut items = HashMap::new();
        run.each_question(|item| drop(items.insert(item.id.clone(), item)))?;
        printer.warning(
            "the prompts were not stored: these are their pieces, without the chat template that was around them",
        );
        of_suite = OfSuite { run, items };
        &of_suite
    };
    let examples = Some(catalogue::examples_in_text(&settings.suite)).filter(|&examples| examples > 0);
    let document = LmEval::new(&run.manifest, &planned(run)?, rows, !args.without_texts, examples)?;
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
