//! Endpoints as the command line and study files name them.
use std::path::PathBuf;

use earnest_engine::endpoint::Api;
use earnest_models::hub::HubSettings;

use super::{EndpointSource, LocatedModel, address};
use crate::EvalError;
use earnest_results::ModeRequest;

/// An endpoint as named by the user; its API follows from the prompt if none is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointRequest {
    /// Address, e.g. `http://127.0.0.1:8000/v1`.
    pub url: String,
    /// The model's name at the endpoint; none for its only one.
    pub model: Option<String>,
    pub api: Option<Api>,
    /// Path or name of the model whose tokenizer renders prompts here.
    pub tokenizer: Option<PathBuf>,
    /// Context length in tokens, if the endpoint does not report it.
    pub context: Option<usize>,
}

impl EndpointRequest {
    /// Returns the API for a prompt mode.
    ///
    /// # Errors
    /// If the API and the prompt do not fit.
    pub fn api(&self, prompt: ModeRequest) -> Result<Api, EvalError> {
        let here = self.tokenizer.is_some();
        let api = self.api.unwrap_or(match prompt {
            ModeRequest::Raw => Api::Completions,
            _ if here => Api::Completions,
            _ => Api::Chat,
        });
        match (api, prompt) {
            (Api::Chat, _) if here => {
                Err(EvalError::setting("the setting `api = chat` sends messages and has no use for the setting `tokenizer`"))
            }
            (Api::Chat, ModeRequest::Raw) => {
                Err(EvalError::setting("the setting `api = chat` sends messages, which the setting `prompt = raw` has none of")
                    .hint("use the setting `api = completions`"))
            }
            (Api::Completions, ModeRequest::Chat) if !here => Err(EvalError::setting(
                "the setting `prompt = chat` with the setting `api = completions` renders prompts here, which needs the setting `tokenizer`",
            )
            .hint("or use the setting `api = chat`, which leaves the chat template to the endpoint")),
            _ => Ok(api),
        }
    }

    /// Returns the endpoint for a prompt mode; connects to nothing.
    ///
    /// # Errors
    /// A wrong address, a tokenizer that is not found, or an API that does not fit the prompt.
    pub fn source(&self, prompt: ModeRequest, hub: &HubSettings) -> Result<EndpointSource, EvalError> {
        let api = self.api(prompt)?;
        if self.context == Some(0) {
            return Err(EvalError::setting("the setting `context = 0` leaves no room for a prompt"));
        }
        let tokenizer = self.tokenizer.as_deref().map(|path| LocatedModel::find_tokenizer(path, hub)).transpose()?;
        let address = address(&self.url, hub)?;
        Ok(EndpointSource { address, model: self.model.clone(), api, tokenizer, context: self.context })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_follows_the_prompt() {
        let asked = |api, tokenizer: Option<&str>| EndpointRequest {
            url: "http://127.0.0.1:1/v1".into(),
            model: None,
            api,
            tokenizer: tokenizer.map(PathBuf::from),
            context: None,
        };
        assert_eq!(asked(None, None).api(ModeRequest::Raw).unwrap(), Api::Completions);
        assert_eq!(asked(None, None).api(ModeRequest::Auto).unwrap(), Api::Chat);
        assert_eq!(asked(None, Some("m")).api(ModeRequest::Chat).unwrap(), Api::Completions);
        assert!(asked(Some(Api::Chat), None).api(ModeRequest::Raw).is_err());
        assert!(asked(Some(Api::Chat), Some("m")).api(ModeRequest::Auto).is_err());
        assert!(asked(Some(Api::Completions), None).api(ModeRequest::Chat).is_err());
    }
}
