//! `earnest suites`.
use std::fmt::Write;

use clap::Args;

use super::error::CliError;
use super::printer::Printer;
use super::{Exit, catalogue};
use earnest_report::wrap;

#[derive(Debug, Args)]
pub struct SuitesArgs {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Prints the suites.
pub fn execute(args: &SuitesArgs, printer: Printer) -> Result<Exit, CliError> {
    let entries = catalogue::entries();
    if args.json {
        printer.json(&entries)?;
        return Ok(Exit::Success);
    }
    let mut text = String::new();
    let width = printer.width();
    for entry in &entries {
        writeln!(text, "{} (version {})", entry.name, entry.version).expect("writing to a String cannot fail");
        text += &wrap(entry.about, width, "  ");
        for (name, value) in [
            ("paper", entry.paper.to_owned()),
            ("tasks", entry.tasks.join(", ")),
            (
                "items",
                entry.items.map_or_else(
                    || format!("depends on {}", entry.items_depend_on),
                    |items| format!("{items} with default options"),
                ),
            ),
            ("options", entry.options.join(", ")),
        ] {
            if !value.is_empty() {
                text += &wrap(&value, width, &format!("  {name:<9}"));
            }
        }
    }
    printer.result(&text)?;
    Ok(Exit::Success)
}
