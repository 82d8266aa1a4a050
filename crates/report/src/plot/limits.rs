//! Bars of digit limits on a logarithmic axis of lengths.
use super::Scale;
use super::figure::{Figure, Mark, legend, series_class};
use super::svg::{Anchor, Svg, number, shorten, text_width};

/// Limits of a group of skills.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitPanel {
    pub name: String,
    pub title: String,
    /// Shortest and longest length of the axis.
    pub lengths: (f64, f64),
    pub rows: Vec<LimitRow>,
    /// Names of the models, for the keys.
    pub series: Vec<String>,
    /// Draws keys of the marks, and of the models where there are several: a page that has them once does without.
    pub keys: bool,
}

/// A skill.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitRow {
    pub name: String,
    /// Shortest and longest length that can be asked.
    pub lengths: (f64, f64),
    /// One bar a model; none without a limit.
    pub bars: Vec<LimitBar>,
    /// True if the models differ.
    pub differs: bool,
}

/// Limits of a model: lengths, 0 below the range and infinity beyond it.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitBar {
    /// Number of the model.
    pub series: usize,
    /// 90, 50 and 10 % limits; none where success does not fall.
    pub limits: Option<[f64; 3]>,
    /// Interval of the 50 % limit.
    pub low: f64,
    pub high: f64,
    /// Limit with its interval, for people.
    pub text: String,
}

const WIDTH: f64 = 372.0;
const TOP: f64 = 6.0;
const BOTTOM: f64 = 20.0;
/// Height of a bar, and space below a row.
const THICK: f64 = 9.0;
const GAP: f64 = 4.0;
/// Longest name in characters.
const LABEL: usize = 24;
/// Room for the numbers at the right, and for the mark of those that differ beside them.
const NUMBERS: f64 = 34.0;
const MARK: f64 = 14.0;
/// Part of an octave by which ends outside the range are drawn outside it.
const OUTSIDE: f64 = 1.25;

/// Draws a panel: of every skill a bar to the 50 % limit, faint on to the 10 % limit, with a tick at the 90 % limit and the interval of
/// the 50 % limit as a line.
pub fn limits(panel: &LimitPanel) -> Figure {
    let mut svg = Svg::default();
    let widest = panel.rows.iter().map(|row| text_width(&shorten(&row.name, LABEL))).fold(20.0, f64::max);
    let left = widest + 10.0;
    let height_of = |row: &LimitRow| row.bars.len().max(1) as f64 * THICK + GAP;
    let rows: f64 = panel.rows.iter().map(height_of).sum();
    let height = TOP + rows + BOTTOM;
    let (first, last) = (panel.lengths.0 / OUTSIDE, panel.lengths.1 * OUTSIDE);
    let mark = if panel.rows.iter().any(|row| row.differs) { MARK } else { 0.0 };
    let right = WIDTH - NUMBERS - mark;
    let x = Scale::log((first, last), (left, right));
    svg.text("small", (left - 6.0, height - BOTTOM + 11.0), Anchor::End, "digits");
    for tick in [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0].into_iter().filter(|tick| *tick <= panel.lengths.1) {
        svg.line("grid", (x.at(tick), TOP - 2.0), (x.at(tick), height - BOTTOM));
        svg.text("small", (x.at(tick), height - BOTTOM + 11.0), Anchor::Middle, &number(tick));
    }
    let mut y = TOP;
    for row in &panel.rows {
        let high = height_of(row) - GAP;
        svg.text("tick", (left - 6.0, y + high / 2.0 + 4.0), Anchor::End, &shorten(&row.name, LABEL));
        for (index, bar) in (0_u32..).zip(&row.bars) {
            draw(&mut svg, row, bar, x, (first, right), y + f64::from(index) * THICK);
        }
        if row.differs {
            svg.text("tick", (WIDTH - 2.0, y + high / 2.0 + 4.0), Anchor::End, "≠");
        }
        y += high + GAP;
    }
    let keys = if panel.keys { keys(&mut svg, &panel.series, height) } else { 0.0 };
    let height = height + keys;
    let description = format!(
        "Bars of digit limits of {} skills with 95 % intervals, on a logarithmic axis of lengths",
        panel.rows.len()
    );
    Figure::new(&panel.name, &panel.title, description, (WIDTH, height), svg)
}

