//! Sizes of number models and their positional encodings.
use serde::{Deserialize, Serialize};

use super::TrainError;
use earnest_models::checkpoint::{
    Activation, BlockLayout, DecoderConfig, LayerConfig, Norm, Position, QkNorm, Rope, RopeScaling,
};
use earnest_results::available_memory;

/// Positional encoding (Number Cookbook, A.4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PositionEncoding {
    /// Rotary embedding.
    #[default]
    Rope,
    /// No positional encoding: order comes from the causal mask alone.
    Nope,
    /// Penalty on attention scores, linear in the distance, with the published sign.
    Alibi,
    /// The same with the sign of the Number Cookbook's program, which favours distant tokens.
    #[serde(rename = "alibi-reversed")]
    AlibiReversed,
}

impl PositionEncoding {
    /// All of them.
    pub const ALL: [PositionEncoding; 4] =
        [PositionEncoding::Rope, PositionEncoding::Nope, PositionEncoding::Alibi, PositionEncoding::AlibiReversed];
}

/// Most layers of a model that is trained.
const MOST_LAYERS: usize = 1_000;
/// Largest width of its residual stream and of its feed-forward block.
const WIDEST: usize = 1 << 18;
/// Most parameters, some three times those of the largest named size.
const MOST_PARAMETERS: usize = 10_000_000_000;

/// Dimensions of a decoder in the Llama architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// Number of layers.
    pub layers: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Width of the feed-forward block.
    pub intermediate: usize,
    /// Number of query heads.
    pub heads: usize,
    /// Number of key/value heads.
    pub kv_heads: usize,
}

