//! A checkpoint as the commands use it.
use std::path::{Path, PathBuf};

use super::args::EngineArgs;
use super::device::{Device, DeviceArg};
use super::error::CliError;
use super::models::{HubArgs, Target};
use super::settings::CheckpointSays;
use super::values::human_bytes;
use super::{Exit, built_in};
use crate::checkpoint::{Checkpoint, Format, METADATA_FILES, WeightFormat};
use crate::digest::DigestCache;
use crate::engine::cuda::{self, Cuda, CudaError};
use crate::engine::native::{Native, Options};
use crate::engine::{Engine, Sampling};
use crate::hub::{Decoding, Expected};
use crate::run::{FileRecord, Host, ModelRecord, Pinned};

/// A model as it was named, and where it lies.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// As given on the command line.
    given: PathBuf,
    /// The folder or file.
    path: PathBuf,
    pinned: Option<Pinned>,
    weights: WeightFormat,
    /// What the list of models recommends for it.
    decoding: Option<Decoding>,
}

impl Chosen {
    /// The folder or file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Finds a model: a folder or file of that name, a name of the list, or a commit of a repository. Nothing is fetched: what
/// is not in the cache is an error that names the command.
pub fn choose(given: &Path, hub: &HubArgs, weights: WeightFormat) -> Result<Chosen, CliError> {
    let named = given.to_str().filter(|text| *text != built_in::NAME);
    named.map_or(Ok(()), |text| Target::refuse_unrunnable(text, hub))?;
    find(given, hub, weights, true)
}

/// The same of a model that runs elsewhere: of a commit, the files of its tokenizer are enough.
pub fn choose_tokenizer(given: &Path, hub: &HubArgs) -> Result<Chosen, CliError> {
    find(given, hub, WeightFormat::default(), false)
}

fn find(given: &Path, hub: &HubArgs, weights: WeightFormat, with_weights: bool) -> Result<Chosen, CliError> {
    let named = given.to_str().filter(|text| *text != built_in::NAME);
    let target = named.map(|text| Target::find(text, hub)).transpose()?.flatten();
    let Some(target) = target else {
        if given == Path::new(built_in::NAME) && !given.exists() {
            return Ok(Chosen {
                given: given.to_owned(),
                path: built_in::folder()?,
                pinned: None,
                weights,
                decoding: None,
            });
        }
        return Ok(Chosen { given: given.to_owned(), path: given.to_owned(), pinned: None, weights, decoding: None });
    };
    let path = target.folder(hub, with_weights)?;
    let decoding = target.entry.as_ref().and_then(|entry| entry.decoding);
    let pinned = Pinned {
        repo: target.repo.to_string(),
        commit: target.commit.to_string(),
        name: target.entry.map(|entry| entry.name),
    };
    Ok(Chosen { given: given.to_owned(), path, pinned: Some(pinned), weights, decoding })
}

/// What of the weights is not as the files have it, for the settings.
pub fn weights(checkpoint: &Checkpoint) -> Option<WeightFormat> {
    Some(checkpoint.weight_format()).filter(|format| !format.is_plain())
}

/// Opens a checkpoint: headers, tokenizer and template, no weights.
pub fn open(chosen: &Chosen) -> Result<Checkpoint, CliError> {
    let path = chosen.path.as_path();
    let opened = Checkpoint::open(path).map(|mut checkpoint| {
        checkpoint.set_weight_format(chosen.weights);
        checkpoint
    });
    // A damaged tokenizer or config may well be readable; what is no weight is small. Before what the damage leads to.
    if path.is_dir() {
        let names = METADATA_FILES.iter().chain(&["model.safetensors.index.json"]);
        let files = names.map(|name| path.join(name)).filter(|file| file.is_file());
        for file in files.filter(|file| Expected::of(file) != Expected::Elsewhere) {
            checked_sha256(&file, |_| ())?;
        }
    }
    opened.map_err(|error| {
        let failed = CliError::new(Exit::Model, format!("cannot use the checkpoint: {error}"));
        if path.exists() {
            match &chosen.pinned {
                Some(Pinned { repo, commit, .. }) => failed.help(format!(
                    "`earnest models verify {repo}@{commit}` says whether its files are whole; `earnest models fetch` mends them"
                )),
                None => failed,
            }
        } else {
            failed.help(
                "a model is a Hugging Face folder or a GGUF file; scripts/fetch-models.sh brings two small ones",
            )
        }
    })
}

/// The checkpoint for the manifest.
pub fn record(chosen: &Chosen, checkpoint: &Checkpoint) -> ModelRecord {
    let mut name = name(&chosen.path);
    if !chosen.weights.is_plain() {
        name = format!("{name}-{}", chosen.weights);
    }
    ModelRecord {
        name,
        path: chosen.given.display().to_string(),
        format: match &checkpoint.format {
            Format::Safetensors => "safetensors".to_owned(),
            Format::Gguf { quantisation } => format!("gguf {quantisation}"),
        },
        architecture: checkpoint.config.architecture.clone(),
        context: checkpoint.config.max_positions,
        chat_template_sha256: checkpoint.chat_template.as_ref().map(|template| template.sha256()),
        pinned: chosen.pinned.clone(),
        weights: checkpoint.weight_record(),
    }
}

/// A name for people: the folder or the file without `.gguf`. Snapshots of a Hugging Face cache
/// (`models--org--name/snapshots/<commit>`) are called by their name, not by their commit.
pub fn name(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let part = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let repository = path.ancestors().map(part).find_map(|folder| {
        let name = folder.strip_prefix("models--")?;
        Some(name.rsplit("--").next().unwrap_or(name).to_owned())
    });
    let own = part(&path);
    let own = own.strip_suffix(".gguf").map(str::to_owned).unwrap_or(own);
    repository.unwrap_or(own)
}

/// The SHA-256 of a file, which has to be what the cache says of it if it lies in one. Large files that have not changed since
/// they were hashed are not read again.
fn checked_sha256(path: &Path, progress: impl FnMut(u64)) -> Result<String, CliError> {
    let sha256 = DigestCache::of_user().sha256_file(path, progress).map_err(|error| unreadable(path, &error))?;
    Expected::of(path).check(path, || Ok(sha256.clone()))?;
    Ok(sha256)
}

fn unreadable(path: &Path, error: &std::io::Error) -> CliError {
    CliError::new(Exit::Model, format!("cannot read {}: {error}", path.display()))
}

/// Files of a commit that are copies of which nothing says what they should be, and the commit; none of a model elsewhere.
pub fn unverifiable(checkpoint: &Checkpoint) -> Option<(String, Vec<String>)> {
    let mut commit = None;
    let mut names = Vec::new();
    for path in checkpoint.files() {
        if let Expected::Unknown(named) = Expected::of(&path) {
            commit = Some(named);
            names.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    commit.map(|commit| (commit, names))
}

/// Size and SHA-256 of every file of the checkpoint, by name. A file of the cache that has another content than its commit is
/// an error. `progress` hears the bytes done and the bytes in all.
pub fn hash_files(checkpoint: &Checkpoint, mut progress: impl FnMut(u64, u64)) -> Result<Vec<FileRecord>, CliError> {
    let mut files: Vec<(PathBuf, u64)> = Vec::new();
    for path in checkpoint.files() {
        let size = std::fs::metadata(&path).map_err(|error| unreadable(&path, &error))?.len();
        files.push((path, size));
    }
    files.sort();
    let total = files.iter().map(|(_, size)| size).sum();
    let mut done = 0;
    let mut records = Vec::with_capacity(files.len());
    for (path, size) in files {
        let sha256 = checked_sha256(&path, |bytes| {
            done += bytes;
            progress(done, total);
        })?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        records.push(FileRecord { name, size, sha256 });
    }
    Ok(records)
}

/// What the checkpoint says about generation. A checkpoint that does not ask for sampling recommends greedy. What the list of
/// models recommends for the entry by which the model was chosen comes before what the checkpoint does.
pub fn says(chosen: &Chosen, checkpoint: &Checkpoint) -> CheckpointSays {
    let defaults = &checkpoint.generation;
    let penalty = defaults.repetition_penalty.unwrap_or(1.0);
    // Fields that are missing have the values of transformers' GenerationConfig (temperature 1, top-k 50, top-p 1).
    let recommended = if defaults.do_sample == Some(true) {
        Sampling {
            temperature: defaults.temperature.unwrap_or(1.0),
            top_k: defaults.top_k.unwrap_or(50),
            top_p: defaults.top_p.unwrap_or(1.0),
            min_p: defaults.min_p.unwrap_or(0.0),
            repetition_penalty: penalty,
        }
    } else {
        Sampling { repetition_penalty: penalty, ..Sampling::GREEDY }
    };
    CheckpointSays {
        recommended: chosen.decoding.map_or(recommended.clone(), |listed| over(listed, &recommended)),
        stop_ids: defaults.eos_ids.clone(),
        tokenizer_eos: checkpoint.tokenizer.eos(),
        thinks: checkpoint.chat_template.as_ref().is_some_and(|template| template.thinks()),
    }
}

/// The list's recommendation; what it leaves open is as the checkpoint has it.
fn over(listed: Decoding, checkpoint: &Sampling) -> Sampling {
    Sampling {
        temperature: listed.temperature,
        top_k: listed.top_k.unwrap_or(checkpoint.top_k),
        top_p: listed.top_p.unwrap_or(checkpoint.top_p),
        min_p: checkpoint.min_p,
        repetition_penalty: listed.repetition_penalty.unwrap_or(checkpoint.repetition_penalty),
    }
}

/// Requests that run at once on a CPU, if nothing else is asked.
pub const DEFAULT_BATCH: usize = 128;

/// The engine's options.
pub fn engine_options(args: &EngineArgs) -> Options {
    let defaults = Options::default();
    Options {
        threads: args.threads.or(defaults.threads),
        kv_memory: args.kv_memory.map(|size| size.0).or(defaults.kv_memory),
        max_batch: args.max_batch.unwrap_or(defaults.max_batch),
        prefix_cache: !args.no_prefix_cache,
        ..defaults
    }
}

/// The same for the manifest.
fn describe_options(options: &Options) -> serde_json::Value {
    serde_json::json!({
        "threads": options.threads,
        "kv_memory": options.kv_memory,
        "max_batch": options.max_batch,
        "token_budget": options.token_budget,
        "prefix_cache": options.prefix_cache,
    })
}

/// An engine with its weights.
pub struct Loaded {
    pub engine: Box<dyn Engine>,
    /// Its settings, for the manifest.
    pub options: serde_json::Value,
    /// What a user should know, e.g. that memory was short.
    pub notes: Vec<String>,
}

/// Loads the weights where the command line says.
pub fn load(checkpoint: &Checkpoint, args: &EngineArgs) -> Result<Loaded, CliError> {
    let (device, note) = Device::of(args)?;
    let mut loaded = load_on(checkpoint, &device, args)?;
    loaded.notes.extend(note);
    Ok(loaded)
}

/// The engine on the CPU, with its settings for the manifest.
pub fn load_cpu(checkpoint: &Checkpoint, options: Options) -> Result<(Native, serde_json::Value), CliError> {
    check_files(checkpoint)?;
    let given = options.kv_memory.zip(Host::probe().memory);
    if let Some((kv, memory)) = given.filter(|(kv, memory)| kv > memory) {
        let (kv, memory) = (human_bytes(kv), human_bytes(memory));
        return Err(CliError::usage(format!("--kv-memory {kv} is more than this machine's memory of {memory}"))
            .help("leave it out: the engine takes a quarter of what is free"));
    }
    let described = describe_options(&options);
    let engine = Native::load(checkpoint, options)
        .map_err(|error| CliError::new(Exit::Model, format!("cannot load {}: {error}", checkpoint.source.display())))?;
    Ok((engine, described))
}

fn check_files(checkpoint: &Checkpoint) -> Result<(), CliError> {
    for file in checkpoint.files().iter().filter(|file| Expected::of(file) != Expected::Elsewhere) {
        checked_sha256(file, |_| ())?;
    }
    Ok(())
}

/// Loads the weights on a device that was settled before, if they are those of their commit. What a run hashed a moment ago is not
/// read again.
pub fn load_on(checkpoint: &Checkpoint, device: &Device, args: &EngineArgs) -> Result<Loaded, CliError> {
    check_files(checkpoint)?;
    let at_source =
        |error: String| CliError::new(Exit::Model, format!("cannot load {}: {error}", checkpoint.source.display()));
    // A stored run goes on where it began: its settings name the device.
    match (device, args.device) {
        (Device::Cpu, Some(DeviceArg::Cuda(_))) => {
            return Err(CliError::usage("this run computes on the CPU, and --device names a GPU"));
        }
        (Device::Cuda { .. }, Some(DeviceArg::Cpu)) => {
            return Err(CliError::usage("this run computes on a GPU, and --device names the CPU"));
        }
        _ => {}
    }
    match device {
        Device::Cpu => {
            let (engine, options) = load_cpu(checkpoint, engine_options(args))?;
            Ok(Loaded { engine: Box::new(engine), options, notes: vec![] })
        }
        Device::Cuda { invariant } => {
            if checkpoint.weight_format().compute.is_some() {
                return Err(CliError::usage("--compute int8 is an arithmetic of the CPU")
                    .help("leave it out, or add --device cpu"));
            }
            let defaults = cuda::Options::default();
            let options = cuda::Options {
                device: super::device::index(args),
                kv_memory: args.kv_memory.map(|size| size.0),
                max_batch: args.max_batch.unwrap_or(defaults.max_batch),
                prefix_cache: !args.no_prefix_cache,
                batch_invariant: *invariant,
                ..defaults
            };
            let engine = Cuda::load(checkpoint, &options).map_err(|error| match error {
                CudaError::Checkpoint(_) | CudaError::NotFinite { .. } => at_source(error.to_string()),
                error => super::device::failure(&error),
            })?;
            let (options, notes) = (engine.describe(), engine.notes().to_vec());
            Ok(Loaded { engine: Box::new(engine), options, notes })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_for_people() {
        assert_eq!(name(Path::new("/m/SmolLM2-135M.Q4_1.gguf")), "SmolLM2-135M.Q4_1");
        assert_eq!(name(Path::new("/m/Qwen2.5-1.5B/")), "Qwen2.5-1.5B");
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let snapshot = format!("/hub/models--HuggingFaceTB--SmolLM2-135M/snapshots/{commit}");
        assert_eq!(name(Path::new(&snapshot)), "SmolLM2-135M");
    }
}
