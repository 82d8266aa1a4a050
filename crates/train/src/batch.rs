//! Examples side by side.
use candle_core::{Device, Result, Tensor};

/// A prompt and what should follow it, as token ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// Everything that the model sees: prompt, then answer, then the end token.
    pub ids: Vec<u32>,
    /// How many of them are the prompt; the others are learnt.
    pub prompt: usize,
}

/// Examples of different lengths, padded on the right. Padding is never attended to by what is learnt (the mask is causal)
/// and never learnt.
#[derive(Debug, Clone)]
pub struct Batch {
    /// `[examples, length]`
    pub(super) ids: Tensor,
    /// The first column whose next token is learnt in any example: of the last layer, nothing before it is needed.
    pub(super) first: usize,
    /// Columns that are the same in every example, all before `first`: NUPA's questions of one task begin with the same twenty
    /// words. They are computed once.
    pub(super) shared: usize,
    /// Places in the flattened `[examples * (length - first)]` whose next token is part of an answer.
    pub(super) places: Tensor,
    /// Those next tokens.
    pub(super) targets: Tensor,
    /// How many targets each example has, in order.
    pub(super) answers: Vec<usize>,
}

impl Batch {
    /// Pads with `pad`. Examples without an answer, or without a token before it, are a mistake of the caller.
    pub fn new(examples: &[Example], pad: u32, device: &Device) -> Result<Self> {
        let length = examples.iter().map(|example| example.ids.len()).max().unwrap_or(0);
        let first = examples.iter().map(|example| example.prompt).min().unwrap_or(1).saturating_sub(1);
        let shared = match examples {
            [first_example, others @ ..] if !others.is_empty() => (0..first)
                .take_while(|&at| others.iter().all(|example| example.ids[at] == first_example.ids[at]))
                .count(),
            _ => 0,
        };
        let mut ids = Vec::with_capacity(examples.len() * length);
        let (mut places, mut targets, mut answers) = (Vec::new(), Vec::new(), Vec::new());
        for (row, example) in examples.iter().enumerate() {
            assert!(example.prompt >= 1 && example.prompt < example.ids.len(), "an example has a prompt and an answer");
            ids.extend_from_slice(&example.ids);
            ids.resize((row + 1) * length, pad);
            for at in example.prompt..example.ids.len() {
                places.push((row * (length - first) + at - 1 - first) as u32);
                targets.push(example.ids[at]);
            }
            answers.push(example.ids.len() - example.prompt);
        }
        let count = targets.len();
        Ok(Batch {
            ids: Tensor::from_vec(ids, (examples.len(), length), device)?,
            first,
            shared,
            places: Tensor::from_vec(places, count, device)?,
            targets: Tensor::from_vec(targets, count, device)?,
            answers,
        })
    }

    /// Tokens that are learnt.
    pub fn targets(&self) -> usize {
        self.answers.iter().sum()
    }

    /// Tokens of all examples, padding included.
    pub fn tokens(&self) -> usize {
        self.ids.elem_count()
    }
}
