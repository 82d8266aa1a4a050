//! Opening and identification of checkpoints.
use std::path::{Path, PathBuf};

use earnest_digest::DigestCache;
use earnest_models::checkpoint::{
    Checkpoint, CheckpointError, Format, METADATA_FILES, PRE_TOKENIZER_KEY, SuppliedPreTokenizer, is_pre_tokenizer,
};
use earnest_models::hub::Expected;

use super::LocatedModel;
use crate::EvalError;
use earnest_results::{FileRecord, ModelNotice, ModelRecord, Notice, Pinned};

/// Opens a checkpoint: headers, tokenizer and template, no weights.
pub fn open(located: &LocatedModel) -> Result<Checkpoint, EvalError> {
    open_with(located, Checkpoint::open_allowing)
}

/// Opens a checkpoint for mistral.rs, which has architectures that the native engine lacks.
pub(super) fn open_for_mistralrs(located: &LocatedModel) -> Result<Checkpoint, EvalError> {
    open_with(located, Checkpoint::open_for_mistralrs)
}

/// Opens a checkpoint with its own entries of `--allow-config`, and with those for several models. Of these, the name of a pre-tokenizer
/// is only for a file that cannot be opened without it.
pub(super) fn open_where_needed(
    located: &LocatedModel,
    open: fn(&Path, &[String]) -> Result<Checkpoint, CheckpointError>,
) -> Result<Checkpoint, CheckpointError> {
    let (names, keys): (Vec<&String>, Vec<&String>) =
        located.shared_config.iter().partition(|entry| is_pre_tokenizer(entry));
    let mut allow: Vec<String> = located.allow_config.iter().chain(keys).cloned().collect();
    match open(&located.path, &allow) {
        Err(CheckpointError::PreTokenizer { .. }) if !names.is_empty() => {
            allow.extend(names.into_iter().cloned());
            open(&located.path, &allow)
        }
        opened => opened,
    }
}

fn open_with(
    located: &LocatedModel,
    open: fn(&Path, &[String]) -> Result<Checkpoint, CheckpointError>,
) -> Result<Checkpoint, EvalError> {
    let path = located.path.as_path();
    let opened = open_where_needed(located, open).map(|mut checkpoint| {
        checkpoint.set_weight_format(located.weights);
        checkpoint
    });
    // Checked first, because a damaged tokenizer or config can still be readable.
    if path.is_dir() {
        let names = METADATA_FILES.iter().chain(&["model.safetensors.index.json"]);
        let files = names.map(|name| path.join(name)).filter(|file| file.is_file());
        for file in files.filter(|file| Expected::of(file) != Expected::OutsideCache) {
            checked_sha256(&file, |_| ())?;
        }
    }
    let checkpoint = opened.map_err(|error| {
        let failed = EvalError::model(format!("cannot use the checkpoint: {error}"));
        if let Some(help) = error.help() {
            return failed.hint(help);
        }
        if path.exists() {
            match &located.pinned {
                Some(Pinned { repo, commit, .. }) => failed.hint(format!(
                    "`earnest models verify {repo}@{commit}` checks its files; `earnest models fetch` repairs them"
                )),
                None => failed,
            }
        } else {
            failed.hint(
                "a model is a Hugging Face folder, a GGUF file or a name of `earnest models list`; `earnest models fetch NAME` gets one",
            )
        }
    })?;
    check_options(located, &checkpoint)?;
    Ok(checkpoint)
}

/// Refuses options that change nothing, under which a run would be stored as another model's.
pub(super) fn check_options(located: &LocatedModel, checkpoint: &Checkpoint) -> Result<(), EvalError> {
    // Of a model that runs elsewhere, nothing is known.
    if checkpoint.is_foreign() {
        return Ok(());
    }
    if let Some(quant) = located.weights.quant
        && checkpoint.weight_record().is_some_and(|record| record.quantised_weights == 0)
    {
        let name = quant.name();
        return Err(EvalError::setting(format!(
            "the setting `quant = {name}` quantises nothing: no matrix has rows of a multiple of 32 weights"
        ))
        .hint("leave it out, or take another model"));
    }
    if let Some((entry, token)) = checkpoint.pre_tokenizer.as_ref().and_then(|one| one.option().zip(one.splits.clone()))
        && !located.allow_config.contains(&entry)
    {
        let message = format!(
            "{}: the setting `allow_config = {entry}` is for all models, and splits tokens of this one's vocabulary, such as {token}: it \
             is not the one that the model was trained with",
            short_name(&located.path)
        );
        return Err(EvalError::model(message).hint(format!(
            "name this model's own in a study file: allow-config = [\"{PRE_TOKENIZER_KEY}=NAME\"] in its table (docs/studies.md)"
        )));
    }
    let allowed = allowed_config(checkpoint);
    match located.allow_config.iter().find(|entry| !fits(entry, &allowed)) {
        Some(entry) => {
            let reason = if is_pre_tokenizer(entry) { NO_PRE_TOKENIZER } else { NO_KEY };
            Err(EvalError::setting(format!("allow-config {entry}: {reason}")).hint("leave it out"))
        }
        None => Ok(()),
    }
}

