//! Thinking apart from the answer.
use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

/// Markers of thinking in a completion.
struct Markup {
    open: &'static str,
    close: &'static str,
    /// The closing marker means nothing else, so that one without an opening marker ends thinking that the prompt opened.
    closes_alone: bool,
}

/// DeepSeek-R1, QwQ, Qwen3 and most others; prompts that ask for a long form; Sky-T1 and OpenThinker; Magistral; Seed-OSS; Kimi;
/// Command A; gpt-oss; Gemma's reserved tokens; tags that prompts and fine-tunes use.
const MARKERS: &str = "<think> </think> <thinking> </thinking> <|begin_of_thought|> <|end_of_thought|> [THINK] [/THINK] \
     <seed:think> </seed:think> \u{25c1}think\u{25b7} \u{25c1}/think\u{25b7} <|START_THINKING|> <|END_THINKING|> \
     <|channel|>analysis<|message|> <|end|> <|channel|>commentary<|message|> <|end|> <unused94>thought <unused95> \
     <thought> </thought> <thoughts> </thoughts> <reasoning> </reasoning> <reflection> </reflection> \
     <scratchpad> </scratchpad> <analysis> </analysis>";

static MARKUPS: LazyLock<Vec<Markup>> = LazyLock::new(|| {
    let markers: Vec<&str> = MARKERS.split(' ').collect();
    let markup = |pair: &[&'static str]| Markup { open: pair[0], close: pair[1], closes_alone: pair[1] != "<|end|>" };
    markers.chunks_exact(2).map(markup).collect()
});

/// Beginning of an answer of gpt-oss; ends a channel that was not ended.
const FINAL_CHANNEL: &str = "<|channel|>final<|message|>";

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

/// Visible pieces of a completion, in bytes and in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visible {
    /// The pieces that are not blank.
    pub pieces: Vec<Range<usize>>,
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
/// * gpt-oss: of the channels only `final` is visible, also where a decoder dropped the special tokens
///   (`analysisWe need...assistantfinal3.6`).
pub fn split_thinking(completion: &str) -> Parts<'_> {
    let shown = visible(completion);
    Parts { visible: shown.text(completion), has_thinking: shown.has_thinking, unclosed: shown.unclosed }
}

impl Visible {
    /// The pieces of the completion as one text, with a line end between two.
    pub fn text<'c>(&self, completion: &'c str) -> Cow<'c, str> {
        match &self.pieces[..] {
            [] => Cow::Borrowed(""),
            [piece] => Cow::Borrowed(&completion[piece.clone()]),
            pieces => Cow::Owned(pieces.iter().map(|piece| &completion[piece.clone()]).collect::<Vec<_>>().join("\n")),
        }
    }
}

/// The visible pieces of a completion, by the rules of [`split_thinking`].
pub fn visible(completion: &str) -> Visible {
    let mut found = Visible { pieces: Vec::new(), has_thinking: false, unclosed: false };
    let mut at = 0;
    if let Some(answer) = bare_channels(completion) {
        found.has_thinking = true;
        found.unclosed = answer.is_none();
        at = answer.unwrap_or(completion.len());
    }
    while let Some((span, part)) = next_marker(completion, at) {
        found.has_thinking = true;
        match part {
            Part::Close => found.pieces.clear(),
            _ => found.pieces.push(at..span.start),
        }
        at = span.end;
        let Part::Open(markup) = part else { continue };
        let rest = &completion[at..];
        let close = rest.find(markup.close).map(|start| (start, markup.close.len()));
        // A channel also ends where the next one begins.
        let within = &rest[..close.map_or(rest.len(), |(start, _)| start)];
        let next = (!markup.closes_alone).then(|| within.find(FINAL_CHANNEL)).flatten().map(|start| (start, 0));
        found.unclosed |= next.or(close).is_none();
        at += next.or(close).map_or(rest.len(), |(start, length)| start + length);
    }
    found.pieces.push(at..completion.len());
    found.pieces.retain(|piece| !completion[piece.clone()].trim().is_empty());
    found
}

