//! Tests of the default model.
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::distribution::student_two_sided;
use crate::mixed::tests::{paired, paired_in, simulated};
use crate::mixed::tests_refusal::{averaged, observed, rare};
use crate::mixed::{
    Column, Errors, Family, Formula, Frame, IntegralChoice, Method, MixedDiagnosis, MixedFit, MixedOptions, Terms, fit,
    marginal, method_paragraph,
};

#[test]
fn the_maximal_model_has_slopes_of_what_repeats() {
    let frame = simulated(20, 3, 17);
    let fixed = Terms::intercept().with("variant").with("gamma");
    let (formula, notes) = maximal_formula(&frame, "correct", &fixed, &["template"]).unwrap();
    assert_eq!(formula.to_string(), "correct ~ variant + gamma + (1 + variant | template)");
    assert!(notes.iter().any(|note| note.contains("gamma does not vary by template: it is a covariate")), "{notes:?}");
    // Many levels vary by groups of their own.
    let (formula, _) = maximal_formula(&frame, "correct", &Terms::intercept().with("model"), &["template"]).unwrap();
    assert_eq!(formula.to_string(), "correct ~ model + (1 | template) + (1 | model:template)");
    let chosen = fit_stepping_down(&formula, &frame, Family::Binomial).unwrap();
    assert!(chosen.fit.is_usable() && !chosen.fit.singular, "{:?}", chosen.steps);
    // One base question and many variants of it: the study's own design keeps its random intercept.
    let mut study = Frame::new();
    let rows = 40 * 11;
    let ids: Vec<String> = (0..rows).map(|row| format!("t{}", row / 11)).collect();
    study.texts("cluster", ids.iter().map(String::as_str)).unwrap();
    study.number("variant", (0..rows).map(|row| f64::from(u8::from(row % 11 > 0))).collect()).unwrap();
    study.number("correct", (0..rows).map(|row| f64::from(u8::from(row * row % 7 < 4))).collect()).unwrap();
    let (formula, notes) =
        maximal_formula(&study, "correct", &Terms::intercept().with("variant"), &["cluster"]).unwrap();
    assert_eq!(formula.to_string(), "correct ~ variant + (1 | cluster)", "{notes:?}");
    // Nothing repeats.
    let mut once = Frame::new();
    let items: Vec<String> = (0..50).map(|row| format!("q{row}")).collect();
    once.texts("item", items.iter().map(String::as_str)).unwrap();
    let error = maximal_formula(&once, "correct", &Terms::intercept(), &["item"]).unwrap_err().to_string();
    assert!(error.contains("nothing repeats within item"), "{error}");
}

#[test]
fn a_singular_model_steps_down_and_says_so() {
    // Variants do not differ between templates: no slope.
    let mut frame = Frame::new();
    let rows = 30 * 40;
    let templates: Vec<String> = (0..rows).map(|row| format!("t{}", row / 40)).collect();
    frame.texts("template", templates.iter().map(String::as_str)).unwrap();
    frame.texts("variant", (0..rows).map(|row| if row % 40 < 20 { "base" } else { "symbolic" })).unwrap();
    // As many right answers in every template and variant but for the template's level.
    let right = |row: usize| f64::from(u8::from(row % 20 < 6 + row / 40 % 9));
    frame.number("correct", (0..rows).map(right).collect()).unwrap();
    let formula: Formula = "correct ~ variant + (1+variant|template)".parse().unwrap();
    let chosen = fit_stepping_down(&formula, &frame, Family::Binomial).unwrap();
    assert_eq!(chosen.formula.to_string(), "correct ~ variant + (1 | template)", "{:?}", chosen.steps);
    assert!(!chosen.steps.is_empty() && chosen.steps[0].why.contains("template"), "{:?}", chosen.steps);
    assert!(!chosen.fit.singular);
    let text = method_paragraph(&chosen.data, &chosen.fit, 0.95);
    assert!(text.contains("30 levels of template") && text.contains("95 % Wald"), "{text}");
}

