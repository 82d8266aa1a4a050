//! The suites `gsm-symbolic` and `gsm-mini`.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::drawn::draw;
use super::large_numbers::gamma;
use super::mini::own_templates;
use super::options::{Options, OptionsError, Scorer, Source};
use super::prompt::Prompt;
use super::recognise::{Identity, sentences};
use super::rows::{Row, Set, checked};
use super::{scoring, summary};
use crate::suite::registry::Programs;
use crate::suite::{Answered, Budget, Item, Items, Score, Scored, Scoring, Segments, Summary};

/// Version of items and scoring: the first number changes with the items, the second with the scoring.
const VERSION: &str = "1.6";

/// New tokens of the study; thinking models, which it has none of, get room to think.
const BUDGET: Budget = Budget { answer: 1024, thinking: 16_384 };

/// The study's stop strings. Each stays in the completion, as there: without it nobody would see that a model began another
/// question, and an answer that consists of it alone would look empty.
const STOP_STRINGS: [&str; 2] = ["\nQ:", " Q:"];

/// Word problems under given options.
pub struct GsmSymbolic {
    options: Options,
    rows: BTreeMap<Set, Vec<Row>>,
    /// Template numbers, ascending.
    templates: Vec<u32>,
    identity: Option<Identity>,
    /// Identities of the sets, in sentences.
    recognised: Vec<String>,
    runner: Arc<dyn Programs>,
}

impl GsmSymbolic {
    /// Version of items and scoring: the first number changes with the items, the second with the scoring.
    pub const VERSION: &str = VERSION;

    /// The suite `gsm-symbolic` on questions that were read from files. `runner` runs the functions that models write.
    ///
    /// # Errors
    /// If the options are impossible or ask for questions that are not there.
    pub fn from_rows(
        options: Options,
        rows: BTreeMap<Set, Vec<Row>>,
        runner: Arc<dyn Programs>,
    ) -> Result<Self, OptionsError> {
        options.check()?;
        let empty = Vec::new();
        let main = rows.get(&Set::Main);
        let identity = main.map(|main| Identity::of(rows.get(&Set::Base).unwrap_or(&empty), main));
        let recognised = sentences(&rows, &options.sets, identity.as_ref());
        Ok(GsmSymbolic { identity, recognised, ..Self::build(options, rows, runner)? })
    }

    /// The suite `gsm-mini` on questions drawn from our own templates, which `options.source` describes.
    ///
    /// # Errors
    /// If the options are impossible.
    pub fn own(options: Options, runner: Arc<dyn Programs>) -> Result<Self, OptionsError> {
        options.check()?;
        let (mut base, mut main) = (Vec::new(), Vec::new());
        if let Source::Own { per_template, seed } = options.source {
            for template in own_templates()? {
                let drawn = draw(&template, seed, per_template)?;
                base.extend(drawn.first().map(|first| Row {
                    instance: -1,
                    question: first.row.original_question.clone(),
                    answer: first.row.original_answer.clone(),
                    ..first.row.clone()
                }));
                main.extend(drawn.into_iter().map(|drawn| drawn.row));
            }
        }
        let rows = BTreeMap::from([(Set::Base, checked(base)?), (Set::Main, checked(main)?)]);
        Self::build(options, rows, runner)
    }

