//! Mixtures of experts.

use super::feed_forward::MlpBuffers;
use super::weights::ExpertWeights;
use crate::cpu::kernels::{MatmulScratch, Target, matmul, sigmoid};
use crate::cpu::team::Team;
use earnest_models::checkpoint::{DecoderConfig, Experts, Routing};

/// Buffers of a mixture.
#[derive(Default)]
pub(crate) struct Routed {
    logits: Vec<f32>,
    /// For each expert: the tokens it serves.
    served: Vec<Vec<Served>>,
    input: Vec<f32>,
    answer: Vec<f32>,
    /// The mixture's output, `[m, hidden]`.
    pub(crate) out: Vec<f32>,
}

/// A token that an expert serves.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Served {
    row: usize,
    /// Factor on the expert's input.
    input: f32,
    /// Factor on its answer.
    weight: f32,
}

impl Routed {
    /// Routes each row to its best experts, by the router's product with `router_input`, and sums their weighted answers to `h` in the
    /// order of the experts. Only chosen experts are computed.
    #[expect(clippy::too_many_arguments, reason = "operands, weights and buffers of a block")]
    pub(crate) fn run(
        &mut self,
        team: &Team,
        c: &DecoderConfig,
        spec: Experts,
        w: &ExpertWeights,
        scratch: &mut MatmulScratch,
        mlp: &mut MlpBuffers,
        router_input: &[f32],
        h: &[f32],
    ) {
        let hidden = c.hidden_size;
        let m = h.len() / hidden;
        self.logits.resize(m * spec.count, 0.0);
        let bias = w.router_bias.as_deref();
        matmul(team, scratch, router_input, &w.router, bias, Target::Overwrite, &mut self.logits);
        self.served.resize_with(spec.count, Vec::new);
        self.served.iter_mut().for_each(Vec::clear);
        for (row, logits) in self.logits.chunks_exact(spec.count).enumerate() {
            for (expert, weight) in route(logits, &w.choice_bias, spec) {
                let scale = w.beside.as_ref().map_or(1.0, |beside| beside.expert_scale[expert]);
                let (input, weight) = match spec.routing {
                    Routing::ScaledInput => (weight, 1.0),
                    Routing::Softmax { .. } | Routing::Sigmoid { .. } => (1.0, weight * scale),
                };
                self.served[expert].push(Served { row, input, weight });
            }
        }
        self.out.clear();
        self.out.resize(m * hidden, 0.0);
        for (served, weights) in self.served.iter().zip(&w.experts) {
            if served.is_empty() {
                continue;
            }
            self.input.clear();
            for token in served {
                let row = &h[token.row * hidden..(token.row + 1) * hidden];
                self.input.extend(row.iter().map(|x| x * token.input));
            }
            self.answer.resize(self.input.len(), 0.0);
            mlp.run(team, c, scratch, weights, None, &self.input, Target::Overwrite, &mut self.answer);
            for (token, answer) in served.iter().zip(self.answer.chunks_exact(hidden)) {
                let row = token.row;
                for (o, &a) in self.out[row * hidden..(row + 1) * hidden].iter_mut().zip(answer) {
                    *o += token.weight * a;
                }
            }
        }
    }
}

/// The experts of one token, the best first (the first on ties), with their weights.
pub(crate) fn route(logits: &[f32], choice_bias: &[f32], spec: Experts) -> Vec<(usize, f32)> {
    let k = spec.per_token;
    match spec.routing {
        Routing::Softmax { normalised } => {
            let chosen = largest(logits, k, |_| true);
            let top = logits[chosen[0]];
            let weights: Vec<f32> = chosen.iter().map(|&e| libm::expf(logits[e] - top)).collect();
            let total: f32 = match normalised {
                true => weights.iter().sum(),
                false => logits.iter().map(|&l| libm::expf(l - top)).sum(),
            };
            chosen.into_iter().zip(weights).map(|(e, w)| (e, w / total)).collect()
        }
        Routing::ScaledInput => largest(logits, k, |_| true).into_iter().map(|e| (e, sigmoid(logits[e]))).collect(),
        Routing::Sigmoid { groups, kept, normalised, scale } => {
            let scores: Vec<f32> = logits.iter().map(|&l| sigmoid(l)).collect();
            let choice: Vec<f32> = scores.iter().zip(choice_bias).map(|(s, b)| s + b).collect();
            let size = choice.len() / groups;
            let best_two = |group: &[f32]| -> f32 { largest(group, 2, |_| true).into_iter().map(|e| group[e]).sum() };
            let of_groups: Vec<f32> = choice.chunks_exact(size).map(best_two).collect();
            let kept = largest(&of_groups, kept, |_| true);
            let chosen = largest(&choice, k, |e| kept.contains(&(e / size)));
            let total: f32 = match normalised {
                true => chosen.iter().map(|&e| scores[e]).sum::<f32>() + 1e-20,
                false => 1.0,
            };
            chosen.into_iter().map(|e| (e, scores[e] / total * scale)).collect()
        }
    }
}

