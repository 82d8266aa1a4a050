//! Types and parsers of option values.
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use earnest_eval::prompt::ModeRequest;
pub use earnest_tasks::suite::LengthList as Lengths;

/// Prompt format (`auto`, `chat`, `raw`) and, for suites with several prompts, their names: one list of both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompts {
    /// The format, if one is named; otherwise the suite's default applies.
    pub mode: Option<ModeRequest>,
    /// All other words, for the suite to check.
    pub names: Vec<String>,
}

impl std::str::FromStr for Prompts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut prompts = Prompts::default();
        for word in text.split(',').map(str::trim) {
            let mode = match word {
                "" => return Err("empty name: write e.g. auto, chat, raw or a list without gaps".into()),
                "auto" => ModeRequest::Auto,
                "chat" => ModeRequest::Chat,
                "raw" => ModeRequest::Raw,
                name => {
                    prompts.names.push(name.to_owned());
                    continue;
                }
            };
            if prompts.mode.is_some_and(|earlier| earlier != mode) {
                return Err("auto, chat and raw exclude each other".into());
            }
            prompts.mode = Some(mode);
        }
        Ok(prompts)
    }
}

/// A memory size in bytes, written `2GiB`, `512M`, `1.5g` or `1000000`; units are powers of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteSize(pub u64);

impl std::str::FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let value: f64 = number.parse().map_err(|_| format!("'{text}' is not a size: write it like 2GiB or 512MiB"))?;
        let shift = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 10,
            "m" | "mb" | "mib" => 20,
            "g" | "gb" | "gib" => 30,
            "t" | "tb" | "tib" => 40,
            other => return Err(format!("'{other}' is not a unit: use KiB, MiB, GiB or TiB")),
        };
        let bytes = value * (1u64 << shift) as f64;
        if bytes < 1.0 || bytes > (1u64 << 50) as f64 {
            return Err(format!("{text} is out of range: write a size from 1 byte to 1024TiB"));
        }
        Ok(ByteSize(bytes as u64))
    }
}

/// A count with its noun, e.g. `1 prompt` or `3 prompts`.
pub fn counted(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Parser of an option that takes one of a few names: each with its help (or none) and its value.
pub fn one_of<T: Copy + Send + Sync + 'static>(
    values: &'static [(&'static str, &'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let shown = values.iter().map(|(name, help, _)| match *help {
        "" => PossibleValue::new(*name),
        help => PossibleValue::new(*name).help(help),
    });
    PossibleValuesParser::new(shown).map(|name| {
        let chosen = values.iter().find(|(known, ..)| *known == name);
        chosen.expect("clap accepts the listed names only").2
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_modes_and_names() {
        let parsed = |text: &str| text.parse::<Prompts>();
        assert_eq!(parsed("chat").unwrap(), Prompts { mode: Some(ModeRequest::Chat), names: vec![] });
        let both = Prompts { mode: Some(ModeRequest::Raw), names: vec!["gsm".into(), "all".into()] };
        assert_eq!(parsed("gsm, raw,all").unwrap(), both);
        assert!(parsed("chat,raw").is_err() && parsed("").is_err() && parsed("gsm,,raw").is_err());
    }

    #[test]
    fn sizes() {
        let size = |text: &str| text.parse::<ByteSize>().map(|size| size.0);
        assert_eq!(size("2GiB"), Ok(2 << 30));
        assert_eq!(size("512M"), Ok(512 << 20));
        assert_eq!(size("1.5g"), Ok(3 << 29));
        assert_eq!(size("1000"), Ok(1000));
        assert_eq!(size("64 KiB"), Ok(64 << 10));
        for wrong in ["", "GiB", "0", "-1G", "1X", "1e9", "1..2G", "99999999T"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
