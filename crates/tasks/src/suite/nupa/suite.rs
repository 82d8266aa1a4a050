//! The suite: items in balanced order, and how they are scored.
use std::sync::OnceLock;

use serde_json::json;

use super::answer::extract_strict;
use crate::suite::{Answered, Budget, Grid, Item, ItemOrder, Items, Score, Scored, Scoring, Segments, Shot, Summary};

use super::cell::{Cell, LONGEST_SHARED, Question, Split};
use super::options::{Adapter, BudgetRule, NupaOptions, PromptStyle, Scorer};
use super::order::TaskQuestions;
use super::{
    DigitSet, LengthRange, NupaError, TaskId, grids, measure, prompt, reference_answer, rules, scoring, summary,
};

/// Covariate with the range of lengths that a question is of.
pub(super) const RANGE: &str = "range";

/// Tokens that a thinking model may use before its answer.
const THINKING_BUDGET: usize = 4096;

/// The NUPA Test under given options.
pub struct NupaSuite {
    options: NupaOptions,
    /// The worked examples of each selected task.
    shots: Vec<Vec<Shot>>,
    length: OnceLock<usize>,
}

impl NupaSuite {
    /// The suite under `options`.
    ///
    /// # Errors
    /// As [`NupaOptions::check`], and for given questions that are none. A file of questions must have been read.
    pub fn new(options: NupaOptions) -> Result<Self, NupaError> {
        options.check()?;
        // Questions of a file were checked line by line.
        if options.questions.is_none() {
            for id in &options.given {
                answerable(&given_question(id)?)?;
            }
        }
        let shots = options.tasks.iter().map(|&task| worked_examples(&options, task)).collect::<Result<_, _>>()?;
        Ok(NupaSuite { options, shots, length: OnceLock::new() })
    }

    pub fn settings(&self) -> &NupaOptions {
        &self.options
    }

    /// Number of questions of a cell under the options.
    pub(in crate::suite) fn cell_size(&self, task: TaskId, length: usize) -> usize {
        let asked = self.options.per_length;
        if surely_full(length, asked) {
            asked
        } else {
            self.cell(task, length).map_or(0, |cell| cell.take(asked).count())
        }
    }

    pub(super) fn cell(&self, task: TaskId, length: usize) -> Result<Cell, NupaError> {
        Cell::new(task, length, self.options.split, self.options.pairs, self.options.seed)
    }

    /// The item of a question with the index of its task in the options.
    pub(super) fn item(&self, index: usize, question: &Question, id: String) -> Item {
        let task = question.task;
        let b = question.b.as_deref();
        let text = prompt::question(task, &question.a, b, self.options.wording);
        let rule = match self.options.style {
            PromptStyle::Direct => None,
            PromptStyle::RuleFollowing => rules::rule(task).ok(),
        };
        let text = rule.map_or(text.clone(), |rule| rule.prompt(&text));
        let shots = self.shots.get(index).cloned().unwrap_or_default();
        let segments = match self.options.adapter {
            Adapter::Completion => {
                let mut raw = String::new();
                for shot in &shots {
                    raw.push_str(&format!("{} {}\n", shot.question, shot.answer));
                }
                raw.push_str(&text);
                Segments { shots, raw: Some(raw), ..Segments::question(text) }
            }
            Adapter::Chat => {
                let system = rule.is_none().then(|| prompt::system_message(task));
                Segments { system, shots, ..Segments::question(text) }
            }
        };
        let answer_budget = match (self.options.budget, rule) {
            (BudgetRule::Fixed(tokens), _) => tokens,
            (BudgetRule::Published, None) => 2 * question.length,
            (BudgetRule::Published, Some(_)) => 2000,
            (BudgetRule::Generous, None) => 8 * question.length + 32,
            // A token is at least a character; a trace that cannot be made has no right completion to make room for.
            (BudgetRule::Generous, Some(rule)) => rule.trace(question).map_or(2000, |trace| trace.len() + 32),
        };
        let mut covariates = std::collections::BTreeMap::from([
            ("length".to_string(), json!(question.length)),
            ("operation".into(), json!(task.operation.title())),
            ("representation".into(), json!(task.representation.name())),
            ("a".into(), json!(question.a)),
            ("in_reference_range".into(), json!(task.in_reference_range(question.length))),
        ]);
        if let Some(b) = b {
            covariates.insert("b".into(), json!(b));
        }
        if let Some(range) = LengthRange::of(question.length, task.longest()) {
            covariates.insert(RANGE.into(), json!(range.name()));
            covariates.insert("in_domain".into(), json!(range.is_in_domain()));
        }
        if question.length <= LONGEST_SHARED && self.options.split != Split::Train {
            covariates.insert("in_train".into(), json!(true));
        }
        if let Ok(reference) = reference_answer(task, &question.a, b)
            && reference != question.answer
        {
            covariates.insert("reference_gold".into(), json!(reference));
        }
        let stop_strings = match (self.options.adapter, rule) {
            (Adapter::Completion, None) if self.options.stop_at_newline => vec!["\n".to_string()],
            _ => Vec::new(),
        };
        Item {
            cluster: id.clone(),
            id,
            task: task.to_string(),
            covariates,
            segments,
            gold: question.answer.clone(),
            budget: Budget { answer: answer_budget, thinking: THINKING_BUDGET + answer_budget },
            stop_strings,
            keep_stop: false,
            continuations: Vec::new(),
        }
    }

