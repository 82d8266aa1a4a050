//! Curves with interval bands, e.g. accuracy by length.
use super::Scale;
use super::figure::{AREAS, Figure, Mark, legend, series_class};
use super::svg::{Anchor, Svg, number};
use earnest_tasks::suite::Interval;

#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    pub label: String,
    /// Index of the colour, which a run keeps in every figure.
    pub series: usize,
    /// Points (x, number of samples, estimate with interval), ascending in x. Estimates are in the unit of the plot.
    pub points: Vec<(f64, usize, Interval)>,
}

/// Unit of the y axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Measure {
    /// Fractions, shown in per cent from 0 to 100.
    #[default]
    Share,
    /// Numbers from 0 to the maximum of the data.
    Amount,
}

/// Curves on common axes.
#[derive(Debug, Clone, PartialEq)]
pub struct CurvePlot {
    pub name: String,
    pub title: String,
    pub x_label: String,
    pub y_label: String,
    pub measure: Measure,
    pub curves: Vec<Curve>,
    /// Draws a legend if there are several curves.
    pub legend: bool,
}

const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 40.0;

/// Largest number of points that are marked, with a tooltip each.
const MARKED: usize = 200;

/// Draws the curves; many have no bands and no marks. Points that are not numbers are left out; unknown bounds extend to the edge of the plot.
pub fn curves(plot: &CurvePlot) -> Figure {
    let mut svg = Svg::default();
    let xs = plot.curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.0)).filter(|x| x.is_finite());
    let (low, high) = xs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    // A single length is centred instead of on the axis.
    let domain = if low == high { (low - 1.0, high + 1.0) } else { (low, high) };
    let x = Scale::linear(domain, (LEFT + 6.0, WIDTH - RIGHT));
    let y = Scale::linear((0.0, top(plot)), (HEIGHT - BOTTOM, TOP));
    axes(&mut svg, plot, x, y);
    let bands = plot.curves.len() <= AREAS;
    let marks = plot.curves.iter().map(|curve| curve.points.len()).sum::<usize>() <= MARKED;
    for curve in &plot.curves {
        let finite = |point: &&(f64, usize, Interval)| {
            point.0.is_finite() && point.2.estimate.is_finite() && !point.2.low.is_nan() && !point.2.high.is_nan()
        };
        let points: Vec<_> = curve.points.iter().filter(finite).collect();
        svg.open(&format!(r#"class="{}" data-series="{}""#, series_class(curve.series), curve.series));
        let upper = points.iter().map(|point| (x.at(point.0), y.at(point.2.high)));
        let lower = points.iter().rev().map(|point| (x.at(point.0), y.at(point.2.low)));
        if points.len() > 1 && bands {
            svg.path("band", &upper.chain(lower).collect::<Vec<_>>(), true);
        } else if let [point] = points[..]
            && point.2.low < point.2.high
        {
            svg.line("whisker", (x.at(point.0), y.at(point.2.low)), (x.at(point.0), y.at(point.2.high)));
        }
        let middle: Vec<_> = points.iter().map(|point| (x.at(point.0), y.at(point.2.estimate))).collect();
        svg.path("curve", &middle, false);
        let radius = if points.len() > 40 { 2.0 } else { 3.0 };
        for (point, at) in points.iter().zip(middle).filter(|_| marks || points.len() == 1) {
            svg.circle("dot", at, radius, &tip(plot, &curve.label, point));
        }
        svg.close();
    }
    let labels: Vec<(usize, &str)> = plot.curves.iter().map(|curve| (curve.series, curve.label.as_str())).collect();
    let mark = if marks { Mark::Curve } else { Mark::Line };
    let key = if plot.legend { legend(&mut svg, mark, &labels, 10.0, HEIGHT, WIDTH - 20.0) } else { 0.0 };
    Figure::new(&plot.name, &plot.title, description(plot), (WIDTH, HEIGHT + key), svg)
}

fn axes(svg: &mut Svg, plot: &CurvePlot, x: Scale, y: Scale) {
    for tick in y.ticks(5) {
        svg.line("grid", (LEFT, y.at(tick)), (WIDTH - RIGHT, y.at(tick)));
        svg.text(
            "tick",
            (LEFT - 5.0, y.at(tick) + 4.0),
            Anchor::End,
            &match plot.measure {
                Measure::Share => format!("{:.0}", 100.0 * tick),
                Measure::Amount => number(tick),
            },
        );
    }
    for tick in x.ticks(6).into_iter().filter(|tick| tick.fract() == 0.0) {
        svg.line("axis", (x.at(tick), HEIGHT - BOTTOM), (x.at(tick), HEIGHT - BOTTOM + 4.0));
        svg.text("tick", (x.at(tick), HEIGHT - BOTTOM + 16.0), Anchor::Middle, &number(tick));
    }
    svg.line("axis", (LEFT, HEIGHT - BOTTOM), (WIDTH - RIGHT, HEIGHT - BOTTOM));
    svg.text("label", ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 8.0), Anchor::Middle, &plot.x_label);
    svg.upwards("label", (12.0, (TOP + HEIGHT - BOTTOM) / 2.0), &plot.y_label);
}

