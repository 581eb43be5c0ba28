//! From the path of a request to one below the folder.

use std::ffi::CStr;

/// Longest decoded path, in bytes; there is room for an index, a suffix and a NUL beyond it.
const PATH_BYTES_MAX: usize = 2048;
const INDEX: &[u8] = b"index.html";
const ROOM: usize = 16;

/// A percent-decoded path relative to the folder, in a buffer of its own.
pub(super) struct Decoded {
    buffer: [u8; PATH_BYTES_MAX + ROOM],
    len: usize,
}

impl Decoded {
    /// Decodes; `None` for what is no path below the folder: a bad escape, a NUL, longer than any file's, absolute, or with `..` in it.
    pub(super) fn new(path: &str) -> Option<Decoded> {
        let mut decoded = Decoded { buffer: [0; PATH_BYTES_MAX + ROOM], len: 0 };
        let mut bytes = path.trim_start_matches('/').bytes();
        while let Some(byte) = bytes.next() {
            let byte = match byte {
                b'%' => hex(bytes.next()?)? << 4 | hex(bytes.next()?)?,
                other => other,
            };
            if byte == 0 || decoded.len == PATH_BYTES_MAX {
                return None;
            }
            decoded.buffer[decoded.len] = byte;
            decoded.len += 1;
        }
        // Refused here and not only by the kernel when it is opened: it is looked at before, and that may take long
        // on what is mounted elsewhere. A link that leads there was made by the folder's owner.
        let mut segments = decoded.bytes().split(|byte| *byte == b'/');
        let leads_out = decoded.bytes().starts_with(b"/") || segments.any(|segment| segment == b"..");
        (!leads_out).then_some(decoded)
    }

    /// Names the index where a folder is asked for; whether that was so.
    pub(super) fn add_index(&mut self) -> bool {
        let is_folder = self.len == 0 || self.bytes().ends_with(b"/");
        if is_folder {
            self.buffer[self.len..self.len + INDEX.len()].copy_from_slice(INDEX);
            self.len += INDEX.len();
        }
        is_folder
    }

    /// As the kernel takes it.
    pub(super) fn text(&mut self) -> Option<&CStr> {
        self.with_suffix("")
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// The path with a suffix; the path itself stays as it is.
    pub(super) fn with_suffix(&mut self, suffix: &str) -> Option<&CStr> {
        let end = self.len + suffix.len();
        self.buffer.get_mut(self.len..end)?.copy_from_slice(suffix.as_bytes());
        *self.buffer.get_mut(end)? = 0;
        CStr::from_bytes_with_nul(&self.buffer[..=end]).ok()
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|d| d as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(path: &str) -> Option<String> {
        let mut decoded = Decoded::new(path)?;
        decoded.add_index();
        Some(String::from_utf8_lossy(decoded.bytes()).into_owned())
    }

    #[test]
    fn paths_are_decoded_and_folders_get_their_index() {
        assert_eq!(decoded("/"), Some("index.html".into()));
        assert_eq!(decoded("//a/"), Some("a/index.html".into()));
        assert_eq!(decoded("/a%20b%2e"), Some("a b.".into()));
        assert_eq!(decoded("/a../..b"), Some("a../..b".into()));
        let out = ["/..", "/a/../b", "/%2e%2e/b", "/%2Fetc/passwd"];
        for bad in out.into_iter().chain(["/%", "/%2", "/%zz", "/a%00", &format!("/{}", "a".repeat(3000))]) {
            assert_eq!(decoded(bad), None, "{bad}");
        }
        let longest = format!("/{}/", "a".repeat(PATH_BYTES_MAX - 1));
        assert_eq!(decoded(&longest).map(|p| p.len()), Some(PATH_BYTES_MAX + INDEX.len()));
    }

    #[test]
    fn a_suffix_is_gone_again_and_the_longest_has_room_for_one() {
        let mut path = Decoded::new(&format!("/{}/", "a".repeat(PATH_BYTES_MAX - 1))).unwrap();
        path.add_index();
        assert!(path.with_suffix(".gz").unwrap().to_bytes().ends_with(b"/index.html.gz"));
        assert!(path.text().unwrap().to_bytes().ends_with(b"/index.html"));
    }
}
