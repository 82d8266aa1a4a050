//! Any set of questions: which fields of a JSON row are the question, and the row again after a perturbation.
use serde_json::{Map, Value, json};

use super::expression::{exact, plain};
use super::kind::Kind;
use super::options::Mode;
use super::perturbation::Perturbed;
use super::problem::{Problem, Remainder};
use super::raw_json::{members, on_one_line, unquoted};
use super::records::RowError;
use super::sentence::sentence_starts;
use crate::suite::task::row_id::row_id;
use crate::suite::task::usual::{self, asked};
use earnest_answer::number::Fraction;

/// Names of fields; what is not given is looked for under usual names, and may be missing but for the question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields {
    pub id: Option<String>,
    pub body: Option<String>,
    pub question: Option<String>,
    pub answer: Option<String>,
    pub formula: Option<String>,
    /// Field of a perturbed row that says what was done; `dnc` unless it is given.
    pub about: Option<String>,
}

/// A number, or a text that ends with one; other forms of an answer are for runs alone.
const ANSWERS: [&str; 3] = ["Answer", "answer", "gold"];
const FORMULAS: [&str; 4] = ["Formula", "formula", "equation", "Equation"];

/// A row with the question it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct SetRow {
    pub place: String,
    pub problem: Problem,
    /// Names of the fields and both sides of each as they are written.
    row: Vec<(String, String, String)>,
    about: String,
    id: Option<String>,
    body: Option<String>,
    question: String,
    answer: Option<String>,
    formula: Option<String>,
}

impl Fields {
    /// The question of a row. Without a body field the last sentence of the question field is the question and what stands
    /// before it the body. `written` is the row's own text, of which a perturbed row keeps every key and value that does not change as
    /// it is written; only white space between them goes.
    ///
    /// # Errors
    /// [`RowError`] for a field that is missing, of the wrong type or contradicts another: an answer that is no number, an equation whose right side is not
    /// the value of its left or whose value is not the answer, a field with the name that this program writes.
    pub fn read(&self, place: &str, row: &Map<String, Value>, written: &str) -> Result<SetRow, RowError> {
        let row_text: Vec<(String, String, String)> = members(written)
            .into_iter()
            .map(|(key, value)| (unquoted(key), key.to_owned(), on_one_line(value)))
            .collect();
        let about = self.about.clone().unwrap_or_else(|| "dnc".to_owned());
        if row.contains_key(&about) {
            return Err(RowError::AboutTaken(about));
        }
        let named = |given: &Option<String>, usual: &[&str]| match given {
            Some(name) if row.contains_key(name) => Ok(Some(name.clone())),
            Some(name) => Err(RowError::Missing(name.clone())),
            None => Ok(usual.iter().find(|name| row.contains_key(**name)).map(|name| (*name).to_owned())),
        };
        // A JSON reader's number may have lost digits.
        let as_written = |name: &str| row_text.iter().find(|(key, ..)| key == name).map(|(.., value)| value.clone());
        let text = |name: &str| match row.get(name) {
            Some(Value::String(text)) => Ok(text.clone()),
            _ => Err(RowError::NotText(name.to_owned())),
        };
        let question =
            named(&self.question, &usual::QUESTION)?.ok_or_else(|| RowError::NoQuestion(usual::QUESTION.join(", ")))?;
        let body = named(&self.body, &usual::BODY)?;
        let answer = named(&self.answer, &ANSWERS)?;
        let formula = named(&self.formula, &FORMULAS)?;
        let id_column = named(&self.id, &usual::ID)?;
        let written_question = text(&question)?;
        let written_body = body.as_deref().map(text).transpose()?;
        let id = match &id_column {
            Some(name) => match &row[name] {
                Value::String(id) => id.clone(),
                Value::Number(id) => as_written(name).unwrap_or_else(|| id.to_string()),
                _ => return Err(RowError::NotTextOrNumber(name.clone())),
            },
            None => row_id(&asked(written_body.as_deref(), &written_question)),
        };
        let (body_text, question_text) = match written_body {
            Some(body) => (body, written_question),
            None => {
                let start = sentence_starts(written_question.trim_end()).last().copied().unwrap_or(0);
                (written_question[..start].to_owned(), written_question[start..].to_owned())
            }
        };
        if question_text.trim().is_empty() {
            return Err(RowError::EmptyPart("question"));
        }
        if body.is_some() && body_text.trim().is_empty() {
            return Err(RowError::EmptyPart("body"));
        }
        let answer_text = match answer.as_deref().map(|name| (name, &row[name])) {
            None => String::new(),
            Some((name, Value::String(text))) => match final_answer(text) {
                "" => return Err(RowError::Empty(name.to_owned())),
                text => text.to_owned(),
            },
            Some((name, Value::Number(number))) => as_written(name).unwrap_or_else(|| number.to_string()),
            Some((name, _)) => return Err(RowError::NotTextOrNumber(name.to_owned())),
        };
        let formula_text = match formula.as_deref() {
            None => None,
            Some(name) if row[name].is_null() => None,
            Some(name) => Some(text(name)?),
        };
        let solution = match row.get("Solution-Type") {
            Some(Value::String(name)) => name.as_str(),
            Some(Value::Object(steps)) => steps.get("#text").and_then(Value::as_str).unwrap_or_default(),
            _ => "",
        };
        let mut problem = Problem {
            id,
            body: body_text,
            question: question_text,
            table: None,
            formula: formula_text,
            answer: answer_text,
            remainder: Remainder::of(solution),
            scale: None,
            solution_type: solution.to_owned(),
        };
        problem.check()?;
        let place = place.to_owned();
        Ok(SetRow { place, problem, row: row_text, about, id: id_column, body, question, answer, formula })
    }
}

