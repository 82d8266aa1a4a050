//! Passes into numbers: medians, their intervals, what lies apart.
use std::collections::BTreeSet;

use super::{Gathered, Latency, LatencyPass, LatencyPrompt, Sample, Spread, beginning};

/// The numbers of one mode at one batch size.
pub(super) fn latency(batch: usize, prompts: &[LatencyPrompt], gathered: &Gathered) -> Latency {
    let samples = prompts.len();
    let seconds: Vec<f64> = gathered.passes.iter().map(|pass| pass.seconds).collect();
    let (total, is_interval) = median_interval(&seconds);
    let mut order: Vec<&LatencyPass> = gathered.passes.iter().collect();
    order.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    // As for the median: of an even number of passes the two in the middle count.
    let middle = [order[(order.len() - 1) / 2], order[order.len() / 2]];
    let middling = |of: &dyn Fn(&LatencyPass) -> f64| middle.iter().map(|pass| of(pass)).sum::<f64>() / 2.0;
    let n = samples as f64;
    let all = |of: &dyn Fn(&Sample) -> f64| -> Vec<f64> { gathered.samples.iter().flatten().map(of).collect() };
    // Of two passes nobody knows which one is the outlier.
    let outlying = |&(_, &one): &(usize, &f64)| seconds.len() > 2 && (one / total.median - 1.0).abs() > 0.1;
    Latency {
        batch,
        samples,
        passes: gathered.passes.clone(),
        seconds_per_sample: Spread { median: total.median / n, low: total.low / n, high: total.high / n },
        is_interval,
        prefill_per_sample: middling(&|pass| pass.prefill_s) / n,
        decode_per_sample: middling(&|pass| pass.decode_s) / n,
        tokens_per_s: middling(&|pass| pass.generated_tokens as f64) / total.median,
        prompt_tokens: prompts.iter().map(|prompt| prompt.ids.len()).sum::<usize>() as f64 / n,
        new_tokens: middling(&|pass| pass.generated_tokens as f64) / n,
        first_token_s: percentiles(all(&|sample| sample.first_token_s)),
        latency_s: percentiles(all(&|sample| sample.latency_s)),
        kv_bytes: gathered.passes.iter().map(|pass| pass.kv_bytes).max().unwrap_or(0),
        peak_memory: gathered.peak_memory,
        outlying_passes: seconds.iter().enumerate().filter(outlying).map(|(index, _)| index + 1).collect(),
        // In a batch a sample's seconds are those of the steps that it shared, whichever question it is.
        slow_questions: if batch == 1 { slow_questions(&gathered.samples) } else { Vec::new() },
    }
}

/// Questions whose tokens take far longer than those of the others. Counted from the first token on, and in the median of at
/// least three passes that begin at different questions: the first one of a pass waits for the beginning that all prompts share
/// and shares its steps with the others' prompts, which is no fault of the question.
fn slow_questions(passes: &[Vec<Sample>]) -> Vec<usize> {
    let questions = passes.first().map_or(0, Vec::len);
    let beginnings: BTreeSet<usize> = (0..passes.len()).map(|pass| beginning(pass, questions)).collect();
    if beginnings.len() < 3 {
        return Vec::new();
    }
    // One token has none after the first.
    let of = |question: usize| {
        let all = passes.iter().filter_map(|pass| pass.get(question));
        let mut found: Vec<f64> = all.filter(|sample| sample.tokens > 1).map(a_token).collect();
        found.sort_by(f64::total_cmp);
        (!found.is_empty()).then(|| (question, quantile(&found, 0.5)))
    };
    let typical: Vec<(usize, f64)> = (0..questions).filter_map(of).collect();
    let mut sorted: Vec<f64> = typical.iter().map(|(_, seconds)| *seconds).collect();
    sorted.sort_by(f64::total_cmp);
    let (first, third) = (quantile(&sorted, 0.25), quantile(&sorted, 0.75));
    // Samples that run in lockstep differ by next to nothing: that alone makes nobody slow.
    let most = (third + 3.0 * (third - first)).max(1.25 * third);
    typical.into_iter().filter(|(_, seconds)| *seconds > most).map(|(question, _)| question).collect()
}

fn a_token(sample: &Sample) -> f64 {
    (sample.latency_s - sample.first_token_s) / sample.tokens.saturating_sub(1).max(1) as f64
}

