//! Error rates, power and savings of the confidence sequence of paired differences that `run --until` stops by, on simulated studies.
//!
//! `cargo bench --bench sequential -- [studies] [seed]` prints the Markdown of `benches/results/sequential.md`; the file has the
//! results of the defaults. A study has clusters in random order; two models answer the same questions of each. On the logit
//! scale, a cluster has a normal intercept that both models share, and a normal slope, by which they differ there.
use earnest_stats::distribution::{normal_quantile, student_quantile};
use earnest_stats::{MarginTest, SequentialDifference, clustered_mean};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

const LEVEL: f64 = 0.95;
const ALPHA: f64 = 1.0 - LEVEL;

/// Clusters before the asymptotic sequence is looked at.
const BURN_IN: usize = 10;

/// Bets of the betting sequence.
const BETS: usize = 50;

/// Sizes of clusters.
#[derive(Clone, Copy, PartialEq)]
enum Sizes {
    Equal(usize),
    /// From 1 to 40, mean about 9, half of them below 7.
    Unequal,
}

impl Sizes {
    fn name(self) -> String {
        match self {
            Sizes::Equal(size) => size.to_string(),
            Sizes::Unequal => "1-40".to_owned(),
        }
    }

    fn largest(self) -> usize {
        match self {
            Sizes::Equal(size) => size,
            Sizes::Unequal => 40,
        }
    }

    fn draw(self, random: &mut ChaCha8Rng) -> usize {
        match self {
            Sizes::Equal(size) => size,
            Sizes::Unequal => ((-9.0 * (1.0 - random.random::<f64>()).ln()) as usize + 1).min(40),
        }
    }
}

/// Differences of clusters.
#[derive(Clone, Copy)]
enum Truth {
    /// Accuracy of the first model, advantage of the second, SD of the intercepts and of the slopes. Half of a slope goes to each
    /// model, or all of it to the second.
    Logit { accuracy: f64, effect: f64, intercept_sd: f64, slope_sd: f64, one_sided: bool },
    /// The second model gains every question of a cluster with this probability, and loses as many in all others together.
    Rare { share: f64 },
}

