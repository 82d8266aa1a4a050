//! Divides a text into tokens in one pass.
use super::numeral::{Scanned, Spelling, Style, digit, is_minus, scan, superscript};
use super::token::{Kind, Number, Token, Tokens};
use super::vocabulary::{Meaning, meaning};
use super::words;
use crate::number::words::{Language, scaled, wide_number};

impl<'t> Tokens<'t> {
    /// Divides a text.
    pub fn new(text: &'t str, style: Style, language: Language) -> Self {
        let mut lexer = Lexer {
            text,
            at: 0,
            style,
            spaced: false,
            line_start: true,
            line_end: text.find('\n').unwrap_or(text.len()),
            fenced: false,
            minus: None,
            tokens: Vec::with_capacity(text.len() / 4 + 8),
            numbers: Vec::new(),
            braces: Vec::new(),
            next_brace: Brace::Plain,
        };
        while lexer.at < text.len() {
            lexer.step();
        }
        let mut tokens = Tokens { text, tokens: lexer.tokens, numbers: lexer.numbers };
        words::join(&mut tokens, language, style);
        tokens
    }
}

/// Content of a brace of LaTeX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Brace {
    Plain,
    Box,
    Bold,
    Top,
    Bottom,
}

pub(super) struct Lexer<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) style: Style,
    pub(super) spaced: bool,
    pub(super) line_start: bool,
    /// End of the line, or of an earlier one.
    pub(super) line_end: usize,
    /// Inside a fenced block that is read.
    pub(super) fenced: bool,
    /// Byte of the next number's minus sign.
    pub(super) minus: Option<usize>,
    pub(super) tokens: Vec<Token>,
    pub(super) numbers: Vec<Number>,
    pub(super) braces: Vec<Brace>,
    pub(super) next_brace: Brace,
}

