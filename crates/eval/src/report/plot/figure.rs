//! Finished drawings, for pages and files.
use super::svg::{Anchor, Svg, escape, number, text_width};

/// A drawing with title and description.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Valid file name and id.
    pub name: String,
    /// Title of one line.
    pub title: String,
    /// Description for screen readers.
    pub description: String,
    pub width: f64,
    pub height: f64,
    pub(super) body: String,
}

/// CSS declarations of the colours on light backgrounds: Okabe and Ito's palette, darkened for contrast. Series also differ by
/// dash pattern.
pub const LIGHT: &str = include_str!("light.css");
/// CSS declarations of the colours on dark backgrounds.
pub const DARK: &str = include_str!("dark.css");
/// CSS rules that use the colours.
pub const RULES: &str = include_str!("rules.css");

/// Number of distinct styles; further series reuse them.
pub(super) const STYLES: usize = 8;

/// Returns the CSS class of a series.
pub(super) fn series_class(series: usize) -> String {
    format!("c{}", series % STYLES)
}

impl Figure {
    /// Creates a figure; the name is sanitised for files and ids.
    pub(super) fn new(name: &str, title: &str, description: String, (width, height): (f64, f64), svg: Svg) -> Self {
        Figure { name: file_name(name), title: title.to_owned(), description, width, height, body: svg.body }
    }

    /// Returns the `<svg>` element for a page with [`RULES`].
    pub fn inline(&self) -> String {
        format!(
            r#"<svg viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" aria-label="{label}">{body}</svg>"#,
            w = number(self.width),
            h = number(self.height),
            label = escape(&format!("{}. {}", self.title, self.description)),
            body = self.body,
        )
    }

    /// Returns a standalone SVG file with the title and both colour schemes.
    pub fn standalone(&self) -> String {
        let mut title = Svg::default();
        let width = self.width.max(text_width(&self.title) * 1.15);
        title.text("title", (width / 2.0, 18.0), Anchor::Middle, &self.title);
        let [w, h] = [width, self.height + 28.0].map(number);
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" role=\"img\" \
             font-family=\"system-ui, sans-serif\"><title>{}</title><desc>{}</desc><style>svg {{ {LIGHT} }} @media (prefers-color-scheme: dark) {{ svg {{ {DARK} }} }} {RULES}</style>\
             <rect class=\"ground\" width=\"{w}\" height=\"{h}\"/>{}<g transform=\"translate(0 28)\">{}</g></svg>\n",
            escape(&self.title),
            escape(&self.description),
            title.body,
            self.body,
        )
    }
}

/// Replaces everything but letters, digits, `-`, `_` and `.` by `-`.
pub(super) fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    name.chars().map(plain).collect()
}

/// Draws the legend of several series below a plot, in as many rows as needed; returns its height.
pub(super) fn legend(svg: &mut Svg, labels: &[&str], left: f64, top: f64, width: f64) -> f64 {
    if labels.len() < 2 {
        return 0.0;
    }
    let (mut x, mut y) = (left, top + 12.0);
    for (series, label) in labels.iter().enumerate() {
        let needed = 24.0 + text_width(label) + 14.0;
        if x > left && x + needed > left + width {
            x = left;
            y += 18.0;
        }
        svg.open(&format!(r#"class="{}" data-series="{series}""#, series_class(series)));
        svg.line("curve", (x, y - 4.0), (x + 18.0, y - 4.0));
        svg.circle("dot", (x + 9.0, y - 4.0), 3.0, "");
        svg.close();
        svg.text("tick", (x + 24.0, y), Anchor::Start, label);
        x += needed;
    }
    y - top + 6.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_hold_style_title_and_ground() {
        let mut svg = Svg::default();
        assert!(legend(&mut svg, &["one", "a rather long label", "three"], 0.0, 0.0, 120.0) > 40.0);
        let figure = Figure::new("a b/../c", "A < B", "two \"curves\"".into(), (100.0, 50.0), svg);
        assert_eq!(figure.name, "a-b-..-c");
        let text = figure.standalone();
        assert!(text.contains("A &lt; B") && text.contains("prefers-color-scheme") && text.ends_with("</svg>\n"));
        assert!(figure.inline().contains("aria-label=\"A &lt; B. two &quot;curves&quot;\""));
    }
}
