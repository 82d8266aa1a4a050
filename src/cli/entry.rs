//! Entry point: arguments to exit code.
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::args::{self, Cli, Command};
use super::error::CliError;
use super::interrupt::fail_writes_beyond_limit;
use super::printer::Printer;
use earnest_tasks::nearest;

use super::{
    bench, catalogue, compare, data, doctor, export, generate, import, left_out, merge, models, offered, perturb,
    profile, report, reproduce, rf_lengths, run, run_part, runs, samples, score, serve, shell, show, stats, study,
    suites, tasks, train, view,
};

/// Parses the arguments, runs the command and prints its error.
pub fn main() -> ExitCode {
    // Workers of the sandbox, of a checkpoint and of a task file are this program too; they must not parse arguments, print or read settings.
    earnest_sandbox::serve_if_worker();
    fail_writes_beyond_limit();
    earnest_models::serve_if_worker();
    earnest_tasks::suite::task::serve_if_worker();
    let printer = Printer::new(false);
    // Clap prints help and usage errors itself; its exit codes (0 and 2) are those of `Exit`.
    let cli = match Cli::from_arguments() {
        Ok(cli) => cli,
        Err(error) => {
            let ours = left_out::help(offered::words())
                .or_else(|| catalogue::suite_usage_error(&error, args::definition(), offered::words()))
                .or_else(|| number_error(&error));
            let Some(error) = ours else { with_names(with_spelling(error)).exit() };
            printer.error(&error);
            return error.exit.into();
        }
    };
    let printer = Printer::new(cli.quiet);
    if let Err(error) = earnest_eval::threads::prepare() {
        let error = CliError::from(error);
        printer.error(&error);
        return error.exit.into();
    }
    let outcome = match &cli.command {
        Command::Run(args) => match &args.from.run {
            Some(name) => run::repeat(name, args, printer),
            None => run::execute(args, printer),
        },
        Command::Profile(args) => profile::execute(args, printer),
        Command::Study(args) => study::execute(args, printer),
        Command::Resume(args) => run::resume(args, printer),
        Command::Runs(args) => runs::execute(args, printer),
        Command::Samples(args) => samples::execute(args, printer),
        Command::View(args) => view::execute(args, printer),
        Command::Compare(args) => compare::execute(args, printer),
        Command::Score(args) => score::execute(args, printer),
        Command::Import(args) => import::execute(args, printer),
        Command::RunPart(args) => run_part::execute(args, printer),
        Command::ImportLogs(args) => import::execute_logs(args, printer),
        Command::Merge(args) => merge::execute(args, printer),
        Command::Suites(args) => suites::execute(args, printer),
        Command::Tasks(args) => tasks::execute(args, printer),
        Command::Show(args) => show::execute(args, printer),
        Command::Generate(args) => generate::execute(args, printer),
        Command::Perturb(args) => perturb::execute(args, printer),
        Command::RfLengths(args) => rf_lengths::execute(args, printer),
        Command::Models(args) => models::execute(args, printer),
        Command::Data(args) => data::execute(args, printer),
        Command::Train(args) => train::execute(args, printer),
        Command::Bench(args) => bench::execute(args, printer),
        Command::Serve(args) => serve::execute(args, printer),
        Command::Stats(args) => stats::execute(args, printer),
        Command::Doctor(args) => doctor::execute(args, printer),
        Command::Report(args) => report::execute(args, printer),
        Command::Export(args) => export::execute(args, printer),
        Command::Reproduce(args) => reproduce::execute(args, printer),
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
