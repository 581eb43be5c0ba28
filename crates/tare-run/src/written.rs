//! The record that a session writes, on disk and in memory: each trial is in both or in neither.

use tare_model::Record;
use tare_model::identity::Identity;
use tare_model::intervention::Intervention;
use tare_model::machine::MachineFacts;
use tare_model::outcome::Warning;
use tare_model::plan::{Plan, Purpose, Workload};
use tare_model::stacks::Stacks;
use tare_model::trial::Trial;
use tare_store::{StoreError, Writer};

pub(crate) struct Written {
    record: Record,
    writer: Writer,
}

impl Written {
    /// The record of a plan, with what was noticed before there was one.
    pub(crate) fn begin(
        mut writer: Writer,
        machine: MachineFacts,
        plan: Plan,
        identity: Identity,
        notices: Vec<Warning>,
    ) -> Result<Self, StoreError> {
        for notice in &notices {
            writer.notice(notice)?;
        }
        writer.identify(&identity)?;
        let identity = Some(Box::new(identity));
        let record = Record {
            machine,
            plan,
            trials: Vec::new(),
            profile: Vec::new(),
            notices,
            identity,
            intervention: None,
        };
        Ok(Written { record, writer })
    }

    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.record.plan
    }

    /// Whether a level is the one that was asked for.
    pub(crate) fn is_asked(&self, level: u32) -> bool {
        let Workload::Http(http) = &self.record.plan.workload else { return false };
        http.levels.get(level as usize).is_some_and(|level| level.purpose == Purpose::Asked)
    }

    /// How many levels share the time of this one's trials; 1 where it has them to itself.
    pub(crate) fn arms(&self, level: u32) -> u32 {
        let Workload::Http(http) = &self.record.plan.workload else { return 1 };
        http.levels.get(level as usize).map_or(1, |level| level.arms.max(1))
    }

    pub(crate) fn trial(&mut self, trial: Trial) -> Result<(), StoreError> {
        self.writer.append(&trial)?;
        self.record.trials.push(trial);
        Ok(())
    }

    /// The windows are in the record in any case; the error is that of the file.
    pub(crate) fn profile(&mut self, windows: Vec<Stacks>) -> Result<(), StoreError> {
        let written = windows.iter().try_for_each(|window| self.writer.profiled(window));
        self.record.profile.extend(windows);
        written
    }

    pub(crate) fn notice(&mut self, warning: Warning) -> Result<(), StoreError> {
        self.writer.notice(&warning)?;
        self.record.notices.push(warning);
        Ok(())
    }

    /// A warning about the file itself, which may refuse it.
    pub(crate) fn remark(&mut self, warning: Warning) {
        self.writer.notice(&warning).ok();
        self.record.notices.push(warning);
    }

    pub(crate) fn intervention(&mut self, tried: Intervention) -> Result<(), StoreError> {
        self.writer.intervened(&tried)?;
        self.record.intervention = Some(tried);
        Ok(())
    }

    /// Closes the file. What was written before a failure is there.
    pub(crate) fn end(mut self, last: Option<Warning>) -> (Record, Result<(), StoreError>) {
        if let Some(warning) = last {
            // What is wrong with the file is said by its end; the reader of this result is to know it in any case.
            self.remark(warning);
        }
        let finished = self.writer.finish();
        (self.record, finished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::Missing;

    #[test]
    fn a_profile_that_the_disk_refuses_is_in_the_result_all_the_same() {
        let known = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/records/program-computes.tare");
        let Record { machine, plan, identity, .. } = tare_store::read(known.as_ref()).expect("a record");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("result.tare");
        let writer = Writer::create(&path, &machine, &plan).expect("a writer");
        let identity = *identity.expect("knows who took part");
        let mut written = Written::begin(writer, machine, plan, identity, Vec::new()).expect("begun");
        std::fs::write(&path, "no database any more").expect("overwritten");
        let window = || Stacks::missing(Missing::new("not permitted"));
        written.profile(vec![window(), window()]).expect_err("no file that could take it");
        written.remark(Warning { id: "profile-not-kept".into(), text: "why".into(), hint: "what".into() });
        let (record, closed) = written.end(None);
        assert!(closed.is_err());
        assert_eq!((record.profile.len(), record.notices.len()), (2, 1));
    }
}
