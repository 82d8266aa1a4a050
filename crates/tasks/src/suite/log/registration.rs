//! Suite of a stored log.
use serde::Deserialize;
use serde_json::Value;

use super::{STORED_KEY, Tally};
use crate::suite::registry::{BuiltIn, Card, Choice, Host, OptionError, OptionValues};
use crate::suite::task::read_again;
use crate::suite::{Answered, FINAL, Item, Items, Score, Scored, Scoring, Suite, Summary};

/// Registration of stored logs. They are found by [`STORED_KEY`]; there is nothing to run, so it is in no list.
pub struct Registration;

impl BuiltIn for Registration {
    fn card(&self) -> Card {
        Card::new("log", "", "Logs", "another tool", "logs of other evaluation tools")
    }

    fn tasks(&self) -> Vec<String> {
        Vec::new()
    }

    fn items(&self) -> Option<usize> {
        None
    }

    fn configure(&self, _: &OptionValues, _: &dyn Host) -> Result<Box<dyn Choice>, OptionError> {
        Err(OptionError::usage("a log has answers already and cannot be run").help("`earnest import PATH` reads logs"))
    }

    fn chosen(&self, options: &Value) -> Vec<String> {
        LogSuite::of(options).ok().and_then(|suite| suite.stored.scorer).into_iter().collect()
    }

    fn stored(&self, options: &Value, _: &dyn Host) -> Result<Suite, OptionError> {
        Ok(Suite::new(LogSuite::of(options)?))
    }
}

/// Options of a stored log.
#[derive(Debug, Clone, Deserialize)]
struct Stored {
    #[serde(rename = "log")]
    card: StoredCard,
    /// Deciding scorer.
    #[serde(rename = "profile", default)]
    scorer: Option<String>,
}

/// Facts of the log that scores depend on.
#[derive(Debug, Clone, Deserialize)]
struct StoredCard {
    task: String,
    #[serde(default)]
    task_version: Option<String>,
    scorers: Vec<String>,
    #[serde(default)]
    notes: Vec<String>,
}

/// A stored log as a suite, without its items: they are in the store.
#[derive(Debug, Clone)]
pub struct LogSuite {
    stored: Stored,
    options: Value,
}

/// Version of a task whose log names none.
pub const UNKNOWN_VERSION: &str = "of unknown version";

impl LogSuite {
    /// The suite with the options of a stored run.
    ///
    /// # Errors
    /// If they are not those of a log.
    pub fn of(options: &Value) -> Result<Self, OptionError> {
        let stored = Stored::deserialize(options).map_err(OptionError::unreadable)?;
        debug_assert!(options.get(STORED_KEY).is_some());
        Ok(LogSuite { stored, options: options.clone() })
    }

    /// The table of these samples, with the notes of the log.
    pub fn summary(&self, tally: &Tally) -> Summary {
        let mut summary = tally.summary(&self.scorers());
        summary.notes.extend(self.stored.card.notes.iter().cloned());
        summary
    }

    /// Scorers in the tool's order, the deciding one first.
    fn scorers(&self) -> Vec<&str> {
        let chosen = self.stored.scorer.as_deref();
        let others = self.stored.card.scorers.iter().map(String::as_str).filter(|scorer| Some(*scorer) != chosen);
        chosen.into_iter().chain(others).collect()
    }
}

impl Items for LogSuite {
    fn iter(&self) -> Box<dyn Iterator<Item = Item> + Send + '_> {
        Box::new(std::iter::empty())
    }

    fn len(&self) -> usize {
        0
    }
}

impl Scoring for LogSuite {
    fn name(&self) -> &str {
        &self.stored.card.task
    }

    fn version(&self) -> &str {
        self.stored.card.task_version.as_deref().unwrap_or(UNKNOWN_VERSION)
    }

    fn options(&self) -> Value {
        self.options.clone()
    }

    /// The score by [`FINAL`] alone; the tool's scores are stored and stand beside it ([`super::beside`]).
    fn score(&self, item: &Item, answered: &Answered<'_>) -> Score {
        read_again(item, answered)
    }

    fn scorers(&self) -> Vec<&str> {
        let mut names = self.scorers();
        if !names.contains(&FINAL) {
            names.push(FINAL);
        }
        names
    }

    fn chosen(&self) -> Vec<&str> {
        self.stored.scorer.as_deref().into_iter().collect()
    }

    fn summarise(&self, samples: &[Scored<'_>]) -> Summary {
        let mut tally = Tally::default();
        for (number, Scored { item, score, .. }) in samples.iter().enumerate() {
            tally.add(number, &item.task, &item.cluster, score);
        }
        self.summary(&tally)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::suite::registry::{NoHost, find_stored};

    #[test]
    fn stored_logs_are_found_by_their_options() {
        let options = json!({"log": {"task": "arith", "scorers": ["strict", "flexible"]}, "profile": "flexible"});
        let found = find_stored("arith", &options).unwrap();
        assert_eq!(found.chosen(&options), ["flexible"]);
        let suite = found.stored(&options, &NoHost).unwrap();
        assert_eq!(
            (suite.scoring.name(), suite.scoring.version(), suite.scoring.options()),
            ("arith", UNKNOWN_VERSION, options)
        );
        assert_eq!(
            (suite.scoring.scorers(), suite.scoring.chosen()),
            (vec!["flexible", "strict", FINAL], vec!["flexible"])
        );
        assert!(suite.items.is_empty() && suite.items.iter().next().is_none());
        assert!(find_stored("nupa", &json!({"log": 1})).unwrap().stored(&json!({"log": 1}), &NoHost).is_err());
        assert!(Registration.configure(&OptionValues::default(), &NoHost).is_err());
    }
}
