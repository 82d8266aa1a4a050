//! Tables and rows of models and prompts in the paper.
use crate::gsm_symbolic::published::models;
use crate::model_key;
use earnest_tasks::suite::gsm_symbolic::Prompt;

/// Numbers of the tables with a prompt's variant effect (accuracies, p values) and with its odds ratios.
pub(super) fn paper_tables(prompt: Prompt) -> (u8, u8) {
    match prompt {
        Prompt::Gsm => (2, 3),
        Prompt::SimpleNl => (6, 7),
        Prompt::StructuredNl => (8, 9),
        Prompt::SimpleCode => (10, 11),
        Prompt::StructuredCode => (12, 13),
    }
}

/// Number of the figure with a prompt's odds ratios.
pub(super) fn paper_figure(prompt: Prompt) -> u8 {
    match prompt {
        Prompt::Gsm => 1,
        Prompt::SimpleNl => 3,
        Prompt::StructuredNl => 4,
        Prompt::SimpleCode => 5,
        Prompt::StructuredCode => 6,
    }
}

/// The paper's name for a model, and the quantisation suffix, which makes it another model.
pub fn paper_name(name: &str) -> (Option<&'static str>, Option<String>) {
    let (key, quantised) = model_key(name);
    let found = models().iter().map(|model| model.name()).find(|known| model_key(known).0 == key);
    (found, quantised)
}

/// Position of a model in the paper's tables; others come after them.
pub fn paper_order(name: &str) -> usize {
    models().iter().position(|model| model.name() == name).unwrap_or(usize::MAX)
}
