//! Subjects and truths as they are written: one TOML file for each subject, one for all truths.

use std::collections::BTreeMap;
use tare_model::zoo;
use toml::de::{DeTable, DeValue};

/// Every subject's file. A new one is its file and a line here.
static SUBJECTS: &[(&str, &str)] = &[
    ("aiohttp", include_str!("subjects/aiohttp.toml")),
    ("apache", include_str!("subjects/apache.toml")),
    ("apache-cgi", include_str!("subjects/apache-cgi.toml")),
    ("busybox", include_str!("subjects/busybox.toml")),
    ("caddy", include_str!("subjects/caddy.toml")),
    ("erlang", include_str!("subjects/erlang.toml")),
    ("gevent", include_str!("subjects/gevent.toml")),
    ("go", include_str!("subjects/go.toml")),
    ("gunicorn", include_str!("subjects/gunicorn.toml")),
    ("h2o", include_str!("subjects/h2o.toml")),
    ("haproxy", include_str!("subjects/haproxy.toml")),
    ("jdk", include_str!("subjects/jdk.toml")),
    ("lighttpd", include_str!("subjects/lighttpd.toml")),
    ("mariadb", include_str!("subjects/mariadb.toml")),
    ("memcached", include_str!("subjects/memcached.toml")),
    ("mini-httpd", include_str!("subjects/mini-httpd.toml")),
    ("netty", include_str!("subjects/netty.toml")),
    ("nghttpx", include_str!("subjects/nghttpx.toml")),
    ("nginx", include_str!("subjects/nginx.toml")),
    ("nginx-lua", include_str!("subjects/nginx-lua.toml")),
    ("node", include_str!("subjects/node.toml")),
    ("node-cluster", include_str!("subjects/node-cluster.toml")),
    ("pgbouncer", include_str!("subjects/pgbouncer.toml")),
    ("php-cli", include_str!("subjects/php-cli.toml")),
    ("php-fpm", include_str!("subjects/php-fpm.toml")),
    ("postgresql", include_str!("subjects/postgresql.toml")),
    ("puma", include_str!("subjects/puma.toml")),
    ("python", include_str!("subjects/python.toml")),
    ("redis", include_str!("subjects/redis.toml")),
    ("ruby", include_str!("subjects/ruby.toml")),
    ("socat", include_str!("subjects/socat.toml")),
    ("squid", include_str!("subjects/squid.toml")),
    ("starman", include_str!("subjects/starman.toml")),
    ("tomcat", include_str!("subjects/tomcat.toml")),
    ("tornado", include_str!("subjects/tornado.toml")),
    ("unicorn", include_str!("subjects/unicorn.toml")),
    ("uvicorn", include_str!("subjects/uvicorn.toml")),
    ("varnish", include_str!("subjects/varnish.toml")),
    ("waitress", include_str!("subjects/waitress.toml")),
];

/// What can be true.
static TRUTHS: &str = include_str!("truths.toml");

/// A real program, and how it is set up.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Subject {
    pub name: String,
    pub about: String,
    /// Shell commands that succeed where it is installed.
    pub needs: Vec<String>,
    /// How to install it.
    pub install: String,
    /// Files of its folder, with placeholders.
    pub files: Vec<(String, String)>,
    /// Shell commands that prepare its folder, once.
    pub prepare: Vec<String>,
    pub pairs: Vec<Pair>,
}

/// A subject with a truth. Texts have placeholders: `@port@`, `@backend@` (ports), `@folder@`, `@sut@`, `@load@`, `@both@` (CPUs),
/// `@connections@`, and those of `set`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Pair {
    pub truth: String,
    /// A server that is called by the subject, started before it: a shell command.
    pub backend: Option<String>,
    pub backend_cpus: String,
    /// The subject: a shell command that stays in the foreground.
    pub start: String,
    pub cpus: String,
    /// CPUs' worth of time that its group may have.
    pub quota: Option<f64>,
    /// Words for `tare run`: the URL or the load of another program, and options.
    pub run: Vec<String>,
    /// What placeholders stand for.
    pub set: BTreeMap<String, String>,
}

/// All subjects.
///
/// # Errors
/// A file is not as it has to be; a test reads them all.
pub(super) fn subjects() -> Result<Vec<Subject>, String> {
    SUBJECTS.iter().map(|(name, text)| subject(name, text)).collect()
}

