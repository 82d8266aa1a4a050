//! `earnest show`: the exact prompt of an item.
use earnest_eval::model::{self, LocatedModel};
use std::fmt::Write;

use clap::Args;
use serde::Serialize;

use super::args::{ModelArgs, SeedArgs, thinking};
use super::catalogue::SuiteCommand;
use super::error::CliError;
use super::printer::Printer;
use super::{Exit, catalogue};
use earnest_digest as digest;
use earnest_eval::prompt::{Mode, Prompter, WithThinking};
use earnest_eval::run::ThinkingRequest;
use earnest_models::checkpoint::{Checkpoint, Tokenizer};
use earnest_tasks::suite::{Budget, Item, Suite};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest show arithmetic-bench --model model.gguf
  earnest show arithmetic-bench --model model.gguf --task rev --lengths 5
  earnest show arithmetic-bench --model model.gguf --prompt raw --json
  earnest show nupa --model model.gguf --task sig_Float --shots 5")]
pub struct ShowArgs {
    #[command(flatten)]
    pub model: ModelArgs,

    /// The first item of this task
    #[arg(long, value_name = "TASK", conflicts_with = "item")]
    pub task: Option<String>,

    /// The item with this id, as `earnest samples` shows it
    #[arg(long, value_name = "ID")]
    pub item: Option<String>,

    /// Set the chat template's switch for thinking (enable_thinking), where it has one
    #[arg(long, value_name = "WHEN", value_parser = thinking(), default_value = "auto")]
    pub thinking: ThinkingRequest,

    #[command(flatten)]
    pub seed: SeedArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,

    #[command(subcommand)]
    pub suite: SuiteCommand,
}

/// What is shown.
#[derive(Debug, Serialize)]
struct Shown {
    suite: String,
    item: String,
    task: String,
    gold: String,
    budget: Budget,
    stop_strings: Vec<String>,
    /// A stop string stays in the completion, as its end.
    keep_stop: bool,
    prompt: Mode,
    text: String,
    bos: usize,
    bos_token: Option<TokenShown>,
    /// Over the token ids, each as four little-endian bytes: what samples are stored with.
    ids_sha256: String,
    /// Over the text in UTF-8.
    text_sha256: String,
    tokens: Vec<TokenShown>,
    context: usize,
}

/// A token.
#[derive(Debug, Clone, Serialize)]
struct TokenShown {
    id: u32,
    /// Its text; a token that is part of a character is spelt as in the vocabulary.
    piece: String,
}

/// Shows one item's prompt.
pub fn execute(args: &ShowArgs, printer: Printer) -> Result<Exit, CliError> {
    let mut prompts = args.model.prompt.clone().unwrap_or_default();
    // Tasks are prompts where a suite has several; the one that is wanted need not be said twice.
    let wanted = args.task.as_deref().or_else(|| args.item.as_deref().and_then(|id| id.split('/').next()));
    if let (true, Some(name)) = (prompts.names.is_empty(), wanted)
        && catalogue::prompts(args.suite.name).contains(&name)
    {
        prompts.names.push(name.to_owned());
    }
    let chosen_suite = catalogue::choose(args.suite.name, &args.suite.options, args.seed.seed, &prompts)?;
    let task = args.task.as_deref().map(|name| chosen_suite.task(name)).transpose()?;
    let chosen = LocatedModel::find(&args.model.model, &args.model.hub.settings(), Default::default())?;
    let checkpoint = model::open(&chosen)?;
    let source = WithThinking { checkpoint: &checkpoint, enable_thinking: args.thinking.enable_thinking() };
    let prompter = Prompter::new(&source, prompts.mode.unwrap_or_else(|| chosen_suite.default_mode()))?;
    let suite = chosen_suite.suite(catalogue::Channel::local(prompter.mode()))?;
    let item = find(suite.as_ref(), args.item.as_deref(), task.as_deref())?;
    let rendered = prompter.render(&item.segments)?;
    let shown = Shown {
        suite: suite.name().to_owned(),
        item: item.id,
        task: item.task,
        gold: item.gold,
        budget: item.budget,
        stop_strings: item.stop_strings,
        keep_stop: item.keep_stop,
        prompt: prompter.mode(),
        text_sha256: digest::hex(&digest::sha256(rendered.text.as_bytes())),
        text: rendered.text,
        bos: rendered.bos,
        bos_token: checkpoint.tokenizer.bos().map(|id| token(&checkpoint.tokenizer, id)),
        ids_sha256: rendered.sha256,
        tokens: rendered.ids.iter().map(|&id| token(&checkpoint.tokenizer, id)).collect(),
        context: checkpoint.config.max_positions,
    };
    if args.json {
        printer.json(&shown)?;
    } else {
        printer.result(&screen(&shown, &checkpoint))?;
    }
    Ok(Exit::Success)
}

