//! Accuracy against a cap on the tokens of thinking: products and word problems a little beyond the limit.
use num_bigint::BigInt;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::options::MOST_BUDGET;
use super::{NAME, text};
use crate::suite::nupa::DigitSource;
use crate::suite::registry::{Mode, OptionError, TemplateThinking};
use crate::suite::{Answered, Budget, Item, RoundAnswer, Score, Segments, score_final};
use earnest_answer::reader::Form;

/// Questions of each kind.
pub const THINKING_PAIRS: usize = 24;

/// Ends of the caps that can be asked for.
const SMALLEST_CAP: usize = 16;
const LARGEST_CAP: usize = 1 << 20;

/// Begins the tasks of these items.
const TASK: &str = "thinking_";

/// Covariate with the cap; 0 is no thinking.
const CAP: &str = "cap";

/// Tokens for an answer without thinking, beyond two a digit.
const SPARE: usize = 64;

/// Longest numbers that are asked.
const LONGEST: usize = 12;

/// Length of products for models whose limit is not known.
const SHORTEST_PRODUCT: usize = 2;

/// Skills whose limits give the lengths of products, the preferred one first.
const PRODUCTS: [&str; 2] = ["multiply_hard_Integer_Integer_Integer", "mul"];
const WORD_PROBLEMS: [&str; 1] = ["word_problems"];

/// Way in which a model thinks or does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "way")]
pub enum Way {
    /// The prompt asks for steps, or for the number alone.
    Steps,
    /// The switch of the chat template; prompts with thinking on end with the marker that opens it, if they have one.
    Switch { opened: Option<String> },
    /// The chat template has the model think, without a switch.
    Always,
}

/// Caps on the tokens of an answer with its thinking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThinkingBudgets {
    /// Ascending.
    pub caps: Vec<usize>,
    #[serde(flatten)]
    pub way: Way,
}

/// A kind of questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingTask {
    Products,
    WordProblems,
}

impl ThinkingTask {
    /// All, in the order of tables.
    pub const ALL: [ThinkingTask; 2] = [ThinkingTask::Products, ThinkingTask::WordProblems];

    fn name(self) -> &'static str {
        match self {
            ThinkingTask::Products => "products",
            ThinkingTask::WordProblems => "word_problems",
        }
    }

    /// Name for people.
    pub fn title(self) -> &'static str {
        match self {
            ThinkingTask::Products => "products",
            ThinkingTask::WordProblems => "word problems",
        }
    }

    /// Task of its items.
    pub fn task(self) -> String {
        format!("{TASK}{}", self.name())
    }

    /// The kind of a task; none of other tasks.
    pub fn of_task(task: &str) -> Option<Self> {
        let name = task.strip_prefix(TASK)?;
        ThinkingTask::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Tasks of the skills whose limit decides the length.
    pub(super) fn skills(self) -> &'static [&'static str] {
        match self {
            ThinkingTask::Products => &PRODUCTS,
            ThinkingTask::WordProblems => &WORD_PROBLEMS,
        }
    }

    /// Length of the questions: the first one beyond the 50 % limit, where there is something to gain.
    pub(super) fn length(self, limit: f64) -> usize {
        let shortest = if self == ThinkingTask::Products { SHORTEST_PRODUCT } else { 1 };
        if limit.is_finite() { (limit as usize + 1).clamp(shortest, LONGEST) } else { LONGEST }
    }

    /// Question and answer, which depend on seed, length and number alone; word problems are none of the skill's own.
    fn asked(self, seed: u64, length: usize, index: usize) -> Option<(String, String)> {
        match self {
            ThinkingTask::Products => {
                let mut random = DigitSource::named(&format!("profile thinking {length}/{index} seed {seed}"));
                let mut number = || {
                    let mut text = String::with_capacity(length);
                    random.nonzero_digit(&mut text);
                    random.digits(length - 1, &mut text);
                    text
                };
                let (a, b) = (number(), number());
                let value = |digits: &str| BigInt::parse_bytes(digits.as_bytes(), 10);
                Some((format!("What is {a} * {b}?"), (value(&a)? * value(&b)?).to_string()))
            }
            ThinkingTask::WordProblems => {
                let asked = text::word_problem(seed, length, MOST_BUDGET + index)?;
                Some((asked.question, asked.answer))
            }
        }
    }
}

