//! The suite: questions, their perturbations, and worked examples before them.
use crate::{agreeing, counted};
use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::annotation::Annotations;
use super::demonstrations::{DemonstrationError, Demonstrations, usable};
use super::extra::DonorPool;
use super::fixed::{Context, perturb};
use super::kind::Kind;
use super::options::{Mode, Options, OptionsError};
use super::perturbation::Perturbed;
use super::problem::{Dataset, Problem, Scale, Split};
use super::reference::{has_program, perturb_all};
use super::score::{Gold, score};
use super::summary;
use super::target::{Numbers, PromptShape, Target, masked, shot_answer, system};
use crate::suite::{Answered, Budget, Item, ItemOrder, Items, Score, Scored, Scoring, Segments, Shot, Summary};

/// Version of items and scoring: the first number changes with the items or their order, the second with the scoring.
pub const VERSION: &str = "6.3";

/// Version of questions and scoring, and of the suite with [`ItemOrder::One`].
pub const QUESTIONS_VERSION: &str = "5.3";

/// Tokens for models that think first.
const THINKING: usize = 8_192;

/// Error of the suite's options and data.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DncError {
    #[error(transparent)]
    Options(#[from] OptionsError),
    #[error("the {0} part of the data has no question")]
    NoQuestions(Split),
    #[error(transparent)]
    Demonstrations(#[from] DemonstrationError),
    #[error("no question is eligible for any of the perturbations asked for")]
    NothingEligible,
}

/// The questions of a data set, by part, and what people wrote on them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Data {
    pub parts: BTreeMap<Split, Vec<Problem>>,
    pub annotations: Annotations,
    /// Remarks on reading them: rows that were passed over.
    pub notes: Vec<String>,
}

/// Condition of a comparison: the examples and the question, each perturbed or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cell {
    /// Clean examples (or none), clean question.
    Original,
    /// Clean examples (or none), perturbed question.
    Attack,
    /// Perturbed examples, perturbed question: in-context defence.
    Defence,
    /// Perturbed examples, clean question: what the defence costs.
    Cost,
}

impl Cell {
    /// The word in ids and covariates.
    pub fn name(self) -> &'static str {
        match self {
            Cell::Original => "original",
            Cell::Attack => "attack",
            Cell::Defence => "defence",
            Cell::Cost => "cost",
        }
    }

    fn examples_are_perturbed(self) -> bool {
        matches!(self, Cell::Defence | Cell::Cost)
    }

    fn question_is_perturbed(self) -> bool {
        matches!(self, Cell::Attack | Cell::Defence)
    }
}

/// A question of the plan.
#[derive(Debug, Clone)]
struct Entry {
    split: Split,
    question: usize,
    target: Target,
    set: u32,
    cell: Cell,
    kind: Option<Kind>,
    draw: u32,
}

/// DNC under given options and data.
#[derive(Debug, Clone)]
pub struct Dnc {
    options: Options,
    data: Data,
    perturbed: BTreeMap<(Split, usize, Kind, u32), Perturbed>,
    demonstrations: Demonstrations,
    entries: Vec<Entry>,
    /// Questions that a perturbation leaves out, by reason.
    left_out: BTreeMap<(Kind, String), usize>,
    /// Items that would repeat the original's prompt byte for byte (numbers replaced).
    identical: BTreeMap<Kind, usize>,
}

impl Dnc {
    /// The suite.
    ///
    /// # Errors
    /// If options or data describe no items.
    pub fn new(options: Options, data: Data) -> Result<Self, DncError> {
        options.check()?;
        for split in &options.splits {
            if data.parts.get(split).is_none_or(Vec::is_empty) {
                return Err(DncError::NoQuestions(*split));
            }
        }
        let mut suite = Dnc {
            options,
            data,
            perturbed: BTreeMap::new(),
            demonstrations: Demonstrations::default(),
            entries: Vec::new(),
            left_out: BTreeMap::new(),
            identical: BTreeMap::new(),
        };
        suite.perturb();
        if suite.perturbed.is_empty() {
            return Err(DncError::NothingEligible);
        }
        if suite.options.demonstrations > 0 {
            let train = suite.data.parts.get(&Split::Train).map(Vec::as_slice).unwrap_or_default();
            suite.demonstrations = Demonstrations::choose(&suite.options, train, &suite.data.annotations)?;
        }
        suite.plan();
        Ok(suite)
    }

    pub fn settings(&self) -> &Options {
        &self.options
    }

    /// Questions that each perturbation leaves out, by reason, with their number.
    pub fn left_out(&self) -> impl Iterator<Item = (Kind, &str, usize)> {
        self.left_out.iter().map(|((kind, reason), count)| (*kind, reason.as_str(), *count))
    }

