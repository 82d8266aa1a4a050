//! Packing of questions and prompts for the results file, on a thread that walks the plan again, so that no engine step waits
//! for compression.
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::Scope;

use super::scorers::spawn_named;
use crate::prompt::Prompter;
use earnest_results::store::{Entry, PACK_ITEMS, Pack, RunProgress, SampleWriter};
use earnest_results::{Plan, RunError, Sample};
use earnest_tasks::suite::{Item, Suite};

/// Capacity of the queue of packs.
const READY: usize = 2;

/// Writer of a session's rows, none before its question.
pub(super) struct Rows<'a, 'store> {
    writer: &'a mut SampleWriter<'store>,
    packs: Packs,
    /// Rows whose questions are not packed yet, at the start of a session.
    held: Vec<(usize, Sample)>,
}

impl<'a, 'store> Rows<'a, 'store> {
    /// Starts the packing thread.
    ///
    /// # Errors
    /// [`RunError::Engine`] if no thread could be started.
    pub(super) fn start<'scope>(
        writer: &'a mut SampleWriter<'store>,
        scope: &'scope Scope<'scope, '_>,
        plan: Plan,
        suite: &'scope Suite,
        prompter: &'scope Prompter<'scope>,
        progress: &'scope RunProgress,
    ) -> Result<Self, RunError> {
        Ok(Rows { writer, packs: Packs::start(scope, plan, suite, prompter, progress)?, held: Vec::new() })
    }

    /// Adds the sample at this index in the plan.
    pub(super) fn push(&mut self, index: usize, sample: Sample) -> Result<(), RunError> {
        if self.packs.covers(index) {
            return self.writer.push(index, sample);
        }
        self.held.push((index, sample));
        self.release(false)
    }

    /// Writes pending rows if the last write is long ago.
    pub(super) fn write_if_due(&mut self) -> Result<(), RunError> {
        self.release(false)?;
        self.writer.write_if_due()
    }

    /// Writes all rows.
    pub(super) fn write(&mut self) -> Result<(), RunError> {
        self.release(true)?;
        self.writer.write()
    }

    /// Passes on rows whose questions are packed; with `wait`, all rows.
    fn release(&mut self, wait: bool) -> Result<(), RunError> {
        while !self.held.is_empty()
            && let Some(pack) = self.packs.next(wait)
        {
            self.writer.push_pack(pack);
            self.pass_on(false)?;
        }
        // Rows are written even if the thread ended early because of a bug in the suite.
        if wait { self.pass_on(true) } else { Ok(()) }
    }

    fn pass_on(&mut self, all: bool) -> Result<(), RunError> {
        let rows = std::mem::take(&mut self.held).into_iter();
        let (ready, held) = rows.partition::<Vec<_>, _>(|(index, _)| all || self.packs.covers(*index));
        self.held = held;
        // The writer keeps rows that it could not write.
        let mut written = Ok(());
        for (index, sample) in ready {
            written = written.and(self.writer.push(index, sample));
        }
        written
    }
}

/// Packs of a session that are not stored yet, in the order of the plan. Dropping it ends the thread.
struct Packs {
    packed: Receiver<Pack>,
    dropped: Arc<AtomicBool>,
    samples: usize,
    /// Numbers of the packs of earlier sessions.
    stored: Arc<BTreeSet<usize>>,
    /// Number below which the writer has all other packs.
    taken: usize,
}

impl Drop for Packs {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::Relaxed);
    }
}

impl Packs {
    fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        plan: Plan,
        suite: &'scope Suite,
        prompter: &'scope Prompter<'scope>,
        progress: &'scope RunProgress,
    ) -> Result<Self, RunError> {
        let (send, packed) = sync_channel(READY);
        let stored = Arc::new(complete_packs(plan, suite, progress));
        let known = Arc::clone(&stored);
        let dropped = Arc::new(AtomicBool::new(false));
        let cancelled = Arc::clone(&dropped);
        spawn_named("questions", scope, move || {
            let mut asked = plan.asked(suite).take_while(|_| !cancelled.load(Ordering::Relaxed)).peekable();
            while let Some((first, _)) = asked.peek() {
                let number = first / PACK_ITEMS;
                let items = std::iter::from_fn(|| asked.next_if(|(index, _)| index / PACK_ITEMS == number));
                if known.contains(&number) {
                    items.for_each(drop);
                    continue;
                }
                let entry = |(index, item): (usize, Item)| {
                    let prompt = prompter.text(&item.segments).ok();
                    Entry { index, item, prompt }
                };
                let pack = Pack::of(number, &items.map(entry).collect::<Vec<_>>());
                // The receiver is gone once the session has ended, and the pack may be incomplete.
                if cancelled.load(Ordering::Relaxed) || send.send(pack).is_err() {
                    return;
                }
            }
        })?;
        Ok(Packs { packed, dropped, samples: plan.samples.max(1) as usize, stored, taken: 0 })
    }

    /// True if the question of the sample at this index is stored or with the writer.
    fn covers(&self, index: usize) -> bool {
        let number = index / self.samples / PACK_ITEMS;
        number < self.taken || self.stored.contains(&number)
    }

    /// Returns the next pack; with `wait`, blocks until it is packed. None if there is none yet, or no more.
    fn next(&mut self, wait: bool) -> Option<Pack> {
        let pack = if wait { self.packed.recv().ok() } else { self.packed.try_recv().ok() }?;
        self.taken = pack.number() + 1;
        Some(pack)
    }
}

/// Returns the numbers of the stored packs that have all items of the plan; packs of interrupted sessions may lack some.
fn complete_packs(plan: Plan, suite: &Suite, progress: &RunProgress) -> BTreeSet<usize> {
    let all = plan.items(suite);
    let complete = |number: usize, items: usize| {
        let indices = number * PACK_ITEMS..all.min((number + 1) * PACK_ITEMS);
        indices.filter(|&index| plan.shard.is_none_or(|shard| shard.has(index))).count() == items
    };
    progress.packs().iter().filter(|(number, items)| complete(**number, **items)).map(|(number, _)| *number).collect()
}
