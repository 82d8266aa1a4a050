//! The NUPA Test of the Number Cookbook (Yang et al., ICLR 2025): 41 tasks on integers, floats, fractions and
//! scientific notation, in 53 variants, at lengths up to 20 or 100 digits.
//!
//! | files | contents |
//! |---|---|
//! | `task`, `cell`, `draw`, `pairs`, `prepare` | the questions: 53 ids, splits by fingerprint, one random stream a question |
//! | `exact`, `metrics`, `scoring` | gold answers without floating point; the scorers side by side |
//! | `prompt`, `rules/` | question texts; rules in Python with an interpreter whose trace is true line by line |
//! | `answer` | what three scorers take from a completion |
//! | `order`, `suite`, `options`, `plan` | items in balanced order, and the cost of a run |
//! | `summary`, `aggregate`, `grids` | metrics by length and range, digit limits, the tables of the screen |
//! | `given` | questions of a file instead of drawn ones |
//! | `generator`, `training`, `number_format` | `earnest generate nupa`: JSON lines, streamed cell by cell |

pub mod answer;

mod aggregate;
mod cell;
mod draw;
mod error;
mod exact;
mod generator;
mod given;
mod grids;
mod metrics;
mod number_format;
mod options;
mod order;
mod pairs;
mod plan;
mod prepare;
mod prompt;
mod registration;
mod rules;
mod scoring;
mod suite;
mod summary;
mod task;
mod training;

pub use aggregate::{
    AggregateError, DigitLimit, LengthRange, LimitRule, MetricName, Record, ReferenceStatistics, digit_limit,
    reference_statistics,
};
pub use cell::{Cell, GENERATOR_VERSION, LONGEST_SHARED, Question, Split, SplitVersion};
pub use draw::DigitSource;
pub use error::NupaError;
pub use exact::{exact_answer, half_even_answer, reference_answer};
pub use metrics::{DigitSet, Metrics, measure};
pub use number_format::{IndexHints, NumberFormat, Reversal};
pub use options::{Adapter, BudgetRule, Lengths, NupaOptions, PromptStyle, QuestionFile, Scorer};
pub use pairs::{PairRules, RawPair, ShorterOperand, draw_number, draw_pair};
pub use plan::TaskPlan;
pub use prepare::{Auxiliary, Operands, number_length, prepare, question_length};
pub use prompt::{Wording, question, rule_following_instruction, system_message};
pub use registration::{Registration, adapter, lengths, tasks, usual_scorer};
pub use rules::{
    Rule, RuleError, RuleReach, RuleTrace, TokenLength, longest_within, rule, rule_reach, ruled_tasks, token_lengths,
};
pub use suite::NupaSuite;
pub use summary::{ScoredAnswer, summarise_answers};
pub use task::{Operation, PairSource, Representation, Second, TASKS, TaskId};
pub use training::{TextStyle, TrainingLine, TrainingSet};

/// Version of the suite: the first number changes with the items or their order, the second with scoring or summaries that move a result.
pub const SUITE_VERSION: &str = "3.3";

/// Version of questions and scoring, and of the suite with [`crate::suite::ItemOrder::One`].
pub const QUESTIONS_VERSION: &str = "2.3";
