//! Statistics on columns of numbers: pure functions that know nothing of suites or models.

pub mod clustered;
pub mod distribution;
mod interval;
pub mod mcnemar;
pub mod multiplicity;
pub mod power;

pub use clustered::{ClusterError, ClusteredMean, clustered_mean, paired_difference};
pub use interval::{Estimate, Stratum, Z95, cluster_robust_se, stratified, wilson};
pub use mcnemar::{McNemar, PairedCounts, mcnemar};
pub use multiplicity::holm;
pub use power::{ClusteredDesign, PairedDesign, PowerError, Rates};
