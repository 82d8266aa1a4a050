//! What is learnt, as token ids: an endless stream by number, and what validations ask.
use super::pairs::{self, PairFields};
use super::settings::{LoraData, LoraSettings};
use super::{Base, PromptForm};
use crate::{CellScore, Example, QuestionStream, TextPair, TrainError, TrainingQuestion};
use earnest_eval::prompt::{PromptError, Prompter, tokenise};
use earnest_models::checkpoint::{ChatMessage, Checkpoint};
use earnest_tasks::suite::Segments;
use earnest_tasks::suite::nupa::{DigitSource, Split, rule, system_message};

/// Draws for an example that fits into the context after which the context is called too short.
const PATIENCE: u64 = 200;

/// A validation's questions of one task and length.
pub(super) struct ValidationCell {
    pub(super) score: CellScore,
    pub(super) examples: Vec<Example>,
}

/// A prompt's parts and its answer.
struct Asked {
    segments: Segments,
    answer: String,
}

enum Kind {
    Questions { stream: QuestionStream, rule_following: bool },
    Pairs { learnt: Vec<Asked> },
}

/// The examples of a training.
pub(super) struct Data {
    kind: Kind,
    seed: u64,
    context: usize,
    form: PromptForm,
    /// The token after an answer.
    end: u32,
}

