//! Rotary position embedding.

use super::lanes::{Lanes, for_each_isa};
use crate::cpu::team::Team;
use earnest_models::checkpoint::{Rope, RopeScaling};

/// Positions by which a table grows at least: a step rarely needs another one.
const GROWTH: usize = 256;

/// Cosines and sines of one rotary embedding, for the positions that were needed so far: they depend on nothing else.
#[derive(Default)]
pub(crate) struct Angles {
    half: usize,
    /// Within the original context, and beyond it.
    tables: [Table; 2],
}

/// `[positions, half]` each.
#[derive(Default)]
struct Table {
    cosines: Vec<f32>,
    sines: Vec<f32>,
}

impl Angles {
    /// Computes the angles of positions up to `position` that are not there yet, for requests that may exceed the original context
    /// (`is_long`) or may not.
    ///
    /// Like the reference implementation, frequency and angle are rounded to f32 before the cosine is taken: models
    /// were trained with those.
    pub(crate) fn reach(&mut self, rope: &Rope, position: usize, is_long: bool) {
        self.half = rope.dims / 2;
        let table = &mut self.tables[usize::from(is_long)];
        let there = table.cosines.len() / self.half.max(1);
        if position < there {
            return;
        }
        let frequencies = frequencies(rope, is_long);
        let factor = rope.attention_factor() as f32;
        for position in there..(position + 1).max(there + GROWTH) {
            for &f in &frequencies {
                let angle = f64::from(f * position as f32);
                table.cosines.push(libm::cos(angle) as f32 * factor);
                table.sines.push(libm::sin(angle) as f32 * factor);
            }
        }
    }

    /// Cosines and sines of the first `positions`, which were reached, row after row.
    pub(crate) fn first(&self, positions: usize, is_long: bool) -> (&[f32], &[f32]) {
        let (table, end) = (&self.tables[usize::from(is_long)], positions * self.half);
        (&table.cosines[..end], &table.sines[..end])
    }

    /// Cosines and sines of a position that was reached.
    pub(crate) fn of(&self, position: usize, is_long: bool) -> (&[f32], &[f32]) {
        let (table, range) = (&self.tables[usize::from(is_long)], position * self.half..(position + 1) * self.half);
        (&table.cosines[range.clone()], &table.sines[range])
    }
}

/// The embedding's frequencies in radians a position, scaling applied.
fn frequencies(rope: &Rope, is_long: bool) -> Vec<f32> {
    let base = |i: usize| (1.0 / libm::pow(rope.theta, 2.0 * i as f64 / rope.dims as f64)) as f32;
    (0..rope.dims / 2)
        .map(|i| match &rope.scaling {
            RopeScaling::None => base(i),
            RopeScaling::Linear { factor } => base(i) / *factor as f32,
            RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_max_positions } => {
                let f = f64::from(base(i));
                let wavelength = 2.0 * std::f64::consts::PI / f;
                let original = *original_max_positions as f64;
                if wavelength < original / high_freq_factor {
                    f as f32
                } else if wavelength > original / low_freq_factor {
                    (f / factor) as f32
                } else {
                    let smooth = (original / wavelength - low_freq_factor) / (high_freq_factor - low_freq_factor);
                    ((1.0 - smooth) * f / factor + smooth * f) as f32
                }
            }
            RopeScaling::LongRope { short, long, .. } => {
                let divisor = if is_long { long[i] } else { short[i] };
                (1.0 / (divisor * libm::pow(rope.theta, 2.0 * i as f64 / rope.dims as f64))) as f32
            }
            RopeScaling::Yarn { factor, low, high, .. } => {
                let plain = 1.0 / libm::pow(rope.theta, 2.0 * i as f64 / rope.dims as f64);
                let share = ((i as f64 - low) / (high - low)).clamp(0.0, 1.0);
                (plain / factor * share + plain * (1.0 - share)) as f32
            }
            RopeScaling::Proportional { rotated, factor } => {
                if i < *rotated {
                    base(i) / *factor as f32
                } else {
                    0.0
                }
            }
            RopeScaling::Divisors(divisors) => base(i) / divisors[i] as f32,
        })
        .collect()
}

