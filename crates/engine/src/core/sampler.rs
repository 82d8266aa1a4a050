//! Sampling of the next token from logits.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::backend::Sampled;
use super::step::SamplingMetadata;
use crate::cpu::kernels::{self, Isa, exponentials};
use crate::{Sampling, SamplingKey, TokenLogprobs};

/// A sampled token and, if asked for, log-probabilities.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SampledToken {
    pub(crate) token: u32,
    pub(crate) logprobs: Option<TokenLogprobs>,
}

/// Samples token number `step` of a request, or None if a logit is not a number.
///
/// The random number depends on the key and the step only, so a text never depends on what else was in flight.
/// `seen` are prompt and generated tokens, for the repetition penalty; `top` asks for log-probabilities.
pub(crate) fn sample(
    isa: Isa,
    logits: &[f32],
    seen: &[u32],
    sampling: &Sampling,
    key: SamplingKey,
    step: u64,
    top: usize,
) -> Option<SampledToken> {
    let best = argmax(isa, logits)?;
    let token = if sampling.repetition_penalty == 1.0 {
        pick(isa, logits, best, sampling, key, step)
    } else {
        let mut penalised = logits.to_vec();
        let mut seen = seen.to_vec();
        seen.sort_unstable();
        seen.dedup();
        for id in seen {
            let l = &mut penalised[id as usize];
            *l = if *l < 0.0 { *l * sampling.repetition_penalty } else { *l / sampling.repetition_penalty };
        }
        let best = argmax(isa, &penalised)?;
        pick(isa, &penalised, best, sampling, key, step)
    };
    let logprobs = (top > 0).then(|| logprobs_of(logits, best, token, top));
    Some(SampledToken { token, logprobs })
}

/// Computes what a row's metadata asks for from its logits `[vocab]`; `seen` are the sequence's tokens so far.
pub(crate) fn sample_row(isa: Isa, row: &SamplingMetadata, seen: &[u32], logits: &[f32]) -> Sampled {
    let mut result = Sampled::default();
    if let Some(target) = row.target {
        result.target = logprobs(isa, logits, target, row.top_logprobs);
        result.not_finite |= result.target.is_none();
    }
    if row.sampled {
        let choice = sample(isa, logits, seen, &row.sampling, row.key, row.index, row.top_logprobs);
        result.not_finite |= choice.is_none();
        (result.token, result.logprobs) = choice.map_or((None, None), |c| (Some(c.token), c.logprobs));
        result.logits_hash = row.hash.then(|| fnv1a(logits));
    }
    result
}

/// FNV-1a over the bits of the logits.
fn fnv1a(logits: &[f32]) -> u64 {
    logits.iter().fold(0xcbf2_9ce4_8422_2325, |h, l| (h ^ u64::from(l.to_bits())).wrapping_mul(0x0100_0000_01b3))
}

/// Log-probabilities of `token` and of the `top` most probable ones, or None if a logit is not a number.
pub(crate) fn logprobs(isa: Isa, logits: &[f32], token: u32, top: usize) -> Option<TokenLogprobs> {
    Some(logprobs_of(logits, argmax(isa, logits)?, token, top))
}

fn logprobs_of(logits: &[f32], best: u32, token: u32, top: usize) -> TokenLogprobs {
    let normaliser = log_sum_exp(logits, logits[best as usize]);
    let of = |id: u32| (f64::from(logits[id as usize]) - normaliser) as f32;
    let ids = if top == 1 { vec![best] } else { largest(logits, top) };
    TokenLogprobs { chosen: of(token), top: ids.into_iter().map(|id| (id, of(id))).collect() }
}

/// The largest logit's id, the smallest one on ties; None if a logit is not a number or infinite upwards.
fn argmax(isa: Isa, logits: &[f32]) -> Option<u32> {
    kernels::largest(isa, logits).map(|index| index as u32)
}

fn log_sum_exp(logits: &[f32], top: f32) -> f64 {
    let top = f64::from(top);
    top + libm::log(logits.iter().map(|&l| libm::exp(f64::from(l) - top)).sum())
}

/// Ids of the `n` largest logits, best first, smaller ids first on ties.
fn largest(logits: &[f32], n: usize) -> Vec<u32> {
    let better = |a: &u32, b: &u32| logits[*b as usize].total_cmp(&logits[*a as usize]).then(a.cmp(b));
    let mut ids: Vec<u32> = (0..logits.len() as u32).collect();
    let n = n.min(ids.len());
    if n < ids.len() && n > 0 {
        ids.select_nth_unstable_by(n - 1, better);
    }
    ids.truncate(n);
    ids.sort_unstable_by(better);
    ids
}

