//! A layer's mixture of experts: routing, and products of the chosen experts alone.
//!
//! Which experts a token has is known to the device only, so nothing here depends on it: pairs of a token and an expert are sorted there
//! by expert, and the products are launched for as many tiles of rows as there can be at most.

use super::device::{Address, DeviceError, Out};
use super::executor::Executor;
use super::memory::{MixtureBuffers, most_tiles};
use super::products::SortedRows;
use super::weights::ExpertWeights;
use earnest_models::checkpoint::{Experts, Routing};

impl Executor {
    /// Writes the experts' answers to the `m` rows of `h`, or adds them, to `to`.
    ///
    /// # Safety
    /// The buffers hold `m` rows.
    pub(super) unsafe fn mixture(
        &self,
        w: &ExpertWeights,
        m: usize,
        to: Address,
        add: bool,
    ) -> Result<(), DeviceError> {
        let (Some(spec), Some(b)) = (self.config.experts, self.buffers.mixture) else { return Ok(()) };
        let row = self.config.hidden_size as u64;
        for first in (0..m).step_by(b.tokens) {
            let tokens = b.tokens.min(m - first);
            let h = self.buffers.h + first as u64 * row * self.weights.element.size_bytes();
            let to = to + first as u64 * row * 4;
            // SAFETY: by the caller; the mixture's own buffers hold as many tokens.
            unsafe { self.mixture_of(w, &spec, &b, tokens, h, to, add)? };
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "weights, buffers and operands of a block")]
    unsafe fn mixture_of(
        &self,
        w: &ExpertWeights,
        spec: &Experts,
        b: &MixtureBuffers,
        tokens: usize,
        h: Address,
        to: Address,
        add: bool,
    ) -> Result<(), DeviceError> {
        let (c, d, k) = (&self.config, &*self.device, &self.kernels);
        let pairs = tokens * spec.per_token;
        let (hidden, inner) = (c.hidden_size, spec.intermediate_size);
        let [count, kept] = [spec.count, spec.per_token].map(|n| n as i32);
        let (kind, normalised, groups, kept_groups, scale) = match spec.routing {
            Routing::Softmax { normalised } => (0, normalised, 1, 1, 1.0),
            Routing::Sigmoid { groups, kept, normalised, scale } => (1, normalised, groups as i32, kept as i32, scale),
            Routing::ScaledInput => (2, false, 1, 1, 1.0),
        };
        let route = [
            b.logits.into(),
            w.router_bias.into(),
            w.choice_bias.into(),
            count.into(),
            kept.into(),
            kind.into(),
            i32::from(normalised).into(),
            groups.into(),
            kept_groups.into(),
            scale.into(),
            b.chosen.into(),
            b.weights.into(),
        ];
        let sort = [b.chosen.into(), (pairs as i32).into(), b.starts.into(), b.order.into(), b.places.into()];
        let tile = self.products.expert_tile(pairs, spec.count)?;
        let most = most_tiles(pairs, spec.count, tile);
        let tiles = [b.starts.into(), count.into(), (tile as i32).into(), (most as i32).into(), b.tiles.into()];
        let by_token =
            SortedRows { rows: pairs, tiles: b.tiles, most_tiles: most, order: b.order, per_token: spec.per_token };
        let by_row = SortedRows { order: 0, per_token: 1, ..by_token };
        // Where the input of an expert is scaled, the answer is not.
        let (scales, weights) = if kind == 2 { (b.weights, 0) } else { (0, b.weights) };
        let [activation, alpha, limit] = self.activation();
        let activate = [
            b.up.into(),
            w.mlp.gate_up_bias.into(),
            scales.into(),
            b.order.into(),
            b.chosen.into(),
            activation,
            alpha,
            limit,
            i32::from(c.gated).into(),
            (inner as i32).into(),
            b.inner.into(),
        ];
        let combine = [
            b.answers.into(),
            w.mlp.down_bias.into(),
            b.places.into(),
            b.chosen.into(),
            weights.into(),
            kept.into(),
            (hidden as i32).into(),
            i32::from(add).into(),
            to.into(),
        ];
        // SAFETY: by the caller; every list has as many entries as the kernels are told.
        unsafe {
            self.products.run(d, &w.router, h, tokens, b.logits, Out::Floats)?;
            d.launch(k.route, [tokens, 1, 1], 32, 0, &route)?;
            d.launch(k.sort_pairs, [spec.count, 1, 1], 256, 0, &sort)?;
            d.launch(k.expert_tiles, [1, 1, 1], 256, 0, &tiles)?;
            self.products.run_experts(d, &w.mlp.gate_up, h, &by_token, tile, b.up, Out::Elements)?;
            d.launch(k.activate_experts, [pairs, inner.div_ceil(2048), 1], 256, 0, &activate)?;
            self.products.run_experts(d, &w.mlp.down, b.inner, &by_row, tile, b.answers, Out::Floats)?;
            d.launch(k.combine, [tokens, hidden.div_ceil(256), 1], 256, 0, &combine)
        }
    }
}
