//! Plots as SVG, drawn by hand: every function takes data and gives a [`Figure`]. Colours are classes whose values a
//! stylesheet sets ([`LIGHT`], [`DARK`]), so that one drawing serves a dark page, a light page and paper.

mod bars;
mod curves;
mod figure;
mod forest;
mod heat;
mod histogram;
mod scale;
mod stacked;
mod svg;

pub use bars::{Bar, BarGroup, Bars, bars};
pub use curves::{Curve, CurvePlot, Measure, curves};
pub use figure::{DARK, Figure, LIGHT, RULES};
pub use forest::{Forest, ForestRow, forest};
pub use heat::{Heat, HeatCell, HeatRow, Shade, heat};
pub use histogram::{Distribution, Histogram, histogram};
pub use scale::Scale;
pub use stacked::{Stacked, stacked};
pub use svg::{compact, escape, number};
