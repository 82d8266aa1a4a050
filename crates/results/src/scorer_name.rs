//! Names of scorers as users give them: whole, a part of the name, or a part of the scores that are objects.
use std::collections::BTreeSet;

use crate::{ResultsError, Sample};
use earnest_tasks::suite::log::{scorer, value};

/// Parts of the scores that are objects and have numbers, as `scorer.part`.
#[derive(Debug, Default)]
pub struct Parts(BTreeSet<String>);

impl Parts {
    /// Adds those of a sample.
    pub fn add(&mut self, sample: &Sample) {
        let Some(score) = &sample.score else { return };
        for (scorer, parts) in &score.evidence.values {
            let names = parts.as_object().into_iter().flatten().map(|(part, _)| format!("{scorer}.{part}"));
            self.0.extend(names.filter(|name| value(score, name).is_some()));
        }
    }
}

/// Finds the scorer of a name: the whole one, the only one whose metric or filter it is, a part of a scorer's scores (`grades.form`),
/// or the only part of this name (`form`), that of the tool's own scorer before others. The parts are read only where no scorer has the
/// name.
///
/// # Errors
/// `thing` has no such scorer, or several.
pub fn named<E: From<ResultsError>>(
    thing: &str,
    wanted: &str,
    names: &[&str],
    own: Option<&str>,
    parts: impl FnOnce() -> Result<Parts, E>,
) -> Result<String, E> {
    let several = |found: &[&str]| {
        ResultsError::setting(format!("{wanted} may be several scorers of {thing}: {}", found.join(", ")))
            .hint(format!("name one of them whole: the setting `scorer = {}`", found[0]))
    };
    let nearest = match scorer(wanted, names) {
        Ok(found) => return Ok(found.to_owned()),
        Err(nearest) => nearest,
    };
    let has_part =
        |name: &&&str| name.split_once(',').is_some_and(|(metric, filter)| metric == wanted || filter == wanted);
    let alike: Vec<&str> = names.iter().filter(has_part).copied().collect();
    if alike.len() > 1 {
        return Err(several(&alike).into());
    }
    let Parts(parts) = parts()?;
    if parts.contains(wanted) {
        return Ok(wanted.to_owned());
    }
    let is_part = |part: &&str| {
        part.strip_suffix(wanted)
            .is_some_and(|scorer| scorer.ends_with('.') && names.contains(&&scorer[..scorer.len() - 1]))
    };
    if let Some(own) = own.map(|own| format!("{own}.{wanted}")).filter(|own| parts.contains(own)) {
        return Ok(own);
    }
    let found: Vec<&str> = parts.iter().map(String::as_str).filter(is_part).collect();
    match found.as_slice() {
        [only] => return Ok((*only).to_owned()),
        [] => {}
        found => return Err(several(found).into()),
    }
    let known: Vec<&str> = names.iter().copied().chain(parts.iter().map(String::as_str)).collect();
    let known = match known.is_empty() {
        true => "it has no scores; the setting `answers = FILE` reads its completions".to_owned(),
        false => format!("it has {}", known.join(", ")),
    };
    let hint = nearest.map_or_else(|| known.clone(), |nearest| format!("did you mean {nearest}? {known}"));
    Err(ResultsError::setting(format!("{thing} has no scorer {wanted}")).hint(hint).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(names: &[&str]) -> Result<Parts, ResultsError> {
        Ok(Parts(names.iter().map(|name| (*name).to_owned()).collect()))
    }

    #[test]
    fn parts_of_scores_are_scorers_too() {
        let names = ["grades", "style", "exact_match,strict", "exact_match,flexible"];
        let of = |wanted: &str| {
            named("the log", wanted, &names, Some("exact_match,strict"), || {
                parts(&["grades.form", "grades.value", "style.value", "style.a.b"])
            })
        };
        for (wanted, found) in [
            ("grades", "grades"),
            ("strict", "exact_match,strict"),
            ("grades.form", "grades.form"),
            ("form", "grades.form"),
            ("a.b", "style.a.b"),
            ("style.value", "style.value"),
        ] {
            assert_eq!(of(wanted).unwrap(), found);
        }
        let said = |wanted: &str| {
            let error = of(wanted).unwrap_err();
            (error.to_string(), error.help().unwrap_or_default())
        };
        let (error, help) = said("value");
        assert_eq!(error, "value may be several scorers of the log: grades.value, style.value");
        assert_eq!(help, "name one of them whole: the setting `scorer = grades.value`");
        assert_eq!(
            said("exact_match").0,
            "exact_match may be several scorers of the log: exact_match,strict, exact_match,flexible"
        );
        let (error, help) = said("grades.nothing");
        assert_eq!(error, "the log has no scorer grades.nothing");
        assert!(help.contains("it has grades, style, exact_match,strict") && help.ends_with("style.value"), "{help}");
        assert_eq!(said("b").0, "the log has no scorer b");
        let own = named("the log", "value", &names, Some("style"), || parts(&["grades.value", "style.value"]));
        assert_eq!(own.unwrap(), "style.value");
        // Without a need the samples are not read.
        let unread = || Err(ResultsError::setting("the samples were read"));
        assert_eq!(named("the log", "flexible", &names, None, unread).unwrap(), "exact_match,flexible");
    }
}
