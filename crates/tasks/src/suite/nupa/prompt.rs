//! The question texts (appendix A.2), read from `prompts/nupa.json`.
use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::answer::AnswerForm;

use super::{Operation, Representation, TASKS, TaskId};

/// Spelling of the `min` prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Wording {
    /// `minimal`.
    #[default]
    Corrected,
    /// `mininal`, as in the authors' program.
    Reference,
}

#[derive(Deserialize)]
struct PromptData {
    format: BTreeMap<String, String>,
    task: BTreeMap<String, String>,
    system: String,
    rule_following: String,
}

/// A question text cut at its operands.
struct Template {
    before_a: String,
    between: String,
    after_b: Option<String>,
}

struct Prompts {
    templates: BTreeMap<TaskId, Template>,
    system: String,
    rule_following: String,
}

const SOURCE: &str = include_str!("../../../../../prompts/nupa.json");

static PROMPTS: LazyLock<Prompts> = LazyLock::new(|| {
    let data: PromptData = serde_json::from_str(SOURCE).expect("the embedded prompts are checked by a test");
    let templates = TASKS
        .iter()
        .map(|&task| {
            let format = &data.format[form_name(task.answer_form())];
            let text = format!("{format} {}", data.task[prompt_name(task.operation)]);
            let (before, rest) = text.split_once("{a}").expect("every task prompt has a first operand");
            let (between, after_b) = match rest.split_once("{b}") {
                Some((between, after)) => (between, Some(after.to_string())),
                None => (rest, None),
            };
            let template = if (task.operation, task.representation) == (Operation::TrueDiv, Representation::Fraction) {
                Template {
                    before_a: format!("{before}("),
                    between: format!("){between}("),
                    after_b: after_b.map(|after| format!("){after}")),
                }
            } else {
                Template { before_a: before.into(), between: between.into(), after_b }
            };
            (task, template)
        })
        .collect();
    Prompts { templates, system: data.system, rule_following: data.rule_following }
});

fn form_name(form: AnswerForm) -> &'static str {
    match form {
        AnswerForm::Integer => "Integer",
        AnswerForm::Float => "Float",
        AnswerForm::Fraction => "Fraction",
        AnswerForm::Scientific => "ScientificNotation",
    }
}

fn prompt_name(operation: Operation) -> &'static str {
    match operation {
        Operation::AddEasy => "add",
        Operation::MultiplyEasy | Operation::MultiplyHard => "multiply",
        Operation::ModEasy => "mod",
        Operation::MaxHard => "max",
        Operation::MinHard => "min",
        other => other.title(),
    }
}

/// The whole question: format prompt, a space, task prompt, ending with ` =`. `b` is left out where the task has none.
pub fn question(task: TaskId, a: &str, b: Option<&str>, wording: Wording) -> String {
    let template = &PROMPTS.templates[&task];
    let mut text = String::with_capacity(template.before_a.len() + template.between.len() + a.len() + 160);
    text.push_str(&template.before_a);
    if wording == Wording::Reference && matches!(task.operation, Operation::Min | Operation::MinHard) {
        text = text.replace("minimal", "mininal");
    }
    text.push_str(a);
    text.push_str(&template.between);
    if let Some(after) = &template.after_b {
        text.push_str(b.unwrap_or_default());
        text.push_str(after);
    }
    text
}

/// The operands in a question as [`question`] writes it, in either wording, and what follows it; none for any other text.
pub(super) fn operands(task: TaskId, text: &str) -> Option<(&str, Option<&str>, &str)> {
    let template = &PROMPTS.templates[&task];
    let rest = text
        .strip_prefix(template.before_a.as_str())
        .or_else(|| text.strip_prefix(template.before_a.replace("minimal", "mininal").as_str()))?;
    let (a, rest) = rest.split_once(template.between.as_str())?;
    match &template.after_b {
        Some(after) => rest.split_once(after.as_str()).map(|(b, rest)| (a, Some(b), rest)),
        None => Some((a, None, rest)),
    }
}

/// The system message for chat models (appendix A.1.3), with the pattern of the task's answer.
pub fn system_message(task: TaskId) -> String {
    let pattern = format!("r\"{}\"", task.answer_form().published_pattern());
    PROMPTS.system.replace("{pattern}", &pattern)
}

/// The instruction line of rule-following prompts.
pub fn rule_following_instruction() -> &'static str {
    &PROMPTS.rule_following
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::super::Second;
    use super::*;

    fn sha256(text: &str) -> String {
        Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn questions_show_an_example_of_their_form() {
        for task in TASKS {
            let shown = format!("like {} .", task.answer_form().shown());
            assert!(question(task, "12", Some("7"), Wording::Corrected).contains(&shown), "{task}: {shown}");
        }
    }

    #[test]
    fn rendered_prompts_are_pinned() {
        let mut all = String::new();
        for task in TASKS {
            let b = (task.operation.second() != Second::None).then_some("7");
            for wording in [Wording::Corrected, Wording::Reference] {
                all += &question(task, "12", b, wording);
                all.push('\n');
            }
            all += &system_message(task);
            all.push('\n');
        }
        assert_eq!(sha256(&all), "683299b254873fb359ee37715c8e920e9ffc310facaf7245f14dc9c48d0ed4cc");
        assert_eq!(sha256(SOURCE), "73979fd1674c87b20e9bb8115b3f0d2e4a3a8f36c0c74b89936137beea07c826");
    }

    #[test]
    fn operands_are_read_back() {
        for task in TASKS {
            let b = (task.operation.second() != Second::None).then_some("7");
            for wording in [Wording::Corrected, Wording::Reference] {
                let text = question(task, "12", b, wording) + " 5";
                assert_eq!(operands(task, &text), Some(("12", b, " 5")), "{text}");
            }
            assert_eq!(operands(task, "Add two numbers: 12 + 7 = 19"), None);
        }
    }

    #[test]
    fn questions_end_with_an_equals_sign() {
        let task = "truediv_Fraction".parse().unwrap();
        assert!(question(task, "3/8", Some("2/5"), Wording::Corrected).ends_with("as a fraction. (3/8) / (2/5) ="));
        let task = "min_Integer".parse().unwrap();
        assert!(question(task, "3", Some("2"), Wording::Reference).contains("Get the mininal number: 3 and 2 ="));
        let task = "get_digit_Float".parse().unwrap();
        assert!(system_message(task).ends_with(r#"match the format r"\d+"."#));
    }
}
