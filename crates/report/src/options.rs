//! Settings that texts name, as options of the program.

/// A text with the option of each setting that it names: ``the setting `top_k` `` is `--top-k`, ``setting `mode = rf` `` is `--mode rf`.
/// Library crates name settings, because not all who use them have a command line; terminals and pages show options.
pub fn options(text: &str) -> String {
    const MARK: &str = "setting `";
    let mut said = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(MARK) {
        let (before, named) = (&rest[..start], &rest[start + MARK.len()..]);
        let option = named.split_once('`').and_then(|(setting, after)| Some((option_of(setting)?, after)));
        let Some((option, after)) = option else {
            said.push_str(&rest[..start + MARK.len()]);
            rest = named;
            continue;
        };
        said.push_str(["the ", "The "].into_iter().find_map(|article| before.strip_suffix(article)).unwrap_or(before));
        said.push_str(&option);
        rest = after;
    }
    said + rest
}

/// The option of a setting, with its value if one is given; none of a text that names no setting.
fn option_of(setting: &str) -> Option<String> {
    let (name, value) = setting.split_once(" = ").map_or((setting, ""), |(name, value)| (name, value));
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    is_name.then(|| format!("--{} {value}", name.replace('_', "-")).trim_end().to_owned())
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
}
