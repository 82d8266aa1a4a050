//! The race check of the kernels' twin (tests/cuda_twin/races.cpp): the kernels have no race, and planted ones are found.

use super::backend::CudaEngine;
use super::checks::{Case, SHAPES, attention, codes, expert_products, library_products, products, put};
use super::device::{Device, DeviceError, Element};
use super::kernels::{FILES, Kind, Unit};
use super::options::{Options, Variant, Variants};
use super::twin::{Twin, skipped};
use super::twin_tests::{drain, golden, options};
use crate::{Engine, Request, RequestId, Sampling, SamplingKey};
use earnest_models::checkpoint::{Checkpoint, Compute, ElementType, Quant, WeightFormat};

/// A twin that checks for races.
pub(super) fn checked(order: i32) -> Twin {
    let mut twin = Twin::new();
    (twin.races, twin.order) = (true, order);
    twin
}

/// The kernels of planted.cu instead of a unit's.
fn with_planted_kernels(order: i32) -> Twin {
    let mut twin = checked(order);
    let common = FILES.iter().find(|file| file.0 == "common.cuh").unwrap().1;
    let planted = include_str!("../../../../tests/cuda_twin/planted.cu");
    twin.planted = Some(Box::new(move |_| format!("#define ELEMENT 1\n{common}{planted}")));
    twin
}

/// The race that a launch of a planted kernel has.
fn planted(order: i32, name: &str, blocks: usize, broken: i32) -> Option<String> {
    let mut twin = with_planted_kernels(order);
    let unit = twin.load(&Unit::attention(Element::Bf16, 64)).unwrap();
    let kernel = twin.kernel(unit, name, 1024).unwrap();
    let (from, to) = (put(&twin, &[7i32; 256]).unwrap(), put(&twin, &[0i32; 256]).unwrap());
    // SAFETY: the kernel's parameters, of the sizes that it reads and writes.
    let done = unsafe { twin.launch(kernel, [blocks, 1, 1], 64, 1024, &[from.into(), to.into(), broken.into()]) };
    race_of(done)
}

