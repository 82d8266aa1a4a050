//! Rounds of a run whose suite chooses later items by the answers to earlier ones.
use std::ops::Range;
use std::sync::Arc;

use earnest_engine::Engine;
use earnest_tasks::suite::{Chooser, Item, ItemList, Items, RoundAnswer, Suite};

use crate::EvalError;
use crate::run::Runner;
use earnest_results::store::{RunRecord, SampleWriter, Store};
use earnest_results::{Ended, Reporter, RunEvent};

/// A run in rounds. A round begins once every item of those before it has a row, and its items depend on these rows alone: an interrupted
/// run chooses the same again, and so does one with other threads.
pub(super) struct Rounds<'a> {
    pub(super) store: &'a Store,
    pub(super) run: &'a RunRecord,
    /// Runner of the suite, whose items are replaced.
    pub(super) runner: &'a Runner<'a>,
    /// Most samples of all rounds.
    pub(super) most: usize,
}

impl Rounds<'_> {
    /// Generates the missing samples, round by round; returns how it ended and the number of items chosen.
    ///
    /// # Errors
    /// Those of a session, and if the stored rows are not those that would be chosen.
    pub(super) fn run(
        &self,
        mut chooser: Box<dyn Chooser + '_>,
        engine: &mut dyn Engine,
        writer: &mut SampleWriter<'_>,
        reporter: &mut dyn Reporter,
    ) -> Result<(Ended, usize), EvalError> {
        let mut reporter = OneSession { reporter, most: self.most, started: false };
        // Shared with the suite of one round only, so that no round copies those before it.
        let mut items = Arc::new(ItemList::default());
        let mut answers = Vec::new();
        let ended = loop {
            let next = chooser.next_round(&answers);
            if next.is_empty() {
                break Ended::Finished;
            }
            let round = items.len()..items.len() + next.len();
            Arc::make_mut(&mut items).items.extend(next);
            if self.open(&round)? > 0 {
                self.store.update(self.run.id, &self.run.manifest, items.len())?;
                let suite = Suite { items: items.clone(), ..self.runner.suite.clone() };
                let runner = Runner { suite: &suite, ..*self.runner };
                let progress = self.store.progress(self.run)?;
                let ended = runner.run(engine, writer, &progress, &mut reporter)?;
                if ended != Ended::Finished {
                    break ended;
                }
                // What may succeed another time decides about later rounds: they wait for it.
                let failed = self.open(&round)?;
                if failed > 0 {
                    break Ended::TooManyFailures { failed };
                }
            }
            answers = self.answers(&items.items, round)?;
        };
        reporter.reporter.event(&RunEvent::Ended(Some(ended)));
        Ok((ended, items.len()))
    }

    /// Number of indices without a row that is there to stay.
    fn open(&self, round: &Range<usize>) -> Result<usize, EvalError> {
        let progress = self.store.progress(self.run)?;
        Ok(round.clone().filter(|&index| !progress.is_settled(index)).count())
    }

    /// Answers to the items of a round, none for failed samples.
    fn answers(&self, items: &[Item], round: Range<usize>) -> Result<Vec<Option<RoundAnswer>>, EvalError> {
        let mut answers = vec![None; round.len()];
        let mut other = None;
        self.store.outcomes(self.run, |outcome| -> Result<(), EvalError> {
            if round.contains(&outcome.index) {
                let asked = &items[outcome.index].id;
                if *asked != outcome.item && other.is_none() {
                    other = Some((asked.clone(), outcome.item.clone()));
                }
                // Where the context ended it, a larger budget changes nothing.
                let cut = outcome.truncated() && outcome.max_tokens == outcome.budget;
                let answer = outcome.score.as_ref().map(|score| RoundAnswer { correct: score.correct, cut });
                answers[outcome.index - round.start] = answer;
            }
            Ok(())
        })?;
        match other {
            None => Ok(answers),
            Some((asked, stored)) => {
                let run = &self.run.manifest.run;
                Err(EvalError::results(format!(
                    "{run} has an answer to {stored} where {asked} would be asked: it was made by another version or on another machine"
                ))
                .hint("the setting `new` begins another run"))
            }
        }
    }
}

/// Shows all rounds as one session.
struct OneSession<'a> {
    reporter: &'a mut dyn Reporter,
    most: usize,
    started: bool,
}

impl Reporter for OneSession<'_> {
    fn event(&mut self, event: &RunEvent<'_>) {
        match event {
            RunEvent::Started { .. } if self.started => {}
            RunEvent::Started { run, progress, card, budgets, statistics, .. } => {
                self.started = true;
                let (planned, budgets, statistics) = (self.most, *budgets, *statistics);
                let started = RunEvent::Started { run, planned, adaptive: true, progress, card, budgets, statistics };
                self.reporter.event(&started);
            }
            RunEvent::Ended(Some(_)) => {}
            other => self.reporter.event(other),
        }
    }
}
