//! The cheapest design that finds a difference.
use serde::Serialize;

use super::{DesignSize, VarianceParts};
use crate::power::{PowerError, Rates, require};

/// Largest numbers of a design.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limits {
    pub templates: usize,
    pub questions: usize,
    pub samples: usize,
}

/// Costs of a template, of one of its questions, and of a sample of a question (in both conditions), in any unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Costs {
    pub template: f64,
    pub question: f64,
    pub sample: f64,
}

impl Default for Costs {
    /// Answers alone cost.
    fn default() -> Self {
        Costs { template: 0.0, question: 0.0, sample: 1.0 }
    }
}

impl Costs {
    fn check(&self) -> Result<(), PowerError> {
        let cost = |value: f64| value >= 0.0 && value.is_finite();
        require("cost of a template", self.template, cost(self.template), "a number from 0")?;
        require("cost of a question", self.question, cost(self.question), "a number from 0")?;
        require("cost of a sample", self.sample, cost(self.sample), "a number from 0")?;
        let all = self.template + self.question + self.sample;
        require("sum of the costs", all, all > 0.0, "above 0: something has to cost")
    }

    /// Cost of a design.
    pub fn of(&self, size: DesignSize) -> f64 {
        let of_question = self.question + size.samples as f64 * self.sample;
        size.templates as f64 * (self.template + size.questions as f64 * of_question)
    }
}

/// A design with its cost and power.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FoundDesign {
    pub size: DesignSize,
    pub cost: f64,
    pub power: f64,
}

/// The cheapest design from `fewest` to the limits that finds the difference with the power of the rates; of equally cheap ones that with
/// the most templates. None if not even the largest one finds it.
pub fn cheapest(
    parts: &VarianceParts,
    effect: f64,
    fewest: DesignSize,
    limits: Limits,
    costs: Costs,
    rates: Rates,
) -> Result<Option<FoundDesign>, PowerError> {
    let largest = DesignSize { templates: limits.templates, questions: limits.questions, samples: limits.samples };
    largest.check()?;
    fewest.check()?;
    let names = ["templates", "questions", "samples"];
    let given = [fewest.templates, fewest.questions, fewest.samples];
    for ((name, few), most) in names.into_iter().zip(given).zip([limits.templates, limits.questions, limits.samples]) {
        require(name, few as f64, few <= most, "at most the limit")?;
    }
    costs.check()?;
    rates.check()?;
    require("effect", effect, effect != 0.0 && effect.abs() < 1.0, "not 0, between -1 and 1")?;
    let mut best: Option<FoundDesign> = None;
    for samples in fewest.samples..=limits.samples {
        for questions in fewest.questions..=limits.questions {
            // More templates than the best design pays for are no better.
            let unit = costs.of(DesignSize { templates: 1, questions, samples });
            let affordable = best.map_or(f64::INFINITY, |best| (best.cost / unit).floor());
            let most = if affordable < limits.templates as f64 { affordable as usize } else { limits.templates };
            let templates = (fewest.templates, most);
            let Some(size) = fewest_templates(parts, effect, templates, questions, samples, rates)? else { continue };
            let cost = costs.of(size);
            let cheaper =
                best.is_none_or(|best| cost < best.cost || cost == best.cost && size.templates > best.size.templates);
            if cheaper {
                best = Some(FoundDesign { size, cost, power: parts.power(effect, size, rates.alpha)? });
            }
        }
    }
    Ok(best)
}

/// The design with the fewest templates, from a number to another, that finds the difference. Power grows with the templates.
fn fewest_templates(
    parts: &VarianceParts,
    effect: f64,
    (fewest, most): (usize, usize),
    questions: usize,
    samples: usize,
    rates: Rates,
) -> Result<Option<DesignSize>, PowerError> {
    let size = |templates| DesignSize { templates, questions, samples };
    let finds = |templates| parts.power(effect, size(templates), rates.alpha).map(|power| power >= rates.power);
    if most < fewest || !finds(most)? {
        return Ok(None);
    }
    let (mut low, mut high) = (fewest - 1, most);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if finds(middle)? { high = middle } else { low = middle }
    }
    Ok(Some(size(high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: VarianceParts = VarianceParts { template: 0.004, question: 0.05, sample: 0.2 };
    const FEWEST: DesignSize = DesignSize { templates: 2, questions: 1, samples: 1 };
    const LIMITS: Limits = Limits { templates: 150, questions: 8, samples: 3 };

    /// Every design, one by one.
    fn by_enumeration(costs: Costs) -> f64 {
        let mut best = f64::INFINITY;
        for templates in 2..=LIMITS.templates {
            for questions in 1..=LIMITS.questions {
                for samples in 1..=LIMITS.samples {
                    let size = DesignSize { templates, questions, samples };
                    // The cheap condition first: a test takes longer.
                    if costs.of(size) < best && PARTS.power(0.08, size, 0.05).unwrap() >= 0.8 {
                        best = costs.of(size);
                    }
                }
            }
        }
        best
    }

    #[test]
    fn no_other_design_is_cheaper() {
        for costs in [
            Costs::default(),
            Costs { template: 20.0, question: 0.0, sample: 1.0 },
            Costs { template: 5.0, question: 3.0, sample: 1.0 },
        ] {
            let found = cheapest(&PARTS, 0.08, FEWEST, LIMITS, costs, Rates::default()).unwrap().unwrap();
            assert_eq!(found.cost, by_enumeration(costs), "{found:?}");
            assert!(found.power >= 0.8 && costs.of(found.size) == found.cost);
        }
        // A number that is given stays.
        let given = DesignSize { templates: 60, questions: 4, samples: 1 };
        let limits = Limits { questions: 4, ..LIMITS };
        let found = cheapest(&PARTS, 0.08, given, limits, Costs::default(), Rates::default()).unwrap().unwrap();
        assert!(found.size.templates >= 60 && found.size.questions == 4, "{found:?}");
        // Answers alone: more templates are never worse than more questions or samples.
        let free =
            cheapest(&PARTS, 0.05, FEWEST, Limits { templates: 100_000, ..LIMITS }, Costs::default(), Rates::default());
        let size = free.unwrap().unwrap().size;
        assert_eq!((size.questions, size.samples), (1, 1), "{size:?}");
    }

    #[test]
    fn what_no_design_finds_is_said() {
        let few = Limits { templates: 10, ..LIMITS };
        assert_eq!(cheapest(&PARTS, 0.01, FEWEST, few, Costs::default(), Rates::default()).unwrap(), None);
        let free = Costs { template: 0.0, question: 0.0, sample: 0.0 };
        assert!(cheapest(&PARTS, 0.05, FEWEST, LIMITS, free, Rates::default()).is_err());
        assert!(cheapest(&PARTS, 0.0, FEWEST, LIMITS, Costs::default(), Rates::default()).is_err());
    }
}