    fn build(
        options: Options,
        mut rows: BTreeMap<Set, Vec<Row>>,
        runner: Arc<dyn Programs>,
    ) -> Result<Self, OptionsError> {
        rows.retain(|set, _| options.sets.contains(set));
        if let Some(&missing) = options.sets.iter().find(|set| rows.get(set).is_none_or(Vec::is_empty)) {
            return Err(OptionsError::NoRows(missing));
        }
        let known: BTreeSet<u32> = rows.values().flatten().map(|row| row.id).collect();
        if let Some(wanted) = &options.templates {
            let (first, last) = (known.first().copied().unwrap_or(0), known.last().copied().unwrap_or(0));
            if let Some(&template) = wanted.iter().find(|template| !known.contains(template)) {
                return Err(OptionsError::NoTemplate { template, first, last });
            }
            rows.values_mut().for_each(|rows| rows.retain(|row| wanted.contains(&row.id)));
        }
        if let Some(most) = options.instances {
            for rows in rows.values_mut() {
                let mut seen: BTreeMap<u32, usize> = BTreeMap::new();
                rows.retain(|row| {
                    let count = seen.entry(row.id).or_default();
                    *count += 1;
                    *count <= most
                });
            }
        }
        let templates: BTreeSet<u32> = rows.values().flatten().map(|row| row.id).collect();
        let templates = templates.into_iter().collect();
        Ok(GsmSymbolic { options, rows, templates, identity: None, recognised: Vec::new(), runner })
    }

    pub fn settings(&self) -> &Options {
        &self.options
    }

    /// Identity of the main set; none without one.
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// The questions in the order of items, without prompts: rounds over the templates, in each round the next question of
    /// every set. So a beginning has every set and prompt on the same templates, and base and variants in pairs.
    fn order(&self) -> impl Iterator<Item = (Set, &Row)> {
        let mut places: BTreeMap<(Set, u32), Vec<&Row>> = BTreeMap::new();
        for (set, rows) in &self.rows {
            for row in rows {
                places.entry((*set, row.id)).or_default().push(row);
            }
        }
        let rounds = places.values().map(Vec::len).max().unwrap_or(0);
        (0..rounds).flat_map(move |round| {
            let mut found = Vec::new();
            for &template in &self.templates {
                for &set in self.rows.keys() {
                    let row = places.get(&(set, template)).and_then(|rows| rows.get(round));
                    found.extend(row.map(|&row| (set, row)));
                }
            }
            found
        })
    }

    fn item(&self, prompt: Prompt, set: Set, row: &Row) -> Item {
        let text = prompt.render(&row.question, self.options.trailing_space);
        let mut covariates: BTreeMap<String, Value> = BTreeMap::from([
            ("set".into(), json!(set.name())),
            ("variant".into(), json!(u8::from(set != Set::Base))),
            ("instance".into(), json!(row.instance)),
            ("template".into(), json!(row.id)),
            ("original_id".into(), json!(row.original_id)),
        ]);
        if let Some(gamma) = gamma(&row.question) {
            covariates.insert("gamma".into(), json!(gamma));
        }
        let segments = if self.options.chat {
            Segments::question(text)
        } else {
            Segments { raw: Some(text), ..Segments::question(&row.question) }
        };
        // A conversation's turn ends by itself, and thinking may well write `Q:`.
        let stop_strings = if self.options.chat { Vec::new() } else { STOP_STRINGS.map(str::to_owned).to_vec() };
        Item {
            id: format!("{prompt}/{set}/{}/{}", row.id, row.instance),
            task: prompt.name().to_owned(),
            cluster: row.id.to_string(),
            covariates,
            segments,
            gold: gold(row),
            budget: BUDGET,
            keep_stop: !stop_strings.is_empty(),
            continuations: Vec::new(),
            stop_strings,
        }
    }
}

/// The expected number as text: as written where that is a plain number.
fn gold(row: &Row) -> String {
    let written = row.gold();
    let truth = row.truth().unwrap_or(f64::NAN);
    if written.parse() == Ok(truth) { written } else { truth.to_string() }
}

