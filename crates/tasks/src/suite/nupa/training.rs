//! Items and training sets as JSON lines, streamed cell by cell: only the questions of one task and length are remembered.
use serde::Serialize;

use super::cell::{Cell, LONGEST_SHARED, Question, Split, SplitVersion};
use super::draw::DigitSource;
use super::number_format::NumberFormat;
use super::{Lengths, NupaError, PairRules, TaskId, Wording, prompt, rules};
use crate::suite::check_size;

/// Layout of a line's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TextStyle {
    /// The suite's question and its answer.
    #[default]
    Question,
    /// Rule following: instruction, rule and question, and the trace as the completion.
    RuleFollowing,
}

/// Options of a training set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainingSet {
    /// The tasks, in the order of the lines.
    pub tasks: Vec<TaskId>,
    /// Lengths, where a task has them.
    pub lengths: Lengths,
    /// Questions per task and length; cells with fewer end early.
    pub per_length: usize,
    /// The part of the data, as [`SplitVersion::Two`] has it: only questions of one and two digits are in two parts.
    pub split: Split,
    /// Seed of the generator.
    pub seed: u64,
    /// Rules of drawing raw pairs.
    pub pairs: PairRules,
    /// The spelling of the `min` prompt.
    pub wording: Wording,
    /// Notation of numbers.
    pub format: NumberFormat,
    /// Layout of a line's text.
    pub style: TextStyle,
}

/// One line of a training set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrainingLine {
    /// The task id.
    pub task: String,
    /// Digits of the question.
    pub length: usize,
    /// Its index among the questions of that task and length.
    pub index: usize,
    /// `train`, `valid` or `test`.
    pub split: &'static str,
    /// The operands, plain.
    pub a: String,
    /// The second operand, where the task has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<String>,
    /// The model's input.
    pub prompt: String,
    /// The wanted output (after a space, where the prompt ends with `=`).
    pub completion: String,
    /// The exact answer, plain.
    pub answer: String,
    /// True for a question of `valid` or `test` that is in `train` too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_train: bool,
}

impl TrainingLine {
    /// Appends the line as JSON with its line break: the bytes that serde_json writes, without its work on texts that need no
    /// escape, which is all that these are but for rules.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        let field = |out: &mut Vec<u8>, name: &str, text: &str| {
            out.extend_from_slice(name.as_bytes());
            write_text(text, out);
        };
        field(out, "{\"task\":", &self.task);
        out.extend_from_slice(b",\"length\":");
        write_number(self.length, out);
        out.extend_from_slice(b",\"index\":");
        write_number(self.index, out);
        field(out, ",\"split\":", self.split);
        field(out, ",\"a\":", &self.a);
        if let Some(b) = &self.b {
            field(out, ",\"b\":", b);
        }
        field(out, ",\"prompt\":", &self.prompt);
        field(out, ",\"completion\":", &self.completion);
        field(out, ",\"answer\":", &self.answer);
        if self.in_train {
            out.extend_from_slice(b",\"in_train\":true");
        }
        out.extend_from_slice(b"}\n");
    }
}

