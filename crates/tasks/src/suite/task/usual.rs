//! Usual names of the columns of a file of questions, in the order in which they are looked for.
use serde_json::Value;

/// Id of a row.
pub const ID: [&str; 8] = ["@ID", "id", "ID", "uid", "query_id", "question_id", "unique_id", "instance"];
/// Story before the question, where a data set keeps them apart.
pub const BODY: [&str; 4] = ["Body", "body", "passage", "context"];
pub const QUESTION: [&str; 8] =
    ["Question", "question", "Problem", "problem", "prompt", "input", "query", "instruction"];
/// Expected answer.
pub const ANSWER: [&str; 9] =
    ["answer", "Answer", "gold", "target", "answerKey", "final_answer", "expected", "label", "output"];
/// Worked solution, where there is no answer.
pub const SOLUTION: [&str; 3] = ["solution", "Solution", "rationale"];
/// Text to train on: what only files of pairs name so. A response is looked for last, because it may be a model's beside the answer.
pub const COMPLETION: &str = "completion";
pub const RESPONSE: &str = "response";
/// Items that are not independent.
pub const CLUSTER: &str = "cluster";
/// Id of the item that this one is compared with across runs.
pub const PAIR: &str = "pair";
/// Kind of a perturbed question; [`NOT_PERTURBED`] for an original among perturbed ones. An ordinary covariate.
pub const PERTURBATION: &str = "perturbation";
/// Value of [`PERTURBATION`] for a question that was left as it was.
pub const NOT_PERTURBED: &str = "none";

/// True for a text that stands for a missing value: blank, or as R, pandas, spreadsheets, JSON and Python write it.
pub fn is_missing(text: &str) -> bool {
    let text = text.trim();
    text.eq_ignore_ascii_case("nan")
        || matches!(text, "" | "NA" | "na" | "N/A" | "n/a" | "#N/A" | "<NA>" | "null" | "NULL" | "None")
}

/// The label of a cluster: a text, a number or a truth value. None where there is none: null, lists and objects, and texts that stand
/// for a missing value.
pub fn label(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => (!is_missing(text)).then(|| text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Ends the cluster of an item without a label among others that have one, so that it is no other item's label.
const NO_LABEL: &str = " (no label)";

/// The cluster of an item without a label, where others have one.
pub fn own_cluster(item: &str) -> String {
    format!("{item}{NO_LABEL}")
}

/// True for an item without a label, where others have one.
pub fn lacks_label(cluster: &str, item: &str) -> bool {
    cluster.strip_prefix(item) == Some(NO_LABEL)
}

/// True if an item is its own cluster.
pub fn is_own_cluster(cluster: &str, item: &str) -> bool {
    cluster == item || lacks_label(cluster, item)
}

/// Returns the question as it is asked: story and question joined by a space, without white space around them.
pub fn asked(body: Option<&str>, question: &str) -> String {
    match body.map(str::trim).filter(|body| !body.is_empty()) {
        Some(body) => format!("{body} {}", question.trim()),
        None => question.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_no_label() {
        use serde_json::json;
        for missing in [json!(null), json!([1]), json!({"a": 1})] {
            assert_eq!(label(&missing), None, "{missing}");
        }
        for missing in ["", " \t\u{a0}", "NaN", "nan", "NA", " NA ", "N/A", "#N/A", "<NA>", "null", "NULL", "None"] {
            assert_eq!(label(&json!(missing)), None, "{missing}");
        }
        for (value, name) in [
            (json!("a b"), "a b"),
            (json!(0), "0"),
            (json!(false), "false"),
            (json!("none"), "none"),
            (json!("Na"), "Na"),
        ] {
            assert_eq!(label(&value).as_deref(), Some(name));
        }
        let own = own_cluster("7");
        assert!(own != "7" && is_own_cluster(&own, "7") && lacks_label(&own, "7") && is_own_cluster("7", "7"));
        assert!(!lacks_label("7", "7") && !is_own_cluster(&own, "8"));
    }

    #[test]
    fn story_and_question_are_asked_together() {
        assert_eq!(asked(Some("Ann has 3 cats. "), "How many?\n"), "Ann has 3 cats. How many?");
        assert_eq!(asked(Some(" "), " How many?"), "How many?");
        assert_eq!(asked(None, "How many?"), "How many?");
    }
}
