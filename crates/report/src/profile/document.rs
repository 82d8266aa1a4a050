//! A profile as data.
use std::collections::BTreeMap;

use earnest_results::{Manifest, Origin, Status, quoted};
use serde::Serialize;

use earnest_stats::psychometric::{Counted, Limit, Step};
use earnest_stats::{Z95, wilson};
use earnest_tasks::suite::profile::{
    Family, FormCount, NAME, Notation, ProfileOptions, PromptForm, SkillResult, ThinkingTask, best_form, form_of_skill,
    results,
};

use super::anatomy::{Anatomy, WrongAnswers};
use super::notations::Notations;
use super::thinking::ThinkingAnswers;
use super::{NotationResult, ThinkingResult};
use crate::ReportError;
use earnest_results::store::{Filter, RunRecord, Store};

/// Right answers beyond the shortest length, without those of chance, from which a limit below it is in doubt.
const LATE: f64 = 5.0;

/// Shares above chance between which the interval of a step lies that is neither nearly nothing nor nearly all right.
const NEARLY_NONE: f64 = 0.1;
const NEARLY_ALL: f64 = 0.9;

/// Version of [`NumeracyProfile`] as JSON.
const PROFILE_FORMAT: u32 = 1;

/// Limits and errors of a model.
#[derive(Debug, Clone, Serialize)]
pub struct NumeracyProfile {
    pub format: u32,
    pub run: String,
    pub model: String,
    pub finished: bool,
    /// Answers, those of notations included, and completion tokens.
    pub answers: usize,
    pub tokens: u64,
    /// Samples without an answer: prompts that do not fit, requests that failed.
    pub failed: usize,
    /// Seconds of generation.
    pub seconds: f64,
    /// Form of the prompts: `chat`, `raw`, or either with a number of worked examples, as in `raw+3`, which skills may have otherwise; none while the
    /// screening is not over.
    pub form: Option<String>,
    /// Answers to the screening by form; empty where one form was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub screening: Vec<FormShare>,
    pub skills: Vec<SkillProfile>,
    pub anatomy: Anatomy,
    /// The same sums in several notations, plain digits first.
    pub notations: Vec<NotationResult>,
    /// Accuracy and tokens against a cap on thinking, where it was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thinking: Vec<ThinkingResult>,
    /// Results of the skills, from which the rest is computed.
    #[serde(skip)]
    pub(super) results: Vec<SkillResult>,
    /// Questions of the skills without an answer, by task and length.
    #[serde(skip)]
    pub(super) unanswered: BTreeMap<(String, usize), usize>,
    /// Options of the run, and the options of the command that name its model.
    #[serde(skip)]
    pub(super) options: ProfileOptions,
    #[serde(skip)]
    pub(super) source: String,
    /// Version of the suite that asked.
    #[serde(skip)]
    pub(super) version: String,
}

/// Right answers to the screening in a form of prompts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FormShare {
    pub form: String,
    /// The form for people.
    pub title: String,
    /// Right answers, and questions asked, those without an answer included; forms that are not shown to be worse are asked more.
    pub right: usize,
    pub asked: usize,
    /// The same of the first round, which every form has.
    pub first_right: usize,
    pub first_asked: usize,
    /// Share of right answers to the first round, with its 95 % interval.
    pub share: f64,
    pub low: f64,
    pub high: f64,
    /// Questions of the first round without an answer, which count as wrong: requests that failed, prompts that do not fit.
    pub failed: usize,
    /// True if the form is shown to be worse than the one that is asked (McNemar's exact test at 5 %).
    pub worse: bool,
}

/// Limits of a skill.
#[derive(Debug, Clone, Serialize)]
pub struct SkillProfile {
    pub task: String,
    pub family: Family,
    pub title: String,
    pub shortest: usize,
    pub longest: usize,
    pub chance: f64,
    /// Form in which it is asked, where that is not the profile's: at least two more of four questions were right in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<String>,
    pub asked: usize,
    /// 90, 50 and 10 % of the way from chance to certainty. Where success does not fall with the length, the lengths from which it stays below for good; null if
    /// it never does.
    pub limits: Vec<Limit>,
    /// False if success does not fall with the length: `counts` say what there is.
    pub falls: bool,
    /// p value of the test of that: intervals assume falling alone where it is above 0.04.
    pub p_falls: f64,
    /// False if success does not fall, or falls otherwise than in one smooth curve: `steps` say how.
    pub fits: bool,
    /// Share of answers simulated from such curves that look as little like one as these.
    pub p_fits: f64,
    /// Neighbouring lengths with one share of right answers; empty where a smooth curve fits.
    pub steps: Vec<Step>,
    /// True if the interval is as narrow as was asked for.
    pub narrow: bool,
    pub counts: Vec<Counted>,
}

