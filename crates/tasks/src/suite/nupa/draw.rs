//! Random digits. Every item has its own ChaCha8 stream, keyed by what names the item, so that it does not depend on
//! which other items are made, nor on their order.
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

/// A source of uniform digits and integers.
pub struct DigitSource(ChaCha8Rng);

impl DigitSource {
    /// The stream of whatever `name` names.
    pub fn named(name: &str) -> Self {
        Self::keyed(Sha256::new().chain_update(name))
    }

    pub(super) fn keyed(name: Sha256) -> Self {
        DigitSource(ChaCha8Rng::from_seed(name.finalize().into()))
    }

    /// Uniform on `0..bound`, exactly (multiply and reject); 0 for an empty range.
    pub fn below(&mut self, bound: u64) -> u64 {
        let mut product = u128::from(self.0.next_u64()) * u128::from(bound);
        if (product as u64) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (product as u64) < threshold {
                product = u128::from(self.0.next_u64()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// Uniform on `low..=high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1).unsigned_abs()) as i64
    }

    /// True with probability `numerator / denominator`.
    pub fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }

    /// Appends `count` uniform digits.
    pub fn digits(&mut self, count: usize, out: &mut String) {
        const CHUNK: usize = 18;
        let mut left = count;
        while left > 0 {
            let width = left.min(CHUNK);
            let mut value = self.below(10u64.pow(width as u32));
            let mut buffer = [b'0'; CHUNK];
            // Two digits a division: this loop is most of the cost of a long number.
            for pair in buffer[CHUNK - width..].rchunks_mut(2) {
                let two = (value % 100) as u8;
                value /= 100;
                match pair {
                    [tens, units] => (*tens, *units) = (b'0' + two / 10, b'0' + two % 10),
                    [units] => *units = b'0' + two,
                    _ => {}
                }
            }
            out.push_str(std::str::from_utf8(&buffer[CHUNK - width..]).expect("digits are ASCII"));
            left -= width;
        }
    }

    /// Appends one digit from 1 to 9.
    pub fn nonzero_digit(&mut self, out: &mut String) {
        out.push((b'1' + self.below(9) as u8) as char);
    }
}

/// A stable 64-bit fingerprint of byte strings (folded multiplication, 8 bytes a step). It is part of the suite's
/// version: splits depend on it.
pub(super) fn fingerprint(strings: &[&str]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |state: u64, word: u64| {
        let product = u128::from(state ^ word) * u128::from(FACTOR);
        (product as u64 ^ (product >> 64) as u64).wrapping_add(0xD6E8_FEB8_6659_FD93)
    };
    let mut state = 0x243F_6A88_85A3_08D3;
    for string in strings {
        let mut chunks = string.as_bytes().chunks_exact(8);
        for chunk in &mut chunks {
            let word: [u8; 8] = chunk.try_into().expect("chunks of exactly 8 bytes");
            state = mix(state, u64::from_le_bytes(word));
        }
        let mut last = [0u8; 8];
        last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
        // The length separates `12`, `3` from `1`, `23`.
        state = mix(mix(state, u64::from_le_bytes(last)), string.len() as u64 | 1 << 63);
    }
    mix(state, FACTOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pearson's statistic of counts against a uniform distribution.
    fn chi_squared(counts: &[usize]) -> f64 {
        let expected = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
        counts.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum()
    }

    #[test]
    fn digits_are_uniform_at_every_position() {
        let mut source = DigitSource::named("digits");
        let mut counts = vec![[0usize; 10]; 25];
        let mut text = String::new();
        for _ in 0..20_000 {
            text.clear();
            source.digits(25, &mut text);
            for (position, digit) in text.bytes().enumerate() {
                counts[position][(digit - b'0') as usize] += 1;
            }
        }
        // 9 degrees of freedom, p = 0.0001 is 33.7; 25 positions.
        assert!(counts.iter().all(|counts| chi_squared(counts) < 36.0));
    }

    #[test]
    fn bounded_draws_are_uniform() {
        let mut source = DigitSource::named("below");
        for bound in [2u64, 3, 7, 10, 100] {
            let mut counts = vec![0usize; bound as usize];
            for _ in 0..20_000 {
                counts[source.below(bound) as usize] += 1;
            }
            let freedom = (bound - 1) as f64;
            assert!(chi_squared(&counts) < freedom + 5.0 * (2.0 * freedom).sqrt() + 5.0, "{bound}");
        }
        assert!((0..1000).all(|_| (-5..=-1).contains(&source.between(-5, -1))));
    }

    #[test]
    fn streams_are_named() {
        let draw = |name| DigitSource::named(name).below(u64::MAX);
        assert_eq!(draw("a"), draw("a"));
        assert_ne!(draw("a"), draw("b"));
    }

    #[test]
    fn fingerprints_separate_strings() {
        let all =
            [["12", "3"], ["1", "23"], ["123", ""], ["", "123"], ["3", "12"], ["12345678", ""], ["12345678", "0"]];
        let distinct: std::collections::BTreeSet<u64> = all.iter().map(|pair| fingerprint(pair)).collect();
        assert_eq!(distinct.len(), all.len());
        assert_eq!(fingerprint(&["1234567890", "5"]), 12_615_104_694_406_720_364);
    }
}
