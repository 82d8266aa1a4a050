//! Model of one random intercept, from names of columns.
use clap::Args;

use super::failed::require;
use super::source::Pair;
use crate::cli::error::CliError;
use earnest_stats::mixed::{Formula, INTERCEPT, RandomTerm, Terms};

/// Options for the columns of a mixed model.
#[derive(Debug, Clone, Args)]
pub struct ModelArgs {
    /// Column of outcomes, 0 or 1 [default for stored runs: correct]
    #[arg(long, value_name = "COLUMN", required_unless_present_any = ["runs", "formula"])]
    pub(super) response: Option<String>,
    /// Columns of fixed effects besides the intercept, e.g. variant,gamma_c; numbers or labels [default for stored runs:
    /// model, prompt and variant where they vary]
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub(super) fixed: Vec<String>,
    /// Column of group labels (the templates): each gets a random intercept [default for stored runs: the maximal model
    /// over clusters and items]
    #[arg(long, value_name = "COLUMN", required_unless_present_any = ["runs", "formula"])]
    pub(super) group: Option<String>,
    /// Fixed effects whose numbers are labels, e.g. template or year
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub(super) factor: Vec<String>,
    /// Reference level of a column of labels; may be repeated [default: the first in order]
    #[arg(long, value_name = "COLUMN=LEVEL")]
    pub(super) reference: Vec<Pair>,
}

/// Column of groups of stored runs.
const STORED_GROUP: &str = "cluster";

impl ModelArgs {
    /// Column of outcomes.
    pub(super) fn response(&self) -> &str {
        self.response.as_deref().unwrap_or("correct")
    }

    /// The formula that the options describe.
    pub(super) fn formula(&self) -> Result<Formula, CliError> {
        let formula = one_intercept(self.response(), &self.fixed, self.group.as_deref().unwrap_or(STORED_GROUP))?;
        let named = self.factor.iter().map(|name| ("--factor", name));
        for (option, name) in named.chain(self.reference.iter().map(|pair| ("--reference", &pair.column))) {
            require(self.fixed.contains(name), || {
                format!("{option} names `{name}`, which is not among the fixed effects")
            })?;
        }
        Ok(formula)
    }
}

/// The formula of stored runs with these fixed effects.
pub(super) fn of_runs(response: &str, fixed: &[String]) -> Result<Formula, CliError> {
    one_intercept(response, fixed, STORED_GROUP)
}

fn one_intercept(response: &str, fixed: &[String], group: &str) -> Result<Formula, CliError> {
    for (index, name) in fixed.iter().enumerate() {
        require(!name.is_empty(), || "--fixed has an empty name; write e.g. --fixed variant,gamma_c")?;
        require(name != INTERCEPT, || format!("the intercept is always included; leave {INTERCEPT} out of --fixed"))?;
        require(!fixed[..index].contains(name), || format!("--fixed names `{name}` twice"))?;
        require(name != response, || format!("`{name}` is the response; it cannot be a fixed effect too"))?;
        require(name != group, || {
            format!("`{name}` is the group, and has a random intercept; it cannot be a fixed effect too")
        })?;
    }
    require(response != group, || format!("`{group}` is both response and group"))?;
    Ok(Formula {
        response: response.to_owned(),
        fixed: fixed.iter().fold(Terms::intercept(), |terms, name| terms.with(name)),
        random: vec![RandomTerm::intercept(&[group])],
    })
}
