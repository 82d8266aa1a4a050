//! Training of adapters, with validations, a log and resumption.
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use candle_core::Device;

use super::adapter_folder;
use super::data::{Data, ValidationCell};
use super::settings::{LoraData, LoraSettings};
use super::{Base, BaseRecord};
use crate::adapter::splitmix64;
use crate::folder::write_atomic;
use crate::log::Log;
use crate::state::{self, Header};
use crate::step::{Parts, gradients, in_parallel};
use crate::{
    AdamW, Batch, CellScore, Decoder, Example, Parameters, TrainError, TrainEvent, TrainOutcome, Validation,
    answer_loss, answer_scores, grouping,
};

/// Tokens of a validation batch, which bound the memory of its logits.
const VALIDATION_TOKENS: usize = 2048;

/// Trainer of adapters.
pub struct LoraTrainer {
    settings: LoraSettings,
    folder: PathBuf,
    base: Base,
    data: Data,
    validation: Vec<ValidationCell>,
    decoder: Decoder,
    parameters: Parameters,
    optimiser: AdamW,
    header: Header,
    group: Option<(u64, Vec<Vec<Example>>)>,
}

/// JSON text of the settings that determine the result.
fn decisive_text(settings: &LoraSettings) -> String {
    let mut settings = settings.clone();
    settings.base.path = PathBuf::new();
    settings.base.model = String::new();
    if let LoraData::Pairs { file, .. } = &mut settings.data {
        *file = PathBuf::new();
    }
    serde_json::to_string(&settings).expect("settings are JSON")
}

/// Checks the SHA-256 of the file of pairs.
///
/// # Errors
/// [`TrainError::Resume`] if the file changed, [`TrainError::File`].
fn check_pairs(data: &LoraData) -> Result<(), TrainError> {
    let LoraData::Pairs { file, sha256, .. } = data else { return Ok(()) };
    let digest = earnest_digest::sha256_file(file, |_| {});
    let digest = digest.map_err(|source| TrainError::File { path: file.clone(), source })?;
    match digest == *sha256 {
        true => Ok(()),
        false => Err(TrainError::Resume {
            path: file.clone(),
            problem: "it is not the file that the training started with".to_owned(),
        }),
    }
}

impl LoraTrainer {
    /// Starts a training, or resumes the one in the folder.
    ///
    /// # Errors
    /// [`TrainError::Setting`], [`TrainError::Architecture`]; [`TrainError::Resume`] if the folder holds a training with other
    /// settings or the base has changed.
    pub fn open(settings: LoraSettings, folder: &Path) -> Result<Self, TrainError> {
        settings.check()?;
        check_pairs(&settings.data)?;
        let base = Base::open_allowing(&settings.base.path, &settings.base.allow_config, settings.retrofit)?;
        check_base(&base, &settings.base)?;
        let positions = base.checkpoint().config.max_positions;
        if settings.context > positions {
            let problem = format!("the checkpoint supports at most {positions} positions");
            return Err(TrainError::Setting { setting: "context", problem });
        }
        let (data, validation) = Data::open(&settings, &base)?;
        let mut parameters = Parameters::default();
        let decoder = base.decoder(&settings.adapters, settings.seed, &mut parameters)?;
        std::fs::create_dir_all(folder).map_err(|source| TrainError::File { path: folder.to_owned(), source })?;
        let text = decisive_text(&settings);
        let (header, optimiser) =
            state::resume(folder, &text, settings.optimiser, |step| step, &parameters, &Device::Cpu)?;
        let text = serde_json::to_string_pretty(&settings).expect("settings are JSON");
        write_atomic(&folder.join("training.json"), format!("{text}\n").as_bytes())?;
        let folder = folder.to_owned();
        Ok(LoraTrainer {
            settings,
            folder,
            base,
            data,
            validation,
            decoder,
            parameters,
            optimiser,
            header,
            group: None,
        })
    }

    /// Returns the number of completed steps.
    pub fn steps_done(&self) -> u64 {
        self.header.step
    }

    /// Returns the number of trained parameters.
    pub fn parameter_count(&self) -> usize {
        self.parameters.count()
    }

