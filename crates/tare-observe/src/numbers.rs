//! Files that hold a few numbers each, read at the edges and between them: what most series are.

use crate::observed::{Observed, changes, refused};
use crate::observer::{Edge, Observer};
use crate::scene::Scene;
use crate::tape::Tape;
use std::fs::File;
use tare_model::Missing;
use tare_model::metric::{Descriptor, Subject};
use tare_model::observation::Sample;

/// Most files of one observer.
const FILES_MAX: usize = 256;

/// Finds what is to be read in a window that is about to open.
pub(crate) type Find = fn(&Scene) -> Found;

/// What there is, and why something is not.
#[derive(Default)]
pub(crate) struct Found {
    files: Vec<NumbersFile>,
    absences: Vec<(&'static Descriptor, Option<Subject>, Missing)>,
}

/// A file and its numbers.
struct NumbersFile {
    name: String,
    file: Result<File, Missing>,
    bytes_max: usize,
    numbers: Vec<Number>,
}

/// How a number is found in a file's text.
pub(crate) type Parse = Box<dyn Fn(&str) -> Option<f64> + Send>;

/// One number of a file.
pub(crate) struct Number {
    pub(crate) metric: &'static Descriptor,
    pub(crate) whose: Whose,
    /// In the metric's unit.
    pub(crate) parse: Parse,
    /// Of a number that hardly ever moves only the changes are kept.
    pub(crate) rare: bool,
}

/// Whom a number is about.
pub(crate) enum Whose {
    Subject(Subject),
    /// A thread, which is listed when this is reported.
    Thread(u32),
}

impl Found {
    /// A file to be read; one that cannot be opened leaves its numbers missing.
    pub(crate) fn file(&mut self, scene: &Scene, path: &str, bytes_max: usize, numbers: Vec<Number>) {
        if self.files.len() < FILES_MAX {
            let file = File::open(scene.root.path(path)).map_err(|error| refused(path, &error));
            self.files.push(NumbersFile { name: path.to_owned(), file, bytes_max, numbers });
        }
    }

    /// Something that is not there for all or for one.
    pub(crate) fn absent(&mut self, metric: &'static Descriptor, subject: Option<Subject>, reason: Missing) {
        self.absences.push((metric, subject, reason));
    }
}

/// Reads what `find` finds, `sample_hz` times a second between the edges.
pub(crate) fn observer(find: Find, sample_hz: f64) -> Box<dyn Observer> {
    Box::new(Numbers { find, sample_hz, found: Found::default(), tape: Tape::default() })
}

struct Numbers {
    find: Find,
    sample_hz: f64,
    found: Found,
    tape: Tape,
}

impl Numbers {
    fn read(&mut self) {
        for (source, file) in (0u32..).zip(&mut self.found.files) {
            let read = file.file.as_ref().ok().map(|open| self.tape.record(source, open, file.bytes_max));
            if let Some(Err(error)) = read {
                file.file = Err(refused(&file.name, &error));
            }
        }
    }
}

impl Observer for Numbers {
    fn prepare(&mut self, scene: &Scene) {
        self.tape.clear();
        self.found = (self.find)(scene);
    }

    fn edge(&mut self, _edge: &mut Edge) {
        self.read();
    }

    fn sample(&mut self, scene: &Scene, tick: u64) {
        if tick.is_multiple_of(scene.every(self.sample_hz)) {
            self.read();
        }
    }

    fn next(&self, scene: &Scene, tick: u64) -> u64 {
        scene.next(self.sample_hz, tick)
    }

    fn report(&mut self, _scene: &Scene, observed: &mut Observed) {
        for (metric, subject, reason) in &self.found.absences {
            observed.absent(metric, subject.clone(), reason.clone());
        }
        for (source, file) in (0u32..).zip(&self.found.files) {
            let readings: Vec<_> = self.tape.readings().filter(|reading| reading.source == source).collect();
            for number in &file.numbers {
                let subject = match &number.whose {
                    Whose::Subject(subject) => Some(subject.clone()),
                    Whose::Thread(tid) => observed.subject_of(*tid),
                };
                let Some(subject) = subject else {
                    let Whose::Thread(tid) = number.whose else { continue };
                    let why = format!("thread {tid} did not run in the window, and is not listed");
                    observed.absent(number.metric, None, Missing::new(why));
                    continue;
                };
                let sample = |reading: &crate::tape::Reading| {
                    let value = (number.parse)(reading.text())?;
                    Some(Sample { at_ns: reading.at_ns, value })
                };
                let samples: Vec<Sample> = readings.iter().filter_map(sample).collect();
                if samples.is_empty() {
                    let absent = Missing::new(format!("{} does not tell it", file.name));
                    let reason = file.file.as_ref().err().cloned().unwrap_or(absent);
                    observed.absent(number.metric, Some(subject.clone()), reason);
                }
                let samples = if number.rare { changes(samples) } else { samples };
                observed.column(number.metric, subject, samples);
            }
        }
    }
}
