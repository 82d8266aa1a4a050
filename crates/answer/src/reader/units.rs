//! Exponents of units behind a number: `9.81 m/s^2`, `5 kg m^{-3}`.
use super::lexer::Lexer;
use super::token::Kind;

/// Symbols and words of units that are raised to a power. A letter that is not among them is a variable.
const UNITS: &str = "m dm cm mm µm μm nm km in ft yd mi s sec ms min h hr g mg kg l L ml mL A V W kW N kN J kJ K C F Pa kPa mol \
    cd Hz rad px bit byte unit units meter meters metre metres centimeters centimetres kilometers kilometres \
    second seconds feet inches yards miles hours";

/// Most tokens between a number and the exponent of its unit.
const LONGEST: usize = 12;

impl Lexer<'_> {
    /// `^`: the exponent of a unit is passed over with it, any other is an operation.
    pub(super) fn caret(&mut self) {
        match self.unit_exponent() {
            Some(length) => self.skip(1 + length, false),
            None => self.push(Kind::Operator('^'), 1),
        }
    }

    /// Length of the exponent behind `^`, if a unit behind a number is raised to it.
    fn unit_exponent(&self) -> Option<usize> {
        if self.spaced || !self.ends_in_unit() {
            return None;
        }
        let rest = &self.rest()[1..];
        let inside = rest.strip_prefix('{').unwrap_or(rest);
        let unsigned = inside.strip_prefix(['-', '\u{2212}']).unwrap_or(inside);
        let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
        let behind = &unsigned[digits..];
        let braced = inside.len() != rest.len();
        let end = if braced { behind.strip_prefix('}')? } else { behind };
        // 2.5 and 23 are no powers of units.
        let is_power = digits == 1 && !end.starts_with(|c: char| c.is_alphanumeric());
        is_power.then(|| rest.len() - end.len())
    }

    /// True if the last tokens are a unit of this list behind a number: `5 kg/m`, `5 \frac{m}{s`.
    fn ends_in_unit(&self) -> bool {
        let mut back = self.tokens.iter().rev().take(LONGEST);
        let is_unit = |start: usize, end: usize| UNITS.split(' ').any(|unit| unit == &self.text[start..end]);
        if !back.next().is_some_and(|last| last.kind.is_word() && is_unit(last.start, last.end)) {
            return false;
        }
        for token in back {
            match token.kind {
                Kind::Number(_) => return true,
                Kind::Word(_) if is_unit(token.start, token.end) => {}
                Kind::Operator('/' | '*') | Kind::Open | Kind::Close | Kind::Bold | Kind::Other => {}
                _ => return false,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Asked, Form, read};

    fn answer(completion: &str) -> Option<String> {
        let asked = Asked { prompt: "How large is it?", form: Form::Number };
        read(&asked, completion, false).answer.ok().map(|answer| answer.text)
    }

    #[test]
    fn an_exponent_of_a_unit_is_part_of_it() {
        const POWERS: &str = "The acceleration is 9.81 m/s^2.¦9.81 m/s^2¦9.81 m s^-2¦9.81 m s^{-2}¦9.81 m/s²¦9.81 m s⁻²¦\
             $9.81\\,\\mathrm{m/s^2}$¦\\boxed{9.81\\ \\text{m/s}^2}¦It is $9.81 \\frac{m}{s^2}$.¦**9.81 kg·m^2/s^3**¦\
             9.81 N·m¦The area is 9.81 square metres (9.81 m^2).";
        for text in POWERS.split('¦') {
            assert_eq!(answer(text).as_deref(), Some("9.81"), "{text}");
        }
    }

    #[test]
    fn powers_of_variables_and_numbers_are_operations() {
        for text in ["2x^2", "The answer is 3y^2", "2^5", "3 m^25"] {
            assert_eq!(answer(text), None, "{text}");
        }
        assert_eq!(answer("4^2 = 16").as_deref(), Some("16"));
    }
}