pub(super) fn race_of<T>(done: Result<T, DeviceError>) -> Option<String> {
    match done {
        Ok(_) => None,
        Err(DeviceError::Call { call: "the race check", why }) => Some(why),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_planted_race_is_found_in_every_order_of_threads() {
    if skipped() {
        return;
    }
    // Kernel, blocks, kind of error, what the message says.
    for (name, blocks, broken, said) in [
        ("planted_warp", 1, 1, "no __syncwarp"),
        ("planted_warp", 1, 2, "no __syncwarp"),
        ("planted_block", 1, 1, "no __syncthreads lies between"),
        ("planted_global", 1, 1, "of argument 1 (memory for a check)"),
        ("planted_reuse", 1, 1, "of the shared variables"),
        ("planted_blocks", 2, 1, "nothing orders the blocks"),
        ("planted_blocks", 2, 2, "nothing orders the blocks"),
        ("planted_sum", 2, 1, "atomically changed"),
        ("planted_count", 1, 1, "atomically"),
        ("planted_flag", 1, 1, "writes byte 0 of the shared variables"),
        ("planted_copy", 1, 1, "a copy may still write"),
        ("planted_copy", 1, 2, "of dynamic shared memory"),
        ("planted_copy", 1, 3, "of dynamic shared memory"),
        ("planted_copy", 1, 4, "of dynamic shared memory"),
        ("planted_copy", 1, 5, "of dynamic shared memory"),
        ("planted_source", 1, 1, "from where"),
    ] {
        for order in 0..3 {
            assert_eq!(planted(order, name, blocks, 0), None, "{name}, order {order}");
            let found = planted(order, name, blocks, broken);
            assert!(
                found.as_ref().is_some_and(|found| found.contains(said) && found.contains(name)),
                "{name}, {broken}, order {order}: {found:?}"
            );
        }
    }
}

#[test]
fn single_kernels_have_no_race() {
    if skipped() {
        return;
    }
    let bf16 = |kind| Case::new(Element::Bf16, kind);
    // Heads of all sizes of a tile, with and without what masks them; the checks of results have all.
    for shape in [0, 2, 5, 8, 11].map(|i| &SHAPES[i]) {
        attention(&mut checked(0), shape, &mut |twin, arrangement| twin.order = arrangement as i32 % 3).unwrap();
    }
    for (order, kind, (n, k), rows) in
        [(0, Kind::Dense, (72, 1280), 130), (1, Kind::Q4K, (72, 1280), 70), (2, Kind::E4m3, (72, 1040), 70)]
    {
        products(&mut checked(order), bf16(kind), (n, k), rows).unwrap();
    }
    library_products(&mut checked(0), bf16(Kind::Q6K), (40, 512), 260).unwrap();
    expert_products(&mut checked(1), bf16(Kind::Q8_0), 12).unwrap();
    let wgmma = |kind| bf16(kind).with(Variant::Wgmma);
    products(&mut checked(0), wgmma(Kind::Dense), (72, 1080), 200).unwrap();
    products(&mut checked(2), wgmma(Kind::E4m3), (72, 1040), 100).unwrap();
    for has_wgmma in [false, true] {
        codes(&mut checked(1), Element::Bf16, has_wgmma).unwrap();
    }
}

/// Answers of requests that share a beginning, greedy and drawn, by an engine that checks for races.
fn answers(checkpoint: &Checkpoint, order: i32, variants: Variants, library: bool) {
    let mut device = checked(order);
    device.library = library;
    let options = Options { variants, separate_norms: order == 2, ..options() };
    let mut cuda = CudaEngine::on(Box::new(device), checkpoint, &options).unwrap();
    let common: Vec<u32> = (0..33).map(|i| 3 + i * 7 % 200).collect();
    for i in 0..3u32 {
        let prompt = [&common[..], &(0..2 + 5 * i).map(|j| 3 + (i * 31 + j * 5) % 200).collect::<Vec<_>>()].concat();
        let drawn = Sampling { temperature: 0.9, ..Sampling::GREEDY };
        let sampling = if i == 1 { drawn } else { Sampling::GREEDY };
        let sampling_key = SamplingKey([i as u8; 32]);
        let request = Request { sampling, sampling_key, ..Request::greedy(RequestId(u64::from(i)), prompt, 4) };
        cuda.submit(request).unwrap();
    }
    assert_eq!(drain(&mut cuda).len(), 3);
}

#[test]
fn whole_decoders_have_no_race() {
    if skipped() {
        return;
    }
    let wgmma = Variants::NONE.with(Variant::Wgmma);
    let of = |dtype| WeightFormat { quant: None, dtype: Some(dtype), ..WeightFormat::default() };
    let (bf16, f32) = (of(ElementType::Bf16), of(ElementType::F32));
    let q8 = WeightFormat { quant: Some(Quant::Q8), dtype: None, ..WeightFormat::default() };
    let fp8 = WeightFormat { compute: Some(Compute::Fp8), ..WeightFormat::default() };
    for (name, format, variants, library) in [
        ("llama", bf16, Variants::NONE, false),
        ("llama", f32, Variants::NONE, true),
        ("llama", q8, Variants::NONE, true),
        ("gpt-oss-mxfp4", bf16, Variants::NONE, true),
        ("gpt-oss-mxfp4", f32, Variants::NONE, true),
        ("qwen3-moe", bf16, wgmma, false),
        ("qwen3-moe", fp8, wgmma, false),
        ("phi2", bf16, Variants::NONE, false),
        ("gemma2", bf16, Variants::NONE, true),
    ] {
        let mut checkpoint = golden(name);
        checkpoint.set_weight_format(format);
        answers(&checkpoint, 1, variants, library);
    }
    // Norms apart from the sums before them, with biases and with norms after the blocks.
    for name in ["phi2", "gemma2"] {
        let mut checkpoint = golden(name);
        checkpoint.set_weight_format(bf16);
        answers(&checkpoint, 2, Variants::NONE, true);
    }
}
