//! Settings of a number tokenizer.
use serde::{Deserialize, Serialize};

/// Rule that splits runs of digits into tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DigitGroups {
    /// Greedily from the left.
    LeftToRight,
    /// Integers from the right, so that groups align with place value; decimals from the left (the paper's "aligned").
    #[default]
    RightAligned,
    /// In training, groups of random length up to the maximum; in inference, right-aligned ("random tokenizer").
    Random,
    /// Single digits with their place value: the 3 of 35 and the 3 of 350 are different tokens. Not in the paper; the tokenizer's
    /// counterpart of its index hints. Digits from 10^12 on have no place.
    Places,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenizerSettings {
    /// Maximum number of digits in a token: 1, 2 or 3. Every string of up to that many digits is a token, leading zeros included.
    pub digits: usize,
    /// Rule that splits longer runs.
    #[serde(default)]
    pub groups: DigitGroups,
    /// Maximum number of tokens for words.
    #[serde(default = "default_words")]
    pub words: usize,
}

impl Default for TokenizerSettings {
    fn default() -> Self {
        TokenizerSettings { digits: 1, groups: DigitGroups::default(), words: default_words() }
    }
}

fn default_words() -> usize {
    1024
}
