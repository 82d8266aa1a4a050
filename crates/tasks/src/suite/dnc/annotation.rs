//! Logic and Order: perturbations that people write. `docs/dnc.md` describes the file.
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::expression::Expression;
use super::kind::Kind;
use super::mention::mentions;
use super::perturbation::{Perturbed, rewritten};
use super::problem::{Problem, Remainder, value_of};
use super::records::{FileError, Malformed, records};
use earnest_answer::number::Fraction;
use earnest_answer::number::words::words_in;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AnnotationError {
    #[error("it is not an annotation: {0}")]
    Malformed(String),
    #[error("{0} is not annotated by people: only logic and order are")]
    Automatic(Kind),
    #[error("its original {field} is not that of question {id}; it was written for another version of the data")]
    OtherOriginal { id: String, field: &'static str },
    #[error("the {kind} annotation of {id} {what}")]
    Breaks { kind: Kind, id: String, what: &'static str },
    #[error("question {id} has two {kind} annotations")]
    Twice { kind: Kind, id: String },
    #[error("there is no question {0}")]
    UnknownQuestion(String),
    #[error("its {side} {why}")]
    Contradicts { side: &'static str, why: String },
}

/// An annotation as its file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    pub kind: Kind,
    pub id: String,
    /// Its author; required, because drafts must never pass for the authors'.
    pub provenance: String,
    original: Texts,
    perturbed: Texts,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Texts {
    #[serde(rename = "Body")]
    body: String,
    #[serde(rename = "Question")]
    question: String,
    #[serde(rename = "Answer")]
    answer: String,
    #[serde(rename = "Formula")]
    formula: String,
}

impl Texts {
    fn check(&self, side: &'static str) -> Result<(), AnnotationError> {
        let wrong = |why: String| AnnotationError::Contradicts { side, why };
        for (field, text) in [("Body", &self.body), ("Question", &self.question), ("Answer", &self.answer)] {
            if text.trim().is_empty() {
                return Err(wrong(format!("has an empty {field}")));
            }
        }
        let mut problem = Problem::plain(&self.body);
        problem.formula = Some(self.formula.trim().to_owned());
        problem.answer = self.answer.trim().to_owned();
        problem.check().map_err(|why| wrong(format!("contradicts itself: {why}")))
    }
}

impl Annotation {
    /// Reads a row and holds its equations against its answers.
    ///
    /// # Errors
    /// [`AnnotationError::Malformed`], [`AnnotationError::Automatic`] and [`AnnotationError::Contradicts`].
    pub fn from_json(row: &Value) -> Result<Self, AnnotationError> {
        let malformed = |what: String| AnnotationError::Malformed(what);
        let text = |field: &str| {
            row.get(field)
                .and_then(Value::as_str)
                .ok_or_else(|| malformed(format!("field `{field}` is missing or no text")))
        };
        let texts = |field: &str| {
            let value = row.get(field).cloned().ok_or_else(|| malformed(format!("field `{field}` is missing")))?;
            serde_json::from_value::<Texts>(value).map_err(|error| malformed(format!("field `{field}`: {error}")))
        };
        let kind: Kind = text("perturbation")?.parse().map_err(|error| malformed(format!("{error}")))?;
        if !kind.is_annotated() {
            return Err(AnnotationError::Automatic(kind));
        }
        let found = Annotation {
            kind,
            id: text("id")?.to_owned(),
            provenance: text("provenance")?.to_owned(),
            original: texts("orig")?,
            perturbed: texts("perturbed")?,
        };
        found.original.check("original")?;
        found.perturbed.check("perturbed question")?;
        Ok(found)
    }

    /// Written as a draft: it needs a second reader.
    pub fn is_draft(&self) -> bool {
        self.provenance.to_lowercase().contains("draft")
    }

    /// The perturbed question, after checking that the annotation is of this question and keeps what its kind must keep.
    ///
    /// # Errors
    /// [`AnnotationError`] with the rule that it breaks.
    pub fn apply(&self, problem: &Problem) -> Result<Perturbed, AnnotationError> {
        let other = |field| AnnotationError::OtherOriginal { id: self.id.clone(), field };
        let breaks = |what| AnnotationError::Breaks { kind: self.kind, id: self.id.clone(), what };
        let same = |a: &str, b: &str| a.trim() == b.trim();
        if self.id != problem.id {
            return Err(other("id"));
        }
        for (field, original, ours) in [
            ("Body", &self.original.body, &problem.body),
            ("Question", &self.original.question, &problem.question),
            ("Answer", &self.original.answer, &problem.answer),
        ] {
            if !same(original, ours) {
                return Err(other(field));
            }
        }
        if !same(&self.original.formula, problem.formula.as_deref().unwrap_or_default()) {
            return Err(other("Formula"));
        }
        let mut after = problem.clone();
        after.body = self.perturbed.body.trim().to_owned();
        after.question = self.perturbed.question.trim().to_owned();
        after.answer = self.perturbed.answer.trim().to_owned();
        after.formula = Some(self.perturbed.formula.trim().to_owned());
        let reason = match self.kind {
            Kind::Order => {
                let formula = problem.formula.as_deref().unwrap_or_default();
                if !same(&after.question, &problem.question)
                    || !same(&self.perturbed.formula, formula)
                    || !same(&after.answer, &problem.answer)
                {
                    return Err(breaks("changes the question, the formula or the answer"));
                }
                let (mut before, mut now) = (values(&problem.body), values(&after.body));
                if before == now {
                    return Err(breaks("leaves the numbers in their order"));
                }
                before.sort();
                now.sort();
                if before != now {
                    return Err(breaks("changes the numbers of the body"));
                }
                "the same numbers in another order"
            }
            _ => {
                if !same(&after.body, &problem.body) {
                    return Err(breaks("changes the body"));
                }
                // A new question has a solution of its own.
                after.remainder = Remainder::Exact;
                let (Some(before), Some(now)) = (problem.expression(), after.expression()) else {
                    return Err(breaks("has a formula that cannot be read"));
                };
                logic(&before, &now, &after).map_err(breaks)?;
                "the same body under another question"
            }
        };
        if after.gold().is_none() {
            return Err(breaks("has a formula without a value"));
        }
        Ok(Perturbed {
            kind: self.kind,
            edits: rewritten(problem, &after),
            problem: after,
            reason: reason.to_owned(),
            provenance: Some(self.provenance.clone()),
        })
    }
}

fn logic(before: &Expression, now: &Expression, after: &Problem) -> Result<(), &'static str> {
    let known: Vec<Fraction> = before.operands().iter().map(|operand| operand.value.clone()).collect();
    if now.operands().iter().any(|operand| !known.contains(&operand.value)) {
        return Err("uses a number that the original formula has not");
    }
    if now.is_equivalent_to(before) {
        return Err("computes the same as the original");
    }
    let value = now.value().map_err(|_| "has a formula without a value")?;
    if num_traits::Signed::is_negative(value.numerator()) {
        return Err("has a negative answer");
    }
    if after.stated_answer().is_some_and(|stated| stated != value) {
        return Err("states another answer than its formula has");
    }
    Ok(())
}

/// Values of all numbers of a text, in digits and in words, in the order in which they stand.
pub fn values(text: &str) -> Vec<Fraction> {
    let mut found: Vec<(usize, Fraction)> =
        mentions(text).iter().filter_map(|number| Some((number.start, value_of(number)?))).collect();
    found.extend(words_in(text).iter().filter_map(|word| Some((word.start, super::expression::exact(&word.digits)?))));
    found.sort_by_key(|(start, _)| *start);
    found.into_iter().map(|(_, value)| value).collect()
}

/// Place of an annotation's question.
#[derive(Debug, Clone, Copy)]
pub enum Asked<'a> {
    /// At hand, and what is annotated is checked against it.
    Here(&'a Problem),
    /// In a part of the data that is not asked.
    Elsewhere,
    Nowhere,
}

/// Reads a file of annotations. One that is not sound, of no known question, or not what its kind may be is malformed.
///
/// # Errors
/// If the file cannot be divided into rows.
pub fn read_annotations<'a>(
    bytes: &[u8],
    question: impl Fn(&str) -> Asked<'a>,
) -> Result<(Annotations, Vec<Malformed>), FileError> {
    let mut annotations = Annotations::default();
    let mut malformed = Vec::new();
    for row in records(bytes)?.into_rows() {
        let outcome = row.value.map_err(|error| error.to_string()).and_then(|value| {
            let named = |error: AnnotationError| match value.get("id").and_then(Value::as_str) {
                Some(id) => format!("{id}: {error}"),
                None => error.to_string(),
            };
            let annotation = Annotation::from_json(&value).map_err(named)?;
            match question(&annotation.id) {
                Asked::Here(problem) => drop(annotation.apply(problem).map_err(named)?),
                Asked::Elsewhere => {}
                Asked::Nowhere => return Err(named(AnnotationError::UnknownQuestion(annotation.id.clone()))),
            }
            annotations.add(annotation).map_err(named)
        });
        if let Err(why) = outcome {
            malformed.push(Malformed { place: row.place, why });
        }
    }
    Ok((annotations, malformed))
}

/// Annotations by kind and question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Annotations(BTreeMap<(Kind, String), Annotation>);

impl Annotations {
    /// Adds one.
    ///
    /// # Errors
    /// [`AnnotationError::Twice`].
    pub fn add(&mut self, annotation: Annotation) -> Result<(), AnnotationError> {
        let key = (annotation.kind, annotation.id.clone());
        if self.0.contains_key(&key) {
            return Err(AnnotationError::Twice { kind: annotation.kind, id: annotation.id });
        }
        self.0.insert(key, annotation);
        Ok(())
    }

    /// Annotation of a question.
    pub fn get(&self, kind: Kind, id: &str) -> Option<&Annotation> {
        self.0.get(&(kind, id.to_owned()))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Annotation> {
        self.0.values()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problem() -> Problem {
        Problem {
            id: "q".into(),
            body: "Ann had 8 plums. Ben had two.".into(),
            question: "How many in all?".into(),
            table: None,
            formula: Some("8+2=10".into()),
            answer: "10 (plums)".into(),
            remainder: Remainder::Exact,
            scale: None,
            solution_type: String::new(),
        }
    }

    fn row(kind: &str, body: &str, question: &str, answer: &str, formula: &str) -> Annotation {
        Annotation::from_json(&json!({
            "perturbation": kind, "id": "q", "provenance": "draft, unread",
            "orig": {"Body": "Ann had 8 plums. Ben had two. ", "Question": "How many in all?", "Answer": "10 (plums)", "Formula": "8+2=10"},
            "perturbed": {"Body": body, "Question": question, "Answer": answer, "Formula": formula},
        }))
        .unwrap()
    }

    #[test]
    fn annotations_must_keep_what_their_kind_keeps() {
        let body = "Ann had 8 plums. Ben had two.";
        let moved = "Ben had two plums. Ann had 8.";
        let apply =
            |a: Annotation| a.apply(&problem()).map(|found| found.problem.answer).map_err(|error| error.to_string());
        assert_eq!(apply(row("order", moved, "How many in all?", "10 (plums)", "8+2=10")), Ok("10 (plums)".into()));
        assert_eq!(apply(row("logic", body, "How many more has Ann?", "6 (plums)", "8-2=6")), Ok("6 (plums)".into()));
        for (wrong, what) in [
            (row("order", body, "How many in all?", "10 (plums)", "8+2=10"), "in their order"),
            (
                row("order", "Ben had 3 plums. Ann had 8.", "How many in all?", "10 (plums)", "8+2=10"),
                "numbers of the body",
            ),
            (row("order", moved, "How many in all?", "10 (pears)", "8+2=10"), "question, the formula or the answer"),
            (row("order", moved, "How many?", "10", "8+2=10"), "question, the formula or the answer"),
            (row("logic", moved, "How many more?", "6", "8-2=6"), "changes the body"),
            (row("logic", body, "How many more?", "5", "8-3=5"), "original formula has not"),
            (row("logic", body, "How many together?", "10", "2+8=10"), "same as the original"),
            (row("logic", body, "How many fewer?", "-6", "2-8=-6"), "negative"),
        ] {
            let said = apply(wrong).unwrap_err();
            assert!(said.contains(what), "{said}");
        }
    }

    #[test]
    fn a_file_names_every_row_that_is_not_sound() {
        let line = |kind: &str, id: &str, formula: &str, answer: &str, question: &str| {
            json!({"perturbation": kind, "id": id, "provenance": "me",
                "orig": {"Body": "Ann had 8 plums. Ben had two.", "Question": "How many in all?", "Answer": "10 (plums)", "Formula": "8+2=10"},
                "perturbed": {"Body": "Ann had 8 plums. Ben had two.", "Question": question, "Answer": answer, "Formula": formula}})
            .to_string()
        };
        let file = [
            line("logic", "q", "8-2=5", "6", "How many more?"),
            line("logic", "q", "8-2=6", "7", "How many more?"),
            line("logic", "nobody", "8-2=6", "6", "How many more?"),
            line("logic", "other", "8-2=6", "6", "How many more?"),
            line("logic", "q", "8-2=6", "6", " "),
            line("order", "q", "8+2=10", "10 (plums)", "How many in all?"),
            line("logic", "q", "8-2=6", "6", "How many more?"),
            line("logic", "q", "8-2=6", "6", "How many more?"),
        ]
        .join("\n");
        let problem = problem();
        let (found, malformed) = read_annotations(file.as_bytes(), |id| match id {
            "q" => Asked::Here(&problem),
            "other" => Asked::Elsewhere,
            _ => Asked::Nowhere,
        })
        .unwrap();
        assert_eq!(found.iter().count(), 2);
        let said: Vec<String> = malformed.iter().map(|row| format!("{}: {}", row.place, row.why)).collect();
        for (index, text) in [
            "line 1: q: its perturbed question contradicts itself: formula \"8-2=5\": the left side is 6",
            "line 2: q: its perturbed question contradicts itself: answer \"7\" is not the value",
            "line 3: nobody: there is no question nobody",
            "line 5: q: its perturbed question has an empty Question",
            "line 6: q: the order annotation of q leaves the numbers in their order",
            "line 8: q: question q has two logic annotations",
        ]
        .into_iter()
        .enumerate()
        {
            assert!(said[index].starts_with(text), "{said:?}");
        }
        assert_eq!(said.len(), 6);
    }

    #[test]
    fn malformed_rows_and_repetitions_are_named() {
        for row in [json!(5), json!({}), json!({"perturbation": "noise", "id": "q", "provenance": "x"})] {
            assert!(Annotation::from_json(&row).is_err(), "{row}");
        }
        let one = row("order", "x", "y", "2", "1+1=2");
        assert!(one.is_draft());
        let mut all = Annotations::default();
        all.add(one.clone()).unwrap();
        assert!(matches!(all.add(one), Err(AnnotationError::Twice { .. })));
        let mut other = problem();
        other.question = "Else?".into();
        let found = row("order", "x", "y", "2", "1+1=2").apply(&other);
        assert!(matches!(found, Err(AnnotationError::OtherOriginal { field: "Question", .. })));
    }
}
