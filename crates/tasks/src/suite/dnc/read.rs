//! ASDiv-a, DROP and TAT-QA in their own formats (spec sections 2 and 6), from rows to questions.
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::problem::{Dataset, Problem, Remainder, Scale};
use super::records::{FileError, Malformed, Record, Records, RowError, records};
use super::written::stated;

/// Content of a file of a data set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadFile {
    pub problems: Vec<Problem>,
    /// Rows that are no question, by name.
    pub malformed: Vec<Malformed>,
    /// Sound questions that the paper's subset does not have: dates and spans of DROP, other answer types of TAT-QA.
    pub other_questions: usize,
}

/// Reads a file.
///
/// # Errors
/// If it cannot be divided into rows at all.
pub fn read(dataset: Dataset, bytes: &[u8]) -> Result<ReadFile, FileError> {
    let mut found = ReadFile::default();
    let mut seen = BTreeSet::new();
    match dataset {
        Dataset::AsdivA => each(&mut found, &mut seen, records(bytes)?.into_rows(), asdiv),
        Dataset::TatqaA => each(&mut found, &mut seen, records(bytes)?.into_rows(), tatqa),
        Dataset::DropNum => match records(bytes)? {
            // A file of one question is no dictionary of passages.
            Records::Object(object, text) if object.contains_key("passage") => {
                each(&mut found, &mut seen, Records::Object(object, text).into_rows(), drop_question);
            }
            Records::Object(object, _) => {
                for (id, passage) in object {
                    let record = Record { place: format!("passage {id}"), value: Ok(passage), text: "" };
                    each(&mut found, &mut seen, vec![record], |found, row| drop_passage(found, &id, row));
                }
            }
            rows => each(&mut found, &mut seen, rows.into_rows(), drop_question),
        },
    }
    Ok(found)
}

fn each(
    found: &mut ReadFile,
    seen: &mut BTreeSet<String>,
    rows: Vec<Record<'_>>,
    mut read: impl FnMut(&mut ReadFile, &Map<String, Value>) -> Result<(), RowError>,
) {
    for row in rows {
        let before = found.problems.len();
        let outcome = row.value.and_then(|value| match value {
            Value::Object(object) => read(found, &object),
            _ => Err(RowError::NotAnObject),
        });
        for problem in found.problems.split_off(before) {
            let why = if problem.question.trim().is_empty() {
                Some(RowError::EmptyPart("question"))
            } else if problem.body.trim().is_empty() && problem.table.is_none() {
                Some(RowError::EmptyPart("body"))
            } else if !seen.insert(problem.id.clone()) {
                Some(RowError::RepeatedId)
            } else {
                None
            };
            match why {
                None => found.problems.push(problem),
                Some(why) => {
                    let why = why.within(problem.id).to_string();
                    found.malformed.push(Malformed { place: row.place.clone(), why });
                }
            }
        }
        if let Err(why) = outcome {
            found.malformed.push(Malformed { place: row.place, why: why.to_string() });
        }
    }
}

fn text<'a>(row: &'a Map<String, Value>, field: &str) -> Result<&'a str, RowError> {
    match row.get(field) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(RowError::NotText(field.to_owned())),
        None => Err(RowError::Missing(field.to_owned())),
    }
}

fn list<'a>(row: &'a Map<String, Value>, name: &str, field: &'static str) -> Result<&'a Vec<Value>, RowError> {
    row.get(name).and_then(Value::as_array).ok_or(RowError::MissingOr { field, wrong: "no list" })
}

fn object<'a>(row: &'a Map<String, Value>, field: &'static str) -> Result<&'a Map<String, Value>, RowError> {
    row.get(field).and_then(Value::as_object).ok_or(RowError::MissingOr { field, wrong: "no object" })
}

