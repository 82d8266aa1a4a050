//! Weight formats: the file's values, rounded to another float type, or quantised at load.
//!
//! `--quant` changes values: each weight is quantised as in llama.cpp or bitsandbytes, and the engine computes with what dequantising
//! gives. `--compute` and `--kv` change the arithmetic: what the engine rounds operands, keys and values to. To an evaluation, all of
//! them are other models.
use std::fmt;

use candle_core::quantized::GgmlDType;
use serde::{Deserialize, Serialize};

use super::quantise::{quantise, quantise_round_trip, round, widen};
use super::{BlockType, CheckpointError, DecoderConfig, LayerParameter, Parameter, Tensor, Values, nf4};

/// A quantisation scheme, `--quant`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quant {
    /// 8 bits, blocks of 32 (8.5 bits per weight).
    #[serde(rename = "q8_0")]
    Q8,
    /// 6 bits, super-blocks of 256 (6.56 bits per weight).
    Q6k,
    /// 5 bits, super-blocks of 256 (5.5 bits per weight).
    Q5k,
    /// 4 bits, super-blocks of 256 (4.5 bits per weight).
    Q4k,
    /// NF4 of QLoRA: blocks of 64, whose scales are quantised to 8 bits in blocks of 256 (4.13 bits per weight).
    Nf4,
}

/// A float type, `--dtype`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ElementType {
    F32,
    Bf16,
    F16,
}

impl ElementType {
    /// Size of an element in bytes.
    pub fn size_bytes(self) -> u64 {
        match self {
            ElementType::F32 => 4,
            ElementType::Bf16 | ElementType::F16 => 2,
        }
    }
}

/// An arithmetic other than f32, `--compute`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compute {
    /// Matrix products and attention in 8-bit integers: weights, activations, keys and values are rounded in groups. The name in
    /// settings has the version of the arithmetic (2: including attention), because a change of it is another model.
    #[serde(rename = "int8.2", alias = "int8")]
    Int8,
    /// Matrix products in bf16: weights and activations are rounded, sums are f32; attention is f32.
    Bf16,
    /// Products of quantised weights, as they are, with activations that are rounded to 8 bits in groups.
    #[serde(rename = "a8.1", alias = "a8")]
    A8,
    /// Products of projections in 8-bit floats (E4M3) with sums in f32, on a GPU: weights have a scale for each 128 columns of a row, activations
    /// one for each token.
    #[serde(rename = "fp8.1", alias = "fp8")]
    Fp8,
}

/// A type of keys and values in the cache other than the arithmetic's own, `--kv`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvType {
    /// Rounded to bfloat16 and widened to f32 in attention.
    Bf16,
}

/// Quantisation, type and arithmetic of weights. The default changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WeightFormat {
    /// Quantisation at load; none for the file's values.
    pub quant: Option<Quant>,
    /// Type that matrices are rounded to and held in; norms and biases keep the file's values.
    pub dtype: Option<ElementType>,
    /// None for f32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<Compute>,
    /// Type of keys and values; none for that of the arithmetic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv: Option<KvType>,
}

/// Weights and bytes of a group of [`Compute::Int8`].
const INT8_GROUP: (usize, u64) = (32, 40);

/// Weights that share a scale of [`Compute::Fp8`].
pub(super) const FP8_GROUP: usize = 128;

/// Inputs of a block of [`Compute::Bf16`], to which widths are padded.
const BF16_BLOCK: usize = 32;

/// Quantisation scheme of one parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Scheme {
    Q8,
    Q6k,
    Q5k,
    Q4k,
    /// Replacement for a scheme with super-blocks of 256 if the width is not a multiple of that, as in llama.cpp.
    Q5Of32WithOffset,
    Q5Of32,
    Nf4,
}

/// Record of the quantised parameters, for the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightRecord {
    #[serde(flatten)]
    pub format: WeightFormat,
    /// Number of quantised weights.
    pub quantised_weights: u64,
    /// Number of all weights.
    pub weights: u64,
    /// Roles of parameters that are not quantised.
    pub unquantised: Vec<String>,
    /// Roles quantised with a replacement scheme, because their width is not a multiple of the block: `role: scheme`.
    pub substituted: Vec<String>,
}

