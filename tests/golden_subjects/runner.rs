//! Runs subjects like tests, with the output of `cargo test`.
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use super::report::{FileReport, Outcome};

/// A subject of golden vectors.
pub struct Subject {
    /// Its name as a test.
    pub name: &'static str,
    /// Checks the subject's files below the golden folder.
    pub check: fn(&Path) -> Vec<FileReport>,
}

/// Limit of printed failing rows per file.
const SHOWN_FAILURES: usize = 20;

/// The arguments of libtest that make a difference here; the others are accepted and change nothing.
#[derive(Default)]
struct Arguments {
    list: bool,
    only_ignored: bool,
    exact: bool,
    filters: Vec<String>,
    skips: Vec<String>,
}

impl Arguments {
    fn parse(args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut parsed = Arguments::default();
        let mut args = args.peekable();
        while let Some(arg) = args.next() {
            let (name, value) = match arg.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
                _ => (arg, None),
            };
            let mut value = || value.clone().or_else(|| args.next()).ok_or_else(|| format!("{name} needs a value"));
            match name.as_str() {
                "--list" => parsed.list = true,
                "--ignored" => parsed.only_ignored = true,
                "--exact" => parsed.exact = true,
                "--skip" => parsed.skips.push(value()?),
                "--format" | "--test-threads" | "--color" | "--logfile" | "--shuffle-seed" | "-Z" => drop(value()?),
                "--nocapture"
                | "--no-capture"
                | "--show-output"
                | "--include-ignored"
                | "--quiet"
                | "-q"
                | "--test"
                | "--bench"
                | "--report-time"
                | "--ensure-time"
                | "--shuffle"
                | "--force-run-in-process"
                | "--exclude-should-panic" => {}
                _ if name.starts_with('-') => return Err(format!("unknown argument {name}")),
                _ => parsed.filters.push(name),
            }
        }
        Ok(parsed)
    }

    fn selects(&self, name: &str) -> bool {
        let matches = |pattern: &String| if self.exact { name == pattern } else { name.contains(pattern.as_str()) };
        // No subject is an ignored test.
        let wanted = self.filters.is_empty() || self.filters.iter().any(matches);
        wanted && !self.only_ignored && !self.skips.iter().any(matches)
    }
}

/// Runs the subjects that the arguments select; the exit code is 101, as libtest's, if one fails.
pub fn run(subjects: &[Subject], root: &Path, args: impl Iterator<Item = String>) -> ExitCode {
    let arguments = match Arguments::parse(args) {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::from(101);
        }
    };
    let selected: Vec<&Subject> = subjects.iter().filter(|subject| arguments.selects(subject.name)).collect();
    if arguments.list {
        for subject in &selected {
            println!("{}: test", subject.name);
        }
        return ExitCode::SUCCESS;
    }
    let start = Instant::now();
    println!("\nrunning {} test{}", selected.len(), if selected.len() == 1 { "" } else { "s" });
    let failed = selected.iter().filter(|subject| !passes(subject, root)).count();
    println!(
        "\ntest result: {}. {} passed; {failed} failed; 0 ignored; 0 measured; {} filtered out; finished in {:.2}s\n",
        if failed == 0 { "ok" } else { "FAILED" },
        selected.len() - failed,
        subjects.len() - selected.len(),
        start.elapsed().as_secs_f64()
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(101) }
}

/// Checks one subject and prints its files and its result.
fn passes(subject: &Subject, root: &Path) -> bool {
    let reports = catch_unwind(AssertUnwindSafe(|| (subject.check)(root)));
    let passed = match reports {
        // The panic has printed its message.
        Err(_) => false,
        Ok(reports) => {
            reports.iter().for_each(print);
            // A subject reports every file it knows, absent ones too: no report at all is a broken subject.
            !reports.is_empty() && reports.iter().all(FileReport::passes)
        }
    };
    println!("test {} ... {}", subject.name, if passed { "ok" } else { "FAILED" });
    // What reads the output sees the lines in order, whatever comes on stderr later.
    std::io::stdout().flush().is_ok() && passed
}

fn print(report: &FileReport) {
    let file = &report.file;
    match &report.outcome {
        Outcome::Absent => println!("golden {file}: absent"),
        Outcome::Unreadable(why) => {
            println!("golden {file}: 0/0");
            eprintln!("{file}: {why}");
        }
        Outcome::Checked { total, failures } | Outcome::Rated { total, failures, .. } => {
            println!("golden {file}: {}/{total}", total - failures.len());
            if *total == 0 {
                eprintln!("{file}: the file has no rows");
            }
            for failure in failures.iter().take(SHOWN_FAILURES) {
                eprintln!("{file}: {failure}");
            }
            if let Outcome::Rated { why: Some(why), .. } = &report.outcome {
                eprintln!("{file}: {why}");
            }
            if let Some(more @ 1..) = failures.len().checked_sub(SHOWN_FAILURES) {
                eprintln!("{file}: and {more} more");
            }
        }
    }
}
