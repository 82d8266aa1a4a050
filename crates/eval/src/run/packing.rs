//! Questions and prompts packed beside the engine, for the file of results: a thread of its own walks the plan once more, so that no
//! step waits for compression.
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::Scope;

use super::scorers::named;
use super::store::{Entry, PACK_ITEMS, Pack, SampleWriter, Standing};
use super::{Plan, RunError, Sample};
use crate::prompt::Prompter;
use earnest_tasks::suite::{Item, Suite};

/// Packs that may be ready before rows need them.
const READY: usize = 2;

/// The rows of a session on their way to the file: none is written before its question.
pub(super) struct Rows<'a, 'store> {
    writer: &'a mut SampleWriter<'store>,
    packs: Packs,
    /// Rows whose questions are not packed yet: at the beginning of a session, for as long as some hundred prompts take.
    held: Vec<(usize, Sample)>,
}

impl<'a, 'store> Rows<'a, 'store> {
    /// Starts the thread that packs.
    ///
    /// # Errors
    /// [`RunError::Engine`] if the system gives no thread.
    pub(super) fn start<'scope>(
        writer: &'a mut SampleWriter<'store>,
        scope: &'scope Scope<'scope, '_>,
        plan: Plan,
        suite: &'scope dyn Suite,
        prompter: &'scope Prompter<'scope>,
        standing: &'scope Standing,
    ) -> Result<Self, RunError> {
        Ok(Rows { writer, packs: Packs::start(scope, plan, suite, prompter, standing)?, held: Vec::new() })
    }

    /// Takes the sample at this place of the plan.
    pub(super) fn push(&mut self, place: usize, sample: Sample) -> Result<(), RunError> {
        if self.packs.covers(place) {
            return self.writer.push(place, sample);
        }
        self.held.push((place, sample));
        self.release(false)
    }

    /// Writes waiting rows if the last write is long ago.
    pub(super) fn write_if_due(&mut self) -> Result<(), RunError> {
        self.release(false)?;
        self.writer.write_if_due()
    }

    /// Writes all rows and, of a run that is `finished`, all packs: a version that stored no questions may have begun it.
    pub(super) fn write(&mut self, finished: bool) -> Result<(), RunError> {
        self.release(true)?;
        while finished && let Some(pack) = self.packs.next(true) {
            self.writer.push_pack(pack);
            self.writer.write()?;
        }
        self.writer.write()
    }

    /// Passes rows on whose questions are packed; if `wait`, all of them.
    fn release(&mut self, wait: bool) -> Result<(), RunError> {
        while !self.held.is_empty()
            && let Some(pack) = self.packs.next(wait)
        {
            self.writer.push_pack(pack);
            self.pass_on(false)?;
        }
        // A thread that ended early, by a defect of the suite, keeps no answer back.
        if wait { self.pass_on(true) } else { Ok(()) }
    }

    fn pass_on(&mut self, all: bool) -> Result<(), RunError> {
        let rows = std::mem::take(&mut self.held).into_iter();
        let (ready, held) = rows.partition::<Vec<_>, _>(|(place, _)| all || self.packs.covers(*place));
        self.held = held;
        // A row that the writer has is kept also if it cannot write it now.
        let mut written = Ok(());
        for (place, sample) in ready {
            written = written.and(self.writer.push(place, sample));
        }
        written
    }
}

/// The packs of a session that are not stored yet, in the order of the plan. The thread ends when this is dropped, at once also
/// where it walks over packs that are stored.
struct Packs {
    made: Receiver<Pack>,
    dropped: Arc<AtomicBool>,
    samples: usize,
    /// Numbers of packs that earlier sessions wrote.
    stored: Arc<BTreeSet<usize>>,
    /// All other packs below this number are with the writer.
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
        suite: &'scope dyn Suite,
        prompter: &'scope Prompter<'scope>,
        standing: &'scope Standing,
    ) -> Result<Self, RunError> {
        let (send, made) = sync_channel(READY);
        let stored = Arc::new(whole_packs(plan, suite, standing));
        let known = Arc::clone(&stored);
        let dropped = Arc::new(AtomicBool::new(false));
        let unheard = Arc::clone(&dropped);
        named("questions", scope, move || {
            let mut asked = plan.asked(suite).take_while(|_| !unheard.load(Ordering::Relaxed)).peekable();
            while let Some((first, _)) = asked.peek() {
                let number = first / PACK_ITEMS;
                let items = std::iter::from_fn(|| asked.next_if(|(place, _)| place / PACK_ITEMS == number));
                if known.contains(&number) {
                    items.for_each(drop);
                    continue;
                }
                let entry = |(place, item): (usize, Item)| {
                    let prompt = prompter.text(&item.segments).ok();
                    Entry { place, item, prompt }
                };
                let pack = Pack::of(number, &items.map(entry).collect::<Vec<_>>());
                // Nobody listens any more once the session has ended; the pack may be cut then.
                if unheard.load(Ordering::Relaxed) || send.send(pack).is_err() {
                    return;
                }
            }
        })?;
        Ok(Packs { made, dropped, samples: plan.samples.max(1) as usize, stored, taken: 0 })
    }

    /// True if the questions of the sample at this place are stored or with the writer.
    fn covers(&self, place: usize) -> bool {
        let number = place / self.samples / PACK_ITEMS;
        number < self.taken || self.stored.contains(&number)
    }

    /// The next pack; if `wait`, however long it takes to make. None if there is none yet, or no other.
    fn next(&mut self, wait: bool) -> Option<Pack> {
        let pack = if wait { self.made.recv().ok() } else { self.made.try_recv().ok() }?;
        self.taken = pack.number() + 1;
        Some(pack)
    }
}

/// Numbers of the stored packs that have all the items that the plan asks. A version that stored no questions may have begun a run.
fn whole_packs(plan: Plan, suite: &dyn Suite, standing: &Standing) -> BTreeSet<usize> {
    let all = plan.items(suite);
    let whole = |number: usize, items: usize| {
        let places = number * PACK_ITEMS..all.min((number + 1) * PACK_ITEMS);
        places.filter(|&place| plan.shard.is_none_or(|shard| shard.has(place))).count() == items
    };
    standing.packs().iter().filter(|(number, items)| whole(**number, **items)).map(|(number, _)| *number).collect()
}
