//! Holm-Bonferroni against the published tables of the GSM-Symbolic re-evaluation: Tables 2, 14 and 15.
//!
//! Published values are rounded to three decimals, or `< 0.001` (written -1 here), so every raw value is an interval; Holm's
//! adjustment is monotone in each raw value, so every adjusted value is one too, and the published one must lie in it.
use earnest::stats::holm;

/// (raw, adjusted)
type Cell = (f64, f64);

/// GLMM 1, GSM prompt, the 20 models in the table's order.
#[rustfmt::skip]
const TABLE_2: [Cell; 20] = [
    (0.009, 0.153), (0.252, 1.0), (0.933, 1.0), (0.012, 0.188), (-1.0, -1.0), (0.956, 1.0), (0.012, 0.188), (0.21, 1.0), (0.286, 1.0), (-1.0, -1.0), (0.66, 1.0), (0.241, 1.0), (0.007, 0.126), (0.149, 1.0), (0.012, 0.188), (0.472, 1.0), (0.067, 0.668), (0.031, 0.342), (0.021, 0.275), (0.027, 0.327),
];

/// Large-number effect of GLMM 2: a row a model; GSM, simple and structured NL, simple and structured code.
#[rustfmt::skip]
const TABLE_14: [[Cell; 5]; 10] = [
    [(-1.0, -1.0), (-1.0, -1.0), (-1.0, -1.0), (0.277, 0.554), (0.972, 0.972)],
    [(-1.0, -1.0), (-1.0, 0.002), (-1.0, -1.0), (0.714, 0.714), (0.171, 0.343)],
    [(0.04, 0.121), (0.011, 0.046), (0.003, 0.013), (0.747, 1.0), (0.716, 1.0)],
    [(0.57, 0.816), (-1.0, 0.002), (0.247, 0.74), (0.083, 0.333), (0.408, 0.816)],
    [(0.103, 0.31), (0.002, 0.01), (0.004, 0.016), (0.176, 0.352), (0.527, 0.527)],
    [(0.057, 0.229), (0.159, 0.478), (-1.0, -1.0), (0.866, 0.866), (0.373, 0.746)],
    [(0.042, 0.169), (0.13, 0.169), (-1.0, -1.0), (0.055, 0.169), (0.082, 0.169)],
    [(0.202, 0.606), (0.02, 0.099), (0.538, 1.0), (0.121, 0.484), (0.627, 1.0)],
    [(-1.0, -1.0), (-1.0, -1.0), (-1.0, 0.003), (0.655, 1.0), (0.625, 1.0)],
    [(-1.0, -1.0), (0.015, 0.046), (0.203, 0.379), (0.19, 0.379), (-1.0, -1.0)],
];

/// Variant effect of GLMM 2: a row a model; GSM, simple and structured NL, simple and structured code.
#[rustfmt::skip]
const TABLE_15: [[Cell; 5]; 10] = [
    [(-1.0, -1.0), (0.211, 0.423), (-1.0, 0.003), (0.125, 0.376), (0.433, 0.433)],
    [(0.22, 0.66), (0.346, 0.693), (-1.0, -1.0), (0.085, 0.34), (0.48, 0.693)],
    [(0.038, 0.153), (0.002, 0.008), (0.091, 0.273), (0.91, 0.91), (0.389, 0.777)],
    [(0.009, 0.047), (0.369, 1.0), (0.958, 1.0), (0.228, 0.911), (0.99, 1.0)],
    [(0.051, 0.254), (0.629, 1.0), (0.472, 1.0), (0.103, 0.413), (0.619, 1.0)],
    [(0.131, 0.596), (0.512, 1.0), (0.372, 1.0), (0.119, 0.596), (0.536, 1.0)],
    [(0.06, 0.238), (0.525, 1.0), (-1.0, -1.0), (0.127, 0.382), (0.767, 1.0)],
    [(0.011, 0.056), (0.254, 0.698), (0.233, 0.698), (0.071, 0.285), (0.699, 0.699)],
    [(0.151, 0.606), (-1.0, -1.0), (0.434, 0.949), (0.576, 0.949), (0.316, 0.949)],
    [(-1.0, -1.0), (0.986, 1.0), (0.274, 0.823), (0.611, 1.0), (-1.0, -1.0)],
];

/// The values that print as this one.
fn interval(printed: f64) -> (f64, f64) {
    if printed < 0.0 { (0.0, 0.001) } else { ((printed - 0.0005).max(0.0), (printed + 0.0005).min(1.0)) }
}

/// True if the published adjusted values are Holm's of the published raw ones.
fn fits(cells: &[Cell]) -> bool {
    let ends: Vec<(f64, f64)> = cells.iter().map(|cell| interval(cell.0)).collect();
    let low = holm(&ends.iter().map(|end| end.0).collect::<Vec<_>>()).unwrap();
    let high = holm(&ends.iter().map(|end| end.1).collect::<Vec<_>>()).unwrap();
    cells.iter().zip(low.iter().zip(&high)).all(|(cell, (low, high))| {
        let published = interval(cell.1);
        published.0 <= high + 1e-12 && *low <= published.1 + 1e-12
    })
}

#[test]
fn table_2_is_adjusted_over_its_models() {
    assert!(fits(&TABLE_2));
    // The test can tell: another value does not fit.
    let mut spoilt = TABLE_2;
    spoilt[0].1 += 0.02;
    assert!(!fits(&spoilt));
}

#[test]
fn tables_14_and_15_are_adjusted_by_row_and_not_by_column() {
    for table in [TABLE_14, TABLE_15] {
        for row in table {
            assert!(fits(&row), "{row:?}");
        }
        for column in 0..5 {
            let cells: Vec<Cell> = table.iter().map(|row| row[column]).collect();
            assert!(!fits(&cells), "column {column}: {cells:?}");
        }
    }
}
