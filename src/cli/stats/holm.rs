//! `earnest stats holm`.
use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::columns::{self, Kind, Missing};
use super::number_format::table;
use crate::cli::Exit;
use crate::stats::multiplicity::holm;

/// Arguments of `earnest stats holm`: p values themselves, or a column of them.
#[derive(Debug, Clone, Args)]
pub struct HolmArgs {
    /// p values
    #[arg(value_name = "P", required_unless_present = "file", conflicts_with = "file")]
    p_values: Vec<f64>,
    /// CSV file with a line of column names; `-` reads standard input
    #[arg(long, value_name = "FILE", requires = "p")]
    file: Option<PathBuf>,
    /// Column of p values
    #[arg(long, value_name = "COLUMN", requires = "file")]
    p: Option<String>,
    /// Column of names to print beside them
    #[arg(long, value_name = "COLUMN", requires = "file")]
    label: Option<String>,
    /// Family-wise significance level
    #[arg(long, value_name = "LEVEL", default_value_t = 0.05)]
    alpha: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &HolmArgs, output: &mut dyn Write) -> anyhow::Result<Exit> {
    let (labels, p_values) = match (&args.file, &args.p) {
        (Some(file), Some(p)) => {
            let mut wanted = vec![(p.as_str(), Kind::Number)];
            wanted.extend(args.label.iter().map(|label| (label.as_str(), Kind::Label)));
            let found = columns::read(file, &wanted, Missing::DropRow)?;
            let labels = match found.values.get(1) {
                Some(indices) => indices.iter().map(|index| found.labels[1][*index as usize].clone()).collect(),
                None => numbered(found.values[0].len()),
            };
            (labels, found.values[0].clone())
        }
        _ => (numbered(args.p_values.len()), args.p_values.clone()),
    };
    anyhow::ensure!(!p_values.is_empty(), "there are no p values to adjust");
    let adjusted = holm(&p_values)?;
    if args.json {
        let rows: Vec<_> = labels
            .iter()
            .zip(p_values.iter().zip(&adjusted))
            .map(|(label, (p, adjusted))| {
                serde_json::json!({ "label": label, "p": p, "holm": adjusted, "significant": *adjusted < args.alpha })
            })
            .collect();
        serde_json::to_writer_pretty(&mut *output, &rows)?;
        writeln!(output)?;
        return Ok(Exit::Success);
    }
    let significant = format!("below {}", args.alpha);
    let mut rows = vec![["", "p", "Holm", significant.as_str()].map(str::to_owned).to_vec()];
    for (label, (p, adjusted)) in labels.iter().zip(p_values.iter().zip(&adjusted)) {
        let verdict = if *adjusted < args.alpha { "yes" } else { "no" };
        rows.push(vec![label.clone(), format!("{p:.4}"), format!("{adjusted:.4}"), verdict.to_owned()]);
    }
    write!(output, "{}", table(&rows))?;
    Ok(Exit::Success)
}

fn numbered(count: usize) -> Vec<String> {
    (1..=count).map(|index| index.to_string()).collect()
}
