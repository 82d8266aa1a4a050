//! Live table of a study on a terminal: a row for every model, a column for every task and prompt.
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::reasons::Reasons;
use crate::cli::interrupt::stop_on_signal;
use crate::cli::printer::Printer;
use crate::cli::progress::{columns, stage_text};
use crate::cli::tally::Tally;
use earnest_eval::EvalError;
use earnest_eval::evaluate::Evaluated;
use earnest_eval::study::{PlannedRun, StudyPlan, Watcher};
use earnest_report::Table;
use earnest_results::{Level, Reporter, RunEvent};

/// Interval of redraws.
const DRAW_PERIOD: Duration = Duration::from_millis(200);

/// The table and below it the progress of the current run.
pub struct LiveTable {
    printer: Printer,
    bar: ProgressBar,
    grid: Grid,
    current: Option<PlannedRun>,
    tally: Option<Tally>,
    last_drawn: Instant,
    /// Reasons of failed runs that were printed.
    said: Reasons,
}

/// Cells of the table.
struct Grid {
    models: Vec<String>,
    /// Task and prompt of every column, with its name.
    columns: Vec<((usize, usize), String)>,
    cells: Vec<Vec<Cell>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Cell {
    Waiting,
    /// Share done, and the accuracy so far.
    Running(f64, Option<f64>),
    Finished(Option<f64>),
    Failed,
}

impl Cell {
    fn text(self) -> String {
        let percent = |share: f64| format!("{:.1}", 100.0 * share);
        match self {
            Cell::Waiting => ".".to_owned(),
            Cell::Running(done, None) => format!("{:.0} %", 100.0 * done),
            Cell::Running(done, Some(accuracy)) => format!("{} ({:.0} %)", percent(accuracy), 100.0 * done),
            Cell::Finished(Some(accuracy)) => percent(accuracy),
            Cell::Finished(None) => "-".to_owned(),
            Cell::Failed => "failed".to_owned(),
        }
    }
}

impl Grid {
    fn new(plan: &StudyPlan) -> Self {
        let models: Vec<String> = plan.definition.models.iter().map(|model| model.name.clone()).collect();
        let mut columns: Vec<((usize, usize), String)> = Vec::new();
        for run in &plan.runs {
            if !columns.iter().any(|(place, _)| *place == (run.task, run.prompt)) {
                columns.push(((run.task, run.prompt), plan.column(*run)));
            }
        }
        let cells = vec![vec![Cell::Waiting; columns.len()]; models.len()];
        Grid { models, columns, cells }
    }

    fn set(&mut self, run: PlannedRun, cell: Cell) {
        if let Some(column) = self.columns.iter().position(|(place, _)| *place == (run.task, run.prompt)) {
            self.cells[run.model][column] = cell;
        }
    }

    /// The table in at most so many lines of at most so many columns: the models around the current one.
    fn render(&self, current: usize, width: usize, height: usize) -> String {
        let headings = std::iter::once("").chain(self.columns.iter().map(|(_, name)| name.as_str()));
        let mut table = Table::with_left(1, headings);
        let rows = height.saturating_sub(4).max(1);
        let first = (current + 1).saturating_sub(rows);
        for (model, cells) in self.models.iter().zip(&self.cells).skip(first).take(rows) {
            table.row(std::iter::once(model.clone()).chain(cells.iter().map(|cell| cell.text())).collect());
        }
        let text = table.render();
        let cut = text.lines().map(|line| line.chars().take(width).collect::<String>());
        cut.collect::<Vec<_>>().join("\n")
    }
}

impl LiveTable {
    pub fn new(printer: Printer, plan: &StudyPlan, said: Reasons) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        let style = ProgressStyle::with_template("{msg}\n{spinner} {prefix}");
        bar.set_style(style.expect("the template is constant and valid"));
        bar.enable_steady_tick(DRAW_PERIOD);
        let (grid, last_drawn) = (Grid::new(plan), Instant::now());
        let live = LiveTable { printer, bar, grid, current: None, tally: None, last_drawn, said };
        live.draw("");
        live
    }

    fn draw(&self, status: &str) {
        let height = terminal_size::terminal_size_of(std::io::stderr()).map_or(24, |(_, height)| usize::from(height.0));
        let width = columns().saturating_sub(1);
        self.bar.set_message(self.grid.render(self.current.map_or(0, |run| run.model), width, height));
        self.bar.set_prefix(status.chars().take(width.saturating_sub(2)).collect::<String>());
    }

