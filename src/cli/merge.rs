//! `earnest merge`.
use super::values::counted;
use std::path::Path;

use super::error::CliError;
use super::printer::Printer;
use super::result_args::MergeArgs;
use super::{Exit, results};
use earnest_eval::merge::{MergeEvent, MergeSettings, merge};
use earnest_results::Reporter;

/// Merges results and prints each step.
pub fn execute(args: &MergeArgs, printer: Printer) -> Result<Exit, CliError> {
    let (folders, host) = (args.folders.clone(), args.confinement.host_of_stored(args.python.allow_python.clone()));
    let settings = MergeSettings { folders, host, ..MergeSettings::new(&args.results.folder) };
    let mut printed = Ok(());
    let merged = merge(&settings, &mut |event| {
        if printed.is_ok() {
            printed = print(event, printer);
        }
    });
    printed?;
    merged?;
    Ok(Exit::Success)
}

/// Joins the parts of one run, which this command has just finished; prints nothing but messages.
pub fn join_run(results: &Path, settings_sha256: &str, parts: usize, printer: Printer) -> Result<(), CliError> {
    Ok(earnest_eval::merge::join_run(results, settings_sha256, parts, &mut |event| match event {
        MergeEvent::Joined { run, parts, samples } => {
            printer.remark(&format!("{run}: {} joined, {}", counted(parts, "part"), counted(samples, "sample")));
        }
        MergeEvent::Store(event) => results::Messages(printer).event(event),
        _ => {}
    })?)
}

fn print(event: MergeEvent<'_>, printer: Printer) -> Result<(), CliError> {
    match event {
        MergeEvent::Copied { run, samples, from } => {
            printer.remark(&format!("{run}: {} copied from {}", counted(samples, "sample"), from.display()));
        }
        MergeEvent::NothingToCopy { run, samples, from, whole } => {
            let place = whole.map_or_else(|| "here".to_owned(), |whole| format!("in {whole}"));
            printer.remark(&format!(
                "{run} in {}: nothing to copy, its {} {place} already",
                from.display(),
                if samples == 1 { "1 sample is".to_owned() } else { format!("{samples} samples are") }
            ));
        }
        MergeEvent::NoParts { store } => printer.remark(&format!(
            "{} has no parts of runs to join; `earnest run --shard I/N` works on a part",
            store.display()
        )),
        MergeEvent::Joined { run, parts, samples } => {
            printer.result(&format!("{run}: {} joined, {}\n", counted(parts, "part"), counted(samples, "sample")))?;
        }
        MergeEvent::AlreadyJoined { run, parts } => {
            printer.result(&format!("{run}: has the rows of {} already\n", parts.join(", ")))?;
        }
        MergeEvent::PartsMissing { run, parts } => {
            printer.warning(&format!("{run}: not finished or not here: {}", parts.join(", ")));
        }
        MergeEvent::Store(event) => results::Messages(printer).event(event),
    }
    Ok(())
}
