//! Registration of the profile.
use serde_json::Value;

use super::options::select;
use super::{
    NAME, Notation, ProfileOptions, ProfileSuite, PromptForm, Skill, ThinkingBudgets, ThinkingTask, VERSION, skills,
    thinking,
};
use crate::suite::registry::{
    BuiltIn, Card, Channel, Choice, Host, Mode, OptionError, OptionSpec, OptionValues, Takes,
};
use crate::suite::{FINAL, Items, Suite};

const OPTIONS: [OptionSpec; 6] = [
    OptionSpec::list(
        "skills",
        "SKILLS",
        "Only these skills, separated by commas: tasks, or groups (integers, floats, fractions, scientific, arithmetic-bench, \
         word-problems, text, notations) [default: all]",
    )
    .under("Items"),
    OptionSpec::integer("budget", "N", "Questions of each skill at most [default: 48]").under("Items"),
    OptionSpec::checked(
        "width",
        "RATIO",
        "Ratio of the ends of the 50 % limit's interval at which a skill is finished [default: 1.5]",
        check_width,
    )
    .under("Items"),
    OptionSpec::list(
        "thinking-budgets",
        "TOKENS",
        "Also ask products and word problems beyond the limit without thinking and under these caps on the tokens of thinking, e.g. 256,1k,4k,16k",
    )
    .under("Items"),
    OptionSpec::integer(
        "shots",
        "N",
        "Worked examples before each question, 0 to 8 [default: whichever of 0 and 3 a screening finds better]",
    )
    .under("Items"),
    OptionSpec::SEED,
];

/// Registration of the suite.
pub struct Registration;

fn check_width(text: &str) -> Result<(), OptionError> {
    match text.parse::<f64>() {
        Ok(_) => Ok(()),
        Err(_) => Err(OptionError::usage(format!("'{text}' is not a number, e.g. 1.5"))),
    }
}

impl BuiltIn for Registration {
    fn card(&self) -> Card {
        Card {
            options: &OPTIONS,
            tables: &["limits", "accuracy"],
            adaptive: true,
            ..Card::new(
                NAME,
                VERSION,
                "Profile",
                "Kontsevich and Tyler, Bayesian adaptive estimation of psychometric slope and threshold (Vision Research 39, 1999)",
                "up to how many digits 72 skills reach, asked adaptively (`earnest profile`)",
            )
        }
    }

    fn tasks(&self) -> Vec<String> {
        let notations = Notation::ALL.into_iter().map(Notation::task);
        let thinking = ThinkingTask::ALL.into_iter().map(ThinkingTask::task);
        let screening = all_forms().into_iter().map(PromptForm::task);
        skills().iter().map(Skill::short_name).chain(notations).chain(thinking).chain(screening).collect()
    }

    fn items(&self) -> Option<usize> {
        None
    }

    fn items_depend_on(&self) -> String {
        let most = ProfileSuite::new(ProfileOptions { forms: all_forms(), ..ProfileOptions::default() })
            .map_or(0, |suite| suite.chooser().map_or(0, |rounds| rounds.most()));
        format!("the answers: at most {most} with default options")
    }

    fn task(&self, name: &str) -> Result<String, OptionError> {
        if let Some(notation) = Notation::of_task(name) {
            return Ok(notation.task());
        }
        if let Some(kind) = ThinkingTask::of_task(name) {
            return Ok(kind.task());
        }
        if let Some(form) = PromptForm::of_task(name) {
            return Ok(form.task());
        }
        match Skill::named(name).map_err(OptionError::usage)?[..] {
            [skill] => Ok(skill.task.clone()),
            _ => Err(OptionError::usage(format!("{name} is a group of tasks"))),
        }
    }

    fn configure(&self, values: &OptionValues, _: &dyn Host) -> Result<Box<dyn Choice>, OptionError> {
        let mut options = ProfileOptions { seed: values.seed, ..ProfileOptions::default() };
        if let Some(names) = values.list("skills")? {
            (options.skills, options.notations) = select(&names).map_err(OptionError::usage)?;
        }
        options.budget = values.parsed("budget")?.unwrap_or(options.budget);
        options.width = values.parsed("width")?.unwrap_or(options.width);
        let caps = values.list("thinking-budgets")?.map(|caps| thinking::caps(&caps)).transpose()?;
        let shots = values.parsed("shots")?;
        if let Some(shots) = shots {
            options.forms = vec![PromptForm { mode: Mode::Raw, shots }];
        }
        options.check()?;
        Ok(Box::new(Chosen { options, caps, shots }))
    }

    fn chosen(&self, _: &Value) -> Vec<String> {
        vec![FINAL.to_owned()]
    }

    fn stored(&self, options: &Value, _: &dyn Host) -> Result<Suite, OptionError> {
        Ok(Suite::new(ProfileSuite::new(ProfileOptions::from_json(options)?)?))
    }
}

/// The forms of a model that takes all.
fn all_forms() -> Vec<PromptForm> {
    PromptForm::of(Mode::Chat, Takes { chat: true, turns: true, raw: true }, None)
}

struct Chosen {
    options: ProfileOptions,
    /// Number of worked examples, if it is given.
    shots: Option<usize>,
    /// Caps on the tokens of thinking, if they are asked for.
    caps: Option<Vec<usize>>,
}

impl Choice for Chosen {
    fn suite(&self, channel: Channel) -> Result<Suite, OptionError> {
        let thinking = self.caps.clone().map(|caps| ThinkingBudgets::new(caps, channel.thinking));
        let mut forms = PromptForm::of(channel.mode, channel.takes, self.shots);
        if self.shots.is_none() && !self.options.has_examples() {
            forms.retain(|form| form.shots == 0);
        }
        let options = ProfileOptions { thinking, forms, ..self.options.clone() };
        Ok(Suite::new(ProfileSuite::new(options)?))
    }
}
