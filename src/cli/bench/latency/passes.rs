//! Progress of the passes: a bar on a terminal, otherwise lines.
use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget};

use crate::cli::printer::Printer;
use crate::cli::progress::{bar_style, columns};
use crate::cli::tally::clock;
use crate::cli::values::counted;
use earnest_engine::bench::{PassEvent, PassStage};

/// Display of the passes' progress.
pub(super) struct Passes {
    printer: Printer,
    bar: Option<ProgressBar>,
    modes: Vec<&'static str>,
    repetitions: usize,
    samples: usize,
    /// Mode and batch size of each kind of pass, in the order of a repetition, and the seconds of its last one.
    kinds: Vec<((usize, usize), f64)>,
}

impl Passes {
    /// Creates the display for these modes, each with `samples` questions in `repetitions` passes.
    pub(super) fn new(printer: Printer, modes: Vec<&'static str>, repetitions: usize, samples: usize) -> Self {
        let bar = (!printer.is_quiet() && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(samples as u64), ProgressDrawTarget::stderr_with_hz(10));
            bar.set_style(bar_style(columns()));
            bar
        });
        Passes { printer, bar, modes, repetitions, samples, kinds: Vec::new() }
    }

    /// Shows an event of the measurement.
    pub(super) fn event(&mut self, event: PassEvent) {
        let PassEvent { repetition, mode, batch, stage } = event;
        let name = self.modes.get(mode).copied().unwrap_or_default();
        let what = format!("pass {} of {}, {name}, batch {batch}", repetition + 1, self.repetitions);
        match stage {
            PassStage::Begun => {
                let left = self.left(repetition, mode, batch);
                let left = left.map_or_else(String::new, |left| format!(", about {} left in total", clock(left)));
                if let Some(bar) = &self.bar {
                    bar.reset();
                    bar.set_message(format!("{what}{left}"));
                } else {
                    self.line(&format!("{what}: {}{left}", counted(self.samples, "sample")));
                }
            }
            PassStage::Done(count) => {
                if let Some(bar) = &self.bar {
                    bar.set_position(count as u64);
                }
            }
            PassStage::Ended(seconds) => {
                match self.kinds.iter_mut().find(|(kind, _)| *kind == (mode, batch)) {
                    Some((_, last)) => *last = seconds,
                    None => self.kinds.push(((mode, batch), seconds)),
                }
                self.line(&format!("{what}: {seconds:.2} s"));
            }
        }
    }

    /// Remaining seconds from this pass on; known from the second repetition, when each kind has run once.
    fn left(&self, repetition: usize, mode: usize, batch: usize) -> Option<f64> {
        let here = self.kinds.iter().position(|(kind, _)| *kind == (mode, batch))?;
        let sum = |kinds: &[((usize, usize), f64)]| kinds.iter().map(|(_, seconds)| seconds).sum::<f64>();
        let later = self.repetitions.saturating_sub(repetition + 1) as f64;
        Some(sum(&self.kinds[here..]) + later * sum(&self.kinds))
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| self.printer.message(text)),
            None => self.printer.message(text),
        }
    }
}

impl Drop for Passes {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_time_is_known_from_the_second_repetition_on() {
        let mut passes = Passes::new(Printer::new(true), vec!["direct", "rf-cot"], 3, 4);
        let mut event = |repetition, mode, batch, stage| passes.event(PassEvent { repetition, mode, batch, stage });
        event(0, 0, 1, PassStage::Ended(1.0));
        event(0, 0, 4, PassStage::Ended(0.5));
        event(0, 1, 1, PassStage::Ended(20.0));
        event(0, 1, 4, PassStage::Ended(10.0));
        event(1, 0, 1, PassStage::Ended(3.0));
        // The rest of the second repetition and all of the third; the newest pass of a kind counts.
        assert_eq!(passes.left(1, 0, 4), Some(0.5 + 20.0 + 10.0 + 33.5));
        assert_eq!(passes.left(2, 1, 4), Some(10.0));
        assert_eq!(passes.left(0, 1, 9), None);
    }
}
