//! Table of the results, and notes.
use std::fmt::Write;

use super::document::{Document, ModeDocument, Row, published};
use crate::cli::bench::questions::{LatencyMode, TokenRule};
use earnest_engine::bench::Spread;
use earnest_models::memory::human_bytes;
use earnest_report::{Align, Table, text_width, wrap};

/// Formats seconds with three significant digits, and no fewer before the decimal point.
fn seconds(value: f64) -> String {
    if !(value > 0.0 && value.is_finite()) {
        return "0".to_owned();
    }
    // Rounded first: 0.09996 has the digits of 0.1.
    let magnitude = format!("{value:.2e}").split_once('e').and_then(|(_, power)| power.parse::<i32>().ok());
    let decimals = (2 - magnitude.unwrap_or(0)).clamp(0, 9) as usize;
    format!("{value:.decimals$}")
}

/// A column: its heading and its cell in a row.
type Column = (&'static str, fn(&Row) -> String);

/// Cost of a sample.
static COSTS: [Column; 4] = [
    ("s/sample", |row| seconds(row.latency.seconds_per_sample.median)),
    ("", |row| {
        let Spread { low, high, .. } = row.latency.seconds_per_sample;
        // One pass has no range.
        if row.latency.passes.len() > 1 { format!("[{}, {}]", seconds(low), seconds(high)) } else { String::new() }
    }),
    // As printed.
    ("paper", |row| row.published.map_or_else(String::new, |published| published.to_string())),
    ("times direct", |row| row.times_direct.map_or_else(String::new, |times| format!("{times:.1}"))),
];

/// Parts of the cost.
static PARTS: [Column; 6] = [
    ("prefill", |row| seconds(row.latency.prefill_per_sample)),
    ("decode", |row| seconds(row.latency.decode_per_sample)),
    ("first token", |row| seconds(row.latency.first_token_s.median)),
    ("tokens", |row| format!("{:.0}", row.latency.new_tokens)),
    ("tokens/s", |row| format!("{:.0}", row.latency.tokens_per_s)),
    ("KV memory", |row| human_bytes(row.latency.kv_bytes)),
];

/// Table of some columns for each mode and batch size. Empty columns, such as the paper's values of other batch sizes, are left out;
/// none if no column remains.
fn table(d: &Document, columns: &[Column]) -> Option<String> {
    let rows = || d.modes.iter().flat_map(|mode| &mode.latencies);
    let columns: Vec<&Column> = columns.iter().filter(|(_, cell)| rows().any(|row| !cell(row).is_empty())).collect();
    if columns.is_empty() {
        return None;
    }
    let aligned = |(name, _): &Column| (name.to_string(), if name.is_empty() { Align::Left } else { Align::Right });
    let first = [("mode".to_owned(), Align::Left), ("batch".to_owned(), Align::Right)];
    let mut table = Table::new(first.into_iter().chain(columns.iter().map(|column| aligned(column))));
    for mode in &d.modes {
        for row in &mode.latencies {
            let place = [mode.mode.names().0.to_owned(), row.latency.batch.to_string()];
            table.row(place.into_iter().chain(columns.iter().map(|(_, cell)| cell(row))).collect());
        }
    }
    Some(table.render())
}

/// One table if it fits the width, otherwise several.
fn tables(d: &Document, width: usize) -> Vec<String> {
    let fits = |text: &String| text.lines().all(|line| text_width(line) <= width);
    if let Some(whole) = table(d, &[&COSTS[..], &PARTS[..]].concat()).filter(fits) {
        return vec![whole];
    }
    // A median stays beside its range.
    let halves = |columns: &'static [Column]| columns.split_at(columns.len() / 2);
    let some = |columns: &'static [Column]| match table(d, columns) {
        Some(text) if !fits(&text) => {
            let (left, right) = halves(columns);
            [table(d, left), table(d, right)].into_iter().flatten().collect()
        }
        text => text.into_iter().collect::<Vec<_>>(),
    };
    [some(&COSTS), some(&PARTS)].concat()
}

