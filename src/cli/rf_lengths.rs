//! `earnest rf-lengths`: the longest numbers whose rule-following traces fit a context window.
use super::values::counted;
use earnest_eval::model;
use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::Exit;
use super::catalogue::suite_error;
use super::error::CliError;
use super::models::{HubArgs, locate, open};
use super::printer::Printer;
use earnest_papers::nupa::published_rule_length;
use earnest_report::{Align, Table};
use earnest_tasks::suite::nupa::{
    self, NupaError, RuleReach, TASKS, TaskId, TokenLength, rule, rule_reach, ruled_tasks,
};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest rf-lengths --model model.gguf
  earnest rf-lengths --model model.gguf --context 8192 --tasks mod_Integer,add_Float --json")]
pub struct RfLengthsArgs {
    /// Model whose tokenizer counts the tokens; its weights are not read
    #[arg(long, value_name = "MODEL", env = "EARNEST_MODEL", hide_env_values = true, default_value = earnest_eval::model::BUILT_IN)]
    pub model: PathBuf,

    #[command(flatten)]
    pub hub: HubArgs,

    /// Tasks, separated by commas [default: all that have a rule]
    #[arg(long, value_name = "TASKS", value_delimiter = ',')]
    pub tasks: Option<Vec<String>>,

    /// Context window for prompt and trace, in tokens; the paper's Table 19 is for 2000
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub context: usize,

    /// Questions measured per length
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub questions: u32,

    /// Seed of the questions
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,

    /// Print one JSON document, with the token counts of every length
    #[arg(long)]
    pub json: bool,
}

/// The JSON document.
#[derive(Debug, Serialize)]
struct Reaches {
    model: String,
    context: usize,
    questions: u32,
    seed: u64,
    tasks: Vec<TaskReach>,
}

/// Lengths of a task, ours and the paper's.
#[derive(Debug, Serialize)]
struct TaskReach {
    /// The task id.
    task: String,
    every: Option<usize>,
    some: Option<usize>,
    longest: usize,
    /// Table 19, a window of 2,000 tokens, where the paper has the task.
    published: Option<usize>,
    measured: Vec<TokenLength>,
}

/// Token count of a text that the tokenizer rejects: larger than any context, small enough to be summed.
const UNREADABLE: usize = 1 << 40;

/// Measures the tasks and prints the table.
pub fn execute(args: &RfLengthsArgs, printer: Printer) -> Result<Exit, CliError> {
    let tasks: Vec<TaskId> = match &args.tasks {
        Some(names) => nupa::tasks(names).map_err(suite_error)?,
        None => {
            let ruled = ruled_tasks();
            TASKS.into_iter().filter(|task| ruled.contains(task)).collect()
        }
    };
    for &task in &tasks {
        rule(task).map_err(suite_error)?;
    }
    let chosen = locate(&args.model, &args.hub, Default::default(), printer)?;
    let checkpoint = open(&chosen, printer)?;
    let count = |text: &str| checkpoint.tokenizer.encode(text, false).map_or(UNREADABLE, |ids| ids.len());
    let measure = |task: TaskId| {
        let reach = rule_reach(task, args.context, args.questions as usize, args.seed, &count)?;
        let RuleReach { task: name, every, some, longest, measured } = reach;
        Ok(TaskReach { task: name, every, some, longest, published: published_rule_length(task), measured })
    };
    let reaches = Reaches {
        model: model::record(&chosen, &checkpoint).name,
        context: args.context,
        questions: args.questions,
        seed: args.seed,
        tasks: tasks.into_iter().map(measure).collect::<Result<_, NupaError>>().map_err(suite_error)?,
    };
    if args.json {
        printer.json(&reaches)?;
    } else {
        printer.result(&screen(&reaches))?;
    }
    Ok(Exit::Success)
}

fn screen(reaches: &Reaches) -> String {
    let right = |name: &str| (name.to_owned(), Align::Right);
    let mut table = Table::new([
        ("task".to_owned(), Align::Left),
        right("all fit"),
        right("some fit"),
        right("paper"),
        right("tokens there"),
        right("tokens beyond"),
    ]);
    for reach in &reaches.tasks {
        let length = |length: Option<usize>| match length {
            None => "none".to_owned(),
            Some(length) if length == reach.longest => format!("{length} (all)"),
            Some(length) => length.to_string(),
        };
        let mean = |wanted: usize| {
            let found = reach.measured.iter().find(|at| at.length == wanted);
            found.map_or_else(String::new, |at| format!("{:.0} ({}-{})", at.mean, at.smallest, at.largest))
        };
        let last = reach.every.unwrap_or(0);
        let task: String = reach.task.parse::<TaskId>().map_or_else(|_| reach.task.clone(), |task| task.short_name());
        table.row(vec![
            task,
            length(reach.every),
            length(reach.some),
            reach.published.map_or_else(String::new, |published| published.to_string()),
            mean(last),
            mean(last + 1),
        ]);
    }
    let mut text = format!(
        "Longest numbers whose rule-following prompts and traces fit {} tokens of {}, in digits\n({} per length)\n\n",
        reaches.context,
        reaches.model,
        counted(reaches.questions as usize, "question")
    );
    text.push_str(&table.render());
    writeln!(
        text,
        "\nTokens: mean (smallest-largest) at the last length where all questions fit, and at the next one.\n\
         Paper: Table 19, for the authors' rule texts, the Llama 3 tokenizer and 2000 tokens; of its values, floordiv\n\
         on integers and max on fractions do not follow from their program (13 and 6 instead of 20 and 20)."
    )
    .expect("writing to a String cannot fail");
    text
}
