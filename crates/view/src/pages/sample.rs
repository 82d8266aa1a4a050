//! A sample: prompt, completion with its thinking folded and its readings marked, and every scorer's score.
use std::sync::{Mutex, PoisonError};

use axum::extract::{Path, State};
use axum::response::Response;
use earnest_eval::samples::{AskedSample, SampleTokens, each_asked, scored_tokens, tokens};
use earnest_report::marks::{Piece, Reading, pieces, readings};
use earnest_results::outcomes::are_made_of_outcomes;
use earnest_results::store::{Filter, RunRecord, Store, StoredQuestion};
use earnest_results::{Origin, Sample};
use earnest_tasks::suite::log::value;
use earnest_tasks::suite::{ContinuationScore, FailureClass, metric_words};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::record;
use crate::app::{Asks, ITEM, NUMBER, Page, Parameters, Shared, TRUTH};
use crate::failed::Failed;
use crate::limits::{self, ROWS, SHORT_TEXT_BYTES, TEXT_BYTES, TOKENS};
use crate::work::Kind;

/// Outcome of a sample: a word, and its colour.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Outcome {
    pub word: String,
    /// `good`, `bad` or `none`.
    pub kind: &'static str,
}

/// Returns the outcome of a sample; of a log, by the scorers that decide there.
pub(crate) fn outcome(sample: &Sample, of_log: Option<&[String]>) -> Outcome {
    let of = |word: &str, kind| Outcome { word: word.to_owned(), kind };
    match (&sample.score, &sample.failure) {
        (Some(score), _) if score.correct => of("right", "good"),
        // A log's scorer may give numbers between right and wrong.
        (Some(score), _) if of_log.is_some() && score.failure.is_none() => {
            let number = of_log.and_then(<[String]>::first).and_then(|scorer| value(score, scorer));
            of(
                &number
                    .map_or_else(|| "scored".to_owned(), |number| format!("scored {}", (number * 1e4).round() / 1e4)),
                "none",
            )
        }
        (Some(score), _) => match &score.failure {
            None | Some(FailureClass::Wrong) => of("wrong", "bad"),
            Some(reason) => of(reason.words(), "bad"),
        },
        (None, Some(_)) => of("no answer", "bad"),
        (None, None) => of("not scored", "none"),
    }
}

/// A failure class in the words of the badges; of the class `wrong`, which is also said of all of them, what it is among them.
pub(crate) fn class(word: &str) -> String {
    match FailureClass::from(word) {
        FailureClass::Wrong => "none of these".to_owned(),
        class => class.words().to_owned(),
    }
}

/// A sample as the page shows it.
#[derive(Serialize)]
pub(crate) struct Shown {
    pub item: String,
    pub sample: u32,
    pub task: String,
    pub cluster: String,
    pub outcome: Outcome,
    /// Whole prompt, where it is stored.
    pub prompt: Option<String>,
    pub system: Option<String>,
    pub question: String,
    pub gold: String,
    pub answer: Option<String>,
    pub completion: Vec<Piece>,
    pub text: String,
    /// False of outcome files, which have no texts.
    pub is_stored: bool,
    pub failure: Option<String>,
    readings: Vec<Reading>,
    /// How many more readings, continuations and details there are.
    more: Vec<String>,
    facts: Vec<(String, String)>,
    /// Continuations that were scored.
    likelihoods: Vec<Likelihood>,
    /// Tokens, where they were asked for and the checkpoint is at hand.
    tokens: Option<SampleTokens>,
}

/// A continuation with its log-likelihood, tinted by its mean over the tokens.
#[derive(Serialize)]
struct Likelihood {
    text: String,
    logprob: String,
    tokens: usize,
    largest: bool,
    /// 0, as unlikely as e^-8 a token or less, to 8, certain.
    tint: u8,
}

/// Address of a sample in a run.
#[derive(Deserialize)]
pub(crate) struct Which {
    item: String,
    #[serde(default)]
    n: u32,
    /// Only the sample, for the list's side.
    #[serde(default)]
    bare: bool,
    /// With the prompt and the answer token by token.
    #[serde(default)]
    tokens: bool,
    /// And with the log-probabilities of the answer's tokens, for which the model is loaded.
    #[serde(default)]
    logprobs: bool,
}

