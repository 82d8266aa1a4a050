//! Tables of aligned text.
use super::wrap::{text_width, words};

/// Alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// Shortest name that [`Table::shorten_names`] leaves.
const SHORTEST_NAME: usize = 12;

#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Row>,
    /// False for a table without headings and the rule below them.
    headed: bool,
}

#[derive(Debug, Clone)]
enum Row {
    Cells(Vec<String>),
    Rule,
}

impl Table {
    /// Creates a table with these columns.
    pub fn new(columns: impl IntoIterator<Item = (String, Align)>) -> Self {
        Table { columns: columns.into_iter().collect(), rows: Vec::new(), headed: true }
    }

    /// A table of which the first `left` columns are left-aligned and the others right-aligned.
    pub fn with_left(left: usize, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let align = |index| if index < left { Align::Left } else { Align::Right };
        Table::new(names.into_iter().enumerate().map(|(index, name)| (name.into(), align(index))))
    }

    /// A table of rows alone: one left-aligned column, then right-aligned ones.
    pub fn without_headings(columns: usize) -> Self {
        Table { headed: false, ..Table::with_left(1, vec![""; columns]) }
    }

    /// Adds a row; missing cells are empty.
    pub fn row(&mut self, mut cells: Vec<String>) {
        // A name from a log could move the cursor or begin a line of its own.
        for cell in cells.iter_mut().filter(|cell| cell.contains(char::is_control)) {
            *cell = cell.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        }
        self.rows.push(Row::Cells(cells));
    }

    /// Adds a horizontal rule.
    pub fn rule(&mut self) {
        self.rows.push(Row::Rule);
    }

    /// Returns the width in columns.
    pub fn width(&self) -> usize {
        self.render().lines().map(text_width).max().unwrap_or(0)
    }

