use super::*;

/// Message and help for a file with this content.
fn refused(name: &str, content: impl AsRef<[u8]>) -> (String, String) {
    let folder = Folder::new();
    let source = folder.file(name, content);
    match super::super::read(&source) {
        Ok(rows) => panic!("{name} has {} rows", rows.len()),
        Err(error) => folder.said(&error),
    }
}

/// The same where bad rows are skipped.
fn refused_skipping(name: &str, content: impl AsRef<[u8]>) -> (String, String) {
    let folder = Folder::new();
    let source = skipping(folder.file(name, content));
    folder.said(&super::super::read(&source).map(|rows| rows.len()).unwrap_err())
}

#[track_caller]
fn says(found: &(String, String), message: &str, help: &str) {
    assert!(found.0.contains(message) && found.1.contains(help), "{found:?}");
}

#[test]
fn bad_rows_of_json_lines_are_named_with_line_and_character() {
    for (line, said) in [
        ("{\"a\": 1, \"b\" 2}", "character 14: not JSON: expected `:`"),
        ("{\"ä\": x}", "character 7: not JSON: expected value"),
        ("  {\"a\": 1, \"a\": 2}", "the key \"a\" stands twice"),
        ("{\"a\": 1e999}", "the number is beyond those of 64 bits; write it in quotes"),
        ("[1, 2]", "character 1: the row is not a JSON object"),
        ("7", "character 1: the row is not a JSON object"),
        ("oops", "character 1: not JSON: expected value"),
        ("{\"a\": \"b\0c\"}", "character 9: there is a zero byte in it"),
        ("{\"a\": \"b", "the row ends inside a text"),
        ("{\"a\": 1} {\"a\": 2}", "character 10: not JSON: trailing characters"),
    ] {
        let found = refused("q.jsonl", format!("{{\"a\": 0}}\n\n{line}\n{{\"a\": 3}}\n"));
        says(&found, said, "setting `skip_bad_rows`");
        assert!(found.0.starts_with("q.jsonl, line 3, character "), "{found:?}");
    }
    let latin = refused("q.jsonl", b"{\"a\": \"caf\xe9\"}\n");
    says(&latin, "q.jsonl, line 1, character 11: not UTF-8", "");
    says(&latin, "iconv -f LATIN1 -t UTF-8", "setting `skip_bad_rows`");
}

#[test]
fn bad_rows_are_counted_and_five_are_shown() {
    let folder = Folder::new();
    let lines: String =
        (1..=20).map(|n| if n % 2 == 0 { "{\n".to_owned() } else { format!("{{\"n\": {n}}}\n") }).collect();
    let source = folder.file("q.jsonl", lines);
    let (message, help) = folder.said(&super::super::read(&source).map(|rows| rows.len()).unwrap_err());
    assert!(message.starts_with("10 rows cannot be read: q.jsonl, line 2, character 1: "), "{message}");
    assert!(
        message.contains("line 10") && !message.contains("line 12") && message.ends_with("; and 5 more"),
        "{message}"
    );
    assert!(help.contains("setting `skip_bad_rows`"), "{help}");
    let rows = read(&skipping(source));
    let (count, messages) = rows.skipped();
    assert_eq!((rows.len(), count, messages.len()), (10, 10, 5));
    assert_eq!(numbers(&*rows)[..3], ["line 1", "line 3", "line 5"]);
}

#[test]
fn long_lines_are_refused_or_skipped() {
    let folder = Folder::new();
    let text = format!("{{\"a\": 1}}\n\n{{\"a\": \"{}\"}}\n{{\"a\": 2}}\n", "x".repeat(20_000_000));
    for (name, content) in [("q.jsonl", text.clone().into_bytes()), ("q.jsonl.gz", gzip(text.as_bytes()))] {
        let source = folder.file(name, content);
        let found = folder.said(&super::super::read(&source).map(|rows| rows.len()).unwrap_err());
        says(&found, ", line 3: the row is 21 MB long; rows may have up to 16 MB", "setting `skip_bad_rows`");
        let rows = read(&skipping(source));
        assert_eq!(numbers(&*rows), ["line 1", "line 4"]);
        assert_eq!(rows.row(1).unwrap().values["a"], 2);
    }
    let long = "x".repeat(17_000_000);
    let found = refused("q.json", format!("[{{\"a\": \"{long}\"}}]"));
    says(&found, "q.json, line 1: the row is 18 MB long", "setting `skip_bad_rows`");
    let found = refused("q.csv", format!("a,b\n1,2\n{long},3\n4,5\n"));
    says(&found, "q.csv, line 3: the row is 18 MB long", "setting `skip_bad_rows`");
}

