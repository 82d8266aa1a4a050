//! Selection of stored samples, with the questions they answer.
use earnest_tasks::suite::{Item, Suite};

use crate::EvalError;
pub use crate::rendered_again::{SampleTokens, Token, tokens};
use earnest_results::store::{Filter, RunRecord, Store, StoredQuestion};
use earnest_results::{Sample, suites};

/// A sample and what it was asked.
pub struct AskedSample {
    /// Index in the plan.
    pub index: usize,
    pub sample: Sample,
    /// As stored, or as the suite generates it, without a prompt, for runs without questions, such as those of outcome files; none if the
    /// suite no longer has the item.
    pub question: Option<StoredQuestion>,
}

/// Calls `each` with at most `limit` samples of a run, in the plan's order, and their questions; returns their number, and true if
/// there are more.
///
/// # Errors
/// If the run has no questions stored and its suite cannot be built, and those of `each`.
pub fn each_asked<E: From<EvalError>>(
    store: &Store,
    run: &RunRecord,
    filter: Filter,
    limit: usize,
    mut each: impl FnMut(AskedSample) -> Result<(), E>,
) -> Result<(usize, bool), E> {
    let settings = &run.manifest.settings;
    let suite = match store.has_questions(run).map_err(EvalError::from)? {
        true => None,
        false => Some(suites::stored(settings).map_err(EvalError::from)?),
    };
    let mut items = suite.as_ref().map(|suite| PlacedItems::new(suite, settings.samples));
    let mut questions = store.questions(run);
    let mut samples = store.samples(run, filter).indexed();
    let mut count = 0;
    for row in samples.by_ref().take(limit) {
        let (index, sample) = row.map_err(EvalError::from)?;
        let stored = questions.of_sample(index, &sample).map_err(EvalError::from)?;
        let question = stored.or_else(|| {
            let item = items.as_mut()?.at(index).filter(|item| item.id == sample.item)?;
            Some(StoredQuestion { item, prompt: None })
        });
        each(AskedSample { index, sample, question })?;
        count += 1;
    }
    Ok((count, samples.next().is_some()))
}

/// A suite's items by index in the plan, for indices that only grow.
struct PlacedItems<'a> {
    rest: Box<dyn Iterator<Item = Item> + Send + 'a>,
    samples: usize,
    next: usize,
    last: Option<Item>,
}

impl<'a> PlacedItems<'a> {
    fn new(suite: &'a Suite, samples: u32) -> Self {
        PlacedItems { rest: suite.items.iter(), samples: samples.max(1) as usize, next: 0, last: None }
    }

    fn at(&mut self, index: usize) -> Option<Item> {
        let number = index / self.samples;
        if number + 1 > self.next {
            self.last = self.rest.nth(number - self.next);
            self.next = number + 1;
        }
        self.last.clone()
    }
}
