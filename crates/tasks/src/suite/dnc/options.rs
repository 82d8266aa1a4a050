//! Options that determine the items.
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::kind::Kind;
use super::problem::{Dataset, Split};
use super::score::{chosen, own_scorer};
use super::target::{Numbers, PromptShape, Target};
use crate::suite::{FINAL, ItemOrder};

/// Version of the perturbations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// As they were meant.
    #[default]
    Fixed,
    /// Bit for bit the authors' program.
    Reference,
}

/// Deciding scorer; the others are reported beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scorer {
    /// The scorer of the data set and of what is asked for; in options under any of its names.
    #[default]
    #[serde(alias = "answer", alias = "tatqa_em", alias = "eq_equivalent")]
    Own,
    /// The answer as a careful person reads it ([`earnest_answer::reader`]); an equation alone keeps its own scorer.
    Final,
}

impl Scorer {
    /// True for [`Scorer::Own`]; it is left out of manifests, so that runs keep their identity.
    pub fn is_own(&self) -> bool {
        *self == Scorer::Own
    }
}

/// A file that the items come from, pinned by its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedFile {
    /// Relative to the folder, or absolute for a file given by itself.
    pub name: String,
    pub sha256: String,
    /// The part of the data that it holds; none where this program divides the file's questions into parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
}

/// Source of the data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    pub folder: String,
    /// Files of questions.
    pub files: Vec<PinnedFile>,
    /// Annotations of Logic and Order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<PinnedFile>,
    /// Malformed rows are passed over, not refused.
    #[serde(default)]
    pub skip_malformed: bool,
}

/// The suite's options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    pub dataset: Dataset,
    pub mode: Mode,
    pub kinds: Vec<Kind>,
    /// Parts whose questions are asked.
    pub splits: Vec<Split>,
    pub targets: Vec<Target>,
    pub numbers: Numbers,
    /// Worked examples before the question.
    pub demonstrations: usize,
    /// Independent choices of them.
    pub demonstration_sets: u32,
    /// Also ask with perturbed examples.
    pub defence: bool,
    /// Independent draws of each random perturbation.
    pub draws: u32,
    pub seed: u64,
    /// Order of the questions, of which `--limit` takes the beginning.
    #[serde(default = "ItemOrder::first", skip_serializing_if = "ItemOrder::is_first")]
    pub order: ItemOrder,
    /// Bare text needs a layout of its own.
    pub shape: PromptShape,
    pub source: Source,
    /// The deciding scorer.
    #[serde(rename = "profile", default, skip_serializing_if = "Scorer::is_own")]
    pub scorer: Scorer,
}

impl Default for Options {
    /// The test part of ASDiv-a, all eight perturbations, the number alone, no examples.
    fn default() -> Self {
        Options {
            dataset: Dataset::AsdivA,
            mode: Mode::Fixed,
            kinds: Kind::EIGHT.to_vec(),
            splits: vec![Split::Test],
            targets: vec![Target::Answer],
            numbers: Numbers::Token,
            demonstrations: 0,
            demonstration_sets: 1,
            defence: false,
            draws: 1,
            seed: 1,
            order: ItemOrder::default(),
            shape: PromptShape::Chat,
            source: Source::default(),
            scorer: Scorer::default(),
        }
    }
}

/// Options that describe no items.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OptionsError {
    #[error("no {0} is named")]
    Nothing(&'static str),
    #[error("{what} is {value}, expected 1 to {most}")]
    Range { what: &'static str, value: u64, most: u64 },
    #[error("{0} worked examples; at most 16 are used")]
    TooMany(usize),
    #[error(
        "the setting `defence` asks with perturbed examples, and there are none: add the setting `demonstrations = K`"
    )]
    DefenceWithoutExamples,
    #[error("examples come from the train part, so its questions cannot be asked with them")]
    TrainIsAsked,
    #[error("{target} asks for an equation, and {dataset} has none; use answer or cot")]
    NoEquation { target: Target, dataset: Dataset },
    #[error("numbers are replaced in equations only: use the setting `prompt = equation`")]
    ReplaceNeedsEquation,
    #[error("none of the perturbations asked for applies to {0}")]
    NoKindApplies(Dataset),
    #[error("the reference's program makes one row a question: the setting `draws` needs the setting `mode = fixed`")]
    ReferenceDraws,
    #[error(
        "with reference perturbations examples cannot be perturbed: the setting `defence` needs the setting `mode = fixed`"
    )]
    ReferenceDefence,
}

