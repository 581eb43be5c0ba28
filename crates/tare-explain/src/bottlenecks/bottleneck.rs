//! What is known about one bottleneck: its rule, its words, and how to try it out.

use crate::bottlenecks::draft::Draft;
use crate::bottlenecks::input::Input;
use crate::bottlenecks::rank::Claim;
use crate::capacity::levels::Accounting;
use tare_model::cause_page::CausePage;
use tare_model::outcome::{Cause, GrossIs};

/// One bottleneck. All that is known about it stands in its own file.
pub struct Bottleneck {
    /// Its id.
    pub cause: Cause,
    /// In a sentence, as reports begin with it.
    pub title: &'static str,
    /// Which workloads it makes sense for.
    pub(crate) scope: Scope,
    /// What it cannot be judged without.
    pub(crate) needs: &'static [Input],
    /// What the gross figure measures where this is the bottleneck.
    pub(crate) gross_is: GrossIs,
    /// Whether it is the bottleneck, and what its claim stands before.
    pub(crate) holds: fn(&Accounting) -> Option<Claim>,
    /// Whether it is worth a finding when it is not the bottleneck.
    pub(crate) applies: fn(&Accounting) -> bool,
    /// What it sees, in any case: the bottleneck has its finding even when it cost nothing.
    pub(crate) describe: fn(&Accounting) -> Draft,
    /// What `--confirm` tries.
    pub confirm: Confirm,
    /// Names of the injections of `tare calibrate` that cause it, or that leave it in place.
    pub injections: &'static [&'static str],
    /// What a reader must know.
    pub page: &'static Page,
}

impl Bottleneck {
    /// Its page as data.
    pub fn to_page(&self) -> CausePage {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        CausePage {
            cause: self.cause,
            title: self.title.to_owned(),
            brief: self.page.brief.to_owned(),
            what_it_means: owned(self.page.means),
            evidence: owned(self.page.evidence),
            looks_the_same_but_is_not: owned(self.page.looks_the_same),
            what_to_do: owned(self.page.to_do),
            how_to_confirm: owned(self.page.to_confirm),
            source: owned(self.page.source),
            intervention: match self.confirm {
                Confirm::By(name) => Some(name.to_owned()),
                Confirm::Cannot { .. } => None,
            },
            injections: owned(self.injections),
        }
    }
}

/// The workloads that a bottleneck is possible in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Http,
    Command,
    Any,
}

/// How a bottleneck is confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirm {
    /// By the intervention of this name.
    By(&'static str),
    /// By none here.
    Cannot {
        /// Why not.
        why: &'static str,
        /// What to do instead.
        instead: &'static str,
    },
}

/// What `tare explain CAUSE` prints. Commands stand between backticks, and so do ids of other causes.
#[derive(Debug)]
pub struct Page {
    /// What it means, in one line.
    pub brief: &'static str,
    /// What it means.
    pub means: &'static [&'static str],
    /// What it is known by.
    pub evidence: &'static [&'static str],
    /// What looks the same but is not, and how to tell it apart.
    pub looks_the_same: &'static [&'static str],
    /// What to do.
    pub to_do: &'static [&'static str],
    /// How to confirm or refute it.
    pub to_confirm: &'static [&'static str],
    /// Where the data and the reasoning come from.
    pub source: &'static [&'static str],
}