/// A run with five right answers beside one with many: its effect has too few for slopes, whatever all answers together have.
#[test]
fn a_run_with_few_right_answers_steps_down_too() {
    let frame = paired([3, 900, 97, 2], 40);
    let chosen = default_model(&frame, "correct", &Terms::intercept().with("run"), &["cluster", "item"]).unwrap();
    assert_eq!(chosen.formula.to_string(), "correct ~ run + (1 | item)", "{:?}", chosen.choice);
    assert_eq!(chosen.left_out, ["5 right answers where run is b are few, so only the groups of item are let vary"]);
    assert_eq!(chosen.fit.method, Method::Quadrature);
    let ratio = chosen.fit.coefficient("runb").and_then(|one| one.estimate).map(f64::exp);
    assert!(ratio.is_none_or(|ratio| (ratio * 97.0 / 2.0 - 1.0).abs() < 1e-2), "{ratio:?}");
}

/// Answers of the kind that the review found accuracies of 10.5 % for, where 0.6 % are right.
#[test]
fn the_default_model_of_rare_answers_is_near_the_observed_shares_or_refused() {
    for (runs, level, seed) in [(3, -9.5, 1), (3, -11.0, 2), (4, -10.0, 3)] {
        let frame = rare(runs, level, (1.5, 3.5), seed);
        let share = observed(&frame);
        assert!((0.002..0.03).contains(&share), "{share}");
        let fixed = Terms::intercept().with("run").with("variant");
        let chosen = default_model(&frame, "correct", &fixed, &["cluster", "item"]).unwrap();
        if let Some(refusal) = chosen.fit.refusal() {
            assert!(refusal.contains("test the paired difference") || refusal.starts_with("separated"), "{refusal}");
            assert!(chosen.fit.diagnoses[0].is_fatal(), "{:?}", chosen.fit.diagnoses);
            continue;
        }
        assert!(chosen.fit.random.iter().all(|effect| effect.sd.iter().all(|sd| *sd < 8.0)), "{:?}", chosen.fit.random);
        let all = averaged(&chosen.data, &chosen.fit);
        assert!(all.low < share && share < all.high && (0.7..1.4).contains(&(all.mean / share)), "{share} {all:?}");
    }
}

#[test]
fn questions_that_all_runs_answer_alike_get_robust_errors() {
    let frame = rare(3, -1.0, (1.0, 5.0), 7);
    let fixed = Terms::intercept().with("run").with("variant");
    let chosen = default_model(&frame, "correct", &fixed, &["cluster", "item"]).unwrap();
    assert_eq!(chosen.formula.to_string(), "correct ~ run + variant + (1 | item)", "{:?}", chosen.choice);
    assert!(chosen.left_out.iter().any(|why| why.contains("all right or all wrong")), "{:?}", chosen.left_out);
    assert_eq!((chosen.fit.errors, chosen.fit.method), (Errors::Robust, Method::Quadrature));
    let basis = chosen.fit.robust.as_ref().unwrap();
    assert_eq!((basis.group.as_str(), basis.clusters), ("cluster", 100));
    // No error of fewer than ten clusters can be trusted, so there are no numbers.
    let refused = default_model(&kept(&frame, 8), "correct", &fixed, &["cluster", "item"]).unwrap();
    assert!(refused.fit.refusal().unwrap().contains("8 clusters are too few"), "{:?}", refused.fit.refusal());
}

#[test]
fn few_right_answers_have_one_random_intercept_by_quadrature() {
    let frame = rare(3, -9.5, (1.5, 3.5), 1);
    let right = (observed(&frame) * frame.rows() as f64).round();
    assert!(right < 110.0, "{right}");
    let fixed = Terms::intercept().with("run").with("variant");
    let chosen = default_model(&frame, "correct", &fixed, &["cluster", "item"]).unwrap();
    assert_eq!(chosen.formula.to_string(), "correct ~ run + variant + (1 | item)", "{:?}", chosen.choice);
    let why = format!("{right} right answers are fewer than ten for each of 11 variances and correlations");
    assert!(chosen.left_out[0].starts_with(&why), "{:?}", chosen.left_out);
    assert!(chosen.fit.errors == Errors::Robust || chosen.fit.refusal().is_some(), "{:?}", chosen.fit.diagnoses);
}

