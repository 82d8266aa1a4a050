//! Tests of the gradients: against automatic ones, and against finite differences.
use candle_core::{Device, Tensor};

use super::{Workspace, gradients};
use crate::parameters::normal;
use crate::{Batch, Decoder, Example, Gradients, Parameters, PositionEncoding, Size, answer_loss};

fn example(ids: &[u32], prompt: usize) -> Example {
    Example { ids: ids.to_vec(), prompt }
}

/// Batches with and without a common prefix, of one and several examples.
fn batches() -> Vec<Vec<Example>> {
    vec![
        vec![example(&[1, 5, 9, 3, 2], 3), example(&[1, 4, 4, 8, 6, 7, 2], 4), example(&[1, 2], 1)],
        vec![
            example(&[1, 5, 9, 3, 8, 6, 2], 5),
            example(&[1, 5, 9, 4, 4, 10, 6, 7, 2], 7),
            example(&[1, 5, 9, 3, 3, 2], 4),
            example(&[1, 5, 9, 3, 3, 4, 5, 6, 7, 8, 9, 10, 3, 4, 5, 2], 9),
        ],
        vec![example(&[1, 5, 9, 3, 2], 3)],
    ]
}

fn flat(x: &Tensor) -> Vec<f32> {
    x.flatten_all().unwrap().to_vec1().unwrap()
}

#[test]
fn gradients_equal_automatic_ones() {
    let sizes = [
        Size { layers: 2, hidden: 16, intermediate: 24, heads: 4, kv_heads: 2 },
        Size { layers: 3, hidden: 32, intermediate: 40, heads: 2, kv_heads: 1 },
        Size { layers: 1, hidden: 12, intermediate: 7, heads: 2, kv_heads: 2 },
    ];
    for encoding in PositionEncoding::ALL {
        // One workspace for all, so that what is left of one batch must not show in another.
        let mut workspace = Workspace::default();
        for size in sizes {
            let config = size.decoder(11, 32, encoding);
            let mut parameters = Parameters::default();
            let decoder = Decoder::fresh(&config, 3, &mut parameters, &Device::Cpu).unwrap();
            for (name, variable) in parameters.iter() {
                let draw = normal(9, name, variable.dims(), 0.4, &Device::Cpu).unwrap();
                let base = if variable.dims().len() == 1 { 1.0 } else { 0.0 };
                variable.set(&(draw + base).unwrap()).unwrap();
            }
            for examples in batches() {
                let batch = Batch::new(&examples, 0, &Device::Cpu).unwrap();
                let loss = (answer_loss(&decoder.logits(&batch).unwrap(), &batch).unwrap() / 20.0).unwrap();
                let automatic = Gradients::of(&loss, &parameters).unwrap();
                let (ours, found) = gradients(&config, &parameters, &examples, 20, &mut workspace).unwrap();
                assert!((ours - f64::from(loss.to_scalar::<f32>().unwrap())).abs() < 1e-4, "{encoding:?} {size:?}");
                for (name, _) in parameters.iter() {
                    let (a, b) = (flat(found.get(name).unwrap()), flat(automatic.get(name).unwrap()));
                    let scale = b.iter().fold(1e-3f32, |most, x| most.max(x.abs()));
                    let worst = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                    assert!(worst < 2e-4 * scale, "{encoding:?} {size:?} {name}: {worst} of {scale}");
                }
            }
        }
    }
}

#[test]
fn gradients_agree_with_finite_differences() {
    let config = Size { layers: 2, hidden: 16, intermediate: 24, heads: 4, kv_heads: 2 };
    let config = config.decoder(11, 32, PositionEncoding::Rope);
    let mut parameters = Parameters::default();
    Decoder::fresh(&config, 3, &mut parameters, &Device::Cpu).unwrap();
    for (name, variable) in parameters.iter() {
        let draw = normal(9, name, variable.dims(), 0.4, &Device::Cpu).unwrap();
        let base = if variable.dims().len() == 1 { 1.0 } else { 0.0 };
        variable.set(&(draw + base).unwrap()).unwrap();
    }
    let examples = batches().remove(1);
    let mut workspace = Workspace::default();
    let mut compute = || gradients(&config, &parameters, &examples, 10, &mut workspace).unwrap();
    let (_, found) = compute();
    for (name, variable) in parameters.iter() {
        let (gradient, values) = (flat(found.get(name).unwrap()), flat(variable.as_tensor()));
        // Along the gradient itself: the difference is then as large as it can be.
        let norm = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
        let step = 2e-3;
        let mut moved = |sign: f64| {
            let along = |(v, g): (&f32, &f32)| (f64::from(*v) + sign * step * f64::from(*g) / norm) as f32;
            let values: Vec<f32> = values.iter().zip(&gradient).map(along).collect();
            variable.set(&Tensor::from_vec(values, variable.shape(), &Device::Cpu).unwrap()).unwrap();
            compute().0
        };
        let slope = (moved(1.0) - moved(-1.0)) / (2.0 * step);
        variable.set(&Tensor::from_vec(values.clone(), variable.shape(), &Device::Cpu).unwrap()).unwrap();
        assert!((slope - norm).abs() < 0.01 * norm + 2e-3, "{name}: {slope} and {norm}");
    }
}
