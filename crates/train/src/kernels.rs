//! Kernels of training on the CPU: norms, activation, softmax and the optimiser's update, compiled twice. x86-64 guarantees vectors of four
//! values and no fused multiply-add; CPUs with AVX2 and FMA have twice as wide vectors and half as many instructions. Every kernel is
//! plain Rust over slices, whose loops the compiler vectorises for either.

/// Defines kernels: each is compiled for AVX2 with FMA as well and chosen by what the CPU has. `FUSED` is true in that version.
macro_rules! kernels {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $output:ty)? $body:block)*) => {$(
        $(#[$meta])*
        pub(crate) fn $name($($argument: $type),*) $(-> $output)? {
            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            fn body<const FUSED: bool>($($argument: $type),*) $(-> $output)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                fn wide($($argument: $type),*) $(-> $output)? {
                    body::<true>($($argument),*)
                }
                if $crate::kernels::has_wide_vectors() {
                    // SAFETY: the CPU has AVX2 and FMA, as was just asked.
                    return unsafe { wide($($argument),*) };
                }
            }
            body::<false>($($argument),*)
        }
    )*};
}
pub(crate) use kernels;

/// Returns true if the CPU has AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_wide_vectors() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

/// Computes `a * b + c`, rounded once if `FUSED`. Without the instruction, rounding once would be a function call.
#[inline(always)]
pub(crate) fn multiply_add<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// Exponential function within 2 units in the last place for arguments up to 88; arguments below -87 give its value at -87, which is 1e-38.
#[inline(always)]
pub(crate) fn exp<const FUSED: bool>(x: f32) -> f32 {
    // x = n ln 2 + r with |r| <= ln 2 / 2. Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-87.0, 88.0);
    let shifted = multiply_add::<FUSED>(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    // ln 2 in two parts, the first with trailing zeros.
    let r = multiply_add::<FUSED>(n, -0.693_359_4, x);
    let r = multiply_add::<FUSED>(n, 2.121_944_4e-4, r);
    // Cephes' polynomial of expf.
    let mut p = 1.987_569_1e-4;
    for coefficient in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        p = multiply_add::<FUSED>(p, r, coefficient);
    }
    let p = multiply_add::<FUSED>(p, r * r, r) + 1.0;
    p * f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23))
}

