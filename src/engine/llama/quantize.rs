//! A GGUF in, a GGUF of another quantization out, by llama.cpp's own quantizer; and what a file is made of.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::backend;

/// A mix of tensor types that llama.cpp makes; the name is llama.cpp's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantization {
    name: &'static str,
    ftype: llama_cpp_sys_2::llama_ftype,
}

const ALL: [(&str, llama_cpp_sys_2::llama_ftype); 17] = [
    ("F16", llama_cpp_sys_2::LLAMA_FTYPE_MOSTLY_F16),
    ("BF16", llama_cpp_sys_2::LLAMA_FTYPE_MOSTLY_BF16),
    ("Q8_0", llama_cpp_sys_2::LLAMA_FTYPE_MOSTLY_Q8_0),
    ("Q6_K", llama_cpp_sys_2::LLAMA_FTYPE_MOSTLY_Q6_K),
    ("Q5_K_M", llama_cpp_sys_2::LLAMA_FTYPE_MOSTLY_Q5_K_M),
    ("Q5_K_S", llama_cpp_sys_2::LLAMA_FTYPE_MOSTLY_Q5_K_S),
    ("Q5_1", llama_cpp_sys_2::LLAMA_FTYPE_MOSTLY_Q5_1),
    ("Q5_0", llama_cpp_sys_2::LLAMA_FTYPE_MOSTLY_Q5_0),
    ("Q4_K_M", llama_cpp_sys_2::LLAMA_FTYPE_MOSTLY_Q4_K_M),
    ("Q4_K_S", llama_cpp_sys_2::LLAMA_FTYPE_MOSTLY_Q4_K_S),
    ("Q4_1", llama_cpp_sys_2::LLAMA_FTYPE_MOSTLY_Q4_1),
    ("Q4_0", llama_cpp_sys_2::LLAMA_FTYPE_MOSTLY_Q4_0),
    ("IQ4_NL", llama_cpp_sys_2::LLAMA_FTYPE_MOSTLY_IQ4_NL),
    ("IQ4_XS", llama_cpp_sys_2::LLAMA_FTYPE_MOSTLY_IQ4_XS),
    ("Q3_K_M", llama_cpp_sys_2::LLAMA_FTYPE_MOSTLY_Q3_K_M),
    ("Q3_K_S", llama_cpp_sys_2::LLAMA_FTYPE_MOSTLY_Q3_K_S),
    ("Q2_K", llama_cpp_sys_2::LLAMA_FTYPE_MOSTLY_Q2_K),
];

/// Why there is no such file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuantizeError {
    /// llama.cpp has no quantization of that name, or makes it only with data that is not here.
    #[error("no quantization is called `{name}`; there are {}", names())]
    Unknown {
        /// The name that was asked for.
        name: String,
    },
    /// llama.cpp's own state, or the file, is not as it must be.
    #[error("`{path}` cannot be quantized: {reason}", path = path.display())]
    Failed {
        /// The file that was read.
        path: PathBuf,
        /// What is known of the cause.
        reason: String,
    },
    /// The result cannot be given its name.
    #[error("`{path}` cannot be written", path = path.display())]
    Write {
        /// The file that was to be written.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
}

fn names() -> String {
    ALL.map(|(name, _)| name).join(", ")
}

impl Quantization {
    /// llama.cpp's name of it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.name
    }
}

impl FromStr for Quantization {
    type Err = QuantizeError;

    fn from_str(name: &str) -> Result<Self, QuantizeError> {
        let found = ALL.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let found = found.map(|(name, ftype)| Self { name, ftype });
        found.ok_or_else(|| QuantizeError::Unknown { name: name.to_owned() })
    }
}

