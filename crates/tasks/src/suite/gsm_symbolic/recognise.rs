//! Are these the published sets? Nobody may commit them, but facts about them are known.
use crate::counted;
use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::large_numbers::integers;
use super::rows::{Row, Set};
use earnest_stats::{KsMethod, kolmogorov_smirnov};

/// Facts about 98 published questions; see the file's head.
const FINGERPRINTS: &str = include_str!("fingerprints.txt");

/// Hashes of the 100 originals; see the file's head.
const ORIGINALS: &str = include_str!("originals.txt");

/// SHA-256 over the published p2 set: of every row `<id> <instance> <question>` and a newline, by id and instance.
const P2: &str = "3dea600a24d2582c83da5b00c172836ed022da097b0d59cfb1516511050be9e1";

/// Describes the wanted sets, a sentence each. `main` is the main set's identity, if that was read.
pub(super) fn sentences(rows: &BTreeMap<Set, Vec<Row>>, wanted: &[Set], main: Option<&Identity>) -> Vec<String> {
    let sentence = |(set, rows): (&Set, &Vec<Row>)| match set {
        Set::Base => Some(base(rows)),
        Set::Main => main.map(Identity::sentence),
        Set::P1 => Some(format!(
            "p1 has {}; nothing is known here by which to recognise the published set, only that its content has the SHA-256 \
             {}....",
            size(rows),
            &content(rows)[..12],
        )),
        Set::P2 if content(rows) == P2 => Some(format!("p2 is the published set ({}).", size(rows))),
        Set::P2 => Some(format!("p2 is not the published set ({}); its accuracies are not comparable.", size(rows))),
    };
    rows.iter().filter(|(set, _)| wanted.contains(set)).filter_map(sentence).collect()
}

/// True if a note of a summary is about the identity of the questions.
pub fn describes_questions(note: &str) -> bool {
    ["The originals are ", "The variants are ", "p1 has ", "p2 is "].iter().any(|beginning| note.starts_with(beginning))
}

fn base(rows: &[Row]) -> String {
    let known: HashMap<u32, &str> = ORIGINALS.lines().filter_map(original).collect();
    let matches = |row: &&Row| {
        let hash = earnest_digest::hex(&earnest_digest::sha256(row.question.as_bytes()));
        known.get(&row.original_id).is_some_and(|known| hash.starts_with(known))
    };
    let matching = rows.iter().filter(matches).count();
    match (matching, rows.len()) {
        (all, rows) if all == rows && all == known.len() => {
            format!("The originals are GSM-Base: all {all} known GSM8K questions.")
        }
        (all, rows) if all == rows => {
            format!("The originals are {all} of the {} GSM8K questions of GSM-Base.", known.len())
        }
        (matching, rows) => {
            format!("The originals are not GSM-Base: {matching} of {rows} are among its {} questions.", known.len())
        }
    }
}

fn size(rows: &[Row]) -> String {
    let mut templates: Vec<u32> = rows.iter().map(|row| row.id).collect();
    templates.dedup();
    format!("{} of {}", counted(rows.len(), "question"), counted(templates.len(), "template"))
}

fn content(rows: &[Row]) -> String {
    let lines = rows.iter().map(|row| format!("{} {} {}\n", row.id, row.instance, row.question));
    earnest_digest::hex(&earnest_digest::sha256(lines.collect::<String>().as_bytes()))
}

/// A line of [`ORIGINALS`]: the index among GSM8K's test questions and the hash.
fn original(line: &'static str) -> Option<(u32, &'static str)> {
    let (index, hash) = line.split_once(' ')?;
    Some((index.parse().ok()?, hash))
}

/// The study's distance between the integers of originals and variants, and its p value (figure 7).
pub const PUBLISHED_KS: (f64, f64) = (0.1201, 1.2788e-4);

/// Identity of a main set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// Known questions that are as published, and known questions that are in the set at all.
    pub matching: usize,
    pub known: usize,
    /// Kolmogorov-Smirnov distance between the integers of the originals and of the variants, and its p value.
    pub ks_distance: Option<f64>,
    pub ks_p: Option<f64>,
    /// Templates and rows.
    pub templates: usize,
    pub rows: usize,
}

impl Identity {
    /// Looks at a main set and its originals.
    pub fn of(base: &[Row], main: &[Row]) -> Self {
        let by_key: HashMap<(u32, i32), &Row> = main.iter().map(|row| ((row.id, row.instance), row)).collect();
        let (mut matching, mut known) = (0, 0);
        for fingerprint in FINGERPRINTS.lines().filter_map(Fingerprint::parse) {
            if let Some(row) = by_key.get(&(fingerprint.id, fingerprint.instance)) {
                known += 1;
                matching += usize::from(fingerprint.fits(row));
            }
        }
        let all = |rows: &[Row]| rows.iter().flat_map(|row| integers(&row.question)).collect::<Vec<f64>>();
        let test = kolmogorov_smirnov(&all(base), &all(main), KsMethod::Auto).ok();
        let mut templates: Vec<u32> = main.iter().map(|row| row.id).collect();
        templates.dedup();
        Identity {
            matching,
            known,
            ks_distance: test.map(|test| test.statistic),
            ks_p: test.map(|test| test.p),
            templates: templates.len(),
            rows: main.len(),
        }
    }

