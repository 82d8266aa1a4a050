//! A completion as words, numbers, signs and marks, in one pass.
use super::numeral::{Scanned, Spelling, Style, digit, is_minus, latex_fraction, scan, superscript};
use super::vocabulary::{Meaning, meaning};
use super::words;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An index into [`Tokens::numbers`].
    Number(usize),
    Word(Meaning),
    /// A binary operator: `+`, `-`, `*`, `/`, `^` or `%`.
    Operator(char),
    /// `=` and what stands for it.
    Equals,
    Arrow,
    Unequal,
    Less,
    Greater,
    /// The end of a sentence.
    Stop,
    Question,
    Comma,
    Semicolon,
    Colon,
    Open,
    Close,
    Line,
    /// A line that only separates.
    Rule,
    Bold,
    Heading,
    /// `####`
    Hashes,
    Bar,
    Bullet,
    BoxOpen,
    BoxClose,
    /// `<answer>` and the like.
    AnswerOpen,
    AnswerClose,
    Ellipsis,
    /// `✓`
    Check,
    Quote,
    /// A program, whose text is no statement.
    Program,
    /// A special token that ends a turn or begins another.
    End,
    Other,
}

/// A piece of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
    /// White space stands before it.
    pub spaced: bool,
}

/// A number of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Number {
    /// Canonical, with its sign.
    pub text: String,
    pub spelling: Spelling,
    pub percent: bool,
    /// Letters stand directly before it (`x1`, `mp3`), or it is `3rd`: part of a name.
    pub name: bool,
    /// Digits are the last thing in the text.
    pub touches_end: bool,
    pub start: usize,
    pub end: usize,
}

/// A text and its tokens.
#[derive(Debug)]
pub struct Tokens<'t> {
    pub text: &'t str,
    pub tokens: Vec<Token>,
    pub numbers: Vec<Number>,
}

impl<'t> Tokens<'t> {
    /// Divides a text.
    pub fn new(text: &'t str, style: Style, language: words::Language) -> Self {
        let mut lexer = Lexer {
            text,
            at: 0,
            style,
            spaced: false,
            line_start: true,
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
        words::join(&mut tokens, language, style.counts);
        tokens
    }

    /// The kind of a token; [`Kind::Line`] beyond the end.
    pub fn kind(&self, at: usize) -> Kind {
        self.tokens.get(at).map_or(Kind::Line, |token| token.kind)
    }

    /// The text of a token.
    pub fn slice(&self, at: usize) -> &'t str {
        self.tokens.get(at).map_or("", |token| &self.text[token.start..token.end])
    }

    /// The number of a token.
    pub fn number(&self, at: usize) -> Option<&Number> {
        match self.kind(at) {
            Kind::Number(index) => self.numbers.get(index),
            _ => None,
        }
    }

    /// The meanings of a word; none of another token.
    pub fn meaning(&self, at: usize) -> Meaning {
        match self.kind(at) {
            Kind::Word(meaning) => meaning,
            _ => Meaning::default(),
        }
    }

    /// True if a word has one of the meanings.
    pub fn means(&self, at: usize, wanted: Meaning) -> bool {
        self.meaning(at).has(wanted)
    }

    /// True if white space stands before a token.
    pub fn is_spaced(&self, at: usize) -> bool {
        self.tokens.get(at).is_none_or(|token| token.spaced)
    }
}

/// What a brace of LaTeX holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Brace {
    Plain,
    Box,
    Bold,
    Top,
    Bottom,
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
    style: Style,
    spaced: bool,
    line_start: bool,
    /// Inside a fenced block that is read.
    fenced: bool,
    /// Where the minus sign of the next number stands.
    minus: Option<usize>,
    tokens: Vec<Token>,
    numbers: Vec<Number>,
    braces: Vec<Brace>,
    next_brace: Brace,
}

/// Languages of fenced blocks that hold no program.
const PROSE: [&str; 12] =
    ["", "text", "txt", "plaintext", "plain", "latex", "tex", "math", "json", "yaml", "yml", "markdown"];

