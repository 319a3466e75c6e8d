//! What the fuzz targets share: bytes to schemas, grammars and walks, and what judges them.

pub mod schemas;
pub mod grammars;
pub mod matcher;
pub mod walk;
pub mod llama;
