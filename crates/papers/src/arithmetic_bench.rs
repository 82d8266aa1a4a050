//! Arithmetic-Bench: Tables 4 to 6 and Figure 1.
use earnest_results::{Manifest, Origin, Sample, Status};
use earnest_tasks::{agreeing, counted, the_first};
use std::collections::BTreeMap;

mod correlations;
pub mod published;
mod verification;

use super::comparison::{
    COMPARISON_FORMAT, ComparedCell, ComparedCurve, ComparedTable, Comparison, CurvePoint, Published, PublishedRow,
    PublishedTable, Reading, RunUsed, difference, model_key,
};
use super::plan::{Plan, PlanRow};
use crate::arithmetic_bench::published::{CLOSED, doubt, items_per_length, tables, thinks};
use earnest_stats::{Estimate, Stratum, Z95, stratified, wilson};
use earnest_tasks::suite::arithmetic_bench::{ArithmeticBench, Lengths, Options, Task};
use earnest_tasks::suite::{Interval, Items};

pub use correlations::PublishedCorrelation;
use correlations::correlations;
use verification::ScoredAnswer;
pub use verification::Verification;

const PAPER: &str = "Arithmetic-Bench: Evaluating Multi-Step Reasoning in LLMs with Basic Arithmetic (2025)";

/// Scorer nearest to the paper's: its separators deleted, then a plain substring (section 3.3).
const SCORER: &str = "compat";

/// Last length of Figure 1.
const FIGURE_1_LENGTHS: usize = 30;

/// Accepted samples and all samples, by item.
type Shares = BTreeMap<String, (f64, f64)>;

/// [`Shares`] by scorer.
type ByScorer = BTreeMap<String, Shares>;

/// Results of a run by task and length.
#[derive(Debug, Clone, Default)]
struct Cells(BTreeMap<(Task, usize), ByScorer>);

/// Counts the prompt tokens of an item; `None` if it cannot be rendered.
pub type CountTokens<'a> = dyn Fn(&earnest_tasks::suite::Item) -> Option<usize> + 'a;

/// A run to compare with the paper: its results by task and length.
#[derive(Debug, Clone)]
pub struct EvaluatedRun {
    manifest: Manifest,
    cells: Cells,
    /// Answers by task and item.
    answers: BTreeMap<Task, BTreeMap<String, Vec<ScoredAnswer>>>,
    /// Samples without a completion, which are excluded from accuracies.
    failed: usize,
}

impl EvaluatedRun {
    /// A run without rows yet; see [`EvaluatedRun::add`].
    pub fn new(manifest: Manifest) -> Self {
        EvaluatedRun { manifest, cells: Cells::default(), answers: BTreeMap::new(), failed: 0 }
    }

    pub fn add(&mut self, sample: &Sample) {
        let Some(score) = &sample.score else {
            self.failed += 1;
            return;
        };
        let length = sample.covariates.get("length").and_then(serde_json::Value::as_u64);
        let length = length.and_then(|length| usize::try_from(length).ok());
        let (Ok(task), Some(length)) = (sample.task.parse::<Task>(), length) else { return };
        let answer = ScoredAnswer { correct: score.correct, text: score.answer.clone() };
        self.answers.entry(task).or_default().entry(sample.item.clone()).or_default().push(answer);
        let cell = self.cells.0.entry((task, length)).or_default();
        for (scorer, passed) in score.scorers.iter() {
            let (sum, n) = cell.entry(scorer.to_owned()).or_default().entry(sample.item.clone()).or_default();
            *sum += f64::from(passed);
            *n += 1.0;
        }
    }

    /// Reasons for the run's averages not being comparable with the paper's.
    fn limits(&self, row: Option<&str>) -> Vec<String> {
        let settings = &self.manifest.settings;
        let mut limits = Vec::new();
        match serde_json::from_value::<Options>(settings.suite_options.clone()) {
            Ok(options) if options.lengths != Lengths::default() => {
                limits.push(format!("asks lengths {} instead of 1-100", options.lengths));
            }
            Ok(_) => {}
            Err(error) => limits.push(format!("has options of another version ({error})")),
        }
        if let Some(limit) = settings.limit {
            limits.push(format!("was limited to {}", the_first(limit, "item")));
        }
        if self.manifest.status != Status::Finished {
            limits.push("is not finished".to_owned());
        }
        if self.failed > 0 {
            limits.push(format!(
                "has {} without an answer, most likely {}",
                counted(self.failed, "sample"),
                agreeing(self.failed, "a long one", "the longest")
            ));
        }
        if let (Some(row), (_, Some(suffix))) = (row, model_key(&self.manifest.model.name)) {
            limits.push(format!("is a quantised model ({suffix}), not {row} itself"));
        }
        limits
    }