    /// The item of operands given by hand (a completion made elsewhere): its id spells them out.
    ///
    /// # Errors
    /// As [`Question::from_operands`].
    pub fn item_from_operands(&self, task: TaskId, a: &str, b: Option<&str>) -> Result<Item, NupaError> {
        let question = Question::from_operands(task, a, b)?;
        let index = self.options.tasks.iter().position(|&selected| selected == task).unwrap_or(usize::MAX);
        let id = match b {
            Some(b) => format!("{task}:{a},{b}"),
            None => format!("{task}:{a}"),
        };
        Ok(self.item(index, &question, id))
    }

    /// The item with an id, made alone, or none if the options have no such item.
    ///
    /// # Errors
    /// [`NupaError`] where the id names an unknown task or impossible operands.
    pub fn item_by_id(&self, id: &str) -> Result<Option<Item>, NupaError> {
        let malformed = || NupaError::UnknownValue {
            what: "the item id",
            value: id.into(),
            expected: "<task>/<length>/<index>, <task>:<a> or <task>:<a>,<b>".into(),
        };
        if id.contains(':') {
            let question = given_question(id)?;
            let item = self.item_from_operands(question.task, &question.a, question.b.as_deref())?;
            // A repeated question is in the cluster of the first.
            return Ok(Some(Item { id: id.to_owned(), ..item }));
        }
        let [task, length, index] = id.split('/').collect::<Vec<_>>()[..] else { return Err(malformed()) };
        let task: TaskId = task.parse()?;
        let (Ok(length), Ok(index)) = (length.parse(), index.parse()) else { return Err(malformed()) };
        let options = &self.options;
        let selected = options.tasks.iter().position(|&selected| selected == task);
        match selected {
            Some(task_index) if index < options.per_length && options.lengths_of(task).contains(&length) => Ok(self
                .cell(task, length)?
                .question(index)
                .map(|question| self.item(task_index, &question, item_id(task, length, index)))),
            _ => Ok(None),
        }
    }
}

/// The question of an id that spells its operands.
fn given_question(id: &str) -> Result<Question, NupaError> {
    let text = id.split_once('#').map_or(id, |(text, _)| text);
    let (task, operands) = text.split_once(':').ok_or_else(|| NupaError::UnknownValue {
        what: "the given question",
        value: id.into(),
        expected: "<task>:<a> or <task>:<a>,<b>".into(),
    })?;
    let (a, b) = operands.split_once(',').map_or((operands, None), |(a, b)| (a, Some(b)));
    Question::from_operands(task.parse()?, a, b)
}

