//! Training recipe: Adam in cycles whose learning rate decays to zero, until nothing is gained.
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};

use super::network::{Fact, Network, Recall};
use crate::{Schedule, TrainError};
use earnest_tasks::suite::nupa::DigitSource;

/// Settings of a training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Number of hidden layers, all of the same width.
    #[serde(default = "two")]
    pub hidden_layers: usize,
    /// Peak learning rates that are tried.
    pub rates: Vec<f64>,
    /// Seed of the trials, which is none of the results' seeds.
    #[serde(default)]
    pub trial_seed: u64,
    /// Facts per step; all, if there are fewer.
    pub batch: usize,
    /// Steps per cycle.
    pub cycle: u64,
    /// Steps of linear warm-up at the beginning of every cycle.
    #[serde(default)]
    pub warm_up: u64,
    /// Consecutive cycles without a gain after which a phase ends.
    pub patience: usize,
    /// Factor of the peak learning rate after every cycle without a gain.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub shrink: f64,
    /// Relative increase of the stored information that counts as a gain.
    pub gain: f64,
    /// Cycles after which a phase ends in any case.
    pub most_cycles: usize,
    /// Decay of the first moment.
    #[serde(default = "beta1")]
    pub beta1: f64,
    /// Decay of the second moment.
    #[serde(default = "beta2")]
    pub beta2: f64,
    /// Maximum global norm of the gradient.
    #[serde(default = "one")]
    pub clip: f64,
}

/// Most hidden layers, and most learning rates that are tried.
const MOST_LAYERS: usize = 64;
const MOST_RATES: usize = 100;

/// Most facts per step, steps per cycle and cycles of a phase.
const MOST_BATCH: usize = 1_000_000;
const MOST_CYCLE: u64 = 100_000_000;
const MOST_CYCLES: usize = 100_000;

fn two() -> usize {
    2
}
fn one() -> f64 {
    1.0
}
fn is_one(number: &f64) -> bool {
    *number == 1.0
}
fn beta1() -> f64 {
    0.9
}
fn beta2() -> f64 {
    0.999
}

impl Recipe {
    /// Returns the first setting that makes no sense, and its problem.
    pub(super) fn defect(&self) -> Option<(&'static str, &'static str)> {
        let unit = |beta: f64| (0.0..1.0).contains(&beta);
        [
            (self.hidden_layers == 0, "hidden_layers", "must be at least 1"),
            (self.hidden_layers > MOST_LAYERS, "hidden_layers", "must be at most 64"),
            (self.rates.len() > MOST_RATES, "rates", "must be at most 100 learning rates"),
            (self.rates.is_empty(), "rates", "must have at least one learning rate"),
            (self.rates.iter().any(|rate| !(rate.is_finite() && *rate > 0.0)), "rates", "must be positive"),
            (self.batch == 0, "batch", "must be at least 1"),
            (self.batch > MOST_BATCH, "batch", "must be at most 1000000"),
            (self.cycle > MOST_CYCLE, "cycle", "must be at most 100000000 steps"),
            (self.most_cycles > MOST_CYCLES, "most_cycles", "must be at most 100000"),
            (self.patience > MOST_CYCLES, "patience", "must be at most 100000 cycles"),
            (self.cycle == 0, "cycle", "must be at least one step"),
            (self.warm_up >= self.cycle, "warm_up", "must be shorter than the cycle"),
            (self.patience == 0, "patience", "must be at least one cycle"),
            (self.most_cycles == 0, "most_cycles", "must be at least 1"),
            (!(self.gain.is_finite() && self.gain >= 0.0), "gain", "must be 0 or more"),
            (!(self.shrink > 0.0 && self.shrink <= 1.0), "shrink", "must be above 0 and at most 1"),
            (!unit(self.beta1), "beta1", "must be at least 0 and below 1"),
            (!unit(self.beta2), "beta2", "must be at least 0 and below 1"),
            (!(self.clip.is_finite() && self.clip > 0.0), "clip", "must be positive"),
        ]
        .into_iter()
        .find_map(|(wrong, setting, problem)| wrong.then_some((setting, problem)))
    }
}

/// Reason for the end of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Every fact is recalled.
    AllRight,
    /// No gain for [`Recipe::patience`] cycles.
    NothingGained,
    /// [`Recipe::most_cycles`] are over.
    MostCycles,
}

