//! `earnest tasks`: task files for questions of your own.
use super::values::counted;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::Exit;
use super::error::CliError;
use super::printer::Printer;
use super::sandbox_args::ConfinementArgs;
use super::values::Prompts;
use earnest_report::wrap;
use earnest_tasks::suite::registry::{OptionValues, find};
use earnest_tasks::suite::task::{Check, Covariate, check, example, is_name};

#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct TasksArgs {
    #[command(subcommand)]
    pub command: TasksCommand,
}

#[derive(Debug, Subcommand)]
pub enum TasksCommand {
    /// Write a commented task file and a few questions beside it
    New(NewArgs),
    /// Show what a task file or a file of questions would ask, and what is wrong with it
    Check(CheckArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest tasks new my-task           writes my-task.toml and my-task.jsonl
  earnest tasks check my-task.toml")]
pub struct NewArgs {
    /// Name of the task; the files NAME.toml and NAME.jsonl must not exist yet
    #[arg(value_name = "NAME")]
    pub name: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest tasks check questions.jsonl
  earnest tasks check my-task.toml --prompt short
  earnest tasks check my-task.toml --json

The exit code is 0 if every row can be asked and nothing else was found, 1 if something was found, and 2 if the file cannot be \
read at all.")]
pub struct CheckArgs {
    /// Task file (TOML), or file of questions
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Prompt of the task file to show
    #[arg(long, value_name = "PROMPT")]
    pub prompt: Option<Prompts>,

    /// Seed of the examples
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,

    #[command(flatten)]
    pub confinement: ConfinementArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub fn execute(args: &TasksArgs, printer: Printer) -> Result<Exit, CliError> {
    match &args.command {
        TasksCommand::New(args) => new(&args.name, printer),
        TasksCommand::Check(args) => checked(args, printer),
    }
}

fn new(path: &Path, printer: Printer) -> Result<Exit, CliError> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.strip_suffix(".toml").unwrap_or(name);
    if !is_name(name) {
        return Err(CliError::usage(format!("{} is no name for a task", path.display()))
            .help("take letters, digits, -, _ and ., such as my-task"));
    }
    if find(name).is_some() {
        return Err(
            CliError::usage(format!("{name} is the name of a suite of this program")).help("choose another name")
        );
    }
    let (text, questions) = example(name);
    let files = [
        (path.with_file_name(format!("{name}.jsonl")), questions),
        (path.with_file_name(format!("{name}.toml")), &text),
    ];
    if let Some((taken, _)) = files.iter().find(|(file, _)| file.exists()) {
        return Err(
            CliError::usage(format!("{} exists and is not overwritten", taken.display())).help("choose another name")
        );
    }
    for (file, text) in &files {
        let written = OpenOptions::new().write(true).create_new(true).open(file);
        written
            .and_then(|mut out| out.write_all(text.as_bytes()))
            .map_err(|error| CliError::new(Exit::Results, format!("cannot write {}: {error}", file.display())))?;
    }
    let [questions, task] = files.map(|(file, _)| file.display().to_string());
    printer.message(&format!("{task} asks the questions of {questions}; next: earnest tasks check {task}"));
    Ok(Exit::Success)
}

fn checked(args: &CheckArgs, printer: Printer) -> Result<Exit, CliError> {
    let prompts = args.prompt.clone().unwrap_or_default();
    let mut values = OptionValues::new(args.seed, prompts.names).with("file", args.file.as_os_str());
    // Bad rows are findings, not errors.
    values.set("skip-bad-rows", Vec::new());
    let found = check(&values, &args.confinement.host())?;
    if args.json {
        printer.json(&found)?;
    } else {
        printer.result(&screen(&found, printer.width()))?;
    }
    if found.findings.is_empty() {
        return Ok(Exit::Success);
    }
    printer.warning(&format!(
        "the check found something to mend ({}), so the exit code is 1",
        counted(found.findings.len(), "finding")
    ));
    Ok(Exit::FailedSamples)
}

/// Characters of the first prompt, and of other texts of a question, that are shown.
const LONGEST_PROMPT: usize = 10_000;
const LONGEST: usize = 1_000;

/// Continuations, and names in a list, that are shown.
const MOST_CONTINUATIONS: usize = 100;

/// The beginning of a text of the file that may be of any length.
fn beginning(text: &str, characters: usize) -> Cow<'_, str> {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}...", &text[..end]).into(),
        None => text.into(),
    }
}

fn screen(found: &Check, width: usize) -> String {
    let mut text = format!("{} (version {})\n", found.task, found.version);
    let mut row = |name: &str, value: String| text += &wrap(&value, width, &format!("  {name:<11}"));
    for file in &found.files {
        row("file", format!("{}, {}, SHA-256 {}", file.path, counted(file.rows, "row"), file.sha256));
    }
    let own = match found.without_label {
        0 => String::new(),
        1 => "; 1 has no label and is its own".to_owned(),
        count => format!("; {count} have no label, each is its own"),
    };
    let clusters = counted(found.clusters, "cluster");
    row("questions", format!("{} in {clusters}{own}", counted(found.questions, "question")));
    if !found.tasks.is_empty() {
        let tasks: Vec<String> = found.tasks.iter().map(|(name, count)| format!("{name} {count}")).collect();
        row("tasks", beginning(&tasks.join(", "), LONGEST_PROMPT).into_owned());
    }
    match &found.chosen {
        Some(chosen) => {
            let others: Vec<&str> = found.scorers.iter().skip(1).map(String::as_str).collect();
            let beside = if others.is_empty() { String::new() } else { format!("; beside it {}", others.join(", ")) };
            let raw = found.chosen_raw.as_ref().map(|raw| format!("; in raw prompts {raw}")).unwrap_or_default();
            row("scored by", format!("{chosen}{beside}{raw}"));
            if let Some(kinds) = &found.chosen_for {
                row("", format!("chosen for the answers ({kinds}); `scorers` in a task file names others"));
            }
        }
        None => row("scored by", "the log-likelihood of the answer".to_owned()),
    }
    if found.examples > 0 {
        row("examples", format!("{} before each question", found.examples));
    }
    if !found.covariates.is_empty() {
        let covariates = found.covariates.iter().map(described).collect::<Vec<_>>().join(", ");
        row("covariates", beginning(&covariates, LONGEST_PROMPT).into_owned());
    }
    let mode = if found.mode == "auto" { "chat or raw, as the model has it" } else { &found.mode };
    let named =
        if found.prompts.is_empty() { String::new() } else { format!("; --prompt {}", found.prompts.join(", ")) };
    row("prompt", format!("{mode}{named}"));
    if let Some(first) = &found.first {
        row("first", format!("{}, expected {:?}", beginning(&first.id, LONGEST), beginning(&first.gold, LONGEST)));
        let prompt = beginning(&first.prompt, LONGEST_PROMPT);
        for line in prompt.lines() {
            writeln!(text, "    | {line}").expect("writing to a String cannot fail");
        }
        if matches!(prompt, Cow::Owned(_)) {
            let all = counted(first.prompt.chars().count(), "character");
            writeln!(text, "    | the prompt has {all}").expect("writing to a String cannot fail");
        }
        for continuation in first.continuations.iter().take(MOST_CONTINUATIONS) {
            writeln!(text, "    > {:?}", beginning(continuation, LONGEST)).expect("writing to a String cannot fail");
        }
        if first.continuations.len() > MOST_CONTINUATIONS {
            writeln!(text, "    > ... {} in all", first.continuations.len()).expect("writing to a String cannot fail");
        }
    }
    text.push('\n');
    if found.findings.is_empty() {
        text.push_str("Nothing is wrong.\n");
    }
    for finding in &found.findings {
        writeln!(text, "{}: {}", finding.what, finding.count).expect("writing to a String cannot fail");
        for one in &finding.first {
            text += &wrap(&beginning(one, LONGEST), width, "  ");
        }
        if finding.count > finding.first.len() {
            text.push_str("  ...\n");
        }
    }
    text
}

fn described(covariate: &Covariate) -> String {
    let values = covariate.values.map_or_else(|| "many values".to_owned(), |count| counted(count, "value"));
    format!("{} ({}, {values})", covariate.name, covariate.kind)
}