/// `... #### 18` of GSM8K ends in the answer.
fn final_answer(text: &str) -> &str {
    text.rsplit_once("####").map_or(text, |(_, last)| last).trim()
}

impl SetRow {
    /// True if the row has an id of its own.
    pub fn has_id(&self) -> bool {
        self.id.is_some()
    }

    /// The row after a perturbation as a line of JSON: the new texts, an id of its own, every other field as it was written, a
    /// field that says what was done, and what a run of the line needs to be compared with a run of the original: its id
    /// ([`usual::PAIR`]), its cluster and the kind.
    pub fn perturbed(&self, found: &Perturbed, mode: Mode, seed: u64, draw: u32) -> String {
        let after = &found.problem;
        let mut changes: Vec<(&str, Value)> = Vec::new();
        match &self.body {
            Some(name) => {
                if after.body != self.problem.body {
                    changes.push((name, json!(after.body)));
                }
                if after.question != self.problem.question {
                    changes.push((&self.question, json!(after.question)));
                }
            }
            None => {
                // A body that was empty before has no white space at its end.
                let glued = !after.body.is_empty() && !after.body.ends_with(char::is_whitespace);
                let space = if glued { " " } else { "" };
                changes.push((&self.question, json!(format!("{}{space}{}", after.body, after.question))));
            }
        }
        if let Some(name) = &self.formula
            && let Some(formula) = &after.formula
            && after.formula != self.problem.formula
        {
            changes.push((name, json!(formula)));
        }
        if let Some(name) = &self.answer
            && after.answer != self.problem.answer
        {
            changes.push((name, self.answer_value(name, after)));
        }
        let mut about = Map::new();
        about.insert("source".into(), json!(self.problem.id));
        about.insert("place".into(), json!(self.place));
        about.insert("kind".into(), json!(found.kind));
        about.insert("mode".into(), json!(mode));
        about.insert("seed".into(), json!(seed));
        about.insert("draw".into(), json!(draw));
        about.insert("perturbed".into(), json!(true));
        about.insert("eligible".into(), json!(found.reason));
        about.insert("edits".into(), json!(found.edits));
        about.insert("gold".into(), json!(after.gold().as_ref().map(plain)));
        if let Some(provenance) = &found.provenance {
            about.insert("provenance".into(), json!(provenance));
        }
        let own = self.of_a_run(found.kind, draw, found.kind.name());
        self.line(changes, &Value::Object(about), own)
    }

    /// The row as it was, with the reason why it is not perturbed.
    pub fn unperturbed(&self, kind: Kind, mode: Mode, seed: u64, why: &str) -> String {
        let about = json!({
            "source": self.problem.id, "place": self.place, "kind": kind, "mode": mode, "seed": seed, "perturbed": false,
            "ineligible": why, "edits": [], "gold": self.problem.gold().as_ref().map(plain),
        });
        self.line(Vec::new(), &about, self.of_a_run(kind, 0, usual::NOT_PERTURBED))
    }

    /// Columns for a run of the line.
    fn of_a_run(&self, kind: Kind, draw: u32, done: &str) -> Vec<(&str, Value)> {
        let original = &self.problem.id;
        let id = match draw {
            0 => format!("{original}~{kind}"),
            draw => format!("{original}~{kind}.{draw}"),
        };
        let written = |name: &str| self.row.iter().find(|(key, ..)| key == name).map(|(.., value)| value.as_str());
        // A file that was perturbed before tells both.
        let before = written(usual::PERTURBATION).map(unquoted).filter(|before| before != usual::NOT_PERTURBED);
        let done = match before {
            Some(before) if done == usual::NOT_PERTURBED => before,
            Some(before) => format!("{before}+{done}"),
            None => done.to_owned(),
        };
        let column = self.id.as_deref().unwrap_or("id");
        let mut own = vec![(column, json!(id))];
        if !usual::ID.contains(&column) {
            own.push(("id", json!(id)));
        }
        own.push((usual::PAIR, json!(original)));
        let label = |text: &str| usual::label(&serde_json::from_str(text).unwrap_or_default());
        if written(usual::CLUSTER).and_then(label).is_none() {
            own.push((usual::CLUSTER, json!(original)));
        }
        own.push((usual::PERTURBATION, json!(done)));
        own
    }

