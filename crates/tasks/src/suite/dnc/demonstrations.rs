//! Worked examples for in-context attack and defence: the same questions, clean and perturbed.
use std::collections::{BTreeMap, BTreeSet};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::annotation::Annotations;
use super::extra::DonorPool;
use super::fixed::{Context, perturb};
use super::kind::Kind;
use super::options::Options;
use super::problem::{Dataset, Problem};

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DemonstrationError {
    #[error("the data have no train part, where examples come from")]
    NoTrain,
    #[error("{found} questions of the train part are eligible for {kinds}, and {wanted} examples are asked for")]
    TooFew { found: usize, wanted: usize, kinds: String },
}

/// Chosen examples.
#[derive(Debug, Clone, Default)]
pub struct Demonstrations {
    clean: Vec<Vec<Problem>>,
    perturbed: BTreeMap<(u32, Kind), Vec<Problem>>,
    kinds: Vec<Kind>,
    solution_types: BTreeSet<String>,
}

/// True for a question that can be a worked example: the equation is what one of ASDiv-a shows.
pub(super) fn usable(dataset: Dataset, problem: &Problem) -> bool {
    problem.gold().is_some() && (dataset != Dataset::AsdivA || problem.expression().is_some())
}

impl Demonstrations {
    /// Chooses sets of questions that are eligible for every perturbation that can be made of the train part, so that all cells
    /// share them, and spreads each set over solution types. The order is one for clean and perturbed examples.
    ///
    /// # Errors
    /// If there are too few.
    pub fn choose(options: &Options, train: &[Problem], annotations: &Annotations) -> Result<Self, DemonstrationError> {
        if train.is_empty() {
            return Err(DemonstrationError::NoTrain);
        }
        let donors = DonorPool::new(train);
        // Logic has no defence; Order only where people have annotated the train part.
        let annotated = |kind: Kind| {
            kind == Kind::Order && train.iter().any(|problem| annotations.get(kind, &problem.id).is_some())
        };
        let kinds: Vec<Kind> = match options.defence {
            false => Vec::new(),
            true => options
                .kinds
                .iter()
                .copied()
                .filter(|kind| kind.applies_to(options.dataset) && (!kind.is_annotated() || annotated(*kind)))
                .collect(),
        };
        let made = |problem: &Problem, set: u32| -> Option<Vec<Problem>> {
            let context = Context { seed: options.seed, draw: set, donors: &donors, annotations, describes: false };
            kinds.iter().map(|kind| perturb(*kind, problem, context).ok().map(|found| found.problem)).collect()
        };
        let eligible: Vec<&Problem> = train
            .iter()
            .filter(|problem| usable(options.dataset, problem))
            .filter(|problem| made(problem, 0).is_some())
            .collect();
        if eligible.len() < options.demonstrations {
            let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
            let kinds = if names.is_empty() { "examples".to_owned() } else { names.join(" and ") };
            return Err(DemonstrationError::TooFew { found: eligible.len(), wanted: options.demonstrations, kinds });
        }
        let mut chosen = Demonstrations { kinds: kinds.clone(), ..Demonstrations::default() };
        for set in 0..options.demonstration_sets {
            let questions = spread(options, &eligible, set);
            for &problem in &questions {
                chosen.solution_types.insert(problem.solution_type.clone());
            }
            for (index, kind) in kinds.iter().enumerate() {
                // Another draw may fail where the first did not; the first then stands in.
                let of = |problem: &&Problem| {
                    made(problem, set).or_else(|| made(problem, 0)).and_then(|made| made.into_iter().nth(index))
                };
                chosen.perturbed.insert((set, *kind), questions.iter().filter_map(of).collect());
            }
            chosen.clean.push(questions.into_iter().cloned().collect());
        }
        Ok(chosen)
    }

    /// True if examples of this perturbation were made.
    pub fn has(&self, kind: Kind) -> bool {
        self.kinds.contains(&kind)
    }

    /// The examples of a set: clean, or of a perturbation.
    pub fn of(&self, set: u32, kind: Option<Kind>) -> &[Problem] {
        let found = match kind {
            None => self.clean.get(set as usize),
            Some(kind) => self.perturbed.get(&(set, kind)),
        };
        found.map(Vec::as_slice).unwrap_or_default()
    }

    /// Remark for readers of the results.
    pub fn note(&self) -> Option<String> {
        let first = self.clean.first()?;
        let types: Vec<&str> = self.solution_types.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
        let over = if types.is_empty() { String::new() } else { format!(", of the types {}", types.join(", ")) };
        let mut text = format!(
            "{} set{} of {} worked examples from the train part{over}.",
            self.clean.len(),
            if self.clean.len() == 1 { "" } else { "s" },
            first.len(),
        );
        if !self.kinds.is_empty() {
            text.push_str(
                " Perturbed examples are the same questions in the same order; each is eligible for every perturbation asked \
                 for. Defence here is adaptation from demonstrations: it shows whether a surface pattern can be picked up from \
                 a few examples, not what training on perturbed data would do, and is not comparable in size with the paper's \
                 Defense.",
            );
        }
        Some(text)
    }
}

/// A set, drawn without replacement and dealt round-robin over solution types.
fn spread<'a>(options: &Options, eligible: &[&'a Problem], set: u32) -> Vec<&'a Problem> {
    let address = format!("dnc demonstrations 1\nseed {}\nset {set}\n", options.seed);
    let mut random = ChaCha8Rng::from_seed(Sha256::digest(address).into());
    let mut order: Vec<&Problem> = eligible.to_vec();
    for index in (1..order.len()).rev() {
        let other = ((u128::from(random.next_u64()) * (index as u128 + 1)) >> 64) as usize;
        order.swap(index, other);
    }
    let mut by_type: BTreeMap<&str, Vec<&'a Problem>> = BTreeMap::new();
    let mut types: Vec<&str> = Vec::new();
    for problem in order {
        if !types.contains(&problem.solution_type.as_str()) {
            types.push(&problem.solution_type);
        }
        by_type.entry(&problem.solution_type).or_default().push(problem);
    }
    let mut chosen = Vec::new();
    while chosen.len() < options.demonstrations {
        let before = chosen.len();
        for name in &types {
            if chosen.len() < options.demonstrations
                && let Some(problem) = by_type.get_mut(name).and_then(Vec::pop)
            {
                chosen.push(problem);
            }
        }
        if chosen.len() == before {
            break;
        }
    }
    chosen
}
