//! Gradient of a batch, whose parts are computed in parallel.
use candle_core::Device;

use super::plain::{self, Workspace};
use super::tokenizer::PAD;
use super::{Batch, Decoder, Example, Gradients, Parameters, TrainError, answer_loss};
use earnest_models::checkpoint::DecoderConfig;

/// Loss and gradients of a batch.
pub(super) struct BatchGradients {
    /// Mean loss over the targets, in nats per token.
    pub(super) loss: f64,
    pub(super) gradients: Gradients,
    /// Tokens of the batch, padding included.
    pub(super) tokens: usize,
}

/// Division of a batch into parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts {
    /// Number of parts.
    pub(super) count: usize,
    /// Parts that are computed in parallel; fewer take less memory.
    pub(super) parallel: usize,
}

/// Computes the gradients of the mean loss. `decoder` returns the model for a part. Parts are summed in order, so that the result
/// does not depend on the threads' timing.
pub(super) fn gradients(
    decoder: &(dyn Fn(usize) -> Decoder + Sync),
    parameters: &Parameters,
    examples: &[Example],
    parts: Parts,
    device: &Device,
) -> Result<BatchGradients, TrainError> {
    let batches: Vec<Batch> = examples
        .chunks(examples.len().div_ceil(parts.count).max(1))
        .map(|part| Batch::new(part, PAD, device))
        .collect::<Result<_, _>>()?;
    let targets: usize = batches.iter().map(Batch::targets).sum();
    let one = |index: usize, batch: &Batch| -> candle_core::Result<(f64, Gradients)> {
        let loss = (answer_loss(&decoder(index).logits(batch)?, batch)? / targets as f64)?;
        Ok((f64::from(loss.to_scalar::<f32>()?), Gradients::of(&loss, parameters)?))
    };
    let mut computed = BatchGradients { loss: 0.0, gradients: Gradients::default(), tokens: 0 };
    for (round, batches) in batches.chunks(parts.parallel.max(1)).enumerate() {
        let from = round * parts.parallel.max(1);
        let results = in_parallel(batches, &|index, batch| one(from + index, batch));
        for (result, batch) in results.into_iter().zip(batches) {
            let (loss, gradients) = result?;
            computed.loss += loss;
            computed.tokens += batch.tokens();
            computed.gradients.add(gradients)?;
        }
    }
    Ok(computed)
}

/// Computes the gradients of the mean loss of a number model on the CPU; as many parts in parallel as there are workspaces.
pub(super) fn plain_gradients(
    config: &DecoderConfig,
    parameters: &Parameters,
    examples: &[Example],
    workspaces: &mut [Workspace],
) -> Result<BatchGradients, TrainError> {
    let parts: Vec<&[Example]> = examples.chunks(examples.len().div_ceil(workspaces.len()).max(1)).collect();
    let targets: usize = examples.iter().map(|example| example.ids.len() - example.prompt).sum();
    let one =
        |part: &[Example], workspace: &mut Workspace| plain::gradients(config, parameters, part, targets, workspace);
    let results: Vec<Result<_, TrainError>> = std::thread::scope(|scope| {
        let mut pairs = parts.iter().zip(workspaces);
        let first = pairs.next();
        let threads: Vec<_> = pairs
            .map(|(part, workspace)| std::thread::Builder::new().spawn_scoped(scope, move || one(part, workspace)))
            .collect();
        let mut results: Vec<_> = first.map(|(part, workspace)| Ok(one(part, workspace)?)).into_iter().collect();
        results.extend(threads.into_iter().map(|thread| match thread {
            Ok(thread) => Ok(thread.join().expect("a batch's computation does not panic")?),
            Err(error) => Err(TrainError::thread(&error)),
        }));
        results
    });
    let mut computed = BatchGradients { loss: 0.0, gradients: Gradients::default(), tokens: 0 };
    for (result, part) in results.into_iter().zip(parts) {
        let (loss, gradients) = result?;
        computed.loss += loss;
        // As if padded, so that logs of all versions count the same.
        computed.tokens += part.len() * part.iter().map(|example| example.ids.len()).max().unwrap_or(0);
        computed.gradients.add(gradients)?;
    }
    Ok(computed)
}

/// Computes `one` for every batch in parallel; returns the results in order.
pub(super) fn in_parallel<T: Send>(
    batches: &[Batch],
    one: &(dyn Fn(usize, &Batch) -> candle_core::Result<T> + Sync),
) -> Vec<candle_core::Result<T>> {
    std::thread::scope(|scope| {
        let Some((first, others)) = batches.split_first() else { return Vec::new() };
        let threads: Vec<_> = (1..)
            .zip(others)
            .map(|(index, batch)| {
                let thread = std::thread::Builder::new().spawn_scoped(scope, move || one(index, batch));
                (index, batch, thread)
            })
            .collect();
        let mut results = vec![one(0, first)];
        results.extend(threads.into_iter().map(|(index, batch, thread)| match thread {
            Ok(thread) => thread.join().expect("a batch's computation does not panic"),
            // Without another thread it is computed on this one.
            Err(_) => one(index, batch),
        }));
        results
    })
}
