//! Images that leave the registry, for people.

/// A line for each image; empty where there is none.
pub fn text(images: &[String]) -> String {
    match images {
        [] => String::new(),
        images => format!(
            "images that leave the registry, as no bundle has them any more:\n{}",
            images.iter().map(|image| format!("  {image}\n")).collect::<String>()
        ),
    }
}
