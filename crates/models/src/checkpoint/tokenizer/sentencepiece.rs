//! Merges of a SentencePiece vocabulary, derived from its scores.
use std::collections::HashMap;

/// Returns the merges of a vocabulary by rank. Every way to split a piece into two pieces is a merge, ranked by the piece's score,
/// then by the length of the left and of the right part, longest first, as in `transformers`' converter
/// (`SentencePieceExtractor`). `merges` selects the ids that take part: control, byte and user-defined tokens do not.
pub(in crate::checkpoint) fn merges_from_scores(
    tokens: &[String],
    scores: &[f32],
    merges: impl Fn(usize) -> bool,
) -> Vec<(String, String)> {
    let ids: HashMap<&str, usize> =
        tokens.iter().enumerate().rev().filter(|(id, _)| merges(*id)).map(|(id, token)| (token.as_str(), id)).collect();
    // (score, characters left, characters right, left, right); compact, because a vocabulary has about a million of them.
    let mut ranked: Vec<(f32, u32, u32, usize, usize)> = Vec::new();
    for (token, score) in tokens.iter().zip(scores) {
        if !ids.contains_key(token.as_str()) {
            continue;
        }
        let begin = ranked.len();
        let length = token.chars().count() as u32;
        for (left_length, (cut, _)) in token.char_indices().enumerate().skip(1) {
            let (left, right) = token.split_at(cut);
            if let (Some(&l), Some(&r)) = (ids.get(left), ids.get(right)) {
                let left_length = left_length as u32;
                ranked.push((*score, left_length, length - left_length, l, r));
            }
        }
        if let Some(own) = ranked.get_mut(begin..) {
            own.sort_by_key(|m| (m.3, m.4));
        }
    }
    // Stable: equal ranks keep the order of the vocabulary.
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)).then(b.2.cmp(&a.2)));
    let text = |id: usize| tokens.get(id).cloned().unwrap_or_default();
    ranked.into_iter().map(|(.., l, r)| (text(l), text(r))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_follow_the_scores() {
        let tokens: Vec<String> = ["a", "b", "ab", "abb", "<x>", "é", "éa"].map(String::from).into();
        let scores = [0.0, 0.0, -1.0, -0.5, 0.0, 0.0, -1.0];
        let merges = merges_from_scores(&tokens, &scores, |id| id != 4);
        let expected = [("ab", "b"), ("a", "b"), ("é", "a")];
        assert_eq!(merges, expected.map(|(l, r)| (l.to_string(), r.to_string())));
    }

    #[test]
    fn tokens_that_do_not_take_part_form_nothing() {
        let tokens: Vec<String> = ["a", "aa", "aaa"].map(String::from).into();
        let merges = merges_from_scores(&tokens, &[0.0; 3], |id| id != 1);
        assert!(merges.is_empty(), "{merges:?}");
    }
}
