//! Bytes and operations of a launch, computed from the kernel's arguments.
//!
//! Bytes are those that have to be read and written if nothing is read twice; attention counts keys and values once for each of its items, which may
//! find those of another in the cache. An operation is a multiplication or an addition.

use super::device::{Address, Argument, DenseProduct, Element, Out};
use super::kernels::{Kind, PART, Unit};

/// Bytes moved and operations done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) bytes: u64,
    pub(crate) operations: u64,
}

/// Reads integers that the host has sent for this step to an address in the device's memory; none if they are not known.
pub(crate) type Sent<'a> = &'a dyn Fn(Address, usize) -> Option<Vec<i32>>;

/// Returns a launch's shape, for people, and its work; no work for kernels whose arguments do not tell it.
pub(crate) fn of_launch(
    unit: &Unit,
    kernel: &str,
    grid: [usize; 3],
    arguments: &[Argument],
    sent: Sent<'_>,
) -> (String, Option<Work>) {
    let number = |i: usize| arguments.get(i).map_or(0, |a| u64::from(a.0 as u32));
    let size = |i: usize| number(i) as usize;
    let element = unit.element();
    let e = element.size_bytes();
    let rows = grid[0] as u64;
    let moved = |bytes: u64| Some(Work { bytes, operations: 0 });
    let by_rows = |width: u64, what: &str, bytes: u64| (format!("{} of {width}{what}", count(grid[0])), moved(bytes));
    let is_given = |i: usize| arguments.get(i).is_some_and(|address| address.0 != 0);
    let gated =
        |width: u64, gated: u64| by_rows(width, if gated > 0 { ", gated" } else { "" }, rows * width * e * (2 + gated));
    match kernel {
        "embed" => {
            let (kind, hidden) = (Kind::of_number(size(1) as u32), number(2));
            let row = kind.map_or(0, |kind| kind.row_bytes(hidden as usize, element));
            by_rows(hidden, "", rows * (row + 4 * hidden))
        }
        "norm" => by_rows(number(6), "", rows * number(6) * (4 + e)),
        "join" => by_rows(number(4), "", rows * number(4) * 12),
        "join_norm" => {
            let (branch, changed) = (u64::from(is_given(0)), u64::from(is_given(0) || is_given(1)));
            let what = if branch > 0 { ", with a branch" } else { "" };
            by_rows(number(8), what, rows * number(8) * (4 + e + 4 * branch + 4 * changed))
        }
        "add_bias" => by_rows(number(1), "", rows * number(1) * 8),
        "width_factors" => by_rows(number(2) + number(3), "", rows * (number(2) + number(3)) * e),
        "place" => {
            let width = (number(16) + 2 * number(17)) * number(18);
            by_rows(width, "", 2 * rows * width * e)
        }
        "activate" => gated(number(6), number(5)),
        "activate_experts" => gated(number(9), number(8)),
        "route" => by_rows(number(3), "", rows * (4 * number(3) + 8 * number(4))),
        "sort_pairs" => (format!("{} pairs, {rows} experts", count(size(1))), moved(12 * number(1) + 4 * (rows + 1))),
        "expert_tiles" => {
            let (experts, most) = (number(1), number(3));
            (
                format!("{} tiles of {}, {experts} experts", count(size(3)), size(2)),
                moved(4 * (experts + 1) + 12 * most),
            )
        }
        "combine" => {
            let (kept, hidden, add) = (number(5), number(6), number(7));
            let work = Work { bytes: 4 * rows * hidden * (kept + 1 + add), operations: 2 * rows * hidden * kept };
            (format!("{} of {hidden}, {kept} experts each", count(grid[0])), Some(work))
        }
        "cap_logits" => by_rows(number(1), "", rows * number(1) * 8),
        "choose" => by_rows(number(1), "", rows * number(1) * 4),
        "attend_tall" | "attend_wide" | "attend_plain" => {
            let [dim, group, kv_heads, window, chunk] = [10, 11, 12, 15, 16].map(number);
            // A chunk is seen from its beginning on, so at most as a window of its size.
            let window = if window > 0 && chunk > 0 { window.min(chunk) } else { window.max(chunk) };
            let items = arguments.get(3).and_then(|at| sent(at.0, 8 * grid[0]));
            let work = items.map(|items| attention(&items, element, [dim, group.max(1), kv_heads, window]));
            (format!("{} items, {kv_heads} key heads of {dim}, {group} each", count(grid[0])), work)
        }
        "attend_merge" => {
            let [dim, heads] = [5, 6].map(number);
            let merges = arguments.get(1).and_then(|at| sent(at.0, 3 * grid[0]));
            // Merges of nothing pad a recorded launch.
            let work = merges.map(|merges| {
                let slots = || merges.chunks(3).map(|merge| merge[2] as u64).filter(|slots| *slots > 0);
                let (read, written) = (slots().sum::<u64>() * (dim + 2) * 4, slots().count() as u64 * dim * e);
                Work { bytes: heads * (read + written), operations: 0 }
            });
            (format!("{} tokens, {heads} heads of {dim}", count(grid[0])), work)
        }
        "product_plain" => product(size(3), size(4), size(5), Kind::Dense, element, out_of(number(7))),
        "add_segments" => {
            let (segments, m, n) = (number(1), number(2), number(3));
            let work = Work { bytes: m * n * (4 * segments + 4), operations: segments * m * n };
            (format!("m {}, n {n}, {segments} segments", count(m as usize)), Some(work))
        }
        "dequantise" | "dequantise_8" => {
            let k = size(1);
            let bytes = rows * (unit.kind().row_bytes(k, element) + k as u64 * e);
            (format!("n {rows}, k {k}, {}", unit.kind().name(element)), moved(bytes))
        }
        "quantise_rows" => by_rows(number(1), "", rows * (number(1) * (e + 1) + 4)),
        // The tiles of product.cu and wgmma.cu: `product_8` to `product_128`.
        name if is_tile(name, "product_") || is_tile(name, "wgmma_") => {
            product(size(4), size(5), size(6), unit.kind(), element, out_of(number(8)))
        }
        // How many experts are read is known to the device only.
        name if is_tile(name, "experts_") || is_tile(name, "wgmma_experts_") => {
            (product(size(8), size(9), size(10), unit.kind(), element, out_of(number(12))).0, None)
        }
        "experts_plain" => (format!("{} tiles, n {}, k {}, f32", count(grid[0]), size(7), size(8)), None),
        _ => (format!("grid of {} x {} x {}", count(grid[0]), grid[1], grid[2]), None),
    }
}

