//! Cost of `earnest reproduce gsm-symbolic --run` before it starts: hours of the models that are here, and of the others what is
//! missing.
use std::path::Path;

use super::gsm_symbolic_args::GsmSymbolicArgs;
use super::gsm_symbolic_fetch::{Questions, questions};
use crate::cli::data::LICENCE;
use crate::cli::error::CliError;
use crate::cli::events::Reporters;
use crate::cli::models::download_bytes;
use crate::cli::printer::Printer;
use crate::cli::study::{cost_table, measure_missing};
use earnest_eval::study::{Estimate, Sessions, StudyPlan};
use earnest_eval::{EvalError, model};
use earnest_models::hub::{Entry, Gate, HubError};
use earnest_models::memory::human_bytes;
use earnest_report::{Align, Table, wrap};

/// A model that is not on this machine.
pub(super) struct MissingModel {
    pub(super) name: String,
    pub(super) error: EvalError,
    /// Its entry in the list of models.
    pub(super) entry: Option<Entry>,
}

impl MissingModel {
    /// True for a model of the list that only has to be fetched, so that a row of a table says everything.
    fn is_to_fetch(&self) -> bool {
        let absent = matches!(self.error, EvalError::Hub(HubError::NotCached { .. } | HubError::Unresolved { .. }));
        self.entry.is_some() && absent
    }
}

/// Models that are not on this machine, for the plan's screen.
pub(super) struct Missing<'a> {
    pub(super) models: &'a [MissingModel],
    /// The command without --dry-run fetches them.
    pub(super) fetched: bool,
}

impl Missing<'_> {
    /// Says why models that no row of the table explains are left out.
    pub(super) fn warn(&self, printer: Printer) {
        for model in self.models.iter().filter(|model| !model.is_to_fetch()) {
            printer.warning(&format!("{} is left out: {}", model.name, model.error));
            if let Some(help) = model.error.help() {
                printer.remark(&format!("help: {help}"));
            }
        }
    }

    /// A table of what getting the models takes; with the hours of each if `per_parameter` seconds are known.
    fn table(&self, per_parameter: Option<f64>, width: usize) -> String {
        let models: Vec<&MissingModel> = self.models.iter().filter(|model| model.is_to_fetch()).collect();
        let Some(first) = models.first() else { return String::new() };
        let count = match models.as_slice() {
            [_] => "1 model".to_owned(),
            several => format!("{} models", several.len()),
        };
        let end = if self.fetched { "would be fetched" } else { "left out, not on this machine" };
        let hours = per_parameter.map(|_| ("hours", Align::Right));
        let columns =
            [Some(("model", Align::Left)), Some(("download", Align::Right)), hours, Some(("licence", Align::Left))];
        let mut table = Table::new(columns.into_iter().flatten().map(|(name, align)| (name.to_owned(), align)));
        let mut gated = None;
        for model in &models {
            let Some(entry) = &model.entry else { continue };
            let licence = entry.licence.as_deref().unwrap_or("unknown");
            let licence = match entry.gate {
                Gate::Licence => {
                    gated.get_or_insert(&entry.repo);
                    format!("{licence}, to accept")
                }
                Gate::None | Gate::Unknown => licence.to_owned(),
            };
            let known = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            let mut cells = vec![model.name.clone(), known(download_bytes(entry).map(human_bytes))];
            if let Some(seconds) = per_parameter {
                let hours = |count: u64| format!("{:.1}", seconds * count as f64 / 3600.0);
                cells.push(known(entry.parameters.map(hours)));
            }
            cells.push(licence);
            table.row(cells);
        }
        table.shorten_names(width);
        let mut text = format!("{count} {end}:\n{}", table.render());
        if let Some(repo) = gated {
            let accept = format!(
                "A licence to accept is on the model's page, e.g. https://huggingface.co/{repo}; fetching then needs HF_TOKEN."
            );
            text.push_str(&wrap(&accept, width, "* "));
        }
        if !self.fetched {
            let command = if models.len() == 1 { first.name.as_str() } else { "NAME" };
            let fetch = format!(
                "--fetch in the same command fetches what is missing, `earnest models fetch {command}` one of them."
            );
            text.push_str(&wrap(&fetch, width, "* "));
        }
        text
    }
}

/// A line about all missing models: what to fetch, and the hours they would take if `per_parameter` seconds are known.
fn summary(missing: &[MissingModel], per_parameter: Option<(f64, String)>) -> String {
    let entries: Vec<&Entry> = missing.iter().filter_map(|model| model.entry.as_ref()).collect();
    let bytes: u64 = entries.iter().filter_map(|entry| download_bytes(entry)).sum();
    let gated = entries.iter().filter(|entry| entry.gate == Gate::Licence).count();
    let mut text = match missing.len() {
        1 => "1 model is not here".to_owned(),
        count => format!("{count} models are not here"),
    };
    if bytes > 0 {
        text.push_str(&format!(": about {} to fetch", human_bytes(bytes)));
    }
    if gated > 0 {
        text.push_str(&format!(", {gated} with a licence to accept"));
    }
    let parameters: u64 = entries.iter().filter_map(|entry| entry.parameters).sum();
    if let Some((seconds, source)) = per_parameter.filter(|_| parameters > 0) {
        let hours = seconds * parameters as f64 / 3600.0;
        text.push_str(&format!(
            "; about {hours:.1} hours more for all prompts on this machine, by the rate of {source} and the number of parameters"
        ));
    }
    text + "."
}

