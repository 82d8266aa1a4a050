//! The Mersenne Twister as CPython's `random` and as NumPy's `numpy.random` (legacy) seed and use it, needed only to reproduce
//! what the reference programs draw: NUPA's auxiliary values are a function of an operand, and DNC's perturbations take their
//! digits from `random.choice` and their offsets from `numpy.random.normal`.
use num_bigint::BigUint;

const N: usize = 624;
const M: usize = 397;

/// A generator of either library.
#[derive(Clone)]
pub struct PythonRandom {
    state: [u32; N],
    index: usize,
    /// The second number of a pair of normal ones, not yet given out.
    spare: Option<f64>,
}

impl PythonRandom {
    /// `random.Random(seed)` for a non-negative integer written in ASCII digits; other texts seed with 0.
    pub fn new(seed: &str) -> Self {
        let seed = BigUint::parse_bytes(seed.as_bytes(), 10).unwrap_or_default();
        let mut key = seed.to_u32_digits();
        if key.is_empty() {
            key.push(0);
        }
        let mut state = [0u32; N];
        state[0] = 19_650_218;
        for i in 1..N {
            state[i] = 1_812_433_253u32.wrapping_mul(state[i - 1] ^ (state[i - 1] >> 30)).wrapping_add(i as u32);
        }
        let (mut i, mut j) = (1, 0);
        for _ in 0..N.max(key.len()) {
            state[i] = (state[i] ^ (state[i - 1] ^ (state[i - 1] >> 30)).wrapping_mul(1_664_525))
                .wrapping_add(key[j])
                .wrapping_add(j as u32);
            i += 1;
            j += 1;
            if i >= N {
                state[0] = state[N - 1];
                i = 1;
            }
            if j >= key.len() {
                j = 0;
            }
        }
        for _ in 0..N - 1 {
            state[i] =
                (state[i] ^ (state[i - 1] ^ (state[i - 1] >> 30)).wrapping_mul(1_566_083_941)).wrapping_sub(i as u32);
            i += 1;
            if i >= N {
                state[0] = state[N - 1];
                i = 1;
            }
        }
        state[0] = 0x8000_0000;
        PythonRandom { state, index: N, spare: None }
    }

    /// `numpy.random.seed(seed)`.
    pub fn numpy(seed: u32) -> Self {
        let mut state = [0u32; N];
        state[0] = seed;
        for i in 1..N {
            state[i] = 1_812_433_253u32.wrapping_mul(state[i - 1] ^ (state[i - 1] >> 30)).wrapping_add(i as u32);
        }
        PythonRandom { state, index: N, spare: None }
    }

    /// Uniform on [0, 1) with 53 bits, as both libraries make it.
    fn unit(&mut self) -> f64 {
        let (high, low) = (self.next() >> 5, self.next() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }

    /// `numpy.random.normal(mean, deviation)`: Marsaglia's polar method, whose second number is kept for the next call.
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let standard = self.spare.take().unwrap_or_else(|| {
            loop {
                let first = 2.0 * self.unit() - 1.0;
                let second = 2.0 * self.unit() - 1.0;
                let square = first * first + second * second;
                if square < 1.0 && square != 0.0 {
                    let factor = (-2.0 * square.ln() / square).sqrt();
                    self.spare = Some(factor * first);
                    return factor * second;
                }
            }
        });
        mean + deviation * standard
    }

    /// `random.randrange(bound)`, and the index that `random.choice` takes of so many; 0 of nothing.
    pub fn below(&mut self, bound: u32) -> u32 {
        match bound {
            0 => 0,
            _ => self.randint(0, i64::from(bound) - 1) as u32,
        }
    }

    fn next(&mut self) -> u32 {
        if self.index >= N {
            for k in 0..N {
                let y = (self.state[k] & 0x8000_0000) | (self.state[(k + 1) % N] & 0x7fff_ffff);
                let odd = if y & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[k] = self.state[(k + M) % N] ^ (y >> 1) ^ odd;
            }
            self.index = 0;
        }
        let mut y = self.state[self.index];
        self.index += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// `randint(low, high)`, both ends included; `high >= low` and a span below 2^32.
    pub fn randint(&mut self, low: i64, high: i64) -> i64 {
        let span = u32::try_from(high - low + 1).unwrap_or(1);
        let bits = u32::BITS - span.leading_zeros();
        loop {
            let draw = self.next() >> (u32::BITS - bits);
            if draw < span {
                return low + i64::from(draw);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_what_cpython_draws() {
        // [random.Random(s).randint(-5, 5) for s in range(1, 10)], CPython 3.11
        let add: Vec<i64> = (1..10).map(|s| PythonRandom::new(&s.to_string()).randint(-5, 5)).collect();
        assert_eq!(add, [-3, -5, -2, -2, 4, 4, 0, -2, 2]);
        let sub: Vec<i64> = (1..10).map(|s| PythonRandom::new(&s.to_string()).randint(-5, -1)).collect();
        assert_eq!(sub, [-4, -5, -4, -4, -1, -1, -3, -4, -2]);
        // r = random.Random(10**40 + 7); [r.randint(0, 99) for _ in range(8)]
        let mut random = PythonRandom::new("10000000000000000000000000000000000000007");
        let draws: Vec<i64> = (0..8).map(|_| random.randint(0, 99)).collect();
        assert_eq!(draws, [93, 65, 33, 20, 32, 94, 75, 67]);
    }

    #[test]
    fn draws_what_numpy_draws() {
        // numpy.random.seed(7); [int(x) for x in numpy.random.normal(1000, 300, 6)], NumPy 2.4
        let mut random = PythonRandom::numpy(7);
        let draws: Vec<i64> = (0..6).map(|_| random.normal(1000.0, 300.0) as i64).collect();
        assert_eq!(draws, [1507, 860, 1009, 1122, 763, 1000]);
    }
}
