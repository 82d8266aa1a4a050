//! The kernels with one barrier left out, on their twin: the race check finds each, in every order of threads, whether or not the result is right.

use super::checks::{Case, SHAPES, attention, products, put};
use super::device::{Address, Argument, Device, DeviceError, Element};
use super::kernels::{Kind, Unit};
use super::options::Variant;
use super::sources::Sources;
use super::twin::{Twin, skipped};
use super::twin_races::{checked, race_of};

/// Variable of a planted source: the number of the call that is left out.
const LEFT_OUT: &str = "earnest_left_out";

/// What a barrier or a wait for copies begins with, in the kernels' sources.
const CALLS: [&str; 2] = ["__syncthreads(", "wait_copies<"];

/// The places of such calls in a source: where each begins and ends.
fn calls(source: &str) -> Vec<(usize, usize)> {
    let begins = CALLS.iter().flat_map(|call| source.match_indices(call));
    let mut all: Vec<(usize, usize)> =
        begins.map(|(at, _)| (at, at + source[at..].find(')').expect("a call ends") + 1)).collect();
    all.sort_unstable();
    all
}

/// A source whose calls of that kind can be left out one by one.
fn removable(source: &str) -> String {
    let mut changed = format!(
        "extern \"C\" {{ __attribute__((visibility(\"default\"))) int {LEFT_OUT} = -1; }}\n\
         #define UNLESS_LEFT_OUT(n, call) ({LEFT_OUT} == (n) ? (void)0 : call)\n"
    );
    let mut done = 0;
    for (number, (begin, end)) in calls(source).into_iter().enumerate() {
        changed += &format!("{}UNLESS_LEFT_OUT({number}, {})", &source[done..begin], &source[begin..end]);
        done = end;
    }
    changed + &source[done..]
}

/// The kernel that a place of a source is in; none in a function of several.
fn kernel_of(source: &str, at: usize) -> Option<&str> {
    let line = source[..at].lines().rfind(|line| line.starts_with("KERNEL_OF(") || line.starts_with("DEVICE "))?;
    Some(line.strip_prefix("KERNEL_OF(")?.rsplit(", ").next()?.trim_end_matches(')'))
}

