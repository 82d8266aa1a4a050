//! `earnest stats power design`.
use crate::cli::printer::Printer;
use crate::cli::stats::failed::require;
use crate::cli::values::counted;
use std::fmt::Write as _;

use clap::Args;
use serde_json::json;

use super::RateArgs;
use crate::cli::Exit;
use crate::cli::args::ResultsArgs;
use crate::cli::error::CliError;
use earnest_report::compare::{Pilot, pilot};
use earnest_report::{Align, Table};
use earnest_stats::design::{
    Costs, DesignSize, FoundDesign, Limits, MixedDesign, RandomEffects, VarianceParts, cheapest, paired_cluster_test,
    simulated_power,
};
use earnest_stats::{Direction, Rates};

/// Options of `earnest stats power design`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  earnest stats power design --effect 0.03 --accuracy 0.6 --intercept-sd 1.5 --slope-sd 0.7 --questions 50
  earnest stats power design --effect 0.03 --accuracy 0.6 --intercept-sd 1.5 --slope-sd 0.7 --templates 100 --questions 50 --samples 1 --simulate 2000
  earnest stats power design --effect 0.02 --run RUN,RUN --most-templates 100 --most-questions 50

Numbers that are not given are chosen: the cheapest design that finds the effect. The variance of a template's difference has three parts, \
which more templates, more questions of a template, and more samples of a question divide.")]
pub struct DesignArgs {
    /// Accuracy difference to detect, e.g. 0.03
    #[arg(long, value_name = "FRACTION", allow_hyphen_values = true)]
    effect: f64,

    /// Pilot, twice: two stored runs of the same questions, whose variances are taken
    #[arg(long = "run", value_name = "RUN,...", value_delimiter = ',', help_heading = "Pilot", conflicts_with_all = ["accuracy", "intercept_sd", "slope_sd",
        "correlation", "question_sd", "question_slope_sd", "question_correlation", "own_questions", "simulate"])]
    runs: Vec<String>,

    #[command(flatten)]
    results: ResultsArgs,

    /// Accuracy of the first condition
    #[arg(
        long,
        value_name = "FRACTION",
        required_unless_present = "runs",
        allow_negative_numbers = true,
        help_heading = "Model"
    )]
    accuracy: Option<f64>,
    /// Standard deviation of the templates' intercepts on the logit scale
    #[arg(long, value_name = "SD", default_value_t = 0.0, allow_negative_numbers = true, help_heading = "Model")]
    intercept_sd: f64,
    /// Standard deviation of the templates' slopes: their differences between the conditions
    #[arg(long, value_name = "SD", default_value_t = 0.0, allow_negative_numbers = true, help_heading = "Model")]
    slope_sd: f64,
    /// Correlation of the templates' intercepts and slopes
    #[arg(long, value_name = "R", default_value_t = 0.0, allow_negative_numbers = true, help_heading = "Model")]
    correlation: f64,
    /// Standard deviation of the questions' intercepts within a template
    #[arg(long, value_name = "SD", default_value_t = 0.0, allow_negative_numbers = true, help_heading = "Model")]
    question_sd: f64,
    /// Standard deviation of the questions' slopes
    #[arg(long, value_name = "SD", default_value_t = 0.0, allow_negative_numbers = true, help_heading = "Model")]
    question_slope_sd: f64,
    /// Correlation of the questions' intercepts and slopes
    #[arg(long, value_name = "R", default_value_t = 0.0, allow_negative_numbers = true, help_heading = "Model")]
    question_correlation: f64,
    /// The conditions have their own questions (originals and variants), instead of the same ones (two models)
    #[arg(long, help_heading = "Model")]
    own_questions: bool,

    /// Number of templates
    #[arg(long, value_name = "N", help_heading = "Design")]
    templates: Option<usize>,
    /// Questions per template
    #[arg(long, value_name = "N", help_heading = "Design")]
    questions: Option<usize>,
    /// Samples per question
    #[arg(long, value_name = "N", help_heading = "Design")]
    samples: Option<usize>,
    /// Most templates to choose
    #[arg(long, value_name = "N", default_value_t = 100_000, conflicts_with = "templates", help_heading = "Design")]
    most_templates: usize,
    /// Most questions per template to choose
    #[arg(long, value_name = "N", default_value_t = 50, conflicts_with = "questions", help_heading = "Design")]
    most_questions: usize,
    /// Most samples per question to choose
    #[arg(long, value_name = "N", default_value_t = 8, conflicts_with = "samples", help_heading = "Design")]
    most_samples: usize,
    /// Cost of a template
    #[arg(long, value_name = "COST", default_value_t = 0.0, allow_negative_numbers = true, help_heading = "Design")]
    template_cost: f64,
    /// Cost of a question
    #[arg(long, value_name = "COST", default_value_t = 0.0, allow_negative_numbers = true, help_heading = "Design")]
    question_cost: f64,
    /// Cost of a sample of a question, in both conditions
    #[arg(long, value_name = "COST", default_value_t = 1.0, allow_negative_numbers = true, help_heading = "Design")]
    sample_cost: f64,

    /// Number of simulated studies that check the power: drawn from the model, analysed with the paired test over templates
    #[arg(long, value_name = "N")]
    simulate: Option<u64>,
    /// Seed of the simulation
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    rates: RateArgs,
}

