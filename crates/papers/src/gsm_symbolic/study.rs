//! The complete study as data.
use serde::Serialize;

use super::analysis::{Analysis, analyse};
use super::evaluation::Evaluation;
use super::formula::FormulaFit;
use super::listing::OptimiserStudy;
use super::models::{paper_order, paper_tables};
use super::numbers::NumberDistribution;
use super::remarks::{Claim, claims, recommendations};
use super::result_table::ResultTable;
use super::{figures, formula, listing, variant_tables};
use earnest_stats::holm;
use earnest_tasks::suite::gsm_symbolic::Prompt;
use earnest_tasks::suite::gsm_symbolic::published::number_effects;

/// Version of [`Study`]'s JSON form.
pub const STUDY_FORMAT: u32 = 1;

const PAPER: &str = "Being Statistically Earnest: a re-evaluation of GSM-Symbolic";

/// A run in the study.
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
            tables: variant_tables::tables(&analyses),
            figures: figures::figures(&analyses, numbers.as_ref()),
            listing_6: listing::study(&analyses),
            numbers,
            formulas: formula::fits(&analyses),
            analyses,
            recommendations: recommendations(),
        }
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

    /// The analysis of a model and prompt.
    pub fn analysis(&self, model: &str, prompt: Prompt) -> Option<&Analysis> {
        find(&self.analyses, model, prompt)
    }
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
