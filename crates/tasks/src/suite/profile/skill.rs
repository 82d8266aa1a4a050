//! The skills of the profile.
use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::suite::arithmetic_bench::Task;
use crate::suite::nupa::{Operation, Representation, TASKS, TaskId};

/// A group of skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// NUPA's tasks on integers.
    Integers,
    /// NUPA's tasks on decimal numbers.
    Floats,
    /// NUPA's tasks on fractions.
    Fractions,
    /// NUPA's tasks on scientific notation.
    Scientific,
    /// The tasks of Arithmetic-Bench.
    ArithmeticBench,
    WordProblems,
    /// Numbers in sentences.
    Text,
}

impl Family {
    /// All, in the order of tables.
    pub const ALL: [Family; 7] = [
        Family::Integers,
        Family::Floats,
        Family::Fractions,
        Family::Scientific,
        Family::ArithmeticBench,
        Family::WordProblems,
        Family::Text,
    ];

    /// Name in options.
    pub fn name(self) -> &'static str {
        match self {
            Family::Integers => "integers",
            Family::Floats => "floats",
            Family::Fractions => "fractions",
            Family::Scientific => "scientific",
            Family::ArithmeticBench => "arithmetic-bench",
            Family::WordProblems => "word-problems",
            Family::Text => "text",
        }
    }

    /// Heading for people.
    pub fn title(self) -> &'static str {
        match self {
            Family::Integers => "Integers (NUPA)",
            Family::Floats => "Decimals (NUPA)",
            Family::Fractions => "Fractions (NUPA)",
            Family::Scientific => "Scientific notation (NUPA)",
            Family::ArithmeticBench => "Arithmetic-Bench",
            Family::WordProblems => "Word problems",
            Family::Text => "Numbers in text",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Source of a skill's questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Nupa(TaskId),
    Bench(Task),
    WordProblem,
    FromWords,
    InText,
}

/// Something that a model can do with numbers up to some length.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// The task of its items.
    pub task: String,
    pub family: Family,
    /// Name for people inside its family.
    pub title: String,
    /// Lengths that can be asked: digits, or bits where the title says so.
    pub shortest: usize,
    pub longest: usize,
    /// Probability of a right answer without any knowledge.
    pub chance: f64,
    pub(super) source: Source,
}

/// Digits that English number words go up to here: a thousand million million and less.
const LONGEST_WORDS: usize = 18;
/// Digits of the numbers of word problems.
const LONGEST_PROBLEM: usize = 20;
/// Digits of numbers that are looked for in a sentence, and the numbers of a sentence.
const LONGEST_IN_TEXT: usize = 60;
pub(super) const IN_SENTENCE: usize = 3;

static SKILLS: LazyLock<Vec<Skill>> = LazyLock::new(|| {
    let mut skills: Vec<Skill> = TASKS.into_iter().map(nupa).chain(Task::ALL.into_iter().map(bench)).collect();
    let own = |task: &str, family, title: &str, longest, chance, source| Skill {
        task: task.to_owned(),
        family,
        title: title.to_owned(),
        shortest: 1,
        longest,
        chance,
        source,
    };
    skills.push(own(
        "word_problems",
        Family::WordProblems,
        "two to four steps",
        LONGEST_PROBLEM,
        0.0,
        Source::WordProblem,
    ));
    skills.push(own("from_words", Family::Text, "words to digits", LONGEST_WORDS, 0.0, Source::FromWords));
    let found = 1.0 / IN_SENTENCE as f64;
    skills.push(own("in_text", Family::Text, "find in a sentence", LONGEST_IN_TEXT, found, Source::InText));
    skills.sort_by_key(|skill| skill.family);
    skills
});

/// All skills, by family.
pub fn skills() -> &'static [Skill] {
    &SKILLS
}

fn nupa(task: TaskId) -> Skill {
    let chance = match task.operation {
        // One of the two operands.
        Operation::Max | Operation::MaxHard | Operation::Min | Operation::MinHard => 0.5,
        // The question as a fraction, where it cannot be reduced: two random numbers have no common divisor in 6/π² of cases.
        Operation::TrueDiv if task.representation == Representation::Integer => 0.6,
        Operation::GetDigit => 0.1,
        _ => 0.0,
    };
    Skill {
        task: task.to_string(),
        family: match task.representation {
            Representation::Integer => Family::Integers,
            Representation::Float => Family::Floats,
            Representation::Fraction => Family::Fractions,
            Representation::Scientific => Family::Scientific,
        },
        title: task.operation.title().replace('_', " "),
        shortest: 1,
        longest: task.longest(),
        chance,
        source: Source::Nupa(task),
    }
}

fn bench(task: Task) -> Skill {
    let title = match task {
        Task::Add => "a + b",
        Task::Sub => "a - b",
        Task::Mul => "a * b",
        Task::Div => "a / b, 2n by n digits",
        Task::Add1 => "a + one digit",
        Task::Sub1 => "a - one digit",
        Task::Mul1 => "a * one digit",
        Task::Div1 => "a / one digit",
        Task::Copy => "copy",
        Task::Rev => "reverse",
        Task::Box => "in brackets",
        Task::Space => "digits apart",
        Task::Length => "count digits",
        Task::Count => "count zeros",
        Task::B2d => "binary to decimal (bits)",
        Task::D2b => "decimal to binary",
    };
    Skill {
        task: task.to_string(),
        family: Family::ArithmeticBench,
        title: title.to_owned(),
        shortest: 1,
        longest: 100,
        chance: 0.0,
        source: Source::Bench(task),
    }
}

/// A name that is neither a skill nor a family.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no skill {name}; the nearest are {nearest}, and groups of skills are {}, notations", Family::ALL.map(Family::name).join(", "))]
pub struct SkillError {
    /// As given.
    pub name: String,
    nearest: String,
}

impl Skill {
    /// Skills of this name: a family, a task of items, or one of NUPA by its short name.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(name: &str) -> Result<Vec<&'static Skill>, SkillError> {
        if let Some(family) = Family::ALL.into_iter().find(|family| family.name() == name) {
            return Ok(skills().iter().filter(|skill| skill.family == family).collect());
        }
        if let Some(skill) = skills().iter().find(|skill| skill.task == name || skill.short_name() == name) {
            return Ok(vec![skill]);
        }
        let mut near: Vec<String> = skills().iter().map(Skill::short_name).collect();
        near.sort_by_key(|other| strsim::levenshtein(&other.to_lowercase(), &name.to_lowercase()));
        near.truncate(4);
        Err(SkillError { name: name.to_owned(), nearest: near.join(", ") })
    }

    /// The shortest name that is read back.
    pub fn short_name(&self) -> String {
        match self.source {
            Source::Nupa(task) => task.short_name(),
            _ => self.task.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_skill_has_a_name_of_its_own() {
        assert_eq!(skills().len(), 53 + 16 + 3);
        let names: HashSet<&str> = skills().iter().map(|skill| skill.task.as_str()).collect();
        assert_eq!(names.len(), skills().len());
        for skill in skills() {
            assert_eq!(Skill::named(&skill.task).unwrap(), [skill]);
            assert_eq!(Skill::named(&skill.short_name()).unwrap(), [skill]);
            assert!(skill.shortest <= skill.longest && (0.0..1.0).contains(&skill.chance));
        }
        let families: usize = Family::ALL.iter().map(|family| Skill::named(family.name()).unwrap().len()).sum();
        assert_eq!(families, skills().len());
        let error = Skill::named("add_Intger").unwrap_err().to_string();
        assert!(error.contains("add_Integer") && error.contains("word-problems"), "{error}");
    }
}
