//! Attention plan of a step: rows that are computed together.
//!
//! Decides speed only: what a part of the positions gives a row, and how parts are folded, is the same in every arrangement
//! (kernels/attention.cu).

use super::kernels::{PART, WIDE_ROWS, tall_rows};
use crate::core::{BLOCK_SIZE, Piece};

/// Blocks of a part.
const PART_BLOCKS: usize = PART / BLOCK_SIZE;

/// Items, merges and slots are padded to multiples of this.
const MULTIPLE: usize = 32;

/// Most bytes that padding adds.
pub(crate) const PADDING: usize = 4 * (MULTIPLE - 1) * (8 + 8 + 3 + 1);

/// Sizes that the plan depends on besides the pieces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) head_dim: usize,
    pub(crate) multiprocessors: usize,
    /// Tokens' worth of states that there is memory for.
    pub(crate) states: usize,
}

/// Work items as the kernels read them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AttentionPlan {
    /// Eight numbers each. Items of `wide` may go on from what those of `tall` left.
    pub(crate) tall: Vec<i32>,
    pub(crate) wide: Vec<i32>,
    /// Token, offset into `slots`, number of slots.
    pub(crate) merges: Vec<i32>,
    pub(crate) slots: Vec<i32>,
    states: usize,
}

/// Positions that an item covers, and the slot of its result.
#[derive(Clone, Copy)]
struct Span {
    begin: usize,
    end: usize,
    length: usize,
    result: Outcome,
}

/// Use of an item's result, as the kernels number it.
#[derive(Clone, Copy)]
enum Outcome {
    /// Written as the output.
    Output,
    /// Left at a slot, to be folded with others.
    State(usize),
    /// It is folded after what lies at a slot, and is the output.
    After(usize),
}

impl Outcome {
    fn number(self) -> i32 {
        match self {
            Outcome::Output => -1,
            Outcome::State(slot) => slot as i32,
            Outcome::After(slot) => -2 - slot as i32,
        }
    }
}

impl AttentionPlan {
    /// Plans a step. `pieces` have those of single tokens first, readers of the same blocks next to each other.
    pub(crate) fn new(pieces: &[Piece], tables: &[i32], setting: &Setting) -> AttentionPlan {
        let mut plan = AttentionPlan::default();
        let singles = pieces.iter().take_while(|p| p.count == 1).count();
        let (decoding, prompts) = pieces.split_at(singles);
        let group = setting.heads / setting.kv_heads;
        // Few tokens: cut their positions, so that all multiprocessors have work.
        let wide_items = decoding.len() * setting.kv_heads * group.div_ceil(WIDE_ROWS);
        let cut = wide_items < 2 * setting.multiprocessors;
        let mut i = 0;
        while i < decoding.len() {
            let (readers, shared) = sharers(&decoding[i..], tables);
            let readers_now = &decoding[i..i + readers];
            let parts = |p: &Piece| p.position / PART + 1;
            // Readers of a shared beginning need a slot each; what they read alone is cut where there are slots for that besides those
            // of the readers to come, else it goes on from there. Readers beyond the slots share nothing.
            let spare = setting.states.saturating_sub(decoding.len() - i - readers);
            let sharing = if shared > 0 { readers.min(setting.states - plan.states) } else { 0 };
            let (sharing, alone) = readers_now.split_at(if sharing > 1 { sharing } else { 0 });
            if let Some(first) = sharing.first() {
                let base = plan.states;
                plan.states += sharing.len();
                let mut goes_on = false;
                for (reader, p) in sharing.iter().enumerate() {
                    if cut && plan.states + parts(p) - shared <= spare {
                        plan.cut(setting, p, shared, Some(base + reader));
                        continue;
                    }
                    goes_on = true;
                    let result = Outcome::After(base + reader);
                    let span = Span { begin: shared, end: parts(p), length: p.position + 1, result };
                    plan.rows(setting, p.token, 1, p.table, span, Some(true));
                }
                let span = Span { begin: 0, end: shared, length: shared * PART, result: Outcome::State(base) };
                // `tall` is done before what goes on from it.
                let wide = if goes_on { Some(false) } else { None };
                plan.rows(setting, first.token, sharing.len(), first.table, span, wide);
            }
            for p in alone {
                let parts = parts(p);
                if cut && parts > 1 && plan.states + parts <= spare {
                    plan.cut(setting, p, 0, None);
                } else {
                    let span = Span { begin: 0, end: parts, length: p.position + 1, result: Outcome::Output };
                    plan.rows(setting, p.token, 1, p.table, span, None);
                }
            }
            i += readers;
        }
        for p in prompts {
            plan.prompt(setting, p);
        }
        plan
    }

    /// Pads every list with items and merges that do nothing, so that plans of a like size have lists of one length.
    pub(crate) fn pad(&mut self) {
        for (list, width) in [(&mut self.tall, 8), (&mut self.wide, 8), (&mut self.merges, 3), (&mut self.slots, 1)] {
            list.resize((list.len() / width).next_multiple_of(MULTIPLE) * width, 0);
        }
    }