/// The likelihood of two answers a question, whatever the deviation that fits the questions with both right and both wrong, has its maximum at the
/// ratio of those with one of both right (Neuhaus, Kalbfleisch and Hauck 1994).
#[test]
fn two_answers_a_question_have_the_odds_ratio_of_the_likelihood_whatever_the_clusters() {
    let fixed = Terms::intercept().with("run");
    for (counts, clusters, ratio) in [
        ([120, 66, 9, 25], 11, 25.0 / 9.0),
        ([120, 66, 9, 25], 40, 25.0 / 9.0),
        ([120, 66, 9, 25], 110, 25.0 / 9.0),
        ([10, 4978, 3, 9], 100, 3.0),
        ([900, 60, 14, 26], 48, 26.0 / 14.0),
    ] {
        let chosen = default_model(&paired(counts, clusters), "correct", &fixed, &["cluster", "item"]).unwrap();
        let found = chosen.fit.coefficient("runb").and_then(|one| one.estimate).map(f64::exp);
        assert!(
            found.is_some_and(|found| (found / ratio - 1.0).abs() < 1e-3),
            "{counts:?}: {found:?} {:?}",
            chosen.choice
        );
        assert_eq!(chosen.formula.to_string(), "correct ~ run + (1 | item)", "{:?}", chosen.choice);
    }
}

#[test]
fn two_answers_a_question_have_that_odds_ratio_where_clusters_vary_too() {
    let fixed = Terms::intercept().with("run");
    for (counts, clusters, turns) in
        [([200, 200, 18, 50], 40, true), ([500, 500, 100, 130], 25, false), ([300, 100, 20, 40], 60, true)]
    {
        // Some clusters are mostly right and others mostly wrong.
        let frame = paired_in(counts, |kind, index| match kind {
            0 => index * index % clusters,
            1 => index % (clusters / 2),
            _ => index % clusters,
        });
        let chosen = default_model(&frame, "correct", &fixed, &["cluster", "item"]).unwrap();
        let found = chosen.fit.coefficient("runb").and_then(|one| one.estimate).map(f64::exp);
        let ratio = counts[3] as f64 / counts[2] as f64;
        assert!(
            found.is_some_and(|found| (found / ratio - 1.0).abs() < 1e-3),
            "{counts:?}: {found:?} {:?}",
            chosen.choice
        );
        assert!(
            chosen.left_out.iter().any(|why| why.contains("Laplace's approximation is off")),
            "{:?}",
            chosen.left_out
        );
        assert_eq!((chosen.fit.errors, chosen.fit.robust.unwrap().group.as_str()), (Errors::Robust, "cluster"));
        // Of the formula itself the warning says so, with the numbers that are off.
        let formula: Formula = "correct ~ run + (1 | item) + (1 | cluster)".parse().unwrap();
        let data = crate::mixed::MixedData::new(&formula, &frame, Family::Binomial).unwrap();
        let by = |integral| fit(&data, &MixedOptions { integral, ..MixedOptions::default() }).unwrap();
        let asked = by(IntegralChoice::Laplace);
        let said: Vec<String> = asked.diagnoses.iter().map(ToString::to_string).collect();
        assert!(said.iter().any(|text| text.contains("(1 | item) alone quadrature moves runb by")), "{said:?}");
        assert!(asked.is_usable(), "{said:?}");
        // Where a verdict could turn the formula's own numbers are not printed, if Laplace's approximation was not asked for by name.
        let chosen = by(IntegralChoice::Automatic);
        assert_eq!(chosen.is("missed-effect"), turns, "{:?}", chosen.diagnoses);
        assert_eq!((chosen.is_usable(), chosen.is("poor-laplace")), (!turns, !turns), "{:?}", chosen.diagnoses);
    }
}

