//! `earnest bench engine --sweep`: prefill and decode separately, compared with the device's roofline.
use std::fmt::Write;
use std::sync::atomic::AtomicBool;

use super::BenchEngineArgs;
use crate::cli::bench::failure;
use crate::cli::error::CliError;
use earnest_engine::Engine;
use earnest_engine::bench::{Load, LoadMeasurement, Roofline, Space, TokenCost, measure_load};
use earnest_engine::cpu::{CpuEngine, Peaks};
use earnest_models::checkpoint::DecoderConfig;
use earnest_models::memory::human_bytes;
use earnest_report::{Align, Table};

/// Results of a sweep.
pub(super) struct Swept {
    /// Peaks of the device, the better of before and after the sweep.
    pub(super) peaks: Peaks,
    pub(super) loads: Vec<LoadMeasurement>,
    pub(super) planned: usize,
    /// Error of the engine that ended the sweep early.
    pub(super) failed: Option<CliError>,
}

/// Default of `--new-tokens` in a sweep.
const SWEEP_TOKENS: usize = 16;

/// The loads that fit the model's context.
///
/// # Errors
/// A usage error if none fits.
fn loads(
    args: &BenchEngineArgs,
    config: &DecoderConfig,
    space: Space,
    say: &dyn Fn(String),
) -> Result<Vec<Load>, CliError> {
    let longest = |load: &Load| load.longest(space.token_budget);
    let all = planned(args);
    let shortest = all.iter().map(longest).min().unwrap_or(0);
    let (fitting, others): (Vec<Load>, Vec<Load>) =
        all.into_iter().partition(|load| longest(load) <= config.max_positions);
    for load in others {
        say(format!(
            "batch {}, prompts of {} tokens: left out, because the first sequences would reach {} tokens before the last prompts are computed, beyond the context of {}",
            load.batch,
            load.prompt_tokens,
            longest(&load),
            config.max_positions
        ));
    }
    if fitting.is_empty() {
        let problem = format!(
            "nothing to measure: the first sequences would reach at least {shortest} tokens before the last prompts are computed, beyond the context of {}",
            config.max_positions
        );
        return Err(
            CliError::usage(problem).help("choose shorter --prompt-tokens, fewer --new-tokens or a smaller --batch")
        );
    }
    Ok(fitting)
}

/// Planned loads: the first value of each list, then each other value in its place.
fn planned(args: &BenchEngineArgs) -> Vec<Load> {
    let new_tokens = args.new_tokens.map_or(SWEEP_TOKENS, |n| (n as usize).max(2));
    let (Some(&batch), Some(&length), Some(&shared)) =
        (args.batch.first(), args.prompt_tokens.first(), args.shared.first())
    else {
        return Vec::new();
    };
    let base = Load { batch: batch as usize, prompt_tokens: length as usize, shared, new_tokens };
    let batches = args.batch[1..].iter().map(|&batch| Load { batch: batch as usize, ..base });
    let lengths = args.prompt_tokens[1..].iter().map(|&length| Load { prompt_tokens: length as usize, ..base });
    let shares = args.shared[1..].iter().map(|&shared| Load { shared, ..base });
    std::iter::once(base).chain(batches).chain(lengths).chain(shares).collect()
}

/// Measures every load `repeat` times and keeps the fastest measurement, prefill and decode together.
pub(super) fn sweep(
    args: &BenchEngineArgs,
    native: &mut CpuEngine,
    config: &DecoderConfig,
    stop: &AtomicBool,
    say: &dyn Fn(String),
) -> Result<Swept, CliError> {
    let space = Space { vocab: config.vocab_size, token_budget: native.token_budget() };
    let (mut measured, mut failed) = (Vec::new(), None);
    let loads = loads(args, config, space, say)?;
    say("measuring the device".to_owned());
    let before = native.peaks();
    'loads: for &load in &loads {
        let Load { batch, prompt_tokens, shared, .. } = load;
        say(format!("measuring batch {batch}, prompts of {prompt_tokens} tokens, {:.0} % shared", 100.0 * shared));
        let mut best: Option<LoadMeasurement> = None;
        for _ in 0..args.repeat {
            let one = match measure_load(native, space, load, stop) {
                Ok(Some(one)) => one,
                // The fastest of fewer repetitions would not be comparable.
                Ok(None) => break 'loads,
                Err(error) => {
                    failed = Some(failure(error));
                    break 'loads;
                }
            };
            if best.as_ref().is_none_or(|best| one.prefill_s + one.decode_s < best.prefill_s + best.decode_s) {
                best = Some(one);
            }
        }
        measured.extend(best);
    }
    // The clock may have risen or another program ended since, so the better peaks count.
    let peaks = if measured.is_empty() { before } else { before.best_of(native.peaks()) };
    let (card, cost) = (native.card(), TokenCost::of(config));
    measured.iter_mut().for_each(|load| load.hold_against(Roofline { cost, peaks: &peaks }, &card));
    Ok(Swept { peaks, loads: measured, planned: loads.len(), failed })
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(String::new, |share| format!("{:.0} %", 100.0 * share))
}

pub(super) fn sweep_screen(out: &mut String, peaks: &Peaks, sweep: &[LoadMeasurement]) -> std::fmt::Result {
    let right = |name: &str| (name.to_owned(), Align::Right);
    writeln!(
        out,
        "roofline   {:.0} G operations/s in products, {:.0} in f32, {:.1} GB/s from {}",
        peaks.products_per_s / 1e9,
        peaks.f32_per_s / 1e9,
        peaks.bytes_per_s / 1e9,
        human_bytes(peaks.buffer_bytes)
    )?;
    writeln!(out)?;
    let mut table = Table::new([
        right("batch"),
        right("prompt"),
        right("shared"),
        right("prefill tokens/s"),
        right("of roofline"),
        right("with shared"),
        right("decode tokens/s"),
        right("of roofline"),
    ]);
    for m in sweep {
        table.row(vec![
            m.load.batch.to_string(),
            m.load.prompt_tokens.to_string(),
            format!("{:.0} %", 100.0 * m.load.shared),
            format!("{:.0}", m.prefill_tokens_per_s),
            percent(m.prefill_of_roofline),
            format!("{:.0}", m.prompt_tokens_per_s),
            format!("{:.0}", m.decode_tokens_per_s),
            percent(m.decode_of_roofline),
        ]);
    }
    out.push_str(&table.render());
    writeln!(
        out,
        "\nwith shared: prompt tokens per second, those from the prefix cache included; of roofline: the least"
    )?;
    writeln!(
        out,
        "time that the peaks of arithmetic and memory allow for the same work, as a share of the measured time."
    )?;
    writeln!(out, "Peaks are the better of those before and after; memory is read in a piece of the weights' size.")
}
