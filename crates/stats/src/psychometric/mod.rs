//! Adaptive measurement of a psychometric function: the length at which a probability of success falls through a level.
//!
//! The probability that an answer of length `x` is right is `g + (1 - g) (1 - l) s(x)`: chance `g` is known, the lapse rate `l` is the
//! share of answers that are wrong whatever the length, and `s` falls from 1 to 0. Two shapes of `s` are averaged by the answers,
//! because models fail in both ways:
//!
//! * the logistic function of the logarithm of the length: a limit of what was learnt, with as many octaves above as below it;
//! * the Weibull function `2^-(x/m)^k`, which for `k = 1` is a constant probability of error at every digit.
//!
//! Both are functions of the logarithm of the length. Lengths range over two orders of magnitude, doubling one is a step of the same size
//! everywhere, and a slope means the same for a limit of 4 digits and one of 40. A logistic function of the length itself would have
//! to be steep for short limits and flat for long ones, and would give lengths below 1 a probability of their own.
//!
//! The posterior is a grid over median, slope, lapse and shape. The next question has the length whose answer is expected to say most
//! about the parameters, which is where the expected entropy of the posterior is least:
//!
//! * L. L. Kontsevich and C. W. Tyler, Bayesian adaptive estimation of psychometric slope and threshold, Vision Research 39 (1999),
//!   2729-2737 (Psi);
//! * A. B. Watson, QUEST+: a general multidimensional Bayesian adaptive psychometric method, Journal of Vision 17 (2017), 3:10, which
//!   adds further parameters, the lapse rate among them.
//!
//! Questions come in batches, so that an engine is busy. One question of each batch has a length of a fixed sequence that covers the
//! range, because questions near a limit would never show that longer numbers are right again: [`monotone`] tests for that.
//!
//! The family chooses the questions. What is said of a limit does not rest on it: intervals are those of [`crossing`], which assume only that success
//! does not grow; [`Posterior::check`] looks at whether the family fits, and where it does not the estimate is that of the curves that never grow, and
//! [`steps`] say what there is. Where success does grow, the limit is the length from which it stays below ([`for_good`]).
mod between;
mod check;
mod choose;
mod crossing;
mod curve;
mod isotonic;
mod posterior;
mod procedure;
mod steps;

pub use between::{Between, DIFFERENCE_LEVEL, FEWEST_OF_SKILL, SHARED_OF_SKILL, share_out, spread_over, with_shared};
pub use check::ShapeCheck;
pub use crossing::{Crossing, crossing, for_good};
pub use curve::Curves;
pub use isotonic::{Counted, MonotoneTest, monotone};
pub use posterior::{Limit, Posterior};
pub use procedure::{BATCH, LEVELS, Measured, Procedure, ladder};
pub use steps::{Step, steps};
