//! Pairs of items of two runs: by id, then by the item that others name as their original.
use std::collections::{BTreeMap, HashMap, HashSet};

use earnest_results::scores::{ItemScore, Question, Scores, contains};

/// Items of two runs that are compared with each other: one of each with the same id, or several that name one original.
pub(super) struct Pair<'a> {
    /// Id of the item or the original.
    pub(super) item: &'a str,
    /// Ids of the first items of each run.
    pub(super) ids: [&'a str; 2],
    pub(super) first: Vec<&'a ItemScore>,
    pub(super) second: Vec<&'a ItemScore>,
    /// True if one of the runs is another tool's log.
    pub(super) of_logs: bool,
}

impl<'a> Pair<'a> {
    fn one(item: &'a str, first: &'a ItemScore, second: &'a ItemScore) -> Self {
        Pair { item, ids: [item; 2], first: vec![first], second: vec![second], of_logs: false }
    }

    /// Task in the first run.
    pub(super) fn task(&self) -> &'a str {
        self.first.first().map_or("", |score| &score.task)
    }

    /// Cluster in the first run; that in the second where one tool's log has it and the other's has not.
    pub(super) fn cluster(&self) -> &'a str {
        let (first, second) = (self.first.first(), self.second.first());
        match (first, second) {
            (Some(first), Some(second)) if self.of_logs && first.is_own_cluster && !second.is_own_cluster => {
                &second.cluster
            }
            _ => first.map_or("", |score| &score.cluster),
        }
    }

    /// True if the items are a cluster of their own because they have no label, where others have one.
    pub(super) fn lacks_label(&self) -> bool {
        let (first, second) = (self.first.first(), self.second.first());
        first.is_some_and(|first| first.lacks_label)
            && second.is_none_or(|second| !self.of_logs || second.is_own_cluster)
    }

    /// True if no field says to which others the items belong.
    pub(super) fn is_own_cluster(&self) -> bool {
        self.first.iter().chain(&self.second).all(|score| score.is_own_cluster)
    }

    /// True if both prompts are known and differ; none if one is not known.
    pub(super) fn prompts_differ(&self) -> Option<bool> {
        Some(self.first.first()?.prompt? != self.second.first()?.prompt?)
    }

    /// Share of right answers in the first run, or the mean of its numbers; the mean over its items.
    pub(super) fn baseline(&self) -> f64 {
        mean(&self.first)
    }

    /// Mean of the second run.
    pub(super) fn run(&self) -> f64 {
        mean(&self.second)
    }

    pub(super) fn change(&self) -> f64 {
        self.run() - self.baseline()
    }

    /// True if both runs asked one item once.
    pub(super) fn is_single(&self) -> bool {
        [&self.first, &self.second].iter().all(|scores| matches!(scores.as_slice(), [one] if one.samples == 1))
    }

    /// The part of the pair with each kind of perturbation. Items without a kind, the originals, are in every part.
    fn by_kind(&self) -> Vec<(&'a str, Pair<'a>)> {
        let kinds = |scores: &[&'a ItemScore]| -> Vec<&'a str> {
            scores.iter().filter_map(|score| score.perturbation.as_deref()).collect()
        };
        let (mine, theirs) = (kinds(&self.first), kinds(&self.second));
        let mut all = if theirs.is_empty() { mine } else { theirs };
        all.sort_unstable();
        all.dedup();
        let part = |scores: &[&'a ItemScore], kind: &str| -> Vec<&'a ItemScore> {
            let of_kind: Vec<_> =
                scores.iter().copied().filter(|score| score.perturbation.as_deref() == Some(kind)).collect();
            if of_kind.is_empty() { scores.to_vec() } else { of_kind }
        };
        let pair = |kind: &'a str| Pair { first: part(&self.first, kind), second: part(&self.second, kind), ..*self };
        all.into_iter().map(|kind| (kind, pair(kind))).collect()
    }
}

fn mean(scores: &[&ItemScore]) -> f64 {
    // The sum of nothing is -0.0.
    (scores.iter().map(|score| score.mean()).sum::<f64>() + 0.0) / scores.len().max(1) as f64
}

/// Items of two runs in pairs, and the number of those without one.
pub(super) struct Pairing<'a> {
    /// In the order of the ids.
    pub(super) pairs: Vec<Pair<'a>>,
    /// Pairs of items with different ids.
    pub(super) by_pair: usize,
    /// Items in those pairs, of the first and of the second run.
    pub(super) items_by_pair: [usize; 2],
    pub(super) only_first: usize,
    pub(super) only_second: usize,
    /// Ids with different questions or answers in the two runs.
    pub(super) different_question: usize,
    /// Pairs of items with different ids and the same question.
    pub(super) by_text: usize,
    /// Items of the first run whose question several items of a run have, so that they cannot be paired.
    pub(super) ambiguous: usize,
}