/// A cap for people: `off`, `256`, `1k`.
pub fn cap_text(cap: Option<usize>) -> String {
    match cap {
        None => "off".to_owned(),
        Some(cap) if cap.is_multiple_of(1_024) => format!("{}k", cap / 1_024),
        Some(cap) => cap.to_string(),
    }
}

/// The cap of an item of these tasks, none without thinking.
pub fn cap_of(item: &std::collections::BTreeMap<String, serde_json::Value>) -> Option<Option<usize>> {
    let cap = usize::try_from(item.get(CAP)?.as_u64()?).ok()?;
    Some((cap > 0).then_some(cap))
}

/// Reads caps: tokens, with `k` for 1,024. `off`, which is always asked, may be among them.
///
/// # Errors
/// One that names the option and the cap.
pub(super) fn caps(given: &[&str]) -> Result<Vec<usize>, OptionError> {
    let mut found = Vec::new();
    for text in given.iter().map(|text| text.trim()).filter(|text| *text != "off") {
        let (digits, unit) = text.strip_suffix(['k', 'K']).map_or((text, 1), |digits| (digits, 1_024));
        let cap = digits.parse::<usize>().ok().and_then(|number| number.checked_mul(unit));
        let Some(cap) = cap.filter(|cap| (SMALLEST_CAP..=LARGEST_CAP).contains(cap)) else {
            return Err(OptionError::usage(format!(
                "setting `thinking_budgets`: '{text}' is not a number of tokens from {SMALLEST_CAP} to {LARGEST_CAP}, e.g. 256 or 4k"
            )));
        };
        found.push(cap);
    }
    found.sort_unstable();
    found.dedup();
    if found.is_empty() {
        return Err(
            OptionError::usage("the setting `thinking_budgets` names no number of tokens").help("e.g. 256,1k,4k,16k")
        );
    }
    Ok(found)
}

impl ThinkingBudgets {
    /// The caps, for a template that knows thinking or for prompts that ask for steps.
    pub fn new(caps: Vec<usize>, thinking: Option<TemplateThinking>) -> Self {
        let way = match thinking {
            None => Way::Steps,
            Some(TemplateThinking { switch: true, opened }) => Way::Switch { opened: opened.map(str::to_owned) },
            Some(_) => Way::Always,
        };
        ThinkingBudgets { caps, way }
    }

    /// Number of items at most.
    pub(super) fn most(&self) -> usize {
        ThinkingTask::ALL.len() * THINKING_PAIRS * (1 + self.caps.len())
    }

    /// A question under a cap, or without thinking; none without thinking where a template always thinks.
    fn item(
        &self,
        (seed, mode): (u64, Mode),
        kind: ThinkingTask,
        cap: Option<usize>,
        (length, index): (usize, usize),
    ) -> Option<Item> {
        if cap.is_none() && self.way == Way::Always {
            return None;
        }
        let (question, gold) = kind.asked(seed, length, index)?;
        // What a template opens and switches is a conversation, in whatever form the rest is asked.
        let mode = if self.way == Way::Steps { mode } else { Mode::Chat };
        let (pair, under) = (format!("{length}/{index}"), cap_text(cap));
        let mut item =
            Item::plain(format!("{NAME}/thinking/{}/{pair}/{under}", kind.name()), kind.task(), &question, gold);
        item.cluster = format!("thinking/{}/{pair}", kind.name());
        item.covariates = [("length", length), (CAP, cap.unwrap_or(0)), ("pair", index)]
            .into_iter()
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect();
        let tokens = cap.unwrap_or(2 * length + SPARE);
        item.budget = Budget { answer: tokens, thinking: tokens };
        item.segments = self.segments(mode, cap.is_some(), question);
        item.segments.mode = Some(mode);
        item.stop_strings = match (mode, cap) {
            (Mode::Chat, _) => Vec::new(),
            (Mode::Raw, None) => vec!["\n".to_owned()],
            (Mode::Raw, Some(_)) => vec!["\nQ:".to_owned()],
        };
        Some(item)
    }

