//! Rows drawn from templates.
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::rows::Row;
use super::template::{InstanceError, Instances, Template, Value};

/// A drawn question, in the layout of Apple's files, with the values of its variables.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DrawnRow {
    #[serde(flatten)]
    pub row: Row,
    /// By name: numbers as numbers, fractions as texts, values with a text of their own as `{"text", "value"}`.
    pub variables: BTreeMap<String, Json>,
}

/// Error of drawing rows from a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("template {id}: {error}")]
pub struct DrawError {
    pub id: u32,
    pub error: InstanceError,
}

/// So many different questions of a template. They depend on `(seed, id, number)` only: drawing more of them, or other
/// templates beside them, does not change the first ones.
///
/// # Errors
/// If the template has not so many.
pub fn draw(template: &Template, seed: u64, count: usize) -> Result<Vec<DrawnRow>, DrawError> {
    let key = format!("gsm-symbolic template {} seed {seed}", template.id);
    let instances = Instances::new(template, key.as_bytes()).take(count);
    let instances = instances.map_err(|error| DrawError { id: template.id, error })?;
    let drawn = instances.into_iter().zip(0..).map(|(instance, number)| DrawnRow {
        variables: template.names.iter().cloned().zip(instance.values.iter().map(shown)).collect(),
        row: Row {
            id: template.id,
            instance: number,
            question: instance.question,
            answer: instance.answer,
            original_id: template.original_id,
            original_question: template.original_question.clone(),
            original_answer: template.original_answer.clone(),
        },
    });
    Ok(drawn.collect())
}

/// A value as JSON; whole numbers beyond 64 bits are texts.
fn shown(value: &Value) -> Json {
    match value {
        Value::Item(text, value) => json!({ "text": text.as_ref(), "value": shown(value) }),
        Value::Int(number) => {
            i64::try_from(number.clone()).map_or_else(|_| json!(number.to_string()), |int| json!(int))
        }
        Value::Float(number) => json!(number),
        Value::Bool(truth) => json!(truth),
        Value::List(items) => items.iter().map(shown).collect(),
        Value::Ratio(_) | Value::Text(_) => json!(value.to_string()),
    }
}
