//! Hashes of texts and numbers, for repetitions and draws.

/// Hash of a text for comparisons.
pub(super) fn of(text: &str) -> u64 {
    let digest = earnest_digest::sha256(text.as_bytes());
    u64::from_le_bytes(std::array::from_fn(|index| digest[index]))
}

/// Number that orders the rows of a draw: the same for all machines and versions.
pub(super) fn drawn(seed: u64, index: u64) -> u64 {
    // SplitMix64.
    let mut z = seed
        .wrapping_mul(0x2545_f491_4f6c_dd1d)
        .wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
