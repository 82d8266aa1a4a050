//! The trained defence as text.
use super::tables::DefenceTables;
use crate::dnc::text::compared;
use crate::text::{indent, inside};
use earnest_report::{Table, p_text, percent, wrap, wrap_lines};

/// Renders the tables for a terminal of `width` columns.
pub fn render_defence(defence: &DefenceTables, width: usize) -> String {
    let mut text = format!("Trained defence: {} ({})\n", defence.model, defence.source);
    text.push_str(&wrap(&defence.title, width, "  "));
    for line in &defence.settings {
        text.push_str(&wrap(line, width, "  "));
    }
    if !defence.missing.is_empty() {
        let missing = format!("Not finished: {}; the same command goes on.", defence.missing.join(", "));
        text.push_str(&wrap(&missing, width, "  "));
    }
    let mut metrics: Vec<&str> = defence.effects.iter().map(|effect| effect.metric.as_str()).collect();
    metrics.dedup();
    for metric in metrics {
        text.push_str(&format!(
            "\n  Defence against attack on the same perturbed questions, per cent and points ({metric})\n\n"
        ));
        let names = ["", "n", "attack", "defence", "defence - attack", "p", "Holm p", "MDE", "cost on originals", "p"];
        let mut rows = Table::with_left(1, names);
        for effect in defence.effects.iter().filter(|effect| effect.metric == metric) {
            rows.row(vec![
                effect.kind.name().to_owned(),
                effect.questions.to_string(),
                percent(&effect.attack),
                percent(&effect.defence),
                percent(&effect.difference),
                p_value(effect.p),
                p_value(effect.holm_p),
                effect.detectable.map_or_else(|| "-".to_owned(), |points| format!("{:.1}", 100.0 * points)),
                percent(&effect.cost),
                p_value(effect.cost_p),
            ]);
        }
        text.push_str(&indent(&rows.render_within(inside(width))));
    }
    for table in &defence.compared {
        text.push_str(&compared(table, width));
    }
    text.push('\n');
    for note in [
        "Attack: the model trained on clean questions is asked perturbed ones. Defence: so is the one trained on perturbed ones. Both are \
         compared with the clean model on the original, as in the paper, and with each other on the same questions.",
        "`ours` is on the n eligible questions of every seed, `over all` on all questions, of which the others stay as they are. Intervals \
         are 95 %, over questions and paired by question, for these trainings: how much trainings of other seeds differ is not in them. Each \
         difference is `over all` minus the published value; the paper has no intervals.",
        "The paper trains other models, on all parameters, and its cost on original questions is not published.",
    ] {
        text.push_str(&wrap(&note.split_whitespace().collect::<Vec<_>>().join(" "), width, "* "));
    }
    wrap_lines(&text, width)
}

fn p_value(p: f64) -> String {
    if p.is_finite() { p_text(p) } else { "-".to_owned() }
}