/// Prints the cost: a table of the runs of the models that are here, then the missing ones.
///
/// # Errors
/// An interruption while rates are measured.
pub(super) fn show(
    args: &GsmSymbolicArgs,
    plan: &StudyPlan,
    sessions: &mut Sessions,
    missing: &Missing<'_>,
    printer: Printer,
) -> Result<(), CliError> {
    if printer.is_quiet() && !args.dry_run {
        let names: Vec<&str> = missing.models.iter().map(|model| model.name.as_str()).collect();
        if !names.is_empty() {
            printer.warning(&format!("left out, not on this machine: {}", names.join(", ")));
        }
        return Ok(());
    }
    let mut reporters = Reporters::on_terminal(printer);
    let estimate = Estimate::new(plan, sessions, &mut reporters);
    drop(reporters);
    let mut text = String::new();
    let mut rate = None;
    match estimate {
        Ok(mut estimate) => {
            if args.measure {
                measure_missing(plan, &mut estimate, printer)?;
            }
            rate = seconds_per_parameter(plan, &estimate);
            text.push_str(&cost_table(&estimate, printer.width()));
            if args.select != "all" && args.chosen_prompts().len() > 1 {
                let note = "Prompts other than gsm are asked only of models whose accuracy drops significantly on it.";
                text.push_str(&wrap(note, printer.width(), "* "));
            }
        }
        // What cannot be estimated may still run.
        Err(error) => printer.warning(&format!("the cost is not known: {error}")),
    }
    text.push_str(&questions_line(args, printer.width()));
    if !missing.models.is_empty() {
        text.push_str(&wrap(&summary(missing.models, rate.clone()), printer.width(), "* "));
        say_left_out(missing, rate.map(|(seconds, _)| seconds), printer);
    }
    match args.dry_run {
        true => printer.result(&text)?,
        false => printer.remark(&text),
    }
    Ok(())
}

/// Says on stderr which models are left out, and what getting them takes.
pub(super) fn say_left_out(missing: &Missing<'_>, per_parameter: Option<f64>, printer: Printer) {
    missing.warn(printer);
    let table = missing.table(per_parameter, printer.width());
    if !table.is_empty() {
        printer.remark(table.trim_end());
    }
}

/// Prints what is missing where nothing can be asked yet: no model is here, or no questions are.
pub(super) fn show_missing(
    args: &GsmSymbolicArgs,
    here: usize,
    missing: &Missing<'_>,
    printer: Printer,
) -> Result<(), CliError> {
    let width = printer.width();
    let mut text = questions_line(args, width);
    if !missing.models.is_empty() {
        text.push_str(&wrap(&summary(missing.models, None), width, "* "));
        say_left_out(missing, None, printer);
    }
    let hours = match here {
        0 => "The hours are known when a model is here: by its earlier runs, or by --measure.".to_owned(),
        1 => "1 model is here; its hours are known when the questions are.".to_owned(),
        many => format!("{many} models are here; their hours are known when the questions are."),
    };
    text.push_str(&wrap(&hours, width, "* "));
    let next = match args.fetch {
        true => "The same command without --dry-run fetches what is missing, then asks.",
        false => {
            "--fetch fetches what is missing before anything is asked; without it the study goes on with what is here."
        }
    };
    text.push_str(&wrap(next, width, "* "));
    printer.result(&text)
}

/// A line about the questions: where they come from, or what fetching them takes.
fn questions_line(args: &GsmSymbolicArgs, width: usize) -> String {
    let text = match (questions(args), args.suite.as_str()) {
        (Questions::Missing, _) => format!(
            "The questions, apple/GSM-Symbolic ({LICENCE}), are not here: `earnest data fetch gsm-symbolic`, or --fetch."
        ),
        (Questions::Here, "gsm-symbolic") if args.fresh.is_some() => {
            "The questions are drawn from templates (--fresh), not the published ones.".to_owned()
        }
        (Questions::Here, "gsm-symbolic") => "The questions are here.".to_owned(),
        (Questions::Here, suite) => format!("The questions are those of {suite}, which needs no download."),
    };
    wrap(&text, width, "* ")
}

/// Seconds of a model's runs for each of its parameters, and its name: of the largest model whose time is known.
fn seconds_per_parameter(plan: &StudyPlan, estimate: &Estimate) -> Option<(f64, String)> {
    let mut found: Option<(f64, f64, String)> = None;
    for index in 0..plan.definition.models.len() {
        let runs = || estimate.runs.iter().filter(|run| run.planned.model == index);
        let Some(first) = runs().next().filter(|_| runs().all(|run| run.left > 0)) else { continue };
        let Some(seconds) = runs().map(|run| run.seconds).sum::<Option<f64>>() else { continue };
        let Some(checkpoint) = plan.native(first.planned).and_then(|located| model::open(located).ok()) else {
            continue;
        };
        let parameters = checkpoint.config.parameter_count() as f64;
        if found.as_ref().is_none_or(|(known, ..)| parameters > *known) {
            found = Some((parameters, seconds, first.model.clone()));
        }
    }
    found.map(|(parameters, seconds, name)| (seconds / parameters, name))
}

/// The entry of a model in the list.
pub(super) fn entry_of(args: &GsmSymbolicArgs, model: &Path) -> Option<Entry> {
    let name = model.to_str()?;
    let list = args.hub().settings().registry().ok()?;
    list.entries.into_iter().find(|entry| entry.name == name || entry.repo.to_string() == name)
}
