//! Holm-Bonferroni against every adjusted value in the GSM-Symbolic re-evaluation: Tables 2, 6, 8, 10 and 12 over
//! their models, Tables 14 and 15 over the prompts of a model.
//!
//! Printed values are rounded to three decimals, or `< 0.001`, so every raw value is an interval; Holm's adjustment is
//! monotone in each raw value, so every adjusted value is one too, and the printed one must meet it.
use earnest_papers::gsm_symbolic::published::{
    NumberEffectRow, Printed, number_effects, residual_effects, variant_effects,
};
use earnest_stats::holm;
use earnest_tasks::suite::gsm_symbolic::Prompt;

type Cell = (Printed, Printed);

const DECIMALS: i32 = 3;

/// Places where the printed adjusted value is not Holm's of the printed raw values.
fn misfits(cells: &[Cell]) -> Vec<usize> {
    let ends: Vec<(f64, f64)> = cells.iter().map(|cell| cell.0.range(DECIMALS)).collect();
    let low = holm(&ends.iter().map(|end| end.0).collect::<Vec<_>>()).unwrap();
    let high = holm(&ends.iter().map(|end| end.1).collect::<Vec<_>>()).unwrap();
    let fits = |index: &usize| {
        let published = cells[*index].1.range(DECIMALS);
        published.0 <= high[*index] + 1e-12 && low[*index] <= published.1 + 1e-12
    };
    (0..cells.len()).filter(|index| !fits(index)).collect()
}

fn row(row: &NumberEffectRow) -> Vec<Cell> {
    Prompt::ALL.map(|prompt| (row.cell(prompt).p, row.cell(prompt).p_holm)).to_vec()
}

#[test]
fn variant_effects_are_adjusted_over_the_models_of_a_table() {
    for prompt in Prompt::ALL {
        let cells: Vec<Cell> = variant_effects(prompt).iter().map(|row| (row.p, row.p_holm)).collect();
        assert_eq!(misfits(&cells), [0; 0], "{prompt}");
        // The test can tell: another value does not fit.
        let index = cells.iter().position(|cell| cell.1.value().is_some()).unwrap();
        let mut spoilt = cells;
        let value = spoilt[index].1.value().unwrap();
        spoilt[index].1 = Printed::Rounded(if value < 0.9 { value + 0.02 } else { value - 0.02 });
        assert_eq!(misfits(&spoilt), [index], "{prompt}");
    }
}

#[test]
fn tables_14_and_15_are_adjusted_by_row_and_not_by_column() {
    for table in [number_effects(), residual_effects()] {
        for model in table {
            assert_eq!(misfits(&row(model)), [0; 0], "{}", model.model);
        }
        for prompt in Prompt::ALL {
            let cells: Vec<Cell> = table.iter().map(|row| (row.cell(prompt).p, row.cell(prompt).p_holm)).collect();
            assert!(!misfits(&cells).is_empty(), "{prompt} fits column-wise");
        }
    }
}
