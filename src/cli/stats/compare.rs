//! `earnest stats compare`.
use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::columns::{self, Kind, Missing};
use super::number_format::p_value;
use crate::cli::Exit;
use crate::stats::clustered::paired_difference;
use crate::stats::mcnemar::{PairedCounts, mcnemar};

/// Arguments of `earnest stats compare`.
#[derive(Debug, Clone, Args)]
pub struct CompareArgs {
    /// CSV file with a line of column names, a row a question; `-` reads standard input
    file: PathBuf,
    /// Column of the first system's outcomes, 0 or 1
    #[arg(long, value_name = "COLUMN")]
    first: String,
    /// Column of the second system's outcomes, 0 or 1
    #[arg(long, value_name = "COLUMN")]
    second: String,
    /// Column of cluster labels (the templates)
    #[arg(long, value_name = "COLUMN")]
    group: String,
    /// Confidence level of the interval
    #[arg(long, value_name = "LEVEL", default_value_t = 0.95)]
    level: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &CompareArgs, output: &mut dyn Write) -> anyhow::Result<Exit> {
    anyhow::ensure!(args.level > 0.0 && args.level < 1.0, "--level is {}, expected between 0 and 1", args.level);
    let wanted = [(args.first.as_str(), Kind::Binary), (&args.second, Kind::Binary), (&args.group, Kind::Label)];
    let found = columns::read(&args.file, &wanted, Missing::DropRow)?;
    let difference = paired_difference(&found.values[0], &found.values[1], &found.groups(2))?;
    let pairs = found.values[0].iter().zip(&found.values[1]);
    let counts = PairedCounts::of(pairs.map(|(first, second)| (*first == 1.0, *second == 1.0)));
    let test = mcnemar(&counts);
    let (low, high) = difference.interval(args.level);
    if args.json {
        let value = serde_json::json!({
            "rows_dropped": found.dropped, "difference": difference, "low": low, "high": high, "p": difference.p(),
            "counts": counts, "mcnemar": test,
        });
        serde_json::to_writer_pretty(&mut *output, &value)?;
        writeln!(output)?;
        return Ok(Exit::Success);
    }
    writeln!(
        output,
        "{} minus {}: {:+.4}, cluster-robust std. error {:.4}, {} % interval [{:+.4}, {:+.4}], p {}",
        args.second,
        args.first,
        difference.mean,
        difference.standard_error,
        (args.level * 1e6).round() / 1e4,
        low,
        high,
        p_value(Some(difference.p()))
    )?;
    writeln!(
        output,
        "{} pairs in {} clusters of `{}` ({} rows dropped), design effect {:.2}",
        difference.observations, difference.clusters, args.group, found.dropped, difference.design_effect
    )?;
    writeln!(
        output,
        "both right {}, only {} {}, only {} {}, neither {}; McNemar exact p {} (takes pairs as independent)",
        counts.both,
        args.first,
        counts.first_only,
        args.second,
        counts.second_only,
        counts.neither,
        p_value(Some(test.exact_p))
    )?;
    Ok(Exit::Success)
}
