//! The kernels with one barrier left out, on their twin: the race check finds each, in every order of threads, whether or not the result is right.

use std::collections::HashSet;

use super::checks::{Case, SHAPES, attention, products, put};
use super::device::{Address, Argument, Device, DeviceError, Element};
use super::kernels::{FILES, Kind, Unit};
use super::options::Variant;
use super::sources::Sources;
use super::twin::{Twin, skipped};
use super::twin_races::{checked, race_of};

/// Variables of a planted source: the number of the call that is left out, and for each whether it was reached.
const LEFT_OUT: &str = "earnest_left_out";
const REACHED: &str = "earnest_reached";

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
    let variable = "__attribute__((visibility(\"default\"))) int";
    let mut changed = format!(
        "extern \"C\" {{ {variable} {LEFT_OUT} = -1; {variable} {REACHED}[{}]; }}\n\
         #define CALL(n, call) ({REACHED}[n] = 1, {LEFT_OUT} == (n) ? (void)0 : call)\n",
        calls(source).len() + 1,
    );
    let mut done = 0;
    for (number, (begin, end)) in calls(source).into_iter().enumerate() {
        changed += &format!("{}CALL({number}, {})", &source[done..begin], &source[begin..end]);
        done = end;
    }
    changed + &source[done..]
}

/// The kernel that a place of a source is in; none in a function of several.
fn kernel_of(source: &str, at: usize) -> Option<&str> {
    let line = source[..at].lines().rfind(|line| line.starts_with("KERNEL_OF(") || line.starts_with("DEVICE "))?;
    Some(line.strip_prefix("KERNEL_OF(")?.rsplit(", ").next()?.trim_end_matches(')'))
}

/// The file that a place of a unit's source is from, and its place there.
fn place(unit: &Unit, source: &str, at: usize) -> (&'static str, usize) {
    let mut begin = source.len() - unit.texts().iter().map(|text| text.len()).sum::<usize>();
    for text in unit.texts() {
        if at < begin + text.len() {
            return (FILES.iter().find(|file| file.1 == *text).unwrap().0, at - begin);
        }
        begin += text.len();
    }
    unreachable!("a call is in a file")
}

