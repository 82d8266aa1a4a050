//! Training from scratch, with validations, a log and resumption.
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use candle_core::Device;

use super::decoder::{EMBEDDING, init_std};
use super::folder::{StoredType, write_atomic, write_model};
use super::log::Log;
use super::parameters::normal;
use super::plain::Workspace;
use super::progress::{CellScore, TrainEvent, Validation};
use super::state::{self, Header};
use super::step::plain_gradients;
use super::stream::encode_pair;
use super::tokenizer::PAD;
use super::{
    AdamW, AnswerStyle, Batch, Decoder, Example, NumberTokenizer, Parameters, QuestionStream, StreamSettings, TextPair,
    TrainError, TrainSettings, TrainingTask, answer_loss, answer_scores, grouping,
};
use earnest_tasks::suite::nupa::Split;

/// Questions that the tokenizer learns from.
const TOKENIZER_TEXTS: u64 = 4000;

/// Batch size of validations.
const VALIDATION_BATCH: usize = 256;

/// Tokens of a batch of a validation, which limit its memory where answers are traces.
const VALIDATION_TOKENS: usize = 32_768;

/// Outcome of a training session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrainOutcome {
    /// All steps are done or the criterion is met; the folder holds the best model, or the last one ([`TrainSettings::keeps_last`]).
    Finished,
    /// Stopped on request; the state is saved.
    Stopped,
}

/// Validation questions of one task and length.
struct ValidationCell {
    score: CellScore,
    examples: Vec<Example>,
}

/// Trainer of a model from scratch, on the CPU.
pub struct Trainer {
    settings: TrainSettings,
    folder: PathBuf,
    tokenizer: NumberTokenizer,
    stream: QuestionStream,
    /// Stream of the second phase.
    next: Option<QuestionStream>,
    validation: Vec<ValidationCell>,
    decoder: Decoder,
    parameters: Parameters,
    optimiser: AdamW,
    header: Header,
    /// Batches of the current group of steps, with its number.
    group: Option<(u64, Vec<Vec<Example>>)>,
    /// Buffers of every part.
    workspaces: Vec<Workspace>,
}

impl Trainer {
    /// Starts a training, or resumes the one in the folder.
    ///
    /// # Errors
    /// [`TrainError::Setting`]; [`TrainError::Resume`] if the folder holds a training with other settings.
    pub fn open(settings: TrainSettings, folder: &Path) -> Result<Self, TrainError> {
        settings.check()?;
        std::fs::create_dir_all(folder).map_err(|source| TrainError::File { path: folder.to_owned(), source })?;
        let stream = QuestionStream::new(settings.stream(&settings.lengths)?, Split::Train)?;
        let next = match settings.then {
            Some(_) => {
                let tasks = settings.next_tasks()?;
                Some(QuestionStream::new(
                    StreamSettings { tasks, ..settings.stream(&settings.lengths)? },
                    Split::Train,
                )?)
            }
            None => None,
        };
        let mut texts: Vec<String> = Vec::new();
        for stream in [Some(&stream), next.as_ref()].into_iter().flatten() {
            for number in 0..TOKENIZER_TEXTS {
                let TextPair { prompt, answer } = stream.styled_text(number)?;
                texts.push(prompt);
                // An answer to a plain question has no words.
                if stream.style(number) == AnswerStyle::RuleFollowing {
                    texts.push(answer);
                }
            }
        }
        let tokenizer = {
            let (hints, texts) = (settings.format.index_hints, texts.iter().map(String::as_str));
            NumberTokenizer::learn_hinted(&settings.tokenizer, hints, texts)?
        };
        settings.size.check_memory(tokenizer.len())?;
        let (decoder, parameters) = fresh(&settings, &tokenizer, 0)?;
        let text = serde_json::to_string_pretty(&settings).expect("settings are JSON");
        let optimised = |step| settings.attempt(step).1;
        let (header, optimiser) =
            state::resume(folder, &text, settings.optimiser, optimised, &parameters, &Device::Cpu)?;
        write_atomic(&folder.join("training.json"), format!("{text}\n").as_bytes())?;
        let learnt =
            |task, length| [Some(&stream), next.as_ref()].into_iter().flatten().any(|s| s.contains(task, length));
        let validation = validation(&settings, &tokenizer, &learnt)?;
        let folder = folder.to_owned();
        Ok(Trainer {
            settings,
            folder,
            tokenizer,
            stream,
            next,
            validation,
            decoder,
            parameters,
            optimiser,
            header,
            group: None,
            workspaces: Vec::new(),
        })
    }

    /// Returns the number of completed steps.
    pub fn steps_done(&self) -> u64 {
        self.header.step
    }

    /// Returns the number of restarts so far.
    pub fn restarts(&self) -> u64 {
        if self.header.step == 0 { 0 } else { self.settings.attempt(self.header.step).0 }
    }

    /// Returns true if a validation so far met the criterion.
    pub fn criterion_is_met(&self) -> bool {
        self.settings.until.zip(self.header.best).is_some_and(|(until, (exact, _))| exact >= until.accuracy.0)
    }

