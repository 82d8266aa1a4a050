//! `earnest models list`.
use serde::Serialize;

use super::args::ListArgs;
use super::estimate;
use super::opened::files;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use crate::cli::{Exit, catalogue};
use earnest_models::checkpoint::{ElementType, Quant};
use earnest_models::hub::{Cache, CachedCommit, Claim, Entry, Environment, Registry, RepoId};
use earnest_models::memory::human_bytes;
use earnest_report::{Align, Table, wrap};

/// Width of the table where that of the terminal is not known.
const WIDTH: usize = 100;

/// Column of the memory with `--quant q4k`.
const BITS_4: &str = "4-bit\nGiB";

/// Column of the memory with `--dtype f32`.
const F32: &str = "f32\nGiB";

/// A row of the list.
#[derive(Debug, Serialize)]
struct Line {
    /// None for a model in the cache that is not in the list.
    #[serde(flatten)]
    entry: Option<Entry>,
    /// Number of weights, also where only the shape says it.
    weights: Option<u64>,
    /// Longest sequence in tokens.
    context: Option<usize>,
    /// Bytes of the weights by type.
    memory: Option<Memory>,
    /// Files in the cache.
    cached: Option<CachedCommit>,
    /// Reason why a cached model without an entry cannot run.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_runnable: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Memory {
    pub(super) f32: u64,
    pub(super) bf16: u64,
    pub(super) f16: u64,
    /// With `--quant q8_0`; none where only the number of weights is known.
    pub(super) q8_0: Option<u64>,
    /// With `--quant q4k`.
    pub(super) q4k: Option<u64>,
}

impl Memory {
    /// Memory of an entry's weights by type.
    pub(super) fn of(entry: &Entry) -> Option<Memory> {
        let bytes = |dtype| estimate::weights(entry, dtype);
        Some(Memory {
            f32: bytes(ElementType::F32)?,
            bf16: bytes(ElementType::Bf16)?,
            f16: bytes(ElementType::F16)?,
            q8_0: estimate::quantised(entry, Quant::Q8),
            q4k: estimate::quantised(entry, Quant::Q4k),
        })
    }
}

/// Models of a suite's paper.
///
/// # Errors
/// There are none.
pub(in crate::cli) fn of_paper(list: &Registry, paper: &str) -> Result<Vec<Entry>, CliError> {
    let found: Vec<Entry> =
        list.entries.iter().filter(|entry| entry.papers.iter().any(|known| known == paper)).cloned().collect();
    if found.is_empty() {
        let mut papers: Vec<&str> = list.entries.iter().flat_map(|entry| &entry.papers).map(String::as_str).collect();
        papers.sort_unstable();
        papers.dedup();
        return Err(CliError::usage(format!("the list has no models of {paper}"))
            .help(format!("there are models of {}", papers.join(", "))));
    }
    Ok(found)
}

/// Lists.
pub fn execute(args: &ListArgs, printer: Printer) -> Result<Exit, CliError> {
    let list = args.hub.settings().registry()?;
    let environment = Environment::read(args.hub.offline);
    let cache = Cache::from_environment(&environment).ok();
    let mut cached = cache.as_ref().map(Cache::scan).unwrap_or_default();
    let mut lines = Vec::new();
    let reason = |repo: &RepoId| list.not_runnable(repo).map(|(_, reason)| reason.to_owned());
    for entry in list.entries.iter().cloned() {
        let index =
            cached.iter().position(|found| found.repo == entry.repo && Some(&found.commit) == entry.commit.as_ref());
        let memory = Memory::of(&entry);
        let (weights, context) = (estimate::parameters(&entry), estimate::context(&entry));
        let cached = index.map(|index| cached.swap_remove(index));
        lines.push(Line { weights, context, memory, cached, not_runnable: None, entry: Some(entry) });
    }
    cached.sort_by(|a, b| (&a.repo, &a.commit).cmp(&(&b.repo, &b.commit)));
    if args.cached {
        lines.extend(cached.into_iter().map(|found| Line {
            entry: None,
            weights: None,
            context: None,
            memory: None,
            not_runnable: reason(&found.repo),
            cached: Some(found),
        }));
        lines.retain(|line| line.cached.is_some());
    }
    if let Some(paper) = &args.paper {
        let belongs = |line: &Line| line.entry.as_ref().is_some_and(|entry| entry.papers.contains(paper));
        lines.retain(belongs);
        if lines.is_empty() && !args.cached {
            return Err(CliError::usage(format!("no model in the list belongs to {paper}"))
                .help(format!("papers are named like suites: {}", catalogue::names().join(", "))));
        }
    }
    if args.json {
        printer.json(&lines)?;
        return Ok(Exit::Success);
    }
    let head = [
        ("model", Align::Left),
        ("commit", Align::Left),
        ("weights", Align::Right),
        ("context", Align::Right),
        (BITS_4, Align::Right),
        ("bf16\nGiB", Align::Right),
        (F32, Align::Right),
        ("licence", Align::Left),
        ("gate", Align::Left),
        ("state", Align::Left),
    ];
    let mut table = Table::new(head.map(|(name, align)| (name.to_owned(), align)));
    for line in &lines {
        table.row(cells(line));
    }
    let width = printer.known_width().unwrap_or(WIDTH);
    let left_out = table.fit(width, ["gate", "commit", F32, "context", "licence", BITS_4]);
    let mut text = table.render();
    let places: Vec<String> = list.files.iter().map(|path| path.display().to_string()).collect();
    text.push_str(&format!(
        "\ncache  {}\nlists  built in{}\n",
        cache.map_or_else(|| "none".to_owned(), |cache| cache.folder().display().to_string()),
        places.iter().map(|path| format!(", {path}")).collect::<String>(),
    ));
    let about = "4-bit, bf16 and f32: memory of the weights with --quant q4k, --dtype bf16 and --dtype f32. A dash: no source says it, or \
                 the native engine does not run it. `earnest models show MODEL` has commit, sources and all.";
    text.push_str(&wrap(about, width, ""));
    if !left_out.is_empty() {
        let also = format!(
            "A wider terminal and --json also have: {}.",
            left_out.iter().map(|name| name.split('\n').next().unwrap_or(name)).collect::<Vec<_>>().join("; ")
        );
        text.push_str(&wrap(&also, width, ""));
    }
    printer.result(&text)?;
    Ok(Exit::Success)
}