/// Groups of questions that a seed deals out: fewer than ten of them, one among them, and unequal ones that are worth fewer have no model.
#[test]
fn clusters_worth_fewer_than_ten_have_no_model() {
    let fixed = Terms::intercept().with("run");
    let fitted = |cluster_of: &dyn Fn(usize) -> usize| {
        let frame = paired_in([120, 66, 9, 25], |kind, index| cluster_of(index + [0, 120, 186, 195][kind]));
        default_model(&frame, "correct", &fixed, &["cluster", "item"]).unwrap().fit
    };
    for (clusters, said) in [(1, "1 cluster is"), (2, "2 clusters are"), (9, "9 clusters are")] {
        let refusal = fitted(&|index| index % clusters).refusal().unwrap();
        assert!(refusal.starts_with(&format!("{said} too few (a mixed model needs ten)")), "{refusal}");
    }
    assert_eq!(fitted(&|index| index % 10).refusal(), None);
    // Half of the questions are of one cluster.
    let uneven = fitted(&|index| if index % 2 == 0 { 0 } else { 1 + index % 30 / 2 });
    assert!(uneven.is("few-clusters") && !uneven.is_usable(), "{:?}", uneven.diagnoses);
    let refusal = uneven.refusal().unwrap();
    assert!(refusal.starts_with("16 clusters of unequal size, which tell as much as "), "{refusal}");
    assert_eq!(fitted(&|index| index / 4 + index % 3).refusal(), None);
    // Ten clusters, of which one lacks an answer, are ten.
    let frame = paired_in([60, 30, 10, 19], |kind, index| (index + [0, 60, 90, 100][kind]) % 10);
    assert_eq!(default_model(&frame, "correct", &fixed, &["cluster", "item"]).unwrap().fit.refusal(), None);
    // Nothing that varies is the first reason, and questions without clusters are called questions.
    let reason = |counts, clusters| {
        let chosen = default_model(&paired(counts, clusters), "correct", &fixed, &["cluster", "item"]).unwrap();
        assert!(!chosen.fit.is_usable());
        chosen.fit.diagnoses[0].clone()
    };
    assert_eq!(reason([40, 0, 0, 0], 5), MixedDiagnosis::ConstantResponse { value: 1.0 });
    let few = MixedDiagnosis::FewClusters { group: "item".to_owned(), clusters: 6, worth: 6.0 };
    assert_eq!(reason([2, 2, 1, 1], 6), few);
}

/// Of 120 questions in 12 clusters a run has 5 right and the other 24, where the scatter between clusters is small by chance.
#[test]
fn differences_have_the_larger_error_too() {
    let fixed = Terms::intercept().with("run");
    for step in [1, 5, 7, 11] {
        let frame = paired_in([1, 92, 4, 23], |kind, index| (index * step + kind) % 12);
        let chosen = default_model(&frame, "correct", &fixed, &["cluster", "item"]).unwrap();
        let bare = fit(&chosen.data, &MixedOptions::default()).unwrap();
        let difference =
            |fit: &MixedFit| marginal(&chosen.data, fit, Some("run"), 0.95).unwrap().differences[0].clone();
        let (printed, own) = (difference(&chosen.fit), difference(&bare));
        assert!(printed.standard_error >= own.standard_error && printed.p >= own.p, "{printed:?} {own:?}");
        for (one, own) in chosen.fit.coefficients.iter().zip(&bare.coefficients) {
            assert!(one.standard_error >= own.standard_error && one.p >= own.p, "{one:?} {own:?}");
        }
    }
}