/// Adds up partial sums in a tree.
#[inline(always)]
fn total(sums: [f32; 16]) -> f32 {
    let eight: [f32; 8] = std::array::from_fn(|i| sums[i] + sums[i + 8]);
    let four: [f32; 4] = std::array::from_fn(|i| eight[i] + eight[i + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

/// Dot product in sixteen partial sums, which vectorise; one sum would have to be accumulated in order.
#[inline(always)]
pub(crate) fn dot<const FUSED: bool>(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0f32; 16];
    let ((a, rest_a), (b, rest_b)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    for (a, b) in a.iter().zip(b) {
        for i in 0..16 {
            sums[i] = multiply_add::<FUSED>(a[i], b[i], sums[i]);
        }
    }
    let rest: f32 = rest_a.iter().zip(rest_b).map(|(a, b)| a * b).sum();
    total(sums) + rest
}

/// `out += factor * x`
#[inline(always)]
pub(crate) fn add_scaled<const FUSED: bool>(out: &mut [f32], factor: f32, x: &[f32]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = multiply_add::<FUSED>(factor, *x, *out);
    }
}

/// Largest value, in sixteen partial maxima.
#[inline(always)]
pub(crate) fn largest(values: &[f32]) -> f32 {
    let mut most = [f32::NEG_INFINITY; 16];
    let (chunks, rest) = values.as_chunks::<16>();
    for chunk in chunks {
        for i in 0..16 {
            most[i] = if chunk[i] > most[i] { chunk[i] } else { most[i] };
        }
    }
    rest.iter().chain(&most).copied().fold(f32::NEG_INFINITY, f32::max)
}

/// Softmax of a row, in place; returns the logarithm of the sum of exponentials.
#[inline(always)]
pub(crate) fn softmax<const FUSED: bool>(row: &mut [f32]) -> f32 {
    let most = largest(row);
    for value in row.iter_mut() {
        *value = exp::<FUSED>(*value - most);
    }
    let mut sums = [0f32; 16];
    let (chunks, rest) = row.as_chunks::<16>();
    for chunk in chunks {
        for i in 0..16 {
            sums[i] += chunk[i];
        }
    }
    let sum = total(sums) + rest.iter().sum::<f32>();
    for value in row.iter_mut() {
        *value /= sum;
    }
    most + sum.ln()
}

#[inline(always)]
fn sigmoid<const FUSED: bool>(x: f32) -> f32 {
    1.0 / (1.0 + exp::<FUSED>(-x))
}

/// Constants of one update of AdamW.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Update {
    /// Factor on the gradient.
    pub(crate) scale: f32,
    pub(crate) beta1: f32,
    pub(crate) beta2: f32,
    pub(crate) eps: f32,
    /// Factor on the value before the update.
    pub(crate) decay: f32,
    /// Learning rate over the first moment's correction.
    pub(crate) step: f32,
    /// Reciprocal of the second moment's correction.
    pub(crate) root: f32,
}

kernels! {
    /// Dot product of two slices.
    fn inner_product(a: &[f32], b: &[f32]) -> f32 {
        dot::<FUSED>(a, b)
    }

    /// `out += factor * x`
    fn add_multiple(out: &mut [f32], factor: f32, x: &[f32]) {
        add_scaled::<FUSED>(out, factor, x);
    }

    /// Softmax of a row, in place.
    fn softmax_row(row: &mut [f32]) {
        softmax::<FUSED>(row);
    }

    /// `silu(gate) * up`, element by element.
    fn swiglu(gate: &[f32], up: &[f32], out: &mut [f32]) {
        for ((out, gate), up) in out.iter_mut().zip(gate).zip(up) {
            *out = gate * sigmoid::<FUSED>(*gate) * up;
        }
    }

    /// Gradients of [`swiglu`], written over its arguments.
    fn swiglu_gradient(gate: &mut [f32], up: &mut [f32], gradient: &[f32]) {
        for ((gate, up), d) in gate.iter_mut().zip(up).zip(gradient) {
            let s = sigmoid::<FUSED>(*gate);
            let silu = *gate * s;
            // silu' = s + silu (1 - s)
            let slope = multiply_add::<FUSED>(silu, 1.0 - s, s);
            (*gate, *up) = (d * *up * slope, d * silu);
        }
    }

    /// RMS norm of rows; `inverse` gets the reciprocal root of every row's mean square.
    fn rms_norm(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32], inverse: &mut [f32]) {
        let width = weight.len();
        for ((x, out), inverse) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)).zip(inverse) {
            *inverse = 1.0 / (dot::<FUSED>(x, x) / width as f32 + eps).sqrt();
            for ((out, x), w) in out.iter_mut().zip(x).zip(weight) {
                *out = x * *inverse * w;
            }
        }
    }

    /// Gradients of [`rms_norm`], added to `to_x` and `to_weight`.
    fn rms_norm_gradient(x: &[f32], weight: &[f32], inverse: &[f32], gradient: &[f32], to_x: &mut [f32], to_weight: &mut [f32]) {
        let width = weight.len();
        let rows = x.chunks_exact(width).zip(gradient.chunks_exact(width)).zip(to_x.chunks_exact_mut(width));
        for (((x, gradient), to_x), inverse) in rows.zip(inverse) {
            let mut sums = [0f32; 16];
            let ((xs, rest_x), (gs, rest_g), (ws, rest_w)) =
                (x.as_chunks::<16>(), gradient.as_chunks::<16>(), weight.as_chunks::<16>());
            for ((x, g), w) in xs.iter().zip(gs).zip(ws) {
                for i in 0..16 {
                    sums[i] = multiply_add::<FUSED>(g[i] * w[i], x[i], sums[i]);
                }
            }
            let rest: f32 = rest_x.iter().zip(rest_g).zip(rest_w).map(|((x, g), w)| g * w * x).sum();
            // d/dx of x * r(x) with r' = -r^3 x / n.
            let pull = (total(sums) + rest) * inverse * inverse * inverse / width as f32;
            let values = to_x.iter_mut().zip(&mut *to_weight).zip(x).zip(gradient).zip(weight);
            for ((((to_x, to_weight), x), g), w) in values {
                *to_weight = multiply_add::<FUSED>(g * x, *inverse, *to_weight);
                *to_x += g * w * inverse - pull * x;
            }
        }
    }

    /// Cross-entropy of rows of logits, summed; the logits become its gradient, times `scale`.
    fn cross_entropy(logits: &mut [f32], targets: &[u32], scale: f32) -> f64 {
        let mut loss = 0.0;
        let width = logits.len() / targets.len().max(1);
        for (row, target) in logits.chunks_exact_mut(width.max(1)).zip(targets) {
            let chosen = row[*target as usize];
            loss += f64::from(softmax::<FUSED>(row) - chosen);
            row[*target as usize] -= 1.0;
            row.iter_mut().for_each(|value| *value *= scale);
        }
        loss
    }

    /// Update of values and moments by AdamW.
    fn adamw(values: &mut [f32], gradient: &[f32], first: &mut [f32], second: &mut [f32], update: Update) {
        let Update { scale, beta1, beta2, eps, decay, step, root } = update;
        for (((value, gradient), first), second) in values.iter_mut().zip(gradient).zip(first).zip(second) {
            let gradient = gradient * scale;
            *first = beta1 * *first + (1.0 - beta1) * gradient;
            *second = beta2 * *second + (1.0 - beta2) * gradient * gradient;
            *value = *value * decay - step * *first / ((*second * root).sqrt() + eps);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_within_two_units_in_the_last_place() {
        kernels! {
            fn exponentials(values: &mut [f32]) {
                values.iter_mut().for_each(|value| *value = exp::<FUSED>(*value));
            }
        }
        let arguments: Vec<f32> = (-8700..=8800).map(|i| i as f32 / 100.0 + 1e-3).filter(|x| *x < 88.0).collect();
        let plain = arguments.iter().map(|x| exp::<false>(*x)).collect::<Vec<f32>>();
        let mut chosen = arguments.clone();
        exponentials(&mut chosen);
        for (x, y) in arguments.iter().zip(plain).chain(arguments.iter().zip(chosen)) {
            let exact = libm::exp(f64::from(*x));
            let unit = f64::from((exact as f32).next_up() - exact as f32);
            assert!((f64::from(y) - exact).abs() <= 2.0 * unit, "exp({x}) = {exact}, not {y}");
        }
        assert!(exp::<false>(f32::NEG_INFINITY) < 2e-38);
    }

    #[test]
    fn both_versions_of_the_kernels_agree() {
        let values = |seed: usize, count: usize| -> Vec<f32> {
            (0..count).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 500.0 - 2.0).collect()
        };
        for width in [1, 7, 16, 37] {
            let (a, b) = (values(1, width), values(2, width));
            assert!((inner_product(&a, &b) - dot::<false>(&a, &b)).abs() < 1e-4);
            let mut row = values(3, width);
            let log = softmax::<false>(&mut row);
            let exact = values(3, width).iter().map(|x| f64::from(*x).exp()).sum::<f64>().ln();
            assert!((f64::from(log) - exact).abs() < 1e-5, "{log} {exact}");
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            let mut logits = values(3, width);
            let loss = cross_entropy(&mut logits, &[0], 1.0);
            assert!((loss - (exact - f64::from(values(3, width)[0]))).abs() < 1e-5);
            assert!(logits.iter().sum::<f32>().abs() < 1e-5, "gradients of a softmax sum to zero");
        }
    }
}
