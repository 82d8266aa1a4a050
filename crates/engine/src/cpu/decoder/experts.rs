//! The mixture-of-experts feed-forward block (Mixtral).

use super::forward::MlpBuffers;
use super::weights::MlpWeights;
use crate::cpu::kernels::{MatmulScratch, PackedMatrix, Target, matmul};
use crate::cpu::team::Team;
use earnest_models::checkpoint::{DecoderConfig, Experts};

/// Buffers of a mixture.
#[derive(Default)]
pub(crate) struct Routed {
    logits: Vec<f32>,
    /// For each expert: (row, weight) of the tokens it serves.
    served: Vec<Vec<(usize, f32)>>,
    input: Vec<f32>,
    answer: Vec<f32>,
    /// The block's output, `[m, hidden]`.
    pub(crate) out: Vec<f32>,
}

/// Routes each row of `h` to its best experts and sums their weighted answers in the order of the experts.
#[expect(clippy::too_many_arguments, reason = "operands, weights and buffers of a block")]
pub(crate) fn mixture(
    team: &Team,
    c: &DecoderConfig,
    spec: Experts,
    router: &PackedMatrix,
    experts: &[MlpWeights],
    scratch: &mut MatmulScratch,
    mlp: &mut MlpBuffers,
    r: &mut Routed,
    h: &[f32],
) {
    let hidden = c.hidden_size;
    let m = h.len() / hidden;
    r.logits.resize(m * spec.count, 0.0);
    matmul(team, scratch, h, router, None, Target::Overwrite, &mut r.logits);
    r.served.resize_with(spec.count, Vec::new);
    r.served.iter_mut().for_each(Vec::clear);
    for (row, logits) in r.logits.chunks_exact(spec.count).enumerate() {
        for (expert, weight) in route(logits, spec.per_token) {
            r.served[expert].push((row, weight));
        }
    }
    r.out.clear();
    r.out.resize(m * hidden, 0.0);
    for (served, weights) in r.served.iter().zip(experts) {
        if served.is_empty() {
            continue;
        }
        r.input.clear();
        for &(row, _) in served {
            r.input.extend_from_slice(&h[row * hidden..(row + 1) * hidden]);
        }
        r.answer.resize(r.input.len(), 0.0);
        mlp.run(team, c, scratch, weights, &r.input, Target::Overwrite, &mut r.answer);
        for (&(row, weight), answer) in served.iter().zip(r.answer.chunks_exact(hidden)) {
            for (o, &a) in r.out[row * hidden..(row + 1) * hidden].iter_mut().zip(answer) {
                *o += weight * a;
            }
        }
    }
}

/// The `k` best experts of one token (the first on ties), with their softmax weights renormalised to sum 1.
fn route(logits: &[f32], k: usize) -> Vec<(usize, f32)> {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]).then(a.cmp(&b)));
    order.truncate(k);
    let top = logits[order[0]];
    let weights: Vec<f32> = order.iter().map(|&e| libm::expf(logits[e] - top)).collect();
    let total: f32 = weights.iter().sum();
    order.into_iter().zip(weights).map(|(e, w)| (e, w / total)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routing_keeps_the_best_and_sums_to_one() {
        let chosen = route(&[0.0, 3.0, 1.0, 3.0], 2);
        assert_eq!(chosen.iter().map(|c| c.0).collect::<Vec<_>>(), [1, 3]);
        assert!(chosen.iter().all(|c| (c.1 - 0.5).abs() < 1e-6));
    }
}
