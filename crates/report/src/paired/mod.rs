//! Paired comparison of runs, item by item.

mod alike;
mod conclusion;
mod difference;
mod figure;
mod model;
mod pairing;
mod scorers;
mod sequential;
mod settings;
#[cfg(test)]
mod tests_simulated;

use std::collections::BTreeMap;

use serde::Serialize;

use earnest_results::scores::Scores;

use difference::difference;
use earnest_results::{Origin, SettingChange};
use earnest_stats::design::PilotItem;
use earnest_stats::{Rates, benjamini_hochberg, holm};
use pairing::{Pair, Pairing};
use scorers::scorers;

pub(crate) use alike::{common_scorer, read_alike};
pub use conclusion::{p_sentence, p_text};
pub use difference::Difference;
pub use figure::figure as comparison_figure;
pub use model::{FittedModel, PairedModel};
pub use scorers::ScorerDifference;
pub use sequential::Sequential;
pub use settings::{differing_settings, own_settings};

/// A run compared with a baseline, over the items that both answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub baseline: String,
    pub run: String,
    /// Number of pairs: items in both runs, and originals with the items that name them.
    pub items: usize,
    /// Number of pairs of items with different ids, that name one original (`pair`).
    pub by_pair: usize,
    /// Number of items in those pairs, of the baseline and of the run.
    pub items_by_pair: [usize; 2],
    /// Number of items in the baseline only.
    pub only_baseline: usize,
    /// Number of items in the run only.
    pub only_run: usize,
    /// Number of ids with different questions or answers; comparisons leave them out.
    pub different_question: usize,
    /// Number of pairs of items with different ids and the same question, of other tools' logs.
    pub by_text: usize,
    /// Number of items of the baseline whose question several items have; they are not paired.
    pub ambiguous: usize,
    /// Number of pairs whose prompts are known to differ.
    pub different_prompts: usize,
    /// True if a run is another tool's log.
    pub of_logs: bool,
    /// True if no field of the questions says what belongs together.
    pub without_clusters: bool,
    /// Number of questions that several tasks ask; all answers to one are a cluster.
    pub shared_questions: usize,
    /// Settings besides the model in which the runs differ; see [`differing_settings`].
    pub settings: Vec<SettingChange>,
    /// Sentence on runs of which one was asked by its chat template and the other raw, with the command that asks both alike.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_differently: Option<String>,
    /// Anytime-valid difference, if a run has a condition on which it ends; the other intervals and p values are then not valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequential: Option<Sequential>,
    /// All items together.
    pub overall: Difference,
    /// Mixed model of all answers. None where a run has a condition on which it ends, and where scores are not just right and wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<PairedModel>,
    /// By task, in alphabetical order; empty if there is one task only.
    pub tasks: Vec<Difference>,
    /// By kind of perturbation, in alphabetical order; empty unless there are several.
    pub perturbations: Vec<Difference>,
    /// Scorers of the baseline and of the run whose numbers are compared, where they are known.
    #[serde(rename = "primary")]
    pub chosen: [Vec<String>; 2],
    /// Own scorers of the two, where they differ and both are compared by another one or by that of one of them.
    #[serde(rename = "own_primary", skip_serializing_if = "Option::is_none")]
    pub own_scorers: Option<[Vec<String>; 2]>,
    /// Every scorer of both runs, by name.
    #[serde(rename = "rules")]
    pub scorers: Vec<ScorerDifference>,
    /// True if every item's number is one of right answers; other scores are neither right nor wrong.
    pub right_or_wrong: bool,
    /// Items whose answer changed, those that became right first.
    pub flips: Vec<Flip>,
    /// True if items have several samples in a run, or several items are one.
    #[serde(skip)]
    pub several: bool,
    /// Number of items with a higher share of right answers in the run.
    pub gained: usize,
    /// Number of items with a lower share.
    pub lost: usize,
}

/// An item that one run has right and the other wrong.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Flip {
    pub item: String,
    /// Ids of its first items in the baseline and in the run, unless both are `item`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<[String; 2]>,
    pub task: String,
    /// Shares of right answers.
    pub baseline: f64,
    pub run: f64,
}

impl Comparison {
    /// Words between the names of two runs of which the first has more in a flip; none where it alone is right.
    pub fn more(&self) -> Option<&'static str> {
        match (self.right_or_wrong, self.several) {
            (true, false) => None,
            (true, true) => Some("right more often than"),
            (false, _) => Some("higher than"),
        }
    }
}

