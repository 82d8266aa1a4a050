//! `earnest stats power`.

mod design;

use std::io::Write;

use clap::{Args, Subcommand};

use crate::cli::Exit;
use design::DesignArgs;
use earnest_stats::power::{ClusteredDesign, PairedDesign, Rates};

/// Options of `earnest stats power`.
#[derive(Debug, Clone, Args)]
pub struct PowerArgs {
    #[command(subcommand)]
    command: PowerCommand,
}

/// Design of a comparison.
#[derive(Debug, Clone, Subcommand)]
enum PowerCommand {
    /// Two systems answer the same questions
    Paired {
        /// Accuracy difference to detect, e.g. 0.03; prints the number of questions needed
        #[arg(
            long,
            value_name = "FRACTION",
            required_unless_present = "items",
            conflicts_with = "items",
            allow_negative_numbers = true
        )]
        effect: Option<f64>,
        /// Number of questions; prints the smallest detectable difference
        #[arg(long, value_name = "N")]
        items: Option<f64>,
        /// Fraction of questions that exactly one of the two answers correctly
        #[arg(long, value_name = "FRACTION")]
        discordance: f64,
        /// Questions per cluster (template)
        #[arg(long, value_name = "N", default_value_t = 1.0)]
        cluster_size: f64,
        /// Correlation of the differences within a cluster
        #[arg(long, value_name = "R", default_value_t = 0.0)]
        intracluster: f64,
        #[command(flatten)]
        rates: RateArgs,
    },
    /// Templates x questions x samples: power, and the cheapest design, from a pilot or from random effects with slopes
    Design(Box<DesignArgs>),
    /// One system answers questions of every template under two conditions (original and variants)
    Clustered {
        /// Accuracy difference to detect; prints the number of templates needed
        #[arg(
            long,
            value_name = "FRACTION",
            required_unless_present = "clusters",
            conflicts_with = "clusters",
            allow_negative_numbers = true
        )]
        effect: Option<f64>,
        /// Number of templates; prints the smallest detectable difference
        #[arg(long, value_name = "N")]
        clusters: Option<f64>,
        /// Expected accuracy
        #[arg(long, value_name = "FRACTION")]
        accuracy: f64,
        /// Correlation of two answers within a template
        #[arg(long, value_name = "R")]
        intracluster: f64,
        /// Questions per template in the first condition
        #[arg(long, value_name = "N", default_value_t = 1.0)]
        first_size: f64,
        /// Questions per template in the second condition
        #[arg(long, value_name = "N", default_value_t = 50.0)]
        second_size: f64,
        #[command(flatten)]
        rates: RateArgs,
    },
}

/// Error rates and output.
#[derive(Debug, Clone, Copy, Args)]
struct RateArgs {
    /// Two-sided significance level
    #[arg(long, value_name = "LEVEL", default_value_t = 0.05)]
    alpha: f64,
    /// Probability of detecting the effect
    #[arg(long, value_name = "FRACTION", default_value_t = 0.8)]
    power: f64,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &PowerArgs, output: &mut dyn Write) -> anyhow::Result<Exit> {
    let (rates, unit, size, effect) = match &args.command {
        PowerCommand::Design(args) => return design::run(args, output),
        PowerCommand::Paired { effect, items, discordance, cluster_size, intracluster, rates } => {
            let design =
                PairedDesign { discordance: *discordance, cluster_size: *cluster_size, intracluster: *intracluster };
            let levels = Rates { alpha: rates.alpha, power: rates.power };
            let (size, effect) = match (effect, items) {
                (Some(effect), _) => (design.required_items(*effect, levels)?, *effect),
                (None, Some(items)) => {
                    anyhow::ensure!(items.fract() == 0.0, "--items is {items}, expected a whole number");
                    let effect = design.detectable_effect(*items, levels)?;
                    // The discordance is the largest possible difference: reaching it means that none is detectable.
                    if effect >= *discordance && design.required_items(effect, levels)? > *items {
                        anyhow::bail!(
                            "{items} questions are too few to detect any difference at a discordance of {discordance}: the largest \
                             possible one, {discordance}, needs {}",
                            design.required_items(effect, levels)?
                        );
                    }
                    (*items, effect)
                }
                (None, None) => anyhow::bail!("give --effect or --items"),
            };
            (rates, "questions", size, effect)
        }
        PowerCommand::Clustered { effect, clusters, accuracy, intracluster, first_size, second_size, rates } => {
            let design = ClusteredDesign {
                accuracy: *accuracy,
                intracluster: *intracluster,
                first_size: *first_size,
                second_size: *second_size,
            };
            let levels = Rates { alpha: rates.alpha, power: rates.power };
            let (size, effect) = match (effect, clusters) {
                (Some(effect), _) => (design.required_clusters(*effect, levels)?, *effect),
                (None, Some(clusters)) => {
                    anyhow::ensure!(clusters.fract() == 0.0, "--clusters is {clusters}, expected a whole number");
                    let effect = design.detectable_effect(*clusters, levels)?;
                    // Largest possible difference from the accuracy, within 0 to 1.
                    let room = accuracy.max(1.0 - accuracy);
                    if effect > room {
                        anyhow::bail!(
                            "{clusters} templates are too few: the smallest detectable difference is {effect:.4}, and at an accuracy of \
                             {accuracy} no difference exceeds {room:.4}"
                        );
                    }
                    (*clusters, effect)
                }
                (None, None) => anyhow::bail!("give --effect or --clusters"),
            };
            (rates, "templates", size, effect)
        }
    };
    if rates.json {
        let value = serde_json::json!({
            "unit": unit, "size": size, "effect": effect, "alpha": rates.alpha, "power": rates.power,
        });
        serde_json::to_writer_pretty(&mut *output, &value)?;
        writeln!(output)?;
    } else {
        writeln!(
            output,
            "{size} {unit} detect an accuracy difference of {effect:.4} ({:.2} percentage points) with power {} at level {}",
            100.0 * effect,
            rates.power,
            rates.alpha
        )?;
    }
    Ok(Exit::Success)
}
