//! Tokens of a formula.
use super::FormulaError;

/// A piece of a formula.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Name(String),
    Number(String),
    Tilde,
    Plus,
    Minus,
    Star,
    Slash,
    Colon,
    Hat,
    Open,
    Close,
    Bar,
    DoubleBar,
    End,
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Token::Name(text) | Token::Number(text) => return write!(f, "`{text}`"),
            Token::Tilde => "`~`",
            Token::Plus => "`+`",
            Token::Minus => "`-`",
            Token::Star => "`*`",
            Token::Slash => "`/`",
            Token::Colon => "`:`",
            Token::Hat => "`^`",
            Token::Open => "`(`",
            Token::Close => "`)`",
            Token::Bar => "`|`",
            Token::DoubleBar => "`||`",
            Token::End => "the end",
        })
    }
}

/// True for characters of a name without backticks.
fn is_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '.'
}

/// A name as a formula writes it: in backticks unless it is plain.
pub(super) fn quoted(name: &str) -> String {
    let plain = name.chars().all(is_name) && !name.starts_with(|letter: char| letter.is_ascii_digit());
    if plain && !name.is_empty() { name.to_owned() } else { format!("`{name}`") }
}

/// Tokens with the number of characters before them; the last one is [`Token::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, usize)>, FormulaError> {
    let letters: Vec<char> = text.chars().collect();
    let wrong = |column: usize, message: String| FormulaError { text: text.to_owned(), column, message };
    let mut found = Vec::new();
    let mut at = 0;
    while at < letters.len() {
        let start = at;
        let letter = letters[at];
        at += 1;
        let token = match letter {
            letter if letter.is_whitespace() => continue,
            '~' => Token::Tilde,
            '+' => Token::Plus,
            '-' | '\u{2212}' => Token::Minus,
            '*' => Token::Star,
            '/' => Token::Slash,
            ':' => Token::Colon,
            '^' => Token::Hat,
            '(' => Token::Open,
            ')' => Token::Close,
            '|' if letters.get(at) == Some(&'|') => {
                at += 1;
                Token::DoubleBar
            }
            '|' => Token::Bar,
            '`' => {
                let end = letters[at..].iter().position(|letter| *letter == '`');
                let Some(length) = end.filter(|length| *length > 0) else {
                    return Err(wrong(start, "the backtick has no name and closing backtick after it".into()));
                };
                let name = letters[at..at + length].iter().collect();
                at += length + 1;
                Token::Name(name)
            }
            letter if is_name(letter) => {
                while at < letters.len() && is_name(letters[at]) {
                    at += 1;
                }
                let word: String = letters[start..at].iter().collect();
                if word.starts_with(|letter: char| letter.is_ascii_digit()) {
                    Token::Number(word)
                } else {
                    Token::Name(word)
                }
            }
            '%' => return Err(wrong(start, "`%in%` is not known here; write a:b or a/b".into())),
            other => {
                let message = format!("`{other}` is no part of a formula; a column of such a name needs `backticks`");
                return Err(wrong(start, message));
            }
        };
        found.push((token, start));
    }
    found.push((Token::End, letters.len()));
    Ok(found)
}
