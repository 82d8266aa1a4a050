//! Elimination order and pattern of the random effects' matrix, found once for a model.
//!
//! A node is a group: its random effects are eliminated together. Groups of the largest factor touch no other group of it,
//! so they go first; the rest follow by least degree while the matrix is sparse, and what is left is dense.
use std::collections::{BTreeSet, HashMap, HashSet};

use super::MixedError;
use super::data::MixedData;

/// Numbers of the factor beyond which a fit is refused: 1.6 GB with its inverse.
const LARGEST_FACTOR: usize = 100_000_000;

/// Part of the remaining nodes that a node must touch for the rest to be dense.
const DENSE: f64 = 0.5;

/// Remaining nodes that are always dense.
const SMALL: usize = 24;

/// Pattern of a symmetric block matrix and of its Cholesky factor. Blocks are row-major.
#[derive(Debug)]
pub(super) struct Layout {
    /// By node, in elimination order: grouping factor, group.
    pub(super) factor: Vec<u32>,
    pub(super) group: Vec<u32>,
    /// Groups that a node stands for.
    pub(super) copies: Vec<f64>,
    /// Random effects of a node, and the first one's offset.
    pub(super) size: Vec<usize>,
    pub(super) start: Vec<usize>,
    /// Nodes before the dense rest.
    pub(super) sparse: usize,
    /// By sparse node: later nodes that it touches, the offset of its diagonal block and of the blocks below.
    pub(super) below: Vec<Vec<u32>>,
    pub(super) diagonal: Vec<usize>,
    pub(super) panel: Vec<usize>,
    /// By sparse node: offsets that its pairs of touched nodes update in sparse columns, in order.
    pub(super) targets: Vec<Vec<u32>>,
    /// By sparse node: indices in the dense rest of the random effects that it touches there.
    pub(super) dense: Vec<Vec<u32>>,
    /// The dense rest: offset and width.
    pub(super) tail: usize,
    pub(super) tail_width: usize,
    /// Groups that the node of each of its rows stands for; empty where all stand for themselves.
    pub(super) tail_copies: Vec<f64>,
    /// Numbers of the factor.
    pub(super) length: usize,
    /// Blocks of the matrix itself.
    pub(super) blocks: Vec<PatternBlock>,
    /// Numbers of those blocks.
    pub(super) gram_length: usize,
    /// By cell and pair of factors (first <= second): the block's first number in a compact list of the blocks.
    pub(super) slots: Vec<u32>,
    /// By cell and factor: node.
    pub(super) nodes: Vec<u32>,
}

/// A block of the matrix on or below the diagonal.
#[derive(Debug, Clone, Copy)]
pub(super) struct PatternBlock {
    pub(super) row: u32,
    pub(super) column: u32,
    /// Its first number in a compact list of the blocks.
    pub(super) compact: usize,
    /// Its first number in the factor, and the distance of its rows there.
    pub(super) start: usize,
    pub(super) stride: usize,
    /// Random effects and grouping factors of its row and its column.
    pub(super) sizes: [u32; 2],
    pub(super) factors: [u32; 2],
}

impl Layout {
    pub(super) fn new(data: &MixedData) -> Result<Layout, MixedError> {
        // Nodes by factor and group, then by elimination order.
        let first: Vec<usize> = data
            .groupings
            .iter()
            .scan(0, |sum, grouping| {
                let first = *sum;
                *sum += grouping.levels.len();
                Some(first)
            })
            .collect();
        let count = first.iter().zip(&data.groupings).map(|(first, one)| first + one.levels.len()).max().unwrap_or(0);
        let leading = data.groupings.first().map_or(0, |grouping| grouping.levels.len());
        let order = Order::new(count, leading, &touching(data, &first));
        let mut position = vec![0_u32; count];
        order.nodes.iter().enumerate().for_each(|(index, &node)| position[node as usize] = index as u32);
        let mut layout = Layout::ordered(data, &first, order, &position);
        layout.place_numbers();
        if layout.length > LARGEST_FACTOR {
            return Err(MixedError::TooWide {
                groups: data.groupings.iter().map(|grouping| grouping.name.as_str()).collect::<Vec<_>>().join(" and "),
                megabytes: layout.length / 125_000 * 2,
            });
        }
        layout.place_updates();
        layout.place_blocks(data, &first, &position);
        Ok(layout)
    }