fn cells(line: &Line) -> Vec<String> {
    let short = |commit: &str| commit.get(..8).unwrap_or(commit).to_owned();
    let closed = line.entry.as_ref().map_or(&line.not_runnable, |entry| &entry.not_runnable).is_some();
    let here = match &line.cached {
        Some(cached) if cached.missing.is_empty() => Some(format!("cached, {}", human_bytes(cached.size))),
        Some(cached) => Some(format!("{} missing", files(cached.missing.len()))),
        None if closed => None,
        None => Some("not fetched".to_owned()),
    };
    let state: Vec<String> = here.into_iter().chain(closed.then(|| "not runnable".to_owned())).collect();
    let state = state.join("; ");
    let dash = || "-".to_owned();
    let memory = |of: fn(&Memory) -> Option<u64>| line.memory.as_ref().and_then(of).map_or_else(dash, gib);
    match (&line.entry, &line.cached) {
        (Some(entry), _) => vec![
            entry.name.clone(),
            entry.commit.as_ref().map_or_else(|| "unresolved".to_owned(), |commit| short(commit.as_str())),
            line.weights.map_or_else(dash, billions),
            line.context.map_or_else(dash, |tokens| tokens.to_string()),
            memory(|memory| memory.q4k),
            memory(|memory| Some(memory.bf16)),
            memory(|memory| Some(memory.f32)),
            licence(entry),
            gate(entry).to_owned(),
            state,
        ],
        (None, Some(cached)) => {
            let mut row = vec![cached.repo.to_string(), short(cached.commit.as_str())];
            row.extend(std::iter::repeat_with(dash).take(7));
            row.push(state);
            row
        }
        (None, None) => Vec::new(),
    }
}

/// Bytes in GiB with two significant digits or more.
fn gib(bytes: u64) -> String {
    let value = bytes as f64 / f64::from(1 << 30);
    if value < 1.0 { format!("{value:.2}") } else { format!("{value:.1}") }
}

/// Licence, where a source confirms it.
fn licence(entry: &Entry) -> String {
    let known = entry.licence.clone().filter(|_| !entry.unverified.contains(&Claim::Licence));
    known.unwrap_or_else(|| "-".to_owned())
}

/// Gate of the repository: a licence to accept, none, or unknown.
fn gate(entry: &Entry) -> &'static str {
    match entry.gate {
        earnest_models::hub::Gate::Licence => "licence",
        earnest_models::hub::Gate::None => "-",
        earnest_models::hub::Gate::Unknown => "?",
    }
}

/// A parameter count, e.g. `8.03 B` or `494 M`.
pub(super) fn billions(count: u64) -> String {
    let count = count as f64;
    if count >= 1e11 {
        format!("{:.0} B", count / 1e9)
    } else if count >= 1e9 {
        format!("{:.2} B", count / 1e9)
    } else {
        format!("{:.0} M", count / 1e6)
    }
}
