//! Formulas of mixed models in the language of R and lme4.

mod lexer;
mod parser;
mod terms;

use std::str::FromStr;

use thiserror::Error;

pub use terms::Terms;

/// A formula: `response ~ fixed effects + (random effects | group)`.
///
/// ```
/// use earnest_stats::mixed::Formula;
///
/// let formula: Formula = "correct ~ model*variant + (1+variant|template) + (1|item)".parse().unwrap();
/// assert_eq!(formula.random.len(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Formula {
    /// Column of outcomes.
    pub response: String,
    /// Fixed effects.
    pub fixed: Terms,
    /// Random effects, one for each group of `(effects | group)`; `(1 | a/b)` makes two.
    pub random: Vec<RandomTerm>,
}

/// Effects that vary between the levels of a grouping factor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RandomTerm {
    /// Effects that vary.
    pub effects: Terms,
    /// Columns whose combinations are the groups.
    pub group: Vec<String>,
    /// True for `||`: the effects are uncorrelated. The columns of a factor are uncorrelated too.
    pub independent: bool,
}

/// A place in a formula that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}\n  {}", self.shown())]
pub struct FormulaError {
    /// The whole formula.
    pub text: String,
    /// Characters before the place.
    pub column: usize,
    pub message: String,
}

/// Characters of a formula that are shown on either side of a place.
const SHOWN: usize = 60;

impl FormulaError {
    /// The formula, or the part around the place if it is long, and a caret under the place.
    fn shown(&self) -> String {
        let length = self.text.chars().count();
        let (first, last) = match length <= 2 * SHOWN {
            true => (0, length),
            false => (self.column.saturating_sub(SHOWN), (self.column + SHOWN).min(length)),
        };
        let before = if first > 0 { "..." } else { "" };
        let after = if last < length { "..." } else { "" };
        let part: String = self.text.chars().skip(first).take(last - first).collect();
        let caret = " ".repeat(before.len() + self.column - first);
        format!("{before}{part}{after}\n  {caret}^")
    }
}

impl FromStr for Formula {
    type Err = FormulaError;

    fn from_str(text: &str) -> Result<Self, FormulaError> {
        parser::parse(text)
    }
}

impl Formula {
    /// Names of all columns but the response, in order of appearance.
    pub fn variables(&self) -> Vec<&str> {
        let fixed = self.fixed.variables.iter();
        let random = self.random.iter().flat_map(|term| term.effects.variables.iter().chain(&term.group));
        let mut names: Vec<&str> = Vec::new();
        for name in fixed.chain(random) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }
}

impl RandomTerm {
    /// Random intercepts of a group.
    pub fn intercept(group: &[&str]) -> Self {
        let group = group.iter().map(|name| (*name).to_owned()).collect();
        RandomTerm { effects: Terms::intercept(), group, independent: false }
    }

    /// The group as lme4 names it: `template:item`.
    pub fn group_name(&self) -> String {
        self.group.join(":")
    }
}

impl std::fmt::Display for RandomTerm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let group: Vec<String> = self.group.iter().map(|name| lexer::quoted(name)).collect();
        let one = if self.effects.intercept && !self.effects.terms.is_empty() { "1 + " } else { "" };
        write!(f, "({one}{} {} {})", self.effects, if self.independent { "||" } else { "|" }, group.join(":"))
    }
}

impl std::fmt::Display for Formula {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ~ {}", lexer::quoted(&self.response), self.fixed)?;
        self.random.iter().try_for_each(|term| write!(f, " + {term}"))
    }
}