    /// True if the table has a column of this name.
    pub fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|(column, _)| column == name)
    }

    /// Leaves out columns, the least important one first, until the table is at most `width` columns wide. Returns their names.
    pub fn fit<'a>(&mut self, width: usize, least: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
        let mut left_out = Vec::new();
        for name in least {
            if self.width() <= width {
                break;
            }
            let Some(index) = self.columns.iter().position(|(column, _)| column == name) else { continue };
            self.columns.remove(index);
            for row in &mut self.rows {
                if let Row::Cells(cells) = row
                    && index < cells.len()
                {
                    cells.remove(index);
                }
            }
            left_out.push(name);
        }
        left_out
    }

    /// Shortens the names of rows, in their middle, until the table is at most `width` columns wide or they have 12 letters.
    pub fn shorten_names(&mut self, width: usize) {
        let over = self.width().saturating_sub(width);
        let Some(longest) = self.names().map(|name| text_width(name)).max().filter(|_| over > 0) else { return };
        let most = longest.saturating_sub(over).max(SHORTEST_NAME);
        for name in self.names_mut().filter(|name| text_width(name) > most) {
            let end = (most - 1) / 2;
            let ending: String = within(name.chars().rev(), end).chars().rev().collect();
            *name = format!("{}…{ending}", within(name.chars(), most - 1 - end));
        }
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => cells.first(),
            Row::Rule => None,
        })
    }

    fn names_mut(&mut self) -> impl Iterator<Item = &mut String> {
        self.rows.iter_mut().filter_map(|row| match row {
            Row::Cells(cells) => cells.first_mut(),
            Row::Rule => None,
        })
    }

    /// Renders the table in at most `width` columns. Columns that have no room beside the names of the rows follow below, in parts that
    /// begin with the names again.
    pub fn render_within(&self, width: usize) -> String {
        if self.width() <= width {
            return self.render();
        }
        let named = self.columns.iter().take_while(|(_, align)| *align == Align::Left).count().max(1);
        let names: Vec<usize> = (0..named.min(self.columns.len())).collect();
        // Names that leave no room for numbers: the first stands for the row, the others are columns like the rest.
        let names = if self.part(&names).width() > width / 2 { vec![0] } else { names };
        let mut parts: Vec<Vec<usize>> = Vec::new();
        for column in names.len()..self.columns.len() {
            if let Some(last) = parts.last_mut() {
                last.push(column);
                if self.part(last).width() <= width {
                    continue;
                }
                last.pop();
            }
            parts.push(names.iter().copied().chain([column]).collect());
        }
        let render = |columns: &Vec<usize>| {
            let mut part = self.part(columns);
            part.shorten_names(width);
            part.render()
        };
        parts.iter().map(render).collect::<Vec<_>>().join("\n")
    }

    /// The table with these columns only.
    fn part(&self, columns: &[usize]) -> Table {
        let cells = |row: &Row| match row {
            Row::Rule => Row::Rule,
            Row::Cells(cells) => {
                Row::Cells(columns.iter().map(|&index| cells.get(index).cloned().unwrap_or_default()).collect())
            }
        };
        Table {
            columns: columns.iter().map(|&index| self.columns[index].clone()).collect(),
            rows: self.rows.iter().map(cells).collect(),
            headed: self.headed,
        }
    }

    /// Renders the table. Columns are separated by two spaces; lines have no trailing spaces.
    pub fn render(&self) -> String {
        let mut widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(index, (name, _))| {
                let cells = self.rows.iter().filter_map(|row| match row {
                    Row::Cells(cells) => cells.get(index),
                    Row::Rule => None,
                });
                words(name)
                    .iter()
                    .map(|word| text_width(word))
                    .chain(cells.map(|cell| text_width(cell)))
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        // The first column names the row; its heading never wraps.
        if let (Some(first), Some((name, _))) = (widths.first_mut(), self.columns.first()) {
            *first = (*first).max(text_width(name));
        }
        let rule = "-".repeat(widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1));
        let headings: Vec<Vec<String>> =
            self.columns.iter().zip(&widths).map(|((name, _), &widest)| wrap(name, widest)).collect();
        let height = headings.iter().map(Vec::len).max().unwrap_or(0);
        let mut text = String::new();
        for level in 0..height {
            // Shorter headings are aligned at the bottom, next to their cells.
            let part = |lines: &Vec<String>| (level + lines.len()).checked_sub(height).map(|at| lines[at].clone());
            let cells: Vec<String> = headings.iter().map(|lines| part(lines).unwrap_or_default()).collect();
            text.push_str(&self.line(&cells, &widths));
        }
        if self.headed {
            text.push_str(&rule);
            text.push('\n');
        }
        for row in &self.rows {
            match row {
                Row::Cells(cells) => text.push_str(&self.line(cells, &widths)),
                Row::Rule => {
                    text.push_str(&rule);
                    text.push('\n');
                }
            }
        }
        text
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, &widest), (_, align)) in cells.iter().zip(widths).zip(&self.columns) {
            let blank = " ".repeat(widest.saturating_sub(text_width(cell)));
            match align {
                Align::Left => line.extend([cell, blank.as_str(), "  "]),
                Align::Right => line.extend([blank.as_str(), cell, "  "]),
            }
        }
        line.truncate(line.trim_end().len());
        line.push('\n');
        line
    }
}

/// The first letters that have room in so many columns.
fn within(letters: impl Iterator<Item = char>, most: usize) -> String {
    let mut text = String::new();
    for letter in letters {
        text.push(letter);
        if text_width(&text) > most {
            text.pop();
            break;
        }
    }
    text
}

