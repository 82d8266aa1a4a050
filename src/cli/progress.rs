//! Progress of a run on stderr: a bar on a terminal, otherwise a line every few seconds.
use super::values::agreeing;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::printer::Printer;
use earnest_engine::Statistics;
use earnest_eval::report::with_commas;
use earnest_eval::run::store::RunProgress;
use earnest_eval::run::{Budgets, Expected, Reporter, RunEvent, Sample, Stage};
use earnest_stats::{Z95, wilson};

/// Interval of plain lines.
const PLAIN_PERIOD: Duration = Duration::from_secs(10);
/// Interval of redraws of the figures beside the bar.
const DRAW_PERIOD: Duration = Duration::from_millis(100);
/// Samples of a new run from which it is said how to ask fewer.
const LONG_PLAN: usize = 20_000;
/// Time after which the speed says how long a run takes.
const MEASURED: Duration = Duration::from_secs(60);
/// Seconds left after [`MEASURED`] from which they are said in a line of their own.
const LONG: f64 = 300.0;
/// Seconds of generation after which its speed says when the first answer may be there.
const FIRST_SPEED: f64 = 3.0;
/// Seconds for a first answer from which they are said.
const LONG_FIRST: f64 = 60.0;
/// Seconds without a finished sample below which the time left is not doubted.
const STRAGGLING: f64 = 5.0;

/// Display of a run's events.
pub struct Progress {
    printer: Printer,
    show: Show,
    tally: Tally,
    last_shown: Instant,
    failure_shown: bool,
    /// The time that a long run takes was said, or it is not long.
    time_said: bool,
    /// The time that the first answer may take was said, or one is there.
    first_said: bool,
}

enum Show {
    Bar(ProgressBar),
    Plain,
    Nothing,
}

/// Returns what is said of a stage.
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

/// Counts behind the figures.
#[derive(Clone)]
pub(super) struct Tally {
    pub(super) planned: usize,
    /// Earlier answers choose the questions: shares of right answers say nothing.
    adaptive: bool,
    recorded: usize,
    started: Instant,
    /// When the last sample was finished.
    last: Instant,
    finished: usize,
    pub(super) scored: usize,
    pub(super) correct: usize,
    truncated: usize,
    failed: usize,
    /// Counters since the beginning of this session.
    statistics: Statistics,
    /// The engine's counters at its beginning.
    earlier: Statistics,
    budgets: Budgets,
    /// Tokens of the answers that have ended in this session.
    answered: u64,
    /// When the first tokens were generated, and how many they were.
    generating: Option<(Instant, u64)>,
}

