//! Ids of rows that have none.

/// Returns the id of a row without an id column: `q` and the first 12 hexadecimal digits of the SHA-256 of the question as
/// [`super::usual::asked`] gives it.
pub fn row_id(asked: &str) -> String {
    let digest = earnest_digest::hex(&earnest_digest::sha256(asked.as_bytes()));
    format!("q{}", &digest[..12])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_depend_on_the_question_alone() {
        // printf 'How many?' | sha256sum
        assert_eq!(row_id("How many?"), "qba352e24c64c");
        assert_ne!(row_id("How many?"), row_id("How much?"));
    }
}
