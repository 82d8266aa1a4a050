//! Checkpoints of random weights in the shape of a published model, for measurements: nothing is read from a disk.
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::hf;
use super::open::Weights;
use super::tokenizer::{self, Tokenizer, TokenizerSettings};
use super::{
    Checkpoint, CheckpointError, Format, GenerationDefaults, Parameter, PassedKeys, Tensor, Values, WeightFormat,
};

/// Values between two matrices' first ones are multiples of this, so that copies on a device stay aligned.
const ALIGNMENT: usize = 128;

/// Values of the block that all matrices are cut from: 64 MiB, more than a GPU's second cache. A prime number of aligned pieces, so that rows of a matrix
/// repeat after more than any vocabulary has.
const BLOCK: usize = 262_139 * ALIGNMENT;

/// A published configuration.
struct Shape {
    name: &'static str,
    family: &'static str,
    hidden: usize,
    inner: usize,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    layers: usize,
    vocab: usize,
    /// Experts of a layer, and those of a token; 0 for a dense model.
    experts: [usize; 2],
    tied: bool,
}

const LLAMA: Shape = Shape {
    name: "llama-3-8b",
    family: "llama",
    hidden: 4096,
    inner: 14336,
    heads: 32,
    kv_heads: 8,
    head_dim: 128,
    layers: 32,
    vocab: 128_256,
    experts: [0, 0],
    tied: false,
};

const SHAPES: [Shape; 6] = [
    Shape {
        name: "qwen2.5-0.5b",
        family: "qwen2",
        hidden: 896,
        inner: 4864,
        heads: 14,
        kv_heads: 2,
        head_dim: 64,
        layers: 24,
        vocab: 151_936,
        tied: true,
        ..LLAMA
    },
    Shape { name: "llama-3.2-1b", hidden: 2048, inner: 8192, head_dim: 64, layers: 16, tied: true, ..LLAMA },
    LLAMA,
    Shape { name: "llama-3-70b", hidden: 8192, inner: 28672, heads: 64, layers: 80, ..LLAMA },
    Shape {
        name: "qwen3-30b-a3b",
        family: "qwen3_moe",
        hidden: 2048,
        inner: 768,
        kv_heads: 4,
        layers: 48,
        vocab: 151_936,
        experts: [128, 8],
        ..LLAMA
    },
    // For trying the measurements on a CPU.
    Shape {
        name: "tiny",
        hidden: 256,
        inner: 512,
        heads: 4,
        kv_heads: 2,
        head_dim: 64,
        layers: 2,
        vocab: 2048,
        ..LLAMA
    },
];

impl Shape {
    fn config(&self, layers: usize) -> Map<String, Value> {
        let architecture = match self.family {
            "qwen2" => "Qwen2ForCausalLM",
            "qwen3_moe" => "Qwen3MoeForCausalLM",
            _ => "LlamaForCausalLM",
        };
        let mut config = json!({
            "architectures": [architecture],
            "model_type": self.family,
            "hidden_size": self.hidden,
            "intermediate_size": self.inner,
            "num_hidden_layers": layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "vocab_size": self.vocab,
            "max_position_embeddings": 8192,
            "rms_norm_eps": 1e-5,
            "rope_theta": 500_000.0,
            "hidden_act": "silu",
            "tie_word_embeddings": self.tied,
            "torch_dtype": "bfloat16",
            "bos_token_id": 0,
            "eos_token_id": 0,
        });
        let more = match self.family {
            "llama" => json!({"head_dim": self.head_dim, "attention_bias": false, "mlp_bias": false}),
            "qwen3_moe" => json!({
                "head_dim": self.head_dim, "attention_bias": false, "num_experts": self.experts[0],
                "num_experts_per_tok": self.experts[1], "moe_intermediate_size": self.inner, "norm_topk_prob": true,
                "decoder_sparse_step": 1, "mlp_only_layers": [],
            }),
            _ => json!({}),
        };
        let config = config.as_object_mut().map(std::mem::take).unwrap_or_default();
        config.into_iter().chain(more.as_object().cloned().unwrap_or_default()).collect()
    }
}

