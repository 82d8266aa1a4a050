use super::distribution::Distribution;
use super::*;

fn one(sum: f64) -> Answers {
    Answers { sum, count: 1 }
}

fn single(cluster: u64, first: f64, second: f64) -> PairedAnswers {
    PairedAnswers::single(cluster, one(first), one(second))
}

/// Questions of one cluster each: both right, only the first, only the second, neither.
fn questions(both: usize, first: usize, second: usize, neither: usize) -> Vec<PairedAnswers> {
    let kinds = [(both, 1.0, 1.0), (first, 1.0, 0.0), (second, 0.0, 1.0), (neither, 0.0, 0.0)];
    let outcomes = kinds.into_iter().flat_map(|(count, first, second)| vec![(first, second); count]);
    outcomes.enumerate().map(|(index, (first, second))| single(index as u64, first, second)).collect()
}

/// An original and its variants, right or wrong.
fn original(cluster: u64, right: bool, variants: &[u8]) -> PairedAnswers {
    PairedAnswers {
        cluster,
        first: vec![one(f64::from(u8::from(right)))],
        second: variants.iter().map(|right| one(f64::from(*right))).collect(),
    }
}

#[test]
fn single_questions_have_the_exact_test_of_mcnemar() {
    for (first, second) in [(0, 5), (1, 9), (3, 3), (0, 0), (7, 12), (2, 0)] {
        let found = paired_verdict(&questions(4, first, second, 180)).unwrap();
        let counts =
            crate::PairedCounts { both: 4, first_only: first as u64, second_only: second as u64, neither: 180 };
        let exact = crate::mcnemar(&counts).exact_p;
        assert_eq!(found.test, PairedTest::SignFlips);
        assert!((found.p - exact).abs() < 1e-12, "{first} {second}: {} is not {exact}", found.p);
        assert_eq!(found.p_error, None);
    }
}

#[test]
fn enough_answers_have_the_t_test() {
    let found = paired_verdict(&questions(120, 9, 25, 66)).unwrap();
    assert_eq!(found.test, PairedTest::ClusterT);
    // By hand, n - 1 in the variance: 0.0727 with a standard error of 0.0261, t with 219 degrees of freedom.
    assert!((found.p - 0.005_807_416_710_983_633).abs() < 1e-9, "{}", found.p);
    let (low, high) = found.interval(0.95).unwrap();
    assert!((low - 0.021_275_672_708_679).abs() < 1e-9 && (high - 0.124_178_872_745_866).abs() < 1e-9);
    // Four that differ, all in one way: the t test's 0.045 would be a false positive once in eight times.
    let few = paired_verdict(&questions(100, 0, 4, 116)).unwrap();
    assert!(few.robust.p() < 0.05 && few.p == 0.125 && few.test == PairedTest::SignFlips, "{few:?}");
    assert_eq!(few.reason.clause(["A", "B"]), "4 of 220 clusters differ, fewer than 25");
}

/// All exchanges of the sides of clusters, one by one.
fn flips_by_force(sums: &[f64]) -> f64 {
    let observed = sums.iter().sum::<f64>().abs();
    let all = 1_u32 << sums.len();
    let hits = (0..all)
        .filter(|signs| {
            let sum: f64 =
                sums.iter().enumerate().map(|(index, one)| if signs >> index & 1 == 0 { *one } else { -one }).sum();
            sum.abs() >= observed - 1e-9
        })
        .count();
    hits as f64 / f64::from(all)
}

#[test]
fn sign_flips_count_all_exchanges() {
    for sums in
        [vec![3.0, -1.0, 2.0, 2.0, 5.0], vec![0.5, 0.25, -0.75, 1.0, 1.0, 1.5], vec![1.0; 12], vec![-2.0, 2.0, 1.0]]
    {
        let found = sign_flips::test(&sums);
        assert!((found.p - flips_by_force(&sums)).abs() < 1e-12 && found.error.is_none(), "{sums:?} {found:?}");
    }
    // No factor makes these whole: all exchanges are counted, and of more than 20 some are drawn.
    let odd: Vec<f64> =
        (1..=14).map(|number| f64::from(number).sqrt() * if number % 4 == 0 { -1.0 } else { 1.0 }).collect();
    let found = sign_flips::test(&odd);
    assert!((found.p - flips_by_force(&odd)).abs() < 1e-12, "{found:?}");
    let many: Vec<f64> =
        (1..=24).map(|number| f64::from(number).sqrt() * if number % 3 == 0 { -1.0 } else { 1.0 }).collect();
    let (drawn, again) = (sign_flips::test(&many), sign_flips::test(&many));
    assert_eq!(drawn, again);
    let whole: Vec<f64> = many.iter().map(|one| (one * 1000.0).round()).collect();
    let error = drawn.error.unwrap();
    assert!(error > 0.0 && (drawn.p - flips_by_force(&whole)).abs() < 4.0 * error, "{drawn:?}");
}

