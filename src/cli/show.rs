//! `earnest show`.
use super::values::counted;
use std::fmt::Write;

use clap::Args;

use super::args::{ModelArgs, SeedArgs, thinking};
use super::catalogue::SuiteCommand;
use super::error::CliError;
use super::printer::Printer;
use super::{Exit, catalogue};
use earnest_eval::preview::{ItemChoice, Preview, PreviewSettings, Token, preview};
use earnest_report::text_width;
use earnest_results::ThinkingRequest;

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

impl ShowArgs {
    fn settings(&self) -> PreviewSettings {
        let prompts = self.model.prompt.clone().unwrap_or_default();
        PreviewSettings {
            options: catalogue::values(&self.suite.options, self.seed.seed, &prompts),
            item: match (&self.item, &self.task) {
                (Some(id), _) => ItemChoice::Id(id.clone()),
                (None, Some(task)) => ItemChoice::Task(task.clone()),
                (None, None) => ItemChoice::First,
            },
            hub: self.model.hub.settings(),
            prompt: prompts.mode,
            thinking: self.thinking.enable_thinking(),
            ..PreviewSettings::new(self.suite.name, &self.model.model)
        }
    }
}

/// Prints the prompt of one item.
pub fn execute(args: &ShowArgs, printer: Printer) -> Result<Exit, CliError> {
    let preview = preview(&args.settings())?;
    preview.warnings.iter().for_each(|warning| printer.warning(warning));
    if args.json {
        printer.json(&preview)?;
    } else {
        printer.result(&screen(&preview))?;
    }
    Ok(Exit::Success)
}

fn screen(shown: &Preview) -> String {
    let mut text = String::new();
    let bos = match (&shown.bos_token, shown.bos) {
        (None, _) => "0 (the checkpoint has no BOS token)".to_owned(),
        (Some(_), 0) => "0 (the checkpoint's tokenizer adds none)".to_owned(),
        (Some(token), count) => format!("{count} ({} = {})", token.id, visible(&token.piece)),
    };
    let kept = if shown.keep_stop { " (kept)" } else { "" };
    let stops: Vec<String> = shown.stop_strings.iter().map(|stop| format!("{stop:?}{kept}")).collect();
    let ends: Vec<String> =
        shown.eos_tokens.iter().map(|token| format!("{} = {}", token.id, visible(&token.piece))).collect();
    // A suite may have dozens, such as a line break after each digit.
    const SHOWN: usize = 6;
    let more = stops.len().saturating_sub(SHOWN);
    let more = (more > 0).then(|| format!("and {more} more"));
    let ends = ends.into_iter().chain(stops.into_iter().take(SHOWN)).chain(more).collect::<Vec<_>>().join(", ");
    let asked = match shown.continuations.len() {
        0 => format!(
            "budget    {} new tokens, {} for thinking models; context {} tokens\nstops     {ends}",
            shown.budget.answer, shown.budget.thinking, shown.context
        ),
        count => {
            format!(
                "scored    {}, nothing is generated; context {} tokens",
                counted(count, "given continuation"),
                shown.context
            )
        }
    };
    write!(
        text,
        "item      {} (task {})\nexpected  {}\n{asked}\nprompt    {} mode, {} tokens, BOS {bos}\nsha256    {} (over the token ids)\n          {} (over the text)\n\n\
         Text (· space, → tab, ↵ end of line)\n{}\n\nTokens\n",
        shown.item,
        shown.task,
        visible(&shown.gold),
        shown.mode,
        shown.tokens.len(),
        shown.ids_sha256,
        shown.text_sha256,
        lines(&shown.text),
    )
    .expect("writing to a String cannot fail");
    let cell = |token: &Token| format!("{} {}", token.id, visible(&token.piece));
    text.push_str(&columns(&shown.tokens.iter().map(cell).collect::<Vec<_>>(), 96));
    for (number, (continuation, tokens)) in shown.continuations.iter().enumerate() {
        let count = tokens.len();
        let plural = if count == 1 { "" } else { "s" };
        write!(text, "\nContinuation {} ({count} token{plural})\n{}\n", number + 1, lines(continuation))
            .expect("writing to a String cannot fail");
        text.push_str(&columns(&tokens.iter().map(cell).collect::<Vec<_>>(), 96));
    }
    text
}

/// The text with its whitespace made visible.
fn visible(text: &str) -> String {
    text.replace(' ', "·").replace('\t', "→").replace('\r', "␍").replace('\n', "↵")
}

/// The text with its whitespace made visible, line by line.
fn lines(text: &str) -> String {
    let shown: Vec<String> = text.split('\n').map(|line| format!("  {}", visible(line))).collect();
    shown.join("↵\n")
}

/// Cells in columns of one width, filled row by row.
fn columns(cells: &[String], width: usize) -> String {
    let widest = cells.iter().map(|cell| text_width(cell)).max().unwrap_or(0) + 3;
    let per_line = (width.saturating_sub(2) / widest).max(1);
    let mut text = String::new();
    for row in cells.chunks(per_line) {
        let mut line = String::from("  ");
        for cell in row {
            line.push_str(cell);
            line.push_str(&" ".repeat(widest - text_width(cell)));
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
