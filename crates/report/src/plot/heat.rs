//! Heat maps of tasks by lengths.
use super::address::address_part;
use super::figure::Figure;
use super::svg::{Anchor, Svg, number, shorten, text_width};

/// Scale of the cells' colours.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Shade {
    /// Fractions, larger ones lighter; shown in per cent.
    #[default]
    Share,
    /// Errors from 0 to this maximum, smaller ones lighter on a logarithmic scale.
    ErrorUpTo(f64),
    /// Numbers of digits from 0 to this maximum, larger ones lighter on a logarithmic scale; an infinite one is beyond what was asked.
    Digits(f64),
}

/// A heat map: panels with a title each, side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct Heat {
    pub name: String,
    pub title: String,
    pub x_label: String,
    pub shade: Shade,
    pub panels: Vec<HeatPanel>,
    /// Covariate of samples whose values the columns are; none where they are something else.
    pub covariate: Option<String>,
    /// Address of the samples behind cells, up to the parameters that choose a cell's; none without links, as in files.
    pub samples: Option<String>,
}

impl Heat {
    /// Address of the samples of a cell; limits are of all samples of a task.
    fn link(&self, task: Option<&String>, column: &str) -> Option<String> {
        let covariate =
            self.covariate.as_ref().map(|name| format!("covariate={}", address_part(&format!("{name}={column}"))));
        let task = task.map(|task| format!("task={}", address_part(task)));
        let parameters: Vec<String> = match self.shade {
            Shade::Digits(_) => vec![task?],
            Shade::Share | Shade::ErrorUpTo(_) => task.into_iter().chain([covariate?]).collect(),
        };
        Some(format!("{}{}", self.samples.as_ref()?, parameters.join("&")))
    }

    /// True if cells lead to their samples.
    pub fn has_links(&self) -> bool {
        self.samples.is_some() && (self.covariate.is_some() || matches!(self.shade, Shade::Digits(_)))
    }
}

/// A panel; its title may be empty.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatPanel {
    pub title: String,
    pub columns: Vec<String>,
    pub rows: Vec<HeatRow>,
}

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
/// Width of all columns of panels together, as far as their cells may grow.
const WIDE: f64 = 1200.0;
const WIDEST_CELL: f64 = 60.0;
const HIGH: f64 = 22.0;
/// Height of a panel's title and of the names of its columns.
const HEAD: f64 = 20.0;
const FOOT: f64 = 26.0;
/// Width of bold letters beside that of others.
const BOLD: f64 = 1.12;
/// Largest number of panels side by side.
const ABREAST: usize = 4;
/// Width of the colour scale; its last label extends a little beyond it.
const KEY: f64 = 160.0;
const KEY_HEIGHT: f64 = 46.0;

