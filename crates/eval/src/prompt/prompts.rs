//! Prompts as `--prompt` and study files name them.
use earnest_results::ModeRequest;

/// Prompt format (`auto`, `chat`, `raw`) and, for suites with several prompts, their names: one list of both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompts {
    /// The format, if one is named; otherwise the suite's default applies.
    pub mode: Option<ModeRequest>,
    /// All other words, for the suite to check.
    pub names: Vec<String>,
}

impl std::str::FromStr for Prompts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut prompts = Prompts::default();
        for word in text.split(',').map(str::trim) {
            let mode = match word {
                "" => return Err("empty name: write e.g. auto, chat, raw or a list without gaps".into()),
                "auto" => ModeRequest::Auto,
                "chat" => ModeRequest::Chat,
                "raw" => ModeRequest::Raw,
                name => {
                    prompts.names.push(name.to_owned());
                    continue;
                }
            };
            if prompts.mode.is_some_and(|earlier| earlier != mode) {
                return Err("auto, chat and raw exclude each other".into());
            }
            prompts.mode = Some(mode);
        }
        Ok(prompts)
    }
}

/// The words of [`Prompts::from_str`](std::str::FromStr::from_str); `auto` where none is given.
impl std::fmt::Display for Prompts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mode = self.mode.map(|mode| match mode {
            ModeRequest::Auto => "auto",
            ModeRequest::Chat => "chat",
            ModeRequest::Raw => "raw",
        });
        let words: Vec<&str> = mode.into_iter().chain(self.names.iter().map(String::as_str)).collect();
        formatter.write_str(if words.is_empty() { "auto".to_owned() } else { words.join(",") }.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_modes_and_names() {
        let parsed = |text: &str| text.parse::<Prompts>();
        assert_eq!(parsed("chat").unwrap(), Prompts { mode: Some(ModeRequest::Chat), names: vec![] });
        let both = Prompts { mode: Some(ModeRequest::Raw), names: vec!["gsm".into(), "all".into()] };
        assert_eq!(parsed("gsm, raw,all").unwrap(), both);
        assert_eq!(both.to_string(), "raw,gsm,all");
        assert_eq!(Prompts::default().to_string(), "auto");
        assert!(parsed("chat,raw").is_err() && parsed("").is_err() && parsed("gsm,,raw").is_err());
    }
}
