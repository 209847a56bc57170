//! What an offline cluster is made of: packages, images, digests.
