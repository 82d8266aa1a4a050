//! `earnest models show`.
use earnest_engine::Sampling;
use earnest_eval::model::{LocatedModel, recommended_by_files};
use std::fmt::Write;
use std::path::Path;

use serde::Serialize;

use super::args::ShowArgs;
use super::estimate;
use super::list::{Memory, billions};
use super::opened::{files, open};
use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use crate::cli::values::named;
use earnest_models::checkpoint::{Checkpoint, ElementType, MemoryEstimate};
use earnest_models::hub::{
    Cache, CachedCommit, CommitReference, Decoding, Entry, Environment, HubError, Listing, Reference, Remote,
};
use earnest_models::memory::human_bytes;

/// Everything known about a model.
#[derive(Debug, Default, Serialize)]
struct Shown {
    /// Path, or repository and commit.
    model: String,
    entry: Option<Entry>,
    /// Reason why the engine cannot run it, whatever the commit.
    not_runnable: Option<String>,
    /// Bytes of the weights by type, from the table of shapes.
    memory: Option<Memory>,
    /// Longest sequence in tokens.
    context: Option<usize>,
    /// Bytes of keys and values per token.
    kv_per_token: Option<u64>,
    /// Sampling that the generation_config.json at hand recommends.
    #[serde(skip_serializing_if = "Option::is_none")]
    recommended: Option<Sampling>,
    /// Memory of a local checkpoint in the engine.
    here: Option<MemoryEstimate>,
    /// Name of the quantisation of a local checkpoint's own weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    quantisation: Option<String>,
    /// Format in which the engine holds a local checkpoint's matrices.
    #[serde(skip)]
    held: &'static str,
    cached: Option<CachedCommit>,
    /// Files of the commit, from the hub or as fetched.
    listing: Option<Listing>,
    files: Option<Vec<String>>,
}

impl Shown {
    /// Adds what the files of a checkpoint say.
    fn beside(self, checkpoint: &Checkpoint) -> Shown {
        Shown {
            context: Some(checkpoint.config.max_positions),
            recommended: Some(recommended_by_files(checkpoint)),
            here: Some(checkpoint.memory()),
            quantisation: checkpoint.quantisation().map(str::to_owned),
            held: held(checkpoint),
            ..self
        }
    }
}

/// Shows.
pub fn execute(args: &ShowArgs, printer: Printer) -> Result<Exit, CliError> {
    let shown = gather(args, printer)?;
    if args.json {
        printer.json(&shown)?;
    } else {
        printer.result(&screen(&shown, printer.known_width()))?;
    }
    Ok(Exit::Success)
}

fn gather(args: &ShowArgs, printer: Printer) -> Result<Shown, CliError> {
    let text = args.model.as_str();
    // An entry without a commit can be shown but not run.
    if let Ok(Reference::Name(name)) = Reference::parse(text)
        && let list = args.hub.settings().registry()?
        && (!Path::new(text).exists() || list.find(&name).is_some())
    {
        let entry = list.get(&name)?;
        if entry.commit.is_none() {
            if args.remote {
                return Err(entry.pinned().map(drop).map_or_else(CliError::from, |()| CliError::usage("no commit")));
            }
            return Ok(of_entry(entry.clone()));
        }
    }
    let Some(target) = CommitReference::find(text, &args.hub.settings())? else {
        let chosen = LocatedModel::find(Path::new(text), &args.hub.settings(), Default::default())?;
        let checkpoint = open(&chosen, printer)?;
        let files = checkpoint.files().iter().map(|path| path.display().to_string()).collect();
        return Ok(Shown { model: text.to_owned(), files: Some(files), ..Shown::default() }.beside(&checkpoint));
    };
    let environment = Environment::read(args.hub.offline);
    let cache = Cache::from_environment(&environment)?;
    let found = cache.inspect(&target.repo, &target.commit);
    let listing = if args.remote {
        let remote = Remote::new(&environment, &format!("asking the hub for the files of {}", target.repo))?;
        Some(remote.revision(&target.repo, target.commit.as_str())?.listing)
    } else {
        cache.listing(&target.repo, &target.commit)
    };
    let mut shown = target.entry.map_or_else(Shown::default, of_entry);
    shown.not_runnable = target.not_runnable;
    shown.model = format!("{}@{}", target.repo, target.commit);
    shown.listing = listing;
    if found.files + found.missing.len() > 0 {
        let ready = cache.checkpoint_folder(&target.repo, &target.commit, text).ok();
        if let Some(checkpoint) =
            ready.and_then(|folder| Checkpoint::open_allowing(&folder, &args.hub.allow_config).ok())
        {
            shown = shown.beside(&checkpoint);
        }
        shown.cached = Some(found);
    }
    Ok(shown)
}

