//! `num-bigint` under the name that RustPython asks for, with a hook where an integer becomes decimal digits. See
//! `vendor/README.md`.
use std::fmt;
use std::ops::{
    Add, AddAssign, BitAnd, BitOr, BitOrAssign, BitXor, Deref, Div, DivAssign, Mul, MulAssign, Neg, Not, Rem, RemAssign, Shl,
    ShlAssign, Shr, ShrAssign, Sub, SubAssign,
};
use std::str::FromStr;
use std::sync::OnceLock;

use num_bigint as num;
pub use num_bigint::{BigUint, ParseBigIntError, Sign, ToBigUint, U32Digits, U64Digits};
use num_integer::Integer;
use num_traits::{FromPrimitive, Num, One, Pow, Signed, ToPrimitive, Zero};

/// Asked before an integer of more than [`LONG_DIGITS`] decimal digits is written: the text to write instead of the digits, if
/// they are refused.
pub type Refuse = fn(&num::BigInt) -> Option<String>;

/// Decimal digits up to which nothing is asked: the limit of CPython.
pub const LONG_DIGITS: usize = 4_300;

static REFUSE: OnceLock<Refuse> = OnceLock::new();

/// Sets the hook of the process; only the first call has an effect.
pub fn set_refuse(refuse: Refuse) {
    let _ = REFUSE.set(refuse);
}

/// An integer of `num-bigint`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BigInt(num::BigInt);

/// Writes the decimal digits, unless the hook refuses them.
fn decimal(value: &num::BigInt) -> String {
    // 3.32 bits a digit: below this many the number is short without looking.
    let may_be_long = value.bits() > LONG_DIGITS as u64 * 332 / 100;
    if may_be_long
        && let Some(refuse) = REFUSE.get()
        && let Some(instead) = refuse(value)
    {
        return instead;
    }
    value.to_str_radix(10)
}

impl BigInt {
    pub fn from_biguint(sign: Sign, data: BigUint) -> Self {
        BigInt(num::BigInt::from_biguint(sign, data))
    }

    pub fn from_bytes_be(sign: Sign, bytes: &[u8]) -> Self {
        BigInt(num::BigInt::from_bytes_be(sign, bytes))
    }

    pub fn from_bytes_le(sign: Sign, bytes: &[u8]) -> Self {
        BigInt(num::BigInt::from_bytes_le(sign, bytes))
    }

    pub fn from_signed_bytes_be(digits: &[u8]) -> Self {
        BigInt(num::BigInt::from_signed_bytes_be(digits))
    }

    pub fn from_signed_bytes_le(digits: &[u8]) -> Self {
        BigInt(num::BigInt::from_signed_bytes_le(digits))
    }

    pub fn to_str_radix(&self, radix: u32) -> String {
        if radix == 10 { decimal(&self.0) } else { self.0.to_str_radix(radix) }
    }

    pub fn pow(&self, exponent: u32) -> Self {
        BigInt(num::BigInt::pow(&self.0, exponent))
    }

    pub fn modpow(&self, exponent: &Self, modulus: &Self) -> Self {
        BigInt(self.0.modpow(&exponent.0, &modulus.0))
    }

    pub fn sqrt(&self) -> Self {
        BigInt(self.0.sqrt())
    }
}

/// The readers of `num-bigint`.
impl Deref for BigInt {
    type Target = num::BigInt;

    fn deref(&self) -> &num::BigInt {
        &self.0
    }
}

impl fmt::Display for BigInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = decimal(&self.0);
        match digits.strip_prefix('-') {
            Some(magnitude) => f.pad_integral(false, "", magnitude),
            None => f.pad_integral(true, "", &digits),
        }
    }
}

impl fmt::Debug for BigInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for BigInt {
    type Err = ParseBigIntError;

    fn from_str(text: &str) -> Result<Self, ParseBigIntError> {
        text.parse().map(BigInt)
    }
}

impl Num for BigInt {
    type FromStrRadixErr = ParseBigIntError;

    fn from_str_radix(text: &str, radix: u32) -> Result<Self, ParseBigIntError> {
        num::BigInt::from_str_radix(text, radix).map(BigInt)
    }
}

impl Zero for BigInt {
    fn zero() -> Self {
        BigInt(num::BigInt::zero())
    }

    fn is_zero(&self) -> bool {
        self.0.is_zero()
    }
}

impl One for BigInt {
    fn one() -> Self {
        BigInt(num::BigInt::one())
    }
}

impl Signed for BigInt {
    fn abs(&self) -> Self {
        BigInt(self.0.abs())
    }

    fn abs_sub(&self, other: &Self) -> Self {
        BigInt(self.0.abs_sub(&other.0))
    }

