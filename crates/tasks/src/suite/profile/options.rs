//! Options of the profile.
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::form::{MOST_SHOTS, read_forms};
use super::shared_question::MOST_SHARED;
use super::skill::Source;
use super::{PromptForm, SharedQuestions, Skill, ThinkingBudgets, skills};
use crate::suite::gsm_symbolic::GsmSymbolic;
use crate::suite::nupa;
use crate::suite::registry::{Mode, OptionError};
use crate::suite::{FINAL, arithmetic_bench};

/// Field of stored options that caps on the tokens of thinking are in.
pub const THINKING: &str = "thinking";

/// Field of stored options that the questions of a comparison are in.
const SHARED_QUESTIONS: &str = "shared";

/// Questions of a skill at most, where no other number is asked for.
pub const BUDGET: usize = 48;

/// Ratio of the ends of an interval that is narrow enough, where no other is asked for.
pub const WIDTH: f64 = 1.5;

/// Most questions of a skill that can be asked for.
pub(super) const MOST_BUDGET: usize = 2_000;

/// Options that determine the questions, together with the answers.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileOptions {
    /// The skills, in the order of [`skills`].
    pub skills: Vec<&'static Skill>,
    /// Asks numbers in several notations once the limits are known.
    pub notations: bool,
    /// Asks questions under caps on the tokens of thinking once the limits are known.
    pub thinking: Option<ThinkingBudgets>,
    /// Questions of each skill at most.
    pub budget: usize,
    /// Ratio of the ends of the 50 % limit's interval at which a skill is finished.
    pub width: f64,
    /// The questions of a comparison with another model, instead of those that find limits.
    pub shared: Vec<SharedQuestions>,
    /// Seed of the questions.
    pub seed: u64,
    /// Forms of the prompts; of several, a screening finds the best one.
    pub forms: Vec<PromptForm>,
}

impl Default for ProfileOptions {
    fn default() -> Self {
        let skills = skills().iter().collect();
        ProfileOptions {
            skills,
            notations: true,
            thinking: None,
            budget: BUDGET,
            width: WIDTH,
            shared: Vec::new(),
            seed: 0,
            forms: vec![PromptForm { mode: Mode::Raw, shots: 0 }],
        }
    }
}

/// Options as a manifest has them.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    /// Tasks, or `all`.
    skills: Value,
    notations: bool,
    #[serde(default)]
    thinking: Option<ThinkingBudgets>,
    budget: usize,
    width: f64,
    #[serde(default)]
    shared: Vec<SharedQuestions>,
    seed: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    forms: Vec<String>,
    /// The form of runs before version 4: `completion` or `chat`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    adapter: Option<String>,
    /// Versions of the suites that make and score the questions.
    sources: Value,
    /// The scorer, of which there is one; written by a score with the setting `scorer`.
    #[serde(default)]
    profile: Option<String>,
}

fn sources() -> Value {
    // The order of those suites' items is none of the profile's.
    let (nupa, bench) = (nupa::QUESTIONS_VERSION, arithmetic_bench::QUESTIONS_VERSION);
    json!({"nupa": nupa, "arithmetic-bench": bench, "gsm-mini": GsmSymbolic::VERSION})
}

impl ProfileOptions {
    /// Checks the ranges.
    ///
    /// # Errors
    /// One that names the option.
    pub fn check(&self) -> Result<(), OptionError> {
        if self.skills.is_empty() && !self.notations && self.thinking.is_none() {
            return Err(OptionError::usage("the setting `skills` names no skill").help("leave it out for all skills"));
        }
        if !(1..=MOST_BUDGET).contains(&self.budget) {
            let message =
                format!("the setting `budget = {}` is not a number of questions from 1 to {MOST_BUDGET}", self.budget);
            return Err(OptionError::usage(message));
        }
        if let Some(form) = self.forms.iter().find(|form| form.shots > MOST_SHOTS) {
            let message = format!("the setting `shots = {}` is not a number from 0 to {MOST_SHOTS}", form.shots);
            return Err(OptionError::usage(message));
        }
        if !(self.width > 1.0 && self.width.is_finite()) {
            return Err(OptionError::usage(format!(
                "the setting `width = {}` is not a ratio above 1, e.g. 1.5 for limits between 4 and 6 digits",
                self.width
            )));
        }
        let is_known = |of: &SharedQuestions| {
            of.skill().is_some_and(|skill| self.skills.contains(&skill)) && of.is_of(&self.forms)
        };
        let known = self.shared.iter().all(is_known);
        let shared: usize = self.shared.iter().map(|of| of.count.min(MOST_SHARED)).sum();
        if !known || shared > MOST_SHARED {
            return Err(OptionError::usage("the setting `shared` names questions that there are not"));
        }
        Ok(())
    }