impl Progress {
    /// Creates a bar if stderr is a terminal, plain lines otherwise, nothing with `quiet`.
    pub fn new(printer: Printer, quiet: bool) -> Self {
        let show = if quiet {
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
        self.tally = Tally { adaptive, ..tally };
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
            Show::Bar(bar) => bar.set_message(self.tally.figures(columns().saturating_sub(self.tally.before()))),
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
            RunEvent::Message(_) | RunEvent::Warning(_) => {}
            RunEvent::Notice(text) => self.warning(text),
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

impl Tally {
    fn new(planned: usize, recorded: usize, started: Instant) -> Self {
        Tally {
            planned,
            adaptive: false,
            recorded,
            started,
            last: started,
            finished: 0,
            scored: 0,
            correct: 0,
            truncated: 0,
            failed: 0,
            statistics: Statistics::default(),
            earlier: Statistics::default(),
            budgets: Budgets::default(),
            answered: 0,
            generating: None,
        }
    }

    /// Counts of a run that begins or goes on now, with the engine's counters so far.
    pub(super) fn of(planned: usize, progress: &RunProgress, budgets: Budgets, earlier: Statistics) -> Self {
        Tally {
            scored: progress.scored(),
            correct: progress.correct(),
            failed: progress.failed(),
            budgets,
            earlier,
            ..Tally::new(planned, progress.settled(), Instant::now())
        }
    }

    /// Takes the engine's counters.
    pub(super) fn count(&mut self, counters: Statistics) {
        let Statistics { prefilled_tokens, cached_tokens, decoded_tokens, .. } = self.earlier;
        self.statistics = Statistics {
            prefilled_tokens: counters.prefilled_tokens.saturating_sub(prefilled_tokens),
            cached_tokens: counters.cached_tokens.saturating_sub(cached_tokens),
            decoded_tokens: counters.decoded_tokens.saturating_sub(decoded_tokens),
            ..counters
        };
        if self.generating.is_none() && self.statistics.decoded_tokens > 0 {
            self.generating = Some((Instant::now(), self.statistics.decoded_tokens));
        }
    }

    /// Seconds that an answer of the whole budget takes, and tokens per second of each; none until the speed is known.
    fn first_answer(&self) -> Option<(f64, f64)> {
        let (since, before) = self.generating.filter(|_| self.budgets.least > 0 && self.statistics.running > 0)?;
        let seconds = since.elapsed().as_secs_f64();
        let generated = self.statistics.decoded_tokens.saturating_sub(before);
        if seconds < FIRST_SPEED || generated == 0 {
            return None;
        }
        let each = generated as f64 / self.statistics.running as f64 / seconds;
        Some((self.budgets.least as f64 / each, each))
    }

    pub(super) fn add(&mut self, sample: &Sample) {
        self.finished += 1;
        self.last = Instant::now();
        self.truncated += usize::from(sample.truncated());
        self.answered += sample.completion.as_ref().map_or(0, |completion| completion.tokens() as u64);
        match &sample.score {
            Some(score) => {
                self.scored += 1;
                self.correct += usize::from(score.correct);
            }
            None => self.failed += 1,
        }
    }

    pub(super) fn done(&self) -> usize {
        self.recorded + self.finished
    }

    /// Samples of the plan without a row.
    fn left(&self) -> usize {
        self.planned.saturating_sub(self.done())
    }

    /// Seconds that the samples left take at the speed so far; none before the first sample. By the samples that have ended, and no
    /// more than the tokens that the others may still have: the first samples of many that began together come late.
    fn seconds_left(&self) -> Option<f64> {
        let elapsed = self.started.elapsed().as_secs_f64().max(1e-3);
        let rate = self.finished as f64 / elapsed;
        let by_samples = (rate > 0.0).then(|| self.left() as f64 / rate)?;
        let generated = self.statistics.decoded_tokens as f64;
        let under_way = generated - self.answered as f64;
        let tokens = (self.left() as f64 * self.budgets.mean - under_way).max(0.0);
        let by_tokens =
            (self.budgets.mean > 0.0 && under_way >= 0.0 && generated > 0.0).then(|| tokens * elapsed / generated);
        Some(by_tokens.map_or(by_samples, |by_tokens| by_samples.min(by_tokens)))
    }

    /// Maximum width of the line before the figures.
    fn before(&self) -> usize {
        let digits = self.planned.to_string().len();
        "S 99m [] /  ".len() + bar_columns(columns()) + 2 * digits
    }

    /// Time left, accuracy, samples and tokens per second, truncations, cache hits, by importance; figures that do not fit are
    /// left out.
    pub(super) fn figures(&self, columns: usize) -> String {
        let seconds = self.started.elapsed().as_secs_f64().max(1e-3);
        let statistics = &self.statistics;
        let computed = statistics.prefilled_tokens as f64 / seconds;
        let generated = statistics.decoded_tokens as f64 / seconds;
        let rate = self.finished as f64 / seconds;
        let left = self.left();
        let waited = self.last.elapsed().as_secs_f64();
        let mut parts = vec![match self.seconds_left() {
            // The only sign of life while no answer has ended.
            None if statistics.decoded_tokens > 0 => {
                format!("{} tokens, no answer has ended yet", with_commas(statistics.decoded_tokens))
            }
            None => "ETA -".to_owned(),
            // The last answers of a run are its longest: what the others took says nothing about them.
            Some(expected) if left > 0 && waited > expected.max(STRAGGLING) => {
                format!("last {left}, {} so far", clock(waited))
            }
            Some(expected) => format!("ETA {}", clock(expected)),
        }];
        if let Some(right) = wilson(self.correct as f64, self.scored as f64, Z95).filter(|_| !self.adaptive) {
            let [value, low, high] = [right.value, right.low, right.high].map(|part| 100.0 * part);
            parts.push(format!("accuracy {value:.1} % [{low:.1}, {high:.1}]"));
        }
        parts.extend((self.failed > 0).then(|| format!("failed {}", self.failed)));
        parts.extend((self.finished > 0 || statistics.decoded_tokens == 0).then(|| format!("{rate:.2} samples/s")));
        // Nothing is generated where given continuations are scored.
        parts.push(match statistics.decoded_tokens {
            0 if computed > 0.0 => format!("{computed:.0} tok/s in"),
            _ => format!("{generated:.0} tok/s out, {computed:.0} in"),
        });
        parts.extend((self.truncated > 0).then(|| format!("truncated {}", self.truncated)));
        let prompt = statistics.cached_tokens + statistics.prefilled_tokens;
        // Endpoints that do not report cached tokens may still have a cache.
        if statistics.cached_tokens > 0 {
            parts.push(format!("cache {:.0} %", 100.0 * statistics.cached_tokens as f64 / prompt as f64));
        }
        let mut line = String::new();
        for part in parts {
            if line.is_empty() {
                line = part;
            } else if line.len() + " | ".len() + part.len() <= columns {
                line = format!("{line} | {part}");
            }
        }
        line
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

/// A duration as `m:ss` or `h:mm:ss`.
pub(super) fn clock(seconds: f64) -> String {
    let seconds = seconds.clamp(0.0, 1e9).round() as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
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
    fn figures_are_shown_once_known() {
        let started = Instant::now() - Duration::from_secs(10);
        let mut tally = Tally::new(100, 40, started);
        assert!(tally.figures(200).contains("ETA -"));
        tally.finished = 20;
        tally.scored = 18;
        tally.correct = 9;
        tally.failed = 2;
        tally.statistics = Statistics { prefilled_tokens: 500, cached_tokens: 1500, ..Statistics::default() };
        let figures = tally.figures(200);
        for part in ["2.00 samples/s", "ETA 0:20", "cache 75 %", "accuracy 50.0 % [29.0, 71.0]", "failed 2"] {
            assert!(figures.contains(part), "{figures}");
        }
        assert!(!figures.contains("truncated"));
        assert_eq!(tally.figures(39), "ETA 0:20 | accuracy 50.0 % [29.0, 71.0]");
        assert_eq!(tally.figures(24), "ETA 0:20 | failed 2");
        assert_eq!(tally.figures(0), "ETA 0:20");
        // Two long answers at the end, of which none has come for a while.
        (tally.finished, tally.last) = (58, Instant::now() - Duration::from_secs(8));
        assert_eq!(tally.figures(0), "last 2, 0:08 so far");
        tally.adaptive = true;
        assert!(!tally.figures(200).contains("accuracy"));
    }

    #[test]
    fn tokens_are_shown_while_no_answer_has_ended() {
        let started = Instant::now() - Duration::from_secs(10);
        let mut tally = Tally { budgets: Budgets { least: 2048, mean: 2048.0 }, ..Tally::new(120, 0, started) };
        let counted = |tokens, running| Statistics { decoded_tokens: tokens, running, ..Statistics::default() };
        assert_eq!(tally.first_answer(), None);
        tally.count(counted(120, 120));
        assert_eq!(tally.first_answer(), None);
        tally.generating = Some((Instant::now() - Duration::from_secs(4), 120));
        tally.count(counted(120 + 120 * 8, 120));
        assert_eq!(tally.generating.unwrap().1, 120);
        // Two tokens a second for each of 120 answers.
        let (seconds, each) = tally.first_answer().unwrap();
        assert!((1.9..=2.0).contains(&each) && (1024.0..1100.0).contains(&seconds), "{seconds} {each}");
        let figures = tally.figures(200);
        assert!(figures.starts_with("1,080 tokens, no answer has ended yet | 108 tok/s out"), "{figures}");
        assert!(!figures.contains("samples/s") && !figures.contains("ETA"), "{figures}");
        tally.finished = 1;
        assert!(tally.figures(200).contains("samples/s"));
        // Nothing is generated, or the budget is unknown.
        assert_eq!(Tally { budgets: Budgets::default(), ..tally }.first_answer(), None);
    }

    #[test]
    fn the_time_left_is_no_more_than_the_tokens_left() {
        // 120 answers began together; one has ended after 100 of at most 500 tokens, the others have 100 too.
        let started = Instant::now() - Duration::from_secs(50);
        let budgets = Budgets { least: 500, mean: 500.0 };
        let early = Tally { budgets, finished: 1, answered: 100, ..Tally::new(120, 0, started) };
        let left = |tally: &Tally, decoded_tokens| {
            let statistics = Statistics { decoded_tokens, ..Statistics::default() };
            let counted = Tally { statistics, last: Instant::now(), ..tally.clone() };
            counted.seconds_left().unwrap().round()
        };
        // 400 tokens each are left at 240 tokens/s; the samples alone would say 5,950 s.
        assert_eq!(left(&early, 12_000), 198.0);
        // Most have ended, early: the samples say it better than the budget.
        assert_eq!(left(&Tally { finished: 100, answered: 10_000, ..early.clone() }, 12_000), 10.0);
        // Endpoints that count no tokens, and likelihoods, which have none.
        assert_eq!(left(&early, 0), 5_950.0);
        assert_eq!(left(&Tally { budgets: Budgets::default(), ..early }, 12_000), 5_950.0);
    }

    #[test]
    fn long_times_have_two_units() {
        let texts = [20.0, 330.0, 3_600.0, 33_120.0, 90_000.0, 1e6].map(long_time);
        assert_eq!(texts, ["1 min", "6 min", "1 h", "9 h 12 min", "1 day 1 h", "11 days 13 h"]);
    }

    #[test]
    fn clocks() {
        assert_eq!(clock(59.6), "1:00");
        assert_eq!(clock(3661.0), "1:01:01");
        assert_eq!(clock(f64::INFINITY), "277777:46:40");
    }
}