/// Indices of the `k` largest values among those that `may` be chosen, in descending order; the first on ties.
fn largest(values: &[f32], k: usize, may: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).filter(|i| may(*i)).collect();
    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]).then(a.cmp(&b)));
    order.truncate(k);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(count: usize, per_token: usize, routing: Routing) -> Experts {
        Experts { routing, ..Experts::mixtral(count, per_token, 8) }
    }

    fn weights(chosen: &[(usize, f32)]) -> Vec<f32> {
        chosen.iter().map(|c| c.1).collect()
    }

    #[test]
    fn a_softmax_over_the_chosen_sums_to_one_and_over_all_to_less() {
        let logits = [0.0, 3.0, 1.0, 3.0];
        let chosen = route(&logits, &[], spec(4, 2, Routing::Softmax { normalised: true }));
        assert_eq!(chosen.iter().map(|c| c.0).collect::<Vec<_>>(), [1, 3]);
        assert!(chosen.iter().all(|c| (c.1 - 0.5).abs() < 1e-6));
        let all: f32 = logits.iter().map(|l: &f32| l.exp()).sum();
        let chosen = route(&logits, &[], spec(4, 2, Routing::Softmax { normalised: false }));
        assert!(chosen.iter().all(|c| (c.1 - 3f32.exp() / all).abs() < 1e-6), "{chosen:?}");
        // Every expert, and only one.
        assert_eq!(route(&logits, &[], spec(4, 4, Routing::Softmax { normalised: true })).len(), 4);
        assert_eq!(route(&[7.0], &[], spec(1, 1, Routing::Softmax { normalised: true })), [(0, 1.0)]);
    }

    #[test]
    fn groups_are_kept_by_their_best_two_and_the_bias_is_for_the_choice_only() {
        // Sigmoids of 0.9, 0.1 | 0.6, 0.6 | 0.2, 0.3: the second group has the best two.
        let logit = |p: f32| (p / (1.0 - p)).ln();
        let logits: Vec<f32> = [0.9, 0.1, 0.6, 0.61, 0.2, 0.3].into_iter().map(logit).collect();
        let routing = |kept, normalised| Routing::Sigmoid { groups: 3, kept, normalised, scale: 2.0 };
        let chosen = route(&logits, &[0.0; 6], spec(6, 2, routing(1, true)));
        assert_eq!(chosen.iter().map(|c| c.0).collect::<Vec<_>>(), [3, 2]);
        assert!((weights(&chosen).iter().sum::<f32>() - 2.0).abs() < 1e-5);
        let chosen = route(&logits, &[0.0, 0.0, 0.0, 0.0, 1.0, 1.0], spec(6, 2, routing(2, false)));
        assert_eq!(chosen.iter().map(|c| c.0).collect::<Vec<_>>(), [5, 4]);
        assert!((chosen[0].1 - 0.6).abs() < 1e-5 && (chosen[1].1 - 0.4).abs() < 1e-5, "{chosen:?}");
        let chosen = route(&logits, &[0.0; 6], spec(6, 1, routing(3, false)));
        assert!(chosen[0].0 == 0 && (chosen[0].1 - 1.8).abs() < 1e-5);
    }

    #[test]
    fn scaled_inputs_have_the_sigmoid_of_the_logit() {
        let chosen = route(&[-1.0, 0.5], &[], spec(2, 1, Routing::ScaledInput));
        assert!(chosen[0].0 == 1 && (chosen[0].1 - 0.622_459_3).abs() < 1e-6);
    }
}
