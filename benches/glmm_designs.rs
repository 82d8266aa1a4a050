//! Coverage and error rates of the default mixed model and of random intercepts alone, in eight simulated designs.
//!
//! `cargo bench --bench glmm_designs -- [data sets] [seed]` prints a line of JSON a design and model; `benches/results/glmm_designs.jsonl`
//! is the result of 400 data sets. The intervals are those that `earnest stats glmm` prints (Wald, robust where it is), one thread.
use earnest_stats::analysis::default_model;
use earnest_stats::mixed::{Family, Formula, Frame, MixedData, MixedFit, MixedOptions, Terms, fit};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A design: two variants of the questions of clusters.
struct Design {
    name: &'static str,
    clusters: usize,
    /// Items of each cluster.
    items: usize,
    /// Samples of an item under the first and the second variant.
    samples: [usize; 2],
    effect: f64,
    /// Standard deviations: clusters' level, clusters' slope, items' level.
    deviations: [f64; 3],
}

const DESIGNS: [Design; 8] = [
    Design {
        name: "100 clusters x 50 + 50, slope SD 0.7, no effect",
        clusters: 100,
        items: 1,
        samples: [50, 50],
        effect: 0.0,
        deviations: [1.0, 0.7, 0.0],
    },
    Design {
        name: "100 clusters x 1 + 50 (the study's), no effect",
        clusters: 100,
        items: 1,
        samples: [1, 50],
        effect: 0.0,
        deviations: [1.5, 0.0, 0.0],
    },
    Design {
        name: "100 clusters x 50 + 50, no slope, effect -0.2",
        clusters: 100,
        items: 1,
        samples: [50, 50],
        effect: -0.2,
        deviations: [1.0, 0.0, 0.0],
    },
    Design {
        name: "30 clusters x 8 items x 2 + 2, slope SD 0.5, effect -0.4",
        clusters: 30,
        items: 8,
        samples: [2, 2],
        effect: -0.4,
        deviations: [0.8, 0.5, 0.7],
    },
    Design {
        name: "25 clusters x 4 + 4, no slope, no effect",
        clusters: 25,
        items: 1,
        samples: [4, 4],
        effect: 0.0,
        deviations: [0.9, 0.0, 0.0],
    },
    Design {
        name: "60 clusters x 5 items x 4 + 4, slope SD 1, no effect",
        clusters: 60,
        items: 5,
        samples: [4, 4],
        effect: 0.0,
        deviations: [1.0, 1.0, 0.5],
    },
    Design {
        name: "8 clusters x 10 + 10, slope SD 0.7, no effect",
        clusters: 8,
        items: 1,
        samples: [10, 10],
        effect: 0.0,
        deviations: [1.0, 0.7, 0.0],
    },
    Design {
        name: "16 clusters x 10 + 10, slope SD 0.7, no effect",
        clusters: 16,
        items: 1,
        samples: [10, 10],
        effect: 0.0,
        deviations: [1.0, 0.7, 0.0],
    },
];

fn simulate(random: &mut ChaCha8Rng, design: &Design) -> Frame {
    let normal = |random: &mut ChaCha8Rng| (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
    let (mut cluster, mut item, mut variant, mut correct) = (vec![], vec![], vec![], vec![]);
    for c in 0..design.clusters {
        let level = 0.4 + design.deviations[0] * normal(random);
        let slope = design.effect + design.deviations[1] * normal(random);
        for i in 0..design.items {
            let own = design.deviations[2] * normal(random);
            for (v, &samples) in design.samples.iter().enumerate() {
                for _ in 0..samples {
                    let eta = level + slope * v as f64 + own;
                    cluster.push(c as u32);
                    item.push((c * design.items + i) as u32);
                    variant.push(v as u32);
                    correct.push(f64::from(u8::from(random.random::<f64>() < 1.0 / (1.0 + (-eta).exp()))));
                }
            }
        }
    }
    let names = |count: usize| (0..count).map(|index| format!("l{index:05}")).collect::<Vec<_>>();
    let mut frame = Frame::new();
    frame.labels("cluster", cluster, names(design.clusters)).expect("codes are levels");
    frame.labels("item", item, names(design.clusters * design.items)).expect("codes are levels");
    frame.labels("variant", variant, names(2)).expect("codes are levels");
    frame.number("correct", correct).expect("outcomes are finite");
    frame
}

/// Counts over the data sets of a design.
#[derive(Default)]
struct Counts {
    used: u32,
    covered: u32,
    significant: u32,
    sum: f64,
    squares: f64,
    errors: f64,
}

impl Counts {
    fn add(&mut self, fitted: &MixedFit, effect: f64) {
        let one = &fitted.coefficients[1];
        let (Some(estimate), Some(error)) = (one.estimate, one.standard_error) else { return };
        let Some((low, high)) = fitted.wald_interval(one, 0.95) else { return };
        self.used += 1;
        self.covered += u32::from((low..=high).contains(&effect));
        self.significant += u32::from(!(low..=high).contains(&0.0));
        self.sum += estimate;
        self.squares += estimate * estimate;
        self.errors += error;
    }

    fn row(&self, design: &str, model: &str, sets: u64) -> serde_json::Value {
        let used = f64::from(self.used);
        let mean = self.sum / used;
        let rounded = |value: f64| (value * 1e4).round() / 1e4;
        serde_json::json!({
            "design": design, "model": model, "sets": sets, "fits": self.used,
            "coverage": rounded(f64::from(self.covered) / used), "p_below_5": rounded(f64::from(self.significant) / used),
            "mean_error": rounded(self.errors / used),
            "sd_of_estimates": rounded((self.squares / used - mean * mean).max(0.0).sqrt()), "mean_estimate": rounded(mean),
        })
    }
}

fn main() {
    // `cargo bench` adds its own flag.
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let sets = numbers.first().copied().unwrap_or(400);
    let seed = numbers.get(1).copied().unwrap_or(20_261_123);
    for design in &DESIGNS {
        let (mut chosen, mut intercept) = (Counts::default(), Counts::default());
        for set in 0..sets {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            random.set_stream(set);
            let frame = simulate(&mut random, design);
            let fixed = Terms::intercept().with("variant");
            let found =
                default_model(&frame, "correct", &fixed, &["cluster", "item"]).expect("the model can be fitted");
            chosen.add(&found.fit, design.effect);
            let simple: Formula = "correct ~ variant + (1|cluster)".parse().expect("the formula is valid");
            let data = MixedData::new(&simple, &frame, Family::Binomial).expect("the columns are there");
            intercept.add(&fit(&data, &MixedOptions::default()).expect("the model can be fitted"), design.effect);
        }
        println!("{}", chosen.row(design.name, "default", sets));
        println!("{}", intercept.row(design.name, "random intercept", sets));
    }
}