/// Calls that were left out, by file and place.
type Places = HashSet<(&'static str, usize)>;

/// Leaves out every barrier and every wait that `run` reaches in a unit, one at a time. A race has to be found, except by those whose line or the
/// one before has a text of `unneeded`.
fn leave_out_each(
    unit: &Unit,
    unneeded: &[&str],
    places: &mut Places,
    run: &dyn Fn(&mut Twin) -> Result<(), DeviceError>,
) {
    let source = unit.source(&Sources::embedded());
    let calls = calls(&source);
    let race = |order: i32, number: i32| {
        let mut twin = checked(order);
        twin.planted = Some(Box::new(|source| removable(&source)));
        let loaded = twin.load(unit).unwrap();
        // SAFETY: variables of `removable`, which no launch uses now; other tests have other units.
        unsafe { *twin.variable(loaded, LEFT_OUT) = number };
        let found = race_of(run(&mut twin));
        // SAFETY: as above.
        let reached = unsafe { std::slice::from_raw_parts(twin.variable(loaded, REACHED), calls.len()).to_vec() };
        (found, reached)
    };
    let (found, reached) = race(0, -1);
    assert_eq!(found, None, "{}", unit.name);
    let mut wrong = vec![];
    for (number, &(begin, _)) in calls.iter().enumerate().filter(|(number, _)| reached[*number] != 0) {
        places.insert(place(unit, &source, begin));
        let lines: Vec<&str> = source[..source[begin..].find('\n').map_or(begin, |end| begin + end)].lines().collect();
        let lines = lines[lines.len() - 2..].join("\n");
        let needed = !unneeded.iter().any(|text| lines.contains(text));
        for order in 0..if needed { 3 } else { 1 } {
            let (found, _) = race(order, number as i32);
            let kernel = kernel_of(&source, begin);
            let named = |found: &String| kernel.is_none_or(|kernel| found.starts_with(&format!("{kernel}: ")));
            if found.as_ref().is_some_and(named) != needed {
                wrong.push(format!("order {order}, {kernel:?} without\n{lines}\n{found:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", unit.name, wrong.join("\n"));
}

/// Every barrier and wait of these files was left out.
fn assert_complete(files: &[&str], places: &Places) {
    for file in FILES.iter().filter(|file| files.contains(&file.0)) {
        let missing = |begin: usize| !places.contains(&(file.0, begin));
        let missing: Vec<usize> =
            calls(file.1).into_iter().map(|call| call.0).filter(|&begin| missing(begin)).collect();
        assert!(missing.is_empty(), "{}: no test leaves out what is at {missing:?}", file.0);
    }
}

/// After the loops of products and attention, where every group that is left is empty.
const LAST_WAIT: &str = "wait_copies<0>()";

#[test]
fn attention_misses_every_barrier() {
    if skipped() {
        return;
    }
    let mut places = Places::new();
    let run = |twin: &mut Twin| attention(twin, &SHAPES[0], &mut |_, _| {}).map(|_| ());
    leave_out_each(&Unit::attention(Element::Bf16, 64), &[LAST_WAIT], &mut places, &run);
    // A part has several barriers, of which each of these stands between others that order the same.
    let unneeded = ["x = warp_max(x);", "slopes[h] : 0.0f;", "            }\n            __syncthreads();"];
    leave_out_each(&Unit::attention(Element::F32, 64), &unneeded, &mut places, &plain_attention);
    assert_complete(&["common.cuh", "attention.cu"], &places);
}

#[test]
fn products_miss_every_barrier() {
    if skipped() {
        return;
    }
    let mut places = Places::new();
    let few = |case| move |twin: &mut Twin| products(twin, case, (24, 1280), 20).map(|_| ());
    for kind in [Kind::Dense, Kind::Q8_0] {
        let run = few(Case::new(Element::Bf16, kind));
        leave_out_each(&Unit::product(Element::Bf16, kind), &[LAST_WAIT], &mut places, &run);
    }
    let run = few(Case::new(Element::Bf16, Kind::Dense).with(Variant::Wgmma));
    leave_out_each(&Unit::wgmma(Element::Bf16, Kind::Dense), &[LAST_WAIT], &mut places, &run);
    leave_out_each(&Unit::product(Element::F32, Kind::Dense), &[], &mut places, &plain_product);
    assert_complete(&["product.cu", "wgmma.cu"], &places);
}

#[test]
fn layers_miss_every_barrier() {
    if skipped() {
        return;
    }
    let mut places = Places::new();
    // Each of these comes between accesses that another barrier orders already.
    let unneeded = [
        "// A thread reads and writes its own",
        "block_sum_double(double x",
        "mass_from(const",
        "mine += weight(c, i) == w",
    ];
    leave_out_each(&Unit::layers(Element::F32), &unneeded, &mut places, &layers);
    assert_complete(&["layers.cu", "experts.cu", "choice.cu"], &places);
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

/// A token's four heads of one key over 200 positions: the output and a state.
fn plain_attention(twin: &mut Twin) -> Result<(), DeviceError> {
    let unit = twin.load(&Unit::attention(Element::F32, 64))?;
    let (dim, group, none) = (64usize, 4i32, Argument::from(0u64));
    let items = put(twin, &[[0, 0, group, 0, 0, 2, 200, -1], [0, 0, group, 0, 0, 2, 200, 0]].concat())?;
    let [keys, values] = [floats(twin, 7 * 32 * dim)?, floats(twin, 7 * 32 * dim)?];
    let [queries, out, state] = [floats(twin, 4 * dim)?, floats(twin, 4 * dim)?, floats(twin, 4 * (dim + 2))?];
    let (tables, positions) = (put(twin, &[0, 1, 2, 3, 4, 5, 6])?, put(twin, &[199])?);
    let addresses = [queries, keys, values, items, tables, positions].map(Argument::from);
    let rest = [none, none, out.into(), state.into(), (dim as i32).into(), group.into(), 1i32.into(), 0.1f32.into()];
    let arguments = [&addresses[..], &rest, &[0f32.into(), 0i32.into(), 0i32.into()]].concat();
    launch(twin, unit, "attend_plain", [2, 1, 1], (128, 0), &arguments)
}

fn plain_product(twin: &mut Twin) -> Result<(), DeviceError> {
    let unit = twin.load(&Unit::product(Element::F32, Kind::Dense))?;
    let (m, n, k) = (40, 40, 72);
    let [w, x, y] = [floats(twin, n * k)?, floats(twin, m * k)?, floats(twin, m * n)?];
    let [m, n, k] = [m, n, k].map(|size| Argument::from(size as i32));
    let arguments = [w.into(), x.into(), y.into(), m, n, k, n, 0i32.into()];
    launch(twin, unit, "product_plain", [2, 2, 1], (256, 0), &arguments)
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
    let all = [
        (0, 1.0, 0.0, 5),
        (0, 1.0, 0.1, -1),
        (40, 0.9, 0.0, 7),
        (0, 0.9, 0.5, -1),
        (40, 1.0, 0.0, -1),
        (0, 1.0, 0.0, -1),
    ];
    for (top_k, top_p, min_p, target) in all {
        wishes.extend(0.4f64.to_ne_bytes());
        wishes.extend(0.8f32.to_ne_bytes());
        wishes.extend(i32::to_ne_bytes(target));
        wishes.extend(i32::to_ne_bytes(top_k));
        wishes.extend([top_p, min_p, 0f32].iter().flat_map(|x| x.to_ne_bytes()));
    }
    let vocab = 1100;
    let mut rows = vec![0.5f32; all.len() * vocab];
    rows.iter_mut().enumerate().for_each(|(i, x)| *x += (i * 37 % 101) as f32 / 50.0);
    // Two threads find that the last row is damaged, and say so in the same way.
    let last = rows.len() - vocab;
    (rows[last + 700], rows[last + 900]) = (f32::NAN, f32::NAN);
    let (logits, wishes) = (put(twin, &rows)?, put(twin, &wishes)?);
    let (chosen, sampled) = (put(twin, &vec![0i32; 4 * all.len()])?, put(twin, &vec![0i32; all.len()])?);
    let arguments = [logits.into(), (vocab as i32).into(), wishes.into(), chosen.into(), sampled.into()];
    launch(twin, unit, "choose", [all.len(), 1, 1], (512, 0), &arguments)
}