    fn progress(&mut self) {
        let (Some(run), Some(tally)) = (self.current, &self.tally) else { return };
        if self.last_drawn.elapsed() < DRAW_PERIOD {
            return;
        }
        self.last_drawn = Instant::now();
        let accuracy = (tally.scored > 0).then(|| tally.correct as f64 / tally.scored as f64);
        self.grid.set(run, Cell::Running(tally.done() as f64 / tally.planned.max(1) as f64, accuracy));
        let status = format!("{}/{}  ", tally.done(), tally.planned);
        self.draw(&format!("{status}{}", tally.figures(columns().saturating_sub(status.len() + 4))));
    }
}

impl Watcher for LiveTable {
    fn begins(&mut self, _: &StudyPlan, run: PlannedRun) {
        self.current = Some(run);
        self.tally = None;
        self.grid.set(run, Cell::Running(0.0, None));
        self.draw("");
    }

    fn ends(&mut self, plan: &StudyPlan, run: PlannedRun, end: Result<&Evaluated, &EvalError>) {
        let cell = match end {
            Ok(Evaluated { store, run }) => {
                let sums = store.aggregate(run).ok().filter(|sums| sums.scored > 0);
                Cell::Finished(sums.map(|sums| sums.correct as f64 / sums.scored as f64))
            }
            // The command ends with this error.
            Err(EvalError::Interrupted { .. }) => Cell::Waiting,
            Err(error) => {
                let failed = self.said.failed(&plan.label(run), error.to_string());
                self.bar.suspend(|| self.printer.warning(&failed));
                Cell::Failed
            }
        };
        self.grid.set(run, cell);
        (self.current, self.tally) = (None, None);
        self.draw("");
    }
}

impl Reporter for LiveTable {
    fn event(&mut self, event: &RunEvent<'_>) {
        match event {
            RunEvent::Preparing(stage) => self.draw(&stage_text(stage)),
            RunEvent::Started { planned, progress, budgets, statistics, .. } => {
                // Until here a signal may end the process at once: nothing would be lost.
                if let Err(error) = stop_on_signal() {
                    self.bar.suspend(|| self.printer.warning(&error.message));
                }
                self.tally = Some(Tally::of(*planned, progress, *budgets, *statistics));
            }
            RunEvent::Progress { statistics, .. } => {
                if let Some(tally) = &mut self.tally {
                    tally.count(*statistics);
                }
                self.progress();
            }
            RunEvent::Sample(sample) => {
                if let Some(tally) = &mut self.tally {
                    tally.add(sample);
                }
                self.progress();
            }
            // Messages would push the table away.
            RunEvent::Notice(notice) if notice.level() == Level::Message => {}
            RunEvent::Notice(notice) => self.bar.suspend(|| self.printer.warning(&notice.to_string())),
            RunEvent::Stopping => self.bar.suspend(|| self.printer.message("stopping; writing finished samples")),
            RunEvent::Expected(_) | RunEvent::Ended(_) => {}
        }
    }
}

impl Drop for LiveTable {
    fn drop(&mut self) {
        // The final tables take its place.
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(models: usize) -> Grid {
        Grid {
            models: (0..models).map(|number| format!("model{number}")).collect(),
            columns: vec![((0, 0), "sums".to_owned()), ((1, 0), "copies".to_owned())],
            cells: vec![vec![Cell::Waiting; 2]; models],
        }
    }

    #[test]
    fn cells_show_what_is_known() {
        let mut grid = grid(2);
        grid.set(PlannedRun { model: 0, task: 0, prompt: 0 }, Cell::Finished(Some(0.615)));
        grid.set(PlannedRun { model: 0, task: 1, prompt: 0 }, Cell::Running(0.42, Some(0.5)));
        grid.set(PlannedRun { model: 1, task: 0, prompt: 0 }, Cell::Failed);
        let text = grid.render(0, 80, 24);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "          sums       copies");
        assert_eq!(lines[2], "model0    61.5  50.0 (42 %)");
        assert_eq!(lines[3], "model1  failed            .");
    }

    #[test]
    fn a_small_terminal_shows_the_models_around_the_current_one() {
        let text = grid(30).render(12, 10, 9);
        assert!(text.lines().all(|line| line.chars().count() <= 10), "{text}");
        assert_eq!(text.lines().count(), 7);
        assert!(text.contains("model12") && text.contains("model8") && !text.contains("model13"), "{text}");
    }
}