/// What programs contain and answers do not.
const CODE_MARKS: [&str; 13] = [
    "print(",
    "return ",
    "def ",
    "import ",
    "console.log",
    "int main",
    "let ",
    "function ",
    "for (",
    "for i in",
    "#include",
    "fn main",
    "public ",
];

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn last(&self) -> Option<Kind> {
        self.tokens.last().map(|token| token.kind)
    }

    fn push(&mut self, kind: Kind, length: usize) {
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
    fn skip(&mut self, length: usize, spaced: bool) {
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
            ';' | '；' | '—' => self.push(Kind::Semicolon, width),
            ':' | '：' => self.push(Kind::Colon, width),
            '|' => self.push(Kind::Bar, width),
            '+' | '＋' => self.plus(width),
            '×' | '⋅' | '·' | '∙' | '∗' | '✕' => self.push(Kind::Operator('*'), width),
            '÷' | '/' | '∕' => self.push(Kind::Operator('/'), width),
            '^' => self.push(Kind::Operator('^'), width),
            '%' | '％' | '٪' => self.percent(width),
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

    /// What only the beginning of a line can be. True if something was read.
    fn begins_line(&mut self) -> bool {
        let rest = self.rest();
        let line_length = rest.find('\n').unwrap_or(rest.len());
        // Lines longer than that hold no mark that is looked for.
        let line = &rest[..line_length];
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        let body = &line[indent..];
        if body.starts_with("```") || body.starts_with("~~~") {
            self.fence(indent, line_length);
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
        if bare.len() >= 3 && (bare.bytes().all(|b| b == b'-') || bare.bytes().all(|b| b == b'=') || bare == "***" || bare == "___" || bare == "* * *") {
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
            let bullet = matches!(first, '•' | '◦' | '▪' | '‣' | '●') || followed && matches!(first, '-' | '*' | '+' | '·' | '–');
            // `- 5` at the very beginning may be a negative number with a space; a bullet needs words or company.
            if bullet {
                self.skip(indent, true);
                self.push(Kind::Bullet, width);
                return true;
            }
        }
        self.line_start = false;
        false
    }

    /// A fenced block: a program is one token, anything else is read.
    fn fence(&mut self, indent: usize, line_length: usize) {
        let start = self.at;
        if std::mem::take(&mut self.fenced) {
            return self.push(Kind::Line, line_length);
        }
        let info = self.text[start + indent + 3..start + line_length].trim().to_ascii_lowercase();
        let body_at = (start + line_length + 1).min(self.text.len());
        let fence = &self.text[start + indent..start + indent + 3];
        let body = &self.text[body_at..];
        let (length, closed) = match body.find(fence) {
            Some(end) => (end, true),
            None => (body.len(), false),
        };
        let body = &body[..length];
        let language = info.split_whitespace().next().unwrap_or("");
        let marks = CODE_MARKS.iter().filter(|mark| body.contains(*mark)).count();
        let program = if PROSE.contains(&language) { marks > 0 && language.is_empty() } else { true };
        if program {
            self.spaced = true;
            let end = body_at + length + if closed { 3 } else { 0 };
            self.push(Kind::Program, end - start);
            return;
        }
        // What is in it is read; the closing fence is met on its own.
        self.fenced = closed;
        self.push(Kind::Line, body_at - start);
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
        let ends = after.is_none_or(|c| c.is_whitespace() || !(c.is_alphanumeric() || c == '/' || c == '@' || c == '_'));
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
        let Some(found) = scan(self.text, start, self.style) else {
            let width = self.rest().chars().next().map_or(1, char::len_utf8);
            return self.push(Kind::Other, width);
        };
        self.add_number(start, found);
    }

    fn add_number(&mut self, start: usize, found: Scanned) {
        let Scanned { text, spelling, mut end } = found;
        let minus = self.minus.take();
        // Latin letters directly before: a name, unless they are a currency.
        let before = self.text[..start].chars().next_back();
        let mut name = match self.last() {
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
            name = true;
            end += 2;
        }
        let mut text = text;
        // `3k`
        if let Some(behind) = self.text[end..].strip_prefix(['k', 'K'])
            && !behind.starts_with(|c: char| c.is_alphanumeric())
            && spelling != Spelling::Fraction
            && let Some(scaled) = words::scaled(&text, 3)
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
            let inside = matches!(c, '\'' | '’' | '-' | '_') && place > 0 && next.is_some_and(|next| is_letter(next) && !wide(next)) && !first_wide;
            if !(inside || is_letter(c) && wide(c) == first_wide) {
                break;
            }
            end = start + place + c.len_utf8();
        }
        if end == start {
            return self.push(Kind::Other, self.text[start..].chars().next().map_or(1, char::len_utf8));
        }
        let word = &self.text[start..end];
        if first_wide && let Some((place, length, text)) = words::wide_number(word) {
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
            let stars = rest.bytes().take_while(|&b| b == b'*').count();
            return if power { self.push(Kind::Operator('^'), 2) } else { self.push(Kind::Bold, stars) };
        }
        let next = rest[1..].chars().next();
        let operand_behind = next.is_some_and(|c| c.is_whitespace() || digit(c).is_some() || matches!(c, '(' | '-' | '$'));
        if operand_before && operand_behind {
            self.push(Kind::Operator('*'), 1);
        } else {
            self.skip(1, false);
        }
    }

    /// Struck text was withdrawn.
    fn struck(&mut self) {
        let line = self.rest().split('\n').next().unwrap_or_default();
        let length = line[2..].find("~~").map_or(2, |end| end + 4);
        self.skip(length, true);
    }

    fn underscore(&mut self) {
        if self.rest().starts_with("__") {
            let length = self.rest().bytes().take_while(|&b| b == b'_').count();
            self.push(if length == 2 { Kind::Bold } else { Kind::Other }, length);
        } else {
            self.skip(1, false);
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
        let spaced_digits = touches(bare.trim_start_matches(' '));
        let touching = touches(bare);
        let before = self.text[..start].chars().next_back();
        let gap = before.is_none_or(|c| c.is_whitespace() || matches!(c, '$' | '(' | '[' | '{' | '*' | '"' | '`' | '\'' | '“' | '&'));
        let unary = match self.last() {
            Some(Kind::Number(_) | Kind::Close | Kind::BoxClose) => false,
            Some(Kind::Word(meaning)) => {
                if meaning.has(Meaning::LINK.with(Meaning::ANSWER)) {
                    spaced_digits && (gap || !before.is_some_and(|c| c.is_ascii_alphabetic()))
                } else {
                    touching && (gap || before.is_some_and(|c| c as u32 >= 0x2e80))
                }
            }
            None | Some(Kind::Line | Kind::Bullet) => touching || (c != '-' && spaced_digits),
            Some(Kind::Bold) => touching,
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

    fn percent(&mut self, width: usize) {
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
        let length: usize = self
            .rest()
            .chars()
            .take_while(|&c| superscript(c).is_some() || c == '⁻')
            .map(char::len_utf8)
            .sum();
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
                return self.add_number(start, Scanned { text: format!("{top}/{bottom}"), spelling: Spelling::Fraction, end });
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

    /// `<`: a calculator's note, a special token, a tag, or less than.
    fn less(&mut self) {
        const LONGEST: usize = 120;
        let rest = self.rest();
        let near = |pattern: &str| {
            let mut end = rest.len().min(LONGEST);
            while !rest.is_char_boundary(end) {
                end -= 1;
            }
            rest[..end].find(pattern).map(|at| at + pattern.len())
        };
        if rest.starts_with("<<")
            && let Some(length) = near(">>")
        {
            return self.skip(length, false);
        }
        if (rest.starts_with("<|") || rest.starts_with("<\u{ff5c}"))
            && let Some(length) = near("|>").or_else(|| near("\u{ff5c}>"))
        {
            let name = rest[1..length].trim_matches(|c: char| !c.is_alphabetic()).to_ascii_lowercase();
            let ends = [
                "im_end", "endoftext", "end_of_text", "eot_id", "eom_id", "end_of_turn", "return", "end", "im_start",
                "start_header_id", "user", "eos", "call", "endofturn", "end\u{2581}of\u{2581}sentence",
            ];
            if ends.contains(&name.as_str()) {
                self.spaced = true;
                return self.push(Kind::End, length);
            }
            let behind = &rest[length..];
            let role = if name == "start" && behind.starts_with("assistant") { "assistant".len() } else { 0 };
            self.spaced = true;
            return self.push(Kind::Line, length + role);
        }
        if let Some(length) = near(">") {
            let name = rest[1..length - 1].to_ascii_lowercase();
            let closing = name.starts_with('/');
            let name = name.trim_matches('/');
            let plain = name.split_whitespace().next().unwrap_or("");
            let is_name = plain.starts_with(|c: char| c.is_ascii_alphabetic())
                && plain.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':'));
            if is_name {
                let kind = match plain {
                    "answer" | "final" | "final_answer" | "final-answer" | "finalanswer" | "result" => {
                        if closing { Kind::AnswerClose } else { Kind::AnswerOpen }
                    }
                    "s" | "eos" | "end_of_turn" | "start_of_turn" if closing || plain != "s" => Kind::End,
                    "b" | "strong" => Kind::Bold,
                    "sup" if !closing && matches!(self.last(), Some(Kind::Number(_))) => Kind::Operator('^'),
                    "sup" | "i" | "em" | "u" | "span" | "code" | "sub" => return self.skip(length, false),
                    _ => Kind::Line,
                };
                return self.push(kind, length);
            }
        }
        self.push(Kind::Less, 1);
    }

    fn open_brace(&mut self) {
        let brace = std::mem::replace(&mut self.next_brace, Brace::Plain);
        self.braces.push(brace);
        match brace {
            Brace::Plain => self.skip(1, false),
            Brace::Box => self.push(Kind::BoxOpen, 1),
            Brace::Bold => self.push(Kind::Bold, 1),
            Brace::Top | Brace::Bottom => self.push(Kind::Open, 1),
        }
    }

    fn close_brace(&mut self) {
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
    fn command(&mut self) {
        let rest = self.rest();
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
        let name_length = rest[1..].bytes().take_while(u8::is_ascii_alphabetic).count();
        let name = &rest[1..1 + name_length];
        let length = 1 + name_length;
        match name {
            "frac" | "dfrac" | "tfrac" | "cfrac" | "sfrac" | "nicefrac" => {
                if let Some((top, bottom, end)) = latex_fraction(self.text, self.at) {
                    let start = self.at;
                    self.add_number(start, Scanned { text: format!("{top}/{bottom}"), spelling: Spelling::Fraction, end });
                } else {
                    self.next_brace = Brace::Top;
                    self.skip(length, false);
                }
            }
            "boxed" | "fbox" | "framebox" | "bbox" => {
                let braced = rest[length..].trim_start().starts_with('{');
                if braced {
                    self.next_brace = Brace::Box;
                }
                self.skip(length, false);
            }
            "textbf" | "mathbf" | "bm" | "boldsymbol" => {
                if rest[length..].starts_with('{') {
                    self.next_brace = Brace::Bold;
                }
                self.skip(length, false);
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
                    let behind = &rest[end..];
                    match behind.strip_prefix('{').and_then(|inside| inside.find('}')) {
                        Some(close) if close < 24 && !behind[1..=close].bytes().any(|b| b.is_ascii_digit()) => end += close + 2,
                        _ => break,
                    }
                }
                self.spaced = true;
                self.push(Kind::Line, end);
            }
            "pi" | "sqrt" | "sum" | "infty" => self.push(Kind::Word(Meaning::default()), length),
            "n" | "newline" | "par" => self.push(Kind::Line, length),
            _ => self.skip(length, true),
        }
    }
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