/// Draws the heat map with its colour scale. Colours run from dark blue to yellow (cividis), in the same order for colour-blind
/// readers. Wide cells show their number.
pub fn heat(plot: &Heat) -> Figure {
    let mut svg = Svg::default();
    let columns = heat_columns(plot);
    let (mut left, mut height) = (0.0, 0.0f64);
    for column in &columns {
        svg.open(&format!(r#"transform="translate({} 0)""#, number(left)));
        svg.body.push_str(&column.body);
        svg.close();
        left += column.width;
        height = height.max(column.height);
    }
    let key = heat_key(plot);
    svg.open(&format!(r#"transform="translate(0 {})""#, number(height)));
    svg.body.push_str(&key.body);
    svg.close();
    let size = (left.max(key.width), height + key.height);
    Figure::new(&plot.name, &plot.title, description(plot), size, svg)
}

/// Draws the panels as columns of equal width, without the colour scale: pages place them side by side or below each other.
pub fn heat_columns(plot: &Heat) -> Vec<Figure> {
    let rows = plot.panels.iter().flat_map(|panel| &panel.rows);
    let left = rows.map(|row| text_width(&shorten(&row.name, LABEL))).fold(20.0, f64::max) + 10.0;
    // Each panel goes where there is most room, so that short ones stand below each other.
    let mut columns: Vec<Vec<&HeatPanel>> = vec![Vec::new(); plot.panels.len().clamp(1, ABREAST)];
    for panel in &plot.panels {
        let used = |column: &Vec<&HeatPanel>| column.iter().map(|panel| panel.rows.len() + 2).sum::<usize>();
        if let Some(column) = columns.iter_mut().min_by_key(|column| used(column)) {
            column.push(panel);
        }
    }
    let most = plot.panels.iter().map(|panel| panel.columns.len()).max().unwrap_or(0).max(1) as f64;
    let cell = ((WIDE / columns.len() as f64 - left - 14.0) / most).clamp(6.0, WIDEST_CELL);
    let titles = plot.panels.iter().map(|panel| text_width(&panel.title) * BOLD);
    let width = titles.fold(left + most * cell, |width, title| width.max(left + title)) + 14.0;
    let drawn = columns.into_iter().map(|panels| {
        let mut svg = Svg::default();
        let height = panels.into_iter().fold(0.0, |top, one| panel(&mut svg, plot, one, (left, top), cell));
        Figure::new(&plot.name, &plot.title, description(plot), (width, height), svg)
    });
    drawn.collect()
}

/// Draws a panel below `top`; returns where it ends.
fn panel(svg: &mut Svg, plot: &Heat, panel: &HeatPanel, (left, top): (f64, f64), cell: f64) -> f64 {
    let top = if panel.title.is_empty() { top + 4.0 } else { top + HEAD };
    if !panel.title.is_empty() {
        svg.text("panel", (left, top - 6.0), Anchor::Start, &panel.title);
    }
    for (index, HeatRow { name, task, cells }) in panel.rows.iter().enumerate() {
        let y = top + index as f64 * HIGH;
        svg.open(&task.as_ref().map_or_else(String::new, |task| format!(r#"data-task="{}""#, super::escape(task))));
        svg.text("tick", (left - 6.0, y + 15.0), Anchor::End, &shorten(name, LABEL));
        for ((column, value), at) in panel.columns.iter().zip(cells).zip(0u32..) {
            let x = left + f64::from(at) * cell;
            let size = (cell - 0.6, HIGH - 1.0);
            match value.filter(|(value, _)| plot.shade.has(*value)) {
                Some((value, n)) => {
                    let fraction = plot.shade.lightness(value);
                    let said = match plot.shade {
                        Shade::Share => format!("{:.1} % of {n}", 100.0 * value),
                        Shade::ErrorUpTo(_) => format!("{value:.1}, n = {n}"),
                        Shade::Digits(_) => format!("{} digits, n = {n}", digits(value)),
                    };
                    let full = format!("{name} {}", panel.title);
                    let link = plot.link(task.as_ref(), column);
                    let column = match plot.shade {
                        Shade::Digits(_) => format!("limit {column}"),
                        Shade::Share | Shade::ErrorUpTo(_) => format!("{} {column}", plot.x_label),
                    };
                    let tip = format!("{}, {column}: {said}", full.trim_end());
                    if let Some(link) = &link {
                        svg.body += &format!(r#"<a href="{}">"#, super::escape(link));
                    }
                    svg.filled(&colour(fraction), (x, y), size, &tip);
                    if cell >= 24.0 {
                        let class = if fraction > 0.5 { "on-light" } else { "on-dark" };
                        let text = match plot.shade {
                            Shade::Share => format!("{:.0}", 100.0 * value),
                            Shade::ErrorUpTo(_) if value < 9.95 => format!("{value:.1}"),
                            Shade::ErrorUpTo(_) => format!("{value:.0}"),
                            Shade::Digits(_) => digits(value),
                        };
                        svg.text(class, (x + cell / 2.0, y + 15.0), Anchor::Middle, &text);
                    }
                    if link.is_some() {
                        svg.body += "</a>";
                    }
                }
                None => svg.rect("none", (x, y), size, ""),
            }
        }
        svg.close();
    }
    let bottom = top + panel.rows.len() as f64 * HIGH;
    let widest = panel.columns.iter().map(|column| text_width(column)).fold(1.0, f64::max);
    let every = ((widest + 6.0) / cell).ceil().max(1.0) as usize;
    for (at, column) in panel.columns.iter().enumerate().filter(|(at, _)| at % every == 0) {
        svg.text("tick", (left + (at as f64 + 0.5) * cell, bottom + 14.0), Anchor::Middle, column);
    }
    bottom + FOOT
}

fn description(plot: &Heat) -> String {
    let rows: usize = plot.panels.iter().map(|panel| panel.rows.len()).sum();
    format!("{rows} rows by {}", plot.x_label)
}

impl Shade {
    /// True for a value that has a place on the scale.
    fn has(self, value: f64) -> bool {
        value.is_finite() || (matches!(self, Shade::Digits(_)) && value == f64::INFINITY)
    }

    /// Returns the lightness from 0 (dark) to 1 (light).
    fn lightness(self, value: f64) -> f64 {
        match self {
            Shade::Share => value,
            Shade::Digits(most) if value < most => value.max(0.0).ln_1p() / most.ln_1p(),
            Shade::Digits(_) => 1.0,
            Shade::ErrorUpTo(most) if most > 0.0 => 1.0 - (value.max(0.0).ln_1p() / most.ln_1p()),
            Shade::ErrorUpTo(_) => 1.0,
        }
    }
}

/// A number of digits in a cell: below 1 is below the shortest number, infinity beyond the longest length that is asked.
fn digits(value: f64) -> String {
    match value {
        value if value < 1.0 => "<1".to_owned(),
        value if value.is_infinite() => "\u{221e}".to_owned(),
        value if value < 9.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// Draws the colour scale and says what the columns are.
pub fn heat_key(plot: &Heat) -> Figure {
    let mut svg = Svg::default();
    let (left, top) = (12.0, 6.0);
    for step in 0..20 {
        svg.filled(&colour(f64::from(step) / 19.0), (left + f64::from(step) * 8.0, top), (8.5, 10.0), "");
    }
    let labels = match plot.shade {
        Shade::Share => [(0.0, "0".to_owned()), (80.0, "50".to_owned()), (KEY, "100 %".to_owned())],
        Shade::ErrorUpTo(most) => [
            (0.0, format!("{most:.0}")),
            (80.0, format!("{:.1}", (most.ln_1p() / 2.0).exp_m1())),
            (KEY, "0".to_owned()),
        ],
        Shade::Digits(most) => [
            (0.0, "0".to_owned()),
            (80.0, format!("{:.0}", (most.ln_1p() / 2.0).exp_m1())),
            (KEY, format!("{most:.0} digits")),
        ],
    };
    for (index, label) in labels {
        svg.text("tick", (left + index, top + 24.0), Anchor::Middle, &label);
    }
    let said = format!("columns: {}", plot.x_label);
    svg.text("label", (left + KEY + 36.0, top + 10.0), Anchor::Start, &said);
    let width = left + KEY + 36.0 + text_width(&said) * 1.15;
    Figure::new(&plot.name, "Colours", said, (width, KEY_HEIGHT), svg)
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

    fn plot(columns: usize, rows: Vec<HeatRow>) -> Heat {
        let columns = (1..=columns).map(|n| n.to_string()).collect();
        Heat {
            name: "heat".into(),
            title: "Accuracy".into(),
            x_label: "length".into(),
            shade: Shade::Share,
            panels: vec![HeatPanel { title: String::new(), columns, rows }],
            covariate: None,
            samples: None,
        }
    }

    #[test]
    fn cells_have_colour_number_and_words() {
        let shares = plot(3, vec![row(vec![Some((1.0, 10)), Some((0.0, 10)), None])]);
        let figure = heat(&shares);
        assert!(figure.body.contains("add, length 1: 100.0 % of 10") && figure.body.contains("#fee838"));
        assert!(figure.body.contains("#00224e") && figure.body.contains("class=\"none\""));
        let mut errors = plot(3, vec![row(vec![Some((0.0, 10)), Some((40.0, 10)), Some((2.04, 3))])]);
        errors.shade = Shade::ErrorUpTo(40.0);
        let figure = heat(&errors);
        assert!(
            figure.body.contains("add, length 3: 2.0, n = 3") && figure.body.contains("add, length 2: 40.0, n = 10")
        );
        assert!(figure.body.contains("#fee838") && figure.body.contains("#00224e"));
        let figure = heat(&plot(100, vec![row(vec![Some((f64::NAN, 1)); 100])]));
        assert!(figure.width <= 1220.0 && !figure.body.contains("NaN"));
    }

    #[test]
    fn cells_lead_to_their_samples() {
        let mut shares =
            plot(2, vec![row(vec![Some((0.5, 10)), None]), HeatRow { task: None, ..row(vec![Some((0.5, 10)); 2]) }]);
        shares.covariate = Some("length".into());
        assert!(!heat(&shares).body.contains("<a "), "a file has no samples to lead to");
        shares.samples = Some("run/x&y/samples?".into());
        let figure = heat(&shares);
        assert!(
            figure.body.contains(r#"<a href="run/x&amp;y/samples?task=add&amp;covariate=length%3D1"><rect"#),
            "{}",
            figure.body
        );
        assert!(
            figure.body.contains(r#"<a href="run/x&amp;y/samples?covariate=length%3D2">"#),
            "all tasks: {}",
            figure.body
        );
        assert_eq!((figure.body.matches("<a ").count(), figure.body.matches("</a>").count()), (3, 3));
    }

    #[test]
    fn limits_are_coloured_by_digits() {
        let limits =
            vec![row(vec![Some((0.0, 12)), Some((4.56, 12)), Some((99.0, 12)), Some((f64::INFINITY, 12)), None])];
        let mut limits = plot(5, limits);
        limits.shade = Shade::Digits(99.0);
        let figure = heat(&limits);
        for part in [
            ">&lt;1</text>",
            ">4.6</text>",
            ">99</text>",
            ">\u{221e}</text>",
            "limit 2: 4.6 digits, n = 12",
            ">99 digits</text>",
        ] {
            assert!(figure.body.contains(part), "{part}: {}", figure.body);
        }
        // The longest length and what is beyond it are the lightest, and half of the digits on a logarithmic scale is the middle.
        assert_eq!(figure.body.matches("#fee838").count(), 3, "two cells and the end of the key");
        assert_eq!([9.0, 0.0].map(|value| Shade::Digits(99.0).lightness(value)), [0.5, 0.0]);
    }

    #[test]
    fn panels_stand_side_by_side_and_short_ones_below() {
        let mut panels = plot(4, Vec::new());
        let panel = |title: &str, rows: usize| HeatPanel {
            title: title.into(),
            columns: vec!["S".into(), "M".into()],
            rows: vec![row(vec![Some((0.5, 1)), None]); rows],
        };
        panels.panels = vec![panel("Integer", 20), panel("Float", 15), panel("A", 9), panel("B", 8), panel("", 1)];
        let columns = heat_columns(&panels);
        assert_eq!(columns.len(), 4);
        assert!(columns.iter().all(|column| column.width == columns[0].width), "panels line up");
        assert_eq!(columns[3].body.matches("data-task").count(), 9, "the last panel is where most room was");
        let whole = heat(&panels);
        assert!(whole.body.contains("add Integer, length S: 50.0 % of 1"));
        assert!(whole.width >= 4.0 * columns[0].width && whole.height > columns[0].height);
    }
}
