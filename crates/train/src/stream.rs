//! Endless stream of questions, addressed by number, so that a training is reproducible.
use super::task::TaskCell;
use super::tokenizer::{BEGIN, END, hints_before_tokens};
use super::{AnswerStyle, Example, NumberTokenizer, TokenizerSettings, TrainError, TrainingQuestion, TrainingTask};
use earnest_tasks::suite::nupa::{self, DigitSource, NumberFormat, PairRules, Second, Split, SplitVersion, Wording};

/// Questions that replace one whose trace is too long, before the context counts as too small.
const MAX_REPLACEMENTS: u64 = 200;

/// Settings of a question stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamSettings {
    /// Tasks; a task named twice is sampled twice as often.
    pub tasks: Vec<TrainingTask>,
    /// Lengths. All pairs of task and length are equally frequent; a length named twice is sampled twice as often.
    pub lengths: Vec<usize>,
    /// Rules for drawing pairs of operands.
    pub pairs: PairRules,
    pub format: NumberFormat,
    /// Tokenizer whose tokens index hints precede; `None` for hints before every digit.
    pub tokens: Option<TokenizerSettings>,
    /// Seed of the questions.
    pub seed: u64,
    pub splits: SplitVersion,
    /// Styles of the answers, equally frequent; one named twice is sampled twice as often.
    pub styles: Vec<AnswerStyle>,
}

/// Endless stream of questions.
pub struct QuestionStream {
    settings: StreamSettings,
    cells: Vec<TaskCell>,
    /// Tasks and lengths of the cells.
    keys: Vec<(TrainingTask, usize)>,
    /// Indices of cells, repeated by weight.
    weighted: Vec<usize>,
}

/// Prompt and answer as text; the answer includes the space after the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPair {
    pub prompt: String,
    /// The expected completion.
    pub answer: String,
}

impl QuestionStream {
    /// Creates the stream of a split.
    ///
    /// # Errors
    /// [`TrainError::Setting`] if no task has a question of any of the lengths.
    pub fn new(settings: StreamSettings, split: Split) -> Result<Self, TrainError> {
        let (mut cells, mut keys, mut weighted) = (Vec::new(), Vec::new(), Vec::new());
        let times = |of: usize, all: &[usize]| all.iter().filter(|length| **length == of).count();
        for (at, &task) in settings.tasks.iter().enumerate() {
            if settings.tasks[..at].contains(&task) {
                continue;
            }
            let weight = settings.tasks.iter().filter(|other| **other == task).count();
            for (index, &length) in settings.lengths.iter().enumerate() {
                if settings.lengths[..index].contains(&length) || !(1..=task.longest()).contains(&length) {
                    continue;
                }
                let cell = TaskCell::new(task, length, (split, settings.splits), settings.pairs, settings.seed)?;
                // A cell may have no question in this split, for instance integers of one digit.
                if cell.sample(0).is_some() {
                    weighted.resize(weighted.len() + weight * times(length, &settings.lengths), cells.len());
                    cells.push(cell);
                    keys.push((task, length));
                }
            }
        }
        if cells.is_empty() {
            let problem = "no task has a question of any of these lengths".to_owned();
            return Err(TrainError::Setting { setting: "lengths", problem });
        }
        Ok(QuestionStream { settings, cells, keys, weighted })
    }

    /// Returns true if the stream has questions of this task and length.
    pub fn contains(&self, task: TrainingTask, length: usize) -> bool {
        self.keys.contains(&(task, length))
    }

    /// Returns the style of question `number`.
    pub fn style(&self, number: u64) -> AnswerStyle {
        match self.settings.styles[..] {
            [] => AnswerStyle::default(),
            [only] => only,
            ref several => {
                let mut random = DigitSource::named(&format!("train style {} {number}", self.settings.seed));
                several[random.below(several.len() as u64) as usize]
            }
        }
    }

    /// Returns question `number`.
    pub fn question(&self, number: u64) -> TrainingQuestion {
        let mut random = DigitSource::named(&format!("train cell {} {number}", self.settings.seed));
        loop {
            let cell = self.weighted[random.below(self.weighted.len() as u64) as usize];
            // Construction checks the cell's first random stream only; later ones may be empty and are skipped.
            if let Some(question) = self.cells[cell].sample(number as usize) {
                return question;
            }
        }
    }

