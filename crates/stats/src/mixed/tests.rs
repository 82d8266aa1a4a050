//! Tests of fits as a whole.
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::gaussian::Gaussian;
use super::laplace::{Criterion, Laplace};
use super::layout::Layout;
use super::*;

/// Rows of 4 models and 2 variants on items within templates, one numeric covariate a row.
pub(crate) fn simulated(templates: usize, items: usize, seed: u64) -> Frame {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut template, mut item, mut model, mut variant, mut prompt) = (vec![], vec![], vec![], vec![], vec![]);
    let (mut gamma, mut correct, mut latency) = (vec![], vec![], vec![]);
    let mut normal = || (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
    for t in 0..templates {
        let (level, slope) = (normal(), 0.6 * normal());
        for i in 0..items {
            let own = 0.7 * normal();
            for m in 0..4 {
                for v in 0..2 {
                    for p in 0..2 {
                        let x = normal();
                        let eta =
                            0.3 * f64::from(m) - 0.4 * f64::from(v) + level + slope * f64::from(v) + own + 0.5 * x;
                        template.push(format!("t{t}"));
                        item.push(format!("q{i}"));
                        model.push(format!("m{m}"));
                        variant.push(["base", "symbolic"][v as usize]);
                        prompt.push(format!("p{p}"));
                        gamma.push(x);
                        correct.push(f64::from(u8::from(eta + 1.7 * normal() > 0.0)));
                        latency.push(eta + normal());
                    }
                }
            }
        }
    }
    let mut frame = Frame::new();
    for (name, texts) in [("template", &template), ("item", &item), ("model", &model), ("prompt", &prompt)] {
        frame.texts(name, texts.iter().map(String::as_str)).unwrap();
    }
    frame.texts("variant", variant.iter().copied()).unwrap();
    for (name, values) in [("gamma", gamma), ("correct", correct), ("latency", latency)] {
        frame.number(name, values).unwrap();
    }
    frame
}

/// Answers of runs `a` and `b` to every question once: how many questions both have right, neither, `a` alone and `b` alone. Questions go to clusters
/// in turn.
pub(crate) fn paired(counts: [usize; 4], clusters: usize) -> Frame {
    let mut number = 0..;
    paired_in(counts, |_, _| number.next().unwrap_or(0) % clusters)
}

/// As [`paired`], with the cluster of each question by the index of its kind and its own.
pub(crate) fn paired_in(counts: [usize; 4], mut cluster: impl FnMut(usize, usize) -> usize) -> Frame {
    let outcomes = [[1.0, 1.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0]];
    let mut frame = Frame::new();
    let (mut items, mut clusters, mut correct) = (Vec::new(), Vec::new(), Vec::new());
    for (kind, (count, answers)) in counts.into_iter().zip(outcomes).enumerate() {
        for index in 0..count {
            items.extend([format!("k{kind}q{index}"), format!("k{kind}q{index}")]);
            let own = format!("c{}", cluster(kind, index));
            clusters.extend([own.clone(), own]);
            correct.extend(answers);
        }
    }
    frame.texts("item", items.iter().map(String::as_str)).unwrap();
    frame.texts("cluster", clusters.iter().map(String::as_str)).unwrap();
    frame.texts("run", (0..items.len()).map(|row| ["a", "b"][row % 2])).unwrap();
    frame.number("correct", correct).unwrap();
    frame
}

pub(super) fn data(formula: &str, frame: &Frame, family: Family) -> Result<MixedData, MixedError> {
    MixedData::new(&formula.parse().unwrap(), frame, family)
}

