//! Log-probabilities of a prompt, which a reply repeats (`echo`).
use serde_json::Value;

use super::client::ExchangeError;
use crate::Input;

/// The fields of the protocol that log-likelihoods need.
const NEEDED: &str = "log-likelihoods need /v1/completions with echo and logprobs";

/// A reply that does not hold the log-probabilities; it never will.
fn unusable(what: &str) -> ExchangeError {
    ExchangeError::Refused { status: 200, message: format!("{what}: {NEEDED}") }
}

/// Reads the log-probabilities of the prompt's tokens from `from` on ([`crate::Logprobs::prompt_from`]).
pub(super) fn prompt_logprobs(choice: &Value, input: &Input, from: usize) -> Result<Vec<f32>, ExchangeError> {
    let logprobs = &choice["logprobs"];
    let values = logprobs["token_logprobs"].as_array();
    let values = values.ok_or_else(|| unusable("the reply has no log-probabilities of the prompt"))?;
    let range = match input {
        Input::Ids(ids) => from.max(1)..ids.len(),
        Input::Text(text) => {
            let tokens: Option<Vec<&str>> =
                logprobs["tokens"].as_array().into_iter().flatten().map(Value::as_str).collect();
            let tokens = tokens.filter(|tokens| tokens.len() == values.len());
            let tokens = tokens.ok_or_else(|| unusable("the reply does not name the tokens of the prompt"))?;
            reaching(&tokens, text, from).ok_or_else(|| {
                let message =
                    "the tokens of the reply do not join to the prompt: the setting `tokenizer` sends it as token ids";
                ExchangeError::Refused { status: 200, message: message.to_owned() }
            })?
        }
        Input::Messages(_) => return Err(unusable("a conversation has no log-probabilities")),
    };
    let found = values.get(range).ok_or_else(|| unusable("the reply does not repeat the whole prompt"))?;
    let number = |value: &Value| value.as_f64().map(|value| value as f32);
    let found: Option<Vec<f32>> = found.iter().map(number).collect();
    found.ok_or_else(|| unusable("tokens of the prompt have no log-probability"))
}

/// Returns the indices of the tokens that reach beyond byte `from` of a prompt; none if the tokens do not join to it. Servers put the
/// tokenizer's own beginning before the prompt and may generate a token after it.
fn reaching(tokens: &[&str], prompt: &str, from: usize) -> Option<std::ops::Range<usize>> {
    let start = tokens.concat().find(prompt)?;
    let (border, end) = (start + from, start + prompt.len());
    let mut at = 0;
    let spans: Vec<(usize, usize)> = tokens
        .iter()
        .map(|token| {
            let begin = at;
            at += token.len();
            (begin, at)
        })
        .collect();
    // Parts of a character have no text; they belong to what follows.
    let first = spans.iter().position(|&(begin, token_end)| begin >= border || token_end > border)?;
    let last = spans.iter().rposition(|&(begin, _)| begin < end)?;
    Some(first..last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(tokens: &[&str], values: Value, prompt: &str, from: usize) -> Result<Vec<f32>, ExchangeError> {
        let choice = json!({"logprobs": {"tokens": tokens, "token_logprobs": values}});
        prompt_logprobs(&choice, &Input::Text(prompt.into()), from)
    }

    #[test]
    fn tokens_that_reach_beyond_the_border_count() {
        let values = json!([null, -1.0, -2.0, -3.0]);
        assert_eq!(read(&["The", " sky", " is", " blue"], values.clone(), "The sky is blue", 10).unwrap(), [-3.0]);
        assert_eq!(read(&["The", " sky", " is", " blue"], values.clone(), "The sky is blue", 9).unwrap(), [-2.0, -3.0]);
        // BOS before the prompt, a new token after it.
        assert_eq!(read(&["<s>", "The", " sky", " is"], values.clone(), "The sky", 3).unwrap(), [-2.0]);
        // A character of two tokens, before the border and after it.
        assert_eq!(read(&["a", "", "é", "b"], values.clone(), "aéb", 3).unwrap(), [-3.0]);
        assert_eq!(read(&["a", "b", "", "é"], values.clone(), "abé", 2).unwrap(), [-2.0, -3.0]);
        let first = read(&["a", "b", "c", "d"], values, "abcd", 0).unwrap_err().to_string();
        assert!(first.contains("have no log-probability"), "the first token of all: {first}");
    }

    #[test]
    fn ids_are_counted() {
        let choice = json!({"logprobs": {"token_logprobs": [null, -1.0, -2.5, -9.0]}});
        assert_eq!(prompt_logprobs(&choice, &Input::Ids(vec![5, 6, 7]), 2).unwrap(), [-2.5]);
        let short = prompt_logprobs(&choice, &Input::Ids(vec![5; 6]), 2).unwrap_err().to_string();
        assert!(short.contains("does not repeat the whole prompt"), "{short}");
    }

    #[test]
    fn replies_without_them_say_what_is_needed() {
        for (choice, said) in [
            (json!({"text": "a"}), "/v1/completions with echo and logprobs"),
            (json!({"logprobs": {"token_logprobs": [null, -1.0]}}), "does not name the tokens"),
            (json!({"logprobs": {"token_logprobs": [null, null], "tokens": ["a", "b"]}}), "have no log-probability"),
            (json!({"logprobs": {"token_logprobs": [null, -1.0], "tokens": ["x", "y"]}}), "`tokenizer`"),
        ] {
            let error = prompt_logprobs(&choice, &Input::Text("ab".into()), 1).unwrap_err();
            assert!(!error.may_pass() && error.to_string().contains(said), "{error}");
        }
    }
}
