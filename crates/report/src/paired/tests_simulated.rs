//! Comparisons of simulated runs without a difference.
use super::{Comparison, compare};
use earnest_results::scores::{ItemScore, Scores};
use earnest_stats::PairedTest;

/// SplitMix64: numbers that are the same everywhere.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((mixed ^ (mixed >> 31)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Box and Muller's method.
    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    fn is_right(&mut self, log_odds: f64) -> bool {
        self.uniform() < 1.0 / (1.0 + (-log_odds).exp())
    }
}

fn add(scores: &mut Scores, item: String, cluster: &str, original: Option<&str>, right: bool) {
    let score = ItemScore {
        task: "t".to_owned(),
        cluster: cluster.to_owned(),
        gold: "1".to_owned(),
        pair: original.map(str::to_owned),
        perturbation: None,
        question: None,
        sum: f64::from(u8::from(right)),
        samples: 1,
        is_binary: true,
        scorers: Vec::new(),
        is_own_cluster: item == cluster,
        lacks_label: false,
        prompt: None,
    };
    scores.items.insert(item, score);
}

/// Two runs on the same questions.
fn same_questions(random: &mut Random, clusters: usize, questions: usize, log_odds: f64) -> [Scores; 2] {
    let mut runs = [Scores::default(), Scores::default()];
    for cluster in 0..clusters {
        let template = random.normal() * 1.5;
        for question in 0..questions {
            let own = if questions > 1 { random.normal() } else { 0.0 };
            let item = format!("c{cluster}-{question}");
            let label = if questions > 1 { format!("c{cluster}") } else { item.clone() };
            for run in &mut runs {
                let right = random.is_right(log_odds + template + own);
                add(run, item.clone(), &label, None, right);
            }
        }
    }
    runs
}

/// Originals, and variants of each.
fn originals(random: &mut Random, templates: usize, variants: usize, log_odds: f64) -> [Scores; 2] {
    let mut runs = [Scores::default(), Scores::default()];
    for template in 0..templates {
        let own = random.normal() * 1.5;
        let (label, original) = (format!("c{template}"), format!("c{template}-original"));
        let right = random.is_right(log_odds + own);
        add(&mut runs[0], original.clone(), &label, None, right);
        for variant in 0..variants {
            let right = random.is_right(log_odds + own);
            add(&mut runs[1], format!("c{template}-{variant}"), &label, Some(&original), right);
        }
    }
    runs
}

fn compared(runs: [Scores; 2]) -> Comparison {
    compare(&["a".to_owned(), "b".to_owned()], &runs).remove(0)
}

#[test]
fn few_right_answers_make_no_differences() {
    const SETS: u64 = 60;
    // Log odds for about 1.5, 1.5 and 2 % right, averaged over the templates.
    type Design = fn(&mut Random) -> [Scores; 2];
    let designs: [(&str, Design, PairedTest); 3] = [
        ("one original against ten variants", |random| originals(random, 100, 10, -5.1), PairedTest::Permutation),
        ("300 items", |random| same_questions(random, 300, 1, -5.1), PairedTest::SignFlips),
        ("12 clusters", |random| same_questions(random, 12, 10, -5.2), PairedTest::SignFlips),
    ];
    for (name, design, test) in designs {
        let (mut below_5, mut below_1, mut by_t, mut right) = (0, 0, 0, 0.0);
        for set in 0..SETS {
            let found = compared(design(&mut Random(set * 7919 + 1)));
            let overall = &found.overall;
            let (p, (low, high)) = (overall.p.unwrap(), overall.interval.unwrap());
            assert_eq!(overall.test, Some(test), "{name} {set}");
            assert_eq!(p < 0.05, low > 0.0 || high < 0.0, "{name} {set}: {p} {low} {high}");
            below_5 += u32::from(p < 0.05);
            below_1 += u32::from(p < 0.01);
            by_t += u32::from(overall.cluster_t_p.is_some_and(|p| p < 0.05));
            right += overall.run / SETS as f64;
            assert!(!found.conclusion().contains("NaN") && !found.tests().contains("NaN"));
        }
        assert!((0.008..0.03).contains(&right), "{name}: {right}");
        // Binomial with 60 sets: more than seven below 5 % or three below 1 % come up once in a hundred.
        assert!(below_5 <= 7 && below_1 <= 3, "{name}: {below_5} and {below_1} of {SETS}");
        if test == PairedTest::Permutation {
            assert!(by_t > 7, "the t test is known to be wrong here: {by_t}");
        }
    }
}

#[test]
fn the_screen_says_which_test_and_why() {
    let found = compared(originals(&mut Random(3), 100, 10, -5.1));
    let said = found.tests();
    assert!(said.contains("by permutation of originals and variants, exact, because A has"), "{said}");
    assert!(said.contains("right answer") && said.contains("Miettinen and Nurminen's score interval"), "{said}");
    let found = compared(same_questions(&mut Random(3), 300, 1, 0.0));
    assert!(
        found.tests().starts_with("Intervals and p values are by the t test, robust to 300 clusters"),
        "{}",
        found.tests()
    );
    // From 1.5 % no drop of the size that is detectable is possible.
    let is_one = |found: &Comparison| {
        let overall = &found.overall;
        overall.p.is_some_and(|p| p >= 0.05) && overall.detectable.is_some() && overall.baseline < 0.025
    };
    let found = (1..30).map(|seed| compared(same_questions(&mut Random(seed), 300, 1, -4.6))).find(is_one).unwrap();
    let overall = &found.overall;
    assert!(overall.detectable_drop.is_none() && overall.detectable_rise == overall.detectable, "{overall:?}");
    assert!(overall.detectable.is_some() && overall.detectable_text().starts_with('+'), "{overall:?}");
    assert!(found.conclusion().contains(", a rise; no drop from"), "{}", found.conclusion());
}