/// The gradient at a point against differences of the value.
fn compare_gradient(criterion: &mut impl Criterion, at: &[f64]) {
    let mut gradient = vec![0.0; at.len()];
    criterion.evaluate(at, Some(&mut gradient)).unwrap();
    for index in 0..at.len() {
        let mut value = |step: f64| {
            let mut moved = at.to_vec();
            moved[index] += step;
            criterion.evaluate(&moved, None).unwrap()
        };
        let step = 1e-4;
        let difference =
            (8.0 * (value(step) - value(-step)) - (value(2.0 * step) - value(-2.0 * step))) / (12.0 * step);
        let reach = 1e-5 * difference.abs().max(1.0);
        assert!((difference - gradient[index]).abs() < reach, "{index}: {difference} {gradient:?}");
    }
}

const DESIGNS: [&str; 5] = [
    "~ model*variant + (1+variant|template) + (1|template:item) + (1|prompt)",
    "~ variant + gamma + (1+gamma+variant|template) + (1|item) + (1|model:template:item)",
    "~ variant + (1+gamma||template) + (0+variant|item)",
    // Many nodes after the largest factor, sparse and in a chain.
    "~ model + (1|model:template:item) + (1+variant|template:item) + (1|template) + (1|model:template)",
    "~ gamma + (1+gamma|template) + (1|template:model)",
];

#[test]
fn gradients_are_exact() {
    let frame = simulated(12, 5, 1);
    for design in DESIGNS {
        let binomial = data(&format!("correct {design}"), &frame, Family::Binomial).unwrap();
        let layout = Layout::new(&binomial).unwrap();
        let mut criterion = Laplace::new(&binomial, &layout);
        criterion.units[0] = 0.7;
        let count = criterion.theta.len();
        let at: Vec<f64> = (0..count + binomial.columns())
            .map(|index| 0.6 - 0.25 * (index % 4) as f64 - 0.01 * index as f64)
            .collect();
        compare_gradient(&mut criterion, &at);
        let linear = data(&format!("latency {design}"), &frame, Family::Gaussian).unwrap();
        for restricted in [false, true] {
            let layout = Layout::new(&linear).unwrap();
            compare_gradient(&mut Gaussian::new(&linear, &layout, restricted), &at[..count]);
        }
    }
}

#[test]
fn equal_groups_as_one_have_the_criterion_of_all() {
    let frame = simulated(40, 3, 4);
    // The item has two answers, one a model; slopes of the first factor too, and a number among the fixed effects.
    let designs = [
        "~ model + (1+model|template) + (1|template:item:variant)",
        "~ model*variant + (1|template:item:variant) + (1|prompt)",
        "~ model + variant + (1+variant|template:item:model) + (1|template)",
        "~ variant + (1|template:item:variant)",
    ];
    for design in designs {
        let whole = data(&format!("correct {design}"), &frame, Family::Binomial).unwrap();
        let merged = whole.merged().unwrap();
        let groups = |data: &MixedData| data.groupings[0].levels.len();
        assert!(2 * groups(&merged) < 3 * groups(&whole) && merged.cells() < whole.cells(), "{design}");
        assert_eq!(merged.groupings[0].copies.iter().sum::<f64>() as usize, groups(&whole), "{design}");
        same_criterion(&whole, &merged);
    }
}

/// Value, gradient and information of Laplace's criterion of merged data against those of the whole.
fn same_criterion(whole: &MixedData, merged: &MixedData) {
    let (layout, own) = (Layout::new(whole).unwrap(), Layout::new(merged).unwrap());
    let (mut criterion, mut other) = (Laplace::new(whole, &layout), Laplace::new(merged, &own));
    let count = criterion.theta.len();
    let formula = whole.formula();
    for step in [0.1, 0.25] {
        let at: Vec<f64> = (0..count + whole.columns()).map(|index| 0.7 - step * index as f64).collect();
        let (mut one, mut two) = (vec![0.0; at.len()], vec![0.0; at.len()]);
        let value = criterion.evaluate(&at, Some(&mut one)).unwrap();
        let same = other.evaluate(&at, Some(&mut two)).unwrap();
        assert!((value - same).abs() < 1e-10 * value, "{formula}: {value} {same}");
        for (one, two) in one.iter().zip(&two) {
            assert!((one - two).abs() < 1e-8 * one.abs().max(1.0), "{formula}: {one} {two}");
        }
        let lambda = criterion.theta.factors(&at[..count]);
        let (one, two) = (criterion.information(&lambda).to_rows(), other.information(&lambda).to_rows());
        for (one, two) in one.iter().flatten().zip(two.iter().flatten()) {
            assert!((one - two).abs() < 1e-8 * one.abs().max(1.0), "{formula}: {one} {two}");
        }
    }
    let at: Vec<f64> = (0..count + whole.columns()).map(|index| 0.5 - 0.1 * index as f64).collect();
    compare_gradient(&mut other, &at);
}

