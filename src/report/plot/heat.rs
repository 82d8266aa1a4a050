//! Heat maps: a task a row, a range or length a column.
use super::figure::Figure;
use super::svg::{Anchor, Svg, shorten, text_width};

/// Fractions in cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Heat {
    pub name: String,
    pub title: String,
    pub x_label: String,
    pub columns: Vec<String>,
    /// (name, a cell a column)
    pub rows: Vec<(String, Vec<HeatCell>)>,
}

/// Fraction and samples; none where there is no data.
pub type HeatCell = Option<(f64, usize)>;

const CELL: f64 = 30.0;
const HIGH: f64 = 22.0;
const TOP: f64 = 8.0;

/// Draws it. Colours run from dark blue to yellow (cividis), which readers with and without colour vision order alike.
/// Where cells are wide enough they hold their number.
pub fn heat(plot: &Heat) -> Figure {
    let mut svg = Svg::default();
    let widest = plot.rows.iter().map(|(name, _)| text_width(&shorten(name, 22))).fold(20.0, f64::max);
    let left = widest + 10.0;
    let cell = if plot.columns.len() > 24 { (900.0 / plot.columns.len() as f64).clamp(6.0, CELL) } else { CELL };
    let width = (left + plot.columns.len() as f64 * cell + 8.0).max(300.0);
    let bottom = TOP + plot.rows.len() as f64 * HIGH;
    for (place, (name, cells)) in plot.rows.iter().enumerate() {
        let y = TOP + place as f64 * HIGH;
        svg.open(&format!(r#"data-task="{}""#, super::escape(name)));
        svg.text("tick", (left - 6.0, y + 15.0), Anchor::End, &shorten(name, 22));
        for ((column, value), at) in plot.columns.iter().zip(cells).zip(0u32..) {
            let x = left + f64::from(at) * cell;
            let size = (cell - 0.6, HIGH - 1.0);
            match value.filter(|(fraction, _)| fraction.is_finite()) {
                Some((fraction, n)) => {
                    let tip = format!("{name}, {} {column}: {:.1} % of {n}", plot.x_label, 100.0 * fraction);
                    svg.filled(&colour(fraction), (x, y), size, &tip);
                    if cell >= 24.0 {
                        let class = if fraction > 0.5 { "on-light" } else { "on-dark" };
                        let text = format!("{:.0}", 100.0 * fraction);
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
    key(&mut svg, left, bottom + 42.0);
    let description = format!("accuracy of {} rows by {}", plot.rows.len(), plot.x_label);
    Figure::new(&plot.name, &plot.title, description, (width, bottom + 78.0), svg)
}

fn key(svg: &mut Svg, left: f64, top: f64) {
    for step in 0..20 {
        svg.filled(&colour(f64::from(step) / 19.0), (left + f64::from(step) * 8.0, top), (8.5, 10.0), "");
    }
    for (place, label) in [(0.0, "0"), (80.0, "50"), (160.0, "100 %")] {
        svg.text("tick", (left + place, top + 24.0), Anchor::Middle, label);
    }
}

/// Cividis at seven places (Nuñez, Anderton and Renslow, PLOS ONE 13, 2018), straight lines between them.
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

    #[test]
    fn cells_have_colour_number_and_words() {
        let plot = Heat {
            name: "heat".into(),
            title: "Accuracy".into(),
            x_label: "length".into(),
            columns: vec!["1".into(), "2".into(), "3".into()],
            rows: vec![("add".into(), vec![Some((1.0, 10)), Some((0.0, 10)), None])],
        };
        let figure = heat(&plot);
        assert!(figure.body.contains("add, length 1: 100.0 % of 10") && figure.body.contains("#fee838"));
        assert!(figure.body.contains("#00224e") && figure.body.contains("class=\"none\""));
        let many = Heat {
            columns: (1..=100).map(|n| n.to_string()).collect(),
            rows: vec![("add".into(), vec![Some((f64::NAN, 1)); 100])],
            ..plot
        };
        let figure = heat(&many);
        assert!(figure.width < 1000.0 && !figure.body.contains("NaN"));
    }
}
