//! Commands whose feature this program was built without: they take any arguments and say which feature has them.
use super::error::CliError;

/// Features of the program: name, and true if it was built with it.
pub const FEATURES: [(&str, bool); 5] = [
    ("figures", cfg!(feature = "figures")),
    ("python", cfg!(feature = "python")),
    ("serve", cfg!(feature = "serve")),
    ("train", cfg!(feature = "train")),
    ("view", cfg!(feature = "view")),
];

/// Commands that a program may leave out; each has the feature of its name.
const COMMANDS: [&str; 3] = ["serve", "train", "view"];

/// Returns what help says of a command that was left out.
pub fn about(command: &str) -> Option<String> {
    let (feature, _) =
        FEATURES.iter().find(|(feature, is_built)| *feature == command && COMMANDS.contains(feature) && !is_built)?;
    Some(format!("Not in this program, which was built without the feature `{feature}`"))
}

/// The error of a command, or of a part of one, that was left out.
pub fn error(what: &str, feature: &str) -> CliError {
    CliError::usage(format!("{what} is not in this program, which was built without the feature `{feature}`")).help(format!(
        "install one with all features (`cargo install --path . --locked`), or build one with this feature and those that you want \
         (`cargo build --release -p earnest --no-default-features --features {feature}`)"
    ))
}

/// The error of help on a part of a command that was left out, such as `earnest help train lora`, with these words behind the program's
/// name; none for all else. Help on such a command itself is [`about`] it.
pub fn help(mut words: impl Iterator<Item = String>) -> Option<CliError> {
    let is_help = words.next()? == "help";
    let (command, _part) = (words.next()?, words.next()?);
    about(&command).filter(|_| is_help).map(|_| error(&format!("`earnest {command}`"), &command))
}

/// A module like that of a command, for a command that was left out.
macro_rules! left_out {
    ($command:ident, $args:ident, $feature:literal) => {
        #[cfg(not(feature = $feature))]
        pub mod $command {
            use std::ffi::OsString;

            use crate::cli::error::CliError;
            use crate::cli::printer::Printer;
            use crate::cli::{Exit, left_out};

            /// Whatever is written behind the command.
            #[derive(Debug, clap::Args)]
            #[command(disable_help_flag = true)]
            pub struct $args {
                #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
                pub rest: Vec<OsString>,
            }

            /// Says which feature has the command.
            pub fn execute(_args: &$args, _printer: Printer) -> Result<Exit, CliError> {
                Err(left_out::error(concat!("`earnest ", stringify!($command), "`"), $feature))
            }
        }
    };
}

left_out!(serve, ServeArgs, "serve");
left_out!(train, TrainArgs, "train");
left_out!(view, ViewArgs, "view");
