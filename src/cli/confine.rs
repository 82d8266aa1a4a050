//! Confinement of model-written Python, as a command's options ask for it.
use super::args::Command;
use super::result_args::RunsCommand;
use super::tasks::TasksCommand;
use earnest_results::suites::{ProgramPolicy, set_program_policy};

/// Applies a command's options on model-written Python to the whole process.
pub fn confine(command: &Command) {
    let args = match command {
        Command::Run(args) => &args.session.confinement,
        Command::Resume(args) => &args.session.confinement,
        Command::Study(args) => &args.confinement,
        Command::Score(args) => &args.confinement,
        Command::Import(args) => &args.confinement,
        Command::Merge(args) => &args.confinement,
        Command::Doctor(args) => &args.sandbox.confinement,
        Command::Runs(args) => match &args.command {
            RunsCommand::Verify(args) => &args.confinement,
            _ => return,
        },
        Command::Tasks(args) => match &args.command {
            TasksCommand::Check(args) => &args.confinement,
            TasksCommand::New(_) => return,
        },
        _ => return,
    };
    set_program_policy(ProgramPolicy { command: args.sandbox_command.clone(), unconfined: args.unconfined });
}