    /// False if no question gets worked examples: word problems have those of the paper's prompt in every form.
    pub(super) fn has_examples(&self) -> bool {
        self.notations || self.skills.iter().any(|skill| skill.source != Source::WordProblem)
    }

    /// Options that ask these questions alone, in the form of these.
    pub fn with_shared(&self, seed: u64, shared: Vec<SharedQuestions>) -> ProfileOptions {
        let is_asked = |skill: &&'static Skill| shared.iter().any(|of| of.task == skill.task);
        ProfileOptions {
            skills: skills().iter().filter(is_asked).collect(),
            notations: false,
            thinking: None,
            budget: BUDGET,
            width: WIDTH,
            shared,
            seed,
            ..self.clone()
        }
    }

    /// The options as they go into a run's manifest.
    pub fn to_json(&self) -> Value {
        let all = self.skills.len() == skills().len();
        let tasks: Vec<&str> = self.skills.iter().map(|skill| skill.task.as_str()).collect();
        let skills = if all { json!("all") } else { json!(tasks) };
        let forms: Vec<String> = self.forms.iter().map(PromptForm::to_string).collect();
        let mut options = json!({
            "skills": skills, "notations": self.notations, "budget": self.budget, "width": self.width, "seed": self.seed, "forms": forms,
            "sources": sources(),
        });
        // Runs without it keep the settings that they had before it existed.
        if let (Some(thinking), Some(fields)) = (&self.thinking, options.as_object_mut()) {
            fields.insert(THINKING.to_owned(), json!(thinking));
        }
        if let (false, Some(fields)) = (self.shared.is_empty(), options.as_object_mut()) {
            fields.insert(SHARED_QUESTIONS.to_owned(), json!(self.shared));
        }
        options
    }

    /// Reads [`ProfileOptions::to_json`].
    ///
    /// # Errors
    /// If something is missing or unknown, or the questions are those of other versions.
    pub fn from_json(options: &Value) -> Result<Self, OptionError> {
        let stored = Stored::deserialize(options).map_err(OptionError::unreadable)?;
        let names: Vec<&str> = match &stored.skills {
            Value::String(all) if all == "all" => skills().iter().map(|skill| skill.task.as_str()).collect(),
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
            other => return Err(OptionError::unreadable(format!("skills is {other}"))),
        };
        let forms = match stored.adapter.as_deref() {
            None => read_forms(&stored.forms)?,
            Some("completion") => vec![PromptForm { mode: Mode::Raw, shots: 0 }],
            Some("chat") => vec![PromptForm { mode: Mode::Chat, shots: 0 }],
            Some(other) => return Err(OptionError::unreadable(format!("adapter is {other}"))),
        };
        if let Some(profile) = stored.profile.filter(|profile| profile != FINAL) {
            return Err(OptionError::unreadable(format!("profile is {profile}")));
        }
        if stored.sources != sources() {
            let message =
                format!("its questions are of {}, and this version asks those of {}", stored.sources, sources());
            return Err(OptionError::unreadable(message));
        }
        let (skills, _) = select(&names).map_err(OptionError::unreadable)?;
        let notations = stored.notations;
        let options = ProfileOptions {
            skills,
            notations,
            thinking: stored.thinking,
            budget: stored.budget,
            width: stored.width,
            shared: stored.shared,
            seed: stored.seed,
            forms,
        };
        options.check().map_err(OptionError::unreadable)?;
        Ok(options)
    }
}

