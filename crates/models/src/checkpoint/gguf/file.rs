//! Reader of the GGUF container: metadata and tensor table.
//!
//! Not candle's reader, because errors must name the key or tensor, and because `general.alignment` may be a hostile zero. Format:
//! <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>.
use super::super::CheckpointError;
use super::super::layout::{MXFP4_BLOCK, MXFP4_GGUF_BYTES};
use super::iq::{IQ_BLOCK, IqType};
use candle_core::quantized::GgmlDType;
use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// A metadata value. Integers and floats of all widths are widened; arrays hold one kind of scalar.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::checkpoint) enum GgufValue {
    Integer(i128),
    Float(f64),
    Flag(bool),
    Text(String),
    Integers(Vec<i64>),
    Floats(Vec<f32>),
    Texts(Vec<String>),
}

/// A type of stored elements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::checkpoint) enum GgufType {
    Ggml(GgmlDType),
    /// 4 bits with a shared exponent for 32 weights (GPT-OSS), which the library lacks, as it does the following.
    Mxfp4,
    /// 4 bits that are indices of levels, for 32 weights.
    Iq4Nl,
    Iq(IqType),
}

/// Weights and bytes of a block of IQ4_NL.
const IQ4_NL: (usize, usize) = (32, 18);

impl GgufType {
    /// Weights of a block.
    pub(in crate::checkpoint) fn block_size(self) -> usize {
        match self {
            GgufType::Ggml(dtype) => dtype.block_size(),
            GgufType::Mxfp4 => MXFP4_BLOCK,
            GgufType::Iq4Nl => IQ4_NL.0,
            GgufType::Iq(_) => IQ_BLOCK,
        }
    }

    /// Bytes of a block.
    pub(in crate::checkpoint) fn type_size(self) -> usize {
        match self {
            GgufType::Ggml(dtype) => dtype.type_size(),
            GgufType::Mxfp4 => MXFP4_GGUF_BYTES,
            GgufType::Iq4Nl => IQ4_NL.1,
            GgufType::Iq(kind) => kind.type_size(),
        }
    }
}

impl fmt::Debug for GgufType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GgufType::Ggml(dtype) => dtype.fmt(f),
            GgufType::Mxfp4 => f.write_str("MXFP4"),
            GgufType::Iq4Nl => f.write_str("IQ4_NL"),
            GgufType::Iq(kind) => f.write_str(kind.name()),
        }
    }
}

/// An entry of the tensor table; its bytes are checked to lie inside the file.
#[derive(Debug, Clone)]
pub(in crate::checkpoint) struct GgufTensor {
    pub(in crate::checkpoint) dtype: GgufType,
    /// Sizes, outermost first (the file has them innermost first).
    pub(in crate::checkpoint) shape: Vec<usize>,
    /// Bytes from the start of the file.
    pub(in crate::checkpoint) offset: u64,
    /// Index of the file that has it.
    part: usize,
}

/// Metadata and tensor table of a GGUF file, or of one that is split in parts: then tensors are those of all parts, the rest is the first's.
#[derive(Debug)]
pub(in crate::checkpoint) struct GgufFile {
    /// The file, or the first part.
    pub(in crate::checkpoint) path: PathBuf,
    /// The parts after the first.
    further: Vec<PathBuf>,
    pub(in crate::checkpoint) metadata: BTreeMap<String, GgufValue>,
    pub(in crate::checkpoint) tensors: BTreeMap<String, GgufTensor>,
}

const MAGIC: u32 = u32::from_le_bytes(*b"GGUF");
const DEFAULT_ALIGNMENT: i128 = 32;
/// ggml's largest number of dimensions.
const MAX_DIMENSIONS: u32 = 4;

