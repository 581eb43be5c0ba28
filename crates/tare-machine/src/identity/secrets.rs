//! What must not stand in a record that people pass on. By name and by form: too much rather than too little, since
//! what is hidden can still be distinguished.

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
/// Options of which the value is a name and a password.
const LOGIN_OPTIONS: &[&str] = &["-u", "-U", "--user", "--proxy-user"];
/// A run of letters and digits of this length that has both is a key, or a hash that is not worth reading.
const RANDOM_CHARS_MIN: usize = 24;

/// Whether this is a name of a variable, and not what a program wrote over its environment.
pub(super) fn is_a_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '(' | ')' | '%');
    !name.is_empty() && name.len() <= 256 && name.chars().all(fits)
}

/// Whether a variable looks like one that holds a secret.
pub(super) fn in_variable(name: &str, value: &str) -> bool {
    // Options for a program that another starts: `JAVA_TOOL_OPTIONS`.
    let is_options = value.trim_start().starts_with('-');
    (is_secret_name(name) && !value.is_empty()) || in_value(value) || (is_options && in_line(value))
}

/// Whether a word of a command line looks like a secret, by itself or by the option before it. What stands for a line
/// of its own (`sh -c '…'`) is looked at word by word.
pub(super) fn in_word(before: &str, word: &str) -> bool {
    let option = |text: &str| text.starts_with('-') && is_secret_name(text);
    let own = word.split_once('=').is_some_and(|(name, value)| is_secret_name(name) && !value.is_empty());
    let header = word.split_once(':').is_some_and(|(name, _)| is_secret_name(name));
    let named = option(before) && !before.contains('=') && !word.starts_with('-');
    let is_line = word.contains(char::is_whitespace);
    own || header || named || in_short_option(before, word) || in_value(word) || (is_line && in_line(word))
}

/// `-u name:password` as curl has it, and `-ppassword` as MySQL has it; numbers are users, groups and ports.
fn in_short_option(before: &str, word: &str) -> bool {
    let login = |text: &str| {
        let parts = text.split_once(':').filter(|(name, password)| !name.is_empty() && !password.is_empty());
        parts.is_some_and(|(name, _)| !name.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let (option, value) = word.split_once('=').unwrap_or((before, word));
    let attached = word.strip_prefix("-u").is_some_and(login);
    let password = word.strip_prefix("-p").filter(|rest| !rest.is_empty() && !rest.contains('='));
    let is_port = |rest: &str| rest.len() <= 5 && rest.bytes().all(|byte| byte.is_ascii_digit());
    attached
        || (LOGIN_OPTIONS.contains(&option) && login(value))
        || password.is_some_and(|rest| !is_port(rest))
}

/// Whether any word of a line looks like a secret.
fn in_line(line: &str) -> bool {
    let mut before = "";
    line.split_whitespace().map(|word| word.trim_matches(['\'', '"', ';'])).any(|word| {
        let found = in_word(before, word);
        before = word;
        found
    })
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase().replace('-', "_");
    !HARMLESS.contains(&name.as_str()) && NAMES.iter().any(|part| name.contains(part))
}

fn in_value(value: &str) -> bool {
    BEGINNINGS.iter().any(|beginning| value.contains(beginning))
        || has_login(value)
        || has_parameter(value)
        || has_random(value)
}

/// `scheme://user:password@host`, `scheme://token@host`, `user:password@host`.
fn has_login(value: &str) -> bool {
    let login = |text: &str| {
        let host = text.split(['/', '?', '#', ' ']).next().unwrap_or_default().to_owned();
        host.rsplit_once('@').map(|(login, _)| login.to_owned())
    };
    let bare = value.split([' ', ',', '\'', '"']).filter(|word| !word.contains("://"));
    let password = |login: String| {
        login.split_once(':').is_some_and(|(user, password)| !user.is_empty() && !password.is_empty())
    };
    value.split("://").skip(1).any(|rest| login(rest).is_some_and(|login| !login.is_empty()))
        || bare.filter_map(login).any(password)
}

/// `…?key=value&…`
fn has_parameter(value: &str) -> bool {
    let query = value.split_once('?').map_or("", |(_, query)| query);
    let mut parameters = query.split(['&', ';', ' ', '#']).filter_map(|parameter| parameter.split_once('='));
    parameters.any(|(name, value)| is_secret_name(name) && !value.is_empty())
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
            ("HTTP_PROXY", "u:p@proxy:3128"),
            ("REMOTE", "https://hunter2@git.example.org/x.git"),
            ("HOOK", "https://example.org/x?room=1&key=hunter2"),
            ("JAVA_TOOL_OPTIONS", "-Xmx1g -Djavax.net.ssl.keyStorePassword=hunter2"),
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
            ("URL", "http://127.0.0.1:8080/?monkeys=&page=2"),
            ("MAIL", "me@example.org"),
            ("LISTEN", "127.0.0.1:80,[::1]:80"),
            ("JAVA_TOOL_OPTIONS", "-Xmx1g -XX:+UseZGC"),
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
    fn secrets_are_known_in_lines_logins_and_addresses() {
        for (before, word) in [
            ("-c", "./srv --threads 4 --token hunter2"),
            ("-c", "API_KEY='hunter2' exec ./srv"),
            ("-c", "curl -u me:hunter2 http://127.0.0.1/"),
            ("-u", "me:hunter2"),
            ("", "--user=me:hunter2"),
            ("", "-ume:hunter2"),
            ("", "-phunter2"),
            ("", "--url=http://127.0.0.1/?key=hunter2"),
            ("--remote", "https://hunter2@example.org"),
            ("--proxy", "me:hunter2@127.0.0.1:3128"),
            ("", "--proxy=me:hunter2@127.0.0.1:3128"),
        ] {
            assert!(in_word(before, word), "{before} {word}");
        }
        for (before, word) in [
            ("-c", "exec ./srv --threads 4 --listen 127.0.0.1:80"),
            ("-u", "1000:1000"),
            ("-u", "www-data"),
            ("", "-p8080"),
            ("", "-p"),
            ("--url", "http://127.0.0.1:80/?page=2"),
            ("--mail", "me@example.org"),
        ] {
            assert!(!in_word(before, word), "{before} {word}");
        }
    }

    #[test]
    fn what_a_program_wrote_over_its_environment_is_no_name() {
        assert!(is_a_name("BASH_FUNC_x%%") && is_a_name("ProgramFiles(x86)"));
        assert!(!is_a_name("") && !is_a_name("nginx: worker") && !is_a_name("a\u{fffd}"));
    }
}
