//! Data of a training of adapters: an endless stream of examples, addressed by number, and validation examples.
use super::pairs::{self, PairFields};
use super::settings::{LoraData, LoraSettings};
use super::{Base, PromptForm};
use crate::{AnswerStyle, CellScore, Example, QuestionStream, TextPair, TrainError, TrainingQuestion};
use earnest_eval::prompt::{PromptError, Prompter, tokenise};
use earnest_models::checkpoint::{ChatMessage, Checkpoint};
use earnest_tasks::suite::Segments;
use earnest_tasks::suite::nupa::{DigitSource, Split, rule, system_message};

/// Maximum draws for an example that fits into the context.
const MAX_DRAWS: u64 = 200;

/// Validation questions of one task and length.
pub(super) struct ValidationCell {
    pub(super) score: CellScore,
    pub(super) examples: Vec<Example>,
}

/// Prompt, as segments, and answer.
struct Pair {
    segments: Segments,
    answer: String,
}

enum Kind {
    Questions { stream: QuestionStream, rule_following: bool },
    Pairs { train: Vec<Pair> },
}

/// Examples of a training.
pub(super) struct Data {
    kind: Kind,
    seed: u64,
    context: usize,
    form: PromptForm,
    /// Token that ends an answer.
    end: u32,
}

impl Data {
    /// Opens the data; returns it with the validation cells.
    ///
    /// # Errors
    /// [`TrainError::Setting`], [`TrainError::File`].
    pub(super) fn open(settings: &LoraSettings, base: &Base) -> Result<(Self, Vec<ValidationCell>), TrainError> {
        let checkpoint = base.checkpoint();
        let prompter = prompter(checkpoint, settings.prompt)?;
        let end = end_token(checkpoint, settings.prompt)?;
        let data = |kind| Data { kind, seed: settings.seed, context: settings.context, form: settings.prompt, end };
        match &settings.data {
            LoraData::Questions { tasks, lengths, beyond, format, any_shorter_operand, rule_following } => {
                let stream = |lengths: &[usize], split| {
                    let settings = settings.stream(tasks, lengths, format, *any_shorter_operand)?;
                    QuestionStream::new(settings, split)
                };
                let kind = Kind::Questions { stream: stream(lengths, Split::Train)?, rule_following: *rule_following };
                let data = data(kind);
                let mut cells = Vec::new();
                for (lengths, learnt) in [(lengths, true), (beyond, false)] {
                    if !lengths.is_empty() {
                        let stream = stream(lengths, Split::Valid)?;
                        data.validation(&stream, *rule_following, settings.validation, learnt, &prompter, &mut cells)?;
                    }
                }
                Ok((data, cells))
            }
            LoraData::Pairs { file, held_out, prompt_field, completion_field, system, separator, .. } => {
                let fields = PairFields { prompt: prompt_field.as_deref(), completion: completion_field.as_deref() };
                let rows = pairs::read(file, &fields)?;
                let with_separator = |pair| user_pair(pair, system.as_deref(), separator, settings.prompt);
                let (mut train, mut valid) = (Vec::new(), Vec::new());
                for (row, pair) in rows.into_iter().enumerate() {
                    let mut random = DigitSource::named(&format!("train held out {} {row}", settings.seed));
                    let is_held_out = (random.below(1 << 32) as f64) < held_out * (1u64 << 32) as f64;
                    if is_held_out { &mut valid } else { &mut train }.push(with_separator(pair));
                }
                if train.is_empty() || (*held_out > 0.0 && valid.is_empty()) {
                    let problem = format!(
                        "{} rows are for training and {} held out; provide more rows or change held_out",
                        train.len(),
                        valid.len()
                    );
                    return Err(TrainError::Setting { setting: "pairs", problem });
                }
                valid.truncate(settings.validation);
                let data = data(Kind::Pairs { train });
                let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                let examples: Vec<Example> =
                    valid.iter().map(|pair| data.encode(pair, &prompter)).collect::<Result<_, _>>()?;
                // All rows are checked, so that one that is too long is found before the first step.
                if let Kind::Pairs { train } = &data.kind {
                    for pair in train {
                        data.check_length(data.encode(pair, &prompter)?)?;
                    }
                }
                let score = CellScore {
                    task: name,
                    style: AnswerStyle::Question,
                    length: 0,
                    learnt: true,
                    questions: examples.len(),
                    exact: 0,
                };
                let cells = if examples.is_empty() { Vec::new() } else { vec![ValidationCell { score, examples }] };
                Ok((data, cells))
            }
        }
    }

