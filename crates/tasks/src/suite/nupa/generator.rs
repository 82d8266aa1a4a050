//! `earnest generate nupa`: questions and training sets as JSON lines.
use std::io::{self, Write};

use super::{
    IndexHints, NumberFormat, PairRules, Reversal, ShorterOperand, Split, TASKS, TextStyle, TrainingLine, TrainingSet,
    Wording, lengths, ruled_tasks, tasks,
};
use crate::suite::check_lengths;
use crate::suite::registry::{Generator, Host, Lines, OptionError, OptionSpec, OptionValues};

/// Alphabet of hints where none is named.
const HINTS: &str = "30";

const OPTIONS: [OptionSpec; 13] = [
    OptionSpec::list(
        "tasks",
        "TASKS",
        "Only these tasks, separated by commas [default: all; with rules, all that have one]",
    ),
    OptionSpec::checked(
        "lengths",
        "LENGTHS",
        "Only these lengths, e.g. 5, 1..3 or 1,2,5-7; or `all`; or `reference` [default: all]",
        check_lengths,
    ),
    OptionSpec::integer(
        "per-length",
        "N",
        "Questions of each task at each length; where there are fewer, all [default: 100]",
    ),
    OptionSpec::choice("split", "SPLIT", "Part of the data [default: test]", &["train", "valid", "test"]),
    OptionSpec::choice(
        "text",
        "STYLE",
        "Prompt and completion: the suite's question and its answer, or instruction, rule and question with the rule's \
         trace, which ends with the answer [default: question]",
        &["question", "rule-following"],
    ),
    OptionSpec::choice(
        "reversal",
        "PARTS",
        "Digits written backwards: of integers and integer parts, of decimals, of each part, or of the total text \
         [default: none]",
        &["none", "int", "dec", "each", "total"],
    )
    .under("Numbers"),
    OptionSpec::flag("zero-padding", "Pad the operands with zeros, part by part, to the longer one").under("Numbers"),
    OptionSpec::integer(
        "index-hints",
        "N",
        "Put a hint of its position before every digit of the operands, from an alphabet of N hints [default: 30]",
    )
    .under("Numbers")
    .missing(HINTS),
    OptionSpec::flag(
        "hints-from-high-digit",
        "Count the hints of integers from the highest digit instead of from the units",
    )
    .under("Numbers")
    .needing(&["index-hints"]),
    OptionSpec::flag("reference", "Draw questions as the authors' program does, biases included").under("Draws"),
    OptionSpec::choice(
        "short-operand",
        "HOW",
        "Length of the shorter operand: at least half of the longer one's, or any [default: half]",
        &["half", "any"],
    )
    .under("Draws"),
    OptionSpec::choice(
        "hard-floats",
        "HOW",
        "Decimals of the two floats of max_hard and min_hard: may differ in number, or equal [default: differ]",
        &["differ", "equal"],
    )
    .under("Draws"),
    OptionSpec::choice(
        "wording",
        "WORDING",
        "Spelling of the min question; the authors' program says `mininal` [default: corrected]",
        &["corrected", "reference"],
    )
    .under("Draws"),
];

/// Generator of the suite.
pub(super) struct NupaGenerator;

impl Generator for NupaGenerator {
    fn about(&self) -> &'static str {
        "The NUPA Test: questions, or rules with their traces, with numbers plain, reversed, padded or hinted"
    }

    fn writes(&self) -> &'static str {
        "questions with prompt and completion, for training"
    }

    fn details(&self) -> &'static str {
        "Examples:
  earnest generate nupa --tasks add_Integer --lengths 1-8 --per-length 3
  earnest generate nupa --split train --per-length 100000 --tasks max_Float --lengths 1-20 -o train.jsonl
  earnest generate nupa --tasks add_Float --reversal int --zero-padding --index-hints 30
  earnest generate nupa --text rule-following --tasks mod_Integer --lengths 1-6

