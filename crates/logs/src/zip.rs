//! Zip archives: entries are read one by one and never written anywhere.
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::Crc;
use flate2::read::DeflateDecoder;
use ruzstd::decoding::StreamingDecoder;

use super::open::open;
use super::records::too_long;
use crate::LogError;

/// Fault of an entry of an archive.
#[derive(Debug, thiserror::Error)]
pub(super) enum EntryFault {
    #[error("its name leads out of the archive: it was made to do harm")]
    LeadsOut,
    #[error("the entries {one} and {other} of the zip archive overlap: it is damaged, or made to do harm")]
    Overlap { one: String, other: String },
    #[error("it is encrypted")]
    Encrypted,
    #[error("it is packed by method {0}, and earnest reads 0, 8 (deflate) and 93 (Zstandard)")]
    Method(u16),
    #[error("it cannot be unpacked: {0}")]
    Packed(#[from] io::Error),
    #[error("it does not have the {0} bytes that the directory says")]
    Size(u64),
    #[error("it is damaged: the archive was cut off or changed")]
    Damaged,
}

/// An archive with its directory.
#[derive(Debug)]
pub(super) struct Zip {
    path: PathBuf,
    file: File,
    /// In the order of the directory; of two with one name the last is kept, as Python does.
    pub entries: Vec<Entry>,
}

/// An entry of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub name: String,
    method: u16,
    encrypted: bool,
    pub crc: u32,
    pub packed: u64,
    pub size: u64,
    offset: u64,
}

const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;
const DIRECTORY: u32 = 0x0201_4b50;
const LOCAL: u32 = 0x0403_4b50;

/// Longest directory in bytes: that of more than half a million samples.
const LONGEST_DIRECTORY: u64 = 64 << 20;

/// Bytes of the end record without its comment.
const END_LENGTH: usize = 22;

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

impl Zip {
    /// Opens an archive and reads its directory.
    ///
    /// # Errors
    /// Archives that were cut off or damaged.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let failed = |error| LogError::input(path.display(), error);
        let mut file = open(path)?;
        let length = file.metadata().map_err(failed)?.len();
        let mut at = |offset: u64, count: u64| -> Result<Option<Vec<u8>>, LogError> {
            if offset.checked_add(count).is_none_or(|end| end > length) {
                return Ok(None);
            }
            let mut bytes = vec![0; usize::try_from(count).unwrap_or(usize::MAX)];
            file.seek(SeekFrom::Start(offset)).and_then(|_| file.read_exact(&mut bytes)).map_err(failed)?;
            Ok(Some(bytes))
        };
        let cut = || {
            LogError::unread(path, "the zip archive has no directory: it was cut off, or is still being written")
                .hint("copy it again; where the tool was stopped, `inspect log` can recover what it kept")
        };
        let tail = length.min(END_LENGTH as u64 + u64::from(u16::MAX));
        let end = at(length - tail, tail)?.ok_or_else(cut)?;
        let place = (0..=end.len().saturating_sub(END_LENGTH)).rev().find(|place| word(&end, *place) == Some(END));
        let place = place.filter(|_| end.len() >= END_LENGTH).ok_or_else(cut)?;
        let record = &end[place..];
        let mut size = word(record, 12).map(u64::from);
        let mut start = word(record, 16).map(u64::from);
        // Sizes beyond 32 bits stand in a record before this one.
        let before = (length - tail + place as u64).checked_sub(20);
        if let Some(locator) = before.map(|before| at(before, 20)).transpose()?.flatten()
            && word(&locator, 0) == Some(LOCATOR_64)
        {
            let record = long(&locator, 8).map(|offset| at(offset, 56)).transpose()?.flatten().ok_or_else(cut)?;
            if word(&record, 0) != Some(END_64) {
                return Err(cut());
            }
            (size, start) = (long(&record, 40), long(&record, 48));
        }
        let (size, start) = size.zip(start).ok_or_else(cut)?;
        if size > LONGEST_DIRECTORY && start.checked_add(size).is_some_and(|end| end <= length) {
            let message =
                format!("the directory of the zip archive has {size} bytes; up to {LONGEST_DIRECTORY} are read");
            return Err(LogError::unread(path, message));
        }
        let directory = at(start, size)?.ok_or_else(cut)?;
        let entries =
            entries(&directory).ok_or_else(|| LogError::unread(path, "the directory of the zip archive is damaged"))?;
        overlaps(&entries).map_err(|reason| LogError::unread(path, reason))?;
        Ok(Zip { path: path.to_owned(), file, entries })
    }

    /// The last entry of this name.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().rev().find(|entry| entry.name == name)
    }

    /// Reads and checks an entry.
    ///
    /// # Errors
    /// Entries that are damaged, longer than allowed or than they say, encrypted, or packed by an unknown method.
    pub fn read(&mut self, entry: &Entry, longest: u64) -> Result<Vec<u8>, LogError> {
        let packed = self.packed(entry, longest)?;
        unpack(packed, entry).map_err(|reason| self.refused(entry, reason))
    }

    fn refused(&self, entry: &Entry, reason: impl std::fmt::Display) -> LogError {
        LogError::unread_at(&self.path, format!("entry {}", shown(&entry.name)), reason)
    }

    /// Reads the bytes of an entry as they are packed.
    pub fn packed(&mut self, entry: &Entry, longest: u64) -> Result<Vec<u8>, LogError> {
        if entry.size > longest || entry.packed > longest {
            return Err(self.refused(entry, too_long(entry.size.max(entry.packed), longest)));
        }
        let mut local = [0; 30];
        let mut packed = Vec::with_capacity(usize::try_from(entry.packed).unwrap_or(0));
        let mut read = || -> io::Result<bool> {
            self.file.seek(SeekFrom::Start(entry.offset))?;
            self.file.read_exact(&mut local)?;
            let (Some(LOCAL), Some(name), Some(extra)) = (word(&local, 0), short(&local, 26), short(&local, 28)) else {
                return Ok(false);
            };
            self.file.seek(SeekFrom::Current(i64::from(name) + i64::from(extra)))?;
            let length = Read::by_ref(&mut self.file).take(entry.packed).read_to_end(&mut packed)?;
            Ok(length as u64 == entry.packed)
        };
        match read() {
            Ok(true) => Ok(packed),
            Ok(false) => Err(self.refused(entry, EntryFault::Damaged)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(self.refused(entry, EntryFault::Damaged)),
            Err(error) => Err(LogError::input(self.path.display(), error)),
        }
    }
}

