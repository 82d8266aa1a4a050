//! Tests of the decoder: gradients, batching, and adapters.
use candle_core::{Device, Tensor};

use super::Decoder;
use crate::fused::{self, AttentionShape};
use crate::parameters::normal;
use crate::positions::RotaryTable;
use crate::{
    AdamW, AdamWSettings, AdapterSettings, Batch, Example, Gradients, Parameters, PositionEncoding, Size, answer_loss,
    answer_scores,
};

const TINY: Size = Size { layers: 2, hidden: 16, intermediate: 24, heads: 4, kv_heads: 2 };

fn examples() -> Vec<Example> {
    let example = |ids: &[u32], prompt| Example { ids: ids.to_vec(), prompt };
    vec![example(&[1, 5, 9, 3, 2], 3), example(&[1, 4, 4, 8, 6, 7, 2], 4), example(&[1, 2], 1)]
}

fn loss(decoder: &Decoder, batch: &Batch) -> Tensor {
    (answer_loss(&decoder.logits(batch).unwrap(), batch).unwrap() / batch.targets() as f64).unwrap()
}

#[test]
fn gradients_agree_with_finite_differences() {
    for encoding in PositionEncoding::ALL {
        let mut parameters = Parameters::default();
        let config = TINY.decoder(11, 32, encoding);
        let decoder = Decoder::fresh(&config, 3, &mut parameters, &Device::Cpu).unwrap();
        // Weights of ordinary size: with the small ones of a fresh model, every gradient drowns in rounding.
        for (name, variable) in parameters.iter() {
            let draw = normal(9, name, variable.dims(), 0.4, &Device::Cpu).unwrap();
            let base = if variable.dims().len() == 1 { 1.0 } else { 0.0 };
            variable.set(&(draw + base).unwrap()).unwrap();
        }
        let batch = Batch::new(&examples(), 0, &Device::Cpu).unwrap();
        let gradients = loss(&decoder, &batch).backward().unwrap();
        for (name, variable) in parameters.iter() {
            let gradient =
                gradients.get(variable.as_tensor()).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
            let values = variable.flatten_all().unwrap().to_vec1::<f32>().unwrap();
            // Along the gradient itself: the difference is then as large as it can be.
            let norm = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
            let step = 2e-3;
            let moved = |sign: f64| {
                let along = |(v, g): (&f32, &f32)| (f64::from(*v) + sign * step * f64::from(*g) / norm) as f32;
                let values: Vec<f32> = values.iter().zip(&gradient).map(along).collect();
                variable.set(&Tensor::from_vec(values, variable.shape(), &Device::Cpu).unwrap()).unwrap();
                f64::from(loss(&decoder, &batch).to_scalar::<f32>().unwrap())
            };
            let slope = (moved(1.0) - moved(-1.0)) / (2.0 * step);
            variable.set(&Tensor::from_vec(values.clone(), variable.shape(), &Device::Cpu).unwrap()).unwrap();
            assert!((slope - norm).abs() < 0.01 * norm + 2e-3, "{encoding:?} {name}: {slope} and {norm}");
        }
    }
}

