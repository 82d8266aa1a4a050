use std::time::{Duration, SystemTime};

use serde_json::json;

use super::*;

#[test]
fn json_lines_skip_blank_lines_a_mark_and_carriage_returns() {
    let folder = Folder::new();
    let text =
        "\u{feff}\r\n{\"question\": \"1 + 1?\", \"answer\": 2}\r\n\r\n  \n {\"question\": \"ä\"}\n{\"b\": [1, null]}";
    let source = folder.file("q.jsonl", text);
    let rows = read(&source);
    assert_eq!(numbers(&*rows), ["line 2", "line 5", "line 6"]);
    let expected = [json!({"question": "1 + 1?", "answer": 2}), json!({"question": "ä"}), json!({"b": [1, null]})];
    assert_eq!(values(&source), expected);
    assert_eq!(rows.skipped(), (0, &[][..]));
    let [file] = rows.files() else { panic!("one file") };
    assert_eq!(file.rows, 3);
    assert!(file.path.is_absolute() && file.path.ends_with("q.jsonl"));
    assert_eq!(file.sha256, earnest_digest::hex(&earnest_digest::sha256(text.as_bytes())));
    let error = rows.row(3).unwrap_err().to_string();
    assert_eq!(error, "there is no row 3; there are 3");
    // The same, compressed: as members one after the other, too.
    let members = [gzip(&text.as_bytes()[..30]), gzip(&text.as_bytes()[30..])].concat();
    let source = folder.file("q.jsonl.gz", &members);
    assert_eq!(values(&source), expected);
    let rows = read(&source);
    assert_eq!(numbers(&*rows), ["line 2", "line 5", "line 6"]);
    assert_eq!(rows.files()[0].sha256, earnest_digest::hex(&earnest_digest::sha256(&members)));
}

#[test]
fn a_json_array_is_recognised_by_its_bracket() {
    let folder = Folder::new();
    let text = "\u{feff} [\n {\"a\": \"x, ]}\\\"\\\\\",\r\n  \"b\": [1, {\"c\": 2}]},\n{\"a\":1.50} , {}]\n";
    for name in ["q.json", "q.jsonl", "q.JSON"] {
        let source = folder.file(name, text);
        assert_eq!(values(&source), [json!({"a": "x, ]}\"\\", "b": [1, {"c": 2}]}), json!({"a": 1.5}), json!({})]);
        let rows = read(&source);
        assert_eq!(numbers(&*rows), ["row 1", "row 2", "row 3"]);
        assert_eq!(rows.row(1).unwrap().text("a").as_deref(), Some("1.50"));
        assert_eq!(rows.files()[0].sha256, earnest_digest::hex(&earnest_digest::sha256(text.as_bytes())));
    }
    assert_eq!(values(&folder.file("q.json.gz", gzip(text.as_bytes()))).len(), 3);
    // And JSON lines under the name of an array.
    assert_eq!(values(&folder.file("lines.json", "{\"a\": 1}\n{\"a\": 2}\n")), [json!({"a": 1}), json!({"a": 2})]);
}

#[test]
fn cells_are_texts_that_may_be_quoted() {
    let folder = Folder::new();
    let text = "\u{feff}question, answer ,note\r\n\r\n\"1, \"\"2\"\"\r\nor 3?\",1.50,\r\n5\" pipe,NaN,\"\"\nlast,-7,ü";
    let source = folder.file("q.csv", text);
    let expected = [
        json!({"question": "1, \"2\"\r\nor 3?", "answer": "1.50", "note": ""}),
        json!({"question": "5\" pipe", "answer": "NaN", "note": ""}),
        json!({"question": "last", "answer": "-7", "note": "ü"}),
    ];
    assert_eq!(values(&source), expected);
    // A row's place is the line in which it begins.
    assert_eq!(numbers(&*read(&source)), ["line 3", "line 5", "line 6"]);
    assert_eq!(values(&folder.file("q.csv.gz", gzip(text.as_bytes()))), expected);
    let tabs = "q\ta\nx, y\t\"1\t2\"\n";
    assert_eq!(values(&folder.file("q.tsv", tabs)), [json!({"q": "x, y", "a": "1\t2"})]);
    // The row numbers that pandas writes have no name; choices may have numbers as names.
    assert_eq!(values(&folder.file("p.csv", ",q,0,1\n0,x,y,z\n")), [json!({"q": "x", "0": "y", "1": "z"})]);
}

