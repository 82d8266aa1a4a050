//! Spelling help: the known name that was meant.

/// The name that is most like another one, letters that changed places being one slip; none if all are too far from it.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let close = known.into_iter().map(|other| (strsim::osa_distance(name, other), other)).min()?;
    (close.0 <= (name.chars().count() / 2).clamp(1, 3)).then_some(close.1)
}

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
