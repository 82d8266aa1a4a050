//! Seeded draws of the tests that have too many exchanges to count.
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::paired_test::ExchangeP;

/// Draws of a test by Monte Carlo, unless one takes long.
const DRAWS: usize = 99_999;

const FEWEST_DRAWS: usize = 9_999;

/// Steps of all draws together.
const STEPS: usize = 400_000_000;

/// Seed of all tests: the same data have the same p value.
const SEED: u64 = 1;

/// p value by Monte Carlo of a distance: `draw` gives that of a random exchange, in `steps` steps. The data themselves count as one draw
/// (B. Phipson and G. K. Smyth, Statistical Applications in Genetics and Molecular Biology 9, 2010, article 39), so that p is never 0.
pub(super) fn monte_carlo(observed: f64, steps: usize, mut draw: impl FnMut(&mut ChaCha8Rng) -> f64) -> ExchangeP {
    let draws = (STEPS / steps.max(1)).clamp(FEWEST_DRAWS, DRAWS);
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let near = 1e-9 * observed.abs().max(1e-9);
    let hits = (0..draws).filter(|_| draw(&mut random) >= observed - near).count();
    let p = (hits as f64 + 1.0) / (draws as f64 + 1.0);
    ExchangeP { p, error: Some((p * (1.0 - p) / draws as f64).sqrt()) }
}
