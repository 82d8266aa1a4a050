//! The suite.
use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::draw::Cell;
use super::{Ends, Options, OptionsError, Question, Scorer, Task, score, summary};
use crate::suite::item_order::spread;
use crate::suite::{Answered, Budget, Item, ItemOrder, Items, Score, Scored, Scoring, Segments, Summary};

/// Version of items and scoring: the first number changes with the items, their order or the end of completions, the second with the
/// scoring.
pub const VERSION: &str = "3.4";

/// Version with [`Ends::Model`], that of conversations, which end as they did.
pub const CHAT_VERSION: &str = "2.4";

/// Version of questions and scoring, and of the suite with [`ItemOrder::One`].
pub const QUESTIONS_VERSION: &str = "1.4";

/// Arithmetic-Bench under given options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArithmeticBench {
    options: Options,
}

impl ArithmeticBench {
    /// A suite with these options.
    ///
    /// # Errors
    /// If they describe no item set.
    pub fn new(options: Options) -> Result<Self, OptionsError> {
        options.check()?;
        Ok(ArithmeticBench { options })
    }

    pub fn settings(&self) -> &Options {
        &self.options
    }

    /// A single item, without the others. `index` counts from 0 and may lie beyond the options' items per length.
    pub fn item(&self, task: Task, length: usize, index: usize) -> Item {
        let question = self.cell(task, length).nth(index as u64);
        self.dress(&question, index)
    }

    /// SHA-256, in hexadecimal, over every item in order as `id TAB prompt TAB answer LF`: two runs asked the same
    /// questions if and only if this is equal.
    pub fn item_set_sha256(&self) -> String {
        let mut hash = Sha256::new();
        let Options { tasks, lengths, .. } = &self.options;
        let cells = lengths.as_slice().iter().flat_map(|length| tasks.iter().map(|task| (*task, *length)));
        for item in self.of_cells(cells.collect()) {
            hash.update(format!("{}\t{}\t{}\n", item.id, item.segments.question, item.gold));
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Tasks and lengths in their order. In the second one each task begins at another length, so that already the first question of each
    /// task makes a picture of all lengths.
    fn cells(&self) -> Vec<(Task, usize)> {
        let Options { tasks, lengths, order, .. } = &self.options;
        let (lengths, turns) = match order {
            ItemOrder::One => (by_reversed_bits(lengths.as_slice()), false),
            ItemOrder::Two => (spread(lengths.as_slice()), true),
        };
        let length = |turn: usize, task: Task| {
            let begin = if turns { task as usize } else { 0 };
            lengths[(begin + turn) % lengths.len()]
        };
        (0..lengths.len()).flat_map(|turn| tasks.iter().map(move |&task| (task, length(turn, task)))).collect()
    }

    /// The items of tasks and lengths: one of each, then a second one, ...
    fn of_cells(&self, cells: Vec<(Task, usize)>) -> impl Iterator<Item = Item> + Send + use<'_> {
        let mut cells: Vec<Cell> = cells.into_iter().map(|(task, length)| self.cell(task, length)).collect();
        let count = cells.len();
        (0..self.options.per_length * count).map(move |i| {
            let (index, cell) = (i / count, i % count);
            self.dress(&cells[cell].nth(index as u64), index)
        })
    }

    fn cell(&self, task: Task, length: usize) -> Cell {
        Cell::new(self.options.seed, self.options.set, task, length)
    }

    fn dress(&self, question: &Question, index: usize) -> Item {
        let (task, length, set) = (question.task(), question.length(), self.options.set);
        let mut covariates: BTreeMap<String, Value> = BTreeMap::from([
            ("length".into(), json!(length)),
            ("index".into(), json!(index)),
            ("set".into(), json!(set)),
            ("a".into(), json!(question.a())),
        ]);
        if let Some(b) = question.b() {
            covariates.insert("b".into(), json!(b));
            if task.has_single_digit_operand() {
                covariates.insert("b_is_one".into(), json!(b == "1"));
            }
        }
        Item {
            id: format!("arithmetic-bench/{set}/{task}/{length:03}/{index:03}"),
            task: task.to_string(),
            cluster: format!("{task}/{length:03}"),
            covariates,
            segments: Segments::question(question.prompt()),
            gold: question.answer(),
            budget: match self.options.ends {
                Ends::Model => budget(task, length),
                Ends::AnswerLine => Budget { answer: line_budget(task, length), ..budget(task, length) },
            },
            stop_strings: if self.options.ends.is_model() { Vec::new() } else { ends_of_answer_line() },
            keep_stop: !self.options.ends.is_model(),
            continuations: Vec::new(),
        }
    }
}

/// Tokens an item may cost. The paper gives 16,384 to reasoning models and "2,048
/// or 4,096" to the others without saying which when. Here 4,096 go to the cells whose answers can be longer than 128
/// characters (`mul` from 65 digits, `space` from 65, `d2b` from 39) and 2,048 to the rest. At one token a digit, the worst
/// of the tokenizers at hand, everyone then has at least 12 tokens for each character of the answer, enough to copy the
/// operands, work in columns and repeat the result; the budget depends on the cell alone, never on the drawn numbers.
fn budget(task: Task, length: usize) -> Budget {
    Budget { answer: if task.longest_answer(length) > 128 { 4_096 } else { 2_048 }, thinking: 16_384 }
}

/// Tokens of a line with the answer: some models never end it. Room for the question again and the answer, twice over at a token a
/// character.
fn line_budget(task: Task, length: usize) -> usize {
    64 + 8 * (length + task.longest_answer(length))
}

/// Ends of a line that holds an answer, and of a question in the form of the suite's. They stay in the completion, whose digit the
/// answer may need. The ends that come up most are first: some endpoints take only four.
pub(in crate::suite) fn ends_of_answer_line() -> Vec<String> {
    let after_digits = |end: &'static str| ('0'..='9').map(move |digit| format!("{digit}{end}"));
    let others = ["=?\n", ")\n"].map(str::to_owned).into_iter();
    others.chain(after_digits("\n")).chain(after_digits(".\n")).chain(after_digits(" \n")).collect()
}

/// The lengths in the first order: positions with their bits reversed. It begins with the shortest.
fn by_reversed_bits(lengths: &[usize]) -> Vec<usize> {
    let bits = lengths.len().next_power_of_two().trailing_zeros();
    let reversed = |i: usize| if bits == 0 { 0 } else { i.reverse_bits() >> (usize::BITS - bits) };
    (0..1usize << bits).filter_map(|i| lengths.get(reversed(i)).copied()).collect()
}

impl Items for ArithmeticBench {
    fn iter(&self) -> Box<dyn Iterator<Item = Item> + Send + '_> {
        Box::new(self.of_cells(self.cells()))
    }

