//! `_sha2`, from which `random` takes the digest of a seed that is a text.
pub(crate) use _sha2::module_def;

#[pymodule]
mod _sha2 {
    use crate::vm::{PyPayload, VirtualMachine, builtins::PyBytes, function::ArgBytesLike};
    use sha2::{Digest, Sha512};

    #[pyattr]
    #[pyclass(module = "_sha2", name = "SHA512Type")]
    #[derive(Debug, PyPayload)]
    struct PySha512 {
        digest: [u8; 64],
    }

    #[pyclass]
    impl PySha512 {
        #[pymethod]
        fn digest(&self) -> PyBytes {
            self.digest.to_vec().into()
        }
    }

    #[pyfunction]
    fn sha512(data: ArgBytesLike, _vm: &VirtualMachine) -> PySha512 {
        PySha512 {
            digest: data.with_ref(|bytes| Sha512::digest(bytes).into()),
        }
    }
}