/// True for a kernel of a tile: the prefix and a number of rows.
fn is_tile(kernel: &str, prefix: &str) -> bool {
    kernel.strip_prefix(prefix).is_some_and(|rows| rows.parse::<u32>().is_ok())
}

/// Returns the shape and the work of a step that was recorded: all its launches at once.
pub(crate) fn of_recorded_step(tokens: usize) -> (String, Option<Work>) {
    (format!("{} tokens", count(tokens)), None)
}

/// Returns the shape and the work of a product by a library.
pub(crate) fn of_dense_product(p: &DenseProduct) -> (String, Option<Work>) {
    product(p.m, p.n, p.k, Kind::Dense, p.element, p.out)
}

fn product(m: usize, n: usize, k: usize, kind: Kind, element: Element, out: Out) -> (String, Option<Work>) {
    let (rows, columns) = (m as u64, n as u64);
    let (stored, how) = match out {
        Out::Elements => (element.size_bytes(), ""),
        Out::Floats => (4, ", to f32"),
        Out::Add => (8, ", added"),
    };
    let weights = columns * kind.row_bytes(k, element);
    // Activations beside 8-bit floats are such themselves, with a scale for each row.
    let activations = if kind == Kind::E4m3 { k as u64 + 4 } else { k as u64 * element.size_bytes() };
    let bytes = weights + rows * activations + rows * columns * stored;
    let work = Work { bytes, operations: 2 * rows * columns * k as u64 };
    (format!("m {}, n {n}, k {k}, {}{how}", count(m), kind.name(element)), Some(work))
}

/// OUT_* of the kernels.
fn out_of(number: u64) -> Out {
    match number {
        0 => Out::Elements,
        1 => Out::Floats,
        _ => Out::Add,
    }
}