impl Size {
    /// Named sizes; the name gives the number of parameters without embeddings.
    pub const NAMED: [(&'static str, Size); 6] = [
        // Two layers, as the paper's smallest (1.3M in Table 13), at a quarter of its width.
        ("0.3m", Size { layers: 2, hidden: 128, intermediate: 448, heads: 4, kv_heads: 2 }),
        ("1.3m", Size { layers: 2, hidden: 256, intermediate: 768, heads: 4, kv_heads: 2 }),
        ("5m", Size { layers: 6, hidden: 256, intermediate: 896, heads: 4, kv_heads: 2 }),
        // Table 11.
        ("0.1b", Size { layers: 8, hidden: 1024, intermediate: 3584, heads: 8, kv_heads: 2 }),
        ("0.9b", Size { layers: 16, hidden: 2048, intermediate: 7168, heads: 16, kv_heads: 4 }),
        ("3b", Size { layers: 24, hidden: 3072, intermediate: 10_752, heads: 24, kv_heads: 6 }),
    ];

    /// Parses a name, ignoring case, or five numbers joined by commas, which [`Size::check`] checks.
    pub fn parse(text: &str) -> Option<Size> {
        if let Some((_, size)) = Self::NAMED.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)) {
            return Some(*size);
        }
        let numbers: Vec<usize> = text.split(',').map(|part| part.trim().parse().ok()).collect::<Option<_>>()?;
        let [layers, hidden, intermediate, heads, kv_heads] = numbers.try_into().ok()?;
        Some(Size { layers, hidden, intermediate, heads, kv_heads })
    }

    /// Returns the width of a head.
    pub fn head_dim(&self) -> usize {
        self.hidden / self.heads
    }

    /// Returns the number of parameters without the embedding table; the largest number for one beyond it.
    pub fn parameters(&self) -> usize {
        let (hidden, head) = (self.hidden as u128, self.head_dim() as u128);
        let attention = hidden * head * 2 * (self.heads as u128 + self.kv_heads as u128);
        let layer = attention.saturating_add(3 * hidden * self.intermediate as u128).saturating_add(2 * hidden);
        let all = (self.layers as u128).saturating_mul(layer).saturating_add(hidden);
        usize::try_from(all).unwrap_or(usize::MAX)
    }

    /// Checks that there is memory for training with a vocabulary of this size.
    ///
    /// # Errors
    /// [`TrainError::Setting`].
    pub(crate) fn check_memory(&self, vocabulary: usize) -> Result<(), TrainError> {
        // A weight, the gradients of a batch's parts and their sum, two moments of the optimiser, and what is written: measured.
        const BYTES: u128 = 40;
        let parameters = self.parameters() as u128 + vocabulary as u128 * self.hidden as u128;
        let needed = parameters * BYTES;
        match available_memory() {
            Some(available) if needed > u128::from(available) => Err(TrainError::Setting {
                setting: "size",
                problem: format!(
                    "training {parameters} parameters takes {} MiB of memory, and {} MiB are free",
                    needed >> 20,
                    available >> 20
                ),
            }),
            _ => Ok(()),
        }
    }

    /// Checks that the dimensions are compatible.
    ///
    /// # Errors
    /// [`TrainError::Setting`].
    pub fn check(&self) -> Result<(), TrainError> {
        let wrong = |problem: String| Err(TrainError::Setting { setting: "size", problem });
        let Size { layers, hidden, intermediate, heads, kv_heads } = *self;
        if [layers, hidden, intermediate, heads, kv_heads].contains(&0) {
            return wrong("every dimension must be at least 1".into());
        }
        let bounds = [
            ("layers", layers, MOST_LAYERS),
            ("width", hidden, WIDEST),
            ("width of the feed-forward block", intermediate, WIDEST),
            ("heads", heads, WIDEST),
        ];
        if let Some((name, value, most)) = bounds.into_iter().find(|(_, value, most)| value > most) {
            return wrong(format!("{name}: {value} is more than {most}"));
        }
        let parameters = self.parameters();
        if parameters > MOST_PARAMETERS {
            return wrong(format!("it has {parameters} parameters, more than {MOST_PARAMETERS}"));
        }
        if !hidden.is_multiple_of(heads) || !heads.is_multiple_of(kv_heads) {
            return wrong(format!(
                "{hidden} must be a multiple of {heads} heads, and {heads} heads a multiple of {kv_heads} key heads"
            ));
        }
        if !self.head_dim().is_multiple_of(2) || self.head_dim() > 256 {
            return wrong(format!("a head would be {} wide; its width must be even and at most 256", self.head_dim()));
        }
        Ok(())
    }

    /// Returns the architecture: Llama with RMS norms, SwiGLU and tied embeddings.
    pub fn decoder(&self, vocab_size: usize, max_positions: usize, encoding: PositionEncoding) -> DecoderConfig {
        let head_dim = self.head_dim();
        let (architecture, position) = match encoding {
            PositionEncoding::Rope => ("LlamaForCausalLM", Position::Rotary(0)),
            PositionEncoding::Nope => ("SmolLM3ForCausalLM", Position::None),
            PositionEncoding::Alibi => ("EarnestAlibiForCausalLM", Position::Alibi),
            // A name of its own: versions that do not know it refuse it instead of applying the other sign.
            PositionEncoding::AlibiReversed => ("EarnestReversedAlibiForCausalLM", Position::AlibiReversed),
        };
        DecoderConfig {
            architecture: architecture.to_owned(),
            vocab_size,
            hidden_size: self.hidden,
            intermediate_size: self.intermediate,
            num_heads: self.heads,
            num_kv_heads: self.kv_heads,
            head_dim,
            max_positions,
            norm: Norm::Rms { eps: 1e-5 },
            block: BlockLayout::PreNorm,
            activation: Activation::Silu,
            gated: true,
            experts: None,
            embedding_scale: 1.0,
            residual_scale: 1.0,
            logit_scale: 1.0,
            tied_embeddings: true,
            head_bias: false,
            qkv_bias: false,
            output_bias: false,
            mlp_bias: false,
            qk_norm: QkNorm::None,
            value_norm: false,
            sinks: false,
            query_growth: None,
            latent: None,
            linear: None,
            gated_attention: false,
            layer_inputs: None,
            streams: None,
            layer_scalar: false,
            placeholders: None,
            rotary_pairs: false,
            attention_scale: 1.0 / (head_dim as f32).sqrt(),
            attention_softcap: None,
            final_softcap: None,
            layers: vec![LayerConfig::plain(None, position, self.kv_heads, head_dim, self.intermediate); self.layers],
            ropes: vec![Rope { theta: 10_000.0, dims: head_dim, scaling: RopeScaling::None }],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_beyond_every_memory_are_refused() {
        for (size, problem) in [
            ([usize::MAX, 192, 512, 6, 2], "layers"),
            ([3, 192, usize::MAX, 6, 2], "width of the feed-forward block"),
            ([3, usize::MAX - 1, 512, 2, 1], "width"),
            ([1_000, 65_536, 65_536, 256, 256], "parameters, more than 10000000000"),
        ] {
            let [layers, hidden, intermediate, heads, kv_heads] = size;
            let found = Size { layers, hidden, intermediate, heads, kv_heads }.check().unwrap_err().to_string();
            assert!(found.contains(problem), "{found}");
        }
        // More than any machine has, within the bounds of a size.
        let wide = Size { layers: 1, hidden: 1 << 18, intermediate: 1, heads: 1 << 11, kv_heads: 1 };
        if available_memory().is_some() {
            let found = wide.check_memory(usize::MAX).unwrap_err().to_string();
            assert!(found.contains("MiB are free"), "{found}");
        }
    }

    #[test]
    fn table_11_counts() {
        // Parameters without embeddings, counted independently from the table's widths.
        for (name, count) in [("0.1b", 109_069_312), ("0.9b", 872_482_816), ("3B", 2_944_551_936)] {
            assert_eq!(Size::parse(name).unwrap().parameters(), count, "{name}");
        }
        assert!(Size::NAMED.iter().all(|(_, size)| size.check().is_ok()));
    }

    #[test]
    fn incompatible_widths_are_named() {
        let size = Size { layers: 1, hidden: 100, intermediate: 10, heads: 3, kv_heads: 1 };
        assert!(size.check().unwrap_err().to_string().contains("3 heads"));
        assert!(Size { heads: 4, kv_heads: 0, ..size }.check().is_err());
        assert!(Size { heads: 4, kv_heads: 1, ..size }.check().unwrap_err().to_string().contains("25 wide"));
    }
}
