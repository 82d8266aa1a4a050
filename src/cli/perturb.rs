//! `earnest perturb`: perturbations of any set of questions.
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::Exit;
use super::error::CliError;
use super::printer::Printer;
use super::stored::write_file;
use earnest_eval::report::ReportError;
use earnest_tasks::suite::dnc::{
    Annotations, Asked, Context, DonorPool, Fields, Kind, Malformed, Mode, Problem, RowError, SetRow, has_program,
    kinds, malformed_rows, perturb, read_annotations, records, reference_perturb_all,
};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest perturb questions.jsonl --kinds language,verbosity --seed 7 -o perturbed.jsonl
  earnest perturb gsm_symbolic.jsonl --kinds all --question-field question --answer-field answer -o attacked.jsonl
  earnest perturb testset.json --kinds noise --mode reference --ineligible keep -o attack.jsonl
  head -100 questions.jsonl | earnest perturb - --kinds type > typed.jsonl

Rows are JSON lines or one JSON array. Every row that is written is the row that was read on one line, every number, text and key of \
its other fields as it was written (1.50 stays 1.50), white space between them left out, with its new texts and a field `dnc`: what was changed, and why the question was eligible. Noise and distribution change the answer \
and need a formula. A row whose equation or answer contradicts itself is malformed.")]
pub struct PerturbArgs {
    /// The questions; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Perturbations, separated by commas: language, type, noise, distribution, verbosity, extra, logic, order,
    /// language-to-digits; `all` is the first eight
    #[arg(long, value_name = "KINDS", value_delimiter = ',', default_value = "all")]
    pub kinds: Vec<String>,

    /// Seed of what is drawn
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,

    /// Independent draws of each random perturbation
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub draws: u32,

    /// Perturbations as they were meant, or bit for bit as the authors' program makes them
    #[arg(long, value_name = "MODE", value_enum, default_value_t = ModeArg::Fixed)]
    pub mode: ModeArg,

    /// File of Logic and Order annotations (docs/dnc.md)
    #[arg(long, value_name = "FILE")]
    pub annotations: Option<PathBuf>,

    /// Questions that a perturbation does not fit: leave them out, or write them unperturbed
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = IneligibleArg::Skip)]
    pub ineligible: IneligibleArg,

    /// Rows that cannot be read: refuse the file, or skip and count them
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = MalformedArg::Refuse)]
    pub malformed: MalformedArg,

    /// Write to this file instead of standard output; it appears under its name once it is complete
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Field with the name of a question (without it: @ID, id, uid or query_id, else the row's place)
    #[arg(long, value_name = "FIELD", help_heading = "Fields")]
    pub id_field: Option<String>,

    /// Field with the story [default: Body, body, passage or context; without one, all but the question's last sentence]
    #[arg(long, value_name = "FIELD", help_heading = "Fields")]
    pub body_field: Option<String>,

    /// Field with the question [default: Question, question, problem or prompt]
    #[arg(long, value_name = "FIELD", help_heading = "Fields")]
    pub question_field: Option<String>,

    /// Field with the answer, a number or a text that begins with one or ends in #### and one [default: Answer, answer or gold]
    #[arg(long, value_name = "FIELD", help_heading = "Fields")]
    pub answer_field: Option<String>,

    /// Field with the equation, e.g. 5+7=12 [default: Formula, formula or equation]
    #[arg(long, value_name = "FIELD", help_heading = "Fields")]
    pub formula_field: Option<String>,

    /// Field to write what was done into; no row may have it already [default: dnc]
    #[arg(long, value_name = "FIELD", help_heading = "Fields")]
    pub about_field: Option<String>,
}

/// `--mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ModeArg {
    Fixed,
    Reference,
}

impl From<ModeArg> for Mode {
    fn from(arg: ModeArg) -> Self {
        match arg {
            ModeArg::Fixed => Mode::Fixed,
            ModeArg::Reference => Mode::Reference,
        }
    }
}

/// `--malformed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MalformedArg {
    Refuse,
    Skip,
}

/// `--ineligible`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum IneligibleArg {
    Skip,
    Keep,
}

