//! An endless stream of questions with their answers, by number: what a training sees depends on nothing else.
use super::task::TaskCell;
use super::tokenizer::{BEGIN, END, hints_before_tokens};
use super::{Example, NumberTokenizer, TokenizerSettings, TrainError, TrainingQuestion, TrainingTask};
use earnest_tasks::suite::nupa::{DigitSource, NumberFormat, PairRules, Second, Split, Wording, question};

/// Which questions are streamed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamSettings {
    /// The tasks. One that is named twice is asked twice as often as the others.
    pub tasks: Vec<TrainingTask>,
    /// Lengths; every length of every task that has it is as frequent as every other, or as often more so as it is named.
    pub lengths: Vec<usize>,
    /// How pairs are drawn.
    pub pairs: PairRules,
    /// How numbers are written.
    pub format: NumberFormat,
    /// The tokenizer before whose tokens index hints stand; without one they stand before every digit.
    pub tokens: Option<TokenizerSettings>,
    /// Seed of the questions.
    pub seed: u64,
}

/// The stream.
pub struct QuestionStream {
    settings: StreamSettings,
    cells: Vec<TaskCell>,
    /// Their tasks and lengths.
    keys: Vec<(TrainingTask, usize)>,
    /// Cells by frequency.
    drawn: Vec<usize>,
}

/// A question and its answer as text; the answer begins with the space that follows the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPair {
    /// What the model sees.
    pub prompt: String,
    /// What it learns to write.
    pub answer: String,
}

impl QuestionStream {
    /// The stream of a part of the data.
    ///
    /// # Errors
    /// [`TrainError::Setting`] if no task has any of the lengths.
    pub fn new(settings: StreamSettings, split: Split) -> Result<Self, TrainError> {
        let (mut cells, mut keys, mut drawn) = (Vec::new(), Vec::new(), Vec::new());
        let times = |of: usize, all: &[usize]| all.iter().filter(|length| **length == of).count();
        for (at, &task) in settings.tasks.iter().enumerate() {
            if settings.tasks[..at].contains(&task) {
                continue;
            }
            let named = settings.tasks.iter().filter(|other| **other == task).count();
            for (place, &length) in settings.lengths.iter().enumerate() {
                if settings.lengths[..place].contains(&length) || !(1..=task.longest()).contains(&length) {
                    continue;
                }
                let cell = TaskCell::new(task, length, split, settings.pairs, settings.seed)?;
                // A cell may have no question of this part at all: integers of one digit, for instance.
                if cell.sample(0).is_some() {
                    drawn.resize(drawn.len() + named * times(length, &settings.lengths), cells.len());
                    cells.push(cell);
                    keys.push((task, length));
                }
            }
        }
        if cells.is_empty() {
            let problem = "no task has a question of any of these lengths".to_owned();
            return Err(TrainError::Setting { setting: "lengths", problem });
        }
        Ok(QuestionStream { settings, cells, keys, drawn })
    }

    /// True if the stream has questions of the task at this length.
    pub fn asks(&self, task: TrainingTask, length: usize) -> bool {
        self.keys.contains(&(task, length))
    }

    /// Question `number` of the stream.
    pub fn question(&self, number: u64) -> TrainingQuestion {
        let mut random = DigitSource::named(&format!("train cell {} {number}", self.settings.seed));
        loop {
            let cell = self.drawn[random.below(self.drawn.len() as u64) as usize];
            // Streams of other parts than the first are not tried in construction; an empty one is passed over.
            if let Some(question) = self.cells[cell].sample(number as usize) {
                return question;
            }
        }
    }

    /// A question's text in the stream's format.
    ///
    /// # Errors
    /// [`TrainError::Setting`] for numbers that the format can not write.
    pub fn text(&self, asked: &TrainingQuestion, number: u64) -> Result<TextPair, TrainError> {
        let format = &self.settings.format;
        let asked = match asked {
            TrainingQuestion::Nupa(asked) => asked,
            TrainingQuestion::ArithmeticBench(asked) if format.is_plain() => {
                return Ok(TextPair { prompt: asked.prompt(), answer: format!(" {}", asked.answer()) });
            }
            TrainingQuestion::Memorise(asked) if format.is_plain() => {
                return Ok(TextPair { prompt: asked.prompt(), answer: format!(" {}", asked.answer()) });
            }
            TrainingQuestion::ArithmeticBench(_) | TrainingQuestion::Memorise(_) => {
                let problem = "Arithmetic-Bench asks plainly written numbers: leave reversal, padding and hints out";
                return Err(TrainError::Setting { setting: "format", problem: problem.to_owned() });
            }
        };
        let mut random = DigitSource::named(&format!("train format {} {number}", self.settings.seed));
        let same = asked.task.operation.second() == Second::SameRepresentation;
        let number_b = asked.b.as_deref().filter(|_| same);
        let (a, b) = format
            .operands(asked.task.representation, &asked.a, number_b, &mut random)
            .map_err(|error| TrainError::Setting { setting: "format", problem: error.to_string() })?;
        let grouped = |text: String| match &self.settings.tokens {
            Some(tokens) if format.index_hints.is_some() => hints_before_tokens(tokens, &text),
            _ => text,
        };
        let (a, b) = (grouped(a), b.map(grouped));
        // A position, digit or count is not one of the numbers that the format is about.
        let b = b.or_else(|| asked.b.clone());
        Ok(TextPair {
            prompt: question(asked.task, &a, b.as_deref(), Wording::Corrected),
            answer: format!(" {}", format.answer(&asked.answer)),
        })
    }

    /// Example `number`, as ids.
    ///
    /// # Errors
    /// As [`QuestionStream::text`], and what the tokenizer says.
    pub fn example(&self, number: u64, tokenizer: &NumberTokenizer) -> Result<Example, TrainError> {
        let text = self.text(&self.question(number), number)?;
        let mut random = DigitSource::named(&format!("train groups {} {number}", self.settings.seed));
        let mut encode = |text: &str| tokenizer.encode_for_training(text, &mut random);
        encoded(&text, &mut encode)
    }

    /// The first `count` questions of each cell, by task and length, for validation.
    pub fn fixed(&self, count: usize) -> Vec<TrainingQuestion> {
        self.cells.iter().flat_map(|cell| (0..count).filter_map(|stream| cell.sample(stream))).collect()
    }
}

/// Beginning, prompt, answer, end.
pub(super) fn encoded(
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
        };
        QuestionStream::new(settings, split).unwrap()
    }

    #[test]
    fn questions_come_by_number_and_evenly() {
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
    fn what_is_named_twice_is_asked_twice_as_often() {
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
        assert_eq!(stream.fixed(5).len(), 20, "a validation asks every cell alike");
    }

    #[test]
    fn parts_share_no_question() {
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
        let example = stream.example(5, &tokenizer).unwrap();
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
