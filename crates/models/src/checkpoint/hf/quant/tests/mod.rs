//! Folders of random quantised matrices, packed here in the way of the programs that write them, number by number.

mod formats;
mod refusals;
use super::super::family::Family;
use super::super::names;
use crate::checkpoint::{Checkpoint, CheckpointError, DecoderConfig, Parameter, Values};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// A stored tensor: type, shape, bytes.
type Stored = (Dtype, Vec<usize>, Vec<u8>);

/// Random numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32 % limit
    }

    /// A positive number that bf16 and f16 hold exactly.
    fn scale(&mut self) -> f32 {
        (1 + self.below(127)) as f32 / 4096.0
    }
}

/// A matrix: what is stored beside its module's name, and the weights that this means, `[out, in]`.
struct Packed {
    stored: Vec<(&'static str, Stored)>,
    weights: Vec<f32>,
}

/// Writes a matrix of random numbers.
type Writer<'w> = dyn Fn(&mut Random, usize, usize) -> Packed + 'w;

struct Folder {
    config: Value,
    tensors: BTreeMap<String, Stored>,
    expected: HashMap<Parameter, Vec<f32>>,
}

fn bytes<T, const N: usize>(values: &[T], convert: impl Fn(&T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(convert).collect()
}

fn f32s(shape: &[usize], values: &[f32]) -> Stored {
    (Dtype::F32, shape.to_vec(), bytes(values, |v| v.to_le_bytes()))
}

fn f16s(shape: &[usize], values: &[f32]) -> Stored {
    (Dtype::F16, shape.to_vec(), bytes(values, |v| half::f16::from_f32(*v).to_le_bytes()))
}

fn bf16s(shape: &[usize], values: &[f32]) -> Stored {
    (Dtype::BF16, shape.to_vec(), bytes(values, |v| half::bf16::from_f32(*v).to_le_bytes()))
}

fn words(shape: &[usize], values: &[u32]) -> Stored {
    (Dtype::I32, shape.to_vec(), bytes(values, |v| v.to_le_bytes()))
}

impl Folder {
    /// A Llama of one layer whose widths are multiples of nothing useful, with its projections quantised.
    fn new(seed: u64, quantization: Value, writer: &Writer<'_>) -> Folder {
        let sizes = json!({"hidden_size": 40, "intermediate_size": 36, "num_attention_heads": 4, "num_key_value_heads": 2,
            "head_dim": 6});
        Folder::of(seed, "LlamaForCausalLM", sizes, quantization, writer)
    }

    fn of(seed: u64, architecture: &str, sizes: Value, quantization: Value, writer: &Writer<'_>) -> Folder {
        let mut config = json!({"architectures": [architecture], "num_hidden_layers": 1, "vocab_size": 512, "bos_token_id": 1,
            "eos_token_id": 2, "max_position_embeddings": 64, "tie_word_embeddings": false});
        let map = config.as_object_mut().unwrap();
        map.extend(sizes.as_object().unwrap().clone());
        map.insert("quantization_config".into(), quantization);
        let decoder = DecoderConfig::from_config_keys(Path::new("config.json"), map).unwrap();
        let family = Family::from_architecture(architecture).unwrap();
        let mut random = Random(seed);
        let mut folder = Folder { config, tensors: BTreeMap::new(), expected: HashMap::new() };
        let mut whole: HashMap<String, Vec<f32>> = HashMap::new();
        for (parameter, shape) in decoder.parameters() {
            let place = names::places(family, &decoder, parameter, &shape).swap_remove(0);
            if !whole.contains_key(&place.tensor) {
                let weights = match (parameter, place.whole.as_slice()) {
                    (Parameter::Layer(..), &[outputs, inputs]) => {
                        let packed = writer(&mut random, outputs, inputs);
                        let module = place.tensor.strip_suffix(".weight").unwrap();
                        for (name, stored) in packed.stored {
                            folder.tensors.insert(format!("{module}.{name}"), stored);
                        }
                        packed.weights
                    }
                    (_, plain) => {
                        let values: Vec<f32> =
                            (0..plain.iter().product()).map(|_| random.scale() * 64.0 - 1.0).collect();
                        folder.tensors.insert(place.tensor.clone(), f32s(plain, &values));
                        values
                    }
                };
                whole.insert(place.tensor.clone(), weights);
            }
            let count: usize = shape.iter().product();
            folder.expected.insert(parameter, whole[&place.tensor][place.start..place.start + count].to_vec());
        }
        folder
    }

    fn write(&self) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/engine/checkpoints/llama");
        std::fs::copy(golden.join("tokenizer.json"), folder.path().join("tokenizer.json")).unwrap();
        std::fs::write(folder.path().join("config.json"), self.config.to_string()).unwrap();
        let views = self.tensors.iter().map(|(name, (dtype, shape, bytes))| {
            (name.clone(), TensorView::new(*dtype, shape.clone(), bytes).unwrap())
        });
        let file = folder.path().join("model.safetensors");
        std::fs::write(file, safetensors::serialize(views, None).unwrap()).unwrap();
        folder
    }

    /// Checks that every weight comes back, bit for bit.
    fn check(&self) -> Checkpoint {
        let folder = self.write();
        let checkpoint = Checkpoint::open(folder.path()).unwrap();
        for (parameter, shape) in checkpoint.config.parameters() {
            let Values::F32(found) = checkpoint.tensor(parameter, &shape).unwrap().values else {
                panic!("{parameter}")
            };
            let same = found.iter().map(|v| v.to_bits()).eq(self.expected[&parameter].iter().map(|v| v.to_bits()));
            assert!(same && found.iter().any(|v| *v != 0.0), "{parameter}");
        }
        checkpoint
    }

    /// Returns the first error of opening and reading all tensors.
    fn refusal(&self) -> CheckpointError {
        let folder = self.write();
        let opened = Checkpoint::open(folder.path()).and_then(|checkpoint| {
            checkpoint.config.parameters().into_iter().try_for_each(|(p, shape)| checkpoint.tensor(p, &shape).map(drop))
        });
        opened.unwrap_err()
    }

    /// The tensor of the one layer whose name ends so.
    fn tensor(&mut self, ending: &str) -> &mut Stored {
        let name =
            self.tensors.keys().find(|name| name.contains("layers.0") && name.ends_with(ending)).unwrap().clone();
        self.tensors.get_mut(&name).unwrap()
    }
}
