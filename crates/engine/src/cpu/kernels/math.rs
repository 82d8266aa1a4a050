//! Elementwise functions on sixteen f32: the same bits on every instruction set.

use super::lanes::Lanes;

/// e^x within 2 units in the last place; exactly 0 below -87.3 (and at minus infinity), finite up to 88.7; NaN stays.
#[inline(always)]
pub(crate) unsafe fn exp<L: Lanes>(x: L) -> L {
    // Range reduction x = n ln 2 + r with ln 2 in two parts, then the polynomial of Cephes' expf.
    // SAFETY: the caller has a vector at the pointer, and the instructions.
    unsafe {
        let low = L::splat(-87.3);
        let clamped = L::splat(88.0).min(low.max(x));
        let n = clamped.mul(L::splat(std::f32::consts::LOG2_E)).round();
        let r = n.fma(L::splat(-0.693_359_4), clamped);
        let r = n.fma(L::splat(2.121_944_4e-4), r);
        let mut p = L::splat(1.987_569_1e-4);
        for c in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
            p = p.fma(r, L::splat(c));
        }
        let y = p.fma(r.mul(r), r).add(L::splat(1.0));
        x.select_less(low, L::zero(), y.mul(n.exp2_integral()))
    }
}

/// x / (1 + e^-x)
#[inline(always)]
pub(crate) unsafe fn silu<L: Lanes>(x: L) -> L {
    // SAFETY: the caller has the instructions.
    unsafe { x.div(L::splat(1.0).add(exp(L::zero().sub(x)))) }
}

/// tanh x, absolute error below 2e-7.
#[inline(always)]
pub(crate) unsafe fn tanh<L: Lanes>(x: L) -> L {
    // SAFETY: the caller has the instructions.
    unsafe {
        // tanh x is 1 to f32 precision beyond 9; clamping keeps the exponential finite.
        let clamped = L::splat(10.0).min(L::splat(-10.0).max(x));
        let e = exp(clamped.add(clamped));
        L::splat(1.0).sub(L::splat(2.0).div(e.add(L::splat(1.0))))
    }
}

/// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
#[inline(always)]
pub(crate) unsafe fn gelu_tanh<L: Lanes>(x: L) -> L {
    // SAFETY: the caller has the instructions.
    unsafe {
        let cubic = x.mul(x).mul(x).fma(L::splat(0.044_715), x);
        let t = tanh(cubic.mul(L::splat(0.797_884_6)));
        x.mul(L::splat(0.5)).mul(t.add(L::splat(1.0)))
    }
}

/// cap * tanh(x / cap)
#[inline(always)]
pub(crate) unsafe fn softcap<L: Lanes>(x: L, cap: L) -> L {
    // SAFETY: the caller has the instructions.
    unsafe { tanh(x.div(cap)).mul(cap) }
}

#[cfg(test)]
mod tests {
    use super::super::lanes::{Isa, LANES, for_each_isa};
    use super::*;

    #[inline(always)]
    unsafe fn apply<L: Lanes>(which: usize, x: &[f32], y: &mut [f32]) {
        for (a, b) in x.chunks_exact(LANES).zip(y.chunks_exact_mut(LANES)) {
            // SAFETY: both have sixteen values, and the instructions were detected.
            unsafe {
                let v = L::load(a.as_ptr());
                let r = match which {
                    0 => exp(v),
                    1 => silu(v),
                    2 => tanh(v),
                    _ => gelu_tanh(v),
                };
                r.store(b.as_mut_ptr());
            }
        }
    }
    for_each_isa! { fn run(which: usize, x: &[f32], y: &mut [f32]) => apply }

    #[test]
    fn functions_are_accurate_and_the_same_on_every_instruction_set() {
        let x: Vec<f32> = (0..64_000).map(|i| (i as f32 - 32_000.0) * 0.0031).collect();
        for (which, reference, tolerance) in [
            (0, (|v: f64| v.exp()) as fn(f64) -> f64, 3e-7),
            (1, |v: f64| v / (1.0 + (-v).exp()), 4e-7),
            (2, |v: f64| v.tanh(), 2.5e-7),
            (3, |v: f64| 0.5 * v * (1.0 + (0.7978845608028654 * (v + 0.044715 * v * v * v)).tanh()), 4e-7),
        ] {
            let mut first: Option<Vec<u32>> = None;
            for isa in Isa::all() {
                let mut y = vec![0f32; x.len()];
                // SAFETY: `Isa::all` lists what the CPU has.
                unsafe { run(isa, which, &x, &mut y) };
                for (&a, &b) in x.iter().zip(&y) {
                    if which == 0 && !(-87.0..88.0).contains(&a) {
                        continue;
                    }
                    let r = reference(f64::from(a));
                    let bound = tolerance * r.abs().max(if which == 0 { 1e-37 } else { 1.0 });
                    assert!((f64::from(b) - r).abs() <= bound, "{which} {} at {a}: {b} for {r}", isa.name());
                }
                let bits: Vec<u32> = y.iter().map(|v| v.to_bits()).collect();
                assert!(first.get_or_insert_with(|| bits.clone()) == &bits, "{} differs in {which}", isa.name());
            }
        }
    }

    #[test]
    fn exponential_of_minus_infinity_is_zero_and_not_a_number_stays() {
        for isa in Isa::all() {
            let mut x = [f32::NEG_INFINITY; LANES];
            x[3] = f32::NAN;
            let mut y = [1f32; LANES];
            // SAFETY: `Isa::all` lists what the CPU has.
            unsafe { run(isa, 0, &x, &mut y) };
            assert!(y[3].is_nan() && y[0] == 0.0 && y[15] == 0.0, "{y:?}");
        }
    }
}