/// The types of a GGUF's tensors with the bytes of each, the largest share first.
///
/// # Errors
/// [`QuantizeError::Failed`] where the file is no GGUF.
#[expect(unsafe_code, reason = "llama-cpp-2 has no call for it")]
pub fn tensor_types(path: &Path) -> Result<Vec<(String, u64)>, QuantizeError> {
    let fail =
        |reason: &str| QuantizeError::Failed { path: path.to_owned(), reason: reason.to_owned() };
    let name = c_path(path)?;
    let params = llama_cpp_sys_2::gguf_init_params { no_alloc: true, ctx: std::ptr::null_mut() };
    let mut bytes: BTreeMap<String, u64> = BTreeMap::new();
    // SAFETY: the path ends in NUL; the file is open from here to `gguf_free`, and indices are below its
    // number of tensors; names of types are static.
    unsafe {
        let file = llama_cpp_sys_2::gguf_init_from_file(name.as_ptr(), params);
        if file.is_null() {
            return Err(fail("it is no GGUF file"));
        }
        for index in 0..llama_cpp_sys_2::gguf_get_n_tensors(file) {
            let kind = llama_cpp_sys_2::gguf_get_tensor_type(file, index);
            let kind = CStr::from_ptr(llama_cpp_sys_2::ggml_type_name(kind)).to_string_lossy();
            let size = llama_cpp_sys_2::gguf_get_tensor_size(file, index);
            *bytes.entry(kind.to_uppercase()).or_default() += size as u64;
        }
        llama_cpp_sys_2::gguf_free(file);
    }
    let mut types: Vec<_> = bytes.into_iter().collect();
    types.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    Ok(types)
}

/// Whether some of a GGUF's weights are quantized already, so that quantizing them anew loses more.
///
/// # Errors
/// As [`tensor_types`].
pub fn is_quantized(path: &Path) -> Result<bool, QuantizeError> {
    let full = ["F32", "F16", "BF16"];
    Ok(tensor_types(path)?.iter().any(|(name, _)| !full.contains(&name.as_str())))
}

/// Writes `from` in another quantization to `to`, which has its name only once it is whole.
///
/// # Errors
/// [`QuantizeError::Failed`], [`QuantizeError::Write`].
#[expect(unsafe_code, reason = "llama-cpp-2 has no call for it")]
pub fn quantize(
    from: &Path,
    to: &Path,
    quantization: Quantization,
    n_threads: u32,
) -> Result<(), QuantizeError> {
    let fail = |reason: String| QuantizeError::Failed { path: from.to_owned(), reason };
    let write = |source| QuantizeError::Write { path: to.to_owned(), source };
    backend().map_err(fail)?;
    // llama.cpp would end the process over a file that is none.
    tensor_types(from)?;
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(write)?;
    let part = tempfile::Builder::new().prefix(".callme-").suffix(".gguf.part").tempfile_in(folder);
    let part = part.map_err(write)?;
    let (name, part_name) = (c_path(from)?, c_path(part.path())?);
    // SAFETY: both paths end in NUL, and the parameters are llama.cpp's own but for plain numbers.
    let status = unsafe {
        let mut params = llama_cpp_sys_2::llama_model_quantize_default_params();
        params.nthread = i32::try_from(n_threads).unwrap_or(1);
        params.ftype = quantization.ftype;
        params.allow_requantize = true;
        llama_cpp_sys_2::llama_model_quantize(name.as_ptr(), part_name.as_ptr(), &raw const params)
    };
    if status != 0 {
        return Err(fail(format!(
            "llama.cpp's quantizer gives up with {status} (-vv shows its log)"
        )));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Temporary files are for their owner alone; a model is as any file.
        let permissions = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(part.path(), permissions).map_err(write)?;
    }
    part.persist(to).map_err(|error| write(error.error))?;
    Ok(())
}

fn c_path(path: &Path) -> Result<CString, QuantizeError> {
    let fail =
        |reason: &str| QuantizeError::Failed { path: path.to_owned(), reason: reason.to_owned() };
    let text = path.to_str().ok_or_else(|| fail("its path is not UTF-8"))?;
    CString::new(text).map_err(|_| fail("its path has a NUL in it"))
}