impl Flip {
    /// Returns the ids of its first items in the baseline and in the run.
    pub fn ids(&self) -> [&str; 2] {
        self.items.as_ref().map_or([&self.item; 2], |ids| ids.each_ref().map(String::as_str))
    }
}

/// Compares runs with the first one. The p values of the runs are one Holm family, those of all tasks another, those of all
/// perturbations a third.
pub fn compare(names: &[String], scores: &[Scores]) -> Vec<Comparison> {
    let Some(((baseline, first), rest)) =
        names.iter().zip(scores).collect::<Vec<_>>().split_first().map(|(a, b)| (*a, b.to_vec()))
    else {
        return Vec::new();
    };
    let mut comparisons: Vec<Comparison> =
        rest.iter().map(|(name, scores)| pairwise(baseline, first, name, scores)).collect();
    adjust("runs", comparisons.iter_mut().map(|comparison| &mut comparison.overall).collect());
    adjust("tasks", comparisons.iter_mut().flat_map(|comparison| &mut comparison.tasks).collect());
    adjust("perturbations", comparisons.iter_mut().flat_map(|comparison| &mut comparison.perturbations).collect());
    comparisons
}

fn pairwise(baseline: &str, first: &Scores, run: &str, second: &Scores) -> Comparison {
    let of_logs = first.origin == Origin::Log || second.origin == Origin::Log;
    let pairing = if of_logs { Pairing::of_logs(first, second) } else { Pairing::of(first, second) };
    let pairs = &pairing.pairs;
    // Prompts of runs of earnest are known by their token ids, those of logs by their texts.
    let same_form = first.origin == Origin::Log && second.origin == Origin::Log;
    let different_prompts = pairs.iter().filter(|pair| same_form && pair.prompts_differ() == Some(true)).count();
    let mut tasks: BTreeMap<&str, Vec<&Pair<'_>>> = BTreeMap::new();
    for pair in pairs {
        tasks.entry(pair.task()).or_default().push(pair);
    }
    let by_task =
        if tasks.len() > 1 { tasks.iter().map(|(task, pairs)| difference(task, pairs)).collect() } else { Vec::new() };
    let kinds = pairing.kinds();
    let by_kind = kinds.iter().map(|(kind, pairs)| difference(kind, &pairs.iter().collect::<Vec<_>>()));
    let mut flips: Vec<Flip> = pairs
        .iter()
        .filter(|pair| pair.change() != 0.0)
        .map(|pair| Flip {
            item: pair.item.to_owned(),
            items: pair.ids.iter().any(|id| *id != pair.item).then(|| pair.ids.map(str::to_owned)),
            task: pair.task().to_owned(),
            baseline: pair.baseline(),
            run: pair.run(),
        })
        .collect();
    flips.sort_by(|a, b| (b.run - b.baseline).total_cmp(&(a.run - a.baseline)).then_with(|| a.item.cmp(&b.item)));
    let sequential = Sequential::of([baseline, run], [first, second], pairs);
    let overall = difference("all", &pairs.iter().collect::<Vec<_>>());
    Comparison {
        model: if sequential.is_none() { PairedModel::of(pairs, &overall) } else { None },
        baseline: baseline.to_owned(),
        run: run.to_owned(),
        items: pairs.len(),
        by_pair: pairing.by_pair,
        items_by_pair: pairing.items_by_pair,
        only_baseline: pairing.only_first,
        only_run: pairing.only_second,
        different_question: pairing.different_question,
        by_text: pairing.by_text,
        ambiguous: pairing.ambiguous,
        different_prompts,
        of_logs,
        without_clusters: pairs.iter().all(Pair::is_own_cluster),
        shared_questions: shared_questions(pairs),
        settings: Vec::new(),
        asked_differently: None,
        sequential,
        overall,
        tasks: by_task,
        perturbations: by_kind.collect(),
        chosen: [first.chosen.clone(), second.chosen.clone()],
        own_scorers: own_scorers(first, second),
        scorers: scorers(first, second, pairs),
        right_or_wrong: first.counts_right_answers() && second.counts_right_answers(),
        several: pairs.iter().any(|pair| !pair.is_single()),
        gained: pairs.iter().filter(|pair| pair.change() > 0.0).count(),
        lost: pairs.iter().filter(|pair| pair.change() < 0.0).count(),
        flips,
    }
}

