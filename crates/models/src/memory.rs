//! Human-readable sizes of memory.

/// Formats a number of bytes with a binary unit, e.g. `1.5 GiB`.
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

/// A memory size in bytes, written `2GiB`, `512M`, `1.5g` or `1000000`; units are powers of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteSize(pub u64);

/// Reason for a text being no size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    #[error("'{0}' is not a size: write it like 2GiB or 512MiB")]
    NotASize(String),
    #[error("'{0}' is not a unit: use KiB, MiB, GiB or TiB")]
    Unit(String),
    #[error("{0} is out of range: write a size from 1 byte to 1024TiB")]
    Range(String),
}

impl std::str::FromStr for ByteSize {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let text = text.trim();
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let value: f64 = number.parse().map_err(|_| SizeError::NotASize(text.to_owned()))?;
        let shift = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 10,
            "m" | "mb" | "mib" => 20,
            "g" | "gb" | "gib" => 30,
            "t" | "tb" | "tib" => 40,
            other => return Err(SizeError::Unit(other.to_owned())),
        };
        let bytes = value * (1u64 << shift) as f64;
        if bytes < 1.0 || bytes > (1u64 << 50) as f64 {
            return Err(SizeError::Range(text.to_owned()));
        }
        Ok(ByteSize(bytes as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_binary() {
        assert_eq!(human_bytes(1023), "1023 B");
        assert_eq!(human_bytes(3 << 29), "1.5 GiB");
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
