//! Random operands: uniform, reproducible from their address alone, and without repetition while the space lasts.
use std::collections::HashMap;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

use super::{Base, Question, Task};

/// Version of the items: a change to what is drawn changes it.
pub(super) const ITEMS_VERSION: &str = "1";

/// All items of one task and length.
///
/// Item `index` has its own ChaCha8 stream, keyed by SHA-256 over the items' version, seed, set, task, length and index.
///
/// * Spaces of up to 2^64 combinations of operands (81 for two one-digit operands, 9 for one) are dealt like a pack of
///   cards: item `index` swaps the card at slot `index` with one drawn from the slots not yet dealt (Fisher and Yates),
///   so operands repeat only when all combinations have been used, and the first `k` items are the same however many are
///   wanted. Only the slots touched are stored. An item alone replays the swaps before it.
/// * In larger spaces the operands are drawn from the item's own stream without looking at the others: among 10,000
///   items of a cell two are equal with a probability below 3e-12.
pub(super) struct Cell {
    seed: u64,
    set: u8,
    task: Task,
    length: usize,
    /// Combinations of operands, if there are at most 2^64 - 1.
    space: Option<u64>,
    /// Cards that are not at their own slot.
    moved: HashMap<u64, u64>,
    /// The index of the item that `next` deals.
    next: u64,
}

impl Cell {
    pub(super) fn new(seed: u64, set: u8, task: Task, length: usize) -> Self {
        Cell { seed, set, task, length, space: space(task, length), moved: HashMap::new(), next: 0 }
    }

    /// The item with this index, whatever was dealt before.
    pub(super) fn nth(&mut self, index: u64) -> Question {
        // Everything before the pack in which `index` lies can be skipped: a full pack leaves no trace.
        let pack = self.space.map_or(index, |size| index - index % size);
        if self.next > index || self.next < pack {
            self.next = pack;
            self.moved.clear();
        }
        while self.next < index {
            self.deal();
        }
        self.deal()
    }

    fn deal(&mut self) -> Question {
        let mut stream = self.stream(self.next);
        let index = self.next;
        self.next += 1;
        let (a, b) = match self.space {
            None => self.draw(&mut stream),
            Some(size) => {
                let slot = index % size;
                if slot == 0 {
                    self.moved.clear();
                }
                let from = slot + below(&mut stream, size - slot);
                let here = self.moved.remove(&slot).unwrap_or(slot);
                let card = if from == slot { here } else { self.moved.insert(from, here).unwrap_or(from) };
                self.operands(card)
            }
        };
        Question::new(self.task, &a, b.as_deref()).expect("operands are drawn as the task describes them")
    }

    fn stream(&self, index: u64) -> ChaCha8Rng {
        let address = format!(
            "arithmetic-bench items {ITEMS_VERSION}\nseed {}\nset {}\ntask {}\nlength {}\nindex {index}\n",
            self.seed, self.set, self.task, self.length
        );
        ChaCha8Rng::from_seed(Sha256::digest(address).into())
    }

    /// The combination of operands with this number, in `0..space`.
    fn operands(&self, card: u64) -> (String, Option<String>) {
        let digits = self.task.operand_digits(self.length);
        let second = digits.b.and_then(|count| numbers(Base::Decimal, count));
        let (a, b) = second.map_or((card, None), |size| (card / size, Some(card % size)));
        (nth_number(digits.base, digits.a, a), digits.b.zip(b).map(|(count, b)| nth_number(Base::Decimal, count, b)))
    }

    fn draw(&self, stream: &mut ChaCha8Rng) -> (String, Option<String>) {
        let digits = self.task.operand_digits(self.length);
        let a = draw_number(stream, digits.base, digits.a);
        (a, digits.b.map(|count| draw_number(stream, Base::Decimal, count)))
    }
}

/// Combinations of operands of a task at a length, if they fit.
fn space(task: Task, length: usize) -> Option<u64> {
    let digits = task.operand_digits(length);
    let a = numbers(digits.base, digits.a)?;
    digits.b.map_or(Some(a), |count| a.checked_mul(numbers(Base::Decimal, count)?))
}

/// Count of the numbers with exactly so many digits, if that fits.
fn numbers(base: Base, digits: usize) -> Option<u64> {
    let exponent = u32::try_from(digits.checked_sub(1)?).ok()?;
    match base {
        Base::Binary => 2u64.checked_pow(exponent),
        Base::Decimal => 10u64.checked_pow(exponent)?.checked_mul(9),
    }
}

/// The `rank`-th number with exactly so many digits, counted from 0.
fn nth_number(base: Base, digits: usize, rank: u64) -> String {
    // Ranks are u64, lowest numbers of at most 2^63 or 10^18 are u64, and so are their sums below 2^64.
    let exponent = digits as u32 - 1;
    match base {
        Base::Binary => format!("{:b}", 2u64.pow(exponent) + rank),
        Base::Decimal => (10u64.pow(exponent) + rank).to_string(),
    }
}