#[test]
fn equal_wider_groups_as_one_have_the_criterion_of_all() {
    // Runs of four or five questions each: 300 clusters, of which many are alike; few enough kinds for the dense rest, or more.
    for (counts, clusters) in [([900, 300, 60, 90], 300), ([40, 20, 9, 12], 40)] {
        let frame = shuffled(counts, clusters);
        for design in ["~ run + (1 + run | cluster) + (1 | item)", "~ run + (1 | cluster) + (1 | item)"] {
            let whole = data(&format!("correct {design}"), &frame, Family::Binomial).unwrap();
            let merged = whole.merged().unwrap();
            let (own, groups) = (&merged.groupings[1], whole.groupings[1].levels.len());
            assert!(own.levels.len() < groups, "{} of {groups}", own.levels.len());
            assert_eq!(own.copies.iter().sum::<f64>() as usize, groups);
            assert_eq!(merged.groupings[0].copies.iter().sum::<f64>() as usize, whole.groupings[0].levels.len());
            same_criterion(&whole, &merged);
        }
    }
}

/// As [`paired`], with the questions in clusters at random.
fn shuffled(counts: [usize; 4], clusters: usize) -> Frame {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    paired_in(counts, |_, _| random.random_range(0..clusters))
}

/// Yields of dyestuff, five of each of six batches (Davies and Goldsmith 1972), and lme4's results for them.
#[test]
fn dyestuff_is_fitted_as_by_lme4() {
    let yields = [
        1545, 1440, 1440, 1520, 1580, 1540, 1555, 1490, 1560, 1495, 1595, 1550, 1605, 1510, 1560, 1445, 1440, 1595,
        1465, 1545, 1595, 1630, 1515, 1635, 1625, 1520, 1455, 1450, 1480, 1445,
    ];
    let mut frame = Frame::new();
    frame.number("yield", yields.iter().map(|&value| f64::from(value)).collect()).unwrap();
    let batches: Vec<String> = (0..30).map(|row| format!("B{}", row / 5)).collect();
    frame.texts("batch", batches.iter().map(String::as_str)).unwrap();
    let data = data("yield ~ 1 + (1|batch)", &frame, Family::Gaussian).unwrap();
    for (restricted, criterion, error, sd) in [(true, 319.6543, 19.383, 42.0006), (false, 327.3271, 17.694, 37.2603)] {
        let fitted = fit(&data, &MixedOptions { restricted, ..MixedOptions::default() }).unwrap();
        let close = |left: f64, right: f64| assert!((left - right).abs() < 1e-3, "{left} {right}");
        close(fitted.minus_two_log_likelihood.unwrap(), criterion);
        close(fitted.coefficients[0].estimate.unwrap(), 1527.5);
        close(fitted.coefficients[0].standard_error.unwrap(), error);
        close(fitted.random[0].sd[0], sd);
        close(fitted.residual_sd.unwrap(), 49.5101);
    }
}

