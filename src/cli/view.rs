//! `earnest view`: pages on stored runs in a browser.
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::Args;

use super::args::ResultsArgs;
use super::error::CliError;
use super::interrupt::stop_on_signal;
use super::printer::Printer;
use super::{Exit, results};
use earnest_eval::model::LISTENING;
use earnest_view::{ViewError, Viewer};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest view                      the runs of ./earnest-results: leaderboard, samples, comparisons
  earnest view nupa-gemma           one run, by a unique part of its name
  earnest view /data/study-results  another results folder, or one of outcome files

Pages are read-only and served on this machine only. The address has a token: whoever knows it can read the results. It opens in the \
browser where the program runs on a terminal with a display. Over SSH, forward the port: ssh -L 8765:127.0.0.1:8765 BOX, with --port \
8765 there.")]
pub struct ViewArgs {
    /// Run to begin with, or a results folder
    #[arg(value_name = "RUN|FOLDER")]
    pub what: Option<PathBuf>,

    #[command(flatten)]
    pub results: ResultsArgs,

    /// Port on the loopback; 0 means any free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,

    /// Only print the address, and open no browser
    #[arg(long)]
    pub no_open: bool,
}

/// Serves pages until it is interrupted.
pub fn execute(args: &ViewArgs, printer: Printer) -> Result<Exit, CliError> {
    let is_folder = args.what.as_ref().is_some_and(|what| what.is_dir());
    let folder = match &args.what {
        Some(what) if is_folder => what,
        _ => &args.results.folder,
    };
    let store = results::open(folder, printer)?;
    let run = match args.what.as_ref().filter(|_| !is_folder) {
        Some(name) => Some(store.run(&name.to_string_lossy())?.manifest.run),
        None => None,
    };
    drop(store);
    let viewer = Viewer::bind(folder, args.port).map_err(failed)?;
    let stop = stop_on_signal()?;
    let address = match &run {
        Some(run) => viewer.address_of(run),
        None => viewer.address(),
    };
    let address = address.map_err(failed)?;
    printer.result(&format!("{LISTENING}{address}\n"))?;
    let wanted = !args.no_open && io::stdout().is_terminal();
    let said = match (wanted, Reach::of(|name| std::env::var(name).ok())) {
        (true, Reach::Display) if open::that_detached(&address).is_ok() => {
            "it opens in the browser (--no-open only prints it); Ctrl-C stops the viewer".to_owned()
        }
        (_, Reach::Ssh(machine)) => {
            let port = address.split(['/', ':']).nth(4).unwrap_or_default().to_owned();
            format!(
                "on your own machine: ssh -N -L {port}:127.0.0.1:{port} {machine}, then open this address there; Ctrl-C stops the viewer"
            )
        }
        _ => "open this address in a browser; Ctrl-C stops the viewer".to_owned(),
    };
    printer.message(&said);
    viewer.run(&stop).map_err(failed)?;
    Ok(Exit::Success)
}

/// Way from this terminal to a browser.
#[derive(Debug, PartialEq, Eq)]
enum Reach {
    /// This machine's own display.
    Display,
    /// The machine at the other end of an SSH connection; how that machine calls this one.
    Ssh(String),
    None,
}

impl Reach {
    /// Reads the environment through `variable`.
    fn of(variable: impl Fn(&str) -> Option<String>) -> Reach {
        let given = |name: &str| variable(name).filter(|value| !value.is_empty());
        // The client's address and port, then the server's.
        if let Some(ends) = given("SSH_CONNECTION") {
            let user = given("USER").map(|user| format!("{user}@")).unwrap_or_default();
            let machine = ends.split_whitespace().nth(2).unwrap_or("BOX");
            return Reach::Ssh(format!("{user}{machine}"));
        }
        let has_display =
            !cfg!(all(unix, not(target_os = "macos"))) || given("DISPLAY").or(given("WAYLAND_DISPLAY")).is_some();
        if has_display { Reach::Display } else { Reach::None }
    }
}

fn failed(error: ViewError) -> CliError {
    match error {
        ViewError::Results(error) => error.into(),
        ViewError::Listen { .. } => {
            CliError::new(Exit::Engine, error.to_string()).help("choose another --port (0 means any free one)")
        }
        ViewError::Http(_) => CliError::new(Exit::Engine, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::Reach;

    #[test]
    fn the_browser_is_on_this_machine_or_at_the_other_end_of_ssh() {
        let of = |variables: &[(&str, &str)]| {
            Reach::of(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        let ssh = ("SSH_CONNECTION", "192.0.2.7 50112 192.0.2.9 22");
        assert_eq!(of(&[ssh, ("USER", "ada"), ("DISPLAY", ":10")]), Reach::Ssh("ada@192.0.2.9".to_owned()));
        assert_eq!(of(&[("SSH_CONNECTION", "garbage")]), Reach::Ssh("BOX".to_owned()));
        if cfg!(all(unix, not(target_os = "macos"))) {
            assert_eq!(of(&[("DISPLAY", ":0")]), Reach::Display);
            assert_eq!(of(&[("WAYLAND_DISPLAY", "wayland-0")]), Reach::Display);
            assert_eq!(of(&[("DISPLAY", "")]), Reach::None);
        }
    }
}
