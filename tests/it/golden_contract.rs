//! Contract of `golden.rs`: golden vectors with one wrong value must fail.
use std::fs;
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::golden_subjects::report::{FileReport, Outcome};
use crate::golden_subjects::{answers, arithmetic_bench, gsm};

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

#[test]
fn a_compressed_file_is_read_in_place_of_a_plain_one_and_fails_like_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join("arithmetic_bench").join(name);
    fs::create_dir(folder.path().join("arithmetic_bench")).unwrap();
    let check = || arithmetic_bench::check(folder.path()).pop().unwrap();
    let gzip = |text: &str| {
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(text.as_bytes()).unwrap();
        packed.finish().unwrap()
    };
    let packed = at("items_and_matchers.jsonl.gz");
    let good = gzip(&format!("{ITEM}\n{UNARY}\n"));
    fs::write(&packed, &good).unwrap();
    let report = check();
    assert!(report.passes() && report.total() == 2 && report.file == FILE, "{:?}", report.failures());
    let mut flipped = good.clone();
    flipped[good.len() - 6] ^= 1;
    let spoilt = gzip(&ITEM.replace("-48", "48"));
    for (what, bad) in [
        ("cut off", &good[..good.len() / 2]),
        ("of another checksum", &flipped),
        ("plain text", ITEM.as_bytes()),
        ("empty", b""),
        ("without rows", &gzip("")),
        ("with a wrong row", &spoilt),
    ] {
        fs::write(&packed, bad).unwrap();
        let report = check();
        assert!(!report.passes() && !report.is_absent() && report.file == FILE, "a file that is {what}");
    }
    // The plain file wins, over a damaged one and over a good one.
    fs::write(at("items_and_matchers.jsonl"), ITEM).unwrap();
    let report = check();
    assert!(report.passes() && report.total() == 1);
    fs::write(&packed, &good).unwrap();
    fs::write(at("items_and_matchers.jsonl"), "").unwrap();
    assert!(!check().passes());
}

/// The report on a file of the GSM subject with these rows of texts and code.
fn gsm_report(texts: &str, codes: &str) -> FileReport {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("gsm")).unwrap();
    fs::write(folder.path().join(gsm::FILE), format!(r#"{{"text": [{texts}], "code": [{codes}]}}"#)).unwrap();
    gsm::check(folder.path()).pop().unwrap()
}

#[test]
fn spoilt_extractions_fail() {
    const TEXT: &str = r#"{"response": "The answer is 3", "value": 3.0, "label": "GSM_SYMBOLIC"}"#;
    const NO_TEXT: &str = r#"{"response": "", "value": null, "label": "EMPTY_RESPONSE"}"#;
    const CODE: &str = r#"{"response": "\n    return 2**70", "extracted": "def solution():\n\n    return 2**70", "function": "solution", "value": "1180591620717411303424", "type": "int", "label": "CODE"}"#;
    const NO_CODE: &str =
        r#"{"response": "x", "extracted": "", "function": "", "value": null, "type": null, "label": "NO_FUNCTION"}"#;
    assert!(gsm_report(&format!("{TEXT},{NO_TEXT}"), &format!("{CODE},{NO_CODE}")).passes());
    assert!(!gsm_report("", CODE).passes() && !gsm_report(TEXT, "").passes());
    for (row, from, to) in [
        (TEXT, "3.0", "3.5"),
        (TEXT, "3.0", "null"),
        (TEXT, "GSM_SYMBOLIC", "LAST_NUMBER"),
        (TEXT, "GSM_SYMBOLIC", "GSM"),
        (TEXT, "\"value\": 3.0, ", ""),
        (NO_TEXT, "null", "0"),
    ] {
        assert!(row.contains(from), "{from}");
        assert!(!gsm_report(&row.replacen(from, to, 1), CODE).passes(), "{row}: {from} -> {to}");
    }
    for (row, from, to) in [
        (CODE, "303424", "303425"),
        (CODE, "\"int\"", "\"float\""),
        (CODE, "\"CODE\"", "\"NAME_ERROR\""),
        (CODE, "def solution():\\n\\n", "def solution():\\n"),
        (CODE, "\"solution\"", "\"solve\""),
        (CODE, "\"type\": \"int\", ", ""),
        (NO_CODE, "\"value\": null", "\"value\": 1"),
        (NO_CODE, "NO_FUNCTION", "FORBIDDEN_STRING"),
        (NO_CODE, "\"function\": \"\"", "\"function\": \"f\""),
    ] {
        assert!(row.contains(from), "{from}");
        assert!(!gsm_report(TEXT, &row.replacen(from, to, 1)).passes(), "{row}: {from} -> {to}");
    }
}

/// The report on a file of labelled answers.
fn answers_report(rows: &[String]) -> FileReport {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("answers")).unwrap();
    fs::write(folder.path().join(answers::FILE), rows.join("\n")).unwrap();
    answers::check(folder.path()).pop().unwrap()
}

#[test]
fn answers_pass_at_their_rates_and_fail_below() {
    let row = |label: &str| {
        format!(
            r#"{{"id": "t", "form": "integer", "prompt": "1+1=?", "completion": "The answer is 2.", "answer": {label}, "finish": "stop", "tags": []}}"#
        )
    };
    let (good, other, none) = (row("\"2\""), row("\"3\""), row("null"));
    let refused = good.replace("The answer is 2.", "I cannot say.").replace("\"2\"", "null");
    let rows = |bad: &String, wrong: usize| -> Vec<String> {
        let mut rows = vec![bad.clone(); wrong];
        rows.resize(100 - 20, good.clone());
        rows.resize(100, refused.clone());
        rows
    };
    assert!(answers_report(&rows(&other, 3)).passes());
    assert!(!answers_report(&rows(&other, 4)).passes());
    // Of 22 rows without an answer two may be read as one, of 23 three may not.
    assert!(answers_report(&rows(&none, 2)).passes());
    assert!(!answers_report(&rows(&none, 3)).passes());
    for (from, to) in [
        ("\"integer\"", "\"whole\""),
        ("\"stop\"", "\"end\""),
        ("\"2\"", "2"),
        ("\"answer\": \"2\",", ""),
        ("\"prompt\": \"1+1=?\",", ""),
        ("}", ""),
    ] {
        assert!(!answers_report(&rows(&good.replacen(from, to, 1), 1)).passes(), "{from}");
    }
    assert!(!answers_report(&[]).passes());
    let also = other.replace("\"finish\"", "\"also\": [\"2\"], \"finish\"");
    assert!(answers_report(&[also]).passes());
}
