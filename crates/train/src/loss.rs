//! Loss and exact match over the tokens of answers.
use candle_core::{D, Result, Tensor};

use super::Batch;

/// Computes the cross-entropy of the targets, summed, in nats. `logits` is `[targets, vocabulary]`.
pub fn answer_loss(logits: &Tensor, batch: &Batch) -> Result<Tensor> {
    let total = logits.log_sum_exp(D::Minus1)?;
    let chosen = logits.gather(&batch.targets.unsqueeze(1)?, 1)?.squeeze(1)?;
    (total - chosen)?.sum_all()
}

/// Scores every example by exact match: true if each of its targets, the end token included, is the most probable token given
/// the targets before it, which is when greedy decoding produces the answer. `logits` is `[targets, vocabulary]`.
pub fn answer_scores(logits: &Tensor, batch: &Batch) -> Result<Vec<bool>> {
    let best = logits.argmax(D::Minus1)?.to_vec1::<u32>()?;
    let targets = batch.targets.to_vec1::<u32>()?;
    let mut at = 0;
    Ok(batch
        .answer_lengths
        .iter()
        .map(|&count| {
            let all = best[at..at + count] == targets[at..at + count];
            at += count;
            all
        })
        .collect())
}