impl Items for GsmSymbolic {
    fn iter(&self) -> Box<dyn Iterator<Item = Item> + Send + '_> {
        let rows: Vec<(Set, &Row)> = self.order().collect();
        let prompts = self.options.prompts.len();
        // Within a template and a round: all sets under the first prompt, then under the next.
        let mut starts = Vec::new();
        for (index, (set, row)) in rows.iter().enumerate() {
            let begins = index == 0 || rows[index - 1].1.id != row.id || rows[index - 1].0 >= *set;
            if begins {
                starts.push(index);
            }
        }
        starts.push(rows.len());
        let steps: Vec<(Prompt, Set, &Row)> = starts
            .windows(2)
            .flat_map(|bounds| {
                let rows = &rows[bounds[0]..bounds[1]];
                (0..prompts).flat_map(move |prompt| rows.iter().map(move |&(set, row)| (prompt, set, row)))
            })
            .map(|(prompt, set, row)| (self.options.prompts[prompt], set, row))
            .collect();
        Box::new(steps.into_iter().map(|(prompt, set, row)| self.item(prompt, set, row)))
    }

    fn len(&self) -> usize {
        self.options.prompts.len() * self.rows.values().map(Vec::len).sum::<usize>()
    }
}

impl Scoring for GsmSymbolic {
    fn name(&self) -> &'static str {
        match self.options.source {
            Source::Files(_) => "gsm-symbolic",
            Source::Own { .. } => "gsm-mini",
        }
    }

    fn version(&self) -> &'static str {
        VERSION
    }

    fn options(&self) -> Value {
        let mut options = serde_json::to_value(&self.options).unwrap_or_default();
        let hash = |prompt: &Prompt| (prompt.name().to_owned(), json!(prompt.sha256(self.options.trailing_space)));
        let hashes: Map<String, Value> = self.options.prompts.iter().map(hash).collect();
        if let Value::Object(fields) = &mut options {
            fields.insert("prompt_sha256".into(), Value::Object(hashes));
        }
        options
    }

    fn score(&self, item: &Item, answered: &Answered<'_>) -> Score {
        scoring::score(&self.options, item, answered, self.runner.as_ref())
    }

    fn programs(&self) -> Option<&dyn Programs> {
        self.options.asks_for_code().then_some(self.runner.as_ref())
    }

    fn scorers(&self) -> Vec<&'static str> {
        Scorer::NAMES.to_vec()
    }

    fn chosen(&self) -> Vec<&'static str> {
        vec![self.options.scorer.name()]
    }

    fn summarise(&self, samples: &[Scored<'_>]) -> Summary {
        summary::summarise(&self.options, &self.recognised, samples)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::prompt::TrailingSpace;
    use super::*;
    use crate::suite::FailureClass;
    use crate::suite::registry::OptionError;
    use earnest_answer::{CodeNumber, CodeOutcome, CodeRunner, NumberKind, Program};

    /// Returns what a program's last line says, as far as that is a number.
    struct LastLine;

    impl CodeRunner for LastLine {
        fn run(&self, program: &Program) -> CodeOutcome {
            let last = program.source.lines().rev().find_map(|line| line.trim().strip_prefix("return "));
            match last.map(|value| (value, value.parse())) {
                Some((text, Ok(value))) => {
                    CodeOutcome::Number(CodeNumber { kind: NumberKind::Int, value, text: text.to_owned() })
                }
                Some(("forever", _)) => CodeOutcome::TimeLimit,
                Some((name, _)) => CodeOutcome::Raised { class: "NameError".into(), message: name.to_owned() },
                None => CodeOutcome::None,
            }
        }
    }

    impl Programs for LastLine {
        fn start(&self) -> Result<(), OptionError> {
            Ok(())
        }
    }

    fn mini(change: impl FnOnce(&mut Options)) -> Result<GsmSymbolic, OptionsError> {
        let mut options = Options::new(Source::Own { per_template: 3, seed: 1 });
        change(&mut options);
        GsmSymbolic::own(options, Arc::new(LastLine))
    }

    #[test]
    fn items_are_named_paired_and_balanced() {
        let suite = mini(|options| options.prompts = vec![Prompt::Gsm, Prompt::SimpleCode]).unwrap();
        let items: Vec<Item> = suite.iter().collect();
        assert_eq!((items.len(), suite.len()), (2 * 16 * 4, 2 * 16 * 4));
        let ids: Vec<&str> = items.iter().map(|item| item.id.as_str()).collect();
        let first = ["gsm/base/0/-1", "gsm/main/0/0", "simple-code/base/0/-1", "simple-code/main/0/0", "gsm/base/1/-1"];
        assert_eq!(ids[..5], first);
        assert_eq!(ids[64], "gsm/main/0/1");
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), items.len());
        for limit in [4, 8, 32, 64] {
            let begun = &items[..limit];
            let count = |keep: &dyn Fn(&&Item) -> bool| begun.iter().filter(keep).count();
            assert_eq!(count(&|item| item.task == "gsm"), limit / 2);
            assert_eq!(count(&|item| item.covariates["set"] == "base"), limit / 2);
        }
        let item = &items[1];
        assert_eq!((item.task.as_str(), item.cluster.as_str()), ("gsm", "0"));
        for (name, value) in
            [("set", json!("main")), ("variant", json!(1)), ("instance", json!(0)), ("template", json!(0))]
        {
            assert_eq!(item.covariates[name], value);
        }
        assert_eq!(items[0].covariates["variant"], json!(0));
        assert!(item.covariates["gamma"].as_f64().unwrap() > 0.0);
        assert!(item.stop_strings == ["\nQ:", " Q:"] && item.keep_stop);
        assert!(item.segments.raw.as_ref().unwrap().ends_with("\nA: Let's think step by step. "));
        assert!(item.gold.parse::<f64>().is_ok());
    }

    #[test]
    fn options_choose_questions_and_survive_the_manifest() {
        let suite = mini(|options| {
            (options.sets, options.instances, options.templates) = (vec![Set::Main], Some(2), Some(vec![3, 5]));
            (options.trailing_space, options.chat) = (TrailingSpace::Trim, true);
        })
        .unwrap();
        let ids: Vec<String> = suite.iter().map(|item| item.id).collect();
        assert_eq!(ids, ["gsm/main/3/0", "gsm/main/5/0", "gsm/main/3/1", "gsm/main/5/1"]);
        let item = suite.iter().next().unwrap();
        assert!(item.segments.raw.is_none() && item.stop_strings.is_empty());
        assert!(item.segments.question.ends_with("Let's think step by step."));
        let stored = suite.options();
        assert_eq!(stored["prompt_sha256"]["gsm"], Prompt::Gsm.sha256(TrailingSpace::Trim));
        // The study's scorer is not named, so that runs of before keep their identity.
        assert_eq!((stored.get("profile"), suite.chosen()), (None, vec!["study"]));
        let again = GsmSymbolic::own(serde_json::from_value(stored.clone()).unwrap(), Arc::new(LastLine)).unwrap();
        assert_eq!((again.options(), again.iter().collect::<Vec<_>>()), (stored, suite.iter().collect()));
    }

    #[test]
    fn impossible_options_are_named() {
        let wrong = |change: fn(&mut Options)| mini(change).err();
        assert!(matches!(wrong(|o| o.prompts.clear()), Some(OptionsError::NoPrompt)));
        assert!(matches!(wrong(|o| o.sets.clear()), Some(OptionsError::NoSet)));
        assert!(matches!(wrong(|o| o.sets = vec![Set::P1]), Some(OptionsError::NoRows(Set::P1))));
        assert!(matches!(wrong(|o| o.instances = Some(0)), Some(OptionsError::NoInstances)));
        assert!(matches!(
            wrong(|o| o.templates = Some(vec![16])),
            Some(OptionsError::NoTemplate { template: 16, first: 0, last: 15 })
        ));
        let none = Options::new(Source::Own { per_template: 0, seed: 1 });
        assert!(matches!(none.check(), Err(OptionsError::PerTemplate(0))));
    }

    #[test]
    fn completions_are_scored_by_the_studys_rules_and_ours() {
        let suite = mini(|options| options.prompts = vec![Prompt::Gsm, Prompt::SimpleCode]).unwrap();
        let item = |prompt: &str| suite.iter().find(|item| item.id == format!("{prompt}/base/0/-1")).unwrap();
        let (text, code) = (item("gsm"), item("simple-code"));
        assert_eq!((text.gold.as_str(), code.gold.as_str()), ("27", "27"));
        let scored = |item: &Item, completion: &str| suite.score(item, &Answered { completion, truncated: false });
        let right = scored(&text, "It is 30 - 3. The final answer is 27.\n\nQ:");
        assert!(right.correct && right.failure.is_none() && right.answer.as_deref() == Some("27"));
        assert_eq!((right.scorers["study_strict"], right.metrics["babbling"]), (false, 1.0));
        assert!(right.scorers["strict"] && right.scorers["flexible"]);
        let failure = |item: &Item, completion: &str| scored(item, completion).failure.unwrap().to_string();
        assert_eq!(failure(&text, "The final answer is 26."), "wrong");
        assert_eq!(failure(&text, "26"), "wrong_last_number");
        assert_eq!(failure(&text, ""), "empty_response");
        assert_eq!(failure(&text, "\nQ:"), "empty_after_trim");
        assert_eq!(failure(&text, "nothing"), "no_number");
        // The stop string in front of an answer is the study's trap.
        assert_eq!(failure(&text, " Q: 27"), "empty_after_trim");
        // Spaces before full stops vanish before the study's reading.
        assert_eq!(scored(&text, "The final answer is 27 .0").answer.as_deref(), Some("27"));
        assert!(scored(&code, "\n    return 27\n\n\nQ:").correct);
        assert_eq!(failure(&code, "\n    return 26"), "wrong");
        assert_eq!(failure(&code, "\n    return forever"), "time_limit");
        assert_eq!(failure(&code, "\n    return nowhere"), "name_error");
        assert_eq!(failure(&code, "\n    pass"), "none_returned");
        assert_eq!(failure(&code, "27"), "no_function");
        assert_eq!(failure(&code, "\n    return eval('27')"), "forbidden_string");
        let last = mini(|options| {
            (options.prompts, options.scorer) = (vec![Prompt::Gsm, Prompt::SimpleCode], Scorer::Final);
        })
        .unwrap();
        assert_eq!(last.options()["profile"], "final");
        let by_final = |item: &Item, completion: &str| last.score(item, &Answered { completion, truncated: false });
        let right = by_final(&text, "27");
        assert!(right.correct && right.answer.as_deref() == Some("27") && right.scorers["study"]);
        assert_eq!(right.evidence.readings.keys().collect::<Vec<_>>(), ["flexible", "strict", "study"]);
        assert_eq!(by_final(&text, "26").failure, Some(FailureClass::Wrong));
        assert_eq!(by_final(&text, "Alas.").failure, Some(FailureClass::NoNumber));
        // A function has one value, whoever reads it.
        let code_right = by_final(&code, "\n    return 27\n\n\nQ:");
        assert!(code_right.correct && code_right.scorers["final"] && code_right.answer.as_deref() == Some("27"));
        assert_eq!(by_final(&code, "\n    return nowhere").failure, Some(FailureClass::NameError));
        for (scorer, completion, failure) in [
            (Scorer::Strict, "It is 27", "no_number"),
            (Scorer::Flexible, "The answer is 27, not 26", "wrong"),
            (Scorer::StudyStrict, "The final answer is 27.\n\nQ:", "babbling"),
        ] {
            let suite = mini(|options| options.scorer = scorer).unwrap();
            let found = suite.score(&text, &Answered { completion, truncated: false });
            assert_eq!(found.failure, Some(failure.into()), "{scorer:?}: {found:?}");
        }
        let thought = "<think>The answer is 27</think> I do not know.";
        assert!(scored(&text, thought).correct);
        let chat = mini(|options| options.chat = true).unwrap();
        let score = chat.score(&text, &Answered { completion: thought, truncated: false });
        assert_eq!(score.failure, Some(FailureClass::NoNumber));
    }
}