impl Parameters for Which {
    const TAKE: &'static [(&'static str, &'static str)] =
        &[("item", ITEM), ("n", NUMBER), ("bare", TRUTH), ("tokens", TRUTH), ("logprobs", TRUTH)];
}

/// Shows a sample.
pub(crate) async fn page(State(app): Shared, Path(name): Path<String>, Asks(which): Asks<Which>) -> Response {
    // The prompt is made again for its tokens.
    let by_token = match (which.logprobs, which.tokens) {
        (true, _) => ByToken::Scored,
        (false, true) => ByToken::Split,
        (false, false) => ByToken::No,
    };
    let kind = if by_token == ByToken::No { Kind::Quick } else { Kind::Slow };
    app.page(kind, move |store, _| {
        let run = record(store, &name)?;
        let shown = find(store, &run, &which.item, which.n, by_token)?;
        let template = if which.bare { "sample_body.html" } else { "sample.html" };
        let title = format!("{} of {name}", shown.item);
        // Of answers that were made elsewhere there are no tokens.
        let has_tokens = run.manifest.settings.origin() == Origin::Evaluated && run.manifest.settings.endpoint.is_none();
        let (scored, by_token) = (by_token == ByToken::Scored, by_token != ByToken::No);
        Ok(Page::new(
            template,
            json!({"title": title, "run": name, "shown": shown, "by_token": by_token, "scored": scored, "has_tokens": has_tokens}),
        ))
    })
    .await
}

/// Detail in which a sample's tokens are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByToken {
    No,
    /// Into its tokens.
    Split,
    /// And each token of the answer has its log-probability.
    Scored,
}

/// One model at a time is loaded for log-probabilities: several would not fit the memory that one does.
static LOADED: Mutex<()> = Mutex::new(());

/// Finds a sample of an item by its number.
pub(crate) fn find(
    store: &Store,
    run: &RunRecord,
    item: &str,
    number: u32,
    by_token: ByToken,
) -> Result<Shown, Failed> {
    store.check_seal(run)?;
    let filter = Filter { item: Some(item.to_owned()), ..Filter::default() };
    let mut found = None;
    each_asked(store, run, filter, usize::MAX, |asked: AskedSample| {
        if asked.sample.sample == number {
            found = Some(asked);
        }
        Ok::<(), Failed>(())
    })?;
    let Some(asked) = found else {
        let name = &run.manifest.run;
        return Err(Failed::not_found(format!("{name} has no sample {number} of the item {item}")));
    };
    let tokens = match (&asked.question, by_token) {
        (None, _) | (_, ByToken::No) => None,
        (Some(question), ByToken::Split) => tokens(&run.manifest, &question.item, &asked.sample),
        (Some(question), ByToken::Scored) => {
            let _one = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
            scored_tokens(&run.manifest, &question.item, &asked.sample)?
        }
    };
    Ok(shown(run, asked, tokens, !are_made_of_outcomes(store.results())))
}

fn shown(run: &RunRecord, asked: AskedSample, tokens: Option<SampleTokens>, is_stored: bool) -> Shown {
    let AskedSample { sample, question, .. } = asked;
    let of_log = run.manifest.settings.origin() == Origin::Log;
    let chosen = earnest_results::suites::chosen(&run.manifest.settings);
    let outcome = outcome(&sample, of_log.then_some(chosen.as_slice()));
    let long = |text: String| limits::text(text, TEXT_BYTES);
    let text = long(sample.completion_text());
    const HOW: &str = "`earnest samples --json` prints all";
    let mut readings = readings(&sample, &chosen);
    for read in readings.iter_mut().filter_map(|reading| reading.read.as_mut()) {
        *read = limits::text(std::mem::take(read), SHORT_TEXT_BYTES);
    }
    let (readings, more_readings) = limits::first(readings, ROWS, "scorers", HOW);
    let (facts, more_facts) = limits::first(facts(&sample), ROWS, "details", HOW);
    let (likelihoods, more_likelihoods) = limits::first(likelihoods(&sample), ROWS, "continuations", HOW);
    let (tokens, more_tokens) = tokens.map(first_tokens).unzip();
    let more = [more_likelihoods, more_readings, more_facts].into_iter().chain(more_tokens.into_iter().flatten());
    let completion = match sample.likelihoods() {
        Some(_) => pieces(&text, None, &[]),
        None => pieces(&text, run.manifest.opened_thinking(), &readings),
    };
    let (prompt, system, question) = match question {
        Some(StoredQuestion { item, prompt }) => (prompt, item.segments.system, item.segments.question),
        None => (None, None, "(the question is not to be had: the data of its suite is not here, or this version does not have the item)".to_owned()),
    };
    Shown {
        more: more.flatten().collect(),
        facts,
        likelihoods,
        tokens,
        item: sample.item.clone(),
        sample: sample.sample,
        task: sample.task.clone(),
        cluster: sample.cluster.clone(),
        outcome,
        prompt: prompt.map(long),
        system: system.map(long),
        question: long(question),
        gold: long(sample.gold.clone()),
        answer: sample.score.as_ref().and_then(|score| score.answer.clone()).map(long),
        completion,
        is_stored,
        text,
        failure: sample.failure.as_ref().map(|failure| long(failure.message.clone())),
        readings,
    }
}

