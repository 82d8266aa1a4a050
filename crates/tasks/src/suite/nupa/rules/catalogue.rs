//! Rules by task, their prompts, traces and training texts.
use std::collections::BTreeMap;
use std::sync::LazyLock;

use earnest_answer::python::PythonValue;
use num_bigint::BigInt;

use super::super::{NupaError, Operation, Question, Representation, Second, TASKS, TaskId, prompt};
use super::machine::{Machine, RuleError};
use super::parser::parse;
use super::program::Program;

/// The text before a trace's answer.
const ANSWER: &str = "So the answer is ";

/// A rule: a Python program that solves a task on any of its operands.
#[derive(Debug)]
pub struct Rule {
    task: TaskId,
    source: &'static str,
    program: Program,
}

/// An execution of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleTrace {
    /// Effect of every executed line, then the answer.
    pub text: String,
    /// The rule's result.
    pub answer: String,
    /// The executed lines, 1-based, in the order in which an interpreter starts them.
    pub lines: Vec<usize>,
}

macro_rules! source {
    ($name:literal) => {
        include_str!(concat!("../../../../../../prompts/nupa_rules/", $name, ".py"))
    };
}

/// The rule text of a task, if it has a rule (Table 19, and the further tasks of the authors' repository).
fn source(task: TaskId) -> Option<&'static str> {
    use Operation as O;
    use Representation::{Float, Fraction, Integer, Scientific};
    Some(match (task.operation, task.representation) {
        (O::Add, Integer) => source!("add_integer"),
        (O::Add, Float) => source!("add_float"),
        (O::Add | O::AddEasy, Fraction) => source!("add_fraction"),
        (O::Add, Scientific) => source!("add_scientific"),
        (O::Sub, Integer) => source!("sub_integer"),
        (O::Sub, Float) => source!("sub_float"),
        (O::Sub, Fraction) => source!("sub_fraction"),
        (O::Sub, Scientific) => source!("sub_scientific"),
        (O::MultiplyHard | O::MultiplyEasy, Integer) => source!("multiply_integer"),
        (O::MultiplyHard | O::MultiplyEasy, Float) => source!("multiply_float"),
        (O::MultiplyHard | O::MultiplyEasy, Fraction) => source!("multiply_fraction"),
        (O::MultiplyHard | O::MultiplyEasy, Scientific) => source!("multiply_scientific"),
        (O::Max | O::MaxHard, Integer) => source!("max_integer"),
        (O::Max | O::MaxHard, Float) => source!("max_float"),
        (O::Max, Fraction) => source!("max_fraction"),
        (O::Max | O::MaxHard, Scientific) => source!("max_scientific"),
        (O::DigitMax, Integer) => source!("digit_max_integer"),
        (O::GetDigit, Integer) => source!("get_digit_integer"),
        (O::GetDigit, Float) => source!("get_digit_float"),
        (O::Length, Integer) => source!("length_integer"),
        (O::FloorDiv, Integer) => source!("floordiv_integer"),
        (O::Mod | O::ModEasy, Integer) => source!("mod_integer"),
        _ => return None,
    })
}

static RULES: LazyLock<BTreeMap<TaskId, Rule>> = LazyLock::new(|| {
    TASKS
        .iter()
        .filter_map(|&task| {
            let source = source(task)?;
            let program = parse(source).expect("every embedded rule is parsed by a test");
            Some((task, Rule { task, source, program }))
        })
        .collect()
});

/// The tasks that have a rule.
pub fn ruled_tasks() -> Vec<TaskId> {
    RULES.keys().copied().collect()
}

/// The rule of a task.
///
/// # Errors
/// [`NupaError::NoRule`] with the tasks that have one.
pub fn rule(task: TaskId) -> Result<&'static Rule, NupaError> {
    RULES.get(&task).ok_or_else(|| NupaError::NoRule {
        task,
        existing: RULES.keys().map(|task| format!("  {task}")).collect::<Vec<_>>().join("\n"),
    })
}

impl Rule {
    /// The Python text, complete and executable; its first function is the rule.
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// The rule's arguments for operands: texts, except a position, which is an integer.
    fn operands(&self, a: &str, b: Option<&str>) -> Vec<PythonValue> {
        let mut operands = vec![PythonValue::from(a)];
        if let Some(b) = b {
            let as_integer = BigInt::parse_bytes(b.as_bytes(), 10);
            operands.push(match (self.task.operation.second(), as_integer) {
                (Second::ShortInteger, Some(value)) => value.into(),
                _ => b.into(),
            });
        }
        operands
    }

    /// The answer that executing the rule gives.
    ///
    /// # Errors
    /// [`RuleError`] for operands that the task does not have.
    pub fn execute(&self, a: &str, b: Option<&str>) -> Result<String, RuleError> {
        Machine::new(&self.program, false).run(self.operands(a, b)).map(|(answer, ..)| answer)
    }