    /// Nodes with their sizes in this order; numbers have no offsets yet.
    fn ordered(data: &MixedData, first: &[usize], order: Order, position: &[u32]) -> Layout {
        let factor_of = |&node: &u32| first.partition_point(|first| *first <= node as usize) - 1;
        let factor: Vec<u32> = order.nodes.iter().map(|node| factor_of(node) as u32).collect();
        let size: Vec<usize> = factor.iter().map(|&factor| data.groupings[factor as usize].width).collect();
        let mut start = Vec::with_capacity(size.len() + 1);
        start.push(0);
        size.iter().for_each(|size| start.push(start[start.len() - 1] + size));
        let group: Vec<u32> =
            order.nodes.iter().zip(&factor).map(|(&node, &factor)| node - first[factor as usize] as u32).collect();
        let copies = |(&factor, &group): (&u32, &u32)| data.groupings[factor as usize].copies[group as usize];
        let copies = factor.iter().zip(&group).map(copies).collect();
        let mut below = order.below;
        for rows in &mut below {
            rows.iter_mut().for_each(|node| *node = position[*node as usize]);
            rows.sort_unstable();
        }
        let sparse = below.len();
        Layout {
            factor,
            group,
            copies,
            size,
            start,
            sparse,
            below,
            diagonal: Vec::with_capacity(sparse),
            panel: Vec::with_capacity(sparse),
            targets: Vec::with_capacity(sparse),
            dense: Vec::with_capacity(sparse),
            tail: 0,
            tail_width: 0,
            tail_copies: Vec::new(),
            length: 0,
            blocks: Vec::new(),
            gram_length: 0,
            slots: Vec::new(),
            nodes: Vec::new(),
        }
    }

    /// Gives the blocks of the factor their offsets: those of the sparse nodes, then the dense rest.
    fn place_numbers(&mut self) {
        let (sparse, count) = (self.sparse, self.nodes());
        let mut length = 0;
        for node in 0..sparse {
            let width = self.size[node];
            self.diagonal.push(length);
            length += width * width;
            self.panel.push(length);
            length += width * self.below[node].iter().map(|&row| self.size[row as usize]).sum::<usize>();
        }
        self.tail = length;
        self.tail_width = self.start[count] - self.start[sparse];
        if self.copies[sparse..].iter().any(|copies| *copies != 1.0) {
            let of_node = |node: usize| std::iter::repeat_n(self.copies[node], self.size[node]);
            self.tail_copies = (sparse..count).flat_map(of_node).collect();
        }
        self.length = length + self.tail_width * self.tail_width;
    }

    /// Finds what each sparse node updates: offsets in sparse columns and indices in the dense rest.
    fn place_updates(&mut self) {
        let sparse = self.sparse;
        for node in 0..sparse {
            let targets = self.targets_of(node);
            self.targets.push(targets);
            let rest = self.below[node].iter().map(|&row| row as usize).filter(|&row| row >= sparse);
            let start = self.start[sparse];
            let indices = rest.flat_map(|row| self.start[row] - start..self.start[row + 1] - start);
            let indices = indices.map(|index| index as u32).collect();
            self.dense.push(indices);
        }
    }

    /// Number of nodes.
    pub(super) fn nodes(&self) -> usize {
        self.size.len()
    }

    /// The offset after the blocks below a sparse node's diagonal.
    pub(super) fn panel_end(&self, node: usize) -> usize {
        self.diagonal.get(node + 1).copied().unwrap_or(self.tail)
    }

    /// Number of random effects.
    pub(super) fn width(&self) -> usize {
        self.start[self.nodes()]
    }

