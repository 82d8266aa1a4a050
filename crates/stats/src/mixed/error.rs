//! Errors of formulas and data.
use thiserror::Error;

use super::formula::FormulaError;

/// Reason for a formula and columns not being a model. What can be modelled but not trusted is a
/// [`super::MixedDiagnosis`] instead.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum MixedError {
    /// The formula cannot be read.
    #[error(transparent)]
    Formula(#[from] FormulaError),
    /// There is nothing to fit.
    #[error("no rows to fit: the table is empty, or every row has a missing value")]
    NoRows,
    /// A column does not exist.
    #[error("there is no column `{column}`; the columns are: {present}")]
    NoColumn { column: String, present: String },
    /// Two columns have one name.
    #[error("there are two columns `{column}`; rename one")]
    Twice { column: String },
    /// Columns differ in length.
    #[error("column `{column}` has {found} rows, the others have {expected}")]
    Length { column: String, expected: usize, found: usize },
    /// A value is NaN or infinite.
    #[error("row {row}: column `{column}` is {value}; drop rows with missing values first")]
    NotFinite { column: String, row: usize, value: f64 },
    /// A value's square is no number.
    #[error("column `{column}` holds {value:e}: values beyond 1e100 cannot be fitted; use another unit")]
    TooLarge { column: String, value: f64 },
    /// One value is far from all others.
    #[error(
        "column `{column}` holds {value:e} beside values from {low} to {high}, which cannot be told apart at that scale; correct the value, or take a \
         logarithm"
    )]
    FarValue { column: String, value: f64, low: f64, high: f64 },
    /// A response is neither 0 nor 1.
    #[error(
        "row {row}: `{column}` is {value}, expected 0 or 1; for a measured response take the setting `family = gaussian`"
    )]
    NotBinary { column: String, row: usize, value: f64 },
    #[error("`{column}` holds labels such as `{level}`, but a response is numbers")]
    LabelResponse { column: String, level: String },
    /// A column with one value.
    #[error("column `{column}` is {value} in every row, so it has no effect to estimate; leave it out of the formula")]
    Constant { column: String, value: String },
    /// A reference level of a column of numbers.
    #[error(
        "column `{column}` holds numbers, which have no reference level; take it as labels (the setting `factor = {column}`)"
    )]
    NumberReference { column: String },
    /// The wanted reference level is not there.
    #[error("column `{column}` has no level `{level}`; its levels are: {present}")]
    NoLevel { column: String, level: String, present: String },
    /// A fixed effect with very many labels.
    #[error(
        "column `{column}` has {levels} different labels, too many for effects of their own; as groups they would be \
         (1 | {column})"
    )]
    ManyLevels { column: String, levels: usize },
    /// A product with very many columns.
    #[error("`{term}` makes more than {most} columns; leave out an interaction or merge levels")]
    ManyColumns { term: String, most: usize },
    /// A grouping factor with one group.
    #[error(
        "`{group}` is the same in every row, so nothing can vary between its groups; leave the term out if there are \
             others, or test a difference without a model"
    )]
    OneGroup { group: String },
    /// A grouping factor with a group for every row.
    #[error(
        "`{group}` has {groups} groups for {rows} rows: a group with one answer each cannot be told from chance; group by \
         something that repeats"
    )]
    GroupEachRow { group: String, groups: usize, rows: usize },
    /// Very many variances and correlations to estimate.
    #[error(
        "the random effects have {parameters} variances and correlations, more than the {most} that a fit can find; write || \
         instead of | for uncorrelated effects, or let fewer effects vary"
    )]
    ManyCovariances { parameters: usize, most: usize },
    /// No random effects.
    #[error("the formula has no random effect; add one, e.g. (1 | {example}), or use a plain regression")]
    NoRandom { example: String },
    /// No fixed effects.
    #[error("the formula has neither an intercept nor a fixed effect; write e.g. {response} ~ 1 + ...")]
    NoFixed { response: String },
    /// All columns are aliased.
    #[error("no fixed effect is left: every column is 0 or a combination of others")]
    AllAliased,
    /// Random effects without values.
    #[error(
        "the effects that vary by {group} are 0 in every row, so there is nothing to estimate; leave them out of the formula"
    )]
    EmptyEffect { group: String },
    /// More columns than rows.
    #[error("{columns} fixed effects cannot be estimated from {rows} different rows; leave some out")]
    FewRows { columns: usize, rows: usize },
    /// The factorisation would not fit into memory.
    #[error(
        "the groups of {groups} are crossed so widely that the fit would take about {megabytes} MB; leave out the smaller \
         of the crossed terms, or use fewer groups"
    )]
    TooWide { groups: String, megabytes: usize },
    /// A term that is not there.
    #[error("the formula has no term `{term}`; its terms are: {present}")]
    NoTerm { term: String, present: String },
    /// The number of quadrature points is unusable.
    #[error("{points} quadrature points, expected an odd number from 1 (Laplace) to {largest}")]
    Points { points: usize, largest: usize },
    /// A confidence level is unusable.
    #[error("confidence level {level}, expected a number between 0 and 1, e.g. 0.95")]
    Confidence { level: f64 },
    /// A parameter that is not there.
    #[error("there is no estimate of `{name}`; there are: {present}")]
    NoParameter { name: String, present: String },
    /// A search met a likelihood that is better than the fit's.
    #[error("the search met a -2 log L that is {by:.2e} below the fit's, which is therefore not the best one")]
    NotTheBest { by: f64 },
    /// The likelihood has no finite maximum, so the question has no answer.
    #[error("{reason}")]
    NotEstimated { reason: String },
}