/// Returns how the engine holds a checkpoint's matrices on a CPU, for a sentence.
fn held(checkpoint: &Checkpoint) -> &'static str {
    let mut parameters = checkpoint.config.parameters().into_iter();
    let is_packed = parameters.any(|(parameter, shape)| checkpoint.block_type(parameter, &shape).is_some());
    match (is_packed, checkpoint.quantisation()) {
        (true, _) => "on a CPU, packed as in the file",
        (false, None) => "in these files' type",
        (false, Some(_)) => "on a CPU, widened to f32",
    }
}

fn of_entry(entry: Entry) -> Shown {
    let kv = estimate::decoder(&entry).map(|config| MemoryEstimate::of(&config, ElementType::F32).kv_per_token);
    let commit = entry.commit.as_ref().map_or("unresolved", |commit| commit.as_str());
    Shown {
        model: format!("{}@{commit}", entry.repo),
        memory: Memory::of(&entry),
        context: estimate::context(&entry),
        kv_per_token: kv,
        not_runnable: entry.not_runnable.clone(),
        entry: Some(entry),
        ..Shown::default()
    }
}

/// Everything in lines, wrapped at a known width.
fn screen(shown: &Shown, width: Option<usize>) -> String {
    let mut lines: Vec<(&str, String)> = vec![("model", shown.model.clone())];
    if let Some(entry) = &shown.entry {
        lines.push(("name", entry.name.clone()));
        if let Some(kind) = entry.kind {
            let family = entry.family.as_deref().unwrap_or("unknown");
            lines.push(("kind", format!("{} of the {family} family", format!("{kind:?}").to_lowercase())));
        }
        if let Some(count) = estimate::parameters(entry) {
            lines.push(("weights", format!("{count} ({})", billions(count))));
        }
        let gate = match entry.gate {
            earnest_models::hub::Gate::Licence => {
                format!(", to be accepted at https://huggingface.co/{} before the download", entry.repo)
            }
            earnest_models::hub::Gate::None => String::new(),
            earnest_models::hub::Gate::Unknown => ", possibly gated".to_owned(),
        };
        lines.push(("licence", format!("{}{gate}", entry.licence.as_deref().unwrap_or("unknown"))));
        lines.push(("decoding", decoding(entry, shown.recommended.as_ref())));
        for source in &entry.sources {
            lines.push(("source", source.clone()));
        }
        if !entry.unverified.is_empty() {
            let claims: Vec<String> =
                entry.unverified.iter().map(|claim| format!("{claim:?}").to_lowercase()).collect();
            lines.push(("not verified", format!("{}: see https://huggingface.co/{}", claims.join(", "), entry.repo)));
        }
        if !entry.papers.is_empty() {
            lines.push(("papers", entry.papers.join(", ")));
        }
        if let Some(from) = &entry.from {
            lines.push(("list", from.display().to_string()));
        }
    }
    if let (None, Some(read)) = (&shown.entry, &shown.recommended) {
        lines.push(("decoding", of_files(read)));
    }
    if let Some(memory) = &shown.memory {
        let (f32, half) = (human_bytes(memory.f32), human_bytes(memory.bf16));
        let quantised = [("q8_0", memory.q8_0), ("q4k", memory.q4k)];
        let quantised = quantised.into_iter().filter_map(|(quant, bytes)| Some((quant, human_bytes(bytes?))));
        let quantised: String = quantised.map(|(quant, bytes)| format!(", {bytes} with --quant {quant}")).collect();
        lines.push(("memory", format!("{half} in bf16 or f16, {f32} in f32{quantised}")));
    }
    let kv = shown.kv_per_token.or(shown.here.map(|here| here.kv_per_token));
    let kv = kv.map(|bytes| format!("{} of keys and values per token", human_bytes(bytes)));
    let tokens = shown.context.map(|tokens| format!("{tokens} tokens"));
    let context: Vec<String> = tokens.into_iter().chain(kv).collect();
    if !context.is_empty() {
        lines.push(("context", context.join(", ")));
    }
    if let Some(quantisation) = &shown.quantisation {
        lines.push(("quantised", quantisation.clone()));
    }
    if let Some(here) = shown.here {
        lines.push(("here", format!("{} of weights {}", human_bytes(here.weights), shown.held)));
    }
    if let Some(cached) = &shown.cached {
        lines.push((
            "cache",
            format!("{}, {}, {}", cached.folder.display(), files(cached.files), human_bytes(cached.size)),
        ));
        for file in &cached.missing {
            lines.push(("missing", file.clone()));
        }
    }
    for note in shown.entry.iter().flat_map(|entry| &entry.notes) {
        lines.push(("note", note.clone()));
    }
    if let Some(reason) = &shown.not_runnable {
        lines.push(("not run", reason.clone()));
    }
    let widest = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, value) in &lines {
        text += &named(name, widest + 2, value, width);
    }
    if let Some(listing) = &shown.listing {
        text.push_str("\nfiles\n");
        for file in &listing.files {
            writeln!(
                text,
                "  {:>10}  {} {}  {}",
                human_bytes(file.size),
                file.hash.algorithm(),
                file.hash.digits(),
                file.path
            )
            .expect("writing to a String cannot fail");
        }
    }
    if let Some(files) = &shown.files {
        text.push_str("\nfiles\n");
        for file in files {
            writeln!(text, "  {file}").expect("writing to a String cannot fail");
        }
    }
    if let Some(entry) = shown.entry.as_ref().filter(|entry| entry.commit.is_none() && entry.not_runnable.is_none()) {
        let help = HubError::Unresolved { name: entry.name.clone(), repo: entry.repo.to_string() }.help();
        text.push('\n');
        text += &named("", 0, &help.unwrap_or_default(), width);
    }
    text
}