impl Quant {
    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Quant::Q8 => "q8_0",
            Quant::Q6k => "q6k",
            Quant::Q5k => "q5k",
            Quant::Q4k => "q4k",
            Quant::Nf4 => "nf4",
        }
    }

    /// Returns the scheme for rows of this width; none if no block divides it.
    fn scheme(self, width: usize) -> Option<Scheme> {
        let (of_256, of_32) = (width.is_multiple_of(256), width.is_multiple_of(32));
        match self {
            // Blocks of NF4 may span rows.
            Quant::Nf4 => Some(Scheme::Nf4),
            Quant::Q8 => of_32.then_some(Scheme::Q8),
            Quant::Q6k if of_256 => Some(Scheme::Q6k),
            Quant::Q5k if of_256 => Some(Scheme::Q5k),
            Quant::Q4k if of_256 => Some(Scheme::Q4k),
            Quant::Q6k => of_32.then_some(Scheme::Q8),
            Quant::Q5k => of_32.then_some(Scheme::Q5Of32WithOffset),
            Quant::Q4k => of_32.then_some(Scheme::Q5Of32),
        }
    }
}

impl Compute {
    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Compute::Int8 => "int8",
            Compute::Bf16 => "bf16",
            Compute::A8 => "a8",
            Compute::Fp8 => "fp8",
        }
    }
}

impl Scheme {
    fn name(self) -> &'static str {
        match self {
            Scheme::Q8 => "q8_0",
            Scheme::Q6k => "q6k",
            Scheme::Q5k => "q5k",
            Scheme::Q4k => "q4k",
            Scheme::Q5Of32WithOffset => "q5_1",
            Scheme::Q5Of32 => "q5_0",
            Scheme::Nf4 => "nf4",
        }
    }

    fn ggml(self) -> Option<GgmlDType> {
        match self {
            Scheme::Q8 => Some(GgmlDType::Q8_0),
            Scheme::Q6k => Some(GgmlDType::Q6K),
            Scheme::Q5k => Some(GgmlDType::Q5K),
            Scheme::Q4k => Some(GgmlDType::Q4K),
            Scheme::Q5Of32WithOffset => Some(GgmlDType::Q5_1),
            Scheme::Q5Of32 => Some(GgmlDType::Q5_0),
            Scheme::Nf4 => None,
        }
    }
}

impl fmt::Display for WeightFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dtype = self.dtype.map(|dtype| match dtype {
            ElementType::F32 => "f32",
            ElementType::Bf16 => "bf16",
            ElementType::F16 => "f16",
        });
        let compute = self.compute.map(|compute| match compute {
            // Other than weights in bf16 with products in f32.
            Compute::Bf16 => "bf16-products",
            compute => compute.name(),
        });
        let kv = self.kv.map(|KvType::Bf16| "kv-bf16");
        let parts: Vec<&str> = self.quant.map(Quant::name).into_iter().chain(dtype).chain(compute).chain(kv).collect();
        f.write_str(&parts.join("-"))
    }
}

impl fmt::Display for WeightRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.format)?;
        if self.format.quant.is_some() {
            let share = 100.0 * self.quantised_weights as f64 / self.weights.max(1) as f64;
            write!(f, " ({share:.1} % quantised; as they are: {})", self.unquantised.join(", "))?;
        }
        Ok(())
    }
}

impl WeightFormat {
    /// True if weights are the file's and computed in f32.
    pub fn is_plain(&self) -> bool {
        *self == WeightFormat::default()
    }

    /// True if the engine computes matrix products and attention in 8-bit integers.
    pub fn is_int8(&self) -> bool {
        self.compute == Some(Compute::Int8)
    }

    /// True if the engine computes matrix products in bf16.
    pub fn is_bf16(&self) -> bool {
        self.compute == Some(Compute::Bf16)
    }

    /// True if the engine computes products of projections in 8-bit floats.
    pub fn is_fp8(&self) -> bool {
        self.compute == Some(Compute::Fp8)
    }

    /// True if tensors have the values of the files.
    pub(super) fn keeps_values(&self) -> bool {
        self.quant.is_none() && self.dtype.is_none()
    }

    /// True if products with a quantised matrix round its activations to 8 bits.
    pub(super) fn rounds_activations(&self, parameter: Parameter) -> bool {
        self.compute == Some(Compute::A8) && !is_exact(parameter)
    }