/// Unpacks and checks the bytes of an entry.
///
/// # Errors
/// Entries that are damaged, more than they say, encrypted, or packed by an unknown method.
pub(super) fn unpack(packed: Vec<u8>, entry: &Entry) -> Result<Vec<u8>, EntryFault> {
    if entry.encrypted {
        return Err(EntryFault::Encrypted);
    }
    // One more than it says, to see that it says too little; room for all of it at once, because growing takes twice as much.
    let most = entry.size + 1;
    let room = || Vec::with_capacity(usize::try_from(most).unwrap_or(0));
    let out = match entry.method {
        0 => packed,
        8 => {
            let mut out = room();
            DeflateDecoder::new(packed.as_slice()).take(most).read_to_end(&mut out)?;
            out
        }
        93 => unpack_zstandard(&packed, most, room())?,
        method => return Err(EntryFault::Method(method)),
    };
    if out.len() as u64 != entry.size {
        return Err(EntryFault::Size(entry.size));
    }
    let mut crc = Crc::new();
    crc.update(&out);
    if crc.sum() == entry.crc { Ok(out) } else { Err(EntryFault::Damaged) }
}

/// Unpacks frames until there are as many bytes.
fn unpack_zstandard(mut packed: &[u8], most: u64, mut out: Vec<u8>) -> io::Result<Vec<u8>> {
    while !packed.is_empty() && (out.len() as u64) < most {
        let mut decoder = StreamingDecoder::new(&mut packed).map_err(io::Error::other)?;
        let rest = most - out.len() as u64;
        Read::by_ref(&mut decoder).take(rest).read_to_end(&mut out)?;
    }
    Ok(out)
}

/// Entries of a directory; none if it is damaged.
fn entries(directory: &[u8]) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut at = 0;
    while at < directory.len() {
        let record = &directory[at..];
        if word(record, 0)? != DIRECTORY {
            return None;
        }
        let lengths = [short(record, 28)?, short(record, 30)?, short(record, 32)?].map(usize::from);
        let name = record.get(46..46 + lengths[0])?;
        let extra = record.get(46 + lengths[0]..46 + lengths[0] + lengths[1])?;
        let mut entry = Entry {
            name: String::from_utf8_lossy(name).into_owned(),
            method: short(record, 10)?,
            encrypted: short(record, 8)? & 1 == 1,
            crc: word(record, 16)?,
            packed: word(record, 20)?.into(),
            size: word(record, 24)?.into(),
            offset: word(record, 42)?.into(),
        };
        long_fields(&mut entry, extra)?;
        entries.push(entry);
        at += 46 + lengths.iter().sum::<usize>();
    }
    (at == directory.len()).then_some(entries)
}

/// Takes the sizes that do not fit into 32 bits from the field for them.
fn long_fields(entry: &mut Entry, mut extra: &[u8]) -> Option<()> {
    let too_large = u64::from(u32::MAX);
    if ![entry.size, entry.packed, entry.offset].contains(&too_large) {
        return Some(());
    }
    while extra.len() >= 4 {
        let (kind, length) = (short(extra, 0)?, usize::from(short(extra, 2)?));
        let field = extra.get(4..4 + length)?;
        if kind == 1 {
            let mut at = 0;
            for value in [&mut entry.size, &mut entry.packed, &mut entry.offset] {
                if *value == too_large {
                    *value = long(field, at)?;
                    at += 8;
                }
            }
            return Some(());
        }
        extra = &extra[4 + length..];
    }
    None
}