    /// Offsets in sparse columns of all pairs of nodes below a node.
    fn targets_of(&self, node: usize) -> Vec<u32> {
        let rows = &self.below[node];
        let mut found = Vec::new();
        for (index, &column) in rows.iter().enumerate() {
            if column as usize >= self.sparse {
                break;
            }
            // Both lists ascend, and the second holds what the first does.
            let column = column as usize;
            found.push(self.diagonal[column] as u32);
            let mut offset = self.panel[column];
            let mut own = self.below[column].iter();
            for &row in &rows[index + 1..] {
                for &candidate in own.by_ref() {
                    if candidate == row {
                        found.push(offset as u32);
                        offset += self.size[candidate as usize] * self.size[column];
                        break;
                    }
                    offset += self.size[candidate as usize] * self.size[column];
                }
            }
        }
        found
    }

    /// Offset of a block of the factor and the distance of its rows; the row comes at or after the column.
    fn offset(&self, row: usize, column: usize) -> (usize, usize) {
        if column >= self.sparse {
            let within = |node: usize| self.start[node] - self.start[self.sparse];
            return (self.tail + within(row) * self.tail_width + within(column), self.tail_width);
        }
        if row == column {
            return (self.diagonal[column], self.size[column]);
        }
        let before = self.below[column].iter().take_while(|&&other| (other as usize) < row);
        let rows: usize = before.map(|&other| self.size[other as usize]).sum();
        (self.panel[column] + rows * self.size[column], self.size[column])
    }

    fn place_blocks(&mut self, data: &MixedData, first: &[usize], position: &[u32]) {
        let factors = data.groupings.len();
        let cells = data.cells();
        let mut first_of: HashMap<(u32, u32), u32> = HashMap::new();
        let mut blocks: Vec<PatternBlock> = Vec::new();
        let mut compact = 0;
        let mut block = |row: u32, column: u32| {
            *first_of.entry((row, column)).or_insert_with(|| {
                let (start, stride) = self.offset(row as usize, column as usize);
                let nodes = [row, column].map(|node| node as usize);
                let sizes = nodes.map(|node| self.size[node] as u32);
                let factors = nodes.map(|node| self.factor[node]);
                blocks.push(PatternBlock { row, column, compact, start, stride, sizes, factors });
                let first = compact as u32;
                compact += (sizes[0] * sizes[1]) as usize;
                first
            })
        };
        // Every node has a diagonal block, also one that no cell is in.
        (0..self.nodes() as u32).for_each(|node| {
            block(node, node);
        });
        let mut nodes = Vec::with_capacity(cells * factors);
        let mut slots = Vec::with_capacity(cells * factors * (factors + 1) / 2);
        for cell in 0..cells {
            let own = |factor: usize| position[first[factor] + data.groupings[factor].of_cell[cell] as usize];
            nodes.extend((0..factors).map(own));
            for left in 0..factors {
                for right in left..factors {
                    let (one, other) = (own(left), own(right));
                    slots.push(block(one.max(other), one.min(other)));
                }
            }
        }
        (self.blocks, self.gram_length, self.nodes, self.slots) = (blocks, compact, nodes, slots);
    }
}

/// Pairs of nodes of different factors that a cell is in, sorted.
fn touching(data: &MixedData, first: &[usize]) -> Vec<(u32, u32)> {
    let mut pairs: HashSet<(u32, u32)> = HashSet::new();
    for cell in 0..data.cells() {
        let node = |factor: usize| first[factor] as u32 + data.groupings[factor].of_cell[cell];
        for right in 1..data.groupings.len() {
            pairs.extend((0..right).map(|left| (node(left), node(right))));
        }
    }
    let mut pairs: Vec<(u32, u32)> = pairs.into_iter().collect();
    pairs.sort_unstable();
    pairs
}

/// Nodes in elimination order, and by sparse node the later nodes that it touches (by their numbers).
struct Order {
    nodes: Vec<u32>,
    below: Vec<Vec<u32>>,
}

/// Neighbours among the nodes after the leading ones.
enum Graph {
    /// One bit for each pair.
    Bits {
        words: usize,
        bits: Vec<u64>,
    },
    Sets(Vec<BTreeSet<u32>>),
}

/// Nodes up to which a graph is kept as bits.
const MOST_BITS: usize = 1 << 14;