impl GgufFile {
    /// Reads metadata and tensor table, and checks that the file, or its parts, hold all tensor data.
    pub(in crate::checkpoint) fn open(path: &Path) -> Result<GgufFile, CheckpointError> {
        let mut file = GgufFile::read(path)?;
        let Some([0, count]) = file.split() else { return file.whole_or_first() };
        let malformed = |path: &Path, what: String| CheckpointError::Malformed { path: path.to_path_buf(), what };
        for index in 1..count {
            let part = part_name(path, index, count).ok_or_else(|| {
                let what = format!(
                    "it is the first of {count} parts, whose names end with -{:05}-of-{count:05}.gguf; give the parts the names back that \
                     they were published with",
                    1
                );
                malformed(path, what)
            })?;
            let GgufFile { path, tensors, .. } = match GgufFile::read(&part)? {
                found if found.split() == Some([index, count]) => found,
                found => {
                    let what = format!("it is not part {} of {count} of the model: {:?}", index + 1, found.split());
                    return Err(malformed(&part, what));
                }
            };
            for (name, tensor) in tensors {
                if file.tensors.insert(name.clone(), GgufTensor { part: index, ..tensor }).is_some() {
                    return Err(malformed(&path, format!("tensor {name} is also in another part of the model")));
                }
            }
            file.further.push(path);
        }
        let stated = file.number("split.tensors.count").map(|count| count as usize);
        if let Some(stated) = stated.filter(|stated| *stated != file.tensors.len()) {
            let what = format!("it says that all parts have {stated} tensors, but they have {}", file.tensors.len());
            return Err(malformed(path, what));
        }
        Ok(file)
    }

    /// A file that is whole; the error of a part that is not the first.
    fn whole_or_first(self) -> Result<GgufFile, CheckpointError> {
        let Some([index, count]) = self.split() else { return Ok(self) };
        let name = part_name(&self.path, 0, count).map(|first| format!(", {}", first.display())).unwrap_or_default();
        let what = format!("it is part {} of {count} of a model; name the first one{name}", index + 1);
        Err(CheckpointError::Malformed { path: self.path, what })
    }

    /// Index and number of parts; none of a file that is not split.
    fn split(&self) -> Option<[usize; 2]> {
        let number = |key: &str| self.number(key).map(|number| number as usize);
        let count = number("split.count").filter(|count| *count > 1)?;
        Some([number("split.no").unwrap_or(0), count])
    }

    /// The file that has a tensor.
    pub(in crate::checkpoint) fn path_of(&self, tensor: &GgufTensor) -> &Path {
        tensor.part.checked_sub(1).and_then(|part| self.further.get(part)).unwrap_or(&self.path)
    }

