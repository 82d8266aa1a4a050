//! Questions of a template with longer numbers than it draws.
use num_bigint::BigInt;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::document::Template;
use super::instance::{Instance, Instances};
use super::value::Value;

/// Numbers of which a variable is drawn: enough that the conditions find some.
const POOL: usize = 400;

impl Template {
    /// A question in which these variables have so many digits; all other variables keep their draws. None where a variable is not drawn by itself, or no
    /// values satisfy the conditions. The numbers depend on `key` alone.
    pub fn with_digits(&self, variables: &[&str], digits: usize, key: &str) -> Option<Instance> {
        let mut random = ChaCha8Rng::from_seed(earnest_digest::sha256(key.as_bytes()));
        let mut grown = self.clone();
        for name in variables {
            let index = self.names.iter().position(|known| known == name)?;
            let draw = grown.draws.iter_mut().find(|draw| draw.targets == [index])?;
            draw.pool = (0..POOL).map(|_| number(digits, &mut random)).collect();
        }
        Instances::new(&grown, key.as_bytes()).take(1).ok()?.pop()
    }
}

/// A whole number of so many digits, the first not 0.
fn number(digits: usize, random: &mut ChaCha8Rng) -> Value {
    let mut text = String::with_capacity(digits);
    text.push(char::from(b'1' + random.random_range(0..9_u8)));
    text.extend((1..digits).map(|_| char::from(b'0' + random.random_range(0..10_u8))));
    Value::Int(BigInt::parse_bytes(text.as_bytes(), 10).unwrap_or_default())
}
