//! Two runs side by side, item by item.
use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::question::Question;
use crate::run::{Manifest, Sample, SettingChange};
use earnest_stats::clustered::ClusteredMean;
use earnest_stats::{PairedCounts, PairedDesign, Rates, holm, mcnemar, paired_difference, t_reach};
use earnest_tasks::suite::Item;

/// What a comparison needs of a run: for every item its share of right answers.
#[derive(Debug, Clone, Default)]
pub struct Scores {
    items: HashMap<String, ItemScore>,
    /// The rules that decide, where they are known.
    primary: Vec<String>,
    /// Names of all rules, kept once for all items.
    rules: Vec<String>,
    /// Samples without a score, which are in no comparison.
    pub without_verdict: usize,
}

#[derive(Debug, Clone)]
struct ItemScore {
    task: String,
    cluster: String,
    gold: String,
    /// None where only the suite knows.
    question: Option<Question>,
    correct: u32,
    samples: u32,
    /// Samples that each rule found right, and that it scored, at the places of [`Scores::rules`].
    rules: Vec<(u32, u32)>,
}

impl ItemScore {
    /// True as far as is known.
    fn asks(&self, other: &ItemScore) -> bool {
        let (mine, theirs) = (&self.question, &other.question);
        self.gold == other.gold && mine.as_ref().zip(theirs.as_ref()).is_none_or(|(mine, theirs)| mine.is(theirs))
    }

    fn share(&self) -> f64 {
        f64::from(self.correct) / f64::from(self.samples.max(1))
    }
}

impl Scores {
    /// Without samples, of a run in which these rules decide what is right.
    pub fn decided_by(primary: Vec<String>) -> Self {
        Scores { primary, ..Scores::default() }
    }

    /// Adds a sample.
    pub fn add(&mut self, sample: &Sample) {
        let Some(found) = &sample.score else {
            self.without_verdict += 1;
            return;
        };
        let fresh = || ItemScore {
            task: sample.task.clone(),
            cluster: sample.cluster.clone(),
            gold: sample.gold.clone(),
            question: Question::of_operands(&sample.covariates),
            correct: 0,
            samples: 0,
            rules: Vec::new(),
        };
        let score = self.items.entry(sample.item.clone()).or_insert_with(fresh);
        score.correct += u32::from(found.correct);
        score.samples += 1;
        for (rule, right) in found.rules.iter() {
            let place = self.rules.iter().position(|known| known == rule).unwrap_or_else(|| {
                self.rules.push(rule.to_owned());
                self.rules.len() - 1
            });
            if score.rules.len() <= place {
                score.rules.resize(place + 1, (0, 0));
            }
            let (sum, n) = &mut score.rules[place];
            (*sum, *n) = (*sum + u32::from(right), *n + 1);
        }
    }

    /// True if rows alone do not say what was asked: [`Scores::read_questions`] is needed before runs of differing options are
    /// compared.
    pub fn lacks_questions(&self) -> bool {
        self.items.values().any(|score| score.question.is_none())
    }

    /// Takes the questions from the items of the run's suite, where rows do not have them.
    pub fn read_questions(&mut self, items: impl Iterator<Item = Item>) {
        items.for_each(|item| self.read_question(&item));
    }

    /// Takes one question.
    pub fn read_question(&mut self, item: &Item) {
        if let Some(score) = self.items.get_mut(&item.id).filter(|score| score.question.is_none()) {
            score.question = Some(Question::of_text(item));
        }
    }

    /// Items with a score.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

/// A second run compared with the first, on the items that both answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub baseline: String,
    pub run: String,
    /// Items in both; items that only one has; items with one id and different questions or answers (in no figure).
    pub items: usize,
    pub only_baseline: usize,
    pub only_run: usize,
    pub different_question: usize,
    /// Settings besides the model in which the runs differ; [`differing_settings`] finds them.
    pub settings: Vec<SettingChange>,
    /// All items together.
    pub overall: Difference,
    /// By task, in alphabetical order; empty if there is one task only.
    pub tasks: Vec<Difference>,
    /// The rules that decide in the baseline and in the run, where they are known.
    pub primary: [Vec<String>; 2],
    /// Every rule of both runs, by name.
    pub rules: Vec<RuleDifference>,
    /// Items whose answer changed, those that became right first.
    pub flips: Vec<Flip>,
    /// Answers that became right, and wrong.
    pub gained: usize,
    pub lost: usize,
}

