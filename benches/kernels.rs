//! Matrix products of the native engine beside candle's, on the shapes of SmolLM2-135M and of a 1B model, f32, at the
//! batch sizes of decoding and prefill. `cargo bench --bench kernels`; items are floating-point operations, two a multiply-add.
//! `products_*` are those of `--compute`: bf16 with AMX (nothing without it) and without.
use candle_core::{Device, Tensor as CandleTensor};
use divan::Bencher;
use divan::counter::ItemsCount;
use earnest_engine::cpu::Team;
use earnest_engine::cpu::kernels::{Isa, MatmulScratch, PackedMatrix, Target, TileUnit, matmul};
use earnest_models::checkpoint::{Tensor, Values};

/// (rows, output columns, input columns)
const SHAPES: &[(usize, usize, usize)] = &[
    (1, 3072, 576),
    (16, 3072, 576),
    (64, 3072, 576),
    (512, 3072, 576),
    (64, 576, 1536),
    (64, 49152, 576),
    (1, 8192, 2048),
    (16, 8192, 2048),
    (64, 8192, 2048),
    (512, 8192, 2048),
];

fn values(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919) % 1013) as f32 / 1013.0 - 0.5).collect()
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn flops((m, n, k): (usize, usize, usize)) -> ItemsCount {
    ItemsCount::new(2 * m * n * k)
}

fn packed(n: usize, k: usize, bf16: bool) -> PackedMatrix {
    let wide = values(n * k);
    let values =
        if bf16 { Values::Bf16(wide.iter().map(|v| (v.to_bits() >> 16) as u16).collect()) } else { Values::F32(wide) };
    PackedMatrix::stack(vec![Tensor { shape: vec![n, k], values }])
}

fn earnest(bencher: Bencher, shape: (usize, usize, usize), bf16: bool) {
    products(bencher, shape, packed(shape.1, shape.2, bf16), threads());
}

fn in_tiles(bencher: Bencher, shape: (usize, usize, usize), unit: TileUnit, threads: usize) {
    let (_, n, k) = shape;
    let weights = Tensor { shape: vec![n, k], values: Values::F32(values(n * k)) };
    products(bencher, shape, PackedMatrix::stack_bf16(vec![weights], unit), threads);
}

fn products(bencher: Bencher, shape: (usize, usize, usize), w: PackedMatrix, threads: usize) {
    let (m, n, k) = shape;
    let team = Team::start(threads, Isa::detect()).expect("threads can be started");
    let x = values(m * k);
    let (mut y, mut scratch) = (vec![0f32; m * n], MatmulScratch::default());
    bencher.counter(flops(shape)).bench_local(|| {
        team.enter(|| matmul(&team, &mut scratch, &x, &w, None, Target::Overwrite, &mut y));
    });
}

#[divan::bench(args = SHAPES)]
fn earnest_f32(bencher: Bencher, shape: (usize, usize, usize)) {
    earnest(bencher, shape, false);
}

#[divan::bench(args = SHAPES)]
fn earnest_bf16(bencher: Bencher, shape: (usize, usize, usize)) {
    earnest(bencher, shape, true);
}

/// f32 on one thread, beside the products in bf16 below.
#[divan::bench(args = SHAPES)]
fn products_f32_1_thread(bencher: Bencher, shape: (usize, usize, usize)) {
    products(bencher, shape, packed(shape.1, shape.2, false), 1);
}

#[divan::bench(args = SHAPES)]
fn products_bf16_1_thread_without_amx(bencher: Bencher, shape: (usize, usize, usize)) {
    in_tiles(bencher, shape, TileUnit::VECTORS, 1);
}

#[divan::bench(args = SHAPES)]
fn products_bf16_1_thread_amx(bencher: Bencher, shape: (usize, usize, usize)) {
    match TileUnit::amx() {
        Ok(unit) => in_tiles(bencher, shape, unit, 1),
        Err(reason) => eprintln!("not run: this machine is without AMX: {reason}"),
    }
}

#[divan::bench(args = SHAPES)]
fn candle_f32(bencher: Bencher, shape: (usize, usize, usize)) {
    let (m, n, k) = shape;
    let tensor = |rows: usize| CandleTensor::from_vec(values(rows * k), (rows, k), &Device::Cpu).expect("sizes fit");
    let (w, x) = (tensor(n).t().expect("a matrix"), tensor(m));
    bencher.counter(flops(shape)).bench_local(|| x.matmul(&w).expect("sizes fit"));
}

fn main() {
    divan::main();
}