    /// Returns the number of trained parameters, embeddings included.
    pub fn parameter_count(&self) -> usize {
        self.parameters.count()
    }

    /// Trains until all steps are done, the criterion is met or `stop` is set. Every event goes to `log.jsonl` and to `report`.
    ///
    /// # Errors
    /// [`TrainError::Diverged`], [`TrainError::File`], [`TrainError::Tensor`].
    pub fn run(&mut self, stop: &AtomicBool, report: &mut dyn FnMut(&TrainEvent)) -> Result<TrainOutcome, TrainError> {
        let mut log = Log::open(&self.folder, self.header.step)?;
        while self.header.step < self.settings.total_steps() && !self.criterion_is_met() {
            if stop.load(Ordering::Relaxed) {
                self.save(&mut log, report)?;
                return Ok(TrainOutcome::Stopped);
            }
            let step = self.header.step + 1;
            if let (restart @ 1.., 1) = self.settings.attempt(step) {
                (self.decoder, self.parameters) = fresh(&self.settings, &self.tokenizer, restart)?;
                self.optimiser = AdamW::new(self.settings.optimiser);
                log.write(&TrainEvent::Restarted { step: step - 1, restart }, report)?;
            }
            let started = Instant::now();
            let examples = self.examples(step)?;
            self.workspaces.resize_with(self.settings.parts, Workspace::default);
            let computed = plain_gradients(self.decoder.config(), &self.parameters, &examples, &mut self.workspaces)?;
            if !computed.loss.is_finite() {
                return Err(TrainError::Diverged { step, loss: computed.loss as f32 });
            }
            let rate = self.settings.rate(step);
            let gradient = self.optimiser.step(&self.parameters, &computed.gradients, rate)?;
            self.header.step = step;
            let seconds = started.elapsed().as_secs_f64();
            let event =
                TrainEvent::Step { step, loss: computed.loss, rate, gradient, tokens: computed.tokens, seconds };
            log.write(&event, report)?;
            if step.is_multiple_of(self.settings.validate_every) || step.is_multiple_of(self.settings.steps) {
                let validation = self.validate()?;
                let exact = match self.settings.until {
                    Some(until) => until.score(&validation),
                    None => validation.exact(),
                };
                log.write(&TrainEvent::Validated(validation), report)?;
                if self.settings.keeps_last() || self.header.best.is_none_or(|(best, _)| exact >= best) {
                    self.header.best = Some((exact, step));
                    self.write(self.settings.stored)?;
                }
                self.save(&mut log, report)?;
            }
        }
        state::remove(&self.folder)?;
        Ok(TrainOutcome::Finished)
    }

    /// Validates the current weights.
    ///
    /// # Errors
    /// A tensor operation that fails.
    pub fn validate(&self) -> Result<Validation, TrainError> {
        let (mut loss, mut targets) = (0.0, 0);
        let mut cells = Vec::with_capacity(self.validation.len());
        for cell in &self.validation {
            let mut exact = 0;
            let longest = cell.examples.iter().map(|example| example.ids.len()).max().unwrap_or(1);
            for examples in cell.examples.chunks(VALIDATION_BATCH.min(VALIDATION_TOKENS / longest).max(1)) {
                let batch = Batch::new(examples, PAD, &Device::Cpu)?;
                let logits = self.decoder.logits(&batch)?;
                exact += answer_scores(&logits, &batch)?.into_iter().filter(|answered| *answered).count();
                if cell.score.learnt {
                    loss += f64::from(answer_loss(&logits, &batch)?.to_scalar::<f32>()?);
                    targets += batch.targets();
                }
            }
            cells.push(CellScore { exact, ..cell.score.clone() });
        }
        Ok(Validation { step: self.header.step, loss: loss / targets.max(1) as f64, cells })
    }

    /// Writes the current weights as a checkpoint folder.
    ///
    /// # Errors
    /// [`TrainError::File`].
    pub fn write(&self, stored: StoredType) -> Result<(), TrainError> {
        let tensors = self.parameters.iter().map(|(name, variable)| (name, variable.as_tensor()));
        write_model(&self.folder, self.decoder.config(), tensors, &self.tokenizer, stored)
    }

    fn save(&self, log: &mut Log, report: &mut dyn FnMut(&TrainEvent)) -> Result<(), TrainError> {
        state::save(&self.folder, &self.header, &self.parameters, &self.optimiser)?;
        log.write(&TrainEvent::Saved { step: self.header.step }, report)
    }

    /// Returns the batch of a step.
    fn examples(&mut self, step: u64) -> Result<Vec<Example>, TrainError> {
        let (group, index) = grouping::group_of(step);
        if self.group.as_ref().is_none_or(|(made, _)| *made != group) {
            self.group = Some((group, self.make_group(group)?));
        }
        let (_, batches) = self.group.as_ref().expect("it was just made");
        Ok(batches[index].clone())
    }

    /// Returns the stream of a group: that of the first or the second phase.
    fn stream_of(&self, group: u64) -> &QuestionStream {
        match (&self.next, &self.settings.then) {
            (Some(stream), Some(next)) if group * grouping::GROUP_STEPS >= next.after => stream,
            _ => &self.stream,
        }
    }

