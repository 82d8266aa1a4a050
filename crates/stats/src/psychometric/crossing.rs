//! Limits of curves of any shape: intervals by likelihood ratios of curves that never grow, and limits of curves that do grow.
//!
//! An interval from a family of curves is honest as far as the family holds, and models also fail in plateaus and at the boundaries of
//! tokens. The interval of a limit assumes only that success never grows with the length: a length stays in it while some curve that is
//! at least at the level up to that length, and at most beyond, is hardly less likely than the best curve of all (M. Banerjee and J. A. Wellner,
//! Likelihood ratio tests for monotone functions, Annals of Statistics 29 (2001), 1699-1731).
use super::isotonic::{Counted, falling, ln_likelihood, pools};

/// Twice the logarithm of the likelihood ratio up to which a length stays in an interval. Lengths are chosen by the answers and answers are few, so no
/// limit distribution holds: this is the value at which intervals cover plateaus, steps and cuts (`psychometric_coverage`).
const RATIO: f64 = 3.3;

/// Length at which a curve falls through a share, with its 95 % interval: 0 is below the shortest length, infinity beyond the longest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crossing {
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
}

/// Crossing of a share by a curve that never grows, from counts by ascending length within a range of lengths. The estimate is that of the best such
/// curve, interpolated in the logarithm of the length.
pub fn crossing(counts: &[Counted], share: f64, range: (usize, usize)) -> Crossing {
    let fitted = falling(counts);
    let best = ln_likelihood(counts, &fitted);
    // The best curve within bounds is the best one without them, cut off there.
    let bounded = |part: &[Counted], least: f64, most: f64| {
        let shares: Vec<f64> = falling(part).into_iter().map(|one| one.clamp(least, most)).collect();
        ln_likelihood(part, &shares)
    };
    let is_likely = |&above: &usize| {
        let (shorter, longer) = counts.split_at(above);
        2.0 * (best - bounded(shorter, share, 1.0) - bounded(longer, 0.0, share)) <= RATIO
    };
    let likely: Vec<usize> = (0..=counts.len()).filter(is_likely).collect();
    let low = least(counts, likely.first().copied().unwrap_or(0), range);
    let high = greatest(counts, likely.last().copied().unwrap_or(counts.len()), range);
    let above = fitted.partition_point(|&one| one >= share);
    let estimate = match (counts[..above].last(), counts.get(above)) {
        (Some(last), Some(next)) => {
            let (last, next) = (last.length as f64, next.length as f64);
            let part = (fitted[above - 1] - share) / (fitted[above - 1] - fitted[above]);
            last * libm::pow(next / last, part)
        }
        (None, _) => 0.0,
        (_, None) => f64::INFINITY,
    };
    Crossing { estimate: estimate.clamp(low, high), low, high }
}

/// Least crossing of a curve that is above the share at the first so many lengths.
fn least(counts: &[Counted], above: usize, range: (usize, usize)) -> f64 {
    match counts[..above].last() {
        None => 0.0,
        Some(last) if last.length >= range.1 => f64::INFINITY,
        Some(last) => last.length as f64,
    }
}

/// Greatest crossing of a curve that is above the share at the first so many lengths and no further.
fn greatest(counts: &[Counted], above: usize, range: (usize, usize)) -> f64 {
    match counts.get(above) {
        None => f64::INFINITY,
        Some(next) if next.length <= range.0 => 0.0,
        Some(next) => next.length as f64,
    }
}