/// Finds the answer in a completion of gpt-oss whose special tokens were dropped: none if it has not begun. Other
/// completions are no such ones.
fn bare_channels(completion: &str) -> Option<Option<usize>> {
    const FINAL: &str = "assistantfinal";
    let text = completion.trim_start();
    if text.starts_with(FINAL) {
        return Some(Some(completion.len() - text.len() + FINAL.len()));
    }
    let rest = text.strip_prefix("analysis")?;
    if !rest.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit()) {
        return None;
    }
    Some(completion.find(FINAL).map(|at| at + FINAL.len()))
}

/// The part that a marker in a text plays.
enum Part {
    Open(&'static Markup),
    Close,
    Final,
}

/// The first marker from a position on: its bytes and its part. Only characters that begin one are looked at, so that many
/// blocks cost no more than one.
fn next_marker(text: &str, from: usize) -> Option<(Range<usize>, Part)> {
    text[from..].match_indices(['<', '[', '\u{25c1}']).find_map(|(offset, _)| {
        let start = from + offset;
        let rest = &text[start..];
        let marker = |part: Part, text: &str| Some((start..start + text.len(), part));
        if rest.starts_with(FINAL_CHANNEL) {
            return marker(Part::Final, FINAL_CHANNEL);
        }
        MARKUPS.iter().find_map(|markup| match markup {
            _ if rest.starts_with(markup.open) => marker(Part::Open(markup), markup.open),
            _ if markup.closes_alone && rest.starts_with(markup.close) => marker(Part::Close, markup.close),
            _ => None,
        })
    })
}

/// The opening marker with which a rendered prompt ends, if it ends with one: the completion then begins inside the
/// thinking, and `marker + completion` is what [`split_thinking`] should see.
pub fn opened_by(prompt: &str) -> Option<&'static str> {
    let prompt = prompt.trim_end();
    MARKUPS.iter().map(|markup| markup.open).find(|open| prompt.ends_with(open))
}

/// A completion as one text, thinking included: a line end stands for each marker, so that no number arises across one.
pub fn without_markers(completion: &str) -> Cow<'_, str> {
    let mut text = String::new();
    let mut at = 0;
    while let Some((span, _)) = next_marker(completion, at) {
        text.push_str(&completion[at..span.start]);
        text.push('\n');
        at = span.end;
    }
    if at == 0 {
        return Cow::Borrowed(completion);
    }
    text.push_str(&completion[at..]);
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
        for &Markup { open, close, closes_alone } in MARKUPS.iter() {
            assert_eq!(parts(&format!("{open}1{close}2")), ("2".into(), true, false));
            assert_eq!(parts(&format!("{open}1")), (String::new(), true, true));
            if closes_alone {
                assert_eq!(parts(&format!("1{close}2")), ("2".into(), true, false));
            }
            assert_eq!(opened_by(&format!("user 1+1=?\n{open}\n")), Some(open));
        }
        assert_eq!(opened_by("<think>\n\n</think>\n\n"), None);
    }

    #[test]
    fn blocks_channels_and_plain_text() {
        // A completion and what is visible of it, behind a `t` where there is thinking and a `u` where it is not closed.
        const CASES: &str = "<|channel|>analysis<|message|>1+1=2<|end|><|start|>assistant<|channel|>final<|message|>3<|return|>⇒\
             t:<|start|>assistant\n3<|return|>¦<|channel|>final<|message|>7⇒t:7¦\
             <|channel|>analysis<|message|>1<|channel|>final<|message|>2⇒t:2¦analysisWe need 2+2 = 4.assistantfinal5⇒t:5¦\
             analysisWe need 2+2⇒tu:¦analysis of 2+2⇒:analysis of 2+2¦4<|end|>⇒:4<|end|>¦\
             ⇒:¦ 42 \n⇒: 42 \n¦a < b [1] <thin⇒:a < b [1] <thin¦<|im_end|>⇒:<|im_end|>¦\
             1<think>x</think>2⇒t:1\n2¦<think>a<think>b</think>3⇒t:3¦<think>a[/THINK]b</think>3⇒t:3¦\
             <think>a</think>b</think>3⇒t:3¦<think></think>5<think>6⇒tu:5";
        for case in CASES.split('¦') {
            let (completion, expected) = case.split_once('⇒').unwrap();
            let (flags, visible) = expected.split_once(':').unwrap();
            assert_eq!(parts(completion), (visible.into(), flags.contains('t'), flags.contains('u')), "{case}");
        }
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
        let text = "<think>".repeat(200_000);
        assert_eq!(parts(&text).0, "");
    }
}