fn asdiv(found: &mut ReadFile, row: &Map<String, Value>) -> Result<(), RowError> {
    let id = text(row, "@ID")?.to_owned();
    let named = |why: RowError| why.within(id.as_str());
    let solution = match row.get("Solution-Type") {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Object(steps)) => {
            text(steps, "#text").map_err(|why| named(why.within("Solution-Type")))?.to_owned()
        }
        _ => {
            let wrong = "neither a text nor an object";
            return Err(named(RowError::MissingOr { field: "Solution-Type", wrong }));
        }
    };
    let mut problem = Problem {
        body: text(row, "Body").map_err(named)?.trim().to_owned(),
        question: text(row, "Question").map_err(named)?.trim().to_owned(),
        table: None,
        formula: Some(text(row, "Formula").map_err(named)?.trim().to_owned()),
        answer: text(row, "Answer").map_err(named)?.trim().to_owned(),
        remainder: Remainder::of(&solution),
        scale: None,
        solution_type: solution,
        id: id.clone(),
    };
    if problem.answer.is_empty() {
        return Err(named(RowError::Empty("Answer".to_owned())));
    }
    problem.check().map_err(|error| named(error.into()))?;
    found.problems.push(problem);
    Ok(())
}

/// A number as JSON has it; `what` names it in the error.
fn number(what: &'static str, value: &Value) -> Result<String, RowError> {
    let text = match value {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.trim().to_owned()),
        _ => None,
    };
    let whole = |text: String| stated(&text).filter(|found| found.start == 0 && found.end == text.len());
    let found = text.and_then(whole).ok_or_else(|| RowError::NotANumber { what, value: value.clone() })?;
    Ok(found.written)
}

fn drop_passage(found: &mut ReadFile, id: &str, row: &Map<String, Value>) -> Result<(), RowError> {
    let passage = text(row, "passage")?;
    let pairs = list(row, "qa_pairs", "qa_pairs")?;
    for (at, pair) in pairs.iter().enumerate() {
        let place = format!("passage {id}, question {}", at + 1);
        let outcome = (|| {
            let pair = pair.as_object().ok_or(RowError::NotAnObject)?;
            let question = text(pair, "question")?;
            let answer = object(pair, "answer")?;
            let name = pair.get("query_id").and_then(Value::as_str).map_or_else(|| format!("{id}-{at}"), str::to_owned);
            match answer.get("number") {
                None => Err(RowError::Missing("answer.number".to_owned())),
                Some(Value::String(empty)) if empty.trim().is_empty() => Ok(None),
                Some(value) => Ok(Some(drop_problem(name, passage, question, number("answer.number", value)?))),
            }
        })();
        match outcome {
            Ok(Some(problem)) => found.problems.push(problem),
            Ok(None) => found.other_questions += 1,
            Err(why) => found.malformed.push(Malformed { place, why: why.to_string() }),
        }
    }
    Ok(())
}

/// The authors' flat form: id, passage, question, answer.
fn drop_question(found: &mut ReadFile, row: &Map<String, Value>) -> Result<(), RowError> {
    let id = match row.get("id") {
        Some(Value::String(id)) => id.clone(),
        Some(Value::Number(id)) => id.to_string(),
        _ => return Err(RowError::Missing("id".to_owned())),
    };
    let named = |why: RowError| why.within(id.as_str());
    let answer = row.get("answer").ok_or_else(|| named(RowError::Missing("answer".to_owned())))?;
    let answer = number("answer", answer).map_err(named)?;
    let (passage, question) = (text(row, "passage").map_err(named)?, text(row, "question").map_err(named)?);
    found.problems.push(drop_problem(id.clone(), passage, question, answer));
    Ok(())
}

fn drop_problem(id: String, passage: &str, question: &str, answer: String) -> Problem {
    Problem {
        id,
        body: passage.trim().to_owned(),
        question: question.trim().to_owned(),
        table: None,
        formula: None,
        answer,
        remainder: Remainder::Exact,
        scale: None,
        solution_type: String::new(),
    }
}

