//! Conversion of weights: quantisation by candle's blocks, and rounding to a float type.
use candle_core::quantized::{GgmlDType, GgmlType};
use rayon::prelude::*;

use super::{ElementType, Values};

/// Weights or bytes that are not a whole number of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{count} {of} are not whole blocks of {block}")]
pub struct PartBlockError {
    count: usize,
    of: &'static str,
    block: usize,
}

/// Widens values to f32.
pub(super) fn widen(values: Values) -> Vec<f32> {
    match values {
        Values::F32(v) => v,
        Values::Bf16(v) => v.into_iter().map(|x| half::bf16::from_bits(x).to_f32()).collect(),
        Values::F16(v) => v.into_iter().map(|x| half::f16::from_bits(x).to_f32()).collect(),
    }
}

/// Weights quantised at a time; a multiple of every block size.
const PIECE: usize = 1 << 16;

/// Evaluates an expression with `$T`, the block of a type of weights. A tensor of candle's would choose it too, and bring all of candle's
/// operations into the program.
macro_rules! with_block {
    ($dtype:expr, $T:ident => $body:expr) => {{
        use candle_core::quantized::k_quants::*;
        macro_rules! arm {
            ($Block:ty) => {{
                type $T = $Block;
                $body
            }};
        }
        match $dtype {
            GgmlDType::F32 => arm!(f32),
            GgmlDType::F16 => arm!(half::f16),
            GgmlDType::BF16 => arm!(half::bf16),
            GgmlDType::Q4_0 => arm!(BlockQ4_0),
            GgmlDType::Q4_1 => arm!(BlockQ4_1),
            GgmlDType::Q5_0 => arm!(BlockQ5_0),
            GgmlDType::Q5_1 => arm!(BlockQ5_1),
            GgmlDType::Q8_0 => arm!(BlockQ8_0),
            GgmlDType::Q8_1 => arm!(BlockQ8_1),
            GgmlDType::Q2K => arm!(BlockQ2K),
            GgmlDType::Q3K => arm!(BlockQ3K),
            GgmlDType::Q4K => arm!(BlockQ4K),
            GgmlDType::Q5K => arm!(BlockQ5K),
            GgmlDType::Q6K => arm!(BlockQ6K),
            GgmlDType::Q8K => arm!(BlockQ8K),
        }
    }};
}

/// Quantises and dequantises, in parallel pieces of whole blocks.
///
/// # Errors
/// If the values are not whole blocks.
pub(super) fn quantise_round_trip(values: &[f32], dtype: GgmlDType) -> Result<Vec<f32>, PartBlockError> {
    whole(values.len(), dtype.block_size(), "weights")?;
    let piece = |piece: &[f32]| with_block!(dtype, Block => values_of::<Block>(&blocks_of(piece)));
    let pieces: Vec<Vec<f32>> = values.par_chunks(PIECE).map(piece).collect();
    Ok(pieces.concat())
}

/// Quantises to the bytes of blocks, in parallel pieces of whole blocks.
///
/// # Errors
/// If the values are not whole blocks.
pub fn quantise(values: &[f32], dtype: GgmlDType) -> Result<Vec<u8>, PartBlockError> {
    whole(values.len(), dtype.block_size(), "weights")?;
    let piece = |piece: &[f32]| with_block!(dtype, Block => bytes(&blocks_of::<Block>(piece)));
    let pieces: Vec<Vec<u8>> = values.par_chunks(PIECE).map(piece).collect();
    Ok(pieces.concat())
}

/// Returns the values of blocks, from their bytes.
///
/// # Errors
/// If the bytes are not whole blocks.
pub fn dequantise(blocks: &[u8], dtype: GgmlDType) -> Result<Vec<f32>, PartBlockError> {
    whole(blocks.len(), dtype.type_size(), "bytes")?;
    Ok(with_block!(dtype, Block => values_of::<Block>(&from_bytes(blocks))))
}

fn whole(count: usize, block: usize, of: &'static str) -> Result<(), PartBlockError> {
    if count.is_multiple_of(block) { Ok(()) } else { Err(PartBlockError { count, of, block }) }
}

fn blocks_of<T: GgmlType>(values: &[f32]) -> Vec<T> {
    let mut blocks = vec![T::zeros(); values.len() / T::BLCK_SIZE];
    T::from_float(values, &mut blocks);
    blocks
}

fn values_of<T: GgmlType>(blocks: &[T]) -> Vec<f32> {
    let mut values = vec![0f32; blocks.len() * T::BLCK_SIZE];
    T::to_float(blocks, &mut values);
    values
}

