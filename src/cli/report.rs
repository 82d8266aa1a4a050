//! `earnest report`.
use std::path::{Path, PathBuf};

use clap::Args;

use super::Exit;
use super::error::CliError;
use super::printer::Printer;
use super::stored::{StoredRun, write_file};
use earnest_eval::EvalError;
use earnest_eval::report::ReportError;
use earnest_eval::report::page::{ReportRun, figures, page};
use earnest_models::memory::human_bytes;
use earnest_papers::gsm_symbolic::chapters;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest report arithmetic-bench-SmolLM2 -o report.html
  earnest report RUN1 RUN2 -o report.html --svg figures")]
pub struct ReportArgs {
    /// The runs, the baseline of differences first; a part of a name is enough
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<String>,

    /// The HTML file
    #[arg(long, short, value_name = "FILE", default_value = "report.html")]
    pub output: PathBuf,

    /// Write every figure as an SVG file into this folder too
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,

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

/// Writes the page and, if asked, the figures as files, and prints their paths.
pub fn execute(args: &ReportArgs, printer: Printer) -> Result<Exit, CliError> {
    let ReportArgs { runs, output, svg, results } = args;
    write(runs, results, output, svg.as_deref())?.iter().for_each(|line| printer.message(line));
    Ok(Exit::Success)
}

/// Writes the page and, if asked, the figures as files; returns a line for each output.
pub fn write(names: &[String], results: &Path, output: &Path, svg: Option<&Path>) -> Result<Vec<String>, CliError> {
    let report = |name: &String| StoredRun::open(results, name)?.report();
    write_runs(names.iter().map(report).collect::<Result<Vec<ReportRun>, EvalError>>()?, output, svg)
}

/// Writes the page of these runs, under their labels.
pub fn write_runs(mut runs: Vec<ReportRun>, output: &Path, svg: Option<&Path>) -> Result<Vec<String>, CliError> {
    ReportRun::distinguish(&mut runs);
    let chapters = chapters(&runs);
    let html = page(&runs, &chapters);
    let put = |path: &Path, text: &str| {
        write_file(path, |out| {
            out.write_all(text.as_bytes()).map_err(|source| ReportError::Write { path: path.to_owned(), source })
        })
    };
    put(output, &html)?;
    let mut drawn = 0;
    if let Some(folder) = svg {
        std::fs::create_dir_all(folder)
            .map_err(|source| CliError::from(ReportError::Write { path: folder.to_owned(), source }))?;
        let of_runs = figures(&runs, true).into_iter().map(|placed| placed.figure);
        for figure in of_runs.chain(chapters.into_iter().flat_map(|chapter| chapter.figures)) {
            put(&folder.join(format!("{}.svg", figure.name)), &figure.standalone())?;
            drawn += 1;
        }
    }
    let samples: usize = runs.iter().map(|run| run.samples.len()).sum();
    let mut lines = vec![format!(
        "{}: {samples} samples of {} run{}, {}",
        output.display(),
        runs.len(),
        if runs.len() == 1 { "" } else { "s" },
        human_bytes(html.len() as u64)
    )];
    lines.extend(svg.map(|folder| format!("{}: {drawn} figures", folder.display())));
    Ok(lines)
}
