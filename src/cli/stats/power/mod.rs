//! `earnest stats power`.

mod answer;
mod design;

use clap::{Args, Subcommand, ValueEnum};

use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use crate::cli::stats::failed::require;
use answer::{Answer, Given, OneWay};
use design::DesignArgs;
use earnest_stats::verdict::enough_answers;
use earnest_stats::{ClusteredDesign, Direction, PairedDesign, PowerError, Rates};

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
            allow_hyphen_values = true
        )]
        effect: Option<f64>,
        /// Number of questions; prints the smallest detectable difference
        #[arg(long, value_name = "N")]
        items: Option<f64>,
        /// Fraction of questions that exactly one of the two answers correctly
        #[arg(long, value_name = "FRACTION")]
        discordance: f64,
        /// Expected accuracy of the first: no difference is named that it has no room for
        #[arg(long, value_name = "FRACTION")]
        accuracy: Option<f64>,
        /// Questions per cluster (template)
        #[arg(long, value_name = "N", default_value_t = 1.0)]
        cluster_size: f64,
        /// Correlation of the differences within a cluster
        #[arg(long, value_name = "R", default_value_t = 0.0)]
        intracluster: f64,
        /// Direction of the difference; an effect below 0 is a drop
        #[arg(long, value_enum, default_value = "both", hide_possible_values = true, value_name = "drop|rise|both")]
        direction: Asked,
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
            allow_hyphen_values = true
        )]
        effect: Option<f64>,
        /// Number of templates; prints the smallest detectable difference
        #[arg(long, value_name = "N")]
        clusters: Option<f64>,
        /// Expected accuracy in the first condition
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
        /// Direction of the difference; an effect below 0 is a drop
        #[arg(long, value_enum, default_value = "both", hide_possible_values = true, value_name = "drop|rise|both")]
        direction: Asked,
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

impl RateArgs {
    fn levels(&self) -> Rates {
        Rates { alpha: self.alpha, power: self.power }
    }
}

/// Direction of the differences that are asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Asked {
    /// The second accuracy is below the first
    Drop,
    /// The second accuracy is above the first
    Rise,
    /// Either
    Both,
}

impl Asked {
    /// The directions; an effect below 0 is a drop.
    fn directions(self, given: Given) -> Result<&'static [Direction], CliError> {
        match (self, given) {
            (Asked::Rise, Given::Effect(effect)) if effect < 0.0 => Err(CliError::usage(format!(
                "--effect {effect} is a drop, and --direction asks about rises: give the effect without its sign"
            ))),
            (Asked::Drop, _) => Ok(&[Direction::Drop]),
            (_, Given::Effect(effect)) if effect < 0.0 => Ok(&[Direction::Drop]),
            (Asked::Rise, _) => Ok(&[Direction::Rise]),
            (Asked::Both, _) => Ok(&Direction::BOTH),
        }
    }
}

/// The number that was given: clap allows one of the two.
fn given(effect: Option<f64>, size: Option<f64>, option: &str) -> Result<Given, CliError> {
    match (effect, size) {
        (Some(effect), _) => Ok(Given::Effect(effect)),
        (None, Some(size)) => {
            require(size.fract() == 0.0, || format!("--{option} is {size}, expected a whole number"))?;
            Ok(Given::Size(size))
        }
        (None, None) => Err(CliError::usage(format!("give --effect or --{option}"))),
    }
}

/// Sizes and differences of two systems that answer the same questions, which are those of the test in both directions alike; a first
/// accuracy bounds the differences.
fn paired(
    design: PairedDesign,
    accuracy: Option<f64>,
    given: Given,
    asked: Asked,
    rates: Rates,
) -> Result<Answer, CliError> {
    let discordance = design.discordance;
    let (size, effect, undetected) = match given {
        Given::Effect(effect) => (Some(design.required_items(effect, rates)?), Some(effect.abs()), None),
        Given::Size(items) => {
            let effect = design.detectable_effect(items, rates)?;
            // The discordance is the largest possible difference: reaching it may mean that none is detectable.
            let needed = if effect < discordance { items } else { design.required_items(effect, rates)? };
            let reason = format!(
                "no difference is detected, not even that of all discordant questions, {discordance}, which needs {needed} questions"
            );
            let none = needed > items;
            (Some(items), Some(effect).filter(|_| !none), none.then_some(reason))
        }
    };
    let mut directions = Vec::new();
    for &direction in asked.directions(given)? {
        let mut reason = undetected.clone();
        if let (None, Some(accuracy), Some(effect)) = (&reason, accuracy, effect) {
            let room = design.room(accuracy, direction)?;
            let disagree = format!("where one alone is right on {discordance} of the questions");
            reason = match room {
                room if room <= 0.0 => Some(format!("no {direction} from {accuracy} is possible {disagree}")),
                room if effect > room + 1e-12 => {
                    let room = (1e12 * room).round() / 1e12;
                    let smallest = match given {
                        Given::Size(_) => format!(", and the smallest that is detected would be {effect:.4}"),
                        Given::Effect(_) => String::new(),
                    };
                    Some(format!("no {direction} from {accuracy} exceeds {room} {disagree}{smallest}"))
                }
                _ => None,
            };
        }
        let found = |number: Option<f64>| number.filter(|_| reason.is_none());
        directions.push(OneWay { direction, size: found(size), effect: found(effect), reason });
    }
    Ok(Answer { unit: "questions", given, accuracy, directions, note: None })
}

