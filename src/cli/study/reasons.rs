//! Reasons of failed runs, each said once.
use earnest_eval::study::Estimate;

/// Reasons that are on the screen.
#[derive(Debug, Default)]
pub struct Reasons(Vec<String>);

impl Reasons {
    /// Returns the reasons on the plan's screen.
    pub fn of(estimate: &Estimate) -> Self {
        Reasons(estimate.runs.iter().filter_map(|run| run.problem.clone()).collect())
    }

    /// A sentence on a failed run, with its reason if that is not on the screen yet.
    pub fn failed(&mut self, label: &str, reason: String) -> String {
        if self.0.contains(&reason) {
            return format!("{label} failed, for the reason above");
        }
        let sentence = format!("{label} failed: {reason}");
        self.0.push(reason);
        sentence
    }
}

/// Texts with the names that they are about: `a, b: text`, each text once, in their order.
pub fn by_text<'t>(texts: impl IntoIterator<Item = (&'t str, &'t str)>, between: &str) -> Vec<String> {
    let mut found: Vec<(Vec<&str>, &str)> = Vec::new();
    for (name, text) in texts {
        match found.iter_mut().find(|(_, other)| *other == text) {
            Some((names, _)) if names.contains(&name) => {}
            Some((names, _)) => names.push(name),
            None => found.push((vec![name], text)),
        }
    }
    found.into_iter().map(|(names, text)| format!("{}{between}{text}", names.join(", "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_said_once() {
        let mut reasons = Reasons(vec!["no tokenizer".to_owned()]);
        assert_eq!(reasons.failed("a on sums", "no tokenizer".to_owned()), "a on sums failed, for the reason above");
        assert_eq!(reasons.failed("b on sums", "damaged".to_owned()), "b on sums failed: damaged");
        assert_eq!(reasons.failed("c on sums", "damaged".to_owned()), "c on sums failed, for the reason above");
    }

    #[test]
    fn names_of_one_text_stand_before_it() {
        let texts = [("a", "down"), ("b", "damaged"), ("c", "down"), ("a", "down")];
        assert_eq!(by_text(texts, " cannot be run: "), ["a, c cannot be run: down", "b cannot be run: damaged"]);
    }
}