/// Source of the variances.
enum Source {
    Model(MixedDesign),
    Pilot(Pilot),
}

/// Largest number of templates, of questions of a template and of samples of a question: their product is an exact number.
const MOST: usize = 1_000_000;

/// Most pairs of questions and samples that are tried for the cheapest design.
const MOST_PAIRS: usize = 100_000;

/// Most answers of one condition in a simulated study, which is kept in memory by every thread: 64 bytes an answer.
const MOST_ANSWERS: usize = 1_000_000;

/// Most answers of one condition in all simulated studies together, where a study counts as [`PER_STUDY`] more: some 10 s on two cores.
const MOST_SIMULATED: u64 = 30_000_000;

/// Answers that take the time of what a study needs beside its own.
const PER_STUDY: u64 = 20;

impl DesignArgs {
    /// Refuses numbers that would take too much memory or time.
    fn check(&self) -> Result<(), CliError> {
        let numbers = [
            ("templates", self.templates),
            ("questions", self.questions),
            ("samples", self.samples),
            ("most-templates", Some(self.most_templates)),
            ("most-questions", Some(self.most_questions)),
            ("most-samples", Some(self.most_samples)),
        ];
        for (option, number) in numbers {
            if let Some(number) = number.filter(|number| *number > MOST) {
                return Err(CliError::usage(format!("--{option} {number} is more than {MOST}")));
            }
        }
        // A number that is given is the only one that is tried.
        let tried = |given: Option<usize>, most: usize| if given.is_some() { 1 } else { most };
        let (questions, samples) = (tried(self.questions, self.most_questions), tried(self.samples, self.most_samples));
        require(self.is_fixed() || questions * samples <= MOST_PAIRS, || {
            format!(
                "--most-questions {questions} and --most-samples {samples} make {} pairs to try, more than {MOST_PAIRS}",
                questions * samples
            )
        })?;
        Ok(())
    }

    /// Refuses simulations that would take too much memory or time.
    fn check_simulation(&self, size: DesignSize) -> Result<(), CliError> {
        let Some(studies) = self.simulate else { return Ok(()) };
        let DesignSize { templates, questions, samples } = size;
        let answers = size.answers();
        require(answers <= MOST_ANSWERS, || {
            format!(
                "--simulate draws every answer: {templates} templates, {questions} questions and {samples} samples are {answers} \
             answers of a condition, more than {MOST_ANSWERS}"
            )
        })?;
        let of_study = answers as u64 + PER_STUDY;
        let all = studies.saturating_mul(of_study);
        require(all <= MOST_SIMULATED, || {
            format!(
                "--simulate {studies} with {answers} answers of a condition takes too long; simulate {} studies or fewer",
                MOST_SIMULATED / of_study
            )
        })?;
        Ok(())
    }

    /// Adds remarks on the runs to `notes`.
    fn source(&self, notes: &mut Vec<String>) -> Result<Source, CliError> {
        if self.runs.is_empty() {
            let Some(accuracy) = self.accuracy else {
                return Err(CliError::usage("give --accuracy, or a pilot with --run twice"));
            };
            let design = MixedDesign {
                accuracy,
                effect: self.effect,
                template: RandomEffects {
                    intercept_sd: self.intercept_sd,
                    slope_sd: self.slope_sd,
                    correlation: self.correlation,
                },
                question: RandomEffects {
                    intercept_sd: self.question_sd,
                    slope_sd: self.question_slope_sd,
                    correlation: self.question_correlation,
                },
                shared_questions: !self.own_questions,
            };
            design.check()?;
            return Ok(Source::Model(design));
        }
        let [first, second] = self.runs.as_slice() else {
            return Err(CliError::usage(format!(
                "a pilot is two runs of the same questions: give --run A,B, not {} of them",
                self.runs.len()
            )));
        };
        let store = earnest_results::folder::open(&self.results.folder)?;
        let pilot = pilot(&store, [first.as_str(), second.as_str()], &mut |note| notes.push(note.to_string()))?;
        Ok(Source::Pilot(pilot))
    }
}

