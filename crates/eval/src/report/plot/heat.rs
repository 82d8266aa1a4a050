//! Heat maps of tasks by lengths.
use super::figure::Figure;
use super::svg::{Anchor, Svg, shorten, text_width};

/// Scale of the cells' colours.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Shade {
    /// Fractions, larger ones lighter; shown in per cent.
    #[default]
    Share,
    /// Errors from 0 to this maximum, smaller ones lighter on a logarithmic scale.
    ErrorUpTo(f64),
}

/// A heat map.
#[derive(Debug, Clone, PartialEq)]
pub struct Heat {
    pub name: String,
    pub title: String,
    pub x_label: String,
    pub shade: Shade,
    pub columns: Vec<String>,
    pub rows: Vec<HeatRow>,
}

/// A row.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatRow {
    pub name: String,
    /// Task for the page's selection of tasks; rows without one are always shown.
    pub task: Option<String>,
    /// One cell per column.
    pub cells: Vec<HeatCell>,
}

/// Value and number of samples; none without data.
pub type HeatCell = Option<(f64, usize)>;

/// Longest row name in characters.
const LABEL: usize = 26;
const CELL: f64 = 30.0;
const HIGH: f64 = 22.0;
/// Width of the colour scale; its last label extends a little beyond it.
const KEY: f64 = 160.0;
const TOP: f64 = 8.0;