    fn make_group(&self, group: u64) -> Result<Vec<Vec<Example>>, TrainError> {
        let size = grouping::GROUP_STEPS * self.settings.batch as u64;
        let examples: Vec<Example> = (group * size..(group + 1) * size)
            .map(|number| self.stream_of(group).example(number, &self.tokenizer, self.settings.context))
            .collect::<Result<_, _>>()?;
        if let Some(long) = examples.iter().find(|example| example.ids.len() > self.settings.context) {
            let problem =
                format!("an example has {} tokens, more than the context {}", long.ids.len(), self.settings.context);
            return Err(TrainError::Setting { setting: "context", problem });
        }
        Ok(grouping::batches(examples, self.settings.batch, self.settings.parts, self.settings.seed, group))
    }
}

/// Creates a model with the initial weights of an attempt.
fn fresh(
    settings: &TrainSettings,
    tokenizer: &NumberTokenizer,
    restart: u64,
) -> Result<(Decoder, Parameters), TrainError> {
    // Far from other trainings' seeds, which are small numbers.
    let seed = settings.seed.wrapping_add(restart << 40);
    let config = settings.size.decoder(tokenizer.len(), settings.context, settings.position);
    let mut parameters = Parameters::default();
    let decoder = Decoder::fresh(&config, seed, &mut parameters, &Device::Cpu)?;
    init_placed_digits(tokenizer, seed, &parameters)?;
    Ok((decoder, parameters))
}

/// Initialises the embedding of every digit with a place as the sum of a digit vector and a place vector, so that tokens with the
/// same digit or place start out similar.
fn init_placed_digits(tokenizer: &NumberTokenizer, seed: u64, parameters: &Parameters) -> Result<(), TrainError> {
    let Some(embedding) = parameters.get(EMBEDDING) else { return Ok(()) };
    let (rows, width) = embedding.dims2()?;
    let mut values = embedding.flatten_all()?.to_vec1::<f32>()?;
    let draw = |name: String| -> Result<Vec<f32>, TrainError> {
        // The sum of two has the standard deviation of the other rows.
        Ok(normal(seed, &name, &[width], init_std(2 * width), &Device::Cpu)?.to_vec1::<f32>()?)
    };
    for (id, digit, place) in tokenizer.placed_digits() {
        let (digit_vector, place_vector) = (draw(format!("digit {digit}"))?, draw(format!("place {place}"))?);
        let row = &mut values[id as usize * width..][..width];
        for ((value, digit), place) in row.iter_mut().zip(digit_vector).zip(place_vector) {
            *value = digit + place;
        }
    }
    embedding.set(&candle_core::Tensor::from_vec(values, (rows, width), &Device::Cpu)?)?;
    Ok(())
}

/// Builds the validation cells from the split `valid`, tokenized as in inference.
fn validation(
    settings: &TrainSettings,
    tokenizer: &NumberTokenizer,
    learnt: &dyn Fn(TrainingTask, usize) -> bool,
) -> Result<Vec<ValidationCell>, TrainError> {
    let mut cells: Vec<ValidationCell> = Vec::new();
    for lengths in [&settings.lengths, &settings.beyond] {
        if lengths.is_empty() {
            continue;
        }
        let stream = QuestionStream::new(settings.evaluation_stream(lengths)?, Split::Valid)?;
        let questions = stream.first_questions(settings.validation);
        let styled =
            distinct(&settings.styles).flat_map(|style| questions.iter().enumerate().map(move |all| (style, all)));
        for (style, (number, question)) in styled {
            let text = style.pair(question, stream.text(question, number as u64)?)?;
            let example = encode_pair(&text, &mut |text| tokenizer.encode(text))?;
            if example.ids.len() > settings.context && style == AnswerStyle::RuleFollowing {
                // Not asked, as in the paper; the cell has fewer questions.
                continue;
            }
            if example.ids.len() > settings.context {
                let problem = format!(
                    "a question of {} digits has {} tokens, more than the context {}",
                    question.length(),
                    example.ids.len(),
                    settings.context
                );
                return Err(TrainError::Setting { setting: "context", problem });
            }
            let (task, length) = (question.task().to_string(), question.length());
            match cells.last_mut() {
                Some(cell) if (&cell.score.task, cell.score.style, cell.score.length) == (&task, style, length) => {
                    cell.examples.push(example);
                }
                _ => {
                    // Some lengths have no training question, for instance integers of one digit.
                    let learnt = learnt(question.task(), length);
                    let score = CellScore { task, style, length, learnt, questions: 0, exact: 0 };
                    cells.push(ValidationCell { score, examples: vec![example] });
                }
            }
        }
    }
    for cell in &mut cells {
        cell.score.questions = cell.examples.len();
    }
    Ok(cells)
}

/// Styles without repetitions.
fn distinct(styles: &[AnswerStyle]) -> impl Iterator<Item = AnswerStyle> + '_ {
    styles.iter().enumerate().filter(|(at, style)| !styles[..*at].contains(style)).map(|(_, style)| *style)
}
