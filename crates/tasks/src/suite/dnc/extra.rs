//! Sentences that Extra adds. The paper has no code for it: text and Table 1 say that a sentence with a number, sampled from
//! another question of the corpus, is added to the body; the rule here is ours.
use std::sync::LazyLock;

use regex::Regex;

use super::mention::reference_mentions;
use super::problem::Problem;
use super::sentence::sentence_starts;

/// A sentence of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Donor {
    /// The question it comes from.
    pub id: String,
    pub sentence: String,
}

/// Sentences that may be given: the first one of each body, where it has a number in digits and does not begin with a pronoun or
/// a connective.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DonorPool(Vec<Donor>);

/// Words with which a sentence leans on another one.
const LEANING: [&str; 21] = [
    "he", "she", "it", "they", "his", "her", "their", "its", "him", "them", "this", "these", "those", "if", "then",
    "but", "and", "so", "also", "however", "because",
];

/// Capitalised words that begin sentences and name nobody.
const NO_NAMES: [&str; 8] = ["The", "There", "An", "At", "In", "On", "It", "If"];

static NAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b[A-Z][a-z]+\b").expect("the pattern is a constant and the tests use it"));

impl DonorPool {
    /// The donors of these questions, in their order.
    pub fn new<'a>(problems: impl IntoIterator<Item = &'a Problem>) -> Self {
        let donor = |problem: &Problem| {
            let sentence = first_sentence(&problem.body)?;
            let first = sentence.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
            let usable = !reference_mentions(sentence).is_empty() && !LEANING.contains(&first.as_str());
            usable.then(|| Donor { id: problem.id.clone(), sentence: sentence.to_owned() })
        };
        DonorPool(problems.into_iter().filter_map(donor).collect())
    }

    /// Given donors, taken without a check.
    pub fn of(donors: Vec<Donor>) -> Self {
        DonorPool(donors)
    }

    /// Only the donors that state something: a question or a command beside the question would be a second task.
    pub fn statements(mut self) -> Self {
        self.0.retain(|donor| is_statement(&donor.sentence));
        self
    }

    /// All donors.
    pub fn donors(&self) -> &[Donor] {
        &self.0
    }

    /// Indices of the donors that share no capitalised name with the question.
    pub fn eligible(&self, problem: &Problem) -> Vec<usize> {
        let text = format!("{} {}", problem.body, problem.question);
        let names: Vec<&str> = names(&text).collect();
        let strange =
            |donor: &Donor| donor.id != problem.id && !self::names(&donor.sentence).any(|n| names.contains(&n));
        self.0.iter().enumerate().filter(|(_, donor)| strange(donor)).map(|(index, _)| index).collect()
    }
}

/// Words with which a sentence asks or commands.
const ASKING: [&str; 56] = [
    "what",
    "how",
    "who",
    "whom",
    "whose",
    "which",
    "why",
    "is",
    "are",
    "was",
    "were",
    "do",
    "does",
    "did",
    "can",
    "could",
    "will",
    "would",
    "should",
    "find",
    "calculate",
    "compute",
    "evaluate",
    "work",
    "solve",
    "determine",
    "simplify",
    "add",
    "subtract",
    "multiply",
    "divide",
    "convert",
    "round",
    "write",
    "give",
    "express",
    "estimate",
    "count",
    "name",
    "list",
    "show",
    "prove",
    "say",
    "tell",
    "suppose",
    "let",
    "assume",
    "consider",
    "please",
    "answer",
    "state",
    "use",
    "choose",
    "complete",
    "fill",
    "expand",
];

/// True for a sentence that neither asks nor commands.
fn is_statement(sentence: &str) -> bool {
    let first = sentence.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).unwrap_or_default();
    !sentence.contains('?') && !ASKING.contains(&first.to_lowercase().as_str())
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    NAME.find_iter(text).map(|found| found.as_str()).filter(|word| !NO_NAMES.contains(word))
}

