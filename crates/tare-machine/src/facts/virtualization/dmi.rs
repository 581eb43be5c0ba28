//! What firmware tells of the machine by DMI: who made it, and which product it is.

use crate::facts::files;
use crate::root::Root;

const DIR: &str = "/sys/class/dmi/id";
/// Words in the names of machines that are rented by the hour.
const RENTED: [&str; 6] = ["cloud", "virtual", "vserver", "cvm", "droplet", "instance"];
/// "Other" and "unknown": what virtual machines have for a chassis.
const NO_CHASSIS: [u32; 2] = [1, 2];

/// The fields that name makers and products; empty where there is none.
pub(super) struct Dmi {
    vendor: String,
    product: String,
    /// Makers of board, firmware and chassis.
    parts: Vec<String>,
    chassis: Option<u32>,
}

impl Dmi {
    pub(super) fn read(root: &Root) -> Dmi {
        let word = |file: &str| files::word(root, &format!("{DIR}/{file}")).unwrap_or_default();
        Dmi {
            vendor: word("sys_vendor"),
            product: word("product_name"),
            parts: ["board_vendor", "board_name", "bios_vendor", "chassis_vendor"].map(word).to_vec(),
            chassis: root.value(format!("{DIR}/chassis_type")).ok(),
        }
    }

    /// Who made this virtual machine. Makers of machines and of hypervisors alike (Microsoft, Google, Amazon, Apple,
    /// Oracle) are known by the product alone. `qemu` leaves open what it runs on.
    pub(super) fn hypervisor(&self) -> Option<&'static str> {
        let (vendor, product) = (self.vendor.as_str(), self.product.as_str());
        let anywhere = |word: &str| {
            [vendor, product]
                .into_iter()
                .chain(self.parts.iter().map(String::as_str))
                .any(|name| name.contains(word))
        };
        let by_product = [
            ("Apple Virtualization", "apple"),
            ("VirtualBox", "virtualbox"),
            ("OpenStack", "openstack"),
            ("Google Compute Engine", "gce"),
            ("Parallels", "parallels"),
            ("BHYVE", "bhyve"),
            ("HVM domU", "xen"),
            ("RHEV", "kvm"),
            ("VMware", "vmware"),
        ];
        if let Some((_, name)) = by_product.iter().find(|(mark, _)| product.contains(mark)) {
            return Some(name);
        }
        if product.split(' ').any(|word| word == "KVM") {
            return Some("kvm");
        }
        match vendor {
            "Microsoft Corporation" if product == "Virtual Machine" => return Some("hyper-v"),
            "Amazon EC2" if self.is_rented_whole() => return Some("bare-metal"),
            "Amazon EC2" if !product.is_empty() => return Some("ec2"),
            "Xen" => return Some("xen"),
            "Nutanix" if product == "AHV" => return Some("kvm"),
            _ => {}
        }
        // These make no machines of their own.
        let by_maker = [
            ("VMware", "vmware"),
            ("innotek", "virtualbox"),
            ("Parallels", "parallels"),
            ("BHYVE", "bhyve"),
            ("OpenStack", "openstack"),
            ("QEMU", "qemu"),
        ];
        by_maker.iter().find(|(mark, _)| anywhere(mark)).map(|(_, name)| *name)
    }

    /// Whether this can be no real machine, whatever its processor shows. Amazon and Google rent whole machines under
    /// the names of virtual ones.
    pub(super) fn is_virtual_for_sure(&self) -> bool {
        self.hypervisor().is_some_and(|named| !["bare-metal", "ec2", "gce"].contains(&named))
    }

    /// Amazon's names for machines without its hypervisor: `c7g.metal`, `m7i.metal-24xl`.
    fn is_rented_whole(&self) -> bool {
        self.product.split('.').any(|part| part == "metal" || part.starts_with("metal-"))
    }

    /// QEMU says so in the product when it does not run on KVM.
    pub(super) fn is_emulation(&self) -> bool {
        self.product == "QEMU Virtual Machine"
    }

    /// Whether a cloud's name stands where a maker's should.
    pub(super) fn is_rented(&self) -> bool {
        let names = format!("{} {}", self.vendor, self.product).to_ascii_lowercase();
        RENTED.iter().any(|word| names.contains(word))
    }

    /// Whether it names the form of a case.
    pub(super) fn has_a_chassis(&self) -> bool {
        self.chassis.is_some_and(|kind| !NO_CHASSIS.contains(&kind))
    }

    /// Whether it names a machine that somebody made: a vendor alone does not.
    pub(super) fn names_a_machine(&self) -> bool {
        let named = !self.vendor.is_empty() && !self.product.is_empty();
        let has_chassis = self.chassis.is_none_or(|kind| !NO_CHASSIS.contains(&kind));
        named && has_chassis && !self.is_rented()
    }
}
