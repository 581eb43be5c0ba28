//! What a tracepoint hands over, as its `format` file tells: where each field stands in the raw bytes of a record.

/// Lines that are looked at, at most; the largest format of a kernel has some hundred.
const LINES_MAX: usize = 1000;

/// Number and fields of a tracepoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    pub(super) id: u64,
    fields: Vec<(String, Field)>,
}

/// Where a field stands in the raw bytes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Bytes before it.
    pub offset: usize,
    /// Its length in bytes.
    pub size: usize,
}

impl Format {
    /// Reads the text of a `format` file; `None` where it is none.
    pub fn parse(text: &str) -> Option<Format> {
        let lines = || text.lines().take(LINES_MAX);
        let id = lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        let fields: Vec<(String, Field)> = lines().filter_map(parse_field).collect();
        (!fields.is_empty()).then_some(Format { id, fields })
    }

    /// A field by its name.
    pub fn field(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, field)| *field)
    }
}

/// `field:char prev_comm[16]; offset:8; size:16; signed:0;`
fn parse_field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
    let declared = parts.next()?;
    let name = declared.rsplit([' ', '*']).next()?.split('[').next()?;
    let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse().ok();
    let (offset, size) = (number("offset:")?, number("size:")?);
    (!name.is_empty()).then(|| (name.to_string(), Field { offset, size }))
}

impl Field {
    /// Its bytes; `None` where the record is shorter.
    pub fn bytes(self, raw: &[u8]) -> Option<&[u8]> {
        raw.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// Its value without a sign: numbers of 1, 2, 4 or 8 bytes.
    pub fn unsigned(self, raw: &[u8]) -> Option<u64> {
        let bytes = self.bytes(raw)?;
        Some(match bytes.len() {
            1 => u64::from(bytes[0]),
            2 => u64::from(u16::from_ne_bytes(bytes.try_into().ok()?)),
            4 => u64::from(u32::from_ne_bytes(bytes.try_into().ok()?)),
            8 => u64::from_ne_bytes(bytes.try_into().ok()?),
            _ => return None,
        })
    }

    /// Its value with a sign.
    pub fn signed(self, raw: &[u8]) -> Option<i64> {
        let value = self.unsigned(raw)?;
        let unused = 64 - 8 * self.size as u32;
        Some(((value << unused) as i64) >> unused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SWITCH: &str = include_str!("formats/sched_switch");
    const CONTENTION: &str = include_str!("formats/contention_begin");

    #[test]
    fn fields_stand_where_the_kernel_says() {
        let format = Format::parse(SWITCH).unwrap();
        assert!(format.id > 0);
        assert_eq!(format.field("common_type"), Some(Field { offset: 0, size: 2 }));
        assert_eq!(format.field("prev_comm"), Some(Field { offset: 8, size: 16 }));
        assert_eq!(format.field("prev_state"), Some(Field { offset: 32, size: 8 }));
        assert_eq!(format.field("comm"), None);
        let contention = Format::parse(CONTENTION).unwrap();
        assert_eq!(contention.field("lock_addr"), Some(Field { offset: 8, size: 8 }));
    }

    #[test]
    fn numbers_keep_their_signs() {
        let field = |offset, size| Field { offset, size };
        let raw = (-2i32).to_ne_bytes();
        assert_eq!(field(0, 4).signed(&raw), Some(-2));
        assert_eq!(field(0, 4).unsigned(&raw), Some(u64::from(u32::MAX) - 1));
        assert_eq!(field(0, 8).signed(&raw), None);
        assert_eq!(field(usize::MAX, 8).unsigned(&raw), None);
        assert_eq!(field(0, 3).unsigned(&raw), None);
        assert_eq!(field(0, 0).signed(&raw), None);
    }

    proptest! {
        #[test]
        fn a_garbled_format_is_refused_or_read(cut in 0..SWITCH.len(), text in "\\PC{0,120}", raw in prop::collection::vec(any::<u8>(), 0..80)) {
            Format::parse(&text);
            Format::parse(&format!("ID: 1\n\tfield:{text};\toffset:8;\tsize:99;"));
            if let Some(format) = Format::parse(&SWITCH[..cut]) {
                for (_, field) in &format.fields {
                    field.signed(&raw);
                }
            }
        }
    }
}
