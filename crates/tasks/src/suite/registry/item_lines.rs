//! A suite's items as rows of a file of questions, which a task of the user's can ask.
use crate::counted;
use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

use super::Lines;
use crate::suite::{Item, Suite};

/// Writer of a suite's items as JSON lines: id, task, question, answer, cluster, the system message if there is one, and the
/// covariates by their names. Worked examples are left out.
pub struct ItemLines {
    suite: Suite,
    written: usize,
}

impl ItemLines {
    /// The items of this suite.
    pub fn new(suite: Suite) -> Self {
        ItemLines { suite, written: 0 }
    }
}

impl Lines for ItemLines {
    fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        for item in self.suite.items.iter() {
            serde_json::to_writer(&mut *out, &Row::of(&item, self.suite.scoring.answer(&item)))?;
            out.write_all(b"\n")?;
            self.written += 1;
        }
        Ok(())
    }

    fn sentence(&self, place: &str) -> String {
        let whole = format!("{} of {}{place}", counted(self.written, "question"), self.suite.scoring.name());
        // Later ones depend on the answers to these.
        if self.suite.items.chooser().is_some() { format!("{whole}: its first round") } else { whole }
    }
}

#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    task: &'a str,
    question: &'a str,
    answer: &'a str,
    cluster: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<&'a str>,
    #[serde(flatten)]
    covariates: BTreeMap<String, &'a Value>,
}

const COLUMNS: [&str; 6] = ["id", "task", "question", "answer", "cluster", "system"];

impl<'a> Row<'a> {
    fn of(item: &'a Item, answer: &'a str) -> Self {
        let name = |name: &str| match COLUMNS.contains(&name) {
            true => format!("covariate_{name}"),
            false => name.to_owned(),
        };
        Row {
            id: &item.id,
            task: &item.task,
            question: &item.segments.question,
            answer,
            cluster: &item.cluster,
            system: item.segments.system.as_deref(),
            covariates: item.covariates.iter().map(|(key, value)| (name(key), value)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::registry::{BUILT_IN, Channel, Mode, NoHost, OptionValues};

    fn rows(suite: Suite, most: usize) -> Vec<Value> {
        let row = |item: Item| serde_json::to_value(Row::of(&item, suite.scoring.answer(&item))).unwrap();
        suite.items.iter().take(most).map(row).collect()
    }

    #[test]
    fn every_suite_has_rows_that_can_be_asked() {
        for suite in BUILT_IN {
            let values = OptionValues::new(1, Vec::new());
            // The others need the user's data.
            let Ok(choice) = suite.configure(&values, &NoHost) else { continue };
            for mode in [Mode::Raw, Mode::Chat] {
                let found = rows(choice.suite(Channel::local(mode)).unwrap(), 20);
                assert_eq!(found.len(), 20);
                for row in found {
                    for column in ["id", "task", "question", "answer", "cluster"] {
                        assert!(row[column].as_str().is_some_and(|text| !text.is_empty()), "{column}: {row}");
                    }
                    assert!(!row.as_object().unwrap().keys().any(|key| key.starts_with("covariate_")), "{row}");
                }
            }
        }
    }

    #[test]
    fn covariates_keep_clear_of_the_columns() {
        let mut item = Item::plain("i", "t", "Q", "5");
        item.covariates.insert("system".into(), 1.into());
        item.covariates.insert("length".into(), 2.into());
        let line = serde_json::to_string(&Row::of(&item, &item.gold)).unwrap();
        let expected =
            r#"{"id":"i","task":"t","question":"Q","answer":"5","cluster":"i","covariate_system":1,"length":2}"#;
        assert_eq!(line, expected);
    }
}
