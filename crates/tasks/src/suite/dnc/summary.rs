//! Tables: what each perturbation changes, question by question.
use crate::{agreeing, counted};
use std::collections::BTreeMap;

use super::effects::{Effect, Effects, effects};
use super::kind::{Capability, Kind};
use super::options::Options;
use super::pairs::{Outcome, Pair, PairedChange, accuracy, compare, gather, relative};
use super::score::{ACC_ANS, ACC_EQ, DROP, chosen};
use super::suite::Cell;
use super::target::{Numbers, Target};
use crate::suite::{Interval, Scored, Summary, SummaryRow};
use earnest_stats::holm;

/// Summarises any subset of the items.
///
/// Rows, for every target: one a perturbation (the attack, against the same question unperturbed); `original`; with perturbed
/// examples also `..., defence` (against the attack: the recovery) and `..., cost` (perturbed examples on the clean question,
/// against the original); one a capability (Figure 1), over both of its perturbations; `all`.
///
/// Values: `accuracy` (of the second of each pair) and `delta` (it minus the accuracy of the first). Numbers are in per cent but for p
/// values, counts and log odds; intervals among them, as of the change under every other scorer, are three (`X`, `X, from`, `X, to`). `MDE` is the minimum detectable effect, the smallest delta that so many questions with so many
/// discordant ones show.
/// Accuracies have Wilson's interval, of as many questions as the cluster-robust error is worth where rows share questions.
/// With one pair a question `delta` has Tango's score interval and p is McNemar's exact one; with several (draws, example sets,
/// samples) both are the verdict's over questions. Holm adjusts the p values of a target's attacks together.
pub(super) fn summarise(options: &Options, samples: &[Scored<'_>], notes: Vec<String>) -> Summary {
    let outcomes = gather(samples);
    let mut summary = Summary { rows: Vec::new(), series: Vec::new(), notes: Vec::new() };
    let mut unpaired = 0;
    for &target in &options.targets {
        let mine: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.target == target).collect();
        if mine.is_empty() {
            continue;
        }
        let chosen = chosen(options.scorer, options.dataset, target);
        Part { options, target, chosen, mine: &mine }.add_to(&mut summary, &mut unpaired);
    }
    // JSON has no numbers for what is not known; it is left out.
    for row in &mut summary.rows {
        row.numbers.retain(|(_, number)| number.is_finite());
    }
    summary.notes.extend(general_notes(options, &summary.rows, &outcomes, unpaired));
    summary.notes.extend(notes);
    summary
}

/// Pairs of a perturbation's attack.
type Attack<'a> = (Kind, Vec<Pair<'a>>);

/// The questions of one target.
struct Part<'a> {
    options: &'a Options,
    target: Target,
    /// The scorer that decides.
    chosen: &'static str,
    mine: &'a [&'a Outcome],
}

impl<'a> Part<'a> {
    fn named(&self, name: &str) -> String {
        if self.options.targets.len() > 1 { format!("{name}, {}", self.target) } else { name.to_owned() }
    }

    fn note(&self, note: &str) -> String {
        if self.options.targets.len() > 1 { format!("{}: {note}", self.target) } else { note.to_owned() }
    }

    /// Adds the rows and notes of the target.
    fn add_to(&self, summary: &mut Summary, unpaired: &mut usize) {
        let effects = effects(self.mine);
        summary.notes.extend(effects.note.as_ref().map(|note| self.note(note)));
        let attacks: Vec<Attack<'a>> = self
            .options
            .kinds
            .iter()
            .map(|kind| (*kind, pairs(self.mine, *kind, Cell::Attack, Cell::Original, unpaired)))
            .filter(|(_, pairs)| !pairs.is_empty())
            .collect();
        summary.notes.extend(self.notes_on_absent(&attacks));
        summary.rows.extend(self.attack_rows(&attacks, &effects));
        summary.rows.push(original_row(&self.named("original"), self.mine, self.chosen));
        summary.rows.extend(self.rows_with_perturbed_examples());
        for capability in Capability::ALL {
            let of_it = attacks.iter().filter(|(kind, _)| kind.capability() == capability);
            summary.rows.extend(self.pooled_row(capability.name(), of_it));
        }
        summary.rows.extend(self.pooled_row("all", attacks.iter()));
    }