/// A copy of the bytes of blocks.
fn bytes<T: GgmlType>(blocks: &[T]) -> Vec<u8> {
    // SAFETY: candle's blocks are numbers and arrays of numbers whose sizes add up to the block's, so that every byte is one of a number.
    unsafe { std::slice::from_raw_parts(blocks.as_ptr().cast::<u8>(), size_of_val(blocks)) }.to_vec()
}

/// Blocks from their bytes; those that do not fill a block are left out.
fn from_bytes<T: GgmlType>(bytes: &[u8]) -> Vec<T> {
    let count = bytes.len() / size_of::<T>();
    let mut blocks = vec![T::zeros(); count];
    // SAFETY: there are as many blocks as bytes are copied, and any bytes are candle's blocks: numbers and arrays of numbers.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), blocks.as_mut_ptr().cast::<u8>(), count * size_of::<T>()) };
    blocks
}

/// Rounds to a type; the error is the largest magnitude if the type has no finite value for it.
pub(super) fn round(values: Values, dtype: ElementType) -> Result<Values, f32> {
    Ok(match (values, dtype) {
        (values @ Values::F32(_), ElementType::F32)
        | (values @ Values::Bf16(_), ElementType::Bf16)
        | (values @ Values::F16(_), ElementType::F16) => values,
        (values, ElementType::F32) => Values::F32(widen(values)),
        (values, ElementType::Bf16) => {
            Values::Bf16(widen(values).into_iter().map(|x| half::bf16::from_f32(x).to_bits()).collect())
        }
        (values, ElementType::F16) => {
            let wide = widen(values);
            let largest = wide.iter().fold(0f32, |most, x| most.max(x.abs()));
            if largest.is_finite() && !half::f16::from_f32(largest).is_finite() {
                return Err(largest);
            }
            Values::F16(wide.into_iter().map(|x| half::f16::from_f32(x).to_bits()).collect())
        }
    })
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use candle_core::quantized::{QStorage, QTensor};
    use candle_core::{Device, Tensor};

    use super::*;

    const TYPES: [GgmlDType; 15] = [
        GgmlDType::F32,
        GgmlDType::F16,
        GgmlDType::BF16,
        GgmlDType::Q4_0,
        GgmlDType::Q4_1,
        GgmlDType::Q5_0,
        GgmlDType::Q5_1,
        GgmlDType::Q8_0,
        GgmlDType::Q8_1,
        GgmlDType::Q2K,
        GgmlDType::Q3K,
        GgmlDType::Q4K,
        GgmlDType::Q5K,
        GgmlDType::Q6K,
        GgmlDType::Q8K,
    ];

    #[test]
    fn blocks_and_values_are_those_of_candles_tensors() {
        // More than a piece, and not a whole number of them.
        let values: Vec<f32> = (0..PIECE + 768).map(|i| ((i as f32 * 12.9898).sin() * 43_758.547).fract()).collect();
        let tensor = Tensor::from_slice(&values, values.len(), &Device::Cpu).unwrap();
        for dtype in TYPES {
            let blocks = quantise(&values, dtype).unwrap();
            let of_candle = QTensor::quantize(&tensor, dtype).unwrap();
            assert_eq!(blocks, of_candle.data().unwrap().into_owned(), "{dtype:?}");
            let storage = QStorage::from_data(Cow::Borrowed(&blocks), &Device::Cpu, dtype).unwrap();
            let read = QTensor::new(storage, values.len()).unwrap();
            let expected = read.dequantize(&Device::Cpu).unwrap().to_vec1::<f32>().unwrap();
            assert_eq!(dequantise(&blocks, dtype).unwrap(), expected, "{dtype:?}");
            assert_eq!(quantise_round_trip(&values, dtype).unwrap(), expected, "{dtype:?}");
        }
    }

    #[test]
    fn what_is_not_whole_blocks_is_an_error() {
        assert_eq!(
            quantise(&[0.5; 40], GgmlDType::Q4_0).unwrap_err().to_string(),
            "40 weights are not whole blocks of 32"
        );
        assert_eq!(
            quantise_round_trip(&[0.5; 32], GgmlDType::Q6K).unwrap_err().to_string(),
            "32 weights are not whole blocks of 256"
        );
        assert_eq!(
            dequantise(&[0; 35], GgmlDType::Q8_0).unwrap_err().to_string(),
            "35 bytes are not whole blocks of 34"
        );
    }
}
