//! The conclusion of a comparison in words.
use super::{Comparison, Difference, Sequential};
use earnest_results::{ComparisonNotice, ends, p_decimals};
use earnest_stats::PairedTest;
use earnest_tasks::{agreeing, counted};

impl Comparison {
    /// Says how many items are not in both runs, if any.
    pub fn uncommon(&self) -> Option<String> {
        let changed = match self.different_question {
            0 => String::new(),
            count => format!(
                " {} with one id {} other questions in the two runs, and not compared.",
                counted(count, "item"),
                agreeing(count, "is", "are")
            ),
        };
        (self.only_baseline + self.only_run + self.different_question > 0).then(|| {
            format!(
                "{} {} in both runs; {} of {} and {} of {} are compared with nothing.{changed}",
                counted(self.items, "item"),
                agreeing(self.items, "is", "are"),
                self.only_baseline,
                self.baseline,
                self.only_run,
                self.run
            )
        })
    }

    /// Returns the conclusion in plain words, with its limits, and how the runs were asked where that differs.
    pub fn conclusion(&self) -> String {
        let asked = self.asked_differently.iter().filter(|_| self.items > 0).map(String::as_str);
        [self.main_sentence().as_str()].into_iter().chain(asked).collect::<Vec<_>>().join(" ")
    }

    fn main_sentence(&self) -> String {
        let overall = &self.overall;
        let points = |value: f64| overall.size(value.abs());
        if self.items == 0 {
            return "The runs have no items in common, so they cannot be compared.".to_owned();
        }
        if let Some(sequential) = &self.sequential {
            return self.other_scorers().unwrap_or_else(|| self.sequential_conclusion(sequential));
        }
        if self.gained + self.lost == 0 {
            let (all, do_not) = match self.items {
                1 => ("the only item".to_owned(), "this item does not"),
                count => (format!("all {count} items"), "these items do not"),
            };
            let interval = overall.simultaneous_interval.map_or_else(String::new, |(low, high)| {
                let unit = if overall.shares { " points" } else { "" };
                let factor = if overall.shares { 100.0 } else { 1.0 };
                let digits = if overall.shares { 1 } else { 3 };
                let span = ends((factor * low, factor * high), 0.0, digits, true).join(" to ");
                format!(" The 95 % interval of the true difference is {span}{unit}.")
            });
            return format!(
                "The runs agree on {all}. This does not show that the models are equal, only that {do_not} distinguish them.{interval}"
            );
        }
        let (Some(p), Some((low, high))) = (overall.p_holm, overall.simultaneous_interval) else {
            let exact = overall.mcnemar_p.map_or_else(String::new, |p| {
                format!(" McNemar's exact test, which assumes independent items, gives {}.", p_sentence(p))
            });
            return if overall.clusters < 2 {
                format!(
                    "All items are in one cluster, so no standard error can be estimated and nothing can be concluded beyond \
                     these items.{exact}"
                )
            } else {
                format!("All clusters differ by the same amount, so no standard error can be estimated.{exact}")
            };
        };
        if let Some(said) = self.other_scorers() {
            return said;
        }
        let direction = match (overall.shares, overall.difference > 0.0) {
            (true, true) => "better",
            (true, false) => "worse",
            // Of other numbers nothing says which end is the good one.
            (false, true) => "higher",
            (false, false) => "lower",
        };
        let (adjusted, together) = match overall.family {
            1 => (String::new(), String::new()),
            family => (
                format!(", adjusted for {family} comparisons"),
                format!(" (simultaneous interval for all {family} comparisons)"),
            ),
        };
        let span = match overall.shares {
            true => format!("{} points{together}", ends((100.0 * low, 100.0 * high), 0.0, 1, true).join(" to ")),
            false => format!("{}{together}", ends((low, high), 0.0, 3, true).join(" to ")),
        };
        if p < 0.05 {
            format!(
                "{} is {direction} than {} by {} on these items, which is unlikely to be chance ({}{adjusted}); the 95 % interval \
                 of the true difference is {span}.",
                self.run,
                self.baseline,
                points(overall.difference),
                p_sentence(p)
            )
        } else {
            let detectable = match overall.detectable_in_family {
                Some(size) => {
                    let possible = match overall.has_room(size, false) {
                        true if overall.has_room(size, true) => String::new(),
                        true => format!(", a drop; no rise from {} % is", share(overall.baseline)),
                        false => format!(", a rise; no drop from {} % is", share(overall.baseline)),
                    };
                    format!("Smallest detectable difference with these items: {} (80 % power){possible}.", points(size))
                }
                None if overall.has_few_differing() => format!(
                    "Only {}, too few to say what difference these items would detect.",
                    match overall.differing {
                        1 => "1 item differs".to_owned(),
                        count => format!("{count} items differ"),
                    }
                ),
                None => "These items cannot detect any difference, not even the largest possible one.".to_owned(),
            };
            format!(
                "These items do not show which of the two is {}: a difference of {}{} may be chance ({}{adjusted}). The 95 % \
                 interval of the true difference is {span}. {detectable}",
                if overall.shares { "more accurate" } else { "higher" },
                if overall.difference < 0.0 { '-' } else { '+' },
                points(overall.difference),
                p_sentence(p)
            )
        }
    }
}

/// Formats a share in per cent.
fn share(value: f64) -> String {
    format!("{:.1}", 100.0 * value)
}

