//! Accuracy by prompt and set, what the variants cost, and why answers are wrong.
use std::collections::BTreeMap;

use super::options::Options;
use super::prompt::{Prompt, TrailingSpace};
use super::rows::Set;
use super::scoring::{BABBLING, scorers};
use crate::suite::{FailureClass, Interval, Scored, Summary, SummaryRow};
use earnest_stats::{ClusteredMean, Z95, clustered_mean, wilson};

/// The column of differences.
const DIFFERENCE: &str = "minus base";

/// A row for each prompt on each set, then for everything.
///
/// Intervals allow for questions of one template being alike (cluster-robust, t with one less than templates degrees of
/// freedom). `minus base` is the mean over templates of a set's accuracy minus the original's, with the interval of paired
/// templates; the study prints the same difference as Delta Acc.
pub(super) fn summarise(options: &Options, recognised: &[String], samples: &[Scored<'_>]) -> Summary {
    let mut summary = Summary { rows: Vec::new(), series: Vec::new(), notes: Vec::new() };
    let mut failures = Vec::new();
    for prompt in Prompt::ALL {
        let of_prompt: Vec<&Scored<'_>> = samples.iter().filter(|sample| sample.item.task == prompt.name()).collect();
        let of_set = |set: Set| -> Vec<&Scored<'_>> {
            let in_set = |sample: &&&Scored<'_>| {
                sample.item.covariates.get("set").and_then(|value| value.as_str()) == Some(set.name())
            };
            of_prompt.iter().filter(in_set).copied().collect()
        };
        let base = of_set(Set::Base);
        for set in Set::ALL {
            let group = of_set(set);
            if group.is_empty() {
                continue;
            }
            let mut row = row(options, &format!("{prompt} {set}"), &group);
            if set != Set::Base
                && let Some(difference) = difference(&base, &group)
            {
                row.values.push((DIFFERENCE.to_owned(), difference));
            }
            failures.extend(classes(&row.name, &group));
            summary.rows.push(row);
        }
    }
    if summary.rows.len() > 1 {
        summary.rows.push(row(options, "all", &samples.iter().collect::<Vec<_>>()));
    }
    summary.notes.extend_from_slice(recognised);
    let compared = summary.rows.iter().any(|row| row.values.iter().any(|(column, _)| column == DIFFERENCE));
    summary.notes.extend(notes(options, compared));
    summary.notes.extend(failures);
    summary
}

fn row(options: &Options, name: &str, group: &[&Scored<'_>]) -> SummaryRow {
    let column = |scorer: &str| Some((scorer.to_owned(), accuracy(group, scorer)?));
    let mut clusters: Vec<&str> = group.iter().map(|sample| sample.item.cluster.as_str()).collect();
    clusters.sort_unstable();
    clusters.dedup();
    let share = |count: usize| count as f64 / group.len().max(1) as f64;
    let babbling: Vec<f64> = group.iter().filter_map(|sample| sample.score.metrics.get(BABBLING)).collect();
    let truncated = group.iter().filter(|sample| sample.truncated).count();
    let mut numbers = vec![
        ("templates".to_owned(), clusters.len() as f64),
        (BABBLING.to_owned(), babbling.iter().sum::<f64>() / babbling.len().max(1) as f64),
        ("truncated".to_owned(), share(truncated)),
        ("tokens".to_owned(), group.iter().map(|sample| sample.tokens as f64).sum::<f64>() / group.len().max(1) as f64),
    ];
    numbers.extend(counts(group).into_iter().map(|(class, count)| (class.to_owned(), count as f64)));
    SummaryRow {
        name: name.to_owned(),
        n: group.len(),
        values: scorers(options.scorer).into_iter().filter_map(column).collect(),
        numbers,
    }
}

/// Samples by class of failure.
fn counts<'a>(group: &[&Scored<'a>]) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for class in group.iter().filter_map(|sample| sample.score.failure.as_ref().map(FailureClass::as_str)) {
        *counts.entry(class).or_default() += 1;
    }
    counts
}

