//! Peak performance of the device: arithmetic from registers, and memory read in order.
use std::hint::black_box;
use std::time::Instant;

use serde::Serialize;

use super::bf16::{self, TileUnit};
use super::int8::{Int8Isa, dots};
use super::lanes::{LANES, Lanes, for_each_isa};
use crate::cpu::team::Team;

/// Independent chains of multiply-adds: more than a core needs to hide their latency, few enough for its registers.
const CHAINS: usize = 12;

/// Rounds by which a stretch is sized, and the seconds that it then takes.
const FEW: usize = 2000;
const STRETCH_S: f64 = 0.03;

/// Times that each is measured; the best counts, because others may use the machine.
const TRIES: usize = 5;

/// The smallest buffer that is read, and the bytes of which a measurement reads at least so many: a small buffer is read again and
/// again.
const LEAST_BUFFER: u64 = 1 << 18;
const LEAST_READ: usize = 64 << 20;

/// Peak performance of the device with a team's threads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Peaks {
    /// Operations a second (a multiplication and an addition are two) in the arithmetic of matrix products.
    pub products_per_s: f64,
    /// Operations a second in f32, in which everything else is computed.
    pub f32_per_s: f64,
    /// Bytes a second that all threads read from a buffer of `buffer_bytes`: from the caches where that fits them.
    pub bytes_per_s: f64,
    /// Size of the buffer that was read, in bytes.
    pub buffer_bytes: u64,
}

impl Peaks {
    /// The better of two measurements in everything: other programs and clock rates only slow a device.
    pub fn best_of(self, other: Peaks) -> Peaks {
        Peaks {
            products_per_s: self.products_per_s.max(other.products_per_s),
            f32_per_s: self.f32_per_s.max(other.f32_per_s),
            bytes_per_s: self.bytes_per_s.max(other.bytes_per_s),
            buffer_bytes: self.buffer_bytes,
        }
    }

    /// Measures, in a second or two. The buffer is as large as the weights, because a step reads all of them, but at least
    /// 256 KiB and at most 1 GiB: weights that stay in the caches are read as fast as these are.
    pub(crate) fn measure(team: &Team, is_int8: bool, tiles: Option<TileUnit>, weight_bytes: u64) -> Peaks {
        let buffer_bytes = weight_bytes.clamp(LEAST_BUFFER.max(4096 * team.threads() as u64), 1 << 30);
        let f32_per_s = peak_f32(team);
        Peaks {
            products_per_s: match tiles {
                _ if is_int8 => peak_int8(team),
                Some(unit) if unit.has_amx() => peak_tiles(team, unit),
                // Vectors compute products of bf16 by multiply-adds of f32.
                _ => f32_per_s,
            },
            f32_per_s,
            bytes_per_s: peak_bandwidth(team, buffer_bytes as usize),
            buffer_bytes,
        }
    }
}

/// Floating-point operations a second of f32 multiply-adds that read no memory, on all threads of the team.
fn peak_f32(team: &Team) -> f64 {
    // SAFETY: the team's instruction set was detected.
    best(team, &|rounds| unsafe { multiply_adds(team.isa(), rounds) }) * (2 * LANES * CHAINS) as f64
}

/// Operations a second of 8-bit products with 32-bit sums that read no memory, on all threads of the team.
fn peak_int8(team: &Team) -> f64 {
    let unit = Int8Isa::best(team.isa());
    // SAFETY: the unit was detected.
    best(team, &|rounds| unsafe { dots(unit, rounds) }) * (2 * 4 * LANES * CHAINS) as f64
}

/// Operations a second of products of tiles that read no memory, on all threads of the team.
fn peak_tiles(team: &Team, unit: TileUnit) -> f64 {
    best(team, &|rounds| bf16::products(unit, rounds)) * bf16::PEAK_OPERATIONS as f64
}

/// Bytes a second at which all threads of the team together read a buffer of `bytes` in order.
fn peak_bandwidth(team: &Team, bytes: usize) -> f64 {
    let buffer = vec![1f32; bytes / size_of::<f32>()];
    let part = buffer.len() / team.threads() / 64 * 64;
    let rounds = LEAST_READ.div_ceil(bytes.max(1));
    let seconds = (0..TRIES).map(|_| {
        let start = Instant::now();
        team.run(team.threads(), &|thread| {
            for _ in 0..rounds {
                // SAFETY: the team's instruction set was detected.
                unsafe { read(team.isa(), &buffer[thread * part..(thread + 1) * part]) };
            }
        });
        start.elapsed().as_secs_f64()
    });
    (rounds * part * team.threads() * size_of::<f32>()) as f64 / seconds.fold(f64::INFINITY, f64::min)
}

/// Rounds a second of all threads together, at best.
fn best(team: &Team, stretch: &(dyn Fn(usize) + Sync)) -> f64 {
    let start = Instant::now();
    stretch(FEW);
    let rounds = (FEW as f64 * STRETCH_S / start.elapsed().as_secs_f64().max(1e-9)) as usize;
    let rounds = rounds.max(FEW);
    let seconds = (0..TRIES).map(|_| {
        let start = Instant::now();
        team.run(team.threads(), &|_| stretch(rounds));
        start.elapsed().as_secs_f64()
    });
    (rounds * team.threads()) as f64 / seconds.fold(f64::INFINITY, f64::min)
}

for_each_isa! { fn multiply_adds(rounds: usize) => chains }
for_each_isa! { fn read(values: &[f32]) => total }

#[inline(always)]
unsafe fn chains<L: Lanes>(rounds: usize) {
    // SAFETY: the caller has the instructions.
    unsafe {
        let (x, y) = (L::splat(black_box(0.5)), L::splat(black_box(0.25)));
        let mut sums = [L::zero(); CHAINS];
        for _ in 0..rounds {
            for sum in &mut sums {
                *sum = x.fma(y, *sum);
            }
        }
        let mut all = L::zero();
        for sum in sums {
            all = all.add(sum);
        }
        black_box(all.sum());
    }
}

#[inline(always)]
unsafe fn total<L: Lanes>(values: &[f32]) {
    // SAFETY: four vectors fit a chunk, and the caller has the instructions.
    unsafe {
        let mut sums = [L::zero(); 4];
        for four in values.chunks_exact(4 * LANES) {
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = sum.max(L::load(four.as_ptr().add(i * LANES)));
            }
        }
        black_box(sums[0].max(sums[1]).max(sums[2].max(sums[3])).sum());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::kernels::lanes::Isa;

    #[test]
    fn peaks_are_those_of_some_machine() {
        let team = Team::with_isa(1, Isa::detect());
        for peak in [peak_f32(&team), peak_int8(&team)] {
            assert!((1e8..1e14).contains(&peak), "{peak} operations a second");
        }
        let bandwidth = peak_bandwidth(&team, 1 << 22);
        assert!((1e8..1e13).contains(&bandwidth), "{bandwidth} bytes a second");
    }
}
