//! Commands that screens offer, as a shell reads them.
use std::path::Path;

/// A word as a shell reads it.
pub fn quoted(word: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@+".contains(c);
    if !word.is_empty() && word.chars().all(safe) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The option that names a results folder, with a blank before it.
pub fn results_option(folder: &Path) -> String {
    format!(" --results {}", quoted(&folder.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_change_them() {
        assert_eq!(results_option(Path::new("r/s")), " --results r/s");
        assert_eq!(results_option(Path::new("my runs")), " --results 'my runs'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
