//! The complete study as data.
use serde::Serialize;

use super::analysis::{Analysis, analyse};
use super::evaluation::Evaluation;
use super::formula::FormulaFit;
use super::listing::OptimiserStudy;
use super::models::{paper_order, paper_tables};
use super::numbers::NumberDistribution;
use super::pooled::{Pooled, pooled};
use super::remarks::{Claim, claims, recommendations};
use super::result_table::ResultTable;
use super::{figures, formula, listing, variant_tables};
use crate::gsm_symbolic::published::number_effects;
use earnest_stats::holm;
use earnest_tasks::suite::gsm_symbolic::Prompt;

/// Version of [`Study`]'s JSON form.
pub const STUDY_FORMAT: u32 = 1;

const PAPER: &str = "Being Statistically Earnest: a re-evaluation of GSM-Symbolic";

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyRun {
    pub run: String,
    /// Name of the model in the tables.
    pub model: String,
    pub prompts: Vec<Prompt>,
    /// Identity of its questions, in sentences.
    pub questions: Vec<String>,
    /// Reasons for its numbers not being comparable with the paper's, as predicates of the run.
    pub limits: Vec<String>,
}

/// Models selected for the other four prompts: a drop in accuracy on the GSM prompt with p < .05 in GLMM 1, uncorrected; strongest
/// first (section 3.5 of the paper, as its code does it).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Selection {
    /// The paper's ten models.
    pub published: Vec<String>,
    /// The paper's models without artefacts.
    pub published_without_artefacts: Vec<String>,
    /// Selection by our converged fits, the one in use.
    pub ours: Vec<String>,
    /// Selection by lme4's default settings on our rows, as the study would have made it.
    pub ours_by_lme4: Vec<String>,
}

/// All results of the paper, compared with ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Study {
    /// [`STUDY_FORMAT`].
    pub format: u32,
    pub paper: String,
    pub runs: Vec<StudyRun>,
    pub selection: Selection,
    /// The paper's counts, with and without artefacts, and ours.
    pub claims: Vec<Claim>,
    /// Effects pooled over prompts, and over the paper's models.
    pub pooled: Pooled,
    /// Tables 2 to 15.
    pub tables: Vec<ResultTable>,
    /// Figures 1 to 11.
    pub figures: Vec<ResultTable>,
    /// Listing 6.
    pub listing_6: OptimiserStudy,
    pub numbers: Option<NumberDistribution>,
    /// The default mixed model of every model that was run.
    pub formulas: Vec<FormulaFit>,
    /// Every fit with its diagnoses.
    pub analyses: Vec<Analysis>,
    /// Discrepancies between paper and code, with the choice made here.
    pub recommendations: Vec<String>,
}

impl Study {
    /// Analyses evaluations, at most one per model and prompt. `numbers` is the distribution of the questions' integers (Figure 7).
    pub fn new(runs: Vec<StudyRun>, evaluations: Vec<Evaluation>, numbers: Option<NumberDistribution>) -> Self {
        let mut analyses = analyse(evaluations);
        analyses.sort_by_key(|analysis| (analysis.prompt, paper_order(&analysis.model)));
        let selection = Selection {
            published: number_effects().iter().map(|row| row.model.clone()).collect(),
            published_without_artefacts: variant_tables::published_drops_without_artefacts(),
            ours: selected(&analyses),
            ours_by_lme4: selected_by(&analyses, Analysis::is_significant_drop_by_lme4, |analysis| {
                analysis.glmm1.lme4.as_ref()?.variant.map(|effect| effect.estimate)
            }),
        };
        let claims = claims(&analyses);
        Study {
            format: STUDY_FORMAT,
            paper: PAPER.to_owned(),
            runs,
            selection,
            claims,
            pooled: pooled(&analyses),
            tables: variant_tables::tables(&analyses),
            figures: figures::figures(&analyses, numbers.as_ref()),
            listing_6: listing::study(&analyses),
            numbers,
            formulas: formula::fits(&analyses),
            analyses,
            recommendations: recommendations(),
        }
    }

