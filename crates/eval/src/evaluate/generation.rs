//! Generation settings over a checkpoint's defaults.
use earnest_engine::Sampling;

use crate::EvalError;
use crate::model::CheckpointDefaults;
use earnest_results::{Generation, Mode, ThinkingRequest};

/// Tokens that end a completion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EndOfSequence {
    /// All tokens that the checkpoint names.
    #[default]
    All,
    /// Only the tokenizer's end-of-sequence token.
    Tokenizer,
}

/// Requested generation; missing values are greedy or as the checkpoint recommends.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerationSettings {
    pub temperature: Option<f32>,
    pub top_k: Option<usize>,
    pub top_p: Option<f32>,
    pub min_p: Option<f32>,
    pub repetition_penalty: Option<f32>,
    /// Use the recommended sampling instead of greedy decoding.
    pub recommended: bool,
    /// Limit of new tokens, instead of the suite's budget.
    pub max_tokens: Option<usize>,
    pub eos: EndOfSequence,
    /// Choice between the suite's thinking and answer budgets.
    pub thinking: ThinkingRequest,
    /// Seed of sampling.
    pub seed: u64,
}

impl Default for GenerationSettings {
    fn default() -> Self {
        GenerationSettings {
            temperature: None,
            top_k: None,
            top_p: None,
            min_p: None,
            repetition_penalty: None,
            recommended: false,
            max_tokens: None,
            eos: EndOfSequence::All,
            thinking: ThinkingRequest::Auto,
            seed: 1,
        }
    }
}

impl GenerationSettings {
    /// Resolves the request against the checkpoint's defaults.
    pub fn resolve(&self, mode: Mode, defaults: Option<CheckpointDefaults>) -> Result<Generation, EvalError> {
        if self.recommended && defaults.is_none() {
            return Err(EvalError::setting(
                "the setting `recommended` needs the list of models or the model's generation_config.json",
            )
            .hint(
                "add the setting `tokenizer` with the model's folder, or give the setting `temperature` and the like",
            ));
        }
        let defaults = defaults.unwrap_or_default();
        let sampling = self.sampling(&defaults)?;
        if self.max_tokens == Some(0) {
            return Err(EvalError::setting("the setting `max_tokens` must be at least 1"));
        }
        let thinking = match self.thinking {
            ThinkingRequest::On => true,
            ThinkingRequest::Off => false,
            // An unused template opens no thinking.
            ThinkingRequest::Auto => mode == Mode::Chat && defaults.thinks,
        };
        let stop_ids = match (self.eos, defaults.tokenizer_eos) {
            (EndOfSequence::All, _) => defaults.stop_ids,
            (EndOfSequence::Tokenizer, Some(id)) => vec![id],
            (EndOfSequence::Tokenizer, None) => {
                return Err(EvalError::setting(
                    "setting `eos = tokenizer`: this tokenizer has no end-of-sequence token",
                )
                .hint("the setting `eos = all` uses those of the other configuration files"));
            }
        };
        Ok(Generation { sampling, seed: self.seed, stop_ids, max_tokens: self.max_tokens, thinking })
    }

    /// Checks the ranges of all values, before the checkpoint is known.
    pub fn check(&self) -> Result<(), EvalError> {
        // A checkpoint that recommends sampling and has an end-of-sequence token: others are refused when they are opened.
        let recommended = Sampling { temperature: 1.0, ..Sampling::GREEDY };
        let defaults = CheckpointDefaults { recommended, tokenizer_eos: Some(0), ..CheckpointDefaults::default() };
        self.resolve(Mode::Chat, Some(defaults)).map(drop)
    }

    fn sampling(&self, defaults: &CheckpointDefaults) -> Result<Sampling, EvalError> {
        let base = if self.recommended { defaults.recommended.clone() } else { Sampling::GREEDY };
        let sampling = Sampling {
            temperature: self.temperature.unwrap_or(base.temperature),
            top_k: self.top_k.unwrap_or(base.top_k),
            top_p: self.top_p.unwrap_or(base.top_p),
            min_p: self.min_p.unwrap_or(base.min_p),
            repetition_penalty: self.repetition_penalty.unwrap_or(base.repetition_penalty),
        };
        check("temperature", sampling.temperature, 100.0, true)?;
        check("top_p", sampling.top_p, 1.0, false)?;
        check("min_p", sampling.min_p, 1.0, true)?;
        check("repetition_penalty", sampling.repetition_penalty, 100.0, false)?;
        let narrows = self.top_k.is_some() || self.top_p.is_some() || self.min_p.is_some();
        if sampling.is_greedy() && narrows {
            return Err(EvalError::setting(
                "the setting `top_k`, the setting `top_p` and the setting `min_p` have no effect at temperature 0 (greedy decoding)",
            )
            .hint("add the setting `temperature`, or the setting `recommended` for the checkpoint's settings"));
        }
        Ok(sampling)
    }
}

