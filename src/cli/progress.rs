//! Progress of a run on stderr: a bar on a terminal, otherwise a line every few seconds.
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::printer::Printer;
use super::tally::Tally;
use super::values::agreeing;
use earnest_results::{Expected, Level, Reporter, RunEvent, Sample, Stage, with_commas};

/// Interval of plain lines.
const PLAIN_PERIOD: Duration = Duration::from_secs(10);
/// Interval of redraws of the figures beside the bar.
const DRAW_PERIOD: Duration = Duration::from_millis(100);
/// Samples of a new run above which a line names the option that asks fewer.
const LONG_PLAN: usize = 20_000;
/// Time after which the speed is steady enough to estimate how long a run takes.
const MEASURED: Duration = Duration::from_secs(60);
/// Remaining seconds, after [`MEASURED`], above which a line of its own announces them.
const LONG: f64 = 300.0;
/// Seconds until the first answer above which a line of its own announces them.
const LONG_FIRST: f64 = 60.0;

/// Display of a run's events.
pub struct Progress {
    printer: Printer,
    show: Show,
    tally: Tally,
    last_shown: Instant,
    failure_shown: bool,
    /// True once the remaining time was announced, or is too short to announce.
    time_said: bool,
    /// True once the time until the first answer was announced, or an answer has arrived.
    first_said: bool,
}

enum Show {
    Bar(ProgressBar),
    Plain,
    Nothing,
}

/// Returns the words for a stage.
pub(super) fn stage_text(stage: &Stage) -> String {
    match stage {
        Stage::OpeningCheckpoint => "opening the checkpoint".to_owned(),
        Stage::HashingFiles { done, total } => {
            format!("checking the model's files: {:.0} %", 100.0 * *done as f64 / (*total).max(1) as f64)
        }
        Stage::LoadingWeights => "loading the weights".to_owned(),
        Stage::ProbingEndpoint(address) => format!("connecting to the endpoint at {address}"),
        Stage::AskingEndpoint(address) => format!("asking the endpoint at {address}"),
    }
}

impl Progress {
    /// Creates a bar if stderr is a terminal, plain lines otherwise, nothing of a quiet printer.
    pub fn new(printer: Printer) -> Self {
        let show = if printer.is_quiet() {
            Show::Nothing
        } else if std::io::stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
            bar.set_style(spinner());
            bar.enable_steady_tick(DRAW_PERIOD);
            Show::Bar(bar)
        } else {
            Show::Plain
        };
        let now = Instant::now();
        Progress {
            printer,
            show,
            tally: Tally::new(0, 0, now),
            last_shown: now,
            failure_shown: false,
            time_said: false,
            first_said: false,
        }
    }

    /// Runs a function that prints with the bar suspended.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.show {
            Show::Bar(bar) => bar.suspend(print),
            Show::Plain | Show::Nothing => print(),
        }
    }

    /// Prints a line above the bar.
    fn line(&self, text: &str) {
        match &self.show {
            Show::Bar(bar) => bar.suspend(|| self.printer.message(text)),
            Show::Plain => self.printer.message(text),
            Show::Nothing => {}
        }
    }

    fn warning(&self, text: &str) {
        self.aside(|| self.printer.warning(text));
    }

    fn preparing(&mut self, stage: &Stage) {
        let text = stage_text(stage);
        match &self.show {
            Show::Bar(bar) => bar.set_message(text),
            Show::Plain => match stage {
                Stage::HashingFiles { done: 0, .. } | Stage::LoadingWeights | Stage::AskingEndpoint(_) => {
                    self.printer.message(&text);
                }
                // One line when hashing starts is enough, and a model is open before the line is read.
                Stage::HashingFiles { .. } | Stage::OpeningCheckpoint | Stage::ProbingEndpoint(_) => {}
            },
            Show::Nothing => {}
        }
    }

    /// Says how long a long run takes by the speed of an earlier one: before the first tokens nothing else does.
    fn expected(&self, Expected { seconds, at_most, source }: &Expected) {
        if *seconds >= LONG_FIRST {
            let most = if *at_most { "at most" } else { "about" };
            self.line(&format!("expected to take {most} {} ({source})", long_time(*seconds)));
        }
    }

    fn started(&mut self, run: &str, adaptive: bool, tally: Tally) {
        let Tally { planned, recorded, .. } = tally;
        self.tally = tally;
        self.tally.adaptive = adaptive;
        self.first_said = false;
        let most = if adaptive { "at most " } else { "" };
        let samples = with_commas(planned as u64);
        let every = if matches!(self.show, Show::Plain) { ", progress every 10 s" } else { "" };
        self.line(&format!("{run}: {most}{samples} {}{every}", agreeing(planned, "sample", "samples")));
        if recorded > 0 {
            self.line(&format!(
                "continuing: {} of {most}{samples} {} done",
                with_commas(recorded as u64),
                agreeing(planned, "sample is", "samples are")
            ));
        } else if planned >= LONG_PLAN && !adaptive {
            self.line(&format!(
                "{samples} samples can take long; the first minute will say how long. --limit 1000 asks a small picture of them instead"
            ));
        }
        if let Show::Bar(bar) = &self.show {
            bar.set_style(bar_style(columns()));
            bar.set_length(planned as u64);
            bar.set_position(recorded as u64);
            bar.set_message("waiting for the first tokens");
        } else {
            self.last_shown = Instant::now();
        }
    }

    fn sample(&mut self, sample: &Sample) {
        self.tally.add(sample);
        if let (Some(failure), false) = (&sample.failure, self.failure_shown) {
            self.failure_shown = true;
            self.warning(&format!("sample {} of {} failed: {}", sample.sample, sample.item, failure.message));
        }
        if let Show::Bar(bar) = &self.show {
            bar.set_position(self.tally.done() as u64);
        }
    }

    /// Says how long a long run takes, once its speed is known.
    fn say_time(&mut self) {
        if self.time_said || self.tally.started.elapsed() < MEASURED {
            return;
        }
        let Some(seconds) = self.tally.seconds_left() else { return };
        self.time_said = true;
        if seconds >= LONG {
            let left = with_commas(self.tally.left() as u64);
            let most = if self.tally.adaptive { "at most " } else { "about " };
            self.line(&format!(
                "at the speed of the first minute, the other {left} samples take {most}{}. Ctrl-C stops, and the same command continues",
                long_time(seconds)
            ));
        }
    }

    /// Says how long the first answer may take, once the speed of generation is known: until then a run looks as if it stood still.
    fn say_first(&mut self) {
        self.first_said |= self.tally.finished > 0;
        if self.first_said {
            return;
        }
        let Some((seconds, each)) = self.tally.first_answer() else { return };
        self.first_said = true;
        if seconds >= LONG_FIRST {
            let (budget, running) = (with_commas(self.tally.budgets.least as u64), self.tally.statistics.running);
            let together = if running > 1 { format!(", {running} at a time") } else { String::new() };
            self.line(&format!(
                "an answer may have {budget} tokens, which take {} at {each:.1} tokens/s each{together}. --max-tokens lowers the budget; \
                 Ctrl-C stops, and the same command continues",
                long_time(seconds)
            ));
        }
    }

    fn refresh(&mut self) {
        self.say_time();
        self.say_first();
        let period = if matches!(self.show, Show::Bar(_)) { DRAW_PERIOD } else { PLAIN_PERIOD };
        if self.last_shown.elapsed() < period {
            return;
        }
        self.last_shown = Instant::now();
        match &self.show {
            Show::Bar(bar) => {
                bar.set_message(self.tally.figures(columns().saturating_sub(before_figures(self.tally.planned))))
            }
            Show::Plain => {
                let Tally { planned, .. } = self.tally;
                self.printer.message(&format!("{}/{planned}  {}", self.tally.done(), self.tally.figures(usize::MAX)));
            }
            Show::Nothing => {}
        }
    }
}

