//! `metalform serve`: package repository, registry front, certificate signing.