/// A difference of accuracies, `run - baseline`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// `all` or the task.
    pub name: String,
    pub items: usize,
    pub clusters: usize,
    pub baseline: f64,
    pub run: f64,
    pub difference: f64,
    /// Cluster-robust 95 % interval; none with fewer than two clusters.
    pub interval: Option<(f64, f64)>,
    /// p value of the cluster-robust t test.
    pub p: Option<f64>,
    /// The same, adjusted by Holm's method over the family it is shown with.
    pub p_holm: Option<f64>,
    /// Tests in that family.
    pub family: usize,
    /// An interval that holds for all of the family at once (Bonferroni): with 95 % confidence none of them is wrong.
    pub simultaneous_interval: Option<(f64, f64)>,
    /// McNemar's exact p value, where every item was asked once in both; it takes items as independent.
    pub mcnemar_p: Option<f64>,
    /// Smallest true difference that this test, t with one degree of freedom less than clusters, finds 4 times of 5, from the
    /// error that was observed. None where there is no error, or where not even the largest difference that the baseline leaves
    /// room for would be found.
    pub detectable: Option<f64>,
    /// The same with the p values of the family adjusted.
    pub detectable_in_family: Option<f64>,
    /// Share of items with another outcome; with several samples an item, the mean difference of shares.
    pub disagreement: f64,
    /// What is detectable by items, clusters and disagreement alone, as if known before, should the items of a cluster be no more
    /// alike than others.
    pub detectable_before: Option<f64>,
    /// The same should all items of a cluster differ together. The truth lies between the two.
    pub detectable_before_alike: Option<f64>,
    #[serde(skip)]
    robust: Option<ClusteredMean>,
}

impl Difference {
    /// The smallest true difference that a test at this level finds with this power, if one is possible.
    fn reach(&self, rates: Rates) -> Option<f64> {
        // An error of zero is no knowledge: it says that nothing differed in this sample.
        let error = self.robust?.standard_error;
        let size = t_reach(self.clusters as f64, rates.alpha, rates.power) * error;
        let most = self.baseline.max(1.0 - self.baseline);
        (error > 0.0 && size <= most).then_some(size)
    }

    fn interval_at(&self, level: f64) -> Option<(f64, f64)> {
        let (low, high) = self.robust.filter(|robust| robust.standard_error > 0.0)?.interval(level);
        Some((low.max(-1.0), high.min(1.0)))
    }

    /// The detectable difference in points for a table: `-` where no error can be estimated, `none` where no difference can
    /// be found.
    pub fn detectable_text(&self) -> String {
        match (self.interval, self.detectable) {
            (None, _) => "-".to_owned(),
            (Some(_), None) => "none".to_owned(),
            (Some(_), Some(size)) => format!("{:.1}", 100.0 * size),
        }
    }
}

/// A rule on the items that both runs answered and that it scored in both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RuleDifference {
    pub name: String,
    pub items: usize,
    /// Shares of right answers.
    pub baseline: f64,
    pub run: f64,
}

/// An item that one run has right and the other wrong.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Flip {
    pub item: String,
    pub task: String,
    /// Shares of right answers.
    pub baseline: f64,
    pub run: f64,
}

/// One item in both runs.
struct Pair<'a> {
    item: &'a str,
    score: &'a ItemScore,
    other: &'a ItemScore,
}

/// Compares runs with the first one. p values of the runs are one Holm family, those of all tasks another.
pub fn compare(names: &[String], scores: &[Scores]) -> Vec<Comparison> {
    let Some(((baseline, first), rest)) =
        names.iter().zip(scores).collect::<Vec<_>>().split_first().map(|(a, b)| (*a, b.to_vec()))
    else {
        return Vec::new();
    };
    let mut comparisons: Vec<Comparison> =
        rest.iter().map(|(name, scores)| pairwise(baseline, first, name, scores)).collect();
    adjust(comparisons.iter_mut().map(|comparison| &mut comparison.overall).collect());
    adjust(comparisons.iter_mut().flat_map(|comparison| &mut comparison.tasks).collect());
    comparisons
}

