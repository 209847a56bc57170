//! Compressed indexes: the same content gives the same bytes.

use std::io::{self, Write};

use flate2::{Compression, GzBuilder};

/// Without a name and a time, as small as it can be: as gzip -9n.
///
/// # Errors
/// When there is no memory.
pub(super) fn gzip(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut compressed = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    compressed.write_all(content)?;
    compressed.finish()
}
