//! Faults of a `tokenizer.json`.

/// Fault of a `tokenizer.json`. Messages name the key.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(in crate::checkpoint) enum TokenizerFault {
    /// Words of the library, or of the process that tried the tokenizer.
    #[error("{0}")]
    Said(String),
    #[error(
        "`model.dropout` is {0}, which leaves out merges at random, so that no two runs have the same prompts: set it to null"
    )]
    Dropout(f32),
    #[error("`{part}` may make a text {growth} times as long; {limit} is the limit")]
    Growth { part: &'static str, growth: u64, limit: u64 },
    #[error("`{0}.pattern` is empty, so it would match everywhere")]
    EmptyPattern(String),
    #[error("`{0}.length` is 0")]
    NoLength(String),
    #[error("`{0}.precompiled_charsmap` is damaged")]
    DamagedMap(String),
    #[error("`{place}` adds {token:?}, which its `special_tokens` do not define")]
    UndefinedToken { place: String, token: String },
    #[error("the post-processor changes the ids of a text")]
    ChangedIds,
    #[error("decoder {0} is not supported")]
    Decoder(String),
    #[error("a Replace decoder after ByteLevel is not supported")]
    ReplaceAfterByteLevel,
    #[error("a Replace decoder with a regular expression is not supported")]
    ReplaceByExpression,
    #[error("a Replace decoder of {0:?} after Fuse is not supported")]
    ReplaceAfterFuse(String),
    #[error("a Strip decoder has no content")]
    NoStripContent,
    #[error("a Strip decoder that drops the end of a text is not supported")]
    StripsEnd,
    /// The trial's process was ended, as the end of a sentence says.
    #[error("building the tokenizer {0}")]
    Ended(String),
    #[error("building the tokenizer panicked: {0}")]
    Panicked(String),
}