/// Perturbs.
pub fn execute(args: &PerturbArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    let kinds = kinds(&args.kinds).map_err(|error| CliError::usage(error.to_string()))?;
    let mode = Mode::from(args.mode);
    let seed = u32::try_from(args.seed);
    if mode == Mode::Reference && (seed.is_err() || args.draws > 1) {
        return Err(CliError::usage("--mode reference takes a --seed below 4294967296 and one draw"));
    }
    if let Some(output) = &args.output {
        for input in [Some(&args.file), args.annotations.as_ref()].into_iter().flatten() {
            if is_same_file(input, output) {
                return Err(CliError::usage(format!("{} is read, and -o would overwrite it", output.display()))
                    .help("name another file with -o"));
            }
        }
        if args.file.as_os_str() == "-" && is_standard_input(output) {
            let text = format!("{} is read as standard input, and -o would overwrite it", output.display());
            return Err(CliError::usage(text).help("name another file with -o"));
        }
    }
    let mut malformed = Vec::new();
    let rows = read_rows(args, &mut malformed)?;
    let annotations = match &args.annotations {
        Some(path) => annotations(path, &rows, &mut malformed)?,
        None => Annotations::default(),
    };
    if !malformed.is_empty() {
        let text = malformed_rows(&malformed);
        if args.malformed == MalformedArg::Refuse {
            return Err(CliError::usage(text).help("mend them, or leave them out with --malformed skip"));
        }
        // Said even when --quiet: nothing is left out in silence.
        printer.warning(&format!("left out {text}"));
    }
    let problems: Vec<&Problem> = rows.iter().map(|row| &row.problem).collect();
    let donors = DonorPool::new(problems.iter().copied());
    let mut tally = Tally { rows: rows.len(), ..Tally::default() };
    let mut out: Vec<String> = Vec::new();
    for &kind in &kinds {
        if mode == Mode::Reference && has_program(kind) {
            let seed = seed.as_ref().copied().unwrap_or_default();
            let (kept, rest) = reference_perturb_all(kind, problems.iter().copied(), seed);
            out.extend(kept.iter().map(|(place, found)| rows[*place].perturbed(found, mode, args.seed, 0)));
            tally.made(kind, kept.len());
            for place in rest {
                leave(args, &mut tally, &mut out, kind, &rows[place], "the reference's filter leaves it out");
            }
            continue;
        }
        for row in &rows {
            for draw in 0..if kind.is_random() { args.draws } else { 1 } {
                let context = Context { seed: args.seed, draw, donors: &donors, annotations: &annotations };
                match perturb(kind, &row.problem, context) {
                    Ok(found) => {
                        out.push(row.perturbed(&found, mode, args.seed, draw));
                        tally.made(kind, 1);
                    }
                    Err(reason) => {
                        if draw == 0 {
                            leave(args, &mut tally, &mut out, kind, row, &reason.to_string());
                        }
                        break;
                    }
                }
            }
        }
    }
    let write = |sink: &mut dyn Write| -> std::io::Result<()> {
        for row in &out {
            sink.write_all(row.as_bytes())?;
            sink.write_all(b"\n")?;
        }
        Ok(())
    };
    let whole = match &args.output {
        None => printer.stream(write)?,
        Some(path) => {
            write_file(path, |sink| {
                write(&mut *sink).map_err(|source| ReportError::Write { path: path.clone(), source })
            })?;
            true
        }
    };
    if whole && !quiet {
        printer.message(tally.text(&kinds, args.output.as_deref()).trim_end());
    }
    if !tally.any() {
        printer.warning("no question was perturbed");
    }
    Ok(Exit::Success)
}

/// True if standard input comes from the file at a path.
fn is_standard_input(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        use std::os::unix::fs::MetadataExt;
        let input =
            std::io::stdin().as_fd().try_clone_to_owned().map(std::fs::File::from).and_then(|file| file.metadata());
        matches!((input, std::fs::metadata(path)), (Ok(input), Ok(output))
            if input.is_file() && (input.dev(), input.ino()) == (output.dev(), output.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

/// True if two paths lead to one file, by whatever names or links.
fn is_same_file(one: &Path, other: &Path) -> bool {
    if matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other) {
        return true;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let number = |path: &Path| std::fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino()));
        matches!((number(one), number(other)), (Ok(one), Ok(other)) if one == other)
    }
    #[cfg(not(unix))]
    false
}