impl Reporter for Progress {
    fn event(&mut self, event: &RunEvent<'_>) {
        match event {
            RunEvent::Preparing(stage) => self.preparing(stage),
            RunEvent::Expected(expected) => self.expected(expected),
            RunEvent::Started { run, planned, adaptive, progress, budgets, statistics, .. } => {
                self.started(run, *adaptive, Tally::of(*planned, progress, *budgets, *statistics));
            }
            RunEvent::Progress { statistics, .. } => {
                self.tally.count(*statistics);
                self.refresh();
            }
            RunEvent::Sample(sample) => {
                self.sample(sample);
                self.refresh();
            }
            RunEvent::Notice(notice) if notice.level() == Level::Engine => self.warning(&notice.to_string()),
            RunEvent::Notice(_) => {}
            RunEvent::Stopping => self.line("stopping; writing finished samples"),
            RunEvent::Ended(_) => {
                if let Show::Bar(bar) = &self.show {
                    bar.finish_and_clear();
                }
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // After an error, the bar must not stand before its message.
        if let Show::Bar(bar) = &self.show {
            bar.finish_and_clear();
        }
    }
}

/// Width of the terminal in columns.
pub(super) fn columns() -> usize {
    terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |(width, _)| usize::from(width.0))
}

/// Width of the bar in columns.
fn bar_columns(columns: usize) -> usize {
    if columns < 100 { 6 } else { 16 }
}

/// Maximum width of a line of the bar before its figures.
fn before_figures(planned: usize) -> usize {
    "S 99m [] /  ".len() + bar_columns(columns()) + 2 * planned.to_string().len()
}

/// A duration of minutes or more in its two largest units.
fn long_time(seconds: f64) -> String {
    let minutes = (seconds / 60.0).clamp(1.0, 1e9).round() as u64;
    match (minutes / 1440, minutes / 60 % 24, minutes % 60) {
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, 0) => format!("{hours} h"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, 0, _) => format!("{days} day{}", if days == 1 { "" } else { "s" }),
        (1, hours, _) => format!("1 day {hours} h"),
        (days, hours, _) => format!("{days} days {hours} h"),
    }
}

fn spinner() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {msg}").expect("the template is constant and valid")
}

pub(super) fn bar_style(columns: usize) -> ProgressStyle {
    ProgressStyle::with_template(&format!(
        "{{spinner}} {{elapsed}} [{{bar:{}}}] {{pos}}/{{len}}  {{wide_msg}}",
        bar_columns(columns)
    ))
    .expect("the template is valid for every number")
    .progress_chars("=> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_times_have_two_units() {
        let texts = [20.0, 330.0, 3_600.0, 33_120.0, 90_000.0, 1e6].map(long_time);
        assert_eq!(texts, ["1 min", "6 min", "1 h", "9 h 12 min", "1 day 1 h", "11 days 13 h"]);
    }
}
