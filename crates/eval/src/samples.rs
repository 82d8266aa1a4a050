//! Selection of stored samples, with the questions they answer.
use std::cell::OnceCell;
use std::iter;

use earnest_tasks::suite::{Item, Suite};

use crate::EvalError;
pub use crate::rendered_again::{SampleTokens, Token, scored_tokens, tokens};
use earnest_results::outcomes::are_made_of_outcomes;
use earnest_results::store::{Filter, PLAN_END, RunRecord, Store, StoredQuestion};
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

/// Samples to select: by what is stored with them, and by a text in their questions (upper and lower case differ).
#[derive(Debug, Clone, Default)]
pub struct Selection {
    pub filter: Filter,
    pub question: Option<String>,
}

impl From<Filter> for Selection {
    fn from(filter: Filter) -> Self {
        Selection { filter, question: None }
    }
}

/// Calls `each` with at most `limit` samples of a run, in the plan's order, and their questions; returns their number, and true if
/// there are more.
///
/// # Errors
/// If the run has no questions stored and its suite cannot be built, and those of `each`.
pub fn each_asked<E: From<EvalError>>(
    store: &Store,
    run: &RunRecord,
    selection: impl Into<Selection>,
    limit: usize,
    mut each: impl FnMut(AskedSample) -> Result<(), E>,
) -> Result<(usize, bool), E> {
    let Selection { filter, question: wanted } = selection.into();
    let settings = &run.manifest.settings;
    // Built for the first sample whose question is not stored.
    let suite = OnceCell::new();
    let mut items: Option<PlacedItems<'_>> = None;
    let mut is_without_questions = false;
    let mut questions = store.questions(run);
    let ranges = match &wanted {
        Some(text) => store.ranges_asking(run, text).map_err(EvalError::from)?,
        None => iter::once(0..PLAN_END).collect(),
    };
    let mut count = 0;
    for range in ranges {
        if filter.after.is_some_and(|after| after >= range.end) {
            continue;
        }
        let (after, before) = (filter.after.max(range.start.checked_sub(1)), Some(range.end));
        for row in store.samples(run, Filter { after, before, ..filter.clone() }).indexed() {
            let (index, sample) = row.map_err(EvalError::from)?;
            let stored = questions.of_sample(index, &sample).map_err(EvalError::from)?;
            if stored.is_none() && items.is_none() && !is_without_questions {
                match suites::stored(settings) {
                    Ok(made) => items = Some(PlacedItems::new(suite.get_or_init(|| made), settings.samples)),
                    // Published outcomes are read without the data of their questions.
                    Err(_) if wanted.is_none() && are_made_of_outcomes(store.results()) => is_without_questions = true,
                    Err(error) => return Err(EvalError::from(error).into()),
                }
            }
            let question = stored.or_else(|| {
                let item = items.as_mut()?.at(index).filter(|item| item.id == sample.item)?;
                Some(StoredQuestion { item, prompt: None })
            });
            let text = |asked: &StoredQuestion| {
                wanted.as_ref().is_some_and(|text| asked.item.segments.question.contains(text))
            };
            if wanted.is_some() && !question.as_ref().is_some_and(text) {
                continue;
            }
            if count == limit {
                return Ok((count, true));
            }
            each(AskedSample { index, sample, question })?;
            count += 1;
        }
    }
    Ok((count, false))
}

/// Returns the number of samples of a selection, whatever its `after`.
///
/// # Errors
/// As [`each_asked`].
pub fn count_asked(store: &Store, run: &RunRecord, selection: Selection) -> Result<usize, EvalError> {
    if selection.question.is_none() {
        return Ok(store.count_of(run, &selection.filter)?);
    }
    let all = Selection { filter: Filter { after: None, ..selection.filter }, ..selection };
    Ok(each_asked(store, run, all, usize::MAX, |_| Ok::<(), EvalError>(()))?.0)
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
