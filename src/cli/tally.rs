//! Counts of a run in progress: time left, accuracy and speed.
use std::time::Instant;

use earnest_engine::Statistics;
use earnest_results::store::RunProgress;
use earnest_results::{Budgets, Sample, with_commas};
use earnest_stats::{Z95, wilson};

/// Seconds of generation after which its speed says when the first answer may be there.
const FIRST_SPEED: f64 = 3.0;
/// Seconds without a finished sample below which the time left is not doubted.
const STRAGGLING: f64 = 5.0;

/// Counts behind the figures.
#[derive(Clone)]
pub(super) struct Tally {
    pub(super) planned: usize,
    /// Earlier answers choose the questions: shares of right answers say nothing.
    pub(super) adaptive: bool,
    pub(super) recorded: usize,
    pub(super) started: Instant,
    /// End of the last sample.
    last: Instant,
    pub(super) finished: usize,
    pub(super) scored: usize,
    pub(super) correct: usize,
    truncated: usize,
    failed: usize,
    /// Counters since the beginning of this session.
    pub(super) statistics: Statistics,
    /// The engine's counters at its beginning.
    earlier: Statistics,
    pub(super) budgets: Budgets,
    /// Tokens of the answers that have ended in this session.
    answered: u64,
    /// Time of the first tokens, and their number.
    generating: Option<(Instant, u64)>,
}

impl Tally {
    pub(super) fn new(planned: usize, recorded: usize, started: Instant) -> Self {
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
    pub(super) fn first_answer(&self) -> Option<(f64, f64)> {
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
    pub(super) fn left(&self) -> usize {
        self.planned.saturating_sub(self.done())
    }

    /// Seconds that the samples left take at the speed so far; none before the first sample. By the samples that have ended, and no
    /// more than the tokens that the others may still have: the first samples of many that began together come late.
    pub(super) fn seconds_left(&self) -> Option<f64> {
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

/// A duration as `m:ss` or `h:mm:ss`.
pub(super) fn clock(seconds: f64) -> String {
    let seconds = seconds.clamp(0.0, 1e9).round() as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
    fn clocks() {
        assert_eq!(clock(59.6), "1:00");
        assert_eq!(clock(3661.0), "1:01:01");
        assert_eq!(clock(f64::INFINITY), "277777:46:40");
    }
}
