//! Stored tensors that together are a quantised matrix, with checks that name the tensor and its file.
use super::super::files::{HfFiles, Stored};
use crate::checkpoint::CheckpointError;
use crate::checkpoint::stored_values::read_values;
use safetensors::Dtype;
use std::path::Path;

/// A stored tensor of a quantised matrix.
#[derive(Debug)]
pub(super) struct Part<'a> {
    pub(super) name: String,
    stored: &'a Stored,
    path: &'a Path,
}

impl<'a> Part<'a> {
    pub(super) fn find(files: &'a HfFiles, name: String) -> Option<Part<'a>> {
        let (stored, path) = files.stored(&name)?;
        Some(Part { name, stored, path })
    }

    /// Finds the part `role` of the matrix `of`, which must exist.
    pub(super) fn require(
        files: &'a HfFiles,
        name: String,
        role: &str,
        of: &Part,
    ) -> Result<Part<'a>, CheckpointError> {
        let parameter = format!("{role} of the quantised {}", of.name);
        let path = of.path.to_path_buf();
        let missing = CheckpointError::TensorMissing { tensor: name.clone(), parameter, path };
        Part::find(files, name).ok_or(missing)
    }

    pub(super) fn dtype(&self) -> Dtype {
        self.stored.dtype
    }

    pub(super) fn shape(&self) -> &[usize] {
        &self.stored.shape
    }

    /// Number of elements; the header's bytes were checked to hold them.
    pub(super) fn count(&self) -> usize {
        self.stored.shape.iter().product()
    }

    pub(super) fn error(&self, what: &str) -> CheckpointError {
        CheckpointError::Malformed { path: self.path.to_path_buf(), what: format!("tensor {}: {what}", self.name) }
    }

    /// Checks the shape.
    pub(super) fn shaped(self, expected: &[usize]) -> Result<Part<'a>, CheckpointError> {
        if self.stored.shape == expected {
            return Ok(self);
        }
        Err(CheckpointError::WrongShape {
            tensor: self.name,
            path: self.path.to_path_buf(),
            found: self.stored.shape.clone(),
            expected: expected.to_vec(),
        })
    }

    /// Checks the element type.
    pub(super) fn typed(self, expected: &[Dtype]) -> Result<Part<'a>, CheckpointError> {
        if expected.contains(&self.stored.dtype) {
            return Ok(self);
        }
        let names: Vec<String> = expected.iter().map(|dtype| format!("{dtype:?}")).collect();
        Err(CheckpointError::ElementType {
            tensor: self.name,
            path: self.path.to_path_buf(),
            dtype: format!("{:?}", self.stored.dtype),
            advice: format!("this quantisation has {} here; fetch the checkpoint again", names.join(" or ")),
        })
    }

    /// Reads words of 32 bits.
    pub(super) fn words(&self) -> Result<Vec<u32>, CheckpointError> {
        read_values(self.path, self.stored.offset, self.count(), u32::from_le_bytes)
    }

    /// Reads `count` bytes from byte `start`.
    pub(super) fn bytes(&self, start: usize, count: usize) -> Result<Vec<u8>, CheckpointError> {
        read_values(self.path, self.stored.offset + start as u64, count, |[byte]: [u8; 1]| byte)
    }

    /// Reads `count` E4M3 floats from element `start`, widened while they are read.
    pub(super) fn e4m3(&self, start: usize, count: usize) -> Result<Vec<f32>, CheckpointError> {
        read_values(self.path, self.stored.offset + start as u64, count, |[byte]: [u8; 1]| e4m3(byte))
    }

    /// Reads `count` 8-bit integers from element `start`.
    pub(super) fn integers8(&self, start: usize, count: usize) -> Result<Vec<f32>, CheckpointError> {
        read_values(self.path, self.stored.offset + start as u64, count, |byte: [u8; 1]| {
            f32::from(i8::from_le_bytes(byte))
        })
    }

    /// Reads 32- or 64-bit integers.
    pub(super) fn integers(&self) -> Result<Vec<i64>, CheckpointError> {
        let (offset, count) = (self.stored.offset, self.count());
        match self.stored.dtype {
            Dtype::I64 => read_values(self.path, offset, count, i64::from_le_bytes),
            _ => read_values(self.path, offset, count, |bytes: [u8; 4]| i64::from(i32::from_le_bytes(bytes))),
        }
    }

    /// Reads finite numbers of any float type that scales have.
    pub(super) fn numbers(&self) -> Result<Vec<f32>, CheckpointError> {
        let (offset, count) = (self.stored.offset, self.count());
        let numbers = match self.stored.dtype {
            Dtype::F32 => read_values(self.path, offset, count, f32::from_le_bytes)?,
            Dtype::BF16 => read_values(self.path, offset, count, |b: [u8; 2]| half::bf16::from_le_bytes(b).to_f32())?,
            Dtype::F16 => read_values(self.path, offset, count, |b: [u8; 2]| half::f16::from_le_bytes(b).to_f32())?,
            // Powers of two; 255 is not a number.
            Dtype::F8_E8M0 => read_values(self.path, offset, count, |[byte]: [u8; 1]| match byte {
                u8::MAX => f32::NAN,
                power => (f64::from(power) - 127.0).exp2() as f32,
            })?,
            other => return Err(self.error(&format!("element type {other:?} cannot be read as numbers"))),
        };
        match numbers.iter().position(|number| !number.is_finite()) {
            Some(at) => Err(self.error(&format!(
                "value {at} is {}, and everything that it scales would be, too; fetch the checkpoint again",
                numbers.get(at).copied().unwrap_or(f32::NAN)
            ))),
            None => Ok(numbers),
        }
    }
}