    /// Mean over lengths by scorer with the stratified interval, and the number of items behind it.
    fn mean(&self, task: Task) -> (BTreeMap<String, Interval>, usize) {
        let mut strata: BTreeMap<&str, Vec<Stratum>> = BTreeMap::new();
        let mut items = 0;
        for scorers in self.cells.0.range((task, 0)..=(task, usize::MAX)).map(|(_, scorers)| scorers) {
            items += scorers.values().map(BTreeMap::len).max().unwrap_or(0);
            for (scorer, shares) in scorers {
                let successes = shares.values().map(|(sum, n)| sum / n).sum();
                strata.entry(scorer).or_default().push(Stratum { successes, n: shares.len() });
            }
        }
        let means = strata
            .into_iter()
            .filter_map(|(scorer, strata)| Some((scorer.to_owned(), interval(stratified(&strata, Z95)?))));
        (means.collect(), items)
    }

    /// Undetected errors by task; none for greedy decoding, whose samples are copies of each other.
    fn verification(&self) -> Vec<Verification> {
        let settings = &self.manifest.settings;
        if settings.generation.sampling.temperature == 0.0 && settings.origin() == Origin::Evaluated {
            return Vec::new();
        }
        let run = &self.manifest.run;
        self.answers.iter().filter_map(|(task, items)| Verification::of(run, &task.to_string(), items)).collect()
    }

    fn curve(&self, task: Task, last: usize) -> Vec<CurvePoint> {
        let point = |((_, length), scorers): (&(Task, usize), &ByScorer)| {
            let ours = scorers.iter().filter_map(|(scorer, shares)| {
                let successes = shares.values().map(|(sum, n)| sum / n).sum();
                Some((scorer.clone(), interval(wilson(successes, shares.len() as f64, Z95)?)))
            });
            let items = scorers.values().map(BTreeMap::len).max().unwrap_or(0);
            CurvePoint { x: *length, items, ours: ours.collect() }
        };
        self.cells.0.range((task, 0)..=(task, last)).map(point).collect()
    }
}

fn interval(estimate: Estimate) -> Interval {
    Interval { estimate: estimate.value, low: estimate.low, high: estimate.high }
}

fn title(table: u8) -> String {
    match table {
        4 => "Table 4: main tasks, mean over lengths 1 to 100",
        5 => "Table 5: multiplication beside AIME 2024",
        _ => "Table 6: sub-tasks, mean over lengths 1 to 100",
    }
    .to_owned()
}

fn columns(table: u8) -> &'static [Task] {
    match table {
        4 => &Task::ALL[..8],
        5 => &[Task::Mul],
        _ => &Task::ALL[8..],
    }
}

/// Compares runs with the paper.
pub fn compare(runs: &[EvaluatedRun]) -> Comparison {
    let published = tables().map(|table| PublishedTable {
        table: table.table,
        title: title(table.table),
        columns: {
            let tasks = columns(table.table).iter().map(Task::to_string);
            tasks.chain((!table.aime.is_empty()).then(|| "AIME 2024".to_owned())).collect()
        },
        rows: table
            .values
            .iter()
            .map(|(model, row)| {
                let tasks = columns(table.table).iter().map(|task| row.get(task).copied());
                let aime = (!table.aime.is_empty()).then(|| table.aime.get(model).copied());
                PublishedRow { model: model.clone(), values: tasks.chain(aime).collect() }
            })
            .collect(),
    });
    let mut comparison = Comparison {
        format: COMPARISON_FORMAT,
        paper: PAPER.to_owned(),
        runs: Vec::new(),
        published: published.to_vec(),
        correlations: correlations(),
        tables: Vec::new(),
        verification: Vec::new(),
        curves: Vec::new(),
        caveats: caveats(),
    };
    for ours in runs {
        let model = &ours.manifest.model.name;
        let row = tables()[0].values.keys().find(|known| model_key(known).0 == model_key(model).0);
        let limits = ours.limits(row.map(String::as_str));
        let (run, model) = (ours.manifest.run.clone(), model.clone());
        for table in tables() {
            let known = row.and_then(|row| Some((row, table.values.get(row)?)));
            // Table 5 repeats a column of Table 4 for a few models; without such a row it says nothing new.
            if table.table == 5 && known.is_none() {
                continue;
            }
            let cells = columns(table.table).iter().map(|task| {
                let published = known.and_then(|(row, values)| {
                    let items = 100 * items_per_length(row);
                    Published::new(*values.get(task)?, items, doubt(row, *task))
                });
                cell(ours, *task, published, limits.is_empty())
            });
            let cells: Vec<ComparedCell> = cells.collect();
            if cells.iter().any(|cell| cell.items > 0) {
                let (run, model) = (run.clone(), model.clone());
                comparison.tables.push(ComparedTable {
                    table: table.table,
                    title: title(table.table),
                    run,
                    model,
                    cells,
                });
            }
        }
        let points = ours.curve(Task::Mul, FIGURE_1_LENGTHS);
        if !points.is_empty() {
            comparison.curves.push(ComparedCurve {
                figure: 1,
                title: "Figure 1: multiplication by length, 1 to 30".to_owned(),
                run: run.clone(),
                model: model.clone(),
                points,
            });
        }
        comparison.verification.extend(ours.verification());
        comparison.runs.push(RunUsed { run, model, row: row.cloned(), limits });
    }
    comparison
}

