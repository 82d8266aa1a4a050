//! All output: results on stdout, messages on stderr.
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use super::Exit;
use super::error::CliError;
use super::offered::options;
use earnest_report::{text_width, wrap_lines};

/// Printer of results and messages.
#[derive(Debug, Clone, Copy)]
pub struct Printer {
    /// ANSI styles on stderr.
    style: bool,
    /// No progress and no messages: results, remarks, warnings and errors alone.
    quiet: bool,
}

impl Printer {
    /// Creates a printer with styles on a terminal, unless `NO_COLOR` is set.
    pub fn new(quiet: bool) -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Printer { style: wanted && io::stderr().is_terminal(), quiet }
    }

    /// True if standard output is a terminal.
    pub fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Width of results in columns; 80 if unknown, as where the output is a file.
    pub fn width(&self) -> usize {
        self.known_width().unwrap_or(80)
    }

    /// Width of the terminal, or of the variable `COLUMNS`, at least 40; none if neither is known.
    pub fn known_width(&self) -> Option<usize> {
        let terminal = || terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
        let variable = || std::env::var("COLUMNS").ok()?.trim().parse::<usize>().ok();
        terminal().or_else(variable).filter(|&columns| columns > 0).map(|columns| columns.max(40))
    }

    /// Prints a result, on a terminal without control characters from a model or server. A closed pipe (`| head`) is no error.
    pub fn result(&self, text: &str) -> Result<(), CliError> {
        let text = if self.is_terminal() { harmless(text) } else { text.into() };
        let mut stdout = io::stdout().lock();
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(CliError::new(Exit::Results, format!("cannot write to standard output: {error}")))
            }
            _ => Ok(()),
        }
    }

    /// Prints the last lines of a screen, where its page is and which commands follow, each wrapped as a message is; nothing if quiet.
    pub fn follow(&self, lines: impl IntoIterator<Item = String>) -> Result<(), CliError> {
        if self.quiet {
            return Ok(());
        }
        lines.into_iter().try_for_each(|line| self.result(&(wrapped("", &options(&line), self.width()) + "\n")))
    }

    /// Streams a result that may be large; returns false if the reader closed the pipe (`| head`), which is no error.
    pub fn stream(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<bool, CliError> {
        let mut out = io::BufWriter::with_capacity(1 << 18, Screen::new(io::stdout().lock(), self.is_terminal()));
        match write(&mut out).and_then(|()| out.flush()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                // The rest of the buffer is dropped unwritten.
                let _ = out.into_parts();
                Ok(false)
            }
            Err(error) => Err(CliError::new(Exit::Results, format!("cannot write to standard output: {error}"))),
        }
    }

    /// Prints one JSON document.
    pub fn json(&self, value: &impl Serialize) -> Result<(), CliError> {
        let text = serde_json::to_string_pretty(value)
            .map_err(|error| CliError::new(Exit::Results, format!("cannot write the JSON document: {error}")))?;
        self.result(&(text + "\n"))
    }

    /// True if progress and messages are hidden.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Prints a message on the way or on the next step, wrapped at words on a terminal; nothing if quiet.
    pub fn message(&self, text: &str) {
        if !self.quiet {
            self.remark(text);
        }
    }

    /// Prints a message that belongs to the result or to a warning, and that a quiet printer prints too.
    pub fn remark(&self, text: &str) {
        Self::write_message("", text);
    }

    /// Prints a message behind a beginning that may be styled. Only a terminal's lines are wrapped: programs read whole ones.
    fn write_message(beginning: &str, text: &str) {
        let text = options(&harmless(&bounded(text)));
        let text = wrapped(beginning, &text, message_width().unwrap_or(usize::MAX));
        // Ignored: with stderr closed, there is nowhere to report to.
        writeln!(io::stderr().lock(), "{text}").ok();
    }

    /// Prints an error and its next step.
    pub fn error(&self, error: &CliError) {
        Self::write_message(&self.beginning("error", "1;31"), &error.message);
        if let Some(help) = &error.help {
            Self::write_message(&self.beginning("help", "1;36"), help);
        }
    }

    /// Prints a warning.
    pub fn warning(&self, text: &str) {
        Self::write_message(&self.beginning("warning", "1;33"), text);
    }

    fn beginning(&self, word: &str, code: &str) -> String {
        format!("{}: ", self.styled(word, code))
    }

    fn styled(&self, text: &str, code: &str) -> String {
        if self.style { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Characters of a message that are printed: its beginning, which names the place, and its end, which may name the next step.
const MESSAGE_START: usize = 6_000;
const MESSAGE_END: usize = 1_000;

/// A message without its middle, where a text of somebody makes it longer than a screen or two.
fn bounded(text: &str) -> Cow<'_, str> {
    // In bytes first, because most messages are short.
    if text.len() <= MESSAGE_START + MESSAGE_END {
        return text.into();
    }
    let count = text.chars().count();
    if count <= MESSAGE_START + MESSAGE_END {
        return text.into();
    }
    let at = |index: usize| text.char_indices().nth(index).map_or(text.len(), |(at, _)| at);
    let (start, end) = (at(MESSAGE_START), at(count - MESSAGE_END));
    let left_out = count - MESSAGE_START - MESSAGE_END;
    format!("{} [... {left_out} characters are left out ...] {}", &text[..start], &text[end..]).into()
}

/// Width of the lines of messages: that of the terminal of standard error, else of the variable `COLUMNS`; none where no terminal shows
/// them, or one that is too narrow for words.
fn message_width() -> Option<usize> {
    if !io::stderr().is_terminal() {
        return None;
    }
    let terminal = terminal_size::terminal_size_of(io::stderr()).map(|(width, _)| usize::from(width.0));
    let variable = || std::env::var("COLUMNS").ok()?.trim().parse::<usize>().ok();
    terminal.filter(|&width| width > 0).or_else(variable).filter(|&width| width >= 20)
}

/// Wraps the lines of a message behind its beginning, whose styles take no room. What a line continues with stands under its own
/// beginning; a command stays whole, so that it can be copied, with its comment below it where both have no room.
fn wrapped(beginning: &str, text: &str, width: usize) -> String {
    let plain = unstyled(beginning);
    let wrapped = |(index, line): (usize, &str)| {
        let whole = if index == 0 { format!("{plain}{line}") } else { line.to_owned() };
        let lines = match comment(line) {
            _ if text_width(&whole) <= width => whole,
            Some("") => whole,
            Some(comment) => {
                let indent = " ".repeat(whole.find("earnest ").unwrap_or(0));
                let command = whole.strip_suffix(comment).unwrap_or(&whole).trim_end();
                format!("{command}\n{}", wrap_lines(&format!("{indent}{comment}"), width))
            }
            None => wrap_lines(&whole, width),
        };
        lines.trim_end().to_owned()
    };
    let text = text.lines().enumerate().map(wrapped).collect::<Vec<_>>().join("\n");
    let (plain, styled) = (plain.trim_end(), beginning.trim_end());
    text.strip_prefix(plain).map_or_else(|| text.clone(), |rest| format!("{styled}{rest}"))
}

/// A text without the marks of ANSI styles.
fn unstyled(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    first + &parts.filter_map(|part| part.split_once('m')).map(|(_, rest)| rest).collect::<String>()
}

/// The comment in parentheses, which is for people, behind a command to be copied: `next: earnest samples RUN (RUN: a run)`. Empty for a
/// command alone; none for a line that is no command.
fn comment(line: &str) -> Option<&str> {
    let own = line.trim_start();
    let own = own.strip_prefix("next: ").unwrap_or(own);
    own.starts_with("earnest ").then(|| own.find(" (").map_or("", |index| &own[index + 1..]))
}

/// A name as it stands in a line: without control characters and line ends.
pub fn one_line(name: &str) -> String {
    harmless(&name.replace('\n', "\u{240a}").replace('\t', " ")).into_owned()
}

/// A writer of texts that are not our own: on a terminal their control characters are visible ones ([`harmless`]), elsewhere nothing changes.
pub struct Screen<W> {
    out: W,
    is_terminal: bool,
    /// The beginning of a character, or of the end of a line, whose rest is not written yet.
    begun: Vec<u8>,
}

impl<W: Write> Screen<W> {
    /// Wraps a writer, to a terminal or elsewhere.
    pub fn new(out: W, is_terminal: bool) -> Screen<W> {
        Screen { out, is_terminal, begun: Vec::new() }
    }
}

impl<W: Write> Write for Screen<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_terminal {
            return self.out.write(bytes);
        }
        let mut whole = std::mem::take(&mut self.begun);
        whole.extend_from_slice(bytes);
        let end = match std::str::from_utf8(&whole) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ if whole.ends_with(b"\r") => whole.len() - 1,
            _ => whole.len(),
        };
        self.begun = whole.split_off(end);
        // The lines of a CSV end so.
        let text = String::from_utf8_lossy(&whole).replace("\r\n", "\n");
        self.out.write_all(harmless(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Replaces control characters by visible ones, so that a model's text cannot move the cursor, change colours or hide other text.
/// Line feeds and tabs stay.
pub fn harmless(text: &str) -> Cow<'_, str> {
    // Bidirectional marks are not control characters but can hide text too.
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let harms = |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || turns(c);
    if !text.contains(harms) {
        return text.into();
    }
    let shown = |c: char| match c {
        c if !harms(c) => c.to_string(),
        // Unicode's control pictures.
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}').to_string(),
        '\u{7f}' => '\u{2421}'.to_string(),
        c => format!("<U+{:04X}>", u32::from(c)),
    };
    text.chars().map(shown).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_shows_control_characters_in_whatever_parts_they_come() {
        let text = "a,\u{1b}]0;x\u{7}\u{9b}31m\u{202e}\u{e9}\u{1f600}\tb\r\nc\r\n";
        let written = |is_terminal: bool, part: usize| {
            let mut screen = Screen::new(Vec::new(), is_terminal);
            text.as_bytes().chunks(part).for_each(|part| screen.write_all(part).unwrap());
            screen.flush().unwrap();
            String::from_utf8(screen.out).unwrap()
        };
        let shown = "a,\u{241b}]0;x\u{2407}<U+009B>31m<U+202E>\u{e9}\u{1f600}\tb\nc\n";
        assert_eq!(written(true, text.len()), shown);
        for part in 1..9 {
            assert_eq!(written(false, part), text);
            assert_eq!(written(true, part), shown, "{part}");
        }
        let mut screen = Screen::new(Vec::new(), true);
        screen.write_all(b"a\xff\xfeb").unwrap();
        assert_eq!(screen.out, "a\u{fffd}\u{fffd}b".as_bytes());
    }

    #[test]
    fn messages_are_wrapped_and_commands_stay_whole() {
        let styled = "\u{1b}[1;33mwarning\u{1b}[0m: ";
        assert_eq!(unstyled(styled), "warning: ");
        // The styles take no room: 20 columns are full.
        assert_eq!(wrapped(styled, "one two six seven", 20), format!("{styled}one two six\nseven"));
        assert_eq!(wrapped(styled, "one two six", 20), format!("{styled}one two six"));
        assert_eq!(wrapped("", "", 20), "");
        assert_eq!(wrapped(styled, "one \n\n  two\n", usize::MAX), format!("{styled}one\n\n  two"));
        let long = "a_word_that_is_longer_than_a_line";
        assert_eq!(wrapped("help: ", long, 20), format!("help:\n{long}"));
        let text = "name a run, as one of these\n  earnest runs show nupa-00000001  # seed 1\n  and of many words";
        assert_eq!(
            wrapped("help: ", text, 20),
            "help: name a run, as\none of these\n  earnest runs show nupa-00000001  # seed 1\n  and of many words"
        );
        assert_eq!(wrapped("", "  and of many words too", 20), "  and of many words\n  too");
        let next = "next: earnest samples nupa-00000001 --wrong";
        assert_eq!(wrapped("", next, 20), next);
        let compare = "      earnest compare A B (A: a run of the same questions)";
        assert_eq!(
            wrapped("", compare, 30),
            "      earnest compare A B\n      (A: a run of the same\n      questions)"
        );
        assert_eq!(
            wrapped("", "next: earnest compare A nupa-00000001 (A: a run)", 30),
            "next: earnest compare A nupa-00000001\n      (A: a run)"
        );
        let said = "name its columns: `--columns id=..., score=...`";
        assert_eq!(wrapped("help: ", said, 40), "help: name its columns:\n`--columns id=..., score=...`");
    }

    #[test]
    fn control_characters_are_seen_and_do_nothing() {
        assert!(matches!(harmless("two\n\tlines, ä, 数, e\u{301}"), Cow::Borrowed(_)));
        assert_eq!(harmless("a\u{1b}[31mred\0\u{7f}\r"), "a␛[31mred␀␡␍");
        assert_eq!(harmless("\u{9b}31m \u{202e}abc"), "<U+009B>31m <U+202E>abc");
    }
}
