//! Published results of the re-evaluation: Tables 1 to 15, Listing 6, the numbers behind its figures, and the counts and
//! diagnostics that its stored notebook shows, as data. Nothing here is computed from a run.

mod notebook;
mod printed;
mod tables;

pub use notebook::{
    BASE_BIN_SHARES, CodeErrors, FlaggedFit, KolmogorovSmirnov, NUMBER_BINS, PRECISE_LOG_ODDS_PROMPT, code_errors,
    flagged_glmm1, flagged_glmm2, integers_test, nl_error_totals, precise_gsm_log_odds,
    precise_structured_code_residual,
};
pub use printed::Printed;
pub use tables::{
    DEMONSTRATION_MODELS, DeltaComparison, ExactCount, Model, NumberEffect, NumberEffectRow, OddsRatio,
    OptimiserEstimate, Reproduction, VariantEffect, deltas, exact_counts, listing_6, models, number_effects,
    odds_ratios, reproductions, residual_effects, variant_effects,
};