    /// Base checkpoint.
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// Model with its adapters, not merged.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Trains until all steps are done or `stop` is set. Every event goes to `log.jsonl` and to `report`. The first validation is
    /// of the unmodified checkpoint; the folder keeps the adapters of the best one.
    ///
    /// # Errors
    /// [`TrainError::Diverged`], [`TrainError::File`], [`TrainError::Tensor`].
    pub fn run(&mut self, stop: &AtomicBool, report: &mut dyn FnMut(&TrainEvent)) -> Result<TrainOutcome, TrainError> {
        let mut log = Log::open(&self.folder, self.header.step)?;
        let schedule = self.settings.schedule();
        if self.header.step == 0 {
            log.write(&TrainEvent::Validated(self.validate()?), report)?;
        }
        while self.header.step < self.settings.steps {
            if stop.load(Ordering::Relaxed) {
                self.save(&mut log, report)?;
                return Ok(TrainOutcome::Stopped);
            }
            let step = self.header.step + 1;
            let started = Instant::now();
            let examples = self.examples(step)?;
            let LoraSettings { accumulate, parts, seed, adapters, .. } = &self.settings;
            let key = splitmix64(*seed ^ splitmix64(step));
            let decoder = |part: usize| self.decoder.with_dropout(adapters.dropout, key ^ splitmix64(part as u64));
            let parts = Parts { count: accumulate * parts, parallel: *parts };
            let computed = gradients(&decoder, &self.parameters, &examples, parts, &Device::Cpu)?;
            if !computed.loss.is_finite() {
                return Err(TrainError::Diverged { step, loss: computed.loss as f32 });
            }
            let rate = schedule.rate(step);
            let gradient = self.optimiser.step(&self.parameters, &computed.gradients, rate)?;
            self.header.step = step;
            let seconds = started.elapsed().as_secs_f64();
            let event =
                TrainEvent::Step { step, loss: computed.loss, rate, gradient, tokens: computed.tokens, seconds };
            log.write(&event, report)?;
            if step.is_multiple_of(self.settings.validate_every) || step == self.settings.steps {
                let validation = self.validate()?;
                let exact = validation.exact();
                log.write(&TrainEvent::Validated(validation), report)?;
                if self.header.best.is_none_or(|(best, _)| exact >= best) {
                    self.header.best = Some((exact, step));
                    adapter_folder::write(&self.folder, &self.settings, &self.base, &self.parameters)?;
                }
                self.save(&mut log, report)?;
            }
        }
        state::remove(&self.folder)?;
        Ok(TrainOutcome::Finished)
    }

    /// Validates the current adapters.
    ///
    /// # Errors
    /// A tensor operation that fails.
    pub fn validate(&self) -> Result<Validation, TrainError> {
        let decoder = self.decoder.for_inference();
        let (mut loss, mut targets) = (0.0, 0);
        let mut cells = Vec::with_capacity(self.validation.len());
        for cell in &self.validation {
            let longest = cell.examples.iter().map(|example| example.ids.len()).max().unwrap_or(1);
            // No target attends to padding, so any id will do.
            let batches: Vec<Batch> = cell
                .examples
                .chunks((VALIDATION_TOKENS / longest).max(1))
                .flat_map(|chunk| chunk.chunks(chunk.len().div_ceil(self.settings.parts)))
                .map(|examples| Batch::new(examples, 0, &Device::Cpu))
                .collect::<candle_core::Result<_>>()?;
            let one = |_: usize, batch: &Batch| {
                let logits = decoder.logits(batch)?;
                let answered = answer_scores(&logits, batch)?.into_iter().filter(|answered| *answered).count();
                Ok((answered, f64::from(answer_loss(&logits, batch)?.to_scalar::<f32>()?)))
            };
            let mut exact = 0;
            for round in batches.chunks(self.settings.parts) {
                for (result, batch) in in_parallel(round, &one).into_iter().zip(round) {
                    let (answered, nats) = result?;
                    exact += answered;
                    if cell.score.learnt {
                        loss += nats;
                        targets += batch.targets();
                    }
                }
            }
            cells.push(CellScore { exact, ..cell.score.clone() });
        }
        Ok(Validation { step: self.header.step, loss: loss / targets.max(1) as f64, cells })
    }

    fn save(&self, log: &mut Log, report: &mut dyn FnMut(&TrainEvent)) -> Result<(), TrainError> {
        state::save(&self.folder, &self.header, &self.parameters, &self.optimiser)?;
        log.write(&TrainEvent::Saved { step: self.header.step }, report)
    }

    /// Returns the batch of a step.
    fn examples(&mut self, step: u64) -> Result<Vec<Example>, TrainError> {
        let (group, index) = grouping::group_of(step);
        if self.group.as_ref().is_none_or(|(made, _)| *made != group) {
            let LoraSettings { batch, accumulate, parts, seed, .. } = self.settings;
            let size = grouping::GROUP_STEPS * batch as u64;
            let examples = self.data.examples(group * size..(group + 1) * size, self.base.checkpoint())?;
            self.group = Some((group, grouping::batches(examples, batch, accumulate * parts, seed, group)));
        }
        let (_, batches) = self.group.as_ref().expect("it was just made");
        Ok(batches[index].clone())
    }
}

/// Checks that a base is the recorded one.
///
/// # Errors
/// [`TrainError::Resume`] if its files differ.
pub(super) fn check_base(base: &Base, record: &BaseRecord) -> Result<(), TrainError> {
    let files = base.digests()?;
    // A renamed GGUF file is the same base: only contents count.
    let contents = |files: &std::collections::BTreeMap<String, String>| {
        let mut digests: Vec<String> = files.values().cloned().collect();
        digests.sort();
        digests
    };
    if contents(&files) == contents(&record.files) {
        return Ok(());
    }
    let changed: Vec<&str> = files
        .iter()
        .filter(|(name, digest)| record.files.get(*name) != Some(*digest))
        .map(|(name, _)| name.as_str())
        .collect();
    let problem = format!("it is not the checkpoint that was adapted; these files differ: {}", changed.join(", "));
    Err(TrainError::Resume { path: base.checkpoint().source.clone(), problem })
}