impl Graph {
    fn new(count: usize) -> Self {
        if count > MOST_BITS {
            return Graph::Sets(vec![BTreeSet::new(); count]);
        }
        let words = count.div_ceil(64);
        Graph::Bits { words, bits: vec![0; words * count] }
    }

    /// Makes nodes neighbours of each other.
    fn connect(&mut self, nodes: &[u32]) {
        match self {
            Graph::Bits { words, bits } => {
                let mut mask = vec![0_u64; *words];
                nodes.iter().for_each(|&node| mask[node as usize / 64] |= 1 << (node % 64));
                for &node in nodes {
                    let row = &mut bits[node as usize * *words..(node as usize + 1) * *words];
                    row.iter_mut().zip(&mask).for_each(|(row, mask)| *row |= mask);
                    row[node as usize / 64] &= !(1 << (node % 64));
                }
            }
            Graph::Sets(sets) => {
                for &node in nodes {
                    sets[node as usize].extend(nodes.iter().filter(|&&other| other != node));
                }
            }
        }
    }

    fn neighbours(&self, node: u32) -> Vec<u32> {
        match self {
            Graph::Bits { words, bits } => {
                let row = &bits[node as usize * words..(node as usize + 1) * words];
                let of_word = |(word, &bits): (usize, &u64)| {
                    (0..64_u32).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word as u32 * 64 + bit)
                };
                row.iter().enumerate().filter(|(_, bits)| **bits != 0).flat_map(of_word).collect()
            }
            Graph::Sets(sets) => sets[node as usize].iter().copied().collect(),
        }
    }

    fn degree(&self, node: u32) -> usize {
        match self {
            Graph::Bits { words, bits } => {
                let row = &bits[node as usize * words..(node as usize + 1) * words];
                row.iter().map(|word| word.count_ones() as usize).sum()
            }
            Graph::Sets(sets) => sets[node as usize].len(),
        }
    }

    /// Takes a node away from its neighbours.
    fn forget(&mut self, node: u32, neighbours: &[u32]) {
        match self {
            Graph::Bits { words, bits } => {
                for &other in neighbours {
                    bits[other as usize * *words + node as usize / 64] &= !(1 << (node % 64));
                }
            }
            Graph::Sets(sets) => neighbours.iter().for_each(|&other| {
                sets[other as usize].remove(&node);
            }),
        }
    }
}

impl Order {
    /// `pairs` are nodes that touch, the smaller first, sorted; nodes below `leading` touch no other of them.
    fn new(count: usize, leading: usize, pairs: &[(u32, u32)]) -> Order {
        let mut nodes: Vec<u32> = (0..leading as u32).collect();
        let mut below: Vec<Vec<u32>> = vec![Vec::new(); leading];
        let rest = count - leading;
        let mut graph = Graph::new(rest);
        for &(left, right) in pairs {
            match below.get_mut(left as usize) {
                Some(rows) => rows.push(right),
                None => graph.connect(&[left - leading as u32, right - leading as u32]),
            }
        }
        for rows in &below {
            let local: Vec<u32> = rows.iter().map(|node| node - leading as u32).collect();
            graph.connect(&local);
        }
        let mut queue: BTreeSet<(usize, u32)> = (0..rest as u32).map(|node| (graph.degree(node), node)).collect();
        while let Some(&(degree, node)) = queue.first() {
            let remaining = queue.len();
            if remaining <= SMALL || degree as f64 >= DENSE * (remaining - 1) as f64 {
                break;
            }
            let neighbours = graph.neighbours(node);
            queue.pop_first();
            for &other in &neighbours {
                queue.remove(&(graph.degree(other), other));
            }
            graph.forget(node, &neighbours);
            graph.connect(&neighbours);
            for &other in &neighbours {
                queue.insert((graph.degree(other), other));
            }
            nodes.push(node + leading as u32);
            below.push(neighbours.iter().map(|other| other + leading as u32).collect());
        }
        let mut last: Vec<u32> = queue.into_iter().map(|(_, node)| node + leading as u32).collect();
        last.sort_unstable();
        nodes.extend(last);
        Order { nodes, below }
    }
}
