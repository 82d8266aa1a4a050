//! Spoilt golden vectors must fail: what `golden.rs` promises, tried on rows with one thing wrong.
use std::fs;
use std::path::Path;

#[path = "golden_subjects/arithmetic_bench.rs"]
mod arithmetic_bench;
#[path = "golden_subjects/report.rs"]
#[allow(dead_code, reason = "shared with the subjects, each of which needs another part of it")]
mod report;

use report::{FileReport, Outcome};

const FILE: &str = "arithmetic_bench/items_and_matchers.jsonl";

const ITEM: &str = r#"{"kind":"item","task":"sub","length":2,"a":"47","b":"95","prompt":"47-95=?","answer":"-48"}"#;
const UNARY: &str = r#"{"kind":"item","task":"rev","length":3,"a":"210","b":null,"prompt":"Reverse the following number: 210","answer":"012"}"#;
const MATCH: &str =
    r#"{"kind":"match","answer":"5","response":"-5","compat_substring":true,"boundary":false,"last_number":false}"#;

/// The report on a file with this content.
fn report(content: impl AsRef<[u8]>) -> FileReport {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("arithmetic_bench")).unwrap();
    fs::write(folder.path().join(FILE), content).unwrap();
    arithmetic_bench::check(folder.path()).pop().unwrap()
}

#[test]
fn good_rows_pass() {
    for content in [format!("{ITEM}\n{UNARY}\n{MATCH}\n"), format!("{ITEM}\n{UNARY}\n{MATCH}")] {
        let report = report(content);
        assert!(report.passes() && matches!(report.outcome, Outcome::Checked { total: 3, .. }));
    }
}

#[test]
fn one_spoilt_row_fails_and_is_counted() {
    for (row, from, to) in [
        (ITEM, "-48", "48"),
        (ITEM, "-48", "-49"),
        (ITEM, "47-95=?", "47-95 =?"),
        (ITEM, "\"a\":\"47\"", "\"a\":\"46\""),
        (ITEM, "\"a\":\"47\"", "\"a\":47"),
        (ITEM, "\"b\":\"95\"", "\"b\":null"),
        (ITEM, "\"b\":\"95\",", ""),
        (ITEM, "\"length\":2", "\"length\":3"),
        (ITEM, "\"length\":2", "\"length\":\"2\""),
        (ITEM, "\"length\":2,", ""),
        (ITEM, "\"task\":\"sub\"", "\"task\":\"add\""),
        (ITEM, "\"task\":\"sub\"", "\"task\":\"power\""),
        (ITEM, "\"task\":\"sub\",", ""),
        (ITEM, "\"kind\":\"item\"", "\"kind\":\"Item\""),
        (ITEM, "\"kind\":\"item\",", ""),
        (ITEM, ",\"answer\":\"-48\"", ""),
        (ITEM, "\"-48\"}", "\"-48\""),
        (ITEM, "\"-48\"}", "\"-48\",\"note\":1}"),
        (ITEM, ITEM, "[]"),
        (ITEM, ITEM, ""),
        (UNARY, "\"b\":null", "\"b\":\"1\""),
        (UNARY, "\"b\":null,", ""),
        (UNARY, "\"012\"", "\"12\""),
        (MATCH, "\"boundary\":false", "\"boundary\":true"),
        (MATCH, "\"boundary\":false", "\"boundary\":null"),
        (MATCH, "\"boundary\":false", "\"boundary\":0"),
        (MATCH, ",\"last_number\":false", ""),
        (MATCH, "\"answer\":\"5\"", "\"answer\":\"6\""),
        (MATCH, "\"answer\":\"5\"", "\"answer\":\"\""),
        (MATCH, "\"response\":\"-5\",", ""),
    ] {
        assert!(row.contains(from), "{from}");
        let spoilt = row.replacen(from, to, 1);
        let report = report(format!("{UNARY}\n{spoilt}\n{MATCH}\n"));
        assert!(!report.passes(), "{spoilt}");
        let Outcome::Checked { total: 3, failures } = report.outcome else { panic!("{spoilt}: three rows") };
        assert_eq!(failures.len(), 1, "{spoilt}: {failures:?}");
    }
}

#[test]
fn an_empty_or_unreadable_file_fails_and_a_missing_one_does_not() {
    assert!(!report("").passes());
    assert!(!report(b"\xff\xfe").passes());
    assert!(!report("\n").passes());
    let nowhere = arithmetic_bench::check(Path::new("no/such/folder")).pop().unwrap();
    assert!(nowhere.passes() && matches!(nowhere.outcome, Outcome::Absent));
    assert_eq!(nowhere.file, FILE);
}