/// Own scorers of two runs that are read by a common one. Of three runs two may have the same.
fn own_scorers(first: &Scores, second: &Scores) -> Option<[Vec<String>; 2]> {
    if first.own_scorers.is_empty() && second.own_scorers.is_empty() {
        return None;
    }
    let own = [first, second].map(|scores| match scores.own_scorers.is_empty() {
        true => scores.chosen.clone(),
        false => scores.own_scorers.clone(),
    });
    Some(own)
}

/// Number of clusters that are nothing but one question in several tasks.
fn shared_questions(pairs: &[Pair<'_>]) -> usize {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for pair in pairs.iter().filter(|pair| pair.is_own_cluster()) {
        *counts.entry(pair.cluster()).or_default() += 1;
    }
    counts.values().filter(|count| **count > 1).count()
}

/// Returns the items of two runs with the same id and question, with their answers.
pub(crate) fn pilot_items(first: &Scores, second: &Scores) -> Vec<PilotItem> {
    let mut numbers: BTreeMap<&str, u64> = BTreeMap::new();
    let pairing = Pairing::of(first, second);
    let items = pairing.pairs.iter().filter_map(|pair| match (pair.first.as_slice(), pair.second.as_slice()) {
        ([mine], [theirs]) => {
            let next = numbers.len() as u64;
            let cluster = *numbers.entry(pair.cluster()).or_insert(next);
            let [first, second] = [mine, theirs].map(|score| (score.sum as u32, score.samples));
            Some(PilotItem { cluster, first, second })
        }
        // Several items that name one original are no question of their own.
        _ => None,
    });
    items.collect()
}

