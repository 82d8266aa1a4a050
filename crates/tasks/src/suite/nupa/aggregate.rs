//! Length ranges and digit limits (sections 2.3 and A.3), and the reference program's own averages.
use std::collections::BTreeMap;

/// A range of lengths (figure 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LengthRange {
    /// 1 to 4, or 1 to 10 digits.
    S,
    /// 5 to 8, or 11 to 20.
    M,
    /// 9 to 14, or 21 to 60.
    L,
    /// 15 to 20, or 61 to 100.
    XL,
}

impl LengthRange {
    /// All four, short to long.
    pub const ALL: [LengthRange; 4] = [LengthRange::S, LengthRange::M, LengthRange::L, LengthRange::XL];

    /// The last length of each range: 4, 8, 14, 20 of tasks up to 20 digits; 10, 20, 60, 100 of tasks up to 100.
    pub fn last(self, longest: usize) -> usize {
        let ends = if longest <= 20 { [4, 8, 14, 20] } else { [10, 20, 60, 100] };
        ends[self as usize]
    }

    /// The range of a length, or none beyond the longest.
    pub fn of(length: usize, longest: usize) -> Option<Self> {
        Self::ALL.into_iter().find(|range| length <= range.last(longest))
    }

    /// `S`, `M`, `L`, `XL`.
    pub fn name(self) -> &'static str {
        ["S", "M", "L", "XL"][self as usize]
    }

    /// True for the lengths that models fine-tuned on the suite have seen in training (S and M).
    pub fn is_in_domain(self) -> bool {
        self <= LengthRange::M
    }
}

/// A metric of the paper (section 2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MetricName {
    /// The share of answers that are identical to the truth.
    ExactMatch,
    /// The share of the truth's digits that are right.
    DigitMatch,
    /// The difference in digits between answer and truth.
    Dlength,
}

impl MetricName {
    /// All three.
    pub const ALL: [MetricName; 3] = [MetricName::ExactMatch, MetricName::DigitMatch, MetricName::Dlength];

    /// The name in results.
    pub fn name(self) -> &'static str {
        ["exact_match", "digit_match", "dlength"][self as usize]
    }

    /// True if a mean passes the threshold of a digit limit (inclusive; for dlength smaller is better).
    pub fn passes(self, limit: DigitLimit, mean: f64) -> bool {
        match (self, limit) {
            (MetricName::ExactMatch | MetricName::DigitMatch, DigitLimit::WellLearned) => mean >= 0.9,
            (MetricName::ExactMatch, DigitLimit::PerformancePreserving) => mean >= 0.1,
            (MetricName::DigitMatch, DigitLimit::PerformancePreserving) => mean >= 0.5,
            (MetricName::Dlength, DigitLimit::WellLearned) => mean <= 0.1,
            (MetricName::Dlength, DigitLimit::PerformancePreserving) => mean <= 1.0,
        }
    }
}

/// Up to how many digits a model copes (Tables 7 to 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DigitLimit {
    /// Exact or digit match of at least 0.9, dlength of at most 0.1.
    WellLearned,
    /// Exact match of at least 0.1, digit match of at least 0.5, dlength of at most 1.
    PerformancePreserving,
}

impl DigitLimit {
    /// Both.
    pub const ALL: [DigitLimit; 2] = [DigitLimit::WellLearned, DigitLimit::PerformancePreserving];

    /// The name in results.
    pub fn name(self) -> &'static str {
        ["well_learned", "performance_preserving"][self as usize]
    }
}

/// Treatment of a dip by a digit limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitRule {
    /// The largest length that passes, whatever shorter ones do: the published rule, biased upward.
    Published,
    /// The largest length up to which every tested length passes.
    Contiguous,
}

/// The digit limit of (length, mean) pairs in ascending order of length; 0 if there is none.
pub fn digit_limit(metric: MetricName, limit: DigitLimit, rule: LimitRule, means: &[(usize, f64)]) -> usize {
    let passing = |&&(_, mean): &&(usize, f64)| metric.passes(limit, mean);
    let last = match rule {
        LimitRule::Published => means.iter().rev().find(passing),
        LimitRule::Contiguous => means.iter().take_while(passing).last(),
    };
    last.map_or(0, |&(length, _)| length)
}