/// A number with exactly so many digits, uniformly.
fn draw_number(stream: &mut ChaCha8Rng, base: Base, digits: usize) -> String {
    let digit = |value: u64| char::from(b'0' + value as u8);
    let radix = match base {
        Base::Binary => 2,
        Base::Decimal => 10,
    };
    (0..digits).map(|i| digit(if i == 0 { 1 + below(stream, radix - 1) } else { below(stream, radix) })).collect()
}

/// A number in `0..n` (`n` > 0), uniformly: values in the last, incomplete run of `n` are drawn again. Written out here, so
/// that no release of a library moves the items.
fn below(stream: &mut ChaCha8Rng, n: u64) -> u64 {
    let surplus = (u64::MAX % n + 1) % n;
    loop {
        let value = stream.next_u64();
        if value <= u64::MAX - surplus {
            return value % n;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn cell(task: Task, length: usize) -> Cell {
        Cell::new(7, 1, task, length)
    }

    #[test]
    fn sizes_of_spaces() {
        assert_eq!(space(Task::Add, 1), Some(81));
        assert_eq!(space(Task::Div, 1), Some(810));
        assert_eq!(space(Task::Copy, 1), Some(9));
        assert_eq!(space(Task::Add1, 2), Some(810));
        assert_eq!(space(Task::B2d, 1), Some(1));
        assert_eq!(space(Task::B2d, 64), Some(1 << 63));
        assert_eq!(space(Task::B2d, 65), None);
        assert_eq!(space(Task::Copy, 19), Some(9_000_000_000_000_000_000));
        assert_eq!(space(Task::Copy, 20), None);
    }

    #[test]
    fn the_largest_small_spaces_have_the_right_digits() {
        for (task, length) in
            [(Task::B2d, 64), (Task::Copy, 19), (Task::Add, 9), (Task::Add, 10), (Task::Div, 6), (Task::Div, 7)]
        {
            for index in 0..20 {
                assert_eq!(cell(task, length).nth(index).length(), length);
            }
        }
        assert_eq!(nth_number(Base::Binary, 64, (1 << 63) - 1), "1".repeat(64));
        assert_eq!(nth_number(Base::Decimal, 19, 8_999_999_999_999_999_999), "9".repeat(19));
    }

    #[test]
    fn a_pack_is_dealt_completely_before_anything_repeats() {
        for (task, length, size) in [(Task::Add, 1, 81), (Task::Rev, 1, 9), (Task::B2d, 1, 1), (Task::Div, 1, 810)] {
            let mut cell = cell(task, length);
            let dealt: Vec<_> = (0..3 * size)
                .map(|index| cell.nth(index))
                .map(|q| (q.a().to_owned(), q.b().map(str::to_owned)))
                .collect();
            for pack in dealt.chunks(size as usize) {
                assert_eq!(pack.iter().collect::<HashSet<_>>().len(), size as usize);
            }
            if size > 2 {
                assert_ne!(dealt[..size as usize], dealt[size as usize..2 * size as usize], "packs are shuffled anew");
            }
        }
    }

    #[test]
    fn any_order_gives_the_same_items() {
        for (task, length) in [(Task::Mul, 1), (Task::Copy, 1), (Task::Sub, 5), (Task::Sub, 40), (Task::B2d, 3)] {
            let mut forward = cell(task, length);
            let items: Vec<_> = (0..30).map(|index| forward.nth(index)).collect();
            let mut backward = cell(task, length);
            for index in (0..30).rev() {
                assert_eq!(backward.nth(index), items[index as usize]);
                assert_eq!(cell(task, length).nth(index), items[index as usize]);
            }
        }
    }

    #[test]
    fn the_key_depends_on_every_part() {
        let first = cell(Task::Add, 30).nth(0);
        assert_ne!(first, cell(Task::Add, 30).nth(1));
        assert_ne!(first, Cell::new(8, 1, Task::Add, 30).nth(0));
        assert_ne!(first, Cell::new(7, 2, Task::Add, 30).nth(0));
        assert_ne!(first.a(), cell(Task::Sub, 30).nth(0).a());
    }

    #[test]
    fn digits_are_uniform() {
        let mut counts = [[0u32; 10]; 2];
        for task in [Task::Copy, Task::Rev] {
            for index in 0..3000 {
                for (position, digit) in
                    cell(task, 25).draw(&mut cell(task, 25).stream(index)).0.bytes().take(2).enumerate()
                {
                    counts[position][usize::from(digit - b'0')] += 1;
                }
            }
        }
        let chi2 = |counts: &[u32]| {
            let expected = 6000.0 / counts.len() as f64;
            counts.iter().map(|c| (f64::from(*c) - expected).powi(2) / expected).sum::<f64>()
        };
        assert_eq!(counts[0][0], 0);
        // 99.9 % quantiles of chi-square with 8 and 9 degrees of freedom.
        assert!(chi2(&counts[0][1..]) < 26.12 && chi2(&counts[1]) < 27.88, "{counts:?}");
    }
}
