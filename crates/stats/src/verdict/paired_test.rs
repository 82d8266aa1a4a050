//! Tests of a paired difference and their p values.
use serde::Serialize;

/// Difference of a cluster below which it is rounding.
pub(super) const ROUNDING: f64 = 1e-9;

/// Test behind a p value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PairedTest {
    /// t test of the mean difference, robust to clusters (CR2 with Satterthwaite's degrees of freedom).
    ClusterT,
    /// Exact or seeded test by exchanging the sides of clusters.
    SignFlips,
    /// Exact or seeded test by permuting which question of a pair is the original.
    Permutation,
    /// The larger p value of permutation and t test: clusters hold several originals.
    PermutationAndClusterT,
    /// The larger p value of the two: the sides answered one question, but not as often.
    SignFlipsAndPermutation,
}

impl PairedTest {
    /// Name in a sentence: "p by ...".
    pub fn name(self) -> &'static str {
        match self {
            PairedTest::ClusterT => "the t test robust to clusters",
            PairedTest::SignFlips => "sign flips of clusters",
            PairedTest::Permutation => "permutation of originals and variants",
            PairedTest::PermutationAndClusterT => {
                "permutation of originals and variants and the t test robust to clusters, the larger one"
            }
            PairedTest::SignFlipsAndPermutation => "sign flips of clusters and permutation of answers, the larger one",
        }
    }
}

/// p value of a test by exchange.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ExchangeP {
    /// Probability of a difference at least as far from what is expected without one.
    pub p: f64,
    /// Standard error of `p` by Monte Carlo; none if it is exact.
    pub error: Option<f64>,
}

impl ExchangeP {
    /// The larger p value of two tests.
    pub fn larger(self, other: ExchangeP) -> ExchangeP {
        if self.p >= other.p { self } else { other }
    }
}
