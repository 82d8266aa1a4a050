//! An item that two runs answered: question, expected answer and both answers.
use crate::marks::visible_text;
use crate::{Flip, ReportError};
use earnest_eval::samples::each_asked;
use earnest_results::store::{Filter, RunRecord, Store};
use earnest_results::{Origin, Sample};

/// Longest question that is given whole, in characters; of longer ones beginning and end.
const LONGEST: usize = 300;

/// Characters of the beginning of a longer question.
const BEGINNING: usize = 60;

/// An item of two runs, as one line each.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct AskedOfBoth {
    pub item: String,
    /// Ids in the baseline and in the run.
    pub ids: [String; 2],
    pub question: String,
    /// Expected answer.
    pub target: String,
    /// Extracted answers of the baseline and of the run; of several samples those of one with the outcome of the flip, if there is one.
    pub answers: [String; 2],
    /// Numbers of these samples.
    pub samples: [u32; 2],
}

/// Returns the question and the answers of a flip as `scorer` reads them, or each run's own one; none if one of the runs does not have them.
pub fn asked_of_both(
    store: &Store,
    runs: &[RunRecord; 2],
    flip: &Flip,
    scorer: Option<&str>,
) -> Result<Option<AskedOfBoth>, ReportError> {
    let (ids, gained) = (flip.ids(), flip.run > flip.baseline);
    let is_right = |sample: &Sample| {
        let score = sample.score.as_ref();
        match scorer {
            Some(scorer) => score.and_then(|score| score.by_scorer(scorer)).is_some_and(|score| score.correct),
            None => score.is_some_and(|score| score.correct),
        }
    };
    let of = |run: &RunRecord, item: &str, wanted: bool| -> Result<Option<(String, Sample)>, ReportError> {
        let filter = Filter { item: Some(item.to_owned()), ..Filter::default() };
        let mut found: Option<(String, Sample)> = None;
        each_asked(store, run, filter, usize::MAX, |asked| {
            let is_better =
                |(_, known): &(String, Sample)| is_right(known) != wanted && is_right(&asked.sample) == wanted;
            if found.as_ref().is_none_or(is_better) {
                let question = asked.question.map(|question| question.item.segments.question);
                found = Some((shortened(&question.unwrap_or_default()), asked.sample));
            }
            Ok::<(), ReportError>(())
        })?;
        Ok(found)
    };
    let (Some((question, mine)), Some((_, theirs))) = (of(&runs[0], ids[0], !gained)?, of(&runs[1], ids[1], gained)?)
    else {
        return Ok(None);
    };
    let answers = [&mine, &theirs].map(|sample| {
        let score = sample.score.as_ref();
        let answer = match scorer {
            Some(scorer) => score.and_then(|score| score.by_scorer(scorer)).and_then(|score| score.answer),
            None => score.and_then(|score| score.answer.clone()),
        };
        // Other tools' logs may have answers of which nobody says what was read.
        let whole = || {
            (runs[0].manifest.settings.origin() == Origin::Log).then(|| visible_text(&sample.completion_text(), None))
        };
        let answer = answer.or_else(whole).filter(|answer| !answer.trim().is_empty());
        answer.map_or_else(|| "nothing".to_owned(), |answer| shortened(&answer))
    });
    let ids = ids.map(str::to_owned);
    let samples = [mine.sample, theirs.sample];
    Ok(Some(AskedOfBoth { item: flip.item.clone(), ids, question, target: shortened(&mine.gold), answers, samples }))
}

/// A text on one line, its middle left out if it is long.
fn shortened(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let characters: Vec<char> = words.chars().collect();
    if characters.len() <= LONGEST {
        return words;
    }
    let end = characters.len() - (LONGEST - BEGINNING);
    let part = |part: &[char]| part.iter().collect::<String>();
    format!("{} ... {}", part(&characters[..BEGINNING]), part(&characters[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_questions_keep_beginning_and_end() {
        assert_eq!(shortened(" one\n two "), "one two");
        let long = shortened(&format!("first {} last = ?", "word ".repeat(100)));
        assert!(long.starts_with("first word") && long.ends_with("last = ?") && long.contains(" ... "), "{long}");
        assert!(long.chars().count() <= LONGEST + 5);
    }
}