fn pairwise(baseline: &str, first: &Scores, run: &str, second: &Scores) -> Comparison {
    let mut pairs = Vec::new();
    let mut different_question = 0;
    for (item, score) in &first.items {
        match second.items.get(item) {
            Some(other) if score.asks(other) => pairs.push(Pair { item, score, other }),
            Some(_) => different_question += 1,
            None => {}
        }
    }
    // The order decides the last digits of sums.
    pairs.sort_by_key(|pair| pair.item);
    let matched = pairs.len() + different_question;
    let mut tasks: BTreeMap<&str, Vec<&Pair<'_>>> = BTreeMap::new();
    for pair in &pairs {
        tasks.entry(&pair.score.task).or_default().push(pair);
    }
    let by_task =
        if tasks.len() > 1 { tasks.iter().map(|(task, pairs)| difference(task, pairs)).collect() } else { Vec::new() };
    let change = |pair: &Pair<'_>| pair.other.share() - pair.score.share();
    let mut flips: Vec<Flip> = pairs
        .iter()
        .filter(|pair| change(pair) != 0.0)
        .map(|pair| Flip {
            item: pair.item.to_owned(),
            task: pair.score.task.clone(),
            baseline: pair.score.share(),
            run: pair.other.share(),
        })
        .collect();
    flips.sort_by(|a, b| (b.run - b.baseline).total_cmp(&(a.run - a.baseline)).then_with(|| a.item.cmp(&b.item)));
    Comparison {
        baseline: baseline.to_owned(),
        run: run.to_owned(),
        items: pairs.len(),
        only_baseline: first.len() - matched,
        only_run: second.len() - matched,
        different_question,
        settings: Vec::new(),
        overall: difference("all", &pairs.iter().collect::<Vec<_>>()),
        tasks: by_task,
        primary: [first.primary.clone(), second.primary.clone()],
        rules: rules(first, second, &pairs),
        gained: pairs.iter().filter(|pair| change(pair) > 0.0).count(),
        lost: pairs.iter().filter(|pair| change(pair) < 0.0).count(),
        flips,
    }
}

