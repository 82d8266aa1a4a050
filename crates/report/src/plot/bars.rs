//! Bars with intervals, hatched where a difference is not significant (n.s.).
use super::Scale;
use super::figure::{Figure, Mark, file_name, legend, series_class};
use super::svg::{Anchor, Svg, number, shorten, text_width};
use earnest_tasks::suite::Interval;
use earnest_tasks::suite::registry::task_label;

/// Grouped horizontal bars, so that long names are readable.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    pub name: String,
    pub title: String,
    pub x_label: String,
    /// Names of the series, for the legend.
    pub series: Vec<String>,
    pub groups: Vec<BarGroup>,
    /// Domain of the axis; by default that of the data and 0.
    pub domain: Option<(f64, f64)>,
    /// Factor for displayed values (100 for per cent).
    pub factor: f64,
    pub legend: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct BarGroup {
    pub label: String,
    pub bars: Vec<Bar>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bar {
    pub series: usize,
    pub value: Interval,
    /// Significance of a test, if any; bars that are not significant are hatched and marked `n.s.`, or `no test` where the interval is unknown.
    pub significant: Option<bool>,
}

const WIDTH: f64 = 340.0;
const THICK: f64 = 13.0;
/// Height of a bar where a group has more than [`FEW`].
const THIN: f64 = 10.0;
const FEW: usize = 4;
const GAP: f64 = 9.0;
const BOTTOM: f64 = 40.0;
const TOP: f64 = 6.0;
/// Longest name in the margin, in characters.
const LABEL: usize = 18;
/// Height of a line for longer names.
const LINE: f64 = 14.0;

/// Draws the bars.
pub fn bars(plot: &Bars) -> Figure {
    let mut svg = Svg::default();
    // Long names get separate lines instead of being shortened.
    let above = plot.groups.iter().any(|group| task_label(&group.label).chars().count() > LABEL);
    let widest = plot.groups.iter().map(|group| text_width(&task_label(&group.label))).fold(20.0, f64::max);
    let left = if above { 10.0 } else { widest + 10.0 };
    let line = if above { LINE } else { 0.0 };
    let bars = || plot.groups.iter().flat_map(|group| &group.bars);
    let right = match bars().any(|bar| bar.significant.is_some()) {
        true if bars().any(|bar| bar.significant.is_some() && !has_bound(bar.value)) => 46.0,
        true => 30.0,
        false => 12.0,
    };
    let thick = if plot.groups.iter().any(|group| group.bars.len() > FEW) { THIN } else { THICK };
    let rows: f64 = plot.groups.iter().map(|group| line + group.bars.len() as f64 * thick + GAP).sum();
    let height = TOP + rows + BOTTOM;
    let x = Scale::linear(plot.domain.unwrap_or_else(|| bars_domain(&plot.groups)), (left, WIDTH - right));
    hatching(&mut svg, plot);
    for tick in x.ticks(5) {
        svg.line("grid", (x.at(tick), TOP), (x.at(tick), height - BOTTOM));
        svg.text("tick", (x.at(tick), height - BOTTOM + 15.0), Anchor::Middle, &number(tick * plot.factor));
    }
    svg.text("label", ((left + WIDTH - right) / 2.0, height - 8.0), Anchor::Middle, &plot.x_label);
    // Names on lines of their own may stand across the axis, which is below them then.
    let axis = |svg: &mut Svg| svg.line("axis", (x.at(0.0), TOP), (x.at(0.0), height - BOTTOM));
    if above {
        axis(&mut svg);
    }
    let mut y = TOP + GAP / 2.0;
    for group in &plot.groups {
        let middle = y + group.bars.len() as f64 * thick / 2.0;
        svg.open(&format!(r#"data-task="{}""#, super::escape(&group.label)));
        if above {
            svg.text("tick", (left, y + LINE - 4.0), Anchor::Start, &shorten(&group.label, 52));
            y += LINE;
        } else {
            svg.text("tick", (left - 6.0, middle + 4.0), Anchor::End, &task_label(&group.label));
        }
        for bar in &group.bars {
            draw(&mut svg, plot, group, bar, x, (y, thick));
            y += thick;
        }
        svg.close();
        y += GAP;
    }
    if !above {
        axis(&mut svg);
    }
    // The baseline of differences has no bar, and no key.
    let is_drawn = |series: usize| {
        plot.groups
            .iter()
            .flat_map(|group| &group.bars)
            .any(|bar| bar.series == series && bar.value.estimate.is_finite())
    };
    let labels = plot.series.iter().map(String::as_str).enumerate().filter(|(series, _)| is_drawn(*series));
    let labels: Vec<(usize, &str)> = labels.collect();
    let key = if plot.legend { legend(&mut svg, Mark::Bar, &labels, 10.0, height, WIDTH - 20.0) } else { 0.0 };
    let mut every = plot.groups.iter().flat_map(|group| &group.bars);
    let with = if every.any(|bar| has_width(bar.value)) { " with 95 % intervals" } else { "" };
    let description = format!("bars of {} for {} groups{with}", plot.x_label, plot.groups.len());
    Figure::new(&plot.name, &plot.title, description, (WIDTH, height + key), svg)
}

/// True of an interval with a length, known or not; one without it is no error bar.
fn has_width(value: Interval) -> bool {
    value.low < value.high
}

/// True of an interval of which something is known: without, there was no test.
fn has_bound(value: Interval) -> bool {
    value.low.is_finite() || value.high.is_finite()
}

fn draw(svg: &mut Svg, plot: &Bars, group: &BarGroup, bar: &Bar, x: Scale, (y, thick): (f64, f64)) {
    let Interval { estimate, low, high } = bar.value;
    if !estimate.is_finite() || low.is_nan() || high.is_nan() {
        return;
    }
    let (from, to) = (x.at(0.0).min(x.at(estimate)), x.at(0.0).max(x.at(estimate)));
    let shown = [estimate, low, high].map(|value| match value * plot.factor {
        value if value.is_finite() => format!("{value:.1}"),
        _ => "unknown".to_owned(),
    });
    let name = plot.series.get(bar.series).map_or("", String::as_str);
    let tested = match bar.significant {
        Some(false) if has_bound(bar.value) => ", not significant",
        Some(false) => ", not tested",
        _ => "",
    };
    let interval = if has_width(bar.value) { format!(" [{}, {}]", shown[1], shown[2]) } else { String::new() };
    let tip = format!("{}, {name}: {}{interval}{tested}", group.label, shown[0]);
    svg.open(&format!(r#"class="{}" data-series="{}""#, series_class(bar.series), bar.series));
    let size = ((to - from).max(0.8), thick - 2.0);
    if bar.significant == Some(false) {
        svg.filled(&format!("url(#{})", pattern(plot, bar.series)), (from, y + 1.0), size, &tip);
        svg.rect("outline", (from, y + 1.0), size, &tip);
        let class = if thick < THICK { "small" } else { "tick" };
        let (end, mark) = if has_bound(bar.value) { (high, "n.s.") } else { (estimate, "no test") };
        let end = if end.is_finite() { end } else { estimate };
        svg.text(class, (x.at(end.max(0.0)) + 4.0, y + thick - 3.0), Anchor::Start, mark);
    } else {
        svg.rect("bar", (from, y + 1.0), size, &tip);
    }
    let middle = y + thick / 2.0;
    // With one unknown bound the line runs to the edge; with two there is none.
    if has_width(bar.value) && has_bound(bar.value) {
        svg.line("whisker", (x.at(low), middle), (x.at(high), middle));
        for end in [low, high].into_iter().filter(|end| end.is_finite()) {
            svg.line("whisker", (x.at(end), middle - 2.5), (x.at(end), middle + 2.5));
        }
    }
    svg.close();
}

fn pattern(plot: &Bars, series: usize) -> String {
    format!("{}-hatch{series}", file_name(&plot.name))
}

/// Defines the hatching of each series that needs one; ids contain the figure's name, because a page has many figures.
fn hatching(svg: &mut Svg, plot: &Bars) {
    let every = plot.groups.iter().flat_map(|group| &group.bars);
    let mut hatched: Vec<usize> = every.filter(|bar| bar.significant == Some(false)).map(|bar| bar.series).collect();
    hatched.sort_unstable();
    hatched.dedup();
    for series in hatched {
        svg.body.push_str(&format!(
            r#"<defs><pattern id="{}" class="{}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line class="hatch" x1="0" y1="0" x2="0" y2="6"/></pattern></defs>"#,
            pattern(plot, series),
            series_class(series)
        ));
    }
}

/// Returns the domain of an axis for these bars: their intervals and 0.
pub fn bars_domain(groups: &[BarGroup]) -> (f64, f64) {
    let values = groups.iter().flat_map(|group| &group.bars).flat_map(|bar| [bar.value.low, bar.value.high]);
    let (low, high) = values.filter(|v| v.is_finite()).fold((0.0f64, 0.0f64), |(l, h), v| (l.min(v), h.max(v)));
    let margin = (high - low) * 0.04;
    (if low < 0.0 { low - margin } else { 0.0 }, if high > 0.0 { high + margin } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(bars: Vec<Bar>) -> Bars {
        Bars {
            name: "delta".into(),
            title: "Difference".into(),
            x_label: "difference, points".into(),
            series: vec!["one".into(), "two".into()],
            groups: vec![BarGroup { label: "add".into(), bars }],
            domain: None,
            factor: 100.0,
            legend: true,
        }
    }

    fn bar(series: usize, estimate: f64, half: f64, significant: Option<bool>) -> Bar {
        Bar { series, value: Interval { estimate, low: estimate - half, high: estimate + half }, significant }
    }

    #[test]
    fn only_what_is_not_significant_is_hatched() {
        let figure = bars(&plot(vec![bar(0, -0.2, 0.05, Some(true)), bar(1, 0.1, 0.2, Some(false))]));
        assert_eq!(figure.body.matches("n.s.").count(), 1);
        assert_eq!(figure.body.matches("<pattern").count(), 1);
        assert!(figure.body.contains("url(#delta-hatch1)") && figure.body.contains("id=\"delta-hatch1\""));
        assert!(figure.body.contains("add, two: 10.0 [-10.0, 30.0], not significant"));
        assert!(!bars(&plot(vec![bar(0, 0.5, 0.1, None)])).body.contains("n.s."));
    }

    #[test]
    fn negative_bars_end_at_zero_and_broken_values_are_left_out() {
        let figure = bars(&plot(vec![bar(0, -0.5, 0.0, None), bar(1, f64::NAN, 0.1, None)]));
        assert_eq!(figure.body.matches("class=\"bar\"").count(), 1);
        assert!(!figure.body.contains("NaN"));
        let open = Interval { estimate: 0.2, low: f64::NEG_INFINITY, high: f64::INFINITY };
        let figure = bars(&plot(vec![Bar { series: 0, value: open, significant: None }]));
        assert!(figure.body.contains("20.0 [unknown, unknown]") && !figure.body.contains("inf"), "{}", figure.body);
        assert_eq!(figure.body.matches("whisker").count(), 0);
        // An interval without a length is no error bar.
        let figure = bars(&plot(vec![bar(0, 1.0, 0.0, None)]));
        assert!(!figure.body.contains("whisker") && figure.body.contains("one: 100.0<"), "{}", figure.body);
        // No error, no line; and what belongs to a series goes with it when it is hidden.
        let figure = bars(&plot(vec![bar(0, 0.5, 0.1, None)]));
        let series = figure.body.split("data-series").nth(1).unwrap();
        assert!(series.find("whisker").unwrap() < series.find("</g>").unwrap(), "{series}");
        assert!(bars(&plot(vec![])).height > 0.0);
    }

    #[test]
    fn keys_are_those_of_the_bars() {
        let mut several = plot(vec![bar(1, 0.1, 0.05, None), bar(2, 0.2, 0.05, None)]);
        several.series.push("three".into());
        let body = bars(&several).body;
        // The baseline is not drawn, so that it has no key; keys are bars like their marks.
        assert!(!body.contains(">one<") && body.contains(">two<") && body.contains(">three<"), "{body}");
        assert!(!body.contains("class=\"curve\"") && body.matches("class=\"bar\"").count() == 4);
    }

    #[test]
    fn many_bars_are_thin() {
        let few = bars(&plot(vec![bar(0, 0.5, 0.1, None); 4])).height;
        let many = bars(&plot(vec![bar(0, 0.5, 0.6, Some(false)); 10]));
        assert!(many.height < few + 6.0 * THICK && many.body.contains("class=\"small\""));
    }

    #[test]
    fn long_names_are_whole() {
        let mut long = plot(vec![bar(0, 0.5, 0.1, None)]);
        let short = bars(&long).height;
        long.groups[0].label = "structured-code Meta-Llama-3.1-8B-Instruct".into();
        let figure = bars(&long);
        assert!(figure.body.contains(">structured-code Meta-Llama-3.1-8B-Instruct<") && figure.height > short);
    }
}
