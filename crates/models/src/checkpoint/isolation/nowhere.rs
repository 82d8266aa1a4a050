//! Stand-in for workers on systems without them.
use super::super::template_engine::{Conversation, TemplateFailure, TemplateText};

/// No value: there are no workers here.
#[derive(Debug)]
pub(crate) enum TemplateProcess {}

impl TemplateProcess {
    /// Gives the template back.
    pub(crate) fn new(text: TemplateText) -> Result<TemplateProcess, TemplateText> {
        Err(text)
    }

    /// Unreachable: the type has no value.
    pub(crate) fn render(&self, _: &Conversation) -> Result<String, TemplateFailure> {
        match *self {}
    }
}
