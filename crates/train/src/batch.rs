//! Batches of training examples.
use candle_core::{Device, Result, Tensor};

/// A prompt and its answer, as token ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// Prompt, answer and end token.
    pub ids: Vec<u32>,
    /// Length of the prompt; the tokens after it are the targets.
    pub prompt: usize,
}

/// Examples of different lengths, padded on the right. Padding is never a target, and no target attends to it because the mask
/// is causal.
#[derive(Debug, Clone)]
pub struct Batch {
    /// `[examples, length]`
    pub(super) ids: Tensor,
    /// First column whose next token is a target in any example: the last layer computes nothing before it.
    pub(super) first: usize,
    /// Length of the common prefix of all examples, at most `first`: NUPA's questions of one task begin with the same twenty words.
    pub(super) shared_prefix: usize,
    /// Rows of the flattened `[examples * (length - first)]` whose next token is a target.
    pub(super) target_rows: Tensor,
    /// Target ids, one for each of these rows.
    pub(super) targets: Tensor,
    /// Number of targets of each example.
    pub(super) answer_lengths: Vec<usize>,
}

impl Batch {
    /// Creates a batch, padded with `pad`.
    ///
    /// # Panics
    /// If an example has no answer, or no token before it.
    pub fn new(examples: &[Example], pad: u32, device: &Device) -> Result<Self> {
        let length = examples.iter().map(|example| example.ids.len()).max().unwrap_or(0);
        let first = examples.iter().map(|example| example.prompt).min().unwrap_or(1).saturating_sub(1);
        let shared_prefix = match examples {
            [first_example, others @ ..] if !others.is_empty() => (0..first)
                .take_while(|&at| others.iter().all(|example| example.ids[at] == first_example.ids[at]))
                .count(),
            _ => 0,
        };
        let mut ids = Vec::with_capacity(examples.len() * length);
        let (mut target_rows, mut targets, mut answer_lengths) = (Vec::new(), Vec::new(), Vec::new());
        for (row, example) in examples.iter().enumerate() {
            assert!(example.prompt >= 1 && example.prompt < example.ids.len(), "an example has a prompt and an answer");
            ids.extend_from_slice(&example.ids);
            ids.resize((row + 1) * length, pad);
            for at in example.prompt..example.ids.len() {
                target_rows.push((row * (length - first) + at - 1 - first) as u32);
                targets.push(example.ids[at]);
            }
            answer_lengths.push(example.ids.len() - example.prompt);
        }
        let count = targets.len();
        Ok(Batch {
            ids: Tensor::from_vec(ids, (examples.len(), length), device)?,
            first,
            shared_prefix,
            target_rows: Tensor::from_vec(target_rows, count, device)?,
            targets: Tensor::from_vec(targets, count, device)?,
            answer_lengths,
        })
    }

    /// Number of targets.
    pub fn targets(&self) -> usize {
        self.answer_lengths.iter().sum()
    }

    /// Number of tokens, padding included.
    pub fn tokens(&self) -> usize {
        self.ids.elem_count()
    }
}
