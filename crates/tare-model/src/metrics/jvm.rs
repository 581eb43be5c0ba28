//! What the SUT's Java virtual machines count themselves.

super::declare::descriptors! {
    CONTENDED = "jvm.contended_enters", Count, Counter,
        "Times that a thread of the SUT's Java virtual machines found a monitor (synchronized) taken.", "hsperfdata, sun.rt._sync_ContendedLockAttempts";
}
