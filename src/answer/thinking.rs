//! What a model thought and what it said.
use std::borrow::Cow;

/// Opening and closing markers: DeepSeek-R1, QwQ and Qwen3; prompts that ask for the long form; Sky-T1 and OpenThinker;
/// Magistral; Seed-OSS.
const MARKERS: [(&str, &str); 5] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
];

/// A completion without its thinking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts<'a> {
    /// The visible answer; borrowed when it is one piece. Several pieces are joined by newlines, so that no number arises
    /// across a gap.
    pub visible: Cow<'a, str>,
    /// True if anything was thinking, even an empty block.
    pub has_thinking: bool,
    /// True if the completion ends inside its thinking.
    pub unclosed: bool,
}

/// Separates thinking from the visible answer.
///
/// * A block runs from an opening marker to the first closing marker of the same kind; openings inside it are text.
/// * A block that is never closed runs to the end: the model did not get to its answer.
/// * A closing marker without an opening one ends thinking that began with the completion, since many chat templates put
///   the opening marker into the prompt. If the budget ends such a completion inside its thinking there is no marker
///   left to see; callers who know the prompt prepend what [`opened_by`] returns.
pub fn split_thinking(completion: &str) -> Parts<'_> {
    let mut visible: Vec<&str> = Vec::new();
    let mut has_thinking = false;
    let mut unclosed = false;
    let mut rest = completion;
    while let Some((start, marker, kind)) = next_marker(rest) {
        has_thinking = true;
        let after = &rest[start + marker.len()..];
        let (open, close) = MARKERS[kind];
        if marker != open {
            visible.clear();
            rest = after;
            continue;
        }
        visible.push(&rest[..start]);
        match after.find(close) {
            Some(end) => rest = &after[end + close.len()..],
            None => {
                unclosed = true;
                rest = "";
            }
        }
    }
    visible.push(rest);
    visible.retain(|piece| !piece.trim().is_empty());
    let visible = match visible[..] {
        [] => Cow::Borrowed(""),
        [piece] => Cow::Borrowed(piece),
        _ => Cow::Owned(visible.join("\n")),
    };
    Parts { visible, has_thinking, unclosed }
}

/// The first marker of a text: its position, its text and its index in [`MARKERS`]. Only positions of `<` and `[` are
/// looked at, so that many blocks cost no more than one.
fn next_marker(text: &str) -> Option<(usize, &'static str, usize)> {
    text.match_indices(['<', '[']).find_map(|(start, _)| {
        MARKERS.iter().enumerate().find_map(|(kind, &(open, close))| {
            [open, close]
                .into_iter()
                .find(|marker| text[start..].starts_with(marker))
                .map(|marker| (start, marker, kind))
        })
    })
}

/// The opening marker with which a rendered prompt ends, if it ends with one: the completion then begins inside the
/// thinking, and `marker + completion` is what [`split_thinking`] should see.
pub fn opened_by(prompt: &str) -> Option<&'static str> {
    let prompt = prompt.trim_end();
    MARKERS.iter().map(|&(open, _)| open).find(|open| prompt.ends_with(open))
}

/// A completion as one text, thinking included: a line end stands for each marker, so that no number arises across one.
pub fn without_markers(completion: &str) -> Cow<'_, str> {
    let mut text = String::new();
    let mut rest = completion;
    while let Some((start, marker, _)) = next_marker(rest) {
        text.push_str(&rest[..start]);
        text.push('\n');
        rest = &rest[start + marker.len()..];
    }
    if rest.len() == completion.len() {
        return Cow::Borrowed(completion);
    }
    text.push_str(rest);
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(completion: &str) -> (String, bool, bool) {
        let parts = split_thinking(completion);
        (parts.visible.into_owned(), parts.has_thinking, parts.unclosed)
    }

    #[test]
    fn blocks_of_every_kind() {
        for (open, close) in MARKERS {
            assert_eq!(parts(&format!("{open}1{close}2")), ("2".into(), true, false));
            assert_eq!(parts(&format!("{open}1")), (String::new(), true, true));
            assert_eq!(parts(&format!("1{close}2")), ("2".into(), true, false));
            assert_eq!(opened_by(&format!("user 1+1=?\n{open}\n")), Some(open));
        }
        assert_eq!(opened_by("<think>\n\n</think>\n\n"), None);
    }

    #[test]
    fn no_thinking_is_left_alone() {
        for text in ["", " 42 \n", "a < b [1] <thin", "<|im_end|>"] {
            assert_eq!(parts(text), (text.to_owned(), false, false));
        }
    }

    #[test]
    fn several_blocks_do_not_join_numbers() {
        assert_eq!(parts("1<think>x</think>2"), ("1\n2".into(), true, false));
        assert_eq!(parts("<think>a<think>b</think>3"), ("3".into(), true, false));
        assert_eq!(parts("<think>a[/THINK]b</think>3"), ("3".into(), true, false));
        assert_eq!(parts("<think>a</think>b</think>3"), ("3".into(), true, false));
        assert_eq!(parts("<think></think>5<think>6"), ("5".into(), true, true));
    }

    #[test]
    fn markers_alone_can_be_taken_out() {
        assert_eq!(without_markers("<think>1+1</think>2"), "\n1+1\n2");
        assert_eq!(without_markers("[THINK]5"), "\n5");
        assert_eq!(without_markers("a < b"), "a < b");
        assert!(!split_thinking(&without_markers("1<think>x</think>2<think>")).has_thinking);
    }

    #[test]
    fn many_markers_take_linear_time() {
        let text = "<think>1</think>".repeat(20_000) + "9";
        assert_eq!(parts(&text).0, "9");
    }
}