/// Recall at the end of a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CycleRecall {
    /// Facts recalled.
    pub right: usize,
    /// Mean cross-entropy in bits per fact, to six decimals.
    pub bits: f64,
}

impl CycleRecall {
    /// Recall of `facts` facts.
    pub(super) fn new(recall: Recall, facts: usize) -> Self {
        let bits = recall.nats / std::f64::consts::LN_2 / facts as f64;
        CycleRecall { right: recall.right, bits: (bits * 1e6).round() / 1e6 }
    }
}

pub(super) struct PhaseCourse {
    /// Recall after every cycle.
    pub(super) cycles: Vec<CycleRecall>,
    /// Index of the cycle with the lowest cross-entropy, whose weights the network has.
    pub(super) best: usize,
    pub(super) ending: Ending,
}

/// Identity of a phase, from which its order of facts is drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct PhaseKey {
    pub(super) seed: u64,
    pub(super) phase: usize,
}

/// Trains until the recipe's criterion is met; the network then has the weights of the cycle with the lowest cross-entropy. Every
/// cycle is a warm restart (I. Loshchilov & F. Hutter, 2017) with zero moments. `None` if it is stopped.
///
/// # Errors
/// [`TrainError::Diverged`].
pub(super) fn train(
    network: &mut Network,
    facts: &[Fact],
    recipe: &Recipe,
    rate: f64,
    key: PhaseKey,
    stop: &AtomicBool,
    report: &mut dyn FnMut(CycleRecall),
) -> Result<Option<PhaseCourse>, TrainError> {
    let guess = guess_nats(facts.len(), network);
    let mut cycles: Vec<CycleRecall> = Vec::new();
    let (mut best, mut best_nats, mut kept) = (0, f64::INFINITY, Vec::new());
    // Information at the last gain.
    let (mut gained, mut stale) = (0.0, 0);
    let mut rate = rate;
    loop {
        if !cycle(network, facts, recipe, rate, key, cycles.len(), stop) {
            return Ok(None);
        }
        let recall = network.recall(facts);
        if !recall.nats.is_finite() {
            let step = recipe.cycle * (cycles.len() as u64 + 1);
            return Err(TrainError::Diverged { step, loss: recall.nats as f32 });
        }
        let shown = CycleRecall::new(recall, facts.len());
        report(shown);
        cycles.push(shown);
        if recall.nats < best_nats {
            (best, best_nats) = (cycles.len() - 1, recall.nats);
            kept.clone_from(&network.parameters);
        }
        let information = guess - recall.nats;
        if information > gained * (1.0 + recipe.gain) {
            (gained, stale) = (information, 0);
        } else {
            stale += 1;
            rate *= recipe.shrink;
        }
        let ending = if recall.right == facts.len() {
            Ending::AllRight
        } else if stale >= recipe.patience {
            Ending::NothingGained
        } else if cycles.len() >= recipe.most_cycles {
            Ending::MostCycles
        } else {
            continue;
        };
        network.parameters.clone_from(&kept);
        return Ok(Some(PhaseCourse { cycles, best, ending }));
    }
}

/// Cross-entropy of a uniform guess, in nats.
fn guess_nats(facts: usize, network: &Network) -> f64 {
    facts as f64 * network.classes().iter().map(|&classes| libm::log(classes as f64)).sum::<f64>()
}

/// Trains one cycle; false if it is stopped.
pub(super) fn cycle(
    network: &mut Network,
    facts: &[Fact],
    recipe: &Recipe,
    rate: f64,
    key: PhaseKey,
    number: usize,
    stop: &AtomicBool,
) -> bool {
    let schedule = Schedule { peak: rate, warm_up: recipe.warm_up, steps: recipe.cycle, floor: 0.0 };
    let mut adam = Adam::new(network.parameters.len());
    let mut order: Vec<&Fact> = facts.iter().collect();
    let PhaseKey { seed, phase } = key;
    let mut random = DigitSource::named(&format!("perceptron order {seed} {phase} {number}"));
    // Batches of an epoch differ by at most one fact.
    let batches = facts.len().div_ceil(recipe.batch);
    for step in 1..=recipe.cycle {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        let batch = ((step - 1) % batches as u64) as usize;
        if batch == 0 && batches > 1 {
            for last in (1..order.len()).rev() {
                order.swap(last, random.below(last as u64 + 1) as usize);
            }
        }
        let at = |batch: usize| batch * facts.len() / batches;
        network.differentiate(&order[at(batch)..at(batch + 1)]);
        adam.step(network, recipe, schedule.rate(step));
    }
    true
}

