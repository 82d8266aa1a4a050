//! `earnest data`: data sets of the suites, from the hub into the Hugging Face cache.
use clap::{Args, Subcommand, ValueEnum};

use super::error::CliError;
use super::models::{described, download};
use super::printer::Printer;
use super::values::Prompts;
use super::{Exit, catalogue};
use earnest_models::hub::{Cache, Commit, Environment, FetchReport, Remote, RepoId};
use earnest_tasks::suite::gsm_symbolic::describes_questions;
use earnest_tasks::suite::registry::OptionValues;

#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Data sets are stored in huggingface_hub's cache: HF_HUB_CACHE, HF_HOME/hub, or ~/.cache/huggingface/hub.

Examples:
  earnest data fetch gsm-symbolic
  earnest data fetch gsm-symbolic --revision COMMIT      a certain commit of apple/GSM-Symbolic
  earnest data fetch gsm8k"
)]
pub struct DataArgs {
    #[command(subcommand)]
    pub command: DataCommand,
}

#[derive(Debug, Subcommand)]
pub enum DataCommand {
    /// Fetch a data set into the cache, resuming earlier downloads, and check every file
    Fetch(FetchDataArgs),
}

#[derive(Debug, Args)]
pub struct FetchDataArgs {
    /// The data set
    #[arg(value_name = "NAME", value_enum)]
    pub name: DataSet,

    /// Commit, 40 hexadecimal digits [default: the newest, which is named]
    #[arg(long, value_name = "COMMIT")]
    pub revision: Option<String>,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Data sets that suites ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DataSet {
    /// apple/GSM-Symbolic, the questions of gsm-symbolic (CC BY-NC-ND 4.0)
    GsmSymbolic,
    /// openai/gsm8k, whose test questions are the originals (MIT)
    Gsm8k,
}

impl DataSet {
    fn repo(self) -> &'static str {
        match self {
            DataSet::GsmSymbolic => "apple/GSM-Symbolic",
            DataSet::Gsm8k => "openai/gsm8k",
        }
    }
}

/// Runs the subcommand.
pub fn execute(args: &DataArgs, printer: Printer) -> Result<Exit, CliError> {
    let DataCommand::Fetch(args) = &args.command;
    fetch(args, printer)
}

/// A data set in the cache.
struct Brought {
    /// Repository and commit.
    named: String,
    folder: String,
    report: FetchReport,
    commit: String,
}

/// Fetches the questions of gsm-symbolic for a study that lacks them, and says on standard error what they are.
///
/// # Errors
/// Errors of the hub and of the cache.
pub(super) fn bring_gsm_symbolic(revision: Option<&str>, printer: Printer) -> Result<(), CliError> {
    let brought = bring(DataSet::GsmSymbolic, revision, printer)?;
    printer.message(&format!("{}: {} ({LICENCE})", brought.named, described(&brought.report)));
    for sentence in identity(&brought.commit)?.iter().filter(|sentence| sentence.contains(" not ")) {
        printer.warning(sentence);
    }
    Ok(())
}

/// Licence of the questions of gsm-symbolic.
pub(super) const LICENCE: &str = "CC BY-NC-ND 4.0";

fn bring(name: DataSet, revision: Option<&str>, printer: Printer) -> Result<Brought, CliError> {
    let environment = Environment::read(false);
    let cache = Cache::from_environment(&environment)?;
    let repo = RepoId::dataset(name.repo())?;
    let revision = match revision {
        Some(text) => Commit::parse(text)
            .map_err(|error| {
                CliError::usage(format!("--revision {text}: {error}"))
                    .help("a commit has 40 hexadecimal digits; the history of the data set's page shows them")
            })?
            .to_string(),
        None => "main".to_owned(),
    };
    let remote = Remote::new(&environment, &format!("fetching {}", name.repo()))?;
    printer.message(&format!("asking {} for the files of {}", environment.endpoint, name.repo()));
    let found = remote.revision(&repo, &revision)?;
    if let Some(other) = &found.moved {
        printer.remark(&format!("{0} has moved to {other}; the cache keeps it as {0}", name.repo()));
    }
    let listing = found.listing.rows();
    if listing.files.iter().all(|file| file.path == "README.md") {
        return Err(CliError::new(
            Exit::Results,
            format!("{}@{} has no rows as JSON lines or Parquet", name.repo(), listing.commit),
        )
        .help("--revision names another commit"));
    }
    let (folder, report) = download(&cache, &remote, &repo, &listing, printer)?;
    let commit = listing.commit.to_string();
    Ok(Brought { named: format!("{}@{commit}", name.repo()), folder, report, commit })
}

fn fetch(args: &FetchDataArgs, printer: Printer) -> Result<Exit, CliError> {
    let Brought { named, folder, report, commit } = bring(args.name, args.revision.as_deref(), printer)?;
    let questions = match args.name {
        DataSet::GsmSymbolic => identity(&commit),
        DataSet::Gsm8k => Ok(Vec::new()),
    };
    if args.json {
        let known = questions.as_ref().ok().cloned().unwrap_or_default();
        printer.json(&serde_json::json!({
            "data": named, "folder": folder, "report": report, "questions": known,
        }))?;
    } else {
        printer.result(&format!("{named}\n  {}\n  {folder}\n", described(&report)))?;
    }
    match questions {
        Ok(sentences) => {
            let others = sentences.iter().any(|sentence| sentence.contains(" not "));
            for sentence in &sentences {
                match others {
                    true => printer.warning(sentence),
                    false => printer.remark(sentence),
                }
            }
            Ok(if others { Exit::FailedSamples } else { Exit::Success })
        }
        Err(error) => Err(CliError::new(error.exit, format!("{named} was fetched, but {error}"))
            .help(error.help.unwrap_or_else(|| "--revision names an earlier commit".to_owned()))),
    }
}

/// Identity of the fetched questions of gsm-symbolic, in sentences.
fn identity(commit: &str) -> Result<Vec<String>, CliError> {
    let options = OptionValues::new(1, Vec::new()).with("revision", commit);
    let chosen =
        catalogue::choose("gsm-symbolic", &options, 1, &Prompts { mode: None, names: vec!["gsm".to_owned()] })?;
    let suite = chosen.suite(catalogue::Channel::local(earnest_results::Mode::Raw))?;
    let notes = suite.scoring.summarise(&[]).notes;
    Ok(notes.into_iter().filter(|note| describes_questions(note)).collect())
}