/// All truths.
///
/// # Errors
/// As [`subjects`].
pub(super) fn truths() -> Result<Vec<zoo::Truth>, String> {
    let table = parsed("truths.toml", TRUTHS)?;
    let truth = |(name, value): (&str, &DeValue<'_>)| {
        let wrong = |what: String| format!("truths.toml: {name}: {what}");
        let table = value.as_table().ok_or_else(|| wrong("must be a table".into()))?;
        Ok(zoo::Truth {
            name: name.to_owned(),
            about: needed(table, "about").map_err(wrong)?,
            accepts: texts(table, "accepts").map_err(wrong)?,
            because: needed(table, "because").map_err(wrong)?,
            undisturbed: table.get("undisturbed").is_some_and(|yes| yes.get_ref().as_bool() == Some(true)),
        })
    };
    table.iter().map(|(name, value)| truth((name.get_ref(), value.get_ref()))).collect()
}

fn parsed<'t>(file: &str, text: &'t str) -> Result<DeTable<'t>, String> {
    DeTable::parse(text).map(|table| table.into_inner()).map_err(|error| format!("{file}: {error}"))
}

fn subject(name: &str, written: &str) -> Result<Subject, String> {
    let wrong = |what: String| format!("{name}.toml: {what}");
    let table = parsed(name, written)?;
    let files = table.get("files").and_then(|files| files.get_ref().as_table());
    let file = |(name, value): (&str, &DeValue<'_>)| Some((name.to_owned(), value.as_str()?.to_owned()));
    let pairs = table.get("pair").and_then(|pairs| pairs.get_ref().as_array());
    let one = |value: &DeValue<'_>| pair(&table, value.as_table().ok_or("a pair must be a table")?);
    Ok(Subject {
        name: name.to_owned(),
        about: needed(&table, "about").map_err(wrong)?,
        needs: texts(&table, "needs").map_err(wrong)?,
        install: needed(&table, "install").map_err(wrong)?,
        files: files
            .into_iter()
            .flat_map(|files| files.iter())
            .filter_map(|(name, value)| file((name.get_ref(), value.get_ref())))
            .collect(),
        prepare: texts(&table, "prepare").map_err(wrong)?,
        pairs: pairs
            .into_iter()
            .flat_map(|pairs| pairs.iter())
            .map(|value| one(value.get_ref()).map_err(wrong))
            .collect::<Result<_, _>>()?,
    })
}

/// What a pair says, and where it says nothing, what the subject does.
fn pair(of_subject: &DeTable<'_>, of_pair: &DeTable<'_>) -> Result<Pair, String> {
    let either = |key: &str| Ok::<_, String>(text(of_pair, key)?.or(text(of_subject, key)?));
    let mut set = BTreeMap::new();
    for table in [of_subject, of_pair] {
        let values = table.get("set").and_then(|set| set.get_ref().as_table());
        for (name, value) in values.into_iter().flat_map(|values| values.iter()) {
            let value = value.get_ref().as_str().ok_or_else(|| format!("set.{name:?} must be a text"))?;
            set.insert(name.get_ref().to_string(), value.to_owned());
        }
    }
    let quota = match text(of_pair, "quota")? {
        Some(share) => Some(share.parse().map_err(|_| "quota must be a number in quotes".to_owned())?),
        None => None,
    };
    let words = |key: &str| Ok::<_, String>(either(key)?.unwrap_or_default());
    let run = [words("run")?, text(of_pair, "options")?.unwrap_or_default()].join(" ");
    Ok(Pair {
        truth: needed(of_pair, "truth")?,
        backend: either("backend")?.filter(|backend| !backend.is_empty()),
        backend_cpus: either("backend_cpus")?.unwrap_or_else(|| "@sut@".into()),
        start: either("start")?.ok_or("start is missing")?,
        cpus: either("cpus")?.unwrap_or_else(|| "@sut@".into()),
        quota,
        run: shell_words::split(&run).map_err(|error| format!("run: {error}"))?,
        set,
    })
}

fn text(table: &DeTable<'_>, key: &str) -> Result<Option<String>, String> {
    match table.get(key).map(|value| value.get_ref()) {
        None => Ok(None),
        Some(DeValue::String(text)) => Ok(Some(text.to_string())),
        Some(_) => Err(format!("'{key}' must be a text in quotes")),
    }
}

fn needed(table: &DeTable<'_>, key: &str) -> Result<String, String> {
    text(table, key)?.ok_or_else(|| format!("'{key}' is missing"))
}

fn texts(table: &DeTable<'_>, key: &str) -> Result<Vec<String>, String> {
    let Some(value) = table.get(key) else { return Ok(Vec::new()) };
    let list = value.get_ref().as_array().ok_or_else(|| format!("'{key}' must be a list"))?;
    let text = |value: &DeValue<'_>| value.as_str().map(str::to_owned);
    let all: Option<Vec<String>> = list.iter().map(|value| text(value.get_ref())).collect();
    all.ok_or_else(|| format!("'{key}' must be a list of texts"))
}