impl Comparison {
    /// Returns the tests behind the p values and intervals, and why they were chosen.
    pub fn tests(&self) -> String {
        let overall = &self.overall;
        let own = match overall.without_label {
            0 => String::new(),
            1 => " (1 item has no label and is its own)".to_owned(),
            count => format!(" ({count} items have no label, each is its own)"),
        };
        let clusters = format!("{} of items{own}", counted(overall.clusters, "cluster"));
        let mut text = match overall.verdict.as_ref().filter(|verdict| verdict.is_exchange()) {
            None if overall.clusters < 2 => "All items are one cluster, and a test needs at least two.".to_owned(),
            None => format!("Intervals and p values are by the t test, robust to {clusters}."),
            Some(verdict) => {
                let how = match verdict.p_error {
                    None => "exact".to_owned(),
                    Some(error) => format!("by Monte Carlo with a standard error of {error:.1e}"),
                };
                format!(
                    "The p value is by {}, {how}, because {}; the interval is {}, which agrees with it. The t test would say {}. There are {clusters}.",
                    verdict.test.name(),
                    verdict.reason.clause(["A", "B"]),
                    verdict.test.interval_name(),
                    overall.cluster_t_p.map_or_else(|| "nothing".to_owned(), p_sentence),
                )
            }
        };
        for (rows, name) in [(&self.tasks, "task"), (&self.perturbations, "perturbation")] {
            let is_other = |row: &&Difference| row.test.is_some() && row.test != overall.test;
            let others: Vec<&Difference> = rows.iter().filter(is_other).collect();
            if others.is_empty() {
                continue;
            }
            let exact = others.iter().filter(|row| row.test != Some(PairedTest::ClusterT)).count();
            let of = counted(rows.len(), name);
            let has = |count: usize| if count == 1 { "has" } else { "have" };
            if exact > 0 {
                text.push_str(&format!(
                    " {exact} of {of} {} an exact test, for want of right or wrong answers or of clusters that differ.",
                    has(exact)
                ));
            }
            if exact < others.len() {
                let count = others.len() - exact;
                text.push_str(&format!(" {count} of {of} {} the t test.", has(count)));
            }
        }
        text
    }

    /// Returns the reasons why a difference need not be the models': settings in which the runs differ, with both values, and prompts.
    pub fn caveats(&self) -> Vec<ComparisonNotice> {
        let runs = || (self.baseline.clone(), self.run.clone());
        let mut caveats = Vec::new();
        if !self.settings.is_empty() {
            let ((baseline, run), settings) = (runs(), self.settings.clone());
            caveats.push(ComparisonNotice::OtherSettings { baseline, run, settings });
        }
        caveats.extend(self.read_alike());
        if self.different_prompts > 0 {
            let ((baseline, run), questions, items) = (runs(), self.different_prompts, self.items);
            caveats.push(ComparisonNotice::OtherPrompts { baseline, run, questions, items });
        }
        caveats
    }

    /// Returns the conclusion of runs whose scorers differ and that have none in common.
    pub fn other_scorers(&self) -> Option<String> {
        let known = self.chosen.iter().all(|scorers| !scorers.is_empty());
        let [mine, theirs] = self.chosen.each_ref().map(|scorers| scorers.join(" and "));
        // Scorers of two tools have different names for one thing; the screen says which they are.
        (known && mine != theirs && !self.of_logs).then(|| {
            format!(
                "The runs have different scorers ({mine} and {theirs}) and none that scored all answers of both, so their difference \
                 of {} says nothing about the models. `earnest score RUN --save --scorer NAME` scores the answers of one of them \
                 again.",
                self.overall.size(self.overall.difference.abs())
            )
        })
    }

    /// Returns the conclusion where a run ends by its answers.
    fn sequential_conclusion(&self, sequential: &Sequential) -> String {
        let Some(estimate) = &sequential.estimate else {
            return "Both runs were ended by their own answers, so no valid interval of their difference can be given."
                .to_owned();
        };
        let span = format!(
            "the 95 % anytime-valid interval of the true difference is {} points (asymptotic)",
            ends((100.0 * estimate.low, 100.0 * estimate.high), 0.0, 1, true).join(" to ")
        );
        if estimate.low <= 0.0 && estimate.high >= 0.0 {
            return format!(
                "These items do not show which of the two is more accurate: a difference of {:+.1} points may be chance; {span}.",
                100.0 * estimate.difference
            );
        }
        let direction = if estimate.difference > 0.0 { "better" } else { "worse" };
        format!(
            "{} is {direction} than {} by {:.1} points on these items, which is unlikely to be chance; {span}.",
            self.run,
            self.baseline,
            100.0 * estimate.difference.abs()
        )
    }
}

/// p values below this are shown as a bound.
const SMALLEST_P: f64 = 0.0001;

/// Formats a p value for a sentence: `p = 0.012`, `p < 0.0001`.
pub fn p_sentence(p: f64) -> String {
    if p < SMALLEST_P { format!("p {}", p_text(p)) } else { format!("p = {}", p_text(p)) }
}

/// Formats a p value with two significant digits.
pub fn p_text(p: f64) -> String {
    if p < SMALLEST_P {
        format!("< {SMALLEST_P}")
    } else if p < 0.1 {
        let digits = (1.0 - p.log10().floor()) as usize;
        p_decimals(p, digits)
    } else {
        format!("{p:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_values_for_people() {
        let texts: Vec<String> = [0.5, 0.049, 0.0012, 0.00001, 1.0, 0.049_6, 0.050_4].map(p_text).to_vec();
        assert_eq!(texts, ["0.50", "0.049", "0.0012", "< 0.0001", "1.00", "0.0496", "0.050"]);
        assert_eq!([0.00001, 0.012].map(p_sentence), ["p < 0.0001", "p = 0.012"]);
    }
}
