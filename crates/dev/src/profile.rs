//! `earnest-dev profile`, and the profiles of `earnest-dev device --profile`: device time by kernel and shape.
use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::device::{self, DeviceArgs};
use crate::failure::{Exit, Failure};
use crate::options::{EngineArgs, ModelArgs};
use earnest_engine::cuda::{Clock, Profile, ProfileRow};

/// Rows of a profile on the screen; the JSON document has all.
const SHOWN: usize = 24;

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Every measurement runs twice: at full speed, then with the device's clock read before and after every kernel, library \
product and copy. The second run copies idly before each step, so that the device never waits for the host and its times are those of the \
kernels. Shares are of the peaks that are measured first, by bytes and operations computed from the shapes; above 100 % a cache helps.

Examples:
  earnest-dev profile --device cuda --random llama-3-8b
  earnest-dev profile --device cuda --model ./Llama-3-8B --quant q4k --decode 1,16 --prefill \"\" --json
  earnest-dev profile --device cuda --model ./Llama-3-8B --decode \"\" --prefill \"\" --shared 512,900,100,120"
)]
pub struct ProfileArgs {
    #[command(flatten)]
    pub model: ModelArgs,

    /// Batch sizes for decode; "" skips decode
    #[arg(long, value_name = "N,N", default_value = "1,32,256")]
    pub decode: String,

    /// Prompt lengths before decode, in tokens
    #[arg(long, value_name = "N,N", default_value = "1024")]
    pub decode_context: String,

    /// Minimum number of steps per batch size
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub decode_steps: usize,

    /// Batch sizes for prefill; "" skips prefill
    #[arg(long, value_name = "N,N", default_value = "16")]
    pub prefill: String,

    /// Prompt length for prefill, in tokens
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub prefill_length: usize,

    /// Prompts with a common prefix: their number, shared tokens, further tokens (approximate), new tokens
    #[arg(long, value_name = "N,N,N,N", value_delimiter = ',', num_args = 1)]
    pub shared: Vec<usize>,

    /// Short prompts that share a third of their tokens: their number, tokens, new tokens
    #[arg(long, value_name = "N,N,N", value_delimiter = ',', num_args = 1)]
    pub short: Vec<usize>,

    /// File that gets the JSON document after every measurement
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,

    #[command(flatten)]
    pub engine: EngineArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Measures and profiles.
pub fn execute(args: &ProfileArgs) -> Result<Exit, Failure> {
    let ProfileArgs { model, decode, decode_context, decode_steps, prefill, prefill_length, shared, short, .. } =
        args.clone();
    let args = DeviceArgs {
        model,
        decode,
        decode_context,
        decode_steps,
        prefill,
        prefill_length,
        shared,
        ragged: vec![],
        short,
        temperature: 0.0,
        top_p: 1.0,
        bandwidth: None,
        arithmetic: None,
        profile: true,
        save: args.save.clone(),
        engine: args.engine.clone(),
        json: args.json,
    };
    device::execute(&args)
}

/// Profile of one measurement.
#[derive(Debug, Serialize)]
pub(super) struct Phase {
    /// The measurement.
    pub(super) phase: String,
    /// Seconds of a step at full speed, without the profile's clocks.
    pub(super) step_s: Option<f64>,
    pub(super) profile: Profile,
}

/// Tables of profiles; nothing for none.
pub(super) fn screen(phases: &[Phase]) -> String {
    let mut text = String::new();
    for phase in phases {
        write_phase(&mut text, phase).expect("writing to a String cannot fail");
    }
    text
}

fn write_phase(out: &mut String, Phase { phase, step_s, profile: p }: &Phase) -> std::fmt::Result {
    let clock = match p.clock {
        Clock::DeviceEvents => "by the device's events",
        Clock::Host => "by the host's clock",
    };
    writeln!(out, "\nprofile    {phase}; {} steps, {clock}", p.steps)?;
    let full = step_s.map_or(String::new(), |s| format!("{} at full speed, ", time(s)));
    writeln!(out, "  a step   {full}{} busy of {} profiled", time(p.busy_s), time(p.step_s))?;
    writeln!(
        out,
        "  host     {:.0} launches a step: {} in calls, {} between them, the longest gap {}",
        p.host.launches,
        time(p.host.calls_s),
        time(p.host.gaps_s),
        time(p.host.longest_gap_s)
    )?;
    let shown = &p.rows[..p.rows.len().min(SHOWN)];
    let wide = |of: fn(&ProfileRow) -> &str| shown.iter().map(|row| of(row).chars().count()).max().unwrap_or(0);
    let (kernel, shape) = (wide(|row| &row.kernel).max(6), wide(|row| &row.shape).max(5));
    writeln!(
        out,
        "  {:kernel$}  {:shape$}  launches      each   share      TB/s   TFLOP/s  of peak",
        "kernel", "shape"
    )?;
    let rate = |n: Option<u64>, seconds: f64| match n {
        Some(n) if n > 0 && seconds > 0.0 => format!("{:.3}", n as f64 / seconds / 1e12),
        _ => "-".to_owned(),
    };
    for row in shown {
        writeln!(
            out,
            "  {:kernel$}  {:shape$}  {:8}  {:>8}  {:4.1} %  {:>8}  {:>8}  {:>7}",
            row.kernel,
            row.shape,
            row.launches,
            time(row.seconds / row.launches.max(1) as f64),
            100.0 * row.fraction,
            rate(row.bytes, row.seconds),
            rate(row.operations, row.seconds),
            row.share_of_peak.map_or("-".to_owned(), |share| format!("{:.0} %", 100.0 * share)),
        )?;
    }
    let rest = &p.rows[shown.len()..];
    if !rest.is_empty() {
        let fraction: f64 = rest.iter().map(|row| row.fraction).sum();
        writeln!(out, "  {} further rows with {:.1} % are in the JSON document", rest.len(), 100.0 * fraction)?;
    }
    Ok(())
}

/// A short time in the unit that suits it.
fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", 1e3 * s),
        s => format!("{:.1} us", 1e6 * s),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_engine::cuda::HostTime;

    #[test]
    fn a_profile_is_a_table_of_kernels() {
        let row = |kernel: &str, seconds: f64, bytes: Option<u64>, share: Option<f64>| ProfileRow {
            kernel: kernel.into(),
            shape: "m 1".into(),
            launches: 4,
            seconds,
            fraction: seconds / 5e-3,
            bytes,
            operations: Some(0),
            share_of_peak: share,
        };
        let host = HostTime { launches: 5.0, calls_s: 2e-5, gaps_s: 1e-5, longest_gap_s: 3e-6 };
        let rows =
            vec![row("cublasLt", 4e-3, Some(16_000_000_000), Some(0.93)), row("copy to the host", 1e-3, None, None)];
        let profile = Profile { clock: Clock::DeviceEvents, steps: 2, step_s: 3e-3, busy_s: 2.5e-3, host, rows };
        let text = screen(&[Phase { phase: "decode, batch 1".into(), step_s: Some(2.6e-3), profile }]);
        assert_eq!(
            text,
            "\nprofile    decode, batch 1; 2 steps, by the device's events\n  \
             a step   2.60 ms at full speed, 2.50 ms busy of 3.00 ms profiled\n  \
             host     5 launches a step: 20.0 us in calls, 10.0 us between them, the longest gap 3.0 us\n  \
             kernel            shape  launches      each   share      TB/s   TFLOP/s  of peak\n  \
             cublasLt          m 1           4   1.00 ms  80.0 %     4.000         -     93 %\n  \
             copy to the host  m 1           4  250.0 us  20.0 %         -         -        -\n"
        );
    }
}
