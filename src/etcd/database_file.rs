//! The file of etcd's database: whether bbolt can open it.
//!
//! It begins with two pages that each have a meta record: bbolt opens the database by the newer one
//! (`internal/common/meta.go` and `page.go` of go.etcd.io/bbolt). Numbers are little-endian, as on every machine that
//! etcd runs on.

/// The bytes of the beginning that a check needs: two pages of the largest size that a kernel has.
pub const HEAD: usize = 2 * LARGEST_PAGE;

const LARGEST_PAGE: usize = 64 << 10;
/// Before the record of a page: its number, its flags, and what a meta page does not use.
const PAGE_HEADER: usize = 16;
const META_FLAG: u16 = 0x04;
const MAGIC: u32 = 0xED0C_DAED;
const VERSION: u32 = 2;
/// Where the checksum of a record is, and so how much of it the checksum is of.
const CHECKSUM: usize = 56;

/// Why bbolt would not open a file, or not all of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DamagedDatabase {
    /// The file is shorter than its two meta pages.
    #[error("the file ends before its meta page {0}")]
    Short(usize),
    /// A field of a meta page is not what every database has.
    #[error("meta page {page}: {field} is {found:#x}, expected {expected:#x}")]
    Field {
        /// 0 or 1.
        page: usize,
        /// Its name.
        field: &'static str,
        /// In the file.
        found: u64,
        /// In a database.
        expected: u64,
    },
    /// No kernel has pages of this size.
    #[error("meta page 0: no page has {0} bytes")]
    PageSize(u32),
    /// The file is not as long as its pages.
    #[error("{pages} pages of {page_size} bytes are not {size} bytes")]
    Size {
        /// Their number.
        pages: u64,
        /// Bytes.
        page_size: u32,
        /// Bytes.
        size: u64,
    },
    /// The root of its tree is not one of its pages.
    #[error("its root is page {root} of {pages}")]
    Root {
        /// Number of a page.
        root: u64,
        /// The number of pages.
        pages: u64,
    },
}

/// What the record of a meta page contains, once its checksum fits.
struct Meta {
    root: u64,
    pages: u64,
    transaction: u64,
}

/// Whether a file of `size` bytes that begins with `head` is a whole database: both meta pages are valid, and the file
/// has the pages that the newer one counts. `head` has [`HEAD`] bytes, or all of a smaller file. Pure.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(head: &[u8], size: u64) -> Result<(), DamagedDatabase> {
    let record = record(head, 0, 0)?;
    let page_size = word(record, 8);
    if !(1024..=LARGEST_PAGE).contains(&(page_size as usize)) || !page_size.is_power_of_two() {
        // The magic number first: a file that is no database at all is reported as that.
        expect(0, "magic number", word(record, 0).into(), MAGIC.into())?;
        return Err(DamagedDatabase::PageSize(page_size));
    }
    let (first, second) = (meta(head, 0, page_size)?, meta(head, 1, page_size)?);
    let newer = if first.transaction > second.transaction { first } else { second };
    let Meta { root, pages, .. } = newer;
    if pages.checked_mul(page_size.into()) != Some(size) {
        return Err(DamagedDatabase::Size { pages, page_size, size });
    }
    if !(2..pages).contains(&root) {
        return Err(DamagedDatabase::Root { root, pages });
    }
    Ok(())
}

fn meta(head: &[u8], page: usize, page_size: u32) -> Result<Meta, DamagedDatabase> {
    let start = page * page_size as usize;
    let record = record(head, page, start)?;
    expect(page, "page number", long(head, start), page as u64)?;
    expect(
        page,
        "page flags",
        u16::from_le_bytes([head[start + 8], head[start + 9]]).into(),
        META_FLAG.into(),
    )?;
    expect(page, "magic number", word(record, 0).into(), MAGIC.into())?;
    expect(page, "version", word(record, 4).into(), VERSION.into())?;
    expect(page, "page size", word(record, 8).into(), page_size.into())?;
    expect(page, "checksum", long(record, CHECKSUM), fnv_1a(&record[..CHECKSUM]))?;
    Ok(Meta { root: long(record, 16), pages: long(record, 40), transaction: long(record, 48) })
}

/// The record of the meta page that starts there.
fn record(head: &[u8], page: usize, start: usize) -> Result<&[u8], DamagedDatabase> {
    let record = start + PAGE_HEADER;
    head.get(record..record + CHECKSUM + 8).ok_or(DamagedDatabase::Short(page))
}

fn expect(page: usize, field: &'static str, found: u64, expected: u64) -> Result<(), DamagedDatabase> {
    if found == expected { Ok(()) } else { Err(DamagedDatabase::Field { page, field, found, expected }) }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// FNV-1a of 64 bits (draft-eastlake-fnv, section 2).
fn fnv_1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, step)
}

