//! How an observer declares its metrics.

/// Declares descriptors and the slice that lists them, so that none can be forgotten in the registry.
macro_rules! descriptors {
    ($($name:ident = $id:literal, $unit:ident, $kind:ident, $help:literal, $source:literal;)*) => {
        $(#[doc = concat!($help, " Source: ", $source, ".")]
        pub static $name: $crate::metric::Descriptor = $crate::metric::Descriptor {
            id: $id,
            unit: $crate::metric::Unit::$unit,
            kind: $crate::metric::Kind::$kind,
            help: $help,
            source: $source,
        };)*
        /// Every metric of this observer.
        pub static DESCRIPTORS: &[&$crate::metric::Descriptor] = &[$(&$name),*];
    };
}
pub(crate) use descriptors;