/// Types of scales.
pub(super) const FLOATS: [Dtype; 3] = [Dtype::F32, Dtype::BF16, Dtype::F16];

/// The 256 values of E4M3 (OCP 8-bit floating point, revision 1.0): bias 7, no infinities, NaN where all other bits are ones.
const E4M3: [f32; 256] = {
    let mut table = [0.0; 256];
    let mut code = 0;
    while code < 256 {
        let (exponent, mantissa) = ((code >> 3) & 15, (code & 7) as f32);
        let mut value = if exponent == 0 { mantissa / 8.0 } else { 1.0 + mantissa / 8.0 };
        let mut power = if exponent == 0 { 1 } else { exponent };
        while power < 7 {
            value /= 2.0;
            power += 1;
        }
        while power > 7 {
            value *= 2.0;
            power -= 1;
        }
        if code & 127 == 127 {
            value = f32::NAN;
        }
        table[code] = if code < 128 { value } else { -value };
        code += 1;
    }
    table
};

/// Widens an E4M3 float, exactly.
pub(super) fn e4m3(code: u8) -> f32 {
    E4M3[usize::from(code)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e4m3_is_the_published_table() {
        // Examples of the specification, table 2.
        for (code, value) in [
            (0x00, 0.0),
            (0x01, 2f32.powi(-9)),
            (0x07, 7.0 * 2f32.powi(-9)),
            (0x08, 2f32.powi(-6)),
            (0x38, 1.0),
            (0x39, 1.125),
            (0x7e, 448.0),
            (0xfe, -448.0),
            (0xb8, -1.0),
        ] {
            assert_eq!(e4m3(code), value, "{code:#x}");
        }
        assert!(e4m3(0x7f).is_nan() && e4m3(0xff).is_nan());
        assert_eq!((0..=255).filter(|code| e4m3(*code).is_nan()).count(), 2);
        assert!(e4m3(0x80) == 0.0 && e4m3(0x80).is_sign_negative());
        assert!((0u8..126).all(|code| e4m3(code) < e4m3(code + 1)));
    }
}