    /// The prompt. Raw ones are those of Kojima et al., Large language models are zero-shot reasoners (2022).
    fn segments(&self, mode: Mode, thinks: bool, question: String) -> Segments {
        if mode == Mode::Raw {
            let lead = if thinks { "Let's think step by step." } else { "The answer is" };
            return Segments { raw: Some(format!("Q: {question}\nA: {lead}")), ..Segments::question(question) };
        }
        let (request, thinking) = match (&self.way, thinks) {
            (Way::Steps, false) => ("Answer with the number only.", None),
            (Way::Steps, true) => ("Think step by step, then give the answer as a number at the end.", None),
            (Way::Switch { .. }, _) => ("Give the answer as a number.", Some(thinks)),
            (Way::Always, _) => ("Give the answer as a number.", None),
        };
        Segments { thinking, ..Segments::question(format!("{question}\n{request}")) }
    }

    /// Marker with which an item's prompt opened the thinking.
    pub(super) fn opened(&self, item: &Item) -> Option<&str> {
        match &self.way {
            Way::Switch { opened } if item.segments.thinking == Some(true) => opened.as_deref(),
            _ => None,
        }
    }
}

/// Scores by the final answer.
pub(super) fn score(kind: ThinkingTask, item: &Item, answered: &Answered<'_>) -> Score {
    score_final(item, if kind == ThinkingTask::Products { Form::Integer } else { Form::Number }, answered)
}

/// Id of the random numbers of an item: the same under every cap, so that a completion under a larger cap goes on where the cut one ended.
pub(super) fn draws(item: &Item) -> &str {
    item.id.rsplit_once('/').map_or(&item.id, |(question, _)| question)
}

/// Rounds over the caps. An answer that was not cut is the answer under every larger cap, so only cut ones are asked again.
pub(super) struct CapRounds {
    budgets: ThinkingBudgets,
    seed: u64,
    mode: Mode,
    lengths: Vec<usize>,
    /// Index of the last round's cap.
    index: usize,
    /// Questions of the last round, before all others of it.
    open: Vec<(ThinkingTask, usize)>,
}

impl CapRounds {
    /// Before the first round.
    pub fn new(budgets: ThinkingBudgets, seed: u64, mode: Mode) -> Self {
        CapRounds { budgets, seed, mode, lengths: Vec::new(), index: 0, open: Vec::new() }
    }

    /// The first round: every question under the smallest cap, then without thinking. `lengths` are those of [`ThinkingTask::ALL`].
    pub fn first(&mut self, lengths: Vec<usize>) -> Vec<Item> {
        self.lengths = lengths;
        self.open =
            ThinkingTask::ALL.into_iter().flat_map(|kind| (0..THINKING_PAIRS).map(move |at| (kind, at))).collect();
        let off = self.asked(None);
        self.under_cap().into_iter().chain(off).collect()
    }

    /// The next round, after the answers to the last one.
    pub fn next(&mut self, answers: &[Option<RoundAnswer>]) -> Vec<Item> {
        let mut answers = answers.iter();
        self.open.retain(|_| answers.next().is_some_and(|answer| answer.is_some_and(|answer| answer.cut)));
        self.index += 1;
        self.under_cap()
    }

    fn under_cap(&mut self) -> Vec<Item> {
        match self.budgets.caps.get(self.index) {
            Some(&cap) => self.asked(Some(cap)),
            None => Vec::new(),
        }
    }

