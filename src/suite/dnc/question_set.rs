//! Any set of questions: which fields of a JSON row are the question, and the row again after a perturbation.
use serde_json::{Map, Value, json};

use super::expression::{Expression, exact, plain};
use super::extra::sentence_starts;
use super::kind::Kind;
use super::options::Mode;
use super::perturbation::Perturbed;
use super::problem::{Problem, Remainder};
use crate::number::Fraction;

/// Names of fields; what is not given is looked for under usual names, and may be missing but for the question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields {
    pub id: Option<String>,
    pub body: Option<String>,
    pub question: Option<String>,
    pub answer: Option<String>,
    pub formula: Option<String>,
}

const IDS: [&str; 6] = ["@ID", "id", "uid", "query_id", "question_id", "instance"];
const BODIES: [&str; 4] = ["Body", "body", "passage", "context"];
const QUESTIONS: [&str; 4] = ["Question", "question", "problem", "prompt"];
const ANSWERS: [&str; 3] = ["Answer", "answer", "gold"];
const FORMULAS: [&str; 4] = ["Formula", "formula", "equation", "Equation"];

/// A row with the question it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct SetRow {
    pub place: String,
    pub problem: Problem,
    row: Map<String, Value>,
    body: Option<String>,
    question: String,
    answer: Option<String>,
    formula: Option<String>,
}