/// Refuses entries that share bytes: an archive that unpacks to a thousandfold is made so.
fn overlaps(entries: &[Entry]) -> Result<(), EntryFault> {
    let mut order: Vec<&Entry> = entries.iter().collect();
    order.sort_by_key(|entry| entry.offset);
    for pair in order.windows(2) {
        if pair[0].offset.checked_add(30 + pair[0].packed).is_none_or(|end| end > pair[1].offset) {
            return Err(EntryFault::Overlap { one: shown(&pair[0].name), other: shown(&pair[1].name) });
        }
    }
    Ok(())
}

/// A name for messages: short, without control characters.
pub(super) fn shown(name: &str) -> String {
    let plain: String = name.chars().take(120).flat_map(char::escape_debug).collect();
    if name.chars().nth(120).is_some() { format!("{plain}...") } else { plain }
}

/// True for a name that leads out of the archive's folder: absolute ones, and those with `..`.
pub(super) fn leads_out(name: &str) -> bool {
    let drive = name.as_bytes().get(1) == Some(&b':');
    name.starts_with(['/', '\\']) || drive || name.split(['/', '\\']).any(|part| part == "..") || name.contains('\0')
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::DeflateEncoder;

    use super::*;

    /// An archive of these entries, packed by deflate.
    pub fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut directory = Vec::new();
        for (name, text) in entries {
            let mut packer = DeflateEncoder::new(Vec::new(), Compression::fast());
            packer.write_all(text).unwrap();
            let packed = packer.finish().unwrap();
            let mut crc = Crc::new();
            crc.update(text);
            let mut common = vec![20, 0, 0, 0, 8, 0, 0, 0, 0, 0];
            for number in [crc.sum(), packed.len() as u32, text.len() as u32] {
                common.extend(number.to_le_bytes());
            }
            common.extend((name.len() as u16).to_le_bytes());
            common.extend(0u16.to_le_bytes());
            let offset = out.len() as u32;
            out.extend(LOCAL.to_le_bytes());
            out.extend(&common);
            out.extend(name.as_bytes());
            out.extend(packed);
            directory.extend(DIRECTORY.to_le_bytes());
            directory.extend([20, 0]);
            directory.extend(&common);
            directory.extend([0; 10]);
            directory.extend(offset.to_le_bytes());
            directory.extend(name.as_bytes());
        }
        let start = out.len() as u32;
        out.extend(&directory);
        out.extend(END.to_le_bytes());
        out.extend([0; 4]);
        out.extend((entries.len() as u16).to_le_bytes());
        out.extend((entries.len() as u16).to_le_bytes());
        out.extend((directory.len() as u32).to_le_bytes());
        out.extend(start.to_le_bytes());
        out.extend([0; 2]);
        out
    }

    fn opened(bytes: &[u8]) -> (tempfile::TempDir, Result<Zip, LogError>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.eval");
        std::fs::write(&path, bytes).unwrap();
        let zip = Zip::open(&path);
        (folder, zip)
    }

    #[test]
    fn entries_are_read_and_checked() {
        let bytes = archive(&[("header.json", b"{}"), ("samples/a_epoch_1.json", &[b'x'; 5000])]);
        let (_folder, zip) = opened(&bytes);
        let mut zip = zip.unwrap();
        let entry = zip.entry("samples/a_epoch_1.json").unwrap().clone();
        assert_eq!(zip.read(&entry, 5000).unwrap(), [b'x'; 5000]);
        let error = zip.read(&entry, 4999).unwrap_err().to_string();
        assert!(error.contains("entry samples/a_epoch_1.json: the sample has 5000 bytes"), "{error}");
        // One that says to be shorter than it is.
        let error = zip.read(&Entry { size: 10, ..entry.clone() }, 5000).unwrap_err().to_string();
        assert!(error.contains("does not have the 10 bytes"), "{error}");
        let error = zip.read(&Entry { crc: 1, ..entry }, 5000).unwrap_err().to_string();
        assert!(error.contains("damaged"), "{error}");
    }

    #[test]
    fn archives_that_were_cut_off_are_refused() {
        let bytes = archive(&[("header.json", b"{}"), ("samples/a_epoch_1.json", b"{\"id\": 1}")]);
        for length in 0..bytes.len() {
            let (_folder, zip) = opened(&bytes[..length]);
            assert!(zip.is_err(), "{length} of {} bytes", bytes.len());
        }
    }

    #[test]
    fn names_that_lead_out_are_known() {
        for name in ["../a", "samples/../../a", "/etc/passwd", "C:\\a", "samples\\..\\a", "a\0b"] {
            assert!(leads_out(name), "{name}");
        }
        assert!(!leads_out("samples/a..b_epoch_1.json"));
    }
}
