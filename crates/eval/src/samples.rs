//! Selection of stored samples, with the questions they answer.
use earnest_tasks::suite::{Item, Suite, registry};

use crate::rendered_again::PromptRenderer;
pub use crate::rendered_again::{SampleTokens, Token, tokens};
use crate::run::store::{Filter, Named, RunRecord, Store, StoredQuestion};
use crate::run::{RunError, Sample};
use crate::{EvalError, suites};

/// Number of names that an error lists.
const SHOWN: usize = 12;

/// Returns the filter with the task's full name. A task, item, reason or rule that no sample of the run has is an error, because a
/// typing error would select nothing without a word; so is a condition on texts if the samples have none.
pub fn check_filter(store: &Store, run: &RunRecord, filter: Filter) -> Result<Filter, EvalError> {
    let name = &run.manifest.run;
    let suite = &run.manifest.settings.suite;
    let full_name = |task: &String| -> Result<String, RunError> {
        if store.has(run, Named::Task, task)? {
            return Ok(task.clone());
        }
        let full = registry::find(suite).and_then(|suite| suite.task(task).ok());
        Ok(full.unwrap_or_else(|| task.clone()))
    };
    let task = filter.task.as_ref().map(full_name).transpose()?;
    let named = [
        (Named::Task, "task", task.as_ref()),
        (Named::Item, "item", filter.item.as_ref()),
        (Named::Reason, "reason", filter.reason.as_ref()),
    ];
    for (column, word, value) in named {
        let Some(value) = value else { continue };
        if store.has(run, column, value)? {
            continue;
        }
        let hint = match column {
            Named::Item => "`earnest samples` shows the ids".to_owned(),
            _ => {
                let mut all = store.all(run, column)?;
                if column == Named::Task {
                    all = all.iter().map(|task| registry::task_label(task).into_owned()).collect();
                }
                let more = if all.len() > SHOWN { format!(", and {} more", all.len() - SHOWN) } else { String::new() };
                match all.is_empty() {
                    true => format!("no sample of it has a {word}"),
                    false => format!("it has {}{more}", all[..all.len().min(SHOWN)].join(", ")),
                }
            }
        };
        return Err(EvalError::setting(format!("no sample of {name} has the {word} {value}")).hint(hint));
    }
    for rule in filter.disagree.iter().flatten() {
        if !store.has_rule(run, rule)? {
            let rules = store.rules(run)?;
            let hint = match rules.is_empty() {
                true => "no sample of it has a score".to_owned(),
                false => format!("it has {}; `earnest score {name} --save` makes a run with today's", rules.join(", ")),
            };
            return Err(EvalError::setting(format!("no sample of {name} was scored by the rule {rule}")).hint(hint));
        }
    }
    let needs_texts = match (filter.error, &filter.contains) {
        (Some(_), _) => Some("classes of errors cannot be read from them"),
        (None, Some(_)) => Some("no text can be found in them"),
        (None, None) => None,
    };
    if let Some(therefore) = needs_texts
        && !store.has_completions(run)?
    {
        return Err(no_texts(name, therefore));
    }
    Ok(Filter { task, of_log: run.manifest.settings.is_log(), ..filter })
}

/// The refusal of what needs the texts of a run that has none.
pub(crate) fn no_texts(run: &str, therefore: &str) -> EvalError {
    EvalError::setting(format!("the samples of {run} hold no texts, so {therefore}")).hint(
        "rows from an outcome file have scores alone; the results folder in which the run was made has the texts too",
    )
}

/// A sample and what it was asked.
pub struct AskedSample {
    /// Place in the plan.
    pub place: usize,
    pub sample: Sample,
    /// As stored, or as the suite generates it for runs without stored questions, with the prompt if the checkpoint still renders
    /// the one that was asked; none if the suite no longer has the item.
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
    let mut items = suite.as_ref().map(|suite| Items::new(suite.as_ref(), settings.samples));
    let mut questions = store.questions(run);
    let mut samples = store.samples(run, filter).placed();
    // Opened for the first sample whose prompt is not stored.
    let mut renderer: Option<Option<PromptRenderer>> = None;
    let mut count = 0;
    for row in samples.by_ref().take(limit) {
        let (place, sample) = row.map_err(EvalError::from)?;
        let stored = questions.of_sample(place, &sample).map_err(EvalError::from)?;
        let question = stored.or_else(|| {
            let item = items.as_mut()?.at(place).filter(|item| item.id == sample.item)?;
            let renderer = renderer.get_or_insert_with(|| PromptRenderer::open(&run.manifest)).as_ref();
            let prompt = renderer.and_then(|renderer| renderer.prompt(&item, &sample));
            Some(StoredQuestion { item, prompt })
        });
        each(AskedSample { place, sample, question })?;
        count += 1;
    }
    Ok((count, samples.next().is_some()))
}

/// A suite's items by place in the plan, for places that only grow.
struct Items<'a> {
    rest: Box<dyn Iterator<Item = Item> + Send + 'a>,
    samples: usize,
    next: usize,
    last: Option<Item>,
}

impl<'a> Items<'a> {
    fn new(suite: &'a dyn Suite, samples: u32) -> Self {
        Items { rest: suite.items(), samples: samples.max(1) as usize, next: 0, last: None }
    }

    fn at(&mut self, place: usize) -> Option<Item> {
        let number = place / self.samples;
        if number + 1 > self.next {
            self.last = self.rest.nth(number - self.next);
            self.next = number + 1;
        }
        self.last.clone()
    }
}