impl Fields {
    /// The question of a row. Without a body field the last sentence of the question field is the question and what stands
    /// before it the body.
    ///
    /// # Errors
    /// What is missing or of the wrong type.
    pub fn read(&self, place: &str, row: &Map<String, Value>) -> Result<SetRow, String> {
        let named = |given: &Option<String>, usual: &[&str]| match given {
            Some(name) if row.contains_key(name) => Ok(Some(name.clone())),
            Some(name) => Err(format!("field `{name}` is missing")),
            None => Ok(usual.iter().find(|name| row.contains_key(**name)).map(|name| (*name).to_owned())),
        };
        let text = |name: &str| match row.get(name) {
            Some(Value::String(text)) => Ok(text.clone()),
            _ => Err(format!("field `{name}` is no text")),
        };
        let question = named(&self.question, &QUESTIONS)?.ok_or_else(|| {
            format!("it has no question: none of the fields {}; --question-field names it", QUESTIONS.join(", "))
        })?;
        let body = named(&self.body, &BODIES)?;
        let answer = named(&self.answer, &ANSWERS)?;
        let formula = named(&self.formula, &FORMULAS)?;
        let id = match named(&self.id, &IDS)? {
            Some(name) => match &row[&name] {
                Value::String(id) => id.clone(),
                Value::Number(id) => id.to_string(),
                _ => return Err(format!("field `{name}` is neither a text nor a number")),
            },
            None => place.to_owned(),
        };
        let asked = text(&question)?;
        let (body_text, question_text) = match &body {
            Some(name) => (text(name)?, asked),
            None => {
                let start = sentence_starts(asked.trim_end()).last().copied().unwrap_or(0);
                (asked[..start].to_owned(), asked[start..].to_owned())
            }
        };
        if body_text.trim().is_empty() && question_text.trim().is_empty() {
            return Err("its question is empty".to_owned());
        }
        let answer_text = match answer.as_deref().map(|name| &row[name]) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => final_answer(text).to_owned(),
            Some(Value::Number(number)) => number.to_string(),
            Some(_) => return Err(format!("field `{}` is neither a text nor a number", answer.unwrap_or_default())),
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
        let problem = Problem {
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
        if let Some(left) = problem.left_side() {
            let expression = Expression::parse(left).map_err(|error| format!("formula {left:?}: {error}"))?;
            expression.value().map_err(|error| format!("formula {left:?}: {error}"))?;
        }
        Ok(SetRow { place: place.to_owned(), problem, row: row.clone(), body, question, answer, formula })
    }
}

/// `... #### 18` of GSM8K ends in the answer.
fn final_answer(text: &str) -> &str {
    text.rsplit_once("####").map_or(text, |(_, last)| last.trim())
}

impl SetRow {
    /// The row after a perturbation: the same fields with the new texts, and a field `dnc` that says what was done.
    pub fn perturbed(&self, found: &Perturbed, mode: Mode, seed: u64, draw: u32) -> Value {
        let mut row = self.row.clone();
        self.put_texts(&mut row, &found.problem);
        if let Some(name) = &self.formula
            && let Some(formula) = &found.problem.formula
        {
            row.insert(name.clone(), json!(formula));
        }
        if let Some(name) = &self.answer
            && found.problem.answer != self.problem.answer
        {
            let value = self.answer_value(name, &found.problem);
            row.insert(name.clone(), value);
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
        about.insert("gold".into(), json!(found.problem.gold().as_ref().map(plain)));
        if let Some(provenance) = &found.provenance {
            about.insert("provenance".into(), json!(provenance));
        }
        row.insert("dnc".into(), Value::Object(about));
        Value::Object(row)
    }

    /// The row as it was, with the reason why it is not perturbed.
    pub fn unperturbed(&self, kind: Kind, mode: Mode, seed: u64, why: &str) -> Value {
        let mut row = self.row.clone();
        let about = json!({
            "source": self.problem.id, "place": self.place, "kind": kind, "mode": mode, "seed": seed, "perturbed": false,
            "ineligible": why, "edits": [],
        });
        row.insert("dnc".into(), about);
        Value::Object(row)
    }

    fn put_texts(&self, row: &mut Map<String, Value>, after: &Problem) {
        match &self.body {
            Some(name) => {
                row.insert(name.clone(), json!(after.body));
                row.insert(self.question.clone(), json!(after.question));
            }
            None => {
                row.insert(self.question.clone(), json!(format!("{}{}", after.body, after.question)));
            }
        }
    }

    /// The new answer in the type of the old one, where a JSON number can hold it exactly.
    fn answer_value(&self, name: &str, after: &Problem) -> Value {
        let number = || {
            let value: Fraction = exact(&after.answer)?;
            let parsed: Value = serde_json::from_str(&after.answer).ok()?;
            (exact(&parsed.to_string())? == value).then_some(parsed)
        };
        match self.row.get(name) {
            Some(Value::Number(_)) => number().unwrap_or_else(|| json!(after.answer)),
            Some(Value::String(text)) if text.contains("####") => json!(format!("#### {}", after.answer)),
            _ => json!(after.answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn usual_fields_are_found_and_named_ones_required() {
        let gsm = row(
            json!({"question": "Ann has 3 cats. She buys 2. How many has she?", "answer": "3+2=5\n#### 5", "id": 7}),
        );
        let found = Fields::default().read("line 1", &gsm).unwrap();
        assert_eq!((found.problem.id.as_str(), found.problem.answer.as_str()), ("7", "5"));
        assert_eq!(
            (found.problem.body.as_str(), found.problem.question.as_str()),
            ("Ann has 3 cats. She buys 2. ", "How many has she?")
        );
        let fields = Fields { body: Some("story".into()), ..Fields::default() };
        assert_eq!(fields.read("line 1", &gsm).unwrap_err(), "field `story` is missing");
        for bad in
            [json!({}), json!({"question": 5}), json!({"question": ""}), json!({"question": "Q", "formula": "x"})]
        {
            assert!(Fields::default().read("line 1", &row(bad.clone())).is_err(), "{bad}");
        }
    }

    #[test]
    fn rows_come_back_with_what_changed() {
        let source = row(json!({"Body": "B 5.", "Question": "Q?", "Answer": 5, "Formula": "5=5", "kept": [1]}));
        let found = Fields::default().read("row 2", &source).unwrap();
        let mut after = found.problem.clone();
        after.body = "B 7.".into();
        after.answer = "7.5".into();
        after.formula = Some("7.5=7.5".into());
        let perturbed =
            Perturbed { kind: Kind::Noise, problem: after, edits: vec![], reason: "r".into(), provenance: None };
        let out = found.perturbed(&perturbed, Mode::Fixed, 3, 1);
        assert_eq!((&out["Body"], &out["Answer"], &out["kept"]), (&json!("B 7."), &json!(7.5), &json!([1])));
        assert_eq!(
            (&out["dnc"]["kind"], &out["dnc"]["gold"], &out["dnc"]["place"]),
            (&json!("noise"), &json!("7.5"), &json!("row 2"))
        );
        assert_eq!(found.unperturbed(Kind::Type, Mode::Fixed, 3, "why")["dnc"]["ineligible"], json!("why"));
    }
}
