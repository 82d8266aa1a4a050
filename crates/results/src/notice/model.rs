//! Notices of models and of the engines that run them.
use std::fmt;

use serde::Serialize;

use super::Level;

/// A fact about a model that its answers may depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum ModelNotice {
    /// The chat template takes no system message.
    SystemInUserTurn,
    /// Devices of a local engine.
    ComputingOn { devices: Vec<String> },
    /// Thinking was disabled, but the template has no switch.
    NoThinkingSwitch,
    /// The file's format quantises more than the weights.
    ActivationsNotQuantised { quantisation: String },
    /// Keys of the configuration that nothing reads for this architecture.
    ConfigIgnored { architecture: String, keys: Vec<String> },
    /// Unknown keys of the configuration that the user lets through.
    ConfigAllowed { keys: Vec<String> },
    /// An entry for several models that does not fit this one.
    ConfigLeftOut { model: String, entry: String, reason: String },
    /// Files that cannot be checked.
    NoDigest { commit: String, files: Vec<String> },
    /// No reference was compared with its answers.
    Unverified { architecture: String },
    /// The API key travels unencrypted.
    KeyUnencrypted { address: String },
}

impl ModelNotice {
    pub(super) fn level(&self) -> Level {
        match self {
            ModelNotice::SystemInUserTurn | ModelNotice::ComputingOn { .. } => Level::Message,
            ModelNotice::NoThinkingSwitch
            | ModelNotice::ActivationsNotQuantised { .. }
            | ModelNotice::ConfigIgnored { .. }
            | ModelNotice::ConfigAllowed { .. }
            | ModelNotice::ConfigLeftOut { .. }
            | ModelNotice::NoDigest { .. }
            | ModelNotice::Unverified { .. }
            | ModelNotice::KeyUnencrypted { .. } => Level::Warning,
        }
    }
}

impl fmt::Display for ModelNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelNotice::SystemInUserTurn => f.write_str(
                "the chat template does not support system messages; the text goes before the first user turn, separated by a blank \
                 line",
            ),
            ModelNotice::ComputingOn { devices } => write!(f, "computing on {}", devices.join("; ")),
            ModelNotice::NoThinkingSwitch => f.write_str(
                "the chat template has no thinking switch: the model may think anyway, within the smaller token budget",
            ),
            ModelNotice::ActivationsNotQuantised { quantisation } => write!(
                f,
                "the weights are those of {quantisation}, but activations, keys and values are not quantised as that format has it: \
                 other engines may answer differently"
            ),
            ModelNotice::ConfigIgnored { architecture, keys } => write!(
                f,
                "config.json sets {}, which transformers does not read for {architecture}: ignored",
                keys.join(", ")
            ),
            ModelNotice::ConfigAllowed { keys } => write!(
                f,
                "config.json sets {}, which is not known here: ignored, as allow-config says, and recorded",
                keys.join(", ")
            ),
            ModelNotice::ConfigLeftOut { model, entry, reason } => {
                write!(f, "{model}: the setting `allow_config = {entry}` is left out here, because {reason}")
            }
            ModelNotice::NoDigest { commit, files } => write!(
                f,
                "no local digest to check {} of {commit} against; `earnest models verify --remote {commit}` asks the hub",
                files.join(", ")
            ),
            ModelNotice::Unverified { architecture } => write!(
                f,
                "{architecture} is computed by mistral.rs alone: not verified by us, no reference was compared with its answers"
            ),
            ModelNotice::KeyUnencrypted { address } => write!(f, "the API key is sent unencrypted to {address}"),
        }
    }
}
