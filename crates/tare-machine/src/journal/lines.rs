//! Lines of a journal as they are on disk, those of tare 0.1.0 too: it called a setting a knob, and to apply it to turn
//! it. What a killed run of it left is undone by this one.

use super::entry::Entry;
use serde_json::Value;

/// `None` for what is no line of a journal.
pub(super) fn read(line: &[u8]) -> Option<Entry> {
    serde_json::from_slice(line).ok().or_else(|| of_the_first_release(line))
}

fn of_the_first_release(line: &[u8]) -> Option<Entry> {
    let mut value: Value = serde_json::from_slice(line).ok()?;
    let fields = value.as_object_mut().filter(|fields| fields.get("entry") == Some(&"will-turn".into()))?;
    let setting = fields.remove("knob")?;
    fields.insert("setting".to_owned(), setting);
    fields.insert("entry".to_owned(), "will-apply".into());
    serde_json::from_value(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::to_string;

    #[test]
    fn lines_of_the_first_release_are_read_and_others_written_as_then() {
        let line = r#"{"entry":"will-turn","knob":"thp","path":"/sys/kernel/mm/x","before":"madvise","wanted":"never","moves_by_itself":false,"root":"/","filesystem":1650746742}"#;
        let Entry::WillApply(change) = read(line.as_bytes()).unwrap() else { panic!("{line}") };
        assert_eq!(
            (&*change.setting, &*change.before, change.filesystem),
            ("thp", "madvise", Some(1_650_746_742))
        );
        for line in [
            r#"{"entry":"holding","standing":true,"values":[["/sys/kernel/mm/x","never"]]}"#,
            r#"{"entry":"restoring"}"#,
            r#"{"entry":"put-back","path":"/sys/kernel/mm/x"}"#,
            r#"{"entry":"will-pin","id":{"pid":7,"start_ticks":8},"process":7,"cpus_before":[0,1],"cpus":[1]}"#,
            r#"{"entry":"unpinned","id":{"pid":7,"start_ticks":8}}"#,
            r#"{"entry":"will-make-group","dir":"/sys/fs/cgroup/tare-1"}"#,
            r#"{"entry":"removed-group","dir":"/sys/fs/cgroup/tare-1"}"#,
            r#"{"entry":"started","id":{"pid":7,"start_ticks":8},"pgid":7}"#,
        ] {
            assert_eq!(to_string(&read(line.as_bytes()).unwrap()).unwrap(), line);
        }
    }
}
