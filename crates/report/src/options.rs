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

/// A text with an option behind the commands in it that read stored runs: those between backticks, or the text as a whole.
pub fn in_folder(text: &str, option: &str) -> String {
    let whole = |command: &str| match reads_results(command) {
        true => format!("{command}{option}"),
        false => command.to_owned(),
    };
    if text.starts_with("earnest ") && !text.contains(['`', '\n']) {
        return whole(text);
    }
    // A name with a backtick: nothing tells commands from the text between them.
    if text.matches('`').count() % 2 == 1 {
        return text.to_owned();
    }
    let parts = text.split('`').enumerate();
    parts.map(|(index, part)| if index % 2 == 1 { whole(part) } else { part.to_owned() }).collect::<Vec<_>>().join("`")
}

/// True of a command that can be run as it stands, or with a name in place of its capitals, on stored runs, and names no folder. The mere
/// name of a command, such as `earnest samples`, is none.
fn reads_results(command: &str) -> bool {
    let mut words = command.split_whitespace();
    if words.next() != Some("earnest") || command.contains("--results") {
        return false;
    }
    let name = words.next().unwrap_or_default();
    let rest: Vec<&str> = words.collect();
    match (name, rest.as_slice()) {
        ("resume" | "merge", _) | ("runs", ["list" | "verify", ..] | [_, _, ..]) => true,
        // `earnest run --from` is the name of an option.
        ("run", [.., last]) => *last != "--from",
        ("profile", [.., last]) => *last != "--compare",
        ("samples" | "compare" | "score" | "export" | "report", [first, ..]) => !first.starts_with('-'),
        ("stats", rest) => rest.contains(&"--run"),
        _ => false,
    }
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

    #[test]
    fn offered_commands_name_the_folder() {
        let with = |text| in_folder(text, " --results r");
        for (text, expected) in [
            (
                "the same command continues the run, and so does `earnest resume a-1`",
                "the same command continues the run, and so does `earnest resume a-1 --results r`",
            ),
            ("`earnest samples a-1 --wrong` shows them", "`earnest samples a-1 --wrong --results r` shows them"),
            ("`earnest run --from a-1` repeats it", "`earnest run --from a-1 --results r` repeats it"),
            ("`earnest runs list` lists them", "`earnest runs list --results r` lists them"),
            ("`earnest runs verify` scores again", "`earnest runs verify --results r` scores again"),
            ("earnest run --from a-1", "earnest run --from a-1 --results r"),
        ] {
            assert_eq!(with(text), expected);
        }
        for plain in [
            "`earnest samples` shows both",
            "`earnest runs delete` and `earnest run --from` first read it",
            "`earnest profile --compare` asks more",
            "`earnest models list` lists models",
            "`earnest runs list --results s` lists them",
            "a ` b `earnest resume` c",
            "give more of it\n  earnest runs show a-1  # samples 1",
        ] {
            assert_eq!(with(plain), plain);
        }
    }
}