    /// All files.
    pub(in crate::checkpoint) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.path].into_iter().chain(&self.further)
    }

    /// Reads one file.
    fn read(path: &Path) -> Result<GgufFile, CheckpointError> {
        let io = |e| CheckpointError::io(path, "fetch the model or correct the path", e);
        let file = earnest_digest::input::open(path).map_err(io)?;
        let size = file.metadata().map_err(io)?.len();
        let mut r =
            Reader { path, input: BufReader::with_capacity(1 << 16, file), at: 0, size, part: "its header".into() };
        let magic = r.u32()?;
        if magic != MAGIC {
            return Err(r.malformed(
                "it does not begin with the letters GGUF; only GGUF files and checkpoint folders can be read",
            ));
        }
        match r.u32()? {
            2 | 3 => {}
            1 => return Err(r.malformed("GGUF version 1 is obsolete; convert the model again")),
            v if v.swap_bytes() <= 3 => {
                return Err(
                    r.malformed("it is a big-endian GGUF file, which is not supported; convert the model again")
                );
            }
            v => return Err(r.malformed(format!("GGUF version {v} is not supported; versions 2 and 3 are"))),
        }
        let (tensor_count, key_count) = (r.u64()?, r.u64()?);
        // A key takes at least 13 bytes, a table entry 24.
        r.need(key_count.saturating_mul(13).saturating_add(tensor_count.saturating_mul(24)))?;
        let mut metadata = BTreeMap::new();
        for _ in 0..key_count {
            let key = r.text()?;
            r.part = format!("key {key}");
            let kind = r.u32()?;
            let value = r.value(kind)?;
            metadata.insert(key, value);
        }
        let table = r.table(tensor_count)?;
        let alignment = match metadata.get("general.alignment") {
            None => DEFAULT_ALIGNMENT,
            Some(GgufValue::Integer(n)) if *n > 0 && n % 8 == 0 && *n <= 1 << 20 => *n,
            Some(other) => {
                return Err(r.malformed(format!("general.alignment is {other:?}, expected a positive multiple of 8")));
            }
        };
        let data = r.at.next_multiple_of(alignment as u64);
        let mut tensors = BTreeMap::new();
        for (name, mut tensor) in table {
            let bytes = byte_size(tensor.dtype, &tensor.shape).ok_or_else(|| {
                r.malformed(format!(
                    "tensor {name} has shape {:?}, which does not fit type {:?}",
                    tensor.shape, tensor.dtype
                ))
            })?;
            tensor.offset = tensor.offset.saturating_add(data);
            if tensor.offset.checked_add(bytes).is_none_or(|end| end > size) {
                let what =
                    format!("tensor {name} needs {bytes} bytes from byte {}, but the file has {size}", tensor.offset);
                return Err(CheckpointError::Truncated { path: path.to_path_buf(), what });
            }
            if tensors.insert(name.clone(), tensor).is_some() {
                return Err(r.malformed(format!("tensor {name} is in the table twice")));
            }
        }
        Ok(GgufFile { path: path.to_path_buf(), further: Vec::new(), metadata, tensors })
    }

    pub(in crate::checkpoint) fn text(&self, key: &str) -> Option<&str> {
        match self.metadata.get(key) {
            Some(GgufValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(in crate::checkpoint) fn flag(&self, key: &str) -> Option<bool> {
        match self.metadata.get(key) {
            Some(GgufValue::Flag(flag)) => Some(*flag),
            _ => None,
        }
    }

    pub(in crate::checkpoint) fn token_id(&self, key: &str) -> Option<u32> {
        match self.metadata.get(key) {
            Some(GgufValue::Integer(n)) => u32::try_from(*n).ok(),
            _ => None,
        }
    }

    pub(in crate::checkpoint) fn number(&self, key: &str) -> Option<f64> {
        match self.metadata.get(key) {
            Some(GgufValue::Float(f)) => Some(*f),
            Some(GgufValue::Integer(n)) => Some(*n as f64),
            _ => None,
        }
    }

    /// Returns the keys under `prefix`, without it, as a JSON object. An array of equal elements (a size repeated for each layer)
    /// becomes that element.
    pub(in crate::checkpoint) fn section(&self, prefix: &str) -> Map<String, Value> {
        let json = |value: &GgufValue| match value {
            GgufValue::Integer(n) => i64::try_from(*n).map(Value::from).unwrap_or_else(|_| Value::from(n.to_string())),
            GgufValue::Float(f) => Number::from_f64(*f).map_or_else(|| Value::from(f.to_string()), Value::Number),
            GgufValue::Flag(flag) => Value::Bool(*flag),
            GgufValue::Text(text) => Value::from(text.as_str()),
            GgufValue::Integers(list) => collapse(list.iter().map(|n| Value::from(*n)).collect()),
            GgufValue::Floats(list) => collapse(list.iter().map(|f| Value::from(*f)).collect()),
            GgufValue::Texts(list) => Value::from(list.clone()),
        };
        let strip = |key: &str| key.strip_prefix(prefix).map(str::to_string);
        self.metadata.iter().filter_map(|(key, value)| Some((strip(key)?, json(value)))).collect()
    }
}

/// Name of a part of a split file beside another one; none for a name that is not a part's.
fn part_name(path: &Path, index: usize, count: usize) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?.strip_suffix(&format!("-of-{count:05}.gguf"))?;
    let (name, number) = name.rsplit_once('-')?;
    let is_number = number.len() == 5 && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| path.with_file_name(format!("{name}-{:05}-of-{count:05}.gguf", index + 1)))
}