#[test]
fn files_that_are_no_text_are_refused_whole() {
    let utf16 = |text: &str, mark: bool| -> Vec<u8> {
        let units = if mark { Some(0xfeff) } else { None }.into_iter().chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    };
    for (content, message, help) in [
        (utf16("{\"a\": 1}", true), "the text is UTF-16LE, not UTF-8", "iconv -f UTF-16LE -t UTF-8"),
        (utf16("{\"a\": 1}", false), "the text is UTF-16LE, not UTF-8", "iconv -f UTF-16LE -t UTF-8"),
        (vec![0xfe, 0xff, 0, b'{'], "the text is UTF-16BE, not UTF-8", "iconv -f UTF-16BE"),
        (vec![0xff, 0xfe, 0, 0, b'{', 0, 0, 0], "the text is UTF-32LE", "iconv -f UTF-32LE"),
        (b"\x7fELF\0\0\0\0".to_vec(), "zero bytes at its beginning", "JSONL"),
        (gzip(b"{\"a\": 1}\n"), "compressed with gzip", ".gz"),
        (b"PAR1....".to_vec(), "the file is Parquet", ".parquet"),
        (b"PK\x03\x04....".to_vec(), "zip", "unzip"),
        (b"\x28\xb5\x2f\xfd....".to_vec(), "zstd", "zstd -d"),
        (Vec::new(), "q.jsonl: the file is empty", ""),
        (b" \n\n".to_vec(), "q.jsonl: the file has no rows", ""),
        (b"\xef\xbb\xbf".to_vec(), "q.jsonl: the file has no rows", ""),
    ] {
        says(&refused_skipping("q.jsonl", content), message, help);
    }
    says(&refused("q.txt", "{}"), "not that of a known format: jsonl, json, csv, tsv or parquet", "format = ");
    says(&refused("q", "{}"), "not that of a known format", "");
    let folder = Folder::new();
    let source = RowSource { format: Some("xml".into()), ..folder.file("q.xml", "<a>") };
    assert!(super::super::read(&source).map(|rows| rows.len()).unwrap_err().message.contains("no format xml"));
    says(
        &refused_skipping("q.jsonl", "{\n{\n"),
        "q.jsonl: line 1 begins a JSON object over several lines",
        "one array",
    );
    says(&refused_skipping("q.jsonl", "7\n"), "no row can be read: q.jsonl, line 1, character 1: ", "");
}

#[test]
fn broken_gzip_is_refused_whole() {
    let lines: String = (0..5000).map(|n| format!("{{\"n\": {n}, \"s\": \"{}\"}}\n", n * n)).collect();
    let packed = gzip(lines.as_bytes());
    let cut = refused_skipping("q.jsonl.gz", &packed[..packed.len() / 2]);
    says(&cut, "q.jsonl.gz: the gzip data end too early", "gzip -t");
    let mut flipped = packed.clone();
    let end = flipped.len() - 6;
    flipped[end] ^= 1;
    says(&refused_skipping("q.jsonl.gz", &flipped), "q.jsonl.gz: the gzip data are broken: ", "gzip -t");
    says(
        &refused_skipping("q.jsonl.gz", "{\"a\": 1}\n"),
        "q.jsonl.gz: the file is not compressed with gzip",
        "without .gz",
    );
    says(
        &refused_skipping("q.jsonl.gz", "\x1f{\"a\": 1, \"b\": 2}\n"),
        "the gzip data are broken: invalid gzip header",
        "",
    );
    says(&refused_skipping("q.jsonl.gz", ""), "q.jsonl.gz: the file is empty", "");
    says(&refused_skipping("q.csv.gz", &packed[..packed.len() / 2]), "end too early", "");
    says(&refused_skipping("q.json.gz", gzip(b"")), "q.json.gz: the file is empty", "");
}