/// Databases for tests.
#[cfg(test)]
pub mod example {
    use super::{CHECKSUM, MAGIC, META_FLAG, PAGE_HEADER, VERSION, fnv_1a};

    pub const PAGE_SIZE: usize = 4096;

    /// A whole database whose other pages are empty.
    pub fn database(pages: u64) -> Vec<u8> {
        let mut file = vec![0; pages as usize * PAGE_SIZE];
        for page in 0..2 {
            let start = page * PAGE_SIZE;
            file[start] = page as u8;
            file[start + 8..start + 10].copy_from_slice(&META_FLAG.to_le_bytes());
            let record = &mut file[start + PAGE_HEADER..];
            record[..4].copy_from_slice(&MAGIC.to_le_bytes());
            record[4..8].copy_from_slice(&VERSION.to_le_bytes());
            record[8..12].copy_from_slice(&(PAGE_SIZE as u32).to_le_bytes());
            record[16..24].copy_from_slice(&3_u64.to_le_bytes());
            record[40..48].copy_from_slice(&pages.to_le_bytes());
            record[48..56].copy_from_slice(&(9 - page as u64).to_le_bytes());
            sign(record);
        }
        file
    }

    /// Gives a record the checksum of what it contains.
    pub fn sign(record: &mut [u8]) {
        let checksum = fnv_1a(&record[..CHECKSUM]);
        record[CHECKSUM..CHECKSUM + 8].copy_from_slice(&checksum.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::example::{PAGE_SIZE, database, sign};
    use super::*;

    #[test]
    fn fnv_has_its_published_values() {
        assert_eq!(fnv_1a(b""), 0xCBF2_9CE4_8422_2325);
        assert_eq!(fnv_1a(b"a"), 0xAF63_DC4C_8601_EC8C);
        assert_eq!(fnv_1a(b"foobar"), 0x8594_4171_F739_67E8);
    }

    /// The error of a database of four pages with another byte, and with a checksum that fits or not.
    fn changed(at: usize, byte: u8, signed: bool) -> String {
        let mut file = database(4);
        file[at] = byte;
        if signed {
            sign(&mut file[at / PAGE_SIZE * PAGE_SIZE + PAGE_HEADER..]);
        }
        check(&file, file.len() as u64).map_or_else(|error| error.to_string(), |()| "whole".to_owned())
    }

    #[test]
    fn a_database_is_whole_or_what_is_wrong_with_it_is_named() {
        let second = PAGE_SIZE + PAGE_HEADER;
        for (at, byte, signed, expected) in [
            (3 * PAGE_SIZE, 1, false, "whole"),
            (PAGE_HEADER + 32, 1, true, "whole"),
            (0, 7, false, "meta page 0: page number is 0x7, expected 0x0"),
            (8, 2, false, "meta page 0: page flags is 0x2, expected 0x4"),
            (PAGE_HEADER, 0, true, "meta page 0: magic number is 0xed0cda00, expected 0xed0cdaed"),
            (PAGE_HEADER + 4, 1, true, "meta page 0: version is 0x1, expected 0x2"),
            (PAGE_HEADER + 8, 1, true, "meta page 0: no page has 4097 bytes"),
            (second + 9, 0x20, true, "meta page 1: page size is 0x2000, expected 0x1000"),
            (second, 0, true, "meta page 1: magic number is 0xed0cda00, expected 0xed0cdaed"),
            (PAGE_HEADER + 40, 5, true, "5 pages of 4096 bytes are not 16384 bytes"),
            // Only the newer record counts pages and has the root.
            (second + 40, 5, true, "whole"),
            (second + 48, 10, true, "whole"),
            (PAGE_HEADER + 16, 4, true, "its root is page 4 of 4"),
            (PAGE_HEADER + 16, 1, true, "its root is page 1 of 4"),
        ] {
            assert_eq!(changed(at, byte, signed), expected, "{at}");
        }
        assert!(changed(PAGE_HEADER + 40, 5, false).starts_with("meta page 0: checksum is 0x"));
        assert!(changed(second + 24, 5, false).starts_with("meta page 1: checksum is 0x"));
    }

    #[test]
    fn a_file_that_is_cut_off_is_not_whole() {
        let file = database(4);
        let cut = |at: usize| check(&file[..at], at as u64).unwrap_err();
        assert_eq!(cut(0), DamagedDatabase::Short(0));
        assert_eq!(cut(PAGE_SIZE), DamagedDatabase::Short(1));
        assert_eq!(cut(3 * PAGE_SIZE), DamagedDatabase::Size { pages: 4, page_size: 4096, size: 12288 });
        let text = b"apiVersion: v1\n".repeat(1000);
        let found = check(&text, text.len() as u64).unwrap_err();
        assert!(found.to_string().starts_with("meta page 0: magic number is 0x"), "{found}");
    }
}