    /// Returns prompt and answer of a question in the stream's number format.
    ///
    /// # Errors
    /// [`TrainError::Setting`] for numbers that the format cannot express.
    pub fn text(&self, question: &TrainingQuestion, number: u64) -> Result<TextPair, TrainError> {
        let format = &self.settings.format;
        let question = match question {
            TrainingQuestion::Nupa(question) => question,
            TrainingQuestion::ArithmeticBench(question) if format.is_plain() => {
                return Ok(TextPair { prompt: question.prompt(), answer: format!(" {}", question.answer()) });
            }
            TrainingQuestion::Memorise(question) if format.is_plain() => {
                return Ok(TextPair { prompt: question.prompt(), answer: format!(" {}", question.answer()) });
            }
            TrainingQuestion::ArithmeticBench(_) | TrainingQuestion::Memorise(_) => {
                let problem = "only NUPA tasks support reversal, padding and hints; remove them or choose NUPA tasks";
                return Err(TrainError::Setting { setting: "format", problem: problem.to_owned() });
            }
        };
        let mut random = DigitSource::named(&format!("train format {} {number}", self.settings.seed));
        let same = question.task.operation.second() == Second::SameRepresentation;
        let number_b = question.b.as_deref().filter(|_| same);
        let (a, b) = format
            .operands(question.task.representation, &question.a, number_b, &mut random)
            .map_err(|error| TrainError::Setting { setting: "format", problem: error.to_string() })?;
        let grouped = |text: String| match &self.settings.tokens {
            Some(tokens) if format.index_hints.is_some() => hints_before_tokens(tokens, &text),
            _ => text,
        };
        let (a, b) = (grouped(a), b.map(grouped));
        // The format does not apply to a second operand that is a position, a digit or a count.
        let b = b.or_else(|| question.b.clone());
        Ok(TextPair {
            prompt: nupa::question(question.task, &a, b.as_deref(), Wording::Corrected),
            answer: format!(" {}", format.answer(&question.answer)),
        })
    }

    /// Returns prompt and answer of question `number` in its style.
    ///
    /// # Errors
    /// Errors of [`QuestionStream::text`]; a task without a rule to follow.
    pub fn styled_text(&self, number: u64) -> Result<TextPair, TrainError> {
        let question = self.question(number);
        self.style(number).pair(&question, self.text(&question, number)?)
    }

    /// Returns example `number` as token ids. A trace that has more than `context` tokens is replaced by that of another question.
    ///
    /// # Errors
    /// Errors of [`QuestionStream::styled_text`] and of the tokenizer; a context in which no trace has room.
    pub fn example(&self, number: u64, tokenizer: &NumberTokenizer, context: usize) -> Result<Example, TrainError> {
        let style = self.style(number);
        for attempt in 0..MAX_REPLACEMENTS {
            let drawn = number | attempt << 48;
            let question = self.question(drawn);
            let text = style.pair(&question, self.text(&question, drawn)?)?;
            let mut random = DigitSource::named(&format!("train groups {} {drawn}", self.settings.seed));
            let mut encode = |text: &str| tokenizer.encode_for_training(text, &mut random);
            let example = encode_pair(&text, &mut encode)?;
            if example.ids.len() <= context || style.is_question() {
                return Ok(example);
            }
        }
        let problem = format!("no trace of these tasks and lengths has room in {context} tokens");
        Err(TrainError::Setting { setting: "context", problem })
    }

    /// Returns the first `count` questions of each task and length, for evaluation.
    pub fn first_questions(&self, count: usize) -> Vec<TrainingQuestion> {
        self.cells.iter().flat_map(|cell| (0..count).filter_map(|stream| cell.sample(stream))).collect()
    }
}

