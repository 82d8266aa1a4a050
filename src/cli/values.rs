//! Values on the command line that are more than a number or a word.
use std::ops::RangeInclusive;

use crate::prompt::ModeRequest;

/// `all`, `reference`, or a list such as `1..3` or `1-3` (both inclusive), `5` or `1,2,5..7`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lengths {
    /// Every length that the suite has.
    All,
    /// Those that the paper's authors test.
    Reference,
    /// These, ascending and without repeats.
    Chosen(Vec<usize>),
}

/// Longest list that is taken, so that a slip such as `1..1000000000` is an error instead of a memory problem.
const MOST: usize = 100_000;

impl std::str::FromStr for Lengths {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "all" => return Ok(Lengths::All),
            "reference" => return Ok(Lengths::Reference),
            _ => {}
        }
        let mut lengths = Vec::new();
        for part in text.split(',') {
            let range = range(part.trim())?;
            if range.end() - range.start() >= MOST {
                return Err(format!("{part} has more than {MOST} values"));
            }
            lengths.extend(range);
        }
        lengths.sort_unstable();
        lengths.dedup();
        Ok(Lengths::Chosen(lengths))
    }
}

fn range(part: &str) -> Result<RangeInclusive<usize>, String> {
    let number = |text: &str| {
        let value: usize =
            text.trim().parse().map_err(|_| format!("'{part}' is neither a number nor a range like 1..3 or 1-3"))?;
        if value == 0 { Err("0 is not a length: lengths begin at 1".to_owned()) } else { Ok(value) }
    };
    let Some((from, to)) = part.split_once("..").or_else(|| part.split_once('-')) else {
        return number(part).map(|only| only..=only);
    };
    let (from, to) = (number(from)?, number(to.strip_prefix('=').unwrap_or(to))?);
    if from > to {
        return Err(format!("{part} runs backwards: write {to}..{from}"));
    }
    Ok(from..=to)
}

/// How prompts are written (`auto`, `chat`, `raw`) and, where a suite has several prompts, which of them: a list of both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompts {
    /// The last of the modes that are named; a suite has its own default.
    pub mode: Option<ModeRequest>,
    /// Everything else, for the suite to check.
    pub names: Vec<String>,
}

impl std::str::FromStr for Prompts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut prompts = Prompts::default();
        for word in text.split(',').map(str::trim) {
            let mode = match word {
                "" => return Err("a name is empty: write e.g. auto, chat, raw or a list without gaps".into()),
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

/// Bytes, written `2GiB`, `512M`, `1.5g` or `1000000`. Units are powers of 1024, as memory is sold.
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
        // Far below 2^53, so the conversion is exact enough; anything above is no memory size.
        if bytes < 1.0 || bytes > (1u64 << 50) as f64 {
            return Err(format!("{text} is not a sensible memory size"));
        }
        Ok(ByteSize(bytes as u64))
    }
}

/// Bytes for people.
pub fn human_bytes(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", units[unit]) }
}

/// A number of things, e.g. `1 prompt` or `3 prompts`.
pub fn counted(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
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
    fn ranges_are_inclusive() {
        let lengths = |text: &str| {
            text.parse::<Lengths>().map(|lengths| match lengths {
                Lengths::Chosen(lengths) => lengths,
                Lengths::All | Lengths::Reference => Vec::new(),
            })
        };
        assert_eq!(lengths("1-3,50"), Ok(vec![1, 2, 3, 50]));
        assert_eq!(lengths("1..3"), Ok(vec![1, 2, 3]));
        assert_eq!(lengths("1..=3"), Ok(vec![1, 2, 3]));
        assert_eq!(lengths("5"), Ok(vec![5]));
        assert_eq!(lengths("5..7, 1,2,6"), Ok(vec![1, 2, 5, 6, 7]));
        assert_eq!(lengths("100..100"), Ok(vec![100]));
        for wrong in [
            "",
            "0",
            "0..2",
            "3..1",
            "a",
            "1..",
            "..3",
            "3-1",
            "1-",
            "-1",
            "1-2-3",
            "1..2..3",
            "1..99999999999",
            "1,,2",
            "all,1",
        ] {
            assert!(lengths(wrong).is_err(), "{wrong}");
        }
        assert_eq!("all".parse(), Ok(Lengths::All));
        assert_eq!("reference".parse(), Ok(Lengths::Reference));
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
        assert_eq!(human_bytes(1023), "1023 B");
        assert_eq!(human_bytes(3 << 29), "1.5 GiB");
    }
}