    /// Questions per perturbation.
    pub fn eligible(&self, kind: Kind) -> usize {
        self.perturbed.keys().filter(|(_, _, of, draw)| *of == kind && *draw == 0).count()
    }

    fn kinds(&self) -> Vec<Kind> {
        self.options.kinds.iter().copied().filter(|kind| kind.applies_to(self.options.dataset)).collect()
    }

    fn perturb(&mut self) {
        for split in self.options.splits.clone() {
            let problems = &self.data.parts[&split];
            let donors = DonorPool::new(problems);
            for kind in self.kinds() {
                let mut leave_out = |reason: String| *self.left_out.entry((kind, reason)).or_default() += 1;
                if self.options.mode == Mode::Reference && has_program(kind) {
                    let (kept, rest) = perturb_all(kind, problems, self.options.seed as u32);
                    for (index, found) in kept {
                        self.perturbed.insert((split, index, kind, 0), found);
                    }
                    rest.iter().for_each(|_| leave_out("the reference's filter leaves it out".to_owned()));
                    continue;
                }
                let draws = if kind.is_random() { self.options.draws } else { 1 };
                for (index, problem) in problems.iter().enumerate() {
                    for draw in 0..draws {
                        let context = Context {
                            seed: self.options.seed,
                            draw,
                            donors: &donors,
                            annotations: &self.data.annotations,
                            describes: false,
                        };
                        match perturb(kind, problem, context) {
                            Ok(found) => {
                                self.perturbed.insert((split, index, kind, draw), found);
                            }
                            Err(reason) => {
                                if draw == 0 {
                                    leave_out(general(&reason));
                                }
                                break;
                            }
                        }
                    }
                }
            }
        }
    }

    /// Questions in their order. Files often have the easy questions first, so the second order draws the passages, each with all its
    /// questions; the first order is that of the files, part by part.
    fn questions_in_order(&self) -> Vec<(Split, usize)> {
        let of_split = |&split: &Split| (0..self.data.parts[&split].len()).map(move |question| (split, question));
        let mut order: Vec<(Split, usize)> = self.options.splits.iter().flat_map(of_split).collect();
        if self.options.order == ItemOrder::Two {
            order.sort_by_cached_key(|&(split, question)| {
                let passage = &self.data.parts[&split][question].body;
                Sha256::digest(format!("dnc order 2\n{passage}"))
            });
        }
        order
    }

    /// A question at a time, each with everything that is compared with it, so that any beginning of the items holds whole
    /// pairs but for the last question's.
    fn plan(&mut self) {
        let mut entries = Vec::new();
        let mut identical: BTreeMap<Kind, usize> = BTreeMap::new();
        let with_examples = self.options.demonstrations > 0;
        for (split, question) in self.questions_in_order() {
            let made: Vec<(Kind, u32)> = self
                .kinds()
                .into_iter()
                .flat_map(|kind| (0..self.options.draws).map(move |draw| (kind, draw)))
                .filter(|(kind, draw)| self.perturbed.contains_key(&(split, question, *kind, *draw)))
                .collect();
            for &target in &self.options.targets {
                for set in 0..if with_examples { self.options.demonstration_sets } else { 1 } {
                    let entry = |cell, kind, draw| Entry { split, question, target, set, cell, kind, draw };
                    let original = entry(Cell::Original, None, 0);
                    let shown = (self.options.numbers == Numbers::Replace).then(|| self.segments(&original));
                    entries.push(original);
                    for &(kind, draw) in &made {
                        let attack = entry(Cell::Attack, Some(kind), draw);
                        if shown.as_ref().is_some_and(|shown| shown.has_prompt_of(&self.segments(&attack))) {
                            *identical.entry(kind).or_default() += 1;
                        } else {
                            entries.push(attack);
                        }
                        if self.options.defence && self.demonstrations.has(kind) {
                            entries.push(entry(Cell::Defence, Some(kind), draw));
                            if draw == 0 {
                                entries.push(entry(Cell::Cost, Some(kind), 0));
                            }
                        }
                    }
                }
            }
        }
        self.entries = entries;
        self.identical = identical;
    }

