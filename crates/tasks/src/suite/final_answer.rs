//! The scorer `final` of every suite: the answer as [`earnest_answer::reader`] reads it, beside the suite's own scorers.
use super::{Answered, FailureClass, Item, Score};
use earnest_answer::reader::{Asked, Form, Reading, read};

/// The scorer's name.
pub const FINAL: &str = "final";

/// Metrics: 1 where the prompt's own example stands in the answer's place, 1 where numbers are inside the thinking alone, and the
/// count of other numbers that were stated as the answer.
pub const EXAMPLE_ECHOED: &str = "example_echoed";
pub const ONLY_IN_THINKING: &str = "only_in_thinking";
pub const RIVALS: &str = "rivals";

/// Longest reading that is kept beside the deciding one, in characters, and most rivals.
const LONGEST: usize = 200;
const MOST_RIVALS: usize = 5;

/// Reads a completion, thinking and all, as an answer to its item.
pub fn read_final(item: &Item, form: Form, answered: &Answered<'_>) -> Reading {
    read(&Asked { prompt: &item.segments.asked(), form }, answered.completion, answered.truncated)
}

impl Score {
    /// Adds what a scorer made of the completion. The chosen one decides; what others read goes into the evidence.
    pub fn add_scorer(&mut self, chosen: &str, scorer: &str, right: bool, read: Option<String>) {
        self.scorers.insert(scorer, right);
        if scorer == chosen {
            (self.correct, self.answer) = (right, read);
        } else {
            self.evidence.readings.insert(scorer.to_owned(), read.map(shortened));
        }
    }

    /// Adds the scorer `final` with what the reader noticed.
    pub fn add_final(&mut self, chosen: &str, right: bool, reading: &Reading) {
        self.add_scorer(chosen, FINAL, right, reading.text().map(str::to_owned));
        let mark = reading.answer.as_ref().map_or_else(|none| none.name(), |answer| answer.mark.name());
        self.evidence.mark = Some(mark.to_owned());
        self.evidence.rivals = reading.rivals.iter().take(MOST_RIVALS).cloned().map(shortened).collect();
        for (name, value) in [
            (EXAMPLE_ECHOED, f64::from(reading.example_echoed && !(right && reading.answers_example))),
            (ONLY_IN_THINKING, f64::from(reading.only_in_thinking)),
            (RIVALS, reading.rivals.len() as f64),
        ] {
            self.metrics.insert(name, value);
        }
    }

    /// The same score with another of its scorers as the deciding one; none where that scorer did not score it. The reason of a
    /// failure is known of the deciding scorer alone: by another one an answer is just wrong.
    pub fn by_scorer(&self, scorer: &str) -> Option<Score> {
        let correct = self.scorers.get(scorer)?;
        // What other scorers read is in the evidence.
        let Some(read) = self.evidence.readings.get(scorer) else {
            return (correct == self.correct).then(|| self.clone());
        };
        let failure = (!correct).then_some(FailureClass::Wrong);
        Some(Score { correct, answer: read.clone(), failure, ..self.clone() })
    }
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_answer::reader::{Answer, Mark, NoAnswer};

    fn reading(text: &str) -> Reading {
        Reading::of(Answer { text: text.to_owned(), span: 0..text.len(), mark: Mark::Bold })
    }

    #[test]
    fn the_primary_rule_decides_and_the_others_are_kept() {
        let mut score = Score::default();
        score.add_scorer(FINAL, "strict", false, Some("700".into()));
        score.add_final(FINAL, true, &reading("1287"));
        assert!(score.correct && score.answer.as_deref() == Some("1287"));
        assert_eq!(score.scorers.len(), 2);
        assert_eq!(score.evidence.readings["strict"].as_deref(), Some("700"));
        assert!(!score.evidence.readings.contains_key(FINAL));
        assert_eq!(score.evidence.mark.as_deref(), Some("bold"));
        assert_eq!((score.metrics[EXAMPLE_ECHOED], score.metrics[RIVALS]), (0.0, 0.0));
        let strict = score.by_scorer("strict").unwrap();
        assert_eq!((strict.correct, strict.failure), (false, Some(FailureClass::Wrong)));
        assert_eq!(score.by_scorer("paper"), None);
    }

    #[test]
    fn evidence_stays_small() {
        let mut score = Score::default();
        let rivals = (0..100).map(|number| number.to_string()).collect();
        score.add_final("strict", false, &Reading { rivals, ..Reading::none(NoAnswer::Rivals) });
        score.add_scorer("strict", "paper", false, Some("7".repeat(100_000)));
        assert_eq!((score.evidence.rivals.len(), score.metrics[RIVALS]), (MOST_RIVALS, 100.0));
        assert_eq!(score.evidence.readings["paper"].as_ref().unwrap().chars().count(), LONGEST + 1);
        assert_eq!(score.evidence.mark.as_deref(), Some("rivals"));
        assert_eq!(score.evidence.readings[FINAL], None);
    }
}
