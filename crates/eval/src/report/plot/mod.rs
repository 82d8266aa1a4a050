//! Plots as SVG: every function takes data and returns a [`Figure`]. Colours are classes of a stylesheet ([`LIGHT`], [`DARK`]), so
//! that one drawing fits dark pages, light pages and paper.

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
