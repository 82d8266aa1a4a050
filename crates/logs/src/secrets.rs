//! Removal of secrets from settings that logs repeat.
use serde_json::{Map, Value};

/// Members without those that hold secrets: keys, passwords, tokens of access, headers. Names and passwords in addresses and what
/// follows their `?` are cut out.
pub(super) fn without_secrets(members: &Map<String, Value>) -> Map<String, Value> {
    let open = members.iter().filter(|(name, value)| !is_secret(name, value));
    open.map(|(name, value)| (name.clone(), clean(value))).collect()
}

/// A value without secrets.
pub(super) fn clean(value: &Value) -> Value {
    match value {
        Value::Object(members) => without_secrets(members).into(),
        Value::Array(values) => values.iter().map(clean).collect(),
        Value::String(text) => clean_text(text).into(),
        other => other.clone(),
    }
}

fn is_secret(name: &str, value: &Value) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let words =
        ["secret", "password", "passwd", "authorization", "credential", "api_key", "apikey", "access_key", "cookie"];
    let tokens =
        ["token", "hf_token", "api_token", "access_token", "auth_token", "use_auth_token", "bearer_token", "key"];
    let headers = ["header", "headers", "extra_headers", "default_headers", "http_headers", "auth"];
    let named = words.iter().any(|word| name.contains(word)) || tokens.contains(&name.as_str());
    // True, null and numbers say that there is a secret, not what it is.
    headers.contains(&name.as_str())
        || (named && matches!(value, Value::String(_) | Value::Array(_) | Value::Object(_)))
}

fn clean_text(text: &str) -> String {
    let secret = ["sk-", "hf_", "Bearer ", "Basic ", "ghp_", "AKIA"];
    let long = text.len() >= 20 && !text.contains(char::is_whitespace);
    if (long || text.starts_with("Bearer ") || text.starts_with("Basic "))
        && secret.iter().any(|prefix| text.starts_with(prefix))
        && !text.contains('/')
    {
        return "(left out)".to_owned();
    }
    match text.split_once("://") {
        Some((scheme, rest)) if !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || c == '+') => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            let path = path.split('?').next().unwrap_or_default();
            let host = host.split('?').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_left_out_and_settings_are_kept() {
        let settings = json!({
            "api_key": "x", "OPENAI_API_KEY": "x", "token": "hf_abc", "header": {"Authorization": "Bearer x"}, "auth": "u:p",
            "tokenizer": "gpt2", "max_tokens": 3, "add_bos_token": true, "eos_token": "</s>", "token_count": 3, "trust": true,
            "base_url": "https://user:pass@host:8000/v1?api_key=1", "nested": {"hf_token": "x", "a": ["sk-1234567890123456789012"]},
        });
        let clean = without_secrets(settings.as_object().unwrap());
        assert_eq!(
            Value::from(clean),
            json!({
                "tokenizer": "gpt2", "max_tokens": 3, "add_bos_token": true, "eos_token": "</s>", "token_count": 3, "trust": true,
                "base_url": "https://host:8000/v1", "nested": {"a": ["(left out)"]},
            })
        );
    }
}