/// Work of attention's items (eight numbers each, as `attention_plan` makes them). A window's items are counted as if each of their rows saw
/// the window of the first.
fn attention(items: &[i32], element: Element, [dim, group, kv_heads, window]: [u64; 4]) -> Work {
    let e = element.size_bytes();
    let mut work = Work::default();
    for item in items.chunks_exact(8) {
        let [rows, begin, end, length] = [2, 4, 5, 6].map(|i| item[i].max(0) as u64);
        let part = PART as u64;
        // An item without rows pads a recorded launch.
        if rows == 0 {
            continue;
        }
        let mut positions = (end * part).min(length).saturating_sub(begin * part);
        if window > 0 {
            positions = positions.min(window + rows / group + part);
        }
        let state = 4 * (dim + 2);
        // Below -1 the item goes on from a state.
        let (read, written) = match item[7] {
            0.. => (0, state),
            -1 => (0, dim * e),
            _ => (state, dim * e),
        };
        work.bytes += kv_heads * (2 * positions * dim * e + rows * (dim * e + read + written));
        work.operations += kv_heads * rows * positions * dim * 4;
    }
    work
}

/// A number as shapes have it: exact up to 16 and where it is 1,024 or more and a multiple of 64 (a matrix, a full step), else the
/// next power of two, so that steps of slightly different sizes share a row.
fn count(n: usize) -> String {
    if n <= 16 || n.is_power_of_two() || (n >= 1024 && n.is_multiple_of(64)) {
        n.to_string()
    } else {
        format!("up to {}", n.next_power_of_two())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::kernels::FILES;

    #[test]
    fn products_move_each_operand_once() {
        let arguments: Vec<Argument> =
            [0u64; 4].map(Argument::from).into_iter().chain([2i32, 256, 512, 256, 2].map(Argument::from)).collect();
        let unit = Unit::product(Element::Bf16, Kind::Q4K);
        let (shape, work) = of_launch(&unit, "product_8", [1, 4, 1], &arguments, &|_, _| None);
        assert_eq!(shape, "m 2, n 256, k 512, q4k, added");
        let bytes = 256 * 512 / 256 * 144 + 2 * 512 * 2 + 2 * 256 * 8;
        assert_eq!(work, Some(Work { bytes, operations: 2 * 2 * 256 * 512 }));
    }

    #[test]
    fn attention_is_counted_by_the_items_that_were_sent() {
        // Three items of 8 rows: positions 128 to 300 into a state, 0 to 100 into the output, 128 to 200 on from a state; one that pads.
        let items = [
            [0, 0, 8, 0, 1, 3, 300, 5],
            [1, 0, 8, 0, 0, 1, 100, -1],
            [2, 0, 8, 0, 1, 2, 200, -7],
            [0, 0, 0, 0, 0, 0, 0, 0],
        ];
        let mut arguments = [Argument(0); 17];
        (arguments[3], arguments[10], arguments[11], arguments[12]) = (Argument(4096), 64.into(), 4.into(), 2.into());
        let unit = Unit::attention(Element::Bf16, 64);
        let sent = |at: Address, n: usize| (at == 4096 && n == 32).then(|| items.as_flattened().to_vec());
        for kernel in ["attend_wide", "attend_tall"] {
            let work = of_launch(&unit, kernel, [4, 2, 1], &arguments, &sent).1.unwrap();
            assert_eq!(work.operations, 2 * 8 * (172 + 100 + 72) * 64 * 4);
            let rows = 8 * (64 * 2 + 66 * 4) + 8 * (64 * 2 + 64 * 2) + 8 * (64 * 2 + 66 * 4 + 64 * 2);
            assert_eq!(work.bytes, 2 * (2 * (172 + 100 + 72) * 64 * 2 + rows));
            assert_eq!(of_launch(&unit, kernel, [4, 2, 1], &arguments, &|_, _| None).1, None);
        }
    }

    /// Names of a kernel's parameters in the sources.
    fn parameters(kernel: &str) -> Vec<String> {
        // Macros continue their lines.
        let text: String = FILES.iter().map(|file| file.1.replace('\\', " ")).collect();
        let (begin, end) = ("KERNEL_OF(", format!(", {kernel})"));
        let header = text.lines().rfind(|line| line.trim_start().starts_with(begin) && line.trim_end().ends_with(&end));
        let header = header.unwrap_or_else(|| panic!("no kernel {kernel}"));
        let after = &text[text.rfind(header).unwrap() + header.len()..];
        let shared = after.trim_start().starts_with("ARGUMENTS").then(|| text.find("#define ARGUMENTS").unwrap());
        let list = shared.map_or(after, |at| &text[at..]);
        let list = &list[list.find('(').unwrap() + 1..list.find(')').unwrap()];
        // Parameters that only some units have come last.
        let list = list.trim_end().trim_end_matches(" X_SCALES");
        let name = |parameter: &str| parameter.trim().rsplit([' ', '*']).next().unwrap_or_default().to_owned();
        list.split(',').map(name).collect()
    }

    #[test]
    fn arguments_are_where_the_sources_have_them() {
        for (kernel, expected) in [
            ("embed", &[(1, "kind"), (2, "hidden")][..]),
            ("norm", &[(6, "hidden")]),
            ("join", &[(4, "hidden")]),
            ("join_norm", &[(0, "branch"), (1, "bias"), (8, "hidden")]),
            ("add_bias", &[(1, "width")]),
            ("width_factors", &[(2, "queries"), (3, "keys")]),
            ("place", &[(16, "heads"), (17, "kv_heads"), (18, "dim")]),
            ("activate", &[(5, "gated"), (6, "width")]),
            ("activate_experts", &[(8, "gated"), (9, "width")]),
            ("route", &[(3, "count"), (4, "kept")]),
            ("sort_pairs", &[(1, "pairs")]),
            ("expert_tiles", &[(1, "experts"), (2, "rows"), (3, "most")]),
            ("combine", &[(5, "kept"), (6, "hidden"), (7, "add")]),
            ("cap_logits", &[(1, "vocab")]),
            ("choose", &[(1, "vocab")]),
            (
                "attend_tall",
                &[(3, "items"), (10, "dim"), (11, "group"), (12, "kv_heads"), (15, "window"), (16, "chunk")],
            ),
            (
                "attend_plain",
                &[(3, "items"), (10, "dim"), (11, "group"), (12, "kv_heads"), (15, "window"), (16, "chunk")],
            ),
            ("attend_merge", &[(1, "merges"), (5, "dim"), (6, "heads")]),
            ("product_plain", &[(3, "m"), (4, "n"), (5, "k"), (7, "out")]),
            ("experts_plain", &[(7, "n"), (8, "k"), (10, "out")]),
            // The tiles of product.cu, by their macro.
            ("name", &[(4, "m"), (5, "n"), (6, "k"), (8, "out")]),
            ("experts_##m_tile", &[(8, "m"), (9, "n"), (10, "k"), (12, "out")]),
            ("wgmma_##m_tile", &[(4, "m"), (5, "n"), (6, "k"), (8, "out")]),
            ("wgmma_experts_##m_tile", &[(8, "m"), (9, "n"), (10, "k"), (12, "out")]),
            ("add_segments", &[(1, "segments"), (2, "m"), (3, "n")]),
            ("dequantise", &[(1, "k")]),
            ("quantise_rows", &[(1, "k")]),
            ("dequantise_8", &[(1, "k")]),
        ] {
            let found = parameters(kernel);
            for &(index, name) in expected {
                assert_eq!(found.get(index).map(String::as_str), Some(name), "{kernel}: {found:?}");
            }
        }
    }

    #[test]
    fn experts_have_a_shape_and_no_work_and_joined_norms_count_what_they_are_given() {
        let unit = Unit::product(Element::Bf16, Kind::Q4K).of_experts();
        let mut arguments = [Argument(0); 13];
        (arguments[8], arguments[9], arguments[10]) = (16.into(), 256.into(), 512.into());
        let described = of_launch(&unit, "experts_16", [20, 4, 1], &arguments, &|_, _| None);
        assert_eq!(described, ("m 16, n 256, k 512, q4k".to_owned(), None));
        let unit = Unit::layers(Element::Bf16);
        let bytes = |branch: u64, bias: u64| {
            let mut arguments = [Argument(0); 11];
            (arguments[0], arguments[1], arguments[8]) = (branch.into(), bias.into(), 64.into());
            of_launch(&unit, "join_norm", [3, 1, 1], &arguments, &|_, _| None).1.unwrap().bytes
        };
        assert_eq!([bytes(0, 0), bytes(0, 1), bytes(1, 0)], [3 * 64 * 6, 3 * 64 * 10, 3 * 64 * 14]);
    }

    #[test]
    fn steps_of_similar_sizes_share_a_row() {
        assert_eq!([7, 100, 128, 300, 4096, 14336].map(count), ["7", "up to 128", "128", "up to 512", "4096", "14336"]);
    }
}
