//! Statistics on columns of numbers: mixed models, tests, intervals, sample sizes. Pure functions: no I/O, no printing.

pub mod distribution;
pub mod glmm;
mod matrix;