/// Of three runs the second and the third mostly exclude each other: their difference has the error of the scatter, whichever run is the reference.
#[test]
fn differences_of_other_levels_have_robust_errors_too() {
    let fitted = |names: [&'static str; 3]| {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let mut rows = Vec::new();
        for question in 0..200 {
            let first = random.random::<f64>() < 0.5;
            let second = random.random::<f64>() < 0.5;
            let third = if random.random::<f64>() < 0.9 { !second } else { random.random::<f64>() < 0.5 };
            rows.extend(
                names.into_iter().zip([first, second, third]).map(|(name, is_right)| (question, name, is_right)),
            );
        }
        let frame = answers_of(&rows);
        let chosen = default_model(&frame, "correct", &Terms::intercept().with("run"), &["item"]).unwrap();
        let differences = marginal(&chosen.data, &chosen.fit, Some("run"), 0.95).unwrap().differences;
        let error = differences.iter().find(|one| [&one.level, &one.against].iter().all(|name| *name != names[0]));
        (chosen.fit.errors, error.unwrap().log_odds_error)
    };
    // Levels are in order, so the first is the reference.
    let (of_first, of_second) = (fitted(["a", "b", "c"]), fitted(["z", "b", "c"]));
    assert_eq!((of_first.0, of_second.0), (Errors::Robust, Errors::Robust));
    assert!((of_first.1 / of_second.1 - 1.0).abs() < 1e-6, "{of_first:?} {of_second:?}");
}

/// Two runs whose effects vary by cluster, and a copy of one of them: the copy takes nothing from the error of their difference.
#[test]
fn a_copied_run_changes_no_error() {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let (mut item, mut cluster, mut answers) = (vec![], vec![], vec![]);
    for question in 0..200 {
        let own = question % 25;
        let level = if own % 2 == 0 { 0.25 } else { 0.02 };
        let other = if own % 3 == 0 { 0.4 } else { 0.02 };
        item.push(format!("q{question}"));
        cluster.push(format!("c{own}"));
        answers.push([random.random::<f64>() < level, random.random::<f64>() < other]);
    }
    let fitted = |runs: &[usize]| {
        let (mut frame, names) = (Frame::new(), ["a", "b", "c"]);
        let rows = || (0..200).flat_map(|question| (0..runs.len()).map(move |run| (question, run)));
        frame.texts("item", rows().map(|(question, _)| item[question].as_str())).unwrap();
        frame.texts("cluster", rows().map(|(question, _)| cluster[question].as_str())).unwrap();
        frame.texts("run", rows().map(|(_, run)| names[run])).unwrap();
        let right = rows().map(|(question, run)| f64::from(u8::from(answers[question][runs[run]])));
        frame.number("correct", right.collect()).unwrap();
        let fixed = Terms::intercept().with("run");
        default_model(&frame, "correct", &fixed, &["cluster", "item"]).unwrap().fit
    };
    for runs in [vec![0, 1], vec![0, 1, 1], vec![0, 1, 0]] {
        let fit = fitted(&runs);
        assert_eq!((fit.errors, fit.robust.as_ref().unwrap().group.as_str()), (Errors::Robust, "cluster"), "{runs:?}");
        let one = fit.coefficient("runb").unwrap();
        assert!(one.standard_error >= one.standard_error_model && one.p.is_some(), "{runs:?}: {one:?}");
    }
}

/// Twenty questions of two answers, of which a run has 3 right and the other 18.
#[test]
fn an_odds_ratio_that_says_nothing_is_refused() {
    let mut rows = Vec::new();
    for question in 0..20 {
        for epoch in 0..2 {
            rows.push((question, "a", epoch == 0 && question < 3));
            rows.push((question, "b", question < 8 || epoch == 0 && question < 10));
        }
    }
    let chosen = default_model(&answers_of(&rows), "correct", &Terms::intercept().with("run"), &["item"]).unwrap();
    assert!(
        matches!(&chosen.fit.diagnoses[0], MixedDiagnosis::VastInterval { coefficient, low, high } if coefficient == "runb" && *high > 1e4 * low),
        "{:?}",
        chosen.fit.diagnoses
    );
    assert!(!chosen.fit.is_usable());
}