    /// Notes about perturbations that have no row.
    fn notes_on_absent(&self, attacks: &[Attack<'_>]) -> Vec<String> {
        let options = self.options;
        let mut notes = Vec::new();
        // What changes numbers alone leaves nothing to ask once these are hidden.
        let hidden: Vec<&str> = options
            .kinds
            .iter()
            .filter(|kind| options.numbers == Numbers::Replace && kind.applies_to(options.dataset))
            .filter(|kind| {
                matches!(kind, Kind::Language | Kind::LanguageToDigits | Kind::Type | Kind::Noise | Kind::Distribution)
            })
            .filter(|kind| attacks.iter().all(|(of, _)| of != *kind))
            .map(|kind| kind.name())
            .collect();
        if !hidden.is_empty() {
            notes.push(self.note(&format!(
                "Not in the table: {}. With the numbers replaced these prompts are the original's byte for byte, so they are not asked; \
                 the paper's zero changes there are a construction.",
                hidden.join(", ")
            )));
        }
        let absent: Vec<&str> = options
            .kinds
            .iter()
            .filter(|kind| kind.applies_to(options.dataset) && attacks.iter().all(|(of, _)| of != *kind))
            .map(|kind| kind.name())
            .filter(|name| !hidden.contains(name))
            .collect();
        if !absent.is_empty() {
            notes.push(self.note(&format!(
                "Not in the table: {}. None of the {} questions in these results has that perturbation: it is eligible for none of \
                 them, or the setting `limit` ends before.",
                absent.join(", "),
                self.originals()
            )));
        }
        notes
    }

    fn originals(&self) -> usize {
        self.mine.iter().filter(|outcome| outcome.cell == Cell::Original).count()
    }

    /// Rows of the perturbations against the same questions unperturbed, with their p values adjusted together.
    fn attack_rows(&self, attacks: &[Attack<'_>], effects: &Effects) -> Vec<SummaryRow> {
        let compared: Vec<PairedChange> = attacks.iter().map(|(_, pairs)| compare(pairs, Outcome::correct)).collect();
        let tested: Vec<f64> = compared.iter().map(|compared| compared.p).collect();
        let adjusted = holm(&tested).unwrap_or_else(|_| vec![f64::NAN; tested.len()]);
        let asked = self.originals();
        let mut rows = Vec::with_capacity(attacks.len());
        for ((kind, pairs), (compared, adjusted)) in attacks.iter().zip(compared.iter().zip(adjusted)) {
            let mut row = row(&self.named(kind.name()), pairs, compared, self.chosen);
            row.numbers.insert(1, ("Holm p".into(), adjusted));
            // Draws of a question are one question.
            let mut eligible: Vec<(&str, u32)> =
                pairs.iter().map(|pair| (pair.first.question.as_str(), pair.first.set)).collect();
            eligible.sort_unstable();
            eligible.dedup();
            let share = eligible.len() as f64 / asked.max(1) as f64;
            row.numbers.push(("delta over all questions".into(), 100.0 * compared.delta.estimate * share));
            row.numbers.push(("eligible share".into(), 100.0 * share));
            effect_numbers(&mut row, effects.of(*kind));
            rows.push(row);
        }
        rows
    }

    /// Rows of perturbed examples: on perturbed questions, and on clean ones.
    fn rows_with_perturbed_examples(&self) -> Vec<SummaryRow> {
        let mut rows = Vec::new();
        for kind in &self.options.kinds {
            for (cell, against, word) in
                [(Cell::Defence, Cell::Attack, "defence"), (Cell::Cost, Cell::Original, "cost")]
            {
                // Of attacks alone those without a partner are counted.
                let pairs = pairs(self.mine, *kind, cell, against, &mut 0);
                if !pairs.is_empty() {
                    let name = self.named(&format!("{kind}, {word}"));
                    rows.push(row(&name, &pairs, &compare(&pairs, Outcome::correct), self.chosen));
                }
            }
        }
        rows
    }

    /// The row of several perturbations together; none without a pair.
    fn pooled_row<'p, 'q: 'p>(&self, name: &str, attacks: impl Iterator<Item = &'p Attack<'q>>) -> Option<SummaryRow> {
        let pairs: Vec<Pair<'_>> = attacks.flat_map(|(_, pairs)| pairs.iter().copied()).collect();
        let compared = || compare(&pairs, Outcome::correct);
        (!pairs.is_empty()).then(|| row(&self.named(name), &pairs, &compared(), self.chosen))
    }
}

/// Pairs of a perturbation: each outcome of one cell with that of the other on the same question, example set and draw.
fn pairs<'a>(mine: &[&'a Outcome], kind: Kind, cell: Cell, against: Cell, unpaired: &mut usize) -> Vec<Pair<'a>> {
    let key = |outcome: &Outcome| {
        let draw = if against == Cell::Original { 0 } else { outcome.draw };
        (outcome.question.clone(), outcome.set, draw)
    };
    let other: BTreeMap<_, &Outcome> = mine
        .iter()
        .filter(|outcome| outcome.cell == against && (against == Cell::Original || outcome.kind == Some(kind)))
        .map(|outcome| (key(outcome), *outcome))
        .collect();
    let mut found = Vec::new();
    for outcome in mine.iter().filter(|outcome| outcome.cell == cell && outcome.kind == Some(kind)) {
        match other.get(&key(outcome)) {
            Some(first) => found.push(Pair { first, second: outcome }),
            None => *unpaired += 1,
        }
    }
    found
}