/// Refuses a question whose right answer could never count: the test has no negative numbers, and every scorer reads its forms
/// of numbers only.
pub(super) fn answerable(question: &Question) -> Result<(), NupaError> {
    let form = question.task.answer_form();
    let read = extract_strict(form, &question.answer).answer;
    let right = read.and_then(|answer| measure(form, DigitSet::Ascii, &question.answer, &answer));
    if right.is_some_and(|metrics| metrics.exact) {
        return Ok(());
    }
    let operands =
        [Some(question.a.as_str()), question.b.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(", ");
    let (task, answer) = (question.task, question.answer.clone());
    Err(NupaError::Unanswerable { task, operands, answer })
}

pub(super) fn item_id(task: TaskId, length: usize, index: usize) -> String {
    format!("{task}/{length}/{index}")
}

/// Worked examples from the training split (appendix A.3.1): one each from lengths spread over the training lengths.
fn worked_examples(options: &NupaOptions, task: TaskId) -> Result<Vec<Shot>, NupaError> {
    let first = task.shortest_in_reference();
    let last = if task.longest() == 20 { 8 } else { 20 };
    let mut shots = Vec::with_capacity(options.shots);
    let mut cells: Vec<Option<Cell>> = (0..=last).map(|_| None).collect();
    for index in 0..options.shots {
        let length = match options.shots {
            1 => first,
            count => first + ((last - first) * index + (count - 1) / 2) / (count - 1),
        };
        if cells[length].is_none() {
            cells[length] = Some(Cell::new(task, length, Split::Train, options.pairs, options.seed)?);
        }
        // More examples than lengths: the next question of a cell already used.
        if let Some(question) = cells[length].as_mut().and_then(Iterator::next) {
            let text = prompt::question(task, &question.a, question.b.as_deref(), options.wording);
            shots.push(Shot { question: text, answer: question.answer });
        }
    }
    Ok(shots)
}

impl Items for NupaSuite {
    fn iter(&self) -> Box<dyn Iterator<Item = Item> + Send + '_> {
        if !self.options.given.is_empty() {
            // They were read when the suite was made.
            return Box::new(self.options.given.iter().filter_map(|id| self.item_by_id(id).ok().flatten()));
        }
        let mut tasks: Vec<(usize, TaskQuestions)> = self
            .options
            .tasks
            .iter()
            .enumerate()
            .map(|(position, &task)| (position, TaskQuestions::new(&self.options, task)))
            .collect();
        let mut turn = 0;
        Box::new(std::iter::from_fn(move || {
            while !tasks.is_empty() {
                if turn >= tasks.len() {
                    turn = 0;
                }
                let (position, questions) = &mut tasks[turn];
                match questions.next() {
                    Some((length, question)) => {
                        turn += 1;
                        let id = item_id(question.task, length, question.index);
                        return Some(self.item(*position, &question, id));
                    }
                    None => {
                        tasks.remove(turn);
                    }
                }
            }
            None
        }))
    }

    fn len(&self) -> usize {
        *self.length.get_or_init(|| {
            let options = &self.options;
            if !options.given.is_empty() {
                return options.given.len();
            }
            let cells =
                options.tasks.iter().flat_map(|&task| options.lengths_of(task).into_iter().map(move |l| (task, l)));
            cells.map(|(task, length)| self.cell_size(task, length)).sum()
        })
    }
}

impl Scoring for NupaSuite {
    fn name(&self) -> &'static str {
        "nupa"
    }

    fn version(&self) -> &'static str {
        match self.options.order {
            ItemOrder::One => super::QUESTIONS_VERSION,
            ItemOrder::Two => super::SUITE_VERSION,
        }
    }

    fn options(&self) -> serde_json::Value {
        self.options.to_json()
    }

    fn score(&self, item: &Item, answered: &Answered<'_>) -> Score {
        scoring::score(&self.options, item, answered)
    }

    fn scorers(&self) -> Vec<&'static str> {
        Scorer::NAMES.to_vec()
    }

    fn chosen(&self) -> Vec<&'static str> {
        vec![self.options.scorer.name()]
    }

    fn summarise(&self, samples: &[Scored<'_>]) -> Summary {
        summary::summarise(&self.options, samples)
    }

    fn grids(&self, summary: &Summary) -> Vec<Grid> {
        grids::grids(summary, self.options.scorer)
    }
}