#[test]
fn several_files_follow_each_other() {
    let folder = Folder::new();
    folder.file("b.jsonl", "{\"a\": 3}\n");
    folder.file("a.jsonl", "{\"a\": 1}\n\n{\"a\": 2}\n");
    folder.file("c.csv", "a\n4\n5\n");
    folder.file("bad.txt", "{\"a\": }\n");
    let source = source(&[&folder.path("?.jsonl"), &folder.path("c.csv")]);
    let rows = read(&source);
    let found: Vec<String> = all(&*rows).iter().map(|row| row.text("a").unwrap().into_owned()).collect();
    assert_eq!(found, ["1", "2", "3", "4", "5"]);
    assert_eq!(rows.files().iter().map(|file| file.rows).collect::<Vec<_>>(), [2, 1, 2]);
    assert!(rows.row(1).unwrap().place.ends_with("a.jsonl, line 3"));
    assert!(rows.row(3).unwrap().place.ends_with("c.csv, line 2"));
    // A file whose rows are all skipped stands between two others.
    let paths = ["a.jsonl", "bad.txt", "b.jsonl"].map(|name| folder.path(name));
    let source =
        RowSource { paths: paths.to_vec(), format: Some("jsonl".into()), skip_bad_rows: true, ..RowSource::default() };
    let rows = read(&source);
    assert_eq!((rows.len(), rows.skipped().0), (3, 1));
    assert!(rows.row(2).unwrap().place.ends_with("b.jsonl, line 1"));
}

#[test]
fn a_given_format_counts_more_than_the_name() {
    let folder = Folder::new();
    let plain = folder.file("q.txt", "a\tb\n1\t2\n");
    let source = RowSource { format: Some("TSV".into()), ..plain };
    assert_eq!(values(&source), [json!({"a": "1", "b": "2"})]);
    let packed = folder.file("q.data.gz", gzip(b"a,b\n1,2\n"));
    let source = RowSource { format: Some("csv".into()), ..packed };
    assert_eq!(values(&source), [json!({"a": "1", "b": "2"})]);
}

#[test]
fn rows_are_read_by_several_threads() {
    let folder = Folder::new();
    let lines: String = (0..500).map(|number| format!("{{\"n\": {number}}}\n")).collect();
    for (name, content) in [("q.jsonl", lines.clone().into_bytes()), ("q.jsonl.gz", gzip(lines.as_bytes()))] {
        let rows = read(&folder.file(name, content));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let rows = &rows;
                scope.spawn(move || {
                    for number in (thread..rows.len()).rev() {
                        assert_eq!(rows.row(number).unwrap().values["n"], number);
                    }
                });
            }
        });
    }
}

#[test]
fn a_file_that_is_changed_later_is_noticed() {
    let folder = Folder::new();
    let source = folder.file("q.jsonl", "{\"a\": 1}\n{\"a\": 2}\n");
    let rows = read(&source);
    assert_eq!(rows.row(1).unwrap().values["a"], 2);
    let changed = |rows: &dyn Rows| rows.row(1).unwrap_err().to_string().contains("was changed");
    let file = std::fs::File::options().append(true).open(folder.path("q.jsonl")).unwrap();
    // The same length, another time; then another length.
    file.set_modified(SystemTime::now() + Duration::from_secs(60)).unwrap();
    assert!(changed(&*rows));
    let rows = read(&source);
    (&file).write_all(b"\n").unwrap();
    assert!(changed(&*rows));
    // A new file under the same name does not touch the one that is open.
    let rows = read(&source);
    folder.file("new", "{\"a\": 5}\n{\"a\": 6}\n");
    std::fs::rename(folder.path("new"), folder.path("q.jsonl")).unwrap();
    assert_eq!(rows.row(1).unwrap().values["a"], 2);
}