fn pick(isa: Isa, logits: &[f32], best: u32, sampling: &Sampling, key: SamplingKey, step: u64) -> u32 {
    if sampling.is_greedy() || sampling.top_k == 1 {
        return best;
    }
    let candidates = filter(isa, logits, best, sampling);
    let total = mass(&candidates);
    let mut target = uniform(key, step) * total;
    for &(id, weight) in &candidates {
        target -= f64::from(weight);
        if target < 0.0 {
            return id;
        }
    }
    // Rounding can leave a sliver beyond the last candidate.
    candidates.last().map_or(best, |c| c.0)
}

fn mass(candidates: &[(u32, f32)]) -> f64 {
    candidates.iter().map(|c| f64::from(c.1)).sum()
}

/// Tokens that may be drawn with their unnormalised probabilities (the most probable one's is 1). The order is fixed:
/// ascending ids, or descending probability once a filter had to sort.
fn filter(isa: Isa, logits: &[f32], best: u32, sampling: &Sampling) -> Vec<(u32, f32)> {
    let mut weights = vec![0f32; logits.len()];
    exponentials(isa, logits, logits[best as usize], sampling.temperature, &mut weights);
    let all = (0u32..).zip(weights);
    let mut candidates: Vec<(u32, f32)> = if sampling.top_k > 0 && sampling.top_k < logits.len() {
        // Like the reference implementation: everything at least as large as the k-th largest stays.
        let kept = largest(logits, sampling.top_k);
        let bound = kept.last().map_or(f32::NEG_INFINITY, |&id| logits[id as usize]);
        all.filter(|&(id, _)| logits[id as usize] >= bound).collect()
    } else {
        all.collect()
    };
    if sampling.top_p < 1.0 {
        keep_most_probable(&mut candidates, f64::from(sampling.top_p));
    }
    if sampling.min_p > 0.0 {
        candidates.retain(|c| c.1 >= sampling.min_p);
    }
    candidates
}

/// Keeps the smallest set of candidates with at least the share `top_p` of the mass, most probable first.
fn keep_most_probable(candidates: &mut Vec<(u32, f32)>, top_p: f64) {
    let better = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    let goal = top_p * mass(candidates);
    // The set is small as a rule: sorting the whole vocabulary for it would cost more than the model's step.
    let mut sorted = 64;
    loop {
        sorted = (sorted * 4).min(candidates.len());
        if sorted < candidates.len() {
            candidates.select_nth_unstable_by(sorted - 1, better);
        }
        candidates[..sorted].sort_unstable_by(better);
        let mut sum = 0.0;
        let reached = candidates[..sorted].iter().position(|c| {
            sum += f64::from(c.1);
            sum >= goal
        });
        if let Some(last) = reached {
            candidates.truncate(last + 1);
            return;
        }
        if sorted == candidates.len() {
            return;
        }
    }
}

