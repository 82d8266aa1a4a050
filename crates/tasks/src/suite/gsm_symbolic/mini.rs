//! Templates of our own, in the same language, so that a run needs no download.
use super::template::{Template, TemplateError};

/// The files of `prompts/gsm-mini`.
const FILES: [&str; 16] = [
    include_str!("../../../../../prompts/gsm-mini/0000.json"),
    include_str!("../../../../../prompts/gsm-mini/0001.json"),
    include_str!("../../../../../prompts/gsm-mini/0002.json"),
    include_str!("../../../../../prompts/gsm-mini/0003.json"),
    include_str!("../../../../../prompts/gsm-mini/0004.json"),
    include_str!("../../../../../prompts/gsm-mini/0005.json"),
    include_str!("../../../../../prompts/gsm-mini/0006.json"),
    include_str!("../../../../../prompts/gsm-mini/0007.json"),
    include_str!("../../../../../prompts/gsm-mini/0008.json"),
    include_str!("../../../../../prompts/gsm-mini/0009.json"),
    include_str!("../../../../../prompts/gsm-mini/0010.json"),
    include_str!("../../../../../prompts/gsm-mini/0011.json"),
    include_str!("../../../../../prompts/gsm-mini/0012.json"),
    include_str!("../../../../../prompts/gsm-mini/0013.json"),
    include_str!("../../../../../prompts/gsm-mini/0014.json"),
    include_str!("../../../../../prompts/gsm-mini/0015.json"),
];

/// The templates, by number.
///
/// # Errors
/// None in a build that passed its tests.
pub fn own_templates() -> Result<Vec<Template>, TemplateError> {
    FILES.iter().map(|file| Template::parse(file)).collect()
}

/// Templates, by number, whose questions stay sensible with numbers of any length, and the variables that grow: amounts and prices, not the
/// people, days or shares beside them. All their answers are whole numbers.
pub fn grown_templates() -> &'static [(usize, &'static [&'static str])] {
    &[
        (0, &["per", "sold"]),
        (2, &["km"]),
        (4, &["n", "less"]),
        (5, &["total"]),
        (8, &["first", "k"]),
        (13, &["grams", "have"]),
        (14, &["n", "price"]),
        (15, &["rate"]),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::drawn::draw;
    use super::super::rows::checked;
    use super::*;

    #[test]
    fn own_templates_give_fifty_different_questions_each() {
        let templates = own_templates().unwrap();
        assert_eq!(templates.len(), 16);
        for (number, template) in templates.iter().enumerate() {
            assert_eq!((template.id as usize, template.original_id as usize), (number, number));
            let rows = draw(template, 1, 50).unwrap_or_else(|error| panic!("{error}"));
            let questions: HashSet<&str> = rows.iter().map(|row| row.row.question.as_str()).collect();
            assert_eq!(questions.len(), 50);
            checked(rows.iter().map(|row| row.row.clone()).collect()).unwrap();
            for row in &rows {
                let text = format!("{}\n{}", row.row.question, row.row.answer);
                assert!(!text.contains(['{', '}', '<', '>']) && !text.contains("  "), "{text}");
            }
            // The first of many are the first of few.
            assert_eq!(draw(template, 1, 5).unwrap(), rows[..5]);
            assert_ne!(draw(template, 2, 5).unwrap(), rows[..5]);
        }
    }
}
