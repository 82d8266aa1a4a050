//! Plots as SVG: every function takes data and returns a [`Figure`]. Colours are classes of a stylesheet ([`LIGHT`], [`DARK`]), so
//! that one drawing fits dark pages, light pages and paper.

mod address;
mod bars;
mod curves;
mod drawing;
mod figure;
mod forest;
mod heat;
mod histogram;
mod limits;
mod scale;
mod stacked;
mod svg;

pub use address::{address_part, row_query};
pub use bars::{Bar, BarGroup, Bars, bars, bars_domain};
pub use curves::{Curve, CurvePlot, Measure, curves};
pub use drawing::{DrawingError, Format};
pub use figure::{AREAS, DARK, Figure, LARGEST, LIGHT, RULES, STYLES};
pub use forest::{Forest, ForestRow, forest};
pub use heat::{Heat, HeatCell, HeatPanel, HeatRow, Shade, heat, heat_columns, heat_key};
pub use histogram::{Distribution, Histogram, histogram};
pub use limits::{LimitBar, LimitPanel, LimitRow, limits};
pub use scale::Scale;
pub use stacked::{Stacked, stacked};
pub(crate) use svg::escape;
pub use svg::number;
