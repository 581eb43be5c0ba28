//! Certificates and keys in files: what this machine trusts, what a user names.

use crate::regular;
use crate::spec::ClientCertificate;
use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Largest file that is taken: the roots of a distribution have some 200 kB.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Most files of a folder that are read.
const FILES_MAX: usize = 10_000;
/// Where distributions keep what they trust, as one file: Debian and Alpine, Fedora and RHEL, SUSE, others.
const BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Certificates or keys that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsFileError {
    /// A file of the user's.
    #[error("{}: {why} (hint: {hint})", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
        /// What would be right.
        hint: &'static str,
    },
    /// Nothing is trusted.
    #[error(
        "the server's certificate cannot be verified: this machine has no trusted certificates ({searched}) \
         (hint: install ca-certificates, name a file of them with --cacert FILE, or do not verify with --insecure)"
    )]
    NoRoots {
        /// Where they were looked for.
        searched: String,
    },
}

/// Where a machine keeps the certificates that it trusts.
#[derive(Debug)]
pub(crate) struct Places {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    /// Their names for an error.
    searched: String,
}

impl Places {
    /// This machine's: what `SSL_CERT_FILE` and `SSL_CERT_DIR` name, else where distributions have them.
    pub(crate) fn of_system() -> Places {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        match (variable("SSL_CERT_FILE"), variable("SSL_CERT_DIR")) {
            (None, None) => Places {
                files: BUNDLES.map(PathBuf::from).to_vec(),
                folders: Vec::new(),
                searched: "/etc/ssl, /etc/pki, SSL_CERT_FILE, SSL_CERT_DIR".to_owned(),
            },
            (file, folders) => Places {
                files: file.into_iter().map(PathBuf::from).collect(),
                folders: folders.map(|list| std::env::split_paths(&list).collect()).unwrap_or_default(),
                searched: "SSL_CERT_FILE and SSL_CERT_DIR have none".to_owned(),
            },
        }
    }

    /// All certificates there that can be used: the first file that has any, and all of the folders. Others are passed
    /// over, as whoever made these lists did not make them for us.
    pub(crate) fn roots(&self) -> Result<RootCertStore, TlsFileError> {
        let mut roots = RootCertStore::empty();
        let add = |roots: &mut RootCertStore, path: &Path| {
            roots.add_parsable_certificates(read(path).map(|text| parsable(&text)).unwrap_or_default()).0
        };
        // Further names are often links to the same file.
        self.files.iter().find(|path| add(&mut roots, path) > 0);
        for folder in &self.folders {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten().take(FILES_MAX) {
                add(&mut roots, &entry.path());
            }
        }
        if roots.is_empty() {
            return Err(TlsFileError::NoRoots { searched: self.searched.clone() });
        }
        Ok(roots)
    }
}

fn parsable(text: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(text).flatten().collect()
}

/// The certificates in a file that a user names, at least one.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    const HINT: &str = "a certificate in PEM begins with -----BEGIN CERTIFICATE-----";
    let fault = |why: String| TlsFileError::File { path: path.to_path_buf(), why, hint: HINT };
    let text = read(path).map_err(fault)?;
    let found: Vec<_> =
        CertificateDer::pem_slice_iter(&text).collect::<Result<_, _>>().map_err(|why| fault(words(&why)))?;
    if found.is_empty() { Err(fault("it has no certificate".to_owned())) } else { Ok(found) }
}

/// A client's certificates and its key.
pub(crate) fn client(
    client: &ClientCertificate,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsFileError> {
    let chain = certificates(&client.chain)?;
    let key = read(&client.key).and_then(|text| {
        PrivateKeyDer::from_pem_slice(&text).map_err(|why| match why {
            pem::Error::NoItemsFound if encrypted(&text) => "its key is encrypted".to_owned(),
            pem::Error::NoItemsFound => "it has no private key".to_owned(),
            why => words(&why),
        })
    });
    let key = key.map_err(|why| key_fault(client, why))?;
    Ok((chain, key))
}

/// A key that cannot be used.
pub(crate) fn key_fault(client: &ClientCertificate, why: String) -> TlsFileError {
    const HINT: &str = "it must be the certificate's own key, in PEM, without a password: openssl pkey -in KEY -out PLAIN takes one off";
    TlsFileError::File { path: client.key.clone(), why, hint: HINT }
}

fn encrypted(text: &[u8]) -> bool {
    text.windows(b"ENCRYPTED".len()).any(|window| window == b"ENCRYPTED")
}

fn words(why: &pem::Error) -> String {
    format!("it is not well-formed PEM: {why}")
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let (mut text, limit) = (Vec::new(), FILE_BYTES_MAX + 1);
    let read = regular::open(path)?.take(limit).read_to_end(&mut text).map_err(|error| error.to_string())?;
    if read as u64 == limit { Err("it is longer than 16 MiB".to_owned()) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(files: &[&Path], folders: &[&Path]) -> Places {
        let all = |paths: &[&Path]| paths.iter().map(|path| path.to_path_buf()).collect();
        Places { files: all(files), folders: all(folders), searched: "nowhere".to_owned() }
    }

    fn pem(name: &str) -> (String, String) {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn what_a_machine_trusts_is_found_in_files_and_folders() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let (one, key) = pem("one");
        std::fs::write(path("one.pem"), format!("Comment\n{one}{key}")).unwrap();
        std::fs::write(path("two.pem"), format!("{}{one}", pem("two").0)).unwrap();
        std::fs::write(path("none.pem"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
            .unwrap();
        let count =
            |files: &[&Path], folders: &[&Path]| places(files, folders).roots().map(|roots| roots.len());
        let nowhere = Path::new("/nowhere");
        assert_eq!(count(&[nowhere, &path("none.pem"), &path("one.pem"), &path("two.pem")], &[]), Ok(1));
        assert_eq!(count(&[], &[folder.path()]), Ok(3));
        let none = count(&[nowhere], &[nowhere]).unwrap_err().to_string();
        assert!(
            none.contains("--cacert") && none.contains("--insecure") && none.contains("nowhere"),
            "{none}"
        );
    }

    #[test]
    fn each_mistake_in_a_file_has_its_own_word() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).unwrap();
            folder.path().join(name)
        };
        let (certificate, key) = pem("one");
        let chain = path("good.pem", &certificate);
        let with = |key| client(&ClientCertificate { chain: chain.clone(), key }).map(drop);
        assert_eq!(with(path("key.pem", &key)), Ok(()));
        let long = path("long", "");
        std::fs::File::options().write(true).open(&long).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
        let locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
        for (error, word) in [
            (with(path("empty", "")), "no private key"),
            (with(path("locked", locked)), "encrypted"),
            (with(folder.path().join("none")), "No such file"),
            (certificates(&path("text", "hello")).map(drop), "no certificate"),
            (certificates(&path("half", &certificate[..100])).map(drop), "well-formed"),
            (certificates(folder.path()).map(drop), "regular file"),
            (certificates(Path::new("/dev/zero")).map(drop), "regular file"),
            (certificates(&long).map(drop), "16 MiB"),
        ] {
            let text = error.unwrap_err().to_string();
            assert!(text.contains(word) && text.contains("hint: "), "{text}");
        }
    }
}