impl Lexer<'_> {
    pub(super) fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    pub(super) fn last(&self) -> Option<Kind> {
        self.tokens.last().map(|token| token.kind)
    }

    pub(super) fn push(&mut self, kind: Kind, length: usize) {
        let start = self.at;
        self.at += length;
        let line = matches!(kind, Kind::Line);
        if line && self.last() == Some(Kind::Line) {
            self.spaced = true;
            self.line_start = true;
            return;
        }
        self.tokens.push(Token { kind, start, end: self.at, spaced: self.spaced });
        self.spaced = line;
        self.line_start = line;
    }

    /// Passes over what says nothing.
    pub(super) fn skip(&mut self, length: usize, spaced: bool) {
        self.at += length;
        self.spaced |= spaced;
    }

    fn step(&mut self) {
        if self.line_start && self.begins_line() {
            return;
        }
        let Some(c) = self.rest().chars().next() else { return };
        let width = c.len_utf8();
        match c {
            '\n' | '\u{2028}' | '\u{2029}' => self.push(Kind::Line, width),
            _ if c.is_whitespace() || c == '\u{feff}' || c == '\u{200b}' => self.skip(width, true),
            '0'..='9' | '½' | '¼' | '¾' | '⅓' | '⅔' => self.number(),
            '.' if self.point_begins_number() => self.number(),
            'a'..='z' | 'A'..='Z' => self.word(),
            '.' => self.point(),
            '\\' => self.command(),
            '{' => self.open_brace(),
            '}' => self.close_brace(),
            '[' if self.bracket_tag() => {}
            '(' | '[' | '（' | '［' | '【' | '「' => self.push(Kind::Open, width),
            ')' | ']' | '）' | '］' | '】' | '」' => self.push(Kind::Close, width),
            '*' => self.star(),
            '_' => self.underscore(),
            '`' => self.skip(width, false),
            '~' if self.rest().starts_with("~~") => self.struck(),
            '$' | '€' | '£' | '¥' | '₹' | '₣' | '₽' | '₩' | '¢' | '&' | '~' => self.skip(width, false),
            '=' if self.rest().starts_with("=>") => self.push(Kind::Arrow, 2),
            '=' if self.rest().starts_with("==>") => self.push(Kind::Arrow, 3),
            '=' if self.rest().starts_with("==") => self.push(Kind::Equals, 2),
            '=' | '≈' | '≃' | '≅' | '≡' | '＝' | '≒' => self.push(Kind::Equals, width),
            '→' | '⇒' | '⟶' | '➜' | '➡' | '⟹' | '➔' | '∴' => self.push(Kind::Arrow, width),
            '≠' => self.push(Kind::Unequal, width),
            '!' if self.rest().starts_with("!=") => self.push(Kind::Unequal, 2),
            '<' => self.less(),
            '>' => self.push(Kind::Greater, width),
            '≤' | '≦' => self.push(Kind::Less, width),
            '≥' | '≧' => self.push(Kind::Greater, width),
            '。' | '।' | '!' | '！' | '؟' | '۔' if c != '؟' => self.push(Kind::Stop, width),
            '?' | '？' | '؟' => self.push(Kind::Question, width),
            '…' => self.push(Kind::Ellipsis, width),
            ',' | '，' | '、' | '،' => self.push(Kind::Comma, width),
            // "Answer — 4"
            '—' if matches!(self.last(), Some(Kind::Word(meaning)) if meaning.has(Meaning::ANSWER)) => {
                self.push(Kind::Colon, width);
            }
            ';' | '；' | '—' => self.push(Kind::Semicolon, width),
            ':' | '：' => self.push(Kind::Colon, width),
            '|' => self.push(Kind::Bar, width),
            '+' | '＋' => self.plus(width),
            '×' | '⋅' | '·' | '∙' | '∗' | '✕' => self.push(Kind::Operator('*'), width),
            '÷' | '/' | '∕' => self.push(Kind::Operator('/'), width),
            '^' => self.caret(),
            '%' | '％' | '٪' => self.percent(width),
            '√' if self.rest()[width..].starts_with(|c: char| digit(c).is_some() || c == '(') => {
                self.push(Kind::Other, width)
            }
            '✓' | '✔' | '✅' | '☑' | '√' => self.push(Kind::Check, width),
            '"' | '\'' | '“' | '”' | '‘' | '’' | '«' | '»' | '„' => self.push(Kind::Quote, width),
            '#' => self.push(Kind::Other, width),
            _ if is_minus(c) => self.dash(c),
            _ if superscript(c).is_some() || c == '⁻' => self.superscripts(),
            _ if digit(c).is_some() || "⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒".contains(c) => self.number(),
            _ if is_letter(c) => self.word(),
            _ => self.push(Kind::Other, width),
        }
    }

    /// Reads what only the beginning of a line can be: true if something was read.
    fn begins_line(&mut self) -> bool {
        // Marks of LaTeX begin lines too: the end of one is looked for once.
        if self.line_end < self.at {
            self.line_end = self.rest().find('\n').map_or(self.text.len(), |length| self.at + length);
        }
        let rest = self.rest();
        let line_length = self.line_end - self.at;
        let line = &rest[..line_length];
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        let body = &line[indent..];
        if body.starts_with("```") || body.starts_with("~~~") {
            self.fence(indent, line_length);
            return true;
        }
        // A function of Python, which says nothing unless it is run.
        if body.starts_with("def ") && line.trim_end().ends_with(':') {
            let indented = |line: &&str| line.trim().is_empty() || line.starts_with([' ', '\t']);
            let body: usize =
                rest[line_length..].split_inclusive('\n').skip(1).take_while(indented).map(str::len).sum();
            let first = usize::from(rest.len() > line_length);
            self.spaced = true;
            self.push(Kind::Program, line_length + first + body);
            self.line_start = true;
            return true;
        }
        // What was typed into an interpreter.
        if body.starts_with(">>>") || body.starts_with("In [") {
            self.at += line_length;
            return true;
        }
        if let Some(prompt) = body.strip_prefix("Out[")
            && let Some(end) = prompt.find("]:")
        {
            self.at += indent + 4 + end + 2;
            return true;
        }
        if let Some(quoted) = body.strip_prefix('>')
            && !quoted.starts_with(['=', '>'])
        {
            self.skip(indent + 1, true);
            return true;
        }
        let bare = body.trim_end();
        if bare.len() >= 3
            && (bare.bytes().all(|b| b == b'-')
                || bare.bytes().all(|b| b == b'=')
                || bare == "***"
                || bare == "___"
                || bare == "* * *")
        {
            self.spaced = true;
            self.push(Kind::Rule, line_length);
            self.line_start = true;
            return true;
        }
        let hashes = body.bytes().take_while(|&b| b == b'#').count();
        if hashes > 0 {
            // Four of them before a number are the mark of GSM8K, before words a heading.
            let behind = body[hashes..].trim_start_matches([' ', '$', '-', '\u{2212}', '*']);
            let number = behind.chars().next().is_some_and(|c| digit(c).is_some() || c == '.' || c == '\\');
            let kind = if hashes >= 3 && number { Kind::Hashes } else { Kind::Heading };
            self.skip(indent, true);
            self.push(kind, hashes);
            return true;
        }
        if let Some(first) = body.chars().next() {
            let width = first.len_utf8();
            let followed = body[width..].starts_with([' ', '\t']);
            let bullet = matches!(first, '•' | '◦' | '▪' | '‣' | '●')
                || followed && matches!(first, '-' | '*' | '+' | '·' | '–');
            // `- 5` at the very beginning may be a negative number with a space; a bullet needs words or company.
            // `- 48` and nothing else is a negative number.
            // So it is on a line of a formula.
            let formula = || self.text[..self.at].trim_end();
            let alone = bullet
                && is_minus(first)
                && (self.text.trim() == body.trim() || formula().ends_with("\\[") || formula().ends_with("$$"))
                && body[width..].trim().trim_start_matches('$').bytes().all(|b| b.is_ascii_digit() || b == b'.');
            if alone {
                self.at += indent + width;
                self.minus = Some(self.at - width);
                self.spaced = true;
                self.line_start = false;
                return true;
            }
            if bullet {
                self.skip(indent, true);
                self.push(Kind::Bullet, width);
                return true;
            }
        }
        self.line_start = false;
        false
    }

    fn point_begins_number(&self) -> bool {
        let mut next = self.rest()[1..].chars();
        let before = self.text[..self.at].chars().next_back();
        next.next().is_some_and(|c| digit(c).is_some()) && before.is_none_or(|c| !c.is_alphanumeric() && c != '.')
    }

    fn point(&mut self) {
        let rest = self.rest();
        let points = rest.bytes().take_while(|&b| b == b'.').count();
        if points > 1 {
            return self.push(Kind::Ellipsis, points);
        }
        let after = rest[1..].chars().next();
        let ends =
            after.is_none_or(|c| c.is_whitespace() || !(c.is_alphanumeric() || c == '/' || c == '@' || c == '_'));
        // `5.Next`: a capital letter behind a number's point begins a sentence.
        let glued = matches!(self.last(), Some(Kind::Number(_))) && after.is_some_and(char::is_alphabetic);
        // `i.e.`, `approx.`
        let abbreviation = match self.last() {
            Some(Kind::Word(meaning)) => {
                let token = self.tokens[self.tokens.len() - 1];
                let word = &self.text[token.start..token.end];
                meaning.has(Meaning::ABBREVIATION) && !(word.len() > 2 && after.is_some_and(|c| c == '\n'))
            }
            _ => false,
        };
        self.push(if (ends && !abbreviation) || glued { Kind::Stop } else { Kind::Other }, 1);
    }

    fn number(&mut self) {
        let start = self.at;
        if let Some(found) = scan(self.text, start, self.style)
            && let Some((text, end)) = with_wide_units(self.text, &found)
        {
            return self.add_number(start, Scanned { text, spelling: Spelling::Integer, end });
        }
        let Some(found) = scan(self.text, start, self.style) else {
            let width = self.rest().chars().next().map_or(1, char::len_utf8);
            return self.push(Kind::Other, width);
        };
        self.add_number(start, found);
    }

    pub(super) fn add_number(&mut self, start: usize, found: Scanned) {
        let Scanned { text, spelling, mut end } = found;
        let minus = self.minus.take();
        // Latin letters directly before: a name, unless they are a currency.
        let before = self.text[..start].chars().next_back();
        let mut ordinal = false;
        let name = match self.last() {
            Some(Kind::Word(meaning)) if before.is_some_and(|c| c.is_alphabetic() && (c as u32) < 0x2e80) => {
                let token = self.tokens[self.tokens.len() - 1];
                let word = &self.text[token.start..token.end];
                token.end == start
                    && !meaning.has(Meaning::ANSWER)
                    && !matches!(word, "USD" | "EUR" | "GBP" | "Rs" | "RM" | "R" | "r" | "INR" | "US" | "CHF")
                    && (c_is_latin(before))
            }
            _ => false,
        };
        let after = &self.text[end..];
        // `3rd`
        if let Some(suffix) = after.get(..2)
            && matches!(suffix, "st" | "nd" | "rd" | "th")
            && !after[2..].starts_with(char::is_alphabetic)
        {
            ordinal = true;
            end += 2;
        }
        let mut text = text;
        // `3k`
        if let Some(behind) = self.text[end..].strip_prefix(['k', 'K'])
            && !behind.starts_with(|c: char| c.is_alphanumeric())
            && spelling != Spelling::Fraction
            && let Some(scaled) = scaled(&text, 3)
        {
            text = scaled;
            end += 1;
        }
        if minus.is_some() {
            text.insert(0, '-');
        }
        let number = Number {
            text,
            spelling,
            percent: false,
            name,
            ordinal,
            touches_end: end == self.text.len(),
            start: minus.unwrap_or(start),
            end,
        };
        self.tokens.push(Token {
            kind: Kind::Number(self.numbers.len()),
            start: number.start,
            end,
            spaced: self.spaced,
        });
        self.numbers.push(number);
        self.at = end;
        self.spaced = false;
        self.line_start = false;
    }

    fn word(&mut self) {
        let start = self.at;
        if let Some(four) = self.text.get(start..start + 4)
            && four.ends_with('.')
            && ["i.e.", "e.g.", "d.h.", "z.b."].iter().any(|short| four.eq_ignore_ascii_case(short))
        {
            let meaning = meaning(&four[..3]);
            return self.push(Kind::Word(meaning), 4);
        }
        let wide = |c: char| c as u32 >= 0x2e80;
        let mut end = start;
        let mut characters = self.text[start..].char_indices().peekable();
        let first_wide = characters.peek().is_some_and(|&(_, c)| wide(c));
        while let Some((place, c)) = characters.next() {
            let next = characters.peek().map(|&(_, next)| next);
            let inside = matches!(c, '\'' | '’' | '-' | '_')
                && place > 0
                && next.is_some_and(|next| is_letter(next) && !wide(next))
                && !first_wide;
            if !(inside || is_letter(c) && wide(c) == first_wide) {
                break;
            }
            end = start + place + c.len_utf8();
        }
        if end == start {
            return self.push(Kind::Other, self.text[start..].chars().next().map_or(1, char::len_utf8));
        }
        let word = &self.text[start..end];
        if first_wide && let Some((place, length, text)) = wide_number(word) {
            if place > 0 {
                self.push(Kind::Word(meaning(&word[..place])), place);
            }
            let at = self.at;
            let minus = match self.last() {
                Some(Kind::Word(meaning)) => meaning.has(Meaning::MINUS) && place > 0,
                _ => false,
            };
            self.minus = minus.then_some(at);
            return self.add_number(at, Scanned { text, spelling: Spelling::Words, end: at + length });
        }
        let meaning = meaning(word);
        self.push(Kind::Word(meaning), end - start);
        // A minus sign in words, where no number stands before it.
        if meaning.has(Meaning::MINUS) {
            let before = self.tokens.len().checked_sub(2).map(|at| self.tokens[at].kind);
            let binary = matches!(before, Some(Kind::Number(_) | Kind::Close));
            let behind = self.rest().trim_start_matches([' ', '$', '\u{a0}']);
            let digits = behind.chars().next().is_some_and(|c| digit(c).is_some());
            if !binary && digits {
                self.minus = Some(start);
            }
        }
    }

    fn star(&mut self) {
        let rest = self.rest();
        let before = self.text[..self.at].chars().next_back();
        let operand_before = matches!(self.last(), Some(Kind::Number(_) | Kind::Close));
        if let Some(behind) = rest.strip_prefix("**") {
            let next = behind.chars().next();
            let power = operand_before
                && before.is_some_and(|c| c.is_ascii_digit() || c == ')')
                && next.is_some_and(|c| c.is_ascii_digit() || c == '(');
            // "2 ** 15": bold type has no space on both sides.
            let power = power || operand_before && before == Some(' ') && next == Some(' ');
            let stars = rest.bytes().take_while(|&b| b == b'*').count();
            return if power { self.push(Kind::Operator('^'), 2) } else { self.push(Kind::Bold, stars) };
        }
        let next = rest[1..].chars().next();
        let operand_behind = next
            .is_some_and(|c| c.is_whitespace() || digit(c).is_some() || matches!(c, '(' | '-' | '$'))
            || rest[1..].strip_prefix('.').is_some_and(|next| next.starts_with(|c: char| c.is_ascii_digit()));
        // "14 hours * 9": between spaces, behind a unit, no mark of italics.
        let unit_before = matches!(self.last(), Some(Kind::Word(_)))
            && before == Some(' ')
            && rest[1..]
                .strip_prefix(' ')
                .is_some_and(|next| next.starts_with(|c: char| digit(c).is_some() || c == '$'));
        if (operand_before || unit_before) && operand_behind {
            self.push(Kind::Operator('*'), 1);
        } else {
            self.skip(1, false);
        }
    }

    fn underscore(&mut self) {
        if self.rest().starts_with("__") {
            let length = self.rest().bytes().take_while(|&b| b == b'_').count();
            self.push(if length == 2 { Kind::Bold } else { Kind::Other }, length);
        } else {
            // The base of a number: "101101_2", "45_{10}".
            let base = matches!(self.last(), Some(Kind::Number(_)));
            let rest = &self.rest()[1..];
            let braced = rest
                .strip_prefix('{')
                .map(|inside| inside.bytes().take_while(u8::is_ascii_digit).count())
                .filter(|&digits| rest.as_bytes().get(digits + 1) == Some(&b'}'));
            let bare = rest.bytes().take_while(u8::is_ascii_digit).count();
            let length = match braced {
                Some(digits) if digits <= 2 => digits + 2,
                None if bare <= 2 => bare,
                _ => 0,
            };
            self.skip(if base { 1 + length } else { 1 }, false);
        }
    }

    fn plus(&mut self, width: usize) {
        let sign = !matches!(self.last(), Some(Kind::Number(_) | Kind::Close | Kind::Word(_)))
            && self.rest()[width..].chars().next().is_some_and(|c| digit(c).is_some());
        if sign {
            self.skip(width, false);
        } else {
            self.push(Kind::Operator('+'), width);
        }
    }

    /// True behind the bold label of an answer: "**Answer:** ".
    fn names_answer(&self) -> bool {
        let behind = |back: usize| self.tokens.len().checked_sub(back).map(|at| self.tokens[at].kind);
        behind(2) == Some(Kind::Colon)
            && matches!(behind(3), Some(Kind::Word(meaning)) if meaning.has(Meaning::ANSWER.with(Meaning::RESULT)))
    }

    /// Reads `[ANSWER]` and `[/ANSWER]`: true if one stands here.
    fn bracket_tag(&mut self) -> bool {
        for (tag, kind) in [("[ANSWER]", Kind::AnswerOpen), ("[/ANSWER]", Kind::AnswerClose)] {
            if self.rest().get(..tag.len()).is_some_and(|text| text.eq_ignore_ascii_case(tag)) {
                self.push(kind, tag.len());
                return true;
            }
        }
        false
    }

    /// A minus sign, a dash between words or an operator.
    fn dash(&mut self, c: char) {
        let start = self.at;
        let width = c.len_utf8();
        let rest = &self.text[start + width..];
        if rest.starts_with('>') {
            return self.push(Kind::Arrow, width + 1);
        }
        // Between the sign and its digits a currency or the marks of LaTeX may stand.
        let bare = rest.trim_start_matches(['$', '€', '£', '¥', '₹', '\\', ',', '{']);
        let touches = |text: &str| {
            text.chars().next().is_some_and(|c| digit(c).is_some() || "½¼¾".contains(c))
                || text.strip_prefix('.').is_some_and(|next| next.starts_with(|c: char| c.is_ascii_digit()))
                || text.starts_with("frac")
                || text.starts_with("dfrac")
                || text.starts_with("tfrac")
        };
        let spaced_digits = touches(rest.trim_start_matches([' ', '$', '€', '£', '¥', '₹', '\\', ',', '{']));
        let touching = touches(bare);
        let before = self.text[..start].chars().next_back();
        let gap = before.is_none_or(|c| {
            c.is_whitespace() || matches!(c, '$' | '(' | '[' | '{' | '*' | '"' | '`' | '\'' | '“' | '&')
        });
        // Within bold type and formulas nothing is a list's dash.
        let formula = self.text[..start].trim_end_matches(' ');
        let marked = self.text[..start].ends_with("**")
            && !self.text[..start].trim_end_matches('*').ends_with(|c: char| c.is_alphanumeric())
            || opens_formula(formula);
        let unary = match self.last() {
            _ if marked
                && spaced_digits
                && !matches!(self.last(), Some(Kind::Number(_) | Kind::Close | Kind::BoxClose)) =>
            {
                true
            }
            Some(Kind::Number(_) | Kind::Close | Kind::BoxClose) => false,
            Some(Kind::Word(meaning)) => {
                // "Answer - 123" has a dash.
                let dash = c == '-' && !touching && meaning.has(Meaning::ANSWER);
                // "It is now - 5 degrees."
                let links = |back: usize| {
                    let token = self.tokens.len().checked_sub(back).and_then(|at| self.tokens.get(at));
                    matches!(token.map(|token| token.kind), Some(Kind::Word(meaning)) if meaning.has(Meaning::LINK))
                };
                let now = meaning.has(Meaning::FILLER) && links(2);
                if (now || meaning.has(Meaning::LINK.with(Meaning::ANSWER))) && !dash {
                    spaced_digits && (gap || !before.is_some_and(|c| c.is_ascii_alphabetic()))
                } else {
                    touching && (gap || before.is_some_and(|c| c as u32 >= 0x2e80))
                }
            }
            None | Some(Kind::Line | Kind::Bullet) => touching || (c != '-' && spaced_digits),
            // "**Answer:** - 5"
            Some(Kind::Bold) => touching || spaced_digits && self.names_answer(),
            _ => spaced_digits,
        };
        if unary {
            self.minus = Some(start);
            self.at += width;
            return;
        }
        // Between two words it is a dash.
        let operand = matches!(self.last(), Some(Kind::Number(_) | Kind::Close | Kind::Word(_)));
        self.push(if operand { Kind::Operator('-') } else { Kind::Other }, width);
    }

    pub(super) fn percent(&mut self, width: usize) {
        let behind = self.rest()[width..].trim_start_matches(' ');
        let modulo = behind.starts_with(|c: char| c.is_ascii_digit());
        match self.last() {
            Some(Kind::Number(index)) if !modulo => {
                let number = &mut self.numbers[index];
                number.percent = true;
                number.end = self.at + width;
                self.at += width;
                if let Some(token) = self.tokens.last_mut() {
                    token.end = self.at;
                }
                self.spaced = false;
            }
            _ => self.push(Kind::Operator('%'), width),
        }
    }

    /// Superscripts behind a number are a power, behind letters part of a unit.
    fn superscripts(&mut self) {
        let length: usize =
            self.rest().chars().take_while(|&c| superscript(c).is_some() || c == '⁻').map(char::len_utf8).sum();
        let top: String = self.rest()[..length].chars().filter_map(superscript).map(|d| (b'0' + d) as char).collect();
        let slash = self.rest()[length..].chars().next().filter(|c| matches!(c, '\u{2044}' | '/'));
        if let Some(slash) = slash {
            // `³⁄₄`
            let bottom: String = self.rest()[length + slash.len_utf8()..]
                .chars()
                .map_while(|c| "₀₁₂₃₄₅₆₇₈₉".chars().position(|digit| digit == c))
                .map(|value| (b'0' + value as u8) as char)
                .collect();
            if !bottom.is_empty() && !top.is_empty() {
                let start = self.at;
                let end = start + length + slash.len_utf8() + 3 * bottom.len();
                return self
                    .add_number(start, Scanned { text: format!("{top}/{bottom}"), spelling: Spelling::Fraction, end });
            }
        }
        if matches!(self.last(), Some(Kind::Number(_) | Kind::Close)) && !self.spaced && !top.is_empty() {
            let start = self.at;
            self.push(Kind::Operator('^'), 0);
            self.add_number(start, Scanned { text: top, spelling: Spelling::Integer, end: start + length });
        } else {
            self.skip(length, false);
        }
    }
}

