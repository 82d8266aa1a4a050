//! The table, and what must be said beside it.
use std::fmt::Write;

use super::document::{Document, ModeDocument, published};
use crate::cli::bench::questions::{LatencyMode, TokenRule};
use crate::cli::values::human_bytes;
use crate::report::{Align, Table};

/// Seconds with three significant digits.
fn seconds(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 1.0 => format!("{value:.2}"),
        value if value >= 0.1 => format!("{value:.3}"),
        value => format!("{value:.4}"),
    }
}

/// The document for people.
pub(super) fn screen(d: &Document) -> String {
    let mut table = Table::new([
        ("mode".to_owned(), Align::Left),
        right("batch"),
        right("s/sample"),
        (String::new(), Align::Left),
        right("paper"),
        right("times direct"),
        right("prefill"),
        right("decode"),
        right("first token"),
        right("tokens"),
        right("tokens/s"),
        right("KV memory"),
    ]);
    for mode in &d.modes {
        for row in &mode.latencies {
            let l = &row.latency;
            let s = &l.seconds_per_sample;
            table.row(vec![
                mode.mode.names().0.to_owned(),
                l.batch.to_string(),
                seconds(s.median),
                format!("[{}, {}]", seconds(s.low), seconds(s.high)),
                row.published.map_or_else(String::new, seconds),
                row.times_direct.map_or_else(String::new, |times| format!("{times:.1}")),
                seconds(l.prefill_per_sample),
                seconds(l.decode_per_sample),
                seconds(l.first_token_s.median),
                format!("{:.0}", l.new_tokens),
                format!("{:.0}", l.tokens_per_s),
                human_bytes(l.kv_bytes),
            ]);
        }
    }
    let mut text = String::new();
    let write = |out: &mut String| -> std::fmt::Result {
        writeln!(out, "model      {}", d.model)?;
        let (devices, weights) = (d.engine.devices.join(", "), human_bytes(d.engine.weight_bytes));
        writeln!(out, "engine     {devices}, weights {} ({weights})", d.engine.weights_dtype)?;
        let rows = || d.modes.iter().flat_map(|mode| &mode.latencies);
        if let Some(peak) = rows().filter_map(|row| row.latency.peak_memory).max() {
            writeln!(out, "memory     {} of the process at most, loading included", human_bytes(peak))?;
        }
        let tokens = match d.tokens {
            TokenRule::Written => "as many tokens as the model writes",
            TokenRule::Right => "as many tokens as the right completion has",
        };
        writeln!(
            out,
            "questions  {} of the NUPA Test, {} prompts, window {}, {tokens}",
            d.questions, d.prompt, d.window
        )?;
        let dropped = d.dropped.total();
        if dropped > 0 {
            writeln!(
                out,
                "dropped    {dropped} of {} questions exceed the window with their right completion",
                d.dropped.looked_at
            )?;
        }
        if d.passes < d.planned_passes {
            writeln!(out, "measured   {} of {} passes: what follows is of those", d.passes, d.planned_passes)?;
        }
        writeln!(out)?;
        out.push_str(&table.render());
        writeln!(out)?;
        let counts = || rows().map(|row| row.latency.passes.len());
        let passes = match (counts().min(), counts().max()) {
            (Some(1), Some(1)) => "one pass, no interval".to_owned(),
            (Some(few), Some(many)) => {
                let passes = if few == many { many.to_string() } else { format!("{few} to {many}") };
                match (rows().all(|row| row.latency.is_interval), rows().any(|row| row.latency.is_interval)) {
                    (true, _) => format!("95 % interval of the median of {passes} passes"),
                    (false, true) => format!("{passes} passes: 95 % interval of the median from 6 on, else range"),
                    (false, false) => format!("range of {passes} passes (6 give an interval)"),
                }
            }
            _ => String::new(),
        };
        writeln!(
            out,
            "s/sample: a pass's seconds over its samples; [ ]: {passes}; prefill and decode: s/sample of steps"
        )?;
        writeln!(out, "with and without prompt tokens; first token: median seconds from submission; paper: Table 2,")?;
        writeln!(out, "Llama-3.1-8B on a GPU.")?;
        memory_lines(out, d)?;
        for mode in &d.modes {
            let name = mode.mode.names().0;
            if let (Some(right), Some([share, low, high])) = (mode.right, mode.exact_match) {
                let (share, low, high) = (100.0 * share, 100.0 * low, 100.0 * high);
                write!(out, "{name}: exact match {share:.1} % [{low:.1}, {high:.1}] ({right} of {})", d.questions)?;
                match mode.truncated {
                    Some(cut) if cut > 0 => writeln!(out, ", {cut} completions cut by their budget or the window")?,
                    _ => writeln!(out)?,
                }
            }
            if !mode.unsteady.is_empty() {
                let count = mode.unsteady.len();
                writeln!(
                    out,
                    "{name}: {count} completions differ between passes or batch sizes: {}",
                    some(&mode.unsteady)
                )?;
            }
            for row in &mode.latencies {
                let l = &row.latency;
                let reached = l.passes.iter().map(|pass| pass.largest_batch).max().unwrap_or(0);
                if reached < l.batch {
                    writeln!(out, "{name}, batch {}: at most {reached} samples ran together", l.batch)?;
                }
                if !l.outlying_passes.is_empty() {
                    let places: Vec<String> = l.outlying_passes.iter().map(ToString::to_string).collect();
                    writeln!(out, "{name}, batch {}: over 10 % from the median: pass {}", l.batch, some(&places))?;
                }
                if !row.slow_items.is_empty() {
                    writeln!(out, "{name}, batch {}: slow for their tokens: {}", l.batch, some(&row.slow_items))?;
                }
            }
        }
        let compared =
            |mode: &ModeDocument| mode.latencies.iter().map(|row| row.latency.passes.len()).sum::<usize>() > 1;
        if d.modes.iter().all(|mode| mode.unsteady.is_empty() && compared(mode)) {
            writeln!(out, "Every completion had the same tokens in every pass at every batch size.")?;
        }
        Ok(())
    };
    write(&mut text).expect("writing to a String cannot fail");
    text
}

/// Table 2's second comparison: direct answers that take no more memory.
fn memory_lines(out: &mut String, d: &Document) -> std::fmt::Result {
    let mut said = false;
    for mode in &d.modes {
        for row in &mode.latencies {
            let Some(same) = row.same_memory else { continue };
            writeln!(
                out,
                "{}, batch {}: {:.1} times direct at batch {}, its fastest in no more memory for keys and values",
                mode.mode.names().0,
                row.latency.batch,
                same.times,
                same.batch
            )?;
            said = true;
        }
    }
    let paper = |mode, batch| published(mode, batch);
    if let (true, Some(rule), Some(direct), Some(double)) =
        (said, paper(LatencyMode::RfCot, 128), paper(LatencyMode::Direct, 128), paper(LatencyMode::Direct, 256))
    {
        let (times, memory) = (rule / direct, rule / double);
        writeln!(
            out,
            "paper: rf-cot at batch 128 takes {times:.1} times direct at 128, {memory:.1} times direct at 256 (the same memory)"
        )?;
    }
    Ok(())
}

fn right(name: &str) -> (String, Align) {
    (name.to_owned(), Align::Right)
}

/// The first few of a list.
fn some(ids: &[String]) -> String {
    let few = ids.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    if ids.len() > 3 { format!("{few} and {} more", ids.len() - 3) } else { few }
}