    /// Returns what the runs say of each conclusion of the paper: the sentences of its claims.
    pub fn said(&self) -> Vec<(&'static str, String)> {
        let mut found: Vec<(&'static str, String)> = Vec::new();
        for claim in self.claims.iter().filter(|claim| !claim.says.is_empty()) {
            match found.iter_mut().find(|(conclusion, _)| *conclusion == claim.conclusion) {
                Some((_, text)) => *text = format!("{text} {}", claim.says),
                None => found.push((claim.conclusion, claim.says.clone())),
            }
        }
        // The drop is what the first conclusion is about.
        if let Some((_, text)) = found.first_mut() {
            let over_prompts = self.pooled.says();
            if !over_prompts.is_empty() {
                *text = format!("{text} {over_prompts}");
            }
        }
        found
    }

    /// True if a row of the table is of a model that was run, whether or not it has an estimate.
    pub(super) fn is_in(&self, table: &ResultTable) -> bool {
        table.rows.iter().any(|row| self.runs.iter().any(|run| run.model == row.name))
    }

    /// Returns the identity of the questions behind our numbers in a few words for every table and figure; none without runs.
    pub fn identity(&self) -> Option<String> {
        let mut found: Vec<(String, Vec<&str>)> = Vec::new();
        for run in &self.runs {
            let words: Vec<String> = run.questions.iter().map(|note| in_short(note)).collect();
            let words = if words.is_empty() { "identity not known".to_owned() } else { words.join("; ") };
            match found.iter_mut().find(|(known, _)| *known == words) {
                Some((_, models)) if models.contains(&run.model.as_str()) => {}
                Some((_, models)) => models.push(&run.model),
                None => found.push((words, vec![&run.model])),
            }
        }
        let several = found.len() > 1;
        let texts = found.into_iter().map(|(words, models)| match several {
            true => format!("{}: {words}", models.join(", ")),
            false => words,
        });
        let all: Vec<String> = texts.collect();
        (!all.is_empty()).then(|| format!("Questions of ours: {}.", all.join("; ")))
    }

    /// Returns the limits that keep our numbers from being compared with the paper's, other than the questions, in a few words.
    pub fn differs(&self) -> Option<String> {
        let mut limits: Vec<&str> = Vec::new();
        for limit in self.runs.iter().flat_map(|run| &run.limits) {
            if !limits.contains(&limit.as_str()) {
                limits.push(limit);
            }
        }
        let alike = limits.iter().all(|limit| self.runs.iter().all(|run| run.limits.iter().any(|own| own == limit)));
        let whose = if alike { "the run" } else { "some runs differ; a run" };
        let more = limits.len().saturating_sub(LIMITS);
        let more = if more > 0 { format!(". And {more} more") } else { String::new() };
        limits.truncate(LIMITS);
        (!limits.is_empty()).then(|| format!("Not as in the paper: {whose} {}{more}.", limits.join(". It ")))
    }

    /// Returns the identity of the runs' questions and the limits of the comparison with the paper, a sentence for each with its models.
    pub fn comparability(&self) -> Vec<String> {
        let mut notes: Vec<(String, bool, Vec<&str>)> = Vec::new();
        for run in &self.runs {
            let limits = run.limits.iter().map(|limit| (format!("the run {limit}."), true));
            let questions = run.questions.iter().map(|question| (question.clone(), false));
            for (note, is_limit) in questions.chain(limits) {
                match notes.iter_mut().find(|(known, ..)| *known == note) {
                    Some((.., models)) if models.contains(&run.model.as_str()) => {}
                    Some((.., models)) => models.push(&run.model),
                    None => notes.push((note, is_limit, vec![&run.model])),
                }
            }
        }
        let mut models: Vec<&str> = self.runs.iter().map(|run| run.model.as_str()).collect();
        models.sort_unstable();
        models.dedup();
        let sentence = |(note, is_limit, of): (String, bool, Vec<&str>)| match (is_limit, of.len() == models.len()) {
            (true, true) => format!("Not as in the paper: {note}"),
            (true, false) => format!("Not as in the paper, {}: {note}", of.join(", ")),
            (false, true) => note,
            (false, false) => format!("{}: {note}", of.join(", ")),
        };
        notes.into_iter().map(sentence).collect()
    }

    /// Holm's p value of a model over the models of its prompt.
    pub(super) fn holm(&self, analysis: &Analysis) -> Option<f64> {
        let number = paper_tables(analysis.prompt).0;
        let table = self.tables.iter().find(|table| table.number == number)?;
        table.rows.iter().find(|row| row.name == analysis.model)?.cells.last()?.ours
    }

    pub fn analysis(&self, model: &str, prompt: Prompt) -> Option<&Analysis> {
        find(&self.analyses, model, prompt)
    }
}

/// Limits named beside every table; more are counted.
const LIMITS: usize = 4;

/// A sentence on the identity of questions in a few words: what it says before the first comma of its details.
fn in_short(note: &str) -> String {
    let note = note.trim_end_matches('.').trim_start_matches("The ");
    let short = note
        .replacen(
            "originals are GSM-Base: all 100 known GSM8K questions",
            "originals published (all 100 of GSM-Base)",
            1,
        )
        .replacen(
            "variants are the published GSM-Symbolic main set (98 of 98 known questions",
            "variants published (98 of 98 known questions agree",
            1,
        )
        .replacen("variants are not the published GSM-Symbolic main set:", "variants not the published ones:", 1)
        .replacen("questions are drawn from", "not the paper's: drawn from", 1);
    let end = short.find("agree").map_or_else(|| short.find(", ").unwrap_or(short.len()), |at| at + "agree".len());
    let close = if short[..end].matches('(').count() > short[..end].matches(')').count() { ")" } else { "" };
    format!("{}{close}", &short[..end])
}

/// Models to evaluate on the other prompts, strongest drop first.
pub fn selected(analyses: &[Analysis]) -> Vec<String> {
    selected_by(analyses, Analysis::is_significant_drop, |analysis| {
        analysis.glmm1.variant.map(|effect| effect.estimate)
    })
}

fn selected_by(
    analyses: &[Analysis],
    chosen: impl Fn(&Analysis) -> bool,
    estimate: impl Fn(&Analysis) -> Option<f64>,
) -> Vec<String> {
    let on_gsm = analyses.iter().filter(|analysis| analysis.prompt == Prompt::Gsm && chosen(analysis));
    let mut found: Vec<(f64, &str)> =
        on_gsm.map(|analysis| (estimate(analysis).unwrap_or(0.0), analysis.model.as_str())).collect();
    found.sort_by(|left, right| left.0.total_cmp(&right.0));
    found.into_iter().map(|(_, model)| model.to_owned()).collect()
}

pub(super) fn find<'a>(analyses: &'a [Analysis], model: &str, prompt: Prompt) -> Option<&'a Analysis> {
    analyses.iter().find(|analysis| analysis.prompt == prompt && analysis.model == model)
}