/// Wraps a text at `widest` columns, between words.
fn wrap(text: &str, widest: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words(text) {
        match lines.last_mut() {
            Some(line) if text_width(line) + 1 + text_width(&word) <= widest => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_letters_have_two_columns() {
        let mut table = Table::with_left(1, ["model", "right"]);
        table.row(vec!["通义千问模型七十亿参数".into(), "50.0".into()]);
        table.row(vec!["cafe\u{301}".into(), "7.5".into()]);
        assert!(table.render().lines().all(|line| text_width(line) == 22 + 2 + 5), "{}", table.render());
        table.shorten_names(24);
        assert_eq!(table.names().next().unwrap(), "通义千问…十亿参数");
        assert!(table.width() <= 24, "{}", table.render());
    }

    #[test]
    fn columns_are_left_out_until_the_table_fits() {
        let mut table = Table::with_left(1, ["task", "items", "right", "failed"]);
        table.row(vec!["addition".into(), "12".into(), "50.0".into(), "0".into()]);
        table.rule();
        table.row(vec!["all".into(), "12".into()]);
        assert_eq!(table.clone().fit(table.width(), ["failed"]), Vec::<&str>::new());
        let mut narrow = table.clone();
        assert_eq!(narrow.fit(table.width() - 1, ["nothing", "items", "failed"]), ["items"]);
        assert!(table.has("items") && !narrow.has("items") && narrow.has("failed"));
        assert_eq!(
            narrow.render(),
            "task      right  failed\n-----------------------\naddition   50.0       0\n-----------------------\nall\n"
        );
        assert_eq!(table.fit(1, ["items", "failed"]), ["items", "failed"]);
    }

    #[test]
    fn a_wide_table_is_folded_and_loses_nothing() {
        let mut table = Table::with_left(1, ["task", "items", "right in per cent", "cut off", "failed"]);
        table.row(vec!["addition".into(), "12".into(), "50.0".into(), "3".into(), "0".into()]);
        table.rule();
        table.row(vec!["all".into(), "1012".into()]);
        let wide = table.width();
        assert_eq!(table.render_within(wide), table.render());
        assert_eq!(
            table.render_within(wide - 1),
            "                 right\n                    in\n                   per  cut\n\
             task      items   cent  off\n---------------------------\naddition     12   50.0    3\n\
             ---------------------------\nall        1012\n\n\
             task      failed\n----------------\naddition       0\n----------------\nall\n"
        );
        for width in [18, 22, 25] {
            let folded = table.render_within(width);
            assert!(folded.lines().all(|line| line.chars().count() <= width), "{width}: {folded}");
            assert!(["1012", "50.0", "3", "0"].iter().all(|cell| folded.contains(cell)), "{width}: {folded}");
        }
        // Several names of a row stand in every part, unless they leave no room.
        let mut table = Table::with_left(2, ["model", "prompt", "a number", "another number"]);
        table.row(vec!["one".into(), "plain".into(), "1.00".into(), "2.00".into()]);
        assert_eq!(table.render_within(28).matches("one    plain").count(), 2, "{}", table.render_within(28));
        let mut table = Table::with_left(2, ["model", "prompt", "a", "b"]);
        table.row(vec!["a_very_long_name_of_a_model".into(), "plain".into(), "1.00".into(), "2.00".into()]);
        let folded = table.render_within(24);
        assert!(folded.lines().all(|line| line.chars().count() <= 24) && folded.contains('…'), "{folded}");
    }

    #[test]
    fn long_names_lose_their_middle() {
        let mut table = Table::with_left(1, ["task", "items"]);
        table.row(vec!["max_hard_of_scientific_notation".into(), "12".into()]);
        table.row(vec!["add".into(), "12".into()]);
        let wide = table.width();
        table.shorten_names(wide);
        assert_eq!(table.width(), wide);
        table.shorten_names(27);
        assert_eq!(table.width(), 27);
        assert!(
            table.render().contains("\nmax_hard_o…_notation     12\nadd                      12\n"),
            "{}",
            table.render()
        );
        table.shorten_names(5);
        assert!(table.render().contains("\nmax_ha…ation     12\n"), "{}", table.render());
    }

    #[test]
    fn columns_are_aligned_and_lines_end_clean() {
        let mut table =
            Table::new([("task".into(), Align::Left), ("n".into(), Align::Right), ("x".into(), Align::Left)]);
        table.row(vec!["add".into(), "5".into(), "a – b".into()]);
        table.rule();
        table.row(vec!["all".into(), "1000".into()]);
        assert_eq!(
            table.render(),
            "task     n  x\n-----------------\nadd      5  a – b\n-----------------\nall   1000\n"
        );
    }

    #[test]
    fn rows_alone_have_no_rule() {
        let mut table = Table::without_headings(2);
        table.row(vec!["name".into(), "p".into()]);
        table.row(vec!["a long one".into(), "0.123".into()]);
        table.row(vec!["short".into(), String::new()]);
        assert_eq!(table.render(), "name            p\na long one  0.123\nshort\n");
    }
}
