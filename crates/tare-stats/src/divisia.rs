//! The logarithmic mean, which splits a logarithm of a ratio into exact additive parts.

/// Logarithmic mean Λ(a, b) = (a − b) / ln(a / b), with Λ(a, a) = a.
///
/// For b = a − Σ Lᵢ the parts Lᵢ / Λ(a, b) sum to ln(a / b) exactly (log-mean Divisia index I: Ang, "Decomposition
/// analysis for policymaking in energy", Energy Policy 32, 2004). It lies between the geometric and the arithmetic
/// mean. Computed as (a + b)/2 · z / atanh(z), z = (a − b)/(a + b), which keeps its digits where a and b are nearly
/// equal. `None` unless both are finite and above zero.
pub fn log_mean(a: f64, b: f64) -> Option<f64> {
    if !(a.is_finite() && b.is_finite() && a > 0.0 && b > 0.0) {
        return None;
    }
    let (high, low) = if a >= b { (a, b) } else { (b, a) };
    let ratio = low / high;
    let z = (1.0 - ratio) / (1.0 + ratio);
    let shrink = if z < 1e-4 {
        1.0 - z * z / 3.0
    } else if ratio > 1e-3 {
        z / z.atanh()
    } else {
        // atanh loses digits as z nears 1; there the definition itself is well conditioned.
        return Some((high - low) / (high.ln() - low.ln()));
    };
    Some(high * ((1.0 + ratio) / 2.0) * shrink)
}
