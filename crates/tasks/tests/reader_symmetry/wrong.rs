//! Wrong numbers of the shape of a right one.

/// A number of another value with the same signs, points, brackets, spaces and count of digits; `salt` chooses which.
///
/// Digits of numbers that are all zeros and ones stay zeros and ones if `binary`. No first digit becomes a zero.
pub fn wrong(right: &str, binary: bool, salt: u64) -> String {
    let characters: Vec<char> = right.chars().collect();
    // The exponent stays: it is short, and a mantissa is what models get wrong.
    let end = characters.iter().position(|&c| c == 'e').unwrap_or(characters.len());
    let digits: Vec<usize> = (0..end).filter(|&at| characters[at].is_ascii_digit()).collect();
    let leads = |at: usize| {
        let before = at.checked_sub(1).map(|before| characters[before]);
        let inside = characters.get(at + 1).is_some_and(char::is_ascii_digit);
        !before.is_some_and(|c| c.is_ascii_digit() || c == '.' || c == ' ') && (inside || right.contains(['/', 'e']))
    };
    let mut random = Random(salt ^ hash(right));
    loop {
        let mut changed = characters.clone();
        let times = 1 + random.below(2.min(digits.len()));
        for _ in 0..times {
            let at = digits[random.below(digits.len())];
            let digit = if binary { random.below(2) } else { random.below(10) };
            if !(digit == 0 && leads(at)) {
                changed[at] = char::from(b'0' + digit as u8);
            }
        }
        let denominators_hold = !changed.split(|&c| c == '/').skip(1).any(|part| part.iter().all(|&c| c == '0'));
        if changed != characters && denominators_hold {
            return changed.into_iter().collect();
        }
        // "1" in binary has no other number of its shape.
        if binary && digits.len() == 1 {
            return if right == "1" { "0".to_owned() } else { "1".to_owned() };
        }
        // A binary number whose only free digits were drawn as they were is drawn again.
        random.0 = random.0.wrapping_add(0x9e37_79b9);
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound.max(1) as u64) as usize
    }
}

/// FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn shapes_are_kept() {
    for right in ["7", "0", "47", "-308", "10.50", "7/15", "1.2e10", "(3)", "4 0 7", "0704"] {
        for salt in 0..50 {
            let other = wrong(right, false, salt);
            let shape = |text: &str| text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect::<String>();
            assert!(other != right && shape(&other) == shape(right), "{right} {other}");
        }
    }
    assert!((0..50).all(|salt| wrong("1010", true, salt).chars().all(|c| c < '2')));
}
