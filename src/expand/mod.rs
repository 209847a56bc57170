//! The ordered phases by which a machine becomes a member of the cluster.
