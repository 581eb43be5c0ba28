//! Pure statistics: intervals, paired comparison, stopping.
