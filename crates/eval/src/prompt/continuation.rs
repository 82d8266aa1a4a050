//! Given continuations of a prompt, tokenised at the border as lm-evaluation-harness does.
use super::prompter::tokenise;
use super::{PromptError, PromptSource, Prompter, Rendered};
use earnest_engine::Input;
use earnest_results::Mode;
use earnest_tasks::suite::Item;

/// A context and a continuation whose log-likelihood is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Continuation {
    /// Prompt and continuation.
    pub whole: Input,
    /// First token of the continuation, or first byte where the endpoint tokenises.
    pub from: usize,
}

impl Continuation {
    /// Token ids of the continuation; none where the endpoint tokenises.
    pub fn ids(&self) -> &[u32] {
        match &self.whole {
            Input::Ids(ids) => ids.get(self.from..).unwrap_or_default(),
            Input::Text(_) | Input::Messages(_) => &[],
        }
    }

    /// Number of tokens of the context; none where the endpoint tokenises.
    pub fn context_tokens(&self) -> Option<usize> {
        matches!(self.whole, Input::Ids(_)).then_some(self.from)
    }

    /// Number of tokens of both; none where the endpoint tokenises.
    pub fn tokens(&self) -> Option<usize> {
        match &self.whole {
            Input::Ids(ids) => Some(ids.len()),
            Input::Text(_) | Input::Messages(_) => None,
        }
    }
}

impl Prompter<'_> {
    /// Renders an item's prompt, and its continuations after it.
    pub fn render_item(&self, item: &Item) -> Result<(Rendered, Vec<Continuation>), PromptError> {
        let rendered = self.render(&item.segments)?;
        let continuations = match item.continuations.is_empty() {
            true => Vec::new(),
            false => self.continuations(&rendered.text, &item.continuations)?,
        };
        Ok((rendered, continuations))
    }

    fn continuations(&self, prompt: &str, continuations: &[String]) -> Result<Vec<Continuation>, PromptError> {
        // Spaces at the end belong to the continuation, because most vocabularies have tokens that begin with them.
        let context = prompt.trim_end_matches(is_space);
        let spaces = &prompt[context.len()..];
        let whole = |continuation: &String| format!("{context}{spaces}{continuation}");
        if self.source().tokenises() {
            let context = tokenise(self.source(), context.to_owned())?.ids;
            let one = |continuation| after(self.source(), &context, whole(continuation), continuation);
            return continuations.iter().map(one).collect();
        }
        if self.mode() == Mode::Chat {
            return Err(PromptError::NoBorder);
        }
        let one = |continuation| Continuation { whole: Input::Text(whole(continuation)), from: context.len() };
        Ok(continuations.iter().map(one).collect())
    }
}

/// Python's `str.isspace`.
fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\x1c'..='\x1f').contains(&character)
}