    /// One item a part from `first` on, to be folded after `before`.
    fn cut(&mut self, setting: &Setting, p: &Piece, first: usize, before: Option<usize>) {
        let end = p.position / PART + 1;
        let offset = self.slots.len();
        self.slots.extend(before.map(|slot| slot as i32));
        for part in first..end {
            let state = self.states;
            self.states += 1;
            self.slots.push(state as i32);
            let span = Span { begin: part, end: part + 1, length: p.position + 1, result: Outcome::State(state) };
            self.rows(setting, p.token, 1, p.table, span, None);
        }
        self.merges.extend([p.token, offset, self.slots.len() - offset].map(|n| n as i32));
    }

    /// All rows of `tokens` tokens that see the same positions; by default in `wide` if they are few.
    fn rows(&mut self, setting: &Setting, token: usize, tokens: usize, table: usize, span: Span, wide: Option<bool>) {
        let rows = tokens * (setting.heads / setting.kv_heads);
        let wide = wide.unwrap_or(rows <= WIDE_ROWS);
        let most = if wide { WIDE_ROWS } else { tall_rows(setting.head_dim) };
        let items = if wide { &mut self.wide } else { &mut self.tall };
        for first in (0..rows).step_by(most) {
            let numbers = [token, first, most.min(rows - first), table, span.begin, span.end, span.length];
            items.extend(numbers.map(|n| n as i32));
            items.push(span.result.number());
        }
    }

    /// A prompt's piece: rows of several tokens at a time, each up to its last position.
    fn prompt(&mut self, setting: &Setting, p: &Piece) {
        let group = setting.heads / setting.kv_heads;
        let rows = p.count * group;
        let wide = rows <= WIDE_ROWS;
        let most = if wide { WIDE_ROWS } else { tall_rows(setting.head_dim) };
        let items = if wide { &mut self.wide } else { &mut self.tall };
        for first in (0..rows).step_by(most) {
            let count = most.min(rows - first);
            let last = p.position + (first + count - 1) / group;
            let numbers = [p.token, first, count, p.table, 0, last / PART + 1, last + 1];
            items.extend(numbers.map(|n| n as i32));
            items.push(-1);
        }
    }
}

