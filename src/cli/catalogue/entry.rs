//! Rows of `earnest suites`.
use serde::Serialize;

use earnest_tasks::suite::registry::{BUILT_IN, BuiltIn};

/// A suite of the list.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    pub name: &'static str,
    pub version: &'static str,
    /// Source.
    pub paper: &'static str,
    /// Its questions, in one line.
    pub about: &'static str,
    pub tasks: Vec<String>,
    /// Number of items with default options; none if it depends on something.
    pub items: Option<usize>,
    /// Influences on it then.
    #[serde(skip)]
    pub items_depend_on: String,
    /// Options that select items.
    pub options: Vec<String>,
}

/// All suites.
pub fn entries() -> Vec<Entry> {
    let entry = |suite: &&dyn BuiltIn| {
        let card = suite.card();
        let shown = card.options.iter().filter(|option| !option.hidden);
        Entry {
            name: card.name,
            version: card.version,
            paper: card.paper,
            about: card.about,
            tasks: suite.tasks(),
            items: suite.items(),
            items_depend_on: suite.items_depend_on(),
            options: shown.map(|option| format!("--{}", option.long)).collect(),
        }
    };
    BUILT_IN.iter().map(entry).collect()
}