impl Source {
    /// Accuracy of the first condition.
    fn accuracy(&self) -> f64 {
        match self {
            Source::Model(design) => design.accuracy,
            Source::Pilot(pilot) => pilot.accuracy,
        }
    }

    /// Smallest difference in the effect's direction that a design finds; none if no possible one is found.
    fn detectable(&self, direction: Direction, size: DesignSize, rates: Rates) -> Result<Option<f64>, CliError> {
        Ok(match self {
            Source::Model(design) => design.detectable_effect(size, rates)?,
            Source::Pilot(pilot) => {
                let effect = pilot.parts.detectable_effect(size, rates)?;
                Some(effect).filter(|effect| *effect <= direction.room(pilot.accuracy))
            }
        })
    }

    fn parts(&self) -> Result<VarianceParts, CliError> {
        Ok(match self {
            Source::Model(design) => design.parts()?,
            Source::Pilot(pilot) => pilot.parts,
        })
    }

    fn text(&self) -> String {
        match self {
            Source::Model(design) => {
                let questions = if design.shared_questions { "shared" } else { "own" };
                format!(
                    "Model: accuracy {}, templates (SD {}, slope SD {}, correlation {}), {questions} questions (SD {}, slope SD {}, \
                     correlation {})\n",
                    design.accuracy,
                    design.template.intercept_sd,
                    design.template.slope_sd,
                    design.template.correlation,
                    design.question.intercept_sd,
                    design.question.slope_sd,
                    design.question.correlation
                )
            }
            Source::Pilot(pilot) => format!(
                "Pilot: {} against {}, {} in {}, accuracy {:.1} %, difference {:+.1} points\n",
                pilot.runs[1],
                pilot.runs[0],
                counted(pilot.questions, "question"),
                counted(pilot.templates, "template"),
                100.0 * pilot.accuracy,
                100.0 * pilot.difference
            ),
        }
    }
}

