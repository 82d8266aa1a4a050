//! Our data for Figures 4 and 9 to 18: curves of exact match over questions seen, and of all metrics over length.
use super::document::{Section3, Section3Curve, Section3Figure, XAxis, tasks};
use earnest_report::plot::{Curve, CurvePlot, Figure, Measure, curves};
use earnest_train::experiment::{CellChoice, ExperimentResults, Metric, NumberStyle, SeedMean};

/// Family of variants that a figure compares.
#[derive(Clone, Copy)]
enum Family {
    Tokenizers,
    Encodings,
    /// Reversal and padding.
    Formats,
    /// Reversal and index hints.
    Hints,
}

impl Family {
    fn name(self) -> &'static str {
        match self {
            Family::Tokenizers => "tokenizers",
            Family::Encodings => "encodings",
            Family::Formats => "formats",
            Family::Hints => "hints",
        }
    }

    /// Name of the variant, if the choice belongs to this family.
    fn variant(self, choice: &CellChoice) -> Option<String> {
        match self {
            Family::Tokenizers => Some(choice.tokenizer.clone()),
            Family::Encodings => Some(choice.position.clone()),
            Family::Formats => (!has_hints(choice)).then(|| choice.format.clone()),
            Family::Hints => {
                let known = ["plain", "reversed", "hinted", "reversed+hinted"].contains(&choice.format.as_str());
                known.then(|| choice.format.clone())
            }
        }
    }

    /// Settings that the variants of one figure share besides the task.
    fn common(self, choice: &CellChoice) -> Vec<String> {
        let mut parts = match self {
            Family::Tokenizers => vec![choice.position.clone(), choice.format.clone()],
            Family::Encodings => vec![format!("tokens of {}", choice.tokenizer), choice.format.clone()],
            Family::Formats | Family::Hints => vec![format!("tokens of {}", choice.tokenizer), choice.position.clone()],
        };
        parts.push(choice.size.clone());
        if !choice.label.is_empty() {
            parts.push(choice.label.clone());
        }
        parts
    }

    /// Numbers of the paper's figures of exact match over questions seen.
    fn by_questions(self, task: &str) -> &'static [u8] {
        match (self, task) {
            (Family::Tokenizers, "add_Integer") => &[4, 9, 12],
            (Family::Tokenizers, "add_Float" | "multiply_hard_Integer") => &[4],
            (Family::Formats, "add_Integer") => &[14],
            (Family::Formats, "add_Float") => &[15],
            (Family::Hints, "add_Integer") => &[16],
            (Family::Hints, "multiply_hard_Integer") => &[17],
            (Family::Hints, "max_Integer") => &[18],
            _ => &[],
        }
    }

    /// Numbers of the paper's figures that correspond to ours over length.
    fn by_length(self, task: &str, measured: Metric) -> &'static [u8] {
        match (self, task, measured) {
            (Family::Encodings, ..) => &[13],
            (Family::Tokenizers, "add_Integer" | "add_Float" | "multiply_hard_Integer", Metric::DigitMatch) => &[10],
            (Family::Tokenizers, "add_Integer" | "add_Float" | "multiply_hard_Integer", Metric::Dlength) => &[11],
            _ => &[],
        }
    }
}

/// All figures for which the experiment has at least two variants.
pub(super) fn figures(results: &ExperimentResults) -> Vec<Section3Figure> {
    let mut all = Vec::new();
    for family in [Family::Tokenizers, Family::Encodings, Family::Formats, Family::Hints] {
        for (common, variants) in groups(results, family) {
            let Some(model) = results.seeds_of(variants[0].1).next() else { continue };
            for task in tasks(model) {
                let about = Figures { results, family, common: &common, variants: &variants, task: &task };
                for measured in [Metric::ExactMatch, Metric::DigitMatch, Metric::Dlength] {
                    all.extend(about.over_length(measured));
                }
                let learnt = model.lengths(&task, true);
                let beyond = model.lengths(&task, false);
                for length in learnt.last().into_iter().chain(beyond.iter().take(2)) {
                    all.extend(about.over_questions(*length));
                }
            }
        }
    }
    all
}

/// True for a format with index hints.
fn has_hints(choice: &CellChoice) -> bool {
    choice.format.parse::<NumberStyle>().is_ok_and(|style| style.0.index_hints.is_some())
}

type Variants<'a> = Vec<(String, &'a CellChoice)>;

