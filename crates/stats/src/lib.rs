//! Statistics on columns of numbers: mixed models, tests, intervals, sample sizes. Pure functions: no I/O, no printing.

pub mod analysis;
pub mod bootstrap;
pub mod clustered;
pub mod correlation;
pub mod design;
pub mod distribution;
mod interval;
pub mod kolmogorov_smirnov;
pub mod mcnemar;
pub mod mixed;
pub mod multiplicity;
mod paired_score;
pub mod power;
pub mod psychometric;
pub mod sequential;
mod matrix;
pub mod verdict;

pub use bootstrap::{Bootstrap, BootstrapError, bootstrap_model, cluster_bootstrap};
pub use clustered::{ClusterError, ClusteredMean, clustered_mean, paired_difference, t_reach};
pub use correlation::{Coefficient, Correlation, CorrelationError, correlation};
pub use interval::{
    Estimate, Stratum, Z95, cluster_robust_se, clustered_wilson, difference_of_shares, mean, stratified, wilson,
};
pub use kolmogorov_smirnov::{KsError, KsMethod, KsTest, kolmogorov_smirnov};
pub use mcnemar::{McNemar, PairedCounts, early_look, mcnemar};
pub use multiplicity::{benjamini_hochberg, holm};
pub use paired_score::paired_score_interval;
pub use power::{ClusteredDesign, Direction, PairedDesign, PowerError, Rates};
pub use sequential::{MarginTest, SequentialDifference, SequentialError, SequentialEstimate};
pub use verdict::{Answers, PairedAnswers, PairedTest, PairedVerdict, TestReason, VerdictError, paired_verdict};