impl Data {
    /// The examples, and those of validations.
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
                let ask = |pair| asked_pair(pair, system.as_deref(), separator, settings.prompt);
                let (mut learnt, mut kept) = (Vec::new(), Vec::new());
                for (row, pair) in rows.into_iter().enumerate() {
                    let mut random = DigitSource::named(&format!("train held out {} {row}", settings.seed));
                    let held = (random.below(1 << 32) as f64) < held_out * (1u64 << 32) as f64;
                    if held { &mut kept } else { &mut learnt }.push(ask(pair));
                }
                if learnt.is_empty() || (*held_out > 0.0 && kept.is_empty()) {
                    let problem = format!(
                        "of the rows, {} are learnt and {} held out; more rows or another share are needed",
                        learnt.len(),
                        kept.len()
                    );
                    return Err(TrainError::Setting { setting: "pairs", problem });
                }
                kept.truncate(settings.validation);
                let data = data(Kind::Pairs { learnt });
                let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                let examples: Vec<Example> =
                    kept.iter().map(|asked| data.encoded(asked, &prompter)).collect::<Result<_, _>>()?;
                // All of them, so that a row that is too long is found before the first step.
                if let Kind::Pairs { learnt } = &data.kind {
                    for asked in learnt {
                        data.fitting(data.encoded(asked, &prompter)?)?;
                    }
                }
                let score = CellScore { task: name, length: 0, learnt: true, questions: examples.len(), exact: 0 };
                let cells = if examples.is_empty() { Vec::new() } else { vec![ValidationCell { score, examples }] };
                Ok((data, cells))
            }
        }
    }

    /// Examples of the stream by number.
    ///
    /// # Errors
    /// [`TrainError::Setting`] if they do not fit into the context.
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
                let asked = self.asked(&question, stream.text(&question, number)?, false)?;
                self.fitting(self.encoded(&asked, prompter)?)
            }
            Kind::Questions { stream, rule_following: true } => {
                // Traces that are too long are passed over, as in the paper.
                for attempt in 0..PATIENCE {
                    let question = stream.question(number | attempt << 48);
                    let asked = self.asked(&question, stream.text(&question, number)?, true)?;
                    let example = self.encoded(&asked, prompter)?;
                    if example.ids.len() <= self.context {
                        return Ok(example);
                    }
                }
                let problem = format!("no trace of these tasks and lengths fits into {} tokens", self.context);
                Err(TrainError::Setting { setting: "context", problem })
            }
            Kind::Pairs { learnt } => {
                // Every row once an epoch, each epoch in an order of its own.
                let (epoch, place) = (number / learnt.len() as u64, number % learnt.len() as u64);
                let mut order: Vec<usize> = (0..learnt.len()).collect();
                let mut random = DigitSource::named(&format!("train pairs {} {epoch}", self.seed));
                for last in (1..order.len()).rev() {
                    order.swap(last, random.below(last as u64 + 1) as usize);
                }
                self.encoded(&learnt[order[place as usize]], prompter)
            }
        }
    }

    fn validation(
        &self,
        stream: &QuestionStream,
        rule_following: bool,
        count: usize,
        learnt: bool,
        prompter: &Rendering<'_>,
        cells: &mut Vec<ValidationCell>,
    ) -> Result<(), TrainError> {
        for (number, question) in stream.fixed(count).into_iter().enumerate() {
            let asked = self.asked(&question, stream.text(&question, number as u64)?, rule_following)?;
            let example = self.encoded(&asked, prompter)?;
            if rule_following && example.ids.len() > self.context {
                continue;
            }
            let example = self.fitting(example)?;
            let (task, length) = (question.task().to_string(), question.length());
            match cells.last_mut() {
                Some(cell) if cell.score.task == task && cell.score.length == length => {
                    cell.score.questions += 1;
                    cell.examples.push(example);
                }
                _ => {
                    let score = CellScore { task, length, learnt, questions: 1, exact: 0 };
                    cells.push(ValidationCell { score, examples: vec![example] });
                }
            }
        }
        Ok(())
    }

    /// What `earnest run` puts to a model in this form.
    fn asked(&self, question: &TrainingQuestion, text: TextPair, rule_following: bool) -> Result<Asked, TrainError> {
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
            return Ok(Asked {
                segments: Segments { system, ..Segments::question(prompt) },
                answer: answer.trim_start().to_owned(),
            });
        }
        Ok(Asked { segments: Segments { raw: Some(prompt.clone()), ..Segments::question(prompt) }, answer })
    }

    /// Prompt, answer, end.
    fn encoded(&self, asked: &Asked, prompter: &Rendering<'_>) -> Result<Example, TrainError> {
        let rendered = prompter.prompter.render(&asked.segments).map_err(unusable)?;
        // The answer's tokens are those that follow the prompt's where both are one text. Where the prompt's last token would
        // then be another one, which the model never sees in use, the answer is encoded alone.
        let whole = tokenise(prompter.checkpoint, format!("{}{}", rendered.text, asked.answer)).map_err(unusable)?.ids;
        let prompt = rendered.ids.len();
        let mut ids = match whole.starts_with(&rendered.ids) && whole.len() > prompt {
            true => whole,
            false => {
                let answer = prompter.checkpoint.tokenizer.encode(&asked.answer, false)?;
                [rendered.ids, answer].concat()
            }
        };
        ids.push(self.end);
        Ok(Example { ids, prompt })
    }

    fn fitting(&self, example: Example) -> Result<Example, TrainError> {
        if example.ids.len() <= self.context {
            return Ok(example);
        }
        let problem = format!("an example has {} tokens, the context {}", example.ids.len(), self.context);
        Err(TrainError::Setting { setting: "context", problem })
    }
}

/// A checkpoint that renders prompts.
pub(super) struct Rendering<'a> {
    checkpoint: &'a Checkpoint,
    prompter: Prompter<'a>,
}

fn prompter(checkpoint: &Checkpoint, form: PromptForm) -> Result<Rendering<'_>, TrainError> {
    let prompter = Prompter::new(checkpoint, form.request()).map_err(unusable)?;
    Ok(Rendering { checkpoint, prompter })
}

fn unusable(error: PromptError) -> TrainError {
    TrainError::Setting { setting: "prompt", problem: error.to_string() }
}

fn asked_pair(pair: TextPair, system: Option<&str>, separator: &str, form: PromptForm) -> Asked {
    let TextPair { prompt, answer } = pair;
    let segments = Segments { system: system.map(str::to_owned), ..Segments::question(prompt.clone()) };
    let apart = prompt.ends_with(char::is_whitespace) || answer.starts_with(char::is_whitespace);
    let answer = match form {
        PromptForm::Raw if !apart => format!("{separator}{answer}"),
        _ => answer,
    };
    Asked { segments, answer }
}

/// The token that ends an answer: of a chat, the one that ends the assistant's turn.
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
        problem: "the checkpoint names no token that ends a text".to_owned(),
    })
}
