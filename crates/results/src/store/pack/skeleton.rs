//! Prompts as templates around the pieces of an item: chat templates and worked examples are equal for all items of a task, so
//! that a prompt of thousands of tokens is stored as an index.
use serde::{Deserialize, Serialize};

use earnest_tasks::suite::Segments;

/// Pieces of an item in the order of a prompt: raw text, system message, examples, question.
pub(super) struct Pieces<'a>(Vec<&'a str>);

impl<'a> Pieces<'a> {
    /// Returns the pieces of a prompt.
    pub(super) fn of_prompt(segments: &'a Segments) -> Self {
        let mut pieces = vec![segments.raw.as_deref().unwrap_or_default()];
        pieces.extend(Self::of_raw(segments).0);
        Pieces(pieces)
    }

    /// Returns the pieces of a raw text.
    pub(super) fn of_raw(segments: &'a Segments) -> Self {
        let mut pieces = vec![segments.system.as_deref().unwrap_or_default()];
        pieces.extend(segments.shots.iter().flat_map(|shot| [shot.question.trim(), shot.answer.trim()]));
        pieces.push(segments.question.trim());
        Pieces(pieces)
    }
}

/// A text with holes for an item's pieces.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Skeleton {
    /// True if the pieces are JSON-escaped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    escaped: bool,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
enum Part {
    /// A piece of the item, by index.
    Piece(usize),
    Literal(String),
}

impl Skeleton {
    /// Finds the pieces in a text; pieces that the template changed stay literal. The pieces of a conversation, stored as JSON for
    /// endpoints, are escaped.
    pub(super) fn of(text: &str, pieces: &Pieces<'_>) -> Self {
        let [plain, escaped] = [false, true].map(|escaped| Self::with(text, pieces, escaped));
        if escaped.literal_bytes() < plain.literal_bytes() { escaped } else { plain }
    }

    fn with(text: &str, pieces: &Pieces<'_>, escaped: bool) -> Self {
        let mut parts = Vec::new();
        let mut rest = text;
        for (number, piece) in pieces.0.iter().enumerate() {
            let piece = shown(piece, escaped);
            if piece.is_empty() {
                continue;
            }
            if let Some(at) = rest.find(piece.as_ref()) {
                parts.extend((at > 0).then(|| Part::Literal(rest[..at].to_owned())));
                parts.push(Part::Piece(number));
                rest = &rest[at + piece.len()..];
            }
        }
        parts.extend((!rest.is_empty()).then(|| Part::Literal(rest.to_owned())));
        Skeleton { escaped, parts }
    }

    /// Returns the number of bytes outside pieces.
    fn literal_bytes(&self) -> usize {
        let bytes = |part: &Part| if let Part::Literal(literal) = part { literal.len() } else { 0 };
        self.parts.iter().map(bytes).sum()
    }

    /// Returns the text; none if the item lacks a piece.
    pub(super) fn text(&self, pieces: &Pieces<'_>) -> Option<String> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Piece(number) => text.push_str(&shown(pieces.0.get(*number)?, self.escaped)),
            }
        }
        Some(text)
    }
}

fn shown(piece: &str, escaped: bool) -> std::borrow::Cow<'_, str> {
    if escaped { in_json(piece).into() } else { piece.into() }
}

/// Escapes a text as within a JSON string.
fn in_json(text: &str) -> String {
    let quoted = serde_json::to_string(text).expect("a string serialises");
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use earnest_tasks::suite::Shot;

    use super::*;

    fn segments() -> Segments {
        let shots = vec![Shot { question: "1+1?".into(), answer: "2".into() }];
        Segments { shots, system: Some("Be\n\"brief\".".into()), ..Segments::question(" 2+2?\n") }
    }

    fn skeleton(text: &str, segments: &Segments) -> Skeleton {
        let pieces = Pieces::of_prompt(segments);
        let skeleton = Skeleton::of(text, &pieces);
        assert_eq!(skeleton.text(&pieces).as_deref(), Some(text));
        skeleton
    }

    #[test]
    fn any_text_comes_back_and_prompts_of_a_template_share_a_skeleton() {
        let other = Segments { question: "3+40?".into(), ..segments() };
        let chat =
            |segments: &Segments| format!("<s>{}<u>1+1?<a>2<u>{}<a>", "Be\n\"brief\".", segments.question.trim());
        assert_eq!(skeleton(&chat(&segments()), &segments()), skeleton(&chat(&other), &other));
        let json = |segments: &Segments| {
            let turns = [segments.system.as_deref().unwrap_or_default(), "1+1?", "2", &segments.question];
            serde_json::to_string_pretty(&turns).unwrap()
        };
        assert_eq!(skeleton(&json(&segments()), &segments()).parts.len(), 9);
        for text in ["", "nothing of it", "2+2?2+2?", "2", "Be\n\"brief\"."] {
            skeleton(text, &segments());
        }
        let raw = Segments { raw: Some("1+1? 2\n2+2?".into()), ..segments() };
        assert_eq!(skeleton("1+1? 2\n2+2?", &raw).parts, [Part::Piece(0)]);
        assert_eq!(Skeleton::of("x", &Pieces::of_prompt(&raw)).parts, [Part::Literal("x".into())]);
    }
}
