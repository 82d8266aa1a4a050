//! Statistics on columns of numbers: pure functions that know nothing of suites or models.

mod interval;

pub use interval::{Estimate, Stratum, Z95, cluster_robust_se, stratified, wilson};
