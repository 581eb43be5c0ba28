//! In which order the cells of each block are measured.

use crate::blocks::shuffle;
use tare_stats::SplitMix64;

/// For each block every cell once, in an order drawn at random such that what drifts or lingers is the same for all cells.
///
/// Rows of Williams' Latin squares (Australian Journal of Scientific Research A 2, 1949): in a square, of as many blocks as cells (twice as many
/// where their number is odd), each cell comes equally often at each place and equally often right after each other one; with two
/// cells, AB and BA. Cells and rows are drawn anew for each square. The same seed gives the same orders.
pub fn orders(seed: u64, cells: usize, blocks: usize) -> Vec<Vec<usize>> {
    let mut random = SplitMix64::new(seed);
    let mut orders = Vec::with_capacity(blocks);
    while orders.len() < blocks && cells > 0 {
        let mut names: Vec<usize> = (0..cells).collect();
        shuffle(&mut names, &mut random);
        let mut rows = square(cells);
        shuffle(&mut rows, &mut random);
        let named = rows.into_iter().map(|row| row.into_iter().map(|cell| names[cell]).collect());
        orders.extend(named.take(blocks - orders.len()));
    }
    orders
}

/// The rows of a square: 0, 1, n−1, 2, n−2, … shifted, and for an odd number their mirrors too.
fn square(cells: usize) -> Vec<Vec<usize>> {
    let first = |place: usize| if place % 2 == 1 { place.div_ceil(2) } else { (cells - place / 2) % cells };
    let rows = (0..cells).map(|shift| (0..cells).map(|place| (first(place) + shift) % cells).collect());
    let rows: Vec<Vec<usize>> = rows.collect();
    let mirrored = rows.iter().map(|row| row.iter().rev().copied().collect());
    if cells % 2 == 1 && cells > 1 {
        mirrored.collect::<Vec<_>>().into_iter().chain(rows).collect()
    } else {
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn each_block_has_every_cell_once(seed: u64, cells in 0usize..12, blocks in 0usize..40) {
            let drawn = orders(seed, cells, blocks);
            prop_assert_eq!(&drawn, &orders(seed, cells, blocks));
            prop_assert_eq!(drawn.len(), if cells == 0 { 0 } else { blocks });
            for mut order in drawn {
                order.sort_unstable();
                prop_assert_eq!(order, (0..cells).collect::<Vec<_>>());
            }
        }

        #[test]
        fn a_square_is_balanced(seed: u64, cells in 2usize..10) {
            let rows = if cells % 2 == 0 { cells } else { 2 * cells };
            let drawn = orders(seed, cells, rows);
            let (mut places, mut pairs) = (BTreeMap::new(), BTreeMap::new());
            for order in &drawn {
                order.iter().enumerate().for_each(|at| *places.entry(at).or_insert(0) += 1);
                order.windows(2).for_each(|pair| *pairs.entry((pair[0], pair[1])).or_insert(0) += 1);
            }
            prop_assert_eq!(places.len(), cells * cells);
            prop_assert!(places.values().all(|count| *count == rows / cells));
            prop_assert_eq!(pairs.len(), cells * (cells - 1));
            prop_assert!(pairs.values().all(|count| *count == rows / cells));
        }
    }

    #[test]
    fn either_of_two_comes_first_as_often() {
        for seed in 0..50 {
            let firsts: usize = orders(seed, 2, 10).iter().filter(|order| order[0] == 0).count();
            assert_eq!(firsts, 5);
        }
    }
}