    /// Returns the record of a decoder's parameters.
    pub fn record(&self, config: &DecoderConfig) -> WeightRecord {
        let mut record =
            WeightRecord { format: *self, quantised_weights: 0, weights: 0, unquantised: vec![], substituted: vec![] };
        let Some(quant) = self.quant else {
            record.weights = config.parameter_count();
            return record;
        };
        let note = |list: &mut Vec<String>, text: String| {
            if !list.contains(&text) {
                list.push(text);
            }
        };
        for (parameter, shape) in config.parameters() {
            let count = shape.iter().map(|&n| n as u64).product::<u64>();
            record.weights += count;
            match self.scheme(parameter, &shape) {
                None => note(&mut record.unquantised, role(parameter)),
                Some(scheme) => {
                    record.quantised_weights += count;
                    if scheme.name() != quant.name() {
                        note(&mut record.substituted, format!("{}: {}", role(parameter), scheme.name()));
                    }
                }
            }
        }
        record
    }

    fn scheme(&self, parameter: Parameter, shape: &[usize]) -> Option<Scheme> {
        let (quant, [_, width]) = (self.quant?, shape) else { return None };
        if is_projection(parameter) { quant.scheme(*width) } else { None }
    }

    /// Returns the type of the blocks of [`WeightFormat::blocks`]; none if the matrix has none.
    pub(super) fn block_type(&self, parameter: Parameter, shape: &[usize]) -> Option<BlockType> {
        // Values rounded after quantisation are no longer those of the blocks.
        let scheme = self.scheme(parameter, shape).filter(|_| self.dtype.is_none())?;
        scheme.ggml().and_then(BlockType::of)
    }

    /// Quantises a matrix to blocks.
    pub(super) fn blocks(&self, parameter: Parameter, tensor: Tensor) -> Result<Vec<u8>, CheckpointError> {
        let scheme = self.scheme(parameter, &tensor.shape);
        let wide = widen(tensor.values);
        let failed = |what: String| CheckpointError::Quantise {
            parameter: parameter.to_string(),
            scheme: scheme.map_or("blocks", Scheme::name),
            what,
        };
        let dtype = scheme.and_then(Scheme::ggml).ok_or_else(|| failed("it is not quantised to blocks".into()))?;
        let invalid = wide.iter().filter(|value| !value.is_finite()).count();
        if invalid > 0 {
            return Err(failed(format!(
                "{invalid} values are not finite: the file is damaged or the training diverged"
            )));
        }
        quantise(&wide, dtype).map_err(|error| failed(error.to_string()))
    }

    /// Returns the type in which a matrix is held that the file has as `stored`.
    fn held_as(&self, parameter: Parameter, shape: &[usize], stored: ElementType) -> ElementType {
        let quantised = self.scheme(parameter, shape).is_some();
        self.dtype.unwrap_or(if quantised { ElementType::F32 } else { stored })
    }

    /// True if products with a matrix are computed in 8-bit integers. The router of a mixture stays in f32, because rounding would
    /// change its choice of experts, and so do the small matrices that mix residual streams; so do matrices whose rows do not divide into groups.
    pub(super) fn computes_int8(&self, parameter: Parameter, width: usize) -> bool {
        self.is_int8() && !is_exact(parameter) && width.is_multiple_of(INT8_GROUP.0)
    }

    /// True if products with a matrix are computed in bf16: all but those that stay in f32 for int8, too.
    pub(super) fn computes_bf16(&self, parameter: Parameter) -> bool {
        self.is_bf16() && !is_exact(parameter)
    }

    /// True if products with a matrix are computed in 8-bit floats: the projections of attention and feed-forward whose rows can be copied 16
    /// numbers at a time.
    pub(super) fn computes_fp8(&self, parameter: Parameter, width: usize) -> bool {
        self.is_fp8() && is_projection(parameter) && width.is_multiple_of(16)
    }

    /// Returns the bytes of a matrix in the engine that the file has as `stored`, or that has `blocks`.
    pub(super) fn size_bytes(
        &self,
        parameter: Parameter,
        shape: &[usize],
        stored: ElementType,
        blocks: Option<BlockType>,
    ) -> u64 {
        let elements: u64 = shape.iter().map(|&n| n as u64).product();
        match (shape, blocks) {
            (&[_, width], _) if self.computes_int8(parameter, width) => elements / INT8_GROUP.0 as u64 * INT8_GROUP.1,
            (&[rows, width], _) if self.computes_fp8(parameter, width) => {
                (rows * (width + (width.div_ceil(FP8_GROUP) * 4).next_multiple_of(16))) as u64
            }
            (&[rows, width], _) if self.computes_bf16(parameter) => {
                (rows * width.next_multiple_of(BF16_BLOCK)) as u64 * 2
            }
            (&[rows, width], Some(blocks)) => blocks.matrix_bytes(rows, width),
            _ => elements * self.held_as(parameter, shape, stored).size_bytes(),
        }
    }