fn leave(args: &PerturbArgs, tally: &mut Tally, out: &mut Vec<String>, kind: Kind, row: &SetRow, why: &str) {
    tally.left(kind, why);
    if args.ineligible == IneligibleArg::Keep {
        out.push(row.unperturbed(kind, args.mode.into(), args.seed, why));
    }
}

fn read_rows(args: &PerturbArgs, malformed: &mut Vec<(String, Malformed)>) -> Result<Vec<SetRow>, CliError> {
    let (name, bytes) = match args.file.as_os_str() == "-" {
        true => {
            let mut bytes = Vec::new();
            ("standard input".to_owned(), std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes))
        }
        false => (args.file.display().to_string(), std::fs::read(&args.file)),
    };
    let bytes = bytes.map_err(|error| CliError::usage(format!("cannot read {name}: {error}")))?;
    let found = records(&bytes).map_err(|error| CliError::usage(format!("{name}: {error}")))?;
    let fields = Fields {
        id: args.id_field.clone(),
        body: args.body_field.clone(),
        question: args.question_field.clone(),
        answer: args.answer_field.clone(),
        formula: args.formula_field.clone(),
        about: args.about_field.clone(),
    };
    let mut rows: Vec<SetRow> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for record in found.into_rows() {
        let row = record.value.and_then(|value| match value {
            Value::Object(row) => fields.read(&record.place, &row, record.text),
            _ => Err(RowError::NotAnObject),
        });
        let row = row.map_err(|error| error.to_string()).and_then(|row| match seen.insert(row.problem.id.clone()) {
            true => Ok(row),
            false => Err(format!("another row has the id {} too", row.problem.id)),
        });
        match row {
            Ok(row) => rows.push(row),
            Err(why) => malformed.push((name.clone(), Malformed { place: record.place, why })),
        }
    }
    Ok(rows)
}

fn annotations(
    path: &Path,
    rows: &[SetRow],
    malformed: &mut Vec<(String, Malformed)>,
) -> Result<Annotations, CliError> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| CliError::usage(format!("cannot read {name}: {error}")))?;
    let questions: BTreeMap<&str, &Problem> = rows.iter().map(|row| (row.problem.id.as_str(), &row.problem)).collect();
    let question = |id: &str| questions.get(id).map_or(Asked::Nowhere, |problem| Asked::Here(problem));
    let (found, bad) =
        read_annotations(&bytes, question).map_err(|error| CliError::usage(format!("{name}: {error}")))?;
    malformed.extend(bad.into_iter().map(|row| (name.clone(), row)));
    Ok(found)
}

/// What became of the rows.
#[derive(Default)]
struct Tally {
    rows: usize,
    made: BTreeMap<Kind, usize>,
    left: BTreeMap<(Kind, String), usize>,
}

impl Tally {
    fn made(&mut self, kind: Kind, count: usize) {
        *self.made.entry(kind).or_default() += count;
    }

    fn left(&mut self, kind: Kind, why: &str) {
        // Operands are named in the rows; here reasons are counted.
        let why = match why.split_once("operand ") {
            Some(("", rest)) => format!("an operand{}", rest.find(' ').map_or("", |at| &rest[at..])),
            _ => why.to_owned(),
        };
        *self.left.entry((kind, why)).or_default() += 1;
    }

    fn any(&self) -> bool {
        self.made.values().any(|count| *count > 0)
    }

    fn text(&self, kinds: &[Kind], path: Option<&Path>) -> String {
        let place = path.map_or_else(String::new, |path| format!(" in {}", path.display()));
        let total: usize = self.made.values().sum();
        let mut text = format!(
            "{total} perturbed row{}{place}, from {} question{}\n",
            if total == 1 { "" } else { "s" },
            self.rows,
            if self.rows == 1 { "" } else { "s" }
        );
        for kind in kinds {
            let made = self.made.get(kind).copied().unwrap_or(0);
            text.push_str(&format!("{kind}: {made}"));
            let left: Vec<String> = self
                .left
                .iter()
                .filter(|((of, _), _)| of == kind)
                .map(|((_, why), count)| format!("{count} left out: {why}"))
                .collect();
            if !left.is_empty() {
                text.push_str(&format!(" ({})", left.join("; ")));
            }
            text.push('\n');
        }
        text
    }
}
