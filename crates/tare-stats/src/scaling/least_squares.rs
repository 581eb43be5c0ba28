//! Nonlinear least squares within bounds, for a handful of parameters of size one.

/// Steps at most: a fit that needs more has no minimum that a double can tell.
const STEPS_MAX: usize = 200;
/// Steps of central differences, for parameters of size one: the cube root of a double's precision.
const DIFFERENCE: f64 = 1e-6;

/// A minimum.
#[derive(Debug, Clone)]
pub(super) struct Minimum {
    /// Where.
    pub at: Vec<f64>,
    /// Sum of squares there.
    pub rss: f64,
}

/// Minimises the sum of squares of `residuals` from `start` by the Levenberg-Marquardt method (Marquardt, SIAM J. 11, 1963), each parameter
/// held between its bounds: one that is at a bound and would leave it is left out of the step (Kelley, Iterative Methods for Optimization,
/// 1999, section 5.5). A parameter with equal bounds stays where it is. A step is taken only where the sum falls, so nothing diverges.
/// `None`: the start has no finite sum.
pub(super) fn minimise(
    residuals: &dyn Fn(&[f64], &mut Vec<f64>),
    start: &[f64],
    bounds: &[(f64, f64)],
) -> Option<Minimum> {
    let within = |at: &[f64]| -> Vec<f64> {
        at.iter().zip(bounds).map(|(value, (low, high))| value.max(*low).min(*high)).collect()
    };
    let mut at = within(start);
    let mut now = Vec::new();
    residuals(&at, &mut now);
    let mut rss = sum(&now);
    let mut damping = 1e-3;
    if !rss.is_finite() {
        return None;
    }
    for _ in 0..STEPS_MAX {
        let slopes = slopes(residuals, &at, bounds);
        let gradient: Vec<f64> = slopes.iter().map(|slope| dot(slope, &now)).collect();
        let free: Vec<usize> = (0..at.len())
            .filter(|&one| {
                let (low, high) = bounds[one];
                low < high
                    && !(at[one] <= low && gradient[one] > 0.0)
                    && !(at[one] >= high && gradient[one] < 0.0)
            })
            .collect();
        let before = rss;
        let mut moved = false;
        while damping < 1e12 {
            let Some(step) = step(&slopes, &gradient, &free, damping) else {
                damping *= 10.0;
                continue;
            };
            let mut next = at.clone();
            free.iter().zip(&step).for_each(|(&one, step)| next[one] -= step);
            let next = within(&next);
            let mut there = Vec::new();
            residuals(&next, &mut there);
            let smaller = sum(&there);
            if smaller < rss {
                (at, now, rss, moved) = (next, there, smaller, true);
                damping = (damping * 0.1).max(1e-12);
                break;
            }
            damping *= 10.0;
        }
        if !moved || before - rss <= 1e-14 * before {
            break;
        }
    }
    Some(Minimum { at, rss })
}

/// Derivatives of every residual, parameter by parameter.
fn slopes(residuals: &dyn Fn(&[f64], &mut Vec<f64>), at: &[f64], bounds: &[(f64, f64)]) -> Vec<Vec<f64>> {
    let (mut above, mut below) = (Vec::new(), Vec::new());
    let mut one = |index: usize| {
        let (low, high) = bounds[index];
        if low >= high {
            return vec![0.0; above.len()];
        }
        let size = DIFFERENCE * at[index].abs().max(1e-2);
        let (mut up, mut down) = (at.to_vec(), at.to_vec());
        up[index] = (at[index] + size).min(high);
        down[index] = (at[index] - size).max(low);
        residuals(&up, &mut above);
        residuals(&down, &mut below);
        let width = up[index] - down[index];
        above.iter().zip(&below).map(|(above, below)| (above - below) / width).collect()
    };
    (0..at.len()).map(&mut one).collect()
}

/// Solves (JᵀJ + damping · diag JᵀJ) step = gradient for the free parameters by Gaussian elimination; `None` where that is singular.
fn step(slopes: &[Vec<f64>], gradient: &[f64], free: &[usize], damping: f64) -> Option<Vec<f64>> {
    let count = free.len();
    let mut rows: Vec<Vec<f64>> = (0..count)
        .map(|row| {
            let mut line: Vec<f64> =
                free.iter().map(|&other| dot(&slopes[free[row]], &slopes[other])).collect();
            line[row] += damping * line[row] + f64::MIN_POSITIVE;
            line.push(gradient[free[row]]);
            line
        })
        .collect();
    for pivot in 0..count {
        let best = (pivot..count).max_by(|a, b| rows[*a][pivot].abs().total_cmp(&rows[*b][pivot].abs()))?;
        rows.swap(pivot, best);
        let head = rows[pivot].clone();
        if !(head[pivot].abs() > 1e-290) {
            return None;
        }
        for row in rows.iter_mut().skip(pivot + 1) {
            let factor = row[pivot] / head[pivot];
            row.iter_mut().zip(&head).for_each(|(value, above)| *value -= factor * above);
        }
    }
    let mut step = vec![0.0; count];
    for row in (0..count).rev() {
        let known: f64 = (row + 1..count).map(|other| rows[row][other] * step[other]).sum();
        step[row] = (rows[row][count] - known) / rows[row][row];
    }
    step.iter().all(|value| value.is_finite()).then_some(step)
}

fn sum(values: &[f64]) -> f64 {
    dot(values, values)
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rosenbrock's valley: the minimum is at (1, 1), and with a bound at 0.5 on its wall.
    #[test]
    fn the_bottom_of_a_bent_valley_is_found_and_no_bound_is_left() {
        let valley =
            |at: &[f64], out: &mut Vec<f64>| *out = vec![1.0 - at[0], 10.0 * (at[1] - at[0] * at[0])];
        let found = minimise(&valley, &[-1.2, 1.0], &[(-5.0, 5.0), (-5.0, 5.0)]).unwrap();
        assert!(found.rss < 1e-20 && (found.at[0] - 1.0).abs() < 1e-8, "{found:?}");
        let found = minimise(&valley, &[-1.2, 1.0], &[(-5.0, 0.5), (-5.0, 5.0)]).unwrap();
        assert!((found.at[0] - 0.5).abs() < 1e-9 && (found.at[1] - 0.25).abs() < 1e-6, "{found:?}");
        let held = minimise(&valley, &[0.3, 1.0], &[(0.3, 0.3), (-5.0, 5.0)]).unwrap();
        assert!((held.at[1] - 0.09).abs() < 1e-8 && held.at[0] == 0.3, "{held:?}");
    }

    #[test]
    fn what_is_no_number_is_no_start() {
        let nothing = |_: &[f64], out: &mut Vec<f64>| *out = vec![f64::NAN];
        assert!(minimise(&nothing, &[1.0], &[(0.0, 2.0)]).is_none());
    }
}
