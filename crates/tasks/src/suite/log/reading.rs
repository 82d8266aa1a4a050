//! Scores of a tool with the scorer [`FINAL`] beside them.
use super::value;
use crate::suite::{FINAL, FailureClass, Score};

/// The scores of a tool with today's score of the completion beside them, and this deciding scorer.
pub fn beside(stored: &Score, read: &Score, chosen: Option<&str>) -> Score {
    let mut score = stored.clone();
    for (scorer, right) in read.scorers.iter() {
        score.scorers.insert(scorer, right);
        score.metrics.remove(scorer);
    }
    for (metric, value) in read.metrics.iter() {
        score.metrics.insert(metric, value);
    }
    if read.scorers.contains(FINAL) {
        score.evidence.mark.clone_from(&read.evidence.mark);
        score.evidence.rivals.clone_from(&read.evidence.rivals);
        score.evidence.readings.insert(FINAL.to_owned(), read.answer.clone());
    }
    let Some(chosen) = chosen else { return score };
    let failure = if chosen == FINAL { read.failure.clone() } else { failure(&score, chosen) };
    decide(&mut score, chosen);
    score.failure = failure;
    score
}

/// Makes a scorer the deciding one: its number decides, its answer is the answer.
pub fn decide(score: &mut Score, chosen: &str) {
    score.correct = value(score, chosen) == Some(1.0);
    score.failure = failure(score, chosen);
    if let Some(own) = score.evidence.readings.get(chosen) {
        score.answer.clone_from(own);
    }
}

/// Reason of a wrong answer: a scorer that says no more than right and wrong has no other one.
fn failure(score: &Score, chosen: &str) -> Option<FailureClass> {
    (score.scorers.get(chosen) == Some(false)).then_some(FailureClass::Wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_readings_are_kept_and_one_decides() {
        let mut stored =
            Score { scorers: [("strict", false)].into(), metrics: [("f1", 0.5)].into(), ..Score::default() };
        stored.evidence.readings.insert("strict".into(), Some("17".into()));
        stored.evidence.readings.insert("f1".into(), None);
        decide(&mut stored, "strict");
        assert_eq!((stored.answer.as_deref(), &stored.failure), (Some("17"), &Some(FailureClass::Wrong)));
        let mut read = Score::default();
        read.add_scorer(FINAL, FINAL, true, Some("18".into()));
        let same = beside(&stored, &read, Some("strict"));
        assert!(!same.correct && same.scorers[FINAL] && same.answer.as_deref() == Some("17"));
        let other = beside(&same, &read, Some(FINAL));
        assert!(other.correct && !other.scorers["strict"] && other.answer.as_deref() == Some("18"));
        assert_eq!((other.failure.as_ref(), other.metrics["f1"]), (None, 0.5));
        // A fraction is not right, and not just wrong.
        decide(&mut stored, "f1");
        assert_eq!((stored.correct, stored.failure, stored.answer), (false, None, None));
    }
}
