//! Conclusions of section 3, tested as contrasts between variants that differ in one setting.
use super::document::{ClaimOutcome, Section3Finding, tasks};
use earnest_train::experiment::{CellChoice, ExperimentResults, Metric};

/// Score up to which both variants are at the floor.
const FLOOR: f64 = 0.01;

/// Exact match at the training lengths below which a task is not learnt.
const LEARNT: f64 = 0.5;

#[derive(Clone, Copy)]
enum Axis {
    Tokenizer,
    Position,
    Format,
}

impl Axis {
    fn of(self, choice: &CellChoice) -> &str {
        match self {
            Axis::Tokenizer => &choice.tokenizer,
            Axis::Position => &choice.position,
            Axis::Format => &choice.format,
        }
    }

    fn with(self, choice: &CellChoice, value: &str) -> CellChoice {
        let mut other = choice.clone();
        *match self {
            Axis::Tokenizer => &mut other.tokenizer,
            Axis::Position => &mut other.position,
            Axis::Format => &mut other.format,
        } = value.to_owned();
        other
    }
}

struct Claim {
    text: &'static str,
    rests_on: &'static str,
    axis: Axis,
    /// Pairs of the variant that is expected to be better and the other one.
    pairs: &'static [(&'static str, &'static str)],
    /// True for the training lengths, false for longer ones; or both.
    learnt: &'static [bool],
}

const CLAIMS: [Claim; 6] = [
    Claim {
        text: "One-digit tokens are at least as good as longer ones, in domain and out of it",
        rests_on: "Figures 4 and 9 to 11",
        axis: Axis::Tokenizer,
        pairs: &[("1", "2"), ("1", "3"), ("1", "2-random"), ("1", "3-random")],
        learnt: &[true, false],
    },
    Claim {
        text: "Random groups generalise further in length than fixed ones",
        rests_on: "Figure 12",
        axis: Axis::Tokenizer,
        pairs: &[("2-random", "2"), ("3-random", "3")],
        learnt: &[false],
    },
    Claim {
        text: "NoPE and ALiBi generalise further in length than RoPE",
        rests_on: "Figure 13, Table 12",
        axis: Axis::Position,
        pairs: &[("nope", "rope"), ("alibi", "rope")],
        learnt: &[false],
    },
    Claim {
        text: "In small models, RoPE does best on what was learnt",
        rests_on: "Tables 13 to 15",
        axis: Axis::Position,
        pairs: &[("rope", "nope"), ("rope", "alibi")],
        learnt: &[true],
    },
    Claim {
        text: "Reversed or padded numbers beat plain ones out of domain",
        rests_on: "Table 16, Figures 14 and 15",
        axis: Axis::Format,
        pairs: &[("reversed", "plain"), ("padded", "plain"), ("reversed+padded", "plain")],
        learnt: &[false],
    },
    Claim {
        text: "Index hints do not help",
        rests_on: "Table 17, Figures 16 to 18",
        axis: Axis::Format,
        pairs: &[("plain", "hinted"), ("reversed", "reversed+hinted")],
        learnt: &[false],
    },
];

/// All contrasts for which the experiment has models.
pub(super) fn findings(results: &ExperimentResults) -> Vec<Section3Finding> {
    let choices = results.choices();
    let mut all = Vec::new();
    for claim in &CLAIMS {
        for &(better, than) in claim.pairs {
            for &choice in choices.iter().filter(|choice| claim.axis.of(choice) == better) {
                let other = claim.axis.with(choice, than);
                if !choices.contains(&&other) {
                    continue;
                }
                let Some(model) = results.seeds_of(choice).next() else { continue };
                for task in tasks(model) {
                    for &learnt in claim.learnt {
                        for measured in [Metric::ExactMatch, Metric::DigitMatch] {
                            all.extend(contrast(results, claim, choice, &other, &task, learnt, measured));
                        }
                    }
                }
            }
        }
    }
    all
}

fn contrast(
    results: &ExperimentResults,
    claim: &Claim,
    choice: &CellChoice,
    other: &CellChoice,
    task: &str,
    learnt: bool,
    measured: Metric,
) -> Option<Section3Finding> {
    let of_better = results.over(choice, task, learnt, measured)?;
    let of_other = results.over(other, task, learnt, measured)?;
    let difference = of_better.minus(&of_other);
    let knows = |choice| results.over(choice, task, true, Metric::ExactMatch).is_none_or(|own| own.mean >= LEARNT);
    let outcome = match difference {
        _ if of_better.mean <= FLOOR && of_other.mean <= FLOOR => ClaimOutcome::Floor,
        None => ClaimOutcome::OneSeed,
        Some(difference) if difference.low > 0.0 => match knows(choice) {
            true => ClaimOutcome::Shown,
            false => ClaimOutcome::ShownNotLearnt,
        },
        Some(difference) if difference.high < 0.0 => match knows(other) {
            true => ClaimOutcome::Opposite,
            false => ClaimOutcome::OppositeNotLearnt,
        },
        Some(_) => ClaimOutcome::NotShown,
    };
    let among = [
        (!matches!(claim.axis, Axis::Tokenizer)).then(|| format!("tokens of {}", choice.tokenizer)),
        (!matches!(claim.axis, Axis::Position)).then(|| choice.position.clone()),
        (!matches!(claim.axis, Axis::Format)).then(|| choice.format.clone()),
        Some(choice.size.clone()),
    ];
    Some(Section3Finding {
        claim: claim.text,
        rests_on: claim.rests_on,
        task: task.to_owned(),
        better: claim.axis.of(choice).to_owned(),
        than: claim.axis.of(other).to_owned(),
        among: among.into_iter().flatten().collect::<Vec<_>>().join(", "),
        learnt,
        measured,
        of_better,
        of_other,
        difference,
        outcome,
    })
}
