//! An evaluator of template expressions that shares nothing with the product's: exact fractions of 128 bits, read and computed
//! in one pass over the text.
use std::collections::BTreeMap;

/// A fraction in lowest terms with a positive denominator, or a text.
#[derive(Debug, Clone, PartialEq)]
pub enum Exact {
    Number(i128, i128),
    Text(String),
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

fn ratio(n: i128, d: i128) -> Exact {
    assert_ne!(d, 0, "division by zero");
    let divisor = gcd(n, d).max(1) * if d < 0 { -1 } else { 1 };
    Exact::Number(n / divisor, d / divisor)
}

impl Exact {
    pub fn parts(&self) -> (i128, i128) {
        match self {
            Exact::Number(n, d) => (*n, *d),
            Exact::Text(text) => panic!("{text:?} is no number"),
        }
    }

    /// A decimal, a whole number or p/q.
    pub fn read(text: &str) -> Exact {
        if let Some((n, d)) = text.split_once('/') {
            return ratio(n.trim().parse().unwrap(), d.trim().parse().unwrap());
        }
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        ratio(format!("{whole}{fraction}").parse().unwrap(), 10_i128.pow(u32::try_from(fraction.len()).unwrap()))
    }

    fn floor(&self) -> i128 {
        let (n, d) = self.parts();
        n.div_euclid(d)
    }

    fn truth(&self) -> bool {
        *self != Exact::Number(0, 1)
    }
}

fn flag(value: bool) -> Exact {
    Exact::Number(i128::from(value), 1)
}

fn compute(a: &Exact, operator: &str, b: &Exact) -> Exact {
    let ((an, ad), (bn, bd)) = (a.parts(), b.parts());
    match operator {
        "+" => ratio(an * bd + bn * ad, ad * bd),
        "-" => ratio(an * bd - bn * ad, ad * bd),
        "*" => ratio(an * bn, ad * bd),
        "/" => ratio(an * bd, ad * bn),
        "//" => Exact::Number(ratio(an * bd, ad * bn).floor(), 1),
        "%" => compute(a, "-", &compute(b, "*", &compute(a, "//", b))),
        "**" => (0..bn).fold(Exact::Number(1, 1), |power, _| compute(&power, "*", a)),
        other => panic!("operator {other}"),
    }
}

pub fn evaluate(text: &str, variables: &BTreeMap<String, Exact>) -> Exact {
    let mut reader = Reader { rest: text, variables };
    let value = reader.conditional();
    reader.space();
    assert_eq!(reader.rest, "", "unread in {text}");
    value
}

struct Reader<'a> {
    rest: &'a str,
    variables: &'a BTreeMap<String, Exact>,
}

impl Reader<'_> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '$']);
    }

    fn takes(&mut self, sign: &str) -> bool {
        self.space();
        let found = self.rest.starts_with(sign);
        if found {
            self.rest = &self.rest[sign.len()..];
        }
        found
    }

    fn word(&mut self, word: &str) -> bool {
        self.space();
        let after = self.rest.strip_prefix(word);
        let found = after.is_some_and(|after| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_'));
        found && self.takes(word)
    }

    // Both sides are computed: nothing in the templates divides by zero on the side that does not count.
    fn conditional(&mut self) -> Exact {
        let then = self.and();
        if !self.word("if") {
            return then;
        }
        let condition = self.and();
        assert!(self.word("else"));
        let otherwise = self.conditional();
        if condition.truth() { then } else { otherwise }
    }

    fn and(&mut self) -> Exact {
        let mut value = self.not();
        while self.word("and") {
            value = flag(self.not().truth() && value.truth());
        }
        value
    }

    fn not(&mut self) -> Exact {
        if self.word("not") { flag(!self.not().truth()) } else { self.comparison() }
    }

    fn comparison(&mut self) -> Exact {
        let mut left = self.sum();
        let mut result = None;
        while let Some(sign) = ["<=", ">=", "==", "!=", "<", ">"].into_iter().find(|sign| self.takes(sign)) {
            let right = self.sum();
            let holds = match sign {
                "==" => left == right,
                "!=" => left != right,
                _ => {
                    let difference = compute(&left, "-", &right).parts().0;
                    match sign {
                        "<" => difference < 0,
                        ">" => difference > 0,
                        "<=" => difference <= 0,
                        _ => difference >= 0,
                    }
                }
            };
            result = Some(result.unwrap_or(true) && holds);
            left = right;
        }
        result.map_or(left, flag)
    }

    fn sum(&mut self) -> Exact {
        let mut value = self.product();
        while let Some(sign) = ["+", "-"].into_iter().find(|sign| self.takes(sign)) {
            value = compute(&value, sign, &self.product());
        }
        value
    }

    fn product(&mut self) -> Exact {
        let mut value = self.power();
        loop {
            self.space();
            if self.rest.starts_with("**") {
                return value;
            }
            let Some(sign) = ["//", "/", "*", "%"].into_iter().find(|sign| self.takes(sign)) else { return value };
            value = compute(&value, sign, &self.power());
        }
    }

    fn power(&mut self) -> Exact {
        if self.takes("-") {
            return compute(&Exact::Number(0, 1), "-", &self.power());
        }
        let base = self.atom();
        if self.takes("**") { compute(&base, "**", &self.power()) } else { base }
    }

    fn atom(&mut self) -> Exact {
        self.space();
        for (open, close) in [("(", ")"), ("{", "}")] {
            if self.takes(open) {
                let value = self.conditional();
                assert!(self.takes(close), "{close} before {}", self.rest);
                return value;
            }
        }
        for quote in ['"', '\''] {
            if let Some((text, rest)) = self.rest.strip_prefix(quote).and_then(|rest| rest.split_once(quote)) {
                self.rest = rest;
                return Exact::Text(text.to_owned());
            }
        }
        let end = self.rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        let value = if word.starts_with(|c: char| c.is_ascii_digit()) {
            Exact::read(word)
        } else if self.takes("(") {
            let mut arguments = vec![self.conditional()];
            while self.takes(",") {
                arguments.push(self.conditional());
            }
            assert!(self.takes(")"), "arguments of {word}");
            call(word, &arguments)
        } else {
            match word {
                "True" => flag(true),
                "False" => flag(false),
                name => self.variables.get(name).unwrap_or_else(|| panic!("no variable {name:?}")).clone(),
            }
        };
        // The value of an item is its second part.
        self.takes("[1]");
        value
    }
}

fn call(function: &str, arguments: &[Exact]) -> Exact {
    let (n, d) = arguments[0].parts();
    match function {
        "int" => Exact::Number(n / d, 1),
        "Fraction" if arguments.len() == 2 => compute(&arguments[0], "/", &arguments[1]),
        "Fraction" => arguments[0].clone(),
        "is_int" => flag(d == 1),
        "divides" => flag(compute(&arguments[0], "%", &arguments[1]) == Exact::Number(0, 1)),
        "round" => {
            if let Some(places) = arguments.get(1) {
                let scale = Exact::Number(10_i128.pow(u32::try_from(places.parts().0).unwrap()), 1);
                return compute(&call("round", &[compute(&arguments[0], "*", &scale)]), "/", &scale);
            }
            let floor = n.div_euclid(d);
            let twice = 2 * n.rem_euclid(d);
            let up = twice > d || (twice == d && floor % 2 != 0);
            Exact::Number(floor + i128::from(up), 1)
        }
        other => panic!("function {other}"),
    }
}
