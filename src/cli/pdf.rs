//! Pages as PDF, printed by a Chromium or Chrome of this machine.
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Exit;
use super::error::CliError;

/// Programs that print a page with `--print-to-pdf`, in the order of trial.
const PROGRAMS: [&str; 8] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "chrome-headless-shell",
    "microsoft-edge",
    "brave-browser",
];
/// The same outside PATH.
const PLACES: [&str; 2] = [
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
];
/// Longest time for a page.
const LIMIT: Duration = Duration::from_secs(120);

/// A browser that prints.
#[derive(Debug)]
pub struct Browser {
    program: PathBuf,
    /// The page's future file, for the next step of an error.
    output: PathBuf,
}

impl Browser {
    /// Finds the browser that EARNEST_BROWSER names, else the first in PATH or in its usual place.
    ///
    /// # Errors
    /// No such browser.
    pub fn find(output: &Path) -> Result<Browser, CliError> {
        let named = std::env::var_os("EARNEST_BROWSER").filter(|name| !name.is_empty()).map(PathBuf::from);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = found(named.as_deref(), &path).map_err(|error| error.help(next_step(output)))?;
        Ok(Browser { program, output: output.to_owned() })
    }

    /// Prints a page and returns the PDF.
    ///
    /// # Errors
    /// A browser that cannot be started, fails, takes too long or writes no PDF.
    pub fn print(&self, html: &str) -> Result<Vec<u8>, CliError> {
        let folder = Scratch::new().map_err(|error| self.failed(&format!("no temporary folder: {error}")))?;
        let (page, pdf, log) = (folder.0.join("page.html"), folder.0.join("page.pdf"), folder.0.join("log"));
        std::fs::write(&page, html).map_err(|error| self.failed(&format!("{}: {error}", page.display())))?;
        let errors =
            std::fs::File::create(&log).map_err(|error| self.failed(&format!("{}: {error}", log.display())))?;
        let mut command = Command::new(&self.program);
        command.args(["--headless", "--disable-gpu", "--no-first-run", "--no-pdf-header-footer"]);
        // Its sandbox does not start for the superuser; the page is our own and opens no connection.
        if is_superuser() {
            command.arg("--no-sandbox");
        }
        command
            .arg(format!("--user-data-dir={}", folder.0.join("profile").display()))
            .arg(format!("--print-to-pdf={}", pdf.display()))
            .arg(format!("file://{}", page.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors);
        let mut child = command.spawn().map_err(|error| self.failed(&format!("it does not start: {error}")))?;
        let begun = Instant::now();
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if begun.elapsed() > LIMIT => {
                    child.kill().and_then(|()| child.wait()).ok();
                    return Err(self.failed(&format!("it has not finished after {} s", LIMIT.as_secs())));
                }
                Ok(None) => std::thread::sleep(Duration::from_millis(50)),
                Err(error) => return Err(self.failed(&error.to_string())),
            }
        };
        match std::fs::read(&pdf) {
            Ok(bytes) if status.success() && bytes.starts_with(b"%PDF-") => Ok(bytes),
            _ => {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
                Err(self.failed(&format!("it ended with {status} and wrote no PDF: {last}")))
            }
        }
    }

    fn failed(&self, what: &str) -> CliError {
        CliError::new(
            Exit::Results,
            format!("{} cannot print {}: {what}", self.program.display(), self.output.display()),
        )
        .help(next_step(&self.output))
    }
}

fn next_step(output: &Path) -> String {
    format!(
        "install Chromium or Chrome, or name one with EARNEST_BROWSER; or write {} and print it from any browser: it has a layout for paper",
        output.with_extension("html").display()
    )
}

fn found(named: Option<&Path>, path: &std::ffi::OsStr) -> Result<PathBuf, CliError> {
    match named {
        Some(program) if program.is_file() => Ok(program.to_owned()),
        Some(program) => Err(CliError::usage(format!("EARNEST_BROWSER names {}, which is no file", program.display()))),
        None => {
            let in_path =
                PROGRAMS.iter().flat_map(|name| std::env::split_paths(path).map(move |folder| folder.join(name)));
            let mut all = in_path.chain(PLACES.iter().map(PathBuf::from));
            all.find(|program| program.is_file()).ok_or_else(|| {
                CliError::usage(format!(
                    "a PDF needs Chromium or Chrome, and none is in PATH ({} names tried)",
                    PROGRAMS.len()
                ))
            })
        }
    }
}

#[cfg(target_os = "linux")]
fn is_superuser() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

#[cfg(not(target_os = "linux"))]
fn is_superuser() -> bool {
    false
}

/// A folder that ends with its owner.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> std::io::Result<Scratch> {
        let folder = std::env::temp_dir().join(format!("earnest-page-{}", std::process::id()));
        // Never one that is there already, which another user could have made.
        std::fs::create_dir(&folder)?;
        Ok(Scratch(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_found_by_name_or_in_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().as_os_str();
        let missing = folder.path().join("no-browser");
        assert!(found(Some(&missing), path).unwrap_err().message.contains("no file"));
        let program = folder.path().join("chromium-browser");
        std::fs::write(&program, "").unwrap();
        assert_eq!(found(None, path).unwrap(), program);
        assert_eq!(found(Some(&program), "".as_ref()).unwrap(), program);
    }

    #[cfg(unix)]
    #[test]
    fn a_browser_that_prints_nothing_is_named() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("browser");
        std::fs::write(&program, "#!/bin/sh\necho 'no display' >&2\nexit 3\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let browser = Browser { program, output: "study.pdf".into() };
        let error = browser.print("<p>page</p>").unwrap_err();
        assert!(error.message.contains("study.pdf") && error.message.contains("no display"), "{error}");
        assert!(error.help.unwrap().contains("write study.html"));
        // One that prints is believed by what it wrote.
        std::fs::write(
            &browser.program,
            "#!/bin/sh\nfor word in \"$@\"; do case $word in --print-to-pdf=*) printf '%%PDF-1.4' > \"${word#*=}\";; esac; done\n",
        )
        .unwrap();
        assert_eq!(browser.print("<p>page</p>").unwrap(), b"%PDF-1.4");
    }
}
