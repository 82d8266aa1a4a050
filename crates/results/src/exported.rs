//! Names in files that are exported, by which they are known again when they are read.

/// Note of a Parquet file, and member of a line, with the run's manifest.
pub const MANIFEST: &str = "earnest.manifest";

/// Member with what a run of earnest says in a line of lm-evaluation-harness.
pub const OWN: &str = "earnest";
