//! Marks of LaTeX, Markdown and HTML, special tokens, fenced programs.
use super::lexer::{Brace, Lexer};
use super::numeral::{Spelling, latex_fraction};
use super::token::{Kind, is_among};
use super::vocabulary::Meaning;

/// Languages of fenced blocks that hold no program.
const PROSE: &str = "text txt plaintext plain latex tex math json yaml yml markdown";

/// Tags around an answer.
const ANSWERS: &str = "answer final final_answer final-answer finalanswer result";

/// Marks of program code, which answers do not have, apart by `|`.
const CODE_MARKS: &str =
    "print(|return |def |import |console.log|int main|let |function |for (|for i in|#include|fn main|public ";

impl Lexer<'_> {
    /// `<`: a calculator's note, a special token, a tag, or less than.
    pub(super) fn less(&mut self) {
        const LONGEST: usize = 120;
        let rest = self.rest();
        let near = |end: &str| rest[..rest.floor_char_boundary(LONGEST)].find(end).map(|at| at + end.len());
        if rest.starts_with("<<")
            && let Some(length) = near(">>")
        {
            return self.skip(length, false);
        }
        if (rest.starts_with("<|") || rest.starts_with("<\u{ff5c}"))
            && let Some(length) = near("|>").or_else(|| near("\u{ff5c}>"))
        {
            let name = rest[1..length].trim_matches(|c: char| !c.is_alphabetic()).to_ascii_lowercase();
            const ENDS: &str = "im_end endoftext end_of_text eot_id eom_id end_of_turn return end im_start start_header_id user \
                                eos call endofturn end\u{2581}of\u{2581}sentence";
            if is_among(&name, ENDS) {
                return self.push_apart(Kind::End, length);
            }
            let role = if name == "start" && rest[length..].starts_with("assistant") { "assistant".len() } else { 0 };
            return self.push_apart(Kind::Line, length + role);
        }
        if let Some(length) = near(">") {
            let tag = rest[1..length - 1].to_ascii_lowercase();
            let closing = tag.starts_with('/');
            let name = tag.trim_matches('/').split_whitespace().next().unwrap_or("");
            let in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':');
            if name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(in_name) {
                let answer = if closing { Kind::AnswerClose } else { Kind::AnswerOpen };
                let kind = match name {
                    _ if is_among(name, ANSWERS) => answer,
                    "s" | "eos" | "end_of_turn" | "start_of_turn" if closing || name != "s" => Kind::End,
                    "b" | "strong" => Kind::Bold,
                    "sup" if !closing && self.last().is_number() => Kind::Operator('^'),
                    "sup" | "i" | "em" | "u" | "span" | "code" | "sub" => return self.skip(length, false),
                    _ => Kind::Line,
                };
                return self.push(kind, length);
            }
        }
        self.push(Kind::Less, 1);
    }

    pub(super) fn open_brace(&mut self) {
        let brace = std::mem::replace(&mut self.next_brace, Brace::Plain);
        self.braces.push(brace);
        match brace {
            Brace::Plain => self.skip(1, false),
            Brace::Box => self.push(Kind::BoxOpen, 1),
            Brace::Bold => self.push(Kind::Bold, 1),
            Brace::Top | Brace::Bottom => self.push(Kind::Open, 1),
        }
    }

    pub(super) fn close_brace(&mut self) {
        match self.braces.pop().unwrap_or(Brace::Plain) {
            Brace::Plain => self.skip(1, false),
            Brace::Box => self.push(Kind::BoxClose, 1),
            Brace::Bold => self.push(Kind::Bold, 1),
            Brace::Bottom => self.push(Kind::Close, 1),
            Brace::Top => {
                self.push(Kind::Close, 1);
                self.push(Kind::Operator('/'), 0);
                self.next_brace = Brace::Bottom;
            }
        }
    }

    /// A command of LaTeX.
    pub(super) fn command(&mut self) {
        let rest = &self.text[self.at..];
        let Some(next) = rest[1..].chars().next() else { return self.skip(1, false) };
        if !next.is_ascii_alphabetic() {
            let length = 1 + next.len_utf8();
            return match next {
                '\\' => self.push(Kind::Line, length),
                '%' => {
                    self.at += 1;
                    self.percent(1);
                }
                '\n' => self.skip(1, true),
                'n' => self.skip(length, true),
                '-' | '*' | '#' | '.' | '_' => self.skip(1, false),
                _ => self.skip(length, matches!(next, ',' | ';' | ':' | ' ' | '!' | '(' | ')' | '[' | ']')),
            };
        }
        let length = 1 + rest[1..].bytes().take_while(u8::is_ascii_alphabetic).count();
        let (name, behind) = (&rest[1..length], &rest[length..]);
        match name {
            "frac" | "dfrac" | "tfrac" | "cfrac" | "sfrac" | "nicefrac" => match latex_fraction(rest) {
                Some((top, bottom, end)) => {
                    self.add_number(format!("{top}/{bottom}"), Spelling::Fraction, self.at + end);
                }
                None => self.pass_before_brace(Brace::Top, length, true),
            },
            "boxed" | "fbox" | "framebox" | "bbox" => {
                self.pass_before_brace(Brace::Box, length, behind.trim_start().starts_with('{'));
            }
            "textbf" | "mathbf" | "bm" | "boldsymbol" => {
                self.pass_before_brace(Brace::Bold, length, behind.starts_with('{'));
            }
            "times" | "cdot" | "ast" | "cdotp" => self.push(Kind::Operator('*'), length),
            "div" => self.push(Kind::Operator('/'), length),
            "bmod" | "mod" | "pmod" => self.push(Kind::Operator('%'), length),
            "approx" | "simeq" | "equiv" | "hline" | "doteq" => self.push(Kind::Equals, length),
            "neq" | "ne" => self.push(Kind::Unequal, length),
            "to" | "rightarrow" | "Rightarrow" | "implies" | "Longrightarrow" | "longrightarrow" | "therefore" => {
                self.push(Kind::Arrow, length);
            }
            "lt" | "le" | "leq" | "leqslant" => self.push(Kind::Less, length),
            "gt" | "ge" | "geq" | "geqslant" => self.push(Kind::Greater, length),
            "ldots" | "dots" | "cdots" => self.push(Kind::Ellipsis, length),
            "checkmark" => self.push(Kind::Check, length),
            "begin" | "end" => {
                // The environment's name and the columns of an array.
                let mut end = length;
                for _ in 0..2 {
                    let inside = rest[end..].strip_prefix('{').unwrap_or_default().as_bytes();
                    match inside.iter().take(24).position(|&byte| byte == b'}') {
                        Some(close) if !inside[..close].iter().any(u8::is_ascii_digit) => end += close + 2,
                        _ => break,
                    }
                }
                self.push_apart(Kind::Line, end);
            }
            "pi" | "sqrt" | "sum" | "infty" => self.push(Kind::Word(Meaning::default()), length),
            "n" | "newline" | "par" => self.push(Kind::Line, length),
            _ => self.skip(length, true),
        }
    }

    /// Passes over a command; what the brace behind it holds is told by the command, if one is there.
    fn pass_before_brace(&mut self, brace: Brace, length: usize, braced: bool) {
        if braced {
            self.next_brace = brace;
        }
        self.skip(length, false);
    }

    /// A fenced block: a program is one token, anything else is read.
    pub(super) fn fence(&mut self, indent: usize, line_length: usize) {
        let start = self.at;
        if std::mem::take(&mut self.fenced) {
            return self.push(Kind::Line, line_length);
        }
        let info = self.text[start + indent + 3..start + line_length].trim().to_ascii_lowercase();
        let fence = &self.text[start + indent..start + indent + 3];
        let body_at = (start + line_length + 1).min(self.text.len());
        let behind = &self.text[body_at..];
        let closed = behind.find(fence);
        let body = &behind[..closed.unwrap_or(behind.len())];
        let language = info.split_whitespace().next().unwrap_or("");
        // What a program printed.
        let output = "output result stdout answer".split(' ').any(|word| language.contains(word));
        let marked = || CODE_MARKS.split('|').any(|mark| body.contains(mark));
        let code = if language.is_empty() { marked() } else { !is_among(language, PROSE) };
        let program = code && !output;
        // What an interpreter printed behind its last prompt is no program.
        let prompt = body.rfind("\n>>>").map_or(body.starts_with(">>>").then_some(0), |at| Some(at + 1));
        let printed =
            prompt.and_then(|at| Some(at + body[at..].find('\n')?)).filter(|&from| !body[from..].trim().is_empty());
        let end = match printed {
            // What is in it is read; the closing fence is met on its own.
            _ if !program => body_at,
            Some(from) => body_at + from,
            None => body_at + body.len() + if closed.is_some() { 3 } else { 0 },
        };
        self.spaced |= program;
        self.fenced = closed.is_some() && (!program || printed.is_some());
        self.push(if program { Kind::Program } else { Kind::Line }, end - start);
    }

    /// Struck text was withdrawn.
    pub(super) fn struck(&mut self) {
        const LONGEST: usize = 400;
        let near = self.rest().as_bytes().iter().take(LONGEST).take_while(|&&byte| byte != b'\n').count();
        let inside = self.rest().as_bytes().get(2..near).unwrap_or_default();
        let length = inside.windows(2).position(|two| two == b"~~").map_or(2, |end| end + 4);
        self.skip(length, true);
    }
}
