//! Formulas of mixed models as R writes them, as far as models with one random intercept go.
use std::str::FromStr;

/// A formula: `response ~ term + term + (1 | group)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Formula {
    /// Column of outcomes, 0 or 1.
    pub response: String,
    /// Columns of fixed effects besides the intercept.
    pub fixed: Vec<String>,
    /// Column of groups, each of which has a random intercept.
    pub group: String,
}

const EXAMPLE: &str = "correct ~ model + (1 | cluster)";

impl FromStr for Formula {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((response, terms)) = text.split_once('~') else {
            return Err(format!("`{text}` has no ~; write e.g. {EXAMPLE}"));
        };
        let response = column(response)?;
        let (mut fixed, mut group) = (Vec::new(), None);
        for term in terms.split('+').map(str::trim) {
            let inside = term.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
            if let Some((slope, grouped)) = inside.and_then(|inside| inside.split_once('|')) {
                if slope.trim() != "1" {
                    return Err(format!("`{term}`: only random intercepts are supported, e.g. (1 | cluster)"));
                }
                if group.replace(column(grouped)?).is_some() {
                    return Err("more than one random intercept is not supported".to_owned());
                }
            } else if term != "1" {
                let name = column(term)?;
                if fixed.contains(&name) {
                    return Err(format!("`{name}` stands twice among the fixed effects"));
                }
                fixed.push(name);
            }
        }
        let Some(group) = group else {
            return Err(format!("`{text}` has no random intercept; write e.g. {EXAMPLE}"));
        };
        for name in [&response, &group] {
            if fixed.contains(name) {
                return Err(format!("`{name}` cannot be a fixed effect too"));
            }
        }
        if response == group {
            return Err(format!("`{group}` is both response and group"));
        }
        Ok(Formula { response, fixed, group })
    }
}

/// Name of a column.
fn column(text: &str) -> Result<String, String> {
    let text = text.trim();
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.' | '-');
    if !text.is_empty() && text.chars().all(plain) && !text.starts_with(|letter: char| letter.is_ascii_digit()) {
        return Ok(text.to_owned());
    }
    match text {
        "" => Err(format!("a name is missing; write e.g. {EXAMPLE}")),
        text if text.contains(['*', ':', '^']) => {
            Err(format!("`{text}`: interactions are not supported; add a column of the task's data that combines them"))
        }
        text => Err(format!("`{text}` is no column; write e.g. {EXAMPLE}")),
    }
}

impl std::fmt::Display for Formula {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ~ ", self.response)?;
        self.fixed.iter().try_for_each(|name| write!(f, "{name} + "))?;
        write!(f, "(1 | {})", self.group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_read_as_r_writes_them() {
        let formula: Formula = "correct~model + 1+ prompt+(1|cluster)".parse().unwrap();
        assert_eq!(formula.to_string(), "correct ~ model + prompt + (1 | cluster)");
        assert_eq!(formula.to_string().parse(), Ok(formula));
        for (wrong, reason) in [
            ("correct", "has no ~"),
            ("correct ~ model", "no random intercept"),
            ("correct ~ model * prompt + (1 | cluster)", "interactions"),
            ("correct ~ (1 + gamma | cluster)", "is no column"),
            ("correct ~ (gamma | cluster)", "only random intercepts"),
            ("correct ~ model + model + (1 | cluster)", "stands twice"),
            ("correct ~ cluster + (1 | cluster)", "cannot be a fixed effect"),
            ("correct ~ (1 | cluster) + (1 | item)", "more than one"),
            ("correct ~ + (1 | cluster)", "a name is missing"),
        ] {
            let error = wrong.parse::<Formula>().unwrap_err();
            assert!(error.contains(reason), "{wrong}: {error}");
        }
    }
}
