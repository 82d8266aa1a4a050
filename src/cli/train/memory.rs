//! `earnest train memory`.
use std::path::PathBuf;

use clap::Args;

use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::interrupt::stop_on_signal;
use crate::cli::output::{output_file, write_text};
use crate::cli::printer::Printer;
use earnest_report::{Table, wrap};
use earnest_train::experiment::SeedMean;
use earnest_train::memory::{
    Ending, KindResults, MemoryEvent, MemoryFile, MemoryFileError, MemoryResults, Source, gather, run,
};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest train memory docs/training/memory.toml --out memory --summary memory.json
  earnest train memory memory.json     (the tables of stored results)

The same command continues after Ctrl-C or a kill; trainings that were under way start again. Results depend on the file alone, \
not on --threads. docs/training.md documents the keys of the file.")]
pub struct MemoryArgs {
    /// Memory file (TOML), or stored results (JSON) to print
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Folder for the results [default: the file's name without .toml]
    #[arg(long, short, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// JSON file for all results so far
    #[arg(long, value_name = "FILE", value_parser = output_file())]
    pub summary: Option<PathBuf>,

    /// Trainings at a time, one thread each [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
}

/// Trains what is missing, or prints stored results.
pub fn execute(args: &MemoryArgs, printer: Printer) -> Result<Exit, CliError> {
    if args.file.extension().is_some_and(|extension| extension == "json") {
        let results = MemoryResults::read(&args.file)
            .map_err(|error| CliError::new(Exit::Results, format!("{}: {error}", args.file.display())))?;
        printer.result(&tables(&results, printer.width()))?;
        return Ok(Exit::Success);
    }
    let file = MemoryFile::read(&args.file).map_err(|error| match error {
        MemoryFileError::Read { .. } => CliError::usage(error.to_string()),
        error => CliError::usage(format!("{}: {error}", args.file.display())),
    })?;
    let out = args.out.clone().unwrap_or_else(|| args.file.with_extension("").file_name().unwrap_or_default().into());
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = args.threads.map_or_else(cores, usize::from);
    let stop = stop_on_signal()?;
    let complete = run(&file, &out, threads, &stop, &mut |event| {
        if let Some(line) = line(event) {
            printer.message(&line);
        }
    })?;
    let results = gather(&file, &out)?;
    if let Some(path) = &args.summary {
        write_text(path, &results.to_text())?;
    }
    if !complete {
        return Err(CliError::new(Exit::Interrupted, "interrupted; finished trainings are kept")
            .help("the same command continues"));
    }
    printer.result(&tables(&results, printer.width()))?;
    Ok(Exit::Success)
}

/// Message of an event; cycles have none.
fn line(event: &MemoryEvent) -> Option<String> {
    match event {
        MemoryEvent::Searched(kind, search) => {
            let trials = search.trials.iter().map(|trial| {
                let bits =
                    trial.recall.map_or_else(|| "diverged".to_owned(), |recall| format!("{:.3} bits", recall.bits));
                format!("{} {bits}", trial.rate)
            });
            let trials = trials.collect::<Vec<_>>().join(", ");
            Some(format!("{kind}: learning rate {} (cross-entropy after one cycle: {trials})", search.rate))
        }
        MemoryEvent::Cycle(..) => None,
        MemoryEvent::Trained(kind, model) => {
            let phases = model.phases.iter().map(|phase| {
                let recall = phase
                    .recall
                    .iter()
                    .map(|recall| format!("{} of {} {}", recall.recall.right, recall.facts, recall.source));
                format!("{} after {} cycles", recall.collect::<Vec<_>>().join(", "), phase.cycles.len())
            });
            Some(format!("{kind}, seed {}: {}", model.seed, phases.collect::<Vec<_>>().join("; then ")))
        }
    }
}

/// Tables of digits and of the multiplication table; those without models are left out.
fn tables(results: &MemoryResults, width: usize) -> String {
    let trained: usize = results.kinds.iter().map(|kind| kind.models.len()).sum();
    let is_table = |kind: &&KindResults| kind.settings.digits == 0;
    let (tables, digits): (Vec<&KindResults>, Vec<&KindResults>) = results.kinds.iter().partition(is_table);
    let mut text = format!("{}: {trained} of {} trainings\n\n", results.title, results.planned);
    if !digits.is_empty() {
        text.push_str(&digits_table(&digits));
        let note = "± is half of the 95 % interval of the mean over seeds (Student's t). Bits are per parameter: `paper` counts \
                    log2(10) for every digit recalled, `net` without those that a guess gets right, `information` is log2(10) minus \
                    the cross-entropy, summed over the digits.";
        text.push_str(&wrap(note, width, ""));
        text.push('\n');
    }
    if !tables.is_empty() {
        text.push_str(&products_table(&tables));
    }
    text
}

fn digits_table(kinds: &[&KindResults]) -> String {
    let names = [
        "experiment",
        "learnt",
        "asked",
        "digits",
        "width",
        "parameters",
        "rate",
        "seeds",
        "right, %",
        "paper",
        "net",
        "information",
    ];
    let mut table = Table::with_left(3, names);
    for kind in kinds {
        let settings = &kind.settings;
        for phase in 0..settings.learn.len() {
            let learnt = settings.learn[..=phase].join(", ");
            for source in ["pi", "e"] {
                let Some(stored) = kind.stored(phase, source) else { continue };
                table.row(vec![
                    settings.experiment.clone(),
                    learnt.clone(),
                    source.to_owned(),
                    settings.digits.to_string(),
                    settings.width.to_string(),
                    settings.parameters.to_string(),
                    kind.search.rate.to_string(),
                    stored.right.seeds.to_string(),
                    with_interval(&stored.right, 100.0, 1),
                    with_interval(&stored.gross, 1.0, 2),
                    with_interval(&stored.net, 1.0, 2),
                    with_interval(&stored.information, 1.0, 2),
                ]);
            }
        }
    }
    format!("{}\n", table.render())
}

fn products_table(kinds: &[&KindResults]) -> String {
    let names = [
        "experiment",
        "width",
        "parameters",
        "rate",
        "seeds",
        "all 81 right",
        "right, mean of 81",
        "cycles",
        "nothing gained",
    ];
    let mut table = Table::with_left(1, names);
    for kind in kinds {
        let last = kind.settings.learn.len() - 1;
        let Some(stored) = kind.stored(last, &Source::Table.to_string()) else { continue };
        let (least, most) = kind.cycles().unwrap_or_default();
        table.row(vec![
            kind.settings.experiment.clone(),
            kind.settings.width.to_string(),
            kind.settings.parameters.to_string(),
            kind.search.rate.to_string(),
            kind.models.len().to_string(),
            kind.perfect().to_string(),
            format!("{:.1}", 81.0 * stored.right.mean),
            format!("{least} to {most}"),
            kind.ended(Ending::NothingGained).to_string(),
        ]);
    }
    format!("{}\n", table.render())
}

/// A mean and half of its 95 % interval, if there are several seeds.
fn with_interval(mean: &SeedMean, factor: f64, digits: usize) -> String {
    let half = mean
        .interval()
        .map_or_else(String::new, |interval| format!(" ±{:.digits$}", factor * (interval.high - interval.estimate)));
    format!("{:.digits$}{half}", factor * mean.mean)
}