/// Returns the maximum of the y axis: for amounts that of the estimates and of bounds near them, so that one wide interval does
/// not flatten the curve.
fn top(plot: &CurvePlot) -> f64 {
    if plot.measure == Measure::Share {
        return 1.0;
    }
    let points = || plot.curves.iter().flat_map(|curve| &curve.points);
    let most = points().map(|point| point.2.estimate).filter(|value| value.is_finite()).fold(0.0, f64::max);
    let bounds = points().map(|point| point.2.high).filter(|high| *high <= 1.5 * most);
    let top = bounds.fold(most, f64::max);
    if top > 0.0 { 1.05 * top } else { 1.0 }
}

/// Formats a value in the plot's unit; `unknown` for unknown bounds.
fn shown(measure: Measure, value: f64) -> String {
    match measure {
        _ if !value.is_finite() => "unknown".to_owned(),
        Measure::Share => format!("{:.1}", 100.0 * value),
        Measure::Amount => format!("{value:.1}"),
    }
}

fn tip(plot: &CurvePlot, label: &str, (x, n, value): &(f64, usize, Interval)) -> String {
    let [estimate, low, high] = [value.estimate, value.low, value.high].map(|value| shown(plot.measure, value));
    let unit = if plot.measure == Measure::Share { " %" } else { "" };
    format!("{label}, {} {}: {estimate}{unit} [{low}, {high}], n = {n}", plot.x_label, number(*x))
}

fn description(plot: &CurvePlot) -> String {
    let names: Vec<&str> = plot.curves.iter().map(|curve| curve.label.as_str()).collect();
    let bands = if plot.curves.len() <= AREAS { "; bands are 95 % intervals" } else { "" };
    format!("{} by {} for {}{bands}", plot.y_label, plot.x_label, names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: Vec<(f64, usize, Interval)>) -> CurvePlot {
        CurvePlot {
            name: "mul".into(),
            title: "mul".into(),
            x_label: "length".into(),
            y_label: "accuracy, %".into(),
            measure: Measure::Share,
            curves: vec![Curve { label: "a <model>".into(), series: 9, points }],
            legend: true,
        }
    }

    fn at(x: f64, estimate: f64) -> (f64, usize, Interval) {
        (x, 10, Interval { estimate, low: estimate - 0.1, high: estimate + 0.1 })
    }

    #[test]
    fn points_are_where_they_belong() {
        let figure = curves(&plot(vec![at(1.0, 0.9), at(50.0, 0.5), at(100.0, 0.1)]));
        // The axis runs from 180 (0 %) up to 10 (100 %), and from 52 to 330.
        assert!(figure.body.contains(r#"d="M52 27L189.6"#), "{}", figure.body);
        assert!(figure.body.contains("a &lt;model&gt;, length 50: 50.0 % [40.0, 60.0], n = 10"));
        assert!(figure.body.contains(r#"class="c9" data-series="9""#));
        assert_eq!(figure.body.matches("<g ").count(), figure.body.matches("</g>").count());
    }

    #[test]
    fn amounts_have_their_own_axis_and_unknown_bounds_reach_the_edge() {
        let wide = Interval { estimate: 8.0, low: f64::NEG_INFINITY, high: f64::INFINITY };
        let near = Interval { estimate: 2.0, low: 1.0, high: 4.0 };
        let figure = curves(&CurvePlot { measure: Measure::Amount, ..plot(vec![(1.0, 1, wide), (2.0, 5, near)]) });
        assert_eq!(figure.body.matches("<circle").count(), 2);
        assert!(figure.body.contains("length 1: 8.0 [unknown, unknown], n = 1"), "{}", figure.body);
        assert!(figure.body.contains("length 2: 2.0 [1.0, 4.0], n = 5"));
        assert!(!figure.body.contains("NaN") && !figure.body.contains("inf"));
    }

    #[test]
    fn many_curves_are_lines() {
        let one = plot((1..=40).map(|x| at(f64::from(x), 0.5)).collect());
        let curve = |series| Curve { label: format!("model {series}"), series, ..one.curves[0].clone() };
        let drawn = |count: usize| curves(&CurvePlot { curves: (0..count).map(curve).collect(), ..one.clone() });
        let (few, many) = (drawn(3), drawn(10));
        assert_eq!(few.body.matches("class=\"band\"").count(), 3);
        assert!(!many.body.contains("class=\"band\"") && !many.description.contains("bands"));
        // Neither the curves nor their keys have marks.
        assert!(few.body.contains("class=\"dot\"") && !many.body.contains("class=\"dot\""));
        assert_eq!(many.body.matches("class=\"curve\"").count(), 20);
    }

    #[test]
    fn little_or_broken_data_draws() {
        assert!(!curves(&plot(vec![])).body.contains("NaN"));
        let one = curves(&plot(vec![at(5.0, 0.5)]));
        assert!(one.body.contains("whisker") && !one.body.contains("class=\"band\""));
        let broken = curves(&plot(vec![at(1.0, f64::NAN), at(2.0, 0.5), at(f64::INFINITY, 0.5)]));
        assert_eq!(broken.body.matches("<circle").count(), 1);
        assert!(!broken.body.contains("NaN") && !broken.body.contains("inf\""));
    }
}