/// Reads the profile of a stored run.
///
/// # Errors
/// If the run is of another suite, or its rows cannot be read.
pub fn profile(store: &Store, run: &RunRecord) -> Result<NumeracyProfile, ReportError> {
    let manifest = &run.manifest;
    if manifest.settings.suite != NAME || manifest.settings.origin() != Origin::Evaluated {
        let message = format!("{} is a run of {}, not a numeracy profile", manifest.run, manifest.settings.suite);
        return Err(ReportError::setting(message)
            .hint("`earnest profile --model MODEL` makes one; `earnest runs list` shows which there are"));
    }
    store.check_seal(run)?;
    let options = ProfileOptions::from_json(&manifest.settings.suite_options)?;
    if !options.shared.is_empty() {
        let message = format!("{} has the questions of a comparison, and is no numeracy profile", manifest.run);
        return Err(ReportError::setting(message).hint("name the runs of the two numeracy profiles that it compared"));
    }
    let mut answers: Vec<(String, usize, bool)> = Vec::new();
    let mut wrong = WrongAnswers::default();
    let (mut tokens, mut failed, mut unanswered) = (0, 0, BTreeMap::new());
    let mut notations = Notations::default();
    let mut thinking = ThinkingAnswers::default();
    let mut asked = 0;
    let mut forms: Vec<FormCount> = options.forms.iter().map(|&form| FormCount::new(form)).collect();
    for sample in store.samples(run, Filter::default()).indexed() {
        let (index, sample) = sample?;
        tokens += sample.completion.as_ref().map_or(0, |completion| completion.tokens() as u64);
        let screened = PromptForm::of_task(&sample.task);
        if let Some(count) = forms.iter_mut().find(|count| Some(count.form) == screened) {
            count.add(&sample.covariates, sample.score.as_ref().map(|score| score.correct));
        }
        let length = sample.covariates.get("length").and_then(|length| usize::try_from(length.as_u64()?).ok());
        let (Some(score), Some(length)) = (&sample.score, length) else {
            failed += 1;
            if let (Some(length), None) = (length, screened) {
                *unanswered.entry((sample.task, length)).or_default() += 1;
            }
            continue;
        };
        asked += 1;
        if screened.is_some() {
            continue;
        }
        if let Some(notation) = Notation::of_task(&sample.task) {
            notations.add(notation, index, sample);
            continue;
        }
        if let Some(kind) = ThinkingTask::of_task(&sample.task) {
            thinking.add(kind, length, &sample);
            continue;
        }
        wrong.add(&sample, score, length);
        answers.push((sample.task, length, score.correct));
    }
    let results = results(&options, answers.iter().map(|(task, length, right)| (task.as_str(), *length, *right)));
    let mut skills: Vec<SkillProfile> = results.iter().map(skill).collect();
    // Other questions follow the screening.
    let is_over = forms.len() == 1 || forms.iter().map(|count| count.answers.len()).sum::<usize>() < asked + failed;
    let best = best_form(&forms);
    for skill in skills.iter_mut().filter(|_| is_over) {
        skill.form = form_of_skill(&forms, &skill.task).filter(|form| Some(*form) != best).map(|form| form.to_string());
    }
    let of_best = forms.iter().find(|count| Some(count.form) == best).filter(|_| forms.len() > 1);
    let screening = of_best.map_or_else(Vec::new, |best| {
        forms.iter().filter_map(|count| form_share(count, best)).collect::<Vec<FormShare>>()
    });
    Ok(NumeracyProfile {
        format: PROFILE_FORMAT,
        run: manifest.run.clone(),
        model: manifest.model.name.clone(),
        finished: manifest.status == Status::Finished,
        answers: asked,
        tokens,
        failed,
        seconds: manifest.generation_s,
        form: best.filter(|_| is_over).map(|form| form.to_string()),
        screening,
        anatomy: wrong.anatomy(&skills),
        notations: notations.results(store, run)?,
        thinking: thinking.results(options.thinking.as_ref()),
        skills,
        results,
        options,
        unanswered,
        source: model_options(manifest),
        version: manifest.settings.suite_version.clone(),
    })
}

/// Options of a command that asks the model of a run again.
fn model_options(manifest: &Manifest) -> String {
    match &manifest.settings.endpoint {
        Some(endpoint) => {
            let (url, name) = (quoted(&endpoint.base_url), quoted(&endpoint.model));
            format!("--engine openai --base-url {url} --model-name {name}")
        }
        None => format!("--model {}", quoted(&manifest.model.path)),
    }
}

fn form_share(count: &FormCount, best: &FormCount) -> Option<FormShare> {
    let share = wilson(count.first_right() as f64, count.first as f64, Z95)?;
    Some(FormShare {
        form: count.form.to_string(),
        title: count.form.title(),
        right: count.right(),
        asked: count.answers.len(),
        first_right: count.first_right(),
        first_asked: count.first,
        share: share.value,
        low: share.low,
        high: share.high,
        failed: count.failed,
        worse: count.is_worse(best),
    })
}

