//! `earnest stats compare`.
use super::failed::require;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use crate::cli::values::counted;
use earnest_results::ends;
use std::collections::HashMap;
use std::fmt::Write as _;

use clap::Args;

use super::columns::{self, Kind, Missing};
use super::number_format::p_value;
use super::source::SourceArgs;
use crate::cli::Exit;
use earnest_stats::mcnemar::{PairedCounts, mcnemar};
use earnest_stats::verdict::{Answers, PairedAnswers, VerdictError, paired_verdict};

/// Options of `earnest stats compare`: two columns of the same rows, or two stored runs on the same items.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  earnest stats compare answers.csv --first base --second tuned --group id
  earnest stats compare --run 1f2e3d4c,5b6a7988
  earnest stats compare --run 1f2e3d4c --first study --second strict")]
pub struct CompareArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Column of the first system's outcomes, 0 or 1
    #[arg(long, value_name = "COLUMN", required_unless_present = "runs", requires = "second")]
    first: Option<String>,
    /// Column of the second system's outcomes, 0 or 1
    #[arg(long, value_name = "COLUMN", required_unless_present = "runs", requires = "first")]
    second: Option<String>,
    /// Outcome in which two stored runs are compared
    #[arg(long, value_name = "COLUMN", requires = "runs", conflicts_with = "first", default_value = "correct")]
    response: String,
    /// Column of cluster labels (the templates) [default for stored runs: cluster]
    #[arg(long, value_name = "COLUMN", required_unless_present = "runs")]
    group: Option<String>,
    /// Confidence level of the interval
    #[arg(long, value_name = "LEVEL", default_value_t = 0.95)]
    level: f64,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Paired outcomes.
struct Pairs {
    names: [String; 2],
    first: Vec<f64>,
    second: Vec<f64>,
    clusters: Vec<u64>,
    /// Number of unpaired rows.
    dropped: usize,
    notes: Vec<String>,
}

impl CompareArgs {
    fn group(&self) -> &str {
        self.group.as_deref().unwrap_or("cluster")
    }

    fn pairs(&self) -> Result<Pairs, CliError> {
        match (&self.first, &self.second) {
            (Some(first), Some(second)) => {
                let wanted =
                    [(first.as_str(), Kind::Binary), (second.as_str(), Kind::Binary), (self.group(), Kind::Cluster)];
                let mut found = columns::read(&self.source.source(), &wanted, Missing::DropRow)?;
                let clusters = found.groups(2);
                let mut notes = std::mem::take(&mut found.survey.notes);
                notes.extend(found.survey.without_label(self.group()));
                found.values.truncate(2);
                let second_values = found.values.pop().unwrap_or_default();
                Ok(Pairs {
                    names: [first.clone(), second.clone()],
                    first: found.values.pop().unwrap_or_default(),
                    second: second_values,
                    clusters,
                    dropped: found.survey.dropped,
                    notes,
                })
            }
            _ => self.pairs_of_runs(),
        }
    }

    /// Pairs the rows of two runs by item, sample number and expected answer.
    fn pairs_of_runs(&self) -> Result<Pairs, CliError> {
        let source = self.source.source();
        let count = self.source.runs.len();
        require(count == 2, || {
            format!(
                "--run names {}; name two, or add --first and --second to compare two of their columns",
                counted(count, "run")
            )
        })?;
        let wanted = [
            ("run", Kind::Label),
            ("item_id", Kind::Label),
            ("sample", Kind::Label),
            ("gold", Kind::Key),
            (self.response.as_str(), Kind::Binary),
            (self.group(), Kind::Cluster),
        ];
        let mut baseline: HashMap<[u64; 3], (f64, u64)> = HashMap::new();
        let (mut first, mut second, mut clusters) = (Vec::new(), Vec::new(), Vec::new());
        let mut unpaired = 0;
        let survey = columns::scan(&source, &wanted, Missing::DropRow, &mut |row| {
            let name = [row[1] as u64, row[2] as u64, row[3] as u64];
            if row[0] == 0.0 {
                baseline.insert(name, (row[4], row[5] as u64));
            } else if let Some((value, cluster)) = baseline.remove(&name) {
                first.push(value);
                second.push(row[4]);
                clusters.push(cluster);
            } else {
                unpaired += 1;
            }
        })?;
        let [one, two] = survey.labels[0].as_slice() else {
            return Err(CliError::usage(format!(
                "{} have no outcomes to compare in `{}`",
                source.name(),
                self.response
            )));
        };
        require(!first.is_empty(), || {
            format!(
                "{one} and {two} have no item in common; `earnest compare` pairs perturbed items with their originals too"
            )
        })?;
        let without_label = survey.without_label(self.group());
        let mut notes = survey.notes;
        notes.extend(without_label);
        if source.differ_in_questions()? {
            notes.push(
                "the runs' options differ, so items with the same id and answer may be different questions; `earnest compare` pairs by \
                 question"
                    .to_owned(),
            );
        }
        Ok(Pairs {
            names: [one.clone(), two.clone()],
            first,
            second,
            clusters,
            dropped: survey.dropped + unpaired + baseline.len(),
            notes,
        })
    }
}

