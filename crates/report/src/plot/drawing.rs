//! Figures as files: SVG, PDF and PNG.
use super::Figure;

/// File format of a drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Svg,
    /// Vectors, with the letters as text.
    Pdf,
    /// Pixels, three times as many as units of the drawing.
    Png,
}

/// Error of a drawing that cannot be converted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the figure {name} cannot be drawn as {format}: {reason}")]
pub struct DrawingError {
    pub name: String,
    pub format: &'static str,
    pub reason: String,
}

impl Format {
    pub const ALL: [Format; 3] = [Format::Svg, Format::Pdf, Format::Png];

    /// Returns the ending of its files.
    pub fn ending(self) -> &'static str {
        match self {
            Format::Svg => "svg",
            Format::Pdf => "pdf",
            Format::Png => "png",
        }
    }

    /// Returns the format of files with this ending.
    pub fn of_ending(ending: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.ending().eq_ignore_ascii_case(ending))
    }

    /// The error of a format that this build cannot draw, with the next step.
    pub const NOT_BUILT: &str =
        "this program was built without the feature `figures`, which PDF and PNG need; SVG needs no feature";

    /// True if this build can draw it: PDF and PNG are its feature `figures`.
    pub fn is_built(self) -> bool {
        self == Format::Svg || cfg!(feature = "figures")
    }

    /// Returns the content of a file with this figure, on white.
    ///
    /// # Errors
    /// If the drawing is too large for pixels, or the format is not [built](Format::is_built).
    pub fn draw(self, figure: &Figure) -> Result<Vec<u8>, DrawingError> {
        let svg = figure.standalone();
        let failed = |reason: String| DrawingError { name: figure.name.clone(), format: self.ending(), reason };
        match self {
            Format::Svg => Ok(svg.into_bytes()),
            #[cfg(feature = "figures")]
            Format::Pdf => converted::pdf(&svg).map_err(failed),
            #[cfg(feature = "figures")]
            Format::Png => converted::png(&svg).map_err(failed),
            #[cfg(not(feature = "figures"))]
            Format::Pdf | Format::Png => Err(failed(Format::NOT_BUILT.to_owned())),
        }
    }
}

/// PDF and PNG of an SVG text.
#[cfg(feature = "figures")]
mod converted {
    use std::sync::{Arc, LazyLock};

    use resvg::tiny_skia::{Pixmap, Transform};
    use resvg::usvg::{Options, Tree, fontdb};
    use svg2pdf::{ConversionOptions, PageOptions};

    /// Pixels of a PNG file to a unit of the drawing: about 300 dots an inch where a figure of 340 units is a column wide.
    pub const SCALE: f32 = 3.0;
    /// Dots an inch of a PDF page: CSS has 96 units an inch, PDF 72.
    const DPI: f32 = 96.0;

    /// Letters of the drawings, so that they look alike on every machine: Latin, Greek and Cyrillic of Noto Sans (fonts/LICENSE).
    static LETTERS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
        let mut letters = fontdb::Database::new();
        letters.load_font_data(include_bytes!("fonts/NotoSans-Regular.ttf").to_vec());
        letters.load_font_data(include_bytes!("fonts/NotoSans-SemiBold.ttf").to_vec());
        letters.set_sans_serif_family("Noto Sans");
        letters.set_serif_family("Noto Sans");
        Arc::new(letters)
    });

    fn tree(svg: &str) -> Result<Tree, String> {
        let options = Options { fontdb: LETTERS.clone(), font_family: "Noto Sans".to_owned(), ..Options::default() };
        Tree::from_str(svg, &options).map_err(|error| error.to_string())
    }

    /// Vectors on a page, with a part of the font.
    pub fn pdf(svg: &str) -> Result<Vec<u8>, String> {
        let page = PageOptions { dpi: DPI };
        svg2pdf::to_pdf(&tree(svg)?, ConversionOptions::default(), page).map_err(|error| error.to_string())
    }

    /// Pixels, [`SCALE`] times as many as units.
    pub fn png(svg: &str) -> Result<Vec<u8>, String> {
        let tree = tree(svg)?;
        let too_large = || "it is too large".to_owned();
        let scaled = tree.size().to_int_size().scale_by(SCALE).ok_or_else(too_large)?;
        let mut pixels = Pixmap::new(scaled.width(), scaled.height()).ok_or_else(too_large)?;
        resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "figures")]
    use super::converted::SCALE;
    use super::*;
    use crate::plot::{Bar, BarGroup, Bars, bars};
    use earnest_tasks::suite::Interval;
    #[cfg(feature = "figures")]
    use resvg::tiny_skia::Pixmap;

    fn figure() -> Figure {
        let bar = |series, estimate: f64, significant| Bar {
            series,
            value: Interval { estimate, low: estimate - 0.1, high: estimate + 0.1 },
            significant,
        };
        bars(&Bars {
            name: "difference".into(),
            title: "Modèle Ω".into(),
            x_label: "difference, points".into(),
            series: vec!["first".into(), "second".into(), "third".into()],
            groups: vec![BarGroup { label: "add".into(), bars: vec![bar(1, 0.5, None), bar(2, 0.05, Some(false))] }],
            domain: None,
            factor: 100.0,
            legend: true,
        })
    }

    #[cfg(feature = "figures")]
    #[test]
    fn every_format_has_its_signature_and_size() {
        let figure = figure();
        assert!(Format::Svg.draw(&figure).unwrap().starts_with(b"<?xml"));
        let pdf = Format::Pdf.draw(&figure).unwrap();
        assert!(pdf.starts_with(b"%PDF-1.") && pdf.len() < 60_000, "{}", pdf.len());
        // Letters stay text, in a part of the font.
        let has = |name: &[u8]| pdf.windows(name.len()).any(|part| part == name);
        assert!(has(b"NotoSans") && has(b"/ToUnicode"));
        let png = Format::Png.draw(&figure).unwrap();
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
        let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
        assert_eq!(f64::from(number(16)), figure.width * f64::from(SCALE));
    }

    #[cfg(not(feature = "figures"))]
    #[test]
    fn a_format_that_is_not_built_names_its_feature() {
        assert!(Format::Svg.draw(&figure()).unwrap().starts_with(b"<?xml"));
        for format in [Format::Pdf, Format::Png] {
            assert!(!format.is_built());
            assert!(format.draw(&figure()).unwrap_err().to_string().contains("`figures`"));
        }
    }

    #[cfg(feature = "figures")]
    #[test]
    fn pixels_have_the_colours_of_the_series() {
        let png = Format::Png.draw(&figure()).unwrap();
        let pixels = Pixmap::decode_png(&png).unwrap();
        let count = |colour: [u8; 3]| {
            pixels.pixels().iter().filter(|pixel| [pixel.red(), pixel.green(), pixel.blue()] == colour).count()
        };
        // White, the bar, letters, and the lines of a hatched bar.
        assert!(count([255, 255, 255]) > 200_000 && count([0xd5, 0x5e, 0]) > 5_000);
        assert!(count([0x1b, 0x1f, 0x24]) > 1_000 && count([0, 0x7f, 0x5f]) > 300);
    }

    #[test]
    fn endings_name_formats() {
        assert_eq!(Format::of_ending("PDF"), Some(Format::Pdf));
        assert_eq!(Format::of_ending("jpg"), None);
    }
}
