//! Rule-following chains of thought (section 5): a rule is a Python program that solves a task; a trace is what
//! executing it line by line shows. Traces come from an interpreter of the rules' small part of Python, so that
//! every line of a trace is true.

mod catalogue;
mod machine;
mod parser;
mod program;
mod tokens;

pub use catalogue::{Rule, RuleTrace, rule, ruled_tasks};
pub use machine::RuleError;
pub use tokens::{RuleReach, TokenLength, longest_within, rule_reach, token_lengths};
