//! Scores of a run by item.
use std::collections::{BTreeSet, HashMap, HashSet};

use super::question::{Question, normalised};
use crate::{Origin, Sample, Tool};
use earnest_tasks::suite::task::usual;
use earnest_tasks::suite::{EXAMPLE_ECHOED, Item, ONLY_IN_THINKING, RIVALS, Score, log};

/// Scores of a run by item, as a comparison uses them.
#[derive(Debug, Clone, Default)]
pub struct Scores {
    pub items: HashMap<String, ItemScore>,
    /// Scorers whose numbers are compared, where they are known.
    pub chosen: Vec<String>,
    /// The run's own scorers, where a common one of several runs is compared.
    pub own_scorers: Vec<String>,
    /// Names of all scorers.
    pub scorers: Vec<String>,
    /// True for a run that ends by its answers.
    pub has_condition: bool,
    /// True if it did so before all its items were asked.
    pub ended_early: bool,
    /// Number of samples without a score; comparisons leave them out.
    pub without_score: usize,
    /// Number of those whose scorer gave a list, an object or a text, and numbers in it, as scorers of their own.
    pub without_number: usize,
    pub parts: BTreeSet<String>,
    /// Scorer whose numbers are compared; none for right and wrong by the deciding scorer.
    scorer: Option<String>,
    /// Field of the questions that is the cluster, instead of the stored one.
    cluster: Option<String>,
    /// Another tool's log has its own forms of ids, prompts and expected answers.
    pub origin: Origin,
    /// True for a log in which the field `pair` is the id of an original.
    names_originals: bool,
    /// Begins the ids of the questions, where several tasks are compared together.
    prefix: String,
    /// First scored sample without the field that is the cluster.
    pub first_without_cluster: Option<Sample>,
}

/// Scores of an item, summed over its samples.
#[derive(Debug, Clone)]
pub struct ItemScore {
    pub task: String,
    pub cluster: String,
    pub gold: String,
    /// Item that this one is compared with where the other run does not have it.
    pub pair: Option<String>,
    /// Kind of a perturbed question.
    pub perturbation: Option<String>,
    /// None until [`Scores::read_question`], where the rows do not contain it.
    pub question: Option<Question>,
    /// Sum of the compared numbers: of right and wrong as 1 and 0, or of a scorer's.
    pub sum: f64,
    pub samples: u32,
    /// True if each of those numbers is 0 or 1.
    pub is_binary: bool,
    /// Sum and number of scored samples by scorer, in the order of [`Scores::scorers`].
    pub scorers: Vec<(f64, u32)>,
    /// True if the item is its own cluster.
    pub is_own_cluster: bool,
    /// True if it is so because it has no label, where others have one.
    pub lacks_label: bool,
    /// Beginning of the digest of the prompt's text, where it is known.
    pub prompt: Option<u64>,
}

impl ItemScore {
    /// True unless the answers or the known questions differ.
    pub fn has_question_of(&self, other: &ItemScore) -> bool {
        let (mine, theirs) = (&self.question, &other.question);
        self.gold == other.gold && mine.as_ref().zip(theirs.as_ref()).is_none_or(|(mine, theirs)| mine.matches(theirs))
    }

    /// Mean of the compared numbers: of right and wrong the share of correct samples, 0 to 1.
    pub fn mean(&self) -> f64 {
        self.sum / f64::from(self.samples.max(1))
    }
}

/// A covariate that is a name.
fn label(sample: &Sample, name: &str) -> Option<String> {
    usual::label(sample.covariates.get(name)?)
}

impl Scores {
    /// Creates empty scores of a run with these deciding scorers.
    pub fn chosen_by(chosen: Vec<String>) -> Self {
        Scores { chosen, ..Scores::default() }
    }

    /// Compares the numbers of this scorer.
    pub fn by_scorer(self, scorer: Option<String>) -> Self {
        Scores { chosen: scorer.iter().cloned().collect(), scorer, ..self }
    }

    /// Takes this field of the questions as their cluster.
    pub fn clustered_by(self, cluster: Option<String>) -> Self {
        Scores { cluster, ..self }
    }

    /// Makes them scores of a log. Tables and runs of earnest name originals; what another tool's documents call `pair` may be anything.
    pub fn of_log(self, tool: Option<Tool>) -> Self {
        Scores { origin: Origin::Log, names_originals: matches!(tool, Some(Tool::Table | Tool::Earnest)), ..self }
    }