fn cell(ours: &EvaluatedRun, task: Task, published: Option<Published>, comparable: bool) -> ComparedCell {
    let (means, items) = ours.mean(task);
    let pair = published.as_ref().zip(means.get(SCORER));
    let difference = pair.filter(|_| comparable).map(|(published, ours)| difference(ours, &published.value));
    let reading = match (&published, items, difference) {
        (_, 0, _) => Reading::NotRun,
        (None, ..) => Reading::NotPublished,
        (_, _, None) => Reading::NotComparable,
        (_, _, Some(difference)) if difference.low > 0.0 || difference.high < 0.0 => Reading::Differs,
        _ => Reading::NoDifferenceShown,
    };
    ComparedCell {
        column: task.to_string(),
        published,
        items,
        ours: means,
        scorer: SCORER.to_owned(),
        difference,
        reading,
    }
}

fn caveats() -> Vec<String> {
    [
        "`compat` follows the paper (separators deleted, then plain substring), and differences are compat minus published; \
         `boundary`, `last_number` and `final` are stricter scorers, shown for reference. The paper's list of deleted separators is \
         garbled in print; it is read as comma, backslash and exclamation mark.",
        "Published intervals are Wilson intervals of 1,000 items (Qwen2.5, Llama-3) or 100 items (all others). They are too \
         wide, because items are stratified by length and the paper gives no counts by length. Ours use the variance within lengths.",
        "The paper used each model's recommended sampling settings, as the setting `recommended` does, without seeds. It reports \
         changes below 1 point from run to run.",
        "The paper does not state whether thinking is part of the response. `compat` scores the visible answer; \
         `compat_with_thinking` scores thinking too and is in the JSON of models that think.",
        "The paper's descriptions of three tasks disagree. Its numbers agree with these: `b2d` of length n has n bits, `div` \
         divides 2n by n digits, `sub` has unordered operands and a signed result.",
        "Chance: the best constant for `count` scores 24.6 % over lengths 1 to 100, always (0) 10.0 %; repeating the operands \
         scores 10.7 % on `mul_1` and 11.9 % on `div_1` where b = 1. Nine of 21 published `count` scores are below the constant.",
        "With 100 items, the 95 % interval of 3 % is 1.0 to 8.5 %: a few points between large models are not a detectable difference.",
        "Figure 1 plots four models without numbers, so our curve has no published values beside it. Table 5's AIME column and \
         Figure 2 are another benchmark; Figure 2 is printed without numbers.",
        "The paper states its correlations without numbers. Intervals are Fisher's (Spearman's rho: Bonett and Wright's), p values those \
         of the t distribution. Table 5 has six rows, two of them of one model with and without thinking, chosen by the authors: \
         they describe these models and no population.",
        "The paper's p²q (3.2) takes two computations for independent. Where errors depend on the item, two samples are \
         both wrong more often than p². Runs with the setting `samples = 2` or more and a temperature show both; \
         q is the share of equal answers among pairs of wrong ones.",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Plans the runs of the open models of Tables 4 to 6. `count` counts a question's prompt tokens by a checkpoint's tokenizer.
pub fn plan(count: Option<&CountTokens<'_>>) -> Plan {
    let mut rows = Vec::new();
    for per_length in [10, 1] {
        let options = Options { per_length, ..Options::default() };
        let suite = ArithmeticBench::new(options).expect("the default options with 1 or 10 items a length are valid");
        let (mut prompts, mut characters, mut tokens, mut answer, mut thinking) = (0, 0, count.map(|_| 0), 0, 0);
        for item in suite.iter() {
            prompts += 1;
            characters += item.segments.question.chars().count();
            tokens = tokens.zip(count.and_then(|count| count(&item))).map(|(sum, one)| sum + one);
            answer += item.budget.answer;
            thinking += item.budget.thinking;
        }
        let models = tables()[0].values.keys().filter(|model| !CLOSED.contains(&model.as_str()));
        for model in models.filter(|model| items_per_length(model) == per_length) {
            let few = if per_length == 10 { String::new() } else { format!(" --per-length {per_length}") };
            rows.push(PlanRow {
                model: model.clone(),
                tables: tables()
                    .into_iter()
                    .filter(|table| table.values.contains_key(model))
                    .map(|t| t.table)
                    .collect(),
                prompts,
                prompt_characters: characters,
                prompt_tokens: tokens,
                most_new_tokens: if thinks(model) { thinking } else { answer },
                most_hours: None,
                command: format!("earnest run arithmetic-bench --model {model} --recommended{few}"),
            });
        }
    }
    Plan {
        paper: PAPER.to_owned(),
        rows,
        notes: vec![
            "Prompts are those of lengths 1 to 100 for all 16 tasks, at the paper's number of items per length. At least 10 per \
             length are recommended for every model: one item leaves intervals of 20 points."
                .to_owned(),
            "New tokens are an upper bound (each item's budget); most answers are much shorter.".to_owned(),
            format!("{} are closed models and cannot be run locally.", CLOSED.join(", ")),
        ],
    }
}