#[test]
fn permutations_count_all_deals() {
    // By force: which of a pair's questions is the original.
    let by_force = |pairs: &[PairedAnswers]| {
        let values: Vec<Vec<f64>> =
            pairs.iter().map(|pair| pair.first.iter().chain(&pair.second).map(Answers::mean).collect()).collect();
        let difference = |chosen: &[usize]| -> f64 {
            let one = |(values, original): (&Vec<f64>, &usize)| {
                let others = values.iter().sum::<f64>() - values[*original];
                others / (values.len() - 1) as f64 - values[*original]
            };
            values.iter().zip(chosen).map(one).sum()
        };
        let observed = difference(&vec![0; pairs.len()]).abs();
        let (mut hits, mut all) = (0, 0);
        let mut chosen = vec![0; pairs.len()];
        loop {
            all += 1;
            hits += usize::from(difference(&chosen).abs() >= observed - 1e-9);
            let Some(index) = (0..pairs.len()).find(|index| chosen[*index] + 1 < values[*index].len()) else { break };
            chosen[..index].iter_mut().for_each(|one| *one = 0);
            chosen[index] += 1;
        }
        f64::from(hits as u32) / f64::from(all as u32)
    };
    let equal = [
        original(0, true, &[0, 0, 1]),
        original(1, true, &[0, 0, 0]),
        original(2, false, &[0, 0, 0]),
        original(3, false, &[1, 0, 0]),
        original(4, true, &[0, 1, 0]),
    ];
    let unequal = [
        original(0, true, &[0, 0, 1, 0]),
        original(1, true, &[0, 0]),
        original(2, false, &[0, 1, 0, 0, 0]),
        original(3, true, &[1, 0, 0]),
    ];
    for pairs in [&equal[..], &unequal[..]] {
        let found = permutation::test(pairs, false);
        assert!((found.p - by_force(pairs)).abs() < 1e-12 && found.error.is_none(), "{found:?} {}", by_force(pairs));
    }
    // Questions keep their answers together: 3 of 4 right is one question's.
    let several: Vec<PairedAnswers> = (0..5)
        .map(|cluster| PairedAnswers {
            cluster,
            first: vec![Answers { sum: 3.0, count: 4 }],
            second: vec![Answers { sum: 0.0, count: 4 }; 4],
        })
        .collect();
    // Every original is the right one of five: 1 of 5^5 deals. No deal is as far on the other side.
    assert!((permutation::test(&several, false).p - 0.2_f64.powi(5)).abs() < 1e-15);
}

