//! Loss and gradients of number models, without a graph of tensor operations. A number model is small and its batches are short, so that a
//! graph's copies, zeros and sums would take longer than the matrix products. Here every buffer is kept between steps, the common prefix
//! of a batch is computed once, nothing is padded, and rows that no target depends on are left out.
mod attention;
mod product;
mod rows;
#[cfg(test)]
mod tests;

use candle_core::{Device, Result as TensorResult, Storage, Tensor};

use self::attention::{Heads, Inputs, Scratch, attend, attend_gradient, rotate};
use self::product::{Matrix, product};
use self::rows::Rows;
use crate::decoder::EMBEDDING;
use crate::kernels::{cross_entropy, rms_norm, rms_norm_gradient, swiglu, swiglu_gradient};
use crate::positions::RotaryTable;
use crate::{Example, Gradients, Parameters};
use earnest_models::checkpoint::{DecoderConfig, Norm, Position};

/// Matrices and norms of a layer, as checkpoints name them.
const NAMES: [&str; 9] = [
    "input_layernorm",
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "post_attention_layernorm",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
];

/// Intermediate results of a layer that its gradient needs.
#[derive(Debug, Default)]
struct Activations {
    /// Input, its norm and the reciprocal root of its mean square.
    x: Vec<f32>,
    normed: Vec<f32>,
    inverse: Vec<f32>,
    /// Normed rows with queries, where these are not all.
    asking: Vec<f32>,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    weights: Vec<f32>,
    attended: Vec<f32>,
    /// Residual stream after attention, its norm and the reciprocal root.
    middle: Vec<f32>,
    middle_normed: Vec<f32>,
    middle_inverse: Vec<f32>,
    gate: Vec<f32>,
    up: Vec<f32>,
    gated: Vec<f32>,
}

/// Buffers of the gradient that are free after every layer.
#[derive(Debug, Default)]
struct Slopes {
    x: Vec<f32>,
    next: Vec<f32>,
    normed: Vec<f32>,
    asking: Vec<f32>,
    gated: Vec<f32>,
    attended: Vec<f32>,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
}

/// Buffers of a part of a batch, kept between steps.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    layers: Vec<Activations>,
    last: Vec<f32>,
    last_normed: Vec<f32>,
    last_inverse: Vec<f32>,
    logits: Vec<f32>,
    slopes: Slopes,
    scratch: Scratch,
}

/// Returns the first `count` values of a buffer, with any content.
fn any(buffer: &mut Vec<f32>, count: usize) -> &mut [f32] {
    if buffer.len() < count {
        buffer.resize(count, 0.0);
    }
    &mut buffer[..count]
}

/// Returns the first `count` values of a buffer, all zero.
fn zeros(buffer: &mut Vec<f32>, count: usize) -> &mut [f32] {
    buffer.clear();
    buffer.resize(count, 0.0);
    buffer
}

/// Copies rows of a matrix.
fn gather(from: &[f32], width: usize, rows: &[u32], to: &mut [f32]) {
    for (to, row) in to.chunks_exact_mut(width).zip(rows) {
        to.copy_from_slice(&from[*row as usize * width..][..width]);
    }
}

/// Adds rows to rows of a matrix.
fn scatter(from: &[f32], width: usize, rows: &[u32], to: &mut [f32]) {
    for (from, row) in from.chunks_exact(width).zip(rows) {
        to[*row as usize * width..][..width].iter_mut().zip(from).for_each(|(to, from)| *to += from);
    }
}

