//! Raw arguments become settings, once.
use super::args::{EngineArgs, EosArg, GenerationArgs, SessionArgs, ThinkingArg, ThinkingTextArg};
use super::error::CliError;
use crate::engine::Sampling;
use crate::prompt::Mode;
use crate::run::{Generation, ThinkingRequest};
use crate::suite::ThinkingText;

impl From<ThinkingArg> for ThinkingRequest {
    fn from(arg: ThinkingArg) -> Self {
        match arg {
            ThinkingArg::Auto => ThinkingRequest::Auto,
            ThinkingArg::On => ThinkingRequest::On,
            ThinkingArg::Off => ThinkingRequest::Off,
        }
    }
}

impl From<ThinkingTextArg> for ThinkingText {
    fn from(arg: ThinkingTextArg) -> Self {
        match arg {
            ThinkingTextArg::Strip => ThinkingText::Stripped,
            ThinkingTextArg::Keep => ThinkingText::Kept,
        }
    }
}

/// What a checkpoint says about generation.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckpointSays {
    /// Its recommended sampling.
    pub recommended: Sampling,
    pub stop_ids: Vec<u32>,
    /// The tokenizer's own end-of-sequence token.
    pub tokenizer_eos: Option<u32>,
    /// Its chat template opens a thinking block.
    pub thinks: bool,
}

/// Settles generation: greedy, or what the checkpoint recommends, then what the user says.
pub fn generation(args: &GenerationArgs, seed: u64, mode: Mode, says: CheckpointSays) -> Result<Generation, CliError> {
    let base = if args.recommended { says.recommended } else { Sampling::GREEDY };
    let sampling = Sampling {
        temperature: args.temperature.unwrap_or(base.temperature),
        top_k: args.top_k.unwrap_or(base.top_k),
        top_p: args.top_p.unwrap_or(base.top_p),
        min_p: args.min_p.unwrap_or(base.min_p),
        repetition_penalty: args.repetition_penalty.unwrap_or(base.repetition_penalty),
    };
    let bound = |name: &str, value: f32, low: f32, high: f32, open: bool| {
        let inside = value.is_finite() && value <= high && if open { value > low } else { value >= low };
        if inside { Ok(()) } else { Err(CliError::usage(format!("--{name} {value} is outside {low} to {high}"))) }
    };
    bound("temperature", sampling.temperature, 0.0, 100.0, false)?;
    bound("top-p", sampling.top_p, 0.0, 1.0, true)?;
    bound("min-p", sampling.min_p, 0.0, 1.0, false)?;
    bound("repetition-penalty", sampling.repetition_penalty, 0.0, 100.0, true)?;
    if args.max_tokens == Some(0) {
        return Err(CliError::usage("--max-tokens 0 would generate nothing"));
    }
    let narrows = [args.top_k.is_some(), args.top_p.is_some(), args.min_p.is_some()].contains(&true);
    if sampling.is_greedy() && narrows {
        return Err(CliError::usage("--top-k, --top-p and --min-p do nothing at temperature 0, which is greedy")
            .help("add --temperature, or --recommended for the checkpoint's own settings"));
    }
    let thinking = match args.thinking.into() {
        ThinkingRequest::On => true,
        ThinkingRequest::Off => false,
        // A template that is not used opens nothing.
        ThinkingRequest::Auto => mode == Mode::Chat && says.thinks,
    };
    let stop_ids = match (args.eos, says.tokenizer_eos) {
        (None | Some(EosArg::All), _) => says.stop_ids,
        (Some(EosArg::Tokenizer), Some(id)) => vec![id],
        (Some(EosArg::Tokenizer), None) => {
            return Err(CliError::usage("--eos tokenizer: this tokenizer names no end-of-sequence token")
                .help("--eos all takes those of the other configuration files"));
        }
    };
    Ok(Generation { sampling, seed, stop_ids, max_tokens: args.max_tokens, thinking })
}

