//! Aligned columns.

/// Lines whose cells are padded to the widest cell of their column, `gap` between them. The last cell of a line is
/// not padded and does not widen its column, so lines may end early.
pub fn columns<R: AsRef<[String]>>(rows: &[R], gap: &str) -> Vec<String> {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        let padded = row.as_ref().len().saturating_sub(1);
        widths.resize(widths.len().max(padded), 0);
        for (width, cell) in widths.iter_mut().zip(&row.as_ref()[..padded]) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &R| {
        let (last, cells) = row.as_ref().split_last().map_or(("", [].as_slice()), |(l, c)| (l.as_str(), c));
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
    fn a_line_that_ends_early_does_not_widen_a_column() {
        let rows = [row(&["a:", "1", "x"]), row(&["b:", "not started"]), row(&["c:", "10", ""])];
        assert_eq!(columns(&rows, " "), ["a: 1  x", "b: not started", "c: 10"]);
    }
}