#[test]
fn fused_attention_equals_composed_attention() {
    for (encoding, window) in [
        (PositionEncoding::Rope, None),
        (PositionEncoding::Rope, Some(3)),
        (PositionEncoding::Nope, None),
        (PositionEncoding::Alibi, None),
        (PositionEncoding::AlibiReversed, None),
    ] {
        let mut parameters = Parameters::default();
        let mut config = TINY.decoder(11, 32, encoding);
        config.layers.iter_mut().for_each(|layer| layer.window = window);
        let decoder = Decoder::fresh(&config, 3, &mut parameters, &Device::Cpu).unwrap();
        let (examples, length, first) = (3, 7, 2);
        let draw = |name, rows, width| {
            let drawn = normal(4, name, &[rows, width], 1.0, &Device::Cpu).unwrap();
            candle_core::Var::from_tensor(&drawn).unwrap()
        };
        let q = draw("q", examples * (length - first), 16);
        let (k, v) = (draw("k", examples * length, 8), draw("v", examples * length, 8));
        let weights = draw("w", examples * (length - first), 16);
        let layer = &decoder.layers[0];
        let rope = RotaryTable::new(&config.ropes[0], length, &Device::Cpu).unwrap();
        let all = || [&q, &k, &v].map(|x| x.as_tensor().clone());
        let composed =
            decoder.composed_attention(layer, all(), (examples, length, first), std::slice::from_ref(&rope)).unwrap();
        let shape = AttentionShape {
            length,
            first,
            heads: 4,
            kv_heads: 2,
            head_dim: 4,
            scale: config.attention_scale,
            rotation: (encoding == PositionEncoding::Rope).then(|| rope.values().unwrap()),
            slopes: config.layers[0].position.slopes(4),
            window,
        };
        let fused = fused::attention(q.as_tensor(), k.as_tensor(), v.as_tensor(), shape).unwrap();
        let flat = |x: &Tensor| x.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let near = |a: &Tensor, b: &Tensor, what: &str| {
            for (a, b) in flat(a).iter().zip(flat(b)) {
                assert!((a - b).abs() < 1e-5, "{encoding:?} {window:?} {what}: {a} {b}");
            }
        };
        near(&fused, &composed, "values");
        let slopes = |out: &Tensor| (out * weights.as_tensor()).unwrap().sum_all().unwrap().backward().unwrap();
        let (of_fused, of_composed) = (slopes(&fused), slopes(&composed));
        for (name, x) in [("q", &q), ("k", &k), ("v", &v)] {
            near(of_fused.get(x.as_tensor()).unwrap(), of_composed.get(x.as_tensor()).unwrap(), name);
        }
    }
}

#[test]
fn padding_and_other_examples_change_nothing() {
    let mut parameters = Parameters::default();
    let decoder =
        Decoder::fresh(&TINY.decoder(11, 32, PositionEncoding::Rope), 3, &mut parameters, &Device::Cpu).unwrap();
    let all = examples();
    let together = decoder.logits(&Batch::new(&all, 0, &Device::Cpu).unwrap()).unwrap().to_vec2::<f32>().unwrap();
    let alone: Vec<Vec<f32>> = all
        .iter()
        .flat_map(|example| {
            let batch = Batch::new(std::slice::from_ref(example), 7, &Device::Cpu).unwrap();
            decoder.logits(&batch).unwrap().to_vec2::<f32>().unwrap()
        })
        .collect();
    assert_eq!(together.len(), alone.len());
    for (a, b) in together.iter().flatten().zip(alone.iter().flatten()) {
        assert!((a - b).abs() < 1e-5, "{a} {b}");
    }
}

#[test]
fn a_shared_prefix_changes_nothing() {
    let example = |ids: &[u32], prompt| Example { ids: ids.to_vec(), prompt };
    let all = vec![
        example(&[1, 5, 9, 3, 8, 6, 2], 5),
        example(&[1, 5, 9, 4, 4, 10, 6, 7, 2], 7),
        example(&[1, 5, 9, 3, 2], 4),
    ];
    for encoding in [PositionEncoding::Rope, PositionEncoding::Alibi] {
        let mut parameters = Parameters::default();
        let mut config = TINY.decoder(11, 32, encoding);
        config.layers[1].window = Some(4);
        let mut decoder = Decoder::fresh(&config, 3, &mut parameters, &Device::Cpu).unwrap();
        decoder.shares_prefix = true;
        let together = Batch::new(&all, 0, &Device::Cpu).unwrap();
        assert_eq!((together.shared_prefix, together.first), (3, 3));
        let alone: Vec<Batch> =
            all.iter().map(|one| Batch::new(std::slice::from_ref(one), 0, &Device::Cpu).unwrap()).collect();
        let flat = |x: &Tensor| x.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let near = |ours: &[f32], theirs: &[f32], what: &str| {
            assert_eq!(ours.len(), theirs.len());
            assert!(ours.iter().zip(theirs).all(|(a, b)| (a - b).abs() < 1e-4), "{encoding:?} {what}");
        };
        let apart: Vec<f32> = alone.iter().flat_map(|batch| flat(&decoder.logits(batch).unwrap())).collect();
        near(&flat(&decoder.logits(&together).unwrap()), &apart, "logits");
        let gradients = |batch: &Batch| {
            let loss = answer_loss(&decoder.logits(batch).unwrap(), batch).unwrap();
            Gradients::of(&loss, &parameters).unwrap()
        };
        let whole = gradients(&together);
        let mut sum = Gradients::default();
        for batch in &alone {
            sum.add(gradients(batch)).unwrap();
        }
        for (name, _) in parameters.iter() {
            near(&flat(whole.get(name).unwrap()), &flat(sum.get(name).unwrap()), name);
        }
    }
}