    fn problem<'a>(&'a self, entry: &Entry) -> &'a Problem {
        let clean = || &self.data.parts[&entry.split][entry.question];
        match entry.kind.filter(|_| entry.cell.question_is_perturbed()) {
            Some(kind) => self
                .perturbed
                .get(&(entry.split, entry.question, kind, entry.draw))
                .map_or_else(clean, |perturbed| &perturbed.problem),
            None => clean(),
        }
    }

    fn shown(&self, problem: &Problem) -> String {
        let text = problem.text();
        if self.options.numbers == Numbers::Replace { masked(&text).0 } else { text }
    }

    fn segments(&self, entry: &Entry) -> Segments {
        let Options { dataset, numbers, .. } = self.options;
        let kind = entry.kind.filter(|_| entry.cell.examples_are_perturbed());
        let shots: Vec<Shot> = self
            .demonstrations
            .of(entry.set, kind)
            .iter()
            .map(|problem| Shot {
                question: self.shown(problem),
                answer: shot_answer(entry.target, numbers, dataset, problem),
            })
            .collect();
        let question = self.shown(self.problem(entry));
        // A prompt without a hidden number must not speak of any.
        let hidden = question.contains("[NUM") || shots.iter().any(|shot| shot.question.contains("[NUM"));
        let system = system(entry.target, if hidden { numbers } else { Numbers::Token }, dataset);
        let raw = (self.options.shape == PromptShape::Raw).then(|| {
            let mut text = format!("{system}\n\n");
            for shot in &shots {
                text.push_str(&format!("Problem: {}\n{}\n\n", shot.question, shot.answer));
            }
            text + &format!("Problem: {question}\n")
        });
        let unmasked = (numbers == Numbers::Replace).then(|| self.problem(entry).text());
        Segments { system: Some(system), shots, question, raw, unmasked, thinking: None, mode: None }
    }

    fn item(&self, entry: &Entry) -> Item {
        let problem = self.problem(entry);
        let source = &self.data.parts[&entry.split][entry.question];
        let dataset = self.options.dataset;
        let kind = entry.kind.map_or("original", Kind::name);
        let found = entry.kind.and_then(|kind| self.perturbed.get(&(entry.split, entry.question, kind, entry.draw)));
        let mut covariates: BTreeMap<String, Value> = BTreeMap::from([
            ("dataset".into(), json!(dataset.name())),
            ("split".into(), json!(entry.split.name())),
            ("kind".into(), json!(kind)),
            ("cell".into(), json!(entry.cell.name())),
            ("target".into(), json!(entry.target.name())),
            ("demonstrations".into(), json!(self.options.demonstrations)),
            ("demonstration_set".into(), json!(entry.set)),
            ("examples".into(), json!(self.examples(entry))),
            ("draw".into(), json!(entry.draw)),
        ]);
        if let Some(kind) = entry.kind {
            covariates.insert("capability".into(), json!(kind.capability().name()));
        }
        if let Some(found) = found {
            covariates.insert("edits".into(), json!(found.edits));
            covariates.insert("eligible".into(), json!(found.reason));
            if let Some(provenance) = &found.provenance {
                covariates.insert("provenance".into(), json!(provenance));
            }
        }
        if !source.solution_type.is_empty() {
            covariates.insert("solution_type".into(), json!(source.solution_type));
        }
        if let Some(scale) = problem.scale {
            covariates.insert("scale".into(), json!(Scale::word(scale)));
        }
        if self.options.numbers == Numbers::Replace {
            covariates.insert("numbers".into(), json!(masked(&problem.text()).1));
        }
        let answer = problem.gold().map(|value| super::expression::plain(&value)).unwrap_or_default();
        let quotient = problem.expression().and_then(|left| left.value().ok());
        let gold = match (dataset, quotient) {
            (Dataset::AsdivA, Some(quotient)) if Some(&quotient) != problem.gold().as_ref() => format!(
                "{}={}, rounded {} to {answer}",
                problem.left_side().unwrap_or_default(),
                super::expression::plain(&quotient),
                problem.remainder.word()
            ),
            (Dataset::AsdivA, _) => format!("{}={answer}", problem.left_side().unwrap_or_default()),
            _ => problem.answer.clone(),
        };
        Item {
            id: format!(
                "dnc/{dataset}/{}/{}/{}/{kind}/{}/{}/{}",
                entry.split,
                source.id,
                entry.target,
                entry.cell.name(),
                entry.set,
                entry.draw
            ),
            task: kind.to_owned(),
            cluster: source.id.clone(),
            covariates,
            segments: self.segments(entry),
            gold,
            budget: Budget { answer: entry.target.budget(), thinking: THINKING },
            stop_strings: match self.options.shape {
                PromptShape::Raw => vec!["\nProblem:".to_owned()],
                PromptShape::Chat => Vec::new(),
            },
            keep_stop: false,
            continuations: Vec::new(),
        }
    }

    fn examples(&self, entry: &Entry) -> &'static str {
        match (self.options.demonstrations, entry.cell.examples_are_perturbed()) {
            (0, _) => "none",
            (_, false) => "clean",
            (_, true) => "perturbed",
        }
    }

    /// Remarks on the items for readers of the results.
    fn notes(&self) -> Vec<String> {
        let mut notes = self.data.notes.clone();
        for kind in self.kinds() {
            let count = self.eligible(kind);
            let total: usize = self.options.splits.iter().map(|split| self.data.parts[split].len()).sum();
            if count < total {
                let reasons: Vec<String> = self
                    .left_out
                    .iter()
                    .filter(|((of, _), _)| *of == kind)
                    .map(|((_, reason), count)| format!("{count}: {reason}"))
                    .collect();
                notes.push(format!(
                    "{kind}: {count} of {} {} eligible ({}).",
                    counted(total, "question"),
                    agreeing(count, "is", "are"),
                    reasons.join("; ")
                ));
            }
        }
        let left: Vec<&str> = self
            .options
            .kinds
            .iter()
            .filter(|kind| !kind.applies_to(self.options.dataset))
            .map(|kind| kind.name())
            .collect();
        if !left.is_empty() {
            notes.push(format!("{} has no {}.", self.options.dataset.title(), left.join(", ")));
        }
        for (kind, count) in &self.identical {
            notes.push(format!(
                "{kind}: {} the original's byte for byte once numbers are replaced and {} not asked: no change there is a \
                 construction, not robustness.",
                if *count == 1 { "1 prompt equals".to_owned() } else { format!("{count} prompts equal") },
                agreeing(*count, "is", "are")
            ));
        }
        let drafts = self.data.annotations.iter().filter(|annotation| annotation.is_draft()).count();
        if drafts > 0 && self.options.kinds.iter().any(|kind| kind.is_annotated()) {
            notes.push(format!(
                "{} of logic and order {}, not the authors': {} a second reader.",
                counted(drafts, "annotation"),
                agreeing(drafts, "is a draft", "are drafts"),
                agreeing(drafts, "it needs", "they need")
            ));
        }
        if self.options.mode == Mode::Reference {
            notes.push(
                "Perturbations are the authors' program's, its bugs included; the setting `mode = fixed` is what to report.".into(),
            );
        }
        notes.extend(self.demonstrations.note());
        notes
    }
}