/// Weights cut from one block of random bf16 numbers with a standard deviation of about 0.02; scales of norms are 1.
#[derive(Debug)]
pub(super) struct RandomWeights {
    block: Vec<u16>,
    /// First value of each parameter in the block.
    starts: HashMap<Parameter, usize>,
}

impl RandomWeights {
    fn new(parameters: &[(Parameter, Vec<usize>)]) -> RandomWeights {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 32
        };
        // The mean of four uniform numbers is close to normal; bits are those of bf16.
        let mut value = || {
            let bits = next();
            let sum: u64 = (0..4).map(|i| bits >> (8 * i) & 0xff).sum();
            let x = (sum as f32 - 510.0) * (0.02 / 148.0);
            half::bf16::from_f32(x).to_bits()
        };
        // Parameters begin at places that follow each other by no divisor of a row, so that no two are alike.
        let starts = parameters.iter().enumerate().map(|(i, (p, _))| (*p, i * 104_729 * ALIGNMENT % BLOCK)).collect();
        RandomWeights { block: (0..BLOCK).map(|_| value()).collect(), starts }
    }

    fn start(&self, p: Parameter) -> usize {
        self.starts.get(&p).copied().unwrap_or_default()
    }

    pub(super) fn tensor(&self, p: Parameter, shape: &[usize]) -> Tensor {
        if is_scale(p) {
            return Tensor { shape: shape.to_vec(), values: Values::F32(vec![1.0; shape.iter().product()]) };
        }
        let mut values = Vec::with_capacity(shape.iter().product());
        for (from, count) in pieces(self.start(p), shape.iter().product()) {
            values.extend_from_slice(&self.block[from..from + count]);
        }
        Tensor { shape: shape.to_vec(), values: Values::Bf16(values) }
    }
}

/// Slices of the block that `count` values from `start` consist of: (first, number).
fn pieces(start: usize, count: usize) -> impl Iterator<Item = (usize, usize)> {
    let (mut from, mut left) = (start, count);
    std::iter::from_fn(move || {
        let piece = (from, left.min(BLOCK - from));
        (from, left) = (0, left - piece.1);
        (piece.1 > 0).then_some(piece)
    })
}

/// True if a parameter is the scale of a norm.
fn is_scale(p: Parameter) -> bool {
    let name = match p {
        Parameter::Layer(_, p) => format!("{p:?}"),
        p => format!("{p:?}"),
    };
    name.ends_with("Norm")
}

/// A parameter's values as copies of parts of one block of bf16 numbers.
#[derive(Debug)]
pub struct BlockCopies<'a> {
    pub block: &'a [u16],
    /// First value and number of values of each part, in order.
    pub parts: Vec<(usize, usize)>,
}

impl Checkpoint {
    /// Names of the shapes of [`Checkpoint::random`].
    pub fn random_shapes() -> impl Iterator<Item = &'static str> {
        SHAPES.iter().map(|shape| shape.name)
    }

    /// Makes a checkpoint of random weights in the shape of a published model, with all its layers or so many. Its tokenizer knows digits only: prompts
    /// are token ids.
    ///
    /// # Errors
    /// [`CheckpointError::Field`] for a name that is not of [`Checkpoint::random_shapes`].
    pub fn random(name: &str, layers: Option<usize>) -> Result<Checkpoint, CheckpointError> {
        let source = PathBuf::from(format!("random {name}"));
        let Some(shape) = SHAPES.iter().find(|shape| shape.name == name) else {
            let known: Vec<&str> = Checkpoint::random_shapes().collect();
            let (field, value) = ("shape".to_owned(), format!("{name:?}"));
            let reason = format!("there are {}", known.join(", "));
            return Err(CheckpointError::Field { path: source, field, value, reason });
        };
        let read = hf::config::parse(&source, &shape.config(layers.unwrap_or(shape.layers)), &[])?;
        let parameters = read.config.parameters();
        let tokenizer = digits(&source, read.config.vocab_size)?;
        let generation = GenerationDefaults { eos_ids: read.ids.eos, ..GenerationDefaults::default() };
        Ok(Checkpoint {
            generation: generation.complete(&source, &tokenizer, read.config.vocab_size)?,
            weights: Weights::Random(RandomWeights::new(&parameters)),
            source,
            format: Format::Safetensors,
            quantisation: None,
            shapes: parameters.into_iter().collect(),
            config: read.config,
            tokenizer,
            chat_template: None,
            passed_keys: PassedKeys::default(),
            pre_tokenizer: None,
            own_pre_tokenizer: None,
            metadata_files: vec![],
            weight_format: WeightFormat::default(),
        })
    }

    /// Returns a random parameter's values as copies of one block, so that a device need not get them from the host; none if the checkpoint has files,
    /// another type is asked for, or the parameter is no matrix.
    pub fn block_copies(&self, p: Parameter, shape: &[usize]) -> Option<BlockCopies<'_>> {
        let Weights::Random(random) = &self.weights else { return None };
        if !self.weight_format.keeps_values() || shape.len() < 2 || self.shapes.get(&p).is_none_or(|s| s != shape) {
            return None;
        }
        Some(BlockCopies { block: &random.block, parts: pieces(random.start(p), shape.iter().product()).collect() })
    }
}