/// Computes the cross-entropy of a part's targets, divided by `targets`, those of the whole batch, and its gradients. The architecture is one
/// of [`Size::decoder`](crate::Size::decoder), on the CPU.
///
/// # Errors
/// A parameter that is not a contiguous tensor on the CPU.
pub(crate) fn gradients(
    config: &DecoderConfig,
    parameters: &Parameters,
    examples: &[Example],
    targets: usize,
    workspace: &mut Workspace,
) -> TensorResult<(f64, Gradients)> {
    let c = config;
    let rows = Rows::new(examples);
    let (all, asked) = (rows.ids.len(), rows.targets.len());
    let (hidden, inner, vocabulary) = (c.hidden_size, c.intermediate_size, c.vocab_size);
    let (wide, narrow) = (c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim);
    let Norm::Rms { eps } = c.norm else { unreachable!("number models have RMS norms") };
    let positions = rows.positions.iter().max().map_or(0, |last| *last as usize + 1);
    let tables: Vec<(Vec<f32>, Vec<f32>)> = c
        .ropes
        .iter()
        .map(|rope| RotaryTable::new(rope, positions, &Device::Cpu)?.values().map(|(cos, sin, _)| (cos, sin)))
        .collect::<TensorResult<_>>()?;
    let asking: Vec<u32> = rows.predicting.iter().map(|row| rows.positions[*row as usize]).collect();

    // Every parameter by name, as a slice of its storage.
    let guards: Vec<_> = parameters.iter().map(|(name, variable)| (name, variable.storage_and_layout())).collect();
    let mut slices = std::collections::BTreeMap::new();
    for (name, (storage, layout)) in &guards {
        let Storage::Cpu(storage) = &**storage else { candle_core::bail!("{name} is not on the CPU") };
        slices.insert(*name, crate::norm::contiguous_values(storage, layout)?);
    }
    let of = |name: &str| -> &[f32] { slices[name] };
    let named = |layer: usize, name: &str| format!("model.layers.{layer}.{name}.weight");
    let heads = |layer: usize| Heads {
        heads: c.num_heads,
        kv_heads: c.num_kv_heads,
        width: c.head_dim,
        scale: c.attention_scale,
        slopes: c.layers[layer].position.slopes(c.num_heads),
    };
    let table = |layer: usize| match c.layers[layer].position {
        Position::Rotary(index) => Some((tables[index].0.as_slice(), tables[index].1.as_slice())),
        _ => None,
    };

    let Workspace { layers, last, last_normed, last_inverse, logits, slopes, scratch } = workspace;
    layers.resize_with(c.layers.len(), Activations::default);
    let embedding = of(EMBEDDING);
    if let Some(layer) = layers.first_mut() {
        gather(embedding, hidden, &rows.ids, any(&mut layer.x, all * hidden));
    }
    for index in 0..layers.len() {
        let is_last = index + 1 == layers.len();
        let count = if is_last { asked } else { all };
        let weight = |at: usize| of(&named(index, NAMES[at]));
        let (before, after) = layers.split_at_mut(index + 1);
        let layer = &mut before[index];
        let x = &layer.x[..all * hidden];
        let normed = any(&mut layer.normed, all * hidden);
        rms_norm(x, weight(0), eps, normed, any(&mut layer.inverse, all));
        let (k, v) = (any(&mut layer.k, all * narrow), any(&mut layer.v, all * narrow));
        product(Matrix::rows(normed, hidden), Matrix::transposed(weight(2), hidden), k, false);
        product(Matrix::rows(normed, hidden), Matrix::transposed(weight(3), hidden), v, false);
        let (ask, ask_positions) = match is_last {
            true => {
                let ask = any(&mut layer.asking, asked * hidden);
                gather(normed, hidden, &rows.predicting, ask);
                (&*ask, &asking)
            }
            false => (&*normed, &rows.positions),
        };
        let q = any(&mut layer.q, count * wide);
        product(Matrix::rows(ask, hidden), Matrix::transposed(weight(1), hidden), q, false);
        if let Some(table) = table(index) {
            rotate(q, wide, c.head_dim, ask_positions, table, 1.0);
            rotate(k, narrow, c.head_dim, &rows.positions, table, 1.0);
        }
        let heads = heads(index);
        let attended = any(&mut layer.attended, count * wide);
        let total = rows.segments.iter().map(|segment| heads.weights(segment, is_last)).sum();
        let mut weights = any(&mut layer.weights, total);
        for segment in &rows.segments {
            let own = weights.split_off_mut(..heads.weights(segment, is_last)).expect("the sum of all");
            attend(&heads, (segment, is_last), Inputs { q, k, v }, own, attended, scratch);
        }
        let middle = any(&mut layer.middle, count * hidden);
        match is_last {
            true => gather(x, hidden, &rows.predicting, middle),
            false => middle.copy_from_slice(x),
        }
        product(Matrix::rows(attended, wide), Matrix::transposed(weight(4), wide), middle, true);
        let normed = any(&mut layer.middle_normed, count * hidden);
        rms_norm(middle, weight(5), eps, normed, any(&mut layer.middle_inverse, count));
        let (gate, up) = (any(&mut layer.gate, count * inner), any(&mut layer.up, count * inner));
        product(Matrix::rows(normed, hidden), Matrix::transposed(weight(6), hidden), gate, false);
        product(Matrix::rows(normed, hidden), Matrix::transposed(weight(7), hidden), up, false);
        let gated = any(&mut layer.gated, count * inner);
        swiglu(gate, up, gated);
        let next = any(after.first_mut().map_or(&mut *last, |next| &mut next.x), count * hidden);
        next.copy_from_slice(middle);
        product(Matrix::rows(gated, inner), Matrix::transposed(weight(8), inner), next, true);
    }
    let norm = of("model.norm.weight");
    let (last, last_normed) = (&last[..asked * hidden], any(last_normed, asked * hidden));
    rms_norm(last, norm, eps, last_normed, any(last_inverse, asked));
    let logits = any(logits, asked * vocabulary);
    product(Matrix::rows(last_normed, hidden), Matrix::transposed(embedding, hidden), logits, false);
    let loss = cross_entropy(logits, &rows.targets, 1.0 / targets as f32);

    // Backward. Gradients of parameters are written once each, so their tensors need no zeros.
    let mut found: Vec<(String, Vec<f32>)> = Vec::new();
    let mut to_embedding = vec![0f32; vocabulary * hidden];
    product(Matrix::columns(logits, vocabulary), Matrix::rows(last_normed, hidden), &mut to_embedding, false);
    let Slopes { x, next, normed, asking: to_asking, gated, attended, q, k, v } = slopes;
    product(Matrix::rows(logits, vocabulary), Matrix::rows(embedding, hidden), any(normed, asked * hidden), false);
    let mut to_norm = vec![0f32; hidden];
    rms_norm_gradient(last, norm, last_inverse, &normed[..asked * hidden], zeros(x, asked * hidden), &mut to_norm);
    found.push(("model.norm.weight".to_owned(), to_norm));
    for (index, layer) in layers.iter_mut().enumerate().rev() {
        let is_last = index + 1 == c.layers.len();
        let count = if is_last { asked } else { all };
        let weight = |at: usize| of(&named(index, NAMES[at]));
        let mut found_here = |at: usize, rows: Matrix<'_>, columns: Matrix<'_>| {
            let mut gradient = vec![0f32; rows.count() * columns.width()];
            product(rows, columns, &mut gradient, false);
            found.push((named(index, NAMES[at]), gradient));
        };
        // `x` is the gradient of the layer's output; it becomes that of the residual stream after attention.
        let to_gated = any(gated, count * inner);
        let activated = &layer.gated[..count * inner];
        product(Matrix::rows(x, hidden), Matrix::rows(weight(8), inner), to_gated, false);
        found_here(8, Matrix::columns(x, hidden), Matrix::rows(activated, inner));
        let (gate, up) = (&mut layer.gate[..count * inner], &mut layer.up[..count * inner]);
        swiglu_gradient(gate, up, to_gated);
        let middle_normed = &layer.middle_normed[..count * hidden];
        found_here(6, Matrix::columns(gate, inner), Matrix::rows(middle_normed, hidden));
        found_here(7, Matrix::columns(up, inner), Matrix::rows(middle_normed, hidden));
        let to_normed = any(normed, count * hidden);
        product(Matrix::rows(gate, inner), Matrix::rows(weight(6), hidden), to_normed, false);
        product(Matrix::rows(up, inner), Matrix::rows(weight(7), hidden), to_normed, true);
        let mut to_norm = vec![0f32; hidden];
        let middle = &layer.middle[..count * hidden];
        rms_norm_gradient(middle, weight(5), &layer.middle_inverse, to_normed, x, &mut to_norm);

        let to_attended = any(attended, count * wide);
        product(Matrix::rows(x, hidden), Matrix::rows(weight(4), wide), to_attended, false);
        found_here(4, Matrix::columns(x, hidden), Matrix::rows(&layer.attended[..count * wide], wide));
        let to_q = any(q, count * wide);
        let (to_k, to_v) = (zeros(k, all * narrow), zeros(v, all * narrow));
        let heads = heads(index);
        let inputs = Inputs { q: &layer.q, k: &layer.k, v: &layer.v };
        let mut weights = layer.weights.as_slice();
        for segment in &rows.segments {
            let own = weights.split_off(..heads.weights(segment, is_last)).expect("the sum of all");
            let to = [&mut *to_q, &mut *to_k, &mut *to_v];
            attend_gradient(&heads, (segment, is_last), inputs, (own, to_attended), to, scratch);
        }
        if let Some(table) = table(index) {
            let ask_positions = if is_last { &asking } else { &rows.positions };
            rotate(to_q, wide, c.head_dim, ask_positions, table, -1.0);
            rotate(to_k, narrow, c.head_dim, &rows.positions, table, -1.0);
        }
        let layer_normed = &layer.normed[..all * hidden];
        let ask = if is_last { &layer.asking[..asked * hidden] } else { layer_normed };
        found_here(1, Matrix::columns(to_q, wide), Matrix::rows(ask, hidden));
        found_here(2, Matrix::columns(to_k, narrow), Matrix::rows(layer_normed, hidden));
        found_here(3, Matrix::columns(to_v, narrow), Matrix::rows(layer_normed, hidden));
        found.push((named(index, NAMES[5]), to_norm));
        let to_normed = any(normed, all * hidden);
        product(Matrix::rows(to_k, narrow), Matrix::rows(weight(2), hidden), to_normed, false);
        product(Matrix::rows(to_v, narrow), Matrix::rows(weight(3), hidden), to_normed, true);
        if is_last {
            let to_asking = any(to_asking, asked * hidden);
            product(Matrix::rows(to_q, wide), Matrix::rows(weight(1), hidden), to_asking, false);
            scatter(to_asking, hidden, &rows.predicting, to_normed);
            scatter(x, hidden, &rows.predicting, zeros(next, all * hidden));
            std::mem::swap(x, next);
        } else {
            product(Matrix::rows(to_q, wide), Matrix::rows(weight(1), hidden), to_normed, true);
        }
        let mut to_norm = vec![0f32; hidden];
        rms_norm_gradient(&layer.x[..all * hidden], weight(0), &layer.inverse, to_normed, x, &mut to_norm);
        found.push((named(index, NAMES[0]), to_norm));
    }
    scatter(x, hidden, &rows.ids, &mut to_embedding);
    found.push((EMBEDDING.to_owned(), to_embedding));
    let tensor = |(name, values): (String, Vec<f32>)| -> TensorResult<(String, Tensor)> {
        let shape = parameters.get(&name).expect("its values were read").shape();
        let tensor = Tensor::from_vec(values, shape, &Device::Cpu)?;
        Ok((name, tensor))
    };
    Ok((loss / targets as f64, Gradients::from_iter(found.into_iter().map(tensor).collect::<TensorResult<Vec<_>>>()?)))
}