fn original_row(name: &str, mine: &[&Outcome], chosen: &str) -> SummaryRow {
    let originals: Vec<&Outcome> = mine.iter().filter(|outcome| outcome.cell == Cell::Original).copied().collect();
    let mut row = SummaryRow { name: name.to_owned(), n: originals.len(), values: Vec::new(), numbers: Vec::new() };
    row.values.push(("accuracy".into(), accuracy(&originals, Outcome::correct)));
    row.values.push(("delta".into(), unknown()));
    let mean = |pick: fn(&Outcome) -> f64| mean_per_cent(&originals, pick);
    row.numbers.extend(known_per_cent("unparsed, original", &originals, |outcome| outcome.unparsed));
    row.numbers.push(("truncated, original".into(), mean(|outcome| outcome.truncated)));
    row.numbers.extend(known_per_cent("answer right where the equation is", &originals, |outcome| outcome.faithful));
    for scorer in scorers(mine, chosen) {
        let found = accuracy(&originals, |outcome| outcome.scorer(&scorer));
        percentages(&mut row.numbers, &format!("original {scorer}"), found);
    }
    row
}

/// An accuracy as three numbers in per cent, so that the table stays narrow.
fn percentages(numbers: &mut Vec<(String, f64)>, name: &str, found: Interval) {
    numbers.push((name.to_owned(), 100.0 * found.estimate));
    numbers.push((format!("{name}, from"), 100.0 * found.low));
    numbers.push((format!("{name}, to"), 100.0 * found.high));
}

/// A named mean in per cent over the outcomes that have the value; none if none has.
fn known_per_cent(name: &str, all: &[&Outcome], pick: fn(&Outcome) -> Option<f64>) -> Option<(String, f64)> {
    let values: Vec<f64> = all.iter().filter_map(|outcome| pick(outcome)).collect();
    (!values.is_empty()).then(|| (name.to_owned(), 100.0 * values.iter().sum::<f64>() / values.len() as f64))
}

fn mean_per_cent(all: &[&Outcome], pick: fn(&Outcome) -> f64) -> f64 {
    100.0 * all.iter().map(|outcome| pick(outcome)).sum::<f64>() / all.len().max(1) as f64
}

/// Scorers beside the deciding one, in order.
fn scorers(mine: &[&Outcome], chosen: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for outcome in mine {
        for scorer in outcome.scorers.keys() {
            if !found.contains(scorer) && scorer != chosen {
                found.push(scorer.clone());
            }
        }
    }
    found
}

/// The paper's own scorers, whose tables have accuracies and relative changes too.
const PAPER: [&str; 3] = [ACC_EQ, ACC_ANS, DROP];

