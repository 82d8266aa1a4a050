//! Samples: the search, and wrong answers.
use earnest_results::{Origin, Sample};
use minijinja::{Value, context};

use crate::markup::{Markup, html};
use crate::page::ReportRun;
use crate::page::data::cut;
use crate::page::run::{RIGHT, outcome};

/// Renders the search, and the first two wrong answers of every task and run, which need no script.
pub fn samples(runs: &[ReportRun]) -> Markup {
    let shown = runs.iter().map(|run| {
        let of_log = run.document.manifest.settings.origin() == Origin::Log;
        let wrong = |task| run.samples.iter().filter(move |sample| sample.task == task && is_wrong(sample, of_log));
        let examples = run.tasks().into_iter().flat_map(|task| wrong(task).take(2));
        context!(label => &run.label, examples => examples.map(|sample| example(run, sample)).collect::<Vec<_>>())
    });
    let samples: usize = runs.iter().map(|run| run.samples.len()).sum();
    html("browser.html", context!(samples, runs => shown.collect::<Vec<_>>()))
}

/// True for a wrong answer or none. A log's numbers between right and wrong are neither.
fn is_wrong(sample: &Sample, of_log: bool) -> bool {
    match &sample.score {
        Some(score) if of_log => score.failure.is_some(),
        _ => outcome(sample) != RIGHT,
    }
}

fn example(run: &ReportRun, sample: &Sample) -> Value {
    let answer = match (&sample.completion, &sample.failure) {
        (Some(_), _) => cut(&sample.completion_text()),
        (None, Some(failure)) => failure.message.clone(),
        (None, None) => String::new(),
    };
    context!(
        item => &sample.item,
        outcome => outcome(sample),
        question => run.questions.get(&sample.item).unwrap_or_default(),
        gold => &sample.gold,
        answer,
    )
}