/// Checks that a value is between 0 and `high`; 0 only if `zero`.
fn check(name: &str, value: f32, high: f32, zero: bool) -> Result<(), EvalError> {
    let inside = value.is_finite() && value <= high && (value > 0.0 || zero && value == 0.0);
    let lowest = if zero { "at least 0" } else { "above 0" };
    let message = || format!("the setting `{name}` must be {lowest} and at most {high}, not {value}");
    if inside { Ok(()) } else { Err(EvalError::setting(message())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults(thinks: bool) -> CheckpointDefaults {
        let recommended = Sampling { temperature: 0.7, top_k: 20, top_p: 0.8, min_p: 0.0, repetition_penalty: 1.05 };
        CheckpointDefaults { recommended, stop_ids: vec![2, 7], tokenizer_eos: Some(7), thinks }
    }

    fn asked() -> GenerationSettings {
        GenerationSettings::default()
    }

    #[test]
    fn greedy_unless_asked_otherwise() {
        let resolve = |asked: &GenerationSettings| {
            asked.resolve(Mode::Chat, Some(defaults(false))).map(|generation| generation.sampling)
        };
        assert_eq!(resolve(&asked()).unwrap(), Sampling::GREEDY);
        let recommended = GenerationSettings { recommended: true, ..asked() };
        assert_eq!(resolve(&recommended).unwrap(), defaults(false).recommended);
        assert!(recommended.resolve(Mode::Chat, None).is_err(), "nothing is recommended without a checkpoint");
        let cooler = GenerationSettings { temperature: Some(0.3), ..recommended };
        assert_eq!(resolve(&cooler).unwrap(), Sampling { temperature: 0.3, ..defaults(false).recommended });
    }

    #[test]
    fn the_tokenizers_end_alone_is_the_studys_rule() {
        let ids = |eos, defaults| {
            GenerationSettings { eos, ..asked() }
                .resolve(Mode::Raw, Some(defaults))
                .map(|generation| generation.stop_ids)
        };
        assert_eq!(ids(EndOfSequence::All, defaults(false)).unwrap(), [2, 7]);
        assert_eq!(ids(EndOfSequence::Tokenizer, defaults(false)).unwrap(), [7]);
        let without = CheckpointDefaults { tokenizer_eos: None, ..defaults(false) };
        assert!(ids(EndOfSequence::Tokenizer, without).is_err());
    }

    #[test]
    fn settings_without_sense_are_refused() {
        for wrong in [
            GenerationSettings { temperature: Some(-1.0), ..asked() },
            GenerationSettings { temperature: Some(f32::NAN), ..asked() },
            GenerationSettings { temperature: Some(1.0), top_p: Some(0.0), ..asked() },
            GenerationSettings { temperature: Some(1.0), min_p: Some(1.5), ..asked() },
            GenerationSettings { repetition_penalty: Some(0.0), ..asked() },
            GenerationSettings { max_tokens: Some(0), ..asked() },
            GenerationSettings { top_k: Some(5), ..asked() },
        ] {
            assert!(wrong.resolve(Mode::Raw, Some(defaults(false))).is_err(), "{wrong:?}");
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_only_the_checkpoint_can_tell_is_not_refused_before() {
        let recommended = GenerationSettings { recommended: true, top_k: Some(5), ..asked() };
        assert!(recommended.check().is_ok() && asked().check().is_ok());
        assert!(GenerationSettings { eos: EndOfSequence::Tokenizer, ..asked() }.check().is_ok());
    }

    #[test]
    fn thinking_follows_the_template_only_where_it_is_used() {
        let thinking = |thinking, mode, thinks| {
            GenerationSettings { thinking, ..asked() }.resolve(mode, Some(defaults(thinks))).unwrap().thinking
        };
        assert!(thinking(ThinkingRequest::Auto, Mode::Chat, true));
        assert!(!thinking(ThinkingRequest::Auto, Mode::Raw, true));
        assert!(!thinking(ThinkingRequest::Auto, Mode::Chat, false));
        assert!(thinking(ThinkingRequest::On, Mode::Raw, false));
        assert!(!thinking(ThinkingRequest::Off, Mode::Chat, true));
    }
}
