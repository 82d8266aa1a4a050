//! A tiny suite whose items have continuations to score.
use earnest_tasks::suite::{
    Answered, FailureClass, Item, Items, Likelihoods, Score, Scored, Scoring, Segments, Summary, summarise_accuracy,
};

/// Additions with the sum and wrong answers as continuations.
pub struct Choices {
    pub items: usize,
    /// Text before every question.
    pub preamble: &'static str,
}

impl Items for Choices {
    fn iter(&self) -> Box<dyn Iterator<Item = Item> + Send + '_> {
        Box::new((0..self.items).map(|number| {
            let (a, b) = (number * 37 % 90 + 10, number * 53 % 80 + 11);
            let sum = a + b;
            let raw = format!("{}Add two numbers: {a} + {b} =", self.preamble);
            // Some end in a space, which then belongs to the continuation.
            let (raw, space) = if number % 3 == 2 { (raw + " ", "") } else { (raw, " ") };
            let continuation = |value: usize| format!("{space}{value}");
            Item {
                segments: Segments { raw: Some(raw), ..Segments::question(format!("{a}+{b}?")) },
                continuations: [sum, sum + 1, sum * 1000 + 7, a].map(continuation).to_vec(),
                ..Item::plain(format!("choices/{number}"), "choice", "", sum.to_string())
            }
        }))
    }
    fn len(&self) -> usize {
        self.items
    }
}

impl Scoring for Choices {
    fn name(&self) -> &str {
        "choices"
    }
    fn version(&self) -> &str {
        "1"
    }
    fn options(&self) -> serde_json::Value {
        serde_json::json!({ "items": self.items })
    }
    fn score(&self, item: &Item, answered: &Answered<'_>) -> Score {
        let likelihoods = Likelihoods::parse(answered.completion);
        let best = likelihoods.as_ref().and_then(|all| all.best(|score| score.logprob));
        let answer = best.and_then(|place| Some(item.continuations.get(place)?.trim().to_owned()));
        let correct = answer.as_deref() == Some(&item.gold);
        Score {
            correct,
            answer,
            scorers: [("likelihood", correct)].into(),
            failure: (!correct).then_some(FailureClass::Wrong),
            ..Score::default()
        }
    }
    fn summarise(&self, samples: &[Scored<'_>]) -> Summary {
        summarise_accuracy(samples)
    }
}
