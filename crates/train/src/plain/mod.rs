//! Loss and gradients of number models, without a graph of tensor operations. A number model is small and its batches are short, so that a
//! graph's copies, zeros and sums would take longer than the matrix products. Here every buffer is kept between steps, the common prefix
//! of a batch is computed once, nothing is padded, and rows that no target depends on are left out.
mod attention;
mod layer;
mod product;
mod rows;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use candle_core::{Device, Result as TensorResult, Storage, Tensor};

use self::attention::Scratch;
use self::layer::Layers;
use self::product::{Matrix, product};
use self::rows::Rows;
use crate::decoder::EMBEDDING;
use crate::kernels::{cross_entropy, rms_norm, rms_norm_gradient};
use crate::positions::RotaryTable;
use crate::{Example, Gradients, Parameters};
use earnest_models::checkpoint::{DecoderConfig, Norm};

/// Name of the last norm's weights in a checkpoint.
const LAST_NORM: &str = "model.norm.weight";

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
    let rows = Rows::new(examples);
    let (all, asked, hidden) = (rows.ids.len(), rows.targets.len(), config.hidden_size);
    let Norm::Rms { eps } = config.norm else { unreachable!("number models have RMS norms") };
    let positions = rows.positions.iter().max().map_or(0, |last| *last as usize + 1);
    let table = |rope| RotaryTable::new(rope, positions, &Device::Cpu)?.values().map(|(cos, sin, _)| (cos, sin));
    // Every parameter by name, as a slice of its storage.
    let guards: Vec<_> = parameters.iter().map(|(name, variable)| (name, variable.storage_and_layout())).collect();
    let mut values = BTreeMap::new();
    for (name, (storage, layout)) in &guards {
        let Storage::Cpu(storage) = &**storage else { candle_core::bail!("{name} is not on the CPU") };
        values.insert(*name, crate::norm::contiguous_values(storage, layout)?);
    }
    let of = Layers {
        config,
        eps,
        rows: &rows,
        asking: rows.predicting.iter().map(|row| rows.positions[*row as usize]).collect(),
        tables: config.ropes.iter().map(table).collect::<TensorResult<_>>()?,
        values,
    };

    let Workspace { layers, last, last_normed, last_inverse, logits, slopes, scratch } = workspace;
    layers.resize_with(config.layers.len(), Activations::default);
    let (embedding, norm) = (of.values[EMBEDDING], of.values[LAST_NORM]);
    if let Some(layer) = layers.first_mut() {
        gather(embedding, hidden, &rows.ids, any(&mut layer.x, all * hidden));
    }
    for index in 0..layers.len() {
        let (before, after) = layers.split_at_mut(index + 1);
        of.forward(index, &mut before[index], after.first_mut().map_or(&mut *last, |next| &mut next.x), scratch);
    }
    let (last, last_normed) = (&last[..asked * hidden], any(last_normed, asked * hidden));
    rms_norm(last, norm, eps, last_normed, any(last_inverse, asked));
    let logits = any(logits, asked * config.vocab_size);
    product(Matrix::rows(last_normed, hidden), Matrix::transposed(embedding, hidden), logits, false);
    let loss = cross_entropy(logits, &rows.targets, 1.0 / targets as f32);

    // Backward. Gradients of parameters are written once each, so their tensors need no zeros.
    let mut found: Vec<(String, Vec<f32>)> = Vec::new();
    let mut to_embedding = vec![0f32; config.vocab_size * hidden];
    product(Matrix::columns(logits, config.vocab_size), Matrix::rows(last_normed, hidden), &mut to_embedding, false);
    let normed = any(&mut slopes.normed, asked * hidden);
    product(Matrix::rows(logits, config.vocab_size), Matrix::rows(embedding, hidden), normed, false);
    let mut to_norm = vec![0f32; hidden];
    rms_norm_gradient(last, norm, last_inverse, normed, zeros(&mut slopes.x, asked * hidden), &mut to_norm);
    found.push((LAST_NORM.to_owned(), to_norm));
    for (index, layer) in layers.iter_mut().enumerate().rev() {
        of.backward(index, layer, slopes, scratch, &mut found);
    }
    scatter(&slopes.x, hidden, &rows.ids, &mut to_embedding);
    found.push((EMBEDDING.to_owned(), to_embedding));
    let tensor = |(name, values): (String, Vec<f32>)| -> TensorResult<(String, Tensor)> {
        let shape = parameters.get(&name).expect("its values were read").shape();
        let tensor = Tensor::from_vec(values, shape, &Device::Cpu)?;
        Ok((name, tensor))
    };
    Ok((loss / targets as f64, Gradients::from_iter(found.into_iter().map(tensor).collect::<TensorResult<Vec<_>>>()?)))
}
