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
}

/// Rows and columns.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Table {
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
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