// Python, apart from this code: convolution of the templates' distributions with numpy. 100 templates of an original and ten variants;
// five originals alone right, three with one variant, fourteen variants alone.
#[test]
fn one_original_against_ten_variants() {
    let pairs: Vec<PairedAnswers> = (0..100)
        .map(|cluster| match cluster {
            0..5 => original(cluster, true, &[0; 10]),
            5..8 => original(cluster, true, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            8..22 => original(cluster, false, &[0, 0, 1, 0, 0, 0, 0, 0, 0, 0]),
            _ => original(cluster, false, &[0; 10]),
        })
        .collect();
    let found = paired_verdict(&pairs).unwrap();
    assert_eq!((found.test, found.p_error), (PairedTest::Permutation, None));
    assert!((found.p - ORIGINALS).abs() < 1e-12, "{}", found.p);
    let (low, high) = found.interval(0.95).unwrap();
    assert!(low < found.difference && high > found.difference && high < 0.0, "{low} {high}");
    // No original is right, as it is once in four times with 1.5 %: no evidence, though the t test would swear to it.
    let none: Vec<PairedAnswers> = (0..100)
        .map(|cluster| original(cluster, false, &[u8::from(cluster % 7 == 0), 0, 0, 0, 0, 0, 0, 0, 0, 0]))
        .collect();
    let found = paired_verdict(&none).unwrap();
    assert!(found.robust.p() < 0.001 && found.p > 0.3, "{found:?}");
    let (low, high) = found.interval(0.95).unwrap();
    assert!(low < 0.0 && high > 0.0, "{low} {high}");
}

const ORIGINALS: f64 = 0.001_013_876_502_469_877_5;

#[test]
fn unequal_numbers_of_answers_have_the_larger_p() {
    // One answer of the first side, ten of the second, to 300 questions; every thirtieth is right once in ten times.
    let pairs: Vec<PairedAnswers> = (0..300)
        .map(|index| {
            let right = if index % 6 == 0 { 1.0 } else { 0.0 };
            PairedAnswers::single(index, one(0.0), Answers { sum: right, count: 10 })
        })
        .collect();
    let found = paired_verdict(&pairs).unwrap();
    assert_eq!(found.test, PairedTest::SignFlipsAndPermutation);
    // Sign flips alone would find 50 clusters that differ in one direction.
    assert!(found.p > 0.01, "{found:?}");
}

#[test]
fn intervals_and_tests_agree() {
    let mut checked = 0;
    for first in 0..14 {
        for second in 0..14 {
            for (both, neither) in [(0, 100), (3, 20), (60, 60)] {
                let found = paired_verdict(&questions(both, first, second, neither)).unwrap();
                for level in [0.8, 0.95, 0.995] {
                    let (low, high) = found.interval(level).unwrap();
                    assert!(low <= found.difference && found.difference <= high && low >= -1.0 && high <= 1.0);
                    let excludes = low > 0.0 || high < 0.0;
                    assert_eq!(excludes, found.p < 1.0 - level, "{first} {second} {both}: {found:?} {low} {high}");
                    checked += usize::from(excludes);
                }
            }
        }
    }
    assert!(checked > 100, "{checked}");
    // Exchanging the sides turns the interval round.
    let turned: Vec<PairedAnswers> = questions(2, 1, 8, 90)
        .into_iter()
        .map(|pair| PairedAnswers { first: pair.second, second: pair.first, ..pair })
        .collect();
    let (mine, theirs) = (paired_verdict(&questions(2, 1, 8, 90)).unwrap(), paired_verdict(&turned).unwrap());
    let ((low, high), (other_low, other_high)) = (mine.interval(0.95).unwrap(), theirs.interval(0.95).unwrap());
    assert!((low + other_high).abs() < 1e-9 && (high + other_low).abs() < 1e-9);
}

#[test]
fn where_nothing_differs_nothing_is_claimed() {
    for pairs in [questions(50, 0, 0, 50), questions(0, 0, 0, 50), questions(50, 0, 0, 0), questions(0, 0, 0, 2)] {
        let found = paired_verdict(&pairs).unwrap();
        assert_eq!((found.p, found.difference), (1.0, 0.0));
        let (low, high) = found.interval(0.95).unwrap();
        assert!(low < 0.0 && high > 0.0 && low.is_finite() && high.is_finite(), "{low} {high}");
    }
}

#[test]
fn few_clusters_that_all_differ_alike() {
    // Six clusters, in each all ten answers right against all wrong: two of 64 exchanges are as far.
    let pairs: Vec<PairedAnswers> = (0..60).map(|index| single(index / 10, 0.0, 1.0)).collect();
    let found = paired_verdict(&pairs).unwrap();
    assert_eq!((found.p, found.clusters, found.differing_clusters), (0.031_25, 6, 6));
    let (low, high) = found.interval(0.95).unwrap();
    assert!(low > 0.0 && high == 1.0, "{low} {high}");
    // Half right and half right after an exchange: no standard error, and enough answers.
    let alike: Vec<PairedAnswers> = (0..240)
        .map(|index| single(index / 4, f64::from(u8::from(index % 4 == 0)), f64::from(u8::from(index % 4 < 2))))
        .collect();
    let alike = paired_verdict(&alike).unwrap();
    assert_eq!((alike.reason, alike.p), (TestReason::AllAlike, 0.5_f64.powi(59)));
    // Five cannot be told from chance.
    let five = paired_verdict(&pairs[..50]).unwrap();
    assert!(five.p == 0.0625 && five.interval(0.95).unwrap().0 <= 0.0);
}

#[test]
fn what_cannot_be_judged_is_named() {
    assert_eq!(paired_verdict(&[]).unwrap_err(), VerdictError::NoPairs);
    assert_eq!(paired_verdict(&[single(3, 0.0, 1.0), single(3, 1.0, 1.0)]).unwrap_err(), VerdictError::OneCluster);
    let bad = [single(0, 0.0, 1.0), single(1, f64::NAN, 1.0)];
    assert_eq!(paired_verdict(&bad).unwrap_err(), VerdictError::NotFinite { position: 2 });
    let empty = [PairedAnswers { cluster: 0, first: Vec::new(), second: vec![one(1.0)] }];
    assert_eq!(paired_verdict(&empty).unwrap_err(), VerdictError::Empty { position: 1 });
    // Other numbers than shares have the t test.
    let scores: Vec<PairedAnswers> = (0..8).map(|index| single(index, 40.0, 42.0 + index as f64)).collect();
    assert_eq!(paired_verdict(&scores).unwrap().test, PairedTest::ClusterT);
}

#[test]
fn distributions_sum_to_one() {
    for count in [1, 7, 1000, 1001, 5000] {
        let found = Distribution::flips(1, count).two_sided(0.0, 0);
        assert!((found.p - 1.0).abs() < 1e-9, "{count}: {}", found.p);
    }
    assert_eq!(Distribution::flips(1, 3).two_sided(0.0, 3).p, 0.25);
}

#[test]
fn a_hundred_thousand_rows_take_seconds() {
    let begun = std::time::Instant::now();
    // Every seventh template has a right variant, every 67th a right original: 9,100 originals.
    let variants = |cluster: u64, count: usize| -> Vec<u8> {
        (0..count).map(|index| u8::from(index == 3 && cluster.is_multiple_of(7))).collect()
    };
    let equal: Vec<PairedAnswers> =
        (0..9100).map(|cluster| original(cluster, cluster % 450 == 0, &variants(cluster, 10))).collect();
    let unequal: Vec<PairedAnswers> = (0..9100)
        .map(|cluster| original(cluster, cluster % 450 == 0, &variants(cluster, 8 + cluster as usize % 6)))
        .collect();
    let exact = paired_verdict(&equal).unwrap();
    let drawn = paired_verdict(&unequal).unwrap();
    assert_eq!((exact.test, exact.p_error), (PairedTest::Permutation, None));
    assert!(drawn.test == PairedTest::Permutation && drawn.p_error.is_some(), "{drawn:?}");
    assert!(drawn.p > 0.0 && drawn.p <= 1.0);
    // Few are right, and all scores have fractions: sign flips of 50,000 clusters.
    let flips: Vec<PairedAnswers> = (0..50_000)
        .map(|cluster| {
            let right = if cluster % 5000 == 0 { 1.0 } else { 0.0 };
            single(cluster, right, f64::from(u8::from(cluster % 3000 == 1)) * 0.737)
        })
        .collect();
    let flipped = paired_verdict(&flips).unwrap();
    assert_eq!(flipped.test, PairedTest::SignFlips);
    assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
    println!("{:?}", begun.elapsed());
}

#[test]
fn a_question_keeps_its_answers_together() {
    // Two originals with one variant and one with two, eight answers each, all alike: 2 * 2 * 3 deals.
    let alike = |right: bool| Answers { sum: if right { 8.0 } else { 0.0 }, count: 8 };
    let pairs = [
        PairedAnswers { cluster: 0, first: vec![alike(true)], second: vec![alike(false)] },
        PairedAnswers { cluster: 1, first: vec![alike(true)], second: vec![alike(false)] },
        PairedAnswers { cluster: 2, first: vec![alike(true)], second: vec![alike(false); 2] },
    ];
    // The deal in which all three are right is 1 + 1 + 1 from what is expected, the opposite one 1 + 1 + 1/2: one of twelve is as far.
    let found = paired_verdict(&pairs).unwrap();
    assert_eq!(found.test, PairedTest::Permutation);
    assert!((found.p - 1.0 / 12.0).abs() < 1e-12, "{found:?}");
}

#[test]
fn originals_of_one_cluster_share_their_fate() {
    // Six texts with five questions each: where a text's original is right, all its originals are.
    let pairs: Vec<PairedAnswers> = (0..30).map(|index| original(index / 5, index < 10, &[0, 0, 0])).collect();
    let found = paired_verdict(&pairs).unwrap();
    assert_eq!(found.test, PairedTest::PermutationAndClusterT);
    assert!(found.p >= found.robust.p() && found.p > 0.1, "{found:?}");
}

#[test]
fn intervals_of_higher_levels_contain_those_of_lower_ones() {
    let sets = [
        questions(0, 0, 10, 0),
        questions(0, 0, 6, 40),
        questions(2, 1, 9, 30),
        (0..60).map(|index| single(index / 10, 0.0, 1.0)).collect(),
        (0..40).map(|cluster| original(cluster, cluster < 6, &[u8::from(cluster == 9), 0, 0, 0])).collect(),
    ];
    for pairs in sets {
        let found = paired_verdict(&pairs).unwrap();
        let mut before = (found.difference, found.difference);
        for step in 50..1000 {
            let level = f64::from(step) / 1000.0;
            let (low, high) = found.interval(level).unwrap();
            assert!(low <= before.0 + 1e-9 && high >= before.1 - 1e-9, "{level}: {low} {high} after {before:?}");
            assert_eq!(low > 0.0 || high < 0.0, found.p < 1.0 - level, "{level}: {low} {high} {}", found.p);
            before = (low, high);
        }
    }
}
