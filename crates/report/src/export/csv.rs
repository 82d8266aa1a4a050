//! Comma-separated values (RFC 4180): one row per sample, a header line, UTF-8.
use std::io::Write;

use super::{Cell, Columns};
use earnest_results::{Rows, RowsError, formula};

/// Form of texts in CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CsvTexts {
    /// Texts that a spreadsheet would compute get a quote before them ([`formula`]).
    #[default]
    Neutral,
    /// Texts as they are.
    Raw,
}

/// Writes the rows and returns their number. Missing values are empty fields, empty texts quoted ones (`""`); token ids are
/// separated by spaces; booleans are `true` and `false`.
pub fn write_csv(rows: &dyn Rows, texts: CsvTexts, out: &mut dyn Write) -> Result<usize, RowsError> {
    let (columns, _) = Columns::survey(rows)?;
    let mut line = String::new();
    for (index, column) in columns.0.iter().enumerate() {
        separate(&mut line, index);
        quote(&mut line, &column.name);
    }
    put(out, &mut line)?;
    let mut count = 0;
    rows.walk_asked(&mut |row| {
        for (index, column) in columns.0.iter().enumerate() {
            separate(&mut line, index);
            match column.cell(row) {
                Cell::Empty => {}
                Cell::Truth(value) => line.push_str(if value { "true" } else { "false" }),
                Cell::Integer(value) => line.push_str(&value.to_string()),
                // Not in JSON either, so that stored rows never have them.
                Cell::Number(value) if !value.is_finite() => {}
                Cell::Number(value) => line.push_str(&value.to_string()),
                Cell::Text(text) => match texts {
                    CsvTexts::Neutral => quote(&mut line, &formula::neutral(&text)),
                    CsvTexts::Raw => quote(&mut line, &text),
                },
                Cell::Ids(ids) => {
                    let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
                    line.push_str(&ids.join(" "));
                }
            }
        }
        count += 1;
        put(out, &mut line)
    })?;
    Ok(count)
}

fn separate(line: &mut String, index: usize) {
    if index > 0 {
        line.push(',');
    }
}

/// Writes a field, quoted if it contains separators, quotes or line ends, is empty, or begins or ends with whitespace.
fn quote(line: &mut String, text: &str) {
    let needed = text.is_empty()
        || text.contains([',', '"', '\n', '\r'])
        || text.starts_with(char::is_whitespace)
        || text.ends_with(char::is_whitespace);
    if needed {
        line.push('"');
        line.push_str(&text.replace('"', "\"\""));
        line.push('"');
    } else {
        line.push_str(text);
    }
}

fn put(out: &mut dyn Write, line: &mut String) -> Result<(), RowsError> {
    line.push_str("\r\n");
    let written = out.write_all(line.as_bytes());
    line.clear();
    written.map_err(|error| RowsError::Format { format: "CSV", reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::columns::tests::sample;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let rows = vec![sample(2, Some("a,\"b\"\r\nc")), sample(1, Some("")), sample(4, None)];
        let mut out = Vec::new();
        assert_eq!(write_csv(&rows, CsvTexts::Neutral, &mut out).unwrap(), 3);
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("run,suite,item,sample,task,"));
        assert!(text.contains(",\"a,\"\"b\"\"\r\nc\",2 2,2,eos,"));
        assert!(text.contains(",\"\",1,1,eos,"), "{text}");
        assert!(text.contains("beyond_context,\"no, \"\"room\"\"\""));
    }

    #[test]
    fn formulas_are_texts_unless_they_are_asked_for() {
        let rows = vec![sample(2, Some("=HYPERLINK(\"http://x\")")), sample(1, Some("-12.5"))];
        let written = |texts| {
            let mut out = Vec::new();
            write_csv(&rows, texts, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let (neutral, raw) = (written(CsvTexts::Neutral), written(CsvTexts::Raw));
        assert!(neutral.contains(",\"'=HYPERLINK(\"\"http://x\"\")\",") && neutral.contains(",-12.5,"), "{neutral}");
        assert!(raw.contains(",\"=HYPERLINK(\"\"http://x\"\")\","), "{raw}");
    }
}
