//! Usual names of the columns of a file of questions, in the order in which they are looked for.

/// Id of a row.
pub const ID: [&str; 8] = ["@ID", "id", "ID", "uid", "query_id", "question_id", "unique_id", "instance"];
/// Story before the question, where a data set keeps them apart.
pub const BODY: [&str; 4] = ["Body", "body", "passage", "context"];
/// Question.
pub const QUESTION: [&str; 7] = ["Question", "question", "Problem", "problem", "prompt", "input", "query"];
/// Items that are not independent.
pub const CLUSTER: &str = "cluster";
/// Id of the item that this one is compared with across runs.
pub const PAIR: &str = "pair";
/// Kind of a perturbed question; [`NOT_PERTURBED`] for an original among perturbed ones. An ordinary covariate.
pub const PERTURBATION: &str = "perturbation";
/// Value of [`PERTURBATION`] for a question that was left as it was.
pub const NOT_PERTURBED: &str = "none";

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
    fn story_and_question_are_asked_together() {
        assert_eq!(asked(Some("Ann has 3 cats. "), "How many?\n"), "Ann has 3 cats. How many?");
        assert_eq!(asked(Some(" "), " How many?"), "How many?");
        assert_eq!(asked(None, "How many?"), "How many?");
    }
}