/// Adjusts a family by Holm's method and by that of Benjamini and Hochberg; differences without a p value are not part of it.
pub(crate) fn adjust(of: &'static str, family: Vec<&mut Difference>) {
    let mut tested: Vec<&mut Difference> = family.into_iter().filter(|difference| difference.p.is_some()).collect();
    let p_values: Vec<f64> = tested.iter().filter_map(|difference| difference.p).collect();
    if let (Ok(by_holm), Ok(by_rate)) = (holm(&p_values), benjamini_hochberg(&p_values)) {
        let family = tested.len();
        let rates = Rates::default();
        let alpha = rates.alpha / family as f64;
        for (difference, (p, p_bh)) in tested.iter_mut().zip(by_holm.into_iter().zip(by_rate)) {
            difference.p_holm = Some(p);
            difference.p_bh = Some(p_bh);
            difference.family = family;
            difference.family_of = Some(of);
            difference.simultaneous_interval = difference.interval_at(1.0 - alpha);
            difference.detectable_in_family = difference.smallest_detectable(Rates { alpha, ..rates });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_results::scores::ItemScore;
    use earnest_results::scores::Question;
    use earnest_stats::PairedDesign;

    fn scores(answers: &[(&str, &str, bool)]) -> Scores {
        let mut scores = Scores::default();
        for &(item, cluster, correct) in answers {
            let score = scores.items.entry(item.into()).or_insert(ItemScore {
                task: item[..1].into(),
                cluster: cluster.into(),
                gold: "1".into(),
                pair: None,
                perturbation: None,
                question: None,
                sum: 0.0,
                samples: 0,
                is_binary: true,
                scorers: Vec::new(),
                is_own_cluster: item == cluster,
                lacks_label: false,
                prompt: None,
            });
            score.sum += f64::from(u8::from(correct));
            score.samples += 1;
        }
        scores
    }

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("run{number}")).collect()
    }

    fn many(right: impl Fn(usize) -> bool) -> Scores {
        let mut all = Scores::default();
        for number in 0..60 {
            let (item, cluster) = (format!("{}{number:02}", ["a", "b"][number % 2]), format!("c{}", number / 4));
            all.items.extend(scores(&[(&item, &cluster, right(number))]).items);
        }
        all
    }

    #[test]
    fn a_clear_difference_is_called_one() {
        let found = compare(&names(2), &[many(|n| n % 3 == 0), many(|n| n % 3 != 1)]).remove(0);
        assert_eq!((found.items, found.gained, found.lost, found.overall.clusters), (60, 20, 0, 15));
        assert!((found.overall.difference - 1.0 / 3.0).abs() < 1e-12);
        // binom.test(0, 20): 2 * 0.5^20
        assert!((found.overall.mcnemar_p.unwrap() - 2.0 * 0.5f64.powi(20)).abs() < 1e-15);
        let (low, high) = found.overall.interval.unwrap();
        assert!(low > 0.2 && high < 0.5 && found.overall.p.unwrap() < 1e-6);
        assert!(found.conclusion().contains("run1 is better than run0 by 33.3 points"), "{}", found.conclusion());
        assert_eq!(found.tasks.len(), 2);
        assert_eq!(found.flips.len(), 20);
    }

    #[test]
    fn a_run_that_ends_by_its_answers_has_an_anytime_valid_interval() {
        let (first, mut second) = (many(|n| n % 3 == 0), many(|n| n % 3 != 1));
        (second.has_condition, second.ended_early) = (true, true);
        let found = compare(&names(2), &[first.clone(), second.clone()]).remove(0);
        let sequential = found.sequential.as_ref().unwrap();
        assert_eq!(sequential.runs, ["run1"]);
        let (estimate, (low, high)) = (sequential.estimate.unwrap(), found.overall.interval.unwrap());
        assert!((estimate.difference - found.overall.difference).abs() < 1e-12, "the same estimand");
        assert!(estimate.low < low && estimate.high > high && estimate.clusters == 15, "{estimate:?}");
        assert!(found.conclusion().contains("95 % anytime-valid interval"), "{}", found.conclusion());
        assert!(sequential.remark().contains("not valid"));
        // Either way round; but not with two that ended early.
        let mut whole = second.clone();
        whole.ended_early = false;
        assert!(compare(&names(2), &[whole, second.clone()]).remove(0).sequential.unwrap().estimate.is_some());
        let back = compare(&names(2), &[second.clone(), first]).remove(0).sequential.unwrap();
        assert_eq!(back.runs, ["run0"]);
        assert!((back.estimate.unwrap().low + estimate.high).abs() < 1e-12);
        let both = compare(&names(2), &[second.clone(), second]).remove(0);
        assert_eq!(both.sequential.as_ref().unwrap().estimate, None);
        assert!(both.conclusion().contains("no valid"), "{}", both.conclusion());
    }

    #[test]
    fn a_mixed_model_of_all_answers_stands_beside_the_difference() {
        // No answer of the first alone is right: no odds ratio of a question is finite.
        let refused = compare(&names(2), &[many(|n| n % 3 == 0), many(|n| n % 3 != 1)]).remove(0).model.unwrap();
        assert!(refused.remark().starts_with("No mixed model: groups are all or nothing"), "{}", refused.remark());
        let found = compare(&names(2), &[many(|n| n % 3 == 0), many(|n| n % 4 != 1)]).remove(0);
        let Some(PairedModel::Fitted(model)) = &found.model else { panic!("{:?}", found.model) };
        assert_eq!((model.answers, model.formula.starts_with("correct ~ run + ")), (120, true), "{}", model.formula);
        assert!(model.odds_ratio > 2.0 && model.odds_ratio_interval.0 > 1.0 && model.p < 0.01, "{model:?}");
        assert!(
            model.interval.0 < found.overall.difference && model.interval.1 > found.overall.difference,
            "{model:?}"
        );
        assert!(found.model.as_ref().unwrap().remark().contains("averaged over the random effects"));
        // Fractions are neither right nor wrong, and all right is no estimate.
        let mut second = many(|n| n % 3 != 1);
        second.items.values_mut().for_each(|score| score.is_binary = false);
        assert_eq!(compare(&names(2), &[many(|n| n % 3 == 0), second]).remove(0).model, None);
        let all = compare(&names(2), &[many(|_| true), many(|_| true)]).remove(0).model.unwrap();
        assert!(all.remark().starts_with("No mixed model: constant response"), "{}", all.remark());
    }

    #[test]
    fn noise_is_not_called_a_difference_and_equality_is_not_claimed() {
        let found = compare(&names(2), &[many(|n| n % 5 != 0), many(|n| n % 5 != 1)]).remove(0);
        assert_eq!((found.gained, found.lost), (12, 12));
        assert!(found.conclusion().starts_with("These items do not show"), "{}", found.conclusion());
        assert!(found.overall.detectable.unwrap() > 0.05);
        let same = compare(&names(2), &[many(|n| n % 2 == 0), many(|n| n % 2 == 0)]).remove(0);
        assert!(same.conclusion().contains("does not show that the models are equal"), "{}", same.conclusion());
        let (low, high) = same.overall.interval.unwrap();
        assert!(same.overall.p == Some(1.0) && low < -0.05 && high > 0.05, "{low} {high}");
        assert!(same.conclusion().ends_with("The 95 % interval of the true difference is -7.1 to +7.1 points."));
    }

    #[test]
    fn items_that_do_not_match_are_counted_not_compared() {
        let mut other = scores(&[("a1", "c", true), ("a2", "d", true), ("a9", "d", true)]);
        other.items.get_mut("a2").unwrap().gold = "2".into();
        let found = compare(&names(2), &[scores(&[("a1", "c", true), ("a2", "d", true), ("a3", "e", false)]), other]);
        let found = &found[0];
        assert_eq!((found.items, found.only_baseline, found.only_run, found.different_question), (1, 1, 1, 1));
        assert!(found.conclusion().contains("does not show that the models are equal"), "{}", found.conclusion());
        // The same id and answer, but another question.
        let asked = |operand: &str| {
            let mut asked = scores(&[("a1", "c", true), ("a2", "d", true)]);
            asked.items.get_mut("a1").unwrap().question = Some(Question::Operands(operand.into()));
            asked
        };
        let found = compare(&names(2), &[asked("5\n"), asked("8\n")]).remove(0);
        assert_eq!((found.items, found.only_baseline, found.only_run, found.different_question), (1, 0, 0, 1));
        let found = compare(&names(2), &[asked("5\n"), asked("5\n")]).remove(0);
        assert_eq!((found.items, found.different_question), (2, 0));
        assert!(asked("5\n").lacks_questions());
        let nothing = compare(&names(2), &[Scores::default(), scores(&[("a1", "c", true)])]).remove(0);
        assert!(nothing.conclusion().contains("cannot be compared"));
        assert!(compare(&[], &[]).is_empty());
    }

    /// Items with other ids than their originals.
    fn perturbed(answers: &[(&str, &str, &str, bool)]) -> Scores {
        let mut all = Scores::default();
        for &(item, original, kind, correct) in answers {
            all.items.extend(scores(&[(item, "own", correct)]).items);
            let score = all.items.get_mut(item).unwrap();
            (score.pair, score.perturbation) = (Some(original.to_owned()), Some(kind.to_owned()));
        }
        all
    }

    #[test]
    fn perturbed_items_are_paired_with_their_originals() {
        let first = scores(&[("a1", "c", true), ("a2", "d", true), ("a3", "d", false), ("a4", "e", true)]);
        let second = perturbed(&[
            ("a1~noise", "a1", "noise", false),
            ("a1~type", "a1", "type", true),
            ("a2~noise", "a2", "noise", false),
            ("a3~noise", "a3", "noise", false),
            ("a9~noise", "a9", "noise", true),
        ]);
        let found = compare(&names(2), &[first.clone(), second.clone()]).remove(0);
        assert_eq!((found.items, found.by_pair, found.items_by_pair), (3, 3, [3, 4]));
        assert_eq!((found.only_baseline, found.only_run, found.different_question), (1, 1, 0));
        let ids: Vec<[&str; 2]> = found.flips.iter().map(Flip::ids).collect();
        assert_eq!(ids, [["a1", "a1~noise"], ["a2", "a2~noise"]], "the answers that are shown");
        // a1 counts half for its two kinds; a2 and a3 are one cluster, as in the baseline.
        assert!((found.overall.difference - (-0.5 - 1.0) / 3.0).abs() < 1e-12, "{:?}", found.overall);
        assert_eq!((found.overall.clusters, found.overall.mcnemar_p), (2, None));
        let kinds: Vec<_> = found.perturbations.iter().map(|kind| (kind.name.as_str(), kind.items)).collect();
        assert_eq!(kinds, [("noise", 3), ("type", 1)]);
        assert!((found.perturbations[0].difference + 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(found.perturbations[0].mcnemar_p, Some(0.5));
        assert_eq!((found.flips[0].item.as_str(), found.flips[0].run), ("a1", 0.5));
        // The other way round, the originals are in the second run.
        let back = compare(&names(2), &[second.clone(), first]).remove(0);
        assert_eq!((back.items, back.items_by_pair, back.perturbations.len()), (3, [4, 3], 2));
        assert!((back.overall.difference - 0.5).abs() < 1e-12);
        // One set asked twice is paired by id; two sets of one original by what they name.
        let same = compare(&names(2), &[second.clone(), second.clone()]).remove(0);
        assert_eq!((same.items, same.by_pair, same.perturbations.len()), (5, 0, 2));
        let other = perturbed(&[("a1~extra", "a1", "extra", true), ("a7~extra", "a7", "extra", true)]);
        let found = compare(&names(2), &[second, other]).remove(0);
        assert_eq!((found.items, found.items_by_pair), (1, [2, 1]));
        assert_eq!((found.only_baseline, found.only_run, found.perturbations.len()), (3, 1, 0));
    }

    #[test]
    fn parts_of_one_set_are_not_paired_across_kinds() {
        let whole = perturbed(&[("a1~noise", "a1", "noise", true), ("a1~type", "a1", "type", true)]);
        let part = perturbed(&[("a1~noise", "a1", "noise", false)]);
        let found = compare(&names(2), &[whole, part]).remove(0);
        assert_eq!((found.items, found.by_pair, found.only_baseline, found.only_run), (1, 0, 1, 0));
        // The same ids for other questions: what they name pairs them, nothing else does.
        let original = || scores(&[("a1", "c", true), ("a2", "d", true)]);
        let mut changed = original();
        for (item, score) in &mut changed.items {
            score.gold = "2".into();
            score.pair = (item == "a1").then(|| "a1".to_owned());
        }
        let found = compare(&names(2), &[original(), changed]).remove(0);
        assert_eq!((found.items, found.by_pair, found.items_by_pair, found.different_question), (1, 1, [1, 1], 1));
        assert_eq!((found.only_baseline, found.only_run), (0, 0));
        // Originals and perturbed items in one file, against the originals alone.
        let mut mixed = scores(&[("a1", "c", true)]);
        mixed.items.extend(perturbed(&[("a1~noise", "a1", "noise", false)]).items);
        let found = compare(&names(2), &[scores(&[("a1", "c", true)]), mixed]).remove(0);
        assert_eq!((found.items, found.by_pair, found.only_run, found.overall.clusters), (2, 1, 0, 1));
    }

    #[test]
    fn rules_of_both_runs_stand_side_by_side() {
        let with = |mut scores: Scores, scorers: &[(&str, bool)]| {
            scores.scorers = scorers.iter().map(|(scorer, _)| (*scorer).to_owned()).collect();
            for score in scores.items.values_mut() {
                score.scorers = scorers.iter().map(|(_, right)| (f64::from(u8::from(*right)), 1)).collect();
            }
            scores
        };
        let items = [("a1", "c", true), ("a2", "d", true)];
        let first = with(scores(&items), &[("strict", true), ("paper", false)]);
        let second = with(scores(&items), &[("strict", false), ("final", true)]);
        let found = compare(&names(2), &[first, second]).remove(0);
        let strict = ScorerDifference { name: "strict".into(), items: 2, baseline: 1.0, run: 0.0, shares: true };
        assert_eq!(found.scorers, [strict]);
        let decided = compare(&names(2), &[Scores::chosen_by(vec!["final".into()]), Scores::default()]).remove(0);
        assert_eq!(decided.chosen, [vec!["final".to_owned()], Vec::new()]);
    }

    #[test]
    fn runs_of_different_scorers_are_read_by_one() {
        // Each answer of a run by its scorers: the first decides by default.
        type Scorer = (&'static str, fn(usize) -> bool);
        let run = |scorers: &[Scorer]| {
            let mut all = many(scorers[0].1);
            all.chosen = vec![scorers[0].0.to_owned()];
            all.scorers = scorers.iter().map(|(scorer, _)| (*scorer).to_owned()).collect();
            for (item, score) in &mut all.items {
                let number: usize = item[1..].parse().unwrap();
                score.scorers = scorers.iter().map(|(_, right)| (f64::from(u8::from(right(number))), 1)).collect();
            }
            all
        };
        let chat = || run(&[("final", |n| n % 3 != 0), ("strict", |_| false)]);
        let raw = || run(&[("strict", |n| n % 2 == 0), ("final", |n| n % 3 != 0)]);
        let alike = |mut runs: Vec<Scores>| {
            read_alike(&mut runs);
            compare(&names(runs.len()), &runs)
        };
        // Apart they differ by their scorers alone.
        let apart = compare(&names(2), &[raw(), chat()]).remove(0);
        assert!(apart.overall.difference > 0.1 && apart.other_scorers().is_some(), "{:?}", apart.overall);
        let found = alike(vec![raw(), chat()]).remove(0);
        assert_eq!((found.overall.difference, found.gained, found.lost), (0.0, 0, 0));
        assert_eq!(
            (found.chosen.clone(), found.common_scorer()),
            ([(); 2].map(|()| vec!["final".to_owned()]), Some("final"))
        );
        let said = "run0 (A) is scored by strict and run1 (B) by final of their own, both are compared by final";
        assert_eq!(found.read_alike().map(|alike| alike.to_string()).as_deref(), Some(said));
        assert!(found.caveats().contains(&found.read_alike().unwrap()) && found.other_scorers().is_none());
        // Of three runs the pair with the same scorers is read by the common one too.
        let three = alike(vec![raw(), raw(), chat()]);
        assert!(three.iter().all(|pair| pair.common_scorer() == Some("final")), "{three:?}");
        // Without `final` the first of their own that all have; alike already and without any in common they keep their own.
        let old = || run(&[("strict", |n| n % 2 == 0), ("paper", |_| true)]);
        assert_eq!(alike(vec![old(), chat()]).remove(0).common_scorer(), Some("strict"));
        assert_eq!(alike(vec![chat(), old()]).remove(0).common_scorer(), Some("strict"));
        assert_eq!(alike(vec![raw(), raw()]).remove(0).own_scorers, None);
        let other = alike(vec![run(&[("paper", |_| true)]), chat()]).remove(0);
        assert!(other.own_scorers.is_none() && other.conclusion().contains("different scorers (paper and final)"));
        // A scorer that left an answer out is none in common.
        let mut partial = raw();
        partial.items.values_mut().next().unwrap().scorers.pop();
        assert_eq!(alike(vec![partial, chat()]).remove(0).common_scorer(), Some("strict"));
    }

    #[test]
    fn several_runs_are_one_family() {
        let runs = [many(|n| n % 3 == 0), many(|n| n % 4 != 1), many(|n| n % 3 != 1)];
        let found = compare(&names(3), &runs);
        assert_eq!(found.len(), 2);
        let (smallest, p) = if found[0].overall.p < found[1].overall.p { (0, 1) } else { (1, 0) };
        assert_eq!(found[smallest].overall.p_holm.unwrap(), 2.0 * found[smallest].overall.p.unwrap());
        assert!(found[p].overall.p_holm >= found[p].overall.p);
    }

    #[test]
    fn a_family_has_one_sentence_of_adjusted_numbers() {
        let runs = [many(|n| n % 3 == 0), many(|n| n % 3 != 1), many(|n| n % 5 != 1)];
        let found = compare(&names(3), &runs);
        let alone = compare(&names(2), &runs[..2]).remove(0);
        let (own, together) = (found[0].overall.interval.unwrap(), found[0].overall.simultaneous_interval.unwrap());
        assert_eq!(alone.overall.simultaneous_interval, Some(own));
        assert!(together.0 < own.0 && own.1 < together.1, "{together:?} {own:?}");
        let conclusion = found[0].conclusion();
        let span =
            format!("{:+.1} to {:+.1} points (simultaneous interval for all 2", 100.0 * together.0, 100.0 * together.1);
        assert!(conclusion.contains(&span) && conclusion.contains(", adjusted for 2 comparisons)"), "{conclusion}");
        assert!(!alone.conclusion().contains("adjusted"), "{}", alone.conclusion());
        assert!(found[0].overall.detectable < found[0].overall.detectable_in_family);
    }

    #[test]
    fn what_is_called_detectable_is_beyond_the_interval_with_few_clusters_too() {
        let few = |right: &dyn Fn(usize) -> bool| {
            let mut few = Scores::default();
            for number in 0..60 {
                few.items
                    .extend(scores(&[(&format!("a{number:02}"), &format!("c{}", number / 10), right(number))]).items);
            }
            few
        };
        let runs = [few(&|n| n % 3 == 0), few(&|n| n % 4 != 1), few(&|n| n % 5 < 3)];
        for found in compare(&names(3), &runs) {
            let overall = &found.overall;
            assert_eq!((overall.clusters, overall.family), (6, 2));
            // scipy, apart from this code: what has 80 % power with 5 degrees of freedom, at 5 % and 2.5 %.
            let robust = overall.verdict.as_ref().unwrap().robust;
            let error = robust.standard_error;
            for (level, size, reach) in
                [(0.95, overall.detectable, 3.513_902_729), (0.975, overall.detectable_in_family, 4.176_996_974)]
            {
                let expected = Some(reach * error).filter(|size| *size <= overall.baseline.max(1.0 - overall.baseline));
                assert_eq!(size.is_some(), expected.is_some(), "{overall:?}");
                let Some(size) = size else { continue };
                assert!((size / expected.unwrap() - 1.0).abs() < 1e-6, "{overall:?}");
                let (low, high) = robust.interval(level);
                assert!(size > 0.5 * (high - low), "a difference inside the interval is not found 4 times of 5");
            }
            assert!(overall.detectable.is_some());
            // Clusters of 10 that differ together are worth 6 items.
            assert!(overall.detectable_before_alike.is_none_or(|alike| alike > overall.detectable_before.unwrap()));
        }
    }

    #[test]
    fn what_was_detectable_before_is_said_for_several_samples_too() {
        let of = |samples: u32, right: &dyn Fn(usize) -> bool| {
            let mut all = Scores::default();
            for number in 0..400 {
                let item = format!("a{number:03}");
                let one = [(item.as_str(), item.as_str(), right(number))];
                all.items.extend(scores(&one.repeat(samples as usize)).items);
            }
            all
        };
        let before = |samples| {
            let runs = [of(samples, &|n| n % 5 != 0), of(samples, &|n| n % 5 != 1)];
            compare(&names(2), &runs).remove(0).overall
        };
        let (once, thrice) = (before(1), before(3));
        assert!((once.disagreement - 0.4).abs() < 1e-12 && once.mcnemar_p.is_some() && thrice.mcnemar_p.is_none());
        // Items that are their own clusters can not be alike.
        assert_eq!(once.detectable_before, once.detectable_before_alike);
        assert_eq!(once.detectable_before, thrice.detectable_before, "samples that agree say nothing more");
        // Shares that differ by a third: the same design at a third of the size.
        let thirds = |right: &dyn Fn(usize) -> bool| {
            let mut all = of(3, &|_| false);
            all.items.values_mut().enumerate().for_each(|(number, score)| {
                score.sum = if right(number) { 2.0 } else { 1.0 };
            });
            all
        };
        let found = compare(&names(2), &[of(3, &|_| false), thirds(&|_| false)]).remove(0).overall;
        assert!((found.disagreement - 1.0 / 3.0).abs() < 1e-12);
        let design = PairedDesign { discordance: 1.0, cluster_size: 1.0, intracluster: 0.0 };
        let whole = design.detectable_effect(400.0, Rates::default()).unwrap();
        assert!((found.detectable_before.unwrap() - whole / 3.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn impossible_differences_are_not_called_detectable() {
        let first = scores(&[("a1", "c", true), ("a2", "d", false), ("a3", "e", true)]);
        let second = scores(&[("a1", "c", false), ("a2", "d", true), ("a3", "e", true)]);
        let found = compare(&names(2), &[first, second]).remove(0);
        assert_eq!((found.overall.detectable, found.overall.detectable_before), (None, None));
        assert_eq!(found.overall.detectable_text(), "none");
        assert!(found.conclusion().contains("cannot detect any difference"), "{}", found.conclusion());
    }

    #[test]
    fn few_differing_items_say_nothing_of_what_could_be_found() {
        let first = many(|_| true);
        for (differing, said) in [(1, "Only 1 item differs, too few"), (5, "Only 5 items differ, too few")] {
            let found = compare(&names(2), &[first.clone(), many(|n| n % 12 != 0 || n / 12 >= differing)]).remove(0);
            assert_eq!((found.overall.differing, found.overall.detectable), (differing, None));
            assert_eq!(found.overall.detectable_text(), "few");
            let conclusion = found.conclusion();
            assert!(conclusion.contains(said) || conclusion.contains("unlikely to be chance"), "{conclusion}");
            assert!(!conclusion.contains("Smallest detectable"), "{conclusion}");
        }
        let found = compare(&names(2), &[many(|n| n % 5 != 0), many(|n| n % 5 != 1)]).remove(0);
        assert!(found.overall.detectable.is_some() && found.conclusion().contains("Smallest detectable difference"));
    }
}
