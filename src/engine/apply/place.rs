//! Where a file is written before it is renamed, and its owner, quoted for the shell.

use crate::model::shell_word::quote;
use crate::resource::contract::step::Access;

/// Owner and group as chown(1) takes them, quoted.
pub(super) fn owner(access: &Access) -> String {
    quote(&format!("{}:{}", access.owner, access.group))
}

/// The directory and the temporary name of a file before it is renamed, quoted.
pub(super) struct Place {
    pub(super) directory: String,
    /// The shell appends its process id.
    pub(super) temporary: String,
}

/// In the same directory, and hidden: readers of conf.d directories and the kubelet ignore it.
pub(super) fn place(path: &str) -> Place {
    let (directory, name) = path.rsplit_once('/').unwrap_or((".", path));
    // A name has at most 255 bytes (NAME_MAX), prefix and suffix included.
    let mut end = name.len().min(220);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    Place {
        directory: quote(if directory.is_empty() { "/" } else { directory }),
        temporary: quote(&format!("{directory}/.metalform.{}.", &name[..end])),
    }
}

/// The call that writes so many bytes of the payload to a file.
pub(super) fn put(path: &str, bytes: usize, access: &Access) -> String {
    let Place { directory, temporary } = place(path);
    format!("put {bytes} {directory} {temporary} {} {} {:04o}", quote(path), owner(access), access.mode)
}

/// A command that changes what is at a path, with the rights of the user who could replace it there.
pub(super) fn within(path: &str, command: &str) -> String {
    format!("within {} {}", place(path).directory, quote(command))
}
