//! Histograms, e.g. of latencies and completion lengths.
use super::Scale;
use super::figure::{AREAS, Figure, Mark, legend, series_class};
use super::svg::{Anchor, Svg, number};

/// Distributions on a common axis, as outlines of histograms.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    pub name: String,
    pub title: String,
    pub x_label: String,
    /// True for a logarithmic axis; values without a logarithm fall into the first bin.
    pub log: bool,
    pub series: Vec<Distribution>,
    pub legend: bool,
}

/// Values of one series.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    pub label: String,
    pub series: usize,
    pub values: Vec<f64>,
}

const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 210.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;
const BINS: usize = 36;

/// Draws the shares of each series by bin, with dashed lines at the medians; tooltips have median and 95th percentile.
pub fn histogram(plot: &Histogram) -> Figure {
    let mut svg = Svg::default();
    let every = plot.series.iter().flat_map(|one| &one.values).copied();
    let usable = every.filter(|value| value.is_finite() && (!plot.log || *value > 0.0));
    let (low, high) = usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    let place = (LEFT, WIDTH - RIGHT);
    let x = if plot.log { Scale::log((low, high * 1.001), place) } else { Scale::linear((low.min(0.0), high), place) };
    let shares: Vec<Vec<f64>> = plot.series.iter().map(|one| shares(&one.values, x)).collect();
    let most = shares.iter().flatten().copied().fold(0.0, f64::max);
    let y = Scale::linear((0.0, most * 1.05), (HEIGHT - BOTTOM, TOP));
    for tick in y.ticks(4) {
        svg.line("grid", (LEFT, y.at(tick)), (WIDTH - RIGHT, y.at(tick)));
        svg.text("tick", (LEFT - 5.0, y.at(tick) + 4.0), Anchor::End, &number(100.0 * tick));
    }
    for tick in x.ticks(5) {
        svg.line("axis", (x.at(tick), HEIGHT - BOTTOM), (x.at(tick), HEIGHT - BOTTOM + 4.0));
        svg.text("tick", (x.at(tick), HEIGHT - BOTTOM + 16.0), Anchor::Middle, &short(tick));
    }
    svg.line("axis", (LEFT, HEIGHT - BOTTOM), (WIDTH - RIGHT, HEIGHT - BOTTOM));
    for (one, shares) in plot.series.iter().zip(&shares) {
        draw(&mut svg, plot, one, shares, x, y);
    }
    svg.text("label", ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 8.0), Anchor::Middle, &plot.x_label);
    svg.upwards("label", (12.0, (TOP + HEIGHT - BOTTOM) / 2.0), "share, %");
    // A series without values is not drawn.
    let drawn = plot.series.iter().filter(|one| one.values.iter().any(|value| value.is_finite()));
    let labels: Vec<(usize, &str)> = drawn.map(|one| (one.series, one.label.as_str())).collect();
    let mark = if plot.series.len() <= AREAS { Mark::Area } else { Mark::Line };
    let key = if plot.legend { legend(&mut svg, mark, &labels, 10.0, HEIGHT, WIDTH - 20.0) } else { 0.0 };
    let words: Vec<String> = plot.series.iter().filter_map(in_words).collect();
    Figure::new(&plot.name, &plot.title, words.join("; "), (WIDTH, HEIGHT + key), svg)
}

fn draw(svg: &mut Svg, plot: &Histogram, one: &Distribution, shares: &[f64], x: Scale, y: Scale) {
    let Some(words) = in_words(one) else { return };
    svg.open(&format!(r#"class="{}" data-series="{}""#, series_class(one.series), one.series));
    let edge = |bin: usize| LEFT + (WIDTH - RIGHT - LEFT) * bin as f64 / BINS as f64;
    let steps =
        shares.iter().enumerate().flat_map(|(bin, &share)| [(edge(bin), y.at(share)), (edge(bin + 1), y.at(share))]);
    let base = HEIGHT - BOTTOM;
    let outline: Vec<_> = [(LEFT, base)].into_iter().chain(steps).chain([(WIDTH - RIGHT, base)]).collect();
    if plot.series.len() <= AREAS {
        svg.path("band", &outline, true);
    }
    svg.path("curve", &outline, false);
    if let Some(median) = quantile(&one.values, 0.5) {
        svg.line("mark", (x.at(median), TOP), (x.at(median), base));
        svg.circle("dot", (x.at(median), TOP), 3.5, &format!("{words} ({})", plot.x_label));
    }
    svg.close();
}

/// Describes a distribution: `label: median 1.2, 95 % below 3.4, n = 10`; none without values.
fn in_words(one: &Distribution) -> Option<String> {
    let (median, high) = (quantile(&one.values, 0.5)?, quantile(&one.values, 0.95)?);
    let n = one.values.iter().filter(|value| value.is_finite()).count();
    Some(format!("{}: median {}, 95 % below {}, n = {n}", one.label, short(median), short(high)))
}

/// Returns the shares by bin, with bins of equal width on the axis.
fn shares(values: &[f64], x: Scale) -> Vec<f64> {
    let mut counts = vec![0usize; BINS];
    let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    for &value in &finite {
        let part = (x.at(value) - LEFT) / (WIDTH - RIGHT - LEFT);
        let bin = ((part * BINS as f64) as usize).min(BINS - 1);
        counts[bin] += 1;
    }
    counts.into_iter().map(|count| count as f64 / finite.len().max(1) as f64).collect()
}

/// Returns the quantile of the finite values, as one of them.
pub(super) fn quantile(values: &[f64], part: f64) -> Option<f64> {
    let mut finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    finite.sort_unstable_by(f64::total_cmp);
    let rank = (part * finite.len() as f64).ceil() as usize;
    finite.get(rank.saturating_sub(1)).copied()
}

fn short(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.01 {
        // Times and shares down to a thousandth and below keep a digit.
        let digits = (1.0 - value.abs().log10().floor()).clamp(0.0, 12.0) as usize;
        format!("{value:.digits$}").trim_end_matches('0').to_owned()
    } else {
        number(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(log: bool, values: Vec<f64>) -> Figure {
        histogram(&Histogram {
            name: "latency".into(),
            title: "Latency".into(),
            x_label: "seconds".into(),
            log,
            series: vec![Distribution { label: "run".into(), series: 0, values }],
            legend: true,
        })
    }

    #[test]
    fn quantiles_are_values_that_occur() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!((quantile(&values, 0.5), quantile(&values, 0.95)), (Some(50.0), Some(95.0)));
        assert_eq!((quantile(&[3.0], 0.5), quantile(&[f64::NAN], 0.5), quantile(&[], 0.5)), (Some(3.0), None, None));
    }

    #[test]
    fn every_value_is_counted_once() {
        let x = Scale::log((0.1, 10.0), (LEFT, WIDTH - RIGHT));
        let shares = shares(&[0.0, 0.1, 1.0, 10.0, 99.0, f64::NAN], x);
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert_eq!((shares[0], shares[BINS - 1]), (0.4, 0.4));
    }

    #[test]
    fn little_or_broken_data_draws() {
        assert!(plot(true, vec![0.5, 1.0, 2.0, 0.0]).description.contains("median 0.5, 95 % below 2, n = 4"));
        for values in [vec![], vec![0.0], vec![f64::NAN, f64::INFINITY], vec![7.0; 3]] {
            for log in [false, true] {
                let figure = plot(log, values.clone());
                assert!(!figure.body.contains("NaN") && !figure.body.contains("inf"), "{values:?}");
            }
        }
        assert_eq!(short(0.001_23), "0.0012");
    }
}