/// The median and an interval for it from order statistics, which assumes nothing of the distribution: with `n` values, the
/// `k`-th smallest and largest enclose the median with probability `1 - 2 P(Binomial(n, 1/2) < k)`. Fewer than six values
/// cannot reach 95 %; their range is given, and `false`.
fn median_interval(values: &[f64]) -> (Spread, bool) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let median = quantile(&sorted, 0.5);
    let (mut below, mut term, mut k) = (0.0, 0.5f64.powi(n as i32), 0);
    // `term` is P(Binomial = k); the next place inwards is taken while the tails stay within 2.5 % each.
    while k < n / 2 && below + term <= 0.025 {
        below += term;
        term *= (n - k) as f64 / (k + 1) as f64;
        k += 1;
    }
    let index = k.saturating_sub(1);
    (Spread { median, low: sorted[index], high: sorted[n - 1 - index] }, k > 0)
}

fn percentiles(mut values: Vec<f64>) -> Spread {
    values.sort_by(f64::total_cmp);
    Spread { median: quantile(&values, 0.5), low: quantile(&values, 0.05), high: quantile(&values, 0.95) }
}

/// A quantile of ascending values, interpolated linearly; 0 of none.
fn quantile(sorted: &[f64], at: f64) -> f64 {
    if sorted.is_empty() {
        return 0.0;
    }
    let place = at * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_begin_at_different_questions_however_many_there_are() {
        for questions in [7, 32, 256] {
            let all: BTreeSet<usize> = (0..5).map(|repetition| beginning(repetition, questions)).collect();
            assert_eq!((all.len(), all.first()), (5, Some(&0)), "{questions}");
            assert!((0..2000).all(|repetition| beginning(repetition, questions) < questions));
        }
    }

    #[test]
    fn intervals_of_medians() {
        // Binomial(6, 1/2): P(0) = 1/64, twice that leaves 96.9 %; of 5 values nothing leaves 95 %.
        let (spread, interval) = median_interval(&[5.0, 1.0, 4.0, 2.0, 3.0, 9.0]);
        assert_eq!((spread.median, spread.low, spread.high, interval), (3.5, 1.0, 9.0, true));
        let (spread, interval) = median_interval(&[3.0, 1.0, 2.0]);
        assert_eq!((spread.median, spread.low, spread.high, interval), (2.0, 1.0, 3.0, false));
        // Binomial(9, 1/2): P(<= 1) = 10/512 = 1.95 %, P(<= 2) = 9 %: the second smallest and largest.
        let nine: Vec<f64> = (1..=9).map(f64::from).collect();
        let (spread, interval) = median_interval(&nine);
        assert_eq!((spread.median, spread.low, spread.high, interval), (5.0, 2.0, 8.0, true));
        let (spread, interval) = median_interval(&[7.0]);
        assert_eq!((spread.median, spread.low, spread.high, interval), (7.0, 7.0, 7.0, false));
    }

    #[test]
    fn a_question_that_is_slow_in_every_pass_is_named() {
        let sample = |latency_s| Sample { first_token_s: 0.0, latency_s, tokens: 10 };
        let mut pass: Vec<Sample> = (0..20).map(|i| sample(1.0 + 0.01 * f64::from(i))).collect();
        let once = pass.clone();
        pass[7] = sample(9.0);
        // One that only waited for its first token is not.
        pass[3] = Sample { first_token_s: 9.0, latency_s: 10.03, tokens: 10 };
        // Slow in two passes of three: its median is; slow in one of three: it is not.
        assert_eq!(slow_questions(&[pass.clone(), once.clone(), pass.clone()]), [7]);
        assert_eq!(slow_questions(&[once.clone(), pass.clone(), once]), [0usize; 0]);
        // In lockstep a hair is no difference, and one token has none after the first.
        let mut lockstep = vec![sample(1.0); 20];
        lockstep[4] = sample(1.01);
        lockstep[9].tokens = 1;
        assert_eq!(slow_questions(&vec![lockstep; 3]), [0usize; 0]);
        // Of two passes nobody knows whether it is the question or its place.
        assert_eq!(slow_questions(&[pass.clone(), pass]), [0usize; 0]);
    }
}