/// Answers of runs to questions: question, run, right or wrong.
fn answers_of(rows: &[(usize, &str, bool)]) -> Frame {
    let items: Vec<String> = rows.iter().map(|(question, ..)| format!("q{question}")).collect();
    let mut frame = Frame::new();
    frame.texts("item", items.iter().map(String::as_str)).unwrap();
    frame.texts("run", rows.iter().map(|(_, run, _)| *run)).unwrap();
    frame.number("correct", rows.iter().map(|(.., is_right)| f64::from(u8::from(*is_right))).collect()).unwrap();
    frame
}

#[test]
fn fewer_than_twenty_clusters_have_the_t_distribution() {
    let fixed = Terms::intercept().with("run");
    let fit =
        |clusters| default_model(&paired([1200, 660, 90, 130], clusters), "correct", &fixed, &["cluster"]).unwrap().fit;
    let (few, many) = (fit(12), fit(30));
    assert_eq!((many.errors, &many.robust), (Errors::Model, &None));
    let basis = few.robust.as_ref().unwrap();
    // They have 173 questions, or one less.
    assert_eq!((basis.group.as_str(), basis.clusters), ("cluster", 12));
    assert!((basis.degrees_of_freedom - 11.0).abs() < 1e-3, "{basis:?}");
    assert!(basis.reason.contains("12 clusters are too few for the normal distribution"), "{basis:?}");
    let effect = few.coefficient("runb").unwrap();
    let t = effect.estimate.unwrap() / effect.standard_error.unwrap();
    assert!((effect.p.unwrap() - student_two_sided(t, basis.degrees_of_freedom)).abs() < 1e-12, "{effect:?}");
}

/// Pairs that mostly differ, in a dozen clusters: nothing is said of the difference by the model's errors, which take pairs for independent answers.
#[test]
fn few_clusters_have_the_errors_of_the_questions() {
    let frame = paired([3, 3, 24, 30], 12);
    let fixed = Terms::intercept().with("run");
    let with = default_model(&frame, "correct", &fixed, &["cluster", "item"]).unwrap().fit;
    let without = default_model(&frame, "correct", &fixed, &["item"]).unwrap().fit;
    let error = |fit: &crate::mixed::MixedFit| fit.coefficient("runb").unwrap().standard_error.unwrap();
    assert_eq!((with.errors, without.errors), (Errors::Robust, Errors::Robust));
    assert!((error(&with) - error(&without)).abs() < 1e-9, "{with:?}");
}

/// Pairs that mostly exclude each other, in a dozen clusters whose effects differ: nothing differs on average, and 13 % of p values were below .05 by the
/// model's errors.
#[test]
fn few_clusters_whose_effects_vary_have_the_errors_of_their_scatter() {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let fixed = Terms::intercept().with("run");
    let (mut varying, mut fitted, mut small) = (0, 0, 0);
    for set in 0..90 {
        let clusters = 14 + set % 6;
        let log_odds = [0.0, 1.0, 2.0][set % 3];
        let only_b: Vec<f64> =
            (0..clusters).map(|_| 1.0 / (1.0 + (log_odds * (6.0 * random.random::<f64>() - 3.0)).exp())).collect();
        let mut counts = [3, 3, 0, 0];
        let mut cluster_of = [vec![], vec![], vec![], vec![]];
        (0..2).for_each(|kind| cluster_of[kind] = (0..3).map(|_| random.random_range(0..clusters)).collect());
        for _ in 0..54 {
            let cluster = random.random_range(0..clusters);
            let kind = 2 + usize::from(random.random::<f64>() < only_b[cluster]);
            counts[kind] += 1;
            cluster_of[kind].push(cluster);
        }
        let frame = paired_in(counts, |kind, index| cluster_of[kind][index]);
        let chosen = default_model(&frame, "correct", &fixed, &["cluster", "item"]).unwrap();
        varying += usize::from(chosen.formula.to_string().contains("run || cluster"));
        if chosen.fit.is_usable() {
            fitted += 1;
            // Some clusters have no question. Errors over questions have the t distribution of the clusters too.
            let basis = chosen.fit.robust.as_ref().unwrap();
            let over = if basis.group == "cluster" { basis.clusters <= clusters } else { basis.clusters == 60 };
            assert!(over && (8.5..clusters as f64).contains(&basis.degrees_of_freedom), "{basis:?}");
        }
        small += usize::from(chosen.fit.coefficient("runb").and_then(|one| one.p).is_some_and(|p| p < 0.05));
    }
    assert!(varying > 45 && fitted > 70 && small < 8, "{varying} {fitted} {small}");
}