/// Encodes prompt and answer, between the beginning and end tokens.
pub(super) fn encode_pair(
    text: &TextPair,
    encode: &mut dyn FnMut(&str) -> Result<Vec<u32>, TrainError>,
) -> Result<Example, TrainError> {
    let mut ids = vec![BEGIN];
    ids.extend(encode(&text.prompt)?);
    let prompt = ids.len();
    ids.extend(encode(&text.answer)?);
    ids.push(END);
    Ok(Example { ids, prompt })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::{DigitGroups, TokenizerSettings};
    use super::*;

    fn stream(split: Split) -> QuestionStream {
        let tasks = ["add_Integer", "max_Float", "length_Integer"].map(|task| task.parse().unwrap()).to_vec();
        let settings = StreamSettings {
            tasks,
            lengths: vec![1, 2, 3, 4],
            pairs: PairRules::default(),
            format: NumberFormat::default(),
            tokens: None,
            seed: 1,
            splits: SplitVersion::One,
            styles: vec![AnswerStyle::Question],
        };
        QuestionStream::new(settings, split).unwrap()
    }

    #[test]
    fn questions_are_addressed_by_number_and_evenly_drawn() {
        let stream = stream(Split::Train);
        assert_eq!(stream.question(77), self::stream(Split::Train).question(77));
        let mut counts: BTreeMap<(String, usize), usize> = BTreeMap::new();
        for number in 0..6000 {
            let question = stream.question(number);
            *counts.entry((question.task().to_string(), question.length())).or_default() += 1;
        }
        assert!(counts.len() >= 10, "{counts:?}");
        let even = 6000 / counts.len();
        assert!(counts.values().all(|count| count.abs_diff(even) < even / 3), "{counts:?}");
    }

    #[test]
    fn names_given_twice_are_sampled_twice_as_often() {
        let tasks = ["add_Integer", "max_Integer", "add_Integer"].map(|task| task.parse().unwrap()).to_vec();
        let settings = StreamSettings { tasks, lengths: vec![3, 4, 4, 4], ..stream(Split::Train).settings };
        let stream = QuestionStream::new(settings, Split::Train).unwrap();
        let mut counts: BTreeMap<(String, usize), usize> = BTreeMap::new();
        for number in 0..6000 {
            let question = stream.question(number);
            *counts.entry((question.task().to_string(), question.length())).or_default() += 1;
        }
        let shares =
            [("add_Integer", 3, 1000), ("add_Integer", 4, 3000), ("max_Integer", 3, 500), ("max_Integer", 4, 1500)];
        for (task, length, expected) in shares {
            assert!(counts[&(task.to_owned(), length)].abs_diff(expected) < expected / 8, "{counts:?}");
        }
        assert_eq!(stream.first_questions(5).len(), 20, "a validation weights all cells equally");
    }

    #[test]
    fn splits_are_disjoint() {
        let ask = |split| {
            let stream = stream(split);
            let questions = (0..3000).map(move |number| stream.question(number));
            questions.map(|q| format!("{} {:?}", q.task(), q.operands())).collect::<std::collections::BTreeSet<_>>()
        };
        let (train, valid, test) = (ask(Split::Train), ask(Split::Valid), ask(Split::Test));
        assert!(train.is_disjoint(&valid) && train.is_disjoint(&test) && valid.is_disjoint(&test));
    }

    #[test]
    fn examples_are_prompt_answer_end() {
        let stream = stream(Split::Train);
        let texts: Vec<TextPair> = (0..200).map(|n| stream.text(&stream.question(n), n).unwrap()).collect();
        let settings = TokenizerSettings { digits: 1, groups: DigitGroups::default(), words: 512 };
        let tokenizer = NumberTokenizer::learn(&settings, texts.iter().map(|text| text.prompt.as_str())).unwrap();
        let example = stream.example(5, &tokenizer, 512).unwrap();
        assert_eq!((example.ids[0], *example.ids.last().unwrap()), (BEGIN, END));
        let answer: Vec<u32> = example.ids[example.prompt..example.ids.len() - 1].to_vec();
        assert_eq!(answer, tokenizer.encode(&texts[5].answer).unwrap());
        assert_eq!(example.ids[1..example.prompt], tokenizer.encode(&texts[5].prompt).unwrap());
    }

    #[test]
    fn impossible_lengths_are_named() {
        let settings = StreamSettings { lengths: vec![500], ..stream(Split::Train).settings };
        assert!(QuestionStream::new(settings, Split::Train).is_err());
    }
}