/// The mean shares by every rule that both runs have, by name.
fn rules(first: &Scores, second: &Scores, pairs: &[Pair<'_>]) -> Vec<RuleDifference> {
    let share = |score: &ItemScore, place: usize| {
        let judged = score.rules.get(place).filter(|(_, samples)| *samples > 0);
        judged.map(|(right, samples)| f64::from(*right) / f64::from(*samples))
    };
    let both = first.rules.iter().enumerate().filter_map(|(mine, name)| {
        let theirs = second.rules.iter().position(|other| other == name)?;
        let shares: Vec<(f64, f64)> =
            pairs.iter().filter_map(|pair| share(pair.score, mine).zip(share(pair.other, theirs))).collect();
        let items = shares.len();
        let mean = |of: fn(&(f64, f64)) -> f64| shares.iter().map(of).sum::<f64>() / items as f64;
        let (baseline, run) = (mean(|share| share.0), mean(|share| share.1));
        (items > 0).then(|| RuleDifference { name: name.clone(), items, baseline, run })
    });
    let mut found: Vec<RuleDifference> = both.collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

fn difference(name: &str, pairs: &[&Pair<'_>]) -> Difference {
    let first: Vec<f64> = pairs.iter().map(|pair| pair.score.share()).collect();
    let second: Vec<f64> = pairs.iter().map(|pair| pair.other.share()).collect();
    let mut numbers: HashMap<&str, u64> = HashMap::new();
    let clusters: Vec<u64> = pairs
        .iter()
        .map(|pair| {
            let next = numbers.len() as u64;
            *numbers.entry(&pair.score.cluster).or_insert(next)
        })
        .collect();
    // An empty sum is -0.0.
    let mean = |values: &[f64]| (values.iter().sum::<f64>() + 0.0) / values.len().max(1) as f64;
    let robust: Option<ClusteredMean> = paired_difference(&first, &second, &clusters).ok();
    let once = pairs.iter().all(|pair| pair.score.samples == 1 && pair.other.samples == 1);
    let counts = PairedCounts::of(pairs.iter().map(|pair| (pair.score.correct > 0, pair.other.correct > 0)));
    let changes: Vec<f64> = first.iter().zip(&second).map(|(first, second)| (second - first).abs()).collect();
    let design = Design { changes: &changes, clusters: &clusters };
    let mut found = Difference {
        name: name.to_owned(),
        items: pairs.len(),
        clusters: numbers.len(),
        baseline: mean(&first),
        run: mean(&second),
        difference: mean(&second) - mean(&first),
        interval: None,
        p: robust.filter(|robust| robust.standard_error > 0.0 || robust.mean == 0.0).map(|robust| robust.p()),
        p_holm: None,
        family: 1,
        simultaneous_interval: None,
        mcnemar_p: (once && !pairs.is_empty()).then(|| mcnemar(&counts).exact_p),
        detectable: None,
        detectable_in_family: None,
        disagreement: mean(&changes),
        detectable_before: design.reach(0.0),
        detectable_before_alike: design.reach(1.0),
        robust,
    };
    found.interval = found.interval_at(0.95);
    found.detectable = found.reach(Rates::default());
    (found.simultaneous_interval, found.detectable_in_family) = (found.interval, found.detectable);
    found
}

/// What of two runs can be known before: items in clusters, and how far answers differ in either direction.
struct Design<'a> {
    changes: &'a [f64],
    clusters: &'a [u64],
}

impl Design<'_> {
    /// The smallest difference that is found 4 times of 5 if differences of two items of a cluster are so correlated.
    fn reach(&self, intracluster: f64) -> Option<f64> {
        let count = self.changes.len() as f64;
        let disagreement = self.changes.iter().sum::<f64>() / count;
        let square = self.changes.iter().map(|change| change * change).sum::<f64>() / count;
        let mut sizes: HashMap<u64, f64> = HashMap::new();
        for cluster in self.clusters {
            *sizes.entry(*cluster).or_default() += 1.0;
        }
        // Large clusters count for more: a variance has the sum of their squares.
        let mut squares: Vec<f64> = sizes.into_values().map(|size| size * size).collect();
        squares.sort_unstable_by(f64::total_cmp);
        let cluster_size = squares.iter().sum::<f64>() / count;
        // Differences of shares are scaled so that they take, as single answers do, the values -1, 0 and 1 in variance and reach.
        let scale = disagreement / square;
        let design = PairedDesign { discordance: (disagreement * scale).min(1.0), cluster_size, intracluster };
        let effect = design.detectable_effect(count, Rates::default()).ok()?;
        // The discordance bounds any difference: an effect as large means that none is found.
        (effect < design.discordance).then_some(effect / scale)
    }
}

/// Holm's adjustment over a family; tests that could not be done are not part of it.
fn adjust(family: Vec<&mut Difference>) {
    let mut tested: Vec<&mut Difference> = family.into_iter().filter(|difference| difference.p.is_some()).collect();
    let p_values: Vec<f64> = tested.iter().filter_map(|difference| difference.p).collect();
    if let Ok(adjusted) = holm(&p_values) {
        let family = tested.len();
        let rates = Rates::default();
        let alpha = rates.alpha / family as f64;
        for (difference, p) in tested.iter_mut().zip(adjusted) {
            difference.p_holm = Some(p);
            difference.family = family;
            difference.simultaneous_interval = difference.interval_at(1.0 - alpha);
            difference.detectable_in_family = difference.reach(Rates { alpha, ..rates });
        }
    }
}

/// The settings besides the model itself in which two runs differ: a difference of results is then one of settings too.
/// What weights were computed in (`engine.weights_dtype`) is among them; the suite's version is not, because stored
/// completions can be scored alike.
pub fn differing_settings(baseline: &Manifest, run: &Manifest) -> Vec<SettingChange> {
    let (mine, theirs) = (&baseline.settings, &run.settings);
    let one_model = mine.model_files == theirs.model_files;
    let mut changes = mine.changes(theirs);
    changes.retain(|change| match change.name.as_str() {
        "suite" | "suite_version" | "model_files" | "endpoint.model" => false,
        // Another model has other ids for its end of a sequence.
        "generation.stop_ids" => one_model,
        _ => true,
    });
    let dtype = |manifest: &Manifest| Some(manifest.engine.as_ref()?.card.weights_dtype.clone());
    if let (Some(one), Some(other)) = (dtype(baseline), dtype(run))
        && one != other
    {
        let name = "engine.weights_dtype".to_owned();
        changes.push(SettingChange { name, one: one.into(), other: other.into() });
    }
    changes
}

impl Comparison {
    /// What can and what can not be said, in plain words.
    pub fn verdict(&self) -> String {
        let overall = &self.overall;
        let points = |value: f64| format!("{:.1} points", 100.0 * value.abs());
        if self.items == 0 {
            return "The runs have no item in common: nothing can be said.".to_owned();
        }
        let (Some(p), Some((low, high))) = (overall.p_holm, overall.simultaneous_interval) else {
            if self.gained + self.lost == 0 {
                return format!(
                    "The runs agree on all {} items. That is no proof that the models are equal: it says only that these \
                     items do not tell them apart.",
                    self.items
                );
            }
            let exact = overall.mcnemar_p.map_or_else(String::new, |p| {
                format!(" McNemar's exact test, which takes items as independent, gives {}.", p_sentence(p))
            });
            return if overall.clusters < 2 {
                format!(
                    "The items are one cluster: without a second one there is no error, and nothing can be said beyond these \
                     items.{exact}"
                )
            } else {
                format!("All clusters differ by the same amount, so that no error can be estimated.{exact}")
            };
        };
        let known = self.primary.iter().all(|rules| !rules.is_empty());
        if known && self.primary[0] != self.primary[1] {
            let [mine, theirs] = self.primary.each_ref().map(|rules| rules.join(" and "));
            return format!(
                "The runs are not read by the same rule ({theirs} and {mine}), so their difference of {} says nothing about the \
                 models. The table of rules compares like with like; `earnest score RUN --save --profile NAME` reads a run by another \
                 rule.",
                points(overall.difference)
            );
        }
        let direction = if overall.difference > 0.0 { "better" } else { "worse" };
        let (adjusted, together) = match overall.family {
            1 => (String::new(), String::new()),
            family => (
                format!(", adjusted for {family} comparisons"),
                format!(" (an interval that holds for all {family} comparisons at once)"),
            ),
        };
        let span = format!("between {:+.1} and {:+.1} points{together}", 100.0 * low, 100.0 * high);
        if p < 0.05 {
            format!(
                "{} is {direction} than {} by {} on these items, and chance alone is an unlikely reason ({}{adjusted}); \
                 the true difference is plausibly {span}.",
                self.run,
                self.baseline,
                points(overall.difference),
                p_sentence(p)
            )
        } else {
            let detectable = match overall.detectable_in_family {
                Some(size) => format!("A true difference below {} would probably be missed with these items.", points(size)),
                None => "No difference is detectable with these items: even the largest possible one would probably be missed."
                    .to_owned(),
            };
            format!(
                "It can not be said which of the two is more accurate: a difference of {:+.1} points can be chance (p = \
                 {}{adjusted}). It can be said that the true difference is plausibly {span}. {detectable}",
                100.0 * overall.difference,
                p_text(p)
            )
        }
    }
}

/// A p value in a sentence: `p = 0.012`, `p < 0.0001`.
pub fn p_sentence(p: f64) -> String {
    let text = p_text(p);
    if text.starts_with('<') { format!("p {text}") } else { format!("p = {text}") }
}

/// A p value with two significant digits.
pub fn p_text(p: f64) -> String {
    if p < 0.0001 {
        "< 0.0001".to_owned()
    } else if p < 0.1 {
        let digits = (1.0 - p.log10().floor()) as usize;
        format!("{p:.digits$}")
    } else {
        format!("{p:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(answers: &[(&str, &str, bool)]) -> Scores {
        let mut scores = Scores::default();
        for &(item, cluster, correct) in answers {
            let score = scores.items.entry(item.into()).or_insert(ItemScore {
                task: item[..1].into(),
                cluster: cluster.into(),
                gold: "1".into(),
                question: None,
                correct: 0,
                samples: 0,
                rules: Vec::new(),
            });
            score.correct += u32::from(correct);
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
        assert!(found.verdict().contains("run1 is better than run0 by 33.3 points"), "{}", found.verdict());
        assert_eq!(found.tasks.len(), 2);
        assert_eq!(found.flips.len(), 20);
    }

    #[test]
    fn noise_is_not_called_a_difference_and_equality_is_not_claimed() {
        let found = compare(&names(2), &[many(|n| n % 5 != 0), many(|n| n % 5 != 1)]).remove(0);
        assert_eq!((found.gained, found.lost), (12, 12));
        assert!(found.verdict().starts_with("It can not be said"), "{}", found.verdict());
        assert!(found.overall.detectable.unwrap() > 0.05);
        let same = compare(&names(2), &[many(|n| n % 2 == 0), many(|n| n % 2 == 0)]).remove(0);
        assert!(same.verdict().contains("no proof"), "{}", same.verdict());
        assert_eq!((same.overall.p, same.overall.interval), (Some(1.0), None));
    }

    #[test]
    fn items_that_do_not_match_are_counted_not_compared() {
        let mut other = scores(&[("a1", "c", true), ("a2", "d", true), ("a9", "d", true)]);
        other.items.get_mut("a2").unwrap().gold = "2".into();
        let found = compare(&names(2), &[scores(&[("a1", "c", true), ("a2", "d", true), ("a3", "e", false)]), other]);
        let found = &found[0];
        assert_eq!((found.items, found.only_baseline, found.only_run, found.different_question), (1, 1, 1, 1));
        assert!(found.verdict().contains("no proof"), "{}", found.verdict());
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
        assert!(nothing.verdict().contains("nothing can be said"));
        assert!(compare(&[], &[]).is_empty());
    }

    #[test]
    fn rules_of_both_runs_stand_side_by_side() {
        let with = |mut scores: Scores, rules: &[(&str, bool)]| {
            scores.rules = rules.iter().map(|(rule, _)| (*rule).to_owned()).collect();
            for score in scores.items.values_mut() {
                score.rules = rules.iter().map(|(_, right)| (u32::from(*right), 1)).collect();
            }
            scores
        };
        let items = [("a1", "c", true), ("a2", "d", true)];
        let first = with(scores(&items), &[("strict", true), ("paper", false)]);
        let second = with(scores(&items), &[("strict", false), ("final", true)]);
        let found = compare(&names(2), &[first, second]).remove(0);
        let strict = RuleDifference { name: "strict".into(), items: 2, baseline: 1.0, run: 0.0 };
        assert_eq!(found.rules, [strict]);
        let decided = compare(&names(2), &[Scores::decided_by(vec!["final".into()]), Scores::default()]).remove(0);
        assert_eq!(decided.primary, [vec!["final".to_owned()], Vec::new()]);
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
        let verdict = found[0].verdict();
        let span = format!(
            "between {:+.1} and {:+.1} points (an interval that holds for all 2",
            100.0 * together.0,
            100.0 * together.1
        );
        assert!(verdict.contains(&span) && verdict.contains(", adjusted for 2 comparisons)"), "{verdict}");
        assert!(!alone.verdict().contains("adjusted"), "{}", alone.verdict());
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
        let runs = [few(&|n| n % 3 == 0), few(&|n| n % 4 != 1), few(&|n| n % 5 != n / 10)];
        for found in compare(&names(3), &runs) {
            let overall = &found.overall;
            assert_eq!((overall.clusters, overall.family), (6, 2));
            // scipy, apart from this code: what has 80 % power with 5 degrees of freedom, at 5 % and 2.5 %.
            let error = overall.robust.unwrap().standard_error;
            for (level, size, reach) in
                [(0.95, overall.detectable, 3.513_902_729), (0.975, overall.detectable_in_family, 4.176_996_974)]
            {
                let expected = Some(reach * error).filter(|size| *size <= overall.baseline.max(1.0 - overall.baseline));
                assert_eq!(size.is_some(), expected.is_some(), "{overall:?}");
                let Some(size) = size else { continue };
                assert!((size / expected.unwrap() - 1.0).abs() < 1e-6, "{overall:?}");
                let (low, high) = overall.robust.unwrap().interval(level);
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
            all.items.values_mut().enumerate().for_each(|(number, score)| score.correct = 1 + u32::from(right(number)));
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
        assert!(found.verdict().contains("No difference is detectable with these items"), "{}", found.verdict());
    }

    #[test]
    fn p_values_for_people() {
        let texts: Vec<String> = [0.5, 0.049, 0.0012, 0.00001, 1.0].map(p_text).to_vec();
        assert_eq!(texts, ["0.50", "0.049", "0.0012", "< 0.0001", "1.00"]);
    }
}
