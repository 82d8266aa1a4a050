//! Draws against the CPU's.

use super::{get, put};
use crate::core::sampler::{sample, uniform};
use crate::cpu::kernels::Isa;
use crate::cuda::device::{Device, DeviceError, Element};
use crate::cuda::kernels::Unit;
use crate::{Sampling, SamplingKey};

/// Draws on the device under many settings: how many differ from the CPU's, and of how many.
pub(crate) fn choices<D: Device>(device: &mut D) -> Result<(usize, usize), DeviceError> {
    let unit = device.load(&Unit::layers(Element::F32))?;
    let kernel = device.kernel(unit, "choose", 0)?;
    let vocab = 1537;
    // Many ties, as 16-bit logits have them.
    let row =
        |r: u64| (0..vocab).map(|i| ((i * 7919 + r as usize * 131) % 257) as f32 / 24.0 - 4.0).collect::<Vec<f32>>();
    let mut settings = vec![];
    for top_k in [0, 2, 3, 40, 5000] {
        for top_p in [1.0, 0.9, 0.35, 0.01] {
            for min_p in [0.0, 0.2] {
                settings.push(Sampling { temperature: 0.8, top_k, top_p, min_p, repetition_penalty: 1.0 });
            }
        }
    }
    let draws: Vec<(usize, u64)> = (0..settings.len()).flat_map(|s| (0..6u64).map(move |step| (s, step))).collect();
    let key = SamplingKey([3; 32]);
    let mut metadata: Vec<u8> = vec![];
    for &(s, step) in &draws {
        let s = &settings[s];
        metadata.extend(uniform(key, step).to_ne_bytes());
        metadata.extend(s.temperature.to_ne_bytes());
        metadata.extend((-1i32).to_ne_bytes());
        metadata.extend((s.top_k as i32).to_ne_bytes());
        metadata.extend([s.top_p, s.min_p, 0.0].iter().flat_map(|x| x.to_ne_bytes()));
    }
    let rows: Vec<f32> = draws.iter().flat_map(|&(_, step)| row(step)).collect();
    let (logits, metadata) = (put(device, &rows)?, put(device, &metadata)?);
    let (chosen, sampled) = (put(device, &vec![0i32; 4 * draws.len()])?, put(device, &vec![0i32; draws.len()])?);
    let arguments = [logits.into(), (vocab as i32).into(), metadata.into(), chosen.into(), sampled.into()];
    // SAFETY: the kernel's parameters, as many rows as draws.
    unsafe { device.launch(kernel, [draws.len(), 1, 1], 512, 0, &arguments)? };
    let (chosen, sampled) = (get::<i32>(device, chosen, 4 * draws.len())?, get::<i32>(device, sampled, draws.len())?);
    let different = draws
        .iter()
        .enumerate()
        .filter(|&(i, &(s, step))| {
            let expected = sample(Isa::detect(), &row(step), &[], &settings[s], key, step, 0).map(|c| c.token as i32);
            expected.is_none_or(|token| (chosen[4 * i], sampled[i]) != (token, token))
        })
        .count();
    Ok((different, draws.len()))
}