    fn asked(&self, cap: Option<usize>) -> Vec<Item> {
        let item = |&(kind, index): &(ThinkingTask, usize)| {
            let length = self.lengths.get(kind as usize).copied()?;
            self.budgets.item((self.seed, self.mode), kind, cap, (length, index))
        };
        self.open.iter().filter_map(item).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budgets(way: Way) -> ThinkingBudgets {
        ThinkingBudgets { caps: vec![64, 1_024], way }
    }

    fn answer(correct: bool, cut: bool) -> Option<RoundAnswer> {
        Some(RoundAnswer { correct, cut })
    }

    #[test]
    fn caps_are_read() {
        assert_eq!(caps(&["4k", "off", "256", " 4096"]).unwrap(), [256, 4_096]);
        for wrong in [&["off"][..], &["k"], &["0"], &["2 k"], &["99999999999999999999k"], &["-1"], &[]] {
            let error = caps(wrong).unwrap_err();
            assert!(error.message.contains("`thinking_budgets`"), "{wrong:?}: {}", error.message);
        }
        assert_eq!([None, Some(256), Some(16_384)].map(cap_text), ["off", "256", "16k"]);
    }

    #[test]
    fn only_cut_answers_go_on_under_a_larger_cap() {
        let mut cap_rounds = CapRounds::new(budgets(Way::Steps), 1, Mode::Chat);
        let first = cap_rounds.first(vec![3, 2]);
        assert_eq!(first.len(), 4 * THINKING_PAIRS);
        assert!(first[..2 * THINKING_PAIRS].iter().all(|item| item.budget.answer == 64));
        let mut answers = vec![answer(true, false); 4 * THINKING_PAIRS];
        answers[1] = answer(false, true);
        answers[2] = None;
        answers[THINKING_PAIRS] = answer(true, true);
        // Cut without thinking: nothing to go on with.
        answers[3 * THINKING_PAIRS] = answer(true, true);
        let second = cap_rounds.next(&answers);
        let ids: Vec<&str> = second.iter().map(|item| item.id.as_str()).collect();
        assert_eq!(ids, ["profile/thinking/products/3/1/1k", "profile/thinking/word_problems/2/0/1k"]);
        assert_eq!(second[0].segments, first[1].segments);
        assert_eq!(draws(&second[0]), draws(&first[1]));
        assert_ne!(draws(&second[0]), draws(&first[2]));
        assert!(cap_rounds.next(&[answer(true, true), answer(true, true)]).is_empty(), "there is no larger cap");
    }

    #[test]
    fn prompts_turn_thinking_on_and_off_or_ask_for_steps() {
        let ask = |way, mode, cap| budgets(way).item((1, mode), ThinkingTask::Products, cap, (2, 0));
        let switch = || Way::Switch { opened: None };
        let [on, off] = [Some(64), None].map(|cap| ask(switch(), Mode::Chat, cap).unwrap().segments);
        assert_eq!((on.thinking, off.thinking, &on.question), (Some(true), Some(false), &off.question));
        let [on, off] = [Some(64), None].map(|cap| ask(Way::Steps, Mode::Chat, cap).unwrap().segments);
        assert!(on.question.contains("step by step") && !off.question.contains("step") && on.thinking.is_none());
        let raw = ask(Way::Steps, Mode::Raw, Some(64)).unwrap().segments.raw.unwrap();
        assert!(raw.ends_with("\nA: Let's think step by step."), "{raw}");
        assert!(ask(Way::Always, Mode::Chat, None).is_none() && ask(Way::Always, Mode::Chat, Some(64)).is_some());
    }

    #[test]
    fn thinking_is_no_answer() {
        let opened = |way, cap| {
            let budgets = budgets(way);
            let item = budgets.item((1, Mode::Chat), ThinkingTask::Products, cap, (2, 0)).unwrap();
            budgets.opened(&item).map(str::to_owned)
        };
        let switch = || Way::Switch { opened: Some("<think>".into()) };
        assert_eq!(opened(switch(), Some(64)).as_deref(), Some("<think>"));
        assert_eq!((opened(switch(), None), opened(Way::Steps, Some(64))), (None, None));
        for kind in ThinkingTask::ALL {
            let item = budgets(switch()).item((1, Mode::Chat), kind, Some(64), (2, 0)).unwrap();
            let right = |completion: &str| score(kind, &item, &Answered { completion, truncated: false }).correct;
            let gold = &item.gold;
            assert!(right(&format!("<think>17, or 18?</think>\nThe answer is {gold}.")) && right(gold));
            assert!(!right(&format!("<think>It is {gold}")), "the thinking did not end");
        }
    }

    #[test]
    fn questions_are_beyond_the_limit_and_the_same_again() {
        let length = |kind: ThinkingTask, limit| kind.length(limit);
        assert_eq!(length(ThinkingTask::Products, 0.0), 2);
        assert_eq!(length(ThinkingTask::Products, 2.7), 3);
        assert_eq!(length(ThinkingTask::WordProblems, 0.0), 1);
        assert_eq!(length(ThinkingTask::WordProblems, f64::INFINITY), LONGEST);
        for kind in ThinkingTask::ALL {
            assert_eq!(ThinkingTask::of_task(&kind.task()), Some(kind));
            assert!(kind.skills().iter().all(|name| super::super::Skill::named(name).is_ok()), "{kind:?}");
            for length in [2, LONGEST] {
                assert_eq!(kind.asked(1, length, 3), kind.asked(1, length, 3));
                assert_ne!(kind.asked(1, length, 3), kind.asked(2, length, 3));
            }
        }
        assert_eq!(ThinkingTask::of_task("thinking_"), None);
    }
}