/// Byte offset at which a donor goes: behind the body, or before its last clause where that is unfinished and continues in the
/// question (the body ends in a comma).
pub fn insertion_offset(body: &str) -> usize {
    let trimmed = body.trim_end();
    if !trimmed.ends_with(',') {
        return trimmed.len();
    }
    sentence_starts(trimmed).last().copied().unwrap_or(0)
}

pub fn inserted(body: &str, sentence: &str) -> String {
    let trimmed = body.trim_end();
    match (trimmed.is_empty(), trimmed.ends_with(',')) {
        (true, _) => sentence.to_owned(),
        (false, true) => format!("{sentence} "),
        (false, false) => format!(" {sentence}"),
    }
}

/// The first sentence, if it is finished.
fn first_sentence(body: &str) -> Option<&str> {
    let body = body.trim();
    let end = sentence_starts(body).get(1).copied().unwrap_or(body.len());
    let sentence = body.get(..end)?.trim_end();
    sentence.ends_with(['.', '!', '?']).then_some(sentence)
}

#[cfg(test)]
mod tests {
    use super::super::problem::Remainder;
    use super::*;

    fn problem(id: &str, body: &str) -> Problem {
        Problem {
            id: id.into(),
            body: body.into(),
            question: "How many?".into(),
            table: None,
            formula: None,
            answer: "1".into(),
            remainder: Remainder::Exact,
            scale: None,
            solution_type: String::new(),
        }
    }

    #[test]
    fn donors_stand_alone() {
        let pool = DonorPool::new(&[
            problem("a", "Mrs. Gray has 300 lbs. of clay. She sold 20."),
            problem("b", "If you add 45 to it you get 92."),
            problem("c", "Lee had five apples."),
            problem("d", "Kim read 12 pages, and"),
            problem("e", "They saw 4 birds. Ana left."),
        ]);
        let whole = DonorPool::new(&[problem("f", "About 3.5 kg vs. 30 dogs sat. How many?")]);
        assert_eq!(whole.donors()[0].sentence, "About 3.5 kg vs. 30 dogs sat.");
        assert_eq!(pool.donors().len(), 1);
        assert_eq!(pool.donors()[0].sentence, "Mrs. Gray has 300 lbs. of clay.");
        assert!(pool.eligible(&problem("x", "Mrs. Low ran.")).is_empty());
        assert_eq!(pool.eligible(&problem("x", "Mr. Low ran.")), [0]);
        assert!(pool.eligible(&problem("a", "Another text.")).is_empty());
    }

    #[test]
    fn only_statements_are_given_to_other_questions() {
        let first = |body: &str| problem(body, body);
        let bodies = [
            "How many positive divisors does 60 have? Say so.",
            "What is 9 / 4?",
            "Compute 12 + 7.",
            "Find the sum of 3 and 4. Then stop.",
            "Let x be 5.",
            "Is 7 a prime?",
            "Tom asked: \"Are 9 enough?\" Ann left.",
            "Please add 4 and 5.",
            "Gray has 300 cups.",
            "The divisors of 60 are 12.",
            "When Ann was 9, Tom was 4.",
        ];
        let pool = DonorPool::new(&bodies.map(first)).statements();
        let kept: Vec<&str> = pool.donors().iter().map(|donor| donor.sentence.as_str()).collect();
        assert_eq!(kept, ["Gray has 300 cups.", "The divisors of 60 are 12.", "When Ann was 9, Tom was 4."]);
    }

    #[test]
    fn an_unfinished_clause_stays_beside_its_question() {
        let with = |body: &str| {
            let mut text = body.to_owned();
            text.insert_str(insertion_offset(body), &inserted(body, "New 1."));
            text
        };
        assert_eq!(with("A had 2. If he sold 1,"), "A had 2. New 1. If he sold 1,");
        assert_eq!(with("If he sold 1,"), "New 1. If he sold 1,");
        assert_eq!(with("A had 2."), "A had 2. New 1.");
        assert_eq!(with(""), "New 1.");
    }
}