/// Groups of at least two variants that share all other settings.
fn groups(results: &ExperimentResults, family: Family) -> Vec<(Vec<String>, Variants<'_>)> {
    let mut groups: Vec<(Vec<String>, String, Variants<'_>)> = Vec::new();
    for choice in results.choices() {
        let Some(variant) = family.variant(choice) else { continue };
        let common = family.common(choice);
        match groups.iter_mut().find(|(known, task, _)| *known == common && *task == choice.task) {
            Some((.., variants)) => variants.push((variant, choice)),
            None => groups.push((common, choice.task.clone(), vec![(variant, choice)])),
        }
    }
    let hinted = |variants: &Variants<'_>| variants.iter().any(|(_, choice)| has_hints(choice));
    groups
        .into_iter()
        .filter(|(.., variants)| variants.len() > 1 && (!matches!(family, Family::Hints) || hinted(variants)))
        .map(|(common, _, variants)| (common, variants))
        .collect()
}

struct Figures<'a> {
    results: &'a ExperimentResults,
    family: Family,
    common: &'a [String],
    variants: &'a [(String, &'a CellChoice)],
    task: &'a str,
}

impl Figures<'_> {
    fn over_length(&self, measured: Metric) -> Option<Section3Figure> {
        let figures = self.family.by_length(self.task, measured);
        let curve = |(label, choice): &(String, &CellChoice)| {
            let model = self.results.seeds_of(choice).next()?;
            let mut lengths = model.lengths(self.task, true);
            lengths.extend(model.lengths(self.task, false));
            let points: Vec<_> = lengths
                .into_iter()
                .filter_map(|length| Some((length as f64, self.results.at(choice, self.task, length, measured)?)))
                .collect();
            (!points.is_empty()).then(|| Section3Curve { label: label.clone(), points })
        };
        let curves: Vec<_> = self.variants.iter().filter_map(curve).collect();
        (!figures.is_empty() && !curves.is_empty()).then(|| Section3Figure {
            figures: figures.to_vec(),
            name: self.name(&format!("{}-by-length", measured.name().replace(' ', "-"))),
            title: format!("{}, {} by length ({})", self.task, measured.name(), self.common.join(", ")),
            x: XAxis::Digits,
            measured,
            curves,
        })
    }

    fn over_questions(&self, length: usize) -> Option<Section3Figure> {
        let figures = self.family.by_questions(self.task);
        if figures.is_empty() {
            return None;
        }
        let curves = self.variants.iter().map(|(label, choice)| {
            let mut seen: Vec<u64> = Vec::new();
            let mut values: Vec<Vec<f64>> = Vec::new();
            for model in self.results.seeds_of(choice) {
                for point in &model.learning_curve {
                    let score = point.exact.iter().find(|score| score.task == self.task && score.length == length);
                    let Some(score) = score else { continue };
                    match seen.iter().position(|known| *known == point.seen) {
                        Some(index) => values[index].push(score.exact_match),
                        None => {
                            seen.push(point.seen);
                            values.push(vec![score.exact_match]);
                        }
                    }
                }
            }
            let points = seen
                .iter()
                .zip(&values)
                .filter_map(|(seen, values)| Some((*seen as f64 / 1000.0, SeedMean::of(values)?)))
                .collect();
            Section3Curve { label: label.clone(), points }
        });
        let curves: Vec<Section3Curve> = curves.filter(|curve| !curve.points.is_empty()).collect();
        (!curves.is_empty()).then(|| Section3Figure {
            figures: figures.to_vec(),
            name: self.name(&format!("d{length}")),
            title: format!("{}, exact match at {length} digits ({})", self.task, self.common.join(", ")),
            x: XAxis::ThousandQuestions,
            measured: Metric::ExactMatch,
            curves,
        })
    }

    fn name(&self, what: &str) -> String {
        let common = self.common.join("-").replace("tokens of ", "digits").replace(',', "x").replace('+', "-");
        format!("section-3-{}-{}-{}-{what}", self.family.name(), self.task, common)
    }
}

/// Draws the figures, each with the numbers of the paper's figures that it corresponds to. Bands are one standard error wide.
pub fn drawings(section: &Section3) -> Vec<(Vec<u8>, Figure)> {
    section.figures.iter().map(|figure| (figure.figures.clone(), draw(figure, section.questions))).collect()
}

fn draw(figure: &Section3Figure, questions: usize) -> Figure {
    let share = figure.measured != Metric::Dlength;
    let unit = if share { ", %" } else { "" };
    curves(&CurvePlot {
        name: figure.name.clone(),
        title: format!("{}; bands are one standard error over seeds", figure.title),
        x_label: figure.x.label().to_owned(),
        y_label: format!("{}{unit}", figure.measured.name()),
        measure: if share { Measure::Share } else { Measure::Amount },
        curves: figure
            .curves
            .iter()
            .enumerate()
            .map(|(series, curve)| Curve {
                label: curve.label.clone(),
                series,
                points: curve.points.iter().map(|(x, mean)| (*x, mean.seeds * questions, mean.band())).collect(),
            })
            .collect(),
        legend: true,
    })
}