fn digits(source: &Path, embeddings: usize) -> Result<Tokenizer, CheckpointError> {
    let mut vocab = Map::from_iter([("<eos>".to_owned(), json!(0))]);
    vocab.extend((0..10).map(|digit| (digit.to_string(), json!(digit + 1))));
    let end = json!({"id": 0, "content": "<eos>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true});
    let file = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [end], "normalizer": null,
        "pre_tokenizer": {"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated", "invert": false},
        "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "<eos>"},
    });
    let backend = tokenizer::read(file.to_string().as_bytes())
        .map_err(|fault| CheckpointError::Tokenizer { path: source.to_path_buf(), what: fault.to_string() })?;
    Tokenizer::new(source.to_path_buf(), backend, TokenizerSettings::default(), embeddings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::LayerParameter as P;

    #[test]
    fn every_shape_is_a_checkpoint_whose_copies_are_its_tensors() {
        for name in ["qwen2.5-0.5b", "qwen3-30b-a3b", "tiny"] {
            let checkpoint = Checkpoint::random(name, Some(2)).unwrap();
            assert_eq!(checkpoint.config.layers.len(), 2);
            let (hidden, width) =
                (checkpoint.config.hidden_size, checkpoint.config.num_heads * checkpoint.config.head_dim);
            for (p, shape) in [
                (Parameter::Layer(1, P::Query), [width, hidden]),
                (Parameter::Embedding, [checkpoint.config.vocab_size, hidden]),
            ] {
                let Values::Bf16(values) = checkpoint.tensor(p, &shape).unwrap().values else { panic!("bf16") };
                let copies = checkpoint.block_copies(p, &shape).unwrap();
                let copied: Vec<u16> =
                    copies.parts.iter().flat_map(|&(from, n)| &copies.block[from..from + n]).copied().collect();
                assert!(copied == values && copies.parts.iter().all(|(from, _)| from % ALIGNMENT == 0), "{name} {p}");
            }
            let norm = checkpoint.tensor(Parameter::FinalNorm, &[hidden]).unwrap().values;
            assert!(matches!(norm, Values::F32(ones) if ones.iter().all(|x| *x == 1.0)));
        }
        let unknown = Checkpoint::random("llama-9", None).unwrap_err().to_string();
        assert!(unknown.contains("llama-9") && unknown.contains("llama-3-8b"), "{unknown}");
    }

    #[test]
    fn no_two_rows_of_a_matrix_are_the_same_part_of_the_block() {
        for shape in &SHAPES {
            let mut firsts: Vec<usize> = (0..shape.vocab).map(|row| row * shape.hidden % BLOCK).collect();
            firsts.sort_unstable();
            assert!(firsts.windows(2).all(|two| two[0] < two[1]), "{}", shape.name);
        }
    }

    #[test]
    fn values_are_spread_as_weights_are() {
        let random = RandomWeights::new(&[]);
        let some = random.block.iter().take(100_000).map(|x| f64::from(half::bf16::from_bits(*x).to_f32()));
        let (sum, square) = some.fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
        let (mean, deviation) = (sum / 1e5, (square / 1e5).sqrt());
        assert!(mean.abs() < 5e-4 && (0.015..0.025).contains(&deviation), "{mean} {deviation}");
    }
}
