//! Formula of a mixed model.
use anyhow::Context;
use clap::Args;

use super::columns::{self, Kind, Missing, Survey};
use super::source::{Pair, Source};
use earnest_stats::glmm::{GlmmData, GlmmRows, INTERCEPT, Term};

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

/// Rows of a formula's columns, encoded for the fit.
pub(super) struct Model {
    pub(super) data: GlmmData,
    pub(super) terms: Vec<Term>,
    pub(super) survey: Survey,
}

impl ModelArgs {
    /// The formula that the options describe.
    pub(super) fn formula(&self) -> Formula<'_> {
        Formula {
            response: self.response.as_deref().unwrap_or("correct"),
            fixed: &self.fixed,
            group: self.group.as_deref().unwrap_or(STORED_GROUP),
            factor: &self.factor,
            reference: &self.reference,
        }
    }
}

/// Column of groups of stored runs.
const STORED_GROUP: &str = "cluster";

/// Columns of a mixed model with a random intercept for each group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Formula<'a> {
    /// Column of outcomes.
    pub(super) response: &'a str,
    pub(super) fixed: &'a [String],
    /// Column of groups.
    pub(super) group: &'a str,
    /// Fixed effects whose numbers are labels.
    factor: &'a [String],
    reference: &'a [Pair],
}

impl<'a> Formula<'a> {
    /// The formula of stored runs with these fixed effects.
    pub(super) fn of_runs(response: &'a str, fixed: &'a [String]) -> Self {
        Formula { response, fixed, group: STORED_GROUP, factor: &[], reference: &[] }
    }

    /// The same with other fixed effects and another group.
    pub(super) fn with(self, fixed: &'a [String], group: &'a str) -> Self {
        Formula { fixed, group, ..self }
    }

    /// Reads the rows once, counting equal ones.
    pub(super) fn read(&self, source: &Source<'_>) -> anyhow::Result<Model> {
        self.check()?;
        let mut wanted = vec![(self.response, Kind::Binary), (self.group, Kind::Label)];
        wanted.extend(self.fixed.iter().map(|name| {
            let kind = if self.factor.contains(name) { Kind::Factor } else { Kind::Either };
            (name.as_str(), kind)
        }));
        let mut rows = GlmmRows::new(self.fixed.len());
        let survey = columns::scan(source, &wanted, Missing::DropRow, &mut |row| {
            // A table with more than u32::MAX different labels would not fit into memory.
            rows.push(row[0], 1.0, &row[2..], row[1] as u32);
        })?;
        let cannot = || format!("cannot fit {}{}", source.name(), survey.remarks());
        let terms = self.terms(&survey).with_context(cannot)?;
        let data = rows.finish(&terms).with_context(cannot)?;
        Ok(Model { data, terms, survey })
    }

    fn check(&self) -> anyhow::Result<()> {
        for (index, name) in self.fixed.iter().enumerate() {
            anyhow::ensure!(!name.is_empty(), "--fixed has an empty name; write e.g. --fixed variant,gamma_c");
            anyhow::ensure!(name != INTERCEPT, "the intercept is always included; leave {INTERCEPT} out of --fixed");
            anyhow::ensure!(!self.fixed[..index].contains(name), "--fixed names `{name}` twice");
            anyhow::ensure!(name != self.response, "`{name}` is the response; it cannot be a fixed effect too");
            anyhow::ensure!(
                name != self.group,
                "`{name}` is the group, and has a random intercept; it cannot be a fixed effect too"
            );
        }
        anyhow::ensure!(self.response != self.group, "`{}` is both response and group", self.group);
        let named = self.factor.iter().map(|name| ("--factor", name));
        for (option, name) in named.chain(self.reference.iter().map(|pair| ("--reference", &pair.column))) {
            anyhow::ensure!(self.fixed.contains(name), "{option} names `{name}`, which is not among the fixed effects");
        }
        Ok(())
    }

    fn terms(&self, survey: &Survey) -> anyhow::Result<Vec<Term>> {
        let mut terms = Vec::new();
        for (index, name) in self.fixed.iter().enumerate() {
            let reference = self.reference.iter().rfind(|pair| pair.column == *name).map(|pair| pair.value.as_str());
            let column = index + 2;
            if survey.is_label[column] {
                terms.push(Term::factor(name, survey.labels[column].clone(), reference)?);
            } else {
                anyhow::ensure!(
                    reference.is_none(),
                    "--reference names `{name}`, which holds numbers; `--factor {name}` takes them as labels"
                );
                terms.push(Term::Number(name.clone()));
            }
        }
        Ok(terms)
    }
}
