//! From the text of an expression to tokens.

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A whole number as written.
    Int(String),
    Float(f64),
    Text(String),
    /// A name; dots join (`np.arange`).
    Name(String),
    /// An operator, a bracket or a comma.
    Sign(&'static str),
}

/// Longest first, so that `//` is not two divisions.
const SIGNS: [&str; 24] = [
    "**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "<", ">", "(", ")", "[", "]", "{", "}", ",", ":", "=",
    ".", "$",
];

/// Splits an expression. The error is what cannot be read.
pub(super) fn tokenise(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let taken;
        let starts_number = first.is_ascii_digit()
            || (first == '.' && rest.chars().nth(1).is_some_and(|second| second.is_ascii_digit()));
        if starts_number {
            let (token, length) = number(rest)?;
            tokens.push(token);
            taken = length;
        } else if first.is_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).unwrap_or(rest.len());
            tokens.push(Token::Name(rest[..end].to_owned()));
            taken = end;
        } else if first == '"' || first == '\'' {
            let (token, length) = quoted(rest, first)?;
            tokens.push(token);
            taken = length;
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or_else(|| format!("the character {first:?} has no meaning here"))?;
            // `$` only marks a variable.
            if sign != "$" {
                tokens.push(Token::Sign(sign));
            }
            taken = sign.len();
        }
        rest = rest[taken..].trim_start();
    }
    Ok(tokens)
}

fn number(text: &str) -> Result<(Token, usize), String> {
    let digits = |from: usize| from + text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut end = digits(0);
    let mut float = false;
    if text[end..].starts_with('.') {
        float = true;
        end = digits(end + 1);
    }
    if let Some(exponent) = text[end..].strip_prefix(['e', 'E']) {
        let sign = usize::from(exponent.starts_with(['+', '-']));
        let after = digits(end + 1 + sign);
        if after > end + 1 + sign {
            float = true;
            end = after;
        }
    }
    let word = &text[..end];
    if text[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_') {
        return Err(format!("{word} runs into a name"));
    }
    let token = if float {
        Token::Float(word.parse().map_err(|_| format!("{word} is no number"))?)
    } else {
        Token::Int(word.to_owned())
    };
    Ok((token, end))
}

fn quoted(text: &str, quote: char) -> Result<(Token, usize), String> {
    let mut content = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some((_, 'n')) => content.push('\n'),
                Some((_, escaped @ ('\\' | '\'' | '"'))) => content.push(escaped),
                Some((_, other)) => return Err(format!("the escape \\{other} is unknown")),
                None => break,
            },
            _ if letter == quote => return Ok((Token::Text(content), at + 1)),
            _ => content.push(letter),
        }
    }
    Err(format!("the text {text} does not end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_numbers_and_signs() {
        let tokens = tokenise(r#"$n_1 //2**"a'b\"" <= 1.50e1.5 np.arange(.25)"#);
        assert!(tokens.is_ok(), "{tokens:?}");
        let tokens = tokenise("x//2.5").unwrap();
        assert_eq!(tokens, [Token::Name("x".into()), Token::Sign("//"), Token::Float(2.5)]);
        assert_eq!(tokenise("'São Paulo'").unwrap(), [Token::Text("São Paulo".into())]);
        for wrong in ["a ÷ b", "'open", "2x", "\"\\q\"", "#"] {
            assert!(tokenise(wrong).is_err(), "{wrong}");
        }
    }
}
