//! First screen of a finished run: a headline, the tasks, what must be known to read them, and where the rest is.

use super::grid;
use super::text::{heading, headline, line, nothing, reported_otherwise, results, warnings, wrapped};
use super::wrap::{prose, wrap};
use crate::bars::{bars_below, bars_of, curves, profile};
use earnest_results::{Document, Origin};

/// Lines of the screen; what the program says about the page and the next two commands makes them 40.
const HEIGHT: usize = 34;

/// Notes on the screen, warnings among them, which are never left out.
const NOTES: usize = 2;

/// Renders the screen. Tables with more tasks than fit are cut, by those with the fewest right answers where the table has bars.
pub(super) fn first(document: &Document, width: usize) -> String {
    let mut top: String = heading(document).lines().map(|line| wrap(line, width, "")).collect();
    top.push('\n');
    let tasks =
        document.grids.first().filter(|grid| profile(grid, width).is_some()).cloned().or_else(|| curves(document));
    let mut said = warnings(document);
    said.extend(reported_otherwise(document));
    // The first note of a suite is the key of its table; without its own table, notes are about rows that are not shown.
    let notes = match document.grids.is_empty() && tasks.is_some() {
        true => 0,
        false => NOTES.saturating_sub(said.len()).max(1).min(document.summary.notes.len()),
    };
    said.extend_from_slice(&document.summary.notes[..notes]);
    let left_out = document.summary.notes.len() - notes;
    let mut bottom: String = said.iter().map(|note| prose(note, width, "* ")).collect();
    if !bottom.is_empty() {
        bottom.insert(0, '\n');
    }
    bottom += &more(document, left_out, width);
    if let Some(said) = nothing(document) {
        return top + &wrap(&said, width, "") + &bottom;
    }
    let headline = headline(document);
    if let Some(text) = &headline {
        top += &wrap(text, width, "");
    }
    if let Some(grid) = &tasks {
        top += &bars_below(grid).map_or_else(String::new, |text| wrap(&text, width, ""));
        let table = |rows| bars_of(grid, rows).lines().map(|text| line(text, width)).collect::<String>();
        return fitted(&(top + "\n"), &bottom, table);
    }
    if let Some(first) = document.grids.first() {
        top += if headline.is_some() { "\n" } else { "" };
        return top + &grid::text(first, width) + &bottom;
    }
    let rows = &document.summary.rows;
    // A sum of one task says its row again, and the headline has said it.
    if headline.is_some() && (rows.len() == 1 || rows.len() == 2 && rows[0].values.first() == rows[1].values.first()) {
        return top + &bottom;
    }
    top += if headline.is_some() { "\n" } else { "" };
    let table = |most: usize| {
        let Some((all, tasks)) = rows.split_last().filter(|(_, tasks)| tasks.len() > most) else {
            return results(rows, width).0;
        };
        let shown: Vec<_> = tasks[..most].iter().chain([all]).cloned().collect();
        results(&shown, width).0 + &wrapped(&format!("{} more tasks are not shown.", tasks.len() - most), width)
    };
    let legend = "* Per cent right, with 95 % intervals in brackets.\n";
    let brackets = document.manifest.settings.origin() != Origin::Log && rows.iter().any(|row| !row.values.is_empty());
    let legend = if brackets { legend } else { "" };
    let bottom = if bottom.starts_with("\n*") {
        format!("\n{legend}{}", &bottom[1..])
    } else {
        format!("\n{legend}{}", bottom.trim_start())
    };
    fitted(&top, &bottom, table)
}

/// The three parts, the table with the most rows with which they are as high as the screen.
fn fitted(top: &str, bottom: &str, table: impl Fn(usize) -> String) -> String {
    let lines = |text: &str| text.lines().count();
    let space = HEIGHT.saturating_sub(lines(top) + lines(bottom));
    let least = 8;
    let rows = (least..=space.max(least)).rev().find(|&rows| lines(&table(rows)) <= space).unwrap_or(least);
    format!("{top}{}{bottom}", table(rows))
}

/// The command that shows everything, with what it adds where that fits.
fn more(document: &Document, notes: usize, width: usize) -> String {
    let run = &document.manifest.run;
    let named = |run: &str| {
        let metric = if document.grids.is_empty() { "" } else { " --metric all" };
        format!("earnest runs show {run}{metric}{}", document.results_option())
    };
    let mut command = named(run);
    // The last part of a name is enough, and a command is copied whole.
    if let Some((_, last)) = run.rsplit_once('-').filter(|_| "More: ".len() + command.chars().count() > width) {
        command = named(last);
    }
    let adds = match notes {
        0 => "all numbers".to_owned(),
        1 => "all numbers, 1 more note".to_owned(),
        notes => format!("all numbers, {notes} more notes"),
    };
    let long = format!("More: {command} ({adds})");
    if long.chars().count() <= width { long + "\n" } else { format!("More: {command}\n") }
}
