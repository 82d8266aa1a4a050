//! Conclusions of section 3, tested as contrasts between variants that differ in one setting.
use super::document::{ClaimForm, ClaimOutcome, Family, GATE, Section3Finding, tasks};
use earnest_stats::holm;
use earnest_train::experiment::{CellChoice, ExperimentResults, Metric};

/// Adjusted p value below which a difference is shown.
const LEVEL: f64 = 0.05;

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
    form: ClaimForm,
    axis: Axis,
    family: Family,
    /// Pairs of the variant that is expected to be better and the other one.
    pairs: &'static [(&'static str, &'static str)],
    /// True for the training lengths, false for longer ones; or both.
    learnt: &'static [bool],
}

const CLAIMS: [Claim; 6] = [
    Claim {
        text: "One-digit tokens are at least as good as longer ones, in domain and out of it",
        rests_on: "Figures 4 and 9 to 11",
        form: ClaimForm::NoWorse,
        axis: Axis::Tokenizer,
        family: Family::Digits,
        pairs: &[("1", "2"), ("1", "3"), ("1", "2-random"), ("1", "3-random")],
        learnt: &[true, false],
    },
    Claim {
        text: "Random groups generalise further in length than fixed ones",
        rests_on: "Figure 12",
        form: ClaimForm::Better,
        axis: Axis::Tokenizer,
        family: Family::Groups,
        pairs: &[("2-random", "2"), ("3-random", "3")],
        learnt: &[false],
    },
    Claim {
        text: "NoPE and ALiBi generalise further in length than RoPE",
        rests_on: "Figure 13, Table 12",
        form: ClaimForm::Better,
        axis: Axis::Position,
        family: Family::Encodings,
        pairs: &[("nope", "rope"), ("alibi", "rope"), ("alibi-reversed", "rope")],
        learnt: &[false],
    },
    Claim {
        text: "In small models, RoPE does best on what was learnt",
        rests_on: "Tables 13 to 15",
        form: ClaimForm::Better,
        axis: Axis::Position,
        family: Family::Encodings,
        pairs: &[("rope", "nope"), ("rope", "alibi"), ("rope", "alibi-reversed")],
        learnt: &[true],
    },
    Claim {
        text: "Reversed or padded numbers beat plain ones out of domain",
        rests_on: "Table 16, Figures 14 and 15",
        form: ClaimForm::Better,
        axis: Axis::Format,
        family: Family::Formats,
        pairs: &[("reversed", "plain"), ("padded", "plain"), ("reversed+padded", "plain")],
        learnt: &[false],
    },
    Claim {
        text: "Index hints do not help",
        rests_on: "Table 17, Figures 16 to 18",
        form: ClaimForm::NoWorse,
        axis: Axis::Format,
        family: Family::Hints,
        pairs: &[("plain", "hinted"), ("reversed", "reversed+hinted")],
        learnt: &[false],
    },
];

/// All contrasts for which the experiment has models, with p values adjusted by family.
pub(super) fn findings(results: &ExperimentResults) -> Vec<Section3Finding> {
    let choices = results.choices();
    let mut all: Vec<(Section3Finding, [bool; 2])> = Vec::new();
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
    for family in Family::ALL {
        let tested = |finding: &Section3Finding| finding.family == family && finding.p.is_some();
        let p: Vec<f64> =
            all.iter().filter(|(finding, _)| tested(finding)).filter_map(|(finding, _)| finding.p).collect();
        let adjusted = holm(&p).expect("p values are between 0 and 1");
        let own = all.iter_mut().filter(|(finding, _)| tested(finding));
        for ((finding, _), adjusted) in own.zip(adjusted) {
            finding.adjusted_p = Some(adjusted);
        }
    }
    for (finding, knows) in &mut all {
        finding.outcome = outcome(finding, *knows);
    }
    all.into_iter().map(|(finding, _)| finding).collect()
}

/// Reads a contrast.
fn outcome(finding: &Section3Finding, knows: [bool; 2]) -> ClaimOutcome {
    if !finding.learnt && finding.lowest_learnt < GATE {
        return ClaimOutcome::LeftOpen;
    }
    if finding.of_better.mean <= FLOOR && finding.of_other.mean <= FLOOR {
        return ClaimOutcome::Floor;
    }
    let (Some(p), Some(difference)) = (finding.adjusted_p, finding.difference) else { return ClaimOutcome::OneSeed };
    match (p < LEVEL, difference.estimate > finding.form.least()) {
        (false, _) => ClaimOutcome::NotShown,
        (true, true) if finding.form == ClaimForm::NoWorse => ClaimOutcome::NoWorse,
        (true, true) if knows[0] => ClaimOutcome::Shown,
        (true, true) => ClaimOutcome::ShownNotLearnt,
        (true, false) if knows[1] => ClaimOutcome::Opposite,
        (true, false) => ClaimOutcome::OppositeNotLearnt,
    }
}

