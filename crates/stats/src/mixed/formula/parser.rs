//! Parser of formulas, by recursive descent.
//!
//! From weakest to strongest: `+` and `-`, then `*` and `/`, then `:`, then `^`, as in R.
use super::lexer::{Token, tokens};
use super::terms::MOST_TERMS;
use super::{Formula, FormulaError, RandomTerm, Terms};

const EXAMPLE: &str = "correct ~ model + (1 | cluster)";

/// Deepest nesting of parentheses.
const DEEPEST: usize = 50;

/// Longest formula, in characters.
const LONGEST: usize = 20_000;

/// Most products of two terms that are made while a formula is multiplied out.
const MOST_PRODUCTS: usize = 1_000_000;

/// Most random terms: `(1 | a/b)` are two.
const MOST_RANDOM: usize = 100;

pub(super) fn parse(text: &str) -> Result<Formula, FormulaError> {
    let length = text.chars().count();
    if length > LONGEST {
        let message = format!("the formula has {length} characters, and may have {LONGEST}");
        return Err(FormulaError { text: text.to_owned(), column: 0, message });
    }
    let mut parser = Parser { text, tokens: tokens(text)?, at: 0, depth: 0, products: 0 };
    let response = match parser.next() {
        (Token::Name(name), _) => name,
        (Token::End, column) => return Err(parser.wrong(column, format!("the formula is empty; write e.g. {EXAMPLE}"))),
        (other, column) => {
            let message = format!("{other} where the column of outcomes is expected; write e.g. {EXAMPLE}");
            return Err(parser.wrong(column, message));
        }
    };
    match parser.next() {
        (Token::Tilde, _) => {}
        (Token::Open, column) => return Err(parser.function(&response, column)),
        (other, column) => {
            let message = format!("{other} where `~` is expected; write e.g. {EXAMPLE}");
            return Err(parser.wrong(column, message));
        }
    }
    let mut random = Vec::new();
    let fixed = parser.sum(Some(&mut random))?;
    match parser.next() {
        (Token::End, _) => {}
        (Token::Close, column) => return Err(parser.wrong(column, "this `)` closes nothing".into())),
        (token @ (Token::Bar | Token::DoubleBar), column) => {
            return Err(parser.wrong(column, format!("{token} belongs inside parentheses, e.g. (1 | cluster)")));
        }
        (Token::Tilde, column) => return Err(parser.wrong(column, "a formula has one `~`".into())),
        (other, column) => {
            return Err(parser.wrong(column, format!("{other} without an operator before it; write + between terms")));
        }
    }
    let formula = Formula { response, fixed: fixed.sorted(), random };
    if formula.variables().contains(&formula.response.as_str()) {
        let column = parser.place_of(&formula.response);
        return Err(parser.wrong(column, format!("`{}` is the response and cannot explain itself", formula.response)));
    }
    for (index, term) in formula.random.iter().enumerate() {
        if formula.random[..index]
            .iter()
            .any(|other| other.group == term.group && other.effects.overlaps(&term.effects))
        {
            let message = format!("an effect varies twice by {}; keep one of the terms", term.group_name());
            return Err(parser.wrong(parser.place_of(&term.group[0]), message));
        }
    }
    Ok(formula)
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<(Token, usize)>,
    at: usize,
    depth: usize,
    /// Products of two terms so far.
    products: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn column(&self) -> usize {
        self.tokens[self.at].1
    }

    fn next(&mut self) -> (Token, usize) {
        let found = self.tokens[self.at].clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        found
    }

    fn take(&mut self, wanted: &Token) -> bool {
        let found = self.peek() == wanted;
        if found {
            self.next();
        }
        found
    }

    fn wrong(&self, column: usize, message: String) -> FormulaError {
        FormulaError { text: self.text.to_owned(), column, message }
    }

    fn function(&self, name: &str, column: usize) -> FormulaError {
        let message =
            format!("`{name}(...)`: functions of columns are not known here; add a column that holds the values");
        self.wrong(column, message)
    }

    /// Place of the last appearance of a name.
    fn place_of(&self, name: &str) -> usize {
        let found = self.tokens.iter().rfind(|(token, _)| matches!(token, Token::Name(text) if text == name));
        found.map_or(0, |(_, column)| *column)
    }

    /// Terms joined by `+` and `-`. `random` collects the random terms where they are allowed.
    fn sum(&mut self, mut random: Option<&mut Vec<RandomTerm>>) -> Result<Terms, FormulaError> {
        let mut total = Terms::intercept();
        let mut negative = self.take(&Token::Minus);
        if !negative {
            self.take(&Token::Plus);
        }
        loop {
            let column = self.column();
            match self.peek().clone() {
                Token::Number(number) => {
                    self.next();
                    let Some(one) = ["0", "1"].iter().position(|known| *known == number) else {
                        let message = format!("`{number}` is no term; only 1 (intercept) and 0 (no intercept) are");
                        return Err(self.wrong(column, message));
                    };
                    total.intercept = (one == 1) != negative;
                }
                Token::Open if self.is_random() => match random.as_deref_mut() {
                    _ if negative => return Err(self.wrong(column, "a random term cannot be taken away".into())),
                    Some(random) => self.random(random)?,
                    None => return Err(self.wrong(column, "a random term cannot stand inside another term".into())),
                },
                _ => {
                    let part = self.product()?;
                    if negative {
                        total.remove(&part)
                    } else {
                        total.add(&part)
                    }
                    self.few(&total, column)?;
                }
            }
            match self.peek() {
                Token::Plus => negative = false,
                Token::Minus => negative = true,
                Token::Star | Token::Slash | Token::Colon | Token::Hat => {
                    let message = format!("{} after a number or a random term", self.peek());
                    return Err(self.wrong(self.column(), message));
                }
                _ => return Ok(total),
            }
            self.next();
        }
    }

    /// Refuses more terms than a model can have.
    fn few(&self, terms: &Terms, column: usize) -> Result<(), FormulaError> {
        if terms.terms.len() <= MOST_TERMS {
            return Ok(());
        }
        let message =
            format!("these are more than {MOST_TERMS} terms, written out; leave out interactions of many columns");
        Err(self.wrong(column, message))
    }

    /// Products of every term with every term of the other.
    fn crossed(&mut self, left: &Terms, right: &Terms, column: usize) -> Result<Terms, FormulaError> {
        self.products += left.terms.len() * right.terms.len();
        if self.products > MOST_PRODUCTS {
            let message = format!("the formula multiplies more than {MOST_PRODUCTS} pairs of terms");
            return Err(self.wrong(column, message));
        }
        let crossed = left.crossed(right);
        self.few(&crossed, column)?;
        Ok(crossed)
    }

    fn product(&mut self) -> Result<Terms, FormulaError> {
        let mut left = self.interaction()?;
        loop {
            let column = self.column();
            if self.take(&Token::Star) {
                let right = self.interaction()?;
                let crossed = self.crossed(&left, &right, column)?;
                left.add(&right);
                left.add(&crossed);
            } else if self.take(&Token::Slash) {
                let right = self.interaction()?;
                let nested = self.crossed(&left.merged(), &right, column)?;
                left.add(&nested);
            } else {
                return Ok(left);
            }
            self.few(&left, column)?;
        }
    }

    fn interaction(&mut self) -> Result<Terms, FormulaError> {
        let mut left = self.power()?;
        loop {
            let column = self.column();
            if !self.take(&Token::Colon) {
                return Ok(left);
            }
            let right = self.power()?;
            left = self.crossed(&left, &right, column)?;
        }
    }

    fn power(&mut self) -> Result<Terms, FormulaError> {
        let base = self.atom()?;
        let hat = self.column();
        if !self.take(&Token::Hat) {
            return Ok(base);
        }
        let (token, column) = self.next();
        let order = match &token {
            Token::Number(text) => text.parse::<usize>().ok().filter(|order| (1..=9).contains(order)),
            _ => None,
        };
        let Some(order) = order else {
            return Err(
                self.wrong(column, "`^` takes a whole number from 1 to 9, the order of the interactions".into())
            );
        };
        let mut total = base.clone();
        for _ in 1..order {
            let crossed = self.crossed(&total, &base, hat)?;
            total.add(&crossed);
            self.few(&total, hat)?;
        }
        Ok(total)
    }

    fn atom(&mut self) -> Result<Terms, FormulaError> {
        let (token, column) = self.next();
        match token {
            Token::Name(name) if *self.peek() == Token::Open => Err(self.function(&name, column)),
            Token::Name(name) => Ok(Terms::of(name)),
            Token::Number(number) => {
                Err(self
                    .wrong(column, format!("`{number}` cannot be part of a product; it stands alone between + and -")))
            }
            Token::Open => {
                self.at -= 1;
                if self.is_random() {
                    return Err(self.wrong(column, "a random term cannot be part of a product".into()));
                }
                self.next();
                self.enter(column)?;
                let inner = self.sum(None)?;
                self.depth -= 1;
                let (token, end) = self.next();
                match token {
                    Token::Close if inner.intercept => Ok(inner.without_intercept()),
                    Token::Close => Err(self.wrong(column, "0 and -1 stand outside parentheses".into())),
                    other => Err(self.unclosed(&other, column, end)),
                }
            }
            Token::End => Err(self.wrong(column, format!("a column is missing at the end; write e.g. {EXAMPLE}"))),
            other => Err(self.wrong(column, format!("{other} where a column is expected"))),
        }
    }

    fn enter(&mut self, column: usize) -> Result<(), FormulaError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.wrong(column, format!("parentheses are nested more than {DEEPEST} deep")));
        }
        Ok(())
    }

    fn unclosed(&self, found: &Token, open: usize, at: usize) -> FormulaError {
        match found {
            Token::End => self.wrong(open, "this `(` is never closed".into()),
            other => self.wrong(at, format!("{other} where an operator or `)` is expected")),
        }
    }

    /// True if the parenthesis here holds a bar of its own.
    fn is_random(&self) -> bool {
        let mut depth = 0;
        for (token, _) in &self.tokens[self.at..] {
            match token {
                Token::Open => depth += 1,
                Token::Close if depth == 1 => return false,
                Token::Close => depth -= 1,
                Token::Bar | Token::DoubleBar if depth == 1 => return true,
                _ => {}
            }
        }
        false
    }

    /// `(effects | group)`, `(effects || group)`.
    fn random(&mut self, found: &mut Vec<RandomTerm>) -> Result<(), FormulaError> {
        let (_, open) = self.next();
        if matches!(self.peek(), Token::Bar | Token::DoubleBar) {
            let message = "what varies is missing; write e.g. (1 | cluster) for random intercepts".to_owned();
            return Err(self.wrong(self.column(), message));
        }
        self.enter(open)?;
        let effects = self.sum(None)?.sorted();
        self.depth -= 1;
        let (bar, column) = self.next();
        let independent = match bar {
            Token::Bar => false,
            Token::DoubleBar => true,
            other => return Err(self.unclosed(&other, open, column)),
        };
        if !effects.intercept && effects.terms.is_empty() {
            return Err(self.wrong(open, "nothing varies in this term; write e.g. (1 | cluster)".into()));
        }
        let mut group: Vec<String> = Vec::new();
        let mut groups = Vec::new();
        loop {
            let column = self.column();
            match self.next() {
                (Token::Name(name), _) if *self.peek() == Token::Open => return Err(self.function(&name, column)),
                (Token::Name(name), _) if group.contains(&name) => {
                    return Err(self.wrong(column, format!("`{name}` stands twice in this group")));
                }
                (Token::Name(_), _) if group.len() >= MOST_RANDOM => {
                    return Err(self.wrong(column, format!("a group has more than {MOST_RANDOM} columns")));
                }
                (Token::Name(name), _) => group.push(name),
                (other, column) => {
                    let message = format!("{other} where a column of groups is expected, e.g. (1 | cluster)");
                    return Err(self.wrong(column, message));
                }
            }
            let (token, column) = self.next();
            match token {
                Token::Colon => {}
                // lme4 names the inner group of a/b `b:a`.
                Token::Slash => groups.push(group.clone()),
                Token::Close => {
                    groups.push(group);
                    break;
                }
                Token::Star | Token::Plus => {
                    let message = format!("{token} between groups; write a term for each: (1 | a) + (1 | b)");
                    return Err(self.wrong(column, message));
                }
                other => return Err(self.unclosed(&other, open, column)),
            }
        }
        let nested = groups.len() > 1;
        for mut group in groups {
            if nested {
                group.reverse();
            }
            if let Some(name) = effects.variables.iter().find(|name| group.contains(name)) {
                let message = format!("`{name}` is the group and cannot vary within itself");
                return Err(self.wrong(self.place_of(name), message));
            }
            if found.len() >= MOST_RANDOM {
                return Err(self.wrong(open, format!("the formula has more than {MOST_RANDOM} random terms")));
            }
            found.push(RandomTerm { effects: effects.clone(), group, independent });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Formula {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn formulas_are_read_as_lme4_reads_them() {
        for (text, printed) in [
            ("y~1", "y ~ 1"),
            ("y ~ a*b + x + (1+b|g) + (1|i)", "y ~ a + b + x + a:b + (1 + b | g) + (1 | i)"),
            ("y ~ 0 + a", "y ~ 0 + a"),
            ("y ~ a - 1", "y ~ 0 + a"),
            ("y ~ -1 + a + (0+x|g)", "y ~ 0 + a + (0 + x | g)"),
            ("y ~ a:b + a", "y ~ a + a:b"),
            ("y ~ a + (x||g)", "y ~ a + (1 + x || g)"),
            ("y ~ a + (1|g/h)", "y ~ a + (1 | g) + (1 | h:g)"),
            ("y ~ a + (1|g:h)", "y ~ a + (1 | g:h)"),
            ("y ~ (a+b+c)^2", "y ~ a + b + c + a:b + a:c + b:c"),
            ("y ~ a/b", "y ~ a + a:b"),
            ("y ~ a*b*c - a:b:c", "y ~ a + b + c + a:b + a:c + b:c"),
            ("y ~ (a + b):c + `odd name`", "y ~ `odd name` + a:c + b:c"),
            ("y ~ b:a + a", "y ~ a + b:a"),
        ] {
            let formula = read(text);
            assert_eq!(formula.to_string(), printed, "{text}");
        }
        let formula = read("y ~ a*b + (1+b|g) + (0+x||h/i)");
        assert_eq!(read(&formula.to_string()), formula);
    }

    #[test]
    fn errors_point_at_the_character() {
        for (text, column, reason) in [
            ("", 0, "is empty"),
            ("y", 1, "`~` is expected"),
            ("~ a", 0, "column of outcomes"),
            ("y ~", 3, "missing at the end"),
            ("y ~ a +", 7, "missing at the end"),
            ("y ~ a b", 6, "without an operator"),
            ("y ~ a + 2", 8, "no term"),
            ("y ~ log(x)", 4, "functions"),
            ("y ~ a + (1|g", 8, "never closed"),
            ("y ~ a + (1|)", 11, "column of groups"),
            ("y ~ a + (|g)", 9, "what varies"),
            ("y ~ a + 1|g", 9, "inside parentheses"),
            ("y ~ a)", 5, "closes nothing"),
            ("y ~ (a", 4, "never closed"),
            ("y ~ a + (1|g+h)", 12, "between groups"),
            ("y ~ a + (g|g)", 11, "within itself"),
            ("y ~ a + (1|g) + (x|g)", 19, "varies twice"),
            ("y ~ a ~ b", 6, "one `~`"),
            ("y ~ a + y", 8, "explain itself"),
            ("y ~ a * (1|g)", 8, "part of a product"),
            ("y ~ a # b", 6, "no part of a formula"),
            ("y ~ a^b", 6, "whole number"),
            ("y ~ `a", 4, "backtick"),
            ("y ~ 1:a", 5, "after a number"),
            ("y ~ a:1", 6, "part of a product"),
            ("y ~ ä + ++", 8, "where a column is expected"),
        ] {
            let error = text.parse::<Formula>().unwrap_err();
            assert!(error.message.contains(reason), "{text}: {error}");
            assert_eq!(error.column, column, "{text}: {error}");
            let printed = error.to_string();
            let caret = printed.lines().last().map(|line| line.chars().count());
            assert_eq!(caret, Some(column + 3), "{printed}");
        }
        assert!(format!("y ~ {}a", "(".repeat(100_000)).parse::<Formula>().is_err());
    }

    #[test]
    fn formulas_that_multiply_out_beyond_a_limit_are_refused() {
        let joined = |count: usize, sign: &str| (0..count).map(|i| format!("c{i}")).collect::<Vec<_>>().join(sign);
        let full = format!("({})^9", joined(8, "+"));
        for (text, reason) in [
            (format!("y ~ {} + (1|g)", joined(20, "*")), "500 terms"),
            (format!("y ~ ({})^5", joined(60, "+")), "500 terms"),
            (format!("y ~ ({}):({})", joined(300, "+"), joined(299, "+")), "500 terms"),
            (format!("y ~ {}", joined(501, "+")), "500 terms"),
            (format!("y ~ x + ({}|g)", joined(10, "*")), "500 terms"),
            (format!("y ~ {}", [full.as_str(); 200].join(":")), "1000000 pairs"),
            (format!("y ~ {}", [full.as_str(); 200].join("*")), "1000000 pairs"),
            (format!("y ~ {}", "x + ".repeat(100_000)), "20000"),
            (format!("y ~ {}", vec!["(1|g)"; 101].join("+")), "100 random"),
            (format!("y ~ (1|{})", joined(101, "/")), "100 columns"),
        ] {
            let error = text.parse::<Formula>().unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
            assert!(error.len() < 500, "{} bytes: {error}", error.len());
        }
        // Every interaction of eight columns, far more than anybody can read.
        assert_eq!(read(&format!("y ~ {}", joined(8, "*"))).fixed.terms.len(), 255);
    }
}
