//! `earnest reproduce gsm-symbolic --run --fresh`: questions drawn from templates, kept in the results folder.
use std::path::{Path, PathBuf};

use super::gsm_symbolic_args::GsmSymbolicArgs;
use crate::cli::error::CliError;
use crate::cli::output::write_file;
use crate::cli::printer::Printer;
use earnest_results::RowsError;
use earnest_results::suites::LocalHost;
use earnest_tasks::suite::registry::{OptionValues, find};

/// Draws the questions and returns their file, whose name has the digest of its content: other templates, seeds or numbers make
/// other files, and the same command finds its own.
///
/// # Errors
/// Templates that cannot be read or drawn from; options that choose published questions.
pub(super) fn fresh_questions(args: &GsmSymbolicArgs, templates: &Path, printer: Printer) -> Result<PathBuf, CliError> {
    let given = &args.items.0;
    if args.suite != "gsm-symbolic" || given.has_any(&["data", "revision", "sets"]) {
        return Err(CliError::usage(
            "--fresh draws the questions; leave --suite gsm-mini, --data, --revision and --sets out",
        ));
    }
    let generator = find(&args.suite).and_then(|suite| suite.generator());
    let generator = generator.ok_or_else(|| CliError::usage(format!("{} has no generator", args.suite)))?;
    let mut values = OptionValues::new(args.seed.seed, Vec::new());
    if templates != Path::new("own") {
        values = values.with("templates", templates.as_os_str());
    }
    if let Some(count) = given.text("instances")? {
        values = values.with("per-template", count);
    }
    let mut lines = generator.lines(&values, &LocalHost::default())?;
    let mut content = Vec::new();
    lines.write(&mut content).map_err(|error| CliError::usage(format!("--fresh: {error}")))?;
    let digest = earnest_digest::hex(&earnest_digest::sha256(&content));
    let folder = args.compared.results.folder.join("questions");
    let file = folder.join(format!("gsm-symbolic-fresh-{}.jsonl", &digest[..8]));
    if !file.exists() {
        std::fs::create_dir_all(&folder).map_err(|source| RowsError::Write { path: folder.clone(), source })?;
        write_file(&file, |out| {
            out.write_all(&content).map_err(|source| RowsError::Write { path: file.clone(), source })
        })?;
    }
    printer.message(&lines.sentence(&format!(" in {}", file.display())));
    Ok(file)
}