/// The paper's names in printed order, then those that only our runs have.
pub(super) fn with_ours<'a>(
    printed: impl Iterator<Item = &'a str>,
    ours: impl Iterator<Item = &'a str>,
) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in printed.chain(ours) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Holm's adjustment of a family in which some tests have no result. Such a test counts as p = 1, as in the study's code, and has no
/// adjusted value.
pub(super) fn holm_with_gaps(p_values: &[Option<f64>]) -> Vec<Option<f64>> {
    let filled: Vec<f64> = p_values.iter().map(|p| p.unwrap_or(1.0)).collect();
    let adjusted = holm(&filled).expect("p values of effects are finite numbers from 0 to 1");
    p_values.iter().zip(adjusted).map(|(p, adjusted)| p.map(|_| adjusted)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_short() {
        for (note, short) in [
            ("The originals are GSM-Base: all 100 known GSM8K questions.", "originals published (all 100 of GSM-Base)"),
            (
                "The variants are the published GSM-Symbolic main set (98 of 98 known questions, Kolmogorov-Smirnov distance of the \
                 integers 0.1201 (published 0.1201)).",
                "variants published (98 of 98 known questions agree)",
            ),
            (
                "The variants are not the published GSM-Symbolic main set: 0 of 98 known questions agree, 5000 rows of 100 templates; \
                 accuracies are not those of the published questions.",
                "variants not the published ones: 0 of 98 known questions agree",
            ),
            (
                "The questions are drawn from 16 templates of earnest, not from the paper's.",
                "not the paper's: drawn from 16 templates of earnest",
            ),
        ] {
            assert_eq!(in_short(note), short);
        }
    }

    #[test]
    fn models_with_other_questions_are_named() {
        let run = |model: &str, note: &str| StudyRun {
            run: model.to_owned(),
            model: model.to_owned(),
            prompts: Vec::new(),
            questions: vec![note.to_owned()],
            limits: vec!["asks 10 of the 50 variants of a template".to_owned()],
        };
        let own = "The questions are drawn from 16 templates of earnest, not from the paper's.";
        let known = "The originals are GSM-Base: all 100 known GSM8K questions.";
        let study = |runs| Study::new(runs, Vec::new(), None);
        assert_eq!(study(Vec::new()).identity(), None);
        let alike = study(vec![run("a", own), run("b", own)]);
        assert_eq!(
            alike.identity().unwrap(),
            "Questions of ours: not the paper's: drawn from 16 templates of earnest."
        );
        let text = study(vec![run("a", own), run("b", known)]).identity().unwrap();
        assert!(text.contains("a: not the paper's") && text.contains("b: originals published"), "{text}");
        assert_eq!(alike.differs().unwrap(), "Not as in the paper: the run asks 10 of the 50 variants of a template.");
    }
}