    /// Executes the rule and keeps what every line does.
    ///
    /// # Errors
    /// As [`Rule::execute`].
    pub fn execute_traced(&self, a: &str, b: Option<&str>) -> Result<RuleTrace, RuleError> {
        let (answer, mut text, lines) = Machine::new(&self.program, true).run(self.operands(a, b))?;
        text.push_str(ANSWER);
        text.push_str(&answer);
        Ok(RuleTrace { text, answer, lines })
    }

    /// The right completion of a question.
    ///
    /// # Errors
    /// As [`Rule::execute`].
    pub fn trace(&self, question: &Question) -> Result<String, RuleError> {
        Ok(self.execute_traced(&question.a, question.b.as_deref())?.text)
    }

    /// The prompt: instruction, rule, the question without its `=`, and the header of the response.
    pub fn prompt(&self, question: &str) -> String {
        let question = question.strip_suffix(" =").unwrap_or(question);
        let instruction = prompt::rule_following_instruction();
        format!("{instruction}\n\n{}\nQ: {question}\n\n## Response:\n", self.source)
    }
}

#[cfg(test)]
mod tests {
    use rayon::prelude::*;

    use super::super::super::{Cell, PairRules, Split};
    use super::*;

    #[test]
    fn every_named_task_has_a_rule() {
        assert_eq!(ruled_tasks().len(), 31);
        let message = rule("count_Integer".parse().unwrap()).unwrap_err().to_string();
        assert!(message.contains("floordiv_Integer_Integer_Integer"), "{message}");
    }

    #[test]
    fn rules_give_the_exact_answer() {
        const ITEMS: usize = 10_000;
        ruled_tasks().into_par_iter().for_each(|task| {
            let rule = rule(task).unwrap();
            let longest = task.longest();
            let mut cells: Vec<Cell> = (1..=longest)
                .map(|length| Cell::new(task, length, Split::Train, PairRules::default(), 5).unwrap())
                .collect();
            let mut checked = 0;
            while checked < ITEMS {
                for question in cells.iter_mut().filter_map(Iterator::next) {
                    let answer = rule.execute(&question.a, question.b.as_deref());
                    assert_eq!(
                        answer.as_deref(),
                        Ok(question.answer.as_str()),
                        "{task} {} {:?}",
                        question.a,
                        question.b
                    );
                    checked += 1;
                }
            }
        });
    }

    #[test]
    fn a_trace_shows_every_line_with_its_values() {
        let rule = rule("add_Integer".parse().unwrap()).unwrap();
        let trace = rule.execute_traced("1999", Some("7")).unwrap();
        let expected = "a = '1999'
b = '7'
result = ''
carry = 0
while '1999' != '' or '7' != '': True
total = int('0' + '999') + int('0' + '7') + 0 = 1006
result = str(1006 % 1000).zfill(3) + '' = '006'
carry = 1006 // 1000 = 1
a = '1'
b = ''
while '1' != '' or '' != '': True
total = int('0' + '1') + int('0' + '') + 1 = 2
result = str(2 % 1000).zfill(3) + '006' = '002006'
carry = 2 // 1000 = 0
a = ''
b = ''
while '' != '' or '' != '': False
result = (str(0) + '002006').lstrip('0') = '2006'
if '2006' == '': False
return '2006'
So the answer is 2006";
        assert_eq!(trace.text, expected);
    }

    #[test]
    fn impossible_operands_end_with_an_error() {
        for (task, a, b) in [
            ("add_Integer", "x", Some("1")),
            ("add_Float", "1", Some("2")),
            ("add_Integer", "1", None),
            ("floordiv_Integer", "1", Some("0")),
            ("get_digit_Integer", "123", Some("7")),
            ("add_Fraction", "1/0", Some("0/0")),
            ("max_ScientificNotation", "", Some("é")),
        ] {
            assert!(rule(task.parse().unwrap()).unwrap().execute(a, b).is_err(), "{task}");
        }
    }

    #[test]
    fn rule_texts_are_pinned() {
        use sha2::{Digest, Sha256};
        let mut all = Sha256::new();
        for task in ruled_tasks() {
            all.update(rule(task).unwrap().prompt("1 + 1 ="));
        }
        let digest: String = all.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, "e42130c8612a31af978337aa990728a260285386dcfcc842ed81912b40bf363b");
    }

    #[test]
    fn prompts_end_at_the_response() {
        let task: TaskId = "length_Integer".parse().unwrap();
        let text = rule(task).unwrap().prompt(&prompt::question(task, "12", None, Default::default()));
        assert!(text.ends_with("Q: Directly return the answer as an integer without any comma separator, like 123 . The total number of digits of 12\n\n## Response:\n"));
        assert!(text.contains("def length(a):\n    n = 0\n"));
    }
}
