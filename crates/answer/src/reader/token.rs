//! A text as words, numbers, signs and marks.
use super::numeral::Spelling;
use super::vocabulary::Meaning;

/// Kind of a token.
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

impl Kind {
    /// True for a word that has one of the meanings.
    pub fn means(self, wanted: Meaning) -> bool {
        matches!(self, Kind::Word(meaning) if meaning.has(wanted))
    }

    pub fn is_word(self) -> bool {
        matches!(self, Kind::Word(_))
    }

    pub fn is_number(self) -> bool {
        matches!(self, Kind::Number(_))
    }

    /// True for the end of something that has a value.
    pub fn is_value(self) -> bool {
        matches!(self, Kind::Number(_) | Kind::Close)
    }

    /// True for the end of something that an operator may follow.
    pub fn is_operand(self) -> bool {
        self.is_value() || self.is_word()
    }
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
    /// Letters stand directly before it (`x1`, `mp3`): part of a name.
    pub name: bool,
    /// `3rd`, `21st`.
    pub ordinal: bool,
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

/// True for a character of a script that does not separate words.
pub fn is_wide(c: char) -> bool {
    c as u32 >= 0x2e80
}

/// True if a word is one of some words, in lower case and with spaces between them. The case of ASCII letters does not count.
pub fn is_among(word: &str, words: &str) -> bool {
    let (word, words) = (word.as_bytes(), words.as_bytes());
    let Some(first) = word.first().map(u8::to_ascii_lowercase) else { return false };
    let mut begins = true;
    words.iter().enumerate().any(|(at, &byte)| {
        let found = begins
            && byte == first
            && words.get(at..at + word.len()).is_some_and(|one| one.eq_ignore_ascii_case(word))
            && words.get(at + word.len()).is_none_or(|&behind| behind == b' ');
        begins = byte == b' ';
        found
    })
}

impl<'t> Tokens<'t> {
    /// The kind of a token; [`Kind::Line`] beyond the end.
    pub fn kind(&self, at: usize) -> Kind {
        self.tokens.get(at).map_or(Kind::Line, |token| token.kind)
    }

    /// The text of a token.
    pub fn slice(&self, at: usize) -> &'t str {
        self.tokens.get(at).map_or("", |token| &self.text[token.start..token.end])
    }

    /// True if a token is one of some words, in lower case and with spaces between them.
    pub fn is(&self, at: usize, words: &str) -> bool {
        is_among(self.slice(at), words)
    }

    /// The number of a token.
    pub fn number(&self, at: usize) -> Option<&Number> {
        match self.kind(at) {
            Kind::Number(index) => self.numbers.get(index),
            _ => None,
        }
    }

    /// True for words, number words included.
    pub fn is_any_word(&self, at: usize) -> bool {
        match self.kind(at) {
            Kind::Word(_) => true,
            Kind::Number(index) => self.numbers[index].spelling == Spelling::Words,
            _ => false,
        }
    }

    /// True if a word has one of the meanings.
    pub fn means(&self, at: usize, wanted: Meaning) -> bool {
        self.kind(at).means(wanted)
    }

    /// True if white space stands before a token.
    pub fn is_spaced(&self, at: usize) -> bool {
        self.tokens.get(at).is_none_or(|token| token.spaced)
    }
}
