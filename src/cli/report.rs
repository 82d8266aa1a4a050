//! `earnest report`.
use super::values::counted;
use std::path::{Path, PathBuf};

use clap::Args;

use super::Exit;
use super::error::CliError;
use super::figures::FigureArgs;
use super::output::{output_file, write_file};
use super::printer::Printer;
use earnest_models::memory::human_bytes;
use earnest_papers::gsm_symbolic::chapters;
use earnest_report::ReportError;
use earnest_report::page::{ReportRun, comparisons, figures, page};
use earnest_report::plot::Format;
use earnest_results::{RowsError, StoredRun};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest report arithmetic-bench-SmolLM2 -o report.html
  earnest report RUN1 RUN2 -o report.html --figures figures --figure-format pdf,png
  earnest report RUN --figures figures --every-figure")]
pub struct ReportArgs {
    /// The runs, the baseline of differences first; a part of a name is enough
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<String>,

    /// The HTML file
    #[arg(long, short, value_name = "FILE", default_value = "report.html", value_parser = output_file())]
    pub output: PathBuf,

    #[command(flatten)]
    pub figures: FigureArgs,

    /// Write every figure into the folder, also each task's curves, latencies and further metrics
    #[arg(long, requires = "figures")]
    pub every_figure: bool,

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
    let ReportArgs { runs, output, figures, every_figure, results } = args;
    let ending = output.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if ["pdf", "png", "svg"].contains(&ending) {
        return Err(CliError::usage(format!("the report is an HTML page, and {} says {ending}", output.display()))
            .help(match Format::of_ending(ending).filter(|format| format.is_built()) {
                Some(format) => format!(
                    "-o report.html, which a browser prints; `--figures DIR --figure-format {}` writes the figures",
                    format.ending()
                ),
                None => "-o report.html, which a browser prints".to_owned(),
            }));
    }
    write(runs, results, output, Some((figures, *every_figure)))?.iter().for_each(|line| printer.remark(line));
    Ok(Exit::Success)
}

/// Writes the page and, if asked, the figures as files, the overview or with true every one; returns a line for each output.
pub fn write(
    names: &[String],
    results: &Path,
    output: &Path,
    drawn: Option<(&FigureArgs, bool)>,
) -> Result<Vec<String>, CliError> {
    let report = |name: &String| ReportRun::of(&StoredRun::open(results, name)?);
    write_runs(names.iter().map(report).collect::<Result<Vec<ReportRun>, ReportError>>()?, output, drawn)
}

/// Writes the page of these runs, under their labels.
pub fn write_runs(
    mut runs: Vec<ReportRun>,
    output: &Path,
    drawn: Option<(&FigureArgs, bool)>,
) -> Result<Vec<String>, CliError> {
    ReportRun::distinguish(&mut runs);
    let chapters = chapters(&runs);
    let compared = comparisons(&runs);
    let html = page(&runs, &compared, &chapters)?;
    write_file(output, |out| {
        out.write_all(html.as_bytes()).map_err(|source| RowsError::Write { path: output.to_owned(), source })
    })?;
    let samples: usize = runs.iter().map(|run| run.samples.len()).sum();
    let mut lines = vec![format!(
        "{}: {} of {}, {}",
        output.display(),
        counted(samples, "sample"),
        counted(runs.len(), "run"),
        human_bytes(html.len() as u64)
    )];
    if let Some((drawn, every, folder)) = drawn.and_then(|(drawn, every)| Some((drawn, every, drawn.figures.as_ref()?)))
    {
        let of_runs = figures(&runs, &compared, true);
        let all = of_runs.len();
        let written = of_runs.into_iter().filter(|placed| every || placed.section.is_overview());
        let written: Vec<_> = written.map(|placed| placed.figure).collect();
        let left_out = match all - written.len() {
            0 => String::new(),
            count => format!("; --every-figure writes {count} more, a task or metric each"),
        };
        let written: Vec<_> =
            written.into_iter().chain(chapters.into_iter().flat_map(|chapter| chapter.figures)).collect();
        drawn.write(folder, &written)?;
        lines.push(format!("{}: {} figures{left_out}", folder.display(), written.len()));
    }
    Ok(lines)
}
