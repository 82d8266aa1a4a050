//! Files of safetensors, whole or in shards, with the tensors that their headers declare.
use super::super::CheckpointError;
use super::super::json_fields;
use safetensors::Dtype;
use safetensors::tensor::Metadata;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The format's limit on the header, in bytes.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// A tensor as its file declares it; its bytes are checked to lie inside the file.
#[derive(Debug, Clone)]
pub(in crate::checkpoint) struct Stored {
    file: usize,
    pub(in crate::checkpoint) offset: u64,
    pub(in crate::checkpoint) dtype: Dtype,
    pub(in crate::checkpoint) shape: Vec<usize>,
}

/// The files of a folder with their tensors by name.
#[derive(Debug)]
pub(in crate::checkpoint) struct HfFiles {
    files: Vec<PathBuf>,
    index: Option<PathBuf>,
    pub(in crate::checkpoint) tensors: HashMap<String, Stored>,
}

impl HfFiles {
    /// Reads the headers of `model.safetensors`, or of all shards that its index lists.
    pub(in crate::checkpoint) fn open(folder: &Path) -> Result<HfFiles, CheckpointError> {
        let single = folder.join("model.safetensors");
        let index = folder.join("model.safetensors.index.json");
        let mut found = HfFiles { files: Vec::new(), index: None, tensors: HashMap::new() };
        if single.is_file() {
            found.add_file(&single)?;
        } else if index.is_file() {
            found.add_shards(folder, &index)?;
            found.index = Some(index);
        } else {
            return Err(CheckpointError::FileMissing { path: single, advice: missing_weights_advice(folder) });
        }
        Ok(found)
    }

    fn add_shards(&mut self, folder: &Path, index: &Path) -> Result<(), CheckpointError> {
        let map = json_fields::read_object(index, "")?;
        let malformed = |what: String| CheckpointError::Malformed { path: index.to_path_buf(), what };
        let weight_map = map
            .get("weight_map")
            .and_then(|v| v.as_object())
            .ok_or_else(|| malformed("it has no `weight_map` object".into()))?;
        let mut shards: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (tensor, file) in weight_map {
            let file = file.as_str().ok_or_else(|| malformed(format!("the file of tensor {tensor} is not a name")))?;
            // A path out of the folder could make a checkpoint read any file of the user.
            if file.contains(['/', '\\']) || file == ".." {
                return Err(malformed(format!("tensor {tensor} is in {file:?}, which is not a file of this folder")));
            }
            shards.entry(file).or_default().insert(tensor);
        }
        for (file, tensors) in shards {
            let path = folder.join(file);
            if !path.is_file() {
                let advice = format!("{} lists it as a shard; fetch the checkpoint again", index.display());
                return Err(CheckpointError::FileMissing { path, advice });
            }
            self.add_file(&path)?;
            for tensor in tensors {
                if !self.tensors.contains_key(tensor) {
                    let parameter = format!("listed in {}", index.display());
                    return Err(CheckpointError::TensorMissing { tensor: tensor.to_string(), parameter, path });
                }
            }
        }
        Ok(())
    }

    fn add_file(&mut self, path: &Path) -> Result<(), CheckpointError> {
        let io = |e| CheckpointError::io(path, "fetch the checkpoint again", e);
        let truncated = |what: String| CheckpointError::Truncated { path: path.to_path_buf(), what };
        let malformed = |what: String| CheckpointError::Malformed { path: path.to_path_buf(), what };
        let mut file = earnest_digest::input::open(path).map_err(io)?;
        let size = file.metadata().map_err(io)?.len();
        let mut prefix = [0u8; 8];
        if size < 8 {
            return Err(truncated(format!("{size} bytes are too few for a safetensors header")));
        }
        file.read_exact(&mut prefix).map_err(io)?;
        let header = u64::from_le_bytes(prefix);
        if header > MAX_HEADER_BYTES {
            return Err(malformed(format!("its header of {header} bytes exceeds the format's limit")));
        }
        if header > size - 8 {
            return Err(truncated(format!("its header needs {header} bytes, but only {} are left", size - 8)));
        }
        let mut text = vec![0u8; header as usize];
        file.read_exact(&mut text).map_err(io)?;
        let metadata: Metadata =
            serde_json::from_slice(&text).map_err(|e| malformed(format!("its safetensors header is invalid: {e}")))?;
        let data = size - 8 - header;
        let file = self.files.len();
        for (name, info) in metadata.tensors() {
            let (begin, end) = (info.data_offsets.0 as u64, info.data_offsets.1 as u64);
            let bits = info.shape.iter().try_fold(info.dtype.bitsize() as u64, |n, &d| n.checked_mul(d as u64));
            if end < begin || bits != (end - begin).checked_mul(8) {
                let what =
                    format!("the shape {:?} of tensor {name} does not match its bytes {begin}..{end}", info.shape);
                return Err(malformed(what));
            }
            if end > data {
                return Err(truncated(format!(
                    "tensor {name} ends at byte {end} of the data, but there are only {data}"
                )));
            }
            let stored = Stored { file, offset: 8 + header + begin, dtype: info.dtype, shape: info.shape.clone() };
            if let Some(first) = self.tensors.insert(name.clone(), stored)
                && let Some(other) = self.files.get(first.file)
            {
                return Err(malformed(format!("tensor {name} is also in {}", other.display())));
            }
        }
        self.files.push(path.to_path_buf());
        Ok(())
    }

    /// Returns a tensor as its file declares it, with the file.
    pub(in crate::checkpoint) fn stored(&self, name: &str) -> Option<(&Stored, &Path)> {
        self.tensors.get(name).map(|stored| (stored, self.file(stored)))
    }

    pub(in crate::checkpoint) fn file(&self, stored: &Stored) -> &Path {
        self.files.get(stored.file).map_or(Path::new(""), PathBuf::as_path)
    }

    /// The index, or else the first file: where what is missing should be.
    pub(in crate::checkpoint) fn main(&self) -> PathBuf {
        self.index.clone().or(self.files.first().cloned()).unwrap_or_default()
    }

    /// All files, the index first.
    pub(in crate::checkpoint) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.index.iter().chain(&self.files)
    }
}

fn missing_weights_advice(folder: &Path) -> String {
    let other = |ending: &str| {
        std::fs::read_dir(folder)
            .ok()
            .and_then(|mut d| d.find_map(|e| e.ok().filter(|e| e.file_name().to_string_lossy().ends_with(ending))))
    };
    if let Some(gguf) = other(".gguf") {
        return format!("the folder has {}; name that file instead", gguf.path().display());
    }
    if other(".bin").is_some() || other(".pt").is_some() || other(".pth").is_some() {
        return "only safetensors and GGUF weights can be read; fetch the checkpoint's safetensors revision".into();
    }
    "neither it nor model.safetensors.index.json is in the folder; fetch the checkpoint".into()
}