fn tatqa(found: &mut ReadFile, row: &Map<String, Value>) -> Result<(), RowError> {
    let table = object(row, "table")?;
    let uid = text(table, "uid")?.to_owned();
    let cells = list(table, "table", "table.table")?;
    let table = markdown(cells).map_err(|why| why.within(format!("table {uid}")))?;
    let mut texts: Vec<(i64, &str)> = Vec::new();
    for paragraph in list(row, "paragraphs", "paragraphs")? {
        let paragraph = paragraph.as_object().ok_or(RowError::Paragraph("is not an object"))?;
        let order = paragraph.get("order").and_then(Value::as_i64).ok_or(RowError::Paragraph("has no `order`"))?;
        texts.push((order, text(paragraph, "text")?));
    }
    texts.sort_by_key(|(order, _)| *order);
    let body: Vec<&str> = texts.into_iter().map(|(_, text)| text).collect();
    for (at, question) in list(row, "questions", "questions")?.iter().enumerate() {
        let outcome = (|| {
            let question = question.as_object().ok_or(RowError::NotAnObject)?;
            if text(question, "answer_type")? != "arithmetic" {
                return Ok(None);
            }
            let answer = question.get("answer").ok_or_else(|| RowError::Missing("answer".to_owned()))?;
            let scale = text(question, "scale")?;
            Ok::<_, RowError>(Some(Problem {
                id: text(question, "uid")?.to_owned(),
                body: body.join("\n"),
                question: text(question, "question")?.trim().to_owned(),
                table: Some(table.clone()),
                formula: None,
                answer: number("answer", answer)?,
                remainder: Remainder::Exact,
                scale: Some(Scale::parse(scale).ok_or_else(|| RowError::UnknownScale(scale.to_owned()))?),
                solution_type: String::new(),
            }))
        })();
        match outcome {
            Ok(Some(problem)) => found.problems.push(problem),
            Ok(None) => found.other_questions += 1,
            Err(why) => {
                let place = format!("table {uid}, question {}", at + 1);
                found.malformed.push(Malformed { place, why: why.to_string() });
            }
        }
    }
    Ok(())
}