/// Returns the context's own tokens, followed by those of the whole text after as many.
fn after(
    source: &dyn PromptSource,
    context: &[u32],
    whole: String,
    continuation: &str,
) -> Result<Continuation, PromptError> {
    let whole = tokenise(source, whole)?.ids;
    let missing = || PromptError::NoContinuation(continuation.to_owned());
    if context.is_empty() {
        let start = source.text_start().ok_or(PromptError::NoContext)?;
        let ids = if whole.first() == Some(&start) { whole } else { [&[start], &whole[..]].concat() };
        return if ids.len() > 1 { Ok(Continuation { whole: Input::Ids(ids), from: 1 }) } else { Err(missing()) };
    }
    let rest = whole.get(context.len()..).filter(|rest| !rest.is_empty()).ok_or_else(missing)?;
    Ok(Continuation { whole: Input::Ids([context, rest].concat()), from: context.len() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::Remote;
    use earnest_models::checkpoint::ChatMessage;
    use earnest_results::ModeRequest;
    use earnest_tasks::suite::Segments;

    /// One id a word with the spaces before it; spaces at the end are a word. BOS is 1, end of text 2.
    struct Words {
        adds_bos: bool,
        chat: bool,
    }

    impl PromptSource for Words {
        fn encode(&self, text: &str) -> Result<Vec<u32>, PromptError> {
            let mut ids: Vec<u32> = Vec::new();
            let mut open = false;
            for character in text.chars() {
                let space = is_space(character);
                if ids.is_empty() || (space && !open) {
                    ids.push(100);
                }
                open = space;
                let last = ids.last_mut().unwrap();
                *last = last.wrapping_mul(31).wrapping_add(u32::from(character));
            }
            Ok(ids)
        }
        fn bos(&self) -> Option<u32> {
            self.adds_bos.then_some(1)
        }
        fn adds_bos(&self) -> bool {
            self.adds_bos
        }
        fn text_start(&self) -> Option<u32> {
            self.bos().or(Some(2))
        }
        fn has_template(&self) -> bool {
            self.chat
        }
        fn apply_template(&self, messages: &[ChatMessage]) -> Result<String, PromptError> {
            Ok(format!("<user> {} <assistant>\n", messages.last().unwrap().content))
        }
    }

    fn continued(
        source: &dyn PromptSource,
        question: &str,
        continuations: &[&str],
    ) -> Result<Vec<Continuation>, PromptError> {
        let item = Item {
            segments: Segments::question(question),
            continuations: continuations.iter().map(ToString::to_string).collect(),
            ..Item::plain("i", "t", "", "")
        };
        Prompter::new(source, ModeRequest::Auto)?.render_item(&item).map(|(_, continuations)| continuations)
    }

    fn ids(words: &Words, text: &str) -> Vec<u32> {
        tokenise(words, text.to_owned()).unwrap().ids
    }

    #[test]
    fn spaces_at_the_end_of_the_context_belong_to_the_continuation() {
        for adds_bos in [false, true] {
            let words = Words { adds_bos, chat: false };
            let found = continued(&words, "The sky is  ", &["blue", "dark grey"]).unwrap();
            let context = 3 + usize::from(adds_bos);
            assert_eq!(found[0], Continuation { whole: Input::Ids(ids(&words, "The sky is  blue")), from: context });
            assert_eq!(found[1].tokens(), Some(context + 2));
            assert_eq!(found, continued(&words, "The sky is", &["  blue", "  dark grey"]).unwrap());
        }
    }

    #[test]
    fn the_end_of_a_chat_template_is_a_context_like_any_other() {
        let words = Words { adds_bos: false, chat: true };
        let found = continued(&words, "1+1?", &["2"]).unwrap();
        let whole = ids(&words, "<user> 1+1? <assistant>\n2");
        assert_eq!(found, [Continuation { from: whole.len() - 1, whole: Input::Ids(whole) }]);
    }

    #[test]
    fn a_border_inside_a_token_cuts_by_the_number_of_tokens() {
        let words = Words { adds_bos: false, chat: false };
        // The context has 2 tokens; the whole has 3, and its second is another one.
        let found = continued(&words, "a b", &["c d"]).unwrap();
        let (context, whole) = (ids(&words, "a b"), ids(&words, "a bc d"));
        assert_eq!(found, [Continuation { whole: Input::Ids(vec![context[0], context[1], whole[2]]), from: 2 }]);
        assert_eq!(continued(&words, "a b", &["c"]), Err(PromptError::NoContinuation("c".into())));
        assert_eq!(continued(&words, "a b", &[""]), Err(PromptError::NoContinuation(String::new())));
    }

    #[test]
    fn without_a_context_the_text_follows_its_start() {
        for (adds_bos, start) in [(true, 1), (false, 2)] {
            let words = Words { adds_bos, chat: false };
            let found = continued(&words, " \n", &["a b"]).unwrap();
            let Input::Ids(ids) = &found[0].whole else { panic!("not ids") };
            assert_eq!((ids[0], ids.len(), found[0].from), (start, 3, 1));
        }
    }

    #[test]
    fn endpoints_that_tokenise_get_the_border_in_bytes() {
        let found = continued(&Remote::Text, "é ", &["1"]).unwrap();
        assert_eq!(found, [Continuation { whole: Input::Text("é 1".into()), from: 2 }]);
        assert_eq!(continued(&Remote::Messages, "é ", &["1"]), Err(PromptError::NoBorder));
    }
}