/// Adam (D. Kingma & J. Ba, 2015) with clipping by the global norm.
struct Adam {
    step: i32,
    first: Vec<f32>,
    second: Vec<f32>,
}

impl Adam {
    fn new(parameters: usize) -> Self {
        Adam { step: 0, first: vec![0.0; parameters], second: vec![0.0; parameters] }
    }

    fn step(&mut self, network: &mut Network, recipe: &Recipe, rate: f64) {
        self.step += 1;
        let norm = network.gradient.iter().map(|gradient| gradient * gradient).sum::<f32>().sqrt();
        let clip = recipe.clip as f32;
        let scale = if norm > clip { clip / norm } else { 1.0 };
        // `powi` may differ between platforms.
        let correction = |beta: f64| 1.0 - libm::pow(beta, f64::from(self.step));
        let rate = (rate / correction(recipe.beta1)) as f32;
        let root = (1.0 / correction(recipe.beta2)) as f32;
        let (beta1, beta2) = (recipe.beta1 as f32, recipe.beta2 as f32);
        let moments = self.first.iter_mut().zip(&mut self.second);
        for ((parameter, gradient), (first, second)) in
            network.parameters.iter_mut().zip(&network.gradient).zip(moments)
        {
            let gradient = gradient * scale;
            *first = beta1 * *first + (1.0 - beta1) * gradient;
            *second = beta2 * *second + (1.0 - beta2) * gradient * gradient;
            *parameter -= rate * *first / ((*second * root).sqrt() + 1e-8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::{Source, facts, shape};
    use super::*;

    fn recipe() -> Recipe {
        Recipe {
            hidden_layers: 1,
            rates: vec![0.03],
            trial_seed: 0,
            batch: 50,
            cycle: 200,
            warm_up: 10,
            patience: 2,
            shrink: 0.5,
            gain: 0.005,
            most_cycles: 20,
            beta1: 0.9,
            beta2: 0.999,
            clip: 1.0,
        }
    }

    fn learn(width: usize, recipe: &Recipe) -> (PhaseCourse, Network) {
        let sources = [Source::Table];
        let facts = facts(Source::Table, &sources, 0);
        let mut network = Network::new(shape(&sources, 0, width, recipe.hidden_layers), 1).unwrap();
        let key = PhaseKey { seed: 1, phase: 0 };
        let stop = AtomicBool::new(false);
        let course = train(&mut network, &facts, recipe, recipe.rates[0], key, &stop, &mut |_| ()).unwrap().unwrap();
        assert_eq!(CycleRecall::new(network.recall(&facts), 81), course.cycles[course.best]);
        (course, network)
    }

    #[test]
    fn training_ends_when_all_is_right_or_nothing_is_gained() {
        let (course, network) = learn(24, &recipe());
        assert_eq!((course.ending, course.cycles.last().unwrap().right), (Ending::AllRight, 81));
        // The same settings give the same weights.
        assert_eq!(learn(24, &recipe()).1.parameters, network.parameters);
        // Two units cannot hold the table.
        let (course, _) = learn(2, &recipe());
        assert_eq!(course.ending, Ending::NothingGained);
        let (course, _) = learn(2, &Recipe { most_cycles: 1, ..recipe() });
        assert_eq!((course.ending, course.cycles.len()), (Ending::MostCycles, 1));
    }

    #[test]
    fn defects_are_named() {
        assert_eq!(recipe().defect(), None);
        for (recipe, setting) in [
            (Recipe { rates: vec![], ..recipe() }, "rates"),
            (Recipe { rates: vec![0.1, -1.0], ..recipe() }, "rates"),
            (Recipe { cycle: 0, ..recipe() }, "cycle"),
            (Recipe { warm_up: 200, ..recipe() }, "warm_up"),
            (Recipe { beta2: 1.0, ..recipe() }, "beta2"),
            (Recipe { shrink: 0.0, ..recipe() }, "shrink"),
            (Recipe { batch: MOST_BATCH + 1, ..recipe() }, "batch"),
            (Recipe { cycle: u64::MAX, ..recipe() }, "cycle"),
            (Recipe { most_cycles: usize::MAX, ..recipe() }, "most_cycles"),
            (Recipe { clip: f64::NAN, ..recipe() }, "clip"),
        ] {
            assert_eq!(recipe.defect().unwrap().0, setting);
        }
    }
}
