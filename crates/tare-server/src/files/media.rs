//! Media types by the ending of a name.

/// Ending and media type of what is served most.
const TYPES: &[(&str, &str)] = &[
    ("avif", "image/avif"),
    ("bin", "application/octet-stream"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("ico", "image/x-icon"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("md", "text/markdown"),
    ("mjs", "text/javascript"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("otf", "font/otf"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("ttf", "font/ttf"),
    ("txt", "text/plain"),
    ("wasm", "application/wasm"),
    ("webm", "video/webm"),
    ("webp", "image/webp"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("xml", "application/xml"),
    ("zip", "application/zip"),
];

/// The media type of a path; bytes without a meaning where the ending is unknown.
pub(super) fn of_path(path: &[u8]) -> &'static str {
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
    let ending = name.rsplit(|b| *b == b'.').next().filter(|e| e.len() < name.len()).unwrap_or(b"");
    let of_ending = |(known, _): &&(&str, &str)| known.as_bytes().eq_ignore_ascii_case(ending);
    TYPES.iter().find(of_ending).map_or("application/octet-stream", |(_, media_type)| media_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_tell_the_type() {
        assert_eq!(of_path(b"a/b.HTML"), "text/html");
        assert_eq!(of_path(b"a.css/b"), "application/octet-stream");
        assert_eq!(of_path(b"html"), "application/octet-stream");
        assert_eq!(of_path(b"x.tar.gz"), "application/gzip");
        assert!(TYPES.is_sorted(), "kept in order, so that a double is seen");
    }
}
