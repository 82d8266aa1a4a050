//! Progress of a training on stderr: a line every few seconds, and one for each validation.
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::cli::printer::Printer;
use earnest_report::Table;
use earnest_stats::{Z95, wilson};
use earnest_train::{TrainEvent, Validation};

/// Time between lines.
const PERIOD: Duration = Duration::from_secs(10);

/// Display of training events.
pub struct Progress {
    printer: Printer,
    steps: u64,
    since: Since,
    shown: Instant,
    last: Option<Validation>,
}

/// Totals since the last line.
#[derive(Default)]
struct Since {
    loss: f64,
    steps: u64,
    tokens: usize,
    seconds: f64,
}

impl Progress {
    pub fn new(printer: Printer, steps: u64) -> Self {
        Progress { printer, steps, since: Since::default(), shown: Instant::now(), last: None }
    }

    /// The last validation.
    pub fn last(&self) -> Option<&Validation> {
        self.last.as_ref()
    }

    pub fn event(&mut self, event: &TrainEvent) {
        match event {
            TrainEvent::Step { step, loss, tokens, seconds, .. } => {
                self.since.loss += loss;
                self.since.steps += 1;
                self.since.tokens += tokens;
                self.since.seconds += seconds;
                if self.shown.elapsed() >= PERIOD {
                    self.printer.message(&self.since.line(*step, self.steps));
                    (self.since, self.shown) = (Since::default(), Instant::now());
                }
            }
            TrainEvent::Validated(validation) => {
                self.printer.message(&by_length(validation));
                self.last = Some(validation.clone());
            }
            TrainEvent::Restarted { step, restart } => {
                self.printer.message(&format!("restart {restart} after step {step}: the criterion was not reached"));
            }
            TrainEvent::Saved { .. } => {}
        }
    }
}

impl Since {
    fn line(&self, step: u64, steps: u64) -> String {
        let per_step = self.seconds / self.steps as f64;
        let minutes = per_step * steps.saturating_sub(step) as f64 / 60.0;
        format!(
            "step {step} of {steps}: loss {:.4}, {:.0} tokens/s, {:.0} ms per step, about {minutes:.0} min left",
            self.loss / self.steps as f64,
            self.tokens as f64 / self.seconds,
            1000.0 * per_step
        )
    }
}

/// Exact match by length over all tasks, in one line.
fn by_length(validation: &Validation) -> String {
    let mut lengths: BTreeMap<(usize, bool), (usize, usize)> = BTreeMap::new();
    for cell in &validation.cells {
        let (exact, questions) = lengths.entry((cell.length, cell.learnt)).or_default();
        *exact += cell.exact;
        *questions += cell.questions;
    }
    let shown = lengths.iter().map(|((length, learnt), (exact, questions))| {
        format!("{}: {:.0} %", label(*length, *learnt), 100.0 * *exact as f64 / (*questions).max(1) as f64)
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    if validation.cells.is_empty() {
        return format!("step {}: no validation, because nothing is held out", validation.step);
    }
    format!("validation at step {}: loss {:.4}; exact by length {shown}", validation.step, validation.loss)
}

/// Label of a length; rows of a file have none.
fn label(length: usize, learnt: bool) -> String {
    let length = if length == 0 { "all".to_owned() } else { length.to_string() };
    format!("{length}{}", if learnt { "" } else { "*" })
}

/// Exact match over all training lengths with its Wilson interval.
pub fn overall(validation: &Validation) -> Option<String> {
    let learnt = || validation.cells.iter().filter(|cell| cell.learnt);
    let (exact, questions): (usize, usize) =
        (learnt().map(|cell| cell.exact).sum(), learnt().map(|cell| cell.questions).sum());
    let share = wilson(exact as f64, questions as f64, Z95)?;
    Some(format!(
        "{exact} of {questions} exact, {:.1} % [{:.1}, {:.1}]",
        100.0 * share.value,
        100.0 * share.low,
        100.0 * share.high
    ))
}

/// Table of exact match in per cent by task and length; lengths outside the training have a star.
pub fn table(validation: &Validation) -> String {
    let lengths: std::collections::BTreeSet<(usize, bool)> =
        validation.cells.iter().map(|cell| (cell.length, cell.learnt)).collect();
    let mut tasks: Vec<String> = Vec::new();
    for cell in &validation.cells {
        if !tasks.contains(&cell.name()) {
            tasks.push(cell.name());
        }
    }
    // Columns of one width, so that the tables of several validations line up.
    let wide = tasks.iter().map(|task| task.len()).max().unwrap_or(0).max(22);
    let mut table = Table::without_headings(1 + lengths.len());
    let mut row = |name: &str, cells: &mut dyn Iterator<Item = String>| {
        let cells = cells.map(|cell| format!("{cell:>4}"));
        table.row(std::iter::once(format!("{name:wide$}")).chain(cells).collect());
    };
    row("exact match in %", &mut lengths.iter().map(|(length, learnt)| label(*length, *learnt)));
    for task in tasks {
        row(
            &task,
            &mut lengths.iter().map(|(length, _)| {
                let cell = validation.cells.iter().find(|cell| cell.name() == task && cell.length == *length);
                let share = cell.map(|cell| format!("{:.0}", 100.0 * cell.exact as f64 / cell.questions.max(1) as f64));
                share.unwrap_or_else(|| "-".into())
            }),
        );
    }
    let mut text = table.render();
    if lengths.iter().any(|(_, learnt)| !learnt) {
        text.push_str("* not in training\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_train::{AnswerStyle, CellScore};

    #[test]
    fn validations_are_a_line_and_a_table() {
        let cell = |task: &str, length, learnt, exact| CellScore {
            task: task.into(),
            style: AnswerStyle::Question,
            length,
            learnt,
            questions: 20,
            exact,
        };
        let cells =
            vec![cell("add_Integer", 1, true, 20), cell("max_Integer", 1, true, 10), cell("add_Integer", 5, false, 1)];
        let validation = Validation { step: 7, loss: 0.25, cells };
        assert_eq!(by_length(&validation), "validation at step 7: loss 0.2500; exact by length 1: 75 %, 5*: 5 %");
        let lines: Vec<String> =
            table(&validation).lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines, ["exact match in % 1 5*", "add_Integer 100 5", "max_Integer 50 -", "* not in training"]);
        assert_eq!(overall(&validation).unwrap(), "30 of 40 exact, 75.0 % [59.8, 85.8]");
        let rows = Validation { step: 1, loss: 0.5, cells: vec![cell("pairs", 0, true, 5)] };
        assert_eq!(by_length(&rows), "validation at step 1: loss 0.5000; exact by length all: 25 %");
        assert_eq!(overall(&Validation { cells: vec![], ..rows }), None);
    }
}