    /// Returns the examples with these numbers.
    ///
    /// # Errors
    /// [`TrainError::Setting`] for one that does not fit into the context.
    pub(super) fn examples(
        &self,
        numbers: std::ops::Range<u64>,
        checkpoint: &Checkpoint,
    ) -> Result<Vec<Example>, TrainError> {
        let prompter = prompter(checkpoint, self.form)?;
        numbers.map(|number| self.example(number, &prompter)).collect()
    }

    fn example(&self, number: u64, prompter: &Rendering<'_>) -> Result<Example, TrainError> {
        match &self.kind {
            Kind::Questions { stream, rule_following: false } => {
                let question = stream.question(number);
                let pair = self.question_pair(&question, stream.text(&question, number)?, false)?;
                self.check_length(self.encode(&pair, prompter)?)
            }
            Kind::Questions { stream, rule_following: true } => {
                // Traces that are too long are skipped, as in the paper.
                for attempt in 0..MAX_DRAWS {
                    let question = stream.question(number | attempt << 48);
                    let pair = self.question_pair(&question, stream.text(&question, number)?, true)?;
                    let example = self.encode(&pair, prompter)?;
                    if example.ids.len() <= self.context {
                        return Ok(example);
                    }
                }
                let problem = format!("no trace of these tasks and lengths fits into {} tokens", self.context);
                Err(TrainError::Setting { setting: "context", problem })
            }
            Kind::Pairs { train } => {
                // Every epoch visits all rows in a new order.
                let (epoch, index) = (number / train.len() as u64, number % train.len() as u64);
                let mut order: Vec<usize> = (0..train.len()).collect();
                let mut random = DigitSource::named(&format!("train pairs {} {epoch}", self.seed));
                for last in (1..order.len()).rev() {
                    order.swap(last, random.below(last as u64 + 1) as usize);
                }
                self.encode(&train[order[index as usize]], prompter)
            }
        }
    }

    /// Appends the validation cells of a stream.
    fn validation(
        &self,
        stream: &QuestionStream,
        rule_following: bool,
        count: usize,
        learnt: bool,
        prompter: &Rendering<'_>,
        cells: &mut Vec<ValidationCell>,
    ) -> Result<(), TrainError> {
        for (number, question) in stream.first_questions(count).into_iter().enumerate() {
            let pair = self.question_pair(&question, stream.text(&question, number as u64)?, rule_following)?;
            let example = self.encode(&pair, prompter)?;
            if rule_following && example.ids.len() > self.context {
                continue;
            }
            let example = self.check_length(example)?;
            let (task, length) = (question.task().to_string(), question.length());
            match cells.last_mut() {
                Some(cell) if cell.score.task == task && cell.score.length == length => {
                    cell.score.questions += 1;
                    cell.examples.push(example);
                }
                _ => {
                    let style = AnswerStyle::Question;
                    let score = CellScore { task, style, length, learnt, questions: 1, exact: 0 };
                    cells.push(ValidationCell { score, examples: vec![example] });
                }
            }
        }
        Ok(())
    }