fn contrast(
    results: &ExperimentResults,
    claim: &Claim,
    choice: &CellChoice,
    other: &CellChoice,
    task: &str,
    learnt: bool,
    measured: Metric,
) -> Option<(Section3Finding, [bool; 2])> {
    let of_better = results.over(choice, task, learnt, measured)?;
    let of_other = results.over(other, task, learnt, measured)?;
    let difference = of_better.minus(&of_other);
    let p = of_better.p_value(&of_other, claim.form.least());
    let knows = |choice| results.over(choice, task, true, Metric::ExactMatch).is_none_or(|own| own.mean >= LEARNT);
    let lowest = |choice| {
        let model = results.seeds_of(choice).next()?;
        let lengths = model.lengths(task, true);
        lengths
            .iter()
            .filter_map(|length| results.at(choice, task, *length, Metric::ExactMatch))
            .map(|own| own.mean)
            .reduce(f64::min)
    };
    let lowest_learnt = [choice, other].into_iter().filter_map(lowest).fold(1.0, f64::min);
    let among = [
        (!matches!(claim.axis, Axis::Tokenizer)).then(|| format!("tokens of {}", choice.tokenizer)),
        (!matches!(claim.axis, Axis::Position)).then(|| choice.position.clone()),
        (!matches!(claim.axis, Axis::Format)).then(|| choice.format.clone()),
        Some(choice.size.clone()),
    ];
    let finding = Section3Finding {
        claim: claim.text,
        form: claim.form,
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
        family: claim.family,
        p,
        adjusted_p: None,
        lowest_learnt,
        // Known when all contrasts are.
        outcome: ClaimOutcome::OneSeed,
    };
    Some((finding, [knows(choice), knows(other)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_train::experiment::SeedMean;

    fn finding(learnt: bool, lowest_learnt: f64, adjusted_p: Option<f64>) -> Section3Finding {
        let (of_better, of_other) = (SeedMean::of(&[0.8, 0.9]).unwrap(), SeedMean::of(&[0.1, 0.2]).unwrap());
        Section3Finding {
            claim: "",
            form: ClaimForm::Better,
            rests_on: "",
            task: String::new(),
            better: String::new(),
            than: String::new(),
            among: String::new(),
            learnt,
            measured: Metric::ExactMatch,
            difference: of_better.minus(&of_other),
            of_better,
            of_other,
            family: Family::Encodings,
            p: adjusted_p,
            adjusted_p,
            lowest_learnt,
            outcome: ClaimOutcome::OneSeed,
        }
    }

    #[test]
    fn what_was_not_learnt_is_left_open_beyond_the_training_lengths() {
        let read = |learnt, lowest, p| outcome(&finding(learnt, lowest, p), [true, true]);
        assert_eq!(read(false, 0.94, Some(0.001)), ClaimOutcome::LeftOpen);
        assert_eq!(read(false, 0.95, Some(0.001)), ClaimOutcome::Shown);
        assert_eq!(read(false, 0.95, Some(0.051)), ClaimOutcome::NotShown);
        assert_eq!(read(true, 0.2, Some(0.001)), ClaimOutcome::Shown, "the gate is for longer lengths only");
        assert_eq!(read(true, 0.2, None), ClaimOutcome::OneSeed);
    }

    #[test]
    fn what_is_no_worse_is_above_the_margin() {
        let read = |better: &[f64], other: &[f64]| {
            let (of_better, of_other) = (SeedMean::of(better).unwrap(), SeedMean::of(other).unwrap());
            let p = of_better.p_value(&of_other, ClaimForm::NoWorse.least());
            let difference = of_better.minus(&of_other);
            let form = ClaimForm::NoWorse;
            let one = Section3Finding { form, of_better, of_other, difference, ..finding(true, 1.0, p) };
            let found = outcome(&one, [true, true]);
            let interval = one.difference.unwrap();
            assert_eq!(found == ClaimOutcome::NoWorse, interval.low > -0.05, "{interval:?}");
            found
        };
        assert_eq!(read(&[0.90, 0.91, 0.89], &[0.91, 0.90, 0.91]), ClaimOutcome::NoWorse, "a little worse");
        assert_eq!(read(&[0.90, 0.80, 0.70], &[0.81, 0.82, 0.80]), ClaimOutcome::NotShown, "too few seeds to say");
        assert_eq!(read(&[0.50, 0.51, 0.49], &[0.91, 0.90, 0.91]), ClaimOutcome::Opposite);
    }
}
