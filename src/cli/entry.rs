//! Entry point: arguments to exit code.
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::args::{self, Cli, Command};
use super::confine::confine;
use super::error::{CliError, with_causes};
use super::interrupt::fail_writes_beyond_limit;
use super::printer::Printer;
use earnest_tasks::nearest;

use super::{
    bench, catalogue, compare, data, doctor, export, generate, import, merge, models, offered, perturb, profile,
    report, reproduce, rf_lengths, run, runs, samples, score, serve, shell, show, stats, study, suites, tasks, train,
    view,
};

/// Parses the arguments, runs the command and prints its error.
pub fn main() -> ExitCode {
    // Workers of the sandbox, of a checkpoint and of a task file are this program too; they must not parse arguments, print or read settings.
    earnest_sandbox::serve_if_worker();
    fail_writes_beyond_limit();
    earnest_models::serve_if_worker();
    earnest_tasks::suite::task::serve_if_worker();
    let printer = Printer::new();
    // Clap prints help and usage errors itself; its exit codes (0 and 2) are those of `Exit`.
    let cli = match Cli::from_arguments() {
        Ok(cli) => cli,
        Err(error) => match catalogue::suite_usage_error(&error, args::definition(), offered::words()) {
            Some(error) => {
                printer.error(&error);
                return error.exit.into();
            }
            None => match number_error(&error) {
                Some(error) => {
                    printer.error(&error);
                    return error.exit.into();
                }
                None => with_names(with_spelling(error)).exit(),
            },
        },
    };
    confine(&cli.command);
    if let Err(error) = earnest_eval::threads::prepare() {
        let error = CliError::from(error);
        printer.error(&error);
        return error.exit.into();
    }
    let outcome = match &cli.command {
        Command::Run(args) => match &args.from.run {
            Some(name) => run::repeat(name, args, cli.quiet, printer),
            None => run::execute(args, cli.quiet, printer),
        },
        Command::Profile(args) => profile::execute(args, cli.quiet, printer),
        Command::Study(args) => study::execute(args, cli.quiet, printer),
        Command::Resume(args) => run::resume(args, cli.quiet, printer),
        Command::Runs(args) => runs::execute(args, printer),
        Command::Samples(args) => samples::execute(args, printer),
        Command::View(args) => view::execute(args, cli.quiet, printer),
        Command::Compare(args) => compare::execute(args, printer),
        Command::Score(args) => score::execute(args, printer),
        Command::Import(args) => import::execute(args, cli.quiet, printer),
        Command::ImportLogs(args) => import::execute_logs(args, printer),
        Command::Merge(args) => merge::execute(args, printer),
        Command::Suites(args) => suites::execute(args, printer),
        Command::Tasks(args) => tasks::execute(args, cli.quiet, printer),
        Command::Show(args) => show::execute(args, printer),
        Command::Generate(args) => generate::execute(args, cli.quiet, printer),
        Command::Perturb(args) => perturb::execute(args, cli.quiet, printer),
        Command::RfLengths(args) => rf_lengths::execute(args, printer),
        Command::Models(args) => models::execute(args, cli.quiet, printer),
        Command::Data(args) => data::execute(args, cli.quiet, printer),
        Command::Train(args) => train::execute(args, cli.quiet, printer),
        Command::Bench(args) => bench::execute(args, cli.quiet, printer),
        Command::Serve(args) => serve::execute(args, cli.quiet, printer),
        Command::Stats(args) => statistics(args, printer),
        Command::Doctor(args) => doctor::execute(args, printer),
        Command::Report(args) => report::execute(args, printer),
        Command::Export(args) => export::execute(args, printer),
        Command::Reproduce(args) => reproduce::execute(args, cli.quiet, printer),
        Command::Completions(args) => shell::completions(args, printer),
        Command::Man(args) => shell::man(args, printer),
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(error) => {
            let error = error.for_this_command();
            printer.error(&error);
            error.exit.into()
        }
    }
}

/// The error for a value that is no number where an option takes one; none for other errors.
fn number_error(error: &clap::Error) -> Option<CliError> {
    let source = std::error::Error::source(error)?;
    let wanted = match (source.downcast_ref::<ParseIntError>(), source.is::<ParseFloatError>()) {
        (Some(found), _) => match found.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "a whole number that is not so far from 0",
            _ => "a whole number, such as 8",
        },
        (None, true) => "a number, such as 0.5",
        (None, false) => return None,
    };
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (option, value) = (text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?);
    Some(CliError::usage(format!("{option} takes {wanted}, and was given `{value}`")))
}

/// Suggests today's spelling where clap suggests a former one, which it knows too.
fn with_spelling(mut error: clap::Error) -> clap::Error {
    let today = match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(near)) => catalogue::today_at(args::definition(), offered::words(), near),
        _ => None,
    };
    if let Some(today) = today {
        error.insert(ContextKind::SuggestedArg, ContextValue::String(today));
    }
    error
}

/// Adds the valid names to the error of an unknown command, the nearest one first: clap's own suggestions are of names that begin alike.
fn with_names(mut error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let names = catalogue::names_at(args::definition(), offered::words());
    let near = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(name)) => nearest(name, names.iter().map(String::as_str)).map(str::to_owned),
        _ => None,
    };
    if let Some(near) = near {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![near]));
    }
    let tip = StyledStr::from(format!("choose from {}", names.join(", ")));
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    error
}

/// Runs `earnest stats`, whose text and chain of causes are printed like those of every command.
fn statistics(args: &stats::StatsArgs, printer: Printer) -> Result<super::Exit, CliError> {
    let mut text = Vec::new();
    let exit = stats::run(args, &mut text).map_err(|error| match stats::of_run(error) {
        Ok(error) => error,
        Err(error) => CliError::usage(with_causes(&error)),
    })?;
    printer.result(&String::from_utf8_lossy(&text))?;
    if exit == super::Exit::FailedSamples {
        printer.warning("there is no usable estimate, so the exit code is 1; the result says why");
    }
    Ok(exit)
}