/// Checks what no session can keep.
pub fn check_session(args: &SessionArgs) -> Result<(), CliError> {
    if let Some(fraction) = args.fail_on_error
        && !(0.0..=1.0).contains(&fraction)
    {
        return Err(CliError::usage(format!("--fail-on-error {fraction} is no fraction: take 0 to 1")));
    }
    check_engine(&args.engine)
}

/// Checks the limits of the native engine.
pub fn check_engine(args: &EngineArgs) -> Result<(), CliError> {
    if args.max_batch == Some(0) {
        return Err(CliError::usage("--max-batch 0 would compute nothing"));
    }
    if args.threads == Some(0) {
        return Err(CliError::usage("--threads 0 would compute nothing"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> GenerationArgs {
        GenerationArgs {
            temperature: None,
            top_k: None,
            top_p: None,
            min_p: None,
            repetition_penalty: None,
            recommended: false,
            max_tokens: None,
            eos: None,
            thinking: ThinkingArg::Auto,
            thinking_text: ThinkingTextArg::Strip,
        }
    }

    fn says(thinks: bool) -> CheckpointSays {
        let recommended = Sampling { temperature: 0.7, top_k: 20, top_p: 0.8, min_p: 0.0, repetition_penalty: 1.05 };
        CheckpointSays { recommended, stop_ids: vec![2, 7], tokenizer_eos: Some(7), thinks }
    }

    #[test]
    fn greedy_unless_asked_otherwise() {
        let settle = |args: &GenerationArgs| generation(args, 1, Mode::Chat, says(false)).map(|found| found.sampling);
        assert_eq!(settle(&args()).unwrap(), Sampling::GREEDY);
        let recommended = GenerationArgs { recommended: true, ..args() };
        assert_eq!(settle(&recommended).unwrap(), says(false).recommended);
        let cooler = GenerationArgs { temperature: Some(0.3), ..recommended };
        assert_eq!(settle(&cooler).unwrap(), Sampling { temperature: 0.3, ..says(false).recommended });
    }

    #[test]
    fn the_tokenizers_end_alone_is_the_studys_rule() {
        let ids =
            |eos, says| generation(&GenerationArgs { eos, ..args() }, 1, Mode::Raw, says).map(|found| found.stop_ids);
        assert_eq!(ids(None, says(false)).unwrap(), [2, 7]);
        assert_eq!(ids(Some(EosArg::All), says(false)).unwrap(), [2, 7]);
        assert_eq!(ids(Some(EosArg::Tokenizer), says(false)).unwrap(), [7]);
        assert!(ids(Some(EosArg::Tokenizer), CheckpointSays { tokenizer_eos: None, ..says(false) }).is_err());
    }

    #[test]
    fn settings_without_sense_are_refused() {
        for wrong in [
            GenerationArgs { temperature: Some(-1.0), ..args() },
            GenerationArgs { temperature: Some(f32::NAN), ..args() },
            GenerationArgs { temperature: Some(1.0), top_p: Some(0.0), ..args() },
            GenerationArgs { temperature: Some(1.0), min_p: Some(1.5), ..args() },
            GenerationArgs { repetition_penalty: Some(0.0), ..args() },
            GenerationArgs { max_tokens: Some(0), ..args() },
            GenerationArgs { top_k: Some(5), ..args() },
        ] {
            assert!(generation(&wrong, 1, Mode::Raw, says(false)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn thinking_follows_the_template_only_where_it_is_used() {
        let thinking = |thinking, mode, thinks| {
            generation(&GenerationArgs { thinking, ..args() }, 1, mode, says(thinks)).unwrap().thinking
        };
        assert!(thinking(ThinkingArg::Auto, Mode::Chat, true));
        assert!(!thinking(ThinkingArg::Auto, Mode::Raw, true));
        assert!(!thinking(ThinkingArg::Auto, Mode::Chat, false));
        assert!(thinking(ThinkingArg::On, Mode::Raw, false));
        assert!(!thinking(ThinkingArg::Off, Mode::Chat, true));
    }
}
