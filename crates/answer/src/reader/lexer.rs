//! Divides a text into tokens in one pass.
use super::numeral::{Scanned, Spelling, Style, digits_at, is_digit, is_minus, scan, superscript};
use super::token::{Kind, Number, Token, Tokens, is_among, is_wide};
use super::vocabulary::{Meaning, any_of, meaning};
use super::words;
use crate::number::words::{Language, scaled, wide_number};

impl<'t> Tokens<'t> {
    /// Divides a text.
    pub fn new(text: &'t str, style: Style, language: Language) -> Self {
        let mut lexer = Lexer {
            text,
            style,
            line_start: true,
            line_end: text.find('\n').unwrap_or(text.len()),
            tokens: Vec::with_capacity(text.len() / 4 + 8),
            ..Lexer::default()
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Brace {
    #[default]
    Plain,
    Box,
    Bold,
    Top,
    Bottom,
}

#[derive(Default)]
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

    /// The kind of the token so many places from the end; [`Kind::Line`] before the first.
    fn back(&self, back: usize) -> Kind {
        self.tokens.len().checked_sub(back).map_or(Kind::Line, |at| self.tokens[at].kind)
    }

    pub(super) fn last(&self) -> Kind {
        self.back(1)
    }

    /// The character before the place.
    fn before(&self) -> Option<char> {
        self.text[..self.at].chars().next_back()
    }

    pub(super) fn push(&mut self, kind: Kind, length: usize) {
        let start = self.at;
        self.at += length;
        let line = kind == Kind::Line;
        let again = line && self.tokens.last().is_some_and(|last| last.kind == Kind::Line);
        if !again {
            self.tokens.push(Token { kind, start, end: self.at, spaced: self.spaced });
        }
        (self.spaced, self.line_start) = (line, line);
    }

    /// A token that stands apart from those around it, whatever is between them.
    pub(super) fn push_apart(&mut self, kind: Kind, length: usize) {
        self.spaced = true;
        self.push(kind, length);
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
            'A'..='Z' if self.currency().is_some() => self.skip(self.currency().unwrap_or(width), false),
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
            '≤' | '≦' => self.push(Kind::Less, width),
            '>' | '≥' | '≧' => self.push(Kind::Greater, width),
            '。' | '।' | '!' | '！' | '۔' => self.push(Kind::Stop, width),
            '?' | '？' | '؟' => self.push(Kind::Question, width),
            '…' => self.push(Kind::Ellipsis, width),
            ',' | '，' | '、' | '،' => self.push(Kind::Comma, width),
            // "Answer — 4"
            '—' if self.last().means(Meaning::ANSWER) => self.push(Kind::Colon, width),
            ';' | '；' | '—' => self.push(Kind::Semicolon, width),
            // "98 : 14"
            ':' if self.last().is_number()
                && self.before() == Some(' ')
                && self.rest().strip_prefix(": ").is_some_and(|behind| behind.starts_with(is_digit)) =>
            {
                self.push(Kind::Operator('/'), width);
            }
            ':' | '：' => self.push(Kind::Colon, width),
            '|' => self.push(Kind::Bar, width),
            '+' | '＋' => self.plus(width),
            '×' | '⋅' | '·' | '∙' | '∗' | '✕' => self.push(Kind::Operator('*'), width),
            '÷' | '/' | '∕' => self.push(Kind::Operator('/'), width),
            '^' => self.caret(),
            '%' | '％' | '٪' => self.percent(width),
            '√' if self.rest()[width..].starts_with(|c| is_digit(c) || c == '(') => self.push(Kind::Other, width),
            '✓' | '✔' | '✅' | '☑' | '√' => self.push(Kind::Check, width),
            '"' | '\'' | '“' | '”' | '‘' | '’' | '«' | '»' | '„' => self.push(Kind::Quote, width),
            _ if is_minus(c) => self.dash(c),
            _ if superscript(c).is_some() || c == '⁻' => self.superscripts(),
            _ if is_digit(c) || "⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒".contains(c) => self.number(),
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
        let length = self.line_end - self.at;
        let line = &rest[..length];
        let body = line.trim_start_matches([' ', '\t']);
        let indent = length - body.len();
        let bare = body.trim_end();
        let hashes = run(body, b'#');
        let first = body.chars().next().unwrap_or(' ');
        let behind = body.get(first.len_utf8()..).unwrap_or_default();
        let bullet = matches!(first, '•' | '◦' | '▪' | '‣' | '●')
            || behind.starts_with([' ', '\t', '\u{a0}', '\u{2009}', '\u{202f}'])
                && matches!(first, '-' | '*' | '+' | '·' | '–');
        if body.starts_with("```") || body.starts_with("~~~") {
            self.fence(indent, length);
        } else if body.starts_with("def ") && bare.ends_with(':') {
            // A function of Python, which says nothing unless it is run.
            let indented = |line: &&str| line.trim().is_empty() || line.starts_with([' ', '\t']);
            let inside: usize = rest[length..].split_inclusive('\n').skip(1).take_while(indented).map(str::len).sum();
            let first = usize::from(rest.len() > length);
            self.push_apart(Kind::Program, length + first + inside);
            self.line_start = true;
        } else if body.starts_with(">>>") || body.starts_with("In [") {
            // What was typed into an interpreter.
            self.at += length;
        } else if let Some(end) = body.strip_prefix("Out[").and_then(|prompt| prompt.find("]:")) {
            self.at += indent + 4 + end + 2;
        } else if first == '>' && !behind.starts_with(['=', '>']) {
            self.skip(indent + 1, true);
        } else if bare.len() >= 3
            && (matches!(bare, "***" | "___" | "* * *") || [b'-', b'='].into_iter().any(|b| run(bare, b) == bare.len()))
        {
            self.push_apart(Kind::Rule, length);
            self.line_start = true;
        } else if hashes > 0 {
            // Four of them before a number are the mark of GSM8K, before words a heading.
            let behind = body[hashes..].trim_start_matches([' ', '$', '-', '\u{2212}', '*']);
            let number = behind.starts_with(|c| is_digit(c) || c == '.' || c == '\\');
            self.skip(indent, true);
            self.push(if hashes >= 3 && number { Kind::Hashes } else { Kind::Heading }, hashes);
        } else if bullet {
            // `- 5` at the very beginning may be a negative number with a space; a bullet needs words or company.
            // `- 48` and nothing else is a negative number.
            // So it is on a line of a formula.
            let formula = || self.text[..self.at].trim_end();
            let negative = is_minus(first)
                && (self.text.trim() == bare || formula().ends_with("\\[") || formula().ends_with("$$"))
                && behind.trim().trim_start_matches('$').bytes().all(|b| b.is_ascii_digit() || b == b'.');
            self.skip(indent, true);
            if negative {
                self.minus = Some(self.at);
                self.at += first.len_utf8();
                self.line_start = false;
            } else {
                self.push(Kind::Bullet, first.len_utf8());
            }
        } else {
            self.line_start = false;
            return false;
        }
        true
    }

    fn point_begins_number(&self) -> bool {
        self.rest()[1..].starts_with(is_digit) && self.before().is_none_or(|c| !c.is_alphanumeric() && c != '.')
    }

    fn point(&mut self) {
        let points = run(self.rest(), b'.');
        if points > 1 {
            return self.push(Kind::Ellipsis, points);
        }
        let after = self.rest()[1..].chars().next();
        let ends = after.is_none_or(|c| !(c.is_alphanumeric() || matches!(c, '/' | '@' | '_')));
        // `5.Next`: a capital letter behind a number's point begins a sentence.
        let glued = self.last().is_number() && after.is_some_and(char::is_alphabetic);
        // `i.e.`, `approx.`
        let short = |word: &Token| word.end - word.start <= 2 || after != Some('\n');
        let abbreviation = self.last().means(Meaning::ABBREVIATION) && self.tokens.last().is_some_and(short);
        self.push(if (ends && !abbreviation) || glued { Kind::Stop } else { Kind::Other }, 1);
    }

    fn number(&mut self) {
        let Some(found) = scan(self.text, self.at, self.style) else {
            return self.push(Kind::Other, self.rest().chars().next().map_or(1, char::len_utf8));
        };
        match with_wide_units(self.text, &found) {
            Some((text, end)) => self.add_number(text, Spelling::Integer, end),
            None => self.add_number(found.text, found.spelling, found.end),
        }
    }

    /// Adds a number that stands at the place, with its sign and what is written together with it.
    pub(super) fn add_number(&mut self, mut text: String, spelling: Spelling, mut end: usize) {
        // Latin letters directly before: a name, unless they are a currency.
        let latin = self.before().is_some_and(|c| c.is_alphabetic() && (c as u32) < 0x250);
        let currency = |word| matches!(word, "USD" | "EUR" | "GBP" | "Rs" | "RM" | "R" | "r" | "INR" | "US" | "CHF");
        let names = |last: &Token| {
            last.end == self.at
                && matches!(last.kind, Kind::Word(meaning) if !meaning.has(Meaning::ANSWER))
                && !currency(&self.text[last.start..last.end])
        };
        let name = latin && self.tokens.last().is_some_and(names);
        // `3rd`
        let ordinal = self.text.get(end..end + 2).is_some_and(|suffix| matches!(suffix, "st" | "nd" | "rd" | "th"))
            && !self.text[end + 2..].starts_with(char::is_alphabetic);
        end += if ordinal { 2 } else { 0 };
        // `3k`
        if let Some(behind) = self.text[end..].strip_prefix(['k', 'K'])
            && !behind.starts_with(char::is_alphanumeric)
            && spelling != Spelling::Fraction
            && let Some(scaled) = scaled(&text, 3)
        {
            text = scaled;
            end += 1;
        }
        let minus = self.minus.take();
        if minus.is_some() {
            text.insert(0, '-');
        }
        let start = minus.unwrap_or(self.at);
        self.tokens.push(Token { kind: Kind::Number(self.numbers.len()), start, end, spaced: self.spaced });
        self.numbers.push(Number { text, spelling, percent: false, name, ordinal, start, end });
        self.at = end;
        (self.spaced, self.line_start) = (false, false);
    }

    fn word(&mut self) {
        let start = self.at;
        if let Some(four) = self.text.get(start..start + 4)
            && four.ends_with('.')
            && is_among(four, "i.e. e.g. d.h. z.b.")
        {
            return self.push(Kind::Word(meaning(&four[..3])), 4);
        }
        let mut length = 0;
        let mut characters = self.rest().char_indices().peekable();
        let wide = characters.peek().is_some_and(|&(_, c)| is_wide(c));
        while let Some((offset, c)) = characters.next() {
            let mut inside = || characters.peek().is_some_and(|&(_, next)| is_letter(next) && !is_wide(next));
            let joins = offset > 0 && !wide && matches!(c, '\'' | '’' | '-' | '_') && inside();
            if !(joins || is_letter(c) && is_wide(c) == wide) {
                break;
            }
            length = offset + c.len_utf8();
        }
        let word = &self.text[start..start + length];
        if wide && let Some((offset, digits, text)) = wide_number(word) {
            if offset > 0 {
                self.push(Kind::Word(meaning(&word[..offset])), offset);
            }
            self.minus = (offset > 0 && self.last().means(Meaning::MINUS)).then_some(self.at);
            return self.add_number(text, Spelling::Words, self.at + digits);
        }
        let meaning = meaning(word);
        self.push(Kind::Word(meaning), length);
        // A minus sign in words, where no number stands before it.
        if meaning.has(Meaning::MINUS)
            && !self.back(2).is_value()
            && self.rest().trim_start_matches([' ', '$', '\u{a0}']).starts_with(is_digit)
        {
            self.minus = Some(start);
        }
    }

    /// The length of the letters of a currency before its sign: "R$ 24", "US$5".
    fn currency(&self) -> Option<usize> {
        let letters = self.rest().bytes().take_while(u8::is_ascii_uppercase).count();
        let begins = self.before().is_none_or(|c| !c.is_alphanumeric() && c != '\\');
        let amount = self.rest()[letters..].strip_prefix('$').map(|behind| behind.trim_start_matches([' ', '\u{a0}']));
        (letters <= 2 && begins && amount.is_some_and(|amount| amount.starts_with(is_digit))).then_some(letters)
    }

    fn star(&mut self) {
        let (rest, before, value) = (self.rest(), self.before(), self.last().is_value());
        if let Some(behind) = rest.strip_prefix("**") {
            let power = value
                && before.is_some_and(|c| c.is_ascii_digit() || c == ')')
                && behind.starts_with(|c: char| c.is_ascii_digit() || c == '(');
            // "2 ** 15": bold type has no space on both sides.
            let power = power || value && before == Some(' ') && behind.starts_with(' ');
            return if power { self.push(Kind::Operator('^'), 2) } else { self.push(Kind::Bold, run(rest, b'*')) };
        }
        let behind = &rest[1..];
        let operand = behind.starts_with(|c: char| c.is_whitespace() || is_digit(c) || matches!(c, '(' | '-' | '$'));
        // "14 hours * 9": between spaces, behind a unit, no mark of italics.
        let unit = self.last().is_word()
            && before == Some(' ')
            && behind.strip_prefix(' ').is_some_and(|next| next.starts_with(|c| is_digit(c) || c == '$'));
        if (value || unit) && (operand || begins_decimals(behind)) {
            self.push(Kind::Operator('*'), 1);
        } else {
            self.skip(1, false);
        }
    }

    fn underscore(&mut self) {
        if self.rest().starts_with("__") {
            let length = run(self.rest(), b'_');
            return self.push(if length == 2 { Kind::Bold } else { Kind::Other }, length);
        }
        // The base of a number: "101101_2", "45_{10}".
        let rest = &self.rest()[1..];
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let braced = rest.strip_prefix('{').map(digits).filter(|at| rest.as_bytes().get(at + 1) == Some(&b'}'));
        let base = match braced {
            Some(digits) if digits <= 2 => digits + 2,
            None if digits(rest) <= 2 => digits(rest),
            _ => 0,
        };
        self.skip(if self.last().is_number() { 1 + base } else { 1 }, false);
    }

    fn plus(&mut self, width: usize) {
        if !self.last().is_operand() && self.rest()[width..].starts_with(is_digit) {
            self.skip(width, false);
        } else {
            self.push(Kind::Operator('+'), width);
        }
    }

    /// Reads `[ANSWER]` and `[/ANSWER]`: true if one stands here.
    fn bracket_tag(&mut self) -> bool {
        let begins = |tag: &str| self.rest().get(..tag.len()).is_some_and(|text| text.eq_ignore_ascii_case(tag));
        let tags = [("[ANSWER]", Kind::AnswerOpen), ("[/ANSWER]", Kind::AnswerClose)];
        let Some((tag, kind)) = tags.into_iter().find(|(tag, _)| begins(tag)) else { return false };
        self.push(kind, tag.len());
        true
    }

    /// A minus sign, a dash between words or an operator.
    fn dash(&mut self, c: char) {
        let (text, width, before, last) = (&self.text[..self.at], c.len_utf8(), self.before(), self.last());
        let rest = &self.rest()[width..];
        if rest.starts_with('>') {
            return self.push(Kind::Arrow, width + 1);
        }
        // Between the sign and its digits a currency or the marks of LaTeX may stand.
        let mark = |c: char| matches!(c, '$' | '€' | '£' | '¥' | '₹' | '\\' | ',' | '{');
        let touches = |text: &str| {
            text.starts_with(|c| is_digit(c) || matches!(c, '½' | '¼' | '¾'))
                || begins_decimals(text)
                || ["frac", "dfrac", "tfrac"].iter().any(|name| text.starts_with(name))
        };
        let touching = touches(rest.trim_start_matches(mark));
        let spaced_digits =
            touches(rest.trim_start_matches(|c| mark(c) || matches!(c, ' ' | '\u{a0}' | '\u{2009}' | '\u{202f}')));
        let opens = |c| matches!(c, '$' | '(' | '[' | '{' | '*' | '"' | '`' | '\'' | '“' | '&');
        let gap = before.is_none_or(|c| c.is_whitespace() || opens(c));
        // Within bold type and formulas nothing is a list's dash.
        let marked = text.ends_with("**") && !text.trim_end_matches('*').ends_with(char::is_alphanumeric)
            || opens_formula(text.trim_end_matches(' '));
        let unary = match last {
            Kind::Number(_) | Kind::Close | Kind::BoxClose => false,
            _ if marked && spaced_digits => true,
            Kind::Word(meaning) => {
                // "Answer - 123" has a dash.
                let dash = c == '-' && !touching && meaning.has(Meaning::ANSWER);
                // "It is now - 5 degrees."
                let now = meaning.has(Meaning::FILLER) && self.back(2).means(Meaning::LINK);
                if (now || meaning.has(any_of![LINK, ANSWER])) && !dash {
                    spaced_digits && (gap || !before.is_some_and(|c| c.is_ascii_alphabetic()))
                } else {
                    touching && (gap || before.is_some_and(is_wide))
                }
            }
            Kind::Line | Kind::Bullet => touching || (c != '-' && spaced_digits),
            // "**Answer:** - 5"
            Kind::Bold => {
                let label = self.back(2) == Kind::Colon && self.back(3).means(any_of![ANSWER, RESULT]);
                touching || spaced_digits && label
            }
            _ => spaced_digits,
        };
        if unary {
            self.minus = Some(self.at);
            self.at += width;
        } else {
            // Between two words it is a dash.
            self.push(if last.is_operand() { Kind::Operator('-') } else { Kind::Other }, width);
        }
    }

    pub(super) fn percent(&mut self, width: usize) {
        let modulo = self.rest()[width..].trim_start_matches(' ').starts_with(|c: char| c.is_ascii_digit());
        match (self.last(), self.tokens.last_mut()) {
            (Kind::Number(index), Some(token)) if !modulo => {
                self.at += width;
                self.spaced = false;
                self.numbers[index].percent = true;
                (self.numbers[index].end, token.end) = (self.at, self.at);
            }
            _ => self.push(Kind::Operator('%'), width),
        }
    }

    /// Superscripts behind a number are a power, behind letters part of a unit.
    fn superscripts(&mut self) {
        let rest = self.rest();
        let length: usize =
            rest.chars().take_while(|&c| superscript(c).is_some() || c == '⁻').map(char::len_utf8).sum();
        let top: String = rest[..length].chars().filter_map(superscript).map(|d| (b'0' + d) as char).collect();
        // `³⁄₄`
        if let Some(below) = rest[length..].strip_prefix(['\u{2044}', '/']).filter(|_| !top.is_empty()) {
            let below_digit = |c| "₀₁₂₃₄₅₆₇₈₉".chars().position(|digit| digit == c);
            let bottom: String = below.chars().map_while(below_digit).map(|d| (b'0' + d as u8) as char).collect();
            if !bottom.is_empty() {
                let end = self.text.len() - below.len() + 3 * bottom.len();
                return self.add_number(format!("{top}/{bottom}"), Spelling::Fraction, end);
            }
        }
        if self.last().is_value() && !self.spaced && !top.is_empty() {
            self.push(Kind::Operator('^'), 0);
            self.add_number(top, Spelling::Integer, self.at + length);
        } else {
            self.skip(length, false);
        }
    }
}

/// Number of times that a byte stands at the beginning of a text.
fn run(text: &str, of: u8) -> usize {
    text.bytes().take_while(|&byte| byte == of).count()
}

/// True if a text begins with a point and a digit.
pub(super) fn begins_decimals(text: &str) -> bool {
    matches!(text.as_bytes(), [b'.', b'0'..=b'9', ..])
}

/// A number whose parts stand before characters for powers of ten: `4万3千`, `2만 3천`, `8.4万`; its digits and the first byte behind it.
fn with_wide_units(text: &str, first: &Scanned) -> Option<(String, usize)> {
    let power = |text: &str| match text.chars().next()? {
        '十' | '십' => Some(1),
        '百' | '백' => Some(2),
        '千' | '천' => Some(3),
        '万' | '萬' | '만' => Some(4),
        '亿' | '億' | '억' => Some(8),
        _ => None,
    };
    let (mut sum, mut part, mut end, mut most) = (None::<u128>, first.text.clone(), first.end, usize::MAX);
    if !matches!(first.spelling, Spelling::Integer | Spelling::Decimal) {
        return None;
    }
    loop {
        let unit = text[end..].chars().next()?;
        let digits = power(&text[end..]).filter(|_| part.len() <= 12)?;
        // 千米 and 千克 are units of their own.
        if digits == 3 && text[end..].chars().nth(1).is_some_and(|c| "米克瓦卡赫帕焦".contains(c)) {
            return sum.map(|sum| (sum.to_string(), end));
        }
        if digits >= most {
            return None;
        }
        let whole = sum.unwrap_or(0) + scaled(&part, digits)?.parse::<u128>().ok()?;
        end += unit.len_utf8();
        (sum, most) = (Some(whole), digits);
        let behind = text[end..].strip_prefix(' ').unwrap_or(&text[end..]);
        let start = text.len() - behind.len();
        let (next, stop) = digits_at(text, start);
        let smaller = power(&text[stop..]);
        if !(1..=4).contains(&next.len()) || start != end && smaller.is_none_or(|digits| digits >= most) {
            return Some((whole.to_string(), end));
        }
        if smaller.is_none() {
            return Some(((whole + next.parse::<u128>().ok()?).to_string(), stop));
        }
        (part, end) = (next, stop);
    }
}

/// True if a text ends where a formula or a group of one opens.
fn opens_formula(text: &str) -> bool {
    text.ends_with(['$', '{']) || text.ends_with("\\(") || text.ends_with("\\[")
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
        && !is_digit(c)
}