/// Number `step` of a key's sequence, in 0..1.
pub(crate) fn uniform(key: SamplingKey, step: u64) -> f64 {
    let mut rng = ChaCha8Rng::from_seed(key.0);
    rng.set_word_pos(2 * u128::from(step));
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: SamplingKey = SamplingKey([7; 32]);

    fn sampled(temperature: f32) -> Sampling {
        Sampling { temperature, ..Sampling::GREEDY }
    }

    fn token(logits: &[f32], s: &Sampling, step: u64) -> u32 {
        sample(Isa::detect(), logits, &[], s, KEY, step, 0).unwrap().token
    }

    #[test]
    fn greedy_takes_the_first_of_the_largest() {
        assert_eq!(token(&[1.0, 3.0, 3.0, f32::NEG_INFINITY], &Sampling::GREEDY, 0), 1);
    }

    #[test]
    fn logits_that_are_not_numbers_are_refused() {
        for bad in [f32::NAN, f32::INFINITY] {
            assert_eq!(sample(Isa::detect(), &[0.0, bad, 1.0], &[], &Sampling::GREEDY, KEY, 0, 0), None);
        }
        assert_eq!(sample(Isa::detect(), &[f32::NAN; 3], &[], &sampled(1.0), KEY, 0, 3), None);
    }

    #[test]
    fn draws_follow_the_distribution_and_repeat_exactly() {
        let logits = [0.0f32, 1.0, 2.0, -1.0];
        let weights: Vec<f64> = logits.iter().map(|&l| f64::from(l / 0.8).exp()).collect();
        let total: f64 = weights.iter().sum();
        let mut counts = [0f64; 4];
        for step in 0..20_000 {
            let t = token(&logits, &sampled(0.8), step);
            assert_eq!(t, token(&logits, &sampled(0.8), step));
            counts[t as usize] += 1.0;
        }
        let chi2: f64 = (0..4)
            .map(|i| {
                let e = 20_000.0 * weights[i] / total;
                (counts[i] - e).powi(2) / e
            })
            .sum();
        assert!(chi2 < 16.3, "chi-squared {chi2} with 3 degrees of freedom, {counts:?}");
    }

    #[test]
    fn filters_keep_what_the_reference_implementation_keeps() {
        let logits: Vec<f32> = [0.5f64, 0.25, 0.15, 0.1].iter().map(|p| p.ln() as f32).collect();
        let kept = |s: Sampling| {
            let mut ids: Vec<u32> = filter(Isa::detect(), &logits, 0, &s).iter().map(|c| c.0).collect();
            ids.sort_unstable();
            ids
        };
        let one = sampled(1.0);
        assert_eq!(kept(one.clone()), [0, 1, 2, 3]);
        assert_eq!(kept(Sampling { top_k: 2, ..one.clone() }), [0, 1]);
        assert_eq!(kept(Sampling { top_p: 0.7, ..one.clone() }), [0, 1]);
        assert_eq!(kept(Sampling { top_p: 0.8, ..one.clone() }), [0, 1, 2]);
        assert_eq!(kept(Sampling { top_p: 0.01, ..one.clone() }), [0]);
        assert_eq!(kept(Sampling { min_p: 0.4, ..one.clone() }), [0, 1]);
        assert_eq!(kept(Sampling { min_p: 0.25, top_k: 3, ..one }), [0, 1, 2]);
        let tied = [1.0f32, 2.0, 2.0, 2.0];
        assert_eq!(filter(Isa::detect(), &tied, 1, &Sampling { top_k: 2, ..sampled(1.0) }).len(), 3);
    }

    #[test]
    fn the_most_probable_set_is_the_same_however_much_is_sorted() {
        let logits: Vec<f32> = (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 20) as f32 / 900.0).collect();
        for top_p in [0.1, 0.5, 0.9, 0.999, 0.999_999] {
            let s = Sampling { top_p, ..sampled(1.0) };
            let best = argmax(Isa::detect(), &logits).unwrap();
            let got = filter(Isa::detect(), &logits, best, &s);
            let mut expected = filter(Isa::detect(), &logits, best, &sampled(1.0));
            let goal = f64::from(top_p) * mass(&expected);
            expected.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            let mut sum = 0.0;
            let n = expected
                .iter()
                .take_while(|c| {
                    let more = sum < goal;
                    sum += f64::from(c.1);
                    more
                })
                .count();
            assert_eq!(got, expected[..n], "{top_p}");
        }
    }

    #[test]
    fn a_penalty_divides_positive_and_multiplies_negative_logits_once() {
        let s = Sampling { repetition_penalty: 2.0, ..Sampling::GREEDY };
        assert_eq!(sample(Isa::detect(), &[3.0, 2.0, 1.0], &[0, 0, 0], &s, KEY, 0, 0).unwrap().token, 1);
        assert_eq!(sample(Isa::detect(), &[-1.0, -1.5, -4.0], &[0], &s, KEY, 0, 0).unwrap().token, 1);
    }

    #[test]
    fn log_probabilities_are_of_the_whole_distribution() {
        let logits: Vec<f32> = [0.7f64, 0.1, 0.2].iter().map(|p| p.ln() as f32 + 3.0).collect();
        let c = sample(Isa::detect(), &logits, &[], &sampled(0.1), KEY, 0, 2).unwrap().logprobs.unwrap();
        assert!((c.top[0].1 - 0.7f32.ln()).abs() < 1e-6 && (c.top[1].1 - 0.2f32.ln()).abs() < 1e-6);
        assert_eq!((c.top[0].0, c.top[1].0), (0, 2));
        assert!((logprobs(Isa::detect(), &logits, 1, 0).unwrap().chosen - 0.1f32.ln()).abs() < 1e-6);
    }
}