    fn len(&self) -> usize {
        self.options.tasks.len() * self.options.lengths.as_slice().len() * self.options.per_length
    }
}

impl Scoring for ArithmeticBench {
    fn name(&self) -> &'static str {
        "arithmetic-bench"
    }

    fn version(&self) -> &'static str {
        match (self.options.order, self.options.ends) {
            (ItemOrder::One, _) => QUESTIONS_VERSION,
            (ItemOrder::Two, Ends::Model) => CHAT_VERSION,
            (ItemOrder::Two, Ends::AnswerLine) => VERSION,
        }
    }

    fn options(&self) -> Value {
        serde_json::to_value(&self.options).expect("options are plain data with text keys")
    }

    fn score(&self, item: &Item, answered: &Answered<'_>) -> Score {
        score::score(self.options.scorer, item, answered)
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
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::Lengths;
    use super::*;

    fn bench(change: impl FnOnce(&mut Options)) -> ArithmeticBench {
        let mut options = Options::default();
        change(&mut options);
        ArithmeticBench::new(options).unwrap()
    }

    #[test]
    fn the_full_set_is_what_it_says() {
        let bench = bench(|_| ());
        let items: Vec<Item> = bench.iter().collect();
        assert_eq!((items.len(), bench.len()), (16_000, 16_000));
        assert_eq!(items.iter().map(|item| &item.id).collect::<HashSet<_>>().len(), 16_000);
        assert!(bench.iter().skip(4321).step_by(997).eq(items.iter().skip(4321).step_by(997).cloned()));
        // Only lengths with fewer combinations than items repeat a question.
        let mut seen = HashSet::new();
        let repeated: Vec<&Item> =
            items.iter().filter(|item| !seen.insert((&item.task, &item.segments.question))).collect();
        let expected = |item: &&Item| item.covariates["length"] == 1 && !item.covariates.contains_key("b");
        let small = |item: &&Item| item.task == "b2d" && item.covariates["length"].as_u64().unwrap() < 5;
        assert!(repeated.iter().all(|item| expected(item) || small(item)));
        // Seven unary decimal tasks have 9 numbers of one digit, and b2d has 1, 2, 4 and 8 numbers of up to four bits.
        assert_eq!(repeated.len(), 7 + 9 + 8 + 6 + 2);
    }

    #[test]
    fn items_come_round_robin() {
        let bench = bench(|o| {
            o.tasks = vec![Task::Mul, Task::Rev];
            o.lengths = "2,5".parse().unwrap();
            o.per_length = 2;
        });
        let ids: Vec<String> = bench.iter().map(|item| item.id).collect();
        let expected = ["mul/005/000", "rev/002/000", "mul/002/000", "rev/005/000"];
        assert_eq!(ids[..4], expected.map(|id| format!("arithmetic-bench/1/{id}")));
        assert_eq!(ids[4], "arithmetic-bench/1/mul/005/001");
        assert_eq!(ids.len(), 8);
    }

    #[test]
    fn the_first_order_is_that_of_stored_runs() {
        let today = bench(|o| o.per_length = 1);
        let mut stored = today.options();
        stored.as_object_mut().unwrap().remove("order");
        let then = ArithmeticBench::new(serde_json::from_value(stored.clone()).unwrap()).unwrap();
        assert_eq!((then.version(), then.options(), today.version()), ("1.4", stored, "2.4"));
        let lengths: Vec<Value> = then.iter().step_by(16).map(|item| item.covariates["length"].clone()).collect();
        assert_eq!(lengths[..6], [1, 65, 33, 97, 17, 81].map(Value::from));
        let by_id = |bench: &ArithmeticBench| {
            bench.iter().map(|item| (item.id.clone(), item)).collect::<std::collections::HashMap<_, _>>()
        };
        assert_eq!(by_id(&then), by_id(&today));
    }

    #[test]
    fn the_first_order_covers_the_range_of_lengths() {
        let all: Vec<usize> = (1..=100).collect();
        let order = by_reversed_bits(&all);
        assert_eq!(order[..6], [1, 65, 33, 97, 17, 81]);
        for n in 4..100 {
            let mean = order[..n].iter().sum::<usize>() as f64 / n as f64;
            assert!((35.0..=65.0).contains(&mean), "the first {n} lengths have mean {mean}");
        }
        let mut sorted = order;
        sorted.sort_unstable();
        assert_eq!(sorted, all);
        assert_eq!((by_reversed_bits(&[7]), by_reversed_bits(&[1, 2, 3])), (vec![7], vec![1, 3, 2]));
    }

    #[test]
    fn items_do_not_depend_on_what_else_is_asked() {
        let full = bench(|o| o.per_length = 3);
        let narrow = bench(|o| {
            o.tasks = vec![Task::Sub, Task::Add];
            o.lengths = Lengths::new([1, 7, 100]).unwrap();
        });
        let items: HashSet<String> = full.iter().map(|item| format!("{item:?}")).collect();
        for item in narrow.iter().take(3 * 6) {
            assert!(items.contains(&format!("{item:?}")), "{}", item.id);
        }
        for item in full.iter().step_by(211) {
            let task = item.task.parse().unwrap();
            let number = |name: &str| item.covariates[name].as_u64().unwrap() as usize;
            assert_eq!(full.item(task, number("length"), number("index")), item);
        }
    }

    #[test]
    fn published_hashes() {
        // These pin the items: a change here is a new items' version.
        let hash = |set, seed| bench(|o| (o.set, o.seed, o.per_length) = (set, seed, 1)).item_set_sha256();
        assert_eq!(hash(1, 1), "657bff612009cf35e9c59d308486b6c18de5a29d21fd20466ac6c665b56461ca");
        assert_eq!(hash(2, 1), "613aea9c99747a6fe229892aaeef2493169aef9829d3f310754c02b093aa2150");
        assert_ne!(hash(1, 2), hash(1, 1));
    }

    #[test]
    fn about_half_of_the_differences_are_negative() {
        let bench = bench(|o| o.tasks = vec![Task::Sub]);
        let negative = bench.iter().filter(|item| item.gold.starts_with('-')).count();
        assert!((430..=570).contains(&negative), "{negative}");
    }

    #[test]
    fn budgets_by_cell() {
        let answer = |task, length| budget(task, length).answer;
        assert_eq!([answer(Task::Mul, 64), answer(Task::Mul, 65)], [2_048, 4_096]);
        assert_eq!([answer(Task::D2b, 38), answer(Task::D2b, 39)], [2_048, 4_096]);
        assert_eq!([answer(Task::Space, 64), answer(Task::Space, 65)], [2_048, 4_096]);
        assert_eq!(answer(Task::Add, 100), 2_048);
        let bench = bench(|o| o.per_length = 2);
        for item in bench.iter() {
            let length = item.covariates["length"].as_u64().unwrap() as usize;
            assert!(item.gold.len() <= item.task.parse::<Task>().unwrap().longest_answer(length), "{}", item.id);
            assert!(item.budget.answer >= 12 * item.gold.len() && item.budget.thinking == 16_384);
        }
    }

    #[test]
    fn texts_to_continue_end_with_the_line_of_the_answer() {
        let chat = bench(|o| o.per_length = 1);
        let raw = bench(|o| (o.per_length, o.ends) = (1, Ends::AnswerLine));
        assert_eq!((chat.version(), raw.version(), &raw.options()["ends"]), ("2.4", "3.4", &json!("answer_line")));
        assert_eq!(serde_json::from_value::<Options>(raw.options()).unwrap(), raw.options);
        for (one, other) in chat.iter().zip(raw.iter()) {
            assert!(one.stop_strings.is_empty() && !one.keep_stop && other.keep_stop, "{}", other.id);
            assert!(other.budget.answer < one.budget.answer, "{}", other.id);
            let (length, gold) = (other.segments.question.len(), other.gold.len());
            assert!(other.budget.answer >= 64 + gold && other.budget.answer + 64 >= length, "{}", other.id);
            assert_eq!((one.id, one.segments, one.gold), (other.id, other.segments, other.gold));
        }
        let stops = ends_of_answer_line();
        let end = |text: &str| stops.iter().filter_map(|stop| text.find(stop.as_str()).map(|at| at + stop.len())).min();
        let cut = |text: &'static str| end(text).map_or(text, |at| &text[..at]);
        for (text, kept) in [
            // As base models answer.
            ("\n\nThe answer is: 10\n\nWhat is the answer to this puzzle?", "\n\nThe answer is: 10\n"),
            ("\n\n434*1=434\n\n434=434\n", "\n\n434*1=434\n"),
            ("\n\n346+351=?\n\n346+351=?\n", "\n\n346+351=?\n"),
            (" (5)\nHow many digits are in", " (5)\n"),
            (" 23.\n\nThe number 23 is a prime number.", " 23.\n"),
            (" 46 \n13+4=?", " 46 \n"),
            ("\n\nAnswer:\n\n697", "\n\nAnswer:\n\n697"),
        ] {
            assert_eq!(cut(text), kept);
        }
    }

    #[test]
    fn options_go_into_the_manifest() {
        let options = bench(|o| o.tasks = vec![Task::Add1, Task::B2d]).options();
        let expected =
            json!({"tasks": ["add_1", "b2d"], "lengths": "1-100", "per_length": 10, "set": 1, "seed": 1, "order": 2});
        assert_eq!(options, expected);
        // The usual scorer is not named, so that runs of before keep their identity.
        let other = bench(|o| o.scorer = Scorer::Final);
        assert_eq!(other.options()["profile"], "final");
        assert_eq!(serde_json::from_value::<Options>(other.options()).unwrap(), other.options);
        assert_eq!(serde_json::from_value::<Options>(expected).unwrap().scorer, Scorer::Boundary);
    }
}