/// The first tokens of prompt and answer, and how many more there are.
fn first_tokens(tokens: SampleTokens) -> (SampleTokens, Vec<Option<String>>) {
    const HOW: &str = "`earnest samples --json` prints the ids of the answer";
    let (prompt, more_of_prompt) =
        tokens.prompt.map(|prompt| limits::first(prompt, TOKENS, "tokens of the prompt", HOW)).unzip();
    let (completion, more) = limits::first(tokens.completion, TOKENS, "tokens of the answer", HOW);
    (SampleTokens { prompt, completion }, vec![more_of_prompt.flatten(), more])
}

/// Tint of a log-probability: 0, as unlikely as e^-8 or less, to 8, certain.
pub(crate) fn tint(logprob: f64) -> u8 {
    (8.0 + logprob).round().clamp(0.0, 8.0) as u8
}

fn likelihoods(sample: &Sample) -> Vec<Likelihood> {
    let scores = sample.likelihoods().map(|likelihoods| likelihoods.0).unwrap_or_default();
    let largest = scores.iter().map(|score| score.logprob).fold(f64::NEG_INFINITY, f64::max);
    let likelihood = |score: ContinuationScore| Likelihood {
        largest: score.logprob == largest,
        tint: tint(score.logprob / score.tokens.max(1) as f64),
        text: limits::text(score.text, SHORT_TEXT_BYTES),
        logprob: format!("{:.3}", score.logprob),
        tokens: score.tokens,
    };
    scores.into_iter().map(likelihood).collect()
}

fn facts(sample: &Sample) -> Vec<(String, String)> {
    let mut facts: Vec<(String, String)> = Vec::new();
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    if let Some(completion) = &sample.completion {
        if completion.tokens() > 0 {
            fact("tokens", completion.tokens().to_string());
        }
        let seconds = completion.timings.prefill_s + completion.timings.decode_s;
        if seconds > 0.0 {
            fact("seconds", format!("{seconds:.3}"));
        }
        if sample.truncated() {
            fact("end", "cut off by the token budget".to_owned());
        }
    }
    if let Some(score) = &sample.score {
        // A count of zero says that nothing of the kind was there.
        for (name, number) in score.metrics.iter().filter(|(_, number)| *number != 0.0) {
            fact(metric_words(name), format!("{number:.3}"));
        }
        if let Some(mark) = &score.evidence.mark {
            fact("final mark", mark.clone());
        }
        if !score.evidence.rivals.is_empty() {
            fact("other answers", score.evidence.rivals.join(", "));
        }
        if let Some(reason) = &score.evidence.reason {
            fact("reason", reason.clone());
        }
        for (scorer, value) in &score.evidence.values {
            fact(scorer, value.to_string());
        }
        for (scorer, text) in &score.evidence.explanations {
            fact(&format!("{scorer} says"), text.clone());
        }
    }
    for (name, value) in &sample.covariates {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        facts.push((name.clone(), text));
    }
    facts.iter_mut().for_each(|(_, value)| *value = limits::text(std::mem::take(value), SHORT_TEXT_BYTES));
    facts
}