/// A reason without the operand that it names, for counting.
fn general(reason: &super::fixed::Ineligible) -> String {
    use super::fixed::Ineligible as I;
    match reason {
        I::Invisible(_) => "an operand is not written in digits".to_owned(),
        I::ByName(_) => "an operand is a year, a date, a label, a range or the like".to_owned(),
        I::Ambiguous(_) => "an operand stands several times".to_owned(),
        I::NotWhole(_) => "an operand is not a whole number".to_owned(),
        I::Annotation(error) => format!("its annotation is unusable: {error}"),
        other => other.to_string(),
    }
}

/// The output that an item asks for.
fn target_of(item: &Item) -> Target {
    let named = item.covariates.get("target").and_then(Value::as_str);
    Target::ALL.into_iter().find(|target| Some(target.name()) == named).unwrap_or(Target::Answer)
}

impl Items for Dnc {
    fn iter(&self) -> Box<dyn Iterator<Item = Item> + Send + '_> {
        Box::new(self.entries.iter().map(|entry| self.item(entry)))
    }

    fn len(&self) -> usize {
        self.entries.len()
    }
}

impl Scoring for Dnc {
    fn name(&self) -> &'static str {
        "dnc"
    }

    fn version(&self) -> &'static str {
        match self.options.order {
            ItemOrder::One => QUESTIONS_VERSION,
            ItemOrder::Two => VERSION,
        }
    }

    fn options(&self) -> Value {
        serde_json::to_value(&self.options).expect("options are plain data with text keys")
    }

    fn answer<'a>(&self, item: &'a Item) -> &'a str {
        Gold::of(&item.gold).answer
    }

    fn worked_answer(&self, item: &Item) -> Option<String> {
        let text = |name: &str| item.covariates.get(name).and_then(Value::as_str);
        let split = Split::ALL.into_iter().find(|split| Some(split.name()) == text("split"))?;
        let draw = item.covariates.get("draw").and_then(Value::as_u64).and_then(|draw| u32::try_from(draw).ok())?;
        let Options { dataset, numbers, .. } = self.options;
        let index = self.data.parts.get(&split)?.iter().position(|problem| problem.id == item.cluster)?;
        let perturbed = [Cell::Attack, Cell::Defence].iter().any(|cell| Some(cell.name()) == text("cell"));
        let problem = match text("kind").and_then(|name| name.parse::<Kind>().ok()).filter(|_| perturbed) {
            Some(kind) => &self.perturbed.get(&(split, index, kind, draw))?.problem,
            None => &self.data.parts[&split][index],
        };
        usable(dataset, problem).then(|| shot_answer(target_of(item), numbers, dataset, problem))
    }

    fn score(&self, item: &Item, answered: &Answered<'_>) -> Score {
        let target = target_of(item);
        score(self.options.scorer, self.options.dataset, target, item, answered)
    }

    fn scorers(&self) -> Vec<&'static str> {
        self.options.scorers()
    }

    fn chosen(&self) -> Vec<&'static str> {
        self.options.chosen()
    }

    fn summarise(&self, samples: &[Scored<'_>]) -> Summary {
        summary::summarise(&self.options, samples, self.notes())
    }
}