/// Length beyond which a curve of any shape stays below a share: the shortest one at which it falls through for good, infinity if it is above it at the
/// longest lengths. Neighbouring lengths are pooled until each pool has some answers; the interval has the pools that may be the last one above.
pub fn for_good(counts: &[Counted], share: f64, range: (usize, usize)) -> Crossing {
    let pools = pools(counts);
    // What it costs a pool to be above the share, or below.
    let cost = |pool: &[Counted], is_kept: &dyn Fn(f64) -> bool| {
        let right: usize = pool.iter().map(|one| one.right).sum();
        let asked: usize = pool.iter().map(|one| one.asked).sum();
        let one = [Counted { length: 0, right, asked }];
        let own = right as f64 / asked as f64;
        if is_kept(own) { 0.0 } else { 2.0 * (ln_likelihood(&one, &[own]) - ln_likelihood(&one, &[share])) }
    };
    let above: Vec<f64> = pools.iter().map(|pool| cost(pool, &|own| own >= share)).collect();
    let below: Vec<f64> = pools.iter().map(|pool| cost(pool, &|own| own < share)).collect();
    let statistic = |last: usize| {
        let of_last = last.checked_sub(1).map_or(0.0, |index| above[index]);
        of_last + below[last..].iter().sum::<f64>()
    };
    let likely: Vec<usize> = (0..=pools.len()).filter(|&last| statistic(last) <= RATIO).collect();
    let (fewest, most) = (likely.first().copied().unwrap_or(0), likely.last().copied().unwrap_or(pools.len()));
    let low = match fewest.checked_sub(1).and_then(|index| pools[index].first()) {
        // A pool that is above may be so at its first length alone.
        Some(first) => first.length as f64,
        None => 0.0,
    };
    let high = match pools.get(most).and_then(|pool| pool.last()) {
        Some(last) if last.length <= range.0 => 0.0,
        Some(last) => last.length as f64,
        None => f64::INFINITY,
    };
    let last = above.iter().rposition(|&cost| cost == 0.0).map_or(0, |index| index + 1);
    let estimate = match (pools[..last].last().and_then(|pool| pool.last()), pools.get(last)) {
        (None, _) => 0.0,
        (_, None) => f64::INFINITY,
        (Some(before), Some(next)) => libm::sqrt(before.length as f64 * next[0].length as f64),
    };
    Crossing { estimate: estimate.clamp(low, high), low, high }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: (usize, usize) = (1, 20);

    fn counts(of: &[(usize, usize, usize)]) -> Vec<Counted> {
        of.iter().map(|&(length, right, asked)| Counted { length, right, asked }).collect()
    }

    fn ends(crossing: Crossing) -> (f64, f64) {
        (crossing.low, crossing.high)
    }

    #[test]
    fn a_cut_lies_between_the_lengths_beside_it() {
        let found = crossing(&counts(&[(2, 6, 6), (5, 6, 6), (6, 0, 6), (9, 0, 6)]), 0.5, RANGE);
        assert_eq!(ends(found), (5.0, 6.0));
        assert!((found.estimate - 30_f64.sqrt()).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn two_answers_exclude_no_length_and_three_do() {
        // 2 n ln 2 is 2.8 for two wrong answers and 4.2 for three.
        assert_eq!(ends(crossing(&counts(&[(3, 9, 9), (5, 0, 2), (8, 0, 9)]), 0.5, RANGE)), (3.0, 8.0));
        assert_eq!(ends(crossing(&counts(&[(3, 9, 9), (5, 0, 3), (8, 0, 9)]), 0.5, RANGE)), (3.0, 5.0));
    }

    #[test]
    fn a_plateau_at_the_level_is_in_the_interval() {
        let plateau = counts(&[(2, 8, 8), (3, 16, 16), (5, 4, 8), (9, 4, 8), (12, 4, 8), (13, 0, 20)]);
        assert_eq!(ends(crossing(&plateau, 0.5, RANGE)), (3.0, 13.0));
        // Of 90 % it is the end of what is right, of 10 % that of the plateau.
        assert_eq!(ends(crossing(&plateau, 0.9, RANGE)), (3.0, 5.0));
        assert_eq!(ends(crossing(&plateau, 0.1, RANGE)), (12.0, 13.0));
    }

    #[test]
    fn limits_outside_the_range_are_said() {
        assert_eq!(crossing(&counts(&[(1, 0, 9)]), 0.5, RANGE), Crossing { estimate: 0.0, low: 0.0, high: 0.0 });
        // Length 1 was not asked: the limit may be there.
        assert_eq!(ends(crossing(&counts(&[(2, 0, 9)]), 0.5, RANGE)), (0.0, 2.0));
        let all = crossing(&counts(&[(12, 9, 9), (20, 9, 9)]), 0.5, RANGE);
        assert_eq!((all.estimate, all.low), (f64::INFINITY, f64::INFINITY));
        assert_eq!(ends(crossing(&counts(&[(19, 9, 9)]), 0.5, RANGE)), (19.0, f64::INFINITY));
        assert_eq!(ends(crossing(&[], 0.5, RANGE)), (0.0, f64::INFINITY));
    }

    #[test]
    fn intervals_of_higher_levels_are_not_longer() {
        let noisy = counts(&[(1, 5, 6), (2, 6, 6), (4, 3, 6), (5, 4, 6), (8, 1, 5), (12, 2, 6), (20, 0, 6)]);
        let found: Vec<Crossing> = [0.9, 0.7, 0.5, 0.3, 0.1].map(|share| crossing(&noisy, share, RANGE)).to_vec();
        for pair in found.windows(2) {
            assert!(pair[0].low <= pair[1].low && pair[0].high <= pair[1].high, "{found:?}");
            assert!(pair[0].estimate <= pair[1].estimate, "{found:?}");
        }
    }

    #[test]
    fn what_grows_again_falls_for_good_at_its_last_end() {
        let dip = counts(&[(1, 6, 6), (3, 6, 6), (5, 0, 6), (7, 0, 6), (9, 6, 6), (11, 6, 6), (14, 0, 6), (18, 0, 6)]);
        let found = for_good(&dip, 0.5, RANGE);
        assert_eq!(ends(found), (11.0, 14.0));
        assert!(found.estimate > 11.0 && found.estimate < 14.0);
        // The monotone curve would have said another length.
        assert!(crossing(&dip, 0.5, RANGE).low < 11.0);
    }

    #[test]
    fn what_rises_never_falls_for_good() {
        let rising = counts(&[(1, 0, 6), (5, 0, 6), (12, 6, 6), (18, 6, 6)]);
        assert_eq!(for_good(&rising, 0.5, RANGE), Crossing { estimate: f64::INFINITY, low: 18.0, high: f64::INFINITY });
        let never = for_good(&counts(&[(1, 0, 6), (5, 2, 6), (12, 0, 6)]), 0.9, RANGE);
        assert_eq!(never, Crossing { estimate: 0.0, low: 0.0, high: 0.0 });
    }

    #[test]
    fn single_slips_are_pooled_with_their_neighbours() {
        let slip = counts(&[(1, 0, 6), (3, 6, 6), (5, 0, 6), (7, 1, 1), (9, 0, 7), (14, 0, 4), (15, 0, 2), (18, 0, 1)]);
        let found = for_good(&slip, 0.5, RANGE);
        assert!(found.low <= 3.0 && found.high < 10.0 && found.estimate < 5.0, "{found:?}");
        assert_eq!(pools(&slip).iter().map(|pool| pool.len()).collect::<Vec<_>>(), [1, 1, 1, 2, 3]);
    }
}
