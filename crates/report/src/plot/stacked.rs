//! Stacked shares of classes, e.g. of failures.
use super::Scale;
use super::figure::{Figure, STYLES, series_class};
use super::svg::{Anchor, Svg, shorten, text_width};
use earnest_tasks::suite::registry::task_label;

/// Stacked bars, one per row.
#[derive(Debug, Clone, PartialEq)]
pub struct Stacked {
    pub name: String,
    pub title: String,
    /// Classes in stacking order; the first (correct) is plain, the others coloured.
    pub classes: Vec<String>,
    /// Rows (name, count per class).
    pub rows: Vec<(String, Vec<usize>)>,
}

const WIDTH: f64 = 340.0;
const THICK: f64 = 16.0;
const PITCH: f64 = 21.0;
const TOP: f64 = 6.0;
/// Longest name in the margin, in characters.
const LABEL: usize = 18;
/// Height of a line for longer names.
const LINE: f64 = 14.0;

/// Draws the bars. Rows without samples stay empty.
pub fn stacked(plot: &Stacked) -> Figure {
    let mut svg = Svg::default();
    // Long names get separate lines instead of being shortened.
    let above = plot.rows.iter().any(|(name, _)| task_label(name).chars().count() > LABEL);
    let widest = plot.rows.iter().map(|(name, _)| text_width(&task_label(name))).fold(20.0, f64::max);
    let left = if above { 10.0 } else { widest + 10.0 };
    let line = if above { LINE } else { 0.0 };
    let bottom = TOP + plot.rows.len() as f64 * (PITCH + line);
    let x = Scale::linear((0.0, 1.0), (left, WIDTH - 12.0));
    for tick in x.ticks(5) {
        svg.text("tick", (x.at(tick), bottom + 14.0), Anchor::Middle, &format!("{:.0}", 100.0 * tick));
    }
    svg.text("label", ((left + WIDTH) / 2.0, bottom + 30.0), Anchor::Middle, "share of samples, %");
    for (index, (name, counts)) in plot.rows.iter().enumerate() {
        let y = TOP + index as f64 * (PITCH + line) + line;
        svg.open(&format!(r#"data-task="{}""#, super::escape(name)));
        if above {
            svg.text("tick", (left, y - 4.0), Anchor::Start, &shorten(name, 52));
        } else {
            svg.text("tick", (left - 6.0, y + 12.0), Anchor::End, &task_label(name));
        }
        let total: usize = counts.iter().sum();
        let mut before = 0;
        for (class, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let (from, to) = (x.at(before as f64 / total as f64), x.at((before + count) as f64 / total as f64));
            before += count;
            let share = 100.0 * count as f64 / total as f64;
            let label = plot.classes.get(class).map_or("", String::as_str);
            let tip = format!("{name}, {label}: {count} of {total} ({share:.1} %)");
            svg.open(&format!(r#"class="{}""#, class_style(class)));
            svg.rect(shade(class), (from, y), (to - from - 0.6, THICK), &tip);
            svg.close();
            // A letter, also in the legend, for colour-blind readers; a digit would read like a count.
            let letter = letter(class);
            if class > 0 && to - from > text_width(&letter) + 5.0 {
                svg.text("digit", ((from + to) / 2.0, y + 12.0), Anchor::Middle, &letter);
            }
        }
        svg.close();
    }
    let key = key(&mut svg, plot, bottom + 36.0);
    let description = format!("shares of {} in {} rows", plot.classes.join(", "), plot.rows.len());
    Figure::new(&plot.name, &plot.title, description, (WIDTH, bottom + 36.0 + key), svg)
}

/// Returns the style of a class; the first is plain.
fn class_style(class: usize) -> String {
    if class == 0 { "plain".to_owned() } else { series_class(class - 1) }
}

/// Mark of a class in bars and key: `a` for the first coloured one, `aa` after `z`.
fn letter(class: usize) -> String {
    let mut rest = class;
    let mut letters = Vec::new();
    while rest > 0 {
        rest -= 1;
        letters.push(char::from(b'a' + (rest % 26) as u8));
        rest /= 26;
    }
    letters.into_iter().rev().collect()
}

fn shade(class: usize) -> &'static str {
    match class {
        0 => "none",
        _ if class - 1 < STYLES => "bar",
        _ => "faint",
    }
}

fn key(svg: &mut Svg, plot: &Stacked, top: f64) -> f64 {
    let (mut x, mut y) = (8.0, top + 4.0);
    for (class, label) in plot.classes.iter().enumerate() {
        let label = if class == 0 { label.clone() } else { format!("{} {label}", letter(class)) };
        let needed = 18.0 + text_width(&label) + 12.0;
        if x > 8.0 && x + needed > WIDTH {
            x = 8.0;
            y += 18.0;
        }
        svg.open(&format!(r#"class="{}""#, class_style(class)));
        svg.rect(shade(class), (x, y), (12.0, 12.0), "");
        svg.close();
        svg.text("tick", (x + 17.0, y + 10.0), Anchor::Start, &label);
        x += needed;
    }
    y - top + 20.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_fill_the_row() {
        let plot = Stacked {
            name: "failures".into(),
            title: "Failures".into(),
            classes: vec!["correct".into(), "wrong".into(), "truncated".into()],
            rows: vec![("add".into(), vec![1, 2, 1]), ("empty".into(), vec![0, 0, 0])],
        };
        let figure = stacked(&plot);
        assert!(figure.body.contains("add, wrong: 2 of 4 (50.0 %)"));
        assert!(!figure.body.contains("NaN") && !figure.body.contains("empty, "));
        assert_eq!(figure.body.matches("<title>").count(), 3);
        assert!(figure.body.contains(">a</text>") && figure.body.contains(">a wrong</text>"), "{}", figure.body);
        assert!(!figure.body.contains(">1</text>"), "a digit in a bar reads like a count");
        assert_eq!([1, 2, 26, 27, 28].map(letter), ["a", "b", "z", "aa", "ab"]);
    }
}
