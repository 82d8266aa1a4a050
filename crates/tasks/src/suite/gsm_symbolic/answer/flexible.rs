//! Our flexible extractor: the last number of the answer, whatever the words around it.
//!
//! Unlike the study's last number it keeps thousands together (`1,234`), reads fractions and mixed numbers as one, takes a
//! minus sign between two operands for a subtraction (`158-238` ends in 238), reads other minus glyphs, and does not look into
//! what was thought or into the questions that a babbling model asks itself.
use super::numeral::{NUMERAL, answer_part, subtracts, value};

/// The last number.
pub fn read(response: &str) -> Option<f64> {
    let text = answer_part(response);
    let mut last = None;
    for found in NUMERAL.captures_iter(&text) {
        if let Some(number) = value(&found) {
            last = Some(if subtracts(&text, &found) { -number } else { number });
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_is_read_as_it_is_meant() {
        for (text, expected) in [
            ("We get 3,000 and then 2,50", Some(50.0)),
            ("= 158-238", Some(238.0)),
            ("158 - 238 = -80", Some(-80.0)),
            ("costs $1,234.50.", Some(1234.5)),
            ("That is 1/2", Some(0.5)),
            ("12 or 13.\nQ: 14", Some(12.0 + 1.0)),
            ("<think>9</think>it is 8", Some(8.0)),
            ("about 20%", Some(20.0)),
            ("\u{2212}4", Some(-4.0)),
            ("3-x", Some(3.0)),
            ("none", None),
            ("", None),
        ] {
            assert_eq!(read(text), expected, "{text:?}");
        }
    }
}
