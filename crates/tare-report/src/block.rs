//! What a report is made of, whatever it is shown on.

/// How something is meant. Renderers choose the colour; the words say it without any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Strong,
    Dim,
    Good,
    Warn,
    Bad,
}

/// Words with a tone.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Text {
    pub text: String,
    pub tone: Tone,
}

impl Text {
    pub fn new(text: impl Into<String>, tone: Tone) -> Self {
        Text { text: text.into(), tone }
    }

    pub fn plain(text: impl Into<String>) -> Self {
        Text::new(text, Tone::Plain)
    }

    pub fn dim(text: impl Into<String>) -> Self {
        Text::new(text, Tone::Dim)
    }

    pub fn strong(text: impl Into<String>) -> Self {
        Text::new(text, Tone::Strong)
    }
}

/// One piece of a section.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Block {
    /// The sentence that a reader takes away.
    Headline(Text),
    /// A paragraph.
    Line(Text),
    /// Labels and values.
    Pairs(Vec<(String, String)>),
    /// Rows and columns.
    Table(Table),
    /// Things to read one by one: findings, warnings.
    Notes(Vec<Note>),
    /// The few figures that matter most, large. Text media leave this and the drawings below out: the same
    /// figures stand in a table beside them.
    Figures(Vec<Figure>),
    /// How one figure becomes another, step by step.
    Steps(Vec<Step>),
    /// Wholes and their parts.
    Bars(Bars),
    /// Lines over a common axis.
    Chart(Chart),
    /// Call stacks.
    Flame(Flame),
}

/// A flame graph that is drawn already.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Flame {
    pub caption: String,
    /// Markup that [`crate::flame`] made: nothing in it runs, links or is left open.
    pub svg: String,
    /// What it is of, and what is not in it.
    pub facts: String,
}

/// Rows and columns.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Table {
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
}

/// What other programs read: one header, and a field in each row for each of its names.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Rows {
    /// Names, units last.
    pub header: &'static [&'static str],
    pub rows: Vec<Vec<Field>>,
}

/// One field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Field {
    Text(String),
    /// `None` is an empty field.
    Number(Option<f64>),
}

impl From<&str> for Field {
    fn from(text: &str) -> Field {
        Field::Text(text.to_owned())
    }
}

impl From<String> for Field {
    fn from(text: String) -> Field {
        Field::Text(text)
    }
}

impl From<f64> for Field {
    fn from(number: f64) -> Field {
        Field::Number(Some(number))
    }
}

impl From<Option<f64>> for Field {
    fn from(number: Option<f64>) -> Field {
        Field::Number(number)
    }
}

impl Field {
    /// Both ends of an interval; empty fields where there is none.
    pub fn ends(interval: Option<[f64; 2]>) -> [Field; 2] {
        interval.map_or([None; 2], |ends| ends.map(Some)).map(Field::from)
    }
}

/// One column of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    pub title: String,
    pub align: Align,
    /// Where there is no room the column with the highest rank goes first; rank 0 always stays.
    pub rank: u8,
}

impl Column {
    /// A column of words.
    pub fn words(title: &str, rank: u8) -> Self {
        Column { title: title.into(), align: Align::Left, rank }
    }

    /// A column of figures.
    pub fn figures(title: &str, rank: u8) -> Self {
        Column { title: title.into(), align: Align::Right, rank }
    }
}

/// Words to the left, figures to the right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// One row of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Row {
    /// A cell for each column.
    Cells(Vec<Text>),
    /// The same under a rule: what the rows above come to.
    Total(Vec<Text>),
    /// Words across all columns, about the rows below.
    Heading(Text),
}

impl Row {
    /// A row for each item, below its heading: the heading stands once for items that follow each other, and not at all where it is empty.
    pub fn below_headings<'a, T>(
        items: &'a [T],
        heading: impl Fn(&'a T) -> &'a str,
        cells: impl Fn(&'a T) -> Vec<Text>,
    ) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut last: Option<&str> = None;
        for item in items {
            let title = heading(item);
            if last != Some(title) && !title.is_empty() {
                rows.push(Row::Heading(Text::strong(title)));
            }
            last = Some(title);
            rows.push(Row::Cells(cells(item)));
        }
        rows
    }
}

/// A thing to read on its own.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Note {
    pub title: Text,
    /// Figures about it, short.
    pub aside: String,
    /// What it says.
    pub body: String,
    /// What follows from it, by label (`hint`, `do`, `confirm`).
    pub lines: Vec<(&'static str, String)>,
}

/// One figure, shown large.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figure {
    pub label: &'static str,
    pub value: Text,
    /// How sure it is and what it holds for.
    pub notes: Vec<String>,
}

/// What a mark stands for. The medium chooses a colour for each, the legend has its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hue {
    Server,
    Load,
    Tare,
    Others,
    Throttled,
    Steal,
    Irq,
    Idle,
    Net,
}

/// One step of a waterfall.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub label: String,
    /// Where it begins and ends, as shares of the largest end of any step.
    pub span: [f64; 2],
    /// The figure beside it.
    pub figure: String,
    /// What it means, for those who ask.
    pub meaning: String,
    pub hue: Hue,
}

/// Bars of the same length, split into parts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bars {
    pub caption: String,
    /// Every part that occurs, in the order in which the bars show them.
    pub legend: Vec<(Hue, String)>,
    pub rows: Vec<Bar>,
}

/// One whole and its parts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bar {
    pub label: String,
    /// Share of the whole and the words for it.
    pub parts: Vec<(Hue, f64, String)>,
}

/// Panels over one horizontal axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chart {
    pub caption: String,
    pub x: Axis,
    pub panels: Vec<Panel>,
}

/// One vertical axis and its lines.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Panel {
    pub y: Axis,
    pub lines: Vec<Line>,
    /// Areas behind the lines.
    pub bands: Vec<Band>,
}

/// An area between two lines.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Band {
    pub name: String,
    pub hue: Hue,
    /// x, lower y, upper y, in the axes' units.
    pub edges: Vec<[f64; 3]>,
}

/// An axis from `ends[0]` to `ends[1]`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    pub label: String,
    pub ends: [f64; 2],
    pub ticks: Vec<(f64, String)>,
}

/// A line; a new run begins where nothing was measured between two points.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    pub name: String,
    pub hue: Hue,
    /// Points joined by a line, or standing alone.
    pub joined: bool,
    pub runs: Vec<Vec<Point>>,
}

/// A point in the axes' units, and the words for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Point {
    pub x: f64,
    pub y: f64,
    pub words: String,
}