impl Options {
    /// Names of the scorers of which one can decide, the default for conversations first: those of targets with an answer, or,
    /// where none has one, of equations.
    pub fn scorers(&self) -> Vec<&'static str> {
        match self.targets.iter().find(|target| target.has_answer()) {
            Some(target) => vec![FINAL, own_scorer(self.dataset, *target)],
            None => vec![own_scorer(self.dataset, Target::Equation)],
        }
    }

    /// The scorers that decide: one, or one a kind of prompt.
    pub fn chosen(&self) -> Vec<&'static str> {
        let mut scorers: Vec<&'static str> = Vec::new();
        for target in &self.targets {
            let scorer = chosen(self.scorer, self.dataset, *target);
            if !scorers.contains(&scorer) {
                scorers.push(scorer);
            }
        }
        scorers
    }

    /// Checks that they describe items.
    ///
    /// # Errors
    /// [`OptionsError`] for impossible options.
    pub fn check(&self) -> Result<(), OptionsError> {
        let range = |what, value: u32, most: u64| match u64::from(value) {
            0 => Err(OptionsError::Range { what, value: 0, most }),
            value if value > most => Err(OptionsError::Range { what, value, most }),
            _ => Ok(()),
        };
        for (empty, what) in [
            (self.kinds.is_empty(), "perturbation"),
            (self.splits.is_empty(), "part of the data"),
            (self.targets.is_empty(), "prompt"),
        ] {
            if empty {
                return Err(OptionsError::Nothing(what));
            }
        }
        range("the setting `draws`", self.draws, 100)?;
        range("the setting `demonstration_sets`", self.demonstration_sets, 100)?;
        if self.demonstrations > 16 {
            return Err(OptionsError::TooMany(self.demonstrations));
        }
        if self.defence && self.demonstrations == 0 {
            return Err(OptionsError::DefenceWithoutExamples);
        }
        if self.demonstrations > 0 && self.splits.contains(&Split::Train) {
            return Err(OptionsError::TrainIsAsked);
        }
        if let Some(&target) = self.targets.iter().find(|target| !target.applies_to(self.dataset)) {
            return Err(OptionsError::NoEquation { target, dataset: self.dataset });
        }
        if self.numbers == Numbers::Replace && self.targets != [Target::Equation] {
            return Err(OptionsError::ReplaceNeedsEquation);
        }
        if !self.kinds.iter().any(|kind| kind.applies_to(self.dataset)) {
            return Err(OptionsError::NoKindApplies(self.dataset));
        }
        if self.mode == Mode::Reference && self.draws > 1 {
            return Err(OptionsError::ReferenceDraws);
        }
        if self.mode == Mode::Reference && self.defence {
            return Err(OptionsError::ReferenceDefence);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_options_are_named() {
        let check = |change: fn(&mut Options)| {
            let mut options = Options::default();
            change(&mut options);
            options.check().map_err(|error| error.to_string())
        };
        assert_eq!(check(|_| ()), Ok(()));
        for (change, said) in [
            ((|o| o.kinds.clear()) as fn(&mut Options), "no perturbation"),
            (|o| o.draws = 0, "the setting `draws` is 0"),
            (|o| o.defence = true, "there are none"),
            (|o| (o.demonstrations, o.splits) = (4, vec![Split::Train]), "cannot be asked"),
            (|o| (o.dataset, o.targets) = (Dataset::DropNum, vec![Target::Equation]), "has none"),
            (|o| o.numbers = Numbers::Replace, "equations only"),
            (|o| (o.dataset, o.kinds) = (Dataset::DropNum, vec![Kind::Noise]), "applies to drop-num"),
            (|o| (o.mode, o.draws) = (Mode::Reference, 2), "`mode = fixed`"),
        ] {
            let found = check(change).unwrap_err();
            assert!(found.contains(said), "{found}");
        }
    }

    #[test]
    fn profiles_are_named_as_their_rules() {
        let of = |dataset, targets: &[Target]| {
            Options { dataset, targets: targets.to_vec(), ..Options::default() }.scorers()
        };
        assert_eq!(of(Dataset::AsdivA, &[Target::Equation, Target::Cot]), ["final", "answer"]);
        assert_eq!(of(Dataset::AsdivA, &[Target::Equation]), ["eq_equivalent"]);
        assert_eq!(of(Dataset::TatqaA, &[Target::Answer]), ["final", "tatqa_em"]);
        // The own scorer is not named in manifests, so that runs of before keep their identity.
        let mut stored = serde_json::to_value(Options::default()).unwrap();
        assert_eq!(stored.get("profile"), None);
        stored["profile"] = "answer".into();
        assert_eq!(serde_json::from_value::<Options>(stored).unwrap(), Options::default());
        let last = Options { scorer: Scorer::Final, ..Options::default() };
        let stored = serde_json::to_value(&last).unwrap();
        assert_eq!(
            (stored["profile"].as_str(), serde_json::from_value(stored.clone()).ok()),
            (Some("final"), Some(last))
        );
    }

    #[test]
    fn options_survive_json() {
        let options = Options { numbers: Numbers::Replace, targets: vec![Target::Equation], ..Options::default() };
        assert_eq!(serde_json::from_value::<Options>(serde_json::to_value(&options).unwrap()).unwrap(), options);
    }
}