/// The document as text of this width.
pub(super) fn screen(d: &Document, width: usize) -> String {
    let mut text = String::new();
    let write = |out: &mut String| -> std::fmt::Result {
        writeln!(out, "model      {}", d.model)?;
        let (devices, weights) = (d.engine.devices.join(", "), human_bytes(d.engine.weight_bytes));
        let cache = match d.options["prefix_cache"].as_bool() {
            Some(false) => ", no prefix cache",
            _ => "",
        };
        let engine = format!("{devices}, weights {} ({weights}){cache}", d.engine.weights_dtype);
        out.push_str(&wrap(&engine, width, "engine     "));
        let rows = || d.modes.iter().flat_map(|mode| &mode.latencies);
        if let Some(peak) = rows().filter_map(|row| row.latency.peak_memory).max() {
            writeln!(out, "memory     {} peak of the process, loading included", human_bytes(peak))?;
        }
        let tokens = match d.settings.tokens {
            TokenRule::Written => "as many tokens as the model writes",
            TokenRule::Right => "as many tokens as the right completion has",
        };
        let tasks = match d.settings.tasks.as_slice() {
            few if few.len() <= 2 => few.join(", "),
            many => format!("{} tasks", many.len()),
        };
        let about = format!(
            "{} of the NUPA Test ({tasks}), {} prompts, window {}, {tokens}",
            d.questions, d.settings.prompt, d.settings.window
        );
        out.push_str(&wrap(&about, width, "questions  "));
        let dropped = d.dropped.total();
        if dropped > 0 {
            writeln!(
                out,
                "dropped    {dropped} of {} questions whose prompt and right completion exceed the window",
                d.dropped.looked_at
            )?;
        }
        if d.passes < d.planned_passes {
            writeln!(out, "measured   {} of {} passes; the results are of those", d.passes, d.planned_passes)?;
        }
        writeln!(out)?;
        out.push_str(&tables(d, width).join("\n"));
        writeln!(out)?;
        let passes = of_passes(d);
        let paper = match rows().any(|row| row.published.is_some()) {
            true => "; paper: Table 2, Llama-3.1-8B on a GPU",
            false => "",
        };
        out.push_str(&wrap(
            &format!(
                "s/sample: seconds of a pass over its samples{passes}; prefill and decode: s/sample of steps with and without \
                 prompt tokens; first token: median seconds from submission; tokens: generated per sample and per second; KV memory: \
                 peak of keys and values in the engine{paper}."
            ),
            width,
            "",
        ));
        let mut lines = String::new();
        memory_lines(&mut lines, d)?;
        d.modes.iter().try_for_each(|mode| mode_lines(&mut lines, d, mode))?;
        let compared =
            |mode: &ModeDocument| mode.latencies.iter().map(|row| row.latency.passes.len()).sum::<usize>() > 1;
        if d.modes.iter().all(|mode| mode.unsteady.is_empty() && compared(mode)) {
            writeln!(lines, "All completions had the same tokens in every pass at every batch size.")?;
        }
        lines.lines().for_each(|line| out.push_str(&wrap(line, width, "")));
        Ok(())
    };
    write(&mut text).expect("writing to a String cannot fail");
    text
}

/// Meaning of the brackets of the table: an interval, or the range of the passes.
fn of_passes(d: &Document) -> String {
    let rows = || d.modes.iter().flat_map(|mode| &mode.latencies);
    let counts = || rows().map(|row| row.latency.passes.len());
    match (counts().min(), counts().max()) {
        (Some(1), Some(1)) => "; one pass, no interval".to_owned(),
        (Some(few), Some(many)) => {
            let passes = if few == many { many.to_string() } else { format!("{few} to {many}") };
            match (rows().all(|row| row.latency.is_interval), rows().any(|row| row.latency.is_interval)) {
                (true, _) => format!("; [ ]: 95 % interval of the median of {passes} passes"),
                (false, true) => {
                    format!("; [ ]: {passes} passes, 95 % interval of the median from 6 on, else range")
                }
                (false, false) => format!("; [ ]: range of {passes} passes (6 give an interval)"),
            }
        }
        _ => String::new(),
    }
}

/// Writes the accuracy of a mode, and the unsteady parts of its passes.
fn mode_lines(lines: &mut String, d: &Document, mode: &ModeDocument) -> std::fmt::Result {
    let name = mode.mode.names().0;
    if let (Some(right), Some([share, low, high])) = (mode.right, mode.exact_match) {
        let (share, low, high) = (100.0 * share, 100.0 * low, 100.0 * high);
        let of = format!("{right} of {}, scored by {}", d.questions, mode.read_by);
        write!(lines, "{name}: exact match {share:.1} % [{low:.1}, {high:.1}] ({of})")?;
        match mode.truncated {
            Some(cut) if cut > 0 => writeln!(lines, ", {cut} completions truncated by the budget or the window")?,
            _ => writeln!(lines)?,
        }
    }
    if !mode.unsteady.is_empty() {
        let count = mode.unsteady.len();
        writeln!(
            lines,
            "{name}: {count} completions differ between passes or batch sizes: {}",
            first_few(&mode.unsteady)
        )?;
    }
    for row in &mode.latencies {
        let l = &row.latency;
        let reached = l.passes.iter().map(|pass| pass.largest_batch).max().unwrap_or(0);
        if reached < l.batch {
            writeln!(lines, "{name}, batch {}: at most {reached} samples ran together", l.batch)?;
        }
        if !l.outlying_passes.is_empty() {
            let passes: Vec<String> = l.outlying_passes.iter().map(ToString::to_string).collect();
            writeln!(lines, "{name}, batch {}: more than 10 % from the median: pass {}", l.batch, first_few(&passes))?;
        }
        if !row.slow_items.is_empty() {
            writeln!(
                lines,
                "{name}, batch {}: slow for their number of tokens: {}",
                l.batch,
                first_few(&row.slow_items)
            )?;
        }
    }
    Ok(())
}

/// Writes Table 2's second comparison, with direct answers in no more memory.
fn memory_lines(out: &mut String, d: &Document) -> std::fmt::Result {
    let mut said = false;
    for mode in &d.modes {
        for row in &mode.latencies {
            let Some(same) = row.same_memory else { continue };
            writeln!(
                out,
                "{}, batch {}: {:.1} times direct at batch {}, its fastest batch with no more memory for keys and values",
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

/// The first three of a list, and the number of others.
fn first_few(ids: &[String]) -> String {
    let few = ids.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    if ids.len() > 3 { format!("{few} and {} more", ids.len() - 3) } else { few }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_significant_digits() {
        let cases = [(123.4, "123"), (99.96, "100"), (12.34, "12.3"), (1.234, "1.23"), (0.09996, "0.100")];
        let small = [(0.0204, "0.0204"), (0.000_214_9, "0.000215"), (0.0, "0"), (f64::NAN, "0"), (1234.5, "1234")];
        for (value, text) in cases.into_iter().chain(small) {
            assert_eq!(seconds(value), text, "{value}");
        }
    }
}
