//! Aligned columns.

use super::diff::printable_line;

/// Lines whose cells are padded to the widest cell of their column, `gap` between them. The last cell of a line is
/// not padded and does not widen its column, so lines may end early. A cell is one line without control characters:
/// kubelets, hosts and mirrors have written many of them.
pub fn columns<R: AsRef<[String]>>(rows: &[R], gap: &str) -> Vec<String> {
    let printable =
        |row: &R| -> Vec<String> { row.as_ref().iter().map(|cell| printable_line(cell)).collect() };
    let rows: Vec<Vec<String>> = rows.iter().map(printable).collect();
    let mut widths: Vec<usize> = Vec::new();
    for row in &rows {
        let padded = row.len().saturating_sub(1);
        widths.resize(widths.len().max(padded), 0);
        for (width, cell) in widths.iter_mut().zip(&row[..padded]) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &Vec<String>| {
        let (last, cells) = row.split_last().map_or(("", [].as_slice()), |(l, c)| (l.as_str(), c));
        let mut line: String =
            cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}{gap}")).collect();
        line.push_str(last);
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// A table as kubectl prints it: upper-case headings, three spaces between columns.
pub fn table<R: AsRef<[String]>>(head: &[&str], rows: &[R]) -> String {
    let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    let all: Vec<&[String]> =
        std::iter::once(head.as_slice()).chain(rows.iter().map(AsRef::as_ref)).collect();
    columns(&all, "   ").into_iter().map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|&cell| cell.to_owned()).collect()
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [row(&["node-1", "Ready"]), row(&["n", "NotReady"])];
        assert_eq!(table(&["NAME", "STATUS"], &rows), "NAME     STATUS\nnode-1   Ready\nn        NotReady\n");
        assert_eq!(table::<Vec<String>>(&["NAME"], &[]), "NAME\n");
    }

    #[test]
    fn a_cell_is_one_line_that_controls_no_terminal() {
        let rows = [row(&["a\u{1b}[2J\nb", "x\ty\r\n"]), row(&["c", "z"])];
        let expected = "NAME           STATUS\na\\u{1b}[2J b   x y\\r\nc              z\n";
        assert_eq!(table(&["NAME", "STATUS"], &rows), expected);
    }

    #[test]
    fn a_line_that_ends_early_does_not_widen_a_column() {
        let rows = [row(&["a:", "1", "x"]), row(&["b:", "not started"]), row(&["c:", "10", ""])];
        assert_eq!(columns(&rows, " "), ["a: 1  x", "b: not started", "c: 10"]);
    }
}