/// Leaves out every barrier and every wait of a unit's source, one at a time. A race has to be found, except by those whose line or the one before
/// has a text of `unneeded`.
fn assert_every_barrier_is_missed(unit: &Unit, unneeded: &[&str], run: &dyn Fn(&mut Twin) -> Result<(), DeviceError>) {
    let source = unit.source(&Sources::embedded());
    let race = |order: i32, number: i32| {
        let mut twin = checked(order);
        twin.planted = Some(Box::new(|source| removable(&source)));
        let loaded = twin.load(unit).unwrap();
        twin.set(loaded, LEFT_OUT, number);
        let found = race_of(run(&mut twin));
        twin.set(loaded, LEFT_OUT, -1);
        found
    };
    assert_eq!(race(0, -1), None, "{}", unit.name);
    let mut wrong = vec![];
    for (number, (begin, _)) in calls(&source).into_iter().enumerate() {
        let lines: Vec<&str> = source[..source[begin..].find('\n').map_or(begin, |end| begin + end)].lines().collect();
        let lines = lines[lines.len() - 2..].join("\n");
        let needed = !unneeded.iter().any(|text| lines.contains(text));
        for order in 0..if needed { 3 } else { 1 } {
            let found = race(order, number as i32);
            let kernel = kernel_of(&source, begin);
            let named = |found: &String| kernel.is_none_or(|kernel| found.starts_with(&format!("{kernel}: ")));
            eprintln!("{}, order {order}, {kernel:?} without\n{lines}\n  {found:?}", unit.name);
            if found.as_ref().is_some_and(named) != needed {
                wrong.push(format!("order {order}: {kernel:?} without\n{lines}\n{found:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", unit.name, wrong.join("\n"));
}

/// After the loops of products and attention, where every group that is left is empty.
const LAST_WAIT: &str = "wait_copies<0>()";

#[test]
fn attention_misses_every_barrier() {
    if skipped() {
        return;
    }
    let run = |twin: &mut Twin| attention(twin, &SHAPES[0], &mut |_, _| {}).map(|_| ());
    assert_every_barrier_is_missed(&Unit::attention(Element::Bf16, 64), &[LAST_WAIT], &run);
}

#[test]
fn products_miss_every_barrier() {
    if skipped() {
        return;
    }
    let few = |case| move |twin: &mut Twin| products(twin, case, (24, 1280), 20).map(|_| ());
    for kind in [Kind::Dense, Kind::Q8_0] {
        let run = few(Case::new(Element::Bf16, kind));
        assert_every_barrier_is_missed(&Unit::product(Element::Bf16, kind), &[LAST_WAIT], &run);
    }
    let run = few(Case::new(Element::Bf16, Kind::Dense).with(Variant::Wgmma));
    assert_every_barrier_is_missed(&Unit::wgmma(Element::Bf16, Kind::Dense), &[LAST_WAIT], &run);
}

#[test]
fn layers_miss_every_barrier() {
    if skipped() {
        return;
    }
    assert_every_barrier_is_missed(&Unit::layers(Element::F32), &[], &layers);
}

fn floats(twin: &Twin, n: usize) -> Result<Address, DeviceError> {
    let list: Vec<f32> = (0..n).map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0).collect();
    put(twin, &list)
}

fn launch(
    twin: &mut Twin,
    unit: usize,
    name: &str,
    grid: [usize; 3],
    (block, shared): (u32, u32),
    arguments: &[Argument],
) -> Result<(), DeviceError> {
    let kernel = twin.kernel(unit, name, shared)?;
    // SAFETY: the kernels' parameters, with memory for more than they write.
    unsafe { twin.launch(kernel, grid, block, shared, arguments) }
}

/// Every kernel of the unit that has a barrier.
fn layers(twin: &mut Twin) -> Result<(), DeviceError> {
    let unit = twin.load(&Unit::layers(Element::F32))?;
    let (rows, hidden, none) = (2usize, 520usize, Argument::from(0u64));
    let [x, y, h] = [floats(twin, rows * hidden)?, floats(twin, rows * hidden)?, floats(twin, rows * hidden)?];
    let scale: Argument = floats(twin, hidden)?.into();
    let (width, eps) = (Argument::from(hidden as i32), Argument::from(1e-5f32));
    let grid = [rows, 1, 1];
    launch(twin, unit, "norm", grid, (256, 0), &[x.into(), none, scale, none, 1i32.into(), eps, width, h.into()])?;
    launch(twin, unit, "join", grid, (256, 0), &[y.into(), scale, eps, 1f32.into(), width, x.into()])?;
    for (branch, branch_scale, bias) in [(y.into(), scale, scale), (y.into(), none, none), (none, none, scale)] {
        let (by, centred) = (1f32.into(), 1i32.into());
        let arguments = [branch, bias, branch_scale, by, scale, scale, centred, eps, width, x.into(), h.into()];
        launch(twin, unit, "join_norm", grid, (256, 4 * hidden as u32), &arguments)?;
    }
    let factors = floats(twin, 2 * rows)?;
    let arguments = [x.into(), none, 320i32.into(), 100i32.into(), eps, factors.into()];
    launch(twin, unit, "width_factors", [rows, 2, 1], (256, 0), &arguments)?;
    mixture(twin, unit)?;
    choose(twin, unit)
}

fn mixture(twin: &mut Twin, unit: usize) -> Result<(), DeviceError> {
    let (tokens, experts, kept) = (100usize, 64usize, 4usize);
    let pairs = tokens * kept;
    // Without a barrier rows are computed from what was there before, so there is room for more than there are.
    let ints = |twin: &Twin, n: usize| put(twin, &vec![0i32; 8 * n]);
    let [chosen, order, places] = [ints(twin, pairs)?, ints(twin, pairs)?, ints(twin, pairs)?];
    let (starts, tiles) = (ints(twin, experts + 1)?, ints(twin, 3 * pairs)?);
    let (logits, bias) = (floats(twin, tokens * experts)?, floats(twin, experts)?);
    let weights = floats(twin, pairs)?;
    let arguments = [
        logits.into(),
        bias.into(),
        bias.into(),
        (experts as i32).into(),
        (kept as i32).into(),
        // Sigmoids, normalised, the best 2 of 4 groups.
        1i32.into(),
        1i32.into(),
        4i32.into(),
        2i32.into(),
        2.5f32.into(),
        chosen.into(),
        weights.into(),
    ];
    launch(twin, unit, "route", [tokens, 1, 1], (32, 0), &arguments)?;
    let arguments = [chosen.into(), (pairs as i32).into(), starts.into(), order.into(), places.into()];
    launch(twin, unit, "sort_pairs", [experts, 1, 1], (256, 0), &arguments)?;
    let arguments = [starts.into(), (experts as i32).into(), 8i32.into(), (pairs as i32).into(), tiles.into()];
    launch(twin, unit, "expert_tiles", [1, 1, 1], (256, 0), &arguments)
}

/// Draws with and without each filter, with a token whose log-probability is wanted and without.
fn choose(twin: &mut Twin, unit: usize) -> Result<(), DeviceError> {
    let mut wishes: Vec<u8> = vec![];
    let all = [(0, 1.0, 0.0, 5), (0, 1.0, 0.1, -1), (40, 0.9, 0.0, 7), (0, 0.9, 0.5, -1), (40, 1.0, 0.0, -1)];
    for (top_k, top_p, min_p, target) in all {
        wishes.extend(0.4f64.to_ne_bytes());
        wishes.extend(0.8f32.to_ne_bytes());
        wishes.extend(i32::to_ne_bytes(target));
        wishes.extend(i32::to_ne_bytes(top_k));
        wishes.extend([top_p, min_p, 0f32].iter().flat_map(|x| x.to_ne_bytes()));
    }
    let vocab = 1100;
    let (logits, wishes) = (floats(twin, all.len() * vocab)?, put(twin, &wishes)?);
    let (chosen, sampled) = (put(twin, &vec![0i32; 4 * all.len()])?, put(twin, &vec![0i32; all.len()])?);
    let arguments = [logits.into(), (vocab as i32).into(), wishes.into(), chosen.into(), sampled.into()];
    launch(twin, unit, "choose", [all.len(), 1, 1], (512, 0), &arguments)
}