/// The wrong answers of a row by class, as Figures 9 to 11 count them, in words.
fn classes(name: &str, group: &[&Scored<'_>]) -> Option<String> {
    let mut counts: Vec<(&str, usize)> = counts(group).into_iter().collect();
    counts.sort_by_key(|(class, count)| (std::cmp::Reverse(*count), *class));
    let wrong: usize = counts.iter().map(|(_, count)| count).sum();
    let list: Vec<String> = counts.iter().map(|(class, count)| format!("{class} {count}")).collect();
    (wrong > 0).then(|| format!("{name}: {wrong} of {} wrong: {}.", group.len(), list.join(", ")))
}

/// A scorer's share of right answers; none where it scored none of them.
fn accuracy(group: &[&Scored<'_>], scorer: &str) -> Option<Interval> {
    let right = |sample: &&Scored<'_>| Some((f64::from(sample.score.scorers.get(scorer)?), cluster(sample)));
    let (values, clusters): (Vec<f64>, Vec<u64>) = group.iter().filter_map(right).unzip();
    (!values.is_empty()).then(|| clustered(&values, &clusters, (0.0, 1.0)))
}

/// A mean with its cluster-robust interval within bounds. Where nothing varies between clusters that error is 0 and says too
/// little: proportions of 0 and 1 then have the Wilson interval of as many observations as clusters.
fn clustered(values: &[f64], clusters: &[u64], (least, most): (f64, f64)) -> Interval {
    match clustered_mean(values, clusters) {
        Ok(found) if found.standard_error > 0.0 => {
            let (low, high) = found.interval(0.95);
            Interval { estimate: found.mean, low: low.max(least), high: high.min(most) }
        }
        Ok(ClusteredMean { mean, clusters, .. }) if least == 0.0 => {
            match wilson(mean * clusters as f64, clusters as f64, Z95) {
                Some(found) => Interval { estimate: found.value, low: found.low, high: found.high },
                None => Interval::UNKNOWN,
            }
        }
        // One template, or differences that are all alike, tell nothing about their spread.
        _ if values.is_empty() => Interval::UNKNOWN,
        _ => {
            let estimate = values.iter().sum::<f64>() / values.len() as f64;
            Interval { estimate, low: least, high: most }
        }
    }
}

fn cluster(sample: &Scored<'_>) -> u64 {
    sample.item.cluster.parse().unwrap_or(u64::MAX)
}

/// Accuracy of a set minus the base's, paired by template; none without a template that has both.
fn difference(base: &[&Scored<'_>], group: &[&Scored<'_>]) -> Option<Interval> {
    let means = |group: &[&Scored<'_>]| {
        let mut sums: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
        for sample in group {
            let sum = sums.entry(cluster(sample)).or_default();
            *sum = (sum.0 + f64::from(u8::from(sample.score.correct)), sum.1 + 1.0);
        }
        sums.into_iter().map(|(template, (right, all))| (template, right / all)).collect::<BTreeMap<u64, f64>>()
    };
    let (base, group) = (means(base), means(group));
    let pairs: Vec<(u64, f64)> =
        group.iter().filter_map(|(template, mean)| Some((*template, mean - base.get(template)?))).collect();
    let (templates, differences): (Vec<u64>, Vec<f64>) = pairs.into_iter().unzip();
    (!differences.is_empty()).then(|| clustered(&differences, &templates, (-1.0, 1.0)))
}

/// `compared`: there are differences between variants and their originals.
fn notes(options: &Options, compared: bool) -> Vec<String> {
    let mut notes = vec![format!(
        "{} is the scorer that decides. study is what the study's own program extracts; study_strict also refuses answers behind which \
         another question begins; strict reads the last statement of an answer, flexible the last number, final the answer as a \
         careful person would.",
        options.scorer.name()
    )];
    if options.asks_for_code() {
        notes.push(
            "Functions have one value: strict, flexible and final equal study for the prompts that ask for code."
                .to_owned(),
        );
    }
    if compared {
        notes.push(
            "minus base is the accuracy on a set minus that on the originals, paired by template. One original a template \
             says little: `earnest stats glmm` fits the study's mixed models to an export."
                .to_owned(),
        );
    }
    let spaced = options.prompts.iter().any(|prompt| !prompt.is_code());
    match (options.chat, options.trailing_space) {
        (true, _) => notes.push(
            "The whole prompt was one turn of a conversation, which the model ends itself: no stop string ended it. The study \
             sent bare text to every model, also to those tuned for conversations, and stopped it at the next question."
                .to_owned(),
        ),
        (false, TrailingSpace::Keep) if spaced => notes.push(
            "The text prompts end with a space, as the study's do; some tokenizers write worse after it. The setting \
             `trailing_space = trim` asks without."
                .to_owned(),
        ),
        (false, _) => {}
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::super::options::{Scorer, Source};
    use super::super::scoring::STUDY;
    use super::*;
    use crate::suite::{Budget, Item, Score, Segments};

    fn sample(prompt: &str, set: &str, template: u32, correct: bool, failure: Option<&str>) -> (Item, Score) {
        let item = Item {
            id: format!("{prompt}/{set}/{template}/0"),
            task: prompt.to_owned(),
            cluster: template.to_string(),
            covariates: BTreeMap::from([
                ("set".to_owned(), set.into()),
                ("variant".to_owned(), u8::from(set != "base").into()),
            ]),
            segments: Segments::question("?"),
            gold: "1".to_owned(),
            budget: Budget { answer: 1, thinking: 1 },
            stop_strings: Vec::new(),
            keep_stop: false,
            continuations: Vec::new(),
        };
        let scorers = scorers(Scorer::Study).into_iter().map(|scorer| (scorer, correct));
        let score = Score {
            correct,
            scorers: scorers.collect(),
            metrics: [(BABBLING, 1.0)].into(),
            failure: failure.map(FailureClass::from),
            ..Score::default()
        };
        (item, score)
    }

    fn summary(samples: &[(Item, Score)]) -> Summary {
        let scored: Vec<Scored<'_>> =
            samples.iter().map(|(item, score)| Scored { item, score, tokens: 4, truncated: false }).collect();
        summarise(&Options::new(Source::Own { per_template: 1, seed: 1 }), &[], &scored)
    }

    #[test]
    fn variants_are_paired_with_their_originals() {
        let mut samples = Vec::new();
        for template in 0..4 {
            samples.push(sample("gsm", "base", template, true, None));
            let wrong = template < 2;
            samples.push(sample("gsm", "main", template, !wrong, wrong.then_some("wrong")));
        }
        // A template without its original is in no difference.
        samples.push(sample("gsm", "main", 9, false, Some("no_number")));
        let summary = summary(&samples);
        let names: Vec<&str> = summary.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["gsm base", "gsm main", "all"]);
        let value = |row: usize, name: &str| {
            summary.rows[row].values.iter().find(|(column, _)| column == name).map(|(_, value)| *value)
        };
        assert_eq!(value(0, STUDY).unwrap().estimate, 1.0);
        assert!(value(0, STUDY).unwrap().low < 0.8 && value(0, DIFFERENCE).is_none());
        assert_eq!(value(1, STUDY).unwrap().estimate, 0.4);
        let difference = value(1, DIFFERENCE).unwrap();
        assert_eq!(difference.estimate, -0.5);
        // Differences -1, -1, 0, 0: standard error 0.2887 (ddof 1), t of 3 degrees 3.182.
        assert!((difference.low - (-1.0)).abs() < 1e-9 && (difference.high - 0.4187).abs() < 1e-3, "{difference:?}");
        let numbers: BTreeMap<&str, f64> =
            summary.rows[1].numbers.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(
            (numbers["wrong"], numbers["no_number"], numbers[BABBLING], numbers["templates"]),
            (2.0, 1.0, 1.0, 5.0)
        );
        assert!(summary.notes.iter().any(|note| note.starts_with(DIFFERENCE)));
        assert!(summary.notes.iter().any(|note| note == "gsm main: 3 of 5 wrong: wrong 2, no_number 1."));
    }

    #[test]
    fn any_selection_has_a_summary() {
        assert!(summary(&[]).rows.is_empty());
        let one = summary(&[sample("simple-code", "main", 3, false, Some("name_error"))]);
        assert_eq!(one.rows.len(), 1);
        let (_, alone) = &one.rows[0].values[0];
        assert_eq!((alone.estimate, alone.low, alone.high), (0.0, 0.0, 1.0));
        // Without originals nothing is said about them.
        assert!(!one.notes.iter().any(|note| note.contains(DIFFERENCE)), "{:?}", one.notes);
        let apart = summary(&[sample("gsm", "base", 1, true, None), sample("gsm", "main", 2, true, None)]);
        assert!(!apart.notes.iter().any(|note| note.contains(DIFFERENCE)), "no template has both");
    }
}