/// Condition on which a recommendation is followed.
const UNLESS: &str = "runs are greedy unless --recommended is given";

/// Words for the recommended decoding: that of the list, else that of the files at hand.
fn decoding(entry: &Entry, read: Option<&Sampling>) -> String {
    match (entry.decoding, read) {
        (Some(Decoding { temperature, top_p, top_k, repetition_penalty }), _) => {
            format!("{} recommended; {UNLESS}", sampling(temperature, top_p, top_k, None, repetition_penalty))
        }
        (None, Some(read)) => of_files(read),
        (None, None) if entry.papers.is_empty() => {
            format!("its generation_config.json says what is recommended, once it is fetched; {UNLESS}")
        }
        (None, None) => "greedy".to_owned(),
    }
}

/// Words for the sampling that the files at hand recommend.
fn of_files(read: &Sampling) -> String {
    if *read == Sampling::GREEDY {
        return "greedy; its files recommend nothing else".to_owned();
    }
    let changes = |value: f32, nothing: f32| (value != nothing).then_some(value);
    let top_k = (read.top_k != 0).then_some(read.top_k);
    let (min_p, penalty) = (changes(read.min_p, 0.0), changes(read.repetition_penalty, 1.0));
    let words = sampling(read.temperature, changes(read.top_p, 1.0), top_k, min_p, penalty);
    format!("{words} recommended by its generation_config.json; {UNLESS}")
}

fn sampling(
    temperature: f32,
    top_p: Option<f32>,
    top_k: Option<usize>,
    min_p: Option<f32>,
    penalty: Option<f32>,
) -> String {
    let mut parts = vec![format!("temperature {temperature}")];
    parts.extend(top_p.map(|p| format!("top-p {p}")));
    parts.extend(top_k.map(|k| format!("top-k {k}")));
    parts.extend(min_p.map(|p| format!("min-p {p}")));
    parts.extend(penalty.map(|r| format!("repetition penalty {r}")));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped_where_the_width_is_known() {
        let reason = "its architecture needs what no kernel of this engine computes ".repeat(3);
        let shown = Shown {
            model: "org/name".into(),
            not_runnable: Some(reason),
            kv_per_token: Some(1024),
            ..Shown::default()
        };
        let whole = screen(&shown, None);
        assert_eq!(whole.lines().count(), 3, "{whole}");
        let text = screen(&shown, Some(80));
        assert!(text.lines().all(|line| line.chars().count() <= 80) && text.lines().count() > 3, "{text}");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(&text), words(&whole));
    }
}
