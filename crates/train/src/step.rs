//! One step: the gradient of a batch, in parts at the same time.
use candle_core::Device;

use super::tokenizer::PAD;
use super::{Batch, Decoder, Example, Gradients, Parameters, TrainError, answer_loss};

/// A batch's loss and gradient.
pub(super) struct Computed {
    /// Mean over the learnt tokens, in nats.
    pub(super) loss: f64,
    pub(super) gradients: Gradients,
    /// Tokens computed, padding included.
    pub(super) tokens: usize,
}

/// How a batch is cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts {
    /// Pieces of the batch.
    pub(super) count: usize,
    /// Pieces that are computed at the same time; the others wait, which saves memory.
    pub(super) at_once: usize,
}

impl Parts {
    /// All pieces at the same time.
    pub(super) fn at_once(count: usize) -> Self {
        Parts { count, at_once: count }
    }
}

/// Computes the gradient of the mean loss. `decoder` gives the model of a piece. Pieces are added in their order, so that the
/// sum does not depend on which thread was first.
pub(super) fn gradients(
    decoder: &(dyn Fn(usize) -> Decoder + Sync),
    parameters: &Parameters,
    examples: &[Example],
    parts: Parts,
    device: &Device,
) -> Result<Computed, TrainError> {
    let batches: Vec<Batch> = examples
        .chunks(examples.len().div_ceil(parts.count).max(1))
        .map(|part| Batch::new(part, PAD, device))
        .collect::<Result<_, _>>()?;
    let targets: usize = batches.iter().map(Batch::targets).sum();
    let one = |place: usize, batch: &Batch| -> candle_core::Result<(f64, Gradients)> {
        let loss = (answer_loss(&decoder(place).logits(batch)?, batch)? / targets as f64)?;
        Ok((f64::from(loss.to_scalar::<f32>()?), Gradients::of(&loss, parameters)?))
    };
    let mut computed = Computed { loss: 0.0, gradients: Gradients::default(), tokens: 0 };
    for (round, batches) in batches.chunks(parts.at_once.max(1)).enumerate() {
        let from = round * parts.at_once.max(1);
        let results = side_by_side(batches, &|place, batch| one(from + place, batch));
        for (result, batch) in results.into_iter().zip(batches) {
            let (loss, gradients) = result?;
            computed.loss += loss;
            computed.tokens += batch.tokens();
            computed.gradients.add(gradients)?;
        }
    }
    Ok(computed)
}

/// The results of several batches that are computed at the same time, in their order.
pub(super) fn side_by_side<T: Send>(
    batches: &[Batch],
    one: &(dyn Fn(usize, &Batch) -> candle_core::Result<T> + Sync),
) -> Vec<candle_core::Result<T>> {
    std::thread::scope(|scope| {
        let Some((first, others)) = batches.split_first() else { return Vec::new() };
        let threads: Vec<_> =
            others.iter().enumerate().map(|(place, batch)| scope.spawn(move || one(place + 1, batch))).collect();
        let mut results = vec![one(0, first)];
        results.extend(threads.into_iter().map(|thread| thread.join().expect("a batch's computation does not panic")));
        results
    })
}
