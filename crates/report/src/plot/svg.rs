//! Elements of SVG drawings.
use earnest_tasks::suite::registry::task_label;

/// An SVG builder.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Svg {
    pub body: String,
}

/// Anchor of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// Opens a group; `attributes` are not escaped.
    pub fn open(&mut self, attributes: &str) {
        self.body += &format!("<g {attributes}>");
    }

    /// Closes a group.
    pub fn close(&mut self) {
        self.body.push_str("</g>");
    }

    pub fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(number);
        self.body += &format!(r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#);
    }

    /// Draws a rectangle with an optional tooltip.
    pub fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), tip: &str) {
        let [x, y, width, height] = [x, y, width.max(0.0), height.max(0.0)].map(number);
        let tip = tooltip(tip);
        self.body +=
            &format!(r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}">{tip}</rect>"#);
    }

    /// Draws a rectangle with a fill.
    pub fn filled(&mut self, fill: &str, (x, y): (f64, f64), (width, height): (f64, f64), tip: &str) {
        let [x, y, width, height] = [x, y, width.max(0.0), height.max(0.0)].map(number);
        let tip = tooltip(tip);
        self.body += &format!(r#"<rect fill="{fill}" x="{x}" y="{y}" width="{width}" height="{height}">{tip}</rect>"#);
    }

    pub fn circle(&mut self, class: &str, (x, y): (f64, f64), radius: f64, tip: &str) {
        let [x, y, radius] = [x, y, radius].map(number);
        let tip = tooltip(tip);
        self.body += &format!(r#"<circle class="{class}" cx="{x}" cy="{y}" r="{radius}">{tip}</circle>"#);
    }

    /// Draws a path through points; `closed` connects the last with the first.
    pub fn path(&mut self, class: &str, points: &[(f64, f64)], closed: bool) {
        if points.is_empty() {
            return;
        }
        self.body += &format!(r#"<path class="{class}" d=""#);
        for (index, &(x, y)) in points.iter().enumerate() {
            let command = if index == 0 { "M" } else { "L" };
            self.body += &format!("{command}{} {}", number(x), number(y));
        }
        self.body.push_str(if closed { "Z\"/>" } else { "\"/>" });
    }

    pub fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let [x, y] = [x, y].map(number);
        let text = escape(text);
        self.body += &format!(r#"<text class="{class}" x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>"#);
    }

    /// Draws a centred text, rotated to read upwards.
    pub fn upwards(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        let [x, y] = [x, y].map(number);
        let text = escape(text);
        self.body += &format!(
            r#"<text class="{class}" transform="translate({x} {y}) rotate(-90)" text-anchor="middle">{text}</text>"#
        );
    }
}

fn tooltip(tip: &str) -> String {
    if tip.is_empty() { String::new() } else { format!("<title>{}</title>", escape(tip)) }
}

/// Escapes a text for content and quoted attributes of HTML and SVG. Control characters that XML does not allow become the
/// replacement character.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => safe.push('\u{fffd}'),
            // They would turn the words around them, too.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// Formats a number with at most two decimals; 0 if it is not finite, because such a coordinate would make the drawing invalid.
pub fn number(value: f64) -> String {
    let rounded = if value.is_finite() { (value * 100.0).round() / 100.0 } else { 0.0 };
    // Adding zero turns -0 into 0.
    format!("{}", rounded + 0.0)
}

/// Estimates the width of a tick label (11 pixels), generously because fonts differ.
pub(super) fn text_width(text: &str) -> f64 {
    // Widths of DejaVu Sans, the widest common font.
    let width = |letter: char| match letter {
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 11.0,
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' => 4.0,
        'f' | 'r' | 't' | '-' | '(' | ')' | '[' | ']' | '/' => 4.8,
        'A'..='Z' => 7.8,
        _ => 7.0,
    };
    text.chars().map(width).sum()
}

/// Shortens a text to at most `most` characters.
pub(super) fn shorten(text: &str, most: usize) -> String {
    let text = task_label(text);
    let text = text.as_ref();
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Shortens a text to at most `width` pixels.
pub(super) fn fitted(text: &str, width: f64) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    for letter in text.chars() {
        short.push(letter);
        if text_width(&short) + text_width("…") > width {
            short.pop();
            break;
        }
    }
    short + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_labels_and_short() {
        assert_eq!(shorten("add_Integer_Integer_Integer", 11), "add_Integer");
        assert_eq!(shorten("multiply_Integer", 8), "multipl…");
    }

    #[test]
    fn texts_can_not_break_out() {
        assert_eq!(escape("<script>'&\"</script>\u{0}"), "&lt;script&gt;&#39;&amp;&quot;&lt;/script&gt;\u{fffd}");
        let mut svg = Svg::default();
        svg.text("t", (1.0, f64::NAN), Anchor::Middle, "</text>");
        assert_eq!(svg.body, r#"<text class="t" x="1" y="0" text-anchor="middle">&lt;/text&gt;</text>"#);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([1.0, -0.001, 2.345_6, f64::INFINITY].map(number), ["1", "0", "2.35", "0"]);
    }
}
