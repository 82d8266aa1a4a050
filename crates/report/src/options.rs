//! Settings that texts name, as options of the program or keys of a study file.

/// A text with the option of each setting that it names: ``the setting `top_k` `` is `--top-k`, ``setting `mode = rf` `` is `--mode rf`.
/// Library crates name settings, because not all who use them have a command line; terminals and pages show options.
pub fn options(text: &str) -> String {
    named(text, |name, value| format!("--{name} {value}").trim_end().to_owned())
}

/// A text with the key of each setting that it names, as study files have them: ``the setting `top_k` `` is `` `top-k` ``.
pub fn keys(text: &str) -> String {
    named(text, |name, value| {
        let name = if name == "prompt" { "prompts" } else { name };
        if value.is_empty() { format!("`{name}`") } else { format!("`{name} = {value}`") }
    })
}

/// A text with what `say` says of the name, with hyphens, and the value of each setting in it, in place of the setting and its article.
fn named(text: &str, say: impl Fn(&str, &str) -> String) -> String {
    const MARK: &str = "setting `";
    let mut said = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(MARK) {
        let (before, found) = (&rest[..start], &rest[start + MARK.len()..]);
        let Some((name, value, after)) = setting(found) else {
            said.push_str(&rest[..start + MARK.len()]);
            rest = found;
            continue;
        };
        said.push_str(["the ", "The "].into_iter().find_map(|article| before.strip_suffix(article)).unwrap_or(before));
        said.push_str(&say(&name.replace('_', "-"), value));
        rest = after;
    }
    said + rest
}

/// Name and value of a setting at the beginning of a text, and what stands behind its backtick; none of a text that names no setting.
fn setting(text: &str) -> Option<(&str, &str, &str)> {
    let (setting, after) = text.split_once('`')?;
    let (name, value) = setting.split_once(" = ").unwrap_or((setting, ""));
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    is_name.then_some((name, value, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_options() {
        for (text, expected) in [
            ("setting `top_k` has no effect", "--top-k has no effect"),
            ("The setting `limit` is 0: raise the setting `n`", "--limit is 0: raise --n"),
            ("add setting `mode = rf` or setting `prompt = chat`", "add --mode rf or --prompt chat"),
            ("a setting `of` two` and setting `open", "a --of two` and setting `open"),
            ("the column `model` of a setting `Two Words`", "the column `model` of a setting `Two Words`"),
        ] {
            assert_eq!(options(text), expected);
        }
    }

    #[test]
    fn settings_are_keys_of_a_study() {
        assert_eq!(keys("the setting `max_tokens` must be at least 1"), "`max-tokens` must be at least 1");
        assert_eq!(keys("add the setting `prompt = chat`"), "add `prompts = chat`");
    }
}
