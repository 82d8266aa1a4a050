//! Clap commands and options of the registered suites.
use clap::builder::{PossibleValuesParser, RangedU64ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Command, Error, FromArgMatches, Subcommand, value_parser};

use earnest_tasks::suite::registry::{self, BUILT_IN, BuiltIn, Card, Generator, OptionKind, OptionSpec, OptionValues};

/// A suite on the command line, as a subcommand, and its options. All options may stand before or after it.
#[derive(Debug, Clone)]
pub struct SuiteCommand {
    pub name: &'static str,
    pub options: OptionValues,
}

/// Help heading of commands that take a suite, by which they are recognised.
pub(super) const SUITES_HEADING: &str = "Suites";

impl Subcommand for SuiteCommand {
    fn augment_subcommands(command: Command) -> Command {
        command
            .subcommand_value_name("SUITE")
            .subcommand_help_heading(SUITES_HEADING)
            .disable_help_subcommand(true)
            .defer(with_suites)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        registry::find(name).is_some()
    }
}

impl FromArgMatches for SuiteCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let asked = matches.subcommand().and_then(|(name, given)| Some((registry::find(name)?.card(), given)));
        let Some((card, given)) = asked else {
            return Err(Error::raw(clap::error::ErrorKind::MissingSubcommand, "name a SUITE"));
        };
        Ok(SuiteCommand { name: card.name, options: given_of(card.options, given) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Adds the suites' subcommands. Deferred until the command is used: there are five commands, each with all suites and options.
pub(super) fn with_suites(command: Command) -> Command {
    let common: Vec<Arg> = command.get_arguments().filter(|arg| !arg.is_global_set()).cloned().collect();
    let parent = command.get_name().to_owned();
    command
        .mut_args(|arg| arg.required(false).global(true))
        .subcommands(BUILT_IN.iter().map(|suite| of_suite(*suite, &common, &parent)))
}

/// A suite's subcommand: its own options, then the command's.
fn of_suite(suite: &dyn BuiltIn, common: &[Arg], parent: &str) -> Command {
    let card = suite.card();
    let command = subcommand(&card, card.about, card.options, common);
    match common.iter().any(|arg| RARE.contains(&arg.get_id().as_str())) {
        true => command.after_help(format!(
            "`{parent} --help` without the suite lists further options, which are valid here too."
        )),
        false => command,
    }
}

fn subcommand(card: &Card, about: &'static str, options: &[OptionSpec], common: &[Arg]) -> Command {
    let own = options.iter().filter(|option| option.is_own());
    Command::new(card.name)
        .about(about)
        .args(own.map(|option| arg(option, card.title)))
        .args(common.iter().cloned().map(|arg| compact(with_tables(arg, card))))
}

/// The suite of `earnest generate` and its options: those of its own generator, and with `--items` those of its items.
#[derive(Debug, Clone)]
pub struct GeneratorCommand {
    pub name: &'static str,
    /// Its items are asked for, whether it has a generator of its own or not.
    pub items: bool,
    pub options: OptionValues,
}

/// `--items`, on suites that have a generator of their own.
const ITEMS: OptionSpec = OptionSpec::flag(
    "items",
    "Write the items of a run instead, as questions that `earnest run FILE` asks: id, task, question, answer, cluster and \
     covariates; the options are those of `earnest run`",
);

/// The suites whose questions can be written: all but the user's own.
fn generators() -> impl Iterator<Item = (Card, Option<&'static dyn Generator>)> {
    let suites = BUILT_IN.iter().map(|suite| (suite.card(), suite.generator()));
    suites.filter(|(card, _)| card.name != OWN_QUESTIONS)
}

/// The suite of the user's own questions, which are a file already.
const OWN_QUESTIONS: &str = "task";

/// Options of a suite's generator, and those of its items that have no namesake there.
fn generator_options(card: &Card, generator: Option<&'static dyn Generator>) -> Vec<OptionSpec> {
    let of_items = card.options.iter().filter(|option| option.is_own() && option.name != "profile").copied();
    let Some(generator) = generator else { return of_items.collect() };
    let own = generator.options();
    let of_items = of_items.filter(|option| !own.iter().any(|own| own.name == option.name));
    own.iter().copied().chain(of_items.map(|option| option.under("Items, with --items"))).collect()
}

impl Subcommand for GeneratorCommand {
    fn augment_subcommands(command: Command) -> Command {
        let common: Vec<Arg> = command.get_arguments().cloned().collect();
        command.mut_args(|arg| arg.global(true)).subcommands(generators().map(|(card, generator)| {
            let about = generator.map_or(card.about, Generator::about);
            let command = subcommand(&card, about, &generator_options(&card, generator), &common);
            match generator {
                Some(generator) => command.arg(arg(&ITEMS, card.title)).after_help(generator.details()),
                None => command,
            }
        }))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        generators().any(|(card, _)| card.name == name)
    }
}

impl FromArgMatches for GeneratorCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let asked = matches.subcommand().and_then(|(name, given)| {
            let (card, generator) = generators().find(|(card, _)| card.name == name)?;
            let items = generator.is_none() || given.get_flag(ITEMS.name);
            let options = given_of(&generator_options(&card, generator), given);
            Some(GeneratorCommand { name: card.name, items, options })
        });
        asked.ok_or_else(|| Error::raw(clap::error::ErrorKind::MissingSubcommand, "name a SUITE"))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Rare options, left out of a suite's help to keep it to two screens.
const RARE: [&str; 19] = [
    "api",
    "batch_invariant",
    "concurrency",
    "context",
    "eos",
    "events",
    "fail_on_error",
    "from",
    "kv_memory",
    "longest_wait",
    "min_p",
    "models",
    "no_prefix_cache",
    "per_minute",
    "repetition_penalty",
    "request_timeout",
    "retries",
    "thinking_text",
    "top_p",
];

/// Limits `--metric` to the suite's tables, and hides it for a suite with one.
fn with_tables(arg: Arg, card: &Card) -> Arg {
    match (arg.get_id().as_str(), card.tables) {
        ("metric", []) => arg.hide(true),
        ("metric", tables) => arg.value_parser(PossibleValuesParser::new(tables.iter().copied().chain(["all"]))),
        _ => arg,
    }
}

/// An option of the command in a suite's help: one paragraph, hidden if it is rare.
fn compact(arg: Arg) -> Arg {
    let values = arg.get_possible_values();
    let explained = !arg.is_hide_possible_values_set() && values.iter().any(|value| value.get_help().is_some());
    let hidden = arg.is_hide_set() || RARE.contains(&arg.get_id().as_str());
    // Clap does not allow global required options.
    let inherited = !arg.is_required_set();
    let arg = arg.global(inherited).hide(hidden).hide_env(true);
    if !explained {
        return arg;
    }
    let names: Vec<&str> = values.iter().map(|value| value.get_name()).collect();
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    arg.help(format!("{help} [possible values: {}]", names.join(", "))).hide_possible_values(true)
}

/// A suite's option.
fn arg(spec: &OptionSpec, title: &'static str) -> Arg {
    let arg = Arg::new(spec.name)
        .long(spec.long)
        .help(spec.help)
        .help_heading(spec.heading.unwrap_or(title))
        .aliases(spec.aliases.iter().copied())
        .conflicts_with_all(spec.excludes.iter().copied())
        .requires_all(spec.needs.iter().copied())
        .hide(spec.hidden);
    if let OptionKind::Flag = spec.kind {
        return arg.action(ArgAction::SetTrue);
    }
    let arg = match spec.missing {
        Some(value) => arg.num_args(0..=1).default_missing_value(value),
        None => arg,
    };
    let arg = arg.value_name(spec.value);
    match spec.kind {
        OptionKind::Flag | OptionKind::Shared => arg,
        OptionKind::Text(check) => arg.value_parser(move |text: &str| check(text).map(|()| text.to_owned())),
        OptionKind::List => arg.value_delimiter(',').action(ArgAction::Append),
        OptionKind::Integer(most) => arg.value_parser(RangedU64ValueParser::<u64>::new().range(..=most)),
        OptionKind::Choice(names) => arg.value_parser(PossibleValuesParser::new(names)),
        OptionKind::Choices(names) => {
            arg.value_delimiter(',').action(ArgAction::Append).value_parser(PossibleValuesParser::new(names))
        }
        OptionKind::Path => arg.value_parser(value_parser!(std::path::PathBuf)),
    }
}

/// Values of the given ones among these options.
fn given_of(options: &[OptionSpec], matches: &ArgMatches) -> OptionValues {
    let mut values = OptionValues::default();
    for option in options.iter().filter(|option| option.is_own()) {
        match option.kind {
            OptionKind::Flag if matches.get_flag(option.name) => values.set(option.name, Vec::new()),
            OptionKind::Flag => {}
            _ => {
                if let Some(given) = matches.get_raw(option.name) {
                    values.set(option.name, given.map(ToOwned::to_owned).collect());
                }
            }
        }
    }
    values
}

/// Adds the options of several suites, for a command that takes its suite as an option.
pub fn with_options_of(suites: &[&str], command: Command) -> Command {
    command.args(options_of(suites).into_iter().map(|(option, title)| arg(&option, title)))
}

/// Values of the given ones among the options of [`with_options_of`].
pub fn given_options_of(suites: &[&str], matches: &ArgMatches) -> OptionValues {
    let options: Vec<OptionSpec> = options_of(suites).into_iter().map(|(option, _)| option).collect();
    given_of(&options, matches)
}

/// Each option once, with its heading.
fn options_of(suites: &[&str]) -> Vec<(OptionSpec, &'static str)> {
    let mut found: Vec<(OptionSpec, &'static str)> = Vec::new();
    for card in suites.iter().filter_map(|name| registry::find(name)).map(|suite| suite.card()) {
        for option in card.options.iter().filter(|option| option.is_own()) {
            if !found.iter().any(|(known, _)| known.name == option.name) {
                found.push((*option, card.title));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::{Cli, Command as Cmd, definition};

    fn run(words: &[&str]) -> Result<SuiteCommand, Error> {
        let matches = definition().try_get_matches_from([&["earnest", "run"], words].concat())?;
        match Cli::from_arg_matches(&matches)?.command {
            Cmd::Run(args) => Ok(args.suite.unwrap()),
            other => panic!("{other:?}"),
        }
    }

    /// A value that the option takes.
    fn value(option: &OptionSpec) -> &'static str {
        match option.kind {
            OptionKind::Choice(names) | OptionKind::Choices(names) => names[0],
            _ => "3",
        }
    }

    #[test]
    fn every_option_of_every_suite_arrives() {
        for suite in BUILT_IN {
            let card = suite.card();
            for option in card.options.iter().filter(|option| option.is_own()) {
                let name = format!("--{}", option.long);
                let flag = matches!(option.kind, OptionKind::Flag);
                let words = if flag { vec![card.name, &name] } else { vec![card.name, &name, value(option)] };
                let asked = run(&words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
                assert_eq!((asked.name, asked.options.names().collect::<Vec<_>>()), (card.name, vec![option.name]));
                if !flag {
                    assert_eq!(asked.options.text(option.name), Ok(Some(value(option))), "{name}");
                }
            }
            assert_eq!(run(&[card.name]).unwrap().options.names().count(), 0, "{}", card.name);
        }
    }

    #[test]
    fn usage_has_what_a_suite_requires() {
        for path in [&["import"][..], &["models", "quant-check"]] {
            let mut command = definition();
            for name in path {
                command = command.find_subcommand(name).unwrap().clone();
            }
            let usage = command.render_usage().to_string();
            command.build();
            let suite = command.find_subcommand("nupa").unwrap();
            let required: Vec<&Arg> = suite.get_arguments().filter(|arg| arg.is_required_set()).collect();
            assert!(!required.is_empty(), "{path:?}");
            for arg in required {
                assert!(usage.contains(&arg.to_string()), "{arg} is not in {usage}");
            }
        }
    }

    #[test]
    fn rare_options_are_options_of_run() {
        let run = definition().find_subcommand("run").unwrap().clone();
        for id in RARE {
            assert!(run.get_arguments().any(|arg| arg.get_id() == id), "{id}");
        }
    }

    #[test]
    fn former_spellings_of_the_scorer_are_read() {
        for spelling in ["--scorer", "--rule", "--profile"] {
            let asked = run(&["nupa", spelling, "strict"]).unwrap();
            assert_eq!(asked.options.text("profile"), Ok(Some("strict")), "{spelling}");
        }
        for words in [
            &["score", "a", "--rule", "final"][..],
            &["score", "a", "--profile", "final"],
            &["score", "a", "--reader", "final"],
            &["compare", "a", "b", "--primary", "final"],
            &["import-logs", "a", "--primary", "final"],
            &["import-logs", "a", "--scorer", "final"],
        ] {
            let words = [&["earnest"], words].concat();
            definition().try_get_matches_from(&words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
        }
        let words = ["score", "a", "--profil", "final"].map(str::to_owned);
        let today = super::super::today_at(definition(), words.into_iter(), "--profile");
        assert_eq!(today.as_deref(), Some("--scorer"));
    }

    #[test]
    fn lists_are_split_and_values_checked() {
        let asked = run(&["dnc", "--kinds", "noise,type", "--kinds", "extra", "--limit", "3"]).unwrap();
        assert_eq!(asked.options.list("kinds"), Ok(Some(vec!["noise", "type", "extra"])));
        for wrong in [
            &["nupa", "--lengths", "3..1"][..],
            &["nupa", "--split", "all"],
            &["nupa", "--shots", "x"],
            &["nupa", "--shots", "99999999999"],
            &["gsm-symbolic", "--data", "d", "--revision", "r"],
            &["nupa", "--set", "1"],
        ] {
            assert!(run(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_new_suite_has_a_command() {
        use earnest_tasks::suite::Suite;
        use earnest_tasks::suite::registry::{Choice, Host, OptionError};
        struct Toy;
        impl BuiltIn for Toy {
            fn card(&self) -> Card {
                const OPTIONS: [OptionSpec; 2] = [
                    OptionSpec::integer("largest", "N", "Ask up to this number").alias(&["most"]),
                    OptionSpec::flag("odd", "Odd numbers alone").hidden(),
                ];
                Card { options: &OPTIONS, ..Card::new("toy", "1", "Toy", "an example", "Small numbers") }
            }
            fn tasks(&self) -> Vec<String> {
                Vec::new()
            }
            fn items(&self) -> Option<usize> {
                None
            }
            fn configure(&self, _: &OptionValues, _: &dyn Host) -> Result<Box<dyn Choice>, OptionError> {
                Err(OptionError::usage("not here"))
            }
            fn chosen(&self, _: &serde_json::Value) -> Vec<String> {
                Vec::new()
            }
            fn stored(&self, _: &serde_json::Value, _: &dyn Host) -> Result<Suite, OptionError> {
                Err(OptionError::usage("not here"))
            }
        }
        let common = [Arg::new("limit").long("limit").help("Most items"), Arg::new("events").long("events")];
        let mut command = of_suite(&Toy, &common, "run");
        let help = command.render_long_help().to_string();
        assert!(help.contains("Small numbers") && help.contains("Toy:\n      --largest <N>"), "{help}");
        assert!(help.contains("--limit") && !help.contains("--events") && !help.contains("--odd"), "{help}");
        let matches = command.try_get_matches_from(["toy", "--most", "7", "--odd", "--events", "x"]).unwrap();
        let given = given_of(Toy.card().options, &matches);
        assert!(given.has("odd") && given.parsed::<u64>("largest") == Ok(Some(7)));
    }
}
