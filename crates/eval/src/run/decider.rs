//! The watcher of a run's rows that decides when it ends.
use std::ops::Range;

use earnest_results::{Decision, Reason, Until};
use earnest_stats::{MarginTest, SequentialDifference, SequentialEstimate};

/// Confidence level of decisions.
const LEVEL: f64 = 0.95;

/// An item of the plan.
#[derive(Debug, Clone)]
struct Asked {
    cluster: usize,
    /// Share of right answers in the other run; none if it does not have the item.
    other: Option<f64>,
    right: u32,
    scored: u32,
}

/// A cluster of the plan.
#[derive(Debug, Clone)]
struct Cluster {
    items: Range<usize>,
    /// Samples without a row.
    open: usize,
}

/// Watches the rows of a run and decides when it ends. It looks after each cluster in the plan's order, once all samples of that
/// cluster and of those before it have a row, so that the decision does not depend on the order in which rows arrive.
#[derive(Debug, Clone)]
pub struct Decider {
    margin: Option<f64>,
    samples: usize,
    items: Vec<Asked>,
    clusters: Vec<Cluster>,
    /// Clusters looked at.
    seen: usize,
    sequence: SequentialDifference,
    /// Test of the margin, if there is one.
    within: Option<MarginTest>,
    reason: Option<Reason>,
}

impl Decider {
    /// Creates the decider of a plan whose clusters come one after the other: of every item its cluster and the share of right answers
    /// in the other run, none if it does not have the item.
    pub fn new(until: &Until, samples: u32, items: impl IntoIterator<Item = (String, Option<f64>)>) -> Self {
        let samples = samples.max(1) as usize;
        let mut decider = Decider {
            margin: until.margin(),
            samples,
            items: Vec::new(),
            clusters: Vec::new(),
            seen: 0,
            sequence: SequentialDifference::default(),
            within: None,
            reason: None,
        };
        let mut last = None;
        for (index, (name, other)) in items.into_iter().enumerate() {
            if last.as_ref() != Some(&name) {
                decider.clusters.push(Cluster { items: index..index, open: 0 });
                last = Some(name);
            }
            let cluster = decider.clusters.len() - 1;
            decider.clusters[cluster].items.end = index + 1;
            decider.clusters[cluster].open += samples;
            decider.items.push(Asked { cluster, other, right: 0, scored: 0 });
        }
        let largest = decider.clusters.iter().map(|cluster| cluster.items.len()).max().unwrap_or(0);
        let test = |margin| MarginTest::new(margin, largest).expect("a condition's margin is between 0 and 1");
        decider.within = decider.margin.map(test);
        decider
    }

    /// Number of items that the other run has.
    pub fn paired(&self) -> usize {
        self.items.iter().filter(|item| item.other.is_some()).count()
    }

    /// Number of items.
    pub fn items(&self) -> usize {
        self.items.len()
    }

    /// Adds the row at this index in the plan, with its correctness if it has a score. Each row is added once.
    pub fn add(&mut self, index: usize, correct: Option<bool>) {
        let Some(item) = self.items.get_mut(index / self.samples) else { return };
        item.scored += u32::from(correct.is_some());
        item.right += u32::from(correct == Some(true));
        let cluster = &mut self.clusters[item.cluster];
        cluster.open = cluster.open.saturating_sub(1);
        self.look();
    }

    /// Looks at finished clusters until one decides.
    fn look(&mut self) {
        while self.reason.is_none()
            && let Some(cluster) = self.clusters.get(self.seen).filter(|cluster| cluster.open == 0)
        {
            let (mut sum, mut pairs) = (0.0, 0);
            for item in &self.items[cluster.items.clone()] {
                if let Some(other) = item.other.filter(|_| item.scored > 0) {
                    sum += f64::from(item.right) / f64::from(item.scored) - other;
                    pairs += 1;
                }
            }
            self.seen += 1;
            self.sequence.add(sum, pairs).expect("differences of shares lie between -1 and 1");
            if let Some(test) = &mut self.within {
                test.add(sum, pairs).expect("no cluster has more pairs than items");
            }
            self.reason = self.estimate().and_then(|estimate| self.reason(&estimate));
        }
    }

    fn reason(&self, estimate: &SequentialEstimate) -> Option<Reason> {
        if estimate.low > 0.0 || estimate.high < 0.0 {
            return Some(Reason::Different);
        }
        let (margin, test) = (self.margin?, self.within.as_ref()?);
        let inside = -margin <= estimate.low && estimate.high <= margin;
        (inside && test.evidence() >= 1.0 / (1.0 - LEVEL)).then_some(Reason::Within)
    }

    fn estimate(&self) -> Option<SequentialEstimate> {
        self.sequence.estimate(LEVEL).expect("the level is between 0 and 1")
    }

