//! `earnest generate gsm-symbolic`: fresh variants from templates, as JSON lines.
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::nupa::write_file;
use crate::cli::Exit;
use crate::cli::catalogue::gsm_symbolic::Templates;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use crate::suite::gsm_symbolic::template::Template;
use crate::suite::gsm_symbolic::{DrawnRow, draw, own_templates};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest generate gsm-symbolic --per-template 3
  earnest generate gsm-symbolic --templates ml-gsm-symbolic/templates/symbolic --per-template 50 --seed 7 -o fresh.jsonl
  earnest run gsm-symbolic --model model.gguf --data fresh.jsonl

Every line has id, instance, question, answer, original_id, original_question and original_answer as Apple's files do, and \
variables: the drawn values. Questions of a template differ from each other; the first N are the same however many are drawn. \
Drawn values whose answer binary rounding would falsify are not used.")]
pub struct GenerateGsmArgs {
    /// A folder of template files (JSON, in the language of the published ones), or one of them [default: our own templates]
    #[arg(long, value_name = "PATH")]
    pub templates: Option<PathBuf>,

    /// Only the templates with these numbers, e.g. 3 or 0-9,42 [default: all]
    #[arg(long, value_name = "TEMPLATES")]
    pub only: Option<Templates>,

    /// Questions of each template
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub per_template: usize,

    /// Seed of the draws
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,

    /// Write to this file instead of standard output; it appears under its name once it is complete
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Generates.
pub fn execute(args: &GenerateGsmArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    if args.per_template == 0 {
        return Err(CliError::usage("--per-template 0 generates nothing"));
    }
    let mut templates = match &args.templates {
        Some(path) => read(path)?,
        None => own_templates()
            .map_err(|error| CliError::usage(error.to_string()))?
            .into_iter()
            .map(|template| (format!("our own template {}", template.id), template))
            .collect(),
    };
    if let Some(Templates(only)) = &args.only {
        let has = |number: &u32| templates.iter().any(|(_, template)| template.id == *number);
        if let Some(missing) = only.iter().find(|number| !has(number)) {
            return Err(CliError::usage(format!("there is no template with the number {missing}")));
        }
        templates.retain(|(_, template)| only.contains(&template.id));
    }
    // Everything is drawn before a file is touched: a template without solutions leaves no half a file.
    let mut rows: Vec<DrawnRow> = Vec::new();
    for (name, template) in &templates {
        let drawn = draw(template, args.seed, args.per_template);
        rows.extend(drawn.map_err(|error| {
            CliError::usage(format!("{name}: {}", error.error))
                .help("--only chooses among the templates, --per-template asks for fewer")
        })?);
    }
    let whole = match &args.output {
        None => printer.stream(|out| write_lines(out, &rows))?,
        Some(path) => {
            write_file(path, |out| write_lines(out, &rows))?;
            true
        }
    };
    if whole && !quiet {
        let place = args.output.as_deref().map_or_else(String::new, |path| format!(" in {}", path.display()));
        printer.message(&format!("{} questions of {} templates{place}", rows.len(), templates.len()));
    }
    Ok(Exit::Success)
}

fn write_lines(out: &mut dyn Write, rows: &[DrawnRow]) -> io::Result<()> {
    for row in rows {
        serde_json::to_writer(&mut *out, row)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// The templates with the names of their files, by number.
fn read(path: &Path) -> Result<Vec<(String, Template)>, CliError> {
    let failed = |path: &Path, error: &dyn std::fmt::Display| {
        CliError::usage(format!("cannot read {}: {error}", path.display()))
    };
    let mut files = Vec::new();
    if path.is_dir() {
        for entry in std::fs::read_dir(path).map_err(|error| failed(path, &error))? {
            let file = entry.map_err(|error| failed(path, &error))?.path();
            if file.extension().is_some_and(|extension| extension == "json") {
                files.push(file);
            }
        }
        files.sort();
        if files.is_empty() {
            return Err(CliError::usage(format!("{} has no template files (.json)", path.display()))
                .help("Apple's are in templates/symbolic, templates/p1 and templates/p2 of apple/ml-gsm-symbolic"));
        }
    } else {
        files.push(path.to_owned());
    }
    let mut templates: Vec<(String, Template)> = Vec::new();
    for file in files {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(&file).map_err(|error| failed(&file, &error))?;
        let template = Template::parse(&text).map_err(|error| CliError::usage(format!("{name}: {error}")))?;
        if let Some((other, _)) = templates.iter().find(|(_, other)| other.id == template.id) {
            return Err(CliError::usage(format!("{other} and {name} have the same number {}", template.id))
                .help("give --templates one of the folders symbolic, p1 and p2"));
        }
        templates.push((name, template));
    }
    templates.sort_by_key(|(_, template)| template.id);
    Ok(templates)
}
