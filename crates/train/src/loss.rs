//! What is learnt: the tokens of answers, nothing else.
use candle_core::{D, Result, Tensor};

use super::Batch;

/// Cross-entropy of the answers' tokens, summed, in nats. `logits` is `[targets, vocabulary]`, as the decoder gives them for a
/// batch.
pub fn answer_loss(logits: &Tensor, batch: &Batch) -> Result<Tensor> {
    let total = logits.log_sum_exp(D::Minus1)?;
    let chosen = logits.gather(&batch.targets.unsqueeze(1)?, 1)?.squeeze(1)?;
    (total - chosen)?.sum_all()
}

/// Which examples are answered: those whose every token, the end included, is the most probable one after the right ones
/// before it. That is when greedy decoding writes the answer, so it is exact match. `logits` is `[targets, vocabulary]`.
pub fn answer_scores(logits: &Tensor, batch: &Batch) -> Result<Vec<bool>> {
    let best = logits.argmax(D::Minus1)?.to_vec1::<u32>()?;
    let targets = batch.targets.to_vec1::<u32>()?;
    let mut at = 0;
    Ok(batch
        .answers
        .iter()
        .map(|&count| {
            let all = best[at..at + count] == targets[at..at + count];
            at += count;
            all
        })
        .collect())
}