/// Number of the first pieces that share whole parts from position 0 on: (pieces, parts), (1, 0) if it is not worth an item.
fn sharers(pieces: &[Piece], tables: &[i32]) -> (usize, usize) {
    let first = &pieces[0];
    let mut shared = first.position / PART;
    let mut readers = 1;
    for p in &pieces[1..] {
        let most = shared.min(p.position / PART);
        let blocks = |p: &Piece| &tables[p.table..p.table + most * PART_BLOCKS];
        let same = blocks(first).iter().zip(blocks(p)).take_while(|(a, b)| a == b).count() / PART_BLOCKS;
        // The first neighbour decides how much is shared; who shares much less begins a run of its own.
        if same == 0 || (readers > 1 && same < shared.div_ceil(2)) {
            break;
        }
        shared = same;
        readers += 1;
    }
    if readers > 1 { (readers, shared) } else { (1, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTING: Setting = Setting { heads: 8, kv_heads: 2, head_dim: 64, multiprocessors: 132, states: 1000 };

    /// Pieces of one token, with the first `shared` blocks in common.
    fn readers(count: usize, shared: usize, position: usize) -> (Vec<Piece>, Vec<i32>) {
        let blocks = position / BLOCK_SIZE + 1;
        let mut tables = vec![];
        let mut pieces = vec![];
        for i in 0..count {
            pieces.push(Piece { token: i, position, count: 1, table: tables.len() });
            tables.extend((0..blocks).map(|b| if b < shared { b as i32 } else { (100 * (i + 1) + b) as i32 }));
        }
        (pieces, tables)
    }

    /// For each row of a group: the parts that each of its states covers, in the order in which they are folded.
    fn covered(plan: &AttentionPlan, tokens: usize, group: usize) -> Vec<Vec<std::ops::Range<usize>>> {
        let items: Vec<&[i32]> = plan.tall.chunks(8).chain(plan.wide.chunks(8)).collect();
        (0..tokens * group)
            .map(|row| {
                let token = (row / group) as i32;
                let of_row = |item: &&&[i32]| {
                    let flat = (token - item[0]) * group as i32 + (row % group) as i32;
                    token >= item[0] && (item[1]..item[1] + item[2]).contains(&flat)
                };
                let range = |item: &[i32]| item[4] as usize..item[5] as usize;
                let mine: Vec<&&[i32]> = items.iter().filter(of_row).collect();
                let made = |slot: i32| {
                    let made = |item: &&&&[i32]| item[7] >= 0 && item[7] + token - item[0] == slot;
                    let makers: Vec<_> = mine.iter().filter(made).collect();
                    assert_eq!(makers.len(), 1, "one item makes a state");
                    **makers[0]
                };
                match plan.merges.chunks(3).find(|m| m[0] == token && m[2] > 0) {
                    None => {
                        let last: Vec<_> = mine.iter().filter(|item| item[7] < 0).collect();
                        assert_eq!(last.len(), 1, "one item writes the output");
                        if last[0][7] == -1 {
                            return vec![range(last[0])];
                        }
                        let before = made(-2 - last[0][7] + token - last[0][0]);
                        assert!(plan.tall.chunks(8).any(|item| std::ptr::eq(item, before)), "what goes on comes later");
                        vec![range(before), range(last[0])]
                    }
                    Some(m) => plan.slots[m[1] as usize..(m[1] + m[2]) as usize]
                        .iter()
                        .map(|&slot| range(made(slot)))
                        .collect(),
                }
            })
            .collect()
    }

    #[test]
    fn every_row_gets_every_part_once_and_in_order() {
        for (count, shared, position) in
            [(1, 0, 40), (1, 0, 700), (5, 0, 300), (5, 4, 300), (40, 29, 1023), (300, 9, 290)]
        {
            let (pieces, tables) = readers(count, shared, position);
            let plan = AttentionPlan::new(&pieces, &tables, &SETTING);
            for ranges in covered(&plan, count, 4) {
                assert_eq!(ranges[0].start, 0);
                assert!(ranges.windows(2).all(|w| w[0].end == w[1].start), "{ranges:?}");
                assert_eq!(ranges.last().unwrap().end, position / PART + 1);
                assert_eq!(ranges[0].end > 1 && ranges.len() > 1, shared >= 8, "{ranges:?}");
            }
        }
    }

    #[test]
    fn readers_beyond_the_memory_for_states_share_nothing_and_all_others_still_do() {
        let (pieces, tables) = readers(40, 29, 1023);
        let plan = AttentionPlan::new(&pieces, &tables, &Setting { states: 0, ..SETTING });
        assert!(plan.merges.is_empty() && plan.tall.is_empty() && plan.wide.len() == 40 * 8);
        for states in [1, 3, 39, 40, 41, 100] {
            let plan = AttentionPlan::new(&pieces, &tables, &Setting { states, ..SETTING });
            let ranges = covered(&plan, 40, 4);
            assert!(plan.states <= states && ranges.iter().all(|r| r.last().unwrap().end == 8), "{states}");
            let sharing = ranges.iter().filter(|r| r[0] == (0..7) && r.len() > 1).count();
            assert_eq!(sharing / 4, if states == 1 { 0 } else { states.min(40) }, "{states}");
        }
    }

    #[test]
    fn many_readers_with_long_texts_of_their_own_attend_their_beginning_once() {
        // 6,000 positions each, of which 2,048 in common: 512 times 31 parts alone are more than the states there are.
        for (count, states) in [(512, 16 * 1024), (512, 512), (100, 16 * 1024), (3, 48)] {
            let (pieces, tables) = readers(count, 64, 5999);
            for multiprocessors in [1, 132, 4000] {
                let setting = Setting { states, multiprocessors, ..SETTING };
                let plan = AttentionPlan::new(&pieces, &tables, &setting);
                assert!(plan.states <= states);
                for ranges in covered(&plan, count, 4) {
                    assert_eq!((ranges[0].clone(), ranges.last().unwrap().end), (0..16, 47));
                    assert!(ranges.windows(2).all(|w| w[0].end == w[1].start));
                }
                let first: i32 =
                    plan.tall.chunks(8).chain(plan.wide.chunks(8)).filter(|i| i[4] == 0).map(|i| i[2]).sum();
                assert_eq!(first as usize, count * 4, "every row reads the beginning in one item");
            }
        }
    }

    #[test]
    fn padding_adds_nothing_but_length() {
        let (pieces, tables) = readers(5, 4, 300);
        let plan = AttentionPlan::new(&pieces, &tables, &SETTING);
        let mut padded = plan.clone();
        padded.pad();
        let bytes = |p: &AttentionPlan| 4 * [&p.tall, &p.wide, &p.merges, &p.slots].map(Vec::len).iter().sum::<usize>();
        assert!(bytes(&padded) > bytes(&plan) && bytes(&padded) <= bytes(&plan) + PADDING);
        assert_eq!((padded.wide.len() % 256, padded.merges.len() % 96, padded.slots.len() % 32), (0, 0, 0));
        assert_eq!(covered(&padded, 5, 4), covered(&plan, 5, 4));
    }

    #[test]
    fn prompts_are_cut_into_rows_that_see_what_they_need() {
        let piece = Piece { token: 3, position: 100, count: 60, table: 0 };
        let plan = AttentionPlan::new(&[piece], &[], &SETTING);
        let items: Vec<&[i32]> = plan.tall.chunks(8).collect();
        assert_eq!(items.iter().map(|i| i[2]).sum::<i32>(), 240);
        assert_eq!(items[0], [3, 0, 64, 0, 0, 1, 116, -1]);
        assert_eq!(items[3], [3, 192, 48, 0, 0, 2, 160, -1]);
    }
}
