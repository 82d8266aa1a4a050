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
    match kernel {
        "embed" => {
            let (kind, hidden) = (Kind::of_number(size(1) as u32), number(2));
            let row = kind.map_or(0, |kind| kind.row_bytes(hidden as usize, element));
            by_rows(hidden, "", rows * (row + 4 * hidden))
        }
        "norm" => by_rows(number(5), "", rows * number(5) * (4 + e)),
        "norm_add" => by_rows(number(3), "", rows * number(3) * 12),
        "add_bias" => by_rows(number(1), "", rows * number(1) * 8),
        "place" => {
            let width = (number(13) + 2 * number(14)) * number(15);
            by_rows(width, "", 2 * rows * width * e)
        }
        "activate" => {
            let width = number(4);
            by_rows(width, if number(3) > 0 { ", gated" } else { "" }, rows * width * e * (2 + number(3)))
        }
        "route" => by_rows(number(1), "", rows * number(1) * 8),
        "cap_logits" => by_rows(number(1), "", rows * number(1) * 8),
        "choose" => by_rows(number(1), "", rows * number(1) * 4),
        "attend_tall" | "attend_wide" | "attend_plain" => {
            let [dim, group, kv_heads, window] = [9, 10, 11, 14].map(number);
            let items = arguments.get(3).and_then(|at| sent(at.0, 8 * grid[0]));
            let work = items.map(|items| attention(&items, element, [dim, group.max(1), kv_heads, window]));
            (format!("{} items, {kv_heads} key heads of {dim}, {group} each", count(grid[0])), work)
        }
        "attend_merge" => {
            let [dim, heads] = [4, 5].map(number);
            let merges = arguments.get(1).and_then(|at| sent(at.0, 3 * grid[0]));
            let slots = merges.map(|merges| merges.chunks(3).map(|merge| merge[2] as u64).sum::<u64>());
            let work =
                slots.map(|slots| Work { bytes: heads * (slots * (dim + 2) * 4 + rows * dim * e), operations: 0 });
            (format!("{} tokens, {heads} heads of {dim}", count(grid[0])), work)
        }
        "product_plain" => product(size(3), size(4), size(5), Kind::Dense, element, out_of(number(7))),
        "add_segments" => {
            let (segments, m, n) = (number(1), number(2), number(3));
            let work = Work { bytes: m * n * (4 * segments + 4), operations: segments * m * n };
            (format!("m {}, n {n}, {segments} segments", count(m as usize)), Some(work))
        }
        "dequantise" => {
            let k = size(1);
            let bytes = rows * (unit.kind().row_bytes(k, element) + k as u64 * e);
            (format!("n {rows}, k {k}, {}", unit.kind().name(element)), moved(bytes))
        }
        // The tiles of product.cu: `product_8` to `product_128`.
        name if name.strip_prefix("product_").is_some_and(|rows| rows.parse::<u32>().is_ok()) => {
            product(size(4), size(5), size(6), unit.kind(), element, out_of(number(8)))
        }
        _ => (format!("grid of {} x {} x {}", count(grid[0]), grid[1], grid[2]), None),
    }
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
    let bytes = weights + rows * k as u64 * element.size_bytes() + rows * columns * stored;
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
        let mut positions = (end * part).min(length).saturating_sub(begin * part);
        if window > 0 {
            positions = positions.min(window + rows / group + part);
        }
        let written = if item[7] < 0 { dim * e } else { 4 * (dim + 2) };
        work.bytes += kv_heads * (2 * positions * dim * e + rows * (dim * e + written));
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
        // Two items of 8 rows: positions 128 to 300 into a state, 0 to 100 into the output.
        let items = [0, 0, 8, 0, 1, 3, 300, 5, 1, 0, 8, 0, 0, 1, 100, -1];
        let mut arguments = [Argument(0); 15];
        (arguments[3], arguments[9], arguments[10], arguments[11]) = (Argument(4096), 64.into(), 4.into(), 2.into());
        let unit = Unit::attention(Element::Bf16, 64);
        let sent = |at: Address, n: usize| (at == 4096 && n == 16).then(|| items.to_vec());
        let work = of_launch(&unit, "attend_wide", [2, 2, 1], &arguments, &sent).1.unwrap();
        assert_eq!(work.operations, 2 * 8 * (172 + 100) * 64 * 4);
        let written = 8 * (64 * 2 + 66 * 4) + 8 * (64 * 2 + 64 * 2);
        assert_eq!(work.bytes, 2 * (2 * (172 + 100) * 64 * 2 + written));
        assert_eq!(of_launch(&unit, "attend_wide", [2, 2, 1], &arguments, &|_, _| None).1, None);
    }

    #[test]
    fn steps_of_similar_sizes_share_a_row() {
        assert_eq!([7, 100, 128, 300, 4096, 14336].map(count), ["7", "up to 128", "128", "up to 512", "4096", "14336"]);
    }
}
