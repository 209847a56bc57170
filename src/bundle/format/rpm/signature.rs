//! The signature of a package, in the section of the file before the header that it covers (rpm.org, "Package format").
//!
//! The library that builds packages writes none without an OpenPGP library of its own.

use std::ops::Range;

/// A tag of the signature section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SignatureTag(u32);

/// A signature of the header by DSA, ECDSA or EdDSA: `RPMSIGTAG_DSA`.
pub(super) const DSA: SignatureTag = SignatureTag(267);
/// A signature of the header by RSA: `RPMSIGTAG_RSA`.
pub(super) const RSA: SignatureTag = SignatureTag(268);

/// The section is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the signature section is not that of a package")]
pub struct SignatureSectionError;

/// Before the section: it has a magic number, and is not read any more.
const LEAD: usize = 96;
const MAGIC: [u8; 8] = [0x8e, 0xad, 0xe8, 0x01, 0, 0, 0, 0];
/// Magic, number of entries, length of the data.
const INTRO: usize = 16;
/// Of an entry in the index: tag, type, offset in the data, count.
const ENTRY: usize = 16;
/// The entry for the section itself: `RPMTAG_HEADERSIGNATURES`.
const REGION: u32 = 62;
const BIN: u32 = 7;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    tag: u32,
    kind: u32,
    count: u32,
    data: Vec<u8>,
}

/// The package with this signature of its header, in place of another one with the same tag.
///
/// # Errors
/// When it is no package.
pub(super) fn with_signature(
    package: &[u8],
    (tag, signature): (SignatureTag, Vec<u8>),
) -> Result<Vec<u8>, SignatureSectionError> {
    let (mut entries, section) = read(package).ok_or(SignatureSectionError)?;
    let count = u32::try_from(signature.len()).map_err(|_| SignatureSectionError)?;
    entries.retain(|entry| entry.tag != tag.0);
    entries.push(Entry { tag: tag.0, kind: BIN, count, data: signature });
    entries.sort_by_key(|entry| entry.tag);
    let mut signed = package[..section.start].to_vec();
    signed.extend(written(&entries).ok_or(SignatureSectionError)?);
    signed.extend(&package[section.end..]);
    Ok(signed)
}

/// The entries without that of the section itself, and where the section is.
fn read(package: &[u8]) -> Option<(Vec<Entry>, Range<usize>)> {
    let section = package.get(LEAD..)?;
    if section.get(..MAGIC.len())? != MAGIC {
        return None;
    }
    let (count, length) = (number(section, 8)?, number(section, 12)?);
    let data_at = INTRO + ENTRY * usize::try_from(count).ok()?;
    let end = data_at + usize::try_from(length).ok()?;
    let (index, data) = (section.get(INTRO..data_at)?, section.get(data_at..end)?);
    let entry = |bytes: &[u8]| {
        let [tag, kind, offset, count] = [0, 4, 8, 12].map(|at| number(bytes, at));
        let (kind, count) = (kind?, count?);
        let data = data.get(usize::try_from(offset?).ok()?..)?;
        let data = data.get(..length_of(kind, count, data)?)?.to_vec();
        Some(Entry { tag: tag?, kind, count, data })
    };
    let entries: Vec<Entry> = index.chunks(ENTRY).map(entry).collect::<Option<_>>()?;
    let own = entries.into_iter().filter(|entry| entry.tag != REGION);
    Some((own.collect(), LEAD..LEAD + end.next_multiple_of(8)))
}

/// The section, padded as the header after it requires.
fn written(entries: &[Entry]) -> Option<Vec<u8>> {
    let (mut index, mut data) = (Vec::new(), Vec::new());
    for entry in entries {
        data.resize(data.len().next_multiple_of(alignment(entry.kind)), 0);
        let offset = u32::try_from(data.len()).ok()?;
        index.extend([entry.tag, entry.kind, offset, entry.count].iter().flat_map(|one| one.to_be_bytes()));
        data.extend(&entry.data);
    }
    let count = u32::try_from(entries.len() + 1).ok()?;
    let region_at = u32::try_from(data.len()).ok()?;
    let size = u32::try_from(ENTRY).ok()?;
    // The end of the region points back to its begin.
    let back = (count * size).wrapping_neg();
    data.extend([REGION, BIN, back, size].iter().flat_map(|one| one.to_be_bytes()));

    let mut section = MAGIC.to_vec();
    section.extend(count.to_be_bytes());
    section.extend(u32::try_from(data.len()).ok()?.to_be_bytes());
    section.extend([REGION, BIN, region_at, size].iter().flat_map(|one| one.to_be_bytes()));
    section.extend(index);
    section.extend(data);
    section.resize(section.len().next_multiple_of(8), 0);
    Some(section)
}

/// The length of `count` values at the begin of `data`, in bytes.
fn length_of(kind: u32, count: u32, data: &[u8]) -> Option<usize> {
    let count = usize::try_from(count).ok()?;
    match kind {
        // char, int8, bin
        1 | 2 | BIN => Some(count),
        3 => Some(2 * count),
        4 => Some(4 * count),
        5 => Some(8 * count),
        // string, string array, i18n string
        6 | 8 | 9 if count > 0 => {
            let ends = data.iter().enumerate().filter(|(_, byte)| **byte == 0).map(|(at, _)| at + 1);
            ends.take(count).collect::<Vec<_>>().get(count - 1).copied()
        }
        _ => None,
    }
}

fn alignment(kind: u32) -> usize {
    match kind {
        3 => 2,
        4 => 4,
        5 => 8,
        _ => 1,
    }
}

/// Big-endian.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(tag: u32, kind: u32, count: u32, data: &[u8]) -> Entry {
        Entry { tag, kind, count, data: data.to_vec() }
    }

    fn package(entries: &[Entry]) -> Vec<u8> {
        [vec![1; LEAD], written(entries).unwrap(), b"header and payload".to_vec()].concat()
    }

    #[test]
    fn a_signature_is_added_or_replaced_and_the_rest_stays() {
        let others =
            [entry(269, 6, 1, b"abc\0"), entry(1000, 4, 1, &[0, 0, 0, 9]), entry(1008, BIN, 3, b"xyz")];
        let unsigned = package(&others);
        assert_eq!(read(&unsigned).unwrap().0, others);
        let signed = with_signature(&unsigned, (DSA, b"first".to_vec())).unwrap();
        let (entries, section) = read(&signed).unwrap();
        assert_eq!(entries[0], entry(267, BIN, 5, b"first"));
        assert_eq!(entries[1..], others);
        assert_eq!(&signed[section.end..], b"header and payload");
        assert_eq!(section.end % 8, 0);
        let again = with_signature(&signed, (DSA, b"second".to_vec())).unwrap();
        assert_eq!(again, with_signature(&unsigned, (DSA, b"second".to_vec())).unwrap());
    }

    #[test]
    fn what_is_no_package_is_refused_wherever_it_ends() {
        let whole = package(&[entry(269, 6, 1, b"abc\0"), entry(1000, 5, 1, &[0; 8])]);
        let end = read(&whole).unwrap().1.end;
        for length in 0..end - 8 {
            assert_eq!(
                with_signature(&whole[..length], (DSA, Vec::new())),
                Err(SignatureSectionError),
                "{length}"
            );
        }
        let mut other = whole.clone();
        other[LEAD] = 0;
        assert_eq!(with_signature(&other, (DSA, Vec::new())), Err(SignatureSectionError));
    }
}