/// A table as Markdown, its first row as the head; cells cannot hold a line break or a bar.
fn markdown(rows: &[Value]) -> Result<String, RowError> {
    let mut lines = Vec::new();
    for row in rows {
        let cells = row.as_array().ok_or(RowError::NotAList)?;
        let cell = |cell: &Value| match cell {
            Value::String(text) => Ok(text.trim().replace(['\n', '\r'], " ").replace('|', "/")),
            Value::Number(number) => Ok(number.to_string()),
            Value::Null => Ok(String::new()),
            other => Err(RowError::Cell(other.clone())),
        };
        let cells: Vec<String> = cells.iter().map(cell).collect::<Result<_, _>>()?;
        lines.push(format!("| {} |", cells.join(" | ")));
        if lines.len() == 1 {
            lines.push(format!("|{}", " --- |".repeat(cells.len())));
        }
    }
    if lines.is_empty() { Err(RowError::NoRows) } else { Ok(lines.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asdiv_rows_are_checked() {
        let file = br##"[
            {"@ID":"a","Body":"Ann had 8.","Question":"How many?","Solution-Type":"Ceil-Division","Answer":"3 (cups)","Formula":"8/3=2 r2"},
            {"@ID":"b","Body":"B","Question":"Q","Solution-Type":{"@Subgoal-1":"Addition","#text":"Subtraction"},"Answer":"1.5","Formula":"3-1.5=1.5"},
            {"@ID":"c","Body":"B","Question":"Q","Solution-Type":"Addition","Answer":"9","Formula":"3+5=8"},
            {"@ID":"d","Body":"B","Solution-Type":"Addition","Answer":"8","Formula":"3+5=8"},
            {"@ID":"e","Body":"B","Question":"Q","Solution-Type":"Addition","Answer":"8","Formula":"x=8"},
            {"@ID":"a","Body":"B","Question":"Q","Solution-Type":"Addition","Answer":"8","Formula":"3+5=8"},
            17,
            {"@ID":"f","Body":"B","Question":"Q","Solution-Type":"Addition","Answer":"203","Formula":"147+56=999"},
            {"@ID":"g","Body":" ","Question":"Q","Solution-Type":"Addition","Answer":"8","Formula":"3+5=8"},
            {"@ID":"h","Body":"B","Question":"","Solution-Type":"Addition","Answer":"8","Formula":"3+5=8"},
            {"@ID":"i","Body":"B","Question":"Q","Solution-Type":"Addition","Answer":"8","Formula":"3+5=8","Answer":"9"},
            {"@ID":"j","Body":"B","Question":"Q","Solution-Type":"Addition","Answer":1e400,"Formula":"3+5=8"}]"##;
        let found = read(Dataset::AsdivA, file).unwrap();
        assert_eq!(found.problems.iter().map(|p| p.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        let said: Vec<String> = found.malformed.iter().map(|m| format!("{}: {}", m.place, m.why)).collect();
        assert_eq!(said.len(), 10, "{said:?}");
        assert!(said[0].starts_with("row 3: c: answer \"9\" is not the value"), "{said:?}");
        for (index, text) in [
            (1, "row 4: d: field `Question` is missing"),
            (3, "row 6: a: another question has this id too"),
            (5, "row 8: f: formula \"147+56=999\": the left side is 203"),
            (6, "row 9: g: its body is empty"),
            (7, "row 10: h: its question is empty"),
            (8, "row 11: the key \"Answer\" stands twice"),
            (9, "row 12: not JSON: number out of range"),
        ] {
            assert!(said[index].starts_with(text), "{said:?}");
        }
    }

    #[test]
    fn both_forms_of_drop_are_read() {
        let own = br#"{"p1": {"passage": "Two scored 3.", "qa_pairs": [
            {"question": "How many?", "query_id": "q1", "answer": {"number": "1,003", "date": {}, "spans": []}},
            {"question": "Who?", "query_id": "q2", "answer": {"number": "", "date": {}, "spans": ["x"]}},
            {"question": "Bad", "answer": {}}]}, "p2": 5}"#;
        let found = read(Dataset::DropNum, own).unwrap();
        assert_eq!((found.problems.len(), found.other_questions, found.malformed.len()), (1, 1, 2));
        assert_eq!(found.problems[0].answer, "1003");
        let flat = read(Dataset::DropNum, b"{\"id\":7,\"passage\":\"P\",\"question\":\"Q\",\"answer\":5.0}\n").unwrap();
        assert_eq!((flat.problems[0].id.as_str(), flat.problems[0].answer.as_str()), ("7", "5.0"));
    }

    #[test]
    fn tatqa_keeps_arithmetic_questions() {
        let file = r#"[{"table":{"uid":"t","table":[["","2019"],["Cost","$(98)"]]},
            "paragraphs":[{"uid":"b","order":2,"text":"Second."},{"uid":"a","order":1,"text":"First."}],
            "questions":[{"uid":"q","order":1,"question":"Change?","answer":-98,"answer_type":"arithmetic","scale":"million"},
                         {"uid":"r","order":2,"question":"Which?","answer":["x"],"answer_type":"span","scale":""},
                         {"uid":"s","order":3,"question":"Odd?","answer":1,"answer_type":"arithmetic","scale":"dozen"}]}]"#;
        let found = read(Dataset::TatqaA, file.as_bytes()).unwrap();
        assert_eq!((found.problems.len(), found.other_questions, found.malformed.len()), (1, 1, 1));
        let problem = &found.problems[0];
        assert_eq!(problem.body, "First.\nSecond.");
        assert_eq!(problem.table.as_deref(), Some("|  | 2019 |\n| --- | --- |\n| Cost | $(98) |"));
        assert_eq!((problem.answer.as_str(), problem.scale), ("-98", Some(Scale::Million)));
    }
}
