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

/// Computes the gradient of the mean loss. Parts are added in their order, so that the sum does not depend on which thread
/// was first.
pub(super) fn gradients(
    decoder: &Decoder,
    parameters: &Parameters,
    examples: &[Example],
    parts: usize,
    device: &Device,
) -> Result<Computed, TrainError> {
    let batches: Vec<Batch> = examples
        .chunks(examples.len().div_ceil(parts).max(1))
        .map(|part| Batch::new(part, PAD, device))
        .collect::<Result<_, _>>()?;
    let targets: usize = batches.iter().map(Batch::targets).sum();
    let one = |batch: &Batch| -> candle_core::Result<(f64, Gradients)> {
        let loss = (answer_loss(&decoder.logits(batch)?, batch)? / targets as f64)?;
        Ok((f64::from(loss.to_scalar::<f32>()?), Gradients::of(&loss, parameters)?))
    };
    let results: Vec<candle_core::Result<(f64, Gradients)>> = std::thread::scope(|scope| {
        let (first, others) = batches.split_first().expect("a batch has at least one part");
        let threads: Vec<_> = others.iter().map(|batch| scope.spawn(move || one(batch))).collect();
        let mut results = vec![one(first)];
        results.extend(threads.into_iter().map(|thread| thread.join().expect("gradients do not panic")));
        results
    });
    let mut computed = Computed { loss: 0.0, gradients: Gradients::default(), tokens: 0 };
    for (result, batch) in results.into_iter().zip(&batches) {
        let (loss, gradients) = result?;
        computed.loss += loss;
        computed.tokens += batch.tokens();
        computed.gradients.add(gradients)?;
    }
    Ok(computed)
}