    fn signum(&self) -> Self {
        BigInt(self.0.signum())
    }

    fn is_positive(&self) -> bool {
        self.0.is_positive()
    }

    fn is_negative(&self) -> bool {
        self.0.is_negative()
    }
}

impl Integer for BigInt {
    fn div_floor(&self, other: &Self) -> Self {
        BigInt(self.0.div_floor(&other.0))
    }

    fn mod_floor(&self, other: &Self) -> Self {
        BigInt(self.0.mod_floor(&other.0))
    }

    fn gcd(&self, other: &Self) -> Self {
        BigInt(self.0.gcd(&other.0))
    }

    fn lcm(&self, other: &Self) -> Self {
        BigInt(self.0.lcm(&other.0))
    }

    fn is_multiple_of(&self, other: &Self) -> bool {
        self.0.is_multiple_of(&other.0)
    }

    fn is_even(&self) -> bool {
        self.0.is_even()
    }

    fn is_odd(&self) -> bool {
        self.0.is_odd()
    }

    fn div_rem(&self, other: &Self) -> (Self, Self) {
        let (quotient, rest) = self.0.div_rem(&other.0);
        (BigInt(quotient), BigInt(rest))
    }

    fn div_mod_floor(&self, other: &Self) -> (Self, Self) {
        let (quotient, rest) = self.0.div_mod_floor(&other.0);
        (BigInt(quotient), BigInt(rest))
    }
}

impl ToPrimitive for BigInt {
    fn to_i64(&self) -> Option<i64> {
        self.0.to_i64()
    }

    fn to_i128(&self) -> Option<i128> {
        self.0.to_i128()
    }

    fn to_u64(&self) -> Option<u64> {
        self.0.to_u64()
    }

    fn to_u128(&self) -> Option<u128> {
        self.0.to_u128()
    }

    fn to_f32(&self) -> Option<f32> {
        self.0.to_f32()
    }

    fn to_f64(&self) -> Option<f64> {
        self.0.to_f64()
    }
}

impl FromPrimitive for BigInt {
    fn from_i64(value: i64) -> Option<Self> {
        num::BigInt::from_i64(value).map(BigInt)
    }

    fn from_i128(value: i128) -> Option<Self> {
        num::BigInt::from_i128(value).map(BigInt)
    }

    fn from_u64(value: u64) -> Option<Self> {
        num::BigInt::from_u64(value).map(BigInt)
    }

    fn from_u128(value: u128) -> Option<Self> {
        num::BigInt::from_u128(value).map(BigInt)
    }

    fn from_f64(value: f64) -> Option<Self> {
        num::BigInt::from_f64(value).map(BigInt)
    }
}

/// Conversion to an integer, where there is one.
pub trait ToBigInt {
    fn to_bigint(&self) -> Option<BigInt>;
}

impl ToBigInt for BigInt {
    fn to_bigint(&self) -> Option<BigInt> {
        Some(self.clone())
    }
}

/// A value that does not fit the type asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TryFromBigIntError<T>(std::marker::PhantomData<T>);

macro_rules! primitive {
    ($($primitive:ty)*) => {$(
        impl From<$primitive> for BigInt {
            fn from(value: $primitive) -> Self {
                BigInt(value.into())
            }
        }

        impl TryFrom<&BigInt> for $primitive {
            type Error = TryFromBigIntError<()>;

            fn try_from(value: &BigInt) -> Result<Self, Self::Error> {
                (&value.0).try_into().map_err(|_| TryFromBigIntError(std::marker::PhantomData))
            }
        }

        impl TryFrom<BigInt> for $primitive {
            type Error = TryFromBigIntError<BigInt>;

            fn try_from(value: BigInt) -> Result<Self, Self::Error> {
                value.0.try_into().map_err(|_| TryFromBigIntError(std::marker::PhantomData))
            }
        }

        impl ToBigInt for $primitive {
            fn to_bigint(&self) -> Option<BigInt> {
                Some(BigInt::from(*self))
            }
        }

        primitive!(@binary $primitive, Add add, Sub sub, Mul mul, Div div, Rem rem);
        primitive!(@shift $primitive, Shl shl ShlAssign shl_assign, Shr shr ShrAssign shr_assign);
        primitive!(@in_place $primitive, AddAssign add_assign, SubAssign sub_assign, MulAssign mul_assign);
    )*};
    (@in_place $primitive:ty, $($operator:ident $function:ident),*) => {$(
        impl $operator<$primitive> for BigInt {
            fn $function(&mut self, other: $primitive) {
                self.0.$function(other);
            }
        }
    )*};
    (@binary $primitive:ty, $($operator:ident $function:ident),*) => {$(
        impl $operator<$primitive> for BigInt {
            type Output = BigInt;

            fn $function(self, other: $primitive) -> BigInt {
                BigInt(self.0.$function(other))
            }
        }

        impl $operator<$primitive> for &BigInt {
            type Output = BigInt;

            fn $function(self, other: $primitive) -> BigInt {
                BigInt((&self.0).$function(other))
            }
        }
    )*};
    (@shift $primitive:ty, $($operator:ident $function:ident $assign:ident $in_place:ident),*) => {$(
        impl $operator<$primitive> for BigInt {
            type Output = BigInt;

            fn $function(self, other: $primitive) -> BigInt {
                BigInt(self.0.$function(other))
            }
        }

        impl $operator<$primitive> for &BigInt {
            type Output = BigInt;

            fn $function(self, other: $primitive) -> BigInt {
                BigInt((&self.0).$function(other))
            }
        }

        impl $assign<$primitive> for BigInt {
            fn $in_place(&mut self, other: $primitive) {
                self.0.$in_place(other);
            }
        }
    )*};
}

