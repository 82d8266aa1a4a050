//! `earnest suites`.
use std::fmt::Write;

use super::args::SuitesArgs;
use super::error::CliError;
use super::printer::Printer;
use super::{Exit, catalogue};

/// Lists the suites.
pub fn execute(args: &SuitesArgs, printer: Printer) -> Result<Exit, CliError> {
    let entries = catalogue::entries()?;
    if args.json {
        printer.json(&entries)?;
        return Ok(Exit::Success);
    }
    let mut text = String::new();
    for entry in &entries {
        write!(
            text,
            "{} (version {})\n  {}\n  paper    {}\n  tasks    {}\n  items    {} with default options\n  options  {}\n",
            entry.name,
            entry.version,
            entry.about,
            entry.paper,
            entry.tasks.join(", "),
            entry.items,
            entry.options.join(", "),
        )
        .expect("writing to a String cannot fail");
    }
    printer.result(&text)?;
    Ok(Exit::Success)
}