#[test]
fn a_linear_model_finds_what_was_simulated() {
    let frame = simulated(60, 6, 3);
    let data =
        data("latency ~ variant + gamma + (1+variant|template) + (1|template:item)", &frame, Family::Gaussian).unwrap();
    let fitted = fit(&data, &MixedOptions::default()).unwrap();
    assert!(fitted.converged && !fitted.singular, "{:?}", fitted.diagnoses);
    let near = |found: f64, truth: f64, reach: f64| assert!((found - truth).abs() < reach, "{found} {truth}");
    near(fitted.coefficient("gamma").unwrap().estimate.unwrap(), 0.5, 0.05);
    near(fitted.random[1].sd[1], 0.6, 0.2);
    near(fitted.random[0].sd[0], 0.7, 0.1);
    near(fitted.residual_sd.unwrap(), 1.05, 0.05);
}

#[test]
fn an_empty_cell_drops_its_column() {
    let frame = simulated(20, 3, 4);
    let labels = |name: &str| match frame.column(name).unwrap() {
        Column::Labels(labels) => labels.codes.clone(),
        Column::Number(_) => unreachable!(),
    };
    let (model, variant) = (labels("model"), labels("variant"));
    let kept: Vec<usize> = (0..frame.rows()).filter(|&row| (model[row], variant[row]) != (3, 1)).collect();
    let data = data("correct ~ model*variant + (1|template)", &frame.picked(&kept), Family::Binomial).unwrap();
    let fitted = fit(&data, &MixedOptions::default()).unwrap();
    assert_eq!(fitted.dropped, ["modelm3:variantsymbolic"]);
    assert!(fitted.diagnoses.iter().any(|one| one.to_string().contains("aliased: modelm3:variantsymbolic")));
    assert!(marginal(&data, &fitted, Some("variant"), 0.95).unwrap_err().to_string().contains("not defined"));
}

#[test]
fn bad_data_are_named_with_the_next_step() {
    let mut frame = simulated(3, 2, 5);
    frame.number("one", vec![1.0; frame.rows()]).unwrap();
    frame.number("huge", (0..frame.rows()).map(|row| row as f64 * 1e200).collect()).unwrap();
    let rows: Vec<String> = (0..frame.rows()).map(|row| row.to_string()).collect();
    frame.texts("row", rows.iter().map(|row| if row == "7" { "x" } else { row })).unwrap();
    frame.texts("same", rows.iter().map(|_| "a")).unwrap();
    for (formula, reason) in [
        ("correct ~ size + (1|template)", "no column `size`; the columns are: template"),
        ("correct ~ one + (1|template)", "`one` is 1 in every row"),
        ("correct ~ same + (1|template)", "`same` is a in every row"),
        ("correct ~ variant + (1|same)", "is the same in every row"),
        ("correct ~ variant + (1|row)", "a group with one answer each"),
        ("correct ~ variant", "no random effect; add one, e.g. (1 | template)"),
        ("correct ~ 0 + (1|template)", "neither an intercept nor a fixed effect"),
        ("correct ~ huge + (1|template)", "use another unit"),
        ("latency ~ variant + (1|template)", "expected 0 or 1"),
        ("model ~ variant + (1|template)", "holds labels such as `m0`"),
    ] {
        let error = data(formula, &frame, Family::Binomial).unwrap_err().to_string();
        assert!(error.contains(reason), "{formula}: {error}");
    }
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let codes: Vec<String> = (0..frame.rows()).map(|_| random.random_range(0..100).to_string()).collect();
    frame.texts("code", codes.iter().map(|code| if code == "0" { "x" } else { code })).unwrap();
    let error = data("correct ~ code*row + (1|template)", &frame, Family::Binomial).unwrap_err();
    assert!(matches!(error, MixedError::ManyColumns { .. }), "{error}");
}

