//! Plan of the runs that reproduce a paper.
use serde::Serialize;

use super::nupa::Rate;

/// The runs behind a paper's tables.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    pub paper: String,
    pub rows: Vec<PlanRow>,
    pub notes: Vec<String>,
}

/// A planned run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanRow {
    pub model: String,
    /// Numbers of the tables it fills.
    pub tables: Vec<u8>,
    pub prompts: usize,
    /// Characters of all questions, without the chat template.
    pub prompt_characters: usize,
    /// Tokens of all prompts by the given checkpoint's tokenizer.
    pub prompt_tokens: Option<usize>,
    /// Upper bound of generated tokens: the sum of the budgets.
    pub most_new_tokens: usize,
    /// Upper bound of hours: every answer uses its whole budget. Absent without tokens or a rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_hours: Option<f64>,
    pub command: String,
}

impl Plan {
    /// Fills in the hours of each row with counted tokens. `rate` was measured with a model of `parameters` active parameters; time is
    /// assumed proportional to them. Rows of models whose names do not state their size get none. `options` are appended to the commands.
    pub fn estimate(&mut self, rate: &Rate, parameters: f64, options: &str) {
        for row in &mut self.rows {
            let times = parameters_of(&row.model).map(|count| count / parameters);
            let hours = row.prompt_tokens.zip(times);
            row.most_hours = hours.map(|(tokens, times)| times * rate.hours(tokens, row.most_new_tokens));
            row.command.push_str(options);
        }
        self.notes.push(format!(
            "Hours are an upper bound: whole budgets at {}, scaled by the number of parameters, which is inaccurate for quantised \
             and for much larger models.",
            rate.describe()
        ));
    }
}

/// Active parameters by a model's name (`Qwen2.5-7B-Instruct`, `Qwen3-235B-A22B`), or by its report for mixtures whose names do not state
/// them.
fn parameters_of(model: &str) -> Option<f64> {
    if model == "DeepSeek-R1-671B" {
        return Some(37e9);
    }
    let billions = |part: &str| part.strip_suffix('B')?.parse::<f64>().ok().filter(|billions| *billions > 0.0);
    let used = model.split('-').find_map(|part| billions(part.strip_prefix('A')?));
    used.or_else(|| model.split('-').find_map(billions)).map(|billions| 1e9 * billions)
}