fn collapse(list: Vec<Value>) -> Value {
    match list.first() {
        Some(first) if list.iter().all(|v| v == first) => first.clone(),
        _ => Value::Array(list),
    }
}

/// Returns the bytes of a tensor; none if its rows are not whole blocks, or on overflow.
fn byte_size(dtype: GgufType, shape: &[usize]) -> Option<u64> {
    let block = dtype.block_size();
    if !shape.last().copied().unwrap_or(1).is_multiple_of(block) {
        return None;
    }
    let elements = shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d as u64))?;
    (elements / block as u64).checked_mul(dtype.type_size() as u64)
}

struct Reader<'a> {
    path: &'a Path,
    input: BufReader<File>,
    at: u64,
    size: u64,
    /// The part being read, for error messages.
    part: String,
}

impl Reader<'_> {
    fn malformed(&self, what: impl Into<String>) -> CheckpointError {
        CheckpointError::Malformed { path: self.path.to_path_buf(), what: what.into() }
    }

    /// Checks that this many bytes are left, before they are allocated.
    fn need(&self, bytes: u64) -> Result<(), CheckpointError> {
        let left = self.size - self.at.min(self.size);
        if bytes > left {
            let what = format!("{} needs {bytes} bytes from byte {}, but only {left} are left", self.part, self.at);
            return Err(CheckpointError::Truncated { path: self.path.to_path_buf(), what });
        }
        Ok(())
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], CheckpointError> {
        self.need(N as u64)?;
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes).map_err(|e| CheckpointError::io(self.path, "", e))?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32, CheckpointError> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, CheckpointError> {
        self.bytes().map(u64::from_le_bytes)
    }

    /// Reads a string, replacing invalid UTF-8: some vocabularies have such tokens, which no text can produce.
    fn text(&mut self) -> Result<String, CheckpointError> {
        let length = self.u64()?;
        self.need(length)?;
        let mut bytes = vec![0; length as usize];
        self.input.read_exact(&mut bytes).map_err(|e| CheckpointError::io(self.path, "", e))?;
        self.at += length;
        Ok(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
    }

    fn value(&mut self, kind: u32) -> Result<GgufValue, CheckpointError> {
        Ok(match kind {
            6 => GgufValue::Float(f64::from(self.bytes().map(f32::from_le_bytes)?)),
            12 => GgufValue::Float(self.bytes().map(f64::from_le_bytes)?),
            7 => GgufValue::Flag(self.integer(kind)? != 0),
            8 => GgufValue::Text(self.text()?),
            9 => self.array()?,
            _ => GgufValue::Integer(self.integer(kind)?),
        })
    }

    fn integer(&mut self, kind: u32) -> Result<i128, CheckpointError> {
        Ok(match kind {
            0 | 7 => u8::from_le_bytes(self.bytes()?).into(),
            1 => i8::from_le_bytes(self.bytes()?).into(),
            2 => u16::from_le_bytes(self.bytes()?).into(),
            3 => i16::from_le_bytes(self.bytes()?).into(),
            4 => u32::from_le_bytes(self.bytes()?).into(),
            5 => i32::from_le_bytes(self.bytes()?).into(),
            10 => u64::from_le_bytes(self.bytes()?).into(),
            11 => i64::from_le_bytes(self.bytes()?).into(),
            _ => return Err(self.malformed(format!("{} has the unknown value type {kind}", self.part))),
        })
    }

    fn array(&mut self) -> Result<GgufValue, CheckpointError> {
        let kind = self.u32()?;
        let length = self.u64()?;
        let least = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            8 | 10..=12 => 8,
            _ => {
                return Err(
                    self.malformed(format!("{} is an array of value type {kind}, which is not supported", self.part))
                );
            }
        };
        self.need(length.saturating_mul(least))?;
        Ok(match kind {
            8 => GgufValue::Texts((0..length).map(|_| self.text()).collect::<Result<_, _>>()?),
            6 => {
                GgufValue::Floats((0..length).map(|_| self.bytes().map(f32::from_le_bytes)).collect::<Result<_, _>>()?)
            }
            12 => {
                let one = |_| self.bytes().map(|b| f64::from_le_bytes(b) as f32);
                GgufValue::Floats((0..length).map(one).collect::<Result<_, _>>()?)
            }
            _ => {
                let one = |_| self.integer(kind).map(|n| n.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
                GgufValue::Integers((0..length).map(one).collect::<Result<_, _>>()?)
            }
        })
    }

    /// Reads the tensor table; offsets are still relative to the data.
    fn table(&mut self, count: u64) -> Result<Vec<(String, GgufTensor)>, CheckpointError> {
        let mut table = Vec::new();
        for _ in 0..count {
            let name = self.text()?;
            self.part = format!("the table entry of tensor {name}");
            let dimensions = self.u32()?;
            if dimensions > MAX_DIMENSIONS {
                return Err(self.malformed(format!("tensor {name} has {dimensions} dimensions")));
            }
            let mut shape = Vec::new();
            for _ in 0..dimensions {
                let d = self.u64()?;
                shape.push(usize::try_from(d).map_err(|_| self.malformed(format!("tensor {name} has a size of {d}")))?);
            }
            shape.reverse();
            let code = self.u32()?;
            let dtype = ggml_type(code).ok_or_else(|| CheckpointError::ElementType {
                tensor: name.clone(),
                path: self.path.to_path_buf(),
                dtype: unread_type(code),
                advice:
                    "Q4_0 to Q8_0, Q2_K to Q8_K, IQ2 to IQ4, MXFP4, F16, BF16 and F32 can be read; use another quantisation of the model"
                        .into(),
            })?;
            table.push((name, GgufTensor { dtype, shape, offset: self.u64()?, part: 0 }));
        }
        Ok(table)
    }
}