/// Epochs of questions that nearly always agree: Laplace's approximation with slopes by question makes 0.9 of an odds ratio of 2.7.
#[test]
fn several_answers_a_question_have_the_odds_ratio_of_the_likelihood() {
    let fixed = Terms::intercept().with("run");
    for (epochs, deviation, seed) in [(3, 3.5, 1), (3, 4.0, 2), (5, 4.0, 3), (8, 5.0, 4)] {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let (mut item, mut cluster, mut run, mut right) = (vec![], vec![], vec![], vec![]);
        for question in 0..1_000 {
            let own = deviation * ((0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0) - 4.5;
            for (name, effect) in [("a", 0.0), ("b", 1.0)] {
                for _ in 0..epochs {
                    item.push(format!("q{question}"));
                    cluster.push(format!("c{}", question % 20));
                    run.push(name);
                    right.push(f64::from(u8::from(random.random::<f64>() < 1.0 / (1.0 + (-own - effect).exp()))));
                }
            }
        }
        let mut frame = Frame::new();
        frame.texts("item", item.iter().map(String::as_str)).unwrap();
        frame.texts("cluster", cluster.iter().map(String::as_str)).unwrap();
        frame.texts("run", run.iter().copied()).unwrap();
        frame.number("correct", right).unwrap();
        let chosen = default_model(&frame, "correct", &fixed, &["cluster", "item"]).unwrap();
        let found = chosen.fit.coefficient("runb").and_then(|one| one.estimate.zip(one.standard_error));
        let (estimate, error) = found.unwrap_or_else(|| panic!("{:?}", chosen.fit.diagnoses));
        assert!(
            (estimate - 1.0).abs() < 3.0 * error && error < 0.2,
            "{epochs}: {estimate} {error} {:?}",
            chosen.choice
        );
        // The formula of both factors is not printed where quadrature of the questions alone is far from it.
        let formula: Formula = "correct ~ run + (1 | item) + (1 | cluster)".parse().unwrap();
        let data = crate::mixed::MixedData::new(&formula, &frame, Family::Binomial).unwrap();
        let fitted = fit(&data, &MixedOptions::default()).unwrap();
        if let Some((estimate, error)) = fitted.coefficient("runb").and_then(|one| one.estimate.zip(one.standard_error))
        {
            assert!((estimate - 1.0).abs() < 3.0 * error, "{epochs}: {estimate} {error} {:?}", fitted.diagnoses);
            let all = averaged(&data, &fitted);
            assert!((0.9..1.1).contains(&(all.mean / observed(&frame))), "{epochs}: {all:?}");
        }
    }
}

/// The rows of the first clusters.
fn kept(frame: &Frame, clusters: usize) -> Frame {
    let labels = frame.as_labels("cluster").unwrap();
    let first: Vec<String> = (0..clusters).map(|index| format!("t{index}")).collect();
    let is_kept = |row: &usize| first.contains(&labels.levels[labels.codes[*row] as usize]);
    let rows: Vec<usize> = (0..frame.rows()).filter(is_kept).collect();
    let mut kept = Frame::new();
    for name in ["cluster", "item", "run", "variant"] {
        let labels = frame.as_labels(name).unwrap();
        kept.texts(name, rows.iter().map(|&row| labels.levels[labels.codes[row] as usize].as_str())).unwrap();
    }
    let Ok(Column::Number(values)) = frame.column("correct") else { panic!("no numbers") };
    kept.number("correct", rows.iter().map(|&row| values[row]).collect()).unwrap();
    kept
}