Every line has task, length, index, split, a, b, prompt, completion and answer; a, b and answer are plain numbers in every \
format. Lines come by task, then length, then index, and depend on the options alone. train, valid and test never share a \
question."
    }

    fn options(&self) -> &'static [OptionSpec] {
        &OPTIONS
    }

    fn lines(&self, values: &OptionValues, _: &dyn Host) -> Result<Box<dyn Lines>, OptionError> {
        let set = training_set(values)?;
        drop(set.lines()?);
        Ok(Box::new(Written { set, lines: 0, cells: Vec::new() }))
    }
}

fn training_set(values: &OptionValues) -> Result<TrainingSet, OptionError> {
    let is = |option: &str, name: &str| Ok::<bool, OptionError>(values.text(option)? == Some(name));
    let style = if is("text", "rule-following")? { TextStyle::RuleFollowing } else { TextStyle::Question };
    let tasks = match (values.list("tasks")?, style) {
        (Some(names), _) => tasks(&names)?,
        (None, TextStyle::Question) => TASKS.to_vec(),
        (None, TextStyle::RuleFollowing) => ruled_tasks(),
    };
    let hints = values.parsed("index-hints")?;
    let from_high_digit = values.has("hints-from-high-digit");
    Ok(TrainingSet {
        tasks,
        lengths: lengths(values.parsed("lengths")?.as_ref()),
        per_length: values.parsed("per-length")?.unwrap_or(100),
        split: values.text("split")?.unwrap_or("test").parse::<Split>()?,
        seed: values.seed,
        pairs: PairRules {
            shorter: if is("short-operand", "any")? { ShorterOperand::Any } else { ShorterOperand::AtLeastHalf },
            hard_floats_equal_length: is("hard-floats", "equal")?,
            reference: values.has("reference"),
        },
        wording: if is("wording", "reference")? { Wording::Reference } else { Wording::Corrected },
        format: NumberFormat {
            reversal: values.text("reversal")?.unwrap_or("none").parse::<Reversal>()?,
            zero_padding: values.has("zero-padding"),
            index_hints: hints.map(|alphabet| IndexHints { alphabet, from_high_digit }),
        },
        style,
    })
}

/// A set and how much of it was written.
struct Written {
    set: TrainingSet,
    lines: usize,
    /// Task, length and lines of every cell that has some.
    cells: Vec<(String, usize, usize)>,
}

impl Written {
    fn add(&mut self, line: &TrainingLine) {
        self.lines += 1;
        match self.cells.last_mut() {
            Some((task, length, count)) if *length == line.length && *task == line.task => *count += 1,
            _ => self.cells.push((line.task.clone(), line.length, 1)),
        }
    }
}

impl Lines for Written {
    fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        // Many lines a write, and no memory asked for a line.
        const ENOUGH: usize = 1 << 18;
        let mut buffer = Vec::with_capacity(ENOUGH + (1 << 14));
        let set = self.set.clone();
        for line in set.lines().map_err(io::Error::other)? {
            line.write_json(&mut buffer);
            self.add(&line);
            if buffer.len() >= ENOUGH {
                out.write_all(&buffer)?;
                buffer.clear();
            }
        }
        out.write_all(&buffer)
    }

    fn sentence(&self, place: &str) -> String {
        let Written { set, lines, cells } = self;
        let mut text = format!("{lines} lines{place}");
        let asked: usize = set.tasks.iter().map(|&task| set.lengths.of(task).len()).sum();
        let short: Vec<_> = cells.iter().filter(|(.., count)| *count < set.per_length).collect();
        let few = short.len() + asked.saturating_sub(cells.len());
        if few > 0 {
            text.push_str(&format!(
                "; {few} of {asked} tasks and lengths have fewer than {} questions in the {} part",
                set.per_length, set.split
            ));
            if let Some((task, length, count)) = short.iter().min_by_key(|(.., count)| *count) {
                text.push_str(&format!(", e.g. {task} at length {length} has {count}"));
            }
        }
        text
    }
}