fn find(suite: &dyn Suite, id: Option<&str>, task: Option<&str>) -> Result<Item, CliError> {
    let wanted = |item: &Item| match (id, task) {
        (Some(id), _) => item.id == id,
        (None, Some(task)) => item.task == task,
        (None, None) => true,
    };
    suite.items().find(wanted).ok_or_else(|| match (id, task) {
        (Some(id), _) => CliError::usage(format!("{} has no item {id} under these options", suite.name()))
            .help("`earnest samples` shows ids; the options of the items must be those of the run"),
        (None, Some(task)) => CliError::usage(format!("{} has no task {task} under these options", suite.name()))
            .help("`earnest suites` lists the tasks"),
        (None, None) => CliError::usage(format!("{} has no items under these options", suite.name())),
    })
}

fn token(tokenizer: &Tokenizer, id: u32) -> TokenShown {
    let text = tokenizer.decode(&[id], false);
    let whole = !text.is_empty() && !text.contains('\u{fffd}');
    let piece = if whole { text } else { tokenizer.token(id).unwrap_or(text) };
    TokenShown { id, piece }
}

fn screen(shown: &Shown, checkpoint: &Checkpoint) -> String {
    let mut text = String::new();
    let bos = match (&shown.bos_token, shown.bos) {
        (None, _) => "0 (the checkpoint names no BOS token)".to_owned(),
        (Some(_), 0) => "0 (the checkpoint's tokenizer adds none)".to_owned(),
        (Some(token), count) => format!("{count} ({} = {})", token.id, visible(&token.piece)),
    };
    let kept = if shown.keep_stop { " (kept)" } else { "" };
    let stops: Vec<String> = shown.stop_strings.iter().map(|stop| format!("{stop:?}{kept}")).collect();
    let ends: Vec<String> = checkpoint
        .generation
        .eos_ids
        .iter()
        .map(|&id| format!("{id} = {}", visible(&token(&checkpoint.tokenizer, id).piece)))
        .collect();
    write!(
        text,
        "item      {} (task {})\nexpected  {}\nbudget    {} new tokens, {} for thinking models; context {} tokens\n\
         stops     {}\nprompt    {} mode, {} tokens, BOS {bos}\nsha256    {} (over the token ids)\n          {} (over the text)\n\n\
         Text (· space, → tab, ↵ end of line)\n{}\n\nTokens\n",
        shown.item,
        shown.task,
        visible(&shown.gold),
        shown.budget.answer,
        shown.budget.thinking,
        shown.context,
        ends.into_iter().chain(stops).collect::<Vec<_>>().join(", "),
        shown.prompt,
        shown.tokens.len(),
        shown.ids_sha256,
        shown.text_sha256,
        lines(&shown.text),
    )
    .expect("writing to a String cannot fail");
    let cell = |token: &TokenShown| format!("{} {}", token.id, visible(&token.piece));
    text.push_str(&columns(&shown.tokens.iter().map(cell).collect::<Vec<_>>(), 96));
    text
}

/// Whitespace made visible within a line.
fn visible(text: &str) -> String {
    text.replace(' ', "·").replace('\t', "→").replace('\r', "␍").replace('\n', "↵")
}

/// Whitespace made visible, line ends kept.
fn lines(text: &str) -> String {
    let shown: Vec<String> = text.split('\n').map(|line| format!("  {}", visible(line))).collect();
    shown.join("↵\n")
}

/// Cells in columns of one width, filled row by row.
fn columns(cells: &[String], width: usize) -> String {
    let widest = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0) + 3;
    let per_line = (width.saturating_sub(2) / widest).max(1);
    let mut text = String::new();
    for row in cells.chunks(per_line) {
        let mut line = String::from("  ");
        for cell in row {
            line.push_str(cell);
            line.push_str(&" ".repeat(widest - cell.chars().count()));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whitespace_is_visible() {
        assert_eq!(lines("a b\n\tc\n"), "  a·b↵\n  →c↵\n  ");
        assert_eq!(visible("\r\n"), "␍↵");
    }

    #[test]
    fn tokens_fill_rows() {
        let cells: Vec<String> = ["1 a", "22 bb", "3 c"].map(str::to_owned).to_vec();
        assert_eq!(columns(&cells, 20), "  1 a     22 bb\n  3 c\n");
        assert_eq!(columns(&[], 20), "");
    }
}
