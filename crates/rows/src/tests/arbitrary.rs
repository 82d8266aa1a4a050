use proptest::prelude::*;
use serde_json::Map;

use super::super::json::tests::any_value;
use super::*;

const NAMES: [&str; 9] =
    ["q.jsonl", "q.json", "q.csv", "q.tsv", "q.parquet", "q.jsonl.gz", "q.json.gz", "q.csv.gz", "q.parquet.gz"];

/// Reads every row of what can be read at all.
fn walk(source: &RowSource) {
    if let Ok(rows) = super::super::read(source) {
        for number in 0..rows.len() {
            rows.row(number).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), skip in any::<bool>()) {
        let folder = Folder::new();
        for name in NAMES {
            let content = if name.ends_with(".gz") { gzip(&bytes) } else { bytes.clone() };
            walk(&RowSource { skip_bad_rows: skip, ..folder.file(name, content) });
        }
    }

    #[test]
    fn any_punctuation_is_read_or_refused(text in "[\\[\\]{}\",:\\\\\n\r\t a1é]{0,60}") {
        let folder = Folder::new();
        for name in &NAMES[..4] {
            walk(&skipping(folder.file(name, &text)));
        }
    }

    #[test]
    fn objects_read_back_equal(
        rows in prop::collection::vec(prop::collection::btree_map(any::<String>(), any_value(), 0..4), 1..5),
    ) {
        let rows: Vec<Value> = rows.into_iter().map(|row| Value::Object(row.into_iter().collect::<Map<_, _>>())).collect();
        let folder = Folder::new();
        let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
        prop_assert_eq!(&values(&folder.file("q.jsonl", &lines)), &rows);
        prop_assert_eq!(&values(&folder.file("q.jsonl.gz", gzip(lines.as_bytes()))), &rows);
        let array = serde_json::to_string_pretty(&rows).unwrap();
        prop_assert_eq!(&values(&folder.file("q.json", array)), &rows);
    }

    #[test]
    fn cells_read_back_equal(cells in prop::collection::vec(prop::array::uniform2(any::<String>()), 1..6)) {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(["q", "a"]).unwrap();
        cells.iter().for_each(|row| writer.write_record(row).unwrap());
        let folder = Folder::new();
        let source = folder.file("q.csv", writer.into_inner().unwrap());
        let found: Vec<[String; 2]> = all(&*read(&source))
            .iter()
            .map(|row| ["q", "a"].map(|name| row.text(name).unwrap().into_owned()))
            .collect();
        prop_assert_eq!(found, cells);
    }
}
