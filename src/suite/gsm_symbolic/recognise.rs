//! Is this the published main set? Nobody may commit it, but facts about it are known.
use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::large_numbers::integers;
use super::rows::Row;
use crate::stats::{KsMethod, kolmogorov_smirnov};

/// Facts about 98 published questions; see the file's head.
const FINGERPRINTS: &str = include_str!("fingerprints.txt");

/// The study's distance between the integers of originals and variants, and its p value (figure 7).
pub const PUBLISHED_KS: (f64, f64) = (0.1201, 1.2788e-4);

/// What a main set turned out to be.
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

    /// What it is, for the reader of a result.
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
            "The variants are not the published GSM-Symbolic main set: {matching} of {known} known questions agree, {rows} \
             rows of {templates} templates{distance}; {comparable}."
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
        crate::digest::hex(&crate::digest::sha256(beginning.as_bytes())).starts_with(self.sha256)
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
}