#[derive(Clone, Copy)]
struct Design {
    clusters: usize,
    sizes: Sizes,
    truth: Truth,
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The intercept at which the mean over normal random effects is this accuracy.
fn intercept(accuracy: f64, sd: f64) -> f64 {
    let mean = |centre: f64| {
        let (mut sum, mut weights) = (0.0, 0.0);
        for step in -400..=400 {
            let z = f64::from(step) / 50.0;
            let weight = (-0.5 * z * z).exp();
            sum += weight * logistic(centre + sd * z);
            weights += weight;
        }
        sum / weights
    };
    let (mut low, mut high) = (-60.0, 60.0);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if mean(middle) < accuracy { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// Outcome of a study: the clusters after which a method excluded the reference value, if it did.
#[derive(Clone, Copy, Default)]
struct Study {
    /// The t test once, at the end.
    fixed: bool,
    /// The t test after every cluster from the seventh on.
    peeked: bool,
    sequence: Option<usize>,
    asymptotic: Option<usize>,
    betting: Option<usize>,
}

/// Draws sums of differences of the clusters with their sizes.
struct Sampler {
    design: Design,
    intercepts: [f64; 2],
    /// Critical values of t by the number of clusters.
    critical: Vec<f64>,
}

impl Sampler {
    fn new(design: Design) -> Self {
        let intercepts = match design.truth {
            Truth::Logit { accuracy, effect, intercept_sd, slope_sd, one_sided } => {
                let half = (intercept_sd.powi(2) + 0.25 * slope_sd.powi(2)).sqrt();
                let whole = (intercept_sd.powi(2) + slope_sd.powi(2)).sqrt();
                let sds = if one_sided { [intercept_sd, whole] } else { [half, half] };
                [intercept(accuracy, sds[0]), intercept(accuracy + effect, sds[1])]
            }
            Truth::Rare { .. } => [0.0, 0.0],
        };
        let freedom = |clusters: usize| (clusters as f64 - 1.0).max(1.0);
        let critical = (0..=design.clusters).map(|clusters| student_quantile(1.0 - 0.5 * ALPHA, freedom(clusters)));
        Sampler { design, intercepts, critical: critical.collect() }
    }

    fn draw(&self, random: &mut ChaCha8Rng) -> (f64, usize) {
        let size = self.design.sizes.draw(random);
        match self.design.truth {
            Truth::Logit { intercept_sd, slope_sd, one_sided, .. } => {
                let mut normal = || normal_quantile(random.random_range(1e-15..1.0));
                let (level, slope) = (intercept_sd * normal(), slope_sd * normal());
                let parts = if one_sided { [0.0, slope] } else { [-0.5 * slope, 0.5 * slope] };
                let rates = [0, 1].map(|model| logistic(self.intercepts[model] + level + parts[model]));
                let mut right = |rate: f64| f64::from(u8::from(random.random::<f64>() < rate));
                ((0..size).map(|_| right(rates[1]) - right(rates[0])).sum(), size)
            }
            Truth::Rare { share } => {
                let loss = share / (1.0 - share);
                if random.random::<f64>() < share {
                    return (size as f64, size);
                }
                (-(0..size).map(|_| f64::from(u8::from(random.random::<f64>() < loss))).sum::<f64>(), size)
            }
        }
    }

    /// A study that asks for differences from `reference`.
    fn study(&self, seed: u64, stream: u64, reference: f64) -> Study {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(stream);
        let largest = self.design.sizes.largest() as f64;
        let mut study = Study::default();
        let mut sequence = SequentialDifference::default();
        let (mut up, mut down) = ([1.0; BETS], [1.0; BETS]);
        let (mut sum, mut squares) = (0.0, 0.0);
        let (mut means, mut labels) = (Vec::new(), Vec::new());
        for number in 1..=self.design.clusters {
            let (difference, size) = self.draw(&mut random);
            sequence.add(difference, size).expect("differences lie between -1 and 1");
            if study.sequence.is_none() && sequence.log_evidence(reference) >= -ALPHA.ln() {
                study.sequence = Some(number);
            }
            // Of a cluster of `size` questions, the weighted distance from the reference: mean zero if that is the truth.
            let draw = (difference - reference * size as f64) / largest;
            let mut wealth = 0.0;
            for (bet, (up, down)) in up.iter_mut().zip(&mut down).enumerate() {
                let stake = (bet as f64 + 0.5) / BETS as f64;
                *up *= 1.0 + stake * draw / (1.0 + reference);
                *down *= 1.0 - stake * draw / (1.0 - reference);
                wealth += 0.5 * (*up + *down) / BETS as f64;
            }
            if study.betting.is_none() && wealth >= 1.0 / ALPHA {
                study.betting = Some(number);
            }
            let count = number as f64;
            (sum, squares) = (sum + draw, squares + draw * draw);
            let variance = (squares / count - (sum / count).powi(2)).max(0.0);
            if study.asymptotic.is_none() && number >= BURN_IN && variance > 0.0 {
                // Narrowest after half of the clusters, as its authors advise for a time of interest.
                let scale = (-2.0 * ALPHA.ln() + (-2.0 * ALPHA.ln()).ln() + 1.0)
                    / (0.5 * variance * self.design.clusters as f64);
                let time = count * variance * scale + 1.0;
                let reach = (2.0 * time / (count * count * scale) * (time.sqrt() / ALPHA).ln()).sqrt();
                study.asymptotic = ((sum / count).abs() > reach).then_some(number);
            }
            if !study.peeked && number >= 7 && variance > 0.0 {
                let error = (variance / (count - 1.0)).sqrt();
                study.peeked = (sum / count / error).abs() > self.critical[number];
            }
            means.push(draw);
            labels.push(number as u64);
        }
        study.fixed = clustered_mean(&means, &labels).expect("there are clusters").p() < ALPHA;
        study
    }
}

/// Shares of studies that excluded the reference, in per cent, and the mean share of clusters asked.
struct Rates {
    fixed: f64,
    peeked: f64,
    sequence: f64,
    asymptotic: f64,
    betting: f64,
    asked: f64,
    asked_asymptotic: f64,
    asked_betting: f64,
}

fn rates(design: Design, reference: f64, studies: u64, seed: u64) -> Rates {
    let sampler = Sampler::new(design);
    let found: Vec<Study> = (0..studies).into_par_iter().map(|study| sampler.study(seed, study, reference)).collect();
    let percent =
        |of: &dyn Fn(&Study) -> bool| 100.0 * found.iter().filter(|study| of(study)).count() as f64 / studies as f64;
    let asked = |of: &dyn Fn(&Study) -> Option<usize>| {
        let clusters: usize = found.iter().map(|study| of(study).unwrap_or(design.clusters)).sum();
        100.0 * clusters as f64 / (studies as usize * design.clusters) as f64
    };
    Rates {
        fixed: percent(&|study| study.fixed),
        peeked: percent(&|study| study.peeked),
        sequence: percent(&|study| study.sequence.is_some()),
        asymptotic: percent(&|study| study.asymptotic.is_some()),
        betting: percent(&|study| study.betting.is_some()),
        asked: asked(&|study| study.sequence),
        asked_asymptotic: asked(&|study| study.asymptotic),
        asked_betting: asked(&|study| study.betting),
    }
}

const CLUSTERS: [usize; 4] = [20, 50, 100, 300];
const SIZES: [Sizes; 4] = [Sizes::Equal(1), Sizes::Equal(10), Sizes::Equal(50), Sizes::Unequal];
/// Accuracy and SD of the intercepts: intracluster correlations on the logit scale of 0.23, 0.41, 0.66 and 0.41.
const LEVELS: [(f64, f64); 4] = [(0.5, 1.0), (0.02, 1.5), (0.5, 2.5), (0.98, 1.5)];

/// All designs of a number of clusters with a size, at one true difference.
fn designs(clusters: usize, sizes: Sizes, effect: f64) -> Vec<Design> {
    let mut all = Vec::new();
    for (accuracy, intercept_sd) in LEVELS {
        for (slope_sd, one_sided) in [(0.0, false), (0.7, false), (0.7, true)] {
            if accuracy + effect < 1.0 {
                let truth = Truth::Logit { accuracy, effect, intercept_sd, slope_sd, one_sided };
                all.push(Design { clusters, sizes, truth });
            }
        }
    }
    all
}

fn worst(all: &[Rates], of: impl Fn(&Rates) -> f64) -> f64 {
    all.iter().map(of).fold(0.0, f64::max)
}

fn errors(studies: u64, seed: u64) {
    println!("## False differences\n");
    println!(
        "There is none, and a method finds one at some time, in per cent of {studies} studies. Each row is a number of clusters with a size, over \
         accuracies of 2, 50 and 98 % with intercept SDs of 1 to 2.5 and slope SDs of 0 and 0.7 (split between the models, or all of it in one): \
         the worst of the row, and the mean. Monte Carlo error of a single share at 5 %: {:.1} points.\n",
        100.0 * (0.05_f64 * 0.95 / studies as f64).sqrt()
    );
    println!(
        "| clusters | size | designs | sequence | mean | asymptotic | mean | betting | t test at the end | t test after every cluster |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    let mut largest = 0.0_f64;
    for clusters in CLUSTERS {
        for sizes in SIZES {
            let designs = designs(clusters, sizes, 0.0).into_iter();
            let all: Vec<Rates> = designs.map(|design| rates(design, 0.0, studies, seed)).collect();
            let mean = |of: &dyn Fn(&Rates) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
            largest = largest.max(worst(&all, |rates| rates.sequence));
            println!(
                "| {clusters} | {} | {} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} |",
                sizes.name(),
                all.len(),
                worst(&all, |rates| rates.sequence),
                mean(&|rates| rates.sequence),
                worst(&all, |rates| rates.asymptotic),
                mean(&|rates| rates.asymptotic),
                worst(&all, |rates| rates.betting),
                worst(&all, |rates| rates.fixed),
                worst(&all, |rates| rates.peeked),
            );
        }
    }
    println!("\nLargest error of the sequence: {largest:.1} %.\n");
}

fn coverage(studies: u64, seed: u64) {
    println!("## Intervals around a difference\n");
    println!(
        "The true difference is 5 or 10 points, and the interval does not have it at some time, in per cent of {studies} studies: the worst of a \
         row's designs. From 2 % right to 7 or 12 %, the differences of clusters are skewed: few clusters gain much. Then the intervals of the \
         sequence are too low more often than they may, as are those of the t test at the end (the last column). They still exclude 0 \
         only on the right side. \"common\": the same without accuracies of 2 and 98 %.\n"
    );
    println!("| clusters | size | sequence | common | asymptotic | betting | t test at the end | common |");
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|");
    for clusters in CLUSTERS {
        for sizes in SIZES {
            let (mut all, mut common) = (Vec::new(), Vec::new());
            for effect in [0.05, 0.1] {
                for design in designs(clusters, sizes, effect) {
                    let found = rates(design, effect, studies, seed);
                    let is_common = matches!(design.truth, Truth::Logit { accuracy: 0.5, .. });
                    if is_common { common.push(found) } else { all.push(found) }
                }
            }
            let both = |of: fn(&Rates) -> f64| worst(&all, of).max(worst(&common, of));
            println!(
                "| {clusters} | {} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} |",
                sizes.name(),
                both(|rates| rates.sequence),
                worst(&common, |rates| rates.sequence),
                both(|rates| rates.asymptotic),
                both(|rates| rates.betting),
                both(|rates| rates.fixed),
                worst(&common, |rates| rates.fixed),
            );
        }
    }
    println!();
}

/// Share of studies in per cent in which a difference is within the margin at some time, and the mean share of clusters until then.
fn within(design: Design, margin: f64, studies: u64, seed: u64) -> (f64, f64) {
    let sampler = Sampler::new(design);
    let ends: Vec<Option<usize>> = (0..studies)
        .into_par_iter()
        .map(|study| {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            random.set_stream(study);
            let mut sequence = SequentialDifference::default();
            let mut test = MarginTest::new(margin, design.sizes.largest()).expect("the margin is valid");
            (1..=design.clusters).find(|_| {
                let (sum, pairs) = sampler.draw(&mut random);
                sequence.add(sum, pairs).expect("differences lie between -1 and 1");
                test.add(sum, pairs).expect("no cluster is larger");
                let found = sequence.estimate(LEVEL).expect("the level is valid").expect("there are pairs");
                test.evidence() >= 1.0 / ALPHA && found.low >= -margin && found.high <= margin
            })
        })
        .collect();
    let share = ends.iter().flatten().count() as f64 / studies as f64;
    let asked: usize = ends.iter().map(|end| end.unwrap_or(design.clusters)).sum();
    (100.0 * share, 100.0 * asked as f64 / (studies as usize * design.clusters) as f64)
}

fn margins(studies: u64, seed: u64) {
    println!("## Differences within a margin\n");
    println!(
        "`or within 5 points`, in per cent of {studies} studies. \"false\": the true difference is 5 points, the worst of the designs above. \"found\": \
         there is none; accuracy 50 %, intercept SD 1.5, no slopes.\n"
    );
    println!("| clusters | size | false | found | asked |");
    println!("|---:|---:|---:|---:|---:|");
    for clusters in [100, 300, 1000] {
        for sizes in SIZES {
            let all = designs(clusters, sizes, 0.05).into_iter();
            let wrong = all.map(|design| within(design, 0.05, studies, seed).0).fold(0.0, f64::max);
            let truth = Truth::Logit { accuracy: 0.5, effect: 0.0, intercept_sd: 1.5, slope_sd: 0.0, one_sided: false };
            let (found, asked) = within(Design { clusters, sizes, truth }, 0.05, studies, seed);
            println!("| {clusters} | {} | {wrong:.1} | {found:.0} | {asked:.0} % |", sizes.name());
        }
    }
    println!();
}

fn savings(studies: u64, seed: u64) {
    println!("## Power and savings\n");
    println!(
        "Accuracy 50 %, intercept SD 1.5, slope SD 0.7. \"power\": the difference is found, in per cent of {studies} studies, by the t test \
         with all clusters and by the sequences until then. \"asked\": mean share of the clusters, and so of the answers, that are asked until \
         it is found or all are asked; a fixed design always asks 100 %.\n"
    );
    println!(
        "| clusters | size | difference | power t | power sequence | asked | power asymptotic | asked | power betting | asked |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for clusters in CLUSTERS {
        for sizes in SIZES {
            for effect in [0.0, 0.05, 0.1, 0.2] {
                let truth = Truth::Logit {
                    accuracy: 0.5 - 0.5 * effect,
                    effect,
                    intercept_sd: 1.5,
                    slope_sd: 0.7,
                    one_sided: false,
                };
                let found = rates(Design { clusters, sizes, truth }, 0.0, studies, seed);
                println!(
                    "| {clusters} | {} | {:.0} | {:.0} | {:.0} | {:.0} % | {:.0} | {:.0} % | {:.0} | {:.0} % |",
                    sizes.name(),
                    100.0 * effect,
                    found.fixed,
                    found.sequence,
                    found.asked,
                    found.asymptotic,
                    found.asked_asymptotic,
                    found.betting,
                    found.asked_betting,
                );
            }
        }
    }
    println!();
}

/// Smallest number of clusters, in steps of a tenth, at which a share of the studies finds the difference.
fn enough(design: Design, power: f64, studies: u64, seed: u64, found: impl Fn(&Rates) -> f64) -> (usize, Rates) {
    let mut clusters = 10;
    loop {
        let rates = rates(Design { clusters, ..design }, 0.0, studies, seed);
        if found(&rates) >= power {
            return (clusters, rates);
        }
        clusters += (clusters / 10).max(1);
    }
}

fn against_fixed(studies: u64, seed: u64) {
    println!("## Against the fixed design of equal power\n");
    println!(
        "The fixed design has the clusters that give the t test 80 % power. The sequential plan has as many more as it needs for the same power \
         and stops when it is decided; \"asked\" is the mean number that it asks.\n"
    );
    println!("| size | difference | fixed: clusters | sequential: plan | asked | of the fixed design |");
    println!("|---:|---:|---:|---:|---:|---:|");
    for sizes in [Sizes::Equal(1), Sizes::Equal(10), Sizes::Equal(50), Sizes::Unequal] {
        for effect in [0.05, 0.1, 0.2] {
            if sizes == Sizes::Equal(1) && effect < 0.1 {
                continue;
            }
            let truth = Truth::Logit {
                accuracy: 0.5 - 0.5 * effect,
                effect,
                intercept_sd: 1.5,
                slope_sd: 0.7,
                one_sided: false,
            };
            let design = Design { clusters: 0, sizes, truth };
            let (fixed, _) = enough(design, 80.0, studies, seed, |rates| rates.fixed);
            let (plan, at) = enough(design, 80.0, studies, seed, |rates| rates.sequence);
            let asked = plan as f64 * at.asked / 100.0;
            println!(
                "| {} | {:.0} | {fixed} | {plan} | {asked:.0} | {:.0} % |",
                sizes.name(),
                100.0 * effect,
                100.0 * asked / fixed as f64
            );
        }
    }
    println!(
        "\nWhere the true difference is twice what the fixed design was made for, its clusters are still all asked, and the sequential plan \
         stops earlier:\n"
    );
    println!("| size | made for | true difference | fixed: clusters | asked | of the fixed design |");
    println!("|---:|---:|---:|---:|---:|---:|");
    for sizes in [Sizes::Equal(1), Sizes::Equal(10), Sizes::Equal(50), Sizes::Unequal] {
        let truth = |effect: f64| Truth::Logit {
            accuracy: 0.5 - 0.5 * effect,
            effect,
            intercept_sd: 1.5,
            slope_sd: 0.7,
            one_sided: false,
        };
        let design = Design { clusters: 0, sizes, truth: truth(0.1) };
        let (fixed, _) = enough(design, 80.0, studies, seed, |rates| rates.fixed);
        let (plan, _) = enough(design, 80.0, studies, seed, |rates| rates.sequence);
        let at = rates(Design { clusters: plan, sizes, truth: truth(0.2) }, 0.0, studies, seed);
        let asked = plan as f64 * at.asked / 100.0;
        println!("| {} | 10 | 20 | {fixed} | {asked:.0} | {:.0} % |", sizes.name(), 100.0 * asked / fixed as f64);
    }
    println!();
}

fn limits(studies: u64, seed: u64) {
    println!("## Where it fails\n");
    println!(
        "The second model gains every question of few clusters and loses as many in all others together: no difference in the mean, but one \
         in every beginning without such a cluster. Only betting, which assumes nothing but the bounds, keeps its error; the t test at the \
         end is wrong as well. Errors in per cent, clusters of 10.\n"
    );
    println!("| clusters | gained clusters | sequence | asymptotic | betting | t test at the end |");
    println!("|---:|---:|---:|---:|---:|---:|");
    for clusters in [50, 100, 300] {
        for share in [0.02, 0.1, 0.3] {
            let design = Design { clusters, sizes: Sizes::Equal(10), truth: Truth::Rare { share } };
            let found = rates(design, 0.0, studies, seed);
            println!(
                "| {clusters} | {:.0} % | {:.1} | {:.1} | {:.1} | {:.1} |",
                100.0 * share,
                found.sequence,
                found.asymptotic,
                found.betting,
                found.fixed
            );
        }
    }
}

fn main() {
    // `cargo bench` adds its own flag.
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let studies = numbers.first().copied().unwrap_or(2_000);
    let seed = numbers.get(1).copied().unwrap_or(20_261_123);
    println!("# Stopping early: the confidence sequence of paired differences\n");
    println!(
        "Output of `cargo bench --bench sequential` ({studies} simulated studies a design, seed {seed}, level 95 %). Two models answer the \
         questions of clusters (templates) that come in random order; after every cluster the difference is looked at. \"sequence\" is \
         `earnest_stats::SequentialDifference`, the scale-invariant t mixture of Wang and Ramdas (2025) with one more question among the \
         squares, which `earnest run --until` stops by. \"asymptotic\" is the sequence of Waudby-Smith et al. (2024) from {BURN_IN} clusters on, \"betting\" a mixture of {BETS} bets of each \
         sign after Waudby-Smith and Ramdas (Estimating means of bounded random variables by betting, JRSS B 86, 2024), exact for any \
         distribution between -1 and 1.\n"
    );
    errors(studies, seed);
    coverage(studies, seed);
    margins(studies, seed);
    savings(studies, seed);
    against_fixed(studies, seed);
    limits(studies, seed);
}