    /// The row with other values in some columns, then what was done, then the columns that it does not have.
    fn line<'a>(&self, mut changes: Vec<(&'a str, Value)>, about: &Value, own: Vec<(&'a str, Value)>) -> String {
        let (known, added): (Vec<_>, Vec<_>) =
            own.into_iter().partition(|(name, _)| self.row.iter().any(|(key, ..)| key == name));
        changes.extend(known);
        let mut members: Vec<String> = self
            .row
            .iter()
            .map(|(name, key, value)| match changes.iter().find(|(changed, _)| changed == name) {
                Some((_, changed)) => format!("{key}:{changed}"),
                None => format!("{key}:{value}"),
            })
            .collect();
        members.push(format!("{}:{about}", json!(self.about)));
        members.extend(added.iter().map(|(name, value)| format!("{}:{value}", json!(name))));
        format!("{{{}}}", members.join(","))
    }

    /// The new answer in the type of the old one, where a JSON number can hold it exactly.
    fn answer_value(&self, name: &str, after: &Problem) -> Value {
        let number = || {
            let value: Fraction = exact(&after.answer)?;
            let parsed: Value = serde_json::from_str(&after.answer).ok()?;
            (exact(&parsed.to_string())? == value).then_some(parsed)
        };
        let written = self.row.iter().find(|(key, ..)| key == name).map_or("", |(.., value)| value);
        match written.starts_with('"') {
            false => number().unwrap_or_else(|| json!(after.answer)),
            // The working before the mark is of other numbers.
            true if written.contains("####") => json!(format!("#### {}", after.answer)),
            true => json!(after.answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &Fields, place: &str, written: &str) -> Result<SetRow, RowError> {
        let row: Value = serde_json::from_str(written).unwrap();
        fields.read(place, row.as_object().unwrap(), written)
    }

    #[test]
    fn usual_fields_are_found_and_named_ones_required() {
        let gsm =
            r##"{"question": "Ann has 3 cats. She buys 2. How many has she?", "answer": "3+2=5\n#### 5", "id": 7}"##
                .to_owned();
        let found = read(&Fields::default(), "line 1", &gsm).unwrap();
        assert_eq!((found.problem.id.as_str(), found.problem.answer.as_str()), ("7", "5"));
        assert_eq!(
            (found.problem.body.as_str(), found.problem.question.as_str()),
            ("Ann has 3 cats. She buys 2. ", "How many has she?")
        );
        let fields = Fields { body: Some("story".into()), ..Fields::default() };
        assert_eq!(read(&fields, "line 1", &gsm).unwrap_err(), RowError::Missing("story".to_owned()));
    }

    #[test]
    fn rows_that_contradict_themselves_are_refused() {
        for (bad, said) in [
            ("{}", "no question"),
            (r#"{"question": 5}"#, "is not text"),
            (r#"{"question": ""}"#, "empty"),
            (r#"{"question": "Q", "formula": "x"}"#, "formula \"x\""),
            (r#"{"question": "Q", "answer": "abc"}"#, "is not a number"),
            (r#"{"question": "Q", "answer": ""}"#, "is empty"),
            (r#"{"question": "Q", "answer": null}"#, "neither a text nor a number"),
            (r#"{"question": "Q", "answer": "1e400"}"#, "is not a number"),
            (r#"{"question": "Q", "answer": 12, "formula": "147+56=203"}"#, "is not the value"),
            (r#"{"question": "Q", "answer": 203, "formula": "147+56=999"}"#, "the left side is 203"),
            (r#"{"question": "Q", "dnc": 1}"#, "`about_field`"),
        ] {
            let found = read(&Fields::default(), "line 1", bad).unwrap_err().to_string();
            assert!(found.contains(said), "{bad}: {found}");
        }
        let other = Fields { about: Some("done".into()), ..Fields::default() };
        let kept = read(&other, "line 1", r#"{"question": "Had 5?", "dnc": 1}"#).unwrap();
        let line = kept.unperturbed(Kind::Noise, Mode::Fixed, 1, "why");
        assert!(line.starts_with(r#"{"question":"Had 5?","dnc":1,"done":{"#), "{line}");
    }

    #[test]
    fn a_sentence_before_a_question_is_not_glued_to_it() {
        let found = read(&Fields::default(), "row 1", r#"{"question": "What is 5 and 2?"}"#).unwrap();
        assert_eq!(found.problem.body, "");
        let mut after = found.problem.clone();
        after.body = "Ann has 3 marbles.".into();
        let perturbed =
            Perturbed { kind: Kind::Extra, problem: after, edits: vec![], reason: "r".into(), provenance: None };
        let line = found.perturbed(&perturbed, Mode::Fixed, 3, 1);
        assert!(line.contains("Ann has 3 marbles. What is 5 and 2?"), "{line}");
    }

    #[test]
    fn rows_come_back_with_what_changed_and_every_other_byte() {
        let source = "{\"Body\": \"B 5.\", \"big\":123456789012345678901234567890, \"price\" : 1.10,\n \"Question\": \"Caf\\u00e9?\", \"Answer\": 5, \"Formula\": \"5=5\", \"kept\": [1, {\"a b\": 1e2}]}";
        let found = read(&Fields::default(), "row 2", source).unwrap();
        let mut after = found.problem.clone();
        after.body = "B 7.".into();
        after.answer = "7.5".into();
        after.formula = Some("7.5=7.5".into());
        let perturbed =
            Perturbed { kind: Kind::Noise, problem: after, edits: vec![], reason: "r".into(), provenance: None };
        let line = found.perturbed(&perturbed, Mode::Fixed, 3, 1);
        let kept = "{\"Body\":\"B 7.\",\"big\":123456789012345678901234567890,\"price\":1.10,\"Question\":\"Caf\\u00e9?\",\"Answer\":7.5,\"Formula\":\"7.5=7.5\",\"kept\":[1,{\"a b\":1e2}],\"dnc\":{";
        assert!(line.starts_with(kept), "{line}");
        let out: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            (&out["dnc"]["kind"], &out["dnc"]["gold"], &out["dnc"]["place"]),
            (&json!("noise"), &json!("7.5"), &json!("row 2"))
        );
        assert!(found.unperturbed(Kind::Type, Mode::Fixed, 3, "why").contains("\"ineligible\":\"why\""));
    }

    #[test]
    fn a_line_can_be_run_and_names_its_original() {
        let perturbed = |source: &str, fields: &Fields, draw: u32| -> Value {
            let found = read(fields, "line 1", source).unwrap();
            let after = found.problem.clone();
            let done =
                Perturbed { kind: Kind::Noise, problem: after, edits: vec![], reason: "r".into(), provenance: None };
            let line = found.perturbed(&done, Mode::Fixed, 3, draw);
            assert_eq!(line.matches("\"id\":").count(), 1, "{line}");
            serde_json::from_str(&line).unwrap()
        };
        let run_columns = |row: &Value| ["id", "pair", "cluster", "perturbation"].map(|name| row[name].clone());
        let usual = Fields::default();
        let bare = perturbed(r#"{"question": "Ann has 3 cats. How many?"}"#, &usual, 0);
        let original = row_id("Ann has 3 cats. How many?");
        assert_eq!(
            run_columns(&bare),
            [json!(format!("{original}~noise")), json!(original), json!(original), json!("noise")]
        );
        let named = perturbed(r#"{"id": 7, "cluster": "c", "question": "Had 5?"}"#, &usual, 2);
        assert_eq!(run_columns(&named), [json!("7~noise.2"), json!("7"), json!("c"), json!("noise")]);
        let own = Fields { id: Some("number".into()), about: Some("done".into()), ..Fields::default() };
        let again = r#"{"number": "x~type", "question": "Had 5?", "dnc": {}, "pair": "x", "perturbation": "type"}"#;
        let again = perturbed(again, &own, 0);
        assert_eq!(again["number"], "x~type~noise");
        assert_eq!(run_columns(&again), [json!("x~type~noise"), json!("x~type"), json!("x~type"), json!("type+noise")]);
        let left = read(&usual, "line 1", r#"{"@ID": "n1", "Body": "Had 5.", "Question": "Left?"}"#).unwrap();
        let left: Value = serde_json::from_str(&left.unperturbed(Kind::Noise, Mode::Fixed, 1, "why")).unwrap();
        assert_eq!(
            (&left["@ID"], &left["pair"], &left["perturbation"]),
            (&json!("n1~noise"), &json!("n1"), &json!("none"))
        );
        assert!(left.get("id").is_none() && left.get("Answer").is_none());
    }

    #[test]
    fn a_fraction_is_an_answer() {
        let source = r#"{"Body": "29 men share 153 acres.", "Question": "How many each?", "Answer": "153/29 (acres)", "Formula": "153/29=153/29"}"#;
        let found = read(&Fields::default(), "row 1", source).unwrap();
        assert_eq!(found.problem.gold().as_ref().map(plain).as_deref(), Some("153/29"));
        assert_eq!(found.problem.stated_answer(), found.problem.gold());
    }
}