primitive!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

macro_rules! float {
    ($($float:ty)*) => {$(
        impl ToBigInt for $float {
            fn to_bigint(&self) -> Option<BigInt> {
                num::ToBigInt::to_bigint(self).map(BigInt)
            }
        }
    )*};
}

float!(f32 f64);

macro_rules! binary {
    ($($operator:ident $function:ident),*) => {$(
        impl $operator for BigInt {
            type Output = BigInt;

            fn $function(self, other: BigInt) -> BigInt {
                BigInt(self.0.$function(other.0))
            }
        }

        impl $operator<&BigInt> for BigInt {
            type Output = BigInt;

            fn $function(self, other: &BigInt) -> BigInt {
                BigInt(self.0.$function(&other.0))
            }
        }

        impl $operator<BigInt> for &BigInt {
            type Output = BigInt;

            fn $function(self, other: BigInt) -> BigInt {
                BigInt((&self.0).$function(other.0))
            }
        }

        impl $operator for &BigInt {
            type Output = BigInt;

            fn $function(self, other: &BigInt) -> BigInt {
                BigInt((&self.0).$function(&other.0))
            }
        }
    )*};
}

binary!(Add add, Sub sub, Mul mul, Div div, Rem rem, BitAnd bitand, BitOr bitor, BitXor bitxor);

macro_rules! in_place {
    ($($operator:ident $function:ident),*) => {$(
        impl $operator for BigInt {
            fn $function(&mut self, other: BigInt) {
                self.0.$function(other.0);
            }
        }

        impl $operator<&BigInt> for BigInt {
            fn $function(&mut self, other: &BigInt) {
                self.0.$function(&other.0);
            }
        }
    )*};
}

in_place!(
    AddAssign add_assign,
    SubAssign sub_assign,
    MulAssign mul_assign,
    DivAssign div_assign,
    RemAssign rem_assign,
    BitOrAssign bitor_assign
);

impl Neg for BigInt {
    type Output = BigInt;

    fn neg(self) -> BigInt {
        BigInt(-self.0)
    }
}

impl Neg for &BigInt {
    type Output = BigInt;

    fn neg(self) -> BigInt {
        BigInt(-&self.0)
    }
}

impl Not for BigInt {
    type Output = BigInt;

    fn not(self) -> BigInt {
        BigInt(!self.0)
    }
}

impl Not for &BigInt {
    type Output = BigInt;

    fn not(self) -> BigInt {
        BigInt(!&self.0)
    }
}

impl<E> Pow<E> for &BigInt
where
    for<'a> &'a num::BigInt: Pow<E, Output = num::BigInt>,
{
    type Output = BigInt;

    fn pow(self, exponent: E) -> BigInt {
        BigInt(Pow::pow(&self.0, exponent))
    }
}

impl From<BigUint> for BigInt {
    fn from(value: BigUint) -> Self {
        BigInt(value.into())
    }
}

impl From<num::BigInt> for BigInt {
    fn from(value: num::BigInt) -> Self {
        BigInt(value)
    }
}

impl From<bool> for BigInt {
    fn from(value: bool) -> Self {
        BigInt(value.into())
    }
}

impl<'a> From<&'a BigInt> for &'a num::BigInt {
    fn from(value: &'a BigInt) -> Self {
        &value.0
    }
}

macro_rules! other_digits {
    ($($format:ident)*) => {$(
        impl fmt::$format for BigInt {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::$format::fmt(&self.0, f)
            }
        }
    )*};
}

other_digits!(Binary Octal LowerHex UpperHex);
