//! `metalform image`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::failure::Failure;
use super::output::{Format, document, print};
use crate::operation::cluster_site::REGISTRY_WRITER;
use crate::report::table::table;
use crate::service::image_add::{self, ImageOrigin};
use crate::service::image_list::{self, ListedImage};
use crate::service::image_remove;
use crate::workspace::layout::Layout;

/// How file names of archives end.
const ARCHIVES: [&str; 5] = [".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst"];

/// Manage the images of users in the registry of the cluster, on the bootstrap node
#[derive(Debug, Args)]
pub struct ImageArgs {
    #[command(subcommand)]
    command: ImageVerb,
}

#[derive(Debug, Subcommand)]
enum ImageVerb {
    /// Add the images of an archive, or an image of another registry, to the registry of the cluster
    ///
    /// An archive is an OCI image layout or what `docker save` writes, as tar, compressed with gzip or zstd or not. An index
    /// of several architectures is added whole. Another image of a user under the same name is replaced; one of a bundle
    /// is not (exit code 7).
    Add(ImageAddArgs),
    /// List the images of the registry: name, digest, the bundle that has it
    List {
        /// Output format
        #[arg(long, short, default_value = "table")]
        output: Format,
    },
    /// Remove images that no bundle has; nodes that have pulled them keep them
    Remove {
        /// Their references
        #[arg(required = true, value_name = "REF")]
        references: Vec<String>,
    },
}

#[derive(Debug, Args)]
struct ImageAddArgs {
    /// An archive, or a reference: registry.example.org/app:1
    #[arg(value_name = "REF|ARCHIVE")]
    origin: String,
    /// Name it so in the registry of the cluster
    #[arg(long = "as", value_name = "REF")]
    name: Option<String>,
}

impl ImageAddArgs {
    /// An archive where there is such a file, or where it is named like one.
    fn origin(&self) -> ImageOrigin {
        let is_path =
            self.origin.starts_with(['/', '.']) || ARCHIVES.iter().any(|end| self.origin.ends_with(end));
        if is_path || Path::new(&self.origin).is_file() {
            ImageOrigin::Archive(PathBuf::from(&self.origin))
        } else {
            ImageOrigin::Reference(self.origin.clone())
        }
    }
}

impl ImageArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// When an image cannot be read, is refused, or the registry cannot be reached.
    pub async fn run(&self) -> Result<ExitCode, Failure> {
        let (layout, socket) = (Layout::default(), Path::new(REGISTRY_WRITER));
        match &self.command {
            ImageVerb::Add(arguments) => {
                let origin = arguments.origin();
                let added = image_add::add((&layout, socket), &origin, arguments.name.as_deref()).await?;
                let lines = added.iter().map(|image| {
                    let done = if image.unchanged { "unchanged" } else { "added" };
                    format!("image {} {done} (sha256:{})\n", image.name, image.digest)
                });
                print(&lines.collect::<String>())?;
            }
            ImageVerb::List { output } => {
                let images = image_list::list(&layout, socket).await?;
                match output {
                    Format::Json | Format::Yaml => document(*output, &images)?,
                    Format::Name => {
                        print(&images.iter().map(|image| format!("{}\n", image.image)).collect::<String>())?;
                    }
                    Format::Table | Format::Wide => {
                        print(&table(&["IMAGE", "DIGEST", "BUNDLE"], &rows(&images)))?
                    }
                }
            }
            ImageVerb::Remove { references } => {
                let removed = image_remove::remove((&layout, socket), references).await?;
                print(&removed.iter().map(|name| format!("image {name} removed\n")).collect::<String>())?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn rows(images: &[ListedImage]) -> Vec<Vec<String>> {
    let bundle = |image: &ListedImage| image.bundle.clone().unwrap_or_else(|| "-".to_owned());
    images.iter().map(|image| vec![image.image.clone(), image.digest.clone(), bundle(image)]).collect()
}