    /// Quantises and rounds a tensor.
    pub(super) fn apply(&self, parameter: Parameter, tensor: Tensor) -> Result<Tensor, CheckpointError> {
        let scheme = self.scheme(parameter, &tensor.shape);
        let matrix = tensor.shape.len() == 2;
        let dtype = self.dtype.filter(|_| matrix);
        if scheme.is_none() && dtype.is_none() {
            return Ok(tensor);
        }
        let Tensor { shape, values } = tensor;
        let values = match scheme {
            None => values,
            Some(scheme) => {
                let wide = widen(values);
                // The engine reports weights that are not finite; quantisation would spread them over their block.
                if wide.iter().any(|value| !value.is_finite()) {
                    return Ok(Tensor { shape, values: Values::F32(wide) });
                }
                Values::F32(match scheme.ggml() {
                    Some(dtype) => quantise_round_trip(&wide, dtype).map_err(|error| CheckpointError::Quantise {
                        parameter: parameter.to_string(),
                        scheme: scheme.name(),
                        what: error.to_string(),
                    })?,
                    None => nf4::round_trip(&wide),
                })
            }
        };
        let values = match dtype {
            None => values,
            Some(dtype) => round(values, dtype)
                .map_err(|largest| CheckpointError::Overflow { parameter: parameter.to_string(), largest })?,
        };
        Ok(Tensor { shape, values })
    }
}

/// True for the matrices that are quantised, the projections of attention and feed-forward. Embedding, head and the router of a
/// mixture are not, as in bitsandbytes; neither are norms and biases.
fn is_projection(parameter: Parameter) -> bool {
    use LayerParameter::*;
    let Parameter::Layer(_, parameter) = parameter else { return false };
    matches!(
        parameter,
        Query
            | Key
            | Value
            | Output
            | Gate
            | Up
            | Down
            | ExpertGate(_)
            | ExpertUp(_)
            | ExpertDown(_)
            | QueryDown
            | KvDown
            | KvUp
            | LinearQkv
            | LinearGate
            | LayerInputGate
            | LayerInputUp
            | BranchDown
            | BranchUp
    )
}

/// True for matrices with which products are always computed in floats.
fn is_exact(parameter: Parameter) -> bool {
    use LayerParameter::*;
    matches!(
        parameter,
        Parameter::Layer(
            _,
            Router
                | SharedGate
                | StreamRouter
                | StreamPrediction
                | StreamCorrection
                | LinearStrength
                | LinearDecay
                | LinearConvolution
        )
    )
}

