//! `earnest generate gsm-symbolic`: fresh variants from templates, as JSON lines.
use crate::{agreeing, counted};
use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

use super::registration::{Templates, check_templates};
use super::template::Template;
use super::{DrawnRow, draw, own_templates};
use crate::suite::registry::{Generator, Host, Lines, OptionError, OptionSpec, OptionValues};

const OPTIONS: [OptionSpec; 3] = [
    OptionSpec::path(
        "templates",
        "PATH",
        "A folder of template files (JSON, in the language of the published ones), or one of them [default: our own \
         templates]",
    ),
    OptionSpec::checked(
        "only",
        "TEMPLATES",
        "Only the templates with these numbers, e.g. 3 or 0-9,42 [default: all]",
        check_templates,
    ),
    OptionSpec::integer("per-template", "N", "Questions of each template [default: 50]"),
];

/// Generator of the suite.
pub(super) struct GsmGenerator;

impl Generator for GsmGenerator {
    fn about(&self) -> &'static str {
        "Word problems from GSM-Symbolic's templates, or from our own: fresh variants with exact answers"
    }

    fn writes(&self) -> &'static str {
        "fresh questions in the form of Apple's files"
    }

    fn details(&self) -> &'static str {
        "Examples:
  earnest generate gsm-symbolic --per-template 3
  earnest generate gsm-symbolic --templates ml-gsm-symbolic/templates/symbolic --per-template 50 --seed 7 -o fresh.jsonl
  earnest run gsm-symbolic --model model.gguf --data fresh.jsonl

Every line has id, instance, question, answer, original_id, original_question and original_answer as Apple's files do, and \
variables: the drawn values. Questions of a template differ from each other; the first N are the same however many are drawn. \
Drawn values whose answer binary rounding would falsify are not used."
    }

    fn options(&self) -> &'static [OptionSpec] {
        &OPTIONS
    }

    /// Draws everything: a template without solutions leaves no half a file.
    fn lines(&self, values: &OptionValues, host: &dyn Host) -> Result<Box<dyn Lines>, OptionError> {
        let per_template = values.parsed("per-template")?.unwrap_or(50);
        if per_template == 0 {
            return Err(OptionError::usage("the setting `per_template = 0` generates nothing"));
        }
        let mut templates = match values.path("templates") {
            Some(path) => read(path, host)?,
            None => own_templates()
                .map_err(OptionError::usage)?
                .into_iter()
                .map(|template| (format!("our own template {}", template.id), template))
                .collect(),
        };
        if let Some(Templates(only)) = values.parsed("only")? {
            let has = |number: &u32| templates.iter().any(|(_, template)| template.id == *number);
            if let Some(missing) = only.iter().find(|number| !has(number)) {
                return Err(OptionError::usage(format!("there is no template with the number {missing}")));
            }
            templates.retain(|(_, template)| only.contains(&template.id));
        }
        let mut rows: Vec<DrawnRow> = Vec::new();
        for (name, template) in &templates {
            rows.extend(draw(template, values.seed, per_template).map_err(|error| {
                OptionError::usage(format!("{name}: {}", error.error))
                    .help("the setting `only` chooses among the templates, the setting `per_template` asks for fewer")
            })?);
        }
        Ok(Box::new(Drawn { rows, templates: templates.len() }))
    }
}

/// Drawn questions.
struct Drawn {
    rows: Vec<DrawnRow>,
    templates: usize,
}

impl Lines for Drawn {
    fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        for row in &self.rows {
            serde_json::to_writer(&mut *out, row)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }

    fn sentence(&self, place: &str) -> String {
        let (questions, templates) = (counted(self.rows.len(), "question"), counted(self.templates, "template"));
        let mut sentence = format!("{questions} of {templates}{place}");
        let negative: Vec<&DrawnRow> = self.rows.iter().filter(|row| has_negative_answer(&row.row.answer)).collect();
        if let Some(first) = negative.first() {
            let mut ids: Vec<String> = negative.iter().map(|row| row.row.id.to_string()).collect();
            ids.dedup();
            sentence.push_str(&format!(
                "; {} of them (template {}) {} a negative answer, which may make no sense: the first is instance {} of template {}",
                negative.len(),
                ids.join(", "),
                agreeing(negative.len(), "has", "have"),
                first.row.instance,
                first.row.id
            ));
        }
        sentence
    }
}

/// True if the number behind the answer's `####` is below zero: no original has such an answer, but conditions of a template may
/// allow it.
fn has_negative_answer(answer: &str) -> bool {
    answer.rsplit_once("####").is_some_and(|(_, value)| value.trim().starts_with('-'))
}

/// Templates with the names of their files, by number.
fn read(path: &Path, host: &dyn Host) -> Result<Vec<(String, Template)>, OptionError> {
    let failed =
        |path: &Path, reason: &dyn Display| OptionError::usage(format!("cannot read {}: {reason}", path.display()));
    let mut files = Vec::new();
    if host.is_folder(path) {
        let all = host.list(path).map_err(|error| failed(path, &error))?;
        files.extend(all.into_iter().filter(|file| file.extension().is_some_and(|extension| extension == "json")));
        if files.is_empty() {
            return Err(OptionError::usage(format!("{} has no template files (.json)", path.display()))
                .help("Apple's are in templates/symbolic, templates/p1 and templates/p2 of apple/ml-gsm-symbolic"));
        }
    } else {
        files.push(path.to_owned());
    }
    let mut templates: Vec<(String, Template)> = Vec::new();
    for file in files {
        let name = file.display().to_string();
        let bytes = host.read(&file).map_err(|error| failed(&file, &error))?;
        let text = String::from_utf8(bytes).map_err(|_| failed(&file, &"stream did not contain valid UTF-8"))?;
        let template = Template::parse(&text).map_err(|error| OptionError::usage(format!("{name}: {error}")))?;
        if let Some((other, _)) = templates.iter().find(|(_, other)| other.id == template.id) {
            return Err(OptionError::usage(format!("{other} and {name} have the same number {}", template.id))
                .help("give the setting `templates` one of the folders symbolic, p1 and p2"));
        }
        templates.push((name, template));
    }
    templates.sort_by_key(|(_, template)| template.id);
    Ok(templates)
}

#[cfg(test)]
mod tests {
    use super::has_negative_answer;

    #[test]
    fn a_negative_answer_is_seen_behind_its_mark() {
        assert!(has_negative_answer("5 - 8 = -3\n\n#### -3"));
        assert!(!has_negative_answer("-3 + 8 = 5\n\n#### 5") && !has_negative_answer("-3"));
    }
}
