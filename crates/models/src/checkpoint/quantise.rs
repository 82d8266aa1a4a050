//! Conversion of weights: quantisation by candle, and rounding to a float type.
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor as CandleTensor};
use rayon::prelude::*;

use super::{ElementType, Values};

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

/// Quantises and dequantises with candle, in parallel pieces of whole blocks.
pub(super) fn quantise_round_trip(values: &[f32], dtype: GgmlDType) -> candle_core::Result<Vec<f32>> {
    let pieces: Vec<Vec<f32>> = values
        .par_chunks(PIECE)
        .map(|piece| {
            let tensor = CandleTensor::from_slice(piece, piece.len(), &Device::Cpu)?;
            QTensor::quantize(&tensor, dtype)?.dequantize(&Device::Cpu)?.to_vec1::<f32>()
        })
        .collect::<candle_core::Result<_>>()?;
    Ok(pieces.concat())
}

/// Quantises with candle, in the same pieces as [`quantise_round_trip`].
pub(super) fn quantise(values: &[f32], dtype: GgmlDType) -> candle_core::Result<Vec<u8>> {
    let pieces: Vec<Vec<u8>> = values
        .par_chunks(PIECE)
        .map(|piece| {
            let tensor = CandleTensor::from_slice(piece, piece.len(), &Device::Cpu)?;
            Ok(QTensor::quantize(&tensor, dtype)?.data()?.into_owned())
        })
        .collect::<candle_core::Result<_>>()?;
    Ok(pieces.concat())
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
