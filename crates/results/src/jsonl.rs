//! Samples as lines of JSON, for other programs and in results of early versions.
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use earnest_digest::input;

use super::{RunError, SAMPLE_FORMAT, Sample};

/// Result of reading a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadEnd {
    /// Number of rows.
    pub rows: usize,
    /// True if an incomplete last line follows, because the writer was killed.
    pub torn: bool,
}

/// Writes a sample as one line.
pub fn write_jsonl(to: &mut dyn Write, sample: &Sample) -> io::Result<()> {
    serde_json::to_writer(&mut *to, sample)?;
    to.write_all(b"\n")
}

/// Largest row in bytes; a longer one is taken for an incomplete one.
const LONGEST: u64 = 256 << 20;

/// Reads all rows of one run in file order. An incomplete last line is skipped.
///
/// # Errors
/// [`RunError::Damaged`] with the line for anything else that is not a sample of the run.
pub fn read_jsonl(
    path: &Path,
    run: &str,
    mut row: impl FnMut(Sample) -> Result<(), RunError>,
) -> Result<ReadEnd, RunError> {
    let file = input::open(path).map_err(|source| RunError::io("open", path, source))?;
    let mut lines = BufReader::with_capacity(1 << 16, file);
    let mut line = Vec::new();
    let mut end = ReadEnd { rows: 0, torn: false };
    loop {
        line.clear();
        if lines
            .by_ref()
            .take(LONGEST)
            .read_until(b'\n', &mut line)
            .map_err(|source| RunError::io("read", path, source))?
            == 0
        {
            return Ok(end);
        }
        let complete = line.last() == Some(&b'\n');
        match if complete {
            parse(&line, path, run)
        } else {
            Err(Unreadable::NotASample("the line is incomplete".into()))
        } {
            Ok(sample) => row(sample)?,
            Err(Unreadable::LaterFormat(error)) => return Err(error),
            Err(Unreadable::NotASample(reason)) => {
                // Only the last line can be incomplete; any other is damaged.
                if lines.fill_buf().map_err(|source| RunError::io("read", path, source))?.is_empty() {
                    end.torn = true;
                    return Ok(end);
                }
                return Err(RunError::Damaged { path: path.to_owned(), line: end.rows + 1, reason });
            }
        }
        end.rows += 1;
    }
}

/// Error of reading a line.
enum Unreadable {
    /// Not a sample of the run; the reason.
    NotASample(String),
    LaterFormat(RunError),
}

fn parse(line: &[u8], path: &Path, run: &str) -> Result<Sample, Unreadable> {
    #[derive(serde::Deserialize)]
    struct Head {
        format: u32,
    }
    let malformed = |error: serde_json::Error| Unreadable::NotASample(error.to_string());
    let head: Head = serde_json::from_slice(line).map_err(malformed)?;
    if head.format > SAMPLE_FORMAT {
        let error = RunError::LaterFormat { path: path.to_owned(), found: head.format, known: SAMPLE_FORMAT };
        return Err(Unreadable::LaterFormat(error));
    }
    let sample: Sample = serde_json::from_slice(line).map_err(malformed)?;
    if sample.run != run {
        return Err(Unreadable::NotASample(format!("the row belongs to the run {}", sample.run)));
    }
    Ok(sample)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn sample(item: &str) -> Sample {
        Sample {
            format: SAMPLE_FORMAT,
            run: "r".into(),
            suite: "s".into(),
            item: item.into(),
            sample: 0,
            task: "t".into(),
            cluster: "c".into(),
            covariates: BTreeMap::new(),
            gold: "4\n\"".into(),
            prompt_sha256: String::new(),
            prompt_tokens: 3,
            budget: 5,
            max_tokens: 5,
            completion: None,
            score: None,
            failure: None,
        }
    }

    #[test]
    fn a_torn_last_line_is_passed_over_at_every_byte() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.jsonl");
        let mut bytes = Vec::new();
        write_jsonl(&mut bytes, &sample("a")).unwrap();
        let first = bytes.len();
        write_jsonl(&mut bytes, &sample("b")).unwrap();
        for cut in first..bytes.len() {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let mut read = Vec::new();
            let end = read_jsonl(&path, "r", |sample| {
                read.push(sample);
                Ok(())
            });
            assert_eq!(end.unwrap(), ReadEnd { rows: 1, torn: cut > first }, "cut at {cut}");
            assert_eq!(read, [sample("a")]);
        }
    }

    #[test]
    fn damage_in_the_middle_is_named_not_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.jsonl");
        let row = serde_json::to_string(&sample("a")).unwrap();
        let read = |text: String, run| {
            std::fs::write(&path, text).unwrap();
            read_jsonl(&path, run, |_| Ok(())).unwrap_err()
        };
        let error = read(format!("{row}\n{}\n{row}\n", &row[..20]), "r");
        assert!(matches!(error, RunError::Damaged { line: 2, .. }), "{error}");
        let error = read(format!("{}\n", row.replace("\"format\":1", "\"format\":99,\"new\":true")), "r");
        assert!(matches!(error, RunError::LaterFormat { found: 99, .. }), "{error}");
        let error = read(format!("{row}\n{row}\n"), "other");
        assert!(matches!(error, RunError::Damaged { line: 1, .. }), "{error}");
    }
}
