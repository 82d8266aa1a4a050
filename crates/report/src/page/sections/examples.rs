//! Wrong answers.
use earnest_results::{Origin, Sample};
use std::fmt::Write;

use super::WRITES;
use crate::page::ReportRun;
use crate::page::data::cut;
use crate::page::run::outcome;
use crate::plot::escape;

/// Renders the first two wrong answers of every task and run, which need no script.
pub fn examples(runs: &[ReportRun]) -> String {
    let mut html = String::new();
    for (place, run) in runs.iter().enumerate() {
        write!(
            html,
            "<details class=\"static\" data-run=\"{place}\"><summary>First wrong answers: {}</summary>",
            escape(&run.label)
        )
        .expect(WRITES);
        let mut any = false;
        let of_log = run.document.manifest.settings.origin() == Origin::Log;
        for task in run.tasks() {
            let wrong = run.samples.iter().filter(|sample| sample.task == task && is_wrong(sample, of_log));
            for sample in wrong.take(2) {
                any = true;
                html.push_str(&example(run, sample));
            }
        }
        html.push_str(if any { "</details>" } else { "<p>None.</p></details>" });
    }
    html
}

/// True for a wrong answer or none. A log's numbers between right and wrong are neither.
fn is_wrong(sample: &Sample, of_log: bool) -> bool {
    match &sample.score {
        Some(score) if of_log => score.failure.is_some(),
        _ => outcome(sample) != "correct",
    }
}

fn example(run: &ReportRun, sample: &Sample) -> String {
    let question = run.questions.get(&sample.item).unwrap_or_default();
    let answer = match (&sample.completion, &sample.failure) {
        (Some(_), _) => cut(&sample.completion_text()),
        (None, Some(failure)) => failure.message.clone(),
        (None, None) => String::new(),
    };
    format!(
        "<div class=\"example\"><p class=\"dim\">{} · {}</p><pre>{}</pre><p>expected</p><pre>{}</pre><p>answered</p><pre>{}</pre></div>",
        escape(&sample.item),
        escape(outcome(sample)),
        escape(question),
        escape(&sample.gold),
        escape(&answer),
    )
}
