//! Attention plan of a step: rows that are computed together.
//!
//! Decides speed only: what a part of the positions gives a row, and how parts are folded, is the same in every arrangement
//! (kernels/attention.cu).

use super::kernels::{PART, WIDE_ROWS, tall_rows};
use crate::core::{BLOCK_SIZE, Piece};

/// Blocks of a part.
const PART_BLOCKS: usize = PART / BLOCK_SIZE;

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
    /// Eight numbers each.
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
    state: Option<usize>,
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
            let own: usize = readers_now.iter().map(|p| parts(p) - shared).sum();
            if shared > 0 && plan.states + readers + own <= setting.states {
                let base = plan.states;
                plan.states += readers;
                let span = Span { begin: 0, end: shared, length: shared * PART, state: Some(base) };
                plan.rows(setting, readers_now[0].token, readers, readers_now[0].table, span);
                for (reader, p) in readers_now.iter().enumerate() {
                    plan.cut(setting, p, shared, Some(base + reader));
                }
            } else {
                for p in readers_now {
                    let parts = parts(p);
                    if cut && parts > 1 && plan.states + parts <= setting.states {
                        plan.cut(setting, p, 0, None);
                    } else {
                        let span = Span { begin: 0, end: parts, length: p.position + 1, state: None };
                        plan.rows(setting, p.token, 1, p.table, span);
                    }
                }
            }
            i += readers;
        }
        for p in prompts {
            plan.prompt(setting, p);
        }
        plan
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
            let span = Span { begin: part, end: part + 1, length: p.position + 1, state: Some(state) };
            self.rows(setting, p.token, 1, p.table, span);
        }
        self.merges.extend([p.token, offset, self.slots.len() - offset].map(|n| n as i32));
    }

    /// All rows of `tokens` tokens that see the same positions.
    fn rows(&mut self, setting: &Setting, token: usize, tokens: usize, table: usize, span: Span) {
        let rows = tokens * (setting.heads / setting.kv_heads);
        let wide = rows <= WIDE_ROWS;
        let most = if wide { WIDE_ROWS } else { tall_rows(setting.head_dim) };
        let items = if wide { &mut self.wide } else { &mut self.tall };
        for first in (0..rows).step_by(most) {
            let state = span.state.map_or(-1, |s| s as i32);
            let numbers = [token, first, most.min(rows - first), table, span.begin, span.end, span.length];
            items.extend(numbers.map(|n| n as i32));
            items.push(state);
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
                match plan.merges.chunks(3).find(|m| m[0] == token) {
                    None => {
                        assert!(mine.len() == 1 && mine[0][7] == -1, "one item writes the output");
                        vec![range(mine[0])]
                    }
                    Some(m) => plan.slots[m[1] as usize..(m[1] + m[2]) as usize]
                        .iter()
                        .map(|slot| {
                            let made = |item: &&&&[i32]| item[7] >= 0 && item[7] + token - item[0] == *slot;
                            let makers: Vec<_> = mine.iter().filter(made).collect();
                            assert_eq!(makers.len(), 1, "one item makes a state");
                            range(makers[0])
                        })
                        .collect(),
                }
            })
            .collect()
    }

    #[test]
    fn every_row_gets_every_part_once_in_order_and_only_the_first_item_has_several() {
        for (count, shared, position) in
            [(1, 0, 40), (1, 0, 700), (5, 0, 300), (5, 4, 300), (40, 29, 1023), (300, 9, 290)]
        {
            let (pieces, tables) = readers(count, shared, position);
            let plan = AttentionPlan::new(&pieces, &tables, &SETTING);
            for ranges in covered(&plan, count, 4) {
                assert_eq!(ranges[0].start, 0);
                assert!(ranges.windows(2).all(|w| w[0].end == w[1].start && w[1].len() == 1), "{ranges:?}");
                assert_eq!(ranges.last().unwrap().end, position / PART + 1);
                assert_eq!(ranges[0].end > 1 && ranges.len() > 1, shared >= 8, "{ranges:?}");
            }
        }
    }

    #[test]
    fn without_memory_for_states_every_row_is_one_item() {
        let (pieces, tables) = readers(40, 29, 1023);
        let plan = AttentionPlan::new(&pieces, &tables, &Setting { states: 3, ..SETTING });
        assert!(plan.merges.is_empty() && plan.tall.is_empty() && plan.wide.len() == 40 * 8);
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