    /// Begins the ids of the samples that are added from now on, so that those of several tasks are apart; the scorer is that of the
    /// task.
    pub fn next_task(&mut self, prefix: String, scorer: Option<String>) {
        self.prefix = prefix;
        if let Some(name) = scorer.as_ref().filter(|name| !self.chosen.contains(name)) {
            self.chosen.push(name.clone());
        }
        self.scorer = scorer;
    }

    /// The number of a score that is compared.
    fn number(&self, score: &Score) -> Option<f64> {
        match &self.scorer {
            Some(scorer) => log::value(score, scorer),
            None => (self.origin != Origin::Log).then(|| f64::from(u8::from(score.correct))),
        }
    }

    /// Notes the numbers in a score that is none.
    fn note_parts(&mut self, sample: &Sample) {
        let Some((score, scorer)) = sample.score.as_ref().zip(self.scorer.as_ref()) else { return };
        let Some(value) = score.evidence.values.get(scorer) else { return };
        self.without_number += 1;
        for part in value.as_object().into_iter().flatten().map(|(part, _)| format!("{scorer}.{part}")) {
            if log::value(score, &part).is_some() {
                self.parts.insert(part);
            }
        }
    }

    pub fn add(&mut self, sample: &Sample) {
        let scored = sample.score.as_ref().and_then(|score| Some((score, self.number(score)?)));
        let Some((score, number)) = scored else {
            self.without_score += 1;
            self.note_parts(sample);
            return;
        };
        let stored = || (sample.cluster.clone(), usual::is_own_cluster(&sample.cluster, &sample.item));
        let (cluster, is_own_cluster) = match &self.cluster {
            None => stored(),
            Some(field) => match label(sample, field) {
                // Without the task: the variants of a template are alike in every task.
                Some(cluster) => (cluster, false),
                None => {
                    self.first_without_cluster.get_or_insert_with(|| sample.clone());
                    (usual::own_cluster(&sample.item), true)
                }
            },
        };
        let lacks_label = usual::lacks_label(&cluster, &sample.item);
        let fresh = || ItemScore {
            task: sample.task.clone(),
            cluster: if is_own_cluster { format!("{}{cluster}", self.prefix) } else { cluster },
            gold: sample.gold.clone(),
            pair: label(sample, usual::PAIR)
                .filter(|_| self.origin != Origin::Log || self.names_originals)
                .map(|original| format!("{}{original}", self.prefix)),
            perturbation: label(sample, usual::PERTURBATION),
            // In a log, columns `a` and `b` need not be operands.
            question: if self.origin == Origin::Log { None } else { Question::of_operands(&sample.covariates) },
            sum: 0.0,
            samples: 0,
            is_binary: true,
            scorers: Vec::new(),
            is_own_cluster,
            lacks_label,
            prompt: sample.prompt_sha256.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok()),
        };
        let item = self.items.entry(format!("{}{}", self.prefix, sample.item)).or_insert_with(fresh);
        item.sum += number;
        item.samples += 1;
        item.is_binary &= number == 0.0 || number == 1.0;
        let scorers = score.scorers.iter().map(|(scorer_name, right)| (scorer_name, f64::from(u8::from(right))));
        let own = [EXAMPLE_ECHOED, ONLY_IN_THINKING, RIVALS];
        let metrics = score.metrics.iter().filter(|(name, _)| self.origin == Origin::Log && !own.contains(name));
        for (scorer_name, value) in scorers.chain(metrics) {
            let index = self.scorers.iter().position(|known| known == scorer_name).unwrap_or_else(|| {
                self.scorers.push(scorer_name.to_owned());
                self.scorers.len() - 1
            });
            if item.scorers.len() <= index {
                item.scorers.resize(index + 1, (0.0, 0));
            }
            let (sum, n) = &mut item.scorers[index];
            (*sum, *n) = (*sum + value, *n + 1);
        }
    }

    /// True if the rows do not contain every question: [`Scores::read_questions`] is needed before runs of differing options
    /// are compared.
    pub fn lacks_questions(&self) -> bool {
        self.items.values().any(|score| score.question.is_none())
    }

    /// Adds the questions that the rows do not contain.
    pub fn read_questions(&mut self, items: impl Iterator<Item = Item>) {
        items.for_each(|item| self.read_question(&item));
    }

    /// Adds the question of one item, unless it is known.
    pub fn read_question(&mut self, item: &Item) {
        let id = if self.prefix.is_empty() { item.id.clone() } else { format!("{}{}", self.prefix, item.id) };
        if let Some(score) = self.items.get_mut(&id).filter(|score| score.question.is_none()) {
            score.question = Some(Question::of_text(item));
        }
    }

    /// Sets the questions by item, whatever is known of them.
    pub fn read_texts<'a>(&mut self, text: impl Fn(&str) -> Option<&'a str>) {
        for (item, score) in &mut self.items {
            score.question = text(item).map(|text| Question::Text(text.to_owned()));
        }
    }

    /// Forgets operands: they cannot be compared with the text of another tool's question.
    pub fn forget_operands(&mut self) {
        self.items.values_mut().for_each(|score| score.question = None);
    }

    /// True if no item has the field that is the cluster.
    pub fn has_no_clusters(&self) -> bool {
        self.items.values().all(|score| score.is_own_cluster)
    }

    /// Brings the questions into the form in which other tools' are compared. Items of several tasks that ask one question are one
    /// cluster, unless a field says what belongs together.
    pub fn normalise_questions(&mut self) {
        for score in self.items.values_mut() {
            score.question = match score.question.take() {
                Some(Question::Text(text)) => {
                    Some(normalised(&text)).filter(|text| !text.is_empty()).map(Question::Text)
                }
                other => other,
            };
        }
        self.cluster_by_question();
    }

    /// Makes one cluster of the items of different tasks that have the same question and no cluster: their answers are not
    /// independent. A question that a task asks twice is none by which items can be told apart.
    fn cluster_by_question(&mut self) {
        let mut tasks: HashMap<(&str, &str), u32> = HashMap::new();
        for score in self.items.values() {
            if let (true, Some(Question::Text(text))) = (score.is_own_cluster, &score.question) {
                *tasks.entry((text, &score.task)).or_default() += 1;
            }
        }
        let mut known: HashMap<&str, (u32, bool)> = HashMap::new();
        for ((text, _), count) in &tasks {
            let (tasks, repeated) = known.entry(text).or_default();
            *tasks += 1;
            *repeated |= *count > 1;
        }
        let shared: HashSet<String> = known
            .into_iter()
            .filter(|(_, (tasks, repeated))| *tasks > 1 && !repeated)
            .map(|(text, _)| text.to_owned())
            .collect();
        for score in self.items.values_mut().filter(|score| score.is_own_cluster) {
            if let Some(Question::Text(text)) = &score.question
                && shared.contains(text)
            {
                score.cluster.clone_from(text);
            }
        }
    }

    /// Share of correct samples of an item; none if the run did not answer it, or asked another question under its id.
    pub fn share_of(&self, item: &Item) -> Option<f64> {
        let score = self.items.get(&item.id).filter(|score| score.gold == item.gold)?;
        let asked = Question::of_operands(&item.covariates).unwrap_or_else(|| Question::of_text(item));
        score.question.as_ref().is_none_or(|question| question.matches(&asked)).then(|| score.mean())
    }

    /// True if every sum is a number of right answers: scorers of other tools may give fractions.
    pub fn counts_right_answers(&self) -> bool {
        self.items
            .values()
            .all(|score| score.sum.fract() == 0.0 && (0.0..=f64::from(score.samples)).contains(&score.sum))
    }

    /// Number of items that another run does not have and that name an original, with the first name; none without such items.
    pub fn naming_originals(&self, other: &Scores) -> Option<(usize, &str)> {
        let own = self.items.iter().filter(|(item, _)| !other.items.contains_key(*item));
        let names: Vec<&str> = own.filter_map(|(_, score)| score.pair.as_deref()).collect();
        Some((names.len(), *names.iter().min()?))
    }

    /// Number of items with a score.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// True if no item has a score.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// True if this scorer scored every sample.
    pub fn has_all_of(&self, scorer: &str) -> bool {
        let Some(index) = self.scorers.iter().position(|scorer_name| scorer_name == scorer) else { return false };
        self.items.values().all(|item| item.scorers.get(index).is_some_and(|(_, samples)| *samples == item.samples))
    }

    /// Makes the numbers of a scorer that scored every sample those that are compared.
    pub fn read_by(&mut self, scorer: &str) {
        let Some(index) = self.scorers.iter().position(|scorer_name| scorer_name == scorer) else { return };
        for item in self.items.values_mut() {
            let Some((sum, _)) = item.scorers.get(index) else { continue };
            item.sum = *sum;
            item.is_binary = true;
        }
        self.own_scorers = std::mem::replace(&mut self.chosen, vec![scorer.to_owned()]);
    }
}