impl<'a> Pairing<'a> {
    /// Pairs items with the same id. What is left is paired with the item of the other run that it names as its original, and
    /// what is left of both with that of the other run that names the same original.
    pub(super) fn of(first: &'a Scores, second: &'a Scores) -> Self {
        let mut by_id = Vec::new();
        let mut matched = HashSet::new();
        for (item, score) in &first.items {
            if let Some(other) = second.items.get(item).filter(|other| score.has_question_of(other)) {
                by_id.push(Pair::one(item, score, other));
                matched.insert(item.as_str());
            }
        }
        let mut used = [HashSet::new(), HashSet::new()];
        let by_pair = pairs_by_original([first, second], [&matched, &matched], &mut used);
        let items_by_pair = used.each_ref().map(HashSet::len);
        let number_by_pair = by_pair.len();
        let is_left = |item: &&str| !matched.contains(item) && !used.iter().any(|used| used.contains(item));
        let shared = first.items.keys().map(String::as_str).filter(|item| second.items.contains_key(*item));
        let different: Vec<&str> = shared.filter(is_left).collect();
        for used in &mut used {
            used.extend(matched.iter().chain(&different).copied());
        }
        let mut pairs = by_id;
        pairs.extend(by_pair);
        // Sorted, because the order of a sum changes its last digits; the sort is stable, so ids come before originals.
        pairs.sort_by_key(|pair| pair.item);
        Pairing {
            pairs,
            by_pair: number_by_pair,
            items_by_pair,
            only_first: first.len() - used[0].len(),
            only_second: second.len() - used[1].len(),
            different_question: different.len(),
            by_text: 0,
            ambiguous: 0,
        }
    }

    /// Pairs items of logs: those with the same id and question, then those of which one names the other as its original or both name
    /// one, then those with the same question. Without questions, ids pair items of one task. Expected answers are not compared: tools write them in their own forms.
    pub(super) fn of_logs(first: &'a Scores, second: &'a Scores) -> Self {
        let mut pairs = Vec::new();
        let mut used: [HashSet<&str>; 2] = [HashSet::new(), HashSet::new()];
        for (item, score) in &first.items {
            if let Some((other_item, other)) = second.items.get_key_value(item)
                && is_same_question(score, other)
            {
                pairs.push(Pair { of_logs: true, ..Pair::one(item, score, other) });
                used[0].insert(item);
                used[1].insert(other_item);
            }
        }
        let mut named = [HashSet::new(), HashSet::new()];
        let by_original = pairs_by_original([first, second], [&used[0], &used[1]], &mut named);
        let items_by_pair = named.each_ref().map(HashSet::len);
        let by_pair = by_original.len();
        pairs.extend(by_original.into_iter().map(|pair| Pair { of_logs: true, ..pair }));
        used.iter_mut().zip(named).for_each(|(used, named)| used.extend(named));
        let [mine, theirs] = [(first, &used[0]), (second, &used[1])].map(|(scores, used)| by_question(scores, used));
        let (mut by_text, mut ambiguous) = (0, 0);
        for (question, items) in &mine {
            match (&items[..], theirs.get(question).map(Vec::as_slice)) {
                (_, None) => {}
                ([(item, score)], Some([(other_item, other)])) => {
                    let ids = [*item, *other_item];
                    pairs.push(Pair { of_logs: true, ids, ..Pair::one(item, score, other) });
                    used[0].insert(item);
                    used[1].insert(other_item);
                    by_text += 1;
                }
                (several, Some(_)) => ambiguous += several.len(),
            }
        }
        // Sorted, because the order of a sum changes its last digits.
        pairs.sort_by_key(|pair| pair.item);
        let is_left = |item: &&String| !used[0].contains(item.as_str()) && !used[1].contains(item.as_str());
        let different = first.items.keys().filter(|item| second.items.contains_key(*item)).filter(is_left).count();
        Pairing {
            pairs,
            by_pair,
            items_by_pair,
            only_first: first.len() - used[0].len() - different,
            only_second: second.len() - used[1].len() - different,
            different_question: different,
            by_text,
            ambiguous,
        }
    }