#[test]
fn arrays_that_are_not_closed_or_separated_are_refused_whole() {
    for (text, said) in [
        ("[{\"a\": 1}, {\"a\": 2", "the file ends inside row 2, which begins in line 1, character 12"),
        ("[{\"a\": 1},\n", "the array ends too early, after 1 rows"),
        ("[", "the array ends too early, after 0 rows"),
        ("[{\"a\": 1},\n]", "line 2, character 1: a row is missing before `]`"),
        ("[{\"a\": 1},, {}]", "line 1, character 11: a row is missing before `,`"),
        ("[{\"a\": 1}]\n [", "line 2, character 2: there is more after the end"),
        ("[{\"a\": \"ä}\n]", "line 1, character 11: a text has no closing quote"),
        ("[]", "the file has no rows"),
    ] {
        let found = refused_skipping("q.json", text);
        says(&found, said, "");
        assert!(found.0.starts_with("q.json: "), "{found:?}");
    }
    // Rows that can be told apart are bad rows, with the line and character of the file.
    let text = "[{\"a\": 1},\n  {\"ü\": 1 2},\n  {\"b\":\n   \"\\x\"}, 5]";
    let found = refused("q.json", text);
    says(&found, "3 rows cannot be read: q.json, line 2, character 11: not JSON: ", "setting `skip_bad_rows`");
    says(
        &found,
        "; q.json, line 4, character 6: not JSON: invalid escape; q.json, line 4, character 11: the row is not",
        "",
    );
    let folder = Folder::new();
    let rows = read(&skipping(folder.file("q.json", text)));
    assert_eq!((rows.len(), rows.skipped().0), (1, 3));
}

#[test]
fn tables_with_wrong_rows_or_names_are_refused() {
    let rows = "q,a\n1,2\n\"x\ny\",3,4\n5\n\"6\" 7,8\n\"é\ncaf\u{e9}\",9\n";
    let latin: Vec<u8> =
        rows.replace("caf\u{e9}", "caf#").bytes().map(|byte| if byte == b'#' { 0xe9 } else { byte }).collect();
    let found = refused("q.csv", latin);
    says(
        &found,
        "4 rows cannot be read: q.csv, line 3: the row has 3 cells, but the first line names 2 columns",
        "setting `skip_bad_rows`",
    );
    says(&found, "; q.csv, line 5: the row has 1 cell, but", "");
    says(&found, "; q.csv, line 6, character 4: text after a closing quote", "");
    says(&found, "; q.csv, line 8, character 4: not UTF-8", "");
    let folder = Folder::new();
    let kept = read(&skipping(folder.file("q.csv", "q,a\n1,2\n3\n4,5\n")));
    assert_eq!((kept.len(), kept.skipped().0, kept.row(1).unwrap().place.ends_with("line 4")), (2, 1, true));
    for (name, text, message, help) in [
        ("q.csv", "q,a\n1,\"2\n3,4\n", "q.csv: line 2, character 3: the quote that opens here is not closed", "twice"),
        ("q.csv", "What is 2+2?,4\nWhat is 3+3?,6\n", "line 1: `4` is no name of a column", "question,answer"),
        ("q.csv", "1.5,2.5\n1,2\n", "`1.5` is no name of a column", "first line"),
        ("q.csv", "q,a,q\n1,2,3\n", "line 1: two columns have the name `q`", ""),
        ("q.csv", "q,,a\n1,2,3\n", "line 1: column 2 has no name", ""),
        ("q.csv", "q;a\n1;2\n", "separated by semicolons", ".csv"),
        ("q.csv", "q\ta\n1\t2\n", "separated by tabs", "tsv"),
        ("q.tsv", "q,a\n1,2\n", "separated by commas", "csv"),
        ("q.csv", "q,a\n", "q.csv: the file has no rows", ""),
        ("q.csv", "\n\n", "q.csv: the file has no rows", ""),
        ("q.csv", "\"q\"x,a\n1,2\n", "line 1, character 4: text after a closing quote", ""),
    ] {
        says(&refused_skipping(name, text), message, help);
    }
    says(&refused_skipping("q.csv", b"q,caf\xe9\n1,2\n"), "line 1, character 6: not UTF-8", "");
}

#[test]
fn missing_files_are_answered_with_those_there_are() {
    let folder = Folder::new();
    folder.file("questions.jsonl", "{}");
    let said = |name: &str| {
        folder.said(&super::super::read(&source(&[&folder.path(name)])).map(|rows| rows.len()).unwrap_err())
    };
    says(&said("question.jsonl"), "there is no file question.jsonl", "did you mean questions.jsonl?");
    says(&said("*.csv"), "no file matches *.csv", "has questions.jsonl");
    says(&said(""), "is a folder", "*.jsonl");
}