    /// True for the published set: all 5,000 rows, every known question and the study's distance.
    pub fn is_published(&self) -> bool {
        let close =
            |value: Option<f64>, published: f64, off: f64| value.is_some_and(|value| (value - published).abs() <= off);
        (self.templates, self.rows) == (100, 5000)
            && (self.matching, self.known) == (98, 98)
            && close(self.ks_distance, PUBLISHED_KS.0, 5e-5)
    }

    /// The identity in words, for the reader of a result.
    pub fn sentence(&self) -> String {
        let Identity { matching, known, templates, rows, .. } = self;
        let distance = self.ks_distance.map_or_else(String::new, |distance| {
            format!(", Kolmogorov-Smirnov distance of the integers {distance:.4} (published {:.4})", PUBLISHED_KS.0)
        });
        if self.is_published() {
            return format!(
                "The variants are the published GSM-Symbolic main set (98 of 98 known questions{distance})."
            );
        }
        let comparable = "accuracies are not those of the published questions";
        format!(
            "The variants are not the published GSM-Symbolic main set: {matching} of {known} known questions agree, {} of \
             {}{distance}; {comparable}.",
            counted(*rows, "row"),
            counted(*templates, "template")
        )
    }
}

/// A line of the file.
struct Fingerprint<'a> {
    id: u32,
    instance: i32,
    characters: usize,
    sha256: &'a str,
    answer: f64,
}

impl<'a> Fingerprint<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.split(' ');
        Some(Fingerprint {
            id: words.next()?.parse().ok()?,
            instance: words.next()?.parse().ok()?,
            characters: words.next()?.parse().ok()?,
            sha256: words.next()?,
            answer: words.next()?.parse().ok()?,
        })
    }

    fn fits(&self, row: &Row) -> bool {
        let beginning: String = row.question.chars().take(self.characters).collect();
        earnest_digest::hex(&earnest_digest::sha256(beginning.as_bytes())).starts_with(self.sha256)
            && row.truth().is_some_and(|truth| (truth - self.answer).abs() < 1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_98_lines() {
        let found: Vec<Fingerprint<'_>> = FINGERPRINTS.lines().filter_map(Fingerprint::parse).collect();
        assert_eq!(found.len(), 98);
        assert!(found.iter().all(|line| line.id < 100 && line.instance < 50 && line.sha256.len() == 16));
    }

    #[test]
    fn other_questions_are_not_the_published_ones() {
        let row = |id, instance| Row {
            id,
            instance,
            question: format!("Are there {id} or {instance}?"),
            answer: "#### 20".into(),
            original_id: id,
            original_question: "Are there 3?".into(),
            original_answer: "#### 3".into(),
        };
        let main: Vec<Row> = (0..100).flat_map(|id| (0..50).map(move |instance| row(id, instance))).collect();
        let found = Identity::of(&[row(0, -1)], &main);
        assert_eq!((found.matching, found.known, found.templates, found.rows), (0, 98, 100, 5000));
        assert!(!found.is_published());
        assert!(found.sentence().contains("not the published"));
        assert!(!Identity::of(&[], &[]).is_published());
    }

    #[test]
    fn every_wanted_set_is_named() {
        let row = |id, question: &str| Row {
            id,
            instance: 0,
            question: question.into(),
            answer: "#### 1".into(),
            original_id: 11,
            original_question: String::new(),
            original_answer: String::new(),
        };
        assert_eq!(ORIGINALS.lines().filter_map(original).count(), 100);
        let all = BTreeMap::from([
            (Set::Base, vec![row(0, "One?")]),
            (Set::P1, vec![row(0, "Two?"), row(1, "Three?")]),
            (Set::P2, vec![row(0, "Two?")]),
        ]);
        let said = sentences(&all, &[Set::Base, Set::P1, Set::P2], None);
        assert_eq!(said[0], "The originals are not GSM-Base: 0 of 1 are among its 100 questions.");
        assert!(said[1].starts_with("p1 has 2 questions of 2 templates; nothing is known"), "{said:?}");
        assert_eq!(
            said[2],
            "p2 is not the published set (1 question of 1 template); its accuracies are not comparable."
        );
        assert!(
            said.iter().all(|sentence| describes_questions(sentence)) && !describes_questions("Answers are scored.")
        );
        assert!(describes_questions(&Identity::of(&[], &[]).sentence()));
        assert_eq!(sentences(&all, &[Set::P2], None), said[2..]);
        let other = BTreeMap::from([(Set::P1, vec![row(0, "Four?"), row(1, "Three?")])]);
        assert_ne!(sentences(&other, &[Set::P1], None)[0], said[1]);
    }
}
