//! Forest plots: odds ratios (or other ratios) with intervals on a logarithmic axis.
use super::Scale;
use super::figure::{Figure, Mark, legend, series_class};
use super::svg::{Anchor, Svg, number, shorten, text_width};

/// Ratios with intervals, one per row.
#[derive(Debug, Clone, PartialEq)]
pub struct Forest {
    pub name: String,
    pub title: String,
    pub x_label: String,
    pub rows: Vec<ForestRow>,
    /// Names of the rows' series, for the legend; empty without one.
    pub series: Vec<String>,
}

/// An estimate.
#[derive(Debug, Clone, PartialEq)]
pub struct ForestRow {
    pub label: String,
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
    /// False if the interval includes 1; drawn hollow.
    pub significant: bool,
    /// Reason of a missing estimate (separation, a singular fit), drawn in its place.
    pub problem: Option<String>,
    /// Index of the colour.
    pub series: usize,
}

const WIDTH: f64 = 480.0;
const PITCH: f64 = 22.0;
const TOP: f64 = 10.0;
/// Largest factor around 1 that is drawn; longer intervals end in an arrow.
const REACH: f64 = 1000.0;

/// Draws the estimates with a line at 1.
pub fn forest(plot: &Forest) -> Figure {
    let mut svg = Svg::default();
    let widest = plot.rows.iter().map(|row| text_width(&shorten(&row.label, 28))).fold(20.0, f64::max);
    let (left, right) = (widest + 12.0, WIDTH - 132.0);
    let bottom = TOP + plot.rows.len() as f64 * PITCH;
    let x = Scale::log(domain(&plot.rows), (left, right));
    let mut free = f64::NEG_INFINITY;
    for tick in x.ticks(5) {
        svg.line("grid", (x.at(tick), TOP), (x.at(tick), bottom));
        let text = ratio(tick);
        let half = text_width(&text) / 2.0;
        // A number that would cover the one before it is left out; its line stays.
        if x.at(tick) - half > free {
            svg.text("tick", (x.at(tick), bottom + 15.0), Anchor::Middle, &text);
            free = x.at(tick) + half + 3.0;
        }
    }
    svg.line("rule", (x.at(1.0), TOP - 4.0), (x.at(1.0), bottom + 2.0));
    svg.text("label", ((left + right) / 2.0, bottom + 32.0), Anchor::Middle, &plot.x_label);
    for (index, row) in plot.rows.iter().enumerate() {
        let y = TOP + (index as f64 + 0.5) * PITCH;
        svg.open(&format!(r#"data-task="{}""#, super::escape(&row.label)));
        svg.text("tick", (left - 8.0, y + 4.0), Anchor::End, &shorten(&row.label, 28));
        draw(&mut svg, row, x, y, right);
        svg.close();
    }
    let names: Vec<(usize, &str)> = plot.series.iter().map(String::as_str).enumerate().collect();
    let key = legend(&mut svg, Mark::Bar, &names, 10.0, bottom + 38.0, WIDTH - 20.0);
    let description = format!("{} of {} rows with 95 % intervals, logarithmic axis", plot.x_label, plot.rows.len());
    Figure::new(&plot.name, &plot.title, description, (WIDTH, bottom + 40.0 + key), svg)
}

fn draw(svg: &mut Svg, row: &ForestRow, x: Scale, y: f64, right: f64) {
    let usable = row.estimate.is_finite() && row.estimate > 0.0;
    if row.problem.is_some() || !usable {
        let problem = row.problem.as_deref().unwrap_or("no estimate");
        svg.text("label", (right + 10.0, y + 4.0), Anchor::Start, &shorten(problem, 19));
        return;
    }
    let words = format!("{} [{}, {}]", ratio(row.estimate), ratio(row.low), ratio(row.high));
    let tested = if row.significant { "" } else { ", not significant" };
    svg.open(&format!(r#"class="{}""#, series_class(row.series)));
    // Unknown bounds extend to the edge.
    let (from, to) =
        (if row.low > 0.0 { row.low } else { 0.0 }, if row.high.is_nan() { f64::INFINITY } else { row.high });
    svg.line("whisker", (x.at(from), y), (x.at(to), y));
    for (bound, side) in [(from, -1.0), (to, 1.0)] {
        let at = x.at(bound);
        if x.contains(bound) {
            svg.line("whisker", (at, y - 4.0), (at, y + 4.0));
        } else {
            svg.path("whisker-arrow", &[(at - 5.0 * side, y - 4.0), (at, y), (at - 5.0 * side, y + 4.0)], true);
        }
    }
    let class = if row.significant { "dot" } else { "hollow" };
    svg.circle(class, (x.at(row.estimate), y), 4.5, &format!("{}: {words}{tested}", row.label));
    svg.close();
    svg.text("tick", (right + 10.0, y + 4.0), Anchor::Start, &words);
}

fn domain(rows: &[ForestRow]) -> (f64, f64) {
    let values = rows.iter().filter(|row| row.problem.is_none()).flat_map(|row| [row.low, row.estimate, row.high]);
    let usable = values.filter(|value| value.is_finite() && *value > 0.0);
    let (low, high) = usable.fold((1.0f64, 1.0f64), |(low, high), value| (low.min(value), high.max(value)));
    ((low * 0.9).max(1.0 / REACH), (high * 1.1).min(REACH))
}

fn ratio(value: f64) -> String {
    if !value.is_finite() {
        "∞".to_owned()
    } else if value >= 100.0 || value.fract() == 0.0 {
        format!("{value:.0}")
    } else if value >= 0.1 {
        number(value)
    } else {
        format!("{value:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(label: &str, estimate: f64, low: f64, high: f64) -> ForestRow {
        let significant = low > 1.0 || high < 1.0;
        ForestRow { label: label.into(), estimate, low, high, significant, problem: None, series: 0 }
    }

    fn plot(rows: Vec<ForestRow>) -> Figure {
        forest(&Forest {
            name: "or".into(),
            title: "Odds ratios".into(),
            x_label: "odds ratio".into(),
            rows,
            series: Vec::new(),
        })
    }

    #[test]
    fn significance_and_values_are_shown() {
        let figure = plot(vec![row("model a", 0.5, 0.25, 0.9), row("model b", 1.2, 0.8, 2.0)]);
        assert_eq!(figure.body.matches("class=\"hollow\"").count(), 1);
        assert!(figure.body.contains("model b: 1.2 [0.8, 2], not significant"));
        assert!(figure.body.contains(">0.5 [0.25, 0.9]<"));
    }

    #[test]
    fn separation_and_unbounded_intervals_draw() {
        let separated = ForestRow { problem: Some("separation".into()), ..row("c", f64::INFINITY, 0.0, f64::INFINITY) };
        let figure =
            plot(vec![row("wide", 2.0, 0.0, f64::INFINITY), separated, row("none", f64::NAN, f64::NAN, f64::NAN)]);
        assert_eq!(figure.body.matches("whisker-arrow").count(), 2);
        assert!(figure.body.contains("separation") && figure.body.contains("no estimate"));
        assert!(!figure.body.contains("NaN"));
    }
}