/// Rotates the leading `2 * cosines.len()` dimensions of one head in place; dimension i is paired with i + half.
pub(crate) fn rotate(team: &Team, head: &mut [f32], cosines: &[f32], sines: &[f32]) {
    assert!(head.len() >= 2 * cosines.len() && sines.len() == cosines.len(), "angles wider than the head");
    // SAFETY: the team's instruction set was detected; the lengths were checked.
    unsafe { rotate_on(team.isa(), head, cosines, sines) }
}

#[inline(always)]
unsafe fn rotate_body<L: Lanes>(head: &mut [f32], cosines: &[f32], sines: &[f32]) {
    let (left, right) = head.split_at_mut(cosines.len());
    for (((a, b), &c), &s) in left.iter_mut().zip(right).zip(cosines).zip(sines) {
        let (x, y) = (*a, *b);
        *a = x * c - y * s;
        *b = y * c + x * s;
    }
}

for_each_isa! { fn rotate_on(head: &mut [f32], cosines: &[f32], sines: &[f32]) => rotate_body }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotation_keeps_the_length_and_leaves_other_dimensions_alone() {
        let rope = Rope { theta: 10_000.0, dims: 4, scaling: RopeScaling::None };
        let mut angles = Angles::default();
        angles.reach(&rope, 3, false);
        let team = Team::new(1);
        let start = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let mut head = start;
        let (c, s) = angles.of(0, false);
        rotate(&team, &mut head, c, s);
        assert_eq!(head, start);
        let (c, s) = angles.of(3, false);
        rotate(&team, &mut head, c, s);
        assert_eq!(head[4..], start[4..]);
        let expected = 3f32.cos() - 3.0 * 3f32.sin();
        assert!((head[0] - expected).abs() < 1e-6, "{head:?}");
        let norm = |v: &[f32]| v[..4].iter().map(|x| x * x).sum::<f32>();
        assert!((norm(&head) - norm(&start)).abs() < 1e-4);
    }

    #[test]
    fn yarn_keeps_fast_pairs_and_divides_slow_ones() {
        let scaling = RopeScaling::Yarn { factor: 4.0, low: 2.0, high: 6.0, attention_factor: 1.5 };
        let rope = Rope { theta: 10_000.0, dims: 16, scaling };
        let plain = frequencies(&Rope { scaling: RopeScaling::None, ..rope.clone() }, false);
        let scaled = frequencies(&rope, false);
        let shares = [1.0, 1.0, 1.0, 0.8125, 0.625, 0.4375, 0.25, 0.25];
        for ((plain, scaled), share) in plain.iter().zip(&scaled).zip(shares) {
            assert!((scaled / plain - share).abs() < 1e-6, "{scaled} {plain} {share}");
        }
        let mut angles = Angles::default();
        angles.reach(&rope, 1, false);
        assert_eq!(angles.of(0, false), (&[1.5f32; 8][..], &[0f32; 8][..]));
        let partly = Rope { scaling: RopeScaling::Proportional { rotated: 2, factor: 1.0 }, ..rope };
        let partly = frequencies(&partly, false);
        assert_eq!((&partly[..2], &partly[2..]), (&plain[..2], &[0f32; 6][..]));
    }

    #[test]
    fn a_table_that_grew_is_that_of_all_positions_at_once() {
        let long = (0..4).map(|i| 1.0 + f64::from(i)).collect();
        let scaling =
            RopeScaling::LongRope { short: vec![1.0; 4], long, original_max_positions: 64, attention_factor: 1.2 };
        let rope = Rope { theta: 10_000.0, dims: 8, scaling };
        let (mut grown, mut whole) = (Angles::default(), Angles::default());
        for position in [0, 5, GROWTH, GROWTH + 1, 3 * GROWTH] {
            grown.reach(&rope, position, true);
        }
        whole.reach(&rope, 3 * GROWTH, true);
        whole.reach(&rope, 0, false);
        let positions = 3 * GROWTH + 1;
        assert_eq!(grown.first(positions, true), whole.first(positions, true));
        assert_eq!(grown.of(700, true).0, &whole.first(positions, true).0[2800..2804]);
        assert_ne!(whole.of(9, false), whole.of(9, true));
    }
}
