//! `earnest completions` and `earnest man`, from the definitions that the command line is parsed with.
use super::Exit;
use super::args::definition;
use super::error::CliError;
use super::printer::Printer;
use super::result_args::{CompletionsArgs, ManArgs};

/// Prints shell completions.
pub fn completions(args: &CompletionsArgs, printer: Printer) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut definition(), "earnest", &mut script);
    printer.result(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Success)
}

/// Prints the manual page, or writes one page per command.
pub fn man(args: &ManArgs, printer: Printer) -> Result<Exit, CliError> {
    let failed = |error: std::io::Error| CliError::new(Exit::Results, format!("cannot write the manual: {error}"));
    match &args.dir {
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(failed)?;
            clap_mangen::generate_to(definition(), folder).map_err(failed)?;
            printer.remark(&format!("the manual pages are in {}", folder.display()));
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(definition()).render(&mut page).map_err(failed)?;
            printer.result(&String::from_utf8_lossy(&page))?;
        }
    }
    Ok(Exit::Success)
}
