//! `earnest reproduce nupa --section 3`: the paper's trained models beside an experiment's.
use std::path::Path;

use super::nupa::NupaArgs;
use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use earnest_digest::input;
use earnest_papers::nupa::{drawings, render_section_3, section_3};
use earnest_train::experiment::{EXPERIMENT_FILE, Experiment, ExperimentResults};
use earnest_train::{AnswerStyle, FineTuned};

/// Our own experiment, from the repository.
const OURS: &str = include_str!("../../../docs/training/section-3.json");
const OURS_NAME: &str = "earnest's own run (docs/training/section-3.md)";

/// Our own trainings of adapters.
const FINE_TUNED: &str = include_str!("../../../docs/training/fine-tuned.json");

/// Prints the comparison and writes its figures if asked to.
pub fn execute(args: &NupaArgs, printer: Printer) -> Result<Exit, CliError> {
    let (results, source) = match &args.experiment {
        None => {
            let results = ExperimentResults::parse(OURS).expect("a test parses it");
            (results, OURS_NAME.to_owned())
        }
        Some(path) => (read(path)?, path.display().to_string()),
    };
    let fine_tuned = if args.fine_tuned.is_empty() && args.experiment.is_none() {
        serde_json::from_str(FINE_TUNED).expect("a test parses it")
    } else {
        args.fine_tuned.iter().map(|folder| read_fine_tuned(folder, printer)).collect::<Result<Vec<_>, _>>()?
    };
    let section = section_3(&results, &fine_tuned, &source);
    let why_none = "the experiment has no pair of variants of a figure";
    super::nupa::write_drawings(|| drawings(&section), why_none, &args.compared.figures, printer)?;
    if args.compared.json {
        printer.json(&section)?;
    } else {
        printer.result(&render_section_3(&section, args.published, printer.width()))?;
    }
    Ok(Exit::Success)
}

/// Reads a folder of `earnest train lora`.
fn read_fine_tuned(folder: &Path, printer: Printer) -> Result<FineTuned, CliError> {
    let training = FineTuned::read(folder).map_err(|error| {
        CliError::new(Exit::Results, format!("--fine-tuned {}: {error}", folder.display()))
            .help("name the --out folder of `earnest train lora --tasks ...`")
    })?;
    if !training.cells.iter().any(|cell| cell.style == AnswerStyle::Question && cell.questions > 0) {
        printer.warning(&format!(
            "--fine-tuned {}: the training was validated on worked-out rules alone, so no row of Table 18, which is of plain answers, has numbers of it",
            folder.display()
        ));
    }
    Ok(training)
}

/// Reads a folder of `earnest train experiment`, or its summary file.
fn read(path: &Path) -> Result<ExperimentResults, CliError> {
    if path.is_dir() {
        let file = path.join(EXPERIMENT_FILE);
        if !file.exists() {
            let message = format!("{} is not an experiment: {EXPERIMENT_FILE} is missing", path.display());
            return Err(CliError::new(Exit::Results, message)
                .help("name the folder of `earnest train experiment`, or its --summary file"));
        }
        let experiment = Experiment::read(&file)?;
        return Ok(ExperimentResults::gather(&experiment, path)?);
    }
    let failed = |what: String| CliError::new(Exit::Results, format!("cannot read {}: {what}", path.display()));
    let text = input::read_text(path, input::MOST_DOCUMENT).map_err(|error| failed(error.to_string()))?;
    ExperimentResults::parse(&text).map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_run_is_read() {
        let results = ExperimentResults::parse(OURS).unwrap();
        assert_eq!(ExperimentResults::parse(&results.to_text()).unwrap(), results);
        let trainings: Vec<FineTuned> = serde_json::from_str(FINE_TUNED).unwrap();
        assert_eq!(trainings.iter().map(FineTuned::variant).collect::<Vec<_>>(), ["FT", "RoPE + rev + pad", "NoPE"]);
    }
}
