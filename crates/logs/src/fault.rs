//! Faults of a log's parts.
use super::json::reason;

/// Fault of a record, a row or the facts of a log. The error that carries it names the file and the place.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogFault {
    #[error("{}", reason(.0))]
    Json(#[from] serde_json::Error),
    #[error("{whose} has no {what}")]
    Without { whose: &'static str, what: &'static str },
    /// More bytes than are read at once; `what` has its verb.
    #[error("{what} {}, more than the {} that are read", megabytes(*.length), megabytes(*.longest))]
    Longer { what: &'static str, length: u64, longest: u64 },
    #[error("{what} has {bytes} bytes; {kind} of up to {most} are read")]
    TooLong { what: &'static str, bytes: usize, kind: &'static str, most: usize },
    /// A name in whose place a sentence stands since it was parsed.
    #[error("{what} is too long; names of up to {most} bytes are read")]
    LeftOut { what: &'static str, most: usize },
    #[error("its {what} has {bytes} bytes; texts of up to {mib} MiB are read")]
    LongText { what: &'static str, bytes: usize, mib: usize },
    #[error("its texts have {bytes} bytes together; up to {mib} MiB are read")]
    LongTexts { bytes: usize, mib: usize },
    #[error("with its attachments it has more than the {mib} MiB of texts that are read")]
    Attached { mib: usize },
    #[error(
        "with it, the samples have more than {mib} MiB, which is what a log of this size may have: {base} MiB and {per_byte} bytes for \
         each byte of its files"
    )]
    LongSamples { mib: u64, base: u64, per_byte: u64 },
    #[error("{what} of {bytes} bytes would stand {count} times in the results, which may take {mib} MiB")]
    Copies { what: &'static str, bytes: usize, count: usize, mib: usize },
    #[error(
        "the answers, choices and fields of up to {documents} documents before {id} take more than {mib} MiB, which is what is stored"
    )]
    FullPack { documents: usize, id: String, mib: usize },
    /// More things than are read; `whose` has its verb.
    #[error("{whose} {count} {things}; up to {most} are read")]
    TooMany { whose: &'static str, count: usize, things: &'static str, most: usize },
    #[error("it has {count} members; lines with up to {most} are read")]
    Members { count: usize, most: usize },
    #[error("it has {count} tokens; up to {most} are believed")]
    Tokens { count: u64, most: u64 },
    #[error("{whose} more than {most} scorers, which is how many a log may have")]
    Scorers { whose: &'static str, most: usize },
    #[error("it is of another filter than the {lines} lines before it, and a task may have {most} filters")]
    Filters { lines: usize, most: usize },
    #[error("its document stands more than {most} times in {lines} lines: that many filters are read")]
    Repeated { lines: usize, most: usize },
    #[error("the repeat {0} is beyond those that are read")]
    Epoch(i64),
    #[error("the score {scorer} is {number:e}; scores from -{largest:e} to {largest:e} are read")]
    LargeScore { scorer: String, number: f64, largest: f64 },
    #[error("the score {scorer} is {value}, which no mean can hold")]
    NoMean { scorer: String, value: String },
    #[error("it does not name its item")]
    NoItem,
    #[error("the row has neither an id nor a question")]
    NoQuestion,
    #[error("the row names itself ({id}) as its original in `{column}`: leave that empty for an original")]
    OwnOriginal { id: String, column: String },
    #[error("its `metric` is no object: a layout of lighteval's details that is not known")]
    Metric,
    #[error("the sample has both `score` and `scores`")]
    BothScores,
    #[error("{0}: a layout of Inspect's logs that is not known")]
    Scores(#[from] LayoutFault),
    #[error(
        "it has `{member}` in the place of `response`{}: {ANSWERS}",
        if *.member == "result" { ", as Anthropic's batches have" } else { "" }
    )]
    NoResponse { member: &'static str },
    #[error(
        "the body of the response{} has neither a list `choices` nor `output`: {ANSWERS}",
        .object.as_ref().map_or_else(String::new, |object| format!(" (object `{object}`)"))
    )]
    NoChoices { object: Option<String> },
}

/// Ends the faults of a batch's answers.
const ANSWERS: &str = "a layout of batches that is not known; answers of /v1/chat/completions, /v1/completions and /v1/responses are read";

/// The part of Inspect's results or scores that is in no layout that is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LayoutFault {
    #[error("{whose} has no `{member}`")]
    Without { whose: String, member: &'static str },
    /// A value of another kind; `what` has its verb.
    #[error("{what} {kind}, not {expected}")]
    Kind { what: String, kind: &'static str, expected: &'static str },
}

fn megabytes(bytes: u64) -> String {
    if bytes < 10_000_000 { format!("{bytes} bytes") } else { format!("{} MB", bytes / 1_000_000) }
}
