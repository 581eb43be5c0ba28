//! Names for addresses, by `blazesym`, while the processes live: symbol tables, debug files found by build id or debug
//! link, perf maps of run-time compilers, the vdso, and the kernel's own list.

use super::counts::{Chain, is_kernel};
use crate::maps::{self, Map};
use crate::scene::Scene;
use crate::watch::Names;
use blazesym::MaybeDefault;
use blazesym::Pid;
use blazesym::helper::read_elf_build_id;
use blazesym::symbolize::source::{Kernel, Process, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tare_machine::Root;
use tare_model::stacks::{Folder, Frame, FrameKind, Module, UNKNOWN};
use tare_model::{Missing, hexadecimal};

/// Distinct addresses that are given names, at most.
const ADDRESSES_MAX: usize = 1 << 20;

thread_local! {
    /// Of the kernel: it keeps the list of its functions, which takes longer to read than a trial's names to find.
    static KERNEL: Symbolizer = symbolizer();
}

/// Neither lines nor inlined functions: a frame is what the machine calls.
fn symbolizer() -> Symbolizer {
    Symbolizer::builder().enable_code_info(false).enable_inlined_fns(false).build()
}

/// The frames of addresses.
pub(super) struct Symbols {
    /// By process, or none for the kernel.
    frames: HashMap<(Option<u32>, u64), u32>,
    unknown: u32,
    /// What could not be named, and why.
    pub(super) unseen: Vec<Missing>,
}

impl Symbols {
    /// Names every address of these chains, by what `names` says.
    pub(super) fn resolve<'a>(
        chains: impl Iterator<Item = Chain<'a>>,
        names: Names,
        folder: &mut Folder,
        scene: &Scene,
    ) -> Symbols {
        let mut wanted: BTreeMap<Option<u32>, BTreeSet<u64>> = BTreeMap::new();
        let mut room = ADDRESSES_MAX;
        for chain in chains {
            for address in chain.addresses() {
                let process = (!is_kernel(address)).then(|| chain.pid());
                if room > 0 && wanted.entry(process).or_default().insert(address) {
                    room -= 1;
                }
            }
        }
        let unknown = folder.frame(Frame::mark(UNKNOWN));
        let mut symbols = Symbols { frames: HashMap::new(), unknown, unseen: Vec::new() };
        let symbolizer = symbolizer();
        let mut modules = Modules { root: &scene.root, known: HashMap::new() };
        for (process, addresses) in wanted {
            let addresses: Vec<u64> = addresses.into_iter().collect();
            match process {
                Some(pid) => symbols.process((pid, &addresses), names, &symbolizer, &mut modules, folder),
                None => KERNEL.with(|kernel| symbols.kernel(&addresses, kernel, folder, &scene.root)),
            }
        }
        symbols
    }

    /// The frames of a chain, innermost first.
    pub(super) fn frames(&self, chain: Chain) -> Vec<u32> {
        let frame = |address| {
            let process = (!is_kernel(address)).then(|| chain.pid());
            self.frames.get(&(process, address)).copied().unwrap_or(self.unknown)
        };
        chain.addresses().map(frame).collect()
    }

    fn kernel(&mut self, addresses: &[u64], symbolizer: &Symbolizer, folder: &mut Folder, root: &Root) {
        let mut source = Kernel { vmlinux: MaybeDefault::None, debug_syms: false, ..Kernel::default() };
        source.kallsyms = MaybeDefault::Some(root.path("/proc/kallsyms"));
        let unnamed =
            folder.frame(Frame { symbol: "[kernel]".into(), module: None, kind: FrameKind::Kernel });
        if hides_addresses(root) {
            self.unseen.push(Missing::with_remedy(
                "the names of the kernel's functions are hidden (kernel.kptr_restrict)",
                "run tare as root, or set kernel.kptr_restrict to 0",
            ));
            self.frames.extend(addresses.iter().map(|address| ((None, *address), unnamed)));
            return;
        }
        let found = symbolizer.symbolize(&Source::Kernel(source), Input::AbsAddr(addresses));
        let found = found.unwrap_or_else(|error| {
            self.unseen.push(Missing::new(format!("the kernel's functions have no names: {error}")));
            Vec::new()
        });
        for (at, address) in addresses.iter().enumerate() {
            let frame = match found.get(at) {
                Some(Symbolized::Sym(sym)) => folder.frame(Frame {
                    symbol: sym.name.to_string(),
                    module: None,
                    kind: FrameKind::Kernel,
                }),
                _ => unnamed,
            };
            self.frames.insert((None, *address), frame);
        }
    }

    fn process(
        &mut self,
        (pid, addresses): (u32, &[u64]),
        names: Names,
        symbolizer: &Symbolizer,
        modules: &mut Modules,
        folder: &mut Folder,
    ) {
        let maps = maps::executable(modules.root, pid);
        if maps.is_empty() {
            self.unseen.push(Missing::new(
                "the functions of processes that ended before their trial did have no names",
            ));
            return;
        }
        let mut found: HashMap<u64, String> = HashMap::new();
        // A symbol table has whole names and is quick to read; debug files are asked for what it does not know.
        let passes: &[bool] = if names == Names::Tables { &[false] } else { &[false, true] };
        for &debug_syms in passes {
            let left: Vec<u64> = addresses.iter().copied().filter(|at| !found.contains_key(at)).collect();
            let source = Source::Process(Process { debug_syms, ..Process::new(Pid::from(pid)) });
            match symbolizer.symbolize(&source, Input::AbsAddr(&left)) {
                Ok(names) => {
                    let named = left.iter().zip(&names).filter_map(|(at, name)| Some((*at, name.as_sym()?)));
                    found.extend(named.map(|(at, sym)| (at, sym.name.to_string())));
                }
                Err(error) => {
                    let why = format!("functions of process {pid} have no names: {error}");
                    self.unseen.push(Missing::with_remedy(why, "run tare as root"));
                    break;
                }
            }
        }
        for &address in addresses {
            let frame = user_frame(found.remove(&address), maps::at(&maps, address), pid, modules, folder);
            self.frames.insert((Some(pid), address), frame);
        }
    }
}

