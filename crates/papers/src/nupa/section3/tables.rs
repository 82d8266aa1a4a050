//! Tables 12 to 18, cell by cell.
use super::document::{Section3Cell, Section3Result, small};
use super::fine_tuned::fine_tuned_cell;
use crate::Reading;
use crate::nupa::training_tables::{PublishedTraining, published_trainings};
use earnest_train::FineTuned;
use earnest_train::experiment::{CellChoice, ExperimentResults, Metric, ModelResult};

/// Longest training length of the paper's models.
const PAPER_LONGEST: usize = 8;

/// Settings of our models that a published cell is compared with.
struct Counterpart<'a> {
    /// Encoding; `None` is any.
    position: Option<&'a str>,
    format: String,
    /// Digits beyond the longest training length.
    beyond: usize,
    data: Data,
}

/// Size of the model and of its training data.
#[derive(Clone, Copy, PartialEq)]
enum Data {
    /// Tables 12, 16 and 17: 0.1 B parameters.
    Full,
    /// The 2-layer model of 1.3 million parameters.
    SmallModel,
    /// 0.1 B parameters and a million samples.
    FewSamples,
}

/// Compares all cells of the tables with the experiment and with fine-tuned checkpoints.
pub(super) fn cells(results: &ExperimentResults, fine_tuned: &[FineTuned]) -> Vec<Section3Cell> {
    published_trainings().iter().map(|published| cell(results, fine_tuned, published)).collect()
}

fn cell(results: &ExperimentResults, fine_tuned: &[FineTuned], published: &PublishedTraining) -> Section3Cell {
    let none = |reason: &str, reading| Section3Cell {
        published: published.clone(),
        ours: Vec::new(),
        reason: Some(reason.to_owned()),
        reading,
    };
    let Some(counterpart) = counterpart(published) else {
        let ours = fine_tuned_cell(fine_tuned, published);
        if ours.is_empty() {
            let reason =
                "it is of fine-tuned checkpoints: `earnest train lora`, whose folders the setting `fine_tuned` names";
            return none(reason, Reading::NotRun);
        }
        let reason = Some("other checkpoints, steps and questions".to_owned());
        return Section3Cell { published: published.clone(), ours, reason, reading: Reading::NotComparable };
    };
    let measured = match published.metric {
        "digit match" => Metric::DigitMatch,
        "dlength" => Metric::Dlength,
        _ => Metric::ExactMatch,
    };
    let (mut ours, mut comparable) = (Vec::new(), true);
    for choice in results.choices() {
        let Some(model) = results.seeds_of(choice).next() else { continue };
        if !fits(choice, model, &counterpart, &published.task) {
            continue;
        }
        let learnt = model.lengths(&published.task, true);
        let Some(longest) = learnt.last() else { continue };
        let length = longest + counterpart.beyond;
        let Some(value) = results.at(choice, &published.task, length, measured) else { continue };
        comparable &= same_scale(model, *longest, counterpart.data);
        ours.push(Section3Result { model: format!("{} {}", choice.position, choice.size), length, value });
    }
    if ours.is_empty() {
        return none("the experiment has no such model", Reading::NotRun);
    }
    let reading = match (&ours[..], comparable && published.doubt.is_none()) {
        // Without the spread over seeds nothing can be said of a difference.
        ([only], true) if only.value.std_err.is_some() => {
            let error = only.value.std_err.unwrap_or(0.0).hypot(published.std_err.unwrap_or(0.0));
            let far = (only.value.mean - published.value).abs() > earnest_stats::Z95 * error;
            if far { Reading::Differs } else { Reading::NoDifferenceShown }
        }
        _ => Reading::NotComparable,
    };
    let reason = match (reading, published.doubt) {
        (Reading::NotComparable, Some(doubt)) => Some(doubt.to_owned()),
        (Reading::NotComparable, None) if comparable => Some("one seed".to_owned()),
        (Reading::NotComparable, None) => Some("another scale".to_owned()),
        _ => None,
    };
    Section3Cell { published: published.clone(), ours, reason, reading }
}

/// The models that correspond to a published cell; `None` for fine-tuned models.
fn counterpart(published: &PublishedTraining) -> Option<Counterpart<'_>> {
    let encoding = match published.variant.as_str() {
        "RoPE" => Some("rope"),
        "NoPE" => Some("nope"),
        "Alibi" => Some("alibi"),
        _ => None,
    };
    let beyond = match published.column.as_str() {
        "D9" => 1,
        "D10" => 2,
        _ => 0,
    };
    let data = match published.column.as_str() {
        "1.3M model" => Data::SmallModel,
        "1M samples" => Data::FewSamples,
        _ => Data::Full,
    };
    match published.table {
        12..=15 => Some(Counterpart { position: encoding, format: "plain".into(), beyond, data }),
        16 | 17 => Some(Counterpart { position: None, format: format_name(&published.variant), beyond, data }),
        _ => None,
    }
}

/// Name of a printed format in experiment files.
fn format_name(printed: &str) -> String {
    let parts: Vec<&str> = printed
        .split('+')
        .map(|part| match part {
            "no" => "plain",
            "rev" | "rev int" => "reversed",
            "rev dec" => "reversed-decimals",
            "rev each" => "reversed-each",
            "rev total" => "reversed-total",
            "pad" => "padded",
            "idx" => "hinted",
            other => other,
        })
        .collect();
    parts.join("+")
}

fn fits(choice: &CellChoice, model: &ModelResult, counterpart: &Counterpart<'_>, task: &str) -> bool {
    choice.task == task
        && choice.tokenizer == "1"
        && choice.format == counterpart.format
        && counterpart.position.is_none_or(|position| position == choice.position)
        && match counterpart.data {
            Data::Full => true,
            Data::SmallModel => small(model),
            Data::FewSamples => !small(model) && seen(model) <= 1_200_000,
        }
}

fn seen(model: &ModelResult) -> u64 {
    model.steps * model.batch as u64
}

/// True for models and data as large as the paper's.
fn same_scale(model: &ModelResult, longest: usize, data: Data) -> bool {
    const TENTH_BILLION: usize = 100_000_000;
    longest == PAPER_LONGEST
        && match data {
            Data::Full => model.parameters >= TENTH_BILLION && seen(model) >= 10_000_000,
            Data::SmallModel => (1_000_000..2_000_000).contains(&model.parameters) && seen(model) >= 10_000_000,
            Data::FewSamples => model.parameters >= TENTH_BILLION && (800_000..=1_200_000).contains(&seen(model)),
        }
}