/// Sizes and differences of one system under two conditions.
fn clustered(design: ClusteredDesign, given: Given, asked: Asked, rates: Rates) -> Result<Answer, CliError> {
    let accuracy = design.accuracy;
    let of = |direction: Direction| -> Result<OneWay, CliError> {
        let none = |reason: String| OneWay { direction, size: None, effect: None, reason: Some(reason) };
        Ok(match given {
            Given::Effect(effect) => match design.required_clusters(effect.abs(), direction, rates) {
                Ok(size) => OneWay { direction, size: Some(size), effect: Some(effect.abs()), reason: None },
                Err(error @ PowerError::Room { .. }) => none(error.to_string()),
                Err(error) => return Err(error.into()),
            },
            Given::Size(clusters) => match design.detectable_effect(clusters, direction, rates)? {
                Some(effect) => OneWay { direction, size: Some(clusters), effect: Some(effect), reason: None },
                None => {
                    let needed = design.required_clusters(direction.room(accuracy), direction, rates)?;
                    let end = direction.shifted(accuracy, 1.0);
                    none(format!(
                        "no {direction} from {accuracy} is detected, not even one to {end}, which needs {needed} templates"
                    ))
                }
            },
        })
    };
    let directions: Vec<OneWay> =
        asked.directions(given)?.iter().map(|direction| of(*direction)).collect::<Result<_, CliError>>()?;
    let templates = match given {
        Given::Size(clusters) => clusters,
        Given::Effect(_) => directions.iter().filter_map(|one| one.size).fold(0.0, f64::max),
    };
    let note = exact_instead(accuracy, templates * design.first_size);
    Ok(Answer { unit: "templates", given, accuracy: Some(accuracy), directions, note })
}

/// The sentence that another test than the t test will judge, where few originals are expected to be right or wrong.
fn exact_instead(accuracy: f64, originals: f64) -> Option<String> {
    let (rarer, other) = if accuracy <= 0.5 { ("right", ["drop", "rise"]) } else { ("wrong", ["rise", "drop"]) };
    let expected = accuracy.min(1.0 - accuracy) * originals;
    let [more, less] = other;
    (expected < enough_answers(originals)).then(|| {
        format!(
            "This is the power of the t test over templates. With {expected:.0} {rarer} originals, as expected, compare judges by an exact test, which \
             finds a {more} more often than this says and a {less} less often (docs/statistics.md)"
        )
    })
}

pub(super) fn run(args: &PowerArgs, printer: Printer) -> Result<Exit, CliError> {
    let (rates, answer) = match &args.command {
        PowerCommand::Design(args) => return design::run(args, printer),
        PowerCommand::Paired { effect, items, discordance, accuracy, cluster_size, intracluster, direction, rates } => {
            let design =
                PairedDesign { discordance: *discordance, cluster_size: *cluster_size, intracluster: *intracluster };
            let given = given(*effect, *items, "items")?;
            (rates, paired(design, *accuracy, given, *direction, rates.levels())?)
        }
        PowerCommand::Clustered {
            effect,
            clusters,
            accuracy,
            intracluster,
            first_size,
            second_size,
            direction,
            rates,
        } => {
            let design = ClusteredDesign {
                accuracy: *accuracy,
                intracluster: *intracluster,
                first_size: *first_size,
                second_size: *second_size,
            };
            let given = given(*effect, *clusters, "clusters")?;
            (rates, clustered(design, given, *direction, rates.levels())?)
        }
    };
    // A difference that cannot be is a slip; templates that detect none are an answer.
    if let (Given::Effect(_), true) = (answer.given, answer.is_empty()) {
        return Err(CliError::usage(answer.reasons().join("; ")));
    }
    if rates.json {
        printer.json(&answer.json(rates.levels()))?;
    } else {
        printer.result(&answer.text(rates.levels()))?;
    }
    Ok(if answer.is_empty() { Exit::FailedSamples } else { Exit::Success })
}
