//! JSON lines: the sample as stored, with its question and prompt.
use std::io::Write;

use serde::Serialize;

use earnest_results::{LogNames, Rows, RowsError, Sample};

/// A sample with question and prompt.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    sample: &'a Sample,
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<&'a LogNames>,
}

/// Writes the rows and returns their number.
pub fn write_jsonl(rows: &dyn Rows, out: &mut dyn Write) -> Result<usize, RowsError> {
    let mut count = 0;
    let log = rows.log();
    rows.walk_asked(&mut |row| {
        let failed = |reason: String| RowsError::Format { format: "JSONL", reason };
        let (sample, question, prompt) = (&row.sample, row.question(), row.prompt());
        // Flattening costs as much again as the rest of the line.
        let line = match (question, prompt, &log) {
            (None, None, None) => serde_json::to_vec(sample),
            (.., log) => serde_json::to_vec(&Line { sample, question, prompt, log: log.as_ref() }),
        };
        let line = line.map_err(|error| failed(error.to_string()))?;
        out.write_all(&line).and_then(|()| out.write_all(b"\n")).map_err(|error| failed(error.to_string()))?;
        count += 1;
        Ok(())
    })?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::columns::tests::sample;

    #[test]
    fn rows_read_back() {
        let rows = vec![sample(0, Some("a\n\u{2028}\"b")), sample(1, None)];
        let mut out = Vec::new();
        assert_eq!(write_jsonl(&rows, &mut out).unwrap(), 2);
        let text = String::from_utf8(out).unwrap();
        let back: Vec<Sample> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(back, rows);
    }
}