const NO_PRE_TOKENIZER: &str =
    "only a GGUF file with merges of bytes (tokenizer.ggml.model gpt2) has a pre-tokenizer to name";
const NO_KEY: &str = "the configuration has no unknown key of this name";

/// True for an entry of `--allow-config` that let something through.
fn fits(entry: &str, allowed: &[String]) -> bool {
    allowed.iter().any(|name| name == entry || name.rsplit('.').next() == Some(entry))
}

/// Returns notices of the entries of `--allow-config` for several models that do not fit this one.
pub(super) fn left_out(located: &LocatedModel, checkpoint: &Checkpoint) -> Vec<Notice> {
    if checkpoint.is_foreign() {
        return Vec::new();
    }
    let allowed = allowed_config(checkpoint);
    let reason = |entry: &str| {
        if !is_pre_tokenizer(entry) {
            return NO_KEY.to_owned();
        }
        match (checkpoint.own_pre_tokenizer(), &checkpoint.pre_tokenizer) {
            (Some(own), _) => format!("the file itself names {own}"),
            (None, Some(supplied)) => format!("its vocabulary leaves no doubt about {}", supplied.name),
            (None, None) => NO_PRE_TOKENIZER.to_owned(),
        }
    };
    let unfit = located.shared_config.iter().filter(|entry| !fits(entry, &allowed));
    let name = short_name(&located.path);
    unfit
        .map(|entry| {
            let (model, entry, reason) = (name.clone(), entry.clone(), reason(entry));
            Notice::from(ModelNotice::ConfigLeftOut { model, entry, reason })
        })
        .collect()
}

/// Returns what `--allow-config` let through.
fn allowed_config(checkpoint: &Checkpoint) -> Vec<String> {
    let named = checkpoint.pre_tokenizer.as_ref().and_then(SuppliedPreTokenizer::option);
    checkpoint.passed_keys.allowed.iter().cloned().chain(named).collect()
}

/// Returns the manifest's record of a checkpoint.
pub fn record(located: &LocatedModel, checkpoint: &Checkpoint) -> ModelRecord {
    let mut name = short_name(&located.path);
    if !located.weights.is_plain() {
        name = format!("{name}-{}", located.weights);
    }
    ModelRecord {
        name,
        path: located.given.display().to_string(),
        format: match &checkpoint.format {
            Format::Safetensors => match checkpoint.quantisation() {
                Some(quantisation) => format!("safetensors {quantisation}"),
                None => "safetensors".to_owned(),
            },
            Format::Gguf { quantisation } => format!("gguf {quantisation}"),
        },
        architecture: checkpoint.config.architecture.clone(),
        context: checkpoint.config.max_positions,
        chat_template_sha256: checkpoint.chat_template.as_ref().map(|template| template.sha256()),
        pinned: located.pinned.clone(),
        weights: checkpoint.weight_record(),
        allowed_config: allowed_config(checkpoint),
    }
}

/// Returns the short name of a checkpoint: its folder, or its file without `.gguf`. Snapshots of a Hugging Face cache
/// (`models--org--name/snapshots/<commit>`) have the name of the repository.
pub fn short_name(path: &Path) -> String {
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

/// Returns the SHA-256 of a file and checks it against a Hugging Face cache that contains the file. Digests of unchanged
/// large files come from the digest cache.
pub(super) fn checked_sha256(path: &Path, progress: impl FnMut(u64)) -> Result<String, EvalError> {
    let sha256 = DigestCache::for_user().sha256_file(path, progress).map_err(|error| unreadable(path, &error))?;
    Expected::of(path).check(path, || Ok(sha256.clone()))?;
    Ok(sha256)
}

fn unreadable(path: &Path, error: &std::io::Error) -> EvalError {
    EvalError::model(format!("cannot read {}: {error}", path.display()))
}

/// Returns a commit and those of its files whose expected digest is unknown; none for models outside a cache.
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

/// Returns size and SHA-256 of every file of the checkpoint, by name. `progress` gets the bytes done and the total.
///
/// # Errors
/// Unreadable files, and files of a cache whose content is not that of their commit.
pub fn hash_files(checkpoint: &Checkpoint, mut progress: impl FnMut(u64, u64)) -> Result<Vec<FileRecord>, EvalError> {
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

/// Checks the files of a commit in the cache.
pub(super) fn check_files(checkpoint: &Checkpoint) -> Result<(), EvalError> {
    for file in checkpoint.files().iter().filter(|file| Expected::of(file) != Expected::OutsideCache) {
        checked_sha256(file, |_| ())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_for_people() {
        assert_eq!(short_name(Path::new("/m/SmolLM2-135M.Q4_1.gguf")), "SmolLM2-135M.Q4_1");
        assert_eq!(short_name(Path::new("/m/Qwen2.5-1.5B/")), "Qwen2.5-1.5B");
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let snapshot = format!("/hub/models--HuggingFaceTB--SmolLM2-135M/snapshots/{commit}");
        assert_eq!(short_name(Path::new(&snapshot)), "SmolLM2-135M");
    }
}