/// One scored item.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Record {
    /// Digits of the question.
    pub length: usize,
    /// 0 or 1.
    pub exact_match: f64,
    /// 0 to 1.
    pub digit_match: f64,
    /// Digits.
    pub dlength: f64,
}

impl Record {
    pub fn value(&self, metric: MetricName) -> f64 {
        match metric {
            MetricName::ExactMatch => self.exact_match,
            MetricName::DigitMatch => self.digit_match,
            MetricName::Dlength => self.dlength,
        }
    }
}

/// Error of averages that the reference does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AggregateError {
    /// The longest length belongs to neither scheme.
    #[error("the longest length is {0}; the reference averages only tasks that reach 20 (or 21) or 100 digits")]
    UnknownScheme(usize),
    /// A range has no item.
    #[error("no item has a length in range {0}; the reference needs all four ranges")]
    EmptyRange(&'static str),
}

/// The reference's statistics of one metric of one task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReferenceStatistics {
    /// Digits, 0 for none.
    pub well_learned_digit: usize,
    /// Digits of the performance-preserving limit, 0 for none.
    pub has_performance_digit: usize,
    /// Mean over S and M.
    pub in_domain: f64,
    /// Mean over L and XL.
    pub out_domain: f64,
    /// S, M, L, XL.
    pub ranges: [f64; 4],
}

/// The reference's averages of `metric`: per-item means over ranges, lengths above 20 left out of 20-digit ranges.
///
/// # Errors
/// [`AggregateError`] where the reference stops.
pub fn reference_statistics(metric: MetricName, records: &[Record]) -> Result<ReferenceStatistics, AggregateError> {
    let mut by_length: BTreeMap<usize, (f64, usize)> = BTreeMap::new();
    for record in records {
        let (sum, count) = by_length.entry(record.length).or_insert((0.0, 0));
        *sum += record.value(metric);
        *count += 1;
    }
    let longest = match by_length.keys().next_back().copied().unwrap_or(0) {
        20 | 21 => 20,
        100 => 100,
        other => return Err(AggregateError::UnknownScheme(other)),
    };
    let mut totals = [(0.0, 0usize); 4];
    for (&length, &(sum, count)) in &by_length {
        if let Some(range) = LengthRange::of(length, longest) {
            let total = &mut totals[range as usize];
            *total = (total.0 + sum, total.1 + count);
        }
    }
    if let Some(range) = LengthRange::ALL.into_iter().find(|&range| totals[range as usize].1 == 0) {
        return Err(AggregateError::EmptyRange(range.name()));
    }
    let mean = |(sum, count): (f64, usize)| sum / count as f64;
    let joined = |a: (f64, usize), b: (f64, usize)| mean((a.0 + b.0, a.1 + b.1));
    let means: Vec<(usize, f64)> =
        by_length.iter().map(|(&length, &(sum, count))| (length, sum / count as f64)).collect();
    let limit = |limit| digit_limit(metric, limit, LimitRule::Published, &means);
    Ok(ReferenceStatistics {
        well_learned_digit: limit(DigitLimit::WellLearned),
        has_performance_digit: limit(DigitLimit::PerformancePreserving),
        in_domain: joined(totals[0], totals[1]),
        out_domain: joined(totals[2], totals[3]),
        ranges: totals.map(mean),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_both_schemes() {
        let of = |length, longest| LengthRange::of(length, longest).map(LengthRange::name);
        assert_eq!([1, 4, 5, 8, 9, 14, 15, 20].map(|l| of(l, 20).unwrap()), ["S", "S", "M", "M", "L", "L", "XL", "XL"]);
        assert_eq!([10, 11, 60, 61, 100].map(|l| of(l, 100).unwrap()), ["S", "M", "L", "XL", "XL"]);
        assert_eq!((of(21, 20), of(101, 100)), (None, None));
    }

    #[test]
    fn a_dip_separates_the_two_rules() {
        let means = [(1, 1.0), (2, 0.95), (3, 0.2), (4, 0.9)];
        let limit = |rule| digit_limit(MetricName::ExactMatch, DigitLimit::WellLearned, rule, &means);
        assert_eq!((limit(LimitRule::Published), limit(LimitRule::Contiguous)), (4, 2));
        assert_eq!(digit_limit(MetricName::Dlength, DigitLimit::WellLearned, LimitRule::Contiguous, &[(1, 0.5)]), 0);
    }
}
