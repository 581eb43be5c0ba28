//! What must not stand in a record that people pass on. By name and by form: too much rather than too little, since
//! what is hidden can still be told apart.

/// A longer value is not kept.
pub(super) const CLEAR_BYTES_MAX: usize = 4096;

/// Parts of names that hold secrets.
const NAMES: &[&str] = &[
    "KEY",
    "TOKEN",
    "SECRET",
    "PASS",
    "PWD",
    "CRED",
    "AUTH",
    "PRIVATE",
    "COOKIE",
    "SESSION",
    "SIGNATURE",
    "SALT",
    "WEBHOOK",
    "DSN",
    "CONNECTION_STRING",
    "JWT",
    "CERT",
    "LICENSE",
];
/// Names with such parts that hold none.
const HARMLESS: &[&str] = &[
    "PWD",
    "OLDPWD",
    "SSH_AUTH_SOCK",
    "XDG_SESSION_TYPE",
    "XDG_SESSION_CLASS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];
/// Beginnings of tokens that say whose they are.
const BEGINNINGS: &[&str] = &[
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "sk-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "ASIA",
    "eyJ",
    "-----BEGIN",
];
/// A run of letters and digits of this length that has both is a key, or a hash that is not worth reading.
const RANDOM_CHARS_MIN: usize = 24;

/// Whether this is a name of a variable, and not what a program wrote over its environment.
pub(super) fn is_a_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '(' | ')' | '%');
    !name.is_empty() && name.len() <= 256 && name.chars().all(fits)
}

/// Whether a variable looks like one that holds a secret.
pub(super) fn in_variable(name: &str, value: &str) -> bool {
    (is_secret_name(name) && !value.is_empty()) || in_value(value)
}

/// Whether a word of a command line looks like a secret, by itself or by the option before it.
pub(super) fn in_word(before: &str, word: &str) -> bool {
    let option = |text: &str| text.starts_with('-') && is_secret_name(text);
    let own = word.split_once('=').is_some_and(|(name, value)| is_secret_name(name) && !value.is_empty());
    let header = word.split_once(':').is_some_and(|(name, _)| is_secret_name(name));
    own || header || (option(before) && !before.contains('=') && !word.starts_with('-')) || in_value(word)
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase().replace('-', "_");
    !HARMLESS.contains(&name.as_str()) && NAMES.iter().any(|part| name.contains(part))
}

fn in_value(value: &str) -> bool {
    BEGINNINGS.iter().any(|beginning| value.contains(beginning)) || has_login(value) || has_random(value)
}

/// `scheme://user:password@host`.
fn has_login(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let host = rest.split(['/', '?', '#', ' ']).next().unwrap_or_default();
        host.split_once('@').is_some_and(|(login, _)| login.contains(':'))
    })
}

fn has_random(value: &str) -> bool {
    let runs = value.split(|c: char| !(c.is_ascii_alphanumeric() || c == '+'));
    runs.filter(|run| run.len() >= RANDOM_CHARS_MIN).any(|run| {
        let digits = run.bytes().filter(u8::is_ascii_digit).count();
        digits >= 3 && digits < run.len()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_name_and_form() {
        for (name, value) in [
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("db_password", "hunter2"),
            ("PGPASSWORD", "a"),
            ("DATABASE_URL", "postgres://me:hunter2@db/x"),
            ("HTTP_PROXY", "http://u:p@proxy:3128"),
            ("THING", "ghp_0123456789"),
            ("THING", "d41d8cd98f00b204e9800998ecf8427e"),
            ("PEM", "-----BEGIN RSA PRIVATE KEY-----"),
        ] {
            assert!(in_variable(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/bin"),
            ("PWD", "/home/me"),
            ("GOMAXPROCS", "4"),
            ("MALLOC_ARENA_MAX", "2"),
            ("LD_PRELOAD", "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"),
            ("RUST_LOG", "info"),
            ("URL", "http://127.0.0.1:8080/a@b"),
            ("API_TOKEN", ""),
        ] {
            assert!(!in_variable(name, value), "{name}={value}");
        }
    }

    #[test]
    fn secrets_in_command_lines_are_known_by_the_option_before() {
        assert!(
            in_word("--password", "x")
                && in_word("", "--token=x")
                && in_word("-H", "Authorization: Bearer x")
        );
        assert!(in_word("", "--db=mysql://u:p@h/d"));
        assert!(!in_word("--listen", "127.0.0.1:80") && !in_word("--password", "--verbose"));
        assert!(!in_word("--token=x", "next") && !in_word("", "--threads=4"));
    }

    #[test]
    fn what_a_program_wrote_over_its_environment_is_no_name() {
        assert!(is_a_name("BASH_FUNC_x%%") && is_a_name("ProgramFiles(x86)"));
        assert!(!is_a_name("") && !is_a_name("nginx: worker") && !is_a_name("a\u{fffd}"));
    }
}