fn user_frame(
    name: Option<String>,
    map: Option<&Map>,
    pid: u32,
    modules: &mut Modules,
    folder: &mut Folder,
) -> u32 {
    let path = map.map_or("", |map| map.path.as_str());
    let kind = match path {
        "[vdso]" => FrameKind::Vdso,
        _ if path.starts_with('/') && !path.contains("/memfd:") => FrameKind::User,
        _ => FrameKind::Jit,
    };
    let module = (!path.is_empty()).then(|| folder.module(modules.of(pid, path)));
    let symbol = match name {
        Some(name) => name,
        None if path.is_empty() => UNKNOWN.into(),
        // Words like `[vdso]` are in brackets already.
        None if path.starts_with('[') => path.into(),
        None => format!("[{}]", path.rsplit('/').next().unwrap_or(path)),
    };
    folder.frame(Frame { symbol, module, kind })
}

/// Files and their build ids.
struct Modules<'a> {
    root: &'a Root,
    known: HashMap<String, Option<String>>,
}

impl Modules<'_> {
    fn of(&mut self, pid: u32, path: &str) -> Module {
        let build_id = self.known.entry(path.to_owned()).or_insert_with(|| {
            let file = path.starts_with('/').then(|| maps::file(self.root, pid, path))?;
            let id = read_elf_build_id(&file).ok()??;
            Some(hexadecimal(&id))
        });
        Module { path: path.into(), build_id: build_id.clone() }
    }
}

/// Whether the kernel shows every address as zero.
fn hides_addresses(root: &Root) -> bool {
    use std::io::{BufRead, BufReader};
    let Ok(file) = std::fs::File::open(root.path("/proc/kallsyms")) else { return true };
    let lines = BufReader::new(file).lines().map_while(Result::ok).take(64);
    let shown = |line: &str| line.split(' ').next().is_some_and(|word| word.chars().any(|c| c != '0'));
    !lines.into_iter().any(|line| shown(&line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_addresses_are_distinguished_from_shown_ones() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("proc")).unwrap();
        let root = Root::at(folder.path());
        assert!(hides_addresses(&root), "no list at all");
        let list = |first: &str| format!("{first} A fixed\n0000000000000000 T _text\n");
        std::fs::write(folder.path().join("proc/kallsyms"), list("0000000000000000")).unwrap();
        assert!(hides_addresses(&root));
        std::fs::write(folder.path().join("proc/kallsyms"), list("ffffffff81000000")).unwrap();
        assert!(!hides_addresses(&root));
    }
}