#[test]
fn separated_effects_have_no_estimate_but_a_penalised_one() {
    let mut frame = simulated(15, 3, 6);
    let Column::Labels(labels) = frame.column("model").unwrap().clone() else { unreachable!() };
    let Column::Number(correct) = frame.column("correct").unwrap().clone() else { unreachable!() };
    let solved = correct.iter().zip(&labels.codes).map(|(value, code)| if *code == 2 { 1.0 } else { *value }).collect();
    frame.number("solved", solved).unwrap();
    let data = data("solved ~ model + (1|template)", &frame, Family::Binomial).unwrap();
    let refused = fit(&data, &MixedOptions::default()).unwrap();
    assert!(!refused.is_usable() && refused.minus_two_log_likelihood.is_none());
    let MixedDiagnosis::Separation { columns, complete, .. } = &refused.diagnoses[0] else { panic!("{refused:?}") };
    assert_eq!((columns.as_slice(), *complete), (["modelm2".to_owned()].as_slice(), false));
    let penalised = fit(&data, &MixedOptions { penalised: true, ..MixedOptions::default() }).unwrap();
    let estimate = penalised.coefficient("modelm2").unwrap().estimate.unwrap();
    assert!(penalised.converged && estimate > 2.0 && estimate < 15.0, "{penalised:?}");
    assert_eq!(penalised.prior.as_deref(), Some("log-F(1,1) on modelm2"));
    // Where nothing is separated there is nothing to penalise.
    let data = self::data("correct ~ model + (1|template)", &frame, Family::Binomial).unwrap();
    let plain = fit(&data, &MixedOptions { penalised: true, ..MixedOptions::default() }).unwrap();
    assert_eq!(plain.prior, None);
    assert_eq!(plain, fit(&data, &MixedOptions::default()).unwrap());
}

/// Reference: own Python (numpy, scipy 1.x), the likelihood by 80 Gauss-Hermite points a group plus the log-F(1,1) penalty
/// `b / 2 - log(1 + exp(b))` of the separated coefficient (Greenland and Mansournia 2015), Nelder-Mead to 1e-12, ends of the profile by
/// `brentq`, p by chi-squared of one degree of freedom.
#[test]
fn a_separated_effect_has_the_profile_of_its_penalised_likelihood() {
    let (mut group, mut flag, mut correct) = (vec![], vec![], vec![]);
    for g in 0..14 {
        for r in 0..8 {
            let flagged = r == 0 && g < 4;
            group.push(format!("g{g}"));
            flag.push(f64::from(u8::from(flagged)));
            correct.push(f64::from(u8::from(flagged || (7 * r + 3 * g * g) % 11 < 1 + 2 * (g % 5))));
        }
    }
    assert_eq!(correct.iter().sum::<f64>(), 48.0);
    let mut frame = Frame::new();
    frame.texts("group", group.iter().map(String::as_str)).unwrap();
    frame.number("flag", flag).unwrap();
    frame.number("correct", correct).unwrap();
    let data = data("correct ~ flag + (1|group)", &frame, Family::Binomial).unwrap();
    let options = MixedOptions { penalised: true, integral: IntegralChoice::QUADRATURE, ..MixedOptions::default() };
    let fitted = fit(&data, &options).unwrap();
    let near =
        |found: f64, reference: f64, reach: f64| assert!((found - reference).abs() < reach, "{found} {reference}");
    near(fitted.coefficients[0].estimate.unwrap(), -0.44290785, 1e-4);
    near(fitted.coefficients[1].estimate.unwrap(), 2.97668377, 1e-4);
    near(fitted.random[0].sd[0], 0.97736861, 1e-4);
    near(fitted.minus_two_log_likelihood.unwrap(), 142.93217386, 1e-5);
    let interval = profile_interval(&data, &fitted, "flag", 0.95).unwrap();
    near(interval.low.unwrap(), 0.48683187, 1e-3);
    near(interval.high.unwrap(), 7.98166261, 1e-3);
    near(profile_p(&data, &fitted, "flag").unwrap(), 0.01536386, 1e-5);
    // The interval of the level of p ends at 0.
    let through = profile_interval(&data, &fitted, "flag", 1.0 - 0.01536386).unwrap();
    near(through.low.unwrap(), 0.0, 1e-3);
}

