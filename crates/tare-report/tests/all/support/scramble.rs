//! Outcomes and records with every figure and text replaced: what no run should produce, and a file may hold.

use super::*;
use tare_model::trial::Measure;

/// The outcome with every figure and every text replaced, in turn, by the given ones.
pub fn scramble(outcome: &mut Outcome, figures: &[f64], text: &str) {
    let mut figures = figures.iter().copied().cycle();
    let mut next = || figures.next().unwrap_or(f64::NAN);
    let scramble_net = |net: &mut NetOrMissing, next: &mut dyn FnMut() -> f64| match net {
        NetOrMissing::Net(net) => {
            (net.value, net.cpus) = (next(), next());
            (net.ci95, net.ref_clock_hz) = (Some([next(), next()]), Some(next()));
            net.transport = text.into();
        }
        NetOrMissing::Missing(missing) => {
            *missing = Missing::with_remedy(text, text);
        }
    };
    let unit = outcome.figures.gross.unit().to_owned();
    outcome.figures.gross = Gross::Measured(Estimate { value: next(), unit, ci95: Some([next(), next()]) });
    scramble_net(&mut outcome.figures.net, &mut next);
    for part in &mut outcome.figures.tare {
        (part.ln_share, part.ci95) = (next(), Some([next(), next()]));
    }
    for finding in &mut outcome.verdict.findings {
        (finding.effect_ln, finding.confidence) = (next(), next());
        finding.evidence.push(Evidence { name: text.into(), value: next(), unit: text.into() });
        for words in [&mut finding.summary, &mut finding.remedy, &mut finding.confirm] {
            *words = text.into();
        }
    }
    outcome.accounting.residual_ratio = Some(next());
    let roles = [&mut outcome.accounting.sut, &mut outcome.accounting.load, &mut outcome.accounting.tare];
    for role in roles.into_iter().flatten() {
        (role.wall_s, role.run_s, role.busy_cpus, role.entitled_cpus) = (next(), next(), next(), next());
        role.wait_s =
            WaitSplit { throttled: next(), preempted: next(), self_contention: next(), scheduler: next() };
        role.blocked_s = BTreeMap::from([("event".into(), next()), (text.into(), next())]);
        role.serving.wall_s = next();
        role.serving.blocked_s = BTreeMap::from([("downstream".into(), next()), (text.into(), next())]);
        role.losses_cpus = BTreeMap::from([("throttled".into(), next()), (text.into(), next())]);
        if let Some(execution) = &mut role.execution {
            (execution.ipc, execution.on_pmu) = (Reading::Measured(next()), Some(next()));
            execution.events_per_request.insert(text.into(), next());
        }
    }
    for thread in &mut outcome.accounting.threads {
        thread.name = text.into();
        (thread.user, thread.system, thread.run, thread.wait) = (next(), next(), next(), next());
        (thread.voluntary_hz, thread.involuntary_hz) = (next(), next());
    }
    if let Some(switches) = &mut outcome.accounting.switches {
        for judged in &mut switches.hypotheses {
            (judged.figure, judged.supported_from) = (Reading::Measured(next()), next());
            (judged.of, judged.unit) = (text.into(), text.into());
        }
        for of in [&mut switches.run_queue_ns, &mut switches.wake_up_ns].into_iter().flatten() {
            (of.p99, of.powers) = (next(), (0..70).map(|_| next()).collect());
        }
    }
    for cpu in &mut outcome.accounting.cpus {
        (cpu.sut, cpu.load, cpu.tare, cpu.others) = (next(), next(), next(), next());
        (cpu.throttled, cpu.steal, cpu.irq, cpu.idle) = (next(), next(), next(), next());
        cpu.irq_error = Some(next());
        cpu.share = ModeShare { user: next(), system: next(), softirq: next() };
    }
    if let Some(requests) = &mut outcome.answers.requests {
        requests.count = Some(next() as u64);
        requests.errors.insert(text.into(), next() as u64);
        requests.cpu_ns_per_request = PerRole { sut: Some(next()), load: Some(next()) };
    }
    if let Some(latency) = &mut outcome.answers.latency_ns {
        (latency.p50, latency.p99_9, latency.max) = (Some(next()), Some(next()), Some(next()));
    }
    for command in &mut outcome.answers.commands {
        command.command = text.into();
        (command.gross.value, command.stdev_s) = (next(), Some(next()));
        (command.min_s, command.max_s, command.user_s) = (next(), next(), next());
        command.times_s.iter_mut().for_each(|time_s| *time_s = next());
        scramble_net(&mut command.net, &mut next);
    }
    for trial in &mut outcome.trials {
        (trial.elapsed_s, trial.value, trial.clock_hz) = (next(), Some(next()), Some(next()));
        trial.level = text.into();
    }
    outcome.conditions.machine.cpu_model = Reading::Measured(text.into());
    outcome.verdict.warnings.push(Warning { id: text.into(), text: text.into(), hint: text.into() });
}

/// The record with every sample and every slice replaced by the given values.
pub fn scramble_record(record: &mut Record, figures: &[f64], text: &str) {
    let mut figures = figures.iter().copied().cycle();
    let mut next = || figures.next().unwrap_or(f64::NAN);
    for trial in &mut record.trials {
        for sample in trial.observation.columns.iter_mut().flat_map(|column| &mut column.samples) {
            (sample.at_ns, sample.value) = (next() as u64, next());
        }
        trial.observation.tasks.iter_mut().for_each(|task| task.name = text.into());
        if let Measure::Http(http) = &mut trial.sample {
            http.slices.iter_mut().for_each(|slice| *slice = (next() as u64, next() as u64));
        }
    }
    record.plan.argv = vec![text.into()];
    record.notices = vec![Warning { id: text.into(), text: text.into(), hint: text.into() }];
}