/// True where a cell has so many more questions than are asked that it cannot run out: the first operand alone
/// takes 9 * 10^(L-1) values or, of a task that zeroes trailing digits, the square root of that; a split has at least an eighth of them.
fn surely_full(length: usize, asked: usize) -> bool {
    let values = 10usize.checked_pow((length / 2) as u32).unwrap_or(usize::MAX);
    asked.saturating_mul(32) <= values
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::TASKS;
    use super::super::options::Lengths;
    use super::*;

    fn suite(change: impl FnOnce(&mut NupaOptions)) -> NupaSuite {
        let mut options = NupaOptions::default();
        change(&mut options);
        NupaSuite::new(options).unwrap()
    }

    #[test]
    fn any_beginning_is_balanced() {
        let suite = suite(|_| ());
        let items: Vec<Item> = suite.iter().take(53 * 10).collect();
        let mut cells: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for item in &items {
            let range = item.covariates["range"].as_str().unwrap();
            *cells.entry((&item.task, range)).or_default() += 1;
        }
        assert_eq!(cells.len(), 53 * 4);
        for ((task, range), count) in cells {
            let longest = task.parse::<TaskId>().unwrap().longest();
            let index = LengthRange::ALL.iter().position(|one| one.name() == range).unwrap();
            // 10, 10, 40 and 40 % of the lengths up to 100, and 20, 20, 30 and 30 % of those up to 20.
            let share = if longest == 20 { [2, 2, 3, 3] } else { [1, 1, 4, 4] };
            assert_eq!(count, share[index], "{task} {range}");
        }
        assert!(suite.len() > 53 * 10);
    }

    #[test]
    fn the_first_order_is_that_of_stored_runs() {
        let mut options = NupaOptions { per_length: 1, ..NupaOptions::default() }.to_json();
        assert_eq!(options["order"], 2);
        options.as_object_mut().unwrap().remove("order");
        let suite = NupaSuite::new(NupaOptions::from_json(&options).unwrap()).unwrap();
        assert_eq!((suite.version(), suite.options()), ("2.3", options));
        let ids: Vec<String> = suite.iter().step_by(53).take(9).map(|item| item.id).collect();
        let add = |length: usize| format!("add_Integer_Integer_Integer/{length}/0");
        assert_eq!(ids, [1, 5, 9, 15, 2, 6, 10, 16, 3].map(add));
        let today = self::suite(|options| options.per_length = 1);
        let by_id = |suite: &NupaSuite| suite.iter().map(|item| (item.id.clone(), item)).collect::<BTreeMap<_, _>>();
        assert!(today.version() == "3.3" && by_id(&today) == by_id(&suite));
    }

    #[test]
    fn len_counts_the_items_and_ids_are_unique() {
        for lengths in [Lengths::Chosen((1..=6).collect()), Lengths::Chosen(vec![20])] {
            let suite = suite(|options| {
                options.lengths = lengths;
                options.per_length = 40;
            });
            let items: Vec<Item> = suite.iter().collect();
            assert_eq!(items.len(), suite.len());
            let ids: BTreeSet<&str> = items.iter().map(|item| item.id.as_str()).collect();
            assert_eq!(ids.len(), items.len());
            for item in items.iter().step_by(97) {
                assert_eq!(suite.item_by_id(&item.id).unwrap().as_ref(), Some(item));
            }
        }
    }

    #[test]
    fn items_by_operands() {
        let suite = suite(|options| options.scorer = Scorer::Paper);
        let item = suite.item_by_id("add_Integer_Integer_Integer:744,543").unwrap().unwrap();
        assert_eq!(item.gold, "1287");
        assert_eq!(suite.item_by_id("to_float_Fraction_none_Float:1/8").unwrap().unwrap().gold, "0.125");
        assert_eq!(suite.item_by_id("length_Integer_none_int/5/3000").unwrap(), None);
        assert!(suite.item_by_id("nothing").is_err());
        assert!(suite.item_by_id("mod_Integer_Integer_Integer:5,0").is_err());
    }

    #[test]
    fn given_questions_are_the_whole_suite() {
        let ids = ["add_Integer_Integer_Integer:744,543", "to_float_Fraction_none_Float:1/8"].map(String::from);
        let suite = suite(|options| options.given = ids.to_vec());
        let items: Vec<Item> = suite.iter().collect();
        assert_eq!(items.iter().map(|item| &item.id).collect::<Vec<_>>(), ids.iter().collect::<Vec<_>>());
        assert_eq!((suite.len(), items[0].gold.as_str(), items[1].gold.as_str()), (2, "1287", "0.125"));
        let again = NupaOptions::from_json(&suite.options()).unwrap();
        assert_eq!(&again, suite.settings());
        for wrong in ["add_Integer", "add_Integer:1", "add_Integer:1,x", "nothing:1,2", "mod_Integer:5,0"] {
            let options = NupaOptions { given: vec![wrong.into()], ..NupaOptions::default() };
            assert!(NupaSuite::new(options).is_err(), "{wrong}");
        }
        assert!(NupaOptions::default().to_json().get("given").is_none());
    }

    #[test]
    fn shots_come_from_other_lengths_and_the_training_split() {
        let options = |options: &mut NupaOptions| {
            options.shots = 5;
            options.lengths = Lengths::Chosen(vec![7]);
            options.per_length = 1;
        };
        let suite_with_shots = suite(options);
        for item in suite_with_shots.iter() {
            let shots = &item.segments.shots;
            assert_eq!(shots.len(), 5, "{}", item.id);
            let distinct: BTreeSet<&str> = shots.iter().map(|shot| shot.question.as_str()).collect();
            assert_eq!(distinct.len(), 5);
            let raw = item.segments.raw.unwrap();
            assert_eq!(raw.lines().count(), 6);
            assert!(raw.starts_with(&format!("{} {}\n", shots[0].question, shots[0].answer)));
        }
    }

    #[test]
    fn budgets_hold_every_answer() {
        let suite = suite(|options| options.per_length = 1);
        for item in suite.iter() {
            assert!(item.gold.len() <= item.budget.answer, "{}", item.id);
        }
    }

    #[test]
    fn chat_has_a_system_message_and_completion_has_raw_text() {
        let completion = suite(|options| options.per_length = 1).iter().next().unwrap();
        assert_eq!(completion.segments.raw.as_deref(), Some(completion.segments.question.as_str()));
        assert_eq!(completion.stop_strings, ["\n"]);
        let chat = suite(|options| options.adapter = Adapter::Chat).iter().next().unwrap();
        assert!(chat.segments.system.is_some() && chat.segments.raw.is_none() && chat.stop_strings.is_empty());
    }

    #[test]
    fn reference_option_uses_seeded_draws() {
        let reference = suite(|options| {
            options.pairs.reference = true;
            options.tasks = vec!["sub_ScientificNotation".parse().unwrap()];
            options.lengths = Lengths::Chosen(vec![9]);
            options.per_length = 200;
        });
        let mut differences: BTreeMap<char, BTreeSet<i64>> = BTreeMap::new();
        for item in reference.iter() {
            let exponent = |name: &str| -> i64 {
                item.covariates[name].as_str().unwrap().split('e').nth(1).unwrap().parse().unwrap()
            };
            let (a, b) = (exponent("a"), exponent("b"));
            if b > 0 {
                let first = item.covariates["b"].as_str().unwrap().chars().next().unwrap();
                differences.entry(first).or_default().insert(b - a);
            }
        }
        assert!(differences.values().all(|set| set.len() == 1), "{differences:?}");
        assert_eq!(differences[&'5'], BTreeSet::from([-1]));
    }

    #[test]
    fn all_tasks_have_items() {
        let names: BTreeSet<String> = suite(|_| ()).iter().take(53).map(|item| item.task).collect();
        assert_eq!(names, TASKS.iter().map(TaskId::to_string).collect());
    }
}
