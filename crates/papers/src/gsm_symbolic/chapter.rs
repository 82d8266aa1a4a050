//! The study's figures as chapters of a report.
use super::drawing::drawings_of;
use super::evaluation::Evaluation;
use super::numbers::NumberDistribution;
use super::study::Study;
use earnest_report::page::{Chapter, ReportRun};
use earnest_results::{Mode, Origin};
use earnest_tasks::suite::gsm_symbolic::Prompt;

/// Suites with the study's kind of questions.
const SUITES: [&str; 2] = ["gsm-symbolic", "gsm-mini"];

/// Chapters of a report: one for each suite with runs on both originals and variants.
pub fn chapters(runs: &[ReportRun]) -> Vec<Chapter> {
    SUITES.iter().filter_map(|suite| chapter(suite, runs)).collect()
}

fn chapter(suite: &str, runs: &[ReportRun]) -> Option<Chapter> {
    let mut notes = Vec::new();
    let mut evaluations: Vec<Evaluation> = Vec::new();
    let of_suite = || {
        runs.iter().filter(move |run| {
            let settings = &run.document.manifest.settings;
            settings.suite == suite && settings.origin() != Origin::Log
        })
    };
    for run in of_suite() {
        let mut found: Vec<Evaluation> = Vec::new();
        let mut problem = None;
        for sample in &run.samples {
            let Ok(prompt) = sample.task.parse::<Prompt>() else { continue };
            let index = found.iter().position(|one| one.prompt == prompt).unwrap_or_else(|| {
                found.push(Evaluation::new(&run.label, prompt));
                found.len() - 1
            });
            if let Err(reason) = found[index].add(sample) {
                problem.get_or_insert(reason);
            }
        }
        if let Some(reason) = problem {
            notes.push(format!("{} is not in these figures: {reason}.", run.label));
            continue;
        }
        for one in found {
            let has = |variant: bool| one.rows.iter().any(|row| row.variant == variant);
            if has(false) && has(true) {
                evaluations.push(one);
            } else {
                notes.push(format!(
                    "{}, {} prompt: not in these figures, because it has no answers to both originals and variants.",
                    run.label, one.prompt
                ));
            }
        }
    }
    if evaluations.is_empty() {
        return None;
    }
    // In a conversation the question is one text with its worked examples, whose numbers are not the study's.
    let numbers = of_suite().find(|run| run.document.manifest.settings.prompt_mode == Mode::Raw).map(questions);
    let study = Study::new(Vec::new(), evaluations, numbers);
    for analysis in &study.analyses {
        if let Some(problem) = analysis.glmm1.problem() {
            let why = analysis.glmm1.explanations.first().map_or(problem, String::as_str);
            let why = why.trim_end_matches('.');
            notes.push(format!("{}, {} prompt: no odds ratio. {why}.", analysis.model, analysis.prompt));
        }
    }
    if let Some((numbers, (statistic, p))) =
        study.numbers.as_ref().and_then(|numbers| Some((numbers, numbers.statistic.zip(numbers.p)?)))
    {
        notes.push(format!(
            "Figure 7: {} integers in originals, {} in variants; Kolmogorov-Smirnov D = {statistic:.3}, {}.",
            numbers.base_integers,
            numbers.variant_integers,
            earnest_report::p_sentence(p)
        ));
    }
    Some(Chapter {
        id: suite.to_owned(),
        title: "Variants against originals".to_owned(),
        lead: format!(
            "The figures of the GSM-Symbolic study, by its numbers, drawn from these runs of {suite}. Odds ratios are of a mixed \
             model of each model and prompt (right ~ variant + (1 | template), fully converged): below 1, variants are answered \
             worse than the questions they were made from. Hollow or hatched: p of .05 or more, each test for itself. `earnest \
             reproduce gsm-symbolic` sets the published values beside them."
        ),
        notes,
        figures: drawings_of(&study, suite),
    })
}

/// Distribution of the integers in a run's questions, each question once.
fn questions(run: &ReportRun) -> NumberDistribution {
    let first = run.samples.first().map(|sample| sample.task.as_str());
    // Every prompt asks the same questions; one is enough.
    let asked = run.samples.iter().filter(|sample| sample.sample == 0 && Some(sample.task.as_str()) == first);
    NumberDistribution::of_questions(asked.filter_map(|sample| {
        let set = sample.covariates.get("set").and_then(serde_json::Value::as_str);
        Some((set, run.questions.get(&sample.item)?))
    }))
}
