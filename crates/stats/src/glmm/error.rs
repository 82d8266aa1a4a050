//! Errors of data and options.
use thiserror::Error;

/// Reason for columns not being a model's data. What can be modelled but not trusted is a [`super::Diagnosis`] instead.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum GlmmError {
    /// There is nothing to fit.
    #[error("no rows to fit: the table is empty, or every row has a missing value")]
    NoRows,
    /// Columns differ in length.
    #[error("column `{column}` has {found} rows, the response has {expected}")]
    Length { column: String, expected: usize, found: usize },
    /// A response is neither 0 nor 1.
    #[error("row {row}: the response is {value}, expected 0 or 1")]
    NotBinary { row: usize, value: f64 },
    /// Successes and trials do not fit together.
    #[error(
        "row {row}: {successes} successes of {trials} trials, expected whole numbers with 0 <= successes <= trials"
    )]
    Trials { row: usize, successes: f64, trials: f64 },
    /// A value is NaN or infinite.
    #[error("row {row}: column `{column}` is {value}; drop rows with missing values first")]
    NotFinite { column: String, row: usize, value: f64 },
    /// A value's square is no number.
    #[error("column `{column}` holds {value:e}: values beyond 1e150 cannot be fitted; use another unit")]
    TooLarge { column: String, value: f64 },
    /// A column adds nothing to those before it.
    #[error(
        "column `{column}` is constant or a linear combination of the columns before it, so its coefficient is not \
         defined; leave it out"
    )]
    Collinear { column: String },
    /// A column of labels holds the same one in every row.
    #[error("column `{column}` holds `{level}` in every row, so it has no effect to estimate; leave it out")]
    OneLevel { column: String, level: String },
    /// The wanted reference level is not there.
    #[error("column `{column}` has no level `{level}`; its levels are: {present}")]
    NoLevel { column: String, level: String, present: String },
    /// More groups than can be numbered.
    #[error("more than 4,294,967,295 groups")]
    TooManyGroups,
    /// Two columns have one name.
    #[error("column `{column}` appears twice among the fixed effects")]
    Duplicate { column: String },
    /// The number of quadrature points is unusable.
    #[error("{points} quadrature points, expected an odd number from 1 (Laplace) to {largest}")]
    Points { points: usize, largest: usize },
    /// A confidence level is unusable.
    #[error("confidence level {level}, expected a number between 0 and 1, e.g. 0.95")]
    Confidence { level: f64 },
    /// Fits cannot be compared.
    #[error("the fits cannot be compared: {reason}")]
    Incomparable { reason: String },
}
