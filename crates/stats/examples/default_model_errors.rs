//! False positives and refusals of the default mixed model where nothing differs, in simulated designs with few right answers, or with
//! questions that all runs answer alike. One line a design.
//! `cargo run --release -p earnest-stats --example default_model_errors [SETS] [SEED] [PART OF A DESIGN'S NAME]`
use earnest_stats::analysis::default_model;
use earnest_stats::mixed::{Column, Errors, Frame, Terms, marginal};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// Templates with questions that every run answers; the first question of a template is the original, the others are variants.
struct Design {
    name: &'static str,
    templates: usize,
    questions: usize,
    /// Templates that have five times as many questions.
    large: usize,
    runs: usize,
    /// Log odds of a right answer where both deviations are 0.
    level: f64,
    /// Standard deviations of templates and of questions, in log odds.
    template_sd: f64,
    question_sd: f64,
    /// Of the runs' effects in a template.
    effect_sd: f64,
}

const DESIGNS: [Design; 7] = [
    Design {
        name: "questions of SD 5, 3 runs",
        templates: 100,
        questions: 11,
        large: 0,
        runs: 3,
        level: -1.0,
        template_sd: 1.0,
        question_sd: 5.0,
        effect_sd: 0.0,
    },
    Design {
        name: "1.5 % right, alike within a question, 3 runs",
        templates: 100,
        questions: 11,
        large: 0,
        runs: 3,
        level: -8.0,
        template_sd: 1.5,
        question_sd: 3.0,
        effect_sd: 0.0,
    },
    Design {
        name: "0.6 % right, alike within a question, 4 runs",
        templates: 100,
        questions: 11,
        large: 0,
        runs: 4,
        level: -10.5,
        template_sd: 1.5,
        question_sd: 4.0,
        effect_sd: 0.0,
    },
    Design {
        name: "1.5 % right, 2 runs",
        templates: 100,
        questions: 11,
        large: 0,
        runs: 2,
        level: -5.0,
        template_sd: 1.2,
        question_sd: 0.5,
        effect_sd: 0.0,
    },
    Design {
        name: "30 % right, 2 runs",
        templates: 50,
        questions: 6,
        large: 0,
        runs: 2,
        level: -1.5,
        template_sd: 1.5,
        question_sd: 1.0,
        effect_sd: 0.0,
    },
    Design {
        name: "50 % right, 4 runs",
        templates: 25,
        questions: 10,
        large: 0,
        runs: 4,
        level: 0.0,
        template_sd: 1.0,
        question_sd: 1.0,
        effect_sd: 0.0,
    },
    Design {
        name: "30 % right, 2 runs, 30 templates worth 17, whose effects vary",
        templates: 30,
        questions: 6,
        large: 6,
        runs: 2,
        level: -1.5,
        template_sd: 1.5,
        question_sd: 1.0,
        effect_sd: 0.7,
    },
];

/// A standard normal number by the polar method (Marsaglia and Bray 1964).
fn normal(random: &mut ChaCha8Rng) -> f64 {
    loop {
        let (x, y) = (2.0 * random.random::<f64>() - 1.0, 2.0 * random.random::<f64>() - 1.0);
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * (-2.0 * square.ln() / square).sqrt();
        }
    }
}

fn draw(design: &Design, random: &mut ChaCha8Rng) -> Frame {
    let (mut cluster, mut item, mut run, mut variant, mut correct) = (vec![], vec![], vec![], vec![], vec![]);
    for template in 0..design.templates {
        let level = design.level + design.template_sd * normal(random);
        let effects: Vec<f64> = (0..design.runs)
            .map(|_| if design.effect_sd > 0.0 { design.effect_sd * normal(random) } else { 0.0 })
            .collect();
        let times = if template < design.large { 5 } else { 1 };
        for question in 0..times * design.questions {
            let log_odds = level + design.question_sd * normal(random);
            for (one, effect) in effects.iter().enumerate() {
                cluster.push(format!("t{template}"));
                item.push(format!("t{template}q{question}"));
                run.push(format!("r{one}"));
                variant.push(if question == 0 { "original" } else { "variant" });
                correct.push(f64::from(u8::from(random.random::<f64>() < 1.0 / (1.0 + (-log_odds - effect).exp()))));
            }
        }
    }
    let mut frame = Frame::new();
    for (name, texts) in [("cluster", &cluster), ("item", &item), ("run", &run)] {
        frame.texts(name, texts.iter().map(String::as_str)).unwrap();
    }
    frame.texts("variant", variant.iter().copied()).unwrap();
    frame.number("correct", correct).unwrap();
    frame
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let sets: u64 = arguments.first().map_or(60, |text| text.parse().expect("SETS is a whole number"));
    let seed: u64 = arguments.get(1).map_or(1, |text| text.parse().expect("SEED is a whole number"));
    let part = arguments.get(2).map_or("", String::as_str);
    for design in DESIGNS.iter().filter(|design| design.name.contains(part)) {
        let found: Vec<Found> = (0..sets).into_par_iter().map(|set| analysed(design, 1000 * seed + set)).collect();
        let fitted: Vec<&Fitted> = found.iter().filter_map(|one| one.fitted.as_ref()).collect();
        let share = |is: &dyn Fn(&Fitted) -> bool| {
            100.0 * fitted.iter().filter(|one| is(one)).count() as f64 / fitted.len().max(1) as f64
        };
        println!(
            "{}: {:.2} % right; {} of {sets} sets fitted, {:.0} % with robust errors; p < .05 for a run in {:.1} %, for variants in {:.1} %; the \
             mean is off by at most {:.2} log odds",
            design.name,
            100.0 * found.iter().map(|one| one.observed).sum::<f64>() / sets as f64,
            fitted.len(),
            share(&|one| one.robust),
            share(&|one| one.run < 0.05),
            share(&|one| one.variant < 0.05),
            fitted.iter().fold(0.0_f64, |most, one| most.max(one.off))
        );
    }
}

/// Verdict of the default model on a set.
struct Found {
    observed: f64,
    fitted: Option<Fitted>,
}

struct Fitted {
    robust: bool,
    /// p values of a run and of the variants.
    run: f64,
    variant: f64,
    /// Distance of the model's mean from the observed share, in log odds.
    off: f64,
}

fn analysed(design: &Design, seed: u64) -> Found {
    let frame = draw(design, &mut ChaCha8Rng::seed_from_u64(seed));
    let Ok(Column::Number(values)) = frame.column("correct") else { unreachable!() };
    let observed = values.iter().sum::<f64>() / values.len() as f64;
    let fixed = Terms::intercept().with("run").with("variant");
    let fitted = default_model(&frame, "correct", &fixed, &["cluster", "item"]).ok().and_then(|chosen| {
        let p = |name: &str| chosen.fit.coefficient(name)?.p;
        let mean = marginal(&chosen.data, &chosen.fit, None, 0.95).ok()?.levels[0].mean;
        let log_odds = |share: f64| (share / (1.0 - share)).ln();
        Some(Fitted {
            robust: chosen.fit.errors == Errors::Robust,
            run: p("runr1")?,
            variant: p("variantvariant")?,
            off: (log_odds(mean) - log_odds(observed)).abs(),
        })
    });
    Found { observed, fitted }
}