    /// True once the rows decide.
    pub fn is_decided(&self) -> bool {
        self.reason.is_some()
    }

    /// True if the decision was made without the sample at this index in the plan.
    pub fn is_beyond(&self, index: usize) -> bool {
        self.is_decided() && index / self.samples >= self.asked()
    }

    /// Items of the clusters looked at.
    fn asked(&self) -> usize {
        self.seen.checked_sub(1).map_or(0, |last| self.clusters[last].items.end)
    }

    /// Returns the decision of a run that has ended at this time.
    pub fn decision(&self, when: String) -> Decision {
        Decision {
            reason: self.reason.unwrap_or(Reason::Undecided),
            items: if self.is_decided() { self.asked() } else { self.items.len() },
            of_items: self.items.len(),
            clusters: self.seen,
            of_clusters: self.clusters.len(),
            estimate: self.estimate(),
            when,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until(within: Option<f64>) -> Until {
        Until { difference_to: "base".into(), within }
    }

    /// Items of 40 clusters of 5, all of which the other run has with this share.
    fn decider(within: Option<f64>, samples: u32, other: f64) -> Decider {
        Decider::new(&until(within), samples, (0..200).map(|index| (format!("c{}", index / 5), Some(other))))
    }

    #[test]
    fn a_clear_difference_ends_the_run_at_a_cluster() {
        let mut found = decider(None, 1, 0.0);
        let mut added = 0;
        while !found.is_decided() {
            // Four of five are right.
            found.add(added, Some(added % 5 != 0));
            added += 1;
        }
        assert_eq!(added, 50, "ten clusters of five decide");
        let decision = found.decision("now".into());
        assert_eq!((decision.reason, decision.items, decision.of_items), (Reason::Different, 50, 200));
        assert_eq!((decision.clusters, decision.of_clusters, decision.is_early()), (10, 40, true));
        let estimate = decision.estimate.unwrap();
        assert!((estimate.difference - 0.8).abs() < 1e-12 && estimate.low > 0.0);
        assert!(found.is_beyond(50) && !found.is_beyond(49));
        let said = decision.sentence(&until(None));
        assert!(
            said.starts_with("Stopped early, after 10 of 40 clusters; the difference to base is decided: +80.0"),
            "{said}"
        );
    }

    /// Rows in any order decide alike, also if later clusters came in first.
    #[test]
    fn the_order_of_arrival_does_not_matter() {
        let right = |index: usize| Some((index * 7919) % 10 < 7).filter(|_| index % 31 != 3);
        let mut in_order = decider(Some(30.0), 2, 0.4);
        (0..400).for_each(|index| in_order.add(index, right(index)));
        let expected = in_order.decision(String::new());
        assert!(expected.is_early(), "{expected:?}");
        // Steps that 400 has no factor in common with reach every index.
        for step in [7, 13, 39, 399] {
            let mut other = decider(Some(30.0), 2, 0.4);
            (0..400).map(|index| index * step % 400).for_each(|index| other.add(index, right(index)));
            assert_eq!(other.decision(String::new()), expected, "step {step}");
        }
    }

    #[test]
    fn equality_within_the_margin_decides_only_if_asked_for() {
        let alternating = |found: &mut Decider| {
            for index in 0..200 {
                found.add(index, Some(index % 2 == 0));
            }
            found.decision(String::new())
        };
        let within = alternating(&mut decider(Some(20.0), 1, 0.5));
        assert!(within.reason == Reason::Within && within.is_early(), "{within:?}");
        assert!(within.sentence(&until(Some(20.0))).contains("is within 20 points"));
        let undecided = alternating(&mut decider(None, 1, 0.5));
        assert_eq!((undecided.reason, undecided.items, undecided.is_early()), (Reason::Undecided, 200, false));
        assert!(undecided.sentence(&until(None)).starts_with("Not stopped early: all 40 clusters were asked"));
    }

    #[test]
    fn items_without_a_pair_or_a_score_count_for_nothing() {
        let items = |paired: bool| (0..100).map(move |index| (format!("c{}", index / 2), paired.then_some(0.0)));
        let mut alone = Decider::new(&until(None), 1, items(false));
        (0..100).for_each(|index| alone.add(index, Some(true)));
        let decision = alone.decision(String::new());
        assert_eq!((decision.reason, decision.estimate, alone.paired()), (Reason::Undecided, None, 0));
        assert!(decision.sentence(&until(None)).contains("nothing could be decided"));
        let mut failed = Decider::new(&until(None), 1, items(true));
        (0..100).for_each(|index| failed.add(index, None));
        assert_eq!((failed.decision(String::new()).estimate, failed.paired()), (None, 100));
    }
}