pub(super) fn run(args: &CompareArgs, printer: Printer) -> Result<Exit, CliError> {
    require(args.level > 0.0 && args.level < 1.0, || {
        format!("--level is {}, expected a number between 0 and 1", args.level)
    })?;
    let pairs = args.pairs()?;
    let one = |value: &f64| Answers { sum: *value, count: 1 };
    let outcomes = pairs.first.iter().zip(&pairs.second).zip(&pairs.clusters);
    let paired: Vec<PairedAnswers> =
        outcomes.map(|((first, second), cluster)| PairedAnswers::single(*cluster, one(first), one(second))).collect();
    let [first, second] = &pairs.names;
    let outcomes = pairs.first.iter().zip(&pairs.second);
    let counts = PairedCounts::of(outcomes.map(|(first, second)| (*first == 1.0, *second == 1.0)));
    let test = mcnemar(&counts);
    let verdict = paired_verdict(&paired).map_err(|error| match error {
        VerdictError::OneCluster => CliError::usage(format!(
            "{error}: `{}` is the same in every row; name another --group. McNemar's exact test, which takes pairs as independent, has \
             p {}",
            args.group(),
            p_value(Some(test.exact_p))
        )),
        error => error.into(),
    })?;
    let difference = verdict.robust;
    let reason = verdict.reason.clause([first.as_str(), second.as_str()]);
    let interval = verdict.interval(args.level);
    let p = verdict.has_p().then_some(verdict.p);
    if args.json {
        let value = serde_json::json!({
            "first": first, "second": second, "rows_dropped": pairs.dropped, "notes": pairs.notes, "difference": difference,
            "low": interval.map(|ends| ends.0), "high": interval.map(|ends| ends.1), "p": p, "test": verdict.test, "test_reason": reason,
            "p_error": verdict.p_error, "cluster_t_p": (difference.standard_error > 0.0 || difference.mean == 0.0).then(|| difference.p()),
            "counts": counts, "mcnemar": test,
        });
        printer.json(&value)?;
        return Ok(Exit::Success);
    }
    let mut text = String::new();
    writeln!(
        text,
        "{} minus {}: {:+.4}, cluster-robust std. error {:.4}, {} % interval {}, p {}",
        second,
        first,
        difference.mean,
        difference.standard_error,
        (args.level * 1e6).round() / 1e4,
        interval.map_or_else(|| "-".to_owned(), |interval| format!("[{}]", ends(interval, 0.0, 4, true).join(", "))),
        p_value(p)
    )?;
    writeln!(text, "p by {}, because {reason}", verdict.test.name())?;
    writeln!(
        text,
        "{} in {} of `{}` ({} dropped), design effect {:.2}",
        counted(difference.observations, "pair"),
        counted(difference.clusters, "cluster"),
        args.group(),
        counted(pairs.dropped, "row"),
        difference.design_effect
    )?;
    writeln!(
        text,
        "both right {}, only {} {}, only {} {}, neither {}; McNemar exact p {} (assumes independent pairs)",
        counts.both,
        first,
        counts.first_only,
        second,
        counts.second_only,
        counts.neither,
        p_value(Some(test.exact_p))
    )?;
    for note in &pairs.notes {
        writeln!(text, "warning: {note}")?;
    }
    printer.result(&text)?;
    Ok(Exit::Success)
}
