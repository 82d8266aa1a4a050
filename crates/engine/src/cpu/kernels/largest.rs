//! The largest of many values: a vocabulary's logits, for each token that is generated.

use super::lanes::{Isa, LANES, Lanes, for_each_isa};

/// Values whose largest is found before it is compared with that of the values before; the last such run is searched for the index.
const STRETCH: usize = 64 * LANES;

/// Index of the largest value, the first one on ties; none if a value is not a number or infinite upwards, or there is none.
pub(crate) fn largest(isa: Isa, values: &[f32]) -> Option<usize> {
    let (mut top, mut start, mut finite) = (f32::NEG_INFINITY, 0, true);
    for (i, stretch) in values.chunks(STRETCH).enumerate() {
        let mut found = [0f32; 2];
        // SAFETY: callers pass a detected instruction set.
        unsafe { largest_on(isa, stretch, &mut found) };
        finite &= found[1] == 0.0;
        if found[0] > top {
            (top, start) = (found[0], i * STRETCH);
        }
    }
    let stretch = values.get(start..).filter(|_| finite)?;
    stretch.iter().position(|&value| value == top).map(|index| start + index)
}

/// The largest value, and whether any is not below infinity (0 if all are).
#[inline(always)]
unsafe fn largest_body<L: Lanes>(values: &[f32], out: &mut [f32; 2]) {
    // SAFETY: chunks have whole vectors, and the caller has the instructions.
    unsafe {
        let (infinity, one) = (L::splat(f32::INFINITY), L::splat(1.0));
        let (mut top, mut not_finite) = ([L::splat(f32::NEG_INFINITY); 4], [L::zero(); 4]);
        let mut chunks = values.chunks_exact(4 * LANES);
        for four in &mut chunks {
            for i in 0..4 {
                let v = L::load(four.as_ptr().add(i * LANES));
                top[i] = v.max(top[i]);
                // Not "is infinity", so that NaN counts as well.
                not_finite[i] = v.select_less(infinity, not_finite[i], one);
            }
        }
        let mut most = top[0].max(top[1]).max(top[2].max(top[3])).largest();
        let mut bad = not_finite[0].max(not_finite[1]).max(not_finite[2].max(not_finite[3])).largest();
        for &value in chunks.remainder() {
            most = if value > most { value } else { most };
            bad = if value < f32::INFINITY { bad } else { 1.0 };
        }
        *out = [most, bad];
    }
}

for_each_isa! { fn largest_on(values: &[f32], out: &mut [f32; 2]) => largest_body }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::kernels::testing::noise;

    /// By definition.
    fn plain(values: &[f32]) -> Option<usize> {
        let finite = values.iter().all(|&v| v < f32::INFINITY);
        let top = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        if finite { values.iter().position(|&v| v == top) } else { None }
    }

    #[test]
    fn it_is_the_first_of_the_largest_on_every_instruction_set() {
        let agree = |values: &[f32], what: &str| {
            for isa in Isa::all() {
                assert_eq!(largest(isa, values), plain(values), "{what}, {} values, {}", values.len(), isa.name());
            }
        };
        for n in [0, 1, 15, 16, 63, 64, 65, 1023, 1024, 1025, 5000] {
            agree(&noise(n, n as u64), "noise");
            // Many ties, signs of zero among them.
            let rounded: Vec<f32> = noise(n, 7).iter().map(|v| (2.0 * v).round()).collect();
            agree(&rounded, "ties");
            agree(&vec![-0.0; n], "zeros");
            agree(&vec![f32::NEG_INFINITY; n], "nothing possible");
            for index in [0, n / 2, n.saturating_sub(1)].into_iter().filter(|&index| index < n) {
                for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 9.0] {
                    let mut values = noise(n, 3);
                    values[index] = odd;
                    agree(&values, "one odd value");
                }
            }
        }
    }
}
