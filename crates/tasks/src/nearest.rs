//! Spelling help: the known name that was meant.

pub use earnest_digest::toml_file::nearest;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_alike_are_found() {
        let known = ["name", "version", "licence", "questions"];
        assert_eq!(nearest("license", known), Some("licence"));
        assert_eq!(nearest("question", known), Some("questions"));
        assert_eq!(nearest("zzz", known), None);
        assert_eq!(nearest("rnu", ["runs", "run", "score"]), Some("run"));
    }
}