/// A number whose parts stand before characters for powers of ten: `4万3千`, `2만 3천`, `8.4万`; its digits and the first byte behind it.
fn with_wide_units(text: &str, first: &Scanned) -> Option<(String, usize)> {
    let power = |c: char| match c {
        '十' | '십' => Some(1),
        '百' | '백' => Some(2),
        '千' | '천' => Some(3),
        '万' | '萬' | '만' => Some(4),
        '亿' | '億' | '억' => Some(8),
        _ => None,
    };
    let (mut sum, mut part, mut end) = (None::<u128>, first.text.clone(), first.end);
    let mut most = u32::MAX;
    loop {
        if part.len() > 12 || !matches!(first.spelling, Spelling::Integer | Spelling::Decimal) {
            return None;
        }
        let unit = text[end..].chars().next();
        let (value, width, digits) = match unit.and_then(|c| Some((c, power(c)?))) {
            // 千米 and 千克 are units of their own.
            Some(('千' | '천', _)) if text[end..].chars().nth(1).is_some_and(|c| "米克瓦卡赫帕焦".contains(c)) =>
            {
                return sum.map(|sum| (sum.to_string(), end));
            }
            Some((c, digits)) if digits < most => (scaled(&part, digits as usize)?, c.len_utf8(), digits),
            _ => return None,
        };
        let value: u128 = value.parse().ok()?;
        sum = Some(sum.unwrap_or(0) + value);
        end += width;
        most = digits;
        let behind = text[end..].strip_prefix(' ').unwrap_or(&text[end..]);
        let start = text.len() - behind.len();
        let mut next = String::new();
        let stop = super::numeral::digits_at(text, start, &mut next);
        let goes_on = !next.is_empty()
            && next.len() <= 4
            && (text[stop..].chars().next().and_then(power).is_some_and(|digits| digits < most) || start == end);
        if !goes_on {
            return Some((sum?.to_string(), end));
        }
        if text[stop..].chars().next().and_then(power).is_none() {
            let value: u128 = next.parse().ok()?;
            return Some(((sum? + value).to_string(), stop));
        }
        (part, end) = (next, stop);
    }
}

/// True if a text ends where a formula or a group of one opens.
fn opens_formula(text: &str) -> bool {
    text.ends_with(['$', '{']) || text.ends_with("\\(") || text.ends_with("\\[")
}

fn c_is_latin(c: Option<char>) -> bool {
    c.is_some_and(|c| (c as u32) < 0x250)
}

/// Letters and the marks that belong to them, of every script.
fn is_letter(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphabetic();
    }
    if c.is_alphabetic() {
        return superscript(c).is_none() && c != 'ª' && c != 'º';
    }
    // Vowel signs and other combining marks of scripts that have them.
    matches!(c as u32, 0x300..=0x36f | 0x483..=0x487 | 0x591..=0x5c7 | 0x610..=0x61a | 0x64b..=0x65f | 0x900..=0xdff | 0xe31..=0xe4e | 0xeb1..=0xebc)
        && digit(c).is_none()
}
