//! Progress of a study run by run: the display of `earnest run` for each.
use super::reasons::Reasons;
use crate::cli::events::Reporters;
use crate::cli::printer::Printer;
use earnest_eval::EvalError;
use earnest_eval::evaluate::Evaluated;
use earnest_eval::study::{PlannedRun, StudyPlan, Watcher};
use earnest_results::{Level, Reporter, RunEvent};

/// Name of a run for people.
type Label = Box<dyn Fn(&StudyPlan, PlannedRun) -> String>;

/// A line for every run, and its progress as `earnest run` shows it.
pub struct Lines {
    printer: Printer,
    label: Label,
    /// Reasons of failed runs that were printed, if every run gets a line with its accuracy or its failure.
    results: Option<Reasons>,
    /// Display of the run in progress.
    current: Option<Reporters>,
}

impl Lines {
    pub fn new(printer: Printer, label: Label) -> Self {
        Lines { printer, label, results: None, current: None }
    }

    /// These lines and one with the accuracy of every finished run, or the reason why it failed, where that is not said yet.
    pub fn with_results(self, said: Reasons) -> Self {
        Lines { results: Some(said), ..self }
    }

    fn say(&self, text: &str) {
        self.printer.message(text);
    }
}

impl Watcher for Lines {
    fn begins(&mut self, plan: &StudyPlan, run: PlannedRun) {
        self.say(&(self.label)(plan, run));
        self.current = Some(Reporters::on_terminal(self.printer));
    }

    fn ends(&mut self, plan: &StudyPlan, run: PlannedRun, end: Result<&Evaluated, &EvalError>) {
        // The display ends before anything else is printed.
        drop(self.current.take());
        let Some(said) = &mut self.results else { return };
        let label = (self.label)(plan, run);
        match end {
            Ok(evaluated) => {
                if let Some(accuracy) = accuracy(evaluated) {
                    self.say(&format!("{label}: accuracy {accuracy}"));
                }
            }
            // The command ends with this error.
            Err(EvalError::Interrupted { .. }) => {}
            Err(error) => self.printer.warning(&said.failed(&label, error.to_string())),
        }
    }
}

impl Reporter for Lines {
    fn event(&mut self, event: &RunEvent<'_>) {
        match (&mut self.current, event) {
            (Some(current), event) => current.event(event),
            (None, RunEvent::Notice(notice)) => match notice.level() {
                Level::Message => self.say(&notice.to_string()),
                Level::Warning => self.printer.warning(&notice.to_string()),
                Level::Engine => {}
            },
            (None, _) => {}
        }
    }
}

/// Accuracy of a finished run with its interval, e.g. `61.5 % [48.0, 73.4]`; none if nothing was scored or can be read.
fn accuracy(evaluated: &Evaluated) -> Option<String> {
    let sums = evaluated.store.aggregate(&evaluated.run).ok().filter(|sums| sums.scored > 0)?;
    let accuracy = sums.accuracy()?;
    let [value, low, high] = [accuracy.value, accuracy.low, accuracy.high].map(|share| 100.0 * share);
    Some(format!("{value:.1} % [{low:.1}, {high:.1}]"))
}