/// Draws the keys of the marks below the axis, then those of several models; returns their height.
fn keys(svg: &mut Svg, series: &[String], top: f64) -> f64 {
    const LONG: f64 = 20.0;
    let (y, thick) = (top + 4.0, THICK - 2.0);
    let mut x = 10.0;
    svg.open(&format!(r#"class="{}""#, series_class(0)));
    let mut ends = Vec::new();
    for text in ["50 % limit", "10 % limit", "90 % limit", "95 % interval"] {
        let middle = (x + LONG / 2.0, y + thick / 2.0);
        match text {
            "50 % limit" => svg.rect("bar", (x, y), (LONG, thick), ""),
            "10 % limit" => svg.rect("faint", (x, y), (LONG, thick), ""),
            "90 % limit" => {
                svg.rect("bar", (x, y), (LONG, thick), "");
                svg.line("outline-grid", (middle.0, y), (middle.0, y + thick));
            }
            _ => svg.line("whisker", (x, middle.1), (x + LONG, middle.1)),
        }
        ends.push((x + LONG + 4.0, text));
        x += LONG + 4.0 + text_width(text) + 4.0;
    }
    svg.close();
    for (x, text) in ends {
        svg.text("small", (x, y + thick), Anchor::Start, text);
    }
    let names: Vec<(usize, &str)> = series.iter().map(String::as_str).enumerate().collect();
    thick + 12.0 + legend(svg, Mark::Bar, &names, 10.0, y + thick + 8.0, WIDTH - 20.0)
}

fn draw(svg: &mut Svg, row: &LimitRow, bar: &LimitBar, x: Scale, (from, right): (f64, f64), y: f64) {
    let tip = format!("{}: {}", row.name, bar.text);
    let place = |length: f64| match length {
        length if length < row.lengths.0 => from,
        length if !length.is_finite() => row.lengths.1 * OUTSIDE,
        length => length,
    };
    let thick = THICK - 2.0;
    svg.open(&format!(r#"class="{}" data-series="{}""#, series_class(bar.series), bar.series));
    let Some([easy, half, hard]) = bar.limits.map(|limits| limits.map(place)) else {
        svg.text("small", (x.at(from) + 2.0, y + thick), Anchor::Start, &bar.text);
        svg.close();
        return;
    };
    let width = |to: f64| (x.at(to) - x.at(from)).max(0.0);
    svg.rect("faint", (x.at(from), y), (width(hard), thick), &tip);
    svg.rect("bar", (x.at(from), y), (width(half).max(0.8), thick), &tip);
    if easy > from {
        svg.line("outline-grid", (x.at(easy), y), (x.at(easy), y + thick));
    }
    let (low, high) = (place(bar.low), place(bar.high));
    if low < high {
        svg.line("whisker", (x.at(low), y + thick / 2.0), (x.at(high), y + thick / 2.0));
    }
    svg.close();
    let short = bar.text.split(' ').next().unwrap_or_default().trim_end_matches('*');
    let star = if bar.text.ends_with('*') { "*" } else { "" };
    svg.text("small", (right + 3.0, y + thick), Anchor::Start, &format!("{short}{star}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_end_at_their_limits() {
        let bar = |limits| LimitBar { series: 0, limits, low: 4.0, high: 9.0, text: "6.0 (4.0-9.0)".into() };
        let row = |bars, differs| LimitRow { name: "add".into(), lengths: (1.0, 20.0), bars, differs };
        let rows = vec![
            row(vec![bar(Some([4.0, 6.0, 12.0])), bar(Some([0.0, 0.0, 0.0]))], true),
            row(vec![LimitBar { text: "no limit".into(), ..bar(None) }], false),
            row(vec![bar(Some([20.0, f64::INFINITY, f64::INFINITY]))], false),
        ];
        let series = vec!["A".to_owned(), "B".to_owned()];
        let (name, title) = ("integers".into(), "Integers".into());
        let panel = LimitPanel { name, title, lengths: (1.0, 20.0), rows, series, keys: false };
        let drawn = limits(&panel);
        let body = &drawn.body;
        assert_eq!((body.matches("class=\"bar\"").count(), body.matches("≠").count()), (3, 1));
        assert!(body.contains(">digits</text>") && !body.contains("90 % limit"));
        assert!(
            body.contains("no limit")
                && body.contains("add: 6.0 (4.0-9.0)")
                && !body.contains("NaN")
                && !body.contains("inf")
        );
        let keyed = limits(&LimitPanel { keys: true, ..panel });
        assert!(keyed.height > drawn.height);
        for key in ["50 % limit", "10 % limit", "90 % limit", "95 % interval", ">A</text>", ">B</text>"] {
            assert!(keyed.body.contains(key), "{key}");
        }
    }
}