/// Returns the name of a parameter without its layer and expert.
fn role(parameter: Parameter) -> String {
    use LayerParameter::*;
    match parameter {
        Parameter::Layer(_, ExpertGate(_)) => "ExpertGate".to_owned(),
        Parameter::Layer(_, ExpertUp(_)) => "ExpertUp".to_owned(),
        Parameter::Layer(_, ExpertDown(_)) => "ExpertDown".to_owned(),
        Parameter::Layer(_, parameter) => format!("{parameter:?}"),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::LayerParameter::{Down, Query, Router};

    fn noise(count: usize) -> Vec<f32> {
        // A fixed sequence with a spread like weights have.
        (0..count).map(|i| ((i as f32 * 12.9898).sin() * 43_758.547).fract() * 0.2 - 0.05).collect()
    }

    fn apply(format: WeightFormat, parameter: Parameter, shape: [usize; 2], values: Values) -> Tensor {
        format.apply(parameter, Tensor { shape: shape.to_vec(), values }).unwrap()
    }

    fn error(a: &[f32], b: &[f32]) -> f64 {
        let square: f64 = a.iter().zip(b).map(|(x, y)| f64::from(x - y).powi(2)).sum();
        (square / a.len() as f64).sqrt()
    }

    #[test]
    fn fewer_bits_are_further_away() {
        let values = noise(4 * 512);
        let spread = error(&values, &vec![values.iter().sum::<f32>() / values.len() as f32; values.len()]);
        let mut last = 0.0;
        for quant in [Quant::Q8, Quant::Q6k, Quant::Q5k, Quant::Q4k] {
            let format = WeightFormat { quant: Some(quant), dtype: None, ..WeightFormat::default() };
            let tensor = apply(format, Parameter::Layer(0, Query), [4, 512], Values::F32(values.clone()));
            let Values::F32(found) = tensor.values else { panic!() };
            let away = error(&values, &found) / spread;
            assert!(away > last && away < 0.15, "{quant:?}: {away}");
            last = away;
        }
    }

    #[test]
    fn embedding_head_router_norms_and_biases_stay() {
        let format = WeightFormat { quant: Some(Quant::Q4k), dtype: None, ..WeightFormat::default() };
        let values = Values::F32(noise(512));
        for parameter in [Parameter::Embedding, Parameter::Head, Parameter::Layer(0, Router)] {
            assert_eq!(apply(format, parameter, [2, 256], values.clone()).values, values);
        }
        let bias = Tensor { shape: vec![512], values: values.clone() };
        assert_eq!(format.apply(Parameter::Layer(0, LayerParameter::QueryBias), bias.clone()).unwrap(), bias);
        assert_ne!(apply(format, Parameter::Layer(0, Down), [2, 256], values.clone()).values, values);
    }

    #[test]
    fn odd_widths_are_substituted_or_left() {
        let format = WeightFormat { quant: Some(Quant::Q4k), dtype: None, ..WeightFormat::default() };
        let at = Parameter::Layer(0, Down);
        assert_eq!(format.scheme(at, &[2, 512]), Some(Scheme::Q4k));
        assert_eq!(format.scheme(at, &[2, 576]), Some(Scheme::Q5Of32));
        assert_eq!(format.scheme(at, &[2, 40]), None);
        let values = Values::F32(noise(2 * 40));
        assert_eq!(apply(format, at, [2, 40], values.clone()).values, values);
        apply(format, at, [2, 576], Values::F32(noise(2 * 576)));
    }

    #[test]
    fn types_are_rounded_to_and_overflow_is_named() {
        let format = |dtype| WeightFormat { dtype: Some(dtype), ..WeightFormat::default() };
        let values = Values::F32(vec![1.0, 1.001, -3.0, 1e-3]);
        let bf16 = apply(format(ElementType::Bf16), Parameter::Embedding, [2, 2], values.clone());
        assert!(matches!(&bf16.values, Values::Bf16(v) if v[1] == half::bf16::ONE.to_bits()));
        assert!(matches!(apply(format(ElementType::F32), Parameter::Head, [2, 2], bf16.values).values, Values::F32(_)));
        let large = Tensor { shape: vec![1, 2], values: Values::F32(vec![1.0, -70_000.0]) };
        let failed = format(ElementType::F16).apply(Parameter::Embedding, large).unwrap_err().to_string();
        assert!(failed.contains("70000") && failed.contains("Embedding"), "{failed}");
    }

    #[test]
    fn values_that_are_not_finite_reach_the_engine() {
        let format = WeightFormat { quant: Some(Quant::Q8), dtype: None, ..WeightFormat::default() };
        let mut values = noise(64);
        values[3] = f32::NAN;
        let tensor = apply(format, Parameter::Layer(0, Down), [2, 32], Values::F32(values));
        assert!(matches!(tensor.values, Values::F32(v) if v.iter().filter(|x| x.is_nan()).count() == 1));
    }

    #[test]
    fn names() {
        let both = WeightFormat { quant: Some(Quant::Nf4), dtype: Some(ElementType::Bf16), ..WeightFormat::default() };
        assert_eq!(both.to_string(), "nf4-bf16");
        assert_eq!(serde_json::to_string(&both).unwrap(), r#"{"quant":"nf4","dtype":"bf16"}"#);
        assert_eq!(serde_json::to_string(&Quant::Q8).unwrap(), "\"q8_0\"");
        assert!(WeightFormat::default().is_plain());
        // Weights in bf16 are one thing, products in bf16 another.
        let weights = WeightFormat { dtype: Some(ElementType::Bf16), ..WeightFormat::default() };
        let products = WeightFormat { compute: Some(Compute::Bf16), ..WeightFormat::default() };
        assert_eq!([weights.to_string(), products.to_string()], ["bf16", "bf16-products"]);
        assert_eq!(serde_json::to_string(&products).unwrap(), r#"{"quant":null,"dtype":null,"compute":"bf16"}"#);
    }
}
