//! Which code ran, and where threads waited.

use super::source::{Medium, Section, Source};
use crate::block::{Block, Flame, Text};
use crate::flame::{self, Choice, FlameError};
use tare_model::observation::Role;

pub(crate) static SECTION: Section = Section { title: "Call stacks", media: &[Medium::Page], build };

fn build(source: &Source) -> Vec<Block> {
    let Ok(stacks) = flame::of_record(source.record) else { return Vec::new() };
    let shown = [
        ("What the server ran", Role::Sut, false),
        ("Where the server's threads waited", Role::Sut, true),
        ("What the load generator ran", Role::Load, false),
    ];
    let block = |(caption, role, off_cpu): (&str, Role, bool)| {
        let choice = Choice { role, off_cpu, by_thread: false };
        let drawn =
            flame::inline(&stacks, &choice).and_then(|svg| Ok((svg, flame::facts(&stacks, &choice)?)));
        match drawn {
            Ok((svg, facts)) => Block::Flame(Flame { caption: caption.into(), svg, facts }),
            // Waiting that nobody asked for, or why nothing could be sampled.
            Err(error @ FlameError::None(_)) => Block::Line(Text::dim(format!("{caption}: {error}"))),
            Err(error) => Block::Line(Text::plain(format!("{caption}: {error}"))),
        }
    };
    shown.into_iter().map(block).collect()
}