    /// The pairs of each kind of perturbation, by name; empty unless there are several.
    pub(super) fn kinds(&self) -> BTreeMap<&'a str, Vec<Pair<'a>>> {
        let mut kinds: BTreeMap<&str, Vec<Pair<'a>>> = BTreeMap::new();
        for (kind, pair) in self.pairs.iter().flat_map(Pair::by_kind) {
            kinds.entry(kind).or_default().push(pair);
        }
        if kinds.len() > 1 { kinds } else { BTreeMap::new() }
    }
}

/// True if two items with one id are one question: one text stands in the other, or one is not known and the task is the same.
fn is_same_question(one: &ItemScore, other: &ItemScore) -> bool {
    match (&one.question, &other.question) {
        (Some(Question::Text(one)), Some(Question::Text(other))) => contains(one, other),
        (Some(one), Some(other)) => one == other,
        _ => one.task == other.task,
    }
}

/// Items that are not paired yet, by their question, each group by id.
fn by_question<'a>(scores: &'a Scores, used: &HashSet<&str>) -> HashMap<&'a str, Vec<(&'a str, &'a ItemScore)>> {
    let mut groups: HashMap<&str, Vec<(&str, &ItemScore)>> = HashMap::new();
    for (item, score) in scores.items.iter().filter(|(item, _)| !used.contains(item.as_str())) {
        if let Some(Question::Text(question)) = &score.question {
            groups.entry(question).or_default().push((item, score));
        }
    }
    groups
}

/// Pairs what is not matched yet with the item of the other run that it names as its original, and what is left of both with that of the
/// other run that names the same original. Adds the items to `used`.
fn pairs_by_original<'a>(
    runs: [&'a Scores; 2],
    matched: [&HashSet<&'a str>; 2],
    used: &mut [HashSet<&'a str>; 2],
) -> Vec<Pair<'a>> {
    let [first, second] = runs;
    let mut mine = by_original(first, matched[0]);
    let mut theirs = by_original(second, matched[1]);
    // An item that is paired by id can be the original of others, but is in no group itself.
    let mut by_pair: Vec<Pair<'a>> = Vec::new();
    let originals: Vec<&str> = theirs.keys().copied().filter(|name| first.items.contains_key(*name)).collect();
    for name in originals {
        if let (Some((item, original)), Some(group)) = (first.items.get_key_value(name), theirs.remove(name)) {
            used[0].insert(item.as_str());
            used[1].extend(group.iter().map(|(id, _)| *id));
            let ids = [item, group[0].0];
            by_pair.push(Pair { item, ids, first: vec![original], second: scores_of(&group), of_logs: false });
        }
    }
    let originals: Vec<&str> = mine.keys().copied().filter(|name| second.items.contains_key(*name)).collect();
    for name in originals {
        if let (Some((item, original)), Some(group)) = (second.items.get_key_value(name), mine.remove(name)) {
            used[0].extend(group.iter().map(|(id, _)| *id));
            used[1].insert(item.as_str());
            let ids = [group[0].0, item];
            by_pair.push(Pair { item, ids, first: scores_of(&group), second: vec![original], of_logs: false });
        }
    }
    for (name, group) in mine {
        let Some(other) = theirs.remove(name) else { continue };
        let left: Vec<_> = group.into_iter().filter(|(id, _)| !used[0].contains(id)).collect();
        let left_there: Vec<_> = other.into_iter().filter(|(id, _)| !used[1].contains(id)).collect();
        if left.is_empty() || left_there.is_empty() {
            continue;
        }
        used[0].extend(left.iter().map(|(id, _)| *id));
        used[1].extend(left_there.iter().map(|(id, _)| *id));
        let ids = [left[0].0, left_there[0].0];
        by_pair.push(Pair { item: name, ids, first: scores_of(&left), second: scores_of(&left_there), of_logs: false });
    }
    by_pair
}

/// Items that are not paired by id, by the original that they name, each group by id.
fn by_original<'a>(scores: &'a Scores, matched: &HashSet<&str>) -> BTreeMap<&'a str, Vec<(&'a str, &'a ItemScore)>> {
    let mut groups: BTreeMap<&str, Vec<(&str, &ItemScore)>> = BTreeMap::new();
    for (item, score) in &scores.items {
        if let Some(original) = score.pair.as_deref().filter(|_| !matched.contains(item.as_str())) {
            groups.entry(original).or_default().push((item, score));
        }
    }
    groups.values_mut().for_each(|group| group.sort_unstable_by_key(|(item, _)| *item));
    groups
}

fn scores_of<'a>(group: &[(&'a str, &'a ItemScore)]) -> Vec<&'a ItemScore> {
    group.iter().map(|(_, score)| *score).collect()
}