/// Draws the heat map. Colours run from dark blue to yellow (cividis), in the same order for colour-blind readers. Wide cells show
/// their number.
pub fn heat(plot: &Heat) -> Figure {
    let mut svg = Svg::default();
    let widest = plot.rows.iter().map(|row| text_width(&shorten(&row.name, LABEL))).fold(20.0, f64::max);
    let left = widest + 10.0;
    let cell = if plot.columns.len() > 24 { (900.0 / plot.columns.len() as f64).clamp(6.0, CELL) } else { CELL };
    let width = (left + plot.columns.len() as f64 * cell + 8.0).max(left + KEY + 24.0);
    let bottom = TOP + plot.rows.len() as f64 * HIGH;
    for (place, HeatRow { name, task, cells }) in plot.rows.iter().enumerate() {
        let y = TOP + place as f64 * HIGH;
        svg.open(&task.as_ref().map_or_else(String::new, |task| format!(r#"data-task="{}""#, super::escape(task))));
        svg.text("tick", (left - 6.0, y + 15.0), Anchor::End, &shorten(name, LABEL));
        for ((column, value), at) in plot.columns.iter().zip(cells).zip(0u32..) {
            let x = left + f64::from(at) * cell;
            let size = (cell - 0.6, HIGH - 1.0);
            match value.filter(|(value, _)| value.is_finite()) {
                Some((value, n)) => {
                    let fraction = plot.shade.lightness(value);
                    let said = match plot.shade {
                        Shade::Share => format!("{:.1} % of {n}", 100.0 * value),
                        Shade::ErrorUpTo(_) => format!("{value:.1}, n = {n}"),
                    };
                    let tip = format!("{name}, {} {column}: {said}", plot.x_label);
                    svg.filled(&colour(fraction), (x, y), size, &tip);
                    if cell >= 24.0 {
                        let class = if fraction > 0.5 { "on-light" } else { "on-dark" };
                        let text = match plot.shade {
                            Shade::Share => format!("{:.0}", 100.0 * value),
                            Shade::ErrorUpTo(_) if value < 9.95 => format!("{value:.1}"),
                            Shade::ErrorUpTo(_) => format!("{value:.0}"),
                        };
                        svg.text(class, (x + cell / 2.0, y + 15.0), Anchor::Middle, &text);
                    }
                }
                None => svg.rect("none", (x, y), size, ""),
            }
        }
        svg.close();
    }
    let widest = plot.columns.iter().map(|column| text_width(column)).fold(1.0, f64::max);
    let every = ((widest + 6.0) / cell).ceil().max(1.0) as usize;
    for (at, column) in plot.columns.iter().enumerate().filter(|(at, _)| at % every == 0) {
        svg.text("tick", (left + (at as f64 + 0.5) * cell, bottom + 14.0), Anchor::Middle, column);
    }
    svg.text("label", (left, bottom + 32.0), Anchor::Start, &plot.x_label);
    key(&mut svg, plot.shade, left, bottom + 42.0);
    let description = format!("{} rows by {}", plot.rows.len(), plot.x_label);
    Figure::new(&plot.name, &plot.title, description, (width, bottom + 78.0), svg)
}

impl Shade {
    /// Returns the lightness from 0 (dark) to 1 (light).
    fn lightness(self, value: f64) -> f64 {
        match self {
            Shade::Share => value,
            Shade::ErrorUpTo(most) if most > 0.0 => 1.0 - (value.max(0.0).ln_1p() / most.ln_1p()),
            Shade::ErrorUpTo(_) => 1.0,
        }
    }
}

fn key(svg: &mut Svg, shade: Shade, left: f64, top: f64) {
    for step in 0..20 {
        svg.filled(&colour(f64::from(step) / 19.0), (left + f64::from(step) * 8.0, top), (8.5, 10.0), "");
    }
    let labels = match shade {
        Shade::Share => [(0.0, "0".to_owned()), (80.0, "50".to_owned()), (160.0, "100 %".to_owned())],
        Shade::ErrorUpTo(most) => [
            (0.0, format!("{most:.0}")),
            (80.0, format!("{:.1}", (most.ln_1p() / 2.0).exp_m1())),
            (160.0, "0".to_owned()),
        ],
    };
    for (place, label) in labels {
        svg.text("tick", (left + place, top + 24.0), Anchor::Middle, &label);
    }
}

/// Returns the colour of cividis, interpolated between seven stops (Nuñez, Anderton and Renslow, PLOS ONE 13, 2018).
fn colour(fraction: f64) -> String {
    const STOPS: [[f64; 3]; 7] = [
        [0.0, 34.0, 78.0],
        [50.0, 59.0, 111.0],
        [87.0, 93.0, 109.0],
        [124.0, 123.0, 120.0],
        [165.0, 156.0, 116.0],
        [211.0, 193.0, 100.0],
        [254.0, 232.0, 56.0],
    ];
    let place = fraction.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let index = (place as usize).min(STOPS.len() - 2);
    let part = place - index as f64;
    let mix = |channel: usize| {
        let (low, high) = (STOPS[index][channel], STOPS[index + 1][channel]);
        (low + part * (high - low)).round() as u8
    };
    format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: Vec<HeatCell>) -> HeatRow {
        HeatRow { name: "add".into(), task: Some("add".into()), cells }
    }

    #[test]
    fn cells_have_colour_number_and_words() {
        let plot = Heat {
            name: "heat".into(),
            title: "Accuracy".into(),
            x_label: "length".into(),
            shade: Shade::Share,
            columns: vec!["1".into(), "2".into(), "3".into()],
            rows: vec![row(vec![Some((1.0, 10)), Some((0.0, 10)), None])],
        };
        let figure = heat(&plot);
        assert!(figure.body.contains("add, length 1: 100.0 % of 10") && figure.body.contains("#fee838"));
        assert!(figure.body.contains("#00224e") && figure.body.contains("class=\"none\""));
        let errors = Heat {
            shade: Shade::ErrorUpTo(40.0),
            rows: vec![row(vec![Some((0.0, 10)), Some((40.0, 10)), Some((2.04, 3))])],
            ..plot.clone()
        };
        let figure = heat(&errors);
        assert!(
            figure.body.contains("add, length 3: 2.0, n = 3") && figure.body.contains("add, length 2: 40.0, n = 10")
        );
        assert!(figure.body.contains("#fee838") && figure.body.contains("#00224e"));
        let many = Heat {
            columns: (1..=100).map(|n| n.to_string()).collect(),
            rows: vec![row(vec![Some((f64::NAN, 1)); 100])],
            ..plot
        };
        let figure = heat(&many);
        assert!(figure.width < 1000.0 && !figure.body.contains("NaN"));
    }
}
