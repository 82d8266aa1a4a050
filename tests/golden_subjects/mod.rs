//! Golden subjects, one file each, and shared code.

pub mod answers;
pub mod arithmetic_bench;
pub mod dnc;
pub mod engine;
pub mod files;
pub mod glmm;
pub mod glmm_formula;
pub mod gsm;
pub mod logs;
pub mod nupa;
pub mod report;
pub mod runner;
