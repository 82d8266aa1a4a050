//! Options of suites in study files, checked as the command line checks them.
use std::ffi::OsString;
use std::path::Path;

use earnest_tasks::suite::registry::{Card, OptionError, OptionKind, OptionSpec, OptionValues};
use toml::de::DeValue;

use super::mistake::{Mistake, Place};
use super::toml_table::{Found, Table, kind, unknown};

/// Reads the options of a suite; paths are relative to `base`.
pub(super) fn read_options(table: Table<'_>, card: &Card, base: &Path, options: &mut OptionValues) {
    let own: Vec<&OptionSpec> = card.options.iter().filter(|option| option.is_own()).collect();
    let names: Vec<&str> = own.iter().map(|option| option.long).collect();
    let place = table.place();
    let mut mistakes = Vec::new();
    let notes = table.notes();
    for (written, found) in table.all() {
        let name = written.replace('_', "-");
        let is = |option: &&&OptionSpec| {
            [option.name, option.long].contains(&name.as_str()) || option.aliases.contains(&name.as_str())
        };
        let Some(option) = own.iter().find(is) else {
            let shared = card.options.iter().any(|option| option.name == name);
            mistakes.push(match shared {
                true => Mistake::new(&found.place, format!("{name} is a key of the task or the study, not an option")),
                false => unknown(&found.place, written, &names),
            });
            continue;
        };
        if options.has(option.name) {
            mistakes.push(Mistake::new(&found.place, format!("{} is given twice", option.long)));
            continue;
        }
        match values(option, &found, base) {
            Ok(Some(given)) => options.set(option.name, given),
            Ok(None) => {}
            Err(problem) => mistakes.push(Mistake::new(&found.place, problem.to_string())),
        }
    }
    for option in own.iter().filter(|option| options.has(option.name)) {
        mistakes.extend(partners(option, options, &place));
    }
    mistakes.into_iter().for_each(|mistake| notes.add(mistake));
}

/// Options that exclude this one or that it needs.
fn partners(option: &OptionSpec, options: &OptionValues, place: &Place) -> Option<Mistake> {
    let name = option.name;
    if let Some(other) = option.excludes.iter().find(|other| options.has(other)) {
        return Some(Mistake::new(place, format!("{name} and {other} exclude each other")));
    }
    let missing = option.needs.iter().find(|other| !options.has(other))?;
    Some(Mistake::new(place, format!("{name} needs {missing} too")))
}

/// Reason for which a value is none of an option.
#[derive(Debug, thiserror::Error)]
enum ValueProblem {
    #[error("expected {expected}, not {found}")]
    Kind { expected: &'static str, found: String },
    #[error("{option} {text}: {problem}")]
    Text { option: &'static str, text: String, problem: TextProblem },
}

/// Reason for which a text is none of an option's.
#[derive(Debug, thiserror::Error)]
enum TextProblem {
    #[error("{0}")]
    Refused(OptionError),
    #[error("expected a whole number from 0 to {most}")]
    Number { most: u64 },
    #[error("it takes {}", names.join(", "))]
    Choice { names: &'static [&'static str] },
}

/// The texts of an option as the command line would give them; none for a flag that is off.
fn values(option: &OptionSpec, found: &Found<'_>, base: &Path) -> Result<Option<Vec<OsString>>, ValueProblem> {
    match (option.kind, found.value) {
        (OptionKind::Flag, DeValue::Boolean(on)) => return Ok(on.then(Vec::new)),
        (OptionKind::Flag, other) => {
            return Err(ValueProblem::Kind { expected: "true or false", found: kind(other) });
        }
        (_, DeValue::Boolean(true)) if option.missing.is_some() => {
            return Ok(option.missing.map(|text| vec![text.into()]));
        }
        _ => {}
    }
    let is_list = matches!(option.kind, OptionKind::List | OptionKind::Choices(_));
    let texts = match found.value {
        DeValue::Array(list) if is_list => list
            .iter()
            .map(|one| text(one.get_ref()))
            .collect::<Option<Vec<String>>>()
            .filter(|texts| !texts.is_empty()),
        DeValue::String(one) if is_list => Some(one.split(',').map(|part| part.trim().to_owned()).collect()),
        other => text(other).map(|text| vec![text]),
    };
    let Some(texts) = texts else {
        let expected = if is_list { "a list of texts" } else { "a text or a number" };
        return Err(ValueProblem::Kind { expected, found: kind(found.value) });
    };
    for text in &texts {
        let refused = |problem| ValueProblem::Text { option: option.long, text: text.clone(), problem };
        check(option.kind, text).map_err(refused)?;
    }
    let value = |text: String| match option.kind {
        OptionKind::Path => base.join(text).into_os_string(),
        _ => text.into(),
    };
    Ok(Some(texts.into_iter().map(value).collect()))
}

fn text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        _ => None,
    }
}

fn check(kind: OptionKind, text: &str) -> Result<(), TextProblem> {
    match kind {
        OptionKind::Text(check) => check(text).map_err(TextProblem::Refused),
        OptionKind::Integer(most) => match text.parse::<u64>() {
            Ok(number) if number <= most => Ok(()),
            _ => Err(TextProblem::Number { most }),
        },
        OptionKind::Choice(names) | OptionKind::Choices(names) => match names.contains(&text) {
            true => Ok(()),
            false => Err(TextProblem::Choice { names }),
        },
        OptionKind::Flag | OptionKind::List | OptionKind::Path | OptionKind::Shared => Ok(()),
    }
}