#[test]
fn marginal_intervals_are_those_of_the_delta_method() {
    let frame = simulated(25, 3, 7);
    let data = data("correct ~ model + variant + gamma + (1+variant|template)", &frame, Family::Binomial).unwrap();
    let fitted = fit(&data, &MixedOptions::default()).unwrap();
    let found = marginal(&data, &fitted, Some("model"), 0.95).unwrap();
    assert_eq!((found.levels.len(), found.differences.len()), (4, 6));
    assert!(found.levels.iter().all(|level| 0.0 < level.low && level.low < level.mean && level.mean < level.high));
    assert!(found.differences.iter().all(|one| one.holm >= one.p && one.low < one.difference));
    let size = found.differences.len();
    assert!(found.differences.iter().all(|one| one.benjamini_hochberg <= one.holm && one.family_size == size));
    // The derivative by every parameter, by differences.
    let mean = |fit: &MixedFit| marginal(&data, fit, Some("variant"), 0.95).unwrap().differences[0].difference;
    let step = 1e-5;
    let mut slope = Vec::new();
    let count = fitted.at.len() - fitted.coefficients.len();
    for index in 0..fitted.at.len() {
        let moved = |step: f64| {
            let mut fit = fitted.clone();
            match index.checked_sub(count) {
                Some(coefficient) => {
                    fit.coefficients[coefficient].estimate =
                        fit.coefficients[coefficient].estimate.map(|one| one + step);
                }
                None => fit.at[index] += step,
            }
            mean(&fit)
        };
        slope.push((moved(step) - moved(-step)) / (2.0 * step));
    }
    let lines =
        fitted.joint.iter().map(|line| line.iter().zip(&slope).map(|(value, slope)| value * slope).sum::<f64>());
    let variance: f64 = lines.zip(&slope).map(|(line, slope)| line * slope).sum();
    let error = marginal(&data, &fitted, Some("variant"), 0.95).unwrap().differences[0].standard_error;
    assert!((variance.sqrt() / error - 1.0).abs() < 1e-6, "{} {error}", variance.sqrt());
}

#[test]
fn random_effects_without_a_value_are_left_out_and_named() {
    let mut frame = Frame::new();
    let cells: Vec<(usize, usize, usize)> = (0..40)
        .flat_map(|group| [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)].map(|(model, variant)| (group, model, variant)))
        .flat_map(|cell| [cell; 3])
        .collect();
    let names = |of: &dyn Fn(&(usize, usize, usize)) -> String| -> Vec<String> { cells.iter().map(of).collect() };
    for (name, texts) in [
        ("template", names(&|cell| format!("t{}", cell.0))),
        ("model", names(&|cell| format!("m{}", cell.1))),
        ("variant", names(&|cell| format!("v{}", cell.2))),
    ] {
        frame.texts(name, texts.iter().map(String::as_str)).unwrap();
    }
    let right =
        |(index, cell): (usize, &(usize, usize, usize))| (index * 7 + cell.0 * cell.0 + cell.1 * 3 + cell.2) % 5 < 2;
    frame.number("correct", cells.iter().enumerate().map(|one| f64::from(u8::from(right(one)))).collect()).unwrap();
    let formula: Formula = "correct ~ model*variant + (1+model:variant||template)".parse().unwrap();
    let data = MixedData::new(&formula, &frame, Family::Binomial).unwrap();
    let fitted = fit(&data, &MixedOptions::default()).unwrap();
    let empty = fitted.diagnoses.iter().any(|one| matches!(one, MixedDiagnosis::EmptyEffects { .. }));
    assert!(empty, "{:?}", fitted.diagnoses);
    for one in &fitted.coefficients {
        assert!(one.standard_error.is_some_and(|error| (0.01..10.0).contains(&error)), "{one:?}");
    }
    // The main effects' means need the cell that is not there; without the interaction they do not.
    assert!(marginal(&data, &fitted, Some("variant"), 0.95).is_err());
    let formula: Formula = "correct ~ 0 + model:variant + (1|template)".parse().unwrap();
    assert!(MixedData::new(&formula, &frame, Family::Binomial).is_ok());
}
