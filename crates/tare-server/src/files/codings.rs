//! Which precompressed form of a file a client prefers (RFC 9110, 12.5.3).

use tare_http::request::Head;

/// A precompressed form of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Coding {
    /// The end of its name.
    pub(super) suffix: &'static str,
    /// The name of its content coding.
    pub(super) name: &'static str,
}

/// Of two that a client likes as much the first one is taken: it is the smaller.
const CODINGS: [Coding; 2] = [Coding { suffix: ".br", name: "br" }, Coding { suffix: ".gz", name: "gzip" }];

/// Those that the client takes and likes as much as the file itself, the most liked one first.
pub(super) fn preferred(head: &Head<'_>) -> [Option<Coding>; 2] {
    let weights = Weights::of(head);
    let [first, second] = CODINGS.map(|coding| (weights.coding(coding.name), coding));
    let [first, second] = if second.0 > first.0 { [second, first] } else { [first, second] };
    [first, second].map(|(weight, coding)| (weight > 0 && weight >= weights.identity()).then_some(coding))
}

/// What the client says of codings, in thousandths; 0 is a refusal.
#[derive(Debug, Clone, Copy, Default)]
struct Weights {
    br: Option<u16>,
    gzip: Option<u16>,
    identity: Option<u16>,
    /// `*`: all that are not named.
    others: Option<u16>,
}

impl Weights {
    fn of(head: &Head<'_>) -> Weights {
        let mut weights = Weights::default();
        for element in head.list("accept-encoding") {
            let mut parts = element.split(|b| *b == b';').map(<[u8]>::trim_ascii);
            let name = parts.next().unwrap_or_default();
            let place = match name {
                _ if name.eq_ignore_ascii_case(b"br") => &mut weights.br,
                _ if name.eq_ignore_ascii_case(b"gzip") || name.eq_ignore_ascii_case(b"x-gzip") => {
                    &mut weights.gzip
                }
                _ if name.eq_ignore_ascii_case(b"identity") => &mut weights.identity,
                b"*" => &mut weights.others,
                _ => continue,
            };
            // What is no weight is no agreement.
            *place = Some(parts.next().map_or(1000, |part| weight(part).unwrap_or(0)));
        }
        weights
    }

    fn coding(&self, name: &str) -> u16 {
        let named = if name == "br" { self.br } else { self.gzip };
        named.or(self.others).unwrap_or(0)
    }

    /// The file as it is can always be had, and is liked least where nothing else is said.
    fn identity(&self) -> u16 {
        self.identity.unwrap_or(0)
    }
}

/// `q=0.5` in thousandths: at most three digits behind the point, and none above 1 (RFC 9110, 12.4.2).
fn weight(part: &[u8]) -> Option<u16> {
    let value = part.strip_prefix(b"q=").or_else(|| part.strip_prefix(b"Q="))?;
    let (one, digits) = match value {
        [one @ (b'0' | b'1')] | [one @ (b'0' | b'1'), b'.'] => (*one == b'1', &[][..]),
        [one @ (b'0' | b'1'), b'.', digits @ ..] if digits.len() <= 3 => (*one == b'1', digits),
        _ => return None,
    };
    let mut thousandths = u16::from(one) * 1000;
    for (digit, unit) in digits.iter().zip([100, 10, 1]) {
        thousandths += u16::from(char::from(*digit).to_digit(10)? as u8) * unit;
    }
    (thousandths <= 1000).then_some(thousandths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_http::limits::Limits;
    use tare_http::request::parse_head;

    #[test]
    fn weights_order_the_codings() {
        let preferred = |accept: &str| {
            let text = format!("GET / HTTP/1.1\r\nHost: h\r\nAccept-Encoding: {accept}\r\n\r\n");
            let head = parse_head(text.as_bytes(), &Limits::default()).unwrap().unwrap();
            preferred(&head).into_iter().flatten().map(|coding| coding.name).collect::<Vec<_>>()
        };
        for (accept, wanted) in [
            ("gzip, br", vec!["br", "gzip"]),
            ("br;q=0.5, gzip;q=0.8", vec!["gzip", "br"]),
            ("br; q=0.001", vec!["br"]),
            ("gzip;q=0, *", vec!["br"]),
            ("*;q=0", vec![]),
            ("X-Gzip", vec!["gzip"]),
            ("identity, gzip;q=0.5", vec![]),
            ("identity;q=0.5, gzip", vec!["gzip"]),
            ("gzip;q=1.001, br;q=2", vec![]),
            ("gzip;q=0.0001, br;q=.5", vec![]),
            ("gzip;q=0., br;q=1.000", vec!["br"]),
            ("deflate", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(preferred(accept), wanted, "{accept}");
        }
    }
}
