//! Finished drawings, for pages and files.
use super::svg::{Anchor, Svg, escape, fitted, number, text_width};

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

/// Scale beyond which pages do not enlarge a figure: its letters are then as large as those of a heading.
pub const LARGEST: f64 = 1.3;

/// CSS declarations of the colours on light backgrounds: Okabe and Ito's palette, darkened for contrast and continued. Series also
/// differ by dash pattern.
pub const LIGHT: &str = include_str!("light.css");
/// CSS declarations of the colours on dark backgrounds.
pub const DARK: &str = include_str!("dark.css");
/// CSS rules that use the colours.
pub const RULES: &str = include_str!("rules.css");

/// Number of distinct styles; further series reuse them.
pub const STYLES: usize = 12;

/// Height of the title of a file.
const TITLE: f64 = 28.0;

/// Returns the CSS class of a series.
pub(super) fn series_class(series: usize) -> String {
    format!("c{}", series % STYLES)
}

impl Figure {
    /// Creates a figure; the name is sanitised for files and ids.
    pub(super) fn new(name: &str, title: &str, description: String, (width, height): (f64, f64), svg: Svg) -> Self {
        Figure { name: file_name(name), title: title.to_owned(), description, width, height, body: svg.body }
    }

    /// True if parts of it are links.
    pub fn has_links(&self) -> bool {
        self.body.contains("<a ")
    }

    /// Returns the `<svg>` element for a page with [`RULES`].
    pub fn inline(&self) -> String {
        // The parts of an image are not read out, and links would be lost.
        let role = if self.has_links() { "group" } else { "img" };
        format!(
            r#"<svg viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="{role}" aria-label="{label}">{body}</svg>"#,
            w = number(self.width),
            h = number(self.height),
            label = escape(&format!("{}. {}", self.title, self.description)),
            body = self.body,
        )
    }

    /// Returns a standalone SVG file with the title, on white. Its colours are values, not variables, which many programs lack.
    pub fn standalone(&self) -> String {
        let mut title = Svg::default();
        let width = self.width.max(text_width(&self.title) * 1.4 + 16.0);
        title.text("title", (width / 2.0, 18.0), Anchor::Middle, &self.title);
        let [w, h, left] = [width, self.height + TITLE, (width - self.width) / 2.0].map(number);
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" role=\"img\" \
             font-family=\"{FONTS}\"><title>{}</title><desc>{}</desc><style>{}</style>\
             <rect class=\"ground\" width=\"{w}\" height=\"{h}\"/>{}<g transform=\"translate({left} {TITLE})\">{}</g></svg>\n",
            escape(&self.title),
            escape(&self.description),
            light_rules(),
            title.body,
            self.body,
        )
    }
}

/// Fonts of files: that of the PDF and PNG files first, then what most machines have.
const FONTS: &str = "Noto Sans, DejaVu Sans, Helvetica, Arial, sans-serif";

/// Returns the rules with the light colours in the places of their variables.
fn light_rules() -> String {
    let mut rules = RULES.to_owned();
    for declaration in LIGHT.split(';') {
        if let Some((name, colour)) = declaration.split_once(':') {
            rules = rules.replace(&format!("var({})", name.trim()), colour.trim());
        }
    }
    rules.replace(r#"system-ui, -apple-system, "Segoe UI", sans-serif"#, FONTS)
}

/// Longest name of a figure, in bytes: file systems have room for 255, with endings.
const LONGEST_NAME: usize = 180;

/// Replaces everything but letters, digits, `-`, `_` and `.` by `-`, and the end of a long name by a digest of all of it.
pub(super) fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let short: String = name.chars().take(LONGEST_NAME + 1).map(plain).collect();
    if short.len() <= LONGEST_NAME {
        return short;
    }
    const DIGITS: usize = 12;
    let digest = earnest_digest::hex(&earnest_digest::sha256(name.as_bytes()));
    format!("{}-{}", &short[..LONGEST_NAME - DIGITS - 1], &digest[..DIGITS])
}

/// Largest number of series whose areas can be told apart.
pub const AREAS: usize = 4;

/// Mark of a series, which its key repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// A line with points.
    Curve,
    /// A line alone.
    Line,
    Bar,
    /// An outline with its area.
    Area,
}

/// Draws the keys of several series (number, label) below a plot, in as many rows as needed; returns their height.
pub(super) fn legend(svg: &mut Svg, mark: Mark, series: &[(usize, &str)], left: f64, top: f64, width: f64) -> f64 {
    if series.len() < 2 {
        return 0.0;
    }
    let (mut x, mut y) = (left, top + 12.0);
    for &(series, label) in series {
        let label = fitted(label, width - 24.0);
        let needed = 24.0 + text_width(&label) + 14.0;
        if x > left && x + needed > left + width {
            x = left;
            y += 18.0;
        }
        svg.open(&format!(r#"class="{}" data-series="{series}""#, series_class(series)));
        match mark {
            Mark::Curve | Mark::Line => {
                svg.line("curve", (x, y - 4.0), (x + 18.0, y - 4.0));
                if mark == Mark::Curve {
                    svg.circle("dot", (x + 9.0, y - 4.0), 3.0, "");
                }
            }
            Mark::Bar => svg.rect("bar", (x, y - 9.0), (18.0, 10.0), ""),
            Mark::Area => {
                let corners = [(x, y + 1.0), (x, y - 9.0), (x + 18.0, y - 9.0), (x + 18.0, y + 1.0)];
                svg.path("band", &corners, true);
                svg.path("curve", &corners, false);
            }
        }
        svg.close();
        svg.text("tick", (x + 24.0, y), Anchor::Start, &label);
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
        let series = [(0, "one"), (1, "a rather long label"), (9, "three")];
        assert!(legend(&mut svg, Mark::Curve, &series, 0.0, 0.0, 120.0) > 40.0);
        let figure = Figure::new("a b/../c", "A < B", "two \"curves\"".into(), (100.0, 50.0), svg);
        assert_eq!(figure.name, "a-b-..-c");
        let text = figure.standalone();
        assert!(text.contains("A &lt; B") && text.ends_with("</svg>\n"));
        assert!(text.contains("svg .c9 { color: #5d8a00; }") && !text.contains("var("), "{text}");
        assert!(figure.inline().contains("aria-label=\"A &lt; B. two &quot;curves&quot;\""));
    }

    #[test]
    fn keys_repeat_their_marks() {
        let key = |mark| {
            let mut svg = Svg::default();
            legend(&mut svg, mark, &[(1, "b"), (2, "c")], 0.0, 0.0, 300.0);
            svg.body
        };
        assert!(key(Mark::Bar).contains("class=\"bar\"") && !key(Mark::Bar).contains("curve"));
        assert!(key(Mark::Area).contains("class=\"band\"") && !key(Mark::Area).contains("dot"));
        assert!(key(Mark::Curve).contains("class=\"dot\"") && key(Mark::Curve).contains("data-series=\"2\""));
        assert!(legend(&mut Svg::default(), Mark::Bar, &[(0, "alone")], 0.0, 0.0, 300.0) == 0.0);
    }

    #[test]
    fn names_fit_a_file_system() {
        assert_eq!(file_name("heat-a/b (x)"), "heat-a-b--x-");
        let longest = "x".repeat(LONGEST_NAME);
        assert_eq!(file_name(&longest), longest);
        let names = ["a", "b"].map(|end| file_name(&format!("{}{end}", "\u{e9}".repeat(1_000_000))));
        assert!(names.iter().all(|name| name.len() == LONGEST_NAME && name.is_ascii()), "{names:?}");
        assert_ne!(names[0], names[1]);
    }
}
