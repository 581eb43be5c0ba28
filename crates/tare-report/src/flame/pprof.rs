//! Stacks as a gzipped protocol buffer that `pprof` reads: <https://github.com/google/pprof/blob/main/proto/profile.proto>.
//!
//! Some ten fields of one message are written, and none is read: that is shorter than a generator of code for them.

use super::choice::{Choice, FlameError, chosen};
use flate2::Compression;
use flate2::read::GzEncoder;
use std::collections::HashMap;
use std::io::Read;
use tare_model::stacks::{Frame, Stacks};

const WIRE_VARINT: u64 = 0;
const WIRE_BYTES: u64 = 2;

/// The chosen stacks for `pprof`. Each frame is a function; a thread's name is the label `thread` of its samples.
///
/// # Errors
/// There are none.
pub fn pprof(stacks: &Stacks, choice: &Choice) -> Result<Vec<u8>, FlameError> {
    let (profile, of) = chosen(stacks, choice)?;
    let mut strings = Strings::default();
    let mut all = Message::default();
    let [kind, unit] = if choice.off_cpu { ["off-cpu", "nanoseconds"] } else { ["samples", "count"] };
    let value_type = |strings: &mut Strings, kind: &str, unit: &str| {
        let mut message = Message::default();
        message.number(1, strings.index(kind));
        message.number(2, strings.index(unit));
        message
    };
    all.message(1, &value_type(&mut strings, kind, unit));
    // Time as well as samples: what `pprof -top` shows unless asked otherwise is the last.
    let period_ns = profile.rate_hz.filter(|_| !choice.off_cpu).map(|hz| (1e9 / hz) as u64);
    if period_ns.is_some() {
        all.message(1, &value_type(&mut strings, "cpu", "nanoseconds"));
    }
    let label_thread = strings.index("thread");
    for stack in of {
        let mut sample = Message::default();
        // Innermost first, and numbered from 1.
        sample.numbers(1, stack.frames.iter().rev().map(|index| u64::from(*index) + 1));
        let time_ns = period_ns.map(|period| stack.value.saturating_mul(period));
        sample.numbers(2, std::iter::once(stack.value).chain(time_ns));
        if let Some(thread) = stacks.frame(stack.thread) {
            let mut label = Message::default();
            label.number(1, label_thread);
            label.number(2, strings.index(&thread.symbol));
            sample.message(3, &label);
        }
        all.message(2, &sample);
    }
    for (id, module) in (1..).zip(&stacks.modules) {
        let mut mapping = Message::default();
        mapping.number(1, id);
        mapping.number(5, strings.index(&module.path));
        mapping.number(6, strings.index(module.build_id.as_deref().unwrap_or_default()));
        mapping.number(7, 1);
        all.message(3, &mapping);
    }
    for (id, frame) in (1..).zip(&stacks.frames) {
        functions(&mut all, &mut strings, id, frame);
    }
    if let Some(period) = period_ns {
        all.message(11, &value_type(&mut strings, "cpu", "nanoseconds"));
        all.number(12, period);
    }
    strings.all.iter().for_each(|string| all.bytes(6, string.as_bytes()));
    let mut packed = Vec::new();
    GzEncoder::new(all.0.as_slice(), Compression::default())
        .read_to_end(&mut packed)
        .map_err(|error| FlameError::Drawing(error.to_string()))?;
    Ok(packed)
}

/// A frame's location and function, under the same number.
fn functions(all: &mut Message, strings: &mut Strings, id: u64, frame: &Frame) {
    let mut line = Message::default();
    line.number(1, id);
    let mut location = Message::default();
    location.number(1, id);
    location.number(2, frame.module.map_or(0, |module| u64::from(module) + 1));
    location.message(4, &line);
    all.message(4, &location);
    let mut function = Message::default();
    function.number(1, id);
    function.number(2, strings.index(&frame.symbol));
    function.number(3, strings.index(&frame.symbol));
    all.message(5, &function);
}

/// The table of strings; the first is empty, as the format wants.
struct Strings {
    all: Vec<String>,
    known: HashMap<String, u64>,
}

impl Default for Strings {
    fn default() -> Self {
        Strings { all: vec![String::new()], known: HashMap::from([(String::new(), 0)]) }
    }
}

impl Strings {
    fn index(&mut self, text: &str) -> u64 {
        if let Some(index) = self.known.get(text) {
            return *index;
        }
        let index = self.all.len() as u64;
        self.all.push(text.to_owned());
        self.known.insert(text.to_owned(), index);
        index
    }
}

/// A protocol buffer while it is written: <https://protobuf.dev/programming-guides/encoding>.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3 | WIRE_VARINT);
        self.varint(value);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | WIRE_BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u64, message: &Message) {
        self.bytes(field, &message.0);
    }

    fn numbers(&mut self, field: u64, values: impl Iterator<Item = u64>) {
        let mut packed = Message::default();
        values.for_each(|value| packed.varint(value));
        self.message(field, &packed);
    }
}
