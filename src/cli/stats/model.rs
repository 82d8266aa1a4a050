//! The model that rows are fitted with.
use anyhow::Context;
use clap::Args;

use super::columns::{self, Kind, Missing, Survey};
use super::source::{Pair, SourceArgs};
use earnest_stats::glmm::{GlmmData, GlmmRows, INTERCEPT, Term};

/// The columns of a mixed model.
#[derive(Debug, Clone, Args)]
pub struct ModelArgs {
    /// Column of outcomes, 0 or 1 [default of stored runs: correct]
    #[arg(long, value_name = "COLUMN", required_unless_present = "runs")]
    response: Option<String>,
    /// Columns of fixed effects beside the intercept, e.g. variant,gamma_c; numbers or labels
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub(super) fixed: Vec<String>,
    /// Column of group labels (the templates): each gets a random intercept [default of stored runs: cluster]
    #[arg(long, value_name = "COLUMN", required_unless_present = "runs")]
    group: Option<String>,
    /// Fixed effects whose numbers are labels too, e.g. template or year
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    factor: Vec<String>,
    /// Which label of a column the others are compared with [default: the first in order]; may be repeated
    #[arg(long, value_name = "COLUMN=LEVEL")]
    reference: Vec<Pair>,
}

/// Rows as a model needs them.
pub(super) struct Model {
    pub(super) data: GlmmData,
    pub(super) terms: Vec<Term>,
    pub(super) survey: Survey,
}

impl ModelArgs {
    /// The model of stored runs with these fixed effects.
    pub(super) fn of_runs(response: &str, fixed: &[String]) -> Self {
        let response = Some(response.to_owned());
        ModelArgs { response, fixed: fixed.to_vec(), group: None, factor: Vec::new(), reference: Vec::new() }
    }

    /// Name of the column of outcomes.
    pub(super) fn response(&self) -> &str {
        self.response.as_deref().unwrap_or("correct")
    }

    /// Name of the column of groups.
    pub(super) fn group(&self) -> &str {
        self.group.as_deref().unwrap_or("cluster")
    }

    /// Reads the rows once, counting equal ones as they come.
    pub(super) fn read(&self, source: &SourceArgs) -> anyhow::Result<Model> {
        self.check()?;
        let mut wanted = vec![(self.response(), Kind::Binary), (self.group(), Kind::Label)];
        wanted.extend(self.fixed.iter().map(|name| {
            let kind = if self.factor.contains(name) { Kind::Factor } else { Kind::Either };
            (name.as_str(), kind)
        }));
        let mut rows = GlmmRows::new(self.fixed.len());
        let survey = columns::scan(source, &wanted, Missing::DropRow, &mut |row| {
            // Labels are counted by u32: a table with more different ones would not fit into memory.
            rows.push(row[0], 1.0, &row[2..], row[1] as u32);
        })?;
        let terms = self.terms(&survey).with_context(|| format!("cannot fit {}", source.name()))?;
        let data = rows.finish(&terms).with_context(|| {
            let notes: String = survey.notes.iter().map(|note| format!(" ({note})")).collect();
            format!("cannot fit {}{notes}", source.name())
        })?;
        Ok(Model { data, terms, survey })
    }

    fn check(&self) -> anyhow::Result<()> {
        for (index, name) in self.fixed.iter().enumerate() {
            anyhow::ensure!(!name.is_empty(), "--fixed has an empty name; write e.g. --fixed variant,gamma_c");
            anyhow::ensure!(name != INTERCEPT, "the intercept is always there; leave {INTERCEPT} out of --fixed");
            anyhow::ensure!(!self.fixed[..index].contains(name), "--fixed names `{name}` twice");
            anyhow::ensure!(name != self.response(), "`{name}` is the response; it cannot be a fixed effect too");
            anyhow::ensure!(
                name != self.group(),
                "`{name}` is the group, whose random intercept takes up its differences; it cannot be a fixed effect too"
            );
        }
        anyhow::ensure!(self.response() != self.group(), "`{}` is both response and group", self.group());
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