pub(super) fn run(args: &DesignArgs, printer: Printer) -> Result<Exit, CliError> {
    args.check()?;
    let mut notes = Vec::new();
    let source = args.source(&mut notes)?;
    let direction = Direction::of(args.effect);
    direction.check(source.accuracy(), args.effect.abs())?;
    let parts = source.parts()?;
    let rates = Rates { alpha: args.rates.alpha, power: args.rates.power };
    let mut most_samples = args.samples.unwrap_or(args.most_samples);
    if let Source::Pilot(pilot) = &source
        && !pilot.repeated
    {
        require(args.samples.is_none_or(|samples| samples == 1), || {
            "the pilot asked every question once, which does not tell what more samples are worth: leave --samples out, or repeat the \
             pilot with --samples 2"
        })?;
        most_samples = 1;
    }
    let limits = Limits {
        templates: args.templates.unwrap_or(args.most_templates),
        questions: args.questions.unwrap_or(args.most_questions),
        samples: most_samples,
    };
    let costs = Costs { template: args.template_cost, question: args.question_cost, sample: args.sample_cost };
    let found = choose(args, &parts, limits, costs, rates)?;
    let Some(FoundDesign { size, cost, power }) = found else {
        return Err(CliError::usage(format!(
            "no design of at most {} templates, {} questions and {} samples finds a difference of {} with power {}: the largest has {:.3}",
            limits.templates,
            limits.questions,
            limits.samples,
            args.effect,
            rates.power,
            parts.power(args.effect, largest(limits), rates.alpha)?
        )));
    };
    let detectable = source.detectable(direction, size, rates)?;
    let accuracy = (1e4 * source.accuracy()).round() / 1e4;
    let undetected = format!("possible {direction} from an accuracy of {accuracy} is found with power {}", rates.power);
    args.check_simulation(size)?;
    let simulated = match (&source, args.simulate) {
        (Source::Model(design), Some(studies)) => {
            Some((studies, simulated_power(design, size, rates.alpha, studies, args.seed, &paired_cluster_test)?))
        }
        _ => None,
    };
    if args.rates.json {
        let value = json!({
            "notes": notes, "effect": args.effect, "alpha": rates.alpha, "target_power": rates.power, "size": size, "answers": size.answers(),
            "cost": cost, "power": power, "direction": direction, "detectable": detectable,
            "detectable_reason": detectable.is_none().then(|| format!("no {undetected}")), "variance": parts,
            "model": match &source { Source::Model(design) => Some(design), Source::Pilot(_) => None },
            "pilot": match &source { Source::Pilot(pilot) => Some(pilot), Source::Model(_) => None },
            "simulated": simulated.map(|(studies, (power, error))| json!({
                "studies": studies, "seed": args.seed, "power": power, "standard_error": error,
            })),
        });
        printer.json(&value)?;
        return Ok(Exit::Success);
    }
    let mut text = source.text();
    for note in notes {
        writeln!(text, "note: {note}")?;
    }
    text.push_str(&variance_table(&parts, size, &source));
    let chosen = if args.is_fixed() { "This design" } else { "The cheapest design" };
    writeln!(
        text,
        "\n{chosen}: {} x {} x {}, {} of each condition, cost {cost}",
        counted(size.templates, "template"),
        counted(size.questions, "question"),
        counted(size.samples, "sample"),
        counted(size.answers(), "answer")
    )?;
    writeln!(
        text,
        "Power {power:.3} for a difference of {:+.2} points at level {} (t test over templates)",
        100.0 * args.effect,
        rates.alpha
    )?;
    match detectable {
        Some(effect) => writeln!(
            text,
            "Smallest difference found with power {}: {:.2} points, a {direction}",
            rates.power,
            100.0 * effect
        )?,
        None => writeln!(text, "No {undetected}")?,
    }
    if let Some((studies, (power, error))) = simulated {
        writeln!(
            text,
            "Simulated: power {power:.3}, Monte Carlo error {error:.3}, {studies} studies with seed {}",
            args.seed
        )?;
    }
    printer.result(&text)?;
    Ok(Exit::Success)
}

impl DesignArgs {
    fn is_fixed(&self) -> bool {
        self.templates.is_some() && self.questions.is_some()
    }
}

fn largest(limits: Limits) -> DesignSize {
    DesignSize { templates: limits.templates, questions: limits.questions, samples: limits.samples }
}

/// The design of the arguments, or the cheapest one with the numbers that they give.
fn choose(
    args: &DesignArgs,
    parts: &VarianceParts,
    limits: Limits,
    costs: Costs,
    rates: Rates,
) -> Result<Option<FoundDesign>, CliError> {
    // A number that is given is not a limit: with fewer questions than given, more templates would be asked for.
    if args.is_fixed() {
        let size = DesignSize { samples: args.samples.unwrap_or(1), ..largest(limits) };
        let power = parts.power(args.effect, size, rates.alpha)?;
        return Ok(Some(FoundDesign { size, cost: costs.of(size), power }));
    }
    let fewest = DesignSize {
        templates: args.templates.unwrap_or(2),
        questions: args.questions.unwrap_or(1),
        samples: args.samples.unwrap_or(1),
    };
    Ok(cheapest(parts, args.effect, fewest, limits, costs, rates)?)
}

/// Table of the variance's parts, and of what is left of them in a design.
fn variance_table(parts: &VarianceParts, size: DesignSize, source: &Source) -> String {
    let head = [
        ("SD of a template's difference, points", Align::Left),
        ("of one", Align::Right),
        ("in the mean", Align::Right),
    ];
    let mut table = Table::new(head.map(|(name, align)| (name.to_owned(), align)));
    let (questions, samples) = (size.questions as f64, size.samples as f64);
    let mut row = |name: &str, part: f64, divisor: f64| {
        let points = |variance: f64| format!("{:.2}", 100.0 * variance.sqrt());
        table.row(vec![name.to_owned(), points(part), points(part / divisor)]);
    };
    row("templates", parts.template, 1.0);
    match source {
        Source::Pilot(pilot) if !pilot.repeated => row("questions and answers", parts.question, questions),
        _ => {
            row("questions", parts.question, questions);
            row("answers", parts.sample, questions * samples);
        }
    }
    format!("\n{}", table.render())
}