/// A JSON string.
fn write_text(text: &str, out: &mut Vec<u8>) {
    // Without an early exit, so that it is done many bytes at a time.
    let special = text.bytes().fold(false, |found, byte| found | (byte < 0x20) | (byte == b'"') | (byte == b'\\'));
    if special {
        serde_json::to_writer(out, text).expect("a string is always JSON, and memory takes every byte");
        return;
    }
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

fn write_number(number: usize, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut from = digits.len();
    let mut left = number;
    loop {
        from -= 1;
        digits[from] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[from..]);
}

impl TrainingSet {
    /// The lines, in order of task, length, index.
    ///
    /// # Errors
    /// [`NupaError`] for an impossible or contradictory choice, found before the first line.
    pub fn lines(&self) -> Result<impl Iterator<Item = TrainingLine> + '_, NupaError> {
        if self.tasks.is_empty() {
            return Err(NupaError::NoTasks);
        }
        if self.per_length == 0 {
            let problem = "at least one question per length is needed".to_string();
            return Err(NupaError::Contradiction { option: "per-length", problem });
        }
        check_size(|| format!("the setting `per_length = {}`", self.per_length), &[self.per_length])?;
        self.pairs.check()?;
        self.lengths.check(&self.tasks)?;
        if self.style == TextStyle::RuleFollowing && !self.format.is_plain() {
            let problem = "rules work on plainly written numbers: leave reversal, padding and hints out".to_string();
            return Err(NupaError::Contradiction { option: "text", problem });
        }
        let mut cells = Vec::new();
        for (index, &task) in self.tasks.iter().enumerate() {
            if self.tasks[..index].contains(&task) {
                return Err(NupaError::Contradiction { option: "tasks", problem: format!("{task} is named twice") });
            }
            if self.style == TextStyle::RuleFollowing {
                rules::rule(task)?;
            }
            for length in self.lengths.of(task) {
                if let Some(hints) = self.format.index_hints
                    && length.max(2) > hints.alphabet
                {
                    let problem =
                        format!("length {length} needs more than the {} hints of the alphabet", hints.alphabet);
                    return Err(NupaError::Contradiction { option: "index-hints", problem });
                }
                cells.push((task, length));
            }
        }
        Ok(cells.into_iter().flat_map(move |(task, length)| {
            let name = task.to_string();
            Cell::new(task, length, self.split, self.pairs, self.seed)
                .map(|cell| cell.with_version(SplitVersion::Two))
                .into_iter()
                .flatten()
                .take(self.per_length)
                .filter_map(move |question| self.line(&name, question))
        }))
    }

    fn line(&self, name: &str, question: Question) -> Option<TrainingLine> {
        let Question { task, length, index, a, b, answer } = question;
        let (prompt, completion) = if self.format.is_plain() {
            let text = prompt::question(task, &a, b.as_deref(), self.wording);
            match self.style {
                TextStyle::Question => (text, answer.clone()),
                TextStyle::RuleFollowing => {
                    let rule = rules::rule(task).ok()?;
                    (rule.prompt(&text), rule.execute_traced(&a, b.as_deref()).ok()?.text)
                }
            }
        } else {
            let key = format!("nupa hints {} {} {name} {length} {index}", self.seed, self.split);
            let mut random = DigitSource::named(&key);
            let numbers = task.operation.second() == super::Second::SameRepresentation;
            let number_b = b.as_deref().filter(|_| numbers);
            let (shown_a, shown_b) = self.format.operands(task.representation, &a, number_b, &mut random).ok()?;
            // A position, digit or count is not one of the numbers that the format is about.
            let shown_b = shown_b.or_else(|| b.clone());
            let text = prompt::question(task, &shown_a, shown_b.as_deref(), self.wording);
            (text, self.format.answer(&answer))
        };
        Some(TrainingLine {
            task: name.to_string(),
            length,
            index,
            split: self.split.name(),
            a,
            b,
            prompt,
            completion,
            answer,
            in_train: self.split != Split::Train && length <= LONGEST_SHARED,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{IndexHints, Reversal};
    use super::*;

    fn set(tasks: &[&str], lengths: &[usize]) -> TrainingSet {
        TrainingSet {
            tasks: tasks.iter().map(|task| task.parse().unwrap()).collect(),
            lengths: Lengths::Chosen(lengths.to_vec()),
            per_length: 50,
            split: Split::Train,
            seed: 1,
            pairs: PairRules::default(),
            wording: Wording::Corrected,
            format: NumberFormat::default(),
            style: TextStyle::Question,
        }
    }

    #[test]
    fn lines_stream_in_order_and_repeat() {
        let set = set(&["add_Integer", "max_Float"], &[3, 8]);
        let lines: Vec<TrainingLine> = set.lines().unwrap().collect();
        assert_eq!(lines.len(), 200);
        assert_eq!(lines, set.lines().unwrap().collect::<Vec<_>>());
        let json = serde_json::to_string(&lines[0]).unwrap();
        assert!(
            json.starts_with(r#"{"task":"add_Integer_Integer_Integer","length":3,"index":0,"split":"train","a":""#)
        );
        assert!(lines.iter().all(|line| line.prompt.ends_with(" =") && line.completion == line.answer));
    }

    #[test]
    fn lines_are_the_bytes_of_serde_json() {
        let mut ruled = set(&["mod_Integer"], &[4]);
        ruled.style = TextStyle::RuleFollowing;
        let plain = set(&["add_Fraction", "length_Float", "sig_Integer"], &[5, 12]);
        let mut lines: Vec<TrainingLine> = ruled.lines().unwrap().take(5).chain(plain.lines().unwrap()).collect();
        lines[0].index = usize::MAX;
        lines[0].task = "\"quoted\" \\ and \u{1} and é".into();
        lines[1].a = String::new();
        let mut found = Vec::new();
        for line in &lines {
            found.clear();
            line.write_json(&mut found);
            let expected = serde_json::to_string(line).unwrap() + "\n";
            assert_eq!(std::str::from_utf8(&found).unwrap(), expected);
        }
        assert!(lines.len() > 200);
    }

    #[test]
    fn formats_change_what_is_shown_only() {
        let plain: Vec<_> = set(&["add_Float"], &[6]).lines().unwrap().collect();
        let mut formatted = set(&["add_Float"], &[6]);
        formatted.format = NumberFormat {
            reversal: Reversal::Each,
            zero_padding: true,
            index_hints: Some(IndexHints { alphabet: 9, ..IndexHints::default() }),
        };
        for (line, plain) in formatted.lines().unwrap().zip(&plain) {
            assert_eq!((&line.a, &line.b, &line.answer), (&plain.a, &plain.b, &plain.answer));
            assert!(line.prompt.contains("<d") && !line.completion.contains('<'));
            assert_eq!(formatted.format.restore_answer(&line.completion), line.answer);
        }
        assert_eq!(formatted.lines().unwrap().count(), plain.len());
    }

    #[test]
    fn rule_following_texts_end_with_the_answer() {
        let mut set = set(&["mod_Integer"], &[5]);
        set.style = TextStyle::RuleFollowing;
        for line in set.lines().unwrap() {
            assert!(line.prompt.contains("def mod(a, b):"));
            assert!(line.completion.ends_with(&format!("So the answer is {}", line.answer)));
        }
        set.format.zero_padding = true;
        assert!(set.lines().is_err());
    }

    #[test]
    fn impossible_choices_are_errors_before_the_first_line() {
        assert!(set(&[], &[3]).lines().is_err());
        assert!(set(&["add_Integer"], &[50]).lines().is_err());
        assert!(set(&["add_Integer", "max_Integer"], &[3, 101]).lines().is_err());
        let mut twice = set(&["add_Integer", "add_Integer"], &[3]);
        assert!(twice.lines().is_err());
        twice.tasks.pop();
        twice.pairs = PairRules { reference: true, hard_floats_equal_length: true, ..PairRules::default() };
        assert!(twice.lines().is_err());
        let mut hinted = set(&["max_Integer"], &[50]);
        hinted.format.index_hints = Some(IndexHints::default());
        assert!(hinted.lines().is_err());
        let mut ruled = set(&["count_Integer"], &[5]);
        ruled.style = TextStyle::RuleFollowing;
        assert!(ruled.lines().is_err());
    }
}