fn ggml_type(code: u32) -> Option<GgufType> {
    Some(GgufType::Ggml(match code {
        0 => GgmlDType::F32,
        1 => GgmlDType::F16,
        2 => GgmlDType::Q4_0,
        3 => GgmlDType::Q4_1,
        6 => GgmlDType::Q5_0,
        7 => GgmlDType::Q5_1,
        8 => GgmlDType::Q8_0,
        10 => GgmlDType::Q2K,
        11 => GgmlDType::Q3K,
        12 => GgmlDType::Q4K,
        13 => GgmlDType::Q5K,
        14 => GgmlDType::Q6K,
        15 => GgmlDType::Q8K,
        30 => GgmlDType::BF16,
        16 => return Some(GgufType::Iq(IqType::Iq2Xxs)),
        17 => return Some(GgufType::Iq(IqType::Iq2Xs)),
        18 => return Some(GgufType::Iq(IqType::Iq3Xxs)),
        20 => return Some(GgufType::Iq4Nl),
        21 => return Some(GgufType::Iq(IqType::Iq3S)),
        22 => return Some(GgufType::Iq(IqType::Iq2S)),
        23 => return Some(GgufType::Iq(IqType::Iq4Xs)),
        39 => return Some(GgufType::Mxfp4),
        _ => return None,
    }))
}

/// Name of a type that is not read; its number where it has none.
fn unread_type(code: u32) -> String {
    let name = match code {
        9 => "Q8_1",
        19 => "IQ1_S",
        24 => "I8",
        25 => "I16",
        26 => "I32",
        27 => "I64",
        28 => "F64",
        29 => "IQ1_M",
        34 => "TQ1_0",
        35 => "TQ2_0",
        40 => "NVFP4",
        _ => return format!("ggml type {code}"),
    };
    name.to_owned()
}