fn skill(result: &SkillResult) -> SkillProfile {
    let SkillResult { skill, measured } = result;
    SkillProfile {
        task: skill.task.clone(),
        family: skill.family,
        title: skill.title.clone(),
        shortest: skill.shortest,
        longest: skill.longest,
        chance: skill.chance,
        form: None,
        asked: measured.counts.iter().map(|one| one.asked).sum(),
        limits: measured.limits.clone(),
        falls: measured.falls,
        p_falls: measured.monotone.p,
        fits: measured.fits,
        p_fits: measured.check.p,
        steps: measured.steps.clone(),
        narrow: measured.narrow,
        counts: measured.counts.clone(),
    }
}

impl NumeracyProfile {
    /// The form of the prompts; none while the screening is not over.
    pub fn asked_form(&self) -> Option<PromptForm> {
        self.form.as_ref()?.parse().ok()
    }

    /// The form in which a skill is asked; none while the screening is not over.
    pub fn form_of(&self, task: &str) -> Option<PromptForm> {
        let own = self.skill(task).and_then(|skill| skill.form.as_ref()?.parse().ok());
        own.or_else(|| self.asked_form())
    }

    /// The skill of this task.
    pub fn skill(&self, task: &str) -> Option<&SkillProfile> {
        self.skills.iter().find(|skill| skill.task == task)
    }
}

impl SkillProfile {
    /// Share of right answers over the lengths that were asked.
    pub(super) fn right_share(&self) -> f64 {
        let right: usize = self.counts.iter().map(|one| one.right).sum();
        right as f64 / self.asked.max(1) as f64
    }

    /// The 50 % limit; none where nothing was answered or success never falls through it for good.
    pub fn half(&self) -> Option<&Limit> {
        self.limits.get(1).filter(|limit| self.asked > 0 && self.has_limit(limit))
    }

    /// True where a single limit does not say it all: success grows with the length somewhere, or is shown to stay between nearly all and nearly nothing over a
    /// step after the first. A sharp end, after lapses or not, is no smooth curve either, but one limit describes it.
    pub(super) fn is_stepped(&self) -> bool {
        let known = |share: f64| (share - self.chance) / (1.0 - self.chance);
        let is_between = |step: &Step| known(step.low) > NEARLY_NONE && known(step.high) < NEARLY_ALL;
        !self.falls || (!self.fits && self.steps.iter().skip(1).any(is_between))
    }

    /// True where success is below half at the shortest length and more frequent beyond it, with several right answers there that are not chance: a limit
    /// below the shortest length is then what a curve that never grows would have, and says nothing.
    pub(super) fn is_late(&self) -> bool {
        let (first, later): (Vec<&Counted>, Vec<&Counted>) =
            self.counts.iter().partition(|one| one.length == self.shortest);
        let right_beyond_chance = |counts: &[&Counted]| {
            let asked: usize = counts.iter().map(|one| one.asked).sum();
            let right: usize = counts.iter().map(|one| one.right).sum();
            (right as f64 - self.chance * asked as f64, asked.max(1) as f64)
        };
        let ((at_first, of_first), (beyond, of_beyond)) = (right_beyond_chance(&first), right_beyond_chance(&later));
        let is_below = self.half().is_some_and(|limit| limit.estimate < self.shortest as f64);
        is_below && beyond >= LATE && beyond / of_beyond > at_first / of_first
    }

    /// True where at least half of the answers at the shortest length are right, as far as chance does not give them.
    pub(super) fn is_half_right_at_first(&self) -> bool {
        let first = self.counts.iter().find(|one| one.length == self.shortest);
        first.is_some_and(|one| 2.0 * one.right as f64 >= (1.0 + self.chance) * one.asked as f64)
    }

    /// False for a limit that success never falls through for good.
    pub(super) fn has_limit(&self, limit: &Limit) -> bool {
        self.falls || limit.estimate.is_finite()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use earnest_tasks::suite::profile::Skill;

    /// A profile of a model that is right up to a length in each skill, with an answer at each of the lengths 1 to 12.
    pub(in crate::profile) fn measured(model: &str, limits: &[(&str, usize)]) -> NumeracyProfile {
        let skills = limits.iter().flat_map(|(name, _)| Skill::named(name).unwrap()).collect();
        let options = ProfileOptions { skills, ..ProfileOptions::default() };
        let answers = options.skills.iter().zip(limits).flat_map(|(skill, &(_, limit))| {
            (1..=12).map(move |length| (skill.task.as_str(), length, length <= limit))
        });
        let results = results(&options, answers);
        NumeracyProfile {
            format: PROFILE_FORMAT,
            run: format!("run of {model}"),
            model: model.to_owned(),
            finished: true,
            answers: 12 * results.len(),
            tokens: 0,
            failed: 0,
            seconds: 0.0,
            form: Some("raw".to_owned()),
            screening: Vec::new(),
            skills: results.iter().map(skill).collect(),
            anatomy: Anatomy::default(),
            notations: Vec::new(),
            thinking: Vec::new(),
            results,
            options,
            unanswered: BTreeMap::new(),
            source: format!("--model {model}.gguf"),
            version: "4.1".to_owned(),
        }
    }
}