#[test]
fn a_small_model_overfits_and_repeats_from_its_seed() {
    let run = || {
        let mut parameters = Parameters::default();
        let config = TINY.decoder(11, 32, PositionEncoding::Rope);
        let decoder = Decoder::fresh(&config, 3, &mut parameters, &Device::Cpu).unwrap();
        let mut optimiser = AdamW::new(AdamWSettings::default());
        let batch = Batch::new(&examples(), 0, &Device::Cpu).unwrap();
        let mut losses = Vec::new();
        for _ in 0..150 {
            let loss = loss(&decoder, &batch);
            losses.push(loss.to_scalar::<f32>().unwrap());
            optimiser.step(&parameters, &Gradients::of(&loss, &parameters).unwrap(), 0.01).unwrap();
        }
        (losses, answer_scores(&decoder.logits(&batch).unwrap(), &batch).unwrap())
    };
    let (losses, exact) = run();
    assert!(losses[0] > 2.0 && losses[149] < 0.05, "{} {}", losses[0], losses[149]);
    assert_eq!(exact, [true, true, true]);
    assert_eq!(run().0, losses);
}

#[test]
fn fresh_adapters_change_nothing_and_trained_ones_merge() {
    let mut whole = Parameters::default();
    let config = TINY.decoder(11, 32, PositionEncoding::Rope);
    let loaded = Decoder::fresh(&config, 3, &mut whole, &Device::Cpu).unwrap();
    let settings =
        AdapterSettings { rank: 2, alpha: 4.0, targets: vec!["q_proj".into(), "down_proj".into()], dropout: 0.0 };
    let mut trained = Parameters::default();
    let mut tensor = |name: &str| Ok(whole.get(name).unwrap().as_tensor().detach());
    let adapted = Decoder::adapted(&config, &mut tensor, &settings, 5, &mut trained, &Device::Cpu).unwrap();
    assert_eq!(trained.iter().count(), 8, "two factors of two matrices in two layers");
    let batch = Batch::new(&examples(), 0, &Device::Cpu).unwrap();
    let logits = |decoder: &Decoder| decoder.logits(&batch).unwrap().to_vec2::<f32>().unwrap();
    assert_eq!(logits(&loaded), logits(&adapted));
    let mut optimiser = AdamW::new(AdamWSettings::default());
    for _ in 0..30 {
        let gradients = Gradients::of(&loss(&adapted, &batch), &trained).unwrap();
        optimiser.step(&trained, &gradients, 0.05).unwrap();
    }
    let unmerged = logits(&adapted);
    assert_ne!(unmerged, logits(&loaded));
    for (name, weight) in adapted.merged().unwrap() {
        whole.get(&name).unwrap().set(&weight).unwrap();
    }
    for (a, b) in logits(&loaded).iter().flatten().zip(unmerged.iter().flatten()) {
        assert!((a - b).abs() < 1e-4, "{a} {b}");
    }
}

#[test]
fn unsupported_parts_are_named() {
    let mut config = TINY.decoder(11, 32, PositionEncoding::Rope);
    config.head_bias = true;
    let failed = Decoder::fresh(&config, 1, &mut Parameters::default(), &Device::Cpu).unwrap_err();
    assert!(failed.to_string().contains("a bias in the output head"), "{failed}");
}
