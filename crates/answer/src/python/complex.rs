//! Arithmetic of complex numbers with CPython's formulas.
use super::error::PythonError;

type Complex = (f64, f64);

pub(super) fn product(a: Complex, b: Complex) -> Complex {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

/// Smith's quotient: divided by the larger part of the divisor first.
pub(super) fn quotient(a: Complex, b: Complex) -> Result<Complex, PythonError> {
    if b.0.abs() >= b.1.abs() {
        if b.0 == 0.0 {
            return Err(PythonError::ZeroDivision);
        }
        let ratio = b.1 / b.0;
        let divisor = b.0 + b.1 * ratio;
        Ok(((a.0 + a.1 * ratio) / divisor, (a.1 - a.0 * ratio) / divisor))
    } else if b.1.abs() >= b.0.abs() {
        let ratio = b.0 / b.1;
        let divisor = b.0 * ratio + b.1;
        Ok(((a.0 * ratio + a.1) / divisor, (a.1 * ratio - a.0) / divisor))
    } else {
        Ok((f64::NAN, f64::NAN))
    }
}

/// A power: by squaring for whole exponents up to 100, in polar form otherwise.
pub(super) fn power(base: Complex, exponent: Complex) -> Result<Complex, PythonError> {
    let found = if exponent.1 == 0.0 && exponent.0 == exponent.0.floor() && exponent.0.abs() <= 100.0 {
        let squared = by_squaring(base, exponent.0.abs() as u32);
        if exponent.0 > 0.0 { squared } else { quotient((1.0, 0.0), squared)? }
    } else if exponent == (0.0, 0.0) {
        (1.0, 0.0)
    } else if base == (0.0, 0.0) {
        if exponent.1 != 0.0 || exponent.0 < 0.0 {
            return Err(PythonError::ZeroDivision);
        }
        (0.0, 0.0)
    } else {
        let (size, angle) = (base.0.hypot(base.1), base.1.atan2(base.0));
        let mut length = size.powf(exponent.0);
        let mut phase = angle * exponent.0;
        if exponent.1 != 0.0 {
            length *= (-angle * exponent.1).exp();
            phase += exponent.1 * size.ln();
        }
        (length * phase.cos(), length * phase.sin())
    };
    if found.0.is_infinite() || found.1.is_infinite() { Err(PythonError::Overflow) } else { Ok(found) }
}

fn by_squaring(base: Complex, exponent: u32) -> Complex {
    let (mut found, mut square, mut rest) = ((1.0, 0.0), base, exponent);
    while rest > 0 {
        if rest & 1 == 1 {
            found = product(found, square);
        }
        rest >>= 1;
        if rest > 0 {
            square = product(square, square);
        }
    }
    found
}
