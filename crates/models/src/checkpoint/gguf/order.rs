//! Orders of rows and columns in GGUF files that differ from the engine's.
use super::super::layout::{PairedRows, split_gate_rows};
use super::super::{DecoderConfig, LayerParameter, Parameter};
use super::arch::GgufArchitecture;

/// Returns, for each row in the engine's order, the row of the file; none if they are the same.
pub(in crate::checkpoint) fn row_order(
    arch: GgufArchitecture,
    c: &DecoderConfig,
    parameter: Parameter,
    rows: usize,
) -> Option<Vec<usize>> {
    let stored: Vec<usize> = (0..rows).collect();
    let pairs = if arch.is_reordered() { reordered(c, parameter) } else { PairedRows::of(c, parameter) };
    let order = match pairs {
        Some(pairs) => pairs.halves(&stored, 1),
        None => stored.clone(),
    };
    let order = split_gate_rows(c, parameter, order, 1);
    let order = match value_heads(c, parameter) {
        Some((first, dims)) => grouped(c, first, dims).unwrap_or(order),
        None => order,
    };
    (order != stored).then_some(order)
}

/// Returns the order of runs of elements for a matrix of `rows` rows whose columns the converter reordered, and the width of a run: the
/// projection of linear attention's values. None for other matrices.
pub(in crate::checkpoint) fn column_order(
    c: &DecoderConfig,
    parameter: Parameter,
    rows: usize,
) -> Option<(Vec<usize>, usize)> {
    let Parameter::Layer(i, LayerParameter::Output) = parameter else { return None };
    let linear = c.linear.filter(|_| c.layers.get(i).is_some_and(|l| l.linear))?;
    let heads = grouped(c, 0, 1)?;
    let order = (0..rows).flat_map(|row| heads.iter().map(move |head| row * linear.value_heads + head)).collect();
    Some((order, linear.value_dims))
}

/// Rows that the converter moved to adjacent pairs, of all dimensions and in every layer.
fn reordered(c: &DecoderConfig, parameter: Parameter) -> Option<PairedRows> {
    use LayerParameter::{Key, KeyBias, Query, QueryBias};
    let Parameter::Layer(i, parameter) = parameter else { return None };
    let layer = c.layers.get(i)?;
    let heads = match parameter {
        Query | QueryBias => c.num_heads,
        Key | KeyBias => layer.num_kv_heads,
        _ => return None,
    };
    Some(PairedRows { heads, head_dim: layer.head_dim, first: 0, dims: layer.head_dim })
}

/// The first row of linear attention's value heads in a parameter, and the rows of a head.
fn value_heads(c: &DecoderConfig, parameter: Parameter) -> Option<(usize, usize)> {
    use LayerParameter::*;
    let (Parameter::Layer(_, parameter), Some(linear)) = (parameter, c.linear) else { return None };
    match parameter {
        LinearQkv | LinearConvolution => Some((2 * linear.key_heads * linear.key_dims, linear.value_dims)),
        LinearGate => Some((0, linear.value_dims)),
        LinearStrength | LinearDecay | LinearDecayLog | LinearDecayBias => Some((0, 1)),
        _ => None,
    }
}

/// Returns the order in which the value heads of a key head follow each other; in the file those of different key heads alternate.
/// None if there is one each.
fn grouped(c: &DecoderConfig, first: usize, dims: usize) -> Option<Vec<usize>> {
    let linear = c.linear.filter(|l| l.key_heads != l.value_heads)?;
    let (keys, each) = (linear.key_heads, linear.value_heads / linear.key_heads);
    let heads = (0..keys).flat_map(|key| (0..each).map(move |i| i * keys + key));
    let rows = heads.flat_map(|head| (0..dims).map(move |d| first + head * dims + d));
    Some((0..first).chain(rows).collect())
}

/// Returns the rows of this order.
pub(in crate::checkpoint) fn take<T: Copy>(rows: &[T], order: &[usize], width: usize) -> Vec<T> {
    let row = |&row: &usize| rows.get(row * width..(row + 1) * width).unwrap_or_default();
    order.iter().flat_map(row).copied().collect()
}

/// Returns the rows of the projection from the latent vector: of each head its keys, `[rank, plain]` in the file, then its values,
/// `[values, rank]`.
pub(in crate::checkpoint) fn latent_rows(c: &DecoderConfig, keys: &[f32], values: &[f32]) -> Vec<f32> {
    let Some(latent) = c.latent else { return Vec::new() };
    let (rank, plain, value) = (latent.kv_rank, latent.plain_dims, latent.value_dims);
    let mut out = Vec::with_capacity(keys.len() + values.len());
    for head in 0..c.num_heads {
        let keys = keys.get(head * rank * plain..).unwrap_or_default();
        out.extend((0..plain).flat_map(|d| (0..rank).map(move |r| keys.get(r * plain + d).copied().unwrap_or(0.0))));
        out.extend(values.get(head * value * rank..(head + 1) * value * rank).unwrap_or_default());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn un_permuting_inverts_the_converter() {
        // numpy: w.reshape(heads, 2, dim / 2, width).swapaxes(1, 2)
        let (heads, dim, width) = (2, 6, 2);
        let original: Vec<u32> = (0..(heads * dim * width) as u32).collect();
        let mut converted = Vec::new();
        for head in 0..heads {
            for i in 0..dim / 2 {
                for j in 0..2 {
                    let row = head * dim + j * (dim / 2) + i;
                    converted.extend_from_slice(&original[row * width..(row + 1) * width]);
                }
            }
        }
        assert_ne!(converted, original);
        let pairs = PairedRows { heads, head_dim: dim, first: 0, dims: dim };
        let order = pairs.halves(&(0..heads * dim).collect::<Vec<_>>(), 1);
        assert_eq!(take(&converted, &order, width), original);
    }
}
