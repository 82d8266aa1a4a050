//! The example of docs/adding-a-suite.md: a small suite through the public interface, then its tests.
use earnest_answer::reader::Form;
use earnest_tasks::suite::registry::{BuiltIn, Card, Channel, Choice, Host, OptionError, OptionSpec, OptionValues};
use earnest_tasks::suite::{
    Answered, FINAL, Item, Items, Score, Scored, Scoring, Suite, Summary, score_final, summarise_accuracy,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

const VERSION: &str = "1.0";

/// Options that determine the items.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Options {
    largest: u64,
    seed: u64,
}

/// Squares of integers, in an order that depends on the seed.
struct Squares(Options);

impl Items for Squares {
    fn iter(&self) -> Box<dyn Iterator<Item = Item> + Send + '_> {
        let Options { largest, seed } = self.0;
        Box::new((0..largest).map(move |place| {
            let n = (place + seed % largest) % largest + 1;
            let question = format!("What is {n} squared? Answer with the number.");
            Item::plain(format!("square/{n}"), "square", question, (n * n).to_string())
        }))
    }

    fn len(&self) -> usize {
        self.0.largest as usize
    }
}

impl Scoring for Squares {
    fn name(&self) -> &'static str {
        "squares"
    }

    fn version(&self) -> &'static str {
        VERSION
    }

    fn options(&self) -> Value {
        serde_json::json!(self.0)
    }

    fn score(&self, item: &Item, answered: &Answered<'_>) -> Score {
        score_final(item, Form::Integer, answered)
    }

    fn chosen(&self) -> Vec<&'static str> {
        vec![FINAL]
    }

    fn summarise(&self, samples: &[Scored<'_>]) -> Summary {
        summarise_accuracy(samples)
    }
}

/// Registration of the suite.
struct Registration;

impl BuiltIn for Registration {
    fn card(&self) -> Card {
        const OPTIONS: [OptionSpec; 2] =
            [OptionSpec::integer("largest", "N", "Ask up to this number [default: 99]"), OptionSpec::SEED];
        let card = Card::new("squares", VERSION, "Squares", "an example", "Squares of the numbers from 1 to N");
        Card { options: &OPTIONS, ..card }
    }

    fn tasks(&self) -> Vec<String> {
        vec!["square".to_owned()]
    }

    fn items(&self) -> Option<usize> {
        Some(99)
    }

    fn configure(&self, values: &OptionValues, _: &dyn Host) -> Result<Box<dyn Choice>, OptionError> {
        let largest = values.parsed("largest")?.unwrap_or(99);
        if !(1..=1_000_000).contains(&largest) {
            return Err(OptionError::usage(format!("the setting `largest = {largest}` is not in 1 to 1000000")));
        }
        Ok(Box::new(Chosen(Options { largest, seed: values.seed })))
    }

    fn chosen(&self, _: &Value) -> Vec<String> {
        vec![FINAL.to_owned()]
    }

    fn stored(&self, options: &Value, _: &dyn Host) -> Result<Suite, OptionError> {
        let options = serde_json::from_value(options.clone()).map_err(OptionError::unreadable)?;
        Ok(Suite::new(Squares(options)))
    }
}

/// Checked options. Items are the same for chat and raw prompts.
struct Chosen(Options);

impl Choice for Chosen {
    fn suite(&self, _: Channel) -> Result<Suite, OptionError> {
        Ok(Suite::new(Squares(self.0.clone())))
    }
}

// Tests. What is above is the suite.
use earnest_tasks::suite::registry::{Mode, NoHost, conforms};

fn configured(values: &OptionValues) -> Suite {
    Registration.configure(values, &NoHost).unwrap().suite(Channel::local(Mode::Raw)).unwrap()
}

#[test]
fn it_conforms() {
    conforms(&Registration).unwrap();
}

#[test]
fn options_choose_items_and_impossible_ones_are_named() {
    let suite = configured(&OptionValues::new(3, Vec::new()).with("largest", "5"));
    let items: Vec<String> = suite.items.iter().map(|item| item.id).collect();
    assert_eq!(items, ["square/4", "square/5", "square/1", "square/2", "square/3"]);
    let refused = Registration.configure(&OptionValues::default().with("largest", "0"), &NoHost);
    assert_eq!(refused.err().unwrap().message, "the setting `largest = 0` is not in 1 to 1000000");
    let unreadable = Registration.configure(&OptionValues::default().with("largest", "many"), &NoHost);
    assert!(unreadable.err().unwrap().message.starts_with("setting `largest = many`: "));
}

#[test]
fn answers_are_scored_and_summarised() {
    let suite = configured(&OptionValues::default());
    let items: Vec<Item> = suite.items.iter().take(3).collect();
    let said = ["It is **1**.", "I think the answer is 5.", "I do not know."];
    let scores: Vec<Score> = items
        .iter()
        .zip(said)
        .map(|(item, completion)| suite.score(item, &Answered { completion, truncated: false }))
        .collect();
    assert_eq!(scores.iter().map(|score| score.correct).collect::<Vec<_>>(), [true, false, false]);
    let scored: Vec<Scored<'_>> =
        items.iter().zip(&scores).map(|(item, score)| Scored { item, score, tokens: 1, truncated: false }).collect();
    let summary = suite.scoring.summarise(&scored);
    let rows: Vec<(&str, usize)> = summary.rows.iter().map(|row| (row.name.as_str(), row.n)).collect();
    assert_eq!(rows, [("square", 3), ("all", 3)]);
    let (column, accuracy) = &summary.rows[0].values[0];
    assert_eq!((column.as_str(), accuracy.estimate), ("accuracy", 1.0 / 3.0));
    assert!(accuracy.low < accuracy.estimate && accuracy.estimate < accuracy.high);
}