/// Name of the numbers in several notations among the skills.
const NOTATIONS: &str = "notations";

/// Skills of these names, each once, in the order of [`skills`], and whether the notations are among them.
///
/// # Errors
/// If one is unknown; the message names near ones.
pub(super) fn select(names: &[&str]) -> Result<(Vec<&'static Skill>, bool), super::SkillError> {
    let mut found: Vec<&'static Skill> = Vec::new();
    for name in names.iter().map(|name| name.trim()).filter(|name| *name != NOTATIONS) {
        found.extend(Skill::named(name)?);
    }
    let notations = names.iter().any(|name| name.trim() == NOTATIONS);
    Ok((skills().iter().filter(|skill| found.contains(skill)).collect(), notations))
}

#[cfg(test)]
mod tests {
    use super::super::Way;
    use super::*;

    #[test]
    fn options_are_read_back() {
        let all = ProfileOptions::default();
        assert_eq!(ProfileOptions::from_json(&all.to_json()).unwrap(), all);
        let (skills, notations) = select(&["from_words", "fractions", "add_Fraction"]).unwrap();
        assert_eq!((skills.len(), notations), (10, false), "the task of the family is not asked twice");
        assert_eq!(select(&["notations"]).unwrap(), (Vec::new(), true));
        let has_examples = |names: &[&str]| {
            let (skills, notations) = select(names).unwrap();
            ProfileOptions { skills, notations, ..ProfileOptions::default() }.has_examples()
        };
        assert!(has_examples(&["word-problems", "copy"]) && has_examples(&["word-problems", "notations"]));
        assert!(!has_examples(&["word-problems"]));
        let thinking = Some(ThinkingBudgets { caps: vec![64], way: Way::Switch { opened: Some("<think>".into()) } });
        assert!(all.to_json().get("thinking").is_none(), "the settings of earlier runs");
        assert!(all.to_json().get("shared").is_none());
        let forms = ["chat", "raw+5"].map(|form| form.parse().unwrap()).to_vec();
        let shared = Vec::new();
        let some = ProfileOptions { skills, notations, thinking, budget: 9, width: 2.0, shared, seed: 7, forms };
        assert_eq!(ProfileOptions::from_json(&some.to_json()).unwrap(), some);
        let mut other = some.to_json();
        other["sources"]["nupa"] = "0".into();
        assert!(ProfileOptions::from_json(&other).unwrap_err().message.contains("this version asks"));
        // Runs of before the screening were asked in one form.
        let mut before = all.to_json();
        before.as_object_mut().unwrap().remove("forms");
        assert!(ProfileOptions::from_json(&before).is_err());
        before["adapter"] = "completion".into();
        assert_eq!(ProfileOptions::from_json(&before).unwrap(), all);
        assert!(ProfileOptions { width: 1.0, ..some.clone() }.check().is_err());
        assert!(ProfileOptions { budget: 0, ..some.clone() }.check().is_err());
        let of = SharedQuestions {
            task: "copy".into(),
            length: 7,
            first: 3,
            count: 12,
            screened: 8,
            form: Some("raw+5".to_owned()),
        };
        let shared = some.with_shared(5, vec![of.clone()]);
        assert_eq!((shared.skills.len(), shared.seed, shared.forms.len()), (1, 5, 2));
        assert_eq!(ProfileOptions::from_json(&shared.to_json()).unwrap(), shared);
        let other = SharedQuestions { form: Some("chat+3".to_owned()), ..of.clone() };
        assert!(some.with_shared(5, vec![other]).check().is_err(), "a form that is none of the profile's");
        assert!(some.with_shared(5, vec![SharedQuestions { length: 101, ..of.clone() }]).check().is_err());
        let many = vec![SharedQuestions { count: 2_000, ..of }; 51];
        assert!(some.with_shared(5, many).check().is_err());
    }
}