    /// Builds the prompt and answer of a question, with the prompt that `earnest run` uses in this form.
    fn question_pair(
        &self,
        question: &TrainingQuestion,
        text: TextPair,
        rule_following: bool,
    ) -> Result<Pair, TrainError> {
        let TextPair { mut prompt, mut answer } = text;
        let mut system = None;
        if let TrainingQuestion::Nupa(question) = question {
            if rule_following {
                let failed = |problem: String| TrainError::Setting { setting: "tasks", problem };
                let rule = rule(question.task).map_err(|error| failed(error.to_string()))?;
                (prompt, answer) =
                    (rule.prompt(&prompt), rule.trace(question).map_err(|error| failed(error.to_string()))?);
            } else {
                system = Some(system_message(question.task));
            }
        }
        if self.form == PromptForm::Chat {
            return Ok(Pair {
                segments: Segments { system, ..Segments::question(prompt) },
                answer: answer.trim_start().to_owned(),
            });
        }
        Ok(Pair { segments: Segments { raw: Some(prompt.clone()), ..Segments::question(prompt) }, answer })
    }

    /// Encodes prompt, answer and end token.
    fn encode(&self, pair: &Pair, prompter: &Rendering<'_>) -> Result<Example, TrainError> {
        let rendered = prompter.prompter.render(&pair.segments).map_err(prompt_error)?;
        // Prompt and answer are encoded as one text. If that changes the prompt's last token, which would then differ from
        // inference, the answer is encoded alone.
        let whole =
            tokenise(prompter.checkpoint, format!("{}{}", rendered.text, pair.answer)).map_err(prompt_error)?.ids;
        let prompt = rendered.ids.len();
        let mut ids = match whole.starts_with(&rendered.ids) && whole.len() > prompt {
            true => whole,
            false => {
                let answer = prompter.checkpoint.tokenizer.encode(&pair.answer, false)?;
                [rendered.ids, answer].concat()
            }
        };
        ids.push(self.end);
        Ok(Example { ids, prompt })
    }

    /// Checks that an example fits into the context.
    fn check_length(&self, example: Example) -> Result<Example, TrainError> {
        if example.ids.len() <= self.context {
            return Ok(example);
        }
        let problem = format!("an example has {} tokens, more than the context {}", example.ids.len(), self.context);
        Err(TrainError::Setting { setting: "context", problem })
    }
}

/// Checkpoint with a prompter for it.
pub(super) struct Rendering<'a> {
    checkpoint: &'a Checkpoint,
    prompter: Prompter<'a>,
}

fn prompter(checkpoint: &Checkpoint, form: PromptForm) -> Result<Rendering<'_>, TrainError> {
    let prompter = Prompter::new(checkpoint, form.request()).map_err(prompt_error)?;
    Ok(Rendering { checkpoint, prompter })
}

fn prompt_error(error: PromptError) -> TrainError {
    TrainError::Setting { setting: "prompt", problem: error.to_string() }
}

/// Builds the prompt and answer of a user's pair.
fn user_pair(pair: TextPair, system: Option<&str>, separator: &str, form: PromptForm) -> Pair {
    let TextPair { prompt, answer } = pair;
    let segments = Segments { system: system.map(str::to_owned), ..Segments::question(prompt.clone()) };
    let separated = prompt.ends_with(char::is_whitespace) || answer.starts_with(char::is_whitespace);
    let answer = match form {
        PromptForm::Raw if !separated => format!("{separator}{answer}"),
        _ => answer,
    };
    Pair { segments, answer }
}

/// Returns the token that ends an answer: in a chat, the one that ends the assistant's turn.
fn end_token(checkpoint: &Checkpoint, form: PromptForm) -> Result<u32, TrainError> {
    let ends = &checkpoint.generation.eos_ids;
    if let (PromptForm::Chat, Some(template)) = (form, &checkpoint.chat_template) {
        const MARK: &str = "earnest-end-probe";
        let turns = [ChatMessage::new("user", "question"), ChatMessage::new("assistant", MARK)];
        let text = template.render(&turns, false)?;
        let rest = text.rsplit_once(MARK).map(|(_, rest)| rest).unwrap_or_default();
        let ids = checkpoint.tokenizer.encode(rest, false)?;
        if let Some(end) = ids.into_iter().find(|id| ends.contains(id)) {
            return Ok(end);
        }
    }
    checkpoint.tokenizer.eos().or_else(|| ends.first().copied()).ok_or_else(|| TrainError::Setting {
        setting: "model",
        problem: "the checkpoint has no end-of-sequence token".to_owned(),
    })
}