fn row(name: &str, pairs: &[Pair<'_>], compared: &PairedChange, chosen: &str) -> SummaryRow {
    let first: Vec<&Outcome> = pairs.iter().map(|pair| pair.first).collect();
    let second: Vec<&Outcome> = pairs.iter().map(|pair| pair.second).collect();
    let (before, after) = (accuracy(&first, Outcome::correct), accuracy(&second, Outcome::correct));
    let values = vec![("accuracy".to_owned(), after), ("delta".to_owned(), compared.delta)];
    let mut numbers = vec![
        ("p".to_owned(), compared.p),
        ("MDE".to_owned(), 100.0 * compared.detectable),
        ("questions".to_owned(), compared.questions as f64),
        ("right to wrong".to_owned(), compared.lost),
        ("wrong to right".to_owned(), compared.gained),
    ];
    numbers.extend(known_per_cent("unparsed, original", &first, |outcome| outcome.unparsed));
    numbers.extend(known_per_cent("unparsed, perturbed", &second, |outcome| outcome.unparsed));
    numbers.push(("truncated, perturbed".to_owned(), mean_per_cent(&second, |outcome| outcome.truncated)));
    // Behind the test of the deciding scorer, which must not make room for them.
    for scorer in scorers(&second, chosen) {
        let delta = compare(pairs, |outcome| outcome.scorer(&scorer)).delta;
        percentages(&mut numbers, &format!("delta {scorer}"), delta);
    }
    percentages(&mut numbers, "original", before);
    percentages(&mut numbers, "relative delta", relative(pairs, Outcome::correct));
    for scorer in scorers(&second, chosen).iter().filter(|scorer| PAPER.contains(&scorer.as_str())) {
        percentages(&mut numbers, &format!("perturbed {scorer}"), accuracy(&second, |outcome| outcome.scorer(scorer)));
        percentages(
            &mut numbers,
            &format!("relative delta {scorer}"),
            relative(pairs, |outcome| outcome.scorer(scorer)),
        );
    }
    SummaryRow { name: name.to_owned(), n: pairs.len(), values, numbers }
}

fn effect_numbers(row: &mut SummaryRow, effect: Option<&Effect>) {
    let Some(effect) = effect else { return };
    row.numbers.push(("GLMM log odds".into(), effect.log_odds));
    row.numbers.push(("GLMM error".into(), effect.error));
    row.numbers.push(("GLMM p".into(), effect.p));
    row.numbers.push(("GLMM marginal effect".into(), 100.0 * effect.marginal));
}

/// Meaning of the columns that the rows have.
fn general_notes(options: &Options, rows: &[SummaryRow], outcomes: &[Outcome], unpaired: usize) -> Vec<String> {
    let mut notes = Vec::new();
    let has = |column: &str| rows.iter().any(|row| row.numbers.iter().any(|(name, _)| name == column));
    if rows.iter().any(|row| row.values.iter().any(|(name, value)| name == "delta" && !value.estimate.is_nan())) {
        notes.push(
            "delta is the accuracy on perturbed questions minus that on the same questions unperturbed, in percentage points, on the \
         eligible questions only; the JSON document also has it diluted over all questions, as the paper reports it."
                .to_owned(),
        );
        notes.push(match has("MDE") {
            true => "MDE, the minimum detectable effect, is in percentage points: were the true delta that large, a test at the 5 % level on as \
         many questions, with as many of them answered differently, would find it 4 times in 5. A smaller true delta is mostly \
         missed, so a p above 0.05 does not show that there is none. Without a number even the largest possible delta would be \
         missed."
                .to_owned(),
            false => "No row has a minimum detectable effect: on so few questions even the largest possible delta would mostly be missed, \
                      so a p above 0.05 does not show that there is none."
                .to_owned(),
        });
    }
    if options.kinds.len() > 1 && has("Holm p") {
        notes.push("Holm p adjusts the perturbations of one prompt together.".to_owned());
    }
    if unpaired > 0 {
        notes.push(format!(
            "{} {} no partner in these results and {} in no delta.",
            counted(unpaired, "sample"),
            agreeing(unpaired, "has", "have"),
            agreeing(unpaired, "is", "are")
        ));
    }
    let originals = outcomes.iter().filter(|outcome| outcome.cell == Cell::Original);
    let (count, right) = originals.fold((0usize, 0.0), |(n, sum), outcome| (n + 1, sum + outcome.correct()));
    if count > 0 && right / count as f64 > 0.95 {
        notes.push(
            "The original questions are nearly all answered: at this ceiling only losses can be seen, and the questions may \
             have been seen in training."
                .to_owned(),
        );
    }
    notes
}

/// The same tables from stored samples alone, without the data: the items need no prompts.
pub fn summarise_samples(options: &Options, samples: &[Scored<'_>]) -> Summary {
    summarise(options, samples, Vec::new())
}

/// Only for an empty estimate.
pub(super) fn unknown() -> Interval {
    Interval::UNKNOWN
}
